/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* commit_json_internal.h - the names of updates and requirements, shared by reading and writing. */
#include "iceberg/metadata/metadata.h"

typedef enum KnActionForm { /* what an update has beside its action */
                            KN_FORM_TEXT,
                            KN_FORM_NUMBER,
                            KN_FORM_IDS,
                            KN_FORM_SHAPE, /* schema, spec, sort order, snapshot */
                            KN_FORM_REF,
                            KN_FORM_PROPERTIES,
                            KN_FORM_REMOVALS,
                            KN_FORM_STATISTICS,
                            KN_FORM_KEY,
} KnActionForm;
typedef struct KnActionName {
    const char *name;
    KnUpdateKind kind;
    KnActionForm form;
    const char *field;
} KnActionName;
typedef struct KnRequirementName {
    const char *name;
    KnRequirementKind kind;
    const char *field; /* NULL = none */
} KnRequirementName;

/* NULL = none of that name or kind. */
const KnActionName *kn_action_find(const char *name);
const KnActionName *kn_action_of(KnUpdateKind kind);
const KnRequirementName *kn_requirement_find(const char *name);
const KnRequirementName *kn_requirement_of(KnRequirementKind kind);

/** KN_E_INVAL unless every value is a string. NULL is none. */
KN_NODISCARD KnCode kn_properties_check(const json_t *properties, KnErr *err);
/** KN_E_CORRUPT of a parser that also reads files is KN_E_INVAL in a request. */
KnCode kn_request_code(KnCode rc, KnErr *err);

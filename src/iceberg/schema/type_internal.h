/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* type_internal.h - what the files of iceberg/ that make schemas share, and their tests. */
#include "iceberg/schema/type.h"

/* Nesting deeper than this is refused: every walk over a type recurses. */
#define KN_TYPE_DEPTH_MAX 64

/** A type's text cut to a length that suits a message. */
#define KN_TYPE_TEXT_MAX 120
const char *kn_type_text(const KnType *type, char out[KN_TYPE_TEXT_MAX]);

/** A column name as schema text spells it: bare, or in backquotes. */
void kn_type_format_name(KnBuf *buf, const char *name);

/** The lowest format version that has this type itself (nested fields not looked at). */
int32_t kn_type_min_format(const KnType *type);

/** Copies the keys of source that are not in known (NULL-terminated) into obj: what a newer writer
 * put there stays there. source may be NULL. */
void kn_json_keep_unknown(json_t *obj, const json_t *source, const char *const *known);

/** KN_E_INVAL unless ids and names (per struct, and dotted in the whole schema) are unique and the
 * identifier ids name required primitives outside lists and maps. code is used for failures. */
KN_NODISCARD KnCode kn_schema_check(const KnSchema *schema, KnCode code, KnErr *err);

/** Deep copy into arena with ids assigned anew: a struct's fields first, then what is in them
 * (Java's AssignFreshIds). last_id is the last id given, advanced. Identifier ids follow. */
KnSchema *kn_schema_assign_ids(KnArena *arena, const KnSchema *schema, int32_t *last_id);

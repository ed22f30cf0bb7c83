/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * commit_json.h - requirements and updates of tables as the REST specification writes them
 * (schemas TableRequirement, TableUpdate, CommitTableRequest, CreateTableRequest).
 *
 * What is not known is refused by name: an update that a server passes over is lost data. Parsed
 * texts are borrowed from the JSON, which must live as long as what was parsed; the rest is in
 * arena. Thread-safe.
 */
#include "iceberg/metadata/metadata.h"

/** An array of requirements; NULL = none. */
KN_NODISCARD KnCode kn_requirements_parse(KnArena *arena, const json_t *array,
                                          const KnRequirement **ret, size_t *ret_n, KnErr *err);
/** An array of updates. View updates are KN_E_INVAL here. */
KN_NODISCARD KnCode kn_updates_parse(KnArena *arena, const json_t *array, const KnUpdate **ret,
                                     size_t *ret_n, KnErr *err);
/** {"requirements": [...], "updates": [...]} */
KN_NODISCARD KnCode kn_commit_parse(KnArena *arena, const json_t *body, KnTableCommit *ret,
                                    KnErr *err);
/** New references. KN_E_UNSUPPORTED for the kinds that REST has no words for
 * (KN_REQUIRE_REF_COUNT, KN_REQUIRE_SNAPSHOT): leave those out with kn_requirement_is_rest(). */
KN_NODISCARD KnCode kn_requirement_to_json(const KnRequirement *req, json_t **ret, KnErr *err);
KN_NODISCARD KnCode kn_update_to_json(const KnUpdate *update, json_t **ret, KnErr *err);
bool kn_requirement_is_rest(const KnRequirement *req);

typedef struct KnCreateRequest {
    const char *name;
    KnCreateTable create; /* location NULL = not given; format_version from the property, else 2 */
    bool stage;
} KnCreateRequest;
/** CreateTableRequest: only name and schema are required. */
KN_NODISCARD KnCode kn_create_request_parse(KnArena *arena, const json_t *body,
                                            KnCreateRequest *ret, KnErr *err);

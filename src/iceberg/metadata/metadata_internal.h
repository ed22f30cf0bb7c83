/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* metadata_internal.h - what the files that read, write and change table metadata share. */
#include "iceberg/metadata/metadata.h"

#define KN_FORMAT_VERSION_MAX 3
#define KN_MAIN_BRANCH        "main"

/** The document of md as JSON: a new reference, or NULL when memory is out or a text is not UTF-8.
 * base (or NULL): what md was made of, by a builder; what both have is shared, where base was
 * written by us. */
json_t *kn_metadata_make_json(const KnMetadata *md, const KnMetadata *base);

/** One snapshot of a document of that version. */
KN_NODISCARD KnCode kn_snapshot_parse(KnArena *arena, const json_t *json, int32_t version,
                                      KnSnapshot *snap, KnErr *err);
KN_NODISCARD KnCode kn_ref_parse(const char *name, const json_t *json, KnRef *ref, KnErr *err);
/** With all fields that any version has: a new reference, or NULL as above. */
json_t *kn_snapshot_to_json(const KnSnapshot *snap);

/** What Java's TableMetadata constructor checks of a whole document; KN_E_CORRUPT. */
KN_NODISCARD KnCode kn_metadata_validate(const KnMetadata *md, KnErr *err);

/** As kn_metadata_parse_json(); doc is what kn_metadata_make_json() gave. */
KN_NODISCARD KnCode kn_metadata_parse_written(json_t *doc, const char *source, KnMetadata **ret,
                                              KnErr *err);

/** A handle on arena and doc (both taken over, also on failure they stay the caller's until
 * success). */
KnMetadata *kn_metadata_wrap(const KnMetadata *md, KnArena *arena, json_t *doc);

/** location without slashes at its end ("s3://" keeps its own). */
const char *kn_location_strip(KnArena *arena, const char *location);

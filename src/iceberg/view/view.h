/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * view.h - view metadata documents (Iceberg view spec, format version 1), and how they change.
 *
 * A KnView is immutable and refcounted (thread-safe to share). Checks and messages are those of
 * Java's ViewMetadata and ViewMetadataParser. Unknown JSON keys are kept and written back.
 */
#include "iceberg/schema/type.h"

typedef struct KnViewVersion {
    int32_t version_id, schema_id;
    int64_t timestamp_ms;
    const json_t *json; /* the whole object: representations, summary, default namespace */
} KnViewVersion;

typedef struct KnViewLogEntry {
    int64_t timestamp_ms;
    int32_t version_id;
} KnViewLogEntry;

typedef struct KnView {
    const char *uuid, *location;
    int32_t format_version, current_version_id;
    size_t n_versions;
    const KnViewVersion *versions;
    size_t n_schemas;
    KnSchema *const *schemas;
    size_t n_log;
    const KnViewLogEntry *log;
    const json_t *properties; /* object of strings, never NULL */
    const json_t *extra;      /* the document it was parsed from */
} KnView;

KN_NODISCARD KnCode kn_view_parse(KnStr bytes, const char *source, KnView **ret, KnErr *err);
KN_NODISCARD KnCode kn_view_parse_json(json_t *doc, const char *source, KnView **ret, KnErr *err);
KN_NODISCARD KnCode kn_view_to_json(const KnView *view, KnBuf *ret, KnErr *err);
KnView *kn_view_ref(const KnView *view);
KnView *kn_view_unref(KnView *view); /* accepts NULL, returns NULL */
static inline void kn_view_freep(KnView **view)
{
    *view = kn_view_unref(*view);
}
#define KN_VIEW_AUTO __attribute__((cleanup(kn_view_freep))) KnView *

const KnViewVersion *kn_view_version(const KnView *view); /* current */
const KnViewVersion *kn_view_find_version(const KnView *view, int32_t version_id);
const KnSchema *kn_view_find_schema(const KnView *view, int32_t schema_id);

/* ---- changes ---- */
typedef enum KnViewUpdateKind {
    KN_VIEW_ASSIGN_UUID,
    KN_VIEW_UPGRADE_FORMAT_VERSION,
    KN_VIEW_ADD_SCHEMA,
    KN_VIEW_SET_LOCATION,
    KN_VIEW_SET_PROPERTIES,
    KN_VIEW_REMOVE_PROPERTIES,
    KN_VIEW_ADD_VERSION,
    KN_VIEW_SET_CURRENT_VERSION,
} KnViewUpdateKind;
typedef struct KnViewUpdate {
    KnViewUpdateKind kind;
    const char *text;   /* uuid, location */
    int64_t number;     /* format version; version id (-1 = last added) */
    const json_t *json; /* schema, version, properties (object), names (array) */
} KnViewUpdate;
typedef struct KnViewCommit {
    const char *require_uuid; /* assert-view-uuid; NULL = not required */
    const KnViewUpdate *updates;
    size_t n_updates;
} KnViewCommit;

/** CommitViewRequest: {"requirements": [...], "updates": [...]}. Borrows from body. */
KN_NODISCARD KnCode kn_view_commit_parse(KnArena *arena, const json_t *body, KnViewCommit *ret,
                                         KnErr *err);
/** KN_E_CONFLICT when the requirement does not hold; a new document, or a new reference to base
 * when the updates change nothing. */
KN_NODISCARD KnCode kn_view_apply(const KnView *base, const KnViewCommit *commit, KnView **ret,
                                  KnErr *err);

typedef struct KnCreateView {
    const char *name;
    const char *location; /* NULL = not given */
    const json_t *schema, *version;
    const json_t *properties; /* or NULL */
} KnCreateView;
/** CreateViewRequest. Borrows from body. */
KN_NODISCARD KnCode kn_create_view_parse(const json_t *body, KnCreateView *ret, KnErr *err);
/** location must be set. */
KN_NODISCARD KnCode kn_view_create(const KnCreateView *create, KnView **ret, KnErr *err);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * metadata.h - table metadata documents v1, v2, v3 (spec: "Table Metadata"), and how they change.
 *
 * A KnMetadata is immutable and refcounted (thread-safe to share). Unknown JSON keys are kept and
 * written back. A change is a list of KnUpdate applied to a base, under KnRequirements, exactly as
 * the REST protocol's TableMetadata builder does it: the same list serves local commits and REST
 * commits. Checks are those of Java's TableMetadataParser/TableMetadata: what it refuses, this
 * refuses, naming the field.
 */
#include "iceberg/schema/partition.h"
#include "iceberg/schema/type.h"

typedef struct KnSnapshot {
    int64_t snapshot_id;
    int64_t parent_id;       /* -1 = none */
    int64_t sequence_number; /* 0 in v1 */
    int64_t timestamp_ms;
    const char *manifest_list; /* NULL: v1 with an embedded list of manifests */
    size_t n_manifests;        /* v1 embedded */
    const char *const *manifests;
    const char *operation; /* "append", "replace", "overwrite", "delete"; NULL = absent */
    const json_t *summary; /* object or NULL; includes operation */
    int32_t schema_id;     /* -1 = absent */
    int64_t first_row_id;  /* v3; -1 = absent */
    int64_t added_rows;    /* v3; -1 = absent */
    const char *key_id;    /* encryption; NULL = none */
    const json_t *extra;   /* the object it was parsed from, whose unknown keys are kept; or NULL */
} KnSnapshot;

typedef struct KnRef {
    const char *name;
    int64_t snapshot_id;
    bool is_branch;
    int64_t min_snapshots_to_keep, max_snapshot_age_ms, max_ref_age_ms; /* -1 = absent */
} KnRef;

typedef struct KnLogEntry { /* snapshot-log and metadata-log */
    int64_t timestamp_ms;
    int64_t snapshot_id;       /* snapshot-log */
    const char *metadata_file; /* metadata-log */
} KnLogEntry;

typedef struct KnMetadata {
    int32_t format_version;
    const char *uuid;     /* NULL only in v1 */
    const char *location; /* without a final slash */
    int64_t last_sequence_number, last_updated_ms, next_row_id;
    int32_t last_column_id, current_schema_id, default_spec_id, last_partition_id,
        default_sort_order_id;
    size_t n_schemas;
    KnSchema *const *schemas;
    size_t n_specs;
    KnPartitionSpec *const *specs;
    size_t n_sort_orders;
    KnSortOrder *const *sort_orders;
    size_t n_snapshots;
    const KnSnapshot *snapshots;
    size_t n_refs;
    const KnRef *refs;
    size_t n_snapshot_log;
    const KnLogEntry *snapshot_log;
    size_t n_metadata_log;
    const KnLogEntry *metadata_log;
    int64_t current_snapshot_id; /* -1 = none */
    const json_t *properties;    /* object of strings, never NULL */
    const json_t *statistics, *partition_statistics, *encryption_keys; /* arrays or NULL */
    const json_t *extra; /* the document it was parsed from, whose unknown keys are kept; or NULL */
    bool written;        /* extra is word for word what kn_metadata_to_json() writes of it */
} KnMetadata;

/** text may be gzip (1f 8b is sniffed) or plain JSON. `source` names the document in messages. */
KN_NODISCARD KnCode kn_metadata_parse(KnStr bytes, const char *source, KnMetadata **ret,
                                      KnErr *err);
/** The same of a document that is already JSON (a catalog's answer); doc is referenced, not copied.
 */
KN_NODISCARD KnCode kn_metadata_parse_json(json_t *doc, const char *source, KnMetadata **ret,
                                           KnErr *err);
KN_NODISCARD KnCode kn_metadata_to_json(const KnMetadata *md, KnBuf *ret, KnErr *err);
/** Bytes that begin as gzip (1f 8b) are unpacked into plain, and *bytes is set to that; others stay
 * as they are. plain is initialised by the caller. */
KN_NODISCARD KnCode kn_metadata_gunzip(KnStr *bytes, KnBuf *plain, KnErr *err);
/** The JSON of a document's bytes, plain or gzip (of at most max bytes then); *ret is the caller's.
 * source names it. */
KN_NODISCARD KnCode kn_metadata_read_json(KnStr bytes, size_t max, const char *source, json_t **ret,
                                          KnErr *err);
KnMetadata *kn_metadata_ref(const KnMetadata *md);
KnMetadata *kn_metadata_unref(KnMetadata *md); /* accepts NULL, returns NULL */
/** Takes a reference that lives as long as arena. */
void kn_metadata_keep(KnArena *arena, const KnMetadata *md);
static inline void kn_metadata_freep(KnMetadata **md)
{
    *md = kn_metadata_unref(*md);
}
#define KN_METADATA_AUTO __attribute__((cleanup(kn_metadata_freep))) KnMetadata *

const KnSchema *kn_metadata_schema(const KnMetadata *md); /* current */
const KnSchema *kn_metadata_find_schema(const KnMetadata *md, int32_t schema_id);
const KnPartitionSpec *kn_metadata_spec(const KnMetadata *md); /* default */
const KnPartitionSpec *kn_metadata_find_spec(const KnMetadata *md, int32_t spec_id);
const KnSortOrder *kn_metadata_sort_order(const KnMetadata *md);
const KnSnapshot *kn_metadata_snapshot(const KnMetadata *md); /* current; NULL = none */
const KnSnapshot *kn_metadata_find_snapshot(const KnMetadata *md, int64_t snapshot_id);
const KnRef *kn_metadata_find_ref(const KnMetadata *md, KnStr name);
/** The schema a snapshot's rows are read with: its schema-id, else the current one. */
const KnSchema *kn_metadata_snapshot_schema(const KnMetadata *md, const KnSnapshot *snap);
/** The snapshot that was current at a time (snapshot-log); NULL = none yet. */
const KnSnapshot *kn_metadata_snapshot_as_of(const KnMetadata *md, int64_t timestamp_ms);
const char *kn_metadata_property(const KnMetadata *md, const char *key, const char *dflt);
/** True when data files may be encrypted: property encryption.key-id, or a snapshot's key-id. Such
 * a table is read as metadata and refused by whoever opens its files. */
bool kn_metadata_is_encrypted(const KnMetadata *md);
/** Any field id by any schema of the table (dropped columns too, newest schema first); NULL = none.
 */
const KnField *kn_metadata_find_field(const KnMetadata *md, int32_t id);
/** The struct type of the spec's partition tuples, as kn_partition_type(); a source column that was
 * dropped has the type that it had, so that tuples are carried on as they are. */
KN_NODISCARD KnCode kn_metadata_partition_type(KnArena *arena, const KnMetadata *md,
                                               const KnPartitionSpec *spec, const KnType **ret,
                                               KnErr *err);

/* ---- changes ---- */
typedef enum KnUpdateKind {
    KN_UPDATE_ASSIGN_UUID,
    KN_UPDATE_UPGRADE_FORMAT_VERSION,
    KN_UPDATE_ADD_SCHEMA,
    KN_UPDATE_SET_CURRENT_SCHEMA,
    KN_UPDATE_ADD_SPEC,
    KN_UPDATE_SET_DEFAULT_SPEC,
    KN_UPDATE_ADD_SORT_ORDER,
    KN_UPDATE_SET_DEFAULT_SORT_ORDER,
    KN_UPDATE_ADD_SNAPSHOT,
    KN_UPDATE_SET_SNAPSHOT_REF,
    KN_UPDATE_REMOVE_SNAPSHOTS,
    KN_UPDATE_REMOVE_SNAPSHOT_REF,
    KN_UPDATE_SET_LOCATION,
    KN_UPDATE_SET_PROPERTIES,
    KN_UPDATE_REMOVE_PROPERTIES,
    KN_UPDATE_SET_STATISTICS,
    KN_UPDATE_REMOVE_STATISTICS,
    KN_UPDATE_SET_PARTITION_STATISTICS,
    KN_UPDATE_REMOVE_PARTITION_STATISTICS,
    KN_UPDATE_REMOVE_SPECS,
    KN_UPDATE_REMOVE_SCHEMAS,
    KN_UPDATE_ADD_ENCRYPTION_KEY,
    KN_UPDATE_REMOVE_ENCRYPTION_KEY,
} KnUpdateKind;
typedef struct KnUpdate {
    KnUpdateKind kind;
    const char *text; /* uuid, location, ref name (remove), key-id (remove) */
    int64_t number;   /* version, schema/spec/order id (-1 = last added), snapshot id */
    const KnSchema *schema;
    const KnPartitionSpec *spec;
    const KnSortOrder *sort_order;
    KnSnapshot snapshot;      /* add-snapshot */
    KnRef ref;                /* set-snapshot-ref */
    const json_t *properties; /* set: object; remove: array of names */
    const int64_t *ids;       /* remove-snapshots, remove-schemas, remove-partition-specs */
    size_t n_ids;
    const json_t *json; /* set-(partition-)statistics, add-encryption-key: the object */
} KnUpdate;
typedef enum KnRequirementKind {
    KN_REQUIRE_CREATE,
    KN_REQUIRE_UUID,
    KN_REQUIRE_REF_SNAPSHOT_ID,
    KN_REQUIRE_LAST_ASSIGNED_FIELD_ID,
    KN_REQUIRE_CURRENT_SCHEMA_ID,
    KN_REQUIRE_LAST_ASSIGNED_PARTITION_ID,
    KN_REQUIRE_DEFAULT_SPEC_ID,
    KN_REQUIRE_DEFAULT_SORT_ORDER_ID,
    /* Ours alone, REST has no words for them: no ref came or went, and a snapshot is still there.
     */
    KN_REQUIRE_REF_COUNT,
    KN_REQUIRE_SNAPSHOT,
} KnRequirementKind;
typedef struct KnRequirement {
    KnRequirementKind kind;
    const char *text; /* uuid, ref name */
    int64_t number;   /* id or count; -1 for a ref that must not exist */
} KnRequirement;

typedef struct KnTableCommit {
    const KnRequirement *requirements;
    size_t n_requirements;
    const KnUpdate *updates;
    size_t n_updates;
} KnTableCommit;

/** KN_E_CONFLICT with Java's words ("Requirement failed: …") on the first that does not hold. base
 * NULL = no table. */
KN_NODISCARD KnCode kn_metadata_check(const KnMetadata *base, const KnRequirement *reqs, size_t n,
                                      KnErr *err);
/** A new document: updates applied in order, last-updated-ms and logs set; previous_file (may be
 * NULL) goes to the metadata-log, trimmed to write.metadata.previous-versions-max. base NULL = the
 * commit that creates a table: v2 unless upgraded, unpartitioned and unsorted unless said. A spec's
 * field_id 0, or one that another spec uses for something else, is given anew (reusing the id of an
 * equal field). When the updates change nothing, *ret is a new reference to base. */
KN_NODISCARD KnCode kn_metadata_apply(const KnMetadata *base, const KnUpdate *updates, size_t n,
                                      const char *previous_file, KnMetadata **ret, KnErr *err);
typedef struct KnCreateTable {
    int32_t format_version; /* 2 or 3 (1 for tests) */
    const char *location;
    const KnSchema *schema;        /* ids are assigned anew, breadth first */
    const KnPartitionSpec *spec;   /* NULL = unpartitioned; source ids refer to schema as given */
    const KnSortOrder *sort_order; /* NULL = unsorted */
    const json_t *properties;      /* or NULL */
} KnCreateTable;
KN_NODISCARD KnCode kn_metadata_create(const KnCreateTable *create, KnMetadata **ret, KnErr *err);

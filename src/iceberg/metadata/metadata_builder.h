/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * metadata_builder.h - a document under change: the state that kn_metadata_apply() carries from one
 * update to the next.
 *
 * md is a shallow copy of the base whose arrays were copied with room for one more element an
 * update; schemas, snapshots and texts are still the base's or the caller's. The finished document
 * is made by writing md as JSON and parsing that, so that it shares no memory with either but for
 * immutable JSON values, which are counted.
 */
#include "iceberg/metadata/metadata.h"

#define KN_NOT_ADDED INT32_MIN

typedef struct KnBuilder {
    KnArena *arena;
    const KnMetadata *base; /* NULL = a new table */
    KnMetadata md;
    KnSchema **schemas; /* md.schemas and so on, writable */
    KnPartitionSpec **specs;
    KnSortOrder **sort_orders;
    KnSnapshot *snapshots;
    KnRef *refs;
    KnLogEntry *snapshot_log;
    json_t *properties; /* owned: md.properties */
    json_t *lists[3];   /* owned: statistics, partition statistics, encryption keys; NULL = none */
    int32_t last_schema_id, last_spec_id, last_order_id; /* added by these updates; KN_NOT_ADDED */
    int64_t *added_ids;                                  /* snapshots added */
    size_t n_added;
    int64_t *main_ids; /* snapshots that main was set to */
    size_t n_main;
    int64_t updated_ms; /* -1 = not set by an update */
    bool removed_snapshots;
    bool changed;
} KnBuilder;

enum { KN_LIST_STATISTICS, KN_LIST_PARTITION_STATISTICS, KN_LIST_ENCRYPTION_KEYS };

KN_NODISCARD KnCode kn_builder_add_schema(KnBuilder *b, const KnSchema *schema, KnErr *err);
KN_NODISCARD KnCode kn_builder_set_schema(KnBuilder *b, int64_t id, KnErr *err);
KN_NODISCARD KnCode kn_builder_remove_schemas(KnBuilder *b, const KnUpdate *u, KnErr *err);
KN_NODISCARD KnCode kn_builder_add_spec(KnBuilder *b, const KnPartitionSpec *spec, KnErr *err);
KN_NODISCARD KnCode kn_builder_set_spec(KnBuilder *b, int64_t id, KnErr *err);
KN_NODISCARD KnCode kn_builder_remove_specs(KnBuilder *b, const KnUpdate *u, KnErr *err);
KN_NODISCARD KnCode kn_builder_add_order(KnBuilder *b, const KnSortOrder *order, KnErr *err);
KN_NODISCARD KnCode kn_builder_set_order(KnBuilder *b, int64_t id, KnErr *err);

KN_NODISCARD KnCode kn_builder_add_snapshot(KnBuilder *b, const KnSnapshot *snap, KnErr *err);
KN_NODISCARD KnCode kn_builder_set_ref(KnBuilder *b, const KnRef *ref, KnErr *err);
void kn_builder_remove_ref(KnBuilder *b, const char *name);
void kn_builder_remove_snapshots(KnBuilder *b, const int64_t *ids, size_t n);
/** Log entries of snapshots that are gone, or that only passed through main, are dropped. */
void kn_builder_fix_log(KnBuilder *b);

/** Replaces (or adds) the object of a list that has the same number or text under key. */
KN_NODISCARD KnCode kn_builder_put(KnBuilder *b, int list, const char *key, const json_t *object,
                                   KnErr *err);
void kn_builder_drop_number(KnBuilder *b, int list, int64_t snapshot_id);
void kn_builder_drop_text(KnBuilder *b, int list, const char *key, const char *text);

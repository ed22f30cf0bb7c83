/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * table.h - open an Iceberg table, read its rows and its changes as Arrow streams.
 *
 * A KnutTable and the streams made from it belong to one thread at a time; different tables are
 * independent. A stream holds the table open as it was when the stream was made; release it before
 * knut_table_close(). Structs of options carry their size, so that later versions may add members:
 * zero them and set `size`.
 */
#include <stddef.h>
#include <stdint.h>

#include "knut/arrow.h"
#include "knut/err.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct KnutTable KnutTable;

/* Where the table is: exactly one of warehouse and rest_uri (with table), root, metadata. Texts are
 * copied. Secrets for a REST catalog come from the environment: KNUT_REST_TOKEN,
 * KNUT_REST_CREDENTIAL. */
typedef struct KnutOpen {
    size_t size;           /* sizeof(KnutOpen) */
    const char *warehouse; /* folder of a warehouse whose catalog has the JDBC schema in SQLite */
    const char *db;        /* the SQLite file; NULL = warehouse/catalog.db */
    const char *catalog;   /* name in the database; NULL = "knut" */
    const char *table;     /* "ns.name" */
    const char *root;      /* location of a bare table */
    const char *metadata;  /* one metadata document */
    const char *rest_uri;  /* a catalog server that speaks Iceberg's REST protocol */
    const char *rest_warehouse; /* its warehouse or catalog; NULL = the server has one */
    int threads;                /* of the engine; 0 = number of processors */
    uint64_t memory_limit;      /* bytes for the engine; 0 = 256 MiB */
    const char *spill_dir;      /* NULL = a new folder under TMPDIR */
    /* For s3:// locations; what is NULL, and all keys, come from the environment (docs/s3.md). */
    const char *s3_endpoint;
    const char *s3_region;
    const char *s3_ca; /* PEM file */
    bool s3_virtual_hosted;
} KnutOpen;

KnCode knut_table_open(const KnutOpen *open, KnutTable **ret, KnErr *err);
/** Accepts NULL. */
void knut_table_close(KnutTable *table);
/** Show the newest metadata. Streams that are open go on with what they have. */
KnCode knut_table_refresh(KnutTable *table, KnErr *err);

/** "ns.name", or the location of a bare table. Lives as long as table. */
const char *knut_table_name(const KnutTable *table);
/** Where the metadata document is. Lives until the next refresh. */
const char *knut_table_metadata_location(const KnutTable *table);
/** Id of the current snapshot; -1 = the table has none. */
int64_t knut_table_snapshot(const KnutTable *table);

typedef struct KnutScan {
    size_t size;                /* sizeof(KnutScan) */
    const char *snapshot;       /* id as text; NULL = the current one */
    const char *as_of;          /* ISO 8601 or milliseconds: the snapshot current then */
    const char *ref;            /* branch or tag */
    const char *const *columns; /* NULL = all */
    size_t n_columns;
    const char *where; /* filter, as `knut table scan --where` takes it; NULL = all rows */
} KnutScan;

/** Rows of a snapshot. scan NULL = all rows of the current one. Streams; nothing is collected. */
KnCode knut_table_scan(KnutTable *table, const KnutScan *scan, struct ArrowArrayStream *ret,
                       KnErr *err);

typedef struct KnutChanges {
    size_t size;        /* sizeof(KnutChanges) */
    int64_t from;       /* snapshot id, exclusive; -1 = before the first */
    int64_t to;         /* inclusive; -1 = the current one */
    bool raw;           /* keep rows that a rewrite removed and wrote again unchanged */
    bool before_images; /* pair a delete and an insert of one identifier as update_before,
                           update_after */
} KnutChanges;

/** Net changes between two snapshots of one line: the columns of the current schema, then
 * _change_type, _commit_snapshot_id, _change_ordinal. For the changes of each snapshot ask for each
 * parent and child. */
KnCode knut_table_changes(KnutTable *table, const KnutChanges *changes,
                          struct ArrowArrayStream *ret, KnErr *err);

#ifdef __cplusplus
}
#endif

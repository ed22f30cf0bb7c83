/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.c - the public face of a table (knut/table.h).
 *
 * A KnutTable owns arena, catalog, table handle and engine, closed in the reverse order. Each
 * stream has a session of its own and its own reference to the metadata (through a second table
 * handle), so that a refresh cannot pull files away under it.
 */
#include "knut/table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "iceberg/changes/changelog.h"
#include "lib/lib_internal.h"

KnLocator knut_locator(KnArena *arena, const KnutOpen *open)
{
#define COPY(to, from) .to = open->from ? kn_arena_strdup(arena, open->from) : NULL
    return (KnLocator){
        COPY(warehouse, warehouse),
        COPY(db, db),
        COPY(catalog, catalog),
        COPY(table, table),
        COPY(root, root),
        COPY(metadata, metadata),
        COPY(rest.uri, rest_uri),
        COPY(rest.warehouse, rest_warehouse),
        COPY(s3.endpoint, s3_endpoint),
        COPY(s3.region, s3_region),
        COPY(s3.ca_file, s3_ca),
        .s3.virtual_hosted = open->s3_virtual_hosted,
    };
#undef COPY
}

static KnCode fill(KnutTable *table, const KnutOpen *open, KnErr *err)
{
    KnLocator loc = knut_locator(table->arena, open);
    KN_TRY(kn_locator_load(&loc, &table->catalog, &table->tbl, err));
    table->engine_opts = (KnEngineOptions){
        .threads = open->threads,
        .memory_limit = open->memory_limit,
        .spill_dir = open->spill_dir ? kn_arena_strdup(table->arena, open->spill_dir) : NULL,
    };
    return KN_OK;
}

KnCode knut_table_open(const KnutOpen *open, KnutTable **ret, KnErr *err)
{
    if (open->size != sizeof(*open))
        return kn_err_set(err, KN_E_INVAL, "KnutOpen.size is %zu, expected %zu", open->size,
                          sizeof(*open));
    KnutTable *table = calloc(1, sizeof(*table));
    if (!table)
        abort();
    table->arena = kn_arena_new(0);
    KnCode rc = fill(table, open, err);
    if (rc != KN_OK) {
        knut_table_close(table);
        return rc;
    }
    *ret = table;
    return KN_OK;
}

void knut_table_close(KnutTable *table)
{
    if (!table)
        return;
    kn_engine_close(table->engine);
    kn_table_free(table->tbl);
    kn_catalog_close(table->catalog);
    kn_arena_free(table->arena);
    free(table);
}

KnCode knut_table_refresh(KnutTable *table, KnErr *err)
{
    return kn_table_refresh(table->tbl, err);
}

const char *knut_table_name(const KnutTable *table)
{
    return table->tbl->name;
}

const char *knut_table_metadata_location(const KnutTable *table)
{
    return table->tbl->metadata_location;
}

int64_t knut_table_snapshot(const KnutTable *table)
{
    return table->tbl->md->current_snapshot_id;
}

const char *knut_version(void)
{
    return KN_VERSION_STRING;
}

KnCode knut_table_engine(KnutTable *table, KnEngine **ret, KnErr *err)
{
    if (!table->engine)
        KN_TRY(kn_engine_open(&table->engine_opts, &table->engine, err));
    *ret = table->engine;
    return KN_OK;
}

/* ---- scans ---- */

static KnCode scan_columns(KnArena *arena, const KnutScan *scan, const KnSchema *full,
                           const KnSchema **ret, KnErr *err)
{
    *ret = full;
    if (!scan || !scan->columns)
        return KN_OK;
    KnSchema *projected = NULL;
    KN_TRY(kn_schema_project(arena, full, scan->columns, scan->n_columns, &projected, err));
    *ret = projected;
    return KN_OK;
}

/* Fills rows with what reads the snapshot; rows->tbl is a handle of the stream's own. */
static KnCode open_scan(KnutRows *rows, const KnutScan *scan, KnErr *err)
{
    const KnTable *tbl = rows->tbl;
    KnSnapshotChoice choice = {0};
    if (scan)
        choice =
            (KnSnapshotChoice){.snapshot = scan->snapshot, .as_of = scan->as_of, .ref = scan->ref};
    const KnSnapshot *snap = NULL;
    KN_TRY(kn_table_choose_snapshot(tbl, &choice, &snap, err));
    const KnSchema *full = kn_table_choice_schema(tbl, &choice, snap);
    KnReadOptions read = {0};
    KN_TRY(scan_columns(rows->arena, scan, full, &read.schema, err));
    if (scan && scan->where)
        KN_TRY(kn_expr_parse(rows->arena, kn_str(scan->where), full, &read.filter, err));
    if (snap) {
        KnPlanOptions plan = {.snapshot = snap, .schema = full, .filter = read.filter};
        KN_TRY(kn_plan_scan(tbl, &plan, &rows->plan, err));
    }
    KnScanTasks tasks = {0};
    if (rows->plan)
        tasks = (KnScanTasks){rows->plan->tasks, rows->plan->n_tasks};
    KN_TRY(kn_read_open(tbl, rows->session, tasks, &read, &rows->read, err));
    return kn_session_query(rows->session, kn_read_sql(rows->read), &rows->stream, err);
}

KnCode knut_table_scan(KnutTable *table, const KnutScan *scan, struct ArrowArrayStream *ret,
                       KnErr *err)
{
    if (scan && scan->size != sizeof(*scan))
        return kn_err_set(err, KN_E_INVAL, "KnutScan.size is %zu, expected %zu", scan->size,
                          sizeof(*scan));
    KnutRows *rows = NULL;
    KN_TRY(knut_rows_new(table, &rows, err));
    KnCode rc = open_scan(rows, scan, err);
    if (rc != KN_OK) {
        knut_rows_free(rows);
        return rc;
    }
    knut_rows_export(rows, ret);
    return KN_OK;
}

/* ---- changes ---- */

static KnCode find_snapshot(const KnTable *tbl, int64_t id, const KnSnapshot **ret, KnErr *err)
{
    *ret = kn_metadata_find_snapshot(tbl->md, id);
    if (!*ret)
        return kn_err_set(err, KN_E_NOTFOUND, "table %s has no snapshot %" PRId64, tbl->name, id);
    return KN_OK;
}

static KnCode open_changes(KnutRows *rows, const KnutChanges *changes, KnErr *err)
{
    const KnTable *tbl = rows->tbl;
    const KnSnapshot *from = NULL, *to = kn_metadata_snapshot(tbl->md);
    if (changes->from >= 0)
        KN_TRY(find_snapshot(tbl, changes->from, &from, err));
    if (changes->to >= 0)
        KN_TRY(find_snapshot(tbl, changes->to, &to, err));
    if (!to)
        return kn_err_set(err, KN_E_NOTFOUND, "table %s has no snapshot yet", tbl->name);
    const KnSchema *schema = kn_metadata_schema(tbl->md);
    const char **keys = kn_arena_alloc(rows->arena, (schema->n_identifier_ids + 1) * sizeof(*keys));
    for (size_t i = 0; i < schema->n_identifier_ids; i++) {
        const KnField *field = kn_schema_find_id(schema, schema->identifier_ids[i]);
        keys[i] = field ? field->name : "";
    }
    KnChangeRowsOptions opts = {.schema = schema,
                                .keys = keys,
                                .n_keys = schema->n_identifier_ids,
                                .raw = changes->raw,
                                .images = changes->before_images};
    KN_TRY(kn_window_plan(tbl, from, to, &rows->window, err));
    KN_TRY(kn_window_change_rows(rows->window, rows->session, &opts, &rows->changes, err));
    return kn_session_query(rows->session, kn_change_rows_sql(rows->changes), &rows->stream, err);
}

KnCode knut_table_changes(KnutTable *table, const KnutChanges *changes,
                          struct ArrowArrayStream *ret, KnErr *err)
{
    if (changes->size != sizeof(*changes))
        return kn_err_set(err, KN_E_INVAL, "KnutChanges.size is %zu, expected %zu", changes->size,
                          sizeof(*changes));
    KnutRows *rows = NULL;
    KN_TRY(knut_rows_new(table, &rows, err));
    KnCode rc = open_changes(rows, changes, err);
    if (rc != KN_OK) {
        knut_rows_free(rows);
        return rc;
    }
    knut_rows_export(rows, ret);
    return KN_OK;
}

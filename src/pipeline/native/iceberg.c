/* SPDX-License-Identifier: Apache-2.0 */
/*
 * iceberg.c - Iceberg tables as inputs and targets.
 *
 * Whoever starts the run hands in how tables are opened; nothing here knows of catalogs. An input
 * is the table's current snapshot, deletes applied. A target gets one snapshot, whose summary names
 * the pipeline, the dataset and the run; the id of a run that is given from outside is looked for
 * among the table's snapshots first, so that a run that is repeated adds its rows once.
 */
#include <inttypes.h>
#include <string.h>

#include "base/fault.h"
#include "base/json.h"
#include "iceberg/scan/read.h"
#include "iceberg/schema/partition.h"
#include "iceberg/write/write.h"
#include "pipeline/native/native.h"

KnCode kn_native_table_open(KnNativeRun *run, const char *name, KnTable **ret, KnErr *err)
{
    const KnRunTables *tables = run->opts->tables;
    const char *database = run->pipeline->default_database;
    if (!strchr(name, '.') && database)
        name = kn_arena_printf(run->arena, "%s.%s", database, name);
    if (!tables)
        return kn_err_set(err, KN_E_INVAL, "table %s: no catalog was named", name);
    KN_TRY(kn_transform_register(run->engine, err));
    return tables->open(tables->arg, name, ret, err);
}

/* A table without snapshots has its columns and no rows. */
KnCode kn_native_nothing_sql(KnNativeRun *run, const KnSchema *schema, const char **ret, KnErr *err)
{
    KN_BUF_AUTO sql = {.max = 16 << 20};
    kn_buf_text(&sql, "SELECT ");
    for (size_t i = 0; i < schema->root.n_fields; i++) {
        const KnField *field = &schema->root.fields[i];
        kn_buf_text(&sql, i ? ", CAST(NULL AS " : "CAST(NULL AS ");
        KN_TRY(kn_type_sql(&sql, field->type, err));
        kn_buf_text(&sql, ") AS ");
        kn_sql_ident(&sql, kn_str(field->name));
    }
    kn_buf_text(&sql, " WHERE false");
    KN_TRY(kn_buf_check(&sql, err));
    *ret = kn_arena_strndup(run->arena, sql.data, sql.len);
    return KN_OK;
}

/* The table stays open until the end of the run. */
static KnCode current_rows(KnNativeRun *run, const char *name, KnTable **ret_table,
                           const char **ret, KnErr *err)
{
    KnNativeTable *table = kn_vec_push(&run->tables);
    const KnSnapshotChoice current = {0};
    const KnSnapshot *snap = NULL;
    KN_TRY(kn_native_table_open(run, name, &table->table, err));
    *ret_table = table->table;
    KN_TRY(kn_table_choose_snapshot(table->table, &current, &snap, err));
    const KnSchema *schema = kn_metadata_schema(table->table->md);
    if (!snap)
        return kn_native_nothing_sql(run, schema, ret, err);
    KnPlanOptions plan = {.snapshot = snap, .schema = schema};
    KN_TRY(kn_plan_scan(table->table, &plan, &table->plan, err));
    KnReadOptions *read = kn_arena_zalloc(run->arena, sizeof(*read));
    read->schema = schema;
    KN_TRY(kn_read_open(table->table, run->session,
                        (KnScanTasks){table->plan->tasks, table->plan->n_tasks}, read, &table->read,
                        err));
    *ret = kn_read_sql(table->read);
    return KN_OK;
}

KnCode kn_native_table_sql(KnNativeRun *run, const char *name, const char **ret, KnErr *err)
{
    KnTable *table = NULL;
    return current_rows(run, name, &table, ret, err);
}

KnCode kn_native_target_sql(KnNativeRun *run, KnNativeNode *node, const char **ret, KnErr *err)
{
    return current_rows(run, node->path, &node->table, ret, err);
}

void kn_native_tables_done(KnNativeRun *run)
{
    kn_vec_foreach (&run->tables, table) {
        if (table->read)
            kn_read_close(table->read);
        if (table->plan)
            kn_plan_free(table->plan);
        if (table->table)
            kn_table_free(table->table);
    }
    kn_vec_done(&run->tables);
}

static const char *summary_value(const KnSnapshot *snap, const char *key)
{
    return json_string_value(json_object_get(snap->summary, key));
}

/* True when a snapshot of the table is of this run and dataset. */
static bool written_before(const KnNativeRun *run, const KnNativeNode *node, const KnTable *table)
{
    for (size_t i = 0; run->opts->run_id && i < table->md->n_snapshots; i++) {
        const KnSnapshot *snap = &table->md->snapshots[i];
        const char *id = summary_value(snap, "knut.pipeline.run");
        const char *dataset = summary_value(snap, "knut.pipeline.dataset");
        if (id && dataset && !strcmp(id, run->opts->run_id) &&
            !strcmp(dataset, node->dataset->name))
            return true;
    }
    return false;
}

static KnCode write_rows(KnNativeRun *run, const KnNativeNode *node, KnTable *table,
                         KnWriteResult *ret, KnErr *err)
{
    const char *summary[] = {"knut.pipeline",     run->pipeline->name, "knut.pipeline.dataset",
                             node->dataset->name, "knut.pipeline.run", run->id};
    KnWriteOptions write = {.summary = summary, .n_summary = 3, .cancelled = run->opts->cancelled};
    KN_BUF_AUTO sql = {.max = 1 << 16};
    kn_buf_text(&sql, "SELECT * FROM ");
    kn_native_name_sql(&sql, node->dataset->name);
    if (!node->replace)
        return kn_write_append(table, run->session, sql.data, &write, ret, err);
    KnOverwrite change = {.select_sql = sql.data};
    KN_TRY(kn_expr_parse(run->arena, KN_STR_LIT("TRUE"), kn_metadata_schema(table->md),
                         &change.filter, err));
    return kn_write_overwrite(table, run->session, &change, &write, ret, err);
}

/* The table as it was when its rows were read, where they were: what others committed since then
 * must not be lost. */
static KnCode table_to_write(KnNativeRun *run, const KnNativeNode *node, KnTable **ret, KnErr *err)
{
    *ret = node->table;
    if (node->table)
        return KN_OK;
    KnNativeTable *kept = kn_vec_push(&run->tables);
    KN_TRY(kn_native_table_open(run, node->path, &kept->table, err));
    *ret = kept->table;
    return KN_OK;
}

KnCode kn_native_table_write(KnNativeRun *run, KnNativeNode *node, KnErr *err)
{
    KnTable *table = NULL;
    KnWriteResult result = {.snapshot_id = -1};
    KN_TRY(table_to_write(run, node, &table, err));
    KnRunMetrics metrics = {.rows = 0};
    KnRunEvent event = {
        .element = node->dataset->name, .phase = KN_PHASE_COMPLETED, .metrics = &metrics};
    if (written_before(run, node, table)) {
        kn_native_tell(run, &event, "sink `%s`: run %s is in %s already", node->dataset->name,
                       run->id, node->path);
        return KN_OK;
    }
    KN_FAULT("pipeline-commit", err);
    KN_TRY(write_rows(run, node, table, &result, err));
    KN_FAULT("pipeline-committed", err);
    metrics.rows = node->rows = result.added_rows;
    kn_native_tell(run, &event,
                   "sink `%s`: wrote %" PRId64 " row(s) -> %s (iceberg, snapshot %" PRId64 ")",
                   node->dataset->name, node->rows, node->path, result.snapshot_id);
    return KN_OK;
}

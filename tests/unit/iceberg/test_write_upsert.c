/* SPDX-License-Identifier: Apache-2.0 */
/* labels: slow */
/* test_write_upsert.c - upsert by key: what is updated, inserted, left alone and refused; both
 * modes; lineage; conflicts; random histories against a model. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/random.h"
#include "iceberg/scan/read.h"
#include "unit/iceberg/lake.h"

static const char *const modes[] = {"copy-on-write", "merge-on-read"};

static const KnSnapshot *head(Lake *lake)
{
    return kn_metadata_snapshot(lake->tbl->md);
}

static KnCode try_upsert(Lake *lake, const KnUpsert *upsert, KnWriteResult *ret)
{
    return kn_write_upsert(lake->tbl, lake->ses, upsert, NULL, ret, &lake->err);
}

static const char *const by_id[] = {"id"};

static KnWriteResult upsert_id(Lake *lake, const char *sql)
{
    KnWriteResult res;
    KnUpsert upsert = {.select_sql = sql, .n_keys = 1, .keys = by_id};
    lake_ok(lake, try_upsert(lake, &upsert, &res));
    return res;
}

static void refused(Lake *lake, KnUpsert upsert, const char *part)
{
    KnWriteResult res;
    size_t before = lake_files_below(lake, "");
    lake_fails(lake, try_upsert(lake, &upsert, &res), KN_E_INVAL, part);
    assert_int_equal(lake_files_below(lake, ""), before);
}

static const char *rows(Lake *lake)
{
    return lake_text(lake, "SELECT string_agg(id || coalesce(name, '-'), ' ' ORDER BY id, name) "
                           "FROM {scan}");
}

static void open_mode(Lake *lake, int version, const char *mode, const char *schema)
{
    lake_open(lake,
              &(LakeTable){.schema = schema,
                           .version = version,
                           .props = {"write.merge.mode", mode, "commit.retry.min-wait-ms", "1"}});
}

/* ---- what happens to rows ---- */

static void rows_are_updated_inserted_or_left_alone(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        Lake lake;
        open_mode(&lake, 2 + i / 2, modes[i % 2], "id long, name string");
        KnWriteResult res = upsert_id(&lake, "SELECT i AS id, 'a' AS name FROM range(4) t(i)");
        assert_string_equal(head(&lake)->operation, "append");
        assert_int_equal(res.inserted_rows, 4);
        res = upsert_id(&lake, "SELECT * FROM (VALUES (1, 'a'), (2, 'b'), (3, NULL), (9, 'n')) "
                               "AS v(id, name)");
        assert_int_equal(res.updated_rows, 2);
        assert_int_equal(res.inserted_rows, 1);
        assert_int_equal(res.added_rows, 3);
        assert_int_equal(res.removed_rows, 2);
        assert_int_equal(res.delete_files, i % 2);
        assert_int_equal(res.removed_files, 1 - i % 2);
        assert_string_equal(head(&lake)->operation, "overwrite");
        assert_string_equal(rows(&lake), "0a 1a 2b 3- 9n");
        res = upsert_id(&lake, "SELECT 3 AS id, NULL AS name UNION ALL SELECT 2, 'b'");
        assert_int_equal(res.snapshot_id, -1);
        res = upsert_id(&lake, "SELECT 1 AS id, 'x' AS name WHERE false");
        assert_int_equal(res.snapshot_id, -1);
        res =
            upsert_id(&lake, "SELECT id, 'z' AS name FROM range(10) t(id) WHERE id < 4 OR id = 9");
        assert_int_equal(res.updated_rows, 5);
        assert_int_equal(res.delete_files, 0); /* every file goes whole */
        assert_string_equal(rows(&lake), "0z 1z 2z 3z 9z");
        lake_close(&lake);
    }
}

static void updates_or_inserts_may_be_left_out(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        Lake lake;
        open_mode(&lake, 2, modes[i], "id long, name string");
        lake_append(&lake, "SELECT 1 AS id, 'a' AS name");
        KnWriteResult res;
        KnUpsert upsert = {.select_sql = "SELECT 1 AS id, 'b' AS name UNION ALL SELECT 2, 'b'",
                           .n_keys = 1,
                           .keys = by_id,
                           .no_update = true};
        lake_ok(&lake, try_upsert(&lake, &upsert, &res));
        assert_int_equal(res.updated_rows, 0);
        assert_string_equal(rows(&lake), "1a 2b");
        assert_string_equal(head(&lake)->operation, "append");
        upsert.select_sql = "SELECT 1 AS id, 'c' AS name UNION ALL SELECT 3, 'c'";
        upsert.no_update = false;
        upsert.no_insert = true;
        lake_ok(&lake, try_upsert(&lake, &upsert, &res));
        assert_int_equal(res.inserted_rows, 0);
        assert_string_equal(rows(&lake), "1c 2b");
        upsert.no_update = true;
        refused(&lake, upsert, "neither updates nor inserts");
        lake_close(&lake);
    }
}

static void several_rows_of_a_key_become_one(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        Lake lake;
        open_mode(&lake, 2 + i, modes[i], "id long, name string, n long");
        for (int k = 0; k < 3; k++)
            lake_append(&lake, "SELECT 1 AS id, 'a' AS name, %d AS n UNION ALL SELECT %d, 'b', 0",
                        k, 10 + k);
        KnWriteResult res = upsert_id(&lake, "SELECT 1 AS id, 'a' AS name");
        assert_int_equal(res.updated_rows, 1);
        assert_int_equal(res.removed_rows, 3);
        assert_string_equal(rows(&lake), "1a 10b 11b 12b");
        lake_close(&lake);
    }
}

static void columns_not_given_keep_their_values(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        Lake lake;
        open_mode(
            &lake, 3, modes[i],
            "id long required, name string, n long required, st struct<a int, b list<string>>");
        lake_append(&lake, "SELECT i AS id, 'a' AS name, i * 10 AS n, {'a': i, 'b': ['x']} AS st "
                           "FROM range(3) t(i)");
        KnUpsert upsert = {.select_sql = "SELECT 1 AS id, 'b' AS name", .n_keys = 1, .keys = by_id};
        KnWriteResult res;
        lake_ok(&lake, try_upsert(&lake, &upsert, &res));
        assert_int_equal(res.updated_rows, 1);
        assert_string_equal(lake_text(&lake, "SELECT string_agg(id || name || n || st, ' ' ORDER "
                                             "BY id) FROM {scan}"),
                            "0a0{'a': 0, 'b': [x]} 1b10{'a': 1, 'b': [x]} 2a20{'a': 2, 'b': [x]}");
        upsert.select_sql = "SELECT 7 AS id, 'b' AS name";
        refused(&lake, upsert, "column n is required and the rows do not have it");
        lake_close(&lake);
    }
}

static void every_type_is_compared(void **state)
{
    (void)state;
    Lake lake;
    open_mode(&lake, 2, "merge-on-read", "id long, " LAKE_ALL_TYPES);
    lake_append(&lake, "SELECT i AS id, * FROM (" LAKE_ALL_VALUES ") AS v", 0, 20);
    char sql[4096];
    assert_true(
        snprintf(sql, sizeof(sql), "SELECT i AS id, * FROM (" LAKE_ALL_VALUES ") AS v", 0, 20) > 0);
    assert_int_equal(upsert_id(&lake, sql).snapshot_id, -1);
    assert_true(
        snprintf(sql, sizeof(sql),
                 "SELECT i AS id, * REPLACE (CASE WHEN i = 3 THEN [0.0::DOUBLE] ELSE li END AS li, "
                 "CASE WHEN i = 4 THEN MAP {'k': {'x': 5}} ELSE ma END AS ma, "
                 "CASE WHEN i = 0 THEN -f ELSE f END AS f) FROM (" LAKE_ALL_VALUES ") AS v",
                 0, 20) > 0);
    KnWriteResult res = upsert_id(&lake, sql);
    assert_int_equal(res.updated_rows, 3);
    lake_close(&lake);
}

/* ---- keys ---- */

static void keys_are_the_identifier_fields(void **state)
{
    (void)state;
    Lake lake;
    open_mode(&lake, 2, "copy-on-write", "id long required, name string, region string required");
    refused(&lake, (KnUpsert){.select_sql = "SELECT 1 AS id, 'r' AS region"},
            "has no identifier fields");
    static const int32_t identifiers[] = {1, 3};
    KnSchema schema = *kn_metadata_schema(lake.tbl->md);
    schema.identifier_ids = identifiers;
    schema.n_identifier_ids = 2;
    schema.schema_id = 1;
    KnUpdate updates[] = {{.kind = KN_UPDATE_ADD_SCHEMA, .schema = &schema},
                          {.kind = KN_UPDATE_SET_CURRENT_SCHEMA, .number = -1}};
    KnTableCommit commit = {.updates = updates, .n_updates = 2};
    lake_ok(&lake, kn_table_commit(lake.tbl, &commit, &lake.err));
    lake_append(&lake, "SELECT 1 AS id, 'a' AS name, 'r' AS region UNION ALL SELECT 1, 'b', 's'");
    KnWriteResult res;
    KnUpsert upsert = {.select_sql = "SELECT 1 AS id, 'c' AS name, 's' AS region"};
    lake_ok(&lake, try_upsert(&lake, &upsert, &res));
    assert_int_equal(res.updated_rows, 1);
    assert_string_equal(rows(&lake), "1a 1c");
    lake_close(&lake);
}

static void bad_keys_are_named(void **state)
{
    (void)state;
    Lake lake;
    open_mode(&lake, 2, "merge-on-read", "id long, r string, li list<int>, name string");
    static const char *const two[] = {"id", "R"};
    static const char *const none[] = {"idd"};
    static const char *const list[] = {"li"};
    static const char *const twice[] = {"id", "id"};
    refused(&lake, (KnUpsert){"SELECT 1 AS id, NULL AS r", 2, two, false, false}, "(id=1, r=NULL)");
    refused(&lake, (KnUpsert){"SELECT 7 AS id, 'x' AS r FROM range(2)", 2, two, false, false},
            "two rows have the same key (id=7, r=x)");
    refused(&lake, (KnUpsert){"SELECT 7 AS id", 2, two, false, false},
            "the rows do not have the key column r");
    refused(&lake, (KnUpsert){"SELECT 7 AS id", 1, none, false, false}, "has no column idd");
    refused(&lake, (KnUpsert){"SELECT [7] AS li", 1, list, false, false}, "li cannot be a key");
    refused(&lake, (KnUpsert){"SELECT 7 AS id", 2, twice, false, false}, "id is given twice");
    lake_close(&lake);
}

/* Upserts rows that have the key columns and another li; all n rows there must be met. */
static void meet_all(Lake *lake, const char *const *keys, size_t n_keys, int n)
{
    static int round;
    char names[64] = "";
    char sql[4096];
    round++;
    for (size_t i = 0; i < n_keys; i++)
        assert_true(snprintf(names + strlen(names), 16, "%s, ", keys[i]) > 0);
    assert_true(snprintf(sql, sizeof(sql),
                         "SELECT %s [-%d.0::DOUBLE] AS li FROM (" LAKE_ALL_VALUES ") AS v", names,
                         round, 0, n) > 0);
    KnUpsert upsert = {.select_sql = sql, .n_keys = n_keys, .keys = keys};
    KnWriteResult res;
    lake_ok(lake, try_upsert(lake, &upsert, &res));
    assert_int_equal(res.updated_rows, n);
    assert_int_equal(res.inserted_rows, 0);
    assert_true(
        snprintf(sql, sizeof(sql), "SELECT count(*) FROM {scan} WHERE li = [-%d.0]", round) > 0);
    assert_string_equal(lake_text(lake, sql), kn_arena_printf(lake->tbl->arena, "%d", n));
}

static void keys_of_every_type_match(void **state)
{
    (void)state;
    static const char *const names[] = {"i", "l", "f", "d", "de", "da", "ti", "ts", "tz", "s"};
    static const char *const three[] = {"bo", "u", "bi"};
    Lake lake;
    open_mode(&lake, 2, "copy-on-write", LAKE_ALL_TYPES);
    lake_append(&lake, LAKE_ALL_VALUES, 0, 300);
    for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
        meet_all(&lake, &names[k], 1, 300);
    lake_delete(&lake, "i > 1");
    meet_all(&lake, three, 3, 2);
    lake_close(&lake);
}

static void zeros_and_nan_are_keys(void **state)
{
    (void)state;
    Lake lake;
    open_mode(&lake, 2, "merge-on-read", "id double, name string");
    lake_append(&lake, "SELECT unnest([0.0::DOUBLE, -0.0::DOUBLE, 'nan'::DOUBLE]) AS id, 'a' AS "
                       "name");
    KnWriteResult res =
        upsert_id(&lake, "SELECT unnest(['nan'::DOUBLE, '-0.0'::DOUBLE]) AS id, 'b' AS name");
    assert_int_equal(res.updated_rows, 2);
    assert_string_equal(
        lake_text(&lake, "SELECT string_agg(id || name, ' ' ORDER BY id::VARCHAR) FROM {scan}"),
        "-0.0b 0.0a nanb");
    lake_close(&lake);
}

static void only_files_that_may_hold_a_key_are_read(void **state)
{
    (void)state;
    Lake lake;
    open_mode(&lake, 2, "copy-on-write", "id long, name string");
    for (int i = 0; i < 3; i++)
        lake_append(&lake, "SELECT i AS id FROM range(%d, %d) t(i)", i * 1000, i * 1000 + 500);
    KnPlan *plan = lake_plan(&lake);
    for (size_t i = 0; i < plan->n_tasks; i++) {
        const KnDataFile *file = &plan->tasks[i].data->file;
        int64_t least = 0;
        memcpy(&least, file->lower[0].bytes.ptr, sizeof(least));
        if (least != 1000)
            lake_ok(&lake, kn_io_remove(lake.io, kn_str(file->path), &lake.err));
    }
    kn_plan_free(plan);
    KnWriteResult res =
        upsert_id(&lake, "SELECT unnest([700, 1300, 1310, 2800]) AS id, 'b' AS name");
    assert_int_equal(res.updated_rows, 2);
    res = upsert_id(&lake, "SELECT i AS id, 'c' AS name FROM range(1000, 1450) t(i)");
    assert_int_equal(res.updated_rows, 450);
    lake_close(&lake);
}

/* ---- lineage ---- */

static const char *lineage(Lake *lake)
{
    static char text[1024];
    KnPlan *plan = lake_plan(lake);
    KnRead *read = NULL;
    KnReadOptions opts = {.schema = kn_metadata_schema(lake->tbl->md), .with_lineage = true};
    KnScanTasks tasks = {plan->tasks, plan->n_tasks};
    lake_ok(lake, kn_read_open(lake->tbl, lake->ses, tasks, &opts, &read, &lake->err));
    KN_BUF_AUTO sql;
    KN_BUF_AUTO out;
    kn_buf_init(&sql, 1 << 20);
    kn_buf_init(&out, 1 << 20);
    kn_buf_printf(&sql,
                  "SELECT string_agg(id || name || ':' || _row_id || ':' || "
                  "_last_updated_sequence_number, ' ' ORDER BY id) FROM (%s)",
                  kn_read_sql(read));
    lake_ok(lake, kn_session_query_text(lake->ses, sql.data, &out, &lake->err));
    assert_true(snprintf(text, sizeof(text), "%s", out.data) > 0);
    kn_read_close(read);
    kn_plan_free(plan);
    return text;
}

static void an_updated_row_keeps_its_id(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        Lake lake;
        open_mode(&lake, 3, modes[i], "id long, name string");
        lake_append(&lake, "SELECT i AS id, 'a' AS name FROM range(3) t(i)");
        upsert_id(&lake, "SELECT 1 AS id, 'b' AS name UNION ALL SELECT 5, 'n'");
        const char *got = lineage(&lake);
        /* New ids begin at 3; how many the rewritten rows took before 5 depends on the mode. */
        const char *want = i == 0 ? "0a:0:1 1b:1:2 2a:2:1 5n:6:2" : "0a:0:1 1b:1:2 2a:2:1 5n:4:2";
        assert_string_equal(got, want);
        upsert_id(&lake, "SELECT 1 AS id, 'c' AS name");
        got = lineage(&lake);
        assert_non_null(strstr(got, "0a:0:1 1c:1:3 2a:2:1 5n:"));
        lake_close(&lake);
    }
}

/* ---- races and failures ---- */

static const char *others_sql;

static void other_append(Lake *lake)
{
    KnTable *tbl = lake_load(lake);
    KnWriteResult res;
    KnSession *ses = NULL;
    lake_ok(lake, kn_session_open(lake->eng, &ses, &lake->err));
    lake_ok(lake, kn_write_append(tbl, ses, others_sql, NULL, &res, &lake->err));
    kn_session_close(ses);
    kn_table_free(tbl);
}

static void another_row_of_a_key_is_a_conflict(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        Lake lake;
        open_mode(&lake, 2, modes[i], "id long, name string");
        lake_append(&lake, "SELECT i AS id, 'a' AS name FROM range(3) t(i)");
        KnUpsert upsert = {.select_sql = "SELECT 1 AS id, 'b' AS name UNION ALL SELECT 50, 'n'",
                           .n_keys = 1,
                           .keys = by_id};
        KnWriteResult res;
        others_sql = "SELECT 50 AS id, 'o' AS name";
        lake.before_commit = other_append;
        size_t before = lake_files_below(&lake, "data");
        lake_fails(&lake, try_upsert(&lake, &upsert, &res), KN_E_CONFLICT,
                   "added rows that may have one of the keys");
        assert_int_equal(lake_files_below(&lake, "data"), before + 1);
        others_sql = "SELECT 60 AS id, 'o' AS name";
        lake.before_commit = other_append;
        lake_ok(&lake, try_upsert(&lake, &upsert, &res));
        assert_string_equal(rows(&lake), "0a 1b 2a 50n 60o");
        lake_close(&lake);
    }
}

static void a_failure_leaves_no_file(void **state)
{
    (void)state;
    static const char *const points[] = {"write-data-written", "write-manifest-written",
                                         "write-list-written", "write-before-commit"};
    Lake lake;
    open_mode(&lake, 3, "merge-on-read", "id long, name string");
    lake_append(&lake, "SELECT i AS id, 'a' AS name FROM range(3) t(i)");
    KnUpsert upsert = {.select_sql = "SELECT 1 AS id, 'b' AS name", .n_keys = 1, .keys = by_id};
    KnWriteResult res;
    size_t before = lake_files_below(&lake, "");
    for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
        char spec[64];
        assert_true(snprintf(spec, sizeof(spec), "%s:1:fail", points[i]) > 0);
        lake_ok(&lake, kn_fault_set(spec, NULL, &lake.err));
        lake_fails(&lake, try_upsert(&lake, &upsert, &res), KN_E_IO, points[i]);
        lake_ok(&lake, kn_fault_set(NULL, NULL, &lake.err));
        assert_int_equal(lake_files_below(&lake, ""), before);
    }
    assert_string_equal(rows(&lake), "0a 1a 2a");
    lake_close(&lake);
}

/* ---- a model ---- */

static void check_model(Lake *lake)
{
    static const char sums[] = "SELECT count(*) || ',' || coalesce(sum(id), 0) || ',' || "
                               "coalesce(bit_xor(hash(id, g, name)), 0) FROM ";
    KN_BUF_AUTO sql;
    KN_BUF_AUTO want;
    kn_buf_init(&sql, 4096);
    kn_buf_init(&want, 4096);
    kn_buf_printf(&sql, "%smodel", sums);
    lake_ok(lake, kn_session_query_text(lake->ses, sql.data, &want, &lake->err));
    kn_buf_reset(&sql);
    kn_buf_printf(&sql, "%s{scan}", sums);
    assert_string_equal(lake_text(lake, sql.data), want.data);
}

static void random_step(Lake *lake, KnRng *rng, int step)
{
    char src[400];
    uint64_t first = kn_rng_below(rng, 600);
    uint64_t n = 1 + kn_rng_below(rng, kn_rng_below(rng, 3) == 0 ? 500 : 40);
    assert_true(snprintf(src, sizeof(src),
                         "SELECT i AS id, (i * 7) %% 4 AS g, 'x' || ((i + %d * (i %% 3)) %% 5) AS "
                         "name FROM range(%d, %d, %d) t(i)",
                         step, (int)first, (int)(first + n), 1 + (int)kn_rng_below(rng, 4)) > 0);
    KnUpsert upsert = {.select_sql = src, .n_keys = 1, .keys = by_id};
    uint64_t what = kn_rng_below(rng, 6);
    upsert.no_insert = what == 0;
    upsert.no_update = what == 1;
    KnWriteOptions opts = {.mode = kn_rng_below(rng, 2) ? KN_ROW_MODE_COPY_ON_WRITE
                                                        : KN_ROW_MODE_MERGE_ON_READ};
    KnWriteResult res;
    lake_ok(lake, kn_write_upsert(lake->tbl, lake->ses, &upsert, &opts, &res, &lake->err));
    lake_exec(lake, "CREATE OR REPLACE TEMP TABLE src AS %s", src);
    if (what == 0)
        lake_exec(lake, "DELETE FROM src WHERE id NOT IN (SELECT id FROM model)");
    if (what == 1)
        lake_exec(lake, "DELETE FROM src WHERE id IN (SELECT id FROM model)");
    lake_exec(lake, "DELETE FROM model WHERE id IN (SELECT id FROM src)");
    lake_exec(lake, "INSERT INTO model SELECT * FROM src");
}

static void random_histories_equal_the_model(void **state)
{
    (void)state;
    static const char *const specs[] = {NULL, "g", "bucket(3, id)"};
    uint64_t seed = (uint64_t)kn_random_id();
    print_message("seed %llu\n", (unsigned long long)seed);
    KnRng rng = {seed};
    for (int round = 0; round < 2; round++) {
        Lake lake;
        lake_open(&lake, &(LakeTable){.schema = "id long, g long, name string",
                                      .spec = specs[kn_rng_below(&rng, 3)],
                                      .version = 2 + (int)kn_rng_below(&rng, 2)});
        lake_exec(&lake, "CREATE OR REPLACE TEMP TABLE model(id BIGINT, g BIGINT, name VARCHAR)");
        for (int step = 0; step < 6; step++) {
            random_step(&lake, &rng, step);
            check_model(&lake);
        }
        lake_close(&lake);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_updated_inserted_or_left_alone),
        cmocka_unit_test(updates_or_inserts_may_be_left_out),
        cmocka_unit_test(several_rows_of_a_key_become_one),
        cmocka_unit_test(columns_not_given_keep_their_values),
        cmocka_unit_test(every_type_is_compared),
        cmocka_unit_test(keys_are_the_identifier_fields),
        cmocka_unit_test(bad_keys_are_named),
        cmocka_unit_test(keys_of_every_type_match),
        cmocka_unit_test(zeros_and_nan_are_keys),
        cmocka_unit_test(only_files_that_may_hold_a_key_are_read),
        cmocka_unit_test(an_updated_row_keeps_its_id),
        cmocka_unit_test(another_row_of_a_key_is_a_conflict),
        cmocka_unit_test(a_failure_leaves_no_file),
        cmocka_unit_test(random_histories_equal_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

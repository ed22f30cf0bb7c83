/* SPDX-License-Identifier: Apache-2.0 */
/* test_write.c - append, delete, overwrite: rows, files, metrics, summaries, conflicts, cleanup. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/path.h"
#include "support/tempdir.h"
#include "unit/iceberg/lake.h"

static const LakeTable plain = {.schema = "id long required, name string"};

static const KnSnapshot *head(Lake *lake)
{
    return kn_metadata_snapshot(lake->tbl->md);
}

static const char *summary(Lake *lake, const char *key)
{
    const char *text = json_string_value(json_object_get(head(lake)->summary, key));
    return text ? text : "-";
}

static size_t count_manifests(Lake *lake, bool deletes)
{
    KnManifestFile *files = NULL;
    size_t n = 0;
    size_t found = 0;
    lake_ok(lake,
            kn_manifest_list_read(lake->io, lake->tbl->arena, head(lake), &files, &n, &lake->err));
    for (size_t i = 0; i < n; i++)
        found += files[i].deletes == deletes;
    return found;
}

static KnPlan *plan(Lake *lake)
{
    KnPlan *ret = NULL;
    KnPlanOptions opts = {.snapshot = head(lake), .filter = lake_expr(lake, "TRUE")};
    lake_ok(lake, kn_plan_scan(lake->tbl, &opts, &ret, &lake->err));
    return ret;
}

static KnCode append_code(Lake *lake, const char *sql)
{
    KnWriteResult res;
    return kn_write_append(lake->tbl, lake->ses, sql, NULL, &res, &lake->err);
}

static KnCode count_file(void *arg, const KnFileInfo *info, KnErr *err)
{
    (void)err;
    (void)info;
    ++*(size_t *)arg;
    return KN_OK;
}

static size_t files_below(Lake *lake, const char *folder)
{
    size_t n = 0;
    char path[512];
    assert_true(snprintf(path, sizeof(path), "%s/%s", lake->dir, folder) > 0);
    KnCode rc = kn_io_list(lake->io, kn_str(path), count_file, &n, &lake->err);
    assert_true(rc == KN_OK || rc == KN_E_NOTFOUND);
    return n;
}

/* ---- append ---- */

static void appended_rows_are_read_back(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &plain);
    KnWriteResult res =
        lake_append(&lake, "SELECT 1::BIGINT AS id, 'a' AS name UNION ALL SELECT 2, NULL");
    assert_int_equal(res.added_rows, 2);
    assert_int_equal(res.added_files, 1);
    assert_true(res.added_bytes > 0);
    assert_int_equal(res.snapshot_id, head(&lake)->snapshot_id);
    assert_string_equal(lake_rows(&lake), "{'id': 1, 'name': a} {'id': 2, 'name': NULL}");
    lake_append(&lake, "SELECT 'x' AS name, 3 AS id;  ");
    assert_string_equal(lake_text(&lake, "SELECT count(*) || ',' || sum(id) FROM {scan}"), "3,6");
    lake_close(&lake);
}

static void no_rows_make_no_snapshot(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &plain);
    KnWriteResult res = lake_append(&lake, "SELECT 1 AS id WHERE false");
    assert_int_equal(res.snapshot_id, -1);
    assert_null(head(&lake));
    assert_int_equal(files_below(&lake, "data"), 0);
    res = lake_delete(&lake, "id = 1");
    assert_int_equal(res.snapshot_id, -1);
    lake_append(&lake, "SELECT 1 AS id");
    res = lake_delete(&lake, "id = 2");
    assert_int_equal(res.snapshot_id, -1);
    assert_int_equal(lake.tbl->md->n_snapshots, 1);
    lake_close(&lake);
}

static void summaries_count_and_carry_totals(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &plain);
    KnWriteResult res;
    const char *extra[] = {"app-id", "test"};
    KnWriteOptions opts = {.summary = extra, .n_summary = 1};
    lake_ok(&lake, kn_write_append(lake.tbl, lake.ses, "SELECT i AS id FROM range(10) t(i)", &opts,
                                   &res, &lake.err));
    assert_string_equal(head(&lake)->operation, "append");
    assert_string_equal(summary(&lake, "added-records"), "10");
    assert_string_equal(summary(&lake, "total-records"), "10");
    assert_string_equal(summary(&lake, "total-delete-files"), "0");
    assert_string_equal(summary(&lake, "app-id"), "test");
    assert_string_equal(summary(&lake, "deleted-records"), "-");
    lake_append(&lake, "SELECT i AS id FROM range(10, 15) t(i)");
    assert_string_equal(summary(&lake, "total-records"), "15");
    assert_string_equal(summary(&lake, "total-data-files"), "2");
    lake_delete(&lake, "id < 3");
    assert_string_equal(head(&lake)->operation, "overwrite");
    assert_string_equal(summary(&lake, "deleted-records"), "10");
    assert_string_equal(summary(&lake, "added-records"), "7");
    assert_string_equal(summary(&lake, "total-records"), "12");
    lake_delete(&lake, "id >= 10");
    assert_string_equal(head(&lake)->operation, "delete");
    assert_string_equal(summary(&lake, "total-records"), "7");
    assert_string_equal(summary(&lake, "total-data-files"), "1");
    lake_close(&lake);
}

/* ---- columns ---- */

static void columns_that_do_not_fit_are_named(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &(LakeTable){.schema = "id int required, d date, x decimal(5,2), "
                                            "st struct<a int, b string required>, "
                                            "l list<int>, ts timestamp, b binary, n long"});
    lake_fails(&lake, append_code(&lake, "SELECT 1 AS id, 2 AS foo"), KN_E_INVAL, "no column foo");
    lake_fails(&lake, append_code(&lake, "SELECT 1 AS n"), KN_E_INVAL, "column id is required");
    lake_fails(&lake, append_code(&lake, "SELECT NULL AS id"), KN_E_INVAL,
               "column id: a required value is NULL");
    lake_fails(&lake, append_code(&lake, "SELECT * FROM (VALUES (1), (NULL)) t(id)"), KN_E_INVAL,
               "column id: a required value is NULL");
    lake_fails(&lake, append_code(&lake, "SELECT 3000000000 AS id"), KN_E_INVAL,
               "column id: a value does not fit int: 3000000000");
    lake_fails(&lake, append_code(&lake, "SELECT 1.5 AS id"), KN_E_INVAL, "does not fit int: 1.5");
    lake_fails(&lake, append_code(&lake, "SELECT '1.5' AS id"), KN_E_INVAL, "fit int: 1.5");
    lake_fails(&lake, append_code(&lake, "SELECT true AS id"), KN_E_INVAL,
               "column id: the table's type is int, the rows have a boolean");
    lake_fails(&lake, append_code(&lake, "SELECT 1 AS id, TIMESTAMP '2026-01-01 10:00:00' AS d"),
               KN_E_INVAL, "column d: a value does not fit date");
    lake_fails(&lake, append_code(&lake, "SELECT 1 AS id, '2026-01-01 10:00:00' AS d"), KN_E_INVAL,
               "column d");
    lake_fails(&lake, append_code(&lake, "SELECT 1 AS id, 1.255 AS x"), KN_E_INVAL, "column x");
    lake_fails(&lake, append_code(&lake, "SELECT 1 AS id, '1.255' AS x"), KN_E_INVAL, "column x");
    lake_fails(&lake, append_code(&lake, "SELECT 1 AS id, 1000 AS x"), KN_E_INVAL, "column x");
    lake_fails(&lake, append_code(&lake, "SELECT 1 AS id, {'a': 1} AS st"), KN_E_INVAL,
               "column st.b is required");
    lake_fails(&lake, append_code(&lake, "SELECT 1 AS id, {'a': 1, 'b': 'x', 'c': 2} AS st"),
               KN_E_INVAL, "column st has no field c");
    lake_fails(&lake, append_code(&lake, "SELECT 1 AS id, [1, 3000000000] AS l"), KN_E_INVAL,
               "column l.element: a value does not fit int");
    lake_fails(&lake, append_code(&lake, "SELECT 1 AS id, '2026-01-01 00:00:00+02' AS ts"),
               KN_E_INVAL, "column ts");
    lake_fails(&lake, append_code(&lake, "SELECT 1 AS id, 'abc' AS b"), KN_E_INVAL, "column b");
    lake_fails(&lake, append_code(&lake, "SELECT nonsense"), KN_E_INVAL, "nonsense");
    assert_int_equal(files_below(&lake, "data"), 0);
    lake_append(&lake, "SELECT '7' AS ID, '2026-01-01' AS d, '1.25' AS x, "
                       "{'B': 'x', 'a': 1::BIGINT} AS st, [1::BIGINT, NULL] AS l, "
                       "TIMESTAMP '2026-01-01 00:00:00' AS ts, '0xAB' AS b, 5.0 AS n");
    assert_string_equal(lake_rows(&lake), "{'id': 7, 'd': 2026-01-01, 'x': 1.25, "
                                          "'st': {'a': 1, 'b': x}, 'l': [1, NULL], "
                                          "'ts': '2026-01-01 00:00:00', 'b': \\xAB, 'n': 5}");
    lake_close(&lake);
}

static void types_without_a_right_form_are_refused(void **state)
{
    (void)state;
    static const char *const schemas[] = {"a fixed[4]", "a struct<b list<fixed[2]>>",
                                          "a timestamptz_ns", "a struct<b unknown>"};
    for (size_t i = 0; i < sizeof(schemas) / sizeof(schemas[0]); i++) {
        Lake lake;
        lake_open(&lake, &(LakeTable){.schema = schemas[i], .version = 3});
        lake_fails(&lake, append_code(&lake, "SELECT NULL AS a"), KN_E_UNSUPPORTED,
                   "cannot be written");
        lake_close(&lake);
    }
}

static void unknown_columns_are_left_out_of_files(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &(LakeTable){.schema = "a int, b unknown, ns timestamp_ns", .version = 3});
    lake_append(&lake, "SELECT 1 AS a, NULL AS b, TIMESTAMP_NS '2026-01-01 00:00:00.123456789' AS "
                       "ns");
    assert_string_equal(lake_rows(&lake),
                        "{'a': 1, 'b': NULL, 'ns': '2026-01-01 00:00:00.123456789'}");
    lake_delete(&lake, "a = 2");
    lake_close(&lake);
}

static void bare_nulls_fit_every_column(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &(LakeTable){.schema = "a int, b boolean, c date, d uuid, e binary, "
                                            "f struct<x date>, g list<string>, h map<string,int>"});
    lake_append(&lake, "SELECT NULL AS a, NULL AS b, NULL AS c, NULL AS d, NULL AS e, NULL AS f, "
                       "NULL AS g, NULL AS h");
    lake_append(&lake, "SELECT 1 AS a, {'x': NULL} AS f, [NULL] AS g");
    assert_string_equal(lake_text(&lake, "SELECT count(a) || count(b) || count(f) || count(f.x) || "
                                         "len(max(g)) FROM {scan}"),
                        "10101");
    lake_fails(&lake, append_code(&lake, "SELECT 1 AS b"), KN_E_INVAL,
               "column b: the table's type is boolean, the rows have a number");
    lake_close(&lake);
}

#define ALL_TYPES                                                                                  \
    "bo boolean, i int, l long, f float, d double, de decimal(9,2), da date, ti time, "            \
    "ts timestamp, tz timestamptz, s string, u uuid, bi binary, "                                  \
    "st struct<a int, b struct<c string>>, li list<double>, "                                      \
    "ma map<string, struct<x int>>, ls list<struct<p int, q list<string>>>"

#define ALL_VALUES                                                                                 \
    "SELECT i %% 2 = 0 AS bo, i AS i, i * 10000000000 AS l, (i / 2.0)::FLOAT AS f, "               \
    "(i / 3.0)::DOUBLE AS d, i + 0.25 AS de, DATE '2026-01-01' + i::INT AS da, "                   \
    "TIME '10:00:00' + to_seconds(i) AS ti, TIMESTAMP '2026-01-01 00:00:00' + to_hours(i) AS ts, " \
    "TIMESTAMPTZ '2026-01-01 00:00:00+00' + to_days(i::INT) AS tz, 'text ' || i AS s, "            \
    "'01234567-89ab-cdef-0123-456789abcdef'::UUID AS u, "                                          \
    "'\\xFF\\xFE'::BLOB AS bi, {'a': i::INT, 'b': {'c': 'c' || i}} AS st, "                        \
    "[i::DOUBLE, 'nan'::DOUBLE] AS li, MAP {'k': {'x': i::INT}} AS ma, "                           \
    "[{'p': i::INT, 'q': ['q']}] AS ls FROM range(%d, %d) t(i)"

static void every_type_and_nesting_survives(void **state)
{
    (void)state;
    for (int version = 2; version <= 3; version++) {
        Lake lake;
        lake_open(&lake, &(LakeTable){.schema = ALL_TYPES, .version = version});
        lake_append(&lake, ALL_VALUES, -2, 3);
        lake_append(&lake, "SELECT NULL AS i");
        char sql[4096];
        assert_true(snprintf(sql, sizeof(sql),
                             "SELECT count(*) FROM (SELECT * FROM {scan} WHERE i IS NOT NULL "
                             "EXCEPT ALL " ALL_VALUES ")",
                             -2, 3) > 0);
        assert_string_equal(lake_text(&lake, sql), "0");
        assert_string_equal(lake_text(&lake, "SELECT count(*) FROM {scan}"), "6");
        lake_close(&lake);
    }
}

/* ---- partitions ---- */

static void rows_go_to_their_partitions(void **state)
{
    (void)state;
    static const char *const specs[] = {"bo",
                                        "i",
                                        "f",
                                        "de",
                                        "da",
                                        "ts",
                                        "s",
                                        "u",
                                        "bi",
                                        "bucket(4, i)",
                                        "bucket(4, s)",
                                        "bucket(3, u)",
                                        "bucket(3, de)",
                                        "bucket(3, ts)",
                                        "bucket(3, bi)",
                                        "truncate(2, i)",
                                        "truncate(3, s)",
                                        "truncate(10, de)",
                                        "truncate(1, bi)",
                                        "year(ts)",
                                        "month(ts)",
                                        "day(ts)",
                                        "hour(ts)",
                                        "year(da)",
                                        "month(tz)",
                                        "day(tz)",
                                        "day(da), bucket(2, l)",
                                        "void(i), s",
                                        "st.a"};
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        Lake lake;
        lake_open(&lake, &(LakeTable){.schema = ALL_TYPES, .spec = specs[i]});
        lake_append(&lake, ALL_VALUES, -3, 30);
        lake_append(&lake, "SELECT NULL AS i");
        assert_string_equal(lake_text(&lake, "SELECT count(*) || ',' || sum(i) FROM {scan}"),
                            "34,429");
        KnPlan *p = plan(&lake);
        const KnPartitionSpec *spec = kn_metadata_spec(lake.tbl->md);
        for (size_t t = 0; t < p->n_tasks; t++) {
            KN_BUF_AUTO path;
            kn_buf_init(&path, 4096);
            const KnType *type = NULL;
            lake_ok(&lake, kn_partition_type(p->arena, spec, kn_metadata_schema(lake.tbl->md),
                                             &type, &lake.err));
            const KnDataFile *file = &p->tasks[t].data->file;
            lake_ok(&lake, kn_partition_path(&path, spec, type, file->partition, &lake.err));
            if (!strstr(file->path, path.data))
                fail_msg("%s: %s is not in folder %s", specs[i], file->path, path.data);
        }
        kn_plan_free(p);
        assert_string_equal(
            lake_text(&lake, "SELECT count(*) FROM {scan} WHERE i = 7 AND s = 'text 7'"), "1");
        lake_close(&lake);
    }
}

static void zeros_and_nan_are_partitions_of_their_own(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &(LakeTable){.schema = "d double, i int", .spec = "d"});
    KnWriteResult res = lake_append(
        &lake, "SELECT * FROM (VALUES ('-0.0'::DOUBLE, 1), (0.0, 2), ('nan'::DOUBLE, 3), "
               "(NULL, 4), ('-nan'::DOUBLE, 5), ('-inf'::DOUBLE, 6)) t(d, i)");
    assert_int_equal(res.added_files, 5);
    assert_string_equal(
        lake_text(&lake, "SELECT string_agg(i || ':' || coalesce(d::VARCHAR, '-'), ' ' ORDER BY i) "
                         "FROM {scan}"),
        "1:-0.0 2:0.0 3:nan 4:- 5:-nan 6:-inf");
    lake_close(&lake);
}

static void a_sort_order_sorts_files(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake,
              &(LakeTable){.schema = "id long, g int", .spec = "g", .order = "id desc nulls last"});
    lake_append(&lake, "SELECT (i * 7919) %% 1000 AS id, i %% 2 AS g FROM range(1000) t(i)");
    assert_string_equal(lake_text(&lake, "SELECT count(*) FROM (SELECT id - lag(id) OVER () AS x "
                                         "FROM (SELECT * FROM {scan} WHERE g = 1)) WHERE x >= 0"),
                        "0");
    KnPlan *p = plan(&lake);
    assert_int_equal(p->tasks[0].data->file.sort_order_id, lake.tbl->md->default_sort_order_id);
    kn_plan_free(p);
    lake_close(&lake);
}

static void files_roll_at_the_target_size(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &(LakeTable){.schema = "id long, s string",
                                  .props = {"write.target-file-size-bytes", "1000000",
                                            "write.parquet.compression-codec", "uncompressed"}});
    KnWriteResult res =
        lake_append(&lake, "SELECT i AS id, md5(i::VARCHAR) AS s FROM range(400000) t(i)");
    assert_true(res.added_files > 1);
    assert_int_equal(res.added_rows, 400000);
    assert_int_equal(files_below(&lake, "data"), res.added_files);
    assert_string_equal(lake_text(&lake, "SELECT count(*) || ',' || sum(id) FROM {scan}"),
                        "400000,79999800000");
    lake_close(&lake);
}

/* ---- metrics ---- */

static int64_t count_of(const KnIdCount *list, size_t n, int32_t id)
{
    for (size_t i = 0; i < n; i++) {
        if (list[i].id == id)
            return list[i].count;
    }
    return -1;
}

static KnStr bound_of(const KnIdBound *list, size_t n, int32_t id)
{
    for (size_t i = 0; i < n; i++) {
        if (list[i].id == id)
            return list[i].bytes;
    }
    return (KnStr){NULL, 0};
}

static int32_t id_of(Lake *lake, const char *name)
{
    return kn_schema_find_name(kn_metadata_schema(lake->tbl->md), kn_str(name))->id;
}

static void assert_bound(KnStr bytes, const char *want, size_t len)
{
    assert_non_null(bytes.ptr);
    assert_int_equal(bytes.len, len);
    assert_memory_equal(bytes.ptr, want, len);
}

static void metrics_count_and_bound(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &(LakeTable){.schema = "i int, d double, s string, b binary, n long, "
                                            "st struct<f float>, l list<int>, bo boolean"});
    lake_append(&lake,
                "SELECT * FROM (VALUES (1, 0.0::DOUBLE, 'abcdefghijklmnopqrstuvwxyz', "
                "'\\xFF\\xFF\\xFF\\xFF\\xFF\\xFF\\xFF\\xFF\\xFF\\xFF\\xFF\\xFF\\xFF\\xFF\\xFF\\xFF"
                "\\x01'::BLOB, NULL, {'f': 'nan'::FLOAT}, [1, 2], true), (-5, 'nan'::DOUBLE, "
                "'\xf4\x8f\xbf\xbf', '\\x00'::BLOB, NULL, {'f': 1.5}, [], false), (NULL, 'nan', "
                "NULL, NULL, NULL, NULL, NULL, NULL)) t(i, d, s, b, n, st, l, bo)");
    KnPlan *p = plan(&lake);
    assert_int_equal(p->n_tasks, 1);
    const KnDataFile *f = &p->tasks[0].data->file;
    assert_int_equal(f->record_count, 3);
    int32_t i = id_of(&lake, "i");
    int32_t d = id_of(&lake, "d");
    int32_t s = id_of(&lake, "s");
    int32_t sf = id_of(&lake, "st.f");
    assert_int_equal(count_of(f->value_counts, f->n_value_counts, i), 3);
    assert_int_equal(count_of(f->null_counts, f->n_null_counts, i), 1);
    assert_int_equal(count_of(f->null_counts, f->n_null_counts, id_of(&lake, "n")), 3);
    assert_int_equal(count_of(f->nan_counts, f->n_nan_counts, d), 2);
    assert_int_equal(count_of(f->nan_counts, f->n_nan_counts, sf), 1);
    assert_int_equal(count_of(f->nan_counts, f->n_nan_counts, i), -1);
    assert_bound(bound_of(f->lower, f->n_lower, i), "\xfb\xff\xff\xff", 4);
    assert_bound(bound_of(f->upper, f->n_upper, i), "\x01\0\0\0", 4);
    assert_bound(bound_of(f->lower, f->n_lower, d), "\0\0\0\0\0\0\0\x80", 8);
    assert_bound(bound_of(f->upper, f->n_upper, d), "\0\0\0\0\0\0\0\0", 8);
    assert_bound(bound_of(f->lower, f->n_lower, s), "abcdefghijklmnop", 16);
    assert_bound(bound_of(f->upper, f->n_upper, s), "\xf4\x8f\xbf\xbf", 4);
    assert_bound(bound_of(f->lower, f->n_lower, id_of(&lake, "b")), "\0", 1);
    assert_null(bound_of(f->upper, f->n_upper, id_of(&lake, "b")).ptr);
    assert_bound(bound_of(f->lower, f->n_lower, id_of(&lake, "bo")), "\0", 1);
    assert_bound(bound_of(f->upper, f->n_upper, id_of(&lake, "bo")), "\x01", 1);
    assert_null(bound_of(f->lower, f->n_lower, id_of(&lake, "n")).ptr);
    assert_null(bound_of(f->lower, f->n_lower, id_of(&lake, "l.element")).ptr);
    assert_true(count_of(f->column_sizes, f->n_column_sizes, id_of(&lake, "l.element")) > 0);
    kn_plan_free(p);
    lake_close(&lake);
}

static void metrics_modes_are_kept(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &(LakeTable){.schema = "a string, b string, c string, d string, e string",
                                  .props = {"write.metadata.metrics.default", "counts",
                                            "write.metadata.metrics.column.a", "none",
                                            "write.metadata.metrics.column.c", "truncate(2)",
                                            "write.metadata.metrics.column.d", "full"}});
    lake_append(&lake, "SELECT 'abcdefghijklmnopqrstuvwxyz' AS a, a AS b, a AS c, a AS d, "
                       "'zz\xed\x9f\xbf' AS e");
    KnPlan *p = plan(&lake);
    const KnDataFile *f = &p->tasks[0].data->file;
    assert_int_equal(count_of(f->value_counts, f->n_value_counts, 1), -1);
    assert_int_equal(count_of(f->value_counts, f->n_value_counts, 2), 1);
    assert_null(bound_of(f->lower, f->n_lower, 2).ptr);
    assert_bound(bound_of(f->lower, f->n_lower, 3), "ab", 2);
    assert_bound(bound_of(f->upper, f->n_upper, 3), "ac", 2);
    assert_bound(bound_of(f->upper, f->n_upper, 4), "abcdefghijklmnopqrstuvwxyz", 26);
    kn_plan_free(p);
    lake_close(&lake);
}

/* ---- delete and overwrite ---- */

static void deletes_rewrite_only_what_they_must(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &(LakeTable){.schema = "id long, g string", .spec = "g"});
    lake_append(&lake, "SELECT i AS id, 'g' || (i %% 4) AS g FROM range(100) t(i)");
    KnWriteResult res = lake_delete(&lake, "g = 'g1'");
    assert_int_equal(res.removed_files, 1);
    assert_int_equal(res.removed_rows, 25);
    assert_int_equal(res.added_files, 0);
    assert_string_equal(head(&lake)->operation, "delete");
    res = lake_delete(&lake, "id = 2 OR g IS NULL");
    assert_int_equal(res.removed_files, 1);
    assert_int_equal(res.removed_rows, 1);
    assert_int_equal(res.added_files, 1);
    assert_int_equal(res.added_rows, 0);
    assert_string_equal(head(&lake)->operation, "overwrite");
    assert_string_equal(lake_text(&lake, "SELECT count(*) || ',' || sum(id) FROM {scan}"),
                        "74,3723");
    res = lake_delete(&lake, "id >= 0");
    assert_int_equal(res.removed_rows, 74);
    assert_string_equal(lake_rows(&lake), "NULL");
    lake_close(&lake);
}

static void null_never_matches_a_delete(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &plain);
    lake_append(&lake, "SELECT * FROM (VALUES (1, 'a'), (2, NULL), (3, 'b')) t(id, name)");
    lake_delete(&lake, "name <> 'a'");
    assert_string_equal(lake_rows(&lake), "{'id': 1, 'name': a} {'id': 2, 'name': NULL}");
    lake_delete(&lake, "NOT name = 'x'");
    assert_string_equal(lake_rows(&lake), "{'id': 2, 'name': NULL}");
    lake_delete(&lake, "name IS NULL");
    assert_string_equal(lake_rows(&lake), "NULL");
    lake_close(&lake);
}

static void an_overwrite_is_one_snapshot(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &plain);
    lake_append(&lake, "SELECT i AS id, 'old' AS name FROM range(5) t(i)");
    KnWriteResult res = lake_overwrite(&lake, "id < 2", "SELECT 1 AS id, 'new' AS name");
    assert_int_equal(res.removed_rows, 2);
    assert_int_equal(res.added_rows, 1);
    assert_string_equal(head(&lake)->operation, "overwrite");
    assert_int_equal(lake.tbl->md->n_snapshots, 2);
    assert_string_equal(
        lake_text(&lake, "SELECT string_agg(id || name, ' ' ORDER BY id) FROM {scan}"),
        "1new 2old 3old 4old");
    lake_overwrite(&lake, "TRUE", "SELECT 9 AS id");
    assert_string_equal(lake_rows(&lake), "{'id': 9, 'name': NULL}");
    lake_close(&lake);
}

static void v3_rows_keep_their_ids(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &(LakeTable){.schema = "id long", .version = 3});
    lake_append(&lake, "SELECT i AS id FROM range(4) t(i)");
    lake_append(&lake, "SELECT i AS id FROM range(4, 6) t(i)");
    assert_int_equal(head(&lake)->first_row_id, 4);
    assert_int_equal(head(&lake)->added_rows, 2);
    assert_int_equal(lake.tbl->md->next_row_id, 6);
    lake_delete(&lake, "id = 1");
    lake_append(&lake, "SELECT 6 AS id");
    KnPlan *p = plan(&lake);
    KnRead *read = NULL;
    KnReadOptions opts = {.schema = kn_metadata_schema(lake.tbl->md), .with_lineage = true};
    KnScanTasks tasks = {p->tasks, p->n_tasks};
    lake_ok(&lake, kn_read_open(lake.tbl, lake.ses, tasks, &opts, &read, &lake.err));
    KN_BUF_AUTO sql;
    KN_BUF_AUTO out;
    kn_buf_init(&sql, 1 << 20);
    kn_buf_init(&out, 1 << 20);
    kn_buf_printf(&sql,
                  "SELECT string_agg(id || ':' || _last_updated_sequence_number || ':' || "
                  "(_row_id - id), ' ' ORDER BY id) FROM (%s) WHERE id < 6",
                  kn_read_sql(read));
    lake_ok(&lake, kn_session_query_text(lake.ses, sql.data, &out, &lake.err));
    assert_string_equal(out.data, "0:1:0 2:1:0 3:1:0 4:2:0 5:2:0");
    kn_buf_reset(&sql);
    kn_buf_printf(&sql, "SELECT count(DISTINCT _row_id) || ',' || count(*) FROM (%s)",
                  kn_read_sql(read));
    lake_ok(&lake, kn_session_query_text(lake.ses, sql.data, &out, &lake.err));
    assert_string_equal(out.data, "6,6");
    kn_read_close(read);
    kn_plan_free(p);
    lake_close(&lake);
}

/* ---- manifests ---- */

static void manifests_are_kept_and_merged(void **state)
{
    (void)state;
    for (int version = 2; version <= 3; version++) {
        Lake lake;
        lake_open(&lake, &(LakeTable){.schema = "id long",
                                      .version = version,
                                      .props = {"commit.manifest.min-count-to-merge", "4"}});
        for (int i = 0; i < 4; i++)
            lake_append(&lake, "SELECT %d AS id", i);
        assert_int_equal(count_manifests(&lake, false), 4);
        lake_append(&lake, "SELECT 4 AS id");
        assert_int_equal(count_manifests(&lake, false), 2);
        lake_delete(&lake, "id = 2");
        assert_string_equal(lake_text(&lake, "SELECT string_agg(id, ' ' ORDER BY id) FROM {scan}"),
                            "0 1 3 4");
        for (int i = 5; i < 12; i++)
            lake_append(&lake, "SELECT %d AS id", i);
        assert_true(count_manifests(&lake, false) <= 4);
        assert_string_equal(lake_text(&lake, "SELECT sum(id) || ',' || count(*) FROM {scan}"),
                            "64,11");
        lake_close(&lake);
    }
}

/* ---- races and failures ---- */

static void other_append(Lake *lake)
{
    KnTable *tbl = lake_load(lake);
    KnWriteResult res;
    KnSession *ses = NULL;
    lake_ok(lake, kn_session_open(lake->eng, &ses, &lake->err));
    lake_ok(lake,
            kn_write_append(tbl, ses, "SELECT 100 AS id, 'other' AS name", NULL, &res, &lake->err));
    kn_session_close(ses);
    kn_table_free(tbl);
}

static void other_delete(Lake *lake)
{
    KnTable *tbl = lake_load(lake);
    KnWriteResult res;
    KnSession *ses = NULL;
    lake_ok(lake, kn_session_open(lake->eng, &ses, &lake->err));
    lake_ok(lake, kn_write_delete(tbl, ses, lake_expr(lake, "id = 1"), NULL, &res, &lake->err));
    kn_session_close(ses);
    kn_table_free(tbl);
}

static const LakeTable hasty = {.schema = "id long required, name string",
                                .props = {"commit.retry.min-wait-ms", "1"}};

static void a_lost_race_is_rebased(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &hasty);
    lake_append(&lake, "SELECT i AS id FROM range(3) t(i)");
    lake.before_commit = other_append;
    lake_append(&lake, "SELECT 3 AS id");
    assert_string_equal(lake_text(&lake, "SELECT count(*) FROM {scan}"), "5");
    assert_int_equal(lake.tbl->md->n_snapshots, 3);
    lake.before_commit = other_append;
    lake_delete(&lake, "id = 2");
    assert_string_equal(lake_text(&lake, "SELECT string_agg(id, ' ' ORDER BY id) FROM {scan}"),
                        "0 1 3 100 100");
    assert_int_equal(files_below(&lake, "data"), 5);
    lake_close(&lake);
}

static void a_conflict_stops_a_delete(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &hasty);
    lake_append(&lake, "SELECT i AS id FROM range(3) t(i)");
    KnWriteResult res;
    size_t before = files_below(&lake, "data");
    lake.before_commit = other_append;
    lake_fails(
        &lake,
        kn_write_delete(lake.tbl, lake.ses, lake_expr(&lake, "id >= 2"), NULL, &res, &lake.err),
        KN_E_CONFLICT, "added rows that the filter may match");
    assert_int_equal(files_below(&lake, "data"), before + 1);
    lake.before_commit = other_delete;
    lake_fails(
        &lake,
        kn_write_delete(lake.tbl, lake.ses, lake_expr(&lake, "id = 2"), NULL, &res, &lake.err),
        KN_E_CONFLICT, "run the operation again");
    lake_ok(&lake, kn_table_refresh(lake.tbl, &lake.err));
    assert_string_equal(lake_text(&lake, "SELECT string_agg(id, ' ' ORDER BY id) FROM {scan}"),
                        "0 2 100");
    lake_close(&lake);
}

static void an_unknown_outcome_removes_nothing(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &plain);
    lake.fail_commit = KN_E_UNKNOWN;
    lake_fails(&lake, append_code(&lake, "SELECT 1 AS id"), KN_E_UNKNOWN, "answer was lost");
    lake_ok(&lake, kn_table_refresh(lake.tbl, &lake.err));
    assert_string_equal(lake_text(&lake, "SELECT count(*) FROM {scan}"), "1");
    lake_close(&lake);
}

static void a_failure_leaves_no_file(void **state)
{
    (void)state;
    static const char *const points[] = {"write-data-written", "write-manifest-written",
                                         "write-list-written", "write-before-commit"};
    Lake lake;
    lake_open(&lake, &plain);
    lake_append(&lake, "SELECT 1 AS id");
    size_t before = files_below(&lake, "");
    for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
        char spec[64];
        assert_true(snprintf(spec, sizeof(spec), "%s:1:fail", points[i]) > 0);
        lake_ok(&lake, kn_fault_set(spec, NULL, &lake.err));
        KnWriteResult res;
        lake_fails(&lake, append_code(&lake, "SELECT 2 AS id"), KN_E_IO, points[i]);
        lake_ok(&lake, kn_fault_set(spec, NULL, &lake.err));
        KnOverwrite change = {lake_expr(&lake, "id = 1"), "SELECT 3 AS id"};
        lake_fails(&lake, kn_write_overwrite(lake.tbl, lake.ses, &change, NULL, &res, &lake.err),
                   KN_E_IO, points[i]);
        lake_ok(&lake, kn_fault_set(NULL, NULL, &lake.err));
        assert_int_equal(files_below(&lake, ""), before);
    }
    lake_fails(&lake,
               append_code(&lake, "SELECT i AS id, CASE WHEN i = 199999 THEN error('late') ELSE "
                                  "'x' END AS name FROM range(200000) t(i)"),
               KN_E_INVAL, "late");
    assert_int_equal(files_below(&lake, ""), before);
    assert_string_equal(lake_text(&lake, "SELECT count(*) FROM {scan}"), "1");
    lake_close(&lake);
}

static void branches_are_written_apart(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &plain);
    lake_append(&lake, "SELECT 1 AS id");
    int64_t main_id = head(&lake)->snapshot_id;
    KnWriteOptions opts = {.branch = "dev"};
    KnWriteResult res;
    for (int i = 0; i < 2; i++)
        lake_ok(&lake,
                kn_write_append(lake.tbl, lake.ses, "SELECT 2 AS id", &opts, &res, &lake.err));
    assert_int_equal(head(&lake)->snapshot_id, main_id);
    const KnRef *ref = kn_metadata_find_ref(lake.tbl->md, KN_STR_LIT("dev"));
    assert_int_equal(ref->snapshot_id, res.snapshot_id);
    const KnSnapshot *snap = kn_metadata_find_snapshot(lake.tbl->md, ref->snapshot_id);
    assert_string_equal(lake_text_at(&lake, snap, "SELECT count(*) FROM {scan}"), "3");
    lake_close(&lake);
}

static bool always(void)
{
    return true;
}

static void cancelling_stops_before_the_commit(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &plain);
    KnWriteOptions opts = {.cancelled = always};
    KnWriteResult res;
    lake_fails(&lake, kn_write_append(lake.tbl, lake.ses, "SELECT 2 AS id", &opts, &res, &lake.err),
               KN_E_CANCELLED, "cancelled");
    assert_null(head(&lake));
    assert_int_equal(files_below(&lake, "data"), 0);
    lake_close(&lake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appended_rows_are_read_back),
        cmocka_unit_test(no_rows_make_no_snapshot),
        cmocka_unit_test(summaries_count_and_carry_totals),
        cmocka_unit_test(columns_that_do_not_fit_are_named),
        cmocka_unit_test(types_without_a_right_form_are_refused),
        cmocka_unit_test(unknown_columns_are_left_out_of_files),
        cmocka_unit_test(bare_nulls_fit_every_column),
        cmocka_unit_test(every_type_and_nesting_survives),
        cmocka_unit_test(rows_go_to_their_partitions),
        cmocka_unit_test(zeros_and_nan_are_partitions_of_their_own),
        cmocka_unit_test(a_sort_order_sorts_files),
        cmocka_unit_test(files_roll_at_the_target_size),
        cmocka_unit_test(metrics_count_and_bound),
        cmocka_unit_test(metrics_modes_are_kept),
        cmocka_unit_test(deletes_rewrite_only_what_they_must),
        cmocka_unit_test(null_never_matches_a_delete),
        cmocka_unit_test(an_overwrite_is_one_snapshot),
        cmocka_unit_test(v3_rows_keep_their_ids),
        cmocka_unit_test(manifests_are_kept_and_merged),
        cmocka_unit_test(a_lost_race_is_rebased),
        cmocka_unit_test(a_conflict_stops_a_delete),
        cmocka_unit_test(an_unknown_outcome_removes_nothing),
        cmocka_unit_test(a_failure_leaves_no_file),
        cmocka_unit_test(branches_are_written_apart),
        cmocka_unit_test(cancelling_stops_before_the_commit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

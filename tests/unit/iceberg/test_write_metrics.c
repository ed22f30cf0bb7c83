/* SPDX-License-Identifier: Apache-2.0 */
/* test_write_metrics.c - counts and bounds of the files written. */
#include "unit/iceberg/lake.h"

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
    KnPlan *p = lake_plan(&lake);
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
    KnPlan *p = lake_plan(&lake);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metrics_count_and_bound),
        cmocka_unit_test(metrics_modes_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

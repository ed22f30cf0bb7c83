/* SPDX-License-Identifier: Apache-2.0 */
/* test_builder.c - rows made value by value, as batches and as a relation. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/builder.h"
#include "unit/engine/support.h"

enum { MAX_COLUMNS = 20 };

static KnBuilder *builder_open(Bench *b, const char *const *types)
{
    size_t n = 0;
    while (types[n])
        n++;
    KnBuilder *made = NULL;
    assert_ok(b, kn_builder_open(b->eng, types, n, &made, &b->err));
    return made;
}

static void put_int(Bench *b, KnColWriter *w, __int128 value)
{
    assert_ok(b, kn_col_put_int(w, value, &b->err));
}

static void put_text(Bench *b, KnColWriter *w, const char *text)
{
    assert_ok(b, kn_col_put_str(w, kn_str(text), &b->err));
}

static void put_null(Bench *b, KnColWriter *w)
{
    assert_ok(b, kn_col_put_null(w, &b->err));
}

/* The rows so far through a feed into a table r. */
typedef struct Once {
    KnBatch *batch;
} Once;

static KnCode once_next(void *arg, KnBatch **ret, KnErr *err)
{
    (void)err;
    Once *once = arg;
    *ret = once->batch;
    once->batch = NULL;
    return KN_OK;
}

static void store(Bench *b, KnBuilder *builder, const char *const *types)
{
    static const char *const names[MAX_COLUMNS] = {"a", "b", "c", "d", "e", "f", "g",
                                                   "h", "i", "j", "k", "l", "m", "n",
                                                   "o", "p", "q", "r", "s", "t"};
    size_t n = 0;
    while (types[n])
        n++;
    Once once = {kn_builder_take(builder)};
    const KnFeedOptions opts = {.name = "built",
                                .column_names = names,
                                .column_types = types,
                                .n_columns = n,
                                .next = once_next,
                                .arg = &once};
    KnFeed *feed = NULL;
    assert_ok(b, kn_feed_open(b->eng, &opts, &feed, &b->err));
    bench_exec(b, "CREATE TABLE r AS SELECT * FROM kn_feed('built')");
    kn_feed_close(feed);
}

static void every_single_kind_keeps_its_extremes(void **state)
{
    Bench *b = *state;
    static const struct {
        const char *type;
        __int128 min, max;
        const char *want; /* of the engine */
    } kinds[] = {
        {"BOOLEAN", 0, 1, "false true"},
        {"TINYINT", INT8_MIN, INT8_MAX, "-128 127"},
        {"SMALLINT", INT16_MIN, INT16_MAX, "-32768 32767"},
        {"INTEGER", INT32_MIN, INT32_MAX, "-2147483648 2147483647"},
        {"BIGINT", INT64_MIN, INT64_MAX, "-9223372036854775808 9223372036854775807"},
        {"UTINYINT", 0, UINT8_MAX, "0 255"},
        {"USMALLINT", 0, UINT16_MAX, "0 65535"},
        {"UINTEGER", 0, UINT32_MAX, "0 4294967295"},
        {"UBIGINT", 0, UINT64_MAX, "0 18446744073709551615"},
        {"DECIMAL(4,1)", -9999, 9999, "-999.9 999.9"},
        {"DECIMAL(9,2)", -999999999, 999999999, "-9999999.99 9999999.99"},
        {"DECIMAL(18,0)", -999999999999999999, 999999999999999999,
         "-999999999999999999 999999999999999999"},
        {"DATE", -719162, 2932896, "0001-01-01 9999-12-31"},
        {"TIME", 0, 86399999999, "00:00:00 23:59:59.999999"},
        {"TIMESTAMP", -62135596800000000, 253402300799999999,
         "0001-01-01 00:00:00 9999-12-31 23:59:59.999999"},
        {"TIMESTAMP WITH TIME ZONE", 0, 1, "1970-01-01 00:00:00+00 1970-01-01 00:00:00.000001+00"},
        {"TIMESTAMP_NS", -1, 1, "1969-12-31 23:59:59.999999999 1970-01-01 00:00:00.000000001"},
    };
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        const char *const types[] = {kinds[i].type, kinds[i].type, NULL};
        KnBuilder *builder = builder_open(b, types);
        put_int(b, kn_builder_column(builder, 0), kinds[i].min);
        put_int(b, kn_builder_column(builder, 1), kinds[i].max);
        kn_builder_end_row(builder);
        store(b, builder, types);
        assert_string_equal(bench_text(b, "SELECT a || ' ' || b FROM r"), kinds[i].want);
        bench_exec(b, "DROP TABLE r");
        kn_builder_close(builder);
    }
}

static void numbers_of_128_bits_keep_every_digit(void **state)
{
    Bench *b = *state;
    static const char *const types[] = {"DECIMAL(38,10)", "DECIMAL(38,10)", "HUGEINT", "HUGEINT",
                                        NULL};
    __int128 digits = 1;
    for (int i = 0; i < 38; i++)
        digits *= 10;
    __int128 max = (__int128)(~(unsigned __int128)0 >> 1);
    KnBuilder *builder = builder_open(b, types);
    put_int(b, kn_builder_column(builder, 0), 1 - digits);
    put_int(b, kn_builder_column(builder, 1), digits - 1);
    put_int(b, kn_builder_column(builder, 2), -max - 1);
    put_int(b, kn_builder_column(builder, 3), max);
    kn_builder_end_row(builder);
    store(b, builder, types);
    assert_string_equal(bench_text(b, "SELECT concat_ws(' ', a, b, c, d) FROM r"),
                        "-9999999999999999999999999999.9999999999 "
                        "9999999999999999999999999999.9999999999 "
                        "-170141183460469231731687303715884105728 "
                        "170141183460469231731687303715884105727");
    KnErr err = {0};
    assert_int_equal(kn_col_put_int(kn_builder_column(builder, 0), digits, &err), KN_E_CORRUPT);
    kn_builder_close(builder);
}

static void floats_texts_bytes_and_uuids_are_what_was_put(void **state)
{
    Bench *b = *state;
    static const char *const types[] = {"FLOAT",   "DOUBLE", "DOUBLE", "VARCHAR", "VARCHAR",
                                        "VARCHAR", "BLOB",   "UUID",   NULL};
    static const uint8_t uuid[16] = {0x80, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0xff};
    KnBuilder *builder = builder_open(b, types);
    assert_ok(b, kn_col_put_float(kn_builder_column(builder, 0), -0.0F, &b->err));
    assert_ok(b, kn_col_put_double(kn_builder_column(builder, 1), (double)NAN, &b->err));
    assert_ok(b, kn_col_put_double(kn_builder_column(builder, 2), DBL_MIN, &b->err));
    put_text(b, kn_builder_column(builder, 3), "");
    put_text(b, kn_builder_column(builder, 4), "twelve bytes");
    put_text(b, kn_builder_column(builder, 5), "thirteen b\xc3\xa4 and more");
    assert_ok(b, kn_col_put_str(kn_builder_column(builder, 6), (KnStr){"\0\xff", 2}, &b->err));
    assert_ok(b, kn_col_put_uuid(kn_builder_column(builder, 7), uuid, &b->err));
    kn_builder_end_row(builder);
    store(b, builder, types);
    assert_string_equal(
        bench_text(b, "SELECT concat_ws('|', a, b, c, d, e, f, hex(g), h) FROM r"),
        "-0.0|nan|2.2250738585072014e-308||twelve bytes|thirteen b\xc3\xa4 and more|00FF|"
        "80010203-0405-0607-0809-0a0b0c0d0eff");
    kn_builder_close(builder);
}

static const char *const nested_types[] = {"INTEGER", "STRUCT(a INTEGER, b STRUCT(c VARCHAR))",
                                           "INTEGER[][]", "MAP(VARCHAR, STRUCT(x BIGINT))", NULL};

/* What the engine says about row i, as put_nested() makes it. */
#define NESTED                                                                                     \
    "SELECT i::INTEGER AS a, CASE WHEN i % 5 = 0 THEN NULL ELSE {'a': CASE WHEN i % 2 = 0 THEN "   \
    "NULL ELSE i END, 'b': CASE WHEN i % 3 = 0 THEN NULL ELSE {'c': 'a text that is not inlined "  \
    "' || i} END} END AS b, CASE WHEN i % 7 = 0 THEN NULL ELSE [CASE WHEN x % 3 = 2 THEN NULL "    \
    "ELSE [CASE WHEN y % 4 = 3 THEN NULL ELSE i + y END FOR y IN range(x)] END FOR x IN range(i "  \
    "% 11)] END AS c, map_from_entries([{'k': 'k' || x, 'v': CASE WHEN x = 1 THEN NULL ELSE "      \
    "{'x': i * x} END} FOR x IN range(i % 4)]) AS d FROM range(5000) t(i)"

static void put_inner_struct(Bench *b, KnColWriter *w, int i)
{
    if (i % 5 == 0) {
        put_null(b, w);
        return;
    }
    assert_ok(b, kn_col_put_struct(w, &b->err));
    if (i % 2 == 0)
        put_null(b, kn_col_child(w, 0));
    else
        put_int(b, kn_col_child(w, 0), i);
    KnColWriter *inner = kn_col_child(w, 1);
    if (i % 3 == 0) {
        put_null(b, inner);
        return;
    }
    char text[64];
    assert_true(snprintf(text, sizeof(text), "a text that is not inlined %d", i) > 0);
    assert_ok(b, kn_col_put_struct(inner, &b->err));
    put_text(b, kn_col_child(inner, 0), text);
}

static void put_lists(Bench *b, KnColWriter *w, int i)
{
    if (i % 7 == 0) {
        put_null(b, w);
        return;
    }
    assert_ok(b, kn_col_begin_list(w, &b->err));
    for (int x = 0; x < i % 11; x++) {
        KnColWriter *inner = kn_col_child(w, 0);
        if (x % 3 == 2) {
            put_null(b, inner);
            continue;
        }
        assert_ok(b, kn_col_begin_list(inner, &b->err));
        for (int y = 0; y < x; y++) {
            if (y % 4 == 3)
                put_null(b, kn_col_child(inner, 0));
            else
                put_int(b, kn_col_child(inner, 0), i + y);
        }
        kn_col_end_list(inner);
    }
    kn_col_end_list(w);
}

static void put_map(Bench *b, KnColWriter *w, int i)
{
    assert_ok(b, kn_col_begin_list(w, &b->err));
    for (int x = 0; x < i % 4; x++) {
        KnColWriter *entry = kn_col_child(w, 0);
        char key[16];
        assert_true(snprintf(key, sizeof(key), "k%d", x) > 0);
        assert_ok(b, kn_col_put_struct(entry, &b->err));
        put_text(b, kn_col_child(entry, 0), key);
        KnColWriter *value = kn_col_child(entry, 1);
        if (x == 1) {
            put_null(b, value);
            continue;
        }
        assert_ok(b, kn_col_put_struct(value, &b->err));
        put_int(b, kn_col_child(value, 0), (__int128)i * x);
    }
    kn_col_end_list(w);
}

typedef struct Maker {
    Bench *b;
    KnBuilder *builder;
    int next, end;
} Maker;

static KnCode maker_next(void *arg, KnBatch **ret, KnErr *err)
{
    (void)err;
    Maker *m = arg;
    while (m->next < m->end && !kn_builder_full(m->builder)) {
        put_int(m->b, kn_builder_column(m->builder, 0), m->next);
        put_inner_struct(m->b, kn_builder_column(m->builder, 1), m->next);
        put_lists(m->b, kn_builder_column(m->builder, 2), m->next);
        put_map(m->b, kn_builder_column(m->builder, 3), m->next);
        kn_builder_end_row(m->builder);
        m->next++;
    }
    *ret = kn_builder_take(m->builder);
    return KN_OK;
}

static void nested_values_arrive_whole_and_in_order(void **state)
{
    Bench *b = *state;
    static const char *const names[] = {"a", "b", "c", "d"};
    Maker m = {.b = b, .builder = builder_open(b, nested_types), .end = 5000};
    const KnFeedOptions opts = {.name = "made",
                                .column_names = names,
                                .column_types = nested_types,
                                .n_columns = 4,
                                .next = maker_next,
                                .arg = &m};
    KnFeed *feed = NULL;
    assert_ok(b, kn_feed_open(b->eng, &opts, &feed, &b->err));
    bench_exec(b, "CREATE TABLE r AS SELECT * FROM kn_feed('made')");
    kn_feed_close(feed);
    kn_builder_close(m.builder);
    assert_string_equal(bench_text(b, "SELECT count(*) || ' ' || count(b) || ' ' || "
                                      "bool_and(a = rowid) FROM r"),
                        "5000 4000 true");
    assert_string_equal(
        bench_text(b, "%s", "SELECT count(*) FROM (FROM (" NESTED ") EXCEPT FROM r)"), "0");
    assert_string_equal(
        bench_text(b, "%s", "SELECT count(*) FROM (FROM r EXCEPT FROM (" NESTED "))"), "0");
}

static void batches_outlive_their_builder(void **state)
{
    Bench *b = *state;
    static const char *const types[] = {"VARCHAR", "INTEGER[]", NULL};
    KnBuilder *builder = builder_open(b, types);
    for (int i = 0; i < 3; i++) {
        put_text(b, kn_builder_column(builder, 0), "a text of some length");
        assert_ok(b, kn_col_begin_list(kn_builder_column(builder, 1), &b->err));
        put_int(b, kn_col_child(kn_builder_column(builder, 1), 0), i);
        kn_col_end_list(kn_builder_column(builder, 1));
        kn_builder_end_row(builder);
    }
    KN_BATCH_AUTO batch = kn_builder_take(builder);
    assert_null(kn_builder_take(builder));
    kn_builder_close(builder);
    KN_BUF_AUTO text;
    kn_buf_init(&text, 1000);
    batch_text(&text, batch);
    assert_string_equal(text.data, "a text of some length|[0]\na text of some length|[1]\n"
                                   "a text of some length|[2]\n");
}

static void a_list_of_many_elements_grows_with_its_nulls(void **state)
{
    Bench *b = *state;
    static const char *const types[] = {"STRUCT(n INTEGER, t VARCHAR)[]", NULL};
    enum { ELEMENTS = 100000 };
    KnBuilder *builder = builder_open(b, types);
    KnColWriter *w = kn_builder_column(builder, 0);
    assert_ok(b, kn_col_begin_list(w, &b->err));
    for (int i = 0; i < ELEMENTS; i++) {
        if (i == 5 || i == 90000) {
            put_null(b, kn_col_child(w, 0));
            continue;
        }
        assert_ok(b, kn_col_put_struct(kn_col_child(w, 0), &b->err));
        put_int(b, kn_col_child(kn_col_child(w, 0), 0), i);
        if (i == 70000)
            put_null(b, kn_col_child(kn_col_child(w, 0), 1));
        else
            put_text(b, kn_col_child(kn_col_child(w, 0), 1), i % 2 ? "short" : "longer than that");
    }
    kn_col_end_list(w);
    kn_builder_end_row(builder);
    store(b, builder, types);
    kn_builder_close(builder);
    assert_string_equal(
        bench_text(b, "SELECT concat_ws(' ', count(*), count(x), sum(x.n), count(x.t), "
                      "count(*) FILTER (x.t = 'short')) FROM (SELECT unnest(a) AS x FROM r)"),
        "100000 99998 4999859995 99997 49999");
}

static void what_a_column_cannot_hold_is_refused(void **state)
{
    Bench *b = *state;
    static const struct {
        const char *type;
        __int128 value;
    } bad[] = {{"BOOLEAN", 2},
               {"TINYINT", 128},
               {"INTEGER", 2147483648},
               {"UINTEGER", -1},
               {"DECIMAL(4,1)", 10000},
               {"DECIMAL(9,2)", -1000000000},
               {"TIME", 86400000000},
               {"TIME", -1},
               {"DATE", (int64_t)1 << 31},
               {"BIGINT", (__int128)1 << 63}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        const char *const types[] = {bad[i].type, NULL};
        KnBuilder *builder = builder_open(b, types);
        assert_code(b, kn_col_put_int(kn_builder_column(builder, 0), bad[i].value, &b->err),
                    KN_E_CORRUPT);
        kn_builder_close(builder);
    }
    static const char *const text[] = {"VARCHAR", NULL};
    KnBuilder *builder = builder_open(b, text);
    assert_code(b, kn_col_put_str(kn_builder_column(builder, 0), kn_str("a\xff"), &b->err),
                KN_E_CORRUPT);
    kn_builder_close(builder);
    static const char *const unknown[] = {"INTEGER", "NO_SUCH_TYPE"};
    assert_code(b, kn_builder_open(b->eng, unknown, 2, &builder, &b->err), KN_E_INVAL);
}

static void one_row_cannot_take_all_memory(void **state)
{
    Bench *b = *state;
    KN_BUF_AUTO type;
    kn_buf_init(&type, 1 << 20);
    kn_buf_text(&type, "STRUCT(f0 VARCHAR");
    for (int i = 1; i < 500; i++)
        kn_buf_printf(&type, ", f%d VARCHAR", i);
    kn_buf_text(&type, ")[]");
    const char *const types[] = {type.data, NULL};
    KnBuilder *builder = builder_open(b, types);
    KnColWriter *w = kn_builder_column(builder, 0);
    assert_ok(b, kn_col_begin_list(w, &b->err));
    KnCode code = KN_OK;
    int rows = 0;
    while (code == KN_OK && rows++ < 1000000)
        code = kn_col_put_null(kn_col_child(w, 0), &b->err);
    assert_int_equal(code, KN_E_UNSUPPORTED);
    kn_builder_close(builder);
}

static void a_builder_is_full_by_rows_or_by_bytes(void **state)
{
    Bench *b = *state;
    static const char *const types[] = {"BLOB", NULL};
    static const char big[1 << 20];
    KnBuilder *builder = builder_open(b, types);
    for (int i = 0; i < 4; i++) {
        assert_false(kn_builder_full(builder));
        KnStr value = {big, sizeof(big)};
        assert_ok(b, kn_col_put_str(kn_builder_column(builder, 0), value, &b->err));
        kn_builder_end_row(builder);
    }
    assert_true(kn_builder_full(builder));
    kn_batch_unref(kn_builder_take(builder));
    for (int i = 0; i < 2048; i++) {
        assert_false(kn_builder_full(builder));
        put_null(b, kn_builder_column(builder, 0));
        kn_builder_end_row(builder);
    }
    assert_true(kn_builder_full(builder));
    kn_builder_close(builder);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, bench_setup, bench_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(every_single_kind_keeps_its_extremes),
        CASE(numbers_of_128_bits_keep_every_digit),
        CASE(floats_texts_bytes_and_uuids_are_what_was_put),
        CASE(nested_values_arrive_whole_and_in_order),
        CASE(batches_outlive_their_builder),
        CASE(a_list_of_many_elements_grows_with_its_nulls),
        CASE(what_a_column_cannot_hold_is_refused),
        CASE(one_row_cannot_take_all_memory),
        CASE(a_builder_is_full_by_rows_or_by_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

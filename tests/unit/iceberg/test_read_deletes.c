/* SPDX-License-Identifier: Apache-2.0 */
/* test_read_deletes.c - reading: position deletes, deletion vectors, equality deletes. */
#include "unit/iceberg/read_support.h"

/* ---- deletes ---- */

static void position_deletes_match_raw_paths_and_file_positions(void **state)
{
    Fixture *fix = *state;
    fixture_open_table(fix, SCHEMA(0, FIELD(1, "a", INT)), NULL);
    KnManifestEntry *f = fixture_put(fix, "f", "{a: 1}", "SELECT range::INT a FROM range(5)");
    KnManifestEntry *g =
        fixture_put(fix, "g", "{a: 1}", "SELECT (range + 10)::INT a FROM range(3)");
    g->file.path = kn_arena_printf(fix->arena, "file://%s", g->file.path);
    KnManifestEntry *p = fixture_positions(
        fix, "p",
        kn_arena_printf(fix->arena,
                        "SELECT * FROM (VALUES ('%s', 1::BIGINT), ('%s', 3), ('%s', 3), "
                        "('%s/g.parquet', 0), ('file://%s/g.parquet', 2)) t(file_path, pos)",
                        f->file.path, f->file.path, f->file.path, fix->dir, fix->dir));
    fixture_task(fix, f, p, NULL, NULL);
    fixture_task(fix, g, p, NULL, NULL);
    expect_rows(fix, "{'a': 0} {'a': 2} {'a': 4} {'a': 10} {'a': 11}");
    KnReadOptions opts = {.ignore_deletes = true, .with_position = true};
    expect_rows_with(fix, &opts,
                     "{'a': 0, '_task': 0, '_pos': 0} {'a': 1, '_task': 0, '_pos': 1} "
                     "{'a': 2, '_task': 0, '_pos': 2} {'a': 3, '_task': 0, '_pos': 3} "
                     "{'a': 4, '_task': 0, '_pos': 4} {'a': 10, '_task': 1, '_pos': 0} "
                     "{'a': 11, '_task': 1, '_pos': 1} {'a': 12, '_task': 1, '_pos': 2}");
}

static void a_position_delete_applies_where_the_plan_says(void **state)
{
    Fixture *fix = *state;
    fixture_open_table(fix, SCHEMA(0, FIELD(1, "a", INT)), NULL);
    KnManifestEntry *f = fixture_put(fix, "f", "{a: 1}", "SELECT range::INT a FROM range(2)");
    KnManifestEntry *g =
        fixture_put(fix, "g", "{a: 1}", "SELECT (range + 10)::INT a FROM range(2)");
    KnManifestEntry *p =
        fixture_positions(fix, "p",
                          kn_arena_printf(fix->arena,
                                          "SELECT * FROM (VALUES ('%s', 0::BIGINT), "
                                          "('%s', 0)) t(file_path, pos)",
                                          f->file.path, g->file.path));
    KnManifestEntry *q = fixture_positions(
        fix, "q",
        kn_arena_printf(fix->arena, "SELECT '%s' AS file_path, 1::BIGINT AS pos", g->file.path));
    fixture_task(fix, f, p, NULL, NULL);
    fixture_task(fix, g, q, NULL, NULL); /* p names g too, and does not apply */
    expect_rows(fix, "{'a': 1} {'a': 10}");
}

/* Length, magic, one key 0 with one array container {1, 3}, CRC-32. */
static const unsigned char vector[] = {
    0x00, 0x00, 0x00, 0x24, 0xd1, 0xd3, 0x39, 0x64, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x3a, 0x30, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x01, 0x00, 0x10, 0x00, 0x00, 0x00, 0x01, 0x00, 0x03, 0x00, 0x68, 0x34, 0x97, 0xa9};

static void a_deletion_vector_removes_its_positions(void **state)
{
    Fixture *fix = *state;
    fixture_open_table(fix, SCHEMA(0, FIELD(1, "a", INT)), NULL);
    KnManifestEntry *f = fixture_put(fix, "f", "{a: 1}", "SELECT range::INT a FROM range(5)");
    unsigned char bytes[4 + sizeof(vector)] = "PFA1";
    memcpy(bytes + 4, vector, sizeof(vector));
    const char *path = kn_arena_printf(fix->arena, "%s/v.puffin", fix->dir);
    assert_int_equal(
        kn_io_write(fix->io, kn_str(path), bytes, sizeof(bytes), KN_IO_CREATE, &fix->err), KN_OK);
    KnManifestEntry v = {.file = {.content = KN_CONTENT_POSITION_DELETES,
                                  .format = KN_FORMAT_PUFFIN,
                                  .path = path,
                                  .record_count = 2,
                                  .referenced_data_file = f->file.path,
                                  .content_offset = 4,
                                  .content_size = sizeof(vector)}};
    fixture_task(fix, f, &v, NULL, NULL);
    expect_rows(fix, "{'a': 0} {'a': 2} {'a': 4}");
    v.file.record_count = 3;
    expect_error(fix, KN_E_CORRUPT, "holds 2 positions, its manifest says 3");
    v.file.content_size--;
    expect_error(fix, KN_E_CORRUPT, "deletion vector");
    v.file.content_size = 1 << 20;
    expect_error(fix, KN_E_CORRUPT, "v.puffin");
}

static void equal_keys_are_null_and_nan_but_not_both_zeros(void **state)
{
    Fixture *fix = *state;
    fixture_open_table(fix, SCHEMA(0, FIELD(1, "a", INT) "," FIELD(2, "d", DOUBLE)), NULL);
    KnManifestEntry *f =
        fixture_put(fix, "f", "{a: 1, d: 2}",
                    "SELECT * FROM (VALUES (1::INT, NULL::DOUBLE), (2, 'NaN'), (3, 0.0), "
                    "(4, '-0.0'), (5, 1.5)) t(a, d)");
    KnManifestEntry *e =
        fixture_equality(fix, "e", 2, "{d: 2}",
                         "SELECT * FROM (VALUES (NULL::DOUBLE), ('NaN'), ('-0.0'), (99)) t(d)");
    fixture_task(fix, f, e, NULL, NULL);
    expect_rows(fix, "{'a': 3, 'd': 0.0} {'a': 5, 'd': 1.5}");
}

static void each_file_has_its_own_first_equality_delete(void **state)
{
    Fixture *fix = *state;
    fixture_open_table(fix, SCHEMA(0, FIELD(1, "a", INT)), NULL);
    static const char rows[] = "SELECT range::INT a FROM range(4)";
    KnManifestEntry *f = fixture_put(fix, "f", "{a: 1}", rows);
    KnManifestEntry *g = fixture_put(fix, "g", "{a: 1}", rows);
    KnManifestEntry *h = fixture_put(fix, "h", "{a: 1}", rows);
    KnManifestEntry *e0 = fixture_equality(fix, "e0", 1, "{a: 1}", "SELECT 0::INT a");
    KnManifestEntry *e1 = fixture_equality(fix, "e1", 1, "{a: 1}", "SELECT 1::INT a");
    KnManifestEntry *e2 = fixture_equality(fix, "e2", 1, "{a: 1}", "SELECT 2::INT a");
    fixture_task(fix, f, e0, e1, e2);
    fixture_task(fix, g, e2, NULL, NULL);
    fixture_task(fix, h, e0, NULL, NULL); /* no tail of f's list */
    KnReadOptions opts = {.with_position = true};
    expect_rows_with(fix, &opts,
                     "{'a': 3, '_task': 0, '_pos': 3} {'a': 0, '_task': 1, '_pos': 0} "
                     "{'a': 1, '_task': 1, '_pos': 1} {'a': 3, '_task': 1, '_pos': 3} "
                     "{'a': 1, '_task': 2, '_pos': 1} {'a': 2, '_task': 2, '_pos': 2} "
                     "{'a': 3, '_task': 2, '_pos': 3}");
}

static void a_key_deleted_twice_is_gone_for_old_and_new_files(void **state)
{
    Fixture *fix = *state;
    fixture_open_table(fix, SCHEMA(0, FIELD(1, "a", INT)), NULL);
    KnManifestEntry *f = fixture_put(fix, "f", "{a: 1}", "SELECT 1::INT a");
    KnManifestEntry *g = fixture_put(fix, "g", "{a: 1}", "SELECT 1::INT a");
    KnManifestEntry *h = fixture_put(fix, "h", "{a: 1}", "SELECT 1::INT a");
    KnManifestEntry *e0 = fixture_equality(fix, "e0", 1, "{a: 1}", "SELECT 1::INT a");
    KnManifestEntry *e1 = fixture_equality(fix, "e1", 1, "{a: 1}", "SELECT 1::INT a");
    fixture_task(fix, f, e0, e1, NULL);
    fixture_task(fix, g, e1, NULL, NULL);
    fixture_task(fix, h, NULL, NULL, NULL);
    KnReadOptions opts = {.with_position = true};
    expect_rows_with(fix, &opts, "{'a': 1, '_task': 2, '_pos': 0}");
}

/* Keys of two delete files, of which every other one is of a row, in several turns. */
static void more_keys_than_memory_holds_take_turns(void **state)
{
    Fixture *fix = *state;
    fixture_open_table(fix, SCHEMA(0, FIELD(1, "a", INT)), NULL);
    KnManifestEntry *f =
        fixture_put(fix, "f", "{a: 1}", "SELECT range::INT a FROM range(0, 4000000, 2)");
    KnManifestEntry *g = fixture_put(fix, "g", "{a: 1}", "SELECT range::INT a FROM range(5)");
    KnManifestEntry *e0 =
        fixture_equality(fix, "e0", 1, "{a: 1}", "SELECT range::INT a FROM range(1, 2000000)");
    KnManifestEntry *e1 = fixture_equality(fix, "e1", 1, "{a: 1}",
                                           "SELECT range::INT a FROM range(2000000, 3999997)");
    fixture_task(fix, f, e0, e1, NULL);
    fixture_task(fix, g, e1, NULL, NULL);
    KnReadOptions opts = {.with_position = true};
    expect_rows_with(fix, &opts,
                     "{'a': 0, '_task': 0, '_pos': 0} {'a': 3999998, '_task': 0, '_pos': 1999999} "
                     "{'a': 0, '_task': 1, '_pos': 0} {'a': 1, '_task': 1, '_pos': 1} "
                     "{'a': 2, '_task': 1, '_pos': 2} {'a': 3, '_task': 1, '_pos': 3} "
                     "{'a': 4, '_task': 1, '_pos': 4}");
}

static void two_sets_of_columns_both_delete(void **state)
{
    Fixture *fix = *state;
    fixture_open_table(fix, SCHEMA(0, FIELD(1, "a", INT) "," FIELD(2, "b", STRING)), NULL);
    KnManifestEntry *f =
        fixture_put(fix, "f", "{a: 1, b: 2}",
                    "SELECT * FROM (VALUES (1::INT, 'x'), (2, 'y'), (3, 'z')) t(a, b)");
    KnManifestEntry *ea =
        fixture_equality(fix, "ea", 1, "{a: 1, extra: 2}", "SELECT 1::LONG a, 'z' AS extra");
    KnManifestEntry *eb = fixture_equality(fix, "eb", 2, "{b: 2}", "SELECT 'y' AS b");
    KnManifestEntry *p = fixture_positions(
        fix, "p",
        kn_arena_printf(fix->arena, "SELECT '%s' AS file_path, 9::BIGINT AS pos", f->file.path));
    fixture_open_table(fix, SCHEMA(0, FIELD(1, "a", LONG) "," FIELD(2, "b", STRING)), NULL);
    fixture_task(fix, f, ea, eb, p);
    expect_rows(fix, "{'a': 3, 'b': z}");
}

static void a_dropped_column_still_deletes(void **state)
{
    Fixture *fix = *state;
    fixture_open_table(
        fix,
        SCHEMA(0, FIELD(1, "a", INT)) "," SCHEMA(
            1, FIELD(1, "a", INT) ",{\"id\":7,\"name\":\"gone\",\"required\":true,\"type\":"
                                  "\"string\"}"),
        NULL);
    KnManifestEntry *f = fixture_put(fix, "f", "{a: 1, gone: 7}",
                                     "SELECT * FROM (VALUES (1::INT, 'x'), (2, 'y')) t(a, gone)");
    KnManifestEntry *g = fixture_put(fix, "g", "{a: 1}", "SELECT 3::INT a");
    KnManifestEntry *e = fixture_equality(fix, "e", 7, "{gone: 7}", "SELECT 'x' AS gone");
    fixture_task(fix, f, e, NULL, NULL);
    fixture_task(fix, g, e, NULL, NULL);
    expect_rows(fix, "{'a': 2} {'a': 3}");
}

static void a_field_inside_a_struct_may_be_the_key(void **state)
{
    Fixture *fix = *state;
    fixture_open_table(
        fix,
        SCHEMA(0, FIELD(1, "a", INT) "," FIELD(
                      2, "st", "{\"type\":\"struct\",\"fields\":[" FIELD(3, "k", INT) "]}")),
        NULL);
    KnManifestEntry *f = fixture_put(
        fix, "f", "{a: 1, st: {__duckdb_field_id: 2, k: 3}}",
        "SELECT * FROM (VALUES (1::INT, {'k': 5::INT}), (2, {'k': 6}), (3, NULL)) t(a, st)");
    KnManifestEntry *e = fixture_equality(fix, "e", 3, "{st: {__duckdb_field_id: 2, k: 3}}",
                                          "SELECT {'k': 5::INT} AS st");
    fixture_task(fix, f, e, NULL, NULL);
    expect_rows(fix, "{'a': 2, 'st': {'k': 6}} {'a': 3, 'st': NULL}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(position_deletes_match_raw_paths_and_file_positions),
        CASE(a_position_delete_applies_where_the_plan_says),
        CASE(a_deletion_vector_removes_its_positions),
        CASE(equal_keys_are_null_and_nan_but_not_both_zeros),
        CASE(each_file_has_its_own_first_equality_delete),
        CASE(a_key_deleted_twice_is_gone_for_old_and_new_files),
        CASE(more_keys_than_memory_holds_take_turns),
        CASE(two_sets_of_columns_both_delete),
        CASE(a_dropped_column_still_deletes),
        CASE(a_field_inside_a_struct_may_be_the_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_read_avro_rows.c - Avro data and delete files: rows and their places, damaged files. */
#include <string.h>

#include "unit/iceberg/avro_lake.h"

/* ---- rows ---- */

static void rows_of_many_blocks_keep_their_order_and_positions(void **state)
{
    AvroLake *fix = *state;
    avro_table(fix, FIELD(1, "a", LONG), NULL);
    static const KnAvroCodec codecs[] = {KN_AVRO_CODEC_NULL, KN_AVRO_CODEC_DEFLATE,
                                         KN_AVRO_CODEC_SNAPPY, KN_AVRO_CODEC_ZSTD};
    for (size_t c = 0; c < sizeof(codecs) / sizeof(*codecs); c++) {
        AvroFile avro = avro_begin(fix, AVRO_ONE_LONG, codecs[c]);
        for (int64_t i = 0; i < 300000; i++) {
            kn_avro_put_long(avro.buf, i * 7);
            avro_end_row(&avro);
        }
        avro_task(fix, avro_end(&avro, kn_arena_printf(fix->arena, "many%zu.avro", c)), NULL);
    }
    avro_expect(fix,
                "SELECT concat_ws(' ', count(*), bool_and(a = _pos * 7), count(DISTINCT (_task, "
                "_pos))) FROM {scan}",
                "1200000 true 1200000");
}

static void a_file_without_rows_is_nothing(void **state)
{
    AvroLake *fix = *state;
    avro_table(fix, FIELD(1, "a", LONG), NULL);
    AvroFile avro = avro_begin(fix, AVRO_ONE_LONG, KN_AVRO_CODEC_NULL);
    avro_task(fix, avro_end(&avro, "empty.avro"), NULL);
    avro_expect(fix, "SELECT count(*) FROM {scan}", "0");
}

static KnManifestEntry *longs(AvroLake *fix, const char *name, int64_t from, int64_t to)
{
    AvroFile avro = avro_begin(fix, AVRO_ONE_LONG, KN_AVRO_CODEC_DEFLATE);
    for (int64_t i = from; i < to; i++) {
        kn_avro_put_long(avro.buf, i);
        avro_end_row(&avro);
    }
    return avro_end(&avro, name);
}

static KnManifestEntry *parquet_longs(AvroLake *fix, const char *name, int64_t from, int64_t to)
{
    KnManifestEntry *entry = avro_entry(fix, name, "", 0, to - from);
    entry->file.format = KN_FORMAT_PARQUET;
    const char *sql = kn_arena_printf(
        fix->arena,
        "COPY (SELECT range::BIGINT AS a FROM range(%lld, %lld)) TO '%s' (FORMAT parquet, "
        "FIELD_IDS {a: 1})",
        (long long)from, (long long)to, entry->file.path);
    if (kn_session_exec(fix->ses, sql, NULL, &fix->err) != KN_OK)
        fail_msg("%s", fix->err.msg);
    return entry;
}

static void avro_and_parquet_stand_side_by_side(void **state)
{
    AvroLake *fix = *state;
    avro_table(fix, FIELD(1, "a", LONG), NULL);
    avro_task(fix, longs(fix, "1.avro", 0, 2), NULL);
    avro_task(fix, parquet_longs(fix, "2.parquet", 2, 4), NULL);
    avro_task(fix, longs(fix, "3.avro", 4, 6), NULL);
    avro_expect(fix,
                "SELECT string_agg(concat_ws(':', a, _task, _pos), ' ' ORDER BY a) FROM {scan}",
                "0:0:0 1:0:1 2:1:0 3:1:1 4:2:0 5:2:1");
}

static void position_deletes_in_avro_apply_to_both_formats(void **state)
{
    AvroLake *fix = *state;
    avro_table(fix, FIELD(1, "a", LONG), NULL);
    KnManifestEntry *avro_data = longs(fix, "data.avro", 0, 5);
    KnManifestEntry *parquet_data = parquet_longs(fix, "data.parquet", 10, 15);
    AvroFile avro = avro_begin(
        fix,
        AVRO(AVRO_FIELD(2147483546, "file_path", TEXT) "," AVRO_FIELD(2147483545, "pos", LONG)),
        KN_AVRO_CODEC_DEFLATE);
    for (int64_t pos = 0; pos < 3; pos += 2) {
        avro_put_text(&avro, avro_data->file.path);
        kn_avro_put_long(avro.buf, pos);
        avro_end_row(&avro);
    }
    avro_put_text(&avro, parquet_data->file.path);
    kn_avro_put_long(avro.buf, 4);
    avro_end_row(&avro);
    KnManifestEntry *deletes = avro_end(&avro, "deletes.avro");
    deletes->file.content = KN_CONTENT_POSITION_DELETES;
    avro_task(fix, avro_data, deletes);
    avro_task(fix, parquet_data, deletes);
    avro_expect(fix, "SELECT string_agg(a::VARCHAR, ' ' ORDER BY a) FROM {scan}",
                "1 3 4 10 11 12 13");
}

static void equality_deletes_in_avro_apply_to_both_formats(void **state)
{
    AvroLake *fix = *state;
    static const int32_t ids[] = {1};
    avro_table(fix, FIELD(1, "a", LONG), NULL);
    AvroFile avro = avro_begin(fix, AVRO(AVRO_FIELD(1, "k", INT)), KN_AVRO_CODEC_NULL);
    kn_avro_put_long(avro.buf, 1);
    avro_end_row(&avro);
    kn_avro_put_long(avro.buf, 11);
    avro_end_row(&avro);
    KnManifestEntry *deletes = avro_end(&avro, "keys.avro");
    deletes->file.content = KN_CONTENT_EQUALITY_DELETES;
    deletes->file.equality_ids = ids;
    deletes->file.n_equality_ids = 1;
    avro_task(fix, longs(fix, "data.avro", 0, 3), deletes);
    avro_task(fix, parquet_longs(fix, "data.parquet", 10, 13), deletes);
    avro_expect(fix, "SELECT string_agg(a::VARCHAR, ' ' ORDER BY a) FROM {scan}", "0 2 10 12");
}

/* ---- damage ---- */

static KnBuf small_file(AvroLake *fix, int64_t *ret_rows)
{
    AvroFile avro = avro_begin(
        fix,
        AVRO(AVRO_FIELD(1, "a", OR_NULL(LONG)) "," AVRO_FIELD(2, "s", TEXT) "," AVRO_FIELD(
            3, "l",
            "{\"type\":\"array\",\"element-id\":4,\"items\":"
            "\"int\"}")),
        KN_AVRO_CODEC_NULL);
    for (int64_t i = 0; i < 3; i++) {
        avro_put_some(&avro, i);
        avro_put_text(&avro, "text");
        kn_avro_put_long(avro.buf, 1);
        kn_avro_put_long(avro.buf, i);
        kn_avro_put_long(avro.buf, 0);
        avro_end_row(&avro);
    }
    *ret_rows = avro.rows;
    return avro_bytes(&avro);
}

static void a_file_cut_off_anywhere_is_corrupt_by_name(void **state)
{
    AvroLake *fix = *state;
    avro_table(fix, FIELD(1, "a", LONG) "," FIELD(2, "s", TEXT), NULL);
    int64_t rows = 0;
    KnBuf file = small_file(fix, &rows);
    for (size_t len = 0; len < file.len; len += len + 40 < file.len ? 7 : 1) {
        fix->n_tasks = 0;
        avro_task(fix, avro_entry(fix, "cut.avro", file.data, len, rows), NULL);
        avro_expect_error(fix, KN_E_CORRUPT, "cut.avro", "");
    }
    kn_buf_done(&file);
}

static void flipped_bytes_are_read_or_refused_but_never_more(void **state)
{
    AvroLake *fix = *state;
    avro_table(fix, FIELD(1, "a", LONG) "," FIELD(2, "s", TEXT), NULL);
    int64_t rows = 0;
    KnBuf file = small_file(fix, &rows);
    size_t corrupt = 0;
    for (size_t at = file.len - 60; at < file.len; at++) {
        file.data[at] = (char)(file.data[at] ^ 0x41);
        fix->n_tasks = 0;
        avro_task(fix, avro_entry(fix, "flip.avro", file.data, file.len, rows), NULL);
        KnCode rc = avro_read(fix, "SELECT count(s) + count(a) FROM {scan}");
        assert_true(rc == KN_OK || rc == KN_E_CORRUPT);
        corrupt += rc == KN_E_CORRUPT;
        file.data[at] = (char)(file.data[at] ^ 0x41);
    }
    assert_true(corrupt > 16); /* the sync marker alone */
    kn_buf_done(&file);
}

static void the_manifest_bounds_the_number_of_rows(void **state)
{
    AvroLake *fix = *state;
    avro_table(fix, FIELD(1, "a", LONG), NULL);
    KnManifestEntry *entry = longs(fix, "rows.avro", 0, 5);
    avro_task(fix, entry, NULL);
    entry->file.record_count = 4;
    avro_expect_error(fix, KN_E_CORRUPT, "rows.avro", "more rows than its manifest says, 4");
    entry->file.record_count = 6;
    avro_expect_error(fix, KN_E_CORRUPT, "rows.avro", "has 5 rows, its manifest says 6");
}

static void a_missing_file_is_named(void **state)
{
    AvroLake *fix = *state;
    avro_table(fix, FIELD(1, "a", LONG), NULL);
    KnManifestEntry *entry = longs(fix, "gone.avro", 0, 5);
    assert_int_equal(kn_io_remove(fix->io, kn_str(entry->file.path), &fix->err), KN_OK);
    avro_task(fix, entry, NULL);
    avro_expect_error(fix, KN_E_NOTFOUND, "gone.avro", "");
}

/* One datum of one field of this type. */
static void expect_bad(AvroLake *fix, const char *type, const char *bytes, size_t len, KnCode code,
                       const char *part)
{
    const char *schema = kn_arena_printf(
        fix->arena,
        "{\"type\":\"record\",\"name\":\"table\",\"fields\":[{\"name\":\"the_field\",\"type\":%s,"
        "\"field-id\":1}]}",
        type);
    AvroFile avro = avro_begin(fix, schema, KN_AVRO_CODEC_NULL);
    kn_buf_append(avro.buf, bytes, len);
    avro_end_row(&avro);
    fix->n_tasks = 0;
    avro_task(fix, avro_end(&avro, "bad.avro"), NULL);
    avro_expect_error(fix, code, "bad.avro", part);
}

static void values_outside_their_type_are_corrupt(void **state)
{
    AvroLake *fix = *state;
    avro_table(fix, FIELD(7, "a", LONG), NULL);
    expect_bad(fix, TEXT, "\x02\xff", 2, KN_E_CORRUPT, "field 'the_field': a text that is not");
    expect_bad(fix, "{\"type\":\"long\",\"logicalType\":\"time-micros\"}", "\x01", 1, KN_E_CORRUPT,
               "out of the range of TIME");
    expect_bad(fix, TIMESTAMP("millis", "true"), "\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10,
               KN_E_CORRUPT, "out of the range of TIMESTAMP");
    expect_bad(fix, "{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"precision\":2,\"scale\":0}",
               "\x02\x64", 2, KN_E_CORRUPT, "out of the range of DECIMAL");
    expect_bad(fix, "{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"precision\":38,\"scale\":0}",
               "\x00", 1, KN_E_CORRUPT, "a decimal of no bytes");
    expect_bad(fix, "{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"precision\":38,\"scale\":0}",
               "\x22\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 18,
               KN_E_CORRUPT, "more than 38 digits");
    expect_bad(fix,
               "{\"type\":\"array\",\"logicalType\":\"map\",\"items\":{\"type\":\"record\","
               "\"name\":\"kv\",\"fields\":[{\"name\":\"key\",\"type\":[\"null\",\"int\"]},{"
               "\"name\":\"value\",\"type\":\"int\"}]}}",
               "\x02\x00\x02\x00", 4, KN_E_CORRUPT, "a null key");
    expect_bad(fix, "[\"null\",\"int\"]", "\x04", 1, KN_E_CORRUPT, "branch 2 of a union of 2");
    expect_bad(fix, INT, "\x02\x02", 2, KN_E_CORRUPT, "left over");
}

static void lists_of_nothing_are_counted(void **state)
{
    AvroLake *fix = *state;
    avro_table(fix, FIELD(7, "a", LONG), NULL);
    KN_BUF_AUTO blocks;
    kn_buf_init(&blocks, 1 << 20);
    for (int i = 0; i < 100; i++)
        kn_avro_put_long(&blocks, 65536);
    kn_avro_put_long(&blocks, 0);
    expect_bad(fix, "{\"type\":\"array\",\"items\":\"null\"}", blocks.data, blocks.len,
               KN_E_CORRUPT, "that take no bytes");
}

static void what_has_no_column_is_refused_by_name(void **state)
{
    AvroLake *fix = *state;
    avro_table(fix, FIELD(7, "a", LONG), NULL);
    expect_bad(fix, "[\"int\",\"string\"]", "\x00\x00", 2, KN_E_UNSUPPORTED,
               "field 'the_field' is a union of several types");
    expect_bad(fix, "{\"type\":\"enum\",\"name\":\"e\",\"symbols\":[\"a\"]}", "\x00", 1,
               KN_E_UNSUPPORTED, "is an enum");
    expect_bad(fix, "{\"type\":\"record\",\"name\":\"r\",\"fields\":[]}", "", 0, KN_E_UNSUPPORTED,
               "a record without fields");
    expect_bad(fix,
               "{\"type\":\"record\",\"name\":\"r\",\"fields\":[{\"name\":\"next\",\"type\":"
               "[\"null\",\"r\"]}]}",
               "\x00", 1, KN_E_UNSUPPORTED, "nested deeper");
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, avro_setup, avro_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(rows_of_many_blocks_keep_their_order_and_positions),
        CASE(a_file_without_rows_is_nothing),
        CASE(avro_and_parquet_stand_side_by_side),
        CASE(position_deletes_in_avro_apply_to_both_formats),
        CASE(equality_deletes_in_avro_apply_to_both_formats),
        CASE(a_file_cut_off_anywhere_is_corrupt_by_name),
        CASE(flipped_bytes_are_read_or_refused_but_never_more),
        CASE(the_manifest_bounds_the_number_of_rows),
        CASE(a_missing_file_is_named),
        CASE(values_outside_their_type_are_corrupt),
        CASE(lists_of_nothing_are_counted),
        CASE(what_has_no_column_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_avro_reader.c - container files of other writers, whole, cut off, and with bits flipped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "unit/codec/support.h"

/* One manifest by Java, and the same datums written by fastavro with the other codecs. */
static const char *const files[] = {"v2-data.avro", "v2-data-null.avro", "v2-data-snappy.avro",
                                    "v2-data-zstandard.avro"};
enum { N_FILES = sizeof(files) / sizeof(files[0]), SYNC_LEN = 16 };

static void every_codec_gives_the_same_datums(void **state)
{
    (void)state;
    KN_BUF_AUTO first;
    kn_buf_init(&first, 1 << 20);
    for (size_t i = 0; i < N_FILES; ++i) {
        size_t len;
        uint8_t *bytes = test_avro_file(files[i], &len);
        KnAvroReader *reader;
        KnErr err = {0};
        assert_int_equal(kn_avro_reader_open(bytes, len, &reader, &err), KN_OK);
        KnAvroCursor cur;
        int64_t count;
        assert_int_equal(kn_avro_reader_next_block(reader, &cur, &count, &err), KN_OK);
        assert_int_equal(count, 4);
        size_t plain = (size_t)(cur.end - cur.pos);
        if (i == 0)
            kn_buf_append(&first, cur.pos, plain);
        assert_int_equal(plain, first.len);
        assert_memory_equal(cur.pos, first.data, plain);
        assert_int_equal(kn_avro_reader_next_block(reader, &cur, &count, &err), KN_OK);
        assert_int_equal(count, 0);
        (void)kn_avro_reader_close(reader);
        free(bytes);
    }
}

static void the_header_gives_schema_and_metadata(void **state)
{
    (void)state;
    size_t len;
    uint8_t *bytes = test_avro_file("v3-deletes.avro", &len);
    KnAvroReader *reader;
    assert_int_equal(kn_avro_reader_open(bytes, len, &reader, NULL), KN_OK);
    assert_true(kn_str_eq(kn_avro_reader_meta(reader, "content"), KN_STR_LIT("deletes")));
    assert_true(kn_str_eq(kn_avro_reader_meta(reader, "format-version"), KN_STR_LIT("3")));
    assert_null(kn_avro_reader_meta(reader, "nothing").ptr);
    const KnAvroType *type = kn_avro_reader_type(reader);
    assert_string_equal(type->name, "manifest_entry");
    assert_int_equal(type->fields[0].field_id, 0);
    assert_int_equal(type->fields[4].field_id, 2);
    (void)kn_avro_reader_close(reader);
    free(bytes);
}

/* Where the header ends: a file cut there is a whole file without datums. */
static size_t header_len(const uint8_t *bytes, size_t len)
{
    const uint8_t *sync = bytes + len - SYNC_LEN;
    const uint8_t *at = memmem(bytes, len, sync, SYNC_LEN);
    assert_non_null(at);
    return (size_t)(at - bytes) + SYNC_LEN;
}

static void a_file_cut_anywhere_is_corrupt(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_FILES; ++i) {
        size_t len;
        uint8_t *bytes = test_avro_file(files[i], &len);
        size_t header = header_len(bytes, len);
        for (size_t cut = 0; cut < len; ++cut) {
            uint8_t *part = malloc(cut ? cut : 1);
            assert_non_null(part);
            memcpy(part, bytes, cut);
            KnErr err = {0};
            int64_t n;
            KnCode code = test_avro_walk(part, cut, &n, &err);
            if (code != (cut == header ? KN_OK : KN_E_CORRUPT))
                fail_msg("%s cut at %zu: %d %s", files[i], cut, code, err.msg);
            free(part);
        }
        free(bytes);
    }
}

static void bytes_behind_the_last_block_are_corrupt(void **state)
{
    (void)state;
    size_t len;
    uint8_t *bytes = test_avro_file("v2-list.avro", &len);
    uint8_t *more = malloc(len + 1);
    assert_non_null(more);
    memcpy(more, bytes, len);
    more[len] = 0;
    int64_t n;
    assert_int_equal(test_avro_walk(more, len, &n, NULL), KN_OK);
    assert_int_equal(test_avro_walk(more, len + 1, &n, NULL), KN_E_CORRUPT);
    free(more);
    free(bytes);
}

/* A sample of all bits, closer in the datums than in the header: no crash (the sanitizer looks),
 * and no code but success, corrupt, or the codec's name turned into another's. */
static void flipped_bits_never_crash(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_FILES; ++i) {
        size_t len;
        uint8_t *bytes = test_avro_file(files[i], &len);
        size_t header = header_len(bytes, len);
        size_t corrupt = 0;
        for (size_t bit = 0; bit < len * 8; bit += bit / 8 < header ? 131 : 11) {
            bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
            int64_t n;
            KnCode code = test_avro_walk(bytes, len, &n, NULL);
            bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
            corrupt += code == KN_E_CORRUPT;
            if (code != KN_OK && code != KN_E_CORRUPT && code != KN_E_UNSUPPORTED)
                fail_msg("%s bit %zu: code %d", files[i], bit, code);
        }
        assert_true(corrupt > 100);
        free(bytes);
    }
}

/* Appends the plain bytes of all blocks. */
static KnCode read_plain(const uint8_t *bytes, size_t len, KnBuf *ret)
{
    KnAvroReader *reader;
    KN_TRY(kn_avro_reader_open(bytes, len, &reader, NULL));
    KnCode code = KN_OK;
    for (int64_t count = 1; code == KN_OK && count > 0;) {
        KnAvroCursor cur;
        code = kn_avro_reader_next_block(reader, &cur, &count, NULL);
        if (code == KN_OK)
            kn_buf_append(ret, cur.pos, (size_t)(cur.end - cur.pos));
    }
    (void)kn_avro_reader_close(reader);
    return code;
}

/* Snappy may reach the same text by another copy; then, and only then, all is well. */
static void a_flipped_bit_under_a_checksum_is_seen(void **state)
{
    (void)state;
    size_t len;
    uint8_t *bytes = test_avro_file("v2-data-snappy.avro", &len);
    KN_BUF_AUTO right;
    KN_BUF_AUTO got;
    kn_buf_init(&right, 1 << 20);
    kn_buf_init(&got, 1 << 20);
    assert_int_equal(read_plain(bytes, len, &right), KN_OK);
    size_t seen = 0;
    for (size_t at = header_len(bytes, len) + 4; at < len; ++at) {
        bytes[at] ^= 1;
        kn_buf_reset(&got);
        KnCode code = read_plain(bytes, len, &got);
        bytes[at] ^= 1;
        seen += code == KN_E_CORRUPT;
        if (code == KN_OK) {
            assert_int_equal(got.len, right.len);
            assert_memory_equal(got.data, right.data, right.len);
        }
    }
    assert_true(seen > 500);
    free(bytes);
}

/* A header by hand: schema, codec, and a sync marker of 16 's'. */
static void put_header(KnBuf *buf, const char *schema, const char *codec)
{
    kn_buf_append(buf, "Obj\1", 4);
    kn_avro_put_long(buf, 2);
    kn_avro_put_bytes(buf, KN_STR_LIT("avro.schema"));
    kn_avro_put_bytes(buf, kn_str(schema));
    kn_avro_put_bytes(buf, KN_STR_LIT("avro.codec"));
    kn_avro_put_bytes(buf, kn_str(codec));
    kn_avro_put_long(buf, 0);
    kn_buf_text(buf, "ssssssssssssssss");
}

static void put_block(KnBuf *buf, int64_t count, KnStr bytes)
{
    kn_avro_put_long(buf, count);
    kn_avro_put_bytes(buf, bytes);
    kn_buf_text(buf, "ssssssssssssssss");
}

static void refuse(const KnBuf *file, KnCode want, const char *words)
{
    KnErr err = {0};
    int64_t n;
    assert_int_equal(test_avro_walk(file->data, file->len, &n, &err), want);
    if (!strstr(err.msg, words))
        fail_msg("'%s' does not say '%s'", err.msg, words);
}

static void counts_are_held_to_the_block(void **state)
{
    (void)state;
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, 1 << 20);
    put_header(&buf, "\"long\"", "null");
    size_t header = buf.len;
    put_block(&buf, 3, KN_STR_LIT("\x02\x02"));
    refuse(&buf, KN_E_CORRUPT, "3 datums in 2 bytes");
    buf.len = header;
    put_block(&buf, -1, KN_STR_LIT("\x02"));
    refuse(&buf, KN_E_CORRUPT, "-1 datums");
    buf.len = header;
    put_block(&buf, 1, KN_STR_LIT("\x02\x02"));
    refuse(&buf, KN_E_CORRUPT, "1 bytes left over");
    buf.len = header;
    put_block(&buf, 0, KN_STR_LIT("\x02"));
    refuse(&buf, KN_E_CORRUPT, "0 datums in 1 bytes");
    buf.len = header;
    put_block(&buf, 0, KN_STR_LIT(""));
    put_block(&buf, 2, KN_STR_LIT("\x02\x02"));
    int64_t n;
    assert_int_equal(test_avro_walk(buf.data, buf.len, &n, NULL), KN_OK);
    assert_int_equal(n, 2);
    kn_buf_reset(&buf);
    put_header(&buf, "\"null\"", "null");
    header = buf.len;
    put_block(&buf, 65536, KN_STR_LIT(""));
    assert_int_equal(test_avro_walk(buf.data, buf.len, &n, NULL), KN_OK);
    assert_int_equal(n, 65536);
    buf.len = header;
    put_block(&buf, 65537, KN_STR_LIT(""));
    refuse(&buf, KN_E_CORRUPT, "65537 datums");
}

static void headers_that_are_wrong_are_named(void **state)
{
    (void)state;
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, 1 << 20);
    kn_buf_text(&buf, "PAR1");
    refuse(&buf, KN_E_CORRUPT, "not an Avro file");
    kn_buf_reset(&buf);
    put_header(&buf, "\"long\"", "bzip2");
    refuse(&buf, KN_E_UNSUPPORTED, "codec 'bzip2'");
    kn_buf_reset(&buf);
    kn_buf_append(&buf, "Obj\1\0ssssssssssssssss", 21);
    refuse(&buf, KN_E_CORRUPT, "no schema");
    kn_buf_reset(&buf);
    put_header(&buf, "\"long\"", "null");
    put_block(&buf, 1, KN_STR_LIT("\x02"));
    buf.data[buf.len - 1] = 'x';
    refuse(&buf, KN_E_CORRUPT, "no sync marker");
}

/* PyIceberg and Avro's Python library write zlib.compress(data)[2:-1]: 3 bytes too many. */
static void a_deflate_block_may_end_in_a_rest_of_its_checksum(void **state)
{
    (void)state;
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, 1 << 20);
    put_header(&buf, "\"long\"", "deflate");
    size_t header = buf.len;
    static const char stored[] = "\x01\x02\x00\xfd\xff\x02\x04 rest";
    for (size_t rest = 0; rest < 5; ++rest) {
        buf.len = header;
        put_block(&buf, 2, (KnStr){stored, 7 + rest});
        int64_t n;
        KnCode code = test_avro_walk(buf.data, buf.len, &n, NULL);
        assert_int_equal(code, rest < 4 ? KN_OK : KN_E_CORRUPT);
    }
}

/* A bomb: one mebibyte of zeros in a few bytes of zstandard, as often as fits. The file's budget
 * ends it. */
static void a_file_of_bombs_ends_at_the_budget(void **state)
{
    (void)state;
    KnAvroWriter *w = kn_avro_writer_new(KN_STR_LIT("\"bytes\""), KN_AVRO_CODEC_ZSTD);
    enum { ZEROS = 1 << 20, BOMBS = 40 };
    char *zeros = calloc(1, ZEROS);
    assert_non_null(zeros);
    for (int i = 0; i < BOMBS; ++i) {
        kn_avro_put_bytes(kn_avro_writer_buf(w), (KnStr){zeros, ZEROS});
        assert_int_equal(kn_avro_writer_datum(w, NULL), KN_OK);
    }
    free(zeros);
    KnBuf file;
    assert_int_equal(kn_avro_writer_finish(w, &file, NULL), KN_OK);
    (void)kn_avro_writer_free(w);
    refuse(&file, KN_E_CORRUPT, "when decompressed");
    kn_buf_done(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_codec_gives_the_same_datums),
        cmocka_unit_test(the_header_gives_schema_and_metadata),
        cmocka_unit_test(a_file_cut_anywhere_is_corrupt),
        cmocka_unit_test(bytes_behind_the_last_block_are_corrupt),
        cmocka_unit_test(flipped_bits_never_crash),
        cmocka_unit_test(a_flipped_bit_under_a_checksum_is_seen),
        cmocka_unit_test(counts_are_held_to_the_block),
        cmocka_unit_test(headers_that_are_wrong_are_named),
        cmocka_unit_test(a_deflate_block_may_end_in_a_rest_of_its_checksum),
        cmocka_unit_test(a_file_of_bombs_ends_at_the_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

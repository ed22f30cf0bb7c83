/* SPDX-License-Identifier: Apache-2.0 */
/* test_avro_writer.c - what is written comes back, with every codec, and is the same every time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "unit/codec/support.h"

static const char schema[] = "{\"type\":\"record\",\"name\":\"r\",\"fields\":["
                             "{\"name\":\"id\",\"type\":\"long\",\"field-id\":1},"
                             "{\"name\":\"s\",\"type\":[\"null\",\"string\"],\"field-id\":2}]}";

static void put_datum(KnAvroWriter *w, int64_t id, KnStr text)
{
    KnBuf *buf = kn_avro_writer_buf(w);
    kn_avro_put_long(buf, id);
    kn_avro_put_long(buf, text.ptr ? 1 : 0);
    if (text.ptr)
        kn_avro_put_bytes(buf, text);
    assert_int_equal(kn_avro_writer_datum(w, NULL), KN_OK);
}

static void write_file(KnAvroCodec codec, int64_t n, KnBuf *ret)
{
    char text[400];
    memset(text, 'x', sizeof(text));
    KnAvroWriter *w = kn_avro_writer_new(KN_STR_LIT(schema), codec);
    kn_avro_writer_meta(w, "who", KN_STR_LIT("test"));
    for (int64_t i = 0; i < n; ++i)
        put_datum(w, i, i % 3 == 0 ? (KnStr){0} : (KnStr){text, (size_t)(i % 400)});
    size_t before = kn_avro_writer_size(w);
    assert_int_equal(kn_avro_writer_finish(w, ret, NULL), KN_OK);
    assert_true(before <= ret->len + (64 << 10) + 800);
    (void)kn_avro_writer_free(w);
}

static int64_t check_block(const KnAvroReader *reader, KnAvroCursor cur, int64_t count, int64_t id)
{
    const KnAvroType *type = kn_avro_reader_type(reader);
    for (; count > 0; --count, ++id) {
        int64_t got;
        const KnAvroType *branch;
        assert_int_equal(kn_avro_read_long(&cur, &got, NULL), KN_OK);
        assert_int_equal(got, id);
        assert_int_equal(kn_avro_read_branch(&cur, type->fields[1].type, &branch, NULL), KN_OK);
        assert_int_equal(branch->kind == KN_AVRO_NULL, id % 3 == 0);
        KnStr s = {NULL, 0};
        if (branch->kind != KN_AVRO_NULL) {
            assert_int_equal(kn_avro_read_bytes(&cur, &s, NULL), KN_OK);
            assert_int_equal(s.len, id % 400);
        }
    }
    assert_int_equal(kn_avro_cursor_finish(&cur, NULL), KN_OK);
    return id;
}

static void every_codec_comes_back(void **state)
{
    (void)state;
    for (KnAvroCodec codec = KN_AVRO_CODEC_NULL; codec <= KN_AVRO_CODEC_ZSTD; ++codec) {
        for (int64_t n = 0; n < 3000; n = n * 7 + 1) {
            KnBuf file;
            write_file(codec, n, &file);
            KnAvroReader *reader;
            assert_int_equal(kn_avro_reader_open(file.data, file.len, &reader, NULL), KN_OK);
            assert_true(kn_str_eq(kn_avro_reader_meta(reader, "who"), KN_STR_LIT("test")));
            assert_true(kn_str_eq(kn_avro_reader_meta(reader, "avro.schema"), KN_STR_LIT(schema)));
            int64_t id = 0;
            for (;;) {
                KnAvroCursor cur;
                int64_t count;
                assert_int_equal(kn_avro_reader_next_block(reader, &cur, &count, NULL), KN_OK);
                if (count == 0)
                    break;
                id = check_block(reader, cur, count, id);
            }
            assert_int_equal(id, n);
            (void)kn_avro_reader_close(reader);
            kn_buf_done(&file);
        }
    }
}

static void equal_input_gives_equal_bytes(void **state)
{
    (void)state;
    for (KnAvroCodec codec = KN_AVRO_CODEC_NULL; codec <= KN_AVRO_CODEC_ZSTD; ++codec) {
        KnBuf a;
        KnBuf b;
        write_file(codec, 500, &a);
        write_file(codec, 500, &b);
        assert_int_equal(a.len, b.len);
        assert_memory_equal(a.data, b.data, a.len);
        kn_buf_done(&a);
        kn_buf_done(&b);
    }
}

static void blocks_close_at_64_kib(void **state)
{
    (void)state;
    KnBuf file;
    write_file(KN_AVRO_CODEC_DEFLATE, 2000, &file);
    KnAvroReader *reader;
    assert_int_equal(kn_avro_reader_open(file.data, file.len, &reader, NULL), KN_OK);
    int blocks = 0;
    for (;;) {
        KnAvroCursor cur;
        int64_t count;
        assert_int_equal(kn_avro_reader_next_block(reader, &cur, &count, NULL), KN_OK);
        if (count == 0)
            break;
        ++blocks;
        assert_in_range(cur.end - cur.pos, 1, (64 << 10) + 500);
    }
    assert_in_range(blocks, 4, 8);
    (void)kn_avro_reader_close(reader);
    kn_buf_done(&file);
}

static void a_block_cut_anywhere_is_corrupt(void **state)
{
    (void)state;
    for (KnAvroCodec codec = KN_AVRO_CODEC_NULL; codec <= KN_AVRO_CODEC_ZSTD; ++codec) {
        KnBuf none;
        KnBuf file;
        write_file(codec, 0, &none);
        write_file(codec, 20, &file);
        for (size_t cut = none.len + 1; cut < file.len; ++cut) {
            int64_t n;
            assert_int_equal(test_avro_walk(file.data, cut, &n, NULL), KN_E_CORRUPT);
        }
        kn_buf_done(&none);
        kn_buf_done(&file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_codec_comes_back),
        cmocka_unit_test(equal_input_gives_equal_bytes),
        cmocka_unit_test(blocks_close_at_64_kib),
        cmocka_unit_test(a_block_cut_anywhere_is_corrupt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

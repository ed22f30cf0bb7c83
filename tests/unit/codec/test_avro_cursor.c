/* SPDX-License-Identifier: Apache-2.0 */
/* test_avro_cursor.c - single values, blocks, skipping, and bytes that lie. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "unit/codec/support.h"

static void longs_of_every_length_come_back(void **state)
{
    (void)state;
    for (int shift = 0; shift < 64; ++shift) {
        for (int64_t add = -1; add <= 1; ++add) {
            int64_t v = (int64_t)((uint64_t)1 << shift) + (shift < 63 ? add : 0);
            KN_BUF_AUTO buf;
            kn_buf_init(&buf, 100);
            kn_avro_put_long(&buf, v);
            kn_avro_put_long(&buf, ~v);
            KnAvroCursor cur = {(uint8_t *)buf.data, (uint8_t *)buf.data + buf.len, 0};
            int64_t got;
            assert_int_equal(kn_avro_read_long(&cur, &got, NULL), KN_OK);
            assert_true(got == v);
            assert_int_equal(kn_avro_read_long(&cur, &got, NULL), KN_OK);
            assert_true(got == ~v);
            assert_int_equal(kn_avro_cursor_finish(&cur, NULL), KN_OK);
        }
    }
}

static void numbers_beyond_their_width_are_corrupt(void **state)
{
    (void)state;
    int64_t v = 7;
    int32_t i = 7;
    KnAvroCursor cur = TEST_CURSOR("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02");
    assert_int_equal(kn_avro_read_long(&cur, &v, NULL), KN_E_CORRUPT);
    cur = TEST_CURSOR("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01");
    assert_int_equal(kn_avro_read_long(&cur, &v, NULL), KN_E_CORRUPT);
    cur = TEST_CURSOR("\x80");
    assert_int_equal(kn_avro_read_long(&cur, &v, NULL), KN_E_CORRUPT);
    cur = TEST_CURSOR("\x80\x80\x80\x80\x10"); /* 2^31 */
    assert_int_equal(kn_avro_read_int(&cur, &i, NULL), KN_E_CORRUPT);
    assert_int_equal(v, 7);
    assert_int_equal(i, 7);
    cur = TEST_CURSOR("\xff\xff\xff\xff\x0f");
    assert_int_equal(kn_avro_read_int(&cur, &i, NULL), KN_OK);
    assert_int_equal(i, INT32_MIN);
}

static void floats_booleans_and_bytes_are_checked(void **state)
{
    (void)state;
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, 100);
    kn_avro_put_float(&buf, 1.5F);
    kn_avro_put_double(&buf, -0.25);
    kn_avro_put_boolean(&buf, true);
    kn_avro_put_bytes(&buf, KN_STR_LIT("abc"));
    KnAvroCursor cur = {(uint8_t *)buf.data, (uint8_t *)buf.data + buf.len, 0};
    float f;
    double d;
    bool b;
    KnStr s;
    assert_int_equal(kn_avro_read_float(&cur, &f, NULL), KN_OK);
    assert_int_equal(kn_avro_read_double(&cur, &d, NULL), KN_OK);
    assert_int_equal(kn_avro_read_boolean(&cur, &b, NULL), KN_OK);
    assert_int_equal(kn_avro_read_bytes(&cur, &s, NULL), KN_OK);
    assert_true(f == 1.5F && d == -0.25 && b && kn_str_eq(s, KN_STR_LIT("abc")));
    assert_int_equal(kn_avro_read_float(&cur, &f, NULL), KN_E_CORRUPT);
    assert_int_equal(kn_avro_read_double(&cur, &d, NULL), KN_E_CORRUPT);
    assert_int_equal(kn_avro_read_boolean(&cur, &b, NULL), KN_E_CORRUPT);
    cur = TEST_CURSOR("\x02");
    assert_int_equal(kn_avro_read_boolean(&cur, &b, NULL), KN_E_CORRUPT);
    cur = TEST_CURSOR("\x08"
                      "abc"); /* length 4, 3 there */
    assert_int_equal(kn_avro_read_bytes(&cur, &s, NULL), KN_E_CORRUPT);
    cur = TEST_CURSOR("\x01"); /* length -1 */
    assert_int_equal(kn_avro_read_bytes(&cur, &s, NULL), KN_E_CORRUPT);
    cur = TEST_CURSOR("ab");
    assert_int_equal(kn_avro_read_fixed(&cur, 3, &s, NULL), KN_E_CORRUPT);
    assert_int_equal(kn_avro_cursor_finish(&cur, NULL), KN_E_CORRUPT);
}

static void block_counts_are_held_to_the_bytes_left(void **state)
{
    (void)state;
    int64_t count;
    KnAvroCursor cur = TEST_CURSOR("\x03\x04\x02\x04"); /* -2 in 2 bytes */
    assert_int_equal(kn_avro_read_block_count(&cur, &count, NULL), KN_OK);
    assert_int_equal(count, 2);
    cur = TEST_CURSOR("\x03\x08\x02\x04"); /* 4 bytes, 2 there */
    assert_int_equal(kn_avro_read_block_count(&cur, &count, NULL), KN_E_CORRUPT);
    cur = TEST_CURSOR("\x03\x01"); /* -1 bytes */
    assert_int_equal(kn_avro_read_block_count(&cur, &count, NULL), KN_E_CORRUPT);
    cur = TEST_CURSOR("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00"); /* INT64_MIN */
    assert_int_equal(kn_avro_read_block_count(&cur, &count, NULL), KN_E_CORRUPT);
    cur = TEST_CURSOR("\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"); /* INT64_MAX */
    assert_int_equal(kn_avro_read_block_count(&cur, &count, NULL), KN_E_CORRUPT);
    cur = TEST_CURSOR("\x80\x80\x08"); /* 65536 of no bytes */
    assert_int_equal(kn_avro_read_block_count(&cur, &count, NULL), KN_OK);
    cur = TEST_CURSOR("\x82\x80\x08");
    assert_int_equal(kn_avro_read_block_count(&cur, &count, NULL), KN_E_CORRUPT);
}

static const KnAvroType *parse(KnArena *arena, const char *json)
{
    const KnAvroType *type;
    assert_int_equal(kn_avro_type_parse(arena, kn_str(json), &type, NULL), KN_OK);
    return type;
}

static void skipping_passes_over_every_kind(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const KnAvroType *type = parse(
        arena, "{\"type\":\"record\",\"name\":\"r\",\"fields\":["
               "{\"name\":\"n\",\"type\":\"null\"},{\"name\":\"b\",\"type\":\"boolean\"},"
               "{\"name\":\"i\",\"type\":\"int\"},{\"name\":\"f\",\"type\":\"float\"},"
               "{\"name\":\"d\",\"type\":\"double\"},{\"name\":\"s\",\"type\":\"string\"},"
               "{\"name\":\"x\",\"type\":{\"type\":\"fixed\",\"name\":\"fx\",\"size\":2}},"
               "{\"name\":\"e\",\"type\":{\"type\":\"enum\",\"name\":\"en\",\"symbols\":[\"A\"]}},"
               "{\"name\":\"u\",\"type\":[\"null\",\"long\"]},"
               "{\"name\":\"z\",\"type\":{\"type\":\"array\",\"items\":\"null\"}},"
               "{\"name\":\"a\",\"type\":{\"type\":\"array\",\"items\":\"long\"}},"
               "{\"name\":\"m\",\"type\":{\"type\":\"map\",\"values\":\"int\"}}]}");
    static const char data[] = "\x01\x02"                     /* b, i */
                               "ffff"                         /* f */
                               "dddddddd"                     /* d */
                               "\x04ss"                       /* s */
                               "xx"                           /* x */
                               "\x00"                         /* e */
                               "\x02\x08"                     /* u */
                               "\x06\x00"                     /* z: 3 nulls */
                               "\x02\x02\x03\x04\x02\x02\x00" /* a: one, then two by size */
                               "\x02\x02k\x02\x00";           /* m */
    KnAvroCursor cur = TEST_CURSOR(data);
    KnErr err = {0};
    KnCode code = kn_avro_skip(&cur, type, &err);
    assert_string_equal(err.msg, "");
    assert_int_equal(code, KN_OK);
    assert_int_equal(kn_avro_cursor_finish(&cur, NULL), KN_OK);
    for (size_t cut = 0; cut < sizeof(data) - 1; ++cut) {
        cur = (KnAvroCursor){(const uint8_t *)data, (const uint8_t *)data + cut, 0};
        assert_int_equal(kn_avro_skip(&cur, type, NULL), KN_E_CORRUPT);
    }
}

static void a_branch_that_is_not_there_is_corrupt(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const KnAvroType *type = parse(arena, "[\"null\",\"long\"]");
    const KnAvroType *branch;
    KnAvroCursor cur = TEST_CURSOR("\x04");
    assert_int_equal(kn_avro_read_branch(&cur, type, &branch, NULL), KN_E_CORRUPT);
    cur = TEST_CURSOR("\x01");
    assert_int_equal(kn_avro_read_branch(&cur, type, &branch, NULL), KN_E_CORRUPT);
    cur = TEST_CURSOR("\x02");
    assert_int_equal(kn_avro_read_branch(&cur, type, &branch, NULL), KN_OK);
    assert_int_equal(branch->kind, KN_AVRO_LONG);
    assert_int_equal(kn_avro_read_branch(&cur, branch, &branch, NULL), KN_OK);
    assert_int_equal(branch->kind, KN_AVRO_LONG);
}

static void data_of_a_recursive_type_ends_at_the_depth_limit(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const KnAvroType *list = parse(arena, "{\"type\":\"record\",\"name\":\"r\",\"fields\":["
                                          "{\"name\":\"next\",\"type\":[\"null\",\"r\"]}]}");
    uint8_t deep[100];
    memset(deep, 2, sizeof(deep));
    deep[20] = 0;
    KnAvroCursor cur = {deep, deep + sizeof(deep), 0};
    assert_int_equal(kn_avro_skip(&cur, list, NULL), KN_OK);
    assert_int_equal(cur.depth, 0);
    deep[20] = 2;
    cur = (KnAvroCursor){deep, deep + sizeof(deep), 0};
    KnErr err = {0};
    assert_int_equal(kn_avro_skip(&cur, list, &err), KN_E_CORRUPT);
    assert_non_null(strstr(err.msg, "deeper than 64"));
    const KnAvroType *endless = parse(arena, "{\"type\":\"record\",\"name\":\"r\",\"fields\":["
                                             "{\"name\":\"r\",\"type\":\"r\"}]}");
    cur = (KnAvroCursor){deep, deep + sizeof(deep), 0};
    assert_int_equal(kn_avro_skip(&cur, endless, NULL), KN_E_CORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(longs_of_every_length_come_back),
        cmocka_unit_test(numbers_beyond_their_width_are_corrupt),
        cmocka_unit_test(floats_booleans_and_bytes_are_checked),
        cmocka_unit_test(block_counts_are_held_to_the_bytes_left),
        cmocka_unit_test(skipping_passes_over_every_kind),
        cmocka_unit_test(a_branch_that_is_not_there_is_corrupt),
        cmocka_unit_test(data_of_a_recursive_type_ends_at_the_depth_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

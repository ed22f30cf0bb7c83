/* SPDX-License-Identifier: Apache-2.0 */
/* test_protobuf.c - messages by tables: bytes as other implementations write them, and bad ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codec/protobuf.h"

typedef struct Pair {
    const char *key, *value;
} Pair;

typedef struct All {
    bool flag;
    int64_t number;
    const char *text;
    KnStr bytes;
    KnPbTexts texts;
    Pair pair;
    KnPbMessages pairs;
} All;

static const KnPbField pair_fields[] = {
    {"key", 1, KN_PB_TEXT, offsetof(Pair, key), NULL},
    {"value", 2, KN_PB_TEXT, offsetof(Pair, value), NULL},
};
static const KnPbMessage pair_message = {"Pair", sizeof(Pair), pair_fields, 2};
static const KnPbField all_fields[] = {
    {"flag", 1, KN_PB_BOOL, offsetof(All, flag), NULL},
    {"number", 2, KN_PB_INT64, offsetof(All, number), NULL},
    {"text", 3, KN_PB_TEXT, offsetof(All, text), NULL},
    {"bytes", 4, KN_PB_BYTES, offsetof(All, bytes), NULL},
    {"texts", 5, KN_PB_TEXTS, offsetof(All, texts), NULL},
    {"pair", 6, KN_PB_MESSAGE, offsetof(All, pair), &pair_message},
    {"pairs", 100, KN_PB_MESSAGES, offsetof(All, pairs), &pair_message},
};
static const KnPbMessage all_message = {"All", sizeof(All), all_fields, 7};

/* What Google's Python implementation wrote for this message. */
static const char all_bytes[] = "\x08\x01\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x1a\x03"
                                "d\xc3\xa9\x22\x03\x00\x01\xff\x2a\x01"
                                "a\x2a\x00\x2a\x01"
                                "b\x32\x06\x0a\x01k\x12\x01v\xa2\x06\x00\xa2\x06\x03\x12\x01w";

static KnCode decode(KnArena *arena, const char *bytes, size_t len, All *ret, KnErr *err)
{
    return kn_pb_decode(&all_message, (KnStr){bytes, len}, arena, ret, err);
}

static void fields_of_all_kinds_are_read(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    All all;
    assert_int_equal(decode(arena, all_bytes, sizeof(all_bytes) - 1, &all, NULL), KN_OK);
    assert_true(all.flag);
    assert_int_equal(all.number, -1);
    assert_string_equal(all.text, "d\xc3\xa9");
    assert_true(kn_str_eq(all.bytes, KN_STR_LIT("\0\1\xff")));
    assert_int_equal(all.texts.n, 3);
    assert_string_equal(all.texts.items[0], "a");
    assert_string_equal(all.texts.items[1], "");
    assert_string_equal(all.texts.items[2], "b");
    assert_string_equal(all.pair.key, "k");
    assert_string_equal(all.pair.value, "v");
    const Pair *pairs = all.pairs.items;
    assert_int_equal(all.pairs.n, 2);
    assert_string_equal(pairs[0].key, "");
    assert_string_equal(pairs[1].value, "w");
}

static void what_was_read_is_written_the_same(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    All all;
    assert_int_equal(decode(arena, all_bytes, sizeof(all_bytes) - 1, &all, NULL), KN_OK);
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, 1 << 20);
    kn_pb_encode(&all_message, &all, &buf);
    assert_int_equal(buf.len, sizeof(all_bytes) - 1);
    assert_memory_equal(buf.data, all_bytes, buf.len);
}

static void nothing_is_written_for_zeros_and_read_as_such(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, 1 << 20);
    All all = {0};
    kn_pb_encode(&all_message, &all, &buf);
    assert_int_equal(buf.len, 0);
    memset(&all, 0xff, sizeof(all));
    assert_int_equal(decode(arena, "", 0, &all, NULL), KN_OK);
    assert_false(all.flag);
    assert_int_equal(all.number, 0);
    assert_string_equal(all.text, "");
    assert_int_equal(all.pairs.n, 0);
    assert_string_equal(all.pair.key, "");
}

static void long_messages_inside_have_long_lengths(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, 1 << 20);
    char *big = kn_arena_zalloc(arena, 70001);
    memset(big, 'x', 70000);
    All all = {.pair = {"k", big}}, back;
    kn_pb_encode(&all_message, &all, &buf);
    assert_int_equal(decode(arena, buf.data, buf.len, &back, NULL), KN_OK);
    assert_string_equal(back.pair.value, big);
}

static void fields_that_are_not_known_are_passed_over(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const char bytes[] = "\x3d\1\2\3\4\x39\1\2\3\4\5\6\7\x08\x38\x05\x3a\x02hi\x08\x01";
    All all;
    assert_int_equal(decode(arena, bytes, sizeof(bytes) - 1, &all, NULL), KN_OK);
    assert_true(all.flag);
}

static void every_cut_of_a_message_is_whole_or_corrupt(void **state)
{
    (void)state;
    size_t fine = 0;
    for (size_t len = 0; len < sizeof(all_bytes) - 1; ++len) {
        KN_ARENA_AUTO arena = kn_arena_new(0);
        All all;
        KnErr err = {0};
        KnCode rc = decode(arena, all_bytes, len, &all, &err);
        assert_true(rc == KN_OK || rc == KN_E_CORRUPT);
        if (rc == KN_OK)
            ++fine;
        else
            assert_non_null(strstr(err.msg, "protobuf message All"));
    }
    assert_int_equal(fine, 10); /* between fields */
}

static void wrong_bytes_are_corrupt(void **state)
{
    (void)state;
    const KnStr cases[] = {
        KN_STR_LIT("\x00\x01"),                                     /* field 0 */
        KN_STR_LIT("\x0b\x0c"),                                     /* a group */
        KN_STR_LIT("\x0f"),                                         /* wire type 7 */
        KN_STR_LIT("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), /* more than 64 bits */
        KN_STR_LIT("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"),
        KN_STR_LIT("\x0a\x01x"),        /* bytes for a bool */
        KN_STR_LIT("\x1a\x02\xc3\x28"), /* not UTF-8 */
        KN_STR_LIT("\x1a\x03"
                   "a\0b"),                                     /* a NUL in a text */
        KN_STR_LIT("\x2a\x01\xff"),                             /* not UTF-8, repeated */
        KN_STR_LIT("\x1a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), /* longer than everything */
        KN_STR_LIT("\x32\x03\x0a\x05k"),                        /* longer than what holds it */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        KN_ARENA_AUTO arena = kn_arena_new(0);
        All all;
        assert_int_equal(decode(arena, cases[i].ptr, cases[i].len, &all, NULL), KN_E_CORRUPT);
    }
}

static void a_flood_of_empty_elements_is_refused(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    size_t n = KN_PB_MAX_ITEMS + 1;
    char *bytes = malloc(2 * n);
    assert_non_null(bytes);
    for (size_t i = 0; i < n; ++i)
        memcpy(bytes + 2 * i, "\x2a", 2);
    All all;
    assert_int_equal(decode(arena, bytes, 2 * n, &all, NULL), KN_E_NOMEM);
    assert_int_equal(decode(arena, bytes, 2 * n - 2, &all, NULL), KN_OK);
    assert_int_equal(all.texts.n, KN_PB_MAX_ITEMS);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_of_all_kinds_are_read),
        cmocka_unit_test(what_was_read_is_written_the_same),
        cmocka_unit_test(nothing_is_written_for_zeros_and_read_as_such),
        cmocka_unit_test(long_messages_inside_have_long_lengths),
        cmocka_unit_test(fields_that_are_not_known_are_passed_over),
        cmocka_unit_test(every_cut_of_a_message_is_whole_or_corrupt),
        cmocka_unit_test(wrong_bytes_are_corrupt),
        cmocka_unit_test(a_flood_of_empty_elements_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_grpc_frame.c - prefixes, texts of statuses, timeouts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net/grpc_frame.h"

static void framed_messages_come_back_one_by_one(void **state)
{
    (void)state;
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, 1 << 20);
    const char *messages[] = {"first", "", "third"};
    for (int i = 0; i < 3; ++i) {
        size_t begin = kn_grpc_frame_begin(&buf);
        kn_buf_text(&buf, messages[i]);
        kn_grpc_frame_end(&buf, begin);
    }
    KnStr rest = {buf.data, buf.len}, message;
    for (int i = 0; i < 3; ++i) {
        assert_int_equal(kn_grpc_frame_next(&rest, &message, NULL), KN_OK);
        assert_true(kn_str_eq(message, kn_str(messages[i])));
    }
    assert_int_equal(rest.len, 0);
}

static void a_length_is_big_endian(void **state)
{
    (void)state;
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, 1 << 20);
    size_t begin = kn_grpc_frame_begin(&buf);
    char *bytes = kn_buf_reserve(&buf, 0x10203);
    assert_non_null(bytes);
    memset(bytes, 'x', 0x10203);
    buf.len += 0x10203;
    kn_grpc_frame_end(&buf, begin);
    assert_memory_equal(buf.data, "\0\0\1\2\3", 5);
}

static void a_cut_off_message_is_corrupt(void **state)
{
    (void)state;
    const char bytes[] = {0, 0, 0, 0, 3, 'a', 'b', 'c'};
    for (size_t len = 0; len < sizeof(bytes); ++len) {
        KnStr rest = {bytes, len}, message;
        KnErr err = {0};
        assert_int_equal(kn_grpc_frame_next(&rest, &message, &err), KN_E_CORRUPT);
        assert_non_null(strstr(err.msg, "cut off"));
    }
    KnStr rest = {bytes, sizeof(bytes)}, message;
    assert_int_equal(kn_grpc_frame_next(&rest, &message, NULL), KN_OK);
}

static void a_length_of_four_gigabytes_is_corrupt(void **state)
{
    (void)state;
    KnStr rest = KN_STR_LIT("\0\xff\xff\xff\xff...."), message;
    assert_int_equal(kn_grpc_frame_next(&rest, &message, NULL), KN_E_CORRUPT);
}

static void compressed_messages_are_refused_by_name(void **state)
{
    (void)state;
    KnErr err = {0};
    KnStr rest = KN_STR_LIT("\1\0\0\0\1x"), message;
    assert_int_equal(kn_grpc_frame_next(&rest, &message, &err), KN_E_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "compressed"));
    rest = KN_STR_LIT("\2\0\0\0\1x");
    assert_int_equal(kn_grpc_frame_next(&rest, &message, &err), KN_E_CORRUPT);
}

static void texts_survive_the_way_there_and_back(void **state)
{
    (void)state;
    const char *texts[] = {"plain", "100% sure", "line\nline\ttab", "Tabelle „Größe“ fehlt", ""};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); ++i) {
        KN_BUF_AUTO there;
        KN_BUF_AUTO back;
        kn_buf_init(&there, 4096);
        kn_buf_init(&back, 4096);
        kn_grpc_message_encode(&there, kn_str(texts[i]));
        for (size_t k = 0; k < there.len; ++k)
            assert_in_range(there.data[k], 0x20, 0x7e);
        kn_grpc_message_decode(&back, (KnStr){there.data, there.len});
        assert_true(kn_str_eq((KnStr){back.data, back.len}, kn_str(texts[i])));
    }
}

static void what_is_no_escape_stays(void **state)
{
    (void)state;
    KN_BUF_AUTO back;
    kn_buf_init(&back, 4096);
    kn_grpc_message_decode(&back, KN_STR_LIT("50% %zz %4 %41%"));
    assert_string_equal(back.data, "50% %zz %4 A%");
}

static void timeouts_have_a_unit_and_at_most_eight_digits(void **state)
{
    (void)state;
    const struct {
        const char *text;
        int64_t us;
    } good[] = {{"1H", 3600000000},
                {"2M", 120000000},
                {"10S", 10000000},
                {"250m", 250000},
                {"7u", 7},
                {"5000n", 5},
                {"99999999H", 99999999 * 3600000000LL},
                {"0S", 0}};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); ++i) {
        int64_t us = -1;
        assert_true(kn_grpc_timeout_parse(kn_str(good[i].text), &us));
        assert_int_equal(us, good[i].us);
    }
    const char *bad[] = {"", "S", "10", "-1S", "+1S", "1.5S", "123456789S", "1s", "1 S", "1SS"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i) {
        int64_t us;
        assert_false(kn_grpc_timeout_parse(kn_str(bad[i]), &us));
    }
}

static void codes_have_their_names(void **state)
{
    (void)state;
    assert_string_equal(kn_grpc_code_name(KN_GRPC_OK), "OK");
    assert_string_equal(kn_grpc_code_name(KN_GRPC_ABORTED), "ABORTED");
    assert_string_equal(kn_grpc_code_name(KN_GRPC_UNAUTHENTICATED), "UNAUTHENTICATED");
    assert_string_equal(kn_grpc_code_name(17), "?");
    assert_string_equal(kn_grpc_code_name(-1), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(framed_messages_come_back_one_by_one),
        cmocka_unit_test(a_length_is_big_endian),
        cmocka_unit_test(a_cut_off_message_is_corrupt),
        cmocka_unit_test(a_length_of_four_gigabytes_is_corrupt),
        cmocka_unit_test(compressed_messages_are_refused_by_name),
        cmocka_unit_test(texts_survive_the_way_there_and_back),
        cmocka_unit_test(what_is_no_escape_stays),
        cmocka_unit_test(timeouts_have_a_unit_and_at_most_eight_digits),
        cmocka_unit_test(codes_have_their_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_buf.c - growth, the declared maximum, stealing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/buf.h"

static void text_is_terminated_from_the_start(void **state)
{
    (void)state;
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, 1000);
    assert_string_equal(buf.data, "");
    kn_buf_text(&buf, "ab");
    kn_buf_char(&buf, 'c');
    kn_buf_str(&buf, (KnStr){"defg", 2});
    kn_buf_printf(&buf, "%d", 42);
    assert_string_equal(buf.data, "abcde42");
    kn_buf_reset(&buf);
    assert_string_equal(buf.data, "");
    assert_int_equal(buf.len, 0);
}

static void the_maximum_is_reached_but_not_passed(void **state)
{
    (void)state;
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, 100);
    for (int i = 0; i < 100; ++i)
        kn_buf_char(&buf, 'x');
    KnErr err = {0};
    assert_int_equal(kn_buf_check(&buf, &err), KN_OK);
    kn_buf_char(&buf, 'y');
    assert_int_equal(buf.len, 100);
    assert_int_equal(kn_buf_check(&buf, &err), KN_E_NOMEM);
    assert_string_equal(err.msg, "text or data grew beyond its limit of 100 bytes");
    kn_buf_reset(&buf);
    assert_int_equal(kn_buf_check(&buf, NULL), KN_OK);
}

static void failing_is_sticky(void **state)
{
    (void)state;
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, 3);
    kn_buf_text(&buf, "abcd");
    kn_buf_text(&buf, "a");
    assert_int_equal(buf.len, 0);
    assert_true(buf.failed);
    assert_null(kn_buf_reserve(&buf, 1));
    KnBuf zeroed = {0};
    kn_buf_text(&zeroed, "a");
    assert_true(zeroed.failed);
    kn_buf_done(&zeroed);
}

static void long_formatted_text_grows_the_buffer(void **state)
{
    (void)state;
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, 10000);
    kn_buf_printf(&buf, "%5000d|", 7);
    kn_buf_printf(&buf, "%255d|", 8);
    kn_buf_printf(&buf, "%256d|", 9);
    assert_int_equal(buf.len, 5001 + 256 + 257);
    assert_int_equal(strlen(buf.data), buf.len);
    kn_buf_printf(&buf, "%6000d", 1);
    assert_true(buf.failed);
}

static void reserved_room_is_committed_by_hand(void **state)
{
    (void)state;
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, 1000);
    char *p = kn_buf_reserve(&buf, 200);
    assert_non_null(p);
    memset(p, 'a', 150);
    buf.len += 150;
    kn_buf_char(&buf, 'b');
    assert_int_equal(strlen(buf.data), 151);
}

static void stolen_bytes_belong_to_the_caller(void **state)
{
    (void)state;
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, 1000);
    size_t len = 9;
    char *empty = kn_buf_steal(&buf, &len);
    assert_string_equal(empty, "");
    assert_int_equal(len, 0);
    free(empty);
    kn_buf_text(&buf, "abc");
    char *text = kn_buf_steal(&buf, &len);
    assert_string_equal(text, "abc");
    assert_int_equal(len, 3);
    free(text);
    assert_int_equal(buf.len, 0);
    kn_buf_text(&buf, "again");
    assert_string_equal(buf.data, "again");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_terminated_from_the_start),
        cmocka_unit_test(the_maximum_is_reached_but_not_passed),
        cmocka_unit_test(failing_is_sticky),
        cmocka_unit_test(long_formatted_text_grows_the_buffer),
        cmocka_unit_test(reserved_room_is_committed_by_hand),
        cmocka_unit_test(stolen_bytes_belong_to_the_caller),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_err.c - filling, wrapping, truncation, names, exit statuses. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"

static void a_failure_carries_code_place_and_message(void **state)
{
    (void)state;
    KnErr err = {0};
    assert_int_equal(kn_err_set(&err, KN_E_NOTFOUND, "file '%s'", "x"), KN_E_NOTFOUND);
    assert_int_equal(err.code, KN_E_NOTFOUND);
    assert_string_equal(err.msg, "file 'x'");
    assert_non_null(strstr(err.file, "test_err.c"));
    assert_true(err.line > 0);
    assert_false(err.retriable);
}

static void errno_is_kept_for_io_only(void **state)
{
    (void)state;
    KnErr err = {0};
    errno = ENOSPC;
    (void)kn_err_set(&err, KN_E_IO, "disk");
    assert_int_equal(err.sys_errno, ENOSPC);
    assert_true(err.retriable);
    (void)kn_err_set(&err, KN_E_CORRUPT, "file");
    assert_int_equal(err.sys_errno, 0);
    assert_string_equal(kn_errno_text(ENOSPC), "No space left on device");
    assert_string_equal(kn_errno_text(123456), "unknown system error");
}

static void a_null_error_only_hands_the_code_on(void **state)
{
    (void)state;
    assert_int_equal(kn_err_set(NULL, KN_E_IO, "x"), KN_E_IO);
    assert_int_equal(kn_err_wrap(NULL, KN_E_IO, "x"), KN_E_IO);
}

static void wrapping_prefixes_and_keeps_the_rest(void **state)
{
    (void)state;
    KnErr err = {0};
    errno = EIO;
    (void)kn_err_set(&err, KN_E_IO, "cause");
    assert_int_equal(kn_err_wrap(&err, KN_E_IO, "table %s", "a.b"), KN_E_IO);
    assert_string_equal(err.msg, "table a.b: cause");
    assert_int_equal(err.sys_errno, EIO);
    assert_int_equal(kn_err_wrap(&err, KN_OK, "nothing"), KN_OK);
    assert_string_equal(err.msg, "table a.b: cause");
}

static void a_long_message_loses_its_tail_visibly(void **state)
{
    (void)state;
    char long_text[1000];
    memset(long_text, 'a', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = '\0';
    KnErr err = {0};
    (void)kn_err_set(&err, KN_E_INVAL, "%s", long_text);
    assert_int_equal(strlen(err.msg), sizeof(err.msg) - 1);
    assert_string_equal(err.msg + sizeof(err.msg) - 4, "...");
    (void)kn_err_wrap(&err, KN_E_INVAL, "head");
    assert_memory_equal(err.msg, "head: aaa", 9);
    assert_string_equal(err.msg + sizeof(err.msg) - 4, "...");
    (void)kn_err_set(&err, KN_E_INVAL, "cause");
    (void)kn_err_wrap(&err, KN_E_INVAL, "%s", long_text);
    assert_string_equal(err.msg, "cause"); /* the cause is worth more than the context */
}

static void a_message_stays_one_line_and_may_use_the_old_one(void **state)
{
    (void)state;
    KnErr err = {0};
    (void)kn_err_set(&err, KN_E_INVAL, "two\nlines\tand\x7f");
    assert_string_equal(err.msg, "two lines and ");
    (void)kn_err_set(&err, KN_E_CORRUPT, "again: %s", err.msg);
    assert_string_equal(err.msg, "again: two lines and ");
}

static void bytes_that_are_no_text_are_shown_as_such(void **state)
{
    (void)state;
    KnErr err = {0};
    (void)kn_err_set(&err, KN_E_CORRUPT, "file %s", "a\xfb/\xc3\xa9\xe2\x82");
    assert_string_equal(err.msg, "file a?/\xc3\xa9??");
}

static void every_code_has_a_name_and_an_exit_status(void **state)
{
    (void)state;
    for (int i = 0; i < KN_E_MAX_; ++i) {
        assert_non_null(kn_code_name((KnCode)i));
        assert_true(strlen(kn_code_name((KnCode)i)) > 1);
    }
    assert_string_equal(kn_code_name(KN_E_MAX_), "?");
    assert_string_equal(kn_code_name(KN_E_CONFLICT), "commit-conflict");
    assert_int_equal(kn_code_exit_status(KN_OK), 0);
    assert_int_equal(kn_code_exit_status(KN_E_IO), 1);
    assert_int_equal(kn_code_exit_status(KN_E_INVAL), 2);
    assert_int_equal(kn_code_exit_status(KN_E_REFUSED), 3);
    assert_int_equal(kn_code_exit_status(KN_E_UNSUPPORTED), 3);
    assert_true(kn_code_retriable(KN_E_BUSY));
    assert_false(kn_code_retriable(KN_E_UNKNOWN));
}

static KnCode tried(KnCode code, int *reached)
{
    KN_TRY(code);
    *reached = 1;
    return KN_OK;
}

static void try_returns_on_failure_only(void **state)
{
    (void)state;
    int reached = 0;
    assert_int_equal(tried(KN_E_BUSY, &reached), KN_E_BUSY);
    assert_int_equal(reached, 0);
    assert_int_equal(tried(KN_OK, &reached), KN_OK);
    assert_int_equal(reached, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failure_carries_code_place_and_message),
        cmocka_unit_test(errno_is_kept_for_io_only),
        cmocka_unit_test(a_null_error_only_hands_the_code_on),
        cmocka_unit_test(wrapping_prefixes_and_keeps_the_rest),
        cmocka_unit_test(a_long_message_loses_its_tail_visibly),
        cmocka_unit_test(a_message_stays_one_line_and_may_use_the_old_one),
        cmocka_unit_test(bytes_that_are_no_text_are_shown_as_such),
        cmocka_unit_test(every_code_has_a_name_and_an_exit_status),
        cmocka_unit_test(try_returns_on_failure_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

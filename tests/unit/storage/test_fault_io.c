/* SPDX-License-Identifier: Apache-2.0 */
/* test_fault_io.c - every call of a sequence fails once, and what is left is seen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "unit/storage/file_io_cases.h"

typedef struct Fixture {
    KnFileIO *inner, *io;
} Fixture;

static void open_fault(Fixture *fx, uint64_t fail_at, KnCode code)
{
    assert_int_equal(kn_io_memory_open(&fx->inner, NULL), KN_OK);
    assert_int_equal(kn_io_fault_open(fx->inner, fail_at, code, &fx->io, NULL), KN_OK);
}

static void close_fault(Fixture *fx)
{
    fx->io = kn_io_close(fx->io);
    fx->inner = kn_io_close(fx->inner);
}

static KnCode ignore(void *arg, const KnFileInfo *info, KnErr *err)
{
    (void)arg, (void)info, (void)err;
    return KN_OK;
}

/* Uses every kind of call; two of them write. */
static KnCode sequence(KnFileIO *io, KnErr *err)
{
    KnStr a = KN_STR_LIT("memory://b/a"), b = KN_STR_LIT("memory://b/b");
    KnFileInfo info;
    char byte;
    KN_TRY(kn_io_prepare_dir(io, kn_str("memory://b"), err));
    KN_TRY(kn_io_write(io, a, "x", 1, KN_IO_CREATE, err));
    KN_TRY(kn_io_sync(io, a, err));
    KN_TRY(kn_io_stat(io, a, &info, err));
    KN_TRY(kn_io_read(io, a, 0, 1, &byte, err));
    KN_TRY(kn_io_list(io, kn_str("memory://b"), ignore, NULL, err));
    KN_TRY(kn_io_write(io, b, &byte, 1, KN_IO_REPLACE, err));
    return kn_io_remove(io, a, err);
}

static void without_a_fault_calls_are_only_counted(void **state)
{
    (void)state;
    Fixture fx;
    open_fault(&fx, 0, KN_OK);
    assert_int_equal(sequence(fx.io, NULL), KN_OK);
    assert_int_equal(kn_io_fault_calls(fx.io), 8);
    close_fault(&fx);
    open_fault(&fx, 0, KN_OK);
    check_file_io_contract(fx.io, "memory://bucket");
    close_fault(&fx);
}

static void each_call_fails_in_its_turn_and_leaves_what_came_before(void **state)
{
    (void)state;
    static const char *const left[] = {"", "", "a ", "a ", "a ", "a ", "a ", "a b "};
    static const char *const kinds[] = {"prepare_dir", "write", "sync",  "stat",
                                        "read",        "list",  "write", "remove"};
    for (uint64_t n = 1; n <= 8; ++n) {
        KN_ARENA_AUTO arena = kn_arena_new(0);
        Fixture fx;
        KnErr err = {0};
        open_fault(&fx, n, KN_E_IO);
        assert_int_equal(sequence(fx.io, &err), KN_E_IO);
        assert_string_equal(err.msg, kn_arena_printf(arena, "storage call %d (%s) was told to fail",
                                                     (int)n, kinds[n - 1]));
        assert_int_equal(kn_io_fault_calls(fx.io), n);
        assert_string_equal(listed(arena, fx.inner, "memory://b"), left[n - 1]);
        assert_int_equal(kn_io_remove(fx.io, kn_str("memory://b/a"), NULL), KN_OK); /* once only */
        close_fault(&fx);
    }
}

static void a_lost_answer_is_given_after_the_call(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    Fixture fx;
    open_fault(&fx, 1, KN_E_UNKNOWN);
    assert_int_equal(put(fx.io, kn_str("memory://b/a"), "x", KN_IO_CREATE), KN_E_UNKNOWN);
    assert_string_equal(listed(arena, fx.inner, "memory://b"), "a ");
    assert_int_equal(put(fx.io, kn_str("memory://b/a"), "x", KN_IO_CREATE), KN_E_EXISTS);
    close_fault(&fx);
    open_fault(&fx, 1, KN_E_UNKNOWN); /* a real failure is not hidden */
    KnFileInfo info = {.size = 5};
    assert_int_equal(kn_io_stat(fx.io, kn_str("memory://b/a"), &info, NULL), KN_E_NOTFOUND);
    assert_int_equal(info.size, 5);
    close_fault(&fx);
}

static void a_fault_that_is_no_fault_is_refused(void **state)
{
    (void)state;
    KnFileIO *io = NULL;
    assert_int_equal(kn_io_fault_open(NULL, 1, KN_OK, &io, NULL), KN_E_INVAL);
    assert_null(io);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_fault_calls_are_only_counted),
        cmocka_unit_test(each_call_fails_in_its_turn_and_leaves_what_came_before),
        cmocka_unit_test(a_lost_answer_is_given_after_the_call),
        cmocka_unit_test(a_fault_that_is_no_fault_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_memory.c - the contract on the scheme in memory. labels: threads */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "unit/storage/file_io_cases.h"

static int setup(void **state)
{
    return kn_io_memory_open((KnFileIO **)state, NULL) == KN_OK ? 0 : -1;
}

static int teardown(void **state)
{
    *state = kn_io_close(*state);
    return 0;
}

static void it_keeps_the_contract_under_any_scheme(void **state)
{
    check_file_io_contract(*state, "memory://bucket/base");
    check_file_io_contract(*state, "/plain/path");
}

static void one_of_eight_creators_wins(void **state)
{
    check_file_io_create_race(*state, "memory://race");
}

static void the_engine_cannot_read_it(void **state)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const char *path = NULL;
    assert_int_equal(kn_io_engine_path(*state, arena, kn_str("memory://x"), &path, NULL),
                     KN_E_UNSUPPORTED);
    assert_null(path);
}

static KnCode remove_listed(void *arg, const KnFileInfo *info, KnErr *err)
{
    return kn_io_remove(arg, kn_str(info->location), err);
}

static void a_listing_may_change_what_it_lists(void **state)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    assert_int_equal(put(*state, kn_str("memory://b/1"), "x", KN_IO_CREATE), KN_OK);
    assert_int_equal(put(*state, kn_str("memory://b/2"), "x", KN_IO_CREATE), KN_OK);
    assert_int_equal(kn_io_list(*state, kn_str("memory://b"), remove_listed, *state, NULL), KN_OK);
    assert_string_equal(listed(arena, *state, "memory://b"), "");
}

static void a_malformed_location_is_refused(void **state)
{
    assert_int_equal(put(*state, kn_str(""), "x", KN_IO_CREATE), KN_E_INVAL);
    assert_int_equal(put(*state, kn_str("s3:/x"), "x", KN_IO_CREATE), KN_E_INVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_keeps_the_contract_under_any_scheme, setup, teardown),
        cmocka_unit_test_setup_teardown(one_of_eight_creators_wins, setup, teardown),
        cmocka_unit_test_setup_teardown(the_engine_cannot_read_it, setup, teardown),
        cmocka_unit_test_setup_teardown(a_listing_may_change_what_it_lists, setup, teardown),
        cmocka_unit_test_setup_teardown(a_malformed_location_is_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

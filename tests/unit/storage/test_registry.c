/* SPDX-License-Identifier: Apache-2.0 */
/* test_registry.c - from a location to its scheme's implementation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "storage/file_io.h"

static void local_locations_open_the_local_scheme(void **state)
{
    (void)state;
    static const char *const locations[] = {"/a/b", "file:/a", "file:///a", "FILE:///a"};
    for (size_t i = 0; i < sizeof(locations) / sizeof(locations[0]); ++i) {
        KnFileIO *io = NULL;
        assert_int_equal(kn_io_open_for(kn_str(locations[i]), &io, NULL), KN_OK);
        assert_string_equal(io->ops->scheme, "file");
        io = kn_io_close(io);
        assert_null(io);
    }
    assert_null(kn_io_close(NULL));
}

static void object_stores_open_without_looking_for_anything(void **state)
{
    (void)state;
    static const char *const locations[] = {"s3://b/k", "s3a://b/k", "s3n://b"};
    for (size_t i = 0; i < sizeof(locations) / sizeof(locations[0]); ++i) {
        KnFileIO *io = NULL;
        assert_int_equal(kn_io_open_for(kn_str(locations[i]), &io, NULL), KN_OK);
        assert_string_equal(io->ops->scheme, "s3");
        io = kn_io_close(io);
    }
}

static void unknown_schemes_are_unsupported_and_named(void **state)
{
    (void)state;
    KnFileIO *io = NULL;
    KnErr err = {0};
    assert_int_equal(kn_io_open_for(kn_str("gs://b/k"), &io, &err), KN_E_UNSUPPORTED);
    assert_non_null(
        strstr(err.msg, "storage 'gs' is not supported (supported: file, s3, s3a, s3n)"));
    assert_int_equal(kn_io_open_for(kn_str("memory://b/k"), &io, &err), KN_E_UNSUPPORTED);
    assert_int_equal(kn_io_open_for(kn_str("://"), &io, &err), KN_E_INVAL);
    assert_null(io);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(local_locations_open_the_local_scheme),
        cmocka_unit_test(object_stores_open_without_looking_for_anything),
        cmocka_unit_test(unknown_schemes_are_unsupported_and_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_s3.c - the contract over an endpoint in this process; what is particular to object stores.
 * labels: threads */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fault.h"
#include "base/path.h"
#include "support/tempdir.h"
#include "unit/storage/file_io_cases.h"
#include "unit/storage/s3_fake.h"

typedef struct Fixture {
    S3Fake *fake;
    KnFileIO *io;
    KnArena *arena;
    KnBuf log;
    KnErr err;
    char dir[256];
} Fixture;

static Fixture fx;

static int setup(void **state)
{
    (void)state;
    fx = (Fixture){.fake = s3_fake_start(), .arena = kn_arena_new(0)};
    kn_buf_init(&fx.log, 1 << 20);
    (void)setenv("TMPDIR", test_tempdir_make(fx.dir), 1);
    const KnS3Options options = s3_fake_options(fx.fake);
    return kn_io_s3_open(&options, &fx.io, NULL) == KN_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    fx.io = kn_io_close(fx.io);
    fx.fake = s3_fake_stop(fx.fake);
    fx.arena = kn_arena_free(fx.arena);
    kn_buf_done(&fx.log);
    test_tempdir_remove(fx.dir);
    (void)unsetenv("TMPDIR");
    return 0;
}

static KnFileIO *open_with(const KnS3Options *options)
{
    KnFileIO *io = NULL;
    assert_int_equal(kn_io_s3_open(options, &io, NULL), KN_OK);
    return io;
}

static const char *requests(void)
{
    s3_fake_log(fx.fake, &fx.log);
    return fx.log.data;
}

static void it_keeps_the_contract(void **state)
{
    (void)state;
    check_file_io_contract(fx.io, "s3://lake/wh");
    check_file_io_contract(fx.io, "s3a://lake/other");
    s3_fake_disorder(fx.fake, true);
    check_file_io_contract(fx.io, "s3://lake2/some where");
}

static void one_of_eight_creators_wins(void **state)
{
    (void)state;
    KnS3Options options = s3_fake_options(fx.fake);
    options.part_bytes = 40000; /* so that what races is the completion of uploads */
    KnFileIO *io = open_with(&options);
    check_file_io_create_race(io, "s3://lake/race");
    io = kn_io_close(io);
    assert_int_equal(s3_fake_open_uploads(fx.fake), 0);
}

static void strange_keys_are_encoded_once(void **state)
{
    (void)state;
    KnStr x = kn_str("s3://lake/dt=2024-05-22/a b+c%25\xc3\xa9@:!'()*&<x>/../y");
    assert_int_equal(put(fx.io, x, "one", KN_IO_CREATE), KN_OK);
    assert_string_equal(requests(), "PUT /lake/dt%3D2024-05-22/a%20b%2Bc%2525%C3%A9%40%3A%21%27%28"
                                    "%29%2A%26%3Cx%3E/../y\n");
    assert_string_equal(get(fx.arena, fx.io, x), "one");
    assert_string_equal(listed(fx.arena, fx.io, "s3://lake/dt=2024-05-22"),
                        "a b+c%25\xc3\xa9@:!'()*&<x>/../y ");
    assert_int_equal(kn_io_remove(fx.io, x, NULL), KN_OK);
    assert_string_equal(listed(fx.arena, fx.io, "s3://lake"), "");
}

static void bad_locations_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"s3://",      "s3:///k",    "s3://-b/k",
                                      "s3://b c/k", "s3://b@h/k", "s3://a..b/k",
                                      "gs://b/k",   "/b/k",       "s3://b:80/k"};
    KnFileInfo info;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i)
        assert_int_equal(kn_io_stat(fx.io, kn_str(bad[i]), &info, &fx.err), KN_E_INVAL);
    assert_int_equal(kn_io_stat(fx.io, kn_str("s3://b/"), &info, &fx.err), KN_E_INVAL);
    assert_non_null(strstr(fx.err.msg, "is a bucket, not an object in it"));
    KnS3Options options = s3_fake_options(fx.fake);
    options.bucket = "lake";
    KnFileIO *only = open_with(&options);
    assert_int_equal(kn_io_stat(only, kn_str("s3://other/k"), &info, &fx.err), KN_E_REFUSED);
    only = kn_io_close(only);
    assert_string_equal(requests(), "");
}

static void bad_options_are_refused(void **state)
{
    (void)state;
    static const char *const endpoints[] = {"127.0.0.1:9000", "http://",      "http://h/path",
                                            "ftp://h",        "http://h?x=1", "http://u:geheim@h"};
    KnFileIO *io = NULL;
    for (size_t i = 0; i < sizeof(endpoints) / sizeof(endpoints[0]); ++i) {
        const KnS3Options options = {.endpoint = endpoints[i]};
        assert_int_equal(kn_io_s3_open(&options, &io, &fx.err), KN_E_INVAL);
        assert_non_null(strstr(fx.err.msg, "S3 endpoint"));
        assert_null(strstr(fx.err.msg, "geheim"));
    }
    const KnS3Options no_ca = {.ca_file = "/no/such.pem"};
    assert_int_equal(kn_io_s3_open(&no_ca, &io, &fx.err), KN_E_INVAL);
    const KnS3Options no_region = {.region = "eu/../x"};
    assert_int_equal(kn_io_s3_open(&no_region, &io, &fx.err), KN_E_INVAL);
}

static void one_byte_and_whole_objects_cost_one_request_each(void **state)
{
    (void)state;
    KnStr x = kn_str("s3://lake/x");
    assert_int_equal(put(fx.io, x, "0123456789", KN_IO_CREATE), KN_OK);
    (void)requests();
    char byte = 0, range[64];
    assert_int_equal(kn_io_read(fx.io, x, 5, 1, &byte, NULL), KN_OK);
    assert_int_equal(byte, '5');
    assert_string_equal(s3_fake_header(fx.fake, "Range", range, sizeof(range)), "bytes=5-5");
    assert_string_equal(get(fx.arena, fx.io, x), "0123456789");
    assert_string_equal(requests(), "GET /lake/x\nGET /lake/x\n");
}

static void near_ranges_are_fetched_as_one_and_long_ones_in_pieces(void **state)
{
    (void)state;
    enum { N = 700000 };
    char *bytes = kn_arena_alloc(fx.arena, N + 1), *out = kn_arena_zalloc(fx.arena, N + 1);
    for (int i = 0; i < N; ++i)
        bytes[i] = (char)('a' + i % 23);
    KnS3Options options = s3_fake_options(fx.fake);
    options.part_bytes = 300000;
    KnFileIO *io = open_with(&options);
    KnStr x = kn_str("s3://lake/big");
    assert_int_equal(kn_io_write(io, x, bytes, N, KN_IO_CREATE, NULL), KN_OK);
    (void)requests();
    assert_int_equal(kn_io_read(io, x, 0, N, out, NULL), KN_OK);
    assert_memory_equal(bytes, out, N);
    assert_string_equal(requests(), "GET /lake/big\nGET /lake/big\n");
    char a[5] = "", b[5] = "", c[5] = "", d[5] = "";
    const KnIoRange ranges[] = {{100, 4, c}, {10, 4, a}, {12, 4, b}, {500000, 4, d}, {7, 0, NULL}};
    assert_int_equal(kn_io_read_ranges(io, x, ranges, 5, NULL), KN_OK);
    assert_memory_equal(a, bytes + 10, 4);
    assert_memory_equal(b, bytes + 12, 4);
    assert_memory_equal(c, bytes + 100, 4);
    assert_memory_equal(d, bytes + 500000, 4);
    assert_string_equal(requests(), "GET /lake/big\nGET /lake/big\n");
    const KnIoRange beyond = {N - 2, 4, a};
    assert_int_equal(kn_io_read_ranges(io, x, &beyond, 1, &fx.err), KN_E_CORRUPT);
    assert_non_null(strstr(fx.err.msg, "is truncated"));
    io = kn_io_close(io);
}

static void large_objects_go_in_parts(void **state)
{
    (void)state;
    char bytes[3500];
    memset(bytes, 'x', sizeof(bytes));
    bytes[1000] = 'y';
    KnStr x = kn_str("s3://lake/parts");
    assert_int_equal(kn_io_write(fx.io, x, bytes, sizeof(bytes), KN_IO_CREATE, &fx.err), KN_OK);
    const char *seen = requests();
    assert_non_null(strstr(seen, "POST /lake/parts?uploads=\n"));
    assert_non_null(strstr(seen, "PUT /lake/parts?partNumber=4&uploadId=u%2B1\n"));
    assert_null(strstr(seen, "partNumber=5"));
    char back[3500];
    assert_int_equal(kn_io_read(fx.io, x, 0, sizeof(back), back, NULL), KN_OK);
    assert_memory_equal(bytes, back, sizeof(bytes));
    assert_int_equal(kn_io_write(fx.io, x, bytes, sizeof(bytes), KN_IO_CREATE, &fx.err),
                     KN_E_EXISTS);
    assert_int_equal(kn_io_write(fx.io, x, bytes, sizeof(bytes), KN_IO_REPLACE, &fx.err), KN_OK);
    assert_int_equal(s3_fake_open_uploads(fx.fake), 0);
}

static void a_failed_upload_is_aborted(void **state)
{
    (void)state;
    char bytes[3500] = "";
    s3_fake_fault(fx.fake, &(FakeFault){"partNumber=3", 1, FAKE_ANSWER, 403, NULL, ""});
    assert_int_equal(
        kn_io_write(fx.io, kn_str("s3://lake/p"), bytes, sizeof(bytes), KN_IO_CREATE, &fx.err),
        KN_E_IO);
    assert_non_null(strstr(fx.err.msg, "s3 UploadPart 's3://lake/p': HTTP 403 Forbidden"));
    assert_int_equal(s3_fake_open_uploads(fx.fake), 0);
    assert_non_null(strstr(requests(), "DELETE /lake/p?uploadId="));
    assert_string_equal(listed(fx.arena, fx.io, "s3://lake"), "");
}

static void batches_are_removed_with_one_request(void **state)
{
    (void)state;
    KnStr many[8];
    KnErr errs[8];
    for (int i = 0; i < 8; ++i) {
        many[i] = kn_str(
            kn_arena_printf(fx.arena, "s3://lake/%s%d", i == 3 ? "protected-" : "f & g/", i));
        if (i != 5)
            assert_int_equal(put(fx.io, many[i], "x", KN_IO_CREATE), KN_OK);
    }
    many[7] = kn_str("not a location");
    (void)requests();
    kn_io_remove_many(fx.io, many, 8, errs);
    assert_string_equal(requests(), "POST /lake?delete=\n");
    for (int i = 0; i < 7; ++i)
        assert_int_equal(errs[i].code, i == 3 ? KN_E_IO : KN_OK);
    assert_string_equal(errs[3].msg, "s3 DeleteObjects 's3://lake/protected-3': AccessDenied: no");
    assert_int_equal(errs[7].code, KN_E_INVAL);
    s3_fake_fault(fx.fake, &(FakeFault){"?delete=", 1, FAKE_ANSWER, 501, NULL, ""});
    assert_int_equal(put(fx.io, many[0], "x", KN_IO_CREATE), KN_OK);
    kn_io_remove_many(fx.io, many, 2, errs); /* a store without batches */
    assert_int_equal(errs[0].code, KN_OK);
    assert_int_equal(kn_io_stat(fx.io, many[0], &(KnFileInfo){0}, NULL), KN_E_NOTFOUND);
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void what_the_engine_writes_is_visible_after_sync_only(void **state)
{
    (void)state;
    const char *target = NULL, *path = NULL;
    KnStr folder = kn_str("s3://lake/t/data/p=1"), file = kn_str("s3://lake/t/data/p=1/f.parquet");
    assert_int_equal(kn_io_prepare_dir(fx.io, folder, &fx.err), KN_OK);
    assert_int_equal(kn_io_engine_target(fx.io, fx.arena, folder, &target, &fx.err), KN_OK);
    path = kn_arena_printf(fx.arena, "%s/f.parquet", target);
    write_text(path, "bytes");
    assert_string_equal(listed(fx.arena, fx.io, "s3://lake"), "");
    assert_int_equal(kn_io_sync(fx.io, file, &fx.err), KN_OK);
    assert_string_equal(get(fx.arena, fx.io, file), "bytes");
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(kn_io_sync(fx.io, file, &fx.err), KN_OK); /* nothing more to do */
    write_text(path, "again");
    assert_int_equal(kn_io_sync(fx.io, folder, &fx.err), KN_E_EXISTS); /* names are new, or wrong */
    assert_int_equal(kn_io_remove(fx.io, file, NULL), KN_OK);          /* the staged one as well */
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(kn_io_engine_path(fx.io, fx.arena, file, &path, NULL), KN_OK);
    assert_string_equal(path, "s3://lake/t/data/p=1/f.parquet");
    assert_int_equal(
        kn_io_engine_target(fx.io, fx.arena, kn_str("s3://lake/../../etc"), &path, &fx.err),
        KN_E_UNSUPPORTED);
    fx.io = kn_io_close(fx.io);
    assert_int_equal(test_dir_count(fx.dir), 0);
}

static void the_engine_is_told_how_to_get_there(void **state)
{
    (void)state;
    KnIoAccess access_ = {0};
    assert_int_equal(kn_io_engine_access(fx.io, fx.arena, kn_str("s3a://lake/k"), &access_, NULL),
                     KN_OK);
    assert_true(access_.remote && access_.path_style && !access_.tls);
    assert_string_equal(access_.scope, "s3://lake/");
    assert_string_equal(access_.access_key_id, "the-key");
    assert_string_equal(access_.endpoint,
                        kn_arena_printf(fx.arena, "127.0.0.1:%d", s3_fake_port(fx.fake)));
    const KnS3Keys keys = {"k", "s", "t", 0};
    const KnS3Options aws = {.region = "eu-north-1", .keys = &keys, .scope = "s3a://b/p/"};
    KnFileIO *io = open_with(&aws);
    assert_int_equal(kn_io_engine_access(io, fx.arena, kn_str("s3://b/p/k"), &access_, NULL),
                     KN_OK);
    assert_true(access_.tls && !access_.path_style);
    assert_string_equal(access_.endpoint, "s3.eu-north-1.amazonaws.com");
    assert_string_equal(access_.scope, "s3://b/p/");
    assert_int_equal(kn_io_engine_access(io, fx.arena, kn_str("s3://b.c/k"), &access_, NULL),
                     KN_OK);
    assert_true(access_.path_style); /* certificates do not cover a dotted bucket */
    io = kn_io_close(io);
}

static void a_fault_after_the_write_is_unknown(void **state)
{
    (void)state;
    assert_int_equal(kn_fault_set("io-write-after:1:fail", NULL, NULL), KN_OK);
    assert_int_equal(kn_io_write(fx.io, kn_str("s3://lake/x"), "x", 1, KN_IO_CREATE, &fx.err),
                     KN_E_UNKNOWN);
    assert_int_equal(kn_fault_set(NULL, NULL, NULL), KN_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        TEST(it_keeps_the_contract),
        TEST(one_of_eight_creators_wins),
        TEST(strange_keys_are_encoded_once),
        TEST(bad_locations_are_refused),
        TEST(bad_options_are_refused),
        TEST(one_byte_and_whole_objects_cost_one_request_each),
        TEST(near_ranges_are_fetched_as_one_and_long_ones_in_pieces),
        TEST(large_objects_go_in_parts),
        TEST(a_failed_upload_is_aborted),
        TEST(batches_are_removed_with_one_request),
        TEST(what_the_engine_writes_is_visible_after_sync_only),
        TEST(the_engine_is_told_how_to_get_there),
        TEST(a_fault_after_the_write_is_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

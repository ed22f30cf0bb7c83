/* SPDX-License-Identifier: Apache-2.0 */
/* test_s3_faults.c - an endpoint that says no, says nonsense, says nothing, or says it too late.
 * labels: threads */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"
#include "unit/storage/file_io_cases.h"
#include "unit/storage/s3_fake.h"

#define X "s3://lake/x"

typedef struct Fixture {
    S3Fake *fake;
    KnFileIO *io;
    KnArena *arena;
    KnBuf log;
    KnErr err;
} Fixture;

static Fixture fx;

static int setup(void **state)
{
    (void)state;
    fx = (Fixture){.fake = s3_fake_start(), .arena = kn_arena_new(0)};
    kn_buf_init(&fx.log, 1 << 20);
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
    return 0;
}

static int n_requests(void)
{
    int n = 0;
    s3_fake_log(fx.fake, &fx.log);
    for (const char *p = fx.log.data; (p = strchr(p, '\n')); ++p)
        ++n;
    return n;
}

static void fault(const char *match, FakeAction action, int times)
{
    s3_fake_fault(fx.fake, &(FakeFault){.match = match, .times = times, .action = action});
}

static void answer(const char *match, int times, int status, const char *body)
{
    s3_fake_fault(fx.fake, &(FakeFault){match, times, FAKE_ANSWER, status, NULL, body});
}

/* ---- the operations, one by one ---- */

static KnCode do_stat(KnErr *err)
{
    KnFileInfo info;
    return kn_io_stat(fx.io, kn_str(X), &info, err);
}

static KnCode do_read(KnErr *err)
{
    char byte;
    return kn_io_read(fx.io, kn_str(X), 0, 1, &byte, err);
}

static KnCode do_read_all(KnErr *err)
{
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, 100);
    return kn_io_read_all(fx.io, kn_str(X), 100, &buf, err);
}

static KnCode do_create(KnErr *err)
{
    return kn_io_write(fx.io, kn_str(X), "new", 3, KN_IO_CREATE, err);
}

static KnCode do_replace(KnErr *err)
{
    return kn_io_write(fx.io, kn_str(X), "new", 3, KN_IO_REPLACE, err);
}

static KnCode do_parts(KnErr *err)
{
    static char bytes[2500];
    return kn_io_write(fx.io, kn_str(X), bytes, sizeof(bytes), KN_IO_REPLACE, err);
}

static KnCode ignore(void *arg, const KnFileInfo *info, KnErr *err)
{
    (void)arg, (void)info, (void)err;
    return KN_OK;
}

static KnCode do_list(KnErr *err)
{
    return kn_io_list(fx.io, kn_str("s3://lake"), ignore, NULL, err);
}

static KnCode do_remove(KnErr *err)
{
    return kn_io_remove(fx.io, kn_str(X), err);
}

static KnCode do_remove_many(KnErr *err)
{
    const KnStr two[] = {kn_str(X), kn_str("s3://lake/y")};
    KnErr errs[2];
    kn_io_remove_many(fx.io, two, 2, errs);
    if (errs[1].code == KN_OK)
        return errs[1].code;
    if (err)
        *err = errs[1];
    return errs[1].code;
}

typedef struct Operation {
    const char *name;
    KnCode (*run)(KnErr *err);
    const char *location;
    bool has_body; /* of the answer */
} Operation;

static const Operation operations[] = {
    {"HeadObject", do_stat, "'s3://lake/x'", false},
    {"GetObject", do_read, "'s3://lake/x'", true},
    {"GetObject", do_read_all, "'s3://lake/x'", true},
    {"PutObject", do_create, "'s3://lake/x'", true},
    {"PutObject", do_replace, "'s3://lake/x'", true},
    {"CreateMultipartUpload", do_parts, "'s3://lake/x'", true},
    {"ListObjectsV2", do_list, "'s3://lake'", true},
    {"DeleteObject", do_remove, "'s3://lake/x'", true},
    {"DeleteObjects", do_remove_many, "'s3://lake/x'", true},
};
enum { N_OPERATIONS = sizeof(operations) / sizeof(operations[0]) };

static const char denied[] =
    "<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code><Message>Access "
    "Denied by policy.</Message><RequestId>REQ-7</RequestId></Error>";

/* ---- the matrix ---- */

static void every_answer_outside_2xx_is_an_error_of_every_operation(void **state)
{
    (void)state;
    static const int statuses[] = {300, 301, 302, 304, 307, 308, 400, 401, 403, 405, 418, 499};
    for (size_t i = 0; i < N_OPERATIONS; ++i) {
        for (size_t j = 0; j < sizeof(statuses) / sizeof(statuses[0]); ++j) {
            const Operation *op = &operations[i];
            answer("", 1, statuses[j], denied);
            (void)n_requests();
            KnCode rc = op->run(&fx.err);
            if (rc != KN_E_IO)
                print_error("%s %d: %d %s\n", op->name, statuses[j], rc, fx.err.msg);
            assert_int_equal(rc, KN_E_IO);
            assert_false(fx.err.retriable);
            assert_int_equal(n_requests(), 1); /* never again */
            assert_non_null(
                strstr(fx.err.msg, kn_arena_printf(fx.arena, "s3 %s %s: HTTP %d ", op->name,
                                                   op->location, statuses[j])));
            if (op->has_body && statuses[j] != 304) {
                assert_non_null(strstr(fx.err.msg, "AccessDenied: Access Denied by policy."));
                assert_non_null(strstr(fx.err.msg, "(request REQ-7)"));
            }
        }
    }
}

static void an_empty_body_or_html_still_reads_as_a_sentence(void **state)
{
    (void)state;
    answer("GET", 1, 403, "");
    assert_int_equal(do_read(&fx.err), KN_E_IO);
    assert_string_equal(fx.err.msg, "s3 GetObject 's3://lake/x': HTTP 403 Forbidden; the "
                                    "credentials lack the permission for this");
    answer("GET", 1, 302, "<html>\n <h1>Log   in</h1></html>");
    assert_int_equal(do_read(&fx.err), KN_E_IO);
    assert_string_equal(
        fx.err.msg, "s3 GetObject 's3://lake/x': HTTP 302 Found: <html> <h1>Log in</h1></html>");
}

static void a_long_name_leaves_room_for_the_reason(void **state)
{
    (void)state;
    char key[900];
    memset(key, 'k', sizeof(key));
    key[sizeof(key) - 1] = '\0';
    KnFileInfo info;
    answer("HEAD", 1, 403, "");
    const char *location = kn_arena_printf(fx.arena, "s3://lake/%s", key);
    assert_int_equal(kn_io_stat(fx.io, kn_str(location), &info, &fx.err), KN_E_IO);
    assert_non_null(strstr(fx.err.msg, "kkk...': HTTP 403 Forbidden; the credentials lack"));
}

static void what_is_not_there_is_told_apart(void **state)
{
    (void)state;
    assert_int_equal(do_stat(&fx.err), KN_E_NOTFOUND);
    assert_int_equal(do_read(&fx.err), KN_E_NOTFOUND);
    assert_non_null(strstr(fx.err.msg, "NoSuchKey: The specified key does not exist."));
    assert_int_equal(do_remove(&fx.err), KN_OK);
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, 10);
    assert_int_equal(kn_io_read_all(fx.io, kn_str("s3://nosuch/x"), 10, &buf, &fx.err),
                     KN_E_NOTFOUND);
    assert_non_null(strstr(fx.err.msg, "NoSuchBucket: The specified bucket does not exist; check "
                                       "the bucket's name"));
    assert_int_equal(kn_io_remove(fx.io, kn_str("s3://nosuch/x"), &fx.err), KN_E_NOTFOUND);
    assert_int_equal(kn_io_list(fx.io, kn_str("s3://nosuch/x"), ignore, NULL, &fx.err),
                     KN_E_NOTFOUND);
}

static void what_may_pass_is_tried_again(void **state)
{
    (void)state;
    static const int statuses[] = {429, 500, 502, 503, 504};
    for (size_t i = 0; i < N_OPERATIONS; ++i) {
        for (size_t j = 0; j < sizeof(statuses) / sizeof(statuses[0]); ++j) {
            s3_fake_put(fx.fake, "lake/x", "old", "");
            if (operations[i].run == do_create)
                assert_int_equal(do_remove(NULL), KN_OK);
            answer("", 3, statuses[j], "");
            assert_int_equal(operations[i].run(&fx.err), KN_OK);
            if (operations[i].run == do_create)
                assert_int_equal(do_remove(NULL), KN_OK);
            answer("", 4, statuses[j], denied);
            if (operations[i].run(&fx.err) != KN_E_IO)
                fail_msg("%s %d: %s", operations[i].name, statuses[j], fx.err.msg);
            assert_true(fx.err.retriable);
            assert_non_null(strstr(fx.err.msg, kn_arena_printf(fx.arena, "HTTP %d", statuses[j])));
        }
    }
}

static void a_connection_that_ends_early_is_tried_again(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_OPERATIONS; ++i) {
        s3_fake_put(fx.fake, "lake/x", "old bytes", "");
        if (operations[i].run == do_create)
            assert_int_equal(do_remove(NULL), KN_OK);
        fault("", FAKE_HANG_UP, 1);
        assert_int_equal(operations[i].run(&fx.err), KN_OK);
        s3_fake_put(fx.fake, "lake/x", "old bytes", "");
        if (operations[i].run == do_create)
            assert_int_equal(do_remove(NULL), KN_OK);
        fault("", FAKE_HALF, 1);
        assert_int_equal(operations[i].run(&fx.err), KN_OK);
        s3_fake_fault(fx.fake, NULL);
    }
}

static void a_body_that_is_cut_off_again_and_again_is_an_error(void **state)
{
    (void)state;
    s3_fake_put(fx.fake, "lake/x", "0123456789", "");
    char out[10];
    fault("GET", FAKE_HALF, 100);
    assert_int_equal(kn_io_read(fx.io, kn_str(X), 0, 10, out, &fx.err), KN_E_IO);
    assert_true(fx.err.retriable);
    assert_non_null(strstr(fx.err.msg, "s3 GetObject 's3://lake/x': http://127.0.0.1:"));
    assert_int_equal(do_list(&fx.err), KN_E_IO);
}

static void silence_is_a_timeout_and_then_tried_again(void **state)
{
    (void)state;
    KnS3Options options = s3_fake_options(fx.fake);
    options.stall_ms = 1000; /* a busy machine answers in that time */
    KnFileIO *io = NULL;
    char out[10] = "";
    assert_int_equal(kn_io_s3_open(&options, &io, NULL), KN_OK);
    s3_fake_put(fx.fake, "lake/x", "0123456789", "");
    fault("GET", FAKE_HALF_SILENCE, 1);
    assert_int_equal(kn_io_read(io, kn_str(X), 0, 10, out, &fx.err), KN_OK);
    assert_memory_equal(out, "0123456789", 10);
    io = kn_io_close(io);
    options.stall_ms = 100;
    assert_int_equal(kn_io_s3_open(&options, &io, NULL), KN_OK);
    fault("GET", FAKE_DO_SILENCE, 100);
    assert_int_equal(kn_io_read(io, kn_str(X), 0, 10, out, &fx.err), KN_E_IO);
    assert_non_null(strstr(fx.err.msg, "no byte moved for 0.1 s (no answer came)"));
    io = kn_io_close(io);
}

/* ---- writes whose answer is lost ---- */

static void a_create_that_took_effect_is_recognised_as_ours(void **state)
{
    (void)state;
    static const FakeAction lost[] = {FAKE_DO_HANG_UP, FAKE_HALF};
    for (size_t i = 0; i < 2; ++i) {
        fault("PUT", lost[i], 1);
        assert_int_equal(do_create(&fx.err), KN_OK);
        assert_string_equal(get(fx.arena, fx.io, kn_str(X)), "new");
        assert_int_equal(do_create(&fx.err), KN_E_EXISTS);
        assert_string_equal(fx.err.msg, "cannot create 's3://lake/x': it exists already");
        assert_int_equal(do_remove(NULL), KN_OK);
    }
    s3_fake_fault(fx.fake, &(FakeFault){"PUT", 1, FAKE_DO_ANSWER, 500, NULL, ""});
    assert_int_equal(do_create(&fx.err), KN_OK);
}

static void a_create_whose_every_answer_is_lost_is_looked_up(void **state)
{
    (void)state;
    fault("PUT", FAKE_DO_HANG_UP, 100);
    assert_int_equal(do_create(&fx.err), KN_OK);
    assert_int_equal(do_remove(NULL), KN_OK);
    s3_fake_fault(fx.fake, NULL);
    fault("PUT", FAKE_HANG_UP, 100); /* never took effect, as far as anybody can see */
    assert_int_equal(do_create(&fx.err), KN_E_UNKNOWN);
    assert_non_null(strstr(fx.err.msg, "may or may not have been written: s3 PutObject"));
    s3_fake_put(fx.fake, "lake/x", "somebody else's", "another token");
    assert_int_equal(do_create(&fx.err), KN_E_EXISTS);
    s3_fake_fault(fx.fake, NULL);
    fault("", FAKE_HANG_UP, 100); /* not even that can be looked up */
    assert_int_equal(do_create(&fx.err), KN_E_UNKNOWN);
    assert_int_equal(do_replace(&fx.err), KN_E_UNKNOWN);
}

static void an_error_after_a_lost_answer_does_not_hide_it(void **state)
{
    (void)state;
    fault("PUT", FAKE_DO_HANG_UP, 1);
    answer("PUT", 1, 403, "");
    assert_int_equal(do_create(&fx.err), KN_OK); /* the first try had taken effect */
    assert_int_equal(do_remove(NULL), KN_OK);
    fault("PUT", FAKE_HANG_UP, 1);
    answer("PUT", 1, 403, "");
    fault("PUT", FAKE_HANG_UP, 1);
    fault("PUT", FAKE_HANG_UP, 1);
    KnCode rc = do_create(&fx.err);
    assert_true(rc == KN_E_IO || rc == KN_E_UNKNOWN);
    assert_int_equal(do_stat(NULL), KN_E_NOTFOUND);
}

static void a_conflict_of_creates_is_settled_by_the_token(void **state)
{
    (void)state;
    s3_fake_fault(fx.fake, &(FakeFault){"PUT", 1, FAKE_DO_ANSWER, 409, NULL,
                                        "<Error><Code>ConditionalRequestConflict</Code></Error>"});
    assert_int_equal(do_create(&fx.err), KN_OK); /* it was our own earlier try */
    answer("PUT", 1, 409, "<Error><Code>ConditionalRequestConflict</Code></Error>");
    assert_int_equal(kn_io_write(fx.io, kn_str("s3://lake/z"), "z", 1, KN_IO_CREATE, &fx.err),
                     KN_E_EXISTS);
    answer("PUT", 1, 501, "<Error><Code>NotImplemented</Code></Error>");
    assert_int_equal(do_create(&fx.err), KN_E_UNSUPPORTED);
}

static void a_completion_whose_answer_is_lost_or_an_error_is_looked_up(void **state)
{
    (void)state;
    static const char late[] =
        "<Error><Code>InternalError</Code><Message>We failed</Message></Error>";
    fault("POST /lake/x?uploadId", FAKE_DO_HANG_UP, 1);
    assert_int_equal(do_parts(&fx.err), KN_OK);
    s3_fake_fault(fx.fake,
                  &(FakeFault){"POST /lake/x?uploadId", 1, FAKE_DO_ANSWER, 200, NULL, late});
    assert_int_equal(do_parts(&fx.err), KN_OK);
    answer("POST /lake/x?uploadId", 1, 200, late);
    assert_int_equal(do_remove(NULL), KN_OK);
    assert_int_equal(do_parts(&fx.err), KN_E_IO);
    assert_non_null(strstr(fx.err.msg, "HTTP 200 InternalError: We failed"));
    assert_int_equal(do_stat(NULL), KN_E_NOTFOUND);
    assert_int_equal(s3_fake_open_uploads(fx.fake), 0);
    answer("partNumber=2", 3, 500, "");
    assert_int_equal(do_parts(&fx.err), KN_OK);
}

/* ---- what we believed was wrong ---- */

static void another_region_is_learnt_once_and_kept(void **state)
{
    (void)state;
    char authorization[512];
    s3_fake_put(fx.fake, "lake/x", "x", "");
    s3_fake_fault(fx.fake, &(FakeFault){"HEAD", 1, FAKE_ANSWER, 301,
                                        "x-amz-bucket-region: eu-north-1\r\n", ""});
    assert_int_equal(do_stat(&fx.err), KN_OK);
    assert_int_equal(n_requests(), 2);
    assert_int_equal(do_read(&fx.err), KN_OK);
    (void)s3_fake_header(fx.fake, "Authorization", authorization, sizeof(authorization));
    assert_non_null(strstr(authorization, "/eu-north-1/s3/aws4_request"));
    answer("GET", 1, 400,
           "<Error><Code>AuthorizationHeaderMalformed</Code><Message>expecting "
           "'ap-south-1'</Message><Region>ap-south-1</Region></Error>");
    assert_int_equal(do_read(&fx.err), KN_OK);
}

static void a_wrong_region_that_stays_is_explained(void **state)
{
    (void)state;
    for (int i = 0; i < 2; ++i) /* the store changes its mind */
        s3_fake_fault(
            fx.fake,
            &(FakeFault){"GET", 1, FAKE_ANSWER, 301,
                         i ? "x-amz-bucket-region: eu-west-1\r\n"
                           : "x-amz-bucket-region: eu-north-1\r\n",
                         "<Error><Code>PermanentRedirect</Code><Message>The bucket you are "
                         "attempting to access must be addressed otherwise.</Message>"
                         "</Error>"});
    assert_int_equal(do_read(&fx.err), KN_E_IO);
    assert_non_null(strstr(fx.err.msg, "HTTP 301 PermanentRedirect: The bucket you are"));
    assert_non_null(strstr(fx.err.msg, "give --s3-region; the bucket's region is 'eu-west-1'"));
}

static const char *date_header(int64_t ms)
{
    char text[64];
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;
    (void)gmtime_r(&seconds, &tm);
    assert_true(strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &tm) > 0);
    return kn_arena_printf(fx.arena, "Date: %s\r\n", text);
}

static void the_clock_of_the_store_is_learnt(void **state)
{
    (void)state;
    char date[64];
    static const char skewed[] = "<Error><Code>RequestTimeTooSkewed</Code><Message>The difference "
                                 "is too large.</Message></Error>";
    int64_t theirs = kn_clock_wall_ms() + INT64_C(1200000);
    s3_fake_put(fx.fake, "lake/x", "x", "");
    s3_fake_fault(fx.fake, &(FakeFault){"GET", 1, FAKE_ANSWER, 403, date_header(theirs), skewed});
    assert_int_equal(do_read(&fx.err), KN_OK);
    (void)s3_fake_header(fx.fake, "X-Amz-Date", date, sizeof(date));
    int64_t signed_ms = 0;
    const char *iso = kn_arena_printf(fx.arena, "%.4s-%.2s-%.2sT%.2s:%.2s:%.2sZ", date, date + 4,
                                      date + 6, date + 9, date + 11, date + 13);
    assert_int_equal(kn_clock_parse_ms(iso, &signed_ms, NULL), KN_OK);
    assert_true(llabs(signed_ms - theirs) < 60000);
    assert_int_equal(n_requests(), 2);
    answer("GET", 1, 403, skewed); /* without a date there is nothing to learn */
    assert_int_equal(do_read(&fx.err), KN_E_IO);
    assert_non_null(strstr(fx.err.msg, "set the clock (NTP)"));
}

static KnCode provide(void *arg, KnArena *arena, KnS3Keys *ret, KnErr *err)
{
    int *n = arg;
    if (++*n == 3)
        return kn_err_set(err, KN_E_IO, "the catalog is away");
    *ret = (KnS3Keys){kn_arena_printf(arena, "key-%d", *n), "secret", "the-session-token", 0};
    return KN_OK;
}

static void expired_keys_are_replaced_once(void **state)
{
    (void)state;
    static const char expired[] = "<Error><Code>ExpiredToken</Code><Message>The provided token has "
                                  "expired.</Message></Error>";
    int calls = 0;
    char authorization[512];
    KnS3Options options = s3_fake_options(fx.fake);
    options.keys = NULL;
    options.provide = provide;
    options.provide_arg = &calls;
    KnFileIO *io = fx.io;
    assert_int_equal(kn_io_s3_open(&options, &fx.io, NULL), KN_OK);
    s3_fake_put(fx.fake, "lake/x", "x", "");
    answer("GET", 1, 400, expired);
    assert_int_equal(do_read(&fx.err), KN_OK);
    assert_int_equal(calls, 2);
    (void)s3_fake_header(fx.fake, "Authorization", authorization, sizeof(authorization));
    assert_non_null(strstr(authorization, "Credential=key-2/"));
    answer("GET", 1, 400, expired);
    assert_int_equal(do_read(&fx.err), KN_E_IO);
    assert_non_null(strstr(fx.err.msg, "the catalog is away"));
    fx.io = kn_io_close(fx.io);
    fx.io = io; /* keys that were given cannot be replaced */
    answer("GET", 1, 400, expired);
    assert_int_equal(do_read(&fx.err), KN_E_IO);
    assert_non_null(strstr(fx.err.msg, "the session token has expired: get new credentials"));
    assert_null(strstr(fx.err.msg, "the-secret"));
}

static void nonsense_in_answers_is_corrupt(void **state)
{
    (void)state;
    static const char deep[] =
        "<a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a/>"
        "</a></a></a></a></a></a></a></a></a></a></a></a></a></a></a></a></a>";
    static const char *const lists[] = {
        "",
        "not xml",
        "<ListBucketResult><Contents><Key>a</Key></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Size>1</Size></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Key>a</Key><Size>-1</Size></Contents></ListBucketResult>",
        "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
        "<Other/>",
        "<!DOCTYPE x [<!ENTITY a \"b\">]><ListBucketResult>&a;</ListBucketResult>",
        deep};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); ++i) {
        answer("list-type", 1, 200, lists[i]);
        assert_int_equal(do_list(&fx.err), KN_E_CORRUPT);
        assert_non_null(strstr(fx.err.msg, "s3 ListObjectsV2 's3://lake': "));
    }
    answer("uploads", 1, 200, "<X/>");
    assert_int_equal(do_parts(&fx.err), KN_E_CORRUPT);
    answer("partNumber", 4, 200, "");
    assert_int_equal(do_parts(&fx.err), KN_E_CORRUPT);
    assert_non_null(strstr(fx.err.msg, "the answer has no ETag"));
    s3_fake_fault(fx.fake, NULL);
    answer("delete=", 1, 200, "<X/>");
    assert_int_equal(do_remove_many(&fx.err), KN_E_CORRUPT);
}

static void a_store_that_ignores_ranges_is_noticed(void **state)
{
    (void)state;
    char out[4];
    answer("GET", 1, 200, "0123");
    assert_int_equal(kn_io_read(fx.io, kn_str(X), 4, 4, out, &fx.err), KN_E_UNSUPPORTED);
    assert_non_null(strstr(fx.err.msg, "HTTP 200 to a range"));
    answer("GET", 1, 206, "01");
    assert_int_equal(kn_io_read(fx.io, kn_str(X), 4, 4, out, &fx.err), KN_E_CORRUPT);
}

static void retry_after_is_obeyed_and_bounded(void **state)
{
    (void)state;
    s3_fake_put(fx.fake, "lake/x", "x", "");
    s3_fake_fault(fx.fake, &(FakeFault){"GET", 1, FAKE_ANSWER, 503, "Retry-After: 0\r\n", ""});
    assert_int_equal(do_read(&fx.err), KN_OK);
    s3_fake_fault(fx.fake, &(FakeFault){"GET", 1, FAKE_ANSWER, 503, "Retry-After: soon\r\n", ""});
    assert_int_equal(do_read(&fx.err), KN_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        TEST(every_answer_outside_2xx_is_an_error_of_every_operation),
        TEST(an_empty_body_or_html_still_reads_as_a_sentence),
        TEST(a_long_name_leaves_room_for_the_reason),
        TEST(what_is_not_there_is_told_apart),
        TEST(what_may_pass_is_tried_again),
        TEST(a_connection_that_ends_early_is_tried_again),
        TEST(a_body_that_is_cut_off_again_and_again_is_an_error),
        TEST(silence_is_a_timeout_and_then_tried_again),
        TEST(a_create_that_took_effect_is_recognised_as_ours),
        TEST(a_create_whose_every_answer_is_lost_is_looked_up),
        TEST(an_error_after_a_lost_answer_does_not_hide_it),
        TEST(a_conflict_of_creates_is_settled_by_the_token),
        TEST(a_completion_whose_answer_is_lost_or_an_error_is_looked_up),
        TEST(another_region_is_learnt_once_and_kept),
        TEST(a_wrong_region_that_stays_is_explained),
        TEST(the_clock_of_the_store_is_learnt),
        TEST(expired_keys_are_replaced_once),
        TEST(nonsense_in_answers_is_corrupt),
        TEST(a_store_that_ignores_ranges_is_noticed),
        TEST(retry_after_is_obeyed_and_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

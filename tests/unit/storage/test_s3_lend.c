/* SPDX-License-Identifier: Apache-2.0 */
/* test_s3_lend.c - keys from STS: what is asked, and when it is asked again.
 * labels: threads */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "storage/s3/lend.h"
#include "support/http_stub.h"

#define FOLDER "s3://b/wh/t"

typedef struct Fixture {
    TestStub *stub;
    KnS3Lender *lender;
    KnArena *arena;
    int status;
    const char *expires, *token; /* of what the stub gives */
    char form[4096], authorization[512];
} Fixture;

static Fixture fx;

static bool handle(void *arg, const TestRequest *req)
{
    (void)arg;
    char body[1024];
    (void)snprintf(fx.form, sizeof(fx.form), "%s", req->body);
    (void)test_stub_header(req, "Authorization", fx.authorization, sizeof(fx.authorization));
    if (fx.status != 200) {
        test_stub_answer(req, fx.status, NULL,
                         "<ErrorResponse><Error><Code>AccessDenied</Code><Message>not you</Message>"
                         "</Error></ErrorResponse>");
        return true;
    }
    (void)snprintf(body, sizeof(body),
                   "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>key-%d"
                   "</AccessKeyId><SecretAccessKey>lent-secret</SecretAccessKey>"
                   "<SessionToken>%s</SessionToken><Expiration>%s</Expiration>"
                   "</Credentials></AssumeRoleResult></AssumeRoleResponse>",
                   req->number, fx.token, fx.expires);
    test_stub_answer(req, 200, NULL, body);
    return true;
}

static int setup(void **state)
{
    static const KnS3Keys own = {"own-key", "own-secret", NULL, 0};
    static const KnS3Options s3 = {.region = "eu-west-1", .keys = &own};
    (void)state;
    fx = (Fixture){.status = 200, .expires = "2099-01-01T00:00:00Z", .token = "lent-token"};
    fx.arena = kn_arena_new(0);
    fx.stub = test_stub_start(handle, NULL);
    const KnS3LenderOptions options = {
        .s3 = &s3,
        .endpoint = kn_arena_printf(fx.arena, "http://127.0.0.1:%d", test_stub_port(fx.stub)),
        .role_arn = "arn:aws:iam::1:role/x",
        .duration_s = 900};
    assert_int_equal(kn_s3_lender_open(&options, &fx.lender, NULL), KN_OK);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fx.lender = kn_s3_lender_close(fx.lender);
    fx.stub = test_stub_stop(fx.stub);
    fx.arena = kn_arena_free(fx.arena);
    return 0;
}

static KnCode lend(bool write, KnS3Keys *ret, KnErr *err)
{
    static const char *const folders[] = {FOLDER};
    return kn_s3_lend(fx.lender, fx.arena, &(KnS3Grant){folders, 1, write}, ret, err);
}

static void sts_is_asked_once_for_the_same(void **state)
{
    (void)state;
    KnS3Keys first = {0}, again = {0}, other = {0};
    assert_int_equal(lend(true, &first, NULL), KN_OK);
    assert_string_equal(first.access_key_id, "key-1");
    assert_string_equal(first.secret_access_key, "lent-secret");
    assert_string_equal(first.session_token, "lent-token");
    assert_true(first.expires_ms > INT64_C(4000000000000));
    assert_non_null(strstr(fx.form, "Action=AssumeRole&"));
    assert_non_null(
        strstr(fx.form, "&DurationSeconds=900&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fx&"));
    assert_non_null(strstr(fx.form, "s3%3APutObject"));
    assert_non_null(strstr(fx.form, "arn%3Aaws%3As3%3A%3A%3Ab%2Fwh%2Ft%2F%2A"));
    assert_non_null(strstr(fx.authorization, "Credential=own-key/"));
    assert_non_null(strstr(fx.authorization, "/eu-west-1/sts/aws4_request"));
    assert_int_equal(lend(true, &again, NULL), KN_OK);
    assert_string_equal(again.access_key_id, "key-1");
    assert_int_equal(lend(false, &other, NULL), KN_OK);
    assert_string_equal(other.access_key_id, "key-2");
    assert_null(strstr(fx.form, "s3%3APutObject"));
    assert_int_equal(test_stub_requests(fx.stub), 2);
}

/* The clock here is ahead of STS's: what it gives looks old, is given on, and not kept. */
static void keys_that_look_old_are_lent_and_not_kept(void **state)
{
    (void)state;
    KnS3Keys keys = {0};
    fx.expires = "2001-01-01T00:00:00Z";
    for (int i = 1; i <= 3; ++i) {
        assert_int_equal(lend(true, &keys, NULL), KN_OK);
        assert_int_equal(test_stub_requests(fx.stub), i);
    }
}

static void a_refusal_is_one_line_without_secrets(void **state)
{
    (void)state;
    KnS3Keys keys = {0};
    KnErr err = {0};
    fx.status = 403;
    for (int i = 0; i < 3; ++i) {
        assert_int_equal(lend(true, &keys, &err), KN_E_IO);
        assert_string_equal(err.msg, "STS AssumeRole: HTTP 403 AccessDenied: not you");
    }
}

static void keys_without_a_token_are_not_lent(void **state)
{
    (void)state;
    KnS3Keys keys = {0};
    KnErr err = {0};
    fx.token = "";
    assert_int_equal(lend(true, &keys, &err), KN_E_CORRUPT);
    assert_null(strstr(err.msg, "lent-secret"));
    assert_null(keys.access_key_id);
}

static void *borrow(void *arg)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    static const char *const folders[] = {FOLDER};
    KnS3Keys keys = {0};
    *(KnCode *)arg = kn_s3_lend(fx.lender, arena, &(KnS3Grant){folders, 1, true}, &keys, NULL);
    return NULL;
}

static void many_threads_make_one_request(void **state)
{
    enum { N = 8 };
    (void)state;
    pthread_t threads[N];
    KnCode codes[N];
    for (int i = 0; i < N; ++i)
        assert_int_equal(pthread_create(&threads[i], NULL, borrow, &codes[i]), 0);
    for (int i = 0; i < N; ++i) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(codes[i], KN_OK);
    }
    assert_int_equal(test_stub_requests(fx.stub), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        TEST(sts_is_asked_once_for_the_same),        TEST(keys_that_look_old_are_lent_and_not_kept),
        TEST(a_refusal_is_one_line_without_secrets), TEST(keys_without_a_token_are_not_lent),
        TEST(many_threads_make_one_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_s3_credentials.c - where keys come from, in which order, and when they are fetched anew.
 * labels: threads */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "storage/s3/credentials.h"
#include "support/http_stub.h"
#include "support/tempdir.h"

static const char *const variables[] = {
    "KNUT_S3_ACCESS_KEY_ID",
    "KNUT_S3_SECRET_ACCESS_KEY",
    "KNUT_S3_SESSION_TOKEN",
    "SKADE_S3_ACCESS_KEY_ID",
    "SKADE_S3_SECRET_ACCESS_KEY",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "MINIO_ACCESS_KEY",
    "MINIO_SECRET_KEY",
    "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_CONFIG_FILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_ROLE_ARN",
    "AWS_ROLE_SESSION_NAME",
    "AWS_ENDPOINT_URL_STS",
    "AWS_ENDPOINT_URL",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_EC2_METADATA_SERVICE_ENDPOINT",
};

typedef struct Fixture {
    TestStub *stub;
    KnHttpClient *http;
    KnArena *arena;
    KnErr err;
    char dir[256];
    const char *expires; /* of the keys that the stub gives */
    int n_given;
    char last_form[4096];
    char last_auth[64];
} Fixture;

static Fixture fx;

static bool handle(void *arg, const TestRequest *req)
{
    (void)arg;
    char value[64];
    if (strcmp(req->method, "POST") == 0) {
        (void)snprintf(fx.last_form, sizeof(fx.last_form), "%s", req->body);
        test_stub_printf(
            req,
            "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n<AssumeRoleWithWebIdentityResponse "
            "xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><AssumeRoleWithWebIdentityResult>"
            "<Credentials><AccessKeyId>sts-key</AccessKeyId><SecretAccessKey>sts-secret"
            "</SecretAccessKey><SessionToken>sts-token</SessionToken><Expiration>%s</Expiration>"
            "</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>",
            fx.expires);
        return false;
    }
    if (strcmp(req->method, "PUT") == 0 && strcmp(req->target, "/latest/api/token") == 0 &&
        test_stub_header(req, "X-aws-ec2-metadata-token-ttl-seconds", value, 64)[0]) {
        test_stub_answer(req, 200, NULL, "imds-token");
        return true;
    }
    bool imds = strncmp(req->target, "/latest/", 8) == 0;
    (void)test_stub_header(req, "X-aws-ec2-metadata-token", value, sizeof(value));
    if (imds && strcmp(value, "imds-token") != 0) {
        test_stub_answer(req, 401, NULL, "");
        return true;
    }
    if (strcmp(req->target, "/latest/meta-data/iam/security-credentials/") == 0) {
        test_stub_answer(req, 200, NULL, "the-role\n");
        return true;
    }
    (void)test_stub_header(req, "Authorization", fx.last_auth, sizeof(fx.last_auth));
    if (strcmp(req->target, "/broken") == 0) {
        test_stub_answer(req, 200, NULL, "{\"AccessKeyId\": \"geheim-1\"}");
        return true;
    }
    char body[512];
    (void)snprintf(body, sizeof(body),
                   "{\"AccessKeyId\": \"key-%d\", \"SecretAccessKey\": \"remote-secret\", "
                   "\"Token\": \"remote-token\", \"Expiration\": \"%s\"}",
                   ++fx.n_given, fx.expires);
    test_stub_answer(req, 200, NULL, body);
    return true;
}

static const char *url(const char *path)
{
    return kn_arena_printf(fx.arena, "http://127.0.0.1:%d%s", test_stub_port(fx.stub), path);
}

static void env(const char *name, const char *value)
{
    assert_int_equal(setenv(name, value, 1), 0);
}

static const char *in_dir(const char *name)
{
    return kn_arena_printf(fx.arena, "%s/%s", fx.dir, name);
}

static void write_text(const char *name, const char *text)
{
    FILE *file = fopen(in_dir(name), "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int setup(void **state)
{
    (void)state;
    fx = (Fixture){.stub = test_stub_start(handle, NULL), .arena = kn_arena_new(0)};
    fx.expires = "2099-01-01T00:00:00Z";
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); ++i)
        (void)unsetenv(variables[i]);
    env("HOME", test_tempdir_make(fx.dir));
    env("AWS_EC2_METADATA_DISABLED", "true");
    return kn_http_client_new(NULL, &fx.http, NULL) == KN_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    fx.http = kn_http_client_free(fx.http);
    fx.stub = test_stub_stop(fx.stub);
    fx.arena = kn_arena_free(fx.arena);
    test_tempdir_remove(fx.dir);
    return 0;
}

static KnS3Credentials *open_chain(void)
{
    static const KnS3Options none;
    return kn_s3_credentials_new(&none, fx.http, "eu-north-1");
}

static KnCode chain(KnS3Keys *ret)
{
    KnS3Credentials *creds = open_chain();
    KnCode rc = kn_s3_credentials_get(creds, fx.arena, ret, &fx.err);
    creds = kn_s3_credentials_free(creds);
    assert_null(creds);
    return rc;
}

static void expect(const char *key, const char *secret, const char *token)
{
    KnS3Keys keys = {0};
    fx.err = (KnErr){0};
    if (chain(&keys) != KN_OK)
        fail_msg("%s", fx.err.msg);
    assert_string_equal(keys.access_key_id, key);
    assert_string_equal(keys.secret_access_key, secret);
    if (token)
        assert_string_equal(keys.session_token, token);
    else
        assert_null(keys.session_token);
}

static void expect_failure(KnCode code, const char *words)
{
    KnS3Keys keys = {0};
    assert_int_equal(chain(&keys), code);
    if (!strstr(fx.err.msg, words))
        fail_msg("%s", fx.err.msg);
    assert_null(strstr(fx.err.msg, "geheim"));
}

static void the_environment_wins_in_its_order(void **state)
{
    (void)state;
    env("MINIO_ACCESS_KEY", "m");
    env("MINIO_SECRET_KEY", "ms");
    expect("m", "ms", NULL);
    env("AWS_ACCESS_KEY_ID", "a");
    env("AWS_SECRET_ACCESS_KEY", "as");
    env("AWS_SESSION_TOKEN", "at");
    expect("a", "as", "at");
    env("SKADE_S3_ACCESS_KEY_ID", "s");
    env("SKADE_S3_SECRET_ACCESS_KEY", "ss");
    expect("s", "ss", NULL); /* not AWS's token */
    env("KNUT_S3_ACCESS_KEY_ID", "k");
    env("KNUT_S3_SECRET_ACCESS_KEY", "ks");
    env("KNUT_S3_SESSION_TOKEN", "kt");
    expect("k", "ks", "kt");
}

static void half_a_pair_is_named(void **state)
{
    (void)state;
    env("AWS_ACCESS_KEY_ID", "a");
    env("AWS_SECRET_ACCESS_KEY", "as");
    env("KNUT_S3_SECRET_ACCESS_KEY", "geheim");
    expect_failure(KN_E_INVAL, "has KNUT_S3_SECRET_ACCESS_KEY but not KNUT_S3_ACCESS_KEY_ID");
}

static void nothing_anywhere_says_what_to_set(void **state)
{
    (void)state;
    expect_failure(KN_E_INVAL, "no S3 credentials: set KNUT_S3_ACCESS_KEY_ID");
    assert_int_equal(test_stub_requests(fx.stub), 0);
}

static void profiles_are_read(void **state)
{
    (void)state;
    write_text("cred", "# comment\n[default]\naws_access_key_id = d\naws_secret_access_key=ds\n"
                       "[other]\r\n  aws_access_key_id = nested\r\nAWS_ACCESS_KEY_ID = o\r\n"
                       "aws_secret_access_key = o=s\r\naws_session_token = ot\r\n[half]\n"
                       "aws_access_key_id = h\n");
    write_text("config", "[profile other]\nregion = eu-west-3\n[profile conf]\n"
                         "aws_access_key_id=c\naws_secret_access_key=cs\n[profile sso]\n"
                         "sso_start_url=x\n");
    env("AWS_SHARED_CREDENTIALS_FILE", in_dir("cred"));
    env("AWS_CONFIG_FILE", in_dir("config"));
    expect("d", "ds", NULL);
    assert_null(kn_s3_profile_region(fx.arena));
    env("AWS_PROFILE", "other");
    expect("o", "o=s", "ot");
    assert_string_equal(kn_s3_profile_region(fx.arena), "eu-west-3");
    env("AWS_PROFILE", "conf");
    expect("c", "cs", NULL);
    env("AWS_PROFILE", "half");
    expect_failure(KN_E_INVAL,
                   "profile 'half' has aws_access_key_id but not aws_secret_access_key");
    env("AWS_PROFILE", "sso");
    expect_failure(KN_E_INVAL, "AWS_PROFILE is 'sso'");
    env("AWS_PROFILE", "none");
    expect_failure(KN_E_INVAL, "AWS_PROFILE is 'none'");
}

static void a_web_identity_is_exchanged(void **state)
{
    (void)state;
    write_text("token", "a.jwt+token\n");
    env("AWS_WEB_IDENTITY_TOKEN_FILE", in_dir("token"));
    expect_failure(KN_E_INVAL, "AWS_ROLE_ARN is not: set both");
    env("AWS_ROLE_ARN", "arn:aws:iam::1:role/x");
    env("AWS_ROLE_SESSION_NAME", "me");
    env("AWS_ENDPOINT_URL_STS", url("/"));
    expect("sts-key", "sts-secret", "sts-token");
    assert_string_equal(fx.last_form, "Action=AssumeRoleWithWebIdentity&Version=2011-06-15"
                                      "&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fx"
                                      "&RoleSessionName=me&WebIdentityToken=a.jwt%2Btoken");
    env("AWS_WEB_IDENTITY_TOKEN_FILE", in_dir("none"));
    expect_failure(KN_E_NOTFOUND, "none'");
}

static void a_container_is_asked_with_its_token(void **state)
{
    (void)state;
    env("AWS_CONTAINER_CREDENTIALS_FULL_URI", url("/creds"));
    env("AWS_CONTAINER_AUTHORIZATION_TOKEN", "c-token");
    expect("key-1", "remote-secret", "remote-token");
    assert_string_equal(fx.last_auth, "c-token");
    write_text("ctoken", "file-token\n");
    env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", in_dir("ctoken"));
    expect("key-2", "remote-secret", "remote-token");
    assert_string_equal(fx.last_auth, "file-token");
    env("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://example.invalid/creds");
    expect_failure(KN_E_INVAL, "names 'example.invalid' without TLS");
    env("AWS_CONTAINER_CREDENTIALS_FULL_URI", url("/broken"));
    expect_failure(KN_E_CORRUPT, "its answer holds no credentials");
}

static void an_instance_is_asked_with_a_session(void **state)
{
    (void)state;
    env("AWS_EC2_METADATA_DISABLED", "false");
    env("AWS_EC2_METADATA_SERVICE_ENDPOINT", url("/"));
    expect("key-1", "remote-secret", "remote-token");
    env("AWS_EC2_METADATA_SERVICE_ENDPOINT",
        kn_arena_printf(fx.arena, "http://127.0.0.1:%d", test_stub_dead_port()));
    expect_failure(KN_E_INVAL, "no S3 credentials");
}

static const char *in_ms(int64_t ms)
{
    char text[32];
    return kn_arena_strdup(fx.arena, kn_clock_format_ms(kn_clock_wall_ms() + ms, text));
}

static void keys_are_fetched_anew_before_they_expire(void **state)
{
    (void)state;
    KnS3Keys keys = {0};
    env("AWS_CONTAINER_CREDENTIALS_FULL_URI", url("/creds"));
    fx.expires = in_ms(INT64_C(3600000));
    KnS3Credentials *creds = open_chain();
    for (int i = 0; i < 3; ++i)
        assert_int_equal(kn_s3_credentials_get(creds, fx.arena, &keys, NULL), KN_OK);
    assert_string_equal(keys.access_key_id, "key-1"); /* good for an hour */
    assert_true(kn_s3_credentials_refused(creds, "key-1"));
    fx.expires = in_ms(1); /* the next ones are as good as gone when they come */
    assert_int_equal(kn_s3_credentials_get(creds, fx.arena, &keys, NULL), KN_OK);
    assert_string_equal(keys.access_key_id, "key-2");
    assert_true(kn_s3_credentials_refused(creds, "key-1")); /* others are here already */
    fx.expires = in_ms(INT64_C(3600000));
    while (kn_s3_credentials_get(creds, fx.arena, &keys, NULL) == KN_OK && fx.n_given < 3)
        ; /* within a millisecond */
    assert_string_equal(keys.access_key_id, "key-3");
    creds = kn_s3_credentials_free(creds);
    assert_null(creds);
}

static KnCode fail_after_one(void *arg, KnArena *arena, KnS3Keys *ret, KnErr *err)
{
    (void)arena;
    int *n = arg;
    if (++*n > 1)
        return kn_err_set(err, KN_E_IO, "away");
    *ret = (KnS3Keys){"k", "s", NULL, kn_clock_wall_ms() + 400};
    return KN_OK;
}

static void a_refresh_that_fails_leaves_what_still_holds(void **state)
{
    (void)state;
    int n = 0;
    KnS3Keys keys = {0};
    const KnS3Options options = {.provide = fail_after_one, .provide_arg = &n};
    KnS3Credentials *creds = kn_s3_credentials_new(&options, fx.http, "r");
    KnCode rc;
    while ((rc = kn_s3_credentials_get(creds, fx.arena, &keys, &fx.err)) == KN_OK)
        assert_string_equal(keys.access_key_id, "k");
    assert_true(n > 1);
    assert_int_equal(rc, KN_E_IO);
    assert_string_equal(fx.err.msg, "new S3 credentials from the catalog: away");
    creds = kn_s3_credentials_free(creds);
    assert_null(creds);
}

typedef struct Asker {
    KnS3Credentials *creds;
    KnCode code;
} Asker;

static void *ask(void *arg)
{
    Asker *asker = arg;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnS3Keys keys = {0};
    asker->code = kn_s3_credentials_get(asker->creds, arena, &keys, NULL);
    return NULL;
}

static void many_threads_make_one_request(void **state)
{
    (void)state;
    env("AWS_CONTAINER_CREDENTIALS_FULL_URI", url("/creds"));
    KnS3Credentials *creds = open_chain();
    pthread_t threads[8];
    Asker askers[8];
    for (int i = 0; i < 8; ++i) {
        askers[i] = (Asker){creds, KN_E_MAX_};
        assert_int_equal(pthread_create(&threads[i], NULL, ask, &askers[i]), 0);
    }
    for (int i = 0; i < 8; ++i) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(askers[i].code, KN_OK);
    }
    assert_int_equal(test_stub_requests(fx.stub), 1);
    creds = kn_s3_credentials_free(creds);
    assert_null(creds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        TEST(the_environment_wins_in_its_order),
        TEST(half_a_pair_is_named),
        TEST(nothing_anywhere_says_what_to_set),
        TEST(profiles_are_read),
        TEST(a_web_identity_is_exchanged),
        TEST(a_container_is_asked_with_its_token),
        TEST(an_instance_is_asked_with_a_session),
        TEST(keys_are_fetched_anew_before_they_expire),
        TEST(a_refresh_that_fails_leaves_what_still_holds),
        TEST(many_threads_make_one_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

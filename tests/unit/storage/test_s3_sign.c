/* SPDX-License-Identifier: Apache-2.0 */
/* test_s3_sign.c - what requests of others would touch, and what keys are lent for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "storage/s3/lend.h"
#include "storage/s3/sign.h"

typedef struct Case {
    const char *method, *uri;
    const char *touches; /* "r:LOCATION w:LOCATION"; "" = none; NULL = refused */
} Case;

static KnFileIO *opened(const KnS3Options *options)
{
    KnFileIO *io = NULL;
    KnErr err = {0};
    assert_int_equal(kn_io_s3_open(options, &io, &err), KN_OK);
    return io;
}

static void check(KnFileIO *io, const Case *c)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const KnS3Foreign req = {.method = c->method, .uri = c->uri};
    KnS3Intent intent = {0};
    KnErr err = {0};
    KN_BUF_AUTO said;
    kn_buf_init(&said, 4096);
    kn_buf_text(&said, "");
    KnCode rc = kn_s3_intent(io, arena, &req, &intent, &err);
    if (!c->touches) {
        if (rc != KN_E_REFUSED && rc != KN_E_INVAL)
            fail_msg("%s %s: code %d", c->method, c->uri, rc);
        return;
    }
    if (rc != KN_OK)
        fail_msg("%s %s: %s", c->method, c->uri, err.msg);
    for (size_t i = 0; i < intent.n; i++)
        kn_buf_printf(&said, "%s%c:%s", i ? " " : "", intent.touches[i].write ? 'w' : 'r',
                      intent.touches[i].location);
    assert_string_equal(said.data ? said.data : "", c->touches);
}

static void requests_to_a_given_endpoint_are_understood(void **state)
{
    static const Case cases[] = {
        {"GET", "http://h:1/b/k/x", "r:s3://b/k/x"},
        {"HEAD", "http://h:1/b/k%20x", "r:s3://b/k x"},
        {"GET", "http://b.h:1/k?partNumber=1&x-id=GetObject", "r:s3://b/k"},
        {"PUT", "http://h:1/b/dt=1/x?partNumber=1&uploadId=u", "w:s3://b/dt=1/x"},
        {"POST", "http://h:1/b/k?uploads", "w:s3://b/k"},
        {"POST", "http://h:1/b/k?uploadId=u", "w:s3://b/k"},
        {"GET", "http://h:1/b/k?uploadId=u", "w:s3://b/k"},
        {"DELETE", "http://h:1/b/k", "w:s3://b/k"},
        {"DELETE", "http://h:1/b/k?uploadId=u", "w:s3://b/k"},
        {"GET", "http://h:1/b?list-type=2&prefix=k%2F", "r:s3://b/k/"},
        {"GET", "http://h:1/b/?prefix=k%2Fx&delimiter=%2F", "r:s3://b/k/"},
        {"GET", "http://h:1/b?location", ""},
        {"HEAD", "http://h:1/b", ""},
        {"GET", "https://h:1/b/k", NULL},
        {"GET", "http://h:2/b/k", NULL},
        {"GET", "http://bh:1/b/k", NULL},
        {"GET", "http://h:1@x/b/k", NULL},
        {"GET", "http://h:1/b", NULL},
        {"GET", "http://h:1/b?prefix=k", NULL},
        {"GET", "http://h:1/b?prefix=..%2F", NULL},
        {"GET", "http://h:1/b?prefix=k%2F&prefix=x%2F", NULL},
        {"GET", "http://h:1/b?versions&prefix=k%2F", NULL},
        {"PUT", "http://h:1/b", NULL},
        {"DELETE", "http://h:1/b", NULL},
        {"POST", "http://h:1/b?delete", NULL}, /* without its body */
        {"POST", "http://h:1/b/k", NULL},
        {"GET", "http://h:1/b/k?acl", NULL},
        {"PUT", "http://h:1/b/k?tagging", NULL},
        {"DELETE", "http://h:1/b/k?versionId=1", NULL},
        {"GET", "http://h:1/b/./k", NULL},
        {"GET", "http://h:1/b/a%2F..%2Fk", NULL},
        {"GET", "http://h:1/b//k", NULL},
        {"GET", "http://h:1/b/a//k", NULL},
        {"GET", "http://h:1/b/k%", NULL},
        {"GET", "http://h:1/b/k%00", NULL},
        {"GET", "http://h:1/b/k%ff", NULL},
        {"GET", "http://h:1/", NULL},
        {"GET", "ftp://h:1/b/k", NULL},
        {"PATCH", "http://h:1/b/k", NULL},
    };
    (void)state;
    KnFileIO *io = opened(&(KnS3Options){.endpoint = "http://h:1", .region = "eu-west-1"});
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        check(io, &cases[i]);
    kn_io_close(io);
}

static void requests_to_aws_are_known_by_their_hosts(void **state)
{
    static const Case cases[] = {
        {"GET", "https://s3.amazonaws.com/b/k", "r:s3://b/k"},
        {"GET", "https://b.s3.amazonaws.com/k", "r:s3://b/k"},
        {"GET", "https://b.s3.eu-west-1.amazonaws.com/k", "r:s3://b/k"},
        {"GET", "https://x.s3.y.s3.eu-west-1.amazonaws.com/k", "r:s3://x.s3.y/k"},
        {"GET", "https://s3.dualstack.eu-west-1.amazonaws.com:443/b/k", "r:s3://b/k"},
        {"GET", "https://s3.cn-north-1.amazonaws.com.cn/b/k", "r:s3://b/k"},
        {"GET", "http://s3.amazonaws.com/b/k", NULL},
        {"GET", "https://s3.amazonaws.com:444/b/k", NULL},
        {"GET", "https://s3-control.eu-west-1.amazonaws.com/b/k", NULL},
        {"GET", "https://b.s3-website.eu-west-1.amazonaws.com/k", NULL},
        {"GET", "https://s3.amazonaws.com.evil.example/b/k", NULL},
        {"GET", "https://evils3.amazonaws.com/b/k", NULL},
        {"GET", "https://sts.amazonaws.com/b/k", NULL},
    };
    (void)state;
    assert_int_equal(unsetenv("KNUT_S3_ENDPOINT") | unsetenv("AWS_ENDPOINT_URL_S3") |
                         unsetenv("AWS_ENDPOINT_URL") | unsetenv("SKADE_S3_ENDPOINT"),
                     0);
    KnFileIO *io = opened(&(KnS3Options){.region = "eu-west-1"});
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        check(io, &cases[i]);
    kn_io_close(io);
}

static void a_policy_names_the_folders_and_no_more(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const char *const folders[] = {"s3://b/wh/t", "s3://c/\"x\""};
    const char *text = NULL;
    assert_int_equal(
        kn_s3_lend_policy(arena, "us-east-1", &(KnS3Grant){folders, 1, false}, &text, NULL), KN_OK);
    assert_string_equal(
        text,
        "{\"Version\":\"2012-10-17\",\"Statement\":["
        "{\"Effect\":\"Allow\",\"Action\":[\"s3:GetObject\"],"
        "\"Resource\":[\"arn:aws:s3:::b/wh/t/*\"]},"
        "{\"Effect\":\"Allow\",\"Action\":[\"s3:ListBucket\"],\"Resource\":[\"arn:aws:s3:::b\"],"
        "\"Condition\":{\"StringLike\":{\"s3:prefix\":[\"wh/t/*\"]}}},"
        "{\"Effect\":\"Allow\",\"Action\":[\"s3:GetBucketLocation\"],"
        "\"Resource\":[\"arn:aws:s3:::b\"]}]}");
    assert_int_equal(
        kn_s3_lend_policy(arena, "cn-north-1", &(KnS3Grant){folders, 2, true}, &text, NULL), KN_OK);
    assert_non_null(strstr(text, "\"s3:PutObject\""));
    assert_non_null(strstr(text, "\"arn:aws-cn:s3:::c/\\\"x\\\"/*\""));
}

static void for_what_a_policy_cannot_say_nothing_is_lent(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    char *deep = kn_arena_alloc(arena, 4001);
    memset(deep, 'x', 4000);
    deep[4000] = '\0';
    const char *const bad[] = {"s3://b",
                               "s3://b/",
                               "s3:///k",
                               "s3://b/a*",
                               "s3://b/a?",
                               "s3://b/${aws}",
                               kn_arena_printf(arena, "s3://b/%s", deep)};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const char *text = NULL;
        KnErr err = {0};
        assert_int_equal(
            kn_s3_lend_policy(arena, "us-east-1", &(KnS3Grant){&bad[i], 1, true}, &text, &err),
            KN_E_UNSUPPORTED);
        assert_non_null(strstr(err.msg, "no keys can be lent"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_to_a_given_endpoint_are_understood),
        cmocka_unit_test(requests_to_aws_are_known_by_their_hosts),
        cmocka_unit_test(a_policy_names_the_folders_and_no_more),
        cmocka_unit_test(for_what_a_policy_cannot_say_nothing_is_lent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_sigv4.c - AWS's test suite, and the worked examples of the S3 documentation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/json.h"
#include "net/sigv4.h"

enum { MAX_FILE = 1 << 20 };

static json_t *vectors(void)
{
    static char text[MAX_FILE];
    FILE *file = fopen(KN_TEST_DATA_DIR "/data/sigv4/vectors.json", "r");
    assert_non_null(file);
    size_t len = fread(text, 1, sizeof(text), file);
    (void)fclose(file);
    json_t *doc = NULL;
    assert_int_equal(kn_json_parse(text, len, &doc, NULL), KN_OK);
    return doc;
}

static const char *field(const json_t *doc, const char *key)
{
    return json_string_value(json_object_get(doc, key));
}

static const char *find(const KnHttpHeader *headers, size_t n, const char *name)
{
    for (size_t i = 0; i < n; ++i)
        if (strcmp(headers[i].name, name) == 0)
            return headers[i].value;
    return NULL;
}

static void check_vector(KnArena *arena, const json_t *vector)
{
    KnSigV4 sig = {.access_key_id = "AKIDEXAMPLE",
                   .secret_access_key = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
                   .session_token = field(vector, "token"),
                   .region = "us-east-1",
                   .service = "service",
                   .now_ms = 1440938160000};
    const json_t *list = json_object_get(vector, "headers");
    KnHttpHeader headers[16], *signed_headers = NULL;
    size_t n = json_array_size(list), n_signed = 0;
    for (size_t i = 0; i < n; ++i) {
        const json_t *pair = json_array_get(list, i);
        headers[i].name = json_string_value(json_array_get(pair, 0));
        headers[i].value = json_string_value(json_array_get(pair, 1));
    }
    KnHttpRequest req = {.method = field(vector, "method"),
                         .url = field(vector, "url"),
                         .headers = headers,
                         .n_headers = n,
                         .body = kn_str(field(vector, "body"))};
    KnErr err = {0};
    if (json_is_true(json_object_get(vector, "sign_body"))) {
        static const char hash[] =
            "9095672bbd1f56dfc5b65f3e153adc8731a4a654192329106275f4c7b24d0b6e";
        sig.payload_hash = hash; /* of Param1=value1 */
    }
    assert_int_equal(kn_sigv4_sign(arena, &sig, &req, &signed_headers, &n_signed, &err), KN_OK);
    const char *got = find(signed_headers, n_signed, "Authorization");
    if (strcmp(got, field(vector, "authorization")) != 0)
        print_error("%s:\n  %s\n  %s\n", field(vector, "name"), got,
                    field(vector, "authorization"));
    assert_string_equal(got, field(vector, "authorization"));
}

static void the_suite_of_aws_holds(void **state)
{
    (void)state;
    KN_JSON_AUTO doc = vectors();
    KN_ARENA_AUTO arena = kn_arena_new(0);
    assert_int_equal(json_array_size(doc), 30);
    for (size_t i = 0; i < json_array_size(doc); ++i)
        check_vector(arena, json_array_get(doc, i));
}

static const KnSigV4 s3_example = {.access_key_id = "AKIAIOSFODNN7EXAMPLE",
                                   .secret_access_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                                   .region = "us-east-1",
                                   .service = "s3",
                                   .now_ms = 1369353600000};

static void expect_signature(const KnHttpRequest *req, const char *signature)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnHttpHeader *headers = NULL;
    size_t n = 0;
    assert_int_equal(kn_sigv4_sign(arena, &s3_example, req, &headers, &n, NULL), KN_OK);
    const char *got = strstr(find(headers, n, "Authorization"), "Signature=");
    assert_string_equal(got + strlen("Signature="), signature);
}

static void the_worked_examples_of_s3_hold(void **state)
{
    (void)state;
    const KnHttpHeader range = {"Range", "bytes=0-9"};
    expect_signature(&(KnHttpRequest){.method = "GET",
                                      .url = "https://examplebucket.s3.amazonaws.com/test.txt",
                                      .headers = &range,
                                      .n_headers = 1},
                     "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
    const KnHttpHeader put[] = {{"Date", "Fri, 24 May 2013 00:00:00 GMT"},
                                {"x-amz-storage-class", "REDUCED_REDUNDANCY"}};
    expect_signature(
        &(KnHttpRequest){.method = "PUT",
                         .url = "https://examplebucket.s3.amazonaws.com/test%24file.text",
                         .headers = put,
                         .n_headers = 2,
                         .body = KN_STR_LIT("Welcome to Amazon S3.")},
        "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
    expect_signature(&(KnHttpRequest){.method = "GET",
                                      .url = "https://examplebucket.s3.amazonaws.com/?lifecycle"},
                     "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
    expect_signature(
        &(KnHttpRequest){.method = "GET",
                         .url = "https://examplebucket.s3.amazonaws.com/?prefix=J&max-keys=2"},
        "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

static void s3_paths_are_signed_as_sent_and_tokens_are_sent(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnSigV4 sig = s3_example;
    sig.session_token = "the-token";
    sig.payload_hash = KN_SIGV4_UNSIGNED;
    KnHttpRequest req = {.method = "GET", .url = "http://h:9000/b/./a%20b//c"};
    KnHttpHeader *headers = NULL;
    size_t n = 0;
    assert_int_equal(kn_sigv4_sign(arena, &sig, &req, &headers, &n, NULL), KN_OK);
    assert_string_equal(find(headers, n, "X-Amz-Security-Token"), "the-token");
    assert_string_equal(find(headers, n, "X-Amz-Content-Sha256"), "UNSIGNED-PAYLOAD");
    const char *authorization = find(headers, n, "Authorization");
    assert_non_null(strstr(authorization, "SignedHeaders=host;x-amz-content-sha256;x-amz-date;"
                                          "x-amz-security-token, "));
    req.url = "http://h:9000/b/a%20b/c";
    KnHttpHeader *others = NULL;
    assert_int_equal(kn_sigv4_sign(arena, &sig, &req, &others, &n, NULL), KN_OK);
    assert_string_not_equal(authorization, find(others, n, "Authorization"));
    req.url = "not a url";
    assert_int_equal(kn_sigv4_sign(arena, &sig, &req, &others, &n, NULL), KN_E_INVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_suite_of_aws_holds),
        cmocka_unit_test(the_worked_examples_of_s3_hold),
        cmocka_unit_test(s3_paths_are_signed_as_sent_and_tokens_are_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

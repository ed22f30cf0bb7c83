/* SPDX-License-Identifier: Apache-2.0 */
/* test_http_answer.c - answers out of bytes: whole, in pieces, cut off, and what is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "net/http_answer.h"

static KnCode parse(const char *text, bool ended, KnHttpAnswer *ret, KnErr *err)
{
    *err = (KnErr){0};
    *ret = (KnHttpAnswer){0};
    return kn_http_answer_parse(kn_str(text), ended, ret, err);
}

static void body_is(const char *text, bool ended, int status, const char *body)
{
    KnHttpAnswer answer;
    KnErr err;
    KN_BUF_AUTO out;
    kn_buf_init(&out, 65536);
    if (parse(text, ended, &answer, &err) != KN_OK || !answer.whole)
        fail_msg("%s: %s", text, err.msg);
    assert_int_equal(answer.status, status);
    assert_int_equal(kn_http_answer_body(&answer, &out, &err), KN_OK);
    assert_string_equal(out.data ? out.data : "", body);
}

static void bodies_are_taken_by_their_framing(void **state)
{
    (void)state;
    body_is("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcREST", false, 200, "abc");
    body_is("HTTP/1.1 200\r\ncontent-length:3\r\n\r\nabc", false, 200, "abc");
    body_is("HTTP/1.0 200 OK\nX: y\n\nto the end", true, 200, "to the end");
    body_is(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: "
        "1\r\n\r\n",
        false, 200, "abcde");
    body_is("HTTP/1.1 100 Continue\r\n\r\n", false, 100, "");
    body_is("HTTP/1.1 204 No\r\nContent-Length: 9\r\n\r\n", false, 204, "");
}

static void pieces_are_waited_for(void **state)
{
    (void)state;
    static const char *const TEXTS[] = {
        "HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 5\r\n\r\n12345",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"};
    for (size_t i = 0; i < 2; ++i) {
        size_t len = strlen(TEXTS[i]);
        for (size_t n = 0; n < len; ++n) {
            KnHttpAnswer answer = {0};
            KnErr err = {0};
            if (kn_http_answer_parse((KnStr){TEXTS[i], n}, false, &answer, &err) != KN_OK)
                fail_msg("%zu bytes: %s", n, err.msg);
            assert_false(answer.whole);
            assert_int_equal(kn_http_answer_parse((KnStr){TEXTS[i], n}, true, &answer, &err),
                             KN_E_CORRUPT);
            assert_non_null(strstr(err.msg, "ends after"));
        }
    }
}

static void what_is_no_answer_is_shown(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } BAD[] = {
        {"J\x01\x02\n5.7.99", "begins 'J???5.7.99': is this the http port?"},
        {"HTTP/2 200\r\n\r\n", "not HTTP"},
        {"HTTP/1.1 abc\r\n\r\n", "not HTTP"},
        {"HTTP/1.1 999 x\r\n\r\n", "not HTTP"},
        {"HTTP/1.1 2000 x\r\n\r\n", "not HTTP"},
        {"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "Content-Length 'x'"},
        {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "Content-Length '-1'"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", "Content-Length"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "chunks make no sense"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n",
         "chunks make no sense"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n",
         "chunks make no sense"},
    };
    for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); ++i) {
        KnHttpAnswer answer;
        KnErr err;
        assert_int_equal(parse(BAD[i].text, false, &answer, &err), KN_E_CORRUPT);
        if (!strstr(err.msg, BAD[i].words))
            fail_msg("'%s' is not in '%s'", BAD[i].words, err.msg);
    }
}

static void headers_are_found_in_any_case(void **state)
{
    (void)state;
    KnHttpAnswer answer;
    KnErr err;
    assert_int_equal(
        parse("HTTP/1.1 307 x\r\nlocation:  http://a/b \r\nnone\r\n\r\n", false, &answer, &err),
        KN_OK);
    KnStr found = kn_http_answer_header(&answer, "Location");
    assert_true(kn_str_eq(found, KN_STR_LIT("http://a/b")));
    assert_null(kn_http_answer_header(&answer, "none").ptr);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_are_taken_by_their_framing),
        cmocka_unit_test(pieces_are_waited_for),
        cmocka_unit_test(what_is_no_answer_is_shown),
        cmocka_unit_test(headers_are_found_in_any_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_url.c - percent-encoding and the parts of URLs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "net/url.h"

static void everything_but_the_unreserved_is_encoded(void **state)
{
    (void)state;
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, 1000);
    kn_url_encode(&buf, kn_str("dt=2024/a b+c%\xc3\xa9@:!'()*~-._Z9"), true);
    assert_string_equal(buf.data, "dt%3D2024/a%20b%2Bc%25%C3%A9%40%3A%21%27%28%29%2A~-._Z9");
    kn_buf_reset(&buf);
    kn_url_encode(&buf, kn_str("a/b"), false);
    assert_string_equal(buf.data, "a%2Fb");
}

static void decoding_undoes_encoding_of_every_byte(void **state)
{
    (void)state;
    char all[256];
    for (int i = 0; i < 256; ++i)
        all[i] = (char)i;
    KN_BUF_AUTO encoded, decoded;
    kn_buf_init(&encoded, 1000);
    kn_buf_init(&decoded, 1000);
    kn_url_encode(&encoded, (KnStr){all, 256}, false);
    assert_int_equal(kn_url_decode(&decoded, (KnStr){encoded.data, encoded.len}, NULL), KN_OK);
    assert_int_equal(decoded.len, 256);
    assert_memory_equal(decoded.data, all, 256);
}

static void a_broken_escape_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"%", "a%2", "%g0", "%0g", "%%20"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i) {
        KN_BUF_AUTO out;
        kn_buf_init(&out, 100);
        assert_int_equal(kn_url_decode(&out, kn_str(bad[i]), NULL), KN_E_INVAL);
    }
}

static void a_url_has_parts(void **state)
{
    (void)state;
    KnUrl url;
    assert_int_equal(kn_url_parse(kn_str("https://[::1]:8443/a/../b?x=1&y"), &url, NULL), KN_OK);
    assert_true(url.tls);
    assert_true(kn_str_eq(url.authority, kn_str("[::1]:8443")));
    assert_true(kn_str_eq(url.host, kn_str("::1")));
    assert_true(kn_str_eq(url.port, kn_str("8443")));
    assert_true(kn_str_eq(url.path, kn_str("/a/../b")));
    assert_true(kn_str_eq(url.query, kn_str("x=1&y")));
    assert_int_equal(kn_url_parse(kn_str("http://h?q"), &url, NULL), KN_OK);
    assert_false(url.tls);
    assert_int_equal(url.port.len, 0);
    assert_int_equal(url.path.len, 0);
    assert_true(kn_str_eq(url.query, kn_str("q")));
}

static void what_is_no_url_is_refused_without_its_secrets(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",           "host/path",       "ftp://h/",          "http://",          "http:///p",
        "http://:80", "http://h:0/",     "http://h:65536",    "http://h:-1",      "http://h:8o",
        "http://h/ ", "http://h/\r\nX:", "http://h/#f",       "http://[::1",      "http://[::1]x/",
        "http://[]",  "http://h:80:90/", "HTTP s://whatever", "https//oneslash/",
    };
    KnErr err = {0};
    KnUrl url;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i)
        assert_int_equal(kn_url_parse(kn_str(bad[i]), &url, &err), KN_E_INVAL);
    assert_int_equal(kn_url_parse(kn_str("http://me:geheim@h/"), &url, &err), KN_E_INVAL);
    assert_null(strstr(err.msg, "geheim"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_but_the_unreserved_is_encoded),
        cmocka_unit_test(decoding_undoes_encoding_of_every_byte),
        cmocka_unit_test(a_broken_escape_is_refused),
        cmocka_unit_test(a_url_has_parts),
        cmocka_unit_test(what_is_no_url_is_refused_without_its_secrets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

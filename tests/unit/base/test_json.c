/* SPDX-License-Identifier: Apache-2.0 */
/* test_json.c - getters and their messages, strict parsing, quoting. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/json.h"

static json_t *parse(const char *text)
{
    json_t *doc = NULL;
    KnErr err = {0};
    if (kn_json_parse(text, strlen(text), &doc, &err) != KN_OK)
        fail_msg("%s", err.msg);
    return doc;
}

static void fields_of_the_right_type_are_read(void **state)
{
    (void)state;
    KN_JSON_AUTO doc = parse("{\"i\":8558074677705902833,\"b\":true,\"s\":\"x\",\"a\":[1],\"o\":{},"
                             "\"n\":null}");
    int64_t i = 0;
    bool b = false;
    const char *s = NULL;
    json_t *a = NULL, *o = NULL;
    assert_int_equal(kn_json_get_i64(doc, "i", &i, NULL), KN_OK);
    assert_true(i == 8558074677705902833); /* a double would lose the last digits */
    assert_int_equal(kn_json_get_bool(doc, "b", &b, NULL), KN_OK);
    assert_true(b);
    assert_int_equal(kn_json_get_str(doc, "s", &s, NULL), KN_OK);
    assert_string_equal(s, "x");
    assert_int_equal(kn_json_get_array(doc, "a", &a, NULL), KN_OK);
    assert_int_equal(json_array_size(a), 1);
    assert_int_equal(kn_json_get_object(doc, "o", &o, NULL), KN_OK);
    assert_true(json_is_object(o));
}

static void absent_and_null_leave_the_callers_default(void **state)
{
    (void)state;
    KN_JSON_AUTO doc = parse("{\"n\":null}");
    static const char *const keys[] = {"n", "missing"};
    for (int k = 0; k < 2; ++k) {
        int64_t i = 5;
        int32_t j = 6;
        bool b = true;
        const char *s = "dflt";
        json_t *a = doc, *o = doc;
        assert_int_equal(kn_json_opt_i64(doc, keys[k], &i, NULL), KN_OK);
        assert_int_equal(kn_json_opt_i32(doc, keys[k], &j, NULL), KN_OK);
        assert_int_equal(kn_json_opt_bool(doc, keys[k], &b, NULL), KN_OK);
        assert_int_equal(kn_json_opt_str(doc, keys[k], &s, NULL), KN_OK);
        assert_int_equal(kn_json_opt_array(doc, keys[k], &a, NULL), KN_OK);
        assert_int_equal(kn_json_opt_object(doc, keys[k], &o, NULL), KN_OK);
        assert_true(i == 5 && j == 6 && b && s[0] == 'd' && a == doc && o == doc);
    }
}

static void messages_name_the_field_and_what_was_found(void **state)
{
    (void)state;
    KN_JSON_AUTO doc = parse("{\"format-version\":\"2\",\"r\":1.5,\"n\":null,\"big\":2147483648}");
    KnErr err = {0};
    int64_t i = 1;
    int32_t j = 1;
    const char *s = "x";
    assert_int_equal(kn_json_get_i64(doc, "format-version", &i, &err), KN_E_CORRUPT);
    assert_string_equal(err.msg, "field 'format-version': expected an integer, found a string");
    assert_int_equal(kn_json_get_i64(doc, "n", &i, &err), KN_E_CORRUPT);
    assert_string_equal(err.msg, "field 'n' is missing: expected an integer");
    assert_int_equal(kn_json_opt_str(doc, "r", &s, &err), KN_E_CORRUPT);
    assert_string_equal(err.msg, "field 'r': expected a string, found a number with a fraction");
    assert_int_equal(kn_json_get_i32(doc, "big", &j, &err), KN_E_CORRUPT);
    assert_string_equal(err.msg, "field 'big': 2147483648 does not fit 32 bits");
    bool b;
    assert_int_equal(kn_json_get_bool(json_object_get(doc, "r"), "k", &b, &err), KN_E_CORRUPT);
    assert_string_equal(err.msg,
                        "field 'k': expected to be in an object, found a number with a fraction");
    assert_int_equal(kn_json_get_bool(NULL, "k", &b, &err), KN_E_CORRUPT);
    assert_true(i == 1 && j == 1 && s[0] == 'x');
}

static void what_is_not_json_is_refused_with_its_place(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",        "{\"a\":1,}",        "{\"a\":1} x",
                                        "[NaN]",   "{\"a\":1,\"a\":2}", "[99999999999999999999]",
                                        "{\"a\":", "\"\xff\"",          "[1e999]"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
        json_t *doc = NULL;
        KnErr err = {0};
        assert_int_equal(kn_json_parse(wrong[i], strlen(wrong[i]), &doc, &err), KN_E_CORRUPT);
        assert_null(doc);
        assert_non_null(strstr(err.msg, "line 1 column"));
    }
    KnBuf deep;
    kn_buf_init(&deep, 10000);
    for (int i = 0; i < 5000; ++i)
        kn_buf_char(&deep, '[');
    json_t *doc = NULL;
    assert_int_equal(kn_json_parse(deep.data, deep.len, &doc, NULL), KN_E_CORRUPT);
    kn_buf_done(&deep);
}

static void strings_are_quoted_so_that_they_parse_again(void **state)
{
    (void)state;
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, 1000);
    kn_json_quote(&buf, (KnStr){"a\"\\/\b\f\n\r\t\x01\x1f\xe2\x82\xac\xff", 15});
    assert_string_equal(buf.data,
                        "\"a\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\xe2\x82\xac\xef\xbf\xbd\"");
    json_t *doc = parse(buf.data);
    assert_string_equal(json_string_value(doc), "a\"\\/\b\f\n\r\t\x01\x1f\xe2\x82\xac\xef\xbf\xbd");
    json_decref(doc);
    kn_buf_reset(&buf);
    kn_json_quote(&buf, (KnStr){"\0", 1});
    assert_string_equal(buf.data, "\"\\u0000\"");
}

static void documents_are_dumped_compact_in_order(void **state)
{
    (void)state;
    KN_JSON_AUTO doc = parse("{ \"b\" : 1, \"a\" : [ true, null, \"x/y\" ] }");
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, 1000);
    kn_json_dump(&buf, doc);
    assert_string_equal(buf.data, "{\"b\":1,\"a\":[true,null,\"x/y\"]}");
    KN_BUF_AUTO small;
    kn_buf_init(&small, 5);
    kn_json_dump(&small, doc);
    assert_int_equal(kn_buf_check(&small, NULL), KN_E_NOMEM);
}

static void numbers_and_texts_are_dumped_so_that_they_parse_again(void **state)
{
    (void)state;
    static const char text[] = "[0,-1,9223372036854775807,-9223372036854775808,1.5,-0.0,1e300,0.1,"
                               "\"\\u0001\\\"\\\\x\",{},[]]";
    KN_JSON_AUTO doc = parse(text);
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, 1000);
    kn_json_dump(&buf, doc);
    assert_string_equal(buf.data,
                        "[0,-1,9223372036854775807,-9223372036854775808,1.5,-0.0,"
                        "1.0000000000000001e300,0.10000000000000001,\"\\u0001\\\"\\\\x\",{},[]]");
    json_t *again = NULL;
    assert_int_equal(kn_json_parse(buf.data, buf.len, &again, NULL), KN_OK);
    assert_true(json_equal(doc, again));
    json_decref(again);
}

static void what_is_no_document_fails_the_buffer(void **state)
{
    (void)state;
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, 1 << 20);
    kn_json_dump(&buf, NULL);
    assert_true(buf.failed);
    json_t *deep = json_array();
    for (int i = 0; i < 5000; i++) {
        json_t *outer = json_array();
        assert_int_equal(json_array_append_new(outer, deep), 0);
        deep = outer;
    }
    kn_buf_reset(&buf);
    kn_json_dump(&buf, deep);
    assert_true(buf.failed);
    json_decref(deep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_of_the_right_type_are_read),
        cmocka_unit_test(absent_and_null_leave_the_callers_default),
        cmocka_unit_test(messages_name_the_field_and_what_was_found),
        cmocka_unit_test(what_is_not_json_is_refused_with_its_place),
        cmocka_unit_test(strings_are_quoted_so_that_they_parse_again),
        cmocka_unit_test(documents_are_dumped_compact_in_order),
        cmocka_unit_test(numbers_and_texts_are_dumped_so_that_they_parse_again),
        cmocka_unit_test(what_is_no_document_fails_the_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

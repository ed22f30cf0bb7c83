/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.c - jansson with our errors, and a JSON writer on KnBuf.
 *
 * Every getter goes through field(), which decides between absent, null and wrong type, so that all
 * of them speak alike. A JSON null counts as absent. Nothing here keeps references: what a getter
 * returns is borrowed from the document.
 */
#include "base/json.h"

#include <assert.h>
#include <inttypes.h>

enum { WANT_BOOL = JSON_NULL + 1 }; /* jansson has two boolean types */

KnCode kn_json_parse(const char *text, size_t len, json_t **ret, KnErr *err)
{
    json_error_t at;
    json_t *doc = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &at);
    if (!doc) {
        KnCode code = json_error_code(&at) == json_error_out_of_memory ? KN_E_NOMEM : KN_E_CORRUPT;
        return kn_err_set(err, code, "not valid JSON: line %d column %d: %s", at.line, at.column,
                          at.text);
    }
    *ret = doc;
    return KN_OK;
}

static const char *type_name(int type)
{
    switch (type) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "an integer";
    case JSON_REAL:
        return "a number with a fraction";
    case JSON_NULL:
        return "null";
    default:
        return "a boolean";
    }
}

/* The field when it is there and has the type; *ret NULL when it is absent and may be. */
static KnCode field(const json_t *obj, const char *key, int want, const json_t **ret, KnErr *err)
{
    if (!json_is_object(obj))
        return kn_err_set(err, KN_E_CORRUPT, "field '%s': expected to be in an object, found %s",
                          key, obj ? type_name((int)json_typeof(obj)) : "nothing");
    const json_t *value = json_object_get(obj, key);
    if (!value || json_is_null(value)) {
        *ret = NULL;
        return KN_OK;
    }
    bool fits = want == WANT_BOOL ? json_is_boolean(value) : (int)json_typeof(value) == want;
    if (!fits)
        return kn_err_set(err, KN_E_CORRUPT, "field '%s': expected %s, found %s", key,
                          type_name(want), type_name((int)json_typeof(value)));
    *ret = value;
    return KN_OK;
}

static KnCode field_required(const json_t *obj, const char *key, int want, const json_t **ret,
                             KnErr *err)
{
    const json_t *value = NULL;
    KN_TRY(field(obj, key, want, &value, err));
    if (!value)
        return kn_err_set(err, KN_E_CORRUPT, "field '%s' is missing: expected %s", key,
                          type_name(want));
    *ret = value;
    return KN_OK;
}

static KnCode to_i32(const char *key, int64_t value, int32_t *ret, KnErr *err)
{
    if (value < INT32_MIN || value > INT32_MAX)
        return kn_err_set(err, KN_E_CORRUPT, "field '%s': %lld does not fit 32 bits", key,
                          (long long)value);
    *ret = (int32_t)value;
    return KN_OK;
}

KnCode kn_json_get_i64(const json_t *obj, const char *key, int64_t *ret, KnErr *err)
{
    const json_t *value = NULL;
    KN_TRY(field_required(obj, key, JSON_INTEGER, &value, err));
    *ret = json_integer_value(value);
    return KN_OK;
}

KnCode kn_json_opt_i64(const json_t *obj, const char *key, int64_t *ret, KnErr *err)
{
    const json_t *value = NULL;
    KN_TRY(field(obj, key, JSON_INTEGER, &value, err));
    if (value)
        *ret = json_integer_value(value);
    return KN_OK;
}

KnCode kn_json_get_i32(const json_t *obj, const char *key, int32_t *ret, KnErr *err)
{
    int64_t wide = 0;
    KN_TRY(kn_json_get_i64(obj, key, &wide, err));
    return to_i32(key, wide, ret, err);
}

KnCode kn_json_opt_i32(const json_t *obj, const char *key, int32_t *ret, KnErr *err)
{
    int64_t wide = *ret;
    KN_TRY(kn_json_opt_i64(obj, key, &wide, err));
    return to_i32(key, wide, ret, err);
}

KnCode kn_json_get_bool(const json_t *obj, const char *key, bool *ret, KnErr *err)
{
    const json_t *value = NULL;
    KN_TRY(field_required(obj, key, WANT_BOOL, &value, err));
    *ret = json_is_true(value);
    return KN_OK;
}

KnCode kn_json_opt_bool(const json_t *obj, const char *key, bool *ret, KnErr *err)
{
    const json_t *value = NULL;
    KN_TRY(field(obj, key, WANT_BOOL, &value, err));
    if (value)
        *ret = json_is_true(value);
    return KN_OK;
}

KnCode kn_json_get_str(const json_t *obj, const char *key, const char **ret, KnErr *err)
{
    const json_t *value = NULL;
    KN_TRY(field_required(obj, key, JSON_STRING, &value, err));
    *ret = json_string_value(value);
    return KN_OK;
}

KnCode kn_json_opt_str(const json_t *obj, const char *key, const char **ret, KnErr *err)
{
    const json_t *value = NULL;
    KN_TRY(field(obj, key, JSON_STRING, &value, err));
    if (value)
        *ret = json_string_value(value);
    return KN_OK;
}

static KnCode get_container(const json_t *obj, const char *key, int want, json_t **ret, KnErr *err)
{
    const json_t *value = NULL;
    KN_TRY(field_required(obj, key, want, &value, err));
    *ret = json_object_get(obj, key); /* the same value, and not const: jansson counts references */
    return KN_OK;
}

static KnCode opt_container(const json_t *obj, const char *key, int want, json_t **ret, KnErr *err)
{
    const json_t *value = NULL;
    KN_TRY(field(obj, key, want, &value, err));
    if (value)
        *ret = json_object_get(obj, key);
    return KN_OK;
}

KnCode kn_json_get_array(const json_t *obj, const char *key, json_t **ret, KnErr *err)
{
    return get_container(obj, key, JSON_ARRAY, ret, err);
}

KnCode kn_json_opt_array(const json_t *obj, const char *key, json_t **ret, KnErr *err)
{
    return opt_container(obj, key, JSON_ARRAY, ret, err);
}

KnCode kn_json_get_object(const json_t *obj, const char *key, json_t **ret, KnErr *err)
{
    return get_container(obj, key, JSON_OBJECT, ret, err);
}

KnCode kn_json_opt_object(const json_t *obj, const char *key, json_t **ret, KnErr *err)
{
    return opt_container(obj, key, JSON_OBJECT, ret, err);
}

static void quote_ascii(KnBuf *buf, char c)
{
    static const char plain[] = "\"\\\b\f\n\r\t", escape[] = "\"\\bfnrt";
    const char *at = memchr(plain, c, sizeof(plain) - 1);
    if (at) {
        kn_buf_char(buf, '\\');
        kn_buf_char(buf, escape[at - plain]);
    } else if ((unsigned char)c < 0x20) {
        kn_buf_printf(buf, "\\u%04x", (unsigned)c);
    } else {
        kn_buf_char(buf, c);
    }
}

/* How many bytes at the beginning stand for themselves. */
static size_t plain_run(KnStr s)
{
    size_t n = 0;
    while (n < s.len && (unsigned char)s.ptr[n] >= 0x20 && (unsigned char)s.ptr[n] < 0x80 &&
           s.ptr[n] != '"' && s.ptr[n] != '\\')
        n++;
    return n;
}

void kn_json_quote(KnBuf *buf, KnStr s)
{
    kn_buf_char(buf, '"');
    while (s.len) {
        size_t run = plain_run(s);
        size_t n = run ? run : kn_str_utf8_len(s);
        if (run || n > 1)
            kn_buf_append(buf, s.ptr, n);
        else if (n == 1)
            quote_ascii(buf, *s.ptr);
        else
            kn_buf_append(buf, "\xef\xbf\xbd", 3);
        n += n == 0;
        s = (KnStr){s.ptr + n, s.len - n};
    }
    kn_buf_char(buf, '"');
}

void kn_json_put_text(KnBuf *buf, const char *name, const char *text)
{
    kn_buf_printf(buf, "\"%s\":", name);
    kn_json_quote(buf, kn_str(text));
}

void kn_json_put_count(KnBuf *buf, const char *name, int64_t value)
{
    if (value < 0)
        kn_buf_printf(buf, "\"%s\":null", name);
    else
        kn_buf_printf(buf, "\"%s\":%" PRId64, name, value);
}

/* ---- documents ---- */

enum { DUMP_DEPTH_MAX = 4096 }; /* twice what can be parsed: a cycle ends here */

static void dump_integer(KnBuf *buf, json_int_t value)
{
    char text[24], *at = text + sizeof(text);
    unsigned long long left =
        value < 0 ? 0ULL - (unsigned long long)value : (unsigned long long)value;
    do {
        *--at = (char)('0' + left % 10);
        left /= 10;
    } while (left);
    if (value < 0)
        *--at = '-';
    kn_buf_append(buf, at, (size_t)(text + sizeof(text) - at));
}

/* In jansson's spelling, which reads back as a number with a fraction. */
static void dump_real(KnBuf *buf, const json_t *value)
{
    char text[64];
    size_t len = json_dumpb(value, text, sizeof(text), JSON_ENCODE_ANY);
    if (len == 0 || len > sizeof(text))
        buf->failed = true;
    else
        kn_buf_append(buf, text, len);
}

static void dump(KnBuf *buf, const json_t *value, int depth);

static void dump_array(KnBuf *buf, const json_t *array, int depth)
{
    size_t n = json_array_size(array);
    kn_buf_char(buf, '[');
    for (size_t i = 0; i < n && !buf->failed; i++) {
        if (i)
            kn_buf_char(buf, ',');
        dump(buf, json_array_get(array, i), depth);
    }
    kn_buf_char(buf, ']');
}

static void dump_object(KnBuf *buf, json_t *object, int depth)
{
    kn_buf_char(buf, '{');
    for (void *at = json_object_iter(object), *first = at; at && !buf->failed;
         at = json_object_iter_next(object, at)) {
        if (at != first)
            kn_buf_char(buf, ',');
        kn_json_quote(buf, kn_str(json_object_iter_key(at)));
        kn_buf_char(buf, ':');
        dump(buf, json_object_iter_value(at), depth);
    }
    kn_buf_char(buf, '}');
}

static void dump(KnBuf *buf, const json_t *value, int depth)
{
    if (!value || depth > DUMP_DEPTH_MAX) {
        buf->failed = true;
        return;
    }
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        dump_object(buf, (json_t *)(uintptr_t)value, depth + 1);
        return;
    case JSON_ARRAY:
        dump_array(buf, value, depth + 1);
        return;
    case JSON_STRING:
        kn_json_quote(buf, (KnStr){json_string_value(value), json_string_length(value)});
        return;
    case JSON_INTEGER:
        dump_integer(buf, json_integer_value(value));
        return;
    case JSON_REAL:
        dump_real(buf, value);
        return;
    case JSON_TRUE:
    case JSON_FALSE:
        kn_buf_text(buf, json_is_true(value) ? "true" : "false");
        return;
    case JSON_NULL:
        kn_buf_text(buf, "null");
        return;
    }
}

void kn_json_dump(KnBuf *buf, const json_t *doc)
{
    dump(buf, doc, 0); /* a document that is not one (NULL, a cycle) fails the buffer */
}

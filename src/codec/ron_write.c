/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ron_write.c - trees to RON, laid out as serde's default pretty writer does: four spaces, one item
 * a line, a comma behind each; a tuple stays on its line.
 */
#include "codec/ron.h"

/* Characters that a string may hold as they are: no controls, nothing that is invisible or turns
 * the direction of the text. */
static bool is_plain(KnStr s, size_t *ret_len)
{
    unsigned char c = (unsigned char)*s.ptr;
    *ret_len = kn_str_utf8_len(s);
    if (*ret_len == 1)
        return c >= 0x20 && c != 0x7F;
    if (c == 0xC2)
        return (unsigned char)s.ptr[1] >= 0xA0;
    if (c == 0xE2 && (unsigned char)s.ptr[1] == 0x80)
        return (unsigned char)s.ptr[2] < 0x8B ||
               ((unsigned char)s.ptr[2] > 0x8F && (unsigned char)s.ptr[2] < 0xA8);
    return *ret_len > 0 && !(c == 0xEF && memcmp(s.ptr, "\xEF\xBB\xBF", 3) == 0);
}

static uint32_t decode(const char *p, size_t len)
{
    const unsigned char *u = (const unsigned char *)p;
    if (len == 2)
        return (uint32_t)(u[0] & 0x1F) << 6 | (u[1] & 0x3F);
    if (len == 3)
        return (uint32_t)(u[0] & 0x0F) << 12 | (uint32_t)(u[1] & 0x3F) << 6 | (u[2] & 0x3F);
    if (len == 4)
        return (uint32_t)(u[0] & 0x07) << 18 | (uint32_t)(u[1] & 0x3F) << 12 |
               (uint32_t)(u[2] & 0x3F) << 6 | (u[3] & 0x3F);
    return u[0];
}

static void write_escaped(KnBuf *buf, KnStr s)
{
    kn_buf_char(buf, '"');
    for (size_t i = 0, len; i < s.len; i += len) {
        const char *p = s.ptr + i;
        bool plain = is_plain((KnStr){p, s.len - i}, &len);
        if (len == 0) /* not UTF-8: callers do not have such */
            len = 1;
        if (*p == '"' || *p == '\\')
            kn_buf_printf(buf, "\\%c", *p);
        else if (*p == '\n' || *p == '\r' || *p == '\t')
            kn_buf_text(buf, *p == '\n' ? "\\n" : *p == '\r' ? "\\r" : "\\t");
        else if (plain)
            kn_buf_str(buf, (KnStr){p, len});
        else
            kn_buf_printf(buf, "\\u{%x}", decode(p, len));
    }
    kn_buf_char(buf, '"');
}

/* True when a raw string shows s as it is and is better to read than escapes. */
static bool is_better_raw(KnStr s)
{
    bool better = false;
    for (size_t i = 0, len; i < s.len; i += len) {
        char c = s.ptr[i];
        bool plain = is_plain((KnStr){s.ptr + i, s.len - i}, &len);
        if (len == 0 || (!plain && c != '\n' && c != '\t'))
            return false;
        better = better || c == '"' || c == '\\' || c == '\n';
    }
    return better;
}

static void write_raw(KnBuf *buf, KnStr s)
{
    size_t most = 0, run = 0;
    for (size_t i = 0; i < s.len; i++) {
        run = s.ptr[i] == '#' ? run + 1 : 0;
        most = run > most ? run : most;
    }
    kn_buf_char(buf, 'r');
    for (size_t i = 0; i <= most; i++)
        kn_buf_char(buf, '#');
    kn_buf_char(buf, '"');
    kn_buf_str(buf, s);
    kn_buf_char(buf, '"');
    for (size_t i = 0; i <= most; i++)
        kn_buf_char(buf, '#');
}

static void indent(KnBuf *buf, size_t depth)
{
    for (size_t i = 0; i < depth; i++)
        kn_buf_text(buf, "    ");
}

/* Words that mean something else, or hold other characters, are marked. */
static void write_name(KnBuf *buf, KnStr name)
{
    static const char *const taken[] = {"true", "false", "inf", "NaN"};
    bool raw = name.len > 0 && name.ptr[0] >= '0' && name.ptr[0] <= '9';
    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
        raw = raw || kn_str_eq(name, kn_str(taken[i]));
    for (size_t i = 0; i < name.len; i++)
        raw = raw || memchr(".+-", name.ptr[i], 3);
    kn_buf_text(buf, raw ? "r#" : "");
    kn_buf_str(buf, name);
}

static void write_value(KnBuf *buf, const KnRon *ron, size_t depth);

static void write_lines(KnBuf *buf, const KnRon *ron, size_t depth, const char *brackets)
{
    kn_buf_char(buf, brackets[0]);
    for (size_t i = 0; i < ron->len; i++) {
        const KnRonItem *item = &ron->items[i];
        if (i == 0)
            kn_buf_char(buf, '\n');
        indent(buf, depth + 1);
        if (ron->kind == KN_RON_STRUCT) {
            write_name(buf, item->name);
            kn_buf_text(buf, ": ");
        } else if (ron->kind == KN_RON_MAP) {
            write_value(buf, item->key, depth + 1);
            kn_buf_text(buf, ": ");
        }
        write_value(buf, &item->value, depth + 1);
        kn_buf_text(buf, ",\n");
    }
    if (ron->len > 0)
        indent(buf, depth);
    kn_buf_char(buf, brackets[1]);
}

static void write_tuple(KnBuf *buf, const KnRon *ron, size_t depth)
{
    kn_buf_char(buf, '(');
    for (size_t i = 0; i < ron->len; i++) {
        if (i > 0)
            kn_buf_text(buf, ", ");
        write_value(buf, &ron->items[i].value, depth);
    }
    kn_buf_char(buf, ')');
}

static void write_value(KnBuf *buf, const KnRon *ron, size_t depth)
{
    write_name(buf, ron->name);
    switch (ron->kind) {
    case KN_RON_WORD:
        return;
    case KN_RON_BOOL:
    case KN_RON_NUMBER:
    case KN_RON_RANGE:
        kn_buf_str(buf, ron->text);
        return;
    case KN_RON_TEXT:
        if (is_better_raw(ron->text))
            write_raw(buf, ron->text);
        else
            write_escaped(buf, ron->text);
        return;
    case KN_RON_CHAR:
        kn_buf_printf(buf, "'\\u{%x}'", decode(ron->text.ptr, ron->text.len));
        return;
    case KN_RON_BYTES:
        kn_buf_text(buf, "b\"");
        for (size_t i = 0; i < ron->text.len; i++)
            kn_buf_printf(buf, "\\x%02x", (unsigned char)ron->text.ptr[i]);
        kn_buf_char(buf, '"');
        return;
    case KN_RON_LIST:
        write_lines(buf, ron, depth, "[]");
        return;
    case KN_RON_TUPLE:
        write_tuple(buf, ron, depth);
        return;
    case KN_RON_STRUCT:
        write_lines(buf, ron, depth, "()");
        return;
    case KN_RON_MAP:
        write_lines(buf, ron, depth, "{}");
        return;
    }
}

void kn_ron_write(KnBuf *buf, const KnRon *value)
{
    write_value(buf, value, 0);
    kn_buf_char(buf, '\n');
}

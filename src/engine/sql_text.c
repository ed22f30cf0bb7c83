/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sql_text.c - names, texts and paths as the engine's SQL spells them.
 *
 * Texts are standard literals: only the quote is doubled, no escapes are recognised inside. A NUL
 * cannot be spelled in SQL text and ends it; paths and names from outside are checked before they
 * come here.
 *
 * The engine globs every path that holds one of `*?[`. Inside brackets each of them means itself,
 * so
 * `[*]` is a star. As soon as a path globs, a backslash in it separates folders, in brackets too;
 * it is then spelled as the class of every byte but all other ASCII ones. (What is left besides the
 * backslash, a lone byte above 127, is not UTF-8.) A path without `*?[` is taken literally.
 */
#include "engine/engine.h"

static void quoted(KnBuf *buf, KnStr s, char quote)
{
    kn_buf_char(buf, quote);
    while (s.len) {
        const char *end = memchr(s.ptr, quote, s.len);
        size_t len = end ? (size_t)(end - s.ptr) + 1 : s.len;
        kn_buf_append(buf, s.ptr, len);
        if (end)
            kn_buf_char(buf, quote);
        s = (KnStr){s.ptr + len, s.len - len};
    }
    kn_buf_char(buf, quote);
}

void kn_sql_ident(KnBuf *buf, KnStr name)
{
    quoted(buf, name, '"');
}

void kn_sql_text(KnBuf *buf, KnStr value)
{
    quoted(buf, value, '\'');
}

static const char *in_arena(KnArena *arena, void (*write)(KnBuf *, KnStr), const char *text)
{
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, (size_t)32 << 20);
    write(&buf, kn_str(text));
    return kn_arena_strndup(arena, buf.data ? buf.data : "", buf.len);
}

const char *kn_sql_ident_of(KnArena *arena, const char *name)
{
    return in_arena(arena, kn_sql_ident, name);
}

const char *kn_sql_text_of(KnArena *arena, const char *value)
{
    return in_arena(arena, kn_sql_text, value);
}

void kn_sql_blob(KnBuf *buf, KnStr bytes)
{
    static const char hex[] = "0123456789ABCDEF";
    kn_buf_char(buf, '\'');
    for (size_t i = 0; i < bytes.len; i++) {
        unsigned char c = (unsigned char)bytes.ptr[i];
        const char text[] = {'\\', 'x', hex[c >> 4], hex[c & 15]};
        kn_buf_append(buf, text, sizeof(text));
    }
    kn_buf_text(buf, "'::BLOB");
}

void kn_sql_path(KnBuf *buf, KnStr path)
{
    bool globs = false;
    for (size_t i = 0; i < path.len; i++)
        globs |= path.ptr[i] == '*' || path.ptr[i] == '?' || path.ptr[i] == '[';
    kn_buf_char(buf, '\'');
    for (size_t i = 0; i < path.len; i++) {
        char c = path.ptr[i];
        if (c == '\'')
            kn_buf_text(buf, "''");
        else if (c == '*' || c == '?' || c == '[')
            kn_buf_printf(buf, "[%c]", c);
        else if (c == '\\' && globs)
            kn_buf_text(buf, "[!]-\x7f\x01-[]");
        else
            kn_buf_char(buf, c);
    }
    kn_buf_char(buf, '\'');
}

void kn_parquet_scan_sql(KnBuf *buf, const char *const *paths, size_t n)
{
    kn_buf_text(buf, "read_parquet([");
    for (size_t i = 0; i < n; i++) {
        if (i)
            kn_buf_text(buf, ", ");
        kn_sql_path(buf, kn_str(paths[i]));
    }
    kn_buf_text(buf, "], hive_partitioning = false)");
}

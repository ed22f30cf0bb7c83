/* SPDX-License-Identifier: Apache-2.0 */
/* text_cursor.c - see text_cursor.h. */
#include "iceberg/schema/text_cursor.h"

#include <ctype.h>
#include <string.h>

#include "base/buf.h"

static void skip_blanks(KnTextCursor *cur)
{
    while (cur->at < cur->text.len && isspace((unsigned char)cur->text.ptr[cur->at]))
        cur->at++;
}

bool kn_cursor_at_end(KnTextCursor *cur)
{
    skip_blanks(cur);
    return cur->at == cur->text.len;
}

bool kn_cursor_eat(KnTextCursor *cur, char c)
{
    if (kn_cursor_at_end(cur) || cur->text.ptr[cur->at] != c)
        return false;
    cur->at++;
    return true;
}

static bool is_word_byte(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

KnStr kn_cursor_peek_word(KnTextCursor *cur)
{
    size_t end;

    skip_blanks(cur);
    for (end = cur->at; end < cur->text.len && is_word_byte(cur->text.ptr[end]);)
        end++;
    return (KnStr){cur->text.ptr + cur->at, end - cur->at};
}

bool kn_cursor_eat_word(KnTextCursor *cur, const char *word)
{
    KnStr here = kn_cursor_peek_word(cur);

    if (!kn_str_eq_nocase(here, kn_str(word)))
        return false;
    cur->at += here.len;
    return true;
}

KnCode kn_cursor_fail(KnTextCursor *cur, const char *expected, KnErr *err)
{
    KnStr word = kn_cursor_peek_word(cur);

    if (cur->at == cur->text.len)
        return kn_err_set(err, KN_E_INVAL, "position %zu: expected %s, found the end", cur->at + 1,
                          expected);
    if (word.len == 0)
        word = (KnStr){cur->text.ptr + cur->at, 1};
    if (word.len > 60)
        word.len = 60;
    return kn_err_set(err, KN_E_INVAL, "position %zu: expected %s, found '" KN_STR_FMT "'",
                      cur->at + 1, expected, KN_STR_ARG(word));
}

KnCode kn_cursor_expect(KnTextCursor *cur, char c, KnErr *err)
{
    const char quoted[] = {'\'', c, '\'', '\0'};

    return kn_cursor_eat(cur, c) ? KN_OK : kn_cursor_fail(cur, quoted, err);
}

/* After the opening backquote. */
static KnCode quoted_name(KnTextCursor *cur, KnBuf *name, KnErr *err)
{
    for (; cur->at < cur->text.len; cur->at++) {
        char c = cur->text.ptr[cur->at];
        if (c == '\0')
            break;
        if (c == '`') {
            cur->at++;
            if (cur->at == cur->text.len || cur->text.ptr[cur->at] != '`')
                return KN_OK;
        }
        kn_buf_char(name, c);
    }
    return kn_cursor_fail(cur, "a closing '`'", err);
}

static KnCode append_name(KnTextCursor *cur, KnBuf *name, KnErr *err)
{
    KnStr word = kn_cursor_peek_word(cur);
    size_t before = name->len;

    if (word.len > 0 && !isdigit((unsigned char)word.ptr[0])) {
        kn_buf_str(name, word);
        cur->at += word.len;
    } else if (kn_cursor_eat(cur, '`')) {
        KN_TRY(quoted_name(cur, name, err));
    }
    if (name->len == before)
        return kn_cursor_fail(cur, "a name", err);
    if (!kn_str_is_utf8((KnStr){name->data, name->len}))
        return kn_err_set(err, KN_E_INVAL, "position %zu: the name before is not UTF-8",
                          cur->at + 1);
    return kn_buf_check(name, err);
}

KnCode kn_cursor_name(KnTextCursor *cur, const char **ret, KnErr *err)
{
    KN_BUF_AUTO name = {0};

    kn_buf_init(&name, (size_t)64 << 10);
    KN_TRY(append_name(cur, &name, err));
    *ret = kn_arena_strndup(cur->arena, name.data, name.len);
    return KN_OK;
}

KnCode kn_cursor_path_split(KnTextCursor *cur, const char **ret_parent, const char **ret_name,
                            KnErr *err)
{
    KN_BUF_AUTO path = {0};
    size_t last = 0; /* where the last name begins */

    kn_buf_init(&path, (size_t)64 << 10);
    KN_TRY(append_name(cur, &path, err));
    while (kn_cursor_eat(cur, '.')) {
        kn_buf_char(&path, '.');
        last = path.len;
        KN_TRY(append_name(cur, &path, err));
    }
    *ret_parent = last > 0 ? kn_arena_strndup(cur->arena, path.data, last - 1) : NULL;
    *ret_name = kn_arena_strndup(cur->arena, path.data + last, path.len - last);
    return KN_OK;
}

KnCode kn_cursor_path(KnTextCursor *cur, const char **ret, KnErr *err)
{
    const char *parent, *name;

    KN_TRY(kn_cursor_path_split(cur, &parent, &name, err));
    *ret = parent ? kn_arena_printf(cur->arena, "%s.%s", parent, name) : name;
    return KN_OK;
}

KnCode kn_cursor_quoted(KnTextCursor *cur, const char **ret, KnErr *err)
{
    KN_BUF_AUTO text = {0};
    const size_t start = cur->at;

    kn_buf_init(&text, (size_t)1 << 20);
    KN_TRY(kn_cursor_expect(cur, '\'', err));
    for (; cur->at < cur->text.len && cur->text.ptr[cur->at] != '\0'; cur->at++) {
        if (cur->text.ptr[cur->at] == '\'') {
            cur->at++;
            if (cur->at == cur->text.len || cur->text.ptr[cur->at] != '\'') {
                if (!kn_str_is_utf8((KnStr){text.data, text.len}))
                    return kn_err_set(err, KN_E_INVAL, "position %zu: the text is not UTF-8",
                                      start + 1);
                *ret = kn_arena_strndup(cur->arena, text.len ? text.data : "", text.len);
                return kn_buf_check(&text, err);
            }
        }
        kn_buf_char(&text, cur->text.ptr[cur->at]);
    }
    return kn_cursor_fail(cur, "a closing quote (')", err);
}

KnCode kn_cursor_number(KnTextCursor *cur, int64_t *ret, KnErr *err)
{
    KnStr word = kn_cursor_peek_word(cur);

    if (!kn_str_to_i64(word, ret))
        return kn_cursor_fail(cur, "a number", err);
    cur->at += word.len;
    return KN_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* support.c - the engine's tests: fixtures, and values as text. */
#include "unit/engine/support.h"

#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SQL_MAX = 1 << 20 };

int bench_setup(void **state)
{
    Bench *b = calloc(1, sizeof(*b));
    assert_non_null(b);
    memcpy(b->dir, "/tmp/knut-test-XXXXXX", sizeof("/tmp/knut-test-XXXXXX"));
    assert_non_null(mkdtemp(b->dir));
    const KnEngineOptions opts = {.threads = 2, .memory_limit = (uint64_t)128 << 20};
    assert_ok(b, kn_engine_open(&opts, &b->eng, &b->err));
    assert_ok(b, kn_session_open(b->eng, &b->ses, &b->err));
    *state = b;
    return 0;
}

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

int bench_teardown(void **state)
{
    Bench *b = *state;
    kn_session_close(b->ses);
    kn_engine_close(b->eng);
    int failed = nftw(b->dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    free(b);
    return failed;
}

__attribute__((format(printf, 1, 0))) static char *format(const char *fmt, va_list args)
{
    char *sql = NULL;
    assert_true(vasprintf(&sql, fmt, args) >= 0);
    return sql;
}

void bench_exec(Bench *b, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char *sql = format(fmt, args);
    va_end(args);
    assert_ok(b, kn_session_exec(b->ses, sql, NULL, &b->err));
    free(sql);
}

KnStream *bench_query(Bench *b, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char *sql = format(fmt, args);
    va_end(args);
    KnStream *stream = NULL;
    assert_ok(b, kn_session_query(b->ses, sql, &stream, &b->err));
    free(sql);
    return stream;
}

const char *bench_text(Bench *b, const char *fmt, ...)
{
    static char text[4096];
    va_list args;
    va_start(args, fmt);
    char *sql = format(fmt, args);
    va_end(args);
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, sizeof(text) - 1);
    assert_ok(b, kn_session_query_text(b->ses, sql, &buf, &b->err));
    free(sql);
    memcpy(text, buf.data, buf.len + 1);
    return text;
}

static void int128_text(KnBuf *buf, __int128 value)
{
    char digits[64];
    size_t at = sizeof(digits);
    bool negative = value < 0;
    unsigned __int128 rest = negative ? -(unsigned __int128)value : (unsigned __int128)value;
    do {
        digits[--at] = (char)('0' + (int)(rest % 10));
        rest /= 10;
    } while (rest);
    if (negative)
        digits[--at] = '-';
    kn_buf_append(buf, digits + at, sizeof(digits) - at);
}

static void bytes_text(KnBuf *buf, const uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        kn_buf_printf(buf, "%02x", bytes[i]);
}

static void struct_text(KnBuf *buf, const KnVector *vec, size_t row)
{
    kn_buf_char(buf, '{');
    for (size_t i = 0; i < vec->type->n_children; i++) {
        KnVector child = kn_vector_child(vec, i);
        kn_buf_printf(buf, "%s%s=", i ? "," : "", vec->type->child_names[i]);
        value_text(buf, &child, row);
    }
    kn_buf_char(buf, '}');
}

static void list_text(KnBuf *buf, const KnVector *vec, size_t row)
{
    KnListEntry entry = ((const KnListEntry *)vec->data)[row];
    KnVector child = kn_vector_child(vec, 0);
    kn_buf_char(buf, '[');
    for (size_t i = 0; i < entry.length; i++) {
        kn_buf_text(buf, i ? "," : "");
        value_text(buf, &child, entry.offset + i);
    }
    kn_buf_char(buf, ']');
}

void value_text(KnBuf *buf, const KnVector *vec, size_t row)
{
    uint8_t uuid[16];
    if (vec->type->kind == KN_COL_NULL || kn_vector_is_null(vec, row)) {
        kn_buf_text(buf, "NULL");
        return;
    }
    switch (vec->type->kind) {
    case KN_COL_FLOAT:
        kn_buf_printf(buf, "%g", (double)((const float *)vec->data)[row]);
        break;
    case KN_COL_DOUBLE:
        kn_buf_printf(buf, "%g", ((const double *)vec->data)[row]);
        break;
    case KN_COL_VARCHAR:
        kn_buf_str(buf, kn_vector_str(vec, row));
        break;
    case KN_COL_BLOB: {
        KnStr s = kn_vector_str(vec, row);
        bytes_text(buf, (const uint8_t *)s.ptr, s.len);
        break;
    }
    case KN_COL_UUID:
        kn_vector_uuid(vec, row, uuid);
        bytes_text(buf, uuid, sizeof(uuid));
        break;
    case KN_COL_STRUCT:
        struct_text(buf, vec, row);
        break;
    case KN_COL_LIST:
    case KN_COL_MAP:
        list_text(buf, vec, row);
        break;
    default:
        int128_text(buf, kn_vector_int128(vec, row));
    }
}

void batch_text(KnBuf *buf, const KnBatch *batch)
{
    for (size_t row = 0; row < kn_batch_rows(batch); row++) {
        for (size_t c = 0; c < kn_batch_n_columns(batch); c++) {
            KnVector vec = kn_batch_vector(batch, c);
            kn_buf_text(buf, c ? "|" : "");
            value_text(buf, &vec, row);
        }
        kn_buf_char(buf, '\n');
    }
}

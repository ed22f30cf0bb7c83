/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrow_column.c - a column of an Arrow record batch, filled from the engine's vectors.
 *
 * Doris reads the buffers of an Arrow column as those of its own type, unchecked. So the layout
 * follows the target and not the source: an int for a BIGINT column is widened, a decimal is
 * brought to the target's scale, a time is text. Most of it is a copy of a vector's array.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "arrow_internal.h"

#define MAX_COLUMN ((size_t)1 << 31) /* offsets are int32 */
static const int64_t DAY_US = INT64_C(86400000000);

static void *more(KnBuf *buf, size_t n)
{
    void *at = kn_buf_reserve(buf, n);
    if (at)
        buf->len += n;
    return at;
}

static KnCode too_much(const KnArrowColumn *col, KnErr *err)
{
    return kn_err_set(err, KN_E_REFUSED,
                      "column %s: a row with more than 2 GiB cannot be sent as Arrow", col->path);
}

/* Room for count values of n bytes, or NULL and the error in *rc. */
static void *room(KnArrowColumn *col, size_t count, size_t n, KnCode *rc, KnErr *err)
{
    void *at = more(&col->data, count * n);
    *rc = at ? KN_OK : too_much(col, err);
    return at;
}

/* ---- numbers ---- */

static KnCode put_same(KnArrowColumn *col, const KnVector *vec, size_t first, size_t count,
                       KnErr *err)
{
    KnCode rc;
    size_t width = (size_t)col->width;
    void *at = room(col, count, width, &rc, err);
    if (at)
        memcpy(at, (const char *)vec->data + first * width, count * width);
    return rc;
}

static KnCode put_widened_int(KnArrowColumn *col, const KnVector *vec, size_t first, size_t count,
                              KnErr *err)
{
    KnCode rc;
    int64_t *at = room(col, count, sizeof(*at), &rc, err);
    const int32_t *from = (const int32_t *)vec->data + first;
    for (size_t i = 0; at && i < count; ++i)
        at[i] = from[i];
    return rc;
}

static KnCode put_widened_float(KnArrowColumn *col, const KnVector *vec, size_t first, size_t count,
                                KnErr *err)
{
    KnCode rc;
    double *at = room(col, count, sizeof(*at), &rc, err);
    const float *from = (const float *)vec->data + first;
    for (size_t i = 0; at && i < count; ++i)
        at[i] = (double)from[i];
    return rc;
}

static KnCode put_bool(KnArrowColumn *col, const KnVector *vec, size_t first, size_t count,
                       KnErr *err)
{
    const uint8_t *from = (const uint8_t *)vec->data + first;
    for (size_t i = 0; i < count; ++i) {
        size_t bit = (size_t)col->rows + i;
        if (bit % 8 == 0) {
            uint8_t *at = more(&col->data, 1);
            if (!at)
                return too_much(col, err);
            *at = 0;
        }
        if (from[i])
            ((uint8_t *)col->data.data)[bit / 8] |= (uint8_t)(1U << (bit % 8));
    }
    return KN_OK;
}

static KnCode put_decimal(KnArrowColumn *col, const KnVector *vec, size_t first, size_t count,
                          KnErr *err)
{
    KnCode rc;
    char *at = room(col, count, 16, &rc, err);
    for (size_t i = 0; at && i < count; ++i) {
        __int128 v = 0;
        if (!kn_vector_is_null(vec, first + i))
            v = kn_vector_int128(vec, first + i) * col->factor;
        memcpy(at + 16 * i, &v, 16);
    }
    return rc;
}

/* ---- days and instants ---- */

static KnCode put_date(KnArrowColumn *col, const KnVector *vec, size_t first, size_t count,
                       KnErr *err)
{
    const int32_t *from = (const int32_t *)vec->data + first;
    for (size_t i = 0; i < count; ++i)
        if ((from[i] < -719528 || from[i] > 2932896) && !kn_vector_is_null(vec, first + i))
            return kn_err_set(err, KN_E_REFUSED, "column %s: a date outside of the years 0 to 9999",
                              col->path);
    return put_same(col, vec, first, count, err);
}

static KnCode put_timestamp(KnArrowColumn *col, const KnVector *vec, size_t first, size_t count,
                            KnErr *err)
{
    KnCode rc;
    int64_t *at = room(col, count, sizeof(*at), &rc, err);
    const int64_t *from = (const int64_t *)vec->data + first;
    for (size_t i = 0; at && i < count; ++i) {
        bool null = kn_vector_is_null(vec, first + i);
        at[i] = null ? 0 : from[i];
        if (at[i] > 2932896 * DAY_US + DAY_US - 1)
            return kn_err_set(err, KN_E_REFUSED, "column %s: a time after the year 9999",
                              col->path);
        at[i] += null ? 0 : col->shift;
        if (at[i] < 0)
            return kn_err_set(err, KN_E_REFUSED,
                              "column %s: a time before 1970, which Doris reads wrongly as Arrow: "
                              "say format=json",
                              col->path);
    }
    return rc;
}

/* ---- texts ---- */

static KnCode too_long(const KnArrowColumn *col, size_t len, KnErr *err)
{
    return kn_err_set(
        err, KN_E_REFUSED,
        "column %s: a text of %zu bytes, the target has %s: widen it (ALTER TABLE ... "
        "MODIFY COLUMN)",
        col->path, len, col->target_text);
}

static KnCode put_text(KnArrowColumn *col, KnStr s, KnErr *err)
{
    if (col->limit >= 0 && s.len > (size_t)col->limit)
        return too_long(col, s.len, err);
    kn_buf_append(&col->data, s.ptr, s.len);
    int32_t end = (int32_t)col->data.len;
    kn_buf_append(&col->offsets, &end, sizeof(end));
    return col->data.failed ? too_much(col, err) : KN_OK;
}

/* Bytes of the texts of a range; NULLs have none. The first one too long, or count. */
static size_t measure(const KnArrowColumn *col, const KnVector *vec, size_t first, size_t count,
                      size_t *ret_bytes)
{
    size_t limit = col->limit >= 0 ? (size_t)col->limit : SIZE_MAX, bytes = 0;
    for (size_t i = 0; i < count; ++i) {
        size_t len = kn_vector_is_null(vec, first + i) ? 0 : kn_vector_str(vec, first + i).len;
        if (len > limit)
            return i;
        bytes += len;
    }
    *ret_bytes = bytes;
    return count;
}

static KnCode put_varchar(KnArrowColumn *col, const KnVector *vec, size_t first, size_t count,
                          KnErr *err)
{
    size_t bytes = 0, bad = measure(col, vec, first, count, &bytes);
    if (bad < count)
        return too_long(col, kn_vector_str(vec, first + bad).len, err);
    size_t at = col->data.len;
    char *data = more(&col->data, bytes);
    int32_t *ends = more(&col->offsets, count * sizeof(*ends));
    if (!data || !ends)
        return too_much(col, err);
    for (size_t i = 0; i < count; ++i) {
        if (!kn_vector_is_null(vec, first + i)) {
            KnStr s = kn_vector_str(vec, first + i);
            memcpy(data, s.ptr, s.len);
            data += s.len;
            at += s.len;
        }
        ends[i] = (int32_t)at;
    }
    return KN_OK;
}

/* LARGEINT and TIME are read from text; their text has no NULs and no quotes. */
typedef int (*TextFn)(const KnVector *vec, size_t row, char out[48]);

static int integer_text(const KnVector *vec, size_t row, char out[48])
{
    return snprintf(out, 48, "%" PRId64, (int64_t)kn_vector_int128(vec, row));
}

static int time_text(const KnVector *vec, size_t row, char out[48])
{
    int64_t us = ((const int64_t *)vec->data)[row], s = us / 1000000;
    return snprintf(out, 48, "%02" PRId64 ":%02" PRId64 ":%02" PRId64 ".%06" PRId64, s / 3600,
                    s / 60 % 60, s % 60, us % 1000000);
}

static int uuid_text(const KnVector *vec, size_t row, char out[48])
{
    uint8_t b[16];
    int n = 0;
    kn_vector_uuid(vec, row, b);
    for (int i = 0; i < 16; ++i)
        n += snprintf(out + n, (size_t)(48 - n), "%s%02x",
                      i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", b[i]);
    return n;
}

static KnCode put_texts(KnArrowColumn *col, const KnVector *vec, size_t first, size_t count,
                        TextFn text, KnErr *err)
{
    for (size_t i = 0; i < count; ++i) {
        char out[48];
        int n = kn_vector_is_null(vec, first + i) ? 0 : text(vec, first + i, out);
        KN_TRY(put_text(col, (KnStr){out, (size_t)n}, err));
    }
    return KN_OK;
}

static KnCode put_integer_text(KnArrowColumn *col, const KnVector *vec, size_t first, size_t count,
                               KnErr *err)
{
    return put_texts(col, vec, first, count, integer_text, err);
}

static KnCode put_time_text(KnArrowColumn *col, const KnVector *vec, size_t first, size_t count,
                            KnErr *err)
{
    return put_texts(col, vec, first, count, time_text, err);
}

static KnCode put_uuid_text(KnArrowColumn *col, const KnVector *vec, size_t first, size_t count,
                            KnErr *err)
{
    return put_texts(col, vec, first, count, uuid_text, err);
}

/* ---- nested ---- */

static KnCode put_list(KnArrowColumn *col, const KnVector *vec, size_t first, size_t count,
                       KnErr *err)
{
    KnVector child = kn_vector_child(vec, 0);
    for (size_t i = 0; i < count; ++i) {
        KnListEntry entry = {0, 0};
        if (!kn_vector_is_null(vec, first + i))
            entry = ((const KnListEntry *)vec->data)[first + i];
        if (entry.length > (size_t)INT32_MAX - (size_t)col->children[0].rows)
            return too_much(col, err);
        KN_TRY(kn_arrow_column_put(&col->children[0], &child, entry.offset, entry.length, err));
        int32_t end = (int32_t)col->children[0].rows;
        kn_buf_append(&col->offsets, &end, sizeof(end));
    }
    return KN_OK;
}

static KnCode put_struct(KnArrowColumn *col, const KnVector *vec, size_t first, size_t count,
                         KnErr *err)
{
    for (size_t i = 0; i < col->n_children; ++i) {
        KnVector child = kn_vector_child(vec, i);
        KN_TRY(kn_arrow_column_put(&col->children[i], &child, first, count, err));
    }
    return KN_OK;
}

/* ---- rows ---- */

static KnCode put_validity(KnArrowColumn *col, const KnVector *vec, size_t first, size_t count,
                           KnErr *err)
{
    size_t from = (size_t)col->rows, to = from + count, have = col->valid.len;
    size_t bytes = (to + 7) / 8;
    uint8_t *at = more(&col->valid, bytes - have);
    if (!at)
        return too_much(col, err);
    memset(at, 0xff, bytes - have);
    at = (uint8_t *)col->valid.data;
    for (size_t i = 0; vec->validity && i < count; ++i) {
        if (!kn_vector_is_null(vec, first + i))
            continue;
        if (col->not_null)
            return kn_err_set(err, KN_E_REFUSED, "column %s: NULL, the target has NOT NULL",
                              col->path);
        ++col->nulls;
        at[(from + i) / 8] &= (uint8_t) ~(1U << ((from + i) % 8));
    }
    return KN_OK;
}

KnCode kn_arrow_column_put(KnArrowColumn *col, const KnVector *vec, size_t first, size_t count,
                           KnErr *err)
{
    if (count == 0)
        return KN_OK;
    KN_TRY(put_validity(col, vec, first, count, err));
    KN_TRY(col->put(col, vec, first, count, err));
    col->rows += (int64_t)count;
    return KN_OK;
}

size_t kn_arrow_column_bytes(const KnArrowColumn *col)
{
    size_t n = col->data.len + col->offsets.len + col->valid.len;
    for (size_t i = 0; i < col->n_children; ++i)
        n += kn_arrow_column_bytes(&col->children[i]);
    return n;
}

void kn_arrow_column_clear(KnArrowColumn *col)
{
    static const int32_t zero = 0;
    col->rows = col->nulls = 0;
    kn_buf_reset(&col->valid);
    kn_buf_reset(&col->data);
    kn_buf_reset(&col->offsets);
    kn_buf_append(&col->offsets, &zero, sizeof(zero));
    for (size_t i = 0; i < col->n_children; ++i)
        kn_arrow_column_clear(&col->children[i]);
}

void kn_arrow_column_done(KnArrowColumn *col)
{
    kn_buf_done(&col->valid);
    kn_buf_done(&col->data);
    kn_buf_done(&col->offsets);
    for (size_t i = 0; i < col->n_children; ++i)
        kn_arrow_column_done(&col->children[i]);
}

/* ---- which column for which types ---- */

typedef struct Fixed {
    KnTypeKind from;
    KnDorisKind to;
    KnArrowKind kind;
    int width;
    KnArrowPutFn put;
} Fixed;
static const Fixed FIXED[] = {
    {KN_TYPE_BOOLEAN, KN_DORIS_BOOLEAN, KN_ARROW_BOOL, 0, put_bool},
    {KN_TYPE_INT, KN_DORIS_INT, KN_ARROW_INT, 4, put_same},
    {KN_TYPE_INT, KN_DORIS_BIGINT, KN_ARROW_INT, 8, put_widened_int},
    {KN_TYPE_INT, KN_DORIS_LARGEINT, KN_ARROW_UTF8, 0, put_integer_text},
    {KN_TYPE_LONG, KN_DORIS_BIGINT, KN_ARROW_INT, 8, put_same},
    {KN_TYPE_LONG, KN_DORIS_LARGEINT, KN_ARROW_UTF8, 0, put_integer_text},
    {KN_TYPE_FLOAT, KN_DORIS_FLOAT, KN_ARROW_FLOAT, 4, put_same},
    {KN_TYPE_FLOAT, KN_DORIS_DOUBLE, KN_ARROW_DOUBLE, 8, put_widened_float},
    {KN_TYPE_DOUBLE, KN_DORIS_DOUBLE, KN_ARROW_DOUBLE, 8, put_same},
    {KN_TYPE_DECIMAL, KN_DORIS_DECIMAL, KN_ARROW_DECIMAL, 16, put_decimal},
    {KN_TYPE_DATE, KN_DORIS_DATE, KN_ARROW_DATE, 4, put_date},
    {KN_TYPE_TIME, KN_DORIS_BIGINT, KN_ARROW_INT, 8, put_same},
    {KN_TYPE_TIMESTAMP, KN_DORIS_DATETIME, KN_ARROW_TIMESTAMP, 8, put_timestamp},
    {KN_TYPE_TIMESTAMPTZ, KN_DORIS_DATETIME, KN_ARROW_TIMESTAMP, 8, put_timestamp},
    {KN_TYPE_LIST, KN_DORIS_ARRAY, KN_ARROW_LIST, 0, put_list},
    {KN_TYPE_MAP, KN_DORIS_MAP, KN_ARROW_MAP, 0, put_list},
    {KN_TYPE_STRUCT, KN_DORIS_STRUCT, KN_ARROW_STRUCT, 0, put_struct},
};

static void choose(KnArrowColumn *col, const KnType *from, const KnDorisType *to)
{
    col->kind = KN_ARROW_NONE;
    for (size_t i = 0; i < sizeof(FIXED) / sizeof(FIXED[0]); ++i)
        if (FIXED[i].from == from->kind && FIXED[i].to == to->kind) {
            col->kind = FIXED[i].kind;
            col->width = FIXED[i].width;
            col->put = FIXED[i].put;
            return;
        }
    bool bytes = from->kind == KN_TYPE_BINARY || from->kind == KN_TYPE_FIXED;
    bool sized = to->kind == KN_DORIS_CHAR || to->kind == KN_DORIS_VARCHAR;
    if (!sized && to->kind != KN_DORIS_STRING && to->kind != KN_DORIS_JSON)
        return;
    col->kind = bytes ? KN_ARROW_BINARY : KN_ARROW_UTF8;
    col->limit = sized ? to->length : -1;
    col->put = from->kind == KN_TYPE_TIME   ? put_time_text
               : from->kind == KN_TYPE_UUID ? put_uuid_text
                                            : put_varchar;
}

static KnArrowColumn *add_children(KnArena *arena, KnArrowColumn *col, size_t n)
{
    col->n_children = n;
    col->children = kn_arena_zalloc(arena, (n + 1) * sizeof(*col->children));
    return col->children;
}

static void init_children(KnArena *arena, KnArrowColumn *col, const KnType *from, int64_t shift)
{
    static const char *const NAMES[] = {"key", "value"};
    KnArrowColumn *into = col;
    if (col->kind == KN_ARROW_MAP) { /* Arrow has a struct between a map and its halves */
        into = add_children(arena, col, 1);
        *into = (KnArrowColumn){.kind = KN_ARROW_STRUCT,
                                .name = "entries",
                                .path = col->path,
                                .key = true,
                                .limit = -1,
                                .put = put_struct};
        kn_buf_init(&into->valid, MAX_COLUMN);
        kn_buf_init(&into->data, MAX_COLUMN);
        kn_buf_init(&into->offsets, MAX_COLUMN);
    }
    add_children(arena, into, from->n_fields);
    for (size_t i = 0; i < from->n_fields; ++i) {
        KnArrowColumn *child = &into->children[i];
        child->name = col->kind == KN_ARROW_STRUCT ? col->target->names[i]
                      : col->kind == KN_ARROW_MAP  ? NAMES[i ? 1 : 0]
                                                   : "item";
        child->path = col->path;
        child->target_text = col->target_text;
        child->key = child->not_null = col->kind == KN_ARROW_MAP && i == 0;
        kn_arrow_column_init(arena, child, from->fields[i].type, &col->target->children[i], shift);
    }
}

void kn_arrow_column_init(KnArena *arena, KnArrowColumn *col, const KnType *from,
                          const KnDorisType *to, int64_t shift)
{
    kn_buf_init(&col->valid, MAX_COLUMN);
    kn_buf_init(&col->data, MAX_COLUMN);
    kn_buf_init(&col->offsets, MAX_COLUMN);
    col->limit = -1;
    col->target = to;
    col->shift = shift;
    col->factor = 1;
    choose(col, from, to);
    for (int32_t i = from->scale; col->kind == KN_ARROW_DECIMAL && i < to->scale; ++i)
        col->factor *= 10;
    if (col->kind >= KN_ARROW_LIST)
        init_children(arena, col, from, shift);
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* json_internal.h - the buffer that rows are written into, and how a value is: json.c writes rows,
 * json_value.c values. */
#include <stdlib.h>
#include <string.h>

#include "doris_internal.h"

enum { KN_DORIS_FIXED_MAX = 64 }; /* bytes that a value of fixed size takes at most, with quotes */

typedef struct KnDorisOut {
    char *p, *end; /* of the room that is left */
    char *start;
    size_t cap;
    int32_t day; /* of the date that `day_text` is */
    char day_text[10];
    const char *column; /* for messages */
} KnDorisOut;

typedef KnCode (*KnDorisPutFn)(KnDorisOut *out, const KnVector *vec, size_t row, KnErr *err);

/** How a value of that kind is written; it must not be NULL. Never NULL. */
KnDorisPutFn kn_doris_put_of(KnColKind kind);

/* Room for n more bytes. */
static inline void kn_doris_need(KnDorisOut *out, size_t n)
{
    if ((size_t)(out->end - out->p) >= n)
        return;
    size_t used = (size_t)(out->p - out->start);
    size_t cap = out->cap * 2;
    while (cap - used < n)
        cap *= 2;
    out->start = realloc(out->start, cap);
    if (!out->start)
        abort();
    out->cap = cap;
    out->p = out->start + used;
    out->end = out->start + cap;
}

static inline void kn_doris_put_bytes(KnDorisOut *out, const char *bytes, size_t len)
{
    kn_doris_need(out, len);
    memcpy(out->p, bytes, len);
    out->p += len;
}

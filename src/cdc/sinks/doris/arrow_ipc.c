/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrow_ipc.c - the messages of an Arrow IPC stream: a schema, record batches, an end.
 *
 *     message = FF FF FF FF, int32 n, n bytes of metadata (a flatbuffer), the body
 *
 * Metadata is a flatbuffer of Message.fbs and Schema.fbs (format version 5). Flatbuffers are
 * written from their end to their start, so that what is pointed to is there before the pointer;
 * a reference is the number of bytes from the object's start to the end of the buffer. All sizes
 * are multiples of 8, which makes alignment from the end the same as from the start. This writes
 * the few tables that are needed and no more: docs/decisions has the reason.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "arrow_internal.h"

enum {
    MAX_SLOTS = 8,
    MAX_META = 64 << 20,
    VERSION_5 = 4,
    HEADER_SCHEMA = 1,
    HEADER_BATCH = 3,
};
enum { TYPE_INT = 2, TYPE_FLOAT, TYPE_BINARY, TYPE_UTF8, TYPE_BOOL, TYPE_DECIMAL, TYPE_DATE };
enum { TYPE_TIMESTAMP = 10, TYPE_LIST = 12, TYPE_STRUCT, TYPE_MAP = 17 };

/* ---- flatbuffers ---- */

typedef struct Flat {
    uint8_t *buf;
    size_t cap, used;          /* bytes at the end */
    size_t slots[MAX_SLOTS];   /* of the table being written; 0 = default */
    size_t n_slots, table_end; /* bytes used when it was begun */
} Flat;

static void room(Flat *fb, size_t n)
{
    if (fb->cap - fb->used >= n)
        return;
    size_t cap = fb->cap ? fb->cap * 2 : 1024;
    while (cap - fb->used < n)
        cap *= 2;
    uint8_t *buf = malloc(cap);
    if (!buf || cap > (size_t)MAX_META * 2)
        abort();
    if (fb->used)
        memcpy(buf + cap - fb->used, fb->buf + fb->cap - fb->used, fb->used);
    free(fb->buf);
    fb->buf = buf;
    fb->cap = cap;
}

static void push(Flat *fb, const void *bytes, size_t n)
{
    room(fb, n);
    fb->used += n;
    if (n)
        memcpy(fb->buf + fb->cap - fb->used, bytes, n);
}

/* Zeros, so that n more bytes end on a multiple of align. */
static void pad(Flat *fb, size_t align, size_t n)
{
    static const uint8_t zeros[8];
    push(fb, zeros, (align - (fb->used + n) % align) % align);
}

static void push_u32(Flat *fb, size_t v)
{
    uint32_t u = (uint32_t)v;
    pad(fb, 4, 4);
    push(fb, &u, 4);
}

static size_t add_string(Flat *fb, const char *text)
{
    size_t len = strlen(text);
    pad(fb, 4, len + 1);
    push(fb, text, len + 1);
    push_u32(fb, len);
    return fb->used;
}

static size_t add_vector(Flat *fb, const size_t *refs, size_t n)
{
    pad(fb, 4, 0);
    for (size_t i = n; i-- > 0;)
        push_u32(fb, fb->used + 4 - refs[i]);
    push_u32(fb, n);
    return fb->used;
}

/* Structs of int64. */
static size_t add_structs(Flat *fb, const int64_t *values, size_t n, size_t each)
{
    pad(fb, 8, n * each * 8);
    push(fb, values, n * each * 8);
    push_u32(fb, n);
    return fb->used;
}

static void begin_table(Flat *fb, size_t n_slots)
{
    assert(n_slots <= MAX_SLOTS);
    memset(fb->slots, 0, sizeof(fb->slots));
    fb->n_slots = n_slots;
    fb->table_end = fb->used;
}

static void set_int(Flat *fb, size_t slot, int64_t value, size_t width)
{
    pad(fb, width, width);
    push(fb, &value, width); /* little-endian */
    fb->slots[slot] = fb->used;
}

static void set_ref(Flat *fb, size_t slot, size_t ref)
{
    pad(fb, 4, 4);
    push_u32(fb, fb->used + 4 - ref);
    fb->slots[slot] = fb->used;
}

static size_t end_table(Flat *fb)
{
    push_u32(fb, 0);
    size_t table = fb->used;
    for (size_t i = fb->n_slots; i-- > 0;) {
        uint16_t at = fb->slots[i] ? (uint16_t)(table - fb->slots[i]) : 0;
        push(fb, &at, 2);
    }
    uint16_t sizes[2] = {(uint16_t)(4 + 2 * fb->n_slots), (uint16_t)(table - fb->table_end)};
    push(fb, sizes, 4);
    int32_t back = (int32_t)(fb->used - table);
    memcpy(fb->buf + fb->cap - table, &back, 4);
    return table;
}

/* ---- schema ---- */

static size_t int_type(Flat *fb, int width)
{
    begin_table(fb, 2);
    set_int(fb, 0, (int64_t)width * 8, 4);
    set_int(fb, 1, 1, 1);
    return end_table(fb);
}

static size_t small_type(Flat *fb, size_t n_slots, int64_t value)
{
    begin_table(fb, n_slots);
    if (n_slots)
        set_int(fb, 0, value, 2);
    return end_table(fb);
}

static size_t decimal_type(Flat *fb, const KnDorisType *to)
{
    begin_table(fb, 3);
    set_int(fb, 0, to->precision, 4);
    set_int(fb, 1, to->scale, 4);
    set_int(fb, 2, 128, 4);
    return end_table(fb);
}

/* The member of the union Type, and the table behind it. */
static int64_t add_type(Flat *fb, const KnArrowColumn *col, size_t *ret)
{
    enum { DAY = 0, SINGLE = 1, DOUBLE = 2, MICROSECOND = 2 };
    switch (col->kind) {
    case KN_ARROW_INT:
        *ret = int_type(fb, col->width);
        return TYPE_INT;
    case KN_ARROW_FLOAT:
        *ret = small_type(fb, 1, SINGLE);
        return TYPE_FLOAT;
    case KN_ARROW_DOUBLE:
        *ret = small_type(fb, 1, DOUBLE);
        return TYPE_FLOAT;
    case KN_ARROW_DECIMAL:
        *ret = decimal_type(fb, col->target);
        return TYPE_DECIMAL;
    case KN_ARROW_DATE:
        *ret = small_type(fb, 1, DAY);
        return TYPE_DATE;
    case KN_ARROW_TIMESTAMP:
        *ret = small_type(fb, 1, MICROSECOND);
        return TYPE_TIMESTAMP;
    default:
        break;
    }
    *ret = small_type(fb, 0, 0);
    return col->kind == KN_ARROW_BOOL     ? TYPE_BOOL
           : col->kind == KN_ARROW_BINARY ? TYPE_BINARY
           : col->kind == KN_ARROW_UTF8   ? TYPE_UTF8
           : col->kind == KN_ARROW_LIST   ? TYPE_LIST
           : col->kind == KN_ARROW_MAP    ? TYPE_MAP
                                          : TYPE_STRUCT;
}

static size_t add_fields(Flat *fb, const KnArrowColumn *cols, size_t n);

static size_t add_field(Flat *fb, const KnArrowColumn *col)
{
    size_t type_ref, children = add_fields(fb, col->children, col->n_children);
    size_t name = add_string(fb, col->name);
    int64_t type = add_type(fb, col, &type_ref);
    begin_table(fb, 6);
    set_ref(fb, 0, name);
    set_ref(fb, 3, type_ref);
    set_ref(fb, 5, children);
    set_int(fb, 1, !col->key, 1);
    set_int(fb, 2, type, 1);
    return end_table(fb);
}

/* Nested as deep as kn_doris_type_parse() lets types be. NOLINTNEXTLINE(misc-no-recursion) */
static size_t add_fields(Flat *fb, const KnArrowColumn *cols, size_t n)
{
    size_t *refs = calloc(n + 1, sizeof(*refs));
    if (!refs)
        abort();
    for (size_t i = 0; i < n; ++i)
        refs[i] = add_field(fb, &cols[i]);
    size_t ref = add_vector(fb, refs, n);
    free(refs);
    return ref;
}

/* ---- messages ---- */

static KnCode write_message(KnDorisBody *body, Flat *fb, int64_t header_type, size_t header,
                            int64_t body_len, KnErr *err)
{
    begin_table(fb, 4);
    set_int(fb, 3, body_len, 8);
    set_ref(fb, 2, header);
    set_int(fb, 0, VERSION_5, 2);
    set_int(fb, 1, header_type, 1);
    size_t message = end_table(fb);
    pad(fb, 8, 4);
    push_u32(fb, fb->used + 4 - message);
    uint32_t prefix[2] = {UINT32_MAX, (uint32_t)fb->used};
    KnCode rc = kn_doris_body_append(body, prefix, sizeof(prefix), err);
    if (rc == KN_OK)
        rc = kn_doris_body_append(body, fb->buf + fb->cap - fb->used, fb->used, err);
    free(fb->buf);
    *fb = (Flat){0};
    return rc;
}

KnCode kn_arrow_write_schema(KnDorisBody *body, const KnArrowColumn *cols, size_t n, KnErr *err)
{
    Flat fb = {0};
    size_t fields = add_fields(&fb, cols, n);
    begin_table(&fb, 2);
    set_ref(&fb, 1, fields);
    size_t schema = end_table(&fb);
    return write_message(body, &fb, HEADER_SCHEMA, schema, 0, err);
}

/* Nodes and buffers of a batch, in the order of the format: depth first, each column's validity,
 * offsets and values. */
typedef struct Parts {
    int64_t *nodes, *buffers;
    const KnBuf **from;
    size_t n_nodes, n_buffers, at;
} Parts;

static void count_parts(const KnArrowColumn *col, Parts *ret)
{
    ++ret->n_nodes;
    ret->n_buffers += 3;
    for (size_t i = 0; i < col->n_children; ++i)
        count_parts(&col->children[i], ret);
}

static void add_buffer(Parts *parts, const KnBuf *buf, bool empty)
{
    size_t len = empty ? 0 : buf->len;
    parts->from[parts->n_buffers] = empty ? NULL : buf;
    parts->buffers[2 * parts->n_buffers] = (int64_t)parts->at;
    parts->buffers[2 * parts->n_buffers + 1] = (int64_t)len;
    parts->at += (len + 7) / 8 * 8;
    ++parts->n_buffers;
}

static void add_parts(const KnArrowColumn *col, Parts *parts)
{
    bool list = col->kind == KN_ARROW_LIST || col->kind == KN_ARROW_MAP;
    bool text = col->kind == KN_ARROW_UTF8 || col->kind == KN_ARROW_BINARY;
    parts->nodes[2 * parts->n_nodes] = col->rows;
    parts->nodes[2 * parts->n_nodes + 1] = col->nulls;
    ++parts->n_nodes;
    add_buffer(parts, &col->valid, col->nulls == 0);
    if (list || text)
        add_buffer(parts, &col->offsets, false);
    if (!list && col->kind != KN_ARROW_STRUCT)
        add_buffer(parts, &col->data, false);
    for (size_t i = 0; i < col->n_children; ++i)
        add_parts(&col->children[i], parts);
}

static KnCode write_parts(KnDorisBody *body, const Parts *parts, KnErr *err)
{
    static const uint8_t zeros[8];
    for (size_t i = 0; i < parts->n_buffers; ++i) {
        const KnBuf *buf = parts->from[i];
        if (!buf || buf->len == 0)
            continue;
        KN_TRY(kn_doris_body_append(body, buf->data, buf->len, err));
        KN_TRY(kn_doris_body_append(body, zeros, (8 - buf->len % 8) % 8, err));
    }
    return KN_OK;
}

KnCode kn_arrow_write_batch(KnDorisBody *body, const KnArrowColumn *cols, size_t n, KnErr *err)
{
    Parts parts = {0};
    Flat fb = {0};
    for (size_t i = 0; i < n; ++i)
        count_parts(&cols[i], &parts);
    parts.nodes = calloc(parts.n_nodes + 1, 2 * sizeof(int64_t));
    parts.buffers = calloc(parts.n_buffers + 1, 2 * sizeof(int64_t));
    parts.from = calloc(parts.n_buffers + 1, sizeof(*parts.from));
    if (!parts.nodes || !parts.buffers || !parts.from)
        abort();
    parts.n_nodes = parts.n_buffers = 0;
    for (size_t i = 0; i < n; ++i)
        add_parts(&cols[i], &parts);
    size_t buffers = add_structs(&fb, parts.buffers, parts.n_buffers, 2);
    size_t nodes = add_structs(&fb, parts.nodes, parts.n_nodes, 2);
    begin_table(&fb, 3);
    set_int(&fb, 0, n ? cols[0].rows : 0, 8);
    set_ref(&fb, 1, nodes);
    set_ref(&fb, 2, buffers);
    size_t batch = end_table(&fb);
    KnCode rc = write_message(body, &fb, HEADER_BATCH, batch, (int64_t)parts.at, err);
    if (rc == KN_OK)
        rc = write_parts(body, &parts, err);
    free(parts.nodes);
    free(parts.buffers);
    free(parts.from);
    return rc;
}

KnCode kn_arrow_write_end(KnDorisBody *body, KnErr *err)
{
    static const uint32_t end[2] = {UINT32_MAX, 0};
    return kn_doris_body_append(body, end, sizeof(end), err);
}

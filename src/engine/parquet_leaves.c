/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parquet_leaves.c - the schema in a footer: its leaves, and the same with other types for some.
 *
 * FileMetaData.schema (2) lists elements depth first; an element without num_children (5) is a
 * leaf. Levels add up on the way down: an optional element has one more definition level, a
 * repeated one more of both kinds (Parquet's README, "Nested Encoding").
 */
#include "engine/parquet_meta.h"
#include "engine/parquet_thrift.h"

enum { MAX_DEPTH = 64, OPTIONAL = 1, REPEATED = 2, UNIT_NANOS = 3, LOGICAL_TIMESTAMP = 8 };

typedef struct Element {
    int64_t type; /* -1 = none */
    int64_t repetition;
    int64_t n_children;
    int64_t field_id;
} Element;

/* ---- reading ---- */

static Element element_parse(KnThrift *t)
{
    Element el = {.type = -1, .field_id = -1};
    KnThriftField f = {0};
    while (kn_thrift_field_next(t, &f)) {
        if (f.id == 1)
            el.type = kn_thrift_int(t, &f, KN_THRIFT_I32);
        else if (f.id == 3)
            el.repetition = kn_thrift_int(t, &f, KN_THRIFT_I32);
        else if (f.id == 5)
            el.n_children = kn_thrift_int(t, &f, KN_THRIFT_I32);
        else if (f.id == 9)
            el.field_id = kn_thrift_int(t, &f, KN_THRIFT_I32);
        else
            kn_thrift_skip(t, f.type);
    }
    return el;
}

/* A group that is open, and how many elements are still to come in it. */
typedef struct Group {
    int64_t left;
    int def;
    int rep;
} Group;

/* The list of the schema's elements; false = there is none. */
static bool schema_find(const KnPqMeta *meta, KnThrift *t, uint64_t *ret_n)
{
    const uint8_t *bytes = (const uint8_t *)meta->footer.data;
    *t = (KnThrift){.at = bytes, .end = bytes + meta->footer.len};
    KnThriftField f = {0};
    while (kn_thrift_field_next(t, &f)) {
        if (f.id == 2) {
            *ret_n = kn_thrift_structs_open(t, &f);
            return !t->bad;
        }
        kn_thrift_skip(t, f.type);
    }
    return false;
}

/* False where the counts of children cannot be. */
static bool element_take(Group *stack, size_t *depth, const Element *el, KnPqLeafVec *ret)
{
    while (*depth > 1 && stack[*depth - 1].left == 0)
        --*depth;
    Group *in = &stack[*depth - 1];
    if (in->left-- <= 0 || el->n_children < 0)
        return false;
    bool repeated = el->repetition == REPEATED;
    Group here = {.left = el->n_children,
                  .def = in->def + (repeated || el->repetition == OPTIONAL),
                  .rep = in->rep + repeated};
    if (el->n_children > 0) {
        if (*depth == MAX_DEPTH)
            return false;
        stack[(*depth)++] = here;
        return true;
    }
    *kn_vec_push(ret) = (KnPqLeaf){.field_id = (int32_t)el->field_id,
                                   .type = (int)el->type,
                                   .max_def = here.def,
                                   .max_rep = here.rep};
    return true;
}

KnCode kn_pq_leaves_read(const KnPqMeta *meta, KnPqLeafVec *ret, KnErr *err)
{
    KnThrift t;
    uint64_t n = 0;
    bool good = schema_find(meta, &t, &n) && n > 0;
    Group stack[MAX_DEPTH] = {0};
    size_t depth = 1;
    if (good)
        stack[0] = (Group){.left = element_parse(&t).n_children}; /* the root has no levels */
    for (uint64_t i = 1; good && i < n; i++) {
        Element el = element_parse(&t);
        good = !t.bad && element_take(stack, &depth, &el, ret);
    }
    for (size_t i = 0; good && i < depth; i++)
        good = stack[i].left == 0;
    return good ? KN_OK : kn_err_set(err, KN_E_CORRUPT, "Parquet footer: the schema is damaged");
}

/* ---- writing ---- */

/* LogicalType: TIMESTAMP with isAdjustedToUTC and unit NANOS, an empty struct. */
static void nanos_write(KnBuf *buf, int *last, bool utc)
{
    int in_union = 0;
    int in_timestamp = 0;
    int in_unit = 0;
    kn_thrift_write_field(buf, last, 10, KN_THRIFT_STRUCT);
    kn_thrift_write_field(buf, &in_union, LOGICAL_TIMESTAMP, KN_THRIFT_STRUCT);
    kn_thrift_write_field(buf, &in_timestamp, 1, utc ? KN_THRIFT_TRUE : KN_THRIFT_FALSE);
    kn_thrift_write_field(buf, &in_timestamp, 2, KN_THRIFT_STRUCT);
    kn_thrift_write_field(buf, &in_unit, UNIT_NANOS, KN_THRIFT_STRUCT);
    for (int i = 0; i < 4; i++)
        kn_buf_char(buf, KN_THRIFT_STOP);
}

/* Fields come in the order of their ids: what a type replaces is put where it belongs. */
static void element_write(KnBuf *buf, KnThrift *t, const KnPqRetype *to)
{
    bool nanos = to->as == KN_PQ_AS_NANOS || to->as == KN_PQ_AS_NANOS_UTC;
    int last = 0;
    KnThriftField f = {0};
    while (kn_thrift_field_next(t, &f)) {
        bool goes = f.id == 2 || f.id == 6 || f.id == 10 || (f.id == 1 && !nanos);
        if (goes)
            kn_thrift_skip(t, f.type);
        else
            kn_thrift_copy(buf, &last, &f, t);
        if (f.id == 1 && !nanos) {
            kn_thrift_write_i32(buf, &last, 1, KN_PQ_TYPE_FIXED);
            kn_thrift_write_i32(buf, &last, 2, to->length);
        }
    }
    if (nanos)
        nanos_write(buf, &last, to->as == KN_PQ_AS_NANOS_UTC);
    kn_buf_char(buf, KN_THRIFT_STOP);
}

void kn_pq_schema_write(const KnPqMeta *meta, KnBuf *buf, int *last, const KnThriftField *f,
                        KnThrift *t)
{
    uint64_t n = kn_thrift_structs_open(t, f);
    kn_thrift_write_field(buf, last, f->id, f->type);
    kn_thrift_write_list(buf, KN_THRIFT_STRUCT, n);
    size_t leaf = 0;
    for (uint64_t i = 0; i < n && !t->bad; i++) {
        const uint8_t *start = t->at;
        Element el = element_parse(t);
        const KnPqRetype *to = i > 0 && el.n_children == 0 ? &meta->retypes[leaf++] : NULL;
        if (to && to->as != KN_PQ_AS_IT_IS) {
            t->at = start;
            element_write(buf, t, to);
        } else {
            kn_buf_append(buf, start, (size_t)(t->at - start));
        }
    }
}

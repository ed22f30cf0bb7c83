/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * batch.h - rows in columns: what the engine gives and what every consumer (sinks, JSON, checks)
 * reads.
 *
 * A KnBatch is an immutable, refcounted window [first, first+rows) over an engine chunk; slices
 * share the chunk. Consumers read columns through KnVector views: plain arrays in the engine's own
 * layout, no copy. A batch outlives its stream and session; it must be gone before its engine is
 * closed. ref/unref are thread-safe; a batch may be read from many threads.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

typedef enum KnColKind {
    KN_COL_BOOL, /* uint8_t 0/1 */
    KN_COL_INT8,
    KN_COL_INT16,
    KN_COL_INT32,
    KN_COL_INT64,
    KN_COL_UINT8,
    KN_COL_UINT16,
    KN_COL_UINT32,
    KN_COL_UINT64,
    KN_COL_INT128, /* __int128, 16-byte aligned little-endian */
    KN_COL_FLOAT,
    KN_COL_DOUBLE,
    KN_COL_DECIMAL,      /* physical by width: <=4 int16, <=9 int32, <=18 int64, else __int128 */
    KN_COL_DATE,         /* int32_t days since 1970-01-01 */
    KN_COL_TIME,         /* int64_t microseconds since midnight */
    KN_COL_TIMESTAMP,    /* int64_t microseconds, no zone */
    KN_COL_TIMESTAMPTZ,  /* int64_t microseconds UTC */
    KN_COL_TIMESTAMP_NS, /* int64_t nanoseconds, no zone */
    KN_COL_VARCHAR,
    KN_COL_BLOB,   /* 16-byte string views: use kn_vector_str() */
    KN_COL_UUID,   /* __int128 as the engine keeps it: use kn_vector_uuid() */
    KN_COL_STRUCT, /* children = fields */
    KN_COL_LIST,   /* data = KnListEntry[]; children[0] = element */
    KN_COL_MAP,    /* data = KnListEntry[]; children[0] = STRUCT(key, value) */
    KN_COL_NULL,   /* SQLNULL: every value NULL */
    KN_COL_OTHER,  /* not used by knut's own SQL */
} KnColKind;

typedef struct KnColType {
    KnColKind kind;
    uint8_t width, scale; /* decimal */
    size_t n_children;
    const struct KnColType *children;
    const char *const *child_names; /* struct fields; NULL for list and map */
} KnColType;

typedef struct KnListEntry {
    uint64_t offset, length; /* into the child vector */
} KnListEntry;

/* A view of a column; index 0 is the batch's first row (children are indexed absolutely). */
typedef struct KnVector {
    const KnColType *type;
    const void *data;
    const uint64_t *validity; /* bit set = valid; NULL = all valid */
    uint64_t bit_offset;      /* added to a row's index for the validity bits */
    void *handle;             /* the engine's own vector, for children */
    size_t first;             /* where struct children start */
} KnVector;

typedef struct KnBatch KnBatch;

KnBatch *kn_batch_ref(KnBatch *batch);
KnBatch *kn_batch_unref(KnBatch *batch); /* accepts NULL, returns NULL */
size_t kn_batch_rows(const KnBatch *batch);
size_t kn_batch_n_columns(const KnBatch *batch);
/** Approximate bytes of the values of all rows in this window (strings counted by length). */
uint64_t kn_batch_bytes(const KnBatch *batch);
KnVector kn_batch_vector(const KnBatch *batch, size_t col);
KnVector kn_vector_child(const KnVector *vec, size_t child);
/** A new reference to rows [first, first+count) of batch. */
KnBatch *kn_batch_slice(KnBatch *batch, size_t first, size_t count);
/** A new reference to the same rows with only the first n_columns columns. */
KnBatch *kn_batch_project(KnBatch *batch, size_t n_columns);

static inline bool kn_vector_is_null(const KnVector *vec, size_t row)
{
    size_t bit = row + vec->bit_offset;
    return vec->validity && !(vec->validity[bit / 64] >> (bit % 64) & 1);
}
/** The bytes of a VARCHAR or BLOB value; they live as long as the batch. */
KnStr kn_vector_str(const KnVector *vec, size_t row);
/** 16 bytes in the order of the UUID's text form. */
void kn_vector_uuid(const KnVector *vec, size_t row, uint8_t out[16]);
/** The unscaled value of a DECIMAL, or any integer kind, widened. */
__int128 kn_vector_int128(const KnVector *vec, size_t row);

static inline void kn_batch_freep(KnBatch **batch)
{
    *batch = kn_batch_unref(*batch);
}
#define KN_BATCH_AUTO __attribute__((cleanup(kn_batch_freep))) KnBatch *

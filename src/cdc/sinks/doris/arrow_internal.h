/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* arrow_internal.h - the columns that rows are gathered in (arrow_column.c), and the messages of an
 * Arrow IPC stream that are made of them (arrow_ipc.c); arrow.c is the encoder. */
#include "doris_internal.h"

typedef enum KnArrowKind {
    KN_ARROW_NONE,
    KN_ARROW_BOOL,
    KN_ARROW_INT, /* width bytes, signed */
    KN_ARROW_FLOAT,
    KN_ARROW_DOUBLE,
    KN_ARROW_DECIMAL, /* 128 bits */
    KN_ARROW_DATE,    /* days */
    KN_ARROW_TIMESTAMP,
    KN_ARROW_UTF8,
    KN_ARROW_BINARY,
    KN_ARROW_LIST,
    KN_ARROW_STRUCT,
    KN_ARROW_MAP, /* one child: struct of key, value */
} KnArrowKind;

typedef struct KnArrowColumn KnArrowColumn;
/* Rows [first, first + count) of vec, appended. */
typedef KnCode (*KnArrowPutFn)(KnArrowColumn *col, const KnVector *vec, size_t first, size_t count,
                               KnErr *err);

struct KnArrowColumn {
    KnArrowKind kind;
    const char *name;
    const char *path;          /* of the top-level column, for messages */
    const KnDorisType *target; /* NULL: a map's entries */
    const char *target_text;
    KnArrowPutFn put;
    int width;       /* bytes of a value of fixed size */
    int64_t shift;   /* TIMESTAMP: added, in microseconds */
    __int128 factor; /* DECIMAL: by which the unscaled value is multiplied */
    int32_t limit;   /* bytes of a text; -1 = none */
    bool not_null;
    bool key;     /* of a map: never NULL by the format */
    size_t index; /* top level: in the batch */
    int64_t rows, nulls;
    KnBuf valid;   /* bits */
    KnBuf offsets; /* int32: rows + 1 of them */
    KnBuf data;
    size_t n_children;
    KnArrowColumn *children;
};

/** A column for values of `from` that go into `to`; the gate has let them pass. In arena, done by
 * kn_arrow_column_done(). */
void kn_arrow_column_init(KnArena *arena, KnArrowColumn *col, const KnType *from,
                          const KnDorisType *to, int64_t shift);
void kn_arrow_column_done(KnArrowColumn *col);
void kn_arrow_column_clear(KnArrowColumn *col);
/** KN_E_REFUSED names column and value that the target cannot hold. */
KN_NODISCARD KnCode kn_arrow_column_put(KnArrowColumn *col, const KnVector *vec, size_t first,
                                        size_t count, KnErr *err);
size_t kn_arrow_column_bytes(const KnArrowColumn *col);

KN_NODISCARD KnCode kn_arrow_write_schema(KnDorisBody *body, const KnArrowColumn *cols, size_t n,
                                          KnErr *err);
/** What the columns hold, as one record batch. */
KN_NODISCARD KnCode kn_arrow_write_batch(KnDorisBody *body, const KnArrowColumn *cols, size_t n,
                                         KnErr *err);
KN_NODISCARD KnCode kn_arrow_write_end(KnDorisBody *body, KnErr *err);

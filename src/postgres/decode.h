/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * decode.h - the bytes of PostgreSQL's binary COPY as rows (manual: "COPY", "Binary Format").
 *
 * What comes may be cut anywhere. Nothing of it is trusted: a length that does not fit its type, a
 * row of another width, a value that the engine's type cannot hold is KN_E_CORRUPT and names the
 * column.
 */
#include "base/arena.h"
#include "base/str.h"
#include "engine/builder.h"

/* How a column of a query is asked for and read. */
typedef struct KnPgReadType {
    const char *sql; /* the engine's type */
    bool as_text;    /* PostgreSQL is asked for its text form */
} KnPgReadType;
/** By the column's type OID and modifier. A type that is not known is its text. The SQL text is in
 * arena. */
KnPgReadType kn_pg_read_type(KnArena *arena, uint32_t oid, int32_t modifier);

typedef struct KnPgDecoder {
    const char *const *names; /* of the columns, for messages */
    size_t n_columns;
    bool began, ended; /* the signature, the trailer */
} KnPgDecoder;
/** Puts every whole row at the start of bytes into builder (opened with the columns' types), and
 * stops when that is full. ret_used: how many bytes that was; the rest wants more behind it, or
 * another builder. */
KN_NODISCARD KnCode kn_pg_decode(KnPgDecoder *dec, KnStr bytes, KnBuilder *builder,
                                 size_t *ret_used, KnErr *err);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * encode.h - rows as the bytes of PostgreSQL's binary COPY (manual: "COPY", "Binary Format").
 *
 * Which Iceberg type becomes which type of PostgreSQL, and how a value of it is written. A value
 * that PostgreSQL cannot hold (a NUL in a text, a date outside its range) is KN_E_REFUSED and names
 * the column. Thread-safe: a KnPgColumn is read only.
 */
#include "base/arena.h"
#include "base/buf.h"
#include "engine/batch.h"
#include "iceberg/schema/type.h"

/* PostgreSQL's timestamps have microseconds: what becomes of nanoseconds. */
typedef enum KnPgNanos {
    KN_PG_NANOS_REFUSE,   /* a table with such columns is not delivered */
    KN_PG_NANOS_TEXT,     /* text, ISO 8601 */
    KN_PG_NANOS_BIGINT,   /* bigint, nanoseconds since 1970-01-01 (UTC) */
    KN_PG_NANOS_TRUNCATE, /* timestamp, what is below a microsecond is lost */
} KnPgNanos;
KN_NODISCARD KnCode kn_pg_nanos_parse(KnStr text, KnPgNanos *ret, KnErr *err);

/** The column's type as format_type() spells it ("bigint", "numeric(9,2)", "jsonb"); in arena.
 * KN_E_UNSUPPORTED or KN_E_REFUSED names the column. */
KN_NODISCARD KnCode kn_pg_type(KnArena *arena, const KnField *field, KnPgNanos nanos,
                               const char **ret, KnErr *err);

/** Does a column of the type actual take the bytes of one of ours as they are, and compare alike?
 * Both as format_type() spells them. */
bool kn_pg_takes(const char *actual, const char *want);

/* Rows on their way. */
typedef struct KnPgEncoder {
    const KnField *fields;
    size_t n_fields;
    bool positions; /* two bigint columns follow the fields' */
    KnPgNanos nanos;
    KnVector *vecs; /* of the batch: n_fields + 2 */
} KnPgEncoder;

/** Signature, flags, no extension. */
void kn_pg_encode_header(KnBuf *out);
void kn_pg_encode_trailer(KnBuf *out);
/** The columns of the next rows; checked against the fields' types. */
KN_NODISCARD KnCode kn_pg_encode_batch(KnPgEncoder *enc, const KnBatch *batch, KnErr *err);
/** Appends one row of that batch. */
KN_NODISCARD KnCode kn_pg_encode_row(const KnPgEncoder *enc, size_t row, KnBuf *out, KnErr *err);
/** A numeric's bytes, length first. */
void kn_pg_encode_numeric(KnBuf *out, __int128 unscaled, int scale);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * read_avro.h - Avro data and delete files, by way of a Parquet copy (spec appendix A: "Avro").
 *
 * read_avro.c takes a file through the engine, read_avro_shape.c makes columns of its schema,
 * read_avro_rows.c turns datums into rows. Nothing here knows the table's schema: the copy has the
 * file's names, field ids and types, and is then read as any Parquet file.
 */
#include "codec/avro.h"
#include "engine/builder.h"
#include "iceberg/scan/read_internal.h"

/* How a datum becomes a value. */
typedef enum KnAvroPut {
    KN_AVRO_PUT_NULL, /* Avro's null: a column of nothing else */
    KN_AVRO_PUT_BOOLEAN,
    KN_AVRO_PUT_INT, /* int, long and everything that is counted by them */
    KN_AVRO_PUT_FLOAT,
    KN_AVRO_PUT_DOUBLE,
    KN_AVRO_PUT_BYTES, /* string, bytes, fixed */
    KN_AVRO_PUT_DECIMAL,
    KN_AVRO_PUT_UUID,
    KN_AVRO_PUT_STRUCT,
    KN_AVRO_PUT_LIST,
    KN_AVRO_PUT_MAP,       /* Avro's own map: keys are strings */
    KN_AVRO_PUT_MAP_ARRAY, /* an array of records of key and value */
} KnAvroPut;

typedef struct KnAvroNode {
    KnAvroPut put;
    const KnAvroType *given; /* as in the schema, a union with null perhaps */
    const KnAvroType *type;  /* without the union */
    const char *name;        /* of the copy's column or field */
    int32_t field_id;        /* -1 = none */
    int32_t factor;          /* PUT_INT: 1000 where milliseconds become microseconds */
    const char *sql_type;    /* leaf */
    size_t n_children;       /* struct: its fields; list: element; maps: key and value */
    struct KnAvroNode *children;
} KnAvroNode;

/* The columns of a file. */
typedef struct KnAvroShape {
    KnAvroNode root; /* KN_AVRO_PUT_STRUCT */
    const char **names;
    const char **sql_types;
    const char *field_ids_sql; /* FIELD_IDS for COPY; NULL = the file has none */
} KnAvroShape;

/** Columns of a file's schema, in arena. KN_E_UNSUPPORTED names what has no column: unions of
 * several types, enums, records without fields. type must outlive the shape. */
KN_NODISCARD KnCode kn_read_avro_shape(KnArena *arena, const KnAvroType *type, KnAvroShape *ret,
                                       KnErr *err);

/* What is read of a file's blocks. */
typedef struct KnAvroRows {
    KnAvroCursor cur;
    int64_t zero_left; /* elements of lists that take no bytes, yet to be allowed */
} KnAvroRows;
enum { KN_AVRO_ZERO_MAX = 1 << 22 };

/** The next datum of node's type as w's next value. */
KN_NODISCARD KnCode kn_read_avro_put(KnAvroRows *rows, const KnAvroNode *node, KnColWriter *w,
                                     KnErr *err);

/** A copy of an Avro file that the engine can read: rows in order, field ids kept. It lies among
 * the read's copies; *ret is its path. Errors name the file. */
KN_NODISCARD KnCode kn_read_avro_copy(KnRead *read, const KnDataFile *file, const char **ret,
                                      KnErr *err);

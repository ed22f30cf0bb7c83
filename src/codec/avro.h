/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * avro.h - Avro 1.11 object container files, as Iceberg needs them: manifests, and data files too.
 *
 * Why ours: the C library drops field-id, element-id, logicalType and defaults, cannot set file
 * metadata and has no zstandard. Codecs: null, deflate, snappy (with CRC-32), zstandard. Reading is
 * a pull over a decoded block guided by the writer's schema, so that Iceberg can resolve by field
 * id without building a tree; writing collects datums into blocks. All bytes are hostile: lengths,
 * counts, depths and block sizes are checked before memory is taken (KN_E_CORRUPT). One thread at a
 * time.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

typedef enum KnAvroKind {
    KN_AVRO_NULL,
    KN_AVRO_BOOLEAN,
    KN_AVRO_INT,
    KN_AVRO_LONG,
    KN_AVRO_FLOAT,
    KN_AVRO_DOUBLE,
    KN_AVRO_BYTES,
    KN_AVRO_STRING,
    KN_AVRO_RECORD,
    KN_AVRO_ENUM,
    KN_AVRO_ARRAY,
    KN_AVRO_MAP,
    KN_AVRO_UNION,
    KN_AVRO_FIXED,
} KnAvroKind;

typedef struct KnAvroType KnAvroType;
typedef struct KnAvroField {
    const char *name;
    int32_t field_id; /* -1 = none */
    const KnAvroType *type;
} KnAvroField;
struct KnAvroType {
    KnAvroKind kind;
    const char *name;                     /* full name of record, enum, fixed; else NULL */
    const char *logical;                  /* logicalType or NULL */
    int32_t element_id, key_id, value_id; /* array, map; -1 = none */
    int32_t fixed_size;
    int32_t precision, scale; /* decimal */
    bool adjust_to_utc;       /* timestamps */
    bool zero_size;  /* no datum of it takes a byte: null, fixed of 0, records of only these */
    size_t n_fields; /* record: fields; union: branches (type only); array/map: 1 */
    const KnAvroField *fields;
};

/* A position inside decoded bytes; never passes end. */
typedef struct KnAvroCursor {
    const uint8_t *pos, *end;
    int depth;
} KnAvroCursor;

KN_NODISCARD KnCode kn_avro_type_parse(KnArena *arena, KnStr json, const KnAvroType **ret,
                                       KnErr *err);

KN_NODISCARD KnCode kn_avro_read_long(KnAvroCursor *cur, int64_t *ret, KnErr *err);
KN_NODISCARD KnCode kn_avro_read_int(KnAvroCursor *cur, int32_t *ret, KnErr *err);
KN_NODISCARD KnCode kn_avro_read_boolean(KnAvroCursor *cur, bool *ret, KnErr *err);
KN_NODISCARD KnCode kn_avro_read_float(KnAvroCursor *cur, float *ret, KnErr *err);
KN_NODISCARD KnCode kn_avro_read_double(KnAvroCursor *cur, double *ret, KnErr *err);
/** Bytes or string: a view into the block, valid until the next block. */
KN_NODISCARD KnCode kn_avro_read_bytes(KnAvroCursor *cur, KnStr *ret, KnErr *err);
KN_NODISCARD KnCode kn_avro_read_fixed(KnAvroCursor *cur, size_t size, KnStr *ret, KnErr *err);
/** The branch's type; for a non-union type itself, so that callers treat both alike. */
KN_NODISCARD KnCode kn_avro_read_branch(KnAvroCursor *cur, const KnAvroType *type,
                                        const KnAvroType **ret, KnErr *err);
/** Array and map blocks: loop `while (count > 0)`; 0 = end. Negative counts with sizes are handled.
 */
KN_NODISCARD KnCode kn_avro_read_block_count(KnAvroCursor *cur, int64_t *ret_count, KnErr *err);
KN_NODISCARD KnCode kn_avro_skip(KnAvroCursor *cur, const KnAvroType *type, KnErr *err);

typedef struct KnAvroReader KnAvroReader;
/** bytes stay the caller's and must outlive the reader. Header is parsed and checked here. */
KN_NODISCARD KnCode kn_avro_reader_open(const void *bytes, size_t len, KnAvroReader **ret,
                                        KnErr *err);
KnAvroReader *kn_avro_reader_close(KnAvroReader *reader);
const KnAvroType *kn_avro_reader_type(const KnAvroReader *reader);
/** A file metadata value ("partition-spec-id", "schema", …); ptr NULL = absent. */
KnStr kn_avro_reader_meta(const KnAvroReader *reader, const char *key);
/** The next block, decoded, with its datum count; count 0 = end of file. Sync markers are checked.
 * After reading count datums the cursor must be at its end: kn_avro_cursor_finish() says so. */
KN_NODISCARD KnCode kn_avro_reader_next_block(KnAvroReader *reader, KnAvroCursor *ret,
                                              int64_t *ret_count, KnErr *err);
KN_NODISCARD KnCode kn_avro_cursor_finish(const KnAvroCursor *cur, KnErr *err);

/* ---- writing: the caller encodes datums in the order of its schema ---- */
typedef enum KnAvroCodec {
    KN_AVRO_CODEC_NULL,
    KN_AVRO_CODEC_DEFLATE,
    KN_AVRO_CODEC_SNAPPY,
    KN_AVRO_CODEC_ZSTD
} KnAvroCodec;
typedef struct KnAvroWriter KnAvroWriter;
/** schema_json is written as given (with its ids). The sync marker is derived from the header's
 * bytes, so that equal input gives an equal file. Output goes to a growing buffer (max 1 GiB). */
KnAvroWriter *kn_avro_writer_new(KnStr schema_json, KnAvroCodec codec);
void kn_avro_writer_meta(KnAvroWriter *w, const char *key,
                         KnStr value); /* before the first datum */
/** Where the next datum is encoded; then kn_avro_writer_datum() ends it (a block closes at 64 KiB).
 */
KnBuf *kn_avro_writer_buf(KnAvroWriter *w);
KN_NODISCARD KnCode kn_avro_writer_datum(KnAvroWriter *w, KnErr *err);
/** Bytes so far, for rolling files by size. */
size_t kn_avro_writer_size(const KnAvroWriter *w);
KN_NODISCARD KnCode kn_avro_writer_finish(KnAvroWriter *w, KnBuf *ret_file, KnErr *err);
KnAvroWriter *kn_avro_writer_free(KnAvroWriter *w);

void kn_avro_put_long(KnBuf *buf, int64_t v); /* int and long alike */
void kn_avro_put_boolean(KnBuf *buf, bool v);
void kn_avro_put_float(KnBuf *buf, float v);
void kn_avro_put_double(KnBuf *buf, double v);
void kn_avro_put_bytes(KnBuf *buf, KnStr s);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * parquet_meta.h - where a local file's column chunks lie, and a footer for a copy in which they
 * lie elsewhere or hold another type. Follows parquet.thrift; the footer itself is kept as bytes,
 * so that what is not looked at (statistics, key-value metadata) is carried over as it is. One
 * thread at a time.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/vec.h"
#include "engine/parquet.h"
#include "engine/parquet_thrift.h"

/* CompressionCodec */
enum {
    KN_PQ_UNCOMPRESSED = 0,
    KN_PQ_SNAPPY = 1,
    KN_PQ_GZIP = 2,
    KN_PQ_LZO = 3,
    KN_PQ_LZ4 = 5, /* framed as Hadoop does; deprecated */
    KN_PQ_ZSTD = 6,
    KN_PQ_LZ4_RAW = 7,
};

/* Type, of leaves */
enum { KN_PQ_TYPE_INT64 = 2, KN_PQ_TYPE_BYTES = 6, KN_PQ_TYPE_FIXED = 7 };

/* A column of a row group. */
typedef struct KnPqChunk {
    int64_t start; /* offset in the file of its first page */
    int64_t size;  /* bytes of its pages, headers included */
    int64_t plain_size;
    int64_t n_values;
    int64_t data_offset; /* of the first data page, if there is a dictionary; else start */
    int codec;
    bool has_dictionary;
    bool is_fixed; /* its values become FIXED_LEN_BYTE_ARRAY; set by who recodes them */
} KnPqChunk;

/* A primitive column of the schema. */
typedef struct KnPqLeaf {
    int32_t field_id; /* -1 = none */
    int type;
    int max_def; /* levels */
    int max_rep;
} KnPqLeaf;
typedef KN_VEC(KnPqLeaf) KnPqLeafVec;

/* What a leaf is called in a footer written anew. */
typedef struct KnPqRetype {
    KnPqAs as;
    int32_t length; /* of KN_PQ_AS_FIXED */
} KnPqRetype;

typedef struct KnPqGroup {
    size_t first; /* chunk */
    size_t n_chunks;
} KnPqGroup;

typedef struct KnPqMeta {
    KnBuf footer;     /* the Thrift bytes of FileMetaData */
    int64_t data_end; /* where the footer begins */
    KN_VEC(KnPqChunk) chunks;
    KN_VEC(KnPqGroup) groups;
    const KnPqRetype *retypes; /* of every leaf, in order; NULL = the schema stays. Borrowed */
    bool in_place;             /* no chunk has moved */
} KnPqMeta;

/** The footer's bytes of an open file of this size into buf (which is initialised here), and where
 * they begin. KN_E_CORRUPT for what is not Parquet, KN_E_UNSUPPORTED when encrypted. */
KN_NODISCARD KnCode kn_pq_footer_read(int fd, int64_t size, KnBuf *buf, int64_t *ret_at,
                                      KnErr *err);
/** The chunks of an open file of this size; ret is initialised and must be done in any case.
 * Chunks lie between magic and footer, and their sizes add up to no more than the file's
 * (KN_E_CORRUPT). KN_E_UNSUPPORTED for encrypted columns and columns in other files. Messages do
 * not name the file. */
KN_NODISCARD KnCode kn_pq_meta_read(int fd, int64_t size, KnPqMeta *ret, KnErr *err);
void kn_pq_meta_done(KnPqMeta *meta);
/** The footer of a copy whose chunks are those of meta now: codecs, offsets, sizes and types are
 * theirs; unless in_place, page indexes and Bloom filters are not mentioned any more. Appended to
 * buf. */
KN_NODISCARD KnCode kn_pq_meta_write(const KnPqMeta *meta, KnBuf *buf, KnErr *err);
/** What follows a footer of len bytes: its length and the magic. */
void kn_pq_tail_write(KnBuf *buf, size_t len);

/** The leaves of the schema, in order, into ret (zeroed before; done by the caller in any case). */
KN_NODISCARD KnCode kn_pq_leaves_read(const KnPqMeta *meta, KnPqLeafVec *ret, KnErr *err);
/** The schema, whose list t stands at, with the leaves retyped; field is its header in t. */
void kn_pq_schema_write(const KnPqMeta *meta, KnBuf *buf, int *last, const KnThriftField *f,
                        KnThrift *t);

/** A bit (1 << codec) for every codec in the file at path; 0 when that cannot be told. */
uint64_t kn_pq_codecs_of(const char *path);

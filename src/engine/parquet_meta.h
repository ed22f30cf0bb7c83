/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * parquet_meta.h - where a local file's column chunks lie, and a footer for a copy in which they
 * lie elsewhere. Follows parquet.thrift; the footer itself is kept as bytes, so that what is not
 * looked at (schema, statistics, key-value metadata) is carried over as it is. One thread at a
 * time.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/vec.h"

/* CompressionCodec */
enum {
    KN_PQ_UNCOMPRESSED = 0,
    KN_PQ_LZO = 3,
    KN_PQ_LZ4 = 5, /* framed as Hadoop does; deprecated */
    KN_PQ_LZ4_RAW = 7,
};

/* A column of a row group. */
typedef struct KnPqChunk {
    int64_t start; /* offset in the file of its first page */
    int64_t size;  /* bytes of its pages, headers included */
    int64_t plain_size;
    int64_t n_values;
    int64_t data_offset; /* of the first data page, if there is a dictionary; else start */
    int codec;
    bool has_dictionary;
} KnPqChunk;

typedef struct KnPqGroup {
    size_t first; /* chunk */
    size_t n_chunks;
} KnPqGroup;

typedef struct KnPqMeta {
    KnBuf footer;     /* the Thrift bytes of FileMetaData */
    int64_t data_end; /* where the footer begins */
    KN_VEC(KnPqChunk) chunks;
    KN_VEC(KnPqGroup) groups;
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
/** The footer of a copy whose chunks are those of meta now: codecs, offsets and sizes are theirs;
 * page indexes and Bloom filters are not mentioned any more. Appended to buf. */
KN_NODISCARD KnCode kn_pq_meta_write(const KnPqMeta *meta, KnBuf *buf, KnErr *err);

/** A bit (1 << codec) for every codec in the file at path; 0 when that cannot be told. */
uint64_t kn_pq_codecs_of(const char *path);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * puffin.h - Puffin files (puffin-spec): written whole; of them, deletion vectors are read.
 *
 * A manifest names the blob of a deletion vector by offset and size, so the file's footer is not
 * needed for reading. Functions are thread-safe, a writer belongs to one thread.
 */
#include "base/json.h"
#include "codec/roaring.h"

/** The positions of a deletion-vector-v1 blob (length, magic, bitmap, CRC-32), as ranges.
 * Everything is checked; positions are below 2^63. */
KN_NODISCARD KnCode kn_puffin_vector_decode(KnStr blob, KnRoaringFn fn, void *arg,
                                            uint64_t *ret_cardinality, KnErr *err);

/* ---- writing ---- */

typedef struct KnPuffinWriter KnPuffinWriter;

/* What the footer says about a blob. */
typedef struct KnPuffinBlob {
    const char *type; /* "deletion-vector-v1" */
    const int32_t *fields;
    size_t n_fields;
    int64_t snapshot_id, sequence_number; /* -1 = inherited from the commit */
    json_t *properties;                   /* object of texts, referenced; or NULL */
} KnPuffinBlob;
/* Where a blob lies in its file. */
typedef struct KnPuffinPlace {
    int64_t offset, length;
    uint64_t cardinality; /* of a deletion vector */
} KnPuffinPlace;

/** max: bytes that the file may have. */
KnPuffinWriter *kn_puffin_writer_new(size_t max);
KnPuffinWriter *kn_puffin_writer_free(KnPuffinWriter *w); /* accepts NULL, returns NULL */
/** Bytes so far. */
size_t kn_puffin_writer_size(const KnPuffinWriter *w);
/** Adds a blob as it is, uncompressed. */
KN_NODISCARD KnCode kn_puffin_writer_add(KnPuffinWriter *w, const KnPuffinBlob *blob, KnStr bytes,
                                         KnPuffinPlace *ret, KnErr *err);
/** Adds the deletion vector of the data file at path, exactly as its manifest spells it: the rows
 * whose bits are set in words. */
KN_NODISCARD KnCode kn_puffin_writer_add_vector(KnPuffinWriter *w, const char *path,
                                                const uint64_t *words, size_t n_words,
                                                KnPuffinPlace *ret, KnErr *err);
/** The footer; ret views the whole file and lives as long as w. Nothing can be added after. */
KN_NODISCARD KnCode kn_puffin_writer_finish(KnPuffinWriter *w, const char *created_by, KnStr *ret,
                                            KnErr *err);

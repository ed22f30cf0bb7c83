/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * rewrite_sizes.h - which sizes of files and groups make a rewrite worth it: what compact and
 * rewrite_deletes have alike (Java's SizeBasedFileRewritePlanner).
 */
#include "iceberg/metadata/metadata.h"

typedef struct KnRewriteSizes {
    int64_t target_file_bytes; /* 0 = the table's property */
    int64_t min_file_bytes;    /* smaller files are rewritten; -1 = 75 % of the target */
    int64_t max_file_bytes;    /* larger ones too; 0 = 180 % of the target */
    int64_t min_input_files;   /* of a group worth rewriting; 0 = 5 */
    int64_t max_group_bytes;   /* 0 = 100 GiB */
    bool rewrite_all;          /* whatever their size */
} KnRewriteSizes;

/** Puts in what was left open; target: of the table. */
void kn_rewrite_sizes_fill(KnRewriteSizes *sizes, int64_t target);
/** Of one file, all sizes filled. */
bool kn_rewrite_sizes_odd(const KnRewriteSizes *sizes, int64_t file_bytes);
/** Has the group enough files, or does it make at least one whole file? */
bool kn_rewrite_sizes_worth(const KnRewriteSizes *sizes, size_t n_files, int64_t bytes);
/** Adds a file to a group's *bytes; false, and nothing added, when the group is full. */
bool kn_rewrite_sizes_fit(const KnRewriteSizes *sizes, int64_t *bytes, int64_t file_bytes);

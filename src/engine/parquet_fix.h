/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * parquet_fix.h - a copy of a Parquet file in which the engine can read what it cannot in the
 * original. Rows keep their numbers (file_row_number), row groups and field ids.
 */
#include "base/err.h"

/* What is to be mended; bits. */
enum {
    KN_PQ_FIX_NANOS = 1, /* nanoseconds adjusted to UTC read as TIMESTAMP_NS (parquet_nanos.h) */
    KN_PQ_FIX_LZ4 = 2,   /* codec LZ4 becomes LZ4_RAW (parquet_lz4.h; KnPqFile.hadoop_lz4) */
};

/** A new local file at `to` (replaced if there): the caller removes it. On failure there is none.
 * Thread-safe. */
KN_NODISCARD KnCode kn_parquet_fix_copy(const char *from, const char *to, unsigned fixes,
                                        KnErr *err);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* rewrite_args.h - what the commands that rewrite files read and print alike. */
#include "cli/output.h"
#include "iceberg/table.h"

/** A size from a KN_OPT_BYTES row. */
KN_NODISCARD KnCode kn_args_size(const char *flag, uint64_t size, int64_t *ret, KnErr *err);
/** --min-file-size-bytes, of which 0 means something; NULL leaves *ret alone. */
KN_NODISCARD KnCode kn_args_min_file(const char *text, int64_t *ret, KnErr *err);
/** --max-file-group-size-bytes: above 0. */
KN_NODISCARD KnCode kn_args_max_group(uint64_t size, int64_t *ret, KnErr *err);

typedef struct KnArgsPartition {
    int32_t spec_id;
    size_t n_values;
    const KnValue *values;
} KnArgsPartition;
/** A cell: "day=2026-01-31/id_bucket=3"; null without values. */
KN_NODISCARD KnCode kn_args_put_partition(KnOut *out, const KnTable *tbl,
                                          const KnArgsPartition *part, KnErr *err);

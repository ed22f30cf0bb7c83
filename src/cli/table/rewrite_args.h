/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* rewrite_args.h - what the commands that rewrite files read and print alike. */
#include "cli/output.h"
#include "iceberg/maintain/rewrite_sizes.h"
#include "iceberg/table.h"

/** What KN_REWRITE_FILE_ROWS, KN_REWRITE_GROUP_ROW and the command's own rows fill. */
typedef struct KnRewriteSizeArgs {
    uint64_t target, max_file, max_group;
    const char *min_file; /* a text, since 0 means something; NULL = not said */
    int64_t min_input_files;
    bool rewrite_all;
} KnRewriteSizeArgs;

/* Rows of a KnRewriteSizeArgs that stands at base. */
#define KN_REWRITE_FILE_ROWS(base)                                                                 \
    {.name = "min-file-size-bytes",                                                                \
     .type = KN_OPT_TEXT,                                                                          \
     .offset = (base) + offsetof(KnRewriteSizeArgs, min_file),                                     \
     .value = "SIZE",                                                                              \
     .doc = "Smaller files are rewritten (default: 75 % of the target)"},                          \
        {.name = "max-file-size-bytes",                                                            \
         .type = KN_OPT_BYTES,                                                                     \
         .offset = (base) + offsetof(KnRewriteSizeArgs, max_file),                                 \
         .value = "SIZE",                                                                          \
         .doc = "Larger files are rewritten (default: 180 % of the target)"},                      \
    {                                                                                              \
        .name = "min-input-files", .type = KN_OPT_INT,                                             \
        .offset = (base) + offsetof(KnRewriteSizeArgs, min_input_files), .value = "N",             \
        .dflt = "5", .min = 1, .max = INT32_MAX,                                                   \
        .doc = "A group with so many files is rewritten even if it makes no whole file"            \
    }
#define KN_REWRITE_GROUP_ROW(base)                                                                 \
    {                                                                                              \
        .name = "max-file-group-size-bytes", .type = KN_OPT_BYTES,                                 \
        .offset = (base) + offsetof(KnRewriteSizeArgs, max_group), .value = "SIZE",                \
        .dflt = "100GiB", .doc = "Most bytes of the files that are rewritten together"             \
    }

/** The sizes asked for; KN_E_INVAL names the flag. */
KN_NODISCARD KnCode kn_args_rewrite_sizes(const KnRewriteSizeArgs *args, KnRewriteSizes *ret,
                                          KnErr *err);

typedef struct KnArgsPartition {
    int32_t spec_id;
    size_t n_values;
    const KnValue *values;
} KnArgsPartition;
/** A cell: "day=2026-01-31/id_bucket=3"; null without values. */
KN_NODISCARD KnCode kn_args_put_partition(KnOut *out, const KnTable *tbl,
                                          const KnArgsPartition *part, KnErr *err);

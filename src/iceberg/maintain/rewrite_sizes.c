/* SPDX-License-Identifier: Apache-2.0 */
/* rewrite_sizes.c - see rewrite_sizes.h. Sizes come from outside: their sums may not fit. */
#include "iceberg/maintain/rewrite_sizes.h"

void kn_rewrite_sizes_fill(KnRewriteSizes *sizes, int64_t target)
{
    if (sizes->target_file_bytes <= 0)
        sizes->target_file_bytes = target;
    if (sizes->min_file_bytes < 0)
        sizes->min_file_bytes = (int64_t)((double)sizes->target_file_bytes * 0.75);
    if (sizes->max_file_bytes <= 0)
        sizes->max_file_bytes = (int64_t)((double)sizes->target_file_bytes * 1.8);
    if (sizes->min_input_files <= 0)
        sizes->min_input_files = 5;
    if (sizes->max_group_bytes <= 0)
        sizes->max_group_bytes = INT64_C(100) << 30;
}

bool kn_rewrite_sizes_odd(const KnRewriteSizes *sizes, int64_t file_bytes)
{
    return file_bytes < sizes->min_file_bytes || file_bytes > sizes->max_file_bytes;
}

bool kn_rewrite_sizes_worth(const KnRewriteSizes *sizes, size_t n_files, int64_t bytes)
{
    bool many = n_files > 1 &&
                ((int64_t)n_files >= sizes->min_input_files || bytes > sizes->target_file_bytes);
    return sizes->rewrite_all || many || bytes > sizes->max_file_bytes;
}

bool kn_rewrite_sizes_fit(const KnRewriteSizes *sizes, int64_t *bytes, int64_t file_bytes)
{
    int64_t sum;
    if (__builtin_add_overflow(*bytes, file_bytes, &sum) || sum > sizes->max_group_bytes)
        return false;
    *bytes = sum;
    return true;
}

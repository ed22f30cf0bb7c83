/* SPDX-License-Identifier: Apache-2.0 */
/* rewrite_args.c - see rewrite_args.h. */
#include "cli/table/rewrite_args.h"

static KnCode read_size(const char *flag, uint64_t size, int64_t *ret, KnErr *err)
{
    if (size > INT64_MAX)
        return kn_err_set(err, KN_E_INVAL, "--%s: the size is beyond 64 bits", flag);
    *ret = (int64_t)size;
    return KN_OK;
}

static KnCode read_min_file(const char *text, int64_t *ret, KnErr *err)
{
    uint64_t least = 0;
    if (!text)
        return KN_OK;
    if (!kn_str_to_bytes(kn_str(text), &least) || least > INT64_MAX)
        return kn_err_set(err, KN_E_INVAL,
                          "--min-file-size-bytes: '%.60s' is not a size, like 64MiB", text);
    *ret = (int64_t)least;
    return KN_OK;
}

KnCode kn_args_rewrite_sizes(const KnRewriteSizeArgs *args, KnRewriteSizes *ret, KnErr *err)
{
    KN_TRY(read_min_file(args->min_file, &ret->min_file_bytes, err));
    KN_TRY(read_size("target-file-size-bytes", args->target, &ret->target_file_bytes, err));
    KN_TRY(read_size("max-file-size-bytes", args->max_file, &ret->max_file_bytes, err));
    if (args->max_group == 0)
        return kn_err_set(err, KN_E_INVAL, "--max-file-group-size-bytes must be above 0");
    KN_TRY(read_size("max-file-group-size-bytes", args->max_group, &ret->max_group_bytes, err));
    ret->min_input_files = args->min_input_files;
    ret->rewrite_all = args->rewrite_all;
    return KN_OK;
}

KnCode kn_args_put_partition(KnOut *out, const KnTable *tbl, const KnArgsPartition *part,
                             KnErr *err)
{
    const KnPartitionSpec *spec = kn_metadata_find_spec(tbl->md, part->spec_id);
    if (!part->values || !spec || part->n_values != spec->n_fields || spec->n_fields == 0) {
        kn_out_null(out);
        return KN_OK;
    }
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KN_BUF_AUTO path;
    const KnType *type = NULL;
    kn_buf_init(&path, (size_t)1 << 20);
    KN_TRY(kn_metadata_partition_type(arena, tbl->md, spec, &type, err));
    KN_TRY(kn_partition_path(&path, spec, type, part->values, err));
    kn_out_str(out, (KnStr){path.data, path.len});
    return KN_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* rewrite_deletes.c - `knut table rewrite-deletes`: Iceberg's rewrite_position_delete_files. */
#include "iceberg/maintain/rewrite_deletes.h"

#include "base/stop.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/table/manage_args.h"
#include "cli/table/rewrite_args.h"
#include "cli/table/table_args.h"

typedef struct DeletesCommandOptions {
    KnCommonOptions common;
    KnLocator loc;
    const char *where, *branch;
    KnRewriteSizeArgs sizes;
    bool dry_run;
    KnOptList summary; /* KEY=VALUE */
} DeletesCommandOptions;

#define AT(field) offsetof(DeletesCommandOptions, field)

static const KnOption deletes_rows[] = {
    {.name = "where",
     .type = KN_OPT_TEXT,
     .offset = AT(where),
     .value = "FILTER",
     .doc = "Only deletes of partitions that may hold rows for which this is true"},
    {.name = "target-file-size-bytes",
     .type = KN_OPT_BYTES,
     .offset = AT(sizes.target),
     .value = "SIZE",
     .doc = "Size of a delete file (default: write.delete.target-file-size-bytes of the table)"},
    KN_REWRITE_FILE_ROWS(AT(sizes)),
    {.name = "rewrite-all",
     .type = KN_OPT_FLAG,
     .offset = AT(sizes.rewrite_all),
     .doc = "Rewrite all files of position deletes, whatever their size"},
    KN_REWRITE_GROUP_ROW(AT(sizes)),
    {.name = "branch",
     .type = KN_OPT_TEXT,
     .offset = AT(branch),
     .value = "NAME",
     .dflt = "main",
     .doc = "Branch whose delete files are rewritten"},
    {.name = "summary",
     .type = KN_OPT_REPEAT,
     .offset = AT(summary),
     .value = "KEY=VALUE",
     .doc = "Put this into the snapshot's summary"},
    {.name = "dry-run",
     .type = KN_OPT_FLAG,
     .offset = AT(dry_run),
     .doc = "Print the groups that would be rewritten, and change nothing"},
};

static KnCode make_options(const KnCall *call, const KnTable *tbl, KnRewriteDeletesOptions *out,
                           KnErr *err)
{
    const DeletesCommandOptions *opts = call->options;
    *out = kn_rewrite_deletes_defaults();
    out->write = (KnWriteOptions){.branch = opts->branch, .cancelled = kn_stop_requested};
    out->progress = (KnProgressMode)call->common->progress;
    KN_TRY(kn_args_summary(call, &opts->summary, &out->write, err));
    KN_TRY(kn_args_rewrite_sizes(&opts->sizes, &out->sizes, err));
    if (!opts->where)
        return KN_OK;
    KnCode rc = kn_expr_parse(call->arena, kn_str(opts->where), kn_metadata_schema(tbl->md),
                              &out->filter, err);
    return kn_err_wrap(err, rc, "--where");
}

static KnCode print_groups(KnOut *out, const KnTable *tbl, const KnDeletesPlan *plan, KnErr *err)
{
    for (size_t i = 0; i < plan->n_groups; i++) {
        const KnDeleteGroup *group = &plan->groups[i];
        kn_out_int(out, (int64_t)i + 1);
        kn_out_int(out, group->spec_id);
        KN_TRY(kn_args_put_partition(
            out, tbl, &(KnArgsPartition){group->spec_id, group->n_partition, group->partition},
            err));
        kn_out_int(out, (int64_t)group->n_files);
        kn_out_int(out, group->positions);
        kn_out_bytes(out, group->bytes);
        kn_out_int(out, (int64_t)group->n_data_files);
        kn_out_bool(out, plan->vectors);
    }
    if (plan->n_dangling == 0)
        return KN_OK;
    int64_t positions = 0;
    int64_t bytes = 0;
    for (size_t i = 0; i < plan->n_dangling; i++) {
        positions += plan->dangling[i]->file.record_count;
        bytes += plan->dangling[i]->file.size_bytes;
    }
    kn_out_null(out);
    kn_out_null(out);
    kn_out_null(out);
    kn_out_int(out, (int64_t)plan->n_dangling);
    kn_out_int(out, positions);
    kn_out_bytes(out, bytes);
    kn_out_int(out, 0);
    kn_out_bool(out, false);
    return KN_OK;
}

static KnCode dry_run(const KnCall *call, const KnTable *tbl, const KnRewriteDeletesOptions *opts,
                      KnErr *err)
{
    static const KnOutColumn columns[] = {
        {"group", true},     {"spec", true},  {"partition", false}, {"files", true},
        {"positions", true}, {"bytes", true}, {"data_files", true}, {"vectors", false},
    };
    KnDeletesPlan *plan = NULL;
    KN_TRY(kn_rewrite_deletes_plan(tbl, opts, &plan, err));
    KnOut *out = kn_out_open((KnOutputFormat)call->common->output, columns, 8);
    KnCode rc = print_groups(out, tbl, plan, err);
    KnCode closed = kn_out_close(out, rc == KN_OK ? err : NULL);
    kn_rewrite_deletes_plan_free(plan);
    return rc == KN_OK ? closed : rc;
}

static KnCode rewrite(const KnCall *call, const KnCallTable *ct,
                      const KnRewriteDeletesOptions *opts, KnErr *err)
{
    static const KnOutColumn columns[] = {{"table", false},        {"operation", false},
                                          {"snapshot", true},      {"removed_files", true},
                                          {"removed_bytes", true}, {"added_files", true},
                                          {"added_bytes", true},   {"dropped_positions", true}};
    KN_CALL_ENGINE_AUTO ce = {0};
    KN_TRY(kn_call_engine_open(call, &ce, err));
    KnRewriteDeletesResult res;
    KN_TRY(kn_write_rewrite_deletes(ct->table, ce.session, opts, &res, err));
    KnOut *out = kn_out_open((KnOutputFormat)call->common->output, columns, 8);
    kn_out_text(out, ct->table->name);
    kn_out_text(out, "rewrite-deletes");
    kn_out_opt_int(out, res.snapshot_id);
    kn_out_int(out, res.removed_files);
    kn_out_bytes(out, res.removed_bytes);
    kn_out_int(out, res.added_files);
    kn_out_bytes(out, res.added_bytes);
    kn_out_int(out, res.dropped_positions);
    return kn_out_close(out, err);
}

static KnCode run_rewrite_deletes(KnCall *call, KnErr *err)
{
    const DeletesCommandOptions *opts = call->options;
    KN_CALL_TABLE_AUTO ct = {0};
    KN_TRY(opts->dry_run ? kn_call_table_open(call, &ct, err)
                         : kn_args_open_writable(call, &ct, err));
    KnRewriteDeletesOptions rewrite_opts;
    KN_TRY(make_options(call, ct.table, &rewrite_opts, err));
    return opts->dry_run ? dry_run(call, ct.table, &rewrite_opts, err)
                         : rewrite(call, &ct, &rewrite_opts, err);
}

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
const KnCommand kn_cmd_table_rewrite_deletes = {
    .group = "table",
    .name = "rewrite-deletes",
    .summary = "Pack position deletes, without dangling ones; in format 3 as deletion vectors",
    .about = "  knut table rewrite-deletes --warehouse /data/wh --table shop.orders --dry-run",
    .options_size = sizeof(DeletesCommandOptions),
    .locator = offsetof(DeletesCommandOptions, loc),
    .rows = deletes_rows,
    .n_rows = COUNT(deletes_rows),
    .run = run_rewrite_deletes,
};

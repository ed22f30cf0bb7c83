/* SPDX-License-Identifier: Apache-2.0 */
/* compact.c - `knut table compact`: Iceberg's rewrite_data_files, under its option names. */
#include "iceberg/maintain/compact.h"

#include "base/stop.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/table/manage_args.h"
#include "cli/table/rewrite_args.h"
#include "cli/table/table_args.h"
#include "iceberg/schema/partition_internal.h"

enum { STRATEGY_BINPACK, STRATEGY_SORT };
enum { SAY_TRUE, SAY_FALSE };

typedef struct CompactCommandOptions {
    KnCommonOptions common;
    KnLocator loc;
    const char *where, *branch, *sort_order;
    int strategy;
    KnRewriteSizeArgs sizes;
    const char *delete_ratio;
    int64_t delete_files, output_spec;
    int starting_sequence;
    bool remove_dangling, partial, dry_run;
    int64_t max_commits, max_failed;
    KnOptList summary; /* KEY=VALUE */
} CompactCommandOptions;

#define AT(field) offsetof(CompactCommandOptions, field)

static const KnOption compact_rows[] = {
    {.name = "where",
     .type = KN_OPT_TEXT,
     .offset = AT(where),
     .value = "FILTER",
     .doc = "Only files that may hold rows for which this is true"},
    {.name = "strategy",
     .type = KN_OPT_CHOICE,
     .offset = AT(strategy),
     .value = "binpack|sort",
     .dflt = "binpack",
     .doc = "binpack joins files as they are; sort sorts the rows of each group"},
    {.name = "sort-order",
     .type = KN_OPT_TEXT,
     .offset = AT(sort_order),
     .value = "ORDER",
     .doc = "With strategy sort: \"a, b desc nulls last\" (default: the table's sort order)"},
    {.name = "target-file-size-bytes",
     .type = KN_OPT_BYTES,
     .offset = AT(sizes.target),
     .value = "SIZE",
     .doc = "Size of the files to write (default: write.target-file-size-bytes of the table)"},
    KN_REWRITE_FILE_ROWS(AT(sizes)),
    {.name = "delete-file-threshold",
     .type = KN_OPT_INT,
     .offset = AT(delete_files),
     .value = "N",
     .dflt = "2147483647",
     .min = 0,
     .max = INT32_MAX,
     .doc = "Files with so many delete files are rewritten, whatever their size"},
    {.name = "delete-ratio-threshold",
     .type = KN_OPT_TEXT,
     .offset = AT(delete_ratio),
     .value = "R",
     .dflt = "0.3",
     .doc = "Files with this part of their rows deleted are rewritten, whatever their size"},
    {.name = "rewrite-all",
     .type = KN_OPT_FLAG,
     .offset = AT(sizes.rewrite_all),
     .doc = "Rewrite all files, whatever their size"},
    KN_REWRITE_GROUP_ROW(AT(sizes)),
    {.name = "use-starting-sequence-number",
     .type = KN_OPT_CHOICE,
     .offset = AT(starting_sequence),
     .value = "true|false",
     .dflt = "true",
     .doc = "New files keep the sequence number of the snapshot that was planned, so that equality "
            "deletes added meanwhile are no conflict"},
    {.name = "remove-dangling-deletes",
     .type = KN_OPT_FLAG,
     .offset = AT(remove_dangling),
     .doc = "Then remove delete files that apply to no data file, as a snapshot of its own"},
    {.name = "output-spec-id",
     .type = KN_OPT_INT,
     .offset = AT(output_spec),
     .value = "ID",
     .dflt = "-1",
     .min = -1,
     .max = INT32_MAX,
     .doc = "Partition spec of the new files; -1 is the table's default"},
    {.name = "partial-progress",
     .type = KN_OPT_FLAG,
     .offset = AT(partial),
     .doc = "Commit groups as they are done, so that a conflict loses only a part"},
    {.name = "max-commits",
     .type = KN_OPT_INT,
     .offset = AT(max_commits),
     .value = "N",
     .dflt = "10",
     .min = 1,
     .max = INT32_MAX,
     .doc = "With partial progress: the most commits to make"},
    {.name = "max-failed-commits",
     .type = KN_OPT_INT,
     .offset = AT(max_failed),
     .value = "N",
     .dflt = "-1",
     .min = -1,
     .max = INT32_MAX,
     .doc = "With partial progress: conflicts that are borne; -1 is all but the last"},
    {.name = "branch",
     .type = KN_OPT_TEXT,
     .offset = AT(branch),
     .value = "NAME",
     .dflt = "main",
     .doc = "Branch whose files are rewritten"},
    {.name = "summary",
     .type = KN_OPT_REPEAT,
     .offset = AT(summary),
     .value = "KEY=VALUE",
     .doc = "Put this into the summaries of the snapshots"},
    {.name = "dry-run",
     .type = KN_OPT_FLAG,
     .offset = AT(dry_run),
     .doc = "Print the groups that would be rewritten, and change nothing"},
};

/* ---- options ---- */

static KnCode parse_sort_order(const KnCall *call, const KnTable *tbl, KnCompactOptions *out,
                               KnErr *err)
{
    const CompactCommandOptions *opts = call->options;
    out->sort = opts->strategy == STRATEGY_SORT;
    if (!opts->sort_order)
        return KN_OK;
    if (!out->sort)
        return kn_err_set(err, KN_E_INVAL, "--sort-order needs --strategy sort");
    KnSortOrder *order = NULL;
    KnCode rc = kn_sort_order_parse_text(call->arena, kn_metadata_schema(tbl->md),
                                         kn_str(opts->sort_order), &order, err);
    if (rc == KN_OK && order->n_fields == 0)
        rc = kn_err_set(err, KN_E_INVAL, "no columns");
    if (rc != KN_OK)
        return kn_err_wrap(err, rc, "--sort-order");
    /* An order that the table does not know has no number: its files count as unsorted. */
    order->order_id = 0;
    for (size_t i = 0; i < tbl->md->n_sort_orders; i++) {
        if (kn_sort_order_equal(order, tbl->md->sort_orders[i]))
            order->order_id = tbl->md->sort_orders[i]->order_id;
    }
    out->sort_order = order;
    return KN_OK;
}

static KnCode parse_numbers(const CompactCommandOptions *opts, KnCompactOptions *out, KnErr *err)
{
    if (!kn_str_to_double(kn_str(opts->delete_ratio), &out->delete_ratio_threshold) ||
        !(out->delete_ratio_threshold > 0 && out->delete_ratio_threshold <= 1))
        return kn_err_set(err, KN_E_INVAL,
                          "--delete-ratio-threshold: '%.60s' is not a number above 0 and at most 1",
                          opts->delete_ratio);
    return kn_args_rewrite_sizes(&opts->sizes, &out->sizes, err);
}

static KnCode make_options(const KnCall *call, const KnTable *tbl, KnCompactOptions *out,
                           KnErr *err)
{
    const CompactCommandOptions *opts = call->options;
    *out = kn_compact_defaults();
    out->write = (KnWriteOptions){.branch = opts->branch, .cancelled = kn_stop_requested};
    KN_TRY(kn_args_summary(call, &opts->summary, &out->write, err));
    out->delete_file_threshold = opts->delete_files;
    out->new_sequence_number = opts->starting_sequence == SAY_FALSE;
    out->remove_dangling_deletes = opts->remove_dangling;
    out->output_spec_id = (int32_t)opts->output_spec;
    out->partial_progress = opts->partial;
    out->max_commits = opts->max_commits;
    out->max_failed_commits = opts->max_failed;
    out->progress = (KnProgressMode)call->common->progress;
    KN_TRY(parse_numbers(opts, out, err));
    KN_TRY(parse_sort_order(call, tbl, out, err));
    if (!opts->where)
        return KN_OK;
    KnCode rc = kn_expr_parse(call->arena, kn_str(opts->where), kn_metadata_schema(tbl->md),
                              &out->filter, err);
    return kn_err_wrap(err, rc, "--where");
}

/* ---- the plan ---- */

static KnCode print_plan(const KnCall *call, const KnTable *tbl, const KnCompactPlan *plan,
                         KnErr *err)
{
    static const KnOutColumn columns[] = {
        {"group", true}, {"spec", true},  {"partition", false}, {"files", true},
        {"rows", true},  {"bytes", true}, {"deletes", true},    {"file_bytes", true},
    };
    KnOut *out = kn_out_open((KnOutputFormat)call->common->output, columns, 8);
    KnCode rc = KN_OK;
    for (size_t i = 0; rc == KN_OK && i < plan->n_groups; i++) {
        const KnCompactGroup *group = &plan->groups[i];
        kn_out_int(out, (int64_t)i + 1);
        kn_out_int(out, group->spec_id);
        KnArgsPartition part = {group->spec_id, plan->spec->n_fields, group->partition};
        rc = kn_args_put_partition(out, tbl, &part, err);
        kn_out_int(out, (int64_t)group->n_tasks);
        kn_out_int(out, group->rows);
        kn_out_bytes(out, group->bytes);
        kn_out_int(out, group->n_deletes);
        kn_out_bytes(out, group->file_bytes);
    }
    KnCode closed = kn_out_close(out, rc == KN_OK ? err : NULL);
    return rc == KN_OK ? closed : rc;
}

/* ---- the result ---- */

static KnCode print_result(const KnCall *call, const KnTable *tbl, const KnCompactResult *res,
                           KnErr *err)
{
    static const KnOutColumn columns[] = {
        {"table", false},        {"operation", false},    {"snapshot", true},
        {"groups", true},        {"commits", true},       {"failed_commits", true},
        {"removed_files", true}, {"removed_bytes", true}, {"added_files", true},
        {"added_bytes", true},   {"added_rows", true},    {"removed_delete_files", true},
    };
    KnOut *out = kn_out_open((KnOutputFormat)call->common->output, columns, 12);
    kn_out_text(out, tbl->name);
    kn_out_text(out, "compact");
    kn_out_opt_int(out, res->snapshot_id);
    kn_out_int(out, res->n_groups);
    kn_out_int(out, res->n_commits);
    kn_out_int(out, res->n_failed_commits);
    kn_out_int(out, res->removed_files);
    kn_out_bytes(out, res->removed_bytes);
    kn_out_int(out, res->added_files);
    kn_out_bytes(out, res->added_bytes);
    kn_out_int(out, res->added_rows);
    kn_out_int(out, res->removed_delete_files);
    return kn_out_close(out, err);
}

static KnCode dry_run(const KnCall *call, const KnTable *tbl, const KnCompactOptions *opts,
                      KnErr *err)
{
    KnCompactPlan *plan = NULL;
    KN_TRY(kn_compact_plan(tbl, opts, &plan, err));
    KnCode rc = print_plan(call, tbl, plan, err);
    kn_compact_plan_free(plan);
    return rc;
}

static KnCode compact(const KnCall *call, KnTable *tbl, KnSession *ses,
                      const KnCompactOptions *opts, KnErr *err)
{
    KnCompactResult result = {.snapshot_id = -1};
    KnCode rc = kn_write_compact(tbl, ses, opts, &result, err);
    if (rc == KN_OK || result.n_commits > 0) {
        KnCode printed = print_result(call, tbl, &result, rc == KN_OK ? err : NULL);
        rc = rc == KN_OK ? printed : rc;
    }
    return rc;
}

static KnCode run_compact(KnCall *call, KnErr *err)
{
    const CompactCommandOptions *opts = call->options;
    KN_CALL_TABLE_AUTO ct = {0};
    KN_TRY(opts->dry_run ? kn_call_table_open(call, &ct, err)
                         : kn_args_open_writable(call, &ct, err));
    KnCompactOptions compact_opts;
    KN_TRY(make_options(call, ct.table, &compact_opts, err));
    if (opts->dry_run)
        return dry_run(call, ct.table, &compact_opts, err);
    KN_CALL_ENGINE_AUTO ce = {0};
    KN_TRY(kn_call_engine_open(call, &ce, err));
    KN_TRY(kn_transform_register(ce.engine, err));
    return compact(call, ct.table, ce.session, &compact_opts, err);
}

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
const KnCommand kn_cmd_table_compact = {
    .group = "table",
    .name = "compact",
    .summary = "Rewrite data files, not rows: fewer, of the wanted size, sorted, without deletes",
    .about = "  knut table compact --warehouse /data/wh --table shop.orders --dry-run\n"
             "  knut table compact --warehouse /data/wh --table shop.orders --strategy sort \\\n"
             "      --sort-order \"customer, at desc\" --partial-progress",
    .options_size = sizeof(CompactCommandOptions),
    .locator = offsetof(CompactCommandOptions, loc),
    .rows = compact_rows,
    .n_rows = COUNT(compact_rows),
    .run = run_compact,
};

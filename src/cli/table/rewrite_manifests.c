/* SPDX-License-Identifier: Apache-2.0 */
/* rewrite_manifests.c - `knut table rewrite-manifests`: Iceberg's rewrite_manifests. */
#include "iceberg/maintain/rewrite_manifests.h"

#include "base/stop.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/table/manage_args.h"
#include "cli/table/table_args.h"

typedef struct ManifestsCommandOptions {
    KnCommonOptions common;
    KnLocator loc;
    int64_t spec_id;
    const char *branch;
    bool dry_run;
    KnOptList summary; /* KEY=VALUE */
} ManifestsCommandOptions;

static const KnOption manifests_rows[] = {
    {.name = "spec-id",
     .type = KN_OPT_INT,
     .offset = offsetof(ManifestsCommandOptions, spec_id),
     .value = "ID",
     .dflt = "-1",
     .min = -1,
     .max = INT32_MAX,
     .doc = "Partition spec whose manifests are rewritten; -1 is the table's default"},
    {.name = "branch",
     .type = KN_OPT_TEXT,
     .offset = offsetof(ManifestsCommandOptions, branch),
     .value = "NAME",
     .dflt = "main",
     .doc = "Branch whose manifests are rewritten"},
    {.name = "summary",
     .type = KN_OPT_REPEAT,
     .offset = offsetof(ManifestsCommandOptions, summary),
     .value = "KEY=VALUE",
     .doc = "Put this into the snapshot's summary"},
    {.name = "dry-run",
     .type = KN_OPT_FLAG,
     .offset = offsetof(ManifestsCommandOptions, dry_run),
     .doc = "Print what would be rewritten, and change nothing"},
};

static KnCode print_plan(const KnCall *call, KnTable *tbl, const KnRewriteManifestsOptions *opts,
                         KnErr *err)
{
    static const KnOutColumn columns[] = {{"content", false},  {"spec", true},
                                          {"manifests", true}, {"bytes", true},
                                          {"entries", true},   {"new_manifests", true}};
    KnManifestsPlanned planned[2];
    KN_TRY(kn_rewrite_manifests_plan(tbl, opts, planned, err));
    KnOut *out = kn_out_open((KnOutputFormat)call->common->output, columns, 6);
    for (int i = 0; i < 2; i++) {
        kn_out_text(out, planned[i].deletes ? "deletes" : "data");
        kn_out_int(out, planned[i].spec_id);
        kn_out_int(out, planned[i].n_manifests);
        kn_out_bytes(out, planned[i].bytes);
        kn_out_int(out, planned[i].n_entries);
        kn_out_int(out, planned[i].n_new);
    }
    return kn_out_close(out, err);
}

static KnCode rewrite(const KnCall *call, KnTable *tbl, const KnRewriteManifestsOptions *opts,
                      KnErr *err)
{
    static const KnOutColumn columns[] = {{"table", false},           {"operation", false},
                                          {"snapshot", true},         {"manifests_created", true},
                                          {"manifests_kept", true},   {"manifests_replaced", true},
                                          {"entries_processed", true}};
    KnRewriteManifestsResult res;
    KN_TRY(kn_write_rewrite_manifests(tbl, opts, &res, err));
    KnOut *out = kn_out_open((KnOutputFormat)call->common->output, columns, 7);
    kn_out_text(out, tbl->name);
    kn_out_text(out, "rewrite-manifests");
    kn_out_opt_int(out, res.snapshot_id);
    kn_out_int(out, res.n_created);
    kn_out_int(out, res.n_kept);
    kn_out_int(out, res.n_replaced);
    kn_out_int(out, res.n_entries);
    return kn_out_close(out, err);
}

static KnCode run_rewrite_manifests(KnCall *call, KnErr *err)
{
    const ManifestsCommandOptions *opts = call->options;
    KN_CALL_TABLE_AUTO ct = {0};
    KN_TRY(opts->dry_run ? kn_call_table_open(call, &ct, err)
                         : kn_args_open_writable(call, &ct, err));
    KnRewriteManifestsOptions rewrite_opts = {
        .write = {.branch = opts->branch, .cancelled = kn_stop_requested},
        .spec_id = (int32_t)opts->spec_id,
        .progress = (KnProgressMode)call->common->progress};
    KN_TRY(kn_args_summary(call, &opts->summary, &rewrite_opts.write, err));
    if (opts->dry_run)
        return print_plan(call, ct.table, &rewrite_opts, err);
    return rewrite(call, ct.table, &rewrite_opts, err);
}

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
const KnCommand kn_cmd_table_rewrite_manifests = {
    .group = "table",
    .name = "rewrite-manifests",
    .summary = "Regroup the entries of manifests by partition, data files untouched",
    .about = "  knut table rewrite-manifests --warehouse /data/wh --table shop.orders --dry-run",
    .options_size = sizeof(ManifestsCommandOptions),
    .locator = offsetof(ManifestsCommandOptions, loc),
    .rows = manifests_rows,
    .n_rows = COUNT(manifests_rows),
    .run = run_rewrite_manifests,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* orphans.c - `knut table orphans`: files that no metadata of the table reaches are removed. */
#include "iceberg/maintain/orphans.h"

#include "base/clock.h"
#include "base/stop.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/table/manage_args.h"

#define DAY_MS (INT64_C(24) * 3600 * 1000)

typedef struct OrphanOptions {
    KnCommonOptions common;
    KnLocator loc;
    const char *older_than, *location;
    int mismatch; /* KnPrefixMismatch */
    bool dry_run, force;
} OrphanOptions;

static const KnOption rows[] = {
    {.name = "older-than",
     .type = KN_OPT_TEXT,
     .offset = offsetof(OrphanOptions, older_than),
     .value = "TIME|DURATION",
     .dflt = "3d",
     .doc = "Only files that were changed before: a time, or an age such as 7d"},
    {.name = "location",
     .type = KN_OPT_TEXT,
     .offset = offsetof(OrphanOptions, location),
     .value = "DIR",
     .doc = "Look below this folder of the table only ('data', 'metadata', or its full name)"},
    {.name = "dry-run",
     .type = KN_OPT_FLAG,
     .offset = offsetof(OrphanOptions, dry_run),
     .doc = "Remove nothing: list what would go"},
    {.name = "force",
     .type = KN_OPT_FLAG,
     .offset = offsetof(OrphanOptions, force),
     .doc = "Take an --older-than of less than 24 hours: no write may be under way"},
    {.name = "prefix-mismatch-mode",
     .type = KN_OPT_CHOICE,
     .offset = offsetof(OrphanOptions, mismatch),
     .value = "error|ignore|delete",
     .dflt = "error",
     .doc =
         "A file that metadata names with another scheme or authority: refuse, leave it, or take "
         "it for another file"},
};

static KnCode list_file(void *arg, const KnFileName *name, KnErr *err)
{
    KnOut *out = arg;
    kn_out_str(out, name->location);
    kn_out_bytes(out, name->bytes);
    return kn_out_check(out, err);
}

/* A write's files have no metadata until it commits: with a young age they would be taken for
 * orphans. Java's procedure refuses alike. */
static KnCode check_age(const OrphanOptions *opts, int64_t older_than_ms, KnErr *err)
{
    if (opts->force || opts->dry_run || kn_clock_wall_ms() - older_than_ms >= DAY_MS)
        return KN_OK;
    return kn_err_set(
        err, KN_E_REFUSED,
        "--older-than %s is less than 24 hours ago: files of writes that are under way "
        "would go and damage the table; give --force when there are none",
        opts->older_than);
}

static KnCode remove_orphans(const KnCall *call, KnTable *tbl, KnOrphanOptions *orphans, KnErr *err)
{
    static const KnOutColumn columns[] = {{"file", false}, {"bytes", true}};
    KN_CALL_ENGINE_AUTO ce = {0};
    KN_TRY(kn_call_engine_open(call, &ce, err));
    KnOut *out = kn_out_open((KnOutputFormat)call->common->output, columns, 2);
    orphans->sweep.fn = list_file;
    orphans->sweep.arg = out;
    KnSweepResult result = {0};
    KnCode rc = kn_table_remove_orphans(tbl, ce.session, orphans, &result, err);
    KnCode closed = kn_out_close(out, rc == KN_OK ? err : NULL);
    KN_TRY(rc);
    KN_TRY(closed);
    return kn_args_report_left(&result, err);
}

static KnCode run(KnCall *call, KnErr *err)
{
    const OrphanOptions *opts = call->options;
    KnOrphanOptions orphans = {
        .location = opts->location,
        .mismatch = (KnPrefixMismatch)opts->mismatch,
        .sweep = {.dry_run = opts->dry_run, .cancelled = kn_stop_requested},
    };
    KN_TRY(kn_args_moment_ms(call, "--older-than", opts->older_than, &orphans.older_than_ms, err));
    KN_TRY(check_age(opts, orphans.older_than_ms, err));
    KN_CALL_TABLE_AUTO ct = {0};
    /* A bare table's document need not be the newest: its files may be live for others. */
    KN_TRY(opts->dry_run ? kn_call_table_open(call, &ct, err)
                         : kn_args_open_writable(call, &ct, err));
    return remove_orphans(call, ct.table, &orphans, err);
}

const KnCommand kn_cmd_table_orphans = {
    .group = "table",
    .name = "orphans",
    .summary = "Remove files that nothing in the table's metadata reaches",
    .about =
        "  knut table orphans --warehouse /data/wh --table shop.orders --dry-run\n"
        "\n"
        "Such files are left by writers that were killed. Names that begin with '_' or '.' are "
        "left alone.",
    .options_size = sizeof(OrphanOptions),
    .locator = offsetof(OrphanOptions, loc),
    .rows = rows,
    .n_rows = sizeof(rows) / sizeof(rows[0]),
    .run = run,
};

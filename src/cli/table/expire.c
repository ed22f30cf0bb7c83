/* SPDX-License-Identifier: Apache-2.0 */
/* expire.c - `knut table expire`: old snapshots and refs go, and the files that only they had. */
#include "iceberg/maintain/expire.h"

#include "base/stop.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/table/manage_args.h"

typedef struct ExpireOptions {
    KnCommonOptions common;
    KnLocator loc;
    const char *older_than;
    int64_t retain_last;
    KnOptList snapshots;
    bool clean_metadata, dry_run;
} ExpireOptions;

static const KnOption rows[] = {
    {.name = "older-than",
     .type = KN_OPT_TEXT,
     .offset = offsetof(ExpireOptions, older_than),
     .value = "TIME|DURATION",
     .doc = "Snapshots from before go: a time, or an age such as 7d (default: the table's "
            "history.expire.max-snapshot-age-ms, 5 days)"},
    {.name = "retain-last",
     .type = KN_OPT_INT,
     .offset = offsetof(ExpireOptions, retain_last),
     .value = "N",
     .min = 1,
     .max = INT32_MAX,
     .doc = "So many of each branch stay whatever their age (default: the table's "
            "history.expire.min-snapshots-to-keep, 1)"},
    {.name = "snapshot",
     .type = KN_OPT_REPEAT,
     .offset = offsetof(ExpireOptions, snapshots),
     .value = "ID",
     .doc = "This one goes whatever its age (may be repeated)"},
    {.name = "clean-expired-metadata",
     .type = KN_OPT_FLAG,
     .offset = offsetof(ExpireOptions, clean_metadata),
     .doc = "Partition specs and schemas that nothing left uses go too"},
    {.name = "dry-run",
     .type = KN_OPT_FLAG,
     .offset = offsetof(ExpireOptions, dry_run),
     .doc = "Change nothing: list what would go"},
};

static KnCode told(void *arg, const char *kind, const char *name, KnErr *err)
{
    KnOut *out = arg;
    kn_out_text(out, kind);
    kn_out_text(out, name);
    kn_out_null(out);
    return kn_out_check(out, err);
}

static KnCode list_file(void *arg, const KnFileName *name, KnErr *err)
{
    KnOut *out = arg;
    kn_out_text(out, kn_file_kind_name(name->kind));
    kn_out_str(out, name->location);
    kn_out_bytes(out, name->bytes);
    return kn_out_check(out, err);
}

static KnCode read_options(const KnCall *call, KnExpireOptions *ret, KnErr *err)
{
    const ExpireOptions *opts = call->options;
    ret->older_than_ms = -1;
    KN_TRY(kn_args_moment_ms(call, "--older-than", opts->older_than, &ret->older_than_ms, err));
    ret->retain_last = opts->retain_last;
    ret->clean_metadata = opts->clean_metadata;
    ret->sweep.dry_run = opts->dry_run;
    ret->sweep.cancelled = kn_stop_requested;
    int64_t *ids = kn_arena_alloc(call->arena, (opts->snapshots.len + 1) * sizeof(*ids));
    for (size_t i = 0; i < opts->snapshots.len; i++)
        if (!kn_str_to_i64(kn_str(opts->snapshots.items[i]), &ids[i]))
            return kn_err_set(err, KN_E_INVAL, "--snapshot '%.100s': expected a snapshot id",
                              opts->snapshots.items[i]);
    ret->ids = ids;
    ret->n_ids = opts->snapshots.len;
    return KN_OK;
}

static KnCode print_result(const KnCall *call, const KnTable *tbl, const KnExpireResult *result,
                           KnErr *err)
{
    static const KnOutColumn columns[] = {
        {"table", false},
        {"snapshots", true},
        {"refs", true},
        {"partition_specs", true},
        {"schemas", true},
        {"data_files", true},
        {"position_deletes", true},
        {"equality_deletes", true},
        {"deletion_vectors", true},
        {"manifests", true},
        {"manifest_lists", true},
        {"statistics", true},
        {"bytes", true},
        {"unreadable", true},
        {"left", true},
    };
    KnOut *out = kn_out_open((KnOutputFormat)call->common->output, columns, 15);
    kn_out_text(out, tbl->name);
    kn_out_int(out, result->snapshots);
    kn_out_int(out, result->refs);
    kn_out_int(out, result->specs);
    kn_out_int(out, result->schemas);
    for (int kind = KN_FILE_DATA; kind <= KN_FILE_STATISTICS; kind++)
        kn_out_int(out, result->files.files[kind]);
    kn_out_bytes(out, result->files.bytes);
    kn_out_int(out, result->unreadable);
    kn_out_int(out, result->files.foreign + result->files.failed);
    KN_TRY(kn_out_close(out, err));
    return kn_args_report_left(&result->files, err);
}

static KnCode dry_run(const KnCall *call, KnTable *tbl, KnSession *ses, KnExpireOptions *expire,
                      KnErr *err)
{
    static const KnOutColumn columns[] = {{"kind", false}, {"name", false}, {"bytes", true}};
    KnOut *out = kn_out_open((KnOutputFormat)call->common->output, columns, 3);
    KnExpireResult result = {0};
    expire->told = told;
    expire->sweep.fn = list_file;
    expire->sweep.arg = out;
    KnCode rc = kn_table_expire(tbl, ses, expire, &result, err);
    KnCode closed = kn_out_close(out, rc == KN_OK ? err : NULL);
    return rc == KN_OK ? closed : rc;
}

static KnCode run(KnCall *call, KnErr *err)
{
    KN_CALL_TABLE_AUTO ct = {0};
    KN_TRY(kn_args_open_writable(call, &ct, err));
    KnExpireOptions expire = {0};
    KN_TRY(read_options(call, &expire, err));
    KN_CALL_ENGINE_AUTO ce = {0};
    KN_TRY(kn_call_engine_open(call, &ce, err));
    if (expire.sweep.dry_run)
        return dry_run(call, ct.table, ce.session, &expire, err);
    KnExpireResult result = {0};
    KN_TRY(kn_table_expire(ct.table, ce.session, &expire, &result, err));
    return print_result(call, ct.table, &result, err);
}

const KnCommand kn_cmd_table_expire = {
    .group = "table",
    .name = "expire",
    .summary = "Remove old snapshots, and the files that only they had",
    .about = "  knut table expire --warehouse /data/wh --table shop.orders --older-than 7d "
             "--retain-last 10 --dry-run\n"
             "\n"
             "A delivery whose cursor stands on a snapshot that goes is refused at its next run: "
             "look at 'knut cdc status' first.",
    .options_size = sizeof(ExpireOptions),
    .locator = offsetof(ExpireOptions, loc),
    .rows = rows,
    .n_rows = sizeof(rows) / sizeof(rows[0]),
    .run = run,
};

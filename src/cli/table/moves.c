/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moves.c - which snapshot is current: `knut table rollback`, `set-current`, `fast-forward`,
 * `cherry-pick`, `publish`; and `ancestors`, which lists where one came from.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/table/manage_args.h"
#include "iceberg/maintain/refs.h"

typedef struct MoveOptions {
    KnCommonOptions common;
    KnLocator loc;
    KnSnapshotChoice to;
    const char *wap_id;
} MoveOptions;

#define ROW(n, f, v, d)                                                                            \
    {                                                                                              \
        .name = (n), .type = KN_OPT_TEXT, .offset = offsetof(MoveOptions, f), .value = (v),        \
        .doc = (d)                                                                                 \
    }
static const KnOption rollback_rows[] = {
    ROW("snapshot", to.snapshot, "ID", "Ancestor of the current snapshot"),
    ROW("as-of", to.as_of, "TIME", "The newest ancestor that is older than a time"),
    ROW("ref", to.ref, "NAME", "The snapshot of a branch or tag, when it is an ancestor"),
};
static const KnOption choice_rows[] = {
    ROW("snapshot", to.snapshot, "ID", "Snapshot"),
    ROW("as-of", to.as_of, "TIME", "The snapshot that was current at a time"),
    ROW("ref", to.ref, "NAME", "The snapshot of a branch or tag"),
};
static const KnOption pick_rows[] = {
    ROW("snapshot", to.snapshot, "ID", "Snapshot whose changes are applied to main"),
};
static const KnOption publish_rows[] = {
    ROW("wap-id", wap_id, "ID", "Id under which the snapshot was staged"),
};

static KnCode cherry_pick(KnTable *tbl, const MoveOptions *opts, KnRefMove *ret, KnErr *err)
{
    int64_t id = 0;
    if (!opts->to.snapshot)
        return kn_err_set(err, KN_E_INVAL, "which snapshot? give --snapshot ID");
    if (!kn_str_to_i64(kn_str(opts->to.snapshot), &id))
        return kn_err_set(err, KN_E_INVAL, "--snapshot '%.100s': expected a snapshot id",
                          opts->to.snapshot);
    return kn_table_cherry_pick(tbl, id, ret, err);
}

static KnCode rollback(KnTable *tbl, const MoveOptions *opts, KnRefMove *ret, KnErr *err)
{
    return kn_table_rollback(tbl, &opts->to, ret, err);
}

static KnCode set_current(KnTable *tbl, const MoveOptions *opts, KnRefMove *ret, KnErr *err)
{
    return kn_table_set_current(tbl, &opts->to, ret, err);
}

static KnCode publish(KnTable *tbl, const MoveOptions *opts, KnRefMove *ret, KnErr *err)
{
    return kn_table_publish(tbl, opts->wap_id, ret, err);
}

typedef KnCode (*MoveFn)(KnTable *tbl, const MoveOptions *opts, KnRefMove *ret, KnErr *err);

static KnCode move_main(KnCall *call, MoveFn fn, KnErr *err)
{
    KN_CALL_TABLE_AUTO ct = {0};
    KN_TRY(kn_args_open_writable(call, &ct, err));
    KnRefMove move = {0};
    KN_TRY(fn(ct.table, call->options, &move, err));
    return kn_args_print_move(call, ct.table, &(KnMoveLine){call->command->name, "main", &move},
                              err);
}

static KnCode run_rollback(KnCall *call, KnErr *err)
{
    return move_main(call, rollback, err);
}

static KnCode run_set_current(KnCall *call, KnErr *err)
{
    return move_main(call, set_current, err);
}

static KnCode run_cherry_pick(KnCall *call, KnErr *err)
{
    return move_main(call, cherry_pick, err);
}

static KnCode run_publish(KnCall *call, KnErr *err)
{
    return move_main(call, publish, err);
}

static KnCode run_fast_forward(KnCall *call, KnErr *err)
{
    if (call->args.len != 2)
        return kn_err_set(err, KN_E_INVAL, "give the branch, and the ref to which it goes forward");
    KN_CALL_TABLE_AUTO ct = {0};
    KN_TRY(kn_args_open_writable(call, &ct, err));
    KnFastForward ff = {.branch = call->args.items[0], .to = call->args.items[1]};
    KnRefMove move = {0};
    KN_TRY(kn_table_fast_forward(ct.table, &ff, &move, err));
    return kn_args_print_move(call, ct.table, &(KnMoveLine){"fast-forward", ff.branch, &move}, err);
}

static KnCode run_ancestors(KnCall *call, KnErr *err)
{
    static const KnOutColumn columns[] = {
        {"snapshot", true}, {"committed_at", false}, {"operation", false}};
    const MoveOptions *opts = call->options;
    KN_CALL_TABLE_AUTO ct = {0};
    KN_TRY(kn_call_table_open(call, &ct, err));
    const KnMetadata *md = ct.table->md;
    const KnSnapshot *snap = NULL;
    KN_TRY(kn_table_choose_snapshot(ct.table, &opts->to, &snap, err));
    KnOut *out = kn_out_open((KnOutputFormat)call->common->output, columns, 3);
    for (size_t steps = 0; snap && steps < md->n_snapshots; steps++) {
        char when[32];
        kn_out_int(out, snap->snapshot_id);
        kn_out_text(out, kn_clock_format_ms(snap->timestamp_ms, when));
        kn_out_text(out, snap->operation);
        snap = snap->parent_id < 0 ? NULL : kn_metadata_find_snapshot(md, snap->parent_id);
    }
    return kn_out_close(out, err);
}

#define COMMAND(ident, title, option_rows, fn, line, example)                                      \
    const KnCommand ident = {                                                                      \
        .group = "table",                                                                          \
        .name = (title),                                                                           \
        .summary = (line),                                                                         \
        .about = (example),                                                                        \
        .options_size = sizeof(MoveOptions),                                                       \
        .locator = offsetof(MoveOptions, loc),                                                     \
        .rows = (option_rows),                                                                     \
        .n_rows = sizeof(option_rows) / sizeof((option_rows)[0]),                                  \
        .run = (fn),                                                                               \
    }

COMMAND(kn_cmd_table_rollback, "rollback", rollback_rows, run_rollback,
        "Make an ancestor of the current snapshot current again",
        "  knut table rollback --warehouse /data/wh --table shop.orders --as-of 2026-01-31T12:00Z");
COMMAND(kn_cmd_table_set_current, "set-current", choice_rows, run_set_current,
        "Make any snapshot current, an ancestor or not",
        "  knut table set-current --warehouse /data/wh --table shop.orders --ref audit");
COMMAND(kn_cmd_table_cherry_pick, "cherry-pick", pick_rows, run_cherry_pick,
        "Apply the changes of a snapshot to main, as a new snapshot",
        "  knut table cherry-pick --warehouse /data/wh --table shop.orders --snapshot 1041");
COMMAND(kn_cmd_table_publish, "publish", publish_rows, run_publish,
        "Publish the snapshot that was staged under an id (write, audit, publish)",
        "  knut table append --warehouse /data/wh --table shop.orders --wap-id load-7 new.parquet\n"
        "  knut table publish --warehouse /data/wh --table shop.orders --wap-id load-7");
COMMAND(kn_cmd_table_ancestors, "ancestors", choice_rows, run_ancestors,
        "List a snapshot and its ancestors, newest first (default: of the current one)",
        "  knut table ancestors --warehouse /data/wh --table shop.orders --ref audit");

const KnCommand kn_cmd_table_fast_forward = {
    .group = "table",
    .name = "fast-forward",
    .summary = "Move a branch forward to a branch or tag that has it as an ancestor",
    .about = "  knut table fast-forward --warehouse /data/wh --table shop.orders main audit",
    .options_size = sizeof(MoveOptions),
    .locator = offsetof(MoveOptions, loc),
    .positional = "BRANCH TO",
    .run = run_fast_forward,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* refs.c - `knut table branch` and `knut table tag`: list, make, move and drop refs. */
#include "iceberg/maintain/refs.h"

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/table/manage_args.h"

typedef struct RefOptions {
    KnCommonOptions common;
    KnLocator loc;
    KnSnapshotChoice at;
    int64_t min_snapshots; /* 0 = not given */
    const char *max_snapshot_age, *max_ref_age;
    bool replace, if_not_exists, drop, if_exists;
} RefOptions;

#define ROW(n, t, f, v, d)                                                                         \
    {                                                                                              \
        .name = (n), .type = (t), .offset = offsetof(RefOptions, f), .value = (v), .doc = (d)      \
    }
#define AT_ROWS                                                                                    \
    ROW("snapshot", KN_OPT_TEXT, at.snapshot, "ID",                                                \
        "Snapshot that it shall name (default: the current one)"),                                 \
        ROW("as-of", KN_OPT_TEXT, at.as_of, "TIME", "The snapshot that was current at a time"),    \
        ROW("ref", KN_OPT_TEXT, at.ref, "NAME", "The snapshot of a branch or tag")
#define CHANGE_ROWS                                                                                \
    ROW("replace", KN_OPT_FLAG, replace, NULL,                                                     \
        "Move it when it exists; settings that are not given stay"),                               \
        ROW("if-not-exists", KN_OPT_FLAG, if_not_exists, NULL, "Leave it alone when it exists"),   \
        ROW("drop", KN_OPT_FLAG, drop, NULL, "Drop it; snapshots go when they expire"),            \
        ROW("if-exists", KN_OPT_FLAG, if_exists, NULL, "With --drop: none to drop is no error"),   \
        ROW("max-ref-age", KN_OPT_TEXT, max_ref_age, "DURATION",                                   \
            "It is dropped by 'expire' when its snapshot is older: 30d, 12h")

static const KnOption branch_rows[] = {
    AT_ROWS,
    CHANGE_ROWS,
    {.name = "min-snapshots-to-keep",
     .type = KN_OPT_INT,
     .offset = offsetof(RefOptions, min_snapshots),
     .value = "N",
     .min = 1,
     .max = INT32_MAX,
     .doc = "Snapshots of the branch that 'expire' keeps whatever their age"},
    ROW("max-snapshot-age", KN_OPT_TEXT, max_snapshot_age, "DURATION",
        "Age up to which 'expire' keeps the branch's snapshots: 7d, 12h"),
};
static const KnOption tag_rows[] = {AT_ROWS, CHANGE_ROWS};

static KnCode list_refs(const KnCall *call, bool branches, KnErr *err)
{
    static const KnOutColumn columns[] = {
        {"name", false},
        {"type", false},
        {"snapshot", true},
        {"min_snapshots_to_keep", true},
        {"max_snapshot_age_ms", true},
        {"max_ref_age_ms", true},
    };
    KN_CALL_TABLE_AUTO ct = {0};
    KN_TRY(kn_call_table_open(call, &ct, err));
    const KnMetadata *md = ct.table->md;
    KnOut *out = kn_out_open((KnOutputFormat)call->common->output, columns, 6);
    for (size_t i = 0; i < md->n_refs; i++) {
        const KnRef *ref = &md->refs[i];
        if (ref->is_branch != branches)
            continue;
        kn_out_text(out, ref->name);
        kn_out_text(out, ref->is_branch ? "branch" : "tag");
        kn_out_int(out, ref->snapshot_id);
        kn_out_opt_int(out, ref->min_snapshots_to_keep);
        kn_out_opt_int(out, ref->max_snapshot_age_ms);
        kn_out_opt_int(out, ref->max_ref_age_ms);
    }
    return kn_out_close(out, err);
}

static KnCode check_words(const RefOptions *opts, KnErr *err)
{
    bool sets = opts->at.snapshot || opts->at.as_of || opts->at.ref || opts->replace ||
                opts->if_not_exists || opts->min_snapshots || opts->max_snapshot_age ||
                opts->max_ref_age;
    if (opts->drop && sets)
        return kn_err_set(err, KN_E_INVAL, "--drop goes with --if-exists alone");
    if (opts->if_exists && !opts->drop)
        return kn_err_set(err, KN_E_INVAL, "--if-exists goes with --drop");
    if (opts->replace && opts->if_not_exists)
        return kn_err_set(err, KN_E_INVAL, "give --replace or --if-not-exists, not both");
    return KN_OK;
}

static KnCode set_ref(const KnCall *call, KnTable *tbl, KnRefSet *set, KnErr *err)
{
    const RefOptions *opts = call->options;
    set->at = opts->at;
    set->replace = opts->replace;
    set->if_not_exists = opts->if_not_exists;
    set->min_snapshots_to_keep = opts->min_snapshots ? opts->min_snapshots : -1;
    set->max_snapshot_age_ms = set->max_ref_age_ms = -1;
    KN_TRY(kn_args_duration_ms(call, "--max-snapshot-age", opts->max_snapshot_age,
                               &set->max_snapshot_age_ms, err));
    KN_TRY(
        kn_args_duration_ms(call, "--max-ref-age", opts->max_ref_age, &set->max_ref_age_ms, err));
    KnRefMove move = {0};
    KN_TRY(kn_ref_set(tbl, set, &move, err));
    const char *operation = set->is_branch ? "branch" : "tag";
    return kn_args_print_move(call, tbl, &(KnMoveLine){operation, set->name, &move}, err);
}

static KnCode run_ref(KnCall *call, bool is_branch, KnErr *err)
{
    const RefOptions *opts = call->options;
    const char *name = NULL;
    KN_TRY(check_words(opts, err));
    if (!call->args.len && !opts->drop && !opts->replace && !opts->if_not_exists)
        return list_refs(call, is_branch, err);
    KN_TRY(kn_args_one_word(call, is_branch ? "the branch's name" : "the tag's name", &name, err));
    KN_CALL_TABLE_AUTO ct = {0};
    KN_TRY(kn_args_open_writable(call, &ct, err));
    if (!opts->drop) {
        KnRefSet set = {.name = name, .is_branch = is_branch};
        return set_ref(call, ct.table, &set, err);
    }
    KnRefDrop drop = {.name = name, .is_branch = is_branch, .if_exists = opts->if_exists};
    KnRefMove move = {0};
    KN_TRY(kn_ref_drop(ct.table, &drop, &move, err));
    const char *operation = is_branch ? "drop-branch" : "drop-tag";
    return kn_args_print_move(call, ct.table, &(KnMoveLine){operation, name, &move}, err);
}

static KnCode run_branch(KnCall *call, KnErr *err)
{
    return run_ref(call, true, err);
}

static KnCode run_tag(KnCall *call, KnErr *err)
{
    return run_ref(call, false, err);
}

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
const KnCommand kn_cmd_table_branch = {
    .group = "table",
    .name = "branch",
    .summary = "Make, move or drop a branch; without a name: list the branches",
    .about =
        "  knut table branch --warehouse /data/wh --table shop.orders audit --max-ref-age 30d\n"
        "  knut table branch --warehouse /data/wh --table shop.orders audit --replace --ref "
        "audit --min-snapshots-to-keep 5\n"
        "  knut table branch --warehouse /data/wh --table shop.orders audit --drop",
    .options_size = sizeof(RefOptions),
    .locator = offsetof(RefOptions, loc),
    .rows = branch_rows,
    .n_rows = COUNT(branch_rows),
    .positional = "[NAME]",
    .run = run_branch,
};
const KnCommand kn_cmd_table_tag = {
    .group = "table",
    .name = "tag",
    .summary = "Make, move or drop a tag; without a name: list the tags",
    .about = "  knut table tag --warehouse /data/wh --table shop.orders eoy-2026 --as-of "
             "2026-12-31T23:59:59Z",
    .options_size = sizeof(RefOptions),
    .locator = offsetof(RefOptions, loc),
    .rows = tag_rows,
    .n_rows = COUNT(tag_rows),
    .positional = "[NAME]",
    .run = run_tag,
};

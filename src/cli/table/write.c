/* SPDX-License-Identifier: Apache-2.0 */
/* write.c - `knut table append`, `delete`, `overwrite`, `upsert`: one new snapshot each. */
#include "iceberg/write/write.h"

#include "base/stop.h"
#include "cli/commands.h"
#include "cli/table/table_args.h"

typedef struct WriteCommandOptions {
    KnCommonOptions common;
    KnLocator loc;
    KnRowsFrom rows;
    const char *where;
    const char *branch;
    const char *wap_id;
    KnOptList summary; /* KEY=VALUE */
    int mode;          /* KnRowMode */
    KnOptList keys;
    bool no_update, no_insert;
} WriteCommandOptions;

#define BRANCH_ROW                                                                                 \
    {                                                                                              \
        .name = "branch", .type = KN_OPT_TEXT, .offset = offsetof(WriteCommandOptions, branch),    \
        .value = "NAME", .dflt = "main", .doc = "Branch that gets the snapshot"                    \
    }
#define WHERE_ROW                                                                                  \
    {                                                                                              \
        .name = "where", .type = KN_OPT_TEXT, .offset = offsetof(WriteCommandOptions, where),      \
        .value = "FILTER", .doc = "Rows that go: \"id = 7 AND at < '2026-01-01'\"; TRUE for all"   \
    }

#define SNAPSHOT_ROWS                                                                              \
    {.name = "wap-id",                                                                             \
     .type = KN_OPT_TEXT,                                                                          \
     .offset = offsetof(WriteCommandOptions, wap_id),                                              \
     .value = "ID",                                                                                \
     .doc = "Stage the snapshot under this id: 'publish' makes it current (needs the table "       \
            "property write.wap.enabled=true)"},                                                   \
    {                                                                                              \
        .name = "summary", .type = KN_OPT_REPEAT,                                                  \
        .offset = offsetof(WriteCommandOptions, summary), .value = "KEY=VALUE",                    \
        .doc = "Put this into the snapshot's summary"                                              \
    }

/* In the order of KnRowMode. */
#define MODE_ROW(property)                                                                         \
    {                                                                                              \
        .name = "mode", .type = KN_OPT_CHOICE, .offset = offsetof(WriteCommandOptions, mode),      \
        .value = "table|copy-on-write|merge-on-read", .dflt = "table",                             \
        .doc = "How rows go: files are written anew without them, or deletes are written (v2: "    \
               "position delete files, v3: deletion vectors); table: as its property " property    \
               " says, else copy-on-write"                                                         \
    }

static const KnOption append_rows[] = {BRANCH_ROW, SNAPSHOT_ROWS};
static const KnOption delete_rows[] = {WHERE_ROW, MODE_ROW("write.delete.mode"), BRANCH_ROW,
                                       SNAPSHOT_ROWS};
static const KnOption overwrite_rows[] = {WHERE_ROW, MODE_ROW("write.update.mode"), BRANCH_ROW,
                                          SNAPSHOT_ROWS};
static const KnOption upsert_rows[] = {
    {.name = "key",
     .type = KN_OPT_LIST,
     .offset = offsetof(WriteCommandOptions, keys),
     .value = "COL,...",
     .doc = "Columns by which rows are the same; default: the table's identifier fields"},
    {.name = "no-update",
     .type = KN_OPT_FLAG,
     .offset = offsetof(WriteCommandOptions, no_update),
     .doc = "Leave rows of the table as they are; only insert rows with new keys"},
    {.name = "no-insert",
     .type = KN_OPT_FLAG,
     .offset = offsetof(WriteCommandOptions, no_insert),
     .doc = "Only update rows of the table; leave rows with new keys out"},
    MODE_ROW("write.merge.mode"),
    BRANCH_ROW,
    SNAPSHOT_ROWS,
};

typedef enum Verb { VERB_APPEND, VERB_DELETE, VERB_OVERWRITE, VERB_UPSERT } Verb;

static KnCode parse_where(const KnCall *call, const KnTable *tbl, const KnExpr **ret, KnErr *err)
{
    const WriteCommandOptions *opts = call->options;
    if (!opts->where)
        return kn_err_set(err, KN_E_INVAL, "which rows go? give --where FILTER (TRUE means all)");
    KnCode rc =
        kn_expr_parse(call->arena, kn_str(opts->where), kn_metadata_schema(tbl->md), ret, err);
    return kn_err_wrap(err, rc, "--where");
}

static KnCode write_snapshot(KnCall *call, Verb verb, KnTable *tbl, KnSession *ses, KnErr *err)
{
    static const char *const names[] = {"append", "delete", "overwrite", "upsert"};
    const WriteCommandOptions *opts = call->options;
    KnWriteOptions write = {.branch = opts->branch,
                            .wap_id = opts->wap_id,
                            .cancelled = kn_stop_requested,
                            .mode = (KnRowMode)opts->mode};
    KN_TRY(kn_args_summary(call, &opts->summary, &write, err));
    KnWriteResult result = {.snapshot_id = -1};
    const KnExpr *filter = NULL;
    const char *sql = NULL;
    if (verb == VERB_DELETE || verb == VERB_OVERWRITE)
        KN_TRY(parse_where(call, tbl, &filter, err));
    if (verb != VERB_DELETE)
        KN_TRY(kn_args_rows(call, ses, kn_metadata_schema(tbl->md), &opts->rows, &sql, err));
    if (verb == VERB_APPEND)
        KN_TRY(kn_write_append(tbl, ses, sql, &write, &result, err));
    else if (verb == VERB_DELETE)
        KN_TRY(kn_write_delete(tbl, ses, filter, &write, &result, err));
    else if (verb == VERB_OVERWRITE)
        KN_TRY(kn_write_overwrite(tbl, ses, &(KnOverwrite){filter, sql}, &write, &result, err));
    else
        KN_TRY(kn_write_upsert(
            tbl, ses,
            &(KnUpsert){sql, opts->keys.len, opts->keys.items, opts->no_update, opts->no_insert},
            &write, &result, err));
    if (verb == VERB_UPSERT)
        return kn_args_print_upsert(call, tbl, &result, err);
    return kn_args_print_result(call, tbl, names[verb], &result, err);
}

static KnCode run_write(KnCall *call, Verb verb, KnErr *err)
{
    KN_CALL_TABLE_AUTO ct = {0};
    KN_TRY(kn_call_table_open(call, &ct, err));
    if (ct.catalog->ops->read_only)
        return kn_err_set(
            err, KN_E_INVAL,
            "a bare table is read-only; writing needs --warehouse DIR --table NS.NAME");
    KN_CALL_ENGINE_AUTO ce = {0};
    KN_TRY(kn_call_engine_open(call, &ce, err));
    KN_TRY(kn_transform_register(ce.engine, err));
    return write_snapshot(call, verb, ct.table, ce.session, err);
}

static KnCode run_append(KnCall *call, KnErr *err)
{
    return run_write(call, VERB_APPEND, err);
}

static KnCode run_delete(KnCall *call, KnErr *err)
{
    return run_write(call, VERB_DELETE, err);
}

static KnCode run_overwrite(KnCall *call, KnErr *err)
{
    return run_write(call, VERB_OVERWRITE, err);
}

static KnCode run_upsert(KnCall *call, KnErr *err)
{
    return run_write(call, VERB_UPSERT, err);
}

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
const KnCommand kn_cmd_table_append = {
    .group = "table",
    .name = "append",
    .summary = "Append the rows of files or of a query, as one snapshot",
    .about = "  knut table append --warehouse /data/wh --table shop.orders new-orders.parquet",
    .options_size = sizeof(WriteCommandOptions),
    .locator = offsetof(WriteCommandOptions, loc),
    .rows = append_rows,
    .n_rows = COUNT(append_rows),
    .extra = &kn_rows_from_options,
    .extra_base = offsetof(WriteCommandOptions, rows),
    .positional = "FILE...",
    .run = run_append,
};
const KnCommand kn_cmd_table_delete = {
    .group = "table",
    .name = "delete",
    .summary = "Delete the rows for which a filter is true, as one snapshot",
    .about =
        "  knut table delete --warehouse /data/wh --table shop.orders --where \"id IN (7, 9)\"",
    .options_size = sizeof(WriteCommandOptions),
    .locator = offsetof(WriteCommandOptions, loc),
    .rows = delete_rows,
    .n_rows = COUNT(delete_rows),
    .run = run_delete,
};
const KnCommand kn_cmd_table_overwrite = {
    .group = "table",
    .name = "overwrite",
    .summary = "Replace the rows for which a filter is true by other rows, as one snapshot",
    .about = "  knut table overwrite --warehouse /data/wh --table shop.orders --where \"id = 7\" "
             "corrected.csv",
    .options_size = sizeof(WriteCommandOptions),
    .locator = offsetof(WriteCommandOptions, loc),
    .rows = overwrite_rows,
    .n_rows = COUNT(overwrite_rows),
    .extra = &kn_rows_from_options,
    .extra_base = offsetof(WriteCommandOptions, rows),
    .positional = "FILE...",
    .run = run_overwrite,
};
const KnCommand kn_cmd_table_upsert = {
    .group = "table",
    .name = "upsert",
    .summary = "Update the rows whose key is in the table and insert the others, as one snapshot",
    .about = "  knut table upsert --warehouse /data/wh --table shop.orders --key id today.csv\n"
             "Rows that are equal to the table's are left alone. Columns that the rows do not have "
             "keep their\nvalues in rows that are updated. A key that is NULL, or that two rows "
             "have, is refused.",
    .options_size = sizeof(WriteCommandOptions),
    .locator = offsetof(WriteCommandOptions, loc),
    .rows = upsert_rows,
    .n_rows = COUNT(upsert_rows),
    .extra = &kn_rows_from_options,
    .extra_base = offsetof(WriteCommandOptions, rows),
    .positional = "FILE...",
    .run = run_upsert,
};

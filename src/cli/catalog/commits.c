/* SPDX-License-Identifier: Apache-2.0 */
/* commits.c - `knut catalog commits`: the log of what was changed in a catalog. */
#include "base/clock.h"
#include "cli/catalog/catalog_args.h"
#include "cli/commands.h"
#include "cli/output.h"

typedef struct CommitsOptions {
    KnCommonOptions common;
    KnLocator loc;
    int64_t since, limit;
} CommitsOptions;

static const KnOption commits_rows[] = {
    {.name = "since",
     .type = KN_OPT_INT,
     .offset = offsetof(CommitsOptions, since),
     .value = "N",
     .min = 0,
     .max = INT64_MAX,
     .doc = "Only commits after this one (default: from the first)"},
    {.name = "limit",
     .type = KN_OPT_INT,
     .offset = offsetof(CommitsOptions, limit),
     .value = "N",
     .min = 0,
     .max = INT32_MAX,
     .doc = "At most so many, the oldest first (default: all)"},
};

static KnCode print_event(void *arg, const KnCommitEvent *event, KnErr *err)
{
    KnOut *out = arg;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    char when[32];
    bool renamed = event->kind == KN_EVENT_RENAME;
    kn_out_int(out, event->seq);
    kn_out_text(out, kn_clock_format_ms(event->timestamp_ms, when));
    kn_out_text(out, kn_event_kind_name(event->kind));
    kn_out_text(out, event->is_view ? "view" : "table");
    kn_out_text(out, kn_table_ident_format(arena, &event->ident));
    kn_out_text(out, renamed ? kn_table_ident_format(arena, &event->from) : NULL);
    kn_out_opt_int(out, event->snapshot_id);
    kn_out_text(out, *event->metadata_location ? event->metadata_location : NULL);
    return kn_out_check(out, err);
}

static KnCode run_commits(KnCall *call, KnErr *err)
{
    static const KnOutColumn columns[] = {{"seq", true},      {"at", false},      {"change", false},
                                          {"type", false},    {"name", false},    {"from", false},
                                          {"snapshot", true}, {"metadata", false}};
    const CommitsOptions *opts = call->options;
    KnCatalogCore *core = NULL;
    KN_TRY(kn_args_core(call, &core, err));
    KnOut *out = kn_out_open((KnOutputFormat)call->common->output, columns, 8);
    KnCode rc =
        kn_core_commits_since(core, opts->since, (size_t)opts->limit, print_event, out, err);
    KnCode closed = kn_out_close(out, rc == KN_OK ? err : NULL);
    kn_core_close(core);
    return rc == KN_OK ? closed : rc;
}

const KnCommand kn_cmd_catalog_commits = {
    .group = "catalog",
    .name = "commits",
    .summary = "List what was changed in a catalog, oldest first",
    .about = "  knut catalog commits --warehouse /data/wh --since 120\n"
             "\n"
             "Numbers have no gaps. Changes that other programs made in the database are not in "
             "the log.",
    .options_size = sizeof(CommitsOptions),
    .locator = offsetof(CommitsOptions, loc),
    .rows = commits_rows,
    .n_rows = sizeof(commits_rows) / sizeof(commits_rows[0]),
    .run = run_commits,
};

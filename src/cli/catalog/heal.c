/* SPDX-License-Identifier: Apache-2.0 */
/* heal.c - `knut catalog heal`: damaged tables back to their newest intact metadata. */
#include "catalog/heal.h"

#include "base/stop.h"
#include "cli/catalog/catalog_args.h"
#include "cli/commands.h"
#include "cli/output.h"

typedef struct HealOptions {
    KnCommonOptions common;
    KnLocator loc;
    bool files, dry_run;
} HealOptions;

static const KnOption heal_rows[] = {
    {.name = "files",
     .type = KN_OPT_FLAG,
     .offset = offsetof(HealOptions, files),
     .doc = "Metadata whose data files, delete files or statistics are missing is damaged too"},
    {.name = "dry-run",
     .type = KN_OPT_FLAG,
     .offset = offsetof(HealOptions, dry_run),
     .doc = "Change nothing, tell where each table would go"},
};

typedef struct Healing {
    const KnCall *call;
    KnCatalogCore *core;
    KnOut *out;
    int64_t lost, n;
} Healing;

static void print_table(const Healing *h, const KnTableIdent *ident, const KnHealed *healed,
                        KnProblems *problems)
{
    static const char *const states[] = {"intact", "healed", "lost"};
    const HealOptions *opts = h->call->options;
    bool would = opts->dry_run && healed->state == KN_HEAL_HEALED;
    kn_out_text(h->out, kn_table_ident_format(h->call->arena, ident));
    kn_out_text(h->out, would ? "would heal" : states[healed->state]);
    kn_out_text(h->out, healed->from);
    kn_out_text(h->out, healed->to);
    kn_out_opt_int(h->out, healed->snapshot_id);
    kn_out_json(h->out, kn_problems_end(problems));
}

static KnCode heal_one(Healing *h, const KnTableIdent *ident, KnErr *err)
{
    const HealOptions *opts = h->call->options;
    KnProblems problems;
    KnHealed healed = {0};
    kn_problems_init(&problems);
    KnHealOptions heal = {.files = opts->files,
                          .dry_run = opts->dry_run,
                          .fn = kn_problems_add,
                          .arg = &problems,
                          .cancelled = kn_stop_requested};
    KnCode rc = kn_table_heal(h->core, ident, &heal, h->call->arena, &healed, err);
    h->n++;
    h->lost += rc == KN_OK && healed.state == KN_HEAL_LOST;
    if (rc == KN_OK) {
        print_table(h, ident, &healed, &problems);
        rc = kn_out_check(h->out, err);
    }
    kn_buf_done(&problems.json);
    return kn_err_wrap(err, rc, "table %s", kn_table_ident_format(h->call->arena, ident));
}

static KnCode heal_all(Healing *h, KnErr *err)
{
    KnTableNames names = {0};
    KnCode rc = kn_args_tables(h->call, kn_core_catalog(h->core), &names, err);
    kn_vec_foreach (&names.idents, ident) {
        if (rc == KN_OK)
            rc = heal_one(h, ident, err);
    }
    kn_vec_done(&names.idents);
    return rc;
}

static KnCode run_heal(KnCall *call, KnErr *err)
{
    static const KnOutColumn columns[] = {{"table", false},   {"state", false},
                                          {"from", false},    {"to", false},
                                          {"snapshot", true}, {"problems", false}};
    Healing h = {.call = call};
    KN_TRY(kn_args_core(call, &h.core, err));
    h.out = kn_out_open((KnOutputFormat)call->common->output, columns, 6);
    KnCode rc = heal_all(&h, err);
    KnCode closed = kn_out_close(h.out, rc == KN_OK ? err : NULL);
    kn_core_close(h.core);
    KN_TRY(rc);
    KN_TRY(closed);
    if (h.lost)
        return kn_err_set(
            err, KN_E_CORRUPT,
            "%lld of %lld tables have no intact metadata: restore their files, or drop "
            "them",
            (long long)h.lost, (long long)h.n);
    return KN_OK;
}

const KnCommand kn_cmd_catalog_heal = {
    .group = "catalog",
    .name = "heal",
    .summary = "Take damaged tables back to their newest intact metadata",
    .about = "  knut catalog heal --warehouse /data/wh --dry-run\n"
             "  knut catalog heal --warehouse /data/wh shop.orders\n"
             "\n"
             "Without names all tables are looked at; those that are intact stay as they are. What "
             "later\n"
             "commits of a healed table had done is gone from it, their files stay ('knut table "
             "orphans').\n"
             "Exit status 1 when a table has no intact metadata left.",
    .options_size = sizeof(HealOptions),
    .locator = offsetof(HealOptions, loc),
    .rows = heal_rows,
    .n_rows = sizeof(heal_rows) / sizeof(heal_rows[0]),
    .positional = "[NS.NAME...]",
    .run = run_heal,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* release.c - `knut catalog release`: what was staged in several tables, current in all at once. */
#include "iceberg/maintain/release.h"

#include "base/vec.h"
#include "cli/commands.h"
#include "cli/output.h"

typedef struct ReleaseOptions {
    KnCommonOptions common;
    KnLocator loc;
    KnRelease release;
    bool all;
} ReleaseOptions;

#define FIELD(name) offsetof(ReleaseOptions, name)
static const KnOption release_rows[] = {
    {.name = "wap-id",
     .type = KN_OPT_TEXT,
     .offset = FIELD(release.wap_id),
     .value = "ID",
     .doc = "Publish the snapshots that were staged under this id"},
    {.name = "branch",
     .type = KN_OPT_TEXT,
     .offset = FIELD(release.branch),
     .value = "NAME",
     .doc = "Move main forward to this branch"},
    {.name = "tag",
     .type = KN_OPT_TEXT,
     .offset = FIELD(release.tag),
     .value = "NAME",
     .doc = "Give what is current then this tag, in the same commit"},
    {.name = "all",
     .type = KN_OPT_FLAG,
     .offset = FIELD(all),
     .doc = "All tables of the catalog that have something staged there, instead of names"},
    {.name = "skip-missing",
     .type = KN_OPT_FLAG,
     .offset = FIELD(release.skip_missing),
     .doc = "Leave tables as they are that have nothing staged there; else they are a failure"},
    {.name = "dry-run",
     .type = KN_OPT_FLAG,
     .offset = FIELD(release.dry_run),
     .doc = "Change nothing, tell what would become current"},
};

typedef KN_VEC(KnTableIdent) Idents;

typedef struct Gathering {
    KnArena *arena;
    Idents *idents;
} Gathering;

/* Names of a listing live only during the call. */
static KnCode gather(void *arg, const KnTableIdent *ident, KnErr *err)
{
    const Gathering *to = arg;
    KnTableIdent copy = {0};
    KN_TRY(kn_table_ident_parse(to->arena, kn_str(kn_table_ident_format(to->arena, ident)), &copy,
                                err));
    *kn_vec_push(to->idents) = copy;
    return KN_OK;
}

static KnCode choose_tables(KnCall *call, KnCatalog *cat, Idents *idents, KnErr *err)
{
    const ReleaseOptions *opts = call->options;
    Gathering gathering = {call->arena, idents};
    if (opts->all == (call->args.len > 0))
        return kn_err_set(err, KN_E_INVAL, "give the tables, NS.NAME..., or --all");
    if (opts->all)
        return cat->ops->list(cat, gather, &gathering, err);
    for (size_t i = 0; i < call->args.len; i++) {
        KnTableIdent ident = {0};
        KN_TRY(kn_table_ident_parse(call->arena, kn_str(call->args.items[i]), &ident, err));
        *kn_vec_push(idents) = ident;
    }
    return KN_OK;
}

static KnCode print_moves(const KnCall *call, const KnRelease *release, const KnRefMove *moves,
                          KnErr *err)
{
    static const KnOutColumn columns[] = {
        {"table", false}, {"before", true}, {"after", true}, {"released", false}};
    KnOut *out = kn_out_open((KnOutputFormat)call->common->output, columns, 4);
    for (size_t i = 0; i < release->n_tables; i++) {
        kn_out_text(out, kn_table_ident_format(call->arena, &release->tables[i]));
        kn_out_opt_int(out, moves[i].before);
        kn_out_opt_int(out, moves[i].after);
        kn_out_bool(out, moves[i].changed && !release->dry_run);
    }
    return kn_out_close(out, err);
}

static KnCode release_in(KnCall *call, KnCatalog *cat, KnErr *err)
{
    const ReleaseOptions *opts = call->options;
    Idents idents = {0};
    KnRelease release = opts->release;
    KnCode rc = choose_tables(call, cat, &idents, err);
    release.tables = idents.items;
    release.n_tables = idents.len;
    release.skip_missing |= opts->all;
    KnRefMove *moves = kn_arena_zalloc(call->arena, (idents.len + 1) * sizeof(*moves));
    if (rc == KN_OK)
        rc = kn_release(cat, &release, moves, err);
    if (rc == KN_OK)
        rc = print_moves(call, &release, moves, err);
    kn_vec_done(&idents);
    return rc;
}

static KnCode run_release(KnCall *call, KnErr *err)
{
    const KnLocator *loc = kn_call_locator(call);
    KnCatalog *cat = NULL;
    if (loc->table)
        return kn_err_set(err, KN_E_INVAL, "tables to release are given as words, without --table");
    if (!kn_locator_has_tables(loc))
        return kn_err_set(err, KN_E_INVAL, "give a catalog: --warehouse DIR or --rest-uri URI");
    KN_TRY(kn_catalog_open(loc, false, &cat, err));
    KnCode rc = release_in(call, cat, err);
    kn_catalog_close(cat);
    return rc;
}

const KnCommand kn_cmd_catalog_release = {
    .group = "catalog",
    .name = "release",
    .summary = "Make what was staged in several tables current in all of them at once",
    .about =
        "  knut table append --warehouse /data/wh --table shop.orders --wap-id day-7 o.parquet\n"
        "  knut table append --warehouse /data/wh --table shop.items --wap-id day-7 i.parquet\n"
        "  knut catalog release --warehouse /data/wh --wap-id day-7 shop.orders shop.items\n"
        "\n"
        "One commit over all tables: all pointers move, or none. Whoever reads two of the tables\n"
        "sees both before or both after.",
    .options_size = sizeof(ReleaseOptions),
    .locator = offsetof(ReleaseOptions, loc),
    .rows = release_rows,
    .n_rows = sizeof(release_rows) / sizeof(release_rows[0]),
    .positional = "[NS.NAME...]",
    .run = run_release,
};

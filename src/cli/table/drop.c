/* SPDX-License-Identifier: Apache-2.0 */
/* drop.c - `knut table drop`, `register`, `rename`: a table's entry in its catalog. */
#include "base/path.h"
#include "base/stop.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/table/manage_args.h"
#include "iceberg/maintain/orphans.h"

typedef struct DropOptions {
    KnCommonOptions common;
    KnLocator loc;
    bool purge, dry_run;
} DropOptions;

static const KnOption drop_rows[] = {
    {.name = "purge",
     .type = KN_OPT_FLAG,
     .offset = offsetof(DropOptions, purge),
     .doc = "Remove the files that its metadata reaches too"},
    {.name = "dry-run",
     .type = KN_OPT_FLAG,
     .offset = offsetof(DropOptions, dry_run),
     .doc = "With --purge: change nothing, list what would go"},
};
static KnCode open_catalog(const KnCall *call, KnTableIdent *ret_ident, KnCatalog **ret, KnErr *err)
{
    const KnLocator *loc = kn_call_locator(call);
    if (!kn_locator_has_tables(loc) || !loc->table)
        return kn_err_set(err, KN_E_INVAL,
                          "give --warehouse DIR or --rest-uri URI, and --table NS.NAME");
    KN_TRY(kn_table_ident_parse(call->arena, kn_str(loc->table), ret_ident, err));
    return kn_catalog_open(loc, false, ret, err);
}

/* ---- drop ---- */

static KnCode print_drop(const KnCall *call, const KnSweepResult *result, KnErr *err)
{
    static const KnOutColumn columns[] = {
        {"table", false}, {"files", true}, {"bytes", true}, {"left", true}};
    int64_t n = 0;
    for (int kind = 0; kind < KN_N_FILE_KINDS; kind++)
        n += result->files[kind];
    KnOut *out = kn_out_open((KnOutputFormat)call->common->output, columns, 4);
    kn_out_text(out, kn_call_locator(call)->table);
    kn_out_int(out, n);
    kn_out_bytes(out, result->bytes);
    kn_out_int(out, result->foreign + result->failed);
    KN_TRY(kn_out_close(out, err));
    return kn_args_report_left(result, err);
}

static KnCode list_file(void *arg, const KnFileName *name, KnErr *err)
{
    KnOut *out = arg;
    kn_out_text(out, kn_file_kind_name(name->kind));
    kn_out_str(out, name->location);
    kn_out_bytes(out, name->bytes);
    return kn_out_check(out, err);
}

static KnCode purge(const KnCall *call, bool dry_run, KnErr *err)
{
    static const KnOutColumn columns[] = {{"kind", false}, {"name", false}, {"bytes", true}};
    KN_CALL_TABLE_AUTO ct = {0};
    KN_CALL_ENGINE_AUTO ce = {0};
    KN_TRY(kn_args_open_writable(call, &ct, err));
    KN_TRY(kn_call_engine_open(call, &ce, err));
    KnSweepResult result = {0};
    KnSweepOptions opts = {.dry_run = dry_run, .cancelled = kn_stop_requested};
    if (!dry_run) {
        KN_TRY(kn_table_purge(ct.table, ce.session, &opts, &result, err));
        return print_drop(call, &result, err);
    }
    KnOut *out = kn_out_open((KnOutputFormat)call->common->output, columns, 3);
    opts.fn = list_file;
    opts.arg = out;
    KnCode rc = kn_table_purge(ct.table, ce.session, &opts, &result, err);
    KnCode closed = kn_out_close(out, rc == KN_OK ? err : NULL);
    return rc == KN_OK ? closed : rc;
}

/* A catalog server removes the files itself, when it wants to: how many is not known here. */
static KnCode print_left_to_server(const KnCall *call, KnErr *err)
{
    static const KnOutColumn columns[] = {
        {"table", false}, {"files", true}, {"bytes", true}, {"left", true}};
    KnOut *out = kn_out_open((KnOutputFormat)call->common->output, columns, 4);
    kn_out_text(out, kn_call_locator(call)->table);
    kn_out_null(out);
    kn_out_null(out);
    kn_out_null(out);
    return kn_out_close(out, err);
}

static KnCode run_drop(KnCall *call, KnErr *err)
{
    const DropOptions *opts = call->options;
    if (opts->dry_run && !opts->purge)
        return kn_err_set(err, KN_E_INVAL, "--dry-run goes with --purge");
    KnCatalog *cat = NULL;
    KnTableIdent ident = {0};
    KN_TRY(open_catalog(call, &ident, &cat, err));
    bool by_server = cat->ops->purge && opts->purge && !opts->dry_run;
    KnCode rc = by_server     ? cat->ops->purge(cat, &ident, err)
                : opts->purge ? KN_OK
                              : cat->ops->drop(cat, &ident, err);
    kn_catalog_close(cat);
    KN_TRY(rc);
    if (by_server)
        return print_left_to_server(call, err);
    return opts->purge ? purge(call, opts->dry_run, err)
                       : print_drop(call, &(KnSweepResult){0}, err);
}

/* ---- register, rename ---- */

static KnCode print_table(const KnCall *call, const char *name, const char *location,
                          const char *document, KnErr *err)
{
    static const KnOutColumn columns[] = {
        {"table", false}, {"location", false}, {"metadata", false}};
    KnOut *out = kn_out_open((KnOutputFormat)call->common->output, columns, 3);
    kn_out_text(out, name);
    kn_out_text(out, location);
    kn_out_text(out, document);
    return kn_out_close(out, err);
}

static KnCode run_register(KnCall *call, KnErr *err)
{
    KnLocator loc = *kn_call_locator(call);
    const char *document = NULL;
    KnTableIdent ident = {0};
    KnCatalog *cat = NULL;
    KnTable *tbl = NULL;
    if (!loc.table || !loc.metadata || !*loc.metadata)
        return kn_err_set(err, KN_E_INVAL,
                          "give --warehouse DIR or --rest-uri URI, --table NS.NAME and --metadata "
                          "FILE");
    KN_TRY(kn_locator_absolute(call->arena, loc.metadata, &document, err));
    if (document[0] == '/')
        document = kn_arena_printf(call->arena, "file://%s", document);
    loc.metadata = NULL; /* here it names no place */
    if (!kn_locator_has_tables(&loc))
        return kn_err_set(err, KN_E_INVAL,
                          "a table is registered in a catalog: give --warehouse "
                          "DIR or --rest-uri URI");
    KN_TRY(kn_table_ident_parse(call->arena, kn_str(loc.table), &ident, err));
    KN_TRY(kn_catalog_open(&loc, true, &cat, err));
    KnCode rc = cat->ops->register_table(cat, &ident, document, &tbl, err);
    if (rc == KN_OK)
        rc = print_table(call, tbl->name, tbl->md->location, tbl->metadata_location, err);
    kn_table_free(tbl);
    kn_catalog_close(cat);
    return rc;
}

static KnCode run_rename(KnCall *call, KnErr *err)
{
    const char *word = NULL;
    KnTableIdent from = {0}, to = {0};
    KnCatalog *cat = NULL;
    KN_TRY(kn_args_one_word(call, "the new name, NS.NAME", &word, err));
    KN_TRY(kn_table_ident_parse(call->arena, kn_str(word), &to, err));
    KN_TRY(open_catalog(call, &from, &cat, err));
    KnTable *tbl = NULL;
    KnCode rc = cat->ops->rename(cat, &from, &to, err);
    if (rc == KN_OK)
        rc = kn_table_load(cat, &to, &tbl, err);
    if (rc == KN_OK)
        rc = print_table(call, tbl->name, tbl->md->location, tbl->metadata_location, err);
    kn_table_free(tbl);
    kn_catalog_close(cat);
    return rc;
}

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
const KnCommand kn_cmd_table_drop = {
    .group = "table",
    .name = "drop",
    .summary = "Drop a table from its catalog; its files stay unless they are purged",
    .about = "  knut table drop --warehouse /data/wh --table shop.orders --purge",
    .options_size = sizeof(DropOptions),
    .locator = offsetof(DropOptions, loc),
    .rows = drop_rows,
    .n_rows = COUNT(drop_rows),
    .run = run_drop,
};
const KnCommand kn_cmd_table_register = {
    .group = "table",
    .name = "register",
    .summary = "Put a table into a catalog by its newest metadata document",
    .about = "  knut table register --warehouse /data/wh --table shop.orders \\\n"
             "      --metadata /data/wh/shop/orders/metadata/00012-….metadata.json",
    .options_size = sizeof(DropOptions),
    .locator = offsetof(DropOptions, loc),
    .run = run_register,
};
const KnCommand kn_cmd_table_rename = {
    .group = "table",
    .name = "rename",
    .summary = "Give a table another name in its catalog; its files stay where they are",
    .about = "  knut table rename --warehouse /data/wh --table shop.orders shop.old_orders\n"
             "\n"
             "Deliveries know a table by its name: one that is renamed is another table to them.",
    .options_size = sizeof(DropOptions),
    .locator = offsetof(DropOptions, loc),
    .positional = "NS.NAME",
    .run = run_rename,
};

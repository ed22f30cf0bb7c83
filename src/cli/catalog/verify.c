/* SPDX-License-Identifier: Apache-2.0 */
/* verify.c - `knut catalog verify`: are the tables of a catalog whole? */
#include "iceberg/maintain/verify.h"

#include "base/stop.h"
#include "cli/catalog/catalog_args.h"
#include "cli/commands.h"
#include "cli/output.h"

typedef struct VerifyOptions {
    KnCommonOptions common;
    KnLocator loc;
    bool files, current;
} VerifyOptions;

static const KnOption verify_rows[] = {
    {.name = "files",
     .type = KN_OPT_FLAG,
     .offset = offsetof(VerifyOptions, files),
     .doc = "Look for data files, delete files and statistics too, and at their sizes"},
    {.name = "current",
     .type = KN_OPT_FLAG,
     .offset = offsetof(VerifyOptions, current),
     .doc = "Only the snapshots that branches and tags name, not those of the history"},
};

typedef struct Verifying {
    const KnCall *call;
    KnCatalog *cat;
    KnOut *out;
    int64_t damaged, n;
} Verifying;

static void print_table(KnOut *out, const char *name, const KnVerified *result,
                        KnProblems *problems)
{
    kn_out_text(out, name);
    kn_out_bool(out, problems->n == 0);
    kn_out_int(out, result->snapshots);
    kn_out_int(out, result->manifests);
    kn_out_int(out, result->files);
    kn_out_json(out, kn_problems_end(problems));
}

/* A table that cannot be loaded is a finding, unless the catalog cannot be reached. */
static KnCode look(const Verifying *v, const KnTableIdent *ident, KnVerified *result,
                   KnProblems *problems, KnErr *err)
{
    const VerifyOptions *opts = v->call->options;
    KnErr why = {0};
    KnTable *tbl = NULL;
    KnCode rc = kn_table_load(v->cat, ident, &tbl, &why);
    bool no_table =
        rc == KN_E_NOTFOUND && (why.about == KN_ABOUT_TABLE || why.about == KN_ABOUT_NAMESPACE);
    if (rc != KN_OK && kn_verify_is_damage(rc) && !no_table) {
        KnFinding finding = {"metadata", "", why.msg};
        return kn_problems_add(problems, &finding, err);
    }
    if (rc != KN_OK) {
        if (err)
            *err = why;
        return rc;
    }
    KnVerify verify = {.io = tbl->io,
                       .md = tbl->md,
                       .current_only = opts->current,
                       .files = opts->files,
                       .fn = kn_problems_add,
                       .arg = problems,
                       .cancelled = kn_stop_requested};
    rc = kn_metadata_verify(&verify, result, err);
    kn_table_free(tbl);
    return rc;
}

static KnCode verify_one(Verifying *v, const KnTableIdent *ident, KnErr *err)
{
    KnProblems problems;
    KnVerified result = {0};
    kn_problems_init(&problems);
    KnCode rc = look(v, ident, &result, &problems, err);
    v->n++;
    v->damaged += problems.n > 0;
    if (rc == KN_OK) {
        print_table(v->out, kn_table_ident_format(v->call->arena, ident), &result, &problems);
        rc = kn_out_check(v->out, err);
    }
    kn_buf_done(&problems.json);
    return rc;
}

static KnCode verify_all(Verifying *v, KnErr *err)
{
    KnTableNames names = {0};
    KnCode rc = kn_args_tables(v->call, v->cat, &names, err);
    kn_vec_foreach (&names.idents, ident) {
        if (rc == KN_OK)
            rc = verify_one(v, ident, err);
    }
    kn_vec_done(&names.idents);
    return rc;
}

static KnCode run_verify(KnCall *call, KnErr *err)
{
    static const KnOutColumn columns[] = {{"table", false},    {"intact", false},
                                          {"snapshots", true}, {"manifests", true},
                                          {"files", true},     {"problems", false}};
    Verifying v = {.call = call};
    KN_TRY(kn_args_whole_catalog(call, err));
    KN_TRY(kn_catalog_open(kn_call_locator(call), false, &v.cat, err));
    v.out = kn_out_open((KnOutputFormat)call->common->output, columns, 6);
    KnCode rc = verify_all(&v, err);
    KnCode closed = kn_out_close(v.out, rc == KN_OK ? err : NULL);
    kn_catalog_close(v.cat);
    KN_TRY(rc);
    KN_TRY(closed);
    if (v.damaged)
        return kn_err_set(
            err, KN_E_CORRUPT,
            "%lld of %lld tables are damaged; 'knut catalog heal' takes a table back to "
            "its newest intact metadata",
            (long long)v.damaged, (long long)v.n);
    return KN_OK;
}

const KnCommand kn_cmd_catalog_verify = {
    .group = "catalog",
    .name = "verify",
    .summary =
        "Check that metadata, manifests and (--files) files of tables are there and readable",
    .about = "  knut catalog verify --warehouse /data/wh --files\n"
             "  knut catalog verify --rest-uri http://127.0.0.1:8181 shop.orders\n"
             "\n"
             "Without names all tables are looked at. Exit status 1 when one is damaged.",
    .options_size = sizeof(VerifyOptions),
    .locator = offsetof(VerifyOptions, loc),
    .rows = verify_rows,
    .n_rows = sizeof(verify_rows) / sizeof(verify_rows[0]),
    .positional = "[NS.NAME...]",
    .run = run_verify,
};

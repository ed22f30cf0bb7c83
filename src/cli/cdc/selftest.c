/* SPDX-License-Identifier: Apache-2.0 */
/* selftest.c - `knut cdc selftest`: what a sink relies on, tried out on a real cluster. */
#include "cdc/sinks/doris/selftest.h"

#include "cli/commands.h"
#include "cli/output.h"

typedef struct SelftestOptions {
    KnCommonOptions common;
    const char *doris, *database;
} SelftestOptions;

static const KnOption ROWS[] = {
    {.name = "doris",
     .type = KN_OPT_TEXT,
     .offset = offsetof(SelftestOptions, doris),
     .value = "http://FE:8030[?NAME=VALUE&...]",
     .doc = "The cluster, as behind doris: in --sink"},
    {.name = "database",
     .type = KN_OPT_TEXT,
     .offset = offsetof(SelftestOptions, database),
     .value = "NAME",
     .doc = "Where tables may be made and dropped"},
};

static void tell(void *arg, const char *check, bool ok, const char *detail)
{
    KnOut *out = arg;
    kn_out_text(out, check);
    kn_out_bool(out, ok);
    kn_out_text(out, detail);
}

static KnCode run_selftest(KnCall *call, KnErr *err)
{
    static const KnOutColumn columns[] = {{"check", false}, {"ok", false}, {"detail", false}};
    const SelftestOptions *opts = call->options;
    if (!opts->doris || !opts->database)
        return kn_err_set(err, KN_E_INVAL, "--doris and --database are needed");
    KnOut *out = kn_out_open((KnOutputFormat)call->common->output, columns, 3);
    const KnDorisSelftest what = {.place = opts->doris,
                                  .database = opts->database,
                                  .spill_dir = call->common->spill_dir,
                                  .tell = tell,
                                  .arg = out};
    KnCode rc = kn_doris_selftest(&what, err);
    KnCode told = kn_out_close(out, rc == KN_OK ? err : NULL);
    return rc != KN_OK ? rc : told;
}

const KnCommand kn_cmd_cdc_selftest = {
    .group = "cdc",
    .name = "selftest",
    .summary = "Try out on a Doris cluster what delivery relies on",
    .about = "  knut cdc selftest --doris http://fe:8030 --database scratch\n\n"
             "Makes two tables, loads every type as JSON and as Arrow, repeats a label, upserts\n"
             "and deletes by key, holds loads back, and drops the tables. Exit status 1 when a\n"
             "check failed. User and password come from DORIS_USER and DORIS_PASSWORD; the user\n"
             "needs LOAD, SELECT, CREATE and DROP.",
    .options_size = sizeof(SelftestOptions),
    .rows = ROWS,
    .n_rows = sizeof(ROWS) / sizeof(ROWS[0]),
    .run = run_selftest,
};

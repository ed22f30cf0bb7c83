/* SPDX-License-Identifier: Apache-2.0 */
/* backup.c - `knut catalog backup`: a copy of a catalog's database, and its pointers as text. */
#include "catalog/backup.h"

#include "base/path.h"
#include "cli/catalog/catalog_args.h"
#include "cli/commands.h"
#include "cli/output.h"

typedef struct BackupOptions {
    KnCommonOptions common;
    KnLocator loc;
} BackupOptions;

static KnCode run_backup(KnCall *call, KnErr *err)
{
    static const KnOutColumn columns[] = {
        {"database", false}, {"pointers", false}, {"tables", true}, {"views", true}};
    KnCatalogCore *core = NULL;
    KnBackup backup = {0};
    const char *folder = NULL;
    if (call->args.len != 1)
        return kn_err_set(err, KN_E_INVAL, "give one folder to put the backup into");
    KN_TRY(kn_locator_absolute(call->arena, call->args.items[0], &folder, err));
    KN_TRY(kn_path_local(call->arena, kn_str(folder), &folder, err));
    KN_TRY(kn_args_core(call, &core, err));
    KnCode rc = kn_catalog_backup(core, folder, call->arena, &backup, err);
    kn_core_close(core);
    KN_TRY(rc);
    KnOut *out = kn_out_open((KnOutputFormat)call->common->output, columns, 4);
    kn_out_text(out, backup.db);
    kn_out_text(out, backup.pointers);
    kn_out_int(out, backup.tables);
    kn_out_int(out, backup.views);
    return kn_out_close(out, err);
}

const KnCommand kn_cmd_catalog_backup = {
    .group = "catalog",
    .name = "backup",
    .summary = "Copy a catalog's database as it is at one moment, and list its pointers",
    .about = "  knut catalog backup --warehouse /data/wh /backup/2026-01-31\n"
             "\n"
             "The copy (catalog.db) opens with --db. pointers.jsonl has a line for each table and "
             "view, as\n"
             "'knut table register' needs it. Files of tables are not copied. The catalog may be "
             "in use.\n"
             "For PostgreSQL use pg_dump.",
    .options_size = sizeof(BackupOptions),
    .locator = offsetof(BackupOptions, loc),
    .positional = "DIR",
    .run = run_backup,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* backup.c - see backup.h. The pointers are read from the copy, so that both files tell of the same
 * moment. */
#include "catalog/backup.h"

#include "base/json.h"
#include "base/path.h"
#include "catalog/core/core_internal.h"
#include "catalog/core/names.h"
#include "catalog/store/store_internal.h"

enum { POINTERS_MAX = 1 << 30 };

typedef struct Lines {
    KnStore *store;
    KnBuf text;
    bool views;
    int64_t n;
} Lines;

static void put_levels(KnBuf *text, const KnTableIdent *ident)
{
    for (size_t i = 0; i < ident->n_levels; i++) {
        kn_buf_char(text, i ? ',' : '[');
        kn_json_quote(text, kn_str(ident->levels[i]));
    }
    kn_buf_char(text, ']');
}

static KnCode put_line(void *arg, const char *ns, const char *name, KnErr *err)
{
    Lines *lines = arg;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnStoreName at = {ns, name};
    KnStoreEntry entry = {0};
    KnTableIdent ident = {.name = name};
    KN_TRY(kn_store_find(lines->store, arena, &at, &entry, err));
    kn_names_split(arena, ns, &ident.levels, &ident.n_levels);
    kn_buf_text(&lines->text,
                lines->views ? "{\"type\":\"view\",\"name\":" : "{\"type\":\"table\",\"name\":");
    kn_json_quote(&lines->text, kn_str(kn_table_ident_format(arena, &ident)));
    kn_buf_text(&lines->text, ",\"namespace\":");
    put_levels(&lines->text, &ident);
    kn_buf_text(&lines->text, ",\"metadata\":");
    kn_json_quote(&lines->text, kn_str(entry.location ? entry.location : ""));
    kn_buf_text(&lines->text, "}\n");
    lines->n++;
    return kn_buf_check(&lines->text, err);
}

static KnCode put_views(void *arg, const char *ns, const char *name, KnErr *err)
{
    (void)name;
    Lines *lines = arg;
    KnStoreList list = {.ns = ns, .views = true, .after = ""};
    return kn_store_list(lines->store, &list, put_line, lines, err);
}

static KnCode gather(Lines *lines, KnBackup *ret, KnErr *err)
{
    KN_TRY(kn_store_list_all(lines->store, put_line, lines, err));
    ret->tables = lines->n;
    lines->views = true;
    KN_TRY(kn_store_namespaces(lines->store, "", put_views, lines, err));
    ret->views = lines->n - ret->tables;
    return KN_OK;
}

static KnCode write_pointers(KnCatalogCore *core, KnFileIO *io, KnBackup *ret, KnErr *err)
{
    Lines lines = {0};
    KnStoreOptions opts = {.db = ret->db, .catalog = core->store->catalog, .connections = 1};
    KN_TRY(kn_store_open(&opts, &lines.store, err));
    kn_buf_init(&lines.text, POINTERS_MAX);
    KnCode rc = gather(&lines, ret, err);
    if (rc == KN_OK)
        rc = kn_io_write(io, kn_str(ret->pointers), lines.text.data ? lines.text.data : "",
                         lines.text.len, KN_IO_CREATE, err);
    kn_buf_done(&lines.text);
    kn_store_close(lines.store);
    return rc;
}

static KnCode backup_to(KnCatalogCore *core, KnFileIO *io, const char *folder, KnBackup *ret,
                        KnErr *err)
{
    KnFileInfo info = {0};
    KN_TRY(kn_io_prepare_dir(io, kn_str(folder), err));
    if (kn_io_stat(io, kn_str(ret->db), &info, NULL) == KN_OK)
        return kn_err_set(err, KN_E_EXISTS, "%s is there already: name a new folder", ret->db);
    KN_TRY(kn_store_backup(core->store, ret->db, err));
    KN_TRY(kn_io_sync(io, kn_str(ret->db), err));
    return write_pointers(core, io, ret, err);
}

KnCode kn_catalog_backup(KnCatalogCore *core, const char *folder, KnArena *arena, KnBackup *ret,
                         KnErr *err)
{
    KnFileIO *io = NULL;
    KnBackup backup = {.db = kn_path_join(arena, kn_str(folder), KN_STR_LIT("catalog.db")),
                       .pointers =
                           kn_path_join(arena, kn_str(folder), KN_STR_LIT("pointers.jsonl"))};
    KN_TRY(kn_io_local_open(&io, err));
    KnCode rc = backup_to(core, io, folder, &backup, err);
    kn_io_close(io);
    if (rc == KN_OK)
        *ret = backup;
    return rc;
}

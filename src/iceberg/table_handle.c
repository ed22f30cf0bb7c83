/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table_handle.c - the life of a KnTable, and the calls that go through its catalog.
 *
 * The handle owns its texts and one metadata reference; catalog and FileIO are borrowed and must
 * outlive it. A failed refresh or commit leaves the handle as it was. One thread at a time.
 */
#include <stdlib.h>
#include <string.h>

#include "iceberg/table.h"

static char *copy_text(const char *text)
{
    char *copy = strdup(text);
    if (!copy)
        abort();
    return copy;
}

static KnTableIdent copy_ident(KnArena *arena, const KnTableIdent *ident)
{
    const char **levels = kn_arena_alloc(arena, (ident->n_levels + 1) * sizeof(*levels));
    for (size_t i = 0; i < ident->n_levels; i++)
        levels[i] = kn_arena_strdup(arena, ident->levels[i]);
    return (KnTableIdent){
        .levels = levels,
        .n_levels = ident->n_levels,
        .name = kn_arena_strdup(arena, ident->name),
    };
}

KnTable *kn_table_new(KnCatalog *cat, const KnTableIdent *ident, KnFileIO *io, KnMetadata *md,
                      const char *metadata_location)
{
    KnTable *tbl = calloc(1, sizeof(*tbl));
    if (!tbl)
        abort();
    tbl->catalog = cat;
    tbl->io = io;
    tbl->md = md;
    tbl->arena = kn_arena_new(0);
    tbl->metadata_location = copy_text(metadata_location);
    if (ident)
        tbl->ident = copy_ident(tbl->arena, ident);
    tbl->name = copy_text(ident ? kn_table_ident_format(tbl->arena, ident) : md->location);
    return tbl;
}

void kn_table_set_metadata(KnTable *tbl, KnMetadata *md, const char *metadata_location)
{
    char *location = copy_text(metadata_location);
    kn_metadata_unref(tbl->md);
    free(tbl->metadata_location);
    tbl->md = md;
    tbl->metadata_location = location;
}

KnTable *kn_table_free(KnTable *tbl)
{
    if (!tbl)
        return NULL;
    kn_metadata_unref(tbl->md);
    free(tbl->metadata_location);
    free(tbl->name);
    kn_arena_free(tbl->arena);
    free(tbl);
    return NULL;
}

KnCode kn_table_load(KnCatalog *cat, const KnTableIdent *ident, KnTable **ret, KnErr *err)
{
    return cat->ops->load(cat, ident, ret, err);
}

KnCode kn_table_create(KnCatalog *cat, const KnTableIdent *ident, const KnCreateTable *create,
                       KnTable **ret, KnErr *err)
{
    return cat->ops->create(cat, ident, create, ret, err);
}

KnCode kn_table_commit(KnTable *tbl, const KnTableCommit *commit, KnErr *err)
{
    return kn_err_wrap(err, tbl->catalog->ops->commit(tbl->catalog, tbl, commit, err), "table %s",
                       tbl->name);
}

KnCode kn_tables_commit(const KnTableChanges *changes, KnErr *err)
{
    if (!changes->n)
        return KN_OK;
    if (changes->n == 1)
        return kn_table_commit(changes->tables[0], &changes->commits[0], err);
    KnCatalog *cat = changes->tables[0]->catalog;
    if (!cat->ops->commit_all)
        return kn_err_set(err, KN_E_UNSUPPORTED,
                          "the catalog %s cannot change several tables at once", cat->ops->id(cat));
    return cat->ops->commit_all(cat, changes, err);
}

KnCode kn_table_refresh(KnTable *tbl, KnErr *err)
{
    KnTable *fresh = NULL;
    KN_TRY(
        tbl->catalog->ops->load(tbl->catalog, tbl->ident.name ? &tbl->ident : NULL, &fresh, err));
    kn_table_set_metadata(tbl, kn_metadata_ref(fresh->md), fresh->metadata_location);
    kn_table_free(fresh);
    return KN_OK;
}

KnCatalog *kn_catalog_close(KnCatalog *cat)
{
    if (cat)
        cat->ops->close(cat);
    return NULL;
}

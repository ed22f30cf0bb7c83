/* SPDX-License-Identifier: Apache-2.0 */
/*
 * facade.c - the core behind the interface that commands, planning and maintenance take
 * (iceberg/table.h). The handles that it gives out belong to one thread; the core may be shared.
 */
#include <stdlib.h>

#include "base/path.h"
#include "catalog/core/core_internal.h"

typedef struct Facade {
    KnCatalog base;
    KnCatalogCore *core;
    bool owns; /* closing it closes the core */
} Facade;

static KnCatalogCore *core_of(const KnCatalog *base)
{
    return ((const Facade *)base)->core;
}

static const char *facade_id(const KnCatalog *base)
{
    return kn_core_id(core_of(base));
}

static KnCode handle(KnCatalog *base, const KnTableIdent *ident, KnDocument *doc, KnTable **ret,
                     KnErr *err)
{
    KN_METADATA_AUTO md = NULL;
    KnFileIO *io = NULL;
    KN_TRY(kn_document_metadata(doc, &md, err));
    KN_TRY(kn_core_io(core_of(base), kn_str(md->location), &io, err));
    *ret = kn_table_new(base, ident, io, kn_metadata_ref(md), kn_document_location(doc));
    return KN_OK;
}

static KnCode facade_load(KnCatalog *base, const KnTableIdent *ident, KnTable **ret, KnErr *err)
{
    KN_DOCUMENT_AUTO doc = NULL;
    KN_TRY(kn_core_table_load(core_of(base), ident, &doc, err));
    return handle(base, ident, doc, ret, err);
}

static KnCode facade_create(KnCatalog *base, const KnTableIdent *ident, const KnCreateTable *create,
                            KnTable **ret, KnErr *err)
{
    KN_DOCUMENT_AUTO doc = NULL;
    KN_TRY(kn_core_table_create(core_of(base), ident, create, false, &doc, err));
    return handle(base, ident, doc, ret, err);
}

static KnCode show(KnTable *tbl, KnDocument *doc, KnErr *err)
{
    KnMetadata *md = NULL;
    KN_TRY(kn_document_metadata(doc, &md, err));
    kn_table_set_metadata(tbl, md, kn_document_location(doc));
    return KN_OK;
}

static KnCode facade_commit(KnCatalog *base, KnTable *tbl, const KnTableCommit *commit, KnErr *err)
{
    KN_DOCUMENT_AUTO doc = NULL;
    KN_TRY(kn_core_table_commit(core_of(base), &tbl->ident, commit, &doc, err));
    return show(tbl, doc, err);
}

static KnCode facade_commit_all(KnCatalog *base, const KnTableChanges *changes, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnTableChange *all = kn_arena_zalloc(arena, changes->n * sizeof(*all));
    KnDocument **docs = kn_arena_zalloc(arena, changes->n * sizeof(KnDocument *));
    for (size_t i = 0; i < changes->n; i++)
        all[i] = (KnTableChange){changes->tables[i]->ident, changes->commits[i]};
    KN_TRY(kn_core_tables_commit(core_of(base), all, changes->n, docs, err));
    KnCode rc = KN_OK;
    for (size_t i = 0; i < changes->n; i++) {
        if (rc == KN_OK)
            rc = show(changes->tables[i], docs[i], err);
        kn_document_unref(docs[i]);
    }
    return rc;
}

static KnCode facade_drop(KnCatalog *base, const KnTableIdent *ident, KnErr *err)
{
    return kn_core_table_drop(core_of(base), ident, err);
}

static KnCode facade_register(KnCatalog *base, const KnTableIdent *ident, const char *location,
                              KnTable **ret, KnErr *err)
{
    KN_DOCUMENT_AUTO doc = NULL;
    KN_TRY(kn_core_table_register(core_of(base), ident, &(KnRegistration){.location = location},
                                  &doc, err));
    return handle(base, ident, doc, ret, err);
}

static KnCode facade_rename(KnCatalog *base, const KnTableIdent *from, const KnTableIdent *to,
                            KnErr *err)
{
    return kn_core_table_rename(core_of(base), from, to, err);
}

typedef struct Listing {
    KnTableListFn fn;
    void *arg;
} Listing;

static KnCode list_one(void *arg, const char *ns, const char *name, KnErr *err)
{
    const Listing *listing = arg;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnTableIdent ident = {.name = name};
    kn_names_split(arena, ns, &ident.levels, &ident.n_levels);
    return listing->fn(listing->arg, &ident, err);
}

static KnCode facade_list(KnCatalog *base, KnTableListFn fn, void *arg, KnErr *err)
{
    Listing listing = {fn, arg};
    return kn_store_list_all(core_of(base)->store, list_one, &listing, err);
}

static KnCode facade_create_namespace(KnCatalog *base, const char *const *levels, size_t n,
                                      KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnChange change = {.kind = KN_CHANGE_ADD_NS, .event = -1};
    KN_TRY(kn_names_join(arena, levels, n, &change.name.ns, err));
    return kn_core_change(core_of(base), &change, 1, err);
}

static void facade_close(KnCatalog *base)
{
    Facade *facade = (Facade *)base;
    if (facade->owns)
        kn_core_close(facade->core); /* frees the facade too */
}

static const KnCatalogOps facade_ops = {
    .kind = "jdbc",
    .read_only = false,
    .id = facade_id,
    .load = facade_load,
    .create = facade_create,
    .commit = facade_commit,
    .commit_all = facade_commit_all,
    .drop = facade_drop,
    .register_table = facade_register,
    .rename = facade_rename,
    .list = facade_list,
    .create_namespace = facade_create_namespace,
    .close = facade_close,
};

KnCatalog *kn_core_facade_new(KnCatalogCore *core)
{
    Facade *facade = calloc(1, sizeof(*facade));
    if (!facade)
        abort();
    *facade = (Facade){.base.ops = &facade_ops, .core = core};
    return &facade->base;
}

KnCatalog *kn_core_into_catalog(KnCatalogCore *core)
{
    ((Facade *)core->facade)->owns = true;
    return core->facade;
}

void kn_core_facade_free(KnCatalog *facade)
{
    free(facade);
}

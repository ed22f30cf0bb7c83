/* SPDX-License-Identifier: Apache-2.0 */
/* core_tables.c - tables: looking them up, making, registering, renaming and dropping them. */
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "catalog/core/core_internal.h"
#include "catalog/metadata_file.h"

/* ---- looking up ---- */

static KnCode exists(KnCatalogCore *core, const KnTableIdent *ident, bool is_view, bool *ret,
                     KnErr *err)
{
    /* Names that need no change in the database's spelling cost nothing to spell. */
    KnStoreName name = {.name = ident->name};
    KN_POINTER_AUTO ptr = NULL;
    KnArena *arena = NULL;
    KnCode rc = KN_OK;
    if (ident->n_levels == 1 && !strpbrk(ident->levels[0], ".%") &&
        kn_name_check(kn_str(ident->levels[0]), "namespace level", NULL) == KN_OK) {
        name.ns = ident->levels[0];
    } else {
        arena = kn_arena_new(0);
        rc = kn_names_join(arena, ident->levels, ident->n_levels, &name.ns, err);
    }
    if (rc == KN_OK)
        rc = kn_name_check(kn_str(name.name), is_view ? "view's name" : "table's name", err);
    if (rc == KN_OK)
        rc = kn_mirror_find(core->mirror, &name, &ptr, err);
    if (rc == KN_OK)
        *ret = ptr && kn_pointer_is_view(ptr) == is_view;
    kn_arena_free(arena);
    return rc;
}

KnCode kn_core_table_exists(KnCatalogCore *core, const KnTableIdent *ident, bool *ret, KnErr *err)
{
    return exists(core, ident, false, ret, err);
}

KnCode kn_core_view_exists(KnCatalogCore *core, const KnTableIdent *ident, bool *ret, KnErr *err)
{
    return exists(core, ident, true, ret, err);
}

static KnCode load(KnCatalogCore *core, const KnTableIdent *ident, bool is_view, KnDocument **ret,
                   KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(512);
    KN_POINTER_AUTO ptr = NULL;
    KnStoreName name;
    KN_TRY(kn_core_name(arena, ident, &name, err));
    KN_TRY(kn_core_find(core, &name, is_view, &ptr, err));
    return kn_core_read(core, kn_pointer_location(ptr), is_view, ret, err);
}

KnCode kn_core_table_load(KnCatalogCore *core, const KnTableIdent *ident, KnDocument **ret,
                          KnErr *err)
{
    return load(core, ident, false, ret, err);
}

KnCode kn_core_view_load(KnCatalogCore *core, const KnTableIdent *ident, KnDocument **ret,
                         KnErr *err)
{
    return load(core, ident, true, ret, err);
}

KnCode kn_core_table_pointer(KnCatalogCore *core, KnArena *arena, const KnTableIdent *ident,
                             const char **ret, KnErr *err)
{
    KN_POINTER_AUTO ptr = NULL;
    KnStoreName name;
    KN_TRY(kn_core_name(arena, ident, &name, err));
    KN_TRY(kn_core_find(core, &name, false, &ptr, err));
    KN_TRY(kn_core_check_there(kn_pointer_location(ptr), err));
    *ret = kn_arena_strdup(arena, kn_pointer_location(ptr));
    return KN_OK;
}

/* ---- lists ---- */

typedef struct Gather {
    KnArena *arena;
    const char **names;
    size_t n, room;
} Gather;

static KnCode gather(void *arg, const char *ns, const char *name, KnErr *err)
{
    (void)ns, (void)err;
    Gather *g = arg;
    if (g->n == g->room) {
        size_t room = g->room ? g->room * 2 : 64;
        const char **names = kn_arena_alloc(g->arena, room * sizeof(*names));
        if (g->n)
            memcpy((void *)names, (const void *)g->names, g->n * sizeof(*names));
        g->names = names;
        g->room = room;
    }
    g->names[g->n++] = kn_arena_strdup(g->arena, name);
    return KN_OK;
}

typedef struct Listing {
    const KnNamespace *ns;
    const KnPage *page; /* or NULL */
    bool views;
} Listing;

static KnCode ask_list(KnCatalogCore *core, KnArena *arena, const Listing *what, KnNameList *ret,
                       KnErr *err)
{
    Gather g = {.arena = arena};
    KnStoreList query = {.views = what->views};
    const KnPage *page = what->page;
    size_t size = page ? page->size : 0;
    KN_TRY(kn_names_join(arena, what->ns->levels, what->ns->n_levels, &query.ns, err));
    query.after = page && page->token ? page->token : "";
    query.limit = size ? size + 1 : 0; /* one more tells whether there is another page */
    KN_TRY(kn_store_list(core->store, &query, gather, &g, err));
    if (!g.n && !core->lax_namespaces)
        KN_TRY(kn_core_require_namespace(core, query.ns, err));
    bool more = size && g.n > size;
    *ret = (KnNameList){
        .names = g.names, .n = more ? size : g.n, .next = more ? g.names[size - 1] : NULL};
    return KN_OK;
}

/* A whole list comes from memory while the database is as it was before and after it was read. */
static KnCode list(KnCatalogCore *core, KnArena *arena, const Listing *what, KnNameList *ret,
                   KnErr *err)
{
    KnStoreName name = {.name = what->views ? "views" : "tables"};
    bool part = what->page && (what->page->size || what->page->token);
    uint64_t generation = part ? 0 : kn_store_generation(core->store);
    if (!generation)
        return ask_list(core, arena, what, ret, err);
    KN_TRY(kn_names_join(arena, what->ns->levels, what->ns->n_levels, &name.ns, err));
    if (kn_lists_find(core->lists, arena, &name, generation, ret))
        return KN_OK;
    KnNameList found = {0};
    KN_TRY(ask_list(core, arena, what, &found, err));
    if (found.n && kn_store_generation(core->store) == generation)
        kn_lists_keep(core->lists, &name, generation, &found);
    *ret = found;
    return KN_OK;
}

KnCode kn_core_table_list(KnCatalogCore *core, KnArena *arena, const KnNamespace *ns,
                          const KnPage *page, KnNameList *ret, KnErr *err)
{
    return list(core, arena, &(Listing){ns, page, false}, ret, err);
}

KnCode kn_core_view_list(KnCatalogCore *core, KnArena *arena, const KnNamespace *ns,
                         const KnPage *page, KnNameList *ret, KnErr *err)
{
    return list(core, arena, &(Listing){ns, page, true}, ret, err);
}

/* ---- making ---- */

static KnCode make(KnCatalogCore *core, KnArena *arena, const KnTableIdent *ident,
                   const KnCreateTable *create, KnMetadata **ret, KnErr *err)
{
    KnCreateTable filled = *create;
    KN_METADATA_AUTO md = NULL;
    if (!filled.location)
        KN_TRY(kn_core_default_location(core, arena, ident, &filled.location, err));
    KN_TRY(kn_metadata_create(&filled, &md, err));
    KN_TRY(kn_core_check_places(core, md->location, md->properties, NULL, NULL, err));
    *ret = kn_metadata_ref(md);
    return KN_OK;
}

/* Is the entry where it should be, after a lost answer? */
static KnCode settle_insert(KnCatalogCore *core, const KnStoreName *name, const char *to,
                            KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnStoreEntry now = {0};
    KnErr why = *err;
    KnCode rc = kn_fault_at("catalog-status-check", NULL);
    if (rc == KN_OK)
        rc = kn_store_find(core->store, arena, name, &now, NULL);
    if (rc == KN_OK && now.location && !strcmp(now.location, to))
        return KN_OK;
    if (rc == KN_OK && !now.location)
        return kn_err_set(err, KN_E_IO, "%s.%s was not created: %s", name->ns, name->name, why.msg);
    return kn_err_set(err, KN_E_UNKNOWN,
                      "%s.%s may or may not have been created (%.300s): %s was not removed",
                      name->ns, name->name, why.msg, to);
}

KnCode kn_core_insert(KnCatalogCore *core, const KnStoreName *name, const KnChange *insert,
                      bool *ret_doubtful, KnErr *err)
{
    assert(insert->to);
    const KnChange changes[] = {kn_core_namespace_change(core, name->ns), *insert};
    KnUnit unit = {.changes = changes, .n = 2};
    KnErr local = {0};
    KnCode rc = kn_group_commit(core->group, &unit, &local);
    *ret_doubtful = unit.doubtful;
    if (rc == KN_E_UNKNOWN)
        rc = settle_insert(core, name, insert->to, &local);
    if (rc != KN_OK && err)
        *err = local;
    return rc;
}

KnCode kn_core_insert_document(KnCatalogCore *core, const KnStoreName *name, KnChange *insert,
                               KnDocument *doc, KnErr *err)
{
    bool doubtful = false;
    insert->kind = KN_CHANGE_INSERT;
    insert->event = KN_EVENT_CREATE;
    insert->name = *name;
    insert->to = kn_document_location(doc);
    KN_TRY(kn_core_write(core, doc, err));
    KnCode rc = kn_fault_at("catalog-metadata-written", err);
    if (rc == KN_OK)
        rc = kn_core_insert(core, name, insert, &doubtful, err);
    if (rc != KN_OK && rc != KN_E_UNKNOWN && !doubtful)
        kn_core_remove(core, insert->to);
    if (rc == KN_OK)
        kn_document_cache_put(core->cache, doc);
    return rc;
}

KnCode kn_core_table_create(KnCatalogCore *core, const KnTableIdent *ident,
                            const KnCreateTable *create, bool stage, KnDocument **ret, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KN_METADATA_AUTO md = NULL;
    KN_DOCUMENT_AUTO doc = NULL;
    KnStoreName name;
    KN_TRY(kn_core_name(arena, ident, &name, err));
    KN_TRY(kn_core_require_namespace(core, name.ns, err));
    KN_TRY(kn_core_refuse_taken(core, &name, false, err));
    KN_TRY(make(core, arena, ident, create, &md, err));
    const char *to = stage ? "" : kn_metadata_file_next(arena, md, NULL);
    KN_TRY(kn_document_from_metadata(md, to, &doc, err));
    KnChange insert = {.snapshot_id = -1};
    if (!stage)
        KN_TRY(kn_core_insert_document(core, &name, &insert, doc, err));
    *ret = kn_document_ref(doc);
    return KN_OK;
}

/* ---- registering ---- */

static KnCode read_foreign(KnCatalogCore *core, const char *location, KnDocument **ret, KnErr *err)
{
    KN_DOCUMENT_AUTO doc = NULL;
    KN_METADATA_AUTO md = NULL;
    KN_TRY(kn_core_check_location(core, kn_str(location), err));
    KN_TRY(kn_core_read(core, location, false, &doc, err));
    KN_TRY(kn_document_metadata(doc, &md, err));
    KN_TRY(kn_core_check_places(core, md->location, md->properties, NULL, NULL, err));
    *ret = kn_document_ref(doc);
    return KN_OK;
}

/* Over an existing table, whose pointer may move meanwhile. */
static KnCode overwrite_entry(KnCatalogCore *core, const KnStoreName *name, KnChange *change,
                              KnErr *err)
{
    for (int i = 0; i < KN_CORE_COMMIT_TRIES; i++) {
        KN_POINTER_AUTO ptr = NULL;
        bool ignored = false;
        KN_TRY(kn_mirror_find(core->mirror, name, &ptr, err));
        if (ptr && kn_pointer_is_view(ptr))
            return kn_core_refuse_taken(core, name, false, err);
        change->kind = ptr ? KN_CHANGE_SWAP : KN_CHANGE_INSERT;
        change->from = ptr ? kn_pointer_location(ptr) : NULL;
        KnCode rc = ptr ? kn_core_change(core, change, 1, err)
                        : kn_core_insert(core, name, change, &ignored, err);
        if (rc != KN_E_CONFLICT && rc != KN_E_EXISTS)
            return rc;
        kn_core_back_off(i);
    }
    return kn_err_set(err, KN_E_CONFLICT, "lost %d races for the catalog's pointer; try again",
                      KN_CORE_COMMIT_TRIES);
}

KnCode kn_core_table_register(KnCatalogCore *core, const KnTableIdent *ident,
                              const KnRegistration *registration, KnDocument **ret, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KN_DOCUMENT_AUTO doc = NULL;
    KN_METADATA_AUTO md = NULL;
    KnStoreName name;
    bool ignored = false;
    KN_TRY(kn_core_name(arena, ident, &name, err));
    KN_TRY(kn_core_require_namespace(core, name.ns, err));
    if (!registration->overwrite)
        KN_TRY(kn_core_refuse_taken(core, &name, false, err));
    KN_TRY(read_foreign(core, registration->location, &doc, err));
    KN_TRY(kn_document_metadata(doc, &md, err));
    if (registration->check)
        KN_TRY(registration->check(registration->arg, md, err));
    KnChange change = {.kind = KN_CHANGE_INSERT,
                       .event = KN_EVENT_REGISTER,
                       .name = name,
                       .to = registration->location,
                       .snapshot_id = md->current_snapshot_id};
    if (registration->overwrite)
        KN_TRY(overwrite_entry(core, &name, &change, err));
    else
        KN_TRY(kn_core_insert(core, &name, &change, &ignored, err));
    *ret = kn_document_ref(doc);
    return KN_OK;
}

/* ---- renaming and dropping ---- */

KnCode kn_core_rename(KnCatalogCore *core, const KnTableIdent *from, const KnTableIdent *to,
                      bool is_view, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KN_POINTER_AUTO ptr = NULL;
    KnStoreName old, new;
    KN_TRY(kn_core_name(arena, from, &old, err));
    KN_TRY(kn_core_name(arena, to, &new, err));
    KN_TRY(kn_core_find(core, &old, is_view, &ptr, err));
    const KnChange changes[] = {
        kn_core_namespace_change(core, new.ns),
        {.kind = KN_CHANGE_RENAME,
         .is_view = is_view,
         .event = KN_EVENT_RENAME,
         .name = old,
         .to_name = new,
         .to = kn_pointer_location(ptr),
         .snapshot_id = -1},
    };
    return kn_core_change(core, changes, 2, err);
}

KnCode kn_core_drop(KnCatalogCore *core, const KnTableIdent *ident, bool is_view, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnStoreName name;
    KN_TRY(kn_core_name(arena, ident, &name, err));
    const KnChange change = {.kind = KN_CHANGE_REMOVE,
                             .is_view = is_view,
                             .event = KN_EVENT_DROP,
                             .name = name,
                             .snapshot_id = -1};
    return kn_core_change(core, &change, 1, err);
}

KnCode kn_core_table_rename(KnCatalogCore *core, const KnTableIdent *from, const KnTableIdent *to,
                            KnErr *err)
{
    return kn_core_rename(core, from, to, false, err);
}

KnCode kn_core_table_drop(KnCatalogCore *core, const KnTableIdent *ident, KnErr *err)
{
    return kn_core_drop(core, ident, false, err);
}

/* Gone only if doc is still its newest document: the store compares and removes at once. */
static KnCode remove_at(KnCatalogCore *core, const KnStoreName *name, const char *location,
                        KnErr *err)
{
    const KnChange changes[] = {
        {.kind = KN_CHANGE_SWAP,
         .event = -1,
         .name = *name,
         .from = location,
         .to = location,
         .snapshot_id = -1},
        {.kind = KN_CHANGE_REMOVE, .event = KN_EVENT_DROP, .name = *name, .snapshot_id = -1}};
    return kn_core_change(core, changes, 2, err);
}

KnCode kn_core_table_unregister(KnCatalogCore *core, const KnTableIdent *ident, KnDocument **ret,
                                KnErr *err)
{
    enum { TRIES = 100 };
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnStoreName name;
    KN_TRY(kn_core_name(arena, ident, &name, err));
    for (int tries = 0;; tries++) {
        KnDocument *doc = NULL;
        KN_TRY(kn_core_table_load(core, ident, &doc, err));
        KnCode rc = remove_at(core, &name, kn_document_location(doc), err);
        if (rc == KN_OK) {
            *ret = doc;
            return KN_OK;
        }
        kn_document_unref(doc);
        if (rc != KN_E_CONFLICT || tries == TRIES)
            return rc;
        kn_core_back_off(tries);
    }
}

KnCode kn_core_table_purge(KnCatalogCore *core, const KnTableIdent *ident, KnSession *ses,
                           KnSweepResult *ret, KnErr *err)
{
    KnTable *tbl = NULL;
    const KnSweepOptions opts = {0};
    KN_TRY(kn_table_load(core->facade, ident, &tbl, err));
    KnCode rc = kn_table_purge(tbl, ses, &opts, ret, err);
    kn_table_free(tbl);
    return rc;
}

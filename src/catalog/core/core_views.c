/* SPDX-License-Identifier: Apache-2.0 */
/* core_views.c - views: made, replaced, registered, renamed and dropped as tables are; looking them
 * up and listing them is in core_tables.c. */
#include <string.h>

#include "base/fault.h"
#include "catalog/core/core_internal.h"
#include "catalog/metadata_file.h"

static KnCode new_document(KnArena *arena, const KnView *view, const char *previous,
                           KnDocument **ret, KnErr *err)
{
    const char *to = kn_metadata_file_next_in(arena, view->location, view->properties, previous);
    return kn_document_from_view(view, to, ret, err);
}

KnCode kn_core_view_create(KnCatalogCore *core, const KnTableIdent *ident,
                           const KnCreateView *create, KnDocument **ret, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KN_VIEW_AUTO view = NULL;
    KN_DOCUMENT_AUTO doc = NULL;
    KnCreateView filled = *create;
    KnStoreName name;
    KN_TRY(kn_core_name(arena, ident, &name, err));
    KN_TRY(kn_core_require_namespace(core, name.ns, err));
    KN_TRY(kn_core_refuse_taken(core, &name, true, err));
    if (!filled.location)
        KN_TRY(kn_core_default_location(core, arena, ident, &filled.location, err));
    KN_TRY(kn_view_create(&filled, &view, err));
    KN_TRY(kn_core_check_places(core, view->location, view->properties, NULL, NULL, err));
    KN_TRY(new_document(arena, view, NULL, &doc, err));
    KnChange insert = {.is_view = true, .snapshot_id = -1};
    KN_TRY(kn_core_insert_document(core, &name, &insert, doc, err));
    *ret = kn_document_ref(doc);
    return KN_OK;
}

typedef struct Replace {
    KnCatalogCore *core;
    KnArena *arena;
    KnStoreName name;
    const KnViewCommit *commit;
} Replace;

/* After a lost answer: KN_E_UNKNOWN stays unless the pointer is where it was or where it should
 * be. */
static KnCode settle(const Replace *re, const char *from, const char *to, KnErr *err)
{
    KnStoreEntry now = {0};
    KnErr why = *err;
    KnCode rc = kn_fault_at("catalog-status-check", NULL);
    if (rc == KN_OK)
        rc = kn_store_find(re->core->store, re->arena, &re->name, &now, NULL);
    if (rc == KN_OK && now.location && !strcmp(now.location, to))
        return KN_OK;
    if (rc == KN_OK && now.location && !strcmp(now.location, from))
        return kn_err_set(err, KN_E_IO, "the commit of view %s.%s was not applied: %s", re->name.ns,
                          re->name.name, why.msg);
    return kn_err_set(err, KN_E_UNKNOWN,
                      "the commit of view %s.%s may or may not have been applied (%.300s)",
                      re->name.ns, re->name.name, why.msg);
}

static KnCode move(const Replace *re, const char *from, KnDocument *doc, bool *ret_raced,
                   KnErr *err)
{
    const char *to = kn_document_location(doc);
    const KnChange change = {.kind = KN_CHANGE_SWAP,
                             .is_view = true,
                             .event = KN_EVENT_UPDATE,
                             .name = re->name,
                             .from = from,
                             .to = to,
                             .snapshot_id = -1};
    KnUnit unit = {.changes = &change, .n = 1};
    KnErr local = {0};
    KN_TRY(kn_core_write(re->core, doc, err));
    KnCode rc = kn_fault_at("catalog-metadata-written", &local);
    if (rc == KN_OK)
        rc = kn_group_commit(re->core->group, &unit, &local);
    *ret_raced = rc == KN_E_CONFLICT;
    if (rc == KN_E_UNKNOWN)
        rc = settle(re, from, to, &local);
    if (rc != KN_OK && rc != KN_E_UNKNOWN && !unit.doubtful)
        kn_core_remove(re->core, to);
    if (rc == KN_OK)
        kn_document_cache_put(re->core->cache, doc);
    if (rc != KN_OK && err)
        *err = local;
    return rc;
}

static KnCode try_replace(const Replace *re, KnDocument **ret, bool *ret_raced, KnErr *err)
{
    KN_POINTER_AUTO ptr = NULL;
    KN_DOCUMENT_AUTO before = NULL;
    KN_DOCUMENT_AUTO after = NULL;
    KN_VIEW_AUTO base = NULL;
    KN_VIEW_AUTO next = NULL;
    KN_TRY(kn_core_find(re->core, &re->name, true, &ptr, err));
    const char *from = kn_pointer_location(ptr);
    KN_TRY(kn_core_read(re->core, from, true, &before, err));
    KN_TRY(kn_document_view(before, &base, err));
    KN_TRY(kn_view_apply(base, re->commit, &next, err));
    if (next == base) {
        *ret = kn_document_ref(before);
        return KN_OK;
    }
    KN_TRY(kn_core_check_places(re->core, next->location, next->properties, base->location,
                                base->properties, err));
    KN_TRY(new_document(re->arena, next, from, &after, err));
    KN_TRY(move(re, from, after, ret_raced, err));
    *ret = kn_document_ref(after);
    return KN_OK;
}

KnCode kn_core_view_commit(KnCatalogCore *core, const KnTableIdent *ident,
                           const KnViewCommit *commit, KnDocument **ret, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    Replace re = {.core = core, .arena = arena, .commit = commit};
    KN_TRY(kn_core_name(arena, ident, &re.name, err));
    uint64_t mask = 0;
    bool raced = true;
    KnCode rc = KN_OK;
    kn_core_lock(core, &re.name, 1, &mask);
    for (int i = 0; i < KN_CORE_COMMIT_TRIES && raced; i++) {
        raced = false;
        rc = try_replace(&re, ret, &raced, err);
        if (raced)
            kn_core_back_off(i);
    }
    kn_core_unlock(core, mask);
    return rc;
}

KnCode kn_core_view_register(KnCatalogCore *core, const KnTableIdent *ident,
                             const char *metadata_location, KnDocument **ret, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KN_DOCUMENT_AUTO doc = NULL;
    KN_VIEW_AUTO view = NULL;
    KnStoreName name;
    bool ignored = false;
    KN_TRY(kn_core_name(arena, ident, &name, err));
    KN_TRY(kn_core_require_namespace(core, name.ns, err));
    KN_TRY(kn_core_refuse_taken(core, &name, true, err));
    KN_TRY(kn_core_check_location(core, kn_str(metadata_location), err));
    KN_TRY(kn_core_read(core, metadata_location, true, &doc, err));
    KN_TRY(kn_document_view(doc, &view, err));
    KN_TRY(kn_core_check_places(core, view->location, view->properties, NULL, NULL, err));
    const KnChange insert = {.kind = KN_CHANGE_INSERT,
                             .is_view = true,
                             .event = KN_EVENT_REGISTER,
                             .name = name,
                             .to = metadata_location,
                             .snapshot_id = -1};
    KN_TRY(kn_core_insert(core, &name, &insert, &ignored, err));
    *ret = kn_document_ref(doc);
    return KN_OK;
}

KnCode kn_core_view_rename(KnCatalogCore *core, const KnTableIdent *from, const KnTableIdent *to,
                           KnErr *err)
{
    return kn_core_rename(core, from, to, true, err);
}

KnCode kn_core_view_drop(KnCatalogCore *core, const KnTableIdent *ident, KnErr *err)
{
    return kn_core_drop(core, ident, true, err);
}

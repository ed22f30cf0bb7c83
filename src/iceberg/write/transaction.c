/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transaction.c - see transaction.h.
 *
 * A staged commit is checked and applied as a catalog does it, on the metadata that the transaction
 * shows. Its updates are kept as JSON: their texts and structs belong to whoever commits. What it
 * requires of something (a ref, the current schema) held on what is shown, which follows from the
 * base alone; so the base's own value of that is what the whole commit requires.
 */
#include "iceberg/write/transaction.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vec.h"
#include "iceberg/metadata/commit_json.h"

typedef struct Staged {
    KnTable *base; /* of the catalog behind; never changed before the commit */
    KnTable *shown;
    KN_VEC(KnRequirement) requirements;
    json_t *updates; /* array */
} Staged;

struct KnTransaction {
    KnCatalog catalog; /* first: tables of the transaction have it as theirs */
    KnCatalog *behind;
    KnArena *arena;
    KnMap *tables; /* formatted name -> Staged */
};

/* ---- what is required ---- */

/* The value of the base that a requirement of this kind is about. */
static int64_t base_value(const KnMetadata *md, const KnRequirement *req)
{
    const KnRef *ref = NULL;
    switch (req->kind) {
    case KN_REQUIRE_REF_SNAPSHOT_ID:
        ref = kn_metadata_find_ref(md, kn_str(req->text));
        return ref ? ref->snapshot_id : -1;
    case KN_REQUIRE_LAST_ASSIGNED_FIELD_ID:
        return md->last_column_id;
    case KN_REQUIRE_CURRENT_SCHEMA_ID:
        return md->current_schema_id;
    case KN_REQUIRE_LAST_ASSIGNED_PARTITION_ID:
        return md->last_partition_id;
    case KN_REQUIRE_DEFAULT_SPEC_ID:
        return md->default_spec_id;
    case KN_REQUIRE_DEFAULT_SORT_ORDER_ID:
        return md->default_sort_order_id;
    case KN_REQUIRE_REF_COUNT:
        return (int64_t)md->n_refs;
    default:
        return req->number;
    }
}

static bool same_requirement(const KnRequirement *a, const KnRequirement *b)
{
    return a->kind == b->kind && a->number == b->number &&
           (a->text == b->text || (a->text && b->text && !strcmp(a->text, b->text)));
}

static void require(KnTransaction *tx, Staged *staged, const KnRequirement *req)
{
    const KnMetadata *md = staged->base->md;
    /* One that was staged itself is not for the catalog to check. */
    if (req->kind == KN_REQUIRE_SNAPSHOT && !kn_metadata_find_snapshot(md, req->number))
        return;
    KnRequirement own = {.kind = req->kind, .number = base_value(md, req)};
    if (req->text)
        own.text = kn_arena_strdup(tx->arena, req->text);
    kn_vec_foreach (&staged->requirements, known) {
        if (same_requirement(known, &own))
            return;
    }
    *kn_vec_push(&staged->requirements) = own;
}

static KnCode keep_updates(Staged *staged, const KnTableCommit *commit, KnErr *err)
{
    KN_JSON_AUTO added = json_array();
    for (size_t i = 0; i < commit->n_updates; i++) {
        json_t *item = NULL;
        KN_TRY(kn_update_to_json(&commit->updates[i], &item, err));
        (void)json_array_append_new(added, item);
    }
    (void)json_array_extend(staged->updates, added);
    return KN_OK;
}

/* ---- the catalog that tables of the transaction see ---- */

static const char *tx_id(const KnCatalog *cat)
{
    const KnTransaction *tx = (const KnTransaction *)cat;
    return tx->behind->ops->id(tx->behind);
}

static KnCode need_staged(KnTransaction *tx, const KnTableIdent *ident, Staged **ret, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    if (!ident)
        return kn_err_set(err, KN_E_INVAL, "a transaction is for tables of a catalog");
    KnStr name = kn_str(kn_table_ident_format(arena, ident));
    Staged *staged = kn_map_find(tx->tables, name);
    if (!staged) {
        KnTable *base = NULL;
        KN_TRY(kn_table_load(tx->behind, ident, &base, err));
        staged = kn_arena_zalloc(tx->arena, sizeof(*staged));
        staged->base = base;
        staged->updates = json_array();
        staged->shown = kn_table_new(&tx->catalog, ident, base->io, kn_metadata_ref(base->md),
                                     base->metadata_location);
        bool is_new = false;
        *kn_map_get_or_add(tx->tables, name, &is_new) = staged;
    }
    *ret = staged;
    return KN_OK;
}

static KnCode tx_load(KnCatalog *cat, const KnTableIdent *ident, KnTable **ret, KnErr *err)
{
    Staged *staged = NULL;
    KN_TRY(need_staged((KnTransaction *)cat, ident, &staged, err));
    *ret = kn_table_new(cat, ident, staged->base->io, kn_metadata_ref(staged->shown->md),
                        staged->base->metadata_location);
    return KN_OK;
}

static KnCode tx_commit(KnCatalog *cat, KnTable *tbl, const KnTableCommit *commit, KnErr *err)
{
    KnTransaction *tx = (KnTransaction *)cat;
    Staged *staged = NULL;
    KN_TRY(need_staged(tx, &tbl->ident, &staged, err));
    const KnMetadata *now = staged->shown->md;
    KN_TRY(kn_metadata_check(now, commit->requirements, commit->n_requirements, err));
    KN_METADATA_AUTO next = NULL;
    KN_TRY(kn_metadata_apply(now, commit->updates, commit->n_updates, NULL, &next, err));
    KN_TRY(keep_updates(staged, commit, err));
    for (size_t i = 0; i < commit->n_requirements; i++)
        require(tx, staged, &commit->requirements[i]);
    const char *location = staged->base->metadata_location;
    kn_table_set_metadata(staged->shown, kn_metadata_ref(next), location);
    if (tbl != staged->shown)
        kn_table_set_metadata(tbl, kn_metadata_ref(next), location);
    return KN_OK;
}

static KnCode not_here(KnErr *err)
{
    return kn_err_set(err, KN_E_UNSUPPORTED,
                      "a transaction changes tables, it makes, drops and renames none");
}

static KnCode tx_create(KnCatalog *cat, const KnTableIdent *ident, const KnCreateTable *create,
                        KnTable **ret, KnErr *err)
{
    (void)cat, (void)ident, (void)create, (void)ret;
    return not_here(err);
}

static KnCode tx_drop(KnCatalog *cat, const KnTableIdent *ident, KnErr *err)
{
    (void)cat, (void)ident;
    return not_here(err);
}

static KnCode tx_register(KnCatalog *cat, const KnTableIdent *ident, const char *location,
                          KnTable **ret, KnErr *err)
{
    (void)cat, (void)ident, (void)location, (void)ret;
    return not_here(err);
}

static KnCode tx_rename(KnCatalog *cat, const KnTableIdent *from, const KnTableIdent *to,
                        KnErr *err)
{
    (void)cat, (void)from, (void)to;
    return not_here(err);
}

static KnCode tx_list(KnCatalog *cat, KnTableListFn fn, void *arg, KnErr *err)
{
    KnTransaction *tx = (KnTransaction *)cat;
    return tx->behind->ops->list(tx->behind, fn, arg, err);
}

static KnCode tx_create_namespace(KnCatalog *cat, const char *const *levels, size_t n, KnErr *err)
{
    (void)cat, (void)levels, (void)n;
    return not_here(err);
}

/* kn_transaction_end() frees; closing a borrowed catalog does nothing. */
static void tx_close(KnCatalog *cat)
{
    (void)cat;
}

static const KnCatalogOps tx_ops = {
    .kind = "transaction",
    .read_only = false,
    .id = tx_id,
    .load = tx_load,
    .create = tx_create,
    .commit = tx_commit,
    .drop = tx_drop,
    .register_table = tx_register,
    .rename = tx_rename,
    .list = tx_list,
    .create_namespace = tx_create_namespace,
    .close = tx_close,
};

/* ---- public ---- */

KnTransaction *kn_transaction_begin(KnCatalog *cat)
{
    KnTransaction *tx = calloc(1, sizeof(*tx));
    if (!tx)
        abort();
    tx->catalog.ops = &tx_ops;
    tx->behind = cat;
    tx->arena = kn_arena_new(0);
    tx->tables = kn_map_new();
    return tx;
}

KnCode kn_transaction_table(KnTransaction *tx, const KnTableIdent *ident, KnTable **ret, KnErr *err)
{
    Staged *staged = NULL;
    KN_TRY(need_staged(tx, ident, &staged, err));
    *ret = staged->shown;
    return KN_OK;
}

static Staged *staged_at(const KnTransaction *tx, size_t i)
{
    KnStr name = {0};
    void *value = NULL;
    (void)kn_map_entry(tx->tables, i, &name, &value);
    return value;
}

KnCode kn_transaction_commit(KnTransaction *tx, KnErr *err)
{
    size_t n = kn_map_count(tx->tables);
    KnTable **tables = kn_arena_zalloc(tx->arena, (n + 1) * sizeof(*tables));
    KnTableCommit *commits = kn_arena_zalloc(tx->arena, (n + 1) * sizeof(*commits));
    KnTableChanges changes = {.tables = tables, .commits = commits};
    for (size_t i = 0; i < n; i++) {
        Staged *staged = staged_at(tx, i);
        KnTableCommit *commit = &commits[changes.n];
        if (!json_array_size(staged->updates))
            continue;
        KN_TRY(kn_updates_parse(tx->arena, staged->updates, &commit->updates, &commit->n_updates,
                                err));
        commit->requirements = staged->requirements.items;
        commit->n_requirements = staged->requirements.len;
        tables[changes.n++] = staged->base;
    }
    return kn_tables_commit(&changes, err);
}

KnTransaction *kn_transaction_end(KnTransaction *tx)
{
    if (!tx)
        return NULL;
    for (size_t i = 0; i < kn_map_count(tx->tables); i++) {
        Staged *staged = staged_at(tx, i);
        kn_table_free(staged->shown);
        kn_table_free(staged->base);
        kn_json_freep(&staged->updates);
        kn_vec_done(&staged->requirements);
    }
    kn_map_free(tx->tables);
    kn_arena_free(tx->arena);
    free(tx);
    return NULL;
}

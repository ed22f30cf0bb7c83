/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jdbc.c - a catalog over a store of pointers (store.h): load, create, commit.
 *
 * A commit reads the newest document, checks the requirements, applies the updates, writes the next
 * document durably and moves the pointer by compare-and-set. A lost race is not a failure while the
 * requirements still hold: the loop starts over on the winner's metadata. A document that did not
 * become current is removed. After a lost answer the catalog is asked (commit_status.h); when that
 * does not help either, nothing is removed and KN_E_UNKNOWN goes up.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fault.h"
#include "base/path.h"
#include "base/random.h"
#include "base/stop.h"
#include "catalog/catalog.h"
#include "catalog/commit_status.h"
#include "catalog/jdbc/store.h"
#include "catalog/metadata_file.h"

enum { COMMIT_TRIES = 100, BACKOFF_US = 2000, BACKOFF_MAX_US = 250000 };

typedef struct JdbcCatalog {
    KnCatalog base;
    KnStore *store;
    KnFileIO *io;
    KnArena *arena;
    const char *warehouse; /* URI of the data root, without a final slash */
    const char *id;
} JdbcCatalog;

static const char *jdbc_id(const KnCatalog *base)
{
    return ((const JdbcCatalog *)base)->id;
}

/* The store's spelling of a namespace. A dot inside a level could not be told from a separator. */
static KnCode namespace_text(KnArena *arena, const char *const *levels, size_t n, const char **ret,
                             KnErr *err)
{
    if (!n)
        return kn_err_set(err, KN_E_INVAL, "a table's name needs a namespace: --table NS.NAME");
    const char *text = levels[0];
    for (size_t i = 0; i < n; i++) {
        if (strchr(levels[i], '.'))
            return kn_err_set(
                err, KN_E_UNSUPPORTED,
                "namespace level '%s': the JDBC schema cannot hold a dot inside a level",
                levels[i]);
        if (i)
            text = kn_arena_printf(arena, "%s.%s", text, levels[i]);
    }
    *ret = text;
    return KN_OK;
}

static KnCode load_at(JdbcCatalog *cat, const KnTableIdent *ident, const char *location,
                      KnTable **ret, KnErr *err)
{
    KnMetadata *md = NULL;
    KN_TRY(kn_metadata_file_read(cat->io, kn_str(location), &md, err));
    *ret = kn_table_new(&cat->base, ident, cat->io, md, location);
    return KN_OK;
}

static KnCode jdbc_load(KnCatalog *base, const KnTableIdent *ident, KnTable **ret, KnErr *err)
{
    JdbcCatalog *cat = (JdbcCatalog *)base;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const char *ns = NULL, *location = NULL;
    KN_TRY(namespace_text(arena, ident->levels, ident->n_levels, &ns, err));
    KN_TRY(cat->store->ops->find(cat->store, arena, ns, ident->name, &location, err));
    return load_at(cat, ident, location, ret, err);
}

static const char *default_location(JdbcCatalog *cat, KnArena *arena, const KnTableIdent *ident)
{
    const char *location = cat->warehouse;
    for (size_t i = 0; i < ident->n_levels; i++)
        location = kn_path_join(arena, kn_str(location), kn_str(ident->levels[i]));
    return kn_path_join(arena, kn_str(location), kn_str(ident->name));
}

/* A name that is already taken is told before files are written; the insert decides the race. */
static KnCode refuse_taken(JdbcCatalog *cat, KnArena *arena, const char *ns, const char *name,
                           KnErr *err)
{
    const char *location = NULL;
    KnErr local = {0};
    KnCode rc = cat->store->ops->find(cat->store, arena, ns, name, &location, &local);
    if (rc == KN_OK)
        return kn_err_set(err, KN_E_EXISTS, "Table already exists: %s.%s", ns, name);
    if (rc == KN_E_NOTFOUND)
        return KN_OK;
    if (err)
        *err = local;
    return rc;
}

static KnCode jdbc_create(KnCatalog *base, const KnTableIdent *ident, const KnCreateTable *create,
                          KnTable **ret, KnErr *err)
{
    JdbcCatalog *cat = (JdbcCatalog *)base;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const char *ns = NULL;
    KN_TRY(namespace_text(arena, ident->levels, ident->n_levels, &ns, err));
    KN_TRY(refuse_taken(cat, arena, ns, ident->name, err));
    KnCreateTable filled = *create;
    if (!filled.location)
        filled.location = default_location(cat, arena, ident);
    KN_METADATA_AUTO md = NULL;
    KN_TRY(kn_metadata_create(&filled, &md, err));
    const char *file = kn_metadata_file_next(arena, md, NULL);
    KN_TRY(kn_metadata_file_write(cat->io, md, file, err));
    KN_FAULT("catalog-metadata-written", err);
    KnCode rc = cat->store->ops->namespace_add(cat->store, ns, err);
    if (rc == KN_OK)
        rc = cat->store->ops->insert(cat->store, ns, ident->name, file, err);
    if (rc != KN_OK) {
        KN_IGNORE(kn_io_remove(cat->io, kn_str(file), NULL));
        return rc;
    }
    *ret = kn_table_new(base, ident, cat->io, kn_metadata_ref(md), file);
    return KN_OK;
}

typedef struct Attempt {
    JdbcCatalog *cat;
    KnArena *arena;
    const char *ns;
    KnTable *tbl;
    const KnTableCommit *commit;
} Attempt;

static KnCode find_pointer(void *arg, KnArena *arena, const char **ret, KnErr *err)
{
    const Attempt *at = arg;
    KnStore *store = at->cat->store;
    return store->ops->find(store, arena, at->ns, at->tbl->ident.name, ret, err);
}

/* The answer to a swap was lost; err has the reason. */
static KnCode settle(const Attempt *at, const KnLostCommit *lost, KnErr *err)
{
    KnErr why = err ? *err : (KnErr){0};
    switch (kn_commit_status(lost)) {
    case KN_COMMIT_APPLIED:
        return KN_OK;
    case KN_COMMIT_NOT_APPLIED:
        return kn_err_set(err, KN_E_IO, "the commit of %s was not applied: %s", at->tbl->name,
                          why.msg);
    case KN_COMMIT_UNKNOWN:
        break;
    }
    return kn_err_set(err, KN_E_UNKNOWN,
                      "the commit of %s may or may not have been applied (%.300s) and the catalog "
                      "does not tell: none of its files was removed; look for %s in the table's "
                      "history before trying again",
                      at->tbl->name, why.msg, lost->to);
}

/* Moves the pointer; the document at lost->to stays only if that is where it points, or may. */
static KnCode swap(const Attempt *at, const KnLostCommit *lost, bool *ret_raced, KnErr *err)
{
    KnStore *store = at->cat->store;
    KnCode rc = store->ops->swap(store, at->ns, at->tbl->ident.name, lost->from, lost->to, err);
    *ret_raced = rc == KN_E_CONFLICT;
    if (rc == KN_E_UNKNOWN)
        rc = settle(at, lost, err);
    if (rc != KN_OK && rc != KN_E_UNKNOWN)
        KN_IGNORE(kn_io_remove(lost->io, kn_str(lost->to), NULL));
    return rc;
}

/* One that may not survive power loss is not left behind: no pointer is at it. */
static KnCode write_document(JdbcCatalog *cat, const KnMetadata *md, const char *to, KnErr *err)
{
    KnCode rc = kn_metadata_file_write(cat->io, md, to, err);
    if (rc == KN_E_UNKNOWN)
        KN_IGNORE(kn_io_remove(cat->io, kn_str(to), NULL));
    return kn_io_settled(rc, err);
}

/* One round on the newest metadata. KN_E_CONFLICT with *ret_raced says that only the pointer was
 * lost. */
static KnCode try_commit(const Attempt *at, bool *ret_raced, KnErr *err)
{
    JdbcCatalog *cat = at->cat;
    const char *from = NULL;
    KN_TRY(find_pointer((void *)(uintptr_t)at, at->arena, &from, err));
    KN_METADATA_AUTO current = NULL;
    if (!strcmp(from, at->tbl->metadata_location))
        current = kn_metadata_ref(at->tbl->md);
    else
        KN_TRY(kn_metadata_file_read(cat->io, kn_str(from), &current, err));
    const KnTableCommit *cm = at->commit;
    KN_TRY(kn_metadata_check(current, cm->requirements, cm->n_requirements, err));
    KN_METADATA_AUTO next = NULL;
    KN_TRY(kn_metadata_apply(current, cm->updates, cm->n_updates, from, &next, err));
    const char *to = kn_metadata_file_next(at->arena, next, from);
    KN_TRY(write_document(cat, next, to, err));
    KN_FAULT("catalog-metadata-written", err);
    KnLostCommit lost = {.io = cat->io,
                         .before = current,
                         .after = next,
                         .from = from,
                         .to = to,
                         .find = find_pointer,
                         .arg = (void *)(uintptr_t)at};
    KN_TRY(swap(at, &lost, ret_raced, err));
    kn_metadata_file_expire(cat->io, current, next);
    kn_table_set_metadata(at->tbl, kn_metadata_ref(next), to);
    return KN_OK;
}

static KnCode jdbc_commit(KnCatalog *base, KnTable *tbl, const KnTableCommit *commit, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    Attempt at = {.cat = (JdbcCatalog *)base, .arena = arena, .tbl = tbl, .commit = commit};
    KN_TRY(namespace_text(arena, tbl->ident.levels, tbl->ident.n_levels, &at.ns, err));
    KnRng rng = {(uint64_t)kn_random_id()};
    int64_t pause = BACKOFF_US;
    for (int i = 0; i < COMMIT_TRIES; i++) {
        bool raced = false;
        KnCode rc = try_commit(&at, &raced, err);
        if (rc == KN_OK || !raced)
            return rc;
        (void)kn_stop_wait((int64_t)kn_rng_below(&rng, (uint64_t)pause));
        pause = pause * 2 > BACKOFF_MAX_US ? BACKOFF_MAX_US : pause * 2;
    }
    return kn_err_set(err, KN_E_CONFLICT, "lost %d races for the catalog's pointer; try again",
                      COMMIT_TRIES);
}

static KnCode jdbc_drop(KnCatalog *base, const KnTableIdent *ident, KnErr *err)
{
    JdbcCatalog *cat = (JdbcCatalog *)base;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const char *ns = NULL;
    KN_TRY(namespace_text(arena, ident->levels, ident->n_levels, &ns, err));
    return cat->store->ops->remove(cat->store, ns, ident->name, err);
}

static KnCode jdbc_register(KnCatalog *base, const KnTableIdent *ident, const char *location,
                            KnTable **ret, KnErr *err)
{
    JdbcCatalog *cat = (JdbcCatalog *)base;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const char *ns = NULL;
    KN_TRY(namespace_text(arena, ident->levels, ident->n_levels, &ns, err));
    KN_TRY(refuse_taken(cat, arena, ns, ident->name, err));
    KnTable *tbl = NULL;
    KN_TRY(load_at(cat, ident, location, &tbl, err));
    KnCode rc = cat->store->ops->namespace_add(cat->store, ns, err);
    if (rc == KN_OK)
        rc = cat->store->ops->insert(cat->store, ns, ident->name, location, err);
    if (rc != KN_OK) {
        kn_table_free(tbl);
        return rc;
    }
    *ret = tbl;
    return KN_OK;
}

static KnCode jdbc_rename(KnCatalog *base, const KnTableIdent *from, const KnTableIdent *to,
                          KnErr *err)
{
    JdbcCatalog *cat = (JdbcCatalog *)base;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnStoreName old = {.name = from->name}, new = {.name = to->name};
    const char *location = NULL;
    KN_TRY(namespace_text(arena, from->levels, from->n_levels, &old.ns, err));
    KN_TRY(namespace_text(arena, to->levels, to->n_levels, &new.ns, err));
    KN_TRY(cat->store->ops->find(cat->store, arena, old.ns, old.name, &location, err));
    KN_TRY(cat->store->ops->namespace_add(cat->store, new.ns, err));
    return cat->store->ops->rename(cat->store, &old, &new, err);
}

typedef struct Listing {
    KnTableListFn fn;
    void *arg;
} Listing;

static KnCode list_one(void *arg, const char *ns, const char *name, KnErr *err)
{
    const Listing *listing = arg;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    size_t n = 1;
    for (const char *p = ns; *p; p++)
        n += *p == '.';
    const char **levels = kn_arena_alloc(arena, n * sizeof(*levels));
    char *text = kn_arena_strdup(arena, ns);
    for (size_t i = 0; i < n; i++) {
        levels[i] = text;
        text += strcspn(text, ".");
        if (*text)
            *text++ = '\0';
    }
    KnTableIdent ident = {.levels = levels, .n_levels = n, .name = name};
    return listing->fn(listing->arg, &ident, err);
}

static KnCode jdbc_list(KnCatalog *base, KnTableListFn fn, void *arg, KnErr *err)
{
    JdbcCatalog *cat = (JdbcCatalog *)base;
    Listing listing = {fn, arg};
    return cat->store->ops->list(cat->store, list_one, &listing, err);
}

static KnCode jdbc_create_namespace(KnCatalog *base, const char *const *levels, size_t n,
                                    KnErr *err)
{
    JdbcCatalog *cat = (JdbcCatalog *)base;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const char *ns = NULL;
    KN_TRY(namespace_text(arena, levels, n, &ns, err));
    return cat->store->ops->namespace_add(cat->store, ns, err);
}

static void jdbc_close(KnCatalog *base)
{
    JdbcCatalog *cat = (JdbcCatalog *)base;
    if (cat->store)
        cat->store->ops->close(cat->store);
    kn_io_close(cat->io);
    kn_arena_free(cat->arena);
    free(cat);
}

static const KnCatalogOps jdbc_ops = {
    .kind = "jdbc-sqlite",
    .read_only = false,
    .id = jdbc_id,
    .load = jdbc_load,
    .create = jdbc_create,
    .commit = jdbc_commit,
    .drop = jdbc_drop,
    .register_table = jdbc_register,
    .rename = jdbc_rename,
    .list = jdbc_list,
    .create_namespace = jdbc_create_namespace,
    .close = jdbc_close,
};

static KnCode fill(JdbcCatalog *cat, const KnLocator *loc, bool create_db, KnErr *err)
{
    const char *db = NULL, *name = loc->catalog ? loc->catalog : "knut";
    KN_TRY(kn_locator_warehouse(loc, cat->arena, &cat->warehouse, &db, err));
    KN_TRY(kn_locator_io(loc, kn_str(cat->warehouse), &cat->io, err));
    if (create_db && !kn_s3_is_location(kn_str(cat->warehouse)))
        KN_TRY(kn_io_prepare_dir(cat->io, kn_str(cat->warehouse), err));
    if (!strncmp(db, "postgresql:", 11))
        return kn_err_set(err, KN_E_UNSUPPORTED,
                          "--db postgresql://… is not done yet: give a SQLite file");
    KN_TRY(kn_store_sqlite_open(db, name, create_db, &cat->store, err));
    char *real = realpath(db, NULL);
    cat->id = kn_arena_printf(cat->arena, "jdbc:%s#%s", real ? real : db, name);
    free(real);
    return KN_OK;
}

KnCode kn_catalog_jdbc_open(const KnLocator *loc, bool create_db, KnCatalog **ret, KnErr *err)
{
    JdbcCatalog *cat = calloc(1, sizeof(*cat));
    if (!cat)
        abort();
    cat->base.ops = &jdbc_ops;
    cat->arena = kn_arena_new(0);
    KnCode rc = fill(cat, loc, create_db, err);
    if (rc != KN_OK) {
        jdbc_close(&cat->base);
        return rc;
    }
    *ret = &cat->base;
    return KN_OK;
}

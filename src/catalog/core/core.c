/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core.c - opening and closing, documents, and what all operations of the core do; see core.h.
 *
 * Order of locks: a table's turn, then the group's queue, then mirror, cache or store, each of
 * which is held for a moment and takes no other.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "base/random.h"
#include "base/stop.h"
#include "catalog/core/core_internal.h"
#include "catalog/metadata_file.h"

enum { CACHE_BYTES = 64 << 20, BACKOFF_US = 500, BACKOFF_MAX_US = 100000 };

/* ---- names ---- */

KnCode kn_core_name(KnArena *arena, const KnTableIdent *ident, KnStoreName *ret, KnErr *err)
{
    KnStoreName name = {.name = ident->name};
    KN_TRY(kn_names_join(arena, ident->levels, ident->n_levels, &name.ns, err));
    KN_TRY(kn_name_check(kn_str(ident->name), "name of a table", err));
    *ret = name;
    return KN_OK;
}

static KnCode missing(const KnStoreName *name, bool is_view, KnErr *err)
{
    return kn_err_about(err, KN_E_NOTFOUND, is_view ? KN_ABOUT_VIEW : KN_ABOUT_TABLE,
                        "%s does not exist: %s.%s", is_view ? "View" : "Table", name->ns,
                        name->name);
}

KnCode kn_core_find(KnCatalogCore *core, const KnStoreName *name, bool is_view, KnPointer **ret,
                    KnErr *err)
{
    KnPointer *ptr = NULL;
    KN_TRY(kn_mirror_find(core->mirror, name, &ptr, err));
    if (!ptr || kn_pointer_is_view(ptr) != is_view) {
        kn_pointer_unref(ptr);
        return missing(name, is_view, err);
    }
    *ret = ptr;
    return KN_OK;
}

KnCode kn_core_refuse_taken(KnCatalogCore *core, const KnStoreName *name, bool is_view, KnErr *err)
{
    KN_POINTER_AUTO ptr = NULL;
    KN_TRY(kn_mirror_find(core->mirror, name, &ptr, err));
    if (!ptr)
        return KN_OK;
    bool by_view = kn_pointer_is_view(ptr);
    return kn_err_about(err, KN_E_EXISTS, by_view ? KN_ABOUT_VIEW : KN_ABOUT_TABLE,
                        "%s %salready exists: %s.%s", by_view ? "View" : "Table",
                        by_view == is_view ? "" : "with same name ", name->ns, name->name);
}

KnCode kn_core_require_namespace(KnCatalogCore *core, const char *ns, KnErr *err)
{
    bool found = core->lax_namespaces;
    if (!found)
        KN_TRY(kn_store_namespace_exists(core->store, ns, &found, err));
    if (!found)
        return kn_err_about(err, KN_E_NOTFOUND, KN_ABOUT_NAMESPACE, "Namespace does not exist: %s",
                            ns);
    return KN_OK;
}

KnChange kn_core_namespace_change(const KnCatalogCore *core, const char *ns)
{
    return (KnChange){.kind = core->lax_namespaces ? KN_CHANGE_ADD_NS : KN_CHANGE_REQUIRE_NS,
                      .event = -1,
                      .name.ns = ns};
}

KnCode kn_core_change(KnCatalogCore *core, const KnChange *changes, size_t n, KnErr *err)
{
    KnUnit unit = {.changes = changes, .n = n};
    return kn_group_commit(core->group, &unit, err);
}

void kn_core_back_off(int tries)
{
    int64_t pause = BACKOFF_US;
    for (int i = 0; i < tries && pause < BACKOFF_MAX_US; i++)
        pause *= 2;
    KnRng rng = {(uint64_t)kn_random_id()};
    (void)kn_stop_wait((int64_t)kn_rng_below(&rng, (uint64_t)pause));
}

/* ---- documents ---- */

/* Java's words; what a server answers about a pointer whose document is gone. */
static KnCode gone(const char *location, KnErr *err)
{
    return kn_err_about(err, KN_E_NOTFOUND, KN_ABOUT_FILE,
                        "Failed to open input stream for file: %s: the metadata document is not "
                        "there",
                        location);
}

static KnCode fetch(KnCatalogCore *core, const char *location, KnDocument **ret, KnErr *err)
{
    KnFileIO *io = NULL;
    KN_BUF_AUTO raw = {0}, plain = {0};
    kn_buf_init(&raw, KN_METADATA_FILE_MAX);
    kn_buf_init(&plain, KN_METADATA_FILE_MAX);
    KN_TRY(kn_core_io(core, kn_str(location), &io, err));
    KnCode rc = kn_io_read_all(io, kn_str(location), KN_METADATA_FILE_MAX, &raw, err);
    if (rc == KN_E_NOTFOUND)
        return gone(location, err);
    KN_TRY(rc);
    KnStr text = {raw.data, raw.len};
    KN_TRY(kn_err_wrap(err, kn_metadata_gunzip(&text, &plain, err), "%s", location));
    size_t len = 0;
    char *bytes = kn_buf_steal(text.ptr == raw.data ? &raw : &plain, &len);
    *ret = kn_document_new(location, bytes, len);
    return KN_OK;
}

/* Parsing is the check: what is not a table's metadata must not go out as such. */
static KnCode check_kind(KnDocument *doc, bool is_view, KnErr *err)
{
    if (is_view) {
        KN_VIEW_AUTO view = NULL;
        return kn_document_view(doc, &view, err);
    }
    KN_METADATA_AUTO md = NULL;
    return kn_document_metadata(doc, &md, err);
}

/* A cached document stands for its file. Where asking costs next to nothing, it is asked whether
 * that is still there: a table that cannot be read must not look whole until the next start. */
KnCode kn_core_check_there(const char *location, KnErr *err)
{
    const char *path = !strncmp(location, "file:///", 8) ? location + 7
                       : !strncmp(location, "file:/", 6) ? location + 5
                                                         : location;
    return *path != '/' || access(path, F_OK) == 0 ? KN_OK : gone(location, err);
}

KnCode kn_core_read(KnCatalogCore *core, const char *location, bool is_view, KnDocument **ret,
                    KnErr *err)
{
    KnDocument *doc = kn_document_cache_find(core->cache, location);
    if (doc && kn_core_check_there(location, err) != KN_OK) {
        kn_document_unref(doc);
        return KN_E_NOTFOUND;
    }
    if (!doc) {
        KN_TRY(fetch(core, location, &doc, err));
        KnCode rc = check_kind(doc, is_view, err);
        if (rc != KN_OK) {
            kn_document_unref(doc);
            return rc;
        }
        kn_document_cache_put(core->cache, doc);
    }
    *ret = doc;
    return KN_OK;
}

KnCode kn_core_write(KnCatalogCore *core, const KnDocument *doc, KnErr *err)
{
    const char *location = kn_document_location(doc);
    KnFileIO *io = NULL;
    KN_TRY(kn_core_io(core, kn_str(location), &io, err));
    KnCode rc = kn_metadata_file_write_text(io, kn_document_bytes(doc), location, err);
    if (rc == KN_E_UNKNOWN) /* no pointer is at it */
        KN_IGNORE(kn_io_remove(io, kn_str(location), NULL));
    /* The place is of our choosing: that it cannot be written is not the client's fault. */
    if (rc == KN_E_INVAL || rc == KN_E_NOTFOUND)
        return kn_err_recode(err, KN_E_IO);
    return kn_io_settled(rc, err);
}

void kn_core_remove(KnCatalogCore *core, const char *location)
{
    KnFileIO *io = NULL;
    if (kn_core_io(core, kn_str(location), &io, NULL) == KN_OK)
        KN_IGNORE(kn_io_remove(io, kn_str(location), NULL));
}

/* ---- opening ---- */

const char *kn_core_id(const KnCatalogCore *core)
{
    return kn_store_id(core->store);
}

const char *kn_core_warehouse(const KnCatalogCore *core)
{
    return core->warehouse;
}

KnCode kn_core_ping(KnCatalogCore *core, KnErr *err)
{
    return kn_store_ping(core->store, err);
}

KnCatalog *kn_core_catalog(KnCatalogCore *core)
{
    return core->facade;
}

static void before_batch(void *arg)
{
    kn_mirror_before(((KnCatalogCore *)arg)->mirror);
}

static void after_batch(void *arg, KnUnit *const *units, size_t n)
{
    KnCatalogCore *core = arg;
    kn_mirror_after(core->mirror, units, n);
    pthread_mutex_lock(&core->lock);
    core->n_commits++;
    pthread_cond_broadcast(&core->happened);
    pthread_mutex_unlock(&core->lock);
}

static void init_locks(KnCatalogCore *core)
{
    core->turns = kn_core_turns_new();
    (void)pthread_mutex_init(&core->lock, NULL);
    pthread_condattr_t attr;
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&core->happened, &attr);
    (void)pthread_condattr_destroy(&attr);
}

KnCatalogCore *kn_core_close(KnCatalogCore *core)
{
    if (!core)
        return NULL;
    kn_core_facade_free(core->facade);
    kn_group_free(core->group);
    kn_mirror_free(core->mirror);
    kn_lists_free(core->lists);
    kn_document_cache_free(core->cache);
    kn_store_close(core->store);
    kn_io_close(core->io);
    for (size_t i = 0; i < core->n_others; i++)
        kn_io_close(core->others[i].io);
    kn_core_turns_free(core->turns);
    (void)pthread_mutex_destroy(&core->lock);
    (void)pthread_cond_destroy(&core->happened);
    kn_arena_free(core->arena);
    free(core);
    return NULL;
}

static KnCode set_places(KnCatalogCore *core, const KnCoreOptions *opts, KnErr *err)
{
    const char **allowed = kn_arena_alloc(core->arena, (opts->n_allowed + 1) * sizeof(*allowed));
    KnStr root = kn_str(opts->warehouse);
    while (root.len > 1 && root.ptr[root.len - 1] == '/')
        root.len--;
    core->warehouse = kn_arena_strndup(core->arena, root.ptr, root.len);
    KN_TRY(kn_place_normal(core->arena, root, &allowed[0], err));
    for (size_t i = 0; i < opts->n_allowed; i++)
        KN_TRY(kn_place_normal(core->arena, kn_str(opts->allowed[i]), &allowed[i + 1], err));
    core->allowed = allowed;
    core->n_allowed = opts->n_allowed + 1;
    return KN_OK;
}

static KnCode fill(KnCatalogCore *core, const KnCoreOptions *opts, KnErr *err)
{
    const KnStoreOptions store = {.db = opts->db,
                                  .catalog = opts->catalog ? opts->catalog : "knut",
                                  .create = opts->create_db,
                                  .connections = opts->connections,
                                  .keep_events = opts->keep_events};
    KN_TRY(set_places(core, opts, err));
    if (!core->io)
        KN_TRY(kn_io_open_for(kn_str(core->warehouse), &core->io, err));
    KN_TRY(kn_store_open(&store, &core->store, err));
    core->mirror = kn_mirror_new(core->store);
    core->lists = kn_lists_new();
    core->group = kn_group_new(core->store, before_batch, after_batch, core);
    core->cache = kn_document_cache_new(opts->cache_bytes ? opts->cache_bytes : CACHE_BYTES);
    core->facade = kn_core_facade_new(core);
    return KN_OK;
}

KnCode kn_core_open(const KnCoreOptions *opts, KnCatalogCore **ret, KnErr *err)
{
    KnCatalogCore *core = calloc(1, sizeof(*core));
    if (!core)
        abort();
    core->arena = kn_arena_new(0);
    core->io = opts->io;
    core->any_location = opts->any_location;
    core->lax_namespaces = opts->lax_namespaces;
    init_locks(core);
    KnCode rc = fill(core, opts, err);
    if (rc != KN_OK) {
        kn_core_close(core);
        return rc;
    }
    *ret = core;
    return KN_OK;
}

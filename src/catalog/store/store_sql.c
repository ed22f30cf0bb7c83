/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_sql.c - a store over a driver: its connections, and what is read through them.
 *
 * Connections for reading are lent to one thread at a time; a thread that finds none waits. One
 * that broke (the server was restarted) is thrown away, and the question asked once more on a new
 * one: reading twice is harmless.
 */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "catalog/store/store_internal.h"

enum { SQLITE_READERS = 4, POSTGRES_READERS = 8 };

/* ---- connections ---- */

KnCode kn_store_lend(KnStore *store, KnSqlConn **ret, KnErr *err)
{
    KnSqlConn *conn = NULL;
    pthread_mutex_lock(&store->lock);
    while (!store->n_idle && store->n_made >= store->max_made)
        pthread_cond_wait(&store->freed, &store->lock);
    if (store->n_idle)
        conn = store->idle[--store->n_idle];
    else
        store->n_made++;
    pthread_mutex_unlock(&store->lock);
    if (conn && !conn->ops->broken(conn)) {
        *ret = conn;
        return KN_OK;
    }
    if (conn)
        conn->ops->disconnect(conn);
    KnCode rc = store->driver->ops->connect(store->driver, ret, err);
    if (rc != KN_OK) {
        pthread_mutex_lock(&store->lock);
        store->n_made--;
        pthread_cond_signal(&store->freed);
        pthread_mutex_unlock(&store->lock);
    }
    return rc;
}

void kn_store_give_back(KnStore *store, KnSqlConn *conn)
{
    pthread_mutex_lock(&store->lock);
    store->idle[store->n_idle++] = conn;
    pthread_cond_signal(&store->freed);
    pthread_mutex_unlock(&store->lock);
}

KnCode kn_store_ask(KnStore *store, KnSqlCall *call, KnErr *err)
{
    KnCode rc = KN_OK;
    for (int i = 0; i < 2; i++) {
        KnSqlConn *conn = NULL;
        KN_TRY(kn_store_lend(store, &conn, err));
        if (i && call->fn)
            KN_IGNORE(call->fn(call->arg, NULL, NULL));
        rc = conn->ops->run(conn, call, err);
        bool again = rc != KN_OK && conn->ops->broken(conn);
        kn_store_give_back(store, conn);
        if (!again)
            break;
    }
    return rc;
}

/* ---- questions ---- */

KnCode kn_store_ping(KnStore *store, KnErr *err)
{
    KnSqlCall call = {.which = KN_SQL_PING};
    return kn_store_ask(store, &call, err);
}

typedef struct Found {
    KnArena *arena;
    KnStoreEntry entry;
    bool row;
} Found;

static KnCode note_entry(void *arg, const char *const *values, KnErr *err)
{
    (void)err;
    Found *found = arg;
    if (!values)
        return KN_OK;
    found->row = true;
    if (values[0])
        found->entry.location = kn_arena_strdup(found->arena, values[0]);
    found->entry.is_view = values[1] && !strcmp(values[1], "VIEW");
    return KN_OK;
}

KnCode kn_store_find(KnStore *store, KnArena *arena, const KnStoreName *name, KnStoreEntry *ret,
                     KnErr *err)
{
    Found found = {.arena = arena};
    KnSqlCall call = {.which = KN_SQL_FIND,
                      .params = {store->catalog, name->ns, name->name},
                      .fn = note_entry,
                      .arg = &found};
    KN_TRY(kn_store_ask(store, &call, err));
    if (found.row && !found.entry.location)
        return kn_err_set(err, KN_E_CORRUPT, "catalog %s: table %s.%s has no metadata_location",
                          store->driver->name, name->ns, name->name);
    *ret = found.entry;
    return KN_OK;
}

/* Names are gathered before anybody is told, so that a question asked twice is told once, and no
 * connection is held while the caller works. */
typedef struct Names {
    KnArena *arena;
    KN_VEC(KnStoreName) all;
    bool pairs;
} Names;

static KnCode note_name(void *arg, const char *const *values, KnErr *err)
{
    (void)err;
    Names *names = arg;
    if (!values) {
        names->all.len = 0;
        return KN_OK;
    }
    const char *first = kn_arena_strdup(names->arena, values[0] ? values[0] : "");
    KnStoreName *name = kn_vec_push(&names->all);
    if (names->pairs)
        *name = (KnStoreName){first, kn_arena_strdup(names->arena, values[1] ? values[1] : "")};
    else
        *name = (KnStoreName){.name = first};
    return KN_OK;
}

static KnCode tell(const Names *names, const char *ns, KnStoreNameFn fn, void *arg, KnErr *err)
{
    for (size_t i = 0; i < names->all.len; i++) {
        const KnStoreName *name = &names->all.items[i];
        KN_TRY(fn(arg, names->pairs ? name->ns : ns, name->name, err));
    }
    return KN_OK;
}

/* The limit as a text; 0 is none. */
static const char *limit_text(KnArena *arena, size_t limit)
{
    return kn_arena_printf(arena, "%llu",
                           limit ? (unsigned long long)limit : (unsigned long long)INT64_MAX);
}

KnCode kn_store_list(KnStore *store, const KnStoreList *list, KnStoreNameFn fn, void *arg,
                     KnErr *err)
{
    if (list->views && store->driver->dialect.no_type)
        return KN_OK;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    Names names = {.arena = arena};
    KnSqlCall call = {.which = KN_SQL_LIST,
                      .params = {store->catalog, list->ns, list->views ? "VIEW" : "TABLE",
                                 list->after, limit_text(arena, list->limit)},
                      .fn = note_name,
                      .arg = &names};
    KnCode rc = kn_store_ask(store, &call, err);
    if (rc == KN_OK)
        rc = tell(&names, list->ns, fn, arg, err);
    kn_vec_done(&names.all);
    return rc;
}

KnCode kn_store_list_all(KnStore *store, KnStoreNameFn fn, void *arg, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    Names names = {.arena = arena, .pairs = true};
    KnSqlCall call = {
        .which = KN_SQL_LIST_ALL, .params = {store->catalog}, .fn = note_name, .arg = &names};
    KnCode rc = kn_store_ask(store, &call, err);
    if (rc == KN_OK)
        rc = tell(&names, NULL, fn, arg, err);
    kn_vec_done(&names.all);
    return rc;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const KnStoreName *)a)->name, ((const KnStoreName *)b)->name);
}

KnCode kn_store_namespaces(KnStore *store, const char *prefix, KnStoreNameFn fn, void *arg,
                           KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    Names names = {.arena = arena};
    KnSqlCall call = {.which = KN_SQL_NAMESPACES,
                      .params = {store->catalog, prefix},
                      .fn = note_name,
                      .arg = &names};
    KnCode rc = kn_store_ask(store, &call, err);
    if (names.all.len)
        qsort(names.all.items, names.all.len, sizeof(*names.all.items), by_name);
    for (size_t i = 0; rc == KN_OK && i < names.all.len; i++)
        rc = fn(arg, names.all.items[i].name, NULL, err);
    kn_vec_done(&names.all);
    return rc;
}

static KnCode note_row(void *arg, const char *const *values, KnErr *err)
{
    (void)err;
    if (values)
        *(bool *)arg = true;
    return KN_OK;
}

KnCode kn_store_namespace_exists(KnStore *store, const char *ns, bool *ret, KnErr *err)
{
    bool found = false;
    KnSqlCall call = {
        .which = KN_SQL_NS_EXACT, .params = {store->catalog, ns}, .fn = note_row, .arg = &found};
    KN_TRY(kn_store_ask(store, &call, err));
    if (!found) {
        KN_ARENA_AUTO arena = kn_arena_new(0);
        call.which = KN_SQL_NS_BELOW;
        call.params[1] = kn_arena_printf(arena, "%s.", ns);
        KN_TRY(kn_store_ask(store, &call, err));
    }
    *ret = found;
    return KN_OK;
}

static KnCode note_property(void *arg, const char *const *values, KnErr *err)
{
    json_t *object = arg;
    if (!values)
        return json_object_clear(object) == 0 ? KN_OK : KN_E_NOMEM;
    if (!strcmp(values[0], "exists")) /* only says that the namespace is there */
        return KN_OK;
    if (json_object_set_new(object, values[0], json_string(values[1] ? values[1] : "")) != 0)
        return kn_err_set(err, KN_E_CORRUPT, "a namespace's property '%s' is not UTF-8", values[0]);
    return KN_OK;
}

KnCode kn_store_namespace_get(KnStore *store, const char *ns, json_t **ret, KnErr *err)
{
    KN_JSON_AUTO object = json_object();
    KnSqlCall call = {
        .which = KN_SQL_NS_GET, .params = {store->catalog, ns}, .fn = note_property, .arg = object};
    KN_TRY(kn_store_ask(store, &call, err));
    *ret = json_incref(object);
    return KN_OK;
}

/* ---- the log ---- */

typedef struct Events {
    KnArena *arena;
    KN_VEC(KnStoreEvent) all;
} Events;

static int64_t number(const char *text)
{
    int64_t value = -1;
    if (!text || !kn_str_to_i64(kn_str(text), &value))
        return -1;
    return value;
}

static const char *text_of(KnArena *arena, const char *text)
{
    return kn_arena_strdup(arena, text ? text : "");
}

static KnCode note_event(void *arg, const char *const *v, KnErr *err)
{
    (void)err;
    Events *events = arg;
    if (!v) {
        events->all.len = 0;
        return KN_OK;
    }
    *kn_vec_push(&events->all) = (KnStoreEvent){
        .seq = number(v[0]),
        .timestamp_ms = number(v[1]),
        .kind = (int)number(v[2]),
        .is_view = number(v[3]) > 0,
        .name = {text_of(events->arena, v[4]), text_of(events->arena, v[5])},
        .from = {v[6] ? text_of(events->arena, v[6]) : NULL,
                 v[7] ? text_of(events->arena, v[7]) : NULL},
        .snapshot_id = number(v[8]),
        .location = text_of(events->arena, v[9]),
    };
    return KN_OK;
}

/* Another process may have made the log since. */
static KnCode find_log(KnStore *store, KnErr *err)
{
    if (atomic_load(&store->driver->has_log))
        return KN_OK;
    pthread_mutex_lock(&store->lock);
    KnCode rc = store->driver->ops->prepare(store->driver, false, err);
    pthread_mutex_unlock(&store->lock);
    return rc;
}

/* Numbers have no gaps: what is missing behind a position has been dropped. */
static KnCode dropped(int64_t after, int64_t first, KnErr *err)
{
    return kn_err_set(err, KN_E_NOTFOUND,
                      "the log of commits begins with %lld: what came after %lld was dropped "
                      "('knut catalog serve --log-keep'); look at the tables as they are now, and "
                      "go on from there",
                      (long long)first, (long long)after);
}

KnCode kn_store_events(KnStore *store, int64_t after, size_t limit, KnStoreEventFn fn, void *arg,
                       KnErr *err)
{
    KN_TRY(find_log(store, err));
    if (!atomic_load(&store->driver->has_log))
        return KN_OK;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    Events events = {.arena = arena};
    KnSqlCall call = {.which = KN_SQL_LOG_SINCE,
                      .params = {store->catalog, kn_arena_printf(arena, "%lld", (long long)after),
                                 limit_text(arena, limit)},
                      .fn = note_event,
                      .arg = &events};
    KnCode rc = kn_store_ask(store, &call, err);
    if (rc == KN_OK && after > 0 && events.all.len && events.all.items[0].seq != after + 1)
        rc = dropped(after, events.all.items[0].seq, err);
    for (size_t i = 0; rc == KN_OK && i < events.all.len; i++)
        rc = fn(arg, &events.all.items[i], err);
    kn_vec_done(&events.all);
    return rc;
}

static KnCode note_number(void *arg, const char *const *values, KnErr *err)
{
    (void)err;
    *(int64_t *)arg = values ? number(values[0]) : 0;
    return KN_OK;
}

KnCode kn_store_last_event(KnStore *store, int64_t *ret, KnErr *err)
{
    KN_TRY(find_log(store, err));
    int64_t last = 0;
    if (atomic_load(&store->driver->has_log)) {
        KnSqlCall call = {
            .which = KN_SQL_SEQ_GET, .params = {store->catalog}, .fn = note_number, .arg = &last};
        KN_TRY(kn_store_ask(store, &call, err));
    }
    *ret = last;
    return KN_OK;
}

/* ---- opening ---- */

bool kn_store_is_postgres(const char *db)
{
    return !strncmp(db, "postgresql:", 11) || !strncmp(db, "postgres:", 9);
}

const char *kn_store_id(const KnStore *store)
{
    return store->id;
}

const char *kn_store_name(const KnStore *store)
{
    return store->driver->name;
}

bool kn_store_is_sqlite(const KnStore *store)
{
    return store->sqlite;
}

uint64_t kn_store_generation(const KnStore *store)
{
    return store->driver->ops->generation(store->driver);
}

KnStore *kn_store_close(KnStore *store)
{
    if (!store)
        return NULL;
    for (int i = 0; i < store->n_idle; i++)
        store->idle[i]->ops->disconnect(store->idle[i]);
    if (store->writer)
        store->writer->ops->disconnect(store->writer);
    if (store->driver)
        store->driver->ops->close(store->driver);
    (void)pthread_mutex_destroy(&store->lock);
    (void)pthread_cond_destroy(&store->freed);
    free((void *)store->idle);
    free(store->catalog);
    free(store->id);
    free(store);
    return NULL;
}

static void make_id(KnStore *store, const char *db)
{
    KnBuf id;
    kn_buf_init(&id, 1 << 16);
    char *real = store->sqlite ? realpath(db, NULL) : NULL;
    const char *place = store->driver->id ? store->driver->id : db;
    kn_buf_printf(&id, "jdbc:%s#%s", real ? real : place, store->catalog);
    free(real);
    store->id = kn_buf_steal(&id, NULL);
}

static KnCode open_driver(KnStore *store, const KnStoreOptions *opts, KnErr *err)
{
    if (store->sqlite && strstr(opts->db, "://")) /* not shown: it may hold a password */
        return kn_err_set(err, KN_E_INVAL,
                          "--db takes the path of a SQLite file, or postgresql://HOST/DATABASE");
    if (store->sqlite)
        KN_TRY(kn_sql_sqlite_new(opts->db, opts->create, &store->driver, err));
    else
        KN_TRY(kn_sql_postgres_new(opts->db, &store->driver, err));
    KN_TRY(store->driver->ops->prepare(store->driver, opts->create, err));
    make_id(store, opts->db);
    return KN_OK;
}

KnCode kn_store_open(const KnStoreOptions *opts, KnStore **ret, KnErr *err)
{
    KnStore *store = calloc(1, sizeof(*store));
    if (!store)
        abort();
    store->sqlite = !kn_store_is_postgres(opts->db);
    store->max_made = opts->connections > 0 ? opts->connections
                      : store->sqlite       ? SQLITE_READERS
                                            : POSTGRES_READERS;
    store->keep_events = opts->keep_events;
    store->idle = calloc((size_t)store->max_made, sizeof(KnSqlConn *));
    store->catalog = strdup(opts->catalog);
    if (!store->idle || !store->catalog)
        abort();
    (void)pthread_mutex_init(&store->lock, NULL);
    (void)pthread_cond_init(&store->freed, NULL);
    KnCode rc = open_driver(store, opts, err);
    if (rc != KN_OK) {
        kn_store_close(store);
        return rc;
    }
    *ret = store;
    return KN_OK;
}

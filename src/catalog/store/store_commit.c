/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_commit.c - many units in one transaction of the database, each with its own verdict.
 *
 * The row of knut_commit_seq is locked first: it makes the log's numbers gapless and in the order
 * of commits, and as everybody takes it first there is no deadlock between processes. A unit whose
 * change is refused is rolled back alone (to a savepoint, where it had changed something already),
 * and its verdict says why; the others go on. A connection that breaks before COMMIT was sent has
 * changed nothing: the batch is run once more on a new one. When the answer to COMMIT is lost the
 * driver finds out (ops->settle), else every unit of the batch is KN_E_UNKNOWN.
 */
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "catalog/store/store_internal.h"

enum { BATCH_TRIES = 4, PRUNE_STEP = 256 };

typedef struct Batch {
    KnStore *store;
    KnSqlConn *conn;
    KnUnit *const *units;
    size_t n;
    int64_t seq; /* the last one given */
} Batch;

static KnCode note_row(void *arg, const char *const *values, KnErr *err)
{
    (void)values, (void)err;
    *(bool *)arg = true;
    return KN_OK;
}

static KnCode note_number(void *arg, const char *const *values, KnErr *err)
{
    (void)err;
    int64_t value = -1;
    if (values[0] && kn_str_to_i64(kn_str(values[0]), &value))
        *(int64_t *)arg = value;
    return KN_OK;
}

static KnCode has_row(Batch *b, KnSqlStatement which, const char *param, bool *ret, KnErr *err)
{
    bool found = false;
    KnSqlCall call = {
        .which = which, .params = {b->store->catalog, param}, .fn = note_row, .arg = &found};
    KN_TRY(b->conn->ops->run(b->conn, &call, err));
    *ret = found;
    return KN_OK;
}

/* ---- namespaces ---- */

static KnCode below(Batch *b, const char *ns, bool *ret, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    return has_row(b, KN_SQL_NS_BELOW, kn_arena_printf(arena, "%s.", ns), ret, err);
}

static KnCode ns_exists(Batch *b, const char *ns, bool *ret, KnErr *err)
{
    KN_TRY(has_row(b, KN_SQL_NS_EXACT, ns, ret, err));
    return *ret ? KN_OK : below(b, ns, ret, err);
}

static KnCode ns_require(Batch *b, const char *ns, KnErr *err)
{
    bool found = false;
    KN_TRY(ns_exists(b, ns, &found, err));
    if (!found)
        return kn_err_about(err, KN_E_NOTFOUND, KN_ABOUT_NAMESPACE, "Namespace does not exist: %s",
                            ns);
    return KN_OK;
}

static KnCode ns_run(Batch *b, KnSqlStatement which, const char *ns, const char *key,
                     const char *value, KnErr *err)
{
    KnSqlCall call = {.which = which, .params = {b->store->catalog, ns, key, value}};
    return b->conn->ops->run(b->conn, &call, err);
}

static KnCode ns_put(Batch *b, const KnChange *ch, KnErr *err)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)ch->properties, key, value)
    {
        if (strcmp(key, "exists") != 0)
            KN_TRY(ns_run(b, KN_SQL_NS_PUT, ch->name.ns, key, json_string_value(value), err));
    }
    return KN_OK;
}

static KnCode ns_create(Batch *b, const KnChange *ch, KnErr *err)
{
    bool found = false;
    KN_TRY(ns_exists(b, ch->name.ns, &found, err));
    if (found)
        return kn_err_about(err, KN_E_EXISTS, KN_ABOUT_NAMESPACE, "Namespace already exists: %s",
                            ch->name.ns);
    KN_TRY(ns_run(b, KN_SQL_NS_ADD, ch->name.ns, NULL, NULL, err));
    return ns_put(b, ch, err);
}

static KnCode ns_drop(Batch *b, const KnChange *ch, KnErr *err)
{
    bool entries = false, inner = false;
    KN_TRY(ns_require(b, ch->name.ns, err));
    KN_TRY(has_row(b, KN_SQL_NS_ENTRIES, ch->name.ns, &entries, err));
    KN_TRY(below(b, ch->name.ns, &inner, err));
    if (entries || inner)
        return kn_err_about(err, KN_E_REFUSED, KN_ABOUT_NOT_EMPTY,
                            "Namespace %s is not empty: drop its %s first", ch->name.ns,
                            entries ? "tables and views" : "namespaces");
    return ns_run(b, KN_SQL_NS_DELETE, ch->name.ns, NULL, NULL, err);
}

static KnCode ns_update(Batch *b, const KnChange *ch, KnErr *err)
{
    KN_TRY(ns_require(b, ch->name.ns, err));
    KN_TRY(ns_run(b, KN_SQL_NS_ADD, ch->name.ns, NULL, NULL, err));
    size_t i;
    json_t *key;
    json_array_foreach(ch->removals, i, key)
    {
        const char *text = json_string_value(key);
        if (strcmp(text, "exists") != 0)
            KN_TRY(ns_run(b, KN_SQL_NS_UNSET, ch->name.ns, text, NULL, err));
    }
    return ns_put(b, ch, err);
}

/* ---- entries ---- */

static const char *type_of(bool is_view)
{
    return is_view ? "VIEW" : "TABLE";
}

static const char *word_of(bool is_view)
{
    return is_view ? "View" : "Table";
}

static KnErrSubject about(bool is_view)
{
    return is_view ? KN_ABOUT_VIEW : KN_ABOUT_TABLE;
}

typedef struct Entry {
    KnArena *arena;
    const char *location;
    bool found, is_view;
} Entry;

static KnCode note_entry(void *arg, const char *const *values, KnErr *err)
{
    (void)err;
    Entry *entry = arg;
    entry->found = true;
    entry->is_view = values[1] && !strcmp(values[1], "VIEW");
    entry->location = kn_arena_strdup(entry->arena, values[0] ? values[0] : "");
    return KN_OK;
}

static KnCode find(Batch *b, const KnStoreName *name, Entry *ret, KnErr *err)
{
    KnSqlCall call = {.which = KN_SQL_FIND,
                      .params = {b->store->catalog, name->ns, name->name},
                      .fn = note_entry,
                      .arg = ret};
    return b->conn->ops->run(b->conn, &call, err);
}

static KnCode missing(const KnChange *ch, KnErr *err)
{
    return kn_err_about(err, KN_E_NOTFOUND, about(ch->is_view), "%s does not exist: %s.%s",
                        word_of(ch->is_view), ch->name.ns, ch->name.name);
}

static KnCode taken(const KnChange *ch, const Entry *by, KnErr *err)
{
    if (by->is_view != ch->is_view)
        return kn_err_about(err, KN_E_EXISTS, about(by->is_view),
                            "%s with same name already exists: %s.%s", word_of(by->is_view),
                            ch->name.ns, ch->name.name);
    return kn_err_about(err, KN_E_EXISTS, about(ch->is_view), "%s already exists: %s.%s",
                        word_of(ch->is_view), ch->name.ns, ch->name.name);
}

static KnCode insert(Batch *b, const KnChange *ch, KnErr *err)
{
    if (ch->is_view && b->store->driver->dialect.no_type)
        return kn_err_set(err, KN_E_UNSUPPORTED,
                          "catalog %s has the old schema V0, which has no views: add the column "
                          "iceberg_type VARCHAR(5) to iceberg_tables",
                          b->store->driver->name);
    KnSqlCall call = {
        .which = KN_SQL_INSERT,
        .params = {b->store->catalog, ch->name.ns, ch->name.name, ch->to, type_of(ch->is_view)}};
    KN_TRY(b->conn->ops->run(b->conn, &call, err));
    if (call.changed)
        return KN_OK;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    Entry by = {.arena = arena, .is_view = ch->is_view};
    KN_TRY(find(b, &ch->name, &by, err));
    return taken(ch, &by, err);
}

static KnCode swap(Batch *b, const KnChange *ch, KnErr *err)
{
    KnSqlCall call = {.which = KN_SQL_SWAP,
                      .params = {b->store->catalog, ch->name.ns, ch->name.name, ch->from, ch->to,
                                 type_of(ch->is_view)}};
    KN_TRY(b->conn->ops->run(b->conn, &call, err));
    if (call.changed)
        return KN_OK;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    Entry now = {.arena = arena};
    KN_TRY(find(b, &ch->name, &now, err));
    if (!now.found || now.is_view != ch->is_view)
        return missing(ch, err);
    return kn_err_about(err, KN_E_CONFLICT, about(ch->is_view),
                        "another commit of %s.%s came first", ch->name.ns, ch->name.name);
}

static KnCode remove_entry(Batch *b, const KnChange *ch, KnErr *err)
{
    KnSqlCall call = {
        .which = KN_SQL_REMOVE,
        .params = {b->store->catalog, ch->name.ns, ch->name.name, type_of(ch->is_view)}};
    KN_TRY(b->conn->ops->run(b->conn, &call, err));
    return call.changed ? KN_OK : missing(ch, err);
}

static KnCode rename_entry(Batch *b, const KnChange *ch, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    Entry from = {.arena = arena}, to = {.arena = arena};
    KN_TRY(find(b, &ch->name, &from, err));
    if (!from.found || from.is_view != ch->is_view)
        return missing(ch, err);
    KN_TRY(find(b, &ch->to_name, &to, err));
    if (to.found)
        return kn_err_about(err, KN_E_EXISTS, about(to.is_view),
                            "Cannot rename %s.%s to %s.%s. %s already exists", ch->name.ns,
                            ch->name.name, ch->to_name.ns, ch->to_name.name, word_of(to.is_view));
    KnSqlCall call = {.which = KN_SQL_RENAME,
                      .params = {b->store->catalog, ch->name.ns, ch->name.name,
                                 type_of(ch->is_view), ch->to_name.ns, ch->to_name.name}};
    return b->conn->ops->run(b->conn, &call, err);
}

/* ---- a unit ---- */

static KnCode change(Batch *b, const KnChange *ch, KnErr *err)
{
    switch (ch->kind) {
    case KN_CHANGE_REQUIRE_NS:
        return ns_require(b, ch->name.ns, err);
    case KN_CHANGE_ADD_NS:
        return ns_run(b, KN_SQL_NS_ADD, ch->name.ns, NULL, NULL, err);
    case KN_CHANGE_CREATE_NS:
        return ns_create(b, ch, err);
    case KN_CHANGE_DROP_NS:
        return ns_drop(b, ch, err);
    case KN_CHANGE_UPDATE_NS:
        return ns_update(b, ch, err);
    case KN_CHANGE_INSERT:
        return insert(b, ch, err);
    case KN_CHANGE_SWAP:
        return swap(b, ch, err);
    case KN_CHANGE_REMOVE:
        return remove_entry(b, ch, err);
    case KN_CHANGE_RENAME:
        return rename_entry(b, ch, err);
    case KN_CHANGE_LOG:
        break;
    }
    return KN_OK;
}

static KnCode log_change(Batch *b, const KnChange *ch, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    bool renamed = ch->kind == KN_CHANGE_RENAME;
    const KnStoreName *name = renamed ? &ch->to_name : &ch->name;
    KnSqlCall call = {
        .which = KN_SQL_LOG_ADD,
        .params = {b->store->catalog, kn_arena_printf(arena, "%lld", (long long)++b->seq),
                   kn_arena_printf(arena, "%lld", (long long)kn_clock_wall_ms()),
                   kn_arena_printf(arena, "%d", ch->event), ch->is_view ? "1" : "0", name->ns,
                   name->name, renamed ? ch->name.ns : NULL, renamed ? ch->name.name : NULL,
                   kn_arena_printf(arena, "%lld", (long long)ch->snapshot_id),
                   ch->to ? ch->to : ""}};
    return b->conn->ops->run(b->conn, &call, err);
}

static KnCode run_changes(Batch *b, const KnUnit *unit, KnErr *err)
{
    for (size_t i = 0; i < unit->n; i++) {
        const KnChange *ch = &unit->changes[i];
        KN_TRY(change(b, ch, err));
        if (ch->event >= 0)
            KN_TRY(log_change(b, ch, err));
    }
    return KN_OK;
}

static KnCode mark(Batch *b, KnSqlStatement which, KnErr *err)
{
    KnSqlCall call = {.which = which};
    return b->conn->ops->run(b->conn, &call, err);
}

/* Only one that changes several things can stop half way. */
static bool needs_savepoint(const KnUnit *unit)
{
    size_t n = 0;
    for (size_t i = 0; i < unit->n; i++) {
        KnChangeKind kind = unit->changes[i].kind;
        n += kind != KN_CHANGE_REQUIRE_NS && kind != KN_CHANGE_LOG;
        if (kind == KN_CHANGE_CREATE_NS || kind == KN_CHANGE_UPDATE_NS)
            n += 2;
    }
    return n > 1;
}

/* A verdict that is the unit's own; others are of the database, and the batch's. */
static bool is_refusal(KnCode rc)
{
    return rc == KN_E_CONFLICT || rc == KN_E_EXISTS || rc == KN_E_NOTFOUND || rc == KN_E_REFUSED ||
           rc == KN_E_UNSUPPORTED;
}

static KnCode run_unit(Batch *b, KnUnit *unit, KnErr *err)
{
    bool save = needs_savepoint(unit);
    int64_t seq = b->seq;
    unit->err = (KnErr){0};
    if (save)
        KN_TRY(mark(b, KN_SQL_SAVEPOINT, err));
    unit->code = run_changes(b, unit, &unit->err);
    if (unit->code != KN_OK && !is_refusal(unit->code)) {
        *err = unit->err;
        return unit->code;
    }
    if (unit->code != KN_OK) {
        b->seq = seq;
        if (save)
            KN_TRY(mark(b, KN_SQL_ROLLBACK_TO, err));
    }
    return save ? mark(b, KN_SQL_RELEASE, err) : KN_OK;
}

/* ---- the batch ---- */

static KnCode lock_seq(Batch *b, KnErr *err)
{
    b->seq = -1;
    KnSqlCall call = {
        .which = KN_SQL_SEQ_LOCK, .params = {b->store->catalog}, .fn = note_number, .arg = &b->seq};
    KN_TRY(b->conn->ops->run(b->conn, &call, err));
    if (b->seq >= 0)
        return KN_OK;
    KnSqlCall init = {.which = KN_SQL_SEQ_INIT, .params = {b->store->catalog}};
    KN_TRY(b->conn->ops->run(b->conn, &init, err));
    return b->conn->ops->run(b->conn, &call, err);
}

static KnCode set_seq(Batch *b, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnSqlCall call = {
        .which = KN_SQL_SEQ_SET,
        .params = {b->store->catalog, kn_arena_printf(arena, "%lld", (long long)b->seq)}};
    return b->conn->ops->run(b->conn, &call, err);
}

/* Not with every commit, and never many rows at once: a log that was long is shortened bit by bit.
 */
static KnCode prune_log(Batch *b, int64_t before, KnErr *err)
{
    int64_t keep = b->store->keep_events, step = keep < PRUNE_STEP ? keep : PRUNE_STEP;
    if (keep <= 0 || b->seq <= keep || b->seq / step == before / step)
        return KN_OK;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnSqlCall call = {
        .which = KN_SQL_LOG_PRUNE,
        .params = {b->store->catalog, kn_arena_printf(arena, "%lld", (long long)(b->seq - keep))}};
    return b->conn->ops->run(b->conn, &call, err);
}

static KnCode run_units(Batch *b, bool *ret_any, KnErr *err)
{
    KN_TRY(b->conn->ops->begin(b->conn, err));
    KN_TRY(lock_seq(b, err));
    int64_t before = b->seq;
    for (size_t i = 0; i < b->n; i++) {
        KN_TRY(run_unit(b, b->units[i], err));
        *ret_any |= b->units[i]->code == KN_OK;
    }
    if (b->seq == before)
        return KN_OK;
    KN_TRY(set_seq(b, err));
    return prune_log(b, before, err);
}

/* Points for answers that are lost before and after the commit. */
static KnCode lost_at(const char *point, KnErr *err)
{
    KnCode rc = kn_fault_at(point, err);
    if (rc == KN_OK)
        return rc;
    return kn_err_recode(err, KN_E_UNKNOWN);
}

static KnCode run_batch(Batch *b, KnErr *err)
{
    bool any = false;
    KnCode rc = run_units(b, &any, err);
    if (rc == KN_OK && !any) {
        b->conn->ops->rollback(b->conn);
        return KN_OK;
    }
    if (rc == KN_OK)
        rc = kn_fault_at("catalog-before-commit", err);
    if (rc == KN_OK)
        rc = lost_at("catalog-pointer-not-moved", err);
    if (rc != KN_OK) {
        b->conn->ops->rollback(b->conn);
        return rc;
    }
    rc = b->conn->ops->commit(b->conn, err);
    return rc == KN_OK ? lost_at("catalog-pointer-moved", err) : rc;
}

/* The writer's connection, a new one when it broke; and the tables of the log. */
static KnCode get_ready(KnStore *store, KnErr *err)
{
    KnSqlDriver *drv = store->driver;
    if (drv->read_only)
        return kn_err_set(err, KN_E_IO,
                          "catalog %s cannot be written: no right to write the file or its folder",
                          drv->name);
    if (!atomic_load(&drv->has_log)) {
        pthread_mutex_lock(&store->lock);
        KnCode rc = drv->ops->prepare(drv, true, err);
        pthread_mutex_unlock(&store->lock);
        KN_TRY(rc);
    }
    if (store->writer && store->writer->ops->broken(store->writer)) {
        store->writer->ops->disconnect(store->writer);
        store->writer = NULL;
    }
    return store->writer ? KN_OK : drv->ops->connect(drv, &store->writer, err);
}

static KnCode try_batch(Batch *b, KnErr *err)
{
    KN_TRY(get_ready(b->store, err));
    b->conn = b->store->writer;
    KnCode rc = run_batch(b, err);
    if (rc == KN_E_UNKNOWN)
        rc = b->store->driver->ops->settle(b->store->driver, &b->store->writer, err);
    return rc;
}

/* What may be tried again with nothing changed: the connection broke before the end, or the
 * database chose us as the victim of a conflict between transactions. */
static bool may_retry(const Batch *b, KnCode rc)
{
    const KnSqlConn *conn = b->store->writer;
    if (b->store->sqlite || rc == KN_OK || rc == KN_E_UNKNOWN)
        return false;
    return rc == KN_E_BUSY || (conn && conn->ops->broken(conn));
}

void kn_store_commit(KnStore *store, KnUnit *const *units, size_t n)
{
    Batch b = {.store = store, .units = units, .n = n};
    KnErr err = {0};
    KnCode rc = KN_OK;
    for (int i = 0; i < BATCH_TRIES; i++) {
        rc = try_batch(&b, &err);
        if (!may_retry(&b, rc))
            break;
    }
    if (rc == KN_OK)
        return;
    bool doubtful = store->writer && store->writer->doubtful;
    if (store->writer)
        store->writer->doubtful = false;
    for (size_t i = 0; i < n; i++) {
        units[i]->code = rc;
        units[i]->err = err;
        units[i]->doubtful = doubtful;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core_commit.c - commits: of one table, and of several as one.
 *
 * A commit is a number of steps, one a table: newest document -> requirements -> updates -> next
 * document, written durably under a new name. Then all pointers move in one transaction of the
 * database, or none. A pointer that another writer has moved meanwhile is a lost race, not a
 * failure: everything starts over on the winner's metadata, while the requirements hold.
 *
 * A document that did not become current is removed, unless nobody can tell whether it did. What
 * the log of old documents has dropped is removed after the pointer has moved, if the table's
 * properties say so.
 */
#include <string.h>

#include "base/fault.h"
#include "base/path.h"
#include "catalog/commit_status.h"
#include "catalog/core/core_internal.h"
#include "catalog/metadata_file.h"

typedef struct Step {
    const KnTableIdent *ident;
    const KnTableCommit *commit;
    KnStoreName name;
    KnDocument *before, *after; /* before NULL: the commit creates the table */
    KnMetadata *base, *next;
    const char *from, *to;
    bool changes, written;
} Step;

typedef struct Commit {
    KnCatalogCore *core;
    KnArena *arena;
    Step *steps;
    size_t n;
} Commit;

static void drop_step(Step *step)
{
    step->before = kn_document_unref(step->before);
    step->after = kn_document_unref(step->after);
    step->base = kn_metadata_unref(step->base);
    step->next = kn_metadata_unref(step->next);
    step->changes = step->written = false;
    step->from = step->to = NULL;
}

/* ---- one step ---- */

static bool requires_create(const KnTableCommit *commit)
{
    for (size_t i = 0; i < commit->n_requirements; i++) {
        if (commit->requirements[i].kind == KN_REQUIRE_CREATE)
            return true;
    }
    return false;
}

static bool sets_location(const KnTableCommit *commit)
{
    for (size_t i = 0; i < commit->n_updates; i++) {
        if (commit->updates[i].kind == KN_UPDATE_SET_LOCATION)
            return true;
    }
    return false;
}

static KnCode load_base(Commit *cm, Step *step, KnErr *err)
{
    KN_POINTER_AUTO ptr = NULL;
    KnCatalogCore *core = cm->core;
    bool create = requires_create(step->commit);
    KN_TRY(kn_mirror_find(core->mirror, &step->name, &ptr, err));
    if (ptr && kn_pointer_is_view(ptr) && create)
        return kn_core_refuse_taken(core, &step->name, false, err);
    if (!ptr && create)
        return kn_core_require_namespace(core, step->name.ns, err);
    if (!ptr || kn_pointer_is_view(ptr))
        return kn_err_about(err, KN_E_NOTFOUND, KN_ABOUT_TABLE, "Table does not exist: %s.%s",
                            step->name.ns, step->name.name);
    step->from = kn_arena_strdup(cm->arena, kn_pointer_location(ptr));
    KN_TRY(kn_core_read(core, step->from, false, &step->before, err));
    return kn_document_metadata(step->before, &step->base, err);
}

/* The updates of a commit that creates a table, with a location if they do not say one. */
static KnCode with_location(Commit *cm, const Step *step, KnTableCommit *ret, KnErr *err)
{
    const KnTableCommit *commit = step->commit;
    *ret = *commit;
    if (step->base || sets_location(commit))
        return KN_OK;
    KnUpdate *updates = kn_arena_alloc(cm->arena, (commit->n_updates + 1) * sizeof(*updates));
    updates[0] = (KnUpdate){.kind = KN_UPDATE_SET_LOCATION};
    KN_TRY(kn_core_default_location(cm->core, cm->arena, step->ident, &updates[0].text, err));
    if (commit->n_updates)
        memcpy(updates + 1, commit->updates, commit->n_updates * sizeof(*updates));
    ret->updates = updates;
    ret->n_updates = commit->n_updates + 1;
    return KN_OK;
}

static KnCode next_document(Commit *cm, Step *step, KnErr *err)
{
    KnTableCommit commit;
    KN_TRY(kn_metadata_check(step->base, step->commit->requirements, step->commit->n_requirements,
                             err));
    KN_TRY(with_location(cm, step, &commit, err));
    KN_TRY(kn_metadata_apply(step->base, commit.updates, commit.n_updates, step->from, &step->next,
                             err));
    const KnMetadata *base = step->base, *next = step->next;
    step->changes = base != next;
    if (!step->changes)
        return KN_OK;
    KN_TRY(kn_core_check_places(cm->core, next->location, next->properties,
                                base ? base->location : NULL, base ? base->properties : NULL, err));
    step->to = kn_metadata_file_next(cm->arena, next, step->from);
    KN_TRY(kn_document_from_metadata(next, step->to, &step->after, err));
    KN_TRY(kn_core_write(cm->core, step->after, err));
    step->written = true;
    return KN_OK;
}

static KnCode prepare(Commit *cm, KnErr *err)
{
    for (size_t i = 0; i < cm->n; i++) {
        Step *step = &cm->steps[i];
        KnCode rc = load_base(cm, step, err);
        if (rc == KN_OK)
            rc = next_document(cm, step, err);
        if (rc != KN_OK && cm->n > 1)
            return kn_err_wrap(err, rc, "table %s.%s", step->name.ns, step->name.name);
        KN_TRY(rc);
    }
    return kn_fault_at("catalog-metadata-written", err);
}

/* ---- all pointers ---- */

static KnCode move(Commit *cm, bool *ret_doubtful, KnErr *err)
{
    KnChange *changes = kn_arena_alloc(cm->arena, (2 * cm->n + 1) * sizeof(*changes));
    size_t n = 0;
    for (size_t i = 0; i < cm->n; i++) {
        const Step *step = &cm->steps[i];
        if (!step->changes)
            continue;
        if (!step->base)
            changes[n++] = kn_core_namespace_change(cm->core, step->name.ns);
        changes[n++] = (KnChange){
            .kind = step->base ? KN_CHANGE_SWAP : KN_CHANGE_INSERT,
            .event = step->base ? KN_EVENT_UPDATE : KN_EVENT_CREATE,
            .name = step->name,
            .from = step->from,
            .to = step->to,
            .snapshot_id = step->next->current_snapshot_id,
        };
    }
    if (!n)
        return KN_OK;
    KnUnit unit = {.changes = changes, .n = n};
    KnCode rc = kn_group_commit(cm->core->group, &unit, err);
    *ret_doubtful = unit.doubtful;
    return rc;
}

typedef struct Where {
    KnStore *store;
    const KnStoreName *name;
} Where;

static KnCode find_pointer(void *arg, KnArena *arena, const char **ret, KnErr *err)
{
    const Where *where = arg;
    KnStoreEntry entry = {0};
    KN_TRY(kn_store_find(where->store, arena, where->name, &entry, err));
    if (!entry.location)
        return kn_err_set(err, KN_E_NOTFOUND, "no such table");
    *ret = entry.location;
    return KN_OK;
}

/* A created table: its pointer is there or it is not; one that is somewhere else tells nothing. */
static KnCommitStatus created_status(Where *where, const Step *step)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const char *now = NULL;
    KnCode rc = kn_fault_at("catalog-status-check", NULL);
    if (rc == KN_OK)
        rc = find_pointer(where, arena, &now, NULL);
    if (rc == KN_E_NOTFOUND)
        return KN_COMMIT_NOT_APPLIED;
    return rc == KN_OK && !strcmp(now, step->to) ? KN_COMMIT_APPLIED : KN_COMMIT_UNKNOWN;
}

/* As all pointers moved or none, the first one that was to move tells of all. */
static KnCommitStatus find_status(Commit *cm, const Step *step)
{
    Where where = {cm->core->store, &step->name};
    if (!step->base)
        return created_status(&where, step);
    KnFileIO *io = NULL;
    if (kn_core_io(cm->core, kn_str(step->to), &io, NULL) != KN_OK)
        return KN_COMMIT_UNKNOWN;
    KnLostCommit lost = {.io = io,
                         .before = step->base,
                         .after = step->next,
                         .from = step->from,
                         .to = step->to,
                         .find = find_pointer,
                         .arg = &where};
    return kn_commit_status(&lost);
}

/* The answer of the database was lost; err has the reason. */
static KnCode settle(Commit *cm, KnErr *err)
{
    KnErr why = err ? *err : (KnErr){0};
    const Step *step = cm->steps;
    while (!step->changes)
        step++;
    switch (find_status(cm, step)) {
    case KN_COMMIT_APPLIED:
        return KN_OK;
    case KN_COMMIT_NOT_APPLIED:
        return kn_err_set(err, KN_E_IO, "the commit of %s.%s was not applied: %s", step->name.ns,
                          step->name.name, why.msg);
    case KN_COMMIT_UNKNOWN:
        break;
    }
    return kn_err_set(
        err, KN_E_UNKNOWN,
        "the commit of %s.%s may or may not have been applied (%.300s) and the catalog "
        "does not tell: none of its files was removed; look for %s in the table's "
        "history before trying again",
        step->name.ns, step->name.name, why.msg, step->to);
}

static void remove_written(Commit *cm)
{
    for (size_t i = 0; i < cm->n; i++) {
        if (cm->steps[i].written)
            kn_core_remove(cm->core, cm->steps[i].to);
    }
}

/* One round on the newest metadata; *ret_raced: only a pointer was lost. */
static KnCode try_commit(Commit *cm, bool *ret_raced, KnErr *err)
{
    bool doubtful = false;
    KnCode rc = prepare(cm, err);
    if (rc == KN_OK) {
        rc = move(cm, &doubtful, err);
        *ret_raced = rc == KN_E_CONFLICT || rc == KN_E_EXISTS;
        if (rc == KN_E_UNKNOWN)
            rc = settle(cm, err);
    }
    if (rc != KN_OK && rc != KN_E_UNKNOWN && !doubtful)
        remove_written(cm);
    return rc;
}

static bool log_has(const KnMetadata *md, const char *file)
{
    for (size_t i = 0; i < md->n_metadata_log; i++) {
        if (!strcmp(md->metadata_log[i].metadata_file, file))
            return true;
    }
    return false;
}

/* A log that somebody registered may name anything: only metadata documents in allowed places go.
 */
static void expire(KnCatalogCore *core, const Step *step)
{
    const char *on =
        kn_metadata_property(step->next, "write.metadata.delete-after-commit.enabled", "false");
    if (strcmp(on, "true") != 0)
        return;
    for (size_t i = 0; i < step->base->n_metadata_log; i++) {
        const char *file = step->base->metadata_log[i].metadata_file;
        if (!log_has(step->next, file) &&
            kn_metadata_file_is_name(kn_path_basename(kn_str(file))) &&
            kn_core_check_location(core, kn_str(file), NULL) == KN_OK)
            kn_core_remove(core, file);
    }
}

static void finish(Commit *cm, KnDocument **ret_docs)
{
    for (size_t i = 0; i < cm->n; i++) {
        Step *step = &cm->steps[i];
        if (step->changes)
            kn_document_cache_put(cm->core->cache, step->after);
        if (step->changes && step->base)
            expire(cm->core, step);
        if (ret_docs)
            ret_docs[i] = kn_document_ref(step->changes ? step->after : step->before);
    }
}

static KnCode run(Commit *cm, KnDocument **ret_docs, KnErr *err)
{
    KnCode rc = KN_OK;
    for (int i = 0; i < KN_CORE_COMMIT_TRIES; i++) {
        bool raced = false;
        rc = try_commit(cm, &raced, err);
        if (rc == KN_OK)
            finish(cm, ret_docs);
        for (size_t s = 0; s < cm->n; s++)
            drop_step(&cm->steps[s]);
        if (rc == KN_OK || !raced)
            return rc;
        kn_core_back_off(i);
    }
    return kn_err_set(err, KN_E_CONFLICT, "lost %d races for the catalog's pointer; try again",
                      KN_CORE_COMMIT_TRIES);
}

/* Names, checked: a table that is named twice would race with itself. */
static KnCode begin(Commit *cm, const KnTableChange *changes, KnStoreName *names, KnErr *err)
{
    for (size_t i = 0; i < cm->n; i++) {
        Step *step = &cm->steps[i];
        step->ident = &changes[i].ident;
        step->commit = &changes[i].commit;
        KN_TRY(kn_core_name(cm->arena, step->ident, &step->name, err));
        names[i] = step->name;
        for (size_t j = 0; j < i; j++) {
            if (!strcmp(names[j].ns, names[i].ns) && !strcmp(names[j].name, names[i].name))
                return kn_err_set(err, KN_E_INVAL, "table %s.%s is named twice in one transaction",
                                  names[i].ns, names[i].name);
        }
    }
    return KN_OK;
}

KnCode kn_core_tables_commit(KnCatalogCore *core, const KnTableChange *changes, size_t n,
                             KnDocument **ret_docs, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    Commit cm = {.core = core, .arena = arena, .n = n};
    cm.steps = kn_arena_zalloc(arena, (n + 1) * sizeof(*cm.steps));
    KnStoreName *names = kn_arena_zalloc(arena, (n + 1) * sizeof(*names));
    KN_TRY(begin(&cm, changes, names, err));
    uint64_t mask = 0;
    kn_core_lock(core, names, n, &mask);
    KnCode rc = run(&cm, ret_docs, err);
    kn_core_unlock(core, mask);
    return rc;
}

KnCode kn_core_table_commit(KnCatalogCore *core, const KnTableIdent *ident,
                            const KnTableCommit *commit, KnDocument **ret, KnErr *err)
{
    KnTableChange change = {.ident = *ident, .commit = *commit};
    return kn_core_tables_commit(core, &change, 1, ret, err);
}

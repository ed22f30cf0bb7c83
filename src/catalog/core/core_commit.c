/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core_commit.c - commits: of one table, and of several as one.
 *
 * A commit is a number of steps, one a table: newest document -> requirements -> updates -> next
 * document, written durably under a new name. Then all pointers move in one transaction of the
 * database, or none. A pointer that another writer has moved meanwhile is a lost race, not a
 * failure: everything starts over on the winner's metadata, while the requirements hold.
 *
 * Requests for one table that come while another is on its way are answered together (core_turn.c):
 * each is checked against, and applied to, what those before it made of the document, with a
 * verdict of its own; one document is written for all of them, and each has its line in the log.
 * That is as if every one had read the table right after the last of them.
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
    KnCoreRequest *const *requests;
    size_t n_requests;
    bool each; /* a request that is refused does not hold up the others */
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

bool kn_core_requires_create(const KnTableCommit *commit)
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
    bool create = kn_core_requires_create(step->requests[0]->commit);
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
static KnCode with_location(Commit *cm, const Step *step, KnTableCommit *commit, KnErr *err)
{
    if (step->base || sets_location(commit))
        return KN_OK;
    KnUpdate *updates = kn_arena_alloc(cm->arena, (commit->n_updates + 1) * sizeof(*updates));
    updates[0] = (KnUpdate){.kind = KN_UPDATE_SET_LOCATION};
    KN_TRY(kn_core_default_location(cm->core, cm->arena, step->ident, &updates[0].text, err));
    if (commit->n_updates)
        memcpy(updates + 1, commit->updates, commit->n_updates * sizeof(*updates));
    commit->updates = updates;
    commit->n_updates++;
    return KN_OK;
}

/* One request on what those before it have made of the document (NULL: nothing is there). */
static KnCode apply(Commit *cm, const Step *step, const KnMetadata *now, KnCoreRequest *req,
                    KnMetadata **ret, KnErr *err)
{
    KnTableCommit commit = *req->commit;
    KN_METADATA_AUTO next = NULL;
    const char *previous = now == step->base ? step->from : NULL; /* once in the log */
    KN_TRY(kn_metadata_check(now, commit.requirements, commit.n_requirements, err));
    KN_TRY(with_location(cm, step, &commit, err));
    KN_TRY(kn_metadata_apply(now, commit.updates, commit.n_updates, previous, &next, err));
    KN_TRY(kn_core_check_places(cm->core, next->location, next->properties,
                                now ? now->location : NULL, now ? now->properties : NULL, err));
    req->changes = next != now;
    req->snapshot_id = next->current_snapshot_id;
    *ret = kn_metadata_ref(next);
    return KN_OK;
}

/* Sets step->next; the verdict of a request that was refused is in it. */
static KnCode apply_all(Commit *cm, Step *step, KnErr *err)
{
    step->next = step->base ? kn_metadata_ref(step->base) : NULL;
    for (size_t i = 0; i < step->n_requests; i++) {
        KnCoreRequest *req = step->requests[i];
        KnMetadata *next = NULL;
        req->changes = false;
        req->code = apply(cm, step, step->next, req, &next, &req->err);
        if (req->code != KN_OK && !step->each) {
            if (err)
                *err = req->err;
            return req->code;
        }
        if (req->code != KN_OK)
            continue;
        kn_metadata_unref(step->next);
        step->next = next;
    }
    step->changes = step->next != step->base;
    return KN_OK;
}

static KnCode next_document(Commit *cm, Step *step, KnErr *err)
{
    KN_TRY(apply_all(cm, step, err));
    if (!step->changes)
        return KN_OK;
    step->to = kn_metadata_file_next(cm->arena, step->next, step->from);
    KN_TRY(kn_document_from_metadata(step->next, step->to, &step->after, err));
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

/* The pointer, and a line in the log for each request that changed something. */
static size_t step_changes(const Commit *cm, const Step *step, KnChange *out)
{
    size_t n = 0;
    bool moved = false;
    if (!step->base)
        out[n++] = kn_core_namespace_change(cm->core, step->name.ns);
    for (size_t i = 0; i < step->n_requests; i++) {
        const KnCoreRequest *req = step->requests[i];
        if (req->code != KN_OK || !req->changes)
            continue;
        KnChangeKind first = step->base ? KN_CHANGE_SWAP : KN_CHANGE_INSERT;
        out[n++] = (KnChange){
            .kind = moved ? KN_CHANGE_LOG : first,
            .event = step->base ? KN_EVENT_UPDATE : KN_EVENT_CREATE,
            .name = step->name,
            .from = step->from,
            .to = step->to,
            .snapshot_id = req->snapshot_id,
        };
        moved = true;
    }
    return n;
}

static KnCode move(Commit *cm, bool *ret_doubtful, KnErr *err)
{
    size_t n = 0, room = 0;
    for (size_t i = 0; i < cm->n; i++)
        room += cm->steps[i].n_requests + 1;
    KnChange *changes = kn_arena_alloc(cm->arena, (room + 1) * sizeof(*changes));
    for (size_t i = 0; i < cm->n; i++) {
        if (cm->steps[i].changes)
            n += step_changes(cm, &cm->steps[i], changes + n);
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

/* The verdict, and the document as it is now, to those who asked. */
static void answer(const Step *step, KnCode rc, const KnErr *err)
{
    for (size_t i = 0; i < step->n_requests; i++) {
        KnCoreRequest *req = step->requests[i];
        if (req->code == KN_OK && rc != KN_OK) {
            req->code = rc;
            req->err = *err;
        }
        if (req->code == KN_OK)
            req->doc = kn_document_ref(step->changes ? step->after : step->before);
    }
}

static void finish(Commit *cm)
{
    for (size_t i = 0; i < cm->n; i++) {
        Step *step = &cm->steps[i];
        if (step->changes)
            kn_document_cache_put(cm->core->cache, step->after);
        if (step->changes && step->from) /* nobody is pointed at it any more */
            kn_document_cache_drop(cm->core->cache, step->from);
        if (step->changes && step->base)
            expire(cm->core, step);
    }
}

static KnCode lost(KnErr *err)
{
    return kn_err_set(err, KN_E_CONFLICT, "lost %d races for the catalog's pointer; try again",
                      KN_CORE_COMMIT_TRIES);
}

static void run(Commit *cm)
{
    for (int i = 0; i < KN_CORE_COMMIT_TRIES; i++) {
        bool raced = false, last = i + 1 == KN_CORE_COMMIT_TRIES;
        KnErr err = {0};
        KnCode rc = try_commit(cm, &raced, &err);
        if (raced && last)
            rc = lost(&err);
        if (rc == KN_OK)
            finish(cm);
        for (size_t s = 0; s < cm->n; s++) {
            if (!raced || last)
                answer(&cm->steps[s], rc, &err);
            drop_step(&cm->steps[s]);
        }
        if (!raced)
            return;
        kn_core_back_off(i);
    }
}

void kn_core_commit_requests(KnCatalogCore *core, const KnTableIdent *ident,
                             const KnStoreName *name, KnCoreRequest *const *requests, size_t n)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    Step step = {
        .ident = ident, .name = *name, .requests = requests, .n_requests = n, .each = true};
    Commit cm = {.core = core, .arena = arena, .steps = &step, .n = 1};
    run(&cm);
}

/* ---- several tables ---- */

/* Names, checked: a table that is named twice would race with itself. */
static KnCode begin(Commit *cm, const KnTableChange *changes, KnCoreRequest *requests,
                    KnStoreName *names, KnErr *err)
{
    KnCoreRequest **each = kn_arena_zalloc(cm->arena, (cm->n + 1) * sizeof(KnCoreRequest *));
    for (size_t i = 0; i < cm->n; i++) {
        Step *step = &cm->steps[i];
        each[i] = &requests[i];
        requests[i].commit = &changes[i].commit;
        *step = (Step){.ident = &changes[i].ident, .requests = &each[i], .n_requests = 1};
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

/* All requests have the same verdict; the first that says why tells it. */
static KnCode verdict(KnCoreRequest *requests, size_t n, KnDocument **ret_docs, KnErr *err)
{
    KnCode rc = KN_OK;
    for (size_t i = 0; i < n && rc == KN_OK; i++) {
        rc = requests[i].code;
        if (rc != KN_OK && err)
            *err = requests[i].err;
    }
    for (size_t i = 0; i < n; i++) {
        if (rc == KN_OK && ret_docs)
            ret_docs[i] = requests[i].doc;
        else
            kn_document_unref(requests[i].doc);
    }
    return rc;
}

KnCode kn_core_tables_commit(KnCatalogCore *core, const KnTableChange *changes, size_t n,
                             KnDocument **ret_docs, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    Commit cm = {.core = core, .arena = arena, .n = n};
    KnCoreRequest *requests = kn_arena_zalloc(arena, (n + 1) * sizeof(*requests));
    KnStoreName *names = kn_arena_zalloc(arena, (n + 1) * sizeof(*names));
    cm.steps = kn_arena_zalloc(arena, (n + 1) * sizeof(*cm.steps));
    KN_TRY(begin(&cm, changes, requests, names, err));
    uint64_t mask = 0;
    kn_core_lock(core, names, n, &mask);
    run(&cm);
    kn_core_unlock(core, mask);
    return verdict(requests, n, ret_docs, err);
}

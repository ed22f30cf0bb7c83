/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rest_commit.c - a commit over REST: sent once, and what became of it found out.
 *
 * 409 says that a requirement did not hold, or only that the server lost a race and does not start
 * over by itself. The newest metadata is asked for: where our snapshot is in it already, an earlier
 * sending of this commit was applied; where the requirements hold, it is sent again; else the
 * conflict is the caller's, who looks at the table anew.
 *
 * An answer that says nothing certain (5xx, lost, cut off, not JSON) is never taken for a failure:
 * the files of the commit may be part of the table. The table is asked, with the waits of its
 * commit.status-check properties. It was applied when its snapshot is there, or when nothing is
 * left to change; it was not, for certain, only when its requirements hold no more. Else it is
 * KN_E_UNKNOWN.
 *
 * Two requirements of ours have no words in REST (commit_json.h): they are checked here, against
 * the newest metadata, right before the commit; every ref is then required to be as it was seen.
 */
#include <string.h>

#include "base/random.h"
#include "base/stop.h"
#include "catalog/rest/rest_internal.h"
#include "iceberg/metadata/commit_json.h"
#include "iceberg/write/commit_retry.h"

enum { RACES_MAX = 20, PAUSE_US = 20000, PAUSE_MAX_US = 1000000 };

/* ---- the body ---- */

static KnCode put_requirements(const KnTableCommit *commit, json_t *body, KnErr *err)
{
    json_t *array = json_array();
    (void)json_object_set_new(body, "requirements", array);
    for (size_t i = 0; i < commit->n_requirements; i++) {
        json_t *item = NULL;
        if (!kn_requirement_is_rest(&commit->requirements[i]))
            continue;
        KN_TRY(kn_requirement_to_json(&commit->requirements[i], &item, err));
        (void)json_array_append_new(array, item);
    }
    return KN_OK;
}

static KnCode put_updates(const KnTableCommit *commit, json_t *body, KnErr *err)
{
    json_t *array = json_array();
    (void)json_object_set_new(body, "updates", array);
    for (size_t i = 0; i < commit->n_updates; i++) {
        json_t *item = NULL;
        KN_TRY(kn_update_to_json(&commit->updates[i], &item, err));
        (void)json_array_append_new(array, item);
    }
    return KN_OK;
}

KnCode kn_remote_commit_json(const KnTableIdent *ident, const KnTableCommit *commit, json_t **ret,
                             KnErr *err)
{
    json_t *body = json_object();
    if (ident)
        (void)json_object_set_new(body, "identifier", kn_remote_ident_json(ident));
    KnCode rc = put_requirements(commit, body, err);
    if (rc == KN_OK)
        rc = put_updates(commit, body, err);
    if (rc == KN_OK)
        *ret = body;
    else
        json_decref(body);
    return rc;
}

/* ---- what became of it ---- */

static const KnSnapshot *added_snapshot(const KnTableCommit *commit)
{
    for (size_t i = 0; i < commit->n_updates; i++) {
        if (commit->updates[i].kind == KN_UPDATE_ADD_SNAPSHOT)
            return &commit->updates[i].snapshot;
    }
    return NULL;
}

/* The document without what every commit changes. */
static json_t *essence(const KnMetadata *md)
{
    KN_BUF_AUTO text = {0};
    json_t *doc = NULL;
    kn_buf_init(&text, KN_REMOTE_ANSWER_MAX);
    if (kn_metadata_to_json(md, &text, NULL) != KN_OK ||
        kn_json_parse(text.data, text.len, &doc, NULL) != KN_OK)
        return NULL;
    (void)json_object_del(doc, "last-updated-ms");
    (void)json_object_del(doc, "metadata-log");
    return doc;
}

bool kn_remote_is_applied(const KnMetadata *now, const KnTableCommit *commit)
{
    const KnSnapshot *added = added_snapshot(commit);
    if (added)
        return kn_metadata_find_snapshot(now, added->snapshot_id) != NULL;
    KN_METADATA_AUTO next = NULL;
    KnCode rc = kn_metadata_apply(now, commit->updates, commit->n_updates, NULL, &next, NULL);
    if (rc != KN_OK || next == now)
        return rc == KN_OK;
    KN_JSON_AUTO before = essence(now);
    KN_JSON_AUTO after = essence(next);
    return before && json_equal(before, after);
}

typedef struct Attempt {
    KnRemote *rest;
    KnTable *tbl;
    const KnTableCommit *commit;
    const char *what;
    KnTableCommit sent; /* with what stands for our own requirements */
} Attempt;

/* The answer to a commit is lost; err says how. Like commit_status.h, by what REST shows. */
static KnCode settle(const Attempt *at, KnErr *err)
{
    KnErr why = *err;
    KnBackoff backoff = kn_backoff_status_check(at->tbl->md);
    do {
        KnErr look = {0};
        if (kn_table_refresh(at->tbl, &look) != KN_OK)
            continue;
        const KnMetadata *now = at->tbl->md;
        if (kn_remote_is_applied(now, at->commit))
            return KN_OK;
        if (kn_metadata_check(now, at->sent.requirements, at->sent.n_requirements, &look) != KN_OK)
            return kn_err_set(err, KN_E_CONFLICT, "not applied, another commit came first: %.300s",
                              why.msg);
    } while (kn_backoff_next(&backoff));
    return kn_err_set(err, KN_E_UNKNOWN,
                      "the commit may or may not have been applied, none of its files was removed; "
                      "look into the table's history before trying again (%.280s)",
                      why.msg);
}

/* ---- requirements of ours ---- */

bool kn_remote_all_said(const KnTableCommit *commit)
{
    for (size_t i = 0; i < commit->n_requirements; i++) {
        if (!kn_requirement_is_rest(&commit->requirements[i]))
            return false;
    }
    return true;
}

/* The requirements with one for each ref of the table as it is now. */
static void require_refs(KnArena *arena, Attempt *at)
{
    const KnMetadata *md = at->tbl->md;
    size_t n = at->commit->n_requirements;
    KnRequirement *all = kn_arena_zalloc(arena, (n + md->n_refs + 1) * sizeof(*all));
    if (n)
        memcpy(all, at->commit->requirements, n * sizeof(*all));
    for (size_t i = 0; i < md->n_refs; i++)
        all[n++] = (KnRequirement){.kind = KN_REQUIRE_REF_SNAPSHOT_ID,
                                   .text = md->refs[i].name,
                                   .number = md->refs[i].snapshot_id};
    at->sent.requirements = all;
    at->sent.n_requirements = n;
}

static KnCode check_own(KnArena *arena, Attempt *at, KnErr *err)
{
    at->sent = *at->commit;
    if (kn_remote_all_said(at->commit))
        return KN_OK;
    KN_TRY(kn_table_refresh(at->tbl, err));
    KN_TRY(
        kn_metadata_check(at->tbl->md, at->commit->requirements, at->commit->n_requirements, err));
    require_refs(arena, at);
    return KN_OK;
}

/* ---- one sending ---- */

static KnCode take_commit(const Attempt *at, const KnRemoteAnswer *answer, KnErr *err)
{
    KnRemoteTable table = {0};
    KnCode rc = kn_remote_table_parse(answer->doc, at->what, &table, err);
    if (rc == KN_OK && !table.location)
        rc = kn_err_set(err, KN_E_CORRUPT, "%s: the answer has no 'metadata-location'", at->what);
    if (rc != KN_OK) { /* done, and not told what it came to */
        kn_metadata_unref(table.md);
        return kn_err_wrap(err, KN_E_UNKNOWN, "%s", at->what);
    }
    (void)kn_remote_see(at->rest, &at->tbl->ident, &table, answer->etag);
    kn_table_set_metadata(at->tbl, table.md, table.location);
    return KN_OK;
}

static KnCode send_commit(const Attempt *at, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KN_JSON_AUTO body = NULL;
    KN_TRY(kn_remote_commit_json(&at->tbl->ident, &at->sent, &body, err));
    KnRemoteCall call = {.method = "POST",
                         .url = kn_remote_table_url(at->rest, arena, &at->tbl->ident),
                         .what = at->what,
                         .safety = KN_REMOTE_CHANGES,
                         .token = kn_remote_token_of(at->rest, &at->tbl->ident),
                         .body = body,
                         .max = KN_REMOTE_ANSWER_MAX};
    KN_REMOTE_ANSWER_AUTO answer = {0};
    KN_TRY(kn_remote_send(at->rest, &call, &answer, err));
    return take_commit(at, &answer, err);
}

/* After 409. KN_OK: it was applied before. KN_E_CONFLICT with *ret_again: only a race was lost. */
static KnCode look_again(const Attempt *at, bool *ret_again, KnErr *err)
{
    const KnErr why = *err;
    KN_TRY(kn_table_refresh(at->tbl, err));
    const KnMetadata *now = at->tbl->md;
    const KnTableCommit *cm = at->commit;
    if (added_snapshot(cm) && kn_remote_is_applied(now, cm))
        return KN_OK;
    KN_TRY(kn_metadata_check(now, cm->requirements, cm->n_requirements, err));
    KN_METADATA_AUTO next = NULL;
    if (kn_metadata_apply(now, cm->updates, cm->n_updates, NULL, &next, NULL) == KN_OK)
        *ret_again = true;
    return kn_err_set(err, KN_E_CONFLICT, "%.400s", why.msg);
}

static KnCode try_commit(Attempt *at, bool *ret_again, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KN_TRY(check_own(arena, at, err));
    KnCode rc = send_commit(at, err);
    if (rc == KN_E_UNKNOWN)
        return settle(at, err);
    if (rc == KN_E_EXISTS || rc == KN_E_CONFLICT)
        return look_again(at, ret_again, err);
    return rc;
}

KnCode kn_remote_commit(KnCatalog *cat, KnTable *tbl, const KnTableCommit *commit, KnErr *err)
{
    KnRemote *rest = (KnRemote *)cat;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KN_TRY(kn_remote_refuse_read_only(rest, err));
    KN_TRY(kn_remote_need(rest, KN_REMOTE_COMMIT_TABLE, err));
    Attempt at = {
        .rest = rest, .tbl = tbl, .commit = commit, .what = kn_arena_printf(arena, "commit")};
    KnErr why = {0};
    int64_t pause = PAUSE_US;
    KnRng rng = {(uint64_t)kn_random_id()};
    for (int i = 0;; i++) {
        bool again = false;
        KnCode rc = try_commit(&at, &again, &why);
        if (rc != KN_OK && err)
            *err = why;
        if (!again || i == RACES_MAX || kn_stop_wait((int64_t)kn_rng_below(&rng, (uint64_t)pause)))
            return rc;
        pause = pause * 2 > PAUSE_MAX_US ? PAUSE_MAX_US : pause * 2;
    }
}

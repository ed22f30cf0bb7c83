/* SPDX-License-Identifier: Apache-2.0 */
/* commit_send.c - see commit_send.h. */
#include "catalog/commit_send.h"

#include <string.h>

#include "base/json.h"
#include "base/random.h"
#include "base/stop.h"
#include "iceberg/metadata/commit_json.h"
#include "iceberg/write/commit_retry.h"

enum { RACES_MAX = 20, PAUSE_US = 20000, PAUSE_MAX_US = 1000000 };
#define DOCUMENT_MAX ((size_t)512 << 20)

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
    kn_buf_init(&text, DOCUMENT_MAX);
    if (kn_metadata_to_json(md, &text, NULL) != KN_OK ||
        kn_json_parse(text.data, text.len, &doc, NULL) != KN_OK)
        return NULL;
    (void)json_object_del(doc, "last-updated-ms");
    (void)json_object_del(doc, "metadata-log");
    return doc;
}

bool kn_commit_is_applied(const KnMetadata *now, const KnTableCommit *commit)
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
    const KnCommitSend *how;
    KnTable *tbl;
    const KnTableCommit *commit;
    KnTableCommit sent; /* with what stands for our own requirements */
} Attempt;

/* The answer to a commit is lost; err says how. Like commit_status.h, by what a server shows. */
static KnCode settle(const Attempt *at, KnErr *err)
{
    KnErr why = *err;
    KnBackoff backoff = kn_backoff_status_check(at->tbl->md);
    do {
        KnErr look = {0};
        if (kn_table_refresh(at->tbl, &look) != KN_OK)
            continue;
        const KnMetadata *now = at->tbl->md;
        if (kn_commit_is_applied(now, at->commit))
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

bool kn_commit_is_all_said(const KnTableCommit *commit)
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
    if (kn_commit_is_all_said(at->commit))
        return KN_OK;
    KN_TRY(kn_table_refresh(at->tbl, err));
    KN_TRY(
        kn_metadata_check(at->tbl->md, at->commit->requirements, at->commit->n_requirements, err));
    require_refs(arena, at);
    return KN_OK;
}

/* ---- sending ---- */

/* After a conflict. KN_OK: it was applied before. KN_E_CONFLICT with *ret_again: only a race was
 * lost. */
static KnCode look_again(const Attempt *at, bool *ret_again, KnErr *err)
{
    const KnErr why = *err;
    KN_TRY(kn_table_refresh(at->tbl, err));
    const KnMetadata *now = at->tbl->md;
    const KnTableCommit *cm = at->commit;
    if (added_snapshot(cm) && kn_commit_is_applied(now, cm))
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
    KnCode rc = at->how->send(at->how->arg, at->tbl, &at->sent, err);
    if (rc == KN_E_UNKNOWN)
        return settle(at, err);
    if (rc == KN_E_EXISTS || rc == KN_E_CONFLICT)
        return look_again(at, ret_again, err);
    return rc;
}

KnCode kn_commit_send(const KnCommitSend *how, KnErr *err)
{
    Attempt at = {.how = how, .tbl = how->tbl, .commit = how->commit};
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

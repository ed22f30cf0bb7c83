/* SPDX-License-Identifier: Apache-2.0 */
/* rest_commit.c - a commit over REST; what becomes of it is commit_send.h's matter. */
#include <string.h>

#include "catalog/commit_send.h"
#include "catalog/rest/rest_internal.h"
#include "iceberg/metadata/commit_json.h"

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

/* ---- one sending ---- */

static KnCode take_commit(KnRemote *rest, KnTable *tbl, const KnRemoteAnswer *answer, KnErr *err)
{
    KnRemoteTable table = {0};
    KnCode rc = kn_remote_table_parse(answer->doc, "commit", &table, err);
    if (rc == KN_OK && !table.location)
        rc = kn_err_set(err, KN_E_CORRUPT, "commit: the answer has no 'metadata-location'");
    if (rc != KN_OK) { /* done, and not told what it came to */
        kn_metadata_unref(table.md);
        return kn_err_wrap(err, KN_E_UNKNOWN, "commit");
    }
    (void)kn_remote_see(rest, &tbl->ident, &table, answer->etag);
    kn_table_set_metadata(tbl, table.md, table.location);
    return KN_OK;
}

static KnCode send_commit(void *arg, KnTable *tbl, const KnTableCommit *sent, KnErr *err)
{
    KnRemote *rest = arg;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KN_JSON_AUTO body = NULL;
    KN_TRY(kn_remote_commit_json(&tbl->ident, sent, &body, err));
    KnRemoteCall call = {.method = "POST",
                         .url = kn_remote_table_url(rest, arena, &tbl->ident),
                         .what = "commit",
                         .safety = KN_REMOTE_CHANGES,
                         .token = kn_remote_token_of(rest, &tbl->ident),
                         .body = body,
                         .max = KN_REMOTE_ANSWER_MAX};
    KN_REMOTE_ANSWER_AUTO answer = {0};
    KN_TRY(kn_remote_send(rest, &call, &answer, err));
    return take_commit(rest, tbl, &answer, err);
}

KnCode kn_remote_commit(KnCatalog *cat, KnTable *tbl, const KnTableCommit *commit, KnErr *err)
{
    KnRemote *rest = (KnRemote *)cat;
    KN_TRY(kn_remote_refuse_read_only(rest, err));
    KN_TRY(kn_remote_need(rest, KN_REMOTE_COMMIT_TABLE, err));
    KnCommitSend how = {.tbl = tbl, .commit = commit, .send = send_commit, .arg = rest};
    return kn_commit_send(&how, err);
}

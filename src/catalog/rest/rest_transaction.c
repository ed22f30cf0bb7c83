/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rest_transaction.c - several tables as one commit (POST /v1/{prefix}/transactions/commit).
 *
 * The answer is empty. One that was lost is looked for in the tables, as rest_commit.c does for
 * one: the server does all of it or nothing, so each table must show its part.
 */
#include "catalog/commit_send.h"
#include "catalog/rest/rest_internal.h"
#include "iceberg/write/commit_retry.h"

static KnCode make_body(const KnTableChanges *changes, json_t **ret, KnErr *err)
{
    json_t *list = json_array();
    KnCode rc = KN_OK;
    for (size_t i = 0; rc == KN_OK && i < changes->n; i++) {
        json_t *item = NULL;
        rc = kn_remote_commit_json(&changes->tables[i]->ident, &changes->commits[i], &item, err);
        if (rc == KN_OK)
            (void)json_array_append_new(list, item);
    }
    if (rc == KN_OK)
        *ret = json_pack("{s:o}", "table-changes", list);
    else
        json_decref(list);
    return rc;
}

/* KN_OK: all is applied. KN_E_CONFLICT: nothing is, for certain. Else it cannot be told yet. */
static KnCode look(const KnTableChanges *changes, const KnErr *why, KnErr *err)
{
    size_t applied = 0;
    for (size_t i = 0; i < changes->n; i++) {
        KnTable *tbl = changes->tables[i];
        const KnTableCommit *cm = &changes->commits[i];
        KN_TRY(kn_table_refresh(tbl, err));
        if (kn_commit_is_applied(tbl->md, cm))
            applied++;
        else if (kn_metadata_check(tbl->md, cm->requirements, cm->n_requirements, NULL) != KN_OK)
            return kn_err_set(err, KN_E_CONFLICT,
                              "not applied, another commit of %s came first: %.300s", tbl->name,
                              why->msg);
    }
    return applied == changes->n ? KN_OK : kn_err_set(err, KN_E_UNKNOWN, "it is not there yet");
}

static KnCode settle(const KnTableChanges *changes, KnErr *err)
{
    KnErr why = *err;
    KnBackoff backoff = kn_backoff_status_check(changes->tables[0]->md);
    do {
        KnErr found = {0};
        KnCode rc = look(changes, &why, &found);
        if (rc == KN_OK)
            return KN_OK;
        if (rc == KN_E_CONFLICT) {
            *err = found;
            return rc;
        }
    } while (kn_backoff_next(&backoff));
    return kn_err_set(
        err, KN_E_UNKNOWN,
        "the commit of %zu tables may or may not have been applied, none of its files "
        "was removed; look into their history before trying again (%.280s)",
        changes->n, why.msg);
}

/* Requirements of ours that REST has no words for hold as late as can be asked. */
static KnCode check_own(const KnTableChanges *changes, KnErr *err)
{
    for (size_t i = 0; i < changes->n; i++) {
        KnTable *tbl = changes->tables[i];
        const KnTableCommit *cm = &changes->commits[i];
        if (kn_commit_is_all_said(cm))
            continue;
        KN_TRY(kn_table_refresh(tbl, err));
        KN_TRY(kn_err_wrap(err,
                           kn_metadata_check(tbl->md, cm->requirements, cm->n_requirements, err),
                           "table %s", tbl->name));
    }
    return KN_OK;
}

KnCode kn_remote_commit_all(KnCatalog *cat, const KnTableChanges *changes, KnErr *err)
{
    KnRemote *rest = (KnRemote *)cat;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KN_JSON_AUTO body = NULL;
    KN_TRY(kn_remote_refuse_read_only(rest, err));
    KN_TRY(kn_remote_need(rest, KN_REMOTE_COMMIT_ALL, err));
    KN_TRY(check_own(changes, err));
    KN_TRY(make_body(changes, &body, err));
    KnRemoteCall call = {.method = "POST",
                         .url = kn_remote_url(rest, arena, "/transactions/commit"),
                         .what = kn_arena_printf(arena, "commit %zu tables", changes->n),
                         .safety = KN_REMOTE_CHANGES,
                         .body = body};
    KN_REMOTE_ANSWER_AUTO answer = {0};
    KnErr why = {0};
    KnCode rc = kn_remote_send(rest, &call, &answer, &why);
    if (rc == KN_E_UNKNOWN)
        rc = settle(changes, &why);
    else if (rc == KN_E_EXISTS)
        rc = kn_err_set(&why, KN_E_CONFLICT, "%.440s",
                        (const char *)kn_arena_strdup(arena, why.msg));
    if (rc != KN_OK && err)
        *err = why;
    if (rc != KN_OK)
        return rc;
    /* It is done: what cannot be shown now is shown by the next refresh. */
    for (size_t i = 0; i < changes->n; i++)
        KN_IGNORE(kn_table_refresh(changes->tables[i], NULL));
    return KN_OK;
}

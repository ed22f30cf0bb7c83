/* SPDX-License-Identifier: Apache-2.0 */
/* release.c - see release.h. */
#include "iceberg/maintain/release.h"

#include <string.h>

#include "iceberg/write/commit_retry.h"
#include "iceberg/write/transaction.h"

static KnCode check(const KnRelease *release, KnErr *err)
{
    if (!release->n_tables)
        return kn_err_set(err, KN_E_INVAL, "no table to release");
    if (!release->wap_id == !release->branch)
        return kn_err_set(err, KN_E_INVAL,
                          "what is to be released? one of a staged id (wap.id) and a branch");
    KN_ARENA_AUTO arena = kn_arena_new(0);
    for (size_t i = 0; i < release->n_tables; i++) {
        const char *name = kn_table_ident_format(arena, &release->tables[i]);
        for (size_t j = 0; j < i; j++) {
            if (!strcmp(name, kn_table_ident_format(arena, &release->tables[j])))
                return kn_err_set(err, KN_E_INVAL, "table %s is named twice", name);
        }
    }
    return KN_OK;
}

static int64_t current_id(const KnTable *tbl)
{
    const KnSnapshot *snap = kn_metadata_snapshot(tbl->md);
    return snap ? snap->snapshot_id : -1;
}

static KnCode move_main(const KnRelease *release, KnTable *tbl, KnRefMove *ret, KnErr *err)
{
    if (release->wap_id)
        return kn_table_publish(tbl, release->wap_id, ret, err);
    KnFastForward ff = {.branch = "main", .to = release->branch};
    return kn_table_fast_forward(tbl, &ff, ret, err);
}

static KnCode put_tag(const KnRelease *release, KnTable *tbl, KnErr *err)
{
    if (!release->tag || current_id(tbl) < 0)
        return KN_OK;
    KnRefSet set = {.name = release->tag,
                    .replace = true,
                    .min_snapshots_to_keep = -1,
                    .max_snapshot_age_ms = -1,
                    .max_ref_age_ms = -1};
    KnRefMove ignored = {0};
    return kn_ref_set(tbl, &set, &ignored, err);
}

static KnCode stage_one(const KnRelease *release, KnTable *tbl, KnRefMove *ret, KnErr *err)
{
    KnErr why = {0};
    KnRefMove move = {.before = current_id(tbl), .after = current_id(tbl)};
    KnCode rc = move_main(release, tbl, &move, &why);
    if (rc != KN_OK && !(rc == KN_E_NOTFOUND && release->skip_missing)) {
        if (err)
            *err = why;
        return rc;
    }
    *ret = move;
    return put_tag(release, tbl, err);
}

static KnCode release_once(KnTransaction *tx, const KnRelease *release, KnRefMove *moves,
                           KnBackoff *ret_backoff, KnErr *err)
{
    bool changed = false;
    for (size_t i = 0; i < release->n_tables; i++) {
        KnTable *tbl = NULL;
        KN_TRY(kn_transaction_table(tx, &release->tables[i], &tbl, err));
        if (!i && !ret_backoff->began_us)
            *ret_backoff = kn_backoff_commit(tbl->md);
        KN_TRY(stage_one(release, tbl, &moves[i], err));
        changed |= moves[i].changed;
    }
    if (!changed && !release->tag)
        return kn_err_set(err, KN_E_NOTFOUND, "none of the tables has anything to release");
    return release->dry_run ? KN_OK : kn_transaction_commit(tx, err);
}

KnCode kn_release(KnCatalog *cat, const KnRelease *release, KnRefMove *moves, KnErr *err)
{
    KnBackoff backoff = {0};
    KN_TRY(check(release, err));
    for (;;) {
        KnTransaction *tx = kn_transaction_begin(cat);
        KnCode rc = release_once(tx, release, moves, &backoff, err);
        kn_transaction_end(tx);
        if (rc != KN_E_CONFLICT || !kn_backoff_next(&backoff))
            return rc;
    }
}

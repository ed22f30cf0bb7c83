/* SPDX-License-Identifier: Apache-2.0 */
/*
 * purge.c - a table goes with its files; see orphans.h.
 *
 * The names are collected while the table is there still, then it is dropped, then files go, what
 * others name first. A commit between the collecting and the drop leaves its files behind.
 */
#include "base/fault.h"
#include "iceberg/maintain/expire.h"
#include "iceberg/maintain/orphans.h"

static KnCode collect(const KnTable *tbl, KnFileSet *set, KnErr *err)
{
    KnReach reach;
    kn_reach_init(&reach, tbl, tbl->md);
    KnCode rc = kn_reach_add_all(&reach, err);
    if (rc == KN_OK)
        rc = kn_reach_put_contents(&reach, NULL, set, err);
    if (rc == KN_OK)
        rc = kn_reach_put_manifests(&reach, NULL, set, err);
    kn_reach_done(&reach);
    if (rc != KN_OK)
        return kn_err_wrap(err, rc, "not dropped, what it has cannot be told");
    KN_TRY(kn_reach_put_lists(tbl->md, set, err));
    KN_TRY(kn_reach_put_statistics(tbl->md, set, err));
    return kn_reach_put_metadata(tbl->md, tbl->metadata_location, false, set, err);
}

static KnCode drop(KnTable *tbl, KnFileSet *set, const KnSweepOptions *opts, KnSweepResult *ret,
                   KnErr *err)
{
    KN_TRY(collect(tbl, set, err));
    KnSweep sweep = {.tbl = tbl, .gone = set, .opts = *opts};
    if (opts->dry_run)
        return kn_sweep(&sweep, ret, err);
    KN_TRY(tbl->catalog->ops->drop(tbl->catalog, &tbl->ident, err));
    KN_TRY(kn_fault_at("purge-dropped", err));
    KnCode rc = kn_sweep(&sweep, ret, err);
    return kn_err_wrap(err, rc, "table %s is dropped, not all of its files are removed", tbl->name);
}

KnCode kn_table_purge(KnTable *tbl, KnSession *ses, const KnSweepOptions *opts, KnSweepResult *ret,
                      KnErr *err)
{
    KnFileSet *set = NULL;
    KnSweepResult result = {0};
    KN_TRY(kn_table_refresh(tbl, err));
    KN_TRY(kn_table_check_gc(tbl, "purge", err));
    KN_TRY(kn_file_set_open(ses, &set, err));
    KnCode rc = drop(tbl, set, opts, &result, err);
    kn_file_set_close(set);
    if (rc == KN_OK)
        *ret = result;
    return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.c - from a snapshot's manifests to tasks.
 *
 * Two passes over the manifest list: delete manifests into the index first, then data manifests one
 * at a time, each entry pruned and given its delete files on the spot. Only what a task keeps is
 * copied, so memory is bounded by the plan, not by the manifests. The plan and everything in it
 * live in its arena and are freed together; table and filter must outlive it.
 */
#include "iceberg/scan/plan.h"

#include <inttypes.h>

#include "base/vec.h"
#include "iceberg/manifest/manifest_series.h"
#include "iceberg/scan/plan_deletes.h"

typedef struct PlanBuild {
    const KnTable *tbl;
    KnPlanOptions opts;
    KnPlan *plan;
    KnDeleteIndex *index;
    const KnPartitionSpec *spec; /* of the manifest being read */
    KN_VEC(KnScanTask) tasks;
} PlanBuild;

/* Before its entries are told. */
static KnCode manifest_begin(void *arg, const KnManifestFile *mf, KnErr *err)
{
    PlanBuild *b = arg;
    (void)err;
    b->spec = kn_metadata_find_spec(b->tbl->md, mf->spec_id);
    return KN_OK;
}

static KnCode manifest_choose(PlanBuild *b, const KnManifestFile *mf, bool *ret_read, KnErr *err)
{
    const KnPartitionSpec *spec = kn_metadata_find_spec(b->tbl->md, mf->spec_id);
    if (!spec)
        return kn_err_set(err, KN_E_CORRUPT,
                          "table %s: manifest '%.300s' has unknown partition spec %d", b->tbl->name,
                          mf->path, mf->spec_id);
    *ret_read =
        !kn_manifest_file_is_dead(mf) &&
        (!b->opts.filter || kn_expr_may_match_manifest(b->opts.filter, spec, b->opts.schema, mf));
    if (*ret_read && mf->key_metadata.len > 0)
        return kn_err_set(err, KN_E_UNSUPPORTED, "table %s: manifest '%.300s' is encrypted",
                          b->tbl->name, mf->path);
    if (*ret_read)
        b->plan->manifests_read++;
    else
        b->plan->manifests_skipped++;
    return KN_OK;
}

static bool partition_may_match(const PlanBuild *b, const KnManifestEntry *entry)
{
    return !b->opts.filter ||
           kn_expr_may_match_partition(b->opts.filter, b->spec, b->opts.schema, &entry->file);
}

static KnCode take_delete(void *arg, const KnManifestEntry *entry, KnErr *err)
{
    PlanBuild *b = arg;
    if (!partition_may_match(b, entry)) {
        b->plan->files_skipped++;
        return KN_OK;
    }
    return kn_delete_index_add(b->index, entry, err);
}

static KnCode take_data(void *arg, const KnManifestEntry *entry, KnErr *err)
{
    PlanBuild *b = arg;
    KnPlan *plan = b->plan;
    if (entry->file.content != KN_CONTENT_DATA)
        return kn_err_set(err, KN_E_CORRUPT, "delete file '%.400s' is in a manifest of data",
                          entry->file.path);
    if (!partition_may_match(b, entry) ||
        (b->opts.filter && !kn_expr_may_match_file(b->opts.filter, &entry->file))) {
        plan->files_skipped++;
        return KN_OK;
    }
    KnScanTask *task = kn_vec_push(&b->tasks);
    KN_TRY(kn_delete_index_match(b->index, entry, task, err));
    task->data = kn_manifest_entry_copy(plan->arena, entry);
    kn_count_add(&plan->n_rows, entry->file.record_count);
    kn_count_add(&plan->n_bytes, entry->file.size_bytes);
    return KN_OK;
}

static KnCode read_manifests(PlanBuild *b, const KnManifestFile *mfs, size_t n, bool deletes,
                             KnErr *err)
{
    const KnManifestFile **chosen = kn_arena_alloc(b->plan->arena, (n + 1) * sizeof(*chosen));
    KnManifestSeries series = {.files = chosen, .visit = {.arg = b}, .begin = manifest_begin};
    series.visit.fn = deletes ? take_delete : take_data;
    series.visit.opts.with_metrics =
        deletes || b->opts.filter || kn_delete_index_wants_metrics(b->index);
    for (size_t i = 0; i < n; i++) {
        bool read = false;
        if (mfs[i].deletes == deletes)
            KN_TRY(manifest_choose(b, &mfs[i], &read, err));
        if (read)
            chosen[series.n++] = &mfs[i];
    }
    return kn_err_wrap(err, kn_manifest_read_series(b->tbl->io, b->tbl->md, &series, err),
                       "table %s", b->tbl->name);
}

static KnCode plan_build(PlanBuild *b, KnErr *err)
{
    KnManifestFile *mfs = NULL;
    size_t n = 0;
    KnCode rc = kn_manifest_list_read(b->tbl->io, b->plan->arena, b->opts.snapshot, &mfs, &n, err);
    if (rc != KN_OK)
        return kn_err_wrap(err, rc, "table %s: snapshot %" PRId64, b->tbl->name,
                           b->opts.snapshot->snapshot_id);
    KN_TRY(read_manifests(b, mfs, n, true, err));
    kn_delete_index_seal(b->index);
    KN_TRY(read_manifests(b, mfs, n, false, err));
    kn_delete_index_used(b->index, &b->plan->n_delete_files, &b->plan->delete_bytes);
    return KN_OK;
}

KnCode kn_plan_scan(const KnTable *tbl, const KnPlanOptions *opts, KnPlan **ret, KnErr *err)
{
    KnArena *arena = kn_arena_new(0);
    KnPlan *plan = kn_arena_zalloc(arena, sizeof(*plan));
    *plan =
        (KnPlan){.tbl = tbl, .snapshot = opts->snapshot, .filter = opts->filter, .arena = arena};
    PlanBuild b = {.tbl = tbl, .opts = *opts, .plan = plan};
    b.index = kn_delete_index_new(arena, tbl->md);
    if (!b.opts.schema)
        b.opts.schema = opts->snapshot ? kn_metadata_snapshot_schema(tbl->md, opts->snapshot)
                                       : kn_metadata_schema(tbl->md);
    KnCode rc = opts->snapshot ? plan_build(&b, err) : KN_OK;
    if (rc == KN_OK) {
        plan->n_tasks = b.tasks.len;
        plan->tasks = kn_arena_alloc(arena, (b.tasks.len + 1) * sizeof(*plan->tasks));
        for (size_t i = 0; i < b.tasks.len; i++)
            plan->tasks[i] = b.tasks.items[i];
        *ret = plan;
    } else {
        kn_plan_free(plan);
    }
    kn_vec_done(&b.tasks);
    return rc;
}

KnPlan *kn_plan_free(KnPlan *plan)
{
    if (plan)
        kn_arena_free(plan->arena);
    return NULL;
}

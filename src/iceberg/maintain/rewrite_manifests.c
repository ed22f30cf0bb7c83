/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rewrite_manifests.c - see rewrite_manifests.h.
 *
 * New manifests are written once, before the first commit is tried. They hold on a newer head as
 * long as every old manifest is still listed there; the head's other manifests are kept. Otherwise
 * they are thrown away and the work is done again on what the head has.
 */
#include "iceberg/maintain/rewrite_manifests.h"

#include "base/fault.h"
#include "base/map.h"
#include "iceberg/maintain/manifest_regroup.h"

enum { SIDES = 2 }; /* data, deletes */

typedef struct Job {
    KnWriter *w;
    const KnRewriteManifestsOptions *opts;
    const KnPartitionSpec *spec;
    KnProgress *bar;
    KnRegroup *groups[SIDES];
    KN_VEC(KnManifestFile) created;
    KnMap *replaced; /* paths of old manifests */
    int64_t n_entries;
    bool none_left; /* another writer has done it */
    int64_t n_kept, n_replaced;
} Job;

/* ---- planning ---- */

static KnCode choose_spec(Job *job, KnErr *err)
{
    const KnMetadata *md = job->w->tbl->md;
    int32_t id = job->opts->spec_id;
    job->spec = id < 0 ? kn_metadata_spec(md) : kn_metadata_find_spec(md, id);
    if (!job->spec)
        return kn_err_set(err, KN_E_INVAL, "spec-id %d: table %s has no such partition spec", id,
                          job->w->tbl->name);
    return KN_OK;
}

static KnCode read_list(Job *job, const KnSnapshot *head, KnManifestFile **ret, size_t *ret_n,
                        KnErr *err)
{
    return kn_manifest_list_read(job->w->tbl->io, job->w->arena, head, ret, ret_n, err);
}

static void drop_groups(Job *job)
{
    for (int i = 0; i < SIDES; i++)
        job->groups[i] = kn_regroup_free(job->groups[i]);
}

static KnCode plan(Job *job, const KnSnapshot *head, KnErr *err)
{
    KnManifestFile *files = NULL;
    size_t n = 0;
    drop_groups(job);
    if (head)
        KN_TRY(read_list(job, head, &files, &n, err));
    KnRegroupOptions opts = {
        .spec_id = job->spec->spec_id,
        .target_bytes = kn_write_property_i64(job->w->tbl->md, "commit.manifest.target-size-bytes",
                                              INT64_C(8) << 20)};
    for (int i = 0; i < SIDES; i++) {
        opts.deletes = i == 1;
        KN_TRY(kn_regroup_plan(job->w, &opts, files, n, &job->groups[i], err));
    }
    return KN_OK;
}

/* ---- writing ---- */

static void entries_written(void *arg, size_t n)
{
    kn_progress_add(arg, n, 0);
}

static KnCode write_side(Job *job, KnRegroup *group, KnErr *err)
{
    size_t n = kn_regroup_outputs(group);
    const KnManifestFile *old = NULL;
    size_t n_old = kn_regroup_inputs(group, &old);
    if (n == 0)
        return KN_OK;
    for (size_t i = 0; i < n_old; i++)
        *kn_map_get_or_add(job->replaced, kn_str(old[i].path), NULL) = job;
    KnManifestFile *made = kn_arena_zalloc(job->w->arena, n * sizeof(*made));
    KN_TRY(
        kn_regroup_write(group, job->w, (KnRegroupListener){entries_written, job->bar}, made, err));
    for (size_t i = 0; i < n; i++)
        *kn_vec_push(&job->created) = made[i];
    job->n_entries += kn_regroup_entries(group);
    return KN_OK;
}

static int64_t count_entries(const Job *job)
{
    int64_t n = 0;
    for (int i = 0; i < SIDES; i++)
        n += kn_regroup_outputs(job->groups[i]) > 0 ? kn_regroup_entries(job->groups[i]) : 0;
    return n;
}

/* New manifests of what head has; none when that is as it would come out. */
static KnCode write_all(Job *job, const KnSnapshot *head, KnErr *err)
{
    KN_TRY(plan(job, head, err));
    job->bar =
        kn_progress_new(job->opts->progress, "rewrite-manifests", (uint64_t)count_entries(job), 0);
    KnCode rc = write_side(job, job->groups[0], err);
    if (rc == KN_OK)
        rc = write_side(job, job->groups[1], err);
    job->bar = kn_progress_free(job->bar);
    drop_groups(job);
    return rc;
}

static void throw_away(Job *job)
{
    kn_vec_foreach (&job->created, file)
        (void)kn_io_remove(job->w->tbl->io, kn_str(file->path), NULL);
    job->created.len = 0;
    job->n_entries = 0;
    kn_map_free(job->replaced);
    job->replaced = kn_map_new();
}

/* ---- committing ---- */

static KnCode compose(void *arg, const KnSnapshot *parent, int64_t snapshot_id, KnManifestSet *ret,
                      KnErr *err)
{
    Job *job = arg;
    KnManifestFile *files = NULL;
    size_t n = 0;
    KN_TRY(read_list(job, parent, &files, &n, err));
    size_t made = job->created.len;
    ret->files = kn_arena_zalloc(job->w->arena, (n + made + 1) * sizeof(*ret->files));
    for (; ret->n < made; ret->n++) {
        ret->files[ret->n] = job->created.items[ret->n];
        ret->files[ret->n].added_snapshot_id = snapshot_id;
    }
    for (size_t i = 0; i < n; i++) {
        if (kn_map_find(job->replaced, kn_str(files[i].path)))
            ret->n_replaced++;
        else if (!kn_manifest_file_is_dead(&files[i]))
            ret->files[ret->n++] = files[i];
    }
    ret->n_created = (int64_t)made;
    ret->n_kept = (int64_t)(ret->n - made);
    ret->n_entries = job->n_entries;
    job->n_kept = ret->n_kept;
    job->n_replaced = ret->n_replaced;
    return KN_OK;
}

static KnCode all_are_listed(Job *job, const KnSnapshot *head, bool *ret, KnErr *err)
{
    KnManifestFile *files = NULL;
    size_t n = 0;
    size_t found = 0;
    KN_TRY(read_list(job, head, &files, &n, err));
    for (size_t i = 0; i < n; i++)
        found += kn_map_find(job->replaced, kn_str(files[i].path)) != NULL;
    *ret = found == kn_map_count(job->replaced);
    return KN_OK;
}

static KnCode validate(void *arg, const KnSnapshot *base, const KnSnapshot *head, KnErr *err)
{
    (void)base;
    Job *job = arg;
    bool listed = false;
    KN_TRY(all_are_listed(job, head, &listed, err));
    if (listed)
        return KN_OK;
    throw_away(job);
    KN_TRY(choose_spec(job, err));
    KN_TRY(write_all(job, head, err));
    job->none_left = job->created.len == 0;
    if (job->none_left)
        return kn_err_set(err, KN_E_CONFLICT,
                          "table %s: another writer has rewritten the manifests",
                          job->w->tbl->name);
    return KN_OK;
}

static KnCode run(Job *job, int64_t *ret_id, KnErr *err)
{
    KnWriter *w = job->w;
    const KnSnapshot *head = NULL;
    KN_TRY(kn_branch_find(w->tbl, kn_writer_branch(w), &head, err));
    KN_TRY(choose_spec(job, err));
    KN_TRY(write_all(job, head, err));
    if (job->created.len == 0)
        return KN_OK;
    KnSnapshotDraft draft = {
        .operation = "replace", .validate = validate, .manifests = compose, .arg = job};
    KnCode rc = kn_snapshot_produce(w, &draft, ret_id, err);
    return job->none_left ? KN_OK : rc;
}

static void job_done(Job *job)
{
    drop_groups(job);
    kn_vec_done(&job->created);
    kn_map_free(job->replaced);
}

KnCode kn_rewrite_manifests_plan(KnTable *tbl, const KnRewriteManifestsOptions *opts,
                                 KnManifestsPlanned ret[2], KnErr *err)
{
    KnWriter w;
    KN_TRY(kn_writer_init(&w, tbl, NULL, &opts->write, err));
    Job job = {.w = &w, .opts = opts};
    const KnSnapshot *head = NULL;
    KnCode rc = kn_branch_find(tbl, kn_writer_branch(&w), &head, err);
    if (rc == KN_OK)
        rc = choose_spec(&job, err);
    if (rc == KN_OK)
        rc = plan(&job, head, err);
    for (int i = 0; rc == KN_OK && i < SIDES; i++) {
        const KnManifestFile *old = NULL;
        size_t n = kn_regroup_inputs(job.groups[i], &old);
        ret[i] = (KnManifestsPlanned){.deletes = i == 1,
                                      .spec_id = job.spec->spec_id,
                                      .n_manifests = (int64_t)n,
                                      .n_entries = kn_regroup_entries(job.groups[i]),
                                      .n_new = (int64_t)kn_regroup_outputs(job.groups[i])};
        for (size_t f = 0; f < n; f++)
            ret[i].bytes += old[f].length;
    }
    job_done(&job);
    kn_writer_done(&w, true);
    return rc;
}

KnCode kn_write_rewrite_manifests(KnTable *tbl, const KnRewriteManifestsOptions *opts,
                                  KnRewriteManifestsResult *ret, KnErr *err)
{
    KnWriter w;
    KN_TRY(kn_writer_init(&w, tbl, NULL, &opts->write, err));
    Job job = {.w = &w, .opts = opts, .replaced = kn_map_new()};
    KnRewriteManifestsResult res = {.snapshot_id = -1};
    KnCode rc = run(&job, &res.snapshot_id, err);
    if (res.snapshot_id >= 0) {
        res.n_created = (int64_t)job.created.len;
        res.n_entries = job.n_entries;
        res.n_kept = job.n_kept;
        res.n_replaced = job.n_replaced;
    }
    job_done(&job);
    kn_writer_done(&w, rc == KN_OK || rc == KN_E_UNKNOWN);
    if (rc != KN_OK)
        return kn_err_wrap(err, rc, "rewrite manifests of table %s", tbl->name);
    *ret = res;
    return res.snapshot_id < 0 ? KN_OK : kn_fault_at("write-after-commit", err);
}

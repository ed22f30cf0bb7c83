/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rewrite_deletes_plan.c - which files of position deletes are rewritten, in which groups.
 *
 * Live ones are read from the delete manifests; the scan's plan tells which data files each may be
 * about. A file that is about one data file, as such files are wanted
 * (write.delete.granularity=file), and the only one for it, would come out as it is.
 */
#include <inttypes.h>

#include "base/map.h"
#include "iceberg/expr/expr.h"
#include "iceberg/maintain/rewrite_deletes.h"
#include "iceberg/manifest/partition_key.h"
#include "iceberg/write/write_internal.h"

typedef KN_VEC(const KnScanTask *) TaskList;

/* A live file of position deletes. */
typedef struct Candidate {
    const KnManifestEntry *entry;
    TaskList tasks; /* that it applies to */
} Candidate;

typedef KN_VEC(Candidate *) CandidateList;

typedef struct Limits {
    KnRewriteSizes sizes;
    bool by_file;
} Limits;

typedef struct Planning {
    const KnTable *tbl;
    const KnRewriteDeletesOptions *opts;
    KnDeletesPlan *plan;
    Limits limits;
    KnMap *by_name;      /* Candidate * */
    KnMap *by_partition; /* CandidateList * */
    KN_VEC(KnDeleteGroup) groups;
    KnEntryVec dangling;
    KnMap *grouped; /* data files of the groups so far, where vectors are made */
    KnBuf key;
} Planning;

KnRewriteDeletesOptions kn_rewrite_deletes_defaults(void)
{
    return (KnRewriteDeletesOptions){.sizes = {.min_file_bytes = -1},
                                     .progress = KN_PROGRESS_NEVER};
}

static KnCode fill_limits(Planning *p, KnErr *err)
{
    const KnMetadata *md = p->tbl->md;
    Limits *l = &p->limits;
    KnRewriteSizes *sizes = &l->sizes;
    *sizes = p->opts->sizes;
    kn_rewrite_sizes_fill(
        sizes, kn_write_property_i64(md, "write.delete.target-file-size-bytes", INT64_C(64) << 20));
    sizes->rewrite_all |= p->plan->vectors;
    l->by_file =
        strcasecmp(kn_metadata_property(md, "write.delete.granularity", "partition"), "file") == 0;
    if (sizes->target_file_bytes <= sizes->min_file_bytes ||
        sizes->target_file_bytes >= sizes->max_file_bytes || sizes->target_file_bytes <= 0)
        return kn_err_set(err, KN_E_INVAL,
                          "target-file-size-bytes (%" PRId64 ") must be between "
                          "min-file-size-bytes (%" PRId64 ") and max-file-size-bytes (%" PRId64 ")",
                          sizes->target_file_bytes, sizes->min_file_bytes, sizes->max_file_bytes);
    return KN_OK;
}

/* ---- candidates ---- */

static bool is_position_file(const KnDataFile *file)
{
    return file->content == KN_CONTENT_POSITION_DELETES && file->format != KN_FORMAT_PUFFIN;
}

static bool is_wanted(const Planning *p, const KnDataFile *file)
{
    const KnPartitionSpec *spec = kn_metadata_find_spec(p->tbl->md, file->spec_id);
    return is_position_file(file) &&
           (!p->opts->filter || !spec ||
            kn_expr_may_match_partition(p->opts->filter, spec, kn_metadata_schema(p->tbl->md),
                                        file));
}

static KnCode take_file(void *arg, const KnManifestEntry *entry, KnErr *err)
{
    Planning *p = arg;
    if (!is_wanted(p, &entry->file))
        return KN_OK;
    bool made = false;
    void **slot = kn_map_get_or_add(p->by_name, kn_manifest_entry_key(&p->key, entry), &made);
    if (made) {
        Candidate *found = kn_arena_zalloc(p->plan->arena, sizeof(*found));
        found->entry = kn_manifest_entry_copy(p->plan->arena, entry);
        *slot = found;
    }
    return kn_buf_check(&p->key, err);
}

static KnCode read_files(Planning *p, KnErr *err)
{
    const KnTable *tbl = p->tbl;
    KnManifestFile *files = NULL;
    size_t n = 0;
    KN_TRY(kn_manifest_list_read(tbl->io, p->plan->arena, p->plan->snapshot, &files, &n, err));
    KnManifestVisit visit = {.opts = {.with_metrics = true}, .fn = take_file, .arg = p};
    for (size_t i = 0; i < n; i++) {
        if (!files[i].deletes || kn_manifest_file_is_dead(&files[i]))
            continue;
        KnCode rc = kn_manifest_read(tbl->io, tbl->md, &files[i], &visit, err);
        if (rc != KN_OK)
            return kn_err_wrap(err, rc, "table %s: manifest '%.200s'", tbl->name, files[i].path);
    }
    return KN_OK;
}

/* Where a deletion vector is, the plan leaves out all else: those files are about nothing. */
static void link_tasks(Planning *p)
{
    const KnPlan *scan = p->plan->scan;
    for (size_t i = 0; i < scan->n_tasks; i++) {
        const KnScanTask *task = &scan->tasks[i];
        for (size_t d = 0; d < task->n_deletes; d++) {
            Candidate *found =
                kn_map_find(p->by_name, kn_manifest_entry_key(&p->key, task->deletes[d]));
            if (found)
                *kn_vec_push(&found->tasks) = task;
        }
    }
}

/* ---- groups ---- */

static size_t position_files_of(const KnScanTask *task)
{
    size_t n = 0;
    for (size_t i = 0; i < task->n_deletes; i++)
        n += is_position_file(&task->deletes[i]->file);
    return n;
}

static bool is_as_wanted(const Planning *p, const Candidate *found)
{
    return p->limits.by_file && kn_delete_named_data_file(&found->entry->file).ptr &&
           found->tasks.len == 1 && position_files_of(found->tasks.items[0]) == 1;
}

static void sort_out(Planning *p, Candidate *found)
{
    const KnRewriteSizes *sizes = &p->limits.sizes;
    const KnDataFile *file = &found->entry->file;
    if (found->tasks.len == 0) {
        *kn_vec_push(&p->dangling) = found->entry;
        return;
    }
    bool odd = kn_rewrite_sizes_odd(sizes, file->size_bytes);
    if (!sizes->rewrite_all && (!odd || is_as_wanted(p, found)))
        return;
    kn_buf_reset(&p->key);
    kn_partition_key(&p->key, file);
    bool made = false;
    void **slot = kn_map_get_or_add(p->by_partition, (KnStr){p->key.data, p->key.len}, &made);
    if (made)
        *slot = kn_arena_zalloc(p->plan->arena, sizeof(CandidateList));
    *kn_vec_push((CandidateList *)*slot) = found;
}

static void add_data_files(Planning *p, KnDeleteGroup *group, Candidate *const *files, size_t n)
{
    KN_MAP_AUTO seen = kn_map_new();
    TaskList tasks = {0};
    for (size_t i = 0; i < n; i++) {
        for (size_t t = 0; t < files[i]->tasks.len; t++) {
            const KnScanTask *task = files[i]->tasks.items[t];
            bool made = false;
            kn_map_get_or_add(seen, (KnStr){(const char *)&task, sizeof(task)}, &made);
            if (made)
                *kn_vec_push(&tasks) = task;
        }
    }
    const KnScanTask **kept = kn_arena_alloc(p->plan->arena, (tasks.len + 1) * sizeof(*kept));
    for (size_t i = 0; i < tasks.len; i++)
        kept[i] = tasks.items[i];
    group->n_data_files = tasks.len;
    group->data_files = kept;
    kn_vec_done(&tasks);
}

/* Partitions are apart, and so are their data files, or there would be two vectors for one. */
static KnCode check_apart(Planning *p, const KnDeleteGroup *group, KnErr *err)
{
    for (size_t i = 0; p->plan->vectors && i < group->n_data_files; i++) {
        const char *path = group->data_files[i]->data->file.path;
        bool made = false;
        kn_map_get_or_add(p->grouped, kn_str(path), &made);
        if (!made)
            return kn_err_set(err, KN_E_UNSUPPORTED,
                              "table %s: data file '%.300s' has position deletes of two partitions",
                              p->tbl->name, path);
    }
    return KN_OK;
}

static KnCode add_group(Planning *p, Candidate *const *files, size_t n, KnErr *err)
{
    const KnDataFile *first = &files[0]->entry->file;
    KnDeleteGroup group = {.spec_id = first->spec_id,
                           .n_partition = first->n_partition,
                           .partition = first->partition,
                           .n_files = n};
    const KnManifestEntry **entries = kn_arena_alloc(p->plan->arena, n * sizeof(*entries));
    for (size_t i = 0; i < n; i++) {
        entries[i] = files[i]->entry;
        kn_count_add(&group.bytes, entries[i]->file.size_bytes);
        kn_count_add(&group.positions, entries[i]->file.record_count);
    }
    group.files = entries;
    if (!kn_rewrite_sizes_worth(&p->limits.sizes, n, group.bytes))
        return KN_OK;
    add_data_files(p, &group, files, n);
    *kn_vec_push(&p->groups) = group;
    return check_apart(p, &group, err);
}

/* A data file has one vector, made of all its positions: partitions are not cut then. */
static KnCode pack(Planning *p, const CandidateList *list, KnErr *err)
{
    size_t first = 0;
    int64_t bytes = 0;
    for (size_t i = 0; i < list->len; i++) {
        int64_t size = list->items[i]->entry->file.size_bytes;
        if (p->plan->vectors || kn_rewrite_sizes_fit(&p->limits.sizes, &bytes, size))
            continue;
        if (i > first)
            KN_TRY(add_group(p, list->items + first, i - first, err));
        first = i;
        bytes = size;
    }
    return add_group(p, list->items + first, list->len - first, err);
}

static void keep_groups(Planning *p)
{
    KnDeletesPlan *plan = p->plan;
    plan->n_groups = p->groups.len;
    plan->groups = kn_arena_zalloc(plan->arena, (p->groups.len + 1) * sizeof(*plan->groups));
    for (size_t i = 0; i < p->groups.len; i++)
        plan->groups[i] = p->groups.items[i];
    const KnManifestEntry **dangling =
        kn_arena_zalloc(plan->arena, (p->dangling.len + 1) * sizeof(*dangling));
    for (size_t i = 0; i < p->dangling.len; i++)
        dangling[i] = p->dangling.items[i];
    plan->n_dangling = p->dangling.len;
    plan->dangling = dangling;
}

static KnCode make_groups(Planning *p, KnErr *err)
{
    KnStr key;
    void *value;
    for (size_t i = 0; i < kn_map_count(p->by_name); i++) {
        if (kn_map_entry(p->by_name, i, &key, &value))
            sort_out(p, value);
    }
    for (size_t i = 0; i < kn_map_count(p->by_partition); i++) {
        if (kn_map_entry(p->by_partition, i, &key, &value))
            KN_TRY(pack(p, value, err));
    }
    keep_groups(p);
    return KN_OK;
}

/* ---- all ---- */

static KnCode plan_all(Planning *p, KnErr *err)
{
    KnDeletesPlan *plan = p->plan;
    KN_TRY(kn_branch_find(p->tbl, p->opts->write.branch, &plan->snapshot, err));
    plan->vectors = p->tbl->md->format_version >= 3;
    KN_TRY(fill_limits(p, err));
    if (!plan->snapshot)
        return KN_OK;
    KN_TRY(read_files(p, err));
    if (kn_map_count(p->by_name) == 0)
        return KN_OK;
    KnPlanOptions scan = {.snapshot = plan->snapshot, .schema = kn_metadata_schema(p->tbl->md)};
    KN_TRY(kn_plan_scan(p->tbl, &scan, &plan->scan, err));
    link_tasks(p);
    return make_groups(p, err);
}

static void planning_done(Planning *p)
{
    KnStr key;
    void *value;
    for (size_t i = 0; i < kn_map_count(p->by_name); i++) {
        if (kn_map_entry(p->by_name, i, &key, &value))
            kn_vec_done(&((Candidate *)value)->tasks);
    }
    for (size_t i = 0; i < kn_map_count(p->by_partition); i++) {
        if (kn_map_entry(p->by_partition, i, &key, &value))
            kn_vec_done((CandidateList *)value);
    }
    kn_map_free(p->by_name);
    kn_map_free(p->by_partition);
    kn_map_free(p->grouped);
    kn_vec_done(&p->groups);
    kn_vec_done(&p->dangling);
    kn_buf_done(&p->key);
}

KnCode kn_rewrite_deletes_plan(const KnTable *tbl, const KnRewriteDeletesOptions *opts,
                               KnDeletesPlan **ret, KnErr *err)
{
    KnArena *arena = kn_arena_new(0);
    KnDeletesPlan *plan = kn_arena_zalloc(arena, sizeof(*plan));
    plan->arena = arena;
    kn_metadata_keep(arena, tbl->md);
    Planning p = {.tbl = tbl,
                  .opts = opts,
                  .plan = plan,
                  .by_name = kn_map_new(),
                  .by_partition = kn_map_new(),
                  .grouped = kn_map_new()};
    kn_buf_init(&p.key, (size_t)64 << 20);
    KnCode rc = plan_all(&p, err);
    planning_done(&p);
    if (rc == KN_OK)
        *ret = plan;
    else
        kn_rewrite_deletes_plan_free(plan);
    return rc;
}

KnDeletesPlan *kn_rewrite_deletes_plan_free(KnDeletesPlan *plan)
{
    if (!plan)
        return NULL;
    kn_plan_free(plan->scan);
    kn_arena_free(plan->arena);
    return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compact_plan.c - which files are rewritten, and in which groups (Java's
 * SizeBasedFileRewritePlanner and BinPackRewriteFilePlanner).
 *
 * A file is worth it when its size is out of bounds, or it has too many deletes; a group when it
 * has enough files, makes at least one whole file, or holds a file with too many deletes. Files of
 * another spec than the one that is written may hold rows of any partition: they count as one.
 */
#include <stdlib.h>

#include "base/map.h"
#include "base/vec.h"
#include "iceberg/maintain/compact.h"
#include "iceberg/manifest/partition_key.h"
#include "iceberg/write/write_internal.h"

typedef KN_VEC(const KnScanTask *) TaskList;
typedef KN_VEC(TaskList *) Partitions;
typedef KN_VEC(KnCompactGroup) GroupVec;

/* The options with their defaults put in. */
typedef struct Limits {
    KnRewriteSizes sizes;
    int64_t delete_files;
    double delete_ratio;
} Limits;

typedef struct Planning {
    const KnTable *tbl;
    const KnCompactOptions *opts;
    KnCompactPlan *plan;
    Limits limits;
    KnMap *by_key; /* TaskList * */
    Partitions partitions;
    GroupVec groups;
} Planning;

KnCompactOptions kn_compact_defaults(void)
{
    return (KnCompactOptions){.sizes = {.min_file_bytes = -1},
                              .delete_file_threshold = -1,
                              .output_spec_id = -1,
                              .max_failed_commits = -1,
                              .progress = KN_PROGRESS_NEVER};
}

/* ---- limits ---- */

static KnCode check_sizes(const KnRewriteSizes *s, KnErr *err)
{
    if (s->target_file_bytes <= 0)
        return kn_err_set(err, KN_E_INVAL, "target-file-size-bytes must be above 0");
    if (s->target_file_bytes <= s->min_file_bytes)
        return kn_err_set(err, KN_E_INVAL,
                          "target-file-size-bytes (%lld) must be above min-file-size-bytes (%lld): "
                          "all new files would be too small",
                          (long long)s->target_file_bytes, (long long)s->min_file_bytes);
    if (s->target_file_bytes >= s->max_file_bytes)
        return kn_err_set(err, KN_E_INVAL,
                          "target-file-size-bytes (%lld) must be below max-file-size-bytes (%lld): "
                          "all new files would be too large",
                          (long long)s->target_file_bytes, (long long)s->max_file_bytes);
    return KN_OK;
}

static KnCode fill_limits(Planning *p, KnErr *err)
{
    const KnCompactOptions *o = p->opts;
    Limits *l = &p->limits;
    l->sizes = o->sizes;
    kn_rewrite_sizes_fill(
        &l->sizes,
        kn_write_property_i64(p->tbl->md, "write.target-file-size-bytes", INT64_C(512) << 20));
    l->delete_files = o->delete_file_threshold >= 0 ? o->delete_file_threshold : INT64_MAX;
    l->delete_ratio = o->delete_ratio_threshold != 0 ? o->delete_ratio_threshold : 0.3;
    if (!(l->delete_ratio > 0 && l->delete_ratio <= 1))
        return kn_err_set(err, KN_E_INVAL,
                          "delete-ratio-threshold (%g) must be above 0 and at most 1",
                          l->delete_ratio);
    return check_sizes(&l->sizes, err);
}

/* ---- files ---- */

static bool has_too_many_deletes(const Limits *l, const KnScanTask *task)
{
    return (int64_t)task->n_deletes >= l->delete_files;
}

/* Of deletes that are about this file alone the number is known. */
static bool has_high_delete_ratio(const Limits *l, const KnScanTask *task)
{
    int64_t rows = task->data->file.record_count;
    int64_t dead = 0;
    for (size_t i = 0; i < task->n_deletes; i++) {
        const KnDataFile *file = &task->deletes[i]->file;
        if (file->content != KN_CONTENT_POSITION_DELETES || !kn_delete_named_data_file(file).ptr)
            continue;
        if (__builtin_add_overflow(dead, file->record_count, &dead) || dead > rows)
            dead = rows;
    }
    return rows > 0 && dead > 0 && (double)dead / (double)rows >= l->delete_ratio;
}

static bool is_worth_it(const Limits *l, const KnScanTask *task)
{
    return l->sizes.rewrite_all || kn_rewrite_sizes_odd(&l->sizes, task->data->file.size_bytes) ||
           has_too_many_deletes(l, task) || has_high_delete_ratio(l, task);
}

static void put_in_partition(Planning *p, const KnScanTask *task, KnBuf *key)
{
    const KnDataFile *file = &task->data->file;
    kn_buf_reset(key);
    if (file->spec_id == p->plan->spec->spec_id)
        kn_partition_key(key, file);
    else
        kn_buf_append(key, &file->spec_id, sizeof(file->spec_id));
    bool made;
    void **slot = kn_map_get_or_add(p->by_key, (KnStr){key->data, key->len}, &made);
    if (made) {
        *slot = kn_arena_zalloc(p->plan->arena, sizeof(TaskList));
        *kn_vec_push(&p->partitions) = *slot;
    }
    *kn_vec_push((TaskList *)*slot) = task;
}

static KnCode sort_files(Planning *p, KnErr *err)
{
    KN_BUF_AUTO key;
    kn_buf_init(&key, (size_t)64 << 20);
    const KnPlan *scan = p->plan->scan;
    for (size_t i = 0; i < scan->n_tasks; i++) {
        if (is_worth_it(&p->limits, &scan->tasks[i]))
            put_in_partition(p, &scan->tasks[i], &key);
    }
    return kn_buf_check(&key, err);
}

/* ---- groups ---- */

static bool group_is_worth_it(const Limits *l, const KnCompactGroup *group)
{
    if (kn_rewrite_sizes_worth(&l->sizes, group->n_tasks, group->bytes))
        return true;
    for (size_t i = 0; i < group->n_tasks; i++) {
        if (has_too_many_deletes(l, group->tasks[i]) || has_high_delete_ratio(l, group->tasks[i]))
            return true;
    }
    return false;
}

/* The target, and half of what is above it: a remainder then joins the last file. */
static int64_t most_file_bytes(const KnRewriteSizes *s)
{
    return s->target_file_bytes + (s->max_file_bytes - s->target_file_bytes) / 2;
}

static int64_t expected_files(const KnRewriteSizes *s, int64_t bytes)
{
    if (bytes < s->target_file_bytes)
        return 1;
    int64_t whole = bytes / s->target_file_bytes;
    int64_t rest = bytes % s->target_file_bytes;
    if (rest == 0)
        return whole;
    double average = (double)bytes / (double)whole;
    double roomy = 1.1 * (double)s->target_file_bytes;
    if (roomy > (double)most_file_bytes(s))
        roomy = (double)most_file_bytes(s);
    return rest <= s->min_file_bytes && average < roomy ? whole : whole + 1;
}

static int64_t file_bytes(const KnRewriteSizes *s, int64_t bytes)
{
    int64_t each = bytes / expected_files(s, bytes) + INT64_C(5) * 1024;
    if (each < s->target_file_bytes)
        return s->target_file_bytes;
    return each < most_file_bytes(s) ? each : most_file_bytes(s);
}

static void add_group(Planning *p, const KnScanTask *const *tasks, size_t n)
{
    const KnDataFile *first = &tasks[0]->data->file;
    bool same_spec = first->spec_id == p->plan->spec->spec_id;
    KnCompactGroup group = {.spec_id = first->spec_id, .one_partition = same_spec, .n_tasks = n};
    group.partition = same_spec && first->n_partition > 0 ? first->partition : NULL;
    group.tasks = kn_arena_alloc(p->plan->arena, n * sizeof(*group.tasks));
    for (size_t i = 0; i < n; i++) {
        const KnDataFile *file = &tasks[i]->data->file;
        group.tasks[i] = tasks[i];
        group.n_deletes += (int64_t)tasks[i]->n_deletes;
        kn_count_add(&group.bytes, file->size_bytes);
        kn_count_add(&group.rows, file->record_count);
    }
    if (!group_is_worth_it(&p->limits, &group))
        return;
    group.file_bytes = file_bytes(&p->limits.sizes, group.bytes);
    *kn_vec_push(&p->groups) = group;
}

/* In manifest order: files that were written together stay together. */
static void pack(Planning *p, const TaskList *list)
{
    size_t first = 0;
    int64_t bytes = 0;
    for (size_t i = 0; i < list->len; i++) {
        int64_t size = list->items[i]->data->file.size_bytes;
        if (kn_rewrite_sizes_fit(&p->limits.sizes, &bytes, size))
            continue;
        if (i > first)
            add_group(p, list->items + first, i - first);
        first = i;
        bytes = size;
    }
    if (list->len > first)
        add_group(p, list->items + first, list->len - first);
}

static void finish(Planning *p)
{
    KnCompactPlan *plan = p->plan;
    plan->n_groups = p->groups.len;
    plan->groups = kn_arena_zalloc(plan->arena, (p->groups.len + 1) * sizeof(*plan->groups));
    for (size_t i = 0; i < p->groups.len; i++) {
        plan->groups[i] = p->groups.items[i];
        plan->n_files += (int64_t)plan->groups[i].n_tasks;
        kn_count_add(&plan->bytes, plan->groups[i].bytes);
        kn_count_add(&plan->rows, plan->groups[i].rows);
    }
}

/* ---- all ---- */

static KnCode choose_spec(const Planning *p, const KnPartitionSpec **ret, KnErr *err)
{
    const KnMetadata *md = p->tbl->md;
    int32_t id = p->opts->output_spec_id;
    const KnPartitionSpec *spec = id < 0 ? kn_metadata_spec(md) : kn_metadata_find_spec(md, id);
    if (!spec)
        return kn_err_set(err, KN_E_INVAL, "output-spec-id %d: table %s has no such partition spec",
                          id, p->tbl->name);
    *ret = spec;
    return KN_OK;
}

static KnCode check_order(const Planning *p, KnErr *err)
{
    const KnSortOrder *of_table = kn_metadata_sort_order(p->tbl->md);
    if (!p->opts->sort || p->opts->sort_order || (of_table && of_table->n_fields > 0))
        return KN_OK;
    return kn_err_set(err, KN_E_INVAL,
                      "table %s has no sort order: give one (sort-order), or use the binpack "
                      "strategy",
                      p->tbl->name);
}

static KnCode plan_all(Planning *p, KnErr *err)
{
    KnCompactPlan *plan = p->plan;
    KN_TRY(check_order(p, err));
    KN_TRY(fill_limits(p, err));
    KN_TRY(choose_spec(p, &plan->spec, err));
    if (!plan->snapshot)
        return KN_OK;
    KnPlanOptions scan = {.snapshot = plan->snapshot,
                          .schema = kn_metadata_schema(p->tbl->md),
                          .filter = p->opts->filter};
    KN_TRY(kn_plan_scan(p->tbl, &scan, &plan->scan, err));
    KN_TRY(sort_files(p, err));
    for (size_t i = 0; i < p->partitions.len; i++)
        pack(p, p->partitions.items[i]);
    return KN_OK;
}

KnCode kn_compact_plan(const KnTable *tbl, const KnCompactOptions *opts, KnCompactPlan **ret,
                       KnErr *err)
{
    KnArena *arena = kn_arena_new(0);
    KnCompactPlan *plan = kn_arena_zalloc(arena, sizeof(*plan));
    plan->arena = arena;
    kn_metadata_keep(arena, tbl->md);
    Planning p = {.tbl = tbl, .opts = opts, .plan = plan, .by_key = kn_map_new()};
    KnCode rc = kn_branch_find(tbl, opts->write.branch, &plan->snapshot, err);
    if (rc == KN_OK)
        rc = plan_all(&p, err);
    finish(&p);
    for (size_t i = 0; i < p.partitions.len; i++)
        kn_vec_done(p.partitions.items[i]);
    kn_vec_done(&p.partitions);
    kn_vec_done(&p.groups);
    kn_map_free(p.by_key);
    if (rc == KN_OK)
        *ret = plan;
    else
        kn_compact_plan_free(plan);
    return rc;
}

KnCompactPlan *kn_compact_plan_free(KnCompactPlan *plan)
{
    if (!plan)
        return NULL;
    kn_plan_free(plan->scan);
    kn_arena_free(plan->arena);
    return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rest_scan.c - planning of scans on the server.
 *
 * A scan is planned at once and answered as "completed". Its tasks are rendered in pages: the first
 * comes with the answer, the others are plan tasks, "<plan-id>.<page>", that the client fetches. An
 * incremental scan takes, of the end snapshot's files, those that append snapshots after the start
 * added (as Java's IncrementalAppendScan).
 */
#include <stdlib.h>

#include "base/hash.h"
#include "base/map.h"
#include "catalog/server/rest_filter.h"
#include "catalog/server/rest_internal.h"
#include "iceberg/scan/plan.h"

enum { TASKS_A_PAGE = 1000, PAGE_BYTES_MAX = 1 << 30 };

typedef struct Scan {
    KnRestCall *call;
    KnTable *tbl;
    KnRestFilter names; /* of filter and columns, in the scan's schema */
    const KnSnapshot *snapshot;
    const KnExpr *filter;
    bool incremental;
    int64_t *between; /* the append snapshots of an incremental scan */
    size_t n_between;
    const int32_t *stats; /* fields whose counts are asked for */
    size_t n_stats;
} Scan;

/* ---- one file ---------------------------------------------------------------------------------
 */

static bool is_asked(const Scan *scan, int32_t id)
{
    for (size_t i = 0; i < scan->n_stats; i++) {
        if (scan->stats[i] == id)
            return true;
    }
    return false;
}

static void write_counts(const Scan *scan, KnBuf *out, const char *key, const KnIdCount *counts,
                         size_t n)
{
    const char *comma = "";
    if (!n || !scan->n_stats)
        return;
    kn_buf_printf(out, ",\"%s\":{\"keys\":[", key);
    for (size_t i = 0; i < n; i++) {
        if (is_asked(scan, counts[i].id)) {
            kn_buf_printf(out, "%s%d", comma, counts[i].id);
            comma = ",";
        }
    }
    kn_buf_text(out, "],\"values\":[");
    comma = "";
    for (size_t i = 0; i < n; i++) {
        if (is_asked(scan, counts[i].id)) {
            kn_buf_printf(out, "%s%lld", comma, (long long)counts[i].count);
            comma = ",";
        }
    }
    kn_buf_text(out, "]}");
}

/* The partition's values, in the order of the spec's fields. */
static KnCode write_partition(const Scan *scan, KnBuf *out, const KnDataFile *file, KnErr *err)
{
    const KnMetadata *md = scan->tbl->md;
    const KnPartitionSpec *spec = kn_metadata_find_spec(md, file->spec_id);
    const KnType *type = NULL;
    if (!spec)
        return kn_err_set(err, KN_E_CORRUPT, "'%.300s' has unknown partition spec %d", file->path,
                          file->spec_id);
    KN_TRY(kn_metadata_partition_type(scan->call->arena, md, spec, &type, err));
    kn_buf_text(out, ",\"partition\":[");
    for (size_t i = 0; i < file->n_partition && i < type->n_fields; i++) {
        if (i)
            kn_buf_char(out, ',');
        json_t *value = kn_value_to_json(type->fields[i].type, &file->partition[i]);
        kn_json_dump(out, value);
        json_decref(value);
    }
    kn_buf_char(out, ']');
    return KN_OK;
}

static void write_numbers(KnBuf *out, const char *key, const int64_t *numbers, size_t n)
{
    if (!n)
        return;
    kn_buf_printf(out, ",\"%s\":[", key);
    for (size_t i = 0; i < n; i++)
        kn_buf_printf(out, "%s%lld", i ? "," : "", (long long)numbers[i]);
    kn_buf_char(out, ']');
}

static void write_delete_fields(KnBuf *out, const KnDataFile *file)
{
    if (file->n_equality_ids) {
        kn_buf_text(out, ",\"equality-ids\":[");
        for (size_t i = 0; i < file->n_equality_ids; i++)
            kn_buf_printf(out, "%s%d", i ? "," : "", file->equality_ids[i]);
        kn_buf_char(out, ']');
    }
    if (file->referenced_data_file) {
        kn_buf_text(out, ",\"referenced-data-file\":");
        kn_json_quote(out, kn_str(file->referenced_data_file));
    }
    if (file->content_offset >= 0)
        kn_buf_printf(out, ",\"content-offset\":%lld,\"content-size-in-bytes\":%lld",
                      (long long)file->content_offset, (long long)file->content_size);
}

static KnCode write_file(const Scan *scan, KnBuf *out, const KnDataFile *file, KnErr *err)
{
    static const char *const contents[] = {"data", "position-deletes", "equality-deletes"};
    static const char *const formats[] = {"parquet", "avro", "orc", "puffin"};
    kn_buf_printf(out, "{\"spec-id\":%d,\"content\":\"%s\",\"file-path\":", file->spec_id,
                  contents[file->content]);
    kn_json_quote(out, kn_str(file->path));
    kn_buf_printf(out, ",\"file-format\":\"%s\"", formats[file->format]);
    KN_TRY(write_partition(scan, out, file, err));
    kn_buf_printf(out, ",\"file-size-in-bytes\":%lld,\"record-count\":%lld",
                  (long long)file->size_bytes, (long long)file->record_count);
    if (file->key_metadata.len) {
        kn_buf_text(out, ",\"key-metadata\":\"");
        for (size_t i = 0; i < file->key_metadata.len; i++)
            kn_buf_printf(out, "%02X", (unsigned char)file->key_metadata.ptr[i]);
        kn_buf_char(out, '"');
    }
    write_numbers(out, "split-offsets", file->split_offsets, file->n_split_offsets);
    if (file->sort_order_id >= 0)
        kn_buf_printf(out, ",\"sort-order-id\":%d", file->sort_order_id);
    if (file->content == KN_CONTENT_DATA && file->first_row_id >= 0)
        kn_buf_printf(out, ",\"first-row-id\":%lld", (long long)file->first_row_id);
    write_counts(scan, out, "column-sizes", file->column_sizes, file->n_column_sizes);
    write_counts(scan, out, "value-counts", file->value_counts, file->n_value_counts);
    write_counts(scan, out, "null-value-counts", file->null_counts, file->n_null_counts);
    write_counts(scan, out, "nan-value-counts", file->nan_counts, file->n_nan_counts);
    if (file->content != KN_CONTENT_DATA)
        write_delete_fields(out, file);
    kn_buf_char(out, '}');
    return KN_OK;
}

/* ---- a page -----------------------------------------------------------------------------------
 */

/* The place of a delete file in the page's list, which it is added to when it is new. */
static KnCode delete_index(const Scan *scan, KnMap *seen, KnBuf *deletes,
                           const KnManifestEntry *entry, size_t *ret, KnErr *err)
{
    KN_BUF_AUTO key = {0};
    bool is_new = false;
    kn_buf_init(&key, 1 << 20);
    void **slot = kn_map_get_or_add(seen, kn_manifest_entry_key(&key, entry), &is_new);
    if (is_new) {
        *slot = (void *)(uintptr_t)kn_map_count(seen); /* 1.. */
        if (deletes->len)
            kn_buf_char(deletes, ',');
        KN_TRY(write_file(scan, deletes, &entry->file, err));
    }
    *ret = (uintptr_t)*slot - 1;
    return KN_OK;
}

static KnCode write_task(const Scan *scan, const KnScanTask *task, KnMap *seen, KnBuf *deletes,
                         KnBuf *files, KnErr *err)
{
    kn_buf_text(files, "{\"data-file\":");
    KN_TRY(write_file(scan, files, &task->data->file, err));
    for (size_t i = 0; i < task->n_deletes; i++) {
        size_t index = 0;
        KN_TRY(delete_index(scan, seen, deletes, task->deletes[i], &index, err));
        kn_buf_printf(files, "%s%zu", i ? "," : ",\"delete-file-references\":[", index);
    }
    kn_buf_text(files, task->n_deletes ? "]}" : "}");
    return KN_OK;
}

/* `"delete-files":[…],"file-scan-tasks":[…]` of n tasks; malloc'ed. */
static KnCode make_page(const Scan *scan, const KnScanTask *const *tasks, size_t n, KnStr *ret,
                        KnErr *err)
{
    KN_BUF_AUTO deletes = {0};
    KN_BUF_AUTO files = {0};
    KN_BUF_AUTO page = {0};
    KN_MAP_AUTO seen = kn_map_new();
    kn_buf_init(&deletes, PAGE_BYTES_MAX);
    kn_buf_init(&files, PAGE_BYTES_MAX);
    kn_buf_init(&page, PAGE_BYTES_MAX);
    for (size_t i = 0; i < n; i++) {
        if (i)
            kn_buf_char(&files, ',');
        KN_TRY(write_task(scan, tasks[i], seen, &deletes, &files, err));
    }
    kn_buf_text(&page, "\"delete-files\":[");
    kn_buf_append(&page, deletes.data, deletes.len);
    kn_buf_text(&page, "],\"file-scan-tasks\":[");
    kn_buf_append(&page, files.data, files.len);
    kn_buf_char(&page, ']');
    KN_TRY(kn_buf_check(&deletes, err));
    KN_TRY(kn_buf_check(&files, err));
    KN_TRY(kn_buf_check(&page, err));
    ret->ptr = kn_buf_steal(&page, &ret->len);
    return KN_OK;
}

/* ---- the request ------------------------------------------------------------------------------
 */

/* The append snapshots after start, up to the end snapshot. */
static KnCode walk_back(Scan *scan, int64_t start, KnErr *err)
{
    const KnMetadata *md = scan->tbl->md;
    scan->between = kn_arena_zalloc(scan->call->arena, (md->n_snapshots + 1) * sizeof(int64_t));
    const KnSnapshot *snap = scan->snapshot;
    for (size_t steps = 0; snap && snap->snapshot_id != start && steps <= md->n_snapshots;
         steps++) {
        if (snap->operation && !strcmp(snap->operation, "append"))
            scan->between[scan->n_between++] = snap->snapshot_id;
        snap = snap->parent_id == -1 ? NULL : kn_metadata_find_snapshot(md, snap->parent_id);
    }
    if (!snap || snap->snapshot_id != start)
        return kn_err_set(err, KN_E_INVAL,
                          "start-snapshot-id %lld is not an ancestor of end-snapshot-id",
                          (long long)start);
    return KN_OK;
}

static KnCode choose_snapshot(Scan *scan, KnErr *err)
{
    const json_t *body = scan->call->body;
    int64_t id = -1, start = -1, end = -1;
    KN_TRY(kn_rest_asked(kn_json_opt_i64(body, "snapshot-id", &id, err), err));
    KN_TRY(kn_rest_asked(kn_json_opt_i64(body, "start-snapshot-id", &start, err), err));
    KN_TRY(kn_rest_asked(kn_json_opt_i64(body, "end-snapshot-id", &end, err), err));
    if (id != -1 && (start != -1 || end != -1))
        return kn_err_set(err, KN_E_INVAL,
                          "snapshot-id goes with neither start-snapshot-id nor end-snapshot-id");
    if ((start == -1) != (end == -1))
        return kn_err_set(err, KN_E_INVAL, "start-snapshot-id and end-snapshot-id go together");
    scan->incremental = end != -1;
    int64_t wanted = scan->incremental ? end : id;
    scan->snapshot = wanted == -1 ? kn_metadata_snapshot(scan->tbl->md)
                                  : kn_metadata_find_snapshot(scan->tbl->md, wanted);
    if (wanted != -1 && !scan->snapshot)
        return kn_err_set(err, KN_E_INVAL, "Cannot find snapshot with ID %lld", (long long)wanted);
    return scan->incremental ? walk_back(scan, start, err) : KN_OK;
}

static KnCode choose_schema(Scan *scan, KnErr *err)
{
    bool own = false, exact_case = true;
    const KnMetadata *md = scan->tbl->md;
    KN_TRY(
        kn_rest_asked(kn_json_opt_bool(scan->call->body, "use-snapshot-schema", &own, err), err));
    KN_TRY(
        kn_rest_asked(kn_json_opt_bool(scan->call->body, "case-sensitive", &exact_case, err), err));
    const KnSchema *schema = own && scan->snapshot && scan->snapshot->schema_id >= 0
                                 ? kn_metadata_find_schema(md, scan->snapshot->schema_id)
                                 : NULL;
    scan->names =
        (KnRestFilter){scan->call->arena, schema ? schema : kn_metadata_schema(md), !exact_case};
    return KN_OK;
}

/* Names of fields, which must exist; their ids to *ret (may be NULL). */
static KnCode read_fields(const Scan *scan, const char *key, const int32_t **ret, size_t *ret_n,
                          KnErr *err)
{
    json_t *array = NULL;
    KN_TRY(kn_rest_asked(kn_json_opt_array(scan->call->body, key, &array, err), err));
    size_t n = json_array_size(array);
    int32_t *ids = kn_arena_try_array(scan->call->arena, n + 1, sizeof(*ids));
    if (!ids)
        return kn_err_set(err, KN_E_NOMEM, "%s: %zu names", key, n);
    for (size_t i = 0; i < n; i++) {
        const char *name = json_string_value(json_array_get(array, i));
        const KnField *field = name ? kn_rest_field_find(&scan->names, name) : NULL;
        if (!name || (!field && !kn_str_starts_with(kn_str(name), KN_STR_LIT("_"))))
            return kn_err_set(err, KN_E_INVAL, "%s: Cannot find field '%.200s'", key,
                              name ? name : "(not a string)");
        ids[i] = field ? field->id : -1; /* "_pos" and the like are not in the schema */
    }
    if (ret) {
        *ret = ids;
        *ret_n = n;
    }
    return KN_OK;
}

static KnCode read_request(Scan *scan, KnErr *err)
{
    const json_t *body = scan->call->body;
    KN_TRY(choose_snapshot(scan, err));
    KN_TRY(choose_schema(scan, err));
    KN_TRY(read_fields(scan, "select", NULL, NULL, err));
    KN_TRY(read_fields(scan, "stats-fields", &scan->stats, &scan->n_stats, err));
    KN_TRY(kn_rest_asked(
        kn_rest_filter_parse(&scan->names, json_object_get(body, "filter"), &scan->filter, err),
        err));
    if (!scan->filter && scan->n_stats) /* counts are read for filters only */
        KN_TRY(kn_expr_parse(scan->call->arena, KN_STR_LIT("TRUE"), scan->names.schema,
                             &scan->filter, err));
    return KN_OK;
}

static bool is_wanted(const Scan *scan, const KnScanTask *task)
{
    if (!scan->incremental)
        return true;
    for (size_t i = 0; i < scan->n_between; i++) {
        if (scan->between[i] == task->data->snapshot_id)
            return true;
    }
    return false;
}

/* ---- answers ----------------------------------------------------------------------------------
 */

static uint64_t owner_of(const KnRestCall *call)
{
    const char *who = kn_principal_name(call->who);
    uint64_t hash = kn_hash64(who, strlen(who), 0);
    for (size_t i = 0; i < call->ident.n_levels; i++)
        hash = kn_hash64(call->ident.levels[i], strlen(call->ident.levels[i]) + 1, hash);
    return kn_hash64(call->ident.name, strlen(call->ident.name), hash);
}

static KnCode reply_plan(KnRestCall *call, const char *id, bool tell_id, size_t n_pages, KnStr page,
                         KnErr *err)
{
    KnBuf *body = kn_rest_buf(call);
    kn_buf_text(body, "{\"status\":\"completed\",");
    if (tell_id)
        kn_buf_printf(body, "\"plan-id\":\"%s\",", id);
    kn_buf_text(body, "\"plan-tasks\":[");
    for (size_t i = 1; i < n_pages; i++)
        kn_buf_printf(body, "%s\"%s.%zu\"", i > 1 ? "," : "", id, i);
    kn_buf_text(body, "],");
    kn_buf_append(body, page.ptr, page.len);
    kn_buf_char(body, '}');
    return kn_rest_reply_json(call, body, err);
}

static void free_pages(KnStr *pages, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free((void *)pages[i].ptr);
}

static KnCode answer_tasks(const Scan *scan, const KnScanTask *const *tasks, size_t n, KnErr *err)
{
    KnRestCall *call = scan->call;
    size_t n_pages = n ? (n + TASKS_A_PAGE - 1) / TASKS_A_PAGE : 1;
    KnStr *pages = kn_arena_zalloc(call->arena, n_pages * sizeof(*pages));
    for (size_t i = 0; i < n_pages; i++) {
        size_t from = i * TASKS_A_PAGE, left = n - from;
        KnCode rc = make_page(scan, tasks + from, left < TASKS_A_PAGE ? left : TASKS_A_PAGE,
                              &pages[i], err);
        if (rc != KN_OK) {
            free_pages(pages, i);
            return rc;
        }
    }
    KnStr first = {kn_arena_strndup(call->arena, pages[0].ptr, pages[0].len), pages[0].len};
    const char *id = kn_plans_add(call->rest->plans, call->arena, owner_of(call), pages, n_pages);
    return reply_plan(call, id, true, n_pages, first, err);
}

static void plan_done(void *arg)
{
    (void)kn_plan_free(arg);
}

static void table_done(void *arg)
{
    (void)kn_table_free(arg);
}

KnCode kn_rest_plan_scan(KnRestCall *call, KnErr *err)
{
    Scan scan = {.call = call};
    KnPlan *plan = NULL;
    KN_TRY(kn_table_load(kn_core_catalog(call->rest->ctx.core), &call->ident, &scan.tbl, err));
    kn_arena_defer(call->arena, table_done, scan.tbl);
    KN_TRY(read_request(&scan, err));
    if (!scan.snapshot)
        return answer_tasks(&scan, &(const KnScanTask *){NULL}, 0, err);
    KnPlanOptions opts = {scan.snapshot, scan.names.schema, scan.filter};
    KN_TRY(kn_plan_scan(scan.tbl, &opts, &plan, err));
    kn_arena_defer(call->arena, plan_done, plan);
    const KnScanTask **tasks = kn_arena_alloc(call->arena, (plan->n_tasks + 1) * sizeof(*tasks));
    size_t n = 0;
    for (size_t i = 0; i < plan->n_tasks; i++) {
        if (is_wanted(&scan, &plan->tasks[i]))
            tasks[n++] = &plan->tasks[i];
    }
    return answer_tasks(&scan, tasks, n, err);
}

static KnCode need_table(KnRestCall *call, KnErr *err)
{
    const char *location = NULL;
    return kn_core_table_pointer(call->rest->ctx.core, call->arena, &call->ident, &location, err);
}

static KnCode no_such(KnRestCall *call, const char *type, const KnErr *err)
{
    kn_rest_reply_error(call->arena, call->rsp, 404, type, err->msg);
    return KN_OK;
}

KnCode kn_rest_fetch_plan(KnRestCall *call, KnErr *err)
{
    KnStr page = {0};
    size_t n = 0;
    KN_TRY(need_table(call, err));
    if (kn_plans_page(call->rest->plans, call->arena,
                      &(KnPlanPage){owner_of(call), kn_str(call->arg), 0}, &page, err) != KN_OK)
        return no_such(call, "NoSuchPlanIdException", err);
    n = kn_plans_count(call->rest->plans, owner_of(call), kn_str(call->arg));
    return reply_plan(call, call->arg, false, n, page, err);
}

KnCode kn_rest_cancel_plan(KnRestCall *call, KnErr *err)
{
    KN_TRY(need_table(call, err));
    if (kn_plans_cancel(call->rest->plans, owner_of(call), kn_str(call->arg), err) != KN_OK)
        return no_such(call, "NoSuchPlanIdException", err);
    return kn_rest_reply_empty(call, 204);
}

KnCode kn_rest_fetch_tasks(KnRestCall *call, KnErr *err)
{
    const char *task = NULL;
    KnStr page = {0};
    int64_t number = -1;
    KN_TRY(kn_rest_asked(kn_json_get_str(call->body, "plan-task", &task, err), err));
    KN_TRY(need_table(call, err));
    const char *dot = strrchr(task, '.');
    KnStr id = {task, dot ? (size_t)(dot - task) : 0};
    if (!dot || !kn_str_to_i64(kn_str(dot + 1), &number) || number < 1)
        number = INT64_MAX; /* no plan has that page */
    if (kn_plans_page(call->rest->plans, call->arena,
                      &(KnPlanPage){owner_of(call), id, (size_t)number}, &page, err) != KN_OK)
        return no_such(call, "NoSuchPlanTaskException", err);
    KnBuf *body = kn_rest_buf(call);
    kn_buf_char(body, '{');
    kn_buf_append(body, page.ptr, page.len);
    kn_buf_char(body, '}');
    return kn_rest_reply_json(call, body, err);
}

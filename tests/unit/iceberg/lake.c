/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lake.c - see lake.h. The catalog keeps one document; load gives handles on it, commit checks,
 * applies, writes the next document and moves on.
 */
#include "unit/iceberg/lake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "engine/parquet.h"
#include "iceberg/scan/read.h"
#include "iceberg/write/write_internal.h"
#include "support/tempdir.h"

typedef struct LakeCatalog {
    KnCatalog base;
    Lake *lake;
    KnMetadata *md;
    char location[512]; /* of md's document */
    int version;
} LakeCatalog;

static const char *lake_id(const KnCatalog *cat)
{
    (void)cat;
    return "lake";
}

static KnCode lake_write(LakeCatalog *lc, const KnMetadata *md, KnErr *err)
{
    char uuid[37];
    if (snprintf(lc->location, sizeof(lc->location), "%s/metadata/%05d-%s.metadata.json",
                 lc->lake->dir, lc->version++, kn_random_uuid4(uuid)) < 0)
        abort();
    KN_BUF_AUTO json;
    kn_buf_init(&json, (size_t)64 << 20);
    KN_TRY(kn_metadata_to_json(md, &json, err));
    return kn_io_write(lc->lake->io, kn_str(lc->location), json.data, json.len, KN_IO_CREATE, err);
}

static KnCode lake_cat_load(KnCatalog *cat, const KnTableIdent *ident, KnTable **ret, KnErr *err)
{
    (void)err;
    LakeCatalog *lc = (LakeCatalog *)cat;
    static const char *const levels[] = {"ns"};
    KnTableIdent fixed = {.levels = levels, .n_levels = 1, .name = "tbl"};
    (void)ident;
    *ret = kn_table_new(cat, &fixed, lc->lake->io, kn_metadata_ref(lc->md), lc->location);
    return KN_OK;
}

static KnCode lake_cat_create(KnCatalog *cat, const KnTableIdent *ident,
                              const KnCreateTable *create, KnTable **ret, KnErr *err)
{
    LakeCatalog *lc = (LakeCatalog *)cat;
    KN_TRY(kn_metadata_create(create, &lc->md, err));
    KN_TRY(lake_write(lc, lc->md, err));
    return lake_cat_load(cat, ident, ret, err);
}

static KnCode lake_cat_commit(KnCatalog *cat, KnTable *tbl, const KnTableCommit *commit, KnErr *err)
{
    LakeCatalog *lc = (LakeCatalog *)cat;
    Lake *lake = lc->lake;
    if (lake->before_commit) {
        void (*turn)(Lake *) = lake->before_commit;
        lake->before_commit = NULL;
        turn(lake);
    }
    KN_TRY(kn_metadata_check(lc->md, commit->requirements, commit->n_requirements, err));
    KnMetadata *next = NULL;
    KN_TRY(kn_metadata_apply(lc->md, commit->updates, commit->n_updates, lc->location, &next, err));
    KN_TRY(lake_write(lc, next, err));
    kn_metadata_unref(lc->md);
    lc->md = next;
    if (lake->fail_commit != KN_OK) {
        KnCode code = lake->fail_commit;
        lake->fail_commit = KN_OK;
        return kn_err_set(err, code, "the catalog's answer was lost");
    }
    kn_table_set_metadata(tbl, kn_metadata_ref(next), lc->location);
    return KN_OK;
}

static KnCode lake_cat_drop(KnCatalog *cat, const KnTableIdent *ident, KnErr *err)
{
    (void)ident;
    (void)err;
    ((LakeCatalog *)cat)->lake->dropped = true;
    return KN_OK;
}

static KnCode lake_cat_register(KnCatalog *cat, const KnTableIdent *ident, const char *location,
                                KnTable **ret, KnErr *err)
{
    (void)cat;
    (void)ident;
    (void)location;
    (void)ret;
    return kn_err_set(err, KN_E_UNSUPPORTED, "register");
}

static KnCode lake_cat_rename(KnCatalog *cat, const KnTableIdent *from, const KnTableIdent *to,
                              KnErr *err)
{
    (void)cat;
    (void)from;
    (void)to;
    return kn_err_set(err, KN_E_UNSUPPORTED, "rename");
}

static KnCode lake_cat_list(KnCatalog *cat, KnTableListFn fn, void *arg, KnErr *err)
{
    (void)cat;
    (void)fn;
    (void)arg;
    return kn_err_set(err, KN_E_UNSUPPORTED, "list");
}

static KnCode lake_cat_namespace(KnCatalog *cat, const char *const *levels, size_t n, KnErr *err)
{
    (void)cat;
    (void)levels;
    (void)n;
    return kn_err_set(err, KN_E_UNSUPPORTED, "namespace");
}

static void lake_cat_close(KnCatalog *cat)
{
    LakeCatalog *lc = (LakeCatalog *)cat;
    kn_metadata_unref(lc->md);
    free(lc);
}

static const KnCatalogOps lake_ops = {
    .kind = "lake",
    .id = lake_id,
    .load = lake_cat_load,
    .create = lake_cat_create,
    .commit = lake_cat_commit,
    .drop = lake_cat_drop,
    .register_table = lake_cat_register,
    .rename = lake_cat_rename,
    .list = lake_cat_list,
    .create_namespace = lake_cat_namespace,
    .close = lake_cat_close,
};

static void open_engine(Lake *lake)
{
    KnEngineOptions opts = {.threads = 2};
    lake_ok(lake, kn_engine_open(&opts, &lake->eng, &lake->err));
    lake_ok(lake, kn_transform_register(lake->eng, &lake->err));
    lake_ok(lake, kn_session_open(lake->eng, &lake->ses, &lake->err));
}

static void create_table(Lake *lake, const LakeTable *table)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnSchema *schema = NULL;
    KnPartitionSpec *spec = NULL;
    KnSortOrder *order = NULL;
    lake_ok(lake, kn_schema_parse_text(arena, kn_str(table->schema), &schema, &lake->err));
    if (table->spec)
        lake_ok(lake, kn_partition_spec_parse_text(arena, schema, kn_str(table->spec), &spec,
                                                   &lake->err));
    if (table->order)
        lake_ok(lake,
                kn_sort_order_parse_text(arena, schema, kn_str(table->order), &order, &lake->err));
    KN_JSON_AUTO props = json_object();
    for (size_t i = 0; table->props[i]; i += 2)
        json_object_set_new(props, table->props[i], json_string(table->props[i + 1]));
    KnCreateTable create = {
        .format_version = table->version ? table->version : 2,
        .location = lake->dir,
        .schema = schema,
        .spec = spec,
        .sort_order = order,
        .properties = props,
    };
    lake_ok(lake, kn_table_create(lake->cat, NULL, &create, &lake->tbl, &lake->err));
}

void lake_open(Lake *lake, const LakeTable *table)
{
    memset(lake, 0, sizeof(*lake));
    test_tempdir_make(lake->dir);
    lake_ok(lake, kn_io_local_open(&lake->io, &lake->err));
    open_engine(lake);
    LakeCatalog *lc = calloc(1, sizeof(*lc));
    assert_non_null(lc);
    lc->base.ops = &lake_ops;
    lc->lake = lake;
    lake->cat = &lc->base;
    create_table(lake, table);
}

void lake_close(Lake *lake)
{
    kn_table_free(lake->tbl);
    kn_catalog_close(lake->cat);
    kn_session_close(lake->ses);
    kn_engine_close(lake->eng);
    kn_io_close(lake->io);
    if (!lake->keep)
        test_tempdir_remove(lake->dir);
}

KnTable *lake_load(Lake *lake)
{
    KnTable *tbl = NULL;
    lake_ok(lake, kn_table_load(lake->cat, NULL, &tbl, &lake->err));
    return tbl;
}

KnTable *lake_become_other(Lake *lake)
{
    KnTable *mine = lake->tbl;
    lake->tbl = lake_load(lake);
    return mine;
}

void lake_become_myself(Lake *lake, KnTable *mine)
{
    kn_table_free(lake->tbl);
    lake->tbl = mine;
}

const KnExpr *lake_expr(Lake *lake, const char *where)
{
    const KnExpr *expr = NULL;
    lake_ok(lake, kn_expr_parse(lake->tbl->arena, kn_str(where), kn_metadata_schema(lake->tbl->md),
                                &expr, &lake->err));
    return expr;
}

KnWriteResult lake_append(Lake *lake, const char *fmt, ...)
{
    char sql[8192];
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(sql, sizeof(sql), fmt, args);
    va_end(args);
    assert_in_range(len, 1, sizeof(sql) - 1);
    KnWriteResult res;
    lake_ok(lake, kn_write_append(lake->tbl, lake->ses, sql, NULL, &res, &lake->err));
    return res;
}

KnWriteResult lake_delete(Lake *lake, const char *where)
{
    KnWriteResult res;
    lake_ok(lake,
            kn_write_delete(lake->tbl, lake->ses, lake_expr(lake, where), NULL, &res, &lake->err));
    return res;
}

KnWriteResult lake_overwrite(Lake *lake, const char *where, const char *sql)
{
    KnWriteResult res;
    KnOverwrite change = {.filter = lake_expr(lake, where), .select_sql = sql};
    lake_ok(lake, kn_write_overwrite(lake->tbl, lake->ses, &change, NULL, &res, &lake->err));
    return res;
}

KnCode lake_append_code(Lake *lake, const char *sql)
{
    KnWriteResult res;
    return kn_write_append(lake->tbl, lake->ses, sql, NULL, &res, &lake->err);
}

KnPlan *lake_plan(Lake *lake)
{
    KnPlan *ret = NULL;
    KnPlanOptions opts = {.snapshot = kn_metadata_snapshot(lake->tbl->md),
                          .filter = lake_expr(lake, "TRUE")};
    lake_ok(lake, kn_plan_scan(lake->tbl, &opts, &ret, &lake->err));
    return ret;
}

static KnCode count_file(void *arg, const KnFileInfo *info, KnErr *err)
{
    (void)err;
    (void)info;
    ++*(size_t *)arg;
    return KN_OK;
}

size_t lake_files_below(Lake *lake, const char *folder)
{
    size_t n = 0;
    char path[512];
    assert_true(snprintf(path, sizeof(path), "%s/%s", lake->dir, folder) > 0);
    KnCode rc = kn_io_list(lake->io, kn_str(path), count_file, &n, &lake->err);
    assert_true(rc == KN_OK || rc == KN_E_NOTFOUND);
    return n;
}

/* ---- merge-on-read ---- */

enum { MAX_PARTS = 3 };

typedef struct Delta {
    Lake *lake;
    KnArena *arena;
    int64_t snapshot_id;
    KnManifestFile manifests[MAX_PARTS];
    size_t n_manifests;
} Delta;

static const char *new_path(Delta *d, const char *folder, const char *end)
{
    char uuid[37];
    return kn_arena_printf(d->arena, "%s/%s/%s%s", d->lake->dir, folder, kn_random_uuid4(uuid),
                           end);
}

static void write_part(Delta *d, const char *sql, const char *ids, KnDataFile file)
{
    Lake *lake = d->lake;
    const KnMetadata *md = lake->tbl->md;
    KnPqWritten *written = NULL;
    size_t n = 0;
    file.path = new_path(d, "data", ".parquet");
    KnPqWriteOptions opts = {
        .select_sql = sql, .target = file.path, .field_ids_sql = ids, .no_dictionary = true};
    lake_ok(lake,
            kn_io_prepare_dir(lake->io, kn_str(kn_arena_printf(d->arena, "%s/data", lake->dir)),
                              &lake->err));
    lake_ok(lake, kn_parquet_write(lake->ses, d->arena, &opts, &written, &n, &lake->err));
    if (n == 0)
        return;
    file.format = KN_FORMAT_PARQUET;
    file.record_count = written[0].n_rows;
    file.size_bytes = written[0].size_bytes;
    file.sort_order_id = -1;
    file.first_row_id = -1;
    file.content_offset = file.content_size = -1;
    KnManifestEntry entry = {.status = KN_ENTRY_ADDED,
                             .snapshot_id = -1,
                             .sequence_number = -1,
                             .file_sequence_number = -1,
                             .file = file};
    const KnManifestEntry *entries[] = {&entry};
    KnManifestWrite write = {.format_version = md->format_version,
                             .schema = kn_metadata_schema(md),
                             .spec = kn_metadata_spec(md),
                             .deletes = file.content != KN_CONTENT_DATA,
                             .snapshot_id = d->snapshot_id,
                             .entries = entries,
                             .n_entries = 1,
                             .path = new_path(d, "metadata", "-m0.avro")};
    lake_ok(lake, kn_partition_type(d->arena, write.spec, write.schema, &write.partition_type,
                                    &lake->err));
    lake_ok(lake, kn_manifest_write(lake->io, d->arena, &write, &d->manifests[d->n_manifests++],
                                    &lake->err));
}

static void write_keys(Delta *d, const LakeRowDelta *delta)
{
    KN_BUF_AUTO ids;
    kn_buf_init(&ids, 4096);
    int32_t *numbers = kn_arena_zalloc(d->arena, sizeof(*numbers) * 4);
    size_t n = 0;
    for (; delta->key_names[n]; n++) {
        numbers[n] =
            kn_schema_find_name(kn_metadata_schema(d->lake->tbl->md), kn_str(delta->key_names[n]))
                ->id;
        kn_buf_printf(&ids, "%s'%s': %d", n > 0 ? ", " : "{", delta->key_names[n], numbers[n]);
    }
    kn_buf_text(&ids, "}");
    write_part(d, delta->keys, ids.data,
               (KnDataFile){.content = KN_CONTENT_EQUALITY_DELETES,
                            .equality_ids = numbers,
                            .n_equality_ids = n});
}

static void write_rows(Delta *d, const LakeRowDelta *delta)
{
    KN_BUF_AUTO ids;
    kn_buf_init(&ids, 1 << 16);
    kn_file_shape_ids(&ids, kn_metadata_schema(d->lake->tbl->md), false);
    write_part(d, delta->rows, ids.data, (KnDataFile){.content = KN_CONTENT_DATA});
}

static void commit_delta(Delta *d, const LakeRowDelta *delta)
{
    Lake *lake = d->lake;
    const KnMetadata *md = lake->tbl->md;
    const KnSnapshot *parent = kn_metadata_snapshot(md);
    KnManifestFile *old = NULL;
    size_t n = 0;
    if (parent)
        lake_ok(lake, kn_manifest_list_read(lake->io, d->arena, parent, &old, &n, &lake->err));
    KnManifestFile *all = kn_arena_zalloc(d->arena, (n + MAX_PARTS) * sizeof(*all));
    for (size_t i = 0; i < d->n_manifests + n; i++)
        all[i] = i < d->n_manifests ? d->manifests[i] : old[i - d->n_manifests];
    KnSnapshot snap = {.snapshot_id = d->snapshot_id,
                       .parent_id = parent ? parent->snapshot_id : -1,
                       .sequence_number = md->last_sequence_number + 1,
                       .timestamp_ms = md->last_updated_ms,
                       .manifest_list = new_path(d, "metadata", ".avro"),
                       .operation = delta->operation,
                       .schema_id = md->current_schema_id,
                       .first_row_id = md->format_version >= 3 ? md->next_row_id : -1,
                       .added_rows = -1};
    KnManifestListWrite list = {.format_version = md->format_version,
                                .snapshot_id = snap.snapshot_id,
                                .parent_id = snap.parent_id,
                                .sequence_number = snap.sequence_number,
                                .first_row_id = snap.first_row_id,
                                .manifests = all,
                                .n_manifests = d->n_manifests + n,
                                .path = snap.manifest_list};
    int64_t next = 0;
    lake_ok(lake, kn_manifest_list_write(lake->io, &list, &next, &lake->err));
    if (md->format_version >= 3)
        snap.added_rows = next - snap.first_row_id;
    KN_JSON_AUTO summary = json_pack("{s:s}", "operation", delta->operation);
    snap.summary = summary;
    KnRef ref = {.name = "main",
                 .snapshot_id = snap.snapshot_id,
                 .is_branch = true,
                 .min_snapshots_to_keep = -1,
                 .max_snapshot_age_ms = -1,
                 .max_ref_age_ms = -1};
    KnUpdate updates[] = {{.kind = KN_UPDATE_ADD_SNAPSHOT, .snapshot = snap},
                          {.kind = KN_UPDATE_SET_SNAPSHOT_REF, .text = "main", .ref = ref}};
    KnTableCommit change = {.updates = updates, .n_updates = 2};
    lake_ok(lake, kn_table_commit(lake->tbl, &change, &lake->err));
}

void lake_row_delta(Lake *lake, const LakeRowDelta *delta)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    Delta d = {.lake = lake, .arena = arena, .snapshot_id = kn_random_id()};
    if (delta->positions)
        write_part(&d, delta->positions, "{'file_path': 2147483546, 'pos': 2147483545}",
                   (KnDataFile){.content = KN_CONTENT_POSITION_DELETES});
    if (delta->keys)
        write_keys(&d, delta);
    if (delta->rows)
        write_rows(&d, delta);
    commit_delta(&d, delta);
}

/* ---- reading ---- */

static void put_scan(KnBuf *buf, const char *sql, const char *scan)
{
    const char *at = strstr(sql, "{scan}");
    for (; at; sql = at + 6, at = strstr(sql, "{scan}")) {
        kn_buf_append(buf, sql, (size_t)(at - sql));
        kn_buf_printf(buf, "(%s)", scan);
    }
    kn_buf_text(buf, sql);
}

const char *lake_text_at(Lake *lake, const KnSnapshot *snap, const char *sql)
{
    static KnBuf out;
    kn_buf_done(&out);
    kn_buf_init(&out, (size_t)64 << 20);
    KnPlan *plan = NULL;
    KnPlanOptions plan_opts = {.snapshot = snap ? snap : kn_metadata_snapshot(lake->tbl->md)};
    lake_ok(lake, kn_plan_scan(lake->tbl, &plan_opts, &plan, &lake->err));
    KnRead *read = NULL;
    KnReadOptions opts = {.schema = kn_metadata_schema(lake->tbl->md)};
    KnScanTasks tasks = {plan->tasks, plan->n_tasks};
    lake_ok(lake, kn_read_open(lake->tbl, lake->ses, tasks, &opts, &read, &lake->err));
    KN_BUF_AUTO text;
    kn_buf_init(&text, (size_t)64 << 20);
    put_scan(&text, sql, kn_read_sql(read));
    KnCode rc = kn_session_query_text(lake->ses, text.data, &out, &lake->err);
    if (rc == KN_E_NOTFOUND)
        kn_buf_text(&out, "NULL");
    else
        lake_ok(lake, rc);
    kn_read_close(read);
    kn_plan_free(plan);
    return out.data;
}

const char *lake_text(Lake *lake, const char *sql)
{
    return lake_text_at(lake, NULL, sql);
}

const char *lake_rows(Lake *lake)
{
    return lake_text(lake,
                     "SELECT string_agg(CAST(s AS VARCHAR), ' ' ORDER BY s) FROM {scan} AS s");
}

void lake_exec(Lake *lake, const char *fmt, ...)
{
    char sql[8192];
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(sql, sizeof(sql), fmt, args);
    va_end(args);
    assert_in_range(len, 1, sizeof(sql) - 1);
    lake_ok(lake, kn_session_exec(lake->ses, sql, NULL, &lake->err));
}

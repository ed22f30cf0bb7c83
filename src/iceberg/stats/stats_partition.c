/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats_partition.c - counts of each partition (spec: "Partition Statistics"; Java:
 * PartitionStatsHandler).
 *
 * Manifests are read one at a time; memory grows with partitions. A row is one tuple of one spec;
 * the tuple stands in the struct of all partition fields that any spec of the table has. The rows
 * become a temporary table, sorted, and from there a Parquet file.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/path.h"
#include "base/random.h"
#include "base/vec.h"
#include "engine/parquet.h"
#include "iceberg/schema/value_internal.h"
#include "iceberg/stats/stats.h"
#include "iceberg/write/write_internal.h"

enum { ROWS_A_STATEMENT = 200 };

typedef struct Row {
    int32_t spec_id;
    const KnValue **values; /* by field of the unified type; NULL = not in the spec */
    int64_t records, files, bytes;
    int64_t position_records, position_files, vectors, vector_records;
    int64_t equality_records, equality_files;
    int64_t updated_ms, updated_id; /* -1 = not known */
} Row;

typedef struct Partitions {
    KnWriter w;
    const KnSnapshot *snap;
    KnType unified;
    KnMap *rows; /* spec and tuple as bytes -> Row */
    KnBuf key;
    bool global_deletes; /* equality deletes that reach every partition */
    /* of the manifest at hand */
    const KnType *type;
    size_t *place; /* of the spec's fields in the unified type */
} Partitions;

/* ---- the unified type ---- */

static KnField *find_field(KnField *fields, size_t n, int32_t id)
{
    for (size_t i = 0; i < n; i++)
        if (fields[i].id == id)
            return &fields[i];
    return NULL;
}

static int by_id(const void *a, const void *b)
{
    int32_t x = ((const KnField *)a)->id, y = ((const KnField *)b)->id;

    return (x > y) - (x < y);
}

/* The engine tells names apart by more than case. */
static void make_unique(KnArena *arena, KnField *fields, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            if (j != i && kn_str_eq_nocase(kn_str(fields[i].name), kn_str(fields[j].name)))
                fields[i].name = kn_arena_printf(arena, "%s_%d", fields[i].name, fields[i].id);
}

static KnCode add_spec(Partitions *p, const KnPartitionSpec *spec, KnField *fields, size_t *n,
                       KnErr *err)
{
    const KnType *type;

    KN_TRY(kn_metadata_partition_type(p->w.arena, p->w.tbl->md, spec, &type, err));
    for (size_t i = 0; i < spec->n_fields; i++)
        if (!find_field(fields, *n, spec->fields[i].field_id))
            fields[(*n)++] = (KnField){.id = spec->fields[i].field_id,
                                       .name = spec->fields[i].name,
                                       .type = type->fields[i].type};
    return KN_OK;
}

static bool has_partitions(const KnMetadata *md)
{
    for (size_t i = 0; i < md->n_specs; i++)
        if (!kn_partition_is_unpartitioned(md->specs[i]))
            return true;
    return false;
}

/* Newest spec first: its names count. */
static KnCode unify(Partitions *p, KnErr *err)
{
    const KnMetadata *md = p->w.tbl->md;
    KnField *fields;
    size_t n = 0, most = 0;

    if (!has_partitions(md))
        return kn_err_set(err, KN_E_INVAL, "Table must be partitioned");
    for (size_t i = 0; i < md->n_specs; i++)
        most += md->specs[i]->n_fields;
    fields = kn_arena_zalloc(p->w.arena, (most + 1) * sizeof(*fields));
    for (size_t i = md->n_specs; i-- > 0;)
        KN_TRY(add_spec(p, md->specs[i], fields, &n, err));
    qsort(fields, n, sizeof(*fields), by_id);
    make_unique(p->w.arena, fields, n);
    p->unified = (KnType){.kind = KN_TYPE_STRUCT, .n_fields = n, .fields = fields};
    return KN_OK;
}

/* ---- counting ---- */

static void make_key(Partitions *p, const KnDataFile *file)
{
    kn_buf_reset(&p->key);
    kn_buf_append(&p->key, &file->spec_id, sizeof(file->spec_id));
    for (size_t i = 0; i < file->n_partition; i++) {
        size_t at = p->key.len;
        uint32_t len = 0;
        kn_buf_append(&p->key, &len, sizeof(len));
        if (file->partition[i].null)
            continue;
        kn_value_encode(&p->key, p->type->fields[i].type, &file->partition[i]);
        len = (uint32_t)(p->key.len - at - sizeof(len)) + 1;
        if (p->key.data)
            memcpy(p->key.data + at, &len, sizeof(len));
    }
}

static const KnValue *keep_value(KnArena *arena, const KnType *type, const KnValue *value)
{
    KnValue *copy = kn_arena_alloc(arena, sizeof(*copy));
    bool bytes = type->kind == KN_TYPE_STRING || type->kind == KN_TYPE_UUID ||
                 type->kind == KN_TYPE_FIXED || type->kind == KN_TYPE_BINARY;

    *copy = *value;
    if (bytes && !value->null)
        copy->bytes.ptr = kn_arena_strndup(arena, value->bytes.ptr, value->bytes.len);
    return copy;
}

static KnCode find_row(Partitions *p, const KnDataFile *file, Row **ret, KnErr *err)
{
    KnArena *arena = p->w.arena;
    bool is_new = false;
    void **slot;
    Row *row;

    if (file->n_partition != p->type->n_fields)
        return kn_err_set(err, KN_E_CORRUPT, "%s: a partition of %zu values, its spec has %zu",
                          file->path, file->n_partition, p->type->n_fields);
    make_key(p, file);
    KN_TRY(kn_buf_check(&p->key, err));
    slot = kn_map_get_or_add(p->rows, (KnStr){p->key.data, p->key.len}, &is_new);
    if (is_new) {
        row = kn_arena_zalloc(arena, sizeof(*row));
        *row = (Row){.spec_id = file->spec_id, .updated_ms = -1, .updated_id = -1};
        row->values = kn_arena_zalloc(arena, (p->unified.n_fields + 1) * sizeof(*row->values));
        for (size_t i = 0; i < file->n_partition; i++)
            row->values[p->place[i]] =
                keep_value(arena, p->type->fields[i].type, &file->partition[i]);
        *slot = row;
    }
    *ret = *slot;
    return KN_OK;
}

static void count_live(Partitions *p, Row *row, const KnDataFile *file)
{
    switch (file->content) {
    case KN_CONTENT_DATA:
        row->records += file->record_count;
        row->files++;
        row->bytes += file->size_bytes;
        break;
    case KN_CONTENT_POSITION_DELETES:
        row->position_records += file->record_count;
        if (file->format == KN_FORMAT_PUFFIN) {
            row->vectors++;
            row->vector_records += file->record_count;
        } else {
            row->position_files++;
        }
        break;
    default:
        row->equality_records += file->record_count;
        row->equality_files++;
        p->global_deletes |= p->type->n_fields == 0;
        break;
    }
}

static KnCode count_entry(void *arg, const KnManifestEntry *entry, KnErr *err)
{
    Partitions *p = arg;
    const KnSnapshot *snap = kn_metadata_find_snapshot(p->w.tbl->md, entry->snapshot_id);
    Row *row;

    KN_TRY(find_row(p, &entry->file, &row, err));
    if (entry->status != KN_ENTRY_DELETED)
        count_live(p, row, &entry->file);
    if (snap && snap->timestamp_ms > row->updated_ms) {
        row->updated_ms = snap->timestamp_ms;
        row->updated_id = snap->snapshot_id;
    }
    return KN_OK;
}

static KnCode count_manifest(Partitions *p, const KnManifestFile *mf, KnErr *err)
{
    const KnMetadata *md = p->w.tbl->md;
    const KnPartitionSpec *spec = kn_metadata_find_spec(md, mf->spec_id);
    const KnManifestVisit visit = {.opts = {.with_deleted = true}, .fn = count_entry, .arg = p};

    if (!spec)
        return kn_err_set(err, KN_E_CORRUPT,
                          "manifest %s: partition spec %d is not in the table's metadata", mf->path,
                          mf->spec_id);
    KN_TRY(kn_metadata_partition_type(p->w.arena, md, spec, &p->type, err));
    p->place = kn_arena_zalloc(p->w.arena, (spec->n_fields + 1) * sizeof(*p->place));
    for (size_t i = 0; i < spec->n_fields; i++)
        p->place[i] = (size_t)(find_field((KnField *)p->unified.fields, p->unified.n_fields,
                                          spec->fields[i].field_id) -
                               p->unified.fields);
    KN_TRY(kn_table_check_path(p->w.tbl, kn_str(mf->path), err));
    return kn_manifest_read(p->w.tbl->io, md, mf, &visit, err);
}

static KnCode count(Partitions *p, KnErr *err)
{
    KnManifestFile *manifests = NULL;
    size_t n = 0;

    KN_TRY(kn_manifest_list_read(p->w.tbl->io, p->w.arena, p->snap, &manifests, &n, err));
    for (size_t i = 0; i < n; i++)
        KN_TRY(count_manifest(p, &manifests[i], err));
    return KN_OK;
}

/* ---- sorting ---- */

/* NULL first, which a field that the spec does not have is too. */
static int compare_values(const KnValue *a, const KnValue *b)
{
    bool null_a = !a || a->null, null_b = !b || b->null;

    if (null_a || null_b)
        return null_b - null_a;
    return a->kind == b->kind ? kn_value_compare(a, b) : (a->kind > b->kind) - (a->kind < b->kind);
}

static int compare_rows(const void *left, const void *right, void *arg)
{
    const Partitions *p = arg;
    const Row *a = *(Row *const *)left, *b = *(Row *const *)right;

    for (size_t i = 0; i < p->unified.n_fields; i++) {
        int order = compare_values(a->values[i], b->values[i]);
        if (order != 0)
            return order;
    }
    return (a->spec_id > b->spec_id) - (a->spec_id < b->spec_id);
}

static Row **sort_rows(Partitions *p, size_t *ret_n)
{
    size_t n = kn_map_count(p->rows);
    Row **rows = kn_arena_zalloc(p->w.arena, (n + 1) * sizeof(*rows));

    for (size_t i = 0; i < n; i++) {
        KnStr key;
        void *value;
        (void)kn_map_entry(p->rows, i, &key, &value);
        rows[i] = value;
    }
    qsort_r(rows, n, sizeof(*rows), compare_rows, p);
    *ret_n = n;
    return rows;
}

/* ---- rows ---- */

static const KnType type_int = {.kind = KN_TYPE_INT}, type_long = {.kind = KN_TYPE_LONG};

/* In v2 what came later is optional, and there are no deletion vectors. */
static const KnSchema *stats_schema(const Partitions *p)
{
    const bool v3 = p->w.tbl->md->format_version >= 3;
    const KnField fields[] = {
        {.id = 1, .name = "partition", .required = true, .type = &p->unified},
        {.id = 2, .name = "spec_id", .required = true, .type = &type_int},
        {.id = 3, .name = "data_record_count", .required = true, .type = &type_long},
        {.id = 4, .name = "data_file_count", .required = true, .type = &type_int},
        {.id = 5, .name = "total_data_file_size_in_bytes", .required = true, .type = &type_long},
        {.id = 6, .name = "position_delete_record_count", .required = v3, .type = &type_long},
        {.id = 7, .name = "position_delete_file_count", .required = v3, .type = &type_int},
        {.id = 8, .name = "equality_delete_record_count", .required = v3, .type = &type_long},
        {.id = 9, .name = "equality_delete_file_count", .required = v3, .type = &type_int},
        {.id = 10, .name = "total_record_count", .type = &type_long},
        {.id = 11, .name = "last_updated_at", .type = &type_long},
        {.id = 12, .name = "last_updated_snapshot_id", .type = &type_long},
        {.id = 13, .name = "dv_count", .required = true, .type = &type_int}};
    KnSchema *schema = kn_arena_zalloc(p->w.arena, sizeof(*schema));
    KnField *copy = kn_arena_alloc(p->w.arena, sizeof(fields));

    memcpy(copy, fields, sizeof(fields));
    schema->root = (KnType){.kind = KN_TYPE_STRUCT, .n_fields = v3 ? 13 : 12, .fields = copy};
    return schema;
}

static KnCode put_tuple(const Partitions *p, const Row *row, KnBuf *sql, KnErr *err)
{
    kn_buf_text(sql, "struct_pack(");
    for (size_t i = 0; i < p->unified.n_fields; i++) {
        static const KnValue null = {.null = true};
        const KnField *field = &p->unified.fields[i];
        const KnValue *value = row->values[i] ? row->values[i] : &null;
        kn_buf_text(sql, i > 0 ? ", " : "");
        kn_sql_ident(sql, kn_str(field->name));
        kn_buf_text(sql, " := ");
        KN_TRY(kn_value_sql(sql, field->type, field->type->kind == KN_TYPE_UNKNOWN ? &null : value,
                            err));
    }
    kn_buf_char(sql, ')');
    return KN_OK;
}

static void put_number(KnBuf *sql, bool known, int64_t number)
{
    if (known)
        kn_buf_printf(sql, ", %" PRId64, number);
    else
        kn_buf_text(sql, ", NULL");
}

static KnCode put_row(const Partitions *p, const Row *row, KnBuf *sql, KnErr *err)
{
    bool exact = row->position_files == 0 && row->equality_files == 0 && !p->global_deletes;

    kn_buf_char(sql, '(');
    KN_TRY(put_tuple(p, row, sql, err));
    kn_buf_printf(sql,
                  ", %d, %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64
                  ", %" PRId64,
                  row->spec_id, row->records, row->files, row->bytes, row->position_records,
                  row->position_files, row->equality_records, row->equality_files);
    put_number(sql, exact, row->records - row->vector_records);
    put_number(sql, row->updated_ms >= 0, row->updated_ms);
    put_number(sql, row->updated_ms >= 0, row->updated_id);
    if (p->w.tbl->md->format_version >= 3)
        put_number(sql, true, row->vectors);
    kn_buf_char(sql, ')');
    return KN_OK;
}

static KnCode insert_rows(Partitions *p, const char *table, KnErr *err)
{
    size_t n;
    Row **rows = sort_rows(p, &n);
    KN_BUF_AUTO sql;

    kn_buf_init(&sql, (size_t)256 << 20);
    for (size_t i = 0; i < n; i++) {
        if (i % ROWS_A_STATEMENT == 0)
            kn_buf_printf(&sql, "INSERT INTO %s VALUES ", table);
        KN_TRY(put_row(p, rows[i], &sql, err));
        if ((i + 1) % ROWS_A_STATEMENT != 0 && i + 1 < n) {
            kn_buf_text(&sql, ", ");
            continue;
        }
        KN_TRY(kn_buf_check(&sql, err));
        KN_TRY(kn_session_exec(p->w.ses, sql.data, NULL, err));
        kn_buf_reset(&sql);
    }
    return KN_OK;
}

static KnCode create_table(Partitions *p, const char *table, KnErr *err)
{
    const KnType *root = &p->w.schema->root;
    KN_BUF_AUTO sql;

    kn_buf_init(&sql, (size_t)16 << 20);
    kn_buf_printf(&sql, "CREATE TEMP TABLE %s (", table);
    for (size_t i = 0; i < root->n_fields; i++) {
        kn_buf_printf(&sql, "%sc%zu ", i > 0 ? ", " : "", i);
        KN_TRY(kn_type_sql(&sql, root->fields[i].type, err));
    }
    kn_buf_char(&sql, ')');
    KN_TRY(kn_buf_check(&sql, err));
    return kn_session_exec(p->w.ses, sql.data, NULL, err);
}

/* ---- the file ---- */

static KnCode copy_table(Partitions *p, const char *table, const char *path, KnErr *err)
{
    KnWriter *w = &p->w;
    const KnType *root = &w->schema->root;
    KnPqWriteOptions opts = {.codec = kn_write_parquet_codec(w->tbl->md, NULL)};
    KnPqWritten *files;
    size_t n;
    KN_BUF_AUTO sql;
    KN_BUF_AUTO ids;

    kn_buf_init(&sql, (size_t)16 << 20);
    kn_buf_init(&ids, (size_t)16 << 20);
    kn_buf_text(&sql, "SELECT ");
    for (size_t i = 0; i < root->n_fields; i++) {
        char name[24];
        (void)snprintf(name, sizeof(name), "c%zu", i);
        kn_buf_text(&sql, i > 0 ? ", " : "");
        kn_file_shape_sql(w->arena, &sql, root->fields[i].type, name);
        kn_buf_printf(&sql, " AS %s", root->fields[i].name);
    }
    kn_buf_printf(&sql, " FROM %s ORDER BY rowid", table);
    kn_file_shape_ids(&ids, w->schema, false);
    KN_TRY(kn_buf_check(&sql, err));
    KN_TRY(kn_buf_check(&ids, err));
    opts.select_sql = sql.data;
    opts.field_ids_sql = ids.data;
    opts.types = kn_file_shape_types(w->arena, w->schema, &opts.n_types);
    KN_TRY(kn_io_prepare_dir(w->tbl->io, kn_path_dirname(kn_str(path)), err));
    KN_TRY(kn_io_engine_target(w->tbl->io, w->arena, kn_str(path), &opts.target, err));
    KN_TRY(kn_parquet_write(w->ses, w->arena, &opts, &files, &n, err));
    return kn_io_sync(w->tbl->io, kn_str(path), err);
}

static KnCode write_file(Partitions *p, const char *path, KnErr *err)
{
    char uuid[37];
    const char *table;
    KnCode rc, dropped;

    (void)kn_random_uuid4(uuid);
    for (char *c = uuid; *c; c++) {
        if (*c == '-')
            *c = '_';
    }
    table = kn_arena_printf(p->w.arena, "knut_partitions_%s", uuid);
    KN_TRY(create_table(p, table, err));
    rc = insert_rows(p, table, err);
    if (rc == KN_OK)
        rc = copy_table(p, table, path, err);
    dropped = kn_session_exec(p->w.ses, kn_arena_printf(p->w.arena, "DROP TABLE %s", table), NULL,
                              rc == KN_OK ? err : NULL);
    return rc == KN_OK ? dropped : rc;
}

static KnCode compute(Partitions *p, const KnStatsOptions *opts, KnStatsFile *ret, KnErr *err)
{
    const int64_t id = p->snap->snapshot_id;
    KN_JSON_AUTO obj = json_object();
    KnFileInfo info;
    char uuid[37];
    const char *path;

    KN_TRY(unify(p, err));
    KN_TRY(count(p, err));
    p->w.schema = stats_schema(p);
    path = kn_writer_meta_path(&p->w,
                               kn_arena_printf(p->w.arena, "partition-stats-%" PRId64 "-%s.parquet",
                                               id, kn_random_uuid4(uuid)));
    KN_TRY(write_file(p, path, err));
    KN_TRY(kn_io_stat(p->w.tbl->io, kn_str(path), &info, err));
    json_object_set_new(obj, "snapshot-id", json_integer(id));
    json_object_set_new(obj, "statistics-path", json_string(path));
    json_object_set_new(obj, "file-size-in-bytes", json_integer((json_int_t)info.size));
    KN_TRY(kn_stats_commit(p->w.tbl, KN_UPDATE_SET_PARTITION_STATISTICS, obj, err));
    *ret = (KnStatsFile){.path = kn_arena_strdup(opts->arena, path),
                         .bytes = (int64_t)info.size,
                         .n_partitions = (int64_t)kn_map_count(p->rows)};
    return KN_OK;
}

KnCode kn_partition_stats_compute(KnTable *tbl, KnSession *ses, const KnStatsOptions *opts,
                                  KnStatsFile *ret, KnErr *err)
{
    const KnWriteOptions writing = {.cancelled = opts->cancelled};
    Partitions p = {.snap = opts->snapshot};
    KnCode rc;

    KN_TRY(kn_writer_init(&p.w, tbl, ses, &writing, err));
    p.rows = kn_map_new();
    kn_buf_init(&p.key, (size_t)64 << 20);
    rc = compute(&p, opts, ret, err);
    kn_map_free(p.rows);
    kn_buf_done(&p.key);
    kn_writer_done(&p.w, rc == KN_OK || rc == KN_E_UNKNOWN);
    return rc == KN_OK ? rc : kn_err_wrap(err, rc, "partition statistics of table %s", tbl->name);
}

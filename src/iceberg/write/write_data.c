/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write_data.c - rows to Parquet files, one partition after another.
 *
 * Rows without partitions and without floating point columns stream straight into COPY. Others are
 * first kept in a temporary table (spilled by the engine as needed): with partitions, to be sorted
 * by the partition tuple, so that each partition is one COPY of one range of that table; with
 * floats, to be asked for a -0.0 before they are written (see no_dictionary in engine/parquet.h;
 * the rows may come from a source that cannot be read twice). So a file holds one partition, memory
 * does not grow with their number, and names follow the rule
 * `<data folder>/<partition path>/NNNNN-<uuid>-M.parquet`: N counts the COPY commands of the
 * operation, M the files of one. The uuid makes names new, whoever else writes there.
 */
#include <inttypes.h>

#include "base/path.h"
#include "base/random.h"
#include "engine/parquet.h"
#include "iceberg/scan/row_sql.h"
#include "iceberg/write/write_internal.h"

/* One partition of the rows at hand. */
typedef struct Part {
    const KnValue *values;
    const char *where; /* of the kept rows */
} Part;

typedef KN_VEC(Part) PartVec;

typedef struct Data {
    KnWriter *w;
    bool lineage;
    const char *source; /* a relation with columns c0, ... (and lineage): table name or (SELECT) */
    const char *order;  /* " ORDER BY ..." or "" */
    bool negative_zero; /* some row has a -0.0: files go without dictionaries */
} Data;

/* ---- expressions ---- */

static bool is_float(const KnType *type)
{
    return type->kind == KN_TYPE_FLOAT || type->kind == KN_TYPE_DOUBLE;
}

/* The SQL of a column at any depth of structs; false = id is not there. */
static bool path_sql(KnBuf *buf, const KnType *type, int32_t id, const char *prefix,
                     const KnField **ret)
{
    for (size_t i = 0; i < type->n_fields; i++) {
        const KnField *field = &type->fields[i];
        KN_BUF_AUTO path;
        kn_buf_init(&path, (size_t)1 << 20);
        if (prefix) {
            kn_buf_printf(&path, "struct_extract(%s, ", prefix);
            kn_sql_text(&path, kn_str(field->name));
            kn_buf_char(&path, ')');
        } else {
            kn_buf_printf(&path, "c%zu", i);
        }
        if (field->id == id) {
            kn_buf_append(buf, path.data, path.len);
            *ret = field;
            return true;
        }
        if (field->type->kind == KN_TYPE_STRUCT && path_sql(buf, field->type, id, path.data, ret))
            return true;
    }
    return false;
}

static KnCode transform_sql(const KnWriter *w, KnBuf *buf, int32_t source_id, const KnTransform *t,
                            KnErr *err)
{
    KN_BUF_AUTO path;
    kn_buf_init(&path, (size_t)1 << 20);
    const KnField *source = NULL;
    if (!path_sql(&path, &w->schema->root, source_id, NULL, &source))
        return kn_err_set(err, KN_E_UNSUPPORTED,
                          "table %s: a partition or sort field's source column (id %d) is not in "
                          "the schema",
                          w->tbl->name, source_id);
    return kn_transform_sql(buf, t, source->type, (KnStr){path.data, path.len}, err);
}

/* p0, p1, ... of the partition spec; void fields and dropped sources are NULL. */
static KnCode partition_columns(const KnWriter *w, KnBuf *buf, KnErr *err)
{
    for (size_t i = 0; i < w->spec->n_fields; i++) {
        const KnPartitionField *field = &w->spec->fields[i];
        kn_buf_text(buf, ", ");
        if (field->transform.kind == KN_TRANSFORM_VOID) {
            kn_buf_text(buf, "CAST(NULL AS ");
            KN_TRY(kn_type_sql(buf, w->partition_type->fields[i].type, err));
            kn_buf_char(buf, ')');
        } else if (field->transform.kind == KN_TRANSFORM_UNKNOWN) {
            return kn_err_set(err, KN_E_UNSUPPORTED,
                              "table %s: partition transform %s is not known: rows cannot be "
                              "written",
                              w->tbl->name, field->transform.text);
        } else {
            KN_TRY(transform_sql(w, buf, field->source_id, &field->transform, err));
        }
        kn_buf_printf(buf, " AS p%zu", i);
    }
    return KN_OK;
}

/* The engine's sort takes a column that is a key back out of the key, where -0.0 has become 0.0:
 * floats are sorted by an expression. */
static KnCode sort_term(const KnWriter *w, KnBuf *buf, const KnSortField *field, KnErr *err)
{
    const KnField *source = kn_schema_find_id(w->schema, field->source_id);
    bool is_bare_float = source && is_float(source->type);
    kn_buf_text(buf, is_bare_float ? "(" : "");
    KN_TRY(transform_sql(w, buf, field->source_id, &field->transform, err));
    kn_buf_text(buf, is_bare_float ? " + 0)" : "");
    return KN_OK;
}

static KnCode order_sql(const KnWriter *w, const char **ret, KnErr *err)
{
    *ret = "";
    if (!w->sort_order)
        return KN_OK;
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, (size_t)1 << 20);
    for (size_t i = 0; i < w->sort_order->n_fields; i++) {
        const KnSortField *field = &w->sort_order->fields[i];
        kn_buf_text(&buf, i > 0 ? ", " : " ORDER BY ");
        KN_TRY(sort_term(w, &buf, field, err));
        kn_buf_text(&buf, field->descending ? " DESC" : " ASC");
        kn_buf_text(&buf, field->nulls_last ? " NULLS LAST" : " NULLS FIRST");
    }
    KN_TRY(kn_buf_check(&buf, err));
    *ret = kn_arena_strndup(w->arena, buf.data ? buf.data : "", buf.len);
    return KN_OK;
}

/* ---- files ---- */

static KnCode keep_file(Data *data, const Part *part, const char *folder, const KnPqWritten *file,
                        KnErr *err)
{
    KnWriter *w = data->w;
    KnStr name = kn_path_basename(kn_str(file->path));
    const char *location = kn_path_join(w->arena, kn_str(folder), name);
    *kn_vec_push(&w->data_files) = location;
    KnManifestEntry *entry = kn_arena_zalloc(w->arena, sizeof(*entry));
    *entry = (KnManifestEntry){
        .status = KN_ENTRY_ADDED,
        .snapshot_id = -1,
        .sequence_number = w->data_sequence,
        .file_sequence_number = -1,
        .file = {.content = KN_CONTENT_DATA,
                 .path = location,
                 .format = KN_FORMAT_PARQUET,
                 .spec_id = w->spec->spec_id,
                 .n_partition = part->values ? w->spec->n_fields : 0,
                 .partition = part->values,
                 .record_count = file->n_rows,
                 .size_bytes = file->size_bytes,
                 .n_split_offsets = file->n_groups,
                 .split_offsets = file->group_offsets,
                 .sort_order_id = w->sort_order ? w->sort_order->order_id : 0,
                 .first_row_id = -1,
                 .content_offset = -1,
                 .content_size = -1},
    };
    KN_TRY(kn_write_metrics(w, file, file->path, &entry->file, err));
    KN_TRY(kn_io_settled(kn_io_sync(w->tbl->io, kn_str(location), err), err));
    *kn_vec_push(&w->added) = entry;
    return KN_OK;
}

/* What a COPY that failed has left under its names. */
typedef struct Leftovers {
    KnWriter *w;
    const char *prefix;
} Leftovers;

static KnCode note_leftover(void *arg, const KnFileInfo *info, KnErr *err)
{
    (void)err;
    Leftovers *left = arg;
    if (kn_str_starts_with(kn_path_basename(kn_str(info->location)), kn_str(left->prefix)))
        *kn_vec_push(&left->w->data_files) = kn_arena_strdup(left->w->arena, info->location);
    return KN_OK;
}

void kn_write_note_leftovers(KnWriter *w, const char *folder, const char *prefix)
{
    Leftovers left = {w, prefix};
    (void)kn_io_list(w->tbl->io, kn_str(folder), note_leftover, &left, NULL);
}

const char *kn_write_parquet_codec(const KnMetadata *md, const char *own_key)
{
    const char *codec = kn_metadata_property(md, "write.parquet.compression-codec", "zstd");
    if (own_key)
        codec = kn_metadata_property(md, own_key, codec);
    return strcasecmp(codec, "lz4") == 0 ? "lz4_raw" : codec;
}

static uint64_t target_bytes(const KnWriter *w)
{
    const KnMetadata *md = w->tbl->md;
    if (w->target_bytes > 0)
        return (uint64_t)w->target_bytes;
    return (uint64_t)kn_write_property_i64(md, "write.target-file-size-bytes", INT64_C(512) << 20);
}

/* About the bytes of a value in memory. */
static int64_t width_of(const KnType *type)
{
    enum { TEXT = 32, ELEMENTS = 4 };
    int64_t inner = 0;
    for (size_t i = 0; i < type->n_fields; i++)
        inner += width_of(type->fields[i].type);
    switch (type->kind) {
    case KN_TYPE_BOOLEAN:
        return 1;
    case KN_TYPE_INT:
    case KN_TYPE_FLOAT:
    case KN_TYPE_DATE:
        return 4;
    case KN_TYPE_DECIMAL:
    case KN_TYPE_UUID:
        return 16;
    case KN_TYPE_FIXED:
        return type->length;
    case KN_TYPE_STRING:
    case KN_TYPE_BINARY:
        return TEXT;
    case KN_TYPE_STRUCT:
        return inner;
    case KN_TYPE_LIST:
    case KN_TYPE_MAP:
        return ELEMENTS * inner;
    default:
        return 8;
    }
}

/* A file ends with a row group, and the engine counts those in rows: as many as are about
 * write.parquet.row-group-size-bytes in memory, and no more than the file is to have. */
static int64_t group_rows(const KnWriter *w)
{
    enum { LEAST = 2048, MOST = 122880 };
    if (w->group_rows > 0)
        return w->group_rows;
    uint64_t bytes = (uint64_t)kn_write_property_i64(
        w->tbl->md, "write.parquet.row-group-size-bytes", INT64_C(128) << 20);
    if (target_bytes(w) < bytes)
        bytes = target_bytes(w);
    int64_t width = width_of(&w->schema->root);
    int64_t rows = (int64_t)(bytes / (uint64_t)(width > 0 ? width : 1));
    rows -= rows % LEAST;
    return rows < LEAST ? LEAST : rows > MOST ? MOST : rows;
}

static KnCode copy_part(Data *data, const Part *part, KnErr *err)
{
    KnWriter *w = data->w;
    KN_TRY(kn_writer_check_cancelled(w, err));
    const char *name = kn_arena_printf(w->arena, "%05" PRId64 "-%s-", w->n_commands++, w->uuid);
    KnWritePlace place;
    KN_TRY(kn_write_place(w, &(KnWritePartition){w->spec, w->partition_type, part->values},
                          kn_arena_printf(w->arena, "%s0.parquet", name), &place, err));
    const char *folder = place.folder;
    KN_TRY(kn_io_prepare_dir(w->tbl->io, kn_str(folder), err));
    const char *target = NULL;
    KN_TRY(kn_io_engine_target(w->tbl->io, w->arena, kn_str(folder), &target, err));
    KN_BUF_AUTO sql;
    KN_BUF_AUTO ids;
    kn_buf_init(&sql, (size_t)64 << 20);
    kn_buf_init(&ids, (size_t)64 << 20);
    kn_buf_text(&sql, "SELECT ");
    KN_TRY(kn_file_shape_columns(w->arena, w->tbl->name, w->schema, &sql, err));
    kn_buf_text(&sql, data->lineage ? ", _row_id, _last_updated_sequence_number" : "");
    kn_buf_printf(&sql, " FROM %s%s%s", data->source, part->where ? part->where : "", data->order);
    kn_file_shape_ids(&ids, w->schema, data->lineage);
    KN_TRY(kn_buf_check(&sql, err));
    KN_TRY(kn_buf_check(&ids, err));
    const char *prefix = kn_arena_printf(w->arena, "%s%s", place.name_prefix, name);
    const KnMetadata *md = w->tbl->md;
    KnPqWriteOptions opts = {
        .select_sql = sql.data,
        .target = target,
        .field_ids_sql = ids.data,
        .codec = kn_write_parquet_codec(md, NULL),
        .codec_level = (int)kn_write_property_i64(md, "write.parquet.compression-level", 0),
        .row_group_rows = group_rows(w),
        .target_bytes = target_bytes(w),
        .file_pattern = kn_arena_printf(w->arena, "%s{i}", prefix),
        .no_dictionary = data->negative_zero,
    };
    opts.types = kn_file_shape_types(w->arena, w->schema, &opts.n_types);
    KnPqWritten *files = NULL;
    size_t n = 0;
    KnCode rc = kn_parquet_write(w->ses, w->arena, &opts, &files, &n, err);
    if (rc != KN_OK)
        kn_write_note_leftovers(w, folder, prefix);
    for (size_t i = 0; rc == KN_OK && i < n; i++)
        rc = keep_file(data, part, folder, &files[i], err);
    return rc;
}

/* ---- partitions ---- */

/* A value that outlives its batch. */
static KnCode copy_value(const KnWriter *w, size_t field, const KnVector *vec, size_t row,
                         KnValue *ret, KnErr *err)
{
    const KnType *type = w->partition_type->fields[field].type;
    KN_TRY(kn_value_from_vector(w->arena, type, vec, row, ret, err));
    bool bytes =
        type->kind == KN_TYPE_STRING || type->kind == KN_TYPE_BINARY || type->kind == KN_TYPE_FIXED;
    if (bytes && !ret->null)
        ret->bytes.ptr = kn_arena_strndup(w->arena, ret->bytes.ptr, ret->bytes.len);
    return KN_OK;
}

/* " WHERE p0 IS NOT DISTINCT FROM ... AND ..." of one tuple. */
static KnCode where_sql(const KnWriter *w, const KnValue *values, const char **ret, KnErr *err)
{
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, (size_t)16 << 20);
    for (size_t i = 0; i < w->spec->n_fields; i++) {
        const KnType *type = w->partition_type->fields[i].type;
        kn_buf_printf(&buf, "%s p%zu ", i > 0 ? " AND" : " WHERE", i);
        if (values[i].null) {
            kn_buf_text(&buf, "IS NULL");
            continue;
        }
        kn_buf_text(&buf, "= ");
        KN_TRY(kn_value_sql(&buf, type, &values[i], err));
        if (is_float(type) && values[i].d == 0.0)
            kn_buf_printf(&buf, " AND signbit(p%zu) = %s", i,
                          __builtin_signbit(values[i].d) ? "true" : "false");
    }
    KN_TRY(kn_buf_check(&buf, err));
    *ret = kn_arena_strndup(w->arena, buf.data, buf.len);
    return KN_OK;
}

typedef struct Finding {
    const KnWriter *w;
    PartVec *parts;
} Finding;

static KnCode take_parts(void *arg, KnBatch *batch, KnErr *err)
{
    const Finding *to = arg;
    const KnWriter *w = to->w;
    size_t n = w->spec->n_fields;
    for (size_t row = 0; row < kn_batch_rows(batch); row++) {
        KnValue *values = kn_arena_zalloc(w->arena, n * sizeof(*values));
        for (size_t i = 0; i < n; i++) {
            KnVector vec = kn_batch_vector(batch, i);
            KN_TRY(copy_value(w, i, &vec, row, &values[i], err));
        }
        Part part = {.values = values};
        KN_TRY(where_sql(w, values, &part.where, err));
        *kn_vec_push(to->parts) = part;
    }
    return KN_OK;
}

/* Equal for rows of one partition, in any order. */
static void put_tuple(KnBuf *buf, const KnWriter *w)
{
    for (size_t i = 0; i < w->spec->n_fields; i++) {
        char name[24];
        int len = snprintf(name, sizeof(name), "p%zu", i);
        kn_buf_text(buf, i > 0 ? ", " : "");
        kn_row_identity_sql(buf, w->partition_type->fields[i].type, (KnStr){name, (size_t)len});
    }
}

static KnCode find_parts(const KnWriter *w, const char *table, PartVec *parts, KnErr *err)
{
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)16 << 20);
    kn_buf_text(&sql, "SELECT ");
    for (size_t i = 0; i < w->spec->n_fields; i++)
        kn_buf_printf(&sql, "%sany_value(p%zu)", i > 0 ? ", " : "", i);
    kn_buf_printf(&sql, " FROM %s GROUP BY ", table);
    put_tuple(&sql, w);
    kn_buf_text(&sql, " ORDER BY ");
    put_tuple(&sql, w);
    KN_TRY(kn_buf_check(&sql, err));
    Finding to = {.w = w, .parts = parts};
    return kn_session_visit(w->ses, sql.data, take_parts, &to, err);
}

/* Conditions for a -0.0 in any column; false = no column can have one. */
static bool put_negative_zero(KnBuf *buf, const KnSchema *schema)
{
    bool any = false;
    for (size_t i = 0; i < schema->root.n_fields; i++) {
        char name[24];
        int len = snprintf(name, sizeof(name), "c%zu", i);
        KN_BUF_AUTO one;
        kn_buf_init(&one, buf->max);
        KnStr column = {name, (size_t)len};
        if (!kn_row_negative_zero_sql(&one, schema->root.fields[i].type, column))
            continue;
        kn_buf_text(buf, any ? " OR " : "");
        kn_buf_append(buf, one.data, one.len);
        any = true;
    }
    return any;
}

static KnCode find_negative_zero(Data *data, const char *condition, KnErr *err)
{
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)256 << 20);
    kn_buf_printf(&sql, "SELECT EXISTS (SELECT 1 FROM %s WHERE %s)::BIGINT", data->source,
                  condition);
    KN_TRY(kn_buf_check(&sql, err));
    int64_t found = 0;
    KN_TRY(kn_session_query_i64(data->w->ses, sql.data, &found, err));
    data->negative_zero = found != 0;
    return KN_OK;
}

/* The rows as a temporary table, with partitions: with their tuple, in its order. */
static KnCode keep_rows(Data *data, const char *rows_sql, const char *table, KnErr *err)
{
    const KnWriter *w = data->w;
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)256 << 20);
    kn_buf_printf(&sql, "CREATE TEMP TABLE %s AS SELECT *", table);
    KN_TRY(partition_columns(w, &sql, err));
    kn_buf_printf(&sql, " FROM (%s\n) AS rows", rows_sql);
    if (w->spec->n_fields > 0) {
        kn_buf_text(&sql, " ORDER BY ");
        put_tuple(&sql, w);
    }
    KN_TRY(kn_buf_check(&sql, err));
    return kn_session_exec(w->ses, sql.data, NULL, err);
}

static KnCode copy_parts(Data *data, const char *table, KnErr *err)
{
    if (data->w->spec->n_fields == 0)
        return copy_part(data, &(Part){0}, err);
    PartVec parts = {0};
    KnCode rc = find_parts(data->w, table, &parts, err);
    for (size_t i = 0; rc == KN_OK && i < parts.len; i++)
        rc = copy_part(data, &parts.items[i], err);
    kn_vec_done(&parts);
    return rc;
}

static KnCode copy_kept(Data *data, const char *rows_sql, const char *zeros, KnErr *err)
{
    const KnWriter *w = data->w;
    const char *table = kn_arena_printf(w->arena, "kn_write_%" PRIx64, (uint64_t)kn_random_id());
    data->source = table;
    KnCode rc = keep_rows(data, rows_sql, table, err);
    if (rc == KN_OK && zeros)
        rc = find_negative_zero(data, zeros, err);
    if (rc == KN_OK)
        rc = copy_parts(data, table, err);
    KN_BUF_AUTO drop;
    kn_buf_init(&drop, 256);
    kn_buf_printf(&drop, "DROP TABLE IF EXISTS %s", table);
    KnCode dropped = kn_session_exec(w->ses, drop.data, NULL, rc == KN_OK ? err : NULL);
    return rc == KN_OK ? dropped : rc;
}

KnCode kn_write_data(KnWriter *w, const char *rows_sql, bool lineage, KnErr *err)
{
    KN_TRY(kn_file_shape_check(w->tbl->name, w->schema, err));
    Data data = {.w = w, .lineage = lineage};
    KN_TRY(order_sql(w, &data.order, err));
    KN_BUF_AUTO zeros;
    kn_buf_init(&zeros, (size_t)64 << 20);
    bool has_floats = put_negative_zero(&zeros, w->schema);
    KN_TRY(kn_buf_check(&zeros, err));
    if (w->spec->n_fields > 0 || has_floats)
        return copy_kept(&data, rows_sql, has_floats ? zeros.data : NULL, err);
    data.source = kn_arena_printf(w->arena, "(%s\n) AS rows", rows_sql);
    return copy_part(&data, &(Part){0}, err);
}

KnCode kn_write_partition(KnWriter *w, const char *rows_sql, bool lineage, const KnValue *tuple,
                          KnErr *err)
{
    KN_TRY(kn_file_shape_check(w->tbl->name, w->schema, err));
    Data data = {.w = w, .lineage = lineage};
    data.source = kn_arena_printf(w->arena, "(%s\n) AS rows", rows_sql);
    KN_TRY(order_sql(w, &data.order, err));
    KN_BUF_AUTO zeros;
    kn_buf_init(&zeros, (size_t)64 << 20);
    bool has_floats = put_negative_zero(&zeros, w->schema);
    KN_TRY(kn_buf_check(&zeros, err));
    if (has_floats)
        KN_TRY(find_negative_zero(&data, zeros.data, err));
    return copy_part(&data, &(Part){.values = tuple}, err);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats_table.c - numbers of distinct values (puffin-spec: "apache-datasketches-theta-v1 blob
 * type"; Java: ComputeTableStatsSparkAction).
 *
 * All columns in one pass over the snapshot's live rows: each value, in its binary single-value
 * form, goes to its column's sketch. Memory does not grow with rows.
 */
#include <inttypes.h>

#include "base/random.h"
#include "codec/puffin.h"
#include "codec/theta.h"
#include "iceberg/scan/read.h"
#include "iceberg/schema/type_internal.h"
#include "iceberg/stats/stats.h"
#include "iceberg/write/write_internal.h"

enum { STEPS_MAX = KN_TYPE_DEPTH_MAX };
#define BLOB_TYPE "apache-datasketches-theta-v1"

typedef struct Column {
    const char *name;
    const KnField *field;
    size_t n_steps;
    size_t steps[STEPS_MAX]; /* the top-level column, then fields of structs */
    KnTheta *theta;
} Column;

typedef struct Stats {
    KnWriter w;
    const KnStatsOptions *opts;
    const KnSchema *schema; /* of the snapshot */
    Column *columns;
    size_t n_columns;
    KnBuf bytes;
    KnArena *scratch; /* of a batch */
} Stats;

/* ---- which columns ---- */

static bool has_single_values(const KnType *type)
{
    return !kn_type_is_nested(type) && type->kind < KN_TYPE_UNKNOWN;
}

/* The way to a field through structs. */
static bool find_way(const KnType *type, int32_t id, Column *col)
{
    for (size_t i = 0; i < type->n_fields && col->n_steps < STEPS_MAX; i++) {
        const KnType *inner = type->fields[i].type;
        col->steps[col->n_steps++] = i;
        if (type->fields[i].id == id || (inner->kind == KN_TYPE_STRUCT && find_way(inner, id, col)))
            return true;
        col->n_steps--;
    }
    return false;
}

static KnCode add_column(Stats *s, const KnField *field, const char *name, KnErr *err)
{
    Column *col = &s->columns[s->n_columns];
    char text[KN_TYPE_TEXT_MAX];

    if (!has_single_values(field->type))
        return kn_err_set(err, KN_E_INVAL,
                          "Can't compute stats on non-primitive type column: %s "
                          "(%s)",
                          name, kn_type_text(field->type, text));
    if (!find_way(&s->schema->root, field->id, col))
        return kn_err_set(err, KN_E_INVAL, "Can't compute stats on column %s: a row may have many",
                          name);
    for (size_t i = 0; i < s->n_columns; i++)
        if (s->columns[i].field == field) {
            col->n_steps = 0;
            return KN_OK;
        }
    col->name = name;
    col->field = field;
    col->theta = kn_theta_new();
    s->n_columns++;
    return KN_OK;
}

static KnCode choose_columns(Stats *s, KnErr *err)
{
    const KnType *root = &s->schema->root;
    size_t most = s->opts->n_columns > 0 ? s->opts->n_columns : root->n_fields;

    s->columns = kn_arena_zalloc(s->w.arena, (most + 1) * sizeof(*s->columns));
    for (size_t i = 0; i < s->opts->n_columns; i++) {
        const char *name = s->opts->columns[i];
        const KnField *field = kn_schema_find_name(s->schema, kn_str(name));
        if (!field)
            return kn_err_set(err, KN_E_INVAL, "Can't find column %s", name);
        KN_TRY(add_column(s, field, name, err));
    }
    for (size_t i = 0; s->opts->n_columns == 0 && i < root->n_fields; i++)
        if (has_single_values(root->fields[i].type))
            KN_TRY(add_column(s, &root->fields[i], root->fields[i].name, err));
    if (s->n_columns == 0)
        return kn_err_set(err, KN_E_INVAL, "No columns found to compute stats");
    return KN_OK;
}

/* ---- rows ---- */

static KnCode add_value(Stats *s, Column *col, const KnVector *vec, size_t row, KnErr *err)
{
    KnValue value;

    KN_TRY(kn_value_from_vector(s->scratch, col->field->type, vec, row, &value, err));
    if (value.null)
        return KN_OK;
    kn_buf_reset(&s->bytes);
    kn_value_encode(&s->bytes, col->field->type, &value);
    KN_TRY(kn_buf_check(&s->bytes, err));
    kn_theta_add(col->theta, (KnStr){s->bytes.data, s->bytes.len});
    return KN_OK;
}

/* way: the column, and the structs that it is in. */
static bool is_inside_null(const KnVector *way, size_t n, size_t row)
{
    for (size_t i = 0; i + 1 < n; i++)
        if (kn_vector_is_null(&way[i], row))
            return true;
    return false;
}

static KnCode add_batch(Stats *s, const KnBatch *batch, Column *col, KnErr *err)
{
    KN_ARENA_AUTO scratch = kn_arena_new(0); /* uuids are made anew */
    KnVector way[STEPS_MAX];
    size_t n = col->n_steps;

    s->scratch = scratch;
    way[0] = kn_batch_vector(batch, col->steps[0]);
    for (size_t i = 1; i < n; i++)
        way[i] = kn_vector_child(&way[i - 1], col->steps[i]);
    for (size_t row = 0; row < kn_batch_rows(batch); row++)
        if (!is_inside_null(way, n, row))
            KN_TRY(add_value(s, col, &way[n - 1], row, err));
    return KN_OK;
}

static KnCode add_rows(Stats *s, KnScan *scan, KnErr *err)
{
    for (;;) {
        KN_BATCH_AUTO batch = NULL;
        KN_TRY(kn_writer_check_cancelled(&s->w, err));
        KN_TRY(kn_scan_next(scan, &batch, err));
        if (!batch)
            return KN_OK;
        for (size_t i = 0; i < s->n_columns; i++)
            KN_TRY(add_batch(s, batch, &s->columns[i], err));
    }
}

/* Only the top-level columns that are asked for are read; steps[0] becomes their place. */
static KnCode narrow(Stats *s, KnSchema **ret, KnErr *err)
{
    const KnType *root = &s->schema->root;
    const char **names = kn_arena_zalloc(s->w.arena, (root->n_fields + 1) * sizeof(*names));
    size_t *place = kn_arena_zalloc(s->w.arena, (root->n_fields + 1) * sizeof(*place));
    size_t n = 0;

    for (size_t f = 0; f < root->n_fields; f++) {
        bool wanted = false;
        for (size_t i = 0; i < s->n_columns; i++)
            wanted |= s->columns[i].steps[0] == f;
        place[f] = n;
        if (wanted)
            names[n++] = root->fields[f].name;
    }
    for (size_t i = 0; i < s->n_columns; i++)
        s->columns[i].steps[0] = place[s->columns[i].steps[0]];
    return kn_schema_project(s->w.arena, s->schema, names, n, ret, err);
}

static KnCode read_rows(Stats *s, KnErr *err)
{
    const KnPlanOptions planning = {.snapshot = s->opts->snapshot, .schema = s->schema};
    KnReadOptions reading = {0};
    KnSchema *wanted = NULL;
    KnPlan *plan = NULL;
    KnScan *scan = NULL;
    KnCode rc;

    KN_TRY(narrow(s, &wanted, err));
    reading.schema = wanted;
    KN_TRY(kn_plan_scan(s->w.tbl, &planning, &plan, err));
    rc = kn_scan_open(plan, s->w.ses, &reading, &scan, err);
    if (rc == KN_OK)
        rc = add_rows(s, scan, err);
    kn_scan_close(scan);
    kn_plan_free(plan);
    return rc;
}

/* ---- the file ---- */

static KnCode add_blob(Stats *s, KnPuffinWriter *puffin, Column *col, json_t *blobs, KnErr *err)
{
    const KnSnapshot *snap = s->opts->snapshot;
    KnPuffinPlace place;
    KN_JSON_AUTO properties = json_object();

    json_object_set_new(properties, "ndv",
                        json_sprintf("%" PRId64, (int64_t)kn_theta_estimate(col->theta)));
    const KnPuffinBlob blob = {.type = BLOB_TYPE,
                               .fields = &col->field->id,
                               .n_fields = 1,
                               .snapshot_id = snap->snapshot_id,
                               .sequence_number = snap->sequence_number,
                               .properties = properties};
    kn_buf_reset(&s->bytes);
    kn_theta_encode(col->theta, &s->bytes);
    KN_TRY(kn_buf_check(&s->bytes, err));
    KN_TRY(kn_puffin_writer_add(puffin, &blob, (KnStr){s->bytes.data, s->bytes.len}, &place, err));
    json_array_append_new(blobs, json_pack("{s:s, s:I, s:I, s:[i], s:O}", "type", BLOB_TYPE,
                                           "snapshot-id", (json_int_t)snap->snapshot_id,
                                           "sequence-number", (json_int_t)snap->sequence_number,
                                           "fields", col->field->id, "properties", properties));
    return KN_OK;
}

static KnCode write_file(Stats *s, KnPuffinWriter *puffin, json_t *obj, KnErr *err)
{
    const int64_t snapshot_id = s->opts->snapshot->snapshot_id;
    KN_JSON_AUTO blobs = json_array();
    char uuid[37];
    KnStr file;

    for (size_t i = 0; i < s->n_columns; i++)
        KN_TRY(add_blob(s, puffin, &s->columns[i], blobs, err));
    size_t footer_at = kn_puffin_writer_size(puffin);
    KN_TRY(kn_puffin_writer_finish(puffin, "knut " KN_VERSION_STRING, &file, err));
    const char *path =
        kn_writer_meta_path(&s->w, kn_arena_printf(s->w.arena, "%" PRId64 "-%s.stats", snapshot_id,
                                                   kn_random_uuid4(uuid)));
    json_object_set_new(obj, "snapshot-id", json_integer(snapshot_id));
    json_object_set_new(obj, "statistics-path", json_string(path));
    json_object_set_new(obj, "file-size-in-bytes", json_integer((json_int_t)file.len));
    json_object_set_new(obj, "file-footer-size-in-bytes",
                        json_integer((json_int_t)(file.len - footer_at)));
    json_object_set(obj, "blob-metadata", blobs);
    return kn_io_write(s->w.tbl->io, kn_str(path), file.ptr, file.len, KN_IO_CREATE, err);
}

KnCode kn_stats_commit(KnTable *tbl, KnUpdateKind kind, const json_t *obj, KnErr *err)
{
    const KnRequirement same_table = {.kind = KN_REQUIRE_UUID, .text = tbl->md->uuid};
    const KnUpdate update = {.kind = kind, .json = obj};
    const KnTableCommit commit = {&same_table, tbl->md->uuid ? 1 : 0, &update, 1};

    return kn_table_commit(tbl, &commit, err);
}

static void fill_result(Stats *s, KnArena *arena, const json_t *obj, KnStatsFile *ret)
{
    KnColumnNdv *columns = kn_arena_zalloc(arena, (s->n_columns + 1) * sizeof(*columns));

    for (size_t i = 0; i < s->n_columns; i++) {
        Column *col = &s->columns[i];
        columns[i] = (KnColumnNdv){.column = kn_arena_strdup(arena, col->name),
                                   .field_id = col->field->id,
                                   .ndv = (int64_t)kn_theta_estimate(col->theta),
                                   .exact = kn_theta_is_exact(col->theta)};
    }
    *ret = (KnStatsFile){
        .path = kn_arena_strdup(arena, json_string_value(json_object_get(obj, "statistics-path"))),
        .bytes = json_integer_value(json_object_get(obj, "file-size-in-bytes")),
        .n_columns = s->n_columns,
        .columns = columns};
}

static KnCode compute(Stats *s, KnStatsFile *ret, KnErr *err)
{
    KnPuffinWriter *puffin;
    KN_JSON_AUTO obj = json_object();
    KnCode rc;

    KN_TRY(choose_columns(s, err));
    KN_TRY(read_rows(s, err));
    puffin = kn_puffin_writer_new((size_t)1 << 30);
    rc = write_file(s, puffin, obj, err);
    kn_puffin_writer_free(puffin);
    KN_TRY(rc);
    KN_TRY(kn_stats_commit(s->w.tbl, KN_UPDATE_SET_STATISTICS, obj, err));
    fill_result(s, s->opts->arena, obj, ret);
    return KN_OK;
}

KnCode kn_stats_compute(KnTable *tbl, KnSession *ses, const KnStatsOptions *opts, KnStatsFile *ret,
                        KnErr *err)
{
    const KnWriteOptions writing = {.cancelled = opts->cancelled};
    Stats s = {.opts = opts};
    KnCode rc;

    KN_TRY(kn_writer_init(&s.w, tbl, ses, &writing, err));
    s.schema = kn_metadata_snapshot_schema(tbl->md, opts->snapshot);
    kn_buf_init(&s.bytes, (size_t)1 << 30);
    rc = compute(&s, ret, err);
    for (size_t i = 0; i < s.n_columns; i++)
        kn_theta_free(s.columns[i].theta);
    kn_buf_done(&s.bytes);
    kn_writer_done(&s.w, rc == KN_OK || rc == KN_E_UNKNOWN);
    return rc == KN_OK ? rc : kn_err_wrap(err, rc, "statistics of table %s", tbl->name);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write_deletes.c - rows that go, as position delete files (spec v2: "Position Delete Files").
 *
 * A delete file belongs to one partition of one spec, that of its data files, and is sorted by path
 * and position. The data files at hand are ranked by partition and path, the rows kept in a
 * temporary table by rank and position, so that each delete file is one COPY of one range of that
 * table: a range for each partition, or for each data file (write.delete.granularity). Paths are
 * spelled as the data files' manifests spell them. Deletes of one data file name it, and bound
 * file_path by it, so that readers look at them for this file only.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/random.h"
#include "engine/parquet.h"
#include "iceberg/manifest/partition_key.h"
#include "iceberg/write/write_internal.h"

/* A data file in the order of ranks. */
typedef struct Ranked {
    size_t task;
    KnStr partition; /* key */
    const KnDataFile *data;
} Ranked;

/* Ranks that one COPY writes. */
typedef struct Range {
    size_t first, last;
} Range;

typedef KN_VEC(Range) RangeVec;

typedef struct Deletes {
    KnWriter *w;
    const KnDoomed *doomed;
    bool by_file;
    Ranked *ranked;
    const char *ranks, *kept; /* temporary tables: (r, t, path), (r, p) */
    RangeVec ranges;
} Deletes;

KnManifestEntry *kn_write_delete_entry(KnWriter *w, const KnDataFile *data, const char *location)
{
    KnManifestEntry *entry = kn_arena_zalloc(w->arena, sizeof(*entry));
    *entry = (KnManifestEntry){
        .status = KN_ENTRY_ADDED,
        .snapshot_id = -1,
        .sequence_number = w->delete_sequence,
        .file_sequence_number = -1,
        .file = {.content = KN_CONTENT_POSITION_DELETES,
                 .path = location,
                 .format = KN_FORMAT_PARQUET,
                 .spec_id = data->spec_id,
                 .n_partition = data->n_partition,
                 .partition = data->partition,
                 .sort_order_id = -1,
                 .first_row_id = -1,
                 .content_offset = -1,
                 .content_size = -1},
    };
    return entry;
}

/* ---- ranks ---- */

static int compare_text(KnStr a, KnStr b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int cmp = n > 0 ? memcmp(a.ptr, b.ptr, n) : 0;
    return cmp != 0 ? cmp : (a.len > b.len) - (a.len < b.len);
}

static int compare_ranked(const void *a, const void *b)
{
    const Ranked *x = a;
    const Ranked *y = b;
    int cmp = compare_text(x->partition, y->partition);
    return cmp != 0 ? cmp : compare_text(kn_str(x->data->path), kn_str(y->data->path));
}

static void rank_files(Deletes *d)
{
    KnArena *arena = d->w->arena;
    KnScanTasks tasks = d->doomed->tasks;
    d->ranked = kn_arena_alloc(arena, (tasks.n + 1) * sizeof(*d->ranked));
    for (size_t i = 0; i < tasks.n; i++) {
        const KnDataFile *data = &tasks.items[i].data->file;
        KN_BUF_AUTO key;
        kn_buf_init(&key, (size_t)1 << 30);
        kn_partition_key(&key, data);
        KnStr kept = {kn_arena_strndup(arena, key.data, key.len), key.len};
        d->ranked[i] = (Ranked){i, kept, data};
    }
    qsort(d->ranked, tasks.n, sizeof(*d->ranked), compare_ranked);
}

static KnCode keep_ranks(Deletes *d, KnErr *err)
{
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)1 << 30);
    kn_buf_printf(&sql,
                  "CREATE TEMP TABLE %s AS SELECT CAST(r AS BIGINT) AS r, CAST(t AS BIGINT) AS t, "
                  "path FROM (VALUES ",
                  d->ranks);
    for (size_t i = 0; i < d->doomed->tasks.n; i++) {
        kn_buf_printf(&sql, "%s(%zu, %zu, ", i > 0 ? ", " : "", i, d->ranked[i].task);
        kn_sql_text(&sql, kn_str(d->ranked[i].data->path));
        kn_buf_char(&sql, ')');
    }
    kn_buf_text(&sql, ") AS v(r, t, path)");
    KN_TRY(kn_buf_check(&sql, err));
    return kn_session_exec(d->w->ses, sql.data, NULL, err);
}

static KnCode keep_rows(Deletes *d, KnErr *err)
{
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)256 << 20);
    kn_buf_printf(&sql,
                  "CREATE TEMP TABLE %s AS SELECT k.r AS r, d.p AS p FROM (%s) AS d(t, p) JOIN %s "
                  "AS k ON d.t = k.t ORDER BY k.r, d.p",
                  d->kept, d->doomed->rows_sql, d->ranks);
    KN_TRY(kn_buf_check(&sql, err));
    return kn_session_exec(d->w->ses, sql.data, NULL, err);
}

/* ---- ranges ---- */

static KnCode take_ranks(void *arg, KnBatch *batch, KnErr *err)
{
    (void)err;
    Deletes *d = arg;
    KnVector ranks = kn_batch_vector(batch, 0);
    for (size_t row = 0; row < kn_batch_rows(batch); row++) {
        size_t rank = (size_t)((const int64_t *)ranks.data)[row];
        Range *last = d->ranges.len > 0 ? &d->ranges.items[d->ranges.len - 1] : NULL;
        if (last && !d->by_file &&
            kn_str_eq(d->ranked[last->first].partition, d->ranked[rank].partition))
            last->last = rank;
        else
            *kn_vec_push(&d->ranges) = (Range){rank, rank};
    }
    return KN_OK;
}

static KnCode find_ranges(Deletes *d, KnErr *err)
{
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, 4096);
    kn_buf_printf(&sql, "SELECT DISTINCT r FROM %s ORDER BY r", d->kept);
    return kn_session_visit(d->w->ses, sql.data, take_ranks, d, err);
}

/* ---- files ---- */

static const KnPqColumnStats *stats_of(const KnPqWritten *file, const char *column)
{
    for (size_t i = 0; i < file->n_columns; i++) {
        if (strcmp(file->columns[i].path, column) == 0)
            return &file->columns[i];
    }
    return NULL;
}

static const KnIdBound *bound_of(KnArena *arena, KnStr bytes)
{
    KnIdBound *bound = kn_arena_alloc(arena, sizeof(*bound));
    *bound = (KnIdBound){KN_FIELD_ID_FILE_PATH,
                         {kn_arena_strndup(arena, bytes.ptr, bytes.len), bytes.len}};
    return bound;
}

/* Bounds of the whole path, never cut: readers compare them with data files' paths. */
static void put_bounds(KnWriter *w, const KnPqWritten *file, KnDataFile *ret)
{
    const KnPqColumnStats *path = stats_of(file, "file_path");
    if (!path || !path->min || !path->max)
        return;
    ret->lower = bound_of(w->arena, kn_str(path->min));
    ret->upper = bound_of(w->arena, kn_str(path->max));
    ret->n_lower = ret->n_upper = 1;
    if (strcmp(path->min, path->max) == 0)
        ret->referenced_data_file = kn_arena_strdup(w->arena, path->min);
}

static void put_sizes(KnWriter *w, const KnPqWritten *file, KnDataFile *ret)
{
    static const struct {
        const char *name;
        int32_t id;
    } columns[] = {{"pos", KN_FIELD_ID_POS}, {"file_path", KN_FIELD_ID_FILE_PATH}};
    KnIdCount *sizes = kn_arena_zalloc(w->arena, 2 * sizeof(*sizes));
    for (size_t i = 0; i < 2; i++) {
        const KnPqColumnStats *stats = stats_of(file, columns[i].name);
        if (stats)
            sizes[ret->n_column_sizes++] = (KnIdCount){columns[i].id, stats->size_bytes};
    }
    ret->column_sizes = sizes;
}

static KnCode keep_file(Deletes *d, const Range *range, const char *folder, const KnPqWritten *file,
                        KnErr *err)
{
    KnWriter *w = d->w;
    const KnDataFile *data = d->ranked[range->first].data;
    const char *location =
        kn_path_join(w->arena, kn_str(folder), kn_path_basename(kn_str(file->path)));
    *kn_vec_push(&w->data_files) = location;
    KnManifestEntry *entry = kn_write_delete_entry(w, data, location);
    entry->file.record_count = file->n_rows;
    entry->file.size_bytes = file->size_bytes;
    put_sizes(w, file, &entry->file);
    put_bounds(w, file, &entry->file);
    if (range->first == range->last)
        entry->file.referenced_data_file = data->path;
    KN_TRY(kn_io_sync(w->tbl->io, kn_str(location), err));
    *kn_vec_push(&w->added_deletes) = entry;
    return KN_OK;
}

static KnCode place_of(Deletes *d, const Range *range, const char *name, KnWritePlace *ret,
                       KnErr *err)
{
    const KnWriter *w = d->w;
    const KnDataFile *data = d->ranked[range->first].data;
    KnWritePartition part = {.spec = kn_metadata_find_spec(w->tbl->md, data->spec_id)};
    if (!part.spec)
        return kn_err_set(err, KN_E_CORRUPT,
                          "table %s: file '%.300s' has unknown partition spec %d", w->tbl->name,
                          data->path, data->spec_id);
    if (part.spec->n_fields > 0 && data->n_partition == part.spec->n_fields) {
        KN_TRY(kn_metadata_partition_type(w->arena, w->tbl->md, part.spec, &part.type, err));
        part.values = data->partition;
    }
    return kn_write_place(w, &part, name, ret, err);
}

static void copy_sql(const Deletes *d, const Range *range, KnBuf *sql)
{
    kn_buf_text(sql, "SELECT ");
    if (range->first == range->last) {
        kn_sql_text(sql, kn_str(d->ranked[range->first].data->path));
        kn_buf_printf(sql, " AS file_path, p AS pos FROM %s WHERE r = %zu ORDER BY p", d->kept,
                      range->first);
        return;
    }
    kn_buf_printf(sql,
                  "k.path AS file_path, d.p AS pos FROM %s AS d JOIN %s AS k ON d.r = k.r WHERE "
                  "d.r BETWEEN %zu AND %zu ORDER BY d.r, d.p",
                  d->kept, d->ranks, range->first, range->last);
}

static KnCode copy_range(Deletes *d, const Range *range, KnErr *err)
{
    KnWriter *w = d->w;
    const KnMetadata *md = w->tbl->md;
    KN_TRY(kn_writer_check_cancelled(w, err));
    const char *name = kn_arena_printf(w->arena, "%05" PRId64 "-%s-", w->n_commands++, w->uuid);
    KnWritePlace place = {0};
    const char *target = NULL;
    KN_TRY(place_of(d, range, kn_arena_printf(w->arena, "%s0-deletes.parquet", name), &place, err));
    const char *folder = place.folder;
    KN_TRY(kn_io_prepare_dir(w->tbl->io, kn_str(folder), err));
    KN_TRY(kn_io_engine_target(w->tbl->io, w->arena, kn_str(folder), &target, err));
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)16 << 20);
    copy_sql(d, range, &sql);
    KN_TRY(kn_buf_check(&sql, err));
    const char *prefix = kn_arena_printf(w->arena, "%s%s", place.name_prefix, name);
    KnPqWriteOptions opts = {
        .select_sql = sql.data,
        .target = target,
        .field_ids_sql = "{'file_path': 2147483546, 'pos': 2147483545}",
        .codec = kn_write_parquet_codec(md, "write.delete.parquet.compression-codec"),
        .target_bytes = (uint64_t)kn_write_property_i64(md, "write.delete.target-file-size-bytes",
                                                        INT64_C(64) << 20),
        .file_pattern = kn_arena_printf(w->arena, "%s{i}-deletes", prefix),
    };
    KnPqWritten *files = NULL;
    size_t n = 0;
    KnCode rc = kn_parquet_write(w->ses, w->arena, &opts, &files, &n, err);
    if (rc != KN_OK)
        kn_write_note_leftovers(w, folder, prefix);
    for (size_t i = 0; rc == KN_OK && i < n; i++)
        rc = keep_file(d, range, folder, &files[i], err);
    return rc;
}

/* ---- all ---- */

static KnCode write_all(Deletes *d, KnErr *err)
{
    rank_files(d);
    KN_TRY(keep_ranks(d, err));
    KN_TRY(keep_rows(d, err));
    KN_TRY(find_ranges(d, err));
    for (size_t i = 0; i < d->ranges.len; i++)
        KN_TRY(copy_range(d, &d->ranges.items[i], err));
    return KN_OK;
}

static KnCode write_positions(KnWriter *w, const KnDoomed *doomed, KnErr *err)
{
    uint64_t id = (uint64_t)kn_random_id();
    const char *granularity =
        kn_metadata_property(w->tbl->md, "write.delete.granularity", "partition");
    Deletes d = {.w = w, .doomed = doomed, .by_file = strcasecmp(granularity, "file") == 0};
    d.ranks = kn_arena_printf(w->arena, "kn_ranks_%" PRIx64, id);
    d.kept = kn_arena_printf(w->arena, "kn_rows_%" PRIx64, id);
    KnCode rc = write_all(&d, err);
    kn_vec_done(&d.ranges);
    KN_BUF_AUTO drop;
    kn_buf_init(&drop, 256);
    kn_buf_printf(&drop, "DROP TABLE IF EXISTS %s; DROP TABLE IF EXISTS %s", d.ranks, d.kept);
    KnCode dropped = kn_session_exec(w->ses, drop.data, NULL, rc == KN_OK ? err : NULL);
    return rc == KN_OK ? dropped : rc;
}

KnCode kn_write_deletes(KnWriter *w, const KnDoomed *doomed, KnErr *err)
{
    if (doomed->tasks.n == 0)
        return KN_OK;
    return w->tbl->md->format_version >= 3 ? kn_write_vectors(w, doomed, err)
                                           : write_positions(w, doomed, err);
}

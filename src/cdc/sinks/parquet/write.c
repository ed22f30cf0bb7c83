/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write.c - rows of a chunk to Parquet files of the window that is being written.
 *
 * Files have Iceberg's field ids and types (iceberg/write/file_shape.h); columns that name folders
 * are in the folders only, as Hive has it. The files are durable before the chunk's note is, which
 * says that all of them are there.
 */
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/path.h"
#include "cdc/sinks/parquet/parquet_internal.h"
#include "engine/parquet.h"
#include "iceberg/write/file_shape.h"

#define FEED "knut_chunk"

enum { MAX_SQL = 64 << 20 };

/* ---- columns ---- */

static const char *partition_of(const KnFiles *files, const KnField *field)
{
    for (size_t i = 0; i < files->set.n_partition; ++i)
        if (strcmp(files->set.partition[i], field->name) == 0)
            return files->set.partition[i];
    return NULL;
}

/* Types whose text in a folder's name gives the value back. */
static bool can_name_folders(const KnType *type)
{
    switch (type->kind) {
    case KN_TYPE_BOOLEAN:
    case KN_TYPE_INT:
    case KN_TYPE_LONG:
    case KN_TYPE_DATE:
    case KN_TYPE_DECIMAL:
    case KN_TYPE_STRING:
    case KN_TYPE_UUID:
        return true;
    default:
        return false;
    }
}

/* The columns that files have. */
static KnSchema written_schema(const KnFiles *files, KnArena *arena, const KnSchema *schema)
{
    KnSchema written = *schema;
    KnField *fields = kn_arena_zalloc(arena, (schema->root.n_fields + 1) * sizeof(*fields));
    size_t n = 0;
    for (size_t i = 0; i < schema->root.n_fields; ++i)
        if (!partition_of(files, &schema->root.fields[i]))
            fields[n++] = schema->root.fields[i];
    written.root.fields = fields;
    written.root.n_fields = n;
    return written;
}

static KnCode check_partition(const KnSchema *schema, const char *column, KnErr *err)
{
    for (size_t i = 0; i < schema->root.n_fields; ++i) {
        const KnField *field = &schema->root.fields[i];
        if (strcmp(field->name, column) != 0)
            continue;
        if (can_name_folders(field->type))
            return KN_OK;
        KN_BUF_AUTO type;
        kn_buf_init(&type, 65536);
        kn_type_format(&type, field->type);
        return kn_err_set(err, KN_E_UNSUPPORTED,
                          "partition-by: column %s is a %s, whose values cannot name folders",
                          column, type.data);
    }
    return kn_err_set(err, KN_E_INVAL, "partition-by: the table has no top-level column %s",
                      column);
}

KnCode kn_files_check_columns(const KnFiles *files, const KnSinkWindow *win, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, MAX_SQL);
    for (size_t i = 0; i < files->set.n_partition; ++i)
        KN_TRY(check_partition(win->schema, files->set.partition[i], err));
    for (size_t i = 0; i < win->schema->root.n_fields; ++i)
        if (strcasecmp(win->schema->root.fields[i].name, KN_FILES_WINDOW) == 0)
            return kn_err_set(err, KN_E_UNSUPPORTED,
                              "column %s: that is the name of the folders that windows are in",
                              win->schema->root.fields[i].name);
    const KnSchema written = written_schema(files, arena, win->schema);
    KN_TRY(kn_file_shape_check(files->target, win->schema, err));
    return kn_file_shape_columns(arena, files->target, &written, &sql, err);
}

/* ---- rows ---- */

/* A chunk on its way: what the feed calls. */
typedef struct Load {
    KnFiles *files;
    KnArena *arena;
    const KnSinkChunk *chunk;
    const KnRowSource *rows;
    const char *name; /* the label, as files are called */
    int64_t taken;
} Load;

static KnCode next_rows(void *arg, KnBatch **ret, KnErr *err)
{
    Load *load = arg;
    KN_TRY(load->rows->next(load->rows->arg, ret, err));
    if (*ret)
        load->taken += (int64_t)kn_batch_rows(*ret);
    return KN_OK;
}

/* Columns c0, c1, ... of kn_feed(). */
static KnCode open_feed(Load *load, KnFeed **ret, KnErr *err)
{
    const KnType *root = &load->files->schema->root;
    const char **names = kn_arena_zalloc(load->arena, (root->n_fields + 1) * sizeof(*names));
    const char **types = kn_arena_zalloc(load->arena, (root->n_fields + 1) * sizeof(*types));
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, MAX_SQL);
    for (size_t i = 0; i < root->n_fields; ++i) {
        kn_buf_reset(&sql);
        KN_TRY(kn_type_sql(&sql, root->fields[i].type, err));
        KN_TRY(kn_buf_check(&sql, err));
        names[i] = kn_arena_printf(load->arena, "c%zu", i);
        types[i] = kn_arena_strndup(load->arena, sql.data, sql.len);
    }
    const KnFeedOptions opts = {.name = FEED,
                                .column_names = names,
                                .column_types = types,
                                .n_columns = root->n_fields,
                                .next = next_rows,
                                .arg = load};
    return kn_feed_open(load->files->eng, &opts, ret, err);
}

/* What a process that was killed has left of this chunk. */
static KnCode remove_own(void *arg, const KnFileInfo *info, KnErr *err)
{
    const Load *load = arg;
    KnStr name = kn_path_basename(kn_str(info->location));
    if (!kn_str_starts_with(name, kn_str(load->name)))
        return KN_OK;
    return kn_io_remove(load->files->io, kn_str(info->location), err);
}

static KnCode copy_rows(Load *load, KnPqWritten **ret, size_t *ret_n, KnErr *err)
{
    const KnFiles *files = load->files;
    const KnFilesSettings *set = &files->set;
    KN_BUF_AUTO sql, ids;
    kn_buf_init(&sql, MAX_SQL);
    kn_buf_init(&ids, MAX_SQL);
    const KnSchema written = written_schema(files, load->arena, files->schema);
    kn_buf_text(&sql, "SELECT ");
    KN_TRY(kn_file_shape_columns(load->arena, files->target, files->schema, &sql, err));
    kn_buf_text(&sql, " FROM kn_feed('" FEED "')");
    kn_file_shape_ids(&ids, &written, false);
    KN_TRY(kn_buf_check(&sql, err));
    KN_TRY(kn_buf_check(&ids, err));
    bool folder = set->n_partition || set->file_bytes;
    KnPqWriteOptions opts = {
        .select_sql = sql.data,
        .target = folder ? files->stage
                         : kn_arena_printf(load->arena, "%s/%s.parquet", files->stage, load->name),
        .field_ids_sql = ids.data,
        .codec = set->codec,
        .codec_level = (int)set->codec_level,
        .row_group_rows = set->group_rows,
        .target_bytes = set->file_bytes,
        .partition_columns = set->partition,
        .n_partition_columns = set->n_partition,
        .file_pattern = kn_arena_printf(load->arena, "%s-{i}", load->name),
    };
    opts.types = kn_file_shape_types(load->arena, &written, &opts.n_types);
    return kn_parquet_write(files->ses, load->arena, &opts, ret, ret_n, err);
}

/* The note that the chunk is whole. Names of its files are told from the window's folder on. */
static KnCode write_note(const Load *load, const KnPqWritten *written, size_t n, KnErr *err)
{
    const KnFiles *files = load->files;
    KN_JSON_AUTO note = json_object();
    json_t *names = json_array();
    for (size_t i = 0; i < n; ++i)
        json_array_append_new(names, json_string(written[i].path + strlen(files->stage) + 1));
    json_object_set_new(note, "format", json_integer(1));
    json_object_set_new(note, "label", json_string(load->chunk->label));
    json_object_set_new(note, "rows", json_integer(load->taken));
    json_object_set_new(note, "files", names);
    KN_BUF_AUTO text;
    kn_buf_init(&text, (size_t)16 << 20);
    kn_json_dump(&text, note);
    kn_buf_char(&text, '\n');
    KN_TRY(kn_buf_check(&text, err));
    const char *path = kn_arena_printf(load->arena, "%s/_%s.json", files->stage, load->name);
    return kn_io_settled(
        kn_io_write(files->io, kn_str(path), text.data, text.len, KN_IO_REPLACE, err), err);
}

static KnCode write_rows(Load *load, KnErr *err)
{
    KnFiles *files = load->files;
    KnFeed *feed = NULL;
    KnPqWritten *written = NULL;
    size_t n = 0;
    KN_TRY(kn_io_list(files->io, kn_str(files->stage), remove_own, load, err));
    KN_FAULT("sink-begun", err);
    KN_TRY(open_feed(load, &feed, err));
    KnCode rc = copy_rows(load, &written, &n, err);
    feed = kn_feed_close(feed);
    KN_TRY(rc);
    KN_FAULT("sink-rows-written", err);
    KN_TRY(kn_io_settled(kn_io_sync(files->io, kn_str(files->stage), err), err));
    KN_TRY(write_note(load, written, n, err));
    return kn_fault_at("sink-chunk-staged", err);
}

KnCode kn_files_write(KnFiles *files, const KnSinkChunk *chunk, const KnRowSource *rows,
                      int64_t *ret_rows, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    Load load = {.files = files,
                 .arena = arena,
                 .chunk = chunk,
                 .rows = rows,
                 .name = kn_files_label_name(arena, chunk->label)};
    KN_TRY(write_rows(&load, err));
    if (load.taken != chunk->rows)
        return kn_err_set(err, KN_E_CORRUPT,
                          "chunk %" PRId64 ": %" PRId64 " rows came, %" PRId64 " were planned",
                          chunk->number, load.taken, chunk->rows);
    *ret_rows = load.taken;
    return KN_OK;
}

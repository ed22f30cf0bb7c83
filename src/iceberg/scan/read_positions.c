/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read_positions.c - position deletes of the files of a read.
 *
 * A delete file may name rows of any number of data files. Each is read once and joined with the
 * paths asked for, as raw text: the spec has position deletes name their data file exactly as the
 * manifest does. Which delete file applies to which data file is the plan's word, so the join goes
 * by both.
 */
#include <string.h>

#include "base/map.h"
#include "iceberg/scan/read_internal.h"

typedef struct Positions {
    KnRead *read;
    KnMap *files;                            /* path -> 1 + its number among entries */
    KN_VEC(const KnManifestEntry *) entries; /* distinct delete files */
    KnReadFile **targets;                    /* all data files */
} Positions;

static bool is_position_delete(const KnManifestEntry *entry)
{
    return entry->file.content == KN_CONTENT_POSITION_DELETES && !kn_read_is_vector(entry);
}

static void collect(Positions *p)
{
    for (size_t i = 0; i < p->read->n_files; i++) {
        const KnScanTask *task = p->read->files[i].task;
        for (size_t j = 0; j < task->n_deletes; j++) {
            if (!is_position_delete(task->deletes[j]))
                continue;
            bool made;
            void **slot = kn_map_get_or_add(p->files, kn_str(task->deletes[j]->file.path), &made);
            if (!made)
                continue;
            *kn_vec_push(&p->entries) = task->deletes[j];
            *slot = (void *)(uintptr_t)p->entries.len; /* NOLINT(performance-no-int-to-ptr) */
        }
    }
}

/* For every delete file its number within those of one shape, or n. */
static size_t *numbers_in_shape(const Positions *p, KnReadFile *const *files, size_t n)
{
    size_t *numbers = kn_arena_alloc(p->read->arena, (p->entries.len + 1) * sizeof(*numbers));
    for (size_t i = 0; i < p->entries.len; i++)
        numbers[i] = n;
    for (size_t i = 0; i < n; i++)
        numbers[files[i]->index] = i;
    return numbers;
}

/* (d, path, f): delete file d of this shape applies to the data file path, which has number f. */
static KnCode make_wanted(Positions *p, const char *table, KnReadFile *const *files, size_t n,
                          KnErr *err)
{
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)1 << 30);
    kn_buf_printf(&sql,
                  "CREATE TEMP TABLE %s AS SELECT CAST(d AS BIGINT) AS d, path, CAST(f AS "
                  "BIGINT) AS f FROM (VALUES ",
                  table);
    const size_t *numbers = numbers_in_shape(p, files, n);
    size_t rows = 0;
    for (size_t i = 0; i < p->read->n_files; i++) {
        const KnScanTask *task = p->read->files[i].task;
        for (size_t j = 0; j < task->n_deletes; j++) {
            if (!is_position_delete(task->deletes[j]))
                continue;
            KnStr path = kn_str(task->deletes[j]->file.path);
            size_t number = numbers[(uintptr_t)kn_map_find(p->files, path) - 1];
            if (number == n)
                continue;
            kn_buf_printf(&sql, "%s(%zu, ", rows++ ? ", " : "", number);
            kn_sql_text(&sql, kn_str(task->data->file.path));
            kn_buf_printf(&sql, ", %zu)", i);
        }
    }
    kn_buf_text(&sql, ") AS w(d, path, f)");
    KN_TRY(kn_buf_check(&sql, err));
    return kn_session_exec(p->read->ses, sql.data, NULL, err);
}

static const KnPqNode *delete_column(const KnPqNode *root, int32_t id, const char *name,
                                     size_t *ret_index)
{
    const KnPqNode *node = kn_read_child_by_id(root, id, ret_index);
    for (size_t i = 0; !node && i < root->n_children; i++) {
        if (root->children[i].field_id < 0 && strcmp(root->children[i].name, name) == 0) {
            *ret_index = i;
            node = &root->children[i];
        }
    }
    return node && node->kind == KN_PQ_LEAF ? node : NULL;
}

static KnCode load_shape(void *arg, KnReadFile *const *files, size_t n, KnErr *err)
{
    Positions *p = arg;
    size_t path_at = 0;
    size_t pos_at = 0;
    const KnPqNode *path =
        delete_column(files[0]->root, KN_FIELD_ID_FILE_PATH, "file_path", &path_at);
    const KnPqNode *pos = delete_column(files[0]->root, KN_FIELD_ID_POS, "pos", &pos_at);
    bool path_is_blob = path && strcmp(path->sql_type, "BLOB") == 0;
    if (!path || (!path_is_blob && strcmp(path->sql_type, "VARCHAR") != 0) || !pos ||
        (strcmp(pos->sql_type, "BIGINT") != 0 && strcmp(pos->sql_type, "INTEGER") != 0))
        return kn_err_set(err, KN_E_CORRUPT,
                          "table %s: delete file '%.300s' lacks the columns file_path and pos",
                          p->read->tbl->name, files[0]->name);
    const char *wanted = kn_read_new_table(p->read, "w");
    KN_TRY(make_wanted(p, wanted, files, n, err));
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)1 << 30);
    kn_buf_printf(&sql,
                  "SELECT w.f, CAST(b.pos AS BIGINT) FROM (SELECT CAST(file_index AS BIGINT) AS d, "
                  "%sc%zu%s AS path, c%zu AS pos FROM ",
                  path_is_blob ? "decode(" : "", path_at, path_is_blob ? ")" : "", pos_at);
    kn_read_source_sql(p->read, files, n, &sql);
    kn_buf_printf(&sql, ") AS b JOIN %s AS w ON b.d = w.d AND b.path = w.path", wanted);
    KN_TRY(kn_buf_check(&sql, err));
    return kn_read_mark_query(p->read, p->targets, p->read->n_files, sql.data, err);
}

static KnCode load(Positions *p, KnErr *err)
{
    collect(p);
    if (p->entries.len == 0)
        return KN_OK;
    KnArena *arena = p->read->arena;
    p->targets = kn_arena_alloc(arena, p->read->n_files * sizeof(*p->targets));
    for (size_t i = 0; i < p->read->n_files; i++)
        p->targets[i] = &p->read->files[i];
    KnReadFile *files = NULL;
    KN_TRY(kn_read_look(p->read, p->entries.items, p->entries.len, &files, err));
    KnReadFile **list = kn_arena_alloc(arena, p->entries.len * sizeof(*list));
    for (size_t i = 0; i < p->entries.len; i++)
        list[i] = &files[i];
    return kn_read_each_shape(list, p->entries.len, load_shape, p, err);
}

KnCode kn_read_load_positions(KnRead *read, KnErr *err)
{
    Positions p = {.read = read, .files = kn_map_new()};
    KnCode rc = load(&p, err);
    kn_map_free(p.files);
    kn_vec_done(&p.entries);
    return rc;
}

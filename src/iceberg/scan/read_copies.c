/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read_copies.c - files that the engine cannot read as they are: a mended copy is read in their
 * place (engine/parquet_fix.h; read_avro.c for Avro).
 *
 * Timestamps in nanoseconds adjusted to UTC would be cut to microseconds: files whose such columns
 * are asked for are copied with a changed footer. Hadoop's framing of LZ4 is not known to the
 * engine at all. Copies lie in a folder of the read under TMPDIR and go with it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/parquet_fix.h"
#include "iceberg/scan/read_internal.h"

typedef struct Copies {
    char *dir;
    KN_VEC(const char *) paths;
} Copies;

static void remove_copies(void *arg)
{
    Copies *copies = arg;
    kn_vec_foreach (&copies->paths, path)
        (void)unlink(*path);
    (void)rmdir(copies->dir);
    kn_vec_done(&copies->paths);
}

static KnCode copies_open(KnRead *read, KnErr *err)
{
    if (read->copies)
        return KN_OK;
    const char *tmp = getenv("TMPDIR");
    char *dir = kn_arena_printf(read->arena, "%s/knut-read-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(dir))
        return kn_err_set(err, KN_E_IO, "cannot make the folder %s", dir);
    Copies *copies = kn_arena_zalloc(read->arena, sizeof(*copies));
    copies->dir = dir;
    kn_arena_defer(read->arena, remove_copies, copies);
    read->copies = copies;
    return KN_OK;
}

typedef struct Wanted {
    int32_t id;
    bool found;
} Wanted;

static bool type_has_id(const KnField *field, int32_t id)
{
    if (field->id == id)
        return true;
    for (size_t i = 0; i < field->type->n_fields; i++)
        if (type_has_id(&field->type->fields[i], id))
            return true;
    return false;
}

static void look_in_column(void *arg, const KnField *column)
{
    Wanted *wanted = arg;
    wanted->found = wanted->found || type_has_id(column, wanted->id);
}

static bool is_key(const KnRead *read, int32_t id)
{
    for (size_t i = 0; i < read->n_tasks; i++)
        for (size_t j = 0; j < read->tasks[i].n_deletes; j++) {
            const KnDataFile *file = &read->tasks[i].deletes[j]->file;
            for (size_t k = 0; k < file->n_equality_ids; k++)
                if (file->equality_ids[k] == id)
                    return true;
        }
    return false;
}

static bool is_wanted(const KnRead *read, int32_t id)
{
    Wanted wanted = {.id = id};
    for (size_t i = 0; i < read->opts.schema->root.n_fields; i++)
        look_in_column(&wanted, &read->opts.schema->root.fields[i]);
    if (read->opts.filter)
        kn_expr_columns(read->opts.filter, look_in_column, &wanted);
    return wanted.found || is_key(read, id);
}

static bool loses_nanos(const KnRead *read, const KnDataFile *file, const KnPqNode *node)
{
    if (node->nanos_utc)
        return file->content != KN_CONTENT_DATA || is_wanted(read, node->field_id);
    for (size_t i = 0; i < node->n_children; i++)
        if (loses_nanos(read, file, &node->children[i]))
            return true;
    return false;
}

/* The tree as the engine sees the copy. */
static KnPqNode patched(KnArena *arena, const KnPqNode *node)
{
    KnPqNode made = *node;
    if (node->nanos_utc) {
        made.nanos_utc = false;
        made.sql_type = "TIMESTAMP_NS";
    }
    if (node->n_children == 0)
        return made;
    KnPqNode *children = kn_arena_alloc(arena, node->n_children * sizeof(*children));
    for (size_t i = 0; i < node->n_children; i++)
        children[i] = patched(arena, &node->children[i]);
    made.children = children;
    return made;
}

KnCode kn_read_copy_path(KnRead *read, const char **ret, KnErr *err)
{
    KN_TRY(copies_open(read, err));
    Copies *copies = read->copies;
    *ret = kn_arena_printf(read->arena, "%s/%zu.parquet", copies->dir, copies->paths.len);
    *kn_vec_push(&copies->paths) = *ret;
    return KN_OK;
}

static KnCode write_piece(int fd, const char *path, const char *bytes, size_t len, KnErr *err)
{
    while (len) {
        ssize_t n = write(fd, bytes, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return kn_err_set(err, KN_E_IO, "cannot write '%.300s': %s", path,
                              kn_errno_text(errno));
        bytes += n;
        len -= (size_t)n;
    }
    return KN_OK;
}

static KnCode download_to(KnRead *read, KnStr location, int fd, const char *path, KnErr *err)
{
    enum { PIECE = 32 << 20 };
    KnFileInfo info = {0};
    KN_TRY(kn_io_stat(read->tbl->io, location, &info, err));
    KN_ARENA_AUTO arena = kn_arena_new(0);
    char *piece = kn_arena_alloc(arena, PIECE);
    for (uint64_t at = 0; at < info.size; at += PIECE) {
        size_t len = info.size - at < PIECE ? (size_t)(info.size - at) : PIECE;
        KN_TRY(kn_io_read(read->tbl->io, location, at, len, piece, err));
        KN_TRY(write_piece(fd, path, piece, len, err));
    }
    return KN_OK;
}

/* A local copy of a file that is elsewhere, to be mended. */
static KnCode download(KnRead *read, const KnReadFile *look, const char **ret, KnErr *err)
{
    const char *path = NULL;
    KN_TRY(kn_read_copy_path(read, &path, err));
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return kn_err_set(err, KN_E_IO, "cannot write '%.300s': %s", path, kn_errno_text(errno));
    KnCode rc = download_to(read, kn_str(look->name), fd, path, err);
    (void)close(fd);
    *ret = path;
    return rc;
}

static KnCode copy(KnRead *read, KnReadFile *look, unsigned fixes, KnErr *err)
{
    const char *path = NULL, *from = look->path;
    if (from[0] != '/')
        KN_TRY(download(read, look, &from, err));
    KN_TRY(kn_read_copy_path(read, &path, err));
    KnCode rc = kn_parquet_fix_copy(from, path, fixes, err);
    if (from != look->path)
        (void)unlink(from);
    if (rc != KN_OK)
        return kn_err_wrap(err, rc, "table %s", read->tbl->name);
    look->path = path;
    return KN_OK;
}

KnCode kn_read_mend(KnRead *read, const KnDataFile *file, const KnPqFile *pq, KnReadFile *look,
                    KnErr *err)
{
    bool nanos = loses_nanos(read, file, look->root);
    unsigned fixes = (nanos ? KN_PQ_FIX_NANOS : 0U) | (pq->hadoop_lz4 ? KN_PQ_FIX_LZ4 : 0U);
    if (!fixes)
        return KN_OK;
    KN_TRY(copy(read, look, fixes, err));
    if (nanos) {
        KnPqNode *root = kn_arena_alloc(read->arena, sizeof(*root));
        *root = patched(read->arena, look->root);
        look->root = root;
        look->shape = kn_arena_printf(read->arena, "%s/utc", look->shape);
    }
    return KN_OK;
}

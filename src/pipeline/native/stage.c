/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage.c - rows of a dataset go into files beside its target, and are made durable there.
 *
 * Of a target /d/t the stage is /d/.t.knut: a file for a file, a folder for a folder. One run at a
 * time writes below /d: it holds a lock on the folder. What a killed run left is removed by the
 * next. What goes to an object store is staged where its files wait to be uploaded (objects.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/path.h"
#include "pipeline/native/native.h"
#include "storage/place.h"

static bool locked_already(const KnNativeRun *run, const struct stat *st)
{
    kn_vec_foreach (&run->locks, fd) {
        struct stat other;
        if (fstat(*fd, &other) == 0 && other.st_dev == st->st_dev && other.st_ino == st->st_ino)
            return true;
    }
    return false;
}

static KnCode lock_folder(KnNativeRun *run, const char *folder, KnErr *err)
{
    struct stat st;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0) {
        int why = errno;
        if (fd >= 0)
            (void)close(fd);
        return kn_err_set(err, KN_E_IO, "%s: %s", folder, kn_errno_text(why));
    }
    if (locked_already(run, &st)) {
        (void)close(fd);
        return KN_OK;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        (void)close(fd);
        return kn_err_set(err, KN_E_BUSY, "%s: another run writes into this folder", folder);
    }
    *kn_vec_push(&run->locks) = fd;
    return KN_OK;
}

const char *kn_native_resolved(KnArena *arena, const char *path)
{
    char *real = realpath(path, NULL);
    const char *target = real ? kn_arena_strdup(arena, real) : path;
    free(real);
    return target;
}

static KnCode check_kind(const KnNativeNode *node, const char *target, KnErr *err)
{
    struct stat st;
    bool file = kn_native_is_file(node->path);
    if (stat(target, &st) != 0)
        return KN_OK;
    if (file != !S_ISDIR(st.st_mode))
        return kn_err_set(err, KN_E_INVAL, "%s: there is a %s of this name, where a %s is written",
                          node->path, file ? "folder" : "file", file ? "file" : "folder");
    return KN_OK;
}

const char *kn_native_beside(KnArena *arena, const char *target, const char *suffix)
{
    KnStr folder = kn_path_dirname(kn_str(target)), name = kn_path_basename(kn_str(target));
    return kn_arena_printf(arena, "%.*s/.%.*s%s", (int)(folder.len > 1 ? folder.len : 0),
                           folder.ptr, (int)name.len, name.ptr, suffix);
}

KnCode kn_native_lock_beside(KnNativeRun *run, const char *target, KnErr *err)
{
    KnStr folder = kn_path_dirname(kn_str(target));
    return lock_folder(run, kn_arena_strndup(run->arena, folder.ptr, folder.len), err);
}

static KnCode prepare(KnNativeRun *run, const char *path, KnNativeStaged *ret, KnErr *err)
{
    if (ret->node && ret->node->place == KN_NATIVE_OBJECTS)
        return kn_native_objects_prepare(run, path, ret, err);
    const char *target = kn_native_resolved(run->arena, path);
    KN_TRY(kn_io_prepare_dir(run->io, kn_path_dirname(kn_str(target)), err));
    KN_TRY(kn_native_lock_beside(run, target, err));
    ret->target = target;
    ret->stage = kn_native_beside(run->arena, target, ".knut");
    return kn_place_remove(ret->stage, err);
}

KnCode kn_native_stage_file(KnNativeRun *run, const char *path, const char *select, bool early,
                            KnErr *err)
{
    KnNativeStaged staged = {.early = early};
    KN_BUF_AUTO sql = {.max = 64 << 20};
    KN_TRY(prepare(run, path, &staged, err));
    kn_buf_printf(&sql, "COPY (%s) TO ", select);
    kn_sql_text(&sql, kn_str(staged.stage));
    kn_buf_text(&sql, " (FORMAT parquet, COMPRESSION zstd)");
    KN_TRY(kn_buf_check(&sql, err));
    *kn_vec_push(&run->staged) = staged;
    KN_TRY(kn_session_exec(run->session, sql.data, NULL, err));
    return kn_io_sync(run->io, kn_str(staged.stage), err);
}

KnCode kn_native_stage_text(KnNativeRun *run, const char *path, KnStr text, KnErr *err)
{
    KnNativeStaged staged = {0};
    KN_TRY(prepare(run, path, &staged, err));
    *kn_vec_push(&run->staged) = staged;
    return kn_io_write(run->io, kn_str(staged.stage), text.ptr, text.len, KN_IO_REPLACE, err);
}

/* The rows of a file that is added to, as the new rows have them. Text is kept as it stands there:
 * what the engine would guess of its types does not come back the same. */
static void old_rows(const KnNativeStaged *staged, const KnNativeShape *shape, KnBuf *sql)
{
    switch (staged->node->format) {
    case KN_NATIVE_CSV:
        kn_buf_text(sql, "read_csv(");
        kn_sql_path(sql, kn_str(staged->target));
        kn_buf_text(sql, ", header=true, all_varchar=true, allow_quoted_nulls=false, delim=',', "
                         "quote='\"', escape='\"', hive_partitioning=false)");
        break;
    case KN_NATIVE_JSON:
        kn_buf_text(sql, "read_json(");
        kn_sql_path(sql, kn_str(staged->target));
        kn_buf_text(sql, ", hive_partitioning=false, columns={");
        for (size_t i = 0; i < shape->len; i++) {
            kn_buf_text(sql, i ? ", " : "");
            kn_sql_text(sql, kn_str(shape->items[i].name));
            kn_buf_text(sql, ": ");
            kn_sql_text(sql, kn_str(shape->items[i].type));
        }
        kn_buf_text(sql, "})");
        break;
    default:
        kn_native_files_sql(sql, staged->node->format, staged->target, NULL);
    }
}

static KnCode same_columns(const KnNativeStaged *staged, const KnNativeShape *have,
                           const KnNativeShape *want, KnErr *err)
{
    bool text = staged->node->format == KN_NATIVE_CSV;
    bool same = have->len == want->len;
    for (size_t i = 0; same && i < want->len; i++)
        same = strcmp(have->items[i].name, want->items[i].name) == 0 &&
               (text || strcmp(have->items[i].type, want->items[i].type) == 0);
    if (!same)
        return kn_err_set(err, KN_E_INVAL,
                          "dataset %s: %s is added to, and has other columns than the new rows",
                          staged->node->dataset->name, staged->target);
    return KN_OK;
}

static KnCode is_there(KnNativeRun *run, const KnNativeStaged *staged, bool *ret, KnErr *err)
{
    if (staged->node->place == KN_NATIVE_OBJECTS)
        return kn_native_object_is_there(run, staged->target, ret, err);
    *ret = access(staged->target, F_OK) == 0;
    return KN_OK;
}

static KnCode select_sql(KnNativeRun *run, const KnNativeStaged *staged, const char *source,
                         KnBuf *sql, KnErr *err)
{
    const KnNativeNode *node = staged->node;
    bool there = false;
    kn_buf_printf(sql, "SELECT * FROM %s", source);
    if (!node->replace && kn_native_is_file(node->path))
        KN_TRY(is_there(run, staged, &there, err));
    if (!there)
        return kn_buf_check(sql, err);
    KnNativeShape want = {0}, have = {0};
    KN_TRY(kn_native_describe(run, sql->data, &want, err));
    kn_buf_reset(sql);
    kn_buf_text(sql, "SELECT * FROM ");
    old_rows(staged, &want, sql);
    KN_TRY(kn_buf_check(sql, err));
    KN_TRY(kn_native_describe(run, sql->data, &have, err));
    KN_TRY(same_columns(staged, &have, &want, err));
    kn_buf_printf(sql, " UNION ALL SELECT %s FROM %s",
                  node->format == KN_NATIVE_CSV ? "COLUMNS(*)::VARCHAR" : "*", source);
    return kn_buf_check(sql, err);
}

/* What its new files are called by. */
static const char *part_id(const KnNativeRun *run, const KnNativeNode *node)
{
    return node->mark ? node->mark->part : run->uuid;
}

static void copy_options(const KnNativeRun *run, const KnNativeNode *node, KnBuf *sql)
{
    static const char *const options[] = {"FORMAT parquet, COMPRESSION zstd", "FORMAT csv, HEADER",
                                          "FORMAT json"};
    const KnutNames *cols = &node->dataset->partition_cols;
    kn_buf_printf(sql, " (%s", options[node->format]);
    for (size_t i = 0; i < cols->len; i++) {
        kn_buf_text(sql, i ? ", " : ", PARTITION_BY (");
        kn_sql_ident(sql, kn_str(kn_native_part_name(run->arena, cols->items[i])));
    }
    if (cols->len)
        kn_buf_printf(sql, "), FILENAME_PATTERN 'part-%s-{i}'", part_id(run, node));
    kn_buf_char(sql, ')');
}

/* Where the COPY writes to: the stage, or a file in it. */
static const char *copy_target(const KnNativeRun *run, const KnNativeNode *node, const char *stage)
{
    if (kn_native_is_file(node->path) || node->dataset->partition_cols.len)
        return stage;
    return kn_arena_printf(run->arena, "%s/part-%s%s", stage, part_id(run, node),
                           kn_native_extension(node->format));
}

static KnCode copy(KnNativeRun *run, KnNativeNode *node, const KnNativeStaged *staged,
                   const char *select, KnErr *err)
{
    bool file = kn_native_is_file(node->path);
    KN_BUF_AUTO sql = {.max = 64 << 20};
    kn_buf_printf(&sql, "COPY (%s) TO ", select);
    kn_sql_text(&sql, kn_str(copy_target(run, node, staged->stage)));
    copy_options(run, node, &sql);
    KN_TRY(kn_buf_check(&sql, err));
    if (!file)
        KN_TRY(kn_io_prepare_dir(run->io, kn_str(staged->stage), err));
    KN_TRY(kn_session_exec(run->session, sql.data, &node->rows, err));
    KN_FAULT("pipeline-computed", err);
    KN_TRY(kn_io_sync(run->io, kn_str(staged->stage), err));
    KN_FAULT("pipeline-staged", err);
    return KN_OK;
}

/* Files of a folder that is added to stand in the stage too, under their names, so that one rename
 * changes the folder from the old rows to the old and the new. */
static KnCode keep_old(const KnNativeNode *node, const KnNativeStaged *staged, KnErr *err)
{
    if (node->place != KN_NATIVE_LOCAL || node->replace || kn_native_is_file(node->path) ||
        access(staged->target, F_OK) != 0)
        return KN_OK;
    return kn_place_link_tree(staged->target, staged->stage, err);
}

/* Of a folder into which a stream goes: which epoch its rows are of. */
static KnCode write_mark(KnNativeRun *run, const KnNativeNode *node, const KnNativeStaged *staged,
                         KnErr *err)
{
    if (!node->mark)
        return KN_OK;
    const char *file = kn_arena_printf(run->arena, "%s/%s", staged->stage, node->mark->name);
    return kn_io_settled(kn_io_write(run->io, kn_str(file), node->mark->text,
                                     strlen(node->mark->text), KN_IO_REPLACE, err),
                         err);
}

KnCode kn_native_stage(KnNativeRun *run, KnNativeNode *node, KnErr *err)
{
    KnNativeStaged staged = {.node = node};
    KN_BUF_AUTO source = {.max = 64 << 20};
    KN_BUF_AUTO select = {.max = 64 << 20};
    if (node->place == KN_NATIVE_LOCAL)
        KN_TRY(check_kind(node, kn_native_resolved(run->arena, node->path), err));
    KN_TRY(prepare(run, node->path, &staged, err));
    kn_native_name_sql(&source, node->dataset->name);
    KN_TRY(select_sql(run, &staged, source.data, &select, err));
    const char *parted = NULL;
    KN_TRY(kn_native_parted(run, node, select.data, &parted, err));
    *kn_vec_push(&run->staged) = staged;
    KN_TRY(copy(run, node, &staged, parted, err));
    KN_TRY(write_mark(run, node, &staged, err));
    KN_TRY(keep_old(node, &staged, err));
    KN_TRY(kn_io_sync(run->io, kn_str(staged.stage), err));
    return node->mark ? KN_OK : kn_native_stage_run(run, node, err);
}

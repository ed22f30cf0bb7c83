/* SPDX-License-Identifier: Apache-2.0 */
/*
 * objects.c - files in object stores (s3://) as inputs and targets.
 *
 * A store changes one object in one step, and a folder of several never. So a target that is one
 * file is one PUT. One that is a folder has, besides its files, a generation: the object
 * `_knut/generation-000000000042.json`, which names the files that count. A run puts its files
 * under new names, then the next generation, created only if nobody else was first, and then
 * removes what the new one does not name. Killed before the generation is there it has changed
 * nothing; killed after it, all: who reads by the newest generation (an input of ours) sees the old
 * rows or the new ones, and whoever lists the folder sees both for the moment in which both lie
 * there. What a killed run left goes with the next run.
 *
 * A folder without generations is taken as it is listed: its files of the format, those left out
 * whose name, or a folder's in it, begins with `.` or `_`.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/json.h"
#include "base/map.h"
#include "base/path.h"
#include "iceberg/scan/reach.h"
#include "pipeline/native/native.h"
#include "storage/s3/s3.h"

#define GENERATIONS "_knut/"
enum { MAX_GENERATION_BYTES = 64 << 20 };

static KnCode open_store(KnNativeRun *run, KnErr *err)
{
    return run->store ? KN_OK : kn_io_s3_open(run->opts->s3, &run->store, err);
}

KnCode kn_native_reach(KnNativeRun *run, const char *location, KnErr *err)
{
    KN_TRY(open_store(run, err));
    return kn_engine_reach(run->engine, run->store, kn_str(location), err);
}

KnCode kn_native_object_is_there(KnNativeRun *run, const char *location, bool *ret, KnErr *err)
{
    KnFileInfo info = {0};
    KnErr why = {0};
    KN_TRY(open_store(run, err));
    KnCode rc = kn_io_stat(run->store, kn_str(location), &info, &why);
    if (rc != KN_OK && rc != KN_E_NOTFOUND) {
        if (err)
            *err = why;
        return rc;
    }
    *ret = rc == KN_OK;
    return KN_OK;
}

/* ---- what lies in a folder ---- */

typedef struct Folder {
    KnNativeRun *run;
    const char *root; /* without a slash at its end */
    KnNativeFormat format;
    KN_VEC(const char *) files; /* all of the format, by their names in the folder */
    KN_VEC(const char *) generations;
} Folder;

static void folder_done(Folder *folder)
{
    kn_vec_done(&folder->files);
    kn_vec_done(&folder->generations);
}
#define FOLDER_AUTO __attribute__((cleanup(folder_done))) Folder

static KnCode add_object(void *arg, const KnFileInfo *info, KnErr *err)
{
    (void)err;
    Folder *folder = arg;
    const char *name = info->location + strlen(folder->root) + 1;
    const char *copy = kn_arena_strdup(folder->run->arena, name);
    if (!strncmp(name, GENERATIONS, strlen(GENERATIONS)))
        *kn_vec_push(&folder->generations) = copy;
    else if (!kn_native_is_hidden(name) && kn_native_format(NULL, name) == folder->format)
        *kn_vec_push(&folder->files) = copy;
    return KN_OK;
}

static KnCode look(Folder *folder, KnErr *err)
{
    KN_TRY(open_store(folder->run, err));
    return kn_io_list(folder->run->store, kn_str(folder->root), add_object, folder, err);
}

static const char *in_folder(const Folder *folder, const char *name)
{
    return kn_arena_printf(folder->run->arena, "%s/%s", folder->root, name);
}

/* ---- generations ---- */

typedef struct Generation {
    int64_t number; /* 0 = there is none */
    KnutNames files;
} Generation;

static KnCode parse_files(KnArena *arena, const json_t *array, KnutNames *ret, KnErr *err)
{
    size_t n = json_array_size(array);
    const char **names = kn_arena_zalloc(arena, (n + 1) * sizeof(*names));
    for (size_t i = 0; i < n; i++) {
        const char *name = json_string_value(json_array_get(array, i));
        if (!name || !name[0] || name[0] == '/')
            return kn_err_set(err, KN_E_CORRUPT, "file %zu of the list has no name", i);
        names[i] = kn_arena_strdup(arena, name);
    }
    *ret = (KnutNames){names, n};
    return KN_OK;
}

static KnCode parse_generation(KnArena *arena, KnStr text, Generation *ret, KnErr *err)
{
    KN_JSON_AUTO doc = NULL;
    json_t *files = NULL;
    KN_TRY(kn_json_parse(text.ptr, text.len, &doc, err));
    KN_TRY(kn_json_get_i64(doc, "generation", &ret->number, err));
    KN_TRY(kn_json_get_array(doc, "files", &files, err));
    if (ret->number < 1)
        return kn_err_set(err, KN_E_CORRUPT, "generation %" PRId64, ret->number);
    return parse_files(arena, files, &ret->files, err);
}

/* The newest, or what the folder holds where there is none. Names have their numbers filled up with
 * zeros, and listings are sorted. */
static KnCode current(Folder *folder, Generation *ret, KnErr *err)
{
    *ret = (Generation){.files = {folder->files.items, folder->files.len}};
    if (!folder->generations.len)
        return KN_OK;
    const char *newest = in_folder(folder, folder->generations.items[folder->generations.len - 1]);
    KN_BUF_AUTO text = {0};
    KN_TRY(kn_io_read_all(folder->run->store, kn_str(newest), MAX_GENERATION_BYTES, &text, err));
    return kn_err_wrap(err,
                       parse_generation(folder->run->arena, (KnStr){text.data, text.len}, ret, err),
                       "%s", newest);
}

static KnCode write_generation(Folder *folder, const Generation *generation, KnErr *err)
{
    char name[64];
    KN_BUF_AUTO text = {.max = MAX_GENERATION_BYTES};
    (void)snprintf(name, sizeof(name), GENERATIONS "generation-%012" PRId64 ".json",
                   generation->number);
    kn_buf_printf(&text, "{\"generation\":%" PRId64 ",", generation->number);
    kn_json_put_text(&text, "run", folder->run->id);
    kn_buf_text(&text, ",\"files\":[");
    for (size_t i = 0; i < generation->files.len; i++) {
        kn_buf_text(&text, i ? "," : "");
        kn_json_quote(&text, kn_str(generation->files.items[i]));
    }
    kn_buf_text(&text, "]}\n");
    KN_TRY(kn_buf_check(&text, err));
    KnCode rc = kn_io_write(folder->run->store, kn_str(in_folder(folder, name)), text.data,
                            text.len, KN_IO_CREATE, err);
    if (rc == KN_E_EXISTS)
        return kn_err_set(err, KN_E_BUSY,
                          "%s: another run wrote into this folder at the same time; nothing of "
                          "this run counts there",
                          folder->root);
    return rc;
}

/* ---- inputs ---- */

static const char *without_slashes(KnArena *arena, const char *path)
{
    size_t len = strlen(path);
    while (len && path[len - 1] == '/')
        len--;
    return kn_arena_strndup(arena, path, len);
}

static KnCode list_folder(KnNativeRun *run, const char *path, KnNativeFormat format, KnutNames *ret,
                          KnErr *err)
{
    FOLDER_AUTO folder = {.run = run, .root = without_slashes(run->arena, path), .format = format};
    Generation now = {0};
    KN_TRY(look(&folder, err));
    KN_TRY(current(&folder, &now, err));
    if (!now.files.len)
        return kn_err_set(err, KN_E_NOTFOUND, "%s: there are no files of format %s here", path,
                          kn_native_format_name(format));
    const char **files = kn_arena_zalloc(run->arena, now.files.len * sizeof(*files));
    for (size_t i = 0; i < now.files.len; i++)
        files[i] = in_folder(&folder, now.files.items[i]);
    *ret = (KnutNames){files, now.files.len};
    return KN_OK;
}

KnCode kn_native_objects(KnNativeRun *run, const char *path, KnNativeFormat format, KnutNames *ret,
                         KnErr *err)
{
    bool file = false;
    KN_TRY(kn_native_reach(run, path, err));
    if (path[strlen(path) - 1] != '/')
        KN_TRY(kn_native_object_is_there(run, path, &file, err));
    if (!file)
        return list_folder(run, path, format, ret, err);
    const char **only = kn_arena_zalloc(run->arena, sizeof(*only));
    *only = path;
    *ret = (KnutNames){only, 1};
    return KN_OK;
}

/* ---- targets ---- */

KnCode kn_native_objects_prepare(KnNativeRun *run, const char *path, KnNativeStaged *ret,
                                 KnErr *err)
{
    KN_TRY(kn_native_reach(run, path, err));
    ret->target = without_slashes(run->arena, path);
    KnStr folder = kn_path_dirname(kn_str(ret->target));
    KN_TRY(kn_io_prepare_dir(run->store, folder, err));
    return kn_io_engine_target(run->store, run->arena, kn_str(ret->target), &ret->stage, err);
}

static KnCode put_bytes(KnNativeRun *run, const KnNativeStaged *staged, int fd, KnErr *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return kn_err_set(err, KN_E_IO, "%s: %s", staged->stage, kn_errno_text(errno));
    size_t len = (size_t)st.st_size;
    void *bytes = len ? mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    if (bytes == MAP_FAILED)
        return kn_err_set(err, KN_E_IO, "%s: %s", staged->stage, kn_errno_text(errno));
    KnCode rc =
        kn_io_write(run->store, kn_str(staged->target), len ? bytes : "", len, KN_IO_REPLACE, err);
    if (bytes)
        (void)munmap(bytes, len);
    return rc;
}

static KnCode put_file(KnNativeRun *run, const KnNativeStaged *staged, KnErr *err)
{
    int fd = open(staged->stage, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return kn_err_set(err, KN_E_IO, "%s: %s", staged->stage, kn_errno_text(errno));
    KnCode rc = put_bytes(run, staged, fd, err);
    (void)close(fd);
    return rc;
}

/* part-UUID...: as stage.c calls what a run writes. uuid: of one run; NULL = of any. */
static bool is_part(const char *name, const char *uuid)
{
    const char *slash = strrchr(name, '/');
    const char *base = slash ? slash + 1 : name;
    enum { MARK = 5, HYPHEN = 8 };
    if (strncmp(base, "part-", MARK) != 0)
        return false;
    base += MARK;
    return uuid ? !strncmp(base, uuid, strlen(uuid))
                : strspn(base, "0123456789abcdef") == HYPHEN && base[HYPHEN] == '-';
}

static void remove_name(const Folder *folder, const char *name)
{
    /* That it could not be removed changes no reader's rows: the next run tries again. */
    KN_IGNORE(kn_io_remove(folder->run->store, kn_str(in_folder(folder, name)), NULL));
}

/* What was there before and counts no more; where rows are added, what others put there stays. */
static void remove_old(const Folder *before, const Generation *now, bool replace)
{
    KnMap *counts = kn_map_new();
    for (size_t i = 0; i < now->files.len; i++) {
        bool is_new = false;
        *kn_map_get_or_add(counts, kn_str(now->files.items[i]), &is_new) = counts;
    }
    kn_vec_foreach (&before->files, name) {
        if ((replace || is_part(*name, NULL)) && !kn_map_find(counts, kn_str(*name)))
            remove_name(before, *name);
    }
    kn_map_free(counts);
    kn_vec_foreach (&before->generations, name) {
        remove_name(before, *name);
    }
}

/* The files of the generation that follows: those of before, where rows are added, and this run's.
 */
static KnutNames next_files(const KnutNames *kept, const Folder *after)
{
    const KnNativeRun *run = after->run;
    size_t n = 0;
    const char **files =
        kn_arena_zalloc(run->arena, (kept->len + after->files.len + 1) * sizeof(*files));
    for (size_t i = 0; i < kept->len; i++)
        files[n++] = kept->items[i];
    kn_vec_foreach (&after->files, name) {
        if (is_part(*name, run->uuid))
            files[n++] = *name;
    }
    return (KnutNames){files, n};
}

static KnCode put_folder(KnNativeRun *run, const KnNativeStaged *staged, KnErr *err)
{
    const KnNativeNode *node = staged->node;
    FOLDER_AUTO before = {.run = run, .root = staged->target, .format = node->format};
    FOLDER_AUTO after = before;
    Generation was = {0};
    KN_TRY(look(&before, err));
    KN_TRY(current(&before, &was, err));
    KN_TRY(kn_io_sync(run->store, kn_str(staged->target), err));
    KN_FAULT("pipeline-objects-put", err);
    KN_TRY(look(&after, err));
    const KnutNames none = {0};
    const Generation now = {was.number + 1, next_files(node->replace ? &none : &was.files, &after)};
    KN_TRY(write_generation(&before, &now, err));
    KN_FAULT("pipeline-objects-counted", err);
    remove_old(&before, &now, node->replace);
    return KN_OK;
}

KnCode kn_native_objects_publish(KnNativeRun *run, const KnNativeStaged *staged, KnErr *err)
{
    KN_TRY(open_store(run, err));
    return kn_native_is_file(staged->node->path) ? put_file(run, staged, err)
                                                 : put_folder(run, staged, err);
}

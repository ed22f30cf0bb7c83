/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder.c - whose files are in the target: claim, history, and the step in which a window appears.
 *
 * Windows are numbered folders, and each says which load came before it. A window may begin when
 * the newest one holds the load that the journal has proven last (or there is none, and that load
 * is the claim), or is this very window, which an earlier process has published. So only the newest
 * window must stay: older ones may be moved away or compacted by whoever owns the folder.
 *
 * What is written lies beside the target until it is whole, in a folder that is locked while a sink
 * has it. A window that an earlier process has begun to write is gone on with when it is the one
 * that is asked for, and removed otherwise.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/json.h"
#include "base/path.h"
#include "cdc/sinks/parquet/parquet_internal.h"
#include "storage/place.h"

#define NOTE   "_knut.json"
#define PREFIX KN_FILES_WINDOW "="
#define RELOAD "run `knut cdc reload` to deliver the table anew"

enum { MAX_NOTE = 16 << 20, FORMAT = 1 };

/* ---- notes ---- */

static const char *path_in(KnArena *arena, const char *folder, const char *name)
{
    return kn_path_join(arena, kn_str(folder), kn_str(name));
}

static KnCode write_note(KnFiles *files, const char *path, json_t *note, KnErr *err)
{
    KN_JSON_AUTO doc = note;
    KN_BUF_AUTO text;
    kn_buf_init(&text, MAX_NOTE);
    kn_json_dump(&text, doc);
    kn_buf_char(&text, '\n');
    KN_TRY(kn_buf_check(&text, err));
    KnCode rc = kn_io_write(files->io, kn_str(path), text.data, text.len, KN_IO_REPLACE, err);
    return kn_io_settled(rc, err);
}

/* *ret NULL: there is no such file. */
static KnCode read_note(KnFiles *files, const char *path, json_t **ret, KnErr *err)
{
    KN_BUF_AUTO text = {0};
    KnErr why = {0};
    int64_t format = 0;
    KnCode rc = kn_io_read_all(files->io, kn_str(path), MAX_NOTE, &text, &why);
    if (rc == KN_E_NOTFOUND) {
        *ret = NULL;
        return KN_OK;
    }
    json_t *note = NULL;
    if (rc == KN_OK)
        rc = kn_json_parse(text.data ? text.data : "", text.len, &note, &why);
    if (rc == KN_OK)
        rc = kn_json_get_i64(note, "format", &format, &why);
    if (rc == KN_OK && format != FORMAT)
        rc = kn_err_set(&why, KN_E_UNSUPPORTED, "format %" PRId64 " is of a newer knut", format);
    if (rc == KN_OK) {
        *ret = note;
        return KN_OK;
    }
    json_decref(note);
    if (err)
        *err = why;
    return kn_err_wrap(err, rc, "%s", path);
}

const char *kn_files_label_name(KnArena *arena, const char *label)
{
    char *name = kn_arena_strdup(arena, label);
    for (char *c = name; *c; ++c)
        if (*c == ':')
            *c = '.';
    return name;
}

/* ---- what is there ---- */

static const char *window_path(const KnFiles *files, KnArena *arena, int64_t number)
{
    return kn_arena_printf(arena, "%s/" PREFIX "%" PRId64, files->target, number);
}

/* The highest number of a window; other entries of the folder count as strangers. */
typedef struct Look {
    bool exists;
    int64_t newest;
    size_t n_entries;
} Look;

static KnCode look(const KnFiles *files, Look *ret, KnErr *err)
{
    Look found = {0};
    struct dirent *entry;
    DIR *dir = opendir(files->target);
    if (!dir && errno == ENOENT) {
        *ret = found;
        return KN_OK;
    }
    if (!dir)
        return kn_err_set(err, KN_E_IO, "folder %s: %s", files->target, kn_errno_text(errno));
    found.exists = true;
    while ((entry = readdir(dir)) != NULL) {
        KnStr name = kn_str(entry->d_name);
        int64_t number;
        found.n_entries += strcmp(name.ptr, ".") != 0 && strcmp(name.ptr, "..") != 0;
        if (!kn_str_starts_with(name, KN_STR_LIT(PREFIX)))
            continue;
        name = kn_str(name.ptr + strlen(PREFIX));
        if (kn_str_to_i64(name, &number) && number > found.newest)
            found.newest = number;
    }
    (void)closedir(dir);
    *ret = found;
    return KN_OK;
}

/* Reads what the newest window says of itself. */
static KnCode read_newest(KnFiles *files, int64_t number, KnErr *err)
{
    KN_JSON_AUTO note = NULL;
    const char *id, *after;
    KnArena *arena = files->win_arena;
    files->newest = (KnFilesNewest){0};
    if (number == 0)
        return KN_OK;
    const char *path = path_in(arena, window_path(files, arena, number), NOTE);
    KN_TRY(read_note(files, path, &note, err));
    if (!note)
        return kn_err_set(
            err, KN_E_REFUSED,
            "%s is gone: the newest window's folder must stay as it was written; " RELOAD, path);
    KN_TRY(kn_json_get_str(note, "window", &id, err));
    KN_TRY(kn_json_get_str(note, "after", &after, err));
    files->newest =
        (KnFilesNewest){number, kn_arena_strdup(arena, id), kn_arena_strdup(arena, after)};
    return KN_OK;
}

bool kn_files_is_published(const KnFiles *files)
{
    return files->newest.number > 0 && strcmp(files->newest.id, files->win_id) == 0;
}

KnCode kn_files_find(KnFiles *files, const char *label, bool staged, bool *ret_found,
                     int64_t *ret_rows, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(1024);
    KN_JSON_AUTO note = NULL;
    *ret_found = false;
    if (!staged && files->newest.number == 0)
        return KN_OK;
    const char *folder = staged ? files->stage : window_path(files, arena, files->newest.number);
    const char *name = kn_arena_printf(arena, "_%s.json", kn_files_label_name(arena, label));
    KN_TRY(read_note(files, path_in(arena, folder, name), &note, err));
    if (!note)
        return KN_OK;
    KN_TRY(kn_json_get_i64(note, "rows", ret_rows, err));
    *ret_found = true;
    return KN_OK;
}

/* ---- taking the target ---- */

static json_t *partition_json(const KnFiles *files)
{
    json_t *list = json_array();
    for (size_t i = 0; i < files->set.n_partition; ++i)
        json_array_append_new(list, json_string(files->set.partition[i]));
    return list;
}

static KnCode hold_work_folder(KnFiles *files, KnErr *err)
{
    if (files->lock >= 0)
        return KN_OK;
    KN_TRY(kn_io_prepare_dir(files->io, kn_str(files->work), err));
    int fd = open(files->work, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return kn_err_set(err, KN_E_IO, "folder %s: %s", files->work, kn_errno_text(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        (void)close(fd);
        return kn_err_set(err, KN_E_BUSY, "folder %s: another process writes there", files->work);
    }
    files->lock = fd;
    return KN_OK;
}

/* A target of our own, empty, takes the place of whatever is there. */
static KnCode put_empty_target(KnFiles *files, const char *claim_label, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(1024);
    const char *fresh = path_in(arena, files->work, "target");
    KN_TRY(kn_place_remove(fresh, err));
    KN_TRY(kn_io_prepare_dir(files->io, kn_str(fresh), err));
    json_t *note = json_pack("{s:i, s:s, s:s, s:o}", "format", FORMAT, "delivery", files->delivery,
                             "claim", claim_label, "partition-by", partition_json(files));
    KN_TRY(write_note(files, path_in(arena, fresh, NOTE), note, err));
    KN_TRY(kn_io_settled(kn_io_sync(files->io, kn_str(fresh), err), err));
    KN_FAULT("sink-claim-before-commit", err);
    KN_TRY(kn_place_swap(fresh, files->target, err));
    KN_FAULT("sink-claim-after-commit", err);
    return kn_place_remove(fresh, err); /* what was there, if anything */
}

/* A new epoch. */
static KnCode take_target(KnFiles *files, const KnSinkWindow *win, const Look *there,
                          const json_t *claim, KnErr *err)
{
    if (there->n_entries && !claim)
        return kn_err_set(err, KN_E_REFUSED,
                          "folder %s has files that no delivery has made: name another target, or "
                          "empty it yourself",
                          files->target);
    if (claim && !win->clear)
        return kn_err_set(err, KN_E_REFUSED,
                          "folder %s has rows that this delivery did not load: name another "
                          "target, or run `knut cdc reload` to have it cleared and filled",
                          files->target);
    files->newest = (KnFilesNewest){0};
    return put_empty_target(files, win->claim_label, err);
}

/* The first window, in a target that was taken for it. */
static KnCode check_first(const KnFiles *files, KnErr *err)
{
    if (files->newest.number == 0 || kn_files_is_published(files))
        return KN_OK;
    return kn_err_set(err, KN_E_REFUSED,
                      "folder %s has windows that this state file does not know of (an older "
                      "state file, or a second delivery into the same target): " RELOAD,
                      files->target);
}

static KnCode check_next(KnFiles *files, const char *expect, const char *claimed, KnErr *err)
{
    bool known = files->newest.number == 0 && claimed && strcmp(claimed, expect) == 0;
    int64_t rows;
    if (kn_files_is_published(files))
        known = strcmp(files->newest.after, expect) == 0;
    else if (!known)
        KN_TRY(kn_files_find(files, expect, false, &known, &rows, err));
    if (known)
        return KN_OK;
    return kn_err_set(err, KN_E_REFUSED,
                      "the newest window of folder %s does not hold the load that was proven last "
                      "(%s): the folder or the state file was restored, or a second delivery "
                      "fills it; " RELOAD,
                      files->target, expect);
}

/* Files of one target are cut in one way. */
static KnCode check_cut(const KnFiles *files, const json_t *claim, KnErr *err)
{
    KN_JSON_AUTO ours = partition_json(files);
    const json_t *theirs = json_object_get(claim, "partition-by");
    if (json_equal(ours, theirs))
        return KN_OK;
    KN_BUF_AUTO text;
    kn_buf_init(&text, 65536);
    for (size_t i = 0; i < json_array_size(theirs); ++i) {
        const char *column = json_string_value(json_array_get(theirs, i));
        kn_buf_printf(&text, "%s%s", i ? "," : "", column ? column : "");
    }
    return kn_err_set(err, KN_E_REFUSED,
                      "folder %s is cut by %s: keep partition-by as it was, or " RELOAD,
                      files->target, text.len ? text.data : "nothing");
}

KnCode kn_files_claim(KnFiles *files, const KnSinkWindow *win, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(1024);
    KN_JSON_AUTO claim = NULL;
    const char *claimed = NULL;
    Look there;
    KN_TRY(hold_work_folder(files, err));
    KN_TRY(look(files, &there, err));
    KN_TRY(read_note(files, path_in(arena, files->target, NOTE), &claim, err));
    if (claim)
        KN_TRY(kn_json_get_str(claim, "claim", &claimed, err));
    if (win->claim_label && !(claimed && strcmp(claimed, win->claim_label) == 0))
        return take_target(files, win, &there, claim, err);
    if (claim)
        KN_TRY(check_cut(files, claim, err));
    KN_TRY(read_newest(files, there.newest, err));
    if (win->claim_label)
        return check_first(files, err);
    return check_next(files, win->expect_label ? win->expect_label : "none", claimed, err);
}

/* ---- the window ---- */

KnCode kn_files_open_stage(KnFiles *files, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(1024);
    KN_JSON_AUTO note = NULL;
    const char *id = NULL, *path = path_in(arena, files->stage, NOTE);
    KnErr damaged = {0};
    /* A note that cannot be read is of no window that anybody waits for. */
    if (read_note(files, path, &note, &damaged) == KN_OK && note)
        KN_TRY(kn_json_get_str(note, "window", &id, err));
    if (id && strcmp(id, files->win_id) == 0)
        return KN_OK;
    KN_TRY(kn_place_remove(files->stage, err));
    KN_TRY(kn_io_prepare_dir(files->io, kn_str(files->stage), err));
    return write_note(files, path,
                      json_pack("{s:i, s:s, s:s}", "format", FORMAT, "window", files->win_id,
                                "after", files->after),
                      err);
}

KnCode kn_files_publish(KnFiles *files, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(1024);
    if (kn_files_is_published(files))
        return KN_OK;
    int64_t number = files->newest.number + 1;
    KN_FAULT("sink-before-commit", err);
    KN_TRY(kn_place_swap(files->stage, window_path(files, arena, number), err));
    files->newest = (KnFilesNewest){number, files->win_id, files->after};
    return kn_fault_at("sink-after-commit", err);
}

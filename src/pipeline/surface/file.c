/* SPDX-License-Identifier: Apache-2.0 */
/* file.c - documents in files. */
#include "pipeline/surface/file.h"

#include <errno.h>
#include <unistd.h>

#include "base/path.h"
#include "storage/file_io.h"

#define MAX_DOCUMENT ((size_t)64 << 20)

/* The last part of the path, without its extension. */
static const char *stem(KnArena *arena, const char *file)
{
    KnStr base = kn_path_basename(kn_str(file));
    for (size_t i = base.len; i > 1; i--)
        if (base.ptr[i - 1] == '.') {
            base.len = i - 1;
            break;
        }
    return kn_arena_strndup(arena, base.ptr, base.len);
}

/* Storage takes whole paths only. */
static KnCode whole_path(KnArena *arena, const char *file, const char **ret, KnErr *err)
{
    char here[4096];
    if (file[0] == '/' || kn_str_starts_with(kn_str(file), KN_STR_LIT("file:"))) {
        *ret = file;
        return KN_OK;
    }
    if (!file[0])
        return kn_err_set(err, KN_E_INVAL, "the name of the file is empty");
    if (!getcwd(here, sizeof(here)))
        return kn_err_set(err, KN_E_IO, "%s: %s", file, kn_errno_text(errno));
    *ret = kn_path_join(arena, kn_str(here), kn_str(file));
    return KN_OK;
}

static KnCode read_file(KnArena *arena, const char *file, KnBuf *text, KnErr *err)
{
    const char *path;
    KN_TRY(whole_path(arena, file, &path, err));
    KnFileIO *io;
    KN_TRY(kn_io_local_open(&io, err));
    KnCode rc = kn_io_read_all(io, kn_str(path), MAX_DOCUMENT, text, err);
    (void)kn_io_close(io);
    return rc;
}

KnCode kn_pipeline_load(KnArena *arena, const KnLoad *load, KnNotes *notes, const KnPipeline **ret,
                        KnErr *err)
{
    const KnSurface *surface = load->surface;
    if (!surface)
        KN_TRY(kn_surface_of_file(load->file, &surface, err));
    KN_BUF_AUTO text = {0};
    KN_TRY(read_file(arena, load->file, &text, err));
    KnDocument doc = {.text = {text.data ? text.data : "", text.len},
                      .origin = load->file,
                      .name = stem(arena, load->file),
                      .session = load->session};
    return surface->read(arena, &doc, notes, ret, err);
}

KnCode kn_pipeline_save(const KnPipeline *pipeline, const KnSave *save, KnNotes *notes, KnErr *err)
{
    const KnSurface *surface = save->surface;
    if (!surface)
        KN_TRY(kn_surface_of_file(save->file, &surface, err));
    KN_BUF_AUTO text = {0};
    kn_buf_init(&text, MAX_DOCUMENT);
    KN_TRY(surface->write(pipeline, save->session, &text, notes, err));
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    const char *path;
    KN_TRY(whole_path(arena, save->file, &path, err));
    KnFileIO *io;
    KN_TRY(kn_io_local_open(&io, err));
    KnCode rc = kn_io_write(io, kn_str(path), text.data, text.len, KN_IO_REPLACE, err);
    (void)kn_io_close(io);
    return rc;
}

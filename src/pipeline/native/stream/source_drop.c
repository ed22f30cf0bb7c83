/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_drop.c - a folder into which files are dropped, each read once.
 *
 * A file is known by its name; one whose name, or whose folder's, begins with a dot or an
 * underscore is not yet dropped. Which were read is a table of names that is kept with the state;
 * the offsets are their number. The oldest come first.
 */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/path.h"
#include "pipeline/native/stream/source.h"

typedef struct Found {
    const char *location;
    int64_t modified_ms;
} Found;

typedef struct Drop {
    const char *dir;
    KnMap *seen;         /* NULL = not yet taken from the log */
    KN_VEC(Found) found; /* names live as long as the epoch */
    size_t n_next;       /* of found: what the epoch takes */
} Drop;

static KnCode drop_open(KnStreamSource *src, KnErr *err)
{
    Drop *drop = kn_arena_zalloc(src->run->arena, sizeof(*drop));
    src->own = drop;
    KN_TRY(kn_native_path(src->run->arena, src->place, &drop->dir, err));
    src->identity = drop->dir;
    size_t at = (size_t)(src->flow - src->run->pipeline->flows.items);
    src->log = kn_arena_printf(src->run->arena, "kn_seen_%zu", at);
    return KN_OK;
}

static KnCode add_seen(void *arg, KnBatch *batch, KnErr *err)
{
    (void)err;
    Drop *drop = arg;
    KnVector names = kn_batch_vector(batch, 0);
    for (size_t i = 0; i < kn_batch_rows(batch); i++) {
        bool is_new = false;
        *kn_map_get_or_add(drop->seen, kn_vector_str(&names, i), &is_new) = drop;
    }
    return KN_OK;
}

static KnCode load_seen(KnStreamSource *src, Drop *drop, KnErr *err)
{
    if (drop->seen)
        return KN_OK;
    drop->seen = kn_map_new();
    const char *sql = kn_arena_printf(src->run->arena, "SELECT item FROM %s", src->log);
    return kn_session_visit(src->run->session, sql, add_seen, drop, err);
}

typedef struct Look {
    const KnStreamSource *src;
    Drop *drop;
} Look;

static KnCode add_file(void *arg, const KnFileInfo *info, KnErr *err)
{
    (void)err;
    const Look *look = arg;
    Drop *drop = look->drop;
    KnStr location = kn_str(info->location);
    if (kn_native_is_hidden(info->location + strlen(drop->dir)) ||
        kn_native_format(NULL, info->location) != look->src->format ||
        kn_map_find(drop->seen, location))
        return KN_OK;
    *kn_vec_push(&drop->found) =
        (Found){kn_arena_strdup(look->src->run->arena, info->location), info->modified_ms};
    return KN_OK;
}

static int by_age(const void *a, const void *b)
{
    const Found *one = a, *other = b;
    if (one->modified_ms != other->modified_ms)
        return one->modified_ms < other->modified_ms ? -1 : 1;
    return strcmp(one->location, other->location);
}

static KnCode drop_latest(KnStreamSource *src, const json_t *from, const KnStreamLimit *limit,
                          json_t **ret_to, KnErr *err)
{
    Drop *drop = src->own;
    Look look = {src, drop};
    *ret_to = NULL;
    KN_TRY(load_seen(src, drop, err));
    drop->found.len = 0;
    KN_TRY(kn_io_list(src->run->io, kn_str(drop->dir), add_file, &look, err));
    if (!drop->found.len)
        return KN_OK;
    qsort(drop->found.items, drop->found.len, sizeof(Found), by_age);
    bool some = limit->files > 0 && (size_t)limit->files < drop->found.len;
    drop->n_next = some ? (size_t)limit->files : drop->found.len;
    json_int_t had = from ? json_integer_value(json_object_get(from, "files")) : 0;
    *ret_to = json_pack("{s:I}", "files", had + (json_int_t)drop->n_next);
    return KN_OK;
}

static KnCode remember(KnStreamSource *src, Drop *drop, KnErr *err)
{
    KN_BUF_AUTO sql = {.max = 256 << 20};
    kn_buf_printf(&sql, "INSERT INTO %s SELECT unnest([", src->log);
    for (size_t i = 0; i < drop->n_next; i++) {
        bool is_new = false;
        KnStr name = kn_str(drop->found.items[i].location);
        kn_buf_text(&sql, i ? ", " : "");
        kn_sql_text(&sql, name);
        *kn_map_get_or_add(drop->seen, name, &is_new) = drop;
    }
    kn_buf_text(&sql, "])");
    KN_TRY(kn_buf_check(&sql, err));
    return kn_session_exec(src->run->session, sql.data, NULL, err);
}

static KnCode drop_rows(KnStreamSource *src, const json_t *from, const json_t *to,
                        const char **ret_sql, KnErr *err)
{
    (void)from;
    (void)to;
    Drop *drop = src->own;
    KN_BUF_AUTO sql = {.max = 256 << 20};
    const char **names = kn_arena_zalloc(src->run->arena, (drop->n_next + 1) * sizeof(*names));
    for (size_t i = 0; i < drop->n_next; i++)
        names[i] = drop->found.items[i].location;
    kn_native_listed_sql(&sql, src->format, &(KnutNames){names, drop->n_next}, &src->how);
    KN_TRY(kn_buf_check(&sql, err));
    *ret_sql = kn_arena_strndup(src->run->arena, sql.data, sql.len);
    return remember(src, drop, err);
}

static KnCode drop_columns(KnStreamSource *src, const char **ret_sql, KnErr *err)
{
    (void)src;
    (void)err;
    *ret_sql = NULL;
    return KN_OK;
}

static void drop_release(KnStreamSource *src)
{
    (void)src;
}

static void drop_close(KnStreamSource *src)
{
    Drop *drop = src->own;
    if (!drop)
        return;
    if (drop->seen)
        kn_map_free(drop->seen);
    kn_vec_done(&drop->found);
}

const KnStreamSourceOps kn_stream_drop = {.kind = "file_drop",
                                          .open = drop_open,
                                          .latest = drop_latest,
                                          .rows = drop_rows,
                                          .columns = drop_columns,
                                          .release = drop_release,
                                          .close = drop_close};

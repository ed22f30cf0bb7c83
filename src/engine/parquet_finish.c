/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parquet_finish.c - leaves of a file get the types that were asked for by field id.
 *
 * BYTE_ARRAY and FIXED_LEN_BYTE_ARRAY differ in PLAIN pages only: a value's length, 32 bits in
 * front of it, goes. Dictionary indexes stay, so do levels, statistics and row numbers. The engine
 * writes version 1 pages, plain or with a dictionary; anything else is not taken for granted.
 */
#include "engine/parquet_finish.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/parquet_codec.h"
#include "engine/parquet_pages.h"

/* Encoding */
enum { PLAIN = 0, PLAIN_DICTIONARY = 2, RLE_DICTIONARY = 8 };
enum { LENGTH = 4 }; /* bytes in front of a value, and of levels */

typedef struct Finish {
    KnPqWritten *file;
    const KnPqColumnType *types;
    size_t n_types;
    KnArena *arena;
    KnPqLeafVec leaves;
    KnPqRetype *retypes; /* by leaf */
    bool any, any_fixed;
    int codec; /* of the chunk at hand */
    KnBuf plain, packed;
} Finish;

static KnCode sys_error(KnErr *err, const char *what, const char *path)
{
    return kn_err_set(err, KN_E_IO, "cannot %s %s: %s", what, path, strerror(errno));
}

/* ---- which leaves ---- */

static KnCode leaf_retype(Finish *fin, size_t leaf, KnErr *err)
{
    const KnPqLeaf *of = &fin->leaves.items[leaf];
    for (size_t i = 0; i < fin->n_types; i++) {
        const KnPqColumnType *type = &fin->types[i];
        if (type->field_id != of->field_id)
            continue;
        bool fixed = type->as == KN_PQ_AS_FIXED;
        if (of->type != (fixed ? KN_PQ_TYPE_BYTES : KN_PQ_TYPE_INT64))
            return kn_err_set(err, KN_E_CORRUPT, "field %d was written as Parquet type %d",
                              type->field_id, of->type);
        fin->retypes[leaf] = (KnPqRetype){type->as, type->length};
        fin->any = true;
        fin->any_fixed |= fixed;
    }
    return KN_OK;
}

static KnCode schema_take(Finish *fin, const KnPqMeta *meta, KnErr *err)
{
    KN_TRY(kn_pq_leaves_read(meta, &fin->leaves, err));
    size_t n = fin->leaves.len;
    fin->retypes = kn_arena_zalloc(fin->arena, (n + 1) * sizeof(*fin->retypes));
    for (size_t i = 0; i < n; i++)
        KN_TRY(leaf_retype(fin, i, err));
    for (size_t i = 0; i < meta->groups.len; i++) {
        if (meta->groups.items[i].n_chunks != n)
            return kn_err_set(err, KN_E_CORRUPT, "%zu column chunks for %zu columns",
                              meta->groups.items[i].n_chunks, n);
    }
    return KN_OK;
}

/* ---- pages of fixed lengths ---- */

static uint32_t length_at(const char *p)
{
    const uint8_t *b = (const uint8_t *)p;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

/* Where the values begin, behind the levels. */
static bool values_find(const KnPqLeaf *leaf, KnStr page, size_t *ret)
{
    size_t at = 0;
    for (int i = 0; i < (leaf->max_rep > 0) + (leaf->max_def > 0); i++) {
        if (page.len - at < LENGTH)
            return false;
        size_t len = length_at(page.ptr + at);
        at += LENGTH;
        if (len > page.len - at)
            return false;
        at += len;
    }
    *ret = at;
    return true;
}

/* The values in front of which lengths were, in place. */
static KnCode values_pack(KnBuf *page, size_t from, int32_t length, KnErr *err)
{
    size_t size = (size_t)length;
    size_t to = from;
    for (size_t at = from; at < page->len; to += size) {
        if (page->len - at < LENGTH)
            return kn_err_set(err, KN_E_CORRUPT, "a page ends inside a value");
        uint32_t len = length_at(page->data + at);
        at += LENGTH;
        if (len != size || size > page->len - at)
            return kn_err_set(err, KN_E_CORRUPT, "a value of %u bytes in a column of %zu", len,
                              size);
        memmove(page->data + to, page->data + at, size);
        at += size;
    }
    page->len = to;
    return KN_OK;
}

static KnCode page_pack(void *arg, size_t column, const KnPqPage *page, KnStr body,
                        KnPqPageOut *ret, KnErr *err)
{
    Finish *fin = arg;
    bool data = page->type == KN_PQ_DATA_PAGE;
    if (data && (page->encoding == RLE_DICTIONARY || page->encoding == PLAIN_DICTIONARY)) {
        *ret = (KnPqPageOut){.values = body, .plain_size = page->plain_size};
        return KN_OK;
    }
    if (page->type != KN_PQ_DICTIONARY_PAGE && !(data && page->encoding == PLAIN))
        return kn_err_set(err, KN_E_UNSUPPORTED,
                          "a page of type %d and encoding %d cannot be made one of fixed lengths",
                          page->type, page->encoding);
    KN_TRY(kn_pq_page_decompress(fin->codec, body, (size_t)page->plain_size, &fin->plain, err));
    size_t from = 0;
    if (data &&
        !values_find(&fin->leaves.items[column], (KnStr){fin->plain.data, fin->plain.len}, &from))
        return kn_err_set(err, KN_E_CORRUPT, "a page ends inside its levels");
    KN_TRY(values_pack(&fin->plain, from, fin->retypes[column].length, err));
    KnStr plain = {fin->plain.data ? fin->plain.data : "", fin->plain.len};
    KN_TRY(kn_pq_page_compress(fin->codec, plain, &fin->packed, err));
    *ret = (KnPqPageOut){.values = {fin->packed.data, fin->packed.len},
                         .plain_size = (int64_t)plain.len};
    return KN_OK;
}

static KnCode copy_open(void *arg, KnPqMeta *meta, KnErr *err)
{
    (void)err;
    const Finish *fin = arg;
    meta->retypes = fin->retypes;
    return KN_OK;
}

static bool is_fixed(void *arg, size_t column, KnPqChunk *made)
{
    Finish *fin = arg;
    made->is_fixed = fin->retypes[column].as == KN_PQ_AS_FIXED;
    fin->codec = made->codec;
    return made->is_fixed;
}

static void offsets_take(Finish *fin, const KnPqMeta *meta)
{
    size_t n = meta->groups.len;
    int64_t *offsets = kn_arena_alloc(fin->arena, (n + 1) * sizeof(*offsets));
    for (size_t i = 0; i < n; i++)
        offsets[i] = meta->chunks.items[meta->groups.items[i].first].start;
    fin->file->group_offsets = offsets;
    fin->file->n_groups = n;
}

static void copy_done(void *arg, const KnPqMeta *meta, int64_t size)
{
    Finish *fin = arg;
    size_t n = fin->leaves.len;
    KnPqResized *resized = kn_arena_zalloc(fin->arena, (n + 1) * sizeof(*resized));
    size_t n_resized = 0;
    for (size_t leaf = 0; leaf < n; leaf++) {
        if (fin->retypes[leaf].as != KN_PQ_AS_FIXED)
            continue;
        KnPqResized *one = &resized[n_resized++];
        one->field_id = fin->leaves.items[leaf].field_id;
        for (size_t g = 0; g < meta->groups.len; g++)
            one->size_bytes += meta->chunks.items[meta->groups.items[g].first + leaf].size;
    }
    fin->file->resized = resized;
    fin->file->n_resized = n_resized;
    fin->file->size_bytes = size;
    offsets_take(fin, meta);
}

/* ---- files ---- */

/* A footer in place of the one that is there. */
static KnCode footer_replace(Finish *fin, int fd, KnPqMeta *meta, KnErr *err)
{
    const char *path = fin->file->path;
    KN_BUF_AUTO made;
    kn_buf_init(&made, (size_t)1 << 30);
    meta->retypes = fin->retypes;
    meta->in_place = true;
    KN_TRY(kn_pq_meta_write(meta, &made, err));
    kn_pq_tail_write(&made, made.len);
    KN_TRY(kn_buf_check(&made, err));
    int64_t size = meta->data_end + (int64_t)made.len;
    if (pwrite(fd, made.data, made.len, meta->data_end) != (ssize_t)made.len ||
        ftruncate(fd, size) < 0)
        return sys_error(err, "write the footer of", path);
    fin->file->size_bytes = size;
    return KN_OK;
}

/* Either the footer alone, or what calls for a copy: *ret_copy. */
static KnCode finish_open(Finish *fin, int fd, bool *ret_copy, KnErr *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return sys_error(err, "look at", fin->file->path);
    KnPqMeta meta = {0};
    KnCode rc = kn_pq_meta_read(fd, st.st_size, &meta, err);
    if (rc == KN_OK && fin->n_types > 0)
        rc = schema_take(fin, &meta, err);
    if (rc == KN_OK) {
        fin->file->size_bytes = st.st_size;
        offsets_take(fin, &meta);
        *ret_copy = fin->any_fixed;
    }
    if (rc == KN_OK && fin->any && !fin->any_fixed)
        rc = footer_replace(fin, fd, &meta, err);
    kn_pq_meta_done(&meta);
    return rc;
}

static KnCode finish_copy(Finish *fin, KnErr *err)
{
    const char *path = fin->file->path;
    const char *copy = kn_arena_printf(fin->arena, "%s.part", path);
    kn_buf_init(&fin->plain, KN_PQ_MAX_PAGE);
    kn_buf_init(&fin->packed, (size_t)KN_PQ_MAX_PAGE * 2);
    KnPqRecode recode = {
        .open = copy_open, .wants = is_fixed, .page = page_pack, .done = copy_done, .arg = fin};
    KnCode rc = kn_pq_pages_copy(path, copy, &recode, err);
    if (rc == KN_OK && rename(copy, path) < 0) {
        rc = sys_error(err, "replace", path);
        (void)unlink(copy);
    }
    kn_buf_done(&fin->plain);
    kn_buf_done(&fin->packed);
    return rc;
}

KnCode kn_parquet_finish(KnPqWritten *file, const KnPqColumnType *types, size_t n, KnArena *arena,
                         KnErr *err)
{
    Finish fin = {.file = file, .types = types, .n_types = n, .arena = arena};
    int fd = open(file->path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return sys_error(err, "open", file->path);
    bool copy = false;
    KnCode rc = finish_open(&fin, fd, &copy, err);
    close(fd);
    if (rc == KN_OK && copy)
        rc = finish_copy(&fin, err);
    kn_vec_done(&fin.leaves);
    return rc == KN_OK ? rc : kn_err_wrap(err, rc, "%s", file->path);
}

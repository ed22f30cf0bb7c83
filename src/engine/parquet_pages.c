/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parquet_pages.c - a Parquet file copied chunk by chunk, pages of some chunks in other bytes.
 *
 * A page that is recoded is read whole and handed on; its header keeps every field but the sizes
 * and the checksum. The chunks' offsets and sizes in the footer follow from what was written
 * (parquet_meta.h). Memory is that of a page.
 *
 * Every length is from outside: pages end inside their chunk, chunks inside the file; memory is
 * taken only for pages of at most KN_PQ_MAX_PAGE whose bytes are there.
 */
#include "engine/parquet_pages.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/parquet_thrift.h"

enum {
    FIRST_HEADER = 1 << 10, /* headers may hold long statistics: read more when cut short */
    MAX_HEADER = 16 << 20,
    FLUSH = 1 << 20,
};

typedef struct Copy {
    int in;
    int out;
    const char *to;
    const KnPqRecode *recode;
    int64_t at; /* where in `out` the bytes after those in made will be */
    KnPqMeta meta;
    KnBuf header;
    KnBuf body;
    KnBuf made; /* to be written */
} Copy;

static KnCode sys_error(KnErr *err, const char *what, const char *path)
{
    KnCode code = errno == ENOENT ? KN_E_NOTFOUND : KN_E_IO;
    return kn_err_set(err, code, "%s %s: %s", what, path, strerror(errno));
}

/* len bytes at `at` of the source, in place of what buf had. */
static KnCode source_read(Copy *cp, int64_t at, size_t len, KnBuf *buf, KnErr *err)
{
    kn_buf_reset(buf);
    char *bytes = kn_buf_reserve(buf, len);
    if (!bytes)
        return kn_buf_check(buf, err);
    while (buf->len < len) {
        ssize_t n = pread(cp->in, bytes + buf->len, len - buf->len, at + (int64_t)buf->len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return kn_err_set(err, KN_E_IO, "cannot read: %s", strerror(errno));
        if (n == 0)
            return kn_err_set(err, KN_E_CORRUPT, "the file has become shorter");
        buf->len += (size_t)n;
    }
    return KN_OK;
}

static KnCode flush(Copy *cp, KnErr *err)
{
    KN_TRY(kn_buf_check(&cp->made, err));
    for (size_t done = 0; done < cp->made.len;) {
        ssize_t n = write(cp->out, cp->made.data + done, cp->made.len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return sys_error(err, "cannot write", cp->to);
        done += (size_t)n;
    }
    cp->at += (int64_t)cp->made.len;
    kn_buf_reset(&cp->made);
    return KN_OK;
}

static int64_t position(const Copy *cp)
{
    return cp->at + (int64_t)cp->made.len;
}

/* ---- page headers ---- */

static void data_header_parse(KnThrift *t, KnPqPage *page)
{
    bool v2 = page->type == KN_PQ_DATA_PAGE_V2;
    KnThriftField f = {0};
    while (kn_thrift_field_next(t, &f)) {
        if (f.id == 1)
            page->n_values = kn_thrift_int(t, &f, KN_THRIFT_I32);
        else if (f.id == (v2 ? 4 : 2))
            page->encoding = (int)kn_thrift_int(t, &f, KN_THRIFT_I32);
        else if (v2 && (f.id == 5 || f.id == 6)) {
            int64_t n = kn_thrift_int(t, &f, KN_THRIFT_I32);
            t->bad |= n < 0;
            page->n_levels += n;
        } else if (v2 && f.id == 7 && f.type == KN_THRIFT_FALSE)
            page->is_compressed = false;
        else
            kn_thrift_skip(t, f.type);
    }
    t->bad |= page->n_values < 0;
}

/* The bounds of the cursor are all that is known of a header's length. */
static void header_parse(KnThrift *t, KnPqPage *page)
{
    *page = (KnPqPage){
        .type = -1, .encoding = -1, .plain_size = -1, .size = -1, .n_values = -1, .header = t->at};
    KnThriftField f = {0};
    while (kn_thrift_field_next(t, &f)) {
        if (f.id == 1) {
            page->type = (int)kn_thrift_int(t, &f, KN_THRIFT_I32);
            page->is_compressed = page->type == KN_PQ_DATA_PAGE ||
                                  page->type == KN_PQ_DICTIONARY_PAGE ||
                                  page->type == KN_PQ_DATA_PAGE_V2;
        } else if (f.id == 2) {
            page->plain_size = kn_thrift_int(t, &f, KN_THRIFT_I32);
        } else if (f.id == 3) {
            page->size = kn_thrift_int(t, &f, KN_THRIFT_I32);
        } else if (f.type == KN_THRIFT_STRUCT &&
                   ((f.id == 5 && page->type == KN_PQ_DATA_PAGE) ||
                    (f.id == 8 && page->type == KN_PQ_DATA_PAGE_V2))) {
            data_header_parse(t, page);
        } else {
            kn_thrift_skip(t, f.type);
        }
    }
    page->header_len = (size_t)(t->at - page->header);
}

static bool is_data(const KnPqPage *page)
{
    return page->type == KN_PQ_DATA_PAGE || page->type == KN_PQ_DATA_PAGE_V2;
}

static KnCode page_check(const KnPqPage *page, int64_t room, KnErr *err)
{
    bool bad = page->size < 0 || page->plain_size < 0 || page->size > room ||
               (is_data(page) && page->n_values < 0) || page->n_levels > page->size ||
               page->n_levels > page->plain_size;
    if (bad)
        return kn_err_set(err, KN_E_CORRUPT, "page header: sizes %lld and %lld, %lld bytes left",
                          (long long)page->size, (long long)page->plain_size, (long long)room);
    if (page->size > KN_PQ_MAX_PAGE || page->plain_size > KN_PQ_MAX_PAGE)
        return kn_err_set(
            err, KN_E_UNSUPPORTED, "a page of %lld bytes: at most 1 GiB is supported",
            (long long)(page->size > page->plain_size ? page->size : page->plain_size));
    return KN_OK;
}

/* The header at `at`, in a chunk that ends at `end`. */
static KnCode header_read(Copy *cp, int64_t at, int64_t end, KnPqPage *ret, KnErr *err)
{
    int64_t room = end - at;
    if (room == 0)
        return kn_err_set(err, KN_E_CORRUPT, "the column chunk ends before its last value");
    for (int64_t len = FIRST_HEADER;; len *= 8) {
        size_t n = (size_t)(len < room ? len : room);
        KN_TRY(source_read(cp, at, n, &cp->header, err));
        const uint8_t *bytes = (const uint8_t *)cp->header.data;
        KnThrift t = {.at = bytes, .end = bytes + n};
        header_parse(&t, ret);
        if (!t.bad)
            break;
        if (len >= room || len >= MAX_HEADER)
            return kn_err_set(err, KN_E_CORRUPT, "page header: damaged at its byte %zu",
                              (size_t)(t.at - bytes));
    }
    return page_check(ret, room - (int64_t)ret->header_len, err);
}

/* The page's header with other sizes and without a checksum. */
static void header_write(Copy *cp, const KnPqPage *page, size_t size, int64_t plain_size)
{
    KnThrift t = {.at = page->header, .end = page->header + page->header_len};
    int last = 0;
    KnThriftField f = {0};
    while (kn_thrift_field_next(&t, &f)) {
        if (f.id < 2 || f.id > 4) {
            kn_thrift_copy(&cp->made, &last, &f, &t);
            continue;
        }
        kn_thrift_skip(&t, f.type);
        if (f.id != 4)
            kn_thrift_write_i32(&cp->made, &last, f.id,
                                f.id == 3 ? (int32_t)size : (int32_t)plain_size);
    }
    kn_buf_char(&cp->made, KN_THRIFT_STOP);
}

/* ---- pages ---- */

static KnCode page_copy(Copy *cp, int64_t at, size_t column, const KnPqPage *page, KnPqChunk *made,
                        KnErr *err)
{
    KN_TRY(source_read(cp, at + (int64_t)page->header_len, (size_t)page->size, &cp->body, err));
    KnPqPageOut out = {0};
    KnStr body = {cp->body.data, cp->body.len};
    KN_TRY(cp->recode->page(cp->recode->arg, column, page, body, &out, err));
    size_t before = cp->made.len;
    header_write(cp, page, out.levels.len + out.values.len, out.plain_size);
    made->plain_size += (int64_t)(cp->made.len - before) + out.plain_size;
    kn_buf_str(&cp->made, out.levels);
    kn_buf_str(&cp->made, out.values);
    return cp->made.len >= FLUSH || cp->made.failed ? flush(cp, err) : KN_OK;
}

/* ---- chunks ---- */

/* A chunk that stays as it is. */
static KnCode chunk_move(Copy *cp, KnPqChunk *chunk, KnErr *err)
{
    int64_t start = position(cp);
    for (int64_t done = 0; done < chunk->size;) {
        int64_t n = chunk->size - done < FLUSH ? chunk->size - done : FLUSH;
        KN_TRY(source_read(cp, chunk->start + done, (size_t)n, &cp->body, err));
        kn_buf_append(&cp->made, cp->body.data, cp->body.len);
        KN_TRY(flush(cp, err));
        done += n;
    }
    chunk->data_offset += start - chunk->start;
    chunk->start = start;
    return KN_OK;
}

static KnCode chunk_recode(Copy *cp, size_t column, KnPqChunk *chunk, KnPqChunk made, KnErr *err)
{
    made.start = position(cp);
    made.data_offset = chunk->has_dictionary ? -1 : made.start;
    made.plain_size = 0;
    int64_t at = chunk->start;
    int64_t end = chunk->start + chunk->size;
    for (int64_t left = chunk->n_values; left > 0;) {
        KnPqPage page = {0};
        KnCode code = header_read(cp, at, end, &page, err);
        if (code == KN_OK && is_data(&page) && made.data_offset < 0)
            made.data_offset = position(cp);
        if (code == KN_OK)
            code = page_copy(cp, at, column, &page, &made, err);
        if (code != KN_OK)
            return kn_err_wrap(err, code, "page at byte %lld", (long long)at);
        at += (int64_t)page.header_len + page.size;
        left -= is_data(&page) ? page.n_values : 0;
    }
    made.size = position(cp) - made.start;
    if (made.data_offset < 0)
        made.data_offset = made.start;
    *chunk = made;
    return KN_OK;
}

static KnCode group_copy(Copy *cp, size_t group, KnErr *err)
{
    const KnPqGroup *place = &cp->meta.groups.items[group];
    for (size_t i = 0; i < place->n_chunks; i++) {
        KnPqChunk *chunk = &cp->meta.chunks.items[place->first + i];
        KnPqChunk made = *chunk;
        KnCode code = cp->recode->wants(cp->recode->arg, i, &made)
                          ? chunk_recode(cp, i, chunk, made, err)
                          : chunk_move(cp, chunk, err);
        if (code != KN_OK)
            return kn_err_wrap(err, code, "row group %zu, column %zu", group, i);
    }
    return KN_OK;
}

static KnCode file_copy(Copy *cp, int64_t size, KnErr *err)
{
    const KnPqRecode *recode = cp->recode;
    KN_TRY(kn_pq_meta_read(cp->in, size, &cp->meta, err));
    if (recode->open)
        KN_TRY(recode->open(recode->arg, &cp->meta, err));
    kn_buf_text(&cp->made, "PAR1");
    for (size_t i = 0; i < cp->meta.groups.len; i++)
        KN_TRY(group_copy(cp, i, err));
    KN_TRY(flush(cp, err));
    KN_TRY(kn_pq_meta_write(&cp->meta, &cp->made, err));
    kn_pq_tail_write(&cp->made, cp->made.len);
    KN_TRY(flush(cp, err));
    if (recode->done)
        recode->done(recode->arg, &cp->meta, cp->at);
    return KN_OK;
}

static KnCode copy_open(Copy *cp, const char *from, int64_t *ret_size, KnErr *err)
{
    struct stat st;
    cp->in = open(from, O_RDONLY | O_CLOEXEC);
    if (cp->in < 0 || fstat(cp->in, &st) < 0)
        return sys_error(err, "cannot open", from);
    cp->out = open(cp->to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (cp->out < 0)
        return sys_error(err, "cannot create", cp->to);
    kn_buf_init(&cp->header, MAX_HEADER * 8LL);
    kn_buf_init(&cp->body, KN_PQ_MAX_PAGE);
    kn_buf_init(&cp->made, (size_t)KN_PQ_MAX_PAGE * 2 + MAX_HEADER * 8LL);
    *ret_size = st.st_size;
    return KN_OK;
}

static KnCode copy_close(Copy *cp, KnCode code, KnErr *err)
{
    if (cp->in >= 0)
        close(cp->in);
    if (cp->out >= 0 && close(cp->out) < 0 && code == KN_OK)
        code = sys_error(err, "cannot write", cp->to);
    if (cp->out >= 0 && code != KN_OK)
        (void)unlink(cp->to);
    kn_pq_meta_done(&cp->meta);
    kn_buf_done(&cp->header);
    kn_buf_done(&cp->body);
    kn_buf_done(&cp->made);
    return code;
}

KnCode kn_pq_pages_copy(const char *from, const char *to, const KnPqRecode *recode, KnErr *err)
{
    Copy cp = {.in = -1, .out = -1, .to = to, .recode = recode};
    int64_t size = 0;
    KnCode code = copy_open(&cp, from, &size, err);
    if (code == KN_OK) {
        code = file_copy(&cp, size, err);
        if (code != KN_OK)
            code = kn_err_wrap(err, code, "%s", from);
    }
    return copy_close(&cp, code, err);
}

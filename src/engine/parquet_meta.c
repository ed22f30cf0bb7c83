/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parquet_meta.c - a footer's row groups read, and written again with other offsets.
 *
 * Reading and writing walk the same bytes in the same order, so that the n-th ColumnChunk met is
 * chunks[n], whatever a hostile footer repeats or leaves out. Fields that a copy keeps are taken
 * over as bytes; after a dropped field only the next header changes, which counts from the last id.
 */
#include "engine/parquet_meta.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/parquet_thrift.h"

enum { MAX_FOOTER = 1 << 30, TAIL = 8, MAGIC = 4 };

/* ---- reading ---- */

KnCode kn_pq_footer_read(int fd, int64_t size, KnBuf *buf, int64_t *ret_at, KnErr *err)
{
    kn_buf_init(buf, MAX_FOOTER);
    uint8_t tail[TAIL];
    bool is_parquet = size >= TAIL + MAGIC && pread(fd, tail, TAIL, size - TAIL) == TAIL;
    if (is_parquet && memcmp(tail + 4, "PARE", MAGIC) == 0)
        return kn_err_set(err, KN_E_UNSUPPORTED, "encrypted Parquet files are not supported");
    if (!is_parquet || memcmp(tail + 4, "PAR1", MAGIC) != 0)
        return kn_err_set(err, KN_E_CORRUPT, "not a Parquet file (no PAR1 at its end)");
    uint32_t len = (uint32_t)tail[0] | (uint32_t)tail[1] << 8 | (uint32_t)tail[2] << 16 |
                   (uint32_t)tail[3] << 24;
    if (len > MAX_FOOTER || (int64_t)len > size - TAIL - MAGIC)
        return kn_err_set(err, KN_E_CORRUPT, "footer of %u bytes in a file of %lld", len,
                          (long long)size);
    void *bytes = kn_buf_reserve(buf, len);
    if (!bytes)
        return kn_buf_check(buf, err);
    if (pread(fd, bytes, len, size - TAIL - len) != (ssize_t)len)
        return kn_err_set(err, KN_E_IO, "cannot read the footer: %s", strerror(errno));
    buf->len = len;
    *ret_at = size - TAIL - len;
    return KN_OK;
}

typedef struct Parse {
    KnThrift t;
    KnPqMeta *meta;
    const char *refused; /* why the file is not for us */
} Parse;

static void column_meta_parse(Parse *p, KnPqChunk *chunk)
{
    enum { CODEC = 1, VALUES = 2, PLAIN = 4, SIZE = 8, DATA = 16, ALL = 31 };
    int seen = 0;
    int64_t dictionary = 0;
    KnThrift *t = &p->t;
    KnThriftField f = {0};
    while (kn_thrift_field_next(t, &f)) {
        if (f.id == 4) {
            chunk->codec = (int)kn_thrift_int(t, &f, KN_THRIFT_I32);
            seen |= CODEC;
        } else if (f.id == 5) {
            chunk->n_values = kn_thrift_int(t, &f, KN_THRIFT_I64);
            seen |= VALUES;
        } else if (f.id == 6) {
            chunk->plain_size = kn_thrift_int(t, &f, KN_THRIFT_I64);
            seen |= PLAIN;
        } else if (f.id == 7) {
            chunk->size = kn_thrift_int(t, &f, KN_THRIFT_I64);
            seen |= SIZE;
        } else if (f.id == 9) {
            chunk->data_offset = kn_thrift_int(t, &f, KN_THRIFT_I64);
            seen |= DATA;
        } else if (f.id == 11) {
            dictionary = kn_thrift_int(t, &f, KN_THRIFT_I64);
        } else {
            kn_thrift_skip(t, f.type);
        }
    }
    t->bad |= seen != ALL;
    /* Writers without a dictionary leave it out, write 0, or any number. */
    chunk->has_dictionary = dictionary > 0 && dictionary < chunk->data_offset;
    chunk->start = chunk->has_dictionary ? dictionary : chunk->data_offset;
}

static void chunk_parse(Parse *p)
{
    KnPqChunk chunk = {.codec = -1};
    KnThriftField f = {0};
    while (kn_thrift_field_next(&p->t, &f)) {
        if (f.id == 3 && f.type == KN_THRIFT_STRUCT) {
            column_meta_parse(p, &chunk);
            continue;
        }
        if (f.id == 1)
            p->refused = "columns in other files are not supported";
        if (f.id == 8 || f.id == 9)
            p->refused = "encrypted columns are not supported";
        kn_thrift_skip(&p->t, f.type);
    }
    p->t.bad |= chunk.codec < 0 && !p->refused;
    *kn_vec_push(&p->meta->chunks) = chunk;
}

static void group_parse(Parse *p)
{
    KnPqGroup group = {.first = p->meta->chunks.len};
    KnThriftField f = {0};
    while (kn_thrift_field_next(&p->t, &f)) {
        if (f.id != 1) {
            kn_thrift_skip(&p->t, f.type);
            continue;
        }
        uint64_t n = kn_thrift_structs_open(&p->t, &f);
        for (uint64_t i = 0; i < n && !p->t.bad && !p->refused; i++)
            chunk_parse(p);
    }
    group.n_chunks = p->meta->chunks.len - group.first;
    *kn_vec_push(&p->meta->groups) = group;
}

static void file_parse(Parse *p)
{
    KnThriftField f = {0};
    while (!p->refused && kn_thrift_field_next(&p->t, &f)) {
        if (f.id == 4) {
            uint64_t n = kn_thrift_structs_open(&p->t, &f);
            for (uint64_t i = 0; i < n && !p->t.bad && !p->refused; i++)
                group_parse(p);
            continue;
        }
        if (f.id == 8)
            p->refused = "encrypted columns are not supported";
        kn_thrift_skip(&p->t, f.type);
    }
}

/* That sizes add up keeps a footer that names the same bytes often from filling the disk. */
static KnCode check_chunks(const KnPqMeta *meta, KnErr *err)
{
    int64_t room = meta->data_end - MAGIC;
    for (size_t i = 0; i < meta->chunks.len; i++) {
        const KnPqChunk *chunk = &meta->chunks.items[i];
        int64_t end;
        bool bad = chunk->start < MAGIC || chunk->size < 0 || chunk->n_values < 0 ||
                   __builtin_add_overflow(chunk->start, chunk->size, &end) ||
                   end > meta->data_end || chunk->data_offset > end || chunk->size > room;
        if (bad)
            return kn_err_set(err, KN_E_CORRUPT,
                              "column chunk %zu: %lld bytes at %lld are not in the file", i,
                              (long long)chunk->size, (long long)chunk->start);
        room -= chunk->size;
    }
    return KN_OK;
}

KnCode kn_pq_meta_read(int fd, int64_t size, KnPqMeta *ret, KnErr *err)
{
    *ret = (KnPqMeta){0};
    KN_TRY(kn_pq_footer_read(fd, size, &ret->footer, &ret->data_end, err));
    const uint8_t *bytes = (const uint8_t *)ret->footer.data;
    Parse p = {.t = {.at = bytes, .end = bytes + ret->footer.len}, .meta = ret};
    file_parse(&p);
    if (p.refused && !p.t.bad)
        return kn_err_set(err, KN_E_UNSUPPORTED, "%s", p.refused);
    if (p.t.bad)
        return kn_err_set(err, KN_E_CORRUPT, "Parquet footer: damaged at byte %zu of %zu",
                          (size_t)(p.t.at - bytes), ret->footer.len);
    return check_chunks(ret, err);
}

void kn_pq_meta_done(KnPqMeta *meta)
{
    kn_buf_done(&meta->footer);
    kn_vec_done(&meta->chunks);
    kn_vec_done(&meta->groups);
}

uint64_t kn_pq_codecs_of(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    uint64_t codecs = 0;
    KnPqMeta meta = {0};
    if (fstat(fd, &st) == 0 && kn_pq_meta_read(fd, st.st_size, &meta, NULL) == KN_OK)
        kn_vec_foreach (&meta.chunks, chunk)
            codecs |= chunk->codec < 64 ? (uint64_t)1 << chunk->codec : 0;
    kn_pq_meta_done(&meta);
    close(fd);
    return codecs;
}

/* ---- writing ---- */

typedef struct Rewrite {
    KnThrift t;
    const KnPqMeta *meta;
    KnBuf *buf;
    size_t next_chunk;
    size_t next_group;
} Rewrite;

static void column_meta_write(Rewrite *w, const KnPqChunk *chunk)
{
    int last = 0;
    KnThriftField f = {0};
    while (kn_thrift_field_next(&w->t, &f)) {
        if (f.id == 1 && chunk->is_fixed) {
            kn_thrift_skip(&w->t, f.type);
            kn_thrift_write_i32(w->buf, &last, f.id, KN_PQ_TYPE_FIXED);
            continue;
        }
        if (w->meta->in_place || f.id < 4 || f.id == 5 || f.id == 8 || f.id == 12 || f.id == 13 ||
            f.id > 15) {
            kn_thrift_copy(w->buf, &last, &f, &w->t);
            continue;
        }
        kn_thrift_skip(&w->t, f.type);
        if (f.id == 4)
            kn_thrift_write_i32(w->buf, &last, 4, chunk->codec);
        else if (f.id == 6)
            kn_thrift_write_i64(w->buf, &last, f.id, chunk->plain_size);
        else if (f.id == 7)
            kn_thrift_write_i64(w->buf, &last, f.id, chunk->size);
        else if (f.id == 9)
            kn_thrift_write_i64(w->buf, &last, f.id, chunk->data_offset);
        else if (f.id == 11 && chunk->has_dictionary)
            kn_thrift_write_i64(w->buf, &last, f.id, chunk->start);
    }
    kn_buf_char(w->buf, KN_THRIFT_STOP);
}

/* Offsets of page indexes (4 to 7) go; file_offset (2) is deprecated and 0. */
static void chunk_write(Rewrite *w)
{
    assert(w->next_chunk < w->meta->chunks.len);
    const KnPqChunk *chunk = &w->meta->chunks.items[w->next_chunk++];
    int last = 0;
    KnThriftField f = {0};
    while (kn_thrift_field_next(&w->t, &f)) {
        if (f.id == 3 && f.type == KN_THRIFT_STRUCT) {
            kn_thrift_write_field(w->buf, &last, f.id, f.type);
            column_meta_write(w, chunk);
        } else if (!w->meta->in_place && (f.id == 2 || (f.id >= 4 && f.id <= 7))) {
            kn_thrift_skip(&w->t, f.type);
            if (f.id == 2)
                kn_thrift_write_i64(w->buf, &last, f.id, 0);
        } else {
            kn_thrift_copy(w->buf, &last, &f, &w->t);
        }
    }
    kn_buf_char(w->buf, KN_THRIFT_STOP);
}

static int64_t group_number(const KnPqMeta *meta, const KnPqGroup *group, int id)
{
    uint64_t sum = 0; /* plain sizes of chunks that are not ours may be anything */
    for (size_t i = group->first; i < group->first + group->n_chunks; i++) {
        const KnPqChunk *chunk = &meta->chunks.items[i];
        if (id == 5)
            return chunk->start;
        sum += (uint64_t)(id == 2 ? chunk->plain_size : chunk->size);
    }
    return (int64_t)sum;
}

static void group_write(Rewrite *w)
{
    assert(w->next_group < w->meta->groups.len);
    const KnPqGroup *group = &w->meta->groups.items[w->next_group++];
    int last = 0;
    KnThriftField f = {0};
    while (kn_thrift_field_next(&w->t, &f)) {
        if (f.id == 1) {
            uint64_t n = kn_thrift_structs_open(&w->t, &f);
            kn_thrift_write_field(w->buf, &last, f.id, f.type);
            kn_thrift_write_list(w->buf, KN_THRIFT_STRUCT, n);
            for (uint64_t i = 0; i < n; i++)
                chunk_write(w);
        } else if (!w->meta->in_place && (f.id == 2 || f.id == 5 || f.id == 6)) {
            kn_thrift_skip(&w->t, f.type);
            kn_thrift_write_i64(w->buf, &last, f.id, group_number(w->meta, group, f.id));
        } else {
            kn_thrift_copy(w->buf, &last, &f, &w->t);
        }
    }
    kn_buf_char(w->buf, KN_THRIFT_STOP);
}

KnCode kn_pq_meta_write(const KnPqMeta *meta, KnBuf *buf, KnErr *err)
{
    const uint8_t *bytes = (const uint8_t *)meta->footer.data;
    Rewrite w = {.t = {.at = bytes, .end = bytes + meta->footer.len}, .meta = meta, .buf = buf};
    int last = 0;
    KnThriftField f = {0};
    while (kn_thrift_field_next(&w.t, &f)) {
        if (f.id == 2 && f.type == KN_THRIFT_LIST && meta->retypes) {
            kn_pq_schema_write(meta, buf, &last, &f, &w.t);
            continue;
        }
        if (f.id != 4) {
            kn_thrift_copy(buf, &last, &f, &w.t);
            continue;
        }
        uint64_t n = kn_thrift_structs_open(&w.t, &f);
        kn_thrift_write_field(buf, &last, f.id, f.type);
        kn_thrift_write_list(buf, KN_THRIFT_STRUCT, n);
        for (uint64_t i = 0; i < n; i++)
            group_write(&w);
    }
    kn_buf_char(buf, KN_THRIFT_STOP);
    return kn_buf_check(buf, err);
}

void kn_pq_tail_write(KnBuf *buf, size_t len)
{
    for (int shift = 0; shift < 32; shift += 8)
        kn_buf_char(buf, (char)(len >> shift));
    kn_buf_append(buf, "PAR1", MAGIC);
}

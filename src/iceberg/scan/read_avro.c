/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read_avro.c - an Avro file becomes a Parquet copy.
 *
 * The file is brought to a nameless file of ours first and mapped: so memory holds one block and
 * one batch, whatever the storage, and nobody can cut off what is being read. Its rows then go
 * through a feed into COPY, which keeps their order, with the file's field ids; positions, groups,
 * row counts and deletes are the same as of any Parquet file from there on. The manifest's number
 * of rows bounds what the copy may grow to.
 *
 * The engine's threads call next() under the feed's lock; an error met there is kept aside, as the
 * engine would put its own words around it.
 */
#include "iceberg/scan/read_avro.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PIECE = 1 << 20, GROUP_ROWS_MIN = 2048, GROUP_ROWS_MAX = 122880 };
#define GROUP_BYTES ((int64_t)16 << 20)

typedef struct Copy {
    KnRead *read;
    const KnDataFile *file;
    const char *to;
    KnArena *arena;
    void *bytes; /* the mapped file, or NULL */
    size_t len;
    KnAvroReader *reader;
    KnAvroShape shape;
    KnBuilder *builder;
    KnAvroRows rows;
    int64_t in_block; /* datums yet to come */
    int64_t n_rows;
    KnCode failed; /* in next() */
    KnErr why;
} Copy;

/* ---- the file's bytes ---- */

static KnCode io_error(const char *what, KnErr *err)
{
    return kn_err_set(err, errno == ENOMEM ? KN_E_NOMEM : KN_E_IO, "%s: %s", what, strerror(errno));
}

static KnCode write_piece(int fd, const char *bytes, size_t len, KnErr *err)
{
    while (len > 0) {
        ssize_t n = write(fd, bytes, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return io_error("cannot write a temporary file", err);
        bytes += n;
        len -= (size_t)n;
    }
    return KN_OK;
}

static KnCode bring(const Copy *copy, int fd, KnErr *err)
{
    KnFileIO *io = copy->read->tbl->io;
    char *piece = kn_arena_alloc(copy->arena, PIECE);
    for (size_t at = 0; at < copy->len; at += PIECE) {
        size_t len = copy->len - at < PIECE ? copy->len - at : PIECE;
        KN_TRY(kn_io_read(io, kn_str(copy->file->path), at, len, piece, err));
        KN_TRY(write_piece(fd, piece, len, err));
    }
    return KN_OK;
}

static KnCode map_file(Copy *copy, int fd, KnErr *err)
{
    KN_TRY(bring(copy, fd, err));
    void *bytes = mmap(NULL, copy->len, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return io_error("cannot map a temporary file", err);
    copy->bytes = bytes;
    return KN_OK;
}

static KnCode load_bytes(Copy *copy, KnErr *err)
{
    KnFileInfo info;
    KN_TRY(kn_io_stat(copy->read->tbl->io, kn_str(copy->file->path), &info, err));
    if (info.size == 0 || info.size > SIZE_MAX / 2)
        return kn_err_set(err, KN_E_CORRUPT, "not an Avro file: %" PRIu64 " bytes", info.size);
    copy->len = (size_t)info.size;
    const char *path = kn_arena_printf(copy->arena, "%s.avro", copy->to);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return io_error("cannot make a temporary file", err);
    (void)unlink(path);
    KnCode rc = map_file(copy, fd, err);
    (void)close(fd);
    return rc;
}

/* ---- rows ---- */

static KnCode read_row(Copy *copy, KnErr *err)
{
    if (copy->n_rows == copy->file->record_count)
        return kn_err_set(err, KN_E_CORRUPT, "more rows than its manifest says, %" PRId64,
                          copy->file->record_count);
    const KnAvroNode *root = &copy->shape.root;
    for (size_t i = 0; i < root->n_children; i++)
        KN_TRY(kn_read_avro_put(&copy->rows, &root->children[i],
                                kn_builder_column(copy->builder, i), err));
    kn_builder_end_row(copy->builder);
    copy->n_rows++;
    if (--copy->in_block > 0)
        return KN_OK;
    return kn_avro_cursor_finish(&copy->rows.cur, err);
}

static KnCode fill(Copy *copy, KnErr *err)
{
    while (!kn_builder_full(copy->builder)) {
        if (copy->in_block == 0)
            KN_TRY(kn_avro_reader_next_block(copy->reader, &copy->rows.cur, &copy->in_block, err));
        if (copy->in_block == 0)
            break;
        KN_TRY(read_row(copy, err));
    }
    return KN_OK;
}

static KnCode next(void *arg, KnBatch **ret, KnErr *err)
{
    Copy *copy = arg;
    copy->failed = fill(copy, &copy->why);
    if (copy->failed != KN_OK)
        return kn_err_set(err, copy->failed, "%.300s", copy->why.msg);
    *ret = kn_builder_take(copy->builder);
    return KN_OK;
}

/* ---- the copy ---- */

/* Row groups are kept in memory whole: fewer rows where they are long. */
static int64_t group_rows(const Copy *copy)
{
    int64_t row =
        (int64_t)copy->len / (copy->file->record_count > 0 ? copy->file->record_count : 1);
    int64_t rows = GROUP_BYTES / (row + 1);
    return rows < GROUP_ROWS_MIN ? GROUP_ROWS_MIN : rows > GROUP_ROWS_MAX ? GROUP_ROWS_MAX : rows;
}

/* Not kn_parquet_write(): its statistics are not wanted, and the engine fails to spell the smallest
 * nanoseconds in them. Dictionaries would make -0.0 of 0.0. */
static KnCode write_parquet(Copy *copy, const char *feed, KnErr *err)
{
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)64 << 20);
    kn_buf_printf(&sql, "COPY (SELECT * FROM kn_feed('%s')) TO ", feed);
    kn_sql_text(&sql, kn_str(copy->to));
    kn_buf_printf(&sql,
                  " (FORMAT parquet, COMPRESSION lz4_raw, DICTIONARY_SIZE_LIMIT 0, ROW_GROUP_SIZE "
                  "%" PRId64,
                  group_rows(copy));
    if (copy->shape.field_ids_sql)
        kn_buf_printf(&sql, ", FIELD_IDS %s", copy->shape.field_ids_sql);
    kn_buf_char(&sql, ')');
    KN_TRY(kn_buf_check(&sql, err));
    KnCode rc = kn_session_exec(copy->read->ses, sql.data, NULL, err);
    if (copy->failed != KN_OK)
        return kn_err_set(err, copy->failed, "%s", copy->why.msg);
    return rc;
}

static KnCode run(Copy *copy, KnErr *err)
{
    KnEngine *eng = kn_session_engine(copy->read->ses);
    KN_TRY(load_bytes(copy, err));
    KN_TRY(kn_avro_reader_open(copy->bytes, copy->len, &copy->reader, err));
    KN_TRY(kn_read_avro_shape(copy->arena, kn_avro_reader_type(copy->reader), &copy->shape, err));
    size_t n = copy->shape.root.n_children;
    KN_TRY(kn_builder_open(eng, copy->shape.sql_types, n, &copy->builder, err));
    KnFeedOptions opts = {
        .name = kn_read_new_table(copy->read, "a"),
        .column_names = copy->shape.names,
        .column_types = copy->shape.sql_types,
        .n_columns = n,
        .next = next,
        .arg = copy,
    };
    KnFeed *feed = NULL;
    KN_TRY(kn_feed_open(eng, &opts, &feed, err));
    KnCode rc = write_parquet(copy, opts.name, err);
    kn_feed_close(feed);
    return rc;
}

KnCode kn_read_avro_copy(KnRead *read, const KnDataFile *file, const char **ret, KnErr *err)
{
    const char *to = NULL;
    KN_TRY(kn_table_check_path(read->tbl, kn_str(file->path), err));
    KN_TRY(kn_read_copy_path(read, &to, err));
    KN_ARENA_AUTO arena = kn_arena_new(0);
    Copy copy = {.read = read,
                 .file = file,
                 .to = to,
                 .arena = arena,
                 .rows = {.zero_left = KN_AVRO_ZERO_MAX}};
    KnCode rc = run(&copy, err);
    kn_builder_close(copy.builder);
    kn_avro_reader_close(copy.reader);
    if (copy.bytes)
        (void)munmap(copy.bytes, copy.len);
    if (rc != KN_OK)
        return kn_err_wrap(err, rc, "table %s: file '%.300s'", read->tbl->name, file->path);
    *ret = to;
    return KN_OK;
}

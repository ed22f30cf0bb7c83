/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read_vectors.c - deletion vectors into a group's table of deleted positions.
 *
 * A vector belongs to one data file and replaces all its position deletes. It is decoded from its
 * blob and handed to the engine as text: long runs as ranges, the rest as lists that the engine
 * casts, in statements of bounded size.
 */
#include <inttypes.h>

#include "codec/puffin.h"
#include "iceberg/read_internal.h"

enum {
    LONG_RUN = 16,        /* shorter runs are listed */
    LIST_BYTES = 1 << 20, /* of one statement */
    RANGE_ROWS = 100000,  /* rows of one range */
    BLOB_MAX = 1 << 30,
};

typedef struct Loader {
    KnRead *read;
    const char *table;
    size_t file;  /* in the group */
    KnBuf list;   /* "1,2,5" */
    KnBuf ranges; /* "(10,20),(40,90)" */
} Loader;

static KnCode flush_list(Loader *l, KnErr *err)
{
    if (l->list.len == 0)
        return KN_OK;
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)1 << 24);
    kn_buf_printf(&sql, "INSERT INTO %s SELECT %zu, unnest(CAST('[", l->table, l->file);
    kn_buf_str(&sql, (KnStr){l->list.data, l->list.len});
    kn_buf_text(&sql, "]' AS BIGINT[]))");
    kn_buf_reset(&l->list);
    KN_TRY(kn_buf_check(&sql, err));
    return kn_session_exec(l->read->ses, sql.data, NULL, err);
}

static KnCode flush_ranges(Loader *l, KnErr *err)
{
    if (l->ranges.len == 0)
        return KN_OK;
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)1 << 24);
    kn_buf_printf(&sql, "INSERT INTO %s SELECT %zu, unnest(range(a, b)) FROM (VALUES ", l->table,
                  l->file);
    kn_buf_str(&sql, (KnStr){l->ranges.data, l->ranges.len});
    kn_buf_text(&sql, ") AS r(a, b)");
    kn_buf_reset(&l->ranges);
    KN_TRY(kn_buf_check(&sql, err));
    return kn_session_exec(l->read->ses, sql.data, NULL, err);
}

static KnCode take_range(void *arg, uint64_t first, uint64_t count, KnErr *err)
{
    Loader *l = arg;
    if (count < LONG_RUN) {
        for (uint64_t i = 0; i < count; i++)
            kn_buf_printf(&l->list, "%s%" PRIu64, l->list.len ? "," : "", first + i);
        return l->list.len < LIST_BYTES ? KN_OK : flush_list(l, err);
    }
    for (uint64_t done = 0; done < count; done += RANGE_ROWS) {
        uint64_t rows = count - done < RANGE_ROWS ? count - done : RANGE_ROWS;
        kn_buf_printf(&l->ranges, "%s(%" PRIu64 "::BIGINT,%" PRIu64 "::BIGINT)",
                      l->ranges.len ? "," : "", first + done, first + done + rows);
    }
    return l->ranges.len < LIST_BYTES ? KN_OK : flush_ranges(l, err);
}

static KnCode decode(Loader *l, const KnDataFile *file, KnErr *err)
{
    const KnTable *tbl = l->read->tbl;
    if (file->content_size > BLOB_MAX)
        return kn_err_set(err, KN_E_CORRUPT, "a deletion vector of %" PRId64 " bytes",
                          file->content_size);
    KN_BUF_AUTO blob;
    kn_buf_init(&blob, BLOB_MAX + 1);
    size_t size = (size_t)file->content_size;
    void *bytes = kn_buf_reserve(&blob, size + 1);
    if (!bytes)
        return kn_err_set(err, KN_E_NOMEM, "no memory for a deletion vector of %zu bytes", size);
    KN_TRY(kn_table_check_path(tbl, kn_str(file->path), err));
    KN_TRY(
        kn_io_read(tbl->io, kn_str(file->path), (uint64_t)file->content_offset, size, bytes, err));
    uint64_t cardinality = 0;
    KN_TRY(kn_puffin_vector_decode((KnStr){bytes, size}, take_range, l, &cardinality, err));
    if (file->record_count < 0 || cardinality != (uint64_t)file->record_count)
        return kn_err_set(err, KN_E_CORRUPT,
                          "the deletion vector holds %" PRIu64
                          " positions, its manifest says %" PRId64,
                          cardinality, file->record_count);
    KN_TRY(flush_list(l, err));
    return flush_ranges(l, err);
}

KnCode kn_read_load_vector(KnRead *read, const KnManifestEntry *vector, size_t file,
                           const char *table, KnErr *err)
{
    const KnDataFile *of = &vector->file;
    if (of->key_metadata.len > 0)
        return kn_err_set(err, KN_E_UNSUPPORTED,
                          "table %s: deletion vector in '%.300s' is encrypted: encryption is not "
                          "supported",
                          read->tbl->name, of->path);
    if (of->content_offset < 0 || of->content_size < 0)
        return kn_err_set(err, KN_E_CORRUPT,
                          "table %s: deletion vector in '%.300s' has no offset or size",
                          read->tbl->name, of->path);
    Loader l = {.read = read, .table = table, .file = file};
    kn_buf_init(&l.list, 1 << 23);
    kn_buf_init(&l.ranges, (size_t)1 << 30);
    KnCode rc = decode(&l, of, err);
    if (rc != KN_OK)
        rc = kn_err_wrap(err, rc, "table %s: '%.200s', offset %" PRId64, read->tbl->name, of->path,
                         of->content_offset);
    kn_buf_done(&l.list);
    kn_buf_done(&l.ranges);
    return rc;
}

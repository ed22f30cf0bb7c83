/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_list_write.c - a snapshot's manifest list (spec: "Manifest Lists"; Java's
 * ManifestListWriter).
 *
 * Manifests that this snapshot adds get its sequence number. In v3 each data manifest without a
 * first row id gets the next one, and as many ids as it has live rows are used up (spec: "Row
 * Lineage"); the manifest's files share them out when it is read.
 */
#include "iceberg/manifest/manifest_internal.h"

#define HEADER_MAX ((size_t)16 << 20)

typedef struct Listing {
    const KnManifestListWrite *w;
    KnManifestForm form;
    KnAvroWriter *avro;
    int64_t next_row_id;
} Listing;

static KnCode assign_sequence(const KnManifestListWrite *w, KnManifestFile *mf, KnErr *err)
{
    if (mf->sequence_number >= 0 && mf->min_sequence_number >= 0)
        return KN_OK;
    if (mf->added_snapshot_id != w->snapshot_id)
        return kn_err_set(err, KN_E_INVAL, "no sequence number, and added by snapshot %lld",
                          (long long)mf->added_snapshot_id);
    if (mf->sequence_number < 0)
        mf->sequence_number = w->sequence_number;
    if (mf->min_sequence_number < 0)
        mf->min_sequence_number = w->sequence_number;
    return KN_OK;
}

static KnCode assign_row_id(Listing *l, KnManifestFile *mf, KnErr *err)
{
    if (mf->deletes) {
        mf->first_row_id = -1;
        return KN_OK;
    }
    if (mf->first_row_id >= 0)
        return KN_OK;
    int64_t rows;
    mf->first_row_id = l->next_row_id;
    if (__builtin_add_overflow(mf->existing_rows, mf->added_rows, &rows) ||
        __builtin_add_overflow(l->next_row_id, rows, &l->next_row_id))
        return kn_err_set(err, KN_E_INVAL, "row ids beyond 64 bits");
    return KN_OK;
}

static KnCode check_manifest(const KnManifestListWrite *w, const KnManifestFile *mf, KnErr *err)
{
    if (w->format_version == 1)
        return mf->deletes ? kn_err_set(err, KN_E_INVAL, "format version 1 has no delete files")
                           : KN_OK;
    if (mf->added_files < 0 || mf->existing_files < 0 || mf->deleted_files < 0 ||
        mf->added_rows < 0 || mf->existing_rows < 0 || mf->deleted_rows < 0)
        return kn_err_set(err, KN_E_UNSUPPORTED,
                          "its line in a format version 1 list has no counts: rewrite the "
                          "manifest first");
    return KN_OK;
}

static KnCode write_manifest(Listing *l, const KnManifestFile *in, KnErr *err)
{
    KnManifestFile mf = *in;
    KN_TRY(check_manifest(l->w, &mf, err));
    if (l->w->format_version > 1)
        KN_TRY(assign_sequence(l->w, &mf, err));
    if (l->w->format_version > 2)
        KN_TRY(assign_row_id(l, &mf, err));
    KN_TRY(kn_manifest_encode(kn_avro_writer_buf(l->avro), &l->form, &mf, err));
    return kn_avro_writer_datum(l->avro, err);
}

static void put_number(KnAvroWriter *avro, const char *key, int64_t number)
{
    char text[32];
    int n = snprintf(text, sizeof(text), "%lld", (long long)number);
    kn_avro_writer_meta(avro, key, (KnStr){text, (size_t)n});
}

static void put_header(const Listing *l, KnBuf *buf)
{
    const KnManifestListWrite *w = l->w;
    put_number(l->avro, "snapshot-id", w->snapshot_id);
    if (w->parent_id < 0)
        kn_avro_writer_meta(l->avro, "parent-snapshot-id", KN_STR_LIT("null"));
    else
        put_number(l->avro, "parent-snapshot-id", w->parent_id);
    if (w->format_version > 1)
        put_number(l->avro, "sequence-number", w->sequence_number);
    if (w->format_version > 2)
        put_number(l->avro, "first-row-id", w->first_row_id);
    put_number(l->avro, "format-version", w->format_version);
    kn_buf_reset(buf);
    kn_manifest_iceberg_schema(buf, &l->form);
    kn_avro_writer_meta(l->avro, "iceberg.schema", (KnStr){buf->data, buf->len});
}

static KnCode write_list(KnFileIO *io, Listing *l, KnErr *err)
{
    for (size_t i = 0; i < l->w->n_manifests; ++i) {
        KnCode code = write_manifest(l, &l->w->manifests[i], err);
        if (code != KN_OK)
            return kn_err_wrap(err, code, "manifest %s", l->w->manifests[i].path);
    }
    KN_BUF_AUTO file;
    kn_buf_init(&file, 0);
    KN_TRY(kn_avro_writer_finish(l->avro, &file, err));
    return kn_io_write(io, kn_str(l->w->path), file.data, file.len, KN_IO_CREATE, err);
}

KnCode kn_manifest_list_write(KnFileIO *io, const KnManifestListWrite *w, int64_t *ret_next_row_id,
                              KnErr *err)
{
    if (w->format_version < 1 || w->format_version > 3)
        return kn_err_set(err, KN_E_INVAL, "manifest list %s: format version %d", w->path,
                          w->format_version);
    if (w->format_version > 2 && w->first_row_id < 0)
        return kn_err_set(err, KN_E_INVAL, "manifest list %s: the snapshot has no first row id",
                          w->path);
    Listing l = {
        .w = w,
        .form = {&kn_manifest_file_fields, w->format_version, NULL},
        .next_row_id = w->first_row_id,
    };
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, HEADER_MAX);
    kn_manifest_avro_schema(&buf, &l.form);
    l.avro = kn_avro_writer_new((KnStr){buf.data, buf.len}, KN_AVRO_CODEC_DEFLATE);
    put_header(&l, &buf);
    KnCode code = write_list(io, &l, err);
    (void)kn_avro_writer_free(l.avro);
    if (code != KN_OK)
        return kn_err_wrap(err, code, "manifest list %s", w->path);
    *ret_next_row_id = l.next_row_id;
    return KN_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_write.c - a manifest file and its line for the list (spec: "Manifests"; Java's
 * ManifestWriter).
 *
 * An ADDED entry gets the writing snapshot's id and leaves its sequence numbers and first row id
 * null, to be inherited; only a data sequence number above 0 is kept, for rewritten files that must
 * stay as old as the rows in them. Every other entry must bring its numbers along.
 */
#include "iceberg/manifest/manifest_internal.h"

#define HEADER_MAX ((size_t)64 << 20)

KnCode kn_manifest_codec(const char *name, KnAvroCodec *ret, KnErr *err)
{
    static const struct {
        const char *name;
        KnAvroCodec codec;
    } codecs[] = {{"gzip", KN_AVRO_CODEC_DEFLATE},
                  {"zstd", KN_AVRO_CODEC_ZSTD},
                  {"snappy", KN_AVRO_CODEC_SNAPPY},
                  {"uncompressed", KN_AVRO_CODEC_NULL}};
    KnStr wanted = kn_str(name ? name : "gzip");
    for (size_t i = 0; i < sizeof(codecs) / sizeof(codecs[0]); ++i) {
        if (kn_str_eq_nocase(wanted, kn_str(codecs[i].name))) {
            *ret = codecs[i].codec;
            return KN_OK;
        }
    }
    return kn_err_set(err, KN_E_INVAL,
                      "compression codec '%.60s': gzip, zstd, snappy or uncompressed", name);
}

/* ---- entries ---- */

static KnCode check_entry(const KnManifestWrite *w, const KnManifestEntry *entry, KnErr *err)
{
    const KnDataFile *file = &entry->file;
    if (w->deletes != (file->content != KN_CONTENT_DATA))
        return kn_err_set(err, KN_E_INVAL, "content %d in a manifest of %s", (int)file->content,
                          w->deletes ? "deletes" : "data");
    if (file->format == KN_FORMAT_PUFFIN && w->format_version < 3)
        return kn_err_set(err, KN_E_INVAL, "a deletion vector needs format version 3");
    if (entry->status != KN_ENTRY_ADDED && w->format_version > 1 && entry->sequence_number < 0)
        return kn_err_set(err, KN_E_INVAL, "an entry that is not ADDED has no sequence number");
    return KN_OK;
}

/* The entry as it is written. */
static KnManifestEntry entry_to_write(const KnManifestWrite *w, const KnManifestEntry *entry)
{
    KnManifestEntry out = *entry;
    if (entry->status != KN_ENTRY_ADDED)
        return out;
    out.snapshot_id = w->snapshot_id;
    out.sequence_number = entry->sequence_number > 0 ? entry->sequence_number : -1;
    out.file_sequence_number = -1;
    out.file.first_row_id = -1;
    return out;
}

static KnCode add_counts(KnManifestFile *mf, const KnManifestEntry *entry, KnErr *err)
{
    int64_t *files = &mf->deleted_files;
    int64_t *rows = &mf->deleted_rows;
    if (entry->status == KN_ENTRY_ADDED) {
        files = &mf->added_files;
        rows = &mf->added_rows;
    } else if (entry->status == KN_ENTRY_EXISTING) {
        files = &mf->existing_files;
        rows = &mf->existing_rows;
    }
    ++*files;
    if (__builtin_add_overflow(*rows, entry->file.record_count, rows))
        return kn_err_set(err, KN_E_INVAL, "the rows of the manifest are beyond 64 bits");
    bool live = entry->status != KN_ENTRY_DELETED;
    if (live && entry->sequence_number >= 0 &&
        (mf->min_sequence_number < 0 || entry->sequence_number < mf->min_sequence_number))
        mf->min_sequence_number = entry->sequence_number;
    return KN_OK;
}

typedef struct Writing {
    const KnManifestWrite *w;
    KnManifestForm form;
    KnAvroWriter *avro;
    KnManifestSummary *summary;
    KnManifestFile mf;
} Writing;

static KnCode write_entry(Writing *wr, const KnManifestEntry *entry, KnErr *err)
{
    KN_TRY(check_entry(wr->w, entry, err));
    KnManifestEntry out = entry_to_write(wr->w, entry);
    KN_TRY(kn_manifest_encode(kn_avro_writer_buf(wr->avro), &wr->form, &out, err));
    KN_TRY(kn_avro_writer_datum(wr->avro, err));
    KN_TRY(add_counts(&wr->mf, &out, err));
    kn_manifest_summary_add(wr->summary, entry->file.partition);
    return KN_OK;
}

/* ---- the file ---- */

static void put_json(KnAvroWriter *avro, KnBuf *buf, const char *key, json_t *doc)
{
    kn_buf_reset(buf);
    kn_json_dump(buf, doc);
    json_decref(doc);
    kn_avro_writer_meta(avro, key, (KnStr){buf->data, buf->len});
}

static void put_number(KnAvroWriter *avro, KnBuf *buf, const char *key, int64_t number)
{
    kn_buf_reset(buf);
    kn_buf_printf(buf, "%lld", (long long)number);
    kn_avro_writer_meta(avro, key, (KnStr){buf->data, buf->len});
}

static void put_header(Writing *wr, KnBuf *buf)
{
    const KnManifestWrite *w = wr->w;
    put_json(wr->avro, buf, "schema", kn_schema_to_json(w->schema));
    put_json(wr->avro, buf, "partition-spec", kn_partition_fields_to_json(w->spec));
    put_number(wr->avro, buf, "partition-spec-id", w->spec->spec_id);
    put_number(wr->avro, buf, "format-version", w->format_version);
    if (w->format_version > 1)
        kn_avro_writer_meta(wr->avro, "content",
                            w->deletes ? KN_STR_LIT("deletes") : KN_STR_LIT("data"));
    kn_buf_reset(buf);
    kn_manifest_iceberg_schema(buf, &wr->form);
    kn_avro_writer_meta(wr->avro, "iceberg.schema", (KnStr){buf->data, buf->len});
}

static KnCode write_file(KnFileIO *io, Writing *wr, KnErr *err)
{
    for (size_t i = 0; i < wr->w->n_entries; ++i) {
        const KnManifestEntry *entry = wr->w->entries[i];
        KnCode code = write_entry(wr, entry, err);
        if (code != KN_OK)
            return kn_err_wrap(err, code, "%s", entry->file.path);
    }
    KN_BUF_AUTO file;
    kn_buf_init(&file, 0);
    KN_TRY(kn_avro_writer_finish(wr->avro, &file, err));
    wr->mf.length = (int64_t)file.len;
    return kn_io_write(io, kn_str(wr->w->path), file.data, file.len, KN_IO_CREATE, err);
}

static KnCode check_write(const KnManifestWrite *w, KnErr *err)
{
    if (w->format_version < 1 || w->format_version > 3)
        return kn_err_set(err, KN_E_INVAL, "format version %d", w->format_version);
    if (w->deletes && w->format_version == 1)
        return kn_err_set(err, KN_E_INVAL, "format version 1 has no delete files");
    if (w->partition_type->n_fields != w->spec->n_fields)
        return kn_err_set(err, KN_E_INVAL, "a partition type of %zu fields for a spec of %zu",
                          w->partition_type->n_fields, w->spec->n_fields);
    return KN_OK;
}

KnCode kn_manifest_write(KnFileIO *io, KnArena *arena, const KnManifestWrite *w,
                         KnManifestFile *ret, KnErr *err)
{
    KnAvroCodec codec;
    KN_TRY(check_write(w, err));
    KN_TRY(kn_manifest_codec(w->codec, &codec, err));
    Writing wr = {
        .w = w,
        .form = {&kn_manifest_entry_fields, w->format_version, w->partition_type},
        .summary = kn_manifest_summary_new(arena, w->partition_type),
        .mf = {.path = kn_arena_strdup(arena, w->path),
               .spec_id = w->spec->spec_id,
               .deletes = w->deletes,
               .sequence_number = w->format_version > 1 ? -1 : 0,
               .min_sequence_number = w->format_version > 1 ? -1 : 0,
               .added_snapshot_id = w->snapshot_id,
               .first_row_id = -1},
    };
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, HEADER_MAX);
    kn_manifest_avro_schema(&buf, &wr.form);
    KnCode code = kn_buf_check(&buf, err);
    if (code == KN_OK) {
        wr.avro = kn_avro_writer_new((KnStr){buf.data, buf.len}, codec);
        put_header(&wr, &buf);
        code = write_file(io, &wr, err);
        (void)kn_avro_writer_free(wr.avro);
    }
    if (code == KN_OK)
        code = kn_manifest_summary_finish(wr.summary, arena, &wr.mf, err);
    if (code != KN_OK)
        return kn_err_wrap(err, code, "manifest %s", w->path);
    *ret = wr.mf;
    return KN_OK;
}

KnCode kn_manifest_empty_bytes(const KnManifestWrite *w, int64_t *ret, KnErr *err)
{
    Writing wr = {.w = w,
                  .form = {&kn_manifest_entry_fields, w->format_version, w->partition_type}};
    KN_BUF_AUTO buf;
    KN_BUF_AUTO file;
    kn_buf_init(&buf, HEADER_MAX);
    kn_buf_init(&file, 0);
    kn_manifest_avro_schema(&buf, &wr.form);
    KN_TRY(kn_buf_check(&buf, err));
    wr.avro = kn_avro_writer_new((KnStr){buf.data, buf.len}, KN_AVRO_CODEC_NULL);
    put_header(&wr, &buf);
    KnCode rc = kn_avro_writer_finish(wr.avro, &file, err);
    (void)kn_avro_writer_free(wr.avro);
    if (rc == KN_OK)
        *ret = (int64_t)file.len;
    return rc;
}

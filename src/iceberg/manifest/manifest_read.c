/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_read.c - a manifest's entries, one after the other, with what they inherit.
 *
 * Inheritance (spec: "Sequence Number Inheritance", "First Row ID Inheritance"; Java's
 * InheritableMetadataFactory and ManifestReader): a null snapshot id is the manifest's. A null
 * sequence number is the manifest's for ADDED entries, and for every entry of a manifest of
 * sequence number 0 (v1); elsewhere it must be explicit. A null first_row_id of a live data file is
 * the manifest's plus the rows of the live files before it that had null too; a manifest without
 * one has files without one.
 *
 * Memory of entries is taken from an arena that is replaced after ENTRY_BYTES of encoded input, so
 * a manifest of any size is read in bounded memory.
 */
#include "iceberg/manifest/manifest_internal.h"

enum { ENTRY_BYTES = 64 << 10, ARENA_FIRST = 128 << 10 };

typedef struct Reading {
    const KnManifestFile *mf;
    const KnManifestVisit *visit;
    const KnManifestPlan *plan;
    KnManifestDecoder dec;
    size_t since_renewal; /* bytes read since the arena was replaced last */
    int64_t next_row_id;  /* -1 = none to give */
    size_t index;
    bool visited; /* the failure is the callback's */
} Reading;

/* ---- what an entry inherits ---- */

static KnCode inherit_sequence(const Reading *r, KnManifestEntry *entry, KnErr *err)
{
    bool inherits = entry->status == KN_ENTRY_ADDED || r->mf->sequence_number == 0;
    if (entry->file_sequence_number < 0 && inherits)
        entry->file_sequence_number = r->mf->sequence_number;
    if (entry->sequence_number >= 0)
        return KN_OK;
    if (!inherits)
        return kn_err_set(err, KN_E_CORRUPT,
                          "field 'sequence_number' (3): null in an entry that is not ADDED");
    entry->sequence_number = r->mf->sequence_number;
    return KN_OK;
}

static KnCode inherit_row_id(Reading *r, KnManifestEntry *entry, KnErr *err)
{
    KnDataFile *file = &entry->file;
    if (file->content != KN_CONTENT_DATA || r->next_row_id < 0) {
        file->first_row_id = -1;
        return KN_OK;
    }
    if (entry->status == KN_ENTRY_DELETED || file->first_row_id >= 0)
        return KN_OK;
    file->first_row_id = r->next_row_id;
    if (__builtin_add_overflow(r->next_row_id, file->record_count, &r->next_row_id))
        return kn_err_set(err, KN_E_CORRUPT, "field 'record_count' (103): row ids beyond 64 bits");
    return KN_OK;
}

static KnCode check_content(const Reading *r, const KnDataFile *file, KnErr *err)
{
    int32_t content = (int32_t)file->content;
    if (content < KN_CONTENT_DATA || content > KN_CONTENT_EQUALITY_DELETES)
        return kn_err_set(err, KN_E_CORRUPT, "field 'content' (134): unknown value %d", content);
    if (r->mf->deletes != (content != KN_CONTENT_DATA))
        return kn_err_set(err, KN_E_CORRUPT,
                          "field 'content' (134): %d in a manifest that the list calls %s", content,
                          r->mf->deletes ? "deletes" : "data");
    return KN_OK;
}

static KnCode finish_entry(Reading *r, KnManifestEntry *entry, KnErr *err)
{
    entry->file.spec_id = r->mf->spec_id;
    if (entry->snapshot_id == INT64_MIN)
        entry->snapshot_id = r->mf->added_snapshot_id;
    KN_TRY(check_content(r, &entry->file, err));
    KN_TRY(inherit_sequence(r, entry, err));
    return inherit_row_id(r, entry, err);
}

/* ---- entries ---- */

static KnCode check_status(const KnManifestEntry *entry, KnErr *err)
{
    int32_t status = (int32_t)entry->status;
    if (status >= KN_ENTRY_EXISTING && status <= KN_ENTRY_DELETED)
        return KN_OK;
    return kn_err_set(err, KN_E_CORRUPT, "field 'status' (0): unknown value %d", status);
}

/* *ret_wanted false = a DELETED entry that nobody asked for: its fields behind status are skipped.
 */
static KnCode decode_entry(Reading *r, KnManifestEntry *entry, bool *ret_wanted, KnErr *err)
{
    const KnManifestPlan *plan = r->plan;
    bool wanted = true;
    for (size_t i = 0; i < plan->n; ++i) {
        const KnManifestOp *op = &plan->ops[i];
        if (!wanted) {
            KN_TRY(kn_avro_skip(&r->dec.cur, op->type, err));
            continue;
        }
        KN_TRY(kn_manifest_decode_op(&r->dec, op, entry, err));
        if (op->field && op->field->id == KN_MANIFEST_STATUS) {
            KN_TRY(check_status(entry, err));
            wanted = entry->status != KN_ENTRY_DELETED || r->visit->opts.with_deleted;
        }
    }
    *ret_wanted = wanted;
    return KN_OK;
}

static void renew_arena(Reading *r)
{
    if (r->dec.arena && r->since_renewal < ENTRY_BYTES)
        return;
    (void)kn_arena_free(r->dec.arena);
    r->dec.arena = kn_arena_new(ARENA_FIRST);
    r->since_renewal = 0;
}

static KnCode read_entry(Reading *r, KnErr *err)
{
    renew_arena(r);
    KnManifestEntry entry = kn_manifest_entry_empty();
    const uint8_t *start = r->dec.cur.pos;
    bool wanted;
    KN_TRY(decode_entry(r, &entry, &wanted, err));
    r->since_renewal += (size_t)(r->dec.cur.pos - start);
    if (!wanted)
        return KN_OK;
    KN_TRY(finish_entry(r, &entry, err));
    r->visited = true;
    KN_TRY(r->visit->fn(r->visit->arg, &entry, err));
    r->visited = false;
    return KN_OK;
}

static KnCode read_blocks(Reading *r, KnAvroReader *reader, KnErr *err)
{
    for (;;) {
        int64_t count;
        KN_TRY(kn_avro_reader_next_block(reader, &r->dec.cur, &count, err));
        if (count == 0)
            return KN_OK;
        for (; count > 0; --count, ++r->index) {
            KnCode code = read_entry(r, err);
            if (code != KN_OK)
                return r->visited ? code : kn_err_wrap(err, code, "entry %zu", r->index);
        }
        KN_TRY(kn_avro_cursor_finish(&r->dec.cur, err));
    }
}

/* ---- the file ---- */

static KnCode check_header(const KnAvroReader *reader, const KnManifestFile *mf, KnErr *err)
{
    KnStr content = kn_avro_reader_meta(reader, "content");
    KnStr want = mf->deletes ? KN_STR_LIT("deletes") : KN_STR_LIT("data");
    if (content.ptr && !kn_str_eq(content, want))
        return kn_err_set(err, KN_E_CORRUPT,
                          "header key 'content' is '" KN_STR_FMT "', but the list says " KN_STR_FMT,
                          KN_STR_ARG(content), KN_STR_ARG(want));
    return KN_OK;
}

static KnCode read_manifest(const KnMetadata *md, const KnManifestFile *mf, KnAvroReader *reader,
                            Reading *r, KnErr *err)
{
    const KnPartitionSpec *spec = kn_metadata_find_spec(md, mf->spec_id);
    if (!spec)
        return kn_err_set(err, KN_E_CORRUPT, "partition spec %d is not in the table's metadata",
                          mf->spec_id);
    KN_TRY(check_header(reader, mf, err));
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnManifestPlanOptions opts = {r->visit->opts.with_metrics, md, spec};
    KnManifestPlan *plan;
    KN_TRY(kn_manifest_plan_make(arena, &kn_manifest_entry_fields, kn_avro_reader_type(reader),
                                 &opts, &plan, err));
    r->plan = plan;
    return read_blocks(r, reader, err);
}

KnCode kn_manifest_read(KnFileIO *io, const KnMetadata *md, const KnManifestFile *mf,
                        const KnManifestVisit *visit, KnErr *err)
{
    if (mf->key_metadata.len)
        return kn_err_set(err, KN_E_UNSUPPORTED, "manifest %s: encrypted", mf->path);
    KnManifestBytes bytes;
    KnCode code = kn_manifest_bytes_open(io, mf->path, mf->length, &bytes, err);
    if (code != KN_OK)
        return kn_err_wrap(err, code, "manifest");
    code = kn_manifest_read_bytes(&bytes, md, mf, visit, err);
    kn_manifest_bytes_close(&bytes);
    return code;
}

KnCode kn_manifest_read_bytes(const KnManifestBytes *bytes, const KnMetadata *md,
                              const KnManifestFile *mf, const KnManifestVisit *visit, KnErr *err)
{
    Reading r = {
        .mf = mf,
        .visit = visit,
        .next_row_id = mf->deletes ? -1 : mf->first_row_id,
    };
    KnCode code = read_manifest(md, mf, bytes->reader, &r, err);
    if (code != KN_OK && !r.visited)
        code = kn_err_wrap(err, code, "manifest %s", mf->path);
    (void)kn_arena_free(r.dec.arena);
    return code;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_list_read.c - the manifests of a snapshot, from its manifest list or from the list of
 * paths that a v1 snapshot may hold instead.
 *
 * Bytes of a list are views into a block that is used again, so they are copied into the caller's
 * arena line by line. For an embedded list the spec id is taken from each manifest's own header,
 * where Java assumes 0.
 */
#include "base/vec.h"
#include "iceberg/manifest/manifest_internal.h"

enum { MANIFESTS_MAX = 1000000 };

typedef KN_VEC(KnManifestFile) Files;

static KnStr keep(KnArena *arena, KnStr bytes)
{
    if (bytes.ptr)
        bytes.ptr = kn_arena_strndup(arena, bytes.ptr, bytes.len);
    return bytes;
}

static void keep_bytes(KnArena *arena, KnManifestFile *mf)
{
    mf->key_metadata = keep(arena, mf->key_metadata);
    KnFieldSummary *summaries = (KnFieldSummary *)(uintptr_t)mf->partitions;
    for (size_t i = 0; i < mf->n_partitions; ++i) {
        summaries[i].lower = keep(arena, summaries[i].lower);
        summaries[i].upper = keep(arena, summaries[i].upper);
    }
}

static KnCode read_blocks(KnAvroReader *reader, const KnManifestPlan *plan, KnArena *arena,
                          Files *files, KnErr *err)
{
    for (;;) {
        KnManifestDecoder dec = {.arena = arena};
        int64_t count;
        KN_TRY(kn_avro_reader_next_block(reader, &dec.cur, &count, err));
        if (count == 0)
            return KN_OK;
        for (; count > 0; --count) {
            KnManifestFile mf = kn_manifest_file_empty();
            KnCode code = kn_manifest_decode(&dec, plan, &mf, err);
            if (code != KN_OK)
                return kn_err_wrap(err, code, "entry %zu", files->len);
            if (files->len == MANIFESTS_MAX)
                return kn_err_set(err, KN_E_CORRUPT, "more than %d manifests", MANIFESTS_MAX);
            keep_bytes(arena, &mf);
            *kn_vec_push(files) = mf;
        }
        KN_TRY(kn_avro_cursor_finish(&dec.cur, err));
    }
}

static KnCode read_list(KnFileIO *io, KnArena *arena, const KnSnapshot *snap, Files *files,
                        KnErr *err)
{
    if (snap->key_id)
        return kn_err_set(err, KN_E_UNSUPPORTED, "manifest list %s: encrypted",
                          snap->manifest_list);
    KnManifestBytes bytes;
    KnCode code = kn_manifest_bytes_open(io, snap->manifest_list, -1, &bytes, err);
    if (code != KN_OK)
        return kn_err_wrap(err, code, "manifest list of snapshot %lld",
                           (long long)snap->snapshot_id);
    KnArena *plan_arena = kn_arena_new(0);
    KnManifestPlan *plan;
    KnManifestPlanOptions opts = {.with_metrics = true};
    code = kn_manifest_plan_make(plan_arena, &kn_manifest_file_fields,
                                 kn_avro_reader_type(bytes.reader), &opts, &plan, err);
    if (code == KN_OK)
        code = read_blocks(bytes.reader, plan, arena, files, err);
    (void)kn_arena_free(plan_arena);
    kn_manifest_bytes_close(&bytes);
    return kn_err_wrap(err, code, "manifest list %s", snap->manifest_list);
}

static KnCode read_embedded(KnFileIO *io, KnArena *arena, const KnSnapshot *snap, Files *files,
                            KnErr *err)
{
    for (size_t i = 0; i < snap->n_manifests; ++i) {
        KnManifestBytes bytes;
        KnCode code = kn_manifest_bytes_open(io, snap->manifests[i], -1, &bytes, err);
        if (code != KN_OK)
            return kn_err_wrap(err, code, "manifest");
        KnManifestFile *mf = kn_vec_push(files);
        *mf = kn_manifest_file_empty();
        mf->path = kn_arena_strdup(arena, snap->manifests[i]);
        mf->length = (int64_t)bytes.buf.len;
        mf->added_snapshot_id = snap->snapshot_id;
        KnStr text = kn_avro_reader_meta(bytes.reader, "partition-spec-id");
        int64_t spec_id = 0;
        bool valid =
            !text.ptr || (kn_str_to_i64(text, &spec_id) && spec_id >= 0 && spec_id <= INT32_MAX);
        mf->spec_id = (int32_t)spec_id;
        kn_manifest_bytes_close(&bytes);
        if (!valid)
            return kn_err_set(err, KN_E_CORRUPT,
                              "manifest %s: header key 'partition-spec-id' is no number", mf->path);
    }
    return KN_OK;
}

KnCode kn_manifest_list_read(KnFileIO *io, KnArena *arena, const KnSnapshot *snap,
                             KnManifestFile **ret, size_t *ret_n, KnErr *err)
{
    Files files = {0};
    KnCode code = snap->manifest_list ? read_list(io, arena, snap, &files, err)
                                      : read_embedded(io, arena, snap, &files, err);
    if (code == KN_OK) {
        KnManifestFile *list = kn_arena_try_array(arena, files.len, sizeof(*list));
        if (list) {
            if (files.len)
                memcpy(list, files.items, files.len * sizeof(*list));
            *ret = list;
            *ret_n = files.len;
        } else {
            code = kn_err_set(err, KN_E_NOMEM, "out of memory for %zu manifests", files.len);
        }
    }
    kn_vec_done(&files);
    return code;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chunk_plan_text.c - a plan as JSON text, and back with every rule checked again.
 *
 * The text is what the journal keeps and what the labels' digest covers, so its form is fixed:
 * members in one order, no spaces, ranges as arrays [file, first row, rows, live rows]. What is
 * read back comes from a file that anybody may have edited: nothing in it is believed.
 */
#include <inttypes.h>

#include "base/hash.h"
#include "base/json.h"
#include "cdc/chunk_plan.h"

#define DIGEST_SEED UINT64_C(0x6b6e75742d706c6e)
#define MAX_BUCKETS 4096

static const char *const KINDS[] = {"empty", "direct", "computed"};

static void format_head(KnBuf *buf, const KnChunkPlan *plan)
{
    kn_buf_printf(buf, "{\"version\":%" PRId32 ",\"kind\":\"%s\",\"from\":%" PRId64, plan->version,
                  KINDS[plan->kind], plan->from);
    kn_buf_printf(buf, ",\"to\":%" PRId64 ",\"operation\":", plan->to);
    kn_json_quote(buf, kn_str(plan->operation));
    kn_buf_printf(buf, ",\"schema-id\":%" PRId32 ",\"mode\":\"%s\",\"keys\":[", plan->schema_id,
                  kn_sink_mode_name(plan->mode));
    for (size_t i = 0; i < plan->n_keys; ++i) {
        kn_buf_text(buf, i ? "," : "");
        kn_json_quote(buf, kn_str(plan->keys[i]));
    }
    kn_buf_printf(buf, "],\"buckets\":%" PRIu32 ",\"hash\":", plan->n_buckets);
    kn_json_quote(buf, kn_str(plan->hash_version));
    kn_buf_printf(buf, ",\"upserts\":%" PRId64 ",\"deletes\":%" PRId64 ",\"bytes\":%" PRId64,
                  plan->upserts, plan->deletes, plan->read_bytes);
}

static void format_chunk(KnBuf *buf, const KnChunkPlan *plan, const KnChunk *chunk)
{
    kn_buf_printf(buf, "{\"op\":\"%s\",\"rows\":%" PRId64, kn_chunk_op_name(chunk->op),
                  chunk->rows);
    if (plan->kind == KN_WINDOW_COMPUTED) {
        kn_buf_printf(buf, ",\"bucket\":%" PRIu32 "}", chunk->bucket);
        return;
    }
    kn_buf_text(buf, ",\"ranges\":[");
    for (size_t i = 0; i < chunk->n_ranges; ++i) {
        const KnChunkRange *range = &chunk->ranges[i];
        kn_buf_printf(buf, "%s[%zu,%" PRId64 ",%" PRId64 ",%" PRId64 "]", i ? "," : "", range->file,
                      range->first_row, range->n_rows, range->live_rows);
    }
    kn_buf_text(buf, "]}");
}

void kn_chunk_plan_format(KnBuf *buf, const KnChunkPlan *plan)
{
    format_head(buf, plan);
    kn_buf_text(buf, ",\"files\":[");
    for (size_t i = 0; i < plan->n_files; ++i) {
        kn_buf_text(buf, i ? ",[" : "[");
        kn_json_quote(buf, kn_str(plan->files[i].path));
        kn_buf_printf(buf, ",%" PRId64 "]", plan->files[i].rows);
    }
    kn_buf_text(buf, "],\"chunks\":[");
    for (size_t i = 0; i < plan->n_chunks; ++i) {
        kn_buf_text(buf, i ? "," : "");
        format_chunk(buf, plan, &plan->chunks[i]);
    }
    kn_buf_text(buf, "]}");
}

uint64_t kn_chunk_plan_digest(KnStr text)
{
    return kn_hash64(text.ptr, text.len, DIGEST_SEED);
}

/* ---- reading ---- */

#define BAD(err, ...) kn_err_set((err), KN_E_CORRUPT, __VA_ARGS__)

static KnCode parse_kind(const char *text, KnWindowKind *ret, KnErr *err)
{
    for (size_t i = 0; i < sizeof(KINDS) / sizeof(KINDS[0]); ++i) {
        if (strcmp(text, KINDS[i]) == 0) {
            *ret = (KnWindowKind)i;
            return KN_OK;
        }
    }
    return BAD(err, "kind '%.40s' is not known", text);
}

static KnCode parse_version(const json_t *doc, KnChunkPlan *plan, KnErr *err)
{
    KN_TRY(kn_json_get_i32(doc, "version", &plan->version, err));
    if (plan->version > KN_CHUNK_PLAN_VERSION)
        return kn_err_set(err, KN_E_UNSUPPORTED,
                          "version %" PRId32 " is newer than this program's %d: "
                          "finish the window with the newer program",
                          plan->version, KN_CHUNK_PLAN_VERSION);
    if (plan->version < 1)
        return BAD(err, "version %" PRId32, plan->version);
    return KN_OK;
}

static KnCode parse_keys(KnArena *arena, const json_t *doc, KnChunkPlan *plan, KnErr *err)
{
    json_t *keys;
    KN_TRY(kn_json_get_array(doc, "keys", &keys, err));
    plan->n_keys = json_array_size(keys);
    plan->keys = kn_arena_try_array(arena, plan->n_keys + 1, sizeof(*plan->keys));
    if (!plan->keys)
        return kn_err_set(err, KN_E_NOMEM, "too many keys");
    for (size_t i = 0; i < plan->n_keys; ++i) {
        const char *key = json_string_value(json_array_get(keys, i));
        if (!key)
            return BAD(err, "key %zu is not a text", i);
        plan->keys[i] = kn_arena_strdup(arena, key);
    }
    return KN_OK;
}

static KnCode parse_head(KnArena *arena, const json_t *doc, KnChunkPlan *plan, KnErr *err)
{
    const char *text;
    int64_t buckets;
    KN_TRY(parse_version(doc, plan, err));
    KN_TRY(kn_json_get_str(doc, "kind", &text, err));
    KN_TRY(parse_kind(text, &plan->kind, err));
    KN_TRY(kn_json_get_i64(doc, "from", &plan->from, err));
    KN_TRY(kn_json_get_i64(doc, "to", &plan->to, err));
    KN_TRY(kn_json_get_str(doc, "operation", &text, err));
    plan->operation = kn_arena_strdup(arena, text);
    KN_TRY(kn_json_get_i32(doc, "schema-id", &plan->schema_id, err));
    KN_TRY(kn_json_get_str(doc, "mode", &text, err));
    if (kn_sink_mode_parse(kn_str(text), &plan->mode, NULL) != KN_OK)
        return BAD(err, "mode '%.40s' is not known", text);
    KN_TRY(parse_keys(arena, doc, plan, err));
    KN_TRY(kn_json_get_i64(doc, "buckets", &buckets, err));
    if (buckets < 0 || buckets > MAX_BUCKETS)
        return BAD(err, "%" PRId64 " buckets", buckets);
    plan->n_buckets = (uint32_t)buckets;
    KN_TRY(kn_json_get_str(doc, "hash", &text, err));
    plan->hash_version = kn_arena_strdup(arena, text);
    KN_TRY(kn_json_get_i64(doc, "upserts", &plan->upserts, err));
    KN_TRY(kn_json_get_i64(doc, "deletes", &plan->deletes, err));
    KN_TRY(kn_json_get_i64(doc, "bytes", &plan->read_bytes, err));
    if (plan->from < -1 || plan->to < 0)
        return BAD(err, "snapshots %" PRId64 " to %" PRId64, plan->from, plan->to);
    return KN_OK;
}

static KnCode parse_files(KnArena *arena, const json_t *doc, KnChunkPlan *plan, KnErr *err)
{
    json_t *files;
    KN_TRY(kn_json_get_array(doc, "files", &files, err));
    plan->n_files = json_array_size(files);
    plan->files = kn_arena_try_array(arena, plan->n_files + 1, sizeof(*plan->files));
    if (!plan->files)
        return kn_err_set(err, KN_E_NOMEM, "too many files");
    for (size_t i = 0; i < plan->n_files; ++i) {
        const json_t *row = json_array_get(files, i);
        const char *path = json_string_value(json_array_get(row, 0));
        const json_t *rows = json_array_get(row, 1);
        if (!path || !json_is_integer(rows) || json_integer_value(rows) < 0)
            return BAD(err, "file %zu: expected [path, rows]", i);
        plan->files[i].path = kn_arena_strdup(arena, path);
        plan->files[i].rows = json_integer_value(rows);
    }
    return KN_OK;
}

/* Where the ranges of a DIRECT plan have come to: each file is covered from row 0 without gaps,
 * except for pieces whose rows are all deleted (their chunks are not kept). */
typedef struct Place {
    size_t file;
    int64_t row;
} Place;

static KnCode read_range(const json_t *json, const KnChunkPlan *plan, Place *at, KnChunkRange *ret,
                         KnErr *err)
{
    int64_t v[4];
    for (size_t i = 0; i < 4; ++i) {
        const json_t *item = json_array_get(json, i);
        if (!json_is_integer(item) || json_integer_value(item) < 0)
            return BAD(err, "a range is not four whole numbers");
        v[i] = json_integer_value(item);
    }
    int64_t end;
    if ((uint64_t)v[0] >= plan->n_files || v[2] == 0 || v[3] > v[2] ||
        __builtin_add_overflow(v[1], v[2], &end) || end > plan->files[v[0]].rows)
        return BAD(err,
                   "range [%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "] is outside its file",
                   v[0], v[1], v[2], v[3]);
    if ((size_t)v[0] < at->file || ((size_t)v[0] == at->file && v[1] < at->row))
        return BAD(err, "range [%" PRId64 ",%" PRId64 "] overlaps the one before", v[0], v[1]);
    *at = (Place){.file = (size_t)v[0], .row = end};
    *ret =
        (KnChunkRange){.file = (size_t)v[0], .first_row = v[1], .n_rows = v[2], .live_rows = v[3]};
    return KN_OK;
}

static KnCode parse_ranges(KnArena *arena, const json_t *json, const KnChunkPlan *plan, Place *at,
                           KnChunk *chunk, KnErr *err)
{
    json_t *ranges;
    int64_t live = 0;
    KN_TRY(kn_json_get_array(json, "ranges", &ranges, err));
    chunk->n_ranges = json_array_size(ranges);
    chunk->ranges = kn_arena_try_array(arena, chunk->n_ranges + 1, sizeof(*chunk->ranges));
    if (!chunk->ranges)
        return kn_err_set(err, KN_E_NOMEM, "too many ranges");
    for (size_t i = 0; i < chunk->n_ranges; ++i) {
        KN_TRY(read_range(json_array_get(ranges, i), plan, at, &chunk->ranges[i], err));
        if (__builtin_add_overflow(live, chunk->ranges[i].live_rows, &live))
            return BAD(err, "row counts overflow");
    }
    if (live != chunk->rows)
        return BAD(err, "chunk %" PRId64 " has %" PRId64 " rows, its ranges %" PRId64,
                   chunk->number, chunk->rows, live);
    return KN_OK;
}

static KnCode parse_bucket(const json_t *json, const KnChunkPlan *plan, const KnChunk *before,
                           KnChunk *chunk, KnErr *err)
{
    int64_t bucket;
    KN_TRY(kn_json_get_i64(json, "bucket", &bucket, err));
    if (bucket < 0 || bucket >= plan->n_buckets ||
        (before && before->op == chunk->op && bucket <= before->bucket))
        return BAD(err, "bucket %" PRId64 " of chunk %" PRId64, bucket, chunk->number);
    chunk->bucket = (uint32_t)bucket;
    return KN_OK;
}

static KnCode parse_chunk(KnArena *arena, const json_t *json, KnChunkPlan *plan, size_t number,
                          Place *at, KnErr *err)
{
    KnChunk *chunk = &plan->chunks[number];
    const KnChunk *before = number > 0 ? chunk - 1 : NULL;
    const char *op;
    chunk->number = (int64_t)number;
    KN_TRY(kn_json_get_str(json, "op", &op, err));
    KN_TRY(kn_json_get_i64(json, "rows", &chunk->rows, err));
    chunk->op = strcmp(op, "insert") == 0 ? KN_CHUNK_INSERT : KN_CHUNK_DELETE;
    if (chunk->op == KN_CHUNK_DELETE && strcmp(op, "delete") != 0)
        return BAD(err, "operation '%.40s' of chunk %zu is not known", op, number);
    if (chunk->rows < 1 || (before && before->op > chunk->op))
        return BAD(err, "chunk %zu: %" PRId64 " rows to %s, out of order", number, chunk->rows, op);
    if (plan->kind == KN_WINDOW_COMPUTED)
        return parse_bucket(json, plan, before, chunk, err);
    if (plan->kind == KN_WINDOW_EMPTY || chunk->op != KN_CHUNK_INSERT)
        return BAD(err, "chunk %zu does not belong into a window of kind %s", number,
                   KINDS[plan->kind]);
    return parse_ranges(arena, json, plan, at, chunk, err);
}

static KnCode parse_chunks(KnArena *arena, const json_t *doc, KnChunkPlan *plan, KnErr *err)
{
    json_t *chunks;
    int64_t totals[2] = {0, 0};
    Place at = {0};
    KN_TRY(kn_json_get_array(doc, "chunks", &chunks, err));
    plan->n_chunks = json_array_size(chunks);
    plan->chunks = kn_arena_try_array(arena, plan->n_chunks + 1, sizeof(*plan->chunks));
    if (!plan->chunks)
        return kn_err_set(err, KN_E_NOMEM, "too many chunks");
    for (size_t i = 0; i < plan->n_chunks; ++i) {
        KN_TRY(parse_chunk(arena, json_array_get(chunks, i), plan, i, &at, err));
        int64_t *total = &totals[plan->chunks[i].op];
        if (__builtin_add_overflow(*total, plan->chunks[i].rows, total))
            return BAD(err, "row counts overflow");
    }
    if (totals[KN_CHUNK_INSERT] != plan->upserts || totals[KN_CHUNK_DELETE] != plan->deletes)
        return BAD(err,
                   "chunks have %" PRId64 " inserts and %" PRId64 " deletes, the window %" PRId64
                   " and %" PRId64,
                   totals[KN_CHUNK_INSERT], totals[KN_CHUNK_DELETE], plan->upserts, plan->deletes);
    return KN_OK;
}

static KnCode parse_plan(KnArena *arena, KnStr text, KnChunkPlan *plan, KnErr *err)
{
    KN_JSON_AUTO doc = NULL;
    KN_TRY(kn_json_parse(text.ptr, text.len, &doc, err));
    KN_TRY(parse_head(arena, doc, plan, err));
    KN_TRY(parse_files(arena, doc, plan, err));
    return parse_chunks(arena, doc, plan, err);
}

KnCode kn_chunk_plan_parse(KnArena *arena, KnStr text, KnChunkPlan **ret, KnErr *err)
{
    KnChunkPlan *plan = kn_arena_zalloc(arena, sizeof(*plan));
    KnCode rc = parse_plan(arena, text, plan, err);
    if (rc != KN_OK)
        return kn_err_wrap(err, rc, "recorded plan");
    *ret = plan;
    return KN_OK;
}

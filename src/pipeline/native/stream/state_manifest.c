/* SPDX-License-Identifier: Apache-2.0 */
/* state_manifest.c - manifests of checkpoints: a JSON document, and a last line with its hash. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "pipeline/native/stream/state_internal.h"

enum { FORMAT = 1, MAX_MANIFEST = 64 << 20 };
#define HASH_LINE "xxh64 "

KnCode kn_state_manifest_write(const KnStreamState *state, const json_t *doc, int64_t epoch,
                               KnErr *err)
{
    char hex[17];
    KN_BUF_AUTO text = {.max = MAX_MANIFEST};
    kn_json_dump(&text, doc);
    kn_buf_char(&text, '\n');
    KN_TRY(kn_buf_check(&text, err));
    kn_buf_printf(&text, HASH_LINE "%s\n", kn_hex64(kn_hash64(text.data, text.len, 0), hex));
    KN_TRY(kn_buf_check(&text, err));
    return kn_io_write(state->io, kn_str(kn_state_manifest_path(state, epoch)), text.data, text.len,
                       KN_IO_REPLACE, err);
}

static KnCode torn(const KnStreamState *state, int64_t epoch, const char *why, KnErr *err)
{
    return kn_err_set(err, KN_E_CORRUPT, "checkpoint %s: %s", kn_state_manifest_path(state, epoch),
                      why);
}

KnCode kn_state_manifest_read(const KnStreamState *state, int64_t epoch, json_t **ret, KnErr *err)
{
    char hex[17];
    KN_JSON_AUTO doc = NULL;
    KN_BUF_AUTO text = {.max = MAX_MANIFEST};
    int64_t format = 0, number = -1;
    const char *file = kn_state_manifest_path(state, epoch);
    KN_TRY(kn_io_read_all(state->io, kn_str(file), MAX_MANIFEST, &text, err));
    const char *line = text.len ? memrchr(text.data, '\n', text.len - 1) : NULL;
    size_t body = line ? (size_t)(line - text.data) + 1 : 0;
    if (!line || text.len - body != strlen(HASH_LINE) + 17 ||
        strncmp(line + 1, HASH_LINE, strlen(HASH_LINE)) != 0)
        return torn(state, epoch, "it is cut off", err);
    (void)kn_hex64(kn_hash64(text.data, body, 0), hex);
    if (strncmp(line + 1 + strlen(HASH_LINE), hex, 16) != 0)
        return torn(state, epoch, "its hash is not that of its text", err);
    KN_TRY(kn_json_parse(text.data, body, &doc, err));
    KN_TRY(kn_json_get_i64(doc, "format", &format, err));
    KN_TRY(kn_json_get_i64(doc, "epoch", &number, err));
    if (format != FORMAT)
        return kn_err_set(err, KN_E_UNSUPPORTED, "checkpoint %s: format %" PRId64 " is not known",
                          file, format);
    if (number != epoch)
        return torn(state, epoch, "it is the checkpoint of another epoch", err);
    *ret = json_incref(doc);
    return KN_OK;
}

static json_t *part_json(const KnStreamPart *part)
{
    char hex[17];
    return json_pack("{s:s,s:I,s:I,s:I,s:s}", "file", part->file, "rows", (json_int_t)part->rows,
                     "bytes", (json_int_t)part->bytes, "until", (json_int_t)part->until, "xxh64",
                     kn_hex64(part->hash, hex));
}

static json_t *table_json(const KnStreamTable *table)
{
    json_t *columns = json_array(), *parts = json_array();
    for (size_t i = 0; i < table->shape.len; i++)
        (void)json_array_append_new(
            columns, json_pack("[s,s]", table->shape.items[i].name, table->shape.items[i].type));
    kn_vec_foreach (&table->parts, part) {
        (void)json_array_append_new(parts, part_json(part));
    }
    return json_pack("{s:s,s:o,s:o}", "name", table->name, "columns", columns, "parts", parts);
}

json_t *kn_state_manifest_of(const KnStreamPoint *point, const json_t *plan,
                             KnStreamTable *const *tables, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        (void)json_array_append_new(list, table_json(tables[i]));
    return json_pack("{s:i,s:s,s:I,s:I,s:O?,s:I,s:O?,s:I,s:I,s:I,s:O,s:o}", "format", FORMAT,
                     "stream", point->mark.stream, "epoch", (json_int_t)point->mark.epoch,
                     "sink_epoch", (json_int_t)point->sink_epoch, "offsets", point->offsets,
                     "watermark", (json_int_t)point->watermark, "inputs", point->inputs, "rows",
                     (json_int_t)point->rows, "late", (json_int_t)point->late, "timeless",
                     (json_int_t)point->timeless, "plan", plan, "tables", list);
}

KnCode kn_state_manifest_point(const json_t *doc, KnStreamPoint *ret, KnErr *err)
{
    KnStreamPoint point = {0};
    const char *stream = NULL;
    KN_TRY(kn_json_get_str(doc, "stream", &stream, err));
    KN_TRY(kn_json_get_i64(doc, "epoch", &point.mark.epoch, err));
    KN_TRY(kn_json_get_i64(doc, "sink_epoch", &point.sink_epoch, err));
    KN_TRY(kn_json_get_i64(doc, "watermark", &point.watermark, err));
    KN_TRY(kn_json_get_i64(doc, "rows", &point.rows, err));
    KN_TRY(kn_json_get_i64(doc, "late", &point.late, err));
    KN_TRY(kn_json_get_i64(doc, "timeless", &point.timeless, err));
    (void)snprintf(point.mark.stream, sizeof(point.mark.stream), "%s", stream);
    json_t *offsets = json_object_get(doc, "offsets"), *inputs = json_object_get(doc, "inputs");
    point.offsets = json_is_null(offsets) ? NULL : json_incref(offsets);
    point.inputs = json_is_null(inputs) ? NULL : json_incref(inputs);
    *ret = point;
    return KN_OK;
}

static KnCode part_of(KnArena *arena, const json_t *doc, KnStreamPart *ret, KnErr *err)
{
    const char *file = NULL, *hash = NULL;
    char *end = NULL;
    KN_TRY(kn_json_get_str(doc, "file", &file, err));
    KN_TRY(kn_json_get_i64(doc, "rows", &ret->rows, err));
    KN_TRY(kn_json_get_i64(doc, "bytes", &ret->bytes, err));
    KN_TRY(kn_json_get_i64(doc, "until", &ret->until, err));
    KN_TRY(kn_json_get_str(doc, "xxh64", &hash, err));
    if (strchr(file, '/') || ret->bytes < 0)
        return kn_err_set(err, KN_E_CORRUPT, "a checkpoint names no part by '%.100s'", file);
    ret->file = kn_arena_strdup(arena, file);
    ret->hash = strtoull(hash, &end, 16);
    return *end ? kn_err_set(err, KN_E_CORRUPT, "part %s: '%.40s' is no hash", file, hash) : KN_OK;
}

KnCode kn_state_manifest_parts(KnArena *arena, const json_t *table, KnStreamTable *ret, KnErr *err)
{
    json_t *parts = NULL, *part;
    size_t i;
    KN_TRY(kn_json_get_array(table, "parts", &parts, err));
    json_array_foreach(parts, i, part) KN_TRY(part_of(arena, part, kn_vec_push(&ret->parts), err));
    return KN_OK;
}

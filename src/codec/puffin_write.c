/* SPDX-License-Identifier: Apache-2.0 */
/*
 * puffin_write.c - Puffin files: magic, blobs, and a footer of JSON that says what they are
 * (puffin-spec, "File structure"). Blobs and footer are uncompressed.
 *
 * The file is put together in one buffer, since storage writes whole objects: callers begin a new
 * file when one has grown large. The metadata of a deletion vector is what Java's BaseDVFileWriter
 * writes, field id of _pos and inherited numbers included.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "codec/puffin.h"

enum { CRC_BYTES = 4, FIELD_ID_POS_COLUMN = 2147483645 };
static const uint8_t file_magic[] = {'P', 'F', 'A', '1'};
static const uint8_t vector_magic[] = {0xD1, 0xD3, 0x39, 0x64};

struct KnPuffinWriter {
    KnBuf file;
    json_t *blobs;
};

KnPuffinWriter *kn_puffin_writer_new(size_t max)
{
    KnPuffinWriter *w = calloc(1, sizeof(*w));
    if (!w)
        abort();
    kn_buf_init(&w->file, max);
    kn_buf_append(&w->file, file_magic, sizeof(file_magic));
    w->blobs = json_array();
    return w;
}

KnPuffinWriter *kn_puffin_writer_free(KnPuffinWriter *w)
{
    if (!w)
        return NULL;
    kn_buf_done(&w->file);
    json_decref(w->blobs);
    free(w);
    return NULL;
}

size_t kn_puffin_writer_size(const KnPuffinWriter *w)
{
    return w->file.len;
}

static void note_blob(KnPuffinWriter *w, const KnPuffinBlob *blob, const KnPuffinPlace *place)
{
    json_t *fields = json_array();
    for (size_t i = 0; i < blob->n_fields; i++)
        json_array_append_new(fields, json_integer(blob->fields[i]));
    json_t *obj = json_object();
    json_object_set_new(obj, "type", json_string(blob->type));
    json_object_set_new(obj, "fields", fields);
    json_object_set_new(obj, "snapshot-id", json_integer(blob->snapshot_id));
    json_object_set_new(obj, "sequence-number", json_integer(blob->sequence_number));
    json_object_set_new(obj, "offset", json_integer(place->offset));
    json_object_set_new(obj, "length", json_integer(place->length));
    if (blob->properties)
        json_object_set(obj, "properties", blob->properties);
    json_array_append_new(w->blobs, obj);
}

KnCode kn_puffin_writer_add(KnPuffinWriter *w, const KnPuffinBlob *blob, KnStr bytes,
                            KnPuffinPlace *ret, KnErr *err)
{
    KnPuffinPlace place = {.offset = (int64_t)w->file.len, .length = (int64_t)bytes.len};
    kn_buf_str(&w->file, bytes);
    KN_TRY(kn_buf_check(&w->file, err));
    note_blob(w, blob, &place);
    *ret = place;
    return KN_OK;
}

/* ---- deletion vectors ---- */

static void set_be32(char *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (char)(uint8_t)(value >> (24 - 8 * i));
}

static void note_vector(KnPuffinWriter *w, const char *path, const KnPuffinPlace *place)
{
    static const int32_t fields[] = {FIELD_ID_POS_COLUMN};
    char count[24];
    int len = snprintf(count, sizeof(count), "%" PRIu64, place->cardinality);
    KN_JSON_AUTO properties = json_object();
    json_object_set_new(properties, "referenced-data-file", json_string(path));
    json_object_set_new(properties, "cardinality", json_stringn(count, (size_t)len));
    KnPuffinBlob blob = {
        .type = "deletion-vector-v1",
        .fields = fields,
        .n_fields = 1,
        .snapshot_id = -1,
        .sequence_number = -1,
        .properties = properties,
    };
    note_blob(w, &blob, place);
}

KnCode kn_puffin_writer_add_vector(KnPuffinWriter *w, const char *path, const uint64_t *words,
                                   size_t n_words, KnPuffinPlace *ret, KnErr *err)
{
    static const char zeros[4];
    KnBuf *file = &w->file;
    size_t start = file->len;
    kn_buf_append(file, zeros, sizeof(zeros));
    size_t inner_at = file->len;
    kn_buf_append(file, vector_magic, sizeof(vector_magic));
    KnPuffinPlace place = {.offset = (int64_t)start,
                           .cardinality = kn_roaring64_encode(file, words, n_words)};
    size_t inner = file->len - inner_at;
    kn_buf_append(file, zeros, CRC_BYTES);
    if (!kn_str_is_utf8(kn_str(path)))
        return kn_err_set(err, KN_E_CORRUPT, "the name of data file '%.300s' is not UTF-8", path);
    if (inner > INT32_MAX)
        return kn_err_set(err, KN_E_UNSUPPORTED, "a deletion vector of %zu bytes cannot be written",
                          inner);
    KN_TRY(kn_buf_check(file, err));
    set_be32(file->data + start, (uint32_t)inner);
    uint32_t crc = (uint32_t)crc32(0, (const uint8_t *)file->data + inner_at, (uInt)inner);
    set_be32(file->data + inner_at + inner, crc);
    place.length = (int64_t)(file->len - start);
    note_vector(w, path, &place);
    *ret = place;
    return KN_OK;
}

/* ---- footer ---- */

KnCode kn_puffin_writer_finish(KnPuffinWriter *w, const char *created_by, KnStr *ret, KnErr *err)
{
    KnBuf *file = &w->file;
    kn_buf_append(file, file_magic, sizeof(file_magic));
    size_t payload_at = file->len;
    KN_JSON_AUTO payload = json_object();
    json_object_set(payload, "blobs", w->blobs);
    json_t *properties = json_object();
    json_object_set_new(properties, "created-by", json_string(created_by));
    json_object_set_new(payload, "properties", properties);
    kn_json_dump(file, payload);
    uint32_t size = (uint32_t)(file->len - payload_at);
    /* Size, little-endian, and the flags: all zero, the payload is not compressed. */
    uint8_t end[8] = {(uint8_t)size, (uint8_t)(size >> 8), (uint8_t)(size >> 16),
                      (uint8_t)(size >> 24)};
    kn_buf_append(file, end, sizeof(end));
    kn_buf_append(file, file_magic, sizeof(file_magic));
    KN_TRY(kn_buf_check(file, err));
    *ret = (KnStr){file->data, file->len};
    return KN_OK;
}

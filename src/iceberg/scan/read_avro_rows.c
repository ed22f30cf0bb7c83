/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read_avro_rows.c - datums to rows (Avro 1.11: "Binary Encoding"; spec appendix A: "Avro").
 *
 * Depth is that of the shape's tree. What a datum costs is bounded by the builder; elements of
 * lists that take no bytes are counted besides, as a few bytes could ask for any number of them.
 */
#include <string.h>

#include "iceberg/scan/read_avro.h"

enum { INT128_SIZE = 16 };

static KnCode put_number(KnAvroRows *rows, const KnAvroNode *node, KnColWriter *w, KnErr *err)
{
    int64_t value;
    if (node->type->kind == KN_AVRO_INT) {
        int32_t narrow;
        KN_TRY(kn_avro_read_int(&rows->cur, &narrow, err));
        value = narrow;
    } else {
        KN_TRY(kn_avro_read_long(&rows->cur, &value, err));
    }
    return kn_col_put_int(w, (__int128)value * node->factor, err);
}

static KnCode read_raw(KnAvroRows *rows, const KnAvroType *type, KnStr *ret, KnErr *err)
{
    if (type->kind == KN_AVRO_FIXED)
        return kn_avro_read_fixed(&rows->cur, (size_t)type->fixed_size, ret, err);
    return kn_avro_read_bytes(&rows->cur, ret, err);
}

/* Two's complement, big endian; longer ones may only repeat the sign. */
static KnCode put_decimal(KnAvroRows *rows, const KnAvroNode *node, KnColWriter *w, KnErr *err)
{
    KnStr raw;
    KN_TRY(read_raw(rows, node->type, &raw, err));
    const uint8_t *p = (const uint8_t *)raw.ptr;
    size_t len = raw.len;
    if (len == 0)
        return kn_err_set(err, KN_E_CORRUPT, "a decimal of no bytes");
    uint8_t sign = p[0] & 0x80 ? 0xff : 0;
    for (; len > INT128_SIZE; p++, len--)
        if (*p != sign)
            return kn_err_set(err, KN_E_CORRUPT, "a decimal of more than 38 digits");
    if ((p[0] & 0x80) != (sign & 0x80))
        return kn_err_set(err, KN_E_CORRUPT, "a decimal of more than 38 digits");
    unsigned __int128 value = sign ? ~(unsigned __int128)0 : 0;
    for (; len > 0; p++, len--)
        value = value << 8 | *p;
    return kn_col_put_int(w, (__int128)value, err);
}

static KnCode put_bytes(KnAvroRows *rows, const KnAvroNode *node, KnColWriter *w, KnErr *err)
{
    KnStr raw;
    KN_TRY(read_raw(rows, node->type, &raw, err));
    if (node->put == KN_AVRO_PUT_UUID)
        return kn_col_put_uuid(w, (const uint8_t *)raw.ptr, err);
    return kn_col_put_str(w, raw, err);
}

static KnCode put_struct(KnAvroRows *rows, const KnAvroNode *node, KnColWriter *w, KnErr *err)
{
    KN_TRY(kn_col_put_struct(w, err));
    for (size_t i = 0; i < node->n_children; i++)
        KN_TRY(kn_read_avro_put(rows, &node->children[i], kn_col_child(w, i), err));
    return KN_OK;
}

/* ---- lists and maps ---- */

static KnCode put_key(KnAvroRows *rows, const KnAvroNode *node, KnColWriter *w, KnErr *err)
{
    const KnAvroType *branch = node->type;
    if (node->given->kind == KN_AVRO_UNION) {
        KnAvroCursor ahead = rows->cur;
        KN_TRY(kn_avro_read_branch(&ahead, node->given, &branch, err));
    }
    if (branch->kind == KN_AVRO_NULL)
        return kn_err_set(err, KN_E_CORRUPT, "a map with a null key");
    return kn_read_avro_put(rows, node, w, err);
}

static KnCode put_element(KnAvroRows *rows, const KnAvroNode *node, KnColWriter *w, KnErr *err)
{
    if (node->put == KN_AVRO_PUT_LIST)
        return kn_read_avro_put(rows, &node->children[0], w, err);
    KN_TRY(kn_col_put_struct(w, err));
    KN_TRY(put_key(rows, &node->children[0], kn_col_child(w, 0), err));
    return kn_read_avro_put(rows, &node->children[1], kn_col_child(w, 1), err);
}

static KnCode put_items(KnAvroRows *rows, const KnAvroNode *node, KnColWriter *w, KnErr *err)
{
    bool zero = node->type->kind == KN_AVRO_ARRAY && node->type->fields[0].type->zero_size;
    KN_TRY(kn_col_begin_list(w, err));
    for (;;) {
        int64_t count = 0;
        KN_TRY(kn_avro_read_block_count(&rows->cur, &count, err));
        if (count == 0)
            break;
        if (zero && (rows->zero_left -= count) < 0)
            return kn_err_set(err, KN_E_CORRUPT,
                              "more than %d elements of lists that take no bytes",
                              KN_AVRO_ZERO_MAX);
        for (; count > 0; count--)
            KN_TRY(put_element(rows, node, kn_col_child(w, 0), err));
    }
    kn_col_end_list(w);
    return KN_OK;
}

/* ---- any ---- */

static KnCode put_value(KnAvroRows *rows, const KnAvroNode *node, KnColWriter *w, KnErr *err)
{
    bool flag;
    float single;
    double number;
    switch (node->put) {
    case KN_AVRO_PUT_NULL:
        return kn_col_put_null(w, err);
    case KN_AVRO_PUT_BOOLEAN:
        KN_TRY(kn_avro_read_boolean(&rows->cur, &flag, err));
        return kn_col_put_int(w, flag, err);
    case KN_AVRO_PUT_INT:
        return put_number(rows, node, w, err);
    case KN_AVRO_PUT_FLOAT:
        KN_TRY(kn_avro_read_float(&rows->cur, &single, err));
        return kn_col_put_float(w, single, err);
    case KN_AVRO_PUT_DOUBLE:
        KN_TRY(kn_avro_read_double(&rows->cur, &number, err));
        return kn_col_put_double(w, number, err);
    case KN_AVRO_PUT_BYTES:
    case KN_AVRO_PUT_UUID:
        return put_bytes(rows, node, w, err);
    case KN_AVRO_PUT_DECIMAL:
        return put_decimal(rows, node, w, err);
    case KN_AVRO_PUT_STRUCT:
        return put_struct(rows, node, w, err);
    default:
        return put_items(rows, node, w, err);
    }
}

KnCode kn_read_avro_put(KnAvroRows *rows, const KnAvroNode *node, KnColWriter *w, KnErr *err)
{
    const KnAvroType *branch = NULL;
    KN_TRY(kn_avro_read_branch(&rows->cur, node->given, &branch, err));
    KnCode rc =
        branch->kind == KN_AVRO_NULL ? kn_col_put_null(w, err) : put_value(rows, node, w, err);
    /* Nested fields say it once: the innermost is the one that fails. */
    if (rc != KN_OK && node->n_children == 0)
        return kn_err_wrap(err, rc, "field '%.60s'", node->name);
    return rc;
}

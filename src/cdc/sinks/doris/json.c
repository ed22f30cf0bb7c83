/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.c - rows as JSON, one object a line.
 *
 * Each column has its key written out once ("," and "name":) and a function for its values
 * (json_value.c). A row is written straight into a buffer that has room for all that has a fixed
 * size; texts ask for more. Full buffers go to the body. What Doris would cut, round or read
 * otherwise is refused here, by column: a load is then not begun.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/str.h"
#include "json_internal.h"

enum { PIECE = 128 << 10 };

typedef struct Column {
    char *key; /* `,"name":` */
    size_t key_len;
    KnDorisPutFn put;
    const KnDorisField *field;
    int32_t limit; /* bytes of a text; -1 = none */
    bool not_null;
    bool text;    /* also bytes: it has a length */
    size_t index; /* in the batch */
} Column;

struct KnDorisJson {
    KnDorisOut out;
    size_t n;
    Column *columns;
    char *tail; /* what ends each row: the sequence, '}' and the line's end */
    size_t tail_len;
    size_t row_room;
    KnDorisBody *body;
};

/* ---- rows ---- */

static void init_column(Column *col, const KnDorisPlan *plan, size_t index)
{
    const KnDorisField *field = &plan->fields[index];
    KnColKind kind = kn_type_column_kind(field->source->type->kind);
    const KnDorisType *type = &field->target->type;
    bool sized = type->kind == KN_DORIS_CHAR || type->kind == KN_DORIS_VARCHAR;
    KnBuf key;
    char raw[32];
    kn_buf_init(&key, (size_t)1 << 20);
    (void)snprintf(raw, sizeof(raw), "__knut_b%zu", index);
    kn_buf_char(&key, ',');
    kn_json_quote(&key, kn_str(field->base64 ? raw : field->target->name));
    kn_buf_char(&key, ':');
    *col = (Column){.put = kn_doris_put_of(kind),
                    .field = field,
                    .limit = sized ? type->length : -1,
                    .not_null = field->target->not_null,
                    .text = kind == KN_COL_VARCHAR || kind == KN_COL_BLOB,
                    .index = index};
    if (kind == KN_COL_TIME && type->kind == KN_DORIS_BIGINT)
        col->put = kn_doris_put_of(KN_COL_INT64);
    col->key = kn_buf_steal(&key, &col->key_len);
}

KnDorisJson *kn_doris_json_new(const KnDorisPlan *plan, bool deletes, KnDorisBody *body)
{
    KnDorisJson *enc = calloc(1, sizeof(*enc));
    KnBuf tail;
    if (!enc || !(enc->columns = calloc(plan->n + 1, sizeof(*enc->columns))) ||
        !(enc->out.start = malloc(PIECE)))
        abort();
    enc->body = body;
    enc->out.cap = PIECE;
    enc->out.p = enc->out.start;
    enc->out.end = enc->out.start + PIECE;
    enc->out.day = INT32_MIN;
    for (size_t i = 0; i < plan->n; ++i) {
        if (deletes && !plan->in_delete[i])
            continue;
        Column *col = &enc->columns[enc->n++];
        init_column(col, plan, i);
        enc->row_room += col->key_len + KN_DORIS_FIXED_MAX;
    }
    kn_buf_init(&tail, 256);
    if (plan->sequence[0])
        kn_buf_printf(&tail, ",\"" KN_DORIS_SEQUENCE_COLUMN "\":%s", plan->sequence);
    kn_buf_text(&tail, "}\n");
    enc->tail = kn_buf_steal(&tail, &enc->tail_len);
    enc->row_room += enc->tail_len;
    return enc;
}

KnDorisJson *kn_doris_json_free(KnDorisJson *enc)
{
    if (!enc)
        return NULL;
    for (size_t i = 0; i < enc->n; ++i)
        free(enc->columns[i].key);
    free(enc->columns);
    free(enc->out.start);
    free(enc->tail);
    free(enc);
    return NULL;
}

static KnCode too_long(const Column *col, size_t len, KnErr *err)
{
    return kn_err_set(
        err, KN_E_REFUSED,
        "column %s: a text of %zu bytes, the target has %s: widen it (ALTER TABLE ... "
        "MODIFY COLUMN)",
        col->field->target->name, len, col->field->target->type_text);
}

static KnCode put_value(KnDorisOut *out, const Column *col, const KnVector *vec, size_t row,
                        KnErr *err)
{
    if (kn_vector_is_null(vec, row)) {
        if (col->not_null)
            return kn_err_set(err, KN_E_REFUSED, "column %s: NULL, the target has NOT NULL",
                              col->field->target->name);
        kn_doris_put_bytes(out, "null", 4);
        return KN_OK;
    }
    if (col->limit >= 0 && col->text && kn_vector_str(vec, row).len > (size_t)col->limit)
        return too_long(col, kn_vector_str(vec, row).len, err);
    return col->put(out, vec, row, err);
}

static KnCode flush(KnDorisJson *enc, KnErr *err)
{
    KnDorisOut *out = &enc->out;
    size_t len = (size_t)(out->p - out->start);
    if (len)
        KN_TRY(kn_doris_body_append(enc->body, out->start, len, err));
    out->p = out->start;
    return KN_OK;
}

static KnCode put_row(KnDorisJson *enc, const KnVector *vecs, size_t row, KnErr *err)
{
    KnDorisOut *out = &enc->out;
    kn_doris_need(out, enc->row_room);
    for (size_t i = 0; i < enc->n; ++i) {
        const Column *col = &enc->columns[i];
        char *at = out->p;
        kn_doris_put_bytes(out, col->key, col->key_len);
        if (i == 0)
            out->start[at - out->start] = '{';
        out->column = col->field->source->name;
        KN_TRY(put_value(out, col, &vecs[i], row, err));
    }
    kn_doris_put_bytes(out, enc->tail, enc->tail_len);
    return KN_OK;
}

KnCode kn_doris_json_rows(KnDorisJson *enc, const KnBatch *batch, KnErr *err)
{
    KnVector *vecs = calloc(enc->n + 1, sizeof(*vecs));
    KnCode rc = KN_OK;
    if (!vecs)
        abort();
    for (size_t i = 0; i < enc->n; ++i)
        vecs[i] = kn_batch_vector(batch, enc->columns[i].index);
    for (size_t row = 0; rc == KN_OK && row < kn_batch_rows(batch); ++row) {
        rc = put_row(enc, vecs, row, err);
        if (rc == KN_OK && enc->out.p - enc->out.start >= PIECE - 16384)
            rc = flush(enc, err);
    }
    free(vecs);
    return rc;
}

KnCode kn_doris_json_end(KnDorisJson *enc, KnErr *err)
{
    return flush(enc, err);
}

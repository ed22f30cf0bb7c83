/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrow.c - rows as one Arrow IPC stream, and which targets may be loaded so.
 *
 * Doris checks neither the types nor the values of Arrow columns: a wrong one is garbage, or ends
 * a backend. So a target is let through only when each of its columns is of a kind that is known to
 * arrive as sent; everything else is refused by name, with the way out. The rules, from Doris's
 * arrow_stream_reader.cpp, data_types/serde and NereidsDataDescription.java:
 *
 *   names        are lowered by the frontend before mid-2026, and compared
 *   columns      that are no column of the table (sequence) cannot be planned
 *   DATETIME     is shown at +08:00 whatever `timezone` says; below 1970 it is garbage. What a
 *                cluster does is said by `arrow-zone`: there is no default, for a wrong one shifts
 *                every value by hours without a word
 *   DECIMAL      up to 38 digits, of the target's scale
 */
#include <stdlib.h>
#include <string.h>

#include "arrow_internal.h"

enum { BATCH_ROWS = 32768, BATCH_BYTES = 4 << 20 };

struct KnDorisArrow {
    KnArena *arena;
    size_t n;
    KnArrowColumn *columns;
    KnDorisBody *body;
    bool begun;
};

/* ---- the gate ---- */

static bool is_lower(const char *name)
{
    for (; *name; ++name)
        if ((unsigned char)*name >= 0x80 || (*name >= 'A' && *name <= 'Z'))
            return false;
    return true;
}

/* Depth is that of kn_doris_type_parse(). NOLINTNEXTLINE(misc-no-recursion) */
static const char *type_mismatch(const KnType *from, const KnDorisType *to, int64_t zone)
{
    if (from->kind == KN_TYPE_UNKNOWN)
        return "a column without a type";
    if (to->kind == KN_DORIS_DATETIME && zone < 0)
        return "Doris shows Arrow's timestamps in a zone of its own: `knut cdc selftest` tells "
               "which; then say arrow-zone=8 or arrow-zone=0";
    if (to->kind == KN_DORIS_DECIMAL && to->precision > 38)
        return "more than 38 digits";
    for (size_t i = 0; i < from->n_fields; ++i) {
        if (to->kind == KN_DORIS_STRUCT && !is_lower(to->names[i]))
            return "a field's name with capitals";
        const char *why = type_mismatch(from->fields[i].type, &to->children[i], zone);
        if (why)
            return why;
    }
    return NULL;
}

const char *kn_doris_arrow_mismatch(const KnDorisField *field, const KnDorisSettings *set)
{
    if (!is_lower(field->target->name))
        return "a name with capitals or letters beyond ASCII, which Doris lowers";
    return type_mismatch(field->source->type, &field->target->type, set->arrow_zone);
}

/* ---- rows ---- */

KnDorisArrow *kn_doris_arrow_new(const KnDorisPlan *plan, bool deletes, KnDorisBody *body)
{
    KnDorisArrow *enc = calloc(1, sizeof(*enc));
    if (!enc)
        abort();
    enc->arena = kn_arena_new(4096);
    enc->columns = kn_arena_zalloc(enc->arena, (plan->n + 1) * sizeof(*enc->columns));
    enc->body = body;
    for (size_t i = 0; i < plan->n; ++i) {
        const KnDorisField *field = &plan->fields[i];
        if (deletes && !plan->in_delete[i])
            continue;
        KnArrowColumn *col = &enc->columns[enc->n++];
        col->name = field->target->name;
        col->path = field->source->name;
        col->target_text = field->target->type_text;
        col->not_null = field->target->not_null;
        col->index = i;
        kn_arrow_column_init(enc->arena, col, field->source->type, &field->target->type,
                             -plan->arrow_shift_us);
        kn_arrow_column_clear(col);
    }
    return enc;
}

KnDorisArrow *kn_doris_arrow_free(KnDorisArrow *enc)
{
    if (!enc)
        return NULL;
    for (size_t i = 0; i < enc->n; ++i)
        kn_arrow_column_done(&enc->columns[i]);
    (void)kn_arena_free(enc->arena);
    free(enc);
    return NULL;
}

static KnCode flush(KnDorisArrow *enc, KnErr *err)
{
    if (!enc->begun)
        KN_TRY(kn_arrow_write_schema(enc->body, enc->columns, enc->n, err));
    enc->begun = true;
    if (enc->n && enc->columns[0].rows)
        KN_TRY(kn_arrow_write_batch(enc->body, enc->columns, enc->n, err));
    for (size_t i = 0; i < enc->n; ++i)
        kn_arrow_column_clear(&enc->columns[i]);
    return KN_OK;
}

static bool is_full(const KnDorisArrow *enc)
{
    size_t bytes = 0;
    for (size_t i = 0; i < enc->n; ++i)
        bytes += kn_arrow_column_bytes(&enc->columns[i]);
    return bytes >= BATCH_BYTES || (enc->n && enc->columns[0].rows >= BATCH_ROWS);
}

static KnCode put_rows(KnDorisArrow *enc, const KnBatch *batch, size_t first, size_t count,
                       KnErr *err)
{
    for (size_t i = 0; i < enc->n; ++i) {
        KnVector vec = kn_batch_vector(batch, enc->columns[i].index);
        KN_TRY(kn_arrow_column_put(&enc->columns[i], &vec, first, count, err));
    }
    return is_full(enc) ? flush(enc, err) : KN_OK;
}

/* Large rows go a few at a time: a batch of Arrow is in memory as a whole. */
KnCode kn_doris_arrow_rows(KnDorisArrow *enc, const KnBatch *batch, KnErr *err)
{
    size_t rows = kn_batch_rows(batch), step = rows;
    uint64_t bytes = kn_batch_bytes(batch);
    if (bytes > BATCH_BYTES && rows)
        step = (size_t)(rows / (bytes / BATCH_BYTES + 1)) + 1;
    for (size_t at = 0; at < rows; at += step)
        KN_TRY(put_rows(enc, batch, at, rows - at < step ? rows - at : step, err));
    return KN_OK;
}

KnCode kn_doris_arrow_end(KnDorisArrow *enc, KnErr *err)
{
    KN_TRY(flush(enc, err));
    return kn_arrow_write_end(enc->body, err);
}

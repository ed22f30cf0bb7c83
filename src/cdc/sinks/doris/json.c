/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.c - rows as JSON, one object a line.
 *
 * Each column has its key written out once ("," and "name":) and a function for its values. A row
 * is written straight into a buffer that has room for all that has a fixed size; texts ask for
 * more. Full buffers go to the body. What Doris would cut, round or read otherwise is refused here,
 * by column: a load is then not begun.
 *
 *   integers, booleans, floats   as they are; floats in the fewest digits that read back the same
 *   decimals                     in quotes: old readers take numbers for doubles
 *   dates, times, timestamps     text without a zone; timestamptz as UTC
 *   bytes                        base64, see plan.c
 *   lists, structs, maps         arrays and objects; a map's keys are texts
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "doris_internal.h"
#include "net/digest.h"

enum {
    FIXED_MAX = 64, /* bytes that a value of fixed size takes at most, with quotes */
    PIECE = 128 << 10,
};

typedef struct Out {
    char *p, *end; /* of the room that is left */
    char *start;
    size_t cap;
    int32_t day; /* of the date that `day_text` is */
    char day_text[10];
    const char *column; /* for messages */
} Out;

typedef KnCode (*PutFn)(Out *out, const KnVector *vec, size_t row, KnErr *err);

typedef struct Column {
    char *key; /* `,"name":` */
    size_t key_len;
    PutFn put;
    const KnDorisField *field;
    int32_t limit; /* bytes of a text; -1 = none */
    bool not_null;
    size_t index; /* in the batch */
} Column;

struct KnDorisJson {
    Out out;
    size_t n;
    Column *columns;
    char *tail; /* what ends each row: the sequence, '}' and the line's end */
    size_t tail_len;
    size_t row_room;
    KnDorisBody *body;
};

/* ---- room ---- */

static void need(Out *out, size_t n)
{
    if ((size_t)(out->end - out->p) >= n)
        return;
    size_t used = (size_t)(out->p - out->start);
    size_t cap = out->cap * 2;
    while (cap - used < n)
        cap *= 2;
    out->start = realloc(out->start, cap);
    if (!out->start)
        abort();
    out->cap = cap;
    out->p = out->start + used;
    out->end = out->start + cap;
}

static void put_bytes(Out *out, const char *bytes, size_t len)
{
    need(out, len);
    memcpy(out->p, bytes, len);
    out->p += len;
}

/* ---- numbers ---- */

static const char PAIRS[] =
    "00010203040506070809101112131415161718192021222324252627282930313233343"
    "5363738394041424344454647484950515253545556575859606162636465666768697"
    "07172737475767778798081828384858687888990919293949596979899";

/* Digits of v before `end`; the first one's place. */
static char *digits_before(char *end, uint64_t v)
{
    while (v >= 100) {
        end -= 2;
        memcpy(end, PAIRS + v % 100 * 2, 2);
        v /= 100;
    }
    if (v < 10)
        *--end = (char)('0' + v);
    else
        memcpy(end -= 2, PAIRS + v * 2, 2);
    return end;
}

static void put_u64(Out *out, uint64_t v)
{
    char text[20], *first = digits_before(text + 20, v);
    size_t n = (size_t)(text + 20 - first);
    memcpy(out->p, first, n);
    out->p += n;
}

static void put_i64(Out *out, int64_t v)
{
    if (v < 0)
        *out->p++ = '-';
    put_u64(out, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

static void put_two(char *at, unsigned v)
{
    memcpy(at, PAIRS + v * 2, 2);
}

#define INT_PUT(name, type)                                                                        \
    static KnCode name(Out *out, const KnVector *vec, size_t row, KnErr *err)                      \
    {                                                                                              \
        (void)err;                                                                                 \
        need(out, FIXED_MAX);                                                                      \
        put_i64(out, ((const type *)vec->data)[row]);                                              \
        return KN_OK;                                                                              \
    }
INT_PUT(put_int32, int32_t)
INT_PUT(put_int64, int64_t)

static KnCode put_bool(Out *out, const KnVector *vec, size_t row, KnErr *err)
{
    (void)err;
    bool v = ((const uint8_t *)vec->data)[row];
    put_bytes(out, v ? "true" : "false", v ? 4 : 5);
    return KN_OK;
}

static KnCode not_finite(const Out *out, KnErr *err)
{
    return kn_err_set(err, KN_E_REFUSED,
                      "column %s: NaN or infinity, for which JSON has no number: deliver the rows "
                      "without it",
                      out->column);
}

/* v as an integer m of at most 2^53 over a power of ten: then m / 10^d is v exactly as a reader of
 * the decimal text computes it, and fewer digits would be another number. */
static bool put_short(Out *out, double v, bool single)
{
    static const double TENS[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                  1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    double most = single ? 16777216.0 : 9007199254740992.0;
    for (unsigned d = 0; d < 16; ++d) {
        double m = nearbyint(v * TENS[d]);
        if (fabs(m) > most)
            return false;
        if (single ? (double)(float)(m / TENS[d]) != v : m / TENS[d] != v)
            continue;
        uint64_t digits = (uint64_t)fabs(m);
        uint64_t ten = (uint64_t)TENS[d];
        if (signbit(v))
            *out->p++ = '-';
        put_u64(out, digits / ten);
        if (d == 0) {
            memcpy(out->p, ".0", 2);
            out->p += 2;
            return true;
        }
        *out->p++ = '.';
        char text[20], *first = digits_before(text + 20, digits % ten + ten);
        memcpy(out->p, first + 1, d); /* the 1 in front keeps leading zeros */
        out->p += d;
        return true;
    }
    return false;
}

static KnCode put_double(Out *out, const KnVector *vec, size_t row, KnErr *err)
{
    double v = ((const double *)vec->data)[row];
    if (!isfinite(v))
        return not_finite(out, err);
    need(out, FIXED_MAX);
    if (put_short(out, v, false))
        return KN_OK;
    int n = 0;
    for (int digits = 15; digits <= 17; ++digits) {
        n = snprintf(out->p, FIXED_MAX, "%.*g", digits, v);
        if (strtod(out->p, NULL) == v)
            break;
    }
    out->p += n;
    return KN_OK;
}

static KnCode put_float(Out *out, const KnVector *vec, size_t row, KnErr *err)
{
    float v = ((const float *)vec->data)[row];
    if (!isfinite(v))
        return not_finite(out, err);
    need(out, FIXED_MAX);
    if (put_short(out, v, true))
        return KN_OK;
    int n = 0;
    for (int digits = 6; digits <= 9; ++digits) {
        n = snprintf(out->p, FIXED_MAX, "%.*g", digits, (double)v);
        if (strtof(out->p, NULL) == v)
            break;
    }
    out->p += n;
    return KN_OK;
}

static KnCode put_decimal(Out *out, const KnVector *vec, size_t row, KnErr *err)
{
    (void)err;
    __int128 v = kn_vector_int128(vec, row);
    unsigned __int128 rest = v < 0 ? -(unsigned __int128)v : (unsigned __int128)v;
    char text[48], *first = text + sizeof(text);
    unsigned scale = vec->type->scale, n = 0;
    need(out, FIXED_MAX);
    do {
        if (scale && n == scale)
            *--first = '.';
        *--first = (char)('0' + (int)(rest % 10));
        rest /= 10;
        ++n;
    } while (rest || n <= scale);
    *out->p++ = '"';
    if (v < 0)
        *out->p++ = '-';
    size_t len = (size_t)(text + sizeof(text) - first);
    memcpy(out->p, first, len);
    out->p += len;
    *out->p++ = '"';
    return KN_OK;
}

/* ---- dates and times ---- */

/* Days since 1970 as YYYY-MM-DD (Howard Hinnant's civil_from_days); the last one is kept. */
static KnCode day_text(Out *out, int32_t days, KnErr *err)
{
    if (days == out->day)
        return KN_OK;
    if (days < -719528 || days > 2932896)
        return kn_err_set(err, KN_E_REFUSED, "column %s: a date outside of the years 0 to 9999",
                          out->column);
    int32_t z = days + 719468, era = (z >= 0 ? z : z - 146096) / 146097;
    uint32_t doe = (uint32_t)(z - era * 146097);
    uint32_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    uint32_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;
    uint32_t month = mp < 10 ? mp + 3 : mp - 9;
    uint32_t year = (uint32_t)((int32_t)yoe + era * 400 + (month <= 2));
    put_two(out->day_text, year / 100);
    put_two(out->day_text + 2, year % 100);
    out->day_text[4] = out->day_text[7] = '-';
    put_two(out->day_text + 5, month);
    put_two(out->day_text + 8, doy - (153 * mp + 2) / 5 + 1);
    out->day = days;
    return KN_OK;
}

static KnCode put_date(Out *out, const KnVector *vec, size_t row, KnErr *err)
{
    KN_TRY(day_text(out, ((const int32_t *)vec->data)[row], err));
    need(out, FIXED_MAX);
    *out->p++ = '"';
    memcpy(out->p, out->day_text, 10);
    out->p += 10;
    *out->p++ = '"';
    return KN_OK;
}

/* HH:MM:SS.ffffff */
static void put_clock(Out *out, int64_t micros)
{
    unsigned seconds = (unsigned)(micros / 1000000), part = (unsigned)(micros % 1000000);
    char *p = out->p;
    put_two(p, seconds / 3600);
    p[2] = p[5] = ':';
    put_two(p + 3, seconds / 60 % 60);
    put_two(p + 6, seconds % 60);
    p[8] = '.';
    put_two(p + 9, part / 10000);
    put_two(p + 11, part / 100 % 100);
    put_two(p + 13, part % 100);
    out->p += 15;
}

static KnCode put_time(Out *out, const KnVector *vec, size_t row, KnErr *err)
{
    (void)err;
    need(out, FIXED_MAX);
    *out->p++ = '"';
    put_clock(out, ((const int64_t *)vec->data)[row]);
    *out->p++ = '"';
    return KN_OK;
}

static KnCode put_timestamp(Out *out, const KnVector *vec, size_t row, KnErr *err)
{
    static const int64_t DAY = INT64_C(86400000000);
    int64_t v = ((const int64_t *)vec->data)[row];
    int64_t days = v / DAY - (v % DAY < 0);
    if (days < INT32_MIN || days > INT32_MAX)
        return kn_err_set(err, KN_E_REFUSED, "column %s: a time outside of the years 0 to 9999",
                          out->column);
    KN_TRY(day_text(out, (int32_t)days, err));
    need(out, FIXED_MAX);
    *out->p++ = '"';
    memcpy(out->p, out->day_text, 10);
    out->p[10] = ' ';
    out->p += 11;
    put_clock(out, v - days * DAY);
    *out->p++ = '"';
    return KN_OK;
}

/* ---- texts ---- */

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c != '"' && c != '\\' && c != 0x7f;
}

/* Eight bytes at a time: none is a control character, a quote or a backslash. */
static bool all_plain(const char *at)
{
    uint64_t w;
    memcpy(&w, at, 8);
    const uint64_t ones = UINT64_C(0x0101010101010101), high = ones << 7;
    uint64_t quote = w ^ (ones * '"'), slash = w ^ (ones * '\\'), del = w ^ (ones * 0x7f);
    uint64_t low = (w - ones * 0x20) & ~w;
    return !((low | ((quote - ones) & ~quote) | ((slash - ones) & ~slash) | ((del - ones) & ~del)) &
             high);
}

static void escape(Out *out, unsigned char c)
{
    static const char HEX[] = "0123456789abcdef";
    const char *found = c ? strchr("\"\"\\\\\bb\ff\nn\rr\tt", c) : NULL;
    *out->p++ = '\\';
    if (found) {
        *out->p++ = found[1];
        return;
    }
    memcpy(out->p, "u00", 3);
    out->p[3] = HEX[c >> 4];
    out->p[4] = HEX[c & 15];
    out->p += 5;
}

static void put_text(Out *out, KnStr s)
{
    need(out, s.len * 6 + 2);
    *out->p++ = '"';
    size_t i = 0;
    while (i < s.len) {
        if (s.len - i >= 8 && all_plain(s.ptr + i)) {
            memcpy(out->p, s.ptr + i, 8);
            out->p += 8;
            i += 8;
            continue;
        }
        unsigned char c = (unsigned char)s.ptr[i++];
        if (is_plain(c))
            *out->p++ = (char)c;
        else
            escape(out, c);
    }
    *out->p++ = '"';
}

static KnCode put_varchar(Out *out, const KnVector *vec, size_t row, KnErr *err)
{
    (void)err;
    put_text(out, kn_vector_str(vec, row));
    return KN_OK;
}

static KnCode put_uuid(Out *out, const KnVector *vec, size_t row, KnErr *err)
{
    static const char HEX[] = "0123456789abcdef";
    (void)err;
    uint8_t bytes[16];
    kn_vector_uuid(vec, row, bytes);
    need(out, FIXED_MAX);
    *out->p++ = '"';
    for (size_t i = 0; i < 16; ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *out->p++ = '-';
        *out->p++ = HEX[bytes[i] >> 4];
        *out->p++ = HEX[bytes[i] & 15];
    }
    *out->p++ = '"';
    return KN_OK;
}

static KnCode put_blob(Out *out, const KnVector *vec, size_t row, KnErr *err)
{
    (void)err;
    KnStr s = kn_vector_str(vec, row);
    need(out, (s.len + 2) / 3 * 4 + 3);
    *out->p++ = '"';
    (void)kn_base64((const uint8_t *)s.ptr, s.len, out->p);
    out->p += (s.len + 2) / 3 * 4;
    *out->p++ = '"';
    return KN_OK;
}

/* ---- nested ---- */

static PutFn put_of(KnColKind kind);

static KnCode put_any(Out *out, const KnVector *vec, size_t row, KnErr *err)
{
    if (kn_vector_is_null(vec, row)) {
        put_bytes(out, "null", 4);
        return KN_OK;
    }
    return put_of(vec->type->kind)(out, vec, row, err);
}

static KnCode put_list(Out *out, const KnVector *vec, size_t row, KnErr *err)
{
    KnListEntry entry = ((const KnListEntry *)vec->data)[row];
    KnVector child = kn_vector_child(vec, 0);
    put_bytes(out, "[", 1);
    for (uint64_t i = 0; i < entry.length; ++i) {
        if (i)
            put_bytes(out, ",", 1);
        KN_TRY(put_any(out, &child, entry.offset + i, err));
    }
    put_bytes(out, "]", 1);
    return KN_OK;
}

static KnCode put_struct(Out *out, const KnVector *vec, size_t row, KnErr *err)
{
    put_bytes(out, "{", 1);
    for (size_t i = 0; i < vec->type->n_children; ++i) {
        KnVector child = kn_vector_child(vec, i);
        if (i)
            put_bytes(out, ",", 1);
        put_text(out, kn_str(vec->type->child_names[i]));
        put_bytes(out, ":", 1);
        KN_TRY(put_any(out, &child, row, err));
    }
    put_bytes(out, "}", 1);
    return KN_OK;
}

/* A map's key is always a text in JSON. */
static KnCode put_key(Out *out, const KnVector *keys, size_t row, KnErr *err)
{
    size_t at = (size_t)(out->p - out->start);
    KN_TRY(put_any(out, keys, row, err));
    if (out->start[at] == '"')
        return KN_OK;
    need(out, 2);
    size_t len = (size_t)(out->p - out->start) - at;
    memmove(out->start + at + 1, out->start + at, len);
    out->start[at] = '"';
    ++out->p;
    *out->p++ = '"';
    return KN_OK;
}

static KnCode put_map(Out *out, const KnVector *vec, size_t row, KnErr *err)
{
    KnListEntry entry = ((const KnListEntry *)vec->data)[row];
    KnVector pairs = kn_vector_child(vec, 0);
    KnVector keys = kn_vector_child(&pairs, 0), values = kn_vector_child(&pairs, 1);
    put_bytes(out, "{", 1);
    for (uint64_t i = 0; i < entry.length; ++i) {
        if (i)
            put_bytes(out, ",", 1);
        KN_TRY(put_key(out, &keys, entry.offset + i, err));
        put_bytes(out, ":", 1);
        KN_TRY(put_any(out, &values, entry.offset + i, err));
    }
    put_bytes(out, "}", 1);
    return KN_OK;
}

static KnCode put_nothing(Out *out, const KnVector *vec, size_t row, KnErr *err)
{
    (void)vec;
    (void)row;
    return kn_err_set(err, KN_E_UNSUPPORTED, "column %s: its type cannot be sent", out->column);
}

static PutFn put_of(KnColKind kind)
{
    static const PutFn FNS[KN_COL_OTHER + 1] = {
        [KN_COL_BOOL] = put_bool,           [KN_COL_INT32] = put_int32,
        [KN_COL_INT64] = put_int64,         [KN_COL_FLOAT] = put_float,
        [KN_COL_DOUBLE] = put_double,       [KN_COL_DECIMAL] = put_decimal,
        [KN_COL_DATE] = put_date,           [KN_COL_TIME] = put_time,
        [KN_COL_TIMESTAMP] = put_timestamp, [KN_COL_TIMESTAMPTZ] = put_timestamp,
        [KN_COL_VARCHAR] = put_varchar,     [KN_COL_BLOB] = put_blob,
        [KN_COL_UUID] = put_uuid,           [KN_COL_STRUCT] = put_struct,
        [KN_COL_LIST] = put_list,           [KN_COL_MAP] = put_map,
    };
    return FNS[kind] ? FNS[kind] : put_nothing;
}

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
    *col = (Column){.put = put_of(kind),
                    .field = field,
                    .limit = sized ? type->length : -1,
                    .not_null = field->target->not_null,
                    .index = index};
    if (kind == KN_COL_TIME && type->kind == KN_DORIS_BIGINT)
        col->put = put_int64;
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
        enc->row_room += col->key_len + FIXED_MAX;
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

static KnCode put_value(Out *out, const Column *col, const KnVector *vec, size_t row, KnErr *err)
{
    if (kn_vector_is_null(vec, row)) {
        if (col->not_null)
            return kn_err_set(err, KN_E_REFUSED, "column %s: NULL, the target has NOT NULL",
                              col->field->target->name);
        put_bytes(out, "null", 4);
        return KN_OK;
    }
    bool text = vec->type->kind == KN_COL_VARCHAR || vec->type->kind == KN_COL_BLOB;
    if (col->limit >= 0 && text && kn_vector_str(vec, row).len > (size_t)col->limit)
        return too_long(col, kn_vector_str(vec, row).len, err);
    return col->put(out, vec, row, err);
}

static KnCode flush(KnDorisJson *enc, KnErr *err)
{
    Out *out = &enc->out;
    size_t len = (size_t)(out->p - out->start);
    if (len)
        KN_TRY(kn_doris_body_append(enc->body, out->start, len, err));
    out->p = out->start;
    return KN_OK;
}

static KnCode put_row(KnDorisJson *enc, const KnVector *vecs, size_t row, KnErr *err)
{
    Out *out = &enc->out;
    need(out, enc->row_room);
    for (size_t i = 0; i < enc->n; ++i) {
        const Column *col = &enc->columns[i];
        char *at = out->p;
        put_bytes(out, col->key, col->key_len);
        if (i == 0)
            out->start[at - out->start] = '{';
        out->column = col->field->source->name;
        KN_TRY(put_value(out, col, &vecs[i], row, err));
    }
    put_bytes(out, enc->tail, enc->tail_len);
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

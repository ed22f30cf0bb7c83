/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_value.c - values as JSON, one function for each kind.
 *
 *   integers, booleans, floats   as they are; floats in the fewest digits that read back the same
 *   decimals                     in quotes: old readers take numbers for doubles
 *   dates, times, timestamps     text without a zone; timestamptz as UTC
 *   bytes                        base64, see plan.c
 *   lists, structs, maps         arrays and objects; a map's keys are texts
 */
#include <math.h>
#include <stdio.h>

#include "base/str.h"
#include "json_internal.h"
#include "net/digest.h"

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

static void put_u64(KnDorisOut *out, uint64_t v)
{
    char text[20], *first = digits_before(text + 20, v);
    size_t n = (size_t)(text + 20 - first);
    memcpy(out->p, first, n);
    out->p += n;
}

static void put_i64(KnDorisOut *out, int64_t v)
{
    if (v < 0)
        *out->p++ = '-';
    put_u64(out, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

static void put_two(char *at, unsigned v)
{
    memcpy(at, PAIRS + (size_t)v * 2, 2);
}

#define INT_PUT(name, type)                                                                        \
    static KnCode name(KnDorisOut *out, const KnVector *vec, size_t row, KnErr *err)               \
    {                                                                                              \
        (void)err;                                                                                 \
        kn_doris_need(out, KN_DORIS_FIXED_MAX);                                                    \
        put_i64(out, ((const type *)vec->data)[row]);                                              \
        return KN_OK;                                                                              \
    }
INT_PUT(put_int32, int32_t)
INT_PUT(put_int64, int64_t)

static KnCode put_bool(KnDorisOut *out, const KnVector *vec, size_t row, KnErr *err)
{
    (void)err;
    bool v = ((const uint8_t *)vec->data)[row];
    kn_doris_put_bytes(out, v ? "true" : "false", v ? 4 : 5);
    return KN_OK;
}

static KnCode not_finite(const KnDorisOut *out, KnErr *err)
{
    return kn_err_set(err, KN_E_REFUSED,
                      "column %s: NaN or infinity, for which JSON has no number: deliver the rows "
                      "without it",
                      out->column);
}

/* v as an integer m of at most 2^53 over a power of ten: then m / 10^d is v exactly as a reader of
 * the decimal text computes it, and fewer digits would be another number. */
static bool put_short(KnDorisOut *out, double v, bool single)
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

static KnCode put_double(KnDorisOut *out, const KnVector *vec, size_t row, KnErr *err)
{
    double v = ((const double *)vec->data)[row];
    if (!isfinite(v))
        return not_finite(out, err);
    kn_doris_need(out, KN_DORIS_FIXED_MAX);
    if (put_short(out, v, false))
        return KN_OK;
    int n = 0;
    for (int digits = 15; digits <= 17; ++digits) {
        n = snprintf(out->p, KN_DORIS_FIXED_MAX, "%.*g", digits, v);
        if (strtod(out->p, NULL) == v)
            break;
    }
    out->p += n;
    return KN_OK;
}

static KnCode put_float(KnDorisOut *out, const KnVector *vec, size_t row, KnErr *err)
{
    float v = ((const float *)vec->data)[row];
    if (!isfinite(v))
        return not_finite(out, err);
    kn_doris_need(out, KN_DORIS_FIXED_MAX);
    if (put_short(out, v, true))
        return KN_OK;
    int n = 0;
    for (int digits = 6; digits <= 9; ++digits) {
        n = snprintf(out->p, KN_DORIS_FIXED_MAX, "%.*g", digits, (double)v);
        if (strtof(out->p, NULL) == v)
            break;
    }
    out->p += n;
    return KN_OK;
}

static KnCode put_decimal(KnDorisOut *out, const KnVector *vec, size_t row, KnErr *err)
{
    (void)err;
    __int128 v = kn_vector_int128(vec, row);
    unsigned __int128 rest = v < 0 ? -(unsigned __int128)v : (unsigned __int128)v;
    char text[48], *first = text + sizeof(text);
    unsigned scale = vec->type->scale, n = 0;
    kn_doris_need(out, KN_DORIS_FIXED_MAX);
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
static KnCode day_text(KnDorisOut *out, int32_t days, KnErr *err)
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

static KnCode put_date(KnDorisOut *out, const KnVector *vec, size_t row, KnErr *err)
{
    KN_TRY(day_text(out, ((const int32_t *)vec->data)[row], err));
    kn_doris_need(out, KN_DORIS_FIXED_MAX);
    *out->p++ = '"';
    memcpy(out->p, out->day_text, 10);
    out->p += 10;
    *out->p++ = '"';
    return KN_OK;
}

/* HH:MM:SS.ffffff */
static void put_clock(KnDorisOut *out, int64_t micros)
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

static KnCode put_time(KnDorisOut *out, const KnVector *vec, size_t row, KnErr *err)
{
    (void)err;
    kn_doris_need(out, KN_DORIS_FIXED_MAX);
    *out->p++ = '"';
    put_clock(out, ((const int64_t *)vec->data)[row]);
    *out->p++ = '"';
    return KN_OK;
}

static KnCode put_timestamp(KnDorisOut *out, const KnVector *vec, size_t row, KnErr *err)
{
    static const int64_t DAY = INT64_C(86400000000);
    int64_t v = ((const int64_t *)vec->data)[row];
    int64_t days = v / DAY - (v % DAY < 0);
    if (days < INT32_MIN || days > INT32_MAX)
        return kn_err_set(err, KN_E_REFUSED, "column %s: a time outside of the years 0 to 9999",
                          out->column);
    KN_TRY(day_text(out, (int32_t)days, err));
    kn_doris_need(out, KN_DORIS_FIXED_MAX);
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

static void escape(KnDorisOut *out, unsigned char c)
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

static void put_text(KnDorisOut *out, KnStr s)
{
    kn_doris_need(out, s.len * 6 + 2);
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

static KnCode put_varchar(KnDorisOut *out, const KnVector *vec, size_t row, KnErr *err)
{
    (void)err;
    put_text(out, kn_vector_str(vec, row));
    return KN_OK;
}

static KnCode put_uuid(KnDorisOut *out, const KnVector *vec, size_t row, KnErr *err)
{
    static const char HEX[] = "0123456789abcdef";
    (void)err;
    uint8_t bytes[16];
    kn_vector_uuid(vec, row, bytes);
    kn_doris_need(out, KN_DORIS_FIXED_MAX);
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

static KnCode put_blob(KnDorisOut *out, const KnVector *vec, size_t row, KnErr *err)
{
    (void)err;
    KnStr s = kn_vector_str(vec, row);
    kn_doris_need(out, (s.len + 2) / 3 * 4 + 3);
    *out->p++ = '"';
    (void)kn_base64((const uint8_t *)s.ptr, s.len, out->p);
    out->p += (s.len + 2) / 3 * 4;
    *out->p++ = '"';
    return KN_OK;
}

/* ---- nested ---- */

static KnCode put_any(KnDorisOut *out, const KnVector *vec, size_t row, KnErr *err)
{
    if (kn_vector_is_null(vec, row)) {
        kn_doris_put_bytes(out, "null", 4);
        return KN_OK;
    }
    return kn_doris_put_of(vec->type->kind)(out, vec, row, err);
}

static KnCode put_list(KnDorisOut *out, const KnVector *vec, size_t row, KnErr *err)
{
    KnListEntry entry = ((const KnListEntry *)vec->data)[row];
    KnVector child = kn_vector_child(vec, 0);
    kn_doris_put_bytes(out, "[", 1);
    for (uint64_t i = 0; i < entry.length; ++i) {
        if (i)
            kn_doris_put_bytes(out, ",", 1);
        KN_TRY(put_any(out, &child, entry.offset + i, err));
    }
    kn_doris_put_bytes(out, "]", 1);
    return KN_OK;
}

static KnCode put_struct(KnDorisOut *out, const KnVector *vec, size_t row, KnErr *err)
{
    kn_doris_put_bytes(out, "{", 1);
    for (size_t i = 0; i < vec->type->n_children; ++i) {
        KnVector child = kn_vector_child(vec, i);
        if (i)
            kn_doris_put_bytes(out, ",", 1);
        put_text(out, kn_str(vec->type->child_names[i]));
        kn_doris_put_bytes(out, ":", 1);
        KN_TRY(put_any(out, &child, row, err));
    }
    kn_doris_put_bytes(out, "}", 1);
    return KN_OK;
}

/* A map's key is always a text in JSON. */
static KnCode put_key(KnDorisOut *out, const KnVector *keys, size_t row, KnErr *err)
{
    size_t at = (size_t)(out->p - out->start);
    KN_TRY(put_any(out, keys, row, err));
    if (out->start[at] == '"')
        return KN_OK;
    kn_doris_need(out, 2);
    size_t len = (size_t)(out->p - out->start) - at;
    memmove(out->start + at + 1, out->start + at, len);
    out->start[at] = '"';
    ++out->p;
    *out->p++ = '"';
    return KN_OK;
}

static KnCode put_map(KnDorisOut *out, const KnVector *vec, size_t row, KnErr *err)
{
    KnListEntry entry = ((const KnListEntry *)vec->data)[row];
    KnVector pairs = kn_vector_child(vec, 0);
    KnVector keys = kn_vector_child(&pairs, 0), values = kn_vector_child(&pairs, 1);
    kn_doris_put_bytes(out, "{", 1);
    for (uint64_t i = 0; i < entry.length; ++i) {
        if (i)
            kn_doris_put_bytes(out, ",", 1);
        KN_TRY(put_key(out, &keys, entry.offset + i, err));
        kn_doris_put_bytes(out, ":", 1);
        KN_TRY(put_any(out, &values, entry.offset + i, err));
    }
    kn_doris_put_bytes(out, "}", 1);
    return KN_OK;
}

static KnCode put_nothing(KnDorisOut *out, const KnVector *vec, size_t row, KnErr *err)
{
    (void)vec;
    (void)row;
    return kn_err_set(err, KN_E_UNSUPPORTED, "column %s: its type cannot be sent", out->column);
}

KnDorisPutFn kn_doris_put_of(KnColKind kind)
{
    static const KnDorisPutFn FNS[KN_COL_OTHER + 1] = {
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

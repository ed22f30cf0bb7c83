/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * value_internal.h - the calendar and number texts that values and transforms share.
 *
 * The calendar is the proleptic Gregorian one with a year 0 (ISO 8601, Java's LocalDate): days are
 * counted from 1970-01-01, every int32 day count has a date.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"
#include "iceberg/schema/value.h"

#define KN_US_PER_SECOND INT64_C(1000000)
#define KN_US_PER_HOUR   (3600 * KN_US_PER_SECOND)
#define KN_US_PER_DAY    (24 * KN_US_PER_HOUR)
#define KN_NS_PER_US     INT64_C(1000)

typedef struct KnDate {
    int64_t year;
    int month, day; /* 1.. */
} KnDate;

KnDate kn_date_from_days(int64_t days);
int64_t kn_date_to_days(KnDate date);

/** Quotient rounded down, and the remainder that belongs to it (0 <= r < b); b > 0. */
int64_t kn_floor_div(int64_t a, int64_t b);
int64_t kn_floor_mod(int64_t a, int64_t b);

bool kn_type_is_ns(KnTypeKind kind); /* timestamp_ns, timestamptz_ns */
bool kn_type_is_tz(KnTypeKind kind); /* timestamptz, timestamptz_ns */
bool kn_type_is_timestamp(KnTypeKind kind);

/** "2026-01-31", "+10000-01-01", "-0001-12-31" as Java's ISO formatter. */
void kn_date_format(KnBuf *buf, int64_t days);
/** "22:31:08" and a fraction of 6 (microseconds) or 9 digits; trimmed = no zeros at its end. */
typedef struct KnTimeFormat {
    int digits;
    bool trimmed;
} KnTimeFormat;
void kn_time_format(KnBuf *buf, int64_t of_day, KnTimeFormat fmt);
/** Date, sep, time, and "+00:00" for zoned kinds. */
void kn_timestamp_format(KnBuf *buf, KnTypeKind kind, int64_t value, char sep, bool trimmed);
void kn_decimal_format(KnBuf *buf, __int128 unscaled, int32_t scale);
void kn_uuid_format(KnBuf *buf, KnStr bytes);
/** Shortest text that reads back the same; single = as a float. */
void kn_double_format(KnBuf *buf, double value, bool single);
void kn_hex_format(KnBuf *buf, KnStr bytes, bool upper);

bool kn_date_parse(KnStr text, int64_t *ret_days);
bool kn_time_parse(KnStr text, int64_t *ret_us);
/** zoned: an offset or Z may be there (none = UTC); else there must be none. */
bool kn_timestamp_parse(KnTypeKind kind, KnStr text, int64_t *ret);
/** Plain or exponent form, to exactly scale digits; false when digits would be lost or p is
 * exceeded. */
bool kn_decimal_parse(KnStr text, int32_t precision, int32_t scale, __int128 *ret);
bool kn_uuid_parse(KnStr text, uint8_t out[16]);
bool kn_hex_parse(KnStr text, uint8_t *out); /* out: text.len / 2 bytes */

/** True when |unscaled| has at most precision digits. */
bool kn_decimal_fits(__int128 unscaled, int32_t precision);
/** Big-endian two's complement with no needless byte; returns the length, bytes at the end of out.
 */
size_t kn_decimal_to_bytes(__int128 unscaled, uint8_t out[16]);

/** The initial default of a field, or the write default, as SQL of its type; CAST(NULL AS t) where
 * there is none. KN_E_CORRUPT: it is no value of the type, or none of a required field.
 * (default_sql.c) */
KN_NODISCARD KnCode kn_default_sql(KnArena *arena, const KnField *field, bool write, KnBuf *buf,
                                   KnErr *err);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.c - the two clocks, and ISO 8601 text.
 *
 * Dates are computed with the civil-day algorithm (proleptic Gregorian, as Iceberg's), not with
 * libc's time zones: all is UTC. Every int64 of milliseconds has a text, years beyond 9999 get a
 * sign and more digits as ISO 8601 wants.
 */
#include "base/clock.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/str.h"

static const int64_t MS_PER_DAY = 86400000;

int64_t kn_clock_wall_ms(void)
{
    struct timespec ts;
    if (clock_gettime(CLOCK_REALTIME, &ts) != 0)
        abort();
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int64_t kn_clock_mono_us(void)
{
    struct timespec ts;
    if (clock_gettime(CLOCK_MONOTONIC, &ts) != 0)
        abort();
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

/* Days since 1970-01-01 of a date; months start at March, so that the leap day is a year's last. */
static int64_t days_of(int64_t year, int month, int day)
{
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t of_era = year - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static void date_of(int64_t days, int64_t *ret_year, int *ret_month, int *ret_day)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    int64_t of_era = days - era * 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int shifted = (int)((5 * of_year + 2) / 153);
    *ret_day = (int)(of_year - (153 * shifted + 2) / 5 + 1);
    *ret_month = shifted < 10 ? shifted + 3 : shifted - 9;
    *ret_year = year + era * 400 + (*ret_month <= 2);
}

const char *kn_clock_format_ms(int64_t ms, char out[32])
{
    int64_t days = ms / MS_PER_DAY, rest = ms % MS_PER_DAY;
    if (rest < 0) {
        rest += MS_PER_DAY;
        --days;
    }
    int64_t year;
    int month, day;
    date_of(days, &year, &month, &day);
    int seconds = (int)(rest / 1000);
    const char *form = year < 0 || year > 9999 ? "%+05lld-%02d-%02dT%02d:%02d:%02d.%03dZ"
                                               : "%04lld-%02d-%02dT%02d:%02d:%02d.%03dZ";
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* one of the two literals above */
    int n = snprintf(out, 32, form, (long long)year, month, day, seconds / 3600, seconds / 60 % 60,
                     seconds % 60, (int)(rest % 1000));
#pragma GCC diagnostic pop
    assert(n > 0 && n < 32);
    (void)n;
    return out;
}

/* A reader of fixed-width digits; ok goes false at the first thing that is not as expected. */
typedef struct Scan {
    const char *at;
    bool ok;
} Scan;

static int digits(Scan *scan, int count, int low, int high)
{
    int v = 0;
    for (int i = 0; i < count && scan->ok; ++i) {
        char c = *scan->at;
        scan->ok = c >= '0' && c <= '9';
        if (scan->ok) {
            v = v * 10 + (c - '0');
            ++scan->at;
        }
    }
    scan->ok = scan->ok && v >= low && v <= high;
    return v;
}

static void expect(Scan *scan, char c)
{
    scan->ok = scan->ok && *scan->at == c;
    if (scan->ok)
        ++scan->at;
}

/* ".123456" as milliseconds; finer digits are cut off. */
static int fraction_ms(Scan *scan)
{
    int ms = 0, weight = 100;
    expect(scan, '.');
    int first = digits(scan, 1, 0, 9);
    if (!scan->ok)
        return 0;
    ms = first * weight;
    for (weight = 10; *scan->at >= '0' && *scan->at <= '9'; ++scan->at, weight /= 10)
        ms += weight * (*scan->at - '0');
    return ms;
}

static int64_t zone_ms(Scan *scan)
{
    if (*scan->at == 'Z' || *scan->at == 'z') {
        ++scan->at;
        return 0;
    }
    if (*scan->at != '+' && *scan->at != '-')
        return 0;
    int sign = *scan->at++ == '-' ? -1 : 1;
    int hours = digits(scan, 2, 0, 18);
    expect(scan, ':');
    int minutes = digits(scan, 2, 0, 59);
    return INT64_C(60000) * sign * (hours * INT64_C(60) + minutes);
}

static int month_days(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap);
}

static int64_t date_ms(Scan *scan)
{
    int year = digits(scan, 4, 0, 9999);
    expect(scan, '-');
    int month = digits(scan, 2, 1, 12);
    expect(scan, '-');
    if (!scan->ok)
        return 0;
    int day = digits(scan, 2, 1, month_days(year, month));
    return days_of(year, month, day) * MS_PER_DAY;
}

static int64_t time_ms(Scan *scan)
{
    int hours = digits(scan, 2, 0, 23);
    expect(scan, ':');
    int minutes = digits(scan, 2, 0, 59);
    int64_t ms = (hours * INT64_C(60) + minutes) * 60000;
    if (scan->ok && *scan->at == ':') {
        expect(scan, ':');
        ms += INT64_C(1000) * digits(scan, 2, 0, 59);
        if (scan->ok && *scan->at == '.')
            ms += fraction_ms(scan);
    }
    return ms - (scan->ok ? zone_ms(scan) : 0);
}

KnCode kn_clock_parse_ms(const char *text, int64_t *ret_ms, KnErr *err)
{
    assert(text);
    if (kn_str_to_i64(kn_str(text), ret_ms))
        return KN_OK;
    Scan scan = {text, true};
    int64_t ms = date_ms(&scan);
    if (scan.ok && (*scan.at == 'T' || *scan.at == 't' || *scan.at == ' ')) {
        ++scan.at;
        ms += time_ms(&scan);
    }
    if (!scan.ok || *scan.at != '\0')
        return kn_err_set(err, KN_E_INVAL,
                          "'%.60s' is not a time: give 2026-01-31, 2026-01-31T12:00:00Z (or "
                          "+01:00), or milliseconds since 1970",
                          text);
    *ret_ms = ms;
    return KN_OK;
}

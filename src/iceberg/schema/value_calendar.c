/* SPDX-License-Identifier: Apache-2.0 */
/*
 * value_calendar.c - dates, times and timestamps as numbers and as text.
 *
 * The conversions between days and dates are those of Howard Hinnant's "chrono-Compatible Low-Level
 * Date Algorithms": eras of 400 years that begin in March. Text in is what Iceberg's JSON, people
 * and the engine's VARCHAR cast write: 'T' or a blank before the time, seconds and fraction
 * optional, years of more than four digits with or without a sign, and the engine's " (BC)".
 */
#include <ctype.h>
#include <string.h>

#include "iceberg/schema/value_internal.h"

int64_t kn_floor_div(int64_t a, int64_t b)
{
    int64_t q = a / b;

    return a % b < 0 ? q - 1 : q;
}

int64_t kn_floor_mod(int64_t a, int64_t b)
{
    int64_t r = a % b;

    return r < 0 ? r + b : r;
}

bool kn_type_is_ns(KnTypeKind kind)
{
    return kind == KN_TYPE_TIMESTAMP_NS || kind == KN_TYPE_TIMESTAMPTZ_NS;
}

bool kn_type_is_tz(KnTypeKind kind)
{
    return kind == KN_TYPE_TIMESTAMPTZ || kind == KN_TYPE_TIMESTAMPTZ_NS;
}

bool kn_type_is_timestamp(KnTypeKind kind)
{
    return kn_type_is_ns(kind) || kind == KN_TYPE_TIMESTAMP || kind == KN_TYPE_TIMESTAMPTZ;
}

KnDate kn_date_from_days(int64_t days)
{
    int64_t shifted = days + 719468;
    int64_t era = kn_floor_div(shifted, 146097);
    int64_t doe = shifted - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    int64_t mp = (5 * doy + 2) / 153;
    int month = (int)(mp < 10 ? mp + 3 : mp - 9);

    return (KnDate){yoe + era * 400 + (month <= 2), month, (int)(doy - (153 * mp + 2) / 5 + 1)};
}

int64_t kn_date_to_days(KnDate date)
{
    int64_t year = date.year - (date.month <= 2);
    int64_t era = kn_floor_div(year, 400);
    int64_t yoe = year - era * 400;
    int64_t doy = (153 * (date.month + (date.month > 2 ? -3 : 9)) + 2) / 5 + date.day - 1;
    int64_t doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;

    return era * 146097 + doe - 719468;
}

/* ---- to text ---- */

void kn_date_format(KnBuf *buf, int64_t days)
{
    KnDate date = kn_date_from_days(days);
    const char *sign = date.year > 9999 ? "+" : date.year < 0 ? "-" : "";

    kn_buf_printf(buf, "%s%04lld-%02d-%02d", sign,
                  (long long)(date.year < 0 ? -date.year : date.year), date.month, date.day);
}

void kn_time_format(KnBuf *buf, int64_t of_day, KnTimeFormat fmt)
{
    int64_t unit = fmt.digits == 9 ? KN_US_PER_SECOND * KN_NS_PER_US : KN_US_PER_SECOND;
    int64_t seconds = of_day / unit;
    int64_t fraction = of_day % unit;
    int digits = fmt.digits;

    kn_buf_printf(buf, "%02d:%02d:%02d", (int)(seconds / 3600), (int)(seconds / 60 % 60),
                  (int)(seconds % 60));
    if (fraction == 0 && fmt.trimmed)
        return;
    while (fmt.trimmed && fraction % 10 == 0) {
        fraction /= 10;
        digits--;
    }
    kn_buf_printf(buf, ".%0*lld", digits, (long long)fraction);
}

void kn_timestamp_format(KnBuf *buf, KnTypeKind kind, int64_t value, char sep, bool trimmed)
{
    int64_t per_day = KN_US_PER_DAY * (kn_type_is_ns(kind) ? KN_NS_PER_US : 1);

    kn_date_format(buf, kn_floor_div(value, per_day));
    kn_buf_char(buf, sep);
    kn_time_format(buf, kn_floor_mod(value, per_day),
                   (KnTimeFormat){kn_type_is_ns(kind) ? 9 : 6, trimmed});
    if (kn_type_is_tz(kind))
        kn_buf_text(buf, "+00:00");
}

/* ---- from text: a cursor that eats what it knows ---- */

static bool eat_char(KnStr *s, char c)
{
    if (s->len == 0 || s->ptr[0] != c)
        return false;
    s->ptr++;
    s->len--;
    return true;
}

static bool eat_text(KnStr *s, KnStr text)
{
    if (!kn_str_starts_with(*s, text))
        return false;
    s->ptr += text.len;
    s->len -= text.len;
    return true;
}

/* min to max digits, as many as there are. */
static bool eat_digits(KnStr *s, int min, int max, int64_t *ret)
{
    int64_t value = 0;
    int n = 0;

    while (n < max && s->len > 0 && isdigit((unsigned char)s->ptr[0])) {
        value = value * 10 + (s->ptr[0] - '0');
        s->ptr++;
        s->len--;
        n++;
    }
    *ret = value;
    return n >= min;
}

static int days_in_month(int64_t year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = kn_floor_mod(year, 4) == 0 &&
                (kn_floor_mod(year, 100) != 0 || kn_floor_mod(year, 400) == 0);

    return days[month - 1] + (month == 2 && leap);
}

static bool eat_date(KnStr *s, KnDate *ret)
{
    bool negative = eat_char(s, '-');
    int64_t year, month, day;

    if (!negative)
        eat_char(s, '+');
    if (!eat_digits(s, 1, 9, &year) || !eat_char(s, '-') || !eat_digits(s, 1, 2, &month) ||
        !eat_char(s, '-') || !eat_digits(s, 1, 2, &day))
        return false;
    if (negative)
        year = -year;
    if (month < 1 || month > 12 || day < 1 || day > 31)
        return false;
    *ret = (KnDate){year, (int)month, (int)day};
    return true;
}

/* The engine writes year 0 as 0001 (BC). Nothing may follow. */
static bool finish_date(KnStr rest, KnDate *date)
{
    if (eat_text(&rest, KN_STR_LIT(" (BC)")))
        date->year = 1 - date->year;
    return rest.len == 0 && date->day <= days_in_month(date->year, date->month);
}

bool kn_date_parse(KnStr text, int64_t *ret_days)
{
    KnDate date;
    int64_t days;

    if (!eat_date(&text, &date) || !finish_date(text, &date))
        return false;
    days = kn_date_to_days(date);
    if (days < INT32_MIN || days > INT32_MAX)
        return false;
    *ret_days = days;
    return true;
}

/* hh:mm[:ss[.fraction]] in units of 10^-digits seconds; more fraction digits must be zero. */
static bool eat_time(KnStr *s, int digits, int64_t *ret)
{
    int64_t hour, minute, second = 0, fraction = 0;
    int n = 0;

    if (!eat_digits(s, 1, 2, &hour) || !eat_char(s, ':') || !eat_digits(s, 2, 2, &minute))
        return false;
    if (eat_char(s, ':') && !eat_digits(s, 2, 2, &second))
        return false;
    if (hour > 23 || minute > 59 || second > 59)
        return false;
    if (eat_char(s, '.')) {
        for (; s->len > 0 && isdigit((unsigned char)s->ptr[0]); s->ptr++, s->len--, n++) {
            if (n < digits)
                fraction = fraction * 10 + (s->ptr[0] - '0');
            else if (s->ptr[0] != '0')
                return false;
        }
        if (n == 0)
            return false;
    }
    int64_t unit = 1;
    for (int i = 0; i < digits; i++) {
        unit *= 10;
        if (i >= n)
            fraction *= 10;
    }
    *ret = ((hour * 60 + minute) * 60 + second) * unit + fraction;
    return true;
}

bool kn_time_parse(KnStr text, int64_t *ret_us)
{
    int64_t value;

    if (!eat_time(&text, 6, &value) || text.len != 0)
        return false;
    *ret_us = value;
    return true;
}

/* Z, +hh, +hhmm, +hh:mm as seconds east of Greenwich. */
static bool eat_offset(KnStr *s, int64_t *ret_seconds)
{
    int64_t hour, minute = 0;
    bool negative;

    if (eat_char(s, 'Z') || eat_char(s, 'z')) {
        *ret_seconds = 0;
        return true;
    }
    negative = eat_char(s, '-');
    if (!negative && !eat_char(s, '+'))
        return false;
    if (!eat_digits(s, 2, 2, &hour) || hour > 18)
        return false;
    if ((eat_char(s, ':') || (s->len > 0 && isdigit((unsigned char)s->ptr[0]))) &&
        (!eat_digits(s, 2, 2, &minute) || minute > 59))
        return false;
    *ret_seconds = (hour * 60 + minute) * (negative ? -60 : 60);
    return true;
}

/* The engine writes the era between time and offset: "0044-03-15 (BC) 12:00:00" or at the end. */
static bool eat_era(KnStr *s, KnDate *date)
{
    if (!eat_text(s, KN_STR_LIT(" (BC)")))
        return false;
    date->year = 1 - date->year;
    return true;
}

static bool eat_timestamp(KnTypeKind kind, KnStr *s, KnDate *date, int64_t *ret_of_day)
{
    int digits = kn_type_is_ns(kind) ? 9 : 6;
    int64_t unit = kn_type_is_ns(kind) ? KN_US_PER_SECOND * KN_NS_PER_US : KN_US_PER_SECOND;
    int64_t of_day = 0, offset = 0;
    bool era;

    if (!eat_date(s, date))
        return false;
    era = eat_era(s, date);
    if ((eat_char(s, 'T') || eat_char(s, 't') || eat_char(s, ' ')) && !eat_time(s, digits, &of_day))
        return false;
    if (!era)
        era = eat_era(s, date);
    if (s->len > 0 && kn_type_is_tz(kind) && !eat_offset(s, &offset))
        return false;
    if (!era)
        eat_era(s, date);
    *ret_of_day = of_day - offset * unit;
    return s->len == 0 && date->day <= days_in_month(date->year, date->month);
}

bool kn_timestamp_parse(KnTypeKind kind, KnStr text, int64_t *ret)
{
    int64_t per_day = KN_US_PER_DAY * (kn_type_is_ns(kind) ? KN_NS_PER_US : 1);
    __int128 value;
    KnDate date;
    int64_t of_day;

    if (!eat_timestamp(kind, &text, &date, &of_day))
        return false;
    value = (__int128)kn_date_to_days(date) * per_day + of_day;
    if (value < INT64_MIN || value > INT64_MAX)
        return false;
    *ret = (int64_t)value;
    return true;
}

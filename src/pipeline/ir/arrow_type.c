/* SPDX-License-Identifier: Apache-2.0 */
/* arrow_type.c - recursive descent over a type's text; the engine's type is written as it goes. */
#include "pipeline/ir/arrow_type.h"

#include <stdio.h>

#include "engine/engine.h"

#define MAX_DEPTH 64

typedef struct Reader {
    KnStr whole;
    const char *at, *end;
    KnErr *err;
    int depth;
} Reader;

static KnCode no_type(const Reader *r, const char *expected)
{
    return kn_err_set(
        r->err, KN_E_INVAL, "'" KN_STR_FMT "' is no Arrow type: expected %s at '%.*s'",
        KN_STR_ARG(r->whole), expected, (int)(r->end - r->at > 40 ? 40 : r->end - r->at), r->at);
}

static void skip_space(Reader *r)
{
    while (r->at < r->end && *r->at == ' ')
        r->at++;
}

static bool take(Reader *r, const char *text)
{
    skip_space(r);
    size_t len = strlen(text);
    if ((size_t)(r->end - r->at) < len || memcmp(r->at, text, len) != 0)
        return false;
    r->at += len;
    return true;
}

static KnCode need(Reader *r, const char *text)
{
    char what[32];
    (void)snprintf(what, sizeof(what), "'%s'", text);
    return take(r, text) ? KN_OK : no_type(r, what);
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static KnStr word(Reader *r)
{
    skip_space(r);
    const char *start = r->at;
    while (r->at < r->end && is_word(*r->at))
        r->at++;
    return (KnStr){start, (size_t)(r->at - start)};
}

static KnCode number(Reader *r, int64_t *ret)
{
    skip_space(r);
    const char *start = r->at;
    if (r->at < r->end && *r->at == '-')
        r->at++;
    (void)word(r);
    if (!kn_str_to_i64((KnStr){start, (size_t)(r->at - start)}, ret)) {
        r->at = start;
        return no_type(r, "a number");
    }
    return KN_OK;
}

/* "name" or 'name', without escapes. */
static KnCode quoted(Reader *r, char quote, KnStr *ret)
{
    char open[2] = {quote, '\0'};
    KN_TRY(need(r, open));
    const char *close = memchr(r->at, quote, (size_t)(r->end - r->at));
    if (!close)
        return no_type(r, "a name and its closing quote");
    *ret = (KnStr){r->at, (size_t)(close - r->at)};
    r->at = close + 1;
    return KN_OK;
}

static KnCode type(Reader *r, KnBuf *sql);

/* "name": [non-null |nullable ]Type */
static KnCode member(Reader *r, KnStr *ret_name, KnBuf *sql)
{
    KN_TRY(quoted(r, '"', ret_name));
    KN_TRY(need(r, ":"));
    (void)(take(r, "non-null ") || take(r, "nullable "));
    return type(r, sql);
}

static KnCode list(Reader *r, KnBuf *sql, bool fixed)
{
    int64_t len = 0;
    if (fixed) {
        KN_TRY(number(r, &len));
        KN_TRY(need(r, "x"));
    }
    (void)(take(r, "non-null ") || take(r, "nullable "));
    KN_TRY(type(r, sql));
    if (take(r, ", field: ")) {
        KnStr unused;
        KN_TRY(quoted(r, '\'', &unused));
    }
    if (fixed)
        kn_buf_printf(sql, "[%lld]", (long long)len);
    else
        kn_buf_text(sql, "[]");
    return KN_OK;
}

static KnCode structure(Reader *r, KnBuf *sql)
{
    kn_buf_text(sql, "STRUCT(");
    for (bool first = true;; first = false) {
        KnStr name = {0};
        KN_BUF_AUTO inner = {0};
        kn_buf_init(&inner, 1 << 20);
        KN_TRY(member(r, &name, &inner));
        kn_buf_text(sql, first ? "" : ", ");
        kn_sql_ident(sql, name);
        kn_buf_char(sql, ' ');
        kn_buf_str(sql, (KnStr){inner.data, inner.len});
        if (!take(r, ","))
            break;
    }
    kn_buf_char(sql, ')');
    return KN_OK;
}

/* "entries": Struct("key": K, "value": V), unsorted */
static KnCode map(Reader *r, KnBuf *sql)
{
    KnStr name;
    KN_TRY(quoted(r, '"', &name));
    KN_TRY(need(r, ":"));
    (void)(take(r, "non-null ") || take(r, "nullable "));
    KN_TRY(need(r, "Struct("));
    kn_buf_text(sql, "MAP(");
    KN_TRY(member(r, &name, sql));
    KN_TRY(need(r, ","));
    kn_buf_text(sql, ", ");
    KN_TRY(member(r, &name, sql));
    KN_TRY(need(r, ")"));
    kn_buf_char(sql, ')');
    if (take(r, ","))
        return take(r, "sorted") || take(r, "unsorted") ? KN_OK : no_type(r, "sorted or unsorted");
    return KN_OK;
}

/* The unit: 0 seconds, 3, 6, 9 for thousandths and so on. */
static KnCode unit(Reader *r, int *ret)
{
    static const struct {
        const char *name;
        int digits;
    } units[] = {{"Second", 0},     {"Millisecond", 3}, {"Microsecond", 6},
                 {"Nanosecond", 9}, {"ms", 3},          {"µs", 6},
                 {"us", 6},         {"ns", 9},          {"s", 0}};
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (take(r, units[i].name)) {
            *ret = units[i].digits;
            return KN_OK;
        }
    return no_type(r, "Second, Millisecond, Microsecond or Nanosecond");
}

static KnCode timestamp(Reader *r, KnBuf *sql)
{
    int digits;
    KnStr zone = {0};
    KN_TRY(unit(r, &digits));
    if (take(r, ",") && !take(r, "None")) {
        bool some = take(r, "Some(");
        KN_TRY(quoted(r, '"', &zone));
        if (some)
            KN_TRY(need(r, ")"));
    }
    kn_buf_text(sql, zone.ptr      ? "TIMESTAMP WITH TIME ZONE"
                     : digits == 0 ? "TIMESTAMP_S"
                     : digits == 3 ? "TIMESTAMP_MS"
                     : digits == 6 ? "TIMESTAMP"
                                   : "TIMESTAMP_NS");
    return KN_OK;
}

static KnCode decimal(Reader *r, KnBuf *sql)
{
    int64_t precision, scale;
    KN_TRY(number(r, &precision));
    KN_TRY(need(r, ","));
    KN_TRY(number(r, &scale));
    if (precision < 1 || precision > 76 || scale > precision)
        return no_type(r, "a precision of 1 to 76 and a scale not above it");
    if (precision > 38 || scale < 0)
        return kn_err_set(r->err, KN_E_UNSUPPORTED,
                          "'" KN_STR_FMT "': the engine holds decimals of at most 38 digits with a "
                          "scale of 0 or more",
                          KN_STR_ARG(r->whole));
    kn_buf_printf(sql, "DECIMAL(%d,%d)", (int)precision, (int)scale);
    return KN_OK;
}

static KnCode dictionary(Reader *r, KnBuf *sql)
{
    KN_BUF_AUTO index = {0};
    kn_buf_init(&index, 1000);
    KN_TRY(type(r, &index));
    KN_TRY(need(r, ","));
    return type(r, sql);
}

static KnCode with_unit(Reader *r, KnBuf *sql, const char *name)
{
    int digits;
    KN_TRY(unit(r, &digits));
    kn_buf_text(sql, name);
    return KN_OK;
}

static KnCode interval(Reader *r, KnBuf *sql)
{
    if (!take(r, "YearMonth") && !take(r, "DayTime") && !take(r, "MonthDayNano"))
        return no_type(r, "YearMonth, DayTime or MonthDayNano");
    kn_buf_text(sql, "INTERVAL");
    return KN_OK;
}

/* What stands between the parentheses behind name. */
static KnCode parameters(Reader *r, KnStr name, KnBuf *sql)
{
    int64_t len;
    if (kn_str_eq(name, KN_STR_LIT("Timestamp")))
        return timestamp(r, sql);
    if (kn_str_starts_with(name, KN_STR_LIT("Decimal")))
        return decimal(r, sql);
    if (kn_str_starts_with(name, KN_STR_LIT("Time")))
        return with_unit(r, sql, "TIME");
    if (kn_str_eq(name, KN_STR_LIT("Duration")))
        return with_unit(r, sql, "INTERVAL");
    if (kn_str_eq(name, KN_STR_LIT("Interval")))
        return interval(r, sql);
    if (kn_str_eq(name, KN_STR_LIT("Struct")))
        return structure(r, sql);
    if (kn_str_eq(name, KN_STR_LIT("Map")))
        return map(r, sql);
    if (kn_str_eq(name, KN_STR_LIT("Dictionary")))
        return dictionary(r, sql);
    if (kn_str_eq(name, KN_STR_LIT("FixedSizeBinary"))) {
        kn_buf_text(sql, "BLOB");
        return number(r, &len);
    }
    return list(r, sql, kn_str_eq(name, KN_STR_LIT("FixedSizeList")));
}

static KnCode type(Reader *r, KnBuf *sql)
{
    static const struct {
        const char *arrow, *sql;
    } plain[] = {{"Boolean", "BOOLEAN"},  {"Int8", "TINYINT"},      {"Int16", "SMALLINT"},
                 {"Int32", "INTEGER"},    {"Int64", "BIGINT"},      {"UInt8", "UTINYINT"},
                 {"UInt16", "USMALLINT"}, {"UInt32", "UINTEGER"},   {"UInt64", "UBIGINT"},
                 {"Float16", "FLOAT"},    {"Float32", "FLOAT"},     {"Float64", "DOUBLE"},
                 {"Utf8", "VARCHAR"},     {"LargeUtf8", "VARCHAR"}, {"Utf8View", "VARCHAR"},
                 {"Binary", "BLOB"},      {"LargeBinary", "BLOB"},  {"BinaryView", "BLOB"},
                 {"Date32", "DATE"},      {"Date64", "TIMESTAMP"},  {"Null", "\"NULL\""}};
    static const char *const with[] = {
        "Timestamp", "Time32",        "Time64",        "Duration",        "Interval", "Decimal32",
        "Decimal64", "Decimal128",    "Decimal256",    "FixedSizeBinary", "List",     "LargeList",
        "ListView",  "LargeListView", "FixedSizeList", "Struct",          "Map",      "Dictionary"};
    if (++r->depth > MAX_DEPTH)
        return no_type(r, "fewer types within one another");
    const char *start = r->at;
    KnStr name = word(r);
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
        if (kn_str_eq(name, kn_str(plain[i].arrow))) {
            kn_buf_text(sql, plain[i].sql);
            r->depth--;
            return KN_OK;
        }
    bool known = false;
    for (size_t i = 0; i < sizeof(with) / sizeof(with[0]); i++)
        known = known || kn_str_eq(name, kn_str(with[i]));
    if (!known) {
        r->at = start;
        return no_type(r, "a type such as Int64, Utf8, Timestamp(Microsecond, None)");
    }
    KN_TRY(need(r, "("));
    KN_TRY(parameters(r, name, sql));
    r->depth--;
    return need(r, ")");
}

KnCode kn_arrow_type_sql(KnStr text, KnBuf *sql, KnErr *err)
{
    Reader r = {.whole = text, .at = text.len ? text.ptr : "", .err = err};
    r.end = r.at + text.len;
    KN_BUF_AUTO buf = {0};
    kn_buf_init(&buf, 1 << 20);
    KN_TRY(type(&r, &buf));
    skip_space(&r);
    if (r.at != r.end)
        return no_type(&r, "the end");
    KN_TRY(kn_buf_check(&buf, err));
    kn_buf_str(sql, (KnStr){buf.data, buf.len});
    return KN_OK;
}

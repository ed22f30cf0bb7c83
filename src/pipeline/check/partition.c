/* SPDX-License-Identifier: Apache-2.0 */
/* partition.c - transforms by name; what stands between their parentheses. */
#include "pipeline/check/partition.h"

static const struct {
    const char *name;
    KnPartitionKind kind;
} transforms[] = {
    {"identity", KN_PARTITION_IDENTITY}, {"year", KN_PARTITION_YEARS},
    {"years", KN_PARTITION_YEARS},       {"month", KN_PARTITION_MONTHS},
    {"months", KN_PARTITION_MONTHS},     {"day", KN_PARTITION_DAYS},
    {"days", KN_PARTITION_DAYS},         {"hour", KN_PARTITION_HOURS},
    {"hours", KN_PARTITION_HOURS},       {"bucket", KN_PARTITION_BUCKET},
    {"truncate", KN_PARTITION_TRUNCATE},
};

static KnStr trimmed(KnStr s)
{
    while (s.len > 0 && (s.ptr[0] == ' ' || s.ptr[0] == '\n' || s.ptr[0] == '\t'))
        s = (KnStr){s.ptr + 1, s.len - 1};
    while (s.len > 0 && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\n'))
        s.len--;
    return s;
}

/* A column's name, quoted or not; false where it is something else. */
static bool column(KnStr s, KnStr *ret)
{
    if (s.len >= 2 && (s.ptr[0] == '"' || s.ptr[0] == '`') && s.ptr[s.len - 1] == s.ptr[0]) {
        *ret = (KnStr){s.ptr + 1, s.len - 2};
        return ret->len > 0 && !memchr(ret->ptr, s.ptr[0], ret->len);
    }
    for (size_t i = 0; i < s.len; i++)
        if (memchr("()\"'`, +*/", s.ptr[i], 11))
            return false;
    *ret = s;
    return s.len > 0;
}

static KnCode wrong(KnStr text, KnErr *err)
{
    return kn_err_set(err, KN_E_INVAL,
                      "'" KN_STR_FMT
                      "': expected a column, years(c), months(c), days(c), hours(c), "
                      "bucket(n, c) or truncate(n, c)",
                      KN_STR_ARG(text));
}

/* n and a column, in either order. */
static bool two(KnStr inner, KnPartition *ret)
{
    const char *comma = memchr(inner.ptr, ',', inner.len);
    if (!comma)
        return false;
    KnStr a = trimmed((KnStr){inner.ptr, (size_t)(comma - inner.ptr)});
    KnStr b = trimmed((KnStr){comma + 1, (size_t)(inner.ptr + inner.len - comma - 1)});
    bool first = kn_str_to_i64(a, &ret->n);
    return (first || kn_str_to_i64(b, &ret->n)) && column(first ? b : a, &ret->column) &&
           ret->n > 0 && ret->n <= INT32_MAX;
}

KnCode kn_partition_parse(KnStr text, KnPartition *ret, KnErr *err)
{
    KnPartition found = {0};
    KnStr s = trimmed(text);
    const char *open = s.len > 0 ? memchr(s.ptr, '(', s.len) : NULL;
    if (!open) {
        if (!column(s, &found.column))
            return wrong(text, err);
        *ret = found;
        return KN_OK;
    }
    KnStr name = trimmed((KnStr){s.ptr, (size_t)(open - s.ptr)});
    size_t i = 0, n = sizeof(transforms) / sizeof(transforms[0]);
    while (i < n && !kn_str_eq_nocase(name, kn_str(transforms[i].name)))
        i++;
    if (i == n)
        return kn_err_set(err, KN_E_UNSUPPORTED,
                          "'" KN_STR_FMT "' is no partition transform of Iceberg's",
                          KN_STR_ARG(text));
    found.kind = transforms[i].kind;
    if (s.ptr[s.len - 1] != ')')
        return wrong(text, err);
    KnStr inner = trimmed((KnStr){open + 1, (size_t)(s.ptr + s.len - 1 - (open + 1))});
    bool with_n = found.kind == KN_PARTITION_BUCKET || found.kind == KN_PARTITION_TRUNCATE;
    if (with_n ? !two(inner, &found) : !column(inner, &found.column))
        return wrong(text, err);
    *ret = found;
    return KN_OK;
}

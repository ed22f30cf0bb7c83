/* SPDX-License-Identifier: Apache-2.0 */
/*
 * option_value.c - one text through one option row: checked, converted, stored in the caller's
 * field.
 *
 * The same for words of the command line, defaults and configuration files; `origin` is what
 * messages call the place. A text that does not fit leaves the field as it was.
 */
#include <string.h>

#include "base/option_internal.h"

bool kn_option_is_list(const KnOption *option)
{
    return option->type == KN_OPT_LIST || option->type == KN_OPT_REPEAT;
}

void kn_option_list_append(KnOptList *list, KnArena *arena, const char *item)
{
    const char **items = kn_arena_alloc(arena, (list->len + 1) * sizeof(*items));
    if (list->len)
        memcpy(items, list->items, list->len * sizeof(*items));
    items[list->len] = item;
    *list = (KnOptList){items, list->len + 1};
}

static KnCode list_add(const KnOption *option, const char *origin, const char *value,
                       KnArena *arena, KnOptList *list, KnErr *err)
{
    if (option->type == KN_OPT_REPEAT) {
        kn_option_list_append(list, arena, value);
        return KN_OK;
    }
    for (const char *p = value;; ++p) {
        size_t len = strcspn(p, ",");
        if (len == 0)
            return kn_err_set(err, KN_E_INVAL, "%s: '%.100s' holds an empty item", origin, value);
        kn_option_list_append(list, arena, kn_arena_strndup(arena, p, len));
        p += len;
        if (!*p)
            return KN_OK;
    }
}

static KnCode int_parse(const KnOption *option, const char *origin, const char *value, int64_t *ret,
                        KnErr *err)
{
    int64_t v;
    if (!kn_str_to_i64(kn_str(value), &v))
        return kn_err_set(err, KN_E_INVAL, "%s: '%.100s' is not a whole number", origin, value);
    bool bounded = option->min || option->max;
    if (bounded && option->max == INT64_MAX && v < option->min)
        return kn_err_set(err, KN_E_INVAL, "%s: %lld is too small, give at least %lld", origin,
                          (long long)v, (long long)option->min);
    if (bounded && (v < option->min || v > option->max))
        return kn_err_set(err, KN_E_INVAL, "%s: %lld is not within %lld..%lld", origin,
                          (long long)v, (long long)option->min, (long long)option->max);
    *ret = v;
    return KN_OK;
}

static KnCode seconds_parse(const char *origin, const char *value, double *ret, KnErr *err)
{
    static const struct {
        KnStr suffix;
        double seconds;
    } units[] = {{{"ms", 2}, 0.001}, {{"s", 1}, 1},     {{"m", 1}, 60},
                 {{"h", 1}, 3600},   {{"d", 1}, 86400}, {{"", 0}, 1}};
    KnStr number = kn_str(value);
    double scale = 1;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); ++i)
        if (kn_str_ends_with(number, units[i].suffix)) {
            number.len -= units[i].suffix.len;
            scale = units[i].seconds;
            break;
        }
    double v;
    if (!kn_str_to_double(number, &v) || v < 0)
        return kn_err_set(err, KN_E_INVAL,
                          "%s: '%.100s' is not a duration: give 1.5, 500ms, 30s, 2m, 1h or 1d",
                          origin, value);
    *ret = v * scale;
    return KN_OK;
}

static KnCode choice_parse(const KnOption *option, const char *origin, const char *value, int *ret,
                           KnErr *err)
{
    int index = 0;
    for (const char *p = option->value; *p; ++index) {
        KnStr one = {p, strcspn(p, "|")};
        if (kn_str_eq(one, kn_str(value))) {
            *ret = index;
            return KN_OK;
        }
        p += one.len;
        p += *p == '|';
    }
    return kn_err_set(err, KN_E_INVAL, "%s: '%.100s' is not one of %s", origin, value,
                      option->value);
}

static KnCode flag_parse(const char *origin, const char *value, bool *ret, KnErr *err)
{
    bool yes = !value || strcmp(value, "true") == 0;
    if (!yes && strcmp(value, "false") != 0)
        return kn_err_set(err, KN_E_INVAL, "%s: '%.100s' is neither true nor false", origin, value);
    *ret = yes;
    return KN_OK;
}

static KnCode bytes_parse(const char *origin, const char *value, uint64_t *ret, KnErr *err)
{
    if (!kn_str_to_bytes(kn_str(value), ret))
        return kn_err_set(err, KN_E_INVAL, "%s: '%.100s' is not a size: give 1000000, 64MiB or 2GB",
                          origin, value);
    return KN_OK;
}

size_t kn_option_field_size(KnOptType type)
{
    switch (type) {
    case KN_OPT_FLAG:
        return sizeof(bool);
    case KN_OPT_TEXT:
        return sizeof(const char *);
    case KN_OPT_LIST:
    case KN_OPT_REPEAT:
        return sizeof(KnOptList);
    case KN_OPT_INT:
        return sizeof(int64_t);
    case KN_OPT_BYTES:
        return sizeof(uint64_t);
    case KN_OPT_SECONDS:
        return sizeof(double);
    case KN_OPT_CHOICE:
        return sizeof(int);
    }
    return 0;
}

typedef union Value {
    bool flag;
    const char *text;
    KnOptList list;
    int64_t i64;
    uint64_t bytes;
    double seconds;
    int choice;
} Value;

KnCode kn_option_set(const KnOption *option, const char *origin, const char *value, KnArena *arena,
                     void *target, KnErr *err)
{
    char *at = (char *)target + option->offset;
    size_t size = kn_option_field_size(option->type);
    Value v = {0};
    memcpy(&v, at, size); /* what a list has so far */
    if (!value && option->type != KN_OPT_FLAG)
        return kn_err_set(err, KN_E_INVAL, "%s: needs a value (%s)", origin, option->value);
    switch (option->type) {
    case KN_OPT_FLAG:
        KN_TRY(flag_parse(origin, value, &v.flag, err));
        break;
    case KN_OPT_TEXT:
        v.text = value;
        break;
    case KN_OPT_LIST:
    case KN_OPT_REPEAT:
        KN_TRY(list_add(option, origin, value, arena, &v.list, err));
        break;
    case KN_OPT_INT:
        KN_TRY(int_parse(option, origin, value, &v.i64, err));
        break;
    case KN_OPT_BYTES:
        KN_TRY(bytes_parse(origin, value, &v.bytes, err));
        break;
    case KN_OPT_SECONDS:
        KN_TRY(seconds_parse(origin, value, &v.seconds, err));
        break;
    case KN_OPT_CHOICE:
        KN_TRY(choice_parse(option, origin, value, &v.choice, err));
        break;
    }
    memcpy(at, &v, size);
    return KN_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * option.c - parsing words by option tables.
 *
 * Values go into the caller's struct with memcpy at the row's offset, so a row that names the wrong
 * type is a bug that no check here can see: keep type and field together in the tables. A default
 * is parsed like a given value; one that does not parse is our own mistake. A word after a flag is
 * its value unless it looks like a flag (`--x`): a forgotten value would otherwise swallow the next
 * flag.
 */
#include "base/option.h"

#include <assert.h>
#include <string.h>

enum { COLUMN_MAX = 34, WIDTH = 100 };

typedef struct Found {
    const KnOption *option;
    size_t base;
    size_t index; /* over all groups */
} Found;

typedef struct Parse {
    const KnOptSpec *spec;
    KnArgs args;
    int next; /* word to look at */
    KnArena *arena;
    char *target;
    bool *seen; /* by Found.index */
    KnOptList positional;
} Parse;

static void list_append(KnOptList *list, KnArena *arena, const char *item)
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
        list_append(list, arena, value);
        return KN_OK;
    }
    for (const char *p = value;; ++p) {
        size_t len = strcspn(p, ",");
        if (len == 0)
            return kn_err_set(err, KN_E_INVAL, "%s: '%.100s' holds an empty item", origin, value);
        list_append(list, arena, kn_arena_strndup(arena, p, len));
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

static size_t field_size(KnOptType type)
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
    size_t size = field_size(option->type);
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

/* The index-th row over all groups; false past the last. */
static bool row_at(const KnOptSpec *spec, size_t index, Found *ret)
{
    size_t left = index;
    for (size_t g = 0; g < spec->n_groups; ++g) {
        const KnOptGroup *group = &spec->groups[g];
        if (left < group->n_options) {
            *ret = (Found){&group->options[left], group->base, index};
            return true;
        }
        left -= group->n_options;
    }
    return false;
}

static bool row_find(const KnOptSpec *spec, KnStr name, Found *ret)
{
    for (size_t i = 0; row_at(spec, i, ret); ++i)
        if (kn_str_eq(kn_str(ret->option->name), name))
            return true;
    return false;
}

static bool row_find_letter(const KnOptSpec *spec, char letter, Found *ret)
{
    for (size_t i = 0; letter && row_at(spec, i, ret); ++i)
        if (ret->option->letter == letter)
            return true;
    return false;
}

const KnOption *kn_option_find(const KnOptSpec *spec, KnStr name, size_t *ret_base)
{
    Found found;
    if (!row_find(spec, name, &found))
        return NULL;
    if (ret_base)
        *ret_base = found.base;
    return found.option;
}

static KnCode unknown_flag(const KnOptSpec *spec, KnStr name, const char *word, KnErr *err)
{
    const char *best = NULL;
    size_t best_distance = 3 + name.len / 4;
    Found found;
    for (size_t i = 0; row_at(spec, i, &found); ++i) {
        size_t distance = kn_str_distance(kn_str(found.option->name), name);
        if (distance < best_distance) {
            best_distance = distance;
            best = found.option->name;
        }
    }
    if (best)
        return kn_err_set(err, KN_E_INVAL, "unknown option '%.100s': did you mean --%s?", word,
                          best);
    return kn_err_set(err, KN_E_INVAL, "unknown option '%.100s': see --help", word);
}

static void field_clear(const KnOption *option, char *target)
{
    memset(target + option->offset, 0, field_size(option->type));
}

static void defaults_set(const Parse *parse)
{
    Found found;
    for (size_t i = 0; row_at(parse->spec, i, &found); ++i) {
        const KnOption *option = found.option;
        char *target = parse->target + found.base;
        field_clear(option, target);
        if (!option->dflt)
            continue;
        KnCode rc = kn_option_set(option, option->name, option->dflt, parse->arena, target, NULL);
        assert(rc == KN_OK);
        (void)rc;
    }
}

static bool is_list(const KnOption *option)
{
    return option->type == KN_OPT_LIST || option->type == KN_OPT_REPEAT;
}

/* The value of the flag `origin`: behind '=', or the next word. */
static KnCode value_take(Parse *parse, const KnOption *option, const char *origin,
                         const char **value, KnErr *err)
{
    if (option->type == KN_OPT_FLAG) {
        if (*value)
            return kn_err_set(err, KN_E_INVAL, "%s takes no value", origin);
        return KN_OK;
    }
    if (*value)
        return KN_OK;
    const char *word = parse->next < parse->args.argc ? parse->args.argv[parse->next] : NULL;
    if (!word)
        return kn_err_set(err, KN_E_INVAL, "%s needs a value: %s %s", origin, origin,
                          option->value);
    if (strncmp(word, "--", 2) == 0)
        return kn_err_set(err, KN_E_INVAL,
                          "%s needs a value: %s %s (or %s=%.60s when that is the value)", origin,
                          origin, option->value, origin, word);
    *value = word;
    ++parse->next;
    return KN_OK;
}

static KnCode flag_word(Parse *parse, const char *word, KnErr *err)
{
    bool is_long = word[1] == '-';
    const char *name = word + 1 + is_long;
    const char *equals = strchr(name, '=');
    KnStr key = {name, equals ? (size_t)(equals - name) : strlen(name)};
    Found found;
    bool known = is_long ? row_find(parse->spec, key, &found)
                         : key.len == 1 && row_find_letter(parse->spec, name[0], &found);
    if (!known)
        return unknown_flag(parse->spec, key, word, err);
    const KnOption *option = found.option;
    const char *origin = kn_arena_printf(parse->arena, "--%s", option->name);
    if (parse->seen[found.index] && !is_list(option))
        return kn_err_set(err, KN_E_INVAL, "%s is given twice", origin);
    const char *value = equals ? equals + 1 : NULL;
    KN_TRY(value_take(parse, option, origin, &value, err));
    char *target = parse->target + found.base;
    if (!parse->seen[found.index])
        field_clear(option, target); /* a given list takes the place of the default */
    parse->seen[found.index] = true;
    return kn_option_set(option, origin, value, parse->arena, target, err);
}

static KnCode positional_word(Parse *parse, const char *word, KnErr *err)
{
    if (!parse->spec->positional)
        return kn_err_set(err, KN_E_INVAL, "unexpected word '%.100s': only options are taken here",
                          word);
    list_append(&parse->positional, parse->arena, word);
    return KN_OK;
}

static size_t count_rows(const KnOptSpec *spec)
{
    size_t n = 0;
    for (size_t g = 0; g < spec->n_groups; ++g)
        n += spec->groups[g].n_options;
    return n;
}

KnCode kn_options_parse(const KnOptSpec *spec, KnArgs args, KnArena *arena, void *target,
                        KnOptList *ret_positional, KnErr *err)
{
    assert(ret_positional || !spec->positional);
    Parse parse = {.spec = spec, .args = args, .arena = arena, .target = target};
    parse.seen = kn_arena_zalloc(arena, count_rows(spec) * sizeof(bool));
    defaults_set(&parse);
    bool options_end = false;
    while (parse.next < args.argc) {
        const char *word = args.argv[parse.next++];
        if (!options_end && strcmp(word, "--") == 0)
            options_end = true;
        else if (!options_end && word[0] == '-' && word[1])
            KN_TRY(flag_word(&parse, word, err));
        else
            KN_TRY(positional_word(&parse, word, err));
    }
    if (ret_positional)
        *ret_positional = parse.positional;
    return KN_OK;
}

static void flag_text(const KnOption *option, KnBuf *out)
{
    if (option->letter)
        kn_buf_printf(out, "-%c, ", option->letter);
    kn_buf_printf(out, "--%s", option->name);
    if (option->type != KN_OPT_FLAG)
        kn_buf_printf(out, " %s", option->value);
}

/* What a reader needs beyond the sentence: bounds, repeatability, default. */
static void notes_text(const KnOption *option, KnBuf *out)
{
    const char *glue = " (";
    if (option->type == KN_OPT_INT && option->max == INT64_MAX) {
        kn_buf_printf(out, "%sat least %lld", glue, (long long)option->min);
        glue = "; ";
    } else if (option->type == KN_OPT_INT && (option->min || option->max)) {
        kn_buf_printf(out, "%s%lld to %lld", glue, (long long)option->min, (long long)option->max);
        glue = "; ";
    }
    if (is_list(option)) {
        kn_buf_printf(out, "%smay be repeated", glue);
        glue = "; ";
    }
    if (option->dflt) {
        kn_buf_printf(out, "%sdefault %s", glue, option->dflt);
        glue = "; ";
    }
    if (glue[0] == ';')
        kn_buf_char(out, ')');
}

/* Words of text from `column` on, which the cursor has reached; no line passes WIDTH. */
static void wrapped_text(KnBuf *out, const char *text, size_t column)
{
    size_t at = column;
    for (const char *p = text; *p;) {
        size_t len = strcspn(p, " ");
        if (at > column && at + 1 + len > WIDTH) {
            kn_buf_printf(out, "\n%*s", (int)column, "");
            at = column;
        } else if (at > column) {
            kn_buf_char(out, ' ');
            ++at;
        }
        kn_buf_append(out, p, len);
        at += len;
        p += len;
        p += strspn(p, " ");
    }
    kn_buf_char(out, '\n');
}

static size_t help_column(const KnOptSpec *spec)
{
    size_t widest = 0;
    Found found;
    for (size_t i = 0; row_at(spec, i, &found); ++i) {
        KN_BUF_AUTO flag;
        kn_buf_init(&flag, 1024);
        flag_text(found.option, &flag);
        size_t width = flag.len + 4; /* two blanks before, two behind */
        if (width > widest && width <= COLUMN_MAX)
            widest = width;
    }
    return widest ? widest : COLUMN_MAX;
}

static void help_row(const KnOption *option, size_t column, KnBuf *out)
{
    KN_BUF_AUTO flag, text;
    kn_buf_init(&flag, 1024);
    kn_buf_init(&text, 4096);
    flag_text(option, &flag);
    kn_buf_text(&text, option->doc);
    notes_text(option, &text);
    kn_buf_printf(out, "  %s", flag.data);
    if (flag.len + 4 > column)
        kn_buf_printf(out, "\n%*s", (int)column, "");
    else
        kn_buf_printf(out, "%*s", (int)(column - flag.len - 2), "");
    wrapped_text(out, text.data, column);
}

void kn_options_help(const KnOptSpec *spec, KnBuf *out)
{
    size_t column = help_column(spec);
    for (size_t g = 0; g < spec->n_groups; ++g) {
        const KnOptGroup *group = &spec->groups[g];
        kn_buf_printf(out, "%s%s:\n", g ? "\n" : "", group->title);
        for (size_t i = 0; i < group->n_options; ++i)
            help_row(&group->options[i], column, out);
    }
}

static void cell_text(KnBuf *out, const char *text)
{
    for (const char *p = text; *p; ++p) {
        if (*p == '|')
            kn_buf_char(out, '\\');
        kn_buf_char(out, *p);
    }
}

void kn_options_markdown(const KnOptSpec *spec, KnBuf *out)
{
    for (size_t g = 0; g < spec->n_groups; ++g) {
        const KnOptGroup *group = &spec->groups[g];
        kn_buf_printf(out, "%s### %s\n\n| option | meaning |\n| --- | --- |\n", g ? "\n" : "",
                      group->title);
        for (size_t i = 0; i < group->n_options; ++i) {
            KN_BUF_AUTO flag, text;
            kn_buf_init(&flag, 1024);
            kn_buf_init(&text, 4096);
            flag_text(&group->options[i], &flag);
            kn_buf_text(&text, group->options[i].doc);
            notes_text(&group->options[i], &text);
            kn_buf_text(out, "| `");
            cell_text(out, flag.data);
            kn_buf_text(out, "` | ");
            cell_text(out, text.data);
            kn_buf_text(out, " |\n");
        }
    }
}

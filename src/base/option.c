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

#include "base/option_internal.h"

typedef struct Parse {
    const KnOptSpec *spec;
    KnArgs args;
    int next; /* word to look at */
    KnArena *arena;
    char *target;
    bool *seen; /* by KnOptionRow.index */
    KnOptList positional;
} Parse;

bool kn_option_row_at(const KnOptSpec *spec, size_t index, KnOptionRow *ret)
{
    size_t left = index;
    for (size_t g = 0; g < spec->n_groups; ++g) {
        const KnOptGroup *group = &spec->groups[g];
        if (left < group->n_options) {
            *ret = (KnOptionRow){&group->options[left], group->base, index};
            return true;
        }
        left -= group->n_options;
    }
    return false;
}

static bool row_find(const KnOptSpec *spec, KnStr name, KnOptionRow *ret)
{
    for (size_t i = 0; kn_option_row_at(spec, i, ret); ++i)
        if (kn_str_eq(kn_str(ret->option->name), name))
            return true;
    return false;
}

static bool row_find_letter(const KnOptSpec *spec, char letter, KnOptionRow *ret)
{
    for (size_t i = 0; letter && kn_option_row_at(spec, i, ret); ++i)
        if (ret->option->letter == letter)
            return true;
    return false;
}

const KnOption *kn_option_find(const KnOptSpec *spec, KnStr name, size_t *ret_base)
{
    KnOptionRow found;
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
    KnOptionRow found;
    for (size_t i = 0; kn_option_row_at(spec, i, &found); ++i) {
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
    memset(target + option->offset, 0, kn_option_field_size(option->type));
}

static void defaults_set(const Parse *parse)
{
    KnOptionRow found;
    for (size_t i = 0; kn_option_row_at(parse->spec, i, &found); ++i) {
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
    KnOptionRow found;
    bool known = is_long ? row_find(parse->spec, key, &found)
                         : key.len == 1 && row_find_letter(parse->spec, name[0], &found);
    if (!known)
        return unknown_flag(parse->spec, key, word, err);
    const KnOption *option = found.option;
    const char *origin = kn_arena_printf(parse->arena, "--%s", option->name);
    if (parse->seen[found.index] && !kn_option_is_list(option))
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
    kn_option_list_append(&parse->positional, parse->arena, word);
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

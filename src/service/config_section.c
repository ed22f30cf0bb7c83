/* SPDX-License-Identifier: Apache-2.0 */
/* config_section.c - see config_internal.h. */
#include "base/hash.h"
#include "service/config_internal.h"

const char *kn_config_place(const KnConfigFile *file, const KnYaml *node)
{
    if (node->key)
        return kn_arena_printf(file->arena, "%s:%d:%d: %.100s", file->name, node->key_line,
                               node->key_column, node->key);
    return kn_arena_printf(file->arena, "%s:%d:%d", file->name, node->line, node->column);
}

/* ---- names ---- */

static bool holds(const char *const *words, const char *word)
{
    for (; words && *words; words++)
        if (!strcmp(*words, word))
            return true;
    return false;
}

typedef struct Nearest {
    const char *word, *best;
    size_t distance;
} Nearest;

static Nearest nearest_of(const char *word)
{
    return (Nearest){.word = word, .distance = 3 + strlen(word) / 4};
}

static void consider(Nearest *near, const char *name)
{
    size_t distance = kn_str_distance(kn_str(name), kn_str(near->word));
    if (distance < near->distance) {
        near->distance = distance;
        near->best = name;
    }
}

static const char *say_nearest(const KnConfigFile *file, const Nearest *near)
{
    return near->best ? kn_arena_printf(file->arena, ": did you mean '%s'?", near->best) : "";
}

const char *kn_config_nearest(const KnConfigFile *file, const KnYaml *map, const char *word)
{
    Nearest near = nearest_of(word);
    for (size_t i = 0; map && map->kind == KN_YAML_MAP && i < map->n; i++)
        consider(&near, map->items[i]->key);
    return say_nearest(file, &near);
}

static const KnOption *find_row(const KnSection *section, const char *name, size_t *ret_base)
{
    return holds(section->denied, name) ? NULL
                                        : kn_option_find(&section->spec, kn_str(name), ret_base);
}

static KnCode unknown_key(const KnConfigFile *file, const KnYaml *node, const KnSection *section,
                          KnErr *err)
{
    Nearest near = nearest_of(node->key);
    for (size_t g = 0; g < section->spec.n_groups; g++)
        for (size_t i = 0; i < section->spec.groups[g].n_options; i++) {
            const char *name = section->spec.groups[g].options[i].name;
            if (!holds(section->denied, name))
                consider(&near, name);
        }
    for (const char *const *word = section->words; word && *word; word++)
        consider(&near, *word);
    return kn_err_set(err, KN_E_INVAL, "%s:%d:%d: %s has no key '%.100s'%s", file->name,
                      node->key_line, node->key_column, section->what, node->key,
                      say_nearest(file, &near));
}

/* ---- values ---- */

KnCode kn_config_text(const KnConfigFile *file, const KnYaml *node, const char **ret, KnErr *err)
{
    if (node->kind != KN_YAML_SCALAR)
        return kn_config_wrong(file, node, err, "expected a single value");
    if (node->empty)
        return kn_config_wrong(file, node, err, "needs a value");
    KnCode rc = kn_config_expand(file->arena, node->text, ret, err);
    return rc == KN_OK ? KN_OK : kn_err_wrap(err, rc, "%s", kn_config_place(file, node));
}

static KnCode set_one(const KnConfigFile *file, const KnYaml *node, const KnOption *row,
                      void *target, uint64_t *print, KnErr *err)
{
    const char *text = NULL;
    KN_TRY(kn_config_text(file, node, &text, err));
    if (print) {
        *print = kn_hash64(row->name, strlen(row->name) + 1, *print);
        *print = kn_hash64(text, strlen(text) + 1, *print);
    }
    return kn_option_set(row, kn_config_place(file, node), text, file->arena, target, err);
}

/* A list given later takes the place of an earlier one. */
static KnCode set_list(const KnConfigFile *file, const KnYaml *node, const KnOption *row,
                       void *target, uint64_t *print, KnErr *err)
{
    *(KnOptList *)((char *)target + row->offset) = (KnOptList){0};
    if (node->kind == KN_YAML_SCALAR)
        return set_one(file, node, row, target, print, err);
    if (node->kind != KN_YAML_LIST)
        return kn_config_wrong(file, node, err, "expected a list");
    for (size_t i = 0; i < node->n; i++)
        KN_TRY(set_one(file, node->items[i], row, target, print, err));
    return KN_OK;
}

KnCode kn_config_apply(const KnConfigFile *file, const KnYaml *map, const KnSection *section,
                       void *target, uint64_t *print, KnErr *err)
{
    if (map->kind == KN_YAML_SCALAR && map->empty)
        return KN_OK;
    if (map->kind != KN_YAML_MAP)
        return kn_config_wrong(file, map, err, "%s is a map of keys and values", section->what);
    for (size_t i = 0; i < map->n; i++) {
        const KnYaml *node = map->items[i];
        size_t base = 0;
        if (!node->key || holds(section->words, node->key))
            continue;
        const KnOption *row = find_row(section, node->key, &base);
        if (!row)
            return unknown_key(file, node, section, err);
        char *at = (char *)target + base;
        bool list = row->type == KN_OPT_LIST || row->type == KN_OPT_REPEAT;
        KN_TRY(list ? set_list(file, node, row, at, print, err)
                    : set_one(file, node, row, at, print, err));
    }
    return KN_OK;
}

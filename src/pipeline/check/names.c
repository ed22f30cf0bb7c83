/* SPDX-License-Identifier: Apache-2.0 */
/* names.c - hash maps from names, and from names in lower case, to places; a place is kept as its
 * number plus one. */
#include "pipeline/check/names.h"

#include "base/map.h"

struct KnNameIndex {
    const KnPipeline *pipeline;
    KnMap *datasets, *inputs;
    KnMap *folded_datasets, *folded_inputs;
};

static void maps_free(void *arg)
{
    KnNameIndex *names = arg;
    (void)kn_map_free(names->datasets);
    (void)kn_map_free(names->inputs);
    (void)kn_map_free(names->folded_datasets);
    (void)kn_map_free(names->folded_inputs);
}

static void put(KnMap *map, KnStr name, size_t place)
{
    bool is_new;
    void **slot = kn_map_get_or_add(map, name, &is_new);
    if (is_new)
        *slot = (void *)(uintptr_t)(place + 1); /* NOLINT(performance-no-int-to-ptr) */
}

static size_t find(const KnMap *map, KnStr name)
{
    return (size_t)(uintptr_t)kn_map_find(map, name) - 1; /* none: NONE */
}

/* ASCII letters in lower case. */
static KnStr folded(KnArena *arena, const char *name)
{
    char *copy = kn_arena_strdup(arena, name);
    for (char *p = copy; *p; p++)
        if (*p >= 'A' && *p <= 'Z')
            *p = (char)(*p | 0x20);
    return kn_str(copy);
}

KnNameIndex *kn_names_new(KnArena *arena, const KnPipeline *pipeline)
{
    KnNameIndex *names = kn_arena_zalloc(arena, sizeof(*names));
    *names = (KnNameIndex){pipeline, kn_map_new(), kn_map_new(), kn_map_new(), kn_map_new()};
    kn_arena_defer(arena, maps_free, names);
    for (size_t i = 0; i < pipeline->datasets.len; i++) {
        const char *name = pipeline->datasets.items[i].name;
        put(names->datasets, kn_str(name), i);
        put(names->folded_datasets, folded(arena, name), i);
    }
    for (size_t i = 0; i < pipeline->inputs.len; i++) {
        const char *name = pipeline->inputs.items[i].name;
        put(names->inputs, kn_str(name), i);
        put(names->folded_inputs, folded(arena, name), i);
    }
    return names;
}

size_t kn_names_dataset(const KnNameIndex *names, const char *name)
{
    return find(names->datasets, kn_str(name));
}

size_t kn_names_input(const KnNameIndex *names, const char *name)
{
    return find(names->inputs, kn_str(name));
}

static bool found(KnGraphRead *read, const KnMap *datasets, const KnMap *inputs, KnStr name)
{
    read->dataset = find(datasets, name);
    read->input = read->dataset == KN_GRAPH_NONE ? find(inputs, name) : KN_GRAPH_NONE;
    return read->dataset != KN_GRAPH_NONE || read->input != KN_GRAPH_NONE;
}

static bool strip(KnStr *name, const char *prefix)
{
    size_t len = prefix ? strlen(prefix) : 0;
    if (len == 0 || name->len <= len + 1 || name->ptr[len] != '.' ||
        memcmp(name->ptr, prefix, len) != 0)
        return false;
    *name = (KnStr){name->ptr + len + 1, name->len - len - 1};
    return true;
}

void kn_names_resolve(const KnNameIndex *names, KnGraphRead *read)
{
    KnStr name = kn_str(read->name);
    if (found(read, names->datasets, names->inputs, name))
        return;
    if (strip(&name, names->pipeline->default_catalog) &&
        found(read, names->datasets, names->inputs, name))
        return;
    if (strip(&name, names->pipeline->default_database) &&
        found(read, names->datasets, names->inputs, name))
        return;
    KN_ARENA_AUTO arena = kn_arena_new(256);
    read->other_case = found(read, names->folded_datasets, names->folded_inputs,
                             folded(arena, kn_arena_strndup(arena, name.ptr, name.len)));
}

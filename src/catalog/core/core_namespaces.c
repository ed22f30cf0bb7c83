/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core_namespaces.c - namespaces and their properties.
 *
 * A namespace exists when it has a row of properties, or when something is in it: Java and
 * PyIceberg make tables in namespaces that they never made.
 */
#include <stdlib.h>
#include <string.h>

#include "catalog/core/core_internal.h"
#include "iceberg/metadata/commit_json_internal.h"

static KnCode text_of(KnArena *arena, const KnNamespace *ns, const char **ret, KnErr *err)
{
    if (!ns->n_levels)
        return kn_err_set(err, KN_E_INVAL, "a namespace has at least one level");
    return kn_names_join(arena, ns->levels, ns->n_levels, ret, err);
}

/* ---- lists ---- */

typedef struct Children {
    KnArena *arena;
    size_t prefix;     /* bytes of the parent and its dot */
    const char *after; /* children up to this one were on earlier pages */
    const char *last;  /* the child that was seen last, as the database spells it */
    const char **names;
    size_t n, room;
    bool any;
} Children;

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void push(Children *c, const char *name)
{
    if (c->n == c->room) {
        size_t room = c->room ? c->room * 2 : 64;
        const char **names = kn_arena_alloc(c->arena, room * sizeof(*names));
        if (c->n)
            memcpy((void *)names, (const void *)c->names, c->n * sizeof(*names));
        c->names = names;
        c->room = room;
    }
    c->names[c->n++] = name;
}

/* Namespaces come in byte order of their texts; "a", "a!b" and "a.c" may come in this order, so
 * that a child can come more than once, not side by side. */
static KnCode note_child(void *arg, const char *ns, const char *name, KnErr *err)
{
    (void)name, (void)err;
    Children *c = arg;
    const char *rest = ns + c->prefix;
    char *child = kn_arena_strndup(c->arena, rest, strcspn(rest, "."));
    c->any = true;
    if (!*child || (c->last && !strcmp(c->last, child)))
        return KN_OK;
    c->last = child;
    const char *const *levels;
    size_t n;
    kn_names_split(c->arena, child, &levels, &n);
    if (!c->after || strcmp(levels[0], c->after) > 0)
        push(c, levels[0]);
    return KN_OK;
}

static void sort_unique(Children *c)
{
    if (c->n > 1)
        qsort((void *)c->names, c->n, sizeof(*c->names), by_name);
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        if (!n || strcmp(c->names[n - 1], c->names[i]) != 0)
            c->names[n++] = c->names[i];
    }
    c->n = n;
}

KnCode kn_core_namespace_list(KnCatalogCore *core, KnArena *arena, const KnNamespace *parent,
                              const KnPage *page, KnNameList *ret, KnErr *err)
{
    const char *ns = NULL, *prefix = "";
    if (parent && parent->n_levels) {
        KN_TRY(text_of(arena, parent, &ns, err));
        prefix = kn_arena_printf(arena, "%s.", ns);
    }
    Children c = {.arena = arena, .prefix = strlen(prefix)};
    if (page && page->token && *page->token)
        c.after = page->token;
    KN_TRY(kn_store_namespaces(core->store, prefix, note_child, &c, err));
    if (ns && !c.any) {
        bool found = false;
        KN_TRY(kn_store_namespace_exists(core->store, ns, &found, err));
        if (!found)
            return kn_err_about(err, KN_E_NOTFOUND, KN_ABOUT_NAMESPACE,
                                "Namespace does not exist: %s", ns);
    }
    sort_unique(&c);
    bool more = page && page->size && c.n > page->size;
    *ret = (KnNameList){.names = c.names,
                        .n = more ? page->size : c.n,
                        .next = more ? c.names[page->size - 1] : NULL};
    return KN_OK;
}

/* ---- one namespace ---- */

static KnCode check_location(const KnCatalogCore *core, const json_t *properties, KnErr *err)
{
    const char *location = json_string_value(json_object_get(properties, "location"));
    if (!location)
        return KN_OK;
    return kn_err_wrap(err, kn_core_check_location(core, kn_str(location), err),
                       "property location");
}

KnCode kn_core_namespace_create(KnCatalogCore *core, const KnNamespace *ns,
                                const json_t *properties, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnChange change = {.kind = KN_CHANGE_CREATE_NS, .event = -1, .properties = properties};
    KN_TRY(text_of(arena, ns, &change.name.ns, err));
    KN_TRY(kn_properties_check(properties, err));
    KN_TRY(check_location(core, properties, err));
    return kn_core_change(core, &change, 1, err);
}

KnCode kn_core_namespace_get(KnCatalogCore *core, const KnNamespace *ns, json_t **ret, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KN_JSON_AUTO properties = NULL;
    const char *text = NULL;
    bool found = true;
    KN_TRY(text_of(arena, ns, &text, err));
    KN_TRY(kn_store_namespace_get(core->store, text, &properties, err));
    if (!json_object_size(properties))
        KN_TRY(kn_store_namespace_exists(core->store, text, &found, err));
    if (!found)
        return kn_err_about(err, KN_E_NOTFOUND, KN_ABOUT_NAMESPACE, "Namespace does not exist: %s",
                            text);
    *ret = json_incref(properties);
    return KN_OK;
}

KnCode kn_core_namespace_exists(KnCatalogCore *core, const KnNamespace *ns, bool *ret, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    const char *text = NULL;
    KN_TRY(text_of(arena, ns, &text, err));
    return kn_store_namespace_exists(core->store, text, ret, err);
}

KnCode kn_core_namespace_drop(KnCatalogCore *core, const KnNamespace *ns, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KnChange change = {.kind = KN_CHANGE_DROP_NS, .event = -1};
    KN_TRY(text_of(arena, ns, &change.name.ns, err));
    return kn_core_change(core, &change, 1, err);
}

/* ---- properties ---- */

static KnCode check_update(const json_t *removals, const json_t *updates, KnErr *err)
{
    size_t i;
    json_t *key;
    KN_TRY(kn_properties_check(updates, err));
    json_array_foreach((json_t *)(uintptr_t)removals, i, key)
    {
        if (!json_is_string(key))
            return kn_err_set(err, KN_E_INVAL, "properties to remove are an array of names");
        if (json_object_get(updates, json_string_value(key)))
            return kn_err_about(err, KN_E_INVAL, KN_ABOUT_BOTH,
                                "Invalid namespace update, cannot simultaneously set and remove "
                                "keys: %.200s",
                                json_string_value(key));
    }
    return KN_OK;
}

/* What the update does to properties as they are. */
static json_t *report(const json_t *before, const json_t *removals, const json_t *updates)
{
    json_t *updated = json_array(), *removed = json_array(), *missing = json_array(), *value;
    const char *key;
    size_t i;
    json_object_foreach((json_t *)(uintptr_t)updates, key, value)
    {
        (void)json_array_append_new(updated, json_string(key));
    }
    json_array_foreach((json_t *)(uintptr_t)removals, i, value)
    {
        bool there = json_object_get(before, json_string_value(value)) != NULL;
        (void)json_array_append(there ? removed : missing, value);
    }
    return json_pack("{s:o, s:o, s:o}", "updated", updated, "removed", removed, "missing", missing);
}

KnCode kn_core_namespace_update(KnCatalogCore *core, const KnNamespace *ns, const json_t *removals,
                                const json_t *updates, json_t **ret, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(0);
    KN_JSON_AUTO before = NULL;
    KnChange change = {
        .kind = KN_CHANGE_UPDATE_NS, .event = -1, .properties = updates, .removals = removals};
    KN_TRY(text_of(arena, ns, &change.name.ns, err));
    KN_TRY(check_update(removals, updates, err));
    KN_TRY(check_location(core, updates, err));
    KN_TRY(kn_store_namespace_get(core->store, change.name.ns, &before, err));
    KN_TRY(kn_core_change(core, &change, 1, err));
    *ret = report(before, removals, updates);
    return *ret ? KN_OK : kn_err_set(err, KN_E_NOMEM, "memory is out");
}

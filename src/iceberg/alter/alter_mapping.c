/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alter_mapping.c - the property schema.name-mapping.default after a change of columns, as Java's
 * MappingUtil.update: a renamed column has its new name too, a new column gets a node below its
 * struct's, and a name that means another column now no longer leads to the old one. Nodes of
 * dropped columns stay: files without ids may still have them.
 */
#include <string.h>

#include "iceberg/alter/alter_internal.h"

typedef struct Mapping {
    const KnSchema *before, *now;
} Mapping;

static json_t *map_children(const Mapping *m, const KnNameMapping *node, const KnType *now);

static bool has_name(const KnNameMapping *node, const char *name)
{
    for (size_t i = 0; i < node->n_names; i++)
        if (strcmp(node->names[i], name) == 0)
            return true;
    return false;
}

static bool is_list_or_map(const KnType *type)
{
    return type->kind == KN_TYPE_LIST || type->kind == KN_TYPE_MAP;
}

/* A new column, with all that is in it. */
static json_t *node_of(const KnField *field)
{
    json_t *node = json_object();
    json_t *names = json_array();

    json_object_set_new(node, "field-id", json_integer(field->id));
    json_array_append_new(names, json_string(field->name));
    json_object_set_new(node, "names", names);
    if (field->type->n_fields > 0) {
        json_t *fields = json_array();
        for (size_t i = 0; i < field->type->n_fields; i++)
            json_array_append_new(fields, node_of(&field->type->fields[i]));
        json_object_set_new(node, "fields", fields);
    }
    return node;
}

/* The id that name was given to by this change, in this struct; -1 = none. */
static int32_t assigned_id(const Mapping *m, const KnType *now, const char *name)
{
    for (size_t i = 0; now && now->kind == KN_TYPE_STRUCT && i < now->n_fields; i++) {
        const KnField *field = &now->fields[i];
        const KnField *old = kn_schema_find_id(m->before, field->id);
        if (strcmp(field->name, name) == 0 && (!old || strcmp(old->name, name) != 0))
            return field->id;
    }
    return -1;
}

/* parent: the type that the node's column is in. */
static json_t *map_names(const Mapping *m, const KnNameMapping *node, const KnType *parent)
{
    const KnField *field = node->field_id >= 0 ? kn_schema_find_id(m->now, node->field_id) : NULL;
    json_t *names = json_array();

    for (size_t i = 0; i < node->n_names; i++) {
        int32_t other = assigned_id(m, parent, node->names[i]);
        if (other < 0 || other == node->field_id)
            json_array_append_new(names, json_string(node->names[i]));
    }
    if (field && !has_name(node, field->name) &&
        assigned_id(m, parent, field->name) == node->field_id)
        json_array_append_new(names, json_string(field->name));
    return names;
}

static json_t *map_node(const Mapping *m, const KnNameMapping *node, const KnType *parent)
{
    const KnField *field = node->field_id >= 0 ? kn_schema_find_id(m->now, node->field_id) : NULL;
    json_t *out = json_object();
    json_t *children = map_children(m, node, field ? field->type : NULL);

    if (node->field_id >= 0)
        json_object_set_new(out, "field-id", json_integer(node->field_id));
    json_object_set_new(out, "names", map_names(m, node, parent));
    if (json_array_size(children) > 0)
        json_object_set(out, "fields", children);
    json_decref(children);
    return out;
}

static bool is_new_in(const Mapping *m, const KnNameMapping *node, const KnField *field)
{
    if (kn_schema_find_id(m->before, field->id))
        return false;
    for (size_t i = 0; i < node->n_fields; i++)
        if (node->fields[i].field_id == field->id)
            return false;
    return true;
}

static json_t *map_children(const Mapping *m, const KnNameMapping *node, const KnType *now)
{
    json_t *list = json_array();

    for (size_t i = 0; i < node->n_fields; i++)
        json_array_append_new(list, map_node(m, &node->fields[i], now));
    for (size_t i = 0; now && !is_list_or_map(now) && i < now->n_fields; i++)
        if (is_new_in(m, node, &now->fields[i]))
            json_array_append_new(list, node_of(&now->fields[i]));
    return list;
}

json_t *kn_name_mapping_update(KnArena *arena, KnStr mapping, const KnSchema *before,
                               const KnSchema *now)
{
    const KnNameMapping *root;
    Mapping m = {before, now};
    KnErr ignored;

    if (kn_name_mapping_parse(arena, mapping, &root, &ignored) != KN_OK)
        return NULL;
    return map_children(&m, root, &now->root);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alter_tree.c - see alter_tree.h. Memory is the edit's arena; a column that was removed stays in
 * it, unlinked.
 */
#include "iceberg/alter/alter_tree.h"

#include <string.h>

#include "base/buf.h"

static KnColumn *new_column(KnArena *arena, KnColumn *parent, const KnField *field)
{
    KnColumn *col = kn_arena_zalloc(arena, sizeof(*col));

    col->field = *field;
    col->parent = parent;
    kn_column_set_type(arena, col, field->type);
    return col;
}

void kn_column_set_type(KnArena *arena, KnColumn *col, const KnType *type)
{
    KnColumn **end = &col->first;

    col->field.type = type;
    col->kind = type->kind;
    for (size_t i = 0; i < type->n_fields; i++) {
        *end = new_column(arena, col, &type->fields[i]);
        end = &(*end)->next;
    }
    *end = NULL;
}

KnColumn *kn_column_tree(KnArena *arena, const KnType *root)
{
    return new_column(arena, NULL, &(KnField){.id = -1, .name = "", .type = root});
}

const KnType *kn_column_type(KnArena *arena, const KnColumn *col)
{
    KnType *type;
    KnField *fields;
    size_t n = 0;

    if (!kn_type_is_nested(col->field.type))
        return col->field.type;
    for (const KnColumn *in = col->first; in; in = in->next)
        n++;
    type = kn_arena_zalloc(arena, sizeof(*type));
    fields = kn_arena_zalloc(arena, (n + 1) * sizeof(*fields));
    *type = (KnType){.kind = col->kind, .n_fields = n, .fields = fields};
    for (const KnColumn *in = col->first; in; in = in->next) {
        *fields = in->field;
        fields++->type = kn_column_type(arena, in);
    }
    return type;
}

/* ---- finding ---- */

static bool is_struct_holder(const KnColumn *col)
{
    return col->kind == KN_TYPE_STRUCT;
}

/* The element of a list, the value of a map. */
static const KnColumn *inner(const KnColumn *col)
{
    if (col->kind == KN_TYPE_LIST)
        return col->first;
    return col->kind == KN_TYPE_MAP ? col->first->next : NULL;
}

static KnColumn *find_below(const KnColumn *parent, KnStr path)
{
    const KnColumn *in = inner(parent);

    for (KnColumn *col = parent->first; col; col = col->next) {
        KnStr name = kn_str(col->field.name);
        KnColumn *found;
        if (kn_str_eq(name, path))
            return col;
        if (path.len <= name.len || path.ptr[name.len] != '.' || !kn_str_starts_with(path, name))
            continue;
        found = find_below(col, (KnStr){path.ptr + name.len + 1, path.len - name.len - 1});
        if (found)
            return found;
    }
    return in && is_struct_holder(in) ? find_below(in, path) : NULL;
}

KnColumn *kn_column_find(const KnColumn *root, const char *path)
{
    return find_below(root, kn_str(path));
}

KnColumn *kn_column_find_id(const KnColumn *root, int32_t id)
{
    for (KnColumn *col = root->first; col; col = col->next) {
        KnColumn *found = col->field.id == id ? col : kn_column_find_id(col, id);
        if (found)
            return found;
    }
    return NULL;
}

KnColumn *kn_column_find_child(const KnColumn *parent, const char *name)
{
    for (KnColumn *col = parent->first; col; col = col->next)
        if (strcmp(col->field.name, name) == 0)
            return col;
    return NULL;
}

const char *kn_column_path(KnArena *arena, const KnColumn *col)
{
    if (!col->parent || !col->parent->parent)
        return col->field.name;
    return kn_arena_printf(arena, "%s.%s", kn_column_path(arena, col->parent), col->field.name);
}

bool kn_column_in_map_key(const KnColumn *col)
{
    for (; col->parent; col = col->parent)
        if (col->parent->kind == KN_TYPE_MAP && col->parent->first == col)
            return true;
    return false;
}

/* ---- linking ---- */

KnColumn *kn_column_before(const KnColumn *col)
{
    KnColumn *before = NULL;

    for (KnColumn *at = col->parent->first; at && at != col; at = at->next)
        before = at;
    return before;
}

void kn_column_append(KnColumn *parent, KnColumn *col)
{
    KnColumn **end = &parent->first;

    while (*end)
        end = &(*end)->next;
    *end = col;
    col->parent = parent;
    col->next = NULL;
}

void kn_column_remove(KnColumn *col)
{
    KnColumn **at = &col->parent->first;

    while (*at != col)
        at = &(*at)->next;
    *at = col->next;
    col->next = NULL;
}

void kn_column_move(KnColumn *col, KnColumn *after)
{
    KnColumn **at;

    kn_column_remove(col);
    at = after ? &after->next : &col->parent->first;
    col->next = *at;
    *at = col;
}

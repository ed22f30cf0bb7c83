/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* alter_tree.h - a schema as a tree that can be changed, for alter_schema.c. */
#include "iceberg/alter/alter_internal.h"

/* A field, with what is in it as a list. The root stands for the schema and has no field. */
typedef struct KnColumn {
    KnField field; /* field.type is right only for types without fields; see kind */
    KnTypeKind kind;
    struct KnColumn *parent, *first, *next;
    bool added;
} KnColumn;

KnColumn *kn_column_tree(KnArena *arena, const KnType *root);
/** Replaces what is in col by the fields of type. */
void kn_column_set_type(KnArena *arena, KnColumn *col, const KnType *type);
/** The type of col as it is now. */
const KnType *kn_column_type(KnArena *arena, const KnColumn *col);

/** By full name; below a list or map of structs, "element" and "value" may be left out. */
KnColumn *kn_column_find(const KnColumn *root, const char *path);
KnColumn *kn_column_find_id(const KnColumn *root, int32_t id);
KnColumn *kn_column_find_child(const KnColumn *parent, const char *name);
const char *kn_column_path(KnArena *arena, const KnColumn *col);
bool kn_column_in_map_key(const KnColumn *col); /* is one, or is in one */

void kn_column_append(KnColumn *parent, KnColumn *col);
void kn_column_remove(KnColumn *col);
/** Behind after, which has the same parent; NULL = in front. */
void kn_column_move(KnColumn *col, KnColumn *after);
KnColumn *kn_column_before(const KnColumn *col); /* its predecessor or NULL */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alter_schema.c - changes of columns, by the rules of Java's SchemaUpdate (spec: "Schema
 * Evolution").
 *
 * The changes are made one after another on a tree; a new column gets the next id, and the fields
 * in it the ids after that, as createTable gives them. Ids are never used again: the count goes on
 * from the table's last-column-id. What only the end can tell (an identifier field that went, a
 * struct without fields) is checked at the end.
 *
 * Defaults: only columns of primitive types may have one. The specification would allow {} for a
 * struct, and Java's readers refuse to load such a table.
 */
#include <assert.h>
#include <string.h>

#include "iceberg/alter/alter_internal.h"
#include "iceberg/alter/alter_tree.h"
#include "iceberg/schema/type_internal.h"
#include "iceberg/schema/value.h"

struct KnSchemaEdit {
    KnArena *arena;
    KnSchemaBase base;
    KnColumn *root;
    int32_t last_id;
    size_t n_identifier_ids;
    const int32_t *identifier_ids;
    bool changed;
};

KnSchemaEdit *kn_schema_edit_new(KnArena *arena, const KnSchemaBase *base)
{
    KnSchemaEdit *edit = kn_arena_zalloc(arena, sizeof(*edit));

    *edit = (KnSchemaEdit){.arena = arena,
                           .base = *base,
                           .root = kn_column_tree(arena, &base->schema->root),
                           .last_id = base->last_column_id,
                           .n_identifier_ids = base->schema->n_identifier_ids,
                           .identifier_ids = base->schema->identifier_ids};
    return edit;
}

/* ---- looking up ---- */

static KnCode find_column(const KnSchemaEdit *edit, const char *verb, const char *path,
                          KnColumn **ret, KnErr *err)
{
    KnColumn *col = kn_column_find(edit->root, path);

    if (!col)
        return kn_err_set(err, KN_E_INVAL, "Cannot %s missing column: %s", verb, path);
    *ret = col;
    return KN_OK;
}

/* A column that may be changed in every way: a field of a struct. */
static KnCode find_field(const KnSchemaEdit *edit, const char *verb, const char *path,
                         KnColumn **ret, KnErr *err)
{
    KnColumn *col = NULL;

    KN_TRY(find_column(edit, verb, path, &col, err));
    assert(col);
    if (kn_column_in_map_key(col))
        return kn_err_set(err, KN_E_INVAL, "Cannot alter map keys: %s", path);
    if (col->parent->kind != KN_TYPE_STRUCT)
        return kn_err_set(err, KN_E_INVAL, "Cannot %s the %s of a %s: %s", verb, col->field.name,
                          col->parent->kind == KN_TYPE_LIST ? "list" : "map", path);
    *ret = col;
    return KN_OK;
}

static KnCode find_parent(const KnSchemaEdit *edit, const char *path, KnColumn **ret, KnErr *err)
{
    KnColumn *col = edit->root;
    char text[KN_TYPE_TEXT_MAX];

    if (path) {
        col = kn_column_find(edit->root, path);
        if (!col)
            return kn_err_set(err, KN_E_INVAL, "Cannot find parent struct: %s", path);
    }
    if (col->kind == KN_TYPE_LIST)
        col = col->first;
    else if (col->kind == KN_TYPE_MAP)
        col = col->first->next;
    if (col->kind != KN_TYPE_STRUCT)
        return kn_err_set(err, KN_E_INVAL, "Cannot add to non-struct column: %s: %s", path,
                          kn_type_text(col->field.type, text));
    if (kn_column_in_map_key(col))
        return kn_err_set(err, KN_E_INVAL, "Cannot add fields to map keys: %s", path);
    *ret = col;
    return KN_OK;
}

/* ---- defaults ---- */

static void drop_json(void *arg)
{
    json_decref(arg);
}

static const json_t *keep_json(const KnSchemaEdit *edit, json_t *json)
{
    kn_arena_defer(edit->arena, drop_json, json);
    return json;
}

static KnCode parse_default(const KnSchemaEdit *edit, const char *path, const KnType *type,
                            const char *literal, const json_t **ret, KnErr *err)
{
    KnValue value;
    KnCode rc;
    char text[KN_TYPE_TEXT_MAX];

    *ret = NULL;
    if (!literal)
        return KN_OK;
    if (edit->base.format_version < 3)
        return kn_err_set(err, KN_E_INVAL,
                          "Invalid default for %s: defaults are not supported until v3 (SET FORMAT "
                          "VERSION 3)",
                          path);
    if (kn_type_is_nested(type) || type->kind == KN_TYPE_UNKNOWN || type->kind == KN_TYPE_VARIANT ||
        type->kind == KN_TYPE_GEOMETRY || type->kind == KN_TYPE_GEOGRAPHY)
        return kn_err_set(err, KN_E_INVAL, "Invalid default value for %s: %s (must be null)", path,
                          kn_type_text(type, text));
    rc = kn_value_parse(edit->arena, type, kn_str(literal), &value, err);
    if (rc != KN_OK)
        return kn_err_wrap(err, rc, "Invalid default for %s", path);
    *ret = keep_json(edit, kn_value_to_json(type, &value));
    return KN_OK;
}

/* A date is midnight of that day. */
static KnCode promote_value(const KnType *to, KnValue *value, KnErr *err)
{
    int64_t scale = to->kind == KN_TYPE_TIMESTAMP ? 1000000 : 1000000000;

    if (__builtin_mul_overflow(value->i, 86400 * scale, &value->i))
        return kn_err_set(err, KN_E_INVAL, "the default is outside the range of timestamps");
    value->kind = to->kind;
    return KN_OK;
}

static KnCode promote_default(const KnSchemaEdit *edit, const KnType *from, const KnType *to,
                              const json_t **json, KnErr *err)
{
    KnValue value;

    if (!*json || from->kind != KN_TYPE_DATE)
        return KN_OK;
    KN_TRY(kn_value_from_json(edit->arena, from, *json, &value, err));
    KN_TRY(promote_value(to, &value, err));
    *json = keep_json(edit, kn_value_to_json(to, &value));
    return KN_OK;
}

/* ---- places ---- */

/* A neighbour is named as in the same struct, or by its full name. */
static KnCode find_beside(const KnSchemaEdit *edit, const KnColumn *col, const KnChange *change,
                          KnColumn **ret, KnErr *err)
{
    const char *word = change->place == KN_PLACE_AFTER ? "after" : "before";
    KnColumn *found = kn_column_find_child(col->parent, change->beside);

    if (!found)
        found = kn_column_find(edit->root, change->beside);
    if (!found)
        return kn_err_set(err, KN_E_INVAL, "Cannot move %s %s missing column: %s",
                          kn_column_path(edit->arena, col), word, change->beside);
    if (found == col)
        return kn_err_set(err, KN_E_INVAL, "Cannot move %s %s itself", col->field.name, word);
    if (found->parent != col->parent)
        return kn_err_set(err, KN_E_INVAL, "Cannot move field %s to a different struct",
                          kn_column_path(edit->arena, col));
    *ret = found;
    return KN_OK;
}

static KnCode place(KnSchemaEdit *edit, KnColumn *col, const KnChange *change, KnErr *err)
{
    KnColumn *after = NULL;

    if (change->place == KN_PLACE_LAST)
        return KN_OK;
    if (change->place != KN_PLACE_FIRST)
        KN_TRY(find_beside(edit, col, change, &after, err));
    if (change->place == KN_PLACE_BEFORE) {
        KnColumn *before = kn_column_before(after);
        after = before == col ? kn_column_before(col) : before;
    }
    kn_column_move(col, after);
    return KN_OK;
}

/* ---- one change of a column ---- */

static KnCode check_new(const KnSchemaEdit *edit, const KnColumn *parent, const KnChange *change,
                        const char *path, KnErr *err)
{
    if (kn_column_find_child(parent, change->column))
        return kn_err_set(err, KN_E_INVAL, "Cannot add column, name already exists: %s", path);
    if (change->required && change->type->kind == KN_TYPE_UNKNOWN)
        return kn_err_set(err, KN_E_INVAL, "Cannot create required field with unknown type: %s",
                          path);
    if (change->required && !change->literal && !edit->base.allow_incompatible)
        return kn_err_set(
            err, KN_E_INVAL,
            "Incompatible change: cannot add required column without a default "
            "value: %s (rows that exist would break it; --allow-incompatible insists)",
            path);
    return KN_OK;
}

static KnCode add_column(KnSchemaEdit *edit, const KnChange *change, KnErr *err)
{
    KnField field = {.name = change->column,
                     .required = change->required,
                     .type = change->type,
                     .doc = change->doc};
    KnSchema alone = {.root = {.kind = KN_TYPE_STRUCT, .n_fields = 1, .fields = &field}};
    const char *path = change->parent
                           ? kn_arena_printf(edit->arena, "%s.%s", change->parent, change->column)
                           : change->column;
    KnColumn *parent, *col;

    KN_TRY(find_parent(edit, change->parent, &parent, err));
    KN_TRY(check_new(edit, parent, change, path, err));
    KN_TRY(parse_default(edit, path, change->type, change->literal, &field.initial_default, err));
    field.write_default = field.initial_default;
    col = kn_column_tree(edit->arena,
                         &kn_schema_assign_ids(edit->arena, &alone, &edit->last_id)->root)
              ->first;
    col->added = true;
    kn_column_append(parent, col);
    return place(edit, col, change, err);
}

static KnCode drop_column(KnSchemaEdit *edit, const KnChange *change, int32_t *ret_id, KnErr *err)
{
    KnColumn *col;

    KN_TRY(find_field(edit, "delete", change->column, &col, err));
    *ret_id = col->field.id;
    kn_column_remove(col);
    return KN_OK;
}

static KnCode rename_column(KnColumn *col, const KnChange *change, KnErr *err)
{
    KnColumn *other = kn_column_find_child(col->parent, change->name);

    if (other && other != col)
        return kn_err_set(err, KN_E_INVAL, "Cannot rename %s to %s: name already exists",
                          change->column, change->name);
    col->field.name = change->name;
    return KN_OK;
}

/* A date's identity and bucket are others than those of its timestamp. */
static KnCode check_transforms(const KnSchemaEdit *edit, const KnColumn *col,
                               const KnChange *change, KnErr *err)
{
    if (col->kind != KN_TYPE_DATE)
        return KN_OK;
    for (size_t i = 0; i < edit->base.n_specs; i++) {
        for (size_t j = 0; j < edit->base.specs[i]->n_fields; j++) {
            const KnPartitionField *field = &edit->base.specs[i]->fields[j];
            if (field->source_id == col->field.id &&
                (field->transform.kind == KN_TRANSFORM_IDENTITY ||
                 field->transform.kind == KN_TRANSFORM_BUCKET))
                return kn_err_set(err, KN_E_INVAL,
                                  "Cannot change column type: %s: partition field %s of spec %d "
                                  "would have other values",
                                  change->column, field->name, edit->base.specs[i]->spec_id);
        }
    }
    return KN_OK;
}

static bool needs_v3(const KnColumn *col)
{
    return col->kind == KN_TYPE_UNKNOWN || col->kind == KN_TYPE_DATE;
}

static KnCode change_type(KnSchemaEdit *edit, KnColumn *col, const KnChange *change, KnErr *err)
{
    KnField field = {.name = "new", .type = change->type};
    KnSchema alone = {.root = {.kind = KN_TYPE_STRUCT, .n_fields = 1, .fields = &field}};
    const KnType *from = kn_column_type(edit->arena, col);
    char old_text[KN_TYPE_TEXT_MAX], new_text[KN_TYPE_TEXT_MAX];

    if (!kn_type_is_nested(from) && kn_type_equal(from, change->type))
        return KN_OK;
    if (kn_type_is_nested(from) || !kn_type_promotes(from, change->type) ||
        (needs_v3(col) && edit->base.format_version < 3))
        return kn_err_set(
            err, KN_E_INVAL, "Cannot change column type: %s: %s -> %s%s", change->column,
            kn_type_text(from, old_text), kn_type_text(change->type, new_text),
            needs_v3(col) && edit->base.format_version < 3 && kn_type_promotes(from, change->type)
                ? " (not until v3)"
                : "");
    KN_TRY(check_transforms(edit, col, change, err));
    KN_TRY(promote_default(edit, from, change->type, &col->field.initial_default, err));
    KN_TRY(promote_default(edit, from, change->type, &col->field.write_default, err));
    if (kn_type_is_nested(change->type)) {
        edit->last_id--; /* the field that stands in for the column takes no id */
        field.type = kn_schema_assign_ids(edit->arena, &alone, &edit->last_id)->root.fields[0].type;
    }
    kn_column_set_type(edit->arena, col, field.type);
    return KN_OK;
}

static KnCode change_required(KnSchemaEdit *edit, KnColumn *col, const KnChange *change, KnErr *err)
{
    bool defaulted = col->added && col->field.initial_default;

    if (col->field.required == change->required)
        return KN_OK;
    if (change->required && !defaulted && !edit->base.allow_incompatible)
        return kn_err_set(err, KN_E_INVAL,
                          "Cannot change column nullability: %s: optional -> required (rows that "
                          "exist may be NULL; --allow-incompatible insists)",
                          change->column);
    if (change->required && col->kind == KN_TYPE_UNKNOWN)
        return kn_err_set(err, KN_E_INVAL, "Cannot create required field with unknown type: %s",
                          change->column);
    col->field.required = change->required;
    return KN_OK;
}

/* Elements and values have a type and may be required; they have no name, comment or default. */
static KnCode find_for(const KnSchemaEdit *edit, const KnChange *change, KnColumn **ret, KnErr *err)
{
    switch (change->kind) {
    case KN_CHANGE_COLUMN_TYPE:
    case KN_CHANGE_COLUMN_REQUIRED:
        KN_TRY(find_column(edit, "update", change->column, ret, err));
        if (kn_column_in_map_key(*ret))
            return kn_err_set(err, KN_E_INVAL, "Cannot alter map keys: %s", change->column);
        return KN_OK;
    case KN_CHANGE_RENAME_COLUMN:
        return find_field(edit, "rename", change->column, ret, err);
    case KN_CHANGE_COLUMN_PLACE:
        return find_field(edit, "move", change->column, ret, err);
    default:
        return find_field(edit, "update", change->column, ret, err);
    }
}

static KnCode change_column(KnSchemaEdit *edit, const KnChange *change, int32_t *ret_id, KnErr *err)
{
    KnColumn *col;

    KN_TRY(find_for(edit, change, &col, err));
    *ret_id = col->added ? -1 : col->field.id;
    switch (change->kind) {
    case KN_CHANGE_RENAME_COLUMN:
        return rename_column(col, change, err);
    case KN_CHANGE_COLUMN_TYPE:
        return change_type(edit, col, change, err);
    case KN_CHANGE_COLUMN_REQUIRED:
        return change_required(edit, col, change, err);
    case KN_CHANGE_COLUMN_PLACE:
        return place(edit, col, change, err);
    case KN_CHANGE_COLUMN_DEFAULT:
        return parse_default(edit, change->column, col->field.type, change->literal,
                             &col->field.write_default, err);
    default:
        col->field.doc = change->doc[0] ? change->doc : NULL;
        return KN_OK;
    }
}

/* ---- identifier fields ---- */

static bool has_id(const int32_t *ids, size_t n, int32_t id)
{
    for (size_t i = 0; i < n; i++)
        if (ids[i] == id)
            return true;
    return false;
}

static KnCode set_identifier(KnSchemaEdit *edit, const KnChange *change, KnErr *err)
{
    int32_t *ids = kn_arena_zalloc(edit->arena, (change->n_names + 1) * sizeof(*ids));
    size_t n = 0;
    KnColumn *col;

    for (size_t i = 0; i < change->n_names; i++) {
        col = kn_column_find(edit->root, change->names[i]);
        if (!col)
            return kn_err_set(err, KN_E_INVAL,
                              "Cannot add field %s as an identifier field: not found in current "
                              "schema or added columns",
                              change->names[i]);
        if (!has_id(ids, n, col->field.id))
            ids[n++] = col->field.id;
    }
    edit->identifier_ids = ids;
    edit->n_identifier_ids = n;
    return KN_OK;
}

static KnCode drop_identifier(KnSchemaEdit *edit, const KnChange *change, KnErr *err)
{
    int32_t *ids = kn_arena_zalloc(edit->arena, (edit->n_identifier_ids + 1) * sizeof(*ids));
    size_t n = edit->n_identifier_ids;

    if (n > 0)
        memcpy(ids, edit->identifier_ids, n * sizeof(*ids));
    for (size_t i = 0; i < change->n_names; i++) {
        const KnColumn *col = kn_column_find(edit->root, change->names[i]);
        size_t at = 0;
        while (at < n && col && ids[at] != col->field.id)
            at++;
        if (!col || at == n)
            return kn_err_set(err, KN_E_INVAL, "Cannot drop identifier field %s: %s",
                              change->names[i], col ? "it is none" : "the column does not exist");
        memmove(&ids[at], &ids[at + 1], (n - at - 1) * sizeof(*ids));
        n--;
    }
    edit->identifier_ids = ids;
    edit->n_identifier_ids = n;
    return KN_OK;
}

KnCode kn_schema_edit_apply(KnSchemaEdit *edit, const KnChange *change, int32_t *ret_id, KnErr *err)
{
    *ret_id = -1;
    edit->changed = true;
    switch (change->kind) {
    case KN_CHANGE_ADD_COLUMN:
        return add_column(edit, change, err);
    case KN_CHANGE_DROP_COLUMN:
        return drop_column(edit, change, ret_id, err);
    case KN_CHANGE_SET_IDENTIFIER:
        return set_identifier(edit, change, err);
    case KN_CHANGE_DROP_IDENTIFIER:
        return drop_identifier(edit, change, err);
    default:
        return change_column(edit, change, ret_id, err);
    }
}

/* ---- the end ---- */

const KnSchema *kn_schema_edit_now(const KnSchemaEdit *edit)
{
    KnSchema *schema = kn_arena_alloc(edit->arena, sizeof(*schema));

    *schema = *edit->base.schema;
    schema->root = *kn_column_type(edit->arena, edit->root);
    schema->identifier_ids = edit->identifier_ids;
    schema->n_identifier_ids = edit->n_identifier_ids;
    return schema;
}

static KnCode check_structs(const KnSchemaEdit *edit, const KnColumn *col, KnErr *err)
{
    if (col->kind == KN_TYPE_STRUCT && !col->first && col->field.type->n_fields > 0)
        return kn_err_set(err, KN_E_INVAL, "Cannot delete the last column of %s%s",
                          col->parent ? "struct " : "the table",
                          col->parent ? kn_column_path(edit->arena, col) : "");
    for (const KnColumn *in = col->first; in; in = in->next)
        KN_TRY(check_structs(edit, in, err));
    return KN_OK;
}

static KnCode check_identifiers(const KnSchemaEdit *edit, KnErr *err)
{
    KN_BUF_AUTO name = {0};

    kn_buf_init(&name, (size_t)64 << 10);
    for (size_t i = 0; i < edit->n_identifier_ids; i++) {
        if (kn_column_find_id(edit->root, edit->identifier_ids[i]))
            continue;
        (void)kn_schema_full_name(edit->base.schema, edit->identifier_ids[i], &name);
        kn_buf_char(&name, '\0');
        return kn_err_set(err, KN_E_INVAL,
                          "Cannot delete identifier field %s: DROP IDENTIFIER FIELDS comes with it",
                          name.data);
    }
    return KN_OK;
}

KnCode kn_schema_edit_finish(const KnSchemaEdit *edit, const KnSchema **ret, KnErr *err)
{
    const KnSchema *schema;

    if (!edit->changed) {
        *ret = edit->base.schema;
        return KN_OK;
    }
    KN_TRY(check_structs(edit, edit->root, err));
    KN_TRY(check_identifiers(edit, err));
    schema = kn_schema_edit_now(edit);
    KN_TRY(kn_schema_check(schema, KN_E_INVAL, err));
    KN_TRY(kn_schema_check_format(schema, edit->base.format_version, err));
    *ret = schema;
    return KN_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alter_spec.c - changes of partition fields, by the rules of Java's BaseUpdatePartitionSpec.
 *
 * A field that goes is only marked: adding an equal one takes the mark away, v1 keeps it as void
 * under its id, and what has its name gets the name with the id behind it. A new field equal to one
 * of an older spec has that one's id (kn_metadata_apply() gives it) and, unless another is asked
 * for, its name.
 */
#include <string.h>

#include "iceberg/alter/alter_internal.h"
#include "iceberg/schema/partition_internal.h"

typedef struct Entry {
    KnPartitionField field;
    bool is_new, gone, renamed;
} Entry;

struct KnSpecEdit {
    KnArena *arena;
    const KnMetadata *md;
    int32_t format_version;
    Entry *entries;
    size_t n;
    bool changed;
};

KnCode kn_spec_edit_new(KnArena *arena, const KnMetadata *md, int32_t format_version,
                        KnSpecEdit **ret, KnErr *err)
{
    const KnPartitionSpec *spec = kn_metadata_spec(md);
    KnSpecEdit *edit = kn_arena_zalloc(arena, sizeof(*edit));

    edit->arena = arena;
    edit->md = md;
    edit->format_version = format_version;
    edit->entries = kn_arena_zalloc(arena, (spec->n_fields + 1) * sizeof(*edit->entries));
    edit->n = spec->n_fields;
    for (size_t i = 0; i < spec->n_fields; i++) {
        edit->entries[i].field = spec->fields[i];
        if (spec->fields[i].transform.kind == KN_TRANSFORM_UNKNOWN)
            return kn_err_set(err, KN_E_INVAL,
                              "Cannot update partition spec with unknown transform: %s(%s)",
                              spec->fields[i].transform.text, spec->fields[i].name);
    }
    *ret = edit;
    return KN_OK;
}

/* ---- looking up ---- */

static bool same_term(const KnPartitionField *a, const KnPartitionField *b)
{
    return a->source_id == b->source_id && strcmp(a->transform.text, b->transform.text) == 0;
}

static Entry *find_term(const KnSpecEdit *edit, const KnPartitionField *field)
{
    for (size_t i = 0; i < edit->n; i++)
        if (same_term(&edit->entries[i].field, field))
            return &edit->entries[i];
    return NULL;
}

static Entry *find_name(const KnSpecEdit *edit, const char *name)
{
    for (size_t i = 0; i < edit->n; i++)
        if (strcmp(edit->entries[i].field.name, name) == 0)
            return &edit->entries[i];
    return NULL;
}

/* ---- adding ---- */

static bool is_time(const KnTransform *t)
{
    return t->kind == KN_TRANSFORM_YEAR || t->kind == KN_TRANSFORM_MONTH ||
           t->kind == KN_TRANSFORM_DAY || t->kind == KN_TRANSFORM_HOUR;
}

/* As Java's PartitionNameGenerator; the builder of new tables has shorter names. */
static const char *default_name(KnArena *arena, const KnTerm *term)
{
    static const char *const words[] = {[KN_TRANSFORM_YEAR] = "year",
                                        [KN_TRANSFORM_MONTH] = "month",
                                        [KN_TRANSFORM_DAY] = "day",
                                        [KN_TRANSFORM_HOUR] = "hour",
                                        [KN_TRANSFORM_VOID] = "null"};

    switch (term->transform.kind) {
    case KN_TRANSFORM_IDENTITY:
        return term->column;
    case KN_TRANSFORM_BUCKET:
        return kn_arena_printf(arena, "%s_bucket_%d", term->column, term->transform.param);
    case KN_TRANSFORM_TRUNCATE:
        return kn_arena_printf(arena, "%s_trunc_%d", term->column, term->transform.param);
    default:
        return kn_arena_printf(arena, "%s_%s", term->column, words[term->transform.kind]);
    }
}

/* The name that an equal field has in another spec of the table, newest first. */
static const char *name_before(const KnSpecEdit *edit, const KnPartitionField *field)
{
    if (edit->format_version < 2)
        return NULL;
    for (size_t i = edit->md->n_specs; i-- > 0;)
        for (size_t j = 0; j < edit->md->specs[i]->n_fields; j++)
            if (same_term(&edit->md->specs[i]->fields[j], field))
                return edit->md->specs[i]->fields[j].name;
    return NULL;
}

static const char *name_with_id(const KnSpecEdit *edit, const KnPartitionField *field)
{
    return kn_arena_printf(edit->arena, "%s_%d", field->name, field->field_id);
}

/* The name is free, or is made so: a field that goes, or is void, gives it up. */
static KnCode free_name(const KnSpecEdit *edit, const char *name, KnErr *err)
{
    Entry *taken = find_name(edit, name);

    if (!taken)
        return KN_OK;
    if (!taken->gone && taken->field.transform.kind != KN_TRANSFORM_VOID)
        return kn_err_set(err, KN_E_INVAL, "Cannot add duplicate partition field name: %s", name);
    taken->field.name = name_with_id(edit, &taken->field);
    return free_name(edit, name, err);
}

static KnCode check_redundant(const KnSpecEdit *edit, const KnPartitionField *field, KnErr *err)
{
    for (size_t i = 0; is_time(&field->transform) && i < edit->n; i++) {
        const Entry *entry = &edit->entries[i];
        if (entry->is_new && entry->field.source_id == field->source_id &&
            is_time(&entry->field.transform))
            return kn_err_set(err, KN_E_INVAL,
                              "Cannot add redundant partition field: %s conflicts with %s",
                              entry->field.name, field->name);
    }
    return KN_OK;
}

/* The same field again: it stays, perhaps by another name. */
static KnCode bring_back(KnSpecEdit *edit, Entry *entry, const char *name, KnErr *err)
{
    if (name && strcmp(entry->field.name, name) != 0) {
        KN_TRY(free_name(edit, name, err));
        entry->field.name = name;
    }
    entry->gone = false;
    return KN_OK;
}

static void push_field(KnSpecEdit *edit, const KnPartitionField *field)
{
    Entry *entries = kn_arena_zalloc(edit->arena, (edit->n + 2) * sizeof(*entries));

    memcpy(entries, edit->entries, edit->n * sizeof(*entries));
    entries[edit->n++] = (Entry){.field = *field, .is_new = true};
    edit->entries = entries;
}

static KnCode bind(const KnSchema *schema, const KnTerm *term, KnPartitionField *ret, KnErr *err)
{
    const KnField *source;

    KN_TRY(kn_term_bind(term, schema, &source, err));
    *ret = (KnPartitionField){.source_id = source->id, .transform = term->transform};
    return KN_OK;
}

static KnCode add_field(KnSpecEdit *edit, const KnSchema *schema, const KnTerm *term,
                        const char *name, KnErr *err)
{
    KnPartitionField field;
    Entry *equal;

    KN_TRY(bind(schema, term, &field, err));
    equal = find_term(edit, &field);
    if (equal && equal->gone)
        return bring_back(edit, equal, name, err);
    field.name = name ? name : name_before(edit, &field);
    if (!field.name)
        field.name = default_name(edit->arena, term);
    if (equal)
        return kn_err_set(err, KN_E_INVAL,
                          "Cannot add duplicate partition field %s=%s(%s), conflicts with %s",
                          field.name, term->transform.text, term->column, equal->field.name);
    KN_TRY(check_redundant(edit, &field, err));
    KN_TRY(free_name(edit, field.name, err));
    push_field(edit, &field);
    return KN_OK;
}

/* ---- taking away ---- */

static KnCode check_removable(const Entry *entry, const KnTerm *term, KnErr *err)
{
    if (!entry || entry->gone)
        return kn_err_set(err, KN_E_INVAL, "Cannot find partition field to remove: %s%s%s%s",
                          term->call ? term->transform.text : "", term->call ? "(" : "",
                          term->column, term->call ? ")" : "");
    if (entry->is_new)
        return kn_err_set(err, KN_E_INVAL, "Cannot delete newly added field: %s",
                          entry->field.name);
    if (entry->renamed)
        return kn_err_set(err, KN_E_INVAL, "Cannot rename and delete partition field: %s",
                          entry->field.name);
    return KN_OK;
}

/* As Spark: a bare word that is no column, or whose identity is no partition field, is the name of
 * a partition field. */
static KnCode remove_field(KnSpecEdit *edit, const KnSchema *schema, const KnTerm *term, KnErr *err)
{
    KnPartitionField field;
    Entry *entry = NULL;

    if (term->call || kn_schema_find_name(schema, kn_str(term->column))) {
        KN_TRY(bind(schema, term, &field, err));
        entry = find_term(edit, &field);
    }
    if (!entry && !term->call)
        entry = find_name(edit, term->column);
    KN_TRY(check_removable(entry, term, err));
    entry->gone = true;
    return KN_OK;
}

static KnCode rename_field(KnSpecEdit *edit, const KnChange *change, KnErr *err)
{
    Entry *entry = find_name(edit, change->column);

    if (!entry || entry->gone)
        return kn_err_set(err, KN_E_INVAL, "Cannot find partition field to rename: %s",
                          change->column);
    if (entry->is_new)
        return kn_err_set(err, KN_E_INVAL, "Cannot rename newly added partition field: %s",
                          change->column);
    if (strcmp(change->column, change->name) == 0)
        return KN_OK;
    KN_TRY(free_name(edit, change->name, err));
    entry->field.name = change->name;
    entry->renamed = true;
    return KN_OK;
}

KnCode kn_spec_edit_apply(KnSpecEdit *edit, const KnSchema *schema, const KnChange *change,
                          KnErr *err)
{
    edit->changed = true;
    switch (change->kind) {
    case KN_CHANGE_ADD_PARTITION:
        return add_field(edit, schema, &change->term, change->name, err);
    case KN_CHANGE_DROP_PARTITION:
        return remove_field(edit, schema, &change->term, err);
    case KN_CHANGE_REPLACE_PARTITION:
        KN_TRY(remove_field(edit, schema, &change->term, err));
        return add_field(edit, schema, &change->with, change->name, err);
    default:
        return rename_field(edit, change, err);
    }
}

/* ---- the end ---- */

static KnCode add_final(const Entry *entry, int32_t format_version, KnPartitionField *fields,
                        size_t *n, KnErr *err)
{
    if (entry->gone && format_version >= 2)
        return KN_OK;
    for (size_t i = 0; i < *n; i++)
        if (strcmp(fields[i].name, entry->field.name) == 0)
            return kn_err_set(err, KN_E_INVAL, "Cannot use partition name more than once: %s",
                              entry->field.name);
    fields[*n] = entry->field;
    if (entry->gone)
        fields[*n].transform = (KnTransform){.kind = KN_TRANSFORM_VOID, .text = "void"};
    ++*n;
    return KN_OK;
}

KnCode kn_spec_edit_finish(const KnSpecEdit *edit, const KnPartitionSpec **ret, KnErr *err)
{
    KnPartitionSpec *spec = kn_arena_zalloc(edit->arena, sizeof(*spec));
    KnPartitionField *fields = kn_arena_zalloc(edit->arena, (edit->n + 1) * sizeof(*fields));
    size_t n = 0;

    if (!edit->changed) {
        *ret = kn_metadata_spec(edit->md);
        return KN_OK;
    }
    for (size_t i = 0; i < edit->n; i++)
        KN_TRY(add_final(&edit->entries[i], edit->format_version, fields, &n, err));
    spec->fields = fields;
    spec->n_fields = n;
    *ret = spec;
    return KN_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * default_sql.c - the default of a field as SQL (spec: "Default values"; appendix D: "JSON
 * single-value serialization").
 *
 * A struct's default names only some of its fields, none by the specification's own rule: the
 * others take theirs. Lists are arrays, maps {"keys": [...], "values": [...]}, structs objects by
 * field id.
 */
#include <stdio.h>

#include "base/json.h"
#include "engine/engine.h"
#include "iceberg/schema/value_internal.h"

typedef struct Defaults {
    KnArena *arena;
    KnBuf *buf;
    bool write; /* the write default, not the initial one */
} Defaults;

static KnCode put_value(Defaults *d, const KnType *type, const json_t *json, KnErr *err);

static KnCode put_null(Defaults *d, const KnType *type, KnErr *err)
{
    kn_buf_text(d->buf, "CAST(NULL AS ");
    KN_TRY(kn_type_sql(d->buf, type, err));
    kn_buf_char(d->buf, ')');
    return KN_OK;
}

static const json_t *default_of(const Defaults *d, const KnField *field)
{
    return d->write ? field->write_default : field->initial_default;
}

static KnCode put_field(Defaults *d, const KnField *field, const json_t *json, KnErr *err)
{
    if (!json)
        json = default_of(d, field);
    if (json && !json_is_null(json))
        return put_value(d, field->type, json, err);
    if (field->required)
        return kn_err_set(err, KN_E_CORRUPT,
                          "field '%.100s' (id %d) is required and has no default", field->name,
                          field->id);
    return put_null(d, field->type, err);
}

static KnCode put_struct(Defaults *d, const KnType *type, const json_t *json, KnErr *err)
{
    char id[16];

    if (!json_is_object(json) || type->n_fields == 0)
        return kn_err_set(err, KN_E_CORRUPT, "the default of a struct is no object");
    kn_buf_text(d->buf, "struct_pack(");
    for (size_t i = 0; i < type->n_fields; i++) {
        const KnField *field = &type->fields[i];
        (void)snprintf(id, sizeof(id), "%d", field->id);
        kn_buf_text(d->buf, i > 0 ? ", " : "");
        kn_sql_ident(d->buf, kn_str(field->name));
        kn_buf_text(d->buf, " := ");
        KN_TRY(put_field(d, field, json_object_get(json, id), err));
    }
    kn_buf_char(d->buf, ')');
    return KN_OK;
}

/* "[a, b]", each as a value of field. */
static KnCode put_array(Defaults *d, const KnField *field, const json_t *json, KnErr *err)
{
    if (!json_is_array(json))
        return kn_err_set(err, KN_E_CORRUPT, "the default of a list or map is no array");
    kn_buf_char(d->buf, '[');
    for (size_t i = 0; i < json_array_size(json); i++) {
        kn_buf_text(d->buf, i > 0 ? ", " : "");
        KN_TRY(put_field(d, field, json_array_get(json, i), err));
    }
    kn_buf_char(d->buf, ']');
    return KN_OK;
}

static KnCode put_map(Defaults *d, const KnType *type, const json_t *json, KnErr *err)
{
    const json_t *keys = json_object_get(json, "keys");
    const json_t *values = json_object_get(json, "values");

    if (json_array_size(keys) != json_array_size(values))
        return kn_err_set(err, KN_E_CORRUPT, "the default of a map has not as many values as keys");
    kn_buf_text(d->buf, "map(");
    KN_TRY(put_array(d, &type->fields[0], keys, err));
    kn_buf_text(d->buf, ", ");
    KN_TRY(put_array(d, &type->fields[1], values, err));
    kn_buf_char(d->buf, ')');
    return KN_OK;
}

static KnCode put_value(Defaults *d, const KnType *type, const json_t *json, KnErr *err)
{
    KnValue value;

    if (type->kind == KN_TYPE_STRUCT)
        return put_struct(d, type, json, err);
    if (!kn_type_is_nested(type)) {
        KN_TRY(kn_value_from_json(d->arena, type, json, &value, err));
        return kn_value_sql(d->buf, type, &value, err);
    }
    /* An empty array has no type of its own. */
    kn_buf_text(d->buf, "CAST(");
    if (type->kind == KN_TYPE_LIST)
        KN_TRY(put_array(d, &type->fields[0], json, err));
    else
        KN_TRY(put_map(d, type, json, err));
    kn_buf_text(d->buf, " AS ");
    KN_TRY(kn_type_sql(d->buf, type, err));
    kn_buf_char(d->buf, ')');
    return KN_OK;
}

KnCode kn_default_sql(KnArena *arena, const KnField *field, bool write, KnBuf *buf, KnErr *err)
{
    Defaults d = {arena, buf, write};

    return put_field(&d, field, NULL, err);
}

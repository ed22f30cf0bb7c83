/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alter_properties.c - table properties that follow a change of columns: the name mapping, and
 * settings whose key ends with a column's name (Java: SchemaUpdate.applyChangesToMetadata).
 */
#include <string.h>

#include "iceberg/alter/alter_internal.h"

#define NAME_MAPPING "schema.name-mapping.default"

static const char *const column_settings[] = {"write.metadata.metrics.column.",
                                              "write.parquet.bloom-filter-enabled.column.",
                                              "write.parquet.stats-enabled.column."};

static KnCode set(json_t *properties, const char *key, json_t *value, KnErr *err)
{
    if (json_object_set_new(properties, key, value) != 0)
        return kn_err_set(err, KN_E_NOMEM, "property '%s': memory is out", key);
    return KN_OK;
}

/* The prefix of column_settings that key begins with, or NULL. */
static const char *setting_of(const char *key)
{
    for (size_t i = 0; i < sizeof(column_settings) / sizeof(column_settings[0]); i++)
        if (strncmp(key, column_settings[i], strlen(column_settings[i])) == 0)
            return column_settings[i];
    return NULL;
}

static KnCode follow_setting(const KnMetadata *md, const KnSchema *now, const char *key,
                             json_t *properties, KnErr *err)
{
    const char *prefix = setting_of(key);
    KN_BUF_AUTO moved = {0};
    const KnField *field;

    if (!prefix)
        return KN_OK;
    field = kn_schema_find_name(kn_metadata_schema(md), kn_str(key + strlen(prefix)));
    if (!field)
        return KN_OK;
    kn_buf_init(&moved, (size_t)64 << 10);
    kn_buf_text(&moved, prefix);
    if (kn_schema_full_name(now, field->id, &moved)) {
        kn_buf_char(&moved, '\0');
        KN_TRY(kn_buf_check(&moved, err));
        if (strcmp(moved.data, key) == 0)
            return KN_OK;
        KN_TRY(set(properties, moved.data, json_incref(json_object_get(md->properties, key)), err));
    }
    if (!json_is_string(json_object_get(properties, key)))
        return set(properties, key, json_null(), err);
    return KN_OK;
}

static KnCode follow_mapping(KnArena *arena, const KnMetadata *md, const KnSchema *now,
                             json_t *properties, KnErr *err)
{
    const char *text = kn_metadata_property(md, NAME_MAPPING, NULL);
    KN_BUF_AUTO out = {0};
    KN_JSON_AUTO mapping = NULL;
    KN_JSON_AUTO before = NULL;

    if (text)
        mapping = kn_name_mapping_update(arena, kn_str(text), kn_metadata_schema(md), now);
    if (!mapping)
        return KN_OK;
    if (kn_json_parse(text, strlen(text), &before, NULL) == KN_OK && json_equal(before, mapping))
        return KN_OK;
    kn_buf_init(&out, (size_t)64 << 20);
    kn_json_dump(&out, mapping);
    KN_TRY(kn_buf_check(&out, err));
    return set(properties, NAME_MAPPING, json_stringn(out.data, out.len), err);
}

KnCode kn_alter_follow_columns(KnArena *arena, const KnMetadata *md, const KnSchema *now,
                               json_t *properties, KnErr *err)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)md->properties, key, value)
        KN_TRY(follow_setting(md, now, key, properties, err));
    return follow_mapping(arena, md, now, properties, err);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metadata_create.c - the first document of a table.
 *
 * All ids are given anew, whatever the caller's schema says: columns breadth first from 1,
 * partition fields from 1000, schema and spec 0, sort order 1 (0 when unsorted). The rest is a
 * commit on no table, so creating and committing cannot differ. Reserved properties, which Java
 * keeps out of the document because they only carry settings of the create call, are left out.
 */
#include <string.h>

#include "iceberg/metadata/metadata.h"
#include "iceberg/metadata/metadata_internal.h"
#include "iceberg/schema/type_internal.h"

static const char *const reserved[] = {"format-version",        "uuid",
                                       "snapshot-count",        "current-snapshot-id",
                                       "current-schema",        "current-snapshot-summary",
                                       "default-sort-order",    "current-snapshot-timestamp-ms",
                                       "default-partition-spec"};

/* The new id of old_id: both types have the same shape. 0 = not there. */
static int32_t map_id(const KnType *before, const KnType *after, int32_t old_id)
{
    for (size_t i = 0; i < before->n_fields; i++) {
        if (before->fields[i].id == old_id)
            return after->fields[i].id;
        int32_t inner = map_id(before->fields[i].type, after->fields[i].type, old_id);
        if (inner)
            return inner;
    }
    return 0;
}

static KnCode map_spec(KnArena *arena, const KnCreateTable *create, const KnSchema *schema,
                       KnPartitionSpec *ret, KnErr *err)
{
    KnPartitionField *fields;

    if (!create->spec)
        return KN_OK;
    fields = kn_arena_zalloc(arena, (create->spec->n_fields + 1) * sizeof(*fields));
    for (size_t i = 0; i < create->spec->n_fields; i++) {
        fields[i] = create->spec->fields[i];
        fields[i].field_id = 0;
        fields[i].source_id = map_id(&create->schema->root, &schema->root, fields[i].source_id);
        if (fields[i].source_id == 0)
            return kn_err_set(err, KN_E_INVAL, "Cannot find source column for partition field: %s",
                              fields[i].name);
    }
    ret->n_fields = create->spec->n_fields;
    ret->fields = fields;
    return KN_OK;
}

static KnCode map_order(KnArena *arena, const KnCreateTable *create, const KnSchema *schema,
                        KnSortOrder *ret, KnErr *err)
{
    KnSortField *fields;

    if (!create->sort_order)
        return KN_OK;
    fields = kn_arena_zalloc(arena, (create->sort_order->n_fields + 1) * sizeof(*fields));
    for (size_t i = 0; i < create->sort_order->n_fields; i++) {
        fields[i] = create->sort_order->fields[i];
        fields[i].source_id = map_id(&create->schema->root, &schema->root, fields[i].source_id);
        if (fields[i].source_id == 0)
            return kn_err_set(err, KN_E_INVAL, "Cannot find source column for sort field %zu", i);
    }
    ret->n_fields = create->sort_order->n_fields;
    ret->fields = fields;
    return KN_OK;
}

static json_t *unreserved(const json_t *properties)
{
    json_t *copy = properties ? json_copy((json_t *)properties) : json_object();

    for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++)
        json_object_del(copy, reserved[i]);
    return copy;
}

KnCode kn_metadata_create(const KnCreateTable *create, KnMetadata **ret, KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    KN_JSON_AUTO properties = unreserved(create->properties);
    KnPartitionSpec spec = {0};
    KnSortOrder order = {0};
    KnSchema *schema;
    int32_t last_id = 0;

    if (create->format_version < 1 || create->format_version > KN_FORMAT_VERSION_MAX)
        return kn_err_set(err, KN_E_INVAL, "Unsupported format version: v%d (supported: v%d)",
                          create->format_version, KN_FORMAT_VERSION_MAX);
    KN_TRY(kn_schema_check(create->schema, KN_E_INVAL, err));
    schema = kn_schema_assign_ids(arena, create->schema, &last_id);
    KN_TRY(map_spec(arena, create, schema, &spec, err));
    KN_TRY(map_order(arena, create, schema, &order, err));
    const KnUpdate updates[] = {
        {.kind = KN_UPDATE_UPGRADE_FORMAT_VERSION, .number = create->format_version},
        {.kind = KN_UPDATE_SET_LOCATION, .text = create->location},
        {.kind = KN_UPDATE_ADD_SCHEMA, .schema = schema},
        {.kind = KN_UPDATE_SET_CURRENT_SCHEMA, .number = -1},
        {.kind = KN_UPDATE_ADD_SPEC, .spec = &spec},
        {.kind = KN_UPDATE_SET_DEFAULT_SPEC, .number = -1},
        {.kind = KN_UPDATE_ADD_SORT_ORDER, .sort_order = &order},
        {.kind = KN_UPDATE_SET_DEFAULT_SORT_ORDER, .number = -1},
        {.kind = KN_UPDATE_SET_PROPERTIES, .properties = properties},
    };
    return kn_metadata_apply(NULL, updates, sizeof(updates) / sizeof(updates[0]), NULL, ret, err);
}

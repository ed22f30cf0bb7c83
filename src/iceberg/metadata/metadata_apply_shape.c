/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metadata_apply_shape.c - updates of schemas, partition specs and sort orders.
 *
 * What is added and exists already (ids aside) is not added again: its id is used. A partition
 * field's id stands for one source and transform in all specs of a table, so an equal field gets
 * the id that it had.
 */
#include <string.h>

#include "iceberg/metadata/metadata_builder.h"
#include "iceberg/metadata/metadata_internal.h"
#include "iceberg/schema/partition_internal.h"
#include "iceberg/schema/type_internal.h"

static bool has_id(const int64_t *ids, size_t n, int64_t id)
{
    for (size_t i = 0; i < n; i++)
        if (ids[i] == id)
            return true;
    return false;
}

/* ---- schemas ---- */

static bool same_identifiers(const KnSchema *a, const KnSchema *b)
{
    if (a->n_identifier_ids != b->n_identifier_ids)
        return false;
    for (size_t i = 0; i < a->n_identifier_ids; i++) {
        bool found = false;
        for (size_t j = 0; j < b->n_identifier_ids && !found; j++)
            found = a->identifier_ids[i] == b->identifier_ids[j];
        if (!found)
            return false;
    }
    return true;
}

static int32_t reuse_schema_id(const KnBuilder *b, const KnSchema *schema, bool *ret_found)
{
    int32_t id = b->md.current_schema_id < 0 ? 0 : b->md.current_schema_id;

    *ret_found = true;
    for (size_t i = 0; i < b->md.n_schemas; i++) {
        if (kn_type_equal(&b->schemas[i]->root, &schema->root) &&
            same_identifiers(b->schemas[i], schema))
            return b->schemas[i]->schema_id;
        if (b->schemas[i]->schema_id >= id)
            id = b->schemas[i]->schema_id + 1;
    }
    *ret_found = false;
    return id;
}

KnCode kn_builder_add_schema(KnBuilder *b, const KnSchema *schema, KnErr *err)
{
    int32_t highest = kn_schema_highest_id(schema);
    bool found;

    KN_TRY(kn_schema_check(schema, KN_E_INVAL, err));
    KN_TRY(kn_schema_check_format(schema, b->md.format_version, err));
    b->last_schema_id = reuse_schema_id(b, schema, &found);
    if (highest > b->md.last_column_id) {
        b->md.last_column_id = highest;
        b->changed = true;
    }
    if (found)
        return KN_OK;
    KnSchema *copy = kn_arena_alloc(b->arena, sizeof(*copy));
    *copy = *schema;
    copy->schema_id = b->last_schema_id;
    b->schemas[b->md.n_schemas++] = copy;
    b->changed = true;
    return KN_OK;
}

KnCode kn_builder_set_schema(KnBuilder *b, int64_t id, KnErr *err)
{
    if (id == -1 && b->last_schema_id == KN_NOT_ADDED)
        return kn_err_set(err, KN_E_INVAL,
                          "Cannot set last added schema: no schema has been added");
    if (id == -1)
        id = b->last_schema_id;
    if (id < 0 || id > INT32_MAX || !kn_metadata_find_schema(&b->md, (int32_t)id))
        return kn_err_set(err, KN_E_INVAL, "Cannot set current schema to unknown schema: %lld",
                          (long long)id);
    b->changed |= b->md.current_schema_id != id;
    b->md.current_schema_id = (int32_t)id;
    return KN_OK;
}

KnCode kn_builder_remove_schemas(KnBuilder *b, const KnUpdate *u, KnErr *err)
{
    size_t kept = 0;

    if (has_id(u->ids, u->n_ids, b->md.current_schema_id))
        return kn_err_set(err, KN_E_INVAL, "Cannot remove the current schema");
    for (size_t i = 0; i < b->md.n_schemas; i++)
        if (!has_id(u->ids, u->n_ids, b->schemas[i]->schema_id))
            b->schemas[kept++] = b->schemas[i];
    b->changed |= kept != b->md.n_schemas;
    b->md.n_schemas = kept;
    return KN_OK;
}

/* ---- partition specs ---- */

static bool same_partition(const KnPartitionField *a, const KnPartitionField *b)
{
    return a->source_id == b->source_id && strcmp(a->transform.text, b->transform.text) == 0;
}

/* The id that an equal field has in any spec; 0 = none. *ret_taken: another field has id. */
static int32_t find_partition_id(const KnBuilder *b, const KnPartitionField *field, bool *ret_taken)
{
    int32_t equal = 0;

    *ret_taken = false;
    for (size_t i = 0; i < b->md.n_specs; i++) {
        for (size_t j = 0; j < b->specs[i]->n_fields; j++) {
            const KnPartitionField *other = &b->specs[i]->fields[j];
            if (same_partition(other, field) && other->field_id > equal)
                equal = other->field_id;
            else if (other->field_id == field->field_id && !same_partition(other, field))
                *ret_taken = true;
        }
    }
    return equal;
}

/* v1 numbers fields by position, and a field that is gone stays as void under its id. */
static void assign_partition_ids(const KnBuilder *b, KnPartitionField *fields, size_t n)
{
    int32_t last = b->md.last_partition_id;

    for (size_t i = 0; i < n; i++)
        if (fields[i].field_id > last)
            last = fields[i].field_id;
    for (size_t i = 0; i < n; i++) {
        bool taken;
        if (b->md.format_version == 1) {
            if (fields[i].field_id == 0)
                fields[i].field_id = KN_PARTITION_ID_FIRST + (int32_t)i;
            continue;
        }
        int32_t equal = find_partition_id(b, &fields[i], &taken);
        if (fields[i].field_id == 0 || (taken && fields[i].transform.kind != KN_TRANSFORM_VOID))
            fields[i].field_id = equal ? equal : ++last;
    }
}

static int32_t reuse_spec_id(const KnBuilder *b, const KnPartitionSpec *spec, bool *ret_found)
{
    int32_t id = 0;

    *ret_found = true;
    for (size_t i = 0; i < b->md.n_specs; i++) {
        if (kn_partition_spec_compatible(b->specs[i], spec))
            return b->specs[i]->spec_id;
        if (b->specs[i]->spec_id >= id)
            id = b->specs[i]->spec_id + 1;
    }
    *ret_found = false;
    return id;
}

static const KnSchema *binding_schema(const KnBuilder *b)
{
    const KnSchema *schema = kn_metadata_schema(&b->md);

    return schema || b->md.n_schemas == 0 ? schema : b->schemas[0];
}

KnCode kn_builder_add_spec(KnBuilder *b, const KnPartitionSpec *spec, KnErr *err)
{
    const KnSchema *schema = binding_schema(b);
    KnPartitionSpec *copy = kn_arena_alloc(b->arena, sizeof(*copy));
    KnPartitionField *fields = kn_arena_zalloc(b->arena, (spec->n_fields + 1) * sizeof(*fields));
    int32_t last;
    bool found;

    if (!schema)
        return kn_err_set(err, KN_E_INVAL, "Cannot add a partition spec before a schema is added");
    KN_TRY(kn_partition_spec_check(spec, schema, err));
    b->last_spec_id = reuse_spec_id(b, spec, &found);
    if (found)
        return KN_OK;
    if (spec->n_fields > 0)
        memcpy(fields, spec->fields, spec->n_fields * sizeof(*fields));
    assign_partition_ids(b, fields, spec->n_fields);
    *copy = (KnPartitionSpec){b->last_spec_id, spec->n_fields, fields};
    if (b->md.format_version == 1 && !kn_partition_spec_sequential(copy))
        return kn_err_set(err, KN_E_INVAL,
                          "Spec does not use sequential IDs that are required in v1");
    last = kn_partition_last_id(copy);
    if (last > b->md.last_partition_id)
        b->md.last_partition_id = last;
    b->specs[b->md.n_specs++] = copy;
    b->changed = true;
    return KN_OK;
}

KnCode kn_builder_set_spec(KnBuilder *b, int64_t id, KnErr *err)
{
    if (id == -1 && b->last_spec_id == KN_NOT_ADDED)
        return kn_err_set(err, KN_E_INVAL, "Cannot set last added spec: no spec has been added");
    if (id == -1)
        id = b->last_spec_id;
    if (id < 0 || id > INT32_MAX || !kn_metadata_find_spec(&b->md, (int32_t)id))
        return kn_err_set(err, KN_E_INVAL,
                          "Cannot set default partition spec to unknown spec: %lld", (long long)id);
    b->changed |= b->md.default_spec_id != id;
    b->md.default_spec_id = (int32_t)id;
    return KN_OK;
}

KnCode kn_builder_remove_specs(KnBuilder *b, const KnUpdate *u, KnErr *err)
{
    size_t kept = 0;

    if (has_id(u->ids, u->n_ids, b->md.default_spec_id))
        return kn_err_set(err, KN_E_INVAL, "Cannot remove the default partition spec");
    for (size_t i = 0; i < b->md.n_specs; i++)
        if (!has_id(u->ids, u->n_ids, b->specs[i]->spec_id))
            b->specs[kept++] = b->specs[i];
    b->changed |= kept != b->md.n_specs;
    b->md.n_specs = kept;
    return KN_OK;
}

/* ---- sort orders ---- */

static int32_t reuse_order_id(const KnBuilder *b, const KnSortOrder *order, bool *ret_found)
{
    int32_t id = order->n_fields > 0 ? 1 : 0;

    *ret_found = true;
    for (size_t i = 0; i < b->md.n_sort_orders; i++) {
        if (kn_sort_order_equal(b->sort_orders[i], order))
            return b->sort_orders[i]->order_id;
        if (order->n_fields > 0 && b->sort_orders[i]->order_id >= id)
            id = b->sort_orders[i]->order_id + 1;
    }
    *ret_found = false;
    return id;
}

KnCode kn_builder_add_order(KnBuilder *b, const KnSortOrder *order, KnErr *err)
{
    const KnSchema *schema = binding_schema(b);
    KnSortOrder *copy = kn_arena_alloc(b->arena, sizeof(*copy));
    bool found;

    if (!schema)
        return kn_err_set(err, KN_E_INVAL, "Cannot add a sort order before a schema is added");
    KN_TRY(kn_sort_order_check(order, schema, err));
    b->last_order_id = reuse_order_id(b, order, &found);
    if (found)
        return KN_OK;
    *copy = *order;
    copy->order_id = b->last_order_id;
    b->sort_orders[b->md.n_sort_orders++] = copy;
    b->changed = true;
    return KN_OK;
}

KnCode kn_builder_set_order(KnBuilder *b, int64_t id, KnErr *err)
{
    bool known = false;

    if (id == -1 && b->last_order_id == KN_NOT_ADDED)
        return kn_err_set(err, KN_E_INVAL,
                          "Cannot set last added sort order: no sort order has been added");
    if (id == -1)
        id = b->last_order_id;
    for (size_t i = 0; i < b->md.n_sort_orders; i++)
        known |= b->sort_orders[i]->order_id == id;
    if (!known)
        return kn_err_set(err, KN_E_INVAL, "Cannot set default sort order to unknown order: %lld",
                          (long long)id);
    b->changed |= b->md.default_sort_order_id != id;
    b->md.default_sort_order_id = (int32_t)id;
    return KN_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* sort_order.c - sort orders from JSON and back (spec: "Sorting", appendix C: "Sort Orders"). */
#include <string.h>

#include "iceberg/schema/partition.h"
#include "iceberg/schema/partition_internal.h"
#include "iceberg/schema/type_internal.h"

static KnCode parse_choice(const json_t *json, const char *key, const char *const names[2],
                           bool *ret_second, KnErr *err)
{
    const char *text;

    KN_TRY(kn_json_get_str(json, key, &text, err));
    *ret_second = kn_str_eq_nocase(kn_str(text), kn_str(names[1]));
    if (!*ret_second && !kn_str_eq_nocase(kn_str(text), kn_str(names[0])))
        return kn_err_set(err, KN_E_CORRUPT, "field '%s': expected '%s' or '%s', found '%s'", key,
                          names[0], names[1], text);
    return KN_OK;
}

static KnCode parse_field(KnArena *arena, const json_t *json, KnSortField *ret, KnErr *err)
{
    static const char *const directions[] = {"asc", "desc"};
    static const char *const nulls[] = {"nulls-first", "nulls-last"};
    const char *transform;

    KN_TRY(kn_json_get_str(json, "transform", &transform, err));
    KN_TRY(kn_source_id_parse(json, &ret->source_id, err));
    KN_TRY(parse_choice(json, "direction", directions, &ret->descending, err));
    KN_TRY(parse_choice(json, "null-order", nulls, &ret->nulls_last, err));
    return kn_transform_parse(arena, kn_str(transform), &ret->transform, err);
}

KnCode kn_sort_order_parse(KnArena *arena, const json_t *json, KnSortOrder **ret, KnErr *err)
{
    KnSortOrder *order = kn_arena_zalloc(arena, sizeof(*order));
    json_t *array;
    KnSortField *fields;
    size_t n;

    KN_TRY(kn_json_get_i32(json, "order-id", &order->order_id, err));
    KN_TRY(kn_json_get_array(json, "fields", &array, err));
    n = json_array_size(array);
    if (n > 1000)
        return kn_err_set(err, KN_E_CORRUPT, "%zu sort fields are beyond the limit of 1000", n);
    fields = kn_arena_zalloc(arena, (n + 1) * sizeof(*fields));
    for (size_t i = 0; i < n; i++) {
        KnCode rc = parse_field(arena, json_array_get(array, i), &fields[i], err);
        if (rc != KN_OK)
            return kn_err_wrap(err, rc, "sort field %zu", i);
    }
    if (order->order_id == 0 && n > 0)
        return kn_err_set(err, KN_E_CORRUPT, "sort order 0 is the unsorted one: it has no fields");
    order->n_fields = n;
    order->fields = fields;
    *ret = order;
    return KN_OK;
}

json_t *kn_sort_order_to_json(const KnSortOrder *order)
{
    json_t *obj = json_object();
    json_t *fields = json_array();

    json_object_set_new(obj, "order-id", json_integer(order->order_id));
    for (size_t i = 0; i < order->n_fields; i++) {
        const KnSortField *field = &order->fields[i];
        json_t *item = json_object();
        json_object_set_new(item, "transform", json_string(field->transform.text));
        json_object_set_new(item, "source-id", json_integer(field->source_id));
        json_object_set_new(item, "direction", json_string(field->descending ? "desc" : "asc"));
        json_object_set_new(item, "null-order",
                            json_string(field->nulls_last ? "nulls-last" : "nulls-first"));
        json_array_append_new(fields, item);
    }
    json_object_set_new(obj, "fields", fields);
    return obj;
}

bool kn_sort_order_equal(const KnSortOrder *a, const KnSortOrder *b)
{
    if (a->n_fields != b->n_fields)
        return false;
    for (size_t i = 0; i < a->n_fields; i++)
        if (a->fields[i].source_id != b->fields[i].source_id ||
            a->fields[i].descending != b->fields[i].descending ||
            a->fields[i].nulls_last != b->fields[i].nulls_last ||
            strcmp(a->fields[i].transform.text, b->fields[i].transform.text) != 0)
            return false;
    return true;
}

KnCode kn_sort_order_check(const KnSortOrder *order, const KnSchema *schema, KnErr *err)
{
    char text[KN_TYPE_TEXT_MAX];

    for (size_t i = 0; i < order->n_fields; i++) {
        const KnSortField *field = &order->fields[i];
        const KnField *source = kn_schema_find_id(schema, field->source_id);
        if (!source)
            return kn_err_set(err, KN_E_INVAL, "Cannot find source column for sort field: %s(%d)",
                              field->transform.text, field->source_id);
        if (kn_type_is_nested(source->type))
            return kn_err_set(err, KN_E_INVAL, "Cannot sort by non-primitive source field: %s",
                              kn_type_text(source->type, text));
        if (!kn_transform_takes(&field->transform, source->type))
            return kn_err_set(err, KN_E_INVAL, "Invalid source type %s for transform: %s",
                              kn_type_text(source->type, text), field->transform.text);
    }
    return KN_OK;
}

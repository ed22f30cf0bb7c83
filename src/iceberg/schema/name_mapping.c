/* SPDX-License-Identifier: Apache-2.0 */
/*
 * name_mapping.c - which field id a name in a file without ids stands for (spec: "Column
 * Projection", appendix C: "Name Mapping Serialization").
 *
 * A node may have several names (a renamed column keeps the old one) and no id (a column of the
 * file that the table does not have). A name may not lead to two nodes on one level.
 */
#include <string.h>

#include "base/map.h"
#include "iceberg/schema/type.h"
#include "iceberg/schema/type_internal.h"

#define NODES_MAX ((size_t)100000)

typedef struct Parser {
    KnArena *arena;
    size_t depth;
} Parser;

static KnCode parse_list(Parser *p, const json_t *array, KnNameMapping *ret, KnErr *err);

static KnCode parse_names(Parser *p, const json_t *json, KnNameMapping *ret, KnErr *err)
{
    json_t *array;
    const char **names;
    size_t n;

    KN_TRY(kn_json_get_array(json, "names", &array, err));
    n = json_array_size(array);
    names = kn_arena_zalloc(p->arena, (n + 1) * sizeof(*names));
    for (size_t i = 0; i < n; i++) {
        const char *name = json_string_value(json_array_get(array, i));
        if (!name)
            return kn_err_set(err, KN_E_CORRUPT, "field 'names': expected strings");
        names[i] = kn_arena_strdup(p->arena, name);
    }
    ret->names = names;
    ret->n_names = n;
    return KN_OK;
}

static KnCode parse_node(Parser *p, const json_t *json, KnNameMapping *ret, KnErr *err)
{
    json_t *fields = NULL;

    ret->field_id = -1;
    KN_TRY(kn_json_opt_i32(json, "field-id", &ret->field_id, err));
    KN_TRY(parse_names(p, json, ret, err));
    KN_TRY(kn_json_opt_array(json, "fields", &fields, err));
    return fields ? parse_list(p, fields, ret, err) : KN_OK;
}

static KnCode check_names(const KnNameMapping *nodes, size_t n, KnErr *err)
{
    KN_MAP_AUTO seen = kn_map_new();
    bool is_new = true;

    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < nodes[i].n_names; j++) {
            kn_map_get_or_add(seen, kn_str(nodes[i].names[j]), &is_new);
            if (!is_new)
                return kn_err_set(err, KN_E_CORRUPT, "name '%s' is mapped twice",
                                  nodes[i].names[j]);
        }
    }
    return KN_OK;
}

static KnCode parse_nodes(Parser *p, const json_t *array, KnNameMapping *ret, KnErr *err)
{
    size_t n = json_array_size(array);
    KnNameMapping *nodes;

    if (n > NODES_MAX)
        return kn_err_set(err, KN_E_CORRUPT, "%zu mappings are beyond the limit of %zu", n,
                          NODES_MAX);
    nodes = kn_arena_zalloc(p->arena, (n + 1) * sizeof(*nodes));
    for (size_t i = 0; i < n; i++)
        KN_TRY(parse_node(p, json_array_get(array, i), &nodes[i], err));
    ret->fields = nodes;
    ret->n_fields = n;
    return check_names(nodes, n, err);
}

static KnCode parse_list(Parser *p, const json_t *array, KnNameMapping *ret, KnErr *err)
{
    KnCode rc;

    if (p->depth >= KN_TYPE_DEPTH_MAX)
        return kn_err_set(err, KN_E_CORRUPT, "mappings are nested deeper than %d levels",
                          KN_TYPE_DEPTH_MAX);
    p->depth++;
    rc = parse_nodes(p, array, ret, err);
    p->depth--;
    return rc;
}

KnCode kn_name_mapping_parse(KnArena *arena, KnStr json, const KnNameMapping **ret, KnErr *err)
{
    KN_JSON_AUTO doc = NULL;
    Parser p = {.arena = arena};
    KnNameMapping *root = kn_arena_zalloc(arena, sizeof(*root));
    KnCode rc = kn_json_parse(json.ptr, json.len, &doc, err);

    if (rc == KN_OK && !json_is_array(doc))
        rc = kn_err_set(err, KN_E_CORRUPT, "a name mapping is a JSON array");
    if (rc == KN_OK)
        rc = parse_list(&p, doc, root, err);
    if (rc != KN_OK)
        return kn_err_wrap(err, rc, "schema.name-mapping.default");
    root->field_id = -1;
    *ret = root;
    return KN_OK;
}

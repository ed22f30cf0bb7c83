/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parquet_tree.c - schema elements (depth first, with child counts) into KnPqNode trees.
 *
 * The rules are those of the engine's own reader, because the tree has to describe what
 * read_parquet yields: a repeated node is a list; an annotated LIST or MAP group, and a repeated
 * group, around a single child gives way to that child; a repeated group with two children right
 * under a MAP group is the map. That covers the three-level form and the legacy two-level forms
 * alike. Unlike the engine it keeps for every node the field id that Iceberg gives it: the outer
 * group's for the list or map, the innermost's for the element.
 *
 * Counts come from outside: every index is checked and depth is limited.
 */
#include "engine/parquet_tree.h"

#include <stdint.h>
#include <string.h>

#include "base/map.h"

enum { MAX_DEPTH = 128 };

typedef struct TreeBuild {
    KnArena *arena;
    KnPqElements in;
    size_t next;
    KnErr *err;
} TreeBuild;

static bool text_is(const char *a, const char *b)
{
    return a && strcmp(a, b) == 0;
}

static KnCode node_parse(TreeBuild *b, int depth, KnPqNode *ret);

static void leaf_fill(const KnPqElement *el, KnPqNode *ret)
{
    ret->kind = KN_PQ_LEAF;
    ret->sql_type = el->sql_type ? el->sql_type : "";
    const char *logical = el->logical ? el->logical : "";
    if (strncmp(logical, "GeometryType", 12) == 0 || strncmp(logical, "GeographyType", 13) == 0)
        ret->sql_type = "GEOMETRY";
    ret->nanos_utc = text_is(el->type, "INT64") && strncmp(logical, "TimestampType", 13) == 0 &&
                     strstr(logical, "isAdjustedToUTC=1") && strstr(logical, "NANOS=Nano");
}

/* A list named and numbered like element around child. */
static void wrap_list(TreeBuild *b, const KnPqElement *el, KnPqNode child, KnPqNode *ret)
{
    KnPqNode *element = kn_arena_alloc(b->arena, sizeof(*element));
    *element = child;
    *ret = (KnPqNode){.name = el->name,
                      .sql_name = el->name,
                      .field_id = el->field_id,
                      .kind = KN_PQ_LIST,
                      .n_children = 1,
                      .children = element};
}

static KnStr lower(KnArena *arena, const char *name)
{
    size_t len = strlen(name);
    char *text = kn_arena_strndup(arena, name, len);
    for (size_t i = 0; i < len; i++) {
        if (text[i] >= 'A' && text[i] <= 'Z')
            text[i] = (char)(text[i] + 'a' - 'A');
    }
    return (KnStr){text, len};
}

/* The engine renames siblings that differ in case only: the second `a` becomes `A_1`, a third
 * `a_2`. The map counts the clashes of each name. */
static void name_siblings(TreeBuild *b, KnPqNode *nodes, size_t n)
{
    KN_MAP_AUTO clashes = kn_map_new();
    for (size_t i = 0; i < n; i++) {
        bool is_new = false;
        for (;;) {
            void **slot = kn_map_get_or_add(clashes, lower(b->arena, nodes[i].sql_name), &is_new);
            if (is_new)
                break;
            uintptr_t count = (uintptr_t)*slot + 1;
            *slot = (void *)count;
            nodes[i].sql_name =
                kn_arena_printf(b->arena, "%s_%zu", nodes[i].sql_name, (size_t)count);
        }
    }
}

static KnCode children_parse(TreeBuild *b, const KnPqElement *el, int depth, KnPqNode **ret)
{
    if (el->n_children < 1 || (uint64_t)el->n_children > b->in.n - b->next)
        return kn_err_set(b->err, KN_E_CORRUPT,
                          "Parquet schema: group '%.100s' claims %lld children", el->name,
                          (long long)el->n_children);
    size_t n = (size_t)el->n_children;
    KnPqNode *nodes = kn_arena_zalloc(b->arena, n * sizeof(*nodes));
    for (size_t i = 0; i < n; i++)
        KN_TRY(node_parse(b, depth + 1, &nodes[i]));
    name_siblings(b, nodes, n);
    *ret = nodes;
    return KN_OK;
}

static bool is_map_entries(const TreeBuild *b, size_t at, const KnPqElement *el)
{
    if (text_is(el->converted, "MAP_KEY_VALUE"))
        return true;
    return at > 0 && text_is(b->in.items[at - 1].converted, "MAP") &&
           b->in.items[at - 1].n_children == 1;
}

static KnCode group_parse(TreeBuild *b, size_t at, int depth, KnPqNode *ret)
{
    const KnPqElement *el = &b->in.items[at];
    KnPqNode *nodes = NULL;
    KN_TRY(children_parse(b, el, depth, &nodes));
    KnPqNode self = {.name = el->name,
                     .sql_name = el->name,
                     .field_id = el->field_id,
                     .kind = KN_PQ_STRUCT,
                     .n_children = (size_t)el->n_children,
                     .children = nodes};
    bool repeated = at > 0 && el->repeated;
    if (is_map_entries(b, at, el)) {
        if (el->n_children != 2 || !repeated)
            return kn_err_set(b->err, KN_E_CORRUPT,
                              "Parquet schema: map '%.100s' is not a repeated key and value",
                              el->name);
        self.kind = KN_PQ_MAP;
        *ret = self;
        return KN_OK;
    }
    bool annotated = text_is(el->converted, "LIST") || text_is(el->converted, "MAP");
    bool gives_way = el->n_children == 1 && (annotated || repeated);
    if (repeated) {
        wrap_list(b, el, gives_way ? nodes[0] : self, ret);
    } else if (gives_way) {
        *ret = nodes[0];
        ret->name = ret->sql_name = el->name;
        if (el->field_id >= 0)
            ret->field_id = el->field_id;
    } else {
        *ret = self;
    }
    return KN_OK;
}

static KnCode node_parse(TreeBuild *b, int depth, KnPqNode *ret)
{
    if (depth > MAX_DEPTH || b->next >= b->in.n)
        return kn_err_set(b->err, KN_E_CORRUPT, "Parquet schema: %s",
                          depth > MAX_DEPTH ? "nested too deeply" : "elements are missing");
    size_t at = b->next++;
    const KnPqElement *el = &b->in.items[at];
    if (!el->type || el->n_children > 0)
        return group_parse(b, at, depth, ret);
    KnPqNode leaf = {.name = el->name, .sql_name = el->name, .field_id = el->field_id};
    leaf_fill(el, &leaf);
    if (el->repeated)
        wrap_list(b, el, leaf, ret);
    else
        *ret = leaf;
    return KN_OK;
}

KnCode kn_pq_tree_build(KnArena *arena, KnPqElements elements, KnPqNode *ret, KnErr *err)
{
    TreeBuild b = {.arena = arena, .in = elements, .err = err};
    KnPqNode root = {0};
    KN_TRY(node_parse(&b, 0, &root));
    if (root.kind != KN_PQ_STRUCT || b.next != elements.n)
        return kn_err_set(err, KN_E_CORRUPT, "Parquet schema: %zu of %zu elements belong to it",
                          b.next, elements.n);
    *ret = root;
    return KN_OK;
}

static void shape_append(KnBuf *buf, const KnPqNode *node)
{
    static const char kinds[] = {
        [KN_PQ_LEAF] = '.', [KN_PQ_STRUCT] = 's', [KN_PQ_LIST] = 'l', [KN_PQ_MAP] = 'm'};
    kn_buf_printf(buf, "%c%d:%zu:%s", kinds[node->kind], node->field_id, strlen(node->name),
                  node->name);
    if (node->kind == KN_PQ_LEAF) {
        kn_buf_printf(buf, "=%s%s;", node->sql_type, node->nanos_utc ? "/ns" : "");
        return;
    }
    kn_buf_char(buf, '{');
    for (size_t i = 0; i < node->n_children; i++)
        shape_append(buf, &node->children[i]);
    kn_buf_char(buf, '}');
}

const char *kn_pq_tree_shape(KnArena *arena, const KnPqNode *root)
{
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, (size_t)1 << 30);
    KnPqNode nameless = *root; /* writers name the root as they like */
    nameless.name = "";
    shape_append(&buf, &nameless);
    return kn_arena_strndup(arena, buf.data, buf.len);
}

bool kn_pq_tree_has_ids(const KnPqNode *node)
{
    if (node->field_id >= 0)
        return true;
    for (size_t i = 0; i < node->n_children; i++) {
        if (kn_pq_tree_has_ids(&node->children[i]))
            return true;
    }
    return false;
}

static bool child_is_blob(const KnPqNode *node, const char *name)
{
    for (size_t i = 0; i < node->n_children; i++) {
        const KnPqNode *child = &node->children[i];
        if (strcmp(child->name, name) == 0)
            return child->kind == KN_PQ_LEAF && text_is(child->sql_type, "BLOB");
    }
    return false;
}

static bool is_variant_like(const KnPqNode *node)
{
    return node->kind == KN_PQ_STRUCT && (node->n_children == 2 || node->n_children == 3) &&
           child_is_blob(node, "metadata") && child_is_blob(node, "value");
}

bool kn_pq_tree_has_variant_like(const KnPqNode *node)
{
    if (is_variant_like(node))
        return true;
    for (size_t i = 0; i < node->n_children; i++) {
        if (kn_pq_tree_has_variant_like(&node->children[i]))
            return true;
    }
    return false;
}

static void mark_variant(KnPqNode *node, const KnColType *type)
{
    if (type->kind == KN_COL_OTHER) {
        if (is_variant_like(node)) {
            node->kind = KN_PQ_LEAF;
            node->sql_type = "VARIANT";
            node->n_children = 0;
            node->children = NULL;
        }
        return;
    }
    /* A map's type has its key and value one level further down than its node. */
    if (node->kind == KN_PQ_MAP && type->n_children == 1)
        type = &type->children[0];
    KnPqNode *children = (KnPqNode *)node->children;
    for (size_t i = 0; i < node->n_children && i < type->n_children; i++)
        mark_variant(&children[i], &type->children[i]);
}

void kn_pq_tree_mark_variants(KnPqNode *root, const KnColType *types, size_t n)
{
    KnPqNode *children = (KnPqNode *)root->children;
    for (size_t i = 0; i < root->n_children && i < n; i++)
        mark_variant(&children[i], &types[i]);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read_avro_shape.c - an Avro schema as the engine's columns.
 *
 * The schema is a graph that may refer to itself; here it is unfolded into a tree, whose depth and
 * size are limited. Unions with null are nullable fields. Of logical types, those of the spec's
 * table are known, and the milliseconds and local timestamps that other writers use; others are
 * passed over, as Avro asks. A timestamp that does not say adjust-to-utc is one without zone.
 *
 * The engine's names do not differ in case only: a later sibling gets a number. That changes
 * nothing where fields are found by id. A column of Avro's null (Iceberg's unknown) is an INTEGER
 * of NULLs without id, so that it is found as little as if the file did not have it.
 */
#include <ctype.h>
#include <string.h>

#include "base/map.h"
#include "iceberg/scan/read_avro.h"

enum { DEPTH_MAX = 60, NODES_MAX = 10000, DECIMAL_MAX = 38, UUID_SIZE = 16 };

typedef struct Maker {
    KnArena *arena;
    size_t n_nodes;
    int depth;
    bool has_ids, renamed;
    KnErr *err;
} Maker;

static KnCode make_node(Maker *m, const KnAvroType *type, KnAvroNode *ret);

static KnCode refuse(const Maker *m, const KnAvroNode *node, const char *what)
{
    return kn_err_set(m->err, KN_E_UNSUPPORTED, "Avro: field '%.100s' is %s", node->name, what);
}

/* ---- leaves ---- */

typedef struct Logical {
    KnAvroKind kind;
    const char *name;
    const char *sql_type, *utc_sql_type; /* NULL = the same */
    int32_t factor;
} Logical;

static const Logical logicals[] = {
    {KN_AVRO_INT, "date", "DATE", NULL, 1},
    {KN_AVRO_INT, "time-millis", "TIME", NULL, 1000},
    {KN_AVRO_LONG, "time-micros", "TIME", NULL, 1},
    {KN_AVRO_LONG, "timestamp-millis", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", 1000},
    {KN_AVRO_LONG, "timestamp-micros", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", 1},
    {KN_AVRO_LONG, "timestamp-nanos", "TIMESTAMP_NS", NULL, 1},
    {KN_AVRO_LONG, "local-timestamp-millis", "TIMESTAMP", NULL, 1000},
    {KN_AVRO_LONG, "local-timestamp-micros", "TIMESTAMP", NULL, 1},
    {KN_AVRO_LONG, "local-timestamp-nanos", "TIMESTAMP_NS", NULL, 1},
};

static bool is_logical(const KnAvroType *type, const char *name)
{
    return type->logical && strcmp(type->logical, name) == 0;
}

static void make_counted(const KnAvroType *type, KnAvroNode *ret)
{
    ret->put = KN_AVRO_PUT_INT;
    ret->factor = 1;
    ret->sql_type = type->kind == KN_AVRO_INT ? "INTEGER" : "BIGINT";
    for (size_t i = 0; i < sizeof(logicals) / sizeof(*logicals); i++) {
        const Logical *l = &logicals[i];
        if (l->kind != type->kind || !is_logical(type, l->name))
            continue;
        ret->factor = l->factor;
        ret->sql_type = type->adjust_to_utc && l->utc_sql_type ? l->utc_sql_type : l->sql_type;
    }
}

static void make_bytes(const Maker *m, const KnAvroType *type, KnAvroNode *ret)
{
    ret->put = KN_AVRO_PUT_BYTES;
    ret->sql_type = type->kind == KN_AVRO_STRING ? "VARCHAR" : "BLOB";
    if (type->kind == KN_AVRO_STRING)
        return;
    if (is_logical(type, "decimal") && type->precision >= 1 && type->precision <= DECIMAL_MAX &&
        type->scale >= 0 && type->scale <= type->precision) {
        ret->put = KN_AVRO_PUT_DECIMAL;
        ret->sql_type =
            kn_arena_printf(m->arena, "DECIMAL(%d,%d)", (int)type->precision, (int)type->scale);
    } else if (is_logical(type, "uuid") && type->kind == KN_AVRO_FIXED &&
               type->fixed_size == UUID_SIZE) {
        ret->put = KN_AVRO_PUT_UUID;
        ret->sql_type = "UUID";
    }
}

/* ---- nested ---- */

static KnAvroNode *new_children(Maker *m, KnAvroNode *ret, size_t n)
{
    ret->n_children = n;
    ret->children = kn_arena_try_array(m->arena, n, sizeof(*ret->children));
    return ret->children;
}

static KnCode add_child(Maker *m, KnAvroNode *ret, size_t at, const KnAvroField *field)
{
    ret->children[at].name = field->name;
    ret->children[at].field_id = field->field_id;
    return make_node(m, field->type, &ret->children[at]);
}

static const char *lower(KnArena *arena, const char *name)
{
    char *made = kn_arena_strdup(arena, name);
    for (char *p = made; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    return made;
}

/* Siblings' names, told apart; the key of COPY's own is taken from the start, and no name is. */
static void name_fields(Maker *m, KnAvroNode *node)
{
    KN_MAP_AUTO taken = kn_map_new();
    bool is_new;
    kn_map_get_or_add(taken, kn_str("__duckdb_field_id"), &is_new);
    kn_map_get_or_add(taken, kn_str(""), &is_new);
    for (size_t i = 0; i < node->n_children; i++) {
        const char *given = node->children[i].name;
        kn_map_get_or_add(taken, kn_str(lower(m->arena, given)), &is_new);
        for (size_t n = i; !is_new; n++) {
            m->renamed = true;
            node->children[i].name = kn_arena_printf(m->arena, "%s_%zu", given, n);
            const char *key = lower(m->arena, node->children[i].name);
            kn_map_get_or_add(taken, kn_str(key), &is_new);
        }
    }
}

static KnCode make_struct(Maker *m, const KnAvroType *type, KnAvroNode *ret)
{
    if (type->n_fields == 0)
        return refuse(m, ret, "a record without fields, which is not supported");
    ret->put = KN_AVRO_PUT_STRUCT;
    if (!new_children(m, ret, type->n_fields))
        return kn_err_set(m->err, KN_E_NOMEM, "Avro: no memory for the schema");
    for (size_t i = 0; i < type->n_fields; i++)
        KN_TRY(add_child(m, ret, i, &type->fields[i]));
    name_fields(m, ret);
    return KN_OK;
}

static KnCode make_items(Maker *m, const KnAvroType *type, KnAvroNode *ret)
{
    static const KnAvroType text = {.kind = KN_AVRO_STRING};
    const KnAvroType *of = type->fields[0].type;
    KnAvroField key = {.name = "key", .field_id = type->key_id, .type = &text};
    KnAvroField value = {.name = "value", .field_id = type->value_id, .type = of};
    if (type->kind == KN_AVRO_MAP) {
        ret->put = KN_AVRO_PUT_MAP;
    } else if (is_logical(type, "map") && of->kind == KN_AVRO_RECORD && of->n_fields == 2) {
        ret->put = KN_AVRO_PUT_MAP_ARRAY;
        key = (KnAvroField){"key", of->fields[0].field_id, of->fields[0].type};
        value = (KnAvroField){"value", of->fields[1].field_id, of->fields[1].type};
    } else {
        ret->put = KN_AVRO_PUT_LIST;
        value = (KnAvroField){"element", type->element_id, of};
    }
    bool list = ret->put == KN_AVRO_PUT_LIST;
    if (!new_children(m, ret, list ? 1 : 2))
        return kn_err_set(m->err, KN_E_NOMEM, "Avro: no memory for the schema");
    if (!list)
        KN_TRY(add_child(m, ret, 0, &key));
    return add_child(m, ret, list ? 0 : 1, &value);
}

/* ---- any ---- */

/* The type that a field has where it is not null. */
static KnCode strip_union(const Maker *m, const KnAvroNode *node, const KnAvroType *given,
                          const KnAvroType **ret)
{
    *ret = given;
    if (given->kind != KN_AVRO_UNION)
        return KN_OK;
    *ret = given->fields[0].type;
    for (size_t i = 1; i < given->n_fields; i++) {
        if (given->fields[i].type->kind == KN_AVRO_NULL)
            continue;
        if ((*ret)->kind != KN_AVRO_NULL)
            return refuse(m, node, "a union of several types, which is not supported");
        *ret = given->fields[i].type;
    }
    return KN_OK;
}

static KnCode make_kind(Maker *m, const KnAvroType *type, KnAvroNode *ret)
{
    switch (type->kind) {
    case KN_AVRO_NULL:
        ret->put = KN_AVRO_PUT_NULL;
        ret->sql_type = "INTEGER";
        ret->field_id = -1;
        return KN_OK;
    case KN_AVRO_BOOLEAN:
        ret->put = KN_AVRO_PUT_BOOLEAN;
        ret->sql_type = "BOOLEAN";
        return KN_OK;
    case KN_AVRO_INT:
    case KN_AVRO_LONG:
        make_counted(type, ret);
        return KN_OK;
    case KN_AVRO_FLOAT:
        ret->put = KN_AVRO_PUT_FLOAT;
        ret->sql_type = "FLOAT";
        return KN_OK;
    case KN_AVRO_DOUBLE:
        ret->put = KN_AVRO_PUT_DOUBLE;
        ret->sql_type = "DOUBLE";
        return KN_OK;
    case KN_AVRO_BYTES:
    case KN_AVRO_STRING:
    case KN_AVRO_FIXED:
        make_bytes(m, type, ret);
        return KN_OK;
    case KN_AVRO_RECORD:
        return make_struct(m, type, ret);
    case KN_AVRO_ARRAY:
    case KN_AVRO_MAP:
        return make_items(m, type, ret);
    default:
        return refuse(m, ret, "an enum, which is not supported");
    }
}

static KnCode make_node(Maker *m, const KnAvroType *type, KnAvroNode *ret)
{
    if (++m->n_nodes > NODES_MAX || ++m->depth > DEPTH_MAX)
        return kn_err_set(m->err, KN_E_UNSUPPORTED,
                          "Avro: a schema of more than %d fields, or nested deeper than %d",
                          NODES_MAX, DEPTH_MAX);
    ret->given = type;
    KN_TRY(strip_union(m, ret, type, &ret->type));
    KN_TRY(make_kind(m, ret->type, ret));
    m->has_ids = m->has_ids || ret->field_id >= 0;
    m->depth--;
    return KN_OK;
}

/* ---- SQL ---- */

static void write_type(const KnAvroNode *node, KnBuf *buf)
{
    switch (node->put) {
    case KN_AVRO_PUT_STRUCT:
        kn_buf_text(buf, "STRUCT(");
        for (size_t i = 0; i < node->n_children; i++) {
            kn_buf_text(buf, i ? ", " : "");
            kn_sql_ident(buf, kn_str(node->children[i].name));
            kn_buf_char(buf, ' ');
            write_type(&node->children[i], buf);
        }
        kn_buf_char(buf, ')');
        break;
    case KN_AVRO_PUT_LIST:
        write_type(&node->children[0], buf);
        kn_buf_text(buf, "[]");
        break;
    case KN_AVRO_PUT_MAP:
    case KN_AVRO_PUT_MAP_ARRAY:
        kn_buf_text(buf, "MAP(");
        write_type(&node->children[0], buf);
        kn_buf_text(buf, ", ");
        write_type(&node->children[1], buf);
        kn_buf_char(buf, ')');
        break;
    default:
        kn_buf_text(buf, node->sql_type);
    }
}

static bool has_ids(const KnAvroNode *node)
{
    for (size_t i = 0; i < node->n_children; i++)
        if (node->children[i].field_id >= 0 || has_ids(&node->children[i]))
            return true;
    return false;
}

/* `{__duckdb_field_id: 3, 'a': 4, …}`, fields without ids left out. */
static void write_ids(const KnAvroNode *node, KnBuf *buf)
{
    const char *between = "{";
    if (node->field_id >= 0) {
        kn_buf_printf(buf, "{__duckdb_field_id: %d", (int)node->field_id);
        between = ", ";
    }
    for (size_t i = 0; i < node->n_children; i++) {
        const KnAvroNode *child = &node->children[i];
        if (child->field_id < 0 && !has_ids(child))
            continue;
        kn_buf_text(buf, between);
        kn_sql_text(buf, kn_str(child->name));
        kn_buf_text(buf, ": ");
        write_ids(child, buf);
        between = ", ";
    }
    kn_buf_char(buf, '}');
}

static KnCode write_sql(const Maker *m, KnAvroShape *shape)
{
    size_t n = shape->root.n_children;
    shape->names = kn_arena_alloc(m->arena, n * sizeof(*shape->names));
    shape->sql_types = kn_arena_alloc(m->arena, n * sizeof(*shape->sql_types));
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, (size_t)64 << 20);
    for (size_t i = 0; i < n; i++) {
        kn_buf_reset(&buf);
        write_type(&shape->root.children[i], &buf);
        KN_TRY(kn_buf_check(&buf, m->err));
        shape->names[i] = shape->root.children[i].name;
        shape->sql_types[i] = kn_arena_strndup(m->arena, buf.data, buf.len);
    }
    if (!m->has_ids)
        return KN_OK;
    kn_buf_reset(&buf);
    write_ids(&shape->root, &buf);
    KN_TRY(kn_buf_check(&buf, m->err));
    shape->field_ids_sql = kn_arena_strndup(m->arena, buf.data, buf.len);
    return KN_OK;
}

KnCode kn_read_avro_shape(KnArena *arena, const KnAvroType *type, KnAvroShape *ret, KnErr *err)
{
    if (type->kind != KN_AVRO_RECORD)
        return kn_err_set(err, KN_E_CORRUPT, "Avro: the file's schema is not a record");
    Maker m = {.arena = arena, .err = err};
    KnAvroShape shape = {.root = {.name = "", .field_id = -1}};
    KN_TRY(make_node(&m, type, &shape.root));
    if (m.renamed && !m.has_ids)
        return kn_err_set(err, KN_E_UNSUPPORTED,
                          "Avro: the file has no field ids, and names that differ in case only");
    KN_TRY(write_sql(&m, &shape));
    *ret = shape;
    return KN_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read_project.c - a wanted field as SQL over a file's columns.
 *
 * Fields are found by id at every level. A subtree that the file holds exactly as wanted is passed
 * as it is, so that the engine may push filters and read only what is needed; elsewhere structs are
 * packed anew, lists and maps transformed element by element, and leaves cast where the spec allows
 * promotion. NULL structs, lists and maps stay NULL. The file's columns are c0, c1, … by position
 * (see kn_read_source_sql), fields of structs are taken by position too: names never matter.
 */
#include <string.h>

#include "iceberg/scan/read_internal.h"
#include "iceberg/schema/value_internal.h"

enum { MAX_NESTING = 100 };

typedef struct Writer {
    KnRead *read;
    KnBuf *buf;
    KnErr *err;
    const char *file; /* for messages: the first of the group */
    const KnField *column;
    size_t n_files;
    KnReadFile *const *files;
    bool as_key;
    int depth;
} Writer;

static KnCode write_node(Writer *w, const KnPqNode *node, const KnField *field, const char *expr);

const KnPqNode *kn_read_child_by_id(const KnPqNode *node, int32_t id, size_t *ret_index)
{
    for (size_t i = 0; i < node->n_children; i++) {
        if (node->children[i].field_id == id) {
            *ret_index = i;
            return &node->children[i];
        }
    }
    return NULL;
}

static KnCode column_error(const Writer *w, const KnField *field, KnCode code, const char *what)
{
    return kn_err_set(w->err, code, "table %s: file '%.250s', field '%.100s' (id %d): %s",
                      w->read->tbl->name, w->file, field->name, field->id, what);
}

static KnCode type_sql(const Writer *w, const KnField *field, KnBuf *buf)
{
    KnCode rc = kn_type_sql(buf, field->type, w->err);
    return rc == KN_OK ? KN_OK
                       : kn_err_wrap(w->err, rc, "table %s: column '%.100s'", w->read->tbl->name,
                                     w->column->name);
}

/* ---- fields that the file does not have ---- */

static KnCode write_null(Writer *w, const KnField *field)
{
    kn_buf_text(w->buf, "CAST(NULL AS ");
    KN_TRY(type_sql(w, field, w->buf));
    kn_buf_char(w->buf, ')');
    return KN_OK;
}

static KnCode write_default(Writer *w, const KnField *field)
{
    if (field->initial_default) {
        KnCode rc = kn_default_sql(w->read->arena, field, false, w->buf, w->err);
        return rc == KN_OK ? KN_OK
                           : kn_err_wrap(w->err, rc, "table %s: default of field '%.100s' (id %d)",
                                         w->read->tbl->name, field->name, field->id);
    }
    if (field->required && !w->as_key)
        return column_error(w, field, KN_E_CORRUPT, "is required, has no default, and is missing");
    return write_null(w, field);
}

static const KnValue *identity_value(const KnRead *read, const KnDataFile *file, int32_t id)
{
    const KnPartitionSpec *spec = kn_metadata_find_spec(read->tbl->md, file->spec_id);
    for (size_t i = 0; spec && i < spec->n_fields && i < file->n_partition; i++)
        if (spec->fields[i].source_id == id &&
            spec->fields[i].transform.kind == KN_TRANSFORM_IDENTITY)
            return &file->partition[i];
    return NULL;
}

static bool has_identity_value(const Writer *w, const KnField *field)
{
    for (size_t i = 0; i < w->n_files && w->files[i]->task; i++)
        if (identity_value(w->read, &w->files[i]->task->data->file, field->id))
            return true;
    return false;
}

/* A field that the files do not have, in a struct that they have or at the top: for each file its
 * identity partition value, else the default. Delete files have no task and take the default. */
static KnCode write_absent(Writer *w, const KnField *field)
{
    KnRead *read = w->read;
    if (!has_identity_value(w, field) || kn_type_is_nested(field->type))
        return write_default(w, field);
    const char **values = kn_arena_alloc(read->arena, w->n_files * sizeof(*values));
    KN_BUF_AUTO type;
    kn_buf_init(&type, 1 << 20);
    KN_TRY(type_sql(w, field, &type));
    KN_BUF_AUTO text;
    kn_buf_init(&text, (size_t)1 << 30);
    KnBuf *out = w->buf;
    KnCode rc = KN_OK;
    for (size_t i = 0; i < w->n_files && rc == KN_OK; i++) {
        const KnValue *value = identity_value(read, &w->files[i]->task->data->file, field->id);
        kn_buf_reset(&text);
        w->buf = &text;
        rc = value ? kn_value_sql(&text, field->type, value, w->err) : write_default(w, field);
        values[i] = kn_arena_strndup(read->arena, text.data, text.len);
    }
    w->buf = out;
    if (rc == KN_OK)
        kn_read_lookup_sql(out, values, w->n_files, type.data);
    return rc;
}

/* ---- leaves ---- */

typedef struct Conversion {
    KnTypeKind to;
    const char *from;         /* the engine's type of the file's column */
    const char *open, *close; /* NULL = a cast to the wanted type */
} Conversion;

/* What the spec's promotions and the physical forms of other writers ask for. */
static const Conversion conversions[] = {
    {KN_TYPE_INT, "TINYINT", NULL, NULL},
    {KN_TYPE_INT, "SMALLINT", NULL, NULL},
    {KN_TYPE_INT, "UTINYINT", NULL, NULL},
    {KN_TYPE_INT, "USMALLINT", NULL, NULL},
    {KN_TYPE_LONG, "TINYINT", NULL, NULL},
    {KN_TYPE_LONG, "SMALLINT", NULL, NULL},
    {KN_TYPE_LONG, "INTEGER", NULL, NULL},
    {KN_TYPE_LONG, "UTINYINT", NULL, NULL},
    {KN_TYPE_LONG, "USMALLINT", NULL, NULL},
    {KN_TYPE_LONG, "UINTEGER", NULL, NULL},
    {KN_TYPE_DOUBLE, "FLOAT", NULL, NULL},
    {KN_TYPE_TIMESTAMP, "DATE", NULL, NULL},
    {KN_TYPE_TIMESTAMP, "TIMESTAMP WITH TIME ZONE", NULL, NULL}, /* sessions are in UTC */
    {KN_TYPE_TIMESTAMPTZ, "TIMESTAMP", NULL, NULL},              /* INT96 */
    {KN_TYPE_TIMESTAMP_NS, "DATE", NULL, NULL},
    {KN_TYPE_TIMESTAMP_NS, "TIMESTAMP", NULL, NULL},
    {KN_TYPE_STRING, "BLOB", "decode(", ")"}, /* strings without annotation */
    {KN_TYPE_STRING, "JSON", NULL, NULL},
    {KN_TYPE_FIXED, "VARCHAR", "encode(", ")"},
    {KN_TYPE_BINARY, "VARCHAR", "encode(", ")"},
    {KN_TYPE_UUID, "BLOB", "CAST(hex(", ") AS UUID)"},
};

static const Conversion *find_conversion(KnTypeKind to, const char *from)
{
    for (size_t i = 0; i < sizeof(conversions) / sizeof(*conversions); i++)
        if (conversions[i].to == to && strcmp(conversions[i].from, from) == 0)
            return &conversions[i];
    return NULL;
}

static bool decimal_widens(const char *from, const KnType *to)
{
    int precision;
    int scale;
    return to->kind == KN_TYPE_DECIMAL && sscanf(from, "DECIMAL(%d,%d)", &precision, &scale) == 2 &&
           scale == to->scale && precision <= to->precision;
}

static KnCode write_leaf(Writer *w, const KnPqNode *node, const KnField *field, const char *expr)
{
    KN_BUF_AUTO want;
    kn_buf_init(&want, 1 << 20);
    KN_TRY(type_sql(w, field, &want));
    if (node->kind != KN_PQ_LEAF)
        return column_error(w, field, KN_E_CORRUPT,
                            "is nested in the file, a single value in the "
                            "table's schema");
    if (node->nanos_utc)
        return column_error(w, field, KN_E_UNSUPPORTED, "nanoseconds that the engine would cut");
    const Conversion *conversion = find_conversion(field->type->kind, node->sql_type);
    if (strcmp(want.data, node->sql_type) == 0) {
        kn_buf_text(w->buf, expr);
    } else if (conversion && conversion->open) {
        kn_buf_printf(w->buf, "%s%s%s", conversion->open, expr, conversion->close);
    } else if (conversion || decimal_widens(node->sql_type, field->type)) {
        kn_buf_printf(w->buf, "CAST(%s AS %s)", expr, want.data);
    } else {
        return kn_err_set(w->err, KN_E_CORRUPT,
                          "table %s: file '%.250s', field '%.100s' (id %d): %.60s in the file "
                          "cannot be read as %.60s",
                          w->read->tbl->name, w->file, field->name, field->id, node->sql_type,
                          want.data);
    }
    return KN_OK;
}

/* ---- nested ---- */

static bool same_shape(const KnPqNode *node, const KnType *type);

static bool same_children(const KnPqNode *node, const KnType *type)
{
    if (node->n_children != type->n_fields)
        return false;
    for (size_t i = 0; i < type->n_fields; i++)
        if ((type->kind == KN_TYPE_STRUCT &&
             (node->children[i].field_id != type->fields[i].id ||
              strcmp(node->children[i].sql_name, type->fields[i].name) != 0)) ||
            !same_shape(&node->children[i], type->fields[i].type))
            return false;
    return true;
}

/* True when the file's value is the wanted one as it stands. */
static bool same_shape(const KnPqNode *node, const KnType *type)
{
    switch (type->kind) {
    case KN_TYPE_STRUCT:
        return node->kind == KN_PQ_STRUCT && same_children(node, type);
    case KN_TYPE_LIST:
        return node->kind == KN_PQ_LIST && same_children(node, type);
    case KN_TYPE_MAP:
        return node->kind == KN_PQ_MAP && same_children(node, type);
    default:
        break;
    }
    if (node->kind != KN_PQ_LEAF || node->nanos_utc || type->kind == KN_TYPE_UNKNOWN)
        return false;
    KN_BUF_AUTO want;
    kn_buf_init(&want, 1 << 20);
    return kn_type_sql(&want, type, NULL) == KN_OK && strcmp(want.data, node->sql_type) == 0;
}

static KnCode write_struct(Writer *w, const KnPqNode *node, const KnField *field, const char *expr)
{
    if (field->type->n_fields == 0)
        return column_error(w, field, KN_E_UNSUPPORTED, "a struct without fields");
    kn_buf_printf(w->buf, "CASE WHEN %s IS NULL THEN NULL ELSE struct_pack(", expr);
    for (size_t i = 0; i < field->type->n_fields; i++) {
        const KnField *child = &field->type->fields[i];
        size_t at = 0;
        const KnPqNode *from = kn_read_child_by_id(node, child->id, &at);
        kn_buf_text(w->buf, i ? ", " : "");
        kn_sql_ident(w->buf, kn_str(child->name));
        kn_buf_text(w->buf, " := ");
        if (!from) {
            KN_TRY(write_absent(w, child));
            continue;
        }
        const char *inner =
            kn_arena_printf(w->read->arena, "struct_extract_at(%s, %zu)", expr, at + 1);
        KN_TRY(write_node(w, from, child, inner));
    }
    kn_buf_text(w->buf, ") END");
    return KN_OK;
}

static KnCode write_list(Writer *w, const KnPqNode *node, const KnField *field, const char *expr)
{
    const char *var = kn_arena_printf(w->read->arena, "v%d", w->depth);
    kn_buf_printf(w->buf, "list_transform(%s, lambda %s: ", expr, var);
    KN_TRY(write_node(w, &node->children[0], &field->type->fields[0], var));
    kn_buf_char(w->buf, ')');
    return KN_OK;
}

static KnCode write_map(Writer *w, const KnPqNode *node, const KnField *field, const char *expr)
{
    KnArena *arena = w->read->arena;
    const char *var = kn_arena_printf(arena, "v%d", w->depth);
    kn_buf_printf(w->buf,
                  "map_from_entries(list_transform(map_entries(%s), lambda %s: struct_pack("
                  "key := ",
                  expr, var);
    KN_TRY(write_node(w, &node->children[0], &field->type->fields[0],
                      kn_arena_printf(arena, "struct_extract_at(%s, 1)", var)));
    kn_buf_text(w->buf, ", value := ");
    KN_TRY(write_node(w, &node->children[1], &field->type->fields[1],
                      kn_arena_printf(arena, "struct_extract_at(%s, 2)", var)));
    kn_buf_text(w->buf, ")))");
    return KN_OK;
}

static KnCode write_nested(Writer *w, const KnPqNode *node, const KnField *field, const char *expr)
{
    KnPqKind want = field->type->kind == KN_TYPE_STRUCT ? KN_PQ_STRUCT
                    : field->type->kind == KN_TYPE_LIST ? KN_PQ_LIST
                                                        : KN_PQ_MAP;
    if (node->kind != want)
        return column_error(w, field, KN_E_CORRUPT,
                            "is a struct, list or map in the table's schema and not in the file");
    if (want == KN_PQ_STRUCT)
        return write_struct(w, node, field, expr);
    return want == KN_PQ_LIST ? write_list(w, node, field, expr) : write_map(w, node, field, expr);
}

static KnCode write_node(Writer *w, const KnPqNode *node, const KnField *field, const char *expr)
{
    if (field->type->kind == KN_TYPE_UNKNOWN)
        return write_null(w, field);
    if (!kn_type_is_nested(field->type))
        return write_leaf(w, node, field, expr);
    if (same_shape(node, field->type)) {
        kn_buf_text(w->buf, expr);
        return KN_OK;
    }
    if (++w->depth > MAX_NESTING)
        return column_error(w, field, KN_E_UNSUPPORTED, "types nested over 100 deep");
    KN_TRY(write_nested(w, node, field, expr));
    w->depth--;
    return KN_OK;
}

/* ---- columns ---- */

static Writer writer_of(const KnProject *project, const KnField *column, KnBuf *buf, KnErr *err)
{
    const KnReadFile *first = project->n_files ? project->files[0] : NULL;
    return (Writer){.read = project->read,
                    .buf = buf,
                    .err = err,
                    .file = first ? first->name : "",
                    .column = column,
                    .n_files = project->n_files,
                    .files = project->files,
                    .as_key = project->as_key};
}

KnCode kn_read_column_sql(const KnProject *project, const KnField *field, KnBuf *buf, KnErr *err)
{
    Writer w = writer_of(project, field, buf, err);
    size_t at = 0;
    const KnPqNode *node = kn_read_child_by_id(project->files[0]->root, field->id, &at);
    if (!node)
        return write_absent(&w, field);
    return write_node(&w, node, field, kn_arena_printf(project->read->arena, "c%zu", at));
}

void kn_read_lookup_sql(KnBuf *buf, const char *const *values, size_t n, const char *type)
{
    bool constant = true;
    for (size_t i = 1; i < n; i++)
        constant = constant && strcmp(values[i], values[0]) == 0;
    if (constant) {
        kn_buf_printf(buf, "CAST(%s AS %s)", n ? values[0] : "NULL", type);
        return;
    }
    kn_buf_text(buf, "CAST([");
    for (size_t i = 0; i < n; i++)
        kn_buf_printf(buf, "%s%s", i ? ", " : "", values[i]);
    kn_buf_printf(buf, "] AS %s[])[CAST(file_index AS BIGINT) + 1]", type);
}

/* ---- fields inside structs, by any schema of the table ---- */

static bool path_to(const KnType *type, int32_t id, const KnField **path, size_t *n)
{
    for (size_t i = 0; i < type->n_fields && *n < MAX_NESTING; i++) {
        const KnField *field = &type->fields[i];
        path[(*n)++] = field;
        if (field->id == id ||
            (field->type->kind == KN_TYPE_STRUCT && path_to(field->type, id, path, n)))
            return true;
        (*n)--;
    }
    return false;
}

static bool find_path(const KnRead *read, int32_t id, const KnField **path, size_t *n)
{
    const KnMetadata *md = read->tbl->md;
    for (size_t i = md->n_schemas; i-- > 0;) {
        *n = 0;
        if (path_to(&md->schemas[i]->root, id, path, n))
            return true;
    }
    return false;
}

/* Below a parent that the file has; a NULL parent makes it NULL. */
static KnCode write_inner(Writer *w, const KnPqNode *parent, const KnField *leaf, const char *expr)
{
    size_t at = 0;
    const KnPqNode *node = kn_read_child_by_id(parent, leaf->id, &at);
    if (node)
        return write_node(
            w, node, leaf,
            kn_arena_printf(w->read->arena, "struct_extract_at(%s, %zu)", expr, at + 1));
    kn_buf_printf(w->buf, "CASE WHEN %s IS NULL THEN NULL ELSE ", expr);
    KN_TRY(write_absent(w, leaf));
    kn_buf_text(w->buf, " END");
    return KN_OK;
}

KnCode kn_read_field_sql(const KnProject *project, int32_t id, KnBuf *buf, KnErr *err)
{
    const KnField *path[MAX_NESTING];
    size_t n = 0;
    const KnField *leaf = kn_metadata_find_field(project->read->tbl->md, id);
    if (!leaf || !find_path(project->read, id, path, &n) || kn_type_is_nested(leaf->type))
        return kn_err_set(err, KN_E_UNSUPPORTED,
                          "table %s: equality deletes by field id %d, which is no single value of "
                          "a row",
                          project->read->tbl->name, id);
    if (n == 1)
        return kn_read_column_sql(project, leaf, buf, err);
    Writer w = writer_of(project, leaf, buf, err);
    size_t at = 0;
    const KnPqNode *node = kn_read_child_by_id(project->files[0]->root, path[0]->id, &at);
    const char *expr = kn_arena_printf(project->read->arena, "c%zu", at);
    for (size_t i = 1; node && i + 1 < n; i++) {
        node = kn_read_child_by_id(node, path[i]->id, &at);
        expr = kn_arena_printf(project->read->arena, "struct_extract_at(%s, %zu)", expr, at + 1);
    }
    return node ? write_inner(&w, node, leaf, expr) : write_null(&w, leaf);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write_columns.c - any SELECT's columns become the table's, by name, without loss.
 *
 * The engine's CAST rounds 1.5 to 2 and cuts a timestamp to its date. A value is converted here
 * only when the result says the same: where a plain TRY_CAST may lose something, the expression
 * also compares, and a value that fails ends the statement with error('column ...'). Floating
 * point targets round, as floating point does. Texts are read in the engine's spelling, bytes as
 * 0x hex. Structs are matched by field name at any depth.
 *
 * The expression of a leaf mentions its source more than once, so sources are kept short: a column
 * of the inner SELECT (s0, s1, ...), a lambda's parameter, or a path into one of them.
 */
#include <ctype.h>

#include "iceberg/schema/value_internal.h"
#include "iceberg/write/write_internal.h"

typedef struct Convert {
    const char *column; /* dotted name, for messages */
    KnArena *arena;
    int depth; /* of lambdas */
} Convert;

static KnCode convert(const Convert *cv, KnBuf *out, const KnField *to, const KnColType *from,
                      const char *expr, KnErr *err);

static const char *type_sql(const Convert *cv, const KnType *type, KnErr *err)
{
    KN_BUF_AUTO buf;
    kn_buf_init(&buf, (size_t)1 << 20);
    if (kn_type_sql(&buf, type, err) != KN_OK)
        return NULL;
    return kn_arena_strndup(cv->arena, buf.data ? buf.data : "", buf.len);
}

static bool is_integer(KnColKind kind)
{
    return kind >= KN_COL_INT8 && kind <= KN_COL_INT128;
}

static bool is_floating(KnColKind kind)
{
    return kind == KN_COL_FLOAT || kind == KN_COL_DOUBLE;
}

static bool is_number(KnColKind kind)
{
    return is_integer(kind) || is_floating(kind) || kind == KN_COL_DECIMAL;
}

static bool is_time_point(KnColKind kind)
{
    return kind == KN_COL_DATE || kind == KN_COL_TIMESTAMP || kind == KN_COL_TIMESTAMPTZ ||
           kind == KN_COL_TIMESTAMP_NS;
}

static bool is_column_nested(KnColKind kind)
{
    return kind == KN_COL_STRUCT || kind == KN_COL_LIST || kind == KN_COL_MAP;
}

/* May a value of this kind be given for the type at all? Texts always may. */
static bool takes(const KnType *to, KnColKind from)
{
    if (from == KN_COL_VARCHAR || from == KN_COL_NULL || from == KN_COL_OTHER)
        return true;
    switch (to->kind) {
    case KN_TYPE_BOOLEAN:
        return from == KN_COL_BOOL;
    case KN_TYPE_INT:
    case KN_TYPE_LONG:
    case KN_TYPE_FLOAT:
    case KN_TYPE_DOUBLE:
    case KN_TYPE_DECIMAL:
        return is_number(from);
    case KN_TYPE_DATE:
    case KN_TYPE_TIMESTAMP:
    case KN_TYPE_TIMESTAMPTZ:
    case KN_TYPE_TIMESTAMP_NS:
    case KN_TYPE_TIMESTAMPTZ_NS:
        return is_time_point(from);
    case KN_TYPE_TIME:
        return from == KN_COL_TIME;
    case KN_TYPE_STRING:
        return from != KN_COL_BLOB && !is_column_nested(from);
    case KN_TYPE_UUID:
        return from == KN_COL_UUID;
    case KN_TYPE_FIXED:
    case KN_TYPE_BINARY:
        return from == KN_COL_BLOB;
    case KN_TYPE_UNKNOWN:
        return true;
    default:
        return false;
    }
}

/* A condition under which the cast value %2 says what the source %1 said; NULL = always. */
static const char *fidelity(const KnType *to, KnColKind from)
{
    bool text = from == KN_COL_VARCHAR;
    switch (to->kind) {
    case KN_TYPE_UNKNOWN:
        return "false";
    case KN_TYPE_FIXED:
        return "octet_length(%2) = %w";
    case KN_TYPE_INT:
    case KN_TYPE_LONG:
        if (text)
            return "regexp_full_match(%1, '\\s*[+-]?[0-9]+\\s*')";
        return is_integer(from) ? NULL : "%2 = %1";
    case KN_TYPE_DECIMAL:
        if (text)
            return "coalesce(TRY(CAST(%1 AS DECIMAL(38,%w)) = %2), true)";
        return from == KN_COL_DECIMAL ? "%2 = %1" : NULL;
    case KN_TYPE_DATE:
        if (text)
            return "coalesce(TRY_CAST(%1 AS TIMESTAMP) = CAST(%2 AS TIMESTAMP), true)";
        return from == KN_COL_DATE ? NULL : "CAST(%2 AS TIMESTAMP) = CAST(%1 AS TIMESTAMP)";
    case KN_TYPE_TIMESTAMP:
        if (text)
            return "coalesce(TRY_CAST(%1 AS TIMESTAMPTZ) = CAST(%2 AS TIMESTAMPTZ), true)";
        return from == KN_COL_TIMESTAMP_NS ? "%2 = %1" : NULL;
    case KN_TYPE_TIMESTAMPTZ:
        return from == KN_COL_TIMESTAMP_NS ? "CAST(%2 AS TIMESTAMP) = %1" : NULL;
    default:
        return NULL;
    }
}

static int condition_number(const KnType *to)
{
    if (to->kind == KN_TYPE_FIXED)
        return to->length;
    return to->scale + 6 < 38 ? to->scale + 6 : 38;
}

static void put_condition(KnBuf *out, const KnType *to, const char *fmt, const char *expr,
                          const char *cast)
{
    for (const char *p = fmt; *p; p++) {
        if (*p != '%')
            kn_buf_char(out, *p);
        else if (*++p == '1')
            kn_buf_text(out, expr);
        else if (*p == '2')
            kn_buf_text(out, cast);
        else
            kn_buf_printf(out, "%d", condition_number(to));
    }
}

/* The engine's name for what `from` holds, for messages about whole columns. */
static const char *from_name(KnColKind kind)
{
    switch (kind) {
    case KN_COL_BOOL:
        return "a boolean";
    case KN_COL_STRUCT:
        return "a struct";
    case KN_COL_LIST:
        return "a list";
    case KN_COL_MAP:
        return "a map";
    case KN_COL_BLOB:
        return "binary";
    case KN_COL_UUID:
        return "a uuid";
    default:
        return is_number(kind) ? "a number" : is_time_point(kind) ? "a date or time" : "text";
    }
}

static const char *mismatch_text(const Convert *cv, const KnType *to, const KnColType *from)
{
    KN_BUF_AUTO type;
    kn_buf_init(&type, 4096);
    kn_type_format(&type, to);
    return kn_arena_printf(cv->arena, "column %s: the table's type is %s, the rows have %s",
                           cv->column, type.data ? type.data : "?", from_name(from->kind));
}

/* The engine calls a bare NULL an INTEGER: such a column may still turn out to hold nothing else.
 */
static KnCode mismatch(const Convert *cv, KnBuf *out, const KnType *to, const KnColType *from,
                       const char *expr, KnErr *err)
{
    const char *text = mismatch_text(cv, to, from);
    if (from->kind != KN_COL_INT32)
        return kn_err_set(err, KN_E_INVAL, "%s", text);
    const char *type = type_sql(cv, to, err);
    if (!type)
        return err ? err->code : KN_E_UNSUPPORTED;
    kn_buf_printf(out, "CASE WHEN %s IS NULL THEN CAST(NULL AS %s) ELSE error(", expr, type);
    kn_sql_text(out, kn_str(text));
    kn_buf_text(out, ") END");
    return KN_OK;
}

static void put_error(KnBuf *out, const Convert *cv, const char *what)
{
    KN_BUF_AUTO text;
    kn_buf_init(&text, 4096);
    kn_buf_printf(&text, "column %s: %s", cv->column, what);
    kn_buf_text(out, "error(");
    kn_sql_text(out, (KnStr){text.data, text.len});
    kn_buf_char(out, ')');
}

/* The cast that gives NULL for what cannot be. */
static const char *cast_sql(const Convert *cv, const KnType *to, const KnColType *from,
                            const char *expr, const char *type)
{
    bool bytes = to->kind == KN_TYPE_BINARY || to->kind == KN_TYPE_FIXED;
    if (bytes && from->kind == KN_COL_VARCHAR)
        return kn_arena_printf(cv->arena,
                               "(CASE WHEN regexp_full_match(%s, '0[xX]([0-9a-fA-F]{2})*') THEN "
                               "unhex(substr(%s, 3)) END)",
                               expr, expr);
    return kn_arena_printf(cv->arena, "TRY_CAST(%s AS %s)", expr, type);
}

static KnCode convert_leaf(const Convert *cv, KnBuf *out, const KnType *to, const KnColType *from,
                           const char *expr, KnErr *err)
{
    const char *type = type_sql(cv, to, err);
    if (!type)
        return err ? err->code : KN_E_UNSUPPORTED;
    if (from->kind == KN_COL_NULL) {
        kn_buf_printf(out, "CAST(NULL AS %s)", type);
        return KN_OK;
    }
    if (!takes(to, from->kind))
        return mismatch(cv, out, to, from, expr, err);
    const char *cast = cast_sql(cv, to, from, expr, type);
    const char *fmt = fidelity(to, from->kind);
    kn_buf_printf(out, "CASE WHEN %s IS NULL THEN NULL WHEN %s IS NOT NULL", expr, cast);
    if (fmt) {
        kn_buf_text(out, " AND (");
        put_condition(out, to, fmt, expr, cast);
        kn_buf_text(out, ")");
    }
    KN_BUF_AUTO name;
    kn_buf_init(&name, 4096);
    kn_type_format(&name, to);
    const char *what = kn_arena_printf(cv->arena, "a value does not fit %s: ", name.data);
    kn_buf_printf(out, " THEN %s ELSE error(", cast);
    kn_sql_text(out, kn_str(kn_arena_printf(cv->arena, "column %s: %s", cv->column, what)));
    kn_buf_printf(out, " || left(CAST(%s AS VARCHAR), 100)) END", expr);
    return KN_OK;
}

/* What a field gets that the rows do not have. */
static KnCode put_default(const Convert *cv, KnBuf *out, const KnField *field, KnErr *err)
{
    if (!field->write_default && field->required)
        return kn_err_set(err, KN_E_INVAL, "column %s is required and the rows do not have it",
                          cv->column);
    KnCode rc = kn_default_sql(cv->arena, field, true, out, err);
    return rc == KN_OK ? rc : kn_err_wrap(err, rc, "write-default of column %s", cv->column);
}

static size_t find_child(const KnColType *from, const char *name)
{
    size_t found = from->n_children;
    for (size_t i = 0; i < from->n_children; i++) {
        if (strcmp(from->child_names[i], name) == 0)
            return i;
        if (kn_str_eq_nocase(kn_str(from->child_names[i]), kn_str(name)))
            found = i;
    }
    return found;
}

static KnCode check_children_known(const Convert *cv, const KnType *to, const KnColType *from,
                                   KnErr *err)
{
    for (size_t c = 0; c < from->n_children; c++) {
        bool known = false;
        for (size_t i = 0; i < to->n_fields; i++)
            known |= find_child(from, to->fields[i].name) == c;
        if (!known)
            return kn_err_set(err, KN_E_INVAL, "column %s has no field %s in the table", cv->column,
                              from->child_names[c]);
    }
    return KN_OK;
}

static KnCode convert_struct(const Convert *cv, KnBuf *out, const KnType *to, const KnColType *from,
                             const char *expr, KnErr *err)
{
    KN_TRY(check_children_known(cv, to, from, err));
    kn_buf_printf(out, "CASE WHEN %s IS NULL THEN NULL ELSE struct_pack(", expr);
    for (size_t i = 0; i < to->n_fields; i++) {
        const KnField *field = &to->fields[i];
        Convert inner = *cv;
        inner.column = kn_arena_printf(cv->arena, "%s.%s", cv->column, field->name);
        size_t child = find_child(from, field->name);
        kn_buf_text(out, i > 0 ? ", " : "");
        kn_sql_ident(out, kn_str(field->name));
        kn_buf_text(out, " := ");
        if (child == from->n_children) {
            KN_TRY(put_default(&inner, out, field, err));
            continue;
        }
        KN_BUF_AUTO path;
        kn_buf_init(&path, (size_t)1 << 20);
        kn_buf_printf(&path, "struct_extract(%s, ", expr);
        kn_sql_text(&path, kn_str(from->child_names[child]));
        kn_buf_char(&path, ')');
        KN_TRY(convert(&inner, out, field, &from->children[child], path.data, err));
    }
    kn_buf_text(out, ") END");
    return KN_OK;
}

static KnCode convert_list(const Convert *cv, KnBuf *out, const KnType *to, const KnColType *from,
                           const char *expr, KnErr *err)
{
    Convert inner = *cv;
    inner.depth++;
    inner.column = kn_arena_printf(cv->arena, "%s.element", cv->column);
    const char *param = kn_arena_printf(cv->arena, "x%d", cv->depth);
    kn_buf_printf(out, "list_transform(%s, lambda %s: ", expr, param);
    KN_TRY(convert(&inner, out, &to->fields[0], &from->children[0], param, err));
    kn_buf_char(out, ')');
    return KN_OK;
}

static KnCode convert_map(const Convert *cv, KnBuf *out, const KnType *to, const KnColType *from,
                          const char *expr, KnErr *err)
{
    const KnColType *entry = &from->children[0];
    Convert inner = *cv;
    inner.depth++;
    inner.column = kn_arena_printf(cv->arena, "%s.key", cv->column);
    const char *key = kn_arena_printf(cv->arena, "x%d.key", cv->depth);
    const char *value = kn_arena_printf(cv->arena, "x%d.value", cv->depth);
    kn_buf_printf(
        out, "map_from_entries(list_transform(map_entries(%s), lambda x%d: struct_pack(k := ", expr,
        cv->depth);
    KN_TRY(convert(&inner, out, &to->fields[0], &entry->children[0], key, err));
    kn_buf_text(out, ", v := ");
    inner.column = kn_arena_printf(cv->arena, "%s.value", cv->column);
    KN_TRY(convert(&inner, out, &to->fields[1], &entry->children[1], value, err));
    kn_buf_text(out, ")))");
    return KN_OK;
}

/* Every value of `from` is one of `to` as it stands, checks of required values included. Lengths of
 * fixed are always checked. */
static bool is_same(const KnType *to, const KnColType *from)
{
    if (to->kind == KN_TYPE_FIXED || to->kind == KN_TYPE_UNKNOWN ||
        kn_type_column_kind(to->kind) != from->kind || from->kind == KN_COL_OTHER)
        return false;
    if (from->kind == KN_COL_DECIMAL)
        return from->width == to->precision && from->scale == to->scale;
    const KnColType *children = from->children;
    size_t n = from->n_children;
    if (from->kind == KN_COL_MAP) {
        n = children[0].n_children;
        children = children[0].children;
    }
    if (n != to->n_fields && kn_type_is_nested(to))
        return false;
    for (size_t i = 0; i < to->n_fields; i++) {
        bool key = from->kind == KN_COL_MAP && i == 0; /* the engine has no NULL keys */
        if ((to->fields[i].required && !key) || !is_same(to->fields[i].type, &children[i]))
            return false;
        if (from->kind == KN_COL_STRUCT && strcmp(to->fields[i].name, from->child_names[i]) != 0)
            return false;
    }
    return true;
}

static KnCode convert_value(const Convert *cv, KnBuf *out, const KnType *to, const KnColType *from,
                            const char *expr, KnErr *err)
{
    if (is_same(to, from)) {
        kn_buf_text(out, expr);
        return KN_OK;
    }
    if (!kn_type_is_nested(to) || from->kind == KN_COL_NULL)
        return convert_leaf(cv, out, to, from, expr, err);
    static const KnColKind kinds[] = {
        [KN_TYPE_STRUCT] = KN_COL_STRUCT, [KN_TYPE_LIST] = KN_COL_LIST, [KN_TYPE_MAP] = KN_COL_MAP};
    if (from->kind != kinds[to->kind])
        return mismatch(cv, out, to, from, expr, err);
    if (to->kind == KN_TYPE_STRUCT)
        return convert_struct(cv, out, to, from, expr, err);
    if (to->kind == KN_TYPE_LIST)
        return convert_list(cv, out, to, from, expr, err);
    return convert_map(cv, out, to, from, expr, err);
}

static KnCode convert(const Convert *cv, KnBuf *out, const KnField *to, const KnColType *from,
                      const char *expr, KnErr *err)
{
    if (to->required && from->kind == KN_COL_NULL)
        return kn_err_set(err, KN_E_INVAL, "column %s is required and gets no value", cv->column);
    if (to->required)
        kn_buf_text(out, "coalesce(");
    KN_TRY(convert_value(cv, out, to->type, from, expr, err));
    if (to->required) {
        kn_buf_text(out, ", ");
        put_error(out, cv, "a required value is NULL");
        kn_buf_char(out, ')');
    }
    return KN_OK;
}

/* ---- top level ---- */

typedef struct Source {
    size_t n;
    const char *const *names;
    const KnColType *const *types;
    size_t *used_by; /* schema field index + 1 */
    bool *given;     /* by schema field; or NULL */
} Source;

static size_t find_source(const Source *src, const char *name)
{
    size_t found = src->n;
    for (size_t i = 0; i < src->n; i++) {
        if (strcmp(src->names[i], name) == 0)
            return i;
        if (kn_str_eq_nocase(kn_str(src->names[i]), kn_str(name)))
            found = i;
    }
    return found;
}

static KnCode check_source(const KnWriter *w, const Source *src, KnErr *err)
{
    for (size_t i = 0; i < src->n; i++) {
        if (!src->used_by[i])
            return kn_err_set(err, KN_E_INVAL, "table %s has no column %s", w->tbl->name,
                              src->names[i]);
        for (size_t j = 0; j < i; j++) {
            if (kn_str_eq_nocase(kn_str(src->names[i]), kn_str(src->names[j])))
                return kn_err_set(err, KN_E_INVAL, "column %s is given twice", src->names[i]);
        }
    }
    return KN_OK;
}

static KnCode put_columns(KnWriter *w, const Source *src, KnBuf *ret, KnErr *err)
{
    const KnType *root = &w->schema->root;
    for (size_t i = 0; i < root->n_fields; i++) {
        const KnField *field = &root->fields[i];
        size_t at = find_source(src, field->name);
        Convert cv = {.column = field->name, .arena = w->arena};
        kn_buf_text(ret, i > 0 ? ", " : "");
        if (at < src->n) {
            src->used_by[at] = i + 1;
            KN_TRY(convert(&cv, ret, field, src->types[at], kn_arena_printf(w->arena, "s%zu", at),
                           err));
        } else if (src->given && field->required && !field->write_default) {
            kn_buf_printf(ret, "CAST(NULL AS %s)", type_sql(&cv, field->type, NULL));
        } else {
            KN_TRY(put_default(&cv, ret, field, err));
        }
        if (src->given)
            src->given[i] = at < src->n;
        kn_buf_printf(ret, " AS c%zu", i);
    }
    return check_source(w, src, err);
}

/* Without blanks and semicolons at its end, so that it can stand in brackets. */
static KnStr trimmed(const char *sql)
{
    KnStr s = kn_str(sql);
    while (s.len > 0 && (s.ptr[s.len - 1] == ';' || isspace((unsigned char)s.ptr[s.len - 1])))
        s.len--;
    return s;
}

/* Column names and types of the rows given. The types live as long as the stream. */
static void read_source(KnWriter *w, const KnStream *stream, Source *ret)
{
    size_t n = kn_stream_n_columns(stream);
    const char **names = kn_arena_alloc(w->arena, (n + 1) * sizeof(*names));
    const KnColType **types = kn_arena_alloc(w->arena, (n + 1) * sizeof(*types));
    for (size_t i = 0; i < n; i++) {
        names[i] = kn_arena_strdup(w->arena, kn_stream_column_name(stream, i));
        types[i] = kn_stream_column_type(stream, i);
    }
    *ret = (Source){.n = n,
                    .names = names,
                    .types = types,
                    .used_by = kn_arena_zalloc(w->arena, (n + 1) * sizeof(size_t))};
}

/* The rows as they were given. */
typedef struct Given {
    KnStr select;
    const KnStream *stream; /* of them */
    bool *columns;          /* or NULL */
} Given;

static KnCode put_select(KnWriter *w, const Given *given, KnBuf *ret, KnErr *err)
{
    Source src;
    read_source(w, given->stream, &src);
    src.given = given->columns;
    kn_buf_text(ret, "SELECT ");
    KN_TRY(put_columns(w, &src, ret, err));
    kn_buf_text(ret, " FROM (");
    kn_buf_str(ret, given->select);
    kn_buf_text(ret, "\n) AS src(");
    for (size_t i = 0; i < src.n; i++)
        kn_buf_printf(ret, "%ss%zu", i > 0 ? ", " : "", i);
    kn_buf_text(ret, ")");
    return kn_buf_check(ret, err);
}

KnCode kn_write_given_columns_sql(KnWriter *w, const char *select_sql, bool *ret_given, KnBuf *ret,
                                  KnErr *err)
{
    KN_TRY(kn_file_shape_check(w->tbl->name, w->schema, err));
    KnStr select = trimmed(select_sql);
    KN_BUF_AUTO probe;
    kn_buf_init(&probe, (size_t)256 << 20);
    kn_buf_text(&probe, "SELECT * FROM (");
    kn_buf_str(&probe, select);
    kn_buf_text(&probe, "\n) AS src LIMIT 0");
    KN_TRY(kn_buf_check(&probe, err));
    KnStream *stream = NULL;
    KN_TRY(kn_session_query(w->ses, probe.data, &stream, err));
    KnCode rc = put_select(w, &(Given){select, stream, ret_given}, ret, err);
    kn_stream_close(stream);
    return rc;
}

KnCode kn_write_columns_sql(KnWriter *w, const char *select_sql, KnBuf *ret, KnErr *err)
{
    return kn_write_given_columns_sql(w, select_sql, NULL, ret, err);
}

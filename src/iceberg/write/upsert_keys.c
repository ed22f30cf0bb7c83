/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upsert_keys.c - which columns are the key, are the rows' keys good, and where can they be.
 *
 * A key is one value or several; NULL is no key. Values are the same as row_sql.h has it: NaN is
 * NaN, and -0.0 is not 0.0.
 */
#include "iceberg/write/upsert_keys.h"

#include <inttypes.h>

#include "iceberg/scan/row_sql.h"

enum { FEW_KEYS = 200 };

/* ---- columns ---- */

static size_t find_column(const KnSchema *schema, const char *name)
{
    size_t found = schema->root.n_fields;
    for (size_t i = 0; i < schema->root.n_fields; i++) {
        if (strcmp(schema->root.fields[i].name, name) == 0)
            return i;
        if (kn_str_eq_nocase(kn_str(schema->root.fields[i].name), kn_str(name)))
            found = i;
    }
    return found;
}

static size_t find_id(const KnSchema *schema, int32_t id)
{
    size_t i = 0;
    while (i < schema->root.n_fields && schema->root.fields[i].id != id)
        i++;
    return i;
}

static KnCode check_column(const KnWriter *w, const bool *given, size_t column, KnErr *err)
{
    const KnField *field = &w->schema->root.fields[column];
    if (kn_type_is_nested(field->type) || field->type->kind >= KN_TYPE_UNKNOWN)
        return kn_err_set(err, KN_E_INVAL,
                          "table %s: column %s cannot be a key: its type is not "
                          "primitive",
                          w->tbl->name, field->name);
    if (!given[column])
        return kn_err_set(err, KN_E_INVAL, "the rows do not have the key column %s", field->name);
    return KN_OK;
}

static KnCode choose_named(const KnWriter *w, const KnUpsert *upsert, size_t *columns, KnErr *err)
{
    for (size_t i = 0; i < upsert->n_keys; i++) {
        columns[i] = find_column(w->schema, upsert->keys[i]);
        if (columns[i] == w->schema->root.n_fields)
            return kn_err_set(err, KN_E_INVAL, "table %s has no column %s to be a key",
                              w->tbl->name, upsert->keys[i]);
        for (size_t k = 0; k < i; k++) {
            if (columns[k] == columns[i])
                return kn_err_set(err, KN_E_INVAL, "key column %s is given twice", upsert->keys[i]);
        }
    }
    return KN_OK;
}

static KnCode choose_identifiers(const KnWriter *w, size_t *columns, KnErr *err)
{
    const KnSchema *schema = w->schema;
    if (schema->n_identifier_ids == 0)
        return kn_err_set(err, KN_E_INVAL,
                          "table %s has no identifier fields: say which columns are the key",
                          w->tbl->name);
    for (size_t i = 0; i < schema->n_identifier_ids; i++) {
        columns[i] = find_id(schema, schema->identifier_ids[i]);
        if (columns[i] == schema->root.n_fields)
            return kn_err_set(err, KN_E_UNSUPPORTED,
                              "table %s: identifier field %d is inside a struct: say which columns "
                              "are the key",
                              w->tbl->name, schema->identifier_ids[i]);
    }
    return KN_OK;
}

KnCode kn_upsert_keys_choose(KnWriter *w, const KnUpsert *upsert, const bool *given,
                             KnUpsertKeys *ret, KnErr *err)
{
    size_t n = upsert->n_keys > 0 ? upsert->n_keys : w->schema->n_identifier_ids;
    size_t *columns = kn_arena_alloc(w->arena, (n + 1) * sizeof(*columns));
    KN_TRY(upsert->n_keys > 0 ? choose_named(w, upsert, columns, err)
                              : choose_identifiers(w, columns, err));
    for (size_t i = 0; i < n; i++)
        KN_TRY(check_column(w, given, columns[i], err));
    *ret = (KnUpsertKeys){.schema = w->schema, .n = n, .columns = columns};
    return KN_OK;
}

bool kn_upsert_keys_has(const KnUpsertKeys *keys, size_t column)
{
    for (size_t i = 0; i < keys->n; i++) {
        if (keys->columns[i] == column)
            return true;
    }
    return false;
}

static const KnType *type_of(const KnUpsertKeys *keys, size_t i)
{
    return keys->schema->root.fields[keys->columns[i]].type;
}

static bool is_float(const KnType *type)
{
    return type->kind == KN_TYPE_FLOAT || type->kind == KN_TYPE_DOUBLE;
}

void kn_upsert_keys_put_match(KnBuf *buf, const KnUpsertKeys *keys, const char *a, const char *b)
{
    for (size_t i = 0; i < keys->n; i++) {
        size_t c = keys->columns[i];
        kn_buf_printf(buf, "%s%s.c%zu = %s.c%zu", i > 0 ? " AND " : "", a, c, b, c);
        if (is_float(type_of(keys, i)))
            kn_buf_printf(buf, " AND (%s.c%zu <> 0 OR signbit(%s.c%zu) = signbit(%s.c%zu))", a, c,
                          a, c, b, c);
    }
}

/* ---- checks ---- */

/* `id=7, region=NULL` as SQL. */
static void put_key_text(KnBuf *buf, const KnUpsertKeys *keys)
{
    kn_buf_text(buf, "concat_ws(', '");
    for (size_t i = 0; i < keys->n; i++) {
        size_t c = keys->columns[i];
        KN_BUF_AUTO name;
        kn_buf_init(&name, (size_t)1 << 20);
        kn_buf_printf(&name, "%s=", keys->schema->root.fields[c].name);
        kn_buf_text(buf, ", ");
        kn_sql_text(buf, (KnStr){name.data, name.len});
        kn_buf_printf(buf, " || coalesce(left(CAST(c%zu AS VARCHAR), 100), 'NULL')", c);
    }
    kn_buf_char(buf, ')');
}

/* The first text of a query, or KN_OK without one. */
static KnCode find_text(KnWriter *w, const KnBuf *sql, KnBuf *ret, bool *ret_found, KnErr *err)
{
    KN_TRY(kn_buf_check(sql, err));
    KnCode rc = kn_session_query_text(w->ses, sql->data, ret, err);
    *ret_found = rc == KN_OK;
    return rc == KN_E_NOTFOUND ? KN_OK : rc;
}

static KnCode check_null(KnWriter *w, const KnUpsertKeys *keys, const char *table, KnErr *err)
{
    KN_BUF_AUTO sql;
    KN_BUF_AUTO text;
    kn_buf_init(&sql, (size_t)16 << 20);
    kn_buf_init(&text, (size_t)1 << 20);
    kn_buf_text(&sql, "SELECT ");
    put_key_text(&sql, keys);
    kn_buf_printf(&sql, " FROM %s WHERE ", table);
    for (size_t i = 0; i < keys->n; i++)
        kn_buf_printf(&sql, "%sc%zu IS NULL", i > 0 ? " OR " : "", keys->columns[i]);
    kn_buf_text(&sql, " LIMIT 1");
    bool found = false;
    KN_TRY(find_text(w, &sql, &text, &found, err));
    return found ? kn_err_set(err, KN_E_INVAL, "a row has no key (%.300s): NULL is none", text.data)
                 : KN_OK;
}

static KnCode check_twice(KnWriter *w, const KnUpsertKeys *keys, const char *table, KnErr *err)
{
    KN_BUF_AUTO sql;
    KN_BUF_AUTO text;
    kn_buf_init(&sql, (size_t)16 << 20);
    kn_buf_init(&text, (size_t)1 << 20);
    kn_buf_text(&sql, "SELECT min(");
    put_key_text(&sql, keys);
    kn_buf_printf(&sql, ") FROM %s GROUP BY ", table);
    for (size_t i = 0; i < keys->n; i++) {
        char name[24];
        int len = snprintf(name, sizeof(name), "c%zu", keys->columns[i]);
        kn_buf_text(&sql, i > 0 ? ", " : "");
        kn_row_identity_sql(&sql, type_of(keys, i), (KnStr){name, (size_t)len});
    }
    kn_buf_text(&sql, " HAVING count(*) > 1 LIMIT 1");
    bool found = false;
    KN_TRY(find_text(w, &sql, &text, &found, err));
    return found ? kn_err_set(err, KN_E_INVAL,
                              "two rows have the same key (%.300s): which one counts is not known",
                              text.data)
                 : KN_OK;
}

KnCode kn_upsert_keys_check(KnWriter *w, const KnUpsertKeys *keys, const char *table, KnErr *err)
{
    KN_TRY(check_null(w, keys, table, err));
    return check_twice(w, keys, table, err);
}

/* ---- filter ---- */

typedef struct Literals {
    KnWriter *w;
    const KnType *type;
    KN_VEC(KnValue) values;
} Literals;

static KnCode take_literals(void *arg, KnBatch *batch, KnErr *err)
{
    Literals *lits = arg;
    KnVector vec = kn_batch_vector(batch, 0);
    for (size_t row = 0; row < kn_batch_rows(batch); row++) {
        KnValue value;
        KN_TRY(kn_value_from_vector(lits->w->arena, lits->type, &vec, row, &value, err));
        KnTypeKind kind = lits->type->kind;
        if (kind == KN_TYPE_STRING || kind == KN_TYPE_BINARY || kind == KN_TYPE_FIXED)
            value.bytes.ptr = kn_arena_strndup(lits->w->arena, value.bytes.ptr, value.bytes.len);
        *kn_vec_push(&lits->values) = value;
    }
    return KN_OK;
}

static KnExpr *predicate(KnArena *arena, KnExprOp op, const KnField *field, const KnValue *literal)
{
    const KnField **path = kn_arena_alloc(arena, sizeof(*path));
    *path = field;
    KnExpr *expr = kn_arena_zalloc(arena, sizeof(*expr));
    *expr = (KnExpr){.op = op, .name = field->name, .field = field, .n_path = 1, .path = path};
    expr->literals = literal;
    expr->n_literals = 1;
    return expr;
}

static const KnExpr *both(KnArena *arena, const KnExpr *a, const KnExpr *b)
{
    const KnExpr **children = kn_arena_alloc(arena, 2 * sizeof(const KnExpr *));
    children[0] = a;
    children[1] = b;
    KnExpr *expr = kn_arena_zalloc(arena, sizeof(*expr));
    *expr = (KnExpr){.op = KN_EXPR_AND, .n_children = 2, .children = children};
    return expr;
}

/* What is known of one key column: its values where they are few, else its least and greatest. */
static KnCode column_filter(Literals *lits, size_t column, const char *table, const KnExpr **ret,
                            KnErr *err)
{
    KnWriter *w = lits->w;
    const KnField *field = &w->schema->root.fields[column];
    const char *few_sql = kn_arena_printf(w->arena, "SELECT DISTINCT c%zu FROM %s LIMIT %d", column,
                                          table, FEW_KEYS + 1);
    KN_TRY(kn_session_visit(w->ses, few_sql, take_literals, lits, err));
    bool few = lits->values.len <= FEW_KEYS;
    if (!few) {
        const char *range_sql = kn_arena_printf(
            w->arena, "SELECT unnest([min(c%zu), max(c%zu)]) FROM %s", column, column, table);
        lits->values.len = 0;
        KN_TRY(kn_session_visit(w->ses, range_sql, take_literals, lits, err));
    }
    size_t n = lits->values.len;
    KnValue *values = kn_arena_alloc(w->arena, (n + 1) * sizeof(*values));
    for (size_t i = 0; i < n; i++)
        values[i] = lits->values.items[i];
    KnExpr *in = predicate(w->arena, KN_EXPR_IN, field, values);
    in->n_literals = n;
    *ret = few ? in
               : both(w->arena, predicate(w->arena, KN_EXPR_GE, field, &values[0]),
                      predicate(w->arena, KN_EXPR_LE, field, &values[1]));
    return KN_OK;
}

KnCode kn_upsert_keys_filter(KnWriter *w, const KnUpsertKeys *keys, const char *table,
                             const KnExpr **ret, KnErr *err)
{
    const KnExpr *all = NULL;
    for (size_t i = 0; i < keys->n; i++) {
        Literals lits = {.w = w, .type = type_of(keys, i)};
        const KnExpr *one = NULL;
        KnCode rc = column_filter(&lits, keys->columns[i], table, &one, err);
        kn_vec_done(&lits.values);
        if (rc != KN_OK)
            return rc;
        all = all ? both(w->arena, all, one) : one;
    }
    *ret = all;
    return KN_OK;
}

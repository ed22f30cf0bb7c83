/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row_sql.c - identity and hash of rows as SQL.
 *
 * A value that holds no float and no map is its own identity. A float at the top is compared as
 * itself and by "is it -0.0"; nested ones become text, which spells both zeros and one NaN. A map
 * becomes its sorted list of entries. A float is never named bare: the engine's sort takes columns
 * that are keys back out of the key, where -0.0 has become 0.0, and a window sorts too. Lambda
 * parameters are numbered by depth, since the engine's nested lambdas see the outer ones.
 */
#include "iceberg/scan/row_sql.h"

#include "engine/engine.h"

static bool is_float(const KnType *type)
{
    return type->kind == KN_TYPE_FLOAT || type->kind == KN_TYPE_DOUBLE;
}

bool kn_row_identity_is_plain(const KnType *type)
{
    if (type->kind == KN_TYPE_MAP)
        return false;
    for (size_t i = 0; i < type->n_fields; i++) {
        const KnType *inner = type->fields[i].type;
        if (is_float(inner) || !kn_row_identity_is_plain(inner))
            return false;
    }
    return true;
}

/* signs: 0.0 and -0.0 are two values. */
static void canonical(KnBuf *buf, const KnType *type, KnStr expr, int depth, bool signs);

static void put_field(KnBuf *buf, KnStr expr, const char *name)
{
    kn_buf_text(buf, "struct_extract(");
    kn_buf_str(buf, expr);
    kn_buf_text(buf, ", ");
    kn_sql_text(buf, kn_str(name));
    kn_buf_char(buf, ')');
}

static void canonical_struct(KnBuf *buf, const KnType *type, KnStr expr, int depth, bool signs)
{
    kn_buf_text(buf, "CASE WHEN (");
    kn_buf_str(buf, expr);
    kn_buf_text(buf, ") IS NULL THEN NULL ELSE struct_pack(");
    for (size_t i = 0; i < type->n_fields; i++) {
        KN_BUF_AUTO inner;
        kn_buf_init(&inner, buf->max);
        put_field(&inner, expr, type->fields[i].name);
        kn_buf_printf(buf, "%sf%zu := ", i > 0 ? ", " : "", i);
        canonical(buf, type->fields[i].type, (KnStr){inner.data, inner.len}, depth, signs);
    }
    kn_buf_text(buf, ") END");
}

static void canonical_list(KnBuf *buf, const KnType *type, KnStr expr, int depth, bool signs)
{
    char name[16];
    int len = snprintf(name, sizeof(name), "x%d", depth);
    kn_buf_text(buf, "list_transform(");
    kn_buf_str(buf, expr);
    kn_buf_printf(buf, ", lambda %s: ", name);
    canonical(buf, type->fields[0].type, (KnStr){name, (size_t)len}, depth + 1, signs);
    kn_buf_char(buf, ')');
}

static void canonical_map(KnBuf *buf, const KnType *type, KnStr expr, int depth, bool signs)
{
    char key[24];
    char value[24];
    int key_len = snprintf(key, sizeof(key), "x%d.key", depth);
    int value_len = snprintf(value, sizeof(value), "x%d.value", depth);
    kn_buf_text(buf, "list_sort(list_transform(map_entries(");
    kn_buf_str(buf, expr);
    kn_buf_printf(buf, "), lambda x%d: struct_pack(k := ", depth);
    canonical(buf, type->fields[0].type, (KnStr){key, (size_t)key_len}, depth + 1, signs);
    kn_buf_text(buf, ", v := ");
    canonical(buf, type->fields[1].type, (KnStr){value, (size_t)value_len}, depth + 1, signs);
    kn_buf_text(buf, ")))");
}

static void canonical_float(KnBuf *buf, KnStr expr, bool signs)
{
    kn_buf_text(buf, "CASE WHEN isnan(");
    kn_buf_str(buf, expr);
    kn_buf_text(buf, ") THEN 'nan' ");
    if (!signs) {
        kn_buf_text(buf, "WHEN ");
        kn_buf_str(buf, expr);
        kn_buf_text(buf, " = 0 THEN '0.0' ");
    }
    kn_buf_text(buf, "ELSE CAST(");
    kn_buf_str(buf, expr);
    kn_buf_text(buf, " AS VARCHAR) END");
}

static void canonical(KnBuf *buf, const KnType *type, KnStr expr, int depth, bool signs)
{
    if (is_float(type))
        canonical_float(buf, expr, signs);
    else if (kn_row_identity_is_plain(type))
        kn_buf_str(buf, expr);
    else if (type->kind == KN_TYPE_STRUCT)
        canonical_struct(buf, type, expr, depth, signs);
    else if (type->kind == KN_TYPE_LIST)
        canonical_list(buf, type, expr, depth, signs);
    else
        canonical_map(buf, type, expr, depth, signs);
}

void kn_row_identity_sql(KnBuf *buf, const KnType *type, KnStr expr)
{
    if (!is_float(type)) {
        canonical(buf, type, expr, 0, true);
        return;
    }
    kn_buf_char(buf, '(');
    kn_buf_str(buf, expr);
    kn_buf_text(buf, " + 0), (");
    kn_buf_str(buf, expr);
    kn_buf_text(buf, " = 0 AND signbit(");
    kn_buf_str(buf, expr);
    kn_buf_text(buf, "))");
}

void kn_row_stored_identity_sql(KnBuf *buf, const KnType *type, KnStr expr)
{
    if (!is_float(type)) {
        canonical(buf, type, expr, 0, false);
        return;
    }
    kn_buf_char(buf, '(');
    kn_buf_str(buf, expr);
    kn_buf_text(buf, " + 0)");
}

/* ---- -0.0 ---- */

static bool has_float(const KnType *type)
{
    bool found = is_float(type);
    for (size_t i = 0; !found && i < type->n_fields; i++)
        found = has_float(type->fields[i].type);
    return found;
}

bool kn_row_has_nested_float(const KnType *type)
{
    return !is_float(type) && has_float(type);
}

static void negative_zero(KnBuf *buf, const KnType *type, KnStr expr, int depth);

static void negative_zero_list(KnBuf *buf, const KnField *element, KnStr list, int depth)
{
    char name[16];
    int len = snprintf(name, sizeof(name), "x%d", depth);
    kn_buf_text(buf, "len(list_filter(");
    kn_buf_str(buf, list);
    kn_buf_printf(buf, ", lambda %s: ", name);
    negative_zero(buf, element->type, (KnStr){name, (size_t)len}, depth + 1);
    kn_buf_text(buf, ")) > 0");
}

static void negative_zero_map(KnBuf *buf, const KnType *type, KnStr expr, int depth)
{
    static const char *const parts[] = {"map_keys(", "map_values("};
    bool first = true;
    for (size_t i = 0; i < 2; i++) {
        if (!has_float(type->fields[i].type))
            continue;
        KN_BUF_AUTO list;
        kn_buf_init(&list, buf->max);
        kn_buf_text(&list, parts[i]);
        kn_buf_str(&list, expr);
        kn_buf_char(&list, ')');
        kn_buf_text(buf, first ? "" : " OR ");
        negative_zero_list(buf, &type->fields[i], (KnStr){list.data, list.len}, depth);
        first = false;
    }
}

static void negative_zero_struct(KnBuf *buf, const KnType *type, KnStr expr, int depth)
{
    bool first = true;
    for (size_t i = 0; i < type->n_fields; i++) {
        if (!has_float(type->fields[i].type))
            continue;
        KN_BUF_AUTO inner;
        kn_buf_init(&inner, buf->max);
        put_field(&inner, expr, type->fields[i].name);
        kn_buf_text(buf, first ? "" : " OR ");
        negative_zero(buf, type->fields[i].type, (KnStr){inner.data, inner.len}, depth);
        first = false;
    }
}

static void negative_zero(KnBuf *buf, const KnType *type, KnStr expr, int depth)
{
    kn_buf_char(buf, '(');
    if (is_float(type)) {
        kn_buf_str(buf, expr);
        kn_buf_text(buf, " = 0 AND signbit(");
        kn_buf_str(buf, expr);
        kn_buf_char(buf, ')');
    } else if (type->kind == KN_TYPE_STRUCT) {
        negative_zero_struct(buf, type, expr, depth);
    } else if (type->kind == KN_TYPE_LIST) {
        negative_zero_list(buf, &type->fields[0], expr, depth);
    } else {
        negative_zero_map(buf, type, expr, depth);
    }
    kn_buf_char(buf, ')');
}

bool kn_row_negative_zero_sql(KnBuf *buf, const KnType *type, KnStr expr)
{
    if (!has_float(type))
        return false;
    negative_zero(buf, type, expr, 0);
    return true;
}

/* ---- buckets ---- */

/* A value's text for the hash; NULL stays NULL. */
static void text_sql(KnBuf *buf, const KnType *type, KnStr expr)
{
    bool is_bytes = type->kind == KN_TYPE_BINARY || type->kind == KN_TYPE_FIXED;
    kn_buf_text(buf, is_bytes ? "hex(" : "CAST(");
    canonical(buf, type, expr, 0, true);
    kn_buf_text(buf, is_bytes ? ")" : " AS VARCHAR)");
}

void kn_row_bucket_sql(KnBuf *buf, const KnRowColumn *columns, size_t n, uint32_t n_buckets)
{
    if (n_buckets <= 1 || n == 0) {
        kn_buf_char(buf, '0');
        return;
    }
    kn_buf_text(buf, "md5_number_lower(concat(");
    for (size_t i = 0; i < n; i++) {
        KN_BUF_AUTO text;
        kn_buf_init(&text, buf->max);
        text_sql(&text, columns[i].type, kn_str(columns[i].expr));
        kn_buf_printf(buf, "%scoalesce(CAST(strlen(", i > 0 ? ", " : "");
        kn_buf_append(buf, text.data, text.len);
        kn_buf_text(buf, ") AS VARCHAR) || ':' || ");
        kn_buf_append(buf, text.data, text.len);
        kn_buf_text(buf, ", 'n')");
    }
    kn_buf_printf(buf, ")) %% %u", (unsigned)n_buckets);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write_metrics.c - a written file's counts and bounds, as much of them as the table asks for.
 *
 * The engine's statistics are texts; they become typed bounds here (spec: "Data File Fields",
 * appendix D). Bounds are cut to 16 characters or bytes unless the column's mode says otherwise: a
 * lower bound by cutting, an upper bound by cutting and adding one to the last character that can
 * grow, or none when there is none. Columns inside lists and maps have sizes only. UUID columns
 * have no bounds: readers do not agree on their order. Zeros keep both signs inside the bounds:
 * lower -0.0, upper 0.0. The engine says only whether a column has NaN; how many is counted by a
 * query on the file, when it has.
 */
#include "engine/parquet.h"
#include "iceberg/write/write_internal.h"

typedef enum MetricsMode { MODE_NONE, MODE_COUNTS, MODE_TRUNCATE, MODE_FULL } MetricsMode;

typedef struct Mode {
    MetricsMode mode;
    size_t length; /* of truncate */
} Mode;

/* A leaf of the schema with its path in the file. */
typedef struct Leaf {
    const KnField *field;
    const char *path;   /* parts joined by \x1f, as the engine gives it */
    const char *dotted; /* as properties name it */
    bool repeated;      /* inside a list or a map */
} Leaf;

typedef KN_VEC(Leaf) LeafVec;

static void find_leaves(KnArena *arena, const KnType *type, const Leaf *at, LeafVec *ret)
{
    for (size_t i = 0; i < type->n_fields; i++) {
        const KnField *field = &type->fields[i];
        Leaf leaf = {.field = field, .path = field->name, .dotted = field->name};
        if (at) {
            leaf.path = kn_arena_printf(arena, "%s\x1f%s", at->path, field->name);
            leaf.dotted = kn_arena_printf(arena, "%s.%s", at->dotted, field->name);
            leaf.repeated = at->repeated;
        }
        leaf.repeated |= type->kind == KN_TYPE_LIST || type->kind == KN_TYPE_MAP;
        if (kn_type_is_nested(field->type))
            find_leaves(arena, field->type, &leaf, ret);
        else
            *kn_vec_push(ret) = leaf;
    }
}

static bool parse_mode(const char *text, Mode *ret)
{
    long long length = 0;
    char close = '\0';
    if (strcasecmp(text, "none") == 0)
        *ret = (Mode){MODE_NONE, 0};
    else if (strcasecmp(text, "counts") == 0)
        *ret = (Mode){MODE_COUNTS, 0};
    else if (strcasecmp(text, "full") == 0)
        *ret = (Mode){MODE_FULL, 0};
    else if (sscanf(text, "truncate(%lld%c", &length, &close) == 2 && close == ')' && length > 0)
        *ret = (Mode){MODE_TRUNCATE, (size_t)length};
    else
        return false;
    return true;
}

/* Java's rule: columns beyond the first 100 have no metrics unless a property names a default. */
static Mode mode_of(const KnWriter *w, const Leaf *leaf, size_t index)
{
    const KnMetadata *md = w->tbl->md;
    Mode mode = {MODE_TRUNCATE, 16};
    const char *dflt = kn_metadata_property(md, "write.metadata.metrics.default", NULL);
    if (dflt)
        (void)parse_mode(dflt, &mode);
    else if ((int64_t)index >=
             kn_write_property_i64(md, "write.metadata.metrics.max-inferred-column-defaults", 100))
        mode = (Mode){MODE_NONE, 0};
    const char *key = kn_arena_printf(w->arena, "write.metadata.metrics.column.%s", leaf->dotted);
    const char *own = kn_metadata_property(md, key, NULL);
    if (own)
        (void)parse_mode(own, &mode);
    return mode;
}

/* ---- bounds ---- */

/* Bytes of the first n characters (text) or bytes. */
static size_t cut_length(const KnType *type, KnStr s, size_t n)
{
    if (type->kind != KN_TYPE_STRING)
        return s.len < n ? s.len : n;
    size_t at = 0;
    for (size_t i = 0; i < n && at < s.len; i++) {
        size_t len = kn_str_utf8_len((KnStr){s.ptr + at, s.len - at});
        if (len == 0)
            break;
        at += len;
    }
    return at;
}

/* The next code point's UTF-8 in out; 0 = there is none. */
static size_t next_char(const char *p, size_t len, char out[4])
{
    static const uint8_t first_mask[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t c = (uint8_t)p[0] & first_mask[len];
    for (size_t i = 1; i < len; i++)
        c = c << 6 | ((uint8_t)p[i] & 0x3f);
    c = c == 0xd7ff ? 0xe000 : c + 1;
    if (c > 0x10ffff)
        return 0;
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    out[0] = (char)(lead[n] | c);
    return n;
}

/* The least text of at most s.len bytes and as many characters that is above everything that starts
 * with s; false = there is none. */
static bool bump_text(KnArena *arena, KnStr s, KnStr *ret)
{
    for (size_t end = s.len; end > 0;) {
        size_t at = end - 1;
        while (at > 0 && ((uint8_t)s.ptr[at] & 0xc0) == 0x80)
            at--;
        char next[4];
        size_t len = next_char(s.ptr + at, end - at, next);
        if (len > 0) {
            char *out = kn_arena_alloc(arena, at + 5);
            memcpy(out, s.ptr, at);
            memcpy(out + at, next, len);
            *ret = (KnStr){out, at + len};
            return true;
        }
        end = at;
    }
    return false;
}

static bool bump_bytes(KnArena *arena, KnStr s, KnStr *ret)
{
    for (size_t end = s.len; end > 0; end--) {
        if ((uint8_t)s.ptr[end - 1] == 0xff)
            continue;
        char *out = kn_arena_strndup(arena, s.ptr, end);
        out[end - 1] = (char)((uint8_t)out[end - 1] + 1);
        *ret = (KnStr){out, end};
        return true;
    }
    return false;
}

static bool cut_bound(KnArena *arena, const KnType *type, Mode mode, bool upper, KnValue *value)
{
    bool text = type->kind == KN_TYPE_STRING;
    if (!text && type->kind != KN_TYPE_BINARY && type->kind != KN_TYPE_FIXED)
        return true;
    if (text && !kn_str_is_utf8(value->bytes))
        return false;
    if (mode.mode == MODE_FULL)
        return true;
    size_t len = cut_length(type, value->bytes, mode.length);
    if (len == value->bytes.len)
        return true;
    value->bytes.len = len;
    if (!upper)
        return true;
    return text ? bump_text(arena, value->bytes, &value->bytes)
                : bump_bytes(arena, value->bytes, &value->bytes);
}

static bool parse_bound(KnArena *arena, const KnType *type, const char *text, KnValue *ret)
{
    KnStr s = kn_str(text);
    switch (type->kind) {
    case KN_TYPE_BOOLEAN:
        *ret = (KnValue){.kind = type->kind, .b = text[0] == '1' || text[0] == 't'};
        return true;
    case KN_TYPE_STRING:
        *ret = (KnValue){.kind = type->kind, .bytes = s};
        return true;
    case KN_TYPE_BINARY:
    case KN_TYPE_FIXED:
        s = kn_str(kn_arena_printf(arena, "0x%s", text));
        return kn_value_parse(arena, &(KnType){.kind = KN_TYPE_BINARY}, s, ret, NULL) == KN_OK;
    case KN_TYPE_UUID:
    case KN_TYPE_UNKNOWN:
        return false;
    case KN_TYPE_TIMESTAMP_NS:
    case KN_TYPE_TIMESTAMPTZ_NS:
        *ret = (KnValue){.kind = type->kind};
        return kn_str_to_i64(s, &ret->i); /* as numbers: write_shape.c */
    default:
        return kn_value_parse(arena, type, s, ret, NULL) == KN_OK;
    }
}

static void widen_zero(const KnType *type, bool upper, KnValue *value)
{
    if ((type->kind == KN_TYPE_FLOAT || type->kind == KN_TYPE_DOUBLE) && value->d == 0.0)
        value->d = upper ? 0.0 : -0.0;
}

/* ---- counts ---- */

static bool is_float(const KnType *type)
{
    return type->kind == KN_TYPE_FLOAT || type->kind == KN_TYPE_DOUBLE;
}

/* How many NaN a column has, read back from the file. */
static KnCode count_nan(KnWriter *w, const Leaf *leaf, const char *engine_path, int64_t *ret,
                        KnErr *err)
{
    KN_BUF_AUTO sql;
    kn_buf_init(&sql, (size_t)1 << 20);
    kn_buf_text(&sql, "SELECT count(*) FILTER (WHERE isnan(");
    KN_BUF_AUTO expr;
    kn_buf_init(&expr, (size_t)1 << 20);
    KnStr rest = kn_str(leaf->path);
    for (bool first = true; rest.ptr; first = false) {
        const char *sep = memchr(rest.ptr, '\x1f', rest.len);
        KnStr part = {rest.ptr, sep ? (size_t)(sep - rest.ptr) : rest.len};
        kn_buf_text(&expr, first ? "" : ".");
        kn_sql_ident(&expr, part);
        rest = sep ? (KnStr){sep + 1, rest.len - part.len - 1} : (KnStr){NULL, 0};
    }
    kn_buf_append(&sql, expr.data, expr.len);
    kn_buf_text(&sql, ")) FROM read_parquet(");
    kn_sql_path(&sql, kn_str(engine_path));
    /* A folder d=nan would make a column of its own. */
    kn_buf_text(&sql, ", hive_partitioning = false)");
    KN_TRY(kn_buf_check(&sql, err));
    return kn_session_query_i64(w->ses, sql.data, ret, err);
}

static const KnPqColumnStats *find_stats(const KnPqWritten *file, const char *path)
{
    for (size_t i = 0; i < file->n_columns; i++) {
        if (strcmp(file->columns[i].path, path) == 0)
            return &file->columns[i];
    }
    return NULL;
}

/* A file's metrics being put together; the lists have room for every leaf. */
typedef struct Fill {
    KnWriter *w;
    const KnPqWritten *file;
    const char *engine_path;
    KnIdCount *sizes, *values, *nulls, *nans;
    KnIdBound *lower, *upper;
    KnDataFile *ret;
} Fill;

static void add_bound(const Fill *fill, const Leaf *leaf, Mode mode, const char *text, bool upper)
{
    KnArena *arena = fill->w->arena;
    const KnType *type = leaf->field->type;
    KnValue value;
    if (!text || !parse_bound(arena, type, text, &value) ||
        !cut_bound(arena, type, mode, upper, &value))
        return;
    widen_zero(type, upper, &value);
    KN_BUF_AUTO bytes;
    kn_buf_init(&bytes, (size_t)1 << 20);
    kn_value_encode(&bytes, type, &value);
    KnIdBound bound = {
        .id = leaf->field->id,
        .bytes = {kn_arena_strndup(arena, bytes.data ? bytes.data : "", bytes.len), bytes.len}};
    if (upper)
        fill->upper[fill->ret->n_upper++] = bound;
    else
        fill->lower[fill->ret->n_lower++] = bound;
}

static KnCode add_counts(const Fill *fill, const Leaf *leaf, const KnPqColumnStats *stats,
                         KnErr *err)
{
    KnDataFile *ret = fill->ret;
    int32_t id = leaf->field->id;
    fill->values[ret->n_value_counts++] = (KnIdCount){id, stats->value_count};
    if (stats->null_count >= 0)
        fill->nulls[ret->n_null_counts++] = (KnIdCount){id, stats->null_count};
    if (!is_float(leaf->field->type))
        return KN_OK;
    int64_t nans = 0;
    if (stats->has_nan)
        KN_TRY(count_nan(fill->w, leaf, fill->engine_path, &nans, err));
    fill->nans[ret->n_nan_counts++] = (KnIdCount){id, nans};
    return KN_OK;
}

static int64_t size_of(const KnPqWritten *file, int32_t id, const KnPqColumnStats *stats)
{
    for (size_t i = 0; i < file->n_resized; i++) {
        if (file->resized[i].field_id == id)
            return file->resized[i].size_bytes;
    }
    return stats->size_bytes;
}

static KnCode add_leaf(const Fill *fill, const Leaf *leaf, Mode mode, KnErr *err)
{
    const KnPqColumnStats *stats = find_stats(fill->file, leaf->path);
    if (!stats)
        return KN_OK;
    int32_t id = leaf->field->id;
    fill->sizes[fill->ret->n_column_sizes++] = (KnIdCount){id, size_of(fill->file, id, stats)};
    if (mode.mode == MODE_NONE || leaf->repeated)
        return KN_OK;
    KN_TRY(add_counts(fill, leaf, stats, err));
    if (mode.mode == MODE_COUNTS)
        return KN_OK;
    add_bound(fill, leaf, mode, stats->min, false);
    add_bound(fill, leaf, mode, stats->max, true);
    return KN_OK;
}

static Fill fill_new(KnWriter *w, const KnPqWritten *file, const char *engine_path, size_t n)
{
    size_t counts = (n + 1) * sizeof(KnIdCount);
    size_t bounds = (n + 1) * sizeof(KnIdBound);
    return (Fill){
        .w = w,
        .file = file,
        .engine_path = engine_path,
        .sizes = kn_arena_zalloc(w->arena, counts),
        .values = kn_arena_zalloc(w->arena, counts),
        .nulls = kn_arena_zalloc(w->arena, counts),
        .nans = kn_arena_zalloc(w->arena, counts),
        .lower = kn_arena_zalloc(w->arena, bounds),
        .upper = kn_arena_zalloc(w->arena, bounds),
    };
}

KnCode kn_write_metrics(KnWriter *w, const KnPqWritten *file, const char *engine_path,
                        KnDataFile *ret, KnErr *err)
{
    LeafVec leaves = {0};
    find_leaves(w->arena, &w->schema->root, NULL, &leaves);
    Fill fill = fill_new(w, file, engine_path, leaves.len);
    fill.ret = ret;
    KnCode rc = KN_OK;
    for (size_t i = 0; rc == KN_OK && i < leaves.len; i++)
        rc = add_leaf(&fill, &leaves.items[i], mode_of(w, &leaves.items[i], i), err);
    ret->column_sizes = fill.sizes;
    ret->value_counts = fill.values;
    ret->null_counts = fill.nulls;
    ret->nan_counts = fill.nans;
    ret->lower = fill.lower;
    ret->upper = fill.upper;
    kn_vec_done(&leaves);
    return rc;
}

/* ---- field ids ---- */

static void put_ids(KnBuf *buf, const KnType *type)
{
    size_t n = 0;
    for (size_t i = 0; i < type->n_fields; i++) {
        const KnField *field = &type->fields[i];
        if (field->type->kind == KN_TYPE_UNKNOWN)
            continue;
        kn_buf_text(buf, n++ > 0 ? ", " : "");
        kn_sql_text(buf, kn_str(field->name));
        if (!kn_type_is_nested(field->type)) {
            kn_buf_printf(buf, ": %d", field->id);
            continue;
        }
        kn_buf_printf(buf, ": {__duckdb_field_id: %d%s", field->id,
                      field->type->n_fields > 0 ? ", " : "");
        put_ids(buf, field->type);
        kn_buf_char(buf, '}');
    }
}

void kn_file_shape_ids(KnBuf *buf, const KnSchema *schema, bool lineage)
{
    kn_buf_char(buf, '{');
    put_ids(buf, &schema->root);
    if (lineage)
        kn_buf_printf(buf, ", '_row_id': %d, '_last_updated_sequence_number': %d",
                      KN_FIELD_ID_ROW_ID, KN_FIELD_ID_LAST_UPDATED_SEQUENCE);
    kn_buf_char(buf, '}');
}

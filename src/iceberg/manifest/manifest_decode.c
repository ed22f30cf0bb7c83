/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_decode.c - the writer's schema compiled against our fields, and records read by it.
 *
 * Resolution is by field id, never by name or order (spec: "Manifests"). The plan is made once a
 * file; after that a record is a walk over its operations, without a tree of values. What a type
 * allows is checked when the plan is made, so the walk only looks at which branch of a union came.
 */
#include "iceberg/manifest/manifest_internal.h"

enum { LIST_MAX = 1 << 20 };
#define MANIFEST_MAX ((size_t)1 << 30)

/* ---- the plan ---- */

static const KnAvroType *value_branch(const KnAvroType *type)
{
    if (type->kind != KN_AVRO_UNION)
        return type;
    for (size_t i = 0; i < type->n_fields; ++i)
        if (type->fields[i].type->kind != KN_AVRO_NULL)
            return type->fields[i].type;
    return type->fields[0].type;
}

static bool is_integral(const KnAvroType *type)
{
    return type->kind == KN_AVRO_INT || type->kind == KN_AVRO_LONG;
}

static bool is_record_with(const KnAvroType *type, size_t n_fields)
{
    return type->kind == KN_AVRO_RECORD && type->n_fields == n_fields;
}

/* An int-keyed map: an array of records of key and value, in this order. */
static bool is_id_map(const KnAvroType *type, bool of_bytes)
{
    const KnAvroType *item = type->kind == KN_AVRO_ARRAY ? type->fields[0].type : type;
    if (type->kind != KN_AVRO_ARRAY || !is_record_with(item, 2) ||
        !is_integral(item->fields[0].type))
        return false;
    const KnAvroType *value = value_branch(item->fields[1].type);
    return of_bytes ? value->kind == KN_AVRO_BYTES : is_integral(value);
}

static bool type_fits(const KnManifestField *field, const KnAvroType *type)
{
    switch (field->shape) {
    case KN_SHAPE_INT:
    case KN_SHAPE_LONG:
    case KN_SHAPE_CONTENT:
    case KN_SHAPE_CONSTANT:
        return is_integral(type);
    case KN_SHAPE_BOOLEAN:
    case KN_SHAPE_TRISTATE:
        return type->kind == KN_AVRO_BOOLEAN;
    case KN_SHAPE_TEXT:
    case KN_SHAPE_FORMAT:
        return type->kind == KN_AVRO_STRING;
    case KN_SHAPE_BYTES:
        return type->kind == KN_AVRO_BYTES;
    case KN_SHAPE_COUNTS:
        return is_id_map(type, false);
    case KN_SHAPE_BOUNDS:
        return is_id_map(type, true);
    case KN_SHAPE_LONGS:
    case KN_SHAPE_INTS:
        return type->kind == KN_AVRO_ARRAY && is_integral(type->fields[0].type);
    case KN_SHAPE_DATA_FILE:
    case KN_SHAPE_PARTITION:
        return type->kind == KN_AVRO_RECORD;
    case KN_SHAPE_SUMMARIES:
        return type->kind == KN_AVRO_ARRAY && type->fields[0].type->kind == KN_AVRO_RECORD;
    }
    return false;
}

/* Every branch but null must fit, so that reading need not ask again. */
static KnCode check_type(const KnManifestField *field, const KnAvroType *type, KnErr *err)
{
    bool fits = true;
    if (type->kind == KN_AVRO_UNION) {
        size_t values = 0;
        for (size_t i = 0; i < type->n_fields; ++i) {
            const KnAvroType *branch = type->fields[i].type;
            if (branch->kind != KN_AVRO_NULL) {
                fits = fits && type_fits(field, branch);
                ++values;
            }
        }
        fits = fits && values == 1;
    } else {
        fits = type_fits(field, type);
    }
    if (fits)
        return KN_OK;
    return kn_err_set(err, KN_E_CORRUPT, "field '%s' (%d): not of a type that it may have",
                      field->name, field->id);
}

static const KnManifestField *find_field(const KnManifestFields *ours, int32_t id)
{
    for (size_t i = 0; i < ours->n; ++i)
        if (ours->fields[i].id == id)
            return &ours->fields[i];
    return NULL;
}

static KnCode plan_nested(KnArena *arena, const KnManifestPlanOptions *opts, KnManifestOp *op,
                          KnErr *err)
{
    const KnAvroType *type = value_branch(op->type);
    if (op->field->shape == KN_SHAPE_DATA_FILE)
        return kn_manifest_plan_make(arena, &kn_manifest_data_file_fields, type, opts, &op->nested,
                                     err);
    if (op->field->shape == KN_SHAPE_SUMMARIES)
        return kn_manifest_plan_make(arena, &kn_manifest_summary_fields, type->fields[0].type, opts,
                                     &op->nested, err);
    if (op->field->shape == KN_SHAPE_PARTITION)
        return kn_partition_plan_make(arena, opts->md, opts->spec, type, &op->partition, err);
    return KN_OK;
}

static KnCode plan_field(KnArena *arena, const KnManifestField *field,
                         const KnManifestPlanOptions *opts, KnManifestOp *op, KnErr *err)
{
    if (!field || field->shape == KN_SHAPE_CONSTANT || (field->metric && !opts->with_metrics))
        return KN_OK;
    KN_TRY(check_type(field, op->type, err));
    op->field = field;
    return plan_nested(arena, opts, op, err);
}

KnCode kn_manifest_plan_make(KnArena *arena, const KnManifestFields *ours, const KnAvroType *record,
                             const KnManifestPlanOptions *opts, KnManifestPlan **ret, KnErr *err)
{
    KnManifestPlan *plan = kn_arena_zalloc(arena, sizeof(*plan));
    plan->ops = kn_arena_try_array(arena, record->n_fields, sizeof(*plan->ops));
    if (record->kind != KN_AVRO_RECORD || !plan->ops)
        return kn_err_set(err, KN_E_CORRUPT, "the Avro schema is not a record '%s'", ours->record);
    uint64_t seen = 0;
    for (size_t i = 0; i < record->n_fields; ++i) {
        const KnManifestField *field = find_field(ours, record->fields[i].field_id);
        uint64_t bit = field ? (uint64_t)1 << (field - ours->fields) : 0;
        if (seen & bit)
            return kn_err_set(err, KN_E_CORRUPT, "field '%s' (%d) is there twice", field->name,
                              field->id);
        seen |= bit;
        plan->ops[plan->n].type = record->fields[i].type;
        KN_TRY(plan_field(arena, field, opts, &plan->ops[plan->n++], err));
    }
    for (size_t i = 0; i < ours->n; ++i)
        if (ours->fields[i].must_read && !(seen & (uint64_t)1 << i))
            return kn_err_set(err, KN_E_CORRUPT, "required field '%s' (%d) is missing",
                              ours->fields[i].name, ours->fields[i].id);
    *ret = plan;
    return KN_OK;
}

/* ---- values ---- */

static KnCode no_memory(KnErr *err)
{
    return kn_err_set(err, KN_E_NOMEM, "out of memory for a manifest entry");
}

static KnCode decode_number(KnManifestDecoder *dec, const KnManifestField *field, void *at,
                            KnErr *err)
{
    int64_t v;
    KN_TRY(kn_avro_read_long(&dec->cur, &v, err));
    if (field->not_negative && v < 0)
        return kn_err_set(err, KN_E_CORRUPT, "%lld is negative", (long long)v);
    if (field->shape == KN_SHAPE_LONG) {
        *(int64_t *)at = v;
        return KN_OK;
    }
    if (v < INT32_MIN || v > INT32_MAX)
        return kn_err_set(err, KN_E_CORRUPT, "%lld is no 32-bit int", (long long)v);
    *(int32_t *)at = (int32_t)v;
    return KN_OK;
}

static KnCode decode_content(KnManifestDecoder *dec, bool *ret, KnErr *err)
{
    int64_t v;
    KN_TRY(kn_avro_read_long(&dec->cur, &v, err));
    if (v != 0 && v != 1)
        return kn_err_set(err, KN_E_CORRUPT, "%lld is neither 0 (data) nor 1 (deletes)",
                          (long long)v);
    *ret = v == 1;
    return KN_OK;
}

static KnCode decode_text(KnManifestDecoder *dec, const char **ret, KnErr *err)
{
    KnStr s;
    KN_TRY(kn_avro_read_bytes(&dec->cur, &s, err));
    if (memchr(s.ptr, '\0', s.len))
        return kn_err_set(err, KN_E_CORRUPT, "text with a NUL byte in it");
    char *text = kn_arena_try_strndup(dec->arena, s.ptr, s.len);
    if (!text)
        return no_memory(err);
    *ret = text;
    return KN_OK;
}

static KnCode decode_format(KnManifestDecoder *dec, KnFileFormat *ret, KnErr *err)
{
    static const struct {
        KnStr name;
        KnFileFormat format;
    } formats[] = {{KN_STR_LIT("PARQUET"), KN_FORMAT_PARQUET},
                   {KN_STR_LIT("AVRO"), KN_FORMAT_AVRO},
                   {KN_STR_LIT("ORC"), KN_FORMAT_ORC},
                   {KN_STR_LIT("PUFFIN"), KN_FORMAT_PUFFIN}};
    KnStr s;
    KN_TRY(kn_avro_read_bytes(&dec->cur, &s, err));
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); ++i) {
        if (kn_str_eq_nocase(s, formats[i].name)) {
            *ret = formats[i].format;
            return KN_OK;
        }
    }
    return kn_err_set(err, KN_E_UNSUPPORTED, "file format '" KN_STR_FMT "'", KN_STR_ARG(s));
}

/* ---- lists: arrays of any number of blocks, into one array of the arena ---- */

typedef struct List {
    char *items;
    size_t n, cap, size;
} List;

/* Room for count more items; grows by doubling, so many small blocks stay linear. */
static KnCode list_reserve(KnManifestDecoder *dec, List *list, int64_t count, KnErr *err)
{
    if (count > (int64_t)(LIST_MAX - list->n))
        return kn_err_set(err, KN_E_CORRUPT, "a list of more than %d elements", LIST_MAX);
    size_t need = list->n + (size_t)count;
    if (need <= list->cap)
        return KN_OK;
    size_t cap = list->cap ? list->cap * 2 : need;
    cap = cap < need ? need : cap;
    char *items = kn_arena_try_alloc(dec->arena, cap * list->size);
    if (!items)
        return no_memory(err);
    if (list->items)
        memcpy(items, list->items, list->n * list->size);
    list->items = items;
    list->cap = cap;
    return KN_OK;
}

typedef KnCode (*ItemFn)(KnManifestDecoder *dec, const KnManifestOp *op, const KnAvroType *item,
                         void *at, KnErr *err);

static KnCode item_long(KnManifestDecoder *dec, const KnManifestOp *op, const KnAvroType *item,
                        void *at, KnErr *err)
{
    (void)op;
    (void)item;
    return kn_avro_read_long(&dec->cur, at, err);
}

static KnCode item_int(KnManifestDecoder *dec, const KnManifestOp *op, const KnAvroType *item,
                       void *at, KnErr *err)
{
    (void)op;
    (void)item;
    return kn_avro_read_int(&dec->cur, at, err);
}

/* The value of a map's item; null stands for no item, which no writer should make. */
static KnCode read_value_branch(KnManifestDecoder *dec, const KnAvroType *item, KnErr *err)
{
    const KnAvroType *value;
    KN_TRY(kn_avro_read_branch(&dec->cur, item->fields[1].type, &value, err));
    if (value->kind == KN_AVRO_NULL)
        return kn_err_set(err, KN_E_CORRUPT, "a map with a null value");
    return KN_OK;
}

static KnCode item_count(KnManifestDecoder *dec, const KnManifestOp *op, const KnAvroType *item,
                         void *at, KnErr *err)
{
    (void)op;
    KnIdCount *count = at;
    KN_TRY(kn_avro_read_int(&dec->cur, &count->id, err));
    KN_TRY(read_value_branch(dec, item, err));
    return kn_avro_read_long(&dec->cur, &count->count, err);
}

static KnCode item_bound(KnManifestDecoder *dec, const KnManifestOp *op, const KnAvroType *item,
                         void *at, KnErr *err)
{
    (void)op;
    KnIdBound *bound = at;
    KN_TRY(kn_avro_read_int(&dec->cur, &bound->id, err));
    KN_TRY(read_value_branch(dec, item, err));
    return kn_avro_read_bytes(&dec->cur, &bound->bytes, err);
}

static KnCode item_summary(KnManifestDecoder *dec, const KnManifestOp *op, const KnAvroType *item,
                           void *at, KnErr *err)
{
    (void)item;
    KnFieldSummary *summary = at;
    *summary = (KnFieldSummary){.contains_nan = -1};
    return kn_manifest_decode(dec, op->nested, summary, err);
}

typedef struct ListKind {
    ItemFn fn;
    size_t size;
} ListKind;

static ListKind list_kind(KnManifestShape shape)
{
    switch (shape) {
    case KN_SHAPE_COUNTS:
        return (ListKind){item_count, sizeof(KnIdCount)};
    case KN_SHAPE_BOUNDS:
        return (ListKind){item_bound, sizeof(KnIdBound)};
    case KN_SHAPE_LONGS:
        return (ListKind){item_long, sizeof(int64_t)};
    case KN_SHAPE_INTS:
        return (ListKind){item_int, sizeof(int32_t)};
    default:
        return (ListKind){item_summary, sizeof(KnFieldSummary)};
    }
}

static KnCode decode_list(KnManifestDecoder *dec, const KnManifestOp *op, const KnAvroType *type,
                          KnManifestSeq *ret, KnErr *err)
{
    ListKind kind = list_kind(op->field->shape);
    const KnAvroType *item = type->fields[0].type;
    List list = {.size = kind.size};
    for (;;) {
        int64_t count;
        KN_TRY(kn_avro_read_block_count(&dec->cur, &count, err));
        if (count == 0)
            break;
        KN_TRY(list_reserve(dec, &list, count, err));
        for (; count > 0; --count)
            KN_TRY(kind.fn(dec, op, item, list.items + list.n++ * list.size, err));
    }
    static const max_align_t nothing; /* an empty list is not a null one: written back as it was */
    *ret = (KnManifestSeq){list.n, list.n ? (const void *)list.items : &nothing};
    return KN_OK;
}

static KnCode decode_value(KnManifestDecoder *dec, const KnManifestOp *op, const KnAvroType *type,
                           void *at, KnErr *err)
{
    switch (op->field->shape) {
    case KN_SHAPE_INT:
    case KN_SHAPE_LONG:
        return decode_number(dec, op->field, at, err);
    case KN_SHAPE_BOOLEAN:
    case KN_SHAPE_TRISTATE: {
        bool flag;
        KN_TRY(kn_avro_read_boolean(&dec->cur, &flag, err));
        *(int8_t *)at = flag ? 1 : 0;
        return KN_OK;
    }
    case KN_SHAPE_CONTENT:
        return decode_content(dec, at, err);
    case KN_SHAPE_TEXT:
        return decode_text(dec, at, err);
    case KN_SHAPE_FORMAT:
        return decode_format(dec, at, err);
    case KN_SHAPE_BYTES:
        return kn_avro_read_bytes(&dec->cur, at, err);
    case KN_SHAPE_DATA_FILE:
        return kn_manifest_decode(dec, op->nested, at, err);
    case KN_SHAPE_PARTITION:
        return kn_partition_plan_read(op->partition, &dec->cur, at, err);
    case KN_SHAPE_CONSTANT:
        return kn_avro_skip(&dec->cur, type, err);
    case KN_SHAPE_COUNTS:
    case KN_SHAPE_BOUNDS:
    case KN_SHAPE_LONGS:
    case KN_SHAPE_INTS:
    case KN_SHAPE_SUMMARIES:
        break;
    }
    return decode_list(dec, op, type, at, err);
}

KnCode kn_manifest_decode_op(KnManifestDecoder *dec, const KnManifestOp *op, void *base, KnErr *err)
{
    const KnManifestField *field = op->field;
    if (!field)
        return kn_avro_skip(&dec->cur, op->type, err);
    const KnAvroType *type;
    KN_TRY(kn_avro_read_branch(&dec->cur, op->type, &type, err));
    if (type->kind == KN_AVRO_NULL) {
        if (!field->must_read)
            return KN_OK;
        return kn_err_set(err, KN_E_CORRUPT, "required field '%s' (%d) is null", field->name,
                          field->id);
    }
    KnCode code = decode_value(dec, op, type, kn_manifest_at(base, field), err);
    if (code != KN_OK)
        return kn_err_wrap(err, code, "field '%s' (%d)", field->name, field->id);
    return KN_OK;
}

KnCode kn_manifest_decode(KnManifestDecoder *dec, const KnManifestPlan *plan, void *base,
                          KnErr *err)
{
    for (size_t i = 0; i < plan->n; ++i)
        KN_TRY(kn_manifest_decode_op(dec, &plan->ops[i], base, err));
    return KN_OK;
}

/* ---- files ---- */

void kn_manifest_bytes_close(KnManifestBytes *bytes)
{
    bytes->reader = kn_avro_reader_close(bytes->reader);
    kn_buf_done(&bytes->buf);
}

KnCode kn_manifest_bytes_open(KnFileIO *io, const char *path, int64_t length, KnManifestBytes *ret,
                              KnErr *err)
{
    KnManifestBytes bytes = {0};
    kn_buf_init(&bytes.buf, MANIFEST_MAX);
    KnCode code = kn_io_read_all(io, kn_str(path), MANIFEST_MAX, &bytes.buf, err);
    if (code == KN_OK && length >= 0 && bytes.buf.len != (uint64_t)length)
        code = kn_err_set(err, KN_E_CORRUPT, "%s: %zu bytes, but the table says %lld", path,
                          bytes.buf.len, (long long)length);
    else if (code == KN_OK) {
        code = kn_avro_reader_open(bytes.buf.data, bytes.buf.len, &bytes.reader, err);
        if (code != KN_OK)
            code = kn_err_wrap(err, code, "%s", path);
    }
    if (code != KN_OK) {
        kn_manifest_bytes_close(&bytes);
        return code;
    }
    *ret = bytes;
    return KN_OK;
}

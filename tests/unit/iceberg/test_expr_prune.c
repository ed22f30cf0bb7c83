/* SPDX-License-Identifier: Apache-2.0 */
/* Pruning: tables of cases, and a property over random columns: what is pruned holds no matching
 * row, what must match holds matching rows only. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/random.h"
#include "iceberg/expr/expr_range.h"

static KnArena *arena;

static int setup(void **state)
{
    (void)state;
    arena = kn_arena_new(0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena = kn_arena_free(arena);
    return 0;
}

static const KnSchema *schema_of(const char *text)
{
    KnSchema *schema = NULL;
    assert_int_equal(kn_schema_parse_text(arena, kn_str(text), &schema, NULL), KN_OK);
    return schema;
}

static const KnExpr *parse(const KnSchema *schema, const char *text)
{
    const KnExpr *expr = NULL;
    KnErr err;
    if (kn_expr_parse(arena, kn_str(text), schema, &expr, &err) != KN_OK)
        fail_msg("%s: %s", text, err.msg);
    return expr;
}

static const KnPartitionSpec *spec_of(const KnSchema *schema, const char *text)
{
    KnPartitionSpec *spec = NULL;
    assert_int_equal(kn_partition_spec_parse_text(arena, schema, kn_str(text), &spec, NULL), KN_OK);
    return spec;
}

static KnStr encoded(const KnType *type, const KnValue *value)
{
    KnBuf buf;
    kn_buf_init(&buf, 1 << 16);
    kn_value_encode(&buf, type, value);
    KnStr text = {kn_arena_strndup(arena, buf.data ? buf.data : "", buf.len), buf.len};
    kn_buf_done(&buf);
    return text;
}

/* ---- cases ---- */

static void integer_bounds_prune_and_prove(void **state)
{
    (void)state;
    const KnSchema *schema = schema_of("i int");
    KnValue low = {.kind = KN_TYPE_INT, .i = 10};
    KnValue high = {.kind = KN_TYPE_INT, .i = 20};
    const KnType *type = schema->root.fields[0].type;
    KnIdBound lower = {1, encoded(type, &low)};
    KnIdBound upper = {1, encoded(type, &high)};
    KnIdCount values = {1, 5};
    KnIdCount nulls = {1, 0};
    KnDataFile file = {.record_count = 5,
                       .lower = &lower,
                       .n_lower = 1,
                       .upper = &upper,
                       .n_upper = 1,
                       .value_counts = &values,
                       .n_value_counts = 1,
                       .null_counts = &nulls,
                       .n_null_counts = 1};
    const KnPartitionSpec none = {0};
    static const struct {
        const char *text;
        bool may, must;
    } cases[] = {
        {"i = 9", false, false},
        {"i = 10", true, false},
        {"i = 21", false, false},
        {"i < 10", false, false},
        {"i < 21", true, true},
        {"i <= 20", true, true},
        {"i <= 9", false, false},
        {"i > 20", false, false},
        {"i > 9", true, true},
        {"i >= 10", true, true},
        {"i >= 21", false, false},
        {"i <> 9", true, true},
        {"i <> 15", true, false},
        {"i IN (1, 2)", false, false},
        {"i IN (1, 15)", true, false},
        {"i NOT IN (1, 2)", true, true},
        {"i IS NULL", false, false},
        {"i IS NOT NULL", true, true},
        {"i > 9 AND i < 21", true, true},
        {"i < 10 OR i > 20", false, false},
        {"i < 10 OR i > 9", true, true},
        {"TRUE", true, true},
        {"FALSE", false, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const KnExpr *expr = parse(schema, cases[i].text);
        if (kn_expr_may_match_file(expr, &file) != cases[i].may ||
            kn_expr_must_match_file(expr, &none, schema, &file) != cases[i].must)
            fail_msg("%s", cases[i].text);
    }
    file.record_count = 0;
    assert_false(kn_expr_may_match_file(parse(schema, "i = 15"), &file));
}

static void without_metrics_nothing_is_known(void **state)
{
    (void)state;
    const KnSchema *schema = schema_of("i int, d double");
    KnDataFile file = {.record_count = 5};
    const KnPartitionSpec none = {0};
    static const char *const texts[] = {"i = 1", "i IS NULL", "i IS NOT NULL", "i <> 1",
                                        "d < 1", "d IS NAN",  "d IS NOT NAN"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        assert_true(kn_expr_may_match_file(parse(schema, texts[i]), &file));
        assert_false(kn_expr_must_match_file(parse(schema, texts[i]), &none, schema, &file));
    }
}

static void nan_is_greater_than_every_bound(void **state)
{
    (void)state;
    const KnSchema *schema = schema_of("d double");
    const KnType *type = schema->root.fields[0].type;
    KnValue one = {.kind = KN_TYPE_DOUBLE, .d = 1};
    KnIdBound bound = {1, encoded(type, &one)};
    KnIdCount values = {1, 3};
    KnIdCount nulls = {1, 0};
    KnIdCount nans = {1, 1};
    KnDataFile file = {.record_count = 3,
                       .lower = &bound,
                       .n_lower = 1,
                       .upper = &bound,
                       .n_upper = 1,
                       .value_counts = &values,
                       .n_value_counts = 1,
                       .null_counts = &nulls,
                       .n_null_counts = 1,
                       .nan_counts = &nans,
                       .n_nan_counts = 1};
    assert_true(kn_expr_may_match_file(parse(schema, "d > 5"), &file));
    assert_true(kn_expr_may_match_file(parse(schema, "d <> 1"), &file));
    assert_false(kn_expr_may_match_file(parse(schema, "d < 1"), &file));
    nans.count = 0;
    assert_false(kn_expr_may_match_file(parse(schema, "d > 5"), &file));
    assert_false(kn_expr_may_match_file(parse(schema, "d <> 1"), &file));
}

static void a_partition_may_be_one_too_great_before_1970(void **state)
{
    (void)state;
    const KnSchema *schema = schema_of("at timestamp");
    const KnPartitionSpec *spec = spec_of(schema, "day(at)");
    KnValue day = {.kind = KN_TYPE_DATE, .i = 0};
    KnDataFile file = {.record_count = 1, .partition = &day, .n_partition = 1};
    const KnExpr *expr = parse(schema, "at = '1969-12-31T12:00:00'");
    assert_true(kn_expr_may_match_partition(expr, spec, schema, &file));
    day.i = 1;
    assert_false(kn_expr_may_match_partition(expr, spec, schema, &file));
    expr = parse(schema, "at >= '1969-12-31T00:00:00'");
    day.i = -1; /* true day -1, or -2 by an old writer */
    assert_false(kn_expr_must_match_file(expr, spec, schema, &file));
    day.i = 1;
    assert_true(kn_expr_must_match_file(expr, spec, schema, &file));
}

static void void_and_unknown_transforms_never_prune(void **state)
{
    (void)state;
    const KnSchema *schema = schema_of("i int");
    KnPartitionField field = {.source_id = 1, .transform = {.kind = KN_TRANSFORM_VOID}};
    KnPartitionSpec spec = {.n_fields = 1, .fields = &field};
    KnValue null = {.null = true};
    KnDataFile file = {.record_count = 1, .partition = &null, .n_partition = 1};
    assert_true(kn_expr_may_match_partition(parse(schema, "i = 1"), &spec, schema, &file));
    assert_true(kn_expr_may_match_partition(parse(schema, "i IS NOT NULL"), &spec, schema, &file));
    field.transform.kind = KN_TRANSFORM_UNKNOWN;
    assert_true(kn_expr_may_match_partition(parse(schema, "i IS NOT NULL"), &spec, schema, &file));
}

static void a_tuple_of_another_type_never_prunes_wrongly_nor_crashes(void **state)
{
    (void)state;
    const KnSchema *schema = schema_of("s string");
    const KnPartitionSpec *spec = spec_of(schema, "s");
    KnValue number = {.kind = KN_TYPE_LONG, .i = 5};
    KnDataFile file = {.record_count = 1, .partition = &number, .n_partition = 1};
    static const char *const texts[] = {"s = 'a'", "s LIKE 'a%'", "s NOT LIKE 'a%'", "s < 'b'",
                                        "s IN ('a', 'b')"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        assert_true(kn_expr_may_match_partition(parse(schema, texts[i]), spec, schema, &file));
        assert_false(kn_expr_must_match_file(parse(schema, texts[i]), spec, schema, &file));
    }
}

/* ---- the property ---- */

typedef struct Column {
    const char *schema;
    const char *const *transforms; /* NULL-terminated */
    KnValue (*random)(KnRng *rng);
} Column;

static KnValue random_small_int(KnRng *rng, KnTypeKind kind)
{
    return (KnValue){.kind = kind, .i = (int64_t)kn_rng_below(rng, 41) - 20};
}

static KnValue random_int(KnRng *rng)
{
    return random_small_int(rng, KN_TYPE_INT);
}

static KnValue random_long(KnRng *rng)
{
    KnValue v = random_small_int(rng, KN_TYPE_LONG);
    if (kn_rng_below(rng, 50) == 0)
        v.i = kn_rng_below(rng, 2) ? INT64_MAX : INT64_MIN;
    return v;
}

static KnValue random_date(KnRng *rng)
{
    return (KnValue){.kind = KN_TYPE_DATE, .i = (int64_t)kn_rng_below(rng, 1500) - 750};
}

static KnValue random_time(KnRng *rng)
{
    int64_t hour = INT64_C(3600) * 1000000;
    int64_t at = ((int64_t)kn_rng_below(rng, 400) - 200) * hour;
    return (KnValue){.kind = KN_TYPE_TIMESTAMP, .i = at + (int64_t)kn_rng_below(rng, 3) - 1};
}

static KnValue random_decimal(KnRng *rng)
{
    return (KnValue){.kind = KN_TYPE_DECIMAL, .scale = 2, .dec = (int)kn_rng_below(rng, 61) - 30};
}

static KnValue random_double(KnRng *rng)
{
    static const double odd[] = {0.0, -0.0, NAN, INFINITY, -INFINITY, 1.5, -1.5, 2, 3};
    return (KnValue){.kind = KN_TYPE_DOUBLE, .d = odd[kn_rng_below(rng, 9)]};
}

static KnValue random_string(KnRng *rng)
{
    static const char *const parts[] = {"a", "b", "ab", "\xc3\xbc", "\xf0\x9f\x98\x80", ""};
    char *text = kn_arena_strdup(arena, "");
    for (uint64_t i = kn_rng_below(rng, 5); i > 0; i--)
        text = kn_arena_printf(arena, "%s%s", text, parts[kn_rng_below(rng, 6)]);
    return (KnValue){.kind = KN_TYPE_STRING, .bytes = kn_str(text)};
}

static const char *const numbers[] = {"c", "bucket(4, c)", "truncate(5, c)", NULL};
static const char *const times[] = {"c", "year(c)", "month(c)", "day(c)", "bucket(3, c)", NULL};
static const char *const hours[] = {"c", "hour(c)", "day(c)", "month(c)", "year(c)", NULL};
static const char *const texts[] = {"c", "truncate(2, c)", "bucket(4, c)", NULL};
static const char *const plain[] = {"c", NULL};

static const Column columns[] = {
    {"c int", numbers, random_int},
    {"c long", numbers, random_long},
    {"c date", times, random_date},
    {"c timestamp", hours, random_time},
    {"c decimal(9,2)", numbers, random_decimal},
    {"c double", plain, random_double},
    {"c string", texts, random_string},
};

/* SQL's semantics, written apart from the code under test. */
static int naive_compare(const KnValue *a, const KnValue *b)
{
    switch (a->kind) {
    case KN_TYPE_DOUBLE:
        if (isnan(a->d) || isnan(b->d))
            return (isnan(a->d) != 0) - (isnan(b->d) != 0);
        return (a->d > b->d) - (a->d < b->d);
    case KN_TYPE_DECIMAL:
        return (a->dec > b->dec) - (a->dec < b->dec);
    case KN_TYPE_STRING: {
        size_t n = a->bytes.len < b->bytes.len ? a->bytes.len : b->bytes.len;
        int c = memcmp(a->bytes.ptr, b->bytes.ptr, n);
        return c ? c : (a->bytes.len > b->bytes.len) - (a->bytes.len < b->bytes.len);
    }
    default:
        return (a->i > b->i) - (a->i < b->i);
    }
}

static bool naive_in(const KnExpr *pred, const KnValue *row)
{
    for (size_t i = 0; i < pred->n_literals; i++)
        if (naive_compare(row, &pred->literals[i]) == 0)
            return true;
    return false;
}

static bool naive_match(const KnExpr *pred, const KnValue *row)
{
    if (pred->op == KN_EXPR_IS_NULL)
        return row->null;
    if (row->null)
        return false;
    int c = pred->n_literals ? naive_compare(row, pred->literals) : 0;
    switch (pred->op) {
    case KN_EXPR_NOT_NULL:
        return true;
    case KN_EXPR_EQ:
        return c == 0;
    case KN_EXPR_NE:
        return c != 0;
    case KN_EXPR_LT:
        return c < 0;
    case KN_EXPR_LE:
        return c <= 0;
    case KN_EXPR_GT:
        return c > 0;
    case KN_EXPR_GE:
        return c >= 0;
    case KN_EXPR_IN:
        return naive_in(pred, row);
    case KN_EXPR_NOT_IN:
        return !naive_in(pred, row);
    case KN_EXPR_IS_NAN:
        return isnan(row->d);
    case KN_EXPR_NOT_NAN:
        return !isnan(row->d);
    case KN_EXPR_STARTS_WITH:
        return kn_str_starts_with(row->bytes, pred->literals->bytes);
    default:
        return !kn_str_starts_with(row->bytes, pred->literals->bytes);
    }
}

static const KnExpr *random_predicate(KnRng *rng, const Column *column, const KnField *field)
{
    static const KnExprOp ops[] = {KN_EXPR_EQ,          KN_EXPR_NE,
                                   KN_EXPR_LT,          KN_EXPR_LE,
                                   KN_EXPR_GT,          KN_EXPR_GE,
                                   KN_EXPR_IN,          KN_EXPR_NOT_IN,
                                   KN_EXPR_IS_NULL,     KN_EXPR_NOT_NULL,
                                   KN_EXPR_IS_NAN,      KN_EXPR_NOT_NAN,
                                   KN_EXPR_STARTS_WITH, KN_EXPR_NOT_STARTS_WITH};
    size_t n_ops = 10;
    KnExprOp op = ops[kn_rng_below(rng, n_ops)];
    if (field->type->kind == KN_TYPE_DOUBLE)
        op = ops[kn_rng_below(rng, 12)];
    else if (field->type->kind == KN_TYPE_STRING && kn_rng_below(rng, 4) == 0)
        op = ops[12 + kn_rng_below(rng, 2)];
    KnExpr *expr = kn_arena_zalloc(arena, sizeof(*expr));
    *expr = (KnExpr){.op = op, .name = "c", .field = field};
    size_t n = op == KN_EXPR_IN || op == KN_EXPR_NOT_IN ? 1 + kn_rng_below(rng, 3) : 1;
    if (op == KN_EXPR_IS_NULL || op == KN_EXPR_NOT_NULL || op == KN_EXPR_IS_NAN ||
        op == KN_EXPR_NOT_NAN)
        n = 0;
    KnValue *lits = kn_arena_alloc(arena, (n + 1) * sizeof(*lits));
    for (size_t i = 0; i < n; i++)
        lits[i] = column->random(rng);
    expr->literals = lits;
    expr->n_literals = n;
    return expr;
}

typedef struct Rows {
    size_t n;
    KnValue items[8];
} Rows;

typedef struct Metrics {
    KnIdCount values, nulls, nans;
    KnIdBound lower, upper;
} Metrics;

/* Column metrics as a careful writer makes them; each part is left out at times. */
static void fill_metrics(KnRng *rng, const KnType *type, const Rows *rows, Metrics *m,
                         KnDataFile *file)
{
    *m = (Metrics){.values = {1, (int64_t)rows->n}, .nulls = {1, 0}, .nans = {1, 0}};
    const KnValue *low = NULL;
    const KnValue *high = NULL;
    for (size_t i = 0; i < rows->n; i++) {
        const KnValue *v = &rows->items[i];
        bool nan = !v->null && v->kind == KN_TYPE_DOUBLE && isnan(v->d);
        m->nulls.count += v->null;
        m->nans.count += nan;
        if (v->null || nan)
            continue;
        if (!low || kn_value_compare(v, low) < 0)
            low = v;
        if (!high || kn_value_compare(v, high) > 0)
            high = v;
    }
    if (low) {
        m->lower = (KnIdBound){1, encoded(type, low)};
        m->upper = (KnIdBound){1, encoded(type, high)};
        if (type->kind == KN_TYPE_STRING && m->lower.bytes.len > 2 && kn_rng_below(rng, 2))
            m->lower.bytes.len = 2; /* truncated: a prefix is a lower bound still */
        if (type->kind == KN_TYPE_STRING && kn_rng_below(rng, 2))
            m->upper.bytes = KN_STR_LIT("\xf4\x8f\xbf\xbf");
    }
    bool counts = kn_rng_below(rng, 4) != 0;
    bool bounds = low && kn_rng_below(rng, 8) != 0;
    *file = (KnDataFile){.record_count = (int64_t)rows->n};
    file->value_counts = &m->values;
    file->null_counts = &m->nulls;
    file->nan_counts = &m->nans;
    file->lower = &m->lower;
    file->upper = &m->upper;
    file->n_value_counts = file->n_null_counts = counts;
    file->n_nan_counts = counts && type->kind == KN_TYPE_DOUBLE && kn_rng_below(rng, 4) != 0;
    file->n_lower = file->n_upper = bounds;
}

static void check(const KnExpr *pred, const Rows *rows, bool may, bool must, const char *what)
{
    size_t matching = 0;
    for (size_t i = 0; i < rows->n; i++)
        matching += naive_match(pred, &rows->items[i]);
    if (matching > 0 && !may)
        fail_msg("%s: pruned although %zu rows match (op %d)", what, matching, (int)pred->op);
    if (matching < rows->n && must)
        fail_msg("%s: said to match wholly, %zu of %zu do (op %d)", what, matching, rows->n,
                 (int)pred->op);
}

static void random_rows(KnRng *rng, const Column *column, Rows *rows)
{
    rows->n = 1 + kn_rng_below(rng, 8);
    uint64_t nulls = kn_rng_below(rng, 3);
    KnValue base = column->random(rng);
    bool alike = kn_rng_below(rng, 3) == 0;
    for (size_t i = 0; i < rows->n; i++) {
        rows->items[i] = alike ? base : column->random(rng);
        if (nulls == 2 || (nulls == 1 && kn_rng_below(rng, 2)))
            rows->items[i] = (KnValue){.null = true, .kind = base.kind};
    }
}

static void check_metrics(KnRng *rng, const Column *column)
{
    const KnSchema *schema = schema_of(column->schema);
    const KnField *field = &schema->root.fields[0];
    Rows rows;
    random_rows(rng, column, &rows);
    Metrics metrics;
    KnDataFile file;
    fill_metrics(rng, field->type, &rows, &metrics, &file);
    const KnExpr *pred = random_predicate(rng, column, field);
    const KnPartitionSpec none = {0};
    check(pred, &rows, kn_expr_may_match_file(pred, &file),
          kn_expr_must_match_file(pred, &none, schema, &file), column->schema);
}

static KnValue transformed(const KnPartitionSpec *spec, const KnField *field, const KnValue *value)
{
    KnValue ret = {.null = true};
    assert_int_equal(
        kn_transform_apply(arena, &spec->fields[0].transform, field->type, value, &ret, NULL),
        KN_OK);
    return ret;
}

static bool same_value(const KnValue *a, const KnValue *b)
{
    return a->null == b->null && (a->null || kn_value_compare(a, b) == 0);
}

/* Rows of one partition: those whose transformed value is the first row's. */
static void check_partition(KnRng *rng, const Column *column, const char *transform)
{
    const KnSchema *schema = schema_of(column->schema);
    const KnField *field = &schema->root.fields[0];
    const KnPartitionSpec *spec = spec_of(schema, transform);
    Rows rows;
    random_rows(rng, column, &rows);
    KnValue tuple = transformed(spec, field, &rows.items[0]);
    Rows in = {0};
    for (size_t i = 0; i < rows.n; i++) {
        KnValue t = transformed(spec, field, &rows.items[i]);
        if (same_value(&t, &tuple))
            in.items[in.n++] = rows.items[i];
    }
    KnDataFile file = {.record_count = (int64_t)in.n, .partition = &tuple, .n_partition = 1};
    const KnExpr *pred = random_predicate(rng, column, field);
    check(pred, &in, kn_expr_may_match_partition(pred, spec, schema, &file),
          kn_expr_must_match_file(pred, spec, schema, &file),
          kn_arena_printf(arena, "%s by %s", column->schema, transform));
}

static void check_manifest(KnRng *rng, const Column *column, const char *transform)
{
    const KnSchema *schema = schema_of(column->schema);
    const KnField *field = &schema->root.fields[0];
    const KnPartitionSpec *spec = spec_of(schema, transform);
    const KnType *type = NULL;
    assert_int_equal(
        kn_transform_result_type(arena, &spec->fields[0].transform, field->type, &type, NULL),
        KN_OK);
    Rows rows;
    random_rows(rng, column, &rows);
    Rows tuples = {.n = rows.n};
    for (size_t i = 0; i < rows.n; i++)
        tuples.items[i] = transformed(spec, field, &rows.items[i]);
    Metrics m;
    KnDataFile unused;
    fill_metrics(rng, type, &tuples, &m, &unused);
    KnFieldSummary summary = {.contains_null = m.nulls.count > 0,
                              .contains_nan =
                                  (int8_t)(kn_rng_below(rng, 3) ? m.nans.count > 0 : -1),
                              .lower = m.lower.bytes,
                              .upper = m.upper.bytes};
    KnManifestFile mf = {.partitions = &summary, .n_partitions = 1};
    const KnExpr *pred = random_predicate(rng, column, field);
    check(pred, &rows, kn_expr_may_match_manifest(pred, spec, schema, &mf), false,
          kn_arena_printf(arena, "%s, manifest by %s", column->schema, transform));
}

static void random_columns_are_never_pruned_wrongly(void **state)
{
    (void)state;
    const char *given = getenv("KN_TEST_SEED");
    KnRng rng = {given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL)};
    print_message("KN_TEST_SEED=%llu\n", (unsigned long long)rng.state);
    for (int round = 0; round < 3000; round++) {
        arena = kn_arena_free(arena);
        arena = kn_arena_new(0);
        const Column *column = &columns[kn_rng_below(&rng, sizeof(columns) / sizeof(*columns))];
        for (int i = 0; i < 4; i++)
            check_metrics(&rng, column);
        for (const char *const *transform = column->transforms; *transform; transform++) {
            check_partition(&rng, column, *transform);
            check_manifest(&rng, column, *transform);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(integer_bounds_prune_and_prove, setup, teardown),
        cmocka_unit_test_setup_teardown(without_metrics_nothing_is_known, setup, teardown),
        cmocka_unit_test_setup_teardown(nan_is_greater_than_every_bound, setup, teardown),
        cmocka_unit_test_setup_teardown(a_partition_may_be_one_too_great_before_1970, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(void_and_unknown_transforms_never_prune, setup, teardown),
        cmocka_unit_test_setup_teardown(a_tuple_of_another_type_never_prunes_wrongly_nor_crashes,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(random_columns_are_never_pruned_wrongly, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

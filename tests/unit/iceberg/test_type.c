/* SPDX-License-Identifier: Apache-2.0 */
/* test_type.c - names of types, promotion, and the engine's types. */
#include <string.h>

#include "iceberg/schema/type_internal.h"
#include "unit/iceberg/meta_support.h"

static const char *const primitives[] = {"boolean",
                                         "int",
                                         "long",
                                         "float",
                                         "double",
                                         "decimal(9,2)",
                                         "decimal(38,38)",
                                         "date",
                                         "time",
                                         "timestamp",
                                         "timestamptz",
                                         "timestamp_ns",
                                         "timestamptz_ns",
                                         "string",
                                         "uuid",
                                         "fixed[16]",
                                         "binary",
                                         "unknown",
                                         "variant",
                                         "geometry",
                                         "geometry(OGC:CRS84)",
                                         "geography(srid:4326, spherical)"};

static const char *format(Meta *m, const KnType *type)
{
    KN_BUF_AUTO buf = {0};

    kn_buf_init(&buf, 4096);
    kn_type_format(&buf, type);
    return kn_arena_strndup(m->arena, buf.data, buf.len);
}

static void every_primitive_type_keeps_its_text(void **state)
{
    Meta *m = *state;

    for (size_t i = 0; i < sizeof(primitives) / sizeof(primitives[0]); i++) {
        const KnType *type = NULL;
        meta_ok(m, kn_type_parse(m->arena, kn_str(primitives[i]), &type, &m->err));
        assert_string_equal(format(m, type), primitives[i]);
        assert_false(kn_type_is_nested(type));
    }
}

static void blanks_inside_numbers_are_taken(void **state)
{
    Meta *m = *state;
    const KnType *type = NULL;

    meta_ok(m, kn_type_parse(m->arena, KN_STR_LIT("decimal( 9 , 2 )"), &type, &m->err));
    assert_int_equal(type->precision, 9);
    assert_int_equal(type->scale, 2);
    meta_ok(m, kn_type_parse(m->arena, KN_STR_LIT("fixed[ 7 ]"), &type, &m->err));
    assert_int_equal(type->length, 7);
}

static void wrong_type_texts_say_what_is_wrong(void **state)
{
    static const struct {
        const char *text;
        KnCode code;
        const char *message;
    } cases[] = {
        {"text", KN_E_UNSUPPORTED, "type 'text' is not known"},
        {"", KN_E_UNSUPPORTED, "type '' is not known"},
        {"Long", KN_E_UNSUPPORTED, "type 'Long' is not known"},
        {"decimal", KN_E_UNSUPPORTED, "type 'decimal' is not known"},
        {"decimal(9)", KN_E_CORRUPT, "type 'decimal(9)': expected decimal(P,S)"},
        {"decimal(x,2)", KN_E_CORRUPT, "type 'decimal(x,2)': expected decimal(P,S)"},
        {"decimal(39,2)", KN_E_CORRUPT,
         "type 'decimal(39,2)': a decimal has a precision of 1 to 38 and a scale up to that"},
        {"decimal(2,3)", KN_E_CORRUPT,
         "type 'decimal(2,3)': a decimal has a precision of 1 to 38 and a scale up to that"},
        {"geometry(\x01)", KN_E_CORRUPT, "a type has a control character in its name"},
        {"geography(\xff)", KN_E_CORRUPT, "a type's name is not UTF-8"},
        {"fixed[x]", KN_E_CORRUPT, "type 'fixed[x]': expected fixed[LENGTH]"},
        {"fixed[-1]", KN_E_CORRUPT, "type 'fixed[-1]': expected fixed[LENGTH]"},
        {"fixed[4294967296]", KN_E_CORRUPT, "type 'fixed[4294967296]': expected fixed[LENGTH]"},
    };
    Meta *m = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const KnType *type = NULL;
        KnCode rc = kn_type_parse(m->arena, kn_str(cases[i].text), &type, &m->err);
        assert_int_equal(rc, cases[i].code);
        assert_string_equal(m->err.msg, cases[i].message);
        assert_null(type);
    }
}

static void nested_types_format_as_they_are_typed(void **state)
{
    static const char *const texts[] = {"list<int>",
                                        "list<int required>",
                                        "map<string, long>",
                                        "map<string, long required>",
                                        "struct<a int required, b list<string>>",
                                        "struct<`a b` int, `c``d` date, `required` int>",
                                        "map<struct<k int>, list<map<string, fixed[3]>>>"};
    Meta *m = *state;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const KnType *type = meta_type(m, texts[i]);
        assert_string_equal(format(m, type), texts[i]);
        assert_true(kn_type_is_nested(type));
    }
}

static void only_the_promotions_of_the_specification_hold(void **state)
{
    static const struct {
        const char *from, *to;
        bool holds;
    } cases[] = {
        {"int", "long", true},
        {"long", "int", false},
        {"float", "double", true},
        {"double", "float", false},
        {"int", "double", false},
        {"decimal(9,2)", "decimal(12,2)", true},
        {"decimal(9,2)", "decimal(9,2)", true},
        {"decimal(9,2)", "decimal(8,2)", false},
        {"decimal(9,2)", "decimal(12,3)", false},
        {"date", "timestamp", true},
        {"date", "timestamp_ns", true},
        {"date", "timestamptz", false},
        {"timestamp", "timestamp_ns", false},
        {"string", "binary", false},
        {"fixed[4]", "fixed[4]", true},
        {"fixed[4]", "fixed[5]", false},
        {"unknown", "long", true},
        {"list<int>", "list<int>", true},
        {"list<int>", "list<long>", false},
    };
    Meta *m = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(kn_type_promotes(meta_type(m, cases[i].from), meta_type(m, cases[i].to)),
                         cases[i].holds);
}

static void types_are_equal_with_ids_names_and_docs(void **state)
{
    Meta *m = *state;
    KnSchema *a = meta_schema(m, "s struct<a int, b list<string>>");
    KnSchema *b = meta_schema(m, "s struct<a int, b list<string>>");
    KnSchema *shifted = meta_schema(m, "z int, s struct<a int, b list<string>>");
    KnSchema *renamed = meta_schema(m, "s struct<c int, b list<string>>");
    KnSchema *required = meta_schema(m, "s struct<a int required, b list<string>>");

    assert_true(kn_type_equal(&a->root, &b->root));
    assert_false(kn_type_equal(a->root.fields[0].type, shifted->root.fields[1].type));
    assert_false(kn_type_equal(&a->root, &renamed->root));
    assert_false(kn_type_equal(&a->root, &required->root));
}

static void columns_have_types_of_the_engine(void **state)
{
    static const char *const cases[][2] = {
        {"boolean", "BOOLEAN"},
        {"int", "INTEGER"},
        {"decimal(9,2)", "DECIMAL(9,2)"},
        {"timestamptz", "TIMESTAMP WITH TIME ZONE"},
        {"timestamp_ns", "TIMESTAMP_NS"},
        {"timestamptz_ns", "TIMESTAMP_NS"},
        {"uuid", "UUID"},
        {"fixed[3]", "BLOB"},
        {"unknown", "INTEGER"},
        {"list<list<int>>", "INTEGER[][]"},
        {"map<string, list<date>>", "MAP(VARCHAR, DATE[])"},
        {"struct<a int, `b\"c` string>", "STRUCT(\"a\" INTEGER, \"b\"\"c\" VARCHAR)"},
    };
    Meta *m = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        KN_BUF_AUTO buf = {0};
        kn_buf_init(&buf, 4096);
        meta_ok(m, kn_type_sql(&buf, meta_type(m, cases[i][0]), &m->err));
        assert_string_equal(buf.data, cases[i][1]);
    }
}

static void types_without_a_column_type_are_named(void **state)
{
    static const char *const texts[] = {"variant", "geometry(a)", "list<geography>"};
    Meta *m = *state;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        KN_BUF_AUTO buf = {0};
        kn_buf_init(&buf, 4096);
        assert_int_equal(kn_type_sql(&buf, meta_type(m, texts[i]), &m->err), KN_E_UNSUPPORTED);
        assert_non_null(strstr(m->err.msg, i == 0 ? "variant" : i == 1 ? "geometry" : "geography"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_primitive_type_keeps_its_text, meta_setup,
                                        meta_teardown),
        cmocka_unit_test_setup_teardown(blanks_inside_numbers_are_taken, meta_setup, meta_teardown),
        cmocka_unit_test_setup_teardown(wrong_type_texts_say_what_is_wrong, meta_setup,
                                        meta_teardown),
        cmocka_unit_test_setup_teardown(nested_types_format_as_they_are_typed, meta_setup,
                                        meta_teardown),
        cmocka_unit_test_setup_teardown(only_the_promotions_of_the_specification_hold, meta_setup,
                                        meta_teardown),
        cmocka_unit_test_setup_teardown(types_are_equal_with_ids_names_and_docs, meta_setup,
                                        meta_teardown),
        cmocka_unit_test_setup_teardown(columns_have_types_of_the_engine, meta_setup,
                                        meta_teardown),
        cmocka_unit_test_setup_teardown(types_without_a_column_type_are_named, meta_setup,
                                        meta_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

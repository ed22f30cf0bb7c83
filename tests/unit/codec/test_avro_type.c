/* SPDX-License-Identifier: Apache-2.0 */
/* test_avro_type.c - schemas: ids, names, logical types, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "codec/avro.h"

static KnArena *arena;

static int set_up(void **state)
{
    (void)state;
    arena = kn_arena_new(0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena = kn_arena_free(arena);
    return 0;
}

static const KnAvroType *parse(const char *json)
{
    const KnAvroType *type = NULL;
    KnErr err = {0};
    if (kn_avro_type_parse(arena, kn_str(json), &type, &err) != KN_OK)
        fail_msg("%s: %s", json, err.msg);
    return type;
}

static void refuse(const char *json, const char *words)
{
    const KnAvroType *type = NULL;
    KnErr err = {0};
    assert_int_equal(kn_avro_type_parse(arena, kn_str(json), &type, &err), KN_E_CORRUPT);
    assert_null(type);
    if (!strstr(err.msg, words))
        fail_msg("'%s' does not say '%s'", err.msg, words);
}

static void primitives_are_names_or_objects(void **state)
{
    (void)state;
    static const char *const names[] = {"null",  "boolean", "int",   "long",
                                        "float", "double",  "bytes", "string"};
    for (size_t i = 0; i < 8; ++i) {
        char json[64];
        assert_true(snprintf(json, sizeof(json), "\"%s\"", names[i]) > 0);
        assert_int_equal(parse(json)->kind, KN_AVRO_NULL + i);
        assert_true(snprintf(json, sizeof(json), "{\"type\":\"%s\"}", names[i]) > 0);
        assert_int_equal(parse(json)->kind, KN_AVRO_NULL + i);
        assert_int_equal(parse(names[i])->kind, KN_AVRO_NULL + i);
    }
    assert_int_equal(parse("\"long\"")->element_id, -1);
}

static void ids_of_fields_elements_keys_and_values_are_kept(void **state)
{
    (void)state;
    const KnAvroType *t = parse("{\"type\":\"record\",\"name\":\"r\",\"fields\":["
                                "{\"name\":\"a\",\"type\":\"int\",\"field-id\":7},"
                                "{\"name\":\"b\",\"type\":\"string\"},"
                                "{\"name\":\"l\",\"type\":{\"type\":\"array\",\"items\":\"int\","
                                "\"element-id\":9}},"
                                "{\"name\":\"m\",\"type\":{\"type\":\"map\",\"values\":\"long\","
                                "\"key-id\":10,\"value-id\":11}}]}");
    assert_int_equal(t->n_fields, 4);
    assert_string_equal(t->name, "r");
    assert_string_equal(t->fields[0].name, "a");
    assert_int_equal(t->fields[0].field_id, 7);
    assert_int_equal(t->fields[1].field_id, -1);
    assert_int_equal(t->fields[2].type->element_id, 9);
    assert_int_equal(t->fields[3].type->key_id, 10);
    assert_int_equal(t->fields[3].type->value_id, 11);
    assert_int_equal(t->fields[3].type->fields[0].type->kind, KN_AVRO_LONG);
}

static void logical_types_keep_their_attributes(void **state)
{
    (void)state;
    const KnAvroType *t = parse("{\"type\":\"fixed\",\"name\":\"d\",\"size\":5,\"logicalType\":"
                                "\"decimal\",\"precision\":10,\"scale\":2}");
    assert_string_equal(t->logical, "decimal");
    assert_int_equal(t->precision, 10);
    assert_int_equal(t->scale, 2);
    assert_int_equal(t->fixed_size, 5);
    t = parse("{\"type\":\"long\",\"logicalType\":\"timestamp-micros\",\"adjust-to-utc\":true}");
    assert_true(t->adjust_to_utc);
    assert_string_equal(t->logical, "timestamp-micros");
    t = parse("{\"type\":\"int\",\"logicalType\":7,\"precision\":\"x\"}");
    assert_null(t->logical);
    assert_int_equal(t->precision, 0);
}

static void named_types_are_found_by_short_and_full_name(void **state)
{
    (void)state;
    const KnAvroType *t =
        parse("{\"type\":\"record\",\"name\":\"r\",\"namespace\":\"n.s\",\"fields\":["
              "{\"name\":\"a\",\"type\":{\"type\":\"fixed\",\"name\":\"f\",\"size\":3}},"
              "{\"name\":\"b\",\"type\":\"f\"},{\"name\":\"c\",\"type\":\"n.s.f\"},"
              "{\"name\":\"self\",\"type\":[\"null\",\"r\"]}]}");
    assert_string_equal(t->name, "n.s.r");
    assert_string_equal(t->fields[0].type->name, "n.s.f");
    assert_ptr_equal(t->fields[1].type, t->fields[0].type);
    assert_ptr_equal(t->fields[2].type, t->fields[0].type);
    assert_ptr_equal(t->fields[3].type->fields[1].type, t);
}

static void types_without_bytes_are_known(void **state)
{
    (void)state;
    assert_true(parse("\"null\"")->zero_size);
    assert_true(parse("{\"type\":\"fixed\",\"name\":\"f\",\"size\":0}")->zero_size);
    assert_true(parse("{\"type\":\"record\",\"name\":\"r\",\"fields\":[]}")->zero_size);
    assert_true(parse("{\"type\":\"record\",\"name\":\"r\",\"fields\":[{\"name\":\"n\",\"type\":"
                      "\"null\"}]}")
                    ->zero_size);
    assert_false(parse("{\"type\":\"record\",\"name\":\"r\",\"fields\":[{\"name\":\"n\",\"type\":"
                       "\"int\"}]}")
                     ->zero_size);
    assert_false(parse("[\"null\"]")->zero_size);
}

static void wrong_structures_are_refused(void **state)
{
    (void)state;
    refuse("", "Avro schema");
    refuse("{", "Avro schema");
    refuse("12", "no name, object or union");
    refuse("\"nosuch\"", "unknown type 'nosuch'");
    refuse("[]", "without branches");
    refuse("[\"null\",[\"int\"]]", "directly inside");
    refuse("{\"type\":\"record\",\"name\":\"r\"}", "without fields");
    refuse("{\"type\":\"record\",\"fields\":[]}", "without a name");
    refuse("{\"type\":\"array\"}", "without items");
    refuse("{\"type\":\"map\"}", "without values");
    refuse("{\"type\":\"fixed\",\"name\":\"f\"}", "without a size");
    refuse("{\"type\":\"fixed\",\"name\":\"f\",\"size\":-1}", "without a size");
    refuse("{\"type\":\"record\",\"name\":\"r\",\"fields\":[{\"name\":\"a\"}]}",
           "without name or type");
    refuse("[{\"type\":\"fixed\",\"name\":\"f\",\"size\":1},"
           "{\"type\":\"fixed\",\"name\":\"f\",\"size\":1}]",
           "defined twice");
    refuse("{\"type\":\"record\",\"name\":\"r\",\"fields\":[{\"name\":\"bad\",\"type\":\"x\"}]}",
           "field 'bad'");
}

static void nesting_has_a_limit(void **state)
{
    (void)state;
    enum { LEVELS = 200 };
    KN_BUF_AUTO json;
    kn_buf_init(&json, 1 << 20);
    for (int i = 0; i < LEVELS; ++i)
        kn_buf_text(&json, "{\"type\":\"array\",\"items\":");
    kn_buf_text(&json, "\"int\"");
    for (int i = 0; i < LEVELS; ++i)
        kn_buf_char(&json, '}');
    refuse(json.data, "nested deeper than 64");
}

static void the_number_of_types_has_a_limit(void **state)
{
    (void)state;
    KN_BUF_AUTO json;
    kn_buf_init(&json, 4 << 20);
    kn_buf_text(&json, "[\"null\"");
    for (int i = 0; i < 100001; ++i)
        kn_buf_text(&json, ",\"int\"");
    kn_buf_char(&json, ']');
    refuse(json.data, "more than 100000 types");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(primitives_are_names_or_objects),
        cmocka_unit_test(ids_of_fields_elements_keys_and_values_are_kept),
        cmocka_unit_test(logical_types_keep_their_attributes),
        cmocka_unit_test(named_types_are_found_by_short_and_full_name),
        cmocka_unit_test(types_without_bytes_are_known),
        cmocka_unit_test(wrong_structures_are_refused),
        cmocka_unit_test(nesting_has_a_limit),
        cmocka_unit_test(the_number_of_types_has_a_limit),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_doris_table.c - tables and types as Doris spells them, and the CREATE TABLE made for one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cdc/sinks/doris/doris_internal.h"

static const char DDL[] = "CREATE TABLE `t` (\n"
                          "  `k1` bigint NOT NULL COMMENT 'it''s, NOT NULL',\n"
                          "  `k2` varchar(20) NULL DEFAULT \"a NOT NULL b\",\n"
                          "  `v` decimal(10,2) NULL COMMENT \"DEFAULT\",\n"
                          "  `n` array<struct<a:int(11),b:map<text,datetimev2(6)>>> NULL,\n"
                          "  `x` variant<properties(\"a\"=\"b\")> NULL,\n"
                          "  `c` char(3) NOT NULL DEFAULT \"x\",\n"
                          "  `i` bigint NOT NULL AUTO_INCREMENT(1),\n"
                          "  INDEX idx (`v`) USING INVERTED\n"
                          ") ENGINE=OLAP\n"
                          "UNIQUE KEY(`k1`, `k2`)\n"
                          "COMMENT 'OLAP'\n"
                          "DISTRIBUTED BY HASH(`k1`) BUCKETS 10\n"
                          "PROPERTIES (\n"
                          "\"replication_allocation\" = \"tag.location.default: 1\",\n"
                          "\"function_column.sequence_type\" = \"bigint\",\n"
                          "\"group_commit_mode\" = \"async_mode\"\n"
                          ");";

static void a_table_is_read_from_its_statement(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    KnDorisTable table;
    KnErr err = {0};
    if (kn_doris_table_parse(arena, kn_str(DDL), &table, &err) != KN_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(table.n_columns, 7);
    assert_int_equal(table.model, KN_DORIS_UNIQUE);
    assert_int_equal(table.n_keys, 2);
    assert_string_equal(table.keys[1], "k2");
    assert_string_equal(table.sequence_type, "bigint");
    assert_string_equal(table.group_commit, "async_mode");
    assert_null(table.sequence_col);
    const KnDorisColumn *col = kn_doris_table_find(&table, "K1");
    assert_true(col->not_null && !col->has_default);
    col = kn_doris_table_find(&table, "k2");
    assert_true(!col->not_null && col->has_default && col->type.length == 20);
    col = kn_doris_table_find(&table, "v");
    assert_true(!col->has_default && col->type.precision == 10 && col->type.scale == 2);
    col = kn_doris_table_find(&table, "n");
    assert_int_equal(col->type.kind, KN_DORIS_ARRAY);
    const KnDorisType *st = &col->type.children[0];
    assert_string_equal(st->names[1], "b");
    assert_int_equal(st->children[1].children[1].kind, KN_DORIS_DATETIME);
    assert_int_equal(st->children[1].children[1].scale, 6);
    assert_int_equal(kn_doris_table_find(&table, "x")->type.kind, KN_DORIS_OTHER);
    assert_true(kn_doris_table_find(&table, "i")->has_default);
    assert_null(kn_doris_table_find(&table, "idx"));
}

static void statements_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    static const char *const BAD[] = {"",
                                      "CREATE VIEW `v` AS SELECT 1",
                                      "CREATE TABLE `t` (\n`a\n)",
                                      "CREATE TABLE `t` (\n  `a` array<int\n)",
                                      "CREATE TABLE `t` (\n  `a` map<int>\n)",
                                      "CREATE TABLE `t` (\n  `a` struct<int>\n)",
                                      "CREATE TABLE `t` (\n  `a` \n)",
                                      "CREATE TABLE `t` (\n  `a` varchar(x)\n)"};
    for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); ++i) {
        KN_ARENA_AUTO arena = kn_arena_new(4096);
        KnDorisTable table;
        if (kn_doris_table_parse(arena, kn_str(BAD[i]), &table, NULL) != KN_E_CORRUPT)
            fail_msg("taken: %s", BAD[i]);
    }
}

static void fits(const char *from, const char *to, bool wanted)
{
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    KN_BUF_AUTO text;
    KnSchema *schema;
    KnDorisType type;
    kn_buf_init(&text, 4096);
    kn_buf_printf(&text, "a %s", from);
    assert_int_equal(kn_schema_parse_text(arena, kn_str(text.data), &schema, NULL), KN_OK);
    assert_int_equal(kn_doris_type_parse(arena, kn_str(to), &type, NULL), KN_OK);
    const char *why = kn_doris_type_mismatch(schema->root.fields[0].type, &type);
    if ((why == NULL) != wanted)
        fail_msg("%s into %s: %s", from, to, why ? why : "taken");
}

static void only_types_that_keep_the_value_are_taken(void **state)
{
    (void)state;
    fits("int", "int(11)", true);
    fits("int", "BIGINT", true);
    fits("int", "smallint", false);
    fits("long", "int", false);
    fits("long", "largeint", true);
    fits("long", "double", false);
    fits("float", "double", true);
    fits("double", "float", false);
    fits("decimal(10,2)", "decimal(12,2)", true);
    fits("decimal(10,2)", "decimalv3(12,4)", true);
    fits("decimal(10,2)", "decimal(11,4)", false);
    fits("decimal(10,2)", "decimal(10,0)", false);
    fits("timestamp", "datetime(6)", true);
    fits("timestamp", "datetime", false);
    fits("timestamptz", "datetime(3)", false);
    fits("date", "datetime(6)", false);
    fits("string", "varchar(1)", true);
    fits("string", "int", false);
    fits("uuid", "varchar(35)", false);
    fits("uuid", "char(36)", true);
    fits("time", "bigint", true);
    fits("time", "varchar(14)", false);
    fits("fixed[16]", "varchar(16)", true);
    fits("fixed[16]", "char(16)", false);
    fits("binary", "text", true);
    fits("list<int>", "array<bigint>", true);
    fits("list<binary>", "array<text>", false);
    fits("struct<a int, b int>", "struct<a:int,b:int>", true);
    fits("struct<a int, b int>", "struct<b:int,a:int>", false);
    fits("map<string, int>", "map<text,int>", true);
    fits("string", "variant", false);
    fits("boolean", "tinyint", false);
}

static KnCode ddl(KnArena *arena, const char *text, const char *key, KnBuf *out, KnErr *err)
{
    KnSchema *schema = NULL;
    const KnDorisSettings set = {.buckets = 3, .replication = 1};
    assert_int_equal(kn_schema_parse_text(arena, kn_str(text), &schema, err), KN_OK);
    const KnSinkWindow win = {.schema = schema, .keys = &key, .n_keys = key ? 1 : 0};
    return kn_doris_ddl(out, &set, "d", "t`x", &win, err);
}

static void the_table_made_has_keys_first(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(4096);
    KN_BUF_AUTO out;
    KnErr err = {0};
    kn_buf_init(&out, 65536);
    assert_int_equal(
        ddl(arena, "v list<struct<a int>>, k string required, f fixed[5]", "k", &out, &err), KN_OK);
    assert_string_equal(out.data, "CREATE TABLE `d`.`t``x` (\n"
                                  "  `k` VARCHAR(65533) NOT NULL,\n"
                                  "  `v` ARRAY<STRUCT<`a`:INT>> NULL,\n"
                                  "  `f` VARCHAR(5) NULL\n"
                                  ")\n"
                                  "UNIQUE KEY(`k`)\n"
                                  "DISTRIBUTED BY HASH(`k`) BUCKETS 3\n"
                                  "PROPERTIES (\n"
                                  "  \"enable_unique_key_merge_on_write\" = \"true\",\n"
                                  "  \"function_column.sequence_type\" = \"bigint\",\n"
                                  "  \"replication_num\" = \"1\"\n"
                                  ")");
    kn_buf_reset(&out);
    assert_int_equal(ddl(arena, "a decimal(9,2), b time", NULL, &out, &err), KN_OK);
    assert_non_null(strstr(out.data, "DISTRIBUTED BY RANDOM BUCKETS 3"));
    assert_null(strstr(out.data, "KEY("));
}

static void a_table_that_cannot_be_made_is_refused_by_column(void **state)
{
    (void)state;
    static const struct {
        const char *schema, *key, *words;
    } BAD[] = {
        {"k double required", "k", "column k: a key cannot be of type double"},
        {"k list<int>", "k", "column k: a key cannot be of type list<int>"},
        {"a timestamp_ns", NULL, "column a: type timestamp_ns cannot be delivered"},
        {"a list<binary>", NULL, "bytes inside a nested type"},
    };
    for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); ++i) {
        KN_ARENA_AUTO arena = kn_arena_new(4096);
        KN_BUF_AUTO out;
        KnErr err = {0};
        kn_buf_init(&out, 65536);
        assert_int_equal(ddl(arena, BAD[i].schema, BAD[i].key, &out, &err), KN_E_UNSUPPORTED);
        if (!strstr(err.msg, BAD[i].words))
            fail_msg("'%s' is not in '%s'", BAD[i].words, err.msg);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_is_read_from_its_statement),
        cmocka_unit_test(statements_that_make_no_sense_are_refused),
        cmocka_unit_test(only_types_that_keep_the_value_are_taken),
        cmocka_unit_test(the_table_made_has_keys_first),
        cmocka_unit_test(a_table_that_cannot_be_made_is_refused_by_column),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

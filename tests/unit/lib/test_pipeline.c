/* SPDX-License-Identifier: Apache-2.0 */
/* test_pipeline.c - pipelines through the public header. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "knut/pipeline.h"

#include "support/tempdir.h"

static void what_is_added_is_copied(void **state)
{
    (void)state;
    char name[] = "orders";
    KnutPipeline *p = knut_pipeline_new("p");
    knut_pipeline_dataset(p, &(KnutDataset){.name = name, .keys = KNUT_NAMES(name, "b")});
    knut_pipeline_property(p, "z", "1");
    knut_pipeline_property(p, "a", "2");
    knut_pipeline_property(p, "z", "3");
    knut_pipeline_defaults(p, "cat", NULL);
    name[0] = 'x';
    const KnutPipelineSpec *spec = knut_pipeline_spec(p);
    assert_string_equal(spec->datasets.items[0].name, "orders");
    assert_string_equal(spec->datasets.items[0].keys.items[0], "orders");
    assert_int_equal(spec->datasets.items[0].keys.len, 2);
    assert_int_equal(spec->properties.len, 2);
    assert_string_equal(spec->properties.items[1].value, "3");
    assert_string_equal(spec->default_catalog, "cat");
    assert_null(spec->default_database);
    knut_pipeline_free(p);
    knut_pipeline_free(NULL);
}

static void a_pipeline_that_was_read_can_be_added_to(void **state)
{
    (void)state;
    static const char text[] = "(name:\"p\",datasets:[(name:\"b\",output_type:table)],flows:[(name:"
                               "\"f\",target:\"b\",reads:[\"a\"],kind:batch,later:1)])";
    KnErr err = {0};
    KnutPipeline *p = NULL, *copy = NULL;
    assert_int_equal(knut_pipeline_parse(text, sizeof(text) - 1, "ron", &p, &err), KN_OK);
    knut_pipeline_dataset(p, &(KnutDataset){.name = "a", .output_type = KNUT_OUTPUT_TABLE});
    knut_pipeline_flow(p, &(KnutFlow){.name = "g", .target = "a", .query = "SELECT 1"});
    KnutNames order = knut_pipeline_order(p);
    assert_int_equal(order.len, 2);
    assert_string_equal(order.items[0], "a");
    KnutProblems problems;
    assert_int_equal(knut_pipeline_check(p, &problems, &err), KN_OK);
    assert_int_equal(problems.len, 1);
    assert_string_equal(problems.items[0].rule, "unknown-field");
    assert_string_equal(problems.items[0].where, "1:102");
    copy = knut_pipeline_from(knut_pipeline_spec(p));
    assert_true(knut_pipeline_equal(p, copy));
    knut_pipeline_flow(copy, &(KnutFlow){.name = "h", .target = "b", .reads = KNUT_NAMES("b")});
    assert_false(knut_pipeline_equal(p, copy));
    assert_int_equal(knut_pipeline_check(copy, NULL, &err), KN_E_INVAL);
    assert_non_null(strstr(err.msg, "`b` -> `b`"));
    assert_int_equal(knut_pipeline_order(copy).len, 0);
    knut_pipeline_free(p);
    knut_pipeline_free(copy);
}

static void files_are_written_and_read_by_their_extension(void **state)
{
    (void)state;
    char dir[256], file[300];
    (void)test_tempdir_make(dir);
    KnErr err = {0};
    KnutPipeline *p = knut_pipeline_new("p"), *again = NULL;
    knut_pipeline_storage(p, "file:///tmp/st");
    for (int json = 0; json < 2; json++) {
        (void)snprintf(file, sizeof(file), "%s/p.%s", dir, json ? "json" : "ron");
        assert_int_equal(knut_pipeline_save(p, file, NULL, &err), KN_OK);
        assert_int_equal(knut_pipeline_load(file, json ? "json" : NULL, &again, &err), KN_OK);
        assert_true(knut_pipeline_equal(p, again));
        knut_pipeline_free(again);
    }
    assert_int_equal(knut_pipeline_load(file, "ron", &again, &err), KN_E_CORRUPT);
    assert_int_equal(knut_pipeline_load("/nowhere/p.ron", NULL, &again, &err), KN_E_NOTFOUND);
    assert_int_equal(knut_pipeline_parse("()", 2, NULL, &again, &err), KN_E_INVAL);
    assert_int_equal(knut_pipeline_parse("()", 2, "yaml", &again, &err), KN_E_INVAL);
    knut_pipeline_free(p);
    test_tempdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_added_is_copied),
        cmocka_unit_test(a_pipeline_that_was_read_can_be_added_to),
        cmocka_unit_test(files_are_written_and_read_by_their_extension),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

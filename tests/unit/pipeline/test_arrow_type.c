/* SPDX-License-Identifier: Apache-2.0 */
/* test_arrow_type.c - types as Arrow displays them, and what the engine calls them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "pipeline/ir/arrow_type.h"

static void both_displays_are_read(void **state)
{
    (void)state;
    static const char *const types[][2] = {
        {"Int64", "BIGINT"},
        {"Utf8", "VARCHAR"},
        {"Decimal128(10, 2)", "DECIMAL(10,2)"},
        {"Timestamp(Microsecond, None)", "TIMESTAMP"},
        {"Timestamp(µs)", "TIMESTAMP"},
        {"Timestamp(Millisecond, Some(\"UTC\"))", "TIMESTAMP WITH TIME ZONE"},
        {"Timestamp(ns, \"+02:00\")", "TIMESTAMP WITH TIME ZONE"},
        {"Timestamp(Nanosecond, None)", "TIMESTAMP_NS"},
        {"Time64(Microsecond)", "TIME"},
        {"Interval(MonthDayNano)", "INTERVAL"},
        {"FixedSizeBinary(16)", "BLOB"},
        {"List(non-null Int32, field: 'element')", "INTEGER[]"},
        {"FixedSizeList(3 x Float32)", "FLOAT[3]"},
        {"Struct(\"a\": Int32, \"b c\": non-null List(Utf8))",
         "STRUCT(\"a\" INTEGER, \"b c\" VARCHAR[])"},
        {"Map(\"entries\": non-null Struct(\"key\": non-null Utf8, \"value\": Int32), unsorted)",
         "MAP(VARCHAR, INTEGER)"},
        {"Dictionary(Int32, Utf8)", "VARCHAR"},
    };
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        KN_BUF_AUTO sql = {.max = 1000};
        KnErr err = {0};
        if (kn_arrow_type_sql(kn_str(types[i][0]), &sql, &err) != KN_OK)
            fail_msg("%s", err.msg);
        assert_string_equal(sql.data, types[i][1]);
    }
}

static void what_is_no_type_is_said_with_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
        KnCode code;
    } wrong[] = {
        {"", "expected a type such as Int64", KN_E_INVAL},
        {"bigint", "'bigint' is no Arrow type", KN_E_INVAL},
        {"Int64 x", "expected the end at 'x'", KN_E_INVAL},
        {"Timestamp", "expected '(' at ''", KN_E_INVAL},
        {"Timestamp(Hour, None)", "expected Second, Millisecond", KN_E_INVAL},
        {"Decimal128(10)", "expected ',' at ')'", KN_E_INVAL},
        {"Decimal128(x, 2)", "expected a number at 'x", KN_E_INVAL},
        {"Decimal256(60, 2)", "at most 38 digits", KN_E_UNSUPPORTED},
        {"Struct(\"a: Int32)", "closing quote", KN_E_INVAL},
        {"List(Int32", "expected ')'", KN_E_INVAL},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        KN_BUF_AUTO sql = {.max = 1000};
        KnErr err = {0};
        assert_int_equal(kn_arrow_type_sql(kn_str(wrong[i].text), &sql, &err), wrong[i].code);
        if (!strstr(err.msg, wrong[i].message))
            fail_msg("%s", err.msg);
        assert_int_equal(sql.len, 0);
    }
}

static void types_within_one_another_have_a_limit(void **state)
{
    (void)state;
    char deep[5000];
    for (size_t i = 0; i + 5 < sizeof(deep); i += 5)
        memcpy(deep + i, "List(", 5);
    KN_BUF_AUTO sql = {.max = 100000};
    KnErr err = {0};
    assert_int_equal(kn_arrow_type_sql((KnStr){deep, 4990}, &sql, &err), KN_E_INVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_displays_are_read),
        cmocka_unit_test(what_is_no_type_is_said_with_its_place),
        cmocka_unit_test(types_within_one_another_have_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

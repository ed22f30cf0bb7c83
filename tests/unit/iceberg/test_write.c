/* SPDX-License-Identifier: Apache-2.0 */
/* test_write.c - append, delete, overwrite: rows, files, metrics, summaries, conflicts, cleanup. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "unit/iceberg/lake.h"

static const LakeTable plain = {.schema = "id long required, name string"};

static void appended_rows_are_read_back(void **state)
{
    (void)state;
    Lake lake;
    lake_open(&lake, &plain);
    KnWriteResult res =
        lake_append(&lake, "SELECT 1::BIGINT AS id, 'a' AS name UNION ALL SELECT 2, NULL");
    assert_int_equal(res.added_rows, 2);
    assert_int_equal(res.added_files, 1);
    assert_true(res.added_bytes > 0);
    assert_string_equal(lake_rows(&lake), "{'id': 1, 'name': a} {'id': 2, 'name': NULL}");
    lake_append(&lake, "SELECT 'x' AS name, 3 AS id;  ");
    assert_string_equal(lake_text(&lake, "SELECT count(*) || ',' || sum(id) FROM {scan}"), "3,6");
    lake_close(&lake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appended_rows_are_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

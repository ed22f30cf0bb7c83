/* SPDX-License-Identifier: Apache-2.0 */
/* labels: slow */
/*
 * test_delivery_faults.c - a delivery that fails once at every fault point there is, resumed with
 * other chunk sizes each time: rows arrive exactly once all the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/fault.h"
#include "unit/cdc/ferry.h"

static const LakeTable PLAIN = {.schema = "id long, name string, d double"};
static const LakeTable KEYED = {.schema = "id long required, name string, d double"};

/* Counts of how often each point was passed in a round that succeeded. */
static size_t traced_points(const char *trace, char names[][128], size_t most)
{
    char line[128];
    size_t n = 0;
    FILE *file = fopen(trace, "r");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file)) {
        line[strcspn(line, "\n")] = '\0';
        size_t i = 0;
        while (i < n && strcmp(names[i], line) != 0)
            ++i;
        if (i == n && n < most)
            (void)snprintf(names[n++], sizeof(names[0]), "%s", line);
    }
    assert_int_equal(fclose(file), 0);
    return n;
}

/* A new snapshot of several chunks, and one that deletes, updates and adds; no key comes twice. */
static void change_table(Ferry *fy)
{
    static int turn;
    int base = 1000 * ++turn;
    lake_append(
        &fy->lake,
        "SELECT range AS id, md5(range::VARCHAR) AS name, range / 4 AS d FROM range(%d, %d)", base,
        base + 300);
    char where[64], rows[160];
    (void)snprintf(where, sizeof(where), "id >= %d AND id < %d", base + 50, base + 200);
    (void)snprintf(rows, sizeof(rows),
                   "SELECT range AS id, 'new' AS name, 0.0 AS d FROM range(%d, %d)", base + 100,
                   base + 200);
    lake_overwrite(&fy->lake, where, rows);
}

static void round_with_fault(Ferry *fy, const char *point, int nth, uint64_t chunk_bytes)
{
    char spec[192];
    fy->opts.chunk_bytes = chunk_bytes;
    ferry_restart(fy);
    (void)snprintf(spec, sizeof(spec), "%s:%d:fail", point, nth);
    assert_int_equal(kn_fault_set(spec, NULL, NULL), KN_OK);
    (void)!kn_delivery_round(fy->dlv, &fy->err);
    assert_int_equal(kn_fault_set(NULL, NULL, NULL), KN_OK);
}

/* Everything is delivered, failing at each point, with another chunk size each time. */
static void fail_everywhere(bool keyed)
{
    static char names[64][128];
    static const char *const keys[] = {"id"};
    char trace[320];
    Ferry fy;
    ferry_open(&fy, keyed ? &KEYED : &PLAIN);
    fy.opts.chunk_bytes = 4000;
    fy.opts.keys = keys;
    fy.opts.n_keys = keyed ? 1 : 0;
    ferry_restart(&fy);
    change_table(&fy);
    (void)snprintf(trace, sizeof(trace), "%s/trace", fy.lake.dir);
    assert_int_equal(kn_fault_set("never:1:fail", trace, NULL), KN_OK);
    ferry_round(&fy);
    change_table(&fy);
    ferry_round(&fy);
    size_t n = traced_points(trace, names, 64);
    assert_true(n >= 14);
    for (size_t i = 0; i < n; ++i) {
        bool claim = strstr(names[i], "claim") != NULL;
        if (keyed && strncmp(names[i], "sink-", 5) != 0) /* the journal does not know of keys */
            continue;
        if (claim)
            lake_ok(&fy.lake, kn_delivery_reload(fy.dlv, &fy.lake.err));
        change_table(&fy);
        round_with_fault(&fy, names[i], claim || i % 2 ? 1 : 2, 4000);
        if (i % 4 == 0)
            round_with_fault(&fy, names[i], 1, 2500);
        fy.opts.chunk_bytes = 3000;
        ferry_restart(&fy);
        ferry_round(&fy);
        ferry_same_rows(&fy);
    }
    assert_string_equal(ferry_text(&fy, "SELECT count(*) - count(DISTINCT label) FROM _knut_loads"),
                        "0");
    ferry_close(&fy);
}

static void a_failure_at_any_point_neither_loses_nor_doubles_rows(void **state)
{
    (void)state;
    fail_everywhere(false);
}

static void a_failure_at_any_point_of_an_upsert_by_key_does_not_either(void **state)
{
    (void)state;
    fail_everywhere(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failure_at_any_point_neither_loses_nor_doubles_rows),
        cmocka_unit_test(a_failure_at_any_point_of_an_upsert_by_key_does_not_either),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

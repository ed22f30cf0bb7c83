/* SPDX-License-Identifier: Apache-2.0 */
/* test_scalar.c - functions of ours inside SQL. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit/engine/support.h"

/* length(text) * factor + add; -1 as factor fails. */
static KnCode weigh(const KnScalarCall *call, KnErr *err)
{
    int32_t *out = call->out_data;
    const int32_t *factor = call->args[1].data;
    const int32_t *add = call->arg;
    assert_int_equal(call->n_args, 2);
    for (size_t i = 0; i < call->rows; i++) {
        assert_false(kn_vector_is_null(&call->args[0], i));
        assert_false(kn_vector_is_null(&call->args[1], i));
        if (factor[i] == -1)
            return kn_err_set(err, KN_E_REFUSED, "factor -1 is refused");
        out[i] = (int32_t)kn_vector_str(&call->args[0], i).len * factor[i] + *add;
    }
    return KN_OK;
}

static const char *const arg_types[] = {"VARCHAR", "INTEGER"};
static int32_t add = 1;

static int setup(void **state)
{
    assert_int_equal(bench_setup(state), 0);
    Bench *b = *state;
    const KnScalarFn fn = {.name = "weigh",
                           .arg_types = arg_types,
                           .n_args = 2,
                           .return_type = "INTEGER",
                           .fn = weigh,
                           .arg = &add};
    assert_ok(b, kn_engine_add_scalar(b->eng, &fn, &b->err));
    return 0;
}

static void every_row_is_computed(void **state)
{
    assert_string_equal(bench_text(*state, "SELECT sum(weigh(repeat('x', (i %% 20)::INTEGER), 2)) "
                                           "FROM range(10000) t(i)"),
                        "200000");
}

static void null_arguments_give_null_and_are_not_seen(void **state)
{
    assert_string_equal(
        bench_text(*state,
                   "SELECT count(w) || ' ' || sum(w) FROM (SELECT weigh(CASE WHEN i %% 3 = 0 THEN "
                   "NULL ELSE 'long enough to be elsewhere' END, CASE WHEN i %% 5 = 0 THEN NULL "
                   "ELSE i::INTEGER END) w FROM range(15) t(i))"),
        "8 1628");
    assert_string_equal(bench_text(*state, "SELECT weigh(NULL, 1) IS NULL"), "true");
    assert_string_equal(bench_text(*state, "SELECT weigh('a', 5)"), "6");
}

static void every_session_sees_it_and_dictionaries_work(void **state)
{
    Bench *b = *state;
    KnSession *ses = NULL;
    int64_t n = 0;
    assert_ok(b, kn_session_open(b->eng, &ses, &b->err));
    assert_ok(b, kn_session_exec(ses,
                                 "CREATE TABLE t AS SELECT CASE WHEN i % 4 = 0 THEN NULL ELSE "
                                 "'city ' || (i % 7) END c FROM range(20000) t(i)",
                                 NULL, &b->err));
    assert_ok(b, kn_session_query_i64(ses, "SELECT sum(weigh(c, 1))::BIGINT FROM t", &n, &b->err));
    assert_int_equal(n, 15000 * 7);
    kn_session_close(ses);
}

static void its_error_comes_out_with_its_code(void **state)
{
    Bench *b = *state;
    assert_code(b,
                kn_session_exec(b->ses, "SELECT weigh('x', (i - 1)::INTEGER) FROM range(9) t(i)",
                                NULL, &b->err),
                KN_E_REFUSED);
    assert_string_equal(b->err.msg, "factor -1 is refused");
}

/* Counts the NULLs of a row; the first argument is declared. */
static KnCode count_nulls(const KnScalarCall *call, KnErr *err)
{
    (void)err;
    int64_t *out = call->out_data;
    for (size_t i = 0; i < call->rows; i++) {
        out[i] = 0;
        for (size_t a = 0; a < call->n_args; a++)
            out[i] += kn_vector_is_null(&call->args[a], i);
    }
    *(size_t *)call->arg += call->rows;
    return KN_OK;
}

static void any_arguments_come_with_their_nulls_once_for_each_row(void **state)
{
    Bench *b = *state;
    static size_t seen;
    seen = 0;
    static const char *const first[] = {"BIGINT"};
    const KnScalarFn fn = {.name = "count_nulls",
                           .arg_types = first,
                           .n_args = 1,
                           .return_type = "BIGINT",
                           .fn = count_nulls,
                           .arg = &seen,
                           .any_more = true};
    assert_ok(b, kn_engine_add_scalar(b->eng, &fn, &b->err));
    assert_string_equal(
        bench_text(b,
                   "SELECT sum(count_nulls(CASE WHEN i %% 2 = 0 THEN i END, NULL, 'x', "
                   "CASE WHEN i %% 5 = 0 THEN NULL ELSE DATE '2020-01-01' END, 1.5::DECIMAL(9,1), "
                   "[i])) FROM range(5000) t(i)"),
        "8500");
    assert_int_equal(seen, 5000);
    /* Not left out although nobody looks at it, and not made once for rows that are the same. */
    seen = 0;
    assert_string_equal(bench_text(b, "SELECT sum(count_nulls(1, NULL)) FROM range(3000)"), "3000");
    assert_int_equal(seen, 3000);
}

static void wrong_declarations_are_refused(void **state)
{
    Bench *b = *state;
    KnScalarFn fn = {
        .name = "bad", .arg_types = arg_types, .n_args = 2, .return_type = "VARCHAR", .fn = weigh};
    assert_code(b, kn_engine_add_scalar(b->eng, &fn, &b->err), KN_E_INVAL);
    fn.return_type = "NO_SUCH";
    assert_code(b, kn_engine_add_scalar(b->eng, &fn, &b->err), KN_E_INVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_row_is_computed, setup, bench_teardown),
        cmocka_unit_test_setup_teardown(null_arguments_give_null_and_are_not_seen, setup,
                                        bench_teardown),
        cmocka_unit_test_setup_teardown(every_session_sees_it_and_dictionaries_work, setup,
                                        bench_teardown),
        cmocka_unit_test_setup_teardown(its_error_comes_out_with_its_code, setup, bench_teardown),
        cmocka_unit_test_setup_teardown(any_arguments_come_with_their_nulls_once_for_each_row,
                                        setup, bench_teardown),
        cmocka_unit_test_setup_teardown(wrong_declarations_are_refused, setup, bench_teardown),
    };
    return cmocka_run_group_tests_name("engine.scalar", tests, NULL, NULL);
}

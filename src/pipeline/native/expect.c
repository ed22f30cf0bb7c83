/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expect.c - expectations: conditions that each row should meet, counted in the pass that computes
 * the rows.
 *
 * A function of ours gets the conditions of each row, once, in the order of the expectations, and
 * says whether the row stays. FALSE is a violation. NULL is not, as in SQL's CHECK: the row stays,
 * and is counted as unknown. A row that one expectation drops is not looked at by those after it.
 * One that fails lets the pass go on, so that its number is complete; nothing is published then.
 *
 * The engine's optimizer moves and prunes filters, so counts are right only where every row of the
 * query is asked for: what has checks is written or stored as a whole, never read through a view.
 */
#include <inttypes.h>
#include <string.h>

#include "pipeline/native/native.h"

#define FUNCTION "kn_pipeline_check"
enum { MAX_CHECKS = 15 }; /* conditions of one call */

static KnCode check_rows(const KnScalarCall *call, KnErr *err)
{
    KnNativeRun *run = call->arg;
    const int32_t *which = call->args[0].data;
    bool *keep = call->out_data;
    int64_t rows[MAX_CHECKS] = {0}, violations[MAX_CHECKS] = {0}, unknown[MAX_CHECKS] = {0};
    if (!call->rows)
        return KN_OK;
    if (which[0] < 0 || (size_t)which[0] >= run->checks.len)
        return kn_err_set(err, KN_E_INVAL, FUNCTION "() is not for queries");
    KnNativeChecks *checks = run->checks.items[which[0]];
    for (size_t row = 0; row < call->rows; row++) {
        keep[row] = true;
        for (size_t i = 0; i < checks->len && keep[row]; i++) {
            const KnVector *cond = &call->args[1 + i];
            bool null = kn_vector_is_null(cond, row);
            bool bad = !null && !((const bool *)cond->data)[row];
            rows[i]++;
            unknown[i] += null;
            violations[i] += bad;
            keep[row] = !(bad && checks->items[i].action == KNUT_ON_VIOLATION_DROP);
        }
    }
    for (size_t i = 0; i < checks->len; i++) {
        atomic_fetch_add(&checks->items[i].rows, rows[i]);
        atomic_fetch_add(&checks->items[i].violations, violations[i]);
        atomic_fetch_add(&checks->items[i].unknown, unknown[i]);
    }
    return KN_OK;
}

static KnCode register_function(KnNativeRun *run, KnErr *err)
{
    static const char *const types[] = {"INTEGER"};
    if (kn_engine_has_scalar(run->engine, FUNCTION))
        return KN_OK;
    return kn_engine_add_scalar(run->engine,
                                &(KnScalarFn){.name = FUNCTION,
                                              .arg_types = types,
                                              .n_args = 1,
                                              .return_type = "BOOLEAN",
                                              .fn = check_rows,
                                              .arg = run,
                                              .any_more = true},
                                err);
}

static void add_not_null(KnArena *arena, KnNativeChecks *checks, const KnutSchema *schema)
{
    for (size_t i = 0; schema && i < schema->len; i++) {
        if (schema->items[i].nullable)
            continue;
        KN_BUF_AUTO cond = {.max = 1 << 16};
        kn_sql_ident(&cond, kn_str(schema->items[i].name));
        kn_buf_text(&cond, " IS NOT NULL");
        checks->items[checks->len++] =
            (KnNativeCheck){.name = schema->items[i].name,
                            .constraint = kn_arena_strndup(arena, cond.data, cond.len),
                            .action = KNUT_ON_VIOLATION_FAIL,
                            .not_null = true};
    }
}

static KnNativeChecks *new_checks(KnNativeRun *run, const KnNativeWanted *wanted)
{
    const KnutExpectations *expectations = wanted->expectations;
    const KnutSchema *schema = wanted->schema;
    size_t max = (expectations ? expectations->len : 0) + (schema ? schema->len : 0);
    KnNativeChecks *checks = kn_arena_zalloc(run->arena, sizeof(*checks));
    checks->dataset = wanted->dataset;
    checks->items = kn_arena_zalloc(run->arena, (max + 1) * sizeof(*checks->items));
    for (size_t i = 0; expectations && i < expectations->len; i++)
        checks->items[checks->len++] =
            (KnNativeCheck){.name = expectations->items[i].name,
                            .constraint = expectations->items[i].constraint,
                            .action = expectations->items[i].on_violation};
    add_not_null(run->arena, checks, schema);
    return checks;
}

/* At most MAX_CHECKS conditions around sql. */
static KnCode wrap(KnNativeRun *run, KnNativeChecks *checks, const char *sql, const char **ret,
                   KnErr *err)
{
    KN_BUF_AUTO text = {.max = 64 << 20};
    kn_buf_printf(&text, "SELECT * EXCLUDE (kn_kept) FROM (SELECT *, " FUNCTION "(%zu",
                  run->checks.len);
    for (size_t i = 0; i < checks->len; i++)
        kn_buf_printf(&text, ", CAST((%s\n) AS BOOLEAN)", checks->items[i].constraint);
    kn_buf_printf(&text, ") AS kn_kept FROM (%s\n)) WHERE kn_kept", sql);
    KN_TRY(kn_buf_check(&text, err));
    *kn_vec_push(&run->checks) = checks;
    *ret = kn_arena_strndup(run->arena, text.data, text.len);
    return KN_OK;
}

KnCode kn_native_checked(KnNativeRun *run, const KnNativeWanted *wanted, const char *sql,
                         const char **ret, KnErr *err)
{
    KnNativeChecks *all = new_checks(run, wanted);
    *ret = sql;
    if (all->len)
        KN_TRY(register_function(run, err));
    for (size_t first = 0; first < all->len; first += MAX_CHECKS) {
        KnNativeChecks *part = kn_arena_zalloc(run->arena, sizeof(*part));
        size_t left = all->len - first;
        part->dataset = all->dataset;
        part->items = all->items + first;
        part->len = left < MAX_CHECKS ? left : MAX_CHECKS;
        KN_TRY(wrap(run, part, *ret, ret, err));
    }
    return KN_OK;
}

static KnCode report_not_null(const KnNativeChecks *checks, const KnNativeCheck *check,
                              int64_t violations, KnErr *err)
{
    if (!violations)
        return KN_OK;
    return kn_err_set(err, KN_E_REFUSED,
                      "%s: column %s is declared NOT NULL, and %" PRId64 " row(s) have NULL in it",
                      checks->dataset, check->name, violations);
}

static KnCode report_one(const KnNativeRun *run, const KnNativeChecks *checks, KnNativeCheck *check,
                         KnErr *err)
{
    static const char *const actions[] = {"warn", "drop", "fail"};
    int64_t rows = atomic_exchange(&check->rows, 0);
    int64_t bad = atomic_exchange(&check->violations, 0);
    KnRunMetrics metrics = {.expectation = check->name,
                            .action = actions[check->action],
                            .rows = rows,
                            .violations = bad,
                            .unknown = atomic_exchange(&check->unknown, 0)};
    KnRunEvent event = {.element = checks->dataset, .phase = KN_PHASE_RUNNING, .metrics = &metrics};
    if (check->not_null)
        return report_not_null(checks, check, bad, err);
    if (!bad)
        kn_native_tell(run, &event, "expectation `%s` passed (0 violations)", check->name);
    else if (check->action == KNUT_ON_VIOLATION_WARN)
        kn_native_tell(run, &event, "expectation `%s` WARN: %" PRId64 " violating row(s) kept",
                       check->name, bad);
    else if (check->action == KNUT_ON_VIOLATION_DROP)
        kn_native_tell(run, &event,
                       "expectation `%s` DROP: dropped %" PRId64 " row(s), %" PRId64 " kept",
                       check->name, bad, rows - bad);
    else {
        event.phase = KN_PHASE_FAILED;
        kn_native_tell(run, &event, "expectation `%s` FAILED: %" PRId64 " violating row(s)",
                       check->name, bad);
        return kn_err_set(err, KN_E_REFUSED,
                          "expectation `%s` FAILED on `%s`: %" PRId64
                          " violating row(s) of %" PRId64 "; nothing was written",
                          check->name, checks->dataset, bad, rows);
    }
    return KN_OK;
}

KnCode kn_native_report_checks(const KnNativeRun *run, const char *dataset, KnErr *err)
{
    KnCode rc = KN_OK;
    kn_vec_foreach (&run->checks, checks) {
        for (size_t i = 0; strcmp((*checks)->dataset, dataset) == 0 && i < (*checks)->len; i++) {
            KnCode one = report_one(run, *checks, &(*checks)->items[i], rc == KN_OK ? err : NULL);
            rc = rc == KN_OK ? one : rc;
        }
    }
    return rc;
}

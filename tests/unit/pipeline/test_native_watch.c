/* SPDX-License-Identifier: Apache-2.0 */
/* test_native_watch.c - what is told of a run while it goes on. labels: threads */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "pipeline/backend.h"
#include "unit/pipeline/native_bench.h"

typedef struct Watcher {
    KnRunControl control;
    atomic_int told;
} Watcher;

/* The run would take days: it ends once it has told how far it is. The engine does not know that of
 * every statement, nor at once. */
static void see_progress(void *arg, const KnRunProgress *progress)
{
    Watcher *w = arg;
    bool known = progress->part >= 0;
    if (strcmp(progress->dataset, "total") != 0 || progress->part > 1 ||
        known != (progress->rows >= 0) || progress->batches != -1 ||
        progress->watermark_ms != INT64_MIN)
        return;
    if (atomic_fetch_add(&w->told, 1) > 200 || known)
        kn_run_cancel(&w->control);
}

static void a_long_statement_tells_how_far_it_is(void **state)
{
    (void)state;
    const KnPipeline p = {
        .name = "long",
        .datasets = {KNUT_LIST(KnutDataset, {.name = "total"})},
        .flows = {KNUT_LIST(KnutFlow, {.name = "f",
                                       .target = "total",
                                       .query = "SELECT sum(a.range * b.range) AS s FROM "
                                                "range(10000000) a, range(10000000) b"})},
    };
    Watcher w = {0};
    KnErr err = {0};
    const KnRunOptions opts = {.engine = {.threads = 1},
                               .on_progress = see_progress,
                               .event_arg = &w,
                               .control = &w.control};
    assert_int_equal(kn_backend_native.run(&p, &opts, &err), KN_E_CANCELLED);
    assert_true(atomic_load(&w.told) > 0);
}

typedef struct Runs {
    char first[40];
    size_t n;
} Runs;

static void see_event(void *arg, const KnRunEvent *event)
{
    Runs *runs = arg;
    assert_non_null(event->run);
    if (runs->n++ == 0)
        (void)strncpy(runs->first, event->run, sizeof(runs->first) - 1);
    assert_string_equal(event->run, runs->first);
}

static void every_event_has_the_id_of_its_run(void **state)
{
    (void)state;
    const KnPipeline p = {
        .name = "short",
        .datasets = {KNUT_LIST(KnutDataset, {.name = "total"})},
        .flows = {KNUT_LIST(KnutFlow, {.name = "f", .target = "total", .query = "SELECT 1 AS x"})},
    };
    Runs one = {0}, two = {0};
    KnRunOptions opts = {.engine = {.threads = 1}, .on_event = see_event, .event_arg = &one};
    assert_int_equal(kn_backend_native.run(&p, &opts, NULL), KN_OK);
    opts.event_arg = &two;
    assert_int_equal(kn_backend_native.run(&p, &opts, NULL), KN_OK);
    assert_true(one.n >= 3 && one.n == two.n);
    assert_string_not_equal(one.first, two.first);
    opts.run_id = "mine";
    opts.event_arg = &(Runs){.first = "mine", .n = 1};
    assert_int_equal(kn_backend_native.run(&p, &opts, NULL), KN_OK);
}

static void see_end(void *arg, const KnRunEvent *event)
{
    (void)snprintf(arg, 200, "%s: %s", kn_run_phase_name(event->phase), event->message);
}

static void a_run_that_fails_says_so_in_its_last_event_too(void **state)
{
    (void)state;
    const KnPipeline p = {
        .name = "bad",
        .datasets = {KNUT_LIST(KnutDataset, {.name = "t"})},
        .flows = {KNUT_LIST(KnutFlow, {.name = "f", .target = "t", .query = "SELECT nothing"})},
    };
    char last[200] = "";
    KnErr err = {0};
    const KnRunOptions opts = {.engine = {.threads = 1}, .on_event = see_end, .event_arg = last};
    assert_int_equal(kn_backend_native.run(&p, &opts, &err), KN_E_INVAL);
    assert_true(strncmp(last, "failed: ", 8) == 0 && strncmp(last + 8, err.msg, 100) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_statement_tells_how_far_it_is),
        cmocka_unit_test(every_event_has_the_id_of_its_run),
        cmocka_unit_test(a_run_that_fails_says_so_in_its_last_event_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

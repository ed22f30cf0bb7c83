/* SPDX-License-Identifier: Apache-2.0 */
/* test_listener.c - delays and ends of the listener, by script: no time passes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "cdc/listener.h"

#define SECOND INT64_C(1000000)

/* p progress, i idle, r retriable failure, x failure that no retry mends */
typedef struct Script {
    const char *rounds;
    size_t at;
    int64_t waits[64];
    size_t n_waits, n_failed;
    size_t stop_after_waits; /* 0 = never */
} Script;

static KnCode script_round(void *arg, bool *ret_progress, KnErr *err)
{
    Script *script = arg;
    char step = script->rounds[script->at++];
    *ret_progress = step == 'p';
    if (step == 'r')
        return kn_err_set(err, KN_E_IO, "try again");
    return step == 'x' ? kn_err_set(err, KN_E_REFUSED, "an operator must decide") : KN_OK;
}

static bool script_wait(void *arg, int64_t microseconds)
{
    Script *script = arg;
    script->waits[script->n_waits++] = microseconds;
    return script->n_waits == script->stop_after_waits;
}

static bool script_stopped(void *arg)
{
    const Script *script = arg;
    return script->rounds[script->at] == '\0';
}

static void script_failed(void *arg, const KnErr *err, int64_t delay)
{
    Script *script = arg;
    (void)delay;
    assert_string_equal(err->msg, "try again");
    ++script->n_failed;
}

static KnCode run(Script *script, uint64_t seed, KnErr *err)
{
    const KnListenerOptions opts = {.interval = 5 * SECOND,
                                    .max_backoff = 60 * SECOND,
                                    .seed = seed,
                                    .round = script_round,
                                    .failed = script_failed,
                                    .wait = script_wait,
                                    .stopped = script_stopped,
                                    .arg = script};
    return kn_listener_run(&opts, err);
}

static void progress_is_followed_by_the_next_round_at_once(void **state)
{
    (void)state;
    Script script = {.rounds = "ppp"};
    assert_int_equal(run(&script, 1, NULL), KN_OK);
    assert_int_equal(script.at, 3);
    assert_int_equal(script.n_waits, 0);
}

static void idle_rounds_wait_longer_and_longer_up_to_the_bound(void **state)
{
    (void)state;
    int64_t most[8] = {0};
    for (uint64_t seed = 1; seed <= 400; ++seed) {
        Script script = {.rounds = "iiiiiiii"};
        int64_t bound = 5 * SECOND;
        assert_int_equal(run(&script, seed, NULL), KN_OK);
        assert_int_equal(script.n_waits, 8);
        for (size_t i = 0; i < 8; ++i) {
            assert_true(script.waits[i] >= SECOND / 2 && script.waits[i] <= bound);
            if (script.waits[i] > most[i])
                most[i] = script.waits[i];
            bound = bound * 2 > 60 * SECOND ? 60 * SECOND : bound * 2;
        }
    }
    /* Over many seeds the jitter fills the whole range. */
    assert_true(most[0] > 49 * SECOND / 10 && most[1] > 95 * SECOND / 10);
    assert_true(most[4] > 58 * SECOND && most[7] > 58 * SECOND);
}

static void the_jitter_spreads_listeners(void **state)
{
    (void)state;
    Script one = {.rounds = "iiii"}, two = {.rounds = "iiii"};
    assert_int_equal(run(&one, 11, NULL), KN_OK);
    assert_int_equal(run(&two, 12, NULL), KN_OK);
    assert_memory_not_equal(one.waits, two.waits, 4 * sizeof(int64_t));
}

static void progress_resets_the_delay(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 50; ++seed) {
        Script script = {.rounds = "iiiiipi"};
        assert_int_equal(run(&script, seed, NULL), KN_OK);
        assert_int_equal(script.n_waits, 6);
        assert_true(script.waits[5] <= 5 * SECOND);
    }
}

static void a_failure_that_may_pass_is_tried_again(void **state)
{
    (void)state;
    Script script = {.rounds = "rrp"};
    assert_int_equal(run(&script, 1, NULL), KN_OK);
    assert_int_equal(script.n_failed, 2);
    assert_int_equal(script.n_waits, 2);
}

static void a_failure_that_stays_ends_the_listener_with_its_code(void **state)
{
    (void)state;
    KnErr err = {0};
    Script script = {.rounds = "pixp"};
    assert_int_equal(run(&script, 1, &err), KN_E_REFUSED);
    assert_string_equal(err.msg, "an operator must decide");
    assert_int_equal(script.at, 3);
}

static void a_stop_while_waiting_ends_it_well(void **state)
{
    (void)state;
    Script script = {.rounds = "iiiiiiiii", .stop_after_waits = 2};
    assert_int_equal(run(&script, 1, NULL), KN_OK);
    assert_int_equal(script.at, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(progress_is_followed_by_the_next_round_at_once),
        cmocka_unit_test(idle_rounds_wait_longer_and_longer_up_to_the_bound),
        cmocka_unit_test(the_jitter_spreads_listeners),
        cmocka_unit_test(progress_resets_the_delay),
        cmocka_unit_test(a_failure_that_may_pass_is_tried_again),
        cmocka_unit_test(a_failure_that_stays_ends_the_listener_with_its_code),
        cmocka_unit_test(a_stop_while_waiting_ends_it_well),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Whose turn it is: fairness, pauses, shared sinks, the worker kept for the quick. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "service/schedule.h"

enum { N = 4 };
#define SECOND INT64_C(1000000)

typedef struct Fixture {
    KnTurn turns[N];
    KnTurn *list[N];
    KnSchedule sched;
} Fixture;

static void fill(Fixture *fix, int64_t workers)
{
    *fix = (Fixture){.sched = {.n = N, .workers = workers, .rng = {.state = 1}}};
    fix->sched.turns = fix->list;
    for (size_t i = 0; i < N; i++) {
        fix->turns[i] = (KnTurn){.slot = "", .interval = SECOND, .max_backoff = 8 * SECOND};
        fix->list[i] = &fix->turns[i];
        kn_schedule_now(&fix->sched, fix->list[i], 0);
    }
}

static long number(const Fixture *fix, const KnTurn *turn)
{
    return turn ? (long)(turn - fix->turns) : -1;
}

static void who_has_more_to_do_goes_to_the_end_of_the_queue(void **state)
{
    (void)state;
    Fixture fix;
    int64_t wake;
    fill(&fix, 1);
    for (long round = 0; round < 3L * N; round++) {
        KnTurn *turn = kn_schedule_next(&fix.sched, round, &wake);
        assert_int_equal(number(&fix, turn), round % N);
        assert_null(kn_schedule_next(&fix.sched, round, &wake));
        assert_int_equal(kn_schedule_end(&fix.sched, turn, KN_TURN_MORE, round, 1), 0);
    }
}

static void nothing_to_do_and_failures_come_back_later_and_later(void **state)
{
    (void)state;
    Fixture fix;
    int64_t wake, now = 0, most = 0;
    fill(&fix, 1);
    fix.sched.n = 1;
    for (int i = 0; i < 50; i++) {
        KnTurn *turn = kn_schedule_next(&fix.sched, now, &wake);
        assert_ptr_equal(turn, &fix.turns[0]);
        int64_t delay = turn->delay < SECOND ? SECOND : turn->delay;
        int64_t pause =
            kn_schedule_end(&fix.sched, turn, i % 2 ? KN_TURN_IDLE : KN_TURN_FAILED, now, 1);
        assert_in_range(pause, SECOND / 10, delay);
        assert_null(kn_schedule_next(&fix.sched, now, &wake));
        assert_int_equal(wake, now + pause);
        most = pause > most ? pause : most;
        now = wake;
    }
    assert_int_equal(fix.turns[0].delay, 8 * SECOND);
    assert_true(most > SECOND);
    KnTurn *turn = kn_schedule_next(&fix.sched, now, &wake);
    (void)kn_schedule_end(&fix.sched, turn, KN_TURN_DONE, now, 1);
    assert_int_equal(fix.turns[0].delay, SECOND);
}

static void who_is_stuck_is_tried_at_the_longest_pause(void **state)
{
    (void)state;
    Fixture fix;
    int64_t wake;
    fill(&fix, 1);
    KnTurn *turn = kn_schedule_next(&fix.sched, 0, &wake);
    assert_int_equal(kn_schedule_end(&fix.sched, turn, KN_TURN_STUCK, 0, 1), 8 * SECOND);
    assert_int_equal(number(&fix, kn_schedule_next(&fix.sched, 0, &wake)), 1);
}

static void a_sink_takes_as_many_as_it_can(void **state)
{
    (void)state;
    Fixture fix;
    int64_t wake;
    fill(&fix, 4);
    for (size_t i = 0; i < 3; i++) {
        fix.turns[i].slot = "duckdb:/f";
        fix.turns[i].slots = 1;
    }
    KnTurn *first = kn_schedule_next(&fix.sched, 0, &wake);
    assert_int_equal(number(&fix, first), 0);
    assert_int_equal(number(&fix, kn_schedule_next(&fix.sched, 0, &wake)), 3);
    assert_null(kn_schedule_next(&fix.sched, 0, &wake));
    assert_false(kn_schedule_waits(&fix.sched, 0));
    (void)kn_schedule_end(&fix.sched, first, KN_TURN_MORE, 0, 1);
    assert_true(kn_schedule_waits(&fix.sched, 0));
    assert_int_equal(number(&fix, kn_schedule_next(&fix.sched, 0, &wake)), 1);
}

static void the_last_worker_is_kept_for_the_quick(void **state)
{
    (void)state;
    Fixture fix;
    int64_t wake;
    fill(&fix, 2);
    for (size_t i = 0; i < 3; i++)
        fix.turns[i].slow = true;
    assert_int_equal(number(&fix, kn_schedule_next(&fix.sched, 0, &wake)), 0);
    KnTurn *quick = kn_schedule_next(&fix.sched, 0, &wake);
    assert_int_equal(number(&fix, quick), 3);
    (void)kn_schedule_end(&fix.sched, quick, KN_TURN_IDLE, 0, 1);
    assert_null(kn_schedule_next(&fix.sched, 0, &wake));
    assert_int_equal(number(&fix, kn_schedule_next(&fix.sched, wake, &wake)), 3);
}

static void a_long_turn_makes_slow_and_a_short_one_quick(void **state)
{
    (void)state;
    Fixture fix;
    int64_t wake;
    fill(&fix, 1);
    fix.sched.n = 1;
    KnTurn *turn = kn_schedule_next(&fix.sched, 0, &wake);
    (void)kn_schedule_end(&fix.sched, turn, KN_TURN_MORE, 0, KN_TURN_SLOW_US + 1);
    assert_true(turn->slow);
    turn = kn_schedule_next(&fix.sched, 0, &wake);
    assert_ptr_equal(turn, fix.list[0]); /* one worker serves all */
    (void)kn_schedule_end(&fix.sched, turn, KN_TURN_MORE, 0, 1);
    assert_false(turn->slow);
}

static void who_is_over_has_no_turn(void **state)
{
    (void)state;
    Fixture fix;
    int64_t wake;
    fill(&fix, 8);
    for (size_t i = 0; i < N; i++)
        fix.turns[i].over = true;
    assert_null(kn_schedule_next(&fix.sched, 0, &wake));
    assert_int_equal(wake, INT64_MAX);
    assert_false(kn_schedule_waits(&fix.sched, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_has_more_to_do_goes_to_the_end_of_the_queue),
        cmocka_unit_test(nothing_to_do_and_failures_come_back_later_and_later),
        cmocka_unit_test(who_is_stuck_is_tried_at_the_longest_pause),
        cmocka_unit_test(a_sink_takes_as_many_as_it_can),
        cmocka_unit_test(the_last_worker_is_kept_for_the_quick),
        cmocka_unit_test(a_long_turn_makes_slow_and_a_short_one_quick),
        cmocka_unit_test(who_is_over_has_no_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

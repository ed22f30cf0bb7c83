/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * schedule.h - whose turn it is: the rules only, without threads or time of its own.
 *
 * Deliveries that are due wait in one queue, first come, first served; a turn is bounded, and who
 * has more to do goes to its end. A delivery that failed or had nothing to do comes back later and
 * later, by itself. A sink takes as many at a time as it can. The last free worker takes no
 * delivery that is known to be slow, so that slow ones never hold up the others. Times are
 * microseconds of one monotonic clock. Not thread-safe.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/random.h"

/* A delivery's half of the rules. */
typedef struct KnTurn {
    int64_t due;      /* not before */
    uint64_t place;   /* in the queue, when due */
    bool running;     /* has a worker */
    bool over;        /* will not run again */
    bool slow;        /* not for the last free worker */
    const char *slot; /* what it shares with others: the sink */
    int64_t slots;    /* so many of one slot at a time; 0 = no bound */
    int64_t interval, max_backoff;
    int64_t delay; /* the next pause at most; 0 = interval */
} KnTurn;

typedef enum KnTurnEnd {
    KN_TURN_MORE,   /* it has more to do now */
    KN_TURN_DONE,   /* it did something, and is up to date */
    KN_TURN_IDLE,   /* nothing was to do */
    KN_TURN_FAILED, /* may go better next time */
    KN_TURN_STUCK,  /* an operator must act: seldom tried again */
} KnTurnEnd;

#define KN_TURN_SLOW_US INT64_C(10000000) /* a turn that takes longer is slow */

typedef struct KnSchedule {
    KnTurn **turns;
    size_t n;
    int64_t workers;
    uint64_t next_place;
    KnRng rng;
} KnSchedule;

/** The turn to begin now (marked running), or NULL; then *ret_wake is when to ask again (INT64_MAX:
 * when something changes). */
KnTurn *kn_schedule_next(KnSchedule *sched, int64_t now, int64_t *ret_wake);
/** The turn has ended; returns the pause until it is due again. */
int64_t kn_schedule_end(KnSchedule *sched, KnTurn *turn, KnTurnEnd how, int64_t now, int64_t took);
/** Due at once, at the end of the queue. */
void kn_schedule_now(KnSchedule *sched, KnTurn *turn, int64_t now);
/** Somebody else is due and would run if a worker were free. */
bool kn_schedule_waits(const KnSchedule *sched, int64_t now);

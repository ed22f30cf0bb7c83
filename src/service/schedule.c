/* SPDX-License-Identifier: Apache-2.0 */
/* schedule.c - see schedule.h. Linear in the number of deliveries, which is small beside what a
 * turn costs. */
#include "service/schedule.h"

#include <string.h>

static int64_t count_running(const KnSchedule *sched)
{
    int64_t n = 0;
    for (size_t i = 0; i < sched->n; i++)
        n += sched->turns[i]->running;
    return n;
}

static bool slot_is_free(const KnSchedule *sched, const KnTurn *turn)
{
    int64_t taken = 0;
    if (turn->slots == 0)
        return true;
    for (size_t i = 0; i < sched->n; i++)
        taken += sched->turns[i]->running && !strcmp(sched->turns[i]->slot, turn->slot);
    return taken < turn->slots;
}

static bool is_before(const KnTurn *a, const KnTurn *b)
{
    return !b || a->place < b->place;
}

KnTurn *kn_schedule_next(KnSchedule *sched, int64_t now, int64_t *ret_wake)
{
    int64_t idle = sched->workers - count_running(sched);
    bool last = idle == 1 && sched->workers > 1;
    KnTurn *best = NULL;
    *ret_wake = INT64_MAX;
    for (size_t i = 0; i < sched->n && idle > 0; i++) {
        KnTurn *turn = sched->turns[i];
        if (turn->running || turn->over)
            continue;
        if (turn->due > now) {
            *ret_wake = turn->due < *ret_wake ? turn->due : *ret_wake;
            continue;
        }
        if (!(last && turn->slow) && slot_is_free(sched, turn) && is_before(turn, best))
            best = turn;
    }
    if (best)
        best->running = true;
    return best;
}

/* Full jitter, as the listener of one delivery has it. */
static int64_t jitter(KnSchedule *sched, const KnTurn *turn, int64_t delay)
{
    int64_t least = turn->interval / 10;
    return least + (int64_t)kn_rng_below(&sched->rng, (uint64_t)(delay - least + 1));
}

void kn_schedule_now(KnSchedule *sched, KnTurn *turn, int64_t now)
{
    turn->due = now;
    turn->place = sched->next_place++;
}

int64_t kn_schedule_end(KnSchedule *sched, KnTurn *turn, KnTurnEnd how, int64_t now, int64_t took)
{
    int64_t most = turn->max_backoff > turn->interval ? turn->max_backoff : turn->interval;
    turn->running = false;
    turn->slow = took > KN_TURN_SLOW_US;
    if (turn->delay < turn->interval)
        turn->delay = turn->interval;
    if (how == KN_TURN_MORE || how == KN_TURN_DONE) {
        turn->delay = turn->interval;
        kn_schedule_now(sched, turn, now);
        return 0;
    }
    int64_t pause = how == KN_TURN_STUCK ? most : jitter(sched, turn, turn->delay);
    turn->delay = turn->delay > most / 2 ? most : turn->delay * 2;
    kn_schedule_now(sched, turn, now + pause);
    return pause;
}

bool kn_schedule_waits(const KnSchedule *sched, int64_t now)
{
    for (size_t i = 0; i < sched->n; i++) {
        const KnTurn *turn = sched->turns[i];
        if (!turn->running && !turn->over && turn->due <= now && slot_is_free(sched, turn))
            return true;
    }
    return false;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settle.c - transactions that are neither dead nor done: fenced, committed or dropped.
 *
 * What an answer to a commit or an abort says does not count, and may be lost: the label's state is
 * asked after it, and that decides. A transaction is committed by its number, which is written down
 * with the counted rows of its load; one whose answer was never seen is ended by its label, since
 * nobody knows what it holds.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/stop.h"
#include "doris_internal.h"

#define MAX_ANSWER ((size_t)4 << 20)
enum { MAX_HOPS = 4, MAX_COMMITS = 20 };

static KnCode put_2pc(KnDoris *dor, const KnHttpHeader headers[3], const char *url, KnBuf *ret,
                      KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(1024);
    for (int hop = 0; hop < MAX_HOPS; ++hop) {
        KN_HTTP_RESPONSE_AUTO resp = {0};
        const KnHttpRequest req = {.method = "PUT",
                                   .url = url,
                                   .headers = headers,
                                   .n_headers = 3,
                                   .max_response = MAX_ANSWER,
                                   .connect_ms = dor->set.connect_ms,
                                   .stall_ms = dor->set.answer_ms};
        KN_TRY(kn_http_perform(dor->http, &req, &resp, err));
        const char *to = kn_http_header(&resp, "Location", 0);
        if (resp.status / 100 == 3 && to) {
            KN_TRY(kn_doris_redirect(arena, &dor->set, url, kn_str(to), &url, err));
            continue;
        }
        kn_buf_append(ret, resp.body.data, resp.body.len);
        return kn_buf_check(ret, err);
    }
    return kn_err_set(err, KN_E_IO, "redirected %d times", MAX_HOPS);
}

KnCode kn_doris_2pc(KnDoris *dor, const KnHttpHeader *who, const char *operation, KnBuf *ret,
                    KnErr *err)
{
    KN_ARENA_AUTO arena = kn_arena_new(1024);
    const KnHttpHeader headers[] = {
        {"Authorization", dor->authorization}, *who, {"txn_operation", operation}};
    const char *parts[] = {dor->db, "_stream_load_2pc"};
    const char *fe = dor->set.fe[atomic_fetch_add(&dor->turn, 1) % dor->set.n_fe];
    const char *url = kn_arena_printf(arena, "%s%s", fe, kn_doris_path(arena, parts, 2));
    return put_2pc(dor, headers, url, ret, err);
}

static void order(KnDoris *dor, const KnHttpHeader *who, const char *operation, const char *label)
{
    KN_BUF_AUTO answer;
    KnErr why = {0};
    kn_buf_init(&answer, MAX_ANSWER);
    KnCode rc = kn_doris_2pc(dor, who, operation, &answer, &why);
    kn_debug("cdc", "doris-2pc", KN_F("label", label), KN_F("operation", operation),
             KN_F("answer", rc == KN_OK ? (answer.data ? answer.data : "") : why.msg));
}

static void order_txn(KnDoris *dor, int64_t txn, const char *operation, const char *label)
{
    char number[24];
    (void)snprintf(number, sizeof(number), "%" PRId64, txn);
    order(dor, &(KnHttpHeader){"txn_id", number}, operation, label);
}

static void fence(KnDoris *dor, const char *label)
{
    order(dor, &(KnHttpHeader){"label", label}, "abort", label);
}

KnCode kn_doris_settle(KnDoris *dor, const char *label, KnDorisState *ret, KnErr *err)
{
    int64_t fence_at = kn_clock_mono_us() + dor->set.grace_ms * 1000;
    int64_t give_up = fence_at + dor->set.grace_ms * 1000 + 10000000, pause = 50000;
    for (;;) {
        KnDorisState state = KN_DORIS_STATE_PREPARE;
        KnErr why = {0};
        KnCode rc = kn_doris_state(dor, label, &state, &why);
        bool held = state == KN_DORIS_STATE_PRECOMMITTED;
        if (rc == KN_OK && state != KN_DORIS_STATE_PREPARE && !held) {
            *ret = state;
            return KN_OK;
        }
        int64_t now = kn_clock_mono_us();
        if (now >= give_up || (rc != KN_OK && !why.retriable)) {
            if (rc == KN_OK)
                return kn_err_set(err, KN_E_UNKNOWN,
                                  "%s, label %s: an earlier attempt is still open and could not be "
                                  "ended",
                                  dor->where, label);
            if (err)
                *err = why;
            return rc;
        }
        if (rc == KN_OK && (held || now >= fence_at))
            fence(dor, label);
        (void)poll(NULL, 0,
                   (int)(pause / 1000)); /* also when a stop was asked: it is the window's end */
        pause = pause < 1000000 ? pause * 2 : pause;
    }
}

KnCode kn_doris_check_unknown(KnDoris *dor, const char *label, KnErr *err)
{
    int64_t age_s = (kn_clock_wall_ms() - dor->planned_ms) / 1000;
    if (dor->plan.unique || age_s <= dor->set.label_keep_s)
        return KN_OK;
    return kn_err_set(err, KN_E_REFUSED,
                      "%s, label %s: it may have been sent %" PRId64
                      " s ago, and Doris keeps labels for a time only: nobody can tell whether its "
                      "rows are in this DUPLICATE table; look, then run `knut cdc reload`",
                      dor->where, label, age_s);
}

/* ---- held transactions ---- */

/* The state, asked again while it cannot be said. */
static KnCode ask(KnDoris *dor, const char *label, KnDorisState *ret, KnErr *err)
{
    for (int64_t n = 0;; ++n) {
        KnCode rc = kn_doris_state(dor, label, ret, err);
        if (rc == KN_OK || (err && !err->retriable) || n >= dor->set.max_retries ||
            kn_stop_wait(dor->set.retry_ms * 1000))
            return rc;
    }
}

KnCode kn_doris_find_held(KnDoris *dor, const char *label, int64_t txn, KnHeld *ret, KnErr *err)
{
    KnDorisState state;
    KN_TRY(ask(dor, label, &state, err));
    if (state == KN_DORIS_STATE_PRECOMMITTED && dor->set.two_phase) {
        *ret = KN_HELD_WAITING;
        return KN_OK;
    }
    if (state == KN_DORIS_STATE_PRECOMMITTED)
        order_txn(dor, txn, "abort", label);
    KN_TRY(kn_doris_settle(dor, label, &state, err));
    if (state == KN_DORIS_STATE_UNKNOWN)
        KN_TRY(kn_doris_check_unknown(dor, label, err));
    *ret = state == KN_DORIS_STATE_LANDED ? KN_HELD_LANDED : KN_HELD_GONE;
    return KN_OK;
}

KnCode kn_doris_commit_held(KnDoris *dor, const char *label, int64_t txn, KnErr *err)
{
    KnDorisState state;
    for (int64_t n = 0;; ++n) {
        order_txn(dor, txn, "commit", label);
        KN_TRY(ask(dor, label, &state, err));
        if (state == KN_DORIS_STATE_LANDED)
            return KN_OK;
        if (state != KN_DORIS_STATE_PRECOMMITTED)
            return kn_err_set(err, KN_E_IO,
                              "%s, label %s: transaction %" PRId64
                              " was held for too long and is gone: the next round sends its rows "
                              "again",
                              dor->where, label, txn);
        if (n >= MAX_COMMITS || kn_stop_wait(dor->set.retry_ms * 1000))
            return kn_err_set(err, KN_E_IO,
                              "%s, label %s: transaction %" PRId64
                              " is held and could not be committed: the next round tries again",
                              dor->where, label, txn);
    }
}

void kn_doris_drop_held(KnDoris *dor, const char *label, int64_t txn)
{
    order_txn(dor, txn, "abort", label);
}

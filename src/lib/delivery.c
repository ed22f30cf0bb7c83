/* SPDX-License-Identifier: Apache-2.0 */
/* delivery.c - the public face of deliveries (knut/delivery.h). */
#include "cdc/delivery.h"

#include <stdlib.h>

#include "lib/lib_internal.h"

static void window_end(void *arg, const KnWindowReport *win)
{
    const KnutDelivery *delivery = arg;
    if (delivery->window_delivered)
        delivery->window_delivered(delivery->arg, win->to, win->upserts, win->deletes);
}

static void summarise(const KnDeliveryReport *report, KnutDelivered *ret)
{
    *ret = (KnutDelivered){
        .from = report->from, .to = report->to, .windows = (int64_t)report->n_windows};
    for (size_t i = 0; i < report->n_windows; i++) {
        ret->upserts += report->windows[i].upserts;
        ret->deletes += report->windows[i].deletes;
    }
}

static KnCode deliver_with(KnutTable *table, KnJournal *jn, const KnutDelivery *delivery,
                           KnutDelivered *ret, KnErr *err)
{
    KnDeliveryOptions opts = {
        .sink = delivery->sink,
        .target = delivery->target,
        .mode = delivery->mode == KNUT_DELIVER_APPEND ? KN_SINK_APPEND : KN_SINK_UPSERT,
        .keys = delivery->keys,
        .n_keys = delivery->n_keys,
        .ref = delivery->ref,
        .chunk_bytes = delivery->chunk_bytes,
        .max_rewrite_bytes = delivery->max_rewrite_bytes,
        .threads = table->engine_opts.threads,
        .memory_limit = table->engine_opts.memory_limit,
        .spill_dir = table->engine_opts.spill_dir,
        .observer = {.window_end = window_end, .arg = (void *)(uintptr_t)delivery},
    };
    KnDelivery *dlv = NULL;
    KN_TRY(kn_delivery_open(table->tbl, jn, &opts, &dlv, err));
    KnCode rc = kn_delivery_round(dlv, err);
    summarise(kn_delivery_report(dlv), ret);
    kn_delivery_close(dlv);
    return rc;
}

KnCode knut_deliver(KnutTable *table, const KnutDelivery *delivery, KnutDelivered *ret, KnErr *err)
{
    if (delivery->size != sizeof(*delivery))
        return kn_err_set(err, KN_E_INVAL, "KnutDelivery.size is %zu, expected %zu", delivery->size,
                          sizeof(*delivery));
    if (!delivery->sink || !delivery->target || !delivery->journal)
        return kn_err_set(err, KN_E_INVAL, "KnutDelivery needs sink, target and journal");
    *ret = (KnutDelivered){.from = -1, .to = -1};
    KnJournal *jn = NULL;
    KN_TRY(kn_journal_sqlite_open(delivery->journal, KN_JOURNAL_WRITE, &jn, err));
    KnCode rc = deliver_with(table, jn, delivery, ret, err);
    kn_journal_close(jn);
    return rc;
}

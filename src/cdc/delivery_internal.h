/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * delivery_internal.h - what the files of a delivery share: prepare.c makes a window ready,
 * delivery.c delivers it, round.c does so for all that is new, status.c looks.
 */
#include "cdc/chunk_plan.h"
#include "cdc/delivery.h"
#include "engine/engine.h"
#include "iceberg/changes/changelog.h"

struct KnDelivery {
    KnArena *arena; /* lives as long as the delivery */
    KnTable *tbl;
    KnJournal *jn;
    KnDeliveryOptions opts; /* texts are copies, defaults filled in */
    const KnSinkOps *sink_ops;
    KnSinkOptions sink_opts;
    const char *schema_name, *table_name; /* of the target */
    KnDeliveryKey key;
    KnArena *row_arena;
    KnDeliveryRow row; /* as the journal has it */
    KnEngine *eng;     /* reading; opened when first needed, kept between rounds */
    KnSession *ses;
    KnSink *sink;      /* during a round */
    bool checked;      /* the destination was looked at by this process */
    int32_t schema_id; /* the target follows this schema of the table; -1 = not known */
    KnArena *report_arena;
    KnDeliveryReport report;
};

/* A window made ready: everything that decides its bytes is fixed and recorded. */
typedef struct KnReadyWindow {
    KnArena *arena; /* owns what follows */
    KnWindow *win;
    const KnSchema *schema;
    KnChunkPlan *plan;
    const KnScanTask *tasks; /* DIRECT: one for each file of the plan */
    KnRead *read;            /* DIRECT: of all tasks, where deletes were resolved for the plan */
    KnSpool *spool;          /* COMPUTED, when rows are still to be sent */
    KnJournalWindow *rec;    /* with labels and states */
    KnSinkWindow sink_win;
    bool resumed;
    int64_t phase_us[KN_N_PHASES];
} KnReadyWindow;

KN_NODISCARD KnCode kn_delivery_need_session(KnDelivery *dlv, KnErr *err);
KN_NODISCARD KnCode kn_delivery_need_sink(KnDelivery *dlv, KnErr *err);
/** The row as the journal has it now. */
KN_NODISCARD KnCode kn_delivery_read_row(KnDelivery *dlv, bool create, KnErr *err);
/** Keys for an upsert under this schema: the option's, else the identifier fields (all of them top
 * level), else none. In arena. */
KN_NODISCARD KnCode kn_delivery_keys(const KnDelivery *dlv, KnArena *arena, const KnSchema *schema,
                                     const char *const **ret, size_t *ret_n, KnErr *err);
/** KN_E_REFUSED when the window is dearer than allowed. */
KN_NODISCARD KnCode kn_delivery_check_cost(const KnDelivery *dlv, const KnWindow *win, KnErr *err);
/** KN_E_REFUSED when the table is not the one that was delivered so far. */
KN_NODISCARD KnCode kn_delivery_check_table(const KnDelivery *dlv, KnErr *err);
/** The schema with which snapshot `to` is delivered: its own; the table's newest for the newest
 * snapshot, so that a change of schema without new rows arrives too. */
const KnSchema *kn_delivery_schema(const KnDelivery *dlv, const KnSnapshot *to);

/** Plans a new window, asks the sink's probe, records the plan. from NULL = first window. */
KN_NODISCARD KnCode kn_ready_new(KnDelivery *dlv, const KnSnapshot *from, const KnSnapshot *to,
                                 KnReadyWindow **ret, KnErr *err);
/** The window in flight of a process that ended, from its recorded plan. */
KN_NODISCARD KnCode kn_ready_open(KnDelivery *dlv, const KnJournalWindow *rec, KnReadyWindow **ret,
                                  KnErr *err);
KnReadyWindow *kn_ready_free(KnReadyWindow *ready);

void kn_delivery_count(const KnDelivery *dlv, const KnWindowReport *win);
/** The one way of a window to its destination, and the one place where a cursor is moved. */
KN_NODISCARD KnCode kn_deliver_window(KnDelivery *dlv, KnReadyWindow *ready, KnWindowReport *ret,
                                      KnErr *err);

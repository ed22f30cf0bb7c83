/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* run_report.h - what a round of deliveries shows: a bar while it runs, windows as they end, the
 * report. */
#include "cdc/delivery.h"
#include "cli/command.h"

typedef struct KnRunView {
    KnProgressMode mode;
    KnProgress *bar; /* of the window in flight */
} KnRunView;

KnDeliveryObserver kn_run_view_observer(KnRunView *view);
void kn_run_view_done(KnRunView *view);
/** One round's report on standard output: a table of windows and a last line, or the JSON of
 * docs/output.md. */
KN_NODISCARD KnCode kn_run_report_print(const KnCall *call, const KnDeliveryReport *report,
                                        KnErr *err);

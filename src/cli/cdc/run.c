/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - `knut cdc run`: delivers what is new, once or for ever.
 *
 * With --once: one round, its report, and the round's code. Without: rounds until SIGTERM or
 * SIGINT; the window in flight is finished first and the exit status is 0. A second SIGINT ends at
 * once with 130 (nothing is lost: the journal knows how far each chunk is).
 */
#include <stdio.h>

#include "base/log.h"
#include "base/stop.h"
#include "cdc/listener.h"
#include "cli/cdc/cdc_args.h"
#include "cli/cdc/run_many.h"
#include "cli/cdc/run_report.h"
#include "cli/commands.h"
#include "service/secrets.h"

typedef struct RunOptions {
    KnCdcOptions cdc;
    bool once;
    const char *listen;
} RunOptions;

static const KnOption rows[] = {
    KN_CDC_ROW_CONFIG,
    KN_CDC_ROW_DELIVERY,
    {.name = "once",
     .type = KN_OPT_FLAG,
     .offset = offsetof(RunOptions, once),
     .doc = "One round: deliver what is there, then end"},
    {.name = "listen",
     .type = KN_OPT_TEXT,
     .offset = offsetof(RunOptions, listen),
     .value = "ADDR",
     .doc = "With --config: answer /health, /ready, /metrics and /status at HOST:PORT, :PORT (all "
            "interfaces) or PORT (loopback), in place of the file's 'listen'"},
    {.name = "interval",
     .type = KN_OPT_SECONDS,
     .offset = offsetof(RunOptions, cdc.what.interval),
     .value = "SECONDS",
     .dflt = "5",
     .doc = "Pause between looks at the table"},
    {.name = "max-backoff",
     .type = KN_OPT_SECONDS,
     .offset = offsetof(RunOptions, cdc.what.max_backoff),
     .value = "SECONDS",
     .dflt = "300",
     .doc = "Longest pause when nothing happens or all fails"},
};

typedef struct Runner {
    const KnCall *call;
    KnDelivery *delivery;
} Runner;

static KnCode round_once(void *arg, bool *ret_progress, KnErr *err)
{
    Runner *run = arg;
    KnCode rc = kn_delivery_round(run->delivery, err);
    const KnDeliveryReport *report = kn_delivery_report(run->delivery);
    *ret_progress = report->n_windows > 0;
    if (report->status == KN_DELIVERY_IDLE)
        return rc;
    KnCode printed = kn_run_report_print(run->call, report, rc == KN_OK ? err : NULL);
    return rc == KN_OK ? printed : rc;
}

static void round_failed(void *arg, const KnErr *err, int64_t delay)
{
    (void)arg;
    kn_log(KN_LOG_WARN, "cdc", "round-failed", KN_F("error", err->msg),
           KN_FI("retry_ms", delay / 1000));
}

static KnCode run_once(const KnCall *call, KnDelivery *dlv, KnErr *err)
{
    KnCode rc = kn_delivery_round(dlv, err);
    const KnDeliveryReport *report = kn_delivery_report(dlv);
    KnCode printed = kn_run_report_print(call, report, rc == KN_OK ? err : NULL);
    if (rc != KN_OK || printed != KN_OK)
        return rc != KN_OK ? rc : printed;
    if (kn_stop_requested() && report->windows_left > 0)
        return kn_err_set(err, KN_E_CANCELLED,
                          "stopped by a signal after the window in flight; run again to go on");
    return KN_OK;
}

static KnCode run_for_ever(const KnCall *call, KnDelivery *dlv, KnErr *err)
{
    const RunOptions *opts = call->options;
    Runner run = {.call = call, .delivery = dlv};
    KnListenerOptions listen = {
        .interval = (int64_t)(opts->cdc.what.interval * 1e6),
        .max_backoff = (int64_t)(opts->cdc.what.max_backoff * 1e6),
        .round = round_once,
        .failed = round_failed,
        .arg = &run,
    };
    return kn_listener_run(&listen, err);
}

static KnCode run_cdc(KnCall *call, KnErr *err)
{
    const RunOptions *opts = call->options;
    KN_TRY(kn_secrets_take(err));
    if (opts->cdc.config)
        return kn_run_many(call, opts->once, opts->listen, err);
    if (opts->listen)
        return kn_err_set(err, KN_E_INVAL, "--listen goes with --config");
    KnRunView view = {.mode = (KnProgressMode)call->common->progress};
    KnDeliveryObserver observer = kn_run_view_observer(&view);
    KN_CDC_CALL_AUTO cc = {0};
    KN_TRY(kn_cdc_call_open(call, KN_JOURNAL_WRITE, &observer, &cc, err));
    KnCode rc =
        opts->once ? run_once(call, cc.delivery, err) : run_for_ever(call, cc.delivery, err);
    kn_run_view_done(&view);
    return rc;
}

const KnCommand kn_cmd_cdc_run = {
    .group = "cdc",
    .name = "run",
    .summary = "Deliver every change of a table into an engine, exactly once",
    .about = "  knut cdc run --warehouse /data/wh --table shop.orders --sink "
             "duckdb:/data/copy.duckdb --once\n"
             "  knut cdc run -c knut.yaml\n\n"
             "Each snapshot is a window; a window is cut into chunks, each one transaction of the "
             "destination. The\n"
             "journal (--state) knows how far each chunk is, so a killed run goes on where it was. "
             "Refused windows\n"
             "(exit 3) hold the cursor until the cause is gone or 'knut cdc reload' starts over.",
    .options_size = sizeof(RunOptions),
    .locator = KN_CDC_LOCATOR,
    .rows = rows,
    .n_rows = sizeof(rows) / sizeof(rows[0]),
    .extra = &kn_delivery_setting_rows,
    .extra_base = KN_CDC_EXTRA_BASE,
    .run = run_cdc,
};

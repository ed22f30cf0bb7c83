/* SPDX-License-Identifier: Apache-2.0 */
/* run_report.c - see run_report.h. The observer is called from the delivery's threads, one call at
 * a time. */
#include "cli/cdc/run_report.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "cli/output.h"

static void window_begin(void *arg, const KnWindowReport *win, int64_t rows, int64_t bytes)
{
    KnRunView *view = arg;
    char label[96];
    (void)snprintf(label, sizeof(label), "%s %" PRId64, win->operation, win->to);
    view->bar = kn_progress_free(view->bar);
    view->bar = kn_progress_new(view->mode, label, rows > 0 ? (uint64_t)rows : 0,
                                bytes > 0 ? (uint64_t)bytes : 0);
}

static void progress(void *arg, int64_t rows, int64_t bytes)
{
    KnRunView *view = arg;
    kn_progress_add(view->bar, (uint64_t)rows, (uint64_t)bytes);
}

static void window_end(void *arg, const KnWindowReport *win)
{
    KnRunView *view = arg;
    view->bar = kn_progress_free(view->bar);
    kn_log(KN_LOG_INFO, "cdc", "window-delivered", KN_FI("from", win->from), KN_FI("to", win->to),
           KN_F("operation", win->operation), KN_FI("upserts", win->upserts),
           KN_FI("deletes", win->deletes), KN_FI("chunks", win->chunks),
           KN_FI("duplicates", win->duplicates), KN_FI("bytes", win->bytes),
           KN_FI("ms", (int64_t)(win->seconds * 1000)));
}

KnDeliveryObserver kn_run_view_observer(KnRunView *view)
{
    return (KnDeliveryObserver){
        .window_begin = window_begin, .progress = progress, .window_end = window_end, .arg = view};
}

void kn_run_view_done(KnRunView *view)
{
    view->bar = kn_progress_free(view->bar);
}

static KnCode print_windows(const KnDeliveryReport *report, KnErr *err)
{
    static const KnOutColumn columns[] = {
        {"snapshot", true}, {"operation", false}, {"upserts", true}, {"deletes", true},
        {"chunks", true},   {"duplicates", true}, {"read", true},    {"seconds", true},
    };
    KnOut *out = kn_out_open(KN_OUTPUT_TEXT, columns, 8);
    for (size_t i = 0; i < report->n_windows; i++) {
        const KnWindowReport *win = &report->windows[i];
        char seconds[32], count[32];
        (void)snprintf(seconds, sizeof(seconds), "%.2f", win->seconds);
        kn_out_int(out, win->to);
        kn_out_text(out, win->operation);
        kn_out_text(out, kn_format_count((uint64_t)win->upserts, count));
        kn_out_text(out, kn_format_count((uint64_t)win->deletes, count));
        kn_out_int(out, win->chunks);
        kn_out_int(out, win->duplicates);
        kn_out_bytes(out, win->bytes);
        kn_out_text(out, seconds);
    }
    return kn_out_close(out, err);
}

static KnCode print_last_line(const KnDeliveryReport *report, KnErr *err)
{
    KN_BUF_AUTO line = {0};
    kn_buf_init(&line, 1 << 16);
    if (report->name)
        kn_buf_printf(&line, "%s: ", report->name);
    kn_buf_printf(&line, "%s -> %s %s: ", report->table, report->sink, report->target);
    if (report->status == KN_DELIVERY_IDLE)
        kn_buf_printf(&line, "nothing to deliver, the copy is at snapshot %" PRId64, report->to);
    else
        kn_buf_printf(&line, "%s, %zu window%s delivered", kn_delivery_status_name(report->status),
                      report->n_windows, report->n_windows == 1 ? "" : "s");
    if (report->windows_left > 0)
        kn_buf_printf(&line, ", %" PRId64 " waiting", report->windows_left);
    return kn_out_line((KnStr){line.data, line.len}, err);
}

KnCode kn_run_report_print(const KnCall *call, const KnDeliveryReport *report, KnErr *err)
{
    if (call->common->output == KN_OUTPUT_JSON) {
        KN_BUF_AUTO json = {0};
        kn_buf_init(&json, 64 << 20);
        kn_delivery_reports_json(&report, 1, &json);
        KN_TRY(kn_buf_check(&json, err));
        return kn_out_line((KnStr){json.data, json.len}, err);
    }
    if (report->n_windows)
        KN_TRY(print_windows(report, err));
    return print_last_line(report, err);
}

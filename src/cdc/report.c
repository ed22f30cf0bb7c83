/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - reports as JSON; the shape is in docs/output.md. */
#include <inttypes.h>

#include "base/json.h"
#include "cdc/delivery.h"

static void write_window(KnBuf *out, const KnWindowReport *win)
{
    kn_buf_char(out, '{');
    kn_json_put_count(out, "from", win->from);
    kn_buf_char(out, ',');
    kn_json_put_count(out, "to", win->to);
    kn_buf_char(out, ',');
    kn_json_put_text(out, "operation", win->operation);
    kn_buf_printf(out, ",\"upserts\":%" PRId64 ",\"deletes\":%" PRId64 ",\"chunks\":%" PRId64,
                  win->upserts, win->deletes, win->chunks);
    kn_buf_printf(out, ",\"duplicates\":%" PRId64 ",\"bytes\":%" PRId64 ",\"seconds\":%.3f}",
                  win->duplicates, win->bytes, win->seconds);
}

static void write_delivery(KnBuf *out, const KnDeliveryReport *report)
{
    kn_buf_char(out, '{');
    if (report->name) {
        kn_json_put_text(out, "delivery", report->name);
        kn_buf_char(out, ',');
    }
    kn_json_put_text(out, "table", report->table);
    kn_buf_char(out, ',');
    kn_json_put_text(out, "sink", report->sink);
    kn_buf_char(out, ',');
    kn_json_put_count(out, "from", report->from);
    kn_buf_char(out, ',');
    kn_json_put_count(out, "to", report->to);
    kn_buf_text(out, ",\"windows\":[");
    for (size_t i = 0; i < report->n_windows; ++i) {
        kn_buf_text(out, i ? "," : "");
        write_window(out, &report->windows[i]);
    }
    kn_buf_text(out, "],");
    kn_json_put_text(out, "status", kn_delivery_status_name(report->status));
    kn_buf_char(out, ',');
    kn_json_put_text(out, "message", report->message);
    kn_buf_char(out, '}');
}

void kn_delivery_reports_json(const KnDeliveryReport *const *reports, size_t n, KnBuf *out)
{
    kn_buf_text(out, "{\"deliveries\":[");
    for (size_t i = 0; i < n; ++i) {
        kn_buf_text(out, i ? "," : "");
        write_delivery(out, reports[i]);
    }
    kn_buf_text(out, "]}");
}

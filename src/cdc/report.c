/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - reports as JSON; the shape is in docs/output.md. */
#include <inttypes.h>

#include "base/json.h"
#include "cdc/delivery.h"

/* A snapshot id, or null where there is none. */
static void write_id(KnBuf *out, const char *name, int64_t id)
{
    if (id < 0)
        kn_buf_printf(out, "\"%s\":null", name);
    else
        kn_buf_printf(out, "\"%s\":%" PRId64, name, id);
}

static void write_text(KnBuf *out, const char *name, const char *text)
{
    kn_buf_printf(out, "\"%s\":", name);
    kn_json_quote(out, kn_str(text));
}

static void write_window(KnBuf *out, const KnWindowReport *win)
{
    kn_buf_char(out, '{');
    write_id(out, "from", win->from);
    kn_buf_char(out, ',');
    write_id(out, "to", win->to);
    kn_buf_char(out, ',');
    write_text(out, "operation", win->operation);
    kn_buf_printf(out, ",\"upserts\":%" PRId64 ",\"deletes\":%" PRId64 ",\"chunks\":%" PRId64,
                  win->upserts, win->deletes, win->chunks);
    kn_buf_printf(out, ",\"duplicates\":%" PRId64 ",\"bytes\":%" PRId64 ",\"seconds\":%.3f}",
                  win->duplicates, win->bytes, win->seconds);
}

static void write_delivery(KnBuf *out, const KnDeliveryReport *report)
{
    kn_buf_char(out, '{');
    write_text(out, "table", report->table);
    kn_buf_char(out, ',');
    write_text(out, "sink", report->sink);
    kn_buf_char(out, ',');
    write_id(out, "from", report->from);
    kn_buf_char(out, ',');
    write_id(out, "to", report->to);
    kn_buf_text(out, ",\"windows\":[");
    for (size_t i = 0; i < report->n_windows; ++i) {
        kn_buf_text(out, i ? "," : "");
        write_window(out, &report->windows[i]);
    }
    kn_buf_text(out, "],");
    write_text(out, "status", kn_delivery_status_name(report->status));
    kn_buf_char(out, ',');
    write_text(out, "message", report->message);
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

/* SPDX-License-Identifier: Apache-2.0 */
/* backend.c - the list of backends; events as JSON. */
#include "pipeline/backend.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/json.h"

const KnBackend *const kn_backends[] = {&kn_backend_native, NULL};

const char *kn_run_phase_name(KnRunPhase phase)
{
    static const char *const names[] = {[KN_PHASE_NONE] = NULL,
                                        [KN_PHASE_QUEUED] = "queued",
                                        [KN_PHASE_PLANNING] = "planning",
                                        [KN_PHASE_RUNNING] = "running",
                                        [KN_PHASE_COMPLETED] = "completed",
                                        [KN_PHASE_FAILED] = "failed"};
    return names[phase];
}

static void quoted_or_null(KnBuf *out, const char *text)
{
    if (text)
        kn_json_quote(out, kn_str(text));
    else
        kn_buf_text(out, "null");
}

static void metrics_json(KnBuf *out, const KnRunMetrics *metrics)
{
    kn_buf_text(out, ",\"metrics\":{");
    if (metrics->expectation) {
        kn_buf_text(out, "\"expectation\":");
        kn_json_quote(out, kn_str(metrics->expectation));
        kn_buf_printf(out, ",\"action\":\"%s\",\"violations\":%" PRId64 ",\"unknown\":%" PRId64 ",",
                      metrics->action, metrics->violations, metrics->unknown);
    }
    if (metrics->rows >= 0)
        kn_buf_printf(out, "\"rows\":%" PRId64 "}", metrics->rows);
    else
        kn_buf_text(out, "\"rows\":null}");
}

void kn_run_event_json(KnBuf *out, const KnRunEvent *event)
{
    char time[32];
    kn_buf_printf(out,
                  "{\"timestamp\":\"%s\",\"run\":", kn_clock_format_ms(event->timestamp_ms, time));
    quoted_or_null(out, event->run);
    kn_buf_text(out, ",\"element\":");
    quoted_or_null(out, event->element);
    kn_buf_text(out, ",\"phase\":");
    quoted_or_null(out, kn_run_phase_name(event->phase));
    kn_buf_text(out, ",\"message\":");
    kn_json_quote(out, kn_str(event->message));
    if (event->metrics)
        metrics_json(out, event->metrics);
    kn_buf_char(out, '}');
}

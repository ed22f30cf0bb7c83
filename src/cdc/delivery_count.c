/* SPDX-License-Identifier: Apache-2.0 */
/* delivery_count.c - the counters of delivered windows, and the names of a window's phases. */
#include "base/metrics.h"
#include "cdc/delivery_internal.h"

void kn_delivery_count(const KnDelivery *dlv, const KnWindowReport *win)
{
    KN_BUF_AUTO labels;
    kn_buf_init(&labels, 8192);
    kn_metric_label(&labels, "table", kn_str(dlv->tbl->name));
    kn_buf_char(&labels, ',');
    kn_metric_label(&labels, "sink", kn_str(dlv->sink_ops->kind));
    const struct {
        const char *name, *help;
        int64_t n;
    } counters[] = {
        {"knut_cdc_windows_total", "Windows delivered", 1},
        {"knut_cdc_upsert_rows_total", "Rows delivered as inserts or upserts", win->upserts},
        {"knut_cdc_delete_rows_total", "Rows delivered as deletes", win->deletes},
        {"knut_cdc_chunks_total", "Chunks proven", win->chunks},
        {"knut_cdc_duplicate_chunks_total", "Chunks that had arrived before", win->duplicates},
        {"knut_cdc_source_bytes_total", "Bytes of source files read for windows", win->bytes},
        {"knut_cdc_window_milliseconds_total", "Time spent delivering",
         (int64_t)(win->seconds * 1000)},
    };
    for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); ++i)
        kn_metric_add(kn_metric_get(KN_METRIC_COUNTER, counters[i].name,
                                    labels.data ? labels.data : "", counters[i].help),
                      counters[i].n);
}

const char *kn_phase_name(KnPhase phase)
{
    static const char *const NAMES[] = {"plan", "begin", "read", "encode", "load", "record"};
    _Static_assert(sizeof(NAMES) / sizeof(NAMES[0]) == KN_N_PHASES, "each phase has its name");
    return NAMES[phase];
}

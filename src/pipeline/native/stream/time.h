/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * time.h - event time, windows, and the watermark.
 *
 * Event time is milliseconds in a BIGINT here, whatever the column is: an integer (milliseconds), a
 * date or a timestamp, of which what is below a millisecond counts downwards. A window is
 * [kn_ws, kn_we), of a session [first row, last row + gap].
 */
#include "base/json.h"
#include "pipeline/native/native.h"

typedef enum KnTimeKind {
    KN_TIME_INTEGER,
    KN_TIME_STAMP, /* also of a DATE */
    KN_TIME_STAMP_TZ,
} KnTimeKind;

/** KN_E_INVAL unless the column is there and can be an event time. */
KN_NODISCARD KnCode kn_time_kind(const KnNativeShape *shape, const char *column, KnTimeKind *ret,
                                 KnErr *err);
/** The column's milliseconds; NULL for NULL and for infinity. */
void kn_time_sql(KnBuf *sql, KnTimeKind kind, const char *column);
/** A bound of a window, in milliseconds, as a value like the event time's. */
void kn_time_bound_sql(KnBuf *sql, KnTimeKind kind, const char *ms);

/** "tumbling(1000)"; "none". In arena. */
const char *kn_window_text(KnArena *arena, const KnutWindow *window);
/** SELECT of the rows of relation `from`, which has kn_et, once for each window that they lie in,
 * with kn_ws and kn_we for kn_et. Rows without event time are left out, and windows that are over
 * by the watermark (INT64_MIN = none). */
void kn_window_rows_sql(KnBuf *sql, const KnutWindow *window, const char *from, int64_t watermark);
/** Where the last window ends in which an event of time kn_et lies. */
void kn_window_last_end_sql(KnBuf *sql, const KnutWindow *window);
/** Where a window ends, of kn_ws and kn_we in a query that groups by window: no group of its own
 * where it follows from the start. */
const char *kn_window_end(KnArena *arena, const KnutWindow *window);
/** How long after its end a window must be remembered, in milliseconds: of a session, the gap. */
int64_t kn_window_memory(const KnutWindow *window);
/** SELECT of the rows of `from` (kn_ws, kn_we, groups: kn_g0, ...), each with the bounds of the
 * session that it lies in. */
void kn_session_sql(KnBuf *sql, const char *from, size_t n_groups);

/* ---- watermark: how far event time has come ---- */
typedef struct KnWatermarkInput {
    const char *name;
    int64_t lateness_ms, idle_ms; /* idle_ms 0 = it always counts */
    int64_t max_time;             /* INT64_MIN = nothing seen */
    int64_t seen_ms;              /* by the clock; when something was last seen */
} KnWatermarkInput;

/* The least of what its inputs have come to, of those that are not idle; it never goes back. */
typedef struct KnStreamWatermark {
    int64_t value; /* INT64_MIN = none yet */
    KnWatermarkInput *inputs;
    size_t n;
} KnStreamWatermark;

void kn_watermark_see(KnWatermarkInput *input, int64_t max_time, int64_t now_ms);
void kn_watermark_advance(KnStreamWatermark *mark, int64_t now_ms);
json_t *kn_watermark_json(const KnStreamWatermark *mark);
/** What a checkpoint knows of the inputs, by name; they count as seen now. */
void kn_watermark_load(KnStreamWatermark *mark, const json_t *inputs, int64_t now_ms);

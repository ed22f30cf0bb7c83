/* SPDX-License-Identifier: Apache-2.0 */
/* run_view.c - see run_view.h. */
#include "cli/pipeline/run_view.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/stop.h"
#include "cli/output.h"
#include "pipeline/check/graph.h"

enum { BAR = 20, MAX_NAME = 40, DRAW_US = 100000 };

static const char *const state_names[] = {"waiting", "running", "done", "failed"};

/* ---- the table ---- */

static void colour(const KnPipelineView *view, KnBuf *out, const char *code)
{
    if (view->colours)
        kn_buf_printf(out, "\x1b[%sm", code);
}

static size_t characters(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

/* So many characters: cut, or filled with blanks. What would move the cursor is none. */
static void pad(KnBuf *out, const char *text, size_t width)
{
    size_t n = 0;
    for (; *text; text++) {
        n += ((unsigned char)*text & 0xc0) != 0x80;
        if (n > width)
            return;
        bool moves = (unsigned char)*text < ' ' || *text == 127;
        kn_buf_append(out, moves ? "?" : text, 1);
    }
    for (; n < width; n++)
        kn_buf_char(out, ' ');
}

static void add_bar(KnBuf *out, const KnRunRow *row)
{
    double part = row->state == KN_RUN_DONE ? 1 : row->part;
    if (part < 0 || row->state == KN_RUN_WAITING) {
        pad(out, "", BAR + 7);
        return;
    }
    kn_buf_char(out, '[');
    for (int i = 0; i < BAR; i++)
        kn_buf_char(out, i < (int)(part * BAR) ? '#' : '-');
    kn_buf_printf(out, "] %3d%%", (int)(part * 100));
}

static double seconds_of(const KnRunRow *row, int64_t now_us)
{
    int64_t end = row->end_us ? row->end_us : now_us;
    return row->start_us ? (double)(end - row->start_us) / 1e6 : 0;
}

static void add_numbers(KnBuf *out, const KnRunRow *row, int64_t now_us)
{
    char text[32];
    double seconds = seconds_of(row, now_us);
    if (row->rows < 0) {
        pad(out, "", 32);
    } else {
        kn_buf_printf(out, "%16s", kn_format_count((uint64_t)row->rows, text));
        kn_buf_printf(out, "%16s",
                      seconds > 0 ? kn_format_count((uint64_t)((double)row->rows / seconds), text)
                                  : "");
    }
    if (row->batches >= 0)
        kn_buf_printf(out, "%9" PRId64, row->batches);
    if (row->batches >= 0 && row->watermark_ms != INT64_MIN)
        kn_buf_printf(out, "  %s", kn_clock_format_ms(row->watermark_ms, text));
}

static void add_row(const KnPipelineView *view, const KnRunRow *row, size_t name_width,
                    int64_t now_us, KnBuf *out)
{
    static const char *const codes[] = {"2", "36", "32", "31"};
    kn_buf_text(out, "\n  ");
    pad(out, row->dataset, name_width);
    kn_buf_text(out, "  ");
    colour(view, out, codes[row->state]);
    pad(out, state_names[row->state], 9);
    colour(view, out, "0");
    add_bar(out, row);
    add_numbers(out, row, now_us);
}

/* The first of n rows that are shown, such that what began last is among them. */
static size_t first_shown(const KnPipelineView *view, size_t n)
{
    size_t len = view->rows.len, at = len;
    while (at > 0 && view->rows.items[at - 1].state != KN_RUN_RUNNING)
        at--;
    if (n >= len || at == 0)
        return 0;
    at = at > n / 2 + 1 ? at - n / 2 - 1 : 0;
    return at + n > len ? len - n : at;
}

static size_t name_width(const KnPipelineView *view)
{
    size_t width = strlen("dataset");
    kn_vec_foreach (&view->rows, row) {
        size_t len = characters(row->dataset);
        width = len > width ? len : width;
    }
    return width < MAX_NAME ? width : MAX_NAME;
}

static void add_heading(const KnPipelineView *view, size_t width, int64_t now_us, KnBuf *out)
{
    char text[32];
    bool streams = false;
    kn_vec_foreach (&view->rows, row) {
        streams |= row->batches >= 0;
    }
    kn_buf_printf(out, "%s  %s%s\n  ", view->pipeline,
                  kn_format_seconds((double)(now_us - view->start_us) / 1e6, text),
                  kn_stop_requested() ? "  stopping; ^C again ends it now" : "");
    pad(out, "dataset", width);
    kn_buf_text(out, "  state    ");
    pad(out, "", BAR + 7);
    kn_buf_printf(out, "%16s%16s%s", "rows", "rows/s", streams ? "  batches  watermark" : "");
}

void kn_pipeline_view_render(const KnPipelineView *view, KnTermSize size, int64_t now_us,
                             KnBuf *out)
{
    size_t width = name_width(view);
    size_t room = (size.lines < KN_LIVE_MAX_LINES ? size.lines : KN_LIVE_MAX_LINES);
    size_t n = view->rows.len;
    add_heading(view, width, now_us, out);
    room = room > 3 ? room - 3 : 1; /* heading, and a line for what is not shown */
    size_t first = first_shown(view, n > room ? room : n);
    for (size_t i = first; i < n && i < first + room; i++)
        add_row(view, &view->rows.items[i], width, now_us, out);
    if (n > room)
        kn_buf_printf(out, "\n  ... and %zu more", n - room);
}

/* Under the lock. */
static void draw(KnPipelineView *view, bool at_once)
{
    int64_t now = kn_clock_mono_us();
    if (!at_once && now - view->drawn_us < DRAW_US)
        return;
    KN_BUF_AUTO text = {.max = 1 << 20};
    view->drawn_us = now;
    kn_pipeline_view_render(view, kn_term_size(), now, &text);
    kn_live_draw(&view->block, (KnStr){text.data, text.len});
}

/* ---- what happens ---- */

static KnRunRow *row_of(KnPipelineView *view, const char *dataset)
{
    kn_vec_foreach (&view->rows, row) {
        if (strcmp(row->dataset, dataset) == 0)
            return row;
    }
    return NULL;
}

/* A stream says while it runs what each batch gave; others at their end what there is. */
static void take_metrics(KnRunRow *row, const KnRunMetrics *metrics, bool running)
{
    if (metrics->expectation)
        row->violations += metrics->violations;
    else if (running && metrics->rows >= 0)
        row->rows = (row->batches > 0 ? row->rows : 0) + metrics->rows;
    else if (metrics->rows >= 0)
        row->rows = metrics->rows;
    if (running && !metrics->expectation)
        row->batches = row->batches < 0 ? 1 : row->batches + 1;
}

static void take_event(KnRunRow *row, const KnRunEvent *event)
{
    int64_t now = kn_clock_mono_us();
    if (event->phase == KN_PHASE_RUNNING && row->state == KN_RUN_WAITING) {
        row->state = KN_RUN_RUNNING;
        row->start_us = now;
    } else if (event->phase == KN_PHASE_COMPLETED || event->phase == KN_PHASE_FAILED) {
        row->state = event->phase == KN_PHASE_FAILED ? KN_RUN_FAILED : KN_RUN_DONE;
        row->end_us = now;
    }
    if (event->metrics)
        take_metrics(row, event->metrics, event->phase == KN_PHASE_RUNNING);
    free(row->message);
    row->message = strdup(event->message);
}

static void print_line(KnPipelineView *view, const KnRunEvent *event)
{
    KN_BUF_AUTO line = {.max = 1 << 20};
    const char *phase = kn_run_phase_name(event->phase);
    if (view->rc != KN_OK)
        return;
    if (view->format == KN_OUTPUT_JSON)
        kn_run_event_json(&line, event);
    else
        kn_buf_printf(&line, "%-9s  %s%s%s", phase ? phase : "",
                      event->element ? event->element : "", event->element ? ": " : "",
                      event->message);
    view->rc = kn_out_line((KnStr){line.data, line.len}, &view->err);
    if (view->rc != KN_OK) /* nobody hears of it: the run ends as well */
        kn_run_cancel(&view->control);
}

void kn_pipeline_view_event(void *arg, const KnRunEvent *event)
{
    KnPipelineView *view = arg;
    (void)pthread_mutex_lock(&view->lock);
    KnRunRow *row = event->element ? row_of(view, event->element) : NULL;
    if (row)
        take_event(row, event);
    if (view->quality)
        kn_quality_event(view->quality, event);
    if (view->live)
        draw(view, true);
    else
        print_line(view, event);
    (void)pthread_mutex_unlock(&view->lock);
}

static void view_progress(void *arg, const KnRunProgress *progress)
{
    KnPipelineView *view = arg;
    (void)pthread_mutex_lock(&view->lock);
    KnRunRow *row = row_of(view, progress->dataset);
    if (row && row->state == KN_RUN_RUNNING) {
        row->part = progress->part;
        row->watermark_ms = progress->watermark_ms;
        if (progress->batches < 0) /* a stream's are counted as it tells of them */
            row->rows = progress->rows;
    }
    draw(view, false);
    (void)pthread_mutex_unlock(&view->lock);
}

void kn_pipeline_view_open(KnPipelineView *view, const KnCall *call, const KnPipeline *pipeline)
{
    const KnGraph *graph = kn_graph_new(call->arena, pipeline);
    KnOutputFormat format = (KnOutputFormat)call->common->output;
    *view = (KnPipelineView){.pipeline = pipeline->name,
                             .format = format,
                             .live = format == KN_OUTPUT_TEXT && kn_term_moves() &&
                                     call->common->progress != KN_PROGRESS_NEVER,
                             .colours = kn_term_colours(),
                             .start_us = kn_clock_mono_us()};
    if (pthread_mutex_init(&view->lock, NULL) != 0)
        abort();
    for (size_t i = 0; i < graph->order.len; i++)
        *kn_vec_push(&view->rows) =
            (KnRunRow){.dataset = pipeline->datasets.items[graph->order.items[i]].name,
                       .part = -1,
                       .rows = -1,
                       .batches = -1,
                       .watermark_ms = INT64_MIN};
}

void kn_pipeline_view_attach(KnPipelineView *view, KnRunOptions *run)
{
    run->on_event = kn_pipeline_view_event;
    run->on_progress = view->live ? view_progress : NULL;
    run->event_arg = view;
    run->control = &view->control;
    run->cancelled = kn_stop_requested;
}

/* ---- the end ---- */

static KnCode print_summary(const KnPipelineView *view, KnErr *err)
{
    static const KnOutColumn columns[] = {{"dataset", false},   {"state", false},  {"rows", true},
                                          {"violations", true}, {"seconds", true}, {"last", false}};
    KnOut *out = kn_out_open(KN_OUTPUT_TEXT, columns, sizeof(columns) / sizeof(columns[0]));
    int64_t now = kn_clock_mono_us();
    kn_vec_foreach (&view->rows, row) {
        char text[32];
        kn_out_text(out, row->dataset);
        kn_out_text(out, state_names[row->state]);
        kn_out_text(out, row->rows < 0 ? NULL : kn_format_count((uint64_t)row->rows, text));
        kn_out_int(out, row->violations);
        kn_out_seconds(out, seconds_of(row, now));
        kn_out_text(out, row->message);
    }
    return kn_out_close(out, err);
}

/* A view is computed by what reads it, and is done when the run is. */
static void settle(KnPipelineView *view, KnCode rc)
{
    kn_vec_foreach (&view->rows, row) {
        if (row->state != KN_RUN_RUNNING)
            continue;
        row->state = rc == KN_OK ? KN_RUN_DONE : KN_RUN_FAILED;
        row->end_us = kn_clock_mono_us();
    }
}

KnCode kn_pipeline_view_close(KnPipelineView *view, KnCode rc, KnErr *err)
{
    KnCode printed = view->rc;
    if (printed != KN_OK && err)
        *err = view->err;
    if (view->live) {
        settle(view, rc);
        kn_live_draw(&view->block, (KnStr){"", 0});
        printed = print_summary(view, rc == KN_OK ? err : NULL);
    }
    kn_vec_foreach (&view->rows, row) {
        free(row->message);
    }
    kn_vec_done(&view->rows);
    (void)pthread_mutex_destroy(&view->lock);
    return view->live && rc != KN_OK ? rc : printed != KN_OK ? printed : rc;
}

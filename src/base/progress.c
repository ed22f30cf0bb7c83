/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.c - the bar. No thread of its own: kn_progress_add() draws when it is time to.
 *
 * Counters are atomics. Whoever finds the time come takes the mutex without waiting and draws;
 * others go on working. Terminal: the line is redrawn in place, cut to the terminal's width.
 * Elsewhere: whole lines. The label belongs to the object; free by kn_progress_free().
 */
#include "base/progress.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/progress_internal.h"
#include "base/terminal.h"

enum {
    BAR_WIDTH = 20,
    DELAY_US = 300000,
    TERMINAL_US = 100000,
    LINE_US = 5000000,
    MAX_TEXT = 512,
    MAX_LINE = 1024
};

struct KnProgress {
    char *label;
    uint64_t total_rows, total_bytes;
    _Atomic uint64_t rows, bytes;
    _Atomic int64_t next_us; /* when to draw next */
    int64_t start_us;
    pthread_mutex_t drawing;
    bool terminal;
    bool drawn; /* under drawing */
};

const char *kn_format_count(uint64_t n, char out[32])
{
    char plain[24];
    int len = snprintf(plain, sizeof(plain), "%llu", (unsigned long long)n);
    char *p = out;
    for (int i = 0; i < len; ++i) {
        if (i && (len - i) % 3 == 0)
            *p++ = ',';
        *p++ = plain[i];
    }
    *p = '\0';
    return out;
}

const char *kn_format_bytes(uint64_t n, char out[32])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (n < 1024) {
        (void)snprintf(out, 32, "%llu B", (unsigned long long)n);
        return out;
    }
    double v = (double)n;
    size_t unit = 0;
    for (; v >= 1023.95 && unit + 1 < sizeof(units) / sizeof(units[0]); ++unit)
        v /= 1024; /* 1023.95 would be written 1024.0 */
    (void)snprintf(out, 32, "%.1f %s", v, units[unit]);
    return out;
}

const char *kn_format_seconds(double seconds, char out[32])
{
    if (!(seconds > 0)) /* also not-a-number */
        seconds = 0;
    if (seconds < 9.95) {
        (void)snprintf(out, 32, "%.1fs", seconds);
        return out;
    }
    if (seconds >= 1e9) {
        (void)snprintf(out, 32, "for ever");
        return out;
    }
    int64_t s = (int64_t)(seconds + 0.5);
    if (s < 60)
        (void)snprintf(out, 32, "%llds", (long long)s);
    else if (s < 3600)
        (void)snprintf(out, 32, "%lldm %02llds", (long long)(s / 60), (long long)(s % 60));
    else
        (void)snprintf(out, 32, "%lldh %02lldm", (long long)(s / 3600), (long long)(s / 60 % 60));
    return out;
}

/* Part done, 0..1, by rows when their total is known, else by bytes; -1 = not known. */
static double part_done(const KnProgressView *view)
{
    uint64_t done = view->total_rows ? view->rows : view->bytes;
    uint64_t total = view->total_rows ? view->total_rows : view->total_bytes;
    if (total == 0)
        return -1;
    return done >= total ? 1 : (double)done / (double)total;
}

void kn_progress_render(const KnProgressView *view, KnBuf *out)
{
    char text[32];
    double part = part_done(view);
    kn_buf_text(out, view->label);
    if (part >= 0)
        kn_buf_printf(out, "  %3d%%", (int)(part * 100));
    if (part >= 0 && view->bar_width) {
        int full = (int)(part * view->bar_width);
        kn_buf_text(out, " [");
        for (int i = 0; i < view->bar_width; ++i)
            kn_buf_char(out, i < full ? '#' : '-');
        kn_buf_char(out, ']');
    }
    if (view->rows || view->total_rows)
        kn_buf_printf(out, "  %s rows", kn_format_count(view->rows, text));
    if (view->bytes || view->total_bytes)
        kn_buf_printf(out, "  %s", kn_format_bytes(view->bytes, text));
    if (view->seconds > 0 && view->rows)
        kn_buf_printf(out, "  %s rows/s",
                      kn_format_count((uint64_t)((double)view->rows / view->seconds), text));
    else if (view->seconds > 0 && view->bytes)
        kn_buf_printf(out, "  %s/s",
                      kn_format_bytes((uint64_t)((double)view->bytes / view->seconds), text));
    if (part > 0 && part < 1)
        kn_buf_printf(out, "  ETA %s", kn_format_seconds(view->seconds * (1 - part) / part, text));
}

KnProgress *kn_progress_new(KnProgressMode mode, const char *label, uint64_t total_rows,
                            uint64_t total_bytes)
{
    bool terminal = isatty(STDERR_FILENO) == 1;
    if (mode == KN_PROGRESS_NEVER || (mode == KN_PROGRESS_AUTO && !terminal))
        return NULL;
    KnProgress *progress = calloc(1, sizeof(*progress));
    char *copy = strdup(label);
    if (!progress || !copy || pthread_mutex_init(&progress->drawing, NULL) != 0)
        abort();
    progress->label = copy;
    progress->total_rows = total_rows;
    progress->total_bytes = total_bytes;
    progress->terminal = terminal;
    progress->start_us = kn_clock_mono_us();
    atomic_store(&progress->next_us, progress->start_us + (terminal ? DELAY_US : LINE_US));
    return progress;
}

/* The caller holds `drawing`. */
static void draw(KnProgress *progress, int64_t now)
{
    KnProgressView view = {
        .label = progress->label,
        .rows = atomic_load(&progress->rows),
        .bytes = atomic_load(&progress->bytes),
        .total_rows = progress->total_rows,
        .total_bytes = progress->total_bytes,
        .seconds = (double)(now - progress->start_us) / 1e6,
        .bar_width = progress->terminal ? BAR_WIDTH : 0,
    };
    KN_BUF_AUTO line, text;
    kn_buf_init(&line, MAX_LINE);
    kn_buf_init(&text, MAX_TEXT);
    kn_progress_render(&view, &text);
    if (progress->terminal) {
        size_t width = kn_term_size().columns - 1;
        kn_buf_text(&line, "\r");
        kn_buf_append(&line, text.data, text.len < width ? text.len : width);
        kn_buf_text(&line, "\x1b[K"); /* erase what a longer line left */
    } else {
        kn_buf_printf(&line, "%s\n", text.data);
    }
    kn_term_write(&line);
    progress->drawn = true;
}

void kn_progress_add(KnProgress *progress, uint64_t rows, uint64_t bytes)
{
    if (!progress)
        return;
    atomic_fetch_add_explicit(&progress->rows, rows, memory_order_relaxed);
    atomic_fetch_add_explicit(&progress->bytes, bytes, memory_order_relaxed);
    int64_t now = kn_clock_mono_us();
    if (now < atomic_load_explicit(&progress->next_us, memory_order_relaxed) ||
        pthread_mutex_trylock(&progress->drawing) != 0)
        return;
    if (now >= atomic_load(&progress->next_us)) { /* nobody drew in between */
        atomic_store(&progress->next_us, now + (progress->terminal ? TERMINAL_US : LINE_US));
        draw(progress, now);
    }
    (void)pthread_mutex_unlock(&progress->drawing);
}

KnProgress *kn_progress_free(KnProgress *progress)
{
    if (!progress)
        return NULL;
    if (!progress->terminal) {
        draw(progress, kn_clock_mono_us());
    } else if (progress->drawn) {
        KN_BUF_AUTO clear;
        kn_buf_init(&clear, 16);
        kn_buf_text(&clear, "\r\x1b[K");
        kn_term_write(&clear);
    }
    (void)pthread_mutex_destroy(&progress->drawing);
    free(progress->label);
    free(progress);
    return NULL;
}

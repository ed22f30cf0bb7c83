/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * progress.h - a bar on a terminal (rows, bytes, rate, ETA), plain lines elsewhere.
 *
 * Drawn after 300 ms, at most 10 times a second on a terminal and once in 5 s elsewhere, always on
 * stderr so that stdout stays clean. kn_progress_add() is thread-safe; the rest is one thread.
 */
#include <stdbool.h>
#include <stdint.h>

typedef enum KnProgressMode {
    KN_PROGRESS_AUTO,
    KN_PROGRESS_ALWAYS,
    KN_PROGRESS_NEVER
} KnProgressMode;
typedef struct KnProgress KnProgress;

/** AUTO draws on a terminal only, ALWAYS also elsewhere. Where nothing is to be drawn (NEVER, AUTO
 * elsewhere) the answer is NULL, which all calls accept. total_rows / total_bytes 0 = not known.
 * label is copied. */
KnProgress *kn_progress_new(KnProgressMode mode, const char *label, uint64_t total_rows,
                            uint64_t total_bytes);
void kn_progress_add(KnProgress *progress, uint64_t rows, uint64_t bytes);
/** Clears the bar (terminal) or writes the last line; returns NULL. */
KnProgress *kn_progress_free(KnProgress *progress);
/** "1,234,567", "3.4 MiB", "1m 05s": into out, for bars and tables. */
const char *kn_format_count(uint64_t n, char out[32]);
const char *kn_format_bytes(uint64_t n, char out[32]);
const char *kn_format_seconds(double seconds, char out[32]);

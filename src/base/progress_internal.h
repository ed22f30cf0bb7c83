/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* progress_internal.h - the text of a progress line, apart from when and where it is drawn. */
#include "base/buf.h"
#include "base/progress.h"

typedef struct KnProgressView {
    const char *label;
    uint64_t rows, bytes;             /* done */
    uint64_t total_rows, total_bytes; /* 0 = not known */
    double seconds;                   /* since the start */
    int bar_width;                    /* characters between the brackets; 0 = no bar */
} KnProgressView;

/** `label  45% [####----]  1,234 rows  3.4 MiB  617 rows/s  ETA 12s`, without a line end. */
void kn_progress_render(const KnProgressView *view, KnBuf *out);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * terminal.h - standard error as a terminal: its size, and a block of lines at its end that is
 * drawn again in place.
 *
 * A block is drawn by one write, between marks that let terminals which know them show it at once;
 * lines are cut at the edge by the terminal. Nothing is left switched off between two draws, so
 * that a process may end at any moment. One thread.
 */
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

typedef struct KnTermSize {
    size_t columns, lines;
} KnTermSize;
/** Of the terminal that standard error is; 80 by 24 where it is none. */
KnTermSize kn_term_size(void);
/** Picture of a state that the next one replaces: what cannot be written is lost. */
void kn_term_write(const KnBuf *text);
/** True when standard error is a terminal whose cursor can be moved (TERM says so). */
bool kn_term_moves(void);
/** False where NO_COLOR asks for none (https://no-color.org). */
bool kn_term_colours(void);

/* Zeroed at first. */
typedef struct KnLive {
    KnTermSize size;   /* when it was drawn */
    size_t widths[64]; /* columns of the lines that were drawn */
    size_t n_lines;
} KnLive;
enum { KN_LIVE_MAX_LINES = 64 };

/** The bytes that put text (lines with \n between them, none at the end) in place of what live drew
 * before. Lines beyond the terminal's height are left out. An empty text erases. */
void kn_live_frame(KnLive *live, KnTermSize size, KnStr text, KnBuf *out);
/** The same, to standard error. */
void kn_live_draw(KnLive *live, KnStr text);

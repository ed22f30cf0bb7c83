/* SPDX-License-Identifier: Apache-2.0 */
/*
 * terminal.c - see terminal.h.
 *
 * A terminal that becomes narrower wraps the lines that stand there, so that the block is higher
 * than it was drawn: how many rows it takes is computed from the columns that each line had.
 */
#include "base/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define BEGIN "\x1b[?2026h\x1b[?7l" /* show what follows at once; do not wrap */
#define END   "\x1b[?7h\x1b[?2026l"

KnTermSize kn_term_size(void)
{
    struct winsize size = {0};
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0)
        size = (struct winsize){0};
    return (KnTermSize){size.ws_col > 1 ? size.ws_col : 80, size.ws_row > 1 ? size.ws_row : 24};
}

void kn_term_write(const KnBuf *text)
{
    ssize_t n = write(STDERR_FILENO, text->data, text->len);
    (void)n;
}

bool kn_term_moves(void)
{
    const char *term = getenv("TERM");
    return isatty(STDERR_FILENO) == 1 && term && *term && strcmp(term, "dumb") != 0;
}

bool kn_term_colours(void)
{
    const char *no = getenv("NO_COLOR");
    return !no || !*no;
}

/* Columns of a line: one for a character, none for colours. */
static size_t columns_of(KnStr line)
{
    size_t n = 0;
    for (size_t i = 0; i < line.len; i++) {
        if (line.ptr[i] == '\x1b') {
            while (i + 1 < line.len && line.ptr[i] != 'm')
                i++;
            continue;
        }
        n += ((unsigned char)line.ptr[i] & 0xc0) != 0x80;
    }
    return n;
}

/* Rows between the block's first and the cursor, which stands at the end of its last line. */
static size_t rows_above(const KnLive *live, size_t columns)
{
    size_t rows = 0;
    for (size_t i = 0; i < live->n_lines; i++) {
        size_t shown = live->widths[i] < live->size.columns ? live->widths[i] : live->size.columns;
        rows += shown > columns ? (shown + columns - 1) / columns : 1;
    }
    return rows > 0 ? rows - 1 : 0;
}

void kn_live_frame(KnLive *live, KnTermSize size, KnStr text, KnBuf *out)
{
    size_t up = rows_above(live, size.columns);
    size_t max = size.lines < KN_LIVE_MAX_LINES ? size.lines : KN_LIVE_MAX_LINES;
    if (!live->n_lines && !text.len)
        return;
    kn_buf_text(out, BEGIN "\r");
    if (up > 0)
        kn_buf_printf(out, "\x1b[%zuA", up);
    live->n_lines = 0;
    live->size = size;
    for (size_t at = 0; text.len > 0 && at <= text.len && live->n_lines < max;) {
        const char *end = memchr(text.ptr + at, '\n', text.len - at);
        KnStr line = {text.ptr + at, end ? (size_t)(end - text.ptr) - at : text.len - at};
        kn_buf_text(out, live->n_lines > 0 ? "\r\n" : "");
        kn_buf_str(out, line);
        kn_buf_text(out, "\x1b[K");
        live->widths[live->n_lines++] = columns_of(line);
        at += line.len + 1;
    }
    kn_buf_text(out, "\x1b[J" END);
}

void kn_live_draw(KnLive *live, KnStr text)
{
    KN_BUF_AUTO frame = {.max = 1 << 20};
    kn_live_frame(live, kn_term_size(), text, &frame);
    if (frame.len > 0)
        kn_term_write(&frame);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output.c - see output.h. A KnOut keeps the cells of one row (JSON: the text of the object so far;
 * text: the first rows' cells) and writes through stdio.
 */
#include "cli/output.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/vec.h"

enum { KEPT_ROWS = 500, MAX_WIDTH = 160, ROW_MAX = 1 << 30 };

struct KnOut {
    KnOutputFormat format;
    const KnOutColumn *columns;
    size_t n_columns;
    size_t cell;   /* of the current row */
    size_t *width; /* text */
    KN_VEC(char *) kept;
    bool streaming; /* widths are fixed, heading is written */
    KnBuf row;
    int failed; /* errno of the first failed write */
};

KnOut *kn_out_open(KnOutputFormat format, const KnOutColumn *columns, size_t n_columns)
{
    KnOut *out = calloc(1, sizeof(*out));
    size_t *width = calloc(n_columns, sizeof(*width));
    if (!out || !width)
        abort();
    out->format = format;
    out->columns = columns;
    out->n_columns = n_columns;
    out->width = width;
    kn_buf_init(&out->row, ROW_MAX);
    return out;
}

static void put(KnOut *out, const char *bytes, size_t len)
{
    if (!out->failed && len && fwrite(bytes, 1, len, stdout) != len)
        out->failed = errno ? errno : EIO;
}

/* Terminal columns of UTF-8 text, one per code point. */
static size_t text_width(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static void pad(KnOut *out, size_t n)
{
    static const char blanks[] = "                                                                ";
    while (n) {
        size_t part = n < sizeof(blanks) - 1 ? n : sizeof(blanks) - 1;
        put(out, blanks, part);
        n -= part;
    }
}

static void put_cell(KnOut *out, size_t col, const char *text)
{
    size_t have = text_width(text), want = out->width[col], gap = have < want ? want - have : 0;
    bool last = col + 1 == out->n_columns;
    if (out->columns[col].right)
        pad(out, gap);
    put(out, text, strlen(text));
    if (last)
        put(out, "\n", 1);
    else
        pad(out, (out->columns[col].right ? 0 : gap) + 2);
}

static void start_streaming(KnOut *out)
{
    if (out->streaming)
        return;
    out->streaming = true;
    for (size_t i = 0; i < out->n_columns; i++) {
        size_t head = text_width(out->columns[i].name);
        if (out->width[i] < head)
            out->width[i] = head;
    }
    for (size_t i = 0; i < out->n_columns; i++)
        put_cell(out, i, out->columns[i].name);
    for (size_t i = 0, col = 0; i < out->kept.len; i++) {
        put_cell(out, col, out->kept.items[i]);
        free(out->kept.items[i]);
        col = col + 1 < out->n_columns ? col + 1 : 0;
    }
    kn_vec_done(&out->kept);
}

static void add_text_cell(KnOut *out, const char *text)
{
    size_t col = out->cell;
    if (out->streaming) {
        put_cell(out, col, text);
        return;
    }
    size_t width = text_width(text);
    if (width > out->width[col])
        out->width[col] = width < MAX_WIDTH ? width : MAX_WIDTH;
    char *copy = strdup(text);
    if (!copy)
        abort();
    *kn_vec_push(&out->kept) = copy;
}

static void end_cell(KnOut *out)
{
    if (++out->cell < out->n_columns)
        return;
    out->cell = 0;
    if (out->format == KN_OUTPUT_JSON) {
        kn_buf_text(&out->row, "}\n");
        put(out, out->row.data, out->row.len);
        kn_buf_reset(&out->row);
    } else if (!out->streaming && out->kept.len >= KEPT_ROWS * out->n_columns) {
        start_streaming(out);
    }
}

static void json_key(KnOut *out)
{
    kn_buf_char(&out->row, out->cell ? ',' : '{');
    kn_json_quote(&out->row, kn_str(out->columns[out->cell].name));
    kn_buf_char(&out->row, ':');
}

static void add(KnOut *out, const char *json, const char *text)
{
    if (out->format == KN_OUTPUT_JSON) {
        json_key(out);
        kn_buf_text(&out->row, json);
    } else {
        add_text_cell(out, text);
    }
    end_cell(out);
}

/* Control characters would break the table's lines. */
static char *printable(KnStr text)
{
    char *copy = malloc(text.len + 1);
    if (!copy)
        abort();
    for (size_t i = 0; i < text.len; i++) {
        bool control = (unsigned char)text.ptr[i] < ' ' || text.ptr[i] == 127;
        copy[i] = text.ptr[i];
        if (control)
            copy[i] = ' ';
    }
    copy[text.len] = '\0';
    return copy;
}

void kn_out_str(KnOut *out, KnStr text)
{
    if (out->format == KN_OUTPUT_JSON) {
        json_key(out);
        kn_json_quote(&out->row, text);
    } else {
        char *copy = printable(text);
        add_text_cell(out, copy);
        free(copy);
    }
    end_cell(out);
}

void kn_out_text(KnOut *out, const char *text)
{
    if (text)
        kn_out_str(out, kn_str(text));
    else
        kn_out_null(out);
}

void kn_out_int(KnOut *out, int64_t number)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "%" PRId64, number);
    add(out, text, text);
}

void kn_out_opt_int(KnOut *out, int64_t number)
{
    if (number < 0)
        kn_out_null(out);
    else
        kn_out_int(out, number);
}

void kn_out_bool(KnOut *out, bool value)
{
    add(out, value ? "true" : "false", value ? "yes" : "no");
}

void kn_out_json(KnOut *out, KnStr json)
{
    char *copy = printable(json);
    add(out, copy, copy);
    free(copy);
}

void kn_out_bytes(KnOut *out, int64_t bytes)
{
    char number[32], text[32];
    (void)snprintf(number, sizeof(number), "%" PRId64, bytes);
    add(out, number, kn_format_bytes((uint64_t)bytes, text));
}

void kn_out_seconds(KnOut *out, double seconds)
{
    char number[32], text[32];
    (void)snprintf(number, sizeof(number), "%.3f", isfinite(seconds) ? seconds : 0.0);
    add(out, number, kn_format_seconds(seconds, text));
}

void kn_out_null(KnOut *out)
{
    add(out, "null", "-");
}

static KnCode stdout_failure(int error, KnErr *err)
{
    errno = error;
    return kn_err_set(err, KN_E_IO, "writing to standard output: %s", strerror(error));
}

KnCode kn_out_check(KnOut *out, KnErr *err)
{
    return out->failed ? stdout_failure(out->failed, err) : KN_OK;
}

KnCode kn_out_close(KnOut *out, KnErr *err)
{
    if (out->format == KN_OUTPUT_TEXT)
        start_streaming(out);
    int failed = out->failed;
    if (!failed && fflush(stdout) != 0)
        failed = errno ? errno : EIO;
    kn_buf_done(&out->row);
    free(out->width);
    free(out);
    return failed ? stdout_failure(failed, err) : KN_OK;
}

KnCode kn_out_line(KnStr line, KnErr *err)
{
    errno = 0;
    if (fwrite(line.ptr, 1, line.len, stdout) != line.len || fputc('\n', stdout) == EOF ||
        fflush(stdout) != 0)
        return stdout_failure(errno ? errno : EIO, err);
    return KN_OK;
}

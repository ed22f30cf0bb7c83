/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * output.h - records on stdout: an aligned table for people, or one JSON object a line.
 *
 * Cells are given in the order of the columns; the last cell of a row ends it. In text, widths come
 * from the first rows (500), after which rows stream. A failing stdout (full disk, closed pipe) is
 * reported by kn_out_close(). One thread.
 */
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/command.h"

typedef struct KnOut KnOut;
typedef struct KnOutColumn {
    const char *name; /* JSON key, and heading in text */
    bool right;       /* numbers stand right in text */
} KnOutColumn;

KnOut *kn_out_open(KnOutputFormat format, const KnOutColumn *columns, size_t n_columns);
void kn_out_str(KnOut *out, KnStr text);
void kn_out_text(KnOut *out, const char *text); /* NULL = null */
void kn_out_int(KnOut *out, int64_t number);
void kn_out_opt_int(KnOut *out, int64_t number); /* negative = null */
void kn_out_bool(KnOut *out, bool value);
/** A JSON value as it is; in text it is shown as it is too. */
void kn_out_json(KnOut *out, KnStr json);
/** Bytes as a number in JSON, "3.4 MiB" in text; a duration likewise. */
void kn_out_bytes(KnOut *out, int64_t bytes);
void kn_out_seconds(KnOut *out, double seconds);
void kn_out_null(KnOut *out);
/** The first failure of stdout so far; for loops that should end early. */
KN_NODISCARD KnCode kn_out_check(KnOut *out, KnErr *err);
/** Writes what is kept; frees out in any case. */
KN_NODISCARD KnCode kn_out_close(KnOut *out, KnErr *err);

/** One line of text (or JSON) on stdout, checked. */
KN_NODISCARD KnCode kn_out_line(KnStr line, KnErr *err);

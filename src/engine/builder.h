/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * builder.h - batches made by hand: rows of a format that the engine does not read, value by value.
 *
 * A builder has a writer for each column. A row is one value put into every column, in any order of
 * columns, then kn_builder_end_row(); a value of a struct is kn_col_put_struct() and one value into
 * each child, a list or map is kn_col_begin_list(), elements put into child 0 (of a map: structs of
 * key and value), kn_col_end_list(). kn_builder_take() gives the rows so far as a batch, which
 * kn_feed() takes.
 *
 * Values come from outside: what a column cannot hold is an error. After one the builder is only
 * good for kn_builder_close(). Putting the wrong kind, or a row with columns left out, is a mistake
 * of ours. One thread at a time; kn_builder_open() alone asks the engine, so rows may be built
 * inside a feed's next().
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "engine/batch.h"
#include "engine/engine.h"

typedef struct KnBuilder KnBuilder;
typedef struct KnColWriter KnColWriter; /* lives as long as its builder, stays the same writer */

/** column_types: SQL type names, as kn_feed_open() takes them. */
KN_NODISCARD KnCode kn_builder_open(KnEngine *eng, const char *const *column_types, size_t n,
                                    KnBuilder **ret, KnErr *err);
KnBuilder *kn_builder_close(KnBuilder *b); /* accepts NULL, returns NULL; before its engine */
KnColWriter *kn_builder_column(KnBuilder *b, size_t col);
/** A struct's field, a list's element (0), a map's entry (0). */
KnColWriter *kn_col_child(KnColWriter *w, size_t child);
const KnColType *kn_col_type(const KnColWriter *w);

void kn_builder_end_row(KnBuilder *b);
/** The batch is worth taking: 2048 rows, or a few MiB. No row may be begun when it is true. */
bool kn_builder_full(const KnBuilder *b);
/** A reference to the rows ended so far, NULL when there are none; the builder is empty after. */
KnBatch *kn_builder_take(KnBuilder *b);

/* ---- values; KN_E_CORRUPT for one outside its type, KN_E_UNSUPPORTED when a batch would pass 512
 * MiB (which only a single huge row can) ---- */

/** Of any kind; all below it is NULL too. */
KN_NODISCARD KnCode kn_col_put_null(KnColWriter *w, KnErr *err);
/** BOOL, integers, DECIMAL (unscaled), DATE, TIME (within a day), the TIMESTAMPs: as in KnColKind.
 */
KN_NODISCARD KnCode kn_col_put_int(KnColWriter *w, __int128 value, KnErr *err);
KN_NODISCARD KnCode kn_col_put_float(KnColWriter *w, float value, KnErr *err);
KN_NODISCARD KnCode kn_col_put_double(KnColWriter *w, double value, KnErr *err);
/** VARCHAR (must be UTF-8) or BLOB; copied. */
KN_NODISCARD KnCode kn_col_put_str(KnColWriter *w, KnStr value, KnErr *err);
/** 16 bytes in the order of the UUID's text form. */
KN_NODISCARD KnCode kn_col_put_uuid(KnColWriter *w, const uint8_t value[16], KnErr *err);
KN_NODISCARD KnCode kn_col_put_struct(KnColWriter *w, KnErr *err);
KN_NODISCARD KnCode kn_col_begin_list(KnColWriter *w, KnErr *err);
void kn_col_end_list(KnColWriter *w);

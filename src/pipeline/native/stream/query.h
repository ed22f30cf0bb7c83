/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * query.h - a flow's query as its stream computes it, bit by bit; read from the engine's own tree.
 *
 * Of a query over a stream, one of these can be done:
 *
 *     ROWWISE  each row gives its rows by itself: nothing is kept
 *     FOLD     one SELECT whose aggregates can be put together from parts: kept is, for each group,
 *              a part of each aggregate
 *     GROUPED  one SELECT ... GROUP BY over the stream alone: rows are kept, and all windows that
 *              close at one time are computed by one statement
 *     OPAQUE   any query: rows are kept, each window is computed by a statement of its own
 */
#include "pipeline/native/native.h"

typedef enum KnStreamStrategy {
    KN_STREAM_ROWWISE,
    KN_STREAM_FOLD,
    KN_STREAM_GROUPED,
    KN_STREAM_OPAQUE,
} KnStreamStrategy;

/* A part of an aggregate, kept as column kn_p0, kn_p1, ... */
typedef struct KnStreamPartial {
    const char *sql;   /* over rows: "sum(v) FILTER (WHERE v > 1)" */
    const char *merge; /* the aggregate that makes one part of many: "sum" */
} KnStreamPartial;

typedef struct KnStreamItem {
    const char *sql;  /* FOLD: over kn_g0, ... and kn_a0, ...; GROUPED: over rows */
    const char *name; /* of the result's column */
} KnStreamItem;

typedef struct KnStreamQuery {
    bool windowed; /* set before: rows have their windows (kn_ws, kn_we) */
    KnStreamStrategy strategy;
    const char *text;  /* the query */
    const char *wrong; /* what makes it give other rows when it sees the stream in parts:
                          "aggregates"; NULL = nothing */
    /* of FOLD and GROUPED */
    const char *from;           /* "events AS e INNER JOIN ..." */
    const char *alias;          /* GROUPED: what the query calls the stream */
    const char *where, *having; /* NULL = none */
    size_t n_groups, n_partials, n_aggregates, n_items;
    const char **groups;       /* over rows; kept as column kn_g0, ... */
    KnStreamPartial *partials; /* FOLD */
    const char **aggregates;   /* FOLD: over kn_p0, ...: what becomes kn_a0, ... */
    KnStreamItem *items;
} KnStreamQuery;

/* Lower case, sorted (aggregates.c). */
extern const char *const kn_stream_aggregates[];
extern const size_t kn_stream_n_aggregates;

/** stream: what the query calls its rows; there is a relation of that name. In the run's arena. */
KN_NODISCARD KnCode kn_stream_query(KnNativeRun *run, const char *text, const char *stream,
                                    KnStreamQuery *ret, KnErr *err);

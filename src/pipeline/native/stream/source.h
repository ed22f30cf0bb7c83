/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * source.h - what is read as it grows: one const struct of functions for each kind of source, one
 * line in source.c.
 *
 * A place in a source is a small JSON value, its offsets. An epoch asks latest() how far the source
 * goes beyond the offsets of the last epoch, keeps the answer with its state, and takes the rows
 * between the two. When the epoch is lost (a kill, an error), the next run asks again, from the
 * same offsets; the answer need not be the same. So a source keeps nothing by itself: what it must
 * remember beside its offsets (the names of files it has read) it puts into a table of the engine,
 * which is kept with the state of each epoch.
 *
 * One thread. Order of calls: open, then for each epoch latest, rows (when there is something),
 * release; committed when the epoch is durable; close.
 */
#include "base/json.h"
#include "pipeline/native/native.h"

typedef struct KnStreamSource KnStreamSource;

/* How much one epoch takes, about; at least something. */
typedef struct KnStreamLimit {
    bool all; /* what is there now: no limit */
    int64_t files;
    int64_t rows;
} KnStreamLimit;

typedef struct KnStreamSourceOps {
    const char *kind; /* "file_drop" */
    bool once;        /* rows are pulled, or dear to make: the core stores those of an epoch */
    /** Everything but the tag's own checks is done (check.c). Nothing is read that is not needed to
     * know the columns. */
    KnCode (*open)(KnStreamSource *src, KnErr *err);
    /** *ret_to = how far an epoch goes that starts at from (NULL: the beginning); NULL = nothing is
     * there now. Sets src->ended when nothing will ever come again behind that. */
    KnCode (*latest)(KnStreamSource *src, const json_t *from, const KnStreamLimit *limit,
                     json_t **ret_to, KnErr *err);
    /** A SELECT, on the run's session, of the rows behind from, up to to. It holds until release(),
     * and is run once where ops->once says so, else as often as is liked, with the same rows. */
    KnCode (*rows)(KnStreamSource *src, const json_t *from, const json_t *to, const char **ret_sql,
                   KnErr *err);
    /** A SELECT with the same columns and no rows; *ret_sql NULL = not known before there are rows.
     */
    KnCode (*columns)(KnStreamSource *src, const char **ret_sql, KnErr *err);
    void (*release)(KnStreamSource *src);
    /** The epoch that ends at to is durable: nobody will ask for anything before it. NULL: nobody
     * cares. A failure is not the stream's: it is told, and the stream goes on. */
    KnCode (*committed)(KnStreamSource *src, const json_t *to, KnErr *err);
    void (*close)(KnStreamSource *src); /* also after a failed open */
} KnStreamSourceOps;

struct KnStreamSource {
    const KnStreamSourceOps *ops;
    KnNativeRun *run;
    const KnutFlow *flow;
    const KnutSource *spec;
    const char *name;  /* what queries call its rows */
    const char *place; /* folder, URI or table, as the pipeline gives it; NULL = of another kind */
    KnNativeFormat format; /* of files */
    KnNativeReading how;   /* declared for what has that name, or is named by cdc() */
    /* set by open() */
    const char *identity; /* what is read, without secrets: offsets of another are not ours */
    const char *log; /* table of the engine, (item VARCHAR): what is remembered; rows are added by
                        rows() and never changed; NULL = none */
    bool ended;
    void *own;
};

extern const KnStreamSourceOps kn_stream_drop, kn_stream_memory, kn_stream_batch,
    kn_stream_snapshots;

/** Of which kind a flow's source is, and its place; NULL = of none that is known. The run's streams
 * come first, whatever the source is. */
const KnStreamSourceOps *kn_stream_source_find(KnArena *arena, const KnPipeline *pipeline,
                                               const KnRunOptions *opts, const KnutSource *source,
                                               KnStreamSource *ret);
/** The flow's own source. What it holds is closed with the run. */
KN_NODISCARD KnCode kn_stream_source_open(KnNativeRun *run, const KnutFlow *flow,
                                          KnStreamSource **ret, KnErr *err);
KnStreamSource *kn_stream_source_close(KnStreamSource *src); /* accepts NULL, returns NULL */

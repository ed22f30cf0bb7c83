/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * native.h - what the files of the native backend share.
 *
 * A run opens an engine, makes a relation of every input and dataset under its own name, in the
 * order in which they need one another, and so that as little as possible is stored:
 *
 *     an input               a view over the reader of its files
 *     a dataset, used once   a view; what reads it, or the COPY that writes it, computes it
 *     used more than once,   a table of the engine, which spills to disk beyond its memory limit
 *     or counted and read
 *
 * What is written goes beside its target first (stage.c). Only when everything has been computed,
 * counted and made durable are the targets replaced, each by one rename (publish.c): a run that
 * fails or is killed before has changed nothing, and a target is at any moment the old one or the
 * new one.
 */
#include <pthread.h>

#include "base/arena.h"
#include "base/vec.h"
#include "iceberg/scan/read.h"
#include "pipeline/backend.h"
#include "pipeline/check/graph.h"
#include "storage/file_io.h"

typedef enum KnNativeFormat {
    KN_NATIVE_PARQUET,
    KN_NATIVE_CSV,
    KN_NATIVE_JSON,
    KN_NATIVE_ICEBERG,  /* a table, by its name */
    KN_NATIVE_POSTGRES, /* a table of a database, by a URL */
    KN_NATIVE_UNKNOWN,  /* not of ours */
} KnNativeFormat;

/* Where an input or target is. */
typedef enum KnNativePlace {
    KN_NATIVE_LOCAL,
    KN_NATIVE_OBJECTS, /* s3:// */
    KN_NATIVE_CATALOG, /* a table, by its name */
    KN_NATIVE_DATABASE,
    KN_NATIVE_ELSEWHERE,
} KnNativePlace;

/* ---- names of formats and types (types.c) ---- */
KnNativePlace kn_native_place(KnNativeFormat format, const char *path);
/** True for a target that is written by a commit of its own, at the end. */
static inline bool kn_native_commits(KnNativePlace place)
{
    return place == KN_NATIVE_CATALOG || place == KN_NATIVE_DATABASE;
}
/** format may be NULL: then by the extension of path. */
KnNativeFormat kn_native_format(const char *format, const char *path);
const char *kn_native_format_name(KnNativeFormat format);
/** ".parquet"; what files of the format are called. */
const char *kn_native_extension(KnNativeFormat format);
/** True for a path that names one file: it has an extension and does not end in a slash. */
bool kn_native_is_file(const char *path);
/** True when a part of the name, as it is below a folder, begins with a dot or an underscore. */
bool kn_native_is_hidden(const char *below);
/** A plain or file: path made absolute, in arena. */
KN_NODISCARD KnCode kn_native_path(KnArena *arena, const char *given, const char **ret, KnErr *err);
/** The engine's name of a type as Arrow displays it; NULL = not known. */
const char *kn_native_sql_type(KnArena *arena, const char *arrow_type);
/** True when every value of type from is one of type to. Engine's names. */
bool kn_native_widens(const char *from, const char *to);

/* ---- columns of a relation (shape.c) ---- */
typedef struct KnNativeColumn {
    const char *name, *type; /* the engine's type name */
} KnNativeColumn;
typedef struct KnNativeShape {
    const KnNativeColumn *items;
    size_t len;
} KnNativeShape;

typedef struct KnNativeRun KnNativeRun;
typedef struct KnStreams KnStreams; /* stream/run.c */

/** The columns of a query. */
KN_NODISCARD KnCode kn_native_describe(KnNativeRun *run, const char *sql, KnNativeShape *ret,
                                       KnErr *err);
/** The query with its columns as schema declares them; an empty schema changes nothing. what: for
 * messages. */
KN_NODISCARD KnCode kn_native_declared(KnNativeRun *run, const char *what, const KnutSchema *schema,
                                       const char *sql, const char **ret, KnErr *err);

/* ---- conditions that count (expect.c) ---- */
typedef struct KnNativeCheck {
    const char *name, *constraint;
    KnutOnViolation action;
    bool not_null; /* a declared column, not an expectation */
    atomic_int_least64_t rows, violations, unknown;
} KnNativeCheck;

/* The checks of one flow, or of one dataset. */
typedef struct KnNativeChecks {
    const char *dataset;
    KnNativeCheck *items;
    size_t len;
} KnNativeChecks;

/* What rows are looked at for; either may be NULL. */
typedef struct KnNativeWanted {
    const char *dataset;
    const KnutExpectations *expectations;
    const KnutSchema *schema; /* its NOT NULL */
} KnNativeWanted;

/** The query, its rows looked at; sql itself when there is nothing to look for. Each row that the
 * statement yields is counted once. */
KN_NODISCARD KnCode kn_native_checked(KnNativeRun *run, const KnNativeWanted *wanted,
                                      const char *sql, const char **ret, KnErr *err);
/** Tells what the dataset's checks counted; KN_E_REFUSED when one that fails did. */
KN_NODISCARD KnCode kn_native_report_checks(const KnNativeRun *run, const char *dataset,
                                            KnErr *err);

/* ---- datasets ---- */
typedef enum KnNativeAction {
    KN_NATIVE_VIEW,   /* nothing is computed for itself */
    KN_NATIVE_TABLE,  /* computed once and kept for its readers */
    KN_NATIVE_WRITE,  /* computed by the statement that writes it */
    KN_NATIVE_COUNT,  /* computed for its numbers, or given to on_rows */
    KN_NATIVE_SKIP,   /* not selected, or needed by nothing */
    KN_NATIVE_STREAM, /* computed epoch by epoch */
} KnNativeAction;

/* What is written into a folder beside the rows of an epoch. */
typedef struct KnNativeMark {
    const char *name; /* of the file */
    const char *text;
    const char *part; /* what the files of rows are called by */
} KnNativeMark;

typedef struct KnNativeNode {
    const KnutDataset *dataset;
    size_t readers; /* flows that read it, one that names it twice counting twice */
    bool wanted;
    bool counts; /* it has checks */
    bool apart;  /* computed before it is written */
    bool fresh;  /* as if it had never been written */
    KnNativeAction action;
    KnNativeFormat format;
    KnNativePlace place;      /* of path */
    const char *path;         /* absolute, or the table's; NULL = written nowhere */
    bool replace;             /* else rows are added */
    KnTable *table;           /* that changes were applied to; NULL = none */
    bool streamed;            /* streaming flows write it, epoch by epoch */
    bool after;               /* it needs what these write, and so comes when they have ended */
    const KnNativeMark *mark; /* of the epoch that is written into its folder */
    /* of streams into it: rows read, epochs, and how far event time has come (INT64_MIN = none) */
    atomic_int_least64_t rows_in, epochs, watermark_ms;
    int64_t rows; /* computed or written; -1 = not counted */
} KnNativeNode;

/* What stands beside a target and waits to take its place; for a target in an object store, in a
 * folder for files to be uploaded. */
typedef struct KnNativeStaged {
    const KnNativeNode *node; /* NULL = a file of ours beside a target */
    const char *stage;        /* file or folder */
    const char *target;       /* the same, as it will be called */
    bool early;               /* takes its place before any other */
} KnNativeStaged;

/** True for one that takes a local place, with the others. */
static inline bool kn_native_stays(const KnNativeStaged *staged)
{
    return !staged->early && (!staged->node || staged->node->place == KN_NATIVE_LOCAL);
}

/* An Iceberg table as long as the run needs it. */
typedef struct KnNativeTable {
    KnTable *table;
    KnPlan *plan; /* of an input, and its read; else NULL */
    KnRead *read;
} KnNativeTable;

typedef struct KnNativeSource KnNativeSource; /* of rows that come from a database */

struct KnNativeRun {
    const KnPipeline *pipeline;
    const KnRunOptions *opts;
    KnArena *arena;
    KnEngine *engine;
    KnSession *session;
    KnFileIO *io;
    KnFileIO *store;      /* of s3://, from its first use */
    const char *id;       /* of this run; may be the caller's */
    const char *uuid;     /* of this run alone, for names of files */
    KnNativeNode *nodes;  /* as pipeline->datasets */
    const KnGraph *graph; /* its order: what is read comes first */
    KN_VEC(KnNativeChecks *) checks;
    KN_VEC(KnNativeStaged) staged;
    KN_VEC(KnNativeTable) tables;
    KN_VEC(KnNativeNode *) commits; /* targets that are tables, computed and not written */
    KN_VEC(int) locks;
    bool decided; /* local targets change now: if not by this run, then by the next (journal.c) */
    KN_VEC(KnFeed *) feeds;
    KN_VEC(KnNativeSource *) sources;
    KnStreams *streams;                    /* flows that are read as they grow; NULL = not begun */
    bool planning;                         /* nothing is computed */
    _Atomic(const KnNativeNode *) current; /* that is computed now; NULL = none */
    pthread_t watch;                       /* interrupts the engine when the run is cancelled */
    bool watching;
    atomic_bool done;
};

/** How often each dataset is read, what is to be done with each, and in which order. */
KN_NODISCARD KnCode kn_native_order(KnNativeRun *run, KnErr *err);
/** True for an input that one flow without query reads, or none: no statement reads it twice. */
bool kn_native_reads_once(const KnNativeRun *run, size_t input);
void kn_native_check(const KnPipeline *pipeline, const KnRunOptions *opts, KnNotes *refusals);

/** The SELECT of all rows of a feed. In the arena. */
const char *kn_native_feed_sql(KnArena *arena, const char *name);
/** The SELECT over an input's files (source.c). */
KN_NODISCARD KnCode kn_native_input_sql(KnNativeRun *run, const KnutInput *input, const char **ret,
                                        KnErr *err);
/** The table of that name in the run's catalog (iceberg.c); the caller frees it. */
KN_NODISCARD KnCode kn_native_table_open(KnNativeRun *run, const char *name, KnTable **ret,
                                         KnErr *err);
/** A SELECT with the columns of the schema and no rows. */
KN_NODISCARD KnCode kn_native_nothing_sql(KnNativeRun *run, const KnSchema *schema,
                                          const char **ret, KnErr *err);
/** The SELECT over the rows of an Iceberg table. */
KN_NODISCARD KnCode kn_native_table_sql(KnNativeRun *run, const char *name, const char **ret,
                                        KnErr *err);
/** The same of a target. What is written into it then must follow on these rows. */
KN_NODISCARD KnCode kn_native_target_sql(KnNativeRun *run, KnNativeNode *node, const char **ret,
                                         KnErr *err);
/** The node's relation into its table, as one snapshot. */
KN_NODISCARD KnCode kn_native_table_write(KnNativeRun *run, KnNativeNode *node, KnErr *err);
void kn_native_tables_done(KnNativeRun *run);
/* ---- object stores (objects.c) ---- */
/** The engine may open this location from now on. */
KN_NODISCARD KnCode kn_native_reach(KnNativeRun *run, const char *location, KnErr *err);
/** The files that an input's path means: itself, or those of the folder. */
KN_NODISCARD KnCode kn_native_objects(KnNativeRun *run, const char *path, KnNativeFormat format,
                                      KnutNames *ret, KnErr *err);
KN_NODISCARD KnCode kn_native_object_is_there(KnNativeRun *run, const char *location, bool *ret,
                                              KnErr *err);
/** stage and target of a target's path. */
KN_NODISCARD KnCode kn_native_objects_prepare(KnNativeRun *run, const char *path,
                                              KnNativeStaged *ret, KnErr *err);
KN_NODISCARD KnCode kn_native_objects_publish(KnNativeRun *run, const KnNativeStaged *staged,
                                              KnErr *err);

/* ---- PostgreSQL (database_input.c, database_target.c) ---- */
/** The SELECT over an input's rows, which are there once: two uses need a table of them. */
KN_NODISCARD KnCode kn_native_database_sql(KnNativeRun *run, const KnutInput *input,
                                           const char **ret, KnErr *err);
void kn_native_source_close(KnNativeSource *source);
/** Would the target take the node's rows? Asked before anything is written. */
KN_NODISCARD KnCode kn_native_database_probe(KnNativeRun *run, KnNativeNode *node, KnErr *err);
/** The node's relation into its table, in one transaction. */
KN_NODISCARD KnCode kn_native_database_write(KnNativeRun *run, KnNativeNode *node, KnErr *err);

/** Options of an input that its format has; NULL = all are fine, else the one that is not. */
const char *kn_native_unknown_option(const KnutInput *input);
/** FROM of the files at an absolute path (a file, a folder, or a pattern). partition_cols: columns
 * in the path. */
void kn_native_files_sql(KnBuf *sql, KnNativeFormat format, const char *path,
                         const KnutNames *partition_cols);

/** What folders of a partition column are called: "region", "ts_day" (parting.c). */
const char *kn_native_part_name(KnArena *arena, const char *text);
/** True for a transform: the folder's name has a value that is no column of the rows. */
bool kn_native_part_is_made(const char *text);
/** The node's rows with a column for each of its transforms. */
KN_NODISCARD KnCode kn_native_parted(KnNativeRun *run, const KnNativeNode *node, const char *select,
                                     const char **ret, KnErr *err);

/* How files are read; each may be NULL. */
typedef struct KnNativeReading {
    const KnutNames *partition_cols;
    const KnutSchema *schema;
    const KnutPairs *options;
} KnNativeReading;
/** The SELECT over files of these full names. */
void kn_native_listed_sql(KnBuf *sql, KnNativeFormat format, const KnutNames *list,
                          const KnNativeReading *how);

/** The query, or a SELECT of the one thing that is read (flow.c). */
const char *kn_native_query_text(KnNativeRun *run, const KnutFlow *flow);
/** The flow's projection and filter around a relation; first: columns before those of a projection,
 * "" = none. */
void kn_native_around_sql(KnBuf *sql, const KnutFlow *flow, const char *first, const char *from);
/** The SELECT with columns and checks as the dataset declares them. */
KN_NODISCARD KnCode kn_native_as_declared(KnNativeRun *run, const KnutDataset *dataset,
                                          const char *sql, const char **ret, KnErr *err);
/** The SELECT of a flow, without its checks. */
const char *kn_native_flow_sql(KnNativeRun *run, const KnutFlow *flow);
/** False for a backfill (once) whose target is there already. */
bool kn_native_flow_runs(const KnNativeRun *run, const KnNativeNode *node, const KnutFlow *flow);
/** The SELECT of a dataset: its flows one after the other, checked, as declared; NULL = it has
 * none that runs. */
KN_NODISCARD KnCode kn_native_dataset_sql(KnNativeRun *run, KnNativeNode *node, const char **ret,
                                          KnErr *err);
/** CREATE VIEW or TABLE under the name, which may be qualified. */
KN_NODISCARD KnCode kn_native_create(KnNativeRun *run, const char *kind, const char *name,
                                     const char *sql, KnErr *err);
/** Views under the other names that flows call the dataset by ("db.t" where it is "t"). */
KN_NODISCARD KnCode kn_native_alias(KnNativeRun *run, const KnNativeNode *node, KnErr *err);
/** The name as the engine takes it: each part quoted. */
void kn_native_name_sql(KnBuf *sql, const char *name);

/** The SELECT of a target to which the flow's changes are applied (cdc.c). Computes them. */
KN_NODISCARD KnCode kn_native_apply(KnNativeRun *run, KnNativeNode *node, const KnutFlow *flow,
                                    const char **ret, KnErr *err);
/** Opens streaming flows and goes on with all of them until they end, or until somebody ends the
 * run (stream/run.c). Then each of their datasets is a relation of all of its rows. *ret_stopped: a
 * stream that would have gone on was told to end, between two epochs or by leaving one out. */
KN_NODISCARD KnCode kn_streams_run(KnNativeRun *run, bool *ret_stopped, KnErr *err);
/** Of a run that computes nothing: the queries of the node's streams are bound, and its dataset is
 * a relation without rows. *ret_bound false: a source does not know its columns yet. */
KN_NODISCARD KnCode kn_streams_bind(KnNativeRun *run, KnNativeNode *node, bool *ret_bound,
                                    KnErr *err);
void kn_streams_close(KnNativeRun *run);
/** True when the run computes nothing. */
static inline bool kn_native_is_dry(const KnNativeRun *run)
{
    return run->planning || run->opts->dry;
}

/** Writes the rows of a query beside a Parquet file, whose place they take. early: before any table
 * is written. */
KN_NODISCARD KnCode kn_native_stage_file(KnNativeRun *run, const char *path, const char *select,
                                         bool early, KnErr *err);
KN_NODISCARD KnCode kn_native_stage_text(KnNativeRun *run, const char *path, KnStr text,
                                         KnErr *err);
/** The target as the file system knows it: a link is followed, so that it stays one. */
const char *kn_native_resolved(KnArena *arena, const char *path);
/** "/d/.t.knut": a name of ours beside a target. */
const char *kn_native_beside(KnArena *arena, const char *target, const char *suffix);
/** The lock on the target's folder, for the rest of the run. */
KN_NODISCARD KnCode kn_native_lock_beside(KnNativeRun *run, const char *target, KnErr *err);
/** Writes the node's relation beside its target (stage.c). */
KN_NODISCARD KnCode kn_native_stage(KnNativeRun *run, KnNativeNode *node, KnErr *err);
/* ---- several targets as one (journal.c) ---- */
/** Whatever happens from here on, all local targets change, or those that did not are changed by
 * the next run. Nothing is written for a single one. */
KN_NODISCARD KnCode kn_native_journal_begin(KnNativeRun *run, KnErr *err);
KN_NODISCARD KnCode kn_native_journal_end(KnNativeRun *run, KnErr *err);
/** Finishes what a killed run decided about this target and others. */
KN_NODISCARD KnCode kn_native_recover(KnNativeRun *run, const char *path, KnErr *err);
/** Has a run of this id (the caller's) added to the node's local target? */
KN_NODISCARD KnCode kn_native_ran_before(KnNativeRun *run, const KnNativeNode *node, bool *ret,
                                         KnErr *err);
/** Beside a staged target: that it did. */
KN_NODISCARD KnCode kn_native_stage_run(KnNativeRun *run, const KnNativeNode *node, KnErr *err);

/** All that is staged takes its place, and locks on folders go (publish.c). */
KN_NODISCARD KnCode kn_native_publish(KnNativeRun *run, KnErr *err);
/** Removes what is staged and not published, and lets the locks go. */
void kn_native_unstage(KnNativeRun *run);

/** An event; phase KN_PHASE_NONE and metrics NULL are allowed. */
void kn_native_tell(const KnNativeRun *run, const KnRunEvent *event, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/** By the run's clock, in milliseconds. */
int64_t kn_native_now(const KnNativeRun *run);
/** KN_E_CANCELLED once somebody asked for it. */
KN_NODISCARD KnCode kn_native_going_on(const KnNativeRun *run, KnErr *err);
/** Its memory and its id: first of all. */
void kn_native_begin(KnNativeRun *run);
/** Everything but the computing: engine, inputs, memory, order (run.c). */
KN_NODISCARD KnCode kn_native_open(KnNativeRun *run, KnErr *err);
void kn_native_close(KnNativeRun *run);
/** The node's relation under its name, as its action says. */
KN_NODISCARD KnCode kn_native_relate(KnNativeRun *run, KnNativeNode *node, KnErr *err);
KN_NODISCARD KnCode kn_native_plan(const KnPipeline *pipeline, const KnRunOptions *opts,
                                   KnPlanStepFn fn, void *arg, KnErr *err);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * pipeline.h - a pipeline as a value: datasets (what data should exist) and flows (how each is
 * computed); the graph follows from what flows read and write.
 *
 * The structs are plain and meant for designated initialisers: a zeroed member is the default, a
 * NULL text or pointer is "not given", a list is {items, len} (KNUT_NAMES() and KNUT_LIST() write
 * one). A KnutPipeline owns copies of what is added to it; what was passed in may go at once. It
 * belongs to one thread at a time.
 *
 *     KnutPipeline *p = knut_pipeline_new("daily_sales");
 *     knut_pipeline_dataset(p, &(KnutDataset){.name = "clean_orders", .format = "parquet"});
 *     knut_pipeline_flow(p, &(KnutFlow){.name = "f_clean",
 *                                       .target = "clean_orders",
 *                                       .reads = KNUT_NAMES("raw_orders"),
 *                                       .query = "SELECT * FROM raw_orders WHERE amount > 0"});
 *     if (knut_pipeline_check(p, NULL, &err) == KN_OK)
 *         code = knut_pipeline_save(p, "sales.ron", NULL, &err);
 *
 * docs/examples/sales_pipeline.c is a whole program.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "knut/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- lists ---- */

typedef struct KnutNames {
    const char *const *items;
    size_t len;
} KnutNames;

typedef struct KnutPair {
    const char *key;
    const char *value;
} KnutPair;

/* Sorted by key, each key once, in every pipeline that knut made; in any order where given. */
typedef struct KnutPairs {
    const KnutPair *items;
    size_t len;
} KnutPairs;

/* KNUT_NAMES("a", "b") is a KnutNames; KNUT_LIST(KnutExpectation, {...}, {...}) initialises any
 * other list. */
#define KNUT_NAMES(...)   ((KnutNames){KNUT_LIST(const char *const, __VA_ARGS__)})
#define KNUT_LIST(T, ...) .items = (T[]){__VA_ARGS__}, .len = sizeof((T[]){__VA_ARGS__}) / sizeof(T)

/* ---- what both datasets and inputs have ---- */

typedef struct KnutSchemaField {
    const char *name;
    const char *arrow_type; /* as Arrow displays it: "Int64", "Utf8", "Decimal128(10, 2)",
                               "Timestamp(Microsecond, None)" */
    bool nullable;
    const char *comment; /* knut's own */
} KnutSchemaField;

typedef struct KnutSchema {
    const KnutSchemaField *items;
    size_t len; /* 0 = not declared */
} KnutSchema;

typedef enum KnutOnViolation {
    KNUT_ON_VIOLATION_WARN, /* rows stay and are counted */
    KNUT_ON_VIOLATION_DROP, /* rows go and are counted */
    KNUT_ON_VIOLATION_FAIL, /* the run fails, nothing is written */
} KnutOnViolation;

typedef struct KnutExpectation {
    const char *name;
    const char *constraint; /* SQL condition that each row should meet */
    KnutOnViolation on_violation;
} KnutExpectation;

typedef struct KnutExpectations {
    const KnutExpectation *items;
    size_t len;
} KnutExpectations;

/* ---- datasets ---- */

typedef enum KnutOutputType {
    KNUT_OUTPUT_MATERIALIZED_VIEW, /* recomputed as a whole */
    KNUT_OUTPUT_TABLE,             /* "streaming table" where a streaming flow feeds it */
    KNUT_OUTPUT_TEMPORARY_VIEW,    /* exists inside the run only */
    KNUT_OUTPUT_SINK,              /* leaves the pipeline; nothing reads it */
} KnutOutputType;

typedef enum KnutMaterialization {
    KNUT_MATERIALIZATION_FULL,
    KNUT_MATERIALIZATION_INCREMENTAL,
} KnutMaterialization;

typedef enum KnutWriteMode { KNUT_WRITE_APPEND, KNUT_WRITE_OVERWRITE } KnutWriteMode;

typedef struct KnutSourceLocation {
    const char *file_name;
    int32_t line_number;
    bool has_line_number;
} KnutSourceLocation;

typedef struct KnutDataset {
    const char *name; /* may be qualified: "ns.t" */
    KnutOutputType output_type;
    KnutMaterialization materialization;
    KnutSchema schema;        /* enforced where declared */
    const char *format;       /* "parquet", "csv", "json", "arrow", "iceberg", "postgres" */
    const char *path;         /* file, folder or URI that the rows are written to */
    KnutNames partition_cols; /* columns, or transforms: "days(ts)", "bucket(16, id)" */
    KnutWriteMode write_mode;
    const char *comment;
    KnutPairs properties;
    KnutSourceLocation source_location;
    /* knut's own: absent in documents that do not use them */
    KnutNames cluster_by;
    KnutNames keys;                /* what identifies a row: for sinks that update */
    KnutExpectations expectations; /* on the rows of every flow into it */
} KnutDataset;

typedef struct KnutDatasets {
    const KnutDataset *items;
    size_t len;
} KnutDatasets;

/* ---- flows ---- */

typedef enum KnutSourceTag {
    KNUT_SOURCE_BATCH,
    KNUT_SOURCE_KAFKA,
    KNUT_SOURCE_CDC,
    KNUT_SOURCE_FILE_DROP,
    KNUT_SOURCE_ICEBERG, /* knut's own: a table's snapshots, one after the other */
} KnutSourceTag;

/* Only the member that tag names counts; the others are left zeroed. */
typedef struct KnutSource {
    KnutSourceTag tag;
    struct {
        const char *uri;
        const char *format;
    } batch;
    struct {
        const char *bootstrap;
        const char *topic;
        const char *format;
    } kafka;
    struct {
        const char *source; /* name of a dataset or input that is read as it grows */
    } cdc;
    struct {
        const char *dir; /* new files in it are the stream */
        const char *format;
    } file_drop;
    struct {
        const char *table; /* "ns.name" of the run's catalog, or the location of a bare table */
    } iceberg;
} KnutSource;

typedef struct KnutWatermark {
    const char *event_time_column;
    uint64_t allowed_lateness_ms;
    uint64_t idle_timeout_ms; /* an input silent so long holds the others up no more; 0 = never */
} KnutWatermark;

typedef enum KnutTriggerTag {
    KNUT_TRIGGER_CONTINUOUS,
    KNUT_TRIGGER_PROCESSING_TIME,
    KNUT_TRIGGER_AVAILABLE_NOW,
} KnutTriggerTag;

typedef struct KnutTrigger {
    KnutTriggerTag tag;
    struct {
        uint64_t interval_ms;
    } processing_time;
} KnutTrigger;

typedef enum KnutOutputMode {
    KNUT_MODE_APPEND,
    KNUT_MODE_UPDATE,
    KNUT_MODE_COMPLETE,
} KnutOutputMode;

typedef enum KnutWindowTag {
    KNUT_WINDOW_TUMBLING,
    KNUT_WINDOW_HOPPING,
    KNUT_WINDOW_SESSION,
} KnutWindowTag;

typedef struct KnutWindow {
    KnutWindowTag tag;
    struct {
        uint64_t size_ms;
    } tumbling;
    struct {
        uint64_t size_ms;
        uint64_t slide_ms;
    } hopping;
    struct {
        uint64_t gap_ms;
    } session;
} KnutWindow;

/* A further input of a streaming flow that is read as it grows (stream-stream join); what a flow
 * reads and is not a stream is a table of the moment. */
typedef struct KnutStream {
    const char *name;
    const KnutWatermark *watermark; /* NULL = none */
} KnutStream;

typedef struct KnutStreams {
    const KnutStream *items;
    size_t len;
} KnutStreams;

typedef struct KnutStreaming {
    KnutSource source;
    const KnutWatermark *watermark; /* NULL = none */
    KnutTrigger trigger;
    KnutOutputMode output_mode;
    const KnutWindow *window; /* NULL = none */
    /* knut's own */
    KnutStreams streams;
    KnutNames deduplicate; /* columns: rows that agree in them count once, within the watermark */
} KnutStreaming;

typedef enum KnutScdType { KNUT_SCD_TYPE1, KNUT_SCD_TYPE2 } KnutScdType;

typedef struct KnutCdc {
    KnutNames keys;
    const char *sequence_by;
    const char *apply_as_deletes; /* SQL condition on a change row */
    KnutScdType scd_type;
    /* knut's own */
    const char *apply_as_truncates;
    KnutNames columns;        /* only these are kept; none = all */
    KnutNames except_columns; /* all but these */
    bool ignore_null_updates; /* a NULL in a change leaves the value as it was */
    KnutNames track_history;  /* type 2: a new version only where one of these changes */
    KnutNames track_history_except;
} KnutCdc;

typedef enum KnutFlowTag { KNUT_FLOW_BATCH, KNUT_FLOW_STREAMING, KNUT_FLOW_CDC } KnutFlowTag;

/* Only the member that tag names counts; the others are left zeroed. */
typedef struct KnutFlowKind {
    KnutFlowTag tag;
    KnutStreaming streaming;
    KnutCdc cdc;
} KnutFlowKind;

typedef struct KnutFlow {
    const char *name;
    const char *target; /* name of a dataset */
    KnutNames reads;    /* datasets, inputs, or names that the run supplies */
    KnutFlowKind kind;
    const char *query;    /* SQL */
    KnutNames projection; /* columns of the query's result, or of the one read */
    const char *filter;   /* SQL condition, likewise */
    KnutExpectations expectations;
    /* knut's own */
    const char *comment;
    bool once; /* a backfill: runs when the target is made or fully refreshed */
    KnutSourceLocation source_location;
} KnutFlow;

typedef struct KnutFlows {
    const KnutFlow *items;
    size_t len;
} KnutFlows;

/* ---- the pipeline ---- */

/* Where rows come from that no flow makes: a name that flows read. */
typedef struct KnutInput {
    const char *name;
    const char *path;         /* file, folder, glob or URI; or the table: "ns.name" */
    const char *format;       /* as of a dataset; NULL = by the path's extension */
    KnutNames partition_cols; /* columns whose values are in the path (region=US/) */
    KnutSchema schema;        /* enforced where declared */
    KnutPairs options;        /* of the format, or where the catalog or database is */
    const char *comment;
} KnutInput;

typedef struct KnutInputs {
    const KnutInput *items;
    size_t len;
} KnutInputs;

typedef struct KnutPipelineSpec {
    const char *name;
    const char *default_catalog;
    const char *default_database;
    const char *storage; /* URI: state and checkpoints of the run */
    KnutDatasets datasets;
    KnutFlows flows;
    /* knut's own */
    KnutInputs inputs;
    KnutPairs properties; /* settings of the run */
} KnutPipelineSpec;

/* ---- building, reading, writing ---- */

typedef struct KnutPipeline KnutPipeline; /* owns a spec and all it points to */

/** An empty pipeline. Memory out aborts, here and below. */
KnutPipeline *knut_pipeline_new(const char *name);
/** A copy of a whole value. */
KnutPipeline *knut_pipeline_from(const KnutPipelineSpec *spec);
/** Accepts NULL. */
void knut_pipeline_free(KnutPipeline *pipeline);

/** Each is added as it is, behind those before it; what is wrong with it, knut_pipeline_check()
 * tells. */
void knut_pipeline_dataset(KnutPipeline *pipeline, const KnutDataset *dataset);
void knut_pipeline_flow(KnutPipeline *pipeline, const KnutFlow *flow);
void knut_pipeline_input(KnutPipeline *pipeline, const KnutInput *input);
/** NULL = not given. */
void knut_pipeline_defaults(KnutPipeline *pipeline, const char *catalog, const char *database);
void knut_pipeline_storage(KnutPipeline *pipeline, const char *uri);
void knut_pipeline_property(KnutPipeline *pipeline, const char *key, const char *value);

/** The value; it lives until the pipeline is next changed. */
const KnutPipelineSpec *knut_pipeline_spec(const KnutPipeline *pipeline);
bool knut_pipeline_equal(const KnutPipeline *a, const KnutPipeline *b);

/** Read a document. form is "ron", "json" or "sql"; NULL, where there is a file, = by its
 * extension. What is wrong is named with line and column. Fields that are not known are left out:
 * knut_pipeline_check() tells of them. */
KnCode knut_pipeline_load(const char *file, const char *form, KnutPipeline **ret, KnErr *err);
KnCode knut_pipeline_parse(const char *text, size_t len, const char *form, KnutPipeline **ret,
                           KnErr *err);
/** Write one. The file is replaced as a whole. */
KnCode knut_pipeline_save(const KnutPipeline *pipeline, const char *file, const char *form,
                          KnErr *err);
/** The document's text: the caller frees it with free(). */
KnCode knut_pipeline_text(const KnutPipeline *pipeline, const char *form, char **ret, KnErr *err);

typedef struct KnutProblem {
    bool error;        /* no backend could run it as it is meant; else a warning */
    const char *rule;  /* stable: "unknown-target"; docs/pipelines.md lists them */
    const char *where; /* "flow `f`" */
    const char *text;
} KnutProblem;

typedef struct KnutProblems {
    const KnutProblem *items;
    size_t len;
} KnutProblems;

/** All that is wrong, at once. KN_E_INVAL with the first error, where there is one. ret (which may
 * be NULL) is filled in any case and lives until the next check or change. */
KnCode knut_pipeline_check(KnutPipeline *pipeline, KnutProblems *ret, KnErr *err);
/** Names of the datasets in the order of running; empty where they need one another. Lives until
 * the next change. */
KnutNames knut_pipeline_order(KnutPipeline *pipeline);

#ifdef __cplusplus
}
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * describe.c - the tables. Order of rows is the order in documents: that of the published crate,
 * then knut's own.
 */
#include "pipeline/ir/ir.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

/* A row of the struct S: member m, spelled n. */
#define ROW(S, n, m, k, p)                                                                         \
    {                                                                                              \
        .name = (n), .kind = (k), .presence = (p), .offset = offsetof(S, m)                        \
    }
#define TEXT(S, n, m)     ROW(S, n, m, KN_IR_TEXT, KN_IR_REQUIRED)
#define NAMES(S, n, m, p) ROW(S, n, m, KN_IR_NAMES, p)
#define PAIRS(S, n, m)    ROW(S, n, m, KN_IR_PAIRS, KN_IR_SKIPPED)
#define FLAG(S, n, m, p)  ROW(S, n, m, KN_IR_BOOL, p)
#define U64(S, n, m, p)   ROW(S, n, m, KN_IR_U64, p)
#define OPT_TEXT_P(S, n, m, p)                                                                     \
    {                                                                                              \
        .name = (n), .kind = KN_IR_TEXT, .presence = (p), .option = true, .offset = offsetof(S, m) \
    }
#define OPT_TEXT(S, n, m) OPT_TEXT_P(S, n, m, KN_IR_SKIPPED)
#define TYPED(S, n, m, k, p, t)                                                                    \
    {                                                                                              \
        .name = (n), .kind = (k), .presence = (p), .offset = offsetof(S, m), .type = &(t)          \
    }
#define OPT_TYPED(S, n, m, k, t)                                                                   \
    {                                                                                              \
        .name = (n), .kind = (k), .presence = KN_IR_SKIPPED, .option = true,                       \
        .offset = offsetof(S, m), .type = &(t)                                                     \
    }
#define STRUCT_TYPE(S, n, rows)                                                                    \
    {                                                                                              \
        .name = (n), .size = sizeof(S), .fields = (rows), .n_fields = N(rows)                      \
    }
#define ENUM_TYPE(S, n, rows)                                                                      \
    {                                                                                              \
        .name = (n), .size = sizeof(S), .variants = (rows), .n_variants = N(rows)                  \
    }

/* ---- enums without members ---- */

static const KnIrVariant output_type_variants[] = {
    [KNUT_OUTPUT_MATERIALIZED_VIEW] = {.name = "materialized_view"},
    [KNUT_OUTPUT_TABLE] = {.name = "table"},
    [KNUT_OUTPUT_TEMPORARY_VIEW] = {.name = "temporary_view"},
    [KNUT_OUTPUT_SINK] = {.name = "sink"},
};
const KnIrType kn_ir_output_type = ENUM_TYPE(KnutOutputType, "OutputType", output_type_variants);

static const KnIrVariant materialization_variants[] = {
    [KNUT_MATERIALIZATION_FULL] = {.name = "full"},
    [KNUT_MATERIALIZATION_INCREMENTAL] = {.name = "incremental"},
};
const KnIrType kn_ir_materialization =
    ENUM_TYPE(KnutMaterialization, "Materialization", materialization_variants);

static const KnIrVariant write_mode_variants[] = {
    [KNUT_WRITE_APPEND] = {.name = "append"},
    [KNUT_WRITE_OVERWRITE] = {.name = "overwrite"},
};
const KnIrType kn_ir_write_mode = ENUM_TYPE(KnutWriteMode, "WriteMode", write_mode_variants);

static const KnIrVariant on_violation_variants[] = {
    [KNUT_ON_VIOLATION_WARN] = {.name = "warn"},
    [KNUT_ON_VIOLATION_DROP] = {.name = "drop"},
    [KNUT_ON_VIOLATION_FAIL] = {.name = "fail"},
};
const KnIrType kn_ir_on_violation =
    ENUM_TYPE(KnutOnViolation, "OnViolation", on_violation_variants);

static const KnIrVariant output_mode_variants[] = {
    [KNUT_MODE_APPEND] = {.name = "append"},
    [KNUT_MODE_UPDATE] = {.name = "update"},
    [KNUT_MODE_COMPLETE] = {.name = "complete"},
};
const KnIrType kn_ir_output_mode = ENUM_TYPE(KnutOutputMode, "OutputMode", output_mode_variants);

static const KnIrVariant scd_type_variants[] = {
    [KNUT_SCD_TYPE1] = {.name = "type1"},
    [KNUT_SCD_TYPE2] = {.name = "type2"},
};
const KnIrType kn_ir_scd_type = ENUM_TYPE(KnutScdType, "ScdType", scd_type_variants);

/* ---- datasets ---- */

static const KnIrField schema_field_rows[] = {
    TEXT(KnutSchemaField, "name", name),
    TEXT(KnutSchemaField, "arrow_type", arrow_type),
    FLAG(KnutSchemaField, "nullable", nullable, KN_IR_REQUIRED),
    OPT_TEXT(KnutSchemaField, "comment", comment),
};
static const KnIrType schema_field = STRUCT_TYPE(KnutSchemaField, "SchemaField", schema_field_rows);

/* The list is the struct's only member: {items, len} lies at its start. */
static const KnIrField schema_rows[] = {
    TYPED(KnutSchema, "fields", items, KN_IR_LIST, KN_IR_REQUIRED, schema_field),
};
static const KnIrType schema = STRUCT_TYPE(KnutSchema, "DatasetSchema", schema_rows);

static const KnIrField expectation_rows[] = {
    TEXT(KnutExpectation, "name", name),
    TEXT(KnutExpectation, "constraint", constraint),
    TYPED(KnutExpectation, "on_violation", on_violation, KN_IR_ENUM, KN_IR_WRITTEN,
          kn_ir_on_violation),
};
static const KnIrType expectation = STRUCT_TYPE(KnutExpectation, "Expectation", expectation_rows);

static const KnIrField source_location_rows[] = {
    OPT_TEXT_P(KnutSourceLocation, "file_name", file_name, KN_IR_WRITTEN),
    {.name = "line_number",
     .kind = KN_IR_I32,
     .presence = KN_IR_WRITTEN,
     .option = true,
     .offset = offsetof(KnutSourceLocation, line_number),
     .has_offset = offsetof(KnutSourceLocation, has_line_number)},
};
static const KnIrType source_location =
    STRUCT_TYPE(KnutSourceLocation, "SourceLocation", source_location_rows);

static const KnIrField dataset_rows[] = {
    TEXT(KnutDataset, "name", name),
    TYPED(KnutDataset, "output_type", output_type, KN_IR_ENUM, KN_IR_REQUIRED, kn_ir_output_type),
    TYPED(KnutDataset, "materialization", materialization, KN_IR_ENUM, KN_IR_WRITTEN,
          kn_ir_materialization),
    TYPED(KnutDataset, "schema", schema, KN_IR_STRUCT, KN_IR_SKIPPED, schema),
    OPT_TEXT(KnutDataset, "format", format),
    OPT_TEXT(KnutDataset, "path", path),
    NAMES(KnutDataset, "partition_cols", partition_cols, KN_IR_SKIPPED),
    TYPED(KnutDataset, "write_mode", write_mode, KN_IR_ENUM, KN_IR_SKIPPED, kn_ir_write_mode),
    OPT_TEXT(KnutDataset, "comment", comment),
    PAIRS(KnutDataset, "properties", properties),
    TYPED(KnutDataset, "source_location", source_location, KN_IR_STRUCT, KN_IR_SKIPPED,
          source_location),
    NAMES(KnutDataset, "cluster_by", cluster_by, KN_IR_SKIPPED),
    NAMES(KnutDataset, "keys", keys, KN_IR_SKIPPED),
    TYPED(KnutDataset, "expectations", expectations, KN_IR_LIST, KN_IR_SKIPPED, expectation),
};
const KnIrType kn_ir_dataset = STRUCT_TYPE(KnutDataset, "Dataset", dataset_rows);

/* ---- flows ---- */

static const KnIrField source_batch_rows[] = {
    TEXT(KnutSource, "uri", batch.uri),
    TEXT(KnutSource, "format", batch.format),
};
static const KnIrField source_kafka_rows[] = {
    TEXT(KnutSource, "bootstrap", kafka.bootstrap),
    TEXT(KnutSource, "topic", kafka.topic),
    TEXT(KnutSource, "format", kafka.format),
};
static const KnIrField source_cdc_rows[] = {
    TEXT(KnutSource, "source", cdc.source),
};
static const KnIrField source_file_drop_rows[] = {
    TEXT(KnutSource, "dir", file_drop.dir),
    TEXT(KnutSource, "format", file_drop.format),
};
static const KnIrField source_iceberg_rows[] = {
    TEXT(KnutSource, "table", iceberg.table),
};
static const KnIrVariant source_variants[] = {
    [KNUT_SOURCE_BATCH] = {"batch", source_batch_rows, N(source_batch_rows)},
    [KNUT_SOURCE_KAFKA] = {"kafka", source_kafka_rows, N(source_kafka_rows)},
    [KNUT_SOURCE_CDC] = {"cdc", source_cdc_rows, N(source_cdc_rows)},
    [KNUT_SOURCE_FILE_DROP] = {"file_drop", source_file_drop_rows, N(source_file_drop_rows)},
    [KNUT_SOURCE_ICEBERG] = {"iceberg", source_iceberg_rows, N(source_iceberg_rows)},
};
const KnIrType kn_ir_source = ENUM_TYPE(KnutSource, "SourceSpec", source_variants);

static const KnIrField watermark_rows[] = {
    TEXT(KnutWatermark, "event_time_column", event_time_column),
    U64(KnutWatermark, "allowed_lateness_ms", allowed_lateness_ms, KN_IR_REQUIRED),
    U64(KnutWatermark, "idle_timeout_ms", idle_timeout_ms, KN_IR_WRITTEN),
};
static const KnIrType watermark = STRUCT_TYPE(KnutWatermark, "Watermark", watermark_rows);

static const KnIrField processing_time_rows[] = {
    U64(KnutTrigger, "interval_ms", processing_time.interval_ms, KN_IR_REQUIRED),
};
static const KnIrVariant trigger_variants[] = {
    [KNUT_TRIGGER_CONTINUOUS] = {.name = "continuous"},
    [KNUT_TRIGGER_PROCESSING_TIME] = {"processing_time", processing_time_rows,
                                      N(processing_time_rows)},
    [KNUT_TRIGGER_AVAILABLE_NOW] = {.name = "available_now"},
};
const KnIrType kn_ir_trigger = ENUM_TYPE(KnutTrigger, "Trigger", trigger_variants);

static const KnIrField tumbling_rows[] = {
    U64(KnutWindow, "size_ms", tumbling.size_ms, KN_IR_REQUIRED),
};
static const KnIrField hopping_rows[] = {
    U64(KnutWindow, "size_ms", hopping.size_ms, KN_IR_REQUIRED),
    U64(KnutWindow, "slide_ms", hopping.slide_ms, KN_IR_REQUIRED),
};
static const KnIrField session_rows[] = {
    U64(KnutWindow, "gap_ms", session.gap_ms, KN_IR_REQUIRED),
};
static const KnIrVariant window_variants[] = {
    [KNUT_WINDOW_TUMBLING] = {"tumbling", tumbling_rows, N(tumbling_rows)},
    [KNUT_WINDOW_HOPPING] = {"hopping", hopping_rows, N(hopping_rows)},
    [KNUT_WINDOW_SESSION] = {"session", session_rows, N(session_rows)},
};
const KnIrType kn_ir_window = ENUM_TYPE(KnutWindow, "WindowSpec", window_variants);

static const KnIrField stream_rows[] = {
    TEXT(KnutStream, "name", name),
    OPT_TYPED(KnutStream, "watermark", watermark, KN_IR_STRUCT, watermark),
};
static const KnIrType stream = STRUCT_TYPE(KnutStream, "Stream", stream_rows);

static const KnIrField cdc_rows[] = {
    NAMES(KnutCdc, "keys", keys, KN_IR_REQUIRED),
    TEXT(KnutCdc, "sequence_by", sequence_by),
    OPT_TEXT(KnutCdc, "apply_as_deletes", apply_as_deletes),
    TYPED(KnutCdc, "scd_type", scd_type, KN_IR_ENUM, KN_IR_REQUIRED, kn_ir_scd_type),
    OPT_TEXT(KnutCdc, "apply_as_truncates", apply_as_truncates),
    NAMES(KnutCdc, "columns", columns, KN_IR_SKIPPED),
    NAMES(KnutCdc, "except_columns", except_columns, KN_IR_SKIPPED),
    FLAG(KnutCdc, "ignore_null_updates", ignore_null_updates, KN_IR_SKIPPED),
    NAMES(KnutCdc, "track_history", track_history, KN_IR_SKIPPED),
    NAMES(KnutCdc, "track_history_except", track_history_except, KN_IR_SKIPPED),
};
static const KnIrType cdc = STRUCT_TYPE(KnutCdc, "CdcSpec", cdc_rows);

static const KnIrField kind_streaming_rows[] = {
    TYPED(KnutFlowKind, "source", streaming.source, KN_IR_ENUM, KN_IR_REQUIRED, kn_ir_source),
    OPT_TYPED(KnutFlowKind, "watermark", streaming.watermark, KN_IR_STRUCT, watermark),
    TYPED(KnutFlowKind, "trigger", streaming.trigger, KN_IR_ENUM, KN_IR_WRITTEN, kn_ir_trigger),
    TYPED(KnutFlowKind, "output_mode", streaming.output_mode, KN_IR_ENUM, KN_IR_WRITTEN,
          kn_ir_output_mode),
    OPT_TYPED(KnutFlowKind, "window", streaming.window, KN_IR_ENUM, kn_ir_window),
    TYPED(KnutFlowKind, "streams", streaming.streams, KN_IR_LIST, KN_IR_SKIPPED, stream),
    NAMES(KnutFlowKind, "deduplicate", streaming.deduplicate, KN_IR_SKIPPED),
};
static const KnIrField kind_cdc_rows[] = {
    TYPED(KnutFlowKind, "cdc", cdc, KN_IR_STRUCT, KN_IR_REQUIRED, cdc),
};
static const KnIrVariant flow_kind_variants[] = {
    [KNUT_FLOW_BATCH] = {.name = "batch"},
    [KNUT_FLOW_STREAMING] = {"streaming", kind_streaming_rows, N(kind_streaming_rows)},
    [KNUT_FLOW_CDC] = {"cdc", kind_cdc_rows, N(kind_cdc_rows)},
};
const KnIrType kn_ir_flow_kind = ENUM_TYPE(KnutFlowKind, "FlowKind", flow_kind_variants);

static const KnIrField flow_rows[] = {
    TEXT(KnutFlow, "name", name),
    TEXT(KnutFlow, "target", target),
    NAMES(KnutFlow, "reads", reads, KN_IR_SKIPPED),
    TYPED(KnutFlow, "kind", kind, KN_IR_ENUM, KN_IR_REQUIRED, kn_ir_flow_kind),
    OPT_TEXT(KnutFlow, "query", query),
    NAMES(KnutFlow, "projection", projection, KN_IR_SKIPPED),
    OPT_TEXT(KnutFlow, "filter", filter),
    TYPED(KnutFlow, "expectations", expectations, KN_IR_LIST, KN_IR_SKIPPED, expectation),
    OPT_TEXT(KnutFlow, "comment", comment),
    FLAG(KnutFlow, "once", once, KN_IR_SKIPPED),
    TYPED(KnutFlow, "source_location", source_location, KN_IR_STRUCT, KN_IR_SKIPPED,
          source_location),
};
const KnIrType kn_ir_flow = STRUCT_TYPE(KnutFlow, "Flow", flow_rows);

/* ---- the pipeline ---- */

static const KnIrField input_rows[] = {
    TEXT(KnutInput, "name", name),
    TEXT(KnutInput, "path", path),
    OPT_TEXT(KnutInput, "format", format),
    NAMES(KnutInput, "partition_cols", partition_cols, KN_IR_SKIPPED),
    TYPED(KnutInput, "schema", schema, KN_IR_STRUCT, KN_IR_SKIPPED, schema),
    PAIRS(KnutInput, "options", options),
    OPT_TEXT(KnutInput, "comment", comment),
};
const KnIrType kn_ir_input = STRUCT_TYPE(KnutInput, "Input", input_rows);

static const KnIrField pipeline_rows[] = {
    TEXT(KnutPipelineSpec, "name", name),
    OPT_TEXT(KnutPipelineSpec, "default_catalog", default_catalog),
    OPT_TEXT(KnutPipelineSpec, "default_database", default_database),
    OPT_TEXT(KnutPipelineSpec, "storage", storage),
    TYPED(KnutPipelineSpec, "datasets", datasets, KN_IR_LIST, KN_IR_REQUIRED, kn_ir_dataset),
    TYPED(KnutPipelineSpec, "flows", flows, KN_IR_LIST, KN_IR_REQUIRED, kn_ir_flow),
    TYPED(KnutPipelineSpec, "inputs", inputs, KN_IR_LIST, KN_IR_SKIPPED, kn_ir_input),
    PAIRS(KnutPipelineSpec, "properties", properties),
};
const KnIrType kn_ir_pipeline = STRUCT_TYPE(KnutPipelineSpec, "Pipeline", pipeline_rows);

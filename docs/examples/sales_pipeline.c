/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sales_pipeline.c - a pipeline built in C: orders are cleaned, customers kept up to date by their
 * changes, clicks counted in windows. It is checked, written down as RON and JSON, and read again.
 *
 *     cc sales_pipeline.c $(pkg-config --cflags --libs knut) -o sales_pipeline
 *     ./sales_pipeline > sales.ron && knut pipeline check sales.ron
 */
#include <knut/pipeline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_orders(KnutPipeline *p)
{
    knut_pipeline_input(p, &(KnutInput){.name = "raw_orders", .path = "/data/orders/*.parquet"});
    knut_pipeline_dataset(
        p, &(KnutDataset){
               .name = "clean_orders",
               .output_type = KNUT_OUTPUT_TABLE,
               .schema = {KNUT_LIST(
                   KnutSchemaField, {.name = "id", .arrow_type = "Int64"},
                   {.name = "amount", .arrow_type = "Decimal128(10, 2)", .nullable = true},
                   {.name = "ts", .arrow_type = "Timestamp(Microsecond, None)", .nullable = true})},
               .format = "parquet",
               .path = "/data/clean_orders",
               .partition_cols = KNUT_NAMES("days(ts)"),
               .write_mode = KNUT_WRITE_OVERWRITE,
           });
    knut_pipeline_flow(
        p, &(KnutFlow){
               .name = "clean",
               .target = "clean_orders",
               .reads = KNUT_NAMES("raw_orders"),
               .query = "SELECT id, amount, ts FROM raw_orders",
               .filter = "amount > 0",
               .expectations = {KNUT_LIST(KnutExpectation,
                                          {"has_time", "ts IS NOT NULL", KNUT_ON_VIOLATION_DROP})},
           });
}

static void add_customers(KnutPipeline *p)
{
    knut_pipeline_dataset(p, &(KnutDataset){.name = "customers",
                                            .output_type = KNUT_OUTPUT_TABLE,
                                            .materialization = KNUT_MATERIALIZATION_INCREMENTAL});
    knut_pipeline_flow(p, &(KnutFlow){.name = "customer_changes",
                                      .target = "customers",
                                      .reads = KNUT_NAMES("crm_changes"),
                                      .kind = {.tag = KNUT_FLOW_CDC,
                                               .cdc = {.keys = KNUT_NAMES("id"),
                                                       .sequence_by = "changed_at",
                                                       .apply_as_deletes = "gone = 1",
                                                       .scd_type = KNUT_SCD_TYPE2}}});
}

static void add_clicks(KnutPipeline *p)
{
    knut_pipeline_dataset(
        p, &(KnutDataset){.name = "clicks_per_minute", .output_type = KNUT_OUTPUT_TABLE});
    knut_pipeline_flow(
        p, &(KnutFlow){
               .name = "count_clicks",
               .target = "clicks_per_minute",
               .kind = {.tag = KNUT_FLOW_STREAMING,
                        .streaming = {.source = {.tag = KNUT_SOURCE_KAFKA,
                                                 .kafka = {.bootstrap = "localhost:9092",
                                                           .topic = "clicks",
                                                           .format = "json"}},
                                      .watermark = &(KnutWatermark){.event_time_column = "ts",
                                                                    .allowed_lateness_ms = 5000},
                                      .window = &(KnutWindow){.tag = KNUT_WINDOW_TUMBLING,
                                                              .tumbling = {60000}}}},
               .query = "SELECT page, count(*) AS n FROM clicks GROUP BY page",
           });
}

/* True when the text in form is read as the same pipeline. */
static bool comes_back(const KnutPipeline *p, const char *form, KnErr *err)
{
    char *text = NULL;
    KnutPipeline *again = NULL;
    bool same = knut_pipeline_text(p, form, &text, err) == KN_OK &&
                knut_pipeline_parse(text, strlen(text), form, &again, err) == KN_OK &&
                knut_pipeline_equal(p, again);
    knut_pipeline_free(again);
    free(text);
    return same;
}

int main(void)
{
    KnErr err = {0};
    char *text = NULL;
    KnutProblems problems = {0};
    KnutPipeline *p = knut_pipeline_new("sales");
    add_orders(p);
    add_customers(p);
    add_clicks(p);
    KnCode rc = knut_pipeline_check(p, &problems, &err);
    for (size_t i = 0; i < problems.len; i++)
        (void)fprintf(stderr, "%s: %s\n", problems.items[i].where, problems.items[i].text);
    if (rc == KN_OK)
        rc = knut_pipeline_text(p, "ron", &text, &err);
    bool fine = rc == KN_OK && printf("%s", text) > 0 && comes_back(p, "ron", &err) &&
                comes_back(p, "json", &err);
    if (!fine)
        (void)fprintf(stderr, "sales_pipeline: %s\n", err.msg);
    free(text);
    knut_pipeline_free(p);
    return fine ? 0 : 1;
}

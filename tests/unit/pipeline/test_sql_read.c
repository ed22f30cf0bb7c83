/* SPDX-License-Identifier: Apache-2.0 */
/* test_sql_read.c - what definitions mean: datasets, flows, streams, change data, reads. */
#include "unit/pipeline/sql_support.h"

static const char *reads(const KnutFlow *flow)
{
    static char text[500];
    text[0] = '\0';
    for (size_t i = 0; i < flow->reads.len; i++)
        (void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i > 0 ? " " : "",
                       flow->reads.items[i]);
    return text;
}

/* The reads of the one flow that is made of a query. */
static const char *reads_of(Script *s, const char *query)
{
    char text[2000];
    (void)snprintf(text, sizeof(text), "CREATE MATERIALIZED VIEW x AS %s", query);
    return reads(&script_read(s, text)->flows.items[0]);
}

static void every_clause_has_its_field(void **state)
{
    const KnPipeline *p = script_read(
        *state,
        "CREATE OR REFRESH STREAMING TABLE IF NOT EXISTS db.clean (\n"
        "  id BIGINT NOT NULL COMMENT 'the key',\n"
        "  `odd name` STRING,\n"
        "  amount DECIMAL(10, 2),\n"
        "  CONSTRAINT positive EXPECT (amount > 0) ON VIOLATION DROP ROW,\n"
        "  CONSTRAINT known EXPECT (id IN (1, 2)) ON VIOLATION FAIL UPDATE,\n"
        "  CONSTRAINT named EXPECT (`odd name` IS NOT NULL),\n"
        "  PRIMARY KEY (id)\n"
        ") USING parquet PARTITIONED BY (days(ts), bucket(16, id), region)\n"
        "CLUSTER BY (id, region) LOCATION 's3://b/clean' COMMENT 'it''s clean'\n"
        "TBLPROPERTIES ('k' = 'v', a.b = 1, w t) WRITE MODE OVERWRITE REFRESH POLICY INCREMENTAL\n"
        "AS SELECT * FROM STREAM(raw);");
    const KnutPipelineSpec want = {
        .name = "p",
        .datasets = {KNUT_LIST(
            KnutDataset, {.name = "db.clean",
                          .output_type = KNUT_OUTPUT_TABLE,
                          .materialization = KNUT_MATERIALIZATION_INCREMENTAL,
                          .schema = {KNUT_LIST(KnutSchemaField, {"id", "Int64", false, "the key"},
                                               {"odd name", "Utf8", true, NULL},
                                               {"amount", "Decimal128(10, 2)", true, NULL})},
                          .format = "parquet",
                          .path = "s3://b/clean",
                          .partition_cols = {KNUT_LIST(const char *const, "days(ts)",
                                                       "bucket(16, id)", "region")},
                          .write_mode = KNUT_WRITE_OVERWRITE,
                          .comment = "it's clean",
                          .properties = {KNUT_LIST(KnutPair, {"a.b", "1"}, {"k", "v"}, {"w", "t"})},
                          .cluster_by = {KNUT_LIST(const char *const, "id", "region")},
                          .keys = {KNUT_LIST(const char *const, "id")}})},
        .flows = {KNUT_LIST(
            KnutFlow, {.name = "f_db.clean",
                       .target = "db.clean",
                       .reads = {KNUT_LIST(const char *const, "raw")},
                       .kind = {.tag = KNUT_FLOW_STREAMING,
                                .streaming = {.source = {.tag = KNUT_SOURCE_CDC, .cdc = {"raw"}}}},
                       .query = "SELECT * FROM raw",
                       .expectations = {KNUT_LIST(
                           KnutExpectation, {"positive", "amount > 0", KNUT_ON_VIOLATION_DROP},
                           {"known", "id IN (1, 2)", KNUT_ON_VIOLATION_FAIL},
                           {"named", "\"odd name\" IS NOT NULL", KNUT_ON_VIOLATION_WARN})}})},
    };
    assert_pipeline(p, &want);
}

static void each_kind_of_definition_is_its_kind_of_dataset(void **state)
{
    const KnPipeline *p =
        script_read(*state, "CREATE MATERIALIZED VIEW a AS SELECT 1 AS x;"
                            "CREATE STREAMING TABLE b;"
                            "CREATE TABLE c AS SELECT * FROM a;"
                            "CREATE OR REPLACE TEMPORARY VIEW d AS SELECT * FROM b;"
                            "create temp view e as select 1; CREATE VIEW f AS SELECT 2;"
                            "CREATE SINK g USING csv LOCATION 'out' OPTIONS (header 'true');");
    static const KnutOutputType types[] = {KNUT_OUTPUT_MATERIALIZED_VIEW,
                                           KNUT_OUTPUT_TABLE,
                                           KNUT_OUTPUT_TABLE,
                                           KNUT_OUTPUT_TEMPORARY_VIEW,
                                           KNUT_OUTPUT_TEMPORARY_VIEW,
                                           KNUT_OUTPUT_TEMPORARY_VIEW,
                                           KNUT_OUTPUT_SINK};
    assert_int_equal(p->datasets.len, 7);
    for (size_t i = 0; i < 7; i++)
        assert_int_equal(p->datasets.items[i].output_type, types[i]);
    assert_int_equal(p->flows.len, 5);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(p->flows.items[i].kind.tag, KNUT_FLOW_BATCH);
    assert_string_equal(p->datasets.items[6].properties.items[0].key, "header");
}

static void an_empty_script_is_an_empty_pipeline(void **state)
{
    assert_pipeline(script_read(*state, ""), (&(KnPipeline){.name = "p"}));
    assert_pipeline(script_read(*state, " -- nothing\n ;; /* at /* all */ */ "),
                    (&(KnPipeline){.name = "p"}));
}

static void semicolons_between_definitions_may_be_left_out(void **state)
{
    const KnPipeline *p = script_read(*state, "CREATE VIEW a AS SELECT 1 AS x CREATE VIEW b AS\n"
                                              "SELECT x AS \"create\" FROM a");
    assert_int_equal(p->datasets.len, 2);
    assert_string_equal(p->flows.items[0].query, "SELECT 1 AS x");
    assert_string_equal(p->flows.items[1].query, "SELECT x AS \"create\" FROM a");
}

/* ---- streams ---- */

static void stream_marks_the_flow_not_the_query(void **state)
{
    static const char *const froms[] = {"STREAM(b)", "STREAM b", "STREAM (b)", "stream(`b`)",
                                        "STREAM /* of */ b"};
    for (size_t i = 0; i < sizeof(froms) / sizeof(*froms); i++) {
        char text[200];
        (void)snprintf(text, sizeof(text), "CREATE MATERIALIZED VIEW a AS SELECT * FROM %s WHERE x",
                       froms[i]);
        const KnutFlow *flow = &script_read(*state, text)->flows.items[0];
        assert_int_equal(flow->kind.tag, KNUT_FLOW_STREAMING);
        assert_int_equal(flow->kind.streaming.source.tag, KNUT_SOURCE_CDC);
        assert_string_equal(flow->kind.streaming.source.cdc.source, "b");
        assert_string_equal(reads(flow), "b");
        assert_null(strstr(flow->query, "STREAM"));
    }
}

static void a_stream_may_be_qualified_and_have_an_alias(void **state)
{
    const KnutFlow *flow =
        &script_read(*state, "CREATE STREAMING TABLE a AS SELECT x.i FROM STREAM c.d.t x "
                             "JOIN STREAM(u) AS y ON x.i = y.i JOIN v ON v.i = x.i")
             ->flows.items[0];
    assert_string_equal(flow->query,
                        "SELECT x.i FROM c.d.t x JOIN u AS y ON x.i = y.i JOIN v ON v.i = x.i");
    assert_string_equal(flow->kind.streaming.source.cdc.source, "c.d.t");
    assert_int_equal(flow->kind.streaming.streams.len, 1);
    assert_string_equal(flow->kind.streaming.streams.items[0].name, "u");
    assert_string_equal(reads(flow), "c.d.t u v");
}

static void a_column_or_table_named_stream_stays(void **state)
{
    const KnutFlow *flow = &script_read(*state, "CREATE MATERIALIZED VIEW a AS SELECT stream, "
                                                "stream (1), 2 AS stream FROM stream WHERE stream")
                                ->flows.items[0];
    assert_int_equal(flow->kind.tag, KNUT_FLOW_BATCH);
    assert_string_equal(reads(flow), "stream");
}

static void a_streaming_table_streams_its_first_name(void **state)
{
    const KnutFlow *flow =
        &script_read(*state, "CREATE STREAMING TABLE a AS SELECT * FROM z JOIN m USING (i)")
             ->flows.items[0];
    assert_int_equal(flow->kind.tag, KNUT_FLOW_STREAMING);
    assert_string_equal(flow->kind.streaming.source.cdc.source, "m");
    flow = &script_read(*state, "CREATE STREAMING TABLE a AS SELECT 1")->flows.items[0];
    assert_int_equal(flow->kind.tag, KNUT_FLOW_BATCH);
}

static void files_topics_and_tables_keep_their_arguments(void **state)
{
    const KnPipeline *p = script_read(
        *state,
        "CREATE STREAMING TABLE a AS SELECT * FROM STREAM(read_files('/in/orders', format => "
        "'csv'));"
        "CREATE STREAMING TABLE b AS SELECT count(*) AS n FROM STREAM read_kafka("
        "bootstrapServers => 'h:9092', subscribe => 'click-s') GROUP BY 1;"
        "CREATE STREAMING TABLE c AS SELECT * FROM STREAM(read_iceberg('ns.t')) AS q;"
        "CREATE STREAMING TABLE d AS SELECT * FROM STREAM(read_files('s3://b/x.parquet', once => "
        "true));");
    const KnutFlow *f = p->flows.items;
    const KnutSource *source = &f[0].kind.streaming.source;
    assert_int_equal(source->tag, KNUT_SOURCE_FILE_DROP);
    assert_string_equal(source->file_drop.dir, "/in/orders");
    assert_string_equal(source->file_drop.format, "csv");
    assert_string_equal(f[0].query, "SELECT * FROM orders");
    assert_int_equal(f[0].reads.len, 0);
    source = &f[1].kind.streaming.source;
    assert_int_equal(source->tag, KNUT_SOURCE_KAFKA);
    assert_string_equal(source->kafka.bootstrap, "h:9092");
    assert_string_equal(source->kafka.topic, "click-s");
    assert_string_equal(source->kafka.format, "json");
    assert_string_equal(f[1].query, "SELECT count(*) AS n FROM \"click-s\" GROUP BY 1");
    source = &f[2].kind.streaming.source;
    assert_int_equal(source->tag, KNUT_SOURCE_ICEBERG);
    assert_string_equal(source->iceberg.table, "ns.t");
    assert_string_equal(f[2].query, "SELECT * FROM t AS q");
    source = &f[3].kind.streaming.source;
    assert_int_equal(source->tag, KNUT_SOURCE_BATCH);
    assert_string_equal(source->batch.format, "parquet");
    assert_string_equal(f[3].query, "SELECT * FROM x");
}

static void watermark_window_and_settings_are_the_flows(void **state)
{
    const KnutFlow *flow =
        &script_read(
             *state,
             "CREATE STREAMING TABLE w TRIGGER EVERY INTERVAL '5' SECONDS OUTPUT MODE UPDATE\n"
             "DEDUPLICATE BY (id, ts) AS\n"
             "SELECT window.start AS window_start, window.end, k, count(*) AS n\n"
             "FROM STREAM(ev) WATERMARK ts DELAY OF INTERVAL 1 MINUTE 30 SECONDS "
             "IDLE AFTER INTERVAL 1 HOUR AS e\n"
             "GROUP BY window(ts, '10 minutes', '5 minutes'), k HAVING n > 1")
             ->flows.items[0];
    const KnutStreaming *it = &flow->kind.streaming;
    assert_string_equal(flow->query,
                        "SELECT k, count(*) AS n\nFROM ev AS e\nGROUP BY k HAVING n > 1");
    assert_string_equal(it->watermark->event_time_column, "ts");
    assert_int_equal(it->watermark->allowed_lateness_ms, 90000);
    assert_int_equal(it->watermark->idle_timeout_ms, 3600000);
    assert_int_equal(it->window->tag, KNUT_WINDOW_HOPPING);
    assert_int_equal(it->window->hopping.size_ms, 600000);
    assert_int_equal(it->window->hopping.slide_ms, 300000);
    assert_int_equal(it->trigger.tag, KNUT_TRIGGER_PROCESSING_TIME);
    assert_int_equal(it->trigger.processing_time.interval_ms, 5000);
    assert_int_equal(it->output_mode, KNUT_MODE_UPDATE);
    assert_int_equal(it->deduplicate.len, 2);
}

static void a_window_alone_leaves_no_group_by(void **state)
{
    const KnutFlow *flow =
        &script_read(*state, "CREATE STREAMING TABLE w AS SELECT sum(x) AS s, window.end\n"
                             "FROM STREAM ev e WATERMARK ts DELAY OF INTERVAL 0 SECONDS\n"
                             "GROUP BY session_window(ts, '1 hour 30 minutes')\nORDER BY s")
             ->flows.items[0];
    assert_string_equal(flow->query, "SELECT sum(x) AS s\nFROM ev e\nORDER BY s");
    assert_int_equal(flow->kind.streaming.window->tag, KNUT_WINDOW_SESSION);
    assert_int_equal(flow->kind.streaming.window->session.gap_ms, 5400000);
}

/* ---- flows and change data ---- */

static void a_standalone_flow_appends_to_a_target(void **state)
{
    const KnPipeline *p = script_read(
        *state,
        "CREATE STREAMING TABLE a (CONSTRAINT c EXPECT (x > 0)); CREATE TABLE t;"
        "CREATE FLOW f1 AS INSERT INTO a BY NAME SELECT * FROM STREAM(b);"
        "CREATE FLOW f2 (CONSTRAINT d EXPECT (y > 0)) COMMENT 'late' AS INSERT INTO ONCE a BY "
        "NAME SELECT * FROM old; CREATE FLOW f3 AS INSERT INTO t SELECT * FROM b;"
        "CREATE FLOW f4 AS INSERT INTO elsewhere SELECT * FROM b");
    const KnutFlow *f = p->flows.items;
    assert_int_equal(p->flows.len, 4);
    assert_string_equal(p->datasets.items[0].expectations.items[0].constraint, "x > 0");
    assert_string_equal(f[0].name, "f1");
    assert_string_equal(f[0].target, "a");
    assert_int_equal(f[0].kind.tag, KNUT_FLOW_STREAMING);
    assert_true(f[1].once);
    assert_int_equal(f[1].kind.tag, KNUT_FLOW_BATCH);
    assert_string_equal(f[1].comment, "late");
    assert_string_equal(f[1].expectations.items[0].name, "d");
    assert_int_equal(f[2].kind.tag, KNUT_FLOW_BATCH);
    assert_int_equal(f[3].kind.tag, KNUT_FLOW_STREAMING);
}

static void change_data_has_all_its_clauses(void **state)
{
    const KnPipeline *p = script_read(
        *state, "CREATE STREAMING TABLE dim; CREATE FLOW cdc AS AUTO CDC INTO dim\n"
                "FROM STREAM(cat.db.changes) KEYS (id, `k 2`) IGNORE NULL UPDATES\n"
                "APPLY AS DELETE WHEN op = 'DELETE' AND `x y` = 1\n"
                "APPLY AS TRUNCATE WHEN op = 'TRUNCATE' SEQUENCE BY struct_pack(a := ts, b := id)\n"
                "COLUMNS * EXCEPT (op, _rescued) STORED AS SCD TYPE 2\n"
                "TRACK HISTORY ON * EXCEPT (city);");
    const KnutFlow want = {
        .name = "cdc",
        .target = "dim",
        .reads = {KNUT_LIST(const char *const, "cat.db.changes")},
        .kind = {.tag = KNUT_FLOW_CDC,
                 .cdc = {.keys = {KNUT_LIST(const char *const, "id", "k 2")},
                         .sequence_by = "struct_pack(a := ts, b := id)",
                         .apply_as_deletes = "op = 'DELETE' AND \"x y\" = 1",
                         .scd_type = KNUT_SCD_TYPE2,
                         .apply_as_truncates = "op = 'TRUNCATE'",
                         .except_columns = {KNUT_LIST(const char *const, "op", "_rescued")},
                         .ignore_null_updates = true,
                         .track_history_except = {KNUT_LIST(const char *const, "city")}}},
        .query = "SELECT * FROM cat.db.changes"};
    KN_BUF_AUTO why = {.max = 1000};
    if (!kn_ir_equal(&kn_ir_flow, &p->flows.items[0], &want, &why))
        fail_msg("%s", why.data);
}

static void change_data_can_be_said_in_four_ways(void **state)
{
    static const char *const texts[] = {
        "CREATE FLOW f_d AS AUTO CDC INTO d FROM STREAM(c) KEYS (i) SEQUENCE BY s COLUMNS (i, s)",
        "CREATE FLOW f_d AS APPLY CHANGES INTO d FROM STREAM c KEYS(i) COLUMNS(i,s) SEQUENCE BY s",
        "APPLY CHANGES INTO d FROM c KEYS (i) SEQUENCE BY s STORED AS SCD TYPE 1 COLUMNS (i, s);",
        "AUTO CDC INTO d FROM (SELECT * FROM STREAM(c)) KEYS (i) SEQUENCE BY s COLUMNS (i, s)"};
    const KnutFlow want = {.name = "f_d",
                           .target = "d",
                           .reads = {KNUT_LIST(const char *const, "c")},
                           .kind = {.tag = KNUT_FLOW_CDC,
                                    .cdc = {.keys = {KNUT_LIST(const char *const, "i")},
                                            .sequence_by = "s",
                                            .columns = {KNUT_LIST(const char *const, "i", "s")}}},
                           .query = "SELECT * FROM c"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        KN_BUF_AUTO why = {.max = 1000};
        if (!kn_ir_equal(&kn_ir_flow, &script_read(*state, texts[i])->flows.items[0], &want, &why))
            fail_msg("%s: %s", texts[i], why.data);
    }
    const KnPipeline *p =
        script_read(*state, "CREATE STREAMING TABLE d FLOW AUTO CDC FROM STREAM c "
                            "KEYS (i) SEQUENCE BY s COLUMNS (i, s)");
    assert_true(kn_ir_equal(&kn_ir_flow, &p->flows.items[0], &want, NULL));
    assert_int_equal(p->datasets.len, 1);
}

static void settings_and_inputs_are_the_pipelines(void **state)
{
    const KnPipeline *p = script_read(
        *state, "SET pipeline.name = 'daily'; SET pipeline.storage = 'file:///tmp/st';\n"
                "SET spark.sql.shuffle.partitions = 4; SET 'odd key' = 'a''b';\n"
                "USE CATALOG lake; USE sales;\n"
                "CREATE INPUT raw (id BIGINT NOT NULL, d DATE) USING csv LOCATION 'in/*.csv'\n"
                "OPTIONS (header 'true') PARTITIONED BY (region) COMMENT 'as delivered';\n"
                "CREATE TEMPORARY VIEW other USING parquet OPTIONS (path 'x.parquet', k = 1);");
    const KnutPipelineSpec want = {
        .name = "daily",
        .default_catalog = "lake",
        .default_database = "sales",
        .storage = "file:///tmp/st",
        .properties = {KNUT_LIST(KnutPair, {"odd key", "a'b"},
                                 {"spark.sql.shuffle.partitions", "4"})},
        .inputs = {KNUT_LIST(KnutInput,
                             {.name = "raw",
                              .path = "in/*.csv",
                              .format = "csv",
                              .partition_cols = {KNUT_LIST(const char *const, "region")},
                              .schema = {KNUT_LIST(KnutSchemaField, {"id", "Int64", false, NULL},
                                                   {"d", "Date32", true, NULL})},
                              .options = {KNUT_LIST(KnutPair, {"header", "true"})},
                              .comment = "as delivered"},
                             {.name = "other",
                              .path = "x.parquet",
                              .format = "parquet",
                              .options = {KNUT_LIST(KnutPair, {"k", "1"})}})}};
    assert_pipeline(p, &want);
}

/* ---- reads ---- */

static void reads_are_found_wherever_tables_stand(void **state)
{
    assert_string_equal(reads_of(*state, "SELECT * FROM b JOIN a ON a.i = b.i, c"), "a b c");
    assert_string_equal(reads_of(*state, "SELECT (SELECT max(x) FROM a) FROM b WHERE i IN (SELECT "
                                         "i FROM c) AND EXISTS (SELECT 1 FROM d)"),
                        "a b c d");
    assert_string_equal(reads_of(*state, "SELECT x FROM a JOIN b ON a.i = (SELECT min(i) FROM c) "
                                         "GROUP BY x HAVING x > (SELECT 1 FROM d) "
                                         "ORDER BY (SELECT 1 FROM e)"),
                        "a b c d e");
    assert_string_equal(reads_of(*state,
                                 "SELECT * FROM (SELECT * FROM a UNION ALL SELECT * FROM b) "
                                 "EXCEPT SELECT * FROM c.d INTERSECT SELECT * FROM e.f.g"),
                        "a b c.d e.f.g");
    assert_string_equal(reads_of(*state, "SELECT * FROM a, LATERAL (SELECT * FROM b WHERE b.i = "
                                         "a.i)"),
                        "a b");
    assert_string_equal(reads_of(*state, "SELECT * FROM a PIVOT (sum(x) FOR y IN ('p', 'q'))"),
                        "a");
    assert_string_equal(reads_of(*state, "FROM a"), "a");
    assert_string_equal(reads_of(*state, "SELECT * FROM a x JOIN a y USING (i)"), "a");
    assert_string_equal(reads_of(*state, "SELECT * FROM \"a.b\".c"), "\"a.b\".c");
}

static void functions_files_and_texts_are_no_reads(void **state)
{
    assert_string_equal(reads_of(*state, "SELECT * FROM range(3), 'x.parquet', read_csv('y.csv')"),
                        "");
    assert_string_equal(reads_of(*state, "SELECT 'FROM b' AS t, $$FROM c$$ /* FROM d */ FROM a"),
                        "a");
    assert_string_equal(reads_of(*state, "VALUES (1), (2)"), "");
}

static void names_of_ctes_are_none_where_they_are_known(void **state)
{
    assert_string_equal(reads_of(*state, "WITH x AS (SELECT * FROM a), y AS (SELECT * FROM x) "
                                         "SELECT * FROM y JOIN X USING (i)"),
                        "a");
    assert_string_equal(reads_of(*state, "SELECT * FROM (WITH x AS (SELECT * FROM a) SELECT * FROM "
                                         "x) JOIN x USING (i)"),
                        "a x");
    assert_string_equal(reads_of(*state, "WITH a AS (SELECT * FROM a) SELECT * FROM a"), "a");
    assert_string_equal(reads_of(*state,
                                 "WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 "
                                 "FROM r, t) SELECT * FROM r"),
                        "t");
    assert_string_equal(reads_of(*state,
                                 "WITH x AS (SELECT 1) SELECT * FROM s.x WHERE i IN (SELECT "
                                 "* FROM x)"),
                        "s.x");
    assert_string_equal(reads_of(*state, "WITH x AS (SELECT * FROM later), later AS (SELECT 1) "
                                         "SELECT * FROM x, later"),
                        "later");
}

static void backticks_become_the_engines_quotes(void **state)
{
    const KnutFlow *flow =
        &script_read(*state, "CREATE VIEW `my ``v` AS SELECT `a b`, 'it`s', `q\"q` FROM `d e`.`f`")
             ->flows.items[0];
    assert_string_equal(flow->target, "my `v");
    assert_string_equal(flow->query, "SELECT \"a b\", 'it`s', \"q\"\"q\" FROM \"d e\".\"f\"");
    assert_string_equal(reads(flow), "d e.f");
}

/* ---- texts and types ---- */

static void texts_have_sparks_escapes_in_definitions_only(void **state)
{
    const KnPipeline *p =
        script_read(*state, "CREATE VIEW a COMMENT 'a\\'b\\\\c\\n\\u00e9\\101' r'\\n' AS "
                            "SELECT '\\' AS x, E'\\'' AS y FROM t");
    assert_string_equal(p->datasets.items[0].comment, "a'b\\c\n\xC3\xA9"
                                                      "A\\n");
    p = script_read(*state,
                    "CREATE VIEW a COMMENT 'a' 'b' AS SELECT '\\' AS x, E'\\'' AS y FROM t");
    assert_string_equal(p->datasets.items[0].comment, "ab");
    assert_string_equal(p->flows.items[0].query, "SELECT '\\' AS x, E'\\'' AS y FROM t");
}

static void types_are_spelled_as_arrow_does(void **state)
{
    static const struct {
        const char *sql, *arrow;
    } types[] = {
        {"boolean", "Boolean"},
        {"TINYINT", "Int8"},
        {"SMALLINT UNSIGNED", "UInt16"},
        {"INT", "Int32"},
        {"LONG", "Int64"},
        {"REAL", "Float32"},
        {"DOUBLE PRECISION", "Float64"},
        {"STRING", "Utf8"},
        {"VARCHAR(10)", "Utf8"},
        {"BINARY", "Binary"},
        {"DATE", "Date32"},
        {"TIME", "Time64(Microsecond)"},
        {"TIMESTAMP", "Timestamp(Microsecond, None)"},
        {"TIMESTAMP_NTZ", "Timestamp(Microsecond, None)"},
        {"TIMESTAMP WITH TIME ZONE", "Timestamp(Microsecond, Some(\"UTC\"))"},
        {"DECIMAL", "Decimal128(38, 10)"},
        {"DECIMAL(5)", "Decimal128(5, 0)"},
        {"NUMERIC(5, 2)", "Decimal128(5, 2)"},
        {"ARRAY<INT>", "List(Int32)"},
        {"MAP<STRING, ARRAY<BIGINT>>",
         "Map(\"entries\": non-null Struct(\"key\": non-null Utf8, \"value\": List(Int64)), "
         "unsorted)"},
        {"STRUCT<a: INT NOT NULL, `b c`: STRUCT<d STRING>>",
         "Struct(\"a\": non-null Int32, \"b c\": Struct(\"d\": Utf8))"},
        {"Int64", "Int64"},
        {"Timestamp(Nanosecond, Some(\"Europe/Oslo\"))",
         "Timestamp(Nanosecond, Some(\"Europe/Oslo\"))"},
    };
    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
        char text[300];
        (void)snprintf(text, sizeof(text), "CREATE STREAMING TABLE t (c %s NOT NULL)",
                       types[i].sql);
        const KnPipeline *p = script_read(*state, text);
        assert_string_equal(p->datasets.items[0].schema.items[0].arrow_type, types[i].arrow);
        assert_false(p->datasets.items[0].schema.items[0].nullable);
    }
}

static void tblproperties_may_be_dotted_bare_and_empty(void **state)
{
    const KnPipeline *p = script_read(
        *state, "CREATE STREAMING TABLE t TBLPROPERTIES (); CREATE STREAMING TABLE u "
                "TBLPROPERTIES (delta.appendOnly = true, 'x.y' '1', z -2.5, z = 3, `q r` = \"s\")");
    const KnutPairs *pairs = &p->datasets.items[1].properties;
    assert_int_equal(p->datasets.items[0].properties.len, 0);
    assert_int_equal(pairs->len, 4);
    assert_string_equal(pairs->items[0].key, "delta.appendOnly");
    assert_string_equal(pairs->items[0].value, "true");
    assert_string_equal(pairs->items[1].key, "q r");
    assert_string_equal(pairs->items[1].value, "s");
    assert_string_equal(pairs->items[3].value, "3");
}

#define test(f) cmocka_unit_test_setup_teardown(f, script_setup, script_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(every_clause_has_its_field),
        test(each_kind_of_definition_is_its_kind_of_dataset),
        test(an_empty_script_is_an_empty_pipeline),
        test(semicolons_between_definitions_may_be_left_out),
        test(stream_marks_the_flow_not_the_query),
        test(a_stream_may_be_qualified_and_have_an_alias),
        test(a_column_or_table_named_stream_stays),
        test(a_streaming_table_streams_its_first_name),
        test(files_topics_and_tables_keep_their_arguments),
        test(watermark_window_and_settings_are_the_flows),
        test(a_window_alone_leaves_no_group_by),
        test(a_standalone_flow_appends_to_a_target),
        test(change_data_has_all_its_clauses),
        test(change_data_can_be_said_in_four_ways),
        test(settings_and_inputs_are_the_pipelines),
        test(reads_are_found_wherever_tables_stand),
        test(functions_files_and_texts_are_no_reads),
        test(names_of_ctes_are_none_where_they_are_known),
        test(backticks_become_the_engines_quotes),
        test(texts_have_sparks_escapes_in_definitions_only),
        test(types_are_spelled_as_arrow_does),
        test(tblproperties_may_be_dotted_bare_and_empty),
    };
    return cmocka_run_group_tests_name("pipeline.sql_read", tests, NULL, script_close_engine);
}

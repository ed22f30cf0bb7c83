/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_sql_write.c - pipelines as SQL: read(write(p)) == p for what SQL can say, and the names of
 * what it cannot.
 *
 * KN_TEST_SEED repeats a run, KN_TEST_STEPS says how many pipelines (50).
 */
#include <stdlib.h>
#include <time.h>

#include "base/random.h"
#include "unit/pipeline/sql_support.h"

static void written_is_what_was_read(Script *s, const char *text)
{
    const KnPipeline *p = script_read(s, text);
    const char *again = script_write(s, p);
    assert_string_equal(script_notes(s), "");
    assert_pipeline(script_read(s, again), p);
    assert_string_equal(script_write(s, s->p), again); /* canonical */
}

static void definitions_survive(void **state)
{
    written_is_what_was_read(
        *state,
        "SET pipeline.storage = 'x\\\\y'; SET 'a b' = 'c''d'; USE CATALOG `my cat`; USE db;\n"
        "CREATE INPUT `raw 1` (id BIGINT NOT NULL COMMENT 'it''s', t TIMESTAMP, \n"
        "  n STRUCT<a: ARRAY<INT>, `b c`: MAP<STRING, DATE> NOT NULL>) USING csv LOCATION "
        "'x/*.csv'\n"
        "  OPTIONS (header 'true') PARTITIONED BY (region) COMMENT 'c';\n"
        "CREATE MATERIALIZED VIEW db.a (id INT, CONSTRAINT c1 EXPECT (`x y` > 0) ON VIOLATION DROP "
        "ROW) PARTITIONED BY (days(ts), `odd col`) TBLPROPERTIES (a.b = 'c') COMMENT 'é' AS\n"
        "SELECT \"id\" AS `i d`, ';' AS s /* all; of -- it */ FROM `raw 1`;\n"
        "CREATE TEMPORARY VIEW v AS WITH q AS (SELECT * FROM db.a) SELECT * FROM q;\n"
        "CREATE TABLE t CLUSTER BY (a, b) AS SELECT * FROM v;\n"
        "CREATE SINK out USING parquet LOCATION 'out' WRITE MODE OVERWRITE AS SELECT * FROM t;");
}

static void flows_survive(void **state)
{
    written_is_what_was_read(
        *state,
        "CREATE STREAMING TABLE a (CONSTRAINT c EXPECT (x > 0)) REFRESH POLICY INCREMENTAL;\n"
        "CREATE FLOW f1 AS INSERT INTO a SELECT * FROM STREAM(b) AS x JOIN STREAM c WATERMARK u\n"
        "  DELAY OF INTERVAL 3 HOURS ON x.i = c.i JOIN b AS y USING (i);\n"
        "CREATE FLOW f2 (CONSTRAINT d EXPECT (y) ON VIOLATION FAIL UPDATE) COMMENT 'late'\n"
        "  AS INSERT INTO ONCE a BY NAME SELECT * FROM old;\n"
        "CREATE STREAMING TABLE k TRIGGER AVAILABLE NOW OUTPUT MODE COMPLETE DEDUPLICATE BY (x)\n"
        "  AS SELECT count(*) AS n FROM STREAM(read_kafka(bootstrapServers => 'h:1', subscribe =>\n"
        "  'my topic', format => 'avro')) WATERMARK `t s` DELAY OF INTERVAL 1500 MILLISECONDS "
        "IDLE\n"
        "  AFTER INTERVAL 2 WEEKS GROUP BY window(`t s`, '10 minutes') HAVING n > 0;\n"
        "CREATE STREAMING TABLE l AS SELECT k, sum(v) AS s FROM STREAM(read_files('/in/x y/', "
        "format "
        "=> 'csv')) AS q WATERMARK ts DELAY OF INTERVAL 0 SECONDS GROUP BY k, window(ts, '1 hour', "
        "'1 minute') ORDER BY k;\n"
        "CREATE STREAMING TABLE m TRIGGER EVERY INTERVAL 1 SECOND OUTPUT MODE UPDATE AS SELECT * "
        "FROM STREAM(read_iceberg('s3://b/w/t'));\n"
        "CREATE FLOW cdc AS AUTO CDC INTO a FROM STREAM(`c d`.e) KEYS (id, `k 2`) IGNORE NULL "
        "UPDATES APPLY AS DELETE WHEN op = 'D' AND `x y` APPLY AS TRUNCATE WHEN op = 'T' SEQUENCE "
        "BY ts COLUMNS (id, ts) STORED AS SCD TYPE 2 TRACK HISTORY ON * EXCEPT (city);\n"
        "APPLY CHANGES INTO m FROM (SELECT * FROM x WHERE y) KEYS (a) SEQUENCE BY b;");
}

static void the_surface_writes_with_the_engine_at_hand(void **state)
{
    Script *s = *state;
    KN_BUF_AUTO out = {.max = 1000};
    const KnPipeline *p = script_read(s, "CREATE MATERIALIZED VIEW a AS SELECT * FROM `b c`");
    assert_int_equal(kn_surface_sql.write(p, s->session, &out, &s->notes, &s->err), KN_OK);
    assert_string_equal(out.data, "SET pipeline.name = 'p';\n\n"
                                  "CREATE MATERIALIZED VIEW a\nAS SELECT * FROM `b c`;\n");
    assert_string_equal(script_notes(s), "");
    assert_int_equal(kn_surface_sql.write(p, NULL, &out, &s->notes, &s->err), KN_E_INVAL);
}

static void what_is_own_stays_where_it_was(void **state)
{
    Script *s = *state;
    const KnPipeline *p =
        script_read(s, "CREATE MATERIALIZED VIEW a; CREATE MATERIALIZED VIEW b AS SELECT 1 AS x;"
                       "CREATE FLOW f_a AS INSERT INTO a SELECT * FROM b; CREATE VIEW v;"
                       "CREATE FLOW named AS INSERT INTO v SELECT * FROM a;");
    const char *text = script_write(s, p);
    assert_pipeline(script_read(s, text), p);
    assert_has(text, "CREATE FLOW named");
    assert_has(text, "CREATE MATERIALIZED VIEW b\nAS SELECT 1 AS x;");
}

static void what_sql_cannot_say_is_named(void **state)
{
    Script *s = *state;
    const KnPipeline p = {
        .name = "p",
        .datasets = {KNUT_LIST(
            KnutDataset,
            {.name = "a",
             .schema = {KNUT_LIST(KnutSchemaField, {"x", "Int32", true, NULL},
                                  {"y", "Quaternion", true, NULL})},
             .source_location = {.file_name = "a.ron"}},
            {.name = "v", .output_type = KNUT_OUTPUT_TEMPORARY_VIEW, .format = "csv", .path = "x"},
            {.name = "lonely", .output_type = KNUT_OUTPUT_TEMPORARY_VIEW})},
        .flows = {
            KNUT_LIST(KnutFlow,
                      {.name = "f_a",
                       .target = "a",
                       .reads = {KNUT_LIST(const char *const, "o r")},
                       .projection = {KNUT_LIST(const char *const, "x", "y z")},
                       .filter = "x > 1"},
                      {.name = "f_v",
                       .target = "v",
                       .query = "SELECT * FROM a",
                       .reads = {KNUT_LIST(const char *const, "b")}},
                      {.name = "edge", .target = "a"},
                      {.name = "s",
                       .target = "a",
                       .kind = {.tag = KNUT_FLOW_STREAMING,
                                .streaming = {.source = {.tag = KNUT_SOURCE_FILE_DROP,
                                                         .file_drop = {"file:///in", "csv"}},
                                              .window = &(const KnutWindow){.session = {50}}}}})}};
    const char *text = script_write(s, &p);
    assert_string_equal(script_notes(s),
                        "flow 'f_a': projection: it becomes part of the query\n"
                        "flow 'f_a': filter: it becomes part of the query\n"
                        "flow 'f_v': reads: SQL takes them from the query, by name\n"
                        "flow 'edge': left out: SQL has no flow without a query\n"
                        "flow 's': query: SQL needs one: all that is read\n"
                        "flow 's': window: SQL has none without a watermark\n"
                        "dataset 'a': source_location: a script is a place of its own\n"
                        "dataset 'a': column 'y': SQL has no type for 'Quaternion'\n"
                        "dataset 'v': format: a view is not stored\n"
                        "dataset 'v': path: a view is not stored\n"
                        "dataset 'lonely': left out: SQL has no view without a query\n");
    const KnPipeline *back = script_read(s, text);
    assert_int_equal(back->flows.len, 3);
    assert_string_equal(back->flows.items[0].query, "SELECT x, \"y z\" FROM \"o r\" WHERE x > 1");
    assert_int_equal(back->datasets.len, 2);
}

static void what_does_not_read_back_is_named_too(void **state)
{
    Script *s = *state;
    const KnPipeline p = {
        .name = "p",
        .datasets = {KNUT_LIST(KnutDataset, {.name = "a", .output_type = KNUT_OUTPUT_TABLE})},
        .flows = {KNUT_LIST(KnutFlow, {.name = "f",
                                       .target = "a",
                                       .reads = {KNUT_LIST(const char *const, "b")},
                                       .kind = {.tag = KNUT_FLOW_STREAMING,
                                                .streaming = {.source = {.tag = KNUT_SOURCE_CDC,
                                                                         .cdc = {"elsewhere"}}}},
                                       .query = "SELECT * FROM b"})}};
    (void)script_write(s, &p);
    assert_has(script_notes(s), "flow 'f': SQL reads back otherwise: kind.streaming.source");
    const KnPipeline broken = {
        .name = "p",
        .flows = {KNUT_LIST(KnutFlow, {.name = "f", .target = "a", .query = "SELECT FROM WHERE"})}};
    (void)script_write(s, &broken);
    assert_has(script_notes(s), "flow 'f': query: query:1:13: syntax error at or near \"WHERE\"");
    assert_has(script_notes(s), "the script cannot be read back: written:");
}

/* ---- random pipelines ---- */

typedef struct Dice {
    KnArena *arena;
    KnRng rng;
} Dice;

static unsigned roll(Dice *d, unsigned sides)
{
    return (unsigned)kn_rng_below(&d->rng, sides);
}

static const char *pick(Dice *d, const char *const *list, unsigned n)
{
    return list[roll(d, n)];
}

#define PICK(d, ...)                                                                               \
    pick((d), (const char *const[]){__VA_ARGS__},                                                  \
         sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static const char *text(Dice *d)
{
    return PICK(d, "plain", "it's", "back\\slash", "two\nlines", "", "\xC3\xA9 -- no; comment",
                "\"quoted\" `back`", "/* x */", "\\'");
}

static const char *maybe(Dice *d, const char *text)
{
    return roll(d, 3) == 0 ? text : NULL;
}

static KnutNames names(Dice *d, unsigned max)
{
    unsigned n = roll(d, max + 1);
    const char **items = kn_arena_alloc(d->arena, (n + 1) * sizeof(*items));
    for (unsigned i = 0; i < n; i++)
        items[i] = PICK(d, "id", "ts", "two words", "Select", "\xC3\xB8l", "back`tick", "a_1");
    return (KnutNames){items, n};
}

/* What KNUT_NAMES() writes lives in its block only. */
static KnutNames keep(Dice *d, KnutNames list)
{
    const char **items = kn_arena_alloc(d->arena, list.len * sizeof(*items));
    memcpy(items, list.items, list.len * sizeof(*items));
    return (KnutNames){items, list.len};
}

static KnutPairs pairs(Dice *d)
{
    unsigned n = roll(d, 3);
    KnutPair *items = kn_arena_zalloc(d->arena, (n + 1) * sizeof(*items));
    for (unsigned i = 0; i < n; i++)
        items[i] = (KnutPair){kn_arena_printf(d->arena, "%s%u", text(d), i), text(d)};
    return (KnutPairs){items, n};
}

static const char nested[] =
    "Struct(\"a b\": Map(\"entries\": non-null Struct(\"key\": non-null Utf8, "
    "\"value\": Int8), unsorted), \"c\": non-null Date32)";

static KnutSchema schema(Dice *d)
{
    unsigned n = roll(d, 4);
    KnutSchemaField *items = kn_arena_zalloc(d->arena, (n + 1) * sizeof(*items));
    for (unsigned i = 0; i < n; i++)
        items[i] = (KnutSchemaField){
            kn_arena_printf(d->arena, "%s%u", PICK(d, "c", "two words", "with.dot", "q`\"'"), i),
            PICK(d, "Int64", "UInt8", "Utf8", "Decimal128(12, 3)", "Timestamp(Microsecond, None)",
                 "Timestamp(Microsecond, Some(\"UTC\"))", "Time32(Second)", "Float16",
                 "List(Int32)", "List(non-null Int32)", "List(nullable Int32)", nested,
                 "Dictionary(Int32, Utf8)", "Struct()"),
            roll(d, 2) != 0, maybe(d, text(d))};
    return (KnutSchema){items, n};
}

static KnutExpectations expectations(Dice *d)
{
    unsigned n = roll(d, 3);
    KnutExpectation *items = kn_arena_zalloc(d->arena, (n + 1) * sizeof(*items));
    for (unsigned i = 0; i < n; i++)
        items[i] = (KnutExpectation){kn_arena_printf(d->arena, "%s%u", PICK(d, "e", "e e"), i),
                                     PICK(d, "x > 0", "\"a b\" IS NOT NULL AND f(')')", "x IN (1)"),
                                     (KnutOnViolation)roll(d, 3)};
    return (KnutExpectations){items, n};
}

static const char *dataset_name(Dice *d, unsigned i)
{
    return kn_arena_printf(d->arena, "%s%u", PICK(d, "d", "db.t", "two words", "Table"), i);
}

static KnutDataset dataset(Dice *d, unsigned i)
{
    KnutDataset it = {.name = dataset_name(d, i),
                      .output_type = (KnutOutputType)roll(d, 4),
                      .materialization = (KnutMaterialization)roll(d, 2),
                      .schema = schema(d),
                      .comment = maybe(d, text(d)),
                      .properties = pairs(d),
                      .keys = names(d, 2)};
    if (it.output_type != KNUT_OUTPUT_TEMPORARY_VIEW) {
        it.format = maybe(d, PICK(d, "parquet", "odd format"));
        it.path = maybe(d, text(d));
        it.write_mode = (KnutWriteMode)roll(d, 2);
        it.cluster_by = names(d, 2);
        it.partition_cols = names(d, 2);
        if (roll(d, 3) == 0)
            it.partition_cols = (KnutNames){kn_arena_alloc(d->arena, sizeof(char *)), 1};
        if (it.partition_cols.len == 1)
            ((const char **)it.partition_cols.items)[0] =
                PICK(d, "days(ts)", "bucket(16, \"a b\")");
    }
    if (roll(d, 4) == 0)
        it.expectations = expectations(d);
    return it;
}

static const KnutWatermark *watermark(Dice *d)
{
    KnutWatermark *mark = kn_arena_alloc(d->arena, sizeof(*mark));
    *mark = (KnutWatermark){PICK(d, "ts", "event time"), roll(d, 2) ? roll(d, 100000) : 86400000,
                            (uint64_t)roll(d, 2) * 60000};
    return roll(d, 3) ? mark : NULL;
}

static const KnutWindow *window(Dice *d)
{
    KnutWindow *it = kn_arena_zalloc(d->arena, sizeof(*it));
    it->tag = (KnutWindowTag)roll(d, 3);
    if (it->tag == KNUT_WINDOW_TUMBLING)
        it->tumbling.size_ms = 1 + roll(d, 100000);
    else if (it->tag == KNUT_WINDOW_HOPPING)
        it->hopping = (__typeof__(it->hopping)){60000, 1 + roll(d, 60000)};
    else
        it->session.gap_ms = 1000;
    return roll(d, 2) ? it : NULL;
}

/* A query around the name (quoted) that it reads. */
static const char *query(Dice *d, const char *from)
{
    switch (roll(d, 5)) {
    case 0:
        return kn_arena_printf(d->arena, "SELECT * FROM %s", from);
    case 1:
        return kn_arena_printf(d->arena,
                               "SELECT k, count(*) AS n FROM %s AS q WHERE x IN (SELECT 1)\nGROUP "
                               "BY k HAVING count(*) > 1",
                               from);
    case 2:
        return kn_arena_printf(d->arena, "WITH x AS (SELECT * FROM %s) SELECT sum(v) FROM x", from);
    case 3:
        return kn_arena_printf(
            d->arena, "SELECT \"a b\", ';' AS s /* ; */ FROM %s -- no end\n ORDER BY 1", from);
    default:
        return kn_arena_printf(d->arena, "SELECT 'FROM' FROM %s x JOIN %s y ON x.i = y.i", from,
                               from);
    }
}

static void streaming(Dice *d, KnutFlow *it)
{
    KnutStreaming *s = &it->kind.streaming;
    const char *from = "up";
    it->kind.tag = KNUT_FLOW_STREAMING;
    s->trigger.tag = (KnutTriggerTag)roll(d, 3);
    if (s->trigger.tag == KNUT_TRIGGER_PROCESSING_TIME)
        s->trigger.processing_time.interval_ms = 1 + roll(d, 5000);
    s->output_mode = (KnutOutputMode)roll(d, 3);
    s->watermark = watermark(d);
    s->window = s->watermark ? window(d) : NULL;
    s->deduplicate = names(d, 2);
    s->source.tag = (KnutSourceTag)roll(d, 5);
    if (s->source.tag == KNUT_SOURCE_CDC) {
        s->source.cdc.source = "up.stream";
        from = "up.stream";
        it->reads = keep(d, KNUT_NAMES("up.stream"));
    } else if (s->source.tag == KNUT_SOURCE_KAFKA) {
        s->source.kafka = (__typeof__(s->source.kafka)){"h:9092,i:9092", "my-topic.v1", "avro"};
        from = "\"my-topic.v1\"";
    } else if (s->source.tag == KNUT_SOURCE_ICEBERG) {
        s->source.iceberg.table = "ns.up";
    } else if (s->source.tag == KNUT_SOURCE_BATCH) {
        s->source.batch = (__typeof__(s->source.batch)){"s3://b/it's/up.parquet", "parquet"};
    } else {
        s->source.file_drop = (__typeof__(s->source.file_drop)){"/in/up/*.csv", "csv"};
    }
    it->query = query(d, from);
}

static void cdc(Dice *d, KnutFlow *it)
{
    KnutCdc *c = &it->kind.cdc;
    it->kind.tag = KNUT_FLOW_CDC;
    c->keys = keep(d, KNUT_NAMES("id"));
    c->sequence_by = PICK(d, "ts", "\"s q\"", "struct_pack(a := ts)");
    c->apply_as_deletes = maybe(d, "op = 'DELETE' AND \"x\" > 0");
    c->apply_as_truncates = maybe(d, "op = 'T'");
    c->scd_type = (KnutScdType)roll(d, 2);
    c->columns = names(d, 2);
    if (c->columns.len == 0)
        c->except_columns = names(d, 2);
    c->ignore_null_updates = roll(d, 2) != 0;
    c->track_history = names(d, 1);
    it->reads = keep(d, KNUT_NAMES("changes"));
    it->query = PICK(d, "SELECT * FROM changes", "SELECT * FROM changes WHERE x > 0");
}

static KnutFlow flow(Dice *d, const KnPipeline *p, unsigned i)
{
    const KnutDataset *target = &p->datasets.items[i % p->datasets.len];
    KnutFlow it = {.name = roll(d, 3) ? kn_arena_printf(d->arena, "f_%s", target->name)
                                      : kn_arena_printf(d->arena, "flow %u", i),
                   .target = target->name,
                   .expectations = expectations(d),
                   .comment = roll(d, 4) ? NULL : text(d),
                   .once = roll(d, 5) == 0};
    unsigned kind = roll(d, 3);
    if (kind == 1) {
        streaming(d, &it);
    } else if (kind == 2) {
        cdc(d, &it);
    } else {
        it.reads = keep(d, KNUT_NAMES("\"x.y\".z", "a", "b"));
        it.query = "SELECT * FROM b JOIN a USING (i) WHERE i IN (SELECT i FROM \"x.y\".z)";
    }
    return it;
}

/* A flow of each dataset at least, so that no view is without. */
static KnPipeline *pipeline(Dice *d)
{
    KnPipelineBuilder *b = kn_pipeline_builder_new(d->arena, text(d));
    unsigned n = 1 + roll(d, 5);
    b->spec.default_catalog = maybe(d, "my cat");
    b->spec.default_database = maybe(d, "db");
    b->spec.storage = maybe(d, text(d));
    b->spec.properties = pairs(d);
    for (unsigned i = 0; i < roll(d, 3); i++)
        (void)kn_pipeline_add_input(b, &(KnutInput){.name = dataset_name(d, 100 + i),
                                                    .path = text(d),
                                                    .format = maybe(d, "csv"),
                                                    .partition_cols = names(d, 2),
                                                    .schema = schema(d),
                                                    .options = pairs(d),
                                                    .comment = maybe(d, text(d))});
    for (unsigned i = 0; i < n; i++) {
        KnutDataset it = dataset(d, i);
        (void)kn_pipeline_add_dataset(b, &it);
    }
    for (unsigned i = 0; i < n + roll(d, 3); i++) {
        KnutFlow it = flow(d, &b->spec, i);
        (void)kn_pipeline_add_flow(b, &it);
    }
    return kn_pipeline_copy(d->arena, &b->spec);
}

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
    const char *value = getenv(name);
    return value && *value ? strtoull(value, NULL, 10) : otherwise;
}

static void random_pipelines_survive(void **state)
{
    Script *s = *state;
    uint64_t seed = from_environment("KN_TEST_SEED", (uint64_t)time(NULL));
    uint64_t steps = from_environment("KN_TEST_STEPS", 50);
    print_message("KN_TEST_SEED=%llu\n", (unsigned long long)seed);
    Dice dice = {.arena = s->arena, .rng = {seed}};
    for (uint64_t i = 0; i < steps; i++) {
        const KnPipeline *p = pipeline(&dice);
        const char *text_of_p = script_write(s, p);
        const char *notes = script_notes(s);
        if (*notes)
            fail_msg("step %llu: %s\n%s", (unsigned long long)i, notes, text_of_p);
        assert_pipeline(script_read(s, text_of_p), p);
    }
}

#define test(f) cmocka_unit_test_setup_teardown(f, script_setup, script_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(definitions_survive),
        test(flows_survive),
        test(the_surface_writes_with_the_engine_at_hand),
        test(what_is_own_stays_where_it_was),
        test(what_sql_cannot_say_is_named),
        test(what_does_not_read_back_is_named_too),
        test(random_pipelines_survive),
    };
    return cmocka_run_group_tests_name("pipeline.sql_write", tests, NULL, script_close_engine);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * selftest.c - see selftest.h.
 *
 * The checks go through the sink's own code: its CREATE TABLE, its encoders, its judging of
 * answers. Values are read back as text, one column a check, so that a type that does not arrive is
 * told by name. Spaces and quotes do not count in nested values: versions write them differently. A
 * failed check does not keep the next one from being made.
 */
#include "cdc/sinks/doris/selftest.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "doris_internal.h"
#include "engine/engine.h"

enum { JSON_ROW = 1, ARROW_ROW = 2 };

typedef struct Value {
    const char *column, *type, *sql;
    const char *text; /* as the cluster writes it, or two spellings with '|' between */
} Value;
static const Value VALUES[] = {
    {"b", "boolean", "true", "1|true"},
    {"i", "int", "(-2147483648)::INTEGER", "-2147483648"},
    {"l", "long", "9223372036854775807", "9223372036854775807"},
    {"f", "float", "0.5::FLOAT", "0.5"},
    {"d", "double", "-1234.25::DOUBLE", "-1234.25"},
    {"dec", "decimal(38,18)", "'-12345678901234567890.000000000000000001'::DECIMAL(38,18)",
     "-12345678901234567890.000000000000000001"},
    {"day", "date", "DATE '2024-02-29'", "2024-02-29"},
    {"t", "time", "TIME '23:59:59.999999'", "23:59:59.999999"},
    {"ts", "timestamp", "TIMESTAMP '2024-03-31 01:59:59.000001'", "2024-03-3101:59:59.000001"},
    {"tz", "timestamptz", "TIMESTAMPTZ '2024-03-31 01:59:59.000001+00'",
     "2024-03-3101:59:59.000001"},
    {"s", "string", "'é😀\\{:},'", "é😀\\{:},"},
    {"u", "uuid", "'00112233-4455-6677-8899-aabbccddeeff'::UUID",
     "00112233-4455-6677-8899-aabbccddeeff"},
    {"bin", "binary", "'abc'::BLOB", "abc"},
    {"list", "list<int>", "[1, NULL, 3]::INTEGER[]", "[1,null,3]"},
    {"m", "map<string,long>", "MAP {'k': 7}::MAP(VARCHAR, BIGINT)", "{k:7}"},
    {"st", "struct<a:int,b:string>", "{'a': 1::INTEGER, 'b': 'x'}", "{a:1,b:x}"},
};
#define N_VALUES (sizeof(VALUES) / sizeof(VALUES[0]))
/* An instant that was sent eight hours early and shown as it was sent. */
static const char EARLY[] = "2024-03-3017:59:59.000001";

typedef struct Test {
    const KnDorisSelftest *what;
    KnDoris *dor;
    KnEngine *eng;
    KnSession *ses;
    KnArena *arena;
    const char *run; /* part of names and labels */
    const char *types_table, *keys_table;
    int64_t loads;
    int failed;
} Test;

static void tell(Test *test, const char *check, KnCode rc, const char *detail, const KnErr *err)
{
    bool ok = rc == KN_OK;
    test->failed += !ok;
    test->what->tell(test->what->arg, check, ok, ok ? detail : err->msg);
}

/* ---- loads ---- */

static KnCode next_batch(void *arg, KnBatch **ret, KnErr *err)
{
    return kn_stream_next(arg, ret, err);
}

typedef struct Step {
    const char *schema, *sql, *key, *label; /* label NULL = a new one */
    int64_t sequence;
    bool untouched, repeated;
    KnChunkOp op;
} Step;

static const char *new_label(Test *test)
{
    return kn_arena_printf(test->arena, "knut-selftest-%s-%" PRId64, test->run, test->loads++);
}

/* One row through the sink, as a delivery would. */
static KnCode load(Test *test, const char *table, const Step *step, KnVerdict *ret, KnErr *err)
{
    KnDoris *dor = test->dor;
    KnSchema *schema = NULL;
    KnStream *stream = NULL;
    dor->table = table;
    dor->where = kn_arena_printf(test->arena, "doris %s.%s", dor->db, table);
    KN_TRY(kn_schema_parse_text(test->arena, kn_str(step->schema), &schema, err));
    const KnSinkWindow win = {.first = true,
                              .untouched = step->untouched,
                              .deletes = step->op == KN_CHUNK_DELETE,
                              .id = test->run,
                              .sequence = step->sequence,
                              .schema = schema,
                              .mode = KN_SINK_UPSERT,
                              .keys = &step->key,
                              .n_keys = step->key ? 1 : 0};
    KN_TRY(kn_sink_begin(&dor->base, &win, err));
    KN_TRY(kn_session_query(test->ses, step->sql, &stream, err));
    const KnRowSource rows = {.next = next_batch, .arg = stream};
    const KnSinkChunk chunk = {.label = step->label ? step->label : new_label(test),
                               .op = step->op,
                               .rows = 1,
                               .resent = step->repeated};
    KnCode rc = kn_sink_load(&dor->base, &chunk, &rows, ret, err);
    (void)kn_stream_close(stream);
    return rc;
}

/* The first cell of a statement's answer as text, "" when there is none. */
static KnCode ask(Test *test, const char *sql, const char **ret, KnErr *err)
{
    KN_JSON_AUTO rows = NULL;
    KN_TRY(kn_doris_statement(test->dor, test->arena, sql, &rows, err));
    const json_t *cell = json_array_get(json_array_get(rows, 0), 0);
    *ret = json_is_string(cell) ? kn_arena_strdup(test->arena, json_string_value(cell))
           : json_is_integer(cell)
               ? kn_arena_printf(test->arena, "%" JSON_INTEGER_FORMAT, json_integer_value(cell))
               : "";
    return KN_OK;
}

static const char *name_of(Test *test, const char *table)
{
    KN_BUF_AUTO out;
    kn_buf_init(&out, 4096);
    kn_doris_ident(&out, test->dor->db);
    kn_buf_char(&out, '.');
    kn_doris_ident(&out, table);
    return kn_arena_strndup(test->arena, out.data, out.len);
}

static KnCode count_is(Test *test, const char *table, const char *wanted, KnErr *err)
{
    const char *got;
    KN_TRY(ask(test, kn_arena_printf(test->arena, "SELECT count(*) FROM %s", name_of(test, table)),
               &got, err));
    if (strcmp(got, wanted) == 0)
        return KN_OK;
    return kn_err_set(err, KN_E_IO, "%s has %s rows, expected %s", table, got, wanted);
}

/* Without spaces and quotes, in lower case. */
static void plain(char *text)
{
    char *to = text;
    for (; *text; ++text)
        if (!strchr(" \"'", *text))
            *to++ = (char)tolower((unsigned char)*text);
    *to = '\0';
}

static KnCode read_value(Test *test, const char *column, int row, char **ret, KnErr *err)
{
    const char *got;
    const char *sql =
        kn_arena_printf(test->arena, "SELECT CAST(`%s` AS STRING) FROM %s WHERE `id` = %d", column,
                        name_of(test, test->types_table), row);
    KN_TRY(ask(test, sql, &got, err));
    *ret = kn_arena_strdup(test->arena, got);
    plain(*ret);
    return KN_OK;
}

/* ---- types ---- */

static const char *schema_text(KnArena *arena)
{
    const char *text = "id long required";
    for (size_t i = 0; i < N_VALUES; ++i)
        text = kn_arena_printf(arena, "%s, %s %s", text, VALUES[i].column, VALUES[i].type);
    return text;
}

static const char *row_sql(KnArena *arena, int id)
{
    const char *text = kn_arena_printf(arena, "SELECT %d::BIGINT AS id", id);
    for (size_t i = 0; i < N_VALUES; ++i)
        text = kn_arena_printf(arena, "%s, %s AS %s", text, VALUES[i].sql, VALUES[i].column);
    return text;
}

static bool is_instant(const Value *value)
{
    return strcmp(value->type, "timestamp") == 0 || strcmp(value->type, "timestamptz") == 0;
}

static KnCode check_value(Test *test, const Value *value, int row, const char **ret, KnErr *err)
{
    char *got;
    KN_TRY(read_value(test, value->column, row, &got, err));
    const char *bar = strchr(value->text, '|');
    size_t first = bar ? (size_t)(bar - value->text) : strlen(value->text);
    bool same = (strlen(got) == first && memcmp(got, value->text, first) == 0) ||
                (bar && strcmp(got, bar + 1) == 0);
    *ret = got;
    if (same)
        return KN_OK;
    if (row == ARROW_ROW && is_instant(value) && strcmp(got, EARLY) == 0) {
        *ret = "say arrow-zone=0";
        return KN_OK;
    }
    return kn_err_set(err, KN_E_IO, "%s came back as %s", value->text, got[0] ? got : "NULL");
}

static void check_types(Test *test, const char *format, int row)
{
    KnVerdict verdict = {0};
    KnErr err = {0};
    test->dor->set.arrow = row == ARROW_ROW;
    test->dor->set.arrow_zone = 8;
    const Step step = {.schema = schema_text(test->arena),
                       .sql = row_sql(test->arena, row),
                       .op = KN_CHUNK_INSERT,
                       .untouched = row == JSON_ROW};
    KnCode rc = load(test, test->types_table, &step, &verdict, &err);
    test->dor->set.arrow = false;
    tell(test, kn_arena_printf(test->arena, "%s: load", format), rc, "all columns", &err);
    for (size_t i = 0; rc == KN_OK && i < N_VALUES; ++i) {
        const char *detail = "";
        KnErr why = {0};
        KnCode same = check_value(test, &VALUES[i], row, &detail, &why);
        if (row == ARROW_ROW && is_instant(&VALUES[i]) && strcmp(detail, "say arrow-zone=0") != 0)
            detail = "say arrow-zone=8";
        tell(test, kn_arena_printf(test->arena, "%s: %s", format, VALUES[i].type), same, detail,
             &why);
    }
}

/* ---- labels ---- */

static KnCode state_is(Test *test, const char *label, KnDorisState wanted, KnErr *err)
{
    static const char *const NAMES[] = {"UNKNOWN", "PREPARE", "PRECOMMITTED", "VISIBLE", "ABORTED"};
    KnDorisState state;
    KN_TRY(kn_doris_state(test->dor, label, &state, err));
    if (state == wanted)
        return KN_OK;
    return kn_err_set(err, KN_E_IO, "the label's state is %s, expected %s", NAMES[state],
                      NAMES[wanted]);
}

static const char KEYS_SCHEMA[] = "id long required, v string";

static KnCode label_once(Test *test, const char *label, KnErr *err)
{
    KnVerdict verdict = {0};
    Step step = {.schema = KEYS_SCHEMA,
                 .sql = "SELECT 1::BIGINT AS id, 'a' AS v",
                 .key = "id",
                 .label = label,
                 .op = KN_CHUNK_INSERT,
                 .sequence = 10,
                 .untouched = true};
    KN_TRY(load(test, test->keys_table, &step, &verdict, err));
    step.untouched = false;
    step.repeated = true;
    KN_TRY(load(test, test->keys_table, &step, &verdict, err));
    if (verdict.kind != KN_VERDICT_DUPLICATE)
        return kn_err_set(err, KN_E_IO, "the same label was loaded twice");
    return count_is(test, test->keys_table, "1", err);
}

/* An end put to what has ended must change nothing. */
static KnCode fence_finished(Test *test, const char *label, KnErr *err)
{
    KN_BUF_AUTO answer;
    kn_buf_init(&answer, 65536);
    const KnHttpHeader who = {"label", label};
    KN_TRY(kn_doris_2pc(test->dor, &who, "abort", &answer, err));
    KN_TRY(state_is(test, label, KN_DORIS_STATE_LANDED, err));
    return count_is(test, test->keys_table, "1", err);
}

static void check_labels(Test *test)
{
    KnErr err = {0};
    const char *label = new_label(test);
    tell(test, "label: taken once", label_once(test, label, &err), "Label Already Exists", &err);
    tell(test, "label: state", state_is(test, label, KN_DORIS_STATE_LANDED, &err), "VISIBLE", &err);
    tell(test, "label: unknown state",
         state_is(test, "knut-selftest-never-sent", KN_DORIS_STATE_UNKNOWN, &err), "UNKNOWN", &err);
    tell(test, "label: fence", fence_finished(test, label, &err), "what has landed stays", &err);
}

/* ---- keys ---- */

static KnCode put(Test *test, const char *sql, int64_t sequence, KnChunkOp op, KnErr *err)
{
    KnVerdict verdict = {0};
    const Step step = {
        .schema = KEYS_SCHEMA, .sql = sql, .key = "id", .sequence = sequence, .op = op};
    return load(test, test->keys_table, &step, &verdict, err);
}

static KnCode value_is(Test *test, const char *wanted, KnErr *err)
{
    const char *got;
    KN_TRY(ask(test,
               kn_arena_printf(test->arena, "SELECT CAST(`v` AS STRING) FROM %s WHERE `id` = 1",
                               name_of(test, test->keys_table)),
               &got, err));
    if (strcmp(got, wanted) == 0)
        return KN_OK;
    return kn_err_set(err, KN_E_IO, "the row is '%s', expected '%s'", got, wanted);
}

static KnCode upsert(Test *test, KnErr *err)
{
    KN_TRY(put(test, "SELECT 1::BIGINT AS id, 'b' AS v", 11, KN_CHUNK_INSERT, err));
    KN_TRY(count_is(test, test->keys_table, "1", err));
    return value_is(test, "b", err);
}

static KnCode older_sequence(Test *test, KnErr *err)
{
    KN_TRY(put(test, "SELECT 1::BIGINT AS id, 'old' AS v", 5, KN_CHUNK_INSERT, err));
    return value_is(test, "b", err);
}

static KnCode delete_and_return(Test *test, KnErr *err)
{
    KN_TRY(put(test, "SELECT 1::BIGINT AS id, NULL::VARCHAR AS v", 12, KN_CHUNK_DELETE, err));
    KN_TRY(count_is(test, test->keys_table, "0", err));
    KN_TRY(put(test, "SELECT 1::BIGINT AS id, 'c' AS v", 13, KN_CHUNK_INSERT, err));
    return value_is(test, "c", err);
}

static void check_keys(Test *test)
{
    KnErr err = {0};
    tell(test, "keys: upsert", upsert(test, &err), "the later row", &err);
    tell(test, "keys: sequence", older_sequence(test, &err), "a lower one changes nothing", &err);
    tell(test, "keys: delete", delete_and_return(test, &err), "gone, and there again", &err);
}

/* ---- two phases ---- */

static KnCode hold(Test *test, const char *label, const char *sql, KnVerdict *ret, KnErr *err)
{
    const Step step = {.schema = KEYS_SCHEMA,
                       .sql = sql,
                       .key = "id",
                       .label = label,
                       .op = KN_CHUNK_INSERT,
                       .sequence = 14};
    test->dor->set.two_phase = true;
    KnCode rc = load(test, test->keys_table, &step, ret, err);
    test->dor->set.two_phase = false;
    KN_TRY(rc);
    if (ret->kind != KN_VERDICT_HELD)
        return kn_err_set(err, KN_E_IO, "the load was not held");
    KN_TRY(state_is(test, label, KN_DORIS_STATE_PRECOMMITTED, err));
    return count_is(test, test->keys_table, "1", err);
}

static KnCode commit_held(Test *test, KnErr *err)
{
    KnVerdict verdict = {0};
    const char *label = new_label(test);
    KN_TRY(hold(test, label, "SELECT 2::BIGINT AS id, 'd' AS v", &verdict, err));
    KN_TRY(kn_doris_commit_held(test->dor, label, verdict.hold, err));
    return count_is(test, test->keys_table, "2", err);
}

static KnCode drop_held(Test *test, KnErr *err)
{
    KnVerdict verdict = {0};
    const char *label = new_label(test);
    KN_TRY(put(test, "SELECT 2::BIGINT AS id, NULL::VARCHAR AS v", 15, KN_CHUNK_DELETE, err));
    KN_TRY(hold(test, label, "SELECT 3::BIGINT AS id, 'e' AS v", &verdict, err));
    kn_doris_drop_held(test->dor, label, verdict.hold);
    KN_TRY(state_is(test, label, KN_DORIS_STATE_ABORTED, err));
    return count_is(test, test->keys_table, "1", err);
}

static void check_two_phase(Test *test)
{
    KnErr err = {0};
    tell(test, "two-phase-commit: commit", commit_held(test, &err), "shown after it", &err);
    tell(test, "two-phase-commit: abort", drop_held(test, &err), "never shown", &err);
}

/* ---- all ---- */

static void clean_up(Test *test)
{
    const char *const tables[] = {test->types_table, test->keys_table};
    KnErr err = {0};
    KnCode rc = KN_OK;
    for (size_t i = 0; i < 2; ++i) {
        const char *sql =
            kn_arena_printf(test->arena, "DROP TABLE IF EXISTS %s", name_of(test, tables[i]));
        KnCode one = kn_doris_statement(test->dor, test->arena, sql, NULL, &err);
        rc = rc == KN_OK ? one : rc;
    }
    tell(test, "clean up", rc, "both tables dropped", &err);
}

static KnCode run(Test *test, KnErr *err)
{
    const KnEngineOptions eopts = {.threads = 1};
    KN_TRY(kn_engine_open(&eopts, &test->eng, err));
    KN_TRY(kn_session_open(test->eng, &test->ses, err));
    test->dor->set.create_table = true;
    test->dor->set.two_phase = false;
    check_types(test, "json", JSON_ROW);
    check_types(test, "arrow", ARROW_ROW);
    check_labels(test);
    check_keys(test);
    check_two_phase(test);
    clean_up(test);
    if (test->failed)
        return kn_err_set(err, KN_E_IO, "%d checks failed", test->failed);
    return KN_OK;
}

KnCode kn_doris_selftest(const KnDorisSelftest *what, KnErr *err)
{
    Test test = {.what = what, .arena = kn_arena_new(16384)};
    KnSink *sink = NULL;
    test.run = kn_arena_printf(test.arena, "%" PRIx64, (uint64_t)kn_random_id());
    test.types_table = kn_arena_printf(test.arena, "knut_selftest_types_%s", test.run);
    test.keys_table = kn_arena_printf(test.arena, "knut_selftest_keys_%s", test.run);
    const KnSinkOptions opts = {
        .place = what->place,
        .target = kn_arena_printf(test.arena, "%s.%s", what->database, test.types_table),
        .delivery = "selftest",
        .spill_dir = what->spill_dir};
    KnCode rc = kn_sink_doris.open(&opts, &sink, err);
    test.dor = (KnDoris *)sink;
    if (rc == KN_OK)
        rc = run(&test, err);
    test.ses = kn_session_close(test.ses);
    test.eng = kn_engine_close(test.eng);
    (void)kn_sink_close(sink);
    (void)kn_arena_free(test.arena);
    return rc;
}

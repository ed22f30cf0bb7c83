/* SPDX-License-Identifier: Apache-2.0 */
/* test_sql_errors.c - what is refused, and with which words at which place. */
#include "unit/pipeline/sql_support.h"

typedef struct Refusal {
    const char *text;
    const char *message;
} Refusal;

static void refuse(Script *s, const Refusal *refusals, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *message = script_fails(s, refusals[i].text);
        if (!strstr(message, refusals[i].message))
            fail_msg("%s\nwanted: %s\ngot:    %s", refusals[i].text, refusals[i].message, message);
    }
}

#define refuse_all(s, list) refuse((s), (list), sizeof(list) / sizeof(*(list)))

static void what_is_no_definition_is_refused_with_what_would_be(void **state)
{
    static const Refusal list[] = {
        {"SELECT 1", "p.sql:1:1: expected a definition (CREATE ..., AUTO CDC INTO ...), SET or "
                     "USE: a script says what a pipeline is, found 'SELECT'"},
        {"CREATE OR DROP VIEW v", "p.sql:1:11: expected REFRESH or REPLACE after CREATE OR, found "
                                  "'DROP'"},
        {"CREATE INDEX i", "p.sql:1:8: expected MATERIALIZED VIEW, STREAMING TABLE, TABLE, "
                           "[TEMPORARY] VIEW, SINK, INPUT or FLOW after CREATE, found 'INDEX'"},
        {"CREATE FLOW f COMMENTS 'c' AS INSERT INTO a SELECT 1",
         "p.sql:1:15: expected AS, found 'COMMENTS'"},
        {"CREATE FLOW f AS INSERT a SELECT 1",
         "p.sql:1:18: expected INSERT INTO, AUTO CDC INTO or APPLY CHANGES INTO, found 'INSERT'"},
        {"CREATE VIEW", "p.sql:1:12: expected a name, found the end of the script"},
        {"CREATE VIEW v SORTED BY (a) AS SELECT 1",
         "p.sql:1:15: expected a clause of the definition, AS or ';', found 'SORTED'"},
        {"CREATE VIEW a AS SELECT 1;\nUSE x;", "p.sql:2:5: USE holds for the whole pipeline"},
        {"SET x;", "p.sql:1:6: expected =, found ';'"},
    };
    refuse_all(*state, list);
}

static void columns_and_constraints_are_refused_where_they_stop_making_sense(void **state)
{
    static const Refusal list[] = {
        {"CREATE STREAMING TABLE t (\n  x INT GENERATED ALWAYS AS (1))",
         "p.sql:2:9: expected NOT NULL, COMMENT, PRIMARY KEY, ',' or ')', found 'GENERATED'"},
        {"CREATE STREAMING TABLE t (x)", "p.sql:1:28: expected a type (BIGINT, STRING,"},
        {"CREATE STREAMING TABLE t (x GEOMETRY)", "p.sql:1:29: expected a type"},
        {"CREATE STREAMING TABLE t (x INTERVAL)", "p.sql:1:29: expected a type"},
        {"CREATE STREAMING TABLE t (x MAP<INT>)", "p.sql:1:36: expected ,, found '>'"},
        {"CREATE STREAMING TABLE t (x DECIMAL(40, 2))",
         "p.sql:1:36: a DECIMAL has a precision from 1 to 38"},
        {"CREATE STREAMING TABLE t (CONSTRAINT c CHECK (x > 0))",
         "p.sql:1:40: expected EXPECT (condition) or PRIMARY KEY (columns), found 'CHECK'"},
        {"CREATE STREAMING TABLE t (CONSTRAINT c EXPECT x > 0)",
         "p.sql:1:47: expected (, found 'x'"},
        {"CREATE STREAMING TABLE t (CONSTRAINT c EXPECT ())",
         "p.sql:1:48: expected a condition, found ')'"},
        {"CREATE STREAMING TABLE t (CONSTRAINT c EXPECT (x > 0) ON VIOLATION IGNORE)",
         "p.sql:1:68: expected DROP ROW or FAIL UPDATE after ON VIOLATION, found 'IGNORE'"},
        {"CREATE STREAMING TABLE t (CONSTRAINT c EXPECT (`a b` > AND 1))",
         "p.sql:1:56: syntax error at or near \"AND\""},
        {"CREATE STREAMING TABLE t (CONSTRAINT c EXPECT (x >))",
         "p.sql:1:51: syntax error at or near"},
        {"CREATE STREAMING TABLE t (CONSTRAINT c EXPECT (x rlike 'a'))",
         "p.sql:1:50: syntax error at or near \"rlike\" (Spark's own; write regexp_matches("},
        {"CREATE STREAMING TABLE t PARTITIONED BY (days(ts) + )", "p.sql:1:52: syntax error"},
        {"CREATE STREAMING TABLE t TBLPROPERTIES (=)",
         "p.sql:1:41: expected a property's key, found '='"},
        {"CREATE STREAMING TABLE t TBLPROPERTIES (a. = 1)",
         "p.sql:1:44: expected a name, found '='"},
        {"CREATE STREAMING TABLE t PARTITIONED BY ()",
         "p.sql:1:42: expected a column or a transform of one, found ')'"},
        {"CREATE STREAMING TABLE t COMMENT 7", "p.sql:1:34: expected a comment between quotes"},
        {"CREATE STREAMING TABLE t COMMENT '\\u12'", "p.sql:1:34: a text with an escape"},
        {"CREATE VIEW v LOCATION 'x' AS SELECT 1", "p.sql:1:15: a VIEW has no LOCATION"},
        {"CREATE INPUT i USING csv", "p.sql:1:14: the input 'i' has no LOCATION 'path'"},
    };
    refuse_all(*state, list);
}

static void tokens_that_do_not_end_are_named_where_they_begin(void **state)
{
    static const Refusal list[] = {
        {"CREATE VIEW v AS\nSELECT 'x", "p.sql:2:8: a text that does not end"},
        {"CREATE VIEW `v AS SELECT 1", "p.sql:1:13: a quoted name that does not end"},
        {"CREATE VIEW v /* here AS SELECT 1", "p.sql:1:15: a comment that does not end"},
        {"CREATE VIEW v AS SELECT $x$ 1", "p.sql:1:25: a text between dollars that does not end"},
        {"CREATE VIEW v\x01 AS SELECT 1", "p.sql:1:14: a control character"},
        {"CREATE VIEW \xff", "p.sql: is not UTF-8"},
        {"-- \xC3\xA9\nCREATE VIEW \xC3\xA9\xC3\xA9 IS", "p.sql:2:16: expected a clause"},
    };
    refuse_all(*state, list);
}

static void queries_are_refused_at_their_place_in_the_file(void **state)
{
    static const Refusal list[] = {
        {"CREATE VIEW a AS SELECT 1;\n\nCREATE VIEW v AS\n  SELECT x\n  FROM t WHERE WHERE y",
         "p.sql:5:16: syntax error at or near \"WHERE\""},
        {"CREATE STREAMING TABLE v AS SELECT `\xC3\xA9`, * FROM\n STREAM(t) WATERMARK ts DELAY OF "
         "INTERVAL 3 SECONDS AS x WHERE AND y",
         "p.sql:2:64: syntax error at or near \"AND\""},
        {"CREATE VIEW v AS SELECT a FROM t WHERE x RLIKE 'a'",
         "p.sql:1:42: syntax error at or near \"RLIKE\" (Spark's own; write regexp_matches(text, "
         "pattern))"},
        {"CREATE VIEW v AS\nSELECT a FROM t LATERAL VIEW explode(l) AS x",
         "(Spark's own; write CROSS JOIN UNNEST(list) AS t(x))"},
        {"CREATE MATERIALIZED VIEW a AS\nINSERT INTO x SELECT 1",
         "p.sql:2:1: expected a query (SELECT, WITH, VALUES or FROM)"},
        {"CREATE MATERIALIZED VIEW v AS SELECT 1 AS a PARTITIONED BY (a)",
         "p.sql:1:45: syntax error at or near \"PARTITIONED\" (clauses stand before AS)"},
        {"CREATE VIEW v AS;", "p.sql:1:17: expected a query, found ';'"},
        {"CREATE VIEW v AS SELECT (1;", "p.sql:1:27: expected a bracket that closes the query's"},
        {"CREATE VIEW v AS SELECT 1);", "p.sql:1:26: expected the end of the query, found ')'"},
        {"CREATE VIEW v", "p.sql:1:13: the view 'v' has no query: expected AS SELECT"},
    };
    refuse_all(*state, list);
}

static void streams_are_refused_where_they_cannot_be(void **state)
{
    static const Refusal list[] = {
        {"CREATE STREAMING TABLE t AS SELECT * FROM STREAM()",
         "p.sql:1:50: expected a name behind STREAM, found ')'"},
        {"CREATE STREAMING TABLE t AS SELECT * FROM STREAM(range(3))",
         "p.sql:1:50: expected STREAM of a name, read_files('dir'), read_kafka(...) or "
         "read_iceberg('ns.table'), found 'range'"},
        {"CREATE STREAMING TABLE t AS SELECT * FROM STREAM(rate())",
         "p.sql:1:50: expected STREAM of a name, read_files('dir'), read_kafka(...) or "
         "read_iceberg('ns.table'), found 'rate'"},
        {"CREATE STREAMING TABLE t AS SELECT * FROM STREAM(read_kafka(subscribe => 't'))",
         "p.sql:1:50: read_kafka needs bootstrapServers"},
        {"CREATE STREAMING TABLE t AS SELECT * FROM STREAM(read_files('x', formt => 'csv'))",
         "p.sql:1:66: no argument 'formt'"},
        {"CREATE STREAMING TABLE t AS SELECT * FROM b WATERMARK ts DELAY OF INTERVAL 1 SECOND",
         "p.sql:1:45: WATERMARK stands behind STREAM(...) only"},
        {"CREATE STREAMING TABLE t AS SELECT * FROM STREAM(b) WATERMARK ts DELAY OF INTERVAL 1 "
         "MONTH",
         "p.sql:1:86: expected a unit from MILLISECONDS to WEEKS, found 'MONTH'"},
        {"CREATE STREAMING TABLE t AS SELECT count(*) FROM STREAM(b) GROUP BY window(ts, '1 "
         "minute')",
         "p.sql:1:69: a window needs the event time of its stream"},
        {"CREATE STREAMING TABLE t AS SELECT count(*) FROM STREAM(b) WATERMARK ts DELAY OF "
         "INTERVAL 1 SECOND GROUP BY window(tt, '1 minute')",
         "p.sql:1:116: the window is over 'tt', the WATERMARK on 'ts'"},
        {"CREATE MATERIALIZED VIEW t AS SELECT count(*) FROM b GROUP BY window(ts, '1 minute')",
         "p.sql:1:63: only a streaming flow has a window"},
        {"CREATE STREAMING TABLE t AS SELECT date(window.start) AS d, count(*) FROM STREAM(b) "
         "WATERMARK ts DELAY OF INTERVAL 1 SECOND GROUP BY window(ts, '1 day')",
         "p.sql:1:41: window.start and window.end can only be selected"},
        {"CREATE MATERIALIZED VIEW t TRIGGER AVAILABLE NOW AS SELECT * FROM b",
         "p.sql:1:28: only a streaming flow has a trigger"},
        {"CREATE STREAMING TABLE t TRIGGER AVAILABLE NOW",
         "p.sql:1:26: this belongs to a flow: to AS query, or to CREATE FLOW"},
    };
    refuse_all(*state, list);
}

static void change_data_is_refused_without_keys_or_order(void **state)
{
    static const Refusal list[] = {
        {"CREATE FLOW f AS AUTO CDC INTO t FROM s SEQUENCE BY x",
         "p.sql:1:13: the changes of 'f' have no KEYS (columns)"},
        {"APPLY CHANGES INTO t FROM s KEYS (a)",
         "p.sql:1:20: the changes of 'f_t' have no SEQUENCE BY column"},
        {"APPLY CHANGES INTO t FROM s KEYS () SEQUENCE BY x", "p.sql:1:35: expected a name"},
        {"APPLY CHANGES INTO t FROM s KEYS (a) SEQUENCE BY x STORED AS SCD TYPE 3",
         "p.sql:1:71: expected 1 or 2 after SCD TYPE, found '3'"},
        {"APPLY CHANGES INTO t FROM s KEYS (a) SEQUENCE BY APPLY AS DELETE WHEN x",
         "p.sql:1:50: expected a column, found 'APPLY'"},
        {"APPLY CHANGES INTO t FROM s KEYS (a) ORDER BY x",
         "p.sql:1:38: expected KEYS, SEQUENCE BY"},
        {"APPLY CHANGES INTO t FROM s KEYS (a) SEQUENCE BY x COLUMNS * (a)",
         "p.sql:1:62: expected EXCEPT, found '('"},
    };
    refuse_all(*state, list);
}

static void all_that_is_wrong_is_told_at_once(void **state)
{
    Script *s = *state;
    const char *message = script_fails(s, "CREATE VIEW a AS SELECT FROM;\n"
                                          "CREATE VIEW b AS SELECT 1;\n"
                                          "CREATE STREAMING TABLE c (x WRONG);\n"
                                          "CREATE NOTHING;\n");
    assert_has(message, "p.sql:1:");
    const char *notes = script_notes(s);
    assert_has(notes, "3:29: expected a type");
    assert_has(notes, "4:8: expected MATERIALIZED VIEW");
    assert_int_equal(s->notes.list.len, 2);
}

static void deep_nesting_is_refused_not_followed(void **state)
{
    char text[2000] = "CREATE STREAMING TABLE t (x ";
    for (size_t i = 0; i < 250; i++)
        strncat(text, "ARRAY<", sizeof(text) - strlen(text) - 1);
    assert_has(script_fails(*state, text), "types are nested more than 200 deep");
    char query[2000] = "CREATE VIEW v AS SELECT ";
    for (size_t i = 0; i < 250; i++)
        strncat(query, "(", sizeof(query) - strlen(query) - 1);
    assert_has(script_fails(*state, query), "brackets are nested more than 200 deep");
}

#define test(f) cmocka_unit_test_setup_teardown(f, script_setup, script_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(what_is_no_definition_is_refused_with_what_would_be),
        test(columns_and_constraints_are_refused_where_they_stop_making_sense),
        test(tokens_that_do_not_end_are_named_where_they_begin),
        test(queries_are_refused_at_their_place_in_the_file),
        test(streams_are_refused_where_they_cannot_be),
        test(change_data_is_refused_without_keys_or_order),
        test(all_that_is_wrong_is_told_at_once),
        test(deep_nesting_is_refused_not_followed),
    };
    return cmocka_run_group_tests_name("pipeline.sql_errors", tests, NULL, script_close_engine);
}

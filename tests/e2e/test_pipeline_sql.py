# SPDX-License-Identifier: Apache-2.0
"""Pipelines as SQL: what the document shows is read, what other forms hold is written and comes back, losses are named."""
import json
import re

import pytest

from lib.program import TOP

SAMPLES = sorted((TOP / "tests/data/pipelines").glob("*.ron"))
DOCUMENT = (TOP / "docs/pipeline-sql.md").read_text()
EXAMPLES = re.findall(r"```sql\n(.*?)```", DOCUMENT, re.S)
# Samples with what SQL cannot say: projection and filter, flows without queries.
LOSSY = {"pushdown_expectations": 2, "streaming_defaults": 6}


@pytest.fixture
def script(tmp_path):
    def write(text, name="shop.sql"):
        path = tmp_path / name
        path.write_text(text)
        return path
    return write


def test_what_the_document_shows_is_one_pipeline_and_survives_being_written(knut, script):
    path = script("\n".join([EXAMPLES[-1], *EXAMPLES[:-1]]))  # the last one is what stands before definitions
    read = knut("pipeline", "convert", path, "--to", "json").ok()
    written = knut("pipeline", "convert", path, "--to", "sql", "--strict").ok()
    assert not read.err and not written.err
    again = knut("pipeline", "convert", script(written.out, "written.sql"), "--to", "json").ok()
    assert again.out == read.out
    spec = json.loads(read.out)
    assert spec["name"] == "shop" and len(spec["datasets"]) > 8
    flows = {f["name"]: f for f in spec["flows"]}
    minute = flows["f_per_minute"]["kind"]["streaming"]
    assert minute["watermark"] == {"event_time_column": "ts", "allowed_lateness_ms": 10000, "idle_timeout_ms": 60000}
    assert minute["window"] == {"tumbling": {"size_ms": 60000}}
    assert flows["f_per_minute"]["query"] == "SELECT page, count(*) AS n\nFROM clicks\nGROUP BY page"
    assert flows["customers_cdc"]["kind"]["cdc"]["cdc"]["scd_type"] == "type2"


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda p: p.stem)
def test_other_forms_come_back_from_sql_or_losses_are_named(knut, tmp_path, sample):
    lost = LOSSY.get(sample.stem, 0)
    strict = knut("pipeline", "convert", sample, "-o", tmp_path / "strict.sql", "--strict")
    assert strict.rc == (3 if lost else 0), strict
    assert strict.err.count("flow '") == lost and (f"sql cannot say {lost} things" in strict.err) == bool(lost)
    assert (tmp_path / "strict.sql").exists() == (not lost)
    done = knut("pipeline", "convert", sample, "-o", tmp_path / "p.sql").ok()
    assert done.err.count("\n") == lost
    back = knut("pipeline", "convert", tmp_path / "p.sql", "--to", "ron").ok().out
    assert (back == sample.read_text()) == (not lost)


def test_a_cycle_hidden_in_a_subquery_is_found(knut, script):
    path = script("CREATE MATERIALIZED VIEW a AS SELECT 1 AS x WHERE 1 IN (SELECT x FROM b);\n"
                  "CREATE MATERIALIZED VIEW b AS WITH q AS (SELECT * FROM a) SELECT * FROM q;\n"
                  "CREATE MATERIALIZED VIEW b AS SELECT * FROM range(3);\n"
                  "CREATE FLOW f AS INSERT INTO nowhere BY NAME SELECT 1 AS y;\n")
    found = knut("pipeline", "check", path, "--output", "json").fails(2, "shop.sql").row
    assert {p["rule"] for p in found["problems"]} >= {"cycle", "duplicate-name", "unknown-target"}


def test_an_order_follows_from_what_queries_read(knut, script):
    path = script("CREATE MATERIALIZED VIEW gold AS SELECT (SELECT max(x) FROM silver) AS x;"
                  "CREATE MATERIALIZED VIEW silver AS SELECT * FROM bronze WHERE EXISTS (SELECT 1 FROM bronze);"
                  "CREATE STREAMING TABLE bronze AS SELECT * FROM STREAM(raw)")
    assert "order: bronze silver gold" in knut("pipeline", "check", path).ok().out


def test_all_errors_of_a_script_are_told_with_their_places(knut, script):
    path = script("CREATE VIEW a AS SELECT FROM;\nCREATE VIEW ok AS SELECT 1;\n"
                  "CREATE STREAMING TABLE b (x WRONG);\nCREATE VIEW c AS\n  SELECT x FROM t WHERE x RLIKE 'y';\nSELECT 1;\n")
    done = knut("pipeline", "check", path)
    assert done.rc == 1 and done.out == "" and done.err.count("shop.sql:") == 4
    for told in (r":1:29: syntax error", r":3:29: expected a type", r":5:27: .*RLIKE.*regexp_matches", r":6:1: expected a definition"):
        assert re.search(told, done.err), done.err


@pytest.mark.parametrize("text,pattern", [
    ("CREATE TABLE t (x INT", r"shop\.sql:1:22: expected .*found the end of the script"),
    ("\ufeffCREATE VIEW é AS SELECT 'é' FROM WHERE", r"shop\.sql:1:34: syntax error"),
    ("CREATE VIEW v AS " + "(" * 5000, "nested more than 200 deep"),
    ("CREATE VIEW v AS SELECT '" + "x" * 100000, r"shop\.sql:1:25: a text that does not end"),
    ("APPLY CHANGES INTO t FROM s KEYS (a)", "no SEQUENCE BY"),
])
def test_bad_scripts_are_refused_in_one_line(knut, script, text, pattern):
    done = knut("pipeline", "convert", script(text), "--to", "ron").fails(1, pattern)
    assert done.out == "" and done.err.count("\n") == 1

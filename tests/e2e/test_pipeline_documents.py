# SPDX-License-Identifier: Apache-2.0
"""Pipelines as documents: converted without loss, checked as a whole, refused by line and column."""
import json
import xml.etree.ElementTree as ET

import pytest

from lib.program import TOP

SAMPLES = sorted((TOP / "tests/data/pipelines").glob("*.ron"))
WRONG = """(
    name: "shop",
    datasets: [
        (name: "orders", output_type: table),
        (name: "orders", output_type: sink),
        (name: "a", output_type: table, fromat: Some("csv")),
        (name: "b", output_type: table),
    ],
    flows: [
        (name: "f", target: "oders", kind: batch, query: Some("")),
        (name: "g", target: "a", reads: ["b"], kind: streaming(source: cdc(source: "b"), window: Some(tumbling(size_ms: 0)))),
        (name: "h", target: "b", reads: ["a"], kind: cdc(cdc: (keys: [], sequence_by: "s", scd_type: type1))),
    ],
)
"""


@pytest.fixture
def wrong(tmp_path):
    path = tmp_path / "wrong.ron"
    path.write_text(WRONG)
    return path


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda p: p.stem)
def test_ron_to_json_and_back_is_the_same_document(knut, tmp_path, sample):
    done = knut("pipeline", "convert", sample, "-o", tmp_path / "p.json", "--output", "json").ok()
    assert done.row["form"] == "json" and not done.err
    json.loads((tmp_path / "p.json").read_text())
    assert knut("pipeline", "convert", tmp_path / "p.json", "--to", "ron").ok().out == sample.read_text()


def test_a_relative_name_is_one_in_the_working_folder(knut, tmp_path):
    (tmp_path / "p.ron").write_text('(name: "p", datasets: [], flows: [])')
    knut("pipeline", "convert", "p.ron", "-o", "q.json", cwd=tmp_path).ok()
    assert json.loads((tmp_path / "q.json").read_text()) == {"name": "p", "datasets": [], "flows": []}


def test_the_form_may_be_said_where_the_name_does_not(knut, tmp_path):
    (tmp_path / "p").write_text('{"name": "p", "datasets": [], "flows": []}')
    knut("pipeline", "convert", tmp_path / "p", "--to", "ron").fails(2, "does not say the form", "ron, json")
    assert knut("pipeline", "convert", tmp_path / "p", "--from", "json", "--to", "ron").ok().out.startswith("(\n")
    knut("pipeline", "convert", tmp_path / "p", "--from", "jsn", "--to", "ron").fails(2, "'jsn'", "ron, json")
    knut("pipeline", "convert", tmp_path / "p", "--from", "json").fails(2, "--to")


def test_a_check_tells_all_that_is_wrong_at_once(knut, wrong):
    done = knut("pipeline", "check", wrong, "--output", "json")
    done.fails(2, "wrong.ron", "dataset `orders`: the name is used twice", r"and \d more errors")
    found = done.row
    rules = [p["rule"] for p in found["problems"] if p["severity"] == "error"]
    assert rules == ["duplicate-name", "unknown-target", "empty-text", "zero-window", "cdc-keys", "cycle"]
    assert found["errors"] == len(rules) and found["warnings"] == len(found["problems"]) - len(rules)
    assert found["order"] is None
    by_rule = {p["rule"]: p for p in found["problems"]}
    assert by_rule["unknown-target"]["message"].endswith("did you mean `orders`?")
    assert "`a` -> `b` -> `a`" in by_rule["cycle"]["message"]
    assert by_rule["unknown-field"]["where"].endswith("wrong.ron:6:41")
    assert "did you mean `format`?" in by_rule["unknown-field"]["message"]


def test_what_is_right_is_checked_and_ordered(knut, tmp_path):
    names = ["gold", "bronze", "silver"]
    flows = [{"name": "f" + n, "target": n, "kind": "batch", "query": "SELECT 1",
              "reads": {"gold": ["silver"], "silver": ["bronze"], "bronze": ["raw"]}[n]} for n in names]
    spec = {"name": "p", "datasets": [{"name": n, "output_type": "table"} for n in names], "flows": flows}
    (tmp_path / "p.json").write_text(json.dumps(spec))
    found = knut("pipeline", "check", tmp_path / "p.json", "--output", "json").ok().row
    assert found["order"] == ["bronze", "silver", "gold"] and found["problems"] == []
    assert "order: bronze silver gold" in knut("pipeline", "check", tmp_path / "p.json").ok().out


def test_fields_from_the_future_are_named_and_left_out(knut, wrong):
    done = knut("pipeline", "convert", wrong, "--to", "json").ok()
    assert done.err == (f"{wrong}:6:41: the field `fromat` of Dataset is not known and is left out; "
                        "did you mean `format`?\n")
    assert "fromat" not in done.out


@pytest.mark.parametrize("name,text,pattern", [
    ("p.ron", "", r"p\.ron:1:1: expected a value, found the end of the document"),
    ("p.ron", "(name: \"p\"\n datasets: [])", r"p\.ron:2:2: expected `,` or `\)`"),
    ("p.ron", "(name: \"p\", datasets: [(name: \"a\", output_type: Table)], flows: [])",
     r"p\.ron:1:49: datasets\[0\].output_type: .*did you mean `table`"),
    ("p.ron", "(name: \"p\", datasets: [], flows: [], storage: \"x\")", r"storage: expected Some"),
    ("p.ron", "(" * 1000, "more than 128 deep"),
    ("p.ron", "\x00\x01", "expected a value"),
    ("p.json", "{", r"p\.json: .*line 1"),
    ("p.json", "[]", r"expected an object"),
    ("p.json", '{"name": "p", "datasets": [{}], "flows": []}', r"datasets\[0\]: the field `name` of Dataset is missing"),
])
def test_a_document_that_is_none_is_refused_with_its_place(knut, tmp_path, name, text, pattern):
    (tmp_path / name).write_text(text)
    for command in ("check", "convert"):
        extra = ["--to", "ron"] if command == "convert" else []
        done = knut("pipeline", command, tmp_path / name, *extra).fails(1, pattern)
        assert done.out == ""


def test_a_file_that_cannot_be_read_or_written(knut, tmp_path):
    knut("pipeline", "check", tmp_path / "none.ron").fails(1, "none.ron", "does not exist")
    knut("pipeline", "check").fails(2, "one FILE")
    knut("pipeline", "check", tmp_path, "--from", "ron").fails(1, "folder")
    (tmp_path / "bytes.ron").write_bytes(b"(name: \"\xff\")")
    knut("pipeline", "check", tmp_path / "bytes.ron").fails(1, "not UTF-8")
    (tmp_path / "p.ron").write_text('(name: "p", datasets: [], flows: [])')
    (tmp_path / "d.json").mkdir()
    knut("pipeline", "convert", tmp_path / "p.ron", "-o", tmp_path / "d.json").fails(2, "d.json", "folder")
    assert sorted(p.name for p in tmp_path.iterdir() if p.is_file()) == ["bytes.ron", "p.ron"]


def test_a_query_that_reads_more_than_its_flow_says(knut, tmp_path):
    datasets = [{"name": n, "output_type": "table"} for n in ("a", "b")]
    flows = [{"name": "f", "target": "a", "kind": "batch", "query": "WITH c AS (SELECT 1) SELECT * FROM c, b"},
             {"name": "g", "target": "b", "kind": "batch", "query": "SELECT 1"}]
    (tmp_path / "p.json").write_text(json.dumps({"name": "p", "datasets": datasets, "flows": flows}))
    knut("pipeline", "check", tmp_path / "p.json").ok()
    done = knut("pipeline", "check", tmp_path / "p.json", "--queries")
    done.fails(2, "flow `f`: its query reads `b`, which its reads do not name")


# ---- pictures ----


def test_a_graph_shows_who_reads_and_writes_what(knut):
    sample = TOP / "tests/data/pipelines/streaming.ron"
    text = knut("pipeline", "graph", sample).ok().out
    assert "[table] click_counts\n    <- f_clicks (streaming) from kafka\n" in text
    dot = knut("pipeline", "graph", sample, "--format", "dot").ok().out
    assert dot.startswith('digraph "clicks" {') and 'n1 -> n0 [label="f_clicks", style=dashed];' in dot
    mermaid = knut("pipeline", "graph", sample, "--format", "mermaid").ok().out
    assert mermaid.splitlines()[0] == "flowchart LR" and 'n1 -.->|"f_clicks"| n0' in mermaid


def test_a_picture_of_any_pipeline_is_whole_xml(knut, wrong, tmp_path):
    name = '<a href="x">&\'\n'
    spec = {"name": name, "datasets": [{"name": name, "output_type": "sink", "path": name}],
            "flows": [{"name": name, "target": name, "reads": ["]]>", "é" * 100], "kind": "batch"}]}
    (tmp_path / "hostile.json").write_text(json.dumps(spec))
    for document, boxes in ((wrong, 4), (tmp_path / "hostile.json", 3)):
        picture = ET.fromstring(knut("pipeline", "graph", document, "--format", "svg").ok().out)
        assert len(picture.findall(".//{*}rect")) == boxes


def test_a_form_of_picture_that_is_none(knut, wrong):
    knut("pipeline", "graph", wrong, "--format", "png").fails(2, "text.dot.mermaid.svg")
    knut("pipeline", "graph").fails(2, "one FILE")


# ---- the same on every surface ----


def test_what_streams_and_changes_get_wrong_is_told_of_every_form(knut, tmp_path):
    (tmp_path / "p.sql").write_text(
        "CREATE INPUT ev (id BIGINT, ts STRING) USING csv LOCATION 'x.csv';\n"
        "CREATE STREAMING TABLE a AS SELECT count(*) AS n FROM STREAM(ev) WATERMARK ts DELAY OF INTERVAL 1 SECOND\n"
        "  GROUP BY window(ts, '0 seconds');\n"
        "CREATE STREAMING TABLE b AS SELECT * FROM STREAM(ev) WATERMARK tss DELAY OF INTERVAL 1 SECOND;\n"
        "CREATE STREAMING TABLE c; APPLY CHANGES INTO c FROM ev KEYS (idd) SEQUENCE BY ts;\n")
    told = []
    for form in ("sql", "ron", "json"):
        if form != "sql":
            knut("pipeline", "convert", tmp_path / "p.sql", "-o", tmp_path / f"p.{form}").ok()
        done = knut.json("pipeline", "check", tmp_path / f"p.{form}")
        assert done.rc == 2, str(done)
        told.append([(p["rule"], p["where"], p["message"]) for p in json.loads(done.out)["problems"]])
    assert told[0] == told[1] == told[2]
    assert {(rule, where) for rule, where, _ in told[0]} >= {
        ("bad-event-time", "flow `f_a`"), ("zero-window", "flow `f_a`"), ("unknown-column", "flow `f_b`"),
        ("unknown-column", "flow `f_c`")}


def test_the_examples_are_one_pipeline_and_have_no_faults(knut):
    sql, ron = (TOP / f"docs/examples/medallion.{form}" for form in ("sql", "ron"))
    done = knut("pipeline", "check", sql, "--queries", "--output", "json").ok()
    assert (done.row["errors"], done.row["warnings"]) == (0, 0)
    assert knut("pipeline", "convert", sql, "--to", "ron").ok().out == ron.read_text()
    assert knut("pipeline", "convert", ron, "--to", "sql", "--strict").ok().err == ""

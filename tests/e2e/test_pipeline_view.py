# SPDX-License-Identifier: Apache-2.0
"""What `knut pipeline run` shows and keeps: the table on a terminal, what expectations found, which datasets are run."""
import json
import re
import signal

import duckdb
import pytest

from lib.terminal import OnTerminal

FOREVER = "SELECT sum(a.range * b.range)::BIGINT AS x FROM range(10000000) a, range(10000000) b"


def write(folder, *, last="SELECT x FROM clean", action="drop"):
    """raw (a view), clean (checked), out (a file), other (a file): out needs clean, which needs raw."""
    def dataset(name, **more):
        return {"name": name, "output_type": "table", **more}
    def flow(target, query, *reads, **more):
        return {"name": f"f_{target}", "target": target, "kind": "batch", "query": query, "reads": list(reads), **more}
    spec = {"name": "views", "datasets": [dataset("raw"), dataset("clean"),
                                          *(dataset(n, path=str(folder / f"{n}.parquet"), write_mode="overwrite")
                                            for n in ("out", "other"))],
            "flows": [flow("raw", "SELECT range AS x FROM range(100)"),
                      flow("clean", "SELECT * FROM raw", "raw", expectations=[
                          {"name": "big", "constraint": "x >= 10", "on_violation": action},
                          {"name": "odd", "constraint": "CASE WHEN x > 50 THEN x % 2 = 1 END"}]),
                      flow("out", last, "clean"), flow("other", "SELECT 1 AS one")]}
    (folder / "views.json").write_text(json.dumps(spec))
    return folder / "views.json"


# ---- what expectations found ----


@pytest.mark.parametrize("name", ["q.parquet", "q.csv", "q.json"])
def test_what_expectations_found_is_kept_run_by_run(knut, tmp_path, name):
    document, quality = write(tmp_path), tmp_path / name
    runs = [knut.json("pipeline", "run", document, "--quality", quality).ok().rows[0]["run"] for _ in range(2)]
    knut("pipeline", "run", write(tmp_path, action="fail"), "--quality", quality).fails(3, "expectation `big` FAILED")
    rows = duckdb.sql(f"SELECT * FROM '{quality}' ORDER BY checked_at, expectation").fetchall()
    columns = duckdb.sql(f"SELECT * FROM '{quality}'").columns
    assert columns == ["run", "pipeline", "outcome", "checked_at", "dataset", "expectation", "action", "rows", "violations", "unknown"]
    assert len(rows) == 6 and [str(r[0]) for r in rows[:4]] == [runs[0]] * 2 + [runs[1]] * 2
    assert {r[1:3] + r[4:] for r in rows[:4]} == {("views", "completed", "clean", "big", "drop", 100, 10, 0),
                                                  ("views", "completed", "clean", "odd", "warn", 90, 24, 41)}
    assert {(r[2], r[5], r[8]) for r in rows[4:]} == {("failed", "big", 10), ("failed", "odd", 24)}


def test_quality_goes_into_a_table_and_is_not_kept_of_a_dry_run(knut, table, tmp_path):
    document, where = write(tmp_path), ("--warehouse", table.warehouse)
    quality = type(table)(table.knut, table.warehouse, "ns.quality").create(
        "run string, pipeline string, outcome string, checked_at timestamp, dataset string, expectation string, action string, "
        "rows long, violations long, unknown long")
    knut("pipeline", "run", document, *where, "--quality", "ns.quality", "--dry").ok()
    assert quality.rows() == []
    knut("pipeline", "run", document, *where, "--quality", "ns.quality").ok()
    assert sorted((r["expectation"], r["violations"]) for r in quality.rows()) == [("big", 10), ("odd", 24)]
    knut("pipeline", "run", document, "--quality", "ns.quality").fails(3, "--quality ns.quality", "which catalog")
    knut("pipeline", "run", document, "--quality", tmp_path / "no.parquet" / "q.csv").ok()


# ---- which datasets ----


def written(folder):
    return sorted(path.stem for path in folder.glob("*.parquet"))


@pytest.mark.parametrize("words,expected", [("out", ["out"]), ("+out", ["out"]), ("raw+", ["out"]), ("all", ["other", "out"]),
                                            ("other,+raw", ["other"])])
def test_select_takes_what_is_needed_and_what_needs(knut, tmp_path, words, expected):
    knut("pipeline", "run", write(tmp_path), "--select", words).ok()
    assert written(tmp_path) == expected


def test_a_word_that_selects_nothing_is_named(knut, tmp_path):
    document = write(tmp_path)
    knut("pipeline", "run", document, "--select", "+ouut+").fails(2, "--select ouut: no dataset", "did you mean `out`")
    knut("pipeline", "run", document, "--full-refresh", "nothing").fails(2, "--full-refresh nothing: no dataset")
    assert written(tmp_path) == []


# ---- on a terminal ----


@pytest.fixture
def terminal(knut):
    """Starts the program on a terminal of its own; none outlives the test."""
    started = []
    def start(*words, **more):
        started.append(OnTerminal(knut, *words, **more))
        return started[-1]
    yield start
    for one in started:
        one.stop()


def test_a_table_is_drawn_in_place_and_goes_when_the_run_ends(terminal, tmp_path):
    rc, out, screen = terminal("pipeline", "run", write(tmp_path)).end()
    assert rc == 0 and screen.text == "" and {"A", "K", "J", "m"} <= screen.escapes
    rows = {line.split()[0]: line.split() for line in out.splitlines()}
    assert list(rows) == ["dataset", "other", "raw", "clean", "out"]
    assert rows["clean"][1:4] == ["done", "90", "34"] and rows["out"][1:4] == ["done", "90", "0"]
    assert "\x1b" not in out and f"{tmp_path}/out.parquet" in out


def test_it_shows_what_runs_what_waits_and_what_is_done(terminal, tmp_path):
    run = terminal("pipeline", "run", write(tmp_path, last=FOREVER), size=(8, 90), NO_COLOR="1")
    run.until(r"out +running")
    run.resize(5, 40)
    run.until(r"running.*\n.*\.\.\. and 2 more")
    run.process.send_signal(signal.SIGINT)
    rc, out, screen = run.end()
    assert rc == 130 and written(tmp_path) == [] and "m" not in screen.escapes
    assert re.search(r"^clean +done +90 +34", out, re.M) and re.search(r"^out +failed", out, re.M)
    assert screen.text == "knut: pipeline run: the run was cancelled; nothing was written"
    frames = run.raw.split("\x1b[?2026h")
    assert any(re.search(r"raw +running[\s\S]*out +waiting", f) for f in frames)
    assert any(re.search(r"clean +done +\[#{20}\] 100% +90 ", f) for f in frames)


@pytest.mark.parametrize("more,env", [(("--progress", "never"), {}), ((), {"TERM": "dumb"}), (("--output", "json"), {})])
def test_lines_are_printed_where_no_table_is_wanted(terminal, tmp_path, more, env):
    run = terminal("pipeline", "run", write(tmp_path), *more, **env)
    rc, out, screen = run.end()
    assert rc == 0 and screen.text == "" and not screen.escapes
    assert ('"phase":"planning"' if more[:1] == ("--output",) else "planning   native: planning `views`") in out.splitlines()[0]


def test_a_stream_that_is_told_to_go_on_shows_its_batches(knut, terminal, tmp_path):
    drop, document = tmp_path / "drop", tmp_path / "clicks.sql"
    drop.mkdir()
    (drop / "a.csv").write_text("id\n1\n2\n")
    document.write_text(f"CREATE STREAMING TABLE raw USING parquet LOCATION '{tmp_path}/raw' TRIGGER AVAILABLE NOW\n"
                        f"AS SELECT * FROM STREAM(read_files('{drop}', format => 'csv'))")
    knut("pipeline", "run", document, "--once", "--continuous").fails(2, "--once or --continuous, not both")
    run = terminal("pipeline", "run", document, "--continuous", size=(10, 120), NO_COLOR="1")
    run.until(r"raw +running +2 +[\d,]* +1\b")
    (drop / "_b.csv").write_text("id\n3\n")
    (drop / "_b.csv").rename(drop / "b.csv")
    run.until(r"raw +running +3 +[\d,]* +2\b")
    run.process.send_signal(signal.SIGINT)
    rc, out, _ = run.end()
    assert rc == 0 and re.search(r"^raw +done +3 +0 ", out, re.M), out
    assert duckdb.sql(f"SELECT list(id ORDER BY id) FROM '{tmp_path}/raw/*.parquet'").fetchone() == ([1, 2, 3],)

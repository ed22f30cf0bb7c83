# SPDX-License-Identifier: Apache-2.0
"""Streams of `knut pipeline run`: tables as they grow, windows into tables, runs that go on, stop and are killed."""
import signal
import time

import duckdb
import pytest

DOCUMENT = """#![enable(implicit_some)]
(name: "shop", default_database: "ns", storage: "DIR/state",
 datasets: [(name: "big", output_type: table, format: "iceberg", path: "big" KEYS)],
 flows: [(name: "f", target: "big", kind: streaming(source: iceberg(table: "ns.t"), trigger: available_now, MODE
    watermark: (event_time_column: "ts", allowed_lateness_ms: 0)), query: "QUERY")])
"""
WINDOWS = {"MODE": "window: tumbling(size_ms: 100),", "QUERY": "SELECT count(*) AS n FROM t", "KEYS": ""}
GROUPS = {"MODE": "output_mode: update,", "QUERY": "SELECT id, count(*) AS n FROM t GROUP BY id",
          "KEYS": ', keys: [\\"id\\"]'.replace("\\", "")}


class Shop:
    def __init__(self, table, folder, words, schema):
        self.events, self.document = table, folder / "shop.ron"
        self.events.create("ts long, id long")
        self.big = type(table)(table.knut, table.warehouse, "ns.big").create(schema)
        text = DOCUMENT.replace("DIR", str(folder))
        for word, value in words.items():
            text = text.replace(word, value)
        self.document.write_text(text)

    def add(self, *rows):
        self.events.append("SELECT * FROM (VALUES " + ", ".join(map(str, rows)) + ") v(ts, id)")

    def run(self, *words, **more):
        return self.events.knut("pipeline", "run", self.document, "--warehouse", self.events.warehouse, *words, **more)

    def rows(self):
        return sorted(tuple(row.values()) for row in self.big.rows())


def test_snapshots_become_windows_once_whenever_a_run_is_killed(table, tmp_path):
    shop = Shop(table, tmp_path, WINDOWS, "window_start long, window_end long, n long")
    shop.run().ok()
    want = []
    for n, point in enumerate(["stream-part", "stream-saved", "pipeline-commit", "pipeline-committed"]):
        shop.add((n * 100 + 10, 1), (n * 100 + 20, 2), (n * 100 + 110, 3))
        assert shop.run(env={"KNUT_FAULT": f"{point}:1:kill"}).rc == -9
        shop.run().ok()
        want.append((n * 100, n * 100 + 100, 2 if n == 0 else 3))
        assert shop.rows() == want
    summary = shop.big.history()[-1]
    assert len(shop.big.history()) == 4, summary
    shop.run().ok()
    assert shop.rows() == want


def test_groups_are_updated_by_their_keys(table, tmp_path):
    shop = Shop(table, tmp_path, GROUPS, "id long required, n long")
    shop.add((1, 1), (2, 2))
    shop.run().ok()
    shop.add((3, 2), (4, 3))
    shop.run().ok()
    assert shop.rows() == [(1, 1), (2, 2), (3, 1)]


def test_a_snapshot_that_takes_rows_away_is_refused_by_its_id(table, tmp_path):
    shop = Shop(table, tmp_path, WINDOWS, "window_start long, window_end long, n long")
    shop.add((10, 1), (200, 2))
    shop.run().ok()
    shop.events.delete("id = 1")
    shop.run().fails(3, r"snapshot \d+ of ns.t \(overwrite\)", r"takes 1 row\(s\) away", "--full-refresh big")
    shop.run("--full-refresh", "big").ok()
    assert shop.rows() == []


CLICKS = """#![enable(implicit_some)]
(name: "clicks",
 datasets: [(name: "raw", output_type: table, format: "parquet", path: "DIR/raw"),
            (name: "total", output_type: sink, path: "DIR/total.parquet", write_mode: overwrite)],
 flows: [(name: "f", target: "raw", kind: streaming(source: file_drop(dir: "DIR/drop", format: "csv"),
            trigger: TRIGGER, output_mode: append), query: "SELECT id FROM drop"),
         (name: "g", target: "total", reads: ["raw"], kind: batch, query: "SELECT count(*) AS n FROM raw")])
"""


class Clicks:
    def __init__(self, knut, folder):
        self.knut, self.folder, self.document = knut, folder, folder / "clicks.ron"
        (folder / "drop").mkdir()

    def write(self, trigger, only_raw=False):
        text = CLICKS.replace("DIR", str(self.folder)).replace("TRIGGER", trigger)
        if only_raw:
            text = text.split("         (name: \"g\"")[0].rstrip(", \n") + "])\n"
            text = text.split(",\n            (name: \"total\"")[0] + "],\n flows:" + text.split("flows:")[1]
        self.document.write_text(text)
        return self

    def drop(self, name, *ids):
        hidden = self.folder / "drop" / f".{name}"
        hidden.write_text("id\n" + "".join(f"{i}\n" for i in ids))
        hidden.rename(self.folder / "drop" / name)

    def ids(self):
        if not (self.folder / "raw").exists():
            return []
        found = duckdb.sql(f"SELECT id FROM '{self.folder}/raw/*.parquet' ORDER BY id").fetchall()
        return [i for i, in found]


@pytest.fixture
def clicks(knut, tmp_path):
    return Clicks(knut, tmp_path)


def test_what_reads_a_stream_is_computed_when_it_has_ended(clicks):
    clicks.write("available_now")
    for n in (1, 2):
        clicks.drop(f"{n}.csv", n, n + 10)
        clicks.knut("pipeline", "run", clicks.document).ok()
        total = duckdb.sql(f"SELECT n FROM '{clicks.folder}/total.parquet'").fetchone()
        assert total == (2 * n,)
    clicks.write("continuous")
    clicks.knut("pipeline", "run", clicks.document).fails(3, "flow g: it reads dataset raw, whose stream does not end")


def test_a_plan_and_a_dry_run_leave_no_trace(clicks):
    clicks.write("available_now").drop("a.csv", 1)
    steps = clicks.knut.json("pipeline", "plan", clicks.document).ok().rows
    assert [(s["dataset"], s["action"]) for s in steps][:2] == [("raw", "stream"), ("raw", "scan")]
    clicks.knut("pipeline", "run", clicks.document, "--dry").ok()
    assert not [p for p in clicks.folder.iterdir() if "raw" in p.name or "total" in p.name]


def wait_for(clicks, ids, process):
    until = time.monotonic() + 60
    while clicks.ids() != ids:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.parametrize("trigger", ["continuous", "processing_time(interval_ms: 50)"])
def test_a_stream_goes_on_until_it_is_told_to_end(clicks, trigger):
    clicks.write(trigger, only_raw=True).drop("a.csv", 1)
    process = clicks.knut.start("pipeline", "run", clicks.document)
    try:
        wait_for(clicks, [1], process)
        clicks.drop("b.csv", 2)
        wait_for(clicks, [1, 2], process)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, err) == (0, "")
    assert "`clicks` stopped" in out.splitlines()[-1]
    clicks.drop("c.csv", 3)
    clicks.knut("pipeline", "run", clicks.document, "--once").ok()
    assert clicks.ids() == [1, 2, 3]


def test_bad_streams_are_answered_in_one_line(clicks):
    clicks.write("available_now", only_raw=True).drop("a.csv", 1)
    text = clicks.document.read_text()

    def answered(old, new, rc, *words):
        clicks.document.write_text(text.replace(old, new))
        clicks.knut("pipeline", "run", clicks.document).fails(rc, *words)

    answered("SELECT id FROM drop", "SELECT count(*) AS n FROM drop", 3, "flow f", "has an aggregation")
    answered("SELECT id FROM drop", "SELECT di FROM drop", 2, "flow f", "di")
    answered("output_mode: append", 'watermark: (event_time_column: "at", allowed_lateness_ms: 0)', 2, "at")
    answered("output_mode: append", 'deduplicate: ["key"]', 2, "deduplicate: column key")
    answered('format: "csv"),', 'format: "orc"),', 3, "flow f: its source, file_drop `drop`, is not one that is read")
    assert clicks.ids() == []

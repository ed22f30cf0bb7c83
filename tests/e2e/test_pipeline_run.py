# SPDX-License-Identifier: Apache-2.0
"""`knut pipeline run` and `plan`: documents in, files out; what fails or is killed leaves whole generations."""
import json
import shutil

import duckdb
import pytest

DOCUMENT = """#![enable(implicit_some)]
(name: "shop", datasets: [
    (name: "clean", output_type: temporary_view),
    (name: "by_region", output_type: sink, format: "parquet", path: "DIR/by_region",
     partition_cols: ["region"], write_mode: MODE),
    (name: "one_file", output_type: sink, path: "DIR/one_file.csv", write_mode: MODE)],
 flows: [
    (name: "f_clean", target: "clean", reads: ["orders"], kind: batch, query: "SELECT * FROM orders",
     expectations: [(name: "positive", constraint: "amount > 0", on_violation: ACTION)]),
    (name: "f_region", target: "by_region", reads: ["clean"], kind: batch,
     query: "SELECT region, sum(amount)::BIGINT AS total FROM clean GROUP BY region"),
    (name: "f_file", target: "one_file", reads: ["orders"], kind: batch,
     projection: ["id"], filter: "amount > 1")])
"""
POINTS = ["pipeline-computed:2", "pipeline-staged:2", "pipeline-decide:1", "pipeline-decided:1", "pipeline-publish:2",
          "pipeline-published:2"]


class Shop:
    def __init__(self, knut, folder):
        self.knut, self.folder, self.document = knut, folder, folder / "shop.ron"
        self.orders = folder / "orders.parquet"
        duckdb.sql("COPY (SELECT range AS id, range % 5 - 1 AS amount, 'r' || range % 3 AS region FROM range(30)) "
                   f"TO '{self.orders}'")
        self.write()

    def write(self, mode="overwrite", action="drop"):
        text = DOCUMENT.replace("DIR", str(self.folder / "out")).replace("MODE", mode).replace("ACTION", action)
        self.document.write_text(text)

    def run(self, *words, **more):
        return self.knut("pipeline", "run", self.document, "--input", f"orders={self.orders}", *words, **more)

    def totals(self):
        """(rows, sum) of the folder, rows of the file."""
        out = self.folder / "out"
        folder = duckdb.sql(f"SELECT count(*), sum(total) FROM '{out}/by_region/**/*.parquet'").fetchone()
        return (*map(int, folder), duckdb.sql(f"SELECT count(*) FROM '{out}/one_file.csv'").fetchone()[0])

    def left_over(self):
        return list((self.folder / "out").rglob(".*"))


@pytest.fixture
def shop(knut, tmp_path):
    return Shop(knut, tmp_path)


def test_a_document_is_run_and_its_events_are_told(shop):
    events = shop.run("--output", "json").ok().rows
    assert events[0]["phase"] == "planning" and events[-1]["phase"] == "completed" and events[-1]["element"] is None
    checks = [e["metrics"] for e in events if "expectation" in e.get("metrics", {})]
    assert checks == [{"expectation": "positive", "action": "drop", "violations": 12, "unknown": 0, "rows": 30}]
    written = {e["element"]: e["metrics"]["rows"] for e in events if "wrote" in e["message"]}
    assert written == {"by_region": 3, "one_file": 12}
    assert shop.totals() == (3, 36, 12)
    assert sorted(p.name for p in (shop.folder / "out/by_region").iterdir()) == ["region=r0", "region=r1", "region=r2"]
    assert shop.left_over() == []


def test_overwrite_holds_one_generation_and_append_gathers_them(shop):
    shop.run().ok()
    shop.run().ok()
    assert shop.totals() == (3, 36, 12)
    shop.write(mode="append")
    shop.run().ok()
    assert shop.totals() == (6, 72, 24)
    shop.run("--full-refresh", "one_file").ok()
    assert shop.totals() == (9, 108, 12)


def test_select_runs_what_is_asked_for_and_what_that_needs(shop):
    shop.run("--select", "by_region").ok()
    out = shop.folder / "out"
    assert (out / "by_region").exists() and not (out / "one_file.csv").exists()
    shop.run("--select", "nothing").fails(2, "no dataset of this name")


def test_a_dry_run_and_a_plan_write_nothing(shop):
    shop.run("--dry").ok()
    done = shop.knut("pipeline", "plan", shop.document, "--input", f"orders={shop.orders}", "--output", "json").ok()
    steps = {row["dataset"]: row for row in done.rows if row["action"] != "scan"}
    scans = {row["dataset"]: row for row in done.rows if row["action"] == "scan"}
    assert steps["clean"]["action"] == "table"  # its rows are counted and read
    assert steps["one_file"]["action"] == "write"
    assert (scans["one_file"]["columns"], scans["one_file"]["filter"]) == ("id", "amount>1")
    assert not (shop.folder / "out").exists()


def test_a_target_may_be_named_on_the_command_line(shop):
    shop.run("--target", f"one_file={shop.folder}/other.parquet").ok()
    assert not (shop.folder / "out/one_file.csv").exists()
    assert duckdb.sql(f"SELECT count(*) FROM '{shop.folder}/other.parquet'").fetchone() == (12,)


def test_an_expectation_that_fails_refuses_the_run(shop):
    shop.write(action="fail")
    shop.run().fails(3, r"expectation `positive` FAILED on `clean`: 12 violating row\(s\) of 30; nothing was written")
    assert list(shop.folder.glob("out/*")) == []


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_killed_run_leaves_each_target_old_or_new_and_counts_once(shop, mode):
    shop.run().ok()
    shop.write(mode=mode)
    added = mode == "append"
    for point in POINTS:
        rows, _, lines = shop.totals()
        done = shop.run("--run-id", point, env={"KNUT_FAULT": f"{point}:kill"})
        assert done.rc == -9, str(done)
        after_rows, after_sum, after_lines = shop.totals()
        assert after_rows in ({rows, rows + 3} if added else {3})
        assert after_sum == after_rows * 12
        assert after_lines in ({lines, lines + 12} if added else {12})
        shop.run("--run-id", point).ok()  # the same run again
        assert shop.totals() == ((rows + 3, rows * 12 + 36, lines + 12) if added else (3, 36, 12))
    left = [".by_region.runs", ".one_file.csv.runs"] if added else []
    assert sorted(file.name for file in shop.left_over()) == left


def test_what_a_killed_run_decided_is_done_by_the_next_that_writes_any_of_it(shop):
    shop.write(mode="append")
    assert shop.run(env={"KNUT_FAULT": "pipeline-publish:2:kill"}).rc == -9
    assert not (shop.folder / "out/by_region").exists()  # the second target
    done = shop.run("--select", "one_file", "--output", "json").ok()
    assert any("was killed while its 2 target(s) changed: finished" in event["message"] for event in done.rows)
    assert shop.totals() == (3, 36, 24)
    assert shop.left_over() == []
    assert shop.run(env={"KNUT_FAULT": "pipeline-publish:2:kill"}).rc == -9
    shutil.rmtree(shop.folder / "out/.by_region.knut")
    shop.run("--select", "by_region").fails(1, r"\.one_file\.csv\.knut\.commit", "is gone", "remove this record")
    (shop.folder / "out/.one_file.csv.knut.commit").unlink()
    shop.run().ok()
    assert shop.totals() == (6, 72, 48)


def test_a_full_disk_is_one_line_and_changes_nothing(shop):
    """A limit on the size of files stands for the disk: writing beyond it fails in the same way."""
    shop.run().ok()
    before = sorted(file.name for file in shop.folder.rglob("*"))
    shop.document.write_text(shop.document.read_text().replace(
        'projection: ["id"]', 'query: "SELECT md5(range::VARCHAR) AS id, 2 AS amount FROM orders, range(20000)"'))
    done = shop.run(wrap=["bash", "-c", 'trap "" XFSZ; exec prlimit --fsize=1000000 "$@"', "sh"])
    done.fails(1, "one_file", "too large|No space")
    assert shop.totals() == (3, 36, 12)
    assert sorted(file.name for file in shop.folder.rglob("*")) == before


def test_a_run_is_stopped_by_a_signal(shop):
    text = shop.document.read_text().replace("FROM clean GROUP", "FROM clean, range(1000000000000) GROUP")
    shop.document.write_text(text)  # after one_file, whose COPY passes the point
    done = shop.run(env={"KNUT_FAULT": "pipeline-computed:1:stop"})
    assert done.rc == 143, str(done)
    assert list((shop.folder / "out").iterdir()) == []


def broken(shop, old, new):
    shop.document.write_text(shop.document.read_text().replace(old, new))
    return shop.run()


def test_bad_documents_are_answered_in_one_line(shop):
    broken(shop, "SELECT * FROM orders", "SELECT * FROM ordres").fails(2, "flow f_clean", "ordres")
    shop.write()
    broken(shop, "amount > 0", "amuont > 0").fails(2, "amuont")
    shop.write()
    broken(shop, 'partition_cols: ["region"]', 'partition_cols: ["nation"]').fails(2, "partition column `nation`")
    shop.write()
    broken(shop, 'cols: ["region"]', 'cols: ["days(region)"]').fails(2, r"partition `days\(region\)`")
    shop.write()
    broken(shop, 'format: "parquet"', 'format: "orc"').fails(3, "format orc", "parquet, csv, json, iceberg and postgres")
    shop.write()
    shop.orders.write_bytes(b"no such thing")
    shop.run().fails(1, "orders.parquet")
    shop.knut("pipeline", "run", shop.document).fails(3, "nothing supplies that: give --input orders=PATH")
    shop.knut("pipeline", "run").fails(2, "give one FILE")
    shop.run("--input", "orders").fails(2, "expected NAME=PATH")
    assert list(shop.folder.glob("out/*")) == []


def test_what_does_not_fit_in_memory_goes_to_disk(knut, tmp_path):
    document = {"name": "big", "datasets": [
        {"name": "wide", "output_type": "temporary_view", "materialization": "full"},
        {"name": "out", "output_type": "sink", "materialization": "full", "path": str(tmp_path / "out.parquet")}],
        "flows": [
            {"name": "f1", "target": "wide", "kind": "batch",
             "query": "SELECT range AS id, md5(range::VARCHAR) AS a, md5(range::VARCHAR) AS b FROM range(800000)"},
            {"name": "f2", "target": "out", "kind": "batch", "reads": ["wide"],
             "query": "SELECT a, b, (SELECT count(*) FROM wide) AS n FROM wide ORDER BY a"}]}
    (tmp_path / "big.json").write_text(json.dumps(document))
    knut("pipeline", "run", tmp_path / "big.json", "--memory-limit", "64MiB", "--threads", "1").ok()
    assert duckdb.sql(f"SELECT count(*) FROM '{tmp_path}/out.parquet'").fetchone() == (800000,)
    assert list(knut.tmp.iterdir()) == []


# ---- tables ----

TABLES = """#![enable(implicit_some)]
(name: "lake", default_database: "ns", inputs: [(name: "orders", format: "iceberg", path: "ns.t")],
 datasets: [(name: "big", output_type: sink, format: "iceberg", path: "big", write_mode: MODE)],
 flows: [(name: "f", target: "big", reads: ["orders"], kind: batch,
    query: "SELECT id, name FROM orders WHERE id >= 5",
    expectations: [(name: "named", constraint: "name <> 'n7'", on_violation: ACTION)])])
"""


class Lake:
    def __init__(self, table, folder):
        self.orders, self.document = table, folder / "lake.ron"
        self.orders.create("id long required, name string")
        self.big = type(table)(table.knut, table.warehouse, "ns.big").create("id long, name string")
        self.write("append")

    def write(self, mode, action="drop"):
        self.document.write_text(TABLES.replace("MODE", mode).replace("ACTION", action))

    def run(self, *words, **more):
        return self.orders.knut("pipeline", "run", self.document, "--warehouse", self.orders.warehouse, *words, **more)

    def ids(self):
        return sorted(row["id"] for row in self.big.rows())


@pytest.fixture
def lake(table, tmp_path):
    return Lake(table, tmp_path)


def test_a_table_is_read_and_another_written_as_one_snapshot(lake):
    lake.run().ok()  # a table without snapshots has no rows
    lake.orders.append("SELECT range AS id, 'n' || range AS name FROM range(10)")
    lake.orders.delete("id = 9")
    done = lake.run("--output", "json").ok().rows
    assert lake.ids() == [5, 6, 8]
    wrote = next(e for e in done if "wrote" in e["message"])
    assert wrote["metrics"]["rows"] == 3 and "iceberg, snapshot" in wrote["message"]
    summary = next(s for s in lake.big.metadata()["snapshots"] if s["summary"].get("added-records") == "3")["summary"]
    assert (summary["knut.pipeline"], summary["knut.pipeline.dataset"]) == ("lake", "big")
    lake.run().ok()
    assert lake.ids() == [5, 5, 6, 6, 8, 8]
    lake.write("overwrite")
    lake.run().ok()
    assert lake.ids() == [5, 6, 8]


def test_a_run_with_an_id_adds_its_rows_once(lake):
    lake.orders.append("SELECT range AS id, 'n' || range AS name FROM range(10)")
    assert lake.run("--run-id", "monday", env={"KNUT_FAULT": "pipeline-committed:1:kill"}).rc == -9
    for _ in range(2):
        lake.run("--run-id", "monday").ok()
        assert lake.ids() == [5, 6, 8, 9]
    assert lake.run("--run-id", "tuesday", env={"KNUT_FAULT": "pipeline-commit:1:kill"}).rc == -9
    lake.run("--run-id", "tuesday").ok()
    assert lake.ids() == sorted([5, 6, 8, 9] * 2)


def test_a_table_is_left_alone_when_an_expectation_fails(lake):
    lake.orders.append("SELECT range AS id, 'n' || range AS name FROM range(10)")
    lake.write("append", action="fail")
    lake.run().fails(3, "expectation `named` FAILED")
    assert lake.big.history() == []


def test_a_table_needs_a_catalog_and_must_be_there(lake, tmp_path):
    lake.orders.knut("pipeline", "run", lake.document).fails(3, "which catalog")
    lake.document.write_text(lake.document.read_text().replace('path: "ns.t"', 'path: "ns.none"'))
    lake.run().fails((1, 2), "ns.none")


# ---- files dropped into a folder ----

STREAM = """#![enable(implicit_some)]
(name: "clicks", datasets: [(name: "raw", output_type: table, format: "parquet", path: "DIR/raw")],
 flows: [(name: "f", target: "raw", reads: ["drop"],
    kind: streaming(source: file_drop(dir: "DIR/drop", format: "csv"), trigger: TRIGGER),
    query: "SELECT id, n * 10 AS n FROM drop",
    expectations: [(name: "known", constraint: "id <> 99", on_violation: drop)])])
"""


class Stream:
    def __init__(self, knut, folder):
        self.knut, self.folder, self.document = knut, folder, folder / "clicks.ron"
        (folder / "drop").mkdir()
        self.write()

    def write(self, trigger="available_now"):
        self.document.write_text(STREAM.replace("DIR", str(self.folder)).replace("TRIGGER", trigger))

    def drop(self, name, *ids):
        lines = "".join(f"{i},{i}\n" for i in ids)
        (self.folder / "drop" / name).write_text("id,n\n" + lines)

    def run(self, *words, **more):
        return self.knut("pipeline", "run", self.document, *words, **more)

    def ids(self):
        rows = duckdb.sql(f"SELECT id, n FROM '{self.folder}/raw/**/*.parquet' ORDER BY id").fetchall()
        assert all(n == i * 10 for i, n in rows)
        return [i for i, _ in rows]


@pytest.fixture
def stream(knut, tmp_path):
    return Stream(knut, tmp_path)


def test_each_dropped_file_is_read_once(stream):
    stream.run().ok()
    assert not (stream.folder / "raw").exists()
    stream.drop("a.csv", 1, 2, 99)
    stream.drop("b [x]*.csv", 3)
    stream.drop("_half.csv", 7)
    stream.run().ok()
    assert stream.ids() == [1, 2, 3]
    stream.run().ok()
    stream.drop("c.csv", 4)
    stream.run().ok()
    assert stream.ids() == [1, 2, 3, 4]
    stream.run("--full-refresh", "raw").ok()
    assert stream.ids() == [1, 2, 3, 4]


def test_a_killed_stream_reads_no_file_twice_and_loses_none(stream):
    stream.drop("a.csv", 0)
    stream.run().ok()
    for n, point in enumerate(["computed", "staged", "publish", "published"], start=1):
        stream.drop(f"{n}.csv", n)
        assert stream.run(env={"KNUT_FAULT": f"pipeline-{point}:1:kill"}).rc == -9
        stream.run().ok()
        assert stream.ids() == list(range(n + 1))


def test_once_ends_a_stream_that_would_go_on(stream):
    stream.drop("a.csv", 1)
    stream.write(trigger="continuous")
    stream.run("--once").ok()
    assert stream.ids() == [1]

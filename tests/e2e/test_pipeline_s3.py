# SPDX-License-Identifier: Apache-2.0
"""Pipelines that read from an object store (SeaweedFS) and write into one: old rows or new ones, whenever a run ends."""
import csv
import io
import json

import duckdb
import pytest

pytestmark = pytest.mark.xdist_group("s3")  # one store for all of them

TARGETS = ["one.parquet", "one.csv", "one.json", "folder", "parted"]


class Pond:
    """A prefix of the store's own, and a pipeline that copies the input `rows` to a target in it."""

    def __init__(self, knut, folder):
        self.knut, self.store = knut, knut.store
        self.root = self.store.fresh("lake")
        self.prefix = self.root.split("/", 3)[3] + "/"
        self.rows, self.document = folder / "rows.parquet", folder / "copy.json"
        self.out = folder / "back.csv"
        self.give(0, 30)

    def give(self, start, stop):
        duckdb.sql(f"COPY (SELECT range AS id, 'r' || range % 3 AS region, TIMESTAMP '2024-01-01' + INTERVAL (range) "
                   f"HOUR AS at FROM range({start}, {stop})) TO '{self.rows}'")

    def write(self, target, *words, mode="append", source=None, **more):
        parts = ["region", "days(at)"] if target.startswith("parted") else []
        self.document.write_text(json.dumps({
            "name": "copy",
            "inputs": [{"name": "rows", "path": source or str(self.rows), "format": "parquet"}],
            "datasets": [{"name": "out", "output_type": "sink", "path": f"{self.root}/{target}", "write_mode": mode,
                          "partition_cols": parts, **({} if "." in target else {"format": "parquet"})}],
            "flows": [{"name": "f", "target": "out", "reads": ["rows"], "kind": "batch",
                       "query": "SELECT * FROM rows"}]}))
        return self.knut("pipeline", "run", self.document, *words, **more)

    def read(self, path, form="parquet"):
        """(rows, sum of id, columns) of an input in the store."""
        parts = ["region", "days(at)"] if path.startswith("parted") else []
        self.document.write_text(json.dumps({
            "name": "read",
            "inputs": [{"name": "rows", "path": f"{self.root}/{path}", "partition_cols": parts,
                        **({} if "." in path else {"format": form})}],
            "datasets": [{"name": "out", "output_type": "sink", "path": str(self.out), "write_mode": "overwrite"}],
            "flows": [{"name": "f", "target": "out", "reads": ["rows"], "kind": "batch",
                       "query": "SELECT count(*) AS n, sum(id) AS s FROM rows"}]}))
        self.knut("pipeline", "run", self.document).ok()
        row = next(csv.DictReader(io.StringIO(self.out.read_text())))
        return int(row["n"]), int(float(row["s"]))

    def keys(self):
        return [key[len(self.prefix):] for key in self.store.keys("lake", self.prefix)]


@pytest.fixture
def pond(stored_knut, tmp_path):
    return Pond(stored_knut, tmp_path)


@pytest.mark.parametrize("target", TARGETS)
def test_targets_are_appended_to_and_overwritten(pond, target):
    pond.write(target).ok()
    assert pond.read(target) == (30, 435)
    pond.give(100, 110)
    pond.write(target).ok()
    assert pond.read(target) == (40, 435 + 1045)
    pond.write(target, mode="overwrite").ok()
    assert pond.read(target) == (10, 1045)
    if target == "folder":
        assert len(pond.keys()) == 2  # a file and the newest generation
    if target == "parted":
        assert {key.rsplit("/", 1)[0] for key in pond.keys()} == {
            "parted/_knut", *(f"parted/region=r{r}/at_day=2024-01-05" for r in range(3))}
    if target.startswith("one"):
        assert pond.keys() == [target]


def test_files_of_others_are_read_by_folder_and_by_pattern(pond):
    for i in range(3):
        pond.give(i * 10, i * 10 + 10)
        pond.store.put("lake", f"{pond.prefix}drop/part-{i}.parquet", pond.rows.read_bytes())
    pond.store.put("lake", f"{pond.prefix}drop/_SUCCESS", b"")
    pond.store.put("lake", f"{pond.prefix}drop/.hidden.parquet", b"no such thing")
    assert pond.read("drop") == (30, 435)
    assert pond.read("drop/part-[12].parquet") == (20, 390)
    pond.write("copy.parquet", source=f"{pond.root}/drop/part-1.parquet").ok()
    assert pond.read("copy.parquet") == (10, 145)


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_killed_run_leaves_the_old_rows_or_the_new(pond, mode):
    pond.write("parted").ok()
    had = 30
    for point, counts in [("pipeline-staged:1", False), ("io-upload-before:2", False), ("pipeline-objects-put:1", False),
                          ("pipeline-objects-counted:1", True)]:
        done = pond.write("parted", mode=mode, env={"KNUT_FAULT": f"{point}:kill"})
        assert done.rc == -9, str(done)
        had = had + 30 if counts and mode == "append" else had
        assert pond.read("parted")[0] == had
    pond.write("parted", mode=mode).ok()
    had = had + 30 if mode == "append" else 30
    assert pond.read("parted")[0] == had
    parts = [key for key in pond.keys() if key.endswith(".parquet")]
    rows = sum(duckdb.sql(f"SELECT count(*) FROM '{file}'").fetchone()[0] for file in download(pond, parts))
    assert rows == had  # what was killed left nothing behind


def download(pond, keys):
    for i, key in enumerate(keys):
        file = pond.document.with_name(f"down-{i}.parquet")
        file.write_bytes(pond.store.get("lake", pond.prefix + key))
        yield file


def test_of_two_runs_at_once_one_is_told(pond):
    pond.write("folder").ok()
    generation = next(key for key in pond.keys() if "_knut/" in key)
    following = generation.replace("000001", "000002")
    held = pond.write("folder", env={"KNUT_FAULT": "pipeline-objects-put:1:kill"})
    assert held.rc == -9
    # The other run was first: its generation is there, under the number that ours wants.
    text = pond.store.get("lake", pond.prefix + generation)
    pond.store.put("lake", pond.prefix + following, text)
    pond.write("folder").fails(1, "another run wrote into this folder")
    assert pond.read("folder")[0] == 30


def test_what_cannot_be_reached_is_one_line(pond):
    pond.write("out.parquet", source=f"{pond.root}/nowhere.parquet").fails(1, "input rows", "nowhere.parquet")
    pond.write("out.parquet", source=f"{pond.root}/nowhere/").fails(1, "there are no files of format parquet here")
    pond.write("out.parquet", env={"KNUT_S3_SECRET_ACCESS_KEY": "wrong"}).fails(1, "out.parquet")
    pond.store.put("lake", f"{pond.prefix}bad/_knut/generation-000000000001.json", b'{"generation":1,"files":[7]}')
    pond.write("out.parquet", source=f"{pond.root}/bad/").fails(1, "generation-000000000001.json: file 0")
    assert pond.keys() == ["bad/_knut/generation-000000000001.json"]


STREAM = """#![enable(implicit_some)]
(name: "clicks", datasets: [(name: "out", output_type: table, format: "parquet", path: "DIR/out")],
 flows: [(name: "f", target: "out", kind: streaming(source: file_drop(dir: "DIR/drop", format: "csv"), trigger: available_now,
    output_mode: append, watermark: (event_time_column: "ts", allowed_lateness_ms: 0), window: tumbling(size_ms: 100)),
    query: "SELECT count(*) AS n FROM drop")])
"""


def test_a_stream_keeps_its_state_in_the_store(pond, tmp_path):
    (tmp_path / "drop").mkdir()
    document = tmp_path / "clicks.ron"
    document.write_text(STREAM.replace("DIR", str(tmp_path)))
    state = f"{pond.root}/state"
    for n, fault in enumerate(["", "stream-saved:1:kill", "pipeline-published:1:kill", ""]):
        (tmp_path / "drop" / f"{n}.csv").write_text(f"ts\n{n * 100 + 1}\n{n * 100 + 2}\n{n * 100 + 101}\n")
        if fault:
            assert pond.knut("pipeline", "run", document, "--state", state, env={"KNUT_FAULT": fault}).rc == -9
        pond.knut("pipeline", "run", document, "--state", state).ok()
    found = duckdb.sql(f"SELECT window_start, n FROM '{tmp_path}/out/*.parquet' ORDER BY ALL").fetchall()
    assert found == [(0, 2), (100, 3), (200, 3), (300, 3)]

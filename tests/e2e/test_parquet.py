# SPDX-License-Identifier: Apache-2.0
"""Delivery into a folder of Parquet files: whole windows, each once, whoever dies when; and what is refused.

Readers here are DuckDB and PyArrow, as strangers to the program.
"""
import json
import os
import random
import shutil
import signal

import duckdb
import pyarrow.dataset
import pytest

from lib import kill
from lib import rows as R
from lib.lake import Delivery, Table, arrow
from lib.program import KILLED

SEED = int(os.environ.get("KNUT_TEST_SEED") or random.SystemRandom().randrange(2**31))
ROWS = "SELECT range::BIGINT AS id, 'n' || range AS name FROM range({}, {})"


class Files(Delivery):
    """A delivery into the folder `files`; settings go into the sink's place."""

    def __init__(self, table, folder, *options, target="s.copy", **settings):
        super().__init__(table, folder, target=target, options=options)
        self.root = folder / "files"
        self.root.mkdir(parents=True, exist_ok=True)
        self.set(**settings)

    def set(self, **settings):
        self.sink = f"parquet:{self.root}?" + "&".join(f"{k.replace('_', '-')}={v}" for k, v in settings.items())
        return self

    @property
    def copy(self):
        return self.root.joinpath(*self.target.split("."))

    def read(self, columns="* EXCLUDE (knut_window)"):
        with duckdb.connect() as db:
            return arrow(db, f"SELECT {columns} FROM read_parquet('{self.copy}/**/*.parquet', union_by_name = true)")

    def rows(self):
        return R.of_arrow(self.read())

    def windows(self):
        """{number: rows}, and every window is as its notes say."""
        found = {}
        for folder in self.copy.glob("knut_window=*"):
            notes = [json.loads(note.read_text()) for note in folder.glob("_[!k]*.json")]
            named = sorted(str(folder / file) for note in notes for file in note["files"])
            assert named == sorted(map(str, folder.rglob("*.parquet"))), folder
            found[int(folder.name.split("=")[1])] = sum(note["rows"] for note in notes)
            if named:
                with duckdb.connect() as db:
                    n = db.execute(f"SELECT count(*) FROM read_parquet('{folder}/**/*.parquet')").fetchone()[0]
                assert n == found[int(folder.name.split("=")[1])]
        return found

    def is_source(self):
        assert self.deliver()["status"] == "idle"
        R.assert_same(self.rows(), self.source.rows(), signed_zeros=False)
        assert not (self.copy.parent / f".knut-{self.copy.name}/window").exists()


@pytest.fixture
def files(table, tmp_path):
    table.create("id long, name string")
    table.append(ROWS.format(0, 100))
    return Files(table, tmp_path / "delivery")


# ---- what arrives ----

def test_a_window_is_a_folder_and_readers_see_its_number(files):
    files.run().ok()
    files.source.append(ROWS.format(100, 130))
    files.source.append(ROWS.format(130, 131))
    files.run().ok()
    assert files.windows() == {1: 100, 2: 30, 3: 1}
    files.is_source()
    last = pyarrow.dataset.dataset(files.copy, partitioning="hive").to_table()
    assert sorted(last.column_names) == ["id", "knut_window", "name"] and last.num_rows == 131


def test_columns_that_name_folders(table, tmp_path):
    table.create("id long, city string, day date, ok boolean, n decimal(9,2), name string")
    table.append("SELECT range::BIGINT AS id, ['Oslo', 'a/b=c:é x%', '', NULL][1 + range % 4] AS city, "
                 "DATE '2024-02-28' + (range % 3)::INTEGER AS day, range % 2 = 0 AS ok, (range % 3)::DECIMAL(9,2) AS n, "
                 "'n' || range AS name FROM range(300)")
    files = Files(table, tmp_path / "d", partition_by="city,day,ok,n", compression="snappy")
    files.run().ok()
    assert (files.copy / "knut_window=1/city=Oslo/day=2024-02-28/ok=true").is_dir()
    got = R.of_arrow(files.read("id, city, day::DATE AS day, ok::BOOLEAN AS ok, n::DECIMAL(9,2) AS n, name"))
    R.assert_same(got, table.rows())
    assert len(files.windows()) == 1
    files.set(partition_by="city,day").run().fails(3, "is cut by city,day,ok,n: keep partition-by as it was")
    files.set(partition_by="city,day,ok,n").run().ok()


def test_every_type(table, tmp_path):
    table.create("b boolean, i int, l long, f float, d double, de decimal(38,9), da date, t time, ts timestamp, tz timestamptz, "
                 "s string, u uuid, fx fixed[3], bi binary, st struct<a: int, x: fixed[2]>, li list<decimal(5,2)>, "
                 "m map<string, date>", "--format-version", "3")
    table("alter", "ADD COLUMN ns timestamp_ns").ok()
    table.append("""SELECT true AS b, -2147483648 AS i, 9223372036854775807 AS l, 'NaN'::FLOAT AS f, 1e-300 AS d,
        99999999999999999999999999999.123456789::DECIMAL(38,9) AS de, DATE '0001-01-01' AS da, TIME '23:59:59.999999' AS t,
        TIMESTAMP '1969-12-31 23:59:59.999999' AS ts, TIMESTAMPTZ '2024-03-10 02:30:00+02' AS tz, 'é"\n\u0001' AS s,
        '00000000-0000-0000-0000-0000000000ff'::UUID AS u, '\\x00\\x01\\xFF'::BLOB AS fx, ''::BLOB AS bi,
        {'a': 7, 'x': 'xy'::BLOB} AS st, [1.25::DECIMAL(5,2), NULL] AS li, MAP {'k': DATE '2024-02-29'} AS m,
        TIMESTAMP_NS '2024-01-01 00:00:00.123456789' AS ns UNION ALL SELECT
        NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL""")
    files = Files(table, tmp_path / "d")
    files.run().ok()
    files.is_source()
    file = next(files.copy.rglob("*.parquet"))
    with duckdb.connect() as db:
        kinds = dict(db.execute(f"SELECT name, type || coalesce(':' || type_length, '') FROM parquet_schema('{file}')").fetchall())
        ids = db.execute(f"SELECT count(*) FROM parquet_schema('{file}') WHERE field_id IS NULL AND num_children IS NULL").fetchone()
    assert kinds["fx"] == "FIXED_LEN_BYTE_ARRAY:3" and ids == (0,)


def test_settings_shape_the_files(files):
    files.set(compression="gzip", row_group_rows=2048, file_size="64KiB")
    files.source.append("SELECT range::BIGINT AS id, md5(range::VARCHAR) AS name FROM range(20000)")
    files.run().ok()
    with duckdb.connect() as db:
        found = db.execute("SELECT count(DISTINCT file_name) > 3, max(row_group_num_rows) <= 2048, min(compression), max(compression) "
                           f"FROM parquet_metadata('{files.copy}/**/*.parquet')").fetchone()
    assert found == (True, True, "GZIP", "GZIP")
    files.is_source()


def test_files_keep_the_schema_of_their_window(files):
    files.run().ok()
    files.source("alter", "ADD COLUMN extra int").ok()
    files.source("alter", "RENAME COLUMN name TO title").ok()
    files.source.append("SELECT 1000::BIGINT AS id, 't' AS title, 5::INTEGER AS extra")
    files.run().ok()
    got = R.of_arrow(files.read("id, name, title, extra"))
    assert {"id": 1000, "name": None, "title": "t", "extra": 5} in got and {"id": 0, "name": "n0", "title": None, "extra": None} in got


def test_older_windows_may_go_the_newest_must_stay(files):
    for low in (100, 200):
        files.run().ok()
        files.source.append(ROWS.format(low, low + 10))
    files.run().ok()
    shutil.rmtree(files.copy / "knut_window=1")
    files.source.append(ROWS.format(300, 301))
    files.run().ok()
    assert files.windows() == {2: 10, 3: 10, 4: 1}
    shutil.rmtree(files.copy / "knut_window=4")
    files.run().fails(3, "newest window of folder .* does not hold the load that was proven last")
    files.command("reload").ok()
    files.run().ok()
    assert files.windows() == {1: 121}
    files.is_source()


# ---- what is refused ----

def test_rows_that_go_are_refused_and_a_reload_goes_on(files):
    files.run().ok()
    files.source.delete("id < 10")
    files.run().fails(3, "takes rows away, which a folder of files cannot", "knut cdc reload")
    assert files.windows() == {1: 100}
    files.command("reload").ok()
    files.run().ok()
    files.is_source()


def test_keys_are_refused(table, tmp_path):
    table.create("id long required, name string", "--identifier", "id").append(ROWS.format(0, 10))
    files = Files(table, tmp_path / "d")
    files.run().fails(3, "cannot be replaced by key: deliver with --mode append")
    files.run("--mode", "append").ok()
    assert files.windows() == {1: 10}


@pytest.mark.parametrize("place, target, rc, words", [
    ("parquet:", "t", 2, "expected parquet:/FOLDER"),
    ("parquet:s3://bucket/x", "t", (2, 3), "not a folder of this machine"),
    ("parquet:{}/absent", "t", (1, 2), "absent: No such file"),
    ("parquet:{}/file", "t", 2, "is a file, expected a folder"),
    ("parquet:{}?partition_by=a", "t", 2, "did you mean 'partition-by'"),
    ("parquet:{}?compression=brotli", "t", 2, "compression cannot be 'brotli'"),
    ("parquet:{}?compression=gzip&compression-level=3", "t", 2, "for zstd only"),
    ("parquet:{}?row-group-rows=7", "t", 2, "row-group-rows cannot be '7'"),
    ("parquet:{}?file-size=1MiB&partition-by=id", "t", 2, "file-size cannot be given with partition-by"),
    ("parquet:{}?partition-by=none", "t", 2, "no top-level column none"),
    ("parquet:{}?partition-by=id,name", "t", 3, "no column that files could hold"),
    ("parquet:{}", "_t", 2, "cannot be a folder's name"),
    ("parquet:{}", "a=b.t", 2, "cannot be a folder's name"),
])
def test_a_place_that_makes_no_sense(files, place, target, rc, words):
    (files.root / "file").touch()
    files.sink, files.target = place.format(files.root), target
    files.run().fails(rc, words)
    assert sorted(p.name for p in files.root.iterdir()) == ["file"]


def test_types_that_cannot_name_folders(table, tmp_path):
    table.create("id long, f double").append("SELECT 1::BIGINT AS id, 1::DOUBLE AS f")
    Files(table, tmp_path / "d", partition_by="f").run().fails(3, "column f is a double, whose values cannot name folders")


def test_a_folder_of_others_is_left_alone(files):
    files.copy.mkdir(parents=True)
    (files.copy / "precious.parquet").write_text("x")
    files.run().fails(3, "has files that no delivery has made")
    files.command("reload").ok()
    files.run().fails(3, "has files that no delivery has made")
    assert (files.copy / "precious.parquet").read_text() == "x"


def test_a_second_state_file_is_noticed(files, tmp_path):
    files.run().ok()
    sources = files.source, Table(files.source.knut, files.source.warehouse, "ns.u")
    same, other = (Files(source, tmp_path / source.name) for source in sources)
    other.source.create("id long, name string").append(ROWS.format(0, 1))
    same.sink = other.sink = files.sink
    assert same.deliver()["windows"][0]["duplicates"] == 1  # the same rows under the same names
    other.run().fails(3, "has rows that this delivery did not load")
    shutil.copy(files.state, tmp_path / "old.db")
    for low in 100, 110:
        files.source.append(ROWS.format(low, low + 10))
        files.run().ok()
    shutil.copy(tmp_path / "old.db", files.state)
    files.run().fails(3, "does not hold the load that was proven last")
    assert files.windows() == {1: 100, 2: 10, 3: 10}


def test_one_process_at_a_time(files, tmp_path):
    done = files.source.knut.start("cdc", "run", "--once", *files.words, env={"KNUT_FAULT": "window-begun:1:pause"})
    while not list(files.root.rglob("_knut.json")):
        assert done.poll() is None
    other = Files(files.source, tmp_path / "other")
    other.sink = files.sink
    other.run().fails(1, "another process writes there")
    while done.poll() is None:
        done.send_signal(signal.SIGCONT)
    done.communicate()
    files.is_source()


# ---- processes that die ----

class Stage(kill.Stage):
    """The history `added`, delivered into files."""

    def __init__(self, stage, **settings):
        super().__init__(stage.table.knut.path, stage.place, stage.folder, "added")
        files = Files(self.table, self.place / "delivery", **settings)
        files.locator = self.delivery.locator
        self.delivery, self.settings = files, settings

    def check(self, idle=True):
        if idle:
            assert self.delivery.deliver()["status"] == "idle"
        columns = {"id": "BIGINT", "name": "VARCHAR", "n": "INTEGER", "payload": "BLOB"}
        with duckdb.connect() as db:
            source = ", ".join(f"{name}::{kind} AS {name}" for name, kind in columns.items())
            db.execute(f"CREATE TABLE copy AS SELECT {source} FROM read_parquet('{self.delivery.copy}/**/*.parquet')")
            kill.assert_equal_tables(db, "copy", f"'{self.folder}/expected.parquet'")


@pytest.fixture
def stage(program, shared, tmp_path, request):
    made = Stage(kill.stage(program, shared, tmp_path / "stage", "added"),
                 **({"partition_by": "n"} if request.param == "cut" else {"compression": "none"}))
    yield made
    shutil.rmtree(tmp_path / "stage")


WHOLE = [3000, 4000, 500]  # rows of the windows
POINTS = [("journal-sent-written", 2), ("sink-begun", 2), ("sink-rows-written", 1), ("sink-chunk-staged", 1), ("journal-held", 2),
          ("before-held-commit", 2), ("sink-before-commit", 1), ("sink-after-commit", 1), ("after-held-commit", 2),
          ("journal-proven", 3), ("before-cursor", 2)]


@pytest.mark.parametrize("stage", ["plain"], indirect=True)
def test_a_kill_at_each_point_shows_whole_windows_only(stage):
    rng = random.Random("points")
    for point, n in POINTS:
        stage.begin()
        done = stage.delivery.run(*kill.CALM, env={"KNUT_FAULT": f"{point}:{n}:kill"})
        assert done.rc == KILLED, f"{point}:{n} was not reached: {done}"
        seen = stage.delivery.windows()
        assert seen == dict(enumerate(WHOLE[:len(seen)], 1))
        stage.delivery.run("--chunk-mb", rng.randint(1, 4), "--threads", rng.randint(1, 4)).ok()
        try:
            stage.check(idle=point == "sink-after-commit")
            assert stage.delivery.windows() == dict(enumerate(WHOLE, 1))
        except AssertionError as wrong:
            raise AssertionError(f"after a kill at {point}, pass {n}: {wrong}") from wrong


def test_kills_while_a_reload_takes_its_target(files):
    files.run().ok()
    for point in "sink-claim-before-commit", "sink-claim-after-commit", "sink-after-commit":
        files.command("reload").ok()
        assert files.run(env={"KNUT_FAULT": f"{point}:1:kill"}).rc == KILLED
        assert sum(files.windows().values()) in (0, 100)
        files.run().ok()
        assert files.windows() == {1: 100}
        files.is_source()


@pytest.mark.parametrize("stage", ["cut"], indirect=True)
def test_kills_at_random(stage):
    print(f"KNUT_TEST_SEED={SEED}")
    rng = random.Random(SEED)
    for _ in range(int(os.environ.get("KNUT_TEST_STEPS") or 2)):
        stage.begin()
        for _ in range(rng.randint(1, 3)):
            done = stage.delivery.run("--chunk-mb", rng.randint(1, 3), "--threads", rng.randint(1, 4),
                                      env={"KNUT_FAULT": f"*:{rng.randint(1, 40)}:kill"})
            assert done.rc in (0, KILLED), f"KNUT_TEST_SEED={SEED}: {done}"
            stage.delivery.windows()
        stage.delivery.run(*kill.CALM).ok()
        stage.check(idle=False)
        assert stage.delivery.windows() == dict(enumerate(WHOLE, 1)), f"KNUT_TEST_SEED={SEED}"

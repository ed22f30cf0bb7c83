# SPDX-License-Identifier: Apache-2.0
"""Histories to deliver, and the points at which the delivering process is killed.

A history is built once for all workers: a table in a warehouse, a copy of the catalog's database
after the first snapshot ("early") and after the last ("late"), and the rows that must arrive,
computed by DuckDB from the same statements without the program. A stage is a worker's own place
where a history is delivered: catalog database, journal and destination can be put back to any
moment, since their paths, which are part of a delivery's identity, stay the same.
"""
import json
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import duckdb

from lib import once
from lib import rows as R
from lib.lake import Delivery, Table
from lib.program import Program

SCHEMA = "id long required, name string, n int, payload binary"
# 512 bytes a row that do not compress: a few thousand rows make several chunks of 1 MiB.
PAYLOAD = "unhex(" + " || ".join(f"md5('{k}' || range)" for k in range(32)) + ")"


def rows(start, stop, tag, each=1):
    """A SELECT of rows; each: how many equal ones."""
    return (f"SELECT (range // {each})::BIGINT AS id, '{tag}' || (range // {each}) AS name, "
            f"(range // {each} % 7)::INTEGER AS n, "
            f"{PAYLOAD.replace('range', f'(range // {each})')} AS payload "
            f"FROM range({start * each}, {stop * each})")


@dataclass(frozen=True)
class History:
    """steps: ("append", select), ("delete", where) or ("overwrite", where, select)."""
    steps: tuple
    create: tuple = ()
    options: tuple = ()
    modes: tuple = ("upsert",)  # that may be changed to between runs
    reload: bool = False  # the whole of it is delivered, then started over


MORE = (("append", rows(3000, 6000, "a")),
        ("overwrite", "id >= 1000 AND id < 2500 OR id = 4000", rows(1000, 2400, "b")),
        ("delete", "n = 3 OR id > 5500"))
HISTORIES = {
    # Only ever added to: upsert and append mode mean the same.
    "added": History((("append", rows(0, 3000, "a")), ("append", rows(3000, 7000, "a")),
                      ("append", rows(3000, 3500, "a"))), modes=("upsert", "append")),
    # No key: equal rows count, whole rows go.
    "rows": History((("append", rows(0, 1500, "a", each=2)), *MORE)),
    "keyed": History((("append", rows(0, 3000, "a")), *MORE), create=("--identifier", "id")),
    "reloaded": History((("append", rows(0, 3000, "a")), *MORE), create=("--identifier", "id",
                        "--format-version", "3", "--partition", "bucket(2, id)"), reload=True),
}
CALM = ("--chunk-mb", "1", "--threads", "2")  # of the run whose points are listed


def model(steps, file):
    """What the steps come to, by DuckDB alone, into a Parquet file."""
    with duckdb.connect() as db:
        db.execute("CREATE TABLE t(id BIGINT, name VARCHAR, n INTEGER, payload BLOB)")
        for kind, *words in steps:
            if kind != "append":
                db.execute(f"DELETE FROM t WHERE {words[0]}")
            if kind != "delete":
                db.execute(f"INSERT INTO t {words[-1]}")
        db.execute(f"COPY t TO '{file}'")


def commit(table, step):
    kind, *words = step
    getattr(table, kind)(*words)


def build(path, scratch, name, folder):
    """Fills folder with the history `name`: see the head of this file."""
    history, table = HISTORIES[name], Table(Program(path, scratch), folder / "warehouse", "ns.t")
    table.create(SCHEMA, *history.create)
    commit(table, history.steps[0])
    shutil.copy(table.db, folder / "early.db")
    for step in history.steps[1:]:
        commit(table, step)
    shutil.copy(table.db, folder / "late.db")
    model(history.steps, folder / "expected.parquet")
    with duckdb.connect() as db:
        expected = db.execute(f"SELECT id, name, n FROM '{folder}/expected.parquet'").to_arrow_table()
    R.assert_same(table.rows("--columns", "id,name,n"), R.of_arrow(expected), name)
    stage = Stage(path, scratch / "stage", folder, name)
    stage.begin()
    trace = folder / "trace"
    stage.delivery.run(*CALM, env={"KNUT_FAULT_TRACE": trace}).ok()
    stage.check()
    (folder / "points.json").write_text(json.dumps(points(trace.read_text().split())))


def points(passed):
    """(name, n) of the passes at which to kill: the first three and the last of each point."""
    return [(name, n) for name, times in Counter(passed).items()
            for n in sorted({1, 2, 3, times}) if n <= times]


class Stage:
    def __init__(self, path, place, folder, name):
        self.history, self.folder = HISTORIES[name], Path(folder)
        self.place = Path(place)
        scratch = self.place / "scratch"
        scratch.mkdir(parents=True, exist_ok=True)
        self.table = Table(Program(path, scratch), self.folder / "warehouse")
        self.db = self.place / "catalog.db"
        locator = (*self.table.locator, "--db", self.db)
        (self.place / "delivery").mkdir(exist_ok=True)
        self.delivery = Delivery(self.table, self.place / "delivery", options=self.history.options,
                                 locator=locator)

    @property
    def points(self):
        return [tuple(p) for p in json.loads((self.folder / "points.json").read_text())]

    def catalog(self, moment):
        shutil.copy(self.folder / f"{moment}.db", self.db)

    def begin(self):
        """The moment before the run that is to be killed."""
        before = self.place / "before"
        if before.exists():
            self.delivery.place(before)
            return
        self.catalog("late" if self.history.reload else "early")
        self.delivery.deliver(*CALM)
        if self.history.reload:
            self.delivery.command("reload").ok()
        self.delivery.copy_to(before)
        self.catalog("late")

    def check(self, idle=True):
        """The copy equals the source, each load came once, and there is nothing left to do."""
        if idle:
            report = self.delivery.deliver()
            assert report["status"] == "idle", report
        expected = f"'{self.folder}/expected.parquet'"
        with duckdb.connect() as db:
            db.execute(f"ATTACH '{self.delivery.file}' AS copy (READ_ONLY)")
            twice = db.execute("SELECT label FROM copy._knut_loads GROUP BY label HAVING count(*) > 1").fetchall()
            assert not twice, f"loaded twice: {twice}"
            assert_equal_tables(db, "copy.main.copy", expected)


def assert_equal_tables(db, copy, source):
    """Equal as multisets. Sums of the rows' 64-bit hashes first, since that is quick."""
    sums = [db.execute(f"SELECT count(*), sum(hash(t)::HUGEINT), sum((hash(t) >> 1)::HUGEINT * (hash(t) & 1023)) "
                       f"FROM (FROM {table}) t").fetchone() for table in (copy, source)]
    if sums[0] == sums[1]:
        return
    for a, b, what in (copy, source, "too many"), (source, copy, "missing"):
        bad = db.execute(f"SELECT count(*), min(id), max(id) FROM (FROM {a} EXCEPT ALL FROM {b})").fetchone()
        assert bad[0] == 0, f"{what}: {bad[0]} rows, ids {bad[1]} to {bad[2]}"
    raise AssertionError(f"hashes differ, rows do not: {sums}")


def stage(path, shared, place, name):
    def make(folder):
        scratch = folder / "scratch"
        scratch.mkdir()
        build(path, scratch, name, folder)
    return Stage(path, place, once.once(shared, f"history-{name}", make), name)

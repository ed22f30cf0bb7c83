# SPDX-License-Identifier: Apache-2.0
"""Destinations and journals that do not fit, are damaged or are held by others (lib/bad.py)."""
import fcntl
import os
import signal
import sqlite3

import duckdb
import pytest

from lib import rows as R
from lib.bad import ROWS, SCHEMA, check_mended, name_of
from lib.damage import cut, damaged, filled


# ---- destinations ----


def target_made(sql):
    def make(delivery):
        with duckdb.connect(str(delivery.file)) as db:
            db.execute(sql)
    return make


@pytest.mark.parametrize("sql,patterns", [
    ("CREATE TABLE copy(id VARCHAR, name VARCHAR, ts TIMESTAMP)", ("column id", "BIGINT", "VARCHAR")),
    ("CREATE TABLE copy(id BIGINT)", ("name",)),
    ("CREATE TABLE copy(id BIGINT, name VARCHAR, ts TIMESTAMP, more INTEGER NOT NULL)", ("more",)),
    ("CREATE VIEW copy AS SELECT 1 AS id", ("view|copy",)),
    ("CREATE TABLE copy AS SELECT 1::BIGINT AS id, 'x' AS name, TIMESTAMP '2026-01-01' AS ts", ("rows", "reload")),
], ids=["type", "columns", "not-null", "view", "filled"])
def test_a_target_that_does_not_fit(table, delivery, sql, patterns):
    table.create(SCHEMA)
    table.append(ROWS.format(0, 10))
    target_made(sql)(delivery)
    with duckdb.connect(str(delivery.file), read_only=True) as db:
        before = db.execute("FROM copy").fetchall()
    delivery.run().fails(3, *patterns)
    with duckdb.connect(str(delivery.file), read_only=True) as db:
        assert db.execute("FROM copy").fetchall() == before
    assert delivery.cursor()[0] is None


def test_a_schema_that_the_sink_cannot_take(table, delivery):
    """Names that differ in case only are two columns in Iceberg and one in DuckDB."""
    table.create("id long, other string")
    table.append("SELECT 1 AS id, 'x' AS other")
    table.commit(lambda d: d["schemas"][0]["fields"][1].update(name="ID"))
    delivery.run().fails(3, "id and ID", "same name")
    assert delivery.cursor()[0] is None


def test_a_destination_that_is_no_database(half):
    with damaged(half.file, lambda data: b"not a database" * 1000):
        content = half.file.read_bytes()
        half.run().fails(1, name_of(half.file))
        assert half.file.read_bytes() == content
    check_mended(half)


def test_a_destination_that_was_replaced(half):
    saved = half.file.read_bytes()
    half.file.unlink()
    half.run().fails(3, "is gone|replaced or restored|does not have", "reload")
    half.file.write_bytes(saved)
    check_mended(half)


def test_a_destination_that_somebody_changed(half):
    with duckdb.connect(str(half.file)) as db:
        db.execute("DELETE FROM copy WHERE id < 100")
    half.run().fails((1, 3), "reload")
    half.command("reload").ok()
    check_mended(half)


def test_a_destination_in_a_folder_that_is_not_there(table, tmp_path):
    table.create(SCHEMA)
    table.append(ROWS.format(0, 10))
    sink = f"duckdb:{tmp_path}/none/copy.duckdb"
    table.knut("cdc", "run", *table.locator, "--sink", sink, "--state", tmp_path / "s.db", "--once").fails((1, 2), "none")


def test_a_destination_that_another_process_holds(half):
    before = half.facts()
    with duckdb.connect(str(half.file)):
        half.run().fails(1, name_of(half.file), f"{os.getpid()}|held|lock")
    assert half.facts() == before
    check_mended(half)


# ---- the journal ----


def test_a_journal_that_another_process_holds(half):
    """The kernel's lock decides; the text beside it tells who."""
    before = half.facts()
    with open(f"{half.state}.lock", "r+", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.truncate(0)
        lock.write("4711 1780000000000 elsewhere\n")
        lock.flush()
        for words in ("run", "--once"), ("reload",):
            half.command(*words).fails(1, "4711", "elsewhere", "2026-05", "--state", name_of(half.state))
        half.command("status").ok()  # looking is always possible
    assert half.facts() == before
    check_mended(half)


def test_two_processes_on_one_journal(half):
    with half.source.knut.start("cdc", "run", *half.words, "--output", "json", "--interval", "1000") as first:
        first.stdout.readline()
        half.run().fails(1, str(first.pid), "--state")
        first.send_signal(signal.SIGTERM)
        assert first.wait(60) == 0
    assert half.deliver()["status"] == "idle"


@pytest.mark.parametrize("how", ["empty-file", "noise", "other-database", "cut"])
def test_a_damaged_journal(half, how):
    saved = half.state.read_bytes()
    changes = {"empty-file": lambda _: b"", "noise": filled, "cut": cut(0.5), "other-database": lambda _: other_database()}
    bad = changes[how](saved)
    rows = half.facts()["rows"]
    for suffix in "-wal", "-shm":
        half.state.with_name(half.state.name + suffix).unlink(missing_ok=True)
    half.state.write_bytes(bad)
    done = half.run()
    if how == "empty-file":
        done.fails(3, "reload")  # an empty journal: the target has loads that it does not know
    else:
        done.fails(1, name_of(half.state))
        assert half.state.read_bytes()[:512] == bad[:512]
    assert R.multiset(half.rows()) == rows
    for path in half.folder.glob("state.db*"):
        path.unlink()
    half.state.write_bytes(saved)
    check_mended(half)


def other_database():
    with sqlite3.connect(":memory:") as db:
        db.execute("CREATE TABLE something(else_ INTEGER)")
        return db.serialize()

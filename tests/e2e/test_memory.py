# SPDX-License-Identifier: Apache-2.0
"""Memory does not grow with the window: 20 million rows pass in less than 512 MiB.

One window of 20 million rows (id bigint, name, city, double, timestamp), made once for all workers.
"""
import sys
from pathlib import Path

import duckdb
import pytest

from lib import once
from lib.lake import Delivery, Table
from lib.program import Program

MIB = 1024  # KiB
SCHEMA = "id long, name string, city string, amount double, ts timestamp"
SELECT = """SELECT range AS id, 'customer ' || (range * 7919 % 1000003) AS name, 'city ' || (range % 1000) AS city,
    (range * 31 % 100000) / 7.0 AS amount, TIMESTAMP '2026-01-01' + to_microseconds(range * 1000) AS ts FROM range({})"""
SMALL, LARGE = 5_000_000, 20_000_000


@pytest.fixture(scope="session")
def large_table(program, shared):
    def make(folder):
        scratch = folder / "scratch"
        scratch.mkdir()
        for rows in SMALL, LARGE:
            table = Table(Program(program, scratch), folder / "warehouse", f"ns.rows{rows}")
            table.create(SCHEMA)
            assert table.append(SELECT.format(rows), limit=600)["added_rows"] == rows
    return lambda rows: (once.once(shared, "memory", make) / "warehouse", f"ns.rows{rows}")


def peak(knut, tmp_path, delivery, *args):
    """A delivery's report and its peak resident set in KiB."""
    out = tmp_path / "rss"
    wrapper = (sys.executable, "-I", "-S", str(Path(__file__).parent / "lib/rss.py"), str(out))
    done = knut("cdc", "run", "--once", *delivery.words, "--output", "json", *args, wrap=wrapper, limit=600).ok()
    return done.row["deliveries"][0], int(out.read_text())


def deliver(knut, tmp_path, large_table, rows, sink, *args):
    warehouse, name = large_table(rows)
    folder = tmp_path / f"delivery-{rows}"
    folder.mkdir()
    delivery = Delivery(Table(knut, warehouse, name), folder, sink=sink)
    report, kib = peak(knut, tmp_path, delivery, *args)
    assert [w["upserts"] for w in report["windows"]] == [rows]
    return delivery, kib


def test_a_large_window_passes_in_bounded_memory(knut, tmp_path, large_table):
    _, small = deliver(knut, tmp_path, large_table, SMALL, "null:")
    _, large = deliver(knut, tmp_path, large_table, LARGE, "null:")
    assert large < 512 * MIB
    assert large < small * 1.15 + 8 * MIB, f"{small} KiB for {SMALL} rows, {large} KiB for {LARGE}"


def test_a_large_window_arrives_in_duckdb_in_bounded_memory(knut, tmp_path, large_table):
    _, small = deliver(knut, tmp_path, large_table, SMALL, "")
    copy, large = deliver(knut, tmp_path, large_table, LARGE, "")
    assert large < 512 * MIB
    # Both engines' buffers (--memory-limit) go on filling behind the smaller window's last row; four
    # times the rows held in memory would be far more than this.
    assert large < small * 1.35 + 8 * MIB, f"{small} KiB for {SMALL} rows, {large} KiB for {LARGE}"
    with duckdb.connect(str(copy.file), read_only=True) as db:
        got = db.execute("SELECT count(*), sum(id), count(DISTINCT city), max(ts), sum(amount)::BIGINT FROM copy").fetchone()
        want = db.execute("SELECT count(*), sum(id), count(DISTINCT city), max(ts), sum(amount)::BIGINT "
                          f"FROM ({SELECT.format(LARGE)})").fetchone()
    assert got == want
    copy.file.unlink()

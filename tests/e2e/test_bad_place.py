# SPDX-License-Identifier: Apache-2.0
"""Disks that are full, folders that may not be written to (lib/bad.py)."""
import os
import resource
import shutil
import signal
import subprocess
from contextlib import contextmanager

import pytest

from lib import rows as R
from lib.bad import ROWS, SCHEMA, check_mended, name_of
from lib.lake import left_over


def obeying_permissions():
    """Root passes over permissions: give that up for the program."""
    return ("setpriv", "--bounding-set", "-dac_override,-dac_read_search") if os.geteuid() == 0 else ()


@contextmanager
def read_only(*paths):
    modes = [(p, p.stat().st_mode) for p in paths]
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        yield
    finally:
        for path, mode in modes:
            path.chmod(mode)


def test_a_read_only_destination(table, delivery, tmp_path):
    table.create(SCHEMA)
    table.append(ROWS.format(0, 10))
    place = tmp_path / "copies"
    place.mkdir()
    delivery.sink = f"duckdb:{place / 'copy.duckdb'}"
    delivery.deliver()
    table.append(ROWS.format(10, 20))
    cursor = delivery.cursor()
    with read_only(place / "copy.duckdb", place):
        delivery.run(wrap=obeying_permissions()).fails(1, "copy.duckdb", "[Pp]ermission|read-only")
    assert delivery.cursor() == cursor
    assert [p.name for p in place.iterdir()] == ["copy.duckdb"]
    assert delivery.deliver()["windows"][0]["upserts"] == 10


def test_a_read_only_journal(half):
    before = half.facts()
    with read_only(*half.folder.glob("state.db*"), half.folder):
        half.run(wrap=obeying_permissions()).fails(1, name_of(half.state), "[Pp]ermission|read-?only")
    assert half.facts() == before
    check_mended(half)


def test_a_read_only_warehouse(half):
    table = half.source
    rows = R.multiset(table.rows())
    folders = [p for p in table.warehouse.rglob("*") if p.is_dir()]
    with read_only(*folders, table.warehouse):
        table("append", "--sql", ROWS.format(0, 1), wrap=obeying_permissions()).fails(1, "[Pp]ermission|read-?only")
    assert R.multiset(table.rows()) == rows
    assert left_over(table.warehouse) == []


class SmallDisk:
    """A file system of some MiB, of the process's own: nobody else sees the mount."""

    def __init__(self, folder, mib):
        self.folder = folder
        self.script = f'mount -t tmpfs -o size={mib}m none "{folder}" && cp -a "{folder}.kept/." "{folder}" && "$@"; ' \
                      f'rc=$?; cp -a "{folder}/." "{folder}.kept"; exit $rc'

    def wrap(self):
        unshare = ("unshare", "-m") if os.geteuid() == 0 else ("unshare", "-rm")
        return (*unshare, "sh", "-c", self.script, "sh")


def can_mount():
    return subprocess.run(["unshare", *(["-m"] if os.geteuid() == 0 else ["-rm"]), "sh", "-c",
                           "mount -t tmpfs none /mnt"], capture_output=True, check=False).returncode == 0


FULL = "[Nn]o space|disk is full|too large|File too large|disk I/O"


def limited(size):
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    return limit


@pytest.fixture
def large(table, delivery):
    """Snapshot 1 is delivered; 8 MiB that do not compress wait."""
    table.create("id long, payload binary")
    table.append("SELECT 0::BIGINT AS id, 'x'::BLOB AS payload")
    delivery.deliver()
    table.append("SELECT range AS id, unhex(" + " || ".join(f"md5('{k}' || range)" for k in range(64)) + ") AS payload "
                 "FROM range(8192)")
    return delivery


def test_a_file_that_may_not_grow(large):
    """The destination's file system takes no more: half the rows would fit."""
    before = large.facts()
    large.run("--chunk-mb", "2", preexec_fn=limited(4 << 20)).fails(1, FULL)
    after = large.facts()
    assert after["cursor"] == before["cursor"]
    check_prefix_of_chunks(large, before, after)
    check_mended(large)


def check_prefix_of_chunks(delivery, before, after):
    """A window may have arrived in part: whole chunks, each with its label."""
    new = [rows for _, label, _, rows in after["loads"] if label not in {l[1] for l in before["loads"]}]
    assert sum(after["rows"].values()) == sum(before["rows"].values()) + sum(new)


def test_a_full_disk_under_the_destination(large):
    if not can_mount():
        pytest.skip("no right to mount, not even in a namespace: test_a_file_that_may_not_grow stands in")
    disk = SmallDisk(large.folder, 6)
    kept = large.folder.with_name("delivery.kept")
    shutil.copytree(large.folder, kept)
    before = large.facts()
    large.run("--chunk-mb", "2", wrap=disk.wrap()).fails(1, FULL)
    large.place(kept)  # what lay on the small disk when the run ended
    after = large.facts()
    assert after["cursor"] == before["cursor"]
    check_prefix_of_chunks(large, before, after)
    check_mended(large)


def test_a_full_disk_under_the_warehouse(table):
    table.create("id long, payload binary")
    table.append("SELECT 0::BIGINT AS id, 'x'::BLOB AS payload")
    files = set(table.warehouse.rglob("*"))
    sql = "SELECT range AS id, unhex(" + " || ".join(f"md5('{k}' || range)" for k in range(64)) + ") AS payload FROM range(4096)"
    table("append", "--sql", sql, preexec_fn=limited(1 << 20)).fails(1, FULL)
    assert len(table.rows()) == 1
    assert set(table.warehouse.rglob("*")) == files
    table.append(sql)
    assert table("scan", "--count", "--output", "json").ok().row == {"count": 4097}


def test_no_room_for_spilling(table, delivery, tmp_path):
    table.create("id long, name string")
    table.append("SELECT range AS id, 'name ' || range AS name FROM range(1000)")
    delivery.deliver()
    table.delete("id < 500")
    missing_folder = tmp_path / "none" / "spill"
    done = delivery.run("--spill-dir", missing_folder)
    if done.rc:  # else it was made
        done.fails((1, 2), "spill")
    check_mended(delivery)

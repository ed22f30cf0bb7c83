# SPDX-License-Identifier: Apache-2.0
"""Writers that meet: one is stopped at a point of its commit, another commits, the first goes on. What holds is rebased,
what does not is a conflict, as Java's validation has it; nobody's rows are lost, no file stays that nothing names."""
import os
import re
import signal
import sqlite3
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from lib import avro
from lib import rows as R
from lib.lake import plain

QUICK = ("commit.retry.min-wait-ms=1", "commit.status-check.min-wait-ms=1", "commit.status-check.num-retries=1")
BEFORE = "write-before-commit:1:pause"


def select(*ids):
    """Rows in the partition of their tens."""
    return "SELECT * FROM (VALUES " + ", ".join(f"({i}::BIGINT, {i // 10}, 'n{i}')" for i in ids) + ") t(id, part, name)"


@pytest.fixture(params=["1", "2", "3"])
def shop(table, request):
    return make(table, request.param)


def make(table, version="2", *more):
    properties = [word for p in (*QUICK, *more) for word in ("--property", p)]
    table.create("id long, part int, name string", "--partition", "part", "--format-version", version, *properties)
    table.append(select(11, 12, 13, 21, 22, 31))
    return table


class Stopped:
    """A command that stands at a point until it is told to go on."""

    def __init__(self, table, fault, *words):
        command, *rest = words
        self.run = table.knut.start("table", command, *table.locator, *rest, env={"KNUT_FAULT": fault})
        _, status = os.waitpid(self.run.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), f"{words} ended before {fault}: {self.run.communicate()}"

    def goes_on(self):
        self.run.send_signal(signal.SIGCONT)
        out, err = self.run.communicate(timeout=60)
        return self.run.returncode, out, err


def named(table):
    """Every file that some snapshot of the table names, by name."""
    names, manifests = set(), set()
    for snapshot in table.metadata().get("snapshots", []):
        names.add(plain(snapshot["manifest-list"]).name)
        manifests |= {plain(line["manifest_path"]) for line in avro.read(plain(snapshot["manifest-list"]))[1]}
    for manifest in manifests:
        names |= {manifest.name, *(plain(e["data_file"]["file_path"]).name for e in avro.read(manifest)[1])}
    return names


def nothing_is_left_over(table):
    folder = table.pointer.parent.parent
    there = {p.name for p in folder.rglob("*") if p.is_file() and not p.name.endswith(".metadata.json")}
    assert there == named(table)
    log = [plain(e["metadata-file"]).name for e in table.metadata()["metadata-log"]]
    assert {p.name for p in folder.rglob("*.metadata.json")} == {*log, table.pointer.name}


def ids(table):
    return sorted(row["id"] for row in table.rows())


ALL = [11, 12, 13, 21, 22, 31]
APPEND = ("append", "--sql", select(14, 23))
DELETE_11 = ("delete", "--where", "id = 11")
DELETE_PART_1 = ("delete", "--where", "part = 1")
DELETE_22 = ("delete", "--where", "id = 22")
DELETE_SOME = ("delete", "--where", "id IN (11, 13, 15, 21, 23, 31)")
OVERWRITE_PART_2 = ("overwrite", "--where", "part = 2", "--sql", select(24, 25))
ALTER = ("alter", "SET TBLPROPERTIES ('k' = 'v')")
ADD_COLUMN = ("alter", "ADD COLUMN more string")
NEW_SPEC = ("alter", "ADD PARTITION FIELD bucket(2, id)")
# first (stopped before its commit), second, rows when both hold; None = the first is told that it lost
MEETINGS = {
    "append x append": (APPEND, ("append", "--sql", select(15)), [*ALL, 14, 15, 23]),
    "append x delete": (APPEND, DELETE_PART_1, [14, 21, 22, 23, 31]),
    "append x overwrite": (APPEND, OVERWRITE_PART_2, [11, 12, 13, 14, 23, 24, 25, 31]),
    "append x property": (APPEND, ALTER, [*ALL, 14, 23]),
    "append x column": (APPEND, ADD_COLUMN, [*ALL, 14, 23]),
    "append x spec": (APPEND, NEW_SPEC, [*ALL, 14, 23]),
    "append x branch": (APPEND, ("branch", "dev"), [*ALL, 14, 23]),
    "delete x append elsewhere": (DELETE_11, ("append", "--sql", select(26)), [12, 13, 21, 22, 26, 31]),
    "delete x append of a match": (DELETE_PART_1, ("append", "--sql", select(19)), None),
    "delete of rows x append of no match by bounds": (DELETE_11, ("append", "--sql", select(19)), [12, 13, 19, 21, 22, 31]),
    "delete x delete elsewhere": (DELETE_11, DELETE_22, [12, 13, 21, 31]),
    "delete x delete in the same file": (DELETE_11, ("delete", "--where", "id = 12"), None),
    "delete x delete of the same": (DELETE_PART_1, DELETE_PART_1, None),
    "delete x column": (DELETE_11, ADD_COLUMN, [12, 13, 21, 22, 31]),
    "overwrite x append elsewhere": (OVERWRITE_PART_2, ("append", "--sql", select(14)), [11, 12, 13, 14, 24, 25, 31]),
    "overwrite x append of a match": (OVERWRITE_PART_2, ("append", "--sql", select(29)), None),
    "overwrite x delete in the same file": (OVERWRITE_PART_2, DELETE_22, None),
    "overwrite x overwrite": (OVERWRITE_PART_2, ("overwrite", "--where", "part = 2", "--sql", select(26)), None),
    "delete of some x overwrite": (DELETE_SOME, OVERWRITE_PART_2, None),
}


@pytest.mark.parametrize("meeting", MEETINGS)
def test_two_writers_meet(table, meeting):
    first, second, both = MEETINGS[meeting]
    shop = make(table)
    stopped = Stopped(shop, BEFORE, *first)
    shop(*second).ok()
    after_second = (ids(shop), len(shop.metadata()["snapshots"]))
    rc, _, err = stopped.goes_on()
    if both is None:
        assert rc == 1 and re.search("another writer (added|changed|removed)", err), err
        assert (ids(shop), len(shop.metadata()["snapshots"])) == after_second
    else:
        assert rc == 0, err
        assert ids(shop) == sorted(both)
    nothing_is_left_over(shop)


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("meeting", [m for m in MEETINGS if m.startswith(("delete", "append x delete"))])
def test_two_writers_meet_merge_on_read(table, meeting, version):
    """Position delete files of one data file add up; a second vector for one file would not."""
    first, second, both = MEETINGS[meeting]
    if version == "2" and meeting == "delete x delete in the same file":
        both = [13, 21, 22, 31]
    shop = make(table, version, "write.delete.mode=merge-on-read", "write.update.mode=merge-on-read")
    stopped = Stopped(shop, BEFORE, *first)
    shop(*second).ok()
    after_second = ids(shop)
    rc, _, err = stopped.goes_on()
    if both is None:
        assert rc == 1 and re.search("another writer", err), err
        assert ids(shop) == after_second
    else:
        assert rc == 0, err
        assert ids(shop) == sorted(both)
    nothing_is_left_over(shop)


def test_formats_meet_alike(shop):
    for first, second, rc in [(APPEND, ("append", "--sql", select(15)), 0), (DELETE_11, ("append", "--sql", select(26)), 0),
                              (DELETE_22, DELETE_SOME, 1)]:
        stopped = Stopped(shop, BEFORE, *first)
        shop(*second).ok()
        assert stopped.goes_on()[0] == rc
    assert ids(shop) == [12, 14, 22, 26]
    nothing_is_left_over(shop)
    sequence = [s.get("sequence-number", 0) for s in shop.metadata()["snapshots"]]
    assert sequence == ([0] * 6 if shop.metadata()["format-version"] == 1 else list(range(1, 7)))


# ---- the table is another one ----


def drop(table):
    with sqlite3.connect(table.db) as db:
        assert db.execute("DELETE FROM iceberg_tables WHERE table_name = 't'").rowcount == 1


@pytest.mark.parametrize("first", [APPEND, DELETE_11, OVERWRITE_PART_2])
def test_a_table_that_was_dropped_is_told_so(table, first):
    shop = make(table)
    before = {p for p in shop.pointer.parent.parent.rglob("*") if p.is_file()}
    folder = shop.pointer.parent.parent
    stopped = Stopped(shop, BEFORE, *first)
    drop(shop)
    rc, _, err = stopped.goes_on()
    assert rc == 1 and "Table does not exist: ns.t" in err
    assert {p for p in folder.rglob("*") if p.is_file()} == before


@pytest.mark.parametrize("first", [APPEND, DELETE_11, OVERWRITE_PART_2])
def test_a_table_that_was_made_anew_gets_nothing(table, first):
    shop = make(table)
    before = {p for p in (shop.warehouse / "ns/t").rglob("*") if p.is_file()}
    stopped = Stopped(shop, BEFORE, *first)
    drop(shop)
    folder = shop.warehouse / "ns/t"
    shop.create("id long, part int, name string", "--partition", "part", *(w for p in QUICK for w in ("--property", p)))
    rc, _, err = stopped.goes_on()
    assert rc == 1 and "was dropped and created anew meanwhile" in err
    assert shop.rows() == [] and shop.metadata().get("snapshots", []) == []
    assert {p for p in folder.rglob("*") if p.is_file()} == {*before, shop.pointer}


# ---- the head has moved ----


def test_an_append_lands_on_a_head_that_was_rolled_back(table):
    shop = make(table)
    (first,) = (row["snapshot"] for row in shop.history())
    shop.append(select(41))
    stopped = Stopped(shop, BEFORE, *APPEND)
    shop("rollback", "--snapshot", first).ok()
    assert stopped.goes_on()[0] == 0
    assert ids(shop) == sorted([*ALL, 14, 23])
    nothing_is_left_over(shop)


def test_a_delete_is_void_when_its_file_was_rolled_back(table):
    shop = make(table)
    (first,) = (row["snapshot"] for row in shop.history())
    shop.append(select(41, 42))
    stopped = Stopped(shop, BEFORE, "delete", "--where", "id = 41")
    shop("rollback", "--snapshot", first).ok()
    rc, _, err = stopped.goes_on()
    assert rc == 1 and "another writer" in err
    assert ids(shop) == ALL
    nothing_is_left_over(shop)


def test_a_branch_that_was_moved_is_written_at_its_new_head(table):
    shop = make(table)
    shop("branch", "dev").ok()
    shop.append(select(41))
    stopped = Stopped(shop, BEFORE, *APPEND, "--branch", "dev")
    shop("fast-forward", "dev", "main").ok()
    assert stopped.goes_on()[0] == 0
    assert sorted(r["id"] for r in shop.rows("--ref", "dev")) == sorted([*ALL, 14, 23, 41])
    assert ids(shop) == sorted([*ALL, 41])
    nothing_is_left_over(shop)


# ---- lost answers ----


def test_a_commit_whose_answer_was_lost_is_found_to_be_there(shop):
    shop(*APPEND, env={"KNUT_FAULT": "catalog-pointer-moved:1:fail"}).ok()
    assert ids(shop) == sorted([*ALL, 14, 23])
    shop(*DELETE_PART_1, env={"KNUT_FAULT": "catalog-pointer-moved:1:fail"}).ok()
    assert ids(shop) == [21, 22, 23, 31]
    nothing_is_left_over(shop)


def test_a_commit_that_did_not_arrive_is_found_not_to_be_there(shop):
    for words in APPEND, DELETE_11, OVERWRITE_PART_2:
        shop(*words, env={"KNUT_FAULT": "catalog-pointer-not-moved:1:fail"}).fails(1, "was not applied")
        assert ids(shop) == ALL
        nothing_is_left_over(shop)


@pytest.mark.parametrize("second", [("append", "--sql", select(15)), ADD_COLUMN, DELETE_PART_1])
def test_a_commit_is_found_beneath_a_later_one(table, second):
    """Neither the pointer nor the head is ours any more, and yet our files are live."""
    shop = make(table)
    stopped = Stopped(shop, "catalog-pointer-moved:1:fail,catalog-status-check:1:pause", "append", "--sql", select(24))
    shop(*second).ok()
    rc, _, err = stopped.goes_on()
    assert rc == 0, err
    assert 24 in ids(shop)
    nothing_is_left_over(shop)


@pytest.mark.parametrize("log", ["write.metadata.previous-versions-max=1", "k=v"])
def test_a_commit_beneath_a_short_log_is_found_by_its_snapshot(table, log):
    shop = make(table, "2", log)
    stopped = Stopped(shop, "catalog-pointer-moved:1:fail,catalog-status-check:1:pause", "append", "--sql", select(24))
    for i in range(3):
        shop.append(select(50 + i))
    assert stopped.goes_on()[0] == 0
    assert ids(shop) == [*ALL[:5], 24, 31, 50, 51, 52]
    assert named(shop) == {p.name for p in (shop.warehouse / "ns/t").rglob("*") if p.is_file() and not p.name.endswith(".metadata.json")}


def test_a_commit_that_was_overtaken_instead_is_not_there(table):
    shop = make(table)
    stopped = Stopped(shop, "catalog-pointer-not-moved:1:fail,catalog-status-check:1:pause", "append", "--sql", select(24))
    shop.append(select(15))
    rc, _, err = stopped.goes_on()
    assert rc == 1 and "was not applied" in err
    assert ids(shop) == sorted([*ALL, 15])
    nothing_is_left_over(shop)


@pytest.mark.parametrize("point, there", [("catalog-pointer-moved", True), ("catalog-pointer-not-moved", False)])
@pytest.mark.parametrize("words", [APPEND, DELETE_11])
def test_what_nobody_can_tell_keeps_its_files(table, point, there, words):
    shop = make(table)
    folder = shop.warehouse / "ns/t"
    before = {p for p in folder.rglob("*") if p.is_file()}
    failing = f"{point}:1:fail,catalog-status-check:1:fail,catalog-status-check:2:fail"
    done = shop(*words, "--log-format", "json", env={"KNUT_FAULT": failing})
    assert done.rc == 1 and '"code":"commit-state-unknown"' in done.err
    assert "may or may not have been applied" in done.err and "none of its files was removed" in done.err
    assert (ids(shop) != ALL) == there
    more = {p for p in folder.rglob("*") if p.is_file()} - before
    kinds = sorted(re.sub(".*(parquet|snap|m0|m1|metadata)[.-].*|.*", r"\1", p.name) for p in more)
    assert kinds.count("metadata") == 1 and "snap" in kinds and any(p.suffix == ".parquet" for p in more)


# ---- many ----


def test_appends_of_eight_processes_are_all_there(table):
    table.create("id long", "--property", "commit.retry.num-retries=1000", "--property", "commit.retry.min-wait-ms=5",
                 "--property", "commit.retry.max-wait-ms=50", "--property", "commit.manifest.min-count-to-merge=20")

    def writer(number):
        for i in range(20):
            done = table("append", "--sql", f"SELECT {number * 20 + i}::BIGINT AS id", "--threads", "1")
            assert done.rc == 0, str(done)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(writer, range(8)))
    assert ids(table) == list(range(160))
    snapshots = table.metadata()["snapshots"]
    assert len(snapshots) == 160
    assert [s.get("parent-snapshot-id") for s in snapshots] == [None, *(s["snapshot-id"] for s in snapshots[:-1])]
    assert [s["sequence-number"] for s in snapshots] == list(range(1, 161))
    R.assert_same(table.rows(), [{"id": i} for i in range(160)])

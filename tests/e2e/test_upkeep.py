# SPDX-License-Identifier: Apache-2.0
"""Snapshots and files are managed: refs, staged snapshots, expiring, orphans, dropping. Killed anywhere, the table is
whole, and running the command again ends where the first would have ended."""
import os
import shutil
import time

import pytest
from pyiceberg.table import StaticTable

from lib import rows as R
from lib.lake import Table, plain
from lib.program import KILLED

SCHEMA = "id long required, name string"
NOW = ("--older-than", "1ms")


def rows(start, stop):
    return f"SELECT range::BIGINT AS id, 'n' || range AS name FROM range({start}, {stop})"


def refs(table, kind="branch"):
    return {row["name"]: row["snapshot"] for row in table(kind, "--output", "json").ok().rows}


def ids(table, *args):
    return sorted(row["id"] for row in table.rows(*args))


def below(folder):
    return {str(path) for path in folder.rglob("*") if path.is_file()}


def location(table):
    return plain(table.metadata()["location"])


@pytest.fixture
def story(table):
    """Appends, rewrites, a branch, a tag, a staged snapshot, one that was rolled back from."""
    return tell(table)


def tell(table):
    table.create(SCHEMA, "--property", "write.wap.enabled=true")
    table.append(rows(0, 20))
    table("tag", "v1").ok()
    table.delete("id = 3")
    table.append(rows(20, 30), "--branch", "dev")
    table.append(rows(30, 40), "--wap-id", "w1")
    lost = table.overwrite("id < 5", rows(100, 102))["snapshot"]
    parent = next(s["parent"] for s in table.history() if s["snapshot"] == lost)
    table("rollback", "--snapshot", parent).ok()
    table.append(rows(40, 45))
    return table


def check_whole(table):
    """Every file of every snapshot is there, and what refs name can be read."""
    reachable(table)
    for ref in table.metadata()["refs"]:
        table.rows("--ref", ref, "--count")


def reached(table):
    """Below the location only what is reached: nothing is left for 'orphans'."""
    assert table("orphans", "--dry-run", *NOW, "--output", "json").ok().rows == []


# ---- refs and staging ----


def test_a_staged_snapshot_is_audited_published_and_delivered_once(story, delivery):
    delivery.deliver()
    before = ids(story)
    assert before == [i for i in range(20) if i != 3] + list(range(40, 45))
    staged = next(s["snapshot"] for s in story.history() if story_summary(story, s["snapshot"]).get("wap.id") == "w1")
    assert ids(story, "--snapshot", staged)[-1] == 39
    moved = story("publish", "--wap-id", "w1", "--output", "json").ok().row
    assert moved["changed"] and moved["after"] != staged and refs(story)["main"] == moved["after"]
    assert story_summary(story, moved["after"])["source-snapshot-id"] == str(staged)
    assert story_summary(story, moved["after"])["published-wap-id"] == "w1"
    assert ids(story) == sorted(before + list(range(30, 40)))
    story("publish", "--wap-id", "w1").fails(3, "published already")
    (window,) = delivery.deliver()["windows"]
    assert window["upserts"] == 10 and window["deletes"] == 0
    R.assert_same(delivery.rows(), story.rows(), "the copy")


def story_summary(table, snapshot):
    return next(s["summary"] for s in table.metadata()["snapshots"] if s["snapshot-id"] == snapshot)


def test_a_branch_is_written_audited_and_fast_forwarded(table):
    table.create(SCHEMA).append(rows(0, 5))
    table("branch", "audit", "--max-ref-age", "30d", "--min-snapshots-to-keep", "2").ok()
    table.append(rows(5, 8), "--branch", "audit", "--summary", "job=7")
    assert ids(table) == list(range(5)) and ids(table, "--ref", "audit") == list(range(8))
    moved = table("fast-forward", "main", "audit", "--output", "json").ok().row
    assert ids(table) == list(range(8)) and refs(table)["main"] == refs(table)["audit"] == moved["after"]
    assert story_summary(table, moved["after"])["job"] == "7"
    (main, audit) = table("branch", "--output", "json").ok().rows
    assert audit == {"name": "audit", "type": "branch", "snapshot": moved["after"], "min_snapshots_to_keep": 2,
                     "max_snapshot_age_ms": None, "max_ref_age_ms": 30 * 86400 * 1000}
    ancestors = [a["snapshot"] for a in table("ancestors", "--output", "json").ok().rows]
    assert ancestors == [moved["after"], moved["before"]]
    table("branch", "audit", "--drop").ok()
    assert list(refs(table)) == ["main"] and main["name"] == "main"


# ---- expiring ----


def test_expiring_tells_what_goes_and_removes_just_that(story):
    folder = location(story)
    before = below(folder)
    told = story("expire", *NOW, "--dry-run", "--output", "json").ok().rows
    assert below(folder) == before
    names = {str(plain(row["name"])): row["bytes"] for row in told if row["bytes"] is not None}
    snapshots = {int(row["name"]) for row in told if row["kind"] == "snapshot"}
    assert {row["kind"] for row in told} == {"snapshot", "data", "manifest", "manifest-list"}
    assert names == {name: os.path.getsize(name) for name in names}
    done = story("expire", *NOW, "--output", "json").ok().row
    gone = before - below(folder)
    assert gone == set(names) and done["bytes"] == sum(names.values())
    assert done["snapshots"] == len(snapshots) and not snapshots & {s["snapshot"] for s in story.history()}
    assert done["left"] == done["unreadable"] == 0
    check_whole(story)
    assert ids(story) == [i for i in range(20) if i != 3] + list(range(40, 45))
    assert ids(story, "--ref", "v1") == list(range(20)) and len(ids(story, "--ref", "dev")) == 29
    again = story("expire", *NOW, "--output", "json").ok().row
    assert again["snapshots"] == again["bytes"] == 0


def test_a_cursor_on_an_expired_snapshot_is_refused_by_the_delivery(story, delivery):
    delivery.deliver()
    story.append(rows(50, 51))
    story.append(rows(51, 52))
    story("expire", *NOW).ok()
    delivery.run().fails(3, "expired|no longer")


def test_old_documents_go_after_a_commit_when_the_table_says_so(table):
    table.create(SCHEMA, "--property", "write.metadata.delete-after-commit.enabled=true",
                 "--property", "write.metadata.previous-versions-max=2")
    for n in range(5):
        table.append(rows(n, n + 1))
    assert len(list((location(table) / "metadata").glob("*.metadata.json"))) == 3
    reached(table)


def test_appends_under_expiring_lose_nothing(table, knut):
    table.create(SCHEMA)
    table.append(rows(0, 1))
    writers = [knut.start("table", "append", *table.locator, "--sql", rows(n, n + 1)) for n in range(1, 5)]
    for _ in range(4):
        table("expire", *NOW).ok()
    for writer in writers:
        out, err = writer.communicate(timeout=60)
        assert writer.returncode == 0, err
    table("expire", *NOW).ok()
    assert ids(table) == list(range(5))
    check_whole(table)


# ---- killed anywhere ----


def reachable(table):
    """Every file that the metadata reaches, as PyIceberg reads it; each must be there."""
    ice = StaticTable.from_metadata(f"file://{table.pointer}")
    names = {table.pointer, *(plain(entry.metadata_file) for entry in ice.metadata.metadata_log)}
    for snapshot in ice.metadata.snapshots:
        names.add(plain(snapshot.manifest_list))
        for manifest in snapshot.manifests(ice.io):
            names.add(plain(manifest.manifest_path))
            names |= {plain(e.data_file.file_path) for e in manifest.fetch_manifest_entry(ice.io)}
    missing = [str(name) for name in names if not name.exists()]
    assert not missing
    return {str(name) for name in names}


COMMANDS = {
    "tag": ("tag", "v2"),
    "publish": ("publish", "--wap-id", "w1"),
    "expire": ("expire", *NOW),
    "orphans": ("orphans", *NOW, "--force"),
    "purge": ("drop", "--purge"),
}
ORPHANS = ("data/left.parquet", "data/left-too.parquet", "metadata/left.avro")


@pytest.mark.parametrize("command", COMMANDS)
def test_killed_anywhere_the_table_is_whole_and_running_again_completes(story, command, tmp_path):
    words, folder, kept = COMMANDS[command], location(story), tmp_path / "kept"
    for name in ORPHANS:
        (folder / name).write_text("left by a killed writer")
    shutil.copytree(story.warehouse, kept)
    trace = tmp_path / "trace"
    story(*words, env={"KNUT_FAULT_TRACE": trace}).ok()
    passed = trace.read_text().split()
    final = end_of(story)
    for name in dict.fromkeys(passed):
        for n in {1, passed.count(name)}:
            shutil.rmtree(story.warehouse)
            shutil.copytree(kept, story.warehouse)
            done = story(*words, env={"KNUT_FAULT": f"{name}:{n}:kill"})
            assert done.rc == KILLED, f"{name}:{n}\n{done}"
            run_again(story, command, folder)
            assert end_of(story) == final, f"killed at {name}:{n}"


def run_again(table, command, folder):
    words = COMMANDS[command]
    if command == "purge" and table("show").rc != 0:
        # Dropped. Documents go last: by the newest it can be had back as long as there is one.
        documents = sorted((folder / "metadata").glob("*.metadata.json"))
        if documents:
            table("register", "--metadata", documents[-1]).ok()
            table("drop").ok()
        assert all((folder / name).exists() for name in ORPHANS)
        return
    reachable(table)
    done = table(*words)
    if command == "publish":  # its own marks say that it was done
        assert done.rc == 0 or "published already" in done.error, done
    elif command == "tag":
        assert done.rc == 0 or "exists already" in done.error, done
    else:
        done.ok()


def end_of(table):
    """What a command came to: refs, rows, number of snapshots; all files but orphans are reached."""
    if table("show").rc != 0:
        return None
    table("orphans", *NOW, "--force").ok()
    assert below(location(table)) == reachable(table)
    document = table.metadata()
    at = {name: ids(table, "--ref", name) for name in document["refs"]}
    return at, len(document["snapshots"])


def test_what_a_killed_writer_left_is_an_orphan_and_nothing_else_is(story, tmp_path):
    folder = location(story)
    before = below(folder)
    story("append", "--sql", rows(60, 70), env={"KNUT_FAULT": "write-before-commit:1:kill"})
    left = below(folder) - before
    assert len(left) == 3  # a data file, a manifest, a list
    assert story("orphans", "--output", "json").ok().rows == []  # three days are not over
    old = time.time() - 4 * 86400
    for path in left:
        os.utime(path, (old, old))
    told = {str(plain(row["file"])) for row in story("orphans", "--dry-run", "--output", "json").ok().rows}
    assert told == left
    story("orphans").ok()
    assert below(folder) == before
    check_whole(story)


# ---- dropping ----


def test_a_dropped_table_is_registered_and_renamed(story, knut):
    rows_then, document = ids(story), story.pointer
    story("drop").ok()
    story("show").fails(1, "does not exist")
    story("register", "--metadata", document).ok()
    assert ids(story) == rows_then
    story("rename", "other.name").ok()
    assert ids(Table(knut, story.warehouse, "other.name")) == rows_then
    Table(knut, story.warehouse, "other.name")("drop", "--purge").ok()
    assert below(story.warehouse) == {str(story.db)}


# ---- bad input ----

BAD = {
    "no such branch to drop": (("branch", "nope", "--drop"), 1, "no branch 'nope'"),
    "main is not dropped": (("branch", "main", "--drop"), 2, "main"),
    "a tag as a branch": (("branch", "v1", "--replace"), 2, "is a tag"),
    "taken": (("tag", "v1"), 1, "--replace"),
    "two wishes": (("tag", "v2", "--replace", "--if-not-exists"), 2, "not both"),
    "two snapshots": (("tag", "v2", "--snapshot", "1", "--ref", "main"), 2, "only one"),
    "an age of nothing": (("branch", "b", "--max-ref-age", "0s"), 2, "--max-ref-age"),
    "an age that is none": (("branch", "b", "--max-snapshot-age", "soon"), 2, "--max-snapshot-age.*duration"),
    "a number that is none": (("branch", "b", "--min-snapshots-to-keep", "0"), 2, "min-snapshots-to-keep"),
    "a tag with a branch's setting": (("tag", "v2", "--min-snapshots-to-keep", "2"), 2, "min-snapshots-to-keep"),
    "a snapshot that is not there": (("set-current", "--snapshot", "7"), 1, "7"),
    "no snapshot at all": (("rollback",), 2, "--snapshot"),
    "no ancestor": (("rollback", "--ref", "dev"), 3, "no ancestor"),
    "not forward": (("fast-forward", "main", "v1"), 3, "not an ancestor"),
    "one word": (("fast-forward", "main"), 2, "branch"),
    "no number": (("cherry-pick", "--snapshot", "x"), 2, "snapshot id"),
    "picked into its own history": (("cherry-pick", "--snapshot", "v1"), 2, "snapshot id"),
    "nothing staged": (("publish", "--wap-id", "w9"), 1, "w9"),
    "an empty id": (("append", "--sql", rows(0, 1), "--wap-id", ""), 2, "empty"),
    "a summary without a value": (("append", "--sql", rows(0, 1), "--summary", "x"), 2, "KEY=VALUE"),
    "a summary of the writer's own": (("append", "--sql", rows(0, 1), "--summary", "operation=x"), 2, "itself"),
    "expire what is named": (("expire", "--snapshot", "MAIN"), 3, "branch main"),
    "expire by a bad time": (("expire", "--older-than", "2026-13-01"), 2, "--older-than"),
    "keep none": (("expire", "--retain-last", "0"), 2, "retain-last"),
    "young orphans": (("orphans", "--older-than", "1h"), 3, "24 hours"),
    "orphans elsewhere": (("orphans", "--location", "/"), 3, "outside"),
    "a dry run of nothing": (("drop", "--dry-run"), 2, "--purge"),
    "a name without a namespace": (("rename", "x"), 2, "namespace"),
    "a document that is none": (("register", "--metadata", "/etc/hostname"), 1, "exist|JSON"),
}


def test_bad_input_is_one_line_and_changes_nothing(story, knut, tmp_path):
    main = str(refs(story)["main"])
    before = (story.pointer, below(story.warehouse))
    for what, (words, rc, pattern) in BAD.items():
        words = [main if word == "MAIN" else word for word in words]
        print(what)
        story(*words).fails(rc, pattern)
        assert (story.pointer, below(story.warehouse)) == before, what
    bare = ("--root", location(story))
    for words in (("expire",), ("tag", "v9"), ("rollback", "--ref", "v1"), ("orphans",)):
        knut("table", *words, *bare).fails(2, "read-only")


def test_damaged_manifests_keep_files_from_going(story):
    story.append(rows(200, 210))
    folder = location(story)
    manifest = next(p for p in (folder / "metadata").glob("*-m0.avro"))
    saved = manifest.read_bytes()
    manifest.write_bytes(saved[:len(saved) // 2])
    data = below(folder / "data")
    for words in (("orphans", *NOW, "--force"), ("drop", "--purge")):
        story(*words).fails(1, manifest.name)
    assert below(folder / "data") == data
    manifest.write_bytes(saved)
    check_whole(story)

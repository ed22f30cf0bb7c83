# SPDX-License-Identifier: Apache-2.0
"""Expiring and orphans: what Spark's procedures remove of a table is what the program removes of its copy; others read
what is left; refs that others made are kept by their rules."""
import fcntl
import shutil
from pathlib import Path

import pytest

from lib import rows as R
from lib.lake import plain
from peers import spark_tables
from peers.pyice import Lake
from peers.spark_upkeep import names


@pytest.fixture(params=spark_tables.UPKEEP)
def kept(request, spark, knut, tmp_path):
    """A table of Spark's as it was before, in a catalog of ours; and what Spark did.

    Its files are put back where Spark had them: one test at a time, of all workers, may have them.
    """
    answer = spark.of("upkeep", request.param)
    folder = Path(answer["folder"])
    with open(folder.with_name(folder.name + ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(folder)
        shutil.copytree(folder.with_name(folder.name + ".before"), folder)
        newest = max((folder / "metadata").glob("v*.metadata.json"), key=lambda p: int(p.name.split(".")[0][1:]))
        shared = Lake(knut, tmp_path / "warehouse").table(f"s.{folder.name}")
        shared.knut("register", "--metadata", newest).ok()
        yield shared, answer, folder


def test_what_spark_expires_the_program_expires(kept):
    shared, answer, folder = kept
    before = names(folder)
    words = ("expire", "--older-than", answer["older_than_ms"], "--retain-last", "1")
    told = [str(plain(row["name"])) for row in shared.knut(*words, "--dry-run").ok().rows if row["bytes"] is not None]
    assert sorted(told) == answer["expired"]
    shared.knut(*words).ok()
    assert sorted(set(before) - set(names(folder))) == answer["expired"]
    assert sorted(s["snapshot"] for s in shared.knut("history").ok().rows) == sorted(answer["snapshots"])
    listed = shared.knut("branch").ok().rows + shared.knut("tag").ok().rows
    assert {ref["name"]: ref["snapshot"] for ref in listed} == answer["refs"]
    for ref in answer["refs"]:
        assert shared.rows("--ref", ref)


def test_what_spark_takes_for_orphans_the_program_does(kept):
    shared, answer, folder = kept
    before = names(folder)
    told = [str(plain(row["file"])) for row in shared.knut("orphans", "--older-than", "2d", "--dry-run").ok().rows]
    assert sorted(told) == answer["orphans"] and len(told) >= 4
    shared.knut("orphans", "--older-than", "2d").ok()
    assert sorted(set(before) - set(names(folder))) == answer["orphans"]


@pytest.mark.parametrize("version", [2, 3])
def test_pyiceberg_reads_what_is_left_and_commits_on_it(lake, version):
    shared = lake.table()
    create = ("create", "--schema", "id long, name string", "--format-version", version,
              "--property", "write.wap.enabled=true")
    shared.knut(*create).ok()
    query = "SELECT range::BIGINT AS id, 'n' || range AS name FROM range({}, {})".format
    shared.knut("append", "--sql", query(0, 10)).ok()
    shared.knut("tag", "t1").ok()
    shared.knut("delete", "--where", "id < 3").ok()
    shared.knut("append", "--sql", query(10, 20), "--wap-id", "w").ok()
    shared.knut("append", "--sql", query(20, 30)).ok()
    shared.knut("publish", "--wap-id", "w").ok()
    shared.knut("branch", "dev", "--min-snapshots-to-keep", "2", "--max-ref-age", "10d").ok()
    shared.knut("expire", "--older-than", "1ms").ok()
    ice = shared.ice
    assert {name: ref.snapshot_ref_type for name, ref in ice.refs().items()} == {
        "main": "branch", "dev": "branch", "t1": "tag"}
    assert ice.refs()["dev"].min_snapshots_to_keep == 2 and ice.refs()["dev"].max_ref_age_ms == 864000000
    assert len(ice.snapshots()) == 3  # main and its parent, which dev keeps; the tag's
    shared.agree()
    for ref in ("dev", "t1"):
        snapshot = ice.refs()[ref].snapshot_id
        R.assert_same(R.of_arrow(ice.scan(snapshot_id=snapshot).to_arrow()), shared.rows("--ref", ref), ref)
    if version == 2:
        ice.delete("id = 25")
        shared.agree(lately=2)
        assert shared.knut("scan", "--count").ok().row == {"count": 26}


def test_refs_of_pyiceberg_age_as_they_say(lake):
    shared = lake.table()
    shared.knut("create", "--schema", "id long").ok()
    for n in range(4):
        shared.knut("append", "--sql", f"SELECT {n}::BIGINT AS id").ok()
    ice = shared.ice
    first, second, third, _ = [s.snapshot_id for s in ice.snapshots()]
    with ice.manage_snapshots() as refs:
        refs.create_tag(first, "short", max_ref_age_ms=1)
        refs.create_tag(second, "long", max_ref_age_ms=86400000)
        refs.create_branch(third, "work", min_snapshots_to_keep=1, max_snapshot_age_ms=1)
    told = shared.knut("expire", "--older-than", "1ms", "--dry-run").ok().rows
    gone = {row["name"] for row in told if row["kind"] in ("ref", "snapshot")}
    assert gone == {"short", str(first)}
    shared.knut("expire", "--older-than", "1ms").ok()
    assert set(shared.ice.refs()) == {"main", "long", "work"}
    shared.agree()

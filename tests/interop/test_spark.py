# SPDX-License-Identifier: Apache-2.0
"""Spark 4.1 with Iceberg 1.12, both ways: the program reads Spark's tables (bare roots of a Hadoop catalog) at every
snapshot and finds the same changes; Spark reads the program's tables, and their row lineage is what the format asks."""
import json
import subprocess

import pytest

from lib import rows as R
from lib.lake import Delivery, Table, plain
from peers import spark_tables
from peers.pyice import Lake, assert_changes, difference, split_changes


@pytest.fixture
def root(spark):
    return lambda name: ("--root", spark.warehouse / "s" / name)


@pytest.fixture
def written(spark, knut):
    """The program's tables that Spark has read."""
    return lambda name: Lake(knut, spark.lake_folder).table(f"ns.{name}")


# ---- Spark writes ----


@pytest.mark.parametrize("name", spark_tables.SPARK)
def test_a_table_of_spark_is_read_at_every_snapshot(knut, spark, root, name):
    answer = spark.of("spark", name)
    R.assert_same(knut.json("table", "scan", *root(name)).ok().rows, answer["current"], f"{name} now")
    for snapshot, rows in answer["rows"].items():
        got = knut.json("table", "scan", *root(name), "--snapshot", snapshot).ok().rows
        R.assert_same(got, rows, f"{name} at {snapshot}")
    for ref, snapshot in answer["refs"].items():
        got = knut.json("table", "scan", "--count", *root(name), "--ref", ref).ok().row
        assert got == {"count": len(answer["rows"][str(snapshot)])}
    assert len(answer["snapshots"]) > 1


@pytest.mark.parametrize("name", spark_tables.SPARK)
def test_the_changes_of_each_commit_of_spark_are_exact(knut, spark, root, name):
    """As Spark's own reads differ. Changes have today's columns: commits before a column came or went are left out."""
    answer = spark.of("spark", name)
    def known(snapshot):
        return snapshot is None or snapshot in answer["as_today"]
    checked = 0
    for snapshot in answer["snapshots"]:
        to, since = snapshot["snapshot_id"], snapshot["parent_id"]
        if not (known(to) and known(since)):
            continue
        words = ["--from", since] if since else []
        got = split_changes(knut.json("table", "changes", *root(name), "--to", to, *words).ok().rows)
        expected = difference(answer["rows"][str(since)] if since else [], answer["rows"][str(to)])
        assert_changes(got, expected, f"{name} at {to} ({snapshot['operation']})")
        checked += 1
    assert checked > 0


@pytest.mark.parametrize("name", spark_tables.CHANGELOGS)
def test_net_changes_are_those_of_sparks_own_change_log(knut, spark, root, name):
    answer = spark.of("spark", name)
    assert isinstance(answer["changelog"], list), answer["changelog"]
    theirs = {"INSERT": [], "DELETE": []}
    for row in answer["changelog"]:
        row.pop("_change_ordinal"), row.pop("_commit_snapshot_id")
        theirs[row.pop("_change_type")].append(row)
    deletes, inserts = difference(theirs["DELETE"], theirs["INSERT"])
    ours = split_changes(knut.json("table", "changes", "--net", *root(name)).ok().rows)
    assert_changes(ours, (deletes, inserts), name)


@pytest.mark.parametrize("name", ["cow_v2", "mor_v2", "mor_v3", "compacted_v2", "partitions_change"])
def test_a_table_of_spark_is_delivered(knut, spark, root, tmp_path, name):
    answer = spark.of("spark", name)
    copy = Delivery(Table(knut, tmp_path), tmp_path, locator=root(name))
    (window,) = copy.deliver()["windows"]
    assert (window["to"], window["upserts"]) == (answer["refs"]["main"], len(answer["current"]))
    R.assert_same(copy.rows(), answer["current"], name)


# ---- the program writes ----

KNUT = list(spark_tables.knut_tables())


@pytest.mark.parametrize("name", KNUT)
def test_spark_reads_a_table_at_every_snapshot(spark, written, name):
    answer, shared = spark.of("knut", name), written(name)
    R.assert_same(answer["current"], shared.rows(), f"{name} now")
    for snapshot, rows in answer["rows"].items():
        R.assert_same(rows, shared.rows("--snapshot", snapshot), f"{name} at {snapshot}")
    assert len(answer["rows"]) > 1 and answer["current"]


def same(name, row):
    """What a row keeps; where columns change, only its key and lineage."""
    keys = ("id", "_row_id", "_last_updated_sequence_number") if name.startswith("evolved") else row
    return {key: row[key] for key in keys}


@pytest.mark.parametrize("name", [name for name in KNUT if name.endswith("v3")])
def test_row_lineage_is_as_spark_reads_it_and_outlives_rewrites(spark, written, name):
    answer, shared = spark.of("knut", name), written(name)
    ice = shared.ice
    before, next_row_id = {}, 0
    for snapshot in ice.snapshots():
        rows = answer["lineage"][str(snapshot.snapshot_id)]
        R.assert_same(shared.rows("--snapshot", snapshot.snapshot_id, "--lineage"), rows, f"{name} at {snapshot.snapshot_id}")
        ids = {row["_row_id"]: row for row in rows}
        assert len(ids) == len(rows) and None not in ids, "row ids are unique"
        for row_id, row in ids.items():
            if row_id in before and name.startswith("merged") and row != before[row_id]:  # upserted: the same row, changed now
                assert row["id"] == before[row_id]["id"] and row["_last_updated_sequence_number"] == snapshot.sequence_number
            elif row_id in before:  # carried over: the same row, unchanged since
                assert same(name, row) == same(name, before[row_id])
            else:
                assert row_id >= next_row_id and row["_last_updated_sequence_number"] == snapshot.sequence_number
        next_row_id += snapshot.added_rows
        assert snapshot.first_row_id <= next_row_id and all(row_id < next_row_id for row_id in ids)
        before = ids
    assert ice.metadata.next_row_id == next_row_id


# ---- statistics ----


def sketches(file):
    """A Puffin file's blobs: field id -> bytes, properties."""
    raw = file.read_bytes()
    size = int.from_bytes(raw[-12:-8], "little")
    found = {}
    for blob in json.loads(raw[-12 - size:-12])["blobs"]:
        data = raw[blob["offset"]:blob["offset"] + blob["length"]]
        if blob.get("compression-codec") == "zstd":
            data = subprocess.run(["zstd", "-dc"], input=data, stdout=subprocess.PIPE, check=True).stdout
        assert blob["type"] == "apache-datasketches-theta-v1"
        found[blob["fields"][0]] = (data.hex(), blob["properties"])
    return found


def test_sketches_of_the_same_values_are_those_of_spark_byte_by_byte(knut, root, spark, tmp_path):
    metadata = spark.warehouse / "s" / "types" / "metadata"
    (theirs,) = metadata.glob("*.stats")
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps(json.loads((metadata / "v1.metadata.json").read_text())["schemas"][0]))
    table = Table(knut, tmp_path / "warehouse")
    table("create", "--schema-json", schema).ok()
    table("append", *(plain(f["file"]) for f in knut.json("table", "files", *root("types")).ok().rows)).ok()
    table("stats").ok()
    (set_,) = table.metadata()["statistics"]
    assert sketches(plain(set_["statistics-path"])) == sketches(theirs)

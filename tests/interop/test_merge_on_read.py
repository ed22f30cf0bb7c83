# SPDX-License-Identifier: Apache-2.0
"""Deletes, overwrites and upserts that the program writes merge-on-read, read at every snapshot by PyIceberg and by
DuckDB's iceberg extension; position delete files and Puffin files opened by others' own readers."""
import struct

import pyarrow.parquet as pq
import pytest
from pyiceberg.manifest import DataFileContent
from pyroaring import BitMap

from lib import rows as R
from lib.lake import plain
from peers import written as W
from peers.duck import duck_arrow, duck_rows
from test_knut_writes import append, create

VERSIONS = [2, 3]
MERGE = ("--mode", "merge-on-read")
PATH, POS = 2147483546, 2147483545


def story(shared):
    """Commits of every kind that leaves files with deletes."""
    append(shared, W.keyed(0, 40), W.keyed(40, 60))
    shared.knut("delete", *MERGE, "--where", "id < 7").ok()
    shared.knut("delete", *MERGE, "--where", "id IN (8, 9, 41)").ok()
    shared.knut("overwrite", *MERGE, "--where", "id >= 20 AND id < 30", "--sql", W.keyed(20, 33, "new")).ok()
    done = shared.knut("upsert", *MERGE, "--key", "id,name", "--sql", W.keyed(28, 36, "new")).ok().row
    assert (done["updated_rows"], done["inserted_rows"]) == (0, 3)
    done = shared.knut("upsert", *MERGE, "--key", "id,name", "--sql", QUARTERS).ok().row
    assert (done["updated_rows"], done["inserted_rows"], done["removed_rows"]) == (10, 5, 10)
    shared.knut("delete", *MERGE, "--where", "day = '2024-01-02' AND id > 30").ok()


QUARTERS = W.keyed(50, 65).replace("0.5", "0.25")


def rows_after():
    rows = W.rows_of(W.keyed(7, 8), W.keyed(10, 20), W.keyed(30, 41), W.keyed(42, 50), W.keyed(20, 36, "new"), QUARTERS)
    return [r for r in rows if not (str(r["day"]) == "2024-01-02" and r["id"] > 30)]


def delete_entries(ice):
    return [entry.data_file for manifest in ice.current_snapshot().manifests(ice.io)
            for entry in manifest.fetch_manifest_entry(ice.io, discard_deleted=True)
            if entry.data_file.content == DataFileContent.POSITION_DELETES]


@pytest.mark.parametrize("granularity", ["partition", "file"])
@pytest.mark.parametrize("partition", ["", "day", "bucket(3, id)"])
@pytest.mark.parametrize("version", VERSIONS)
def test_tables_merged_on_read_are_read_by_others_at_every_snapshot(lake, version, partition, granularity):
    args = ("--partition", partition) if partition else ()
    shared = create(lake, W.KEYED, *args, "--property", f"write.delete.granularity={granularity}", version=version)
    story(shared)
    ice = shared.ice
    R.assert_same(shared.rows(), rows_after(), "the program")
    shared.agree(8).agree_on_history()
    for snapshot in ice.snapshots():
        R.assert_same(duck_rows(ice.metadata_location, snapshot.snapshot_id),
                      shared.rows("--snapshot", snapshot.snapshot_id), "DuckDB's extension")
    assert [s.sequence_number for s in ice.snapshots()] == list(range(1, 9))
    assert delete_entries(ice)


def test_position_delete_files_are_as_the_format_wants_them(lake):
    shared = create(lake, W.KEYED, "--partition", "day")
    append(shared, W.keyed(0, 40), W.keyed(40, 60))
    shared.knut("delete", *MERGE, "--where", "id IN (1, 2, 3, 41, 46, 51)").ok()
    ice = shared.ice
    rows = {entry.data_file.file_path: entry.data_file for manifest in ice.current_snapshot().manifests(ice.io)
            for entry in manifest.fetch_manifest_entry(ice.io) if entry.data_file.content == DataFileContent.DATA}
    files = delete_entries(ice)
    assert len(files) == 3 and sum(f.record_count for f in files) == 6
    for file in files:
        table = pq.ParquetFile(plain(file.file_path)).read()
        ids = [int(field.metadata[b"PARQUET:field_id"]) for field in table.schema]
        assert (table.schema.names, ids) == (["file_path", "pos"], [PATH, POS])
        pairs = list(zip(*table.to_pydict().values()))
        assert pairs == sorted(set(pairs)) and len(pairs) == file.record_count
        assert {rows[path].partition[0] for path, _ in pairs} == {file.partition[0]}
        assert (file.lower_bounds[PATH].decode(), file.upper_bounds[PATH].decode()) == (pairs[0][0], pairs[-1][0])
        assert file.sort_order_id is None
        assert plain(file.file_path).name.endswith("-deletes.parquet")


def vectors(file):
    """The only blob of a Puffin file, a deletion vector, as CRoaring reads it."""
    data = plain(file.file_path).read_bytes()
    (length,) = struct.unpack_from(">i", data, 4)
    blob = data[4:4 + 4 + length + 4]
    assert (data[:4], blob[4:8].hex(), data[4 + len(blob):][:4]) == (b"PFA1", "d1d33964", b"PFA1")
    count, at, found = *struct.unpack_from("<q", blob, 8), 16, []
    for _ in range(count):
        (key,) = struct.unpack_from("<i", blob, at)
        bitmap = BitMap.deserialize(blob[at + 4:-4])
        assert bitmap.serialize() == blob[at + 4:at + 4 + len(bitmap.serialize())], "CRoaring would write the same"
        found += [key << 32 | value for value in bitmap]
        at += 4 + len(bitmap.serialize())
    return found


@pytest.mark.parametrize("gone", [
    "SELECT unnest([3, 70000, 70001]) AS id", "SELECT n AS id FROM range(0, 200000, 7) t(n)",
    "SELECT n AS id FROM range(150000) t(n)", "SELECT n AS id FROM range(200000) t(n) WHERE n % 2 = 0 OR n < 65536"])
def test_vectors_of_every_shape_are_read_by_others(lake, gone):
    shared = create(lake, "id long, flag boolean", version=3)
    append(shared, "SELECT n AS id, false AS flag FROM range(200000) t(n)")
    shared.knut("upsert", *MERGE, "--key", "id", "--sql", f"SELECT *, true AS flag FROM ({gone})").ok()
    (file,) = delete_entries(shared.ice)
    ids = sorted(row["id"] for row in W.rows_of(gone))
    assert vectors(file) == ids and file.record_count == len(ids)
    for table in shared.ice.scan().to_arrow(), duck_arrow(shared.ice.metadata_location):
        assert table.num_rows == 200000 and sorted(table.filter(table["flag"])["id"].to_pylist()) == ids

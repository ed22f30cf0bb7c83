# SPDX-License-Identifier: Apache-2.0
"""Tables that were compacted, whose manifests and deletes were rewritten, read by PyIceberg and DuckDB's extension at
every step; tables of PyIceberg rewritten; PyIceberg's commits on top. (Spark's part: spark_tables.py.)"""
import pytest

from lib import rows as R
from peers import spark_tables
from peers import written as W
from peers.duck import duck_rows
from test_knut_writes import create

TABLES = {name: table for name, table in spark_tables.knut_tables().items() if name.startswith("rewritten")}
QUIET = ("compact", "rewrite-deletes", "rewrite-manifests")


@pytest.mark.parametrize("name", TABLES)
def test_every_step_of_rewriting_is_read_by_others(lake, name):
    version, schema, more, steps = TABLES[name]
    shared = create(lake, schema, *more, version=version)
    uuid, made = shared.ice.metadata.table_uuid, 0
    for command, *words in steps:
        before = R.multiset(shared.rows())
        shared.knut(command, *words).ok()
        ice = shared.ice
        rows = shared.rows()
        if command in QUIET:
            assert R.multiset(rows) == before, command
            made += ice.current_snapshot().summary.operation.value == "replace"
        R.assert_same(R.of_arrow(ice.scan().to_arrow()), rows, f"PyIceberg after {command}")
        R.assert_same(duck_rows(ice.metadata_location), rows, f"DuckDB after {command}")
    assert made >= 2 and ice.metadata.table_uuid == uuid
    for snapshot in ice.snapshots():
        if snapshot.summary.operation.value == "replace":
            shared.knut("changes", "--from", snapshot.parent_snapshot_id, "--to", snapshot.snapshot_id).ok()
            assert shared.changes("--from", snapshot.parent_snapshot_id, "--to", snapshot.snapshot_id) == (R.multiset([]),) * 2
    if ice.format_version == 2:  # PyIceberg does not write version 3
        ice.append(ice.scan().to_arrow().slice(0, 3))
        assert len(shared.rows()) == len(rows) + 3


@pytest.mark.parametrize("version", [1, 2])
def test_what_pyiceberg_wrote_is_rewritten(lake, version):
    shared = create(lake, W.KEYED, "--partition", "bucket(2, id)", version=2)
    shared.knut("append", "--sql", W.keyed(0, 40)).ok()
    data = shared.ice.scan().to_arrow()
    other = lake.catalog.create_table("ns.other", shared.ice.schema(), partition_spec=shared.ice.spec(),
                                      properties={"format-version": str(version)})
    for i in range(6):
        other.append(data.slice(5 * i, 5))
    table = lake.table("ns.other")
    before = table.rows()
    table.knut("rewrite-manifests").ok()
    done = table.knut("compact", "--rewrite-all").ok().row
    assert done["removed_files"] > done["added_files"] == 2
    table.agree(lately=3)
    R.assert_same(table.rows(), before, "rewritten")

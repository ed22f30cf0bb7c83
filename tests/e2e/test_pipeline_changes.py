# SPDX-License-Identifier: Apache-2.0
"""Changes applied to Iceberg tables by `knut pipeline run`: old rows or new ones, in whatever order changes come."""
import json

import duckdb
import pytest

FIRST = "(1, 1, 'a', 'INSERT'), (2, 2, 'b', 'INSERT')"
SECOND = "(1, 3, 'c', 'UPDATE_AFTER'), (2, 5, NULL, 'DELETE'), (3, 4, 'd', 'INSERT')"


class Dimension:
    """A table to which changes are applied."""

    def __init__(self, table, folder):
        self.table, self.folder, self.document = table, folder, folder / "changes.json"

    def create(self, scd, kind="int"):
        bounds = ", __start_at int, __end_at int" if scd == "type2" else ""
        self.scd = scd
        self.table.create(f"id int, seq int, val string{bounds}")
        return self

    def apply(self, values, *words, **more):
        changes = self.folder / "changes.parquet"
        duckdb.sql(f"COPY (SELECT * FROM (VALUES {values}) t(id, seq, val, _change_type)) TO '{changes}'")
        self.document.write_text(json.dumps({
            "name": "changes", "storage": str(self.folder / "state"),
            "inputs": [{"name": "changes", "path": str(changes)}],
            "datasets": [{"name": "dim", "output_type": "table", "format": "iceberg", "path": self.table.name}],
            "flows": [{"name": "f", "target": "dim", "reads": ["changes"], "query": "SELECT * FROM changes", "kind": {
                "cdc": {"cdc": {"keys": ["id"], "sequence_by": "seq", "scd_type": self.scd}}}}]}))
        return self.table.knut("pipeline", "run", self.document, "--warehouse", self.table.warehouse, *words, **more)

    def rows(self):
        names = ["id", "val", "__start_at", "__end_at"] if self.scd == "type2" else ["id", "val", "seq"]
        return sorted(tuple(row[name] for name in names) for row in self.table.rows())


@pytest.fixture
def dimension(table, tmp_path):
    return Dimension(table, tmp_path)


def test_type_1_keeps_the_last_row_of_each_key_however_a_run_ends(dimension):
    dimension.create("type1")
    dimension.apply(FIRST).ok()
    assert dimension.rows() == [(1, "a", 1), (2, "b", 2)]
    for point, after in [("pipeline-commit:1", [(1, "a", 1), (2, "b", 2)]),
                         ("pipeline-committed:1", [(1, "c", 3), (3, "d", 4)])]:
        assert dimension.apply(SECOND, env={"KNUT_FAULT": f"{point}:kill"}).rc == -9
        assert dimension.rows() == after
    dimension.apply(FIRST).ok()  # late, and said before: the delete is remembered
    assert dimension.rows() == [(1, "c", 3), (3, "d", 4)]
    dimension.apply("(4, 1, 'e', 'INSERT')", "--full-refresh", "all").ok()
    assert dimension.rows() == [(4, "e", 1)]


def test_type_2_keeps_the_history_of_each_key(dimension):
    dimension.create("type2")
    dimension.apply(SECOND).ok()
    dimension.apply(FIRST).ok()
    assert dimension.rows() == [(1, "a", 1, 3), (1, "c", 3, None), (2, "b", 2, 5), (3, "d", 4, None)]


def test_what_does_not_fit_is_said_in_one_line(dimension):
    dimension.create("type1")
    dimension.scd = "type2"
    dimension.apply(FIRST).fails(2, "must have the columns of the changes that are kept, __start_at and __end_at")
    dimension.scd = "type1"
    dimension.apply("(1, NULL::INT, 'a', 'INSERT')").fails(3, "keys and sequence are not NULL")
    document = json.loads(dimension.document.read_text())
    del document["storage"]
    dimension.document.write_text(json.dumps(document))
    dimension.table.knut("pipeline", "run", dimension.document, "--warehouse", dimension.table.warehouse).fails(
        3, "remembered in the pipeline's `storage`")
    assert dimension.rows() == []

# SPDX-License-Identifier: Apache-2.0
"""Golden tables into PostgreSQL, commit by commit: at the end the copy has the reference reader's rows."""
import pytest
from lib import rows as R
from lib.lake import Delivery, Table
from lib.pg_server import Server

from test_golden import (catalog_of, documents, expected_rows, golden, golden_tables, lineage, lines,  # noqa: F401
                         manifest_list, of_snapshot, read_document, refusal)


@pytest.fixture(scope="module")
def server():
    made = Server()
    yield made
    made.close()


def readable(table):
    """What knut reads, with an answer for every snapshot."""
    states = lines(table, "states")
    return bool(states) and all("rows" in s and not refusal(table, s["snapshot"]) for s in states)


@pytest.mark.parametrize("table", [t for t in golden_tables() if readable(t)])
def test_a_history_is_delivered_into_postgresql(knut, golden, server, tmp_path, monkeypatch, table):  # noqa: F811
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    source = Table(knut, tmp_path / "warehouse", "g.t")
    source.warehouse.mkdir()
    folder = tmp_path / "delivery"
    folder.mkdir()
    target = f'"{table}".copy'
    copy = Delivery(source, folder, target=target, sink=f"{server.sink()}?nanoseconds=text")
    newest = None
    for path in documents(golden[table]):
        document = read_document(path)
        head = document.get("current-snapshot-id")
        if head in (None, -1) or not manifest_list(document, head).exists():
            continue
        catalog_of(source.warehouse, path)
        if copy.run().rc == 0:
            newest = document, head
            continue
        # Expired or rolled back (test_golden.py says which): the operator's way out.
        copy.command("reload").ok()
        copy.deliver()
        newest = document, head
    document, head = newest
    state = of_snapshot(table, "states", head)
    if state["schema_id"] == document["current-schema-id"]:
        R.assert_same(server.rows(target), expected_rows(table, head), table, signed_zeros=False)
    else:
        assert len(server.rows(target)) == state["count"]

# SPDX-License-Identifier: Apache-2.0
"""One database, two programs: PyIceberg's SqlCatalog and knut on a SQLite file and on PostgreSQL.

Each makes tables, appends, renames and drops; the other sees it and goes on."""
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from lib.postgres import Postgres, programs

SCHEMA = Schema(NestedField(1, "id", LongType(), required=False))


@pytest.fixture(scope="module")
def postgres():
    if not programs():
        pytest.skip("PostgreSQL is not installed")
    with Postgres() as server:
        yield server


class Shared:
    """A warehouse and its database, seen from both sides."""

    def __init__(self, knut, folder, db, uri):
        self.knut, self.folder, self.db, self.uri = knut, folder, db, uri

    def __call__(self, verb, name, *words):
        return self.knut("table", verb, "--warehouse", self.folder, "--db", self.db, "--table", name, *words)

    @property
    def catalog(self):
        return SqlCatalog("knut", uri=self.uri, warehouse=f"file://{self.folder}")

    def append(self, name, *ids):
        values = ", ".join(f"({i}::BIGINT)" for i in ids)
        self("append", name, "--sql", f"SELECT * FROM (VALUES {values}) t(id)").ok()

    def ids(self, name):
        """The same from both."""
        ours = sorted(row["id"] for row in self("scan", name, "--output", "json").ok().rows)
        theirs = sorted(self.catalog.load_table(name).scan().to_arrow()["id"].to_pylist())
        assert ours == theirs
        return ours


@pytest.fixture(params=["sqlite", "postgresql"])
def shared(request, knut, tmp_path):
    folder = tmp_path / "warehouse"
    folder.mkdir()
    if request.param == "sqlite":
        db = tmp_path / "shared.db"
        return Shared(knut, folder, db, f"sqlite:///{db}")
    server = request.getfixturevalue("postgres")
    db = server.database(f"d{abs(hash(request.node.nodeid))}")
    return Shared(knut, folder, db, db.replace("postgresql:", "postgresql+psycopg2:"))


def append(table, *ids):
    table.append(pa.table({"id": pa.array(ids, pa.int64())}))


def test_a_database_that_knut_made_is_opened_by_pyiceberg(shared):
    shared("create", "ns.t", "--schema", "id long").ok()
    shared.append("ns.t", 1, 2)
    assert shared.ids("ns.t") == [1, 2]
    assert shared.catalog.list_namespaces() == [("ns",)]
    assert shared.catalog.list_tables("ns") == [("ns", "t")]
    append(shared.catalog.load_table("ns.t"), 3)
    assert shared.ids("ns.t") == [1, 2, 3]
    shared("rename", "ns.t", "other.u").ok()
    with pytest.raises(NoSuchTableError):
        shared.catalog.load_table("ns.t")
    assert shared.ids("other.u") == [1, 2, 3]
    shared.catalog.drop_table("other.u")
    shared("scan", "other.u").fails(1, "Table does not exist: other.u")


def test_a_database_that_pyiceberg_made_is_opened_by_knut(shared):
    shared.catalog.create_namespace("a.b", {"owner": "me"})
    append(shared.catalog.create_table("a.b.t", SCHEMA), 1)
    shared.append("a.b.t", 2)
    append(shared.catalog.load_table("a.b.t"), 3)
    shared.append("a.b.t", 4)
    assert shared.ids("a.b.t") == [1, 2, 3, 4]
    assert shared.catalog.load_namespace_properties("a.b")["owner"] == "me"


def test_two_writers_in_turn_lose_nothing(shared):
    shared.catalog.create_namespace("ns")
    held = shared.catalog.create_table("ns.t", SCHEMA)
    shared.append("ns.t", 1)
    append(held, 2)  # it holds metadata that is not the newest, loses the race and tries again
    shared.append("ns.t", 3)
    assert shared.ids("ns.t") == [1, 2, 3]


def test_a_password_is_in_no_message(shared, postgres):
    db = f"postgresql://bob:hunter2@127.0.0.1:{postgres.port}/absent"
    done = shared.knut("table", "list", "--warehouse", shared.folder, "--db", db)
    assert done.rc != 0
    assert "hunter2" not in done.err and "bob" not in done.err

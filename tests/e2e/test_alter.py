# SPDX-License-Identifier: Apache-2.0
"""Tables that change their shape: what was written before and after reads as one table, is deleted from and overwritten
across partition specs, and arrives equal in DuckDB.

The model is a DuckDB table that goes through the same statements.
"""
import json

import duckdb
import pytest

from lib import rows as R
from lib.lake import arrow

SCHEMA = "id int required, ts timestamp, d date, name string, amount decimal(9,2), x float, st struct<a int, b string>, li list<struct<p int>>"
MODEL = ("CREATE TABLE m (id INT, ts TIMESTAMP, d DATE, name VARCHAR, amount DECIMAL(9,2), x FLOAT, "
         "st STRUCT(a INT, b VARCHAR), li STRUCT(p INT)[])")


def batch(start, stop):
    """Rows of the first shape."""
    return (f"SELECT i::INT AS id, TIMESTAMP '2026-01-01' + to_hours(i * 5) AS ts, DATE '2025-12-28' + (i % 9)::INT AS d, "
            f"CASE WHEN i % 6 = 0 THEN NULL ELSE 'n' || (i % 7) END AS name, (i / 4.0)::DECIMAL(9,2) AS amount, (i / 8.0)::FLOAT AS x, "
            f"CASE WHEN i % 5 = 0 THEN NULL ELSE {{'a': i::INT, 'b': 'b' || i}} END AS st, "
            f"[{{'p': i::INT}}, NULL] AS li FROM range({start}, {stop}) t(i)")


class Twin:
    """A table and its model, held equal after each step."""

    def __init__(self, table, delivery):
        self.table, self.delivery = table, delivery
        self.db = duckdb.connect()
        self.db.execute("SET TimeZone = 'UTC'")
        self.db.execute(MODEL)

    def alter(self, *changes, model=()):
        self.table("alter", *changes).ok()
        for statement in [model] if isinstance(model, str) else model:
            self.db.execute(statement)
        return self.check()

    def append(self, sql, model=None):
        self.table.append(sql)
        self.db.execute(f"INSERT INTO m BY NAME {model or sql}")
        return self.check()

    def delete(self, where):
        gone = self.table.delete(where)["removed_rows"]
        assert gone == self.db.execute(f"DELETE FROM m WHERE {where}").fetchone()[0], where
        return self.check()

    def overwrite(self, where, sql):
        self.table.overwrite(where, sql)
        self.db.execute(f"DELETE FROM m WHERE {where}")
        self.db.execute(f"INSERT INTO m BY NAME {sql}")
        return self.check()

    def rows(self, where="TRUE"):
        return R.of_arrow(arrow(self.db, f"FROM m WHERE {where}"))

    def check(self):
        R.assert_same(self.table.rows(), self.rows())
        return self

    def finds(self, *filters):
        for where in filters:
            R.assert_same(self.table.rows("--where", where), self.rows(where), where)
        return self

    def deliver(self):
        self.delivery.deliver()
        R.assert_same(self.delivery.rows(), self.rows(), "delivered", signed_zeros=False)
        return self


@pytest.fixture
def twin(table, delivery):
    return Twin(table, delivery)


def specs(table):
    return {f["spec"] for f in table("files", "--output", "json").ok().rows}


@pytest.mark.parametrize("version", [2, 3])
def test_columns_change_and_rows_stay(twin, version):
    twin.table.create(SCHEMA, "--format-version", version)
    twin.append(batch(0, 40)).deliver()
    twin.alter("RENAME COLUMN name TO label", "ALTER COLUMN id TYPE bigint", "ALTER COLUMN x TYPE double",
               "ALTER COLUMN amount TYPE decimal(20,2)", "RENAME COLUMN st.b TO c", "ADD COLUMN li.q string",
               model=["ALTER TABLE m RENAME name TO label", "ALTER TABLE m ALTER id TYPE BIGINT", "ALTER TABLE m ALTER x TYPE DOUBLE",
                      "ALTER TABLE m ALTER amount TYPE DECIMAL(20,2)", "ALTER TABLE m RENAME COLUMN st.b TO c",
                      "CREATE OR REPLACE TABLE m AS SELECT * REPLACE "
                      "(list_transform(li, lambda e: CASE WHEN e IS NULL THEN NULL ELSE {'p': e.p, 'q': NULL::VARCHAR} END) AS li) FROM m"])
    twin.finds("id = 7", "x > 3.5", "amount >= 9.75", "label = 'n3'").deliver()
    twin.append("SELECT 10000000000 + i AS id, 'new' AS label, i / 3.0 AS x, 123456789012345.25 + i AS amount, "
                "{'a': 1, 'c': 'c'} AS st, [{'p': 1, 'q': 'q'}] AS li FROM range(5) t(i)")
    twin.finds("id > 30", "x < 1", "amount > 9", "label = 'new' OR label IS NULL").deliver()
    # The name of a dropped column, used again, is another column.
    twin.alter("DROP COLUMN label", "ADD COLUMN label int FIRST", "DROP COLUMN st.a", "ADD COLUMN st.a string",
               model=["ALTER TABLE m DROP label", "ALTER TABLE m ADD label INT", "ALTER TABLE m DROP COLUMN st.a",
                      "ALTER TABLE m ADD COLUMN st.a VARCHAR"])
    twin.finds("label IS NULL", "label = 3").append("SELECT 3 AS label, -1 AS id, {'c': 'c', 'a': 'text'} AS st")
    twin.finds("label = 3", "label IS NULL AND id < 3").deliver()
    twin.delete("id IN (0, 2, 4, 10000000002)").deliver()
    twin.overwrite("x >= 4", "SELECT 77 AS id, 7 AS label, 4.5::DOUBLE AS x").deliver()


def test_defaults_fill_in_what_was_not_written(twin):
    twin.table.create(SCHEMA, "--format-version", 3)
    twin.append(batch(0, 20)).deliver()
    added = {"i": ("int", "-7", "INT"), "t": ("string", "'it''s'", "VARCHAR"), "b": ("boolean", "true", "BOOLEAN"),
             "de": ("decimal(9,2)", "1.50", "DECIMAL(9,2)"), "da": ("date", "'2020-02-29'", "DATE"),
             "tt": ("timestamp", "'2020-02-29T12:00:00.000001'", "TIMESTAMP"), "dd": ("double", "1.25", "DOUBLE")}
    twin.alter(*(f"ADD COLUMN {c} {kind} NOT NULL DEFAULT {lit}" for c, (kind, lit, _) in added.items()),
               "ADD COLUMN st.n int DEFAULT 5",
               model=["CREATE OR REPLACE TABLE m AS SELECT * REPLACE "
                      "(CASE WHEN st IS NULL THEN NULL ELSE {'a': st.a, 'b': st.b, 'n': 5} END AS st) FROM m",
                      *(f"ALTER TABLE m ADD {c} {kind} DEFAULT {lit}" for c, (_, lit, kind) in added.items())])
    twin.finds("i = -7", "i IS NULL", "t = 'it''s' AND b", "da < '2021-01-01'", "de = 1.5", "st.n = 5").deliver()
    twin.alter("ALTER COLUMN i SET DEFAULT 8", "ALTER COLUMN t SET DEFAULT 'now'", model=["ALTER TABLE m ALTER i SET DEFAULT 8",
                                                                                        "ALTER TABLE m ALTER t SET DEFAULT 'now'"])
    twin.append("SELECT 100 AS id").finds("i = 8", "t = 'now'", "i = -7").deliver()
    twin.append("SELECT 101 AS id, {'b': 'x'} AS st", model="SELECT 101 AS id, {'a': NULL::INT, 'b': 'x', 'n': 5} AS st")
    twin.delete("id = 3").overwrite("id < 3", "SELECT 1 AS id, 'given' AS t").finds("t <> 'now'").deliver()
    twin.table("append", "--sql", "SELECT NULL::INT AS i, 1 AS id").fails(2, "'?i'?.*required|required.*'?i'?")


@pytest.mark.parametrize("version", [2, 3])
def test_specs_change_and_files_stay_in_theirs(twin, version):
    twin.table.create(SCHEMA, "--partition", "day(ts)", "--format-version", version)
    twin.append(batch(0, 30)).deliver()
    twin.alter("REPLACE PARTITION FIELD ts_day WITH hour(ts)", "ADD PARTITION FIELD bucket(4, id)")
    twin.append(batch(30, 60)).deliver()
    assert specs(twin.table) == {0, 1}
    twin.alter("DROP PARTITION FIELD ts_hour", "DROP PARTITION FIELD id_bucket_4", "ADD PARTITION FIELD name",
               "ADD PARTITION FIELD truncate(10, id) AS tens", "WRITE ORDERED BY id DESC")
    twin.append(batch(60, 90))
    twin.alter("RENAME COLUMN name TO label", "RENAME PARTITION FIELD name TO label", "ALTER COLUMN id TYPE long",
               model=["ALTER TABLE m RENAME name TO label", "ALTER TABLE m ALTER id TYPE BIGINT"])
    twin.finds("id = 41", "ts < '2026-01-03'", "label = 'n3'", "label IS NULL", "id >= 55 AND id < 65", "d = '2026-01-01'").deliver()
    # Whole partitions of one spec, parts of the others; what is written anew is of today's spec.
    twin.delete("ts >= '2026-01-02' AND ts < '2026-01-04'").deliver()
    twin.overwrite("label = 'n3'", "SELECT 5000000000 AS id, 'n3' AS label, TIMESTAMP '2026-02-01' AS ts").deliver()
    twin.finds("id = 5000000000", "label = 'n3'", "id = 41").delete("id > 100 OR id < 10").deliver()
    listed = twin.table("files", "--output", "json").ok().rows
    assert {f["spec"] for f in listed} >= {twin.table.metadata()["default-spec-id"]}
    twin.delete("TRUE").deliver()


def test_partition_values_keep_their_meaning_when_columns_change(twin):
    """Promoted, renamed and dropped sources of fields that older specs have; manifests are written anew with them."""
    twin.table.create(SCHEMA, "--partition", "id, amount, name, bucket(3, d)", "--format-version", 3)
    twin.append(batch(0, 12)).deliver()
    twin.alter("ALTER COLUMN id TYPE bigint", "ALTER COLUMN amount TYPE decimal(30,2)", "RENAME COLUMN d TO day",
               model=["ALTER TABLE m ALTER id TYPE BIGINT", "ALTER TABLE m ALTER amount TYPE DECIMAL(30,2)", "ALTER TABLE m RENAME d TO day"])
    twin.append("SELECT 10000000000 AS id, 1234567890123456789012.25::DECIMAL(30,2) AS amount, 'n1' AS name")
    twin.finds("id = 3", "amount = 0.5", "amount > 1", "id > 9", "name = 'n1'", "name IS NULL", "day = '2025-12-30'").deliver()
    twin.delete("id = 3 OR id = 10000000000").deliver()
    twin.alter("DROP PARTITION FIELD name", "DROP PARTITION FIELD d_bucket", "DROP PARTITION FIELD amount", "DROP COLUMN name, day, amount",
               model=["ALTER TABLE m DROP name", "ALTER TABLE m DROP day", "ALTER TABLE m DROP amount"])
    twin.finds("id = 4", "id IS NULL").delete("id = 4 OR id = 7").deliver()
    twin.append("SELECT 9 AS id").overwrite("id = 9", "SELECT 10 AS id").deliver()
    twin.alter("DROP PARTITION FIELD id", "ADD COLUMN name int", "ADD PARTITION FIELD name", model="ALTER TABLE m ADD name INT")
    twin.append("SELECT 11 AS id, 5 AS name").finds("name = 5", "name IS NULL").delete("x < 1").deliver()
    twin.delete("TRUE").deliver()


def test_partition_values_outlive_their_column(table):
    """A manifest is written anew when a file of it goes; the others' tuples are what delete files are matched by."""
    table.create("id long, name string, amount decimal(9,2)", "--partition", "name, amount, truncate(1, name) as t")
    table.append("SELECT i AS id, 'n' || (i % 2) AS name, 1.5 AS amount FROM range(10) t(i)")
    table("alter", "DROP PARTITION FIELD name", "DROP PARTITION FIELD t", "DROP PARTITION FIELD amount", "DROP COLUMN name, amount").ok()
    table.delete("id = 3")
    kept = [f["partition"] for f in table("files", "--output", "json").ok().rows if f["spec"] == 0]
    assert kept == [{"name": "n0", "amount": "1.50", "t": "n"}]


def test_a_promoted_date_finds_its_rows(twin):
    twin.table.create(SCHEMA, "--partition", "month(d)", "--format-version", 3)
    twin.append(batch(0, 20)).deliver()
    twin.alter("ALTER COLUMN d TYPE timestamp", model="ALTER TABLE m ALTER d TYPE TIMESTAMP")
    twin.finds("d = '2025-12-30'", "d < '2025-12-31 12:00:00'", "d >= '2026-01-01'", "d = '2025-12-30 00:00:01'").deliver()
    twin.append("SELECT 50 AS id, TIMESTAMP '2025-12-30 00:00:01' AS d").finds("d = '2025-12-30 00:00:01'", "d = '2025-12-30'")
    twin.delete("d < '2025-12-30'").deliver()


def test_keys_are_altered(table, delivery):
    table.create("id long required, name string")
    table.append("SELECT 1 AS id, 'a' AS name UNION ALL SELECT 2, 'b'")
    table("alter", "SET IDENTIFIER FIELDS id").ok()
    delivery.deliver()
    table.overwrite("id = 1", "SELECT 1 AS id, 'c' AS name")
    delivery.deliver()
    assert sorted(r["name"] for r in delivery.rows()) == ["b", "c"]
    table("alter", "DROP COLUMN id").fails(2, "Cannot delete identifier field id")
    table("alter", "DROP IDENTIFIER FIELDS id", "ALTER COLUMN id DROP NOT NULL").ok()
    assert "identifier-field-ids" not in table.metadata()["schemas"][-1]


def test_old_snapshots_keep_their_schema(table):
    table.create("id long, name string")
    first = table.append("SELECT 1 AS id, 'a' AS name")["snapshot"]
    table("alter", "RENAME COLUMN name TO label", "ADD COLUMN n int").ok()
    table.append("SELECT 2 AS id, 'b' AS label, 3 AS n")
    assert table.rows("--snapshot", first) == [{"id": 1, "name": "a"}]
    assert sorted(map(str, table.rows())) == sorted(map(str, [{"id": 1, "label": "a", "n": None}, {"id": 2, "label": "b", "n": 3}]))


def test_changes_are_one_commit_or_none(table):
    table.create("id long, name string")
    before = table.pointer
    table("alter", "ADD COLUMN a int", "ADD COLUMN name int").fails(2, "name already exists: name")
    assert table.pointer == before
    changed = table("alter", "ADD COLUMN a int", "SET TBLPROPERTIES ('k' = 'v')", "--output", "json").ok().rows
    assert {"what": "schema", "from": "0", "to": "1"} in changed
    assert {"what": "column 3", "from": None, "to": "a int"} in changed
    assert {"what": "property k", "from": None, "to": "v"} in changed
    assert len(list(before.parent.glob("*.metadata.json"))) == 2
    before = table.pointer
    assert table("alter", "ADD COLUMN b int", "--dry-run", "--output", "json").ok().rows[0]["what"] == "schema"
    assert table("alter", "ALTER COLUMN id TYPE long", "--output", "json").ok().rows == []
    assert table.pointer == before
    table("alter").fails(2, "which changes")
    table("alter", "DROP COLUMN").fails(2, "position 12: expected a name")
    table.knut("table", "alter", "--metadata", before, "DROP COLUMN a").fails(2, "read-only")


def test_a_moved_table_writes_to_the_new_place(table, tmp_path):
    table.create("id long")
    table.append("SELECT 1 AS id")
    old = table.warehouse / "ns" / "t"
    table("alter", f"SET LOCATION 'file://{tmp_path}/moved'").ok()
    assert table.pointer.is_relative_to(tmp_path / "moved")
    table.append("SELECT 2 AS id")
    table("scan").fails(3, "--allow-path")
    assert sorted(r["id"] for r in table.rows("--allow-path", old)) == [1, 2]


def test_many_alter_at_once_and_none_is_lost(table):
    """Each adds a column of its own: whoever loses a race plans anew, four times: five can all be done."""
    table.create("id long")
    children = [table.knut.start("table", "alter", *table.locator, f"ADD COLUMN c{i} int") for i in range(5)]
    for child in children:
        assert child.communicate()[1] == ""
    schema = next(s for s in table.metadata()["schemas"] if s["schema-id"] == table.metadata()["current-schema-id"])["fields"]
    assert {f["name"] for f in schema} == {"id", *(f"c{i}" for i in range(5))}
    assert len({f["id"] for f in schema}) == 6

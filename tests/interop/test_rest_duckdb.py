# SPDX-License-Identifier: Apache-2.0
"""DuckDB's iceberg extension as a client of `knut catalog serve`, with the table's files on S3.

(On a local warehouse the extension does not make the folders of a staged table, so CTAS is for S3 alone.)
"""
import uuid

import pytest

from peers.odd_names import ODD


@pytest.fixture(scope="module")
def duck(served_s3):
    return served_s3.duckdb()


@pytest.fixture
def ns(duck):
    name = f"dk_{uuid.uuid4().hex[:8]}"
    duck.sql(f"CREATE SCHEMA c.{name}")
    yield name
    for table in duck.rows(f"SELECT table_name FROM duckdb_tables() WHERE schema_name = '{name}'"):
        duck.sql(f"DROP TABLE c.{name}.{table[0]}")
    duck.sql(f"DROP SCHEMA c.{name}")


@pytest.fixture
def table(duck, ns):
    name = f"c.{ns}.t"
    duck.sql(f"CREATE TABLE {name} (id BIGINT, name VARCHAR, d DATE, amt DECIMAL(10,2), ts TIMESTAMPTZ, l INTEGER[], "
             "s STRUCT(a INTEGER, b VARCHAR))")
    duck.sql(f"INSERT INTO {name} SELECT i, 'n' || i, DATE '2024-01-01' + i::INT, i * 1.5, "
             "TIMESTAMPTZ '2024-01-01 00:00:00+00', [i::INT], {'a': i::INT, 'b': 'x'} FROM range(10) r(i)")
    return name


def test_inserts_are_read_back_now_and_then(duck, table):
    assert duck.rows(f"SELECT count(*), sum(id) FROM {table}") == [(10, 45)]
    duck.sql(f"INSERT INTO {table} SELECT i, 'n' || i, NULL, NULL, NULL, NULL, NULL FROM range(10, 20) r(i)")
    snapshots = duck.rows(f"SELECT snapshot_id FROM iceberg_snapshots({table}) ORDER BY sequence_number")
    assert len(snapshots) == 2
    assert duck.rows(f"SELECT count(*) FROM {table} AT (VERSION => {snapshots[0][0]})") == [(10,)]
    assert duck.rows(f"SELECT count(*) FROM {table}") == [(20,)]
    assert duck.rows(f"SELECT count(*) > 0 FROM iceberg_metadata({table})") == [(True,)]


def test_deletes_and_updates(duck, table):
    duck.sql(f"DELETE FROM {table} WHERE id < 5")
    assert duck.rows(f"SELECT count(*) FROM {table}") == [(5,)]
    duck.sql(f"UPDATE {table} SET name = 'upd' WHERE id = 7")
    assert duck.rows(f"SELECT name FROM {table} WHERE id = 7") == [("upd",)]


def test_a_table_made_by_a_query(duck, ns):
    duck.sql(f"CREATE TABLE c.{ns}.t2 AS SELECT 1 AS x, 'a' AS y")
    assert duck.rows(f"SELECT * FROM c.{ns}.t2") == [(1, "a")]


@pytest.mark.parametrize("name", ODD)
def test_odd_names_are_one_table_for_every_operation(duck, served_s3, ns, name):
    duck.sql(f'CREATE TABLE c.{ns}."{name}" (x INTEGER)')
    duck.sql(f'INSERT INTO c.{ns}."{name}" VALUES (7)')
    _, _, listed = served_s3.ask("GET", f"/v1/namespaces/{ns}/tables")
    assert listed["identifiers"] == [{"namespace": [ns], "name": name}]
    assert duck.rows(f'SELECT x FROM c.{ns}."{name}"') == [(7,)]
    duck.sql(f'DROP TABLE c.{ns}."{name}"')
    assert served_s3.ask("GET", f"/v1/namespaces/{ns}/tables")[2]["identifiers"] == []


def test_columns_are_added_renamed_and_dropped(duck, table):
    for change in ("ADD COLUMN extra INTEGER", "RENAME COLUMN name TO nick", "DROP COLUMN extra"):
        duck.sql(f"ALTER TABLE {table} {change}")
    assert duck.rows(f"SELECT nick FROM {table} WHERE id = 3") == [("n3",)]


def test_a_transaction_over_two_tables_is_one_commit(duck, ns, table):
    duck.sql(f"CREATE TABLE c.{ns}.other (x INTEGER)")
    duck.sql("BEGIN")
    duck.sql(f"INSERT INTO {table} (id) VALUES (100)")
    duck.sql(f"INSERT INTO c.{ns}.other VALUES (2)")
    duck.sql(f"INSERT INTO c.{ns}.other VALUES (3)")
    duck.sql("COMMIT")
    assert duck.rows(f"SELECT count(*) FROM {table}") == [(11,)]
    assert duck.rows(f"SELECT count(*) FROM c.{ns}.other") == [(2,)]


def test_what_duckdb_wrote_the_program_reads(duck, served_s3, knut, ns, table):
    duck.sql(f"DELETE FROM {table} WHERE id = 3")
    got = knut.json("table", "scan", "--rest-uri", served_s3.uri, "--table", f"{ns}.t", "--columns", "id",
                    env=served_s3.environment).ok().rows
    assert sorted(r["id"] for r in got) == [i for i in range(10) if i != 3]

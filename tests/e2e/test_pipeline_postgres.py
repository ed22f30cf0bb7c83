# SPDX-License-Identifier: Apache-2.0
"""Pipelines that read tables of a real PostgreSQL and write into one."""
import json

import duckdb
import pytest

from lib.pg_server import Server

EVERY_TYPE = """
CREATE TABLE {s}.src (id bigint, yes boolean, small smallint, i integer, f real, g double precision,
 d numeric(38,10), loose numeric, da date, ti time, ts timestamp, tz timestamptz, s text, v varchar(20), c char(3),
 u uuid, b bytea, j jsonb, li integer[], st interval);
INSERT INTO {s}.src VALUES
 (1, true, -3, -7, 1.5, -0.1, -123.45678, 12345678901234567890.125, '2026-02-28', '23:59:59.999999',
  '2026-01-31 12:00:00.000001', '1969-12-31 23:59:59.999999+00', 'été', 'v', 'x', '00112233-4455-6677-8899-aabbccddeeff',
  '\\x0001ff', '{{"a": [1, null]}}', '{{1,2}}', '1 day'),
 (2, NULL, NULL, NULL, 'NaN', 'Infinity', NULL, 'NaN', '0001-01-01', NULL, NULL, NULL, '', NULL, NULL, NULL, '', NULL,
  NULL, NULL)"""


@pytest.fixture(scope="module")
def server():
    made = Server()
    yield made
    made.close()


class Bridge:
    """A schema of the server's own, and pipelines between it and files."""

    def __init__(self, knut, server, folder, schema):
        self.knut, self.server, self.folder, self.schema = knut, server, folder, schema
        server.psql(f"CREATE SCHEMA {schema}")

    def url(self, table=None):
        return self.server.sink() + (f"?table={self.schema}.{table}" if table else "")

    def run(self, source, target, *words, query="SELECT * FROM rows", mode="append", env=None, **dataset):
        document = self.folder / "p.json"
        source = source if isinstance(source, dict) else {"path": str(source)}
        document.write_text(json.dumps({
            "name": "bridge", "inputs": [{"name": "rows", **source}],
            "datasets": [{"name": "out", "output_type": "sink", "path": str(target), "write_mode": mode, **dataset}],
            "flows": [{"name": "f", "target": "out", "reads": ["rows"], "kind": "batch",
                       **({"query": query} if query else {})}]}))
        return self.knut("pipeline", "run", document, *words, env={**self.server.environment, **(env or {})})

    def rows(self, name, start, stop):
        file = self.folder / name
        duckdb.sql(f"COPY (SELECT range AS id, 'n' || range AS name FROM range({start}, {stop})) TO '{file}'")
        return file

    def total(self, table="t"):
        return self.server.psql(f"SELECT count(*), sum(id) FROM {self.schema}.{table}")


@pytest.fixture
def bridge(knut, server, tmp_path, request):
    return Bridge(knut, server, tmp_path, f"s{abs(hash(request.node.nodeid)) % 10**12}")


def test_every_type_is_read(bridge, tmp_path):
    bridge.server.psql(EVERY_TYPE.format(s=bridge.schema))
    out = tmp_path / "out.parquet"
    bridge.run(bridge.url("src"), out, query=None).ok()
    types = dict(duckdb.sql(f"SELECT column_name, column_type FROM (DESCRIBE FROM '{out}')").fetchall())
    assert types == {
        "id": "BIGINT", "yes": "BOOLEAN", "small": "SMALLINT", "i": "INTEGER", "f": "FLOAT", "g": "DOUBLE",
        "d": "DECIMAL(38,10)", "loose": "VARCHAR", "da": "DATE", "ti": "TIME", "ts": "TIMESTAMP",
        "tz": "TIMESTAMP WITH TIME ZONE", "s": "VARCHAR", "v": "VARCHAR", "c": "VARCHAR", "u": "UUID", "b": "BLOB",
        "j": "VARCHAR", "li": "VARCHAR", "st": "VARCHAR"}
    one, two = duckdb.sql(f"SELECT COLUMNS(*)::VARCHAR FROM '{out}' ORDER BY id").fetchall()
    assert one[1:10] == ("true", "-3", "-7", "1.5", "-0.1", "-123.4567800000", "12345678901234567890.125", "2026-02-28",
                         "23:59:59.999999")
    assert one[10] == "2026-01-31 12:00:00.000001" and one[12:15] == ("été", "v", "x  ")
    assert one[15:] == ("00112233-4455-6677-8899-aabbccddeeff", "\\x00\\x01\\xFF", '{"a": [1, null]}', "{1,2}", "1 day")
    assert two == ("2", None, None, None, "nan", "inf", None, "NaN", "0001-01-01", *[None] * 3, "", None, None, None, "",
                   None, None, None)


def test_a_query_is_an_input_and_what_is_read_twice_is_there_twice(bridge, tmp_path):
    bridge.server.psql(f"CREATE TABLE {bridge.schema}.src AS SELECT g AS id FROM generate_series(1, 10000) g")
    source = {"path": bridge.url(), "format": "postgres",
              "options": {"query": f"SELECT id FROM {bridge.schema}.src WHERE id <= 5000"}}
    out = tmp_path / "out.csv"
    bridge.run(source, out, query="SELECT count(*) AS n FROM (SELECT * FROM rows UNION ALL SELECT * FROM rows)").ok()
    assert out.read_text() == "n\n10000\n"


def test_rows_are_added_and_replaced_in_one_transaction(bridge):
    target = bridge.url("t")
    bridge.run(bridge.rows("a.parquet", 0, 3000), target).ok()  # makes the table
    bridge.run(bridge.rows("b.parquet", 0, 10), target).ok()
    assert bridge.total() == f"3010|{2999 * 1500 + 45}"
    bridge.run(bridge.rows("b.parquet", 0, 10), target, mode="overwrite").ok()
    assert bridge.total() == "10|45"
    assert bridge.server.psql(f"SELECT count(*), sum(rows) FROM {bridge.schema}._knut_runs") == "3|3020"


def test_a_run_with_an_id_adds_once_however_it_ends(bridge):
    target, rows = bridge.url("t"), bridge.rows("a.parquet", 0, 10)
    for point, count in [("pipeline-commit:1", "0"), ("pipeline-committed:1", "10")]:
        done = bridge.run(rows, target, "--run-id", point, env={"KNUT_FAULT": f"{point}:kill"})
        assert done.rc == -9, str(done)
        assert bridge.server.psql(f"SELECT CASE WHEN to_regclass('{bridge.schema}.t') IS NULL THEN 0 ELSE "
                                  f"(xpath('/row/n/text()', query_to_xml('SELECT count(*) AS n FROM {bridge.schema}.t', "
                                  "false, true, '')))[1]::text::int END") == count
    done = bridge.run(rows, target, "--run-id", "pipeline-committed:1", "--output", "json").ok()
    assert any("is in" in event["message"] for event in done.rows)
    bridge.run(rows, target, "--run-id", "pipeline-commit:1").ok()
    assert bridge.total() == "20|90"


def test_columns_that_do_not_fit_are_refused_before_anything_is_written(bridge, tmp_path):
    bridge.server.psql(f"CREATE TABLE {bridge.schema}.t (id integer, name text)")
    rows = bridge.rows("a.parquet", 0, 10)
    bridge.run(rows, bridge.url("t")).fails(2, "column id is integer, and the rows have bigint: cast it in the query")
    bridge.run(rows, bridge.url("t"), query="SELECT id::INT AS id, name FROM rows").ok()
    bridge.run(rows, bridge.url("t"), query="SELECT 1 AS other").fails(2, "no column other")
    bridge.run(rows, bridge.url("u"), query="SELECT {'a': 1::TINYINT} AS x").fails(2, "column x", "cast it in the query")
    assert bridge.total() == "10|45"
    assert bridge.server.psql(f"SELECT to_regclass('{bridge.schema}.u')") == ""


def test_what_cannot_be_had_is_one_line(bridge, tmp_path):
    out, rows = tmp_path / "out.csv", bridge.rows("a.parquet", 0, 10)
    bridge.run(bridge.url("nowhere"), out).fails(3, "input rows", "does not exist")
    bridge.run(bridge.url(), out).fails(2, "of which table")
    bridge.run(rows, bridge.url()).fails(2, "into which table")
    bridge.run(rows, "postgresql://me:pw@h/db?table=a.b").fails(2, "a user or password in the URL")
    bridge.run(bridge.url("x"), out, env={"PGPASSWORD": "wrong"}).fails(1, "password authentication failed")
    bridge.run({"path": bridge.url(), "options": {"query": "SELECT 1/(g-5000) AS x FROM generate_series(1, 9999) g"}},
               out).fails(3, "division by zero")
    bridge.run(rows, bridge.url("t"), query="SELECT 'a' || chr(0) AS s FROM rows").fails(3, "a text with a NUL byte")
    assert not out.exists()

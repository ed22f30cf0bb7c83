# SPDX-License-Identifier: Apache-2.0
"""What is written through the command line is read back equal, and arrives equal in DuckDB.

Expectations are computed by DuckDB from the same statements, without the program.
"""
import json

import duckdb
import pytest

from lib import kill
from lib import rows as R
from lib.lake import arrow

# Iceberg type -> values as DuckDB literals; NULL is added to each.
TYPES = {
    "boolean": ["true", "false"],
    "int": ["0", "-2147483648", "2147483647"],
    "long": ["0", "-9223372036854775808", "9223372036854775807"],
    "float": ["0.1::FLOAT", "'-0.0'::FLOAT", "'NaN'::FLOAT", "'Infinity'::FLOAT", "'-Infinity'::FLOAT", "3.4028235e38::FLOAT", "1.1754944e-38::FLOAT"],
    "double": ["0.1::DOUBLE", "'-0.0'::DOUBLE", "'NaN'::DOUBLE", "'-Infinity'::DOUBLE", "1.7976931348623157e308::DOUBLE"],
    "decimal(4,2)": ["-99.99::DECIMAL(4,2)", "0::DECIMAL(4,2)"],
    "decimal(18,4)": ["99999999999999.9999::DECIMAL(18,4)", "-0.0001::DECIMAL(18,4)"],
    "decimal(38,10)": ["9999999999999999999999999999.9999999999::DECIMAL(38,10)", "-0.0000000001::DECIMAL(38,10)"],
    "date": ["DATE '1970-01-01'", "DATE '0001-01-01'", "DATE '9999-12-31'", "DATE '1969-12-31'"],
    "time": ["TIME '00:00:00'", "TIME '23:59:59.999999'", "TIME '12:00:00.001'"],
    "timestamp": ["TIMESTAMP '1969-12-31 23:59:59.999999'", "TIMESTAMP '9999-12-31 23:59:59.999999'", "TIMESTAMP '0001-01-01'"],
    "timestamptz": ["TIMESTAMPTZ '2026-01-01 12:00:00+05:45'", "TIMESTAMPTZ '1969-12-31 23:59:59.999999+00'"],
    "string": ["''", "'zürich 😀'", "repeat('x', 10000)", "'a''b\"c\\d'", "E'tab\\tnewline\\n'"],
    "uuid": ["'f79c3e09-677c-4bbd-a479-3f349cb785e7'::UUID", "'ffffffff-ffff-ffff-ffff-ffffffffffff'::UUID",
             "'00000000-0000-0000-0000-000000000000'::UUID"],
    "binary": ["''::BLOB", "'\\x00\\xFF\\x80'::BLOB"],
    "fixed[3]": ["'\\x00\\xFF\\x80'::BLOB", "'abc'::BLOB"],
    "struct<a int, b string>": ["{'a': 1, 'b': 'x'}", "{'a': NULL, 'b': NULL}"],
    "list<long>": ["[1, NULL, 3]", "[]"],
    "map<string, double>": ["MAP {'k': 1.5::DOUBLE, 'l': NULL}", "MAP {}"],
    "list<struct<p int, q list<string>>>": ["[{'p': 1, 'q': ['a', NULL]}, NULL, {'p': NULL, 'q': []}]"],
    "map<int, struct<x timestamp>>": ["MAP {1: {'x': TIMESTAMP '2026-01-01'}}"],
}
NANOS = {
    "timestamp_ns": ["'2026-01-01 00:00:00.123456789'::TIMESTAMP_NS", "'1969-12-31 23:59:59.999999999'::TIMESTAMP_NS"],
    "timestamptz_ns": ["'2026-01-01 00:00:00.123456789'::TIMESTAMP_NS"],
}


def values(kind, literals):
    """A SELECT of (id, v): the values and NULL."""
    listed = ", ".join(f"({i}, {v})" for i, v in enumerate([*literals, "NULL"]))
    return f"SELECT id::BIGINT AS id, v FROM (VALUES {listed}) t(id, v)"


def model(sql):
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        return R.of_arrow(arrow(db, sql))


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("kind", TYPES)
def test_values_of_each_type_come_back(table, delivery, kind, version):
    sql = values(kind, TYPES[kind])
    table.create(f"id long, v {kind}", "--format-version", version)
    table.append(sql)
    expected = model(sql)
    if kind == "timestamptz":
        expected = [{**row, "v": utc(row["v"])} for row in expected]
    R.assert_same(table.rows(), expected, kind)
    delivery.deliver()
    R.assert_same(delivery.rows(), expected, kind, signed_zeros=False)


def utc(text):
    return text if text is None or text.endswith("Z") else text + "Z"


@pytest.mark.parametrize("kind", NANOS)
def test_nanoseconds_come_back(table, delivery, kind):
    sql = values(kind, NANOS[kind])
    table.create(f"id long, v {kind}", "--format-version", "3")
    table.append(sql)
    expected = model(sql)
    if kind.startswith("timestamptz"):
        expected = [{**row, "v": utc(row["v"])} for row in expected]
    R.assert_same(table.rows(), expected, kind)
    delivery.deliver()
    copied = delivery.rows()
    R.assert_same([{**r, "v": utc(r["v"])} for r in copied], [{**r, "v": utc(r["v"])} for r in expected], kind)


def test_types_of_v3_are_refused_in_v2(table):
    for kind in "timestamp_ns", "timestamptz_ns", "unknown":
        table("create", "--schema", f"id long, v {kind}").fails((2, 3), "v3|version 3")
    assert not table.warehouse.exists() or table.knut.json("table", "list", *table.locator[:2]).rows == []


TRANSFORMS = ["identity(i)", "identity(s)", "identity(d)", "identity(de)", "identity(bo)", "bucket(4, i)", "bucket(8, s)", "bucket(3, d)",
              "bucket(5, de)", "bucket(4, u)", "bucket(4, b)", "bucket(7, tz)", "truncate(10, i)", "truncate(3, s)",
              "truncate(50, de)", "truncate(2, b)", "year(d)", "month(d)", "day(d)", "year(ts)", "month(ts)", "day(ts)", "hour(ts)",
              "year(tz)", "month(tz)", "day(tz)", "hour(tz)", "void(i)", "bucket(2, i), month(ts), truncate(2, s)"]
PARTITIONED = """SELECT (range * 7919 % 400 - 200)::INTEGER AS i, 'name ' || (range % 37) AS s,
    DATE '1969-11-01' + (range % 90)::INTEGER AS d, (range * 1.37 - 100)::DECIMAL(9,2) AS de, range % 3 = 0 AS bo,
    md5(range::VARCHAR)::UUID AS u, encode(md5(range::VARCHAR)) AS b,
    TIMESTAMP '1969-12-30 00:00:00' + to_minutes(range * 17) AS ts,
    TIMESTAMPTZ '1969-12-30 00:00:00+00' + to_minutes(range * 17) AS tz FROM range(300)
    UNION ALL SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL"""


@pytest.mark.parametrize("transform,version", [*((t, "2") for t in TRANSFORMS), *((t, "3") for t in TRANSFORMS[-3:])])
def test_partitions_by_each_transform_lose_nothing(table, delivery, transform, version):
    table.create("i int, s string, d date, de decimal(9,2), bo boolean, u uuid, b binary, ts timestamp, tz timestamptz",
                 "--partition", transform, "--format-version", version)
    table.append(PARTITIONED)
    delivery.deliver()
    rows = model(PARTITIONED)
    rows = [{**row, "tz": utc(row["tz"])} for row in rows]
    R.assert_same(table.rows(), rows, transform)
    files = table("files", "--output", "json").ok().rows
    assert sum(f["records"] for f in files) == 301
    assert len({json.dumps(f["partition"], sort_keys=True) for f in files}) == len(files), "a partition has one file"
    # Pruning by partitions and bounds finds what a filter over all rows finds.
    for where, keep in (("i >= 0 AND i < 20", lambda r: r["i"] is not None and 0 <= r["i"] < 20),
                        ("s = 'name 3'", lambda r: r["s"] == "name 3"),
                        ("ts < '1970-01-01'", lambda r: r["ts"] is not None and r["ts"] < "1970-01-01"),
                        ("d IS NULL", lambda r: r["d"] is None)):
        R.assert_same(table.rows("--where", where), [r for r in rows if keep(r)], f"{transform}: {where}")
    # A rewrite inside partitions.
    table.delete("i >= 0 AND i < 20")
    left = [r for r in rows if r["i"] is None or not 0 <= r["i"] < 20]
    R.assert_same(table.rows(), left, transform)
    report = delivery.deliver()
    assert sum(w["deletes"] for w in report["windows"]) == len(rows) - len(left)
    R.assert_same(delivery.rows(), left, transform)


# ---- files ----

FILE_ROWS = "SELECT range AS id, 'n,\"' || range AS name, range / 4.0 AS x, DATE '2026-01-01' + range::INTEGER AS day FROM range(20)"


@pytest.mark.parametrize("suffix,options", [(".csv", ""), (".csv.gz", ", COMPRESSION gzip"), (".json", ""), (".jsonl", ""), (".json.gz", ", COMPRESSION gzip"),
                                            (".parquet", "")])
def test_rows_come_from_files(table, tmp_path, suffix, options):
    path = tmp_path / f"rows{suffix}"
    form = "csv, HEADER" if ".csv" in suffix else "json" if ".json" in suffix else "parquet"
    with duckdb.connect() as db:
        db.execute(f"COPY ({FILE_ROWS}) TO '{path}' (FORMAT {form}{options})")
    table.create("id long, name string, x double, day date")
    table("append", path).ok()
    R.assert_same(table.rows(), model(FILE_ROWS))


def test_several_files_are_one_snapshot(table, tmp_path):
    for i in range(3):
        (tmp_path / f"{i}.csv").write_text(f"id,name\n{i},n{i}\n")
    table.create("id long, name string")
    table("append", *(tmp_path / f"{i}.csv" for i in range(3))).ok()
    assert len(table.history()) == 1
    R.assert_same(table.rows(), [{"id": i, "name": f"n{i}"} for i in range(3)])


def test_text_that_means_null(table, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("id,name\n1,NA\n2,\n3,x\n")
    table.create("id long, name string")
    table("append", "--null", "NA", path).ok()
    R.assert_same(table.rows(), [{"id": 1, "name": None}, {"id": 2, "name": None}, {"id": 3, "name": "x"}])


def test_a_table_like_a_file(table, tmp_path):
    path = tmp_path / "rows.parquet"
    sql = """SELECT 1::TINYINT AS a, 2::BIGINT AS b, 'x' AS c, 1.5::DOUBLE AS d, 1.25::DECIMAL(9,2) AS e, [1, 2] AS f,
             {'p': 1, 'q': 'z'} AS g, TIMESTAMP '2026-01-01' AS h, DATE '2026-01-01' AS i"""
    with duckdb.connect() as db:
        db.execute(f"COPY ({sql}) TO '{path}' (FORMAT parquet)")
    table("create", "--like", path).ok()
    table("append", path).ok()
    R.assert_same(table.rows(), model(sql))


def test_a_schema_from_json(table, tmp_path):
    schema = {"type": "struct", "schema-id": 0, "fields": [
        {"id": 1, "name": "id", "required": True, "type": "long"},
        {"id": 2, "name": "tags", "required": False, "type": {"type": "list", "element-id": 3, "element": "string", "element-required": False}}]}
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(schema))
    table("create", "--schema-json", path, "--sort", "id desc nulls last", "--property", "owner=me").ok()
    shown = table("show", "--output", "json").ok().row
    assert shown["schema"]["fields"][0]["required"] is True and shown["properties"]["owner"] == "me"
    assert shown["sort_order"]["fields"][0]["direction"] == "desc"
    table.append("SELECT 1 AS id, ['a', NULL] AS tags UNION ALL SELECT 2, NULL")
    R.assert_same(table.rows(), [{"id": 1, "tags": ["a", None]}, {"id": 2, "tags": None}])


# ---- histories ----


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("create", [(), ("--identifier", "id"), ("--partition", "bucket(3, id)"), ("--partition", "n")],
                         ids=["plain", "keyed", "bucketed", "by-value"])
def test_each_snapshot_of_a_history_is_what_its_statements_come_to(table, delivery, tmp_path, create, version):
    """Scans of every snapshot, changes between neighbours, and the copy after each commit."""
    def some(start, stop, tag):
        return f"SELECT range::BIGINT AS id, '{tag}' || range AS name, (range % 5)::INTEGER AS n FROM range({start}, {stop})"
    steps = [("append", some(0, 50, "a")), ("append", some(50, 80, "b")), ("delete", "id >= 10 AND id < 20"),
             ("overwrite", "n = 2", some(100, 110, "c")), ("overwrite", "id = 0", some(0, 1, "z")),
             ("delete", "name = 'b55' OR n IS NULL"), ("overwrite", "TRUE", some(0, 30, "d")), ("delete", "TRUE"),
             ("append", some(200, 205, "e"))]
    table.create("id long required, name string, n int", "--format-version", version, *create)
    states = []
    for i, step in enumerate(steps):
        kill.commit(table, step)
        states.append(small_model(steps[:i + 1], tmp_path / "state.parquet"))
        R.assert_same(table.rows(), states[-1], f"after step {i}")
        delivery.deliver()
        R.assert_same(delivery.rows(), states[-1], f"copy after step {i}")
    history = [s["snapshot"] for s in table.history()]
    assert len(history) == len(steps)
    before, previous = R.multiset([]), None
    for snapshot, state in zip(history, states):
        R.assert_same(table.rows("--snapshot", snapshot), state, f"snapshot {snapshot}")
        words = ["--to", snapshot, *(["--from", previous] if previous else [])]
        got = {"insert": [], "delete": []}
        for row in table("changes", "--output", "json", *words).ok().rows:
            got[row["_change_type"]].append({k: v for k, v in row.items() if not k.startswith("_")})
        after = R.multiset(state)
        assert R.multiset(got["insert"]) == after - before and R.multiset(got["delete"]) == before - after
        before, previous = after, snapshot
    net = table("changes", "--net", "--from", history[0], "--output", "json").ok().rows
    kinds = {kind: R.multiset([{k: v for k, v in r.items() if not k.startswith("_")} for r in net if r["_change_type"] == kind])
             for kind in ("insert", "delete")}
    first, last = R.multiset(states[0]), R.multiset(states[-1])
    assert kinds == {"insert": last - first, "delete": first - last}


def small_model(steps, path):
    with duckdb.connect() as db:
        db.execute("CREATE TABLE t(id BIGINT, name VARCHAR, n INTEGER)")
        for kind, *words in steps:
            if kind != "append":
                db.execute(f"DELETE FROM t WHERE {words[0]}")
            if kind != "delete":
                db.execute(f"INSERT INTO t {words[-1]}")
        return R.of_arrow(arrow(db, "FROM t"))


def test_branches_have_their_own_rows(table):
    table.create("id long")
    table.append("SELECT 1 AS id")
    done = table("append", "--branch", "audit", "--sql", "SELECT 2 AS id")
    if done.rc:
        done.fails((1, 2, 3), "audit")  # a branch must be there first
        return
    R.assert_same(table.rows(), [{"id": 1}])
    R.assert_same(table.rows("--ref", "audit"), [{"id": 1}, {"id": 2}])


def test_reading_as_of_a_time(table):
    table.create("id long")
    table.append("SELECT 1 AS id")
    table.append("SELECT 2 AS id")
    first, second = table.history()
    assert first["committed_at"] <= second["committed_at"]
    R.assert_same(table.rows("--as-of", second["committed_at"]), [{"id": 1}, {"id": 2}])
    table("scan", "--as-of", "1999-01-01T00:00:00Z").fails((1, 2), "1999")


def test_columns_limit_and_count(table):
    table.create("id long, name string, st struct<a int, b int>")
    table.append("SELECT range AS id, 'n' || range AS name, {'a': range::INTEGER, 'b': 2} AS st FROM range(100)")
    rows = table.rows("--columns", "name,id", "--limit", "7")
    assert len(rows) == 7 and all(list(row) == ["name", "id"] for row in rows)
    assert table("scan", "--count", "--where", "id < 10", "--output", "json").row == {"count": 10}
    assert len(table.rows("--where", "st.a = 3 OR name LIKE 'n1%'")) in (12, 11, 1)


def test_row_lineage_survives_rewrites(table):
    table.create("id long, v string", "--format-version", "3")
    table.append("SELECT range AS id, 'a' AS v FROM range(10)")
    before = {r["id"]: r["_row_id"] for r in table.rows("--lineage")}
    assert sorted(before.values()) == list(range(10))
    table.delete("id = 3")
    after = {r["id"]: (r["_row_id"], r["_last_updated_sequence_number"]) for r in table.rows("--lineage")}
    assert after == {i: (before[i], 1) for i in before if i != 3}
    table.append("SELECT 100 AS id, 'b' AS v")
    new = next(r for r in table.rows("--lineage") if r["id"] == 100)
    assert new["_row_id"] not in before.values() and new["_last_updated_sequence_number"] == 3

# SPDX-License-Identifier: Apache-2.0
"""Deliveries into a real PostgreSQL: types, keys, deletes, columns that change, and what is refused."""
import json
import os
import random
import sqlite3

import pytest

from lib import rows as R
from lib.lake import Delivery
from lib.pg_server import PASSWORD, Server

TYPES = ("yes boolean, i int, l long, f float, g double, d decimal(38,10), e decimal(4,4), z decimal(9,0), da date, "
         "ti time, ts timestamp, tz timestamptz, s string, u uuid, fx fixed[3], b binary, "
         "st struct<a int, x decimal(5,2), t struct<w timestamp>>, li list<double>, mp map<long,string>")
# A NULL row, an ordinary one, and one at each end.
VALUES = """
SELECT {yes}::BOOLEAN AS yes, {i}::INTEGER AS i, {l}::BIGINT AS l, {f}::FLOAT AS f, {g}::DOUBLE AS g,
 {d}::DECIMAL(38,10) AS d, {e}::DECIMAL(4,4) AS e, {z}::DECIMAL(9,0) AS z, {da}::DATE AS da, {ti}::TIME AS ti,
 {ts}::TIMESTAMP AS ts, {tz}::TIMESTAMPTZ AS tz, {s}::VARCHAR AS s, {u}::UUID AS u, {fx}::BLOB AS fx, {b}::BLOB AS b,
 {st}::STRUCT(a INTEGER, x DECIMAL(5,2), t STRUCT(w TIMESTAMP)) AS st, {li}::DOUBLE[] AS li,
 {mp}::MAP(BIGINT, VARCHAR) AS mp"""
NAMES = "yes i l f g d e z da ti ts tz s u fx b st li mp".split()
ORDINARY = dict(zip(NAMES, (
    "true", "-7", "1234567890123", "1.5", "-0.1", "'-123.4567800000'", "'0.0100'", "'100000000'", "'2026-02-28'",
    "'23:59:59.999999'", "'2026-01-31 12:00:00.000001'", "'1969-12-31 23:59:59.999999+00'", "'été \\ \" '' \U0001F40C'",
    "'00112233-4455-6677-8899-aabbccddeeff'", "'\\x00\\x01\\xFF'::BLOB", "'\\x00'::BLOB",
    "{'a': 1, 'x': 1.50, 't': {'w': TIMESTAMP '2026-01-01 00:00:00'}}", "[1.5, NULL, 'NaN'::DOUBLE]",
    "MAP {5: 'a\"b\\c', -6: NULL}")))
LOWEST = {**ORDINARY, "i": "'-2147483648'", "l": "'-9223372036854775808'", "f": "'-Infinity'", "g": "'NaN'",
          "d": "'-9999999999999999999999999999.9999999999'", "e": "'-0.9999'", "z": "'-999999999'",
          "da": "'0001-01-01'", "ti": "'00:00:00'", "ts": "'0001-01-01 00:00:00'", "tz": "'0001-01-01 00:00:00+00'",
          "s": "''", "b": "''::BLOB", "li": "[]", "mp": "MAP {}", "st": "{'a': NULL, 'x': NULL, 't': NULL}"}
HIGHEST = {**ORDINARY, "i": "2147483647", "l": "9223372036854775807", "f": "3.4028235e38", "g": "1.7976931348623157e308",
           "d": "'9999999999999999999999999999.9999999999'", "e": "'0.0000'", "z": "'0'", "da": "'9999-12-31'",
           "ts": "'9999-12-31 23:59:59.999999'", "tz": "'9999-12-31 23:59:59.999999+00'", "s": "repeat('x', 300000)",
           "li": "[-0.0, 1e300]"}
NULLS = dict.fromkeys(NAMES, "NULL")


def values(*rows):
    return " UNION ALL ".join(VALUES.format(**row) for row in rows)


@pytest.fixture(scope="module")
def server():
    made = Server()
    yield made
    made.close()


@pytest.fixture
def copy(server, table, tmp_path, request, monkeypatch):
    """A delivery into a schema of the test's own."""
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    folder = tmp_path / "delivery"
    folder.mkdir()
    schema = f"s{abs(hash(request.node.nodeid)) % 10**12}"
    return PgDelivery(table, folder, target=f"{schema}.copy", sink=server.sink(), server=server)


class PgDelivery(Delivery):
    def __init__(self, *args, server, **more):
        super().__init__(*args, **more)
        self.server, self.schema = server, self.target.split(".")[0]

    def rows(self):
        return self.server.rows(self.target)

    def loads(self):
        return self.server.ask(f"SELECT label, rows FROM {self.schema}._knut_loads ORDER BY seq")

    def same(self):
        self.deliver()
        R.assert_same(self.rows(), self.source.rows(), signed_zeros=False)


# ---- values ----


def test_every_type_arrives_as_it_is(copy, table):
    table.create(TYPES, "--format-version", "3")
    table.append(values(ORDINARY, LOWEST, HIGHEST, NULLS))
    copy.deliver()
    # jsonb's numbers have no sign of zero: everything else is exact.
    R.assert_same(copy.rows(), table.rows(), signed_zeros=False)
    assert dict(copy.server.columns(copy.target)) == {
        "yes": "boolean", "i": "integer", "l": "bigint", "f": "real", "g": "double precision", "d": "numeric",
        "e": "numeric", "z": "numeric", "da": "date", "ti": "time without time zone",
        "ts": "timestamp without time zone", "tz": "timestamp with time zone", "s": "text", "u": "uuid", "fx": "bytea",
        "b": "bytea", "st": "jsonb", "li": "jsonb", "mp": "jsonb"}


def test_zeros_keep_their_sign_in_columns_of_floats(copy, table):
    table.create("f float, g double")
    table.append("SELECT '-0.0'::FLOAT AS f, '-0.0'::DOUBLE AS g UNION ALL SELECT 0.0, 0.0")
    copy.deliver()
    R.assert_same(copy.rows(), table.rows())


def random_rows(rng, n):
    """VALUES of random rows: digits, bytes and moments anywhere in their types' ranges."""
    def number(digits, scale):
        text = str(rng.randrange(10**rng.randint(1, digits))).zfill(scale + 1)
        return f"'{rng.choice(['', '-'])}{text[:-scale] if scale else text}{'.' + text[-scale:] if scale else ''}'"

    def one():
        return (number(38, 0), number(38, 38), number(17, 3), number(20, 10), repr(rng.uniform(-1, 1) * 10**rng.randint(
            -300, 300)), f"make_timestamp({rng.randrange(-62135596800 * 10**6, 253402300799 * 10**6)})",
            rng.randrange(-2**63, 2**63), "'" + "".join(chr(rng.choice([9, 39, 92, 233, 0x4e2d, 0x1f40c, 65])) for _ in
                                                        range(rng.randrange(12))).replace("'", "''") + "'")
    rows = ", ".join("(" + ", ".join("NULL" if rng.random() < 0.1 else str(v) for v in one()) + ")" for _ in range(n))
    return (f"SELECT a::DECIMAL(38,0) AS a, b::DECIMAL(38,38) AS b, c::DECIMAL(17,3) AS c, d::DECIMAL(20,10) AS d, "
            f"e::DOUBLE AS e, f::TIMESTAMP AS f, g::BIGINT AS g, h::VARCHAR AS h, {{'n': b::DECIMAL(38,38), 't': h, "
            f"'l': [c::DOUBLE, NULL]}} AS st FROM (VALUES {rows}) t(a, b, c, d, e, f, g, h)")


def test_random_values_arrive_as_they_are(copy, table):
    seed = int(os.environ.get("KNUT_TEST_SEED") or random.SystemRandom().randrange(2**31))
    table.create("a decimal(38,0), b decimal(38,38), c decimal(17,3), d decimal(20,10), e double, f timestamp, g long, "
                 "h string, st struct<n decimal(38,38), t string, l list<double>>")
    table.append(random_rows(random.Random(seed), 400))
    copy.deliver()
    R.assert_same(copy.rows(), table.rows(), f"KNUT_TEST_SEED={seed}", signed_zeros=False)
    table.delete("g > 0")
    table.delete("h IS NULL")
    copy.deliver()
    R.assert_same(copy.rows(), table.rows(), f"KNUT_TEST_SEED={seed}", signed_zeros=False)


def test_rows_of_every_type_are_deleted_by_what_is_in_them(copy, table):
    table.create(TYPES, "--format-version", "3")
    table.append(values(ORDINARY, ORDINARY, ORDINARY, LOWEST, HIGHEST, NULLS, NULLS))
    copy.deliver()
    # Without keys equal rows count: one of three goes, and one of two that are all NULL.
    table.overwrite("i = -7", values(ORDINARY, ORDINARY))
    table.overwrite("i IS NULL", values(NULLS))
    table.delete("g = 'NaN'")
    copy.same()
    assert len(copy.rows()) == 4


def test_nanoseconds_are_refused_until_one_says_what_becomes_of_them(copy, table):
    table.create("id long, a timestamp_ns, b timestamptz_ns", "--format-version", "3")
    table.append("SELECT 1::BIGINT AS id, TIMESTAMP_NS '2026-01-01 00:00:00.123456789' AS a, "
                 "TIMESTAMP_NS '1969-12-31 23:59:59.999999999' AS b")
    copy.run().fails(3, "column a has nanoseconds", "nanoseconds=text")
    plain = copy.sink
    for how, a, b in (("text", "2026-01-01T00:00:00.123456789", "1969-12-31T23:59:59.999999999Z"),
                      ("bigint", 1767225600123456789, -1),
                      ("truncate", "2026-01-01T00:00:00.123456", "1969-12-31T23:59:59.999999Z")):
        copy.sink, copy.target = f"{plain}?nanoseconds={how}", f"{copy.schema}.{how}"
        copy.deliver()
        R.assert_same(copy.rows(), [{"id": 1, "a": a, "b": b}])


@pytest.mark.parametrize("column, select, words", [
    ("s string", "'a' || chr(0) || 'b' AS s", "column s: a text with a NUL byte"),
    ("s struct<t string>", "{'t': 'a' || chr(0)} AS s", "column s: a text with a NUL byte"),
    ("s date", "DATE '5877641-06-23' AS s", "column s: a date "),
    ("s timestamp", "TIMESTAMP '294246-01-01' + INTERVAL 100 YEAR AS s", None),
])
def test_what_postgresql_cannot_hold_is_refused_by_name(copy, table, column, select, words):
    table.create(column)
    if words is None:
        return
    table.append(f"SELECT {select}")
    copy.run().fails(3, words)
    assert copy.server.psql(f"SELECT count(*) FROM {copy.target}") == "0"


def test_a_text_that_looks_like_an_escape_is_none(copy, table):
    table.create("s struct<t string>")
    table.append("SELECT {'t': 'a\\u0000b'} AS s")
    copy.same()


# ---- keys ----

KEYED = "id long required, name string, n int"


def test_keys_are_upserted_and_deleted(copy, table):
    table.create(KEYED, "--identifier", "id")
    table.append("SELECT range::BIGINT AS id, 'a' || range AS name, 1 AS n FROM range(1000)")
    copy.same()
    table("upsert", "--key", "id", "--sql", "SELECT range::BIGINT AS id, 'b' AS name, 2 AS n FROM range(500, 1500)").ok()
    table.delete("id < 50 OR id = 777")
    copy.same()
    assert "UNIQUE INDEX" in copy.server.psql(f"SELECT indexdef FROM pg_indexes WHERE schemaname = '{copy.schema}' AND "
                                              f"tablename = 'copy'")


def test_the_last_row_of_a_key_stays(copy, table):
    table.create("id long, n int")
    table.append("SELECT (range % 10)::BIGINT AS id, range::INTEGER AS n FROM range(100)")
    copy.options = ("--key", "id")
    copy.deliver()
    R.assert_same(copy.rows(), [{"id": i, "n": 90 + i} for i in range(10)])


def test_null_is_a_key_like_another(copy, table):
    table.create("a int, b string, n int")
    table.append("SELECT * FROM (VALUES (1, NULL, 1), (NULL, 'x', 2), (NULL, NULL, 3)) t(a, b, n)")
    copy.options = ("--key", "a,b")
    copy.deliver()
    table.append("SELECT * FROM (VALUES (1, NULL, 10), (NULL, NULL, 30), (2, NULL, 4)) t(a, b, n)")
    copy.deliver()
    R.assert_same(copy.rows(), [{"a": 1, "b": None, "n": 10}, {"a": None, "b": "x", "n": 2},
                                {"a": None, "b": None, "n": 30}, {"a": 2, "b": None, "n": 4}])
    table.delete("a IS NULL")
    table.delete("a = 2")
    copy.deliver()
    R.assert_same(copy.rows(), [{"a": 1, "b": None, "n": 10}])


def test_a_table_of_keys_only_is_merged(copy, table):
    table.create("id long required", "--identifier", "id")
    table.append("SELECT range::BIGINT AS id FROM range(10)")
    copy.same()
    table("upsert", "--key", "id", "--sql", "SELECT range::BIGINT AS id FROM range(5, 15)").ok()
    copy.same()


def test_append_mode_refuses_deletes(copy, table):
    table.create(KEYED)
    table.append("SELECT range::BIGINT AS id, 'a' AS name, 1 AS n FROM range(10)")
    copy.options = ("--mode", "append")
    copy.same()
    table.delete("id = 1")
    before = copy.rows()
    copy.run().fails(3, "append")
    R.assert_same(copy.rows(), before)


# ---- columns that change ----


def test_columns_follow_the_source_by_their_ids(copy, table):
    table.create("a int, b string, c float, d decimal(4,2), gone int", "--format-version", "3")
    table.append("SELECT range::INTEGER AS a, 'x' || range AS b, 0.1::FLOAT AS c, 1.25 AS d, 1 AS gone FROM range(10)")
    copy.same()
    table("alter", "RENAME COLUMN a TO tmp", "RENAME COLUMN b TO a", "RENAME COLUMN tmp TO b",  # a and b swapped
          "ALTER COLUMN b TYPE long", "ALTER COLUMN c TYPE double", "ALTER COLUMN d TYPE decimal(20,2)",
          "DROP COLUMN gone").ok()
    table("alter", "ADD COLUMN gone string", "ADD COLUMN e int").ok()
    table.append("SELECT 'y' AS a, 5000000000::BIGINT AS b, 0.2::DOUBLE AS c, 123456.25::DECIMAL(20,2) AS d, 'new' AS "
                 "gone, 7 AS e")
    copy.same()


def test_a_change_without_rows_arrives_too(copy, table):
    table.create("a int, b string")
    table.append("SELECT 1 AS a, 'x' AS b")
    copy.same()
    table("alter", "RENAME COLUMN b TO c").ok()
    copy.deliver()
    assert [name for name, _ in copy.server.columns(copy.target)] == ["a", "c"]


def test_a_new_column_has_its_default_in_old_rows(copy, table):
    table.create("a int", "--format-version", "3")
    table.append("SELECT range::INTEGER AS a FROM range(5)")
    copy.same()
    for column in ("s string DEFAULT 'it''s'", "n decimal(5,2) DEFAULT 1.50", "b boolean DEFAULT true",
                   "d date DEFAULT '2026-01-31'", "t timestamptz DEFAULT '2026-01-31T00:00:00+00:00'",
                   "f double DEFAULT 0.1", "l long DEFAULT -5"):
        table("alter", f"ADD COLUMN {column}").ok()
    copy.same()


def test_nested_fields_are_renamed_added_and_widened_in_rows_that_are_there(copy, table):
    table.create("id int, st struct<a int, b struct<c float>>, li list<struct<x int, y string>>, mp map<string, int>",
                 "--format-version", "3")
    table.append("SELECT range::INTEGER AS id, {'a': 1, 'b': {'c': 0.1::FLOAT}} AS st, [{'x': 1, 'y': 'é'}, {'x': 2, "
                 "'y': NULL}] AS li, MAP {'k': 1} AS mp FROM range(3) UNION ALL SELECT 9, NULL, [], MAP {}")
    copy.same()
    table("alter", "RENAME COLUMN st.a TO z", "ALTER COLUMN st.b.c TYPE double", "ADD COLUMN st.new string",
          "RENAME COLUMN li.element.x TO w", "DROP COLUMN li.element.y", "ALTER COLUMN mp.value TYPE long").ok()
    copy.same()


def test_a_reload_makes_the_target_anew(copy, table):
    table.create("id int, s string")
    table.append("SELECT range::INTEGER AS id, 'a' AS s FROM range(10)")
    copy.same()
    copy.server.psql(f"DELETE FROM {copy.target} WHERE id < 5")
    copy.command("reload").ok()
    copy.same()
    assert len(copy.loads()) == 4  # two claims, two loads


# ---- targets that were there ----


def test_an_empty_table_made_by_hand_is_taken_over(copy, table):
    copy.server.psql(f"CREATE SCHEMA {copy.schema}; CREATE TABLE {copy.target}(id bigint, name varchar, n numeric, more "
                     f"int DEFAULT 5, PRIMARY KEY (id)) PARTITION BY HASH (id); CREATE TABLE {copy.schema}.p0 PARTITION OF {copy.target} "
                     f"FOR VALUES WITH (MODULUS 2, REMAINDER 0); CREATE TABLE {copy.schema}.p1 PARTITION OF "
                     f"{copy.target} FOR VALUES WITH (MODULUS 2, REMAINDER 1)")
    table.create("id long required, name string, n decimal(5,2)", "--identifier", "id")
    table.append("SELECT range::BIGINT AS id, 'a' AS name, 1.5 AS n FROM range(100)")
    copy.deliver()
    table("upsert", "--key", "id", "--sql", "SELECT 7::BIGINT AS id, 'b' AS name, 2.5 AS n").ok()
    table.delete("id = 8")
    copy.deliver()
    R.assert_same(copy.rows(), [{**row, "more": 5} for row in table.rows()])
    indexes = f"SELECT count(*) FROM pg_indexes WHERE schemaname = '{copy.schema}' AND tablename = 'copy'"
    assert copy.server.psql(indexes) == "1", "the primary key serves"


@pytest.mark.parametrize("made, words", [
    ("TABLE {}(id int, name text, n int)", "column id: bigint in the source, integer in the target"),
    ("TABLE {}(id bigint, n int)", "column name: text in the source, absent in the target"),
    ("TABLE {}(id bigint, name text, n int, other int NOT NULL)", "no column other, which must not be NULL"),
    ("VIEW {} AS SELECT 1 AS id", "is no table"),
    ("TABLE {}(id, name, n) AS SELECT 1::bigint, 'x'::text, 1", "has rows that this delivery did not load"),
])
def test_a_target_that_does_not_fit_is_refused_and_left_alone(copy, table, made, words):
    copy.server.psql(f"CREATE SCHEMA {copy.schema}; CREATE {made.format(copy.target)}")
    table.create(KEYED)
    table.append("SELECT 1::BIGINT AS id, 'a' AS name, 1 AS n")
    copy.run().fails(3, words)


def test_a_target_that_was_changed_or_emptied_behind_our_back_is_told(copy, table):
    table.create(KEYED)
    table.append("SELECT range::BIGINT AS id, 'a' AS name, 1 AS n FROM range(10)")
    copy.same()
    table.append("SELECT 100::BIGINT AS id, 'b' AS name, 1 AS n")
    copy.server.psql(f"ALTER TABLE {copy.target} RENAME name TO nom")
    copy.run().fails(3, "column name: delivered as text, absent now")
    copy.server.psql(f"ALTER TABLE {copy.target} RENAME nom TO name")
    copy.same()
    copy.server.psql(f"DELETE FROM {copy.target} WHERE id = 1")
    table.delete("id = 1")
    copy.run().fails(1, "of 1 rows to delete only 0 are there", "reload")
    copy.server.psql(f"DROP TABLE {copy.target}")
    copy.run().fails(3, "is gone", "reload")
    copy.command("reload").ok()
    copy.same()


def test_another_history_is_not_written_over(copy, table):
    table.create(KEYED)
    table.append("SELECT range::BIGINT AS id, 'a' AS name, 1 AS n FROM range(10)")
    copy.same()
    table.append("SELECT 100::BIGINT AS id, 'b' AS name, 1 AS n")
    copy.server.psql(f"DELETE FROM {copy.schema}._knut_loads")
    copy.run().fails(3, "does not have the last load that was proven", "reload")
    copy.state.unlink()
    copy.run().fails(3, "has rows that this delivery did not load")


def test_old_loads_are_forgotten(copy, table):
    table.create(KEYED)
    for low in range(2):
        table.append(f"SELECT {low}::BIGINT AS id, 'a' AS name, 1 AS n")
        copy.same()
    loads = f"{copy.schema}._knut_loads"
    copy.server.psql(f"UPDATE {loads} SET seq = seq + 5000; INSERT INTO {loads}(seq, label, delivery, target, win, rows) SELECT s, "
                     f"'l' || s, delivery, target, 'w' || s, 1 FROM generate_series(1, 5000) s, {loads} WHERE seq = 5001")
    table.append("SELECT 9::BIGINT AS id, 'a' AS name, 1 AS n")
    copy.same()
    assert int(copy.server.psql(f"SELECT count(*) FROM {loads}")) == 1000 + 2
    copy.same()


# ---- bad input ----


@pytest.mark.parametrize("schema, target, words", [
    ("x" * 64 + " int", None, "at most 63 bytes, this one has 64"),
    ("ctid int", None, "keeps this name for itself"),
    ("a int", "s." + "t" * 64, "at most 63 bytes"),
    ("a int", "justatable", "SCHEMA.TABLE"),
])
def test_names_that_postgresql_would_cut_or_keeps_are_refused(copy, table, schema, target, words):
    table.create(schema)
    table.append(f"SELECT 1 AS \"{schema.split()[0]}\"")
    copy.target = target or copy.target
    copy.run().fails((2, 3), words)


@pytest.mark.parametrize("sink, rc, words", [
    ("postgresql://{user}:hunter2hunter2@127.0.0.1:{port}/postgres", 2, "PGPASSWORD"),
    ("postgresql://knut@127.0.0.1:{port}/postgres", 2, "PGUSER"),
    ("postgresql://127.0.0.1:{port}/postgres?password=hunter2hunter2", 2, "option password has no place in the URL"),
    ("postgresql://127.0.0.1:{port}/postgres?hunter2hunter2=1", 2, "cannot be read"),
    ("postgres://a:hunter2hunter2@127.0.0.1/x", 2, "expected one of"),
    ("postgresql://127.0.0.1:{port}", 2, "which database"),
    ("postgresql:127.0.0.1/x", 2, "expected postgresql://HOST:PORT/DATABASE"),
    ("postgresql://127.0.0.1:{port}/nosuch", 1, "nosuch"),
    ("postgresql://127.0.0.1:1/postgres", 1, "127.0.0.1:1/postgres: .*refused"),
    ("postgresql://127.0.0.1:{port}/postgres?nanoseconds=keep", 2, "refuse, text, bigint or truncate"),
])
def test_a_bad_address_is_told_in_one_line_without_secrets(copy, table, sink, rc, words):
    table.create("a int")
    table.append("SELECT 1 AS a")
    copy.sink = sink.format(port=copy.server.port, user="knut")
    done = copy.run().fails(rc, words)
    assert "hunter2" not in done.out + done.err


def test_a_wrong_password_is_told_and_no_password_is_anywhere(copy, table, monkeypatch):
    table.create("a int")
    table.append("SELECT 1 AS a")
    monkeypatch.setenv("PGPASSWORD", "wrong-" + PASSWORD)
    done = copy.run().fails(1, "password authentication failed")
    assert PASSWORD not in done.out + done.err
    monkeypatch.delenv("PGPASSWORD")
    copy.run().fails(1, "no password .set PGPASSWORD or a password file.")
    secret = copy.folder / "pgpass"
    secret.write_text(f"127.0.0.1:*:*:knut:{PASSWORD}\n")
    secret.chmod(0o600)
    done = copy.run("--log-level", "debug", env={"PGPASSFILE": secret}).ok()
    secret.unlink()
    assert PASSWORD not in done.out + done.err
    with sqlite3.connect(copy.state) as db:
        assert PASSWORD not in "".join(db.iterdump())
    for path in copy.folder.rglob("*"):
        assert PASSWORD.encode() not in path.read_bytes()


def test_a_database_that_only_reads_is_told(copy, table):
    table.create("a int")
    table.append("SELECT 1 AS a")
    copy.server.psql("CREATE ROLE reader LOGIN PASSWORD 'reads-only'")
    copy.run(env={"PGUSER": "reader", "PGPASSWORD": "reads-only"}).fails(3, "permission denied")
    copy.run(env={"PGOPTIONS": "-c default_transaction_read_only=on"}).fails(3, "read-only transaction")
    copy.run(env={"PGOPTIONS": "-c statement_timeout=1 -c lock_timeout=1"})  # may pass or fail; never half
    copy.same()


def test_a_held_target_is_told_and_delivered_later(copy, table):
    table.create("a int")
    table.append("SELECT 1 AS a")
    copy.same()
    table.append("SELECT 2 AS a")
    holder = copy.server.hold(f"LOCK TABLE {copy.target} IN ACCESS EXCLUSIVE MODE")
    copy.run(env={"PGOPTIONS": "-c lock_timeout=300"}).fails(1, "lock timeout")
    holder.end()
    copy.same()


def test_statements_that_take_too_long_are_told_and_done_later(copy, table):
    table.create("a int")
    table.append("SELECT range::INTEGER AS a FROM range(300000)")
    copy.run(env={"PGOPTIONS": "-c statement_timeout=20"}).fails(1, "statement timeout")
    copy.same()


def test_the_report_names_the_place_without_more(copy, table):
    table.create("a int")
    table.append("SELECT 1 AS a")
    report = json.loads(copy.run().ok().out)["deliveries"][0]
    assert report["sink"] == copy.server.sink()

# SPDX-License-Identifier: Apache-2.0
"""Delivery into Doris as Arrow: what arrives is what JSON brings, and a target or value that Doris would read
wrongly is refused by name. The stand-in reads the streams with Arrow's own library (tests/fakes/doris/arrow.py)."""
import pytest

from lib.doris import DorisDelivery

SCHEMA = ("id long required, b boolean, i int, wide int, l long, big long, f float, fw double, d double, dec decimal(9,2), "
          "dec38 decimal(38,18), day date, t time, micros time, ts timestamp, tz timestamptz, s string, code string, u uuid, "
          "fix fixed[3], bin binary, list list<int>, deep list<list<string>>, m map<string,long>, "
          "st struct<a:int,b:string,c:list<timestamp>>, ms map<int,struct<x:decimal(5,1)>>")
TARGET = """CREATE TABLE d.t (`id` BIGINT NOT NULL, `b` BOOLEAN, `i` INT, `wide` BIGINT, `l` BIGINT, `big` LARGEINT, `f` FLOAT,
 `fw` DOUBLE, `d` DOUBLE, `dec` DECIMAL(12,4), `dec38` DECIMAL(38,18), `day` DATE, `t` VARCHAR(15), `micros` BIGINT,
 `ts` DATETIME(6), `tz` DATETIME(6), `s` STRING, `code` VARCHAR(20), `u` CHAR(36), `fix` VARCHAR(3), `bin` STRING,
 `list` ARRAY<INT>, `deep` ARRAY<ARRAY<STRING>>, `m` MAP<STRING,BIGINT>, `st` STRUCT<a:INT,b:STRING,c:ARRAY<DATETIME(6)>>,
 `ms` MAP<INT,STRUCT<x:DECIMAL(5,1)>>) DUPLICATE KEY(`id`) DISTRIBUTED BY RANDOM"""
ROWS = """
SELECT range::BIGINT AS id, range % 3 = 0 AS b, (range - 5)::INTEGER AS i, (-range)::INTEGER AS wide,
 9223372036854775807 - range AS l, -9223372036854775807 + range AS big, (range / 8)::FLOAT AS f, (range / 4)::DOUBLE AS fw,
 0.1::DOUBLE * range AS d, (range * 1.25 - 3)::DECIMAL(9,2) AS dec, '-12345678901234567890.000000000000000001'::DECIMAL(38,18)
 AS dec38, DATE '0001-01-01' + (range * 7000)::INTEGER AS day, TIME '23:59:59.999999' AS t, TIME '00:00:01' AS micros,
 TIMESTAMP '1970-01-01 08:00:00' + to_microseconds(range * 1234567890123) AS ts,
 TIMESTAMPTZ '2024-03-31 01:59:59.000001+00' + to_hours(range) AS tz,
 CASE WHEN range % 4 = 0 THEN '' ELSE 'é"\\,:{' || chr(10) || chr(9) || '😀' || range END AS s, 'c' || range AS code,
 '00112233-4455-6677-8899-aabbccddee0' || (range % 10) AS u, '\\x00\\xFF\\x7F'::BLOB AS fix, '\\xDE\\xAD'::BLOB AS bin,
 [range, NULL, 3]::INTEGER[] AS list, [[], ['x', NULL, ''], NULL]::VARCHAR[][] AS deep,
 MAP {'k' || range: range, 'z': NULL}::MAP(VARCHAR, BIGINT) AS m,
 {'a': range::INTEGER, 'b': NULL::VARCHAR, 'c': [TIMESTAMP '2000-01-01 00:00:00.000001']} AS st,
 MAP {range::INTEGER: {'x': 1.5::DECIMAL(5,1)}} AS ms FROM range(RANGE)"""
NULLS = "SELECT 99999::BIGINT AS id, " + ", ".join(
    f"NULL AS {c.split()[0]}" for c in ("b|i|wide|l|big|f|fw|d|dec|dec38|day|t|micros|ts|tz|s|code|u|fix|bin|list|deep|m|st|ms"
                                        .split("|")))

DORIS = "4.1"


def deliver(doris, table, folder, target, **settings):
    folder.mkdir()
    return DorisDelivery(table, folder, target=target, sink=doris.sink(**settings))


@pytest.mark.parametrize("doris", ["4.1", "4.0"], indirect=True)
def test_every_type_arrives_as_with_json(doris, table, tmp_path):
    table.create(SCHEMA)
    table.append(ROWS.replace("RANGE", "300"))
    table.append(NULLS)
    for name in "json", "arrow":
        doris.run(TARGET.replace("d.t ", f"d.{name} "))
        deliver(doris, table, tmp_path / name, f"d.{name}", format=name, **({"arrow_zone": 8} if name == "arrow" else {})).run(
            "--chunk-mb", "1").ok()
    def flat(name):
        return sorted((sorted(r.items()) for r in doris.rows(name)), key=lambda r: dict(r)["id"])
    assert len(flat("json")) == 301
    for one, other in zip(flat("json"), flat("arrow"), strict=True):
        assert one == other
    doris.check("arrow")


def test_many_batches_and_large_texts(doris, table, tmp_path):
    table.create("id long required, s string, n list<string>")
    table.append("SELECT range::BIGINT AS id, repeat(chr((97 + range % 26)::INTEGER), (range % 50)::INTEGER) AS s, "
                 "CASE WHEN range % 7 = 0 THEN NULL ELSE ['a' || range] END AS n FROM range(40000)")
    table.append("SELECT (100000 + range)::BIGINT AS id, repeat('x', 3000000) AS s, [repeat('y', 1000000)] AS n FROM range(3)")
    delivery = deliver(doris, table, tmp_path / "into", "d.t", format="arrow", create_table="true")
    delivery.run().ok()
    rows = {r["id"]: r for r in doris.rows()}
    assert len(rows) == 40003 and len(rows[100002]["s"]) == 3000000 and len(rows[100002]["n"][0]) == 1000000
    for r in table.rows():
        assert (rows[r["id"]]["s"], rows[r["id"]]["n"]) == (r["s"], r["n"])
    doris.check()


def test_upserts_and_deletes_by_key(doris, table, tmp_path):
    table.create("id long required, name string", "--identifier", "id")
    table.append("SELECT range::BIGINT AS id, 'n' || range AS name FROM range(300)")
    delivery = deliver(doris, table, tmp_path / "into", "d.t", format="arrow", create_table="true")
    assert "sequence" not in delivery.command("ddl").ok().row["sql"]
    delivery.run().ok()
    table.delete("id >= 40 AND id < 140")
    table("upsert", "--key", "id", "--sql", "SELECT range::BIGINT AS id, 'u' || range AS name FROM range(0, 50)").ok()
    delivery.run().ok()
    assert sorted((r["id"], r["name"]) for r in doris.rows()) == sorted((r["id"], r["name"]) for r in table.rows())
    doris.check()


REFUSED = {
    "capitals": ("id long, n int", "(`id` BIGINT, `N` INT)", {}, r"column n: cannot be sent as Arrow \(a name with capitals"),
    "beyond ASCII": ("id long, é int", "(`id` BIGINT, `é` INT)", {}, "column é: cannot be sent as Arrow"),
    "zone": ("id long, ts timestamp", "(`id` BIGINT, `ts` DATETIME(6))", {}, "column ts: .*knut cdc selftest.*arrow-zone"),
    "zone inside": ("id long, ts list<timestamptz>", "(`id` BIGINT, `ts` ARRAY<DATETIME(6)>)", {}, "column ts: .*arrow-zone"),
    "digits": ("id long, d decimal(9,2)", "(`id` BIGINT, `d` DECIMAL(50,2))", {}, "column d: .*more than 38 digits"),
    "field": ("id long, s struct<a:int>", "(`id` BIGINT, `s` STRUCT<A:INT>)", {}, "column s: .*field's name with capitals"),
    "sequence": ("id long required, n int", "(`id` BIGINT NOT NULL, `n` INT) UNIQUE KEY(`id`) PROPERTIES "
                 "(\"function_column.sequence_type\" = \"bigint\")", {"key": "id"}, "has a sequence column.*format=json"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_target_that_cannot_take_arrow_is_refused_with_the_way_out(doris, table, tmp_path, name):
    schema, columns, options, words = REFUSED[name]
    table.create(schema)
    table.append("SELECT 1::BIGINT AS id" + "".join(f", NULL AS {c.split()[0]}" for c in schema.split(", ")[1:]))
    doris.run(f"CREATE TABLE d.t {columns}" + ("" if "UNIQUE" in columns else " DUPLICATE KEY(`id`)"))
    delivery = deliver(doris, table, tmp_path / "into", "d.t", format="arrow")
    args = ("--key", options["key"]) if options else ()
    delivery.run(*args).fails(3, r"doris d\.t", words, "format=json")
    assert doris.counts().get("loads_asked", 0) == 0
    delivery.sink = doris.sink(format="json")
    delivery.run(*args).ok()


@pytest.mark.parametrize("zone, value, words", [
    ("8", "TIMESTAMP '1970-01-01 07:59:59.999999'", "column ts: a time before 1970.*format=json"),
    ("0", "TIMESTAMP '1969-12-31 23:59:59'", "column ts: a time before 1970.*format=json"),
    ("8", "TIMESTAMP '10000-01-01 00:00:00'", "column ts: a time after the year 9999"),
])
def test_a_time_that_doris_would_read_wrongly_is_refused_before_anything_is_sent(doris, table, tmp_path, zone, value, words):
    table.create("id long, ts timestamp")
    table.append(f"SELECT 1::BIGINT AS id, {value} AS ts")
    delivery = deliver(doris, table, tmp_path / "into", "d.t", format="arrow", arrow_zone=zone, create_table="true")
    delivery.run().fails(3, r"doris d\.t, chunk 0", words)
    assert doris.counts().get("loads_asked", 0) == 0


def test_the_format_may_change_between_attempts(doris, table, tmp_path):
    """A chunk whose fate is open goes again under its label in the other format: the same rows."""
    table.create("id long required, name string")
    table.append("SELECT range::BIGINT AS id, 'n' || range AS name FROM range(300)")
    delivery = deliver(doris, table, tmp_path / "into", "d.t", format="arrow", create_table="true")
    delivery.run(env={"KNUT_FAULT": "sink-after-commit:1:kill"})
    delivery.sink = doris.sink(format="json")
    delivery.run().ok()
    assert len(doris.rows()) == 300
    doris.check()

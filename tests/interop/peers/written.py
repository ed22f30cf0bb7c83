# SPDX-License-Identifier: Apache-2.0
"""Tables that the program writes for others to read, and the rows that they must have."""
import duckdb

from lib import rows as R
from lib.lake import arrow

TYPES = """id long required, bo boolean, i int, f float, d double, d9 decimal(9,2), d18 decimal(18,4), d38 decimal(38,10),
    da date, ti time, ts timestamp, tz timestamptz, s string, u uuid, b binary"""

# Casts, so that the rows have the columns' types wherever the query is run.
_TYPED = """SELECT id::BIGINT AS id, bo::BOOLEAN AS bo, i::INTEGER AS i, f::FLOAT AS f, d::DOUBLE AS d, d9::DECIMAL(9,2) AS d9,
    d18::DECIMAL(18,4) AS d18, d38::DECIMAL(38,10) AS d38, da::DATE AS da, ti::TIME AS ti, ts::TIMESTAMP AS ts,
    tz::TIMESTAMPTZ AS tz, s::VARCHAR AS s, u::UUID AS u, b::BLOB AS b FROM ({})"""

EXTREMES = _TYPED.format("""SELECT * FROM (VALUES
    (9223372036854775807, true, 2147483647, 'NaN', 'inf', '9999999.99', '99999999999999.9999',
     '9999999999999999999999999999.9999999999', '9999-12-31', '23:59:59.999999', '9999-12-31 23:59:59.999999',
     '9999-12-31 23:59:59.999999+00', 'zürich 😀', 'ffffffff-ffff-ffff-ffff-ffffffffffff', '\\xFF\\x00'),
    (-9223372036854775808, false, -2147483648, '-0.0', '-inf', '-9999999.99', '-99999999999999.9999',
     '-9999999999999999999999999999.9999999999', '0001-01-01', '00:00', '0001-01-01 00:00:00',
     '1969-12-31 23:59:59.999999+00', '', '00000000-0000-0000-0000-000000000000', ''),
    (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (0, true, 0, '0.0', 'NaN', '0', '-0.0001', '0.1', '1970-01-01', '12:00', '1970-01-01 00:00:00',
     '1970-01-01 00:00:00+00', repeat('long text ', 5), 'f79c3e09-677c-4bbd-a479-3f349cb785e7', '\\x01\\x02'),
    (5, true, 7, '1.5', '-0.0', '1.10', '1.1', '1.1', '2024-02-29', '00:00:00.000001', '1582-10-14 00:00:01',
     '2024-02-29 23:59:59.5+00', 'ab' || chr(0) || 'c', '00000000-0000-0000-8000-000000000000', repeat('\\xFF', 20))
    ) AS t(id, bo, i, f, d, d9, d18, d38, da, ti, ts, tz, s, u, b)""")

NO_VALUES = _TYPED.format("SELECT 3 AS id, " + ", ".join(
    f"NULL AS {c}" for c in ("bo", "i", "f", "d", "d9", "d18", "d38", "da", "ti", "ts", "tz", "s", "u", "b")))


def spread(start, stop):
    """Many rows of all types; every seventh has NULLs."""
    return _TYPED.format(f"""SELECT n AS id, n % 2 = 0 AS bo, 3 * n - 10 AS i, [1.5, '-0.0'::FLOAT, 'NaN'::FLOAT, 'inf'::FLOAT]
        [1 + n % 4] AS f, ['NaN'::DOUBLE, 0, -2.5][1 + n % 3] AS d, (n - 5) * 1.07 AS d9, n * 0.0001 AS d18, n - 3 AS d38,
        DATE '1969-12-30' + n::INTEGER * 9 AS da, TIME '00:00' + n * INTERVAL 17 MINUTE AS ti,
        TIMESTAMP '1969-12-31 21:00:00' + n * INTERVAL '7 hours 1 microsecond' AS ts,
        TIMESTAMPTZ '1969-12-31 21:00:00+00' + n * INTERVAL '7 hours 1 microsecond' AS tz,
        ['', 'ab', 'abcd', 'zé😀x', 'a b/c?d=é%&:x', '.'][1 + n % 6] AS s,
        ('00000000-0000-0000-0000-' || printf('%012d', n))::UUID AS u,
        [from_hex('00FF7F80'), from_hex(''), from_hex('FF')][1 + n % 3] AS b
        FROM range({start}, {stop}) t(n) WHERE n % 7 <> 3
        UNION ALL SELECT n, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
        FROM range({start}, {stop}) t(n) WHERE n % 7 = 3""")


NESTED = """id int required, l list<list<int>>, m map<string, struct<name string, tags list<string>>>,
    s struct<a int, p struct<name string, tags list<string>>>, mi map<int, map<string, double>>"""

# No NULL for m: PyIceberg 0.12 reads a NULL map of structs as an empty one, in any file.
NESTED_ROWS = """SELECT id::INTEGER AS id, l::INTEGER[][] AS l, m::MAP(VARCHAR, STRUCT(name VARCHAR, tags VARCHAR[])) AS m,
    s::STRUCT(a INTEGER, p STRUCT(name VARCHAR, tags VARCHAR[])) AS s, mi::MAP(INTEGER, MAP(VARCHAR, DOUBLE)) AS mi FROM (
    SELECT 1 AS id, [[1, NULL], [], NULL] AS l, MAP {'a': {'name': 'x', 'tags': ['t', NULL]}, 'b': NULL} AS m,
        {'a': 1, 'p': {'name': NULL, 'tags': []}} AS s, MAP {1: MAP {'k': 'NaN'::DOUBLE}, 2: NULL} AS mi
    UNION ALL SELECT 2, NULL, MAP {}, NULL, NULL
    UNION ALL SELECT 3, [], MAP {}, {'a': NULL, 'p': NULL}, MAP {}
    UNION ALL SELECT 4, NULL, MAP {'': {'name': NULL, 'tags': NULL}}, {'a': 4, 'p': {'name': 'y', 'tags': ['']}}, NULL)"""

FIXED = "id long required, fx fixed[4], f16 fixed[16], st struct<a int, fx fixed[3]>, l list<fixed[2]>, m map<fixed[1], fixed[1]>"


def fixed_rows(start, stop):
    """Few values and many (dictionaries and none), NULL at every depth."""
    return f"""SELECT i::BIGINT AS id, CASE WHEN i % 5 = 0 THEN NULL ELSE unhex(printf('%08x', (i % 7)::INTEGER)) END AS fx,
        unhex(md5(i::VARCHAR)) AS f16, CASE WHEN i % 6 = 0 THEN NULL
        ELSE {{'a': i::INTEGER, 'fx': CASE WHEN i % 3 = 0 THEN NULL ELSE unhex(printf('%06x', i::INTEGER)) END}} END AS st,
        CASE WHEN i % 4 = 0 THEN [] WHEN i % 4 = 1 THEN NULL ELSE ['ab'::BLOB, NULL, 'cd'::BLOB] END AS l,
        MAP {{'k'::BLOB: CASE WHEN i % 2 = 0 THEN 'v'::BLOB END}} AS m FROM range({start}, {stop}) t(i)"""


KEYED = "id long required, name string, amount double, day date"


def keyed(start, stop, name="n"):
    return (f"SELECT n AS id, '{name}' || n AS name, n * 0.5::DOUBLE AS amount, DATE '2024-01-01' + (n % 5)::INTEGER AS day "
            f"FROM range({start}, {stop}) t(n)")


def rows_of(*queries):
    """What the queries give, by a DuckDB that is not the program's."""
    with duckdb.connect(config={"threads": 1}) as db:
        db.execute("SET TimeZone = 'UTC'")
        return [row for query in queries for row in R.of_arrow(arrow(db, query))]

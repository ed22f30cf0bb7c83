# SPDX-License-Identifier: Apache-2.0
"""Changes of a table's shape, by the program and by PyIceberg: each makes the same schemas and specs of the same ids,
goes on where the other was, and reads what the other wrote."""
import duckdb
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, DayTransform, HourTransform, IdentityTransform, TruncateTransform
from pyiceberg.types import (DecimalType, DoubleType, FloatType, IntegerType, ListType, LongType, MapType, NestedField, StringType, StructType,
                             TimestampType)

from lib import rows as R
from peers.duck import duck_rows
from test_pyiceberg_writes import arrow as arrow_rows

WORDS = ("id long required, ts timestamp, s string, i int, f float, de decimal(9,2), st struct<a int, b string>, "
         "l list<struct<p int>>, m map<string, struct<v float>>")


def schema():
    return Schema(
        NestedField(1, "id", LongType(), required=True), NestedField(2, "ts", TimestampType()), NestedField(3, "s", StringType()),
        NestedField(4, "i", IntegerType()), NestedField(5, "f", FloatType()), NestedField(6, "de", DecimalType(9, 2)),
        NestedField(7, "st", StructType(NestedField(10, "a", IntegerType()), NestedField(11, "b", StringType()))),
        NestedField(8, "l", ListType(12, StructType(NestedField(13, "p", IntegerType())), element_required=False)),
        NestedField(9, "m", MapType(14, StringType(), 15, StructType(NestedField(16, "v", FloatType())), value_required=False)))


def columns(update):
    """Names the steps of PyIceberg's UpdateSchema that stand beside the program's words."""
    new = StructType(NestedField(1, "x", IntegerType()), NestedField(2, "y", ListType(3, StringType(), element_required=False)))
    update.update_column("i", LongType()).update_column("f", DoubleType()).update_column("de", DecimalType(20, 2))
    update.rename_column("s", "t").update_column("ts", doc="when").add_column(("st", "c"), DoubleType(), doc="third")
    update.add_column("new", new).add_column(("l", "q"), StringType()).add_column(("m", "w"), LongType())
    update.move_first("de").move_after("i", "id").move_before(("st", "c"), ("st", "a")).delete_column(("st", "b"))


COLUMNS = ["ALTER COLUMN i TYPE bigint", "ALTER COLUMN f TYPE double", "ALTER COLUMN de TYPE decimal(20,2)", "RENAME COLUMN s TO t",
           "ALTER COLUMN ts COMMENT 'when'", "ADD COLUMN st.c double COMMENT 'third'", "ADD COLUMN new struct<x int, y list<string>>",
           "ADD COLUMN l.q string", "ADD COLUMN m.w long", "ALTER COLUMN de FIRST", "ALTER COLUMN i AFTER id",
           "ALTER COLUMN st.c BEFORE st.a", "DROP COLUMN st.b"]


def spec_one(update):
    update.add_field("ts", DayTransform()).add_field("id", BucketTransform(16), "shard")


def spec_two(update):
    update.remove_field("ts_day").add_field("ts", HourTransform()).add_field("t", TruncateTransform(4)).rename_field("shard", "b16")


def spec_three(update):
    update.remove_field("b16").remove_field("ts_hour").add_field("i", IdentityTransform(), "i_now").add_field("ts", DayTransform(), "ts_day")


SPECS = [(spec_one, ["ADD PARTITION FIELD day(ts)", "ADD PARTITION FIELD bucket(16, id) AS shard"]),
         (spec_two, ["DROP PARTITION FIELD ts_day", "ADD PARTITION FIELD hour(ts)", "ADD PARTITION FIELD truncate(4, t) AS t_trunc_4",
                     "RENAME PARTITION FIELD shard TO b16"]),
         (spec_three, ["DROP PARTITION FIELD b16", "DROP PARTITION FIELD ts_hour", "ADD PARTITION FIELD i AS i_now",
                       "ADD PARTITION FIELD day(ts) AS ts_day"])]


def shape(table):
    ice = table.ice
    return (ice.schema().model_dump(exclude={"schema_id"}), ice.metadata.last_column_id, ice.metadata.last_partition_id,
            [(f.source_id, f.field_id, f.name, str(f.transform)) for f in ice.spec().fields])


def pair(lake):
    """The same table twice: altered by the program, by PyIceberg."""
    lake.knut("table", "create", *lake.locator, "--table", "ns.ours", "--schema", WORDS).ok()
    theirs = lake.create(schema(), name="ns.theirs")
    ours = lake.table("ns.ours")
    assert shape(ours) == shape(theirs)
    return ours, theirs


def test_columns_become_what_pyiceberg_makes_of_them(lake):
    ours, theirs = pair(lake)
    ours.knut("alter", *COLUMNS).ok()
    with theirs.ice.update_schema() as update:
        columns(update)
    assert shape(ours) == shape(theirs)
    # Once more, and a name that was there before.
    ours.knut("alter", "DROP COLUMN t", "SET IDENTIFIER FIELDS id").ok()
    ours.knut("alter", "ADD COLUMN t int", "ADD COLUMN st.b string").ok()
    with theirs.ice.update_schema() as update:
        update.delete_column("t").set_identifier_fields("id")
    with theirs.ice.update_schema() as update:
        update.add_column("t", IntegerType()).add_column(("st", "b"), StringType())
    assert shape(ours) == shape(theirs)


def test_specs_become_what_pyiceberg_makes_of_them(lake):
    ours, theirs = pair(lake)
    ours.knut("alter", "RENAME COLUMN s TO t").ok()
    with theirs.ice.update_schema() as update:
        update.rename_column("s", "t")
    for change, words in SPECS:
        ours.knut("alter", *words).ok()
        with theirs.ice.update_spec() as update:
            change(update)
        assert shape(ours) == shape(theirs)


def rows_sql(start, stop, s="s"):
    """No NULL lists and maps: PyIceberg reads them as empty where a struct in them has a new field."""
    return (f"SELECT r::BIGINT AS id, TIMESTAMP '2026-01-01' + to_hours(r * 5) AS ts, 's' || (r % 5) AS {s}, (r * 2)::INT AS i, "
            f"[{{'p': r::INT}}] AS l, MAP {{'k': {{'v': (r / 2)::FLOAT}}}} AS m "
            f"FROM range({start}, {stop}) t(r)")


def rows_of(sql):
    with duckdb.connect() as db:
        columns = db.execute(sql)
        names = [c[0] for c in columns.description]
        return [{**dict(zip(names, row)), "m": list(row[names.index("m")].items())} for row in columns.fetchall()]


def test_each_goes_on_where_the_other_was(lake):
    ours, _ = pair(lake)

    def read_by_all():
        rows = ours.rows()
        R.assert_same(R.of_arrow(ours.ice.scan().to_arrow()), rows, "PyIceberg")
        R.assert_same(duck_rows(ours.ice.metadata_location), rows, "DuckDB's extension")
        return rows

    ours.knut("append", "--sql", rows_sql(0, 20)).ok()
    ours.knut("alter", *COLUMNS, *SPECS[0][1]).ok()
    read_by_all()
    ours.knut("append", "--sql", rows_sql(20, 40, "t")).ok()
    with ours.ice.update_spec() as update:
        spec_two(update)
    with ours.ice.update_schema() as update:
        update.rename_column("t", "u").add_column("n", IntegerType())
    ours.ice.append(arrow_rows(ours.ice, rows_of(rows_sql(40, 50, "u"))))
    read_by_all()
    ours.knut("append", "--sql", rows_sql(50, 60, "u")).ok()
    ours.knut("delete", "--where", "u = 's1' OR id IN (0, 22, 42)").ok()
    ours.agree()
    ours.knut("alter", *(words.replace("(4, t)", "(4, u)") for words in SPECS[2][1]), "WRITE ORDERED BY id DESC", "DROP COLUMN f").ok()
    ours.ice.delete("id < 8")
    ours.ice.append(arrow_rows(ours.ice, rows_of(rows_sql(60, 70, "u"))))
    ours.knut("overwrite", "--where", "id >= 30 AND id < 45", "--sql", rows_sql(30, 33, "u")).ok()
    rows = read_by_all()
    gone = {r for r in range(60) if r % 5 == 1} | {0, 22, 42} | set(range(8)) | set(range(33, 45))
    assert sorted(r["id"] for r in rows) == sorted((set(range(60)) - gone) | {31} | set(range(60, 70)))

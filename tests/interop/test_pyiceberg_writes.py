# SPDX-License-Identifier: Apache-2.0
"""Tables that PyIceberg writes: after each of its commits the program reads the same rows, by the catalog, by
the metadata document and by the bare root, and says the same of what the commit changed."""
import datetime as dt
import decimal
import gzip
import random
import uuid

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.expressions import And, EqualTo, GreaterThanOrEqual, IsNull, IsNaN, LessThan, Not, StartsWith
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import NullOrder, SortDirection, SortField, SortOrder
from pyiceberg.transforms import (BucketTransform, DayTransform, HourTransform, IdentityTransform, MonthTransform,
                                  TruncateTransform, VoidTransform, YearTransform)
from pyiceberg.types import (BinaryType, BooleanType, DateType, DecimalType, DoubleType, FixedType, FloatType,
                             IntegerType, ListType, LongType, MapType, NestedField, StringType, StructType,
                             TimestampType, TimestamptzType, TimeType, UUIDType)

from lib import rows as R
from lib.lake import Delivery, Table
from peers.pyice import Lake

D = decimal.Decimal
UTC = dt.timezone.utc
NAN, INF = float("nan"), float("inf")


def optional(*fields):
    return Schema(*(NestedField(i, name, kind, required=False) for i, (name, kind) in enumerate(fields, 1)))


PRIMITIVES = optional(
    ("id", LongType()), ("bo", BooleanType()), ("i", IntegerType()), ("f", FloatType()), ("d", DoubleType()),
    ("d9", DecimalType(9, 2)), ("d18", DecimalType(18, 4)), ("d38", DecimalType(38, 10)), ("da", DateType()),
    ("ti", TimeType()), ("ts", TimestampType()), ("tz", TimestamptzType()), ("s", StringType()), ("u", UUIDType()),
    ("fx", FixedType(4)), ("b", BinaryType()))

EXTREMES = [
    {"id": 2**63 - 1, "bo": True, "i": 2**31 - 1, "f": NAN, "d": INF, "d9": D("9999999.99"),
     "d18": D("99999999999999.9999"), "d38": D("9999999999999999999999999999.9999999999"), "da": dt.date(9999, 12, 31),
     "ti": dt.time(23, 59, 59, 999999), "ts": dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
     "tz": dt.datetime(9999, 12, 31, 23, 59, 59, 999999, UTC), "s": "zürich 😀\n\"\\\0", "u": uuid.UUID(int=2**128 - 1),
     "fx": b"\xff\0\x80\x7f", "b": b"\xff\0"},
    {"id": -2**63, "bo": False, "i": -2**31, "f": -0.0, "d": -INF, "d9": D("-9999999.99"),
     "d18": D("-99999999999999.9999"), "d38": D("-9999999999999999999999999999.9999999999"), "da": dt.date(1, 1, 1),
     "ti": dt.time(0), "ts": dt.datetime(1, 1, 1), "tz": dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), "s": "",
     "u": uuid.UUID(int=0), "fx": b"\0\0\0\0", "b": b""},
    {"id": 3},
    {"id": 0, "bo": True, "i": 0, "f": 0.0, "d": NAN, "d9": D("0.00"), "d18": D("-0.0001"), "d38": D("0.1"),
     "da": dt.date(1970, 1, 1), "ti": dt.time(12), "ts": dt.datetime(1970, 1, 1), "tz": dt.datetime(1970, 1, 1, tzinfo=UTC),
     "s": "a", "u": uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7"), "fx": b"abcd", "b": b"a"},
    {"id": None, "d": -0.0, "f": -INF}]


def arrow(table, rows):
    """Rows as an Arrow table of the table's own schema; pyarrow wants uuids as bytes."""
    schema = table.schema().as_arrow()
    def value(v):
        return v.bytes if isinstance(v, uuid.UUID) else v
    columns = []
    for field in schema:
        kind, values = field.type, [value(r.get(field.name)) for r in rows]
        if isinstance(kind, pa.BaseExtensionType):
            columns.append(pa.ExtensionArray.from_storage(kind, pa.array(values, kind.storage_type)))
        else:
            columns.append(pa.array(values, kind))
    return pa.Table.from_arrays(columns, schema=schema)


def append(shared, *rows):
    ice = shared.ice
    ice.append(arrow(ice, rows))
    return shared


@pytest.mark.parametrize("version", [1, 2])
def test_every_primitive_type_with_its_extremes_is_read(lake, version):
    shared = lake.create(PRIMITIVES, version=version)
    assert shared.agree(0).rows() == []
    append(shared, *EXTREMES).agree()
    append(shared, *({**row, "s": "again"} for row in EXTREMES)).agree()
    shared.ice.delete("s = 'again'")
    shared.agree().agree_on_history()
    for text in ("i = 2147483647", "d9 < 0", "d38 > 0", "da < '0002-01-01'", "s = ''", "id is null", "bo = false",
                 "ts >= '1970-01-01T00:00:00'", "tz < '1970-01-01T00:00:00+00:00'"):
        shared.agree_on_filter(text)
    shared.agree_on_filter("d IS NAN", IsNaN("d"))
    shared.agree_on_filter("NOT (s LIKE 'z%')", Not(StartsWith("s", "z")))


@pytest.mark.parametrize("version", [1, 2])
def test_lists_maps_and_structs_are_read(lake, version):
    person = StructType(NestedField(10, "name", StringType()), NestedField(
        11, "tags", ListType(12, StringType(), element_required=False)))
    shared = lake.create(Schema(
        NestedField(1, "id", IntegerType()),
        NestedField(2, "l", ListType(20, ListType(21, IntegerType(), element_required=False), element_required=False)),
        NestedField(3, "m", MapType(22, StringType(), 23, person, value_required=False)),
        NestedField(4, "s", StructType(NestedField(30, "a", IntegerType()), NestedField(31, "p", person))),
        NestedField(5, "mi", MapType(24, IntegerType(), 25, MapType(26, StringType(), 27, DoubleType(),
                                                                  value_required=False), value_required=False))),
        version=version)
    append(shared,
           {"id": 1, "l": [[1, None], [], None], "m": [("a", {"name": "x", "tags": ["t", None]}), ("b", None)],
            "s": {"a": 1, "p": {"name": None, "tags": []}}, "mi": [(1, [("k", NAN)]), (2, None)]},
           {"id": 2}, {"id": 3, "l": [], "m": [], "s": {"a": None, "p": None}, "mi": []},
           {"id": 4, "m": [("", {"name": None, "tags": None})], "s": {"a": 4, "p": {"name": "y", "tags": [""]}}}).agree()
    append(shared, {"id": 5, "l": [[5] * 40] * 3, "s": {"a": 5, "p": None}}).agree()
    shared.ice.delete("id in (1, 3)")
    shared.agree().agree_on_history()


BASE = optional(("id", LongType()), ("i", IntegerType()), ("s", StringType()), ("da", DateType()), ("ts", TimestampType()),
                ("tz", TimestamptzType()), ("de", DecimalType(9, 2)), ("b", BinaryType()), ("u", UUIDType()),
                ("bo", BooleanType()), ("f", FloatType()), ("d", DoubleType()), ("ti", TimeType()))
SOURCES = {field.name: field.field_id for field in BASE.fields}
# What PyIceberg writes: no floats that are zero or NaN, no bucket of time, no truncated binary.
PARTITIONINGS = [
    *((IdentityTransform(), name) for name in ("id", "i", "s", "da", "ts", "tz", "de", "b", "bo", "ti")),
    *((BucketTransform(3), name) for name in ("id", "i", "s", "da", "ts", "tz", "de", "b", "u")),
    *((TruncateTransform(3), name) for name in ("id", "i", "s", "de")),
    *((kind(), name) for kind in (YearTransform, MonthTransform, DayTransform) for name in ("da", "ts", "tz")),
    (HourTransform(), "ts"), (HourTransform(), "tz"), (VoidTransform(), "i")]


def a_row(n):
    if n % 7 == 3:
        return {"id": n}
    moment = dt.datetime(1969, 12, 31, 21) + dt.timedelta(hours=7 * n, microseconds=n)
    return {"id": n - 4, "i": 3 * n - 10, "s": ["", "ab", "abcd", "zé😀x", "a b/c?d=é%&:x", "."][n % 6], "da": moment.date(),
            "ts": moment, "tz": moment.replace(tzinfo=UTC), "de": D(n - 5) * D("1.07"), "b": bytes([n, 255 - n, n])[: n % 4],
            "u": uuid.UUID(int=n), "bo": n % 2 == 0, "f": [1.5, -0.0, NAN, INF][n % 4], "d": [NAN, 0.0, -2.5][n % 3],
            "ti": moment.time()}


@pytest.mark.parametrize("transform,column", PARTITIONINGS, ids=lambda v: str(v))
def test_a_table_partitioned_by_any_transform_is_read(lake, transform, column):
    spec = PartitionSpec(PartitionField(SOURCES[column], 1000, transform, "p"))
    shared = lake.create(BASE, spec=spec)
    append(shared, *map(a_row, range(12))).agree()
    shared.ice.delete(And(GreaterThanOrEqual("id", 2), LessThan("id", 5)))
    shared.agree()
    shared.agree_on_filter("i >= 5")
    shared.agree_on_filter("id = 1")
    shared.agree_on_filter(f"{column} IS NULL", IsNull(column))


def test_partitioning_by_several_fields_with_odd_values_is_read(lake):
    spec = PartitionSpec(*(PartitionField(SOURCES[name], 1000 + n, transform, f"p {n}/é")
                           for n, (transform, name) in enumerate(
                               [(IdentityTransform(), "s"), (BucketTransform(2), "id"), (DayTransform(), "ts")])))
    shared = append(lake.create(BASE, spec=spec), *map(a_row, range(20))).agree()
    shared.agree_on_filter("s = 'a b/c?d=é%&:x'")
    shared.agree_on_filter("s = ''")


def test_a_schema_that_changes_is_read_at_every_step(lake):
    shared = lake.create(Schema(
        NestedField(1, "a", IntegerType()), NestedField(2, "b", FloatType()), NestedField(3, "c", DecimalType(9, 2)),
        NestedField(4, "d", StringType()), NestedField(5, "n", StructType(
            NestedField(6, "x", IntegerType()), NestedField(7, "y", StringType()))),
        NestedField(8, "l", ListType(9, StructType(NestedField(10, "p", IntegerType()),
                                                   NestedField(11, "q", StringType())))),
        NestedField(12, "m", MapType(13, StringType(), 14, StructType(NestedField(15, "v", FloatType()))))))
    append(shared, {"a": 1, "b": 1.5, "c": D("1.25"), "d": "d1", "n": {"x": 1, "y": "y1"}, "l": [{"p": 1, "q": "q1"}],
                    "m": [("k", {"v": 1.5})]}).agree()

    def change(step):
        with shared.ice.update_schema(allow_incompatible_changes=True) as update:
            step(update)
        shared.agree()

    change(lambda u: u.update_column("a", LongType()).update_column("b", DoubleType())
           .update_column("c", DecimalType(20, 2)).update_column("n.x", LongType()))
    change(lambda u: u.rename_column("d", "d2").rename_column("n.y", "yy").rename_column("l.element.q", "qq"))
    change(lambda u: u.add_column("d", IntegerType(), doc="not the old d").add_column(("n", "z"), DoubleType())
           .add_column(("l", "element", "r"), StringType()).add_column(("m", "value", "w"), BooleanType()))
    append(shared, {"a": 5 * 10**9, "b": 2.5, "c": D("12345678901234567.25"), "d2": "d2", "d": 22,
                    "n": {"x": 5 * 10**9, "yy": "y2", "z": 9.5}, "l": [{"p": 2, "qq": "q2", "r": "r2"}, None],
                    "m": [("k2", {"v": 2.5, "w": True})]}).agree()
    change(lambda u: u.move_first("d2").move_after("a", "c"))
    change(lambda u: u.delete_column("b").delete_column(("n", "x")))
    change(lambda u: u.add_column("b", StringType()))
    append(shared, {"a": 3, "b": "text", "c": D("3.25"), "d2": "d3", "d": 33, "n": {"yy": "y3", "z": 3.5}}).agree()
    shared.ice.delete("d2 = 'd1'")
    shared.agree()
    shared.ice.overwrite(arrow(shared.ice, [{"a": 4, "b": "more"}]), overwrite_filter="a = 3")
    shared.agree(2).agree_on_history()
    shared.agree_on_filter("b is null")
    shared.agree_on_filter("a > 4")


def test_a_partitioning_that_changes_is_read_at_every_step(lake):
    shared = append(lake.create(BASE), *map(a_row, range(8))).agree()

    def change(step):
        with shared.ice.update_spec() as update:
            step(update)
        shared.agree()

    change(lambda u: u.add_field("ts", DayTransform(), "day"))
    append(shared, *map(a_row, range(8, 16))).agree()
    change(lambda u: u.remove_field("day").add_field("id", BucketTransform(4), "idb"))
    append(shared, *map(a_row, range(16, 24))).agree()
    shared.ice.delete("id in (0, 5, 13)")
    shared.agree()
    change(lambda u: u.remove_field("idb").add_field("s", TruncateTransform(2), "st"))
    append(shared, *map(a_row, range(24, 30))).agree()
    shared.ice.overwrite(arrow(shared.ice, [{"id": 100}]), overwrite_filter="id > 10")
    shared.agree(2).agree_on_history()
    shared.agree_on_filter("id > 3")
    shared.agree_on_filter("s = 'ab'")


def test_partitions_that_are_overwritten_by_what_comes_are_read(lake):
    spec = PartitionSpec(*(PartitionField(SOURCES[name], 1000 + n, IdentityTransform(), name)
                           for n, name in enumerate(("s", "bo"))))
    shared = append(lake.create(BASE, spec=spec), *map(a_row, range(20))).agree()
    shared.ice.dynamic_partition_overwrite(arrow(shared.ice, [{**a_row(1), "i": 1000}, {**a_row(4), "i": 1001}]))
    shared.agree(2).agree_on_history()


KEYED = Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "name", StringType()),
               NestedField(3, "amount", DoubleType()), NestedField(4, "day", DateType()), identifier_field_ids=[1])


def keyed_row(n, name=None):
    return {"id": n, "name": name or f"n{n}", "amount": n * 0.5, "day": dt.date(2024, 1, 1 + n % 5)}


@pytest.mark.parametrize("version", [1, 2])
def test_deletes_overwrites_and_upserts_are_read_and_their_changes_are_exact(lake, version):
    shared = lake.create(KEYED, spec=PartitionSpec(PartitionField(4, 1000, IdentityTransform(), "day")), version=version)
    append(shared, *map(keyed_row, range(40))).agree()
    append(shared, *map(keyed_row, range(40, 60))).agree()
    shared.ice.delete("id < 7")
    shared.agree()
    shared.ice.delete(EqualTo("day", "2024-01-02"))  # whole files
    shared.agree()
    shared.ice.overwrite(arrow(shared.ice, [keyed_row(n, "new") for n in range(20, 25)]),
                         overwrite_filter="id >= 20 and id < 25")
    shared.agree(2)
    done = shared.ice.upsert(arrow(shared.ice, [keyed_row(n, "up") for n in range(55, 65)]))
    assert (done.rows_updated, done.rows_inserted) == (4, 6)  # 56 went with its day
    shared.agree(3)
    shared.ice.delete("id = -1")  # nothing to do
    shared.agree()
    shared.ice.overwrite(arrow(shared.ice, [keyed_row(1, "last")]))
    shared.agree(2).agree_on_history()


def test_files_without_field_ids_are_read_through_the_name_mapping(lake, tmp_path):
    shared = lake.create(Schema(
        NestedField(1, "id", IntegerType()), NestedField(2, "nm", StringType()),
        NestedField(3, "st", StructType(NestedField(5, "x", IntegerType()), NestedField(6, "y", StringType()))),
        NestedField(4, "l", ListType(7, IntegerType(), element_required=False))))
    made = pa.table({"id": pa.array([1, 2], pa.int32()), "nm": ["a", None],
                     "st": pa.array([{"x": 1, "y": "p"}, None], pa.struct([("x", pa.int32()), ("y", pa.string())])),
                     "l": pa.array([[1, 2], None], pa.list_(pa.int32()))})
    (shared.lake.folder / "made").mkdir()
    paths = [shared.lake.folder / "made" / f"{n}.parquet" for n in range(2)]
    for path in paths:
        pq.write_table(made, path)
    shared.ice.add_files([f"file://{p}" for p in paths])
    outside = shared.lake.knut.json("table", "scan", *shared.locator)
    outside.fails(3, "made", "--allow-path")
    shared.lake.locator += ("--allow-path", shared.lake.folder / "made")
    ice = shared.ice
    expected = R.of_arrow(ice.scan().to_arrow())
    R.assert_same(shared.rows(), expected, "after add_files")
    with shared.ice.update_schema() as update:
        update.rename_column("nm", "name").rename_column(("st", "y"), "z")
    append(shared, {"id": 3, "name": "c", "st": {"x": 3, "z": "r"}, "l": [3]})
    R.assert_same(shared.rows(), R.of_arrow(shared.ice.scan().to_arrow()), "after a rename")
    shared.ice.delete("id = 1")
    R.assert_same(shared.rows(), R.of_arrow(shared.ice.scan().to_arrow()), "after a delete")
    for snapshot in shared.ice.snapshots():
        shared.agree_on_changes(shared.ice, snapshot)


def test_tags_and_branches_are_read_by_name(lake):
    shared = append(lake.create(KEYED), keyed_row(1)).agree()
    first = shared.ice.current_snapshot().snapshot_id
    append(shared, keyed_row(2))
    second = shared.ice.current_snapshot().snapshot_id
    with shared.ice.manage_snapshots() as refs:
        refs.create_tag(first, "päst").create_branch(second, "audit")
    ice = shared.ice
    ice.append(arrow(ice, [keyed_row(3)]), branch="audit")
    ice = shared.ice
    ice.delete("id = 1", branch="audit")
    append(shared, keyed_row(4))
    shared.agree().agree_on_history()
    audit = shared.ice.refs()["audit"].snapshot_id
    deleted, inserted = shared.changes("--from", first, "--to", audit, "--net")
    before, after = (shared.rows("--snapshot", s) for s in (first, audit))
    assert (deleted, inserted) == (R.multiset(before) - R.multiset(after), R.multiset(after) - R.multiset(before))
    shown = shared.knut("show").ok().row["refs"]
    assert {name: ref["snapshot"] for name, ref in shown.items()} == \
        {name: ref.snapshot_id for name, ref in shared.ice.refs().items()}


def test_an_expired_snapshot_is_refused_and_the_kept_ones_are_read(lake):
    shared = lake.create(KEYED)
    for n in range(5):
        append(shared, keyed_row(n))
    shared.ice.delete("id = 2")
    ids = [s.snapshot_id for s in shared.ice.snapshots()]
    shared.ice.maintenance.expire_snapshots().by_ids(ids[:3]).commit()
    shared.agree(2).agree_on_history()
    shared.knut("scan", "--snapshot", ids[0]).fails(1, str(ids[0]))
    shared.knut("changes", "--from", ids[1], "--to", ids[-1]).fails(1, str(ids[1]))
    deleted, inserted = shared.changes("--from", ids[3], "--to", ids[-1])
    assert (sum(deleted.values()), sum(inserted.values())) == (1, 1)


def test_a_gzip_metadata_document_is_read(lake):
    shared = append(lake.create(KEYED), keyed_row(1))
    source = shared.locators["metadata"][1]
    packed = source.with_name(source.name.replace(".metadata.json", ".gz.metadata.json"))
    packed.write_bytes(gzip.compress(source.read_bytes()))
    lake.catalog.drop_table(shared.name)
    lake.catalog.register_table(shared.name, f"file://{packed}")
    assert shared.locators["metadata"][1] == packed
    shared.agree()
    # Only the packed document: the bare root finds it by itself.
    for path in source.parent.glob("*.metadata.json"):
        if path != packed:
            path.unlink()
    shared.agree()


def test_a_sort_order_and_several_row_groups_are_read(lake):
    order = SortOrder(SortField(1, BucketTransform(4), SortDirection.ASC, NullOrder.NULLS_LAST),
                      SortField(3, IdentityTransform(), SortDirection.DESC, NullOrder.NULLS_FIRST))
    shared = lake.create(KEYED, order=order, write_parquet_row__group__limit="100",
                         write_parquet_page__row__limit="20", write_parquet_compression__codec="gzip")
    append(shared, *map(keyed_row, range(950))).agree()
    for text in ("id = 500", "id >= 940", "name = 'n123'", "amount < 3"):
        shared.agree_on_filter(text)
    shared.ice.delete("id = 500")
    shared.agree()


@pytest.mark.parametrize("codec", ["uncompressed", "snappy", "gzip", "zstd", "brotli", "lz4"])
def test_every_codec_of_data_files_is_read(lake, codec):
    shared = lake.create(KEYED, write_parquet_compression__codec=codec)
    append(shared, *map(keyed_row, range(300))).agree()


@pytest.mark.parametrize("codec", ["gzip", "zstandard", "null", "deflate"])
def test_every_codec_of_manifests_is_read(lake, codec):
    shared = lake.create(KEYED, write_avro_compression__codec=codec)
    append(shared, *map(keyed_row, range(10)))
    shared.ice.delete("id = 3")
    shared.agree().agree_on_history()


def test_merged_manifests_are_read(lake):
    shared = lake.create(KEYED, commit_manifest__merge_enabled="true", commit_manifest_min__count__to__merge="2")
    for n in range(6):
        append(shared, keyed_row(n), keyed_row(n + 100))
    shared.ice.delete("id = 3")
    append(shared, keyed_row(7))
    shared.agree(3).agree_on_history()


def test_another_database_and_catalog_name_are_opened(knut, tmp_path):
    """Namespaces of several levels; the name stands in the database beside another catalog's."""
    db = tmp_path / "elsewhere.db"
    lake = Lake(knut, tmp_path / "warehouse", db, "prod")
    shared = append(lake.create(KEYED, name="a.b c.t é"), keyed_row(1)).agree()
    other = append(Lake(knut, tmp_path / "other", db, "test").create(KEYED, name="a.b c.t é"), keyed_row(2)).agree()
    assert shared.rows() != other.rows()
    listed = knut.json("table", "list", *lake.locator).ok().rows
    assert [(t["namespace"], t["name"]) for t in listed] == [(["a", "b c"], "t é")]


def test_a_catalog_of_the_older_schema_is_opened(lake):
    """Without the column iceberg_type, as catalogs made by older tools are."""
    import sqlite3
    shared = append(lake.create(KEYED), keyed_row(1))
    with sqlite3.connect(lake.db) as db:
        db.execute("ALTER TABLE iceberg_tables DROP COLUMN iceberg_type")
    shared.agree()
    shared.knut("append", "--sql", "SELECT 2 AS id").ok()
    shared.agree()


def test_a_table_dropped_or_renamed_elsewhere_is_not_found(lake):
    shared = append(lake.create(KEYED), keyed_row(1)).agree()
    lake.catalog.rename_table("ns.t", "ns.u")
    lake.table("ns.u").agree()
    shared.knut("scan").fails((1, 3), "ns.t")


def test_commits_are_delivered_one_by_one(lake, tmp_path):
    shared = lake.create(KEYED, spec=PartitionSpec(PartitionField(1, 1000, BucketTransform(3), "b")))
    (tmp_path / "by-key").mkdir()
    (tmp_path / "by-row").mkdir()
    source = Table(lake.knut, lake.folder)
    copies = [Delivery(source, tmp_path / "by-key"), Delivery(source, tmp_path / "by-row", options=("--key", "id,name"))]
    def commit(step):
        step(shared.ice)
        expected = R.of_arrow(shared.ice.scan().to_arrow())
        for copy in copies:
            copy.deliver()
            R.assert_same(copy.rows(), expected, str(copy.folder))
    commit(lambda t: t.append(arrow(t, [keyed_row(n) for n in range(30)])))
    commit(lambda t: t.delete("id < 5"))
    commit(lambda t: t.overwrite(arrow(t, [keyed_row(n, "new") for n in range(9, 12)]), overwrite_filter="id >= 9 and id < 12"))
    commit(lambda t: t.upsert(arrow(t, [keyed_row(n, "up") for n in range(25, 35)])))
    commit(lambda t: t.delete("id >= 0"))
    commit(lambda t: t.append(arrow(t, [keyed_row(1)])))


@pytest.mark.parametrize("seed", range(4))
def test_random_commits_are_read_and_their_changes_are_exact(lake, seed):
    """Rows that occur several times, filters that take some of them, under a partitioning that changes."""
    dice = random.Random(seed)
    shared = lake.create(BASE, version=dice.choice([1, 2]))
    append(shared, *(a_row(dice.randrange(30)) for _ in range(20)))
    for _ in range(7):
        ice = shared.ice
        kind = dice.choice(["append", "delete", "overwrite", "spec"])
        low = dice.randrange(-4, 24)
        if kind == "append":
            append(shared, *(a_row(dice.randrange(30)) for _ in range(dice.randrange(1, 15))))
        elif kind == "delete":
            ice.delete(And(GreaterThanOrEqual("id", low), LessThan("id", low + 4)))
        elif kind == "overwrite":
            rows = [a_row(dice.randrange(30)) for _ in range(dice.randrange(1, 8))]
            ice.overwrite(arrow(ice, rows), overwrite_filter=And(GreaterThanOrEqual("id", low), LessThan("id", low + 6)))
        else:
            with ice.update_spec() as update:
                # Version 1 keeps dropped fields, and PyIceberg writes no two fields of one column.
                used = {BASE.find_column_name(f.source_id) for f in ice.spec().fields}
                for field in ice.spec().fields:
                    if not isinstance(field.transform, VoidTransform):
                        update.remove_field(field.name)
                fresh = [c for c in (("id", BucketTransform(2)), ("s", TruncateTransform(1)), ("ts", DayTransform()),
                                     ("bo", IdentityTransform())) if c[0] not in used]
                if fresh:
                    update.add_field(*dice.choice(fresh), f"p{dice.randrange(10**6)}")
        shared.agree(2)
    shared.agree_on_history()

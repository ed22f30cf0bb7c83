# SPDX-License-Identifier: Apache-2.0
"""PyIceberg as a client of `knut catalog serve`: namespaces, tables, writes, schemas, specs, refs, conflicts."""
import datetime as dt
import uuid

import pyarrow as pa
import pytest
from pyiceberg.exceptions import (CommitFailedException, NamespaceAlreadyExistsError, NamespaceNotEmptyError,
                                  NoSuchTableError, TableAlreadyExistsError, ValidationException)
from pyiceberg.expressions import EqualTo, GreaterThan
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, DayTransform
from pyiceberg.types import DoubleType, ListType, LongType, NestedField, StringType, TimestamptzType

from peers.odd_names import ODD

SCHEMA = Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "name", StringType()),
                NestedField(3, "ts", TimestamptzType()),
                NestedField(4, "tags", ListType(5, StringType(), element_required=False)), identifier_field_ids=[1])
BY_DAY = PartitionSpec(PartitionField(3, 1000, DayTransform(), "ts_day"))
ARROW = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string()),
                   ("ts", pa.timestamp("us", tz="UTC")), ("tags", pa.list_(pa.string()))])


def rows(first, end, name="n"):
    return pa.Table.from_pylist(
        [{"id": i, "name": f"{name}{i}", "ts": dt.datetime(2024, 1, 1 + i % 5, tzinfo=dt.timezone.utc),
          "tags": ["a", str(i)]} for i in range(first, end)], schema=ARROW)


def count(table, **scan):
    return table.scan(**scan).to_arrow().num_rows


@pytest.fixture
def catalog(pyiceberg_of):
    return pyiceberg_of()


@pytest.fixture
def ns(catalog):
    name = f"pyi_{uuid.uuid4().hex[:8]}"
    catalog.create_namespace(name, {"owner": "me"})
    return name


@pytest.fixture(params=["1", "2"])
def table(catalog, ns, request):
    return catalog.create_table(f"{ns}.t", SCHEMA, partition_spec=BY_DAY,
                                properties={"format-version": request.param})


def test_namespaces_have_properties_and_are_made_once(catalog, ns):
    assert (ns,) in catalog.list_namespaces()
    assert catalog.load_namespace_properties(ns)["owner"] == "me"
    done = catalog.update_namespace_properties(ns, removals={"owner"}, updates={"k": "v"})
    assert (done.removed, done.updated) == (["owner"], ["k"])
    with pytest.raises(NamespaceAlreadyExistsError):
        catalog.create_namespace(ns)
    assert catalog.list_views(ns) == []
    catalog.drop_namespace(ns)
    assert (ns,) not in catalog.list_namespaces()


def test_a_table_is_made_once_and_what_is_missing_is_said(catalog, ns, table):
    assert catalog.table_exists(f"{ns}.t")
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table(f"{ns}.t", SCHEMA)
    with pytest.raises(NoSuchTableError):
        catalog.load_table(f"{ns}.nope")
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace(ns)


def test_appends_deletes_and_overwrites_are_read_back_at_each_snapshot(catalog, ns, table):
    table.append(rows(0, 50))
    first = table.current_snapshot().snapshot_id
    table.append(rows(50, 100))
    second = table.current_snapshot().snapshot_id
    assert count(table) == 100
    table.delete("id < 10")
    assert count(table) == 90
    table.overwrite(rows(10, 20, "new"), overwrite_filter="id >= 10 and id < 20")
    again = catalog.load_table(f"{ns}.t")
    assert again.scan(row_filter=EqualTo("id", 15)).to_arrow()["name"].to_pylist() == ["new15"]
    assert (count(again, snapshot_id=first), count(again, snapshot_id=second)) == (50, 100)
    assert len(again.history()) >= 4


def test_schemas_and_specs_evolve(catalog, ns, table):
    table.append(rows(0, 100))
    with table.update_schema() as update:
        update.add_column("score", DoubleType(), doc="d")
        update.rename_column("name", "nick")
        update.move_first("ts")
    table = catalog.load_table(f"{ns}.t")
    assert [f.name for f in table.schema().fields] == ["ts", "id", "nick", "tags", "score"]
    got = table.scan(selected_fields=("nick", "score"), row_filter=GreaterThan("id", 98)).to_arrow().to_pylist()
    assert got == [{"nick": "n99", "score": None}]
    with table.update_schema() as update:
        update.delete_column("score")
    with table.update_spec() as update:
        update.add_field("id", BucketTransform(4), "id_b")
    table = catalog.load_table(f"{ns}.t")
    assert (len(table.specs()), len(table.spec().fields)) == (2, 2)
    table.append(rows(200, 203).rename_columns(["id", "nick", "ts", "tags"]).select(["ts", "id", "nick", "tags"]))
    assert count(catalog.load_table(f"{ns}.t")) == 103


def test_branches_and_tags(catalog, ns, table):
    table.append(rows(0, 50))
    first = table.current_snapshot().snapshot_id
    table.append(rows(50, 100))
    with table.manage_snapshots() as manage:
        manage.create_tag(first, "old").create_branch(table.current_snapshot().snapshot_id, "audit")
    assert set(catalog.load_table(f"{ns}.t").metadata.refs) == {"main", "old", "audit"}
    assert table.scan().use_ref("old").to_arrow().num_rows == 50
    table.append(rows(200, 205), branch="audit")
    assert catalog.load_table(f"{ns}.t").scan().use_ref("audit").to_arrow().num_rows == 105
    assert count(catalog.load_table(f"{ns}.t")) == 100


def test_of_two_overwrites_of_the_same_rows_one_is_refused(catalog, ns, table):
    table.append(rows(0, 10))
    one, other = catalog.load_table(f"{ns}.t"), catalog.load_table(f"{ns}.t")
    one.append(rows(300, 301))
    with pytest.raises((CommitFailedException, ValidationException)):
        other.overwrite(rows(300, 302), overwrite_filter="id >= 300")
    assert count(catalog.load_table(f"{ns}.t")) == 11


def test_properties_hold_any_text_and_go_again(catalog, ns, table):
    with table.transaction() as change:
        change.set_properties({"p1": "1", "comment": "héllo"})
    assert catalog.load_table(f"{ns}.t").properties["comment"] == "héllo"
    with table.transaction() as change:
        change.remove_properties("p1")
    assert "p1" not in catalog.load_table(f"{ns}.t").properties


def test_tables_are_registered_renamed_and_dropped(catalog, ns, table):
    table.append(rows(0, 5))
    registered = catalog.register_table(f"{ns}.reg", table.metadata_location)
    assert count(registered) == 5
    catalog.rename_table(f"{ns}.reg", f"{ns}.ren")
    assert catalog.table_exists(f"{ns}.ren") and not catalog.table_exists(f"{ns}.reg")
    catalog.drop_table(f"{ns}.ren")
    assert catalog.list_tables(ns) == [(ns, "t")]
    assert count(catalog.load_table(f"{ns}.t")) == 5


def test_a_staged_table_is_seen_when_its_transaction_is_done(catalog, ns):
    with catalog.create_table_transaction(f"{ns}.staged", SCHEMA) as change:
        change.append(rows(0, 3))
        assert not catalog.table_exists(f"{ns}.staged")
    table = catalog.load_table(f"{ns}.staged")
    assert count(table) == 3
    done = table.upsert(rows(1, 5, "up"))
    assert (done.rows_updated, done.rows_inserted) == (2, 2)
    assert catalog.list_tables(ns) == [(ns, "staged")]
    catalog.purge_table(f"{ns}.staged")
    assert catalog.list_tables(ns) == []


@pytest.mark.parametrize("name", ODD)
def test_odd_names_are_one_table_for_every_operation(catalog, ns, name):
    table = catalog.create_table((ns, name), SCHEMA)
    table.append(rows(0, 2))
    assert count(catalog.load_table((ns, name))) == 2
    assert catalog.list_tables(ns) == [(ns, name)]
    catalog.rename_table((ns, name), (ns, name + "2"))
    assert count(catalog.load_table((ns, name + "2"))) == 2
    catalog.drop_table((ns, name + "2"))
    assert catalog.list_tables(ns) == []


def test_nested_namespaces(catalog, ns):
    catalog.create_namespace((ns, "inner"))
    catalog.create_namespace((ns, "in.ner"))
    catalog.create_table((ns, "inner", "t"), SCHEMA).append(rows(0, 1))
    assert sorted(catalog.list_namespaces(ns)) == [(ns, "in.ner"), (ns, "inner")]
    assert catalog.list_tables((ns, "inner")) == [(ns, "inner", "t")]
    assert catalog.list_tables((ns, "in.ner")) == []
    assert count(catalog.load_table((ns, "inner", "t"))) == 1

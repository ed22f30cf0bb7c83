# SPDX-License-Identifier: Apache-2.0
"""Tables in an object store, written by the program and by PyIceberg, each reading the other's through one catalog."""
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

from lib import rows as R

pytestmark = pytest.mark.xdist_group("s3")  # one store for all of them


@pytest.fixture
def catalog(stored, store):
    """PyIceberg's catalog on the program's database."""
    def connect():
        return SqlCatalog("knut", uri=f"sqlite:///{stored.db}", warehouse=str(stored.warehouse), **store.pyiceberg)
    return connect


def numbers(start, stop):
    return f"SELECT i AS id, ['a b', 'x=y', 'é%2F'][i % 3 + 1] AS k FROM range({start}, {stop}) t(i)"


def expected(ids):
    return [{"id": i, "k": ["a b", "x=y", "é%2F"][i % 3]} for i in ids]


@pytest.mark.parametrize("version", [2, 3])
def test_pyiceberg_reads_what_the_program_wrote(stored, store, catalog, version):
    stored.create("id long, k string", "--partition", "k", "--format-version", version)
    stored.append(numbers(0, 300))
    stored("delete", "--where", "id < 7", "--mode", "copy-on-write" if version == 3 else "merge-on-read").ok()
    table = catalog().load_table("ns.t")
    R.assert_same(R.of_arrow(table.scan().to_arrow()), expected(range(7, 300)), "by the catalog")
    static = StaticTable.from_metadata(table.metadata_location, properties=store.pyiceberg)
    R.assert_same(R.of_arrow(static.scan(row_filter="k == 'x=y'").to_arrow()),
                  [r for r in expected(range(7, 300)) if r["k"] == "x=y"], "by the document")


def test_the_program_reads_and_goes_on_with_what_pyiceberg_wrote(stored, catalog):
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "k", StringType()))
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "k"))
    ice = catalog()
    ice.create_namespace("ns")
    table = ice.create_table("ns.t", schema, partition_spec=spec)
    arrow = pa.schema([pa.field("id", pa.int64()), pa.field("k", pa.string())])
    table.append(pa.Table.from_pylist(expected(range(50)), schema=arrow))
    table.delete("id == 3")
    left = [i for i in range(50) if i != 3]
    R.assert_same(stored.rows(), expected(left), "the program")
    stored.append(numbers(50, 60))
    stored("delete", "--where", "id = 5").ok()
    left = [i for i in range(60) if i not in (3, 5)]
    R.assert_same(R.of_arrow(catalog().load_table("ns.t").scan().to_arrow()), expected(left), "PyIceberg")
    catalog().load_table("ns.t").append(pa.Table.from_pylist(expected([70]), schema=arrow))
    R.assert_same(stored.rows(), expected([*left, 70]), "the program, again")


def test_a_writer_who_lost_a_race_to_the_program_goes_on_from_its_commit(stored, catalog):
    stored.create("id long, k string")
    stored.append(numbers(0, 1))
    arrow = pa.schema([pa.field("id", pa.int64()), pa.field("k", pa.string())])
    stale = catalog().load_table("ns.t")
    stored.append(numbers(1, 2))
    stale.append(pa.Table.from_pylist(expected([9]), schema=arrow))  # tries again on the newest
    R.assert_same(stored.rows(), expected([0, 1, 9]), "both")
    stored("orphans", "--older-than", "1ms", "--force").ok()
    R.assert_same(stored.rows(), expected([0, 1, 9]), "after the files of lost tries went")

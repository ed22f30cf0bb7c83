# SPDX-License-Identifier: Apache-2.0
"""Tables that the program writes, read by PyIceberg (through SqlCatalog on the program's database, and by the metadata
document alone) and by DuckDB's iceberg extension; its counts and bounds held to the files; PyIceberg's commits on top."""
import datetime as dt
import sqlite3

import pyarrow.parquet as pq
import pytest
from pyiceberg.expressions import EqualTo, GreaterThan, IsNaN, IsNull, NotNull
from pyiceberg.types import DoubleType

from lib import rows as R
from lib.lake import plain
from peers import written as W
from peers.duck import duck_rows
from peers.facts import check_metrics, entries, in_file, internal
from test_pyiceberg_writes import KEYED
from test_pyiceberg_writes import arrow as arrow_rows

VERSIONS = [1, 2, 3]


def create(lake, schema, *args, version=2, name="ns.t"):
    lake.knut("table", "create", *lake.locator, "--table", name, "--schema", schema, "--format-version", version,
              *args).ok()
    return lake.table(name)


def append(shared, *queries):
    for query in queries:
        shared.knut("append", "--sql", query).ok()
    return shared


def readers_agree(shared, *queries, rows=None):
    """Everyone reads the rows that the queries give (or these rows), and the manifests tell the truth."""
    expected = W.rows_of(*queries) if rows is None else rows
    R.assert_same(shared.rows(), expected, "the program")
    ice = shared.ice
    R.assert_same(R.of_arrow(ice.scan().to_arrow()), expected, "PyIceberg, by the catalog")
    R.assert_same(R.of_arrow(shared.static.scan().to_arrow()), expected, "PyIceberg, by the document")
    R.assert_same(duck_rows(ice.metadata_location), expected, "DuckDB's extension")
    for entry in entries(ice):
        check_metrics(ice, entry.data_file)
    return shared


# ---- rows ----


@pytest.mark.parametrize("version", VERSIONS)
def test_every_type_with_its_extremes_is_read_by_others(lake, version):
    shared = append(create(lake, W.TYPES, version=version), W.EXTREMES)
    readers_agree(shared, W.EXTREMES)
    append(shared, W.spread(0, 50), W.NO_VALUES)
    readers_agree(shared, W.EXTREMES, W.spread(0, 50), W.NO_VALUES)


@pytest.mark.parametrize("codec", ["zstd", "snappy", "gzip", "lz4", "uncompressed"])
def test_fixed_bytes_are_read_by_others(lake, codec):
    shared = create(lake, W.FIXED, "--property", f"write.parquet.compression-codec={codec}")
    append(shared, W.fixed_rows(0, 400))
    readers_agree(shared, W.fixed_rows(0, 400))
    shared.knut("delete", "--where", "id < 100").ok()
    readers_agree(append(shared, W.fixed_rows(0, 10)), W.fixed_rows(100, 400), W.fixed_rows(0, 10))
    for file in files_of(shared):
        assert str(pq.ParquetFile(file).schema).count("fixed_len_byte_array") == 6
        pq.read_table(file)


def files_of(shared):
    return [plain(entry.data_file.file_path) for entry in entries(shared.ice)]


@pytest.mark.parametrize("partition", ["identity(fx)", "bucket(3, fx)", "bucket(4, f16)"])
def test_fixed_bytes_partition_a_table(lake, partition):
    shared = append(create(lake, W.FIXED, "--partition", partition), W.fixed_rows(0, 60))
    readers_agree(shared, W.fixed_rows(0, 60))
    for entry in entries(shared.ice):
        partition_is_of_its_rows(shared.ice, entry.data_file)


def test_a_value_of_another_length_is_refused(lake):
    shared = create(lake, "id long, fx fixed[4]")
    for value in "'abc'::BLOB", "'abcde'::BLOB", "'0x0102'", "''::BLOB":
        shared.knut("append", "--sql", f"SELECT 1 AS id, {value} AS fx").fails(2, r"column fx: a value does not fit fixed\[4\]")
    assert shared.rows() == [] == list(shared.ice.snapshots())


def test_nanoseconds_and_unknown_are_written_as_v3_wants_them(lake):
    shared = create(lake, """id long, tn timestamp_ns, tz timestamptz_ns, u unknown,
        st struct<a int, u unknown, tz timestamptz_ns>, l list<struct<tn timestamp_ns, u unknown>>""", version=3)
    append(shared, """SELECT 1 AS id, '2024-01-01 00:00:00.123456789'::TIMESTAMP_NS AS tn, '2024-01-01 00:00:00.123456789+01' AS tz,
        {'a': 1, 'tz': '1969-12-31 23:59:59.999999999Z'} AS st, [{'tn': '1969-12-31 23:59:59.999999999'}, NULL] AS l""",
           "SELECT 2 AS id, '2262-04-11 23:47:16.854775806'::TIMESTAMP_NS AS tn, TIMESTAMPTZ '2024-01-01 00:00:00+00' AS tz", "SELECT 3 AS id")
    first, second, third = sorted(shared.rows(), key=lambda row: row["id"])
    assert first == {"id": 1, "tn": "2024-01-01T00:00:00.123456789", "tz": "2023-12-31T23:00:00.123456789Z", "u": None,
                     "st": {"a": 1, "u": None, "tz": "1969-12-31T23:59:59.999999999Z"},
                     "l": [{"tn": "1969-12-31T23:59:59.999999999", "u": None}, None]}
    assert (second["tn"], second["tz"]) == ("2262-04-11T23:47:16.854775806", "2024-01-01T00:00Z")
    assert set(third.values()) == {3, None}
    for file in files_of(shared):
        schema = pq.ParquetFile(file).schema.to_arrow_schema()
        assert [str(schema.field(n).type) for n in ("tn", "tz")] == ["timestamp[ns]", "timestamp[ns, tz=UTC]"]
        assert "u" not in schema.names and [f.name for f in schema.field("st").type] == ["a", "tz"]
    expected = {1: (1704067200123456789, 1704063600123456789), 2: (9223372036854775806, 1704067200000000000), 3: (None, None)}
    read = shared.ice.scan(selected_fields=("id", "tn", "tz")).to_arrow()
    assert {i: (a, b) for i, a, b in zip(read["id"].to_pylist(), read["tn"].cast("int64").to_pylist(),
                                         read["tz"].cast("int64").to_pylist())} == expected
    for (value, _), file in zip(expected.values(), sorted((e.data_file for e in entries(shared.ice)), key=lambda f: f.lower_bounds[1])):
        told = [bounds.get(2) for bounds in (file.lower_bounds, file.upper_bounds)]
        assert told == [value if value is None else value.to_bytes(8, "little", signed=True)] * 2
    shared.knut("append", "--sql", "SELECT 4 AS id, {'a': 1, 'u': 5, 'tz': NULL} AS st").fails(2, "column st.u: a value does not fit unknown")


@pytest.mark.parametrize("version", VERSIONS)
def test_nested_types_are_read_by_others(lake, version):
    readers_agree(append(create(lake, W.NESTED, version=version), W.NESTED_ROWS), W.NESTED_ROWS)


def test_an_empty_table_is_read_by_others(lake):
    shared = create(lake, W.TYPES)
    assert R.of_arrow(shared.ice.scan().to_arrow()) == [] == shared.rows()
    append(shared, W.spread(0, 10)).knut("delete", "--where", "TRUE").ok()
    readers_agree(shared, rows=[])


PARTITIONINGS = [*(f"identity({c})" for c in ("id", "bo", "i", "f", "d", "d9", "d38", "da", "ti", "ts", "tz", "s", "u", "b")),
                 *(f"bucket(3, {c})" for c in ("id", "i", "d9", "d38", "da", "ti", "ts", "tz", "s", "u", "b")),
                 *(f"truncate(3, {c})" for c in ("id", "i", "d9", "d38", "s", "b")),
                 *(f"{t}({c})" for t in ("year", "month", "day") for c in ("da", "ts", "tz")), "hour(ts)", "hour(tz)",
                 "void(i)", "bucket(2, id), day(ts), s"]


def partition_is_of_its_rows(ice, file):
    """Each row of the file has the partition that PyIceberg's own transforms give it."""
    found, _ = in_file(file.file_path)
    for position, field in enumerate(ice.specs()[file.spec_id].fields):
        source = ice.schema().find_field(field.source_id)
        transform = field.transform.transform(source.field_type)
        told = file.partition[position]
        for value in found[field.source_id]:
            got = transform(internal(value))
            same = internal(got) == internal(told) or (got != got and told != told)
            assert same, f"{field.transform}({value!r}) is {got!r}, the manifest says {told!r}"


@pytest.mark.parametrize("partition", PARTITIONINGS)
def test_a_table_partitioned_by_any_transform_is_read_by_others(lake, partition):
    query = W.spread(0, 24)
    shared = readers_agree(append(create(lake, W.TYPES, "--partition", partition), query), query)
    ice = shared.ice
    files = [entry.data_file for entry in entries(ice)]
    assert len(files) > 1 or partition.startswith("void") or "(b)" in partition or " b)" in partition
    for file in files:
        partition_is_of_its_rows(ice, file)
    column = partition.split("(")[1].split(")")[0].split(",")[-1].strip()
    for row in W.rows_of(query)[:8]:
        if row[column] is None:
            shared.agree_on_filter(f"{column} IS NULL", IsNull(column))
        elif isinstance(ice.schema().find_type(column), DoubleType) and row[column] == "NaN":
            R.assert_same(R.of_arrow(ice.scan(row_filter=IsNaN(column)).to_arrow()),
                          [r for r in W.rows_of(query) if r[column] == "NaN"])


# ---- commits ----


@pytest.mark.parametrize("partition", ["", "day(day)", "bucket(3, id)"])
@pytest.mark.parametrize("version", VERSIONS)
def test_deletes_and_overwrites_are_read_by_others_at_every_snapshot(lake, version, partition):
    args = ("--partition", partition) if partition else ()
    shared = create(lake, W.KEYED, *args, version=version)
    append(shared, W.keyed(0, 40), W.keyed(40, 60), W.keyed(50, 55))
    shared.knut("delete", "--where", "id < 7").ok()
    shared.knut("delete", "--where", "day = '2024-01-02'").ok()
    shared.knut("overwrite", "--where", "id >= 20 AND id < 30", "--sql", W.keyed(20, 33, "new")).ok()
    shared.knut("overwrite", "--where", "id = 1000", "--sql", W.keyed(70, 71)).ok()
    shared.knut("delete", "--where", "name LIKE 'new%' AND amount > 14").ok()
    shared.agree(8).agree_on_history()
    ice = shared.ice
    for snapshot in ice.snapshots():
        R.assert_same(duck_rows(ice.metadata_location, snapshot.snapshot_id),
                      shared.rows("--snapshot", snapshot.snapshot_id), "DuckDB's extension")
    readers_agree(shared, rows=shared.rows())
    assert [s.sequence_number for s in ice.snapshots()] == (list(range(1, 9)) if version > 1 else [0] * 8)


def test_summaries_count_what_the_files_hold(lake):
    shared = append(create(lake, W.KEYED, "--partition", "day"), W.keyed(0, 40), W.keyed(40, 60))
    shared.knut("delete", "--where", "id < 7").ok()
    shared.knut("overwrite", "--where", "id = 20", "--sql", W.keyed(20, 22)).ok()
    ice = shared.ice
    for snapshot in ice.snapshots():
        files = [f for m in snapshot.manifests(ice.io) for f in m.fetch_manifest_entry(ice.io, discard_deleted=True)]
        told = snapshot.summary.additional_properties
        assert int(told["total-records"]) == sum(f.data_file.record_count for f in files)
        assert int(told["total-data-files"]) == len(files)
        assert int(told["total-files-size"]) == sum(f.data_file.file_size_in_bytes for f in files)
        assert int(told.get("total-delete-files", 0)) == 0
        added = [f for f in files if f.snapshot_id == snapshot.snapshot_id]
        assert int(told.get("added-records", 0)) == sum(f.data_file.record_count for f in added)
        assert int(told.get("added-data-files", 0)) == len(added)
    assert [s.summary.operation.value for s in ice.snapshots()] == ["append", "append", "overwrite", "overwrite"]


def test_a_delete_of_whole_files_is_a_delete(lake):
    shared = append(create(lake, W.KEYED, "--partition", "day"), W.keyed(0, 40))
    shared.knut("delete", "--where", "day = '2024-01-03'").ok()
    snapshot = shared.ice.current_snapshot()
    assert snapshot.summary.operation.value == "delete"
    assert int(snapshot.summary.additional_properties["deleted-data-files"]) == 1
    shared.agree(2)


def test_branches_are_read_by_others(lake):
    shared = append(create(lake, W.KEYED), W.keyed(0, 5))
    with shared.ice.manage_snapshots() as refs:
        refs.create_branch(shared.ice.current_snapshot().snapshot_id, "audit")
    shared.knut("append", "--branch", "audit", "--sql", W.keyed(5, 9)).ok()
    shared.knut("delete", "--branch", "audit", "--where", "id = 2").ok()
    shared.agree(2).agree_on_history()
    assert len(shared.rows()) == 5
    R.assert_same(R.of_arrow(shared.ice.scan().use_ref("audit").to_arrow()),
                  [r for r in W.rows_of(W.keyed(0, 9)) if r["id"] != 2])


# ---- manifests ----


def test_inspection_shows_counts_and_bounds(lake):
    """PyIceberg's inspect tables, which read the manifests in their own way."""
    shared = append(create(lake, W.KEYED, "--partition", "day(day)"), W.keyed(0, 40), W.keyed(40, 45))
    ice = shared.ice
    files = ice.inspect.files().to_pylist()
    assert sum(f["record_count"] for f in files) == 45
    for file in files:
        metrics = file["readable_metrics"]
        rows = pq.read_table(plain(file["file_path"]), partitioning=None).to_pylist()
        for column in ("id", "name", "amount", "day"):
            values = [r[column] for r in rows]
            assert metrics[column]["lower_bound"] == min(values) and metrics[column]["upper_bound"] == max(values)
            assert metrics[column]["value_count"] == len(values) and metrics[column]["null_value_count"] == 0
            assert metrics[column]["column_size"] > 0
        assert metrics["amount"]["nan_value_count"] == 0
    parts = ice.inspect.partitions().to_pylist()
    assert sorted((p["record_count"], p["file_count"]) for p in parts) == [(9, 2)] * 5
    manifests = ice.inspect.manifests().to_pylist()
    assert [m["added_data_files_count"] for m in manifests] == [5, 5]
    for manifest in manifests:
        (summary,) = manifest["partition_summaries"]
        assert (summary["lower_bound"], summary["upper_bound"]) == ("2024-01-01", "2024-01-05")
        assert summary["contains_null"] is False
    assert ice.inspect.refs().to_pylist()[0]["name"] == "main"
    assert len(ice.inspect.metadata_log_entries()) == 3
    assert ice.inspect.snapshots().num_rows == ice.inspect.history().num_rows == 2


def test_bounds_prune_files_for_others(lake):
    """PyIceberg plans only the files that can have the rows, by our bounds alone; so do we."""
    shared = create(lake, W.TYPES)
    for n in range(5):
        append(shared, W.spread(100 * n, 100 * n + 50))
    ice = shared.ice
    def planned(expression):
        return len(list(ice.scan(row_filter=expression).plan_files()))
    assert planned("id >= 0") == 5
    for text, files in [("id = 120", 1), ("id > 449", 0), ("id < 100", 1), ("i > 1000", 2), ("da < '1970-06-01'", 1),
                        ("ts < '1970-01-10T00:00:00'", 1), ("tz > '1970-04-01T00:00:00+00:00'", 2),
                        ("s > 'zz'", 5), ("s > 'zég'", 5), ("d9 > 470", 1), ("d38 = 300", 1), ("d = 7", 0)]:
        ours = shared.knut("scan", "--plan", "--where", text).ok().rows
        assert (text, planned(text)) == (text, files)
        assert (text, len(ours)) == (text, files)
        shared.agree_on_filter(text)
    assert planned(IsNaN("d")) == 5 and planned(IsNull("id")) == 0
    append(shared, W.NO_VALUES)
    ice = shared.ice
    assert planned(NotNull("s")) == 5 and planned(IsNull("s")) == 6 and planned(GreaterThan("ts", "0001-01-02T00:00:00")) == 5


def test_metrics_modes_are_obeyed(lake):
    properties = {"write.metadata.metrics.default": "counts", "write.metadata.metrics.column.a": "full",
                  "write.metadata.metrics.column.b": "truncate(3)", "write.metadata.metrics.column.c": "none"}
    shared = create(lake, "a string, b string, c string, d long",
                    *(w for k, v in properties.items() for w in ("--property", f"{k}={v}")))
    append(shared, "SELECT repeat('é', 30) AS a, repeat('z', 30) AS b, 'c' AS c, 4 AS d")
    ice = shared.ice
    (entry,) = entries(ice)
    file = entry.data_file
    at = {k: ice.schema().find_field(k).field_id for k in "abcd"}
    assert file.lower_bounds == {at["a"]: ("é" * 30).encode(), at["b"]: b"zzz"}
    assert file.upper_bounds == {at["a"]: ("é" * 30).encode(), at["b"]: b"zz{"}
    assert set(file.value_counts) == {at[k] for k in "abd"}


def test_text_bounds_are_cut_at_characters_not_bytes(lake):
    shared = append(create(lake, "s string, b binary"),
                    "SELECT repeat('é', 20) AS s, repeat('\\xFF', 20)::BLOB AS b "
                    "UNION ALL SELECT 'zzzzzzzzzzzzzzz' || chr(1114111) || 'x', '\\x01'::BLOB")
    ice = shared.ice
    (entry,) = entries(ice)
    check_metrics(ice, entry.data_file)
    file = entry.data_file
    assert (file.lower_bounds[1].decode(), file.upper_bounds[1].decode()) == \
        ("z" * 15 + chr(0x10FFFF), "é" * 15 + "ê")
    assert file.lower_bounds[2] == b"\1" and 2 not in file.upper_bounds  # nothing above 0xFF...
    for text in ("s = 'x'", f"s = '{'é' * 20}'"):
        shared.agree_on_filter(text)


# ---- properties ----


@pytest.mark.parametrize("codec,in_parquet", [("zstd", "ZSTD"), ("snappy", "SNAPPY"), ("gzip", "GZIP"),
                                              ("uncompressed", "UNCOMPRESSED"), ("lz4", "LZ4"), ("brotli", "BROTLI")])
def test_every_codec_is_read_by_others(lake, codec, in_parquet):
    shared = create(lake, W.TYPES, "--property", f"write.parquet.compression-codec={codec}")
    query = W.spread(0, 200)
    readers_agree(append(shared, query), query)
    (entry,) = entries(shared.ice)
    chunk = pq.ParquetFile(plain(entry.data_file.file_path)).metadata.row_group(0).column(0)
    assert chunk.compression == in_parquet or (codec == "lz4" and chunk.compression.startswith("LZ4"))


@pytest.mark.parametrize("codec", ["gzip", "zstd", "uncompressed"])
def test_every_codec_of_metadata_is_read_by_others(lake, codec):
    shared = create(lake, W.KEYED, "--property", f"write.avro.compression-codec={codec}",
                    "--property", f"write.metadata.compression-codec={'gzip' if codec == 'gzip' else 'none'}")
    append(shared, W.keyed(0, 5), W.keyed(5, 9)).knut("delete", "--where", "id = 3").ok()
    assert shared.ice.metadata_location.endswith(".gz.metadata.json") == (codec == "gzip")
    shared.agree(2).agree_on_history()


def test_a_sort_order_is_kept_and_recorded(lake):
    shared = create(lake, W.KEYED, "--sort", "day desc nulls last, name")
    query = W.keyed(0, 300)
    readers_agree(append(shared, query), query)
    ice = shared.ice
    assert [(f.source_id, str(f.direction.value), f.null_order.value) for f in ice.sort_order().fields] == \
        [(4, "desc", "nulls-last"), (2, "asc", "nulls-first")]
    for entry in entries(ice):
        assert entry.data_file.sort_order_id == ice.sort_order().order_id
        rows = pq.read_table(plain(entry.data_file.file_path), partitioning=None).to_pylist()
        order = [(-r["day"].toordinal(), r["name"]) for r in rows]
        assert order == sorted(order)


def test_a_small_target_size_gives_several_files(lake):
    shared = create(lake, W.KEYED, "--property", "write.target-file-size-bytes=4194304")
    query = "SELECT n AS id, md5(n::VARCHAR) AS name, random() AS amount, NULL::DATE AS day FROM range(500000) t(n)"
    append(shared, query)
    ice = shared.ice
    files = [e.data_file for e in entries(ice)]
    assert len(files) > 2
    assert ice.scan().count() == 500000 == shared.knut("scan", "--count").ok().row["count"]
    assert ice.scan(row_filter=EqualTo("id", 31234)).to_arrow()["id"].to_pylist() == [31234]


def test_identifier_fields_and_the_catalog_rows_are_as_others_write_them(lake):
    shared = create(lake, W.KEYED, "--identifier", "id")
    ice = append(shared, W.keyed(0, 5)).ice
    assert ice.schema().identifier_field_names() == {"id"} and ice.schema().find_field("id").required
    assert lake.catalog.list_namespaces() == [("ns",)] and lake.catalog.list_tables("ns") == [("ns", "t")]
    with sqlite3.connect(lake.db) as db:
        (row,) = db.execute("SELECT catalog_name, table_namespace, table_name, iceberg_type, metadata_location, "
                            "previous_metadata_location FROM iceberg_tables").fetchall()
    assert row[:4] == ("knut", "ns", "t", "TABLE") and row[4] == ice.metadata_location
    assert row[5] == ice.metadata.metadata_log[-1].metadata_file


# ---- both write ----


def test_pyiceberg_continues_a_table_and_is_continued(lake):
    shared = append(create(lake, W.KEYED, "--identifier", "id", "--partition", "bucket(3, id)"), W.keyed(0, 30)).agree()
    def row(n, name):
        return {"id": n, "name": name, "amount": 1.5, "day": dt.date(2024, 1, 1)}
    ice = shared.ice
    ice.append(arrow_rows(ice, [row(n, "ice") for n in range(100, 110)]))
    shared.agree()
    shared.knut("delete", "--where", "id IN (3, 4, 105)").ok()
    shared.agree()
    ice = shared.ice
    ice.overwrite(arrow_rows(ice, [row(7, "new")]), overwrite_filter="id >= 7 and id < 9")
    shared.agree(2)
    done = shared.ice.upsert(arrow_rows(ice, [row(7, "again"), row(200, "fresh")]))
    assert (done.rows_updated, done.rows_inserted) == (1, 1)
    shared.agree(2)
    shared.knut("overwrite", "--where", "name = 'again'", "--sql", W.keyed(7, 8, "knut")).ok()
    shared.agree()
    with shared.ice.update_schema() as update:
        update.add_column("extra", DoubleType()).rename_column("name", "nick")
    with shared.ice.update_spec() as update:
        update.remove_field("id_bucket")
        update.add_identity("day")
    append(shared, "SELECT 300 AS id, 'k' AS nick, 1.5 AS amount, DATE '2024-05-05' AS day, 2.5 AS extra").agree()
    shared.knut("delete", "--where", "id < 20").ok()
    shared.agree()
    shared.ice.delete("extra = 2.5")
    shared.agree().agree_on_history()
    shared.ice.maintenance.expire_snapshots().by_ids([s.snapshot_id for s in shared.ice.snapshots()][:3]).commit()
    append(shared, "SELECT 301 AS id").agree().agree_on_history()
    for entry in entries(shared.ice):
        check_metrics(shared.ice, entry.data_file) if entry.data_file.spec_id == shared.ice.spec().spec_id else None


@pytest.mark.parametrize("version", [1, 2])
def test_a_table_made_by_pyiceberg_is_written_to(lake, version):
    """(Version 3 PyIceberg 0.12 reads, but does not make.)"""
    shared = append(lake.create(KEYED, version=version), W.keyed(0, 9))
    shared.knut("delete", "--where", "id = 3").ok()
    shared.agree(2).agree_on_history()
    assert shared.ice.format_version == version and len(shared.rows()) == 8


def test_a_table_of_version_1_is_upgraded_and_written_on(lake):
    shared = append(create(lake, W.KEYED, "--partition", "day(day)", version=1), W.keyed(0, 20), W.keyed(20, 30))
    shared.knut("delete", "--where", "id < 4").ok()
    with shared.ice.transaction() as change:
        change.upgrade_table_version(format_version=2)
    append(shared, W.keyed(30, 40)).knut("delete", "--where", "id IN (5, 22, 35)").ok()
    R.assert_same(shared.rows(), [row for row in W.rows_of(W.keyed(4, 40)) if row["id"] not in (5, 22, 35)])
    assert [s.sequence_number for s in shared.ice.snapshots()] == [0, 0, 0, 1, 2]
    shared.agree(5).agree_on_history()  # (DuckDB's extension wants sequence numbers in old manifests)


def test_a_commit_on_a_stale_table_loses_nothing(lake):
    """Each compares the pointer in the catalog and swaps it; who comes late builds on what is there."""
    shared = append(create(lake, W.KEYED), W.keyed(0, 5))
    stale, staler = shared.ice, shared.ice
    append(shared, W.keyed(5, 9))
    stale.append(arrow_rows(stale, [{"id": 100, "name": "late"}]))
    with staler.update_schema() as update:
        update.add_column("later", DoubleType())
    shared.agree(3).agree_on_history()
    assert len(shared.rows()) == 10


def test_a_merge_of_many_manifests_keeps_every_file(lake):
    shared = create(lake, W.KEYED, "--property", "commit.manifest.min-count-to-merge=3")
    append(shared, *(W.keyed(n, n + 1) for n in range(8)))
    assert len(shared.ice.current_snapshot().manifests(shared.ice.io)) < 8
    shared.knut("delete", "--where", "id = 3").ok()
    shared.agree(3).agree_on_history()
    readers_agree(shared, rows=[r for r in W.rows_of(W.keyed(0, 8)) if r["id"] != 3])

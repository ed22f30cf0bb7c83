# SPDX-License-Identifier: Apache-2.0
"""Where files go, how large they are and how their rows lie, by the properties of the table."""
import re
import struct

import pyarrow.parquet as pq
import pytest

from lib import avro
from lib import rows as R
from lib.lake import plain

ROWS = "SELECT range::BIGINT AS id, (range % 3)::INTEGER AS part, md5(range::VARCHAR) AS name FROM range({})"


def created(table, *properties, partition="part", more=()):
    words = [word for p in properties for word in ("--property", p)]
    table.create("id long, part int, name string", *(("--partition", partition) if partition else ()), *more, *words)
    return table


def murmur(text):
    """murmur3_x86_32 with seed 0, apart from the program's."""
    data, h = text.encode(), 0
    rotl = lambda x, r: (x << r | x >> (32 - r)) & 0xFFFFFFFF  # noqa: E731
    end = len(data) // 4 * 4
    for (k,) in struct.iter_unpack("<I", data[:end]):
        h = rotl(h ^ rotl(k * 0xCC9E2D51 & 0xFFFFFFFF, 15) * 0x1B873593 & 0xFFFFFFFF, 13) * 5 + 0xE6546B64 & 0xFFFFFFFF
    if rest := data[end:]:
        h ^= rotl(int.from_bytes(rest, "little") * 0xCC9E2D51 & 0xFFFFFFFF, 15) * 0x1B873593 & 0xFFFFFFFF
    h ^= len(data)
    h = (h ^ h >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    h = (h ^ h >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    return h ^ h >> 16


def folders(name):
    """ObjectStoreLocationProvider.computeHash."""
    bits = f"{murmur(name) & 0xFFFFF:020b}"
    return "/".join((bits[:4], bits[4:8], bits[8:12], bits[12:]))


def test_the_hash_is_murmur3():
    assert (murmur("iceberg"), murmur("")) == (1210000089, 0)  # specification, appendix B


def locations(table):
    return [str(path) for path in table.files()]


def test_object_storage_spreads_files_over_hashed_folders(table):
    shop = created(table, "write.object-storage.enabled=true")
    shop.append(ROWS.format(30))
    base = f"{shop.warehouse}/ns/t/data/"
    for path in locations(shop):
        found = re.fullmatch(rf"{base}([01]{{4}}/[01]{{4}}/[01]{{4}}/[01]{{8}})/(part=\d/[^/]+-0.parquet)", path)
        assert found and folders(found[2]) == found[1]
    shop.delete("id < 10")
    assert len(shop.rows()) == 20


def test_object_storage_without_partitions_in_paths(table):
    shop = created(table, "write.object-storage.enabled=true", "write.object-storage.partitioned-paths=false")
    shop.append(ROWS.format(30))
    for path in locations(shop):
        found = re.fullmatch(rf"{shop.warehouse}/ns/t/data/([01]{{4}}/[01]{{4}}/[01]{{4}})/([01]{{8}})-([^/]+.parquet)", path)
        assert found and folders(found[3]) == f"{found[1]}/{found[2]}"
    assert len(locations(shop)) == 3 and len(shop.rows()) == 30


@pytest.mark.parametrize("key", ["write.data.path", "write.object-storage.path", "write.folder-storage.path"])
def test_object_storage_elsewhere_names_the_table(table, tmp_path, key):
    shop = created(table, "write.object-storage.enabled=true", f"{key}=file://{tmp_path}/pool/")
    shop.append(ROWS.format(30))
    for path in locations(shop):
        found = re.fullmatch(rf"{tmp_path}/pool/([01/]+)/ns/t/(part=\d/[^/]+.parquet)", path)
        assert found and folders(found[2]) == found[1]
    assert len(shop.rows()) == 30


def test_data_goes_where_the_property_says(table, tmp_path):
    shop = created(table, f"write.data.path={tmp_path}/elsewhere", f"write.metadata.path={tmp_path}/meta")
    shop.append(ROWS.format(30))
    assert all(re.fullmatch(rf"{tmp_path}/elsewhere/part=\d/[^/]+.parquet", path) for path in locations(shop))
    assert shop.pointer.parent == tmp_path / "meta" == shop.manifest_list().parent
    shop.delete("id < 10")
    assert len(shop.rows()) == 20


def test_files_are_about_as_large_as_asked(table):
    shop = created(table, "write.target-file-size-bytes=500000", partition=None)
    shop.append(ROWS.format(200_000))  # some 10 MB
    sizes = sorted(path.stat().st_size for path in shop.files())
    assert len(sizes) > 5 and sizes[-1] < 800_000 and sizes[1] > 250_000, sizes
    assert shop("scan", "--count", "--output", "json").ok().row == {"count": 200_000}


def test_row_groups_are_no_larger_than_asked(table):
    shop = created(table, "write.parquet.row-group-size-bytes=400000", partition=None)
    shop.append(ROWS.format(50_000))
    (path,) = shop.files()
    footer = pq.ParquetFile(path).metadata
    assert footer.num_row_groups > 5
    assert all(footer.row_group(i).total_byte_size < 600_000 for i in range(footer.num_row_groups))


def entries(table):
    _, manifests = avro.read(table.manifest_list())
    return [entry for m in manifests for entry in avro.read(plain(m["manifest_path"]))[1]]


def test_split_offsets_are_those_of_the_row_groups(table):
    shop = created(table, "write.parquet.row-group-size-bytes=400000", partition=None)
    shop.append(ROWS.format(30_000))
    (entry,) = entries(shop)
    file = entry["data_file"]
    footer = pq.ParquetFile(plain(file["file_path"])).metadata
    firsts = [footer.row_group(i).column(0) for i in range(footer.num_row_groups)]
    assert file["split_offsets"] == [min(c.data_page_offset, c.dictionary_page_offset or c.data_page_offset) for c in firsts]
    assert len(firsts) > 2 and file["split_offsets"][0] == 4


@pytest.mark.parametrize("partition", [None, "part", "bucket(4, id)"])
def test_rows_lie_in_the_write_order_within_files(table, partition):
    shop = created(table, "write.target-file-size-bytes=300000", partition=partition, more=("--sort", "part desc, name"))
    shop.append(ROWS.format(40_000))
    for entry in entries(shop):
        assert entry["data_file"]["sort_order_id"] == 1
        read = pq.read_table(plain(entry["data_file"]["file_path"])).to_pylist()
        assert read == sorted(read, key=lambda row: (-row["part"], row["name"]))
    shop.overwrite("id < 100", ROWS.format(50))
    assert {entry["data_file"]["sort_order_id"] for entry in entries(shop)} == {1}
    R.assert_same([{"n": len(shop.rows())}], [{"n": 39_950}])

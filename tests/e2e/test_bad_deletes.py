# SPDX-License-Identifier: Apache-2.0
"""Delete files that are damaged (lib/bad.py)."""
import shutil
import subprocess

import pytest

from lib import avro, damage
from lib import rows as R
from lib.bad import DATA_DAMAGE, name_of
from lib.damage import damaged
from lib.lake import Delivery, Table, plain


@pytest.fixture(scope="session")
def golden_folder(shared):
    """The golden tables that the cases of delete files are made of."""
    from lib import once
    archive = damage.Path(__file__).resolve().parent.parent / "golden/tables.tar.zst"
    def unpack(folder):
        subprocess.run(["tar", "--zstd", "-xf", archive, "-C", folder, "iceberg-golden/wh/g/mor_v2",
                        "iceberg-golden/wh/j/eqdel_v2", "iceberg-golden/wh/g/mor_v3"], check=True)
    return once.once(shared, "golden-deletes", unpack) / "iceberg-golden/wh"


def moved(golden_folder, tmp_path, name):
    """A golden table in a place where it can be broken: its newest document."""
    staged = tmp_path / "staged"
    shutil.copytree(golden_folder / name, staged)
    # The metadata names /tmp/iceberg-golden, wherever the files were unpacked.
    target = damage.move(f"/tmp/iceberg-golden/wh/{name}", tmp_path / "moved", files=staged)
    return damage.newest_document(target)


@pytest.mark.parametrize("how", DATA_DAMAGE)
@pytest.mark.parametrize("name,content", [("g/mor_v2", "position-deletes"), ("j/eqdel_v2", "equality-deletes"),
                                          ("j/eqdel_v2", "position-deletes"), ("g/mor_v3", "deletion-vector")])
def test_a_damaged_delete_file(knut, golden_folder, tmp_path, name, content, how):
    document = moved(golden_folder, tmp_path, name)
    place = ("--metadata", document)
    expected = R.multiset(knut.json("table", "scan", *place).ok().rows)
    listed = knut.json("table", "files", *place).ok().rows
    path = plain(next(f["file"] for f in listed if f["content"] == content))
    copy = Delivery(Table(knut, tmp_path), tmp_path, locator=place)
    with damaged(path, DATA_DAMAGE[how]):
        done = knut.json("table", "scan", *place)
        if content == "deletion-vector" and done.rc == 0:
            # A vector is read at its offset: bytes outside it do not matter.
            assert R.multiset(done.rows) == expected
            return
        done.fails(1, name_of(path))
        copy.run().fails(1, name_of(path))
        assert not copy.file.exists() or copy.rows() == []
    copy.deliver()
    assert R.multiset(copy.rows()) == expected


# ---- deletion vectors that lie ----


@pytest.fixture
def marked(table):
    """Version 3: a file of 100 rows with a vector of 2, a file of 10 without."""
    table.create("id long", "--format-version", "3", "--property", "write.delete.mode=merge-on-read")
    table.append("SELECT range::BIGINT AS id FROM range(100)")
    table.append("SELECT range::BIGINT AS id FROM range(1000, 1010)")
    table.delete("id IN (5, 50)")
    assert len(table.rows()) == 108 and len(table.files("deletion-vector")) == 1
    return table


def change_vectors(table, change):
    """Alters the records of the manifest of deletes: change(records)."""
    meta, lists = avro.read(table.manifest_list())
    (line,) = [line for line in lists if line["content"] == 1]
    line["manifest_length"] = avro.rewrite(plain(line["manifest_path"]), change)
    avro.write(table.manifest_list(), meta, lists)


def with_value(key, value):
    return lambda records: records[0]["data_file"].update({key: value})


@pytest.mark.parametrize("change,pattern", [
    (with_value("record_count", 3), "2 rows|2 positions|cardinality|3"),
    (with_value("record_count", -1), "record_count|-1"),
    (with_value("content_offset", 0), ""),
    (with_value("content_offset", 5), ""),
    (with_value("content_offset", 10**9), ""),
    (with_value("content_offset", -5), ""),
    (with_value("content_offset", 2**63 - 1), ""),
    (with_value("content_size_in_bytes", 1), ""),
    (with_value("content_size_in_bytes", -1), ""),
    (with_value("content_size_in_bytes", 10**9), ""),
    (with_value("content_size_in_bytes", 2**62), ""),
    (with_value("referenced_data_file", None), "lacks its data file"),
    (with_value("content_offset", None), ""),
    (lambda records: records.append(records[0]), "two|second|more than one|twice"),
], ids=["cardinality", "negative-count", "offset-0", "offset-5", "offset-beyond", "offset-negative", "offset-huge", "size-1",
        "size-negative", "size-beyond", "size-huge", "no-file", "no-offset", "two-vectors"])
def test_a_vector_that_is_not_what_the_manifest_says(marked, delivery, change, pattern):
    change_vectors(marked, change)
    marked("scan").fails((1, 3), pattern)
    delivery.run().fails((1, 3), pattern)
    assert not delivery.file.exists() or len(delivery.rows()) in (0, 100, 110)  # whole windows before it


def test_a_vector_of_another_file_has_positions_beyond_it(marked):
    """Position 50 of a file of ten rows."""
    other = next(path for path in marked.files() if path not in {vector_file(marked)})
    change_vectors(marked, with_value("referenced_data_file", f"file://{other}"))
    marked("scan").fails(1, name_of(other))


def vector_file(table):
    _, lists = avro.read(table.manifest_list())
    (line,) = [line for line in lists if line["content"] == 1]
    (record,) = avro.read(plain(line["manifest_path"]))[1]
    return plain(record["data_file"]["referenced_data_file"])


def test_every_flipped_byte_of_a_vector_is_found(marked):
    """Length, magic, bitmap and checksum: none of them can change unseen."""
    (path,) = marked.files("deletion-vector")
    _, lists = avro.read(marked.manifest_list())
    (line,) = [line for line in lists if line["content"] == 1]
    (record,) = avro.read(plain(line["manifest_path"]))[1]
    start, size = (record["data_file"][key] for key in ("content_offset", "content_size_in_bytes"))
    for at in range(start, start + size):
        with damaged(path, damage.flipped(at)):
            marked("scan").fails(1, name_of(path))
    assert len(marked.rows()) == 108

# SPDX-License-Identifier: Apache-2.0
"""Manifests and lists that are damaged or lie (lib/bad.py)."""
import shutil

import pytest

from lib import rows as R
from lib.bad import DAMAGE, ROWS, SCHEMA, change_last_added, check_clean, check_failure, check_mended, manifests, name_of
from lib.damage import damaged, flipped
from lib.lake import plain


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_manifest_list(half, how):
    path = half.source.manifest_list()
    with damaged(path, DAMAGE[how]):
        half.source("scan", "--count").fails(1, name_of(path))
        check_failure(half, (1, 3) if how == "missing" else 1, name_of(path))
    check_mended(half)


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_manifest(half, how):
    for path in manifests(half.source):
        with damaged(path, DAMAGE[how]):
            half.source("scan", "--count").fails(1, name_of(path))
            check_failure(half, (1, 3) if how == "missing" else 1, name_of(path))
    check_mended(half)


def test_a_damaged_block_of_a_manifest_is_found_wherever_it_is(half):
    """Flipped bytes: an error, or (bounds, statistics) the same rows. Never a crash, never others."""
    table = half.source
    rows = R.multiset(table.rows())
    for path in [*manifests(table), table.manifest_list()]:
        size = path.stat().st_size
        for at in range(3, size, max(1, size // 40)):
            with damaged(path, flipped(at)):
                done = table("scan", "--output", "json")
                if done.rc == 0:
                    assert R.multiset(done.rows) == rows, f"{path.name}, byte {at}"
                else:
                    done.fails((1, 3))
    check_mended(half)


def with_path(make):
    def change(file, _record):
        file["file_path"] = make(plain(file["file_path"]))
    return change


@pytest.mark.parametrize("make,rc,pattern", [
    (lambda p: f"{p}.gone", 1, r"\.gone"),
    (lambda p: "/etc/passwd", 3, "outside.*--allow-path"),
    (lambda p: "file:///etc/passwd", 3, "outside.*--allow-path"),
    (lambda p: f"{p.parent}/../../../../../../../../etc/passwd", 3, r"outside|not a plain path"),
    (lambda p: f"{p.parent}/./{p.name}/../../../../../etc/passwd", 3, r"outside|not a plain path"),
    (lambda p: f"{p.parent.parent}-other/{p.name}", 3, "outside"),
    (lambda p: f"s3://bucket/{p.name}", (1, 3), "s3"),
    (lambda p: f"http://localhost:1/{p.name}", (1, 3), "http"),
    (lambda p: "", (1, 3), r"manifest|path|location"),
    (lambda p: f"{p}'; DROP TABLE x; --", 1, "DROP TABLE"),
    (lambda p: f"{p.parent}/*.parquet", (1, 3), r"\*"),
    (lambda p: f"{p.parent}/%2e%2e/%2e%2e/x", (1, 3), r"outside|%2e|not a plain path|exist"),
], ids=["missing", "absolute", "uri", "dots", "more-dots", "sibling-prefix", "s3", "http", "empty", "quote", "glob", "escaped-dots"])
def test_a_manifest_that_names_a_file_elsewhere(table, delivery, make, rc, pattern):
    table.create(SCHEMA)
    table.append(ROWS.format(0, 10))
    change_last_added(table, with_path(make))
    table("scan").fails(rc, pattern)
    if rc == 3:  # rows are counted from manifests, but not those of others' files
        table("scan", "--count").fails(rc, pattern)
    delivery.run().fails(rc, pattern)
    assert not delivery.file.exists() or delivery.rows() == []
    assert delivery.cursor()[0] is None


def test_a_named_folder_is_allowed(table, tmp_path):
    table.create(SCHEMA)
    table.append(ROWS.format(0, 10))
    other = tmp_path / "other" / "data.parquet"
    other.parent.mkdir()
    shutil.move(table.files()[0], other)
    change_last_added(table, with_path(lambda p: str(other)))
    table("scan", "--count").fails(3, "--allow-path")
    assert len(table.rows("--allow-path", other.parent)) == 10


@pytest.mark.parametrize("key,value", [("record_count", 11), ("record_count", -1), ("record_count", 2**62),
                                       ("file_size_in_bytes", 1), ("content", 7)])
def test_a_manifest_with_wrong_numbers(half, key, value):
    rows = R.multiset(half.source.rows())
    change_last_added(half.source, lambda file, _record: file.update({key: value}))
    done = half.run()
    if done.rc == 0:
        assert key == "file_size_in_bytes" and R.multiset(half.rows()) == rows
    else:
        done.fails((1, 3))
    check_clean(half)


def test_a_manifest_of_another_table_format(half):
    change_last_added(half.source, lambda file, _record: file.update(file_format="CSV"))
    half.source("scan").fails(3, "CSV")
    half.run().fails(3, "CSV")

# SPDX-License-Identifier: Apache-2.0
"""Metadata documents that are damaged or no metadata, and histories that moved on (lib/bad.py)."""
import gzip

import pytest

from lib.bad import DAMAGE, ROWS, SCHEMA, check_failure, check_mended, name_of
from lib.damage import damaged


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_metadata_document(half, how):
    path = half.source.pointer
    check_failure(half, 1, name_of(path), around=damaged(path, DAMAGE[how]))
    check_mended(half)


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_packed_metadata_document(half, tmp_path, how):
    table = half.source
    packed = table.pointer.with_name("99999-11111111-2222-3333-4444-555555555555.gz.metadata.json")
    packed.write_bytes(gzip.compress(table.pointer.read_bytes()))
    table.point(packed)
    check_failure(half, 1, name_of(packed), around=damaged(packed, DAMAGE[how]))
    check_mended(half)


@pytest.mark.parametrize("change,pattern", [
    (lambda d: d.pop("location"), "location"),
    (lambda d: d.pop("format-version"), "format-version"),
    (lambda d: d.update({"format-version": 99}), "99"),
    (lambda d: d.update({"current-snapshot-id": 12345}), "12345|current-snapshot-id"),
    (lambda d: d.update({"current-schema-id": 77}), "77|current-schema-id"),
    (lambda d: d.update({"schemas": "none"}), "schemas"),
    (lambda d: d["schemas"][0]["fields"][0].update({"type": "quark"}), "quark"),
    (lambda d: d["schemas"][0]["fields"][0].update({"id": "one"}), "id"),
    (lambda d: d["schemas"][0]["fields"][1].update({"id": 1}), "1"),
    (lambda d: d["snapshots"][0].update({"snapshot-id": "x"}), "snapshot-id"),
    (lambda d: d["snapshots"][-1].update({"manifest-list": 5}), "manifest-list"),
    (lambda d: d["refs"]["main"].update({"snapshot-id": 5}), "main|5"),
], ids=["no-location", "no-version", "version", "snapshot", "schema", "schemas", "type", "id-text", "id-twice",
        "snapshot-id", "manifest-list", "ref"])
def test_metadata_that_is_json_but_no_metadata(half, change, pattern):
    table = half.source
    start = table.pointer
    table.commit(change)
    table("scan", "--count").fails((1, 3), name_of(table.pointer), pattern)
    check_failure(half, (1, 3), name_of(table.pointer), pattern)
    table.point(start)
    check_mended(half)


@pytest.mark.parametrize("members", [64, 1])
def test_a_packed_document_that_would_fill_the_memory(half, members):
    """Some hundred kilobytes that are 640 MiB: it ends at a limit."""
    table, start = half.source, half.source.pointer
    packed = start.with_name("99999-11111111-2222-3333-4444-555555555555.gz.metadata.json")
    packed.write_bytes(gzip.compress(b" " * (640 * 2**20 // members), compresslevel=1) * members)
    table.point(packed)
    check_failure(half, 1, name_of(packed), wrap=("prlimit", f"--as={3 * 2**30}"))
    table.point(start)
    check_mended(half)


# ---- histories that moved on ----


def expire_first(document):
    first = document["snapshots"].pop(0)
    document["snapshot-log"] = [e for e in document["snapshot-log"] if e["snapshot-id"] != first["snapshot-id"]]
    document.pop("metadata-log", None)


def test_a_cursor_whose_snapshot_has_expired(half):
    half.source.commit(expire_first)
    check_failure(half, 3, "expired", "reload")
    assert half.command("check").fails(3, "expired").out is not None
    half.command("reload").ok()
    check_mended(half)


def test_a_table_that_was_rolled_back_behind_the_cursor(half):
    table = half.source
    half.deliver()
    first = table.history()[0]["snapshot"]
    table.commit(lambda d: (d.update({"current-snapshot-id": first}),
                            d["refs"]["main"].update({"snapshot-id": first})))
    check_failure(half, 3, "rolled back|not an ancestor", "reload")
    half.command("reload").ok()
    check_mended(half)


def test_a_table_that_was_dropped_and_made_again(half):
    table = half.source
    table.commit(lambda d: d.update({"table-uuid": "11111111-2222-3333-4444-555555555555"}))
    check_failure(half, 3, "uuid|another table|made again|replaced", "reload")
    half.command("reload").ok()
    check_mended(half)


def test_a_rewrite_dearer_than_allowed(half):
    check_failure(half, 3, "max-rewrite-bytes", words=("run", "--once", "--max-rewrite-bytes", "1"))
    check_mended(half)


def test_windows_before_a_refused_one_arrive(table, delivery):
    table.create(SCHEMA)
    for start in 0, 10, 20:
        table.append(ROWS.format(start, start + 10))
        delivery.run("--max-windows", "1").ok() if start == 0 else None
    table.delete("id = 5")
    done = delivery.run("--max-rewrite-bytes", "1").fails(3, "max-rewrite-bytes")
    assert len(done.row["deliveries"][0]["windows"]) == 2
    assert delivery.cursor()[0] == table.history()[2]["snapshot"]
    assert len(delivery.rows()) == 30
    check_mended(delivery)

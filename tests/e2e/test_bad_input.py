# SPDX-License-Identifier: Apache-2.0
"""Bad input: one clear line (what, which file, what to do), an exit status, and nothing changed.

Each case has a delivery that has gone half-way, breaks something, runs, and checks that cursor and
destination are as they were and that nothing half-written lies about; then the cause is taken away,
and the delivery must come to the source's rows.
"""
import fcntl
import gzip
import os
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
from contextlib import contextmanager, nullcontext

import duckdb
import pytest

from lib import avro, damage
from lib import rows as R
from lib.damage import cut, damaged, filled, flipped, missing
from lib.lake import Delivery, Table, left_over, plain

SCHEMA = "id long required, name string, ts timestamp"
ROWS = "SELECT range::BIGINT AS id, 'name-' || range AS name, TIMESTAMP '2026-01-01' AS ts FROM range({}, {})"


@pytest.fixture
def half(table, delivery):
    """Snapshot 1 is delivered; snapshot 2, an overwrite, waits."""
    table.create(SCHEMA)
    table.append(ROWS.format(0, 500))
    delivery.deliver()
    table.overwrite("id < 50", ROWS.format(1000, 1400))
    return delivery


def check_failure(delivery, rc, *patterns, around=None, words=("run", "--once"), leftovers=True, **more):
    """The run fails as it should and changes nothing."""
    before = delivery.facts()
    with around or nullcontext():
        done = delivery.command(*words, **more).fails(rc, *patterns)
        for line in done.out.splitlines():
            assert '"status":"ok"' not in line
    assert delivery.facts() == before, str(done)
    if leftovers:
        check_clean(delivery)
    return done


def check_clean(delivery):
    scratch = delivery.source.knut.tmp
    assert list(scratch.iterdir()) == []
    assert left_over(delivery.folder) == []


def check_mended(delivery):
    """The way out works: the rest arrives, exactly."""
    delivery.deliver()
    R.assert_same(delivery.rows(), delivery.source.rows())
    check_clean(delivery)


def name_of(path):
    return re.escape(path.name)


# ---- damaged files of the table ----

DAMAGE = {"empty": cut(0), "cut-1": cut(1), "cut-4": cut(4), "cut-half": cut(0.5), "cut-last": cut(-1), "cut-tail": cut(-8),
          "noise": filled, "missing": missing}


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


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_manifest_list(half, how):
    path = half.source.manifest_list()
    with damaged(path, DAMAGE[how]):
        half.source("scan", "--count").fails(1, name_of(path))
        check_failure(half, (1, 3) if how == "missing" else 1, name_of(path))
    check_mended(half)


def manifests(table):
    """Those with live files: a scan reads no others."""
    _, records = avro.read(table.manifest_list())
    return [plain(record["manifest_path"]) for record in records
            if record["added_files_count"] + record["existing_files_count"]]


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


def footer_flipped(data):
    """The first byte of the footer, where its structure begins."""
    return flipped(len(data) - 8 - int.from_bytes(data[-8:-4], "little"))(data)


DATA_DAMAGE = {"empty": cut(0), "cut-4": cut(4), "cut-half": cut(0.5), "cut-last": cut(-1), "magic": flipped(-1),
               "footer-length": flipped(-5), "footer": footer_flipped, "noise": filled, "missing": missing}


@pytest.mark.parametrize("how", DATA_DAMAGE)
def test_a_damaged_data_file(half, how):
    path = half.source.files()[-1]
    with damaged(path, DATA_DAMAGE[how]):
        half.source("scan", "--count").fails(1, name_of(path))
        check_failure(half, (1, 3) if how == "missing" else 1, name_of(path))
    check_mended(half)


def test_flipped_bytes_of_a_data_file_are_an_error_or_harmless_to_the_count(table):
    """Parquet pages without checksums cannot tell a flipped value; rows never get lost or doubled."""
    table.create(SCHEMA)
    table.append(ROWS.format(0, 2000))
    path, = table.files()
    size = path.stat().st_size
    errors = 0
    for at in [*range(0, size, size // 60), *range(size - 60, size)]:
        with damaged(path, flipped(at)):
            done = table("scan", "--output", "json")
            if done.rc == 0:
                assert len(done.out.splitlines()) == 2000, f"byte {at}"
            else:
                done.fails((1, 3), name_of(path))
                errors += 1
    assert errors > 10


def test_a_data_file_with_fewer_rows_than_its_manifest_says(half):
    path = half.source.files()[-1]
    def shorter(data):
        with duckdb.connect() as db:
            small = path.with_suffix(".small")
            db.execute(f"COPY (FROM '{path}' LIMIT 3) TO '{small}' (FORMAT parquet, FIELD_IDS {{id: 1, name: 2, ts: 3}})")
            return small.read_bytes()
    with damaged(path, shorter):
        path.with_suffix(".small").unlink()
        check_failure(half, 1, name_of(path), "rows")
    check_mended(half)


# ---- delete files ----


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


# ---- manifests that lie ----


def change_last_added(table, change):
    """Alters the data file of the newest manifest that adds one."""
    for path in manifests(table):
        found = []
        def alter(records):
            for record in records:
                if record["status"] == 1:
                    change(record["data_file"], record)
                    found.append(record)
        before = path.read_bytes()
        size = avro.rewrite(path, alter)
        if found:
            meta, records = avro.read(table.manifest_list())
            for record in records:
                if plain(record["manifest_path"]) == path:
                    record["manifest_length"] = size
            avro.write(table.manifest_list(), meta, records)
            return
        path.write_bytes(before)
    raise AssertionError("no manifest adds a file")


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


# ---- destinations ----


def target_made(sql):
    def make(delivery):
        with duckdb.connect(str(delivery.file)) as db:
            db.execute(sql)
    return make


@pytest.mark.parametrize("sql,patterns", [
    ("CREATE TABLE copy(id VARCHAR, name VARCHAR, ts TIMESTAMP)", ("column id", "BIGINT", "VARCHAR")),
    ("CREATE TABLE copy(id BIGINT)", ("name",)),
    ("CREATE TABLE copy(id BIGINT, name VARCHAR, ts TIMESTAMP, more INTEGER NOT NULL)", ("more",)),
    ("CREATE VIEW copy AS SELECT 1 AS id", ("view|copy",)),
    ("CREATE TABLE copy AS SELECT 1::BIGINT AS id, 'x' AS name, TIMESTAMP '2026-01-01' AS ts", ("rows", "reload")),
], ids=["type", "columns", "not-null", "view", "filled"])
def test_a_target_that_does_not_fit(table, delivery, sql, patterns):
    table.create(SCHEMA)
    table.append(ROWS.format(0, 10))
    target_made(sql)(delivery)
    with duckdb.connect(str(delivery.file), read_only=True) as db:
        before = db.execute("FROM copy").fetchall()
    delivery.run().fails(3, *patterns)
    with duckdb.connect(str(delivery.file), read_only=True) as db:
        assert db.execute("FROM copy").fetchall() == before
    assert delivery.cursor()[0] is None


def test_a_schema_that_the_sink_cannot_take(table, delivery):
    """Names that differ in case only are two columns in Iceberg and one in DuckDB."""
    table.create("id long, other string")
    table.append("SELECT 1 AS id, 'x' AS other")
    table.commit(lambda d: d["schemas"][0]["fields"][1].update(name="ID"))
    delivery.run().fails(3, "id and ID", "same name")
    assert delivery.cursor()[0] is None


def test_a_destination_that_is_no_database(half):
    with damaged(half.file, lambda data: b"not a database" * 1000):
        content = half.file.read_bytes()
        half.run().fails(1, name_of(half.file))
        assert half.file.read_bytes() == content
    check_mended(half)


def test_a_destination_that_was_replaced(half):
    saved = half.file.read_bytes()
    half.file.unlink()
    half.run().fails(3, "is gone|replaced or restored|does not have", "reload")
    half.file.write_bytes(saved)
    check_mended(half)


def test_a_destination_that_somebody_changed(half):
    with duckdb.connect(str(half.file)) as db:
        db.execute("DELETE FROM copy WHERE id < 100")
    half.run().fails((1, 3), "reload")
    half.command("reload").ok()
    check_mended(half)


def test_a_destination_in_a_folder_that_is_not_there(table, tmp_path):
    table.create(SCHEMA)
    table.append(ROWS.format(0, 10))
    sink = f"duckdb:{tmp_path}/none/copy.duckdb"
    table.knut("cdc", "run", *table.locator, "--sink", sink, "--state", tmp_path / "s.db", "--once").fails((1, 2), "none")


def test_a_destination_that_another_process_holds(half):
    before = half.facts()
    with duckdb.connect(str(half.file)):
        half.run().fails(1, name_of(half.file), f"{os.getpid()}|held|lock")
    assert half.facts() == before
    check_mended(half)


# ---- the journal ----


def test_a_journal_that_another_process_holds(half):
    """The kernel's lock decides; the text beside it tells who."""
    before = half.facts()
    with open(f"{half.state}.lock", "r+", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.truncate(0)
        lock.write("4711 1780000000000 elsewhere\n")
        lock.flush()
        for words in ("run", "--once"), ("reload",):
            half.command(*words).fails(1, "4711", "elsewhere", "2026-05", "--state", name_of(half.state))
        half.command("status").ok()  # looking is always possible
    assert half.facts() == before
    check_mended(half)


def test_two_processes_on_one_journal(half):
    with half.source.knut.start("cdc", "run", *half.words, "--output", "json", "--interval", "1000") as first:
        first.stdout.readline()
        half.run().fails(1, str(first.pid), "--state")
        first.send_signal(signal.SIGTERM)
        assert first.wait(60) == 0
    assert half.deliver()["status"] == "idle"


@pytest.mark.parametrize("how", ["empty-file", "noise", "other-database", "cut"])
def test_a_damaged_journal(half, how):
    saved = half.state.read_bytes()
    changes = {"empty-file": lambda _: b"", "noise": filled, "cut": cut(0.5), "other-database": lambda _: other_database()}
    bad = changes[how](saved)
    rows = half.facts()["rows"]
    for suffix in "-wal", "-shm":
        half.state.with_name(half.state.name + suffix).unlink(missing_ok=True)
    half.state.write_bytes(bad)
    done = half.run()
    if how == "empty-file":
        done.fails(3, "reload")  # an empty journal: the target has loads that it does not know
    else:
        done.fails(1, name_of(half.state))
        assert half.state.read_bytes()[:512] == bad[:512]
    assert R.multiset(half.rows()) == rows
    for path in half.folder.glob("state.db*"):
        path.unlink()
    half.state.write_bytes(saved)
    check_mended(half)


def other_database():
    with sqlite3.connect(":memory:") as db:
        db.execute("CREATE TABLE something(else_ INTEGER)")
        return db.serialize()


# ---- disks ----


def obeying_permissions():
    """Root passes over permissions: give that up for the program."""
    return ("setpriv", "--bounding-set", "-dac_override,-dac_read_search") if os.geteuid() == 0 else ()


@contextmanager
def read_only(*paths):
    modes = [(p, p.stat().st_mode) for p in paths]
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        yield
    finally:
        for path, mode in modes:
            path.chmod(mode)


def test_a_read_only_destination(table, delivery, tmp_path):
    table.create(SCHEMA)
    table.append(ROWS.format(0, 10))
    place = tmp_path / "copies"
    place.mkdir()
    delivery.sink = f"duckdb:{place / 'copy.duckdb'}"
    delivery.deliver()
    table.append(ROWS.format(10, 20))
    cursor = delivery.cursor()
    with read_only(place / "copy.duckdb", place):
        delivery.run(wrap=obeying_permissions()).fails(1, "copy.duckdb", "[Pp]ermission|read-only")
    assert delivery.cursor() == cursor
    assert [p.name for p in place.iterdir()] == ["copy.duckdb"]
    assert delivery.deliver()["windows"][0]["upserts"] == 10


def test_a_read_only_journal(half):
    before = half.facts()
    with read_only(*half.folder.glob("state.db*"), half.folder):
        half.run(wrap=obeying_permissions()).fails(1, name_of(half.state), "[Pp]ermission|read-?only")
    assert half.facts() == before
    check_mended(half)


def test_a_read_only_warehouse(half):
    table = half.source
    rows = R.multiset(table.rows())
    folders = [p for p in table.warehouse.rglob("*") if p.is_dir()]
    with read_only(*folders, table.warehouse):
        table("append", "--sql", ROWS.format(0, 1), wrap=obeying_permissions()).fails(1, "[Pp]ermission|read-?only")
    assert R.multiset(table.rows()) == rows
    assert left_over(table.warehouse) == []


class SmallDisk:
    """A file system of some MiB, of the process's own: nobody else sees the mount."""

    def __init__(self, folder, mib):
        self.folder = folder
        self.script = f'mount -t tmpfs -o size={mib}m none "{folder}" && cp -a "{folder}.kept/." "{folder}" && "$@"; ' \
                      f'rc=$?; cp -a "{folder}/." "{folder}.kept"; exit $rc'

    def wrap(self):
        unshare = ("unshare", "-m") if os.geteuid() == 0 else ("unshare", "-rm")
        return (*unshare, "sh", "-c", self.script, "sh")


def can_mount():
    return subprocess.run(["unshare", *(["-m"] if os.geteuid() == 0 else ["-rm"]), "sh", "-c",
                           "mount -t tmpfs none /mnt"], capture_output=True, check=False).returncode == 0


FULL = "[Nn]o space|disk is full|too large|File too large|disk I/O"


def limited(size):
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    return limit


@pytest.fixture
def large(table, delivery):
    """Snapshot 1 is delivered; 8 MiB that do not compress wait."""
    table.create("id long, payload binary")
    table.append("SELECT 0::BIGINT AS id, 'x'::BLOB AS payload")
    delivery.deliver()
    table.append("SELECT range AS id, unhex(" + " || ".join(f"md5('{k}' || range)" for k in range(64)) + ") AS payload "
                 "FROM range(8192)")
    return delivery


def test_a_file_that_may_not_grow(large):
    """The destination's file system takes no more: half the rows would fit."""
    before = large.facts()
    large.run("--chunk-mb", "2", preexec_fn=limited(4 << 20)).fails(1, FULL)
    after = large.facts()
    assert after["cursor"] == before["cursor"]
    check_prefix_of_chunks(large, before, after)
    check_mended(large)


def check_prefix_of_chunks(delivery, before, after):
    """A window may have arrived in part: whole chunks, each with its label."""
    new = [rows for _, label, _, rows in after["loads"] if label not in {l[1] for l in before["loads"]}]
    assert sum(after["rows"].values()) == sum(before["rows"].values()) + sum(new)


def test_a_full_disk_under_the_destination(large):
    if not can_mount():
        pytest.skip("no right to mount, not even in a namespace: test_a_file_that_may_not_grow stands in")
    disk = SmallDisk(large.folder, 6)
    kept = large.folder.with_name("delivery.kept")
    shutil.copytree(large.folder, kept)
    before = large.facts()
    large.run("--chunk-mb", "2", wrap=disk.wrap()).fails(1, FULL)
    large.place(kept)  # what lay on the small disk when the run ended
    after = large.facts()
    assert after["cursor"] == before["cursor"]
    check_prefix_of_chunks(large, before, after)
    check_mended(large)


def test_a_full_disk_under_the_warehouse(table):
    table.create("id long, payload binary")
    table.append("SELECT 0::BIGINT AS id, 'x'::BLOB AS payload")
    files = set(table.warehouse.rglob("*"))
    sql = "SELECT range AS id, unhex(" + " || ".join(f"md5('{k}' || range)" for k in range(64)) + ") AS payload FROM range(4096)"
    table("append", "--sql", sql, preexec_fn=limited(1 << 20)).fails(1, FULL)
    assert len(table.rows()) == 1
    assert set(table.warehouse.rglob("*")) == files
    table.append(sql)
    assert table("scan", "--count", "--output", "json").ok().row == {"count": 4097}


def test_no_room_for_spilling(table, delivery, tmp_path):
    table.create("id long, name string")
    table.append("SELECT range AS id, 'name ' || range AS name FROM range(1000)")
    delivery.deliver()
    table.delete("id < 500")
    missing_folder = tmp_path / "none" / "spill"
    done = delivery.run("--spill-dir", missing_folder)
    if done.rc:  # else it was made
        done.fails((1, 2), "spill")
    check_mended(delivery)


# ---- input of writers ----


@pytest.mark.parametrize("name,content,patterns", [
    ("bad.csv", "id,name\n1,a\nx,b\n", ("id", "x")),
    ("short.csv", "id,name\n1,a\n2\n3,c\n", ("short.csv|id",)),
    ("other.csv", "id,colour\n1,red\n", ("colour",)),
    ("null.csv", "id,name\n,a\n", ("id", "required|NULL")),
    ("bad.json", '{"id": 1}\n{"id": ', ("bad.json",)),
    ("wide.json", '{"id": 99999999999999999999}\n', ("id",)),
    ("other.json", '{"id": 1, "colour": "red"}\n', ("colour",)),
    ("bad.parquet", "PAR1 no", ("bad.parquet",)),
    ("what.txt", "1", ("--format",)),
])
def test_rows_that_do_not_fit_the_table(table, tmp_path, name, content, patterns):
    table.create("id long required, name string")
    path = tmp_path / name
    path.write_text(content)
    table("append", path).fails((1, 2), *patterns)
    assert table.rows() == [] and table.history() == []
    assert list(table.knut.tmp.iterdir()) == []
    assert [p for p in (table.warehouse / "ns/t").rglob("*.parquet")] == []


def test_values_out_of_range_name_their_column(table):
    table.create("i int, d decimal(4,2), u uuid")
    for column, value in ("i", "3000000000"), ("d", "'12345.6'"), ("u", "'no uuid'"):
        table("append", "--sql", f"SELECT {value} AS {column}").fails((1, 2), column)
    assert table.history() == []


def test_files_that_are_not_there_are_named(table, tmp_path):
    table.create("id long")
    table("append", tmp_path / "none.csv").fails((1, 2), "none.csv")
    table("append").fails(2, "--sql")
    table("append", "--sql", "SELECT 1 AS id", tmp_path / "x.csv").fails(2, "both")
    table("append", "--sql", "SELEC 1").fails((1, 2), "syntax error")
    table("append", "--sql", "SELECT * FROM nowhere").fails((1, 2), "nowhere")

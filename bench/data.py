# SPDX-License-Identifier: Apache-2.0
"""The data of the benchmarks, made once in build/bench: files of rows, tables of them, with deletes and without, and a
table of many manifests."""
import json
import shutil
import subprocess
import time
import uuid
from pathlib import Path

import duckdb

CITIES = "['Amsterdam', 'Berlin', 'Cairo', 'Delhi', 'Edinburgh', 'Florence', 'Geneva', 'Hanoi']"
MANIFESTS, FILES = 1000, 100
DELETED = "amount < 5000"  # one row of twenty, all over the files


class Data:
    def __init__(self, folder: Path, knut: Path):
        self.folder, self.knut = folder, knut
        folder.mkdir(parents=True, exist_ok=True)

    def once(self, name, make):
        """The path `name`, made by make(path) when it is not there."""
        path = self.folder / name
        if not path.exists():
            print(f"  making {name}", flush=True)
            fresh = self.folder / f"new-{name}"
            if fresh.is_dir():
                shutil.rmtree(fresh)
            fresh.unlink(missing_ok=True)
            make(fresh)
            fresh.rename(path)
        return path

    def file(self, rows):
        """One Parquet file: id bigint, name varchar (a million values), city varchar, amount double, ts timestamp."""
        def make(path):
            duckdb.connect(config={"threads": 2, "memory_limit": "1GB"}).execute(f"""
                COPY (SELECT n AS id, 'name-' || hash(n) % 1000000 AS name, {CITIES}[1 + (hash(n + 1) % 8)::INT] AS city,
                             (hash(n + 2) % 10000000) / 100.0::DOUBLE AS amount,
                             TIMESTAMP '2024-01-01' + n * INTERVAL 1 SECOND AS ts FROM range({rows}) t(n))
                TO '{path}' (FORMAT parquet, CODEC zstd)""")
        return self.once(f"data-{rows // 10**6}m.parquet", make)

    def table(self, rows):
        """A warehouse with the table b.t of these rows, as the program writes it."""
        def make(path):
            for words in (["create", "--like", self.file(rows)], ["append", self.file(rows)]):
                self("table", words[0], *locator(path), *words[1:])
        return self.made(f"warehouse-{rows // 10**6}m", make)

    def made(self, name, make):
        """A warehouse made where it stays, since metadata holds absolute paths."""
        path = self.folder / name
        if not (path / "made").exists():
            print(f"  making {name}", flush=True)
            shutil.rmtree(path, ignore_errors=True)
            make(path)
            (path / "made").touch()
        return path

    def rewritten(self, rows, where="together"):
        """The same, and then one row of a hundred changed, in one commit that writes the file again."""
        which = CHANGED[where](rows)

        def make(path):
            changed = f"SELECT * REPLACE (amount + 1 AS amount) FROM read_parquet('{self.file(rows)}') WHERE {which}"
            for words in (["create", "--like", self.file(rows)], ["append", self.file(rows)],
                          ["overwrite", "--where", which, "--sql", changed]):
                self("table", words[0], *locator(path), *words[1:])
        return self.made(f"warehouse-{rows // 10**6}m-rewritten" + ("" if where == "together" else f"-{where}"), make)

    def deleted(self, rows, version):
        """Forty files; on branches one row of twenty is deleted: `vectors` in v3, `positions` and `equality` in v2."""
        def make(path):
            self("table", "create", *locator(path), "--like", self.file(rows), "--format-version", version,
                 "--property", "write.delete.mode=merge-on-read")
            for n in range(40):
                self("table", "append", *locator(path), "--sql", f"SELECT * FROM read_parquet('{self.file(rows)}') "
                     f"WHERE id >= {n * rows // 40} AND id < {(n + 1) * rows // 40}")
            by_row = "positions" if version == 2 else "vectors"
            for branch in [by_row] + (["equality"] if version == 2 else []):
                self("table", "branch", *locator(path), branch)
            self("table", "delete", *locator(path), "--branch", by_row, "--where", DELETED)
            if version == 2:
                delete_by_keys(path, "equality", self.file(rows))
        return self.made(f"warehouse-{rows // 10**6}m-deleted-v{version}", make)

    def __call__(self, *words):
        done = subprocess.run([self.knut, *map(str, words), "--output", "json", "--threads", "2"], check=True,
                              stdout=subprocess.PIPE, text=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def many_manifests(self):
        """Metadata of a table with 1,000 manifests of 100 files each; the files themselves are not there."""
        def make(path):
            path.mkdir()
            write_manifests(path)
        return self.made("many-manifests", make)


def locator(warehouse):
    return ["--warehouse", warehouse, "--table", "b.t"]


def one_percent(rows):
    return f"id >= {rows // 2} AND id < {rows // 2 + rows // 100}"


CHANGED = {"together": one_percent, "scattered": lambda rows: "amount < 1000"}


def changed_rows(file, rows):
    return f"SELECT * REPLACE (amount + 1 AS amount) FROM read_parquet('{file}') WHERE {one_percent(rows)}"


def write_manifests(folder):
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.conversions import to_bytes
    from pyiceberg.manifest import (DataFile, DataFileContent, FileFormat, ManifestEntry, ManifestEntryStatus,
                                    write_manifest, write_manifest_list)
    from pyiceberg.schema import Schema
    from pyiceberg.table.snapshots import Operation, Snapshot, Summary
    from pyiceberg.table.update import AddSnapshotUpdate, SetSnapshotRefUpdate
    from pyiceberg.typedef import Record
    from pyiceberg.types import DoubleType, LongType, NestedField, StringType, TimestampType
    kinds = {"id": LongType(), "name": StringType(), "city": StringType(), "amount": DoubleType(), "ts": TimestampType()}
    catalog = SqlCatalog("knut", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace("b")
    table = catalog.create_table("b.t", Schema(*(NestedField(n, *item) for n, item in enumerate(kinds.items(), 1))))
    snapshot_id, location = 1234567890123456789, table.location()
    (folder / "b" / "t" / "data").mkdir(parents=True, exist_ok=True)

    def bounds(values):
        return {n: to_bytes(kind, v) for n, (kind, v) in enumerate(zip(kinds.values(), values), 1)}

    def entry(n):
        low, high = n * 1000, n * 1000 + 999
        file = DataFile.from_args(
            content=DataFileContent.DATA, file_path=f"{location}/data/{n:08}-{uuid.uuid4()}.parquet",
            file_format=FileFormat.PARQUET, partition=Record(), record_count=1000, file_size_in_bytes=30000,
            column_sizes={i: 6000 for i in range(1, 6)}, value_counts={i: 1000 for i in range(1, 6)},
            null_value_counts={i: 0 for i in range(1, 6)}, nan_value_counts={4: 0},
            lower_bounds=bounds([low, "name-1", "Amsterdam", 0.0, low]), upper_bounds=bounds([high, "name-9", "Hanoi", 9e5, high]),
            key_metadata=None, split_offsets=[4], equality_ids=None, sort_order_id=0, spec_id=0)
        return ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=snapshot_id, sequence_number=None,
                                       file_sequence_number=None, data_file=file)

    manifests = []
    for m in range(MANIFESTS):
        output = table.io.new_output(f"{location}/metadata/m{m:05}.avro")
        with write_manifest(2, table.spec(), table.schema(), output, snapshot_id, "deflate") as writer:
            for n in range(m * FILES, (m + 1) * FILES):
                writer.add_entry(entry(n))
        manifests.append(writer.to_manifest_file())
    listed = f"{location}/metadata/snap-{snapshot_id}.avro"
    with write_manifest_list(2, table.io.new_output(listed), snapshot_id, None, 1, "deflate") as writer:
        writer.add_manifests(manifests)
    total = MANIFESTS * FILES
    snapshot = Snapshot(snapshot_id=snapshot_id, parent_snapshot_id=None, sequence_number=1,
                        timestamp_ms=int(time.time() * 1000), manifest_list=listed, schema_id=0,
                        summary=Summary(Operation.APPEND, **{"total-records": str(total * 1000), "total-data-files": str(total)}))
    catalog.commit_table(table, (), (AddSnapshotUpdate(snapshot=snapshot), SetSnapshotRefUpdate(
        ref_name="main", type="branch", snapshot_id=snapshot_id)))


def delete_by_keys(folder, branch, file):
    """Commits an equality delete file of the ids of all rows that DELETED is true for."""
    import pyarrow
    import pyarrow.parquet
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.manifest import (DataFile, DataFileContent, FileFormat, ManifestContent, ManifestEntry,
                                    ManifestEntryStatus, ManifestWriterV2, write_manifest_list)
    from pyiceberg.table.snapshots import Operation, Snapshot, Summary
    from pyiceberg.table.update import AddSnapshotUpdate, SetSnapshotRefUpdate
    from pyiceberg.typedef import Record

    class DeletesWriter(ManifestWriterV2):
        def content(self):
            return ManifestContent.DELETES

        @property
        def _meta(self):
            return {**super()._meta, "content": "deletes"}

    table = SqlCatalog("knut", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}").load_table("b.t")
    parent = table.snapshot_by_name(branch)
    keys = duckdb.sql(f"SELECT id FROM read_parquet('{file}') WHERE {DELETED}").to_arrow_table()
    field = pyarrow.field("id", pyarrow.int64(), metadata={"PARQUET:field_id": str(table.schema().find_field("id").field_id)})
    path = f"{table.location()}/data/keys-{uuid.uuid4()}.parquet"
    pyarrow.parquet.write_table(keys.cast(pyarrow.schema([field])), path.removeprefix("file://"), compression="zstd")
    snapshot_id, sequence = uuid.uuid4().int >> 65, table.metadata.last_sequence_number + 1
    output = table.io.new_output(f"{table.location()}/metadata/keys-{snapshot_id}.avro")
    with DeletesWriter(table.spec(), table.schema(), output, snapshot_id, "deflate") as writer:
        writer.add_entry(ManifestEntry.from_args(
            status=ManifestEntryStatus.ADDED, snapshot_id=snapshot_id, sequence_number=None, file_sequence_number=None,
            data_file=DataFile.from_args(
                content=DataFileContent.EQUALITY_DELETES, file_path=path, file_format=FileFormat.PARQUET, partition=Record(),
                record_count=keys.num_rows, file_size_in_bytes=Path(path.removeprefix("file://")).stat().st_size,
                column_sizes={}, value_counts={}, null_value_counts={}, nan_value_counts={}, lower_bounds={},
                upper_bounds={}, key_metadata=None, split_offsets=[4], equality_ids=[field_id_of(field)], sort_order_id=None,
                spec_id=0)))
    manifest = writer.to_manifest_file()
    listed = f"{table.location()}/metadata/snap-{snapshot_id}.avro"
    with write_manifest_list(2, table.io.new_output(listed), snapshot_id, parent.snapshot_id, sequence, "deflate") as writer:
        writer.add_manifests([*parent.manifests(table.io), manifest])
    snapshot = Snapshot(snapshot_id=snapshot_id, parent_snapshot_id=parent.snapshot_id, sequence_number=sequence,
                        timestamp_ms=int(time.time() * 1000), manifest_list=listed, schema_id=table.schema().schema_id,
                        summary=Summary(Operation.DELETE, **{"added-equality-deletes": str(keys.num_rows)}))
    table.catalog.commit_table(table, (), (AddSnapshotUpdate(snapshot=snapshot), SetSnapshotRefUpdate(
        ref_name=branch, type="branch", snapshot_id=snapshot_id)))


def field_id_of(field):
    return int(field.metadata[b"PARQUET:field_id"])

# SPDX-License-Identifier: Apache-2.0
"""The data of the benchmarks, made once in build/bench: files of rows, tables of them, and a table of many manifests."""
import json
import shutil
import subprocess
import time
import uuid
from pathlib import Path

import duckdb

CITIES = "['Amsterdam', 'Berlin', 'Cairo', 'Delhi', 'Edinburgh', 'Florence', 'Geneva', 'Hanoi']"
MANIFESTS, FILES = 1000, 100


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
        # Metadata holds absolute paths, so it is made where it stays.
        path = self.folder / f"warehouse-{rows // 10**6}m"
        if not (path / "made").exists():
            print(f"  making {path.name}", flush=True)
            shutil.rmtree(path, ignore_errors=True)
            make(path)
            (path / "made").touch()
        return path

    def rewritten(self, rows):
        """The same, and then one row of a hundred changed, in one commit that writes the file again."""
        path = self.folder / f"warehouse-{rows // 10**6}m-rewritten"
        if not (path / "made").exists():
            print(f"  making {path.name}", flush=True)
            shutil.rmtree(path, ignore_errors=True)
            for words in (["create", "--like", self.file(rows)], ["append", self.file(rows)],
                          ["overwrite", "--where", one_percent(rows), "--sql", changed_rows(self.file(rows), rows)]):
                self("table", words[0], *locator(path), *words[1:])
            (path / "made").touch()
        return path

    def __call__(self, *words):
        done = subprocess.run([self.knut, *map(str, words), "--output", "json", "--threads", "2"], check=True,
                              stdout=subprocess.PIPE, text=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def many_manifests(self):
        """Metadata of a table with 1,000 manifests of 100 files each; the files themselves are not there."""
        path = self.folder / "many-manifests"
        if not (path / "made").exists():
            print(f"  making {path.name}", flush=True)
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir()
            write_manifests(path)
            (path / "made").touch()
        return path


def locator(warehouse):
    return ["--warehouse", warehouse, "--table", "b.t"]


def one_percent(rows):
    return f"id >= {rows // 2} AND id < {rows // 2 + rows // 100}"


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

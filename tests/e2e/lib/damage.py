# SPDX-License-Identifier: Apache-2.0
"""Files damaged for the time of a block, and golden tables moved to a place where that may be done."""
import gzip
import json
import os
import shutil
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lib import avro
from lib.lake import plain


@contextmanager
def damaged(path, change):
    """change(bytes) -> bytes, or None: the file is missing."""
    path = Path(path)
    good = path.read_bytes()
    bad = change(good)
    assert bad != good
    try:
        if bad is None:
            path.unlink()
        else:
            path.write_bytes(bad)
        yield
    finally:
        path.write_bytes(good)


def cut(share):
    """The first part of the bytes: share 0 is an empty file, -n lacks the last n bytes."""
    return lambda data: data[:share] if isinstance(share, int) else data[:int(len(data) * share)]


def flipped(at):
    """One byte changed; at: offset, negative from the end, or a share of the length."""
    def change(data):
        i = at if isinstance(at, int) else int(len(data) * at)
        i %= len(data)
        return data[:i] + bytes([data[i] ^ 0xFF]) + data[i + 1:]
    return change


def missing(_data):
    return None


def filled(_data):
    return b"\xa5" * 4096


# ---- moving a table ----


def move(source, target, files=None, uri=None):
    """A copy of a table's folder in which every path points to the copy, or to uri (an object
    store's, for a copy that is to be put there). source: the folder that the metadata names; files:
    where it really is. Position delete files hold paths too and are written anew."""
    target = Path(target)
    shutil.copytree(files or source, target, ignore=shutil.ignore_patterns(".*.crc"))
    old, new = str(source), str(target)
    def local(name):
        return f"{target}{name[len(uri):]}" if uri else str(plain(name))
    def swap(text):
        if uri:
            return text.replace(f"file://{old}", uri).replace(f"file:{old}", uri).replace(old, uri)
        return text.replace(f"file://{old}", f"file://{new}").replace(f"file:{old}", f"file://{new}").replace(old, new)
    sizes = {}
    for path in sorted(target.rglob("*.parquet")):
        if "file_path" in pq.read_schema(path).names:
            table = pq.read_table(path)
            paths = pa.array([swap(p) for p in table.column("file_path").to_pylist()], pa.string())
            field = table.schema.field("file_path")
            pq.write_table(table.set_column(table.schema.get_field_index("file_path"), field, paths), path)
            sizes[str(path)] = os.path.getsize(path)
    for path in sorted(target.glob("metadata/*.avro")):
        meta, records = avro.read(path)
        for record in records:
            file = record.get("data_file")
            if file:
                file["file_path"] = swap(file["file_path"])
                file["file_size_in_bytes"] = sizes.get(local(file["file_path"]), file["file_size_in_bytes"])
                for bounds in "lower_bounds", "upper_bounds":
                    if file["content"] == 1:
                        file[bounds] = None
                if file.get("referenced_data_file"):
                    file["referenced_data_file"] = swap(file["referenced_data_file"])
            else:
                record["manifest_path"] = swap(record["manifest_path"])
        avro.write(path, meta, records)
        sizes[str(path)] = os.path.getsize(path)
    for path in sorted(target.glob("metadata/snap-*.avro")):  # now that manifests have their sizes
        meta, records = avro.read(path)
        for record in records:
            record["manifest_length"] = sizes[local(record["manifest_path"])]
        avro.write(path, meta, records)
    for path in target.glob("metadata/*.metadata.json"):
        raw = path.read_bytes()
        packed = raw[:2] == b"\x1f\x8b"
        text = swap((gzip.decompress(raw) if packed else raw).decode())
        path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    return target


def newest_document(folder):
    paths = list(Path(folder).glob("metadata/*.metadata.json"))
    return max(paths, key=lambda p: int(p.name.lstrip("v").split("-")[0].split(".")[0]))


def json_of(path):
    return json.loads(path.read_text())

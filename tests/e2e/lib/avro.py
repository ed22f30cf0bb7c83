# SPDX-License-Identifier: Apache-2.0
"""Avro container files, read into Python values and written again: how tests forge manifests.

Independent of the program's own codec. Knows what Iceberg's files use: records, arrays, maps,
unions, fixed and the primitives; codecs null and deflate.
"""
import json
import os
import struct
import zlib

MAGIC = b"Obj\x01"


class _Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        part = self.data[self.at:self.at + n]
        assert len(part) == n, "the file ends too early"
        self.at += n
        return part

    def long(self):
        shift = value = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)

    def bytes(self):
        return self.take(self.long())

    def blocks(self, one):
        items = []
        while n := self.long():
            if n < 0:
                n = -n
                self.long()
            items.extend(one() for _ in range(n))
        return items

    def value(self, schema):
        if isinstance(schema, list):
            return self.value(schema[self.long()])
        kind = schema["type"] if isinstance(schema, dict) else schema
        if isinstance(kind, (dict, list)):
            return self.value(kind)
        if kind == "record":
            return {f["name"]: self.value(f["type"]) for f in schema["fields"]}
        if kind == "array":
            return self.blocks(lambda: self.value(schema["items"]))
        if kind == "map":
            return dict(self.blocks(lambda: (self.bytes().decode(), self.value(schema["values"]))))
        return {"null": lambda: None, "boolean": lambda: self.take(1) == b"\x01", "int": self.long,
                "long": self.long, "float": lambda: struct.unpack("<f", self.take(4))[0],
                "double": lambda: struct.unpack("<d", self.take(8))[0], "bytes": self.bytes,
                "string": lambda: self.bytes().decode(),
                "fixed": lambda: self.take(schema["size"])}[kind]()


def _long(n):
    n = (n << 1) ^ (n >> 63)
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def _bytes(b):
    return _long(len(b)) + b


def _branch(union, value):
    if value is None:
        return union.index("null")
    return next(i for i, s in enumerate(union) if s != "null")


def _encode(schema, value):
    if isinstance(schema, list):
        at = _branch(schema, value)
        return _long(at) + _encode(schema[at], value)
    kind = schema["type"] if isinstance(schema, dict) else schema
    if isinstance(kind, (dict, list)):
        return _encode(kind, value)
    if kind == "record":
        return b"".join(_encode(f["type"], value[f["name"]]) for f in schema["fields"])
    if kind == "array":
        items = b"".join(_encode(schema["items"], v) for v in value)
        return (_long(len(value)) + items if value else b"") + b"\0"
    if kind == "map":
        items = b"".join(_bytes(k.encode()) + _encode(schema["values"], v) for k, v in value.items())
        return (_long(len(value)) + items if value else b"") + b"\0"
    return {"null": lambda: b"", "boolean": lambda: bytes([value]), "int": lambda: _long(value),
            "long": lambda: _long(value), "float": lambda: struct.pack("<f", value),
            "double": lambda: struct.pack("<d", value), "bytes": lambda: _bytes(value),
            "string": lambda: _bytes(value.encode()), "fixed": lambda: value}[kind]()


def read(path):
    """(metadata, records) of a container file."""
    with open(path, "rb") as file:
        reader = _Reader(file.read())
    assert reader.take(4) == MAGIC
    meta = dict(reader.blocks(lambda: (reader.bytes().decode(), reader.bytes())))
    sync, schema, records = reader.take(16), json.loads(meta["avro.schema"]), []
    while reader.at < len(reader.data):
        count, block = reader.long(), reader.bytes()
        assert reader.take(16) == sync
        if meta.get("avro.codec", b"null") == b"deflate":
            block = zlib.decompress(block, -15)
        inner = _Reader(block)
        records.extend(inner.value(schema) for _ in range(count))
    return meta, records


def write(path, meta, records):
    """Writes records under the schema in meta (codec deflate)."""
    meta = {**meta, "avro.codec": b"deflate"}
    schema, sync = json.loads(meta["avro.schema"]), os.urandom(16)
    deflate = zlib.compressobj(6, zlib.DEFLATED, -15)
    block = deflate.compress(b"".join(_encode(schema, r) for r in records)) + deflate.flush()
    head = b"".join(_bytes(k.encode()) + _bytes(v) for k, v in meta.items())
    body = _long(len(records)) + _bytes(block) + sync if records else b""
    with open(path, "wb") as file:
        file.write(MAGIC + _long(len(meta)) + head + b"\0" + sync + body)


def rewrite(path, change):
    """Rewrites the file in place: change(records) alters them. Returns the new size."""
    meta, records = read(path)
    change(records)
    write(path, meta, records)
    return os.path.getsize(path)

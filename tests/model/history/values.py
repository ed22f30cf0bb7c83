# SPDX-License-Identifier: Apache-2.0
"""Values of columns: made at random, from few so that rows meet again, and turned into Arrow.

A value is kept as what Arrow takes for it raw: dates as days, times and timestamps as a count of their unit, uuids as
bytes. A struct is {field id: value}, a list a list, a map a list of pairs, so that a value outlives any renaming.
"""
import decimal
import struct
import uuid

import pyarrow as pa
from pyiceberg.types import (
    BinaryType, BooleanType, DateType, DecimalType, DoubleType, FixedType, FloatType, IntegerType, ListType, LongType,
    MapType, StringType, StructType, TimestampNanoType, TimestampType, TimestamptzType, TimestamptzNanoType, TimeType,
    UUIDType)

DAY = 86_400_000_000
_MOMENTS = [-62135424000000000, -1, 0, 1, 1704067199999999, 1709164800000000, 1709168400500000, 253402300799999999]

_FEW = {
    BooleanType: [True, False],
    IntegerType: [-2**31, -7, -1, 0, 1, 2, 3, 2**31 - 1],
    LongType: [-2**63, -7, -1, 0, 1, 2, 3, 2**40, 2**63 - 1],
    FloatType: [float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 1.5, 3.4028234663852886e38, struct.unpack("f", struct.pack("f", 0.1))[0]],
    DoubleType: [float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 1.5, 0.1, 1e300, 5e-324],
    DateType: [-719162, -1, 0, 1, 19782, 19783, 2932896],
    TimeType: [0, 1, 43200 * 10**6, DAY - 1, 3661000001],
    TimestampType: _MOMENTS,
    TimestamptzType: _MOMENTS,
    TimestampNanoType: [-2**63 + 1, -1, 0, 1, 1709164800123456789, 2**63 - 1],
    TimestamptzNanoType: [-2**63 + 1, -1, 0, 1, 1709164800123456789, 2**63 - 1],
    StringType: ["", "a", "ab", "abc", "zé😀x", "a b/c?d=é%&:x", "..", "long text " * 4, "null", "\uffff\uffff"],
    UUIDType: [uuid.UUID(int=n).bytes for n in (0, 1, 2**127, 2**128 - 1)],
    BinaryType: [b"", b"\0", b"\xff", b"\xff\0\x7f", b"ab", b"\xff" * 20],
}


def of(dice, kind, nulls=0.15, null_lists=True):
    """One value of a type; NULL now and then. null_lists: also for a list or a map (PyIceberg
    0.12 makes an empty one of it, where it holds structs)."""
    if dice.random() < nulls and (null_lists or not isinstance(kind, (ListType, MapType))):
        return None
    def inside(type_, required):
        return of(dice, type_, 0 if required else nulls, null_lists)
    if isinstance(kind, StructType):
        return {f.field_id: inside(f.field_type, f.required) for f in kind.fields}
    if isinstance(kind, ListType):
        return [inside(kind.element_type, kind.element_required) for _ in range(dice.choice((0, 1, 2, 3)))]
    if isinstance(kind, MapType):
        keys = sorted(dice.sample(_FEW[type(kind.key_type)], dice.choice((0, 1, 2))))
        return [[key, inside(kind.value_type, kind.value_required)] for key in keys]
    if isinstance(kind, DecimalType):
        most = 10**kind.precision - 1
        unscaled = dice.choice([0, 1, -1, 125, -250, most, -most])
        return decimal.Decimal((unscaled < 0, tuple(map(int, str(abs(unscaled)))), -kind.scale))
    if isinstance(kind, FixedType):
        return dice.choice([b"\0", b"\xff", b"a"]) * len(kind)
    return dice.choice(_FEW[type(kind)])


def raw(kind, value, default=None):
    """A value under a type that may have evolved since: fields by id, those it lacks have their default."""
    if value is None:
        return default
    if isinstance(kind, StructType):
        return {f.name: raw(f.field_type, value.get(f.field_id), None if f.field_id in value else f.initial_default)
                for f in kind.fields}
    if isinstance(kind, ListType):
        return [raw(kind.element_type, item) for item in value]
    if isinstance(kind, MapType):
        return [(raw(kind.key_type, k), raw(kind.value_type, v)) for k, v in value]
    if isinstance(kind, UUIDType) and isinstance(value, uuid.UUID):
        return value.bytes
    return value


def to_arrow(rows, schema):
    """Rows ({field id: value}) as an Arrow table under an Iceberg schema."""
    as_struct = StructType(*schema.fields)
    plain = [raw(as_struct, row) for row in rows]
    shape = schema.as_arrow()
    columns = [pa.array([row[name] for row in plain], field.type) for name, field in zip(shape.names, shape)]
    return pa.Table.from_arrays(columns, schema=shape)

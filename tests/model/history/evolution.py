# SPDX-License-Identifier: Apache-2.0
"""Random changes of columns and partitions, as plain data that each writer says in its own words."""
from dataclasses import dataclass

from pyiceberg.transforms import VoidTransform
from pyiceberg.types import (
    BinaryType, DateType, DecimalType, DoubleType, FloatType, IntegerType, ListType, LongType, MapType, StringType, StructType,
    TimestampType, TimestamptzType, BooleanType)

NAMES = ["v", "w", "x y", "é", "z", "n1", "n2", "n3"]
KINDS = [IntegerType(), LongType(), FloatType(), StringType(), DecimalType(9, 2), DateType(), BooleanType(), BinaryType()]


@dataclass
class Change:
    what: str  # add, drop, rename, type, first, after
    path: tuple  # of names
    more: object = None

    def __str__(self):
        return f"{self.what} {'.'.join(self.path)} {self.more or ''}"


def structs(schema):
    """(path of names, fields) of every struct, also inside lists and maps; the root is ()."""
    found = []
    def walk(kind, path):
        if isinstance(kind, StructType):
            found.append((path, kind.fields))
            for field in kind.fields:
                walk(field.field_type, path + (field.name,))
        elif isinstance(kind, ListType):
            walk(kind.element_type, path + ("element",))
        elif isinstance(kind, MapType):
            walk(kind.value_type, path + ("value",))
    walk(StructType(*schema.fields), ())
    return found


def wider(kind):
    if isinstance(kind, IntegerType):
        return LongType()
    if isinstance(kind, FloatType):
        return DoubleType()
    if isinstance(kind, DecimalType) and kind.precision < 38:
        return DecimalType(min(38, kind.precision + 7), kind.scale)
    return None


def some_change(dice, schema, specs):
    """A change of columns that every writer allows: never the key, never what a partitioning is made of."""
    fixed = {field.source_id for spec in specs for field in spec.fields} | {schema.find_field("id").field_id}
    path, fields = dice.choice(structs(schema))
    names = {f.name.lower() for f in fields}
    free = [f for f in fields if f.field_id not in fixed and not fixed_inside(f.field_type, fixed)]
    unused = [name for name in NAMES if name.lower() not in names]
    what = dice.choice(["add", "add", "drop", "rename", "type", "type", "first", "after"])
    if what == "add" and unused and len(fields) < 16:
        return Change("add", path + (dice.choice(unused),), dice.choice(KINDS))
    if what == "drop" and free and len(fields) > 1:
        return Change("drop", path + (dice.choice(free).name,))
    if what == "rename" and free and unused:
        return Change("rename", path + (dice.choice(free).name,), dice.choice(unused))
    if what == "type":
        grown = [(f, wider(f.field_type)) for f in free if wider(f.field_type) is not None]
        if grown:
            field, kind = dice.choice(grown)
            return Change("type", path + (field.name,), kind)
    if what in ("first", "after") and len(fields) > 1:
        a, b = dice.sample(fields, 2)
        return Change(what, path + (a.name,), b.name if what == "after" else None)
    return None


def fixed_inside(kind, fixed):
    return isinstance(kind, StructType) and any(f.field_id in fixed or fixed_inside(f.field_type, fixed) for f in kind.fields)


# What partitions are made of: (words of the JSON, types). Numbers are not truncated: the program refuses the lowest ones, which
# have no partition then.
TRANSFORMS = [
    ("identity", (StringType, BooleanType, IntegerType, LongType, DateType, DecimalType, FloatType, BinaryType, TimestampType)),
    ("bucket[3]", (StringType, IntegerType, LongType, DateType, DecimalType, BinaryType, TimestampType, TimestamptzType)),
    ("truncate[2]", (StringType, BinaryType)),
    ("year", (DateType, TimestampType, TimestamptzType)), ("month", (DateType, TimestampType, TimestamptzType)),
    ("day", (DateType, TimestampType, TimestamptzType)), ("hour", (TimestampType, TimestamptzType))]


def some_partition(dice, schema, pyiceberg=False):
    """(column, transform as in JSON) that fit. PyIceberg 0.12 fails at partitions of NaN."""
    choices = [(f.name, word) for f in schema.fields for word, kinds in TRANSFORMS if isinstance(f.field_type, kinds)
               and not (pyiceberg and isinstance(f.field_type, FloatType))]
    return dice.choice(choices)


def live_fields(spec):
    return [f for f in spec.fields if not isinstance(f.transform, VoidTransform)]

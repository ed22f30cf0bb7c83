# SPDX-License-Identifier: Apache-2.0
"""Random row filters: one meaning, spelled for the program, for PyIceberg and for Spark, and tested here on rows.

Logic has three values, as SQL's. Floats are asked for NULL only, since engines differ in how NaN compares. What
PyIceberg 0.12 reads differently is for the SQL writers: NOT, <> and NOT IN of a NULL; its delete keeps rows where one
side of an OR is NULL and the other true, takes NaN for NULL, and finds no columns inside structs.
"""
from dataclasses import dataclass
from typing import Callable

from pyiceberg import expressions as E
from pyiceberg.types import BooleanType, DateType, DecimalType, DoubleType, FloatType, IntegerType, LongType, StringType, StructType

from lib import rows as R
from history import values as V

_COMPARE = {
    "=": (E.EqualTo, lambda a, b: a == b), "<": (E.LessThan, lambda a, b: a < b), "<=": (E.LessThanOrEqual, lambda a, b: a <= b),
    ">": (E.GreaterThan, lambda a, b: a > b), ">=": (E.GreaterThanOrEqual, lambda a, b: a >= b), "<>": (None, lambda a, b: a != b)}
_ORDERED = (IntegerType, LongType, StringType, DateType, DecimalType)


@dataclass
class Filter:
    knut: str
    ice: object
    spark: str
    test: Callable  # {field id: value} -> True, False or None

    def __str__(self):
        return self.knut


def columns(schema, kinds):
    """(path of ids, dotted name, type) of the primitive columns of these kinds, also inside structs."""
    found = []
    def walk(fields, ids, names):
        for field in fields:
            at = (ids + (field.field_id,), names + (field.name,))
            if isinstance(field.field_type, StructType):
                walk(field.field_type.fields, *at)
            elif isinstance(field.field_type, kinds):
                found.append((at[0], at[1], field))
    walk(schema.fields, (), ())
    return found


def value_at(row, path, field):
    for step, field_id in enumerate(path):
        if row is None:
            return None
        row = row.get(field_id, field.initial_default if step == len(path) - 1 else None)
    return row


def literals(kind, value):
    """A value as text for the program, as PyIceberg takes it, and for Spark."""
    if isinstance(kind, StringType):
        quoted = "'" + value.replace("'", "''") + "'"
        return quoted, value, f"decode(X'{value.encode().hex()}', 'UTF-8')"
    if isinstance(kind, DateType):
        day = R._date(value)
        return f"'{day}'", day, f"date'{day}'"
    if isinstance(kind, BooleanType):
        return str(value).upper(), value, str(value).upper()
    if isinstance(kind, DecimalType):
        return format(value, "f"), value, f"{value:f}BD"
    return str(value), value, f"{value}L" if isinstance(kind, LongType) and value > -2**63 else f"CAST('{value}' AS BIGINT)"


def some_value(dice, schema, path, field, rows):
    """A literal: often one that is there."""
    there = [v for v in (value_at(row.values, path, field) for row in rows) if v is not None]
    if there and dice.random() < 0.8:
        return dice.choice(there)
    return V.of(dice, field.field_type, 0)


def leaf(dice, schema, rows, sql):
    kinds = (*_ORDERED, BooleanType, *((FloatType, DoubleType) if sql else ()))
    path, names, field = dice.choice([column for column in columns(schema, kinds) if sql or len(column[0]) == 1])
    kind, ref = field.field_type, ".".join(names)
    quoted = ".".join(f'"{n}"' for n in names)
    ticked = ".".join(f"`{n}`" for n in names)
    def get(row):
        return value_at(row, path, field)
    how = dice.choice(["null", "compare", "compare", "compare", "in", "prefix"])
    if how == "null" or isinstance(kind, (FloatType, DoubleType)):
        if dice.random() < 0.7:
            return Filter(f"{quoted} IS NULL", E.IsNull(ref), f"{ticked} IS NULL", lambda row: get(row) is None)
        return Filter(f"{quoted} IS NOT NULL", E.NotNull(ref), f"{ticked} IS NOT NULL", lambda row: get(row) is not None)
    if how == "prefix" and isinstance(kind, StringType):
        start = some_value(dice, schema, path, field, rows)[:dice.choice((1, 2))].replace("%", "").replace("_", "") or "a"
        text, value, spark = literals(kind, start)
        return Filter(f"{quoted} LIKE {text[:-1]}%'", E.StartsWith(ref, value), f"startswith({ticked}, {spark})",
                      lambda row: None if get(row) is None else get(row).startswith(start))
    if how == "in":
        those = [some_value(dice, schema, path, field, rows) for _ in range(dice.choice((1, 2, 4)))]
        text, value, spark = zip(*(literals(kind, v) for v in those))
        negated = sql and dice.random() < 0.3
        word = "NOT IN" if negated else "IN"
        return Filter(f"{quoted} {word} ({', '.join(text)})", E.In(ref, value), f"{ticked} {word} ({', '.join(spark)})",
                      lambda row: None if get(row) is None else (get(row) in those) != negated)
    value = some_value(dice, schema, path, field, rows)
    op = "=" if isinstance(kind, BooleanType) else dice.choice([op for op in _COMPARE if sql or op != "<>"])
    text, as_ice, spark = literals(kind, value)
    make, compare = _COMPARE[op]
    return Filter(f"{quoted} {op} {text}", make and make(ref, as_ice), f"{ticked} {op} {spark}",
                  lambda row: None if get(row) is None else compare(get(row), value))


def both(a, b):
    def test(row):
        x, y = a.test(row), b.test(row)
        return False if x is False or y is False else None if x is None or y is None else True
    ice = a.ice is not None and b.ice is not None and E.And(a.ice, b.ice) or None
    return Filter(f"({a.knut}) AND ({b.knut})", ice, f"({a.spark}) AND ({b.spark})", test)


def either(a, b):
    def test(row):
        x, y = a.test(row), b.test(row)
        return True if x is True or y is True else None if x is None or y is None else False
    ice = a.ice is not None and b.ice is not None and E.Or(a.ice, b.ice) or None
    return Filter(f"({a.knut}) OR ({b.knut})", ice, f"({a.spark}) OR ({b.spark})", test)


def negation(a):
    def test(row):
        x = a.test(row)
        return None if x is None else not x
    return Filter(f"NOT ({a.knut})", None, f"NOT ({a.spark})", test)


def some_filter(dice, schema, rows, sql=True):
    """A filter that is true for some of the rows, if a few throws find one. sql: also what PyIceberg reads differently."""
    for _ in range(5):
        made = leaf(dice, schema, rows, sql)
        for _ in range(dice.choice((0, 0, 0, 1, 2))):
            made = (dice.choice((both, either)) if sql else both)(made, leaf(dice, schema, rows, sql))
        if sql and dice.random() < 0.15:
            made = negation(made)
        hit = sum(made.test(row.values) is True for row in rows)
        if 0 < hit < max(2, len(rows) * 2 // 3) or dice.random() < 0.1:
            break
    return made

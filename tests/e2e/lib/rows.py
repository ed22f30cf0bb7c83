# SPDX-License-Identifier: Apache-2.0
"""Rows as values that can be counted, so that tables are compared as multisets.

Rows come from three sides: JSON lines of the program, JSON of the golden answers, and Arrow tables
out of DuckDB or PyIceberg. Arrow values are spelled as the golden answers spell them (their README):
64-bit integers as numbers, decimals, NaN and infinities as text, times ISO 8601 as Java prints
them, bytes as 0x..., uuids as text, structs as objects, maps as lists of pairs.
"""
import json
import math
import struct
import uuid
from collections import Counter

import pyarrow as pa


def canon(value, signed_zeros=True):
    """A hashable stand-in: 1 equals 1.0, true is not 1, -0.0 equals only itself."""
    if isinstance(value, bool) or value is None:
        return (type(value).__name__, value)
    if isinstance(value, (int, float)):
        if signed_zeros and value == 0 and math.copysign(1, value) < 0:
            return ("number", "-0.0")
        return ("number", value)
    if isinstance(value, str):
        return ("text", value)
    if isinstance(value, list):
        return ("list", tuple(canon(item, signed_zeros) for item in value))
    return ("struct", tuple(sorted((k, canon(v, signed_zeros)) for k, v in value.items())))


def multiset(rows, signed_zeros=True):
    return Counter(canon(row, signed_zeros) for row in rows)


def readable(key):
    kind, value = key
    if kind == "struct":
        return "{" + ", ".join(f"{k}: {readable(v)}" for k, v in value) + "}"
    if kind == "list":
        return "[" + ", ".join(map(readable, value)) + "]"
    return repr(value)


def assert_same(got, expected, what="", signed_zeros=True):
    """Equal as multisets; says which rows are too many and which are missing."""
    got, expected = multiset(got, signed_zeros), multiset(expected, signed_zeros)
    if got == expected:
        return
    def show(counter):
        return "\n".join(f"  {n} x {readable(k)}" for k, n in list(counter.items())[:8]) or "  none"
    raise AssertionError(f"{what}: rows differ\ntoo many:\n{show(got - expected)}\n"
                         f"missing:\n{show(expected - got)}")


# ---- Arrow ----

def _clock(nanos, digits):
    seconds, fraction = divmod(nanos, 10**9)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}"
    if seconds % 60 or fraction:
        text += f":{seconds % 60:02}"
    if fraction:
        text += f".{fraction:09}"[:10]
        while text.endswith("000"):
            text = text[:-3]
    return text


def _date(days):
    """Proleptic Gregorian, years of 4 digits (Howard Hinnant's civil_from_days)."""
    z = days + 719468
    era, doe = divmod(z, 146097)
    yoe = (doe - doe // 1460 + doe // 36524 - doe // 146096) // 365
    doy = doe - (365 * yoe + yoe // 4 - yoe // 100)
    mp = (5 * doy + 2) // 153
    month = mp + 3 if mp < 10 else mp - 9
    year = yoe + era * 400 + (month <= 2)
    return f"{year:04}-{month:02}-{doy - (153 * mp + 2) // 5 + 1:02}"


def _shortest(value):
    """The shortest decimal number that is this value in 32 bits."""
    for digits in range(1, 10):
        text = float(f"{value:.{digits}g}")
        try:
            if struct.unpack("f", struct.pack("f", text))[0] == value:
                return text
        except OverflowError:
            continue
    return value


_UNIT = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def _spell(scalar):
    if not scalar.is_valid:
        return None
    kind = scalar.type
    if isinstance(kind, pa.BaseExtensionType):
        scalar = scalar.value
        if kind.extension_name == "arrow.uuid":
            return str(uuid.UUID(bytes=scalar.as_py()))
        kind = scalar.type
    if pa.types.is_struct(kind):
        return {kind.field(i).name: _spell(scalar[i]) for i in range(kind.num_fields)}
    if pa.types.is_map(kind):
        return [[_spell(entry[0]), _spell(entry[1])] for entry in scalar.values]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [_spell(item) for item in scalar.values]
    if pa.types.is_timestamp(kind):
        days, nanos = divmod(scalar.value * _UNIT[kind.unit], 86400 * 10**9)
        return f"{_date(days)}T{_clock(nanos, 9)}{'Z' if kind.tz else ''}"
    if pa.types.is_date(kind):
        return _date(scalar.value)
    if pa.types.is_time(kind):
        return _clock(scalar.value * _UNIT[kind.unit], 9)
    value = scalar.as_py()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if pa.types.is_float32(kind):
        return _shortest(value)
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if pa.types.is_decimal(kind):
        return format(value, "f")
    return value


def of_arrow(table):
    """Rows of an Arrow table, spelled as the golden answers are."""
    columns = [[_spell(table.column(i)[r]) for r in range(table.num_rows)] for i in range(table.num_columns)]
    return [dict(zip(table.column_names, row)) for row in zip(*columns)] if columns else []


def lines(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]

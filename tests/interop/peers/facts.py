# SPDX-License-Identifier: Apache-2.0
"""What manifests say of data files, held to what is in the files (both read by PyIceberg and pyarrow)."""
import datetime as dt
import decimal
import math
import uuid

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.conversions import from_bytes
from pyiceberg.types import BinaryType, DecimalType, FixedType, FloatType, DoubleType, StringType

from lib.lake import plain


def entries(ice):
    """Live data file entries of the current snapshot."""
    snapshot = ice.current_snapshot()
    return [entry for manifest in snapshot.manifests(ice.io)
            for entry in manifest.fetch_manifest_entry(ice.io, discard_deleted=True)]


def leaves(array, kind, field_id, found):
    """Leaf values by field id; a NULL above a leaf is a NULL of the leaf (as Parquet's levels count)."""
    if pa.types.is_struct(kind):
        for i in range(kind.num_fields):
            child = kind.field(i)
            values = [None if v is None else v[child.name] for v in array]
            leaves(values, child.type, id_of(child), found)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        spread = [item for v in array for item in (v if v else [None])]
        leaves(spread, kind.value_type, id_of(kind.value_field), found)
    elif pa.types.is_map(kind):
        pairs = [pair for v in array for pair in (v if v else [(None, None)])]
        leaves([k for k, _ in pairs], kind.key_type, id_of(kind.key_field), found)
        leaves([v for _, v in pairs], kind.item_type, id_of(kind.item_field), found)
    else:
        found.setdefault(field_id, []).extend(array)
    return found


# Row lineage of format version 3, kept in files that were rewritten.
LINEAGE = 2147483539, 2147483540


def id_of(field):
    return int(field.metadata[b"PARQUET:field_id"])


def in_file(path):
    """{field id: leaf values} of a Parquet file."""
    table = pq.read_table(plain(path), partitioning=None)
    found = {}
    for field, column in zip(table.schema, table.columns):
        if id_of(field) in LINEAGE:
            continue
        leaves(column.to_pylist(), field.type, id_of(field), found)
    return found, table


def is_nan(value):
    return isinstance(value, float) and math.isnan(value)


def bound(field, raw):
    return from_bytes(field.field_type, raw)


EPOCH = dt.datetime(1970, 1, 1)


def internal(value):
    """As bounds are decoded: days, microseconds, bytes."""
    if isinstance(value, dt.datetime):
        return (value.replace(tzinfo=None) - EPOCH) // dt.timedelta(microseconds=1)
    if isinstance(value, dt.date):
        return value.toordinal() - EPOCH.toordinal()
    if isinstance(value, dt.time):
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 10**6 + value.microsecond
    if isinstance(value, uuid.UUID):
        return value.bytes
    return value


def in_repeated(schema, field_id):
    """True below a list or a map: the format asks for no bounds there."""
    name = schema.find_column_name(field_id)
    return any(part in ("element", "key", "value") for part in name.split("."))


def check_metrics(ice, file):
    """Counts are exact; bounds hold every value, and are values where they are not cut short."""
    schema = ice.schema()
    found, table = in_file(file.file_path)
    assert file.record_count == table.num_rows
    assert file.file_size_in_bytes == plain(file.file_path).stat().st_size
    for field_id, values in found.items():
        field = schema.find_field(field_id)
        what = f"{schema.find_column_name(field_id)} of {file.file_path}"
        if not in_repeated(schema, field_id):
            assert file.value_counts[field_id] == len(values), what
            assert file.null_value_counts[field_id] == sum(v is None for v in values), what
        floating = isinstance(field.field_type, (FloatType, DoubleType))
        if floating and not in_repeated(schema, field_id):
            assert file.nan_value_counts[field_id] == sum(map(is_nan, values)), what
        real = [internal(v) for v in values if v is not None and not is_nan(v)]
        low, high = ((bounds or {}).get(field_id) for bounds in (file.lower_bounds, file.upper_bounds))
        if not real:
            assert low is None and high is None, what
            continue
        check_bounds(field, real, low, high, what)
    return found


def check_bounds(field, real, low, high, what):
    kind = field.field_type
    cut = isinstance(kind, (StringType, BinaryType, FixedType))
    if low is not None:
        got = internal(bound(field, low))
        assert got <= min(real) if cut else got == min(real), f"lower bound {got!r} of {what}: {min(real)!r}"
        if cut:
            assert min(real)[: len(got)] == got, what
    if high is not None:
        got = internal(bound(field, high))
        assert got >= max(real) if cut else got == max(real), f"upper bound {got!r} of {what}: {max(real)!r}"
        if cut:
            assert len(got) <= 16 or got == max(real), what
    if isinstance(kind, DecimalType):
        assert all(isinstance(v, decimal.Decimal) for v in real)


def has_bounds(ice, file, *names):
    for name in names:
        field_id = ice.schema().find_field(name).field_id
        assert field_id in file.lower_bounds and field_id in file.upper_bounds, f"{name} has no bounds"
    return True

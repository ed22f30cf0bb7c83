# SPDX-License-Identifier: Apache-2.0
"""Arrow bodies: read by Arrow's own library, and taken only as Doris would read their buffers right.

Doris looks at no type: a column of another type is garbage, or ends the backend. Both are `Crash` here, so
that a test notices. Sources: BE vec/exec/format/arrow/arrow_stream_reader.cpp, vec/data_types/serde/*.cpp,
FE nereids/load/NereidsDataDescription.java of apache/doris.
"""
import datetime as dt

import pyarrow as pa

from tables import Bad, Crash, Plan, cast

SHOWN_AT = 8 * 3600  # DATETIME values are shown at +08:00, whatever the header `timezone` says
EPOCH = dt.datetime(1970, 1, 1)
EXACT = {"BOOLEAN": pa.bool_(), "TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INT": pa.int32(), "BIGINT": pa.int64(),
         "LARGEINT": pa.string(), "FLOAT": pa.float32(), "DOUBLE": pa.float64(), "DATE": pa.date32(), "JSON": pa.string(),
         "IPV4": pa.uint32(), "IPV6": pa.string()}
TEXTS = ("CHAR", "VARCHAR", "STRING")


def check_columns(sources, exprs, table):
    """A column of the header that is none of the table cannot be planned."""
    if exprs or any(table.column(s) is None for s in sources):
        raise Plan("[INTERNAL_ERROR]TStatus: NullPointerException")


def read(body, sources, table, profile):
    """[{source: value as the JSON reader would have it}], each value already cast to its column's type or a Bad."""
    try:
        with pa.ipc.open_stream(pa.BufferReader(body)) as stream:
            schema, batches = stream.schema, list(stream)
    except (pa.ArrowInvalid, OSError) as wrong:
        raise Crash(f"no Arrow stream: {wrong}") from None
    names = [s.lower() for s in sources]  # the frontend lowers them
    if len(schema) != len(names):
        raise Crash("another number of columns")
    for i, name in enumerate(names):
        if schema.field(i).name != name:
            words = f"Column name mismatch: expected {name}, got {schema.field(i).name}"
            raise Plan(f"[INTERNAL_ERROR]{words}") if profile >= "4.1" else Crash(words)
    for batch in batches:
        batch.validate(full=True)
        columns = [list(values(batch.column(i), table.column(s).type)) for i, s in enumerate(sources)]
        yield from (dict(zip(sources, row, strict=True)) for row in zip(*columns, strict=True))


def count(body):
    """Rows of a stream, whatever they are."""
    with pa.ipc.open_stream(pa.BufferReader(body)) as stream:
        return sum(batch.num_rows for batch in stream)


def _attempt(value, kind):
    try:
        return cast(value, kind)
    except Bad as bad:
        return bad


def values(array, kind):
    """The values of a column as its rows would show them; Bad for one that does not fit."""
    if kind.children:
        yield from _nested(array, kind)
        return
    type_ = array.type
    if kind.name == "DECIMAL":
        precision, scale = kind.args or (38, 9)
        if not pa.types.is_decimal128(type_) or precision > 38 or type_.scale != scale:
            raise Crash(f"{type_} for DECIMAL({precision},{scale})")
    elif kind.name == "DATETIME":
        if not pa.types.is_timestamp(type_):
            raise Crash(f"{type_} for DATETIME")
        yield from _instants(array, kind)
        return
    elif kind.name in TEXTS:
        if type_ not in (pa.string(), pa.binary()):
            raise Crash(f"{type_} for {kind.name}")
    elif EXACT.get(kind.name) != type_:
        raise Crash(f"{type_} for {kind.name}")
    if kind.name == "DATE":
        yield from (None if d is None else _day(d) for d in array.cast(pa.int32()).to_pylist())
    elif kind.name in ("FLOAT", "DOUBLE"):
        yield from array.to_pylist()
    else:
        yield from (_attempt(str(v) if kind.name == "DECIMAL" and v is not None else v, kind) for v in array.to_pylist())


def _day(days):
    moved = days < -719162  # before year 1, which Python has no date for: the calendar repeats each 400 years
    text = (dt.date(1970, 1, 1) + dt.timedelta(days=days + (146097 if moved else 0))).isoformat()
    return f"{int(text[:4]) - 400:04}{text[4:]}" if moved else text


def _instants(array, kind):
    unit = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[array.type.unit]
    scale = kind.args[0] if kind.args else 0
    for value in array.cast(pa.int64()).to_pylist():
        if value is None:
            yield None
            continue
        if value < 0 and unit > 1:
            raise Crash("a time before 1970 in parts of a second")
        shown = EPOCH + dt.timedelta(seconds=value // unit + SHOWN_AT, microseconds=value % unit * 10**6 // unit)
        fraction = f".{shown.microsecond:06}"[:scale + 1] if scale else ""
        yield shown.replace(microsecond=0).isoformat(sep=" ") + fraction


def _nested(array, kind):
    if kind.name == "ARRAY":
        if not pa.types.is_list(array.type):
            raise Crash(f"{array.type} for ARRAY")
        items = list(values(array.values, kind.children[0][1]))
        rows = _slices(array, lambda i: items[i])
    elif kind.name == "MAP":
        if not pa.types.is_map(array.type):
            raise Crash(f"{array.type} for MAP")
        keys = list(values(array.keys, kind.children[0][1]))
        items = list(values(array.items, kind.children[1][1]))
        rows = (r and sorted(r, key=repr) for r in _slices(array, lambda i: [keys[i], items[i]]))
    else:
        if not pa.types.is_struct(array.type) or array.type.num_fields != len(kind.children):
            raise Crash(f"{array.type} for STRUCT")
        fields = [list(values(array.field(i), t)) for i, (_, t) in enumerate(kind.children)]
        names = [n for n, _ in kind.children]
        rows = (dict(zip(names, row, strict=True)) if ok else None
                for row, ok in zip(zip(*fields, strict=True), array.is_valid().to_pylist(), strict=True))
    yield from rows


def _slices(array, item):
    offsets = array.offsets.to_pylist()
    for i, ok in enumerate(array.is_valid().to_pylist()):
        yield [item(k) for k in range(offsets[i], offsets[i + 1])] if ok else None

# SPDX-License-Identifier: Apache-2.0
"""What a load's headers and body come to: rows for a table, or the server's words why not.

Sources: BE http/action/stream_load.cpp and http/utils.cpp, FE StreamLoadHandler.java and
NereidsLoadScanProvider.java of apache/doris.
"""
import hashlib
import importlib
import json
from dataclasses import dataclass, field

from tables import Bad, DELETE_SIGN, Number, Plan, apply_expr, cast, parse_columns

ZONES = {"UTC": 0, "Asia/Shanghai": 28800, "+08:00": 28800, "+00:00": 0}


def _arrow():
    """Loaded when it is first needed: Arrow's library takes longer to start than the whole stand-in."""
    return importlib.import_module("arrow")


@dataclass
class Load:
    table: object
    format: str
    sources: list
    exprs: dict
    merge_type: str
    sequence: str  # source column, or ""
    strict: bool
    ratio: float
    zone: int
    by_line: bool
    outer_array: bool
    total: int = 0
    filtered: int = 0
    errors: list = field(default_factory=list)
    rows: list = field(default_factory=list)  # of (values, sign, sequence)


def plan(table, headers, profile):
    """Checks of streamLoadPut: after the label was taken."""
    merge = headers.get("merge_type", "APPEND").upper()
    if merge not in ("APPEND", "DELETE", "MERGE"):
        raise Plan(f"errCode = 2, detailMessage = Invalid merge type {merge}")
    if merge == "MERGE" and "delete" not in headers:
        raise Plan("Excepted DELETE ON clause when merge type is MERGE.")
    if merge != "APPEND" and table.model != "UNIQUE":
        raise Plan("errCode = 2, detailMessage = load by MERGE or DELETE is only supported in unique tables.")
    strict = headers.get("strict_mode", "false").lower()
    if strict not in ("true", "false"):
        raise Plan("[INVALID_ARGUMENT]Invalid strict mode format. Must be bool type")
    columns = headers.get("columns", "")
    sources, exprs = parse_columns(columns, table) if columns else ([c.name for c in table.columns], {})
    sequence = headers.get("function_column.sequence_col", "")
    if table.sequence_type and not sequence:
        raise Plan(f"errCode = 2, detailMessage = Table {table.name} has sequence column, need to specify the sequence "
                   "column")
    if sequence and not table.sequence_type:
        raise Plan(f"errCode = 2, detailMessage = There is no sequence column in the table {table.name}")
    if sequence and sequence not in sources:
        raise Plan(f"errCode = 2, detailMessage = Unknown column '{sequence}'")
    given = {s.lower() for s in sources} | {e.lower() for e in exprs}
    for col in table.columns:
        if col.name.lower() not in given and col.not_null and col.default is None:
            raise Plan(f"errCode = 2, detailMessage = Column has no default value, column={col.name}")
    if headers.get("format", "").lower() == "arrow":
        _arrow().check_columns(sources, exprs, table)
    by_line = headers.get("read_json_by_line", "true" if profile >= "4.0" else "false").lower() == "true"
    return Load(table, headers.get("format", "csv").lower(), sources, exprs, merge, sequence, strict == "true",
                float(headers.get("max_filter_ratio", "0")), ZONES.get(headers.get("timezone", "Asia/Shanghai"), 0),
                by_line, headers.get("strip_outer_array", "false").lower() == "true")


def _first_wins(pairs):
    out = {}
    for key, value in pairs:
        out.setdefault(key, value)
    return out


def _parse(text):
    return json.loads(text, parse_int=Number, parse_float=Number, object_pairs_hook=_first_wins)


def documents(load, body):
    if load.by_line:
        for line in body.split(b"\n"):
            if line:
                yield _parse(line.decode())
    else:
        found = _parse(body.decode())
        yield from found if load.outer_array else [found]


def decode(load, body, profile):
    """Fills load.rows from a body; UnicodeDecodeError and ValueError are the document's."""
    found = _arrow().read(body, load.sources, load.table, profile) if load.format == "arrow" else documents(load, body)
    for doc in found:
        load.total += 1
        try:
            load.rows.append(_row(load, doc))
        except Bad as bad:
            load.filtered += 1
            load.errors.append(f"Reason: {bad}. src line: {str(doc)[:200]}")


def _value(load, col, value):
    try:
        if isinstance(value, Bad):
            raise value
        value = value if load.format == "arrow" else cast(value, col.type, load.zone)
    except Bad as bad:
        if load.strict or col.type.name in ("CHAR", "VARCHAR"):
            raise Bad(f"column({col.name}) {bad}") from None
        value = None
    if value is None and col.not_null:
        raise Bad(f"column({col.name}) values is null while columns is not nullable")
    return value


def _row(load, doc):
    table, given = load.table, {}
    if not isinstance(doc, dict) or not any(s in doc for s in load.sources):
        raise Bad("All fields is null, this is a invalid row")
    for source in load.sources:
        given[source.lower()] = doc.get(source)
    for target, (function, source) in load.exprs.items():
        given[target.lower()] = apply_expr(function, given.get(source.lower()))
    values = {}
    for col in table.columns:
        name = col.name.lower()
        if name in given:
            values[col.name] = _value(load, col, given[name])
        else:
            values[col.name] = _value(load, col, col.default)
    sign = 1 if load.merge_type == "DELETE" else int(given.get(DELETE_SIGN.lower()) or 0)
    sequence = int(given[load.sequence.lower()]) if load.sequence else None
    return values, sign, sequence


def count_arrow(body):
    return _arrow().count(body)


def digest(load):
    """Of the rows as a set: a repetition may bring them in another order, or another format."""
    rows = sorted(json.dumps(row, sort_keys=True, default=str) for row in load.rows)
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()

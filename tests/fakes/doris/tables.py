# SPDX-License-Identifier: Apache-2.0
"""Tables as their CREATE TABLE says them, and values cast to their columns' types.

Sources: BE new_json_reader.cpp, FE BindSink.java and NereidsLoadScanProvider.java of apache/doris.
"""
import base64
import binascii
import datetime as dt
import ipaddress
import json
import re
import struct
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation, ROUND_HALF_UP

INTEGERS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64, "LARGEINT": 128}
ALIASES = {"INTEGER": "INT", "BOOL": "BOOLEAN", "TEXT": "STRING", "DATEV2": "DATE", "DATETIMEV2": "DATETIME",
           "DECIMALV3": "DECIMAL", "JSONB": "JSON"}
DELETE_SIGN = "__DORIS_DELETE_SIGN__"


class Bad(Exception):
    """A value that its column cannot hold."""


class Plan(Exception):
    """A load or statement that cannot be planned: the server's words."""


class Crash(Exception):
    """What a backend does not survive, or reads as something else."""


class Number(str):
    """A number as the text that the document had."""


# ---- types ----

@dataclass
class Type:
    name: str
    args: tuple = ()
    children: tuple = ()  # of (name or None, Type)

    def sql(self):
        if self.children:
            inner = ",".join(f"{n}:{t.sql()}" if n else t.sql() for n, t in self.children)
            return f"{self.name.lower()}<{inner}>"
        shown = {"STRING": "text"}.get(self.name, self.name.lower())
        return shown + (f"({','.join(map(str, self.args))})" if self.args else "")


def parse_type(text):
    tokens = re.findall(r"`[^`]*`|[A-Za-z_][A-Za-z0-9_]*|\d+|[<>(),:]", text)
    kind, rest = _type(tokens)
    if rest:
        raise Plan(f"mismatched input '{rest[0]}' in type {text}")
    return kind


def _type(tokens):
    name = tokens.pop(0).upper()
    name = ALIASES.get(name, name)
    if tokens[:1] == ["<"]:
        tokens.pop(0)
        children = []
        while True:
            label = None
            if name == "STRUCT":
                label = tokens.pop(0).strip("`")
                assert tokens.pop(0) == ":"
            child, tokens = _type(tokens)
            children.append((label, child))
            if tokens.pop(0) == ">":
                return Type(name, (), tuple(children)), tokens
    args = []
    if tokens[:1] == ["("]:
        while tokens.pop(0) != ")":
            if tokens[0].isdigit():
                args.append(int(tokens.pop(0)))
    if name == "DECIMAL" and len(args) == 1:
        args.append(0)
    return Type(name, tuple(args)), tokens


# ---- tables ----

@dataclass
class Column:
    name: str
    type: Type
    not_null: bool = False
    default: str = None

    def sql(self):
        text = f"`{self.name}` {self.type.sql()} {'NOT NULL' if self.not_null else 'NULL'}"
        return text if self.default is None else f'{text} DEFAULT "{self.default}"'


@dataclass
class Table:
    db: str
    name: str
    columns: list
    model: str = "DUP"  # DUP, UNIQUE
    keys: list = field(default_factory=list)
    properties: dict = field(default_factory=dict)

    @property
    def sequence_type(self):
        return self.properties.get("function_column.sequence_type")

    @property
    def sequence_col(self):
        return self.properties.get("function_column.sequence_col")

    def column(self, name):
        return next((c for c in self.columns if c.name.lower() == name.lower()), None)

    def ddl(self):
        keys = ", ".join(f"`{k}`" for k in self.keys)
        columns = ",\n".join(f"  {c.sql()}" for c in self.columns)
        model = {"UNIQUE": f"UNIQUE KEY({keys})\n", "DUP": f"DUPLICATE KEY({keys})\n" if keys else ""}[self.model]
        properties = ",\n".join(f'"{k}" = "{v}"' for k, v in
                                {"replication_allocation": "tag.location.default: 1", **self.properties}.items())
        spread = f"HASH({keys}) BUCKETS 10" if self.model == "UNIQUE" else "RANDOM BUCKETS AUTO"
        return (f"CREATE TABLE `{self.name}` (\n{columns}\n) ENGINE=OLAP\n{model}"
                f"DISTRIBUTED BY {spread}\nPROPERTIES (\n{properties}\n);")


def split_top(text, separator=","):
    """Parts of text at separators outside of brackets and quotes."""
    parts, depth, quote, start = [], 0, "", 0
    for i, c in enumerate(text):
        if quote:
            quote = "" if c == quote else quote
        elif c in "'\"`":
            quote = c
        elif c in "(<":
            depth += 1
        elif c in ")>":
            depth -= 1
        elif c == separator and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [p.strip() for p in [*parts, text[start:]] if p.strip()]


def parse_create(sql, default_db):
    head = re.match(r"\s*CREATE TABLE\s+(?:IF NOT EXISTS\s+)?(`[^`]+`|\w+)(?:\.(`[^`]+`|\w+))?\s*\(", sql, re.I)
    if not head:
        raise Plan("mismatched input")
    names = [n.strip("`") for n in head.groups() if n]
    depth, end = 1, head.end()
    while depth:
        depth += {"(": 1, ")": -1}.get(sql[end], 0)
        end += 1
    table = Table(names[0] if len(names) == 2 else default_db, names[-1], [])
    for text in split_top(sql[head.end():end - 1]):
        word = re.match(r"(`[^`]+`|\w+)\s+", text)
        rest = text[word.end():]
        kind = re.match(r"\w+(?:\([^)]*\))?", rest)
        if rest.upper().startswith(("ARRAY<", "MAP<", "STRUCT<")):
            depth, at = 0, 0
            while True:
                depth += {"<": 1, ">": -1}.get(rest[at], 0)
                at += 1
                if depth == 0 and rest[at - 1] == ">":
                    break
            kind = re.match(re.escape(rest[:at]), rest)
        more = rest[kind.end():]
        default = re.search(r"DEFAULT\s+\"?([^\"\s]*)\"?", more, re.I)
        table.columns.append(Column(word[1].strip("`"), parse_type(kind[0]), "NOT NULL" in more.upper(),
                                    default[1] if default else None))
    tail = sql[end:]
    for model, word in (("UNIQUE", "UNIQUE KEY"), ("DUP", "DUPLICATE KEY")):
        found = re.search(word + r"\s*\(([^)]*)\)", tail, re.I)
        if found:
            table.model, table.keys = model, [k.strip().strip("`") for k in found[1].split(",")]
    found = re.search(r"PROPERTIES\s*\((.*)\)", tail, re.I | re.S)
    table.properties = dict(re.findall(r'"([^"]+)"\s*=\s*"([^"]*)"', found[1])) if found else {}
    for key in table.keys:
        col = table.column(key)
        if not col or col.type.name in ("STRING", "FLOAT", "DOUBLE", "ARRAY", "MAP", "STRUCT", "JSON"):
            raise Plan(f"errCode = 2, detailMessage = Key column[{key}] can not be of that type")
    if [c.name for c in table.columns[:len(table.keys)]] != table.keys:
        raise Plan("errCode = 2, detailMessage = Key columns must be the first few columns of the schema")
    return table


# ---- values ----

def cast(value, kind, zone=0):
    """A JSON value as the column would show it, as a JSON value again. Bad when it does not fit."""
    if value is None:
        return None
    if kind.children:
        return _nested(value, kind, zone)
    text = value if isinstance(value, (str, bytes)) else {True: "1", False: "0"}.get(value) \
        if isinstance(value, bool) else json.dumps(value, default=str, separators=(",", ":"))
    return _SCALARS[kind.name](value, text, kind, zone)


def _nested(value, kind, zone):
    if isinstance(value, str):
        try:
            value = json.loads(value, parse_int=Number, parse_float=Number)
        except ValueError:
            raise Bad("nested text") from None
    if kind.name == "ARRAY":
        if not isinstance(value, list):
            raise Bad("not an array")
        return [cast(v, kind.children[0][1], zone) for v in value]
    if not isinstance(value, dict):
        raise Bad("not an object")
    if kind.name == "MAP":
        key, item = kind.children[0][1], kind.children[1][1]
        return sorted(([cast(k, key, zone), cast(v, item, zone)] for k, v in value.items()), key=repr)
    if set(value) - {n for n, _ in kind.children}:
        raise Bad("unknown field")
    return {n: cast(value.get(n), t, zone) for n, t in kind.children}


def _integer(value, text, kind, _zone):
    if not re.fullmatch(r"[-+]?\d+", text.strip() if isinstance(text, str) else ""):
        raise Bad("not an integer")
    n, bits = int(text), INTEGERS[kind.name]
    if not -(1 << bits - 1) <= n < 1 << bits - 1:
        raise Bad("out of range")
    return str(n) if bits == 128 else n


def _boolean(value, text, _kind, _zone):
    if value is True or value is False:
        return value
    if text.lower() not in ("true", "false", "0", "1"):
        raise Bad("not a boolean")
    return text.lower() in ("true", "1")


def _float(value, text, kind, _zone):
    try:
        number = float(text)
        return struct.unpack("f", struct.pack("f", number))[0] if kind.name == "FLOAT" else number
    except (ValueError, OverflowError):
        raise Bad("not a number") from None


def _decimal(value, text, kind, _zone):
    precision, scale = kind.args or (38, 9)
    try:
        number = Decimal(text).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP,
                                        context=__import__("decimal").Context(prec=80))
    except InvalidOperation:
        raise Bad("not a decimal") from None
    if not number.is_finite() or abs(number) >= Decimal(10) ** (precision - scale):
        raise Bad("out of range")
    return format(number, "f")


def _date(value, text, _kind, _zone):
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        raise Bad("not a date")
    if not text.startswith("0000"):
        try:
            dt.date.fromisoformat(text)
        except ValueError:
            raise Bad("not a date") from None
    return text


def _datetime(value, text, kind, zone):
    found = re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(Z|[-+]\d\d:\d\d)?", text)
    if not found:
        raise Bad("not a datetime")
    year, month, day, hour, minute, second = map(int, found.groups()[:6])
    scale = kind.args[0] if kind.args else 0
    digits = (found[7] or "").ljust(scale + 1, "0")
    fraction = int(digits[:scale] or 0) + (digits[scale] >= "5")
    try:
        base = dt.datetime(year or 4, month, day, hour, minute, second)
        base += dt.timedelta(seconds=fraction // 10**scale)
        if found[8]:
            off = 0 if found[8] == "Z" else int(found[8][:3]) * 3600 + int(found[8][0] + found[8][4:]) * 60
            base += dt.timedelta(seconds=zone - off)
    except (ValueError, OverflowError):
        raise Bad("not a datetime") from None
    shown = base.replace(year=base.year).isoformat(sep=" ")
    if year == 0:
        shown = "0000" + shown[4:]
    return shown + (f".{fraction % 10**scale:0{scale}}" if scale else "")


def _string(value, text, kind, _zone):
    raw = text if isinstance(text, bytes) else text.encode()
    if kind.name in ("CHAR", "VARCHAR") and kind.args and len(raw) > kind.args[0]:
        raise Bad("too long")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return "0x" + raw.hex()


def _json(value, text, _kind, _zone):
    try:
        return json.dumps(json.loads(text), sort_keys=True) if isinstance(value, str) else text
    except ValueError:
        raise Bad("not JSON") from None


def _address(value, text, _kind, _zone):
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise Bad("not an address") from None


_SCALARS = {**dict.fromkeys(INTEGERS, _integer), "BOOLEAN": _boolean, "FLOAT": _float, "DOUBLE": _float,
            "DECIMAL": _decimal, "DATE": _date, "DATETIME": _datetime, "CHAR": _string, "VARCHAR": _string,
            "STRING": _string, "JSON": _json, "VARIANT": _json, "IPV4": _address, "IPV6": _address}


def as_text(value, kind):
    """CAST(value AS STRING) of a value as cast() gives it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "1" if value else "0"
    if not kind.children:
        return str(value)
    shown = [["null" if v is None else as_text(v, t) for v, t in zip(row, types, strict=True)] for row, types in (
        [(v, [kind.children[0][1]] if kind.name == "ARRAY" else [t for _, t in kind.children]) for v in
         ([[v] for v in value] if kind.name == "ARRAY" else value if kind.name == "MAP" else [list(value.values())])])]
    if kind.name == "ARRAY":
        return "[" + ", ".join(row[0] for row in shown) + "]"
    pairs = shown if kind.name == "MAP" else list(zip(value, shown[0], strict=True))
    return "{" + ", ".join(f'"{k}":{v}' for k, v in pairs) + "}"


# ---- the columns header ----

def parse_columns(header, table):
    """[(name of the source, None)] and {target: function of the source row}."""
    sources, exprs = [], {}
    for part in split_top(header):
        name, _, expr = part.partition("=")
        name = name.strip().strip("`")
        if not expr:
            sources.append(name)
            continue
        call = re.fullmatch(r"(from_base64|unhex)\(`?(\w+)`?\)", expr.strip())
        if not call:
            raise Plan(f"errCode = 2, detailMessage = unknown expression {expr}")
        exprs[name] = (call[1], call[2])
    for name in exprs:
        if not table.column(name):
            raise Plan(f"errCode = 2, detailMessage = Unknown column '{name}' in '{table.name}'")
    return sources, exprs


def apply_expr(function, value):
    if value is None:
        return None
    try:
        return base64.b64decode(value, validate=True) if function == "from_base64" else bytes.fromhex(value)
    except (binascii.Error, ValueError):
        raise Bad(function) from None

# SPDX-License-Identifier: Apache-2.0
"""The program as the writer."""
import os

import pyarrow.parquet as pq
from pyiceberg.types import (
    BinaryType, BooleanType, DateType, DecimalType, DoubleType, FloatType, IntegerType, LongType, StringType)

from history import evolution, filters
from history import values as V

_TYPES = {IntegerType: "int", LongType: "long", FloatType: "float", DoubleType: "double", StringType: "string", DateType: "date",
          BooleanType: "boolean", BinaryType: "binary"}
_WORDS = {"identity": "{0}", "bucket[3]": "bucket(3, {0})", "truncate[2]": "truncate(2, {0})"}


def tick(*names):
    return ".".join("`" + name + "`" for name in names)


class Knut:
    name = "knut"

    def __init__(self, history, evolves=True, merges=True):
        """merges: also deletes merge-on-read, which PyIceberg must then read, and cannot delete from."""
        self.h, self.evolves, self.merges = history, evolves, merges

    def choose(self, h):
        if len(h.rows) < 8:
            return "append", self.append
        does = {"append": (3, self.append), "delete": (3, self.delete), "overwrite": (3, self.overwrite), "compact": (1, self.compact),
                "rewrite manifests": (0.7, self.rewrite_manifests), "branch": (0.7, self.branch)}
        if self.evolves:
            does |= {"columns": (2, self.columns), "partitions": (1.5, self.partitions)}
        if h.keyed:
            does["upsert"] = (3, self.upsert)
        if self.merges and h.ice.format_version > 1:
            does |= {"mode": (2, self.mode), "rewrite deletes": (1, self.rewrite_deletes)}
        if len(h.states) > 3:
            does["rollback"] = (0.7, self.rollback)
        if len(h.states) > 8:
            does["expire"] = (0.5, self.expire)
        names = list(does)
        name = h.dice.choices(names, [does[n][0] for n in names])[0]
        return name, does[name][1]

    def reads(self, snapshot_id):
        raise AssertionError(f"a snapshot too many: {snapshot_id}")

    def note(self, text):
        self.h.log[-1] += f" {text}"

    def file(self, rows):
        """A Parquet file beside the warehouse with these rows."""
        folder = self.h.table.lake.folder.parent / "new"
        folder.mkdir(exist_ok=True)
        path = folder / f"{os.urandom(6).hex()}.parquet"
        pq.write_table(V.to_arrow([row.values for row in rows], self.h.schema), path)
        return path

    def knut(self, *words):
        return self.h.table.knut(*words).ok()

    # ---- rows ----

    def append(self):
        rows = self.h.fresh(self.h.dice.randrange(1, 20))
        self.knut("append", self.file(rows))
        return [self.h.rows + rows]

    def some_filter(self):
        chosen = filters.some_filter(self.h.dice, self.h.schema, self.h.rows)
        self.note(chosen)
        return chosen

    def delete(self):
        chosen = self.some_filter()
        self.knut("delete", "--where", chosen)
        return [self.h.kept(chosen)]

    def overwrite(self):
        chosen = self.some_filter()
        kept = self.h.kept(chosen)
        rows = self.h.fresh(self.h.dice.randrange(1, 12))
        self.knut("overwrite", "--where", chosen, self.file(rows))
        return [kept + rows]

    def upsert(self):
        """Rows of known keys are replaced, the others added."""
        h = self.h
        known = sorted(row.values[h.id_field] for row in h.rows)
        ids = h.dice.sample(known, min(len(known), h.dice.randrange(1, 8)))
        rows = h.fresh(len(ids), ids=ids) + h.fresh(h.dice.randrange(0, 4))
        self.knut("upsert", "--key", "id", self.file(rows))
        return [[row for row in h.rows if row.values[h.id_field] not in ids] + rows]

    # ---- shape ----

    def columns(self):
        change = evolution.some_change(self.h.dice, self.h.schema, self.h.ice.specs().values())
        if change is None:
            return []
        self.note(change)
        path, more = tick(*change.path), change.more
        self.knut("alter", {
            "add": lambda: f"ADD COLUMN {path} {knut_type(more)}", "drop": lambda: f"DROP COLUMN {path}",
            "rename": lambda: f"RENAME COLUMN {path} TO {tick(more)}", "type": lambda: f"ALTER COLUMN {path} TYPE {knut_type(more)}",
            "first": lambda: f"ALTER COLUMN {path} FIRST", "after": lambda: f"ALTER COLUMN {path} AFTER {tick(more)}"}[change.what]())
        return []

    def mode(self):
        """How rows are deleted from now on."""
        modes = {f"write.{what}.mode": self.h.dice.choice(["copy-on-write", "merge-on-read", "merge-on-read"])
                 for what in ("delete", "update", "merge")}
        self.note(list(modes.values()))
        self.knut("alter", f"SET TBLPROPERTIES ({', '.join(f'{k!r} = {v!r}' for k, v in modes.items())})")
        return []

    def partitions(self):
        dice, ice = self.h.dice, self.h.ice
        live = evolution.live_fields(ice.spec())
        words = [f"DROP PARTITION FIELD {tick(field.name)}" for field in live if dice.random() < 0.6]
        column, word = evolution.some_partition(dice, self.h.schema, self.h.pyiceberg)
        # Version 1 keeps dropped fields, and PyIceberg writes no two fields of one column.
        used = ice.spec().fields if ice.format_version == 1 else live
        if self.h.schema.find_field(column).field_id not in {f.source_id for f in used}:
            made = _WORDS.get(word, word + "({0})").format(tick(column))
            words.append(f"ADD PARTITION FIELD {made} AS p{len(ice.specs())}_{dice.randrange(10**4)}")
        if words:
            self.note(words)
            self.knut("alter", *words)
        return []

    # ---- upkeep ----

    def compact(self):
        dice = self.h.dice
        words = dice.choice([(), ("--strategy", "sort", "--sort-order", "id desc nulls last")])
        words += dice.choice([("--rewrite-all",), ("--min-input-files", 2), ("--delete-ratio-threshold", "0.01", "--rewrite-all")])
        if dice.random() < 0.4:
            words += ("--remove-dangling-deletes",)
        words += ("--use-starting-sequence-number", dice.choice(["true", "false"]))
        self.note(words)
        self.knut("compact", *words)
        return [self.h.rows, self.h.rows]

    def rewrite_manifests(self):
        self.knut("rewrite-manifests")
        return [self.h.rows]

    def rewrite_deletes(self):
        self.knut("rewrite-deletes", "--rewrite-all")
        return [self.h.rows]

    def rollback(self):
        to = self.h.dice.choice(self.h.lineage()[1:4] or [self.h.current])
        self.knut("rollback", "--snapshot", to)
        return self.h.went_back_to(to)

    def branch(self):
        """Commits on a branch, to which main is then brought forward."""
        h, name = self.h, f"b{len(self.h.states)}"
        self.knut("branch", name)
        rows = h.fresh(h.dice.randrange(1, 8))
        chosen = self.some_filter()
        self.knut("append", "--branch", name, self.file(rows))
        self.knut("delete", "--branch", name, "--where", chosen)
        self.knut("fast-forward", "main", name)
        self.knut("branch", name, "--drop")
        first = h.rows + rows
        return [first, [row for row in first if chosen.test(row.values) is not True]]

    def expire(self):
        self.knut("expire", "--older-than", "1ms", "--retain-last", self.h.dice.choice((3, 5)))
        return []


def knut_type(kind):
    if isinstance(kind, DecimalType):
        return f"decimal({kind.precision}, {kind.scale})"
    return _TYPES[type(kind)]

# SPDX-License-Identifier: Apache-2.0
"""PyIceberg as the writer (format versions 1 and 2, copy-on-write)."""
from pyiceberg.transforms import parse_transform

from lib import rows as R
from peers.pyice import under_current_schema
from history import evolution, filters
from history import values as V


class PyIceberg:
    name = "pyiceberg"

    def __init__(self, history, evolves=True):
        self.h, self.evolves = history, evolves

    def choose(self, h):
        if len(h.rows) < 8:
            return "append", self.append
        does = [("append", self.append), ("delete", self.delete), ("delete", self.delete), ("overwrite", self.overwrite)]
        if h.keyed:
            does.append(("upsert", self.upsert))
        if self.evolves:
            does += [("columns", self.columns), ("columns", self.columns), ("partitions", self.partitions)]
        if len(h.states) > 3:
            does.append(("rollback", self.rollback))
        return h.dice.choice(does)

    def reads(self, snapshot_id):
        return R.multiset(under_current_schema(self.h.ice, snapshot_id))

    def arrow(self, rows):
        return V.to_arrow([row.values for row in rows], self.h.schema)

    def append(self):
        rows = self.h.fresh(self.h.dice.randrange(1, 15))
        self.h.ice.append(self.arrow(rows))
        return [self.h.rows + rows]

    def filter(self):
        chosen = filters.some_filter(self.h.dice, self.h.schema, self.h.rows, sql=False)
        self.h.log[-1] += f" {chosen}"
        return chosen

    def delete(self):
        chosen = self.filter()
        self.h.ice.delete(chosen.ice)
        return [self.h.kept(chosen)]

    def overwrite(self):
        """Two snapshots: rows go, rows come."""
        chosen = self.filter()
        kept = self.h.kept(chosen)
        rows = self.h.fresh(self.h.dice.randrange(1, 10))
        self.h.ice.overwrite(self.arrow(rows), overwrite_filter=chosen.ice)
        return [kept, kept + rows]

    def upsert(self):
        """Rows of known keys are replaced, the others added."""
        h = self.h
        known = {row.values[h.id_field]: row for row in h.rows}
        ids = h.dice.sample(sorted(known), min(len(known), h.dice.randrange(1, 6)))
        rows = h.fresh(len(ids), ids=ids)
        rows += h.fresh(h.dice.randrange(1, 4))
        h.ice.upsert(self.arrow(rows), join_cols=["id"])
        # It leaves rows alone that would not change; so does the model, where both are one.
        gone = [row for row in h.rows if row.values[h.id_field] not in ids]
        return [gone, gone + rows[:len(ids)], gone + rows]

    def columns(self):
        change = evolution.some_change(self.h.dice, self.h.schema, self.h.ice.specs().values())
        if change is None:
            return []
        self.h.log[-1] += f" {change}"
        with self.h.ice.update_schema() as update:
            if change.what == "add":
                update.add_column(change.path, change.more)
            elif change.what == "drop":
                update.delete_column(change.path)
            elif change.what == "rename":
                update.rename_column(change.path, change.more)
            elif change.what == "type":
                update.update_column(change.path, field_type=change.more)
            elif change.what == "first":
                update.move_first(change.path)
            else:
                update.move_after(change.path, change.path[:-1] + (change.more,))
        return []

    def partitions(self):
        dice, ice = self.h.dice, self.h.ice
        live = evolution.live_fields(ice.spec())
        with ice.update_spec() as update:
            gone = [f for f in live if dice.random() < 0.6]
            for field in gone:
                update.remove_field(field.name)
            column, word = evolution.some_partition(dice, self.h.schema, self.h.pyiceberg)
            # No two fields of one column: PyIceberg writes no such table, and v1 keeps dropped fields.
            used = {f.source_id for f in ice.spec().fields} if ice.format_version == 1 else {f.source_id for f in live if f not in gone}
            if self.h.schema.find_field(column).field_id not in used and len(live) - len(gone) < 3:
                update.add_field(column, parse_transform(word), f"p{len(ice.specs())}_{dice.randrange(10**4)}")
                self.h.log[-1] += f" {word} {column}"
        return []

    def rollback(self):
        to = self.h.dice.choice(self.h.lineage()[1:4] or [self.h.current])
        with self.h.ice.manage_snapshots() as manage:
            manage.rollback_to_snapshot(to)
        return self.h.went_back_to(to)

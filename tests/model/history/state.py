# SPDX-License-Identifier: Apache-2.0
"""The plain model of a table: which rows each snapshot holds, by field id.

A writer does something and says which rows must be there after it (a list of states where it makes several
snapshots); the history finds the snapshots that are new and remembers their states.
"""
import random
from collections import Counter
from dataclasses import dataclass, field

from lib import rows as R
from history import values as V


class Row:
    """{field id: value} of the columns that were there when it was written; never changed."""
    __slots__ = ("values", "_keys")

    def __init__(self, values):
        self.values, self._keys = values, {}

    def replaced(self, changes):
        return Row({**self.values, **changes})


def keys_of(rows, schema):
    """Each row under a schema, as what rows are compared by (lib/rows.py)."""
    missing = [row for row in rows if schema.schema_id not in row._keys]
    if missing:
        for row, shown in zip(missing, R.of_arrow(V.to_arrow([row.values for row in missing], schema))):
            row._keys[schema.schema_id] = R.canon(shown)
    return [row._keys[schema.schema_id] for row in rows]


def multiset(rows, schema):
    return Counter(keys_of(rows, schema))


@dataclass
class History:
    table: object  # peers.pyice.Shared
    dice: random.Random
    nulls: float = 0.15
    keyed: bool = False  # no two rows have one id
    pyiceberg: bool = False  # PyIceberg is among the writers: what it does not do right is left out
    states: dict = field(default_factory=dict)  # snapshot id -> rows
    rows: list = field(default_factory=list)
    log: list = field(default_factory=list)
    next_id: int = 0

    def __post_init__(self):
        self.look()

    def look(self):
        self.ice = self.table.ice
        self.schema = self.ice.schema()

    @property
    def current(self):
        return self.ice.metadata.current_snapshot_id

    @property
    def id_field(self):
        return self.schema.find_field("id").field_id

    def fresh(self, n, ids=None):
        """New rows under the current schema; ids: those of rows that are replaced."""
        made = []
        for i in range(n):
            row = {f.field_id: V.of(self.dice, f.field_type, 0 if f.required else self.nulls, not self.pyiceberg) for f in self.schema.fields}
            if ids is not None:
                row[self.id_field] = ids[i]
            elif self.keyed:
                row[self.id_field] = self.next_id
                self.next_id += 1
            else:
                row[self.id_field] = self.dice.randrange(40)
            made.append(Row(row))
        if made and not self.keyed and self.dice.random() < 0.4:
            made += [Row(dict(self.dice.choice(made).values)) for _ in range(self.dice.choice((1, 2)))]
        return made

    def kept(self, condition):
        """The rows without those for which it is true."""
        return [row for row in self.rows if condition.test(row.values) is not True]

    def lineage(self, until=()):
        """Ids of snapshots from the current one back to its first ancestor that is kept, or to one of until."""
        found, at = [], self.current and self.ice.snapshot_by_id(self.current)
        while at is not None and at.snapshot_id not in until:
            found.append(at.snapshot_id)
            at = self.ice.snapshot_by_id(at.parent_snapshot_id) if at.parent_snapshot_id is not None else None
        return found

    def step(self, writer):
        """Lets a writer do something; the ids of the snapshots that came of it on main, oldest first."""
        name, do = writer.choose(self)
        self.log.append(f"{writer.name}: {name}")
        after = do()
        states = [self.rows, *after]
        self.look()
        new = self.lineage(until=self.states)[::-1]
        while len(states) - 1 > len(new):
            drop = next((i for i in range(1, len(states)) if same(states[i - 1], states[i], self.schema)), None)
            assert drop is not None, f"{len(states) - 1} snapshots with changes expected, there are {len(new)}"
            del states[drop]
        # Deletes of whole files first, as a snapshot of their own: rows that a writer did not tell of.
        at = 1
        for snapshot_id in new[:len(new) - (len(states) - 1)]:
            states.insert(at, self.between(writer, states[at - 1], snapshot_id))
            at += 1
        self.states.update(zip(new, states[1:]))
        self.rows = states[-1]
        if not new and self.current is not None:
            assert same(self.rows, self.states[self.current], self.schema), "rows changed without a snapshot"
        return new

    def between(self, writer, before, snapshot_id):
        """The rows of a snapshot that a writer made on its way: some of those before, as its own reader says."""
        there = writer.reads(snapshot_id)
        rows = []
        for row, key in zip(before, keys_of(before, self.schema)):
            if there[key]:
                there[key] -= 1
                rows.append(row)
        assert not +there, "a snapshot on the way has rows that were not there before"
        return rows

    def went_back_to(self, snapshot_id):
        """After a rollback: what do() of that step returns."""
        self.rows = self.states[snapshot_id]
        return []


def same(a, b, schema):
    return a is b or multiset(a, schema) == multiset(b, schema)

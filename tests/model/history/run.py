# SPDX-License-Identifier: Apache-2.0
"""Playing a history: so many steps by writers in turn, each checked, with deliveries on the way."""
import os
import random
import re
import time

import pyarrow as pa

from lib import rows as R
from lib.lake import Delivery, Table
from history import checks, filters
from history.state import multiset

# KN_MODEL_SEED: a number for other histories ("random": any); KN_MODEL_STEPS: how long they are, in percent.
SEED = os.environ.get("KN_MODEL_SEED", "1")
PERCENT = int(os.environ.get("KN_MODEL_STEPS", "100"))


def dice_for(name):
    seed = f"{random.randrange(10**6) if SEED == 'random' else SEED}-{name}"
    return random.Random(seed), seed


def new_table(lake, schema, version, made_by, **properties):
    """An empty table; PyIceberg makes none of version 3."""
    if made_by == "pyiceberg":
        return lake.create(schema, version=version, **properties)
    path = lake.folder.parent / "schema.json"
    path.write_text(schema.model_dump_json())
    table = lake.table()
    words = [word for key, value in properties.items() for word in ("--property", f"{key}={value}")]
    table.knut("create", "--schema-json", path, "--format-version", version, *words).ok()
    return table


class Copies:
    """Deliveries of the table into DuckDB: by whole rows, by key, and each new chunk size and thread count the dice says."""

    def __init__(self, h, folder):
        self.h = h
        lake = h.table.lake
        source = Table(lake.knut, lake.folder, h.table.name)
        self.copies = []
        for how, options in [("rows", ())] + ([("key", ("--key", "id"))] if h.keyed else []):
            place = folder / f"copy-{how}"
            place.mkdir()
            self.copies.append(Delivery(source, place, options=options, locator=h.table.locator))

    def deliver(self, all_of_it=False):
        """Some windows or all; the copy is the state at its cursor."""
        h = self.h
        for copy in self.copies:
            dice = h.dice
            words = ["--threads", dice.choice((1, 2, 4)), "--parallel-loads", dice.choice((1, 4)), "--chunk-mb", dice.choice((1, 2))]
            if not all_of_it and dice.random() < 0.5:
                words += ["--max-windows", dice.choice((1, 3))]
            done = copy.run(*words)
            if done.rc == 3 and re.search("no ancestor|expired", done.err):  # rolled back behind the cursor, or it went
                copy.command("reload").ok()
                done = copy.run(*words)
            done.ok()
            cursor = copy.cursor()[0]
            if cursor is None:
                continue
            assert "--max-windows" in words or cursor == h.current
            got = R.multiset(copy.rows(), signed_zeros=False)
            # On the way, columns have the shape of the last window that brought rows.
            shapes = [h.schema] if cursor == h.current else [checks.schema_of(h, cursor), *h.ice.schemas().values()]
            if not any(got == shaped(h.states[cursor], shape) for shape in shapes):
                checks.assert_equal(got, shaped(h.states[cursor], shapes[0]), f"{copy.folder.name} at {cursor}")


def shaped(rows, schema):
    """Rows as a copy holds them under a schema; None: they have values that did not fit yet."""
    try:
        return checks.unsigned(multiset(rows, schema))
    except pa.ArrowInvalid:
        return None


def play(h, writers, steps, copies=None, others=()):
    """others: (how often, check) of other readers. What was done is printed, which pytest shows of a test that fails."""
    for at in range(max(1, steps * PERCENT // 100)):
        began = time.monotonic()
        try:
            new = h.step(h.dice.choice(writers))
        finally:
            print(f"{at:4} {h.log[-1]} ({time.monotonic() - began:.1f} s)", flush=True)
        checks.check_step(h, new)
        if h.dice.random() < 0.3:
            checks.check_filter(h, filters)
        for often, check in others:
            if h.dice.random() < often:
                check(h)
        if copies and h.dice.random() < 0.1:
            copies.deliver()
    if copies:
        copies.deliver(all_of_it=True)

# SPDX-License-Identifier: Apache-2.0
"""Playing a history: so many steps by writers in turn, each checked, with deliveries on the way."""
import os
import random

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
            if done.rc == 3 and "not an ancestor" in done.err + done.out:  # the table was rolled back behind the cursor
                copy.command("reload").ok()
                done = copy.run(*words)
            done.ok()
            cursor = copy.cursor()[0]
            if cursor is None:
                continue
            assert "--max-windows" in words or cursor == h.current
            schema = h.schema if cursor == h.current else checks.schema_of(h, cursor)
            got = R.multiset(copy.rows(), signed_zeros=False)
            checks.assert_equal(got, checks._unsigned(multiset(h.states[cursor], schema)), f"{copy.folder.name} at {cursor}")


def play(h, writers, steps, copies=None, others=()):
    """others: (how often, check) of other readers."""
    try:
        for at in range(max(1, steps * PERCENT // 100)):
            new = h.step(h.dice.choice(writers))
            checks.check_step(h, new)
            if h.dice.random() < 0.3:
                checks.check_filter(h, filters)
            for often, check in others:
                if h.dice.random() < often:
                    check(h)
            if copies and h.dice.random() < 0.15:
                copies.deliver()
        if copies:
            copies.deliver(all_of_it=True)
    except BaseException:
        print(f"step {at}:", *h.log, sep="\n  ")
        raise

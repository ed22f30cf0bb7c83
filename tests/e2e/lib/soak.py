# SPDX-License-Identifier: Apache-2.0
"""A table that changes at random and is delivered by runs that are disturbed at random: what soak tests of destinations share.

KNUT_TEST_SEED repeats a run; KNUT_TEST_ROUNDS (changes of the table) or KNUT_TEST_STEPS (runs of the client) make it longer.
"""
import os
import random

SEED = int(os.environ.get("KNUT_TEST_SEED") or random.SystemRandom().randrange(2**31))
ROUNDS = int(os.environ.get("KNUT_TEST_ROUNDS") or 0)
STEPS = int(os.environ.get("KNUT_TEST_STEPS") or 0)
ROWS = "SELECT range::BIGINT AS id, '{}' || md5(range::VARCHAR) || " + \
    " || ".join(f"md5('{k}' || range)" for k in range(8)) + " AS name FROM range({}, {})"


def create(table, keyed):
    table.create("id long required, name string", *(("--identifier", "id") if keyed else ()))
    table.append(ROWS.format("a", 0, 2000))


def change(table, rng, keyed, round_, deletes):
    low = 3000 * (round_ + 1)
    table.append(ROWS.format("a", low, low + rng.randint(1, 3000)))
    if deletes and rng.random() < 0.6:
        start = rng.randint(0, low)
        table.delete(f"id >= {start} AND id < {start + rng.randint(1, 2000)}")
    if keyed and rng.random() < 0.4:
        start = rng.randint(0, low)
        table("upsert", "--key", "id", "--sql", ROWS.format("u", start, start + 200)).ok()


def play(table, rng, keyed, step, deletes=None, rounds=5):
    """The table changes, then one to three steps. step() is one run of the client, and says whether it was killed."""
    print(f"KNUT_TEST_SEED={SEED}")
    steps = kills = round_ = 0
    while steps < STEPS if STEPS else round_ < (ROUNDS or rounds):
        change(table, rng, keyed, round_, keyed if deletes is None else deletes)
        round_ += 1
        for _ in range(rng.randint(1, 3)):
            steps += 1
            kills += step()
    print(f"{steps} steps, {kills} killed, {round_} changes")
    return kills


def same(got, table):
    assert sorted((r["id"], r["name"]) for r in got) == sorted((r["id"], r["name"]) for r in table.rows()), f"KNUT_TEST_SEED={SEED}"

# SPDX-License-Identifier: Apache-2.0
"""Doris under everything at once: a table that changes, faults drawn at random, clients and servers
killed in between, chunk sizes, parallelism, format and two-phase commits that change from run to run. In the end the copy
is the source. KNUT_TEST_SEED repeats a run, KNUT_TEST_ROUNDS (5) or KNUT_TEST_STEPS (runs of the client) make it longer."""
import os
import random
import signal

import pytest

from lib.doris import PASSWORD, USER, DorisDelivery, FakeDoris, be, fe
from lib.program import KILLED

SEED = int(os.environ.get("KNUT_TEST_SEED") or random.SystemRandom().randrange(2**31))
ROUNDS = int(os.environ.get("KNUT_TEST_ROUNDS") or 5)
STEPS = int(os.environ.get("KNUT_TEST_STEPS") or 0)
ROWS = "SELECT range::BIGINT AS id, '{}' || md5(range::VARCHAR) || " + \
    " || ".join(f"md5('{k}' || range)" for k in range(8)) + " AS name FROM range({}, {})"

# Each leaves the label's fate open, or harms an attempt that may be repeated.
FAULTS = [
    *(lambda name=name: fe(name) for name in ("close", "rst_on_body", "no_backend")),
    lambda: fe("http", 503),
    lambda: fe("redirect", "dead"),
    lambda: fe("error", op="state"),
    lambda: fe("html_200", op="state"),
    *(lambda name=name: be(name) for name in ("close", "drop_after_commit", "cut_half", "garbage", "empty",
                                              "fail_but_committed", "publish_timeout", "fail_leave_prepare",
                                              "unknown_status")),
    lambda: be("http", 503),
    lambda: be("cut_body", 1000),
    lambda: be("rst_body", 100),
    lambda: be("early_fail_close", 10),
    lambda: be("early_fail", "[CANCELLED]cancelled: closed"),
    lambda: be("fail", "[E-235]too many versions"),
    lambda: be("fail_with_rows", "[MEM_LIMIT_EXCEEDED]"),
    *(lambda name=name: be(name, op="2pc") for name in ("close", "drop_after")),
    lambda: fe("close", op="2pc"),
]
SECRET = {"DORIS_USER": USER, "DORIS_PASSWORD": PASSWORD}


def change(table, rng, keyed, round_):
    low = 3000 * (round_ + 1)
    table.append(ROWS.format("a", low, low + rng.randint(1, 3000)))
    if keyed and rng.random() < 0.6:
        start = rng.randint(0, low)
        table.delete(f"id >= {start} AND id < {start + rng.randint(1, 2000)}")
    if keyed and rng.random() < 0.4:
        start = rng.randint(0, low)
        table("upsert", "--key", "id", "--sql", ROWS.format("u", start, start + 200)).ok()


@pytest.mark.parametrize("keyed", [False, True], ids=["rows", "keys"])
def test_the_copy_is_the_source_after_everything(table, tmp_path, keyed):
    rng, kills = random.Random(f"{SEED} {keyed}"), 0
    print(f"KNUT_TEST_SEED={SEED}")
    doris = FakeDoris(tmp_path)
    try:
        table.create("id long required, name string", *(("--identifier", "id") if keyed else ()))
        table.append(ROWS.format("a", 0, 2000))
        folder = tmp_path / "into"
        folder.mkdir()
        delivery = DorisDelivery(table, folder, target="d.t", sink=doris.sink(create_table="true", format="arrow"))
        assert delivery.run().rc == 0  # made for Arrow: without the sequence column, which Arrow cannot fill
        steps, round_ = 0, 0
        while steps < STEPS if STEPS else round_ < ROUNDS:
            change(table, rng, keyed, round_)
            round_ += 1
            for _ in range(rng.randint(1, 3)):
                steps += 1
                delivery.sink = doris.sink(create_table="true", format=rng.choice(["json", "arrow"]),
                                           two_phase_commit=rng.choice(["true", "false"]))
                doris.faults(*({**rng.choice(FAULTS)(), "skip": rng.randint(0, 3)} for _ in range(rng.randint(0, 4))))
                kills += one_run(delivery, doris, rng)
            doris.faults()
        done = delivery.run()
        assert done.rc == 0, f"KNUT_TEST_SEED={SEED}: {done}"
        doris.check()
        got = sorted((r["id"], r["name"]) for r in doris.rows())
        assert got == sorted((r["id"], r["name"]) for r in table.rows()), f"KNUT_TEST_SEED={SEED}"
        assert "PRECOMMITTED" not in [state for _, _, state in doris.ctl("states", {"db": "d"})]
        assert kills > 0
        print(f"{steps} steps, {kills} killed, {round_} changes")
    finally:
        doris.end()


def one_run(delivery, doris, rng):
    """One client that may be killed, with a server that may be. How many died."""
    options = ("--chunk-mb", rng.randint(1, 3), "--parallel-loads", rng.randint(1, 4), "--threads", rng.randint(1, 2))
    if rng.random() < 0.25:
        words = ("cdc", "run", "--once", *delivery.words, *options)
        process = delivery.source.knut.start(*words, env=SECRET)
        wanted = doris.counts().get("loads_asked", 0) + 2
        while process.poll() is None and doris.counts().get("loads_asked", 0) < wanted:
            pass
        doris.kill()
        if rng.random() < 0.5 and process.poll() is None:
            process.send_signal(signal.SIGKILL)
        doris.start()
        process.communicate(timeout=120)
        return 1
    kill = rng.random() < 0.6
    done = delivery.run(*options, env={"KNUT_FAULT": f"*:{rng.randint(1, 25)}:kill"} if kill else None)
    assert done.rc in (0, 1, KILLED), f"KNUT_TEST_SEED={SEED}: {done}"
    return done.rc == KILLED

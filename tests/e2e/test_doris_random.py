# SPDX-License-Identifier: Apache-2.0
"""Doris under everything at once: a table that changes, faults drawn at random, clients and servers
killed in between, chunk sizes, parallelism, format and two-phase commits that change from run to run. In the end the copy
is the source. lib/soak.py says how to repeat a run and make it longer."""
import random
import signal

import pytest

from lib import soak
from lib.doris import PASSWORD, USER, DorisDelivery, FakeDoris, be, fe
from lib.program import KILLED

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


@pytest.mark.parametrize("keyed", [False, True], ids=["rows", "keys"])
def test_the_copy_is_the_source_after_everything(table, tmp_path, keyed):
    rng = random.Random(f"{soak.SEED} {keyed}")
    doris = FakeDoris(tmp_path)
    try:
        soak.create(table, keyed)
        folder = tmp_path / "into"
        folder.mkdir()
        delivery = DorisDelivery(table, folder, target="d.t", sink=doris.sink(create_table="true", format="arrow"))
        assert delivery.run().rc == 0  # made for Arrow: without the sequence column, which Arrow cannot fill
        assert soak.play(table, rng, keyed, lambda: one_run(delivery, doris, rng)) > 0
        doris.faults()
        done = delivery.run()
        assert done.rc == 0, f"KNUT_TEST_SEED={soak.SEED}: {done}"
        doris.check()
        soak.same(doris.rows(), table)
        assert "PRECOMMITTED" not in [state for _, _, state in doris.ctl("states", {"db": "d"})]
    finally:
        doris.end()


def one_run(delivery, doris, rng):
    """One client that may be killed, with a server that may be. How many died."""
    delivery.sink = doris.sink(create_table="true", format=rng.choice(["json", "arrow"]),
                               two_phase_commit=rng.choice(["true", "false"]))
    doris.faults(*({**rng.choice(FAULTS)(), "skip": rng.randint(0, 3)} for _ in range(rng.randint(0, 4))))
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
    assert done.rc in (0, 1, KILLED), f"KNUT_TEST_SEED={soak.SEED}: {done}"
    return done.rc == KILLED

# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL under everything at once: a table that changes, clients that are killed, connections that are cut and servers
that are stopped, also as by a crash; chunk sizes and threads that change from run to run. In the end the copy is the source.
lib/soak.py says how to repeat a run and make it longer."""
import random
import subprocess

import pytest

from lib import soak
from lib.lake import Delivery
from lib.pg_server import Server
from lib.program import KILLED

CUT = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'knut'"


@pytest.fixture(scope="module")
def server():
    made = Server()
    yield made
    made.close()


def disturb(process, server, rng):
    """Something happens to the server while the client runs."""
    how = rng.choice(["cut", "cut", "fast", "immediate"])
    for _ in range(rng.randint(1, 3) if how == "cut" else 1):
        try:
            process.wait(rng.uniform(0.02, 0.5))
        except subprocess.TimeoutExpired:
            pass
        if how == "cut":
            server.psql(CUT, check=False)
    if how != "cut":
        server.stop(how)
        server.launch()


def one_run(delivery, server, rng):
    """One client that may be killed, or a server that may be."""
    options = ("--chunk-mb", rng.randint(1, 3), "--threads", rng.randint(1, 3))
    if rng.random() < 0.6:
        done = delivery.run(*options, env={"KNUT_FAULT": f"*:{rng.randint(1, 60)}:kill"})
        assert done.rc in (0, KILLED), f"KNUT_TEST_SEED={soak.SEED}: {done}"
        return done.rc == KILLED
    process = delivery.source.knut.start("cdc", "run", "--once", *delivery.words, *options)
    disturb(process, server, rng)
    _, err = process.communicate(timeout=120)
    assert process.returncode in (0, 1), f"KNUT_TEST_SEED={soak.SEED}: {process.returncode} {err}"
    return 0


@pytest.mark.parametrize("keyed", [False, True], ids=["rows", "keys"])
def test_the_copy_is_the_source_after_everything(table, tmp_path, server, monkeypatch, keyed):
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    rng, database = random.Random(f"{soak.SEED} {keyed}"), "keys" if keyed else "rows"
    server.psql(f"CREATE DATABASE {database} TEMPLATE template0")
    soak.create(table, keyed)
    delivery = Delivery(table, tmp_path, target="app.copy", sink=server.sink(database))
    delivery.run().ok()
    kills = soak.play(table, rng, keyed, lambda: one_run(delivery, server, rng), deletes=True, rounds=3)
    done = delivery.run()
    assert done.rc == 0 and (kills > 0 or not soak.STEPS), f"KNUT_TEST_SEED={soak.SEED}: {done}"
    assert delivery.deliver()["status"] == "idle"
    soak.same(server.ask("SELECT id, name FROM app.copy", database=database), table)
    assert not server.psql("SELECT label FROM app._knut_loads GROUP BY label HAVING count(*) > 1", database)

# SPDX-License-Identifier: Apache-2.0
"""Exactly once into PostgreSQL: the delivering process is killed at its steps, the server's
connections are cut and the server itself is restarted, also as after a crash, at random moments.

After each the delivery is run again until it says ok; then the copy must equal the source and each
load must be there once. KNUT_TEST_SEED repeats the random part of a run.
"""
import os
import random
import shutil
import signal
import subprocess
import threading
import time

import duckdb
import pytest

from lib import kill
from lib.pg_server import Server
from lib.program import KILLED

SEED = int(os.environ.get("KNUT_TEST_SEED") or random.SystemRandom().randrange(2**31))
HISTORIES = ("rows", "keyed", "reloaded")
TARGET = "app.copy"


@pytest.fixture(scope="module")
def server():
    made = Server()
    yield made
    made.close()


class PgStage(kill.Stage):
    """A stage whose destination is the database "copy", kept as the template "before"."""

    def __init__(self, stage, server):
        super().__init__(stage.table.knut.path, stage.place, stage.folder, stage.name)
        self.server, self.name = server, stage.name
        self.delivery.sink, self.delivery.target = server.sink("copy"), TARGET

    def database(self, name, template):
        self.server.psql(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        self.server.psql(f"CREATE DATABASE {name} TEMPLATE {template}")

    def begin(self):
        if not (self.place / "before").exists():
            self.database("copy", "template0")
            super().begin()
            self.database("before", "copy")
            return
        super().begin()
        self.database("copy", "before")

    def passes(self):
        """The last pass of each point at which journal and destination differ in what they know."""
        self.begin()
        trace = self.place / "trace"
        self.delivery.run(*kill.CALM, env={"KNUT_FAULT_TRACE": trace}).ok()
        self.check()
        last = dict(kill.points(trace.read_text().split()))
        return [(name, n) for name, n in last.items()
                if name.startswith("sink-") or name in ("journal-sent-written", "window-begun")]

    def check(self, idle=True):
        if idle:
            report = self.delivery.deliver()
            assert report["status"] == "idle", report
        twice = self.server.psql("SELECT label FROM app._knut_loads GROUP BY label HAVING count(*) > 1", "copy")
        assert not twice
        rows = self.place / "rows.csv"
        rows.write_text(self.server.psql(f"COPY (SELECT id, name, n, encode(payload, 'hex') FROM {TARGET}) TO STDOUT "
                                         "(FORMAT csv)", "copy") + "\n")
        with duckdb.connect() as db:
            db.execute("CREATE TABLE copy AS SELECT id, name, n, unhex(hex) AS payload FROM read_csv("
                       f"'{rows}', header = false, columns = {{'id': 'BIGINT', 'name': 'VARCHAR', 'n': 'INTEGER', "
                       "'hex': 'VARCHAR'})")
            kill.assert_equal_tables(db, "copy", f"'{self.folder}/expected.parquet'")


@pytest.fixture(params=HISTORIES)
def stage(program, shared, server, tmp_path, request, monkeypatch):
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    made = kill.stage(program, shared, tmp_path / "stage", request.param)
    made.name = request.param
    yield PgStage(made, server)
    shutil.rmtree(tmp_path / "stage")


def until_ok(stage, rng, tries=3):
    for _ in range(tries):
        done = stage.delivery.run("--chunk-mb", rng.randint(1, 4), "--threads", rng.randint(1, 4))
        if done.rc == 0:
            return
    raise AssertionError(f"KNUT_TEST_SEED={SEED}: still failing: {done}")


def checked(stage, what, idle=True):
    try:
        stage.check(idle)
    except AssertionError as wrong:
        raise AssertionError(f"KNUT_TEST_SEED={SEED}, {what}: {wrong}") from wrong


def test_a_kill_at_each_point_loses_and_doubles_nothing(stage):
    rng, passes = random.Random("points"), stage.passes()
    assert {"sink-begun", "sink-rows-written", "sink-before-commit", "sink-after-commit"} <= {name for name, _ in passes}
    for point, n in passes:
        stage.begin()
        done = stage.delivery.run(*kill.CALM, env={"KNUT_FAULT": f"{point}:{n}:kill"})
        assert done.rc == KILLED, f"{point}:{n} was not reached: {done}"
        until_ok(stage, rng)
        checked(stage, f"{point}:{n}", idle=n == 1)


def test_a_failure_after_the_commit_is_settled_by_asking(stage):
    stage.begin()
    stage.delivery.run(*kill.CALM, env={"KNUT_FAULT": "sink-after-commit:1:fail"}).ok()
    checked(stage, "sink-after-commit")


def test_connections_are_cut_at_random_moments(stage):
    rng = random.Random(f"{SEED} cut {stage.name}")
    cut_all = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'knut'"
    for _ in range(2):
        stage.begin()
        process = start(stage)
        cuts = 0
        while process.poll() is None and cuts < 3:
            try:
                process.wait(rng.uniform(0.02, 0.4))
            except subprocess.TimeoutExpired:
                cuts += int(stage.server.psql(cut_all) or 0)
        process.communicate()
        until_ok(stage, rng)
        checked(stage, f"{cuts} cuts")


def test_the_server_is_restarted_at_random_moments(stage):
    rng = random.Random(f"{SEED} restart {stage.name}")
    for how in rng.choice(["fast", "immediate"]), "immediate":
        stage.begin()
        process = start(stage)
        try:
            process.wait(rng.uniform(0.05, 0.7))
        except subprocess.TimeoutExpired:
            pass
        stage.server.stop(how)
        stage.server.launch()
        process.communicate()
        until_ok(stage, rng)
        checked(stage, how)


def start(stage):
    return stage.table.knut.start("cdc", "run", "--once", *stage.delivery.words, *kill.CALM, "--output", "json")


def test_a_listener_goes_on_after_the_server_was_gone(stage):
    stage.begin()
    words = ("cdc", "run", *stage.delivery.words, *kill.CALM, "--interval", "1", "--max-backoff", "1")
    stage.server.stop("fast")
    process = stage.table.knut.start(*words)
    noise = threading.Thread(target=process.communicate)
    noise.start()
    stage.server.launch()
    deadline = time.monotonic() + 60
    query = f"SELECT count(*) FROM {TARGET}"
    with duckdb.connect() as db:
        wanted = str(db.execute(f"SELECT count(*) FROM '{stage.folder}/expected.parquet'").fetchone()[0])
    while stage.server.psql(query, "copy", check=False) != wanted:
        assert process.poll() is None and time.monotonic() < deadline
    process.send_signal(signal.SIGTERM)
    noise.join(60)
    assert process.returncode == 0
    until_ok(stage, random.Random(1))
    checked(stage, "listener")

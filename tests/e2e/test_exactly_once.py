# SPDX-License-Identifier: Apache-2.0
"""Exactly once, however often the process dies.

The delivering process is killed (SIGKILL) at every journal step and every step of the destination,
at random passes of random points, and at random moments; between runs chunk size, threads, memory
and mode change. After each kill it is run again until it says ok, and the destination must hold
exactly the source's rows. Writers are killed at each of their steps: the table stays loadable, with
the rows of before or of after. KNUT_TEST_SEED repeats the random part of a run.
"""
import os
import random
import shutil
import time

import duckdb
import pytest

from lib import kill
from lib import rows as R
from lib.program import KILLED

PARTS = 4
RANDOM_KILLS = 10  # at random points, and about as many at random moments, for each history
SEED = int(os.environ.get("KNUT_TEST_SEED") or random.SystemRandom().randrange(2**31))
HISTORIES = list(kill.HISTORIES)


@pytest.fixture
def stage_of(program, shared, tmp_path):
    return lambda name: kill.stage(program, shared, tmp_path / "stage", name)


def other_options(stage, rng):
    """Options that a restart may have, whatever the killed run had."""
    return ("--chunk-mb", rng.randint(1, 4), "--threads", rng.randint(1, 4), "--parallel-loads", rng.randint(1, 4),
            "--memory-limit", rng.choice(["96MiB", "256MiB", "1GiB"]), "--mode", rng.choice(stage.history.modes))


def run_until_ok(stage, rng):
    for _ in range(3):
        done = stage.delivery.run(*other_options(stage, rng))
        if done.rc == 0:
            return done
    raise AssertionError(f"still failing after three runs: {done}")


# ---- at every point ----


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", HISTORIES)
def test_a_kill_at_each_point_loses_and_doubles_nothing(stage_of, name, part):
    stage, rng = stage_of(name), random.Random(f"{name} {part}")
    for point, n in stage.points[part::PARTS]:
        stage.begin()
        done = stage.delivery.run(*kill.CALM, env={"KNUT_FAULT": f"{point}:{n}:kill"})
        assert done.rc == KILLED, f"{point}:{n} was not reached: {done}"
        run_until_ok(stage, rng)
        try:
            stage.check(idle=n == 1)
        except AssertionError as wrong:
            raise AssertionError(f"after a kill at {point}, pass {n}: {wrong}") from wrong


def test_the_points_are_those_of_the_protocol(stage_of):
    steps = {"journal-plan", "journal-plan-written", "journal-sent", "journal-sent-written", "sink-begun",
             "sink-rows-written", "sink-before-commit", "sink-after-commit", "journal-proven",
             "journal-proven-written", "before-cursor", "after-cursor"}
    for name in HISTORIES:
        stage = stage_of(name)
        passed = dict(stage.points)  # name -> its last pass that is killed
        assert steps <= set(passed), name
        assert passed["sink-begun"] >= 3, f"{name}: too few chunks"
        shutil.rmtree(stage.place)
    assert "sink-claim-after-commit" in dict(stage.points), "a reloaded table takes its target again"


def test_there_are_at_least_200_kills(stage_of):
    kills = 0
    for name in HISTORIES:
        stage = stage_of(name)
        kills += len(stage.points) + RANDOM_KILLS
        shutil.rmtree(stage.place)
    assert kills >= 200  # kills at random moments are not counted: some come too late


# ---- at random points, again and again ----


@pytest.mark.parametrize("name", HISTORIES)
def test_kills_at_random_points_one_after_another(stage_of, name):
    """Each killed run starts from what the last one left."""
    stage, rng = stage_of(name), random.Random(f"{SEED} {name}")
    kills = 0
    while kills < RANDOM_KILLS:
        stage.begin()
        for _ in range(rng.randint(1, 5)):
            done = stage.delivery.run(*other_options(stage, rng), env={"KNUT_FAULT": f"*:{rng.randint(1, 25)}:kill"})
            if done.rc == 0:
                break
            assert done.rc == KILLED, f"KNUT_TEST_SEED={SEED}: {done}"
            kills += 1
        run_until_ok(stage, rng)
        try:
            stage.check()
        except AssertionError as wrong:
            raise AssertionError(f"KNUT_TEST_SEED={SEED}: {wrong}") from wrong


@pytest.mark.parametrize("name", HISTORIES)
def test_kills_at_random_moments(stage_of, name):
    stage, rng = stage_of(name), random.Random(f"{SEED} {name} moments")
    stage.begin()
    started = time.monotonic()
    stage.delivery.run(*kill.CALM).ok()
    whole, kills = time.monotonic() - started, 0
    for _ in range(RANDOM_KILLS // 2):
        stage.begin()
        for _ in range(3):
            words = ("cdc", "run", "--once", *stage.delivery.words, *other_options(stage, rng))
            if not stage.table.knut.killed_after(rng.uniform(0, whole), *words):
                break
            kills += 1
        run_until_ok(stage, rng)
        try:
            stage.check()
        except AssertionError as wrong:
            raise AssertionError(f"KNUT_TEST_SEED={SEED}: {wrong}") from wrong
    assert kills >= RANDOM_KILLS // 4


def test_a_failure_at_each_point_is_told_and_mended_by_the_next_run(stage_of):
    stage, rng, told = stage_of("rows"), random.Random("fail"), 0
    for point, n in stage.points:
        if n != 1:
            continue
        stage.begin()
        done = stage.delivery.run(*kill.CALM, env={"KNUT_FAULT": f"{point}:{n}:fail"})
        if done.rc:  # else the step was tried again within the run
            done.fails(1, f"'{point}' was told to fail")
            told += 1
        run_until_ok(stage, rng)
        stage.check(idle=False)
    assert told >= 5


def test_kills_while_the_table_goes_on_changing(table, delivery):
    """A commit between a kill and its restart: the window in flight is finished as it was planned,
    then the new one follows."""
    rng, steps = random.Random(SEED), []
    # Each round has ids of its own: a key comes once.
    table.create(kill.SCHEMA, "--identifier", "id")
    for round_ in range(6):
        step = rng.choice([("append", kill.rows(2000 + round_ * 1000, 3000 + round_ * 1000, "a")),
                           ("delete", f"n = {round_} AND id < 6000"),
                           ("overwrite", f"id < {round_ * 300} OR n = 6 AND id < 9000",
                            kill.rows(10000 + round_ * 500, 10500 + round_ * 500, "o"))]) if steps else \
            ("append", kill.rows(0, 3000, "a"))
        kill.commit(table, step)
        steps.append(step)
        delivery.run("--chunk-mb", "1", env={"KNUT_FAULT": f"*:{rng.randint(1, 20)}:kill"})
    delivery.run().ok()
    expected = delivery.folder / "expected.parquet"
    kill.model(steps, expected)
    try:
        with duckdb.connect() as db:
            db.execute(f"ATTACH '{delivery.file}' AS copy (READ_ONLY)")
            kill.assert_equal_tables(db, "copy.main.copy", f"'{expected}'")
    except AssertionError as wrong:
        raise AssertionError(f"KNUT_TEST_SEED={SEED}: {wrong} {[step[:2] for step in steps]}") from wrong


def test_a_restart_with_the_key_named_differently_does_not_change_a_planned_window(stage_of):
    """What decides a chunk's bytes is in the plan, not in the configuration of the restart."""
    stage = stage_of("keyed")
    for point in "journal-plan-written", "sink-after-commit", "journal-sent-written":
        stage.begin()
        done = stage.delivery.run(*kill.CALM, env={"KNUT_FAULT": f"{point}:1:kill"})
        assert done.rc == KILLED
        stage.delivery.run("--key", "id", "--max-rewrite-bytes", "2GiB", "--chunk-mb", "7").ok()
        stage.check()


# ---- writers ----

SMALL = "SELECT range::BIGINT AS id, 'n' || range AS name, (range % 3)::INTEGER AS part FROM range({}, {})"
WRITES = {
    "append": ("append", "--sql", SMALL.format(100, 120)),
    "delete": ("delete", "--where", "id < 7 OR id = 20"),
    "overwrite": ("overwrite", "--where", "part = 1", "--sql", SMALL.format(200, 230)),
    "merging delete": ("delete", "--mode", "merge-on-read", "--where", "id < 7 OR id = 20"),
    "upsert": ("upsert", "--key", "id", "--sql", SMALL.format(50, 70).replace("'n'", "'u'")),
    "merging upsert": ("upsert", "--mode", "merge-on-read", "--key", "id", "--sql",
                       SMALL.format(50, 70).replace("'n'", "'u'")),
}


class Restorable:
    """A table whose catalog can be put back: its other files are never changed."""

    def __init__(self, table):
        self.table, self.saved = table, table.db.with_name("saved.db")
        shutil.copy(table.db, self.saved)

    def restore(self):
        for suffix in "", "-wal", "-shm", "-journal":
            self.table.db.with_name(f"catalog.db{suffix}").unlink(missing_ok=True)
        shutil.copy(self.saved, self.table.db)


@pytest.fixture(params=["2", "3"], ids=["v2", "v3"])
def written(table, request):
    table.create("id long, name string, part int", "--partition", "part", "--format-version", request.param)
    table.append(SMALL.format(0, 30))
    table.append(SMALL.format(30, 60))
    return table


@pytest.mark.parametrize("write", WRITES)
def test_a_writer_killed_at_each_point_leaves_before_or_after(written, tmp_path, write):
    before, words = R.multiset(written.rows()), WRITES[write]
    snapshots = len(written.history())
    saved, trace = Restorable(written), tmp_path / "trace"
    written(*words, env={"KNUT_FAULT_TRACE": trace}).ok()
    after = R.multiset(written.rows())
    assert before != after
    points = kill.points(trace.read_text().split())
    assert {"write-data-written", "write-before-commit", "catalog-pointer-moved"} <= {name for name, _ in points}
    for point, n in points:
        saved.restore()
        done = written(*words, env={"KNUT_FAULT": f"{point}:{n}:kill"})
        assert done.rc == KILLED, f"{point}:{n}: {done}"
        found = R.multiset(written.rows())
        assert found in (before, after), f"{point}:{n}"
        assert len(written.history()) == snapshots + (found == after)
        if found == before:
            written(*words).ok()
            assert R.multiset(written.rows()) == after, f"{point}:{n}"


def test_a_destination_forgets_old_loads(delivery):
    delivery.source.create("id long")
    for low in range(2):
        delivery.source.append(f"SELECT {low}::BIGINT AS id")
        delivery.deliver()
    with duckdb.connect(str(delivery.file)) as db:
        db.execute("UPDATE _knut_loads SET seq = seq + 5000")
        db.execute("INSERT INTO _knut_loads SELECT range, 'l' || range, delivery, target, 'w' || range, 1, loaded_at "
                   "FROM range(1, 5001), (FROM _knut_loads WHERE seq = 5001)")
    delivery.source.append("SELECT 9::BIGINT AS id")
    delivery.deliver()
    assert len(delivery.loads()) == 1000 + 2
    delivery.source.append("SELECT 10::BIGINT AS id")
    delivery.deliver()
    R.assert_same(delivery.rows(), delivery.source.rows())


@pytest.mark.parametrize("write", WRITES)
def test_a_writer_that_fails_at_a_point_leaves_no_files(written, tmp_path, write):
    """Before the commit the attempt's files go; what may have been committed stays."""
    saved, words = Restorable(written), WRITES[write]
    before, files = R.multiset(written.rows()), all_files(written)
    for point in "write-data-written", "write-manifest-written", "write-list-written", "write-before-commit":
        written(*words, env={"KNUT_FAULT": f"{point}:1:fail"}).fails(1, f"'{point}' was told to fail")
        assert R.multiset(written.rows()) == before
        assert all_files(written) == files, point
    written(*words).ok()
    saved.restore()


def all_files(table):
    return {p for p in table.warehouse.rglob("*") if p.is_file() and not p.name.startswith(("catalog.db", "saved.db"))}


def test_a_killed_create_can_be_made_again(table, tmp_path):
    table.knut("table", "create", "--warehouse", table.warehouse, "--table", "ns.first", "--schema", "a int",
               env={"KNUT_FAULT_TRACE": tmp_path / "trace"}).ok()
    points = kill.points((tmp_path / "trace").read_text().split())
    assert len(points) >= 3
    for i, (point, n) in enumerate(points):
        words = ("table", "create", "--warehouse", table.warehouse, "--table", f"ns.t{i}", "--schema", "a int")
        done = table.knut(*words, env={"KNUT_FAULT": f"{point}:{n}:kill"})
        assert done.rc == KILLED, str(done)
        table.knut(*words, "--if-not-exists").ok()
        table.name = f"ns.t{i}"
        assert table.rows() == []

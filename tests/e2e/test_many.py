# SPDX-License-Identifier: Apache-2.0
"""Many tables in one process: knut.yaml, its errors, and deliveries that leave each other alone."""
import os
import random
import signal
import socket

import pytest

from lib.many import Many
from lib.program import KILLED

SEED = int(os.environ.get("KNUT_TEST_SEED") or random.SystemRandom().randrange(2**31))


@pytest.fixture
def many(knut, tmp_path):
    return Many(knut, tmp_path)


@pytest.fixture
def three(many):
    for name in "abc":
        many.table(name)
    return many.write("abc")


@pytest.fixture
def deaf():
    """An address that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        yield server.getsockname()[1]


# ---- one round ----


def test_all_tables_of_a_file_are_delivered(three):
    reports = three.reports(three.once().ok())
    assert {t: len(r["windows"]) for t, r in reports.items()} == {"ns.a": 1, "ns.b": 1, "ns.c": 1}
    three.check()
    three.append("b", 5, 100)
    reports = three.reports(three.once().ok())
    assert {t: r["status"] for t, r in reports.items()} == {"ns.a": "idle", "ns.b": "ok", "ns.c": "idle"}
    three.check()


def test_paths_count_from_the_folder_of_the_file(three, knut, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    knut("cdc", "run", "-c", "../knut.yaml", "--once", cwd=elsewhere).ok()
    three.check()
    assert not list(elsewhere.iterdir())


def test_one_delivery_of_a_file_can_be_named(three):
    three.once("--delivery", "ns.b").ok()
    assert {name: row["status"] for name, row in three.status().items()} == {"ns.a": "new", "ns.b": "ok", "ns.c": "new"}
    three("run", "--once", "--delivery", "ns.x").fails(1, "no delivery 'ns.x'", "ns.a, ns.b, ns.c")
    done = three("reload", "--delivery", "ns.b", "--output", "json").ok().row
    assert done["epoch"] == 1
    three("reload").fails(2, "which delivery", "--delivery")


def test_a_missing_table_stops_no_other(three):
    three.write(["a", {"table": "ns.nope"}, "c"])
    done = three.once()
    assert done.rc == 1 and "1 of 3 deliveries did not end well; ns.nope" in done.err
    assert three.reports(done)["ns.nope"]["status"] == "failed"
    three.check("a", "c")


def test_a_refused_table_stops_no_other_and_gives_the_status(three):
    three.once().ok()
    three.tables["b"].delete("id < 3")
    three.append("c", 5, 100)
    three.write(["a", {"table": "ns.b", "max-rewrite-bytes": 1}, "c", {"table": "ns.nope"}])
    done = three.once()
    assert done.rc == 3 and "ns.b" in done.err.splitlines()[-1] and "max-rewrite-bytes" in done.err
    assert three.reports(done)["ns.b"]["status"] == "refused"
    three.check("a", "c")
    assert three.json("check").fails(3, "2 deliveries would not run; ns.b").rows[1]["result"] == "refused"
    three.write("abc")
    three.once().ok()
    three.check()


def test_a_destination_that_cannot_be_reached_stops_no_other(three):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    three.write(["a", {"table": "ns.b", "sink": f"postgresql://127.0.0.1:{port}/db", "target": "s.b"}, "c"])
    done = three.once()
    assert done.rc == 1 and "ns.b" in done.err
    three.check("a", "c")


def test_values_come_from_the_environment(three):
    three.write(["a", {"table": "ns.b", "target": "${SCHEMA:-main}.${NAME}"}])
    three("check", env={"NAME": ""}).fails(2, r"knut.yaml:\d+:\d+: target.*SCHEMA|TABLE")
    three("check").fails(2, r"knut.yaml:\d+:\d+: target: the environment variable NAME is not set")
    three.once(env={"SCHEMA": "s", "NAME": "$x$"}).ok()
    assert len(three.copied("b", 's."$x$"')) == 10


# ---- what is wrong is told with its place ----

GOOD = """\
state: state.db
sources:
  lake: {warehouse: wh}
sinks:
  copy: duckdb:copy.duckdb
  coarse: {sink: "duckdb:other.duckdb", chunk-mb: 8}
defaults:
  source: lake
deliveries:
- table: ns.a
  sink: copy
- table: ns.b
  sink: coarse
"""
WRONG = [
    ("state:", "sate:", r"yaml:1:1: knut.yaml has no key 'sate': did you mean 'state'\?"),
    ("chunk-mb: 8", "chunk_mb: 8", r"yaml:6:41: a sink has no key 'chunk_mb': did you mean 'chunk-mb'\?"),
    ("chunk-mb: 8", "chunk-mb: much", r"yaml:6:41: chunk-mb: 'much' is not a whole number"),
    ("warehouse: wh", "warehose: wh", r"yaml:3:10: a source has no key 'warehose': did you mean 'warehouse'\?"),
    ("sink: copy", "sink: cpy", r"yaml:11:3: sink: there is no sink 'cpy': did you mean 'copy'\?"),
    ("source: lake", "source: sea", r"yaml:8:3: source: there is no source 'sea'"),
    ("sink: copy", "snk: copy", r"yaml:10:3: a delivery needs a sink"),
    ("  sink: copy", "  sink: copy\n  state: x", r"yaml:12:3: a delivery has no key 'state'"),
    ("ns.b", "ns.a", r"yaml:12:3: the delivery in line 10 is called 'ns.a' too"),
    ("  sink: coarse", "  sink: copy\n  target: a", r"delivery ns.b: 'ns.a' in line 10 delivers into main.a too"),
    ("ns.b", "b", r"delivery b"),
    ("duckdb:copy", "duck:copy", r"delivery ns.a: sink 'duck'"),
    ("  lake: {warehouse: wh}", "  lake: {warehouse: wh, root: /x}", r"delivery ns.a: --warehouse and --root"),
    ("state: state.db", "state: state.db\nworkers: 64", r"64 workers need a memory-limit of 2048MiB"),
    ("state: state.db", "state:", r"yaml:1:1: state: needs a value"),
    ("state: state.db", "state: [x]", r"yaml:1:1: state: expected a single value"),
    ("deliveries:", "delivries:", r"yaml:9:1: knut.yaml has no key 'delivries': did you mean 'deliveries'\?"),
    ("- table: ns.a", "- &x table: ns.a", r"yaml:10:3: anchors"),
    ("source: lake", "source: *x", r"yaml:8:11: aliases"),
    ("state: state.db", "state: !!str x", r"yaml:1:8: tags"),
    ("state: state.db", "state: a\nstate: b", r"yaml:2:1: 'state' is here for the second time, the first is in line 1"),
    ("  source: lake", "\tsource: lake", r"yaml:8:1: found character that cannot start any token"),
    ("sinks:", "sinks: {", r"yaml:\d+:\d+: did not find expected"),
    ("state: state.db", "state: ${", r"yaml:1:1: state: '\$\{' without its '\}'"),
]


@pytest.mark.parametrize(("old", "new", "message"), WRONG)
def test_what_is_wrong_in_a_file_is_told_with_line_and_column(many, old, new, message):
    assert old in GOOD
    many.file.write_text(GOOD.replace(old, new, 1))
    many("check").fails(2, message)


def test_a_file_goes_alone(three):
    three("run", "--once", "--sink", "null:").fails(2, "--config has tables and sinks of its own")
    three("run", "--once", "--warehouse", "wh").fails(2, "--config has tables and sinks of its own")
    three.knut("cdc", "run", "-c", three.folder / "nope.yaml").fails(1, "nope.yaml: No such file")
    three.knut("cdc", "run", "--delivery", "x", "--sink", "null:").fails(2, "--delivery goes with --config")


# ---- looking ----


def test_status_shows_how_far_each_is_behind(three):
    three.once().ok()
    three.append("b", 7, 100)
    three.append("b", 8, 200)
    status = three.status()
    assert [status[f"ns.{t}"]["behind"] for t in "abc"] == [0, 2, 0]
    assert status["ns.b"]["rows_behind"] == 15 and status["ns.b"]["bytes_behind"] > 0
    assert status["ns.b"]["seconds_behind"] >= 0 and status["ns.a"]["seconds_behind"] == 0
    assert [r["windows"] for r in three.json("check").ok().rows] == [0, 2, 0]


PHASES = [f"{phase}_seconds" for phase in ("plan", "begin", "read", "encode", "load", "record")]


def test_measure_shows_where_the_time_goes_beside_a_reload(three):
    changes, reload = three.json("measure", "--delivery", "ns.a").ok().rows
    assert (reload["what"], reload["rows"]) == ("reload (measured)", 10)
    three.once().ok()
    three.append("b", 20, 100)
    changes, reload = three.json("measure", "--delivery", "ns.b").ok().rows
    assert changes["what"] == "changes" and (changes["windows"], changes["rows"]) == (1, 20)
    assert reload["what"] == "reload (measured)" and (reload["windows"], reload["rows"]) == (1, 30)
    assert all(row["seconds"] > 0 and row["bytes"] > 0 for row in (changes, reload))
    assert all(changes[phase] >= 0 and reload[phase] is None for phase in PHASES)
    three.check()
    three("measure", "--delivery", "ns.b").fails(1, "nothing to measure")


def test_measure_reckons_where_the_first_window_had_no_rows(many):
    many.table("a").delete("true")
    many.write("a").once().ok()
    many.append("a", 10)
    changes, reload = many.json("measure").ok().rows
    assert reload["what"] == "reload (estimate)" and reload["rows"] == 10
    assert all(reload[phase] >= 0 for phase in PHASES)


# ---- for ever ----


def test_a_service_delivers_what_is_committed_and_ends_with_0(three):
    with three.start() as running:
        for name in "abc":
            running.delivered(name)
        three.append("c", 5, 100)
        running.delivered("c")
        assert running.stop(signal.SIGTERM) == 0
    three.check()


def test_tables_whose_destination_hangs_stop_no_other(three, deaf):
    """One worker is left to those that are not known to be slow."""
    for name in "xyz":
        three.table(name)
    stuck = [{"table": f"ns.{t}", "sink": f"postgresql://127.0.0.1:{deaf}/db", "target": f"s.{t}"}
             for t in "xyz"]
    three.write([*stuck, "a", "b", "c"])
    with three.start() as running:
        for name in "abc":
            running.delivered(name)
        three.append("a", 5, 100)
        running.delivered("a")
    three.check(*"abc")


def test_a_failing_delivery_is_tried_again_by_itself(three):
    with three.start(env={"KNUT_FAULT": "sink-before-commit:2:fail"}) as running:
        failed = running.event("round-failed")["delivery"]
        running.event("window-delivered", delivery=failed)
        assert running.stop(signal.SIGTERM) == 0
    three.once().ok()
    three.check()


def test_a_journal_serves_one_process(three):
    with three.start() as running:
        running.event("service-started")
        three.once().fails(1, "state.db is held by process")


# ---- another file ----


def test_sighup_adds_changes_and_removes_deliveries(three):
    three.write(["a", "b"])
    with three.start() as running:
        running.delivered("a")
        running.delivered("b")
        three.write(["b", "c"], sinks={"copy": {"sink": "duckdb:copy.duckdb", "chunk-mb": 1}})
        running.signal(signal.SIGHUP)
        running.event("delivery-removed", delivery="ns.a")
        running.event("delivery-changed", delivery="ns.b")
        running.event("delivery-added", delivery="ns.c")
        running.event("config-reloaded")
        running.delivered("c")
        three.append("a", 5, 100)
        three.append("b", 5, 100)
        running.delivered("b")
        assert running.stop(signal.SIGTERM) == 0
    three.check("b", "c")
    assert len(three.copied("a")) == 10


def test_a_wrong_file_changes_nothing_and_is_told(three):
    with three.start() as running:
        for name in "abc":
            running.delivered(name)
        good = three.file.read_text()
        three.file.write_text(good.replace('"interval"', '"intervall"'))
        running.signal(signal.SIGHUP)
        told = running.event("config-rejected")
        assert "did you mean 'interval'" in told["error"] and "knut.yaml:" in told["error"]
        three.append("a", 5, 100)
        running.delivered("a")
        three.write("abc", workers=2)
        running.signal(signal.SIGHUP)
        running.event("config-needs-restart")
        assert running.stop(signal.SIGTERM) == 0
    three.check()


# ---- exactly once ----


def test_killed_anywhere_nothing_is_lost_or_doubled(three):
    rng = random.Random(SEED)
    first = 100
    for _ in range(int(os.environ.get("KNUT_TEST_KILLS", "6"))):
        for name in "abc":
            three.append(name, rng.randint(1, 20), first)
            first += 100
        done = three.once(env={"KNUT_FAULT": f"*:{rng.randint(1, 40)}:kill"})
        assert done.rc in (0, KILLED), f"KNUT_TEST_SEED={SEED}: {done}"
    three.once().ok()
    three.check()


def test_sigterm_anywhere_leaves_whole_windows(three):
    rng = random.Random(SEED)
    three.once().ok()
    for name in "abc":
        for i in range(4):
            three.append(name, 10, 100 + 10 * i)
    point = rng.choice(["journal-plan", "sink-begun", "sink-before-commit", "before-cursor"])
    with three.start(env={"KNUT_FAULT": f"{point}:{rng.randint(1, 8)}:stop"}) as running:
        assert running.process.wait(60) == 0, f"KNUT_TEST_SEED={SEED}"
    for name in "abc":
        assert len(three.copied(name)) % 10 == 0, f"KNUT_TEST_SEED={SEED}"
    three.once().ok()
    three.check()


def test_the_file_may_be_long(many):
    """Sixty deliveries of two workers: each has its turn."""
    many.table("a")
    rows = [{"name": f"d{i}", "table": "ns.a", "sink": "null:", "target": f"t{i}"} for i in range(60)]
    many.write(rows, workers=2, memory_limit="128MiB")
    done = many.once().ok()
    assert len(done.rows) == 60
    assert {r["deliveries"][0]["status"] for r in done.rows} == {"ok"}
    assert {r["deliveries"][0]["delivery"] for r in done.rows} == {row["name"] for row in rows}

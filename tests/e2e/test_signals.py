# SPDX-License-Identifier: Apache-2.0
"""SIGTERM and SIGINT during `cdc run`: the window in flight is finished, the cursor is durable.

Fault points send SIGTERM from inside (action `stop`), so that it comes at a known step; where a
signal comes from outside, the tests wait for a line that the program prints, never for time.
"""
import json
import os
import signal

import pytest

from lib import rows as R

WINDOWS = 5


@pytest.fixture
def waiting(table, delivery):
    """A delivery at snapshot 1, with WINDOWS appends behind it."""
    table.create("id long, name string")
    table.append("SELECT -1 AS id, 'first' AS name")
    delivery.deliver()
    for i in range(WINDOWS):
        table.append(f"SELECT {i} AS id, 'w{i}' AS name FROM range(10)")
    return delivery


def windows_behind(delivery):
    return delivery.command("status").ok().row["behind"]


def check_prefix(delivery):
    """Whole windows are there, in order, and the cursor is behind the last; how many."""
    ids = [row["id"] for row in delivery.rows() if row["id"] >= 0]
    done = len(set(ids))
    assert sorted(ids) == sorted(list(range(done)) * 10)
    assert windows_behind(delivery) == WINDOWS - done
    return done


def finish(delivery):
    delivery.deliver()
    R.assert_same(delivery.rows(), delivery.source.rows())


POINTS = ["journal-plan", "journal-plan-written", "sink-begun", "sink-before-commit", "sink-after-commit",
          "journal-proven-written", "before-cursor"]


@pytest.mark.parametrize("point", POINTS)
def test_sigterm_in_a_window_ends_one_round_after_it(waiting, point):
    done = waiting.run(env={"KNUT_FAULT": f"{point}:2:stop"})
    assert done.rc == 128 + signal.SIGTERM, str(done)
    assert "stopped by a signal" in done.error and "again" in done.error
    report = done.row["deliveries"][0]
    assert len(report["windows"]) == check_prefix(waiting) == 2
    finish(waiting)


@pytest.mark.parametrize("point", POINTS)
def test_sigterm_in_the_last_window_is_no_failure(waiting, point):
    waiting.run(env={"KNUT_FAULT": f"{point}:{WINDOWS}:stop"}).ok()
    assert check_prefix(waiting) == WINDOWS


@pytest.mark.parametrize("point", POINTS)
def test_sigterm_ends_the_listener_with_0(waiting, point):
    done = waiting.command("run", "--interval", "1000", env={"KNUT_FAULT": f"{point}:3:stop"}).ok()
    assert check_prefix(waiting) == 3
    windows = [w for line in done.rows for w in line["deliveries"][0]["windows"]]
    assert len(windows) == 3
    finish(waiting)


def listener(delivery, *args, **more):
    words = (*delivery.words, "--output", "json", "--log-level", "info", "--log-format", "json", *args)
    return delivery.source.knut.start("cdc", "run", *words, **more)


def next_event(process, name):
    for line in process.stderr:
        if json.loads(line)["event"] == name:
            return
    raise AssertionError(f"ended before {name}: {process.stderr.read()}")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_between_rounds_ends_the_listener_with_0(waiting, number):
    with listener(waiting, "--interval", "1000") as process:
        report = json.loads(process.stdout.readline())
        assert len(report["deliveries"][0]["windows"]) == WINDOWS
        process.send_signal(number)
        assert process.wait(60) == 0
    assert check_prefix(waiting) == WINDOWS


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_during_rounds_leaves_whole_windows(waiting, number):
    with listener(waiting, "--interval", "1000") as process:
        next_event(process, "window-delivered")
        process.send_signal(number)
        assert process.wait(60) == 0
    assert check_prefix(waiting) >= 1
    finish(waiting)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_during_one_round_has_its_status(waiting, number):
    with listener(waiting, "--once") as process:
        next_event(process, "window-delivered")
        process.send_signal(number)
        status = process.wait(60)
    done = check_prefix(waiting)
    assert status == (0 if done == WINDOWS else 128 + number)
    finish(waiting)


def test_a_second_sigint_ends_at_once_and_loses_nothing(waiting):
    """Stopped, signalled, continued twice: the first SIGINT is taken before the second comes."""
    with listener(waiting, "--interval", "1000") as process:
        next_event(process, "window-delivered")
        for _ in range(2):
            process.send_signal(signal.SIGSTOP)
            os.waitpid(process.pid, os.WUNTRACED)
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGCONT)
        assert process.wait(60) == 128 + signal.SIGINT
    finish(waiting)


def test_the_listener_delivers_what_is_committed_meanwhile(waiting):
    with listener(waiting, "--interval", "10ms", "--max-backoff", "10ms") as process:
        json.loads(process.stdout.readline())
        waiting.source.append("SELECT 1000 AS id, 'later' AS name")
        report = json.loads(process.stdout.readline())["deliveries"][0]
        assert report["status"] == "ok" and len(report["windows"]) == 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert {row["id"] for row in waiting.rows()} >= {1000}


def test_a_listener_tries_again_after_a_failure(waiting):
    """An I/O failure is told and mended by a later round."""
    with listener(waiting, "--interval", "10ms", "--max-backoff", "10ms",
                  env={"KNUT_FAULT": "sink-before-commit:1:fail"}) as process:
        next_event(process, "round-failed")
        reports = [json.loads(process.stdout.readline())["deliveries"][0] for _ in range(2)]
        assert [r["status"] for r in reports] == ["failed", "ok"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finish_idle(waiting)


def finish_idle(delivery):
    assert delivery.deliver()["status"] == "idle"
    R.assert_same(delivery.rows(), delivery.source.rows())


def test_a_signal_ends_a_scan_and_a_writer_with_its_status(waiting):
    table = waiting.source
    before = table.rows()
    done = table("append", "--sql", "SELECT 1 AS id, 'x' AS name", env={"KNUT_FAULT": "write-before-commit:1:stop"})
    # Past the point where it may stop, a commit is finished.
    assert done.rc in (0, 128 + signal.SIGTERM), str(done)
    assert len(table.rows()) == len(before) + (done.rc == 0)

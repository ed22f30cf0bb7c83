# SPDX-License-Identifier: Apache-2.0
"""Delivery into Doris with two-phase-commit: a window of many chunks is there as a whole or not at all, whoever dies when."""
import pytest

from lib.doris import SMALL, WIDE, DorisDelivery, be, fe
from lib.program import KILLED


class Scene:
    def __init__(self, doris, table, folder, keyed=False):
        self.doris, self.table = doris, table
        table.create("id long required, name string", *(("--identifier", "id") if keyed else ()))
        table.append(SMALL.format(0, 300))
        folder.mkdir()
        self.delivery = DorisDelivery(table, folder, target="d.t", sink="")
        self.two_phase(True)
        self.run().ok()
        if keyed:  # one window of deletes and upserts
            table.overwrite("id < 100", WIDE.format(1000, 7000))
        else:
            table.append(WIDE.format(1000, 7000))  # some chunks of 1 MiB

    def two_phase(self, wanted, **settings):
        self.delivery.sink = self.doris.sink(create_table="true", two_phase_commit=str(wanted).lower(), **settings)

    def run(self, *args, **more):
        return self.delivery.run("--chunk-mb", "1", *args, **more)

    def shown(self):
        return sorted((r["id"], r["name"]) for r in self.doris.rows())

    def check(self):
        self.doris.faults()
        self.run().ok()
        self.doris.check()
        assert self.shown() == sorted((r["id"], r["name"]) for r in self.table.rows())
        assert "PRECOMMITTED" not in self.states()

    def states(self):
        return [state for _, _, state in self.doris.ctl("states", {"db": "d"})]


@pytest.fixture
def scene(doris, table, tmp_path):
    return Scene(doris, table, tmp_path / "into")


def test_chunks_are_held_until_all_are_there(scene):
    done = scene.run(env={"KNUT_FAULT": "before-held-commit:1:kill"})
    assert done.rc == KILLED
    assert scene.states().count("PRECOMMITTED") >= 2 and len(scene.shown()) == 300
    scene.check()


POINTS = ["sink-after-hold", "journal-held", "journal-held-written", "before-held-commit", "after-held-commit",
          "journal-proven", "before-cursor"]


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_at_each_step(doris, table, tmp_path, point):
    """Rows are shown only when all are held; the next process goes on, with or without two phases."""
    nth = 1 if point == POINTS[-1] else 1 + POINTS.index(point) % 2
    then = POINTS.index(point) % 3 != 0
    scene = Scene(doris, table, tmp_path / "into", keyed=True)
    done = scene.run(env={"KNUT_FAULT": f"{point}:{nth}:kill"})
    assert done.rc == KILLED
    if point in POINTS[:3]:
        assert len(scene.shown()) == 300
    scene.two_phase(then)
    scene.check()


@pytest.mark.parametrize("faults", [
    [be("drop_after", op="2pc"), be("close", op="2pc"), fe("close", op="2pc", skip=2), be("fail", "busy", op="2pc", times=3)],
    [be("drop_after_commit"), be("cut_half"), be("fail_leave_prepare")],
    [be("drop_after_commit"), be("label_exists", "PRECOMMITTED", skip=1)],
], ids=["commit", "load", "label"])
def test_a_fault_that_passes(scene, faults):
    scene.doris.faults(*faults)
    scene.run("--parallel-loads", "1")
    scene.check()


def test_a_transaction_held_for_too_long_is_sent_again(scene):
    assert scene.run(env={"KNUT_FAULT": "before-held-commit:1:kill"}).rc == KILLED
    scene.doris.ctl("clock", {"add": 4000})
    assert "PRECOMMITTED" not in scene.states()
    scene.check()


def test_a_window_that_is_refused_leaves_nothing_behind(scene):
    scene.doris.faults(be("fail", "[DATA_QUALITY_ERROR]too many filtered rows", skip=1))
    scene.run("--parallel-loads", "1").fails(3, "too many filtered rows")
    assert "PRECOMMITTED" not in scene.states() and len(scene.shown()) == 300
    scene.check()


@pytest.mark.parametrize("fault", [be("success_filtered", 3), be("success_zero_rows")], ids=lambda f: f["fault"])
def test_other_rows_than_ours_are_dropped_before_anybody_sees_them(scene, fault):
    scene.doris.faults({**fault, "skip": 1})
    scene.run("--parallel-loads", "1").fails(3, "they were held, and are dropped")
    assert len(scene.shown()) == 300
    scene.check()  # no reload is needed


def test_a_held_label_of_somebody_else_is_not_committed(doris, table, tmp_path):
    scene = Scene(doris, table, tmp_path / "into")
    scene.doris.faults(be("label_exists", "PRECOMMITTED"))
    scene.run().fails(3, "never sent from this state file")
    assert len(scene.shown()) == 300

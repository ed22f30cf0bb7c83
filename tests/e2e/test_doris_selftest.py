# SPDX-License-Identifier: Apache-2.0
"""`knut cdc selftest` against the stand-in: all checks pass where all is well, and each fault is told by the check that
meets it."""
import pytest

from lib.doris import PASSWORD, USER, be, fe

DORIS = "4.1"


def selftest(knut, doris, *args):
    place = doris.sink().removeprefix("doris:")
    return knut("cdc", "selftest", "--doris", place, "--database", "d", "--output", "json", *args,
                env={"DORIS_USER": USER, "DORIS_PASSWORD": PASSWORD})


def test_all_checks_pass_and_nothing_is_left(knut, doris):
    done = selftest(knut, doris).ok()
    checks = {r["check"]: r for r in done.rows}
    assert all(r["ok"] for r in done.rows), str(done)
    assert len(checks) == 44
    assert checks["arrow: timestamp"]["detail"] == "say arrow-zone=8"
    assert PASSWORD not in done.out + done.err
    assert doris.ctl("tables") == []
    doris.check()


@pytest.mark.parametrize("fault, failed", [
    (be("label_override", label="-1$"), "arrow: load"),
    (be("success_zero_rows", label="-0$"), "json: load"),
    (fe("state", "VISIBLE", op="state", label="never-sent"), "label: unknown state"),
    (be("fail", "cloud cannot", op="2pc", times=-1), "two-phase-commit: commit"),
])
def test_a_check_that_fails_is_named(knut, doris, fault, failed):
    doris.faults(fault)
    done = selftest(knut, doris)
    wrong = [r["check"] for r in done.rows if not r["ok"]]
    assert failed in wrong and done.rc == 1, str(done)
    assert doris.ctl("tables") == []


def test_what_keeps_all_checks_from_being_made_is_said(knut, doris):
    knut("cdc", "selftest").fails(2, "--doris and --database are needed")
    knut("cdc", "selftest", "--doris", "http://127.0.0.1:1", "--database", "d").fails(2, "DORIS_USER")
    doris.end()
    selftest(knut, doris).fails(1, "127.0.0.1")

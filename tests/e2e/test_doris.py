# SPDX-License-Identifier: Apache-2.0
"""Delivery into Doris, against the stand-in (tests/fakes/doris): every fault that it can play is
survived with exactly the source's rows, or delivery stops, says why, and stays stopped where rows
cannot be told from their repetition."""
import base64
import sqlite3
import time

import pytest

from lib.doris import PASSWORD, SMALL, USER, WIDE, DorisDelivery, be, fe
from lib.program import KILLED


class Scene:
    """A table of the lake and its copy in Doris."""

    def __init__(self, doris, table, folder, keyed=False, **settings):
        self.doris, self.table, self.keyed = doris, table, keyed
        table.create("id long required, name string", *(("--identifier", "id") if keyed else ()))
        table.append(SMALL.format(0, 300))
        folder.mkdir()
        self.delivery = DorisDelivery(table, folder, target="d.t", sink=doris.sink(create_table="true", **settings))

    def run(self, *args, **more):
        return self.delivery.run(*args, **more)

    def check(self):
        """The copy is the source, and a further round has nothing to do."""
        done = self.run().ok()
        assert done.row["deliveries"][0]["status"] == "idle", str(done)
        self.same_rows()

    def same_rows(self):
        self.doris.check()
        def flat(rows):
            return sorted((r["id"], r["name"]) for r in rows)
        assert flat(self.doris.rows()) == flat(self.table.rows())


@pytest.fixture
def scene(doris, table, tmp_path):
    return Scene(doris, table, tmp_path / "into")


@pytest.fixture
def keyed(doris, table, tmp_path):
    return Scene(doris, table, tmp_path / "into", keyed=True)


# ---- what passes ----

def test_rows_arrive_and_a_second_round_sends_nothing(scene):
    scene.run().ok()
    scene.check()
    asked = scene.doris.counts()["loads_asked"]
    scene.run().ok()
    assert scene.doris.counts()["loads_asked"] == asked


def test_upserts_and_deletes_by_key(keyed):
    keyed.run().ok()
    keyed.table.delete("id >= 40 AND id < 140")
    keyed.table("upsert", "--key", "id", "--sql", "SELECT range::BIGINT AS id, 'u' || range AS name FROM range(0, 50)").ok()
    keyed.table.append(SMALL.format(300, 310))
    keyed.run().ok()
    keyed.check()


def test_a_row_deleted_and_written_again_is_there(keyed):
    keyed.run().ok()
    for _ in range(2):
        keyed.table.delete("id = 7")
        keyed.run().ok()
        keyed.same_rows()
        keyed.table.append(SMALL.format(7, 8))
        keyed.run().ok()
        keyed.same_rows()


def test_many_chunks_side_by_side(scene):
    scene.table.append(WIDE.format(1000, 15000))
    report = scene.run("--chunk-mb", "1", "--parallel-loads", "4").ok().row["deliveries"][0]
    assert report["windows"][0]["chunks"] >= 4
    scene.check()


def test_a_one_row_load_asks_before_it_sends(doris, table, tmp_path):
    scene = Scene(doris, table, tmp_path / "into")
    scene.run().ok()
    table.append(SMALL.format(900, 901))
    scene.run().ok()
    scene.check()


def test_backends_named_directly_need_no_frontend_for_loads(doris, table, tmp_path):
    scene = Scene(doris, table, tmp_path / "into", benodes=",".join(doris.be))
    doris.faults(fe("http", 503, times=-1))
    scene.run().ok()
    scene.check()


def test_a_rewritten_backend_address(doris, table, tmp_path):
    scene = Scene(doris, table, tmp_path / "into", rewrite=",".join(f"{b}={doris.be[0]}" for b in doris.be[1:]))
    scene.run().ok()
    scene.check()


# Faults of op "state" leave the first such request alone: it asks about the window before.
PASSING = {
    "frontend slow": [fe("delay", 300)],
    "frontend closes": [fe("close")],
    "frontend resets": [fe("rst_on_body", times=2)],
    "frontend busy": [fe("http", 503)],
    "frontend says 100 first": [fe("send_100_first", 1)],
    "frontend says 100 twice": [fe("send_100_first", 2)],
    "frontend says 100 and nothing": [fe("send_100_only")],
    "frontend hangs": [fe("hang_before_307")],
    "a proxy's page": [fe("html_200")],
    "another protocol": [fe("mysql")],
    "no backend": [fe("no_backend", times=3)],
    "redirect to a dead backend": [fe("redirect", "dead")],
    "redirect into the dark": [fe("redirect", "blackhole")],
    "redirect without user": [fe("redirect", "no_userinfo")],
    "redirect with a strange user": [fe("redirect", "bad_userinfo")],
    "redirect without question mark": [fe("redirect", "no_trailing")],
    "redirect to the frontend": [fe("redirect", "self_loop")],
    "redirect to nowhere": [fe("redirect", "garbage")],
    "redirect to TLS": [fe("redirect", "https")],
    "backend hangs": [be("accept_and_hang")],
    "backend closes": [be("close")],
    "backend busy": [be("http", 503)],
    "backend's page": [be("html_200")],
    "no 100": [be("no_100")],
    "memory": [be("early_fail", "[MEM_LIMIT_EXCEEDED]no memory", times=2)],
    "cut at once": [be("cut_body", 0)],
    "cut later": [be("cut_body", 2000)],
    "reset": [be("rst_body", 2000)],
    "early answer, then reset": [be("early_fail_close", 100)],
    "cancelled": [be("early_fail", "[CANCELLED]cancelled: closed", times=2)],
    "stops reading": [be("stop_reading", 0)],
    "slow": [be("slow", 20000)],
    "too many versions": [be("fail", "[E-235]version count: 2001, exceed limit: 2000", times=3)],
    "failed with rows": [be("fail_with_rows", "[THRIFT_RPC_ERROR]lost")],
    "answer dropped": [be("drop_after_commit")],
    "answer cut": [be("cut_half")],
    "answer is garbage": [be("garbage")],
    "answer is empty": [be("empty")],
    "answer late": [be("reply_delay", 500)],
    "failed and committed": [be("fail_but_committed")],
    "failed and still open": [be("fail_leave_prepare")],
    "publish timeout": [be("publish_timeout")],
    "a new status": [be("unknown_status")],
    "answer dropped, state unknown": [be("drop_after_commit"), fe("state", "UNKNOWN", op="state", skip=1)],
    "answer dropped, state not told": [be("drop_after_commit"), fe("error", op="state", times=3, skip=1)],
    "answer dropped, state is a page": [be("drop_after_commit"), fe("html_200", op="state", times=2)],
    "open for a while": [be("fail_leave_prepare"), fe("state", "PREPARE", op="state", times=4, skip=1)],
    "running, then gone": [be("cut_body", 0), be("label_exists", "RUNNING", skip=1)],
    "exists without status": [be("drop_after_commit"), fe("state", "UNKNOWN", op="state", skip=1),
                              be("label_exists", "empty", skip=1), be("label_exists", "missing", skip=1)],
}


@pytest.mark.parametrize("name", PASSING)
def test_a_fault_that_passes(scene, name):
    scene.table.append(WIDE.format(1000, 3000))
    scene.run("--max-windows", "1").ok()  # the target is there
    scene.table.append(SMALL.format(9000, 9010))
    scene.doris.faults(*PASSING[name])
    started = time.monotonic()
    scene.run().ok()
    assert time.monotonic() - started < 30
    hits = scene.doris.ctl("hits")
    assert set(rule["fault"] for rule in PASSING[name][:1]) <= set(hits)
    scene.doris.faults()
    scene.check()


@pytest.mark.parametrize("name", ["answer dropped", "cut later", "failed and still open", "stops reading", "reset"])
def test_a_fault_that_passes_with_keys(keyed, name):
    keyed.run().ok()
    keyed.table.delete("id < 100")
    keyed.table.append(WIDE.format(1000, 3000))
    keyed.doris.faults(*PASSING[name])
    keyed.run().ok()
    keyed.check()


# ---- what stops ----

STOPPING = {
    # fault: exit, words, and whether a later run without the fault goes on
    "wrong password": (fe("auth_fail", times=-1), 3, "Access denied.*DORIS_PASSWORD", True),
    "redirected for ever": (fe("redirect", "self_loop", times=-1), 3, "redirected 5 times", True),
    "backend is dead": (fe("redirect", "dead", times=-1), 1, "frontend .* sends loads to backend .*no connection within 2 s",
                        True),
    "backend is dark": (fe("redirect", "blackhole", times=-1), 1, "sends loads to backend .*no answer within 3 s", True),
    "TLS where there is none": (fe("redirect", "https", times=-1), 1, "no connection within 2 s", True),
    "wrong port": (fe("mysql", times=-1), 1, "is this the http port", True),
    "plan": (be("early_fail", "[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = unknown table", times=-1), 3,
             "unknown table", True),
    "data quality": (be("fail", "[DATA_QUALITY_ERROR]too many filtered rows", times=-1), 3, "too many filtered rows", True),
    "rows filtered": (be("success_filtered", 3), 3, "loaded 297 of 300 rows", False),
    "no rows": (be("success_zero_rows"), 3, "loaded 0 of 300 rows", False),
    "another label": (be("label_override"), 3, "did not take our label .*group_commit_1234", False),
    "group commit": (be("group_commit"), 3, "did not take our label .*group commit", False),
    "label of others": (be("label_exists", "FINISHED"), 3, "never sent from this state file", False),
    "label of others, running": (be("label_exists", "RUNNING"), 3, "never sent from this state file", False),
}


@pytest.mark.parametrize("name", STOPPING)
def test_a_fault_that_stops(scene, name):
    fault, rc, words, goes_on = STOPPING[name]
    scene.doris.faults(fault)
    done = scene.run()
    done.fails(rc, words, r"d\.t", "skade-d:t-init")
    assert scene.delivery.cursor()[0] is None
    scene.doris.faults()
    if goes_on:
        scene.run().ok()
        scene.check()
        return
    # What has arrived cannot be taken back: only a reload goes on.
    scene.run().fails(3, "knut cdc reload")
    scene.delivery.command("reload").ok()
    scene.run().ok()
    scene.check()


@pytest.mark.parametrize("page, words", [
    (None, r"rows in question: Reason: column\(0\) .*row 0\];.*column\(2\)[^\n]*row 2\]; $"),
    (be("http", 500, op="error_log"), r"rows in question: http://127.0.0.1:\d+/api/_load_error_log\?file=\S+ \(HTTP 500\)"),
    (be("redirect", op="error_log"), r"rows in question: http://.*\(HTTP 302\)"),
    (be("long", 100000, op="error_log"), r"rows in question: x \[31mx \[31m"),
], ids=["lines", "error", "redirect", "long"])
def test_why_rows_were_refused_is_fetched(scene, page, words):
    scene.doris.faults(be("filter", 5), *([page] if page else []))
    done = scene.run()
    done.fails(3, "too many filtered rows", words)
    assert "u:p@" not in done.err and len(done.err) < 2000 and "\x1b" not in done.err
    scene.run().ok()
    scene.check()


def test_a_label_of_somebody_else_in_the_database(scene, tmp_path):
    """The same label, loaded by others before the first try, is not taken for ours."""
    done = scene.run(env={"KNUT_FAULT": "journal-sent:1:kill"})
    assert done.rc == KILLED
    with sqlite3.connect(scene.delivery.state) as db:
        label = db.execute("SELECT label FROM chunks").fetchone()[0]
    scene.doris.ctl("label", {"db": "d", "table": "t", "label": label, "state": "VISIBLE"})
    scene.run().fails(3, "never sent from this state file")


def test_rows_of_others_in_the_target(scene):
    scene.doris.run("CREATE TABLE d.t (`id` BIGINT NOT NULL, `name` STRING) DISTRIBUTED BY RANDOM")
    other = DorisDelivery(scene.table, scene.delivery.folder / "..", target="d.t", sink=scene.delivery.sink)
    other.run().ok()
    scene.run().fails(3, "has rows that this delivery did not load")
    scene.delivery.command("reload").ok()
    scene.run().ok()
    scene.same_rows()


def test_labels_forgotten_by_the_server(scene, tmp_path):
    """A chunk sent long ago, its label not known any more: a DUPLICATE table cannot tell."""
    done = scene.run(env={"KNUT_FAULT": "sink-after-commit:1:kill"})
    assert done.rc == KILLED
    scene.doris.ctl("clock", {"add": 50000})
    aged = DorisDelivery(scene.table, scene.delivery.folder, target="d.t",
                         sink=scene.doris.sink(create_table="true", label_keep="0"))
    time.sleep(1.1)  # older than the 0 seconds that labels are trusted for
    aged.run().fails(3, "nobody can tell whether", r"d\.t", "reload")
    aged.command("reload").ok()
    aged.run().ok()
    scene.same_rows()


def test_labels_forgotten_do_not_matter_with_keys(keyed):
    done = keyed.run(env={"KNUT_FAULT": "sink-after-commit:1:kill"})
    assert done.rc == KILLED
    keyed.doris.ctl("clock", {"add": 50000})
    keyed.run().ok()
    assert len(keyed.doris.applied()) == 2  # the label was free again: the same rows, twice
    assert sorted(r["id"] for r in keyed.doris.rows()) == list(range(300))


# ---- targets that do not fit ----

TARGETS = {
    "names and types": ("(`ID` INT NOT NULL, `title` STRING) DUPLICATE KEY(`ID`) DISTRIBUTED BY RANDOM", (),
                        r"column id: long in the source, int in the target.*column name: string in the source, absent"),
    "nullability": ("(`id` BIGINT NOT NULL, `name` STRING NOT NULL) DUPLICATE KEY(`id`) DISTRIBUTED BY RANDOM", (),
                    "column name: may be NULL in the source, NOT NULL in the target"),
    "a column more": ("(`id` BIGINT NOT NULL, `name` STRING, `x` INT NOT NULL) DUPLICATE KEY(`id`)", (),
                      "column x: absent in the source, NOT NULL without a default"),
    "model": ("(`id` BIGINT NOT NULL, `name` STRING) DUPLICATE KEY(`id`)", ("--key", "id"),
              "model is DUPLICATE: upserts by key need UNIQUE"),
    "no keys named": ("(`id` BIGINT NOT NULL, `name` STRING) UNIQUE KEY(`id`)", (), "model is UNIQUE.*name the keys"),
    "append": ("(`id` BIGINT NOT NULL, `name` STRING) UNIQUE KEY(`id`)", ("--mode", "append"), "model is UNIQUE"),
    "other key": ("(`id` BIGINT NOT NULL, `name` VARCHAR(99)) UNIQUE KEY(`id`, `name`)", ("--key", "id"),
                  "key name: a key of the target only"),
    "sequence of a column": ("(`id` BIGINT NOT NULL, `name` STRING) UNIQUE KEY(`id`) PROPERTIES "
                             "(\"function_column.sequence_col\" = \"name\")", ("--key", "id"), "sequence is column name"),
}


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_that_does_not_fit_is_refused_with_all_differences(scene, name):
    columns, options, words = TARGETS[name]
    scene.doris.run(f"CREATE TABLE d.t {columns}")
    scene.run(*options).fails(3, r"doris d\.t", words)
    assert scene.doris.counts().get("loads_asked", 0) == 0


def test_a_target_that_is_absent(doris, table, tmp_path):
    scene = Scene(doris, table, tmp_path / "into")
    scene.delivery.sink = doris.sink()
    scene.run().fails(3, r"doris d\.t does not exist", "cdc ddl")


def test_names_are_written_as_the_target_spells_them(scene):
    scene.doris.run("CREATE TABLE d.t (`Id` BIGINT NOT NULL, `NAME` STRING) DUPLICATE KEY(`Id`) DISTRIBUTED BY RANDOM")
    scene.run().ok()
    rows = scene.doris.rows()
    assert sorted(r["Id"] for r in rows) == list(range(300)) and all(r["NAME"] for r in rows)


def test_a_delete_without_keys_is_refused_before_anything_is_sent(scene):
    scene.run().ok()
    asked = scene.doris.counts()["loads_asked"]
    scene.table.delete("id = 1")
    scene.run().fails(3, "which a DUPLICATE table cannot")
    assert scene.doris.counts()["loads_asked"] == asked


def test_a_delete_in_append_mode_is_refused(scene):
    scene.run("--mode", "append").ok()
    scene.table.delete("id = 1")
    scene.run("--mode", "append").fails(3, "append mode cannot deliver")


def test_a_text_too_long_is_refused_by_name(scene):
    scene.doris.run("CREATE TABLE d.t (`id` BIGINT NOT NULL, `name` VARCHAR(4)) DUPLICATE KEY(`id`)")
    scene.table.append("SELECT 1::BIGINT AS id, 'éé' AS name")  # four bytes
    scene.run().ok()
    scene.same_rows()
    scene.table.append("SELECT 1::BIGINT AS id, 'éée' AS name")
    scene.run().fails(3, "column name: a text of 5 bytes, the target has varchar\\(4\\)")
    assert len(scene.doris.rows()) == 301


def test_a_column_added_in_the_source(keyed):
    keyed.run().ok()
    keyed.table("alter", "ADD COLUMN extra int").ok()
    keyed.table.append("SELECT 5000::BIGINT AS id, 'x' AS name, 5::INTEGER AS extra")
    keyed.run().fails(3, "column extra: int in the source, absent in the target")
    keyed.doris.run("ALTER TABLE d.t ADD COLUMN extra INT NULL")
    keyed.run().ok()
    assert [r["extra"] for r in keyed.doris.rows() if r["id"] == 5000] == [5]


# ---- settings and secrets ----

@pytest.mark.parametrize("place, words", [
    ("doris:http://root:secret1@fe:8030", "credentials do not belong into the address"),
    ("doris:fe:8030", "expected doris:http://FE-HOST"),
    ("doris:http://fe:8030?retri-wait=1", "did you mean 'retry-wait'"),
    ("doris:http://fe:8030?read-timeout=soon", "read-timeout cannot be 'soon'"),
    ("doris:http://", "no frontend is named"),
    ("doris:http://fe:8030?be-scheme=ftp", "be-scheme"),
    ("doris:http://fe:8030?rewrite=a", "rewrite: expected"),
])
def test_a_place_that_makes_no_sense(scene, place, words):
    scene.delivery.sink = place
    done = scene.run()
    done.fails(2, words)
    assert "secret1" not in done.err


@pytest.mark.parametrize("missing", ["DORIS_USER", "DORIS_PASSWORD"])
def test_credentials_come_from_the_environment(scene, missing):
    secret = {"DORIS_USER": USER, "DORIS_PASSWORD": PASSWORD}
    del secret[missing]
    scene.table.knut("cdc", "run", "--once", *scene.delivery.words, env=secret).fails(2, f"set {missing}")


def test_a_database_must_be_named(scene):
    scene.delivery.target = "t"
    scene.run().fails(2, "say the database too")


def test_no_secret_is_left_anywhere(scene, tmp_path):
    scene.doris.faults(fe("redirect", "bad_userinfo"), be("drop_after_commit"))
    done = scene.run("--log-level", "debug", "--debug", "cdc").ok()
    assert "doris-attempt" in done.err
    assert PASSWORD not in done.out + done.err
    code = base64.b64encode(f"{USER}:{PASSWORD}".encode())
    for path in scene.delivery.folder.rglob("*"):
        data = path.read_bytes()
        assert PASSWORD.encode() not in data and code not in data, path
    assert not any((tmp_path / "scratch").iterdir())


def test_a_frontend_that_is_away(scene):
    scene.doris.end()
    scene.run().fails(1, r"doris d\.t", "127.0.0.1")
    scene.doris.start()
    scene.run().ok()
    scene.check()


# ---- processes that die ----

POINTS = ["journal-plan-written", "window-begin", "sink-claim-before-commit", "sink-claim-after-commit", "window-begun",
          "journal-sent-written", "sink-rows-written", "sink-begun", "sink-after-commit", "journal-proven",
          "journal-proven-written", "before-cursor", "after-cursor"]


@pytest.mark.parametrize("model", ["rows", "keys"])
@pytest.mark.parametrize("point", POINTS)
def test_a_kill_at_each_point(doris, table, tmp_path, model, point):
    scene = Scene(doris, table, tmp_path / "into", keyed=model == "keys")
    table.append(WIDE.format(1000, 9000))
    done = scene.run("--chunk-mb", "1", env={"KNUT_FAULT": f"{point}:1:kill"})
    assert done.rc == KILLED, str(done)
    scene.run("--chunk-mb", "3", "--parallel-loads", "1").ok()
    scene.check()


def test_a_server_killed_in_the_middle(scene):
    scene.run().ok()
    scene.table.append(WIDE.format(1000, 20000))
    scene.doris.faults(be("slow", 2000000, times=-1))
    process = scene.table.knut.start("cdc", "run", "--once", *scene.delivery.words,
                                     env={"DORIS_USER": USER, "DORIS_PASSWORD": PASSWORD})
    while scene.doris.counts().get("loads_asked", 0) < 4:
        pass
    scene.doris.kill()
    scene.doris.start()
    process.communicate(timeout=60)
    scene.run().ok()
    scene.check()


# ---- knut cdc ddl ----

def test_the_statement_printed_makes_a_fitting_table(keyed):
    sql = keyed.delivery.command("ddl").ok().row["sql"]
    keyed.doris.run(sql)
    keyed.delivery.sink = keyed.doris.sink()  # does not create
    keyed.run().ok()
    keyed.check()


def test_the_statement_is_printed_without_asking_anybody(scene):
    scene.doris.end()
    done = scene.table.knut("cdc", "ddl", *scene.delivery.words).ok()
    assert done.out.startswith("CREATE TABLE `d`.`t` (\n  `id` BIGINT NOT NULL,\n") and done.out.endswith(";\n")


def test_a_sink_that_makes_its_target_has_no_statement(scene):
    words = (*scene.table.locator, "--sink", "null:", "--state", scene.delivery.state)
    scene.table.knut("cdc", "ddl", *words).fails(3, "makes its target itself")

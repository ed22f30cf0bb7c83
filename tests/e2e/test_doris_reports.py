# SPDX-License-Identifier: Apache-2.0
"""Delivery into Doris: what public bug reports of its connectors tell of, each as a test (the report stands beside it).

After each scenario lib.doris `check` holds: no label applied twice, one body for a label, no body byte at a frontend, all headers
on each load, no loads of one key side by side. doris, flink, spark, kafka are apache/doris and its connectors; most reports are
cases of test_doris: P is `a_fault_that_passes`, S is `a_fault_that_stops`, T is `a_target_that_does_not_fit`.

| report | test |
| --- | --- |
| a new label after a lost answer (flink#556) | P: `answer dropped` |
| states asked first (flink#693, spark#364) | `what_has_landed_is_not_sent_again`; P: `running, then gone`, `open for a while` |
| failed, but still open (flink#523, #362, #683) | P: `failed and still open`; test_doris: `a_kill_at_each_point` |
| no status of the job (flink#470, doris#42700) | P: `exists without status` |
| labels of others (flink#612, doris#17572) | S: `label of others`; test_doris: `a_label_of_somebody_else_in_the_database` |
| long labels, names beyond ASCII (flink#226, kafka#89) | unit/cdc/test_label: `the_longest_parts_fit_into_128_characters`, \
`random_loads_have_valid_labels_that_never_collide` |
| chunks cut anew after a failure (iggy#3574) | test_doris: `a_kill_at_each_point` (the second run has other sizes) |
| group commit (doris#35726, #61242) | `a_table_with_group_commit_still_knows_labels`; S: `another label`, `group commit` |
| rows lost or doubled over time (doris#31470) | test_doris_random |
| HTTP 200 is no success (doris#2801, seatunnel#6753) | unit/cdc/test_doris_reply; P: `a new status`, `a proxy's page`, \
`answer is empty` |
| success with other rows (otel#49011, doris#67273, #41946) | S: `rows filtered`, `no rows`; P: `failed with rows` |
| empty batches (flink#53) | `a_window_without_changes_sends_nothing` |
| two pipelines, one table (seatunnel#9048, #7050) | `two_pipelines_with_equal_snapshots_have_labels_of_their_own` |
| stuck after a backend died (doris#35342, #3292) | test_doris: `a_server_killed_in_the_middle` |
| backends that cannot be reached (doris#27899, flink#74, otel#41549) | S: `backend is dead`, `backend is dark`; \
test_doris: `a_rewritten_backend_address` |
| a backend's address changed (doris-operator#290) | P: `redirect to a dead backend` |
| bodies at the frontend (seatunnel#11330, doris#63325, #6682) | P: `frontend slow`, `frontend resets`, `frontend says 100 first` |
| credentials in redirects (doris#6241, #9363) | `a_redirect_never_says_who_we_are`; P: `redirect with a strange user` |
| TLS (doris#64697, #50009) | `a_frontend_with_tls_and_backends_without`; \
unit/cdc/test_doris_reply: `a_redirect_from_tls_to_plain_is_refused_unless_allowed` |
| a reset hides the answer (doris#6093, flink#336) | P: `early answer, then reset`, `stops reading` |
| small bodies, other ports (sr#52998, doris#5736) | test_doris: `a_one_row_load_asks_before_it_sends`; S: `wrong port` |
| redirected for ever (seatunnel#4872) | S: `redirected for ever` |
| chunked bodies (doris#48196) | the stand-in takes none |
| Publish Timeout (doris#1998, #3053) | P: `publish timeout` |
| longer than its timeout (doris#4947) | `a_load_that_outlives_its_transaction_goes_again` |
| the cause is hidden (doris#30381, #43241) | `words_that_hide_the_cause_are_believed_for_a_few_times_only` |
| workers used up (doris#5839, #36772) | `a_backend_with_one_worker_is_waited_for` |
| too many versions (chunjun#870) | `too_many_versions_are_given_time` |
| backends that die (flink#86, doris#1080, #3949) | `backends_that_die_are_left_for_others` |
| the delete sign (doris#37481, #4682) | test_doris: `a_row_deleted_and_written_again_is_there`; T: `model` |
| sequence columns (doris#17739) | T: `sequence of a column`; test_doris_arrow: `sequence` |
| numbers (doris#25045, #12035) | unit/cdc/test_doris_json: `every_type_has_its_text`, `numbers_read_back_as_the_same` |
| texts (doris#61995, #24207, #11305) | `hostile_texts_arrive_at_any_depth`; unit/cdc/test_doris_json: `texts_are_escaped` |
| moments (doris#20880, #30102, #36963) | `instants_do_not_depend_on_the_clients_zone` |
| Arrow's types (doris#48998, #62681, #65127, flink#619) | test_doris_arrow; unit/cdc/test_doris_arrow |
| spelling of names (doris#8243, #16422) | test_doris: `names_are_written_as_the_target_spells_them` |
| texts too long (doris#64334, #35442) | test_doris: `a_text_too_long_is_refused_by_name` |
"""
import shutil
import subprocess

import pytest

from lib.doris import SMALL, WIDE, DorisDelivery, FakeDoris, be, fe
from lib.lake import Table

DORIS = "4.1"


@pytest.fixture
def delivery(doris, table, tmp_path):
    """One window is delivered, and ten rows more are in the source."""
    table.create("id long required, name string")
    table.append(SMALL.format(0, 30))
    folder = tmp_path / "into"
    folder.mkdir()
    delivery = DorisDelivery(table, folder, target="d.t", sink=doris.sink(create_table="true"))
    delivery.run().ok()
    table.append(SMALL.format(30, 40))
    return delivery


def attempts(doris):
    """A load that reaches a backend asks twice: the frontend, and it."""
    return doris.counts()["loads_asked"] / 2


@pytest.mark.parametrize("faults", [
    [be("cut_half")],  # apache/doris-flink-connector#693
    [be("drop_after_commit"), fe("state", "PREPARE", op="state", times=3, skip=1)],  # doris-spark-connector#364
], ids=["cut", "running, then visible"])
def test_what_has_landed_is_not_sent_again(doris, delivery, faults):
    before = attempts(doris)
    doris.faults(*faults)
    delivery.run().ok()
    assert attempts(doris) == before + 1 and len(doris.rows()) == 40
    doris.check()


def test_a_table_with_group_commit_still_knows_labels(doris, table, tmp_path):
    """apache/doris#35726, #61242"""
    table.create("id long, name string").append(SMALL.format(0, 30))
    doris.run("CREATE TABLE d.t (`id` BIGINT, `name` STRING) DUPLICATE KEY(`id`) DISTRIBUTED BY RANDOM "
              "PROPERTIES (\"group_commit_mode\" = \"async_mode\")")
    delivery = DorisDelivery(table, tmp_path, target="d.t", sink=doris.sink())
    doris.faults(be("drop_after_commit"))
    delivery.run().ok()
    assert len(doris.rows()) == 30
    doris.check()


def test_a_window_without_changes_sends_nothing(doris, delivery, table):
    """apache/doris-flink-connector#53"""
    delivery.run().ok()
    before, cursor = attempts(doris), delivery.cursor()
    table("compact", "--rewrite-all").ok()
    delivery.run().ok()
    assert attempts(doris) == before and delivery.cursor() != cursor


def test_words_that_hide_the_cause_are_believed_for_a_few_times_only(doris, delivery):
    """apache/doris#43241"""
    before = attempts(doris)
    delivery.sink = doris.sink(max_retries=2)
    doris.faults(be("early_fail", "[CANCELLED]cancelled: closed", times=-1))
    delivery.run().fails(1, "cancelled: closed", r"d\.t")
    assert attempts(doris) == before + 3
    doris.faults()
    delivery.run().ok()
    assert len(doris.rows()) == 40
    doris.check()


@pytest.mark.parametrize("zone", ["Asia/Shanghai", "America/New_York"])
def test_instants_do_not_depend_on_the_clients_zone(doris, table, tmp_path, zone):
    """apache/doris#30102, apache/seatunnel#11524"""
    texts = ["0001-01-01 00:00:00", "1969-12-31 23:59:59.999999", "1970-01-01 00:00:00", "2024-03-10 02:30:00.000001",
             "2024-11-03 01:30:00", "9999-12-31 23:59:59.999999"]
    table.create("id long, ts timestamp, tz timestamptz")
    table.append(" UNION ALL ".join(f"SELECT {i}::BIGINT AS id, TIMESTAMP '{t}' AS ts, TIMESTAMPTZ '{t}+00' AS tz"
                                    for i, t in enumerate(texts)))
    delivery = DorisDelivery(table, tmp_path, target="d.t", sink=doris.sink(create_table="true"))
    delivery.run(env={"TZ": zone}).ok()
    for row in doris.rows():
        wanted = texts[row["id"]] + ("" if "." in texts[row["id"]] else ".000000")
        assert (row["ts"], row["tz"]) == (wanted, wanted)


def test_two_pipelines_with_equal_snapshots_have_labels_of_their_own(doris, delivery, table, tmp_path):
    """apache/seatunnel#9048, #7050: a copy of the lake has the same snapshot ids."""
    shutil.copytree(table.warehouse, tmp_path / "twin")
    twin = DorisDelivery(Table(table.knut, tmp_path / "twin"), tmp_path / "second", target="d.t", sink=delivery.sink)
    twin.folder.mkdir()
    before = attempts(doris)
    twin.run().fails(3, "has rows that this delivery did not load", r"d\.t")  # never mixed by accident
    assert attempts(doris) == before
    twin.target = "d.u"
    twin.run().ok()
    delivery.run().ok()
    assert len(doris.rows()) == len(doris.rows("u")) == 40
    def hashes(name):
        return {label.rpartition("-")[2] for _, label, _ in doris.applied(name)}
    assert not hashes("t") & hashes("u")
    doris.check()


@pytest.mark.parametrize("kind", ["no_userinfo", "bad_userinfo"])
def test_a_redirect_never_says_who_we_are(table, tmp_path, kind):
    """apache/doris#6241, #9363: also with an empty password (others have one with @ : / % and é)."""
    doris = FakeDoris(tmp_path, password="")
    try:
        table.create("id long, name string").append(SMALL.format(0, 30))
        delivery = DorisDelivery(table, tmp_path, target="d.t", sink=doris.sink(create_table="true"))
        delivery.password = ""
        doris.faults(fe("redirect", kind))
        table.knut("cdc", "run", "--once", *delivery.words, env={"DORIS_USER": "loader", "DORIS_PASSWORD": ""}).ok()
        assert len(doris.rows()) == 30
        doris.check()
    finally:
        doris.end()


def test_a_frontend_with_tls_and_backends_without(table, tmp_path):
    """apache/doris#64697, #50009"""
    pem, key = tmp_path / "fe.pem", tmp_path / "fe.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", pem, "-days", "2",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    both = tmp_path / "both.pem"
    both.write_bytes(pem.read_bytes() + key.read_bytes())
    doris = FakeDoris(tmp_path, "--tls", str(both))
    try:
        table.create("id long, name string").append(SMALL.format(0, 30))
        place = doris.sink(create_table="true", ca=pem, max_retries=0).replace(f"http://{doris.fe}",
                                                                               f"https://127.0.0.1:{doris.ports['fe_tls']}")
        delivery = DorisDelivery(table, tmp_path, target="d.t", sink=place)
        delivery.run().fails(1, "sends loads to backend 127.0.0.1.*SSL")  # Doris says the request's scheme
        delivery.sink = f"{place}&be-scheme=http"
        delivery.run().fails(3, "allow-downgrade=true")
        delivery.sink = f"{place}&be-scheme=http&allow-downgrade=true"
        delivery.run().ok()
        assert len(doris.rows()) == 30
        doris.check()
    finally:
        doris.end()


def test_a_load_that_outlives_its_transaction_goes_again(doris, delivery, table):
    """apache/doris#4947: 'timeout by txn manager'."""
    table.append(WIDE.format(1000, 1300))
    delivery.sink = doris.sink(load_timeout=1)
    doris.faults(be("slow", 80000, skip=1))
    delivery.run().ok()
    states = [state for _, _, state in doris.ctl("states", {"db": "d"})]
    assert "ABORTED" in states and len(doris.rows()) == 340
    doris.check()


def test_a_backend_with_one_worker_is_waited_for(table, tmp_path):
    """apache/doris#5839, #36772: loads beside others wait for their turn, and not for ever."""
    doris = FakeDoris(tmp_path, "--workers", "1", "--be-ports", "0")
    try:
        table.create("id long, name string").append(WIDE.format(0, 15000))
        delivery = DorisDelivery(table, tmp_path, target="d.t", sink=doris.sink(create_table="true"))
        delivery.run("--chunk-mb", "1", "--parallel-loads", "4").ok()
        assert len(doris.applied()) > 3 and len(doris.rows()) == 15000
        table.append(SMALL.format(20000, 20010))
        doris.faults(be("accept_and_hang"))  # its only worker is busy until we give up
        delivery.run().ok()
        assert len(doris.rows()) == 15010
        doris.check()
    finally:
        doris.end()


def test_too_many_versions_are_given_time(doris, delivery):
    """DTStack/chunjun#870: each pause is longer than the one before, the label stays."""
    doris.faults(be("fail", "[E-235]version count: 2001, exceed limit: 2000", times=3))
    before = len(doris.ctl("asked"))
    delivery.run().ok()
    asked = doris.ctl("asked")[before:]
    pauses = [b - a for (a, _), (b, _) in zip(asked, asked[1:], strict=False)]
    assert len({label for _, label in asked}) == 1 and len(pauses) == 3
    assert all(pause > 0.1 * 2**n for n, pause in enumerate(pauses)), pauses  # ten times retry-wait, doubled
    assert len(doris.rows()) == 40
    doris.check()


def test_backends_that_die_are_left_for_others(doris, delivery):
    """apache/doris-flink-connector#86, apache/doris#1080, #3949: the frontend is asked again each time."""
    before = len(doris.ctl("asked"))
    doris.faults(fe("redirect", "dead"), be("cut_body", 0), be("close"), be("die"))
    delivery.run().ok()
    asked = doris.ctl("asked")[before:]
    assert {"redirect", "cut_body", "close", "die"} <= set(doris.ctl("hits"))
    assert len({label for _, label in asked}) == 1 and len(asked) == 3  # what had landed was asked for
    assert len(doris.rows()) == 40
    doris.check()


def test_hostile_texts_arrive_at_any_depth(doris, table, tmp_path):
    """apache/doris#61995, #24207, #11305: every punctuation, line ends, and texts that look like NULL."""
    texts = ["".join(chr(c) for c in range(32, 127)), "a\nb\r\n\tc\x01\x1f", "", "\\N", "null", "\u2028😀é", '{"a": [1, "b"]}', "\\"]
    table.create("id long, s string, l list<string>, m map<string, string>, st struct<a: string>")
    values = ["'" + text.replace("'", "''") + "'" for text in texts]
    table.append(" UNION ALL ".join(f"SELECT {i}::BIGINT AS id, {v} AS s, [{v}, NULL] AS l, MAP {{{v}: {v}}} AS m, {{'a': {v}}} AS st"
                                    for i, v in enumerate(values)))
    DorisDelivery(table, tmp_path, target="d.t", sink=doris.sink(create_table="true")).run().ok()
    rows = {row["id"]: row for row in doris.rows()}
    for i, text in enumerate(texts):
        assert rows[i] == {"id": i, "s": text, "l": [text, None], "m": [[text, text]], "st": {"a": text}}
    doris.check()

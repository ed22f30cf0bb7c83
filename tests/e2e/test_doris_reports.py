# SPDX-License-Identifier: Apache-2.0
"""Delivery into Doris: what public bug reports of its connectors tell of, each as a test (the report stands beside it)."""
import pytest

from lib.doris import SMALL, DorisDelivery, be, fe

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

# SPDX-License-Identifier: Apache-2.0
"""Bad input: one clear line (what, which file, what to do), an exit status, and nothing changed.

Each case has a delivery that has gone half-way (fixture half), breaks something, runs, and checks that cursor and
destination are as they were and that nothing half-written lies about; then the cause is taken away, and the delivery
must come to the source's rows.
"""
import re
from contextlib import nullcontext

from lib import avro
from lib import rows as R
from lib.damage import cut, filled, flipped, missing
from lib.lake import left_over, plain

SCHEMA = "id long required, name string, ts timestamp"
ROWS = "SELECT range::BIGINT AS id, 'name-' || range AS name, TIMESTAMP '2026-01-01' AS ts FROM range({}, {})"


def half_delivered(table, delivery):
    """Snapshot 1 is delivered; snapshot 2, an overwrite, waits."""
    table.create(SCHEMA)
    table.append(ROWS.format(0, 500))
    delivery.deliver()
    table.overwrite("id < 50", ROWS.format(1000, 1400))
    return delivery


def check_failure(delivery, rc, *patterns, around=None, words=("run", "--once"), leftovers=True, **more):
    """The run fails as it should and changes nothing."""
    before = delivery.facts()
    with around or nullcontext():
        done = delivery.command(*words, **more).fails(rc, *patterns)
        for line in done.out.splitlines():
            assert '"status":"ok"' not in line
    assert delivery.facts() == before, str(done)
    if leftovers:
        check_clean(delivery)
    return done


def check_clean(delivery):
    scratch = delivery.source.knut.tmp
    assert list(scratch.iterdir()) == []
    assert left_over(delivery.folder) == []


def check_mended(delivery):
    """The way out works: the rest arrives, exactly."""
    delivery.deliver()
    R.assert_same(delivery.rows(), delivery.source.rows())
    check_clean(delivery)


def name_of(path):
    return re.escape(path.name)


DAMAGE = {"empty": cut(0), "cut-1": cut(1), "cut-4": cut(4), "cut-half": cut(0.5), "cut-last": cut(-1), "cut-tail": cut(-8),
          "noise": filled, "missing": missing}


def manifests(table):
    """Those with live files: a scan reads no others."""
    _, records = avro.read(table.manifest_list())
    return [plain(record["manifest_path"]) for record in records
            if record["added_files_count"] + record["existing_files_count"]]


def footer_flipped(data):
    """The first byte of the footer, where its structure begins."""
    return flipped(len(data) - 8 - int.from_bytes(data[-8:-4], "little"))(data)


DATA_DAMAGE = {"empty": cut(0), "cut-4": cut(4), "cut-half": cut(0.5), "cut-last": cut(-1), "magic": flipped(-1),
               "footer-length": flipped(-5), "footer": footer_flipped, "noise": filled, "missing": missing}


def change_last_added(table, change):
    """Alters the data file of the newest manifest that adds one."""
    for path in manifests(table):
        found = []
        def alter(records):
            for record in records:
                if record["status"] == 1:
                    change(record["data_file"], record)
                    found.append(record)
        before = path.read_bytes()
        size = avro.rewrite(path, alter)
        if found:
            meta, records = avro.read(table.manifest_list())
            for record in records:
                if plain(record["manifest_path"]) == path:
                    record["manifest_length"] = size
            avro.write(table.manifest_list(), meta, records)
            return
        path.write_bytes(before)
    raise AssertionError("no manifest adds a file")

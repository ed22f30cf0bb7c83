# SPDX-License-Identifier: Apache-2.0
"""Whole catalogs: the log of commits, releases of several tables, tables that are verified and healed."""
import json

import pytest

from lib.lake import Table, plain

ROWS = "SELECT range AS id FROM range({0}, {1})"


@pytest.fixture
def three(table):
    """Three snapshots of one row each."""
    table.create("id long")
    for i in range(3):
        table.append(ROWS.format(i, i + 1))
    return table


@pytest.fixture
def catalog(knut, warehouse):
    def run(command, *args):
        return knut("catalog", command, "--warehouse", warehouse, *args, "--output", "json")
    return run


def document(table):
    return json.loads(table.pointer.read_text())


def manifest_list(table):
    doc = document(table)
    return plain(next(s["manifest-list"] for s in doc["snapshots"] if s["snapshot-id"] == doc["current-snapshot-id"]))


# ---- verify ----


def test_a_whole_catalog_is_verified(three, catalog):
    seen = catalog("verify").ok().row
    assert (seen["intact"], seen["snapshots"], seen["manifests"], seen["files"]) == (True, 3, 3, 0)
    assert catalog("verify", "--files").ok().row["files"] == 3
    assert catalog("verify", "--current", three.name).ok().row["snapshots"] == 1


@pytest.mark.parametrize("kind", ["metadata", "manifest-list", "manifest", "data"])
@pytest.mark.parametrize("how", ["gone", "cut"])
def test_damage_is_found_where_it_is(three, catalog, kind, how):
    victim = {"metadata": lambda: three.pointer, "manifest-list": lambda: manifest_list(three),
              "manifest": lambda: max(three.pointer.parent.glob("*-m0.avro"), key=lambda p: p.stat().st_mtime_ns),
              "data": lambda: three.files()[0]}[kind]()
    if how == "gone":
        victim.unlink()
    else:
        victim.write_bytes(victim.read_bytes()[:-20])
    done = catalog("verify", "--files")
    done.fails(1, "1 of 1 tables are damaged", "heal")
    problems = done.row["problems"]
    assert {p["kind"] for p in problems} == {kind}
    assert victim.name in json.dumps(problems)


def test_a_name_that_is_no_table_is_no_damage(three, catalog):
    catalog("verify", "ns.nope").fails(1, "ns.nope")
    catalog("verify", "--table", "ns.t").fails(2, "without --table")


# ---- heal ----


def test_an_intact_table_stays_as_it_is(three, catalog):
    before = three.pointer
    assert catalog("heal").ok().row["state"] == "intact"
    assert three.pointer == before


@pytest.mark.parametrize("kind", ["metadata gone", "metadata cut", "manifest list gone", "manifest cut"])
def test_a_damaged_table_goes_back_to_the_newest_intact_metadata(three, catalog, kind):
    second = three.history()[-2]["snapshot"] if three.history()[0]["parent"] is None else three.history()[1]["snapshot"]
    if kind == "metadata gone":
        three.pointer.unlink()
    elif kind == "metadata cut":
        three.pointer.write_text(three.pointer.read_text()[:100])
    elif kind == "manifest list gone":
        manifest_list(three).unlink()
    else:
        newest = max(three.pointer.parent.glob("*-m0.avro"), key=lambda p: p.stat().st_mtime_ns)
        newest.write_bytes(b"Obj\x01" + b"\0" * 10)
    damaged = three.pointer
    would = catalog("heal", "--dry-run").ok().row
    assert (would["state"], would["snapshot"], three.pointer) == ("would heal", second, damaged)
    healed = catalog("heal").ok().row
    assert (healed["state"], healed["snapshot"], plain(healed["from"])) == ("healed", second, damaged)
    assert healed["problems"]
    assert sorted(r["id"] for r in three.rows()) == [0, 1]
    three.append(ROWS.format(7, 8))
    assert sorted(r["id"] for r in three.rows()) == [0, 1, 7]


def test_missing_data_files_count_when_they_are_asked_about(three, catalog):
    newest = max(three.files(), key=lambda p: p.stat().st_mtime_ns)
    newest.unlink()
    assert catalog("heal").ok().row["state"] == "intact"
    assert catalog("heal", "--files").ok().row["state"] == "healed"
    assert len(three.rows()) == 2


def test_a_left_over_of_a_lost_race_is_not_taken_for_a_commit(three, catalog):
    """A document of the damaged one's own version was never current."""
    doc = document(three)
    stray = three.pointer.with_name(three.pointer.name.split("-")[0] + "-stray.metadata.json")
    stray.write_text(json.dumps({**doc, "properties": {"stray": "1"}}))
    three.pointer.unlink()
    assert "stray" not in catalog("heal").ok().row["to"]


def test_a_document_of_another_table_is_not_taken(three, catalog, knut, warehouse):
    other = Table(knut, warehouse, "ns.other").create("id long")
    for path in three.pointer.parent.glob("0000[0-2]*.metadata.json"):
        path.unlink()
    foreign = three.pointer.with_name("00002-x.metadata.json")
    foreign.write_text(other.pointer.read_text())
    manifest_list(three).unlink()
    done = catalog("heal", three.name)
    done.fails(1, "no intact metadata")
    assert done.row["state"] == "lost"
    assert "another table" in json.dumps(done.row["problems"])


# ---- backup ----


def test_a_backup_opens_as_a_catalog_and_lists_its_pointers(three, catalog, knut, warehouse, tmp_path):
    folder = tmp_path / "it's a backup"
    done = catalog("backup", folder).ok().row
    assert (done["tables"], done["views"]) == (1, 0)
    lines = [json.loads(line) for line in (folder / "pointers.jsonl").read_text().splitlines()]
    assert [(e["type"], e["name"], e["namespace"], plain(e["metadata"])) for e in lines] == [
        ("table", "ns.t", ["ns"], three.pointer)]
    three.append(ROWS.format(3, 4))
    words = ["--warehouse", warehouse, "--db", done["database"], "--output", "json"]
    assert len(knut("table", "scan", *words, "--table", "ns.t").ok().rows) == 3
    assert len(three.rows()) == 4
    assert len(knut("catalog", "commits", *words).ok().rows) == 4
    catalog("backup", folder).fails(1, "there already")
    catalog("backup").fails(2, "one folder")


def test_a_dropped_table_is_registered_again_from_a_backup(three, catalog, tmp_path):
    catalog("backup", tmp_path / "b").ok()
    three("drop").ok()
    entry = json.loads((tmp_path / "b/pointers.jsonl").read_text())
    three("register", "--metadata", entry["metadata"]).ok()
    assert len(three.rows()) == 3


# ---- the log ----


def test_the_log_tells_what_came_after_a_number(three, catalog):
    log = catalog("commits").ok().rows
    assert [e["seq"] for e in log] == [1, 2, 3, 4]
    assert [e["change"] for e in log] == ["create"] + ["update"] * 3
    assert {e["name"] for e in log} == {"ns.t"}
    three("rename", "ns.u").ok()
    Table(three.knut, three.warehouse, "ns.u")("drop").ok()
    later = catalog("commits", "--since", "4").ok().rows
    assert [(e["change"], e["name"], e["from"]) for e in later] == [("rename", "ns.u", "ns.t"), ("drop", "ns.u", None)]
    assert len(catalog("commits", "--limit", "2").ok().rows) == 2
    assert catalog("commits", "--since", "99").ok().rows == []


def test_the_log_is_a_warehouses_own(knut):
    knut("catalog", "commits", "--rest-uri", "http://127.0.0.1:1").fails(2, "--warehouse")


# ---- release ----


def test_a_release_moves_all_tables_or_none(knut, warehouse, catalog):
    tables = [Table(knut, warehouse, f"ns.{name}").create("id long", "--property", "write.wap.enabled=true")
              for name in "ab"]
    for table in tables:
        table.append(ROWS.format(0, 1))
    tables[0].append(ROWS.format(1, 2), "--wap-id", "w")
    catalog("release", "--wap-id", "w", "ns.a", "ns.b").fails(1, "ns.b", "'w'")
    assert len(tables[0].rows()) == 1
    tables[1].append(ROWS.format(1, 2), "--wap-id", "w")
    assert [r["released"] for r in catalog("release", "--wap-id", "w", "--all", "--tag", "day").ok().rows] == [True, True]
    assert [len(t.rows("--ref", "day")) for t in tables] == [2, 2]
    last = catalog("commits").ok().rows[-2:]
    assert [e["name"] for e in last] == ["ns.a", "ns.b"]

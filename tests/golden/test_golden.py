# SPDX-License-Identifier: Apache-2.0
"""Tables of other writers against the answers of the reference reader (README.md here).

Every snapshot of every table: its rows, its plan, its changes; every table's history delivered
commit by commit into DuckDB. What is not done yet must be refused by name, and stands in REFUSED:
a feature that stops working, or starts to, fails here.
"""
import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
from functools import cache
from pathlib import Path

import pytest

from lib import once
from lib import rows as R
from lib.lake import Delivery, Table, plain

HERE = Path(__file__).resolve().parent
TABLES = Path("/tmp/iceberg-golden")
REFUSAL = 3

# ---- the answers, also needed to name the cases ----


def unpack(archive, folder):
    subprocess.run(["tar", "--zstd", "-xf", archive, "-C", folder], check=True)


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@cache
def answers():
    """{"g/cow_v2": folder}: unpacked beside the machine's other caches, by the archive's digest."""
    archive = HERE / "expected.tar.zst"
    cache_folder = Path(f"/tmp/knut-golden-answers-{os.getuid()}")
    cache_folder.mkdir(mode=0o700, exist_ok=True)
    folder = once.once(cache_folder, digest(archive)[:16], lambda to: unpack(archive, to))
    return {f"{path.parent.name}/{path.name}": path for path in sorted(folder.glob("expected/*/*"))}


@cache
def lines(table, name):
    return R.lines(answers()[table] / f"{name}.jsonl")


def of_snapshot(table, name, snapshot):
    return next(line for line in lines(table, name) if line["snapshot"] == snapshot)


def by_name_mapping(rows):
    """The reference reader reads NULL for st.x where files have no field ids, although the table's
    name mapping has it; PyIceberg, DuckDB and the specification say that it is there. x is id."""
    return [{**row, "st": {"x": row["id"]}} for row in rows]


def expected_rows(table, snapshot):
    if table == "g/namemap":
        return by_name_mapping(of_snapshot(table, "states", snapshot)["rows"])
    by_spec = answers()[table] / "states_by_spec.json"
    if by_spec.exists():
        corrected = json.loads(by_spec.read_text())
        for state in corrected if isinstance(corrected, list) else corrected.get("states", []):
            if state["snapshot"] == snapshot:
                return state["rows"]
    return of_snapshot(table, "states", snapshot).get("rows")


def golden_tables():
    return list(answers())


def golden_snapshots():
    return [(table, state["snapshot"]) for table in golden_tables() for state in lines(table, "states")]


# ---- what is refused, and in which words ----

ORC, VARIANT = r"\bORC\b", r"\bvariant\b"

# table -> {feature: from which of its snapshots on (0 = all)}
REFUSED = {
    "g/mixed_formats": {ORC: 2},
    "g/orc_v2": {ORC: 0},
    "g/orc_v3": {ORC: 0},
    "g/variant_v3": {VARIANT: 0},
    "j/eqdel_orc": {ORC: 0},
    "j/types_v2_orc": {ORC: 0},
    "j/types_v3_orc": {ORC: 0},
    "j/variant_v3": {VARIANT: 0},
}


def refusal(table, snapshot):
    """The pattern that the refusal of this snapshot's scan must have; None: it is read."""
    at = [state["snapshot"] for state in lines(table, "states")].index(snapshot)
    for feature, first in REFUSED.get(table, {}).items():
        if at >= first:
            return feature
    return None


# ---- the tables ----


@pytest.fixture(scope="session")
def golden(shared):
    """{"g/cow_v2": its newest metadata document}, in the one place where the tables work."""
    archive = HERE / "tables.tar.zst"
    TABLES.mkdir(exist_ok=True)
    with once.locked("/tmp/.iceberg-golden.lock"):
        stamp = TABLES / ".unpacked"
        if not stamp.exists() or stamp.read_text() != digest(archive):
            unpack(archive, "/tmp")
            stamp.write_text(digest(archive))
    return {name: plain(json.loads((path / "table.json").read_text())["metadata"])
            for name, path in answers().items()}


def documents(newest):
    """All documents of a table, oldest first."""
    paths = [p for p in newest.parent.iterdir() if p.name.endswith(".metadata.json")]
    return sorted(paths, key=lambda p: int(p.name.lstrip("v").split("-")[0].split(".")[0]))


@cache
def read_document(path):
    import gzip
    raw = path.read_bytes()
    return json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)


def compare_rows(got, table, snapshot):
    rows = expected_rows(table, snapshot)
    if rows is None:  # large tables have only their count
        assert len(got) == of_snapshot(table, "states", snapshot)["count"]
    else:
        R.assert_same(got, rows, f"{table} {snapshot}")


def chosen(rows, names):
    return [{k: v for k, v in row.items() if k in names} for row in rows]


# ---- scans ----


@pytest.mark.parametrize("table,snapshot", golden_snapshots())
def test_the_rows_of_a_snapshot_are_the_reference_readers(knut, golden, table, snapshot):
    done = knut.json("table", "scan", "--metadata", golden[table], "--snapshot", snapshot)
    feature = refusal(table, snapshot)
    if feature:
        done.fails(REFUSAL, feature)
        assert done.out == ""
    else:
        done.ok()
        compare_rows(done.rows, table, snapshot)


@pytest.mark.parametrize("table,snapshot", golden_snapshots())
def test_the_plan_of_a_snapshot_is_the_reference_readers(knut, golden, table, snapshot):
    done = knut.json("table", "scan", "--plan", "--metadata", golden[table], "--snapshot", snapshot).ok()
    def fact(task, spec):
        return (plain(task["file"]), spec, task["seq"], task["records"],
                tuple(sorted((plain(d["file"]), d["content"], d["seq"]) for d in task["deletes"])))
    got = sorted(fact(task, task["spec"]) for task in done.rows)
    assert got == sorted(fact(task, task["spec"]) for task in of_snapshot(table, "plan", snapshot)["tasks"])


@pytest.mark.parametrize("table", [t for t in golden_tables() if not lines(t, "states")])
def test_a_table_without_snapshots_has_no_rows(knut, golden, table):
    assert knut.json("table", "scan", "--metadata", golden[table]).ok().rows == []
    assert knut.json("table", "scan", "--count", "--metadata", golden[table]).ok().row == {"count": 0}


@pytest.mark.parametrize("table,snapshot", [
    (table, state["snapshot"]) for table in golden_tables() for state in lines(table, "states")
    if "rows_lineage" in state])
def test_row_lineage_is_the_reference_readers(knut, golden, table, snapshot):
    done = knut.json("table", "scan", "--lineage", "--metadata", golden[table], "--snapshot", snapshot)
    feature = refusal(table, snapshot)
    if feature:
        done.fails(REFUSAL, feature)
    else:
        expected = of_snapshot(table, "states", snapshot)["rows_lineage"]
        if "rows_current_schema" in of_snapshot(table, "states", snapshot):
            # These answers have the current schema, the scan the snapshot's.
            pick = {"id", "_row_id", "_last_updated_sequence_number"}
            R.assert_same(chosen(done.ok().rows, pick), chosen(expected, pick), f"{table} {snapshot}")
        else:
            R.assert_same(done.ok().rows, expected, f"{table} {snapshot}")


@pytest.mark.parametrize("table", golden_tables())
def test_refs_name_their_snapshots(knut, golden, table):
    facts = json.loads((answers()[table] / "table.json").read_text())
    shown = knut.json("table", "show", "--metadata", golden[table]).ok().row
    assert shown["refs"] == facts["refs"]
    assert shown["current_snapshot"] == facts["current_snapshot"]
    for name, ref in facts["refs"].items():
        done = knut.json("table", "scan", "--count", "--metadata", golden[table], "--ref", name)
        if not refusal(table, ref["snapshot"]):
            assert done.ok().row["count"] == of_snapshot(table, "states", ref["snapshot"])["count"]


# ---- changes ----


def changes_refusal(table, line):
    """A window reads files of both ends, but only those that came or went."""
    if "error" in line:
        return "expired"
    if line["operation"] == "replace":
        return None
    ends = [line["snapshot"], line["parent"]]
    return next(filter(None, (refusal(table, end) for end in ends if end is not None)), None)


def changed_rows(table, rows):
    return by_name_mapping(rows) if table == "g/namemap" else rows


@pytest.mark.parametrize("table,snapshot", [
    (table, line["snapshot"]) for table in golden_tables() for line in lines(table, "changes")])
def test_the_changes_of_a_snapshot_are_the_difference_to_its_parent(knut, golden, table, snapshot):
    """Under the table's current schema, as the answers are."""
    line = of_snapshot(table, "changes", snapshot)
    words = ["--metadata", golden[table], "--to", snapshot]
    if line["parent"] is not None and "error" not in line:
        words += ["--from", line["parent"]]
    done = knut.json("table", "changes", *words)
    feature = changes_refusal(table, line)
    if feature:
        done.fails(REFUSAL, feature)
        return
    rows = done.ok().rows
    for row in rows:
        assert row.pop("_commit_snapshot_id") == snapshot and row.pop("_change_ordinal") == 0
    kinds = {"delete": [], "insert": []}
    for row in rows:
        kinds[row.pop("_change_type")].append(row)
    for kind, answer in ("delete", line["deletes"]), ("insert", line["inserts"]):
        if isinstance(answer, int):
            assert len(kinds[kind]) == answer
        else:
            R.assert_same(kinds[kind], changed_rows(table, answer), f"{table} {snapshot} {kind}s")


# ---- deliveries ----


def unique_ids(states):
    """May id be a key? Never NULL, never twice."""
    return all(len({row.get("id") for row in s.get("rows", [])}) == s["count"] and
               all(row.get("id") is not None for row in s.get("rows", [])) for s in states)


def catalog_of(folder, document):
    """A catalog that another tool could have made: one row of the JDBC schema, on the document."""
    with sqlite3.connect(folder / "catalog.db") as db:
        db.execute("CREATE TABLE IF NOT EXISTS iceberg_tables (catalog_name VARCHAR(255) NOT NULL, "
                   "table_namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL, "
                   "metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000), "
                   "iceberg_type VARCHAR(5), PRIMARY KEY (catalog_name, table_namespace, table_name))")
        db.execute("CREATE TABLE IF NOT EXISTS iceberg_namespace_properties (catalog_name VARCHAR(255) "
                   "NOT NULL, namespace VARCHAR(255) NOT NULL, property_key VARCHAR(255), property_value "
                   "VARCHAR(1000), PRIMARY KEY (catalog_name, namespace, property_key))")
        db.execute("INSERT OR REPLACE INTO iceberg_tables VALUES ('knut', 'g', 't', ?, NULL, 'TABLE')",
                   (f"file:{document}",))


def manifest_list(document, head):
    return plain(next(s["manifest-list"] for s in document["snapshots"] if s["snapshot-id"] == head))


def lineage(document):
    parents = {s["snapshot-id"]: s.get("parent-snapshot-id") for s in document.get("snapshots", [])}
    at, found = document.get("current-snapshot-id"), []
    while at in parents:
        found.append(at)
        at = parents[at]
    return found


@pytest.mark.parametrize("table,keyed", [
    *((table, False) for table in golden_tables()),
    *((table, True) for table in golden_tables() if unique_ids(lines(table, "states")))])
def test_a_history_is_delivered_commit_by_commit(knut, golden, tmp_path, table, keyed):
    """The pointer is moved from document to document; after each, the copy equals the source."""
    history = documents(golden[table])
    source = Table(knut, tmp_path / "warehouse", "g.t")
    source.warehouse.mkdir()
    folder = tmp_path / "delivery"
    folder.mkdir()
    copy = Delivery(source, folder, options=("--key", "id") if keyed else ())
    delivered = None
    for path in history:
        document = read_document(path)
        catalog_of(source.warehouse, path)
        head = document.get("current-snapshot-id")
        if head in (None, -1) or not manifest_list(document, head).exists():
            continue  # nothing there, or expired since the document was written
        before = copy.facts()
        done = copy.run()
        if done.rc == 0:
            delivered = head
            assert copy.cursor()[0] == head
            compare(copy, table, document, head)
            continue
        # A refusal holds the cursor and leaves the copy; the operator's way out is a reload.
        why = expected_refusal(table, document, delivered, head)
        assert why, f"{path.name}: {done}"
        done.fails(REFUSAL, why)
        assert copy.facts()["rows"] == before["rows"]
        assert done.row["deliveries"][0]["status"] == "refused"
        if refusal(table, head):
            return
        copy.command("reload").ok()
        copy.deliver()
        delivered = head
        compare(copy, table, document, head)


def expected_refusal(table, document, delivered, head):
    kept = {s["snapshot-id"] for s in document["snapshots"]}
    if delivered is not None and delivered not in kept:
        return "expired"
    if delivered is not None and delivered not in lineage(document):
        return r"rolled back|not an ancestor"
    recorded = {state["snapshot"] for state in lines(table, "states")}
    window = [s for s in lineage(document) if s in recorded]
    return next(filter(None, (refusal(table, s) for s in window)), None)


def compare(copy, table, document, head):
    """The copy has the document's current schema; the answers the snapshot's, or the newest one."""
    if head not in {state["snapshot"] for state in lines(table, "states")}:
        return  # expired since: there is no answer
    state, got = of_snapshot(table, "states", head), copy.rows()
    if "rows" not in state:
        assert len(got) == state["count"]
        return
    rows = expected_rows(table, head)
    if state["schema_id"] != document["current-schema-id"]:
        names = {f["name"] for s in document["schemas"] if s["schema-id"] == document["current-schema-id"]
                 for f in s["fields"]}
        same = unchanged_columns(document, state["schema_id"])
        assert not got or set(got[0]) == names
        got, rows = chosen(got, same), chosen(rows, same)
    # DuckDB has nanoseconds without a time zone only: timestamptz_ns is kept in UTC.
    schema = next(s for s in document["schemas"] if s["schema-id"] == document["current-schema-id"])
    for name in (f["name"] for f in schema["fields"] if f["type"] == "timestamptz_ns"):
        got = [{**row, name: row[name] and row[name] + "Z"} for row in got]
    # DuckDB's storage takes 0.0 and -0.0 for one value where it compresses runs.
    R.assert_same(got, rows, f"{table} at {head}", signed_zeros=False)


def unchanged_columns(document, schema_id):
    """Names of columns that are the same in this schema and in the current one."""
    def columns(wanted):
        schema = next(s for s in document["schemas"] if s["schema-id"] == wanted)
        return {json.dumps({k: f[k] for k in ("id", "name", "type")}) for f in schema["fields"]}
    same = columns(schema_id) & columns(document["current-schema-id"])
    return {json.loads(text)["name"] for text in same}


# ---- changes of the shape ----

# What the generator had Spark do after CREATE TABLE, in the program's words, which are Spark's.
ALTERED = {
    "g/schema_evo": [
        "ALTER COLUMN a TYPE BIGINT", "ALTER COLUMN b TYPE DOUBLE", "ALTER COLUMN c TYPE DECIMAL(20,2)", "RENAME COLUMN d TO d2",
        "ADD COLUMN d INT COMMENT 'new d, not the old one'", "ALTER COLUMN n.x TYPE BIGINT", "RENAME COLUMN n.y TO yy", "ADD COLUMN n.z DOUBLE FIRST",
        "ALTER COLUMN l.element.p TYPE BIGINT", "ADD COLUMN l.element.r STRING", "ALTER COLUMN m.value.v TYPE DOUBLE", "DROP COLUMN b",
        "ADD COLUMN b STRING", "ALTER COLUMN d2 FIRST", "ALTER COLUMN a AFTER c", "DROP COLUMN n.x", "ALTER COLUMN c DROP NOT NULL"],
    "g/part_evo": [
        "ADD PARTITION FIELD days(ts)", "REPLACE PARTITION FIELD ts_day WITH hours(ts)", "ADD PARTITION FIELD bucket(4, id) AS idb",
        "DROP PARTITION FIELD ts_hour", "ADD PARTITION FIELD truncate(2, s)", "DROP PARTITION FIELD idb", "DROP PARTITION FIELD s_trunc_2",
        "ADD PARTITION FIELD years(ts)", "ADD PARTITION FIELD months(ts)"],
}


@pytest.mark.parametrize("name", ALTERED)
def test_the_same_changes_make_the_schemas_and_specs_that_spark_made(table, golden, name):
    first, last = (read_document(path) for path in (documents(golden[name])[0], documents(golden[name])[-1]))
    assert not first.get("snapshots")

    def begin(document):
        location = document["location"]
        document.clear()
        document.update({**first, "location": location, "metadata-log": []})

    table.create("id int").commit(begin)
    for change in ALTERED[name]:
        table("alter", change).ok()
    ours = table.metadata()
    for key in ("schemas", "current-schema-id", "last-column-id", "partition-specs", "default-spec-id", "last-partition-id"):
        assert ours[key] == last[key], key

# SPDX-License-Identifier: Apache-2.0
"""Tables of other writers, moved to a place of their own, compacted and their manifests rewritten: the same rows and
row lineage, the same history and references, and no changes."""
import pytest

from lib import rows as R
from lib.damage import move
from lib.lake import Table
from test_golden import (REFUSAL, catalog_of, golden, golden_tables, lines, read_document,  # noqa: F401
                         REFUSED)

# What a table has that is not written to yet, by name.
UNWRITTEN = r"format version 1|variant|\bORC\b"
UNREADABLE = set(REFUSED)


def moved(document, knut, folder):
    folder.mkdir()
    target = move(document.parent.parent, folder / "t")
    catalog_of(folder, target / "metadata" / document.name)
    return Table(knut, folder, "g.t")


def seen(table, version):
    """All that must stay: rows by snapshot, with their lineage in version 3."""
    lineage = ("--lineage",) if version >= 3 else ()
    rows = {}
    for line in table.history():
        done = table("scan", "--output", "json", "--snapshot", line["snapshot"], *lineage)
        rows[line["snapshot"]] = R.multiset(done.rows) if done.rc == 0 else done.err
    shown = table("show", "--output", "json").ok().row
    return rows, {name: shown["refs"][name] for name in shown["refs"] if name != "main"}, shown["uuid"]


# Tables with files outside their own folder: moving does not take those along.
ELSEWHERE = ("g/layout", "g/namemap")


@pytest.mark.parametrize("name", [n for n in golden_tables() if n not in ELSEWHERE and lines(n, "states")])
def test_a_rewritten_table_has_the_same_rows(knut, golden, tmp_path, name):  # noqa: F811
    document = read_document(golden[name])
    version = document["format-version"]
    table = moved(golden[name], knut, tmp_path / "lake")
    before = seen(table, version)
    lineage = ("--lineage",) if version >= 3 else ()
    was = table("scan", "--output", "json", *lineage)
    done = table("compact", "--rewrite-all", "--remove-dangling-deletes", "--output", "json")
    if done.rc != 0:
        done.fails(REFUSAL, UNWRITTEN)
        assert version == 1 or name in UNREADABLE, "only what is not written at all may be refused"
        return
    table("rewrite-manifests").ok()
    assert R.multiset(table.rows(*lineage)) == R.multiset(was.ok().rows)
    after = seen(table, version)
    assert after[1:] == before[1:]
    assert {s: after[0][s] for s in before[0]} == before[0]
    made = [line for line in table.history() if line["snapshot"] not in before[0]]
    assert made or not was.rows
    for line in made:
        assert line["operation"] == "replace"
        assert table("changes", "--output", "json", "--from", line["parent"], "--to", line["snapshot"]).ok().rows == []

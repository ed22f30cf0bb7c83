# SPDX-License-Identifier: Apache-2.0
"""PyIceberg on a warehouse that the program opens too, and what both must agree on."""
import warnings
from dataclasses import dataclass
from pathlib import Path

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import StaticTable, Table

from lib import rows as R
from lib.lake import plain
from lib.program import Program

# PyIceberg says for each delete that merge-on-read is not there and that copy-on-write is done instead.
warnings.filterwarnings("ignore", message="Merge on read is not yet supported")


class Lake:
    """A folder and a catalog in it, opened by PyIceberg's SqlCatalog and by the program."""

    def __init__(self, knut: Program, folder: Path, db=None, catalog="knut"):
        folder.mkdir(parents=True, exist_ok=True)
        self.knut, self.folder, self.name = knut, folder, catalog
        self.db = db or folder / "catalog.db"
        self.locator = ("--warehouse", folder)
        if db:
            self.locator += ("--db", db, "--catalog", catalog)

    @property
    def catalog(self):
        """A fresh one each time, so that nothing is remembered."""
        return SqlCatalog(self.name, uri=f"sqlite:///{self.db}", warehouse=f"file://{self.folder}")

    def create(self, schema, name="ns.t", spec=None, order=None, location=None, version=2, **properties):
        """A new table by PyIceberg; properties have _ for . and __ for -."""
        catalog = self.catalog
        catalog.create_namespace_if_not_exists(name.rpartition(".")[0])
        more = {k: v for k, v in (("partition_spec", spec), ("sort_order", order), ("location", location)) if v}
        spelled = {k.replace("__", "-").replace("_", "."): str(v) for k, v in properties.items()}
        catalog.create_table(name, schema, properties={"format-version": str(version), **spelled}, **more)
        return Shared(self, name)

    def table(self, name="ns.t"):
        return Shared(self, name)


def under_current_schema(table, snapshot_id):
    """Rows of a snapshot under the table's schema of today; PyIceberg's scan takes the snapshot's own."""
    snapshots = [s.model_copy(update={"schema_id": None}) for s in table.metadata.snapshots]
    metadata = table.metadata.model_copy(update={"snapshots": snapshots})
    view = Table(table.name(), metadata, table.metadata_location, table.io, table.catalog)
    return R.of_arrow(view.scan(snapshot_id=snapshot_id).to_arrow())


def difference(before, after):
    """The multiset difference as (deletes, inserts), each a Counter."""
    before, after = R.multiset(before), R.multiset(after)
    return before - after, after - before


def split_changes(rows):
    """The program's change rows as (deletes, inserts)."""
    sides = {"delete": [], "insert": []}
    for row in rows:
        row = dict(row)
        row.pop("_commit_snapshot_id"), row.pop("_change_ordinal")
        sides[row.pop("_change_type")].append(row)
    return R.multiset(sides["delete"]), R.multiset(sides["insert"])


def assert_changes(got, expected, what):
    for side, g, e in zip(("deletes", "inserts"), got, expected):
        def show(counter):
            return "\n".join(f"  {n} x {R.readable(k)}" for k, n in list(counter.items())[:8]) or "  none"
        assert g == e, f"{what}: {side} differ\ntoo many:\n{show(g - e)}\nmissing:\n{show(e - g)}"


@dataclass
class Shared:
    """A table in a lake, seen from both sides."""
    lake: Lake
    name: str

    @property
    def ice(self):
        return self.lake.catalog.load_table(self.name)

    @property
    def static(self):
        return StaticTable.from_metadata(self.ice.metadata_location)

    @property
    def locator(self):
        return (*self.lake.locator, "--table", self.name)

    @property
    def locators(self):
        """The three ways to name the table to the program, with what its files need to be let in."""
        ice = self.ice
        return {"catalog": self.locator, "metadata": ("--metadata", plain(ice.metadata_location)),
                "root": ("--root", plain(ice.location()))}

    def knut(self, command, *args, locator=None):
        return self.lake.knut.json("table", command, *(locator or self.locator), *args)

    def rows(self, *args, **more):
        return self.knut("scan", *args, **more).ok().rows

    def changes(self, *args):
        return split_changes(self.knut("changes", *args).ok().rows)

    def agree(self, lately=1):
        """Both read the same rows now, by each locator; the last commits changed the same rows."""
        ice = self.ice
        now = R.of_arrow(ice.scan().to_arrow())
        for how, locator in self.locators.items():
            R.assert_same(self.rows(locator=locator), now, f"{self.name} by {how}")
        assert self.knut("scan", "--count").ok().row == {"count": len(now)}
        lineage = []
        at = ice.current_snapshot()
        while at is not None and len(lineage) < lately:
            lineage.append(at)
            at = ice.snapshot_by_id(at.parent_snapshot_id) if at.parent_snapshot_id is not None else None
        for snapshot in lineage:
            self.agree_on_changes(ice, snapshot)
        return self

    def agree_on_changes(self, ice, snapshot):
        words = ["--to", snapshot.snapshot_id]
        before = []
        if snapshot.parent_snapshot_id is not None:
            words += ["--from", snapshot.parent_snapshot_id]
            before = under_current_schema(ice, snapshot.parent_snapshot_id)
        expected = difference(before, under_current_schema(ice, snapshot.snapshot_id))
        assert_changes(self.changes(*words), expected, f"{self.name} at {snapshot.snapshot_id}")

    def agree_on_history(self):
        """Both list the same snapshots and references, and read the same rows at each."""
        ice = self.ice
        listed = {(s["snapshot"], s["parent"], s["operation"], s["schema"]) for s in self.knut("history").ok().rows}
        assert listed == {(s.snapshot_id, s.parent_snapshot_id, s.summary.operation.value, s.schema_id)
                          for s in ice.snapshots()}
        for snapshot in ice.snapshots():
            R.assert_same(self.rows("--snapshot", snapshot.snapshot_id),
                          R.of_arrow(ice.scan(snapshot_id=snapshot.snapshot_id).to_arrow()),
                          f"{self.name} at {snapshot.snapshot_id}")
        for name, ref in ice.refs().items():
            # A branch is read under the table's current schema, as Java does it; PyIceberg takes the snapshot's.
            if ref.snapshot_ref_type == "branch" and ice.snapshot_by_id(ref.snapshot_id).schema_id != ice.schema().schema_id:
                continue
            R.assert_same(self.rows("--ref", name),
                          R.of_arrow(ice.scan(snapshot_id=ref.snapshot_id).to_arrow()), f"{self.name} at {name}")
        return self

    def agree_on_filter(self, text, expression=None):
        """One filter, spelled for each side, finds the same rows."""
        ice = self.ice
        R.assert_same(self.rows("--where", text),
                      R.of_arrow(ice.scan(row_filter=expression or text).to_arrow()), f"{self.name} where {text}")

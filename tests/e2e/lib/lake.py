# SPDX-License-Identifier: Apache-2.0
"""A warehouse, its tables, and their deliveries, as the program's commands see them."""
import json
import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from lib import rows as R
from lib.program import Program, Result


def plain(uri):
    """The path of a file: URI or of a plain path."""
    uri = str(uri)
    return Path("/" + uri[5:].lstrip("/")) if uri.startswith("file:") else Path(uri)


@dataclass
class Table:
    """A table in the catalog of a warehouse."""
    knut: Program
    warehouse: Path
    name: str = "ns.t"

    @property
    def locator(self):
        return ("--warehouse", self.warehouse, "--table", self.name)

    def __call__(self, command, *args, **more):
        return self.knut("table", command, *self.locator, *args, **more)

    def create(self, schema, *args):
        self("create", "--schema", schema, *args).ok()
        return self

    def append(self, sql, *args, **more):
        return self("append", "--sql", sql, "--output", "json", *args, **more).ok().row

    def delete(self, where, *args):
        return self("delete", "--where", where, "--output", "json", *args).ok().row

    def overwrite(self, where, sql, *args):
        return self("overwrite", "--where", where, "--sql", sql, "--output", "json", *args).ok().row

    def rows(self, *args):
        return self("scan", "--output", "json", *args).ok().rows

    def history(self):
        return self("history", "--output", "json").ok().rows

    def files(self, content="data"):
        """Paths of the current snapshot's files."""
        listed = self("files", "--output", "json").ok().rows
        return [plain(f["file"]) for f in listed if f["content"] == content]

    # -- what lies behind: for tests that damage it --

    @property
    def db(self):
        return self.warehouse / "catalog.db"

    @property
    def pointer(self):
        """The metadata document that is current."""
        namespace, _, name = self.name.rpartition(".")
        with closing(sqlite3.connect(self.db)) as db, db:
            row = db.execute("SELECT metadata_location FROM iceberg_tables WHERE table_namespace = ? "
                             "AND table_name = ?", (namespace, name)).fetchone()
        return plain(row[0])

    def point(self, document):
        """Makes document the current one, as another tool's commit would."""
        namespace, _, name = self.name.rpartition(".")
        with closing(sqlite3.connect(self.db)) as db, db:
            n = db.execute("UPDATE iceberg_tables SET previous_metadata_location = metadata_location, "
                           "metadata_location = ? WHERE table_namespace = ? AND table_name = ?",
                           (f"file://{document}", namespace, name)).rowcount
        assert n == 1

    def metadata(self):
        return json.loads(self.pointer.read_text())

    def commit(self, change):
        """Commits a changed copy of the metadata document: change(document)."""
        document = self.metadata()
        change(document)
        number = int(self.pointer.name.split("-")[0]) + 1
        path = self.pointer.with_name(f"{number:05}-{os.urandom(8).hex()}.metadata.json")
        path.write_text(json.dumps(document))
        self.point(path)
        return path

    def manifest_list(self):
        document = self.metadata()
        return plain(next(s["manifest-list"] for s in document["snapshots"]
                          if s["snapshot-id"] == document["current-snapshot-id"]))


# Types of the copy as DuckDB shows them keep nanoseconds and years that Python has not.
def arrow(db, sql):
    return db.execute(sql).to_arrow_table()


@dataclass
class Delivery:
    """A delivery of a table into a DuckDB file, with a journal of its own."""
    source: Table
    folder: Path
    target: str = "main.copy"
    options: tuple = ()
    sink: str = ""
    locator: tuple = ()
    results: list = field(default_factory=list)

    @property
    def file(self):
        return self.folder / "copy.duckdb"

    @property
    def state(self):
        return self.folder / "state.db"

    @property
    def words(self):
        return (*(self.locator or self.source.locator), "--sink", self.sink or f"duckdb:{self.file}",
                "--target", self.target, "--state", self.state, *self.options)

    def command(self, command, *args, **more) -> Result:
        return self.source.knut("cdc", command, *self.words, *args, "--output", "json", **more)

    def run(self, *args, **more) -> Result:
        """One round."""
        return self.command("run", "--once", *args, **more)

    def deliver(self, *args):
        """A round that must succeed: its report."""
        return self.run(*args).ok().row["deliveries"][0]

    def rows(self):
        """What the copy holds."""
        with duckdb.connect(str(self.file), read_only=True) as db:
            return R.of_arrow(arrow(db, f"FROM {self.target}"))

    def loads(self):
        with duckdb.connect(str(self.file), read_only=True) as db:
            return db.execute("SELECT seq, label, target, rows FROM _knut_loads ORDER BY seq").fetchall()

    def cursor(self):
        """What the journal says: cursor and epoch."""
        row = self.source.knut("cdc", "status", "--state", self.state, "--output", "json").ok().row
        return row["cursor"], row["epoch"]

    def facts(self):
        """All that a failed run must leave as it was."""
        there = self.file.exists()
        return {"cursor": self.cursor() if self.state.exists() else None,
                "rows": R.multiset(self.rows()) if there else None,
                "loads": self.loads() if there else None}

    def copy_to(self, folder):
        """The same delivery with copies of journal and destination. Their paths are part of a
        delivery's identity, so the copies must take the place of the originals: see place()."""
        shutil.copytree(self.folder, folder)

    def place(self, folder):
        """Puts the files of folder (made by copy_to) in the delivery's place."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(folder, self.folder)


def left_over(*folders):
    """Files that a finished program should not leave: temporary ones, and anything in a TMPDIR."""
    found = []
    for folder in folders:
        for path in Path(folder).rglob("*"):
            if path.name.startswith((".tmp", "tmp")) or path.suffix in (".tmp", ".partial", ".wal"):
                found.append(path)
    return found

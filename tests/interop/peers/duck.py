# SPDX-License-Identifier: Apache-2.0
"""DuckDB's own iceberg extension, loaded by path (avro first); not the program's engine."""
import os
from pathlib import Path

import duckdb

from lib import rows as R
from lib.lake import arrow, plain
from lib.program import TOP

DEPS = Path(os.environ.get("KN_DEPS", TOP / ".deps/duckdb"))


def duck_rows(metadata, snapshot=None):
    """Rows of a table, by the path of a metadata document."""
    return R.of_arrow(duck_arrow(metadata, snapshot))


def duck_arrow(metadata, snapshot=None):
    at = f", snapshot_from_id = {snapshot}" if snapshot else ""
    with duckdb.connect(config={"threads": 1}) as db:
        for name in ("avro", "iceberg"):
            db.execute(f"LOAD '{DEPS}/ext/{name}.duckdb_extension'")
        db.execute("SET TimeZone = 'UTC'")
        return arrow(db, f"FROM iceberg_scan('{plain(metadata)}'{at})")

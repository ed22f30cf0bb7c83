# SPDX-License-Identifier: Apache-2.0
"""Run by Spark's Python (spark_job.py): what Spark itself takes for orphans, and removes when snapshots expire.

Each table is copied as it was before, so that the program can be asked about the same files under the same names.
"""
import os
import shutil
import time
from pathlib import Path

DAY = 86400


def names(folder):
    """Files that are not hidden: a local file system keeps checksums beside."""
    return sorted(str(path) for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))


def litter(folder):
    """What nobody reaches, old and new, hidden and not."""
    for name, days in (("data/junk.parquet", 9), ("data/deep/er/junk", 9), ("metadata/junk.avro", 9), ("junk", 9),
                       ("data/young.parquet", 0), ("data/_SUCCESS", 9), ("_temporary/junk", 9), ("data/.hidden", 9)):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("litter")
        os.utime(path, (time.time() - days * DAY,) * 2)


def keep_up(spark, warehouse, name, statements):
    table, folder = f"c.s.{name}", Path(warehouse) / "s" / name
    for statement in statements:
        spark.sql(statement.replace("$T", table).replace("$N", f"s.{name}")).collect()
    litter(folder)
    shutil.copytree(folder, folder.with_name(name + ".before"))
    now = int(time.time() * 1000) + 1000
    before = names(folder)
    spark.sql(f"CALL c.system.expire_snapshots(table => 's.{name}', older_than => TIMESTAMP_MILLIS({now}), "
              "retain_last => 1)").collect()
    said = {"folder": str(folder), "older_than_ms": now, "expired": sorted(set(before) - set(names(folder))),
            "snapshots": [r.snapshot_id for r in spark.sql(f"SELECT snapshot_id FROM {table}.snapshots").collect()],
            "refs": {r.name: r.snapshot_id for r in spark.sql(f"SELECT name, snapshot_id FROM {table}.refs").collect()}}
    # Orphans last: of the table as it was.
    shutil.rmtree(folder)
    shutil.copytree(folder.with_name(name + ".before"), folder)
    listed = spark.sql(f"CALL c.system.remove_orphan_files(table => 's.{name}', dry_run => true, "
                       f"older_than => TIMESTAMP_MILLIS({now - 2 * DAY * 1000}))").collect()
    said["orphans"] = sorted(r[0].removeprefix("file:") for r in listed)
    return said

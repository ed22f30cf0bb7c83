# SPDX-License-Identifier: Apache-2.0
"""Run by Spark's Python: makes tables in a Hadoop catalog, and writes down what it reads of them and of others.

usage: spark_job.py PLAN.json  ->  <answers>/spark-NAME.json, <answers>/knut-NAME.json
Knows nothing of the tests; values are spelled as lib/rows.py spells them.
"""
import json
import sys
import time
from pathlib import Path

from spark_upkeep import keep_up
from spark_values import rows, session


def answer(path, make):
    """Writes what make returns; what went wrong is an answer too."""
    began = time.monotonic()
    try:
        said = {**make(), "failed": None}
    except Exception as error:
        said = {"failed": f"{type(error).__name__}: {str(error)[:2000]}"}
    print(f"{Path(path).stem}: {time.monotonic() - began:.1f} s", flush=True)
    Path(path).write_text(json.dumps(said))


def make_table(spark, name, statements, has_changelog):
    table = f"c.s.{name}"
    for statement in statements:
        spark.sql(statement.replace("$T", table).replace("$N", f"s.{name}")).collect()
    now = spark.sql(f"SELECT * FROM {table}")
    snapshots = [row.asDict() for row in spark.sql(
        f"SELECT snapshot_id, parent_id, operation FROM {table}.snapshots ORDER BY committed_at").collect()]
    at = {s["snapshot_id"]: spark.sql(f"SELECT * FROM {table} VERSION AS OF {s['snapshot_id']}") for s in snapshots}
    return {
        "snapshots": snapshots, "current": rows(now), "rows": {s: rows(frame) for s, frame in at.items()},
        "refs": {r.name: r.snapshot_id for r in spark.sql(f"SELECT name, snapshot_id FROM {table}.refs").collect()},
        "as_today": [s for s, frame in at.items() if frame.schema == now.schema],
        "changelog": changelog(spark, name) if has_changelog else None}


def changelog(spark, name):
    """Spark's own change log, net, where it can make one."""
    try:
        spark.sql(f"CALL c.system.create_changelog_view(table => 's.{name}', changelog_view => 'v_{name}', "
                  "net_changes => true)").collect()
        return rows(spark.sql(f"SELECT * FROM v_{name}"))
    except Exception as error:
        return str(error).split("\n", maxsplit=1)[0][:300]


def read_table(spark, location, snapshots, lineage):
    """A table of another writer, by its metadata document, now and at each snapshot."""
    def at(snapshot, *columns):
        frame = spark.read.format("iceberg")
        frame = (frame.option("versionAsOf", snapshot) if snapshot else frame).load(location)
        return frame.selectExpr("*", *columns) if columns else frame
    said = {"current": rows(at(None)), "rows": {s: rows(at(s)) for s in snapshots}}
    if lineage:
        said["lineage"] = {s: rows(at(s, "_row_id", "_last_updated_sequence_number")) for s in snapshots}
    return said


def main():
    plan = json.loads(Path(sys.argv[1]).read_text())
    spark = session(plan["jar"], plan["warehouse"], {})
    spark.sql("CREATE NAMESPACE IF NOT EXISTS c.s")
    for name, statements in plan["tables"].items():
        answer(f"{plan['answers']}/spark-{name}.json", lambda: make_table(
            spark, name, statements, name in plan["changelogs"]))
    for name, read in plan["reads"].items():
        answer(f"{plan['answers']}/knut-{name}.json", lambda: read_table(
            spark, **read))
    for name, statements in plan["upkeep"].items():
        answer(f"{plan['answers']}/upkeep-{name}.json", lambda: keep_up(spark, plan["warehouse"], name, statements))
    spark.stop()


main()

# SPDX-License-Identifier: Apache-2.0
"""Run by Spark's Python: works on catalogs and writes down what each statement came to.

usage: spark_rest.py PLAN.json  ->  PLAN's "answers": {"name": {"rows": [...]} or {"failed": "..."}}
PLAN: "jars", "answers", "catalogs" ({"c": {key: value}}), where c is a REST catalog, and knut, when it is there, Java's
JdbcCatalog on c's own database. A statement is (name, SQL); in SQL, $N is the namespace in c, $J in knut, $S without catalog, $1 the first snapshot's id.
"""
import json
import sys
import uuid
from pathlib import Path

from odd_names import ODD
from spark_values import session

MOR = ("'format-version'='2','write.delete.mode'='merge-on-read','write.update.mode'='merge-on-read',"
       "'write.merge.mode'='merge-on-read'")
STATEMENTS = [
    ("create namespace", "CREATE NAMESPACE $N WITH DBPROPERTIES ('k'='v')"),
    ("create v2", "CREATE TABLE $N.t (id BIGINT, name STRING, ts TIMESTAMP) USING iceberg PARTITIONED BY (days(ts)) "
                  f"TBLPROPERTIES ({MOR})"),
    ("append", "INSERT INTO $N.t SELECT id, concat('n', id), "
               "timestamp'2024-01-01' + make_interval(0,0,0,cast(id%3 as int)) FROM range(30)"),
    ("snapshots", "SELECT snapshot_id FROM $N.t.snapshots"),
    ("delete", "DELETE FROM $N.t WHERE id < 5"),
    ("count after delete", "SELECT count(*) FROM $N.t"),
    ("update", "UPDATE $N.t SET name='u' WHERE id = 7"),
    ("read updated", "SELECT name FROM $N.t WHERE id=7"),
    ("merge", "MERGE INTO $N.t t USING (SELECT 8L AS id, 'm8' AS name UNION ALL SELECT 100L,'m100') u ON t.id=u.id "
              "WHEN MATCHED THEN UPDATE SET name=u.name WHEN NOT MATCHED THEN INSERT (id,name,ts) "
              "VALUES (u.id,u.name,timestamp'2024-01-05')"),
    ("read merged", "SELECT id,name FROM $N.t WHERE id IN (8,100) ORDER BY 1"),
    ("time travel", "SELECT count(*) FROM $N.t VERSION AS OF $1"),
    ("add column", "ALTER TABLE $N.t ADD COLUMN score DOUBLE FIRST"),
    ("rename column", "ALTER TABLE $N.t RENAME COLUMN name TO nick"),
    ("add partition field", "ALTER TABLE $N.t ADD PARTITION FIELD bucket(4, id)"),
    ("insert evolved", "INSERT INTO $N.t (id,nick,ts,score) VALUES (200,'x',timestamp'2024-02-01',1.5)"),
    ("read evolved", "SELECT score,nick FROM $N.t WHERE id IN (7,200) ORDER BY id"),
    ("overwrite", "INSERT OVERWRITE $N.t SELECT 1.0D, 300L, 'o', timestamp'2024-03-01'"),
    ("rollback", "CALL c.system.rollback_to_snapshot('$S.t', $1)"),
    ("count after rollback", "SELECT count(*) FROM $N.t"),
    ("create branch", "ALTER TABLE $N.t CREATE BRANCH b1"),
    ("write to branch", "INSERT INTO $N.t.branch_b1 (id,nick,ts) VALUES (1000,'b',timestamp'2024-01-01')"),
    ("read branch", "SELECT count(*) FROM $N.t VERSION AS OF 'b1'"),
    ("compact", "CALL c.system.rewrite_data_files(table=>'$S.t', options=>map('rewrite-all','true'))"),
    ("count after compact", "SELECT count(*) FROM $N.t"),
    ("expire", "CALL c.system.expire_snapshots(table=>'$S.t', older_than=>timestamp'2100-01-01', retain_last=>1)"),
    ("ctas v3", "CREATE TABLE $N.v3 USING iceberg TBLPROPERTIES ('format-version'='3',"
                "'write.delete.mode'='merge-on-read') AS SELECT id, concat('a',id) AS v FROM range(10)"),
    ("delete by vector", "DELETE FROM $N.v3 WHERE id=3"),
    ("lineage", "SELECT id, _row_id, _last_updated_sequence_number FROM $N.v3 ORDER BY id LIMIT 2"),
    ("create variant", "CREATE TABLE $N.vv (id INT, v VARIANT) USING iceberg TBLPROPERTIES ('format-version'='3')"),
    ("insert variant", "INSERT INTO $N.vv SELECT 1, parse_json('{\"a\":1}')"),
    ("read variant", "SELECT variant_get(v,'$.a','int') FROM $N.vv"),
    ("create view", "CREATE VIEW $N.w AS SELECT count(*) AS n FROM $N.t"),
    ("read view", "SELECT * FROM $N.w"),
    ("show views", "SHOW VIEWS IN $N"),
    ("drop view", "DROP VIEW $N.w"),
    ("rename table", "ALTER TABLE $N.v3 RENAME TO $S.v3r"),
    ("show tables", "SHOW TABLES IN $N"),
    ("replace table", "CREATE OR REPLACE TABLE $N.v3r USING iceberg AS SELECT 1 AS one"),
    ("read replaced", "SELECT * FROM $N.v3r"),
    *((f"odd names: {step} {name}", sql.replace("$O", f"$N.`{name}`"))
      for name in ODD for step, sql in (("create", "CREATE TABLE $O (x INT) USING iceberg"),
                                        ("insert", "INSERT INTO $O VALUES (7)"), ("read", "SELECT x FROM $O"))),
    ("odd names: list", "SHOW TABLES IN $N"),
    *((f"odd names: drop {name}", f"DROP TABLE $N.`{name}`") for name in ODD),
    ("purge", "DROP TABLE $N.t PURGE"),
    ("drop replaced", "DROP TABLE $N.v3r"),
    ("drop variant", "DROP TABLE $N.vv"),
    ("drop namespace", "DROP NAMESPACE $N"),
]

# Between "count after compact" and "expire" of STATEMENTS.
JDBC = [
    ("jdbc: namespaces", "SHOW NAMESPACES IN knut"),
    ("jdbc: tables", "SHOW TABLES IN $J"),
    ("jdbc: read", "SELECT count(*) FROM $J.t"),
    ("jdbc: insert", "INSERT INTO $J.t (id,nick,ts) VALUES (500,'j',timestamp'2024-01-01')"),
    ("read after jdbc", "SELECT nick FROM $N.t WHERE id = 500"),
    ("jdbc: create", "CREATE TABLE $J.made USING iceberg AS SELECT 5 AS x"),
    ("read what jdbc made", "SELECT x FROM $N.made"),
    ("insert into what jdbc made", "INSERT INTO $N.made VALUES (6)"),
    ("jdbc: read back", "SELECT x FROM $J.made ORDER BY x"),
    ("jdbc: rename", "ALTER TABLE $J.made RENAME TO $S.`made anew`"),
    ("read renamed by jdbc", "SELECT count(*) FROM $N.`made anew`"),
    ("jdbc: drop", "DROP TABLE $J.`made anew`"),
    ("tables after jdbc", "SHOW TABLES IN $N"),
    ("jdbc: undo", "DELETE FROM $J.t WHERE id = 500"),
]


class Work:
    """Statements in a namespace of the run's own."""

    def __init__(self, spark):
        self.spark, self.space, self.first, self.said = spark, f"sp_{uuid.uuid4().hex[:8]}", None, {}

    def do(self, name, sql):
        for mark, value in (("$N", f"c.{self.space}"), ("$J", f"knut.{self.space}"), ("$S", self.space),
                            ("$1", str(self.first))):
            sql = sql.replace(mark, value)
        try:
            rows = [list(map(str, row)) for row in self.spark.sql(sql).collect()]
            self.said[name] = {"rows": rows}
            if name == "snapshots":
                self.first = rows[0][0]
        except Exception as error:
            self.said[name] = {"failed": f"{type(error).__name__}: {str(error)[:1000]}"}
        print(name, self.said[name], flush=True)


def statements(catalogs):
    """(name, SQL), in their order."""
    for name, sql in STATEMENTS:
        yield name, sql
        if name == "count after compact" and "knut" in catalogs:
            yield from JDBC


def main():
    plan = json.loads(Path(sys.argv[1]).read_text())
    options = {f"spark.sql.catalog.{name}.{key}": value for name, keys in plan["catalogs"].items()
               for key, value in keys.items()}
    options |= {f"spark.sql.catalog.{name}": "org.apache.iceberg.spark.SparkCatalog" for name in plan["catalogs"]}
    spark = session(plan["jars"], str(Path(plan["answers"]).parent / "plain"), options)
    work = Work(spark)
    for one in statements(plan["catalogs"]):
        work.do(*one)
    Path(plan["answers"]).write_text(json.dumps(work.said))
    spark.stop()


if __name__ == "__main__":
    main()

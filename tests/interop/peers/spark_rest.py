# SPDX-License-Identifier: Apache-2.0
"""Run by Spark's Python: works on a REST catalog and writes down what each statement came to.

usage: spark_rest.py JAR URI ANSWERS.json  ->  {"name": {"rows": [...]} or {"failed": "..."}}
A statement is (name, SQL); in SQL, $N is the namespace with the catalog, $S without, $1 the first snapshot's id.
"""
import json
import sys
import uuid
from pathlib import Path

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
    ("purge", "DROP TABLE $N.t PURGE"),
    ("drop replaced", "DROP TABLE $N.v3r"),
    ("drop variant", "DROP TABLE $N.vv"),
    ("drop namespace", "DROP NAMESPACE $N"),
]


def main():
    jar, uri, answers = sys.argv[1:4]
    space = f"sp_{uuid.uuid4().hex[:8]}"
    spark = session(jar, str(Path(answers).parent / "plain"), {
        "spark.sql.catalog.c.type": "rest", "spark.sql.catalog.c.uri": uri, "spark.sql.catalog.c.warehouse": ""})
    said, first = {}, None
    for name, sql in STATEMENTS:
        try:
            text = sql.replace("$N", f"c.{space}").replace("$S", space).replace("$1", str(first))
            rows = [list(map(str, row)) for row in spark.sql(text).collect()]
            said[name] = {"rows": rows}
            if name == "snapshots":
                first = rows[0][0]
        except Exception as error:
            said[name] = {"failed": f"{type(error).__name__}: {str(error)[:1000]}"}
        print(name, said[name], flush=True)
    Path(answers).write_text(json.dumps(said))
    spark.stop()


if __name__ == "__main__":
    main()

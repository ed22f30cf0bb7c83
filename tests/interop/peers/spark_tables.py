# SPDX-License-Identifier: Apache-2.0
"""The tables of the Spark tests: statements for those that Spark writes, and those that the program writes."""
from peers import written as W

DDL = "(id INT, name STRING, val DOUBLE, cat STRING) USING iceberg"


def properties(version, **more):
    words = {"format-version": version, **{k.replace("__", "-").replace("_", "."): v for k, v in more.items()}}
    return "TBLPROPERTIES (" + ", ".join(f"'{k}'='{v}'" for k, v in words.items()) + ")"


def modes(how):
    return {f"write_{what}_mode": how for what in ("delete", "update", "merge")}


COW, MOR = modes("copy-on-write"), modes("merge-on-read")

STORY = [
    "INSERT INTO $T SELECT /*+ COALESCE(1) */ cast(id AS int), concat('n', id), id * 10.0D, if(id % 2 = 0, 'even', 'odd') "
    "FROM range(20)",
    "DELETE FROM $T WHERE id IN (2, 3, 17)",
    "UPDATE $T SET val = val + 0.5D WHERE id BETWEEN 4 AND 6",
    "MERGE INTO $T t USING (SELECT * FROM VALUES (5, 'm5', 'u'), (6, 'm6', 'd'), (50, 'm50', 'i') AS s(id, name, op)) s "
    "ON t.id = s.id WHEN MATCHED AND s.op = 'd' THEN DELETE WHEN MATCHED THEN UPDATE SET name = s.name "
    "WHEN NOT MATCHED THEN INSERT (id, name, val, cat) VALUES (s.id, s.name, 0.0D, 'even')",
    "INSERT INTO $T VALUES (60, NULL, NULL, 'odd'), (4, 'twice', 1.0D, 'even'), (4, 'twice', 1.0D, 'even')",
    "DELETE FROM $T WHERE name IS NULL",
    "UPDATE $T SET cat = 'moved' WHERE id = 4"]

SPARK = {
    "cow_v1": [f"CREATE TABLE $T {DDL} PARTITIONED BY (cat) {properties(1, **COW)}", *STORY],
    "cow_v2": [f"CREATE TABLE $T {DDL} PARTITIONED BY (bucket(3, id)) {properties(2, **COW)}", *STORY],
    "cow_v3": [f"CREATE TABLE $T {DDL} {properties(3, **COW)}", *STORY],
    "mor_v2": [f"CREATE TABLE $T {DDL} PARTITIONED BY (cat) {properties(2, **MOR)}", *STORY],
    "mor_v3": [f"CREATE TABLE $T {DDL} {properties(3, **MOR)}", *STORY],
    "compacted_v2": [
        f"CREATE TABLE $T {DDL} {properties(2, **MOR)}", *STORY[:5],
        "CALL c.system.rewrite_data_files(table => '$N', options => map('rewrite-all', 'true'))", STORY[6],
        "CALL c.system.rewrite_manifests('$N')", "INSERT INTO $T VALUES (70, 'n70', 7.0D, 'odd')"],
    "overwritten": [
        f"CREATE TABLE $T {DDL} PARTITIONED BY (cat) {properties(2)}", STORY[0], "DELETE FROM $T WHERE cat = 'odd'",
        "INSERT OVERWRITE $T VALUES (1, 'a', 1.0D, 'odd')", "TRUNCATE TABLE $T", "INSERT INTO $T VALUES (8, 'b', 0.0D, NULL)"],
    "partitions_change": [
        f"CREATE TABLE $T (id BIGINT, ts TIMESTAMP, s STRING) USING iceberg {properties(2, **COW)}",
        *[step for n, change in enumerate([
            None, "ADD PARTITION FIELD days(ts)", "REPLACE PARTITION FIELD ts_day WITH hours(ts)",
            "ADD PARTITION FIELD bucket(4, id) AS b", "DROP PARTITION FIELD ts_hour", "ADD PARTITION FIELD truncate(2, s)",
            "ADD PARTITION FIELD months(ts)"]) for step in (
                *([f"ALTER TABLE $T {change}"] if change else []),
                f"INSERT INTO $T SELECT id, timestamp'1969-12-30 23:30:00' + make_interval(0, 0, 0, cast(id AS int), "
                f"cast(id * 5 AS int)), concat('sé', id) FROM range({4 * n}, {4 * n + 4})",
                f"DELETE FROM $T WHERE id IN ({4 * n + 1}, {4 * n - 2})")]],
    "columns_change": [
        f"""CREATE TABLE $T (a INT, b FLOAT, c DECIMAL(9,2), d STRING, n STRUCT<x: INT, y: STRING>,
            l ARRAY<STRUCT<p: INT, q: STRING>>, m MAP<STRING, STRUCT<v: FLOAT>>) USING iceberg {properties(2, **COW)}""",
        "INSERT INTO $T SELECT 1, 1.5F, 1.25BD, 'd1', named_struct('x', 1, 'y', 'y1'), array(named_struct('p', 1, 'q', 'q1')), "
        "map('k', named_struct('v', 1.5F))",
        *(f"ALTER TABLE $T {step}" for step in (
            "ALTER COLUMN a TYPE BIGINT", "ALTER COLUMN b TYPE DOUBLE", "ALTER COLUMN c TYPE DECIMAL(20,2)",
            "RENAME COLUMN d TO d2", "ADD COLUMN d INT", "ALTER COLUMN n.x TYPE BIGINT", "RENAME COLUMN n.y TO yy",
            "ADD COLUMN n.z DOUBLE FIRST", "ALTER COLUMN l.element.p TYPE BIGINT", "ADD COLUMN l.element.r STRING",
            "ALTER COLUMN m.value.v TYPE DOUBLE")),
        "INSERT INTO $T (a, b, c, d2, d, n, l, m) SELECT 5000000000L, 2.5D, 12345678901234567.25BD, 'd2', 22, "
        "named_struct('z', 9.5D, 'x', 5000000000L, 'yy', 'y2'), array(named_struct('p', 5L, 'q', 'q2', 'r', 'r2')), "
        "map('k2', named_struct('v', 2.5D))",
        *(f"ALTER TABLE $T {step}" for step in ("DROP COLUMN b", "ADD COLUMN b STRING", "ALTER COLUMN d2 FIRST",
                                                "ALTER COLUMN a AFTER c", "DROP COLUMN n.x")),
        "INSERT INTO $T (a, b, c, d2, d) SELECT 3L, 'text', 3.25BD, 'd3', 33", "UPDATE $T SET d = 44 WHERE a = 3",
        "DELETE FROM $T WHERE d2 = 'd1'"],
    "types": [
        f"""CREATE TABLE $T (id INT, bo BOOLEAN, l BIGINT, f FLOAT, d DOUBLE, d9 DECIMAL(9,2), d18 DECIMAL(18,4),
            d38 DECIMAL(38,10), da DATE, ts TIMESTAMP_NTZ, tz TIMESTAMP, s STRING, b BINARY) USING iceberg {properties(2)}""",
        """INSERT INTO $T VALUES
            (1, true, 9223372036854775807, float('NaN'), double('Infinity'), 9999999.99, 99999999999999.9999,
             9999999999999999999999999999.9999999999, date'9999-12-31', timestamp_ntz'9999-12-31 23:59:59.999999',
             timestamp'9999-12-31 23:59:59.999999', 'zürich 😀', X'FF00'),
            (2, false, -9223372036854775808, float('-0.0'), double('-Infinity'), -9999999.99, -99999999999999.9999,
             -9999999999999999999999999999.9999999999, date'0001-01-01', timestamp_ntz'1969-12-31 23:59:59.999999',
             timestamp'0001-01-03 00:00:00', '', X''),
            (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)""",
        "UPDATE $T SET bo = true WHERE id = 3", "CALL c.system.compute_table_stats(table => '$N')"],
    "nested": [
        f"""CREATE TABLE $T (id INT, s STRUCT<a: INT, b: STRUCT<c: STRING, d: ARRAY<INT>>>, l ARRAY<ARRAY<STRUCT<e: INT>>>,
            m MAP<INT, MAP<STRING, ARRAY<INT>>>) USING iceberg {properties(2, **COW)}""",
        """INSERT INTO $T SELECT 1, named_struct('a', 1, 'b', named_struct('c', 'x', 'd', array(1, 2, NULL))),
            array(array(named_struct('e', 1)), array(), NULL), map(1, map('q', array(1), 'r', array()))""",
        "INSERT INTO $T SELECT 2, NULL, NULL, NULL",
        "INSERT INTO $T SELECT 3, named_struct('a', NULL, 'b', NULL), array(), map()",
        "INSERT INTO $T SELECT 4, named_struct('a', 4, 'b', named_struct('c', NULL, 'd', NULL)), "
        "array(array(NULL, named_struct('e', NULL))), map(2, NULL)",
        "UPDATE $T SET s.b.c = 'upd' WHERE id = 1", "DELETE FROM $T WHERE s IS NULL"],
    "packed": [f"CREATE TABLE $T {DDL} " + properties(
        2, write_metadata_compression__codec="gzip", write_avro_compression__codec="zstd", **COW), *STORY[:3]],
    "refs": [
        f"CREATE TABLE $T {DDL} {properties(2)}", "INSERT INTO $T VALUES (1, 'a', 1.0D, 'x')", "ALTER TABLE $T CREATE TAG t1",
        "INSERT INTO $T VALUES (2, 'b', 2.0D, 'x')", "ALTER TABLE $T CREATE BRANCH dev",
        "INSERT INTO $T.branch_dev VALUES (3, 'dev', 3.0D, 'x')", "DELETE FROM $T.branch_dev WHERE id = 1",
        "INSERT INTO $T VALUES (4, 'main', 4.0D, 'x')"],
    "upgraded": [
        f"CREATE TABLE $T {DDL} {properties(1)}", STORY[0], "ALTER TABLE $T SET " + properties(2, **MOR), *STORY[1:3],
        "ALTER TABLE $T SET " + properties(3), *STORY[3:]]}

# Histories whose snapshots Spark and the program expire, and whose litter they find (spark_upkeep.py).
WAP = {"write_wap_enabled": "true"}
UPKEEP = {
    "up_cow_v2": [
        f"CREATE TABLE $T {DDL} PARTITIONED BY (cat) {properties(2, **COW, **WAP)}", *STORY[:2], "ALTER TABLE $T CREATE TAG t1",
        *STORY[2:4], "ALTER TABLE $T CREATE BRANCH dev WITH SNAPSHOT RETENTION 2 SNAPSHOTS",
        "INSERT INTO $T.branch_dev VALUES (90, 'dev', 9.0D, 'odd')", *STORY[4:], "SET spark.wap.id=w1",
        "INSERT INTO $T VALUES (91, 'staged', 9.0D, 'odd')", "RESET spark.wap.id", "DELETE FROM $T WHERE cat = 'odd'"],
    "up_mor_v2": [
        f"CREATE TABLE $T {DDL} {properties(2, **MOR)}", *STORY[:4], "ALTER TABLE $T CREATE TAG t1",
        "CALL c.system.rewrite_data_files(table => '$N', options => map('rewrite-all', 'true'))", *STORY[4:],
        "CALL c.system.rewrite_position_delete_files(table => '$N', options => map('rewrite-all', 'true'))",
        "CALL c.system.rewrite_manifests('$N')"],
    "up_mor_v3": [
        f"CREATE TABLE $T {DDL} {properties(3, **MOR)}", *STORY, "ALTER TABLE $T CREATE BRANCH dev",
        "DELETE FROM $T.branch_dev WHERE id < 12", "CALL c.system.rewrite_data_files(table => '$N', options => "
        "map('rewrite-all', 'true', 'remove-dangling-deletes', 'true'))", "INSERT INTO $T VALUES (70, 'n70', 7.0D, 'odd')"]}

# Spark's own change log refuses tables with delete files, and leaves out what is not in main's history.
CHANGELOGS = ["cow_v1", "cow_v2", "cow_v3", "overwritten", "partitions_change", "packed"]


# Spark has no time and shows uuid as text.
TYPES = """id long required, bo boolean, i int, f float, d double, d9 decimal(9,2), d18 decimal(18,4), d38 decimal(38,10),
    da date, ts timestamp, tz timestamptz, s string, u uuid, b binary"""


MOR_ROWS = ("--identifier", "id", "--property", "write.delete.mode=merge-on-read", "--property", "write.update.mode=merge-on-read")
REWRITES = [
    *(("append", "--sql", W.keyed(10 * i, 10 * i + 10)) for i in range(5)), ("delete", "--where", "id IN (1, 8, 15, 29, 36, 43)"),
    ("delete", "--where", "id IN (2, 12, 22)"), ("rewrite-deletes", "--rewrite-all"), ("delete", "--where", "id IN (3, 13)"),
    ("rewrite-manifests",), ("compact", "--where", "id < 30", "--min-input-files", "2"),
    ("overwrite", "--where", "id = 14 OR id = 40", "--sql", W.keyed(14, 15, "new")), ("append", "--sql", W.keyed(50, 60)),
    ("compact", "--rewrite-all", "--strategy", "sort", "--sort-order", "name desc", "--remove-dangling-deletes"),
    ("delete", "--where", "id = 44"), ("rewrite-manifests",)]

UPGRADED = [*REWRITES[:7], ("alter", "SET FORMAT VERSION 3"), ("append", "--sql", W.keyed(50, 60)), ("rewrite-deletes",),
            ("delete", "--where", "id = 52"), ("compact", "--where", "id < 10", "--min-input-files", "1", "--rewrite-all")]


def knut_tables():
    """name -> (version, schema, more words of create, steps)."""
    types = [("append", "--sql", f"SELECT * EXCLUDE (ti) FROM ({query})") for query in (W.EXTREMES, W.spread(0, 40))]
    types.append(("delete", "--where", "id = 5"))
    story = [("append", "--sql", W.keyed(0, 40)), ("append", "--sql", W.keyed(40, 60)), ("delete", "--where", "id < 7"),
             ("overwrite", "--where", "id >= 20 AND id < 30", "--sql", W.keyed(20, 33, "new")),
             ("append", "--sql", W.keyed(50, 55)), ("delete", "--where", "day = '2024-01-02'")]
    parts = "bucket(2, id), day(ts), truncate(3, s), bo, bucket(3, b), month(da), truncate(4, i)"
    merge = ("--mode", "merge-on-read")
    merged = [(command, *(merge if command != "append" else ()), *words) for command, *words in story]
    merged[4:4] = [("upsert", *merge, "--key", "id,name", "--sql", f"{W.keyed(40, 44)} UNION ALL {W.keyed(60, 62)}"),
                   ("upsert", *merge, "--key", "id", "--sql", W.keyed(10, 14).replace("0.5", "0.25")),
                   ("upsert", "--key", "id", "--sql", W.keyed(13, 16, "copied"))]
    tables = {}
    for version in (2, 3):
        tables[f"merged_v{version}"] = (version, W.KEYED, (), merged)
        tables[f"merged_parts_v{version}"] = (
            version, W.KEYED, ("--partition", "day", "--property", "write.delete.granularity=file"), merged)
        tables[f"types_v{version}"] = (version, TYPES, (), types)
        tables[f"parts_v{version}"] = (version, TYPES, ("--partition", parts), types)
        tables[f"nested_v{version}"] = (version, W.NESTED, (), [("append", "--sql", W.NESTED_ROWS), ("delete", "--where", "id = 2")])
        tables[f"story_v{version}"] = (version, W.KEYED, ("--identifier", "id"), story)
        tables[f"story_parts_v{version}"] = (version, W.KEYED, ("--partition", "day", "--sort", "name"), story)
        tables[f"evolved_v{version}"] = (version, EVOLVING, ("--partition", "day(ts)", "--identifier", "id"), evolving(version))
        kept = [*story[:2], ("tag", "t1"), *story[2:4], ("append", "--sql", W.keyed(80, 90), "--branch", "dev"),
                ("append", "--sql", W.keyed(60, 70), "--wap-id", "w1"), *story[4:], ("publish", "--wap-id", "w1"),
                ("fast-forward", "also", "dev"), ("expire", "--older-than", "1ms", "--retain-last", "2")]
        tables[f"upkeep_{version}"] = (version, W.KEYED, ("--partition", "day", "--property", "write.wap.enabled=true"), kept)
        tables[f"rewritten_v{version}"] = (version, W.KEYED, MOR_ROWS, REWRITES)
        tables[f"rewritten_parts_v{version}"] = (version, W.KEYED, (*MOR_ROWS, "--partition", "day"), REWRITES)
    tables["rewritten_up"] = (2, W.KEYED, MOR_ROWS, UPGRADED)
    for name, (_, *more) in [("types_v1", tables["types_v2"]), ("story_parts_v1", tables["story_parts_v2"])]:
        tables[name] = (1, *more)
    tables["fixed_v2"] = (2, W.FIXED, ("--partition", "bucket(2, fx)"), [("append", "--sql", W.fixed_rows(0, 50)),
                                                                         ("delete", "--where", "id < 9")])
    return tables


EVOLVING = "id long required, i int, f float, de decimal(9,2), s string, ts timestamp, st struct<a int, b string>, l list<struct<p int>>"


def evolving_rows(start, stop, columns):
    """Values for the columns that the table has by then."""
    values = {"id": "r::BIGINT", "i": "(r * 3)::INT", "f": "(r / 4)::FLOAT", "de": "(r / 8)::DECIMAL(9,2)",
              "s": "CASE WHEN r % 5 > 0 THEN 's' || (r % 4) END", "ts": "TIMESTAMP '2026-01-01' + to_hours(r * 7)",
              "st": "CASE WHEN r % 3 > 0 THEN {'a': r::INT, 'b': 'b' || r} END", "l": "[{'p': r::INT}, NULL]",
              "big": "r * 10000000000", "s2": "'t' || r", "st2": "{'b': 'bb' || r, 'c': r / 2}", "n": "(r % 2)::INT"}
    return "SELECT " + ", ".join(f"{values[c.split('=')[-1]]} AS {c.split('=')[0]}" for c in columns) + f" FROM range({start}, {stop}) t(r)"


def evolving(version):
    """Every change that Spark's readers know, between writes; deletes and overwrites go across specs."""
    def append(*args):
        return ("append", "--sql", evolving_rows(*args))
    steps = [
        append(0, 20, ["id", "i", "f", "de", "s", "ts", "st", "l"]),
        ("alter", "ALTER COLUMN i TYPE bigint", "ALTER COLUMN f TYPE double", "ALTER COLUMN de TYPE decimal(20,2)", "RENAME COLUMN s TO s2",
         "RENAME COLUMN st.a TO x", "ADD COLUMN st.c double COMMENT 'new' FIRST", "ADD COLUMN l.q string", "ALTER COLUMN ts AFTER id"),
        append(20, 30, ["id", "i=big", "f", "de", "s2", "ts", "st=st2"]),
        ("alter", "REPLACE PARTITION FIELD ts_day WITH month(ts)", "ADD PARTITION FIELD bucket(3, id)", "WRITE ORDERED BY s2 DESC, id"),
        append(30, 45, ["id", "i", "f", "s2", "ts"]),
        ("delete", "--where", "id IN (3, 21, 33) OR s2 = 's1'"),
        ("alter", "DROP PARTITION FIELD ts_month", "ADD PARTITION FIELD s2", "DROP COLUMN de", "ADD COLUMN de string", "DROP IDENTIFIER FIELDS id"),
        append(45, 60, ["id", "i", "s2", "de=s2", "ts"]),
        ("overwrite", "--where", "id >= 10 AND id < 50", "--sql", evolving_rows(10, 12, ["id", "s2", "ts"])),
        ("alter", "DROP PARTITION FIELD s2", "DROP PARTITION FIELD id_bucket_3", "WRITE UNORDERED", "ALTER COLUMN id DROP NOT NULL"),
        append(60, 64, ["id", "de=s2"])]
    if version == 3:
        steps += [("alter", "ADD COLUMN n int NOT NULL DEFAULT 7", "ADD COLUMN st.d string DEFAULT 'dd'", "ALTER COLUMN n SET DEFAULT 8"),
                  append(64, 68, ["id", "st=st2"]), append(68, 70, ["id", "n"]), ("delete", "--where", "n = 7 AND id > 50"),
                  ("delete", "--where", "n = 8")]
    return steps


def write_all(lake):
    """Writes them; what Spark is to read of each."""
    reads = {}
    for name, (version, schema, more, steps) in knut_tables().items():
        shared = lake.table(f"ns.{name}")
        shared.knut("create", "--schema", schema, "--format-version", version, *more).ok()
        for command, *words in steps:
            shared.knut(command, *words).ok()
        ice = shared.ice
        reads[name] = {"location": ice.metadata_location, "lineage": version == 3,
                       "snapshots": [s.snapshot_id for s in ice.snapshots()]}
    return reads

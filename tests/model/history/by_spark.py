# SPDX-License-Identifier: Apache-2.0
"""Spark with Iceberg's Java library as the writer: copy-on-write and merge-on-read, and through py4j what Spark's SQL does
not write (equality deletes; position deletes by hand)."""
import os
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType, BooleanType, DateType, DecimalType, DoubleType, FixedType, FloatType, IntegerType, LongType, StringType,
    TimestampType, TimestamptzType)

from lib import rows as R
from lib.lake import plain
from history import evolution, filters
from history.checks import assert_equal
from history import values as V
from history.evolution import live_fields
from history.state import keys_of

_TYPES = {IntegerType: "INT", LongType: "BIGINT", FloatType: "FLOAT", DoubleType: "DOUBLE", StringType: "STRING",
          DateType: "DATE", BooleanType: "BOOLEAN", BinaryType: "BINARY", TimestampType: "TIMESTAMP_NTZ", TimestamptzType: "TIMESTAMP"}
# What a column is set to by UPDATE, as Spark says it and as the model has it.
_SET = {IntegerType: [("7", 7), ("CAST(NULL AS INT)", None)], LongType: [("77L", 77)], StringType: [("'set'", "set"), ("CAST(NULL AS STRING)", None)],
        DoubleType: [("CAST('-0.0' AS DOUBLE)", -0.0), ("double('NaN')", float("nan")), ("2.5D", 2.5)], BooleanType: [("true", True)],
        DateType: [("date'2024-03-01'", 19783)]}
_PARTITION_KEYS = (StringType, BooleanType, IntegerType, LongType, DateType, DecimalType, BinaryType)
_WORDS = {"identity": "{0}", "bucket[3]": "bucket(3, {0})", "truncate[2]": "truncate(2, {0})", "year": "years({0})",
          "month": "months({0})", "day": "days({0})", "hour": "hours({0})"}


def tick(*names):
    return ".".join("`" + name.replace("`", "``") + "`" for name in names)


class Spark:
    name = "spark"

    def __init__(self, history, spark, evolves=True, delete_files=True):
        """delete_files: merge-on-read and what the library writes; PyIceberg and Spark's change log read less."""
        self.h, self.spark, self.evolves, self.delete_files = history, spark, evolves, delete_files
        spark.opens(history.table.lake)
        self.short = history.table.name
        self.t = f"{history.table.lake.name}.{self.short}"

    @property
    def version(self):
        return self.h.ice.format_version

    def choose(self, h):
        if len(h.rows) < 8:
            return "append", self.append
        does = {"append": (2, self.append), "delete": (3, self.delete), "update": (3, self.update), "mode": (2, self.mode),
                "branch": (0.7, self.branch), "overwrite": (0.5, self.overwrite), "overwrite partitions": (1, self.overwrite_partitions),
                "compact": (1, self.compact), "rewrite manifests": (0.7, self.rewrite_manifests),
                "rewrite deletes": (0.7, self.rewrite_deletes)}
        if h.keyed:
            does["merge"] = (3, self.merge)
        if self.evolves:
            does |= {"columns": (2, self.columns), "partitions": (1.5, self.partitions)}
        if len(h.states) > 3:
            does["rollback"] = (0.7, self.rollback)
        if self.delete_files and self.version >= 2:
            does["equality delete"] = (3, self.equality_delete)
        if self.delete_files and self.version == 2:
            does["position delete"] = (1.5, self.position_delete)
        names = list(does)
        name = h.dice.choices(names, [does[n][0] for n in names])[0]
        return name, does[name][1]

    def note(self, text):
        self.h.log[-1] += f" {text}"

    def reads(self, snapshot_id):
        return R.multiset(self.spark.rows(f"SELECT * FROM {self.t} VERSION AS OF {snapshot_id}"))

    # ---- rows ----

    def file(self, rows):
        """A Parquet file with these rows, as a table that Spark reads."""
        folder = self.h.table.lake.folder.parent / "new"
        folder.mkdir(exist_ok=True)
        path = folder / f"{os.urandom(6).hex()}.parquet"
        made = V.to_arrow([row.values for row in rows], self.h.schema)
        pq.write_table(made.cast(for_spark(made.schema)), path)
        return f"parquet.`file://{path}`"

    def append(self):
        rows = self.h.fresh(self.h.dice.randrange(1, 16))
        self.spark.sql(f"INSERT INTO {self.t} BY NAME SELECT * FROM {self.file(rows)}")
        return [self.h.rows + rows]

    def some_filter(self):
        chosen = filters.some_filter(self.h.dice, self.h.schema, self.h.rows)
        self.note(chosen)
        return chosen

    def delete(self):
        chosen = self.some_filter()
        self.spark.sql(f"DELETE FROM {self.t} WHERE {chosen.spark}")
        return [self.h.kept(chosen)]

    def assignment(self):
        """(SQL, changed row) of one column that is no key."""
        fields = [f for f in self.h.schema.fields if type(f.field_type) in _SET and f.name != "id"]
        field = self.h.dice.choice(fields)
        sql, value = self.h.dice.choice(_SET[type(field.field_type)])
        return f"{tick(field.name)} = {sql}", lambda row: row.replaced({field.field_id: value})

    def update(self):
        chosen = self.some_filter()
        sql, change = self.assignment()
        self.note(sql)
        self.spark.sql(f"UPDATE {self.t} SET {sql} WHERE {chosen.spark}")
        return [[change(row) if chosen.test(row.values) is True else row for row in self.h.rows]]

    def merge(self):
        """Known keys are deleted or replaced, unknown ones added."""
        h = self.h
        known = {row.values[h.id_field]: row for row in h.rows}
        ids = h.dice.sample(sorted(known), min(len(known), h.dice.randrange(1, 8)))
        rows = h.fresh(len(ids), ids=ids) + h.fresh(h.dice.randrange(1, 4))
        gone = set(ids[:h.dice.randrange(0, len(ids))])
        listed = ", ".join(map(str, gone)) or "-1"
        self.spark.sql(f"MERGE INTO {self.t} t USING {self.file(rows)} s ON t.id = s.id WHEN MATCHED AND s.id IN ({listed}) THEN DELETE "
                       "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")
        stay = [row for row in h.rows if row.values[h.id_field] not in ids]
        return [stay + [row for row in rows if row.values[h.id_field] not in gone]]

    def overwrite(self):
        rows = self.h.fresh(self.h.dice.randrange(8, 20))
        self.spark.ask("conf", **{"spark.sql.sources.partitionOverwriteMode": "static"})
        self.spark.sql(f"INSERT OVERWRITE {self.t} BY NAME SELECT * FROM {self.file(rows)}")
        return [rows]

    def places(self, columns="_spec_id, _partition"):
        """(key, where it lies, all of it) of each row, as Spark sees it."""
        return [(R.canon({k: v for k, v in row.items() if not k.startswith("_")}), R.canon({k: row[k] for k in row if k.startswith("_")}), row)
                for row in self.spark.rows(f"SELECT *, {columns} FROM {self.t}")]

    def taken(self, keys):
        """(rows with these keys, the others) of the model's rows; keys: a Counter."""
        keys, found, others = Counter(keys), [], []
        for row, key in zip(self.h.rows, keys_of(self.h.rows, self.h.schema)):
            if keys[key]:
                keys[key] -= 1
                found.append(row)
            else:
                others.append(row)
        assert_equal(+keys, Counter(), "Spark reads other rows")
        return found, others

    def overwrite_partitions(self):
        """Partitions of the spec of today that get rows lose what they had; files of other specs stay."""
        before = self.places()
        rows = self.h.fresh(self.h.dice.randrange(1, 10))
        spec = self.h.ice.spec()
        self.spark.ask("conf", **{"spark.sql.sources.partitionOverwriteMode": "dynamic"})
        self.spark.sql(f"INSERT OVERWRITE {self.t} BY NAME SELECT * FROM {self.file(rows)}")
        if not live_fields(spec):
            return [rows]
        fresh = set(keys_of(rows, self.h.schema))
        replaced = {place for key, place, row in self.places() if key in fresh and row["_spec_id"] == spec.spec_id}
        gone = Counter(key for key, place, _ in before if place in replaced)
        return [self.taken(gone)[1] + rows]

    # ---- shape ----

    def mode(self):
        """How the next rows are deleted and written."""
        dice = self.h.dice
        modes = ["copy-on-write", "merge-on-read"] if self.delete_files else ["copy-on-write"]
        words = {f"write.{what}.mode": dice.choice(modes) for what in ("delete", "update", "merge")}
        words["write.delete.granularity"] = dice.choice(["file", "partition"])
        words["write.format.default"] = dice.choice(["parquet"] if self.h.pyiceberg else ["parquet", "parquet", "avro"])
        words["commit.manifest-merge.enabled"] = dice.choice(["true", "false"])
        words["commit.manifest.min-count-to-merge"] = dice.choice(["2", "100"])
        words["write.parquet.row-group-size-bytes"] = dice.choice(["1000", "134217728"])
        if not self.h.pyiceberg and (self.version == 1 or self.version == 2 and dice.random() < 0.1):
            words["format-version"] = str(self.version + 1)
        self.spark.sql(f"ALTER TABLE {self.t} SET TBLPROPERTIES ({', '.join(f'{k!r}={v!r}' for k, v in words.items())})")
        self.note(list(words.values()))
        return []

    def columns(self):
        change = evolution.some_change(self.h.dice, self.h.schema, self.h.ice.specs().values())
        if change is None:
            return []
        self.note(change)
        path, more = tick(*change.path), change.more
        if change.what == "add":
            self.alter(f"ADD COLUMN {path} {spark_type(more)}")
        elif change.what == "drop":
            self.alter(f"DROP COLUMN {path}")
        elif change.what == "rename":
            self.alter(f"RENAME COLUMN {path} TO {tick(more)}")
        elif change.what == "type":
            self.alter(f"ALTER COLUMN {path} TYPE {spark_type(more)}")
        elif change.what == "first":
            self.alter(f"ALTER COLUMN {path} FIRST")
        else:
            self.alter(f"ALTER COLUMN {path} AFTER {tick(more)}")
        return []

    def alter(self, words):
        self.spark.sql(f"ALTER TABLE {self.t} {words}")

    def partitions(self):
        dice, ice = self.h.dice, self.h.ice
        live = live_fields(ice.spec())
        for field in live:
            if dice.random() < 0.6:
                self.alter(f"DROP PARTITION FIELD {tick(field.name)}")
        column, word = evolution.some_partition(dice, self.h.schema, self.h.pyiceberg)
        if self.h.schema.find_field(column).field_id not in {f.source_id for f in live}:
            self.alter(f"ADD PARTITION FIELD {_WORDS[word].format(tick(column))} AS p{len(ice.specs())}_{dice.randrange(10**4)}")
            self.note(f"{word} {column}")
        return []

    # ---- upkeep ----

    def call(self, procedure, words=""):
        self.spark.sql(f"CALL {self.h.table.lake.name}.system.{procedure}(table => '{self.short}'{words})")

    def compact(self):
        options = {"rewrite-all": "true", "use-starting-sequence-number": self.h.dice.choice(["true", "false"]),
                   "remove-dangling-deletes": self.h.dice.choice(["true", "false"])}
        words = ", ".join(f"'{k}', '{v}'" for k, v in options.items())
        sort = ", strategy => 'sort', sort_order => 'id DESC NULLS LAST'" if self.h.dice.random() < 0.4 else ""
        self.call("rewrite_data_files", f"{sort}, options => map({words})")
        return [self.h.rows]

    def rewrite_manifests(self):
        self.call("rewrite_manifests")
        return [self.h.rows]

    def rewrite_deletes(self):
        self.call("rewrite_position_delete_files", ", options => map('rewrite-all', 'true')")
        return [self.h.rows]

    def rollback(self):
        to = self.h.dice.choice(self.h.lineage()[1:4] or [self.h.current])
        how = self.h.dice.choice(["rollback_to_snapshot", "set_current_snapshot"])
        self.call(how, f", snapshot_id => {to}")
        return self.h.went_back_to(to)

    def branch(self):
        """Commits on a branch, and main is brought up to it, or the last of them is picked."""
        h, name = self.h, f"b{len(self.h.states)}"
        self.alter(f"CREATE BRANCH {name}")
        rows = h.fresh(h.dice.randrange(1, 8))
        chosen = self.some_filter()
        self.spark.sql(f"INSERT INTO {self.t}.branch_{name} BY NAME SELECT * FROM {self.file(rows)}")
        self.spark.sql(f"DELETE FROM {self.t}.branch_{name} WHERE {chosen.spark}")
        first = h.rows + rows
        self.spark.sql(f"CALL {h.table.lake.name}.system.fast_forward('{self.short}', 'main', '{name}')")
        self.alter(f"DROP BRANCH {name}")
        return [first, [row for row in first if chosen.test(row.values) is not True]]

    # ---- by the library ----

    def delete_file(self, table, ids, like):
        path = plain(self.h.ice.location()) / "data" / f"by-hand-{os.urandom(6).hex()}.parquet"
        path.parent.mkdir(exist_ok=True)
        pq.write_table(table, path)
        return {"path": f"file:{path}", "size": path.stat().st_size, "records": table.num_rows, "ids": ids, "like": like}

    def equality_delete(self):
        """Rows of some keys go, of one partition or (where a spec without fields is there) of all; often rows come with them."""
        h, dice = self.h, self.h.dice
        places = self.places("_file, _spec_id, _partition")
        if not places:
            return []
        fields = dice.sample(h.schema.fields, dice.choice((1, 1, 2)))
        fields = [f for f in fields if isinstance(f.field_type, (*_PARTITION_KEYS, DoubleType, TimestampType, TimestamptzType))]
        if not fields:
            fields = [h.schema.find_field("id")]
        unpartitioned = [spec for spec in h.ice.specs().values() if spec.is_unpartitioned()]
        everywhere = bool(unpartitioned) and dice.random() < 0.5
        _, place, sample = dice.choice(places)
        like = None if everywhere else sample["_file"]
        def where(row):
            return (row["_spec_id"], R.canon(row["_partition"]))
        near, far = self.taken(Counter(key for key, _, row in places if everywhere or where(row) == where(sample)))
        hit = dice.sample(near, min(len(near), dice.choice((1, 1, 2, 3))))
        keys = [{f.field_id: row.values.get(f.field_id, f.initial_default) for f in fields} for row in hit]
        keys.append({f.field_id: V.of(dice, f.field_type, 0 if f.required else 0.3) for f in fields})
        keyed = Schema(*fields)
        spelled = {R.canon(row) for row in R.of_arrow(V.to_arrow(keys, keyed))}
        gone = [key in spelled for key in map(R.canon, R.of_arrow(V.to_arrow([row.values for row in near], keyed)))]
        stay = [row for row, dead in zip(near, gone) if not dead]
        self.note(f"{[f.name for f in fields]} {'everywhere' if everywhere else 'in a partition'}: {sum(gone)} rows")
        data, rows = [], []
        if unpartitioned and dice.random() < 0.5:
            rows = h.fresh(dice.randrange(1, 5))
            data = [self.delete_file(V.to_arrow([row.values for row in rows], h.schema), None, None)]
        self.spark.ask("row_delta", name=self.t, deletes=[self.delete_file(V.to_arrow(keys, keyed), [f.field_id for f in fields], like)], data=data)
        return [far + stay + rows]

    def position_delete(self):
        """One file that names rows of several data files of a partition, some of them twice."""
        h, dice = self.h, self.h.dice
        places = self.places("_file, _pos, _spec_id, _partition")
        if not places:
            return []
        sample = dice.choice(places)[2]
        def where(row):
            return (row["_spec_id"], R.canon(row["_partition"]))
        near = [(key, row) for key, _, row in places if where(row) == where(sample)]
        hit = dice.sample(near, min(len(near), dice.choice((1, 2, 4))))
        lines = sorted({(row["_file"], row["_pos"]) for _, row in hit})
        lines = sorted(lines + lines[:dice.choice((0, 1))])
        made = pa.table({"file_path": [line[0] for line in lines], "pos": pa.array([line[1] for line in lines], pa.int64())}, schema=pa.schema([
            pa.field("file_path", pa.string(), False, {"PARQUET:field_id": "2147483546"}), pa.field("pos", pa.int64(), False, {"PARQUET:field_id": "2147483545"})]))
        self.note(f"{len(hit)} rows")
        self.spark.ask("row_delta", name=self.t, deletes=[self.delete_file(made, None, sample["_file"])], data=[])
        return [self.taken(Counter(key for key, _ in hit))[1]]


def spark_type(kind):
    if isinstance(kind, DecimalType):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    return _TYPES[type(kind)]


def for_spark(schema):
    """Without PyIceberg's large types, and nothing required: Spark compares with the table's columns by name."""
    def plain_type(kind):
        if pa.types.is_large_string(kind):
            return pa.string()
        if pa.types.is_large_binary(kind):
            return pa.binary()
        if pa.types.is_struct(kind):
            return pa.struct([pa.field(f.name, plain_type(f.type)) for f in kind])
        if pa.types.is_large_list(kind) or pa.types.is_list(kind):
            return pa.list_(pa.field("element", plain_type(kind.value_type)))
        if pa.types.is_map(kind):
            return pa.map_(plain_type(kind.key_type), plain_type(kind.item_type))
        return kind
    return pa.schema([pa.field(f.name, plain_type(f.type)) for f in schema])

# SPDX-License-Identifier: Apache-2.0
"""Run by Spark's Python: does what lines of JSON on standard input ask for, answers each with a line.

usage: spark_server.py JARS WAREHOUSE
Knows nothing of the tests. A request is {"do": name, ...}; an answer {"said": value} or {"failed": text}.
"""
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "interop/peers"))

from spark_values import rows, session  # noqa: E402


class Server:
    def __init__(self, spark):
        self.spark, self.jvm = spark, spark.sparkContext._jvm

    def catalog(self, name, database, warehouse):
        """Another JDBC catalog, under its name in the database."""
        prefix = f"spark.sql.catalog.{name}"
        for key, value in {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "jdbc", ".uri": f"jdbc:sqlite:{database}",
                           ".warehouse": warehouse, ".jdbc.schema-version": "V1", ".clients": "1",
                           ".cache-enabled": "false"}.items():
            self.spark.conf.set(prefix + key, value)

    def sql(self, statements):
        for statement in statements:
            self.spark.sql(statement).collect()

    def rows(self, query):
        return rows(self.spark.sql(query))

    def conf(self, **settings):
        for key, value in settings.items():
            self.spark.conf.set(key, value)

    def table(self, name):
        return self.jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(self.spark._jsparkSession, name)

    def file_like(self, table, path):
        """The live data file of this path: its spec and partition are those of files that are put beside it."""
        tasks = table.newScan().planFiles()
        try:
            found = tasks.iterator()
            while found.hasNext():
                file = found.next().file()
                if file.location() == path:
                    return file
        finally:
            tasks.close()
        raise KeyError(path)

    def row_delta(self, name, deletes, data):
        """Commits delete files and data files that were written elsewhere: each {"path", "size", "records", "like"}, an
        equality delete also "ids". like: a live data file whose spec and partition it shares; None: the table's spec
        without fields."""
        table = self.table(name)
        api, delta = self.jvm.org.apache.iceberg, table.newRowDelta()
        def built(builder, file, like):
            builder = builder.withPath(file["path"]).withFileSizeInBytes(file["size"]).withRecordCount(file["records"])
            builder = builder.withFormat("parquet")
            return (builder.withPartition(like.partition()) if like and file["partitioned"] else builder).build()
        def spec_of(file, like):
            if like:
                return table.specs().get(like.specId())
            specs = list(table.specs().values())
            return next(spec for spec in specs if spec.isUnpartitioned())
        for file in deletes:
            like = self.file_like(table, file["like"]) if file["like"] else None
            spec = spec_of(file, like)
            file["partitioned"] = not spec.isUnpartitioned()
            builder = api.FileMetadata.deleteFileBuilder(spec)
            if file.get("ids"):
                ids = self.spark.sparkContext._gateway.new_array(self.jvm.int, len(file["ids"]))
                for i, field_id in enumerate(file["ids"]):
                    ids[i] = field_id
                builder = builder.ofEqualityDeletes(ids)
            else:
                builder = builder.ofPositionDeletes()
            delta = delta.addDeletes(built(builder, file, like))
        for file in data:
            like = self.file_like(table, file["like"]) if file["like"] else None
            spec = spec_of(file, like)
            file["partitioned"] = not spec.isUnpartitioned()
            delta = delta.addRows(built(api.DataFiles.builder(spec), file, like))
        delta.commit()


def main():
    server = Server(session(sys.argv[1], sys.argv[2], {
        "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED", "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
        "spark.sql.iceberg.merge-schema": "false", "spark.sql.caseSensitive": "true"}))
    print(json.dumps({"said": "ready"}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"said": getattr(server, request.pop("do"))(**request)}
        except Exception as error:
            answer = {"failed": f"{type(error).__name__}: {str(error)[:3000]}"}
        print(json.dumps(answer), flush=True)
    server.spark.stop()


main()

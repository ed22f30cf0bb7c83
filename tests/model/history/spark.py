# SPDX-License-Identifier: Apache-2.0
"""Spark in a process of its own (spark_server.py), asked one thing after the other."""
import json
import os
import subprocess
from pathlib import Path

from lib.program import TOP

JARS = TOP / ".deps/jars"
PYTHON = TOP / ".deps/venv-spark/bin/python"


class Refused(Exception):
    """Spark did not do it."""


class Spark:
    def __init__(self, folder: Path):
        jars = [next(JARS.glob(f"{name}-*.jar"), None) for name in ("iceberg-spark-runtime", "sqlite-jdbc")]
        assert all(jars) and PYTHON.exists(), "no Spark here: run 'tools/setup spark'"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "tmp").mkdir(exist_ok=True)
        self.log = open(folder / "spark.log", "w", encoding="utf-8")
        self.process = subprocess.Popen(
            [PYTHON, "-B", Path(__file__).with_name("spark_server.py"), ",".join(map(str, jars)), folder / "warehouse"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True, cwd=folder,
            env={**os.environ, "TZ": "UTC", "SPARK_LOCAL_DIRS": str(folder / "tmp")})
        self.catalogs = set()
        assert self.answer() == "ready"

    def answer(self):
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise AssertionError("Spark ended:\n" + Path(self.log.name).read_text()[-3000:])
            if line.startswith('{"said"'):
                return json.loads(line)["said"]
            if line.startswith('{"failed"'):
                raise Refused(json.loads(line)["failed"])

    def ask(self, do, **what):
        self.process.stdin.write(json.dumps({"do": do, **what}) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def sql(self, *statements):
        self.ask("sql", statements=statements)

    def rows(self, query):
        return self.ask("rows", query=query)

    def opens(self, lake):
        """The lake's catalog, under its name."""
        if lake.name not in self.catalogs:
            self.ask("catalog", name=lake.name, database=str(lake.db), warehouse=f"file://{lake.folder}")
            self.catalogs.add(lake.name)

    def close(self):
        self.process.stdin.close()
        self.process.wait(60)
        self.log.close()

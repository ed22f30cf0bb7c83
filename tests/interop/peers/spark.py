# SPDX-License-Identifier: Apache-2.0
"""Spark, in one session for the whole run: the program writes its tables, then Spark (spark_job.py, with its own
Python) makes its tables and answers about both; the tests compare. Whoever comes first does it."""
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from lib.once import once
from lib.program import TOP, Program
from peers import spark_tables
from peers.pyice import Lake

JAR = next((TOP / ".deps/jars").glob("iceberg-spark-runtime-*.jar"), None)
PYTHON = TOP / ".deps/venv-spark/bin/python"


@dataclass
class Answers:
    """What Spark says: of its own tables (spark), of the program's (knut)."""
    folder: Path

    @property
    def warehouse(self):
        return self.folder / "spark"

    @property
    def lake_folder(self):
        return self.folder / "lake"

    def of(self, side, name):
        answer = json.loads((self.folder / "answers" / f"{side}-{name}.json").read_text())
        assert not answer["failed"], answer["failed"]
        return answer


def answers_of_spark(program, shared):
    return Answers(once(shared, "spark", lambda folder: ask(program, folder)))


def ask(program, folder):
    assert JAR and PYTHON.exists(), "no Spark here: run 'tools/setup spark'"
    (folder / "answers").mkdir()
    (folder / "tmp").mkdir()
    reads = spark_tables.write_all(Lake(Program(program, folder / "tmp"), folder / "lake"))
    plan = {"jar": str(JAR), "warehouse": str(folder / "spark"), "answers": str(folder / "answers"),
            "tables": spark_tables.SPARK, "changelogs": spark_tables.CHANGELOGS, "reads": reads,
            "upkeep": spark_tables.UPKEEP}
    (folder / "plan.json").write_text(json.dumps(plan))
    with open(folder / "spark.log", "w", encoding="utf-8") as log:
        done = subprocess.run([PYTHON, "-B", Path(__file__).with_name("spark_job.py"), folder / "plan.json"],
                              stdin=subprocess.DEVNULL, stdout=log, stderr=log, timeout=1800, cwd=folder,
                              env={**os.environ, "TZ": "UTC", "SPARK_LOCAL_DIRS": str(folder / "tmp")})
    assert done.returncode == 0, (folder / "spark.log").read_text()[-4000:]

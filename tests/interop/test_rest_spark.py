# SPDX-License-Identifier: Apache-2.0
"""Spark 4.1 with Iceberg 1.12 as a client of `knut catalog serve`: every statement of peers/spark_rest.py."""
import json
import os
import subprocess
from pathlib import Path

import pytest

from lib.once import once
from lib.program import Program
from lib.serve import Served
from peers.spark import JAR, PYTHON

READS = {
    "count after delete": [["25"]], "read updated": [["u"]], "read merged": [["8", "m8"], ["100", "m100"]],
    "time travel": [["30"]], "read evolved": [["None", "u"], ["1.5", "x"]], "count after rollback": [["30"]],
    "read branch": [["31"]], "count after compact": [["30"]], "lineage": [["0", "0", "1"], ["1", "1", "1"]],
    "read variant": [["1"]], "read view": [["30"]], "read replaced": [["1"]],
}
DONE = ["create namespace", "create v2", "append", "snapshots", "delete", "update", "merge", "add column",
        "rename column", "add partition field", "insert evolved", "overwrite", "rollback", "create branch",
        "write to branch", "compact", "expire", "ctas v3", "delete by vector", "create variant", "insert variant",
        "create view", "show views", "drop view", "rename table", "show tables", "replace table", "purge",
        "drop replaced", "drop variant", "drop namespace"]


def work(uri, folder):
    job = Path(__file__).parent / "peers/spark_rest.py"
    with open(folder / "spark.log", "w", encoding="utf-8") as log:
        done = subprocess.run([PYTHON, "-B", job, JAR, uri, folder / "answers.json"], stdin=subprocess.DEVNULL,
                              stdout=log, stderr=log, timeout=1800, cwd=folder,
                              env={**os.environ, "TZ": "UTC", "SPARK_LOCAL_DIRS": str(folder)})
    assert done.returncode == 0, (folder / "spark.log").read_text()[-4000:]


def serve_and_work(program, folder):
    assert JAR and PYTHON.exists(), "no Spark here: run 'tools/setup spark'"
    if os.environ.get("CATALOG_URI"):
        work(os.environ["CATALOG_URI"], folder)
        return
    environment = Program(program, folder).environment()
    with Served(program, "--warehouse", folder / "warehouse", env=environment) as server:
        work(server.uri, folder)
        assert server.stop() == 0, server.errors


@pytest.fixture(scope="session")
def said(program, shared):
    folder = once(shared, "spark-rest", lambda folder: serve_and_work(program, folder))
    return json.loads((folder / "answers.json").read_text())


@pytest.mark.parametrize("name", DONE)
def test_a_statement_is_done(said, name):
    assert "failed" not in said[name], said[name]["failed"]


@pytest.mark.parametrize("name", READS)
def test_a_question_has_its_answer(said, name):
    assert said[name].get("rows") == READS[name], said[name]


def test_the_tables_that_are_there_are_listed(said):
    assert {row[1] for row in said["show tables"]["rows"]} == {"t", "v3r", "vv"}

# SPDX-License-Identifier: Apache-2.0
"""Spark 4.1 with Iceberg 1.12 as a client of `knut catalog serve`: every statement of peers/spark_rest.py; and Java's
JdbcCatalog on the server's own database, beside it."""
import json
import os
import subprocess
from pathlib import Path

import pytest

from lib.once import once
from lib.program import TOP, Program
from lib.serve import Served
from peers.odd_names import ODD
from peers.spark import JAR, PYTHON

READS = {
    "count after delete": [["25"]], "read updated": [["u"]], "read merged": [["8", "m8"], ["100", "m100"]],
    "time travel": [["30"]], "read evolved": [["None", "u"], ["1.5", "x"]], "count after rollback": [["30"]],
    "read branch": [["31"]], "count after compact": [["30"]], "lineage": [["0", "0", "1"], ["1", "1", "1"]],
    "read variant": [["1"]], "read view": [["30"]], "read replaced": [["1"]],
    **{f"odd names: read {name}": [["7"]] for name in ODD},
    "jdbc: read": [["30"]], "read after jdbc": [["j"]], "read what jdbc made": [["5"]],
    "jdbc: read back": [["5"], ["6"]], "read renamed by jdbc": [["2"]],
}
DONE = ["create namespace", "create v2", "append", "snapshots", "delete", "update", "merge", "add column",
        "rename column", "add partition field", "insert evolved", "overwrite", "rollback", "create branch",
        "write to branch", "compact", "expire", "ctas v3", "delete by vector", "create variant", "insert variant",
        "create view", "show views", "drop view", "rename table", "show tables", "replace table", "purge",
        "drop replaced", "drop variant", "drop namespace",
        *(f"odd names: {step} {name}" for step in ("create", "insert", "drop") for name in ODD),
        "jdbc: insert", "jdbc: create", "insert into what jdbc made", "jdbc: rename", "jdbc: drop", "jdbc: undo"]
LISTED = {"show tables": {"t", "v3r", "vv"}, "jdbc: tables": {"t"}, "tables after jdbc": {"t"},
          "odd names: list": {"t", "v3r", "vv", *ODD}}


def jars():
    """Iceberg for Spark, and SQLite for Java's JdbcCatalog."""
    sqlite = next((TOP / ".deps/jars").glob("sqlite-jdbc-*.jar"), None)
    assert JAR and sqlite and PYTHON.exists(), "no Spark here: run 'tools/setup spark'"
    return f"{JAR},{sqlite}"


def work(catalogs, folder):
    job = Path(__file__).parent / "peers/spark_rest.py"
    (folder / "plan.json").write_text(json.dumps(
        {"jars": jars(), "catalogs": catalogs, "answers": str(folder / "answers.json")}))
    with open(folder / "spark.log", "w", encoding="utf-8") as log:
        done = subprocess.run([PYTHON, "-B", job, folder / "plan.json"], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                              timeout=1800, cwd=folder,
                              env={**os.environ, "TZ": "UTC", "SPARK_LOCAL_DIRS": str(folder)})
    assert done.returncode == 0, (folder / "spark.log").read_text()[-4000:]


def rest(uri):
    return {"type": "rest", "uri": uri, "warehouse": "", "cache-enabled": "false"}


def serve_and_work(program, folder):
    if os.environ.get("CATALOG_URI"):
        work({"c": rest(os.environ["CATALOG_URI"])}, folder)
        return
    environment = Program(program, folder).environment()
    with Served(program, "--warehouse", folder / "warehouse", env=environment) as server:
        database = {"catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog", "warehouse": f"file://{folder}/warehouse",
                    "uri": f"jdbc:sqlite:file:{folder}/warehouse/catalog.db", "jdbc.schema-version": "V1",
                    "cache-enabled": "false"}
        work({"c": rest(server.uri), "knut": database}, folder)
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


@pytest.mark.parametrize("name", LISTED)
def test_the_tables_that_are_there_are_listed(said, name):
    assert {row[1] for row in said[name]["rows"]} == LISTED[name]

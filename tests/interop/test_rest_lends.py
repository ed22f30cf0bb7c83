# SPDX-License-Identifier: Apache-2.0
"""A served catalog that lends keys of the store's STS: other programs' clients write and read with nothing else, within a
table's folder; and the gRPC client over the same store."""
import uuid

import duckdb
import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog

from lib.program import Program
from lib.seaweed import ROLE, Seaweed
from lib.serve import Served
from peers.duck import DEPS

FRONTS = ("--rest", "127.0.0.1:0", "--grpc", "127.0.0.1:0")


@pytest.fixture(scope="module")
def lender(program, tmp_path_factory):
    folder = tmp_path_factory.mktemp("lender")
    with Seaweed(folder / "weed", sts=True) as store:
        store.bucket("lake")
        environment = Program(program, folder).environment(**store.env)
        with Served(program, "--warehouse-uri", "s3://lake/wh", "--s3-bucket", "lake", "--db", folder / "catalog.db",
                    "--sts-endpoint", store.endpoint, "--sts-role-arn", ROLE, fronts=FRONTS, env=environment) as server:
            server.store = store
            yield server
            assert server.stop() == 0, server.errors


@pytest.fixture
def ns(lender):
    name = "n" + uuid.uuid4().hex[:8]
    assert lender.ask("POST", "/v1/namespaces", {"namespace": [name]})[0] == 200
    return name


def test_pyiceberg_writes_and_reads_with_lent_keys_alone(lender, ns, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    catalog = load_catalog(ns, type="rest", uri=lender.uri)
    rows = pa.table({"id": list(range(100)), "name": [f"n{i}" for i in range(100)]})
    table = catalog.create_table(f"{ns}.t", schema=rows.schema)
    table.append(rows)
    table.delete("id < 10")
    with table.transaction() as txn:
        txn.append(rows.slice(0, 5))
    assert sorted(catalog.load_table(f"{ns}.t").scan().to_arrow()["id"].to_pylist()) == [*range(5), *range(10, 100)]
    with pytest.raises(OSError, match="(?i)access.denied"):
        table.io.new_output("s3://lake/wh/elsewhere").create(overwrite=True).write(b"x")


def test_duckdb_writes_and_reads_with_lent_keys_alone(lender, ns):
    db = duckdb.connect(config={"threads": 2})
    for name in ("httpfs", "avro", "iceberg"):
        db.execute(f"LOAD '{DEPS}/ext/{name}.duckdb_extension'")
    db.execute(f"ATTACH '' AS c (TYPE iceberg, ENDPOINT '{lender.uri}', AUTHORIZATION_TYPE 'none')")
    db.execute(f"CREATE TABLE c.{ns}.t AS SELECT i AS id, 'n' || i AS name FROM range(100) r(i)")
    db.execute(f"INSERT INTO c.{ns}.t SELECT 100, 'last'")
    assert db.execute(f"SELECT count(*), max(id) FROM c.{ns}.t").fetchall() == [(101, 100)]


def test_the_grpc_client_works_on_the_same_store(lender, ns, knut):
    where = ("--grpc-uri", lender.urls["grpc"], "--table", f"{ns}.t", "--output", "json")
    env = lender.store.env
    knut("table", "create", *where, "--schema", "id long, name string", env=env).ok()
    knut("table", "append", *where, "--sql", "SELECT i AS id, 'n' || i AS name FROM range(100) r(i)", env=env).ok()
    knut("table", "delete", *where, "--where", "id < 10", env=env).ok()
    assert knut("table", "scan", *where, "--count", env=env).ok().row == {"count": 90}
    rest = ("--rest-uri", lender.uri, "--rest-credentials", "vended", "--table", f"{ns}.t", "--output", "json")
    assert knut("table", "scan", *rest, "--count").ok().row == {"count": 90}

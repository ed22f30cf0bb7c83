# SPDX-License-Identifier: Apache-2.0
"""Fixtures for clients of a catalog server: `knut catalog serve`, and Java's reference server."""
import os
import uuid
from types import SimpleNamespace

import duckdb
import pytest
from pyiceberg.catalog import load_catalog

from lib.program import Program
from lib.seaweed import KEY, REGION, SECRET, Seaweed
from lib.serve import Served
from peers.duck import DEPS
from peers.reference import Reference


@pytest.fixture(scope="session")
def served(program, tmp_path_factory):
    """A server on a local warehouse, one for each worker of the run; or that at $CATALOG_URI, to compare with."""
    if os.environ.get("CATALOG_URI"):
        yield SimpleNamespace(uri=os.environ["CATALOG_URI"])
        return
    folder = tmp_path_factory.mktemp("served")
    knut = Program(program, folder)
    with Served(program, "--warehouse", folder / "warehouse", env=knut.environment()) as server:
        server.warehouse = folder / "warehouse"
        yield server
        assert server.stop() == 0, server.errors


class Duck:
    """DuckDB with a served catalog attached as c, and the store's keys."""

    def __init__(self, uri, store):
        self.db = duckdb.connect(config={"threads": 2})
        for name in ("httpfs", "avro", "iceberg"):
            self.db.execute(f"LOAD '{DEPS}/ext/{name}.duckdb_extension'")
        self.db.execute(f"CREATE SECRET s (TYPE s3, KEY_ID '{KEY}', SECRET '{SECRET}', REGION '{REGION}', ENDPOINT "
                        f"'{store.endpoint.removeprefix('http://')}', URL_STYLE 'path', USE_SSL false)")
        self.db.execute(f"ATTACH '' AS c (TYPE iceberg, ENDPOINT '{uri}', AUTHORIZATION_TYPE 'none', "
                        "ACCESS_DELEGATION_MODE 'none')")

    def sql(self, text):
        self.db.execute(text)

    def rows(self, text):
        return self.db.execute(text).fetchall()


@pytest.fixture(scope="session")
def store(tmp_path_factory):
    """An object store with a bucket `lake`."""
    with Seaweed(tmp_path_factory.mktemp("weed")) as weed:
        weed.bucket("lake")
        yield weed


@pytest.fixture(scope="session")
def served_s3(program, store, tmp_path_factory):
    """A server whose warehouse is in the object store."""
    folder = tmp_path_factory.mktemp("served-s3")
    environment = Program(program, folder).environment(**store.env)
    with Served(program, "--warehouse-uri", "s3://lake/wh", "--s3-bucket", "lake", "--s3-endpoint",
                store.endpoint, "--db", folder / "catalog.db", env=environment) as server:
        server.environment = store.env
        server.duckdb = lambda: Duck(server.uri, store)
        yield server
        assert server.stop() == 0, server.errors


@pytest.fixture(scope="session")
def reference(tmp_path_factory):
    server = Reference(tmp_path_factory.mktemp("reference"))
    yield server
    server.close()


@pytest.fixture
def pyiceberg_of(served):
    def load(uri=None, **properties):
        return load_catalog(uuid.uuid4().hex, type="rest", uri=uri or served.uri, **properties)
    return load

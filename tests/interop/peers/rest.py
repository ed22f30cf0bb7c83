# SPDX-License-Identifier: Apache-2.0
"""Fixtures for clients of a catalog server: `knut catalog serve`, and Java's reference server."""
import os
import uuid
from types import SimpleNamespace

import pytest
from pyiceberg.catalog import load_catalog

from lib.program import Program
from lib.serve import Served
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

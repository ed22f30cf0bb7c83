# SPDX-License-Identifier: Apache-2.0
"""Fixtures for every folder of tests that drives the program."""
import os

import pytest

from lib.bad import half_delivered
from lib.doris import FakeDoris
from lib.lake import Delivery, Table
from lib.program import Program, find_program
from lib.seaweed import Seaweed, StoredProgram, StoredTable


@pytest.fixture(scope="session")
def program():
    return find_program()


@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    """A folder that all workers of this run see (use lib.once)."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base


@pytest.fixture
def knut(program, tmp_path):
    """The program, with an empty TMPDIR of its own."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return Program(program, scratch)


@pytest.fixture
def warehouse(tmp_path):
    return tmp_path / "warehouse"


@pytest.fixture
def table(knut, warehouse):
    """ns.t, not created yet."""
    return Table(knut, warehouse)


@pytest.fixture
def delivery(table, tmp_path):
    folder = tmp_path / "delivery"
    folder.mkdir()
    return Delivery(table, folder)


@pytest.fixture
def doris(tmp_path, request):
    """The stand-in of Doris: the version of a test's parameter, else of the module's DORIS, else 4.0."""
    version = getattr(request, "param", getattr(request.module, "DORIS", "4.0"))
    server = FakeDoris(tmp_path, "--profile", version)
    yield server
    server.end()


@pytest.fixture
def half(table, delivery):
    return half_delivered(table, delivery)


# ---- object store ----


@pytest.fixture(scope="session")
def store(tmp_path_factory):
    """An object store with the bucket `lake`; it runs until the session ends."""
    with Seaweed(tmp_path_factory.mktemp("weed"), tls=True) as seaweed:
        seaweed.bucket("lake")
        yield seaweed


@pytest.fixture
def stored_knut(store, program, tmp_path):
    """The program with the store's endpoint and keys in its environment."""
    scratch = tmp_path / "scratch"
    scratch.mkdir(exist_ok=True)
    return StoredProgram(program, scratch, store)


@pytest.fixture
def stored(stored_knut, tmp_path):
    """ns.t of a warehouse of the test's own in the store, not created yet."""
    return StoredTable(stored_knut, stored_knut.store.fresh("lake"), db_file=tmp_path / "catalog.db")


@pytest.fixture
def stored_delivery(stored, tmp_path):
    folder = tmp_path / "delivery"
    folder.mkdir()
    return Delivery(stored, folder)

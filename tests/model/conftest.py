# SPDX-License-Identifier: Apache-2.0
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "interop"), str(HERE.parent / "e2e")]

import pytest  # noqa: E402

from lib.fixtures import *  # noqa: E402,F401,F403
from peers.pyice import Lake  # noqa: E402


@pytest.fixture
def lake(knut, tmp_path):
    """A warehouse whose catalog all writers open."""
    return Lake(knut, tmp_path / "warehouse")


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """One Spark for all tests of this worker."""
    from history.spark import Spark
    session = Spark(tmp_path_factory.mktemp("spark"))
    yield session
    session.close()

# SPDX-License-Identifier: Apache-2.0
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import pytest  # noqa: E402

from lib.fixtures import *  # noqa: E402,F401,F403
from peers.pyice import Lake  # noqa: E402
from peers.rest import *  # noqa: E402,F401,F403
from peers.spark import answers_of_spark  # noqa: E402


@pytest.fixture
def lake(knut, tmp_path):
    """A warehouse whose catalog both PyIceberg and the program open."""
    return Lake(knut, tmp_path / "warehouse")


@pytest.fixture(scope="session")
def spark(program, shared):
    """What Spark wrote and read: one session for all workers of this run (peers/spark.py)."""
    return answers_of_spark(program, shared)

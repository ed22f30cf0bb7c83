# SPDX-License-Identifier: Apache-2.0
"""The program and PyIceberg take turns on one table through one catalog; nothing else than the model is believed."""
import pytest

from history import checks
from history.by_knut import Knut
from history.by_pyice import PyIceberg
from history.run import Copies, dice_for, new_table, play
from history.state import History
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType, BooleanType, DateType, DecimalType, DoubleType, FloatType, IntegerType, ListType, LongType, MapType, NestedField as F,
    StringType, StructType, TimestampType, TimestamptzType, TimeType, UUIDType)

COLUMNS = Schema(
    F(1, "id", LongType(), required=True), F(2, "k", IntegerType()), F(3, "s", StringType()), F(4, "bo", BooleanType()),
    F(5, "f", FloatType()), F(6, "d", DoubleType()), F(7, "d9", DecimalType(9, 2)), F(8, "d38", DecimalType(38, 10)),
    F(9, "da", DateType()), F(10, "ti", TimeType()), F(11, "ts", TimestampType()), F(12, "tz", TimestamptzType()),
    F(13, "u", UUIDType()), F(14, "b", BinaryType()),
    F(15, "st", StructType(F(16, "a", IntegerType()), F(17, "p", StructType(F(18, "n", StringType()), F(19, "c", FloatType()))))),
    F(20, "l", ListType(21, StructType(F(22, "x", IntegerType()), F(23, "y", StringType())))),
    F(24, "m", MapType(25, StringType(), 26, DoubleType())))


@pytest.mark.parametrize("writers", ["pyiceberg", "both"])
@pytest.mark.parametrize("keyed", [False, True], ids=["rows", "keyed"])
def test_a_random_history_is_exact_at_every_step(lake, tmp_path, writers, keyed):
    dice, seed = dice_for(f"pyiceberg-{writers}-{keyed}")
    version = dice.choice([1, 2])
    print("seed", seed, "version", version)
    h = History(new_table(lake, COLUMNS, version, "pyiceberg"), dice, keyed=keyed, pyiceberg=True)
    hands = [*([Knut(h, merges=False)] if writers == "both" else []), PyIceberg(h)]
    play(h, hands, 24, Copies(h, tmp_path), [(0.3, checks.check_pyiceberg), (0.1, checks.check_duckdb)])


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("keyed", [False, True], ids=["rows", "keyed"])
def test_a_random_history_by_the_program_is_exact_at_every_step(lake, tmp_path, version, keyed):
    """Others read it: DuckDB's extension where it can, PyIceberg but for what it reads wrongly."""
    dice, seed = dice_for(f"knut-{version}-{keyed}")
    print("seed", seed)
    h = History(new_table(lake, COLUMNS, version, "knut"), dice, keyed=keyed)
    play(h, [Knut(h)], 30, Copies(h, tmp_path), [(0.2, checks.check_duckdb)])

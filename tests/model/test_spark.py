# SPDX-License-Identifier: Apache-2.0
"""Spark as the writer, alone and in turns with the program and PyIceberg, through one JDBC catalog."""
from collections import Counter

import pytest

from history import checks
from history.by_knut import Knut
from history.by_pyice import PyIceberg
from history.by_spark import Spark
from history.run import Copies, dice_for, new_table, play
from history.state import History, multiset
from lib import rows as R
from peers.pyice import Lake
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType, BooleanType, DateType, DecimalType, DoubleType, FloatType, IntegerType, ListType, LongType, MapType, NestedField as F,
    StringType, StructType, TimestampType, TimestamptzType)

pytestmark = pytest.mark.xdist_group("spark")

COLUMNS = Schema(
    F(1, "id", LongType(), required=True), F(2, "k", IntegerType()), F(3, "s", StringType()), F(4, "bo", BooleanType()),
    F(5, "f", FloatType()), F(6, "d", DoubleType()), F(7, "d9", DecimalType(9, 2)), F(8, "d38", DecimalType(38, 10)),
    F(9, "da", DateType()), F(11, "ts", TimestampType()), F(12, "tz", TimestamptzType()), F(14, "b", BinaryType()),
    F(15, "st", StructType(F(16, "a", IntegerType()), F(17, "p", StructType(F(18, "n", StringType()), F(19, "c", FloatType()))))),
    F(20, "l", ListType(21, StructType(F(22, "x", IntegerType()), F(23, "y", StringType())))),
    F(24, "m", MapType(25, StringType(), 26, DoubleType())))


def named(knut, tmp_path, name):
    """A catalog with a name that the session has not seen."""
    return Lake(knut, tmp_path / "warehouse", tmp_path / "warehouse/catalog.db", name)


@pytest.mark.parametrize("version,keyed", [(1, False), (2, False), (2, True), (3, False), (3, True)])
def test_a_random_history_by_spark_is_exact_at_every_step(knut, spark, tmp_path, version, keyed):
    dice, seed = dice_for(f"spark-{version}-{keyed}")
    print("seed", seed)
    lake = named(knut, tmp_path, f"spark{version}{keyed}")
    h = History(new_table(lake, COLUMNS, version, "knut"), dice, keyed=keyed)
    play(h, [Spark(h, spark)], 11, Copies(h, tmp_path))


def check_reading(h, spark, table):
    """Spark reads what the model has."""
    got = Counter(R.canon(row) for row in spark.rows(f"SELECT * FROM {table}"))
    checks.assert_equal(got, multiset(h.rows, h.schema), "Spark's scan")


@pytest.mark.parametrize("version", [2, 3])
def test_a_random_history_by_all_is_exact_at_every_step(knut, spark, tmp_path, version):
    """Version 2 also by PyIceberg, so without delete files."""
    dice, seed = dice_for(f"all-{version}")
    print("seed", seed)
    lake = named(knut, tmp_path, f"all{version}")
    h = History(new_table(lake, COLUMNS, version, "knut"), dice, keyed=True, pyiceberg=version == 2)
    hand = Spark(h, spark, delete_files=version == 3)
    hands = [Knut(h, merges=version == 3), hand, *([PyIceberg(h)] if version == 2 else [])]
    others = [(0.3, lambda h: check_reading(h, spark, hand.t))]
    if version == 2:
        others += [(0.3, checks.check_pyiceberg), (0.2, checks.check_duckdb)]
    play(h, hands, 14, Copies(h, tmp_path), others)


def test_sparks_own_change_log_says_the_same(knut, spark, tmp_path):
    """Of a copy-on-write table without maps, which it cannot order."""
    dice, seed = dice_for("changelog")
    print("seed", seed)
    lake = named(knut, tmp_path, "changelog")
    columns = Schema(*(field for field in COLUMNS.fields if field.name != "m"))
    h = History(new_table(lake, columns, 2, "knut"), dice)
    hand = Spark(h, spark, delete_files=False)
    play(h, [hand, Knut(h, merges=False)], 10, None, [(0.5, lambda h: checks.check_changelog_view(h, spark, hand.t))])

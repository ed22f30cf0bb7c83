# SPDX-License-Identifier: Apache-2.0
"""Rows that do not fit the table, and files of them that are no such files."""
import pytest


@pytest.mark.parametrize("name,content,patterns", [
    ("bad.csv", "id,name\n1,a\nx,b\n", ("id", "x")),
    ("short.csv", "id,name\n1,a\n2\n3,c\n", ("short.csv|id",)),
    ("other.csv", "id,colour\n1,red\n", ("colour",)),
    ("null.csv", "id,name\n,a\n", ("id", "required|NULL")),
    ("bad.json", '{"id": 1}\n{"id": ', ("bad.json",)),
    ("wide.json", '{"id": 99999999999999999999}\n', ("id",)),
    ("other.json", '{"id": 1, "colour": "red"}\n', ("colour",)),
    ("bad.parquet", "PAR1 no", ("bad.parquet",)),
    ("what.txt", "1", ("--format",)),
])
def test_rows_that_do_not_fit_the_table(table, tmp_path, name, content, patterns):
    table.create("id long required, name string")
    path = tmp_path / name
    path.write_text(content)
    table("append", path).fails((1, 2), *patterns)
    assert table.rows() == [] and table.history() == []
    assert list(table.knut.tmp.iterdir()) == []
    assert [p for p in (table.warehouse / "ns/t").rglob("*.parquet")] == []


def test_values_out_of_range_name_their_column(table):
    table.create("i int, d decimal(4,2), u uuid")
    for column, value in ("i", "3000000000"), ("d", "'12345.6'"), ("u", "'no uuid'"):
        table("append", "--sql", f"SELECT {value} AS {column}").fails((1, 2), column)
    assert table.history() == []


@pytest.mark.parametrize("kind,value", [("decimal(4,2)", "-99.99"), ("decimal(38,0)", "-" + "9" * 38)])
def test_a_value_without_a_partition_is_named(table, kind, value):
    table.create(f"d {kind}", "--partition", "truncate(50, d)")
    table("append", "--sql", f"SELECT '{value}' AS d").fails((1, 2), rf"truncate\(50\) of {value} is below what decimal")
    table.append("SELECT NULL AS d UNION ALL SELECT '-50' UNION ALL SELECT '50'" if "38" in kind else "SELECT NULL AS d UNION ALL SELECT '-50.49'")
    assert len(table.files()) == (3 if "38" in kind else 2)


def test_files_that_are_not_there_are_named(table, tmp_path):
    table.create("id long")
    table("append", tmp_path / "none.csv").fails((1, 2), "none.csv")
    table("append").fails(2, "--sql")
    table("append", "--sql", "SELECT 1 AS id", tmp_path / "x.csv").fails(2, "both")
    table("append", "--sql", "SELEC 1").fails((1, 2), "syntax error")
    table("append", "--sql", "SELECT * FROM nowhere").fails((1, 2), "nowhere")

# SPDX-License-Identifier: Apache-2.0
"""Data files that are damaged or are not what their manifest says (lib/bad.py)."""
import duckdb
import pytest

from lib.bad import DATA_DAMAGE, ROWS, SCHEMA, check_failure, check_mended, name_of
from lib.damage import damaged, flipped


@pytest.mark.parametrize("how", DATA_DAMAGE)
def test_a_damaged_data_file(half, how):
    path = half.source.files()[-1]
    with damaged(path, DATA_DAMAGE[how]):
        half.source("scan").fails(1, name_of(path))
        check_failure(half, (1, 3) if how == "missing" else 1, name_of(path))
    check_mended(half)


def test_flipped_bytes_of_a_data_file_are_an_error_or_harmless_to_the_count(table):
    """Parquet pages without checksums cannot tell a flipped value; rows never get lost or doubled."""
    table.create(SCHEMA)
    table.append(ROWS.format(0, 2000))
    path, = table.files()
    size = path.stat().st_size
    errors = 0
    for at in [*range(0, size, size // 60), *range(size - 60, size)]:
        with damaged(path, flipped(at)):
            done = table("scan", "--output", "json")
            if done.rc == 0:
                assert len(done.out.splitlines()) == 2000, f"byte {at}"
            else:
                done.fails((1, 3), name_of(path))
                errors += 1
    assert errors > 10


def test_a_data_file_with_fewer_rows_than_its_manifest_says(half):
    path = half.source.files()[-1]
    def shorter(data):
        with duckdb.connect() as db:
            small = path.with_suffix(".small")
            db.execute(f"COPY (FROM '{path}' LIMIT 3) TO '{small}' (FORMAT parquet, FIELD_IDS {{id: 1, name: 2, ts: 3}})")
            return small.read_bytes()
    with damaged(path, shorter):
        path.with_suffix(".small").unlink()
        check_failure(half, 1, name_of(path), "rows")
    check_mended(half)

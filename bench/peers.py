# SPDX-License-Identifier: Apache-2.0
"""What the others do, each in a process of its own, so that time and memory compare: peers.py WHAT ARGUMENT..."""
import sys

THREADS, MEMORY = 2, "256MiB"


def duck(path=":memory:"):
    import duckdb
    return duckdb.connect(path, config={"threads": THREADS, "memory_limit": MEMORY})


def insert(source, destination):
    """A plain INSERT into a fresh file, closed (checkpoint) at the end."""
    with duck(destination) as db:
        db.execute("CREATE TABLE t (id BIGINT, name VARCHAR, city VARCHAR, amount DOUBLE, ts TIMESTAMP)")
        db.execute(f"INSERT INTO t SELECT * FROM read_parquet('{source}')")


def copy(source, destination):
    with duck() as db:
        db.execute(f"COPY (FROM read_parquet('{source}')) TO '{destination}' (FORMAT parquet, CODEC zstd)")


def rewrite(source, destination, where):
    """What a copy-on-write change of some rows has to write: the whole file again."""
    with duck() as db:
        db.execute(f"COPY (SELECT * REPLACE (CASE WHEN {where} THEN amount + 1 ELSE amount END AS amount) "
                   f"FROM read_parquet('{source}')) TO '{destination}' (FORMAT parquet, CODEC zstd)")


def difference(before, after):
    """The exact multiset difference of two sides, both ways; a side is files with commas between."""
    before, after = before.split(","), after.split(",")
    with duck() as db:
        for one, other in ((before, after), (after, before)):
            print(db.execute(f"SELECT count(*) FROM (FROM read_parquet({one}) EXCEPT ALL FROM read_parquet({other}))")
                  .fetchone()[0])


def table(metadata):
    import pyarrow
    from pyiceberg.table import StaticTable
    pyarrow.set_cpu_count(THREADS)
    pyarrow.set_io_thread_count(THREADS)
    return StaticTable.from_metadata(metadata)


def scan_of(metadata, branch):
    read = table(metadata)
    return read.scan(snapshot_id=read.snapshot_by_name(branch).snapshot_id) if branch else read.scan()


def ice_scan(metadata, branch=None):
    print(sum(batch.num_rows for batch in scan_of(metadata, branch).to_arrow_batch_reader()))


def ice_count(metadata, branch=None):
    print(scan_of(metadata, branch).count())


def ice_plan(metadata, where=None):
    print(sum(1 for _ in table(metadata).scan(**({"row_filter": where} if where else {})).plan_files()))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])

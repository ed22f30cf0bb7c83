# SPDX-License-Identifier: Apache-2.0
"""Golden tables copied into an object store, every path in them changed: the same rows as in a folder."""
import pytest
from test_golden import answers, compare_rows, golden, lines, read_document  # noqa: F401

from lib import damage

pytestmark = pytest.mark.xdist_group("s3")  # one store for all of them

# Position deletes, deletion vectors, equality deletes, Avro data, LZ4 and other codecs, partitions with
# strange values, evolution: what is read in different ways.
CHOSEN = ["g/codecs", "g/cow_v2", "g/gzmeta", "g/mor_v2", "g/mor_v3", "g/nested", "j/dv_v3", "j/eqdel_v2",
          "j/types_v2_avro", "j/types_v3_parquet"]


@pytest.mark.parametrize("table", [name for name in CHOSEN if name in answers()])
def test_a_copied_table_has_the_same_rows(stored_knut, store, golden, tmp_path, table):  # noqa: F811
    newest = golden[table]
    folder = newest.parent.parent
    uri = store.fresh("lake")
    copy = damage.move(folder, tmp_path / "copy", uri=uri)
    store.upload(copy, "lake", uri.split("/", 3)[3])
    document = f"{uri}/metadata/{newest.name}"
    last = read_document(newest)["current-snapshot-id"]
    done = stored_knut.json("table", "scan", "--metadata", document, "--snapshot", last).ok()
    compare_rows(done.rows, table, last)
    first = lines(table, "states")[0]["snapshot"]
    compare_rows(stored_knut.json("table", "scan", "--metadata", document, "--snapshot", first).ok().rows, table, first)

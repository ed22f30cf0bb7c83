# SPDX-License-Identifier: Apache-2.0
"""compact and rewrite-manifests, from the command line: what they print, killed anywhere, beside a delivery, and
wrong words."""
import pytest

from lib import kill
from lib import rows as R

KILLED = -9
ROWS = "SELECT i AS id, 'n' || i % 7 AS name, (i % 2)::INTEGER AS part, i / 4.0 AS x FROM range({}, {}) t(i)"


@pytest.fixture(params=["2", "3"], ids=["v2", "v3"])
def written(table, request):
    """Two partitions of six small files each."""
    table.create("id long, name string, part int, x double", "--partition", "part", "--format-version", request.param)
    for i in range(6):
        table.append(ROWS.format(20 * i, 20 * i + 20))
    return table


def compact(table, *args, **more):
    return table("compact", "--output", "json", *args, **more)


def test_the_plan_is_shown_and_then_done(written):
    before, files = R.multiset(written.rows()), written.files()
    plan = compact(written, "--dry-run").ok().rows
    assert [(g["group"], g["spec"], g["partition"], g["files"], g["rows"], g["deletes"]) for g in plan] == [
        (1, 0, "part=0", 6, 60, 0), (2, 0, "part=1", 6, 60, 0)]
    assert written.files() == files
    done = compact(written, "--summary", "why=tidy").ok().row
    assert (done["groups"], done["commits"], done["removed_files"], done["added_files"], done["added_rows"]) == (2, 1, 12, 2, 120)
    assert done["removed_bytes"] == sum(g["bytes"] for g in plan) > done["added_bytes"] > 0
    assert R.multiset(written.rows()) == before
    last = written.history()[-1]
    assert (last["snapshot"], last["operation"], last["total_rows"]) == (done["snapshot"], "replace", 120)
    document = written.metadata()
    (summary,) = [s["summary"] for s in document["snapshots"] if s["snapshot-id"] == done["snapshot"]]
    assert summary["why"] == "tidy"
    assert compact(written, "--dry-run").ok().rows == []
    again = compact(written).ok().row
    assert (again["snapshot"], again["commits"]) == (None, 0)


def test_progress_is_on_standard_error(written):
    done = written("compact", "--progress", "always").ok()
    assert "compact" in done.err and "120 rows" in done.err and "compact" in done.out


def test_partial_progress_makes_a_commit_for_each_group(written):
    done = compact(written, "--partial-progress", "--rewrite-all").ok().row
    assert (done["groups"], done["commits"], done["failed_commits"]) == (2, 2, 0)
    assert [line["operation"] for line in written.history()[-2:]] == ["replace"] * 2


def test_sorted_files_are_sorted(written):
    compact(written, "--strategy", "sort", "--sort-order", "name desc, id", "--where", "part = 1").ok()
    rows = [(row["name"], row["id"]) for row in written.rows("--where", "part = 1")]
    assert rows == sorted(sorted(rows, key=lambda r: r[1]), key=lambda r: r[0], reverse=True)
    assert len(written.files()) == 7


def test_manifests_are_rewritten(written):
    before, files = R.multiset(written.rows()), sorted(written.files())
    data, deletes = written("rewrite-manifests", "--dry-run", "--output", "json").ok().rows
    assert (data["manifests"], data["entries"], data["new_manifests"]) == (6, 12, 1)
    assert (deletes["content"], deletes["manifests"], deletes["new_manifests"]) == ("deletes", 0, 0)
    done = written("rewrite-manifests", "--output", "json").ok().row
    assert (done["manifests_created"], done["manifests_kept"], done["manifests_replaced"], done["entries_processed"]) == (1, 0, 6, 12)
    assert R.multiset(written.rows()) == before and sorted(written.files()) == files
    assert written("rewrite-manifests", "--output", "json").ok().row["snapshot"] is None


def test_a_delivery_passes_over_a_rewrite(written, delivery):
    delivery.deliver()
    compact(written).ok()
    written("rewrite-manifests").ok()
    written.append(ROWS.format(200, 210))
    done = delivery.deliver()
    assert [(w["operation"], w["upserts"], w["deletes"]) for w in done["windows"]] == [
        ("replace", 0, 0), ("append", 10, 0)]
    R.assert_same(delivery.rows(), written.rows(), "delivered")


def test_deletes_are_packed_and_become_vectors(table):
    table.create("id long, part int", "--partition", "part", "--property", "write.delete.mode=merge-on-read")
    table.append("SELECT i AS id, (i % 2)::INTEGER AS part FROM range(100) t(i)")
    for i in range(5):
        table.delete(f"id IN ({2 * i}, {2 * i + 1})")
    before = R.multiset(table.rows())
    plan = table("rewrite-deletes", "--dry-run", "--output", "json").ok().rows
    assert [(g["partition"], g["files"], g["positions"], g["data_files"], g["vectors"]) for g in plan] == [
        ("part=0", 5, 5, 1, False), ("part=1", 5, 5, 1, False)]
    done = table("rewrite-deletes", "--output", "json").ok().row
    assert (done["removed_files"], done["added_files"], done["dropped_positions"]) == (10, 2, 0)
    assert R.multiset(table.rows()) == before
    table.commit(lambda document: document.update({"format-version": 3, "next-row-id": 0}))
    assert all(g["vectors"] for g in table("rewrite-deletes", "--dry-run", "--output", "json").ok().rows)
    table("rewrite-deletes").ok()
    listed = [f["content"] for f in table("files", "--output", "json").ok().rows]
    assert sorted(listed) == ["data", "data", "deletion-vector", "deletion-vector"]
    assert R.multiset(table.rows()) == before
    table("rewrite-deletes", "--min-file-size-bytes", "1GiB").fails(2, "target-file-size-bytes")


REWRITES = {"compact": ("compact", "--rewrite-all"), "partial": ("compact", "--partial-progress"),
            "manifests": ("rewrite-manifests",)}


@pytest.mark.parametrize("written", ["3"], indirect=True, ids=["v3"])
@pytest.mark.parametrize("rewrite", REWRITES)
def test_killed_at_each_point_nothing_is_lost(written, tmp_path, rewrite):
    words, before = REWRITES[rewrite], R.multiset(written.rows())
    saved, trace = written.pointer, tmp_path / "trace"  # files are only ever added: the document is all to go back to
    written(*words, env={"KNUT_FAULT_TRACE": trace}).ok()
    points = kill.points(trace.read_text().split())
    assert {"write-data-written", "write-before-commit", "catalog-pointer-moved"} <= {name for name, _ in points}
    n_files = len(written.files())
    for point, n in points:
        written.point(saved)
        done = written(*words, env={"KNUT_FAULT": f"{point}:{n}:kill"})
        assert done.rc == KILLED, f"{point}:{n}: {done}"
        assert R.multiset(written.rows()) == before, f"{point}:{n}"
        written(*words).ok()
        assert len(written.files()) == n_files, f"{point}:{n}"
    assert R.multiset(written.rows()) == before


@pytest.mark.parametrize("words,rc,says", [
    (("--where", "nope = 1"), 2, "nope"),
    (("--sort-order", "id"), 2, "--strategy sort"),
    (("--strategy", "sort"), 2, "no sort order"),
    (("--strategy", "sort", "--sort-order", "nope"), 2, "--sort-order"),
    (("--strategy", "zorder"), 2, "binpack"),
    (("--target-file-size-bytes", "12 parsecs"), 2, "target-file-size-bytes"),
    (("--target-file-size-bytes", "1MiB", "--min-file-size-bytes", "2MiB"), 2, "too small"),
    (("--min-file-size-bytes", "some"), 2, "min-file-size-bytes"),
    (("--delete-ratio-threshold", "0"), 2, "delete-ratio-threshold"),
    (("--delete-ratio-threshold", "half"), 2, "delete-ratio-threshold"),
    (("--min-input-files", "0"), 2, "min-input-files"),
    (("--output-spec-id", "5"), 2, "output-spec-id 5"),
    (("--branch", "dev"), 2, "no branch dev"),
    (("--max-file-group-size-bytes", "0"), 2, "max-file-group-size-bytes"),
    (("--summary", "operation=append"), 2, "operation"),
])
def test_wrong_words_are_named(table, words, rc, says):
    table.create("id long")
    table.append("SELECT 1 AS id")
    compact(table, *words).fails(rc, says)
    assert len(table.history()) == 1


def test_a_bare_table_is_only_looked_at(written):
    at = ("--metadata", written.pointer)
    written.knut("table", "compact", *at).fails(2, "read-only")
    written.knut("table", "rewrite-manifests", *at).fails(2, "read-only")
    assert len(written.knut.json("table", "compact", "--dry-run", *at).ok().rows) == 2
    written.knut("table", "rewrite-manifests", "--spec-id", "4", "--dry-run", *at).fails(2, "spec-id 4")

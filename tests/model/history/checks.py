# SPDX-License-Identifier: Apache-2.0
"""What is held to the model after a step: scans, changes in all their forms, and other readers."""
from collections import Counter

from lib import rows as R
from peers.duck import duck_rows
from history.state import keys_of, multiset

META = ("_change_type", "_commit_snapshot_id", "_change_ordinal")


def assert_equal(got, expected, what):
    if got != expected:
        def show(counter):
            return "\n".join(f"  {n} x {R.readable(k)}" for k, n in list(counter.items())[:6]) or "  none"
        raise AssertionError(f"{what}\ntoo many:\n{show(got - expected)}\nmissing:\n{show(expected - got)}")


def schema_of(h, snapshot_id):
    wanted = h.ice.snapshot_by_id(snapshot_id).schema_id
    return h.schema if wanted is None else h.ice.schemas()[wanted]


def scan(h, *words):
    return R.multiset(h.table.rows(*words))


def difference(before, after):
    return before - after, after - before


def split(rows):
    """(deletes, inserts, pairs) of change rows; pairs: [before, after] of updates, which are in the sides too."""
    deletes, inserts, pairs = [], [], []
    for row in rows:
        row = dict(row)
        kind = row.pop("_change_type")
        for name in META[1:]:
            row.pop(name)
        key = R.canon(row)
        if kind == "update_before":
            pairs.append([row, None])
        elif kind == "update_after":
            assert pairs and pairs[-1][1] is None, "an update_after follows its update_before"
            pairs[-1][1] = row
        (deletes if kind in ("delete", "update_before") else inserts).append(key)
    assert all(after is not None for _, after in pairs), "an update_before is followed by its update_after"
    return Counter(deletes), Counter(inserts), pairs


def state(h, snapshot_id):
    """Rows of a snapshot (None: before the first) under the table's schema of today."""
    return Counter() if snapshot_id is None else multiset(h.states[snapshot_id], h.schema)


def window(since, to):
    return ("--to", to, *(("--from", since) if since is not None else ()))


def check_changes(h, since, to, *words):
    """Changes from one snapshot to another, net in sum: exact where it is one commit or --net."""
    expected = difference(state(h, since), state(h, to))
    rows = h.table.knut("changes", *window(since, to), *words).ok().rows
    deletes, inserts, pairs = split(rows)
    what = f"changes {' '.join(map(str, window(since, to) + words))}"
    if "--raw" in words:
        assert not expected[0] - deletes and not expected[1] - inserts, f"{what}: raw lacks changes"
        deletes, inserts = deletes - inserts, inserts - deletes
    assert_equal(deletes, expected[0], f"{what}: deletes")
    assert_equal(inserts, expected[1], f"{what}: inserts")
    return pairs


def check_updates(h, since, to):
    """--before-images by id: every delete and insert of one key is a pair, and no pair mixes keys."""
    pairs = check_changes(h, since, to, "--before-images", "--key", "id")
    assert all(before["id"] == after["id"] for before, after in pairs), "an update keeps its key"
    if h.keyed:
        deletes, inserts = difference(state(h, since), state(h, to))
        def ids(counter):
            return {dict(key[1])["id"] for key in counter}
        assert len(pairs) == len(ids(deletes) & ids(inserts)), "every key that was changed is an update"


def check_range(h):
    """A random range of the lineage: net, and commit by commit."""
    line = h.lineage()[::-1]
    if line and h.ice.snapshot_by_id(line[0]).parent_snapshot_id is None:
        line.insert(0, None)
    if len(line) < 3:
        return
    i, j = sorted(h.dice.sample(range(len(line)), 2))
    check_changes(h, line[i], line[j], "--net")
    if h.dice.random() < 0.3:
        rows = h.table.knut("changes", *window(line[i], line[j])).ok().rows
        by_commit = {}
        for row in rows:
            by_commit.setdefault(row["_commit_snapshot_id"], []).append(row)
        for at in range(i + 1, j + 1):
            deletes, inserts, _ = split(by_commit.pop(line[at], []))
            expected = difference(state(h, line[at - 1]), state(h, line[at]))
            assert_equal(deletes, expected[0], f"deletes of {line[at]} in a range")
            assert_equal(inserts, expected[1], f"inserts of {line[at]} in a range")
        assert not by_commit, f"changes of snapshots outside the range: {set(by_commit)}"


def check_filter(h, filters):
    """A random filter finds its rows."""
    chosen = filters.some_filter(h.dice, h.schema, h.rows)
    hit = [row for row in h.rows if chosen.test(row.values) is True]
    assert_equal(scan(h, "--where", str(chosen)), multiset(hit, h.schema), f"scan where {chosen}")
    assert h.table.knut("scan", "--count", "--where", str(chosen)).ok().row == {"count": len(hit)}


def check_step(h, new):
    """The table now, and each new snapshot."""
    assert_equal(scan(h), multiset(h.rows, h.schema), "scan")
    for snapshot_id in new:
        parent = h.ice.snapshot_by_id(snapshot_id).parent_snapshot_id
        schema = schema_of(h, snapshot_id)
        if h.dice.random() < 0.5 or snapshot_id != new[-1]:
            assert_equal(scan(h, "--snapshot", snapshot_id), multiset(h.states[snapshot_id], schema), f"scan of {snapshot_id}")
        check_changes(h, parent, snapshot_id)
        if h.dice.random() < 0.5:
            check_changes(h, parent, snapshot_id, "--raw")
        else:
            check_updates(h, parent, snapshot_id)
    if h.dice.random() < 0.5:
        check_range(h)
    if h.dice.random() < 0.1:
        snapshot_id = h.dice.choice(list(h.states))
        if h.ice.snapshot_by_id(snapshot_id) is not None:
            assert_equal(scan(h, "--snapshot", snapshot_id), multiset(h.states[snapshot_id], schema_of(h, snapshot_id)),
                         f"scan of {snapshot_id}")


def check_pyiceberg(h):
    got = Counter(R.canon(row) for row in R.of_arrow(h.ice.scan().to_arrow()))
    assert_equal(got, multiset(h.rows, h.schema), "PyIceberg's scan")


def check_duckdb(h):
    got = R.multiset(duck_rows(h.ice.metadata_location), signed_zeros=False)
    assert_equal(got, unsigned(multiset(h.rows, h.schema)), "DuckDB's scan")


def unsigned(counter):
    """A multiset of rows in which 0.0 and -0.0 are one."""
    made = Counter()
    for key, n in counter.items():
        made[_unsign(key)] += n
    return made


def _unsign(key):
    kind, value = key
    if key == ("number", "-0.0"):
        return ("number", 0.0)
    if kind == "list":
        return (kind, tuple(map(_unsign, value)))
    if kind == "struct":
        return (kind, tuple((name, _unsign(item)) for name, item in value))
    return key


def check_changelog_view(h, spark, table):
    """Spark's own change log from one snapshot to another, net and commit by commit, is ours. It refuses tables with
    delete files, and begins anew where the lineage was cut."""
    line = h.lineage()[::-1]
    if len(line) < 2:
        return
    i, j = sorted(h.dice.sample(range(len(line)), 2))
    since, to = line[i], line[j]
    catalog, _, short = table.partition(".")
    options = f"map('start-snapshot-id', '{since}', 'end-snapshot-id', '{to}')"
    spark.sql(f"CALL {catalog}.system.create_changelog_view(table => '{short}', changelog_view => 'changed', options => {options}, "
              "net_changes => true)")
    theirs = spark.rows("SELECT * FROM changed")
    ours = difference(state(h, since), state(h, to))
    sides = {"INSERT": Counter(), "DELETE": Counter()}
    for row in theirs:
        kind = row.pop("_change_type")
        row.pop("_change_ordinal"), row.pop("_commit_snapshot_id")
        sides[kind][R.canon(row)] += 1
    assert_equal(sides["DELETE"] - sides["INSERT"], ours[0], f"Spark's net deletes from {since} to {to}")
    assert_equal(sides["INSERT"] - sides["DELETE"], ours[1], f"Spark's net inserts from {since} to {to}")
    check_changes(h, since, to, "--net")

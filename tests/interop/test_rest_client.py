# SPDX-License-Identifier: Apache-2.0
"""The program as a client of REST catalogs, its own (`knut catalog serve`) and Java's reference server: every command
that works on a warehouse works over REST, and lost, cut and false answers end in one outcome."""
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from lib import proxy as P
from lib.lake import plain
from lib.program import Program

SCHEMA = "id long required, name string, at timestamptz"


def sql(first, end, name="n"):
    return (f"SELECT i AS id, '{name}' || i AS name, TIMESTAMPTZ '2024-01-01 00:00:00+00' + INTERVAL 1 DAY * (i % 3) "
            f"AS at FROM range({first}, {end}) r(i)")


@dataclass
class Remote:
    """A table in a REST catalog."""
    knut: Program
    uri: str
    name: str

    @property
    def locator(self):
        return ("--rest-uri", self.uri, "--table", self.name)

    def __call__(self, command, *args, **more):
        return self.knut("table", command, *self.locator, *args, **more)

    def json(self, command, *args, **more):
        return self(command, *args, "--output", "json", **more)

    def ids(self, *args):
        return sorted(row["id"] for row in self.json("scan", "--columns", "id", *args).ok().rows)


@pytest.fixture(params=["served", "reference"])
def upstream(request):
    return request.getfixturevalue(request.param).uri


@pytest.fixture
def proxy(upstream):
    front = P.Proxy(upstream)
    yield front
    front.close()


@pytest.fixture
def table(knut, proxy):
    table = Remote(knut, proxy.uri, f"c{uuid.uuid4().hex[:8]}.t")
    table("create", "--schema", SCHEMA, "--partition", "day(at)", "--property",
          "commit.status-check.min-wait-ms=1").ok()
    return table


def other(table, name):
    return Remote(table.knut, table.uri, table.name.replace(".t", f".{name}"))


# ---- commands ----


def test_rows_are_written_changed_and_read(table):
    table("append", "--sql", sql(0, 10)).ok()
    table("delete", "--where", "id < 3").ok()
    table("overwrite", "--where", "id = 5", "--sql", sql(5, 6, "new")).ok()
    table("alter", "ADD COLUMN score double").ok()
    table("upsert", "--key", "id", "--sql", "SELECT 7::BIGINT AS id, 'up' AS name, NULL::TIMESTAMPTZ AS at, 1.5 AS score").ok()
    rows = {row["id"]: row for row in table.json("scan").ok().rows}
    assert sorted(rows) == list(range(3, 10))
    assert (rows[5]["name"], rows[7]["name"], rows[7]["score"]) == ("new5", "up", 1.5)
    changes = table.json("changes").ok().rows
    assert {c["_change_type"] for c in changes} >= {"insert", "delete"}
    assert len(table.json("history").ok().rows) == 4


def test_branches_tags_and_moves(table):
    first = table.json("append", "--sql", sql(0, 2)).ok().row["snapshot"]
    table("tag", "old").ok()
    table("append", "--branch", "audit", "--sql", sql(2, 4)).ok()
    table("fast-forward", "main", "audit").ok()
    assert table.ids() == [0, 1, 2, 3]
    table("rollback", "--snapshot", str(first)).ok()
    assert table.ids() == [0, 1]
    assert table.ids("--ref", "audit") == [0, 1, 2, 3]


def test_upkeep(table):
    for i in range(4):
        table("append", "--sql", sql(i, i + 1)).ok()
    table("compact", "--rewrite-all").ok()
    table("rewrite-manifests").ok()
    table("expire", "--older-than", "0.001s", "--retain-last", "1").ok()
    assert len(table.json("history").ok().rows) == 1
    table("orphans", "--dry-run").ok()
    assert table.ids() == [0, 1, 2, 3]


def test_tables_are_listed_renamed_registered_and_dropped(table):
    table("append", "--sql", sql(0, 2)).ok()
    listed = table.knut.json("table", "list", "--rest-uri", table.uri).ok().rows
    assert table.name in [row["table"] for row in listed]
    document = table.json("show").ok().row["metadata"]
    copy = other(table, "copy")
    copy("register", "--metadata", document).ok()
    assert copy.ids() == [0, 1]
    copy("drop").ok()
    renamed = other(table, "renamed")
    table("rename", renamed.name).ok()
    assert renamed.ids() == [0, 1]
    table("show").fails(1, "NoSuchTableException")
    renamed("drop", "--purge").ok()
    renamed("show").fails(1, "does not exist")


def test_a_delivery_follows_a_table_of_a_server(knut, table, tmp_path):
    table("append", "--sql", sql(0, 5)).ok()
    words = ["cdc", "run", *table.locator, "--once", "--sink", f"duckdb:{tmp_path / 'copy.duckdb'}", "--target", "t",
             "--state", tmp_path / "state.db", "--key", "id", "--output", "json"]
    knut(*words).ok()
    table("delete", "--where", "id = 2").ok()
    table("append", "--sql", sql(7, 9)).ok()
    knut(*words).ok()
    import duckdb
    with duckdb.connect(tmp_path / "copy.duckdb", read_only=True) as db:
        assert [r[0] for r in db.execute("SELECT id FROM t ORDER BY id").fetchall()] == [0, 1, 3, 4, 7, 8]


def test_several_tables_are_released_as_one(table):
    second = other(table, "t2")
    second("create", "--schema", SCHEMA).ok()
    for one in (table, second):
        one("alter", "SET TBLPROPERTIES ('write.wap.enabled'='true')").ok()
        one("append", "--sql", sql(0, 2)).ok()
        one("append", "--wap-id", "day-1", "--sql", sql(2, 4)).ok()
    words = ["catalog", "release", "--rest-uri", table.uri, "--wap-id", "day-1", table.name, second.name, "--output",
             "json"]
    assert [row["released"] for row in table.knut(*words, "--dry-run").ok().rows] == [False, False]
    assert (table.ids(), second.ids()) == ([0, 1], [0, 1])
    assert [row["released"] for row in table.knut(*words, "--tag", "v1").ok().rows] == [True, True]
    assert (table.ids(), second.ids("--ref", "v1")) == ([0, 1, 2, 3], [0, 1, 2, 3])
    table.knut(*words).fails(3, "published already")


def test_a_release_that_one_table_refuses_changes_none(table):
    second = other(table, "t2")
    second("create", "--schema", SCHEMA).ok()
    table("append", "--sql", sql(0, 2)).ok()
    second("append", "--sql", sql(0, 2)).ok()
    table("append", "--branch", "next", "--sql", sql(2, 4)).ok()
    table.knut("catalog", "release", "--rest-uri", table.uri, "--branch", "next", table.name,
               second.name).fails(1, "next")
    assert table.ids() == [0, 1]


# ---- lost, cut and false answers ----

COMMIT = r"^POST /v1/namespaces/\w+/tables/t$"


@pytest.mark.parametrize("fault", [P.lost, P.cut, P.says(500, b"oops", done=True), P.says(502, b"<html>", done=True),
                                   P.says(503, b"", [("Retry-After", "0")], done=True),
                                   P.says(504, b"", done=True), P.says(200, b"<html>login", done=True)])
def test_a_commit_whose_answer_was_lost_is_found(table, proxy, fault):
    table("append", "--sql", sql(0, 2)).ok()
    proxy.rule(COMMIT, fault)
    table("append", "--sql", sql(2, 4)).ok()
    assert table.ids() == [0, 1, 2, 3]
    assert len(table.json("history").ok().rows) == 2


def test_a_commit_that_was_not_done_and_not_answered_is_unknown_and_keeps_its_files(table, proxy):
    table("append", "--sql", sql(0, 2)).ok()
    location = plain(table.json("show").ok().row["location"])
    before = set(location.rglob("*.parquet"))
    proxy.rule(COMMIT, P.says(500, b"{}"), times=9)
    table("append", "--sql", sql(2, 4)).fails(1, "may or may not", "history")
    assert set(location.rglob("*.parquet")) > before
    assert table.ids() == [0, 1]


def test_a_lost_commit_on_which_another_came_is_found(table, proxy):
    """The table has moved on when it is looked at: our snapshot is in its history, not current."""
    table("append", "--sql", sql(0, 2)).ok()
    direct = Remote(table.knut, proxy.upstream, table.name)

    def lost_and_overtaken(handler, forward):
        forward()
        direct("append", "--sql", sql(10, 12)).ok()
        handler.close_connection = True
    proxy.rule(COMMIT, lost_and_overtaken)
    table("append", "--sql", sql(2, 4)).ok()
    assert table.ids() == [0, 1, 2, 3, 10, 11]


def test_a_commit_that_another_overtook_is_made_anew(table, proxy):
    table("append", "--sql", sql(0, 2)).ok()
    direct = Remote(table.knut, proxy.upstream, table.name)
    again = []

    def overtaken(handler, forward):
        direct("append", "--sql", sql(10, 12)).ok()
        status, headers, body = forward()
        again.append(status)
        handler.answer(status, headers, body)
    proxy.rule(COMMIT, overtaken)
    table("append", "--sql", sql(2, 4)).ok()
    assert table.ids() == [0, 1, 2, 3, 10, 11]


def test_questions_are_asked_again_and_commits_are_not(table, proxy):
    table("append", "--sql", sql(0, 2)).ok()
    proxy.rule(r"^GET /v1/config", P.says(503, b"", [("Retry-After", "0")]), times=2)
    proxy.rule(r"^GET .*/tables/t$", P.cut, times=2)
    assert table.ids() == [0, 1]
    proxy.seen.clear()
    proxy.rule(COMMIT, P.says(429, b"", [("Retry-After", "0")]))
    table("append", "--sql", sql(2, 4)).ok()
    assert proxy.count(COMMIT) == 2  # 429 says that nothing was done
    assert table.ids() == [0, 1, 2, 3]


@pytest.mark.parametrize("fault, says", [
    (P.says(302, b"", [("Location", "https://login.example/")]), "redirects are not followed"),
    (P.says(200, b"<html><body>Hello</body></html>", [("Content-Type", "text/html")]), "not JSON"),
    (P.says(200, b"[" * 100000), "not JSON"), (P.says(200, b'{"metadata": 7}'), "metadata"),
    (P.says(404, b"no route", [("Content-Type", "text/plain")]), "404 no answer of a catalog"),
    (P.says(401, b'{"error":{"message":"who?","type":"NotAuthorizedException","code":401}}'),
     "401 NotAuthorizedException: who"),
])
def test_false_answers_are_one_line(table, proxy, fault, says):
    proxy.rule(r"^GET .*/tables/t$", fault, times=9)
    table("show").fails((1, 3), says, "load table")


def test_an_unchanged_table_costs_no_document(table, proxy):
    """What decides on a commit looks at the table again: the server may say that it has not changed."""
    table("append", "--sql", sql(0, 2)).ok()
    proxy.headers.clear()
    table("tag", "old").ok()
    assert any("If-None-Match" in headers for headers in proxy.headers)
    assert table.ids("--ref", "old") == [0, 1]


def test_a_prefix_that_is_none_is_said(knut, table):
    knut("table", "show", "--rest-uri", table.uri + "/nowhere", "--table", table.name).fails((1, 2, 3), "config")
    knut("table", "show", *table.locator, "--rest-option", "prefix=wrong").fails((1, 2, 3), "wrong")


def test_writers_that_race_lose_nothing(table):
    table("append", "--sql", sql(0, 1)).ok()
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda i: table("append", "--sql", sql(i, i + 1)), range(1, 9)))
    assert [d.rc for d in done] == [0] * 8, [str(d) for d in done if d.rc]
    assert table.ids() == list(range(9))

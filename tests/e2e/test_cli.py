# SPDX-License-Identifier: Apache-2.0
"""The command line itself: help, unknown words, exit statuses, the shapes of JSON, standard output."""
import json
import re
import subprocess

import pytest

from lib.program import TOP

COMMANDS = ["demo", "table list", "table create", "table alter", "table append", "table delete", "table overwrite",
            "table upsert", "table compact", "table rewrite-manifests", "table rewrite-deletes", "table scan",
            "table changes", "table show", "table history", "table files", "table stats", "table partition-stats",
            "table branch", "table tag", "table rollback", "table set-current", "table fast-forward",
            "table cherry-pick", "table publish", "table ancestors", "table expire", "table orphans", "table drop",
            "table register", "table rename", "cdc run", "cdc status", "cdc check", "cdc reload", "cdc ddl", "cdc selftest",
            "cdc measure", "cdc unit", "cdc install", "cdc uninstall", "cdc start", "cdc stop", "cdc k8s", "catalog release",
            "catalog commits", "catalog backup", "catalog verify", "catalog heal",
            "catalog serve", "catalog token", "pipeline check", "pipeline convert", "pipeline graph",
            "pipeline run", "pipeline plan", "help", "version"]
ROWS = "SELECT range AS id, 'n' || range AS name FROM range(5)"


@pytest.fixture
def filled(table):
    """Two snapshots."""
    table.create("id long required, name string", "--identifier", "id")
    table.append(ROWS)
    table.overwrite("id = 3", "SELECT 3 AS id, 'new' AS name")
    return table


# ---- help ----


def test_help_lists_every_command(knut):
    listed = re.findall(r"^  ((?:table|cdc|pipeline|catalog) [\w-]+|\w+)  ", knut("help").ok().out, re.M)
    assert listed == COMMANDS
    assert knut("--help").ok().out == knut("-h").ok().out == knut().ok().out == knut("help").ok().out


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_has_help_with_its_options(knut, command):
    done = knut(*command.split(), "--help").ok()
    assert done.out.startswith(f"Usage: knut {command} ")
    assert "Common options:" in done.out and "--output text|json" in done.out
    assert not done.err
    assert max(map(len, done.out.splitlines())) <= 120


def test_the_reference_page_is_what_the_program_says(knut):
    page = TOP / "docs/reference.md"
    said = knut("help", "--markdown").ok().out
    for command in COMMANDS:
        assert f"## `knut {command} " in said
    if page.exists():
        assert page.read_text() == said


@pytest.mark.parametrize("words", [("--version",), ("-V",), ("version",)])
def test_the_version_is_one_line(knut, words):
    assert re.fullmatch(r"knut \d+\.\d+\.\d+\n", knut(*words).ok().out)
    assert knut("version", "--output", "json").ok().row["program"] == "knut"


@pytest.mark.parametrize("words", [("help", "cdc"), ("cdc", "--help"), ("cdc", "-h")])
def test_a_group_lists_its_commands(knut, words):
    said = knut(*words).ok().out
    assert re.search(r"^  cdc run +\w", said, re.M) and "knut cdc COMMAND" in said
    assert "table scan" not in said


def test_help_of_a_command_is_its_own_help(knut):
    assert knut("help", "table", "scan").ok().out == knut("table", "scan", "--help").ok().out
    assert knut("help", "version").ok().out == knut("version", "--help").ok().out
    knut("help", "table", "scam").fails(2, "no command 'knut table scam'")
    knut("help", "table", "scan", "x").fails(2, "no command")


# ---- usage ----


@pytest.mark.parametrize("words,nearest", [
    (("tabel",), None), (("hlep",), "help"), (("table", "scna"), "scan"), (("cdc", "relaod"), "reload"),
    (("cdc", "run", "--onse"), "--once"), (("table", "scan", "--wher", "TRUE"), "--where"),
    (("table", "append", "--warehous", "x"), "--warehouse"), (("cdc", "status", "--outptu", "json"), "--output"),
])
def test_an_unknown_word_is_answered_with_the_nearest_one(knut, words, nearest):
    done = knut(*words).fails(2)
    assert nearest is None or re.search(f"did you mean '?{nearest}'?", done.error)
    assert done.out == ""


@pytest.mark.parametrize("words,pattern", [
    (("table",), "needs a command"),
    (("cdc",), "needs a command"),
    (("table", "scan"), "--warehouse .*--root .*--metadata"),
    (("table", "scan", "--root", "a", "--metadata", "b"), "--root and --metadata"),
    (("table", "scan", "--root", ""), "--root is empty"),
    (("table", "scan", "--root", "a", "--table", "n.t"), "--table goes with --warehouse"),
    (("table", "scan", "--root", "a", "--limit", "x"), "not a whole number"),
    (("table", "scan", "--root", "a", "--limit", "-2"), "at least -1"),
    (("table", "scan", "--root"), "--root needs a value"),
    (("table", "scan", "--root", "--count"), "--root needs a value"),
    (("table", "scan", "--root", "a", "--root", "b"), "given twice"),
    (("table", "scan", "--root", "a", "--count=1"), "neither true nor false|takes no value"),
    (("table", "scan", "--root", "a", "b"), "unexpected word 'b'"),
    (("table", "scan", "--root", "a", "--output", "xml"), "not one of text.json"),
    (("table", "scan", "--root", "a", "--memory-limit", "much"), "not a size"),
    (("table", "create", "--warehouse", "w"), "which table"),
    (("table", "create", "--warehouse", "w", "--table", "n.t"), "exactly one of --schema"),
    (("table", "create", "--warehouse", "w", "--table", "n.t", "--schema", "a nothing"), "nothing"),
    (("table", "create", "--warehouse", "w", "--table", "n.t", "--schema", "a int", "--identifier", "b"), "no such column"),
    (("table", "create", "--warehouse", "w", "--table", "n.t", "--schema", "a int", "--format-version", "4"), "1..3"),
    (("table", "create", "--warehouse", "w", "--table", "n.t", "--schema", "a int", "--property", "x"), "KEY=VALUE"),
    (("cdc", "run", "--root", "a"), "--sink"),
    (("cdc", "run", "--root", "a", "--sink", "null:", "--chunk-mb", "0"), "not within 1..65536"),
    (("cdc", "run", "--root", "a", "--sink", "null:", "--interval", "soon"), "not a duration"),
])
def test_wrong_usage_is_one_line_and_exit_2(knut, tmp_path, words, pattern):
    knut(*words, cwd=tmp_path).fails(2, pattern)
    assert [p.name for p in tmp_path.iterdir()] == ["scratch"]


def test_an_unknown_kind_of_sink_is_wrong_usage(filled, delivery):
    done = filled.knut("cdc", "run", *filled.locator, "--sink", "redis:x", "--state", delivery.state, "--once")
    done.fails(2, "duckdb", "null")


@pytest.mark.parametrize("words,rc,pattern", [
    (("--table", "ns.other"), 1, "ns.other"),
    (("--table", "t"), 2, "namespace"),
    (("--table", "ns.t", "--catalog", "other"), 1, "ns.t"),
    (("--table", "ns.t", "--db", "/nowhere/c.db"), 1, "/nowhere/c.db"),
])
def test_a_table_that_is_not_there_is_named(filled, words, rc, pattern):
    filled.knut("table", "scan", "--warehouse", filled.warehouse, *words).fails(rc, pattern)


def test_a_place_without_a_table_is_named(knut, tmp_path):
    knut("table", "scan", "--root", tmp_path / "none").fails(1, "none", "metadata")
    knut("table", "scan", "--warehouse", tmp_path / "none", "--table", "a.b").fails(1, "none")
    knut("table", "scan", "--metadata", tmp_path / "none.metadata.json").fails(1, "none.metadata.json")
    assert not (tmp_path / "none").exists()


def test_reading_words_are_checked_against_the_table(filled):
    filled("scan", "--columns", "id,nmae").fails(2, "nmae")
    filled("scan", "--where", "nmae = 'x'").fails(2, "nmae")
    filled("scan", "--where", "id =").fails(2, "--where")
    filled("scan", "--where", "id = 'x'").fails(2, "--where")
    filled("scan", "--snapshot", "12").fails((1, 2), "12", "history")
    filled("scan", "--snapshot", "x").fails(2, "--snapshot")
    filled("scan", "--ref", "nobody").fails((1, 2), "nobody")
    filled("scan", "--as-of", "yesterday").fails(2, "--as-of")
    filled("scan", "--as-of", "2001-01-01").fails((1, 2), "2001")
    filled("scan", "--lineage").fails(2, "v2")
    filled("changes", "--before-images", "--key", "nmae").fails(2, "nmae")


def test_a_bare_table_is_not_written(filled):
    for place in ("--root", filled.pointer.parent.parent), ("--metadata", filled.pointer):
        filled.knut("table", "append", *place, "--sql", ROWS).fails((2, 3), "read-only", "--warehouse")


def test_creating_twice_is_told(filled):
    filled("create", "--schema", "a int").fails(1, "already exists", r"ns\.t")
    again = filled("create", "--schema", "a int", "--if-not-exists", "--output", "json").ok().row
    assert again["created"] is False
    assert len(filled.rows()) == 5


# ---- errors as JSON ----


def test_an_error_is_a_json_line_where_logs_are(knut):
    done = knut("table", "scan", "--root", "/nowhere", "--log-format", "json")
    assert done.rc == 1
    line = json.loads(done.error)
    assert line["exit"] == 1 and line["code"] == "not-found" and "/nowhere" in line["error"]


# ---- shapes of JSON ----

ROW_KEYS = {
    "table list": ["table", "namespace", "name"],
    "table history": ["snapshot", "parent", "sequence", "committed_at", "operation", "added_rows", "deleted_rows",
                      "total_rows", "added_files", "deleted_files", "schema", "current"],
    "table files": ["content", "file", "format", "spec", "partition", "records", "bytes", "sequence", "snapshot",
                    "first_row_id"],
    "table show": ["table", "location", "metadata", "uuid", "format_version", "last_updated_ms", "current_snapshot",
                   "snapshots", "schema", "partition_spec", "sort_order", "refs", "statistics",
                   "partition_statistics", "properties"],
    "table scan": ["id", "name"],
    "table scan --plan": ["file", "spec", "seq", "records", "bytes", "deletes"],
    "table scan --count": ["count"],
    "table changes": ["id", "name", "_change_type", "_commit_snapshot_id", "_change_ordinal"],
    "version": ["program", "version", "engine"],
}


@pytest.mark.parametrize("command", ROW_KEYS)
def test_the_shape_of_json_is_fixed(filled, command):
    words = command.split()
    place = () if command == "version" else filled.locator[:2] if command == "table list" else filled.locator
    rows = filled.knut.json(*words, *place).ok().rows
    assert rows
    for row in rows:
        assert list(row) == ROW_KEYS[command]


@pytest.mark.parametrize("command", ROW_KEYS)
def test_text_has_what_json_has(filled, command):
    words = command.split()
    place = () if command == "version" else filled.locator[:2] if command == "table list" else filled.locator
    done = filled.knut(*words, *place).ok()
    assert done.out.endswith("\n") and not done.out.endswith("\n\n")
    assert len(done.out.splitlines()) >= len(filled.knut.json(*words, *place).rows)


def test_writers_tell_what_they_did(table):
    table.create("id long, name string")
    keys = ["table", "operation", "snapshot", "added_files", "added_rows", "removed_files", "removed_rows", "delete_files",
            "added_bytes"]
    first = table.append(ROWS)
    assert list(first) == keys
    assert (first["operation"], first["added_rows"], first["removed_rows"]) == ("append", 5, 0)
    second = table.delete("id = 1")
    assert second["operation"] == "delete" and second["snapshot"] != first["snapshot"]
    assert second["removed_rows"] - second["added_rows"] == 1
    nothing = table.delete("id = 100")
    assert nothing["snapshot"] is None and len(table.history()) == 2


def test_a_delivery_reports_its_windows(filled, delivery):
    report = delivery.run().ok().row
    assert list(report) == ["deliveries"]
    first = report["deliveries"][0]
    assert set(first) == {"table", "sink", "from", "to", "windows", "status", "message"}
    assert first["table"] == "ns.t" and first["status"] == "ok" and first["from"] is None
    assert first["to"] == filled.history()[-1]["snapshot"]
    window = first["windows"][0]
    assert set(window) == {"from", "to", "operation", "upserts", "deletes", "chunks", "duplicates", "bytes", "seconds"}
    assert window["upserts"] == 5 and window["deletes"] == 0 and window["duplicates"] == 0
    filled.delete("id = 0")
    second = delivery.deliver()
    assert [(w["upserts"], w["deletes"]) for w in second["windows"]] == [(0, 1)]
    idle = delivery.deliver()
    assert idle["status"] == "idle" and idle["windows"] == [] and idle["to"] == second["to"]


def test_status_and_check_tell_what_waits(filled, delivery):
    keys = {"table", "sink", "target", "status", "cursor", "head", "behind", "rows_behind", "bytes_behind",
            "seconds_behind", "epoch", "updated_at", "message"}
    checked = delivery.command("check").ok().rows
    assert [w["from"] for w in checked] == [None] and checked[0]["upserts"] == 5
    assert not delivery.file.exists(), "check touches nothing"
    delivery.deliver()
    filled.append("SELECT 100 AS id, 'x' AS name")
    filled.append("SELECT 101 AS id, 'y' AS name")
    status = delivery.command("status").ok().row
    assert set(status) == keys
    assert status["behind"] == 2 and status["rows_behind"] == 2 and status["cursor"] != status["head"]
    assert [w["upserts"] for w in delivery.command("check").ok().rows] == [1, 1]
    assert len(delivery.command("check", "--max-windows", "1").ok().rows) == 1
    delivery.deliver()
    status = delivery.command("status").ok().row
    assert status["behind"] == 0 and status["cursor"] == status["head"] and status["epoch"] == 0
    listed = filled.knut.json("cdc", "status", "--state", delivery.state).ok().rows
    assert [row["cursor"] for row in listed] == [status["cursor"]]


def test_reload_starts_over(filled, delivery):
    delivery.deliver()
    assert delivery.command("reload").ok().row["epoch"] == 1
    assert delivery.cursor() == (None, 1)
    again = delivery.deliver()
    assert [w["from"] for w in again["windows"]] == [None]
    assert sorted(row["id"] for row in delivery.rows()) == [0, 1, 2, 3, 4]


# ---- standard output that does not take it ----


@pytest.mark.parametrize("words", [("help",), ("version",), ("table", "scan"), ("table", "history"), ("table", "files"),
                                   ("table", "show"), ("table", "changes"), ("table", "scan", "--output", "json")])
def test_a_full_standard_output_is_a_failure(filled, words):
    place = filled.locator if words[0] == "table" else ()
    with open("/dev/full", "wb") as full:
        done = filled.knut(*words, *place, stdout=full)
    done.fails(1, "standard output|stdout", "[Nn]o space")


def test_a_closed_standard_output_is_a_failure(filled):
    shell = 'exec "$@" >&-'
    done = filled.knut("table", "scan", *filled.locator, wrap=("sh", "-c", shell, "sh"))
    done.fails(1, "standard output|stdout")


def test_a_reader_that_goes_away_ends_a_long_scan(table):
    table.create("id long")
    table.append("SELECT range AS id FROM range(200000)")
    with table.knut.start("table", "scan", *table.locator, "--output", "json") as process:
        assert json.loads(process.stdout.readline()) is not None
        process.stdout.close()
        assert process.wait(60) == 1
        assert len(process.stderr.read().splitlines()) == 1


def test_a_full_standard_output_does_not_undo_a_delivery(filled, delivery):
    with open("/dev/full", "wb") as full:
        delivery.run(stdout=full).fails(1, "standard output|stdout")
    assert delivery.deliver()["status"] == "idle"
    assert sorted(row["id"] for row in delivery.rows()) == [0, 1, 2, 3, 4]


def test_progress_is_plain_lines_where_there_is_no_terminal(filled, delivery):
    done = delivery.run("--progress", "always").ok()
    assert "\r" not in done.err and "\x1b" not in done.err
    assert delivery.run("--progress", "never").ok().err == ""


def test_log_lines_tell_of_each_window(filled, delivery):
    done = delivery.run("--log-level", "info", "--log-format", "json").ok()
    events = [json.loads(line) for line in done.err.splitlines()]
    assert [e["event"] for e in events if e["area"] == "cdc"].count("window-delivered") == 1


def test_the_program_needs_no_folder_of_its_own(knut, tmp_path):
    """It runs from anywhere, as it is found through PATH or a link."""
    link = tmp_path / "link"
    link.symlink_to(knut.path)
    assert subprocess.run([link, "version"], cwd="/", capture_output=True, check=True).stdout.startswith(b"knut ")

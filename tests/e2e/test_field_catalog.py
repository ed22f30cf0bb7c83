# SPDX-License-Identifier: Apache-2.0
"""What other catalogs got wrong in public: each bug report as a test of a served catalog, with its number beside it.

Reports of what clients, tokens and S3 got wrong have their tests where these are tested:

| report | test |
| --- | --- |
| names by every client (apache/iceberg#17759, iceberg-python#710) | also interop/test_rest_{pyiceberg,duckdb,spark}: `odd names` |
| answer of a commit lost (apache/iceberg#12818, #13443, #4673) | interop/test_rest_client: `a_commit_whose_answer_was_lost_is_found` |
| POST sent again by itself (duckdb-iceberg#1120, ClickHouse#115390) | interop/test_rest_client: `questions_are_asked_again_and_commits_are_not`; \
unit/catalog/test_rest_changes: `with_an_idempotency_key_a_lost_commit_is_sent_again` |
| the same stale requirement for ever (iceberg-go#945) | interop/test_rest_client: `writers_that_race_lose_nothing` |
| token's end (iceberg-python#234, StarRocks#77546) | test_serve_auth: `an_expired_token_is_401`; \
unit/catalog/test_rest: `client_credentials_give_a_token_and_401_another` (419 too) |
| refresh by exchange (gravitino#10899, #11092) | test_serve_auth: `a_token_is_exchanged_for_a_fresh_one` |
| four forms of credentials (duckdb-iceberg#625, #705) | test_serve_auth: `credentials_give_a_token` |
| lent keys without an end (polaris#2177, unitycatalog#1885, apache/iceberg#13515) | test_serve_files: `what_clients_need_is_in_the_answer`; \
interop/test_rest_lent_keys: `keys_that_end_are_renewed`; unit/storage/test_s3_faults: `expired_keys_are_replaced_once` |
| used to the last moment (iceberg-go#1560) | unit/storage/test_s3_credentials: `keys_are_fetched_anew_before_they_expire`, \
`many_threads_make_one_request`; test_serve_files: `many_who_ask_at_once_get_the_same_keys` |
| characters in keys (curl#13754, multistore#105, envoy#35023) | unit/storage/test_s3: `strange_keys_are_encoded_once`; \
test_s3: `keys_may_hold_what_partitions_hold`, `a_large_file_goes_in_parts_and_comes_in_ranges` |
| clock (spiceai#5118, aws-sdk-js-v3#8005) | unit/storage/test_s3_faults: `the_clock_of_the_store_is_learnt` |
| region (mountpoint-s3#1) | unit/storage/test_s3_faults: `another_region_is_learnt_once_and_kept`, `a_wrong_region_that_stays_is_explained` |
| endpoint and path style lost (StarRocks#50585, duckdb-iceberg#594) | interop/test_rest_lent_keys: \
`with_lent_keys_alone_a_table_is_made_written_and_read` |
| paths of deletes in another spelling (doris#67544) | test_s3: `what_is_written_is_spelled_as_the_table_is` |
| deletes of a moved table (doris#35957, duckdb-iceberg#685) | golden/test_golden_s3: `a_copied_table_has_the_same_rows` |
"""
import os
import shutil
import threading
import time
from pathlib import Path
from urllib.parse import quote

import pytest

from lib.serve import Served

SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}


@pytest.fixture
def lake(knut, tmp_path):
    with Served(knut.path, "--warehouse", tmp_path / "w") as served:
        yield Lake(served, tmp_path / "w")


class Lake:
    """A served catalog with the namespace `ns`."""

    def __init__(self, served, warehouse):
        self.ask, self.warehouse, self.served = served.ask, Path(warehouse), served
        assert self.ask("POST", "/v1/namespaces", {"namespace": ["ns"]})[0] == 200

    def create(self, name, namespace="ns", version=2):
        status, _, loaded = self.ask("POST", f"/v1/namespaces/{namespace}/tables",
                                     {"name": name, "schema": SCHEMA, "properties": {"format-version": str(version)}})
        assert status == 200, loaded
        return loaded

    def load(self, name, namespace="ns"):
        return self.ask("GET", f"/v1/namespaces/{namespace}/tables/{quote(name, safe='')}")

    def commit(self, name, requirements, updates):
        return self.ask("POST", f"/v1/namespaces/ns/tables/{name}", {"requirements": requirements, "updates": updates})

    def folder(self, loaded):
        return Path(loaded["metadata"]["location"].removeprefix("file://"))


def snapshot(loaded, number, parent=None, branch="main", sequence=None, **more):
    """Updates that add a snapshot as a writer sends them."""
    md = loaded["metadata"]
    snap = {"snapshot-id": number, "sequence-number": sequence or md["last-sequence-number"] + 1,
            "timestamp-ms": max(int(time.time() * 1000), md["last-updated-ms"] + 1), "schema-id": 0,
            "manifest-list": f"{md['location']}/metadata/snap-{number}.avro", "summary": {"operation": "append"}} | more
    if parent is not None:
        snap["parent-snapshot-id"] = parent
    return [{"action": "add-snapshot", "snapshot": snap},
            {"action": "set-snapshot-ref", "ref-name": branch, "type": "branch", "snapshot-id": number}]


def head_is(number, branch="main"):
    return [{"type": "assert-ref-snapshot-id", "ref": branch, "snapshot-id": number}]


def at_once(n, job):
    """job(i) in n threads that start together; the answers in order."""
    answers, start = [None] * n, threading.Barrier(n)

    def run(i):
        start.wait()
        answers[i] = job(i)
    threads = [threading.Thread(target=run, args=(i,)) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def error_of(answer):
    status, _, body = answer
    error = body["error"]
    assert error["code"] == status and not error.get("stack"), error
    return status, error["type"]


def test_a_lost_race_is_a_conflict(lake):
    """lakekeeper#1147: 500 for concurrent writers, which engines do not retry."""
    loaded = lake.create("t")
    answers = at_once(8, lambda i: lake.commit("t", head_is(None), snapshot(loaded, 100 + i)))
    assert sorted(status for status, _, _ in answers) == [200] + [409] * 7
    assert {error_of(a) for a in answers if a[0] != 200} == {(409, "CommitFailedException")}


@pytest.mark.parametrize("version", [2, 3])
def test_a_sequence_number_that_has_become_stale_is_a_conflict(lake, version):
    """polaris#5138, #4747, #4748: a fatal 400 for what another branch's commit made stale."""
    loaded = lake.create("t", version=version)
    rows = {"added-rows": 5} if version == 3 else {}
    first = {"first-row-id": 0} if version == 3 else {}
    assert lake.commit("t", head_is(None), snapshot(loaded, 1, **rows, **first))[0] == 200
    _, _, before = lake.load("t")
    row_ids = {"first-row-id": before["metadata"]["next-row-id"]} if version == 3 else {}
    stale = snapshot(before, 2, parent=1, branch="b", **rows, **row_ids)
    assert lake.commit("t", head_is(1), snapshot(before, 3, parent=1, **rows, **row_ids))[0] == 200
    assert error_of(lake.commit("t", head_is(None, "b"), stale)) == (409, "CommitFailedException")
    _, _, now = lake.load("t")
    row_ids = {"first-row-id": now["metadata"]["next-row-id"]} if version == 3 else {}
    status, _, body = lake.commit("t", head_is(None, "b"), snapshot(now, 2, parent=1, branch="b", **rows, **row_ids))
    assert status == 200, body


LOST = "catalog-pointer-moved:1:fail"  # the database has the commit, its answer does not come
NOBODY_KNOWS = ",".join(f"catalog-status-check:{n}:fail" for n in range(1, 9))


@pytest.mark.parametrize("faults, status", [(LOST, 200), (f"{LOST},{NOBODY_KNOWS}", 500),
                                            (f"catalog-pointer-not-moved:1:fail,{NOBODY_KNOWS}", 500)])
def test_a_commit_whose_answer_the_database_lost_is_no_conflict_and_keeps_its_document(lake, faults, status):
    """polaris#5459, #5263: a definite conflict, and the new document was removed."""
    before = lake.create("t")
    folder = lake.folder(before) / "metadata"
    assert lake.served.stop() == 0
    program = lake.served.process.args[0]
    with Served(program, "--warehouse", lake.warehouse, env={**os.environ, "KNUT_FAULT": faults}) as served:
        answer = served.ask("POST", "/v1/namespaces/ns/tables/t", {
            "requirements": head_is(None), "updates": snapshot(before, 9)})
        assert answer[0] == status, answer
        if status == 500:
            assert error_of(answer) == (500, "CommitStateUnknownException")
        assert len(list(folder.glob("*.metadata.json"))) == 2
    with Served(program, "--warehouse", lake.warehouse) as served:
        _, _, now = served.ask("GET", "/v1/namespaces/ns/tables/t")
        assert now["metadata"].get("current-snapshot-id", -1) == (9 if LOST in faults else -1)


def test_creating_and_dropping_at_once_is_never_the_server_s_fault(lake):
    """polaris#1202: failed serialisation in the database was the client's to bear."""
    def job(i):
        name = f"t{i % 8}"
        return [lake.ask("POST", "/v1/namespaces/ns/tables", {"name": name, "schema": SCHEMA})[0],
                lake.ask("DELETE", f"/v1/namespaces/ns/tables/{name}")[0]]
    seen = {status for pair in at_once(64, job) for status in pair}
    assert seen <= {200, 204, 404, 409}


def test_of_two_drops_one_finds_nothing(lake):
    """polaris#4499: 503 for a drop that raced a drop."""
    for n in range(5):
        lake.create(f"t{n}")
        answers = at_once(2, lambda _: lake.ask("DELETE", f"/v1/namespaces/ns/tables/t{n}"))
        assert sorted(status for status, _, _ in answers) == [204, 404]


def test_a_document_that_cannot_be_written_is_a_failure(lake):
    """amoro#4291: the answer was success, the snapshots were lost."""
    loaded = lake.create("t")
    place = lake.folder(loaded) / "elsewhere"
    place.write_text("in the way")
    status, _, body = lake.commit("t", [], [{"action": "set-properties", "updates": {"write.metadata.path": f"file://{place}"}}])
    assert status >= 500, body
    status, _, again = lake.load("t")
    assert status == 200 and again["metadata-location"] == loaded["metadata-location"]


def test_a_lost_document_is_no_table_without_end(lake):
    """Altinity/ice#57, #72: 500 without end, and the table could not be dropped."""
    loaded = lake.create("t")
    lake.create("other")
    lake.served.stop()
    shutil.rmtree(lake.folder(loaded) / "metadata")
    with Served(lake.served.process.args[0], "--warehouse", lake.warehouse) as served:
        assert error_of(served.ask("GET", "/v1/namespaces/ns/tables/t")) == (404, "NotFoundException")
        _, _, listed = served.ask("GET", "/v1/namespaces/ns/tables")
        assert [one["name"] for one in listed["identifiers"]] == ["other", "t"]
        assert served.ask("DELETE", "/v1/namespaces/ns/tables/t")[0] == 204
        _, _, listed = served.ask("GET", "/v1/namespaces/ns/tables")
        assert [one["name"] for one in listed["identifiers"]] == ["other"]


def test_the_configuration_needs_no_warehouse(lake):
    """lakekeeper#1539: 404 without `warehouse`, so that StarRocks could not start."""
    status, _, config = lake.ask("GET", "/v1/config")
    assert status == 200 and "overrides" in config and "defaults" in config


@pytest.mark.parametrize("name", ["a b", "a+b", "a%b", "é/ü", "foo/bar", "x.y", "a%2Fb", "q?k=v", "a#b"])
def test_names_come_back_as_they_were(lake, name):
    """apache/iceberg#17759, iceberg-python#710, #2462: blanks, plus signs and slashes of names got lost between clients."""
    status, _, body = lake.ask("POST", "/v1/namespaces/ns/tables", {"name": name, "schema": SCHEMA})
    if status == 400:  # refused by name is right too, but then it is nowhere
        assert name in body["error"]["message"]
        assert lake.load(name)[0] in (400, 404)
        return
    assert status == 200, body
    _, _, listed = lake.ask("GET", "/v1/namespaces/ns/tables")
    assert [one["name"] for one in listed["identifiers"]] == [name]
    assert lake.load(name)[0] == 200
    place = {"namespace": ["ns"], "name": name}
    assert lake.ask("POST", "/v1/tables/rename", {"source": place, "destination": place | {"name": name + "2"}})[0] == 204
    assert lake.load(name)[0] == 404
    assert lake.ask("DELETE", f"/v1/namespaces/ns/tables/{quote(name + '2', safe='')}")[0] == 204


def test_levels_are_told_from_dots(lake):
    """Altinity/ClickHouse#1268, iceberg-python#2826: nested namespaces and names with dots were the same."""
    assert lake.ask("POST", "/v1/namespaces", {"namespace": ["a"]})[0] == 200
    assert lake.ask("POST", "/v1/namespaces", {"namespace": ["a", "b"]})[0] == 200
    assert lake.ask("POST", "/v1/namespaces", {"namespace": ["x.y"]})[0] == 200
    _, _, config = lake.ask("GET", "/v1/config")
    separator = config["overrides"].get("namespace-separator") or config["defaults"].get("namespace-separator") or "%1F"
    assert lake.ask("GET", f"/v1/namespaces/a{separator}b")[2]["namespace"] == ["a", "b"]
    assert lake.ask("GET", "/v1/namespaces/a%1Fb")[2]["namespace"] == ["a", "b"]
    assert lake.ask("GET", "/v1/namespaces/x.y")[2]["namespace"] == ["x.y"]
    assert lake.ask("GET", "/v1/namespaces/x%1Fy")[0] == 404


def test_a_namespace_tells_where_its_tables_are(lake):
    """Trino makes tables below it; without it, it finds the location that it is given taken by the table itself."""
    place = f"file://{lake.warehouse}/ns"
    assert lake.ask("GET", "/v1/namespaces/ns")[2]["properties"] == {"location": place}
    assert lake.create("t")["metadata"]["location"] == f"{place}/t"
    elsewhere = f"file://{lake.warehouse}/elsewhere"
    made = {"namespace": ["there"], "properties": {"location": elsewhere, "k": "v"}}
    assert lake.ask("POST", "/v1/namespaces", made)[2]["properties"] == {"location": elsewhere, "k": "v"}
    assert lake.ask("GET", "/v1/namespaces/there")[2]["properties"] == {"location": elsewhere, "k": "v"}
    assert lake.create("t", "there")["metadata"]["location"] == f"{elsewhere}/t"


def test_a_transaction_with_one_stale_table_changes_none(lake):
    """lakekeeper#81: 500 with a stack trace."""
    first, second = lake.create("one"), lake.create("two")
    assert lake.commit("two", head_is(None), snapshot(second, 7))[0] == 200
    changes = [{"identifier": {"namespace": ["ns"], "name": name}, "requirements": head_is(None),
                "updates": snapshot(loaded, 8)} for name, loaded in (("one", first), ("two", second))]
    answer = lake.ask("POST", "/v1/transactions/commit", {"table-changes": changes})
    assert error_of(answer) == (409, "CommitFailedException")
    assert lake.load("one")[2]["metadata-location"] == first["metadata-location"]
    assert lake.load("two")[2]["metadata"]["current-snapshot-id"] == 7

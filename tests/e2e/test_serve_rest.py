# SPDX-License-Identifier: Apache-2.0
"""The REST protocol of a served catalog, request by request."""
import gzip
import json
import threading
import uuid

import pytest

from lib.serve import Served

SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "required": True, "type": "long"},
                                       {"id": 2, "name": "name", "required": False, "type": "string"}]}
NS = "/v1/namespaces"


@pytest.fixture(scope="module")
def served(program, tmp_path_factory):
    with Served(program, "--warehouse", tmp_path_factory.mktemp("served") / "w") as server:
        yield server


@pytest.fixture
def ns(served):
    """A namespace of the test's own."""
    name = "n" + uuid.uuid4().hex[:8]
    assert served.ask("POST", NS, {"namespace": [name]})[0] == 200
    return name


def create(served, ns, name="t", **more):
    status, headers, table = served.ask("POST", f"{NS}/{ns}/tables", {"name": name, "schema": SCHEMA, **more})
    assert status == 200, table
    return headers, table


def commit(served, ns, name, *updates, requirements=(), headers=None):
    return served.ask("POST", f"{NS}/{ns}/tables/{name}",
                      {"requirements": list(requirements), "updates": list(updates)}, headers)


def error(answer, status, kind, *words):
    """The answer is the error model's."""
    assert answer[0] == status, answer
    body = answer[2]["error"]
    assert body["code"] == status and body["type"] == kind and body["message"]
    assert "stack" not in body
    for word in words:
        assert word in body["message"], body
    return body


SET = {"action": "set-properties", "updates": {"k": "v"}}


# ---- configuration ----


def test_config_lists_the_operations_with_and_without_a_warehouse(served):
    status, _, config = served.ask("GET", "/v1/config")
    assert status == 200 and config["idempotency-key-lifetime"] == "PT30M"
    assert "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}" in config["endpoints"]
    assert "POST /v1/{prefix}/transactions/commit" in config["endpoints"]
    assert not [e for e in config["endpoints"] if "metrics" in e and "tables" not in e]
    assert served.ask("GET", "/v1/config?warehouse=knut")[0] == 200
    error(served.ask("GET", "/v1/config?warehouse=other"), 404, "NoSuchWarehouseException", "other")


def test_every_listed_operation_is_there(served):
    """With names that are not there: any answer but 404 and 405 of the path itself."""
    _, _, config = served.ask("GET", "/v1/config")
    for line in config["endpoints"]:
        method, path = line.split()
        path = path.replace("/{prefix}", "")
        for name in ("namespace", "table", "view", "plan-id", "function"):
            path = path.replace("{" + name + "}", "none")
        body = {} if method == "POST" else None
        status, _, answer = served.ask(method, path, body)
        assert status in (400, 404) or (status, path) == (200, NS), (line, status)
        if status == 404 and answer:
            assert answer["error"]["type"].startswith("NoSuch"), (line, answer)
            assert answer["error"]["type"] != "NoSuchEndpointException", line


def test_the_catalogs_name_is_a_prefix(served, ns):
    create(served, ns)
    assert served.ask("HEAD", f"/v1/knut/namespaces/{ns}/tables/t")[0] == 204
    assert served.ask("GET", f"//v1/namespaces/{ns}/tables/t/")[0] == 200
    error(served.ask("GET", f"/v1/other/namespaces/{ns}/tables/t"), 404, "NoSuchEndpointException")


# ---- names ----


@pytest.mark.parametrize("name,paths", [
    ("a b", ["a%20b", "a+b"]), ("a+b", ["a%2Bb"]), ("a%b", ["a%25b"]), ("é", ["%C3%A9"]),
    ("a.b", ["a.b", "a%2Eb"]), ("a'b\"c", ["a%27b%22c"]), ("a?b#c&d=e", ["a%3Fb%23c%26d%3De"]),
])
def test_names_come_back_as_they_were_however_they_are_encoded(served, ns, name, paths):
    create(served, ns, name)
    for path in paths:
        assert served.ask("HEAD", f"{NS}/{ns}/tables/{path}")[0] == 204, path
    _, _, listed = served.ask("GET", f"{NS}/{ns}/tables")
    assert listed["identifiers"] == [{"namespace": [ns], "name": name}]
    assert served.ask("DELETE", f"{NS}/{ns}/tables/{paths[0]}")[0] == 204


def test_a_level_with_a_dot_is_not_two_levels(served, ns):
    for levels in ([ns, "x"], [ns, "x", "y"], [ns, "x.y"]):
        assert served.ask("POST", NS, {"namespace": levels})[0] == 200
    _, _, listed = served.ask("GET", f"{NS}?parent={ns}")
    assert sorted(listed["namespaces"]) == [[ns, "x"], [ns, "x.y"]]
    create(served, f"{ns}%1Fx%1Fy")
    assert served.ask("HEAD", f"{NS}/{ns}%1Fx.y/tables/t")[0] == 404
    error(served.ask("DELETE", f"{NS}/{ns}%1Fx"), 409, "NamespaceNotEmptyException", "is not empty")


@pytest.mark.parametrize("name", ["..", ".", "a/../../b", "../../../../etc/passwd", "a\x00b", "", "x" * 5000])
def test_a_name_never_leaves_the_warehouse(served, ns, name):
    status, _, answer = served.ask("POST", f"{NS}/{ns}/tables", {"name": name, "schema": SCHEMA})
    if status == 200:
        location = answer["metadata"]["location"]
        assert "/../" not in location and not location.endswith(("/..", "/."))
        assert f"/{ns}/" in location
    else:
        assert status == 400 and answer["error"]["type"] in ("IllegalArgumentException", "BadRequestException")


@pytest.mark.parametrize("location", ["file:///etc", "/etc/x", "http://127.0.0.1:1/x", "s3://other/x", "ftp://h/x",
                                      "file:///tmp/../etc", "relative/x"])
def test_places_outside_the_warehouse_are_refused(served, ns, location):
    made = served.ask("POST", f"{NS}/{ns}/tables", {"name": "t", "schema": SCHEMA, "location": location})
    assert made[0] in (400, 403, 406), made
    registered = served.ask("POST", f"{NS}/{ns}/register",
                            {"name": "t", "metadata-location": f"{location}/metadata/1.metadata.json"})
    assert registered[0] in (400, 403, 406), registered
    create(served, ns, "inside")
    moved = commit(served, ns, "inside", {"action": "set-location", "location": location})
    assert moved[0] in (400, 403, 406), moved


# ---- loading ----


def test_an_etag_tells_an_unchanged_table(served, ns):
    headers, table = create(served, ns)
    etag = headers["ETag"]
    path = f"{NS}/{ns}/tables/t"
    assert served.ask("GET", path)[1]["ETag"] == etag
    status, headers, body = served.ask("GET", path, headers={"If-None-Match": etag})
    assert (status, headers["ETag"], body) == (304, etag, b"")
    _, headers, refs = served.ask("GET", path + "?snapshots=refs")
    assert headers["ETag"] != etag and refs["metadata"]["snapshots"] == []
    status, headers, _ = commit(served, ns, "t", SET)
    assert status == 200 and headers["ETag"] != etag
    assert served.ask("GET", path, headers={"If-None-Match": etag})[0] == 200
    assert served.ask("GET", path, headers={"If-None-Match": headers["ETag"]})[0] == 304
    error(served.ask("GET", path + "?snapshots=some"), 400, "IllegalArgumentException")


def test_a_lost_document_is_not_a_missing_table(served, ns):
    from urllib.parse import urlsplit
    import os
    _, table = create(served, ns)
    os.remove(urlsplit(table["metadata-location"]).path)
    error(served.ask("GET", f"{NS}/{ns}/tables/t"), 404, "NotFoundException")
    assert [t["name"] for t in served.ask("GET", f"{NS}/{ns}/tables")[2]["identifiers"]] == ["t"]
    assert served.ask("DELETE", f"{NS}/{ns}/tables/t")[0] == 204


def test_pages_join_to_the_whole_list(served, ns):
    names = sorted(f"t{i}" for i in range(7))
    for name in names:
        create(served, ns, name)
    whole = served.ask("GET", f"{NS}/{ns}/tables?pageSize=2")[2]
    assert [t["name"] for t in whole["identifiers"]] == names  # without a token: everything
    found, token = [], ""
    while token is not None:
        page = served.ask("GET", f"{NS}/{ns}/tables?pageSize=3&pageToken={token}")[2]
        assert len(page["identifiers"]) <= 3
        found += [t["name"] for t in page["identifiers"]]
        token = page.get("next-page-token")
    assert found == names
    for size in ("0", "-1", "x"):
        error(served.ask("GET", f"{NS}/{ns}/tables?pageSize={size}&pageToken="), 400, "IllegalArgumentException")


def test_answers_are_packed_for_who_takes_it(served, ns):
    for i in range(80):
        create(served, ns, f"a_table_with_quite_a_long_name_{i}")
    path = f"{NS}/{ns}/tables"
    status, headers, data = served.ask("GET", path, headers={"Accept-Encoding": "gzip"})
    assert status == 200 and headers["Content-Encoding"] == "gzip"
    assert json.loads(gzip.decompress(data)) == served.ask("GET", path)[2]
    body = gzip.compress(json.dumps({"requirements": [], "updates": [SET]}).encode())
    assert served.ask("POST", f"{path}/a_table_with_quite_a_long_name_1", body,
                      {"Content-Type": "application/json", "Content-Encoding": "gzip"})[0] == 200


def test_packed_documents_are_the_newest_ones(served, ns):
    create(served, ns)
    path = f"{NS}/{ns}/tables/t"
    for i in range(3):
        update = {"action": "set-properties", "updates": {f"key-{k}": f"{i} " * 20 for k in range(100)}}
        assert commit(served, ns, "t", update)[0] == 200
        for query in ("", "?snapshots=refs", "", "?snapshots=refs"):
            status, headers, data = served.ask("GET", path + query, headers={"Accept-Encoding": "gzip"})
            assert status == 200 and headers["Content-Encoding"] == "gzip"
            table = json.loads(gzip.decompress(data))
            assert table == served.ask("GET", path + query)[2]
            assert table["metadata"]["properties"]["key-7"] == f"{i} " * 20


# ---- changes ----


def test_a_staged_table_is_made_by_its_commit(served, ns):
    _, table = create(served, ns, **{"stage-create": True})
    assert table["metadata-location"] is None
    assert served.ask("HEAD", f"{NS}/{ns}/tables/t")[0] == 404
    md = table["metadata"]
    updates = [{"action": "assign-uuid", "uuid": md["table-uuid"]},
               {"action": "upgrade-format-version", "format-version": 2},
               {"action": "add-schema", "schema": md["schemas"][0], "last-column-id": 2},
               {"action": "set-current-schema", "schema-id": -1},
               {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
               {"action": "set-default-spec", "spec-id": -1},
               {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
               {"action": "set-default-sort-order", "sort-order-id": -1},
               {"action": "set-location", "location": md["location"]}]
    status, _, made = commit(served, ns, "t", *updates, requirements=[{"type": "assert-create"}])
    assert status == 200 and made["metadata"]["table-uuid"] == md["table-uuid"]
    error(commit(served, ns, "t", *updates, requirements=[{"type": "assert-create"}]), 409, "CommitFailedException")


def test_failures_have_the_types_of_the_specification(served, ns):
    create(served, ns)
    table = f"{NS}/{ns}/tables/t"
    error(served.ask("GET", f"{NS}/{ns}/tables/none"), 404, "NoSuchTableException", f"Table does not exist: {ns}.none")
    error(served.ask("GET", f"{NS}/none/tables"), 404, "NoSuchNamespaceException", "Namespace does not exist: none")
    error(served.ask("GET", f"{NS}/{ns}/views/none"), 404, "NoSuchViewException", f"View does not exist: {ns}.none")
    error(served.ask("POST", NS, {"namespace": [ns]}), 409, "AlreadyExistsException")
    error(served.ask("POST", f"{NS}/{ns}/tables", {"name": "t", "schema": SCHEMA}), 409, "AlreadyExistsException",
          f"Table already exists: {ns}.t")
    error(commit(served, ns, "t", SET, requirements=[{"type": "assert-table-uuid", "uuid": str(uuid.uuid4())}]), 409,
          "CommitFailedException", "Requirement failed")
    error(commit(served, ns, "t", {"action": "fly"}), 400, "IllegalArgumentException", "fly")
    error(commit(served, ns, "t", SET, requirements=[{"type": "assert-luck"}]), 400, "IllegalArgumentException", "luck")
    error(served.ask("POST", f"{NS}/{ns}/properties", {"removals": ["a"], "updates": {"a": "b"}}), 422,
          "UnprocessableEntityException")
    error(served.ask("DELETE", f"{NS}/{ns}"), 409, "NamespaceNotEmptyException")
    error(served.ask("PUT", table, {}), 405, "UnsupportedOperationException")
    assert served.ask("PUT", table, {})[1]["Allow"] == "GET, HEAD, POST, DELETE"
    error(served.ask("GET", "/v1/none"), 404, "NoSuchEndpointException")
    error(served.ask("POST", table, b"{}", {"Content-Type": "text/plain"}), 415, "UnsupportedMediaTypeException")
    error(served.ask("DELETE", table + "?purgeRequested=maybe"), 400, "IllegalArgumentException")
    error(served.ask("GET", f"{NS}/{ns}/functions/f"), 404, "NoSuchFunctionException")
    assert served.ask("HEAD", f"{NS}/{ns}/tables/none")[0] == 404


def test_an_unregistered_table_can_be_registered_again(served, ns):
    create(served, ns)
    _, _, last = commit(served, ns, "t", SET)
    status, _, gone = served.ask("POST", f"{NS}/{ns}/tables/t/unregister")
    assert status == 200 and gone["metadata-location"] == last["metadata-location"]
    assert gone["metadata"]["properties"]["k"] == "v"
    error(commit(served, ns, "t", SET), 404, "NoSuchTableException")
    status, _, back = served.ask("POST", f"{NS}/{ns}/register", {"name": "u", "metadata-location": gone["metadata-location"]})
    assert status == 200 and back["metadata"]["table-uuid"] == gone["metadata"]["table-uuid"]
    error(served.ask("POST", f"{NS}/{ns}/register", {"name": "u", "metadata-location": gone["metadata-location"]}), 409,
          "AlreadyExistsException")
    assert served.ask("POST", f"{NS}/{ns}/register", {"name": "u", "metadata-location": gone["metadata-location"],
                                                      "overwrite": True})[0] == 200


def test_an_unregistering_that_races_commits_has_all_of_them(served, ns):
    create(served, ns)
    acknowledged, stop = [], threading.Event()

    def work(worker):
        conn = served.connect()
        for i in range(1000):
            status, _, _ = served.ask("POST", f"{NS}/{ns}/tables/t", {"requirements": [], "updates": [
                {"action": "set-properties", "updates": {f"w{worker}.{i}": "x"}}]}, connection=conn)
            if status == 404:
                return
            acknowledged.append(f"w{worker}.{i}")
            if i == 5:
                stop.set()
    workers = [threading.Thread(target=work, args=(w,)) for w in range(4)]
    for worker in workers:
        worker.start()
    assert stop.wait(60)
    status, _, gone = served.ask("POST", f"{NS}/{ns}/tables/t/unregister")
    for worker in workers:
        worker.join()
    assert status == 200 and set(acknowledged) <= set(gone["metadata"]["properties"])


def test_a_transaction_moves_all_or_none(served, ns):
    create(served, ns, "a")
    create(served, ns, "b")

    def change(name, value, *requirements):
        return {"identifier": {"namespace": [ns], "name": name}, "requirements": list(requirements),
                "updates": [{"action": "set-properties", "updates": {"v": value}}]}

    def values():
        return [served.ask("GET", f"{NS}/{ns}/tables/{n}")[2]["metadata"]["properties"].get("v") for n in "ab"]
    path = "/v1/transactions/commit"
    assert served.ask("POST", path, {"table-changes": [change("a", "1"), change("b", "1")]})[0] == 204
    assert values() == ["1", "1"]
    stale = {"type": "assert-table-uuid", "uuid": str(uuid.uuid4())}
    error(served.ask("POST", path, {"table-changes": [change("a", "2"), change("b", "2", stale)]}), 409,
          "CommitFailedException")
    error(served.ask("POST", path, {"table-changes": [change("a", "2"), change("none", "2")]}), 404,
          "NoSuchTableException")
    assert values() == ["1", "1"]


def test_racing_commits_without_conflict_all_win(served, ns):
    create(served, ns)
    outcomes = []

    def work(worker):
        conn = served.connect()
        for i in range(5):
            status, _, _ = served.ask("POST", f"{NS}/{ns}/tables/t", {"requirements": [], "updates": [
                {"action": "set-properties", "updates": {f"w{worker}.{i}": "x"}}]}, connection=conn)
            outcomes.append(status)
    workers = [threading.Thread(target=work, args=(w,)) for w in range(16)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert outcomes == [200] * 80
    properties = served.ask("GET", f"{NS}/{ns}/tables/t")[2]["metadata"]["properties"]
    assert len([k for k in properties if k.startswith("w")]) == 80


def test_two_drops_are_one(served, ns):
    create(served, ns)
    statuses = []
    workers = [threading.Thread(target=lambda: statuses.append(served.ask("DELETE", f"{NS}/{ns}/tables/t")[0]))
               for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(statuses) == [204, 404]


# ---- idempotency ----


def test_a_repeated_key_gets_the_first_answer_and_changes_nothing(served, ns):
    create(served, ns)
    key = {"Idempotency-Key": str(uuid.uuid4())}
    first = commit(served, ns, "t", {"action": "set-properties", "updates": {"k": "1"}}, headers=key)
    commit(served, ns, "t", {"action": "set-properties", "updates": {"k": "2"}})
    again = commit(served, ns, "t", {"action": "set-properties", "updates": {"k": "1"}}, headers=key)
    assert again[0] == 200 and again[2] == first[2] and again[1]["ETag"] == first[1]["ETag"]
    assert served.ask("GET", f"{NS}/{ns}/tables/t")[2]["metadata"]["properties"]["k"] == "2"
    drop = {"Idempotency-Key": str(uuid.uuid4())}
    assert [served.ask("DELETE", f"{NS}/{ns}/tables/t", headers=drop)[0] for _ in range(3)] == [204] * 3
    assert served.ask("DELETE", f"{NS}/{ns}/tables/t")[0] == 404
    error(served.ask("DELETE", f"{NS}/{ns}/tables/u", headers=drop), 422, "UnprocessableEntityException")
    error(served.ask("DELETE", f"{NS}/{ns}/tables/t", headers={"Idempotency-Key": "1"}), 400, "IllegalArgumentException")


def test_one_of_many_equal_requests_runs(served, ns):
    key = {"Idempotency-Key": str(uuid.uuid4())}
    body = {"name": "t", "schema": SCHEMA}
    answers = []
    workers = [threading.Thread(target=lambda: answers.append(served.ask("POST", f"{NS}/{ns}/tables", body, key)))
               for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [a[0] for a in answers] == [200] * 8
    assert len({a[2]["metadata"]["table-uuid"] for a in answers}) == 1


# ---- planning ----


def test_a_scan_is_planned_on_the_server(program, knut, tmp_path):
    place = ("--warehouse", tmp_path / "w")
    knut("table", "create", *place, "--table", "ns.t", "--schema", "id long, name string", "--partition", "truncate(1, name)").ok()
    for letter, first in (("a", 0), ("b", 100)):
        knut("table", "append", *place, "--table", "ns.t", "--sql",
             f"SELECT range AS id, '{letter}' || range AS name FROM range({first}, {first + 50})").ok()
    knut("table", "delete", *place, "--table", "ns.t", "--where", "id = 3", "--mode", "merge-on-read").ok()
    with Served(program, *place) as served:
        def plan(**body):
            return served.ask("POST", f"{NS}/ns/tables/t/plan", body)
        status, _, whole = plan(**{"stats-fields": ["id"]})
        assert status == 200 and whole["status"] == "completed" and whole["plan-tasks"] == []
        assert len(whole["file-scan-tasks"]) == 2 and len(whole["delete-files"]) == 1
        with_deletes = [t for t in whole["file-scan-tasks"] if "delete-file-references" in t]
        assert len(with_deletes) == 1 and with_deletes[0]["data-file"]["partition"] == ["a"]
        assert with_deletes[0]["data-file"]["value-counts"] == {"keys": [1], "values": [50]}
        eq = {"type": "eq", "term": "id", "value": 120}
        _, _, one = plan(filter=eq)
        assert [t["data-file"]["partition"] for t in one["file-scan-tasks"]] == [["b"]]
        _, _, none = plan(filter={"type": "and", "left": eq, "right": {"type": "eq", "term": "id", "value": 1}})
        assert none["file-scan-tasks"] == []
        plan_path = f"{NS}/ns/tables/t/plan/{whole['plan-id']}"
        assert len(served.ask("GET", plan_path)[2]["file-scan-tasks"]) == 2
        assert served.ask("DELETE", plan_path)[0] == 204
        error(served.ask("GET", plan_path), 404, "NoSuchPlanIdException")
        error(served.ask("POST", f"{NS}/ns/tables/t/tasks", {"plan-task": "x.1"}), 404, "NoSuchPlanTaskException")
        error(plan(filter={"type": "eq", "term": "none", "value": 1}), 400, "IllegalArgumentException", "none")
        error(plan(**{"snapshot-id": 5}), 400, "IllegalArgumentException")
        error(plan(**{"start-snapshot-id": 5}), 400, "IllegalArgumentException")
        snapshots = served.ask("GET", f"{NS}/ns/tables/t")[2]["metadata"]["snapshots"]
        _, _, added = plan(**{"start-snapshot-id": snapshots[0]["snapshot-id"], "end-snapshot-id": snapshots[1]["snapshot-id"]})
        assert [t["data-file"]["partition"] for t in added["file-scan-tasks"]] == [["b"]]


# ---- purge ----


def test_purging_removes_the_files_and_dropping_does_not(program, knut, tmp_path):
    place = ("--warehouse", tmp_path / "w")
    for name in ("a", "b"):
        knut("table", "create", *place, "--table", f"ns.{name}", "--schema", "id long").ok()
        knut("table", "append", *place, "--table", f"ns.{name}", "--sql", "SELECT 1::BIGINT AS id").ok()
    with Served(program, *place) as served:
        assert served.ask("DELETE", f"{NS}/ns/tables/a?purgeRequested=true")[0] == 204
        assert served.ask("DELETE", f"{NS}/ns/tables/b?purgeRequested=false")[0] == 204
    left = [p.parts[-3] for p in (tmp_path / "w").rglob("*.parquet")]
    assert left == ["b"]


def test_a_document_of_another_kind_is_not_registered(served, ns):
    _, table = create(served, ns)
    view = {"name": "v", "schema": SCHEMA, "properties": {}, "view-version": {
        "version-id": 1, "timestamp-ms": 1, "schema-id": 0, "summary": {}, "default-namespace": [ns],
        "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}]}}
    status, _, made = served.ask("POST", f"{NS}/{ns}/views", view)
    assert status == 200, made
    wrong = {"name": "other", "metadata-location": made["metadata-location"]}
    error(served.ask("POST", f"{NS}/{ns}/register", wrong), 400, "IllegalArgumentException", "last-column-id")
    wrong["metadata-location"] = table["metadata-location"]
    error(served.ask("POST", f"{NS}/{ns}/register-view", wrong), 406, "UnsupportedOperationException", "format version")

# SPDX-License-Identifier: Apache-2.0
"""Bad input to a served catalog: an answer in the error model, never a crash, and the next request is answered."""
import json
import random
import socket
from urllib.parse import urlsplit

import pytest

from lib.serve import Served

NS = "/v1/namespaces"
JSON = {"Content-Type": "application/json"}
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}]}


@pytest.fixture(scope="module")
def served(program, tmp_path_factory):
    with Served(program, "--warehouse", tmp_path_factory.mktemp("bad") / "w", "--max-body", "1MiB") as server:
        assert server.ask("POST", NS, {"namespace": ["ns"]})[0] == 200
        assert server.ask("POST", f"{NS}/ns/tables", {"name": "t", "schema": SCHEMA})[0] == 200
        yield server
        assert server.process.poll() is None
        assert server.stop() == 0


def refused(answer, *allowed):
    status, headers, body = answer
    assert status in allowed, answer
    assert headers["Content-Type"] == "application/json"
    assert body["error"]["code"] == status and body["error"]["type"] and body["error"]["message"]
    assert "/src/" not in body["error"]["message"] and ".c:" not in body["error"]["message"]


@pytest.mark.parametrize("body", [
    b"", b"{", b"[]", b"null", b"1", b'"x"', b"\xff\xfe", b'{"a":1,"a":2}', b'{"name":"\\ud800"}', b"{} {}",
    b'{"name":"a\\u0000b"}', b"[" * 100000, b'{"a":' * 50000, b'{"n":1e999}', b'{"n":99999999999999999999}',
    b"\x00" * 100, b'{"namespace":"x"}', b'{"namespace":[]}', b'{"namespace":[1]}', b'{"namespace":[""]}',
    b'{"namespace":["x"],"properties":{"a":1}}', b'{"namespace":["x"],"properties":[]}',
])
def test_bodies_that_are_not_what_they_should_be(served, body):
    for path in (NS, f"{NS}/ns/tables", f"{NS}/ns/tables/t", "/v1/transactions/commit", f"{NS}/ns/views",
                 f"{NS}/ns/register", "/v1/tables/rename", f"{NS}/ns/tables/t/metrics"):
        refused(served.ask("POST", path, body, JSON), 400)


@pytest.mark.parametrize("path", ["/%", "/v1/%zz", "/v1/namespaces/%ff", "/v1/namespaces/a%00b", "/v1/namespaces/a%1F",
                                  "/v1/namespaces/%1F", "/v1/namespaces/a%1F%1Fb", "/v1/namespaces//tables",
                                  "/v1/namespaces?parent=%1F", "/" + "a/" * 100, "/v1/namespaces/" + "a%1F" * 100 + "a"])
def test_paths_that_are_not_paths(served, path):
    refused(served.ask("GET", path), 400, 404)


def test_a_body_may_not_be_larger_than_the_limit(served):
    refused(served.ask("POST", NS, b" " * (1 << 20) + b"{}", JSON), 413)
    import gzip
    bomb = gzip.compress(b" " * (64 << 20))
    refused(served.ask("POST", NS, bomb, {**JSON, "Content-Encoding": "gzip"}), 413)
    refused(served.ask("POST", NS, b"not gzip", {**JSON, "Content-Encoding": "gzip"}), 400)
    refused(served.ask("POST", NS, b"{}", {**JSON, "Content-Encoding": "br"}), 415)


def speak(served, data):
    """Raw bytes, and what is answered; b"" when the server waits for more, or hangs up."""
    place = urlsplit(served.uri)
    try:
        with socket.create_connection((place.hostname, place.port), timeout=60) as conn:
            conn.sendall(data)
            conn.settimeout(0.3)
            return conn.recv(65536)
    except OSError:
        return b""


@pytest.mark.parametrize("data", [
    b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00", b"GET / HTTP/1.1\r\n\r\n",
    b"POST /v1/namespaces HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
    b"POST /v1/namespaces HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n{}",
    b"POST /v1/namespaces HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"POST /v1/namespaces HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{",
    b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 20000 + b"\r\n",
])
def test_bytes_that_are_no_request(served, data):
    said = speak(served, data)
    assert not said or said.split(b" ")[1] in (b"400", b"404", b"405", b"413", b"414", b"431", b"505"), said[:200]
    assert served.ask("GET", "/health")[0] == 200


def test_random_updates_never_end_the_server(served):
    """Values of every kind where updates, requirements and schemas have theirs."""
    seed = random.randrange(1 << 32)
    print("seed", seed)
    rng = random.Random(seed)
    actions = ["assign-uuid", "upgrade-format-version", "add-schema", "set-current-schema", "add-spec",
               "set-default-spec", "add-sort-order", "set-default-sort-order", "add-snapshot", "set-snapshot-ref",
               "remove-snapshots", "remove-snapshot-ref", "set-location", "set-properties", "remove-properties",
               "set-statistics", "remove-statistics", "set-partition-statistics", "remove-partition-statistics",
               "remove-partition-specs", "remove-schemas", "add-encryption-key", "remove-encryption-key", "x"]
    kinds = ["assert-create", "assert-table-uuid", "assert-ref-snapshot-id", "assert-last-assigned-field-id",
             "assert-current-schema-id", "assert-last-assigned-partition-id", "assert-default-spec-id",
             "assert-default-sort-order-id", "y"]
    keys = ["uuid", "format-version", "schema", "last-column-id", "schema-id", "spec", "spec-id", "sort-order",
            "sort-order-id", "snapshot", "ref-name", "type", "snapshot-id", "snapshot-ids", "location", "updates",
            "removals", "statistics", "spec-ids", "schema-ids", "key-id", "encryption-key", "ref", "fields"]

    def value(depth=0):
        pick = rng.randrange(9 if depth < 3 else 6)
        if pick < 6:
            return [None, True, rng.choice([0, -1, 1, 1 << 62, -(1 << 62), 3]), 1.5, rng.choice(
                ["", "main", "x" * 300, "file:///etc", "\u0000", "é"]), rng.randrange(100)][pick]
        if pick == 6:
            return [value(depth + 1) for _ in range(rng.randrange(3))]
        return {rng.choice(keys): value(depth + 1) for _ in range(rng.randrange(5))}

    conn = served.connect()
    for _ in range(400):
        body = {"requirements": [{"type": rng.choice(kinds), **{rng.choice(keys): value() for _ in range(2)}}
                                 for _ in range(rng.randrange(2))],
                "updates": [{"action": rng.choice(actions), **{rng.choice(keys): value() for _ in range(4)}}
                            for _ in range(rng.randrange(1, 3))]}
        status, _, answer = served.ask("POST", f"{NS}/ns/tables/t", body, connection=conn)
        assert status in (200, 400, 403, 404, 406, 409, 422), (seed, json.dumps(body), answer)
        assert served.ask("GET", f"{NS}/ns/tables/t", connection=conn)[0] == 200

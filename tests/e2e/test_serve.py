# SPDX-License-Identifier: Apache-2.0
"""A served catalog as an operator sees it: flags, start, probes, shutdown, what other commands see."""
import json
import signal
import threading

import pytest

from lib.serve import Served

SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}]}


@pytest.fixture
def served(program, tmp_path):
    with Served(program, "--warehouse", tmp_path / "warehouse") as server:
        yield server


def make_table(served, name="t", namespace="ns"):
    status, _, _ = served.ask("POST", "/v1/namespaces", {"namespace": [namespace]})
    assert status in (200, 409)
    status, _, table = served.ask("POST", f"/v1/namespaces/{namespace}/tables", {"name": name, "schema": SCHEMA})
    assert status == 200, table
    return table


# ---- flags ----


@pytest.mark.parametrize("flags,pattern", [
    (["--warehouse", "w"], "--rest ADDR"),
    (["--rest", "0"], "--warehouse DIR"),
    (["--rest", "0", "--warehouse-uri", "s3://b/p", "--db", "x.db"], "needs --s3-bucket"),
    (["--rest", "0", "--warehouse-uri", "s3://b/p", "--s3-bucket", "b"], "needs --db"),
    (["--rest", "0", "--warehouse-uri", "s3://b/p", "--s3-bucket", "c", "--db", "x.db"], "not the bucket"),
    (["--rest", "0", "--warehouse", "w", "--s3-bucket", "b"], "needs --warehouse-uri"),
    (["--rest", "0", "--warehouse", "w", "--s3-endpoint", "http://h"], "--s3-endpoint needs --s3-bucket"),
    (["--rest", "0", "--warehouse", "w", "--s3-region", "r"], "--s3-region needs --s3-bucket"),
    (["--rest", "0", "--warehouse", "w", "--s3-virtual-hosted"], "--s3-virtual-hosted needs --s3-bucket"),
    (["--rest", "0", "--warehouse", "w", "--sts-endpoint", "http://h"], "--sts-endpoint goes with an s3://"),
    (["--rest", "0", "--warehouse", "w", "--remote-signing"], "--remote-signing goes with an s3://"),
    (["--rest", "0", "--warehouse-uri", "s3://b/p", "--s3-bucket", "b", "--db", "x.db", "--sts-role-arn", "r",
      "--sts-duration", "60"], "expected 900 to 43200"),
    (["--rest", "0", "--warehouse-uri", "file:///w", "--db", "x.db", "--s3-bucket", "b"], "s3:// warehouse"),
    (["--rest", "0", "--warehouse-uri", "gs://b/p", "--db", "x.db"], "expected s3://"),
    (["--rest", "0", "--warehouse", "w", "--tls-cert", "c"], "--tls-cert and --tls-key"),
    (["--rest", "0", "--warehouse", "w", "--tls-client-ca", "c"], "needs --tls-cert"),
    (["--rest", "host:port", "--warehouse", "w"], "expected HOST:PORT"),
    (["--rest", "0", "--warehouse", "w", "--tokens", "none.txt"], "none.txt"),
])
def test_flags_that_do_not_go_together_are_refused_in_one_line(knut, tmp_path, flags, pattern):
    knut("catalog", "serve", *flags, cwd=tmp_path).fails((1, 2), pattern)
    assert not (tmp_path / "x.db").exists()


def test_a_port_in_use_is_named(knut, served, tmp_path):
    address = served.uri.removeprefix("http://")
    knut("catalog", "serve", "--warehouse", tmp_path / "other", "--rest", address).fails(1, address, "Address already in use")


def test_tokens_are_made_with_their_line(knut):
    row = knut.json("catalog", "token", "etl", "write:sales", "read:*").ok().row
    assert row["token"].startswith("knut_") and row["token"] not in row["line"]
    assert row["line"].startswith("etl sha256:") and row["line"].endswith(" write:sales read:*")
    knut("catalog", "token").fails(2, "name")
    knut("catalog", "token", "etl", "own:x").fails(2, "no grant")


# ---- running ----


def test_the_port_file_is_there_when_the_server_answers(program, tmp_path):
    with Served(program, "--warehouse", tmp_path / "w", "--port-file", tmp_path / "port",
                fronts=("--rest", "127.0.0.1:0", "--grpc", "127.0.0.1:0")) as server:
        lines = dict(line.split() for line in (tmp_path / "port").read_text().splitlines())
        assert server.urls == {name: f"http://127.0.0.1:{port}" for name, port in lines.items()}
        assert server.ask("GET", "/health")[0] == 200


def test_probes_and_metrics(served):
    assert served.ask("GET", "/health")[2] == {"status": "ok"}
    assert served.ask("GET", "/ready")[2] == {"status": "ready"}
    assert served.ask("GET", "/v1/namespaces/none/tables/t")[0] == 404
    status, headers, text = served.ask("GET", "/metrics")
    assert status == 200 and headers["Content-Type"].startswith("text/plain")
    assert b'knut_catalog_requests_total{front="rest",operation="loadTable",status="4xx"} 1' in text


def test_commands_and_the_server_see_the_same_tables(knut, served, tmp_path):
    place = ("--warehouse", tmp_path / "warehouse")
    make_table(served)
    knut("table", "append", *place, "--table", "ns.t", "--sql", "SELECT 1::BIGINT AS id").ok()
    knut("table", "create", *place, "--table", "ns.u", "--schema", "id long").ok()
    _, _, table = served.ask("GET", "/v1/namespaces/ns/tables/t")
    assert len(table["metadata"]["snapshots"]) == 1
    _, _, listed = served.ask("GET", "/v1/namespaces/ns/tables")
    assert [t["name"] for t in listed["identifiers"]] == ["t", "u"]
    served.ask("DELETE", "/v1/namespaces/ns/tables/u")
    assert [row["table"] for row in knut.json("table", "list", *place).ok().rows] == ["ns.t"]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_and_what_was_acknowledged_stays(program, tmp_path, how):
    with Served(program, "--warehouse", tmp_path / "w") as server:
        make_table(server)
        assert server.stop(how) == 0
    with Served(program, "--warehouse", tmp_path / "w") as server:
        assert server.ask("HEAD", "/v1/namespaces/ns/tables/t")[0] == 204


def test_requests_in_flight_are_finished(program, tmp_path):
    """A commit whose body is half sent when the signal comes is answered, its connection then closed."""
    with Served(program, "--warehouse", tmp_path / "w") as server:
        make_table(server)
        body = json.dumps({"requirements": [], "updates": [
            {"action": "set-properties", "updates": {"k": "v"}}]}).encode()
        conn = server.connect()
        conn.putrequest("POST", "/v1/namespaces/ns/tables/t")
        conn.putheader("Content-Type", "application/json")
        conn.putheader("Content-Length", str(len(body)))
        conn.endheaders(body[:10])
        while server.ask("GET", "/metrics")[2].find(b'in_flight{front="rest"} 2') < 0:
            pass  # until the first part has arrived
        server.process.send_signal(signal.SIGTERM)
        conn.send(body[10:])
        answer = conn.getresponse()
        assert answer.status == 200 and json.loads(answer.read())["metadata"]["properties"]["k"] == "v"
        assert server.stop() == 0


def test_a_killed_server_loses_nothing_that_it_acknowledged(program, tmp_path):
    acknowledged = []
    with Served(program, "--warehouse", tmp_path / "w") as server:
        make_table(server)
        conn = server.connect()
        enough = threading.Event()

        def commit():
            for i in range(10000):
                try:
                    status, _, _ = server.ask("POST", "/v1/namespaces/ns/tables/t", {
                        "requirements": [], "updates": [
                            {"action": "set-properties", "updates": {f"k{i}": "v"}}]}, connection=conn)
                except OSError:
                    return
                except Exception:  # the connection ended within an answer
                    return
                if status == 200:
                    acknowledged.append(f"k{i}")
                if len(acknowledged) == 30:
                    enough.set()
        writer = threading.Thread(target=commit)
        writer.start()
        assert enough.wait(60)
        server.process.kill()
        writer.join()
    with Served(program, "--warehouse", tmp_path / "w") as server:
        _, _, table = server.ask("GET", "/v1/namespaces/ns/tables/t")
        assert set(acknowledged) <= set(table["metadata"]["properties"])


def test_an_idle_server_is_small(served):
    served.ask("GET", "/v1/config")
    with open(f"/proc/{served.process.pid}/status") as status:
        kib = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
    assert kib < 32 * 1024


def test_the_environment_alone_gives_credentials(knut):
    text = knut("catalog", "serve", "--help").ok().out
    for word in ("secret", "access-key", "password"):
        assert f"--s3-{word}" not in text and f"--{word}" not in text



def test_an_audit_log_that_cannot_be_written_stops_the_start(knut, tmp_path):
    knut("catalog", "serve", "--warehouse", tmp_path / "w", "--rest", "0", "--audit-log",
         tmp_path / "none" / "log").fails(1, "audit log")

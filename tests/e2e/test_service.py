# SPDX-License-Identifier: Apache-2.0
"""What a running service says of itself: probes, metrics, log, lineage, systemd."""
import http.client
import json
import re
import signal
import socket
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from lib.many import LIMIT, Many


@pytest.fixture
def many(knut, tmp_path):
    return Many(knut, tmp_path)


@pytest.fixture
def two(many):
    for name in "ab":
        many.table(name)
    return many.write("ab", listen="127.0.0.1:0")


class Front:
    """HTTP of a running service."""

    def __init__(self, running):
        self.address = running.event("listening")["address"]

    def get(self, path, method="GET"):
        host, _, port = self.address.rpartition(":")
        conn = http.client.HTTPConnection(host, int(port), timeout=LIMIT)
        conn.request(method, path)
        answer = conn.getresponse()
        body = answer.read().decode()
        conn.close()
        return answer.status, json.loads(body) if answer.getheader("Content-Type") == "application/json" else body

    def metrics(self):
        """{(name, labels): value}; every sample has a TYPE before it."""
        status, text = self.get("/metrics")
        assert status == 200
        samples, typed = {}, set()
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                typed.add(line.split()[2])
            elif not line.startswith("#"):
                name, labels, value = re.fullmatch(r'(\w+)(?:\{(.*)\})? (\S+)', line).groups()
                assert name in typed, line
                samples[name, labels or ""] = float(value)
        return samples


def labels(name, sink="duckdb", **more):
    return ",".join(f'{k}="{v}"' for k, v in {"delivery": f"ns.{name}", "sink": sink, **more}.items())


@pytest.fixture
def listener():
    """An HTTP server that keeps what is posted: (path, headers, body)."""
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with server.changed:
                server.posted.append((self.path, dict(self.headers), json.loads(body)))
                server.changed.notify_all()
            self.send_response(server.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.posted, server.status, server.changed = [], 201, threading.Condition()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_probes_and_metrics_of_a_service(two):
    with two.start() as running:
        front = Front(running)
        running.delivered("a")
        running.delivered("b")
        two.append("b", 5, 100)
        running.delivered("b")
        assert front.get("/health") == (200, {"status": "ok"})
        assert front.get("/ready") == (200, {"waiting_for": [], "ready": True})
        samples = front.metrics()
        assert samples["knut_delivery_windows_total", labels("b")] == 2
        assert samples["knut_delivery_rows_total", labels("b", op="upsert")] == 15
        assert samples["knut_delivery_rows_total", labels("a", op="delete")] == 0
        assert samples["knut_delivery_chunks_total", labels("a", verdict="loaded")] == 1
        assert samples["knut_delivery_bytes_total", labels("a")] > 0
        phases = {m[1]: v for m, v in samples.items() if m[0] == "knut_delivery_phase_microseconds_total"}
        assert all(phases[labels("a", phase=p)] > 0 for p in ("plan", "begin", "read", "load", "record"))
        assert phases[labels("a", phase="encode")] == 0  # DuckDB takes batches as they are
        assert samples["knut_delivery_ready", labels("a")] == 1
        for path, method, status in ("/", "GET", 404), ("/healthz", "GET", 404), ("/metrics", "POST", 405):
            got, body = front.get(path, method)
            assert got == status and body["error"]
        status, body = front.get("/status")
        assert [d["delivery"] for d in body["deliveries"]] == ["ns.a", "ns.b"]
        assert body["deliveries"][0]["functional_status"] == {
            "component": "knut-cdc", "check": "ns.a", "ok": True, "detail": ""}
        assert running.stop(signal.SIGTERM) == 0


def test_a_service_is_ready_when_every_probe_has_passed(two):
    """A table that is not there yet holds readiness back, and its own delivery only."""
    two.write(["a", {"table": "ns.later"}], listen="127.0.0.1:0")
    with two.start() as running:
        front = Front(running)
        running.delivered("a")
        failed = running.event("functional-status", check="ns.later")
        assert failed["ok"] == "false" and "does not exist" in failed["detail"]
        status, body = front.get("/ready")
        assert status == 503 and [w["delivery"] for w in body["waiting_for"]] == ["ns.later"]
        assert "does not exist" in body["waiting_for"][0]["message"]
        assert front.get("/health")[0] == 200
        two.table("later")
        running.delivered("later")
        assert front.get("/ready")[0] == 200


def test_a_refused_window_is_a_refusal_in_all_that_is_said(two):
    two.once().ok()
    two.tables["b"].delete("id < 3")
    two.write(["a", {"table": "ns.b", "max-rewrite-bytes": 1}], listen="127.0.0.1:0")
    with two.start() as running:
        front = Front(running)
        told = running.event("delivery-refused", delivery="ns.b")
        assert "max-rewrite-bytes" in told["error"]
        running.event("functional-status", check="ns.b", ok="false")
        samples = front.metrics()
        assert samples["knut_delivery_refusals_total", labels("b")] >= 1
        assert samples["knut_delivery_ok", labels("b")] == 0
        assert samples["knut_delivery_lag_snapshots", labels("b")] == 1
        status = front.get("/status")[1]["deliveries"][1]
        assert status["status"] == "refused" and status["behind"] == 1 and not status["functional_status"]["ok"]


def test_an_address_that_cannot_be_had_is_told(two):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        two("run", "--listen", f"127.0.0.1:{taken.getsockname()[1]}").fails(1, "listen")
    two("run", "--listen", "nonsense:x").fails(2, "listen")
    two.knut("cdc", "run", "--listen", "1", "--root", "x", "--sink", "null:").fails(2, "--listen goes with --config")


# ---- events for others ----


def events_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def check_event(event):
    """What OpenLineage 2-0-2 asks of a RunEvent."""
    assert set(event) == {"eventType", "eventTime", "producer", "schemaURL", "run", "job", "inputs", "outputs"}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", event["eventTime"])
    assert event["schemaURL"].startswith("https://openlineage.io/spec/2-0-2/")
    uuid.UUID(event["run"]["runId"])
    for place in (event["job"], *event["inputs"], *event["outputs"]):
        assert place["namespace"] and place["name"]


def test_each_window_is_a_run_of_openlineage(two, tmp_path):
    two.write("ab", lineage="file:lineage.jsonl", lineage_namespace="tests")
    two.once().ok()
    two.append("a", 5, 100)
    done = two.once(env={"KNUT_FAULT": "sink-before-commit:1:fail"})
    assert done.rc == 1
    two.once().ok()
    events = events_of(tmp_path / "lineage.jsonl")
    for event in events:
        check_event(event)
    mine = [e for e in events if e["job"]["name"] == "ns.a"]
    assert [e["eventType"] for e in mine] == ["START", "COMPLETE", "START", "FAIL", "START", "COMPLETE"]
    runs = [e["run"]["runId"] for e in mine]
    assert runs[0::2] == runs[1::2] and len(set(runs)) == 3
    assert {e["job"]["namespace"] for e in mine} == {"tests"}
    done = mine[1]
    assert done["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] == 10
    assert done["outputs"][0]["name"] == "main.a" and done["inputs"][0]["name"] == "ns.a"
    assert "told to fail" in mine[3]["run"]["facets"]["errorMessage"]["message"]
    two.check()


def test_events_go_to_http_with_their_tokens(two, listener):
    at = f"http://127.0.0.1:{listener.server_address[1]}"
    two.write("ab", lineage=f"{at}/api/v1/lineage", airflow=at, airflow_prefix="lake://")
    two.once(env={"OPENLINEAGE_API_KEY": "key-l", "KNUT_AIRFLOW_TOKEN": "key-a"}).ok()
    by_path = {}
    for path, headers, body in listener.posted:
        by_path.setdefault(path, []).append((headers, body))
    lineage, assets = by_path["/api/v1/lineage"], by_path["/api/v2/assets/events"]
    assert sorted(b["eventType"] for _, b in lineage) == ["COMPLETE", "COMPLETE", "START", "START"]
    assert {h["Authorization"] for h, _ in lineage} == {"Bearer key-l"}
    assert {h["Authorization"] for h, _ in assets} == {"Bearer key-a"}
    assert sorted(b["asset_uri"] for _, b in assets) == ["lake://ns.a", "lake://ns.b"]
    extra = assets[0][1]["extra"]
    assert extra["rows"] == 10 and extra["windows"] == 1 and extra["table"].startswith("ns.")


def test_a_listener_that_fails_stops_no_delivery(two, listener):
    listener.status = 500
    at = f"http://127.0.0.1:{listener.server_address[1]}"
    two.write("ab", lineage=f"{at}/x", airflow=at)
    done = two.once().ok()
    assert "event-lost" in done.err and "answered 500" in done.err
    two.check()


def test_a_place_for_events_that_makes_no_sense_is_told(two):
    two.write("ab", lineage="nonsense").once().fails(2, "lineage")
    two.write("ab", lineage="file:no/such/folder/x").once().fails(1, "lineage")


# ---- systemd ----


def test_systemd_hears_of_start_reload_watchdog_and_stop(two, tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
        notified.bind(str(tmp_path / "n"))
        notified.settimeout(LIMIT)

        def hear(wanted):
            for _ in range(10000):
                lines = notified.recv(4096).decode().splitlines()
                if wanted in lines:
                    return lines
            raise AssertionError(wanted)

        with two.start(env={"NOTIFY_SOCKET": tmp_path / "n", "WATCHDOG_USEC": "100000"}) as running:
            assert any(line.startswith("STATUS=2 of 2") for line in hear("READY=1"))
            hear("WATCHDOG=1")
            running.signal(signal.SIGHUP)
            assert any(line.startswith("MONOTONIC_USEC=") for line in hear("RELOADING=1"))
            hear("READY=1")
            running.signal(signal.SIGTERM)
            hear("STOPPING=1")
            assert running.process.wait(LIMIT) == 0

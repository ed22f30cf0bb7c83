# SPDX-License-Identifier: Apache-2.0
"""A catalog served over gRPC, as Google's client sees it: every method, health, the stream of commits, tokens, TLS,
bytes that are no HTTP/2; and knut itself as a client of it."""
import hashlib
import json
import queue
import signal
import socket
import subprocess
import sys
import threading

import grpc
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool

from lib.proto import FOLDER, Proto, code_of, parse
from lib.serve import Served

CATALOG, COMMITS, HEALTH = Proto("skade_katalog.proto"), Proto("knut_catalog.proto"), Proto("health.proto")
BOTH = ("--rest", "127.0.0.1:0", "--grpc", "127.0.0.1:0")
GRPC = ("--grpc", "127.0.0.1:0")
LARGE = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
SCHEMA = json.dumps({"type": "struct", "schema-id": 0, "fields": [
    {"id": 1, "name": "id", "required": True, "type": "long"}, {"id": 2, "name": "name", "required": False, "type": "string"}]})


@pytest.fixture
def served(program, tmp_path):
    with Served(program, "--warehouse", tmp_path / "warehouse", fronts=BOTH) as server:
        yield server


def target(served):
    return served.urls["grpc"].split("://")[1]


@pytest.fixture
def channel(served):
    with grpc.insecure_channel(target(served), options=LARGE) as channel:
        yield channel


def ask(channel, method, message=None, **options):
    return CATALOG.call(channel, "Catalog", method, message, **options)


def make_table(channel, name="t", namespace=("ns",), **options):
    try:
        ask(channel, "CreateNamespace", CATALOG.CreateNamespaceReq(levels=namespace), **options)
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.ALREADY_EXISTS
    return ask(channel, "CreateTable", CATALOG.CreateTableReq(namespace=namespace, name=name, schema_json=SCHEMA), **options)


def set_property(channel, key, value, name="t", requirements=(), **options):
    update = {"action": "set-properties", "updates": {key: value}}
    return ask(channel, "CommitTable", CATALOG.CommitTableReq(
        namespace=["ns"], name=name, requirements_json=[json.dumps(r) for r in requirements],
        updates_json=[json.dumps(update)]), **options)


def ident(name="t", namespace=("ns",)):
    return CATALOG.TableIdentMsg(namespace=namespace, name=name)


# ---- the catalog ----


def test_every_method_of_the_catalog(served, channel):
    assert ask(channel, "Config") == CATALOG.ConfigResponse()
    ns = ask(channel, "CreateNamespace", CATALOG.CreateNamespaceReq(levels=["a", "b.c ü"], properties={"owner": "Zoë"}))
    assert list(ns.levels) == ["a", "b.c ü"] and dict(ns.properties) == {"owner": "Zoë"}
    where = CATALOG.NamespaceIdentMsg(levels=["a", "b.c ü"])
    assert ask(channel, "NamespaceExists", where).exists
    assert not ask(channel, "NamespaceExists", CATALOG.NamespaceIdentMsg(levels=["a", "b"])).exists
    assert dict(ask(channel, "GetNamespace", where).properties)["owner"] == "Zoë"
    listed = ask(channel, "ListNamespaces", CATALOG.ListNamespacesRequest(parent=["a"]))
    assert [list(n.levels) for n in listed.namespaces] == [["a", "b.c ü"]]
    created = make_table(channel, "t", ("a", "b.c ü"))
    metadata = json.loads(created.metadata_json)
    assert metadata["format-version"] == 2 and [f["name"] for f in metadata["schemas"][0]["fields"]] == ["id", "name"]
    table = ident("t", ("a", "b.c ü"))
    assert ask(channel, "LoadTable", table) == created
    assert ask(channel, "TableExists", table).exists
    assert [t.name for t in ask(channel, "ListTables", where).tables] == ["t"]
    uuid = {"type": "assert-table-uuid", "uuid": metadata["table-uuid"]}
    update = {"action": "set-properties", "updates": {"k": "v"}}
    done = ask(channel, "CommitTable", CATALOG.CommitTableReq(
        namespace=["a", "b.c ü"], name="t", requirements_json=[json.dumps(uuid)], updates_json=[json.dumps(update)]))
    assert json.loads(done.metadata_json)["properties"]["k"] == "v"
    assert ask(channel, "LoadTable", table).metadata_location == done.metadata_location != created.metadata_location
    ask(channel, "DropTable", table)
    assert not ask(channel, "TableExists", table).exists


def test_failures_have_their_statuses(channel):
    make_table(channel)
    stale = [{"type": "assert-table-uuid", "uuid": "00000000-0000-0000-0000-000000000000"}]
    code = grpc.StatusCode
    cases = [
        (code.NOT_FOUND, lambda: ask(channel, "LoadTable", ident("none"))),
        (code.NOT_FOUND, lambda: ask(channel, "LoadTable", ident("t", ("none",)))),
        (code.NOT_FOUND, lambda: ask(channel, "ListTables", CATALOG.NamespaceIdentMsg(levels=["none"]))),
        (code.NOT_FOUND, lambda: ask(channel, "GetNamespace", CATALOG.NamespaceIdentMsg(levels=["none"]))),
        (code.NOT_FOUND, lambda: ask(channel, "DropTable", ident("none"))),
        (code.NOT_FOUND, lambda: set_property(channel, "k", "v", "none")),
        (code.NOT_FOUND, lambda: ask(channel, "CreateTable", CATALOG.CreateTableReq(
            namespace=["none"], name="t", schema_json=SCHEMA))),
        (code.ALREADY_EXISTS, lambda: ask(channel, "CreateTable", CATALOG.CreateTableReq(
            namespace=["ns"], name="t", schema_json=SCHEMA))),
        (code.ALREADY_EXISTS, lambda: ask(channel, "CreateNamespace", CATALOG.CreateNamespaceReq(levels=["ns"]))),
        (code.ABORTED, lambda: set_property(channel, "k", "v", requirements=stale)),
        (code.INVALID_ARGUMENT, lambda: set_property(channel, "k", "v", requirements=[{"type": "assert-luck"}])),
        (code.INVALID_ARGUMENT, lambda: ask(channel, "LoadTable", ident("", ("ns",)))),
        (code.INVALID_ARGUMENT, lambda: ask(channel, "CreateTable", CATALOG.CreateTableReq(
            namespace=["ns"], name="u", schema_json="{"))),
        (code.PERMISSION_DENIED, lambda: ask(channel, "CreateTable", CATALOG.CreateTableReq(
            namespace=["ns"], name="u", schema_json=SCHEMA, location="file:///tmp/elsewhere"))),
        (code.UNIMPLEMENTED, lambda: channel.unary_unary("/skade.katalog.v1.Catalog/RenameTable")(b"")),
        (code.UNIMPLEMENTED, lambda: ask(channel, "LoadTable", ident(), compression=grpc.Compression.Gzip)),
    ]
    for number, (wanted, call) in enumerate(cases):
        assert code_of(call) == wanted, number


def test_a_table_is_the_same_over_both_fronts(served, channel):
    created = make_table(channel)
    status, _, loaded = served.ask("GET", "/v1/namespaces/ns/tables/t")
    assert status == 200 and loaded["metadata-location"] == created.metadata_location
    assert loaded["metadata"] == json.loads(created.metadata_json)


def test_documents_larger_than_every_window_and_default_limit(channel):
    make_table(channel)
    value = "x" * 5_000_000
    done = set_property(channel, "large", value)
    assert json.loads(done.metadata_json)["properties"]["large"] == value
    assert ask(channel, "LoadTable", ident()).metadata_json == done.metadata_json
    assert code_of(lambda: set_property(channel, "larger", "x" * 17_000_000)) == grpc.StatusCode.RESOURCE_EXHAUSTED


def test_commits_that_race_are_all_there_once(served, channel):
    make_table(channel)

    def commit(number):
        with grpc.insecure_channel(target(served)) as own:
            for i in range(5):
                set_property(own, f"w{number}-{i}", "done")

    threads = [threading.Thread(target=commit, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    metadata = json.loads(ask(channel, "LoadTable", ident()).metadata_json)
    assert sum(value == "done" for value in metadata["properties"].values()) == 40


# ---- health and the stream of commits ----


def test_health(channel):
    assert HEALTH.call(channel, "Health", "Check").status == 1
    named = HEALTH.HealthCheckRequest(service="skade.katalog.v1.Catalog")
    assert HEALTH.call(channel, "Health", "Check", named).status == 1
    other = HEALTH.HealthCheckRequest(service="other")
    assert code_of(lambda: HEALTH.call(channel, "Health", "Check", other)) == grpc.StatusCode.NOT_FOUND
    assert next(HEALTH.call(channel, "Health", "Watch", other)).status == 3


def watch(channel, **fields):
    return COMMITS.call(channel, "Commits", "Watch", COMMITS.WatchRequest(**fields))


def test_a_reader_of_commits_goes_on_where_it_stopped(served, channel):
    make_table(channel)
    first = watch(channel)
    seen = [next(first)]
    assert (seen[0].sequence, seen[0].kind, seen[0].table.name) == (1, "create", "t")
    for i in range(3):
        set_property(channel, "k", str(i))
    seen += [next(first) for _ in range(3)]
    first.cancel()
    served.ask("DELETE", "/v1/namespaces/ns/tables/t")
    second = watch(channel, after=seen[-1].sequence)
    last = next(second)
    assert (last.sequence, last.kind, last.metadata_location) == (5, "drop", "")
    assert [commit.sequence for commit in seen] == [1, 2, 3, 4]
    assert COMMITS.call(channel, "Commits", "Last").sequence == 5
    second.cancel()


def test_a_signal_ends_streams_and_the_server(served, channel):
    make_table(channel)
    commits, health = watch(channel), HEALTH.call(channel, "Health", "Watch")
    next(commits)
    assert next(health).status == 1
    served.process.send_signal(signal.SIGTERM)
    assert [answer.status for answer in iter_to_end(health)] == [2]
    assert list(iter_to_end(commits)) == []
    assert commits.code() == health.code() == grpc.StatusCode.UNAVAILABLE
    assert served.process.wait(timeout=60) == 0


def iter_to_end(call):
    try:
        yield from call
    except grpc.RpcError:
        pass


# ---- who may do what ----


def bearer(token):
    return [("authorization", f"Bearer {token}")]


def test_tokens(program, tmp_path):
    lines = [("admin", "admin:*"), ("reader", "read:ns")]
    (tmp_path / "tokens").write_text("".join(
        f"{name} sha256:{hashlib.sha256(name.encode()).hexdigest()} {grant}\n" for name, grant in lines))
    with Served(program, "--warehouse", tmp_path / "w", "--tokens", tmp_path / "tokens", "--audit-log", tmp_path / "audit",
                fronts=GRPC) as served, grpc.insecure_channel(target(served)) as channel:
        code = grpc.StatusCode
        assert code_of(lambda: ask(channel, "Config")) == code.UNAUTHENTICATED
        assert code_of(lambda: ask(channel, "Config", metadata=bearer("guess"))) == code.UNAUTHENTICATED
        make_table(channel, metadata=bearer("admin"))
        make_table(channel, namespace=("secret",), metadata=bearer("admin"))
        assert ask(channel, "LoadTable", ident(), metadata=bearer("reader")).metadata_location
        assert code_of(lambda: set_property(channel, "k", "v", metadata=bearer("reader"))) == code.PERMISSION_DENIED
        assert code_of(lambda: ask(channel, "LoadTable", ident("t", ("secret",)), metadata=bearer("reader"))) == \
            code.PERMISSION_DENIED
        listed = ask(channel, "ListNamespaces", metadata=bearer("reader")).namespaces
        assert [list(n.levels) for n in listed] == [["ns"]]
        commits = COMMITS.call(channel, "Commits", "Watch", metadata=bearer("reader"))
        assert next(commits).table.namespace == ["ns"]
        set_property(channel, "k", "v", metadata=bearer("admin"))
        assert next(commits).sequence == 3  # 2 is a secret
        assert code_of(lambda: next(watch(channel))) == code.UNAUTHENTICATED
        assert HEALTH.call(channel, "Health", "Check").status == 1
    audit = [json.loads(line) for line in (tmp_path / "audit").read_text().splitlines()]
    assert {"front": "grpc", "operation": "updateTable", "principal": "admin"}.items() <= audit[-1].items() or \
        any(row.get("operation") == "updateTable" and row.get("principal") == "admin" for row in audit)
    assert any(row.get("principal") == "reader" and row["status"] == 7 for row in audit)


# ---- TLS ----


def openssl(*words, cwd):
    subprocess.run(["openssl", *words], cwd=cwd, check=True, capture_output=True, timeout=60)


def make_certificates(folder):
    """An authority, a server's certificate for localhost, a client's, and one of a stranger."""
    for name in ("ca", "stranger"):
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.pem", cwd=folder)
    (folder / "san").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    for name in ("server", "client"):
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}", "-keyout",
                f"{name}.key", "-out", f"{name}.csr", cwd=folder)
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
                "-extfile", "san", "-out", f"{name}.pem", cwd=folder)


def secure(served, folder, client=None):
    files = {"root_certificates": (folder / "ca.pem").read_bytes()}
    if client:
        files["private_key"] = (folder / f"{client}.key").read_bytes()
        files["certificate_chain"] = (folder / f"{client}.pem").read_bytes()
    return grpc.secure_channel(target(served), grpc.ssl_channel_credentials(**files))


def test_tls_with_and_without_certificates_of_clients(knut, program, tmp_path):
    make_certificates(tmp_path)
    tls = ["--tls-cert", tmp_path / "server.pem", "--tls-key", tmp_path / "server.key"]
    with Served(program, "--warehouse", tmp_path / "w", *tls, fronts=GRPC) as served:
        with secure(served, tmp_path) as channel:
            make_table(channel)
        with grpc.insecure_channel(target(served)) as channel:
            assert code_of(lambda: ask(channel, "Config", timeout=20)) == grpc.StatusCode.UNAVAILABLE
        url = served.urls["grpc"]
        assert url.startswith("https://")
        rows = knut.json("table", "list", "--grpc-uri", url, "--grpc-ca", tmp_path / "ca.pem").ok().rows
        assert [row["table"] for row in rows] == ["ns.t"]
        knut("table", "list", "--grpc-uri", url).fails(1, "certificate")
    with Served(program, "--warehouse", tmp_path / "w", *tls, "--tls-client-ca", tmp_path / "ca.pem", fronts=GRPC) as served:
        with secure(served, tmp_path, "client") as channel:
            assert ask(channel, "TableExists", ident()).exists
        for client in (None, "stranger"):
            with secure(served, tmp_path, client) as channel:
                assert code_of(lambda: ask(channel, "Config", timeout=20)) == grpc.StatusCode.UNAVAILABLE
        url = served.urls["grpc"]
        both = ["--grpc-ca", tmp_path / "ca.pem", "--grpc-cert", tmp_path / "client.pem", "--grpc-key", tmp_path / "client.key"]
        assert len(knut.json("table", "list", "--grpc-uri", url, *both).ok().rows) == 1


# ---- bytes of bad will ----


@pytest.mark.parametrize("sent", [
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 9,
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0" + b"\0\0\4\1\4\0\0\0\1\xff\xff\xff\xff",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0" + b"\0\0\5\0\1\0\0\0\0hello",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 64,
], ids=["http1", "junk", "hpack", "data-on-stream-0", "tls"])
def test_bytes_that_are_no_http2_end_their_connection_alone(served, channel, sent):
    ask(channel, "Config")
    host, port = target(served).split(":")
    with socket.create_connection((host, int(port)), timeout=60) as sock:
        sock.sendall(sent)
        while sock.recv(4096):
            pass
    ask(channel, "Config")


# ---- knut as the client ----


def test_the_commands_work_over_grpc(knut, served, tmp_path):
    place = ["--grpc-uri", served.urls["grpc"], "--table", "ns.t"]
    knut("table", "create", *place, "--schema", "id long, name string").ok()
    (tmp_path / "rows.csv").write_text("id,name\n1,a\n2,b\n3,c\n")
    knut("table", "append", *place, tmp_path / "rows.csv").ok()
    knut("table", "delete", *place, "--where", "id = 2").ok()
    knut("table", "alter", *place, "ADD COLUMN more int").ok()
    rows = knut.json("table", "scan", *place).ok().rows
    assert [(row["id"], row["name"], row["more"]) for row in rows] == [(1, "a", None), (3, "c", None)]
    knut("table", "rename", *place, "ns.u").fails((1, 2, 3), "gRPC protocol cannot rename")
    knut("table", "create", "--grpc-uri", served.urls["grpc"], "--table", "ns.v", "--schema", "id long", "--format-version",
         "3").fails((1, 2, 3), "format version other than 2")
    knut("table", "drop", *place).ok()
    assert knut.json("table", "list", "--grpc-uri", served.urls["grpc"]).ok().rows == []


def test_a_server_that_does_not_speak_grpc_is_told(knut, served):
    knut("table", "list", "--grpc-uri", served.urls["rest"]).fails(1, "list namespaces|open the catalog")
    knut("table", "list", "--grpc-uri", "http://127.0.0.1:1").fails(1, "127.0.0.1:1")
    knut("table", "list", "--grpc-uri", "127.0.0.1:1").fails(2, "http://HOST:PORT")


REFLECTION = Proto("reflection.proto")


def reflect(channel, *requests, package="grpc.reflection.v1"):
    """One dialog; each question is asked when the one before has been answered."""
    talk = channel.stream_stream(f"/{package}.ServerReflection/ServerReflectionInfo",
                                 request_serializer=REFLECTION.ServerReflectionRequest.SerializeToString,
                                 response_deserializer=REFLECTION.ServerReflectionResponse.FromString)
    questions = queue.Queue()
    answers = talk(iter(questions.get, None), timeout=60)
    for request in requests:
        questions.put(REFLECTION.ServerReflectionRequest(**request))
        yield next(answers)
    questions.put(None)
    assert list(answers) == []


def described(answer):
    return [descriptor_pb2.FileDescriptorProto.FromString(file)
            for file in answer.file_descriptor_response.file_descriptor_proto]


@pytest.mark.parametrize("package", ["grpc.reflection.v1", "grpc.reflection.v1alpha"])
def test_the_server_says_what_it_speaks(channel, package):
    listed, = reflect(channel, {"list_services": "*"}, package=package)
    names = [service.name for service in listed.list_services_response.service]
    assert names == ["skade.katalog.v1.Catalog", "knut.catalog.v1.Commits", "grpc.health.v1.Health",
                     "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"]
    questions = [{"file_containing_symbol": name, "host": "here"} for name in names]
    pool = descriptor_pool.DescriptorPool()
    for question, answer in zip(questions, reflect(channel, *questions, package=package)):
        file, = described(answer)
        pool.Add(file)
        assert pool.FindServiceByName(question["file_containing_symbol"]).methods
        assert answer.valid_host == "here"
        assert answer.original_request == REFLECTION.ServerReflectionRequest(**question)
        path = FOLDER / file.name
        if path.exists():
            assert file == parse(path)[0]


def test_descriptors_are_made_of_the_files():
    subprocess.run([sys.executable, FOLDER.parents[3] / "tools/grpc-descriptors"], check=True)


def test_questions_of_reflection_without_an_answer(channel):
    questions = [{"file_containing_symbol": "knut.catalog.v1.Nothing"}, {"file_by_filename": "no.proto"},
                 {"all_extension_numbers_of_type": "x"},
                 {"file_containing_extension": REFLECTION.ExtensionRequest(containing_type="x", extension_number=1)},
                 {"file_containing_symbol": "knut.catalog.v1.Commits.Watch"}, {"file_by_filename": "health.proto"}]
    *failed, watch, health = reflect(channel, *questions)
    assert {answer.error_response.error_code for answer in failed} == {grpc.StatusCode.NOT_FOUND.value[0]}
    assert described(watch)[0].name == "knut_catalog.proto" and described(health)[0].package == "grpc.health.v1"


def test_a_dialog_that_is_no_dialog_ends_alone(served, channel):
    path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
    raw = channel.stream_stream(path)  # bytes as they are
    assert code_of(lambda: list(raw(iter([b"\xff\xff"]), timeout=60))) == grpc.StatusCode.INVALID_ARGUMENT
    assert code_of(lambda: list(raw(iter([b"x" * (1 << 17)]), timeout=60))) == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert list(raw(iter([]), timeout=60)) == []
    silent = raw(iter(queue.Queue().get, None), timeout=60)
    ended = threading.Thread(target=lambda: code_of(lambda: next(silent)))
    ended.start()
    assert served.stop() == 0  # it is not waited for
    ended.join()


def test_calls_are_counted_with_those_over_rest(served, channel):
    make_table(channel)
    for _ in range(3):
        ask(channel, "LoadTable", ident())
    assert code_of(lambda: ask(channel, "LoadTable", ident("none"))) == grpc.StatusCode.NOT_FOUND
    lines = dict(line.rsplit(" ", 1) for line in served.ask("GET", "/metrics")[2].decode().splitlines() if line[0] != "#")
    counted = {key: value for key, value in lines.items() if 'front="grpc"' in key and "requests_total" in key}
    assert counted['knut_catalog_requests_total{front="grpc",operation="loadTable",status="OK"}'] == "3", counted
    assert counted['knut_catalog_requests_total{front="grpc",operation="loadTable",status="NOT_FOUND"}'] == "1", counted
    assert any('front="grpc",operation="loadTable"}' in key and int(value) > 0 for key, value in lines.items()), lines

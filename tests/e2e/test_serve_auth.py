# SPDX-License-Identifier: Apache-2.0
"""Who may do what with a served catalog: tokens, OAuth2, rights by namespace, TLS, CORS, the audit log."""
import base64
import http.client
import json
import re
import ssl
import subprocess
import time
import urllib.parse
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from lib.program import Program
from lib.serve import Served

NS = "/v1/namespaces"
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}]}
GRANTS = {"boss": ["admin:*"], "etl": ["write:sales"], "reader": ["read:sales"], "deep": ["write:sales.eu"],
          "chief": ["admin:sales"]}
COMMIT = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"k": "v"}}]}


class Guarded(Served):
    """A server with tokens; `as_(name)` asks with that principal's."""

    def __init__(self, program, folder, *flags):
        scratch = folder / "scratch"
        scratch.mkdir()
        knut = Program(program, scratch)
        made = {name: knut.json("catalog", "token", name, *grants).ok().row for name, grants in GRANTS.items()}
        self.tokens = {name: row["token"] for name, row in made.items()}
        self.lines = {name: row["line"] for name, row in made.items()}
        self.file = folder / "tokens.txt"
        self.write(self.lines)
        super().__init__(program, "--warehouse", folder / "w", "--tokens", self.file, *flags)

    def write(self, lines):
        fresh = self.file.with_suffix(".new")
        fresh.write_text("# who may what\n" + "".join(line + "\n" for line in lines.values()))
        fresh.chmod(0o600)
        fresh.rename(self.file)

    def as_(self, name, method, path, body=None, headers=None):
        return self.ask(method, path, body, {"Authorization": f"Bearer {self.tokens.get(name, name)}", **(headers or {})})


@pytest.fixture
def guarded(program, tmp_path):
    with Guarded(program, tmp_path, "--audit-log", tmp_path / "audit.jsonl") as server:
        for levels in (["sales"], ["sales", "eu"], ["hr"]):
            assert server.as_("boss", "POST", NS, {"namespace": levels})[0] == 200
        for ns in ("sales", "sales%1Feu", "hr"):
            assert server.as_("boss", "POST", f"{NS}/{ns}/tables", {"name": "t", "schema": SCHEMA})[0] == 200
        yield server


def status(answer):
    if answer[0] >= 400 and answer[2]:
        assert answer[2]["error"]["code"] == answer[0]
        if answer[0] in (401, 403):
            kind = {401: "NotAuthorizedException", 403: "ForbiddenException"}[answer[0]]
            assert answer[2]["error"]["type"] == kind
    return answer[0]


def test_without_a_valid_token_nothing_is_told(guarded):
    for headers in ({}, {"Authorization": "Bearer x"}, {"Authorization": "Basic eDp5"}, {"Authorization": guarded.tokens["boss"]},
                    {"Authorization": "Bearer knuts_boss:99999999999:0:" + "0" * 64}):
        for method, path in (("GET", "/v1/config"), ("GET", NS), ("GET", f"{NS}/sales/tables/t"), ("POST", NS)):
            answer = guarded.ask(method, path, {} if method == "POST" else None, headers)
            assert status(answer) == 401 and answer[1]["WWW-Authenticate"] == "Bearer"
    for path in ("/health", "/ready", "/metrics"):
        assert guarded.ask("GET", path)[0] == 200


@pytest.mark.parametrize("name,method,path,body,wanted", [
    ("reader", "GET", f"{NS}/sales/tables/t", None, 200),
    ("reader", "GET", f"{NS}/sales%1Feu/tables/t", None, 200),
    ("reader", "GET", f"{NS}/hr/tables/t", None, 403),
    ("reader", "HEAD", f"{NS}/hr/tables/t", None, 403),
    ("reader", "POST", f"{NS}/sales/tables/t", COMMIT, 403),
    ("reader", "DELETE", f"{NS}/sales/tables/t", None, 403),
    ("reader", "POST", NS, {"namespace": ["sales", "x"]}, 403),
    ("etl", "POST", f"{NS}/sales/tables/t", COMMIT, 200),
    ("etl", "POST", f"{NS}/sales%1Feu/tables/t", COMMIT, 200),
    ("etl", "POST", f"{NS}/hr/tables/t", COMMIT, 403),
    ("etl", "POST", NS, {"namespace": ["sales", "x"]}, 403),
    ("etl", "DELETE", f"{NS}/sales/tables/t?purgeRequested=true", None, 403),
    ("etl", "POST", f"{NS}/sales/register", {"name": "x", "metadata-location": "file:///x"}, 403),
    ("etl", "POST", "/v1/tables/rename", {"source": {"namespace": ["sales"], "name": "t"},
                                          "destination": {"namespace": ["hr"], "name": "u"}}, 403),
    ("etl", "POST", "/v1/tables/rename", {"source": {"namespace": ["sales"], "name": "t"},
                                          "destination": {"namespace": ["sales", "eu"], "name": "u"}}, 204),
    ("etl", "POST", "/v1/transactions/commit", {"table-changes": [
        {"identifier": {"namespace": ["sales"], "name": "t"}, **COMMIT},
        {"identifier": {"namespace": ["hr"], "name": "t"}, **COMMIT}]}, 403),
    ("deep", "GET", f"{NS}/sales/tables", None, 403),
    ("deep", "GET", f"{NS}/sales%1Feu/tables", None, 200),
    ("boss", "POST", NS, {"namespace": ["new"]}, 200),
])
def test_rights_hold_for_a_namespace_and_below(guarded, name, method, path, body, wanted):
    assert status(guarded.as_(name, method, path, body)) == wanted


def test_lists_leave_out_what_may_not_be_seen(guarded):
    def seen(name, query=""):
        return guarded.as_(name, "GET", NS + query)[2]["namespaces"]
    assert seen("boss") == [["hr"], ["sales"]]
    assert seen("reader") == [["sales"]] == seen("deep")
    assert seen("deep", "?parent=sales") == [["sales", "eu"]]
    assert guarded.as_("reader", "GET", NS + "?parent=hr")[0] == 403


def test_a_changed_token_file_holds_without_a_restart(guarded):
    guarded.write({k: v for k, v in guarded.lines.items() if k != "etl"})
    while guarded.as_("etl", "GET", "/v1/config")[0] != 401:
        pass  # within a second
    assert guarded.as_("boss", "GET", "/v1/config")[0] == 200
    guarded.write({"bad": "this is no line"})
    while "token-file" not in guarded.errors:
        assert guarded.as_("boss", "GET", "/v1/config")[0] == 200


# ---- OAuth2 ----


def grant(server, fields, headers=None):
    return server.ask("POST", "/v1/oauth/tokens", urllib.parse.urlencode(fields).encode(),
                      {"Content-Type": "application/x-www-form-urlencoded", **(headers or {})})


@pytest.mark.parametrize("form", ["body", "basic", "no id", "empty id"])
def test_credentials_give_a_token(guarded, form):
    """duckdb-iceberg#625, #705: each client has its own way to send them."""
    secret = guarded.tokens["etl"]
    fields, headers = {"grant_type": "client_credentials", "scope": "catalog"}, {}
    if form == "basic":
        headers["Authorization"] = "Basic " + base64.b64encode(f"etl:{secret}".encode()).decode()
    else:
        fields["client_secret"] = secret
        if form != "no id":
            fields["client_id"] = {"body": "etl", "empty id": ""}[form]
    code, headers, token = grant(guarded, fields, headers)
    assert code == 200 and headers["Cache-Control"] == "no-store"
    assert token["token_type"] == "bearer" and token["expires_in"] == 3600 and token["scope"] == "catalog"
    assert guarded.as_(token["access_token"], "POST", f"{NS}/sales/tables/t", COMMIT)[0] == 200
    assert guarded.as_(token["access_token"], "GET", f"{NS}/hr/tables")[0] == 403


def test_a_token_is_exchanged_for_a_fresh_one(guarded):
    """gravitino#10899, #11092: Java refreshes by exchange."""
    kind = "urn:ietf:params:oauth:token-type:access_token"
    _, _, first = grant(guarded, {"grant_type": "client_credentials", "client_secret": guarded.tokens["etl"]})
    fields = {"grant_type": "urn:ietf:params:oauth:grant-type:token-exchange", "subject_token_type": kind,
              "subject_token": first["access_token"]}
    code, _, second = grant(guarded, fields, {"Authorization": f"Bearer {first['access_token']}"})
    assert code == 200 and second["issued_token_type"] == kind
    assert second["access_token"] != first["access_token"]
    assert guarded.as_(second["access_token"], "GET", f"{NS}/sales/tables")[0] == 200


@pytest.mark.parametrize("fields,code,error", [
    ({}, 400, "invalid_request"),
    ({"grant_type": "password"}, 400, "unsupported_grant_type"),
    ({"grant_type": "client_credentials"}, 401, "invalid_client"),
    ({"grant_type": "client_credentials", "client_id": "etl", "client_secret": "wrong"}, 401, "invalid_client"),
    ({"grant_type": "urn:ietf:params:oauth:grant-type:token-exchange"}, 400, "invalid_request"),
    ({"grant_type": "urn:ietf:params:oauth:grant-type:token-exchange", "subject_token": "x",
      "subject_token_type": "urn:ietf:params:oauth:token-type:jwt"}, 400, "invalid_grant"),
])
def test_oauth_failures_are_oauths(guarded, fields, code, error):
    answer = grant(guarded, fields)
    assert answer[0] == code and answer[2]["error"] == error and answer[2]["error_description"]


def test_an_id_with_anothers_secret_gets_nothing(guarded):
    assert grant(guarded, {"grant_type": "client_credentials", "client_id": "boss",
                           "client_secret": guarded.tokens["etl"]})[0] == 401


def test_an_expired_token_is_401(program, tmp_path):
    with Guarded(program, tmp_path, "--token-lifetime", "1") as server:
        _, _, token = grant(server, {"grant_type": "client_credentials", "client_secret": server.tokens["boss"]})
        while server.as_(token["access_token"], "GET", "/v1/config")[0] == 200:
            pass  # a second
        assert status(server.as_(token["access_token"], "GET", "/v1/config")) == 401


# ---- audit ----


def test_changes_and_refusals_are_in_the_audit_log(guarded, tmp_path):
    guarded.as_("etl", "POST", f"{NS}/sales/tables/t", COMMIT)
    guarded.as_("reader", "GET", f"{NS}/sales/tables/t")
    guarded.as_("reader", "DELETE", f"{NS}/sales/tables/t")
    guarded.ask("GET", NS)
    assert guarded.stop() == 0
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    seen = {(line["principal"], line["operation"], line["status"]) for line in lines}  # written after the answers
    assert {("etl", "updateTable", 200), ("reader", "dropTable", 403), (None, "listNamespaces", 401)} <= seen
    assert ("boss", "createTable", 200) in seen
    commit = next(line for line in lines if line["operation"] == "updateTable")
    assert commit["object"] == f"{NS}/sales/tables/t" and commit["peer"] == "127.0.0.1"
    assert not any(token in (tmp_path / "audit.jsonl").read_text() for token in guarded.tokens.values())


# ---- CORS ----


def test_other_origins_are_let_in_only_when_asked_for(program, tmp_path):
    asked = {"Origin": "https://ui.example", "Access-Control-Request-Method": "GET"}
    with Served(program, "--warehouse", tmp_path / "w") as server:
        _, headers, _ = server.ask("GET", "/v1/config", headers=asked)
        assert not [h for h in headers if h.lower().startswith("access-control")]
    with Served(program, "--warehouse", tmp_path / "w", "--cors-origin", "https://ui.example") as server:
        code, headers, _ = server.ask("OPTIONS", f"{NS}/x/tables", headers=asked)
        assert code == 204 and headers["Access-Control-Allow-Origin"] == "https://ui.example"
        assert "POST" in headers["Access-Control-Allow-Methods"] and "Authorization" in headers["Access-Control-Allow-Headers"]
        for path in ("/v1/config", f"{NS}/none"):
            assert server.ask("GET", path, headers=asked)[1]["Access-Control-Allow-Origin"] == "https://ui.example"
        other = server.ask("GET", "/v1/config", headers={"Origin": "https://evil.example"})[1]
        assert "Access-Control-Allow-Origin" not in other


# ---- TLS ----


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """A CA, a server's certificate and a client's, a stranger's."""
    folder = tmp_path_factory.mktemp("certificates")

    def openssl(*words):
        subprocess.run(["openssl", *map(str, words)], check=True, cwd=folder, capture_output=True)
    for name in ("ca", "stranger"):
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.pem",
                "-days", "30", "-subj", f"/CN={name}")
    for name in ("server", "client"):
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        (folder / "ext").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                "-out", f"{name}.pem", "-days", "30", "-extfile", "ext")
    return folder


def https(server, certificates, client=None):
    context = ssl.create_default_context(cafile=certificates / "ca.pem")
    if client:
        context.load_cert_chain(certificates / f"{client}.pem", certificates / f"{client}.key")
    place = urlsplit(server.uri)
    return http.client.HTTPSConnection(place.hostname, place.port, context=context, timeout=30)


def test_tls(program, certificates, tmp_path):
    with Served(program, "--warehouse", tmp_path / "w", "--tls-cert", certificates / "server.pem",
                "--tls-key", certificates / "server.key") as server:
        assert server.uri.startswith("https://")
        conn = https(server, certificates)
        for _ in range(3):
            assert server.ask("GET", "/v1/config", connection=conn)[0] == 200


def test_without_a_certificate_of_the_authority_nobody_comes_in(program, certificates, tmp_path):
    with Served(program, "--warehouse", tmp_path / "w", "--tls-cert", certificates / "server.pem", "--tls-key",
                certificates / "server.key", "--tls-client-ca", certificates / "ca.pem", "--audit-log", tmp_path / "audit") as server:
        conn = https(server, certificates, "client")
        assert server.ask("GET", "/v1/config", connection=conn)[0] == 200
        assert server.ask("POST", NS, {"namespace": ["x"]}, connection=conn)[0] == 200
        for stranger in (None, "stranger"):
            with pytest.raises((ssl.SSLError, OSError, http.client.HTTPException)):
                server.ask("GET", "/v1/config", connection=https(server, certificates, stranger))
        assert server.stop() == 0
    line = json.loads((tmp_path / "audit").read_text().splitlines()[0])
    assert line["certificate"] == "CN=client"


def test_a_certificate_without_its_key_is_named(knut, certificates, tmp_path):
    knut("catalog", "serve", "--warehouse", tmp_path / "w", "--rest", "0", "--tls-cert", certificates / "server.pem",
         "--tls-key", certificates / "client.key").fails(2, "pair")


def test_nobody_brings_the_table_of_another_namespace_into_their_own(guarded):
    """register reads the document for its caller: it must lie where the caller administers."""
    theirs = guarded.as_("boss", "GET", f"{NS}/hr/tables/t")[2]["metadata-location"]
    body = {"name": "stolen", "metadata-location": theirs}
    answer = guarded.as_("chief", "POST", f"{NS}/sales/register", body)
    assert status(answer) == 403 and "below the folder of the namespace" in answer[2]["error"]["message"]
    assert status(guarded.as_("chief", "POST", f"{NS}/sales/register-view", body)) == 403
    own = guarded.as_("chief", "GET", f"{NS}/sales%1Feu/tables/t")[2]["metadata-location"]
    assert status(guarded.as_("chief", "POST", f"{NS}/sales/register", {"name": "again", "metadata-location": own})) == 200
    assert status(guarded.as_("boss", "POST", f"{NS}/sales/register", body)) == 200


def adds_snapshot(place, number=1, **more):
    return {"requirements": [], "updates": [{"action": "add-snapshot", "snapshot": {
        "snapshot-id": number, "sequence-number": number, "timestamp-ms": int(time.time() * 1000), "schema-id": 0,
        "summary": {"operation": "append"}, "manifest-list": f"{place}/metadata/snap-{number}.avro", **more}}]}


def adds_statistics(place, kind="statistics"):
    return {"requirements": [], "updates": [{"action": f"set-{kind}", kind: {
        "snapshot-id": 1, "statistics-path": f"{place}/metadata/s.puffin", "file-size-in-bytes": 1,
        "file-footer-size-in-bytes": 1, "blob-metadata": []}}]}


def test_a_commit_names_no_files_of_another_namespace(guarded):
    """The server reads manifests to plan, and removes files when it purges: by rights of its own."""
    where = {ns: guarded.as_("boss", "GET", f"{NS}/{ns}/tables/t")[2]["metadata"]["location"]
             for ns in ("sales", "sales%1Feu", "hr")}

    def commits(who, place, table="sales/tables/t", make=adds_snapshot):
        answer = guarded.as_(who, "POST", f"{NS}/{table}", make(place))
        assert status(answer) in (200, 403), answer
        assert answer[0] == 200 or re.search("has no right on the files at|lies outside", answer[2]["error"]["message"])
        return answer[0]
    assert commits("chief", where["hr"]) == commits("chief", where["hr"] + "/../t") == 403
    assert commits("chief", "file:///etc") == commits("chief", where["sales"] + "/../../hr/t") == 403
    assert commits("chief", where["sales"]) == 200
    assert commits("chief", where["hr"], make=adds_statistics) == 403
    assert commits("chief", where["sales%1Feu"], make=adds_statistics) == 200  # a namespace below one's own
    assert commits("boss", where["hr"], make=lambda place: adds_snapshot(place, 2)) == 200
    one = {"identifier": {"namespace": ["sales"], "name": "t"}, **adds_snapshot(where["hr"], 3)}
    assert status(guarded.as_("chief", "POST", "/v1/transactions/commit", {"table-changes": [one]})) == 403
    # the folder of a table that one makes oneself is no way in either
    made = {"name": "thief", "schema": SCHEMA, "location": where["hr"]}
    assert status(guarded.as_("chief", "POST", f"{NS}/sales/tables", made)) == 200
    assert commits("chief", where["hr"], "sales/tables/thief") == 403
    assert status(guarded.as_("chief", "DELETE", f"{NS}/sales/tables/thief?purgeRequested=true")) == 403
    assert status(guarded.as_("chief", "DELETE", f"{NS}/sales/tables/thief")) == 204
    # nor is a document of one's own that is registered
    loaded = guarded.as_("boss", "GET", f"{NS}/sales/tables/t")[2]
    own = Path(where["sales"].removeprefix("file://")) / "own.metadata.json"
    own.write_text(json.dumps(loaded["metadata"]))  # with boss's snapshot of hr's
    body = {"name": "sly", "metadata-location": f"file://{own}"}
    assert status(guarded.as_("chief", "POST", f"{NS}/sales/register", body)) == 403
    assert status(guarded.as_("boss", "POST", f"{NS}/sales/register", body)) == 200


def test_a_table_that_lies_in_nobodys_folder_is_written_by_whoever_may_write_it(guarded, tmp_path):
    """Its namespace may say where it is, and its old namespace may be gone."""
    place = f"file://{tmp_path}/w/elsewhere"
    made = {"name": "out", "schema": SCHEMA, "location": place}
    assert status(guarded.as_("boss", "POST", f"{NS}/sales/tables", made)) == 200
    path = f"{NS}/sales/tables/out"
    assert status(guarded.as_("chief", "POST", path, adds_snapshot(place))) == 200
    assert status(guarded.as_("chief", "POST", path, adds_snapshot(f"file://{tmp_path}/w/other", 2))) == 403
    assert status(guarded.as_("boss", "POST", NS, {"namespace": ["elsewhere"]})) == 200  # now it is somebody's
    assert status(guarded.as_("chief", "POST", path, adds_snapshot(place, 3))) == 403

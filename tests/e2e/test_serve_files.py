# SPDX-License-Identifier: Apache-2.0
"""How clients of a served catalog get at a table's files in an object store: keys lent by the store's STS, and requests
signed for them. The store is a real one that checks keys, policies and signatures."""
import gzip
import hashlib
import json
import threading
import urllib.error
import urllib.request
import uuid
from urllib.parse import quote

import pytest

from lib.program import Program
from lib.seaweed import KEY, ROLE, SECRET, Seaweed
from lib.serve import Served

SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}
GRANTS = {"boss": ["admin:*"], "writer": ["write:a"], "reader": ["read:a"]}
VENDED = {"X-Iceberg-Access-Delegation": "vended-credentials"}
EITHER = {"X-Iceberg-Access-Delegation": "vended-credentials,remote-signing"}
SIGNING = {"X-Iceberg-Access-Delegation": "remote-signing"}
NOBODY = {"AWS_EC2_METADATA_DISABLED": "true", "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
          "AWS_CONFIG_FILE": "/nonexistent"}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with Seaweed(tmp_path_factory.mktemp("weed"), sts=True) as weed:
        weed.bucket("lake")
        yield weed


class Lender(Served):
    """A server over the store, with tokens; `as_(name)` asks with that principal's."""

    def __init__(self, program, store, folder, *flags):
        (folder / "scratch").mkdir()
        knut = Program(program, folder / "scratch")
        made = {name: knut.json("catalog", "token", name, *grants).ok().row for name, grants in GRANTS.items()}
        self.tokens = {name: row["token"] for name, row in made.items()}
        tokens = folder / "tokens.txt"
        tokens.write_text("".join(row["line"] + "\n" for row in made.values()))
        tokens.chmod(0o600)
        self.store, self.audit, self.prefix = store, folder / "audit.jsonl", f"w{uuid.uuid4().hex[:8]}"
        self.secrets = set()
        super().__init__(program, "--warehouse-uri", f"s3://lake/{self.prefix}", "--s3-bucket", "lake",
                         "--db", folder / "catalog.db", "--tokens", tokens, "--audit-log", self.audit, "--debug", "all",
                         *flags, env=knut.environment(**store.env))
        for ns in ("a", "b"):
            assert self.as_("boss", "POST", "/v1/namespaces", {"namespace": [ns]})[0] == 200

    def as_(self, name, method, path, body=None, headers=None):
        return self.ask(method, path, body, {"Authorization": f"Bearer {self.tokens[name]}", **(headers or {})})

    def create(self, ns, name="t", who="boss", headers=None, **more):
        status, _, made = self.as_(who, "POST", f"/v1/namespaces/{ns}/tables", {"name": name, "schema": SCHEMA, **more},
                                   headers)
        assert status == 200, made
        return made

    def load(self, who, ns="a", name="t", headers=VENDED):
        return self.as_(who, "GET", f"/v1/namespaces/{ns}/tables/{name}", headers=headers)

    def keys_of(self, config):
        keys = (config["s3.access-key-id"], config["s3.secret-access-key"], config["s3.session-token"])
        self.secrets |= set(keys)
        return keys

    def sign(self, who, method, uri, headers=None, path="/v1/namespaces/a/tables/t/sign", **more):
        return self.as_(who, "POST", path, {"region": "us-east-1", "method": method, "uri": uri, "provider": "s3",
                                            "headers": {k: [v] for k, v in (headers or {}).items()}, **more})


@pytest.fixture(scope="module")
def lender(program, store, tmp_path_factory):
    folder = tmp_path_factory.mktemp("lender")
    flags = ("--sts-endpoint", store.endpoint, "--sts-role-arn", ROLE, "--remote-signing")
    with Lender(program, store, folder, *flags) as server:
        server.create("a")
        server.create("b")
        yield server
        assert server.stop() == 0


@pytest.fixture(scope="module")
def plain(program, store, tmp_path_factory):
    """A server that lends nothing, and says so."""
    with Lender(program, store, tmp_path_factory.mktemp("plain")) as server:
        server.create("a")
        yield server


def may(store, keys, method, path, body=b""):
    """Whether the store lets these keys do it."""
    path, _, query = path.partition("?")
    try:
        store.request(method, path, query, body, keys)
    except urllib.error.HTTPError as refused:
        assert refused.code == 403, refused.read()
        return False
    return True


def send(method, signed, body=None):
    """A signed request, as it stands; the status."""
    request = urllib.request.Request(signed["uri"], data=body, method=method,
                                     headers={k: ", ".join(v) for k, v in signed["headers"].items()})
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read()


def refused(answer, *words):
    assert answer[0] == 403 and answer[2]["error"]["type"] == "ForbiddenException", answer
    assert all(word in answer[2]["error"]["message"] for word in words), answer
    return True


# ---- keys ----


@pytest.mark.parametrize("who,writes", [("writer", True), ("reader", False), ("boss", True)])
def test_lent_keys_open_the_tables_folder_by_the_callers_rights_and_nothing_else(lender, store, who, writes):
    status, headers, loaded = lender.load(who)
    assert status == 200 and headers["Cache-Control"] == "no-store"
    config, folder = loaded["config"], f"/lake/{lender.prefix}/a/t"
    keys = lender.keys_of(config)
    store.put("lake", f"{lender.prefix}/a/t/data/x", b"x")
    store.put("lake", f"{lender.prefix}/a/t2/x", b"x")
    assert may(store, keys, "GET", f"{folder}/data/x")
    assert may(store, keys, "PUT", f"{folder}/data/y-{who}", b"y") == writes
    assert may(store, keys, "DELETE", f"{folder}/data/y-{who}") == writes
    assert may(store, keys, "GET", f"/lake?list-type=2&prefix={quote(lender.prefix + '/a/t/', safe='')}")
    for path in (f"/lake/{lender.prefix}/a/t2/x", f"/lake/{lender.prefix}/b/t/metadata/x", "/lake/x"):
        assert not may(store, keys, "GET", path)
        assert not may(store, keys, "PUT", path, b"y")
    for prefix in (f"{lender.prefix}/b/", f"{lender.prefix}/a/t2/", ""):
        assert not may(store, keys, "GET", f"/lake?list-type=2&prefix={quote(prefix, safe='')}")


def test_what_clients_need_is_in_the_answer(lender, store):
    """polaris#2177, unitycatalog#1885, iceberg#13515, #17810: keys without an end or an address for new ones."""
    _, headers, loaded = lender.load("writer")
    config, (lent,) = loaded["config"], loaded["storage-credentials"]
    assert lent["prefix"] == f"s3://lake/{lender.prefix}/a/t"
    assert lent["config"] == config
    assert config["s3.endpoint"] == store.endpoint and config["s3.path-style-access"] == "true"
    assert config["client.refresh-credentials-endpoint"] == "v1/namespaces/a/tables/t/credentials"
    assert int(config["s3.session-token-expires-at-ms"]) > loaded["metadata"]["last-updated-ms"]
    path = "/" + config["client.refresh-credentials-endpoint"]
    status, _, again = lender.as_("writer", "GET", path)
    assert status == 200 and again == {"storage-credentials": [lent]}
    # 304 is for who has these keys: with others, or without, it is another answer
    assert lender.load("writer", headers={**VENDED, "If-None-Match": headers["ETag"]})[0] == 304
    assert lender.load("writer", headers={"If-None-Match": headers["ETag"]})[0] == 200
    assert lender.load("reader", headers={**VENDED, "If-None-Match": headers["ETag"]})[0] == 200
    lender.keys_of(config)


def test_who_does_not_ask_gets_no_keys(lender):
    for headers in ({}, SIGNING):
        _, _, loaded = lender.load("writer", headers=headers)
        assert "s3.access-key-id" not in loaded["config"] and "storage-credentials" not in loaded


@pytest.mark.parametrize("query", ["", "?snapshots=refs"])
def test_a_packed_answer_with_keys_is_for_its_caller_alone(lender, query):
    """Answers from 4 KiB on are packed, and packed ones are kept for others."""
    fields = [{"id": i, "name": f"column_{i}", "required": False, "type": "string"} for i in range(1, 200)]
    name = f"wide{len(query)}"
    lender.create("a", name, schema={"type": "struct", "schema-id": 0, "fields": fields})

    def load(who, headers):
        packed = lender.load(who, name=name + query, headers={**headers, "Accept-Encoding": "gzip"})[2]
        return json.loads(gzip.decompress(packed))
    seen = [load(who, headers) for who in ("writer", "reader", "writer") for headers in (VENDED, {}, SIGNING)]
    keys = [answer["config"].get("s3.access-key-id") for answer in seen]
    assert keys[0] and keys[0] == keys[6] and keys[3] and keys[3] != keys[0]
    assert [bool(key) for key in keys] == [True, False, False] * 3
    assert ["s3.remote-signing-enabled" in answer["config"] for answer in seen] == [False, False, True] * 3


def test_a_new_staged_or_registered_table_comes_with_keys(lender, store):
    made = lender.create("a", "made", who="writer", headers=VENDED)
    staged = lender.create("a", "staged", who="writer", headers=VENDED, **{"stage-create": True})
    status, _, registered = lender.as_("boss", "POST", "/v1/namespaces/b/register", {
        "name": "registered", "metadata-location": made["metadata-location"]}, VENDED)
    assert status == 200
    for answer in (made, staged, registered):
        keys = lender.keys_of(answer["config"])
        folder = answer["metadata"]["location"].removeprefix("s3:/")
        assert may(store, keys, "PUT", f"{folder}/data/z", b"z") and not may(store, keys, "PUT", "/lake/z", b"z")


def test_many_who_ask_at_once_get_the_same_keys(lender):
    """iceberg-go#1560: one refresh for many."""
    lender.create("a", "busy")
    got, start = [], threading.Barrier(12)

    def load():
        start.wait()
        got.append(lender.load("writer", name="busy")[2]["config"]["s3.access-key-id"])
    threads = [threading.Thread(target=load) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 12 and len(set(got)) == 1


def test_a_location_in_anothers_folder_opens_nothing(lender):
    """Who may write in `a` puts a table where the files of `b` are: it is made, and gives no way in."""
    other = f"s3://lake/{lender.prefix}/b/t"
    made = lender.create("a", "thief", who="writer", headers=EITHER, location=other)
    assert "storage-credentials" not in made and "s3.remote-signing-enabled" not in made["config"]
    status, _, answer = lender.as_("writer", "GET", "/v1/namespaces/a/tables/thief/credentials")
    assert status == 200 and answer["storage-credentials"] == [] and "rights on the whole catalog" in answer["message"]
    assert refused(lender.sign("writer", "GET", f"{lender.store.endpoint}/lake/{lender.prefix}/b/t/metadata/x",
                               path="/v1/namespaces/a/tables/thief/sign"))
    # nor by a property of a table that is one's own
    made = lender.create("a", "sly", who="writer", headers=VENDED, properties={"write.data.path": other})
    assert not may(lender.store, lender.keys_of(made["config"]), "GET", f"/lake/{lender.prefix}/b/t/metadata/x")
    # who may read everything is let in
    assert "s3.access-key-id" in lender.load("boss", name="thief")[2]["config"]


def test_a_namespace_is_no_way_around_a_name(lender):
    status, _, answer = lender.as_("reader", "GET", "/v1/namespaces/b/tables/t/credentials")
    assert refused((status, None, answer))
    assert lender.as_("reader", "GET", "/v1/namespaces/a/tables/none/credentials")[0] == 404


def test_with_lent_keys_alone_the_program_writes_and_reads(lender, knut):
    name = ("--table", f"a.own{uuid.uuid4().hex[:6]}", "--rest-uri", lender.uri, "--rest-credentials", "vended")
    env = {**NOBODY, "KNUT_REST_TOKEN": lender.tokens["writer"]}
    knut("table", "create", *name, "--schema", "id long", env=env).ok()
    knut("table", "append", *name, "--sql", "SELECT i AS id FROM range(100) r(i)", env=env).ok()
    knut("table", "delete", *name, "--where", "id < 10", env=env).ok()
    assert knut("table", "scan", *name, "--count", "--output", "json", env=env).ok().row == {"count": 90}
    reads = {**env, "KNUT_REST_TOKEN": lender.tokens["reader"]}
    assert knut("table", "scan", *name, "--count", "--output", "json", env=reads).ok().row == {"count": 90}


# ---- a server that lends nothing ----


def test_a_server_without_sts_says_that_it_lends_nothing(plain):
    assert plain.errors.count("file-access") == 1 and "none are lent" in plain.errors
    _, _, loaded = plain.load("writer", headers=EITHER)
    assert "storage-credentials" not in loaded and "s3.access-key-id" not in loaded["config"]
    assert loaded["config"]["s3.endpoint"] == plain.store.endpoint
    status, _, answer = plain.as_("writer", "GET", "/v1/namespaces/a/tables/t/credentials")
    assert status == 200 and answer["storage-credentials"] == [] and "lends no keys" in answer["message"]
    status, _, answer = plain.sign("writer", "GET", "http://h/lake/x")
    assert status == 406 and "--remote-signing" in answer["error"]["message"]
    assert not any("/sign" in e for e in plain.as_("boss", "GET", "/v1/config")[2]["endpoints"])


@pytest.mark.parametrize("flags,reason", [
    (("--sts-endpoint", "STORE", "--sts-role-arn", "arn:aws:iam::000000000000:role/other"), "AccessDenied"),
    (("--sts-endpoint", "http://127.0.0.1:1"), "connect")])
def test_where_sts_refuses_tables_are_loaded_without_keys(program, store, tmp_path, flags, reason):
    with Lender(program, store, tmp_path, *(flag.replace("STORE", store.endpoint) for flag in flags)) as server:
        server.create("a")
        for _ in range(3):
            status, _, loaded = server.load("writer")
            assert status == 200 and "storage-credentials" not in loaded
        status, _, answer = server.as_("writer", "GET", "/v1/namespaces/a/tables/t/credentials")
        assert status == 503 and answer["error"]["type"] == "ServiceUnavailableException"
        assert server.errors.count("keys-not-lent") == 1 and reason in server.errors


# ---- signing ----


def test_signed_requests_are_taken_by_the_store(lender, store):
    at = f"{store.endpoint}/lake/{lender.prefix}/a/t/data"
    for key in ("one", "two%20%2B%20%C3%A9=%25"):
        status, headers, signed = lender.sign("writer", "PUT", f"{at}/{key}", {"Content-Type": "text/plain"})
        assert status == 200 and headers["Cache-Control"] == "no-cache", signed
        assert send("PUT", signed, b"hello")[0] == 200
        status, headers, signed = lender.sign("reader", "GET", f"{at}/{key}?x-id=GetObject", {"Range": "bytes=1-2"})
        assert status == 200 and headers["Cache-Control"] == "private"
        assert send("GET", signed) == (206, b"el")
        signed["headers"]["Range"] = ["bytes=0-0"]  # one signature is for every range
        assert send("GET", signed) == (206, b"h")
    listing = f"{store.endpoint}/lake?list-type=2&prefix={quote(lender.prefix + '/a/t/', safe='')}"
    status, _, signed = lender.sign("reader", "GET", listing)
    assert status == 200 and b"data/one" in send("GET", signed)[1]
    body = f"<Delete><Object><Key>{lender.prefix}/a/t/data/one</Key></Object></Delete>"
    status, _, signed = lender.sign("writer", "POST", f"{store.endpoint}/lake?delete", body=body)
    assert status == 200 and send("POST", signed, body.encode())[0] == 200
    assert signed["headers"]["X-Amz-Content-Sha256"] == [hashlib.sha256(body.encode()).hexdigest()]  # this body only
    status, _, signed = lender.sign("writer", "DELETE", f"{at}/one")
    assert status == 200 and send("DELETE", signed)[0] == 204


def test_what_does_more_than_the_caller_may_is_not_signed(lender, store):
    at, other = f"{store.endpoint}/lake/{lender.prefix}/a/t", f"{store.endpoint}/lake/{lender.prefix}/b/t"
    for method in ("PUT", "DELETE", "POST"):
        query = "?uploads" if method == "POST" else ""
        assert refused(lender.sign("reader", method, f"{at}/x{query}"), "may not write")
    for uri, words in (
            (f"{other}/metadata/x", "not a file of this table"),
            (f"{store.endpoint}/lake/{lender.prefix}2/a/t/x", "not a file of this table"),
            (f"{at}/../../b/t/x", "dot"), (f"{at}/%2E%2E/%2E%2E/b/t/x", "dot"), (f"{at}//x", "empty"),
            (f"{at}/x?acl", "only reading"), (f"{at}/x?versionId=1", "only reading"),
            (f"{at}/x?tagging", "only reading"),
            (f"{at}/x?partNumber=1&partNumber=2", "only reading"),
            ("http://other.example/lake/x", "object store"),
            (f"http://lake.{store.endpoint[7:].replace(':', '.evil.example:')}/x", "object store"),
            (f"{store.endpoint}/lake", "only reading"),
            (f"{store.endpoint}/lake?list-type=2&prefix=", "only reading"),
            (f"{store.endpoint}/lake?list-type=2&prefix={lender.prefix}%2Fb%2Ft%2F", "not a file"),
            (f"{store.endpoint}/lake?list-type=2&prefix={lender.prefix}%2Fa%2Ft", "not a file"),
            (f"{store.endpoint}/lake?list-type=2&prefix={lender.prefix}/a/t+u/", "%2B"),
            (f"{store.endpoint}/other/x", "lake"), (store.endpoint, None)):
        answer = lender.sign("writer", "GET", uri)
        assert answer[0] in (400, 403), (uri, answer)
        assert words is None or refused(answer, words)
    for name, value in (("x-amz-copy-source", f"/lake/{lender.prefix}/b/t/x"), ("X-Amz-Acl", "public-read"),
                        ("x-amz-grant-read", "*"), ("x-amz-object-lock-mode", "COMPLIANCE"),
                        ("x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD")):
        assert refused(lender.sign("writer", "PUT", f"{at}/x", {name: value}))
    keys = "".join(f"<Object><Key>{lender.prefix}/{ns}/t/x</Key></Object>" for ns in "ab")
    body = f"<Delete>{keys}</Delete>"
    assert refused(lender.sign("writer", "POST", f"{store.endpoint}/lake?delete", body=body), "b/t/x")
    assert refused(lender.sign("writer", "GET", f"{at}/x", path="/v1/namespaces/b/tables/t/sign"))


@pytest.mark.parametrize("body", [
    {}, {"uri": 1}, {"uri": "not a uri"}, {"method": "PATCH"}, {"headers": {"a": "b"}}, {"headers": {"a": [1]}},
    {"headers": {"a\r\nb": ["c"]}}, {"provider": "gcs"}, {"method": "POST", "uri": "{at}?delete"},
    {"method": "POST", "uri": "{at}?delete", "body": "<x"}, {"uri": "{at}/%zz"}, {"uri": "{at}/%00"}])
def test_malformed_requests_to_sign_are_refused_in_one_line(lender, body):
    whole = {"region": "us-east-1", "uri": f"{lender.store.endpoint}/lake/x", "method": "GET", "headers": {}, **body}
    whole["uri"] = whole["uri"].replace("{at}", f"{lender.store.endpoint}/lake") if isinstance(whole["uri"], str) else 1
    if not body:
        whole.pop("uri")
    status, _, answer = lender.as_("writer", "POST", "/v1/namespaces/a/tables/t/sign", whole)
    assert status in (400, 403, 406) and "\n" not in answer["error"]["message"], answer


def test_loading_names_where_to_have_requests_signed(lender):
    _, _, loaded = lender.load("writer", headers=SIGNING)
    config = loaded["config"]
    assert config["s3.remote-signing-enabled"] == "true" and config["s3.signer"] == "S3V4RestSigner"
    assert config["signer.endpoint"] == config["s3.signer.endpoint"] == "v1/namespaces/a/tables/t/sign"
    endpoints = lender.as_("boss", "GET", "/v1/config")[2]["endpoints"]
    assert "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/sign" in endpoints


def test_files_of_a_table_that_is_being_made_are_signed(lender):
    lender.create("a", "soon", who="writer", **{"stage-create": True})
    path = "/v1/namespaces/a/tables/soon/sign"
    uri = f"{lender.store.endpoint}/lake/{lender.prefix}/a/soon/data/x"
    assert lender.sign("writer", "PUT", uri, path=path)[0] == 200
    assert lender.sign("reader", "GET", uri, path=path)[0] == 404
    assert refused(lender.sign("writer", "PUT", uri.replace("/a/soon", "/b/t"), path=path), "not a file")


def test_files_of_other_tables_are_signed_by_the_callers_rights(lender, store):
    """PyIceberg sends what it does with any table to the table that it loaded last."""
    lender.create("a", "second")
    at = f"{store.endpoint}/lake/{lender.prefix}"
    path = "/v1/namespaces/a/tables/second/sign"
    assert lender.sign("writer", "PUT", f"{at}/a/t/data/x", path=path)[0] == 200
    assert lender.sign("reader", "GET", f"{at}/a/t/data/x", path=path)[0] == 200
    assert refused(lender.sign("reader", "PUT", f"{at}/a/t/data/x", path=path), "may not write")
    assert refused(lender.sign("writer", "GET", f"{at}/b/t/data/x", path=path), "not a file of this table")
    assert lender.sign("boss", "GET", f"{at}/b/t/data/x", path=path)[0] == 200


def test_the_older_path_is_for_who_may_everything(lender):
    uri = f"{lender.store.endpoint}/lake/{lender.prefix}/b/t/metadata/x"
    assert lender.sign("boss", "PUT", uri, path="/v1/aws/s3/sign")[0] == 200
    assert refused(lender.sign("writer", "GET", uri, path="/v1/aws/s3/sign"), "whole catalog")
    elsewhere = f"{lender.store.endpoint}/lake/elsewhere/x"
    assert refused(lender.sign("boss", "GET", elsewhere, path="/v1/aws/s3/sign"), "not a file")


# ---- secrets ----


def test_secrets_are_in_no_log_audit_line_or_metric(lender):
    for who in ("writer", "reader"):
        lender.keys_of(lender.load(who)[2]["config"])
        lender.as_(who, "GET", "/v1/namespaces/a/tables/t/credentials")
        lender.sign(who, "GET", f"{lender.store.endpoint}/lake/{lender.prefix}/a/t/x")
    said = lender.errors + lender.audit.read_text() + lender.ask("GET", "/metrics")[2].decode()
    assert "signRequest" in said and "loadCredentials" in said
    for secret in {*lender.secrets, SECRET, KEY, *lender.tokens.values()}:
        assert secret not in said

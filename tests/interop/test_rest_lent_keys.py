# SPDX-License-Identifier: Apache-2.0
"""A catalog server that lends keys for a table's files: the program has none of its own, and still reads and writes;
keys that end are renewed, by the server's endpoint for it."""
import json
import time
import uuid

import pytest

from lib import proxy as P
from lib.seaweed import KEY, REGION, SECRET

LOADS = r"^(GET|POST) /v1/namespaces/\w+/tables"
NOBODY = {"AWS_EC2_METADATA_DISABLED": "true", "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
          "AWS_CONFIG_FILE": "/nonexistent"}
SQL = "SELECT i AS id, 'n' || i AS name FROM range(0, 100) r(i)"


def config(store, **more):
    return {"s3.access-key-id": KEY, "s3.secret-access-key": SECRET, "s3.endpoint": store.endpoint,
            "s3.path-style-access": "true", "s3.region": REGION, **more}


def lends(store, prefix="s3://lake/wh", **more):
    """A wrong key for the bucket as a whole, the right one for the table: the longest prefix counts."""
    return {"storage-credentials": [
        {"prefix": "s3://lake", "config": config(store, **{"s3.secret-access-key": "wrong"})},
        {"prefix": prefix, "config": config(store, **more)}]}


@pytest.fixture
def proxy(served_s3):
    front = P.Proxy(served_s3.uri)
    yield front
    front.close()


@pytest.fixture
def table(knut, proxy):
    name = f"v{uuid.uuid4().hex[:8]}.t"

    def run(command, *args, env=NOBODY):
        return knut("table", command, "--rest-uri", proxy.uri, "--table", name, *args, "--output", "json", env=env)
    return run


@pytest.mark.parametrize("where", ["storage-credentials", "config"])
def test_with_lent_keys_alone_a_table_is_made_written_and_read(table, proxy, store, where):
    members = lends(store) if where == "storage-credentials" else {"config": config(store)}
    proxy.rule(LOADS, P.adds(members), times=1000)
    table("create", "--schema", "id long, name string").ok()
    table("append", "--sql", SQL).ok()
    table("delete", "--where", "id < 10").ok()
    assert table("scan", "--count").ok().row == {"count": 90}
    assert sorted(r["id"] for r in table("scan", "--columns", "id").ok().rows) == list(range(10, 100))
    assert all(h.get("X-Iceberg-Access-Delegation") == "vended-credentials" for a, h in zip(proxy.seen, proxy.headers)
               if a.startswith("GET") and a.endswith("/t"))


def test_without_keys_it_is_said_where_was_looked(table, proxy, store):
    table("create", "--schema", "id long", env=store.env).ok()
    table("append", "--sql", "SELECT 1 AS id", env=store.env).ok()
    table("scan").fails((1, 2, 3), "credentials")
    table("scan", "--rest-credentials", "vended", env=store.env).fails((1, 2, 3), "lends no keys")
    assert table("scan", "--rest-credentials", "own", env=store.env).ok().rows == [{"id": 1}]


def test_lent_keys_are_not_used_when_ones_own_are_asked_for(table, proxy, store):
    proxy.rule(LOADS, P.adds(lends(store, **{"s3.secret-access-key": "wrong"})), times=1000)
    table("create", "--schema", "id long", "--rest-credentials", "own", env=store.env).ok()
    table("append", "--sql", "SELECT 1 AS id", "--rest-credentials", "own", env=store.env).ok()
    assert table("scan", "--rest-credentials", "own", env=store.env).ok().rows == [{"id": 1}]


@pytest.mark.parametrize("endpoint", ["of the specification", "named"])
def test_keys_that_end_are_renewed(table, proxy, store, endpoint):
    """Each loan has ended when it is made: the next ones come from the endpoint for it."""
    def ended():
        more = {"s3.session-token-expires-at-ms": str(int(time.time() * 1000) - 1000)}
        if endpoint == "named":
            more["client.refresh-credentials-endpoint"] = "/v1/refresh/here"
        return lends(store, **more)
    renewed = r"/v1/refresh/here$" if endpoint == "named" else r"/tables/t/credentials$"
    later = {"s3.session-token-expires-at-ms": str(int(time.time() * 1000) + 3600 * 1000)}

    def gives(handler, forward):
        handler.answer(200, [("Content-Type", "application/json")], json.dumps(lends(store, **later)).encode())
    proxy.rule(renewed, gives, times=1000)
    proxy.rule(LOADS, P.adds(ended), times=1000)
    table("create", "--schema", "id long, name string").ok()
    table("append", "--sql", SQL).ok()
    assert table("scan", "--count").ok().row == {"count": 100}
    assert len(table("scan").ok().rows) == 100
    assert proxy.count(renewed) > 0

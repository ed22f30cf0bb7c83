# SPDX-License-Identifier: Apache-2.0
"""PyIceberg without keys, each of whose requests to the store is signed by the catalog (its S3V4RestSigner, s3fs)."""
import sys
import uuid

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import SignError

from lib.program import TOP, Program
from lib.seaweed import Seaweed
from lib.serve import Served

S3FS = next((TOP / ".deps/venv-s3fs/lib").glob("python3*/site-packages"), None)
SIGNED = {"header.X-Iceberg-Access-Delegation": "remote-signing"}
ROWS = pa.table({"id": list(range(100)), "p": [f"a b+c%é={i % 2}" for i in range(100)]})


@pytest.fixture(scope="module")
def signer(program, tmp_path_factory):
    folder = tmp_path_factory.mktemp("signer")
    scratch = Program(program, folder)
    tokens, lines = {}, []
    for who, grant in (("writer", "write:a"), ("reader", "read:a"), ("boss", "admin:*")):
        made = scratch.json("catalog", "token", who, grant).ok().row
        tokens[who], lines = made["token"], [*lines, made["line"]]
    (folder / "tokens").write_text("\n".join(lines))
    (folder / "tokens").chmod(0o600)
    with Seaweed(folder / "weed") as store:
        store.bucket("lake")
        with Served(program, "--warehouse-uri", "s3://lake/wh", "--s3-bucket", "lake", "--db", folder / "catalog.db",
                    "--tokens", folder / "tokens", "--remote-signing", env=scratch.environment(**store.env)) as server:
            server.store, server.tokens = store, tokens
            server.catalog = lambda who: load_catalog(f"{who}{uuid.uuid4().hex}", type="rest", uri=server.uri,
                                                      token=tokens[who], **SIGNED)
            server.catalog("boss").create_namespace("a")
            yield server
            assert server.stop() == 0, server.errors


@pytest.fixture(autouse=True)
def nobodys_keys(monkeypatch):
    assert S3FS, "no s3fs here: run 'tools/setup s3fs'"
    monkeypatch.setattr(sys, "path", [*sys.path, str(S3FS)])
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture
def table(signer):
    table = signer.catalog("writer").create_table(f"a.t{uuid.uuid4().hex[:8]}", schema=ROWS.schema)
    with table.update_spec() as spec:
        spec.add_identity("p")
    return table


def test_tables_are_written_and_read_without_keys(signer, table):
    table.append(ROWS)
    table.delete("id < 10")
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(10, 100))
    read = signer.catalog("reader").load_table(table.name())  # from here on all that this process asks is the reader's
    assert sorted(read.scan("id = 12").to_arrow()["p"].to_pylist()) == ["a b+c%é=0"]


def test_two_tables_are_used_in_turn(signer, table):
    """PyIceberg has one signer for all of them, which is that of the last one."""
    catalog = signer.catalog("writer")
    other = catalog.create_table(f"a.t{uuid.uuid4().hex[:8]}", schema=ROWS.schema)
    for one in table, other, table:
        one.append(ROWS.slice(0, 3))
    assert (len(table.scan().to_arrow()), len(other.scan().to_arrow())) == (6, 3)


def test_large_files_go_in_parts_and_missing_ones_are_missing(table):
    place = f"{table.location()}/data/large"
    assert not table.io.new_input(place).exists()
    with table.io.new_output(place).create() as out:
        for part in range(12):
            out.write(bytes([part]) * (5 << 20))
    assert len(table.io.new_input(place)) == 60 << 20
    with table.io.new_input(place).open() as data:
        data.seek((5 << 20) - 1)
        assert data.read(2) == b"\x00\x01"


def test_what_may_not_be_done_is_not_signed(signer, table):
    table.append(ROWS)
    elsewhere = f"s3://lake/wh/b/{uuid.uuid4().hex}"
    with pytest.raises((SignError, OSError)):
        with table.io.new_output(elsewhere).create(overwrite=True) as out:
            out.write(b"x")
    assert not signer.store.keys("lake", "wh/b/")
    read = signer.catalog("reader").load_table(table.name())
    with pytest.raises((SignError, OSError)):
        with read.io.new_output(f"{table.location()}/data/x").create(overwrite=True) as out:
            out.write(b"x")
    assert f"{table.location()}/data/x".removeprefix("s3://lake/") not in signer.store.keys("lake", "wh/a/")

# SPDX-License-Identifier: Apache-2.0
"""Tables whose files are in an object store (SeaweedFS), as a user of the program sees them."""
import os
import signal
from concurrent.futures import ThreadPoolExecutor

import duckdb
import pytest

from lib import avro
from lib import rows as R
from lib.lake import left_over
from lib.seaweed import KEY, SECRET

pytestmark = pytest.mark.xdist_group("s3")  # one store for all of them


def numbers(start, stop):
    return f"SELECT i AS id, 'n' || i AS name, (i % 3)::INT AS part FROM range({start}, {stop}) t(i)"


def ids(table, *args):
    return sorted(row["id"] for row in table.rows(*args))


# ---- a table's life ----


@pytest.mark.parametrize("version", [2, 3])
def test_a_table_lives_and_ends_in_the_store(stored, version):
    stored.create("id long, name string, part int", "--partition", "part", "--format-version", version)
    stored.append(numbers(0, 1000))
    assert ids(stored) == list(range(1000))
    stored("delete", "--where", "id < 10", "--mode", "merge-on-read").ok()
    stored("delete", "--where", "id = 20", "--mode", "copy-on-write").ok()
    stored("overwrite", "--where", "id >= 990", "--sql", numbers(2000, 2003)).ok()
    stored("upsert", "--key", "id", "--sql", "SELECT 30::BIGINT AS id, 'x' AS name, 0::INT AS part").ok()
    expected = sorted({*range(10, 990), *range(2000, 2003)} - {20})
    assert ids(stored) == expected
    assert [r["name"] for r in stored.rows("--where", "id = 30")] == ["x"]
    stored("compact", "--rewrite-all").ok()
    stored("rewrite-manifests").ok()
    stored("stats").ok()
    assert ids(stored) == expected
    before = stored.keys()
    stored("expire", "--retain-last", "1", "--older-than", "1ms").ok()
    assert len(stored.keys()) < len(before)
    assert ids(stored) == expected
    assert not left_over(stored.knut.tmp)
    stored("drop", "--purge").ok()
    assert stored.keys() == []


def test_nothing_of_a_file_is_seen_before_its_commit_and_orphans_go_in_batches(stored, store):
    stored.create("id long")
    stored.append("SELECT 1::BIGINT AS id")
    for i in range(25):
        store.put("lake", f"{stored.prefix}ns/t/data/lost-{i:03}.parquet", b"x")
    assert ids(stored) == [1]
    found = stored("orphans", "--older-than", "1ms", "--force", "--dry-run", "--output", "json").ok().rows
    assert len(found) == 25
    stored("orphans", "--older-than", "1ms", "--force").ok()
    assert not [k for k in stored.keys() if "lost" in k]
    assert ids(stored) == [1]


def test_keys_may_hold_what_partitions_hold(stored):
    values = ["a b", "x=y", "é", "50%", "a/b", "q?*[1]", "a+b&c#d", "%2F", "..", "s:p@1!", "", "'\"", "日本"]
    stored.create("id long, k string", "--partition", "k")
    rows = ", ".join("({}, '{}')".format(i, v.replace("'", "''")) for i, v in enumerate(values))
    stored.append(f"SELECT * FROM (VALUES {rows}, (99, NULL)) t(id, k)")
    assert {r["id"]: r["k"] for r in stored.rows()} == {**dict(enumerate(values)), 99: None}
    stored.delete("k = 'q?*[1]'")
    assert len(stored.rows()) == len(values)


def test_a_large_file_goes_in_parts_and_comes_in_ranges(stored):
    stored.create("id long, noise string, dt string", "--partition", "dt")
    done = stored.append("SELECT i AS id, md5(i::VARCHAR) || sha256(i::VARCHAR) AS noise, 'a b+c%25é@:!()*' AS dt "
                         "FROM range(500000) t(i)")
    assert done["added_bytes"] > 24 << 20  # more than one part
    assert stored.rows("--where", "id = 499999", "--columns", "id,noise") == [
        {"id": 499999, "noise": duckdb.sql("SELECT md5('499999') || sha256('499999')").fetchone()[0]}]
    assert stored("scan", "--count", "--output", "json").ok().out.strip().endswith("500000}")


def test_bare_tables_are_read_by_root_and_by_metadata(stored, stored_knut):
    stored.create("id long")
    stored.append("SELECT 1::BIGINT AS id")
    root = f"{stored.warehouse}/ns/t"
    assert stored_knut.json("table", "scan", "--root", root).ok().rows == [{"id": 1}]
    assert stored_knut.json("table", "scan", "--root", root.replace("s3:", "s3a:")).ok().rows == [{"id": 1}]
    newest = f"{stored.warehouse}/{sorted(k for k in stored.keys() if k.endswith('.json'))[-1]}"
    assert stored_knut.json("table", "scan", "--metadata", newest).ok().rows == [{"id": 1}]
    stored_knut("table", "scan", "--root", f"{root}x").fails(1, "no table here")
    stored_knut("table", "scan", "--root", "s3://no-such-bucket/t").fails(1, "NoSuchBucket")


def test_the_catalog_may_be_beside_a_folder_and_the_data_in_the_store(stored_knut, store, tmp_path):
    place = ("--warehouse", tmp_path / "wh", "--warehouse-uri", store.fresh("lake"), "--table", "ns.t")
    stored_knut("table", "create", *place, "--schema", "id long").ok()
    stored_knut("table", "append", *place, "--sql", "SELECT 5::BIGINT AS id").ok()
    assert stored_knut.json("table", "scan", *place).ok().rows == [{"id": 5}]
    assert os.listdir(tmp_path / "wh") == ["catalog.db"]


# ---- delivery ----


def test_a_stored_table_is_delivered_into_duckdb(stored, stored_delivery):
    stored.create("id long, name string, part int", "--identifier", "id")
    stored.append(numbers(0, 500))
    stored_delivery.run().ok()
    stored.append(numbers(500, 800))
    stored("delete", "--where", "id < 100").ok()
    stored_delivery.run().ok()
    with duckdb.connect(str(stored_delivery.file), read_only=True) as db:
        got = [{"id": i, "name": n, "part": p} for i, n, p in
               db.execute("SELECT id, name, part FROM main.copy").fetchall()]
    R.assert_same(got, stored.rows(), "the copy")


# ---- crashes and races ----


@pytest.mark.parametrize("point", ["io-upload-before", "io-write-before", "io-write-after"])
@pytest.mark.parametrize("n", [2])
def test_a_killed_append_leaves_the_table_as_it_was_or_whole(stored, point, n):
    stored.create("id long, name string, part int", "--partition", "part")
    stored.append(numbers(0, 10))
    done = stored("append", "--sql", numbers(10, 20), env={"KNUT_FAULT": f"{point}:{n}:kill"})
    assert done.rc == -signal.SIGKILL
    assert ids(stored) == list(range(10))
    stored.append(numbers(10, 20))
    assert ids(stored) == list(range(20))
    stored("orphans", "--older-than", "1ms", "--force").ok()
    assert ids(stored) == list(range(20))


def test_writers_at_the_same_time_lose_nothing(stored):
    stored.create("id long, name string, part int")
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda i: stored("append", "--sql", numbers(i * 10, i * 10 + 10)), range(8)))
    for each in done:
        each.ok()
    assert ids(stored) == list(range(80))


# ---- policy, TLS, and what is said when it does not work ----


@pytest.mark.parametrize("scheme", ["s3a", "s3n"])
def test_what_is_written_is_spelled_as_the_table_is(stored, store, tmp_path, scheme):
    """doris#67544: deletes named data files in the writer's own spelling, and applied to none of them."""
    place = f"{stored.warehouse}/elsewhere".replace("s3:", f"{scheme}:")
    stored.create("id long", "--location", place, "--property", "write.delete.mode=merge-on-read")
    stored.append("SELECT i AS id FROM range(10) t(i)")
    stored.delete("id < 3")
    files = stored("files", "--output", "json").ok().rows
    assert {f["content"] for f in files} == {"data", "position-deletes"}, files
    assert all(f["file"].startswith(place + "/") for f in files)
    assert all(key.startswith("elsewhere/") for key in stored.keys())
    deletes = next(f["file"] for f in files if f["content"] != "data")
    local = tmp_path / "deletes.parquet"
    local.write_bytes(store.get("lake", deletes.split("/lake/")[1]))
    named = duckdb.from_parquet(str(local)).project("file_path").distinct().fetchall()
    assert named == [(f["file"],) for f in files if f["content"] == "data"]
    assert ids(stored) == list(range(3, 10))


def test_a_file_outside_the_table_is_refused_unless_allowed(stored, store, tmp_path):
    """The manifest names a file in another folder of the store."""
    stored.create("id long")
    stored.append("SELECT 1::BIGINT AS id")
    local = tmp_path / "copy"
    store.download("lake", stored.prefix, local)
    data = next(local.rglob("*.parquet"))
    store.put("lake", "elsewhere/f.parquet", data.read_bytes())
    manifest = next(p for p in local.rglob("*.avro") if not p.name.startswith("snap-"))
    meta, records = avro.read(manifest)
    records[0]["data_file"]["file_path"] = "s3://lake/elsewhere/f.parquet"
    avro.write(manifest, meta, records)
    lists = next(p for p in local.rglob("snap-*.avro"))
    avro.rewrite(lists, lambda rows: rows[0].update(manifest_length=manifest.stat().st_size))
    for file in manifest, lists:
        store.put("lake", stored.prefix + str(file.relative_to(local)), file.read_bytes())
    stored("scan").fails(3, "'s3://lake/elsewhere/f.parquet' lies outside the table's location", "--allow-path")
    assert stored.rows("--allow-path", "s3://lake/elsewhere") == [{"id": 1}]


def test_tls_needs_the_right_authority(stored, store):
    stored.create("id long")
    secure = ("--s3-endpoint", store.tls_endpoint)
    stored("append", "--sql", "SELECT 1::BIGINT AS id", *secure, "--s3-ca", store.ca).ok()
    assert stored.rows(*secure, "--s3-ca", store.ca) == [{"id": 1}]
    stored("scan", *secure).fails(1, "certificate", "give the CA that signed its certificate")
    stored("scan", *secure, "--s3-ca", "/no/such.pem").fails(2, "CA file '/no/such.pem' is missing")
    stored("scan", "--s3-endpoint", store.tls_endpoint.replace("https", "http")).fails(1, "s3 GetObject")


@pytest.mark.parametrize("env,rc,words", [
    ({"KNUT_S3_SECRET_ACCESS_KEY": "wrong-secret"}, 1, "HTTP 403 SignatureDoesNotMatch.*check the secret key"),
    ({"KNUT_S3_ACCESS_KEY_ID": "nobody"}, 1, "HTTP 403 InvalidAccessKeyId.*check the credentials"),
    ({"KNUT_S3_ACCESS_KEY_ID": None}, 2, "has KNUT_S3_SECRET_ACCESS_KEY but not KNUT_S3_ACCESS_KEY_ID"),
    ({"KNUT_S3_ACCESS_KEY_ID": None, "KNUT_S3_SECRET_ACCESS_KEY": None, "AWS_EC2_METADATA_DISABLED": "true"}, 2,
     "no S3 credentials: set KNUT_S3_ACCESS_KEY_ID"),
    ({"KNUT_S3_ENDPOINT": "127.0.0.1:1"}, 2, "S3 endpoint '127.0.0.1:1': .*begins with neither"),
    ({"KNUT_S3_ENDPOINT": "http://127.0.0.1:1"}, 1, "127.0.0.1:1: .*check host and port"),
])
def test_what_does_not_work_is_said_in_one_line_without_secrets(stored, env, rc, words):
    stored.create("id long")
    done = stored("scan", env=env).fails(rc, words)
    assert SECRET not in done.err and "wrong-secret" not in done.err


def test_keys_of_other_names_open_the_store(stored, store, tmp_path):
    stored.create("id long")
    ours = {"KNUT_S3_ACCESS_KEY_ID": None, "KNUT_S3_SECRET_ACCESS_KEY": None}
    for key, secret in (("SKADE_S3_ACCESS_KEY_ID", "SKADE_S3_SECRET_ACCESS_KEY"),
                        ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), ("MINIO_ACCESS_KEY", "MINIO_SECRET_KEY")):
        stored("scan", env={**ours, key: KEY, secret: SECRET}).ok()
    profile = tmp_path / "credentials"
    profile.write_text(f"[lab]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n")
    stored("scan", env={**ours, "AWS_PROFILE": "lab", "AWS_SHARED_CREDENTIALS_FILE": profile}).ok()


@pytest.mark.parametrize("words,rc,answer", [
    (("--warehouse", "s3://lake/wh"), 2, "needs --db FILE"),
    (("--warehouse-uri", "s3://lake/wh", "--db", "x.db", "--s3-bucket", "other"), 2, "--s3-bucket is 'other'"),
    (("--warehouse", "/tmp", "--s3-endpoint", "http://h"), 2, "--s3-endpoint is for s3:// locations"),
    (("--root", "/tmp", "--s3-virtual-hosted"), 2, "--s3-virtual-hosted is for s3:// locations"),
    (("--warehouse", "s3://", "--db", "x.db"), (1, 2), "s3://"),
])
def test_flags_that_do_not_fit_are_told_before_credentials_are_looked_for(knut, words, rc, answer):
    command = "show" if words[0] == "--root" else "list"
    knut("table", command, *words, env={"AWS_EC2_METADATA_DISABLED": "true"}).fails(rc, answer)

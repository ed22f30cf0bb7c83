# SPDX-License-Identifier: Apache-2.0
"""The stand-in Doris, run as a program of its own; and deliveries into it."""
import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

from lib.lake import Delivery

FAKE = Path(__file__).resolve().parents[2] / "fakes/doris"
USER, PASSWORD = "loader", "p@ss:/%+é secret"
# Queries of rows from .. to; of wide ones a chunk of 1 MiB of source is some 400 kB: what waits in socket buffers is less.
SMALL = "SELECT range::BIGINT AS id, 'n' || range AS name FROM range({}, {})"
WIDE = "SELECT range::BIGINT AS id, " + " || ".join(f"md5('{k}' || range)" for k in range(16)) + " AS name FROM range({}, {})"
QUICK = {"connect-timeout": "2", "read-timeout": "3", "stall-timeout": "2", "grace": "0.3", "retry-wait": "0.01"}


class FakeDoris:
    """Ports and state stay the same over stop(), kill() and start()."""

    def __init__(self, folder, *words, password=PASSWORD):
        self.state, self.words, self.ports, self.process = Path(folder) / "doris.db", words, None, None
        self.password = password
        self.log = Path(folder) / "doris.log"
        self.start()

    def start(self):
        words = [sys.executable, str(FAKE), "--state", str(self.state), "--user", USER, "--password", self.password]
        if self.ports:
            words += ["--fe-port", str(self.ports["fe"]), "--be-ports", ",".join(map(str, self.ports["be"]))]
        self.process = subprocess.Popen([*words, *self.words], stdout=subprocess.PIPE, stderr=self.log.open("a"),
                                        env={**os.environ, "PYTHONIOENCODING": "utf-8"})
        line = self.process.stdout.readline()
        assert line, self.log.read_text()
        self.ports = json.loads(line)

    def end(self, sign=signal.SIGTERM):
        if self.process:
            self.process.send_signal(sign)
            self.process.wait(10)
            self.process.stdout.close()
            self.process = None

    def kill(self):
        self.end(signal.SIGKILL)

    @property
    def fe(self):
        return f"127.0.0.1:{self.ports['fe']}"

    @property
    def be(self):
        return [f"127.0.0.1:{port}" for port in self.ports["be"]]

    def sink(self, **settings):
        settings = {**QUICK, **{k.replace("_", "-"): v for k, v in settings.items()}}
        return f"doris:http://{self.fe}?" + "&".join(f"{k}={v}" for k, v in settings.items())

    # -- the test's own door --

    def ctl(self, what, arg=None):
        body = json.dumps(arg).encode() if arg is not None else b""
        request = urllib.request.Request(f"http://{self.fe}/__ctl/{what}", data=body, method="POST")
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)

    def run(self, sql, db="d"):
        answer = self.ctl("run", {"db": db, "sql": sql})
        assert answer["code"] == 0, answer
        return answer["data"]

    def faults(self, *rules):
        self.ctl("faults", list(rules))

    def rows(self, table="t", db="d"):
        return self.ctl("rows", {"db": db, "table": table})

    def applied(self, table="t", db="d"):
        return self.ctl("applied", {"db": db, "table": table})

    def counts(self):
        return self.ctl("counts")

    def check(self, table="t", db="d"):
        """What must hold after every scenario."""
        counts = self.counts()
        for name in "bad_headers", "fe_body_bytes", "stray_body", "other_body_same_label", "crashes", "overlaps":
            assert counts.get(name, 0) == 0, counts
        labels = [label for _, label, _ in self.applied(table, db)]
        assert len(labels) == len(set(labels)), f"a label was applied twice: {labels}"


def be(fault, arg=None, **more):
    return {"at": "be", "op": "load", "fault": fault, "arg": arg, **more}


def fe(fault, arg=None, op="load", **more):
    return {"at": "fe", "op": op, "fault": fault, "arg": arg, **more}


class DorisDelivery(Delivery):
    """A delivery into the stand-in; credentials come with the environment."""
    password = PASSWORD

    def command(self, command, *args, env=None, **more):
        secret = {"DORIS_USER": USER, "DORIS_PASSWORD": self.password}
        result = super().command(command, *args, env={**secret, **(env or {})}, **more)
        for text in (result.out, result.err):
            assert PASSWORD not in text and "p%40ss" not in text, str(result)
        return result

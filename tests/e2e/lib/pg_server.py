# SPDX-License-Identifier: Apache-2.0
"""A PostgreSQL server of one's own: Debian's programs, a throw-away folder, a random port.

Asked through psql. Rows come back spelled as lib.rows spells them, so that they compare with the
source's.
"""
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from lib import rows as R

LIMIT = 60  # seconds
PASSWORD = "s3cr3t-of-the-tests"


def programs():
    """The newest server's folder of programs."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda p: int(p.parts[-3]))
    assert found, "PostgreSQL is missing: run 'tools/setup test'"
    return found[-1].parent


def _identity():
    """Who runs the server: it refuses to be root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


class Server:
    """settings: of postgresql.conf, for this server only."""

    def __init__(self, settings=()):
        self.bin, self.port, self.settings = programs(), _free_port(), tuple(settings)
        self.base = Path(tempfile.mkdtemp(prefix="knut-postgres-", dir="/tmp"))
        self.data, self.process = self.base / "data", None
        who = _identity()
        password = self.base / "password"
        password.write_text(PASSWORD)
        if who:
            for path in self.base, password:
                os.chown(path, who["user"], who["group"])
        self._run("initdb", "-D", self.data, "-U", "knut", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync",
                  "-A", "scram-sha-256", f"--pwfile={password}")
        self.start()

    def _run(self, name, *args):
        done = subprocess.run([self.bin / name, *map(str, args)], capture_output=True, text=True, timeout=LIMIT,
                              cwd=self.base, check=False, **_identity())
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def start(self):
        words = [self.bin / "postgres", "-D", self.data, "-p", str(self.port), "-k", self.base, "-h", "127.0.0.1"]
        for setting in ("fsync=off", "shared_buffers=64MB", "max_wal_size=256MB", *self.settings):
            words += ["-c", setting]
        with open(self.base / "log", "ab") as log:
            self.process = subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=self.base,
                                            **_identity())
        deadline = time.monotonic() + LIMIT
        ready = [self.bin / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port), "-t", "5"]
        while subprocess.run(ready, check=False).returncode != 0:
            assert self.process.poll() is None and time.monotonic() < deadline, self.log()

    def end(self, how=signal.SIGINT):
        """SIGINT: a fast shutdown; SIGQUIT: an immediate one, as a crash."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait(LIMIT)

    def restart(self, how=signal.SIGINT):
        self.end(how)
        self.start()

    def close(self):
        self.end(signal.SIGQUIT)
        shutil.rmtree(self.base, ignore_errors=True)

    def log(self):
        return (self.base / "log").read_text(errors="replace")

    @property
    def environment(self):
        return {"PGUSER": "knut", "PGPASSWORD": PASSWORD}

    def sink(self, database="postgres"):
        return f"postgresql://127.0.0.1:{self.port}/{database}"

    def psql(self, sql, database="postgres", check=True):
        words = [self.bin / "psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(self.port),
                 "-d", database, "-c", sql]
        done = subprocess.run(words, env={**os.environ, **self.environment, "PGTZ": "UTC"}, capture_output=True,
                              text=True, timeout=LIMIT, check=False)
        assert not check or done.returncode == 0, f"{sql}\n{done.stderr}"
        return done.stdout.rstrip("\n")

    def ask(self, sql, **more):
        """The answer's rows, each a dict of JSON values."""
        out = self.psql(f"SELECT row_to_json(q) FROM ({sql}) q", **more)
        return [json.loads(line) for line in out.splitlines()]

    # -- rows spelled as everywhere --

    _EPOCH = "(extract(epoch FROM {}) * 1000000)::bigint"
    _AS = {"numeric": "{}::text", "bytea": "'0x' || encode({}, 'hex')", "date": "{} - date '1970-01-01'",
           "time without time zone": _EPOCH, "timestamp without time zone": _EPOCH,
           "timestamp with time zone": _EPOCH}
    _SPELL = {"date": R._date, "time without time zone": lambda us: R._clock(us * 1000, 9)}

    @staticmethod
    def _moment(us, zone):
        days, rest = divmod(us, 86400 * 10**6)
        return f"{R._date(days)}T{R._clock(rest * 1000, 9)}{zone}"

    def columns(self, target):
        """(name, type) in the table's order."""
        found = self.ask(f"SELECT attname, format_type(atttypid, NULL) AS type FROM pg_attribute WHERE attrelid = "
                         f"'{target}'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum")
        return [(c["attname"], c["type"]) for c in found]

    def rows(self, target):
        columns = self.columns(target)
        quoted = [('"' + name.replace('"', '""') + '"', kind) for name, kind in columns]
        parts = [f"{self._AS.get(kind, '{}').format(name)} AS {name}" for name, kind in quoted]
        spell = {**self._SPELL, "timestamp without time zone": lambda us: self._moment(us, ""),
                 "timestamp with time zone": lambda us: self._moment(us, "Z")}
        rows = []
        out = self.psql(f"SELECT row_to_json(q) FROM (SELECT {', '.join(parts)} FROM {target}) q")
        for line in out.split("\n") if out else ():
            row = json.loads(line, parse_int=lambda text: -0.0 if text == "-0" else int(text))
            rows.append({name: spell[kind](row[name]) if kind in spell and row[name] is not None else row[name]
                         for name, kind in columns})
        return rows

# SPDX-License-Identifier: Apache-2.0
"""A PostgreSQL server of a test's own: a throw-away folder, a random port, stopped by its pid file.

Debian's package postgresql has the programs (tools/setup puts it in); the one that Debian starts by
itself is not touched. As root the server runs as the user postgres, who must be able to enter the
folder: it is made under /tmp, not in a test's folder.

    with Postgres() as pg:
        pg.uri(), pg.sql("SELECT 1")

C tests start one by `python3 tests/e2e/lib/postgres.py start`, which prints FOLDER and URI on a line,
and stop it by `... stop FOLDER`.
"""
import glob
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

OPTIONS = ("-c fsync=off -c full_page_writes=off -c max_connections=200 -c shared_buffers=32MB"
           " -c listen_addresses=127.0.0.1 -c logging_collector=off -c autovacuum=off")


def programs():
    """The folder with initdb and pg_ctl; None when PostgreSQL is not installed."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
    named = shutil.which("initdb")
    if not found and named:
        found = [os.path.realpath(named)]
    return Path(found[-1]).parent if found else None


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


class Postgres:
    def __init__(self, folder=None):
        self.bin = programs()
        assert self.bin, "PostgreSQL is not installed: run 'tools/setup test'"
        self.folder = Path(folder or tempfile.mkdtemp(prefix="knut-pg-", dir="/tmp"))
        self.port = int((self.folder / "port").read_text()) if folder else 0

    def run(self, *words):
        """One of PostgreSQL's programs, as a user that it accepts."""
        as_user = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}
        done = subprocess.run([self.bin / words[0], *words[1:]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL, text=True, cwd="/", timeout=120, **as_user)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, words))}: {done.stdout}")
        return done.stdout

    def start(self):
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(self.folder, user.pw_uid, user.pw_gid)
        self.run("initdb", "-D", self.folder / "data", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C.UTF-8",
                 "--no-sync")
        for _ in range(5):  # another program may take the port first
            self.port = free_port()
            try:
                self.launch()
                break
            except RuntimeError as why:
                last = why
        else:
            raise last
        (self.folder / "port").write_text(str(self.port))
        return self

    def launch(self):
        self.run("pg_ctl", "start", "-w", "-t", "60", "-D", self.folder / "data", "-l", self.folder / "log",
                 "-o", f"{OPTIONS} -p {self.port} -k {self.folder}")

    def stop(self, mode="immediate"):
        self.run("pg_ctl", "stop", "-w", "-m", mode, "-D", self.folder / "data")

    def restart(self):
        """Every connection breaks."""
        self.stop("fast")
        self.launch()

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def uri(self, database="postgres", user="postgres"):
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def sql(self, text, database="postgres"):
        """What psql prints: fields by |, rows by lines."""
        return self.run("psql", "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-d", self.uri(database), "-c", text).strip()

    def database(self, name):
        """A new empty database's address."""
        self.sql(f"CREATE DATABASE {name}")
        return self.uri(name)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        try:
            self.stop()
        finally:
            self.remove()


def main():
    if sys.argv[1:] == ["start"]:
        pg = Postgres()
        try:
            pg.start()
        except BaseException:
            pg.remove()
            raise
        print(pg.folder, pg.uri())
    elif len(sys.argv) == 3 and sys.argv[1] == "stop":
        Postgres(sys.argv[2]).__exit__()
    else:
        sys.exit("usage: postgres.py start | stop FOLDER")


if __name__ == "__main__":
    main()

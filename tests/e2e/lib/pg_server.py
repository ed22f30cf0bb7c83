# SPDX-License-Identifier: Apache-2.0
"""lib.postgres with a role that needs a password, for tests of deliveries.

Asked through psql over the server's socket. Rows come back spelled as lib.rows spells them, so that
they compare with the source's.
"""
import json
import subprocess

from lib import rows as R
from lib.postgres import Postgres

LIMIT = 60  # seconds
PASSWORD = "s3cr3t-of-the-tests"


class Server(Postgres):
    def __init__(self):
        super().__init__()
        self.start()
        self.psql(f"CREATE ROLE knut SUPERUSER LOGIN PASSWORD '{PASSWORD}'")
        rules = self.folder / "data" / "pg_hba.conf"
        rules.write_text("local all all trust\nhost all all all scram-sha-256\n")
        self.run("pg_ctl", "reload", "-D", self.folder / "data")

    def close(self):
        self.__exit__()

    @property
    def environment(self):
        return {"PGUSER": "knut", "PGPASSWORD": PASSWORD}

    def sink(self, database="postgres"):
        return f"postgresql://127.0.0.1:{self.port}/{database}"

    def words(self, database="postgres"):
        return [self.bin / "psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-h", self.folder, "-p", str(self.port), "-U",
                "postgres", "-d", database]

    def psql(self, sql, database="postgres", check=True):
        done = subprocess.run([*self.words(database), "-c", "SET TIME ZONE UTC", "-c", sql], capture_output=True, text=True,
                              timeout=LIMIT, check=False)
        assert not check or done.returncode == 0, f"{sql}\n{done.stderr}"
        return done.stdout.rstrip("\n")

    def ask(self, sql, **more):
        """The answer's rows, each a dict of JSON values."""
        out = self.psql(f"SELECT row_to_json(q) FROM ({sql}) q", **more)
        return [json.loads(line) for line in out.splitlines()]

    def hold(self, sql):
        """A session that ran sql in a transaction which stays open until its end()."""
        return Session(self, f"BEGIN; {sql};")

    # -- rows spelled as everywhere --

    _EPOCH = "(extract(epoch FROM {}) * 1000000)::bigint"
    _AS = {"numeric": "{}::text", "bytea": "'0x' || encode({}, 'hex')", "date": "{} - date '1970-01-01'",
           "time without time zone": _EPOCH, "timestamp without time zone": _EPOCH,
           "timestamp with time zone": _EPOCH}
    _SPELL = {"date": R._date, "time without time zone": lambda us: R._clock(us * 1000, 9)}

    @staticmethod
    def _number(text):
        """jsonb writes 1e300 with all its digits."""
        return -0.0 if text == "-0" else int(text) if len(text.lstrip("-")) < 20 else float(text)

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
            row = json.loads(line, parse_int=self._number)
            rows.append({name: spell[kind](row[name]) if kind in spell and row[name] is not None else row[name]
                         for name, kind in columns})
        return rows


class Session:
    def __init__(self, server, sql):
        self.process = subprocess.Popen(server.words(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdin.write(f"{sql}\n\\echo done\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def end(self):
        self.process.communicate("ROLLBACK;\n", timeout=LIMIT)

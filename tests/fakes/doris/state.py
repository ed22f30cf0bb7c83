# SPDX-License-Identifier: Apache-2.0
"""Transactions, labels and rows, in a SQLite file that survives the process.

A commit writes rows and the transaction's state at once, so a killed server has either both or none.
Sources: FE transaction/DatabaseTransactionMgr.java, common/Config.java of apache/doris.
"""
import json
import re
import sqlite3
import threading
import time

from tables import Plan, parse_create

KEEP_SECONDS, KEEP_NEWEST = 43200, 2000
LABEL = re.compile(r"[-_A-Za-z0-9:]{1,128}")
FINAL = ("COMMITTED", "VISIBLE", "ABORTED")


class Exists(Exception):
    def __init__(self, label, txn, state):
        job = {"PREPARE": "RUNNING", "PRECOMMITTED": "PRECOMMITTED"}.get(state, "FINISHED")
        super().__init__(f"[LABEL_ALREADY_EXISTS]TStatus: errCode = 2, detailMessage = Label [{label}] has already "
                         f"been used, relate to txn [{txn}], status [{state}].")
        self.job = job


class State:
    def __init__(self, path):
        self.lock = threading.RLock()
        self.db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self.db.executescript("""
            PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;
            CREATE TABLE IF NOT EXISTS tables(db, name, ddl, PRIMARY KEY(db, name));
            CREATE TABLE IF NOT EXISTS txns(id INTEGER PRIMARY KEY, db, label, tbl, state, began, finished, timeout,
                                            staged, reason DEFAULT '');
            CREATE INDEX IF NOT EXISTS by_label ON txns(db, label);
            CREATE TABLE IF NOT EXISTS rows(db, tbl, key, row, sign, seq);
            CREATE UNIQUE INDEX IF NOT EXISTS by_key ON rows(db, tbl, key) WHERE key IS NOT NULL;
            CREATE TABLE IF NOT EXISTS applied(txn, db, tbl, label, rows_in);
            CREATE TABLE IF NOT EXISTS bodies(db, label, hash, PRIMARY KEY(db, label));
            CREATE TABLE IF NOT EXISTS counts(name PRIMARY KEY, n);
            CREATE TABLE IF NOT EXISTS clock(offset);
        """)
        row = self.db.execute("SELECT offset FROM clock").fetchone()
        self.offset = row[0] if row else 0
        self.keep_newest = KEEP_NEWEST
        # What a backend had in hand when the server died is gone.
        self.db.execute("UPDATE txns SET state = 'ABORTED', finished = ?, reason = 'BE restarted', staged = NULL "
                        "WHERE state = 'PREPARE'", (self.now(),))

    # -- time --

    def now(self):
        return time.time() + self.offset

    def move_clock(self, seconds):
        with self.lock:
            self.offset += seconds
            self.db.execute("DELETE FROM clock")
            self.db.execute("INSERT INTO clock VALUES (?)", (self.offset,))

    def end_overdue(self):
        now = self.now()
        self.db.execute("UPDATE txns SET state = 'ABORTED', finished = ?, staged = NULL, reason = 'timeout by txn "
                        "manager' WHERE state = 'PREPARE' AND began + timeout < ?", (now, now))
        self.db.execute("UPDATE txns SET state = 'ABORTED', finished = ?, staged = NULL, reason = 'precommit timeout' "
                        "WHERE state = 'PRECOMMITTED' AND began + 3600 < ?", (now, now))

    def tick(self, db):
        self.end_overdue()
        self.db.execute("DELETE FROM txns WHERE state IN ('VISIBLE', 'ABORTED') AND finished + ? < ?",
                        (KEEP_SECONDS, self.now()))
        self.db.execute("DELETE FROM txns WHERE db = ? AND id IN (SELECT id FROM txns WHERE db = ? AND state IN "
                        "('VISIBLE', 'ABORTED') ORDER BY finished DESC, id DESC LIMIT -1 OFFSET ?)",
                        (db, db, self.keep_newest))

    def count(self, name, n=1):
        with self.lock:
            self.db.execute("INSERT INTO counts VALUES (?, ?) ON CONFLICT(name) DO UPDATE SET n = n + excluded.n",
                            (name, n))

    def counts(self):
        with self.lock:
            return dict(self.db.execute("SELECT name, n FROM counts"))

    # -- tables --

    def create(self, sql, default_db):
        table = parse_create(sql, default_db)
        with self.lock:
            if self.table(table.db, table.name):
                raise Plan(f"errCode = 2, detailMessage = Table '{table.name}' already exists")
            self.db.execute("INSERT INTO tables VALUES (?, ?, ?)", (table.db, table.name, table.ddl()))

    def table(self, db, name):
        with self.lock:
            row = self.db.execute("SELECT ddl FROM tables WHERE db = ? AND name = ?", (db, name)).fetchone()
        return parse_create(row[0], db) if row else None

    def replace(self, table):
        with self.lock:
            self.db.execute("UPDATE tables SET ddl = ? WHERE db = ? AND name = ?", (table.ddl(), table.db, table.name))

    def tables(self):
        with self.lock:
            return self.db.execute("SELECT db, name FROM tables ORDER BY 1, 2").fetchall()

    def databases(self):
        with self.lock:
            return {r[0] for r in self.db.execute("SELECT DISTINCT db FROM tables")}

    def truncate(self, db, name):
        with self.lock:
            self.db.execute("DELETE FROM rows WHERE db = ? AND tbl = ?", (db, name))
            # Loads in flight wrote into partitions that are no more.
            self.db.execute("UPDATE txns SET staged = '[]' WHERE db = ? AND tbl = ? AND state IN "
                            "('PREPARE', 'PRECOMMITTED')", (db, name))

    def drop(self, db, name):
        self.truncate(db, name)
        with self.lock:
            self.db.execute("DELETE FROM tables WHERE db = ? AND name = ?", (db, name))

    def rows(self, db, name):
        with self.lock:
            found = self.db.execute("SELECT row FROM rows WHERE db = ? AND tbl = ? AND sign = 0", (db, name)).fetchall()
        return [json.loads(r[0]) for r in found]

    def applied(self, db, name):
        with self.lock:
            return self.db.execute("SELECT txn, label, rows_in FROM applied WHERE db = ? AND tbl = ? ORDER BY txn",
                                   (db, name)).fetchall()

    # -- transactions --

    def newest(self, db, label):
        with self.lock:
            self.tick(db)
            return self.db.execute("SELECT id, state, reason FROM txns WHERE db = ? AND label = ? ORDER BY id DESC",
                                   (db, label)).fetchone()

    def begin(self, db, table, label, timeout):
        with self.lock:
            if not LABEL.fullmatch(label):
                raise Plan(f"[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = Label format error. regex: "
                           f"^[\\-_A-Za-z0-9:]{{1,128}}$, label: {label}")
            found = self.newest(db, label)
            if found and found[1] != "ABORTED":
                raise Exists(label, found[0], found[1])
            cursor = self.db.execute("INSERT INTO txns(db, label, tbl, state, began, finished, timeout) VALUES "
                                     "(?, ?, ?, 'PREPARE', ?, 0, ?)", (db, label, table, self.now(), timeout))
            return cursor.lastrowid

    def abort(self, txn, reason):
        with self.lock:
            self.db.execute("UPDATE txns SET state = 'ABORTED', finished = ?, reason = ?, staged = NULL WHERE id = ? "
                            "AND state IN ('PREPARE', 'PRECOMMITTED')", (self.now(), reason, txn))

    def state_of(self, txn):
        with self.lock:
            row = self.db.execute("SELECT state, reason FROM txns WHERE id = ?", (txn,)).fetchone()
        return row or ("ABORTED", "forgotten")

    def precommit(self, txn, rows):
        """False when the transaction is not open any more. Its hour counts from now."""
        with self.lock:
            done = self.db.execute("UPDATE txns SET state = 'PRECOMMITTED', staged = ?, began = ? WHERE id = ? AND "
                                   "state = 'PREPARE'", (json.dumps(rows), self.now(), txn))
            return done.rowcount == 1

    def commit(self, txn, rows, visible=True):
        """False when the transaction is not open any more."""
        with self.lock:
            self.db.execute("BEGIN IMMEDIATE")
            try:
                self.end_overdue()
                found = self.db.execute("SELECT db, tbl, label, state, staged FROM txns WHERE id = ?", (txn,)).fetchone()
                if not found or found[3] in FINAL:
                    return False
                db, name, label, _, staged = found
                if staged is not None:
                    rows = json.loads(staged)
                table = self.table(db, name)
                if table:
                    self._apply(table, rows)
                self.db.execute("INSERT INTO applied VALUES (?, ?, ?, ?, ?)", (txn, db, name, label, len(rows)))
                self.db.execute("UPDATE txns SET state = ?, finished = ?, staged = NULL WHERE id = ?",
                                ("VISIBLE" if visible else "COMMITTED", self.now(), txn))
                return True
            finally:
                self.db.execute("COMMIT")

    def publish(self, txn):
        with self.lock:
            self.db.execute("UPDATE txns SET state = 'VISIBLE' WHERE id = ? AND state = 'COMMITTED'", (txn,))

    def _apply(self, table, rows):
        if table.model == "DUP":
            self.db.executemany("INSERT INTO rows VALUES (?, ?, NULL, ?, 0, NULL)",
                                [(table.db, table.name, json.dumps(values)) for values, _, _ in rows])
            return
        for values, sign, sequence in rows:
            key = json.dumps([values[k] for k in table.keys])
            self.db.execute("INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT(db, tbl, key) WHERE key IS NOT NULL "
                            "DO UPDATE SET row = excluded.row, sign = excluded.sign, seq = excluded.seq "
                            "WHERE excluded.seq IS NULL OR rows.seq IS NULL OR excluded.seq >= rows.seq",
                            (table.db, table.name, key, json.dumps(values), sign, sequence))

    def note_body(self, db, label, digest):
        """Counts a label whose bytes have changed."""
        with self.lock:
            row = self.db.execute("SELECT hash FROM bodies WHERE db = ? AND label = ?", (db, label)).fetchone()
            if row and row[0] != digest:
                self.count("other_body_same_label")
            self.db.execute("INSERT OR REPLACE INTO bodies VALUES (?, ?, ?)", (db, label, digest))

    def states(self, db):
        """[number, label, state] of all transactions that are remembered."""
        with self.lock:
            self.tick(db)
            return self.db.execute("SELECT id, label, state FROM txns WHERE db = ? ORDER BY id", (db,)).fetchall()

    def find(self, db, txn, label):
        """(id, state, reason) by number, or the newest by label; None."""
        if not txn:
            return self.newest(db, label)
        with self.lock:
            self.tick(db)
            return self.db.execute("SELECT id, state, reason FROM txns WHERE db = ? AND id = ?", (db, txn)).fetchone()

    def abort_2pc(self, db, txn, label):
        """The words of the answer: (status, text)."""
        found, who = self.find(db, txn, label), f"transaction [{txn}]" if txn else f"label [{label}]"
        if not found:
            return "ANALYSIS_ERROR", f"transaction [{txn}] not found" if txn else f"transaction not found, label={label}"
        number, state, reason = found
        if state in ("COMMITTED", "VISIBLE"):
            return "ANALYSIS_ERROR", f"transaction [{number}] is already {state}, could not abort." if txn else \
                f"running transaction not found, label={label}"
        if state == "ABORTED":
            return "ANALYSIS_ERROR", f"transaction [{number}] is already aborted, abort reason: {reason}"
        self.abort(number, "User Abort")
        return "Success", f"{who} abort successfully."

    def commit_2pc(self, db, txn, label):
        with self.lock:
            found, who = self.find(db, txn, label), f"transaction [{txn}]" if txn else f"label [{label}]"
            if not found:
                return "ANALYSIS_ERROR", f"transaction [{txn}] not found" if txn else f"transaction not found, label={label}"
            number, state, reason = found
            words = {"COMMITTED": "already committed, not pre-committed.", "VISIBLE": "already visible, not pre-committed.",
                     "ABORTED": f"already aborted. abort reason: {reason}", "PREPARE": "prepare, not pre-committed."}
            if state != "PRECOMMITTED":
                return "ANALYSIS_ERROR", f"TStatus: errCode = 2, detailMessage = transaction [{number}] is {words[state]}"
            self.commit(number, [])
            return "Success", f"{who} commit successfully."

    def close(self):
        with self.lock:
            self.db.close()

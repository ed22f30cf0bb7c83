# SPDX-License-Identifier: Apache-2.0
"""The frontend and the backends: what they answer, in the order in which Doris checks (loads of a backend: backend_load.py).

Sources: FE httpv2/rest/LoadAction.java, RestBaseController.java, StmtExecutionAction.java,
GetStreamLoadState.java, TableSchemaAction.java; BE http/action/stream_load.cpp,
stream_load_2pc.cpp, runtime/stream_load/stream_load_context.cpp of apache/doris.
"""
import base64
import json
import re
import ssl
import threading
import time
from urllib.parse import parse_qs, quote, unquote, urlsplit

import loads
from backend_load import BackendLoad
from faults import Faults
from state import State
from tables import Column, Plan, as_text, parse_type
from wire import Gone, listen, serve

REQUIRED = ("expect", "content-length", "label", "group_commit", "timeout", "timezone", "format", "columns",
            "strict_mode", "max_filter_ratio", "authorization")


class Doris:
    def __init__(self, options):
        self.options = options
        self.user, self.password = options.user, options.password
        self.profile = options.profile
        self.state, self.faults = State(options.state), Faults()
        self.turn, self.lock, self.pages = 0, threading.Lock(), []
        self.running, self.asked = set(), []  # loads that backends have in hand; (time, label) of all that came
        self.workers = [threading.Semaphore(options.workers or 1000) for _ in options.be_ports]
        self.blackhole = listen(options.host, 0)  # accepts (by its backlog) and says nothing
        self.fe = listen(options.host, options.fe_port)
        self.bes = [listen(options.host, port) for port in options.be_ports]
        serve(self.fe, self.serve_fe)
        if options.tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(options.tls)
            self.fe_tls = listen(options.host, 0)
            serve(self.fe_tls, self.serve_fe, context)
        for i, sock in enumerate(self.bes):
            serve(sock, lambda conn, i=i: self.serve_be(conn, i))

    def port(self, sock):
        return sock.getsockname()[1]

    def address(self, i):
        return f"{self.options.host}:{self.port(self.bes[i])}"

    # ---- both ----

    def authorized(self, headers):
        word, _, code = headers.get("authorization", "").partition(" ")
        if word.lower() != "basic":
            return "Need auth information."
        try:
            user, _, password = base64.b64decode(code).decode().partition(":")
        except ValueError:
            return "Need auth information."
        if (user, password) != (self.user, self.password):
            return f"Access denied for user '{user}@127.0.0.1' (using password: YES)"
        return None

    @staticmethod
    def shape_b(code, data, msg=None):
        names = {0: "success", 1: "Error", 401: "Unauthorized", 403: "Bad Request", 404: "Not Found"}
        return {"msg": msg or names[code], "code": code, "data": data, "count": 0}

    @staticmethod
    def drop_body(conn, headers):
        left = int(headers.get("content-length", 0))
        body = b""
        while len(body) < left:
            body += conn.take(left - len(body))
        return body

    # ---- frontend ----

    def serve_fe(self, conn):
        while (request := conn.head()) is not None:
            method, target, headers = request
            parts = urlsplit(target)
            path = [unquote(p) for p in parts.path.split("/")[1:]]
            if path[0] == "__ctl":
                self.control(conn, path[1], headers)
            elif path[-1] == "_stream_load" and method == "PUT":
                if not self.fe_load(conn, path, headers):
                    return
            else:
                self.fe_small(conn, method, path, parse_qs(parts.query), headers)

    def fe_small(self, conn, method, path, query, headers):
        op = {"health": "health", "_schema": "schema", "get_load_state": "state", "_stream_load_2pc": "2pc"}.get(
            path[-1], "query")
        label = query.get("label", [headers.get("label", "")])[0]
        body = self.drop_body(conn, headers) if "expect" not in headers else b""
        fault, arg = self.faults.take("fe", op, label)
        if fault == "close":
            conn.close()
            raise Gone
        if fault == "hang":
            conn.wait_gone()
            raise Gone
        if fault == "http":
            return conn.answer(int(arg), b"busy")
        if fault == "html_200":
            return conn.answer(200, b"<html>proxy</html>")
        if fault == "error":
            return conn.answer_json(self.shape_b(1, arg or "getLabelState failed"))
        if fault == "state":
            return conn.answer_json(self.shape_b(0, arg))
        if fault == "delay":
            time.sleep(arg / 1000)
        if op == "health":
            return conn.answer_json(self.shape_b(0, {"total_backend_num": len(self.bes),
                                                     "online_backend_num": len(self.bes)}))
        denied = self.authorized(headers)
        if denied:
            return conn.answer_json(self.shape_b(401, denied))
        if op == "schema":
            return conn.answer_json(self.schema(path[1], path[2]))
        if op == "state":
            return conn.answer_json(self.load_state(path[1], label))
        if op == "2pc":
            return conn.answer(307, b"", [("Location", self.location(self.next_be(), "/" + "/".join(path)))])
        if path[1] == "backends":
            return conn.answer_json(self.shape_b(0, {"backends": [
                {"ip": self.options.host, "http_port": self.port(b), "is_alive": True} for b in self.bes]}))
        if method == "POST" and path[1:2] == ["query"]:
            return conn.answer_json(self.statement(path[-1], json.loads(body)["stmt"]))
        return conn.answer(404, b"Not Found")

    def schema(self, db, name):
        table = self.state.table(db, name)
        if not table:
            known = db in self.state.databases() | {self.options.database}
            words = f"errCode = 7, detailMessage = table not found, tableName={name}" if known else \
                f"errCode = 7, detailMessage = unknown databases, dbName={db}"
            return self.shape_b(1, words)
        columns = [{"name": c.name, "type": c.type.name, "comment": "", "aggregation_type": "",
                    "is_nullable": "No" if c.not_null else "Yes"} for c in table.columns]
        return self.shape_b(0, {"status": 200, "keysType": f"{table.model}_KEYS", "properties": columns})

    def load_state(self, db, label):
        if not label:
            return self.shape_b(403, "No label selected")
        found = self.state.newest(db, label)
        return self.shape_b(0, found[1] if found else "UNKNOWN")

    def statement(self, db, sql):
        try:
            return self.shape_b(0, self.run(db, sql))
        except Plan as wrong:
            return self.shape_b(1, f"Failed to execute sql: {wrong}")

    def run(self, db, sql):
        def table_of(text):
            names = [n for pair in re.findall(r"`([^`]+)`|(\w+)", text) for n in pair if n]
            table = self.state.table(names[0] if len(names) > 1 else db, names[-1])
            if not table:
                raise Plan(f"errCode = 2, detailMessage = Table [{names[-1]}] does not exist in database [{db}].")
            return table
        sql = sql.strip().rstrip(";")
        if m := re.match(r"SHOW CREATE TABLE (.+)$", sql, re.I):
            table = table_of(m[1])
            return {"type": "result_set", "meta": [{"name": "Table"}, {"name": "Create Table"}],
                    "data": [[table.name, table.ddl()]], "time": 1}
        if m := re.match(r"SELECT count\(\*\) FROM (.+)$", sql, re.I):
            table = table_of(m[1])
            return {"type": "result_set", "meta": [{"name": "count(*)"}],
                    "data": [[len(self.state.rows(table.db, table.name))]], "time": 1}
        if m := re.match(r"SELECT CAST\(`(\w+)` AS STRING\) FROM (\S+) WHERE `id` = (\d+)$", sql, re.I):
            table = table_of(m[2])
            found = [r[m[1]] for r in self.state.rows(table.db, table.name) if r["id"] == int(m[3])]
            return {"type": "result_set", "meta": [{"name": m[1]}],
                    "data": [[as_text(v, table.column(m[1]).type)] for v in found], "time": 1}
        if m := re.match(r"DROP TABLE IF EXISTS (.+)$", sql, re.I):
            names = re.findall(r"`([^`]+)`", m[1])
            self.state.drop(*names)
            return {"type": "exec_status", "status": {}, "time": 1}
        if m := re.match(r"TRUNCATE TABLE (.+)$", sql, re.I):
            table = table_of(m[1])
            self.state.truncate(table.db, table.name)
        elif m := re.match(r"ALTER TABLE (\S+) ADD COLUMN (`[^`]+`|\w+) (\S+)(.*)$", sql, re.I):
            table = table_of(m[1])
            table.columns.append(Column(m[2].strip("`"), parse_type(m[3]), "NOT NULL" in m[4].upper()))
            self.state.replace(table)
        elif re.match(r"CREATE TABLE", sql, re.I):
            self.state.create(sql, db)
        else:
            raise Plan(f"the stand-in does not know this statement: {sql[:60]}")
        return {"type": "exec_status", "status": {}, "time": 1}

    def next_be(self):
        with self.lock:
            self.turn += 1
            return self.turn % len(self.bes)

    def location(self, be, path, userinfo=True, tls=False):
        user = f"{quote(self.user, safe='')}:{quote(self.password, safe='')}@" if userinfo else ""
        tail = "" if self.profile >= "4.1" else "?"
        return f"http{'s' * tls}://{user}{self.address(be)}{quote(path)}{tail}"

    def fe_refusal(self, path, headers):
        """Checks in the order of LoadAction: (shape, words), or None."""
        commit = headers.get("group_commit")
        if commit is not None and commit not in ("sync_mode", "async_mode", "off_mode"):
            return {"status": "FAILED",
                    "msg": "Header `group_commit` can only be `sync_mode`, `async_mode` or `off_mode`."}
        denied = self.authorized(headers)
        if denied:
            return self.shape_b(401, denied)
        if "expect" not in headers:
            return {"status": "FAILED", "msg": "There is no 100-continue header"}
        if not path[1]:
            return {"status": "FAILED", "msg": "No database selected."}
        if not path[2]:
            return {"status": "FAILED", "msg": "No table selected."}
        return None

    def fe_load(self, conn, path, headers):
        """False: the connection is done."""
        self.note_headers(headers)
        label, self_path = headers.get("label", ""), "/" + "/".join(path)
        fault, arg = self.faults.take("fe", "load", label)
        if fault == "hang_before_307":
            self.wait_counting(conn)
            return False
        if fault == "delay":
            self.wait_counting(conn, arg / 1000)
        if fault in ("close", "rst_on_body"):
            if conn.buffer:
                self.state.count("fe_body_bytes", len(conn.buffer))
            (conn.reset if fault == "rst_on_body" else conn.close)()
            return False
        if fault == "http":
            conn.answer(int(arg), b"unavailable", [("Connection", "close")])
            return False
        if fault == "send_100_first":
            for _ in range(arg or 1):
                conn.send(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.wait_counting(conn, 0.2)
        if fault == "send_100_only":
            conn.send(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.wait_counting(conn)
            return False
        if fault == "html_200":
            conn.answer(200, b"<html>login</html>")
            return False
        if fault == "mysql":
            conn.send(b"J\0\0\0\n5.7.99\0junk")
            return False
        if fault == "auth_fail":
            conn.answer_json(self.shape_b(401, "Access denied for user 'x' (using password: YES)"))
            return False
        if fault == "no_backend":
            conn.answer_json({"status": "FAILED", "msg": "errCode = 2, detailMessage = No backend available for load, "
                                                         "please check the status of your backends."})
            return False
        refusal = self.fe_refusal(path, headers)
        if refusal:
            conn.answer_json(refusal)
            return False
        where = self.location(self.next_be(), self_path, tls=conn.tls)
        if fault == "redirect":
            where = self.strange_redirect(arg, self_path)
        conn.answer(307, b"<html></html>", [("Location", where), ("Connection", "keep-alive")])
        self.wait_counting(conn, 0.02)
        return False

    def strange_redirect(self, kind, path):
        be = self.address(self.next_be())
        dead = listen(self.options.host, 0)
        dead_port = self.port(dead)
        dead.close()
        host = self.options.host
        return {"dead": f"http://u:p@{host}:{dead_port}{path}?", "blackhole": f"http://u:p@{host}:{self.port(self.blackhole)}{path}",
                "self_loop": f"http://u:p@{host}:{self.port(self.fe)}{path}", "https": f"https://u:p@{be}{path}",
                "no_userinfo": f"http://{be}{path}", "bad_userinfo": f"http://ro@ot:p@ss:/%+é@{be}{path}?",
                "no_trailing": self.location(self.next_be(), path).rstrip("?"), "garbage": "nowhere at all"}[kind]

    def wait_counting(self, conn, seconds=None):
        """Counts body bytes that come though nobody asked for them."""
        conn.sock.settimeout(seconds)
        try:
            while True:
                self.state.count("fe_body_bytes", len(conn.buffer))
                conn.buffer = b""
                data = conn.sock.recv(65536)
                if not data:
                    return
                conn.buffer = data
        except OSError:
            return
        finally:
            conn.sock.settimeout(None)

    def note_headers(self, headers):
        missing = [h for h in REQUIRED if h not in headers]
        wrong = missing or headers["group_commit"] != "off_mode" or "transfer-encoding" in headers or \
            headers["timezone"] != "UTC" or headers["strict_mode"] != "true" or "accept-encoding" in headers
        self.state.count("loads_asked")
        if wrong:
            self.state.count("bad_headers")

    # ---- backends ----

    def serve_be(self, conn, i):
        while (request := self.be_head(conn)) is not None:
            method, target, headers = request
            path = [unquote(p) for p in urlsplit(target).path.split("/")[1:]]
            if path[-1] == "_stream_load" and method == "PUT":
                with self.workers[i]:
                    load = BackendLoad(self, conn, path, headers)
                    try:
                        if not load.run():
                            return
                    finally:
                        self.running.discard(load)
            elif path[-1] == "_load_error_log" and method == "GET":
                self.be_error_log(conn, target, headers)
            elif path[-1] == "_stream_load_2pc" and method == "PUT":
                self.be_2pc(conn, path[1], headers)
            else:
                conn.answer(404, b"Not Found")

    def be_head(self, conn):
        try:
            return conn.head()
        except Gone as gone:
            if gone.args:
                self.state.count("stray_body")
                conn.answer(400, b"")
            raise

    def error_page(self, errors):
        with self.lock:
            self.pages.append("\n".join(errors) + "\n")
            return f"http://u:p@{self.address(0)}/api/_load_error_log?file=__shard_0/error_{len(self.pages) - 1}"

    def be_error_log(self, conn, target, headers):
        """Anybody may read it; a client that sends its password is counted."""
        if "authorization" in headers:
            self.state.count("bad_headers")
        fault, arg = self.faults.take("be", "error_log")
        if fault == "http":
            return conn.answer(int(arg), b"gone")
        if fault == "redirect":
            return conn.answer(302, b"", [("Location", f"http://{self.address(0)}/api/elsewhere")])
        if fault == "long":
            return conn.answer(200, b"x\x1b[31m" * int(arg))
        conn.answer(200, self.pages[int(target.rpartition("_")[2])].encode())

    def be_2pc(self, conn, db, headers):
        self.drop_body(conn, headers)
        if self.authorized(headers):
            return conn.answer_json({"status": "ANALYSIS_ERROR", "msg": "no valid Basic authorization"})
        label, operation = headers.get("label"), headers.get("txn_operation")
        if not label and not headers.get("txn_id"):
            return conn.answer_json({"status": "FAILED", "msg": "No transaction id or label selected."})
        if operation not in ("commit", "abort"):
            return conn.answer_json({"status": "FAILED",
                                     "msg": "No transaction operation('commit' or 'abort') selected."})
        fault, arg = self.faults.take("be", "2pc", label or "")
        if fault == "close":
            conn.close()
            raise Gone
        if fault == "fail":
            return conn.answer_json({"status": "ANALYSIS_ERROR", "msg": arg})
        txn = headers.get("txn_id")
        act = self.state.commit_2pc if operation == "commit" else self.state.abort_2pc
        status, text = act(db, int(txn) if txn else None, label)
        self.state.count(f"2pc_{operation}")
        if fault == "drop_after":
            conn.close()
            raise Gone
        return conn.answer_json({"status": status, "msg": text}, pretty=True)

    # ---- control ----

    def control(self, conn, what, headers):
        body = self.drop_body(conn, headers)
        arg = json.loads(body) if body else {}
        if what == "faults":
            self.faults.clear()
            self.faults.add(arg)
            answer = {}
        elif what == "asked":
            answer = self.asked
        elif what == "hits":
            answer = self.faults.hits
        elif what == "counts":
            answer = self.state.counts()
        elif what == "rows":
            answer = self.state.rows(arg["db"], arg["table"])
        elif what == "applied":
            answer = self.state.applied(arg["db"], arg["table"])
        elif what == "clock":
            self.state.move_clock(arg["add"])
            answer = {}
        elif what == "states":
            answer = self.state.states(arg["db"])
        elif what == "tables":
            answer = self.state.tables()
        elif what == "keep":
            self.state.keep_newest = arg["newest"]
            answer = {}
        elif what == "run":
            answer = self.statement(arg["db"], arg["sql"])
        elif what == "label":
            answer = self.foreign(arg)
        else:
            answer = {"error": "unknown"}
        conn.answer_json(answer)

    def foreign(self, arg):
        """A label of somebody else, in the state wanted."""
        txn = self.state.begin(arg["db"], arg["table"], arg["label"], 1200)
        if arg["state"] == "VISIBLE":
            self.state.commit(txn, [])
        elif arg["state"] == "ABORTED":
            self.state.abort(txn, "test")
        return {"txn": txn}

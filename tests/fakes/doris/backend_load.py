# SPDX-License-Identifier: Apache-2.0
"""One Stream Load at a backend, from its headers to the answer.

Sources: BE http/action/stream_load.cpp, runtime/stream_load/stream_load_context.cpp of apache/doris.
"""
import json
import sys
import time

import loads
from tables import Crash, Plan
from state import Exists
from wire import Gone

# The points of a load at which faults strike.
BEFORE, DURING, AFTER = (
    {"http", "early_fail", "label_exists", "accept_and_hang", "no_100", "html_200", "close"},
    {"stop_reading", "slow", "cut_body", "rst_body", "early_fail_close", "early_fail"},
    {"publish_timeout", "fail_but_committed", "fail_leave_prepare", "drop_after_commit", "cut_half", "garbage", "empty",
     "reply_delay", "fail", "success_filtered", "success_zero_rows", "label_override", "group_commit", "unknown_status",
     "fail_with_rows", "die", "filter"})


class BackendLoad:
    """One PUT _stream_load at a backend."""

    def __init__(self, doris, conn, path, headers):
        self.doris, self.state, self.conn, self.headers = doris, doris.state, conn, headers
        self.db, self.name = path[1], path[2]
        self.label = headers.get("label", "")
        self.txn, self.load, self.body = -1, None, b""
        self.late = self.late_arg = None
        self.beside, self.keys = [], set()  # loads that were in hand at the same time; keys that this one has written
        self.two_phase = headers.get("two_phase_commit") == "true"

    # -- answers --

    def result(self, status, message="OK", **more):
        load = self.load
        counts = {"NumberTotalRows": load.total if load else 0,
                  "NumberLoadedRows": load.total - load.filtered if load and status != "Fail" else 0,
                  "NumberFilteredRows": load.filtered if load else 0, "NumberUnselectedRows": 0}
        out = {"TxnId": self.txn, "Label": self.label, "Comment": "", "TwoPhaseCommit": "true" if self.two_phase else "false",
               "Status": status}
        if "existing" in more:
            if more["existing"] is not None:
                out["ExistingJobStatus"] = more["existing"]
            del more["existing"]
        return {**out, "Message": message, **counts, "LoadBytes": len(self.body), "LoadTimeMs": 1, "BeginTxnTimeMs": 0,
                "StreamLoadPutTimeMs": 1, "ReadDataTimeMs": 0, "WriteDataTimeMs": 1, "CommitAndPublishTimeMs": 1, **more}

    def say(self, *args, **more):
        self.conn.answer_json(self.result(*args, **more), pretty=True)

    # -- phases --

    def run(self):
        """False: the connection is done."""
        self.doris.note_headers(self.headers)
        self.doris.asked.append((time.time(), self.label))
        fault, arg = self.doris.faults.take("be", "load", self.label, BEFORE)
        if fault == "accept_and_hang":
            self.conn.wait_gone()
            return False
        if fault == "close":
            return False
        if fault == "http":
            self.conn.answer(int(arg), b"unavailable")
            return False
        if fault == "html_200":
            self.conn.answer(200, b"<html>proxy</html>")
            return False
        if fault == "label_exists":
            existing = {"missing": None, "empty": ""}.get(arg, arg)
            self.say("Label Already Exists", "[LABEL_ALREADY_EXISTS]TStatus: errCode = 2", existing=existing)
            return True
        if fault == "early_fail":
            self.say("Fail", arg)
            return True
        try:
            self.begin()
        except Exists as exists:
            self.say("Label Already Exists", str(exists), existing=exists.job)
            return True
        except Plan as wrong:
            if self.txn > 0:
                self.state.abort(self.txn, str(wrong))
            self.say("Fail", str(wrong))
            return True
        if fault == "no_100":
            self.conn.wait_gone()
            self.state.abort(self.txn, "sender is gone")
            return False
        return self.receive()

    def begin(self):
        headers = self.headers
        if "authorization" not in headers:
            raise Plan("[NOT_AUTHORIZED]no valid Basic authorization")
        if headers.get("format", "csv").lower() not in ("json", "arrow", "csv"):
            raise Plan(f"unknown data format, format={headers['format']}")
        if "content-length" not in headers and "transfer-encoding" not in headers:
            raise Plan("[INVALID_ARGUMENT]content_length is empty and transfer-encoding!=chunked, please set "
                       "content_length or transfer-encoding=chunked")
        if "transfer-encoding" in headers:
            raise Plan("the stand-in does not take chunked bodies")
        timeout = headers.get("timeout", "259200")
        if not timeout.isdigit():
            raise Plan(f"[INVALID_ARGUMENT]Invalid format of 'timeout': '{timeout}'")
        denied = self.doris.authorized(headers)
        if denied:
            raise Plan(f"[NOT_AUTHORIZED]TStatus: errCode = 2, detailMessage = {denied}")
        if self.db not in self.state.databases():
            raise Plan(f"[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = unknown database, database={self.db}")
        table = self.state.table(self.db, self.name)
        if not table:
            raise Plan(f"[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = unknown table, tableName={self.name}")
        with self.doris.lock:
            for other in self.doris.running:
                if other.label != self.label:
                    self.beside.append(other)
                    other.beside.append(self)
            self.doris.running.add(self)
        self.txn = self.state.begin(self.db, self.name, self.label, int(timeout))
        self.load = loads.plan(table, headers, self.doris.profile)

    def receive(self):
        expect = self.headers.get("expect")
        if expect and expect.lower() != "100-continue":
            self.conn.answer(417)
            return False
        if expect:
            self.conn.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        self.late, self.late_arg = self.doris.faults.take("be", "load", self.label, DURING)
        try:
            if not self.read_body():
                return False
        except Gone:
            self.state.abort(self.txn, "[CANCELLED]sender is gone")
            return False
        if self.late is None:
            self.late, self.late_arg = self.doris.faults.take("be", "load", self.label, AFTER)
        return self.finish()

    def read_body(self):
        size = int(self.headers["content-length"])
        parts, got = [], 0
        limit = self.late_arg if isinstance(self.late_arg, int) else 0
        while got < size:
            if self.late in ("stop_reading", "cut_body", "rst_body", "early_fail_close") and got >= limit:
                return self.break_off()
            part = self.conn.take(size - got)
            got += len(part)
            if self.doris.options.swallow and self.load.format == "json":
                self.load.total += part.count(b"\n")
            else:
                parts.append(part)
            if self.late == "slow":
                time.sleep(len(part) / limit)
        self.body = b"".join(parts)
        return True

    def break_off(self):
        self.doris.running.discard(self)
        if self.late == "stop_reading":
            self.state.abort(self.txn, "test")
            self.doris.stopped = self.conn.sock  # kept open, not read
            time.sleep(3600)
        self.state.abort(self.txn, "[CANCELLED]cut")
        if self.late == "early_fail_close":
            self.say("Fail", "[INTERNAL_ERROR]tablet writer write failed, early")
            time.sleep(0.05)
        (self.conn.reset if self.late != "cut_body" else self.conn.close)()
        return False

    def finish(self):
        if self.late == "early_fail":
            self.state.abort(self.txn, str(self.late_arg))
            self.say("Fail", self.late_arg)
            return True
        if self.doris.options.swallow:
            self.state.count("body_bytes", int(self.headers["content-length"]))
            self.load.total += loads.count_arrow(self.body) if self.load.format == "arrow" else 0
            return self.end(self.late, self.late_arg)
        try:
            loads.decode(self.load, self.body, self.doris.profile)
            self.state.note_body(self.db, self.label, loads.digest(self.load))
        except Crash as crash:
            print(f"backend crash: {crash}", file=sys.stderr, flush=True)
            self.state.count("crashes")
            self.state.abort(self.txn, "BE restarted")
            return False
        except Plan as wrong:
            self.state.abort(self.txn, str(wrong))
            self.say("Fail", str(wrong))
            return True
        except (ValueError, UnicodeDecodeError) as wrong:
            self.state.abort(self.txn, str(wrong))
            self.say("Fail", f"[DATA_QUALITY_ERROR]Parse json data failed: {wrong}")
            return True
        if self.late == "filter":
            self.load.filtered += self.late_arg
            self.load.errors += [f"Reason: column({i}) is not what it should be. src line [row {i}]; " for i in
                                 range(self.late_arg)]
        if self.load.total and self.load.filtered / self.load.total > self.load.ratio:
            self.state.abort(self.txn, "data quality")
            self.say("Fail", "[DATA_QUALITY_ERROR]too many filtered rows",
                     ErrorURL=self.doris.error_page(self.load.errors), FirstErrorMsg=self.load.errors[0])
            return True
        return self.end(self.late, self.late_arg)

    def end(self, fault, arg):
        if fault == "fail":
            self.state.abort(self.txn, str(arg))
            self.say("Fail", arg)
            return True
        if fault == "fail_with_rows":
            self.state.abort(self.txn, str(arg))
            self.say("Fail", arg, NumberLoadedRows=self.load.total)
            return True
        if fault == "fail_leave_prepare":
            self.say("Fail", "get tableList write lock timeout, tableList=t", NumberLoadedRows=self.load.total)
            return True
        rows = self.load.rows
        self.note_overlap()
        if fault == "success_filtered":
            rows = rows[arg:]
            self.load.filtered += arg
        if fault == "success_zero_rows":
            rows, self.load.total = [], 0
        done = self.state.precommit(self.txn, rows) if self.two_phase else \
            self.state.commit(self.txn, rows, visible=fault != "publish_timeout")
        if not done:
            state, reason = self.state.state_of(self.txn)
            self.say("Fail", f"[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = transaction [{self.txn}] is already "
                             f"{state}: {reason}; timeout by txn manager")
            return True
        return self.after_commit(fault, arg)

    def note_overlap(self):
        """Two loads at once with a key in common: which row stays is anybody's guess."""
        table = self.load.table
        self.keys = {tuple(row[0].get(k) for k in table.keys) for row in self.load.rows} if table.model == "UNIQUE" else set()
        if any(self.keys & other.keys for other in self.beside if (other.name, other.db) == (self.name, self.db)):
            self.state.count("overlaps")

    def after_commit(self, fault, arg):
        if fault in ("drop_after_commit", "die"):
            self.conn.close()
            return False
        if fault == "fail_but_committed":
            self.say("Fail", "[THRIFT_RPC_ERROR]call frontend service failed, reason=timed out")
        elif fault == "publish_timeout" and not self.two_phase:
            self.say("Publish Timeout", "[PUBLISH_TIMEOUT]TStatus: transaction commit successfully, BUT data will be "
                                        "visible later")
            self.state.publish(self.txn)
        elif fault == "cut_half":
            text = (json.dumps(self.result("Success"), indent=4) + "\n").encode()
            self.conn.send(f"HTTP/1.1 200 OK\r\nContent-Length: {len(text)}\r\n\r\n".encode() + text[:len(text) // 2])
            self.conn.close()
            return False
        elif fault == "garbage":
            self.conn.answer(200, b"\xff\xfe{]")
        elif fault == "empty":
            self.conn.answer(200, b"")
        elif fault == "label_override":
            self.say("Success", Label="group_commit_1234")
        elif fault == "group_commit":
            self.say("Success", GroupCommit=True)
        elif fault == "unknown_status":
            self.say("Splendid")
        else:
            if fault == "reply_delay":
                time.sleep(arg / 1000)
            self.say("Success")
        return True

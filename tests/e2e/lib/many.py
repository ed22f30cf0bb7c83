# SPDX-License-Identifier: Apache-2.0
"""Many tables of one warehouse and the knut.yaml that delivers them."""
import json
import queue
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from lib import rows as R
from lib.lake import Table
from lib.program import Program

LIMIT = 60  # seconds that anything may take on a busy machine


@dataclass
class Many:
    """Deliveries of tables ns.<name>; each sink `copy` is a DuckDB file beside the configuration."""
    knut: Program
    folder: Path
    tables: dict = field(default_factory=dict)

    @property
    def file(self):
        return self.folder / "knut.yaml"

    def table(self, name, rows=10):
        table = Table(self.knut, self.folder / "wh", f"ns.{name}")
        table.create("id long, name string")
        self.tables[name] = table
        if rows:
            self.append(name, rows)
        return table

    def append(self, name, rows=10, first=0):
        self.tables[name].append(f"SELECT range AS id, '{name}' || range AS name FROM range({first}, {first + rows})")

    def write(self, deliveries, **top):
        """The file, as JSON, which is YAML too."""
        config = {"state": "state.db", "sources": {"lake": {"warehouse": "wh"}}, "sinks": {"copy": "duckdb:copy.duckdb"},
                  "defaults": {"source": "lake", "sink": "copy", "interval": "50ms", "max-backoff": "100ms"}}
        config.update({key.replace("_", "-"): value for key, value in top.items()})
        config["deliveries"] = [{"table": f"ns.{d}"} if isinstance(d, str) else d for d in deliveries]
        self.file.write_text(json.dumps(config, indent=1))
        return self

    def __call__(self, command, *args, **more):
        return self.knut("cdc", command, "-c", self.file, *args, **more)

    def json(self, command, *args, **more):
        return self(command, *args, "--output", "json", **more)

    def once(self, *args, **more):
        return self("run", "--once", "--output", "json", *args, **more)

    def reports(self, done):
        """{table: report} of a run with JSON output."""
        return {d["table"]: d for line in done.rows for d in line["deliveries"]}

    def status(self):
        return {row["delivery"]: row for row in self.json("status").ok().rows}

    def copied(self, name, target=None, file="copy.duckdb"):
        with duckdb.connect(str(self.folder / file), read_only=True) as db:
            return R.of_arrow(db.execute(f"FROM {target or name}").to_arrow_table())

    def check(self, *names):
        for name in names or self.tables:
            R.assert_same(self.copied(name), self.tables[name].rows())

    def start(self, *args, **more):
        return Running(self.knut.start("cdc", "run", "-c", str(self.file), "--output", "json", "--log-level", "info",
                                       "--log-format", "json", *args, **more))


class Running:
    """A service: its events and reports come through queues, so that waiting has a limit."""

    def __init__(self, process):
        self.process = process
        self.events, self.reports = queue.Queue(), queue.Queue()
        self.waiting = []  # events that nobody has asked for yet
        for stream, to in (process.stderr, self.events), (process.stdout, self.reports):
            threading.Thread(target=self._pump, args=(stream, to), daemon=True).start()

    @staticmethod
    def _pump(stream, to):
        for line in stream:
            to.put(json.loads(line))
        to.put(None)

    def event(self, name, **fields):
        """An event of that name with these fields that was not asked for before, whatever came between."""
        def fits(event):
            return event.get("event") == name and all(event.get(k) == v for k, v in fields.items())

        for event in self.waiting:
            if fits(event):
                self.waiting.remove(event)
                return event
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            event = self.events.get(timeout=LIMIT)
            assert event is not None, f"ended before {name} {fields}: {self.waiting[-5:]}"
            if fits(event):
                return event
            self.waiting.append(event)
        raise AssertionError(f"no {name} {fields} in {LIMIT} s: {self.waiting[-5:]}")

    def delivered(self, name):
        return self.event("window-delivered", delivery=f"ns.{name}")

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self, number):
        self.signal(number)
        return self.process.wait(LIMIT)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(LIMIT)

# SPDX-License-Identifier: Apache-2.0
"""Runs the program and reads what it prints.

The program is $KNUT_BIN, else $KNUT (set by tools/test), else build/knut, else build/dev/knut.
Every call has a time limit: a hanging program fails its test, it does not hang the lane. TMPDIR is
a folder of the caller's, so that a test can say what is left in it.
"""
import json
import os
import re
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).resolve().parents[3]
LIMIT = 120  # seconds


def find_program():
    named = os.environ.get("KNUT_BIN") or os.environ.get("KNUT")
    candidates = [named] if named else [TOP / "build/knut", TOP / "build/dev/knut"]
    for path in map(Path, candidates):
        if path.exists():
            return path.resolve()
    raise AssertionError(f"no program at {', '.join(map(str, candidates))}: run 'make build'")


@dataclass
class Result:
    args: list
    rc: int
    out: str
    err: str

    def __str__(self):
        def tail(text):
            return text if len(text) < 1500 else f"{text[:700]}\n[...]\n{text[-700:]}"
        return f"{' '.join(map(str, self.args))}\nexit {self.rc}\n{tail(self.out)}\n{tail(self.err)}"

    def ok(self):
        assert self.rc == 0, str(self)
        return self

    @property
    def rows(self):
        """Standard output as one JSON value a line."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def row(self):
        rows = self.rows
        assert len(rows) == 1, str(self)
        return rows[0]

    @property
    def error(self):
        """The one line that a failing command prints."""
        lines = self.err.splitlines()
        assert len(lines) == 1, f"one line expected on standard error:\n{self}"
        return lines[0]

    def fails(self, rc, *patterns):
        """It ended with rc (or one of rc), said so in one line, and the line has each pattern."""
        allowed = rc if isinstance(rc, tuple) else (rc,)
        assert self.rc in allowed, f"exit {allowed} expected:\n{self}"
        line = self.error
        assert line.startswith("knut: "), str(self)
        for bad in ("Traceback", "INTERNAL Error", "Assertion", "(null)", "%s"):
            assert bad not in line, str(self)
        for pattern in patterns:
            assert re.search(pattern, line), f"/{pattern}/ is not in\n{line}"
        return self


@dataclass
class Program:
    path: Path
    tmp: Path  # TMPDIR of the program

    def environment(self, **extra):
        env = {k: v for k, v in os.environ.items() if not k.startswith("KNUT")}
        env.update(TMPDIR=str(self.tmp), LC_ALL="C.UTF-8", TZ="Pacific/Chatham")
        env.update({k: str(v) for k, v in extra.items()})
        return env

    def __call__(self, *args, env=None, limit=LIMIT, wrap=(), **more):
        """Runs it to its end. wrap: words in front (setpriv, prlimit)."""
        words = [*map(str, wrap), str(self.path), *map(str, args)]
        # A pipe-less stdin: nothing of the program may ask.
        more.setdefault("stdin", subprocess.DEVNULL)
        more.setdefault("stdout", subprocess.PIPE)
        more.setdefault("stderr", subprocess.PIPE)
        done = subprocess.run(words, env=self.environment(**(env or {})), timeout=limit, **more)
        return Result(words, done.returncode, (done.stdout or b"").decode(), (done.stderr or b"").decode())

    def json(self, *args, **more):
        return self(*args, "--output", "json", **more)

    def killed_after(self, seconds, *args):
        """Kills it after so long; true when it was still running then."""
        words = [str(self.path), *map(str, args)]
        try:
            subprocess.run(words, env=self.environment(), timeout=seconds, stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return True
        return False

    def start(self, *args, env=None, **more):
        words = [str(self.path), *map(str, args)]
        return subprocess.Popen(words, env=self.environment(**(env or {})), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1, **more)


KILLED = -signal.SIGKILL

# SPDX-License-Identifier: Apache-2.0
"""What a process takes: seconds, CPU seconds, peak memory.

A new process begins as a copy of the one that starts it, and Linux counts that copy into its peak. A bench that has
loaded engines and data would add its own size to everybody's: so a small process, started first, starts the others.
"""
import json
import os
import subprocess
import sys
import time


class Failed(Exception):
    pass


class Launcher:
    def __init__(self):
        self.process = subprocess.Popen([sys.executable, "-I", "-S", __file__], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def run(self, words, **environment):
        """(seconds, CPU seconds, peak bytes) of one process; it must end well."""
        words = [str(w) for w in words]
        self.process.stdin.write(json.dumps([words, environment]) + "\n")
        self.process.stdin.flush()
        status, said, *used = json.loads(self.process.stdout.readline())
        if status:
            raise Failed(f"{' '.join(words)}: exit {status}: {said.strip()[-500:]}")
        return tuple(used)


def measured(words, environment):
    began = time.monotonic()
    child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                             env={**os.environ, **environment})
    said = child.stderr.read().decode(errors="replace")
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, said, time.monotonic() - began, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(measured(*json.loads(line))), flush=True)

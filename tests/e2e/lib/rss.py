# SPDX-License-Identifier: Apache-2.0
"""rss.py FILE COMMAND...: runs the command, writes its peak resident set in KiB to FILE.

A program of its own because a child's peak counts the memory of the process that forked it: this
one is small, a test runner is not.
"""
import os
import sys

child = os.fork()
if child == 0:
    os.execv(sys.argv[2], sys.argv[2:])
_, status, usage = os.wait4(child, 0)
with open(sys.argv[1], "w", encoding="ascii") as file:
    file.write(str(usage.ru_maxrss))
code = os.waitstatus_to_exitcode(status)
sys.exit(code if code >= 0 else 128 - code)

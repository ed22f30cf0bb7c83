# SPDX-License-Identifier: Apache-2.0
"""A program on a terminal of ours, and what stands on its screen: enough of one for blocks that are drawn in place."""
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

LIMIT = 120  # seconds
PIECE = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])|(\r)|(\n)|([^\x1b\r\n])")


class Screen:
    """Lines as they would stand there. What is not understood fails the test."""

    def __init__(self):
        self.lines, self.row, self.column, self.escapes = [""], 0, 0, set()

    def feed(self, text):
        at = 0
        for piece in PIECE.finditer(text):
            assert piece.start() == at, repr(text[at:at + 20])
            at = piece.end()
            self.take(*piece.groups())
        assert at == len(text), repr(text[at:])

    def take(self, words, letter, back, down, char):
        if back:
            self.column = 0
        elif down:
            self.row += 1
            self.lines += [""] * (self.row + 1 - len(self.lines))
        elif char:
            line = self.lines[self.row].ljust(self.column)
            self.lines[self.row] = line[:self.column] + char + line[self.column + 1:]
            self.column += 1
        else:
            self.escape(words, letter)

    def escape(self, words, letter):
        self.escapes.add(letter)
        if letter == "A":
            self.row = max(0, self.row - int(words))
        elif letter in "KJ":
            self.lines[self.row] = self.lines[self.row][:self.column]
            if letter == "J":
                del self.lines[self.row + 1:]
        else:
            assert letter in "mhl", letter

    @property
    def text(self):
        return "\n".join(self.lines).rstrip()


class OnTerminal:
    """Standard error is a terminal; standard output a pipe."""

    def __init__(self, knut, *words, size=(24, 100), **env):
        self.master, slave = pty.openpty()
        self.resize(*size)
        self.process = subprocess.Popen([str(knut.path), *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=slave, env=knut.environment(**{"TERM": "xterm", **env}))
        os.close(slave)
        self.raw = ""

    def resize(self, lines, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def read(self):
        """What came, or "" at the end."""
        try:
            ready, _, _ = select.select([self.master], [], [], LIMIT)
            assert ready, f"nothing came:\n{self.raw}"
            text = os.read(self.master, 65536).decode()
        except OSError:  # the other end is closed
            return ""
        self.raw += text
        return text

    def until(self, pattern):
        """Reads on until what was written has the pattern."""
        end = time.monotonic() + LIMIT
        while not re.search(pattern, self.raw):
            assert time.monotonic() < end and self.read(), f"/{pattern}/ never came:\n{self.raw}"

    def end(self):
        """(exit status, standard output, the screen)."""
        while self.read():
            pass
        out = self.process.stdout.read().decode()
        self.process.stdout.close()
        os.close(self.master)
        screen = Screen()
        screen.feed(self.raw)
        return self.process.wait(LIMIT), out, screen

    def stop(self):
        """After a test that did not come to the end."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

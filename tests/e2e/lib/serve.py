# SPDX-License-Identifier: Apache-2.0
"""A served catalog for tests: `knut catalog serve` on free ports, and raw requests to it."""
import http.client
import json
import signal
import subprocess
import tempfile
from urllib.parse import urlsplit


class Served:
    """A running server. Its answers are those of HTTP: (status, headers, body)."""

    def __init__(self, program, *flags, fronts=("--rest", "127.0.0.1:0"), env=None):
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [str(program), "catalog", "serve", *map(str, flags), *fronts, "--output", "json"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log, env=env, text=True)
        self.urls = {}
        for _ in range(len(fronts) // 2):
            line = self.process.stdout.readline()
            if not line:
                self.process.wait(timeout=60)
                raise AssertionError(f"the server did not start: {self.errors}")
            front = json.loads(line)
            self.urls[front["front"]] = front["url"]

    @property
    def errors(self):
        """What it has written on standard error so far."""
        self.log.seek(0)
        return self.log.read()

    @property
    def uri(self):
        return self.urls["rest"]

    def connect(self, timeout=60):
        place = urlsplit(self.uri)
        return http.client.HTTPConnection(place.hostname, place.port, timeout=timeout)

    def ask(self, method, path, body=None, headers=None, connection=None):
        """One request. A body that is not bytes is sent as JSON; a JSON answer comes parsed."""
        conn = connection or self.connect()
        headers = dict(headers or {})
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers.setdefault("Content-Type", "application/json")
        conn.request(method, path, body=body, headers=headers)
        answer = conn.getresponse()
        data = answer.read()
        if connection is None:
            conn.close()
        if (answer.getheader("Content-Type") or "").startswith("application/json") and data \
                and not answer.getheader("Content-Encoding"):
            data = json.loads(data)
        return answer.status, answer.headers, data

    def stop(self, how=signal.SIGTERM):
        """Ends the server; returns its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        return self.process.wait(timeout=60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        ended = self.process.poll()
        if ended is not None and ended != 0:
            print(f"the server ended with {ended}:\n{self.errors[-6000:]}")
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.log.close()

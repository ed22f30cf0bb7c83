# SPDX-License-Identifier: Apache-2.0
"""A proxy in front of an HTTP server that loses, delays and falsifies answers when a test says so.

A rule is (pattern of "METHOD /path", fault, how often); the first rule whose pattern is found and that is not used
up decides. Faults are functions of (handler, forward): forward() sends the request on and gives (status, headers,
body).
"""
import http.client
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "host", "server", "date"}


def lost(handler, forward):
    """It is done, and the answer never comes."""
    forward()
    handler.close_connection = True


def refused(handler, forward):
    """The connection ends before anything is done."""
    handler.close_connection = True


def cut(handler, forward):
    """It is done, and the answer breaks off."""
    status, headers, body = forward()
    handler.answer(status, headers, body[:len(body) // 2], length=len(body) + 1)
    handler.close_connection = True


def adds(members):
    """It is done, and these members are in the answer too; members: an object, or what makes one."""
    def fault(handler, forward):
        status, headers, body = forward()
        if status == 200 and body:
            document = json.loads(body)
            document.update(members() if callable(members) else members)
            body = json.dumps(document).encode()
        handler.answer(status, headers, body)
    return fault


def says(status, body=b"", headers=(), done=False):
    """This answer; done: after the request was forwarded all the same."""
    def fault(handler, forward):
        if done:
            forward()
        handler.answer(status, headers, body)
    return fault


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, status, headers, body, length=None):
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def forward(self, body):
        upstream = urlsplit(self.server.upstream)
        connection = http.client.HTTPConnection(upstream.hostname, upstream.port, timeout=60)
        try:
            headers = {k: v for k, v in self.headers.items() if k.lower() not in HOP | {"accept-encoding"}}
            connection.request(self.command, upstream.path.rstrip("/") + self.path, body or None, headers)
            got = connection.getresponse()
            content = got.read()
            return got.status, [(k, v) for k, v in got.getheaders() if k.lower() not in HOP], content
        finally:
            connection.close()

    def serve(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        asked = f"{self.command} {self.path}"
        fault = self.server.fault_for(asked, dict(self.headers))
        if fault:
            fault(self, lambda: self.forward(body))
            return
        status, headers, content = self.forward(body)
        self.answer(status, headers, b"" if self.command == "HEAD" or status == 304 else content)

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = serve


class Proxy(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, upstream):
        super().__init__(("127.0.0.1", 0), Handler)
        self.upstream = upstream
        self.rules, self.seen, self.headers = [], [], []
        self.lock = threading.Lock()
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    @property
    def uri(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def rule(self, pattern, fault, times=1):
        self.rules.append([re.compile(pattern), fault, times])

    def fault_for(self, asked, headers):
        with self.lock:
            self.seen.append(asked)
            self.headers.append(headers)
            for rule in self.rules:
                if rule[2] and rule[0].search(asked):
                    rule[2] -= 1
                    return rule[1]
        return None

    def count(self, pattern):
        return sum(1 for asked in self.seen if re.search(pattern, asked))

    def close(self):
        self.shutdown()
        self.server_close()

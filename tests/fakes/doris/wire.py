# SPDX-License-Identifier: Apache-2.0
"""HTTP/1.1 by hand, so that a test can break it anywhere. One thread for each connection."""
import json
import socket
import struct
import threading


class Gone(Exception):
    """The client has closed, or what it sent is no request."""


class Connection:
    def __init__(self, sock, tls=False):
        self.sock, self.buffer, self.tls = sock, b"", tls
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def more(self):
        try:
            data = self.sock.recv(1 << 18)
        except OSError:
            data = b""
        if not data:
            raise Gone
        self.buffer += data

    def head(self):
        """(method, path, headers) of the next request; None when the client closes between them."""
        while b"\r\n\r\n" not in self.buffer:
            try:
                self.more()
            except Gone:
                if self.buffer:
                    raise
                return None
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        lines = head.decode("latin-1").split("\r\n")
        words = lines[0].split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            raise Gone("not a request")
        headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip().encode("latin-1").decode("utf-8", "replace")
        return words[0], words[1], headers

    def take(self, n):
        """Up to n bytes of a body."""
        if not self.buffer:
            self.more()
        part, self.buffer = self.buffer[:n], self.buffer[n:]
        return part

    def send(self, data):
        try:
            self.sock.sendall(data)
        except OSError:
            raise Gone from None

    def answer(self, status, body=b"", headers=(), reason=""):
        names = {200: "OK", 307: "Temporary Redirect", 404: "Not Found", 503: "Service Unavailable", 417: "Expectation Failed",
                 400: "Bad Request"}
        head = [f"HTTP/1.1 {status} {reason or names.get(status, 'X')}", f"Content-Length: {len(body)}",
                *[f"{k}: {v}" for k, v in headers]]
        self.send("\r\n".join(head).encode() + b"\r\n\r\n" + body)

    def answer_json(self, value, pretty=False):
        text = json.dumps(value, indent=4 if pretty else None) + "\n"
        self.answer(200, text.encode(), [("Content-Type", "application/json")])

    def reset(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def close(self):
        try:
            self.sock.close()
        except OSError:
            pass

    def wait_gone(self):
        """Until the client closes; what it sends is dropped."""
        try:
            while True:
                self.buffer = b""
                self.more()
        except Gone:
            return


def listen(host, port):
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((host, port))
    sock.listen(128)
    return sock


def serve(sock, handle, tls=None):
    """handle(connection) in a thread of its own for each; tls: a server's context."""
    def one(client):
        try:
            client = tls.wrap_socket(client, server_side=True) if tls else client
        except OSError:
            return
        conn = Connection(client, bool(tls))
        try:
            handle(conn)
        except Gone:
            pass
        finally:
            conn.close()

    def loop():
        while True:
            try:
                client, _ = sock.accept()
            except OSError:
                return
            threading.Thread(target=one, args=(client,), daemon=True).start()
    threading.Thread(target=loop, daemon=True).start()

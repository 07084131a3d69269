"""A mail server and a web server on this machine that take notices, and one that answers without end, for tests."""

import base64
import socketserver
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any


class MailServer(socketserver.TCPServer):
    """A mail server; what it gets is in `mails`, as (recipients, text, whether over TLS), and logins in `logins`.

    Args:
        context: for TLS; None offers none.
        is_tls_at_once: whether TLS begins with the connection, not with STARTTLS.
        refuses: answer to every mail instead of taking it.
    """

    def __init__(
        self, context: ssl.SSLContext | None = None, *, is_tls_at_once: bool = False, refuses: str = ""
    ) -> None:
        super().__init__(("127.0.0.1", 0), _MailHandler)
        self.context, self.is_tls_at_once, self.refuses = context, is_tls_at_once, refuses
        self.mails: list[tuple[list[str], str, bool]] = []
        self.logins: list[str] = []

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a client that does not trust the certificate leaves."""


class _MailHandler(socketserver.StreamRequestHandler):
    server: MailServer

    def handle(self) -> None:
        self.is_tls = False
        self.recipients: list[str] = []
        if self.server.is_tls_at_once:
            self._begin_tls()
        self._say("220 ready")
        while line := self.rfile.readline().decode().strip():
            self._answer(line)

    def finish(self) -> None:
        self.rfile.close()
        self.wfile.close()
        self.connection.close()

    def _answer(self, line: str) -> None:
        match line.split(maxsplit=1)[0].upper():
            case "EHLO":
                offers = ["AUTH PLAIN", *(["STARTTLS"] if self.server.context and not self.is_tls else [])]
                self._say("\r\n".join(["250-here", *(f"250-{one}" for one in offers), "250 OK"]))
            case "STARTTLS":
                self._say("220 go on")
                self._begin_tls()
            case "AUTH":
                self.server.logins.append(base64.b64decode(line.split()[2]).decode())
                self._say("235 welcome")
            case "RCPT":
                self.recipients.append(line.partition("<")[2].partition(">")[0])
                self._say("250 OK")
            case "DATA":
                self._say("354 go on")
                self._take("".join(iter(lambda: self.rfile.readline().decode(), ".\r\n")))
            case "QUIT":
                self._say("221 bye")
            case _:
                self._say("250 OK")

    def _take(self, text: str) -> None:
        if not self.server.refuses:
            self.server.mails.append((self.recipients, text, self.is_tls))
        self.recipients = []
        self._say(self.server.refuses or "250 taken")

    def _say(self, answer: str) -> None:
        self.wfile.write(f"{answer}\r\n".encode())

    def _begin_tls(self) -> None:
        assert self.server.context is not None
        self.connection = self.server.context.wrap_socket(self.connection, server_side=True)
        self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb", 0)
        self.is_tls = True


class WebServer(HTTPServer):
    """A web server; what is posted to it is in `posts`, as (path, body).

    Args:
        context: for TLS; None for none.
        status: of every answer.
    """

    def __init__(self, context: ssl.SSLContext | None = None, *, status: int = 204) -> None:
        super().__init__(("127.0.0.1", 0), _WebHandler)
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self.status = status
        self.posts: list[tuple[str, bytes]] = []

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing, as the mail server."""


class _WebHandler(BaseHTTPRequestHandler):
    server: WebServer

    def do_POST(self) -> None:
        self.server.posts.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(self.server.status)
        self.send_header("Location", "/elsewhere")
        self.end_headers()

    def log_message(self, *_: Any) -> None:  # noqa: ANN401 - as the base class has it
        """Say nothing."""


class EndlessServer(socketserver.TCPServer):
    """A server that answers without end, until its client leaves.

    Args:
        first: what it says at once.
        then: what it says again and again.
        pause: seconds before each of them.
    """

    def __init__(self, first: bytes, then: bytes, *, pause: float = 0) -> None:
        super().__init__(("127.0.0.1", 0), _EndlessHandler)
        self.first, self.then, self.pause = first, then, pause

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: its client has left."""


class _EndlessHandler(socketserver.BaseRequestHandler):
    server: EndlessServer

    def handle(self) -> None:
        self.request.sendall(self.server.first)
        while True:
            time.sleep(self.server.pause)
            self.request.sendall(self.server.then)


@contextmanager
def serving(server: socketserver.TCPServer) -> Iterator[None]:
    """Serve in a thread."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

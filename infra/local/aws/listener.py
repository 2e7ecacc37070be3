"""A small threaded HTTP/1.1 server for WSGI applications, on loopback only.

Werkzeug's server closes every connection, and the SDKs then pay a connect and a thread per
call; here a connection is kept, headers are parsed without the email package, and small
answers leave in one segment.
"""

import contextlib
import io
import socket
import socketserver
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import unquote_to_bytes

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
Application = Callable[[Environ, StartResponse], Iterable[bytes]]

LOOPBACK = "127.0.0.1"
IDLE_SECONDS = 300.0
_LINE_LIMIT = 65_536
_BODILESS = ("1", "204", "304")


class BadRequestError(Exception):
    """What the peer sent is not HTTP."""


class _Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 512

    def __init__(self, address: tuple[str, int], app: Application) -> None:
        self.app = app
        self.connections: set[socket.socket] = set()
        super().__init__(address, _Connection)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing about a peer that went away; anything else keeps its traceback."""
        if not isinstance(sys.exception(), (OSError, BadRequestError)):
            super().handle_error(request, client_address)


class _Connection(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True
    wbufsize = 65_536
    timeout = IDLE_SECONDS
    server: _Server

    def handle(self) -> None:
        self.server.connections.add(self.connection)
        try:
            while self._serve_one():
                pass
        except (OSError, BadRequestError):
            return
        finally:
            self.server.connections.discard(self.connection)

    def _serve_one(self) -> bool:
        line = self.rfile.readline(_LINE_LIMIT)
        if not line or line in (b"\r\n", b"\n"):
            return bool(line)
        try:
            method, target, version = line.decode("latin-1").split()
        except ValueError:
            raise BadRequestError("the request line has not three parts") from None
        headers = self._headers()
        environ = self._environ(method, target, headers)
        keep = version >= "HTTP/1.1" and headers.get("connection", "").lower() != "close"
        self._answer(environ, head_only=method == "HEAD", keep=keep)
        return keep

    def _headers(self) -> dict[str, str]:
        headers: dict[str, str] = {}
        while True:
            line = self.rfile.readline(_LINE_LIMIT)
            if line in (b"\r\n", b"\n", b""):
                return headers
            name, _, value = line.decode("latin-1").partition(":")
            name, value = name.strip().lower(), value.strip()
            headers[name] = f"{headers[name]},{value}" if name in headers else value

    def _environ(self, method: str, target: str, headers: dict[str, str]) -> Environ:
        path, _, query = target.partition("?")
        host, port = self.server.server_address[:2]
        body = self._body(headers)
        environ: Environ = {
            "REQUEST_METHOD": method,
            "SCRIPT_NAME": "",
            "PATH_INFO": unquote_to_bytes(path).decode("latin-1"),
            "QUERY_STRING": query,
            "REQUEST_URI": target,
            "RAW_URI": target,
            "SERVER_NAME": str(host),
            "SERVER_PORT": str(port),
            "SERVER_PROTOCOL": "HTTP/1.1",
            "REMOTE_ADDR": self.client_address[0],
            "CONTENT_LENGTH": str(len(body)),
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(body),
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
            "wsgi.input_terminated": True,
        }
        for name, value in headers.items():
            if name == "content-type":
                environ["CONTENT_TYPE"] = value
            elif name not in {"content-length", "transfer-encoding"} and "_" not in name:
                environ["HTTP_" + name.upper().replace("-", "_")] = value
        return environ

    def _body(self, headers: dict[str, str]) -> bytes:
        if headers.get("expect", "").lower() == "100-continue":
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.wfile.flush()
        if headers.get("transfer-encoding", "").lower() == "chunked":
            return self._chunks()
        try:
            length = int(headers.get("content-length") or 0)
        except ValueError:
            raise BadRequestError("content-length is not a number") from None
        return self.rfile.read(length) if length else b""

    def _chunks(self) -> bytes:
        parts: list[bytes] = []
        while True:
            size = int(self.rfile.readline(_LINE_LIMIT).split(b";")[0] or b"0", 16)
            if size == 0:
                while self.rfile.readline(_LINE_LIMIT) not in (b"\r\n", b"\n", b""):
                    pass
                return b"".join(parts)
            parts.append(self.rfile.read(size))
            self.rfile.readline(_LINE_LIMIT)

    def _answer(self, environ: Environ, *, head_only: bool, keep: bool) -> None:
        head: list[Any] = ["500 Internal Server Error", []]

        def start_response(status: str, headers: list[tuple[str, str]], _info: Any = None) -> None:
            head[:] = [status, headers]

        result = self.server.app(environ, start_response)
        try:
            body = b"".join(result)
        finally:
            if hasattr(result, "close"):
                result.close()
        status, headers = head
        lines = [f"HTTP/1.1 {status}"]
        names = {name.lower() for name, _ in headers}
        lines += [
            f"{name}: {value}"
            for name, value in headers
            if head_only or name.lower() not in {"content-length", "transfer-encoding"}
        ]
        if not status.startswith(_BODILESS) and not (head_only and "content-length" in names):
            lines.append(f"Content-Length: {len(body)}")
        lines.append("Connection: " + ("keep-alive" if keep else "close"))
        self.wfile.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
        if not head_only and not status.startswith(_BODILESS):
            self.wfile.write(body)
        self.wfile.flush()


class Listener:
    """One WSGI application behind one loopback port, served from daemon threads."""

    def __init__(self, app: Application, *, port: int = 0) -> None:
        self._server = _Server((LOOPBACK, port), app)
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop listening and drop every open connection."""
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()
        for connection in list(self._server.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

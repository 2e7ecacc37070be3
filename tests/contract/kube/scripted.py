"""A tiny HTTP server that answers a prepared script: one entry per request, then the last."""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from shared.kube.api import KubeApi
from shared.kube.connection import connect_endpoint


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One answer.

    A JSON `body`, or `lines` of a watch sent in chunks. `then` says how the watch ends: `close`
    (cleanly), `abort` (connection cut), or `hang` (kept open until the server stops). `raw` is
    sent instead of JSON. `drop` closes the connection without any answer.
    """

    status: int = 200
    body: Any = None
    raw: bytes | None = None
    lines: Sequence[Any] | None = None
    then: str = "close"
    headers: dict[str, str] = field(default_factory=dict)
    drop: bool = False


@dataclass(frozen=True, kw_only=True)
class Request:
    """One request as it came."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


class ScriptedServer:
    """Runs in a thread; `requests` holds what came, in order."""

    def __init__(self, script: Sequence[Answer] | Callable[[Request], Answer]) -> None:
        self.requests: list[Request] = []
        self._script = script
        self._lock = threading.Lock()
        self.ended = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def handle_one_request(self) -> None:
                try:
                    super().handle_one_request()
                except ConnectionError:
                    self.close_connection = True

            def answer(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                body = json.loads(self.rfile.read(length)) if length else None
                outer.serve(self, body)

            do_GET = do_POST = do_PATCH = do_DELETE = answer  # noqa: N815

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self.api: KubeApi = connect_endpoint(self.url, "", lambda: "t0ken")

    def serve(self, handler: BaseHTTPRequestHandler, body: Any) -> None:
        parts = urlsplit(handler.path)
        request = Request(
            method=handler.command,
            path=parts.path,
            query={k: v[0] for k, v in parse_qs(parts.query, keep_blank_values=True).items()},
            headers={k.lower(): v for k, v in handler.headers.items()},
            body=body,
        )
        with self._lock:
            number = len(self.requests)
            self.requests.append(request)
        script = self._script
        answer = script(request) if callable(script) else script[min(number, len(script) - 1)]
        if answer.drop:
            handler.close_connection = True
            return
        if answer.lines is not None:
            self._stream(handler, answer, answer.lines)
            return
        content = answer.raw if answer.raw is not None else json.dumps(answer.body).encode()
        handler.send_response(answer.status)
        for name, value in answer.headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    def _stream(
        self, handler: BaseHTTPRequestHandler, answer: Answer, lines: Sequence[Any]
    ) -> None:
        handler.send_response(answer.status)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for line in lines:
            text = line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n"
            handler.wfile.write(f"{len(text):x}\r\n".encode() + text + b"\r\n")
            handler.wfile.flush()
        if answer.then == "hang":
            self.ended.wait(30)
        if answer.then == "close":
            handler.wfile.write(b"0\r\n\r\n")
        else:
            handler.close_connection = True

    def stop(self) -> None:
        self.ended.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(2)


@contextmanager
def scripted(script: Sequence[Answer] | Callable[[Request], Answer]) -> Iterator[ScriptedServer]:
    """Run a scripted server for the length of the block."""
    server = ScriptedServer(script)
    try:
        yield server
    finally:
        server.stop()

"""An HTTP server for probes and for texts such as metrics; `main` decides what it answers."""

import contextlib
import socket
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any, Final

# The kubelet needs one connection for a moment; every pod of the cluster can reach the port.
_MOST_CONNECTIONS: Final = 16
SECONDS: Final = 5.0


class _Server(ThreadingHTTPServer):
    """Serves at most `_MOST_CONNECTIONS` at once; further ones are closed."""

    daemon_threads = True

    def __init__(self, *args: Any) -> None:
        self._free = threading.BoundedSemaphore(_MOST_CONNECTIONS)
        super().__init__(*args)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()


def serve_health(
    port: int,
    checks: Mapping[str, Callable[[], bool]],
    texts: Mapping[str, tuple[str, Callable[[], str]]] = MappingProxyType({}),
) -> ThreadingHTTPServer:
    """Answer each path of `checks` with 200 or 503, from a thread of its own.

    Args:
        port: Listens on all addresses: the kubelet probes the pod's own.
        checks: Path to a function that returns whether all is well.
        texts: Path to a content type and a function that returns the text.

    Raises:
        OSError: If the port is taken.
    """

    class Handler(BaseHTTPRequestHandler):
        def handle(self) -> None:
            cutoff = threading.Timer(SECONDS, self._end)
            cutoff.daemon = True
            cutoff.start()
            try:
                super().handle()
            finally:
                cutoff.cancel()

        def _end(self) -> None:
            with contextlib.suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)

        def do_GET(self) -> None:
            if self.path in texts:
                content_type, read = texts[self.path]
                self._answer(200, content_type, read().encode())
                return
            check = checks.get(self.path)
            status = 404 if check is None else 200 if check() else 503
            self._answer(status, "text/plain", b"ok" if status == 200 else b"no")

        def _answer(self, status: int, content_type: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing: probes come every few seconds."""

    server = _Server(("", port), Handler)
    threading.Thread(target=server.serve_forever, name="health", daemon=True).start()
    return server

"""Liveness and readiness over HTTP."""

import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def serve_health(port: int, checks: Mapping[str, Callable[[], bool]]) -> ThreadingHTTPServer:
    """Answer each path of `checks` with 200 or 503, from a thread of its own.

    Args:
        port: On all addresses: the kubelet asks the pod's own.
        checks: Path to the question whether all is well.

    Raises:
        OSError: If the port is taken.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            check = checks.get(self.path)
            status = 404 if check is None else 200 if check() else 503
            body = b"ok" if status == 200 else b"no"
            self.send_response(status)
            self.send_header("Content-Type", "text/plain")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing: probes come every few seconds."""

    server = ThreadingHTTPServer(("", port), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="health", daemon=True).start()
    return server

"""A front in a thread, and servers to stand behind it."""

import asyncio
import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

from infra.local.api_proxy.proxy import Front
from infra.local.api_proxy.target import Target
from infra.local.kube.auth import Authenticator

BEHIND = "token-of-the-kubeconfig"


class RunningFront:
    """Serves plain HTTP, so that tests see the bytes; the process serves HTTPS."""

    def __init__(self, target: Target, auth_file: Path) -> None:
        self._target = target
        self._auth_file = auth_file
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.url = ""

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        front = Front(self._target, tls=None, authenticator=Authenticator(self._auth_file))
        self._loop.run_until_complete(front.start())
        self.url = front.url
        self._ready.set()
        self._loop.run_forever()
        self._loop.run_until_complete(front.stop())
        self._loop.close()

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


class Scripted(ThreadingHTTPServer):
    """Notes what it is asked, and answers by a function."""

    daemon_threads = True

    def __init__(self, answer: Callable[["Asked"], None]) -> None:
        super().__init__(("127.0.0.1", 0), Asked)
        self.answer = answer
        self.seen: list[dict[str, Any]] = []
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()


class Asked(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        assert isinstance(self.server, Scripted)
        length = int(self.headers.get("Content-Length") or 0)
        self.server.seen.append(
            {
                "method": self.command,
                "path": self.path,
                "headers": self.headers.items(),
                "body": self.rfile.read(length),
            }
        )
        self.server.answer(self)

    def say(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        said = {key.replace("_", "-"): value for key, value in headers.items()}
        for key, value in ({"Content-Length": str(len(body))} | said).items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


def kubeconfig(path: Path, server: str, user: dict[str, Any], **cluster: Any) -> Path:
    """Write a kubeconfig with a second context that must not be taken."""
    other = {"cluster": "other", "user": "other"}
    document = {
        "current-context": "chosen",
        "contexts": [
            {"name": "other", "context": other},
            {"name": "chosen", "context": {"cluster": "c", "user": "u"}},
        ],
        "clusters": [
            {"name": "other", "cluster": {"server": "https://192.0.2.1"}},
            {"name": "c", "cluster": {"server": server, **cluster}},
        ],
        "users": [{"name": "u", "user": user}, {"name": "other", "user": {"token": "wrong"}}],
    }
    path.write_text(json.dumps(document))
    return path

"""Serves the page on loopback: the built files, and one stream of messages.

All paths begin with a token that only the address has; a request with another Host is refused, so
that no other site's script can reach it under a host name of its own. Only GET is answered.
"""

import asyncio
import json
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web

from functions.cli.watch.recording import Start

if TYPE_CHECKING:
    from functions.cli.watch.broadcast import Broadcast
    from functions.cli.watch.recording import Recording

# Nothing is fetched from elsewhere, nothing is sent, nothing is framed.
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
_KEEP_ALIVE_SECONDS: Final = 15.0
_FAREWELL_SECONDS: Final = 0.2
_MOST: Final = 1e9


class PageServer:
    """The page of one source, under an address that cannot be guessed.

    Args:
        source: What is shown.
        built: Folder of the built page.
        port: Port on 127.0.0.1; 0 for any free one.
        token: Part of the address; a random one when empty.
    """

    def __init__(
        self, source: "Broadcast | Recording", built: Path, port: int = 0, token: str = ""
    ) -> None:
        self._source = source
        self._built = built.resolve()
        self._port = port
        self._token = token or secrets.token_urlsafe(18)
        self._hosts: frozenset[str] = frozenset()
        self._runner: web.ServerRunner | None = None
        self._streams: set[asyncio.Task[Any]] = set()

    async def start(self) -> str:
        """Start to serve; return the address, including the token.

        Raises:
            OSError: If the port is taken.
        """
        server = web.Server(self._serve, handler_cancellation=True, access_log=None)
        self._runner = web.ServerRunner(server, shutdown_timeout=_FAREWELL_SECONDS)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()
        port = self._runner.addresses[0][1]
        self._hosts = frozenset({f"127.0.0.1:{port}", f"localhost:{port}"})
        return f"http://127.0.0.1:{port}/{self._token}/"

    async def stop(self) -> None:
        """Stop serving; open streams end."""
        for stream in self._streams:
            stream.cancel()
        if self._runner is not None:
            await self._runner.cleanup()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.headers.get("Host", "") not in self._hosts:
            return _plain(421, "this address is served under 127.0.0.1 and localhost alone")
        if request.method != "GET":
            return _plain(405, "this page only reads: use GET", {"Allow": "GET"})
        _, token, path = [*request.path.split("/", 2), "", ""][:3]
        if not secrets.compare_digest(token.encode(), self._token.encode()):
            return _plain(404, "open the whole address that `dovetail watch` printed")
        if path == "stream":
            return await self._stream(request)
        if path.startswith("decisions/"):
            return await self._decision(path.removeprefix("decisions/"))
        return self._file(path or "index.html")

    def _file(self, name: str) -> web.StreamResponse:
        try:
            path = (self._built / name).resolve()
            media = _TYPES.get(path.suffix)
            if media is not None and path.is_relative_to(self._built):
                headers = {**HEADERS, "Content-Type": media}
                return web.Response(body=path.read_bytes(), headers=headers)
        except (OSError, ValueError):
            # It is not there, or no file can have that name.
            pass
        return _plain(404, "there is no such file")

    async def _decision(self, name: str) -> web.StreamResponse:
        plan_id = name.removesuffix(".json.gz")
        if name.endswith(".json.gz"):
            document = await self._source.document(plan_id)
            if document is not None:
                saved = f'attachment; filename="{plan_id}.json.gz"'
                media = {"Content-Type": "application/gzip", "Content-Disposition": saved}
                return web.Response(body=document, headers={**HEADERS, **media})
        elif (found := await self._source.decision(plan_id)) is not None:
            media = {"Content-Type": "application/json"}
            return web.Response(text=json.dumps(found), headers={**HEADERS, **media})
        return _plain(404, "this decision is none of the last that are kept")

    async def _stream(self, request: web.BaseRequest) -> web.StreamResponse:
        """Send messages as server-sent events until the reader or the source ends.

        Source: https://html.spec.whatwg.org/multipage/server-sent-events.html (2026-11).
        """
        try:
            start = Start(
                at=_amount(request.query.get("at", "0")),
                speed=_amount(request.query.get("speed", "0")),
            )
        except ValueError:
            return _plain(400, "at and speed: give seconds and a factor, as ?at=12.5&speed=4")
        media = {"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"}
        response = web.StreamResponse(headers={**HEADERS, **media})
        await response.prepare(request)
        task = asyncio.current_task()
        assert task is not None
        self._streams.add(task)
        try:
            await self._send(response, start)
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._streams.discard(task)
        return response

    async def _send(self, response: web.StreamResponse, start: Start) -> None:
        messages = aiter(self._source.messages(start))
        upcoming = asyncio.ensure_future(anext(messages, None))
        try:
            while True:
                done, _ = await asyncio.wait({upcoming}, timeout=_KEEP_ALIVE_SECONDS)
                if not done:
                    await response.write(b": still here\n\n")
                    continue
                message = upcoming.result()
                if message is None:
                    # No message follows: the reader keeps what it has, and does not reconnect.
                    await response.write(b"event: end\ndata: {}\n\n")
                    return
                text = json.dumps(message, separators=(",", ":"))
                await response.write(f"data: {text}\n\n".encode())
                upcoming = asyncio.ensure_future(anext(messages, None))
        finally:
            upcoming.cancel()


def _amount(text: str) -> float:
    """Return a number from 0 on.

    Raises:
        ValueError: If it is none.
    """
    amount = float(text)
    if not 0 <= amount < _MOST:
        raise ValueError(text)
    return amount


def _plain(status: int, text: str, more: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(status=status, text=f"{text}\n", headers={**HEADERS, **(more or {})})

"""An HTTP server on loopback that ends at once, streams and all."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable

from aiohttp import web

# Longest wait for open requests when the server stops.
_FAREWELL_SECONDS = 0.2
# A closed transport releases its socket in a later iteration of the loop.
_TURN_SECONDS = 0.005

Serve = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Loopback:
    """Serves one handler on 127.0.0.1."""

    def __init__(self, serve: Serve, port: int, tls: ssl.SSLContext | None) -> None:
        self._serve = serve
        self._port = port
        self._tls = tls
        self._runner: web.ServerRunner | None = None

    async def start(self) -> str:
        """Start to serve; return the URL."""
        server = web.Server(self._serve, handler_cancellation=True, access_log=None)
        self._runner = web.ServerRunner(server, shutdown_timeout=_FAREWELL_SECONDS)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port, ssl_context=self._tls).start()
        scheme = "https" if self._tls else "http"
        return f"{scheme}://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        """End all streams and stop serving; harmless when it does not serve."""
        runner, self._runner = self._runner, None
        if runner is None:
            return
        server = runner.server
        open_now = (
            [] if server is None else [connection.transport for connection in server.connections]
        )
        await runner.cleanup()
        for transport in open_now:
            if transport is not None:
                # A TLS connection would wait half a minute for the farewell of its client.
                transport.abort()
        await asyncio.sleep(_TURN_SECONDS)

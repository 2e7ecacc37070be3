"""The front itself: HTTPS on loopback, each request passed on as it came, answers as they come.

Who calls is told to the server behind by impersonation, so that its own rules decide what each
caller may do. The kubeconfig's user must therefore be allowed to impersonate, as cluster-admin is.
Source: https://kubernetes.io/docs/reference/access-authn-authz/user-impersonation/ (2026-08).
"""

import json
import ssl

import aiohttp
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

from infra.local.api_proxy.target import Target
from infra.local.kube.auth import Authenticator, User
from infra.local.kube.errors import ApiError, bad_request
from infra.local.kube.loopback import Loopback

_HEALTH = ("/healthz", "/livez", "/readyz")
# Of one connection, not of the message. Upgrades (exec, port-forward) are not passed on.
_HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_ADMINS = "system:masters"


class Front:
    """Serves one external API server under tokens of its own."""

    def __init__(
        self,
        target: Target,
        *,
        tls: ssl.SSLContext | None,
        authenticator: Authenticator,
        port: int = 0,
    ) -> None:
        self.url = ""
        self._target = target
        self._authenticator = authenticator
        self._server = Loopback(self._serve, port, tls)
        self._session: aiohttp.ClientSession | None = None

    async def start(self) -> None:
        """Start to serve; `url` is set after this."""
        self._session = aiohttp.ClientSession(
            # Each watch holds a connection, and there is no telling how many there are.
            connector=aiohttp.TCPConnector(limit=0, ssl=self._target.trust or True),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("Accept", "Accept-Encoding", "User-Agent", "Content-Type"),
            auto_decompress=False,
        )
        self.url = await self._server.start()

    async def stop(self) -> None:
        await self._server.stop()
        if self._session is not None:
            await self._session.close()
        await self._authenticator.close()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            if not request.raw_path.startswith("/"):
                # Put behind the server's address it could name another server.
                raise bad_request("the target of the request is no path; begin it with a slash")
            user = None
            if request.raw_path not in _HEALTH:
                user = await self._authenticator.check(request.headers.get("Authorization", ""))
            return await self._pass_on(request, user)
        except ApiError as error:
            body = json.dumps(error.status())
            return web.Response(status=error.code, text=body, content_type="application/json")

    async def _pass_on(self, request: web.BaseRequest, user: User | None) -> web.StreamResponse:
        assert self._session is not None
        # The path goes on as it was written: encoding it anew could change its meaning.
        target = URL(self._target.url + request.raw_path, encoded=True)
        try:
            answer = await self._session.request(
                request.method,
                target,
                headers=self._headers(request, user),
                data=request.content if request.body_exists else None,
                allow_redirects=False,
            )
        except (aiohttp.ClientError, TimeoutError) as error:
            message = f"the server behind the front does not answer: {error}"
            raise ApiError(503, "ServiceUnavailable", message) from error
        async with answer:
            return await _stream(request, answer)

    def _headers(self, request: web.BaseRequest, user: User | None) -> CIMultiDict[str]:
        """Return what is passed on: all but credentials, and claims about who calls."""
        sent = CIMultiDict(
            (key, value)
            for key, value in request.headers.items()
            if key.lower() not in _HOP_BY_HOP | {"host", "authorization"}
            and not key.lower().startswith(("impersonate-", "x-remote-"))
        )
        if self._target.token:
            sent["Authorization"] = f"Bearer {self._target.token}"
        if user is not None and _ADMINS not in user.groups:
            sent["Impersonate-User"] = user.name
            for group in user.groups:
                sent.add("Impersonate-Group", group)
        return sent


async def _stream(request: web.BaseRequest, answer: aiohttp.ClientResponse) -> web.StreamResponse:
    """Hand on status, headers and each piece of the body as soon as it comes."""
    headers = CIMultiDict(
        (key, value) for key, value in answer.headers.items() if key.lower() not in _HOP_BY_HOP
    )
    response = web.StreamResponse(status=answer.status, reason=answer.reason, headers=headers)
    await response.prepare(request)
    try:
        async for piece in answer.content.iter_any():
            await response.write(piece)
    except (aiohttp.ClientError, TimeoutError) as error:
        # A body that was cut off must not look whole to the caller.
        if request.transport is not None:
            request.transport.abort()
        raise ConnectionResetError("the server behind the front broke off") from error
    await response.write_eof()
    return response

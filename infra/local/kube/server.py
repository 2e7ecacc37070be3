"""The embedded API server: HTTP on loopback over the store."""

import asyncio
import gzip
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web

from infra.local.kube.api import discovery, metrics, openapi, reviews, tokens, watches
from infra.local.kube.api.verbs import Answer, Verbs
from infra.local.kube.auth import Authenticator, User
from infra.local.kube.calls import Call, locate
from infra.local.kube.errors import ApiError, JsonObject, no_such_path
from infra.local.kube.faults import Fault, Faults
from infra.local.kube.kinds import Kinds
from infra.local.kube.kubeconfig import write_kubeconfig
from infra.local.kube.loopback import Loopback
from infra.local.kube.objects.lifecycle import Lifecycle
from infra.local.kube.roles import Access, Roles
from infra.local.kube.simulated_pods import log_text
from infra.local.kube.store import Store
from infra.local.loop_thread import LoopThread

_LOG = logging.getLogger(__name__)
_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_HEALTH = ("/healthz", "/livez", "/readyz")
_GZIP_FROM_BYTES = 128 * 1024


class KubeApi:
    """One API server with an empty cluster of its own.

    Args:
        start_version: First resourceVersion; give a later one after a restart, so that watches
            of the former life are told to list again.
        authenticator: Checks the callers, whose roles decide what they may do; every caller is
            admitted to everything when None.
        initializing_seconds: For so long after a definition was written, lists and watches of
            its resource are answered 429, until its watch cache is filled.
            Source: https://github.com/kubernetes/apiserver/blob/v0.35.4/pkg/storage/cacher/ready.go
            and cacher.go ("storage is (re)initializing"), read 2026-11-22.
    """

    def __init__(
        self,
        port: int = 0,
        *,
        start_version: int = 1000,
        tls: ssl.SSLContext | None = None,
        authenticator: Authenticator | None = None,
        initializing_seconds: float = 0.0,
    ) -> None:
        self.store = Store(start_version)
        self.kinds = Kinds()
        self.lifecycle = Lifecycle(self.store, self.kinds)
        self.lifecycle.start_cluster(_NAMESPACES, _CLASSES)
        self.faults = Faults()
        self.url = ""
        self._verbs = Verbs(self.lifecycle)
        self._initializing = timedelta(seconds=initializing_seconds)
        self._authenticator = authenticator
        self._roles = Roles(self.store, self.kinds)
        self._server = Loopback(self._serve, port, tls)

    async def start(self) -> None:
        """Start to serve; `url` is set after this."""
        self.url = await self._server.start()

    async def stop(self) -> None:
        await self._server.stop()
        if self._authenticator is not None:
            await self._authenticator.close()

    # -- requests -------------------------------------------------------------------------

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            if fault := self.faults.strike(request.method, request.path, watch=_is_watch(request)):
                struck = await _suffer(request, fault)
                if struck is not None:
                    return struck
            user = None
            if self._authenticator is not None and request.path not in _HEALTH:
                user = await self._authenticator.check(request.headers.get("Authorization", ""))
                user = self._acting(user, request)
            return await self._route(request, user)
        except ApiError as error:
            return _json(error.code, orjson.dumps(error.status()), headers=_retry_after(error))
        except (ConnectionError, asyncio.CancelledError):
            raise
        except Exception:  # noqa: BLE001 the outermost loop: clients get a Status, developers the trace
            _LOG.exception("%s %s failed", request.method, request.path_qs)
            defect = ApiError(500, "InternalError", "the embedded API server has a defect; see log")
            return _json(500, orjson.dumps(defect.status()))

    def _acting(self, user: User, request: web.BaseRequest) -> User:
        """Return who a caller asks to act as (`kubectl --as`), else the caller."""
        name = request.headers.get("Impersonate-User")
        if name is None:
            return user
        groups = tuple(request.headers.getall("Impersonate-Group", ()))
        for resource, wanted in (("users", [name]), ("groups", groups)):
            for each in wanted:
                asked = Access(verb="impersonate", group="", resource=resource, name=each)
                self._roles.require(user, asked)
        return User(name=name, groups=groups)

    async def _route(self, request: web.BaseRequest, user: User | None) -> web.StreamResponse:
        path = request.path
        if path in _HEALTH:
            return web.Response(text="ok")
        if path == "/openapi/v2":
            return openapi.empty_v2(request.headers.get("Accept", ""))
        if reviews.is_review(path):
            media, body = request.headers.get("Content-Type", ""), await _body(request)
            return _json(201, reviews.review(request.method, path, media, body, user, self._roles))
        if path.startswith("/openapi/v3"):
            return self._openapi(path)
        if path.count("/") <= 3 and (found := discovery.answer(self.kinds, path)):
            return _json(200, orjson.dumps(found))
        if path.startswith(f"{metrics.ROOT}/"):
            now = self.lifecycle.now()
            found = metrics.answer(self.kinds, self.store, path, request.query, now)
            return _json(200, orjson.dumps(found))
        return await self._resource(request, user)

    async def _resource(self, request: web.BaseRequest, user: User | None) -> web.StreamResponse:
        call = await self._call(request)
        if user is not None:
            self._roles.require(user, Access.of(call))
        self._require_initialized(call)
        if call.method == "GET" and not call.subresource and call.flag("watch"):
            return await watches.serve(request, self.store, call)
        if call.method == "GET" and call.subresource == "log":
            pod = self.lifecycle.require(call.resource, call.namespace, call.name).load()
            return web.Response(text=log_text(pod, call.query))
        if call.method == "POST" and call.subresource == "token":
            issued = tokens.issue(self.lifecycle, call, self._authenticator)
            return _json(201, orjson.dumps(issued))
        answer = self._verbs.perform(call)
        return await self._respond(request, answer)

    def _require_initialized(self, call: Call) -> None:
        if call.method != "GET" or call.name or call.resource.custom is None:
            return
        defined_at = self.lifecycle.schemas.defined_at[call.resource.group, call.resource.plural]
        if self.lifecycle.now() < defined_at + self._initializing:
            details: JsonObject = {"retryAfterSeconds": 1}
            message = "storage is (re)initializing"
            raise ApiError(429, "TooManyRequests", message, details=details)

    def _openapi(self, path: str) -> web.Response:
        name = path.removeprefix("/openapi/v3").strip("/")
        body = openapi.document(self.kinds, name) if name else openapi.index(self.kinds)
        if body is None:
            raise no_such_path()
        return _json(200, orjson.dumps(body))

    async def _call(self, request: web.BaseRequest) -> Call:
        resource, namespace, name, subresource = locate(self.kinds, request.path)
        return Call(
            method=request.method,
            resource=resource,
            namespace=namespace,
            name=name,
            subresource=subresource,
            query=request.query,
            headers={key.lower(): value for key, value in request.headers.items()},
            body=await _body(request),
        )

    async def _respond(self, request: web.BaseRequest, answer: Answer) -> web.Response:
        headers: dict[str, str] = {}
        body = answer.body
        if len(body) > _GZIP_FROM_BYTES and "gzip" in request.headers.get("Accept-Encoding", ""):
            body = await asyncio.to_thread(gzip.compress, body, 1)
            headers["Content-Encoding"] = "gzip"
        if answer.warnings:
            # One header is enough: clients show it, none counts them.
            text = "; ".join(answer.warnings).replace('"', '\\"')
            headers["Warning"] = f'299 - "{text}"'
        return _json(answer.status, body, headers=headers)


async def _body(request: web.BaseRequest) -> bytes:
    try:
        return await request.read() if request.body_exists else b""
    except web.HTTPRequestEntityTooLarge as error:
        message = "the body of the request is larger than 1 MiB; send a smaller object"
        raise ApiError(413, "RequestEntityTooLarge", message) from error


def _is_watch(request: web.BaseRequest) -> bool:
    return "watch" in request.query


def _retry_after(error: ApiError) -> dict[str, str]:
    seconds = (error.details or {}).get("retryAfterSeconds")
    return {"Retry-After": str(seconds)} if seconds else {}


def _json(status: int, body: bytes, *, headers: dict[str, str] | None = None) -> web.Response:
    media = {"Content-Type": "application/json"}
    return web.Response(status=status, body=body, headers={**media, **(headers or {})})


async def _suffer(request: web.BaseRequest, fault: Fault) -> web.StreamResponse | None:
    if fault.delay_seconds:
        await asyncio.sleep(fault.delay_seconds)
    if fault.abort:
        if request.transport is not None:
            request.transport.abort()
        raise ConnectionResetError("a fault aborted the connection")
    if fault.close:
        return _json(200, b"")
    if fault.status is None:
        return None
    error = ApiError(fault.status, fault.reason, "a fault set by a test")
    headers = {} if fault.retry_after is None else {"Retry-After": str(fault.retry_after)}
    return _json(fault.status, orjson.dumps(error.status()), headers=headers)


class EmbeddedKube(LoopThread):
    """An API server in a thread."""

    def __init__(self, **options: Any) -> None:
        super().__init__("embedded-kube")
        self._options = options
        self.api: KubeApi
        self.url = ""

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        self.api = KubeApi(**self._options)
        await self.api.start()
        self.url = self.api.url
        yield
        await self.api.stop()

    def compact(self) -> None:
        """Forget the history, so that earlier versions and continue tokens are too old."""
        self.do(self.api.store.compact)

    def fault(self, path: str, **what: Any) -> Fault:
        """Let requests under a path go wrong; the arguments are the attributes of `Fault`."""
        fault = Fault(path=path, **what)
        self.do(lambda: self.api.faults.add(fault))
        return fault

    def clear_faults(self) -> None:
        self.do(self.api.faults.clear)

    def write_kubeconfig(self, path: str | Path, *, token: str = "", ca_file: str = "") -> Path:
        """Write a kubeconfig for this server and return its path."""
        target = Path(path)
        authority = {"certificate-authority": ca_file} if ca_file else {}
        write_kubeconfig(target, self.url, authority, {"token": token} if token else {})
        return target

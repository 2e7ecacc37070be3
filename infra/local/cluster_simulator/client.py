"""A small asynchronous client of the Kubernetes API: raw JSON in and out."""

import base64
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import aiohttp
import orjson

from infra.local.cluster_simulator.kinds import Kind

Json = dict[str, Any]

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"


class ApiError(Exception):
    """The server refused a call."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(f"{code} {reason}: {message}")
        self.code = code
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Where the API server is and how to be let in."""

    url: str
    token: str | None = None
    ca_file: str | None = None

    def answers(self, endpoint: str, authority: str) -> bool:
        """Return whether a client with this endpoint and authority reaches this server.

        Args:
            endpoint: Address; an empty one is that of this server.
            authority: Base64 of the PEM file that the client trusts; empty when it trusts all.
        """
        if endpoint and endpoint.rstrip("/") != self.url.rstrip("/"):
            return False
        if not authority or self.ca_file is None:
            return True
        return base64.b64decode(authority) == Path(self.ca_file).read_bytes()


class Client:
    """One connection pool to one API server; use it as an async context manager."""

    def __init__(self, server: Server, *, connections: int = 32) -> None:
        self._server = server
        self._connections = connections
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        headers = {"Accept": "application/json", "User-Agent": "dovetail-sim"}
        if self._server.token:
            headers["Authorization"] = f"Bearer {self._server.token}"
        trust: ssl.SSLContext | bool = True
        if self._server.ca_file:
            trust = ssl.create_default_context(cafile=self._server.ca_file)
        # Watches hold a connection each, so they come on top of the calls in flight.
        connector = aiohttp.TCPConnector(limit=self._connections + 16, ssl=trust)
        self._session = aiohttp.ClientSession(
            self._server.url.rstrip("/"), connector=connector, headers=headers
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Json | list[Json] | None = None,
        content: str = "application/json",
    ) -> Json:
        """Send one request and return the answer."""
        assert self._session is not None
        async with self._session.request(
            method,
            path,
            params=query,
            data=None if body is None else orjson.dumps(body),
            headers=None if body is None else {"Content-Type": content},
            timeout=aiohttp.ClientTimeout(total=60),
        ) as response:
            text = await response.read()
            if response.status >= 300:
                raise _refusal(response.status, text)
            answer: Json = orjson.loads(text) if text else {}
            return answer

    async def get(self, kind: Kind, namespace: str, name: str) -> Json:
        return await self.call("GET", kind.path(namespace, name))

    async def list_page(self, kind: Kind, token: str) -> Json:
        """Read one page of all objects of a kind; an empty token starts from the first."""
        query = {"limit": "500"} | ({"continue": token} if token else {})
        return await self.call("GET", kind.path(), query=query)

    async def create(self, kind: Kind, obj: Json) -> Json:
        path = kind.path(obj["metadata"].get("namespace", ""))
        return await self.call("POST", path, body=obj)

    async def patch(
        self, kind: Kind, obj: Json, change: Json, *, part: str = "", content: str = MERGE_PATCH
    ) -> Json:
        """Patch an object or one of its parts (`status`, `scale`)."""
        path = kind.path_of(obj) + (f"/{part}" if part else "")
        return await self.call("PATCH", path, body=change, content=content)

    async def patch_status(self, kind: Kind, obj: Json, status: Json) -> Json:
        """Merge into an object's status strategically: conditions are merged by type."""
        return await self.patch(
            kind, obj, {"status": status}, part="status", content=STRATEGIC_PATCH
        )

    async def bind(self, pod: Json, node_name: str) -> None:
        """Write a pod's node through the binding subresource."""
        meta = pod["metadata"]
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {k: meta[k] for k in ("name", "namespace", "uid")},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node_name},
        }
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/binding"
        await self.call("POST", path, body=body)

    async def delete(self, kind: Kind, obj: Json, *, grace_seconds: int | None = None) -> None:
        """Delete this very object (by uid); one that is already gone is no error."""
        options: Json = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": obj["metadata"]["uid"]},
        }
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        try:
            await self.call("DELETE", kind.path_of(obj), body=options)
        except ApiError as error:
            if error.code not in {404, 409}:
                raise

    async def watch(self, kind: Kind, version: str, seconds: int) -> AsyncIterator[Json]:
        """Yield watch events after a resourceVersion, until the server ends the stream."""
        assert self._session is not None
        query = {
            "watch": "true",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(seconds),
        }
        timeout = aiohttp.ClientTimeout(total=None, sock_read=seconds + 30)
        async with self._session.get(kind.path(), params=query, timeout=timeout) as response:
            if response.status >= 300:
                raise _refusal(response.status, await response.read())
            rest = b""
            async for chunk in response.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    event: Json = orjson.loads(line)
                    if event["type"] == "ERROR":
                        raise _failure(event["object"])
                    yield event


def _refusal(status: int, text: bytes) -> ApiError:
    try:
        body = orjson.loads(text)
    except orjson.JSONDecodeError:
        body = {}
    return _failure({"code": status, **(body if isinstance(body, dict) else {})})


def _failure(status: Json) -> ApiError:
    return ApiError(status["code"], status.get("reason", ""), status.get("message", ""))

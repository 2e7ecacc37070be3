"""Calls to an API server, and the errors that their answers mean.

Source: https://kubernetes.io/docs/reference/using-api/api-concepts/ (2026-08).
"""

import contextlib
import json
import re
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from http.client import HTTPException
from typing import Any, Final
from urllib.parse import quote, urlencode

import urllib3
from msgspec import Struct
from urllib3.response import BaseHTTPResponse

from shared.kube.bounds import TooLargeError, read_bounded
from shared.model.errors import (
    AutoscalerError,
    CertificateError,
    ConflictError,
    NotFoundError,
    PermanentError,
    RetryableError,
    ThrottledError,
    UnauthorizedError,
    UnavailableError,
)

USER_AGENT: Final = "dovetail"
JSON: Final = "application/json"
JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
CONNECT_SECONDS: Final = 5.0
# An object has at most 1.5 MiB in etcd and 3 MiB in a request; lists are read in pages.
# Source: https://github.com/kubernetes/kubernetes/blob/v1.36.3/staging/src/k8s.io/apiserver/pkg/server/config.go
# (MaxRequestBodyBytes, 2026-11).
MOST_BYTES: Final = 8 * 2**20
# The status of an answer that was not read to its end because it is larger than that.
TOO_LARGE: Final = 507

# Segments of paths are constants or names of objects; Kubernetes allows only these characters in
# names. Names come from messages and from fields that the API server does not check.
# Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/names/ (2026-11).
_PATH: Final = re.compile(r"(/[a-z0-9]([a-z0-9._-]*[a-z0-9])?)+\Z")

Query = Sequence[tuple[str, str]]
Decode = Callable[[bytes], Any]  # turns the text of an answer into objects


class ExpiredError(RetryableError):
    """410: the resourceVersion or continue token is too old; list again from the beginning."""


class RejectedError(PermanentError):
    """400, 405, 415, 422: the server understood the request and will never accept it."""


class Reply(Struct, frozen=True, kw_only=True):
    """The answer to a call.

    Attributes:
        body: The JSON object, a `Status` when the call failed.
        delay: The delay in the header Retry-After, None without one.
        size_bytes: Size of the body, decompressed.
    """

    status: int
    body: Mapping[str, Any]
    delay: timedelta | None = None
    size_bytes: int = 0

    @property
    def ok(self) -> bool:
        """Whether the call succeeded."""
        return 200 <= self.status < 300

    @property
    def causes(self) -> frozenset[str]:
        """Reasons among the causes of a failure, such as DisruptionBudget."""
        details = self.body.get("details")
        causes = details.get("causes") if isinstance(details, Mapping) else None
        return frozenset(
            str(cause.get("reason"))
            for cause in (causes if isinstance(causes, list) else ())
            if isinstance(cause, Mapping)
        )


class KubeApi:
    """An API server, reached through a pool of connections.

    Thread-safe. Every call is made once; it is repeated only if the server had closed a pooled
    connection meanwhile, which is harmless: all writes of Dovetail are conditional or idempotent.

    Args:
        url: URL of its endpoint, without a path.
        pool: Pool of connections, made by `shared.kube.connection`.
        authorization: Called for each request; returns the headers that identify the caller.
        timeout: Longest wait for a complete answer.
        compress: Whether to request gzip: it pays across networks, not inside the cluster.
    """

    def __init__(
        self,
        url: str,
        pool: urllib3.PoolManager,
        authorization: Callable[[], Mapping[str, str]],
        *,
        timeout: timedelta = timedelta(seconds=20),
        compress: bool = False,
    ) -> None:
        self._url = url.rstrip("/")
        self._pool = pool
        self._authorization = authorization
        self._seconds = timeout.total_seconds()
        self._compress = compress

    @property
    def url(self) -> str:
        """The endpoint, without a path."""
        return self._url

    def get(self, path: str, query: Query = ()) -> Mapping[str, Any]:
        """Return the object at a path.

        Raises:
            NotFoundError: If there is none.
        """
        reply = self.send("GET", path, query=query)
        raise_unless_ok(reply, f"GET {path}")
        return reply.body

    def send(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        query: Query = (),
        content_type: str = JSON,
        decode: Decode = json.loads,
    ) -> Reply:
        """Return the answer, whatever its status; the caller decides which statuses are errors.

        A path with a name that no object can have gets status 404 without a call; an answer of
        more than `MOST_BYTES` gets status `TOO_LARGE`, a server error.

        Raises:
            CertificateError: If the server's certificate is not valid for it.
            UnavailableError: If no answer came.
        """
        if not _is_path(path):
            return Reply(status=404, body={"message": "no object can have such a name"})
        until = time.monotonic() + self._seconds
        try:
            response = self._request(method, path, query, body, content_type, self._seconds)
        except UnavailableError as error:
            broken = isinstance(error.__cause__, urllib3.exceptions.ProtocolError)
            if not broken or time.monotonic() >= until:
                raise
            response = self._request(method, path, query, body, content_type, self._seconds)
        return _reply(response, f"{method} {path}", until, decode)

    def stream(self, path: str, query: Query, read_seconds: float) -> "Stream":
        """Return the lines of a watch as they arrive.

        Args:
            read_seconds: Longest silence before the connection counts as dead.

        Raises:
            ExpiredError: If the resourceVersion is too old.
        """
        response = self._request("GET", path, query, None, JSON, read_seconds)
        if not 200 <= response.status < 300:
            until = time.monotonic() + self._seconds
            raise error_for(_reply(response, f"watch {path}", until, json.loads), f"watch {path}")
        return Stream(response, f"watch {path}")

    def _request(
        self,
        method: str,
        path: str,
        query: Query,
        body: object,
        content_type: str,
        read_seconds: float,
    ) -> BaseHTTPResponse:
        headers = {"Accept": JSON, "User-Agent": USER_AGENT, **self._authorization()}
        if self._compress:
            headers["Accept-Encoding"] = "gzip"
        content = None
        if body is not None:
            headers["Content-Type"] = content_type
            content = json.dumps(body, separators=(",", ":")).encode()
        url = self._url + path + ("?" + urlencode(list(query)) if query else "")
        try:
            response: BaseHTTPResponse = self._pool.request(
                method,
                url,
                headers=headers,
                body=content,
                preload_content=False,
                retries=False,
                timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=read_seconds),
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in error.args):
                raise CertificateError(
                    f"{self._url}: its certificate is not accepted: {error}; compare the "
                    "certificate authority of the connection with that of the cluster"
                ) from error
            raise UnavailableError(f"{method} {path}: no answer: {error}") from error
        return response


class Stream:
    """The lines of a running watch, read by one thread; other threads may call `interrupt`."""

    def __init__(self, response: BaseHTTPResponse, what: str) -> None:
        self._response = response
        self._what = what

    def lines(self) -> Iterator[bytes]:
        """Yield complete lines until the server ends the stream; an incomplete line is dropped.

        Raises:
            UnavailableError: If the connection broke or stayed silent for too long, or a line has
                more than `MOST_BYTES`.
        """
        rest = b""
        try:
            while chunk := self._response.read1(65_536):
                *complete, rest = (rest + chunk).split(b"\n")
                yield from (line for line in complete if line.strip())
                if len(rest) > MOST_BYTES:
                    raise UnavailableError(f"{self._what}: a line of more than {MOST_BYTES} bytes")
        except (urllib3.exceptions.HTTPError, HTTPException, OSError) as error:
            raise UnavailableError(f"{self._what}: broke off: {error}") from error

    def interrupt(self) -> None:
        """End a read that is under way in another thread at once."""
        with contextlib.suppress(ValueError, RuntimeError, OSError):
            # These errors mean that the connection has already ended.
            self._response.shutdown()

    def close(self) -> None:
        """Close the connection."""
        self._response.close()


def path_to(collection: str, *segments: str) -> str:
    """Return the path of an object or subresource in a collection; segments are escaped."""
    return "/".join((collection, *(quote(segment, safe="") for segment in segments)))


def _is_path(path: str) -> bool:
    return bool(_PATH.match(path)) and ".." not in path


def raise_unless_ok(reply: Reply, what: str) -> None:
    """Raise the error for a failed answer."""
    if not reply.ok:
        raise error_for(reply, what)


def error_for(reply: Reply, what: str) -> AutoscalerError:
    """Return the error of `shared.model.errors`, or of this module, for a failed answer."""
    message = f"{what}: {reply.status} {reply.body.get('message', '')}".rstrip()
    match reply.status:
        case 401 | 403:
            return UnauthorizedError(message)
        case 404:
            return NotFoundError(message)
        case 409:
            return ConflictError(message)
        case 410:
            return ExpiredError(message)
        case 429:
            return ThrottledError(message, delay=reply.delay)
        case status if status >= 500 or status == 408:
            return UnavailableError(message, delay=reply.delay)
    return RejectedError(message)


def _reply(response: BaseHTTPResponse, what: str, until: float, decode: Decode) -> Reply:
    try:
        text = read_bounded(response, until=until, most_bytes=MOST_BYTES)
    except TooLargeError as error:
        response.close()
        return Reply(status=TOO_LARGE, body={"message": str(error)})
    except (urllib3.exceptions.HTTPError, HTTPException, OSError) as error:
        response.close()
        raise UnavailableError(f"{what}: the answer broke off: {error}") from error
    finally:
        response.release_conn()
    body = _object(text, decode)
    if body is None and 200 <= response.status < 300:
        raise UnavailableError(f"{what}: the answer is no JSON object: {text[:80]!r}")
    # The body of a failure may be a proxy's page.
    return Reply(
        status=response.status,
        body={"message": text[:200].decode("utf-8", "replace")} if body is None else body,
        delay=_delay(response),
        size_bytes=len(text),
    )


def _object(text: bytes, decode: Decode) -> Mapping[str, Any] | None:
    """Return a body as a JSON object; None if it is no object, or nested too deeply."""
    try:
        body = decode(text)
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


def _delay(response: BaseHTTPResponse) -> timedelta | None:
    text = response.headers.get("Retry-After", "")
    return timedelta(seconds=int(text)) if text.isascii() and text.isdigit() else None

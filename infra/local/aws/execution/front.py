"""The Invoke API of Lambda, answered before moto sees it."""

import json
import re
import uuid
from collections.abc import Iterable
from urllib.parse import parse_qs, unquote

from infra.local.aws.execution.deferred import DeferredInvocations
from infra.local.aws.execution.function import FunctionNotFoundError
from infra.local.aws.execution.invoker import InvocationResult, Invoker, ThrottledError
from infra.local.aws.execution.recursion import RecursiveLoopError
from infra.local.aws.listener import Environ, StartResponse

_PATH = re.compile(r"^/2015-03-31/functions/(?P<name>.+)/invocations/?$")
_ANSWER_LIMIT = 6_291_556
_REQUEST_LIMIT = 6 * 1024 * 1024
_DEFERRED_LIMIT = 1024 * 1024


class InvokeFront:
    """WSGI application for POST /2015-03-31/functions/NAME/invocations."""

    def __init__(self, invoker: Invoker, deferred: DeferredInvocations) -> None:
        self._invoker = invoker
        self._deferred = deferred

    @staticmethod
    def matches(environ: Environ) -> bool:
        return environ["REQUEST_METHOD"] == "POST" and bool(_PATH.match(environ["PATH_INFO"]))

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Invoke, or refuse with Lambda's own error codes."""
        match = _PATH.match(environ["PATH_INFO"])
        assert match is not None
        name = match["name"]
        qualifier = parse_qs(environ["QUERY_STRING"]).get("Qualifier", [None])[0]
        kind = environ.get("HTTP_X_AMZ_INVOCATION_TYPE", "RequestResponse")
        payload = environ["wsgi.input"].read()
        traces = (unquote(environ.get("HTTP_X_AMZN_TRACE_ID", "")),)
        try:
            _check(payload, _DEFERRED_LIMIT if kind == "Event" else _REQUEST_LIMIT)
            if kind == "Event":
                self._deferred.accept(name, payload, qualifier=qualifier, traces=traces)
                return _answer(start_response, "202 Accepted", b"", {})
            if kind == "DryRun":
                self._invoker.exists(name, qualifier)
                return _answer(start_response, "204 No Content", b"", {})
            result = self._invoker.invoke(name, payload, qualifier=qualifier, traces=traces)
            return _result(start_response, result, qualifier)
        except _RefusedError as refusal:
            return _refuse(start_response, refusal)
        except FunctionNotFoundError as error:
            return _refuse(
                start_response,
                _RefusedError("404 Not Found", "ResourceNotFoundException", str(error)),
            )
        except ThrottledError as error:
            return _refuse(
                start_response,
                _RefusedError("429 Too Many Requests", "TooManyRequestsException", str(error)),
            )
        except RecursiveLoopError as error:
            return _refuse(
                start_response,
                _RefusedError("400 Bad Request", "RecursiveInvocationException", str(error)),
            )


def _result(
    start_response: StartResponse, result: InvocationResult, qualifier: str | None
) -> Iterable[bytes]:
    body = result.outcome.payload
    headers = {
        "x-amzn-RequestId": result.request_id,
        "X-Amz-Executed-Version": "$LATEST" if qualifier is None else result.version,
    }
    failed = result.failed
    if len(body) > _ANSWER_LIMIT:
        failed = True
        body = json.dumps(
            {
                "errorType": "Function.ResponseSizeTooLarge",
                "errorMessage": "Response payload size exceeded maximum allowed payload "
                f"size ({_ANSWER_LIMIT} bytes).",
            }
        ).encode()
    if failed:
        headers["X-Amz-Function-Error"] = "Unhandled"
    return _answer(start_response, "200 OK", body, headers)


class _RefusedError(Exception):
    def __init__(self, status: str, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


def _check(payload: bytes, limit: int) -> None:
    if len(payload) > limit:
        raise _RefusedError(
            "413 Payload Too Large",
            "RequestTooLargeException",
            f"the payload has {len(payload)} bytes, the limit is {limit}",
        )
    try:
        json.loads(payload or b"{}")
    except ValueError:
        raise _RefusedError(
            "400 Bad Request",
            "InvalidRequestContentException",
            "Could not parse request body into json",
        ) from None


def _answer(
    start_response: StartResponse, status: str, body: bytes, headers: dict[str, str]
) -> Iterable[bytes]:
    given = {"Content-Type": "application/json", "x-amzn-RequestId": str(uuid.uuid4())} | headers
    start_response(status, list(given.items()))
    return [body]


def _refuse(start_response: StartResponse, refusal: _RefusedError) -> Iterable[bytes]:
    body = {"Type": "User", "Message": str(refusal), "message": str(refusal)}
    if refusal.code == "TooManyRequestsException":
        body["Reason"] = "ReservedFunctionConcurrentInvocationLimitExceeded"
    headers = {"x-amzn-ErrorType": refusal.code}
    return _answer(start_response, refusal.status, json.dumps(body).encode(), headers)

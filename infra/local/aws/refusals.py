"""Errors of the server itself, in the form that the SDK of each service reads."""

import json
import re
import time
import uuid
from collections.abc import Callable, Iterable
from threading import Lock
from typing import Final
from xml.sax.saxutils import escape

from infra.local.aws.listener import Environ, StartResponse

_SERVICE = re.compile(r"Credential=[^/,]+/\d+/[^/,]*/([^/,]+)/")


def signed_service(environ: Environ) -> str:
    """Return the service that a request is signed for, as signatures name it; empty without."""
    said = _SERVICE.search(environ.get("HTTP_AUTHORIZATION", ""))
    return said[1] if said else ""


def refuse_too_many(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
    """Refuse a request of a caller who makes too many, in the words of its service.

    Source: https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html,
    https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html (SlowDown),
    https://docs.aws.amazon.com/awssupport/latest/APIReference/CommonErrors.html
    (ThrottlingException) (2026-11).
    """
    match signed_service(environ):
        case "ec2":
            code, status, text = "RequestLimitExceeded", "503", "Request limit exceeded."
        case "s3":
            code, status, text = "SlowDown", "503", "Please reduce your request rate."
        case _:
            code, status, text = "ThrottlingException", "400", "Rate exceeded"
    reason = "Service Unavailable" if status == "503" else "Bad Request"
    return refuse(environ, start_response, f"{status} {reason}", code, text)


def refuse(
    environ: Environ, start_response: StartResponse, status: str, code: str, message: str
) -> Iterable[bytes]:
    """Answer a status with an error.

    Source: https://smithy.io/2.0/aws/protocols/ (awsQuery, ec2Query, restXml, awsJson1_0,
    restJson1; 2026-11).
    """
    service = signed_service(environ)
    media = environ.get("CONTENT_TYPE", "")
    text = f"<Code>{code}</Code><Message>{escape(message)}</Message>"
    request_id = f"<RequestId>{uuid.uuid4()}</RequestId>"
    if service == "ec2":
        body = f"<Response><Errors><Error>{text}</Error></Errors>{request_id}</Response>"
    elif service == "s3":
        body = f"<Error>{text}{request_id}</Error>"
    elif "x-www-form-urlencoded" in media or "Action=" in environ["QUERY_STRING"]:
        error = f"<Error><Type>Sender</Type>{text}</Error>"
        body = f"<ErrorResponse>{error}{request_id}</ErrorResponse>"
    else:
        headers = [("Content-Type", "application/json"), ("x-amzn-ErrorType", code)]
        start_response(status, headers)
        return [json.dumps({"__type": code, "message": message}).encode()]
    start_response(status, [("Content-Type", "text/xml")])
    return [body.encode()]


_ROLE: Final = ":assumed-role/"


class Throttle:
    """Which services are throttled, and until when.

    It strikes calls of roles alone: the account's own key is that of the local world itself, of its
    instances and of what looks at it.

    Args:
        harmed: Called for each call that is refused.
        clock: Seconds that only grow.
    """

    def __init__(
        self, harmed: Callable[[str, str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._harmed = harmed
        self._clock = clock
        self._lock = Lock()
        self._until: dict[str, float] = {}

    def begin(self, service: str, seconds: float) -> None:
        """Refuse calls to a service, as signatures name it, from now on for some seconds."""
        with self._lock:
            self._until[service] = self._clock() + seconds

    def clear(self) -> None:
        with self._lock:
            self._until.clear()

    def strikes(self, caller_arn: str, service: str) -> bool:
        """Return whether a call is refused, and count it."""
        with self._lock:
            ends = self._until.get(service)
        if ends is None or ends <= self._clock() or _ROLE not in caller_arn:
            return False
        self._harmed("call throttled", service)
        return True

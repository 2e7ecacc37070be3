"""Errors of the server itself, in the form that the SDK of each service reads."""

import json
import re
import uuid
from collections.abc import Iterable
from xml.sax.saxutils import escape

from infra.local.aws.listener import Environ, StartResponse

_SERVICE = re.compile(r"Credential=[^/,]+/\d+/[^/,]*/([^/,]+)/")


def refuse(
    environ: Environ, start_response: StartResponse, status: str, code: str, message: str
) -> Iterable[bytes]:
    """Answer a status with an error.

    Source: https://smithy.io/2.0/aws/protocols/ (awsQuery, ec2Query, restXml, awsJson1_0,
    restJson1; 2026-11).
    """
    said = _SERVICE.search(environ.get("HTTP_AUTHORIZATION", ""))
    service = said[1] if said else ""
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

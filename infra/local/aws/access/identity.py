"""GetCallerIdentity as a presigned GET, the token functions show to the Kubernetes API.

The API server replays the URL that a function signed; the answer names the caller.
"""

import json
import uuid
from collections.abc import Iterable
from xml.sax.saxutils import escape

from infra.local.aws.access.authentication import Caller
from infra.local.aws.listener import Environ, StartResponse


def answer_identity(
    caller: Caller, environ: Environ, start_response: StartResponse
) -> Iterable[bytes]:
    """Answer who the caller is, in XML, or in JSON when asked for."""
    request_id = str(uuid.uuid4())
    if "json" in environ.get("HTTP_ACCEPT", ""):
        start_response("200 OK", [("Content-Type", "application/json")])
        return [json.dumps(_json_answer(caller, request_id)).encode()]
    start_response("200 OK", [("Content-Type", "text/xml")])
    return [_xml_answer(caller, request_id).encode()]


def _json_answer(caller: Caller, request_id: str) -> dict[str, object]:
    return {
        "GetCallerIdentityResponse": {
            "GetCallerIdentityResult": {
                "Account": caller.account,
                "Arn": caller.arn,
                "UserId": caller.user_id,
            },
            "ResponseMetadata": {"RequestId": request_id},
        }
    }


def _xml_answer(caller: Caller, request_id: str) -> str:
    return (
        '<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">'
        f"<GetCallerIdentityResult><Arn>{escape(caller.arn)}</Arn>"
        f"<UserId>{escape(caller.user_id)}</UserId><Account>{caller.account}</Account>"
        f"</GetCallerIdentityResult><ResponseMetadata><RequestId>{request_id}</RequestId>"
        "</ResponseMetadata></GetCallerIdentityResponse>"
    )

"""Who calls: each request must be for this host and signed with a key that is known here.

The server runs code as the user who started it, so that neither another user of the machine nor
a web page may use it. A browser cannot sign, and DNS rebinding shows in the Host header.
Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
(2026-11-21).
"""

import hashlib
import hmac
import json
import re
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from infra.local.aws.backends import backend
from infra.local.aws.clients import Access
from infra.local.aws.listener import Environ, StartResponse

_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 +Credential=([^,\s]+), *SignedHeaders=([^,\s]+), *Signature=([0-9a-f]{64})"
)
_STS_HOST = re.compile(r"sts(\.[a-z0-9-]+)?\.amazonaws\.com")
_MAX_LIFE = timedelta(minutes=15)
_CLOCK_SKEW = timedelta(minutes=5)
_PRESIGNED = ("Credential", "Date", "Expires", "Signature", "SignedHeaders")
_NOT_HASHED = ("UNSIGNED-PAYLOAD", "STREAMING-")
Clock = Callable[[], datetime]


class NotAuthenticError(Exception):
    """The request is not let in; `code` is the error code of AWS."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who signed."""

    account: str
    user_id: str
    arn: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Key:
    secret: str
    caller: Caller
    token: str | None = None
    expires: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Signed:
    """What a request says about its signature."""

    scope: tuple[str, ...]
    headers: tuple[str, ...]
    signature: str
    date: str
    token: str
    query: str
    hosts: tuple[str, ...]
    life: timedelta = _CLOCK_SKEW


def asks_identity(environ: Environ) -> bool:
    """Return whether a request is a GetCallerIdentity whose signature is in the query."""
    return (
        environ["REQUEST_METHOD"] == "GET"
        and environ["PATH_INFO"] in {"", "/"}
        and "Action=GetCallerIdentity" in environ["QUERY_STRING"]
    )


class Authentication:
    """Checks requests against the server's own key, sessions of roles and keys of IAM users."""

    def __init__(
        self, own: Access, *, account_id: str, clock: Clock = lambda: datetime.now(UTC)
    ) -> None:
        self._own = own
        self._account_id = account_id
        self._clock = clock

    def check(self, environ: Environ) -> Caller:
        """Return who signed a request."""
        _check_place(environ)
        presigned = asks_identity(environ) and "HTTP_AUTHORIZATION" not in environ
        signed = _of_query(environ) if presigned else _of_header(environ)
        key = self._key(signed.scope[0])
        if key is None or (
            key.token is not None
            and not hmac.compare_digest(signed.token.encode(), key.token.encode())
        ):
            raise NotAuthenticError(
                "InvalidClientTokenId", "the access key or its session token is not known here"
            )
        now = self._clock()
        if key.expires is not None and key.expires < now:
            raise NotAuthenticError("ExpiredToken", "the session token has expired")
        _check_life(signed, now)
        if not any(
            hmac.compare_digest(_signature(environ, signed, key, host), signed.signature)
            for host in signed.hosts
        ):
            raise NotAuthenticError("SignatureDoesNotMatch", "the signature does not match")
        return key.caller

    def _key(self, key_id: str) -> _Key | None:
        if hmac.compare_digest(key_id.encode(), self._own.key_id.encode()):
            root = f"arn:aws:iam::{self._account_id}:root"
            caller = Caller(account=self._account_id, user_id=self._account_id, arn=root)
            return _Key(secret=self._own.secret, caller=caller)
        role = backend("sts", self._account_id, "").get_assumed_role_from_access_key(key_id)
        if role is not None:
            return _Key(
                secret=role.secret_access_key,
                token=role.session_token,
                caller=Caller(account=role.account_id, user_id=role.user_id, arn=role.arn),
                expires=role.expiration.replace(tzinfo=UTC),
            )
        for user in list(backend("iam", self._account_id, "").users.values()):
            for row in user.access_keys:
                if row.access_key_id == key_id and row.status == "Active":
                    caller = Caller(account=self._account_id, user_id=user.id, arn=user.arn)
                    return _Key(secret=row.secret_access_key, caller=caller)
        return None


def _check_place(environ: Environ) -> None:
    host, origin = environ.get("HTTP_HOST", ""), environ.get("HTTP_ORIGIN")
    own = _own_hosts(environ)
    if host not in own and not (asks_identity(environ) and _STS_HOST.fullmatch(host)):
        raise NotAuthenticError("AccessDenied", f"the Host is not {own[0]}")
    if origin is not None and origin not in {f"http://{name}" for name in own}:
        raise NotAuthenticError("AccessDenied", f"the Origin is not http://{own[0]}")


def _own_hosts(environ: Environ) -> tuple[str, str]:
    port = environ["SERVER_PORT"]
    return f"127.0.0.1:{port}", f"localhost:{port}"


def _of_header(environ: Environ) -> _Signed:
    text = environ.get("HTTP_AUTHORIZATION")
    if text is None:
        raise NotAuthenticError(
            "MissingAuthenticationToken", "the request is not signed; use the key of this world"
        )
    found = _AUTHORIZATION.fullmatch(text)
    if found is None:
        raise NotAuthenticError("IncompleteSignature", "the Authorization header is not SigV4")
    credential, names, signature = found.groups()
    declared = environ.get("HTTP_X_AMZ_CONTENT_SHA256", "")
    hashed = declared and not declared.startswith(_NOT_HASHED)
    if hashed and declared != hashlib.sha256(_body(environ)).hexdigest():
        raise NotAuthenticError("SignatureDoesNotMatch", "the body is not what was signed")
    return _Signed(
        scope=_scope(credential),
        headers=_signed_headers(names),
        signature=signature,
        date=environ.get("HTTP_X_AMZ_DATE", ""),
        token=environ.get("HTTP_X_AMZ_SECURITY_TOKEN", ""),
        query=environ["QUERY_STRING"],
        hosts=(environ["HTTP_HOST"],),
    )


def _of_query(environ: Environ) -> _Signed:
    text = environ["QUERY_STRING"]
    pairs = parse_qsl(text, keep_blank_values=True)
    query = dict(pairs)
    if len(query) != len(pairs) or query.get("Action") != "GetCallerIdentity":
        raise NotAuthenticError("InvalidAction", "the query must ask for GetCallerIdentity")
    for name in _PRESIGNED:
        if not query.get(f"X-Amz-{name}"):
            raise NotAuthenticError("MissingAuthenticationToken", f"X-Amz-{name} is missing")
    scope = _scope(query["X-Amz-Credential"])
    if scope[3] != "sts":
        raise NotAuthenticError("SignatureDoesNotMatch", "the credential scope is not sts")
    try:
        life = timedelta(seconds=int(query["X-Amz-Expires"]))
    except (ValueError, OverflowError):
        raise NotAuthenticError("IncompleteSignature", "X-Amz-Expires is wrong") from None
    # A token may be signed for the real STS, or for this server by any of its names.
    real = (f"sts.{scope[2]}.amazonaws.com", "sts.amazonaws.com")
    return _Signed(
        scope=scope,
        headers=_signed_headers(query["X-Amz-SignedHeaders"]),
        signature=query["X-Amz-Signature"],
        date=query["X-Amz-Date"],
        token=query.get("X-Amz-Security-Token", ""),
        query="&".join(part for part in text.split("&") if not part.startswith("X-Amz-Signature=")),
        hosts=(environ["HTTP_HOST"], *_own_hosts(environ), *real),
        life=life,
    )


def _scope(credential: str) -> tuple[str, ...]:
    scope = tuple(credential.split("/"))
    if len(scope) != 5 or scope[4] != "aws4_request":
        raise NotAuthenticError("IncompleteSignature", "the credential scope is wrong")
    return scope


def _signed_headers(text: str) -> tuple[str, ...]:
    names = tuple(text.lower().split(";"))
    if "host" not in names:
        raise NotAuthenticError("SignatureDoesNotMatch", "the Host header is not signed")
    return names


def _check_life(signed: _Signed, now: datetime) -> None:
    try:
        moment = datetime.strptime(signed.date, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        raise NotAuthenticError("IncompleteSignature", "X-Amz-Date is wrong") from None
    if signed.life > _MAX_LIFE or not moment - _CLOCK_SKEW <= now <= moment + signed.life:
        raise NotAuthenticError("ExpiredToken", "the signed request is not valid now")


def _signature(environ: Environ, signed: _Signed, key: _Key, host: str) -> str:
    """Return the signature that the holder of a key makes for a request."""
    _, _, region, service, _ = signed.scope
    path = environ["REQUEST_URI"].partition("?")[0]
    request = AWSRequest(
        method=environ["REQUEST_METHOD"],
        url=f"http://{host}{path}" + (f"?{signed.query}" if signed.query else ""),
        headers={
            name: host if name == "host" else _header(environ, name) for name in signed.headers
        },
        data=_body(environ),
    )
    request.context["timestamp"] = signed.date
    signer: Any = (S3SigV4Auth if service == "s3" else SigV4Auth)(
        Credentials(signed.scope[0], key.secret), service, region
    )
    text = signer.string_to_sign(request, signer.canonical_request(request))
    return str(signer.signature(text, request))


def _header(environ: Environ, name: str) -> str:
    prefix = "" if name in {"content-type", "content-length"} else "HTTP_"
    return str(environ.get(prefix + name.upper().replace("-", "_"), ""))


def _body(environ: Environ) -> bytes:
    body = environ["wsgi.input"].read()
    environ["wsgi.input"].seek(0)
    return bytes(body)


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

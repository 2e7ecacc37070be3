"""GetCallerIdentity as a presigned GET, the token functions show to the Kubernetes API.

The API server replays the URL that a function signed; the answer names the caller only when
the signature was made with the secret of a key that is known here and still valid.
Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
(2026-11-21).
"""

import hashlib
import hmac
import json
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl, quote
from xml.sax.saxutils import escape

from infra.local.aws.backends import backend
from infra.local.aws.listener import Environ, StartResponse

_MAX_LIFE = timedelta(minutes=15)
_CLOCK_SKEW = timedelta(minutes=5)
PEOPLE = "testing"
"""Key and secret of whoever uses the local world: the account itself, which may do everything."""
Clock = Callable[[], datetime]


class NotAuthenticError(Exception):
    """The request proves nothing; `code` is the STS error code."""

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
    token: str | None
    caller: Caller
    expires: datetime | None


class CallerIdentity:
    """WSGI application for GET /?Action=GetCallerIdentity with a signature in the query."""

    def __init__(self, *, account_id: str, clock: Clock = lambda: datetime.now(UTC)) -> None:
        self._account_id = account_id
        self._clock = clock

    @staticmethod
    def matches(environ: Environ) -> bool:
        """Whether a request is such a presigned one."""
        query = environ["QUERY_STRING"]
        return (
            environ["REQUEST_METHOD"] == "GET"
            and environ["PATH_INFO"] in {"", "/"}
            and "Action=GetCallerIdentity" in query
        )

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Answer the caller (XML, or JSON when asked for), or status 403."""
        request_id = str(uuid.uuid4())
        try:
            caller = self.verify(environ)
        except NotAuthenticError as error:
            body = (
                '<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error>'
                f"<Type>Sender</Type><Code>{error.code}</Code>"
                f"<Message>{escape(str(error))}</Message></Error>"
                f"<RequestId>{request_id}</RequestId></ErrorResponse>"
            )
            start_response("403 Forbidden", [("Content-Type", "text/xml")])
            return [body.encode()]
        if "json" in environ.get("HTTP_ACCEPT", ""):
            start_response("200 OK", [("Content-Type", "application/json")])
            return [json.dumps(_json_answer(caller, request_id)).encode()]
        start_response("200 OK", [("Content-Type", "text/xml")])
        return [_xml_answer(caller, request_id).encode()]

    def verify(self, environ: Environ) -> Caller:
        """Check key, token, life time and signature.

        Raises:
            NotAuthenticError: any of them is wrong.
        """
        pairs = parse_qsl(environ["QUERY_STRING"], keep_blank_values=True)
        query = dict(pairs)
        if len(query) != len(pairs) or query.get("Action") != "GetCallerIdentity":
            raise NotAuthenticError("InvalidAction", "the query must ask for GetCallerIdentity")
        for name in ("Credential", "Date", "Expires", "Signature", "SignedHeaders"):
            if not query.get(f"X-Amz-{name}"):
                raise NotAuthenticError("MissingAuthenticationToken", f"X-Amz-{name} is missing")
        scope = query["X-Amz-Credential"].split("/")
        if len(scope) != 5 or scope[3:] != ["sts", "aws4_request"]:
            raise NotAuthenticError("SignatureDoesNotMatch", "the credential scope is not sts")
        now = self._clock()
        key = self._key(scope[0])
        if key is None:
            raise NotAuthenticError("InvalidClientTokenId", "the security token is invalid")
        if key.token is not None and query.get("X-Amz-Security-Token") != key.token:
            raise NotAuthenticError("InvalidClientTokenId", "the security token is invalid")
        if key.expires is not None and key.expires < now:
            raise NotAuthenticError("ExpiredToken", "the security token has expired")
        _check_life(query, now)
        if not any(
            hmac.compare_digest(_signature(query, environ, scope, key.secret, host), signature)
            for host in _hosts(environ, scope[2])
            for signature in [query["X-Amz-Signature"]]
        ):
            raise NotAuthenticError("SignatureDoesNotMatch", "the signature does not match")
        return key.caller

    def _key(self, key_id: str) -> _Key | None:
        role = backend("sts", self._account_id, "").get_assumed_role_from_access_key(key_id)
        if role is not None:
            caller = Caller(account=role.account_id, user_id=role.user_id, arn=role.arn)
            expires = role.expiration.replace(tzinfo=UTC)
            return _Key(
                secret=role.secret_access_key,
                token=role.session_token,
                caller=caller,
                expires=expires,
            )
        for user in backend("iam", self._account_id, "").users.values():
            for row in user.access_keys:
                if row.access_key_id == key_id and row.status == "Active":
                    caller = Caller(account=self._account_id, user_id=user.id, arn=user.arn)
                    return _Key(
                        secret=row.secret_access_key, token=None, caller=caller, expires=None
                    )
        if key_id == PEOPLE:
            root = f"arn:aws:iam::{self._account_id}:root"
            caller = Caller(account=self._account_id, user_id=self._account_id, arn=root)
            return _Key(secret=PEOPLE, token=None, caller=caller, expires=None)
        return None


def _check_life(query: Mapping[str, str], now: datetime) -> None:
    try:
        signed = datetime.strptime(query["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        life = timedelta(seconds=int(query["X-Amz-Expires"]))
    except ValueError:
        raise NotAuthenticError("IncompleteSignature", "X-Amz-Date or -Expires is wrong") from None
    if life > _MAX_LIFE or not signed - _CLOCK_SKEW <= now <= signed + life:
        raise NotAuthenticError("ExpiredToken", "the signed request is not valid now")


def _hosts(environ: Environ, region: str) -> tuple[str, ...]:
    """Hosts the caller may have signed for: this server, however called, or the real STS."""
    port = environ["SERVER_PORT"]
    return (
        environ.get("HTTP_HOST", ""),
        f"127.0.0.1:{port}",
        f"localhost:{port}",
        f"sts.{region}.amazonaws.com",
        "sts.amazonaws.com",
    )


def _signature(
    query: Mapping[str, str], environ: Environ, scope: list[str], secret: str, host: str
) -> str:
    canonical_query = "&".join(
        f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}"
        for name, value in sorted(query.items())
        if name != "X-Amz-Signature"
    )
    names = query["X-Amz-SignedHeaders"].split(";")
    values = {"host": host}
    headers = "".join(
        f"{name}:{values.get(name) or _header(environ, name)}\n" for name in sorted(names)
    )
    empty = hashlib.sha256(b"").hexdigest()
    canonical = "\n".join(
        ["GET", "/", canonical_query, headers, query["X-Amz-SignedHeaders"], empty]
    )
    text = "\n".join(
        [
            "AWS4-HMAC-SHA256",
            query["X-Amz-Date"],
            "/".join(scope[1:]),
            hashlib.sha256(canonical.encode()).hexdigest(),
        ]
    )
    key = b"AWS4" + secret.encode()
    for part in scope[1:]:
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.new(key, text.encode(), "sha256").hexdigest()


def _header(environ: Environ, name: str) -> str:
    value = str(environ.get("HTTP_" + name.upper().replace("-", "_"), ""))
    return " ".join(value.split())


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

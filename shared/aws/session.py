"""Clients of AWS services, created on first use, with the roles they need."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import ConnectionClosedError, NoCredentialsError
from msgspec import Struct

from shared.aws.errors import translated
from shared.ports.executor import MAX_CONCURRENT_CALLS

_MARGIN: Final = timedelta(minutes=5)
_CONNECT_SECONDS: Final = 5.0
_SESSION_NAME_LENGTH: Final = 64


def _utc_now() -> datetime:
    return datetime.now(UTC)


def configured_region() -> str:
    """Return the Region of the SDK's own configuration, such as the profile's; or empty.

    Raises:
        PermanentError: If the configuration cannot be read, or lacks the requested profile.
    """
    with translated("configuration of the SDK"):
        return str(boto3.session.Session().region_name or "")


class _RoleSession(Struct, frozen=True, kw_only=True):
    """An SDK session with the credentials of a role."""

    sdk: Any
    expires_at: datetime


class Session:
    """Creates and caches the AWS clients of the process.

    Retries of the SDK are off by default: under a lease a call must end before the lease does,
    and callers know better how to handle throttling. Only when the server closed the connection, as
    it does while an execution environment is frozen, a call is repeated once: all calls are
    idempotent or conditional.

    Args:
        api_timeout: Time-out of one call, shorter than the lease.
        name: Name of the function; names the sessions of assumed roles in CloudTrail.
        attempts: Total number of attempts of a call.
        now: Returns the current time, which credentials expire by.
    """

    def __init__(
        self,
        *,
        region: str,
        api_timeout: timedelta = timedelta(seconds=20),
        name: str = "dovetail",
        attempts: int = 1,
        now: Callable[[], datetime] = _utc_now,
    ) -> None:
        self._region = region
        self._api_timeout = api_timeout
        self._name = name[:_SESSION_NAME_LENGTH]
        self._attempts = attempts
        self._now = now
        self._clients: dict[tuple[str, str, str], Any] = {}
        self._roles: dict[str, _RoleSession] = {}
        self._lock = threading.RLock()

    @property
    def region(self) -> str:
        """The Region's name."""
        return self._region

    def with_attempts(self, attempts: int) -> "Session":
        """Return a session with another number of attempts; not for use under a lease."""
        return Session(
            region=self._region,
            api_timeout=self._api_timeout,
            name=self._name,
            attempts=attempts,
            now=self._now,
        )

    def client(self, service: str, *, role: str = "", region: str = "") -> Any:
        """Return the client of a service.

        Args:
            service: Name of the service in boto3, such as `ec2`.
            role: ARN of the role to assume; empty for the process's own.
            region: Another Region than the session's.

        Raises:
            UnauthorizedError: If the role may not be assumed.
        """
        with self._lock:
            sdk = self._of_role(role) if role else self._own
            key = (service, role, region or self._region)
            if key not in self._clients:
                self._clients[key] = self._make(sdk, service, region or self._region)
            return self._clients[key]

    def require_caller(self) -> None:
        """Call GetCallerIdentity, the only call that needs no permission.

        Source: https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html
        (2026-11).

        Raises:
            AutoscalerError: If there are no credentials, they have expired, or AWS does not answer.
        """
        with translated("sts GetCallerIdentity"):
            self.client("sts").get_caller_identity()

    def signing_credentials(self, role: str = "") -> Any:
        """Return botocore credentials to sign with.

        Raises:
            UnauthorizedError: If there are none or the role may not be assumed.
        """
        with self._lock, translated("credentials"):
            sdk = self._of_role(role) if role else self._own
            credentials = sdk.get_credentials()
            if credentials is None:
                raise NoCredentialsError
            return credentials

    def events(self, role: str = "") -> Any:
        """Return the botocore event hooks that signing uses."""
        with self._lock:
            sdk = self._of_role(role) if role else self._own
            return sdk.events

    def credentials_expire_at(self, role: str) -> datetime | None:
        """Return when the credentials of an assumed role expire, None when not assumed."""
        held = self._roles.get(role)
        return held.expires_at if held is not None else None

    @cached_property
    def _own(self) -> Any:
        with translated("configuration of the SDK"):
            return boto3.session.Session(region_name=self._region)

    def _of_role(self, role: str) -> Any:
        held = self._roles.get(role)
        if held is None or held.expires_at - _MARGIN <= self._now():
            held = self._assume(role)
            self._roles[role] = held
            self._clients = {key: client for key, client in self._clients.items() if key[1] != role}
        return held.sdk

    def _assume(self, role: str) -> _RoleSession:
        sts = self.client("sts")
        with translated(f"sts AssumeRole {role}"):
            given = sts.assume_role(RoleArn=role, RoleSessionName=self._name)["Credentials"]
        sdk = boto3.session.Session(
            aws_access_key_id=given["AccessKeyId"],
            aws_secret_access_key=given["SecretAccessKey"],
            aws_session_token=given["SessionToken"],
            region_name=self._region,
        )
        return _RoleSession(sdk=sdk, expires_at=given["Expiration"].astimezone(UTC))

    def _make(self, sdk: Any, service: str, region: str) -> Any:
        seconds = self._api_timeout.total_seconds()
        config = Config(
            region_name=region,
            connect_timeout=min(_CONNECT_SECONDS, seconds / 2),
            read_timeout=seconds,
            retries={"total_max_attempts": self._attempts, "mode": "standard"},
            max_pool_connections=MAX_CONCURRENT_CALLS + 1,
        )
        with translated(f"{service} client"):
            made = sdk.client(service, region_name=region, config=config)
        made.meta.events.register(f"needs-retry.{service}", _replaces_closed_connection)
        return made


def _replaces_closed_connection(
    attempts: int, caught_exception: Exception | None, **_: Any
) -> float | None:
    """Return the seconds before another attempt, None for no further attempt."""
    closed = isinstance(caught_exception, ConnectionClosedError)
    return 0.0 if closed and attempts == 1 else None

"""Who may call: an admin token, static tokens, and EKS tokens that a real STS call confirms.

An EKS token is `k8s-aws-v1.` and the unpadded base64url of a presigned GetCallerIdentity URL. The
server calls that URL at an endpoint of its own and maps the role it is told to an access entry.

Source: https://docs.aws.amazon.com/eks/latest/userguide/cluster-auth.html, and the token format of
https://github.com/kubernetes-sigs/aws-iam-authenticator, 2025-06.
"""

import asyncio
import base64
import binascii
import functools
import hmac
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import aiohttp
from yarl import URL

from infra.local.kube.errors import ApiError

_PREFIX = "k8s-aws-v1."
_HOST = re.compile(r"^sts(\.[a-z0-9-]+)?\.amazonaws\.com(\.cn)?$")
_ARN = re.compile(r"arn:aws[a-z-]*:(?:sts|iam)::\d+:[A-Za-z0-9+=,.@_/-]+")
_ASSUMED = re.compile(r"^arn:(aws[a-z-]*):sts::(\d+):assumed-role/([^/]+)/(.+)$")
_DNS_NAME = "{{EC2PrivateDNSName}}"
_MAX_AGE_SECONDS = 15 * 60
_CLOCK_SKEW_SECONDS = 60
_CACHE_SECONDS = 60
_CACHE_LIMIT = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """The user that a token authenticates."""

    name: str
    groups: tuple[str, ...]


def unauthorized() -> ApiError:
    """Return the error for an unknown caller; the reason is not disclosed."""
    return ApiError(401, "Unauthorized", "Unauthorized")


class Authenticator:
    """Checks bearer tokens against a file that may change while the server runs.

    Args:
        path: JSON with `admin_token`, `static_tokens`, `sts_url`, `cluster`, `access_entries`; for
            the names of nodes `ec2_url` and `region`, too.
        clock: Seconds since the epoch.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock
        self._stamp: tuple[int, int] = (0, 0)
        self._settings: dict[str, Any] = {}
        self._verdicts: dict[str, tuple[float, User | None]] = {}
        self._admitted: dict[str, tuple[float, User]] = {}
        self._session: aiohttp.ClientSession | None = None
        self.reload()

    @property
    def admin_token(self) -> str:
        """The token that may always call."""
        return str(self._settings.get("admin_token", ""))

    def reload(self) -> None:
        """Read the file again if it has changed; verdicts given before are forgotten.

        Raises:
            ValueError: The file is no JSON object.
        """
        status = self._path.stat()
        stamp = (status.st_mtime_ns, status.st_size)
        if stamp == self._stamp:
            return
        settings = json.loads(self._path.read_text(encoding="utf-8"))
        if not isinstance(settings, dict):
            raise ValueError(f"auth file {self._path}: not a JSON object; write one")  # noqa: TRY004
        self._stamp = stamp
        self._settings = settings
        self._verdicts.clear()

    def admit(self, token: str, user: User, seconds: float) -> None:
        """Take a token for a user from now on, for some seconds."""
        self._admitted[token] = self._clock() + seconds, user

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def check(self, header: str) -> User:
        """Return who calls."""
        self._reload_quietly()
        scheme, _, token = header.partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise unauthorized()
        if user := self._static(token):
            return user
        ends, admitted = self._admitted.get(token, (0.0, None))
        if admitted is not None and self._clock() < ends:
            return admitted
        if len(self._verdicts) > _CACHE_LIMIT:
            self._verdicts.clear()
        known = self._verdicts.get(token)
        if known is None or known[0] < self._clock():
            known = (self._clock() + _CACHE_SECONDS, await self._ask_sts(token))
            self._verdicts[token] = known
        if known[1] is None:
            raise unauthorized()
        return known[1]

    def _reload_quietly(self) -> None:
        try:
            self.reload()
        except (OSError, ValueError):
            # Caught between two states of being rewritten: the last good one holds.
            return

    def _static(self, token: str) -> User | None:
        admin = self.admin_token
        if admin and hmac.compare_digest(admin.encode(), token.encode()):
            return User(name="kubernetes-admin", groups=("system:masters",))
        for static_token in self._settings.get("static_tokens") or ():
            if hmac.compare_digest(str(static_token["token"]).encode(), token.encode()):
                return User(
                    name=static_token["username"], groups=tuple(static_token.get("groups") or ())
                )
        return None

    # -- EKS tokens -----------------------------------------------------------------------

    async def _ask_sts(self, token: str) -> User | None:
        presigned = _decode(token)
        endpoint, cluster = self._settings.get("sts_url"), self._settings.get("cluster", "")
        if presigned is None or not endpoint or not self._is_acceptable(presigned):
            return None
        parts = urlsplit(presigned)
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=10))
        headers = {"Host": parts.netloc, "x-k8s-aws-id": cluster, "Accept": "application/json"}
        # The signature covers the query as it was written: it must not be encoded anew.
        target = URL(f"{endpoint.rstrip('/')}/?{parts.query}", encoded=True)
        try:
            async with self._session.get(target, headers=headers) as response:
                text = await response.text()
                if response.status != 200:
                    return None
        except (aiohttp.ClientError, TimeoutError):
            return None
        return await self._user_of(text)

    def _is_acceptable(self, presigned: str) -> bool:
        parts = urlsplit(presigned)
        pairs = parse_qsl(parts.query, keep_blank_values=True)
        said = {key.lower(): value for key, value in pairs}
        if len(said) != len(pairs):
            # A parameter said twice, in whatever case, could be read differently over there.
            return False
        signed = said.get("x-amz-signedheaders", "").split(";")
        return (
            parts.scheme == "https"
            and _HOST.match(parts.netloc) is not None
            and parts.path in {"", "/"}
            and said.get("action") == "GetCallerIdentity"
            and "x-k8s-aws-id" in signed
            and "host" in signed
            and self._is_fresh(said)
        )

    def _is_fresh(self, said: dict[str, str]) -> bool:
        try:
            moment = datetime.strptime(said["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
            lifetime = int(said["x-amz-expires"])
        except (KeyError, ValueError):
            return False
        age = self._clock() - moment.timestamp()
        return 0 < lifetime <= _MAX_AGE_SECONDS and -_CLOCK_SKEW_SECONDS <= age <= _MAX_AGE_SECONDS

    async def _user_of(self, text: str) -> User | None:
        match = _ARN.search(text)
        if match is None:
            return None
        arn, session = match[0], ""
        if assumed := _ASSUMED.match(arn):
            partition, account, role, session = assumed.groups()
            arn = f"arn:{partition}:iam::{account}:role/{role}"
        for entry in self._settings.get("access_entries") or ():
            if _without_path(entry["role_arn"]) == arn:
                name = await self._completed(entry["username"], session)
                groups = tuple(entry.get("groups") or ())
                return User(name=name, groups=groups) if name else None
        return None

    async def _completed(self, username: str, session: str) -> str:
        """Return a user name with its placeholders replaced; empty when one has no value.

        The session of an instance's role is the id of the instance.

        Source: https://docs.aws.amazon.com/eks/latest/userguide/creating-access-entries.html
        (EC2_LINUX), and pkg/mapper of https://github.com/kubernetes-sigs/aws-iam-authenticator
        (2026-11).
        """
        if _DNS_NAME not in username:
            return username.replace("{{SessionName}}", session)
        endpoint, region = self._settings.get("ec2_url"), self._settings.get("region")
        if not session.startswith("i-") or not endpoint or not region:
            return ""
        name = await asyncio.to_thread(_private_dns_name, endpoint, region, session)
        return username.replace(_DNS_NAME, name) if name else ""


@functools.cache
def _ec2(endpoint: str, region: str) -> Any:
    import boto3

    return boto3.client("ec2", endpoint_url=endpoint, region_name=region)


def _private_dns_name(endpoint: str, region: str, instance_id: str) -> str:
    """Return the name of an instance in its VPC; empty when EC2 does not show the instance."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        found = _ec2(endpoint, region).describe_instances(InstanceIds=[instance_id])["Reservations"]
    except (BotoCoreError, ClientError):
        return ""
    return next((str(i["PrivateDnsName"]) for r in found for i in r["Instances"]), "")


def _without_path(arn: str) -> str:
    """Drop the path of a role: the ARN of an assumed role does not tell it."""
    start, slash, name = arn.rpartition("/")
    return f"{start.partition('/')[0]}{slash}{name}"


def _decode(token: str) -> str | None:
    if not token.startswith(_PREFIX):
        return None
    text = token.removeprefix(_PREFIX)
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode("ascii")
    except (binascii.Error, ValueError):
        return None

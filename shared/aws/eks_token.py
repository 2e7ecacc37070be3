"""Tokens for an EKS cluster's API server: presigned STS GetCallerIdentity requests.

Source: https://docs.aws.amazon.com/eks/latest/userguide/cluster-auth.html and the token format of
https://github.com/kubernetes-sigs/aws-iam-authenticator#api-authorization-from-outside-a-cluster
(2025-06): the server accepts a token for 15 minutes from when it was signed.
"""

import base64
from datetime import datetime, timedelta
from typing import Final

from botocore.model import ServiceId
from botocore.signers import RequestSigner

from shared.aws.errors import translated
from shared.aws.session import Session
from shared.ports import Clock

_PREFIX: Final = "k8s-aws-v1."
_LIFE: Final = timedelta(minutes=15)
# A third of the lifetime is left for clock skew and for calls under way.
_USED_FOR: Final = timedelta(minutes=10)


class EksToken:
    """The token of one cluster under one role; signing needs no network.

    Args:
        session: Session in the cluster's Region.
        cluster: Name of the cluster; other clusters refuse its token.
        role: ARN of the role that has an access entry there; empty for the process's own.
        clock: Clock that the token expires by.
    """

    def __init__(self, session: Session, *, cluster: str, role: str, clock: Clock) -> None:
        self._session = session
        self._cluster = cluster
        self._role = role
        self._clock = clock
        self._token = ""
        self._use_until: datetime | None = None

    def __call__(self) -> str:
        """Return a bearer token that is valid for at least five minutes.

        Raises:
            UnauthorizedError: If there are no credentials or the role may not be assumed.
        """
        now = self._clock.now()
        if self._use_until is None or now >= self._use_until:
            self._token = self._sign()
            self._use_until = now + _USED_FOR
            ends = self._session.credentials_expire_at(self._role)
            if ends is not None:
                # A token expires with the credentials it was signed with.
                self._use_until = min(self._use_until, ends - timedelta(minutes=1))
        return self._token

    def _sign(self) -> str:
        region = self._session.region
        credentials = self._session.signing_credentials(self._role)
        events = self._session.events(self._role)
        with translated("sts GetCallerIdentity"):
            signer = RequestSigner(ServiceId("STS"), region, "sts", "v4", credentials, events)
            url = signer.generate_presigned_url(
                {
                    "method": "GET",
                    "url": f"{sts_url(region)}/?Action=GetCallerIdentity&Version=2011-06-15",
                    "body": {},
                    "headers": {"x-k8s-aws-id": self._cluster},
                    "context": {},
                },
                region_name=region,
                expires_in=int(_LIFE.total_seconds()),
                operation_name="",
            )
        return _PREFIX + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")


def sts_url(region: str) -> str:
    """Return the Region's own STS endpoint.

    Always AWS's host name, whatever endpoint the calls of this process use: API servers accept no
    other, and this process never calls the URL.
    """
    suffix = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    return f"https://sts.{region}.{suffix}"

"""Tokens of service accounts: `kubectl create token`.

Source: https://kubernetes.io/docs/reference/kubernetes-api/authentication-resources/
token-request-v1/ and pkg/apis/authentication/validation of Kubernetes 1.35 (at least ten minutes),
read 2026-11-25. A token is random here, not a JSON Web Token: this server alone reads it.
"""

import secrets
from datetime import timedelta
from typing import Final

from infra.local.kube import errors
from infra.local.kube.auth import Authenticator, User
from infra.local.kube.calls import Call, timestamp
from infra.local.kube.errors import JsonObject, bad_request
from infra.local.kube.objects.lifecycle import Lifecycle

_USUAL_SECONDS: Final = 3600
_LEAST_SECONDS: Final = 600


def issue(lifecycle: Lifecycle, call: Call, authenticator: Authenticator | None) -> JsonObject:
    """Return the TokenRequest with a token that this server takes."""
    lifecycle.require(call.resource, call.namespace, call.name)
    asked = call.content()
    if not isinstance(asked, dict) or asked.get("kind", "TokenRequest") != "TokenRequest":
        raise bad_request("the body of the request is no TokenRequest")
    spec = asked.get("spec") or {}
    seconds = spec.get("expirationSeconds") or _USUAL_SECONDS
    if type(seconds) is not int or seconds < _LEAST_SECONDS:
        why = f"Invalid value: {seconds}: may not specify a duration less than 10 minutes"
        cause = ("FieldValueInvalid", why, "spec.expirationSeconds")
        raise errors.invalid("authentication.k8s.io", "TokenRequest", call.name, [cause])
    token, account = secrets.token_urlsafe(32), f"{call.namespace}:{call.name}"
    if authenticator is not None:
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{call.namespace}")
        user = User(name=f"system:serviceaccount:{account}", groups=groups)
        authenticator.admit(token, user, seconds)
    ends = lifecycle.now() + timedelta(seconds=seconds)
    return {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": call.name, "namespace": call.namespace},
        "spec": {**spec, "expirationSeconds": seconds},
        "status": {"token": token, "expirationTimestamp": timestamp(ends)},
    }

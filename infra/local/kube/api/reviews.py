"""Reviews of a caller's name and rights: `kubectl auth whoami` and `kubectl auth can-i`."""

from typing import Final

import orjson

from infra.local.kube.auth import User
from infra.local.kube.calls import read_content
from infra.local.kube.errors import ApiError, JsonObject, bad_request
from infra.local.kube.roles import Access, Roles

_AUTHORIZATION: Final = "authorization.k8s.io/v1"
_AUTHENTICATION: Final = "authentication.k8s.io/v1"
_KINDS: Final = {
    f"/apis/{_AUTHORIZATION}/selfsubjectaccessreviews": "SelfSubjectAccessReview",
    f"/apis/{_AUTHORIZATION}/selfsubjectrulesreviews": "SelfSubjectRulesReview",
    f"/apis/{_AUTHENTICATION}/selfsubjectreviews": "SelfSubjectReview",
}
_ADMIN: Final = User(name="kubernetes-admin", groups=("system:masters",))


def is_review(path: str) -> bool:
    return path in _KINDS


def review(
    method: str, path: str, media: str, body: bytes, user: User | None, roles: Roles
) -> bytes:
    """Return the reviewed object."""
    if method != "POST":
        message = "the server does not allow this method on the requested resource"
        raise ApiError(405, "MethodNotAllowed", message)
    asked = read_content(media, body)
    kind = _KINDS[path]
    if not isinstance(asked, dict) or asked.get("kind", kind) != kind:
        raise bad_request(f"the body of the request is no {kind}")
    version = path.removeprefix("/apis/").rpartition("/")[0]
    status = _status(kind, asked.get("spec") or {}, user or _ADMIN, roles)
    return orjson.dumps({**asked, "kind": kind, "apiVersion": version, "status": status})


def _status(kind: str, spec: JsonObject, user: User, roles: Roles) -> JsonObject:
    if kind == "SelfSubjectReview":
        groups = [*user.groups, "system:authenticated"]
        return {"userInfo": {"username": user.name, "groups": list(dict.fromkeys(groups))}}
    if kind == "SelfSubjectAccessReview":
        attributes = spec.get("resourceAttributes")
        return {"allowed": attributes is None or roles.allows(user, _access(attributes))}
    return {"resourceRules": roles.of(user, spec.get("namespace") or ""), "incomplete": False} | {
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}]
    }


def _access(attributes: JsonObject) -> Access:
    subresource = attributes.get("subresource")
    resource = attributes.get("resource", "")
    return Access(
        verb=attributes.get("verb", ""),
        group=attributes.get("group", ""),
        resource=f"{resource}/{subresource}" if subresource else resource,
        namespace=attributes.get("namespace", ""),
        name=attributes.get("name", ""),
    )

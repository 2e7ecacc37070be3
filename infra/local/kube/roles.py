"""What callers may do: the roles and bindings of the cluster, as the RBAC authorizer reads them.

Kubelets (`system:nodes`) may do everything here: the Node authorizer is not modelled.

Source: https://kubernetes.io/docs/reference/access-authn-authz/rbac/; the verb of a request follows
https://github.com/kubernetes/apiserver/blob/v0.35.4/pkg/endpoints/request/requestinfo.go (2026-11).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from infra.local.kube.auth import User
from infra.local.kube.calls import Call
from infra.local.kube.errors import ApiError, JsonObject
from infra.local.kube.kinds import Kinds
from infra.local.kube.store import Store

_GROUP: Final = "rbac.authorization.k8s.io"
_UNBOUND: Final = frozenset({"system:masters", "system:nodes"})
_EVERYTHING: Final = ({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},)
_PLURALS: Final = ("clusterrolebindings", "rolebindings", "clusterroles", "roles")
_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What a request asks for."""

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""

    @classmethod
    def of(cls, call: Call) -> "Access":
        plural = call.resource.plural
        return cls(
            verb=_verb(call),
            group=call.resource.group,
            resource=f"{plural}/{call.subresource}" if call.subresource else plural,
            namespace=call.namespace,
            name=call.name,
        )


def _verb(call: Call) -> str:
    if call.method == "GET":
        return "watch" if call.flag("watch") else "get" if call.name else "list"
    if call.method == "DELETE":
        return "delete" if call.name else "deletecollection"
    return _VERBS.get(call.method, call.method.lower())


class Roles:
    """Decides by the roles that are bound to a caller; the administrator may do everything."""

    def __init__(self, store: Store, kinds: Kinds) -> None:
        self._store = store
        self._resources = {plural: kinds.get(_GROUP, plural) for plural in _PLURALS}
        self._known: dict[tuple[User, str], tuple[JsonObject, ...]] = {}
        self._stamp: tuple[int, ...] = ()

    def require(self, user: User, access: Access) -> None:
        """Refuse what the caller may not do."""
        if self.allows(user, access):
            return
        group, where = access.group, "at the cluster scope"
        if access.namespace:
            where = f'in the namespace "{access.namespace}"'
        name = f' "{access.name}"' if access.name else ""
        plural = f"{access.resource}.{group}" if group else access.resource
        message = (
            f'{plural}{name} is forbidden: User "{user.name}" cannot {access.verb} resource '
            f'"{access.resource}" in API group "{group}" {where}'
        )
        details = {"name": access.name, "group": group, "kind": access.resource}
        raise ApiError(403, "Forbidden", message, details={k: v for k, v in details.items() if v})

    def allows(self, user: User, access: Access) -> bool:
        return any(_covers(rule, access) for rule in self.of(user, access.namespace))

    def of(self, user: User, namespace: str) -> tuple[JsonObject, ...]:
        """Return the rules that hold for a caller, read again once a role or binding changed."""
        if not _UNBOUND.isdisjoint(user.groups):
            return _EVERYTHING
        collections = map(self._store.collection, self._resources.values())
        stamp = tuple(collection.base + len(collection.log) for collection in collections)
        if stamp != self._stamp:
            self._known, self._stamp = {}, stamp
        if (user, namespace) not in self._known:
            self._known[user, namespace] = tuple(self._bound(user, namespace))
        return self._known[user, namespace]

    def _bound(self, user: User, namespace: str) -> Iterator[JsonObject]:
        for plural in _PLURALS[: 2 if namespace else 1]:
            resource = self._resources[plural]
            within = namespace if resource.namespaced else ""
            for entry in self._store.select(resource, within, lambda _: True):
                binding = entry.load()
                if any(_names(subject, user) for subject in binding.get("subjects") or ()):
                    yield from self._rules_of(binding["roleRef"], within)

    def _rules_of(self, reference: JsonObject, namespace: str) -> Iterator[JsonObject]:
        whole = reference["kind"] == "ClusterRole"
        resource = self._resources["clusterroles" if whole else "roles"]
        found = self._store.get(resource, ("" if whole else namespace, reference["name"]))
        if found is None and whole and reference["name"] == "cluster-admin":
            yield from _EVERYTHING
        yield from (found.load().get("rules") or ()) if found is not None else ()


def _names(subject: JsonObject, user: User) -> bool:
    if subject["kind"] == "ServiceAccount":
        account = f"{subject.get('namespace')}:{subject['name']}"
        return user.name == f"system:serviceaccount:{account}"
    if subject["kind"] == "Group":
        return subject["name"] in {*user.groups, "system:authenticated"}
    return bool(subject["name"] == user.name)


def _covers(rule: JsonObject, access: Access) -> bool:
    _, slash, subresource = access.resource.partition("/")
    resources = {access.resource, "*", *([f"*/{subresource}"] if slash else ())}
    return (
        not {access.verb, "*"}.isdisjoint(rule.get("verbs") or ())
        and not {access.group, "*"}.isdisjoint(rule.get("apiGroups") or ())
        and not resources.isdisjoint(rule.get("resources") or ())
        and (not rule.get("resourceNames") or access.name in rule["resourceNames"])
    )

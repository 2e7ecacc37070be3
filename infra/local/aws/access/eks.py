"""EKS access entries and add-ons, which moto lacks."""

from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import unquote

from moto.core.responses import ActionResult, EmptyResult
from moto.eks import urls
from moto.eks.exceptions import ResourceInUseException, ResourceNotFoundException
from moto.eks.responses import EKSResponse

from infra.local.aws.moto_patches import Repairs

_CLUSTER: Final = "{0}/clusters/(?P<name>[^/]+)"
_PATHS: Final = (
    f"{_CLUSTER}/access-entries$",
    f"{_CLUSTER}/access-entries/(?P<principalArn>.+)$",
    f"{_CLUSTER}/addons$",
    f"{_CLUSTER}/addons/(?P<addonName>[^/]+)$",
)
# Each cluster begins with the agent of Pod Identity.
_AGENT: Final = "eks-pod-identity-agent"
Place = tuple[str, str, str]
"""(account, Region, cluster)."""


def _place(response: Any) -> Place:
    """Return the cluster of a call, which must exist."""
    cluster = response._get_param("name")
    response.eks_backend.describe_cluster(name=cluster)
    return response.current_account, response.region, cluster


def _refusal(kind: Any, message: str, **named: str) -> Any:
    parts = dict.fromkeys(("clusterName", "nodegroupName", "addonName"))
    if kind is ResourceNotFoundException:
        parts["fargateProfileName"] = None
    return kind(**{**parts, **named}, message=message)


def _entry(response: Any, cluster: str) -> dict[str, Any]:
    principal = response._get_param("principalArn")
    kind = response._get_param("type") or "STANDARD"
    account, region = response.current_account, response.region
    name = principal.rsplit("/", maxsplit=1)[-1]
    moment = datetime.now(UTC)
    node = kind in {"EC2_LINUX", "EC2_WINDOWS"}
    groups = ["system:nodes"] if node else list(response._get_param("kubernetesGroups") or [])
    default_user = "system:node:{{EC2PrivateDNSName}}" if node else principal
    return {
        "clusterName": cluster,
        "principalArn": principal,
        "kubernetesGroups": groups,
        "accessEntryArn": f"arn:aws:eks:{region}:{account}:access-entry/{cluster}/role/"
        f"{account}/{name}/local",
        "createdAt": moment,
        "modifiedAt": moment,
        "tags": dict(response._get_param("tags") or {}),
        "username": response._get_param("username") or default_user,
        "type": kind,
    }


def _named(response: Any) -> str:
    """Return the last part of a path: the ARN of a principal, or the name of an add-on."""
    path = str(response.path)
    return unquote(path.partition("/access-entries/")[2]) or path.rsplit("/", maxsplit=1)[1]


def _addon(cluster: str, name: str, status: str) -> ActionResult:
    return ActionResult({"addon": {"addonName": name, "clusterName": cluster, "status": status}})


def repair(repairs: Repairs) -> Callable[[], None]:
    """Add the calls to EKS; the result forgets all entries and add-ons."""
    entries, addons = _repair_entries(repairs), _repair_addons(repairs)
    for path in _PATHS:
        repairs.route(urls.url_paths, path, urls.response.dispatch)

    def forget() -> None:
        entries.clear()
        addons.clear()

    return forget


def _repair_entries(repairs: Repairs) -> dict[Place, Any]:
    entries: defaultdict[Place, dict[str, dict[str, Any]]] = defaultdict(dict)

    def create_access_entry(self: Any) -> ActionResult:
        place = _place(self)
        entry = _entry(self, place[2])
        if entry["principalArn"] in entries[place]:
            message = "The specified access entry resource is already in use on this cluster."
            raise _refusal(ResourceInUseException, message, clusterName=place[2])
        entries[place][entry["principalArn"]] = entry
        return ActionResult({"accessEntry": entry})

    def found(self: Any) -> tuple[Place, str]:
        place, principal = _place(self), _named(self)
        if principal not in entries[place]:
            message = f"The specified principalArn could not be found: {principal}"
            raise _refusal(ResourceNotFoundException, message)
        return place, principal

    def describe_access_entry(self: Any) -> ActionResult:
        place, principal = found(self)
        return ActionResult({"accessEntry": entries[place][principal]})

    def list_access_entries(self: Any) -> ActionResult:
        return ActionResult({"accessEntries": sorted(entries[_place(self)])})

    def delete_access_entry(self: Any) -> EmptyResult:
        place, principal = found(self)
        del entries[place][principal]
        return EmptyResult()

    for call in (
        *(create_access_entry, describe_access_entry),
        *(list_access_entries, delete_access_entry),
    ):
        repairs.add(EKSResponse, call.__name__, call)
    return entries


def _repair_addons(repairs: Repairs) -> dict[Place, Any]:
    addons: defaultdict[Place, set[str]] = defaultdict(lambda: {_AGENT})

    def create_addon(self: Any) -> ActionResult:
        place, name = _place(self), self._get_param("addonName")
        if name in addons[place]:
            named = {"clusterName": place[2], "addonName": name}
            raise _refusal(ResourceInUseException, "Addon already exists.", **named)
        addons[place].add(name)
        return _addon(place[2], name, "CREATING")

    def found(self: Any) -> tuple[Place, str]:
        place, name = _place(self), _named(self)
        if name not in addons[place]:
            message = f"No addon: {name} found in cluster: {place[2]}"
            named = {"clusterName": place[2], "addonName": name}
            raise _refusal(ResourceNotFoundException, message, **named)
        return place, name

    def describe_addon(self: Any) -> ActionResult:
        place, name = found(self)
        return _addon(place[2], name, "ACTIVE")

    def delete_addon(self: Any) -> ActionResult:
        place, name = found(self)
        addons[place].remove(name)
        return _addon(place[2], name, "DELETING")

    for call in (create_addon, describe_addon, delete_addon):
        repairs.add(EKSResponse, call.__name__, call)
    return addons

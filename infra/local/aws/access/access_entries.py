"""EKS access entries, which the emulator lacks: who may enter a cluster, and as which groups."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import unquote

from moto.core.responses import ActionResult, EmptyResult
from moto.eks import urls
from moto.eks.exceptions import ResourceInUseException, ResourceNotFoundException
from moto.eks.responses import EKSResponse

from infra.local.aws.moto_patches import Repairs

_PATH: Final = "{0}/clusters/(?P<name>[^/]+)/access-entries$"
_ONE: Final = "{0}/clusters/(?P<name>[^/]+)/access-entries/(?P<principalArn>.+)$"


@dataclass(slots=True, kw_only=True)
class AccessEntries:
    """Entries by (account, Region, cluster) and principal ARN."""

    entries: dict[tuple[str, str, str], dict[str, dict[str, Any]]] = field(default_factory=dict)

    def reset(self) -> None:
        self.entries.clear()

    def of(self, response: Any, cluster: str) -> dict[str, dict[str, Any]]:
        response.eks_backend.describe_cluster(name=cluster)
        key = (response.current_account, response.region, cluster)
        return self.entries.setdefault(key, {})


def _missing(principal: str) -> ResourceNotFoundException:
    return ResourceNotFoundException(
        clusterName=None,
        nodegroupName=None,
        fargateProfileName=None,
        addonName=None,
        message=f"The specified principalArn could not be found: {principal}",
    )


def _in_use(cluster: str) -> ResourceInUseException:
    return ResourceInUseException(
        clusterName=cluster,
        nodegroupName=None,
        addonName=None,
        message="The specified access entry resource is already in use on this cluster.",
    )


def _principal(response: Any) -> str:
    return unquote(str(response.path).split("/access-entries/", maxsplit=1)[1])


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


def repair(repairs: Repairs) -> AccessEntries:
    """Add the four calls to EKS; the result is their memory."""
    memory = AccessEntries()

    def create_access_entry(self: Any) -> ActionResult:
        cluster = self._get_param("name")
        entries = memory.of(self, cluster)
        entry = _entry(self, cluster)
        if entry["principalArn"] in entries:
            raise _in_use(cluster)
        entries[entry["principalArn"]] = entry
        return ActionResult({"accessEntry": entry})

    def describe_access_entry(self: Any) -> ActionResult:
        entries = memory.of(self, self._get_param("name"))
        principal = _principal(self)
        if principal not in entries:
            raise _missing(principal)
        return ActionResult({"accessEntry": entries[principal]})

    def list_access_entries(self: Any) -> ActionResult:
        entries = memory.of(self, self._get_param("name"))
        return ActionResult({"accessEntries": sorted(entries)})

    def delete_access_entry(self: Any) -> EmptyResult:
        entries = memory.of(self, self._get_param("name"))
        principal = _principal(self)
        if entries.pop(principal, None) is None:
            raise _missing(principal)
        return EmptyResult()

    for call in (
        create_access_entry,
        describe_access_entry,
        list_access_entries,
        delete_access_entry,
    ):
        repairs.add(EKSResponse, call.__name__, call)
    for path in (_PATH, _ONE):
        repairs.route(urls.url_paths, path, urls.response.dispatch)
    return memory

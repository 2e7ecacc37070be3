"""EKS add-ons, which the emulator lacks; each cluster begins with the agent of Pod Identity."""

from dataclasses import dataclass, field
from typing import Any, Final

from moto.core.responses import ActionResult
from moto.eks import urls
from moto.eks.exceptions import ResourceInUseException, ResourceNotFoundException
from moto.eks.responses import EKSResponse

from infra.local.aws.moto_patches import Repairs

_AGENT: Final = "eks-pod-identity-agent"
_PATH: Final = "{0}/clusters/(?P<name>[^/]+)/addons$"
_ONE: Final = "{0}/clusters/(?P<name>[^/]+)/addons/(?P<addonName>[^/]+)$"


@dataclass(slots=True, kw_only=True)
class Addons:
    """Names of add-ons by (account, Region, cluster)."""

    names: dict[tuple[str, str, str], set[str]] = field(default_factory=dict)

    def reset(self) -> None:
        self.names.clear()

    def of(self, response: Any, cluster: str) -> set[str]:
        response.eks_backend.describe_cluster(name=cluster)
        key = (response.current_account, response.region, cluster)
        return self.names.setdefault(key, {_AGENT})


def _answer(cluster: str, name: str, status: str) -> ActionResult:
    return ActionResult({"addon": {"addonName": name, "clusterName": cluster, "status": status}})


def _missing(cluster: str, name: str) -> ResourceNotFoundException:
    return ResourceNotFoundException(
        clusterName=cluster,
        nodegroupName=None,
        fargateProfileName=None,
        addonName=name,
        message=f"No addon: {name} found in cluster: {cluster}",
    )


def _in_use(cluster: str, name: str) -> ResourceInUseException:
    return ResourceInUseException(
        clusterName=cluster, nodegroupName=None, addonName=name, message="Addon already exists."
    )


def repair(repairs: Repairs) -> Addons:
    """Add three calls to EKS; the result is their memory."""
    memory = Addons()

    def create_addon(self: Any) -> ActionResult:
        cluster, name = self._get_param("name"), self._get_param("addonName")
        names = memory.of(self, cluster)
        if name in names:
            raise _in_use(cluster, name)
        names.add(name)
        return _answer(cluster, name, "CREATING")

    def describe_addon(self: Any) -> ActionResult:
        cluster, name = self._get_param("name"), _name(self)
        if name not in memory.of(self, cluster):
            raise _missing(cluster, name)
        return _answer(cluster, name, "ACTIVE")

    def delete_addon(self: Any) -> ActionResult:
        cluster, name = self._get_param("name"), _name(self)
        names = memory.of(self, cluster)
        if name not in names:
            raise _missing(cluster, name)
        names.remove(name)
        return _answer(cluster, name, "DELETING")

    for call in (create_addon, describe_addon, delete_addon):
        repairs.add(EKSResponse, call.__name__, call)
    for path in (_PATH, _ONE):
        repairs.route(urls.url_paths, path, urls.response.dispatch)
    return memory


def _name(response: Any) -> str:
    return str(response.path).rsplit("/", maxsplit=1)[1]

"""Provisioners and NodePools over one API server, and the templates that they name."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from shared.kube.api import KubeApi
from shared.kube.lists import KubeReader
from shared.manifests.custom_resources.pool_lifetimes import own_node_pools, read_lifetimes
from shared.manifests.raw_json import Raw
from shared.model.dialect import V1, V1ALPHA5
from shared.model.errors import NotFoundError, NotInstalledError
from shared.model.provisioner import InvalidProvisioner, Provisioner

PROVISIONERS_PATH: Final = f"/apis/{V1ALPHA5.owner_version}/provisioners"
NODE_TEMPLATES_PATH: Final = f"/apis/{V1ALPHA5.template_version}/awsnodetemplates"
NODE_POOLS_PATH: Final = f"/apis/{V1.owner_version}/nodepools"
NODE_CLASSES_PATH: Final = f"/apis/{V1.template_version}/ec2nodeclasses"


def utc_now() -> datetime:
    """Return the current time."""
    return datetime.now(UTC)


Owners = tuple[tuple[Provisioner, ...], tuple[InvalidProvisioner, ...]]


class KubeProvisioners(KubeReader):
    """Implements the part of shared.ports.NodeCluster that reads Provisioners.

    Args:
        now: Returns the current time, for timestamps of conditions.
    """

    def __init__(self, api: KubeApi, *, now: Callable[[], datetime] = utc_now) -> None:
        super().__init__(api)
        self._now = now

    def provisioners(self) -> Owners:
        """Return the Provisioners and NodePools that can be used, and those that cannot.

        Each sorted by name.

        Raises:
            NotInstalledError: If the cluster has neither the CRD of Provisioners nor that of
                NodePools.
        """
        found, pools = self._defined(PROVISIONERS_PATH), self._defined(NODE_POOLS_PATH)
        if found is None and pools is None:
            raise NotInstalledError("Provisioners and NodePools are not defined in the cluster")
        return self._decode(found or [], own_node_pools(pools or ()))

    def _decode(self, found: list[Raw], pools: list[Raw]) -> Owners:
        """Return only what they say about existing nodes: services that launch none need no more.

        What is wrong in other fields makes no Provisioner unusable, and its template is not read.
        """
        return read_lifetimes(found, pools), ()

    def _defined(self, path: str) -> list[Raw] | None:
        """Return all objects of a kind, None where the kind is not defined."""
        try:
            return self._list(path)
        except NotFoundError:
            return None

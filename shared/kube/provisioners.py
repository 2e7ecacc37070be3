"""Provisioners and NodePools over one API server, and the templates that they name."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from shared.kube.api import KubeApi
from shared.kube.lists import KubeReader
from shared.manifests.custom_resources.pool_lifetimes import read_lifetime
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


class KubeProvisioners(KubeReader):
    """Implements the part of shared.ports.NodeCluster that reads Provisioners.

    Args:
        now: Returns the current time, for timestamps of conditions.
    """

    def __init__(self, api: KubeApi, *, now: Callable[[], datetime] = utc_now) -> None:
        super().__init__(api)
        self._now = now

    def provisioners(self) -> tuple[tuple[Provisioner, ...], tuple[InvalidProvisioner, ...]]:
        """Return the Provisioners and NodePools that can be used, and those that cannot.

        Each sorted by name. AWSNodeTemplates and EC2NodeClasses are listed when one is named.

        Raises:
            NotInstalledError: If the cluster has neither the CRD of Provisioners nor that of
                NodePools.
        """
        # The models take 40 ms to import: functions that read no Provisioner do not need them.
        from shared.manifests.custom_resources.node_templates import (  # noqa: PLC0415 -- see above
            asks_for_templates,
        )
        from shared.manifests.custom_resources.owners import (  # noqa: PLC0415 -- see above
            decode_owners,
            own_node_pools,
        )

        found, pools = self._defined(PROVISIONERS_PATH), self._defined(NODE_POOLS_PATH)
        if found is None and pools is None:
            raise NotInstalledError("Provisioners and NodePools are not defined in the cluster")
        names_templates = asks_for_templates(found or ())
        pools = own_node_pools(pools or ())
        return decode_owners(
            found or (),
            self._defined(NODE_TEMPLATES_PATH) or () if names_templates else (),
            pools,
            self._pool_reader() if pools else read_lifetime,
            check=self._check_user_data,
        )

    def _pool_reader(self) -> Callable[[Raw], Provisioner]:
        """Return the decoder of a NodePool: only services that launch need its EC2NodeClass."""
        return read_lifetime

    def _check_user_data(self, family: str, custom: str) -> None:
        """Accept any user data: only services that launch instances have to read it."""

    def _defined(self, path: str) -> list[Raw] | None:
        """Return all objects of a kind, None where the kind is not defined."""
        try:
            return self._list(path)
        except NotFoundError:
            return None

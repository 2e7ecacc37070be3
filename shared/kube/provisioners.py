"""Provisioners and NodePools over one API server, and what they name."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from shared.kube.api import KubeApi
from shared.kube.lists import KubeReader
from shared.manifests.custom_resources.pool_lifetimes import read_lifetime
from shared.manifests.fields import Raw
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
    """Implements what shared.ports.NodeCluster says of Provisioners.

    Args:
        api: The cluster's API server.
        now: Gives the current time, for timestamps of conditions.
    """

    def __init__(self, api: KubeApi, *, now: Callable[[], datetime] = utc_now) -> None:
        super().__init__(api)
        self._now = now

    def provisioners(self) -> tuple[tuple[Provisioner, ...], tuple[InvalidProvisioner, ...]]:
        """Return the Provisioners and NodePools that can be used, and those that cannot.

        Each sorted by name. AWSNodeTemplates and EC2NodeClasses are listed when one is named.

        Raises:
            NotInstalledError: If the cluster has neither a definition of Provisioners nor one of
                NodePools.
        """
        # The models take 40 ms to import: functions that read no Provisioner go without.
        from shared.manifests.custom_resources.node_templates import (  # noqa: PLC0415 -- see above
            asks_for_templates,
        )
        from shared.manifests.custom_resources.owners import (  # noqa: PLC0415 -- see above
            decode_owners,
            of_dovetail,
        )

        found, pools = self._defined(PROVISIONERS_PATH), self._defined(NODE_POOLS_PATH)
        if found is None and pools is None:
            raise NotInstalledError("Provisioners and NodePools are not defined in the cluster")
        asks = asks_for_templates(found or ())
        pools = of_dovetail(pools or ())
        return decode_owners(
            found or (),
            self._defined(NODE_TEMPLATES_PATH) or () if asks else (),
            pools,
            self._pool_reader() if pools else read_lifetime,
            check=self._check_user_data,
        )

    def _pool_reader(self) -> Callable[[Raw], Provisioner]:
        """Return what reads a NodePool: only what launches instances has to know its class."""
        return read_lifetime

    def _check_user_data(self, family: str, custom: str) -> None:
        """Accept any user data: only what launches instances has to understand it."""

    def _defined(self, path: str) -> list[Raw] | None:
        """Return all objects of a kind, None where the kind is not defined."""
        try:
            return self._list(path)
        except NotFoundError:
            return None

"""Provisioners and NodePools over one API server with all of their fields."""

from collections.abc import Callable

from shared.kube.provisioners import NODE_TEMPLATES_PATH, KubeProvisioners, Owners
from shared.manifests.custom_resources.pool_lifetimes import read_lifetime
from shared.manifests.raw_json import Raw
from shared.model.provisioner import Provisioner


class KubeFullProvisioners(KubeProvisioners):
    """Reads Provisioners with all of their fields, and the AWSNodeTemplates that they name."""

    def _decode(self, found: list[Raw], pools: list[Raw]) -> Owners:
        # The models take 40 ms to import: functions that read no Provisioner do not need them.
        from shared.manifests.custom_resources.node_templates import (  # noqa: PLC0415 -- see above
            asks_for_templates,
        )
        from shared.manifests.custom_resources.owners import (  # noqa: PLC0415 -- see above
            decode_owners,
        )

        return decode_owners(
            found,
            self._defined(NODE_TEMPLATES_PATH) or () if asks_for_templates(found) else (),
            pools,
            self._pool_reader() if pools else read_lifetime,
            check=self._check_user_data,
        )

    def _pool_reader(self) -> Callable[[Raw], Provisioner]:
        """Return the decoder of a NodePool: only services that launch need its EC2NodeClass."""
        return read_lifetime

    def _check_user_data(self, family: str, custom: str) -> None:
        """Accept any user data: only services that launch instances have to read it."""

"""The runtime of `dovetail migrate`, with its user's permissions and the cluster's migrate role."""

import time
from datetime import timedelta

from functions.cli.deployed_settings import function_settings
from functions.cli.migrate.ec2_instance_tags import Ec2InstanceTags
from functions.cli.migrate.kube_karpenter import KarpenterObjects
from functions.cli.migrate.migration import Migration
from shared.model.errors import UnauthorizedError
from shared.runtime.provisioning_wiring import ProvisioningWiring
from shared.runtime.wiring import ActingRole


class MigrationRuntime:
    """The migrations of all attached clusters, for people.

    Raises:
        SettingsError: If a variable of the environment is missing or wrong.
        NotFoundError: If there is no control plane in the Region.
    """

    def __init__(self) -> None:
        self._wiring = ProvisioningWiring(function_settings(), ActingRole.OWN)

    def clusters(self) -> tuple[str, ...]:
        """Return the names of all attached clusters, sorted."""
        return self._wiring.registry.names()

    def migration(self, cluster: str, *, apply: bool) -> Migration:
        """Return the migration of one cluster.

        Args:
            apply: Whether anything is to be changed.

        Raises:
            UnauthorizedError: If something is to be changed and the cluster has no role for it.
        """
        wiring = self._wiring
        role = wiring.registry.one(cluster).migrate_role
        if apply and not role:
            raise UnauthorizedError(
                f"cluster {cluster} has no migrate role, which alone may change tags: deploy its "
                f"stack with -c migrators={cluster}:<ARN of the role or user that you work with>"
            )
        ports = wiring.ports(cluster)
        api = wiring.api(ports.cloud.endpoint(), "")
        return Migration(
            ports,
            KarpenterObjects(api, wiring.clock.now),
            Ec2InstanceTags(wiring.session, role=role),
            _wait,
        )


def _wait(span: timedelta) -> None:
    time.sleep(span.total_seconds())

"""Provisioners and AWSNodeTemplates over one API server."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from shared.kube.api import MERGE_PATCH, KubeApi, path_to, raise_unless_ok
from shared.kube.conditions import provisioner_condition
from shared.kube.lists import KubeReader
from shared.manifests.fields import Raw
from shared.model.errors import NotFoundError, NotInstalledError
from shared.model.provisioner import Provisioner
from shared.model.snapshot import InvalidProvisioner
from shared.ports import Condition

PROVISIONERS_PATH: Final = "/apis/karpenter.sh/v1alpha5/provisioners"
NODE_TEMPLATES_PATH: Final = "/apis/karpenter.k8s.aws/v1alpha1/awsnodetemplates"


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
        """Return the usable Provisioners and those that cannot be used, each sorted by name.

        AWSNodeTemplates are listed, once, when one of them is named.

        Raises:
            NotInstalledError: If the cluster has no definition of Provisioners.
        """
        # The models take 40 ms to import: functions that read no Provisioner go without.
        from shared.manifests.custom_resources.node_templates import (  # noqa: PLC0415 -- see above
            asks_for_templates,
        )
        from shared.manifests.custom_resources.provisioners import (  # noqa: PLC0415 -- see above
            decode_provisioners,
        )

        try:
            raws = self._list(PROVISIONERS_PATH)
        except NotFoundError as error:
            raise NotInstalledError(
                f"Provisioners are not defined in the cluster: {error}"
            ) from error
        templates = self._templates() if asks_for_templates(raws) else ()
        return decode_provisioners(raws, templates, check=self._check_user_data)

    def set_provisioner_condition(
        self,
        name: str,
        *,
        active: bool,
        reason: str,
        message: str,
        kind: Condition = Condition.ACTIVE,
    ) -> None:
        """Set a condition in a Provisioner's status; gone is fine."""
        path = path_to(PROVISIONERS_PATH, name)
        raw = self._find(path)
        if raw is None:
            return
        said = {"reason": reason, "message": message}
        body = provisioner_condition(raw, kind.value, said, holds=active, at=self._now())
        self._patch_status(path, body, f"condition of provisioner {name}")

    def _patch_status(self, path: str, body: Mapping[str, Any] | None, about: str) -> None:
        if body is None:
            return
        reply = self._api.send("PATCH", f"{path}/status", body=body, content_type=MERGE_PATCH)
        if reply.status != 404:
            raise_unless_ok(reply, about)

    def _check_user_data(self, family: str, custom: str) -> None:
        """Accept any user data: only what launches instances has to understand it."""

    def _templates(self) -> list[Raw]:
        """Return all AWSNodeTemplates; none where the kind is not installed."""
        try:
            return self._list(NODE_TEMPLATES_PATH)
        except NotFoundError:
            return []

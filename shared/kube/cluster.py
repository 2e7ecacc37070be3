"""The Cluster port over one API server."""

from typing import Final

from shared.ami_families import refuse_wrong_user_data
from shared.kube.api import path_to
from shared.kube.conditions import template_status
from shared.kube.nodes import KubeNodes
from shared.kube.provisioners import NODE_TEMPLATES_PATH
from shared.kube.storage import KubeStorage
from shared.manifests.daemonsets import decode_daemonsets, wants_runtimes
from shared.model.kubernetes.daemonsets import DaemonSet
from shared.ports import TemplateStatus

DAEMONSETS_PATH: Final = "/apis/apps/v1/daemonsets"
RUNTIMES_PATH: Final = "/apis/node.k8s.io/v1/runtimeclasses"


class KubeCluster(KubeNodes, KubeStorage):
    """Implements shared.ports.Cluster; made as KubeNodes is."""

    def daemonsets(self) -> tuple[DaemonSet, ...]:
        """Return all DaemonSets, sorted by namespace and name."""
        raws = self._list(DAEMONSETS_PATH)
        return decode_daemonsets(raws, self._list(RUNTIMES_PATH) if wants_runtimes(raws) else ())

    def _check_user_data(self, family: str, custom: str) -> None:
        refuse_wrong_user_data(family, custom)

    def set_template_status(self, name: str, status: TemplateStatus) -> None:
        """Write an AWSNodeTemplate's status unless it says so already; gone is fine."""
        path = path_to(NODE_TEMPLATES_PATH, name)
        raw = self._find(path)
        if raw is not None:
            body = template_status(raw, status, at=self._now())
            self._patch_status(path, body, f"status of AWSNodeTemplate {name}")

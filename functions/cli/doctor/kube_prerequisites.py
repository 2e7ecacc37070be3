"""The prerequisites inside a cluster, for `dovetail doctor --prerequisites`."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from shared.kube.api import KubeApi, path_to, raise_unless_ok
from shared.kube.full_provisioners import KubeFullProvisioners
from shared.kube.paths_and_documents import NAMESPACES_PATH
from shared.kube.rivals import KubeRivals
from shared.manifests.raw_json import mapping, text
from shared.model.errors import NotInstalledError
from shared.model.provisioner import Provisioner
from shared.ports import Rival

# Source: https://docs.aws.amazon.com/eks/latest/userguide/associate-service-account-role.html
# (2026-11).
_APPS: Final = "/apis/apps/v1/namespaces"
_ROLE: Final = "eks.amazonaws.com/role-arn"


class KubePrerequisites:
    """Implements functions.cli.doctor.prerequisite_ports.ClusterPrerequisites on one API server.

    Args:
        api: The cluster's API server.
        now: Returns the current time.
        namespaces: The namespaces whose leases of autoscalers are trusted.
    """

    def __init__(
        self, api: KubeApi, now: Callable[[], datetime], namespaces: Sequence[str]
    ) -> None:
        self._api = api
        self._rivals = KubeRivals(api, now, namespaces)
        self._provisioners = KubeFullProvisioners(api, now=now)

    def running(self) -> tuple[Rival, ...]:
        """Return the other autoscalers whose leader has recently renewed its lease, sorted."""
        return self._rivals.running()

    def provisioners(self) -> tuple[Provisioner, ...]:
        """Return the usable Provisioners, sorted by name; none where they are not defined."""
        try:
            return self._provisioners.provisioners()[0]
        except NotInstalledError:
            return ()

    def annotated_role(self, namespace: str, service_account: str) -> str:
        """Return the ARN of the role in a service account's annotation (IRSA), empty for none."""
        path = path_to(NAMESPACES_PATH, namespace, "serviceaccounts", service_account)
        found = self._find(path, f"service account {namespace}/{service_account}")
        metadata = mapping(mapping(found).get("metadata"))
        return text(mapping(metadata.get("annotations")).get(_ROLE))

    def has_daemon_set(self, namespace: str, name: str) -> bool:
        """Return whether there is a DaemonSet of this name."""
        path = path_to(_APPS, namespace, "daemonsets", name)
        return self._find(path, f"daemon set {namespace}/{name}") is not None

    def _find(self, path: str, what: str) -> object:
        """Return an object, None if there is none."""
        reply = self._api.send("GET", path)
        if reply.status == 404:
            return None
        raise_unless_ok(reply, what)
        return reply.body

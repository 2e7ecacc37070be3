"""What `dovetail watch`, `top` and `shadow` read: one cluster, and AWS where the user has access.

Nothing here can write: it sends the API server only GET requests, and makes only read calls to AWS.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any, Final, TypeVar

from msgspec import Struct
from urllib3.response import BaseHTTPResponse

from functions.cli.deployed_settings import function_settings
from functions.cli.run_command import one_cluster
from shared.aws.decisions import BucketDecisions
from shared.kube.api import KubeApi, Query
from shared.kube.cluster import KubeCluster
from shared.kube.kubeconfig import connect_kubeconfig
from shared.kube.nodes import NODES_PATH, PODS_PATH
from shared.kube.provisioners import NODE_POOLS_PATH, PROVISIONERS_PATH
from shared.kube.reflector import Reflector, ReflectorOptions
from shared.manifests.nodes import decode_node
from shared.manifests.pods import PodDecoder
from shared.manifests.raw_json import condition, mapping, text
from shared.model.ec2.instance_types import InstanceType
from shared.model.ec2.launches import LaunchIntent, Slot
from shared.model.errors import (
    AutoscalerError,
    NotAttachedError,
    PermanentError,
    UnauthorizedError,
    UnavailableError,
)
from shared.model.kubernetes.daemon_sets import DaemonSet
from shared.model.kubernetes.disruption_budgets import PodDisruptionBudget
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.provisioner import Provisioner
from shared.model.snapshot import ClusterSnapshot
from shared.nodes.launch.launch_results import LaunchResult, results_of_plan
from shared.ports import ClusterPorts
from shared.runtime.provisioning_wiring import ProvisioningWiring
from shared.runtime.wiring import ActingRole
from shared.settings import SettingsError
from shared.snapshot.namespaces import namespaces_for
from shared.snapshot.volumes import with_volumes

T = TypeVar("T")

_TIMEOUT: Final = timedelta(seconds=20)
_PAGE: Final = 500


class ReadOnlyApi(KubeApi):
    """An API server that is only read: every method but GET is refused before it is sent."""

    def _request(
        self,
        method: str,
        path: str,
        query: Query,
        body: object,
        content_type: str,
        read_seconds: float,
    ) -> BaseHTTPResponse:
        if method != "GET":
            raise PermanentError(f"{method} {path}: this connection only reads")
        return super()._request(method, path, query, body, content_type, read_seconds)


class WatchedPod(Struct, frozen=True):
    """A pod, and kube-scheduler's message about it."""

    pod: Pod
    scheduler_message: str


class ClusterWatch:
    """Watches of one cluster, with the permissions of a kubeconfig file.

    Args:
        kubeconfig: Its path.
        context: Of the file, None for its current one.

    Raises:
        PermanentError: If the file cannot be used.
    """

    def __init__(self, kubeconfig: str, context: str | None = None) -> None:
        self._api = connect_kubeconfig(
            kubeconfig, context=context, timeout=_TIMEOUT, kind=ReadOnlyApi
        )
        self._cluster = KubeCluster("", self._api)
        self._decoder = PodDecoder()

    def require_access(self) -> None:
        """Read one node and one pod, only to check that this is allowed.

        Raises:
            UnauthorizedError: If they may not be read.
            UnavailableError: If the API server cannot be reached.
        """
        try:
            for path in (NODES_PATH, PODS_PATH):
                self._api.get(path, (("limit", "1"),))
        except UnauthorizedError as error:
            raise UnauthorizedError(
                f"{error}; log in again, or name a kubeconfig whose user may list nodes and pods"
            ) from error
        except UnavailableError as error:
            raise UnavailableError(f"{error}; is {self._api.url} right, and reachable?") from error

    @property
    def url(self) -> str:
        """Address of the API server."""
        return self._api.url

    def nodes(
        self,
        changed: Callable[[Node | None, Node | None], None],
        served: Callable[[], None] = lambda: None,
    ) -> Reflector[Node]:
        """Return a watch of all Nodes, not yet started.

        Args:
            served: Called each time the API server has served a list or a watch of them.
        """
        return self._watch(NODES_PATH, decode_node, changed, served)

    def pods(
        self,
        changed: Callable[[WatchedPod | None, WatchedPod | None], None],
        served: Callable[[], None] = lambda: None,
    ) -> Reflector[WatchedPod]:
        """Return a watch of all pods, not yet started; `served` as for nodes."""
        return self._watch(PODS_PATH, self._watched_pod, changed, served)

    def owners(self, changed: Callable[[], None]) -> tuple[Reflector[str], ...]:
        """Return watches that report only that a Provisioner or NodePool has changed."""
        return tuple(
            Reflector(
                self._api,
                path,
                _version,
                lambda _old, _new: changed(),
                synced=changed,
                options=ReflectorOptions(optional=True),
            )
            for path in (PROVISIONERS_PATH, NODE_POOLS_PATH)
        )

    def provisioners(self) -> tuple[Provisioner, ...]:
        """Return the Provisioners and NodePools that can be used.

        Raises:
            NotInstalledError: If the cluster defines neither.
            UnauthorizedError: If they may not be read.
        """
        return self._cluster.provisioners()[0]

    def daemonsets(self) -> tuple[DaemonSet, ...]:
        """Return all DaemonSets, sorted by namespace and name."""
        return self._cluster.daemonsets()

    def disruption_budgets(self) -> tuple[PodDisruptionBudget, ...]:
        """Return all PodDisruptionBudgets with their last status."""
        return self._cluster.disruption_budgets()

    def namespaces_for(self, pods: Iterable[Pod]) -> Mapping[str, Mapping[str, str]]:
        """Return the labels of namespaces by name; empty if no rule of these pods needs them."""
        return namespaces_for(self._cluster, pods)

    def with_volumes(self, snapshot: ClusterSnapshot) -> ClusterSnapshot:
        """Return the snapshot with what the volumes of pending pods require of nodes."""
        return with_volumes(self._cluster, snapshot)

    def _watch(
        self,
        path: str,
        project: Callable[[Mapping[str, Any]], T],
        changed: Callable[[T | None, T | None], None],
        served: Callable[[], None],
    ) -> Reflector[T]:
        return Reflector(
            self._api,
            path,
            project,
            changed,
            served=served,
            options=ReflectorOptions(page_size=_PAGE),
        )

    def _watched_pod(self, raw: Mapping[str, Any]) -> WatchedPod:
        pod = self._decoder.decode(raw)
        scheduled = condition(mapping(raw.get("status")), "PodScheduled")
        return WatchedPod(
            pod=pod, scheduler_message="" if pod.node_name else text(scheduled.get("message"))
        )


class ClusterRecords:
    """Reads what Dovetail has recorded about one cluster, with its user's permissions."""

    def __init__(self, ports: ClusterPorts, documents: BucketDecisions, bucket: str) -> None:
        self.cluster = ports.cluster.name
        self.bucket = bucket
        self._ports = ports
        self._documents = documents

    def slots(self) -> tuple[Slot, ...]:
        """Return the launched nodes of the ledger."""
        return self._ports.ledger.slots(self.cluster)

    def open_intents(self) -> tuple[LaunchIntent, ...]:
        """Return the unfinished launches."""
        return self._ports.ledger.open_intents(self.cluster)

    def launch_results(self, plan_id: str) -> tuple[LaunchResult, ...]:
        """Return what came of the launch groups of a plan, as far as they are over."""
        return results_of_plan(self._ports.ledger, self.cluster, plan_id)

    def decisions(self, day: str, after: str) -> tuple[str, ...]:
        """Return the keys of a day's decisions, oldest first.

        Args:
            day: As in 2026-11-24.
            after: Only keys that sort after this one.
        """
        return self._documents.keys(f"decisions/{self.cluster}/{day}/", after)

    def document(self, key: str) -> bytes:
        """Return a document.

        Raises:
            NotFoundError: If there is none.
        """
        return self._documents.get(key)

    def instance_types(self) -> tuple[InstanceType, ...]:
        """Return the instance types of the Region, from the control plane's catalogue."""
        return self._ports.catalog.instance_types()


def cluster_records(cluster: str) -> ClusterRecords:
    """Return the records of a cluster.

    Args:
        cluster: Its name; empty if only one is attached.

    Raises:
        AutoscalerError: If AWS cannot be reached, or no such cluster is attached.
        SettingsError: If a variable of the environment is wrong.
    """
    settings = function_settings()
    wiring = ProvisioningWiring(settings, ActingRole.OWN)
    name = one_cluster(cluster, wiring.registry.names)
    documents = BucketDecisions(wiring.session, bucket=settings.bucket)
    return ClusterRecords(wiring.ports(name), documents, settings.bucket)


def refuse_unknown_cluster(cluster: str) -> None:
    """Refuse a name that no attached cluster has, if a control plane can be reached.

    Raises:
        NotAttachedError: If the control plane knows no such cluster.
    """
    try:
        ProvisioningWiring(function_settings(), ActingRole.OWN).registry.one(cluster)
    except NotAttachedError as error:
        raise NotAttachedError(f"{error}; or leave --cluster out") from error
    except (AutoscalerError, SettingsError):
        # A note reports it, and the cluster is shown without records.
        return


def _version(raw: Mapping[str, Any]) -> str:
    """Return a version that changes with the spec and annotations, not with the status."""
    metadata = mapping(raw.get("metadata"))
    annotations = sorted(mapping(metadata.get("annotations")).items())
    return f"{metadata.get('name')} {metadata.get('generation')} {annotations}"

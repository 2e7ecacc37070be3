"""The NodeCluster port over one API server."""

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any, Final

from shared.kube.api import JSON_PATCH, KubeApi, Reply, error_for, path_to, raise_unless_ok
from shared.kube.events import KubeEvents, events_about
from shared.kube.kept.decoding import NODE_PAGE_DECODER, POD_PAGE_DECODER
from shared.kube.lists import list_all
from shared.kube.node_patch import node_patch
from shared.kube.paths_and_documents import (
    ATTACHMENTS_PATH,
    NAMESPACES_PATH,
    attachment_parts,
    claim_path,
    delete_options,
    is_eviction_refusal,
    node_document,
    pod_path,
)
from shared.kube.provisioners import KubeProvisioners, utc_now
from shared.manifests.disruption_budgets import decode_budget
from shared.manifests.nodes import decode_node
from shared.manifests.pods import PodDecoder
from shared.manifests.raw_json import mapping, text, text_map
from shared.model.errors import (
    CertificateError,
    ConflictError,
    EvictionRefusedError,
    NotFoundError,
    PermanentError,
)
from shared.model.kubernetes.disruption_budgets import PodDisruptionBudget
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.ports import KubernetesEvent, NodeChange, NodeManifest, PastEvent
from shared.ports.cluster import EachPage, nothing
from shared.ports.executor import MAX_CONCURRENT_CALLS

PODS_PATH: Final = "/api/v1/pods"
NODES_PATH: Final = "/api/v1/nodes"
BUDGETS_PATH: Final = "/apis/policy/v1/poddisruptionbudgets"
_NOT_TERMINAL: Final = "status.phase!=Succeeded,status.phase!=Failed"


_LOG: Final = logging.getLogger(__name__)


class KubeNodes(KubeProvisioners):
    """Implements shared.ports.NodeCluster.

    Args:
        name: The cluster's name.
        api: Its API server.
        now: Returns the current time, for timestamps of Events and conditions.
    """

    def __init__(self, name: str, api: KubeApi, *, now: Callable[[], datetime] = utc_now) -> None:
        super().__init__(api, now=now)
        self._name = name
        self._decoder = PodDecoder()
        self._kube_events = KubeEvents(api, now)

    @property
    def name(self) -> str:
        """The cluster's name."""
        return self._name

    # --- reading

    def pending_pods(self, each_page: EachPage = nothing) -> tuple[Pod, ...]:
        """Return pods without a node that are not terminal, sorted by key."""
        return self._pods(f"spec.nodeName=,{_NOT_TERMINAL}", each_page)

    def bound_pods(self, each_page: EachPage = nothing) -> tuple[Pod, ...]:
        """Return pods that have a node and are not terminal, sorted by key."""
        return self._pods(f"spec.nodeName!=,{_NOT_TERMINAL}", each_page)

    def pods_on(self, node_name: str) -> tuple[Pod, ...]:
        """Return all pods of one node, terminal ones too, sorted by key."""
        return self._pods(f"spec.nodeName={node_name}")

    def pod(self, namespace: str, name: str) -> Pod | None:
        """Return a pod, or None when there is none."""
        raw = self._find(pod_path(namespace, name))
        return None if raw is None else self._decoder.decode(raw)

    def nodes(self, each_page: EachPage = nothing) -> tuple[Node, ...]:
        """Return all nodes, sorted by name."""
        found = list_all(
            self._api, NODES_PATH, decode_node, each_page=each_page, decode=NODE_PAGE_DECODER
        )
        return tuple(sorted(found, key=lambda entry: entry.name))

    def node(self, name: str) -> Node | None:
        """Return a node, or None when there is none."""
        raw = self._find(path_to(NODES_PATH, name))
        return None if raw is None else decode_node(raw)

    def namespaces(self) -> Mapping[str, Mapping[str, str]]:
        """Return the labels of all namespaces by name."""
        found = list_all(self._api, NAMESPACES_PATH, _name_and_labels)
        return dict(sorted(found, key=lambda entry: entry[0]))

    def disruption_budgets(self) -> tuple[PodDisruptionBudget, ...]:
        """Return all PodDisruptionBudgets, sorted by namespace and name."""
        found = list_all(self._api, BUDGETS_PATH, decode_budget)
        return tuple(sorted(found, key=lambda entry: (entry.namespace, entry.name)))

    def volume_attachments(self, node_name: str) -> tuple[str, ...]:
        """Return the names of a node's VolumeAttachments whose volumes a pod may wait for.

        Volumes of DaemonSet and static pods are left out: they stay attached until the instance is
        terminated.
        """
        attached = {
            name: volume
            for name, owner, volume in list_all(self._api, ATTACHMENTS_PATH, attachment_parts)
            if owner == node_name and volume
        }
        staying = [pod for pod in self.pods_on(node_name) if pod.is_daemon or pod.is_static]
        kept = {
            self._volume_of(pod.namespace, claim)
            for pod in staying
            for claim in pod.scheduling.claims
        }
        return tuple(sorted(name for name, volume in attached.items() if volume not in kept))

    # --- nodes

    def create_node(self, manifest: NodeManifest) -> Node:
        """Create the Node; when one of that name exists, return it as it is."""
        reply = self._api.send("POST", NODES_PATH, body=node_document(manifest))
        if reply.status == 409:
            return decode_node(self._api.get(path_to(NODES_PATH, manifest.name)))
        raise_unless_ok(reply, f"create node {manifest.name}")
        return decode_node(reply.body)

    def change_node(self, node: Node, change: NodeChange) -> Node:
        """Apply a change if the node was not changed since `node` was read.

        Raises:
            ConflictError: If its uid or resourceVersion differs.
            NotFoundError: If it is gone.
        """
        path = path_to(NODES_PATH, node.name)
        reply = self._api.send(
            "PATCH", path, body=node_patch(node, change), content_type=JSON_PATCH
        )
        if reply.status in (409, 422):
            # A failed test of the patch and a refused value have the same status: compare.
            current = decode_node(self._api.get(path))
            if (current.uid, current.resource_version) != (node.uid, node.resource_version):
                raise ConflictError(f"node {node.name} has changed since it was read")
        raise_unless_ok(reply, f"change node {node.name}")
        return decode_node(reply.body)

    def delete_node(self, node: Node) -> None:
        """Delete a node if it exists, on condition of uid and resourceVersion.

        Raises:
            ConflictError: If it changed since it was read.
        """
        conditions = {"uid": node.uid, "resourceVersion": node.resource_version}
        path = path_to(NODES_PATH, node.name)
        reply = self._api.send("DELETE", path, body=delete_options(conditions))
        if reply.status != 404:
            raise_unless_ok(reply, f"delete node {node.name}")

    # --- pods

    def bind(self, pod: Pod, node_name: str) -> None:
        """Bind a pod unless it is bound to that node already.

        Raises:
            ConflictError: If it is bound to another node or its uid differs.
            NotFoundError: If it is gone.
        """
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"namespace": pod.namespace, "name": pod.name, "uid": pod.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node_name},
        }
        path = pod_path(pod.namespace, pod.name)
        reply = self._api.send("POST", f"{path}/binding", body=body)
        if reply.status == 409:
            current = self.pod(pod.namespace, pod.name)
            if current is None:
                raise NotFoundError(f"bind {pod.key}: it is gone")
            if (current.uid, current.node_name) == (pod.uid, node_name):
                return
        raise_unless_ok(reply, f"bind {pod.key} to {node_name}")

    def bind_all(self, bindings: Sequence[tuple[Pod, str]]) -> tuple[Pod, ...]:
        """Bind many pods, several at a time; return those bound now, in the order given.

        A refusal of one pod, as in a terminating namespace or by an admission policy, is logged and
        does not stop the others.

        Raises:
            RetryableError: If the request for one pod failed; all others were sent.
        """
        with ThreadPoolExecutor(max_workers=MAX_CONCURRENT_CALLS) as executor:
            asked = [
                executor.submit(self._bind_or_skip, pod, node_name) for pod, node_name in bindings
            ]
        done = [future.result() for future in asked]
        return tuple(pod for (pod, _), bound in zip(bindings, done, strict=True) if bound)

    def _bind_or_skip(self, pod: Pod, node_name: str) -> bool:
        try:
            self.bind(pod, node_name)
        except (ConflictError, NotFoundError):
            return False
        except CertificateError:
            raise
        except PermanentError as error:
            _LOG.warning("pod %s is not bound: %s", pod.key, error)
            return False
        return True

    def evict(self, pod: Pod) -> None:
        """Request the eviction of a pod if it exists.

        Raises:
            EvictionRefusedError: If a PodDisruptionBudget forbids it now.
        """
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"namespace": pod.namespace, "name": pod.name},
            "deleteOptions": delete_options({"uid": pod.uid}),
        }
        path = pod_path(pod.namespace, pod.name)
        reply = self._api.send("POST", f"{path}/eviction", body=body)
        if is_eviction_refusal(reply):
            refused = error_for(reply, f"evict {pod.key}")
            raise EvictionRefusedError(str(refused), delay=reply.delay)
        self._raise_unless_gone(pod, reply, "evict")

    def delete_pod(self, pod: Pod, grace_seconds: int | None = None) -> None:
        """Delete a pod if it exists, on condition of its uid.

        Args:
            grace_seconds: The termination grace period; None for the pod's own.
        """
        options = {} if grace_seconds is None else {"gracePeriodSeconds": grace_seconds}
        self._delete_pod(pod, **options)

    def force_delete_pod(self, pod: Pod) -> None:
        """Delete a pod if it exists, on condition of its uid, with a grace period of 0."""
        self._delete_pod(pod, gracePeriodSeconds=0)

    # --- what people read

    def record_events(self, kube_events: Sequence[KubernetesEvent]) -> None:
        """Write Kubernetes Events; failures are logged, never raised."""
        self._kube_events.record(kube_events)

    def events(self, kind: str, namespace: str, name: str) -> tuple[PastEvent, ...]:
        """Return the Events about an object that the cluster still has, oldest first."""
        return events_about(self._api, kind, namespace, name)

    # --- inside

    def _delete_pod(self, pod: Pod, **options: int) -> None:
        body = {**delete_options({"uid": pod.uid}), **options}
        path = pod_path(pod.namespace, pod.name)
        self._raise_unless_gone(pod, self._api.send("DELETE", path, body=body), "delete")

    def _pods(self, field_selector: str, each_page: EachPage = nothing) -> tuple[Pod, ...]:
        query = (("fieldSelector", field_selector),)
        decode = self._decoder.decode
        found = list_all(self._api, PODS_PATH, decode, query, each_page, decode=POD_PAGE_DECODER)
        return tuple(sorted(found, key=lambda entry: (entry.key, entry.uid)))

    def _volume_of(self, namespace: str, claim: str) -> str:
        raw = self._find(claim_path(namespace, claim)) or {}
        return text(mapping(raw.get("spec")).get("volumeName"))

    def _raise_unless_gone(self, pod: Pod, reply: Reply, verb: str) -> None:
        """Raise unless the pod was deleted or is gone.

        Another pod of the same name means that it is gone.
        """
        if reply.status == 404:
            return
        if reply.status == 409:
            current = self.pod(pod.namespace, pod.name)
            if current is None or current.uid != pod.uid:
                return
        raise_unless_ok(reply, f"{verb} {pod.key}")


def _name_and_labels(raw: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    metadata = mapping(raw.get("metadata"))
    return text(metadata.get("name")), text_map(metadata.get("labels"))

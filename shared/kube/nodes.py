"""The NodeCluster port over one API server."""

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any, Final

from typing_extensions import override

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
from shared.ports import KubernetesEvent, NodeChange, NodeCluster, NodeManifest, PastEvent
from shared.ports.cluster import EachPage, nothing
from shared.ports.executor import MAX_CONCURRENT_CALLS

PODS_PATH: Final = "/api/v1/pods"
NODES_PATH: Final = "/api/v1/nodes"
BUDGETS_PATH: Final = "/apis/policy/v1/poddisruptionbudgets"
_NOT_TERMINAL: Final = "status.phase!=Succeeded,status.phase!=Failed"


_LOG: Final = logging.getLogger(__name__)


class KubeNodes(KubeProvisioners, NodeCluster):
    """Implements shared.ports.NodeCluster.

    Args:
        now: Returns the current time, for timestamps of Events and conditions.
    """

    def __init__(self, name: str, api: KubeApi, *, now: Callable[[], datetime] = utc_now) -> None:
        super().__init__(api, now=now)
        self._name = name
        self._decoder = PodDecoder()
        self._kube_events = KubeEvents(api, now)

    @property
    @override
    def name(self) -> str:
        return self._name

    # --- reading

    @override
    def pending_pods(self, each_page: EachPage = nothing) -> tuple[Pod, ...]:
        return self._pods(f"spec.nodeName=,{_NOT_TERMINAL}", each_page)

    @override
    def bound_pods(self, each_page: EachPage = nothing) -> tuple[Pod, ...]:
        return self._pods(f"spec.nodeName!=,{_NOT_TERMINAL}", each_page)

    @override
    def pods_on(self, node_name: str) -> tuple[Pod, ...]:
        return self._pods(f"spec.nodeName={node_name}")

    @override
    def pod(self, namespace: str, name: str) -> Pod | None:
        raw = self._find(pod_path(namespace, name))
        return None if raw is None else self._decoder.decode(raw)

    @override
    def nodes(self, each_page: EachPage = nothing) -> tuple[Node, ...]:
        found = list_all(
            self._api, NODES_PATH, decode_node, each_page=each_page, decode=NODE_PAGE_DECODER
        )
        return tuple(sorted(found, key=lambda entry: entry.name))

    @override
    def node(self, name: str) -> Node | None:
        raw = self._find(path_to(NODES_PATH, name))
        return None if raw is None else decode_node(raw)

    @override
    def namespaces(self) -> Mapping[str, Mapping[str, str]]:
        found = list_all(self._api, NAMESPACES_PATH, _name_and_labels)
        return dict(sorted(found, key=lambda entry: entry[0]))

    @override
    def disruption_budgets(self) -> tuple[PodDisruptionBudget, ...]:
        found = list_all(self._api, BUDGETS_PATH, decode_budget)
        return tuple(sorted(found, key=lambda entry: (entry.namespace, entry.name)))

    @override
    def volume_attachments(self, node_name: str) -> tuple[str, ...]:
        """Volumes of DaemonSet and static pods are left out.

        They stay attached until the instance is terminated.
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

    @override
    def create_node(self, manifest: NodeManifest) -> Node:
        reply = self._api.send("POST", NODES_PATH, body=node_document(manifest))
        if reply.status == 409:
            return decode_node(self._api.get(path_to(NODES_PATH, manifest.name)))
        raise_unless_ok(reply, f"create node {manifest.name}")
        return decode_node(reply.body)

    @override
    def change_node(self, node: Node, change: NodeChange) -> Node:
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

    @override
    def delete_node(self, node: Node) -> None:
        conditions = {"uid": node.uid, "resourceVersion": node.resource_version}
        path = path_to(NODES_PATH, node.name)
        reply = self._api.send("DELETE", path, body=delete_options(conditions))
        if reply.status != 404:
            raise_unless_ok(reply, f"delete node {node.name}")

    # --- pods

    @override
    def bind(self, pod: Pod, node_name: str) -> None:
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

    @override
    def bind_all(self, bindings: Sequence[tuple[Pod, str]]) -> tuple[Pod, ...]:
        """A refusal of one pod is logged and does not stop the others.

        Pods are refused in a terminating namespace, or by an admission policy.
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

    @override
    def evict(self, pod: Pod) -> None:
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

    @override
    def delete_pod(self, pod: Pod, grace_seconds: int | None = None) -> None:
        options = {} if grace_seconds is None else {"gracePeriodSeconds": grace_seconds}
        self._delete_pod(pod, **options)

    @override
    def force_delete_pod(self, pod: Pod) -> None:
        self._delete_pod(pod, gracePeriodSeconds=0)

    # --- what people read

    @override
    def record_events(self, kube_events: Sequence[KubernetesEvent]) -> None:
        self._kube_events.record(kube_events)

    @override
    def events(self, kind: str, namespace: str, name: str) -> tuple[PastEvent, ...]:
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

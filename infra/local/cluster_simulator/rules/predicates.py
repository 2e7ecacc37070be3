"""May this pod run on this node? The scheduler's rules, written a second time.

Works on raw API objects and the standard library only, and shares nothing with the product's own
scheduling rules, so that tests can hold the two against each other.

Source: https://kubernetes.io/docs/reference/scheduling/config/#scheduling-plugins (2026-08).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from infra.local.cluster_simulator.rules.amounts import amounts, pod_requests
from infra.local.cluster_simulator.rules.claims import attach_reasons, volume_reasons
from infra.local.cluster_simulator.rules.matching import (
    ClusterView,
    Object,
    is_finished,
    matches_node_affinity,
    taints_of,
    tolerates,
    untolerated,
)
from infra.local.cluster_simulator.rules.topology import PodTopology

UNSCHEDULABLE_TAINT: Final = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
GATED: Final = "pod has scheduling gates"
_EVERY_ADDRESS: Final = "0.0.0.0"


def fits(
    pod: Object, node: Object, pods_on_node: Sequence[Object], cluster: ClusterView
) -> list[str]:
    """Return every reason why a pod may not be placed on a node; empty when it may.

    Args:
        pod: A pod without a place yet (or with this node's name).
        pods_on_node: Pods bound to that node; finished ones are ignored.
        cluster: Everything around it; `cluster.pods` includes `pods_on_node`.

    Raises:
        ValueError: If a quantity cannot be read.
    """
    reasons = _reasons(pod, node, pods_on_node, cluster)
    expected = [entry for entry in cluster.nominated if _is_kept_for(entry, pod, node)]
    if reasons or not expected:
        return reasons
    # A place that others are preempted for is kept for those who are as important or more.
    name = node["metadata"]["name"]
    guests = [{**entry, "spec": {**entry["spec"], "nodeName": name}} for entry in expected]
    crowded = replace(cluster, pods=[*cluster.pods, *guests])
    return _reasons(pod, node, [*pods_on_node, *guests], crowded)


def _is_kept_for(nominated: Object, pod: Object, node: Object) -> bool:
    same = nominated["metadata"].get("uid", nominated) == pod["metadata"].get("uid", pod)
    there = (nominated.get("status") or {}).get("nominatedNodeName") == node["metadata"]["name"]
    return there and not same and priority(nominated) >= priority(pod)


def priority(pod: Object) -> int:
    """Return how important a pod is; 0 unless its priority class says otherwise."""
    return pod["spec"].get("priority") or 0


def _reasons(
    pod: Object, node: Object, pods_on_node: Sequence[Object], cluster: ClusterView
) -> list[str]:
    running = [other for other in pods_on_node if not is_finished(other)]
    free = amounts(allocatable_of(node))
    for other in running:
        for name, amount in pod_requests(other).items():
            free[name] = free.get(name, 0) - amount
    gated = [GATED] if pod["spec"].get("schedulingGates") else []
    return [
        *gated,
        *node_reasons(pod, node),
        *port_reasons(pod, (port for other in running for port in host_ports(other))),
        *resource_reasons(pod_requests(pod), free),
        *volume_reasons(pod, node, cluster),
        *attach_reasons(pod, node, running, cluster),
        *PodTopology(pod, cluster).reasons(node),
    ]


def allocatable_of(node: Object) -> Mapping[str, Any]:
    """Return what a node's status offers to pods, empty before its kubelet reported."""
    return (node.get("status") or {}).get("allocatable") or {}


def node_reasons(pod: Object, node: Object) -> list[str]:
    """Return what the node's own marks say against the pod: cordon, name, taints, affinity."""
    found = []
    spec = pod["spec"]
    if (node.get("spec") or {}).get("unschedulable") and not any(
        tolerates(toleration, UNSCHEDULABLE_TAINT) for toleration in spec.get("tolerations") or ()
    ):
        found.append("node(s) were unschedulable")
    if (spec.get("nodeName") or node["metadata"]["name"]) != node["metadata"]["name"]:
        found.append("node(s) didn't match the requested node name")
    taint = untolerated(taints_of(node), pod)
    if taint is not None:
        mark = f"{taint['key']}: {taint.get('value', '')}"
        found.append(f"node(s) had untolerated taint {{{mark}}}")
    if not matches_node_affinity(pod, node):
        found.append("node(s) didn't match Pod's node affinity/selector")
    return found


def resource_reasons(requests: Mapping[str, int], free: Mapping[str, int]) -> list[str]:
    """Return which requests exceed what is free."""
    return [
        "Too many pods" if name == "pods" else f"Insufficient {name}"
        for name, amount in sorted(requests.items())
        if amount > free.get(name, 0)
    ]


def host_ports(pod: Object) -> Iterator[tuple[str, str, int]]:
    """Yield (address, protocol, port) of every port a pod takes on its node."""
    spec = pod["spec"]
    shares_host = spec.get("hostNetwork", False)
    sidecars = (c for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always")
    for container in (*(spec.get("containers") or ()), *sidecars):
        for port in container.get("ports") or ():
            number = port.get("hostPort") or (port["containerPort"] if shares_host else 0)
            if number:
                address = port.get("hostIP") or _EVERY_ADDRESS
                yield address, port.get("protocol") or "TCP", number


def port_reasons(pod: Object, taken: Iterable[tuple[str, str, int]]) -> list[str]:
    """Return a reason when a host port that the pod wants is taken."""
    wanted = list(host_ports(pod))
    if wanted and any(_collide(mine, other) for other in taken for mine in wanted):
        return ["node(s) didn't have free ports for the requested pod ports"]
    return []


def _collide(left: tuple[str, str, int], right: tuple[str, str, int]) -> bool:
    same_address = left[0] == right[0] or _EVERY_ADDRESS in {left[0], right[0]}
    return same_address and left[1:] == right[1:]

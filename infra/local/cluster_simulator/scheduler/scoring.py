"""Which of the nodes that may take a pod suits it best.

kube-scheduler adds up weighted scores; here they are compared one after the other, which keeps
the order of what matters without its numbers.

Source: https://kubernetes.io/docs/reference/scheduling/config/#scheduling-plugins (2026-08).
"""

from infra.local.cluster_simulator.rules.matching import matches_node_term, taints_of, tolerates
from infra.local.cluster_simulator.rules.topology import PodTopology
from infra.local.cluster_simulator.rules.view import Object
from infra.local.cluster_simulator.scheduler.node_usage import Room

Score = tuple[int, int, int, float]


def score(pod: Object, room: Room, topology: PodTopology, requests: dict[str, int]) -> Score:
    """Return how well a pod suits a node; the least score is the best."""
    node = room.node
    assert node is not None
    return (
        0 if topology.is_free else topology.penalty(node),
        -_preference(pod, node),
        _unwelcome(pod, node),
        room.fullness(requests),
    )


def _preference(pod: Object, node: Object) -> int:
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    return sum(
        rule["weight"]
        for rule in affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        if matches_node_term(rule["preference"], node)
    )


def _unwelcome(pod: Object, node: Object) -> int:
    """Return how many taints would rather not have the pod."""
    tolerations = pod["spec"].get("tolerations") or ()
    return sum(
        taint["effect"] == "PreferNoSchedule" and not any(tolerates(t, taint) for t in tolerations)
        for taint in taints_of(node)
    )

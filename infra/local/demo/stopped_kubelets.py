"""What becomes of nodes whose kubelet was stopped, and what is said of them."""

from collections.abc import Mapping
from typing import Any, Final

from infra.local.cluster_simulator.kubelet.kubelet import STOPPED
from infra.local.demo.timeline import NodeTrack, Timeline

NODE_POOLS: Final = "apis/karpenter.sh/v1/nodepools"
_CONDITION: Final = "NodesHealthy"


def conditions_of(pools: list[dict[str, Any]]) -> dict[str, str]:
    """Return by the name of a NodePool whether its nodes are healthy, where it says that."""
    return {
        pool["metadata"]["name"]: condition["status"]
        for pool in pools
        for condition in (pool.get("status") or {}).get("conditions") or ()
        if condition["type"] == _CONDITION
    }


def why_not_removed(timeline: Timeline, argument: Mapping[str, Any]) -> str:
    """Return why not all nodes of an owner whose kubelet was stopped are gone."""
    stopped = _stopped(timeline, argument)
    standing = [node.name for node in stopped if node.gone is None]
    if standing:
        return f"{standing[0]} is still there"
    return _enough(stopped, argument)


def why_not_told(
    timeline: Timeline,
    events: frozenset[tuple[str, str]],
    health: Mapping[str, str],
    argument: Mapping[str, Any],
) -> str:
    """Return why nodes of an owner whose kubelet was stopped do not stay, and are not told of."""
    owner, stopped = argument["owner"], _stopped(timeline, argument)
    for node in stopped:
        if node.gone is not None or node.deleting is not None:
            return f"{node.name} was removed"
        if ("NotReady", node.name) not in events:
            return f"there is no Event NotReady about {node.name}"
    if health.get(owner) != "False":
        return f"{_CONDITION} of NodePool {owner} is {health.get(owner)}, expected False"
    return _enough(stopped, argument)


def _stopped(timeline: Timeline, argument: Mapping[str, Any]) -> list[NodeTrack]:
    return [
        node
        for node in timeline.our_nodes()
        if node.owner == argument["owner"] and STOPPED in node.annotations
    ]


def _enough(stopped: list[NodeTrack], argument: Mapping[str, Any]) -> str:
    if len(stopped) >= argument["at_least"]:
        return ""
    return f"kubelets of {len(stopped)} nodes were stopped, expected {argument['at_least']}"

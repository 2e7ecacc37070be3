"""Expectations of how nodes end: what holds them, for how long, and what ends them all the same."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from infra.local.cluster_simulator.kubelet.kubelet import STOPPED
from infra.local.demo.timeline import NodeTrack, PodTrack, Timeline

_BLOCKED: Final = "dovetail.dev/drain-blocked"
_EVENT: Final = "DrainBlocked"
# Readings are a fraction of a second apart, and stamps are whole seconds.
_BLUR_SECONDS: Final = 2.0
# Nodes stay empty for so long at least, whatever the speed: kube-scheduler has its own time.
_EMPTY_AT_LEAST: Final = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How spans of the manifests last in the world.

    Attributes:
        speed: What spans are divided by.
        slowness: What slack is multiplied by.
        closed_until: When the schedules of budgets that were applied within them end, in seconds
            of the timeline; None where none was.
    """

    speed: float
    slowness: float
    closed_until: float | None

    def span(self, seconds: float) -> float:
        """Return how long a span of a manifest lasts."""
        return max(1.0, round(seconds / self.speed))

    def empty(self, ttl_seconds: float) -> float:
        """Return for how long a node is empty before it is removed."""
        return max(self.span(ttl_seconds), _EMPTY_AT_LEAST)

    def latest(self, span: float, argument: Mapping[str, Any]) -> float:
        return span + float(argument.get("slack_seconds", 30)) * self.slowness


def why_not_blocked(
    nodes: Iterable[NodeTrack], events: frozenset[tuple[str, str]], argument: Mapping[str, Any]
) -> str:
    """Return why no drain is reported as blocked by `argument["by"]`, empty when one is.

    Args:
        events: (reason, name of the object) of each Kubernetes Event.
    """
    draining = [node for node in nodes if node.deleting is not None and node.gone is None]
    if not draining:
        return "no Dovetail node is being drained"
    for node in draining:
        said = node.annotations.get(_BLOCKED, "")
        if "since 2" not in said or argument["by"] not in said:
            return f"{node.name} reports {said or 'nothing'} as the reason of its blocked drain"
        if (_EVENT, node.name) not in events:
            return f"there is no Event {_EVENT} about {node.name}"
    return ""


def why_not_drained(timeline: Timeline) -> str:
    """Return why a deleted node was not cordoned and drained before it was removed."""
    deleted = [node for node in timeline.our_nodes() if node.deleting is not None]
    if not deleted:
        return "no Dovetail node has been deleted yet"
    for node in deleted:
        if node.gone is None:
            return f"{node.name} is still draining"
        left = [
            pod
            for pod in timeline.pods.values()
            if pod.node == node.name and (pod.gone is None or pod.gone > node.gone)
        ]
        if left:
            return f"{left[0].name} was still on {node.name} when it went"
        if node.cordoned is None:
            return f"{node.name} was never cordoned"
    return ""


def why_not_after_schedule(timeline: Timeline, pace: Pace, argument: Mapping[str, Any]) -> str:
    """Return why the empty nodes of an owner did not wait for the end of a budget's schedule."""
    if pace.closed_until is None:
        return "no step has applied a schedule that is active"
    ended = _ended(timeline, argument)
    ttl = pace.empty(argument["ttl_seconds"])
    for node in ended:
        if node.emptied is None or node.emptied + ttl > _went(node):
            return f"{node.name} was not yet due when it went"
        if node.emptied + ttl > pace.closed_until:
            return f"{node.name} was not due before the schedule was over: nothing held it"
        if _went(node) < pace.closed_until - _BLUR_SECONDS:
            early = pace.closed_until - _went(node)
            return f"{node.name} went {early:.1f} s before the schedule was over"
    return _enough(ended, argument)


def why_not_expired(timeline: Timeline, pace: Pace, argument: Mapping[str, Any]) -> str:
    """Return why used nodes of an owner did not end with their time, each with its replacement."""
    life = pace.span(argument["life_seconds"])
    ended = [node for node in _ended(timeline, argument) if node.most_pods]
    for node in ended:
        lived = _went(node) - (node.created or 0.0)
        if lived < life - _BLUR_SECONDS or lived > pace.latest(life, argument):
            return f"{node.name} went after {lived:.1f} s, it may live for {life:g} s"
        if not any(
            other.initialized is not None
            and other.initialized <= _went(node)
            and (other.gone is None or other.gone > _went(node))
            for other in _of(timeline, argument)
            if (other.created or 0.0) > (node.created or 0.0)
        ):
            return f"{node.name} went before its replacement was ready"
    return _enough(ended, argument)


def why_not_held(timeline: Timeline, pace: Pace, argument: Mapping[str, Any]) -> str:
    """Return why the pods on ended nodes did not stay for the span that their annotation says."""
    span = pace.span(argument["hold_seconds"])
    ended = _ended(timeline, argument)
    for node in ended:
        for pod in _pods_of(timeline, node, argument):
            stayed = (pod.gone or 0.0) - (pod.running or 0.0)
            if stayed < span - _BLUR_SECONDS or stayed > pace.latest(span, argument):
                return f"{pod.name} left after {stayed:.1f} s, it holds its node for {span:g} s"
            if (pod.running or 0.0) + span < _went(node):
                return f"{pod.name} held nothing any more when {node.name} began to drain"
    return _enough(ended, argument)


def why_not_forced(timeline: Timeline, pace: Pace, argument: Mapping[str, Any]) -> str:
    """Return why the pods on ended nodes were not removed when the time of the drain was over."""
    span = pace.span(argument["grace_seconds"])
    ended = _ended(timeline, argument)
    for node in ended:
        if not (pods := _pods_of(timeline, node, argument)):
            return f"{node.name} went without a pod that holds it"
        for pod in pods:
            held = (pod.gone or 0.0) - _went(node)
            if held < span - _BLUR_SECONDS:
                return f"{pod.name} left {held:.1f} s after the drain began, it has {span:g} s"
        drained = (node.gone or 0.0) - _went(node)
        if drained > pace.latest(span, argument):
            return f"{node.name} was drained for {drained:.1f} s, it has {span:g} s"
    return _enough(ended, argument)


def _of(timeline: Timeline, argument: Mapping[str, Any]) -> list[NodeTrack]:
    return [node for node in timeline.our_nodes() if node.owner == argument["owner"]]


def _ended(timeline: Timeline, argument: Mapping[str, Any]) -> list[NodeTrack]:
    return [node for node in _of(timeline, argument) if node.gone is not None]


def _went(node: NodeTrack) -> float:
    """Return when its removal began, for one that has gone."""
    return node.deleting if node.deleting is not None else node.gone or 0.0


def _pods_of(timeline: Timeline, node: NodeTrack, argument: Mapping[str, Any]) -> list[PodTrack]:
    selector = dict(argument["selector"]).items()
    return [
        pod
        for pod in timeline.pods.values()
        if pod.node == node.name and pod.running is not None and selector <= pod.labels.items()
    ]


def _enough(ended: list[NodeTrack], argument: Mapping[str, Any]) -> str:
    if len(ended) >= argument["at_least"]:
        return ""
    return f"{len(ended)} nodes of {argument['owner']} are gone, expected {argument['at_least']}"


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
    return _enough_stopped(stopped, argument)


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
    return _enough_stopped(stopped, argument)


def _stopped(timeline: Timeline, argument: Mapping[str, Any]) -> list[NodeTrack]:
    return [
        node
        for node in timeline.our_nodes()
        if node.owner == argument["owner"] and STOPPED in node.annotations
    ]


def _enough_stopped(stopped: list[NodeTrack], argument: Mapping[str, Any]) -> str:
    if len(stopped) >= argument["at_least"]:
        return ""
    return f"kubelets of {len(stopped)} nodes were stopped, expected {argument['at_least']}"

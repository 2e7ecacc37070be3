"""What a scenario expects: each read from the Kubernetes and EC2 APIs.

An expectation returns why it does not hold yet, or an empty text when it does.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from infra.local.demo.drains import (
    Pace,
    why_not_after_schedule,
    why_not_blocked,
    why_not_drained,
    why_not_expired,
    why_not_forced,
    why_not_held,
    why_not_removed,
    why_not_told,
)
from infra.local.demo.prices import price_of
from infra.local.demo.timeline import NODE_POOL, PROVISIONER, NodeTrack, Timeline
from infra.local.harm import KILLED_AT_LAUNCH, Harm
from shared.model.dollars_and_counts import hourly

_ALIVE: Final = frozenset({"pending", "running"})
_ZONE: Final = "topology.kubernetes.io/zone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What an expectation may look at.

    Attributes:
        known_nodes: Names of the nodes that stood when the scenario began.
        speed: What ttls were divided by.
        events: (reason, name of the object) of each Kubernetes Event, when a step asks for them.
        health: By name of a NodePool, what it says of its nodes, when a step asks for it.
        bound_micros_per_hour: What the pods must cost at least, once a step asked for that.
        slowness: What limits of time are multiplied by; `Patience` measures it.
        hands: Whose each instance is, when a step asks for it; `hands_of` says how.
        launched: Ids of the instances that were launched as Karpenter does.
        harm: What went wrong on purpose, when a step asks for it.
        closed_until: When schedules end that were applied within them; None where none was.
    """

    timeline: Timeline
    known_nodes: frozenset[str]
    speed: float
    bound_micros_per_hour: int = 0
    slowness: float = 1.0
    events: frozenset[tuple[str, str]] = frozenset()
    health: Mapping[str, str] = field(default_factory=dict, hash=False)
    hands: Mapping[str, str] = field(default_factory=dict, hash=False)
    launched: tuple[str, ...] = ()
    harm: Harm = field(default_factory=dict, hash=False)
    closed_until: float | None = None

    @property
    def pace(self) -> Pace:
        """How spans of the manifests last."""
        return Pace(speed=self.speed, slowness=self.slowness, closed_until=self.closed_until)


Check = Callable[[Situation, Any], str]


def check(situation: Situation, name: str, argument: Any) -> str:
    """Return why an expectation does not hold, empty when it does; unknown names never hold."""
    known = CHECKS.get(name)
    if known is None:
        return f"expectation {name!r} is not known: use one of {', '.join(sorted(CHECKS))}"
    return known(situation, argument)


def _selected(argument: Mapping[str, Any]) -> Mapping[str, str]:
    return dict(argument.get("selector") or {})


def _standing(situation: Situation) -> list[NodeTrack]:
    return [node for node in situation.timeline.living_nodes() if node.ours]


def _ended(situation: Situation) -> list[NodeTrack]:
    return [node for node in situation.timeline.our_nodes() if node.gone is not None]


def _running(situation: Situation) -> set[str]:
    instances = situation.timeline.instances
    return {instance for instance, state in instances.items() if state in _ALIVE}


def _pods_running(situation: Situation, argument: Mapping[str, Any]) -> str:
    pods = situation.timeline.living_pods(_selected(argument))
    running = [pod for pod in pods if pod.running is not None]
    if len(pods) == len(running) == argument["count"]:
        return ""
    return f"{len(running)} of {len(pods)} pods run, expected {argument['count']}"


def _pods_on_new_nodes(situation: Situation, argument: Mapping[str, Any]) -> str:
    for pod in situation.timeline.living_pods(_selected(argument)):
        if not pod.node or pod.node in situation.known_nodes:
            return f"{pod.name} is on {pod.node or 'no node'}, which stood before"
    return ""


def _pods_on_known_nodes(situation: Situation, argument: Mapping[str, Any]) -> str:
    pods = situation.timeline.living_pods(_selected(argument))
    there = [pod for pod in pods if pod.node in situation.known_nodes]
    if len(there) >= argument["at_least"]:
        return ""
    return f"{len(there)} pods on nodes that stood before, expected {argument['at_least']}"


def _pods_on_kind(situation: Situation, argument: Mapping[str, Any]) -> str:
    """Each pod is on a node of this NodePool or Provisioner, which has no label of the other."""
    kinds = {"NodePool": NODE_POOL, "Provisioner": PROVISIONER}
    nodes = {node.name: node for node in situation.timeline.living_nodes()}
    for pod in situation.timeline.living_pods(_selected(argument)):
        labels = nodes[pod.node].labels if pod.node in nodes else {}
        owners = {kind: labels[key] for kind, key in kinds.items() if key in labels}
        if owners != {argument["kind"]: argument["name"]}:
            found = ", ".join(f"{kind} {name}" for kind, name in owners.items()) or "none"
            return f"{pod.name} is on a node of {found}, expected {argument['name']}"
    return ""


def _pods_per_node(situation: Situation, argument: Mapping[str, Any]) -> str:
    counts = Counter(pod.node for pod in situation.timeline.living_pods(_selected(argument)))
    for node, count in sorted(counts.items()):
        if count > argument["at_most"]:
            return f"{node or 'no node'} has {count} pods, at most {argument['at_most']} expected"
    return ""


def _skew(situation: Situation, argument: Mapping[str, Any]) -> str:
    """The most and the fewest pods on a node differ as a topology spread allows."""
    counts = Counter({node.name: 0 for node in situation.timeline.living_nodes()})
    counts.update(pod.node for pod in situation.timeline.living_pods(_selected(argument)))
    skew = max(counts.values(), default=0) - min(counts.values(), default=0)
    if skew <= argument["at_most"]:
        return ""
    return f"a node has {skew} pods more than another, at most {argument['at_most']} expected"


def _our_nodes(situation: Situation, argument: Mapping[str, Any]) -> str:
    nodes = _standing(situation)
    if owner := argument.get("owner"):
        nodes = [node for node in nodes if node.owner == owner]
    if len(nodes) < argument.get("at_least", 0):
        return f"{len(nodes)} Dovetail nodes, expected at least {argument['at_least']}"
    if len(nodes) > argument.get("at_most", len(nodes)):
        return f"{len(nodes)} Dovetail nodes, expected at most {argument['at_most']}"
    types = argument.get("instance_types")
    for node in nodes:
        found = node.labels.get("node.kubernetes.io/instance-type")
        if types is not None and found not in types:
            return f"{node.name} is a {found}, expected one of {', '.join(types)}"
        capacity_type = node.labels.get("karpenter.sh/capacity-type")
        if argument.get("capacity_type", capacity_type) != capacity_type:
            return f"{node.name} is {capacity_type}, expected {argument['capacity_type']}"
    return ""


def _instances_match_nodes(situation: Situation, _: Any) -> str:
    nodes = {node.instance_id for node in _standing(situation)}
    running = _running(situation)
    if nodes == running:
        return ""
    return f"{len(running)} instances run for {len(nodes)} Dovetail nodes"


def _everything_gone(situation: Situation, _: Any) -> str:
    nodes = _standing(situation)
    if nodes:
        return f"{len(nodes)} Dovetail nodes still exist"
    running = _running(situation)
    return f"{len(running)} instances still run" if running else ""


def _instances_in_all(situation: Situation, argument: Mapping[str, Any]) -> str:
    count = len(situation.timeline.instances)
    if count == argument["count"]:
        return ""
    return f"{count} instances were launched in all, expected {argument['count']}"


def _cordoned_before_gone(situation: Situation, _: Any) -> str:
    ended = _ended(situation)
    if not ended:
        return "no Dovetail node has been removed yet"
    for node in ended:
        if node.cordoned is None or node.gone is None or node.cordoned > node.gone:
            return f"{node.name} went without being cordoned"
        if situation.timeline.instances.get(node.instance_id) in _ALIVE:
            return f"{node.name} is gone and its instance {node.instance_id} still runs"
    return ""


def _removed_after_empty(situation: Situation, argument: Mapping[str, Any]) -> str:
    """Each ended node waited its ttl, at the speed of the world, and not much longer."""
    ttl = situation.pace.empty(argument["ttl_seconds"])
    slack = float(argument.get("slack_seconds", 30)) * situation.slowness
    ended = _ended(situation)
    if not ended:
        return "no Dovetail node has been removed yet"
    for node in ended:
        waited = _waited(node)
        if waited is None:
            return f"{node.name} went and was never seen empty and initialized"
        # Readings are a fraction of a second apart, and stamps are whole seconds.
        if waited < ttl - 2:
            return f"{node.name} was removed {waited:.1f} s after it became empty, ttl is {ttl} s"
        if waited > ttl + slack:
            return f"{node.name} waited {waited:.1f} s, ttl is {ttl} s"
    return ""


def _cost_near_bound(situation: Situation, argument: Mapping[str, Any]) -> str:
    """The nodes cost hardly more than their pods must, on any nodes."""
    nodes = _standing(situation)
    cost, bound = sum(price_of(node.labels) for node in nodes), situation.bound_micros_per_hour
    if not bound:
        return "no step has asked for the bound"
    over = 100 * (cost - bound) / bound
    if nodes and over <= argument["percent"]:
        return ""
    return f"{len(nodes)} nodes cost {hourly(cost)}, {over:.1f} % above {hourly(bound)}"


def _replaced_first(situation: Situation, _: Any) -> str:
    """Return why a node that had pods was removed before its replacement was ready."""
    ended = _ended(situation)
    used = [node for node in ended if node.most_pods]
    if not used:
        return "no Dovetail node that had pods has been removed yet"
    for node in used:
        if not any(
            other.initialized is not None
            and node.deleting is not None
            and other.initialized <= node.deleting
            and (other.gone is None or other.gone > node.deleting)
            for other in situation.timeline.our_nodes()
            if other is not node
        ):
            return f"{node.name} went before another node was ready"
    return ""


def _one_at_a_time(situation: Situation, argument: Mapping[str, Any]) -> str:
    """So many nodes went, and none with pods on it began to while another was on its way."""
    ours = situation.timeline.our_nodes()
    used = [node for node in ours if node.deleting is not None and node.most_pods]
    used.sort(key=lambda node: node.deleting or 0.0)
    for before, after in pairwise(used):
        if before.gone is None or (after.deleting or 0.0) < before.gone:
            return f"{after.name} was drained while {before.name} still was"
    gone = sum(node.gone is not None for node in used)
    if gone >= argument["at_least"]:
        return ""
    return f"{gone} nodes that had pods are gone, expected {argument['at_least']}"


def _launched_before_gone(situation: Situation, _: Any) -> str:
    """For a node that went, another was made before it was gone."""
    ended = _ended(situation)
    if not ended:
        return "no Dovetail node has been removed yet"
    for node in ended:
        begun = node.deleting if node.deleting is not None else node.gone
        made = [node.created for node in situation.timeline.our_nodes()]
        later = [at for at in made if at is not None and begun is not None and at >= begun]
        if not later or node.gone is None or min(later) > node.gone:
            return f"{node.name} was gone before another node was made"
    return ""


def _untouched(situation: Situation, _: Any) -> str:
    standing = {node.name: node for node in situation.timeline.living_nodes()}
    for name in sorted(situation.known_nodes):
        if name not in standing:
            return f"{name} is not Dovetail's and is gone"
        if standing[name].changed_by_others:
            return f"{name} is not Dovetail's and was changed"
    return ""


def _bound_after_resource(situation: Situation, argument: Mapping[str, Any]) -> str:
    resource = argument["resource"]
    for pod in situation.timeline.living_pods(_selected(argument)):
        node = next((n for n in situation.timeline.our_nodes() if n.name == pod.node), None)
        if pod.bound is None or node is None or node.ready is None:
            return f"{pod.name} is not bound to a ready Dovetail node"
        if pod.bound < node.shown.get(resource, float("inf")):
            return f"{pod.name} was bound before {pod.node} showed {resource}"
    return ""


def _volumes_in_zone_of_their_pods(situation: Situation, argument: Mapping[str, Any]) -> str:
    """Each pod of a StatefulSet has only ever been in one zone, and all are in so many."""
    ours = situation.timeline.our_nodes()
    zones_of_node = {node.name: node.labels.get(_ZONE, "") for node in ours}
    selector = _selected(argument).items()
    places: dict[str, set[str]] = {}
    for pod in situation.timeline.pods.values():
        if selector <= pod.labels.items() and pod.node:
            places.setdefault(pod.name, set()).add(zones_of_node.get(pod.node, ""))
    for name, zones in sorted(places.items()):
        if len(zones) > 1:
            return f"{name} was in zones {', '.join(sorted(zones))}: its volume is in one"
    used = set().union(*places.values())
    return "" if len(used) == argument["zones"] else f"pods were in {len(used)} zones"


def _waited(node: NodeTrack) -> float | None:
    begun = node.deleting if node.deleting is not None else node.gone
    return None if begun is None or node.emptied is None else begun - node.emptied


def _in_hands_of(situation: Situation, argument: Mapping[str, Any]) -> str:
    """Each instance that was launched as Karpenter does is of this owner, in all that tells."""
    if not situation.launched:
        return "no instance was launched as Karpenter does"
    for instance_id in situation.launched:
        owner = situation.hands.get(instance_id, "without a Node")
        if owner != argument["owner"]:
            return f"{instance_id} is {owner}, expected {argument['owner']}"
    return ""


def _instances_untouched(situation: Situation, _: Any) -> str:
    """Those instances run, no others were ever launched, and none of their pods was removed."""
    for instance_id in situation.launched:
        state = situation.timeline.instances.get(instance_id, "unknown")
        if state not in _ALIVE:
            return f"{instance_id} is {state}"
    if others := sorted({*situation.timeline.instances} - {*situation.launched}):
        return f"{others[0]} was launched besides"
    gone = [pod.name for pod in situation.timeline.pods.values() if pod.gone is not None]
    return f"{gone[0]} was removed from its node" if gone else ""


def _event(situation: Situation, argument: Mapping[str, Any]) -> str:
    if (argument["reason"], argument["about"]) in situation.events:
        return ""
    return f"there is no Event {argument['reason']} about {argument['about']}"


def _killed_at_launch(situation: Situation, argument: Mapping[str, Any]) -> str:
    """A function was killed after EC2 had launched instances for it, and before it knew."""
    function = argument["function"]
    struck = [name for kind, name in situation.harm if kind == KILLED_AT_LAUNCH]
    if any(name.endswith(function) for name in struck):
        return ""
    return f"no launch has found {function} at work and killed it"


CHECKS: Final[Mapping[str, Check]] = {
    "bound_after_resource": _bound_after_resource,
    "cordoned_before_gone": _cordoned_before_gone,
    "cost_near_bound": _cost_near_bound,
    "deleted_node_drained": lambda at, _: why_not_drained(at.timeline),
    "drain_blocked": lambda at, how: why_not_blocked(at.timeline.our_nodes(), at.events, how),
    "ended_by_force": lambda at, how: why_not_forced(at.timeline, at.pace, how),
    "event": _event,
    "everything_gone": _everything_gone,
    "expired_in_time": lambda at, how: why_not_expired(at.timeline, at.pace, how),
    "held_for_its_time": lambda at, how: why_not_held(at.timeline, at.pace, how),
    "in_hands_of": _in_hands_of,
    "instances_in_all": _instances_in_all,
    "instances_match_nodes": _instances_match_nodes,
    "instances_untouched": _instances_untouched,
    "killed_at_launch": _killed_at_launch,
    "launched_before_gone": _launched_before_gone,
    "one_at_a_time": _one_at_a_time,
    "our_nodes": _our_nodes,
    "pods_on_kind": _pods_on_kind,
    "pods_on_known_nodes": _pods_on_known_nodes,
    "pods_on_new_nodes": _pods_on_new_nodes,
    "pods_per_node": _pods_per_node,
    "pods_running": _pods_running,
    "removed_after_empty": _removed_after_empty,
    "removed_after_schedule": lambda at, how: why_not_after_schedule(at.timeline, at.pace, how),
    "replaced_first": _replaced_first,
    "skew": _skew,
    "stopped_nodes_gone": lambda at, how: why_not_removed(at.timeline, how),
    "stopped_nodes_told": lambda at, how: why_not_told(at.timeline, at.events, at.health, how),
    "untouched": _untouched,
    "volumes_in_zone_of_their_pods": _volumes_in_zone_of_their_pods,
}

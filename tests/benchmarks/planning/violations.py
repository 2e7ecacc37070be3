"""What a plan breaks, looked up anew: nothing of the planner is used but its answer.

The pods are bound one by one in the order of the plan. Each is checked as kube-scheduler checks it
at that moment: against the pods bound before it, with all nodes present.
A node whose options are in several zones counts for none of them.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from shared.model import labels as keys
from shared.model.ec2.launches import PlannedNode
from shared.model.kubernetes.pods import (
    AffinityTerm,
    LabelSelector,
    Pod,
    SpreadPolicy,
    TopologySpread,
)
from shared.model.plan import Plan
from shared.model.snapshot import ClusterSnapshot

UNSURE = "?"


def violations(snapshot: ClusterSnapshot, plan: Plan) -> Counter[str]:
    """Return how often what is broken; empty when nothing is.

    Understands new nodes only, and required rules over zones and hosts with plain selectors.
    """
    found: Counter[str] = Counter()
    pods = {pod.uid: pod for pod in snapshot.pending}
    seen = Counter(ref.uid for node in plan.nodes for ref in node.pods)
    left_out = Counter(pod_left.pod.uid for pod_left in plan.unschedulable)
    found["pods not placed exactly once"] = sum(seen[uid] + left_out[uid] != 1 for uid in pods)
    found["pods not requested"] = sum(uid not in pods for uid in (*seen, *left_out))
    found["pods without a place"] = len(left_out)
    if found["pods not requested"]:
        return Counter({name: count for name, count in found.items() if count})
    found["nodes too small"] = sum(_too_small(node, pods) for node in plan.nodes)
    cost = sum(node.price_micros_per_hour for node in plan.nodes)
    found["wrong cost"] = int(cost != plan.cost_micros_per_hour)
    found["bound above the cost"] = int(plan.lower_bound_micros_per_hour > cost)
    node_of = {ref.uid: number for number, node in enumerate(plan.nodes) for ref in node.pods}
    order = [ref.uid for ref in plan.order] or list(node_of)
    found["pods not bound exactly once"] = int(Counter(order) != seen)
    cluster = _Cluster([_zone(node) for node in plan.nodes])
    for uid in order:
        found.update(cluster.bind(pods[uid], node_of[uid]))
    return Counter({name: count for name, count in found.items() if count})


def _too_small(node: PlannedNode, pods: Mapping[str, Pod]) -> bool:
    asked: Counter[str] = Counter()
    for ref in node.pods:
        asked.update(dict(pods[ref.uid].scheduling.requests.items))
    asked.update(dict(node.daemon_requests.items))
    rooms = [dict(option.allocatable.items) for option in (*node.options, *node.fallback)]
    return any(amount > room.get(name, 0) for room in rooms for name, amount in asked.items())


def _zone(node: PlannedNode) -> str:
    zones = {option.offering.zone for option in (*node.options, *node.fallback)}
    return zones.pop() if len(zones) == 1 else UNSURE


@dataclass(frozen=True, slots=True)
class _Watched:
    """Pods that a rule counts: of these namespaces, with these labels."""

    namespaces: tuple[str, ...]
    selector: LabelSelector

    def counts(self, pod: Pod) -> bool:
        assert not self.selector.requirements, "only plain selectors are understood here"
        wanted = self.selector.match_labels
        return pod.namespace in self.namespaces and all(
            pod.labels.get(key) == value for key, value in wanted
        )


class _Cluster:
    """Nodes that fill up, with counts of pods by what watches them, key and domain."""

    def __init__(self, zones: Sequence[str]) -> None:
        self._zones = zones
        self._sure = {zone for zone in zones if zone != UNSURE}
        self._counts: dict[tuple[_Watched, str], Counter[Hashable]] = {}
        # How many hosts have how many pods that are counted.
        self._levels: dict[_Watched, Counter[int]] = {}
        # Required anti-affinity of pods that stand there, by domain.
        self._avoided: dict[tuple[_Watched, str], set[Hashable]] = {}
        self._history: list[tuple[Pod, int]] = []

    def bind(self, pod: Pod, node: int) -> Counter[str]:
        """Return what is broken by binding the pod now; binds it all the same."""
        found: Counter[str] = Counter()
        rules = pod.scheduling
        for (watched, key), domains in self._avoided.items():
            if self._domain(node, key) in domains and watched.counts(pod):
                found["anti-affinity of pods that are there"] += 1
        for spread in rules.spreads:
            if spread.policy == SpreadPolicy.DO_NOT_SCHEDULE and spread.selector is not None:
                found[self._spread(pod, node, spread)] += 1
        for term in rules.affinity:
            if term.weight is None:
                found[self._affinity(pod, node, term)] += 1
        for term in rules.anti_affinity:
            if term.weight is None:
                found[self._anti_affinity(pod, node, term)] += 1
        self._stand(pod, node)
        del found[""]
        return found

    def _domain(self, node: int, key: str) -> Hashable:
        assert key in (keys.ZONE, keys.HOSTNAME), "only zones and hosts are understood here"
        return self._zones[node] if key == keys.ZONE else node

    def _watch(self, watched: _Watched, key: str) -> Counter[Hashable]:
        if (watched, key) not in self._counts:
            there = [(pod, node) for pod, node in self._history if watched.counts(pod)]
            counts = Counter(self._domain(node, key) for _, node in there)
            self._counts[watched, key] = counts
            if key == keys.HOSTNAME:
                levels = Counter(counts.values())
                levels[0] = len(self._zones) - len(counts)
                self._levels[watched] = levels
        return self._counts[watched, key]

    def _spread(self, pod: Pod, node: int, rule: TopologySpread) -> str:
        assert rule.selector is not None
        watched = _Watched((pod.namespace,), rule.selector)
        counts = self._watch(watched, rule.key)
        here = counts[self._domain(node, rule.key)] + watched.counts(pod)
        if rule.key == keys.HOSTNAME:
            least = min(level for level, hosts in self._levels[watched].items() if hosts)
            return "skew over hosts" if here - least > rule.max_skew else ""
        if self._zones[node] == UNSURE or counts[UNSURE]:
            return "zone not sure"
        least = min(counts[zone] for zone in self._sure)
        return "skew over zones" if here - least > rule.max_skew else ""

    def _affinity(self, pod: Pod, node: int, term: AffinityTerm) -> str:
        assert term.selector is not None
        watched = _Watched(term.namespaces or (pod.namespace,), term.selector)
        counts = self._watch(watched, term.key)
        domain = self._domain(node, term.key)
        if domain == UNSURE:
            return "zone not sure"
        first = not counts.total() and watched.counts(pod)
        return "" if counts[domain] or first else "affinity"

    def _anti_affinity(self, pod: Pod, node: int, term: AffinityTerm) -> str:
        assert term.selector is not None
        watched = _Watched(term.namespaces or (pod.namespace,), term.selector)
        domain = self._domain(node, term.key)
        there = self._watch(watched, term.key)[domain]
        self._avoided.setdefault((watched, term.key), set()).add(domain)
        if domain == UNSURE:
            return "zone not sure"
        return "anti-affinity" if there else ""

    def _stand(self, pod: Pod, node: int) -> None:
        self._history.append((pod, node))
        for (watched, key), counts in self._counts.items():
            if not watched.counts(pod):
                continue
            counts[self._domain(node, key)] += 1
            if key == keys.HOSTNAME:
                level = counts[node]
                self._levels[watched][level - 1] -= 1
                self._levels[watched][level] += 1

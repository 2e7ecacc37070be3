"""A port of the published v1 procedure with rules between pods, as a baseline: what it buys.

Written from descriptions of Karpenter's v1 scheduler. Pods by falling cpu, then memory, one at a
time; nodes with the fewest pods first; a spread over zones takes the zone with the fewest pods it
counts; each node keeps the types that still fit, the cheapest of which is bought.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from shared.model import labels as keys
from shared.model.ec2.instance_types import InstanceType
from shared.model.kubernetes.pods import LabelSelector, Pod
from shared.model.resources import CPU, MEMORY, PODS, Resources
from shared.model.snapshot import ClusterSnapshot
from tests.benchmarks.planning.clusters import ZONES

_DAEMONS = Resources.of(cpu=280, memory=320 * 2**20, pods=4)
_NAMES = (CPU, MEMORY, PODS)


@dataclass
class _Node:
    number: int
    types: list[int]
    used: tuple[int, ...] = (0, 0, 0)
    zone: str = ""
    pods: int = 0
    counted: Counter[LabelSelector] = field(default_factory=Counter)


def v1(snapshot: ClusterSnapshot) -> tuple[int, int, int]:
    """Return price, nodes and pods left out."""
    pods = sorted(
        snapshot.pending,
        key=lambda pod: (
            -pod.scheduling.requests[CPU],
            -pod.scheduling.requests[MEMORY],
            pod.key,
        ),
    )
    run = _Run(snapshot.instance_types, pods)
    left_out = sum(not run.place(pod) for pod in pods)
    return sum(run.price(node) for node in run.nodes), len(run.nodes), left_out


class _Run:
    def __init__(self, types: Sequence[InstanceType], pods: Sequence[Pod]) -> None:
        rooms = [type_.allocatable - _DAEMONS for type_ in types]
        self._rooms = [tuple(room[name] for name in _NAMES) for room in rooms]
        self._prices = [
            {way.zone: way.price_micros_per_hour for way in type_.offerings} for type_ in types
        ]
        self._selectors = tuple(
            dict.fromkeys(selector for pod in pods for selector in _selectors(pod))
        )
        self._by_zone: dict[LabelSelector, Counter[str]] = defaultdict(Counter)
        self._by_pods: dict[int, dict[int, _Node]] = defaultdict(dict)
        self.nodes: list[_Node] = []

    def place(self, pod: Pod) -> bool:
        """Put the pod on the emptiest node that takes it, else on a new one."""
        asked = tuple(pod.scheduling.requests[name] for name in _NAMES)
        zones = self._zones(pod)
        if not zones:
            return False
        for node in self._emptiest():
            if (node.zone and node.zone not in zones) or not _host_takes(node, pod):
                continue
            if self._add(node, pod, asked, zones):
                return True
        return self._add(_Node(len(self.nodes), list(range(len(self._rooms)))), pod, asked, zones)

    def price(self, node: _Node) -> int:
        """Return the price of the cheapest type that is left."""
        return min(
            price
            for kind in node.types
            for zone, price in self._prices[kind].items()
            if node.zone in ("", zone)
        )

    def _emptiest(self) -> Iterator[_Node]:
        for many in sorted(self._by_pods):
            yield from list(self._by_pods[many].values())

    def _add(self, node: _Node, pod: Pod, asked: tuple[int, ...], zones: Sequence[str]) -> bool:
        used = tuple(a + b for a, b in zip(node.used, asked, strict=True))
        zone = node.zone or (zones[0] if len(zones) < len(ZONES) else "")
        cpu, memory, many = used
        fits = [
            kind
            for kind in node.types
            if (room := self._rooms[kind])[0] >= cpu and room[1] >= memory and room[2] >= many
            if not zone or zone in self._prices[kind]
        ]
        if not fits:
            return False
        if node.number == len(self.nodes):
            self.nodes.append(node)
        self._by_pods[node.pods].pop(node.number, None)
        node.types, node.used, node.zone, node.pods = fits, used, zone, node.pods + 1
        self._by_pods[node.pods][node.number] = node
        for selector in self._selectors:
            if selector.selects(pod.labels):
                node.counted[selector] += 1
                if zone:
                    self._by_zone[selector][zone] += 1
        return True

    def _zones(self, pod: Pod) -> Sequence[str]:
        """Return the zones the pod may go to: all, or the one its rule leaves."""
        for rule in pod.scheduling.spreads:
            if rule.key == keys.ZONE and rule.selector is not None:
                counts = self._by_zone[rule.selector]
                return (min(ZONES, key=lambda zone: (counts[zone], zone)),)
        for term in pod.scheduling.affinity:
            if term.key == keys.ZONE and term.selector is not None:
                there = [zone for zone in ZONES if self._by_zone[term.selector][zone]]
                return there[:1] or ZONES[:1]
        return ZONES


def _selectors(pod: Pod) -> Iterator[LabelSelector]:
    rules = pod.scheduling
    found = [spread.selector for spread in rules.spreads]
    found += [term.selector for term in (*rules.affinity, *rules.anti_affinity)]
    return (label_selector for label_selector in found if label_selector is not None)


def _host_takes(node: _Node, pod: Pod) -> bool:
    for rule in pod.scheduling.spreads:
        if rule.key == keys.HOSTNAME and rule.selector is not None:
            itself = rule.selector.selects(pod.labels)
            if node.counted[rule.selector] + itself > rule.max_skew:
                return False
    return not any(
        term.key == keys.HOSTNAME and term.selector is not None and node.counted[term.selector]
        for term in pod.scheduling.anti_affinity
        if term.weight is None
    )

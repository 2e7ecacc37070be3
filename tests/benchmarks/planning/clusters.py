"""Snapshots of made-up clusters: real pods with real rules, for timing whole decisions.

The mixes are those of Karpenter's own scheduling benchmark, pods and labels drawn as there: a fifth
each of plain pods, pods spread over zones, pods spread over hosts, pods that want the zone of
their like, and pods that want a host without their like.
"""

import random
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from shared.instance_types.catalog import embedded_catalog
from shared.model import labels as keys
from shared.model.ec2.instance_types import CapacityType, InstanceType
from shared.model.kubernetes.pods import Pod, PreferredNodes, Scheduling
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from tests import builders as make
from tests.benchmarks.packing import workloads

ZONES = make.ZONES
LABEL, AFFINE, APART = "my-label", "my-affinity", "app"
_LETTERS = "abcdefg"
_CPUS = (100, 250, 500, 1000, 1500)
_MEMORIES = tuple(mib * 2**20 for mib in (100, 256, 512, 1024, 2048, 4096))
_CATEGORY = "karpenter.k8s.aws/instance-category"
_GENERATION = "karpenter.k8s.aws/instance-generation"


@lru_cache(maxsize=1)
def general_types() -> tuple[InstanceType, ...]:
    """Return the getting-started pool on demand in three zones: amd64, c, m or r, newer than 2."""
    found = []
    for instance_type in embedded_catalog().instance_types:
        labels = instance_type.labels
        ways = tuple(
            way
            for way in instance_type.offerings
            if way.zone in ZONES and way.capacity_type == CapacityType.ON_DEMAND
        )
        if (
            ways
            and labels[keys.ARCH] == "amd64"
            and labels.get(_CATEGORY) in ("c", "m", "r")
            and int(labels.get(_GENERATION, "0")) > 2
            and not labels[keys.INSTANCE_SIZE].startswith("metal")
        ):
            found.append(replace(instance_type, offerings=ways))
    return tuple(found)


def snapshot(pods: list[Pod]) -> ClusterSnapshot:
    """Return an empty cluster in which these pods wait, with four small daemons on each node."""
    daemons = [make.daemonset(f"d{n}", cpu=70, memory=80 * 2**20) for n in range(4)]
    return make.snapshot(
        *sorted(pods, key=lambda pod: pod.key),
        instance_types=general_types(),
        daemonsets=tuple(daemons),
    )


class _Pods:
    """Pods that share what pods of one workload share: equal rules are one object."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.found: list[Pod] = []
        self._known: dict[Scheduling, Scheduling] = {}

    def add(self, kind: str, labels: dict[str, str], **rules: Any) -> None:
        name = f"{kind}-{len(self.found):05}"
        cpu, memory = self.draw.choice(_CPUS), self.draw.choice(_MEMORIES)
        self.add_sized(name, labels, (cpu, memory), **rules)

    def add_sized(
        self, name: str, labels: dict[str, str], size: tuple[int, int], **rules: Any
    ) -> None:
        asked = make.scheduling(*size, tolerations=make.DEFAULT_TOLERATIONS, **rules)
        asked = self._known.setdefault(asked, asked)
        self.found.append(make.pod(name, labels=labels, scheduling=asked))

    def letter(self) -> str:
        return self.draw.choice(_LETTERS)


def topo(count: int, seed: int = 1) -> ClusterSnapshot:
    """Return Karpenter's mix of constraints."""
    made = _Pods(seed)
    fifth = count // 5
    for _ in range(count - 4 * fifth):
        made.add("plain", {LABEL: made.letter()})
    for kind, key in (("zoned", keys.ZONE), ("hosted", keys.HOSTNAME)):
        for _ in range(fifth):
            rule = make.spread(key, selector=make.selector(**{LABEL: made.letter()}))
            made.add(kind, {LABEL: made.letter()}, spreads=(rule,))
    for _ in range(fifth):
        labels = {AFFINE: made.letter()}
        near = make.affinity(keys.ZONE, selector=make.selector(**labels), namespaces=("default",))
        made.add("affine", labels, affinity=(near,))
    apart = make.affinity(selector=make.selector(**{APART: "nginx"}), namespaces=("default",))
    for _ in range(fifth):
        made.add("apart", {APART: "nginx"}, anti_affinity=(apart,))
    return snapshot(made.found)


def many_classes(count: int, seed: int = 1) -> ClusterSnapshot:
    """Return the skewed pods, 400 deployments from 8,000 pods up, labelled as deployments are."""
    made = _Pods(seed)
    for number, (cpu, memory, _, _) in enumerate(workloads.skew(count, seed)):
        app = f"app-{cpu}-{memory}"
        labels = {"app": app, "pod-template-hash": f"{cpu * 31 + memory:08x}"}
        made.add_sized(f"{app}-{number:05}", labels, (cpu, memory * 2**20))
    return snapshot(made.found)


def spread_classes(count: int, seed: int = 1) -> ClusterSnapshot:
    """Return the skewed pods, every deployment spread over the zones as a chart would ask."""
    made = _Pods(seed)
    for number, (cpu, memory, _, _) in enumerate(workloads.skew(count, seed)):
        app = f"app-{cpu}-{memory}"
        rule = make.spread(keys.ZONE, selector=make.selector(app=app))
        made.add_sized(f"{app}-{number:05}", {"app": app}, (cpu, memory * 2**20), spreads=(rule,))
    return snapshot(made.found)


def preferences(count: int, seed: int = 1) -> ClusterSnapshot:
    """Return pods that prefer a zone, a zone without their like and a host without their like.

    The second preference cannot be kept by more than one pod a zone.
    """
    made = _Pods(seed)
    alike = make.selector(**{APART: "nginx"})
    near = PreferredNodes(weight=1, requirements=make.needs(keys.ZONE, "In", ZONES[0]))
    terms = (
        make.affinity(keys.ZONE, selector=alike, namespaces=("default",), weight=10),
        make.affinity(keys.HOSTNAME, selector=alike, namespaces=("default",), weight=1),
    )
    for _ in range(count):
        made.add("choosy", {APART: "nginx"}, preferred_nodes=(near,), anti_affinity=terms)
    return snapshot(made.found)


CLUSTERS: dict[str, Callable[[int], ClusterSnapshot]] = {
    "topo": topo,
    "classes": many_classes,
    "spread": spread_classes,
    "preferences": preferences,
}

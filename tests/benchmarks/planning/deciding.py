"""Whole decisions on made-up clusters: grouping, scheduling, packing and handing out the pods.

Run as `python -m tests.benchmarks.planning.deciding [CASE] [COUNT] [--profile] [--seconds N]`;
cases are topo, classes, spread and preferences.
"""

import argparse
import cProfile
import pstats
import sys
from collections import Counter
from dataclasses import dataclass

from shared.model import labels as keys
from shared.model.ec2.instance_types import Offering
from shared.model.plan import Plan
from shared.model.resources import Resources
from shared.model.snapshot import ClusterSnapshot
from shared.packing.packer import pack
from shared.packing.problem import ItemClass, NodeType, PackingProblem, PackingSettings
from shared.planning.decide import decide
from shared.planning.lower_bound import with_bound
from tests.benchmarks.packing.workloads import PLAIN
from tests.benchmarks.planning import clusters
from tests.benchmarks.planning.violations import violations
from tests.benchmarks.timing import several

SIZES = {"topo": 10_000, "classes": 10_000, "spread": 10_000, "preferences": 4_000}
_SLOT = "slot/apart"
_DAEMONS = Resources.of(cpu=280, memory=320 * 2**20, pods=4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A decision and what it took.

    Attributes:
        milliseconds: Median CPU time of the runs.
        broken: What the plan breaks, empty for nothing.
    """

    plan: Plan
    milliseconds: float
    broken: Counter[str]


def measure(
    snapshot: ClusterSnapshot, settings: PackingSettings = PLAIN, *, budget_seconds: float = 0
) -> Decided:
    """Decide as often as the budget has room for, at least once, and look the plan over."""
    plan, milliseconds = several(lambda: decide(snapshot, settings), budget_seconds)
    return Decided(
        plan=plan,
        milliseconds=milliseconds,
        broken=violations(snapshot, with_bound(snapshot, plan)),
    )


def classes_of(snapshot: ClusterSnapshot) -> int:
    """Return how many kinds of pods there are: by rules, requests and labels."""
    return len({(pod.scheduling, tuple(sorted(pod.labels.items()))) for pod in snapshot.pending})


def bound(snapshot: ClusterSnapshot) -> int:
    """Return what no plan can cost less than, of all rules only those that keep hosts apart.

    Each pod that wants a host without its like takes one of a slot of which each machine has one.
    """
    counts: Counter[Resources] = Counter()
    for pod in snapshot.pending:
        alone = any(
            term.key == keys.HOSTNAME and term.weight is None
            for term in pod.scheduling.anti_affinity
        )
        slot = Resources(((_SLOT, 1),)) if alone else Resources()
        counts[pod.scheduling.requests + slot] += 1
    classes = tuple(
        ItemClass(requests=resources, count=count) for resources, count in counts.items()
    )
    shapes = tuple(
        NodeType(
            provisioner="default",
            instance_type=instance_type.name,
            allocatable=instance_type.allocatable - _DAEMONS + Resources(((_SLOT, 1),)),
            capacity=instance_type.capacity,
            offerings=tuple(
                Offering(
                    zone=way.zone,
                    capacity_type=way.capacity_type,
                    price_micros_per_hour=way.price_micros_per_hour,
                )
                for way in instance_type.offerings
            ),
            vcpus=instance_type.capacity["cpu"] // 1000,
        )
        for instance_type in snapshot.instance_types
    )
    asked = PackingProblem(
        classes=classes,
        node_types=shapes,
        compatible=((1 << len(shapes)) - 1,) * len(classes),
        compatible_bins=(0,) * len(classes),
        settings=PLAIN,
    )
    return pack(asked).lower_bound_micros_per_hour


def main() -> None:
    """Time one case and say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", choices=sorted(SIZES), nargs="?", default="topo")
    parser.add_argument("count", type=int, nargs="?")
    parser.add_argument("--profile", action="store_true", help="where the time goes")
    parser.add_argument("--seconds", type=float, default=0, help="CPU time for more runs")
    chosen = parser.parse_args()
    snapshot = clusters.CLUSTERS[chosen.case](chosen.count or SIZES[chosen.case])
    if chosen.profile:
        profile = cProfile.Profile()
        profile.runcall(decide, snapshot, PLAIN)
        pstats.Stats(profile).sort_stats("cumulative").print_stats(35)
        return
    found = measure(snapshot, budget_seconds=chosen.seconds)
    plan, floor = with_bound(snapshot, found.plan), bound(snapshot)
    gap = 100 * (plan.cost_micros_per_hour / floor - 1)
    lines = [
        f"{chosen.case}: {len(snapshot.pending)} pods, {classes_of(snapshot)} classes",
        f"{found.milliseconds:.0f} ms CPU, {len(plan.nodes)} nodes",
        f"${plan.cost_micros_per_hour / 1e6:.4f}/h, bound ${floor / 1e6:.4f}/h, gap {gap:.2f} %",
        f"the plan's own bound ${plan.lower_bound_micros_per_hour / 1e6:.4f}/h",
        f"broken: {dict(found.broken) or 'nothing'}",
    ]
    if plan.remark:
        lines.append(plan.remark)
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

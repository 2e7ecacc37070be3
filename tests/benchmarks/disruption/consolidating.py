"""Consolidates random clusters until nothing more pays, and says what was saved.

python -m tests.benchmarks.disruption.consolidating --clusters 1000
"""

import argparse
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from shared.disruption.candidates import node_prices
from shared.disruption.consolidation import ConsolidationCommand, consolidate
from shared.disruption.settings import SAVING_ALONE
from shared.model import labels as keys
from shared.model.ec2.instance_types import InstanceType, OfferingKey
from shared.model.ec2.launches import PlannedNode
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.packing.problem import PackingSettings
from shared.planning.decide import decide
from shared.planning.lower_bound import with_bound
from tests.builders import GIB, NOW, ZONES, instance_type, node, pod, provisioner, snapshot, spread

_ROUND: Final = timedelta(minutes=30)
# More than any cluster needs: a cluster that goes on and on shows by its count.
_MOST_ROUNDS: Final = 20
_PACKING: Final = PackingSettings(improve_iterations=10)
# Types of three families at list-price ratios: (family, GiB per vCPU, micro-dollars per vCPU).
_FAMILIES: Final = (("c6a", 2, 38_250), ("m6a", 4, 43_200), ("r6a", 8, 56_700))
_CPU_MILLIS: Final = (100, 250, 500, 1000, 2000)
_MEMORY_GIB: Final = (0.25, 0.5, 1, 2, 4)


def catalog() -> tuple[InstanceType, ...]:
    """Return twelve types: three families in four sizes."""
    found = [
        instance_type(
            f"{family}.{size}",
            cpu=1000 * vcpus,
            memory=vcpus * ratio * GIB,
            price=price * vcpus,
        )
        for family, ratio, price in _FAMILIES
        for size, vcpus in (("large", 2), ("xlarge", 4), ("2xlarge", 8), ("4xlarge", 16))
    ]
    return tuple(sorted(found, key=lambda entry: entry.name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What became of one cluster.

    Attributes:
        costs: Micro-dollars per hour before, and after each round.
        bound: What the same pods cost at least, on any nodes.
        rounds: Changes made until nothing paid.
        lost: Pods that had no place at the end.
    """

    seed: int
    costs: tuple[int, ...]
    bound: int
    rounds: int
    lost: int

    @property
    def only_fell(self) -> bool:
        """Whether every round made the cluster cheaper."""
        return all(
            after < before for before, after in zip(self.costs, self.costs[1:], strict=False)
        )


def random_cluster(seed: int) -> ClusterSnapshot:
    """Return a cluster of 2 to 14 nodes, each filled to between nothing and three quarters."""
    rng = random.Random(seed)
    types = catalog()
    nodes, bound = [], []
    for number in range(rng.randint(2, 14)):
        shape = rng.choice(types)
        nodes.append(_node(f"n{number:02}", shape, rng.choice(ZONES)))
        room = shape.allocatable
        share = rng.random() * 0.75
        cpu, memory = int(room["cpu"] * share), int(room["memory"] * share)
        for index in range(25):
            want = (rng.choice(_CPU_MILLIS), int(rng.choice(_MEMORY_GIB) * GIB))
            if want[0] > cpu or want[1] > memory:
                break
            cpu, memory = cpu - want[0], memory - want[1]
            bound.append(_pod(rng, f"p{number:02}-{index:02}", f"n{number:02}", *want))
    return snapshot(
        nodes=tuple(nodes),
        bound=tuple(bound),
        provisioners=(provisioner(consolidation=True),),
        instance_types=types,
        taken_at=NOW + _ROUND,
    )


def _pod(rng: random.Random, name: str, where: str, cpu: int, memory: int) -> Pod:
    rules = {"spreads": (spread(hard=False),)} if rng.random() < 0.2 else {}
    return pod(name, node_name=where, cpu=cpu, memory=memory, **rules)


def _node(name: str, shape: InstanceType, zone: str) -> Node:
    labels = {
        **shape.labels,
        keys.PROVISIONER_NAME: "default",
        keys.ZONE: zone,
        keys.INITIALIZED: "true",
        keys.CAPACITY_TYPE: "on-demand",
        keys.HOSTNAME: name,
    }
    return node(name, labels=labels, capacity=shape.capacity, allocatable=shape.allocatable)


def settle(seed: int) -> Settled:
    """Consolidate one random cluster until nothing more pays."""
    rng = random.Random(seed)
    seen = random_cluster(seed)
    costs = [_cost(seen)]
    lost = 0
    for step in range(_MOST_ROUNDS):
        outlook = consolidate(seen, (), SAVING_ALONE, _PACKING, most_nodes=1000)
        if outlook.best is None:
            break
        seen, left = _applied(seen, outlook.best, rng, step)
        lost += left
        costs.append(_cost(seen))
    return Settled(
        seed=seed, costs=tuple(costs), bound=_bound(seen), rounds=len(costs) - 1, lost=lost
    )


def _applied(
    seen: ClusterSnapshot, change: ConsolidationCommand, rng: random.Random, step: int
) -> tuple[ClusterSnapshot, int]:
    """Return the cluster after the change, any option bought, and how many pods lost a place."""
    types = {allowed_type.name: allowed_type for allowed_type in seen.instance_types}
    moved = {
        ref.uid: placement.node for placement in change.plan.placements for ref in placement.pods
    }
    nodes = [other_node for other_node in seen.nodes if other_node.name not in change.remove]
    for number, planned in enumerate(change.plan.nodes):
        name = f"r{step:02}-{number:02}"
        bought = rng.choice(_all_options(planned))
        nodes.append(_node(name, types[bought.instance_type], bought.zone))
        moved |= {ref.uid: name for ref in planned.pods}
    bound = [
        replace(other_pod, node_name=moved.get(other_pod.uid, ""))
        if other_pod.node_name in change.remove
        else other_pod
        for other_pod in seen.bound
    ]
    after = replace(
        seen,
        nodes=tuple(nodes),
        bound=tuple(other_pod for other_pod in bound if other_pod.node_name),
        taken_at=seen.taken_at + _ROUND,
    )
    return after, sum(1 for other_pod in bound if not other_pod.node_name)


def _all_options(planned: PlannedNode) -> Sequence[OfferingKey]:
    return [option.offering for option in (*planned.options, *planned.fallback)]


def _cost(seen: ClusterSnapshot) -> int:
    return sum(node_prices(seen).values())


def _bound(seen: ClusterSnapshot) -> int:
    waiting = tuple(
        replace(other_pod, node_name="", unschedulable=True, phase="Pending")
        for other_pod in seen.bound
    )
    fresh = replace(seen, nodes=(), bound=(), pending=waiting)
    return with_bound(fresh, decide(fresh, _PACKING)).lower_bound_micros_per_hour


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what consolidating many random clusters saved; return 1 when a rule is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=1000)
    parser.add_argument("--first-seed", type=int, default=0)
    given = parser.parse_args(arguments)
    settled = list(_progress(range(given.first_seed, given.first_seed + given.clusters)))
    before, after = sum(s.costs[0] for s in settled), sum(s.costs[-1] for s in settled)
    bound = sum(cluster.bound for cluster in settled)
    dearer = [cluster.seed for cluster in settled if not cluster.only_fell]
    slow = [cluster.seed for cluster in settled if cluster.rounds > 5]
    lost = [cluster.seed for cluster in settled if cluster.lost]
    lines = [
        f"clusters {len(settled)}, rounds at most {max(cluster.rounds for cluster in settled)}",
        f"before ${before / 1e6:.2f}/h, after ${after / 1e6:.2f}/h, bound ${bound / 1e6:.2f}/h",
        (
            f"saved {100 * (before - after) / before:.1f} % of the cost, "
            f"{100 * (before - after) / max(1, before - bound):.1f} % of what could be saved"
        ),
        *(
            f"{what}: {len(seeds)} {seeds[:10]}"
            for what, seeds in (
                ("more expensive", dearer),
                ("over 5 rounds", slow),
                ("pods lost", lost),
            )
        ),
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if dearer or slow or lost else 0


def _progress(seeds: range) -> Iterator[Settled]:
    for done, seed in enumerate(seeds, 1):
        if done % 50 == 0:
            sys.stderr.write(f"\r{done} of {len(seeds)}")
        yield settle(seed)
    sys.stderr.write("\r")


if __name__ == "__main__":
    sys.exit(main())

"""A change by choice has a place for every pod it moves, and removes no node with a held pod."""

import random

import pytest

from shared.disruption.evaluation import DisruptionCause, DisruptionInput, OngoingChanges, evaluate
from shared.disruption.settings import DisruptionSettings
from shared.model import labels as keys
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.packing.problem import PackingSettings
from tests.benchmarks.disruption.consolidating import random_cluster
from tests.builders import NOW, provisioner

PACKING = PackingSettings(improve_iterations=2)


def troubled(seed: int) -> tuple[ClusterSnapshot, frozenset[str], OngoingChanges]:
    """Return a random cluster, the nodes with a held pod, and the ongoing changes."""
    rng = random.Random(seed)
    seen = random_cluster(seed)
    held = frozenset(pod.uid for pod in seen.bound if rng.random() < 0.05)
    bound = tuple(
        replace(pod, annotations={keys.DO_NOT_EVICT: "true"}) if pod.uid in held else pod
        for pod in seen.bound
    )
    ages = [NOW.replace(hour=rng.randint(0, 23)) for _ in seen.nodes]
    nodes = tuple(
        replace(
            node,
            created_at=age,
            unschedulable=rng.random() < 0.05,
            deletion_at=NOW if rng.random() < 0.05 else None,
            annotations={keys.REPLACES: "x"} if rng.random() < 0.1 else {},
        )
        for node, age in zip(seen.nodes, ages, strict=True)
    )
    ttl = rng.choice((None, seen.taken_at - NOW.replace(year=2025, month=12, day=31)))
    owner = provisioner(consolidation=rng.random() < 0.7, ttl_until_expired=ttl)
    rested = frozenset(node.uid for node in nodes if rng.random() < 0.1)
    changed = replace(
        seen, bound=bound, nodes=nodes, provisioners=(owner,), taken_at=NOW.replace(day=2)
    )
    taken = frozenset(pod.node_name for pod in bound if pod.uid in held) | frozenset(
        node.name
        for node in nodes
        if node.unschedulable or node.deletion_at or node.annotations or node.uid in rested
    )
    return changed, taken, OngoingChanges(rested=rested)


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_a_change_has_a_place_for_every_pod_and_removes_no_held_node(first: int) -> None:
    for seed in range(first, first + 10):
        seen, held, pace = troubled(seed)
        disruption_input = DisruptionInput(
            snapshot=seen,
            budgets=(),
            settings=DisruptionSettings(budget_percent=100),
            packing=PACKING,
            ongoing=pace,
        )
        change = evaluate(disruption_input).change
        assert evaluate(disruption_input).change == change
        if change is None:
            continue
        assert not held & set(change.remove)
        moved = {pod.uid for pod in seen.bound if pod.node_name in change.remove}
        placed = {ref.uid for placement in change.plan.placements for ref in placement.pods}
        bought = {ref.uid for node in change.plan.nodes for ref in node.pods}
        assert placed | bought == moved
        closed = {o.name for o in seen.nodes if o.unschedulable or o.deletion_at or o.annotations}
        assert not {placement.node for placement in change.plan.placements} & (
            closed | set(change.remove)
        )
        if change.cause != DisruptionCause.CONSOLIDATION and moved:
            assert len(change.remove) == 1

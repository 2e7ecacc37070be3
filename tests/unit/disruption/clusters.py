"""Clusters whose nodes may be worth removing, and what is chosen there."""

from datetime import timedelta
from typing import Any

from shared.disruption.consolidation import (
    ConsolidationCommand,
    ConsolidationResult,
    consolidate,
)
from shared.disruption.evaluation import (
    DisruptionCommand,
    DisruptionInput,
    Evaluation,
    InstanceImages,
    OngoingChanges,
    evaluate,
)
from shared.disruption.settings import DisruptionSettings
from shared.model import labels as keys
from shared.model.ec2.instance_types import CapacityType
from shared.model.kubernetes.disruption_budgets import PodDisruptionBudget
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.snapshot import ClusterSnapshot
from shared.packing.problem import PackingSettings
from tests.builders import GIB, NOW, needs, node_of, pod, pods, provisioner, snapshot

HOUR = timedelta(hours=1)
LATER = NOW + HOUR
SAVING = provisioner(consolidation=True)
AGED = provisioner(ttl_until_expired=HOUR)
SPOT_ONLY = provisioner(
    consolidation=True,
    requirements=needs(keys.CAPACITY_TYPE, "In", "spot").merge(needs(keys.ARCH, "In", "amd64")),
)
PACKING = PackingSettings(improve_iterations=2)
ONE_OPTION = PackingSettings(diversification_k_on_demand=1, diversification_k_spot=1)


def cluster(*nodes: Node, bound: tuple[Pod, ...] = (), **overrides: Any) -> ClusterSnapshot:
    fields: dict[str, Any] = {"provisioners": (SAVING,), "taken_at": LATER, **overrides}
    return snapshot(nodes=nodes, bound=bound, **fields)


def spot(name: str, kind: str) -> Node:
    return node_of(name, kind, labels={keys.CAPACITY_TYPE: CapacityType.SPOT.value})


def on(name: str, number: int = 0, **overrides: Any) -> Pod:
    """Return a pod that is bound to a node."""
    return pod(f"{name}-{number}", node_name=name, **overrides)


def several_on(name: str, count: int, cpu: int = 500, **more: Any) -> tuple[Pod, ...]:
    """Return pods of 512 MiB that are bound to a node."""
    return pods(count, prefix=f"{name}-", node_name=name, cpu=cpu, memory=GIB // 2, **more)


def consolidated(seen: ClusterSnapshot, most: int = 100, **settings: Any) -> ConsolidationResult:
    return consolidate(seen, (), DisruptionSettings(**settings), ONE_OPTION, most_nodes=most)


def best_change(seen: ClusterSnapshot, most: int = 100, **settings: Any) -> ConsolidationCommand:
    """Return the best change that consolidation finds; there is one."""
    best = consolidated(seen, most, **settings).best
    assert best is not None
    return best


def looked(
    seen: ClusterSnapshot,
    pace: OngoingChanges | None = None,
    *,
    budgets: tuple[PodDisruptionBudget, ...] = (),
    images: InstanceImages | None = None,
    **settings: Any,
) -> Evaluation:
    """Look over a cluster whose budget of disruptions is no limit."""
    return evaluate(
        DisruptionInput(
            snapshot=seen,
            budgets=budgets,
            settings=DisruptionSettings(**{"budget_percent": 100, **settings}),
            packing=PACKING,
            ongoing=pace or OngoingChanges(),
            images=images or InstanceImages(),
        )
    )


def changed(seen: ClusterSnapshot, **more: Any) -> DisruptionCommand:
    """Return the change that a look finds; there is one."""
    found = looked(seen, **more).change
    assert found is not None
    return found

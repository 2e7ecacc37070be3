"""What the cases about changes by choice share: nodes of some shape, and looks over them."""

from datetime import timedelta
from typing import Any

from shared.disruption.selection import (
    DisruptionCommand,
    DisruptionInput,
    Images,
    Look,
    OngoingChanges,
    look,
)
from shared.disruption.settings import DisruptionSettings
from shared.model import labels as keys
from shared.model.kubernetes.disruption_budgets import PodDisruptionBudget
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.snapshot import ClusterSnapshot
from shared.packing.problem import PackingSettings
from tests.builders import CATALOG, NOW, node, pod, provisioner, selector, snapshot

HOUR = timedelta(hours=1)
LATER = NOW + HOUR
SAVING = provisioner(consolidation=True)
AGED = provisioner(ttl_until_expired=HOUR)
PACKING = PackingSettings(improve_iterations=2)


def machine(name: str, kind: str = "m5.large", **overrides: Any) -> Node:
    """Return a Dovetail node of a type of the catalogue."""
    shape = next(instance_type for instance_type in CATALOG if instance_type.name == kind)
    labels = {**node(name).labels, keys.INSTANCE_TYPE: kind, **overrides.pop("labels", {})}
    room = {"capacity": shape.capacity, "allocatable": shape.allocatable}
    return node(name, labels=labels, **{**room, **overrides})


def on(name: str, number: int = 0, **overrides: Any) -> Pod:
    """Return a pod that is bound to a node."""
    return pod(f"{name}-{number}", node_name=name, **overrides)


def cluster(*nodes: Node, bound: tuple[Pod, ...] = (), **overrides: Any) -> ClusterSnapshot:
    fields: dict[str, Any] = {"provisioners": (SAVING,), "taken_at": LATER, **overrides}
    return snapshot(nodes=nodes, bound=bound, **fields)


def budget(allowed: int, namespace: str = "default", **labels: str) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        namespace=namespace,
        name="web",
        selector=selector(**(labels or {"app": "web"})),
        disruptions_allowed=allowed,
    )


def looked(
    seen: ClusterSnapshot,
    *,
    budgets: tuple[PodDisruptionBudget, ...] = (),
    pace: OngoingChanges | None = None,
    images: Images | None = None,
    **settings: Any,
) -> Look:
    """Look over a cluster whose budget of disruptions is no limit."""
    return look(
        DisruptionInput(
            snapshot=seen,
            budgets=budgets,
            settings=DisruptionSettings(**{"budget_percent": 100, **settings}),
            packing=PACKING,
            pace=pace or OngoingChanges(),
            images=images or Images(),
        )
    )


def changed(seen: ClusterSnapshot, **more: Any) -> DisruptionCommand:
    """Return the change that a look finds; there is one."""
    found = looked(seen, **more).change
    assert found is not None
    return found

"""Clusters whose nodes may be worth removing."""

from datetime import timedelta
from typing import Any

from shared.disruption.consolidation import Outlook, consolidate
from shared.disruption.settings import DisruptionSettings
from shared.model import labels as keys
from shared.model.ec2.instance_types import CapacityType
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.snapshot import ClusterSnapshot
from shared.packing.problem import PackingSettings
from tests.builders import (
    CATALOG,
    GIB,
    NOW,
    needs,
    node,
    pods,
    provisioner,
    snapshot,
)

PACKING = PackingSettings(diversification_k_on_demand=1, diversification_k_spot=1)
SPOT_ONLY = provisioner(
    consolidation=True,
    requirements=needs(keys.CAPACITY_TYPE, "In", "spot").merge(needs(keys.ARCH, "In", "amd64")),
)
LATER = NOW + timedelta(hours=1)


def machine(name: str, kind: str = "m5.large", **overrides: Any) -> Node:
    """Return a Dovetail node of some type of the catalogue."""
    shape = next(instance_type for instance_type in CATALOG if instance_type.name == kind)
    labels = {**node(name).labels, keys.INSTANCE_TYPE: kind, **overrides.pop("labels", {})}
    return node(
        name,
        labels=labels,
        capacity=shape.capacity,
        allocatable=shape.allocatable,
        **overrides,
    )


def cluster(*nodes: Node, bound: tuple[Pod, ...], **overrides: Any) -> ClusterSnapshot:
    fields: dict[str, Any] = {
        "provisioners": (provisioner(consolidation=True),),
        "taken_at": LATER,
        **overrides,
    }
    return snapshot(nodes=nodes, bound=bound, **fields)


def look(seen: ClusterSnapshot, most: int = 100, **settings: Any) -> Outlook:
    budgets = settings.pop("budgets", ())
    return consolidate(seen, budgets, DisruptionSettings(**settings), PACKING, most_nodes=most)


def spot(name: str, kind: str) -> Node:
    return machine(name, kind, labels={keys.CAPACITY_TYPE: CapacityType.SPOT.value})


def on(name: str, count: int, cpu: int = 500, **more: Any) -> tuple[Pod, ...]:
    return pods(count, prefix=f"{name}-", node_name=name, cpu=cpu, memory=GIB // 2, **more)

"""Short ways to write nodes, and machines that were launched."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from shared.manifests.nodes import decode_node
from shared.model import labels as keys
from shared.model.ec2.instance_types import CapacityType, InstanceType
from shared.model.ec2.launches import Slot
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from tests import builders as make
from tests.karpenter_cases.scheduling.market import SMALL, A

Raw = dict[str, Any]


def node(
    name: str = "n1",
    zone: str = A,
    kind: InstanceType = SMALL,
    *,
    capacity_type: str = "on-demand",
    owner: str = "default",
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Raw] = (),
    ready: bool | None = True,
    allocatable: Mapping[str, str] | None = None,
    deleting: bool = False,
) -> Node:
    """Return a node of that type; with an empty owner, one that Dovetail does not manage."""
    amounts = allocatable
    if amounts is None:
        amounts = {
            value: f"{amount}m" if value == "cpu" else str(amount)
            for value, amount in kind.allocatable.items
        }
    ours = {keys.PROVISIONER_NAME: owner} if owner else {}
    condition = {"type": "Ready", "status": "Unknown" if ready is None else str(ready)}
    metadata: Raw = {
        "name": name,
        "uid": f"uid-{name}",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "annotations": {keys.SLOT: f"{name}/0/0"} if owner else {},
        "finalizers": [keys.TERMINATION_FINALIZER] if owner else [],
        "labels": {
            **kind.labels,
            **ours,
            keys.ZONE: zone,
            keys.CAPACITY_TYPE: capacity_type,
            keys.HOSTNAME: name,
            **(labels or {}),
        },
    }
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:10:00Z"
    return decode_node(
        {
            "metadata": metadata,
            "spec": {"providerID": f"aws:///{zone}/i-{name}", "taints": list(taints)},
            "status": {
                "capacity": dict(amounts),
                "allocatable": dict(amounts),
                "conditions": [] if ready is None else [condition],
            },
        }
    )


def slot(
    number: int = 0,
    zone: str = A,
    kind: InstanceType = SMALL,
    *,
    capacity_type: CapacityType = CapacityType.ON_DEMAND,
    owner: str = "default",
    node: str = "",
    pods: Iterable[Pod] = (),
    labels: Mapping[str, str] | None = None,
    **more: Any,
) -> Slot:
    """Return a machine that was launched; with `node`, one whose Node object is there."""
    return make.slot(
        number,
        provisioner=owner,
        instance_id=f"i-{node}" if node else f"i-slot{number}",
        node_name=node,
        offering=make.offering(kind.name, zone, capacity_type),
        capacity=kind.capacity,
        allocatable=kind.allocatable,
        labels={
            keys.PROVISIONER_NAME: owner,
            keys.ZONE: zone,
            keys.CAPACITY_TYPE: capacity_type.value,
            keys.INSTANCE_TYPE: kind.name,
            **(labels or {}),
        },
        pods=tuple(make.ref(pod) for pod in pods),
        **more,
    )

"""Pools of nodes as different tools declare them, recognised by the labels of their nodes.

Source: https://github.com/awslabs/eks-node-viewer/blob/main/pkg/model/node.go (2026-11) for the
capacity types of managed node groups,
https://docs.aws.amazon.com/eks/latest/userguide/managed-node-groups.html (2026-11), and
https://github.com/eksctl-io/eksctl (2026-11) for what its node groups set: nodegroup-name and
node-lifecycle.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct

from shared.model import labels as keys
from shared.model.ec2.instance_types import CapacityType
from shared.model.kubernetes.nodes import Node

COMPUTE_TYPE: Final = "eks.amazonaws.com/compute-type"
NODE_GROUP: Final = "eks.amazonaws.com/nodegroup"
EKSCTL_NODE_GROUP: Final = "alpha.eksctl.io/nodegroup-name"
# The value differs on each node, and no pod selects it.
NODE_UNIQUE_LABELS: Final = frozenset({"alpha.eksctl.io/instance-id", keys.HOSTNAME})
_CAPACITY_TYPES: Final = (
    keys.CAPACITY_TYPE,
    "eks.amazonaws.com/capacityType",
    "node-lifecycle",
    "node.kubernetes.io/lifecycle",
)


class PoolKind(StrEnum):
    """How a pool is declared, as it is shown to people."""

    NODE_POOL = "NodePool"
    PROVISIONER = "Provisioner"
    AUTO_MODE = "EKS Auto Mode NodePool"
    MANAGED = "managed node group"
    EKSCTL = "eksctl node group"
    FARGATE = "Fargate"
    NONE = "nodes without a pool"


class Pool(Struct, frozen=True, order=True):
    """Nodes that were declared together; the name is empty where nothing names them."""

    kind: PoolKind
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}".rstrip()


def pool_of(node: Node) -> Pool:
    """Return the pool of a node: the most specific that its labels name."""
    labels = node.labels
    if labels.get(COMPUTE_TYPE) == "fargate":
        return Pool(PoolKind.FARGATE)
    named = (
        (keys.NODE_POOL, PoolKind.AUTO_MODE if _is_auto(labels) else PoolKind.NODE_POOL),
        (keys.PROVISIONER_NAME, PoolKind.PROVISIONER),
        (NODE_GROUP, PoolKind.MANAGED),
        (EKSCTL_NODE_GROUP, PoolKind.EKSCTL),
    )
    return next(
        (Pool(kind, labels[key]) for key, kind in named if labels.get(key)), Pool(PoolKind.NONE)
    )


def capacity_type_of(node: Node) -> CapacityType:
    """Return the capacity type of a node: on-demand unless its labels say spot.

    A node of a capacity reservation or block counts as on demand: its instance hours cost as much.
    """
    label_values = {node.labels.get(key, "").lower() for key in _CAPACITY_TYPES}
    return CapacityType.SPOT if CapacityType.SPOT.value in label_values else CapacityType.ON_DEMAND


def _is_auto(labels: Mapping[str, str]) -> bool:
    return labels.get(COMPUTE_TYPE) == "auto"

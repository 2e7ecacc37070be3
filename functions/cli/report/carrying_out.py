"""Carries plans out on paper: which nodes and pods there would be after a plan."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from shared.model import labels as keys
from shared.model.ec2.instance_types import InstanceType
from shared.model.ec2.launches import PlannedNode
from shared.model.kubernetes.nodes import Node
from shared.model.plan import Plan
from shared.model.provisioner import Provisioner
from shared.provisioning.savings.pools import capacity_type_of

# Finalizers of nodes that may be changed.
OURS: Final = (keys.TERMINATION_FINALIZER,)


class CarriedOut(Struct, frozen=True, kw_only=True):
    """What a plan leads to.

    Attributes:
        launched: The planned nodes, each as its cheapest option, in the order of the plan.
        places: Name of the node of each pod that the plan places, by uid.
    """

    launched: tuple[Node, ...]
    places: Mapping[str, str]


def carry_out(
    plan: Plan,
    names: Sequence[str],
    owners: Iterable[Provisioner],
    instance_types: Iterable[InstanceType],
    at: datetime,
) -> CarriedOut:
    """Return the nodes of a plan, and where its pods would be.

    Args:
        names: A name for each node of the plan.
        owners: Those that the plan launches for.
        at: When the nodes are created.
    """
    named = dict(zip(names, plan.nodes, strict=True))
    places = {ref.uid: name for name, planned in named.items() for ref in planned.pods}
    places |= {ref.uid: placement.node for placement in plan.placements for ref in placement.pods}
    by_name = {owner.name: owner for owner in owners}
    labels = {found.name: found.labels for found in instance_types} if named else {}
    return CarriedOut(
        launched=tuple(
            _launched(name, planned, by_name[planned.provisioner], labels, at)
            for name, planned in named.items()
        ),
        places=places,
    )


def _launched(
    name: str,
    planned: PlannedNode,
    owner: Provisioner,
    labels_of_type: Mapping[str, Mapping[str, str]],
    at: datetime,
) -> Node:
    option = planned.options[0]
    key = option.offering
    return Node(
        name=name,
        uid=name,
        labels={
            **labels_of_type[key.instance_type],
            **planned.labels,
            keys.ZONE: key.zone,
            keys.CAPACITY_TYPE: key.capacity_type.value,
            keys.HOSTNAME: name,
            keys.INITIALIZED: "true",
        },
        annotations={keys.SLOT: ""},
        taints=owner.taints,
        finalizers=OURS,
        capacity=option.capacity,
        allocatable=option.allocatable,
        ready=True,
        created_at=at,
    )


def owned_labels(node: Node, owner: Provisioner) -> Mapping[str, str]:
    """Return the labels of a running node, as if Dovetail had launched it for an owner."""
    return {
        **{k: v for k, v in node.labels.items() if k not in keys.OWNER_LABELS},
        owner.owner_label: owner.name,
        keys.CAPACITY_TYPE: capacity_type_of(node).value,
        keys.INITIALIZED: "true",
    }

"""Nodes of NodePools that may be worth removing, and what is chosen there."""

from collections.abc import Mapping
from typing import Any, Final

from shared.model import labels as keys
from shared.model.kubernetes.nodes import Node
from shared.model.provisioner import Provisioner
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from tests.builders import node_of
from tests.karpenter_cases.v1.planning.pools import pool
from tests.unit.disruption.clusters import cluster

AMD: Final = (keys.ARCH, "In", "amd64")
ON_DEMAND: Final = (keys.CAPACITY_TYPE, "In", "on-demand")
EVERY: Final[dict[str, Any]] = {"budgets": []}


def saving(
    name: str = "default", *more: Any, disruption: Mapping[str, Any] | None = None, **spec: Any
) -> Provisioner:
    """Return a NodePool of amd64 machines on demand that any number of nodes may leave."""
    given = {"consolidateAfter": "0s", **EVERY, **(disruption or {})}
    asked = [] if more else [ON_DEMAND]
    return pool(name, AMD, *asked, *more, disruption=given, **spec)


def of_pool(name: str, kind: str = "m5.large", owner: str = "default", **changes: Any) -> Node:
    """Return an initialized node of a NodePool."""
    known = dict(node_of(name).labels)
    del known[keys.PROVISIONER_NAME]
    labels = {
        **known,
        keys.INSTANCE_TYPE: kind,
        keys.NODE_POOL: owner,
        keys.INITIALIZED: "true",
        keys.NODE_CLASS: "nodes",
        **changes.pop("labels", {}),
    }
    annotations = {keys.SLOT: f"slot-{name}", **changes.pop("annotations", {})}
    made = node_of(name, kind, annotations=annotations, **changes)
    return replace(made, labels=labels)


def some(count: int, **more: Any) -> tuple[Node, ...]:
    return tuple(of_pool(f"n{number}", **more) for number in range(count))


def scene(*nodes: Node, pools: tuple[Provisioner, ...] = (), **more: Any) -> ClusterSnapshot:
    return cluster(*nodes, provisioners=pools or (saving(),), **more)

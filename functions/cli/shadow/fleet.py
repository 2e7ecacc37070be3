"""The shadow fleet: the nodes that there would be if Dovetail ran, and what really runs."""

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct, field

from shared.model import labels as keys
from shared.model.ec2.instance_types import CapacityType
from shared.model.kubernetes.daemon_sets import DaemonSet
from shared.model.kubernetes.disruption_budgets import PodDisruptionBudget
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.provisioner import Provisioner
from shared.provisioning.savings.pools import Pool, capacity_type_of, pool_of


class Observation(Struct, frozen=True, kw_only=True):
    """A cluster as it really is at one time.

    Attributes:
        pods: All pods that have not ended; what their volumes require is part of their scheduling.
        provisioners: Those that can be used.
    """

    at: datetime
    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]
    provisioners: tuple[Provisioner, ...] = ()
    daemonsets: tuple[DaemonSet, ...] = ()
    budgets: tuple[PodDisruptionBudget, ...] = ()
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


class NodeRun(Struct, frozen=True, kw_only=True):
    """For how long a node is paid.

    Attributes:
        price_micros_per_hour: When it was seen first.
        ended_at: None while it runs. That of a node of the shadow fleet may be to come.
    """

    pool: Pool
    instance_type: str
    zone: str
    capacity_type: CapacityType
    price_micros_per_hour: int
    began_at: datetime
    ended_at: datetime | None = None


def run_of(node: Node, price_micros_per_hour: int, at: datetime) -> NodeRun:
    """Return the run of a node that began when it was created, or at the latest now."""
    return NodeRun(
        pool=pool_of(node),
        instance_type=node.labels.get(keys.INSTANCE_TYPE, ""),
        zone=node.labels.get(keys.ZONE, ""),
        capacity_type=capacity_type_of(node),
        price_micros_per_hour=price_micros_per_hour,
        began_at=min(node.created_at or at, at),
    )


class RealNode(Struct, frozen=True, kw_only=True):
    """A node that really runs.

    Attributes:
        is_compared: Whether the purchase that it belongs to was compared, or is older than the
            record.
    """

    run: NodeRun
    is_compared: bool = False


class ShadowNode(Struct, frozen=True, kw_only=True):
    """A node of the shadow fleet.

    Attributes:
        node: As plans see it. It is being deleted from the change that removes it until its run
            ends.
        ready_at: When it has booted: from then on it may be removed.
        pods_since: Digest of its pods and since when it is the same, for consolidateAfter.
    """

    node: Node
    run: NodeRun
    ready_at: datetime
    pods_since: tuple[str, str] | None = None


class RecordProgress(Struct, frozen=True, kw_only=True):
    """How far a record has come.

    Attributes:
        span_began_at: Since when the cluster was observed without a gap.
        last_at: Time of the last observation.
        observations: Their number.
        launched: Number of nodes that the shadow fleet has launched.
        evaluated_at: When nodes were last evaluated; None before the first time.
        fruitless: Fingerprint of the input for which consolidation last found nothing.
        fruitless_until: Until then, the same input is not tried again.
        unplaced: Uids of running pods that the shadow fleet has no node for.
        unplaced_pod_seconds: How long pods had none, in all.
    """

    span_began_at: datetime
    last_at: datetime
    observations: int = 1
    launched: int = 0
    evaluated_at: datetime | None = None
    fruitless: str = ""
    fruitless_until: datetime | None = None
    unplaced: frozenset[str] = frozenset()
    unplaced_pod_seconds: int = 0


class Fleet(Struct, frozen=True, kw_only=True):
    """All that the next step needs.

    Attributes:
        progress: None before the first observation.
        nodes: By name; those that have ended lately, too.
        places: Name of the node of the shadow fleet, by uid of the pod.
        real: What really runs, by uid of the node.
        shown: One real node of each pool, type, zone and capacity type that there was: they show
            what a pool that nothing declares may launch.
    """

    progress: RecordProgress | None = None
    nodes: Mapping[str, ShadowNode] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)
    real: Mapping[str, RealNode] = field(default_factory=dict)
    shown: Mapping[str, Node] = field(default_factory=dict)


class Decision(Struct, frozen=True, kw_only=True):
    """One line of what Dovetail would do, in words."""

    at: datetime
    text: str


class ComparedPurchase(Struct, frozen=True, kw_only=True):
    """A purchase of the autoscaler that runs, beside what Dovetail plans for the same pods.

    Attributes:
        at: When its first node joined.
        bought: Types and capacity types, for people.
        bought_micros_per_hour: None if a price is not known.
        planned: The same of Dovetail's plan; empty for none.
        unplaced: A pod that Dovetail has no node for, and why; empty if there is none.
    """

    at: datetime
    pods: int
    bought_nodes: int
    bought: str
    bought_micros_per_hour: int | None
    planned_nodes: int
    planned: str
    planned_micros_per_hour: int
    unplaced: str = ""


class Step(Struct, frozen=True, kw_only=True):
    """What one observation leads to.

    Attributes:
        decisions: In the order in which they were made.
        notes: What is left out or assumed, one line each.
    """

    fleet: Fleet
    decisions: tuple[Decision, ...] = ()
    purchases: tuple[ComparedPurchase, ...] = ()
    notes: tuple[str, ...] = ()

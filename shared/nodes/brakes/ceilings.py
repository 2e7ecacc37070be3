"""Ceilings on nodes and dollars an hour: applied as limits, so that they are never exceeded.

The plan knows only limits of resources. So under a ceiling each instance has two more resources,
one node and its price, and nodes that exist, are in flight or are reserved use them.
"""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from shared.model import labels as keys
from shared.model.brakes import Ceiling
from shared.model.ec2.instance_types import InstanceType
from shared.model.ec2.launches import LaunchOption, PlannedNode
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.volumes import is_attachable
from shared.model.resources import NODES, PRICE, Resources, format_amount
from shared.model.snapshot import ClusterSnapshot

_DOLLAR: Final = 1_000_000
_COUNTED_BY_CEILINGS: Final = frozenset({NODES, PRICE})


@dataclass(frozen=True, slots=True, kw_only=True)
class OverCeiling:
    """A planned node that would exceed a ceiling, and which ceiling that is."""

    node: PlannedNode
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CeilingUse:
    """How much of a ceiling is in use.

    Attributes:
        percent: The share in use, rounded down; more than 100 after a ceiling was lowered.
        text: The use in dollars or nodes, for messages.
    """

    percent: int
    text: str


def under_ceilings(snapshot: ClusterSnapshot, of_cluster: Ceiling) -> ClusterSnapshot:
    """Return the snapshot with all ceilings as limits; unchanged if there are none.

    An instance type counts at the highest price of its offerings.
    """
    if not of_cluster and not any(provisioner.ceiling for provisioner in snapshot.provisioners):
        return snapshot
    types = {instance_type.name: instance_type for instance_type in snapshot.instance_types}
    used = _used(snapshot, types)
    cluster_remaining = _remaining(of_cluster, Resources.total(used.values()))
    slot_of = {slot.instance_id: slot for slot in snapshot.slots}
    return dataclasses.replace(
        snapshot,
        instance_types=tuple(
            dataclasses.replace(
                instance_type,
                capacity=instance_type.capacity + _amounts(1, _dearest(instance_type)),
            )
            for instance_type in snapshot.instance_types
        ),
        nodes=tuple(
            _counted(node, types)
            if snapshot.owner_of(node) and node.instance_id not in slot_of
            else node
            for node in snapshot.nodes
        ),
        slots=tuple(
            dataclasses.replace(
                slot, capacity=slot.capacity + _amounts(1, slot.price_micros_per_hour)
            )
            for slot in snapshot.slots
        ),
        intents=tuple(
            dataclasses.replace(
                intent,
                reserved=intent.reserved
                + _amounts(intent.count, intent.reserved_price_micros_per_hour),
            )
            for intent in snapshot.intents
        ),
        provisioners=tuple(
            dataclasses.replace(
                provisioner,
                limits=_limits(
                    provisioner.limits,
                    provisioner.ceiling,
                    used.get(provisioner.name, Resources()),
                    cluster_remaining,
                ),
            )
            for provisioner in snapshot.provisioners
        ),
    )


def under_recorded_ceilings(snapshot: ClusterSnapshot, before: ClusterSnapshot) -> ClusterSnapshot:
    """Return a snapshot with changed Provisioners under their ceilings and the cluster's.

    What the cluster's ceiling leaves is known only if a recorded limit is below the Provisioner's
    own ceiling.

    Args:
        snapshot: Equal to `before`, except for its Provisioners.
        before: The snapshot as recorded for the decision.
    """
    left = _remaining_of_cluster(before)
    plain = _without_ceilings(snapshot)
    types = {known.name: known for known in plain.instance_types}
    total = Resources.total(_used(plain, types).values())
    most = {name: total[name] + amount for name, amount in left.items()}
    of_cluster = Ceiling(max_nodes=most.get(NODES), max_price_micros_per_hour=most.get(PRICE))
    return under_ceilings(plain, of_cluster)


def _remaining_of_cluster(snapshot: ClusterSnapshot) -> dict[str, int]:
    """Return what the cluster's ceiling leaves in a snapshot under ceilings, as far as known."""
    used = _used(snapshot, {known.name: known for known in snapshot.instance_types})
    left: dict[str, int] = {}
    for owner in snapshot.provisioners:
        own = _remaining(owner.ceiling, Resources())
        for name, amount in (owner.limits or Resources()).only(_COUNTED_BY_CEILINGS).items:
            if amount < own.get(name, amount + 1):
                rest = amount - used.get(owner.name, Resources())[name]
                left[name] = min(rest, left.get(name, rest))
    return left


def _without_ceilings(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """Return a snapshot as it was gathered, before ceilings became limits."""
    return dataclasses.replace(
        snapshot,
        instance_types=tuple(
            dataclasses.replace(known, capacity=_uncounted(known.capacity))
            for known in snapshot.instance_types
        ),
        nodes=tuple(
            dataclasses.replace(node, capacity=_uncounted(node.capacity)) for node in snapshot.nodes
        ),
        slots=tuple(
            dataclasses.replace(slot, capacity=_uncounted(slot.capacity)) for slot in snapshot.slots
        ),
        intents=tuple(
            dataclasses.replace(intent, reserved=_uncounted(intent.reserved))
            for intent in snapshot.intents
        ),
        provisioners=tuple(
            dataclasses.replace(owner, limits=_uncounted(owner.limits or Resources()) or None)
            for owner in snapshot.provisioners
        ),
    )


def _uncounted(amounts: Resources) -> Resources:
    """Return amounts without the resources that only ceilings count."""
    return Resources(
        tuple((name, amount) for name, amount in amounts.items if name not in _COUNTED_BY_CEILINGS)
    )


def ceiling_uses(snapshot: ClusterSnapshot, of_cluster: Ceiling) -> dict[str, CeilingUse]:
    """Return the use of each Provisioner's fullest ceiling, by name; only those under a ceiling.

    Args:
        snapshot: A snapshot with all nodes, slots and open launches.
    """
    types = {known.name: known for known in snapshot.instance_types}
    used = _used(snapshot, types)
    total = Resources.total(used.values())
    found = {}
    for owner in snapshot.provisioners:
        own = used.get(owner.name, Resources())
        uses = [*_uses(owner.ceiling, own, "this Provisioner")]
        uses += _uses(of_cluster, total, "the cluster")
        if uses:
            found[owner.name] = max(uses, key=lambda use: (use.percent, use.text))
    return found


def _uses(ceiling: Ceiling, used: Resources, whose: str) -> Iterator[CeilingUse]:
    price, most = used[PRICE], ceiling.max_price_micros_per_hour
    if most is not None:
        dollars, of_dollars = (f"${amount / _DOLLAR:.2f}" for amount in (price, most))
        text = f"nodes of {whose} cost {dollars} per hour, at most {of_dollars} are allowed"
        yield CeilingUse(percent=_percent(price, most), text=text)
    if ceiling.max_nodes is not None:
        text = f"{whose} has {used[NODES]} nodes, at most {ceiling.max_nodes} are allowed"
        yield CeilingUse(percent=_percent(used[NODES], ceiling.max_nodes), text=text)


def _percent(used: int, most: int) -> int:
    """Return the percentage in use, rounded down; 100 if the ceiling is zero."""
    return 100 * used // most if most else 100


def affordable(
    snapshot: ClusterSnapshot, nodes: Sequence[PlannedNode], of_cluster: Ceiling
) -> tuple[tuple[PlannedNode, ...], tuple[OverCeiling, ...]]:
    """Return the nodes that fit under all ceilings, in their order, and those that do not.

    The check before the launch, independent of the plan: each node counts at its most expensive
    option, and the cluster's ceiling holds for all Provisioners together.

    Args:
        snapshot: The snapshot as gathered, without ceilings as limits.
    """
    types = {instance_type.name: instance_type for instance_type in snapshot.instance_types}
    used = _used(snapshot, types)
    owner_remaining = {
        provisioner.name: _remaining(provisioner.ceiling, used.get(provisioner.name, Resources()))
        for provisioner in snapshot.provisioners
    }
    cluster_remaining = _remaining(of_cluster, Resources.total(used.values()))
    kept: list[PlannedNode] = []
    over: list[OverCeiling] = []
    for node in nodes:
        wanted = _amounts(1, node.highest_price_micros_per_hour)
        of_owner = owner_remaining.get(node.provisioner, {})
        short = _first_short(wanted, of_owner)
        if short:
            over.append(OverCeiling(node=node, reason=f"{node.provisioner}: {short}"))
        elif short := _first_short(wanted, cluster_remaining):
            over.append(OverCeiling(node=node, reason=f"the whole cluster: {short}"))
        else:
            kept.append(node)
            for rest in (of_owner, cluster_remaining):
                rest.update({name: rest[name] - wanted[name] for name in rest})
    return tuple(kept), tuple(over)


def with_kubelet_resources(nodes: Iterable[PlannedNode]) -> tuple[PlannedNode, ...]:
    """Return the nodes with the resources that their kubelets will show.

    Nodes, dollars and volume attachments are counted by the plan alone: no Node.status has them, so
    a launch must not expect them there.
    """
    return tuple(
        dataclasses.replace(
            node,
            options=tuple(_with_kubelet_resources(option) for option in node.options),
            fallback=tuple(
                _with_kubelet_resources(launch_option) for launch_option in node.fallback
            ),
        )
        for node in nodes
    )


def _with_kubelet_resources(option: LaunchOption) -> LaunchOption:
    capacity, allocatable = (
        _kubelet_resources(option.capacity),
        _kubelet_resources(option.allocatable),
    )
    if (capacity, allocatable) == (option.capacity, option.allocatable):
        return option
    return dataclasses.replace(option, capacity=capacity, allocatable=allocatable)


def _kubelet_resources(amounts: Resources) -> Resources:
    """Return the resources that a kubelet shows, without those that only the plan counts."""
    return Resources(
        tuple(
            (k, v)
            for k, v in amounts.items
            if k not in _COUNTED_BY_CEILINGS and not is_attachable(k)
        )
    )


def _amounts(count: int, price: int) -> Resources:
    return Resources.from_mapping({NODES: count, PRICE: price})


def _used(snapshot: ClusterSnapshot, types: Mapping[str, InstanceType]) -> dict[str, Resources]:
    """Return nodes and price of each Provisioner: existing, in flight and reserved."""
    slot_of = {slot.instance_id: slot for slot in snapshot.slots}
    counts: Counter[str] = Counter()
    prices: Counter[str] = Counter()
    for slot in snapshot.slots:
        counts[slot.provisioner] += 1
        prices[slot.provisioner] += slot.price_micros_per_hour
    for node in snapshot.nodes:
        if (owner := snapshot.owner_of(node)) and node.instance_id not in slot_of:
            counts[owner] += 1
            prices[owner] += _price_of(node, types)
    for intent in snapshot.intents:
        counts[intent.provisioner] += intent.count
        prices[intent.provisioner] += intent.reserved_price_micros_per_hour
    return {name: _amounts(count, prices[name]) for name, count in counts.items()}


def _counted(node: Node, types: Mapping[str, InstanceType]) -> Node:
    """Return a node of a Provisioner with one node and its price added to its capacity."""
    of_type = types.get(node.labels.get(keys.INSTANCE_TYPE, ""))
    capacity = node.capacity or (of_type.capacity if of_type is not None else Resources())
    return dataclasses.replace(node, capacity=capacity + _amounts(1, _price_of(node, types)))


def _price_of(node: Node, types: Mapping[str, InstanceType]) -> int:
    """Return the price of a node: of its own offering, else the highest of its instance type."""
    of_type = types.get(node.labels.get(keys.INSTANCE_TYPE, ""))
    if of_type is None:
        return 0
    place = (node.labels.get(keys.ZONE), node.labels.get(keys.CAPACITY_TYPE))
    for offering in of_type.offerings:
        if (offering.zone, offering.capacity_type.value) == place:
            return offering.price_micros_per_hour
    return _dearest(of_type)


def _dearest(instance_type: InstanceType) -> int:
    return max((offering.price_micros_per_hour for offering in instance_type.offerings), default=0)


def _remaining(ceiling: Ceiling, used: Resources) -> dict[str, int]:
    """Return what a ceiling leaves, by resource; a resource without a ceiling is absent."""
    most = {NODES: ceiling.max_nodes, PRICE: ceiling.max_price_micros_per_hour}
    return {name: amount - used[name] for name, amount in most.items() if amount is not None}


def _limits(
    limits: Resources | None, ceiling: Ceiling, used: Resources, of_cluster: Mapping[str, int]
) -> Resources | None:
    """Return limits with the ceilings added, as totals that include what is in use."""
    remaining = _remaining(ceiling, used)
    for name, left in of_cluster.items():
        remaining[name] = min(left, remaining.get(name, left))
    if not remaining:
        return limits
    # Zeros stay: an absent name would mean no ceiling.
    items = dict(limits.items if limits is not None else ())
    items |= {name: max(used[name] + left, 0) for name, left in remaining.items()}
    return Resources(tuple(sorted(items.items())))


def _first_short(wanted: Resources, remaining: Mapping[str, int]) -> str:
    for name in sorted(remaining):
        if wanted[name] > remaining[name]:
            left, needed = (format_amount(name, n) for n in (max(remaining[name], 0), wanted[name]))
            return f"{left} {name} left under the ceiling, {needed} needed"
    return ""

"""How much each Provisioner may still add under its limits and under ceilings."""

from collections import defaultdict
from collections.abc import Mapping

from shared.model import labels as keys
from shared.model.ec2.instance_types import InstanceType
from shared.model.kubernetes.nodes import Node
from shared.model.resources import NODES, PRICE, Resources
from shared.model.snapshot import ClusterSnapshot


def counted_amounts(capacity: Resources, price_micros_per_hour: int, count: int = 1) -> Resources:
    """Return what limits and ceilings count of instances: capacity, price and number."""
    # A kubelet may report resources of any name.
    return Resources.from_mapping(
        {**dict(capacity.items), NODES: count, PRICE: price_micros_per_hour}
    )


def used_capacity(snapshot: ClusterSnapshot) -> dict[str, Resources]:
    """Return what limits count of the instances of each Provisioner, by its name.

    All of them count: existing, in flight and reserved.
    """
    types = {instance_type.name: instance_type for instance_type in snapshot.instance_types}
    slot_of = {slot.instance_id: slot for slot in snapshot.slots}
    used: defaultdict[str, list[Resources]] = defaultdict(list)
    for node in snapshot.nodes:
        owner = snapshot.owner_of(node)
        if not owner:
            continue
        slot = slot_of.pop(node.instance_id, None) if node.instance_id else None
        if slot is not None:
            capacity, price = node.capacity.largest(slot.capacity), slot.price_micros_per_hour
        else:
            of_type = types.get(node.labels.get(keys.INSTANCE_TYPE, ""))
            capacity = node.capacity or (of_type.capacity if of_type else Resources())
            price = _price_of(node, of_type) if of_type else 0
        used[owner].append(counted_amounts(capacity, price))
    for slot in slot_of.values():
        used[slot.provisioner].append(counted_amounts(slot.capacity, slot.price_micros_per_hour))
    for intent in snapshot.intents:
        price = intent.reserved_price_micros_per_hour
        used[intent.provisioner].append(counted_amounts(intent.reserved, price, intent.count))
    return {name: Resources.total(amounts) for name, amounts in used.items()}


def _price_of(node: Node, of_type: InstanceType) -> int:
    """Return the price of a node: of its own offering, else the highest of its instance type."""
    place = (node.labels.get(keys.ZONE), node.labels.get(keys.CAPACITY_TYPE))
    for offering in of_type.offerings:
        if (offering.zone, offering.capacity_type.value) == place:
            return offering.price_micros_per_hour
    return of_type.highest_price_micros_per_hour


def limits_of(snapshot: ClusterSnapshot, used: Mapping[str, Resources]) -> dict[str, Resources]:
    """Return the limits of Provisioners, merged with ceilings, as totals.

    A Provisioner without any is absent. Every limited name is present even when nothing is allowed:
    absence would mean no limit.

    Args:
        used: What the instances of each Provisioner use, see `used_capacity`.
    """
    of_cluster = snapshot.ceiling.amounts if snapshot.ceiling is not None else {}
    total = Resources.total(used.values())
    found = {}
    for owner in snapshot.provisioners:
        limits = dict(owner.limits.items) if owner.limits is not None else {}
        if snapshot.ceiling is not None:
            limits |= owner.ceiling.amounts
        for name, most in of_cluster.items():
            allowed = max(most - total[name] + used.get(owner.name, Resources())[name], 0)
            limits[name] = min(allowed, limits.get(name, allowed))
        if limits or owner.limits is not None:
            found[owner.name] = Resources(tuple(sorted(limits.items())))
    return found


def remaining_limits(snapshot: ClusterSnapshot) -> dict[str, Resources]:
    """Return what limits and ceilings leave each Provisioner; one without any is absent."""
    # In large clusters it takes long to count: not if nothing is limited.
    used = used_capacity(snapshot) if limits_of(snapshot, {}) else {}
    left = {}
    for name, limits in limits_of(snapshot, used).items():
        taken = used.get(name, Resources())
        left[name] = Resources(tuple((key, amount - taken[key]) for key, amount in limits.items))
    return left

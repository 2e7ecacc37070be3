"""How much capacity each Provisioner may still add."""

from shared.model import labels as keys
from shared.model.resources import Resources
from shared.model.snapshot import ClusterSnapshot


def used_capacity(snapshot: ClusterSnapshot, provisioner: str) -> Resources:
    """Return the capacity of a Provisioner's instances: existing, in flight and reserved."""
    types = {instance_type.name: instance_type for instance_type in snapshot.instance_types}
    slot_of = {slot.instance_id: slot for slot in snapshot.slots}
    amounts = []
    for node in snapshot.nodes:
        if snapshot.owner_of(node) != provisioner:
            continue
        slot = slot_of.pop(node.instance_id, None) if node.instance_id else None
        capacity = node.capacity
        if slot is not None:
            capacity = capacity.largest(slot.capacity)
        elif not capacity and node.labels.get(keys.INSTANCE_TYPE) in types:
            capacity = types[node.labels[keys.INSTANCE_TYPE]].capacity
        amounts.append(capacity)
    amounts.extend(s.capacity for s in slot_of.values() if s.provisioner == provisioner)
    amounts.extend(
        intent.reserved for intent in snapshot.intents if intent.provisioner == provisioner
    )
    return Resources.total(amounts)


def remaining_limits(snapshot: ClusterSnapshot) -> dict[str, Resources]:
    """Return what is left of each provisioner's limits; a provisioner without any is absent.

    Every limited name is present even when nothing is left: absence would mean no ceiling.
    """
    left = {}
    for provisioner in snapshot.provisioners:
        if provisioner.limits is None:
            continue
        taken = used_capacity(snapshot, provisioner.name)
        left[provisioner.name] = Resources(
            tuple((name, amount - taken[name]) for name, amount in provisioner.limits.items)
        )
    return left

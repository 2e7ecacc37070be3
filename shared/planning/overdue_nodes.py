"""How planning treats overdue nodes, which are Ready but not initialized in time."""

from datetime import timedelta

from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.planning.rules.existing_nodes import nominated


def without_overdue(snapshot: ClusterSnapshot, longest_wait: timedelta) -> ClusterSnapshot:
    """Return the snapshot in which overdue nodes are no capacity for further pods.

    A startup taint that stays or a device that is never reported keeps pods off a node that
    planning would go on to fill. Such a node counts as cordoned until it is initialized. The pods
    that are promised to it stay promised: another instance of its type would most likely wait as
    well.

    Args:
        longest_wait: How long a node may be Ready without being initialized.
    """
    overdue = {
        node.instance_id
        for node in snapshot.nodes
        if node.is_ours and node.is_overdue(longest_wait, snapshot.taken_at)
    }
    slots = [slot for slot in snapshot.slots if slot.instance_id in overdue]
    if not slots:
        return snapshot
    closed = {slot.instance_id for slot in slots}
    return replace(
        snapshot,
        nodes=tuple(
            replace(node, unschedulable=True) if node.instance_id in closed else node
            for node in snapshot.nodes
        ),
        slots=tuple(slot for slot in snapshot.slots if slot.instance_id not in closed),
        promised=snapshot.promised | nominated(slots),
    )

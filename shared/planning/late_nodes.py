"""Nodes that are Ready and wait too long for something, as planning sees them."""

import dataclasses
from datetime import timedelta

from shared.model.snapshot import ClusterSnapshot
from shared.scheduling.existing_nodes import nominated


def without_overdue(snapshot: ClusterSnapshot, limit: timedelta) -> ClusterSnapshot:
    """Return the snapshot in which nodes that wait too long are no capacity for further pods.

    A startup taint that stays or a device that is never shown keeps pods off a node that planning
    would go on to fill. Such a node counts as cordoned until it is initialized. The pods that are
    promised to it stay promised: another machine of its kind would most likely wait as well.

    Args:
        limit: How long a node may be Ready without being initialized.
    """
    overdue = {
        node.instance_id
        for node in snapshot.nodes
        if node.is_ours and node.is_overdue(limit, snapshot.taken_at)
    }
    slots = [slot for slot in snapshot.slots if slot.instance_id in overdue]
    if not slots:
        return snapshot
    waiting = {slot.instance_id for slot in slots}
    return dataclasses.replace(
        snapshot,
        nodes=tuple(
            dataclasses.replace(node, unschedulable=True) if node.instance_id in waiting else node
            for node in snapshot.nodes
        ),
        slots=tuple(slot for slot in snapshot.slots if slot.instance_id not in waiting),
        promised=snapshot.promised | nominated(slots),
    )

"""The allocatable that nodes really have, if it is less than planned, or more memory."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Final

from shared.disruption.drift import shape_hash
from shared.model import labels as keys
from shared.model.ec2.launches import Slot
from shared.model.kubernetes.nodes import Node
from shared.model.note import Note
from shared.model.provisioner import Provisioner
from shared.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, Resources
from shared.model.values import replace
from shared.ports import NodePorts

ALLOCATABLE_NOTES: Final = "learned#"
_IMAGE: Final = "image"
_SHOWN: Final = "shown"
_COUNTED: Final = (CPU, EPHEMERAL_STORAGE, MEMORY, PODS)
# Observations expire after this time: images change, and with them the reserved resources.
_KEEP: Final = timedelta(days=30)


def save_observed_allocatable(ports: NodePorts, node: Node, slot: Slot) -> Mapping[str, int]:
    """Save the memory of a node, and each other resource that it has less of than planned.

    Only memory may be more than estimated: the estimate subtracts what instance and kernel reserve
    on the types that reserve most. Saved by instance type and by the Provisioner's hash at the
    launch: disks, kubelet settings and user data are its own. The least of several nodes counts,
    because instances of one type differ a little; a node with another image starts a new record.

    Source: https://github.com/aws/karpenter-provider-aws/blob/v1.8.2/pkg/providers/instancetype/instancetype.go
    (UpdateInstanceTypeCapacityFromNode, 2026-11: the least memory, by type and images).

    Returns:
        By how much each such resource falls short, empty if none does.
    """
    missing = {
        item: slot.allocatable[item] - node.allocatable[item]
        for item in _COUNTED
        if slot.allocatable[item] > node.allocatable[item] > 0
    }
    shape, image = (node.annotations.get(key, "") for key in (keys.PROVISIONER_HASH, keys.IMAGE_ID))
    name = f"{_of(slot.provisioner, shape)}{slot.offering.instance_type}"
    note = ports.ledger.note(ports.cluster.name, name)
    known: dict[str, int] = dict(note.value.get(_SHOWN, {}))
    seen = {*missing, *known, MEMORY} if node.allocatable[MEMORY] else {*missing, *known}
    shown = {item: node.allocatable[item] or known[item] for item in sorted(seen)}
    if note.value.get(_IMAGE) == image:
        shown = {item: min(amount, known.get(item, amount)) for item, amount in shown.items()}
    value = {_IMAGE: image, _SHOWN: shown}
    if shown and value != note.value:
        # If the write fails, a concurrent writer has saved as much.
        until = ports.clock.now() + _KEEP
        ports.ledger.change_note(ports.cluster.name, replace(note, value=value), until)
    return missing


def observed_allocatable(
    notes: Iterable[Note], provisioner: Provisioner
) -> Mapping[str, Resources]:
    """Return the least observed allocatable of a Provisioner as it is now, by instance type."""
    notes = tuple(notes)
    prefix = _of(provisioner.name, shape_hash(provisioner)) if notes else ""
    return {
        note.name.removeprefix(prefix): Resources.from_mapping(note.value[_SHOWN])
        for note in notes
        if note.name.startswith(prefix)
    }


def _of(provisioner: str, shape: str) -> str:
    return f"{ALLOCATABLE_NOTES}{provisioner}#{shape}#"

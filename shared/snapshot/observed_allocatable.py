"""What machines turn out to have for pods, when it is less than was thought."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Final

from shared.disruption.drift import shape_hash
from shared.model import labels as keys
from shared.model.ec2.launches import Slot
from shared.model.kubernetes.nodes import Node
from shared.model.memo import Memo
from shared.model.provisioner import Provisioner
from shared.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, Resources
from shared.ports import NodePorts

LEARNED: Final = "learned#"
_OF: Final = "of"
_IMAGE: Final = "image"
_SHOWN: Final = "shown"
_COUNTED: Final = (CPU, EPHEMERAL_STORAGE, MEMORY, PODS)
# What was learned is tried anew after this: images change, and with them what is reserved.
_KEEP: Final = timedelta(days=30)


def learn(ports: NodePorts, node: Node, slot: Slot) -> Mapping[str, int]:
    """Remember what a node has of that of which its launch was planned with more.

    Kept by Provisioner and type: disks, kubelet settings and user data are the Provisioner's. The
    least of several nodes counts, as machines of one type differ a little; a node of another
    image, or of a Provisioner that has changed, begins the record anew.

    Source: https://github.com/aws/karpenter-provider-aws/blob/v1.8.2/pkg/providers/instancetype/instancetype.go
    (UpdateInstanceTypeCapacityFromNode, 2026-11: the least memory, by type and images).

    Returns:
        What each such resource falls short by, empty when nothing does.
    """
    missing = {
        item: slot.allocatable[item] - node.allocatable[item]
        for item in _COUNTED
        if slot.allocatable[item] > node.allocatable[item] > 0
    }
    name = f"{LEARNED}{slot.provisioner}#{slot.offering.instance_type}"
    memo = ports.ledger.memo(ports.cluster.name, name)
    source = {
        _OF: node.annotations.get(keys.PROVISIONER_HASH, ""),
        _IMAGE: node.annotations.get(keys.IMAGE_ID, ""),
    }
    known: dict[str, int] = dict(memo.value.get(_SHOWN, {}))
    shown = {item: node.allocatable[item] or known[item] for item in sorted({*missing, *known})}
    if all(memo.value.get(key) == text for key, text in source.items()):
        shown = {item: min(amount, known.get(item, amount)) for item, amount in shown.items()}
    value = {**source, _SHOWN: shown}
    if shown and value != memo.value:
        # A faster writer has learned as much.
        until = ports.clock.now() + _KEEP
        ports.ledger.change_memo(ports.cluster.name, replace(memo, value=value), until)
    return missing


def observed(memos: Iterable[Memo], provisioner: Provisioner) -> Mapping[str, Resources]:
    """Return what nodes of a Provisioner as it is now have shown at the least, by type."""
    prefix = f"{LEARNED}{provisioner.name}#"
    of_owner = [memo for memo in memos if memo.name.startswith(prefix)]
    shape = shape_hash(provisioner) if of_owner else ""
    return {
        memo.name.removeprefix(prefix): Resources.from_mapping(memo.value[_SHOWN])
        for memo in of_owner
        if memo.value[_OF] == shape
    }

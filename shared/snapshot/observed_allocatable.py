"""What machines turn out to have for pods, where it is less than was thought, or more memory."""

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
_IMAGE: Final = "image"
_SHOWN: Final = "shown"
_COUNTED: Final = (CPU, EPHEMERAL_STORAGE, MEMORY, PODS)
# What was learned is tried anew after this: images change, and with them what is reserved.
_KEEP: Final = timedelta(days=30)


def learn(ports: NodePorts, node: Node, slot: Slot) -> Mapping[str, int]:
    """Remember the memory of a node, and what else it has less of than was planned with.

    Of memory alone there may be more than was estimated: the estimate leaves out what instance and
    kernel keep of it on the types that keep most.
    Kept by type and by what the Provisioner was at the launch: disks, kubelet settings and user
    data are its own. The least of several nodes counts, as machines of one type differ a little; a
    node of another image begins the record anew.

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
    shape, image = (node.annotations.get(key, "") for key in (keys.PROVISIONER_HASH, keys.IMAGE_ID))
    name = f"{_of(slot.provisioner, shape)}{slot.offering.instance_type}"
    memo = ports.ledger.memo(ports.cluster.name, name)
    known: dict[str, int] = dict(memo.value.get(_SHOWN, {}))
    seen = {*missing, *known, MEMORY} if node.allocatable[MEMORY] else {*missing, *known}
    shown = {item: node.allocatable[item] or known[item] for item in sorted(seen)}
    if memo.value.get(_IMAGE) == image:
        shown = {item: min(amount, known.get(item, amount)) for item, amount in shown.items()}
    value = {_IMAGE: image, _SHOWN: shown}
    if shown and value != memo.value:
        # A faster writer has learned as much.
        until = ports.clock.now() + _KEEP
        ports.ledger.change_memo(ports.cluster.name, replace(memo, value=value), until)
    return missing


def observed(memos: Iterable[Memo], provisioner: Provisioner) -> Mapping[str, Resources]:
    """Return what nodes of a Provisioner as it is now have shown at the least, by type."""
    memos = tuple(memos)
    prefix = _of(provisioner.name, shape_hash(provisioner)) if memos else ""
    return {
        memo.name.removeprefix(prefix): Resources.from_mapping(memo.value[_SHOWN])
        for memo in memos
        if memo.name.startswith(prefix)
    }


def _of(provisioner: str, shape: str) -> str:
    return f"{LEARNED}{provisioner}#{shape}#"

"""What machines turn out to have for pods, when it is less than was thought."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from shared.model import labels as keys
from shared.model.ec2.instance_types import InstanceType, Overhead
from shared.model.ec2.launches import Slot
from shared.model.kubernetes.nodes import Node
from shared.model.memo import Memo
from shared.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, Resources
from shared.ports import NodePorts

LEARNED: Final = "learned#"
_COUNTED: Final = (CPU, EPHEMERAL_STORAGE, MEMORY, PODS)
# What was learned is tried anew after this: images change, and with them what is reserved.
_KEEP: Final = timedelta(days=30)


def learn(ports: NodePorts, node: Node, slot: Slot) -> Mapping[str, int]:
    """Remember by how much a node shows less than its launch was planned with.

    Kept by type, with the image it was seen on: a node of another image that shows the whole
    estimate clears the record.

    Returns:
        What each such resource falls short by, empty when nothing does.
    """
    name = f"{LEARNED}{slot.offering.instance_type}"
    missing = {
        item: slot.allocatable[item] - node.allocatable[item]
        for item in _COUNTED
        if slot.allocatable[item] > node.allocatable[item] > 0
    }
    memo = ports.ledger.memo(ports.cluster.name, name)
    image = node.annotations.get(keys.IMAGE_ID, "")
    if not missing:
        if memo.version and memo.value["image"] != image:
            ports.ledger.drop_memo(ports.cluster.name, name)
        return {}
    known = dict(memo.value.get("missing", {}))
    # A launch that was planned with what was known before falls short by as much again.
    counted = bool(memo.version) and slot.launched_at > datetime.fromisoformat(memo.value["at"])
    for item, amount in missing.items():
        before = known.get(item, 0)
        known[item] = before + amount if counted else max(before, amount)
    now = ports.clock.now()
    value = {"image": image, "at": now.isoformat(), "missing": known}
    # A faster writer has learned as much.
    ports.ledger.change_memo(ports.cluster.name, replace(memo, value=value), now + _KEEP)
    return missing


def with_learned(
    instance_types: Iterable[InstanceType], memos: Iterable[Memo]
) -> tuple[InstanceType, ...]:
    """Return the types with what was learned taken off what pods may have, in the same order."""
    learned = {
        memo.name.removeprefix(LEARNED): Resources.from_mapping(memo.value["missing"])
        for memo in memos
    }
    return tuple(
        _lessened(instance_type, learned[instance_type.name])
        if instance_type.name in learned
        else instance_type
        for instance_type in instance_types
    )


def _lessened(instance_type: InstanceType, missing: Resources) -> InstanceType:
    overhead = instance_type.overhead
    return replace(
        instance_type,
        overhead=Overhead(
            kube_reserved=overhead.kube_reserved,
            system_reserved=overhead.system_reserved + missing,
            eviction_threshold=overhead.eviction_threshold,
        ),
    )

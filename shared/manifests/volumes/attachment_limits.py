"""How many more volumes nodes can attach, as amounts beside cpu and memory.

Source: https://kubernetes.io/docs/concepts/storage/storage-limits/#dynamic-volume-limits (2026-11).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from shared.ami_families import family_of
from shared.manifests.volumes.node_demands import Volumes
from shared.model import labels as keys
from shared.model.ec2.instance_types import InstanceType
from shared.model.ec2.launches import Slot
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.kubernetes.volumes import EBS_DRIVER, AttachLimits, attachable, inline_volume
from shared.model.provisioner import NodeTemplate, owner_among
from shared.model.resources import Resources
from shared.model.snapshot import ClusterSnapshot

# What a node has of a driver that names no limit: kube-scheduler counts none either.
_NO_LIMIT: Final = 1_000_000

# Node, driver and name of a volume that a node has attached.
Held = tuple[str, str, str]


def limited_drivers(used: Iterable[str], limits: Iterable[AttachLimits]) -> frozenset[str]:
    """Return those of the drivers whose volumes some node can have only so many of."""
    known = frozenset({EBS_DRIVER, *(driver for limit in limits for driver in limit.counts)})
    return known.intersection(used)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachable:
    """What nodes, there or to come, can attach.

    Attributes:
        drivers: That are counted.
        limits: By node, what its drivers say.
        held: By node and driver, the number of volumes it has.
        of_type: By name of an instance type, EBS volumes of a new machine.
        shown: By driver and name of an instance type, the least that its nodes say.
        shown_without_disks: The same, with what the disks of their own took of it.
    """

    drivers: frozenset[str]
    limits: Mapping[str, Mapping[str, int]] = field(hash=False)
    held: Mapping[tuple[str, str], int] = field(hash=False)
    of_type: Mapping[str, int] = field(hash=False)
    shown: Mapping[tuple[str, str], int] = field(hash=False)
    shown_without_disks: Mapping[tuple[str, str], int] = field(hash=False)

    @classmethod
    def of(
        cls,
        drivers: frozenset[str],
        limits: Iterable[AttachLimits],
        held: Iterable[Held],
        snapshot: ClusterSnapshot,
    ) -> "Attachable":
        """Return the view of these.

        Args:
            drivers: That are counted.
            limits: What nodes say.
            held: Volumes that nodes have; one that is named twice counts once.
            snapshot: With the nodes, and what can be bought.
        """
        said = {limit.node: limit.counts for limit in limits}
        shown, without_disks = _shown(said, snapshot)
        numbers: dict[tuple[str, str], int] = {}
        for node, driver, _ in set(held):
            numbers[node, driver] = numbers.get((node, driver), 0) + 1
        return cls(
            drivers=drivers,
            limits=said,
            held=numbers,
            of_type={type_.name: type_.volume_limit for type_ in snapshot.instance_types},
            shown=shown,
            shown_without_disks=without_disks,
        )

    def on_node(self, node: Node) -> Node:
        """Return the node with its remaining attachments added to its allocatable resources.

        Pods that run on it do not request attachments, so those they hold are subtracted here.
        A driver that has not reported a limit yet is assumed to allow what a new machine of the
        type allows. A node without any allocatable resource is not changed: its launch says what
        it has.
        """
        if not node.allocatable:
            return node
        said = self.limits.get(node.name, {})
        instance_type = node.labels.get(keys.INSTANCE_TYPE, "")
        amounts = {}
        for driver in sorted(self.drivers):
            limit = said.get(driver, self._of_new(driver, instance_type, self.shown))
            amounts[attachable(driver)] = max(limit - self.held.get((node.name, driver), 0), 0)
        return replace(node, allocatable=_with(node.allocatable, amounts))

    def on_type(self, instance_type: InstanceType) -> InstanceType:
        """Return the type with what a new machine of it can attach among its capacity.

        Before its disks are counted: these take from it what they take.
        """
        amounts = self._of_new_machine(instance_type.name, self.shown_without_disks)
        return replace(instance_type, capacity=_with(instance_type.capacity, amounts))

    def on_slot(self, slot: Slot) -> Slot:
        """Return the slot with what its machine will be able to attach."""
        amounts = self._of_new_machine(slot.offering.instance_type, self.shown)
        return replace(slot, allocatable=_with(slot.allocatable, amounts))

    def _of_new_machine(
        self, instance_type: str, shown: Mapping[tuple[str, str], int]
    ) -> dict[str, int]:
        return {
            attachable(driver): self._of_new(driver, instance_type, shown)
            for driver in sorted(self.drivers)
        }

    def _of_new(self, driver: str, instance_type: str, shown: Mapping[tuple[str, str], int]) -> int:
        """Return how many a new machine can attach: the least that nodes of its type say.

        A driver may be told a lower limit than the instance type has. Of a type without nodes it is
        what EC2 attaches, for other drivers the least that any node says.
        """
        known = shown.get((driver, instance_type))
        if driver == EBS_DRIVER:
            most = self.of_type.get(instance_type, _NO_LIMIT)
            return most if known is None else min(most, known)
        if known is not None:
            return known
        return min(
            (counts[driver] for counts in self.limits.values() if driver in counts),
            default=_NO_LIMIT,
        )


def _shown(
    said: Mapping[str, Mapping[str, int]], snapshot: ClusterSnapshot
) -> tuple[dict[tuple[str, str], int], dict[tuple[str, str], int]]:
    """Return the least that nodes of a type say, as they say it and without their disks."""
    owners = {owner.name: owner for owner in snapshot.provisioners}
    shown: dict[tuple[str, str], int] = {}
    without_disks: dict[tuple[str, str], int] = {}
    for node in snapshot.nodes:
        template = getattr(owner_among(node, owners), "template", NodeTemplate())
        taken = family_of(template.ami_family).further_disks(template.block_devices)
        for driver, count in said.get(node.name, {}).items():
            key = (driver, node.labels.get(keys.INSTANCE_TYPE, ""))
            own = taken if driver == EBS_DRIVER else 0
            shown[key] = min(count, shown.get(key, count))
            without_disks[key] = min(count + own, without_disks.get(key, count + own))
    return shown, without_disks


def held_by(pods: Iterable[Pod], volumes: Volumes) -> tuple[Held, ...]:
    """Return the volumes that pods with a node have there, as far as they are known."""
    return tuple(
        (pod.node_name, *volumes.volume_of(pod.namespace, claim))
        for pod in pods
        for claim in pod.scheduling.claims
    )


def split_pods(
    pods: Iterable[Pod], nodes: Iterable[Node]
) -> tuple[tuple[Pod, ...], tuple[Pod, ...]]:
    """Return those of the pods that keep their volumes where they are, and those that do not.

    One that is being deleted, or whose node is cordoned or going, lets its volumes go.
    """
    closed = {node.name for node in nodes if node.unschedulable or node.deletion_at is not None}
    staying: list[Pod] = []
    leaving: list[Pod] = []
    for pod in pods:
        goes = pod.is_terminating or pod.node_name in closed
        (leaving if goes else staying).append(pod)
    return tuple(staying), tuple(leaving)


def claims_of(pods: Iterable[Pod]) -> frozenset[str]:
    """Return the claims (namespace/name) of pods."""
    return frozenset(
        f"{pod.namespace}/{claim}"
        for pod in pods
        for claim in pod.scheduling.claims
        if not inline_volume(claim)
    )


def with_attachable(snapshot: ClusterSnapshot, attachable_by: Attachable) -> ClusterSnapshot:
    """Return the snapshot whose nodes, slots and instance types have what they can attach."""
    return replace(
        snapshot,
        nodes=tuple(attachable_by.on_node(node) for node in snapshot.nodes),
        slots=tuple(attachable_by.on_slot(slot) for slot in snapshot.slots),
        instance_types=tuple(
            attachable_by.on_type(instance_type) for instance_type in snapshot.instance_types
        ),
    )


def _with(base: Resources, amounts: Mapping[str, int]) -> Resources:
    return Resources.from_mapping({**dict(base.items), **amounts})

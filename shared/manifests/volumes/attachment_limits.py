"""How many more volumes nodes can attach, as resources like cpu and memory.

Source: https://kubernetes.io/docs/concepts/storage/storage-limits/#dynamic-volume-limits (2026-11).
"""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from shared.instance_types.ami_families import family_of
from shared.manifests.volumes.node_demands import VolumeLookup
from shared.model import labels as keys
from shared.model.ec2.instance_types import InstanceType
from shared.model.ec2.launches import Slot
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.kubernetes.volumes import EBS_DRIVER, CsiNodeLimits, attachable, inline_volume
from shared.model.provisioner import NodeTemplate, owner_among
from shared.model.resources import Resources
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace

# The amount of a driver without a limit: kube-scheduler does not count its volumes either.
_NO_LIMIT: Final = 1_000_000

# Node, driver and name of a volume that a node has attached.
HeldVolume = tuple[str, str, str]


def limited_drivers(used: Iterable[str], limits: Iterable[CsiNodeLimits]) -> frozenset[str]:
    """Return the drivers that limit the volumes of some node."""
    known = frozenset({EBS_DRIVER, *(driver for limit in limits for driver in limit.counts)})
    return known.intersection(used)


class AttachmentLimits(Struct, frozen=True, kw_only=True):
    """How many volumes existing and new nodes can attach, by CSI driver.

    Attributes:
        drivers: The drivers that are counted.
        limits: By node, the limits that its drivers report.
        held: By node and driver, the number of attached volumes.
        of_type: By name of an instance type, EBS volumes of a new instance.
        shown: By driver and name of an instance type, the lowest limit that its nodes report.
        shown_without_disks: The same, plus the attachments that the nodes' own disks use.
    """

    drivers: frozenset[str]
    limits: Mapping[str, Mapping[str, int]]
    held: Mapping[tuple[str, str], int]
    of_type: Mapping[str, int]
    shown: Mapping[tuple[str, str], int]
    shown_without_disks: Mapping[tuple[str, str], int]

    @classmethod
    def of(
        cls,
        drivers: frozenset[str],
        limits: Iterable[CsiNodeLimits],
        held: Iterable[HeldVolume],
        snapshot: ClusterSnapshot,
    ) -> "AttachmentLimits":
        """Return the limits of a snapshot.

        Args:
            drivers: The drivers that are counted.
            limits: The limits that nodes report.
            held: Attached volumes; duplicates count once.
            snapshot: The snapshot with nodes and instance types.
        """
        reported = {limit.node_name: limit.counts for limit in limits}
        shown, without_disks = _shown(reported, snapshot)
        numbers: dict[tuple[str, str], int] = {}
        for node, driver, _ in set(held):
            numbers[node, driver] = numbers.get((node, driver), 0) + 1
        return cls(
            drivers=drivers,
            limits=reported,
            held=numbers,
            of_type={type_.name: type_.volume_limit for type_ in snapshot.instance_types},
            shown=shown,
            shown_without_disks=without_disks,
        )

    def on_node(self, node: Node) -> Node:
        """Return the node with its remaining attachments added to its allocatable resources.

        Pods that run on it do not request attachments, so their attachments are subtracted here.
        A driver that has not reported a limit yet is assumed to have that of a new instance of the
        type. A node without any allocatable resource is not changed: its slot has its resources.
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
        """Return the type with the attachments of a new instance added to its capacity.

        Its own disks are not subtracted yet.
        """
        amounts = self._of_new_instance(instance_type.name, self.shown_without_disks)
        return replace(instance_type, capacity=_with(instance_type.capacity, amounts))

    def on_slot(self, slot: Slot) -> Slot:
        """Return the slot with the attachments of its instance added to its allocatable."""
        amounts = self._of_new_instance(slot.offering.instance_type, self.shown)
        return replace(slot, allocatable=_with(slot.allocatable, amounts))

    def _of_new_instance(
        self, instance_type: str, shown: Mapping[tuple[str, str], int]
    ) -> dict[str, int]:
        return {
            attachable(driver): self._of_new(driver, instance_type, shown)
            for driver in sorted(self.drivers)
        }

    def _of_new(self, driver: str, instance_type: str, shown: Mapping[tuple[str, str], int]) -> int:
        """Return how many volumes a new instance can attach: the lowest limit of its type's nodes.

        A driver may be configured with a lower limit than that of the instance type. For a type
        without nodes it is EC2's limit, for other drivers the lowest limit of any node.
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
    reported: Mapping[str, Mapping[str, int]], snapshot: ClusterSnapshot
) -> tuple[dict[tuple[str, str], int], dict[tuple[str, str], int]]:
    """Return the lowest limit of a type's nodes, as reported and without their own disks."""
    owners = {owner.name: owner for owner in snapshot.provisioners}
    shown: dict[tuple[str, str], int] = {}
    without_disks: dict[tuple[str, str], int] = {}
    for node in snapshot.nodes:
        template = getattr(owner_among(node, owners), "template", NodeTemplate())
        taken = family_of(template.ami_family).further_disks(template.block_devices)
        for driver, count in reported.get(node.name, {}).items():
            key = (driver, node.labels.get(keys.INSTANCE_TYPE, ""))
            own = taken if driver == EBS_DRIVER else 0
            shown[key] = min(count, shown.get(key, count))
            without_disks[key] = min(count + own, without_disks.get(key, count + own))
    return shown, without_disks


def volumes_held_by(pods: Iterable[Pod], volumes: VolumeLookup) -> tuple[HeldVolume, ...]:
    """Return the volumes that bound pods have on their nodes, as far as they are known."""
    return tuple(
        (pod.node_name, *volumes.volume_of(pod.namespace, claim))
        for pod in pods
        for claim in pod.scheduling.claims
    )


def split_pods(
    pods: Iterable[Pod], nodes: Iterable[Node]
) -> tuple[tuple[Pod, ...], tuple[Pod, ...]]:
    """Return the pods that keep their volumes attached, and those that do not.

    A terminating pod, or one whose node is cordoned or being deleted, does not.
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


def with_attachable(snapshot: ClusterSnapshot, limits: AttachmentLimits) -> ClusterSnapshot:
    """Return the snapshot with the attachments of its nodes, slots and instance types."""
    return replace(
        snapshot,
        nodes=tuple(limits.on_node(node) for node in snapshot.nodes),
        slots=tuple(limits.on_slot(slot) for slot in snapshot.slots),
        instance_types=tuple(
            limits.on_type(instance_type) for instance_type in snapshot.instance_types
        ),
    )


def _with(base: Resources, amounts: Mapping[str, int]) -> Resources:
    return Resources.from_mapping({**dict(base.items), **amounts})

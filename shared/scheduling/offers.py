"""What each Provisioner could buy, and which demands each way of buying it satisfies."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from shared.catalog.kubelet import apply_kubelet, apply_root_volume
from shared.model import labels as keys
from shared.model.daemonset import DaemonSet
from shared.model.instance_types import InstanceType, Offering, OfferingKey
from shared.model.provisioner import KubeletConfiguration, Provisioner
from shared.model.requirements import Requirement, Requirements
from shared.model.resources import Resources
from shared.model.snapshot import ProvisionerSite
from shared.scheduling.daemons import daemon_requests

PLACE_KEYS: Final = frozenset({keys.ZONE, keys.CAPACITY_TYPE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One instance type as one Provisioner would run it.

    Attributes:
        labels: Of the node to be, without zone and capacity type.
        available: Allocatable less what DaemonSets will take.
        offerings: Allowed and to be had, cheapest first, then zone, then capacity type.
    """

    provisioner: Provisioner
    instance_type: InstanceType
    labels: Mapping[str, str] = field(hash=False)
    daemon_requests: Resources
    available: Resources
    offerings: tuple[Offering, ...]


def in_order(provisioners: Iterable[Provisioner]) -> tuple[Provisioner, ...]:
    """Return usable provisioners in the order they are tried: weight descending, then name."""
    usable = (one for one in provisioners if not one.deleting and not one.paused)
    return tuple(sorted(usable, key=lambda one: (-one.weight, one.name)))


def node_labels(provisioner: Provisioner) -> dict[str, str]:
    """Return the labels every node of a provisioner gets from it.

    Its own labels, its name, and each further requirement that leaves exactly one value. Well-known
    labels are left out: the machine answers them, and the provisioner's only choose among machines.
    """
    labels = {
        one.key: next(iter(one.values))
        for one in provisioner.requirements
        if not one.complement and len(one.values) == 1 and one.key not in keys.WELL_KNOWN
    }
    own = {k: v for k, v in provisioner.labels.items() if keys.normalize(k) not in keys.WELL_KNOWN}
    return {**labels, **own, keys.PROVISIONER_NAME: provisioner.name}


def offers(
    provisioner: Provisioner,
    site: ProvisionerSite,
    instance_types: Sequence[InstanceType],
    daemonsets: Sequence[DaemonSet],
    *,
    unavailable: frozenset[OfferingKey] = frozenset(),
    chosen: Mapping[str, str] | None = None,
) -> tuple[Offer, ...]:
    """Return what a provisioner could buy in the zones of its subnets, in order of type name.

    Args:
        instance_types: Sorted by name.
        unavailable: Offerings EC2 was out of lately: left out.
        chosen: Values picked for custom labels of which the provisioner allows several.
    """
    fixed = {**node_labels(provisioner), **(chosen or {})}
    of_type, of_place = _split(provisioner.requirements)
    zones = frozenset(site.zones)
    found = []
    for instance_type in instance_types:
        labels = {**instance_type.labels, **fixed}
        if not _template_allows(of_type, labels):
            continue
        offerings = tuple(
            one
            for one in instance_type.offerings
            if one.zone in zones
            and _place_allowed(of_place, one)
            and OfferingKey(
                instance_type=instance_type.name,
                zone=one.zone,
                capacity_type=one.capacity_type,
            )
            not in unavailable
        )
        if not offerings:
            continue
        configured = as_configured(provisioner, instance_type)
        taken = daemon_requests(daemonsets, labels, provisioner.taints, undecided=PLACE_KEYS)
        available = configured.allocatable - taken
        found.append(
            Offer(
                provisioner=provisioner,
                instance_type=configured,
                labels=labels,
                daemon_requests=taken,
                available=available,
                offerings=offerings,
            )
        )
    return tuple(found)


def as_configured(provisioner: Provisioner, instance_type: InstanceType) -> InstanceType:
    """Return the instance type with the disk and kubelet settings the provisioner gives it."""
    disks = provisioner.template.block_devices
    if disks:
        instance_type = apply_root_volume(instance_type, disks[-1].volume_size_gib)
    if provisioner.kubelet == KubeletConfiguration():
        return instance_type
    return apply_kubelet(instance_type, provisioner.kubelet)


def place_labels(offering: Offering) -> dict[str, str]:
    """Return the labels a node gets from the offering it was bought by."""
    return {keys.ZONE: offering.zone, keys.CAPACITY_TYPE: offering.capacity_type.value}


def label_choices(
    provisioner: Provisioner, demanded: Iterable[Requirements]
) -> tuple[dict[str, str], ...]:
    """Return the picks of custom labels that some demand asks for, the empty pick first.

    A provisioner may allow several values of a label of the user's own; a node has one. For each
    demand the value it needs is picked: the smallest one both allow.
    """
    free = {
        one.key: one
        for one in provisioner.requirements
        if one.key not in keys.WELL_KNOWN and (one.complement or len(one.values) > 1)
    }
    picks: set[tuple[tuple[str, str], ...]] = set()
    for requirements in demanded:
        pick = []
        for one in requirements:
            if one.key in free and not one.absent:
                both = one.intersect(free[one.key])
                if not both.complement and both.values:
                    pick.append((one.key, min(both.values)))
        if pick:
            picks.add(tuple(pick))
    return ({}, *(dict(pick) for pick in sorted(picks)))


def _template_allows(requirements: Requirements, labels: Mapping[str, str]) -> bool:
    """A custom key with several values needs no label yet: it is picked when a pod asks."""
    return all(
        one.allows(labels.get(one.key))
        or (one.key not in labels and one.key not in keys.WELL_KNOWN and one.has_value())
        for one in requirements
    )


def _split(requirements: Requirements) -> tuple[Requirements, Requirements]:
    place: list[Requirement] = []
    other: list[Requirement] = []
    for one in requirements:
        (place if one.key in PLACE_KEYS else other).append(one)
    return Requirements(tuple(other)), Requirements(tuple(place))


def _place_allowed(requirements: Requirements, offering: Offering) -> bool:
    return requirements.allow_labels(place_labels(offering))

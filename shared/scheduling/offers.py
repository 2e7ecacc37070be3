"""What each Provisioner could buy, and which demands each way of buying it satisfies."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from shared.bootstrap import DEFAULT, FAMILIES
from shared.catalog.kubelet import apply_disks, apply_kubelet, with_pod_limit
from shared.model import labels as keys
from shared.model.daemonset import DaemonSet
from shared.model.instance_types import CapacityType, InstanceType, Offering, OfferingKey
from shared.model.provisioner import KubeletConfiguration, Provisioner
from shared.model.requirements import Requirement, Requirements
from shared.model.resources import Resources
from shared.model.snapshot import ProvisionerSite
from shared.scheduling.compatibility import Port
from shared.scheduling.daemons import daemon_ports, daemon_requests

# Picks of custom labels by one provisioner; each is a full list of what it could buy.
_MOST_PICKS: Final = 64
PLACE_KEYS: Final = frozenset({keys.ZONE, keys.CAPACITY_TYPE})
_Place = tuple[str, CapacityType]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One instance type as one Provisioner would run it.

    Attributes:
        labels: Of the node to be, without zone and capacity type.
        available: Allocatable less what DaemonSets will take.
        ports: Host ports that DaemonSets will take.
        undecided: Labels of the user's own that the node must have, whose values are still open.
        offerings: Allowed and to be had, cheapest first, then zone, then capacity type.
    """

    provisioner: Provisioner
    instance_type: InstanceType
    labels: Mapping[str, str] = field(hash=False)
    daemon_requests: Resources
    available: Resources
    ports: tuple[Port, ...] = ()
    undecided: frozenset[str] = frozenset()
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
    unavailable: frozenset[OfferingKey] | None = frozenset(),
    chosen: Mapping[str, str] | None = None,
) -> tuple[Offer, ...]:
    """Return what a provisioner could buy in the zones of its subnets, in order of type name.

    Args:
        instance_types: Sorted by name.
        unavailable: Offerings EC2 was out of lately: left out, as are those it refuses to this
            provisioner; None for all there are.
        chosen: Values picked for custom labels of which the provisioner allows several.
    """
    fixed = {**node_labels(provisioner), **(chosen or {})}
    of_type, of_place = _split(provisioner.requirements)
    places = _allowed_places(of_place, site.zones)
    out: dict[str, set[_Place]] = {}
    for key in () if unavailable is None else unavailable | site.refused:
        out.setdefault(key.instance_type, set()).add((key.zone, key.capacity_type))
    open_keys = {one.key for one in _free(provisioner) if not one.absent}
    with_ports = any(one.scheduling.host_ports for one in daemonsets)
    found = []
    for instance_type in instance_types:
        labels = {**instance_type.labels, **fixed}
        if not _template_allows(of_type, labels):
            continue
        to_be_had = places.difference(out.get(instance_type.name, ()))
        offerings = tuple(
            one for one in instance_type.offerings if (one.zone, one.capacity_type) in to_be_had
        )
        if not offerings:
            continue
        configured = as_configured(provisioner, instance_type)
        taken = daemon_requests(daemonsets, labels, provisioner.taints, undecided=PLACE_KEYS)
        available = configured.allocatable - taken
        ports = daemon_ports(daemonsets, labels, provisioner.taints) if with_ports else ()
        found.append(
            Offer(
                provisioner=provisioner,
                instance_type=configured,
                labels=labels,
                daemon_requests=taken,
                available=available,
                ports=ports,
                undecided=frozenset(open_keys - labels.keys()),
                offerings=offerings,
            )
        )
    return tuple(found)


def as_configured(provisioner: Provisioner, instance_type: InstanceType) -> InstanceType:
    """Return the instance type with the disk and kubelet settings the provisioner gives it."""
    family = FAMILIES.get(provisioner.template.ami_family, FAMILIES[DEFAULT])
    instance_type = apply_disks(instance_type, provisioner.template.block_devices, family)
    kubelet = family.understood(with_pod_limit(provisioner.kubelet, instance_type))
    if kubelet == KubeletConfiguration():
        return instance_type
    return apply_kubelet(instance_type, kubelet, reserves_for_max_pods=family.reserves_for_max_pods)


def place_labels(offering: Offering) -> dict[str, str]:
    """Return the labels a node gets from the offering it was bought by."""
    return {keys.ZONE: offering.zone, keys.CAPACITY_TYPE: offering.capacity_type.value}


def label_choices(
    provisioner: Provisioner,
    demanded: Iterable[Requirements],
    topology_keys: Iterable[str] = (),
) -> tuple[dict[str, str], ...]:
    """Return the picks of custom labels that some demand asks for, the empty pick first.

    A provisioner may allow several values of a label of the user's own; a node has one. For each
    demand the value it needs is picked: the smallest one both allow. Of a topology key each value
    is picked once with each of these picks, as long as there are not too many.
    """
    free = {one.key: one for one in _free(provisioner)}
    picks: set[tuple[tuple[str, str], ...]] = set()
    for requirements in demanded:
        pick = []
        for one in requirements:
            if one.key in free:
                value = some_value(one.intersect(free[one.key]))
                if value is not None:
                    pick.append((one.key, value))
        if pick:
            picks.add(tuple(pick))
    chosen: list[dict[str, str]] = [{}, *(dict(pick) for pick in sorted(picks))]
    for key in topology_keys:
        if key in free and not free[key].complement:
            chosen += [
                {**pick, key: value}
                for pick in chosen
                if key not in pick
                for value in sorted(free[key].values)
            ][: max(_MOST_PICKS - len(chosen), 0)]
    return tuple({tuple(sorted(one.items())): one for one in chosen}.values())


def _free(provisioner: Provisioner) -> list[Requirement]:
    """Return the requirements on labels of the user's own that leave several values."""
    return [
        one
        for one in provisioner.requirements
        if one.key not in keys.WELL_KNOWN and (one.complement or len(one.values) > 1)
    ]


def some_value(wanted: Requirement) -> str | None:
    """Return the smallest value a requirement lists, else a simple one that it allows, or None."""
    form = wanted.normalized()
    if not form.complement:
        return min(form.values, default=None)
    start = form.minimum if form.minimum is not None else 0
    if form.maximum is not None:
        start = min(start, form.maximum)
    numbers = [str(start + step) for step in range(len(form.values) + 1)]
    words = ["x" * length for length in range(1, len(form.values) + 2)]
    return next((one for one in (*words, *numbers) if form.allows(one)), None)


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


def _allowed_places(requirements: Requirements, zones: Iterable[str]) -> frozenset[_Place]:
    """Return the zones and capacity types that the requirements allow together."""
    return frozenset(
        (zone, how)
        for zone in zones
        for how in CapacityType
        if requirements.allow_labels({keys.ZONE: zone, keys.CAPACITY_TYPE: how.value})
    )

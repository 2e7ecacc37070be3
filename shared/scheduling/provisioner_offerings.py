"""What each Provisioner could buy, and which demands each way of buying it satisfies."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Final

from shared.ami_families import DEFAULT, FAMILIES
from shared.catalog.fitting import (
    apply_disks,
    apply_instance_store,
    apply_kubelet,
    apply_observed,
    with_pod_limit,
)
from shared.model import labels as keys
from shared.model.dialect import OwnerKind
from shared.model.ec2.instance_types import CapacityType, InstanceType, Offering, OfferingKey
from shared.model.kubernetes.daemonsets import DaemonSet
from shared.model.provisioner import KubeletConfiguration, NodeTemplate, Provisioner
from shared.model.requirements import Requirement, Requirements
from shared.model.resources import PODS, Resources
from shared.model.snapshot import ProvisionerSite
from shared.scheduling.compatibility import Port
from shared.scheduling.daemon_overhead import DaemonOverhead, daemon_keys

PLACE_KEYS: Final = frozenset({keys.ZONE, keys.CAPACITY_TYPE})
_Place = tuple[str, CapacityType]
_name: Final = attrgetter("name")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisionerOffering:
    """One instance type as one Provisioner would run it.

    Attributes:
        labels: Of the node to be, without zone and capacity type.
        available: Allocatable less what DaemonSets will take.
        ports: Host ports that DaemonSets will take.
        undecided: Labels whose values are still open: those of the user's own that the node must
            have, and what the cloud controller adds.
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
    """Return usable provisioners in the order they are tried: weight descending, then name.

    Of equal weight NodePools come last, and from z to a: `OrderByWeight` of Karpenter v1.14.1.
    """
    usable = [owner for owner in provisioners if not owner.deleting and not owner.paused]
    old = [owner for owner in usable if owner.kind == OwnerKind.PROVISIONER]
    pools = [owner for owner in usable if owner.kind == OwnerKind.NODE_POOL]
    by_name = (*sorted(old, key=_name), *sorted(pools, key=_name, reverse=True))
    return tuple(sorted(by_name, key=lambda owner: -owner.weight))


def node_labels(provisioner: Provisioner) -> dict[str, str]:
    """Return the labels every node of a provisioner gets from it.

    Its own labels, its name, and each further requirement that leaves exactly one value. Well-known
    labels are left out: the machine answers them, and the provisioner's only choose among machines.
    """
    labels = {
        requirement.key: next(iter(requirement.values))
        for requirement in provisioner.requirements
        if not requirement.complement
        and len(requirement.values) == 1
        and requirement.key not in keys.WELL_KNOWN
    }
    own = {k: v for k, v in provisioner.labels.items() if keys.normalize(k) not in keys.WELL_KNOWN}
    return {**labels, **own, provisioner.owner_label: provisioner.name}


def offers(
    provisioner: Provisioner,
    site: ProvisionerSite,
    instance_types: Sequence[InstanceType],
    daemonsets: Sequence[DaemonSet],
    *,
    unavailable: frozenset[OfferingKey] | None = frozenset(),
    picks: Sequence[Mapping[str, str]] = ({},),
) -> tuple[ProvisionerOffering, ...]:
    """Return what a provisioner could buy in the zones of its subnets, by pick, then type name.

    Args:
        instance_types: Sorted by name.
        unavailable: Offerings EC2 was out of lately: left out, as are those it refuses to this
            provisioner; None for all there are.
        picks: Values for custom labels of which the provisioner allows several. The machines are
            the same for all of them.
    """
    machines = _machines(provisioner, site, instance_types, unavailable)
    needed = {
        free_requirement.key
        for free_requirement in free_requirements(provisioner)
        if not free_requirement.absent
    }
    asked = daemon_keys(daemonsets)
    overhead = DaemonOverhead(daemonsets, provisioner.taints)
    shared: dict[tuple[object, ...], tuple[Resources, Resources, tuple[Port, ...]]] = {}
    found = []
    for chosen in picks:
        fixed = {**node_labels(provisioner), **chosen}
        undecided = frozenset((needed | {keys.ZONE_ID}) - fixed.keys())
        told = tuple((key, value) for key, value in sorted(chosen.items()) if key in asked)
        for machine, offerings in machines:
            labels = {**machine.labels, **fixed}
            question = (machine.name, told)
            if question not in shared:
                taken, ports = overhead.on(labels, place_values(offerings))
                shared[question] = (taken, machine.allocatable - taken, ports)
            taken, available, ports = shared[question]
            found.append(
                ProvisionerOffering(
                    provisioner=provisioner,
                    instance_type=machine,
                    labels=labels,
                    daemon_requests=taken,
                    available=available,
                    ports=ports,
                    undecided=undecided,
                    offerings=offerings,
                )
            )
    return tuple(found)


def _machines(
    provisioner: Provisioner,
    site: ProvisionerSite,
    instance_types: Sequence[InstanceType],
    unavailable: frozenset[OfferingKey] | None,
) -> list[tuple[InstanceType, tuple[Offering, ...]]]:
    """Return the types a provisioner may buy, as it configures them, with what is to be had."""
    _, of_place = _split(provisioner.requirements)
    places = _allowed_places(of_place, site.zones)
    out: dict[str, set[_Place]] = {}
    for key in () if unavailable is None else unavailable | site.refused:
        out.setdefault(key.instance_type, set()).add((key.zone, key.capacity_type))
    found = []
    for instance_type in types_allowed(provisioner, instance_types):
        if instance_type.name in site.without_image:
            continue
        to_be_had = places.difference(out.get(instance_type.name, ()))
        offerings = tuple(
            offering
            for offering in instance_type.offerings
            if (offering.zone, offering.capacity_type) in to_be_had
        )
        if offerings:
            machine = as_configured(provisioner, instance_type)
            observed = site.observed.get(instance_type.name)
            found.append((apply_observed(machine, observed) if observed else machine, offerings))
    return found


def types_allowed(
    provisioner: Provisioner, instance_types: Iterable[InstanceType]
) -> Iterator[InstanceType]:
    """Yield the instance types that the requirements of a provisioner allow, in the order given."""
    of_type, _ = _split(provisioner.requirements)
    fixed = node_labels(provisioner)
    for instance_type in instance_types:
        if _template_allows(of_type, {**instance_type.labels, **fixed}):
            yield instance_type


def address_warnings(
    provisioner: Provisioner, instance_types: Iterable[InstanceType]
) -> tuple[str, ...]:
    """Return whether `maxPods` is more than some types that may be bought have addresses for."""
    most = provisioner.kubelet.max_pods
    if most is None:
        return ()
    fewer = {
        instance_type.name: instance_type.capacity[PODS]
        for instance_type in types_allowed(provisioner, instance_types)
        if instance_type.capacity[PODS] < most
    }
    if not fewer:
        return ()
    least = min(fewer, key=lambda name: (fewer[name], name))
    verb = "has" if len(fewer) == 1 else "have"
    told = (
        f"maxPods {most}: {len(fewer)} instance type{'s'[: len(fewer) > 1]} it may buy {verb} "
        f"fewer addresses for pods ({least}: {fewer[least]}); pods beyond them do not start: lower "
        "it, or set prefix_delegation or density_limited as the network plugin is"
    )
    return (told,)


def never_with_image(
    template: NodeTemplate, instance_types: Iterable[InstanceType]
) -> frozenset[str]:
    """Return the types that the images a template's family recommends never boot.

    That is all that is known without EC2: which types an image of the user's own boots is not.
    """
    family = FAMILIES.get(template.image_family or template.ami_family)
    if family is None or template.launch_template or template.ami_selector:
        return frozenset()
    return frozenset(
        instance_type.name
        for instance_type in instance_types
        if instance_type.labels.get(keys.INSTANCE_FAMILY) in family.lacks
    )


def as_configured(provisioner: Provisioner, instance_type: InstanceType) -> InstanceType:
    """Return the instance type with the disk and kubelet settings the provisioner gives it."""
    family = FAMILIES.get(provisioner.template.ami_family, FAMILIES[DEFAULT])
    instance_type = apply_disks(instance_type, provisioner.template.block_devices, family)
    if provisioner.template.instance_store:
        instance_type = apply_instance_store(instance_type)
    kubelet = family.understood(with_pod_limit(provisioner.kubelet, instance_type))
    if not provisioner.dialect.soft_eviction_takes_room:
        kubelet = replace(kubelet, eviction_soft={}, eviction_soft_grace_period={})
    if kubelet == KubeletConfiguration():
        return instance_type
    return apply_kubelet(instance_type, kubelet, reserves_for_max_pods=family.reserves_for_max_pods)


def place_labels(offering: Offering) -> dict[str, str]:
    """Return the labels a node gets from the offering it was bought by."""
    return {keys.ZONE: offering.zone, keys.CAPACITY_TYPE: offering.capacity_type.value}


def place_values(offerings: Iterable[Offering]) -> dict[str, frozenset[str]]:
    """Return the values that the place labels of a node may take, by key."""
    places = [place_labels(offering) for offering in offerings]
    return {key: frozenset(place[key] for place in places) for key in PLACE_KEYS}


def free_requirements(provisioner: Provisioner) -> list[Requirement]:
    """Return the requirements on labels of the user's own that leave several values."""
    return [
        requirement
        for requirement in provisioner.requirements
        if requirement.key not in keys.WELL_KNOWN
        and (requirement.complement or len(requirement.values) > 1)
    ]


def _template_allows(requirements: Requirements, labels: Mapping[str, str]) -> bool:
    """A custom key with several values needs no label yet: it is picked when a pod asks."""
    return all(
        requirement.allows(labels.get(requirement.key))
        or (
            requirement.key not in labels
            and requirement.key not in keys.WELL_KNOWN
            and requirement.has_value()
        )
        for requirement in requirements
    )


def _split(requirements: Requirements) -> tuple[Requirements, Requirements]:
    place: list[Requirement] = []
    other: list[Requirement] = []
    for requirement in requirements:
        (place if requirement.key in PLACE_KEYS else other).append(requirement)
    return Requirements(tuple(other)), Requirements(tuple(place))


def _allowed_places(requirements: Requirements, zones: Iterable[str]) -> frozenset[_Place]:
    """Return the zones and capacity types that the requirements allow together."""
    return frozenset(
        (zone, how)
        for zone in zones
        for how in CapacityType
        if requirements.allow_labels({keys.ZONE: zone, keys.CAPACITY_TYPE: how.value})
    )

"""What each Provisioner could launch: instance types as it configures them, and their labels."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Final

from msgspec import Struct

from shared.instance_types.ami_families import DEFAULT, FAMILIES
from shared.instance_types.apply_settings import (
    apply_disks,
    apply_instance_store,
    apply_kubelet,
    apply_observed,
    with_pod_limit,
)
from shared.model import labels as keys
from shared.model.dialect import OwnerKind
from shared.model.ec2.instance_types import CapacityType, InstanceType, Offering, OfferingKey
from shared.model.kubernetes.daemon_sets import DaemonSet
from shared.model.provisioner import KubeletConfiguration, NodeTemplate, Provisioner
from shared.model.requirements import Requirement, Requirements
from shared.model.resources import PODS, Resources
from shared.model.snapshot import ProvisionerSite
from shared.model.values import replace
from shared.planning.rules.daemon_overhead import DaemonOverhead, daemon_keys
from shared.planning.rules.labels_and_taints import Port

PLACE_KEYS: Final = frozenset({keys.ZONE, keys.CAPACITY_TYPE})
_Place = tuple[str, CapacityType]
_name: Final = attrgetter("name")


class ProvisionerOffering(Struct, frozen=True, kw_only=True):
    """One instance type as one Provisioner configures it.

    Attributes:
        labels: Of its nodes, without zone and capacity type.
        available: Allocatable less what DaemonSets will take.
        ports: Host ports that DaemonSets will take.
        undecided: Labels whose values are still open: custom ones that the node must have, and
            those that the cloud controller adds.
        offerings: Those allowed and available, cheapest first, then zone, then capacity type.
    """

    provisioner: Provisioner
    instance_type: InstanceType
    labels: Mapping[str, str]
    daemon_requests: Resources
    available: Resources
    ports: tuple[Port, ...] = ()
    undecided: frozenset[str] = frozenset()
    offerings: tuple[Offering, ...]


def usable_in_order(provisioners: Iterable[Provisioner]) -> tuple[Provisioner, ...]:
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
    labels are left out: the instance determines them, and the Provisioner's only select instances.
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


def provisioner_offerings(
    provisioner: Provisioner,
    site: ProvisionerSite,
    instance_types: Sequence[InstanceType],
    daemonsets: Sequence[DaemonSet],
    *,
    unavailable: frozenset[OfferingKey] | None = frozenset(),
    picks: Sequence[Mapping[str, str]] = ({},),
) -> tuple[ProvisionerOffering, ...]:
    """Return what a Provisioner could launch in the zones of its subnets, by pick, then type name.

    Args:
        instance_types: Sorted by name.
        unavailable: Offerings of which EC2 recently had insufficient capacity: left out, as are
            those that it refuses to this Provisioner; None leaves out neither.
        picks: Values for custom labels of which the Provisioner allows several. The instance types
            are the same for all of them.
    """
    configured_types = _configured_types(provisioner, site, instance_types, unavailable)
    needed = {
        free_requirement.key
        for free_requirement in free_requirements(provisioner)
        if not free_requirement.absent
    }
    deciding_keys = daemon_keys(daemonsets)
    overhead = DaemonOverhead(daemonsets, provisioner.taints)
    shared: dict[tuple[object, ...], tuple[Resources, Resources, tuple[Port, ...]]] = {}
    found = []
    for chosen in picks:
        fixed = {**node_labels(provisioner), **chosen}
        undecided = frozenset((needed | {keys.ZONE_ID}) - fixed.keys())
        deciding_picks = tuple(
            (key, value) for key, value in sorted(chosen.items()) if key in deciding_keys
        )
        for configured_type, offerings in configured_types:
            labels = {**configured_type.labels, **fixed}
            question = (configured_type.name, deciding_picks)
            if question not in shared:
                taken, ports = overhead.on(labels, place_values(offerings))
                shared[question] = (taken, configured_type.allocatable - taken, ports)
            taken, available, ports = shared[question]
            found.append(
                ProvisionerOffering(
                    provisioner=provisioner,
                    instance_type=configured_type,
                    labels=labels,
                    daemon_requests=taken,
                    available=available,
                    ports=ports,
                    undecided=undecided,
                    offerings=offerings,
                )
            )
    return tuple(found)


def _configured_types(
    provisioner: Provisioner,
    site: ProvisionerSite,
    instance_types: Sequence[InstanceType],
    unavailable: frozenset[OfferingKey] | None,
) -> list[tuple[InstanceType, tuple[Offering, ...]]]:
    """Return the types a Provisioner may launch, as configured, with their available offerings."""
    _, of_place = _split(provisioner.requirements)
    places = _allowed_places(of_place, site.zones)
    unavailable_places: dict[str, set[_Place]] = {}
    for key in () if unavailable is None else unavailable | site.refused:
        unavailable_places.setdefault(key.instance_type, set()).add((key.zone, key.capacity_type))
    found = []
    for instance_type in types_allowed(provisioner, instance_types):
        if instance_type.name in site.without_image:
            continue
        available = places.difference(unavailable_places.get(instance_type.name, ()))
        offerings = tuple(
            offering
            for offering in instance_type.offerings
            if (offering.zone, offering.capacity_type) in available
        )
        if offerings:
            configured_type = as_configured(provisioner, instance_type)
            observed = site.observed.get(instance_type.name)
            found.append(
                (
                    apply_observed(configured_type, observed) if observed else configured_type,
                    offerings,
                )
            )
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
    """Return a warning if `maxPods` exceeds the addresses of some types that may be launched."""
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
    warning = (
        f"maxPods {most}: {len(fewer)} instance type{'s'[: len(fewer) > 1]} it may buy {verb} "
        f"fewer addresses for pods ({least}: {fewer[least]}); pods beyond them do not start: lower "
        "it, or set prefix_delegation or density_limited as the network plugin is"
    )
    return (warning,)


def never_with_image(
    template: NodeTemplate, instance_types: Iterable[InstanceType]
) -> frozenset[str]:
    """Return the types that the recommended images of a template's AMI family never boot.

    That is all that is known without EC2: which types a custom image boots is not.
    """
    family = FAMILIES.get(template.image_family or template.ami_family)
    if family is None or template.launch_template or template.ami_selector:
        return frozenset()
    return frozenset(
        instance_type.name
        for instance_type in instance_types
        if instance_type.labels.get(keys.INSTANCE_FAMILY) in family.unsupported_families
    )


def as_configured(provisioner: Provisioner, instance_type: InstanceType) -> InstanceType:
    """Return the instance type with the disk and kubelet settings the provisioner gives it."""
    family = FAMILIES.get(provisioner.template.ami_family, FAMILIES[DEFAULT])
    instance_type = apply_disks(instance_type, provisioner.template.block_devices, family)
    if provisioner.template.instance_store:
        instance_type = apply_instance_store(instance_type)
    kubelet = family.effective_kubelet(with_pod_limit(provisioner.kubelet, instance_type))
    if not provisioner.dialect.counts_soft_eviction:
        kubelet = replace(kubelet, eviction_soft={}, eviction_soft_grace_period={})
    if kubelet == KubeletConfiguration():
        return instance_type
    return apply_kubelet(instance_type, kubelet, reserves_for_max_pods=family.reserves_for_max_pods)


def place_labels(offering: Offering) -> dict[str, str]:
    """Return the labels that a node gets from its offering."""
    return {keys.ZONE: offering.zone, keys.CAPACITY_TYPE: offering.capacity_type.value}


def place_values(offerings: Iterable[Offering]) -> dict[str, frozenset[str]]:
    """Return the values that the place labels of a node may take, by key."""
    places = [place_labels(offering) for offering in offerings]
    return {key: frozenset(place[key] for place in places) for key in PLACE_KEYS}


def free_requirements(provisioner: Provisioner) -> list[Requirement]:
    """Return the requirements on custom labels that leave several values."""
    return [
        requirement
        for requirement in provisioner.requirements
        if requirement.key not in keys.WELL_KNOWN
        and (requirement.complement or len(requirement.values) > 1)
    ]


def _template_allows(requirements: Requirements, labels: Mapping[str, str]) -> bool:
    """Return whether labels meet requirements; a custom key with several values may be open yet."""
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
        (zone, capacity_type)
        for zone in zones
        for capacity_type in CapacityType
        if requirements.allow_labels({keys.ZONE: zone, keys.CAPACITY_TYPE: capacity_type.value})
    )

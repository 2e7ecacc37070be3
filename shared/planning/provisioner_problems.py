"""Whether a Provisioner's requirements can be met, and what in them is probably a mistake."""

from collections.abc import Iterable, Sequence
from typing import Final

from shared.model import labels as keys
from shared.model.dollars_and_counts import first_names
from shared.model.ec2.instance_types import InstanceType
from shared.model.provisioner import Provisioner
from shared.model.requirements import Requirement, Requirements
from shared.model.snapshot import ProvisionerSite
from shared.model.values import replace
from shared.planning.nearest_label import nearest_label, nearest_value
from shared.planning.rules.min_values import describe_missing, missing_values
from shared.planning.rules.provisioner_offerings import (
    PLACE_KEYS,
    ProvisionerOffering,
    place_labels,
    provisioner_offerings,
)

# Values or zones named in a text before the rest is only counted.
_SHOWN: Final = 5
# Why nothing can be launched, if nothing says which subnet is missing.
NO_SUBNET: Final = "no subnet: nothing was found"


def requirement_warnings(
    provisioner: Provisioner, instance_types: Iterable[InstanceType]
) -> tuple[str, ...]:
    """Return what in the requirements is probably a mistake, one line each, in their order.

    A key of a Kubernetes, Karpenter or AWS domain that is a label of no instance type, and that the
    Provisioner's labels do not declare, selects no instances: nodes only get it as a label. The
    same holds for a key that is spelled almost like a well-known one. A value that no instance type
    of the Region has never matches.

    Args:
        instance_types: The whole catalogue; nothing is checked against an empty one.
    """
    catalogue = tuple(instance_types)
    if not catalogue:
        return ()
    found = []
    for requirement in provisioner.requirements:
        if requirement.key not in keys.WELL_KNOWN:
            if requirement.key not in (*provisioner.labels, keys.INSTANCE_TENANCY):
                found += _unknown_key(requirement.key)
        elif not requirement.complement and requirement.key not in keys.OWNER_LABELS:
            found += _unknown_values(requirement, catalogue)
    return tuple(found)


def launch_problem(
    provisioner: Provisioner, site: ProvisionerSite, instance_types: Sequence[InstanceType]
) -> str:
    """Return why no instance of a Provisioner can be launched, empty if one can.

    Args:
        site: The zones its subnets are in, or why there are none.
    """
    if not site.zones:
        return site.reason or NO_SUBNET
    found = provisioner_offerings(provisioner, site, instance_types, ())
    if found:
        return flexibility_problem(provisioner, found)
    bootable = replace(site, without_image=frozenset())
    if site.without_image and provisioner_offerings(provisioner, bootable, instance_types, ()):
        left = "the instance types that its requirements leave"
        return f"its images boot none of {left} in {first_names(site.zones, _SHOWN)}"
    return f"its requirements leave no instance type in {first_names(site.zones, _SHOWN)}"


def flexibility_problem(provisioner: Provisioner, found: Iterable[ProvisionerOffering]) -> str:
    """Return how these offers fall short of the Provisioner's minValues, empty if they do not.

    Args:
        found: What a launch could ask for.
    """
    least = provisioner.least_values
    if not least:
        return ""
    missing = missing_values(
        least,
        (
            {**offer.labels, **place_labels(offering)}
            for offer in found
            for offering in offer.offerings
        ),
    )
    return describe_missing(least, missing) if missing else ""


def excluding_requirement(provisioner: Provisioner, instance_types: Iterable[InstanceType]) -> str:
    """Return the requirement that refuses all of these types, empty if no single one does."""
    chosen_by = keys.WELL_KNOWN - PLACE_KEYS - keys.OWNER_LABELS
    of_type = Requirements.of(
        requirement for requirement in provisioner.requirements if requirement.key in chosen_by
    )
    refusing = None
    for known in instance_types:
        first = of_type.first_refusing(known.labels)
        if first is None or (refusing is not None and first != refusing):
            return ""
        refusing = first
    return "" if refusing is None else refusing.describe()


def _unknown_key(key: str) -> list[str]:
    meant = nearest_label(key, sorted(keys.WELL_KNOWN))
    if not meant and not keys.is_in_known_domain(key):
        return []
    hint = f"; did you mean {meant}?" if meant else ""
    text = "no instance type has this label, so no node meets it"
    return [f"requirement {key}: {text}; nodes get it as a label of your own{hint}"]


def _unknown_values(requirement: Requirement, catalogue: Iterable[InstanceType]) -> list[str]:
    known = {
        labels[requirement.key]
        for instance_type in catalogue
        for labels in (
            (place_labels(offering) for offering in instance_type.offerings)
            if requirement.key in PLACE_KEYS
            else (instance_type.labels,)
        )
        if requirement.key in labels
    }
    unknown = sorted(requirement.values - known)
    if not unknown:
        return []
    meant = nearest_value(unknown[0], sorted(known))
    hint = f"; did you mean {meant}?" if meant else ""
    named = first_names(unknown, _SHOWN)
    return [f"requirement {requirement.key}: no instance type here has {named}{hint}"]

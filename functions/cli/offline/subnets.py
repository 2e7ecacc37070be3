"""Which zones nodes of a plan may be in: as `--zones` or a list of subnets says."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Final

from functions.cli.offline.packing_settings import InvalidSettingError
from shared.catalog.reading import Catalog
from shared.manifests.fields import mapping, mappings, text
from shared.model import labels as keys
from shared.model.ec2.selectors import ANY_VALUE, Selector, SelectorTerm, describe_selector
from shared.model.provisioner import Provisioner
from shared.model.snapshot import ClusterSnapshot, ProvisionerSite

_COMMAND: Final = "aws ec2 describe-subnets"


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenSubnet:
    """A subnet of a list."""

    subnet_id: str
    zone: str
    tags: Mapping[str, str]


def read_zones(given: str, catalog: Catalog) -> tuple[str, ...]:
    """Return the zones of `a,b,c`, each by its name or the letters after the Region's.

    Raises:
        InvalidSettingError: If the catalogue has no prices of one.
    """
    known = _known(catalog)
    names = [part.strip() for part in given.split(",") if part.strip()]
    found = {name if name in known else f"{catalog.region}{name}" for name in names}
    unknown = sorted(found - known)
    if unknown or not found:
        raise InvalidSettingError(
            f"--zones {given}: write zones of the catalogue: {', '.join(sorted(known))}"
        )
    return tuple(sorted(found))


def read_subnets(name: str, content: bytes, catalog: Catalog) -> tuple[GivenSubnet, ...]:
    """Return the subnets of an answer of DescribeSubnets.

    Source: https://docs.aws.amazon.com/cli/latest/reference/ec2/describe-subnets.html (2026-11).

    Raises:
        InvalidSettingError: If it is none, or names no zone that the catalogue has prices of.
    """
    try:
        raw = json.loads(content)
    except ValueError:
        raw = None
    found = tuple(
        GivenSubnet(
            subnet_id=text(subnet.get("SubnetId")),
            zone=text(subnet.get("AvailabilityZone")),
            tags={
                text(tag.get("Key")): text(tag.get("Value")) for tag in mappings(subnet.get("Tags"))
            },
        )
        for subnet in mappings(mapping(raw).get("Subnets"))
    )
    known = _known(catalog)
    if not any(subnet.zone in known for subnet in found):
        raise InvalidSettingError(
            f"--subnets {name}: holds no subnet of {catalog.region}, whose prices these are; write "
            f"the output of `{_COMMAND} --output json`"
        )
    return found


def within_zones(snapshot: ClusterSnapshot, zones: tuple[str, ...]) -> ClusterSnapshot:
    """Return the snapshot in which every owner has subnets in these zones alone."""
    return replace(snapshot, sites=tuple(replace(site, zones=zones) for site in snapshot.sites))


def within_subnets(
    snapshot: ClusterSnapshot, subnets: Sequence[GivenSubnet], catalog: Catalog
) -> ClusterSnapshot:
    """Return the snapshot in which each owner has those subnets that it selects.

    One that selects by the tag of its cluster, whose name no manifest has, has them all.
    """
    owners = {owner.name: owner for owner in snapshot.provisioners}
    known = _known(catalog)

    def narrowed(site: ProvisionerSite) -> ProvisionerSite:
        selector = owners[site.provisioner].template.subnet_selector
        selected = [subnet for subnet in subnets if not selector or _selects(selector, subnet)]
        zones = tuple(sorted({subnet.zone for subnet in selected} & known))
        wanted = describe_selector(selector)
        return replace(site, zones=zones, reason="" if zones else f"no subnet is found by {wanted}")

    return replace(snapshot, sites=tuple(map(narrowed, snapshot.sites)))


def on_zones(owners: Iterable[Provisioner], catalog: Catalog) -> str:
    """Return which owners are planned for in all zones for want of subnets; empty for none."""
    silent = [
        f"{owner.kind} {owner.name}"
        for owner in owners
        if all(asked.complement for asked in owner.requirements if asked.key == keys.ZONE)
    ]
    if not silent:
        return ""
    zones = ", ".join(sorted(_known(catalog)))
    return (
        f"subnets are not known here: nodes of {', '.join(silent)} may be in any zone ({zones}); "
        f"say which there are with --zones a,b,c, or --subnets FILE as `{_COMMAND}` writes it"
    )


def _known(catalog: Catalog) -> set[str]:
    return {way.zone for kind in catalog.instance_types for way in kind.offerings}


def _selects(selector: Selector, subnet: GivenSubnet) -> bool:
    return any(_meets(term, subnet) for term in selector)


def _meets(term: SelectorTerm, subnet: GivenSubnet) -> bool:
    """Return whether EC2 finds a subnet by the filters of a term.

    Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Filtering.html (wildcards;
    2026-11).
    """
    if term.ids and not any(_like(subnet.subnet_id, wanted) for wanted in term.ids):
        return False
    return all(
        name in subnet.tags
        and (values == (ANY_VALUE,) or any(_like(subnet.tags[name], value) for value in values))
        for name, values in term.tags.items()
    )


def _like(value: str, pattern: str) -> bool:
    """Return whether a value matches that of a filter; EC2 has no ranges in brackets."""
    return fnmatchcase(value, pattern.replace("[", "[[]"))

"""The zones that nodes of a plan may be in, from `--zones` or a list of subnets."""

import json
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final

from msgspec import Struct

from functions.cli.input_error import InvalidSettingError
from functions.cli.plan.reading.assumed_zones import zones_not_assumed
from shared.instance_types.catalog import Catalog
from shared.manifests.raw_json import mapping, mappings, text
from shared.model import labels as keys
from shared.model.ec2.selectors import ANY_VALUE, Selector, SelectorTerm, describe_selector
from shared.model.snapshot import ClusterSnapshot, ProvisionerSite
from shared.model.values import replace

_COMMAND: Final = "aws ec2 describe-subnets"


class ListedSubnet(Struct, frozen=True, kw_only=True):
    """A subnet in the output of DescribeSubnets."""

    subnet_id: str
    zone: str
    tags: Mapping[str, str]


def read_zones(given: str, catalog: Catalog) -> tuple[str, ...]:
    """Return the zones of `a,b,c`, each a zone name or the letters after the Region's name.

    Raises:
        InvalidSettingError: If the catalogue has no prices of one.
    """
    known = _catalog_zones(catalog)
    names = [part.strip() for part in given.split(",") if part.strip()]
    found = {name if name in known else f"{catalog.region}{name}" for name in names}
    unknown = sorted(found - known)
    if unknown or not found:
        raise InvalidSettingError(
            f"--zones {given}: write zones of the catalogue: {', '.join(sorted(known))}"
        )
    return tuple(sorted(found))


def read_subnets(name: str, content: bytes, catalog: Catalog) -> tuple[ListedSubnet, ...]:
    """Return the subnets in the output of DescribeSubnets.

    Source: https://docs.aws.amazon.com/cli/latest/reference/ec2/describe-subnets.html (2026-11).

    Raises:
        InvalidSettingError: If it is not such output, or has no zone that the catalogue has prices
            of.
    """
    try:
        raw = json.loads(content)
    except ValueError:
        raw = None
    found = tuple(
        ListedSubnet(
            subnet_id=text(subnet.get("SubnetId")),
            zone=text(subnet.get("AvailabilityZone")),
            tags={
                text(tag.get("Key")): text(tag.get("Value")) for tag in mappings(subnet.get("Tags"))
            },
        )
        for subnet in mappings(mapping(raw).get("Subnets"))
    )
    known = _catalog_zones(catalog)
    if not any(subnet.zone in known for subnet in found):
        raise InvalidSettingError(
            f"--subnets {name}: holds no subnet of {catalog.region}, whose prices these are; write "
            f"the output of `{_COMMAND} --output json`"
        )
    return found


def within_zones(snapshot: ClusterSnapshot, zones: tuple[str, ...]) -> ClusterSnapshot:
    """Return the snapshot in which every owner has subnets in these zones only."""
    return replace(snapshot, sites=tuple(replace(site, zones=zones) for site in snapshot.sites))


def within_subnets(
    snapshot: ClusterSnapshot, subnets: Sequence[ListedSubnet], catalog: Catalog
) -> ClusterSnapshot:
    """Return the snapshot in which each owner has the subnets that it selects.

    An owner without a selector, which means the cluster's tag, has them all: no manifest has the
    cluster's name.
    """
    owners = {owner.name: owner for owner in snapshot.provisioners}
    known = _catalog_zones(catalog)

    def restricted(site: ProvisionerSite) -> ProvisionerSite:
        selector = owners[site.provisioner].template.subnet_selector
        selected = [subnet for subnet in subnets if not selector or _selects(selector, subnet)]
        zones = tuple(sorted({subnet.zone for subnet in selected} & known))
        wanted = describe_selector(selector)
        return replace(site, zones=zones, reason="" if zones else f"no subnet is found by {wanted}")

    return replace(snapshot, sites=tuple(map(restricted, snapshot.sites)))


def within_node_zones(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """Return the snapshot in which owners have subnets in the zones of its nodes.

    If no node names its zone, the snapshot stays as it is.
    """
    return within_zones(snapshot, zones) if (zones := node_zones(snapshot)) else snapshot


def node_zones(snapshot: ClusterSnapshot) -> tuple[str, ...]:
    """Return the zones that nodes name, sorted."""
    return tuple(
        sorted({node.labels[keys.ZONE] for node in snapshot.nodes if keys.ZONE in node.labels})
    )


def within_assumed_zones(
    snapshot: ClusterSnapshot, catalog: Catalog, notes: list[str]
) -> ClusterSnapshot:
    """Return the snapshot with the zones that are assumed where subnets are not known.

    These are all zones of the catalogue, unless an owner names zones. Those where an owner could
    launch only bare metal or accelerators that no pod asks for are left out. Notes say so.
    """
    silent = {
        owner.name: f"{owner.kind} {owner.name}"
        for owner in snapshot.provisioners
        if all(
            requirement.complement
            for requirement in owner.requirements
            if requirement.key == keys.ZONE
        )
    }
    if not silent:
        return snapshot
    zones = ", ".join(sorted(_catalog_zones(catalog)))
    notes.append(
        f"subnets are not known here: nodes of {', '.join(silent.values())} may be in any zone "
        f"({zones}); say which there are with --zones a,b,c, or --subnets FILE as `{_COMMAND}` "
        "writes it"
    )
    left_out = {
        name: zones for name, zones in zones_not_assumed(snapshot).items() if name in silent
    }
    notes += [
        f"{silent[name]}: not in {', '.join(zones)}, where it could launch only bare metal or "
        "accelerators that no pod asks for; name such a zone with --zones to have it"
        for name, zones in left_out.items()
    ]
    return replace(
        snapshot,
        sites=tuple(
            replace(
                site,
                zones=tuple(
                    zone for zone in site.zones if zone not in left_out.get(site.provisioner, ())
                ),
            )
            for site in snapshot.sites
        ),
    )


def _catalog_zones(catalog: Catalog) -> set[str]:
    return {
        offering.zone
        for instance_type in catalog.instance_types
        for offering in instance_type.offerings
    }


def _selects(selector: Selector, subnet: ListedSubnet) -> bool:
    return any(_meets(term, subnet) for term in selector)


def _meets(term: SelectorTerm, subnet: ListedSubnet) -> bool:
    """Return whether EC2 would find a subnet by the filters of a term.

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
    """Return whether a value matches a filter's value; EC2 has no ranges in brackets."""
    return fnmatchcase(value, pattern.replace("[", "[[]"))

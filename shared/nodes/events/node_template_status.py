"""Resolves what Provisioners and NodePools select in EC2 into the status of their templates."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct, field

from shared.instance_types.ami_families import DEFAULT, family_of
from shared.model.dialect import V1ALPHA5, Dialect, OwnerKind
from shared.model.ec2.image_table import ImageTable
from shared.model.ec2.instance_types import InstanceType
from shared.model.ec2.selectors import Selector, SelectorTerm, describe_selector
from shared.model.errors import PermanentError
from shared.model.provisioner import InvalidProvisioner, Provisioner
from shared.model.snapshot import ProvisionerSite
from shared.model.values import replace
from shared.nodes.events.status_writes import write_status
from shared.planning.provisioner_problems import launch_problem, requirement_warnings
from shared.ports import ClusterPorts, FoundImage, Site, TemplateStatus
from shared.snapshot.gather import role_problem, site_of
from shared.snapshot.images import (
    ACCELERATORS,
    accelerators_of_images,
    as_read,
    demanded_labels,
    no_image,
    resolve_images,
)


class ResolvedTemplate(Struct, frozen=True, kw_only=True):
    """What the selectors and the requirements of a Provisioner or NodePool match.

    Attributes:
        accelerators: AMI id to the labels of accelerators of instances that boot it.
        problems: Why no instance can be launched, for people; empty for nothing.
        offering_problem: Why no offering can be requested, empty when one can.
        unsupported_alias: Whether it names images that the cluster's version does not have.
        dialect: Dialect of the Provisioner or NodePool.
    """

    site: Site
    images: ImageTable
    accelerators: Mapping[str, Collection[tuple[str, ...]]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    offering_problem: str = ""
    unsupported_alias: bool = False
    dialect: Dialect = V1ALPHA5

    @property
    def problem(self) -> str:
        """Why nothing can be launched, empty when something can."""
        return "; ".join(self.problems) or self.offering_problem


def resolve_templates(
    ports: ClusterPorts, provisioners: Sequence[Provisioner]
) -> dict[str, ResolvedTemplate]:
    """Return what each Provisioner selects, by its name.

    One whose selectors may not be read has the error among its problems.
    """
    instance_types = ports.catalog.instance_types() if provisioners else ()
    return {owner.name: _resolve(ports, owner, instance_types) for owner in provisioners}


def write_template_statuses(
    ports: ClusterPorts,
    provisioners: Sequence[Provisioner],
    invalid: Sequence[InvalidProvisioner],
    resolved: Mapping[str, ResolvedTemplate],
) -> None:
    """Write the status of AWSNodeTemplates that a Provisioner names, and of all EC2NodeClasses.

    In shadow mode EC2NodeClasses are not written: they may belong to another autoscaler.

    Args:
        provisioners: The usable Provisioners and NodePools.
        invalid: Those that cannot be used.
        resolved: What each of `provisioners` selects, by name.
    """
    for invalid_provisioner in invalid:
        if invalid_provisioner.template and invalid_provisioner.kind == OwnerKind.PROVISIONER:
            write_status(
                ports.cluster.set_template_status,
                invalid_provisioner.template,
                TemplateStatus(problems=invalid_provisioner.reasons, invalid=True),
            )
    named = {
        owner.template.name: owner
        for owner in provisioners
        if owner.template.name and owner.kind == OwnerKind.PROVISIONER
    }
    for name, owner in sorted(named.items()):
        found = _status(ports, resolved[owner.name])
        write_status(ports.cluster.set_template_status, name, found)
    if not ports.brakes.shadow:
        _write_class_statuses(ports, provisioners, resolved)


def _write_class_statuses(
    ports: ClusterPorts,
    provisioners: Sequence[Provisioner],
    resolved: Mapping[str, ResolvedTemplate],
) -> None:
    known = {
        owner.template.name: resolved[owner.name]
        for owner in provisioners
        if owner.kind == OwnerKind.NODE_POOL
    }
    for node_class in ports.cluster.node_classes():
        if node_class.problems:
            status = TemplateStatus(problems=node_class.problems, invalid=True)
        else:
            alone = Provisioner(
                name=node_class.name, kind=OwnerKind.NODE_POOL, template=node_class.template
            )
            found = known.get(node_class.name) or _resolve(
                ports, alone, ports.catalog.instance_types()
            )
            profile = ports.profile_of(node_class.template)
            status = replace(_status(ports, found), instance_profile=profile)
        write = ports.cluster.set_template_status
        write_status(write, node_class.name, status, OwnerKind.NODE_POOL)


def _resolve(
    ports: ClusterPorts, owner: Provisioner, instance_types: Sequence[InstanceType]
) -> ResolvedTemplate:
    own_template = bool(owner.template.launch_template)
    try:
        site = site_of(ports, owner)
        version = ports.cloud.endpoint().version
        images = resolve_images(ports.cloud, owner.template, version, instance_types, owner.dialect)
    except PermanentError as error:
        nowhere = Site(subnets=(), security_groups=())
        return ResolvedTemplate(site=nowhere, images=ImageTable(), problems=(str(error),))
    discontinued = "" if own_template or images.ids else _discontinued(owner, version)
    zones = tuple(sorted({subnet.zone for subnet in site.subnets}))
    found = ProvisionerSite(
        provisioner=owner.name, zones=zones, without_image=images.lacks(instance_types)
    )
    return ResolvedTemplate(
        site=site,
        dialect=owner.dialect,
        images=images,
        accelerators=accelerators_of_images(owner.template, images, instance_types),
        problems=tuple(_problems(ports, owner, site, images, discontinued)),
        unsupported_alias=bool(discontinued),
        offering_problem=_offering_problem(owner, found, instance_types),
    )


def _offering_problem(
    owner: Provisioner, site: ProvisionerSite, catalogue: Sequence[InstanceType]
) -> str:
    """Return why no offering can be requested, with probable misspellings; else empty."""
    problem = launch_problem(owner, site, catalogue)
    return "; ".join((problem, *requirement_warnings(owner, catalogue))) if problem else ""


def _status(ports: ClusterPorts, resolved: ResolvedTemplate) -> TemplateStatus:
    subnets = sorted(
        resolved.site.subnets, key=lambda subnet: (-subnet.free_addresses, subnet.subnet_id)
    )
    return TemplateStatus(
        subnets=tuple(subnets),
        security_groups=tuple(sorted(resolved.site.security_groups)),
        images=tuple(_found(ports, resolved)),
        problems=resolved.problems,
        unsupported_alias=resolved.unsupported_alias,
    )


def _found(ports: ClusterPorts, resolved: ResolvedTemplate) -> Iterator[FoundImage]:
    """Yield each image, once for each set of accelerators that it is for."""
    wanted = tuple(sorted(set(resolved.images.ids.values())))
    for image in ports.cloud.find_images((SelectorTerm(ids=wanted),)) if wanted else ():
        found = FoundImage(
            image_id=image.image_id,
            name=image.name,
            labels=demanded_labels(as_read(image, resolved.dialect)),
            deprecated=image.deprecated,
        )
        kinds = resolved.accelerators.get(image.image_id)
        if not kinds:
            yield found
        for has in sorted(kinds or ()):
            yield replace(found, has=has, lacks=() if has else ACCELERATORS)


def _discontinued(owner: Provisioner, version: str) -> str:
    """Return the problem that the family has no images for the cluster's version, else empty."""
    template = owner.template
    family = family_of(template.image_family or template.ami_family)
    if template.ami_selector or not family.is_discontinued(version):
        return ""
    return (
        f"{family.name} has no images for Kubernetes {version}: the last version with some is "
        f"1.{family.last_kubernetes_minor}; use those of {DEFAULT}"
    )


def _problems(
    ports: ClusterPorts, owner: Provisioner, site: Site, table: ImageTable, discontinued: str
) -> list[str]:
    """Return why no instance can be launched.

    A user's own launch template has security groups and image.

    Args:
        discontinued: The problem that the family has no images for the cluster's version, else
            empty.
    """
    own, fields = bool(owner.template.launch_template), owner.dialect.selectors
    missing = []
    if not site.subnets:
        chosen = _with(owner.template.subnet_selector)
        missing.append(f"{fields.subnets} finds no subnet{chosen}")
    if not own and not site.security_groups:
        chosen = _with(owner.template.security_group_selector)
        missing.append(f"{fields.security_groups} finds no security group{chosen}")
    if not own and not table.ids:
        missing.append(discontinued or no_image(owner.dialect))
    if problem := role_problem(ports, owner.template):
        missing.append(problem)
    return missing


def _with(selector: Selector) -> str:
    return f" with {describe_selector(selector)}" if selector else ""

"""What each AWSNodeTemplate stands for now: written into its status, for people."""

from collections.abc import Sequence

from shared.model.errors import PermanentError
from shared.model.instance_types import InstanceType
from shared.model.provisioner import Provisioner
from shared.model.snapshot import InvalidProvisioner
from shared.ports import ClusterPorts, FoundImage, Site, TemplateStatus
from shared.services.gathering import site_of
from shared.services.machine_image import ImageTable, demanded_labels, resolve_images


def write_template_statuses(
    ports: ClusterPorts,
    provisioners: Sequence[Provisioner],
    invalid: Sequence[InvalidProvisioner],
) -> None:
    """Resolve each AWSNodeTemplate that a Provisioner names, and say what came of it.

    One that is wrong or cannot be resolved says why; the others are served.

    Args:
        provisioners: Those that can be used.
        invalid: Those that cannot.
    """
    for one in invalid:
        if one.template:
            ports.cluster.set_template_status(one.template, TemplateStatus(problems=one.reasons))
    of_template = {one.template.name: one for one in provisioners if one.template.name}
    if not of_template:
        return
    instance_types = ports.catalog.instance_types()
    for name, provisioner in sorted(of_template.items()):
        try:
            status = _status(ports, provisioner, instance_types)
        except PermanentError as error:
            status = TemplateStatus(problems=(str(error),))
        ports.cluster.set_template_status(name, status)


def _status(
    ports: ClusterPorts, provisioner: Provisioner, instance_types: Sequence[InstanceType]
) -> TemplateStatus:
    template = provisioner.template
    site = site_of(ports, provisioner)
    version = ports.cloud.endpoint().version
    table = resolve_images(ports.cloud, template, version, instance_types)
    return TemplateStatus(
        subnets=tuple(sorted(site.subnets, key=lambda one: (-one.free_addresses, one.subnet_id))),
        security_groups=tuple(sorted(site.security_groups)),
        images=_found(ports, table),
        problems=tuple(_problems(site, table, own=bool(template.launch_template))),
    )


def _found(ports: ClusterPorts, table: ImageTable) -> tuple[FoundImage, ...]:
    wanted = ",".join(sorted(set(table.ids.values())))
    if not wanted:
        return ()
    return tuple(
        FoundImage(image_id=one.image_id, name=one.name, labels=demanded_labels(one))
        for one in ports.cloud.find_images({"aws-ids": wanted})
    )


def _problems(site: Site, table: ImageTable, *, own: bool) -> list[str]:
    """Return why no machine can be made; a launch template of the user's own has the rest."""
    missing = []
    if not site.subnets:
        missing.append("subnetSelector finds no subnet")
    if not own and not site.security_groups:
        missing.append("securityGroupSelector finds no security group")
    if not own and not table.ids:
        missing.append("no image is found: amiSelector finds none, or the family has none for us")
    return missing

"""From a launch template and an override to instances that look like both say."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from moto.ec2.exceptions import EC2ClientError
from moto.iam.exceptions import NotFoundException
from moto.iam.models import iam_backends
from moto.ssm.models import ssm_backends

from infra.local.aws.ec2 import type_facts
from infra.local.aws.ec2.capacity import SPOT, Refusal

_DEFAULT_DISK_GIB: Final = 20
_SSM_PREFIX: Final = "resolve:ssm:"

Tags = Mapping[str, Mapping[str, str]]
"""Tags by resource type: `instance`, `volume`, ..."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """One version of a launch template, as a fleet uses it.

    Attributes:
        specification: what the answer repeats: id and resolved version.
        launch: LaunchTemplateData.
    """

    specification: Mapping[str, str]
    launch: Mapping[str, Any]


def find_template(backend: Any, specification: Mapping[str, Any]) -> Template:
    """Look a launch template up.

    Raises:
        EC2ClientError: it, or its version, does not exist, or neither id nor name is given.
    """
    if specification.get("LaunchTemplateId"):
        template = backend.get_launch_template(specification["LaunchTemplateId"])
    elif specification.get("LaunchTemplateName"):
        template = backend.get_launch_template_by_name(specification["LaunchTemplateName"])
    else:
        raise EC2ClientError(
            "InvalidParameterValue", "A launch template needs LaunchTemplateId or its name."
        )
    version = template.get_version(specification.get("Version") or "$Default")
    answer = {"LaunchTemplateId": template.id, "Version": str(version.number)}
    if specification.get("LaunchTemplateName"):
        answer = {
            "LaunchTemplateName": template.name,
            "Version": str(version.number),
            "LaunchTemplateId": template.id,
        }
    return Template(specification=answer, launch=version.data)


def resolve_image(backend: Any, image_id: str) -> str:
    """Follow `resolve:ssm:NAME` to an AMI id; other ids are returned as they are."""
    if not image_id.startswith(_SSM_PREFIX):
        return image_id
    name = image_id.removeprefix(_SSM_PREFIX)
    parameter = ssm_backends[backend.account_id][backend.region_name].get_parameter(name)
    return parameter.value if parameter else image_id


def template_refusal(backend: Any, template: Template) -> Refusal | None:
    """Why nothing can be launched from a template: a group, profile or AMI that is missing."""
    launch = template.launch
    for group in launch.get("SecurityGroupIds") or ():
        if backend.get_security_group_from_id(group) is None:
            return Refusal(
                code="InvalidGroup.NotFound",
                message=f"The security group '{group}' does not exist",
            )
    try:
        profile(backend, launch.get("IamInstanceProfile"))
    except NotFoundException:
        return Refusal(
            code="InvalidParameterValue",
            message=f"Invalid IAM Instance Profile: {dict(launch['IamInstanceProfile'])}",
        )
    return None


def image_refusal(backend: Any, image_id: str, instance_type: str) -> Refusal | None:
    """Why an AMI does not run on a type."""
    image = backend.amis.get(image_id)
    if image is None:
        return Refusal(
            code="InvalidAMIID.NotFound", message=f"The image id '[{image_id}]' does not exist"
        )
    supported = type_facts.architectures(instance_type)
    if image.architecture and image.architecture not in supported:
        return Refusal(
            code="InvalidParameterValue",
            message=(
                f"The architecture '{','.join(supported)}' of the specified instance type does "
                f"not match the architecture '{image.architecture}' of the specified AMI."
            ),
        )
    return None


def profile(backend: Any, wanted: Mapping[str, str] | None) -> dict[str, str] | None:
    """The instance profile as DescribeInstances shows it.

    Raises:
        NotFoundException: there is no such profile.
    """
    if not wanted:
        return None
    iam = iam_backends[backend.account_id][backend.partition]
    name = wanted["Arn"].rsplit("/", maxsplit=1)[-1] if wanted.get("Arn") else wanted["Name"]
    found = iam.get_instance_profile(name)
    return {"Arn": found.arn, "Id": found.id}


def tags_of(specifications: Sequence[Mapping[str, Any]] | None) -> dict[str, dict[str, str]]:
    """Turn TagSpecifications into tags by resource type."""
    tags: dict[str, dict[str, str]] = {}
    for specification in specifications or ():
        own = tags.setdefault(specification["ResourceType"], {})
        own.update({tag["Key"]: tag.get("Value", "") for tag in specification.get("Tags", ())})
    return tags


def _disks(mappings: Sequence[Mapping[str, Any]] | None) -> list[dict[str, Any]]:
    disks = []
    for mapping in mappings or ():
        if "Ebs" not in mapping:
            continue
        disk = dict(mapping["Ebs"])
        if not disk.get("VolumeSize") and not disk.get("SnapshotId"):
            disk["VolumeSize"] = _DEFAULT_DISK_GIB
        disk.setdefault("DeleteOnTermination", True)
        disks.append({**mapping, "Ebs": disk})
    return disks


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """`count` machines of one pool, asked for by one fleet."""

    template: Template
    override: Mapping[str, Any]
    subnet_id: str
    capacity_type: str
    count: int
    fleet_id: str
    request_tags: Tags


def launch(backend: Any, wanted: Launch) -> tuple[str, ...]:
    """Launch the machines of one pool; return their ids in launch order.

    Template and override were checked before: this must not fail.
    """
    data, override = wanted.template.launch, wanted.override
    monitored = (data.get("Monitoring") or {}).get("Enabled")
    keywords: dict[str, Any] = {
        "instance_type": override["InstanceType"],
        "is_instance_type_default": False,
        "region_name": backend.region_name,
        "subnet_id": wanted.subnet_id,
        "key_name": data.get("KeyName"),
        "security_group_ids": list(data.get("SecurityGroupIds") or ()),
        "ebs_optimized": bool(data.get("EbsOptimized")),
        "monitoring_state": "enabled" if monitored else "disabled",
        "metadata_options": dict(data.get("MetadataOptions") or {}),
        "iam_instance_profile": profile(backend, data.get("IamInstanceProfile")),
        "instance_market_options": SPOT if wanted.capacity_type == SPOT else None,
    }
    disks = _disks(data.get("BlockDeviceMappings"))
    if disks:
        keywords["block_device_mappings"] = disks
    image_id = resolve_image(backend, override.get("ImageId") or data.get("ImageId") or "")
    user_data = data.get("UserData")
    reservation = backend.run_instances(image_id, wanted.count, user_data, [], **keywords)
    tags = _merged_tags(wanted.template, wanted.request_tags, wanted.fleet_id)
    for instance in reservation.instances:
        _dress(backend, instance, tags)
    return tuple(instance.id for instance in reservation.instances)


def _merged_tags(
    template: Template, request_tags: Tags, fleet_id: str
) -> dict[str, dict[str, str]]:
    """Tags of the template, then of the request, then those that EC2 adds."""
    tags = tags_of(template.launch.get("TagSpecifications"))
    for kind, own in request_tags.items():
        tags.setdefault(kind, {}).update(own)
    tags.setdefault("instance", {}).update(
        {
            "aws:ec2:fleet-id": fleet_id,
            "aws:ec2launchtemplate:id": template.specification["LaunchTemplateId"],
            "aws:ec2launchtemplate:version": template.specification["Version"],
        }
    )
    return tags


def _dress(backend: Any, instance: Any, tags: Tags) -> None:
    """Put tags on an instance and its parts; the index is written directly, for speed."""
    backend.tags[instance.id].update(tags["instance"])
    if tags.get("volume"):
        for _, device in instance.get_block_device_mapping:
            backend.tags[device.volume_id].update(tags["volume"])
    if tags.get("network-interface"):
        for interface in instance.nics.values():
            backend.tags[interface.id].update(tags["network-interface"])
    if instance.lifecycle == SPOT:
        digest = hashlib.sha256(instance.id.encode()).hexdigest()
        instance.spot_instance_request_id = f"sir-{digest[:8]}"

"""The account of the emulator as a launch sees it, and instances that look as it says."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from moto.ec2.exceptions import InvalidSubnetIdError
from moto.iam.exceptions import NotFoundException
from moto.iam.models import iam_backends
from moto.ssm.models import ssm_backends

from infra.local.aws.ec2.catalog import type_facts
from infra.local.aws.ec2.catalog.price_book import PriceBook
from infra.local.ec2.account import Account, Launch, Place, Tags, Template, TypeFacts, tags_of
from infra.local.ec2.allocation import pool_depth
from infra.local.ec2.pools import SPOT, PoolKey
from infra.local.ec2.refusals import ApiError

_DEFAULT_DISK_GIB: Final = 20
_SSM_PREFIX: Final = "resolve:ssm:"


class EmulatedAccount(Account):
    """What the emulator holds in one Region."""

    def __init__(self, backend: Any, book: PriceBook) -> None:
        super().__init__()
        self._backend = backend
        self._book = book

    def template(self, specification: Mapping[str, Any]) -> Template:
        backend = self._backend
        if specification.get("LaunchTemplateId"):
            template = backend.get_launch_template(specification["LaunchTemplateId"])
        elif specification.get("LaunchTemplateName"):
            template = backend.get_launch_template_by_name(specification["LaunchTemplateName"])
        else:
            text = "A launch template needs LaunchTemplateId or its name."
            raise ApiError("InvalidParameterValue", text)
        version = template.get_version(specification.get("Version") or "$Default")
        answer = {"LaunchTemplateId": template.id, "Version": str(version.number)}
        if specification.get("LaunchTemplateName"):
            answer["LaunchTemplateName"] = template.name
        return Template(specification=answer, launch=version.data)

    def launch(self, launch: Launch) -> Iterable[str]:
        """Make the instances; `lifecycle` admits them to the model."""
        return make_instances(self._backend, launch)

    def place(self, subnet_id: str) -> Place | None:
        try:
            found = self._backend.get_subnet(subnet_id)
        except InvalidSubnetIdError:
            return None
        return Place(
            subnet_id=subnet_id,
            zone=found.availability_zone,
            free_addresses=found.available_ip_address_count,
            vpc_id=found.vpc_id,
        )

    def default_subnet(self, zone: str | None) -> str | None:
        found: dict[str, Any] = self._backend.get_default_subnets()
        names = [zone] if zone else sorted(found)
        return next((str(found[name].id) for name in names if name in found), None)

    def group_vpc(self, group_id: str) -> str | None:
        found = self._backend.get_security_group_from_id(group_id)
        return None if found is None else str(found.vpc_id)

    def profile_age(self, profile: Mapping[str, str]) -> timedelta | None:
        try:
            found = find_profile(self._backend, profile)
        except NotFoundException:
            return None
        now = datetime.now(UTC).replace(tzinfo=None)
        age: timedelta = now - found.create_date.replace(tzinfo=None)
        return age

    def profile_without_role(self, profile: Mapping[str, str]) -> str:
        found = find_profile(self._backend, profile)
        return "" if found.roles else str(found.arn)

    def architecture(self, image_id: str) -> str | None:
        image = self._backend.amis.get(resolve_image(self._backend, image_id))
        return None if image is None else image.architecture or ""

    def facts(self, instance_type: str) -> TypeFacts | None:
        if not type_facts.known(instance_type):
            return None
        return TypeFacts(
            vcpus=type_facts.vcpus(instance_type),
            architectures=type_facts.architectures(instance_type),
            zones=type_facts.zones_of(self._backend.region_name, instance_type),
            spot=SPOT in type_facts.usage_classes(instance_type),
        )

    def price(self, pool: PoolKey) -> int:
        return self._book.price(*pool)

    def depth(self, instance_type: str, zone: str) -> int:
        return pool_depth(instance_type, zone)


def resolve_image(backend: Any, image_id: str) -> str:
    """Follow `resolve:ssm:NAME` to an AMI id; other ids are returned as they are."""
    if not image_id.startswith(_SSM_PREFIX):
        return image_id
    name = image_id.removeprefix(_SSM_PREFIX)
    parameter = ssm_backends[backend.account_id][backend.region_name].get_parameter(name)
    return parameter.value if parameter else image_id


def find_profile(backend: Any, wanted: Mapping[str, str]) -> Any:
    """Return an instance profile."""
    iam = iam_backends[backend.account_id][backend.partition]
    name = wanted["Arn"].rsplit("/", maxsplit=1)[-1] if wanted.get("Arn") else wanted["Name"]
    return iam.get_instance_profile(name)


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


def make_instances(backend: Any, wanted: Launch) -> tuple[str, ...]:
    """Launch the instances of one pool; return their ids in launch order.

    Template and override were checked before: this must not fail.
    """
    option = wanted.option
    data, override = option.template.launch, option.override
    profile = data.get("IamInstanceProfile")
    found = find_profile(backend, profile) if profile else None
    monitored = (data.get("Monitoring") or {}).get("Enabled")
    keywords: dict[str, Any] = {
        "instance_type": override["InstanceType"],
        "is_instance_type_default": False,
        "region_name": backend.region_name,
        "subnet_id": option.subnet_id,
        "key_name": data.get("KeyName"),
        "security_group_ids": list(option.template.groups),
        "ebs_optimized": bool(data.get("EbsOptimized")),
        "monitoring_state": "enabled" if monitored else "disabled",
        "metadata_options": dict(data.get("MetadataOptions") or {}),
        "iam_instance_profile": {"Arn": found.arn, "Id": found.id} if found else None,
        "instance_market_options": SPOT if wanted.pool[2] == SPOT else None,
    }
    disks = _disks(data.get("BlockDeviceMappings"))
    if disks:
        keywords["block_device_mappings"] = disks
    image_id = resolve_image(backend, override.get("ImageId") or data.get("ImageId") or "")
    user_data = data.get("UserData")
    reservation = backend.run_instances(image_id, wanted.count, user_data, [], **keywords)
    tags = _merged_tags(option.template, wanted.request_tags, wanted.fleet_id)
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

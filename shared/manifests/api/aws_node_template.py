"""AWSNodeTemplates, and the block `provider` of a Provisioner: how instances are launched.

Source: https://karpenter.sh/v0.31/concepts/node-templates/ (2023-09),
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html (2026-08).
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import Annotated, Any, ClassVar, Final, Self

from pydantic import (
    AfterValidator,
    Field,
    PlainValidator,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from shared.manifests.api.parts import (
    QUANTITY,
    AllowedValues,
    CustomResource,
    CustomResourceDefinition,
    Fault,
    Int64,
    Part,
    PrinterColumn,
    Schema,
    ValidationRule,
    refuse,
)
from shared.manifests.api.selector_map import (
    ImageSelectorMap,
    SecurityGroupSelectorMap,
    SubnetSelectorMap,
    image_selector_of,
    selector_of,
)
from shared.manifests.api.status import TEXT, object_list, status_conditions
from shared.model.ec2.pod_disks import pod_disk
from shared.model.errors import InvalidManifestError
from shared.model.provisioner import (
    AMI_FAMILIES,
    AMI_FAMILY_WITHOUT_IMAGE,
    BlockDevice,
    MetadataOptions,
    NodeTemplate,
)
from shared.model.quantity import parse_quantity

# Raises InvalidManifestError when an AMI family cannot read a user's user data.
UserDataCheck = Callable[[str, str], object]

# The fields that a user's own launch template replaces.
WITHOUT_LAUNCH_TEMPLATE: Final = (
    "amiFamily",
    "amiSelector",
    "blockDeviceMappings",
    "detailedMonitoring",
    "instanceProfile",
    "metadataOptions",
    "securityGroupSelector",
    "userData",
)
_RESTRICTED_TAGS: Final = re.compile(
    r"(karpenter\.sh/(provisioner-name|managed-by)\Z|kubernetes\.io/cluster/|dovetail\.dev/|(?i:aws:))"
)
# EC2 accepts 50; the others are for tags that a launch and a migration add.
# Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html (2026-11).
_MOST_TAGS: Final = 41
_GIB: Final = 2**30
_DEFAULT_OPTIONS: Final = MetadataOptions()


def checked_tags(restricted: re.Pattern[str], given: dict[str, str]) -> dict[str, str]:
    """Return tags; refuse those that EC2 does not accept or that Dovetail sets."""
    refuse(_tag_faults(restricted, given))
    return given


def _tag_faults(restricted: re.Pattern[str], given: dict[str, str]) -> Iterator[Fault]:
    if len(given) > _MOST_TAGS:
        own = 50 - _MOST_TAGS
        yield Fault(
            (), len(given), f"write at most {_MOST_TAGS}: EC2 takes 50, and up to {own} are added"
        )
    for name, value in given.items():
        if not name or len(name) > 128 or len(value) > 256:
            remedy = "write a name of 1 to 128 and a value of at most 256 characters"
            yield Fault((name,), value, remedy)
        elif restricted.match(name):
            remedy = "this tag is set by the autoscaler or by AWS; choose another name"
            yield Fault((name,), value, remedy)


def refuse_user_data(check: UserDataCheck | None, family: str, custom: str) -> None:
    """Refuse user data that an AMI family cannot read.

    Args:
        check: Check of user data; None for no check.

    Raises:
        ValidationError: With line or part, and what to write instead.
    """
    try:
        if check is not None:
            check(family, custom)
    except InvalidManifestError as error:
        refuse([Fault((), error.value, error.remedy, field=error.field)])


SIZE: Final = "a size from 1Gi to 64Ti"
SIZE_OF_DISK: Final = (
    f"A{SIZE[1:]}; with a snapshot it may be absent where pods do not write to the disk"
)
VOLUME_DESCRIPTION: Final = "The volume's settings, at least volumeSize or snapshotID"


def gib(size: Any) -> int:
    """Return a size in GiB, rounded up."""
    remedy = f"write {SIZE}"
    try:
        wanted = Fraction(parse_quantity(size or ""))
    except ValueError:
        wanted = Fraction(0)
    if not 10**9 <= wanted <= 64 * 1024 * _GIB:
        refuse([Fault((), size, remedy)])
    return -(-wanted.numerator // (wanted.denominator * _GIB))


_TAGS: Final = Schema(
    ValidationRule(
        "a tag name has 1 to 128 characters", "self.all(key, size(key) > 0 && size(key) <= 128)"
    ),
    ValidationRule(
        "this tag is set by the autoscaler or by AWS; choose another name",
        """self.all(key, !key.matches('^karpenter[.]sh/(provisioner-name|managed-by)$')
        && !key.startsWith('kubernetes.io/cluster/')
        && !key.startsWith('dovetail.dev/') && !key.matches('^[aA][wW][sS]:'))""",
    ),
    maxProperties=40,
    additionalProperties={"type": "string", "maxLength": 256},
)
Switch = Annotated[str, AllowedValues("enabled", "disabled")]
Name = Annotated[str, Schema(minLength=1, maxLength=128)]


class InstanceMetadataOptions(Part):
    """Access to the metadata service of the instance."""

    http_endpoint: Switch = _DEFAULT_OPTIONS.http_endpoint
    http_protocol_ipv6: Switch = Field(
        default=_DEFAULT_OPTIONS.http_protocol_ipv6, alias="httpProtocolIPv6"
    )
    http_put_response_hop_limit: Int64 = Field(
        default=_DEFAULT_OPTIONS.http_put_response_hop_limit, ge=1, le=64
    )
    http_tokens: Annotated[str, AllowedValues("required", "optional")] = (
        _DEFAULT_OPTIONS.http_tokens
    )


class Ebs(Part):
    """A volume of EBS."""

    volume_size_gib: Annotated[int | None, PlainValidator(gib), WithJsonSchema(QUANTITY)] = Field(
        default=None, alias="volumeSize", description=SIZE_OF_DISK
    )
    volume_type: Annotated[
        str, AllowedValues("standard", "io1", "io2", "gp2", "gp3", "sc1", "st1")
    ] = "gp3"
    iops: Int64 | None = Field(default=None, ge=1)
    throughput: Int64 | None = Field(default=None, ge=1)
    kms_key_id: Annotated[str, Schema(maxLength=2048)] = Field(default="", alias="kmsKeyID")
    snapshot_id: Annotated[str, Schema(maxLength=64)] = Field(default="", alias="snapshotID")
    delete_on_termination: bool = True
    encrypted: bool = True

    @model_validator(mode="after")
    def _has_a_size(self) -> Self:
        if self.volume_size_gib is None and not self.snapshot_id:
            refuse([Fault(("volumeSize",), None, f"write {SIZE}, or a snapshotID")])
        return self


VOLUME: Final = Schema(
    ValidationRule("write volumeSize or snapshotID", "has(self.volumeSize) || has(self.snapshotID)")
)


def refuse_unsized(family: str, disks: Sequence[BlockDevice]) -> None:
    """Refuse the disk that pods write to if only its snapshot determines its size.

    Raises:
        ValidationError: With the number of the disk.
    """
    number = pod_disk(family, [disk.device_name for disk in disks])
    if number is not None and disks[number].volume_size_gib is None:
        remedy = f"write {SIZE}, also for a snapshot: pods write to this disk"
        refuse([Fault((number, "ebs", "volumeSize"), None, remedy)])


class BlockDeviceMapping(Part):
    """One disk."""

    device_name: Annotated[str, Schema(minLength=1, maxLength=64)] = Field(
        description="The device, such as /dev/xvda"
    )
    ebs: Annotated[Ebs, VOLUME] = Field(description=VOLUME_DESCRIPTION)

    @field_validator("device_name")
    @classmethod
    def _has_a_name(cls, name: str) -> str:
        if not name:
            refuse([Fault((), name, "write the device, such as /dev/xvda")])
        return name


def block_devices(disks: Iterable[BlockDeviceMapping]) -> tuple[BlockDevice, ...]:
    """Return disks as the values that launches use."""
    return tuple(BlockDevice(device_name=disk.device_name, **dict(disk.ebs)) for disk in disks)


class AWSNodeTemplateSpec(Part):
    """How instances are launched; an absent selector selects what carries the cluster's own tag."""

    launch_template: Name | None = Field(
        default=None, description="Name of a launch template of your own"
    )
    ami_selector: ImageSelectorMap = Field(
        default={},
        description="Tags of the images, likewise aws::name or aws::owners; what the family "
        "recommends when absent",
    )
    ami_family: Annotated[str, AllowedValues(*AMI_FAMILIES)] = Field(
        default=AMI_FAMILIES[0],
        description="AMI family, which decides how instances join; AL2023 when absent",
    )
    user_data: Annotated[str, Schema(maxLength=16384)] = Field(
        default="",
        description="What instances do at boot besides joining, in the form the image family reads",
    )
    block_device_mappings: Annotated[list[BlockDeviceMapping], Schema(maxItems=50)] = Field(
        default=[], description="Disks"
    )
    context: Annotated[str, Schema(maxLength=512)] = Field(
        default="", description="Passed on to EC2 with each fleet"
    )
    detailed_monitoring: bool = Field(
        default=False, description="Whether CloudWatch has figures of each minute"
    )
    instance_profile: Name = Field(
        default="",
        description="Name of the profile nodes run under; the cluster's own when absent",
    )
    metadata_options: InstanceMetadataOptions = Field(
        default_factory=InstanceMetadataOptions,
        description="Access to the metadata service of the instance",
    )
    security_group_selector: SecurityGroupSelectorMap = Field(
        default={}, description="Tags of the security groups, likewise"
    )
    subnet_selector: SubnetSelectorMap = Field(
        default={},
        description="Tags of the subnets, * for any value; what carries the tag of the cluster "
        "when absent",
    )
    tags: Annotated[
        dict[str, str], AfterValidator(partial(checked_tags, _RESTRICTED_TAGS)), _TAGS
    ] = Field(default={}, description="Tags of instances and their volumes, besides Dovetail's")

    @field_validator(
        "ami_family",
        "ami_selector",
        "block_device_mappings",
        "detailed_monitoring",
        "instance_profile",
        "metadata_options",
        "security_group_selector",
        "user_data",
    )
    @classmethod
    def _not_with_a_launch_template(cls, value: Any, info: ValidationInfo) -> Any:
        if info.data.get("launch_template") is not None:
            refuse([Fault((), value, "remove it: launchTemplate already decides this")])
        return value

    @field_validator("ami_family")
    @classmethod
    def _has_images(cls, family: str, info: ValidationInfo) -> str:
        if family == AMI_FAMILY_WITHOUT_IMAGE and info.data.get("ami_selector") == {}:
            remedy = "add amiSelector: this family has no recommended image"
            refuse([Fault((), family, remedy)])
        return family

    @field_validator("block_device_mappings")
    @classmethod
    def _pods_have_room(
        cls, disks: list[BlockDeviceMapping], info: ValidationInfo
    ) -> list[BlockDeviceMapping]:
        refuse_unsized(info.data.get("ami_family", AMI_FAMILIES[0]), block_devices(disks))
        return disks

    @field_validator("user_data")
    @classmethod
    def _is_read_by_its_family(cls, custom: str, info: ValidationInfo) -> str:
        refuse_user_data(info.context, info.data.get("ami_family", AMI_FAMILIES[0]), custom)
        return custom

    def node_template(self, name: str = "") -> NodeTemplate:
        """Return the NodeTemplate that launches use."""
        return NodeTemplate(
            name=name,
            subnet_selector=selector_of(self.subnet_selector),
            security_group_selector=selector_of(self.security_group_selector),
            instance_profile=self.instance_profile,
            ami_family=self.ami_family,
            ami_selector=image_selector_of(self.ami_selector),
            user_data=self.user_data,
            launch_template=self.launch_template or "",
            tags=self.tags,
            metadata_options=MetadataOptions(**dict(self.metadata_options)),
            block_devices=block_devices(self.block_device_mappings),
            detailed_monitoring=self.detailed_monitoring,
            context=self.context,
        )


_DECIDED: Final = " || ".join(f"has(self.{field})" for field in WITHOUT_LAUNCH_TEMPLATE)
NODE_TEMPLATE_SCHEMA: Final = Schema(
    ValidationRule(
        "launchTemplate already decides "
        f"{', '.join(WITHOUT_LAUNCH_TEMPLATE[:-1])} and {WITHOUT_LAUNCH_TEMPLATE[-1]}; remove them",
        f"!has(self.launchTemplate) || !({_DECIDED})",
    ),
    ValidationRule(
        "amiFamily Custom has no recommended image; add amiSelector",
        "!has(self.amiFamily) || self.amiFamily != 'Custom' || has(self.amiSelector)",
    ),
)


_STATUS: Final = {
    "description": "What its selectors find in EC2, as the functions saw it last",
    "type": "object",
    "properties": {
        "subnets": {**object_list(id=TEXT, zone=TEXT), "description": "Most free addresses first"},
        "securityGroups": object_list(id=TEXT),
        "amis": object_list(
            ("id", "requirements"),
            id=TEXT,
            name=TEXT,
            requirements={
                **object_list(
                    ("key", "operator"),
                    key=TEXT,
                    operator=TEXT,
                    values={"type": "array", "items": TEXT},
                ),
                "description": "What an instance type must offer to boot it",
            },
        ),
        "conditions": status_conditions(),
    },
}


class AWSNodeTemplate(CustomResource):
    """What a Provisioner's `providerRef` names."""

    definition: ClassVar[CustomResourceDefinition] = CustomResourceDefinition(
        file="node_templates.yaml",
        api_version="karpenter.k8s.aws/v1alpha1",
        kind="AWSNodeTemplate",
        plural="awsnodetemplates",
        description="How instances are launched",
        columns=(
            PrinterColumn(
                name="Ready",
                type="string",
                path='.status.conditions[?(@.type=="Ready")].status',
                description="Whether instances can be launched from it; the condition's message "
                "says why not",
            ),
            PrinterColumn(name="Family", type="string", path=".spec.amiFamily", wide=True),
        ),
    )
    api_version: Annotated[str, AllowedValues(definition.api_version)] = definition.api_version
    kind: Annotated[str, AllowedValues(definition.kind)] = definition.kind
    metadata: dict[str, Any] = Field(default={})
    spec: Annotated[AWSNodeTemplateSpec, NODE_TEMPLATE_SCHEMA] = Field(
        default_factory=AWSNodeTemplateSpec, description="How instances are launched"
    )
    status: Annotated[Any, WithJsonSchema(_STATUS)] = None

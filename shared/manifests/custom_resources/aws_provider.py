"""The AWS half of a Provisioner, read strictly: its `provider` block, or an AWSNodeTemplate.

Source: https://karpenter.sh/v0.31/concepts/node-templates/ (2023-09),
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html (2026-08).
"""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from shared.ami_families import DEFAULT, FAMILIES
from shared.manifests.problems import FieldProblem, Section
from shared.model.errors import InvalidManifestError
from shared.model.provisioner import BlockDevice, MetadataOptions, NodeTemplate
from shared.model.quantity import parse_quantity

AMI_FAMILIES: Final = tuple(FAMILIES)
TEMPLATE_FIELDS: Final = (
    "amiFamily",
    "amiSelector",
    "blockDeviceMappings",
    "context",
    "detailedMonitoring",
    "instanceProfile",
    "launchTemplate",
    "metadataOptions",
    "securityGroupSelector",
    "subnetSelector",
    "tags",
    "userData",
)
# What a launch template of the user's own decides already.
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
_IDS: Final = "aws-ids"
_OWNERS: Final = "aws::owners"
_NAME: Final = "aws::name"
# Keys of selectors that are no tags, and what they are called here.
_SPELLINGS: Final[Mapping[str, str]] = {_IDS: _IDS, "aws::ids": _IDS}
_IMAGE_SPELLINGS: Final[Mapping[str, str]] = {**_SPELLINGS, _OWNERS: _OWNERS, _NAME: _NAME}
_OWNER: Final = re.compile(r"(\d{12}|self|amazon|aws-marketplace)\Z")
_RESTRICTED_TAGS: Final = re.compile(
    r"(karpenter\.sh/(provisioner-name|managed-by)\Z|kubernetes\.io/cluster/|dovetail\.dev/|aws:)"
)
_VOLUME_TYPES: Final = ("standard", "io1", "io2", "gp2", "gp3", "sc1", "st1")
_GIB: Final = 2**30
_EBS_FIELDS: Final = (
    "deleteOnTermination",
    "encrypted",
    "iops",
    "kmsKeyID",
    "snapshotID",
    "throughput",
    "volumeSize",
    "volumeType",
)


def read_provider(spec: Section) -> NodeTemplate:
    """Return how machines are made; without the block, every field has its default.

    An absent selector stays empty: it selects what carries the cluster's own tag.
    """
    section = spec.section("provider")
    if section is None:
        return NodeTemplate()
    section.refuse_unknown(("apiVersion", "kind", *TEMPLATE_FIELDS))
    return read_template(section)


def read_template(section: Section) -> NodeTemplate:
    """Return how machines are made, from a block with these fields; unknown ones are ignored."""
    if section.has("launchTemplate"):
        for key in WITHOUT_LAUNCH_TEMPLATE:
            if section.has(key):
                section.refuse(key, "remove it: launchTemplate already decides this")
    family = section.text("amiFamily", DEFAULT, AMI_FAMILIES)
    images = _selector(section, "amiSelector", "ami-", _IMAGE_SPELLINGS)
    if FAMILIES[family].parameter is None and not images:
        section.refuse("amiFamily", "add amiSelector: this family has no recommended image")
    return NodeTemplate(
        subnet_selector=_selector(section, "subnetSelector", "subnet-", _SPELLINGS),
        security_group_selector=_selector(section, "securityGroupSelector", "sg-", _SPELLINGS),
        instance_profile=section.text("instanceProfile"),
        ami_family=family,
        ami_selector=images,
        user_data=_user_data(section, family),
        launch_template=section.text("launchTemplate"),
        tags=_tags(section),
        metadata_options=_metadata_options(section),
        block_devices=_block_devices(section),
        detailed_monitoring=section.flag("detailedMonitoring") is True,
        context=section.text("context"),
    )


def _selector(
    section: Section, key: str, id_prefix: str, spellings: Mapping[str, str]
) -> dict[str, str]:
    """Return tag names and values; a value may list several, separated by commas."""
    found: dict[str, str] = {}
    given = section.text_map(key)
    part = Section(given, section.at(key), section.problems)
    for name, value in given.items():
        values = [item.strip() for item in value.split(",")]
        if not name or not all(values):
            part.refuse(name, "write a tag name and a value, or * for any value")
            continue
        meant = spellings.get(name, name)
        if meant == _IDS:
            if len(given) > 1:
                part.refuse(name, "ids leave nothing to select: remove the other keys")
            if not all(item.startswith(id_prefix) for item in values):
                part.refuse(name, f"write ids that begin with {id_prefix}, separated by commas")
        if meant in spellings and meant == _OWNERS and not all(map(_OWNER.match, values)):
            part.refuse(name, "write account numbers, self or amazon, separated by commas")
        found[meant] = ",".join(values)
    return found


def _user_data(section: Section, family: str) -> str:
    """Return the user's own user data; what its family could not read is refused."""
    custom = section.text("userData")
    try:
        FAMILIES[family].refuse_wrong(custom)
    except InvalidManifestError as error:
        section.problems.append(
            FieldProblem(field=section.at(error.field), value=error.value, remedy=error.remedy)
        )
    return custom


def _tags(section: Section) -> dict[str, str]:
    found = section.text_map("tags")
    part = Section(found, section.at("tags"), section.problems)
    for name, value in found.items():
        if not name or len(name) > 128 or len(value) > 256:
            part.refuse(name, "write a name of 1 to 128 and a value of at most 256 characters")
        elif _RESTRICTED_TAGS.match(name):
            part.refuse(name, "this tag is set by the autoscaler or by AWS; choose another name")
    return found


def _metadata_options(section: Section) -> MetadataOptions:
    part = section.section("metadataOptions")
    default = MetadataOptions()
    if part is None:
        return default
    part.refuse_unknown(
        ("httpEndpoint", "httpProtocolIPv6", "httpPutResponseHopLimit", "httpTokens")
    )
    switch = ("enabled", "disabled")
    hops = part.integer("httpPutResponseHopLimit", 1, 64)
    return MetadataOptions(
        http_endpoint=part.text("httpEndpoint", default.http_endpoint, switch),
        http_protocol_ipv6=part.text("httpProtocolIPv6", default.http_protocol_ipv6, switch),
        http_put_response_hop_limit=default.http_put_response_hop_limit if hops is None else hops,
        http_tokens=part.text("httpTokens", default.http_tokens, ("required", "optional")),
    )


def _block_devices(section: Section) -> tuple[BlockDevice, ...]:
    found = []
    for other_section in section.sections("blockDeviceMappings"):
        other_section.refuse_unknown(("deviceName", "ebs"))
        name, ebs = other_section.text("deviceName"), other_section.section("ebs")
        if not name:
            other_section.refuse("deviceName", "write the device, such as /dev/xvda")
        if not other_section.has("ebs"):
            other_section.refuse("ebs", "write the volume's settings, at least volumeSize")
        if ebs is not None:
            found.append(_block_device(name, ebs))
    return tuple(found)


def _block_device(name: str, ebs: Section) -> BlockDevice:
    ebs.refuse_unknown(_EBS_FIELDS)
    flags: Mapping[str, bool | None] = {
        key: ebs.flag(key) for key in ("encrypted", "deleteOnTermination")
    }
    return BlockDevice(
        device_name=name,
        volume_size_gib=_volume_size_gib(ebs),
        volume_type=ebs.text("volumeType", "gp3", _VOLUME_TYPES),
        iops=ebs.integer("iops", 1),
        throughput=ebs.integer("throughput", 1),
        encrypted=flags["encrypted"] is not False,
        kms_key_id=ebs.text("kmsKeyID"),
        snapshot_id=ebs.text("snapshotID"),
        delete_on_termination=flags["deleteOnTermination"] is not False,
    )


def _volume_size_gib(ebs: Section) -> int:
    remedy = "write a size from 1Gi to 64Ti, also for a snapshot: it is the node's storage"
    try:
        size = Fraction(parse_quantity(ebs.raw.get("volumeSize") or ""))
    except ValueError:
        ebs.refuse("volumeSize", remedy)
        return 1
    if not 10**9 <= size <= 64 * 1024 * _GIB:
        ebs.refuse("volumeSize", remedy)
    return -(-size.numerator // (size.denominator * _GIB))

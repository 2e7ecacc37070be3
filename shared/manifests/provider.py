"""The AWS half of a Provisioner: its `provider` block, read strictly.

Source: https://karpenter.sh/v0.31/concepts/node-templates/ (2023-09),
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html (2026-08).
"""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from shared.manifests.problems import Section
from shared.model.provisioner import BlockDevice, MetadataOptions, NodeTemplate
from shared.model.quantity import parse_quantity

AMI_FAMILIES: Final = ("AL2023",)
_FIELDS: Final = (
    "amiFamily",
    "apiVersion",
    "blockDeviceMappings",
    "instanceProfile",
    "kind",
    "launchTemplate",
    "metadataOptions",
    "securityGroupSelector",
    "subnetSelector",
    "tags",
)
_HINTS: Final = {
    "amiSelector": "belongs to AWSNodeTemplate, which is not supported; use launchTemplate",
    "context": "is not supported; remove it",
    "detailedMonitoring": "belongs to AWSNodeTemplate, which is not supported; remove it",
    "userData": "belongs to AWSNodeTemplate, which is not supported; use launchTemplate",
}
_WITHOUT_TEMPLATE: Final = (
    "amiFamily",
    "blockDeviceMappings",
    "instanceProfile",
    "metadataOptions",
    "securityGroupSelector",
)
_IDS: Final = "aws-ids"
_ID_ALIASES: Final = (_IDS, "aws::ids")
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
    """Return how machines are made; no block at all means every default.

    An absent selector stays empty: it stands for what carries the cluster's own tag.
    """
    section = spec.section("provider")
    if section is None:
        return NodeTemplate()
    section.refuse_unknown(_FIELDS, _HINTS)
    if section.has("launchTemplate"):
        for key in _WITHOUT_TEMPLATE:
            if section.has(key):
                section.refuse(key, "remove it: launchTemplate already decides this")
    return NodeTemplate(
        subnet_selector=_selector(section, "subnetSelector", "subnet-"),
        security_group_selector=_selector(section, "securityGroupSelector", "sg-"),
        instance_profile=section.text("instanceProfile"),
        ami_family=section.text("amiFamily", AMI_FAMILIES[0], AMI_FAMILIES),
        launch_template=section.text("launchTemplate"),
        tags=_tags(section),
        metadata_options=_metadata_options(section),
        block_devices=_block_devices(section),
    )


def _selector(section: Section, key: str, id_prefix: str) -> dict[str, str]:
    """Return tag names and values; a value may list several, separated by commas."""
    found: dict[str, str] = {}
    given = section.text_map(key)
    part = Section(given, section.at(key), section.problems)
    for name, value in given.items():
        values = [one.strip() for one in value.split(",")]
        if not name or not all(values):
            part.refuse(name, "write a tag name and a value, or * for any value")
            continue
        if name in _ID_ALIASES:
            if len(given) > 1:
                part.refuse(name, "ids leave nothing to select: remove the other keys")
            if not all(one.startswith(id_prefix) for one in values):
                part.refuse(name, f"write ids that begin with {id_prefix}, separated by commas")
            name = _IDS  # noqa: PLW2901 - both spellings mean the same
        found[name] = ",".join(values)
    return found


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
    for one in section.sections("blockDeviceMappings"):
        one.refuse_unknown(("deviceName", "ebs"))
        name, ebs = one.text("deviceName"), one.section("ebs")
        if not name:
            one.refuse("deviceName", "write the device, such as /dev/xvda")
        if not one.has("ebs"):
            one.refuse("ebs", "write the volume's settings, at least volumeSize")
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

"""EC2NodeClasses of Karpenter's v1 API: how instances are launched.

Source: https://karpenter.sh/docs/concepts/nodeclasses/ (2026-11).
"""

import re
from collections.abc import Mapping
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

from shared.manifests.api.aws_node_template import (
    SIZE_OF_DISK,
    VOLUME,
    VOLUME_DESCRIPTION,
    Ebs,
    InstanceMetadataOptions,
    Name,
    checked_tags,
    gib,
    refuse_unsized,
    refuse_user_data,
)
from shared.manifests.api.kubelet_configuration import KUBELET, Kubelet
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
from shared.manifests.api.selector_terms import (
    ALIAS_FAMILIES,
    WINDOWS,
    ImageTerm,
    ImageTerms,
    SecurityGroupTerms,
    SubnetTerms,
)
from shared.manifests.api.status import TEXT, object_list, status_conditions
from shared.model.dialect import V1
from shared.model.provisioner import BlockDevice

FAMILIES: Final = (*ALIAS_FAMILIES.values(), "Custom")
_CUSTOM: Final = "Custom"
# 64 TB, the limit of v1: less than the 64 TiB of EC2.
_LARGEST_GIB: Final = -(-64 * 10**12 // 2**30)
_RESTRICTED_TAGS: Final = re.compile(
    r"(karpenter\.sh/(nodepool|nodeclaim)\Z|karpenter\.k8s\.aws/ec2nodeclass\Z"
    r"|eks:eks-cluster-name\Z|kubernetes\.io/cluster|dovetail\.dev/|(?i:aws:))"
)


def _family(value: str) -> str:
    if value.startswith("Windows"):
        refuse([Fault((), value, WINDOWS)])
    if value not in FAMILIES:
        refuse([Fault((), value, f"use one of {', '.join(FAMILIES)}")])
    return value


_TAGS: Final = Schema(
    ValidationRule(
        "a tag name has 1 to 128 characters", "self.all(key, size(key) > 0 && size(key) <= 128)"
    ),
    ValidationRule(
        "this tag is set by the autoscaler or by AWS; choose another name",
        """self.all(key, !key.matches('^karpenter[.]sh/(nodepool|nodeclaim)$')
        && key != 'karpenter.k8s.aws/ec2nodeclass' && key != 'eks:eks-cluster-name'
        && !key.startsWith('kubernetes.io/cluster')
        && !key.startsWith('dovetail.dev/') && !key.matches('^[aA][wW][sS]:'))""",
    ),
    maxProperties=40,
    additionalProperties={"type": "string", "maxLength": 256},
)
_DISKS: Final = Schema(
    ValidationRule(
        "another disk is the root volume: keep one of them",
        """self.all(disk, !has(disk.rootVolume) || !disk.rootVolume
        || self.all(other, other.deviceName == disk.deviceName
        || !has(other.rootVolume) || !other.rootVolume))""",
    )
)


class NodeClassMetadataOptions(InstanceMetadataOptions):
    """Access to the metadata service of the instance."""

    http_put_response_hop_limit: Int64 = Field(default=V1.hop_limit, ge=1, le=64)


_SIZE: Final = {"type": "string", "pattern": QUANTITY["pattern"]}


class NodeClassVolume(Ebs):
    """A volume of EBS."""

    advice: ClassVar = {
        "volumeInitializationRate": "remove it: volumes are initialized at EC2's own rate"
    }
    refused: ClassVar = {"volumeInitializationRate": "integer"}
    # Karpenter's CRD does not accept a number as a size; Dovetail's does not either.
    volume_size_gib: Annotated[int | None, PlainValidator(gib), WithJsonSchema(_SIZE)] = Field(
        default=None, alias="volumeSize", description=SIZE_OF_DISK
    )

    @field_validator("volume_size_gib")
    @classmethod
    def _is_a_size_of_v1(cls, gib: int) -> int:
        if gib > _LARGEST_GIB:
            refuse([Fault((), f"{gib}Gi", "write a size from 1Gi to 64T")])
        return gib


class NodeClassDisk(Part):
    """One disk."""

    # API servers accept a disk without either, as with Karpenter's CRD.
    device_name: Annotated[str, Schema(maxLength=64)] = Field(
        default="", description="The device, such as /dev/xvda"
    )
    root_volume: bool = False
    ebs: Annotated[NodeClassVolume, VOLUME] | None = Field(
        default=None, description=VOLUME_DESCRIPTION
    )

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if not self.device_name:
            refuse([Fault(("deviceName",), None, "write the device, such as /dev/xvda")])
        if self.ebs is None:
            remedy = f"write {VOLUME_DESCRIPTION[0].lower()}{VOLUME_DESCRIPTION[1:]}"
            refuse([Fault(("ebs",), None, remedy)])
        return self

    @property
    def block_device(self) -> BlockDevice:
        """The BlockDevice that launches use."""
        return BlockDevice(device_name=self.device_name, **dict(self.ebs or ()))


def _family_of(read: Mapping[str, Any]) -> str:
    """Return the family according to the fields before, empty where they are wrong."""
    terms = read.get("ami_selector_terms")
    return read.get("ami_family") or (terms[0].family if terms else "")


class EC2NodeClassSpec(Part):
    """How instances are launched."""

    advice: ClassVar = {
        "amiSelector": "write amiSelectorTerms, a list of terms",
        "capacityReservationSelectorTerms": "remove it: capacity reservations are not chosen; EC2 "
        "uses open ones by itself",
        "connectionTracking": "remove it: instances keep the time limits of EC2",
        "cpuOptions": "remove it: instances keep the CPU options of their type",
        "ipPrefixCount": "remove it, and let the VPC CNI assign prefixes "
        "(ENABLE_PREFIX_DELEGATION)",
        "launchTemplate": "remove it: write its content into this EC2NodeClass",
        "networkInterfaces": "remove it: instances have one network interface; the VPC CNI adds "
        "others",
        "placementGroupSelector": "remove it: instances are not put into placement groups; use a "
        "managed node group where pods need one",
        "securityGroupSelector": "write securityGroupSelectorTerms, a list of terms",
        "subnetSelector": "write subnetSelectorTerms, a list of terms",
    }
    refused: ClassVar = {
        "capacityReservationSelectorTerms": "array",
        "connectionTracking": "object",
        "cpuOptions": "object",
        "ipPrefixCount": "integer",
        "networkInterfaces": "array",
        "placementGroupSelector": "object",
    }
    ami_selector_terms: ImageTerms = Field(
        description="A list of terms, such as alias: al2023@latest"
    )
    subnet_selector_terms: SubnetTerms = Field(description="A list of terms, each by tags or by id")
    security_group_selector_terms: SecurityGroupTerms = Field(
        description="A list of terms, each by tags, id or name"
    )
    ami_family: Annotated[str, AfterValidator(_family), Schema(enum=list(FAMILIES))] = Field(
        default="",
        validate_default=False,
        description="How instances join; that of the alias when absent",
    )
    role: Name | None = None
    instance_profile: Name | None = None
    user_data: str = Field(default="", description="What instances do at boot besides joining")
    tags: Annotated[
        dict[str, str], AfterValidator(partial(checked_tags, _RESTRICTED_TAGS)), _TAGS
    ] = Field(default={}, description="Tags of all that a launch makes")
    kubelet: Annotated[Kubelet, KUBELET] = Field(
        default_factory=Kubelet, description="What is set on the kubelet of each node"
    )
    block_device_mappings: Annotated[list[NodeClassDisk], Field(max_length=50), _DISKS] = Field(
        default=[], description="Disks; those of the family when absent"
    )
    instance_store_policy: Annotated[str, AllowedValues("RAID0")] = ""
    metadata_options: NodeClassMetadataOptions = Field(default_factory=NodeClassMetadataOptions)
    detailed_monitoring: bool = False
    associate_public_ip_address: bool | None = Field(default=None, alias="associatePublicIPAddress")
    context: str = ""

    @field_validator("ami_selector_terms")
    @classmethod
    def _alias_is_alone(cls, terms: list[ImageTerm]) -> list[ImageTerm]:
        if len(terms) > 1:
            remedy = "an alias must be the only term: remove it or the others"
            refuse(
                Fault((number, "alias"), term.alias, remedy)
                for number, term in enumerate(terms)
                if term.alias
            )
        return terms

    @field_validator("ami_family")
    @classmethod
    def _is_that_of_the_alias(cls, family: str, info: ValidationInfo) -> str:
        terms = info.data.get("ami_selector_terms")
        of_alias = terms[0].family if terms else ""
        if of_alias and family not in (of_alias, _CUSTOM):
            remedy = f"write {of_alias}, as the alias of amiSelectorTerms says, or Custom"
            refuse([Fault((), family, remedy)])
        return family

    @field_validator("role", "instance_profile")
    @classmethod
    def _is_named(cls, value: str) -> str:
        if not value:
            refuse([Fault((), value, "write a name, or remove the field")])
        return value

    @field_validator("user_data")
    @classmethod
    def _is_read_by_its_family(cls, custom: str, info: ValidationInfo) -> str:
        if family := _family_of(info.data):
            refuse_user_data(info.context, family, custom)
        return custom

    @field_validator("block_device_mappings")
    @classmethod
    def _one_is_the_root(cls, disks: list[NodeClassDisk]) -> list[NodeClassDisk]:
        roots = [number for number, disk in enumerate(disks) if disk.root_volume]
        remedy = "another disk is the root volume: keep one of them"
        refuse(
            Fault((number, "rootVolume"), disks[number].root_volume, remedy) for number in roots[1:]
        )
        return disks

    @field_validator("block_device_mappings")
    @classmethod
    def _pods_have_room(
        cls, disks: list[NodeClassDisk], info: ValidationInfo
    ) -> list[NodeClassDisk]:
        if family := _family_of(info.data):
            refuse_unsized(family, [disk.block_device for disk in disks])
        return disks

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if not self.family:
            remedy = "write the family that decides how the images join, such as AL2023"
            refuse([Fault(("amiFamily",), None, remedy)])
        names = [name for name in (self.role, self.instance_profile) if name]
        if len(names) != 1:
            remedy = "write exactly one of role and instanceProfile"
            refuse([Fault(("role",), self.role, remedy)])
        return self

    @property
    def family(self) -> str:
        """The AMI family of the user data: `amiFamily`, else that of the alias."""
        return self.ami_family or self.ami_selector_terms[0].family


def _family_of_alias(alias: str, family: str) -> ValidationRule:
    return ValidationRule(
        f"write {family} as amiFamily, as the alias of amiSelectorTerms says, or {_CUSTOM}",
        f"!has(self.amiFamily) || self.amiFamily in ['{family}', '{_CUSTOM}'] || "
        "!self.amiSelectorTerms.exists(term, has(term.alias) && "
        f"term.alias.startsWith('{alias}@'))",
    )


_SPEC: Final = Schema(
    ValidationRule(
        "write exactly one of role and instanceProfile",
        "(has(self.role) && !has(self.instanceProfile))"
        " || (!has(self.role) && has(self.instanceProfile))",
    ),
    ValidationRule(
        "write amiFamily, the family that decides how the images join, such as AL2023",
        "has(self.amiFamily) || self.amiSelectorTerms.exists(term, has(term.alias))",
    ),
    *(_family_of_alias(alias, family) for alias, family in ALIAS_FAMILIES.items()),
)
_STATUS: Final = {
    "description": "What its selectors find in EC2, as the functions saw it last",
    "type": "object",
    "properties": {
        "subnets": {
            **object_list(("id", "zone"), id=TEXT, zone=TEXT, zoneID=TEXT),
            "description": "Most free addresses first",
        },
        "securityGroups": object_list(("id",), id=TEXT, name=TEXT),
        "amis": object_list(
            ("id", "requirements"),
            id=TEXT,
            name=TEXT,
            deprecated={"type": "boolean"},
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
        "instanceProfile": TEXT,
        "conditions": status_conditions(observedGeneration={"type": "integer", "format": "int64"}),
    },
}


class EC2NodeClass(CustomResource):
    """What a NodePool's `nodeClassRef` names."""

    definition: ClassVar[CustomResourceDefinition] = CustomResourceDefinition(
        file="node_pools/node_classes.yaml",
        api_version=V1.template_version,
        kind=V1.template_kind,
        plural="ec2nodeclasses",
        description="How instances are launched",
        short_names=("ec2nc", "ec2ncs"),
        columns=(
            PrinterColumn(
                name="Ready",
                type="string",
                path='.status.conditions[?(@.type=="Ready")].status',
                description="Whether instances can be launched from it; the condition's message "
                "says why not",
            ),
            PrinterColumn(name="Role", type="string", path=".spec.role", wide=True),
        ),
    )
    api_version: Annotated[str, AllowedValues(definition.api_version)] = definition.api_version
    kind: Annotated[str, AllowedValues(definition.kind)] = definition.kind
    metadata: dict[str, Any] = Field(default={})
    spec: Annotated[EC2NodeClassSpec, _SPEC] = Field(
        description="How instances are launched, under spec"
    )
    status: Annotated[Any, WithJsonSchema(_STATUS)] = None

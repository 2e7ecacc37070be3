"""EC2NodeClasses of Karpenter's v1 API: how instances are launched.

Source: https://karpenter.sh/docs/concepts/nodeclasses/ (2026-11).
"""

import re
from functools import partial
from typing import Annotated, Any, ClassVar, Final, Self

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from shared.manifests.api.aws_node_template import (
    BlockDeviceMapping,
    Ebs,
    Metadata,
    Name,
    checked_tags,
    refuse_user_data,
)
from shared.manifests.api.kubelet_configuration import Kubelet
from shared.manifests.api.parts import (
    Choice,
    CustomResource,
    Definition,
    Fault,
    Part,
    Whole64,
    refuse,
)
from shared.manifests.api.selector_terms import (
    ALIAS_FAMILIES,
    WINDOWS,
    ImageTerm,
    SecurityGroupTerm,
    SubnetTerm,
)
from shared.model.dialect import V1

FAMILIES: Final = (*ALIAS_FAMILIES.values(), "Custom")
_CUSTOM: Final = "Custom"
_RESTRICTED_TAGS: Final = re.compile(
    r"(karpenter\.sh/(nodepool|nodeclaim)\Z|karpenter\.k8s\.aws/ec2nodeclass\Z"
    r"|eks:eks-cluster-name\Z|kubernetes\.io/cluster|dovetail\.dev/|aws:)"
)


def _family(value: str) -> str:
    if value.startswith("Windows"):
        refuse([Fault((), value, WINDOWS)])
    if value not in FAMILIES:
        refuse([Fault((), value, f"use one of {', '.join(FAMILIES)}")])
    return value


class NodeClassMetadata(Metadata):
    """Access to the metadata service of the instance."""

    http_put_response_hop_limit: Whole64 = Field(default=V1.hop_limit, ge=1, le=64)


class NodeClassVolume(Ebs):
    """A volume of EBS."""

    advice: ClassVar = {
        "volumeInitializationRate": "remove it: volumes are initialized at EC2's own rate"
    }


class NodeClassDisk(BlockDeviceMapping):
    """One disk."""

    root_volume: bool = False
    ebs: NodeClassVolume = Field(description="The volume's settings, at least volumeSize")


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
    ami_selector_terms: Annotated[list[ImageTerm], Field(min_length=1, max_length=30)] = Field(
        description="A list of terms, such as alias: al2023@latest"
    )
    subnet_selector_terms: Annotated[list[SubnetTerm], Field(min_length=1, max_length=30)] = Field(
        description="A list of terms, each by tags or by id"
    )
    security_group_selector_terms: Annotated[
        list[SecurityGroupTerm], Field(min_length=1, max_length=30)
    ] = Field(description="A list of terms, each by tags, id or name")
    ami_family: Annotated[str, AfterValidator(_family)] = Field(default="", validate_default=False)
    role: Name | None = None
    instance_profile: Name | None = None
    user_data: str = ""
    tags: Annotated[dict[str, str], AfterValidator(partial(checked_tags, _RESTRICTED_TAGS))] = (
        Field(default={})
    )
    kubelet: Kubelet = Field(default_factory=Kubelet)
    block_device_mappings: Annotated[list[NodeClassDisk], Field(max_length=50)] = Field(default=[])
    instance_store_policy: Annotated[str, Choice("RAID0")] = ""
    metadata_options: NodeClassMetadata = Field(default_factory=NodeClassMetadata)
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
        terms = info.data.get("ami_selector_terms")
        family = info.data.get("ami_family") or (terms[0].family if terms else "")
        if family:
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
        """The family that writes user data: `amiFamily`, else that of the alias."""
        return self.ami_family or self.ami_selector_terms[0].family


class EC2NodeClass(CustomResource):
    """What a NodePool's `nodeClassRef` names."""

    definition: ClassVar[Definition] = Definition(
        file="",
        api_version=V1.template_version,
        kind=V1.template_kind,
        plural="ec2nodeclasses",
        description="How instances are launched",
        columns=(),
    )
    api_version: Annotated[str, Choice(definition.api_version)] = definition.api_version
    kind: Annotated[str, Choice(definition.kind)] = definition.kind
    metadata: dict[str, Any] = Field(default={})
    spec: EC2NodeClassSpec = Field(description="How instances are launched, under spec")
    status: Any = None

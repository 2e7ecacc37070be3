"""What a launch looks up in the account that it is made in, and what is refused for it."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from infra.local.ec2.pools import ANY, SPOT, PoolKey
from infra.local.ec2.refusals import (
    PROFILE_WITHOUT_ROLE,
    TAG_IN_METADATA,
    UNKNOWN_PROFILE,
    ApiError,
    Reason,
    Refusal,
    refusal,
)

DEPTH: Final = 50
MOST_TAGS: Final = 50
# Keys of tags that instances show in their metadata.
_IN_METADATA: Final = re.compile(r"[0-9a-zA-Z\-_+=,.@:]{1,255}")

Tags = Mapping[str, Mapping[str, str]]
"""Tags by resource type: `instance`, `volume`, ..."""


def tags_of(specifications: Sequence[Mapping[str, Any]] | None) -> dict[str, dict[str, str]]:
    """Return TagSpecifications as tags by resource type."""
    tags: dict[str, dict[str, str]] = {}
    for specification in specifications or ():
        own = tags.setdefault(specification["ResourceType"], {})
        own.update({tag["Key"]: tag.get("Value", "") for tag in specification.get("Tags", ())})
    return tags


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """One version of a launch template, as a fleet uses it."""

    specification: Mapping[str, str]
    launch: Mapping[str, Any]

    @property
    def groups(self) -> tuple[str, ...]:
        """Return the security groups of its instances: where it has interfaces, theirs.

        Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_RequestLaunchTemplateData.html
        (2026-12).
        """
        interfaces = self.launch.get("NetworkInterfaces") or ()
        found = [*(self.launch.get("SecurityGroupIds") or ())]
        found += (group for row in interfaces for group in row.get("Groups") or ())
        return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A subnet as a launch sees it; an empty VPC is never compared."""

    subnet_id: str
    zone: str
    free_addresses: int
    vpc_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeFacts:
    """An instance type; `zones` None is everywhere, no architecture is any."""

    vcpus: int = 2
    architectures: tuple[str, ...] = ()
    zones: tuple[str, ...] | None = None
    spot: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One override with the template it belongs to and the subnet it leads to."""

    template: Template
    override: Mapping[str, Any]
    subnet_id: str
    zone: str
    refusal: Refusal | None = None

    def described(self) -> dict[str, Any]:
        """LaunchTemplateAndOverrides of the answer; EC2 repeats what was sent."""
        return {
            "LaunchTemplateSpecification": dict(self.template.specification),
            "Overrides": dict(self.override),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """`count` instances of one pool, asked for by one fleet."""

    option: Option
    pool: PoolKey
    count: int
    fleet_id: str
    request_tags: Tags


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordered:
    """A refusal on order: for a pool (`*` is any) and a subnet, until a time."""

    refusal: Refusal
    pool: PoolKey = (ANY, ANY, ANY)
    subnet_id: str = ANY
    until: datetime | None = None

    def covers(self, option: Option, kind: str, now: datetime) -> bool:
        """Return whether it is in force for an option."""
        pool = (option.override["InstanceType"], option.zone, kind)
        return (
            (self.until is None or now < self.until)
            and self.subnet_id in (ANY, option.subnet_id)
            and all(rule in (ANY, value) for rule, value in zip(self.pool, pool, strict=True))
        )


@dataclass
class Account(ABC):
    """The account as one caller sees it. Here everything exists; a face overrides what it knows.

    Attributes:
        profile_delay: Age below which an instance profile is not known to EC2 yet.
        ordered: Refusals that no state of the account gives rise to.
        failures: StateReasons of the next instances, which never run.
        metadata_tags: Whether instances show their tags in metadata where a launch says nothing, as
            administrators may have made the default of an account.
    """

    profile_delay: timedelta = timedelta(0)
    metadata_tags: bool = False
    ordered: list[Ordered] = field(default_factory=list)
    failures: list[Reason] = field(default_factory=list)

    # --- what a face knows

    @abstractmethod
    def template(self, specification: Mapping[str, Any]) -> Template:
        """Return a launch template."""

    @abstractmethod
    def launch(self, launch: Launch) -> Iterable[str]:
        """Make the instances, admit each to the model, return their ids."""

    @abstractmethod
    def place(self, subnet_id: str) -> Place | None:
        """Return a subnet, None for one that does not exist."""

    def default_subnet(self, zone: str | None) -> str | None:
        """Return the default subnet of a zone, or of the first."""
        del zone
        return None

    def group_vpc(self, group_id: str) -> str | None:
        """Return the VPC of a security group, empty for any, None for one that does not exist."""
        del group_id
        return ""

    def profile_age(self, profile: Mapping[str, str]) -> timedelta | None:
        """Return the age of an instance profile, None for one that does not exist."""
        del profile
        return self.profile_delay

    def profile_without_role(self, profile: Mapping[str, str]) -> str:
        """Return the ARN of an instance profile that has no role, empty for one that has."""
        del profile
        return ""

    def architecture(self, image_id: str) -> str | None:
        """Return what an image runs on, empty for anything, None for one that does not exist."""
        del image_id
        return ""

    def facts(self, instance_type: str) -> TypeFacts | None:
        """Return an instance type, None for one that does not exist."""
        del instance_type
        return TypeFacts()

    @abstractmethod
    def price(self, pool: PoolKey) -> int:
        """Return micro-dollars per hour."""

    def depth(self, instance_type: str, zone: str) -> int:
        """Return how deep a spot pool is, 1 to 100."""
        del instance_type, zone
        return DEPTH

    # --- what follows from it

    def read_option(
        self, template: Template, sent: Mapping[str, Any], broken: Refusal | None
    ) -> Option:
        """Return an override as a launch option, with why nothing can come of it."""
        if "InstanceRequirements" in sent:
            raise ApiError("UnsupportedOperation", "InstanceRequirements are not emulated")
        override = {"InstanceType": template.launch.get("InstanceType") or "m1.small", **sent}
        zone = sent.get("AvailabilityZone") or (sent.get("Placement") or {}).get("AvailabilityZone")
        subnet_id = sent.get("SubnetId") or self.default_subnet(zone)
        if subnet_id is None:
            raise ApiError("MissingInput", "No subnets found for the default VPC.")
        if "," in subnet_id:
            text = "A fleet of type instant takes one subnet an override"
            raise ApiError("InvalidParameterValue", text)
        place = self.place(subnet_id)
        option = Option(
            template=template,
            override=override,
            subnet_id=subnet_id,
            zone=place.zone if place else zone or "",
        )
        found = broken or (
            self._refused_in(option, place)
            if place
            else refusal("InvalidSubnetID.NotFound", subnet=subnet_id)
        )
        return Option(
            template=template,
            override=override,
            subnet_id=subnet_id,
            zone=option.zone,
            refusal=found,
        )

    def template_refusal(self, template: Template, tags: Tags) -> Refusal | None:
        """Return why nothing can be launched from a template, wherever that is.

        Args:
            tags: What the request adds to those of the template.
        """
        own = {**tags_of(template.launch.get("TagSpecifications")).get("instance", {})}
        own.update(tags.get("instance", {}))
        if len(own) > MOST_TAGS:
            return refusal("TagLimitExceeded")
        shown = (template.launch.get("MetadataOptions") or {}).get("InstanceMetadataTags")
        if shown == "enabled" or (self.metadata_tags and shown is None):
            for key in own:
                if not _IN_METADATA.fullmatch(key):
                    return refusal("InvalidParameterValue", text=TAG_IN_METADATA.format(key=key))
        for group in template.groups:
            if self.group_vpc(group) is None:
                return refusal("InvalidGroup.NotFound", group=group)
        profile = template.launch.get("IamInstanceProfile")
        if profile:
            text = self._profile_problem(profile)
            if text:
                return refusal("InvalidParameterValue", text=text)
        return None

    def _profile_problem(self, profile: Mapping[str, str]) -> str:
        """Return why instances cannot have an instance profile, empty if they can."""
        age = self.profile_age(profile)
        if age is None or age < self.profile_delay:
            named = profile.get("Name") or profile.get("Arn", "")
            return UNKNOWN_PROFILE.format(name=named)
        arn = self.profile_without_role(profile)
        return PROFILE_WITHOUT_ROLE.format(arn=arn) if arn else ""

    def refused(self, option: Option, kind: str, now: datetime) -> Refusal | None:
        """Return why an option cannot be bought as spot or on demand, whatever the capacity."""
        if option.refusal is not None:
            return option.refusal
        if kind == SPOT:
            facts = self.facts(option.override["InstanceType"])
            if facts is None or not facts.spot:
                return refusal("UnfulfillableCapacity")
        return next(
            (ordered.refusal for ordered in self.ordered if ordered.covers(option, kind, now)), None
        )

    def fate(self, launch: Mapping[str, Any]) -> Reason | None:
        """Return why the next instance of this LaunchTemplateData never runs."""
        del launch
        return self.failures.pop(0) if self.failures else None

    def _refused_in(self, option: Option, place: Place) -> Refusal | None:
        for group in option.template.groups:
            if place.vpc_id and self.group_vpc(group) not in ("", place.vpc_id):
                return refusal("InvalidParameter", group=group, subnet=place.subnet_id)
        name = option.override["InstanceType"]
        facts = self.facts(name)
        if facts is None:
            return refusal("InvalidInstanceType", type=name)
        if facts.zones is not None and place.zone not in facts.zones:
            elsewhere = ", ".join(facts.zones)
            return refusal("Unsupported", type=name, zone=place.zone, elsewhere=elsewhere)
        image = option.override.get("ImageId") or option.template.launch.get("ImageId") or ""
        architecture = self.architecture(image)
        if architecture is None:
            return refusal("InvalidAMIID.NotFound", image=image)
        if architecture and facts.architectures and architecture not in facts.architectures:
            text = (
                f"The architecture '{','.join(facts.architectures)}' of the specified instance "
                f"type does not match the architecture '{architecture}' of the specified AMI."
            )
            return refusal("InvalidParameterValue", text=text)
        return None

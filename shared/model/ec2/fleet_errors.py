"""What EC2's error codes mean for a launch: one table, decided by code, never by text.

| kind | codes | what follows |
|---|---|---|
| transient | throttling, server errors, a template not shown yet | asked again, with backoff |
| shortage | no capacity for an offering, `Unsupported` | the offering is left out for minutes |
| subnet | no free address, no such subnet | the subnet is left out for minutes |
| quota | a quota of vCPUs or of spot instances | the quota's instance types are left out, for all |
| refusal | everything else, unknown codes too | told to people; the Provisioner backs off |

Only `InsufficientInstanceCapacity` and `UnfulfillableCapacity` describe EC2's stock, and only a
quota describes the account: these are shared with other clusters. All other codes depend on what
this cluster asked for and stay with it. So does `UnfulfillableCapacity` in an answer that refuses
something: EC2 says it of spot instances whatever it is that keeps it from launching them.

Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html,
https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateFleetError.html and
https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_StateReason.html (2026-11);
both codes in one answer: https://github.com/aws/karpenter-provider-aws/issues/3051 (2022-12).
"""

import re
from collections.abc import Collection
from enum import StrEnum
from typing import Final

from shared.model.ec2.launches import FleetError


class ErrorKind(StrEnum):
    """What an error of EC2 means for a launch."""

    TRANSIENT = "transient"
    SHORTAGE = "shortage"
    SUBNET = "subnet"
    QUOTA = "quota"
    REFUSAL = "refusal"


UNFULFILLABLE: Final = "UnfulfillableCapacity"
_SHARED_SHORTAGE: Final = frozenset({"InsufficientInstanceCapacity", UNFULFILLABLE})
_SHORTAGE: Final = _SHARED_SHORTAGE | {
    "InsufficientCapacity",
    "InsufficientCapacityOnHost",
    "InsufficientHostCapacity",
    "InsufficientReservedInstanceCapacity",
    "InsufficientVolumeCapacity",
    # A type that a zone does not have as spot: karpenter-provider-aws issues 2243 and 6483.
    "InvalidFleetConfiguration",
    # Of a capacity reservation that a launch template names: terraform-provider-aws issue 35745.
    "ReservationCapacityExceeded",
    "SpotMaxPriceTooLow",
    "Unsupported",
}
_QUOTA: Final = frozenset(
    {"InstanceLimitExceeded", "MaxSpotInstanceCountExceeded", "VcpuLimitExceeded"}
)
_SUBNET: Final = ("InsufficientFreeAddressesInSubnet", "InvalidSubnet")
_TRANSIENT: Final = frozenset(
    {
        "EC2ThrottledException",
        "InternalError",
        "InternalFailure",
        "InternalServerError",
        # Of fleets, not of instances: those of type instant are gone in a moment.
        "MaxFleetCountExceeded",
        "RequestLimitExceeded",
        "RequestTimeout",
        "ServerInternal",
        "ServiceUnavailable",
        "Throttling",
        "ThrottlingException",
        "Unavailable",
    }
)
# EC2 is eventually consistent: a launch template may be unknown shortly after it was created.
_TEMPLATE: Final = ("InvalidLaunchTemplateId", "InvalidLaunchTemplateName")
# The same with an instance profile or its role, for which there is no code of their own.
# Source: https://github.com/hashicorp/terraform-provider-aws/issues/27516 (2022-10).
_YOUNG: Final = (*_TEMPLATE, "InvalidIamInstanceProfile", "InvalidParameterValue")
# Terminations that no launch error caused: people, or the Spot service, terminated the machine.
_ENDED_BY_OTHERS: Final = frozenset(
    {
        "Client.InstanceInitiatedShutdown",
        "Client.InstanceTerminated",
        "Client.UserInitiatedHibernate",
        "Client.UserInitiatedShutdown",
        "Server.ScheduledStop",
    }
)
_SPOT_ENDED: Final = frozenset({"Server.SpotInstanceShutdown", "Server.SpotInstanceTermination"})

# What a launch uses, where EC2 says that the role may not use it.
# Source: https://repost.aws/knowledge-center/ec2-not-auth-launch (2026-11).
_UNAUTHORIZED: Final = "UnauthorizedOperation"
_USED: Final = re.compile(
    r"on resource: arn:[^:\s]+:ec2:[^:\s]*:\d*:(capacity-reservation|image|key-pair|"
    r"placement-group|security-group|snapshot|subnet)/([\w-]+)",
    re.ASCII,
)

# What to do about a refusal, by the beginning of its code; the first that fits counts.
_REMEDIES: Final = (
    (
        _UNAUTHORIZED,
        "read what is denied with `aws sts decode-authorization-message`, and allow it",
    ),
    (
        "AuthFailure.ServiceLinkedRoleCreationNotPermitted",
        "run `aws iam create-service-linked-role --aws-service-name spot.amazonaws.com`",
    ),
    ("AuthFailure", "check that image, snapshot and subnets are shared with this account"),
    ("OptInRequired", "subscribe to the image in AWS Marketplace, or enable the service"),
    ("PendingVerification", "AWS is verifying the account: wait, or ask AWS Support"),
    ("Blocked", "the account is blocked: ask AWS Support"),
    ("InvalidAMIID", "check amiSelector: the image must exist and be shared with this account"),
    ("InvalidSecurityGroupID", "check securityGroupSelector"),
    ("InvalidGroup", "check securityGroupSelector"),
    ("InvalidKeyPair", "check the key pair of the launch template"),
    ("InvalidLaunchTemplate", "check launchTemplate: it must exist in this Region"),
    ("InvalidSnapshot", "check the snapshotID of blockDeviceMappings"),
    ("Client.InvalidSnapshot", "check the snapshotID of blockDeviceMappings"),
    ("InvalidBlockDeviceMapping", "check blockDeviceMappings"),
    ("InvalidKMSKey", "check kmsKeyID, and that the key policy lets the launch role use the key"),
    (
        "Client.InvalidKMSKey",
        "check kmsKeyID, and that the key policy lets the launch role use the key",
    ),
    (
        "Client.InternalError",
        "mostly an encrypted volume: check that its KMS key's policy lets the launch role use it",
    ),
    ("EncryptedVolumesNotSupported", "choose other instance types or unencrypted volumes"),
    ("InvalidIamInstanceProfile", "check instanceProfile: it must exist and have a role"),
    ("InvalidParameter", "check the field that the message names: instanceProfile, tags, volumes"),
    ("MissingParameter", "check the field that the message names"),
    ("InvalidUserData", "check userData"),
    ("InvalidPlacementGroup", "check the placement group of the launch template"),
    ("InvalidCapacityReservation", "check the capacity reservation of the launch template"),
    ("TagPolicyViolation", "give the tags that the organization's tag policy asks for"),
    ("VolumeLimitExceeded", "ask for a higher quota of EBS volumes, or delete unused ones"),
    ("Client.VolumeLimitExceeded", "ask for a higher quota of EBS volumes, or delete unused ones"),
    ("MaxIOPSLimitExceeded", "ask for a higher quota of EBS IOPS"),
)
_UNKNOWN: Final = "the code is not known to Dovetail: see what EC2's documentation says of it"


def kind_of(code: str) -> ErrorKind:
    """Return what an error code of CreateFleet means; an unknown code is a refusal."""
    if code in _TRANSIENT:
        return ErrorKind.TRANSIENT
    if code in _SHORTAGE:
        return ErrorKind.SHORTAGE
    if code in _QUOTA:
        return ErrorKind.QUOTA
    if code.startswith(_SUBNET):
        return ErrorKind.SUBNET
    return ErrorKind.REFUSAL


def kind_among(code: str, codes: Collection[str]) -> ErrorKind:
    """Return what a code means in an answer of CreateFleet that has these codes."""
    if code == UNFULFILLABLE and any(kind_of(other) == ErrorKind.REFUSAL for other in codes):
        return ErrorKind.REFUSAL
    return kind_of(code)


def may_be_young(code: str) -> bool:
    """Return whether a refusal may only mean that what it names was created just now."""
    return code.startswith(_YOUNG)


def is_young_template(error: FleetError) -> bool:
    """Return whether an error may only mean that a launch template was created just now."""
    return error.code.startswith(_TEMPLATE)


def is_shared_shortage(code: str) -> bool:
    """Return whether a code describes EC2's own stock, so that other clusters may use it."""
    return code in _SHARED_SHORTAGE


def kind_of_ending(reason: str) -> ErrorKind | None:
    """Return what the StateReason code of a machine that died while pending means.

    Returns:
        None when it says nothing about the launch: the machine was ended by people, or EC2 gives
        no reason.
    """
    if reason in _SPOT_ENDED:
        return ErrorKind.SHORTAGE
    if not reason or reason in _ENDED_BY_OTHERS:
        return None
    side, _, code = reason.partition(".")
    return ErrorKind.REFUSAL if side == "Client" else kind_of(code)


def is_known(code: str) -> bool:
    """Return whether the table names a code; what it does not name is counted."""
    if kind_of(code) != ErrorKind.REFUSAL:
        return True
    return any(code.startswith(start) for start, _ in _REMEDIES)


def remedy_of(code: str) -> str:
    """Return what people can do about a refusal, as half a sentence."""
    return next((text for start, text in _REMEDIES if code.startswith(start)), _UNKNOWN)


def described(error: FleetError) -> str:
    """Return code, text and what to do, in one line.

    EC2's StateReason repeats its code at the beginning of the text; it is written once.
    """
    text = error.message.removeprefix(f"{error.code}: ").strip().rstrip(".")
    said = f"{error.code}: {text}" if text else error.code
    return f"{said}; {_without_tag(error) or remedy_of(error.code)}"


def _without_tag(error: FleetError) -> str:
    """Return what to do about a resource that the launch role may not use; empty for none."""
    found = _USED.search(error.message) if error.code == _UNAUTHORIZED else None
    if found is None:
        return ""
    kind, name = found.groups()
    all_images = ", or deploy with own_images=all" if kind == "image" else ""
    return f"give {name} the tag karpenter.sh/discovery with the cluster's name{all_images}"

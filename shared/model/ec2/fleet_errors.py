"""What EC2's error codes mean for a launch: one table, decided by code, never by text.

| kind | codes | what follows |
|---|---|---|
| transient | throttling, server errors, a template not visible yet | retried, with backoff |
| shortage | no capacity for an offering, `Unsupported` | the offering is left out for minutes |
| subnet | no free address, no such subnet | the subnet is left out for minutes |
| quota | a quota of vCPUs or of spot instances | the quota's instance types are left out, for all |
| refusal | everything else, unknown codes too | reported to people; the Provisioner backs off |

Only `InsufficientInstanceCapacity` and `UnfulfillableCapacity` describe EC2's capacity, and only a
quota describes the account: these are shared with other clusters. All other codes depend on the
request of this cluster and stay with it. So does `UnfulfillableCapacity` in an answer that refuses
something: EC2 returns it for spot instances whatever keeps it from launching them.

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
        # A quota of fleets, not of instances: fleets of type instant last only a moment.
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
# The same holds for an instance profile or its role, which have no code of their own.
# Source: https://github.com/hashicorp/terraform-provider-aws/issues/27516 (2022-10).
_NOT_YET_VISIBLE: Final = (*_TEMPLATE, "InvalidIamInstanceProfile", "InvalidParameterValue")
# Terminations that no launch error caused: people, AWS or the Spot service ended the instance.
_TERMINATED_BY_OTHERS: Final = frozenset(
    {
        "Client.InstanceInitiatedShutdown",
        "Client.InstanceTerminated",
        "Client.UserInitiatedHibernate",
        "Client.UserInitiatedShutdown",
        "Server.ScheduledStop",
    }
)
_TERMINATED_BY_SPOT: Final = frozenset(
    {"Server.SpotInstanceShutdown", "Server.SpotInstanceTermination"}
)

# The resource of a launch that the role is not authorized to use, in EC2's message.
# Source: https://repost.aws/knowledge-center/ec2-not-auth-launch (2026-11).
_UNAUTHORIZED: Final = "UnauthorizedOperation"
_USED: Final = re.compile(
    r"on resource: arn:[^:\s]+:ec2:[^:\s]*:\d*:(capacity-reservation|image|key-pair|"
    r"placement-group|security-group|snapshot|subnet)/([\w-]+)",
    re.ASCII,
)

# What to do about a refusal, by prefix of its code; the first that matches counts.
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
    (
        "InvalidParameter",
        "check what the message names: tags, volumes, or leave out instanceProfile",
    ),
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


def may_be_not_yet_visible(code: str) -> bool:
    """Return whether a refusal may only mean that the resource it names was created just now."""
    return code.startswith(_NOT_YET_VISIBLE)


def is_template_not_yet_visible(error: FleetError) -> bool:
    """Return whether an error may only mean that a launch template was created just now."""
    return error.code.startswith(_TEMPLATE)


def is_shared_shortage(code: str) -> bool:
    """Return whether a code describes EC2's own capacity, so that it holds for other clusters."""
    return code in _SHARED_SHORTAGE


def kind_of_state_reason(reason: str) -> ErrorKind | None:
    """Return what the StateReason code of an instance that was terminated while pending means.

    Returns:
        None when it says nothing about the launch: people or AWS terminated the instance, or EC2
        gives no reason.
    """
    if reason in _TERMINATED_BY_SPOT:
        return ErrorKind.SHORTAGE
    if not reason or reason in _TERMINATED_BY_OTHERS:
        return None
    side, _, code = reason.partition(".")
    return ErrorKind.REFUSAL if side == "Client" else kind_of(code)


def is_known_code(code: str) -> bool:
    """Return whether the table names a code; other codes are counted in a metric."""
    if kind_of(code) != ErrorKind.REFUSAL:
        return True
    return any(code.startswith(start) for start, _ in _REMEDIES)


def remedy_of(code: str) -> str:
    """Return what people can do about a refusal, as half a sentence."""
    return next((text for start, text in _REMEDIES if code.startswith(start)), _UNKNOWN)


def describe_error(error: FleetError) -> str:
    """Return code, text and what to do, in one line.

    EC2's StateReason repeats its code at the beginning of the text; it is written once.
    """
    text = error.message.removeprefix(f"{error.code}: ").strip().rstrip(".")
    line = f"{error.code}: {text}" if text else error.code
    return f"{line}; {_without_tag(error) or remedy_of(error.code)}"


def _without_tag(error: FleetError) -> str:
    """Return what to do about a resource that the launch role may not use; empty for none."""
    found = _USED.search(error.message) if error.code == _UNAUTHORIZED else None
    if found is None:
        return ""
    kind, name = found.groups()
    all_images = ", or deploy with own_images=all" if kind == "image" else ""
    return f"give {name} the tag karpenter.sh/discovery with the cluster's name{all_images}"

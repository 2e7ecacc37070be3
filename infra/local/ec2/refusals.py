"""What EC2 says when it refuses a launch, and what an instance says that ended by itself.

Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html (codes),
https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateFleetError.html (a fleet of type
instant answers 200 with these in `Errors`), https://docs.aws.amazon.com/AWSEC2/latest/
APIReference/API_StateReason.html (read 2026-11). Seen in answers of CreateFleet:
UnauthorizedOperation in https://github.com/aws/karpenter-provider-aws/issues/1488 (2022-04),
InvalidParameterValue in https://github.com/aws/karpenter-provider-aws/issues/5850 (2024-03), its
text about an instance profile, and UnfulfillableCapacity beside it, in
https://github.com/aws/karpenter-provider-aws/issues/3051 (2022-12); a profile without a role in
https://github.com/hashicorp/terraform/issues/4306 (2015-12).
"""

from dataclasses import dataclass
from typing import Final

LAUNCH_ERRORS: Final = {
    # A shortage: of one pool.
    "InsufficientInstanceCapacity": (
        "We currently do not have sufficient {type} capacity in the Availability Zone you "
        "requested ({zone})."
    ),
    "InsufficientCapacityOnHost": "There is not enough capacity to fulfill your request.",
    "InsufficientVolumeCapacity": "There is not enough capacity to fulfill your EBS volume.",
    "SpotMaxPriceTooLow": (
        "Your Spot request price of {price} is lower than the minimum required Spot request "
        "fulfillment price of {minimum}."
    ),
    "UnfulfillableCapacity": (
        "Unable to fulfill capacity due to your request configuration. Please adjust your request "
        "and try again."
    ),
    # Of one subnet.
    "InsufficientFreeAddressesInSubnet": (
        "There are not enough free addresses in subnet '{subnet}' to satisfy the requested number "
        "of instances."
    ),
    "InvalidSubnetID.NotFound": "The subnet ID '{subnet}' does not exist",
    # A quota of the account.
    "InstanceLimitExceeded": "You have requested more instances than your current limit allows.",
    "MaxSpotInstanceCountExceeded": "Max spot instance count exceeded",
    "VcpuLimitExceeded": (
        "You have requested more vCPU capacity than your current vCPU limit allows for the "
        "instance bucket that the specified instance type belongs to."
    ),
    # Of a type, an image or a zone.
    "InvalidInstanceType": "The following instance type is unknown: '{type}'",
    "Unsupported": (
        "Your requested instance type ({type}) is not supported in your requested Availability "
        "Zone ({zone}). Please retry your request by not specifying an Availability Zone or "
        "choosing {elsewhere}."
    ),
    "InvalidAMIID.NotFound": "The image id '[{image}]' does not exist",
    # Of the request, the launch template or the rights of the caller.
    "AuthFailure.ServiceLinkedRoleCreationNotPermitted": (
        "The provided credentials do not have permission to create the service-linked role for "
        "EC2 Spot Instances."
    ),
    "InvalidBlockDeviceMapping": "The block device mapping is not valid: {text}",
    "InvalidGroup.NotFound": "The security group '{group}' does not exist",
    "InvalidKeyPair.NotFound": "The key pair '{text}' does not exist",
    "InvalidLaunchTemplateId.VersionNotFound": "Could not find the launch template version.",
    "InvalidParameter": (
        "Security group {group} and subnet {subnet} belong to different networks."
    ),
    "InvalidParameterCombination": "The parameters contradict each other: {text}",
    "InvalidParameterValue": "{text}",
    "InvalidSnapshot.NotFound": "The snapshot '{text}' does not exist.",
    "OptInRequired": "In order to use this image you need to accept its terms and subscribe.",
    "TagLimitExceeded": "You have reached the maximum number of tags for this resource.",
    "UnauthorizedOperation": (
        "You are not authorized to perform this operation. User is not authorized to perform: "
        "{action}. Encoded authorization failure message: 4c7f"
    ),
}
"""Error code to message of everything that a launch can be refused with."""

UNKNOWN_PROFILE: Final = (
    "Value ({name}) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile "
    "name"
)
PROFILE_WITHOUT_ROLE: Final = 'IAM Instance Profile "{arn}" has no associated IAM Roles'
"""Texts of InvalidParameterValue about an instance profile."""

TAG_IN_METADATA: Final = (
    "'{key}' is not a valid tag key. Tag keys must match pattern ([0-9a-zA-Z\\-_+=,.@:]{{1,255}}), "
    "and must not be a reserved name ('.', '..', '_index')"
)
"""Text of InvalidParameterValue about an instance that shows its tags in its metadata.

Source: https://github.com/aws/karpenter-provider-aws/pull/7012 (2024-09), and
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/work-with-tags-in-IMDS.html (2026-11).
"""

FAILED_LAUNCHES: Final = {
    "Client.InternalError": "Client error on launch",
    "Client.InvalidKMSKey.InvalidState": "The KMS key provided is in an incorrect state",
    "Client.InvalidSnapshot.NotFound": "The specified snapshot was not found",
    "Client.VolumeLimitExceeded": "Volume limit exceeded",
    "Server.InsufficientInstanceCapacity": (
        "There was insufficient capacity available to satisfy the launch request"
    ),
    "Server.InternalError": "Internal error on launch",
}
"""StateReason of an instance that goes from pending to terminated: code to message.

A key without a grant for EBS is Client.InternalError, a disabled one InvalidKMSKey.InvalidState.
Source: https://repost.aws/knowledge-center/kms-iam-ec2-permission,
https://github.com/CiscoDevNet/cloud-cml/issues/8 (2024-01).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a launch option gave less than it was asked for, in the words of the API."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Reason:
    """StateReason of an instance."""

    code: str
    message: str


class ApiError(Exception):
    """A call that EC2 refuses as a whole."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class _Blank(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return f"<{key}>"


def refusal(code: str, **values: str) -> Refusal:
    """Return a refusal with the table's message."""
    return Refusal(code=code, message=LAUNCH_ERRORS[code].format_map(_Blank(values)))


def failed_launch(code: str) -> Reason:
    """Return the StateReason of an instance that cannot start."""
    return Reason(code, f"{code}: {FAILED_LAUNCHES[code]}")

"""What EC2's error codes mean for a launch."""

import pytest

from shared.model.ec2.fleet_errors import (
    ErrorKind,
    describe_error,
    is_known_code,
    is_shared_shortage,
    is_template_not_yet_visible,
    kind_among,
    kind_of,
    kind_of_state_reason,
    remedy_of,
)
from shared.model.ec2.launches import FleetError


def error(code: str, message: str = "") -> FleetError:
    return FleetError(code=code, message=message)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("RequestLimitExceeded", ErrorKind.TRANSIENT),
        ("InternalError", ErrorKind.TRANSIENT),
        ("Unavailable", ErrorKind.TRANSIENT),
        ("MaxFleetCountExceeded", ErrorKind.TRANSIENT),
        ("InsufficientInstanceCapacity", ErrorKind.SHORTAGE),
        ("UnfulfillableCapacity", ErrorKind.SHORTAGE),
        ("Unsupported", ErrorKind.SHORTAGE),
        ("ReservationCapacityExceeded", ErrorKind.SHORTAGE),
        ("InsufficientFreeAddressesInSubnet", ErrorKind.SUBNET),
        ("InvalidSubnetID.NotFound", ErrorKind.SUBNET),
        ("VcpuLimitExceeded", ErrorKind.QUOTA),
        ("MaxSpotInstanceCountExceeded", ErrorKind.QUOTA),
        ("InstanceLimitExceeded", ErrorKind.QUOTA),
        ("UnauthorizedOperation", ErrorKind.REFUSAL),
        ("InvalidParameterValue", ErrorKind.REFUSAL),
        ("NeverHeardOf", ErrorKind.REFUSAL),
    ],
)
def test_a_code_is_of_one_kind(code: str, kind: ErrorKind) -> None:
    assert kind_of(code) == kind


def test_only_want_of_stock_is_shared_with_other_clusters() -> None:
    assert is_shared_shortage("InsufficientInstanceCapacity")
    assert is_shared_shortage("UnfulfillableCapacity")
    assert not is_shared_shortage("Unsupported")
    assert not is_shared_shortage("SpotMaxPriceTooLow")


@pytest.mark.parametrize(
    ("code", "beside", "kind"),
    [
        ("UnfulfillableCapacity", "InvalidParameterValue", ErrorKind.REFUSAL),
        ("UnfulfillableCapacity", "VcpuLimitExceeded", ErrorKind.SHORTAGE),
        ("InsufficientInstanceCapacity", "InvalidParameterValue", ErrorKind.SHORTAGE),
    ],
)
def test_unfulfillable_capacity_beside_a_refusal_means_the_refusal(
    code: str, beside: str, kind: ErrorKind
) -> None:
    assert kind_among(code, {code, beside}) == kind


def test_a_missing_launch_template_may_be_young() -> None:
    assert is_template_not_yet_visible(error("InvalidLaunchTemplateName.NotFoundException"))
    assert not is_template_not_yet_visible(error("InvalidParameterValue"))


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("Client.InternalError", ErrorKind.REFUSAL),
        ("Client.InvalidSnapshot.NotFound", ErrorKind.REFUSAL),
        ("Client.SomethingNew", ErrorKind.REFUSAL),
        ("Server.InsufficientInstanceCapacity", ErrorKind.SHORTAGE),
        ("Server.SpotInstanceTermination", ErrorKind.SHORTAGE),
        ("Server.InternalError", ErrorKind.TRANSIENT),
        ("Client.UserInitiatedShutdown", None),
        ("", None),
    ],
)
def test_why_a_machine_died_is_of_one_kind(reason: str, kind: ErrorKind | None) -> None:
    assert kind_of_state_reason(reason) == kind


def test_a_code_that_the_table_does_not_name_is_unknown() -> None:
    assert is_known_code("VcpuLimitExceeded")
    assert is_known_code("InvalidAMIID.NotFound")
    assert not is_known_code("NeverHeardOf")
    assert "not known" in remedy_of("NeverHeardOf")


def test_a_refusal_says_code_text_and_what_to_do() -> None:
    died = error("Client.InternalError", "Client.InternalError: Client error on launch")
    assert describe_error(died).startswith(
        "Client.InternalError: Client error on launch; mostly an"
    )
    assert describe_error(error("Blocked")) == "Blocked; the account is blocked: ask AWS Support"


TAG = "the tag karpenter.sh/discovery with the cluster's name"


@pytest.mark.parametrize(
    ("resource", "remedy"),
    [
        (":image/ami-0a", f"give ami-0a {TAG}, or deploy with own_images=all"),
        ("123456789012:subnet/subnet-0a", f"give subnet-0a {TAG}"),
        ("123456789012:instance/*", "read what is denied with"),
    ],
)
def test_what_a_launch_may_not_use_is_named_with_the_tag_to_add(resource: str, remedy: str) -> None:
    text = (
        "You are not authorized to perform this operation. User: arn:aws:sts::123456789012:assumed-"
        "role/Dovetail-prod-us-east-1-launch/a is not authorized to perform: ec2:RunInstances on "
        f"resource: arn:aws:ec2:us-east-1:{resource} because no identity-based policy allows the "
        "ec2:RunInstances action. Encoded authorization failure message: abc"
    )
    told = describe_error(error("UnauthorizedOperation", text))
    assert told.partition("; ")[2].startswith(remedy)

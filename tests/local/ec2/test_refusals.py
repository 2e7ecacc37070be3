"""Refusals that are no shortage, instances that never run, and what EC2 does not show yet."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from infra.local.ec2.refusals import FAILED_LAUNCHES, LAUNCH_ERRORS
from tests.local.ec2.launches import ids_of, override, picked, refused


def instance(account: Any, name: str) -> dict[str, Any]:
    found = account.ec2.describe_instances(InstanceIds=[name])["Reservations"]
    return dict(found[0]["Instances"][0])


@pytest.mark.parametrize("code", sorted(LAUNCH_ERRORS))
def test_every_error_can_be_ordered_for_one_subnet_while_others_are_launched(
    account: Any, cluster: dict[str, Any], fleet: Any, code: str
) -> None:
    bad, good, _ = cluster["subnet_ids"]
    said = account.do("refusal/set", code=code, subnet_id=bad)
    answer = fleet([override("m5.large", bad), override("m5.large", good)], count=2)
    assert picked(answer) == [("m5.large", 2)]
    [error] = answer["Errors"]
    assert (error["ErrorCode"], error["ErrorMessage"]) == (code, said["message"])
    assert error["LaunchTemplateAndOverrides"]["Overrides"]["SubnetId"] == bad


def test_a_denied_right_refuses_every_option(
    account: Any, cluster: dict[str, Any], fleet: Any
) -> None:
    overrides = [override("m5.large", subnet) for subnet in cluster["subnet_ids"][:2]]
    account.do("right/set", action="iam:PassRole")
    answer = fleet(overrides)
    assert (picked(answer), {code for _, code in refused(answer)}) == (
        [],
        {"UnauthorizedOperation"},
    )
    assert "iam:PassRole" in answer["Errors"][0]["ErrorMessage"]
    account.do("right/set", action="iam:PassRole", allowed=True)
    account.do("right/set", action="iam:CreateServiceLinkedRole")
    assert picked(fleet(overrides)) == [("m5.large", 1)]
    assert {code for _, code in refused(fleet(overrides, kind="spot"))} == {
        "AuthFailure.ServiceLinkedRoleCreationNotPermitted"
    }


def test_a_security_group_of_another_network_is_refused(
    account: Any, cluster: dict[str, Any], fleet: Any
) -> None:
    other = account.ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    far = account.ec2.create_subnet(
        VpcId=other, CidrBlock="10.9.0.0/24", AvailabilityZone="us-east-1a"
    )["Subnet"]["SubnetId"]
    near = cluster["subnet_ids"][0]
    answer = fleet([override("m5.large", far), override("m5.large", near)])
    assert refused(answer) == [("m5.large", "InvalidParameter")]
    assert picked(answer) == [("m5.large", 1)]


def test_an_instance_profile_is_unknown_while_it_is_young(
    account: Any, cluster: dict[str, Any], fleet: Any
) -> None:
    account.do("consistency/set", seconds=0, profile_seconds=60)
    overrides = [override("m5.large", cluster["subnet_ids"][0])]
    assert refused(fleet(overrides)) == [("m5.large", "InvalidParameterValue")]
    account.do("consistency/set", seconds=0)
    assert picked(fleet(overrides)) == [("m5.large", 1)]


def test_an_instance_profile_without_a_role_is_refused(
    account: Any, cluster: dict[str, Any], fleet: Any
) -> None:
    iam, name = account.client("iam"), cluster["instance_profile"]
    overrides = [override("m5.large", cluster["subnet_ids"][0])]
    profile = iam.get_instance_profile(InstanceProfileName=name)["InstanceProfile"]
    named = {"InstanceProfileName": name, "RoleName": profile["Roles"][0]["RoleName"]}
    iam.remove_role_from_instance_profile(**named)
    [error] = fleet(overrides)["Errors"]
    assert "has no associated IAM Roles" in error["ErrorMessage"]
    iam.add_role_to_instance_profile(**named)
    assert picked(fleet(overrides)) == [("m5.large", 1)]


def test_spot_that_is_refused_for_its_profile_is_called_unfulfillable_too(
    account: Any, cluster: dict[str, Any], fleet: Any
) -> None:
    account.do("consistency/set", seconds=0, profile_seconds=60)
    answer = fleet([override("m5.large", cluster["subnet_ids"][0])], kind="spot")
    name = cluster["instance_profile"]
    assert [error["ErrorCode"] for error in answer["Errors"]] == [
        "InvalidParameterValue",
        "UnfulfillableCapacity",
    ]
    assert answer["Errors"][0]["ErrorMessage"] == (
        f"Value ({name}) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance "
        "Profile name"
    )


def test_a_vcpu_quota_covers_the_types_of_its_family_alone(
    account: Any, cluster: dict[str, Any], fleet: Any
) -> None:
    account.do("quota/set", capacity_type="on-demand", family="g", vcpus=4)
    subnet = cluster["subnet_ids"][0]
    assert picked(fleet([override("g4dn.xlarge", subnet)])) == [("g4dn.xlarge", 1)]
    answer = fleet([override("g4dn.xlarge", subnet), override("m5.large", subnet)], count=2)
    assert picked(answer) == [("m5.large", 2)]
    account.do("quota/set", capacity_type="on-demand", vcpus=4)
    answer = fleet([override("g5.xlarge", subnet), override("m5.large", subnet)], count=1)
    assert sorted(refused(answer)) == [
        ("g5.xlarge", "VcpuLimitExceeded"),
        ("m5.large", "VcpuLimitExceeded"),
    ]


@pytest.mark.parametrize("code", sorted(FAILED_LAUNCHES))
def test_an_instance_may_end_while_it_is_pending_and_says_why(
    account: Any, cluster: dict[str, Any], fleet: Any, code: str
) -> None:
    account.do("launch-failure/set", code=code)
    bad, good = ids_of(fleet([override("m5.large", cluster["subnet_ids"][0])], count=2))
    assert instance(account, bad)["State"]["Name"] == "pending"
    account.pass_time(3)
    found = instance(account, bad)
    assert found["State"]["Name"] == "terminated"
    assert found["StateReason"]["Code"] == code
    assert found["StateReason"]["Message"] == f"{code}: {FAILED_LAUNCHES[code]}"
    assert account.announced(bad) == ["pending", "shutting-down", "terminated"]
    assert instance(account, good)["State"]["Name"] == "running"


def test_a_disk_whose_key_ebs_may_not_use_ends_its_instance(
    account: Any, cluster: dict[str, Any], fleet: Any
) -> None:
    key = "arn:aws:kms:us-east-1:123456789012:key/1"
    disk = {"VolumeSize": 20, "Encrypted": True, "KmsKeyId": key}
    data = {
        "ImageId": cluster["image_id"],
        "BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": disk}],
    }
    account.ec2.create_launch_template_version(LaunchTemplateName="nodes", LaunchTemplateData=data)
    account.do("key/set", key_id=key)
    [name] = ids_of(fleet([override("m5.large", cluster["subnet_ids"][0])]))
    account.pass_time(3)
    assert instance(account, name)["StateReason"]["Code"] == "Client.InternalError"


def test_an_operator_stops_an_instance_in_steps(
    account: Any, cluster: dict[str, Any], fleet: Any
) -> None:
    [name] = ids_of(fleet([override("m5.large", cluster["subnet_ids"][0])]))
    account.pass_time(2)
    [row] = account.ec2.stop_instances(InstanceIds=[name])["StoppingInstances"]
    assert row["CurrentState"]["Name"] == "stopping"
    account.pass_time(1)
    found = instance(account, name)
    assert found["State"]["Name"] == "stopped"
    assert found["PrivateDnsName"]
    account.ec2.terminate_instances(InstanceIds=[name])
    account.pass_time(1)
    assert account.announced(name)[2:] == ["stopping", "stopped", "shutting-down", "terminated"]


def test_an_instance_that_was_shown_may_be_unknown_once_more(
    account: Any, cluster: dict[str, Any], fleet: Any
) -> None:
    account.do("consistency/set", seconds=0, again_from=2, again_to=4)
    [name] = ids_of(fleet([override("m5.large", cluster["subnet_ids"][0])]))
    assert instance(account, name)["State"]["Name"] == "pending"
    account.pass_time(3)
    with pytest.raises(ClientError, match=r"InvalidInstanceID\.NotFound"):
        instance(account, name)
    account.pass_time(1)
    assert instance(account, name)["State"]["Name"] == "running"

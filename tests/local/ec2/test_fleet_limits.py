"""What a fleet cannot get, and how it says so."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from infra.local.aws.control import ControlError
from tests.local.ec2.launches import ids_of, override, picked, refused


def test_an_empty_pool_is_an_error_beside_the_instances(
    account: Any, cluster: dict[str, Any], fleet: Any
) -> None:
    subnet = cluster["subnet_ids"][0]
    account.do("capacity/set", type="c5.large", zone="us-east-1a", capacity_type="*", count=0)
    answer = fleet([override("c5.large", subnet), override("m5.large", subnet)], count=2)
    assert picked(answer) == [("m5.large", 2)]
    assert refused(answer) == [("c5.large", "InsufficientInstanceCapacity")]
    [error] = answer["Errors"]
    assert error["Lifecycle"] == "on-demand"
    assert error["LaunchTemplateAndOverrides"]["Overrides"]["SubnetId"] == subnet
    assert "us-east-1a" in error["ErrorMessage"]


def test_a_small_pool_gives_what_it_has(account: Any, cluster: dict[str, Any], fleet: Any) -> None:
    account.do("capacity/set", type="m5.large", zone="*", capacity_type="spot", count=3)
    subnets = cluster["subnet_ids"]
    answer = fleet([override("m5.large", subnet) for subnet in subnets], count=5, kind="spot")
    assert len(ids_of(answer)) == 3
    assert {code for _, code in refused(answer)} == {"InsufficientInstanceCapacity"}
    again = fleet([override("m5.large", subnets[0])], kind="spot")
    assert (again["Instances"], refused(again)) == (
        [],
        [("m5.large", "InsufficientInstanceCapacity")],
    )
    assert picked(fleet([override("m5.large", subnets[0])])) == [("m5.large", 1)]


def test_a_pool_is_empty_for_some_seconds(
    account: Any, cluster: dict[str, Any], fleet: Any
) -> None:
    account.do("capacity/set", type="m5.large", count=0, seconds=30)
    wanted = [override("m5.large", cluster["subnet_ids"][0])]
    account.pass_time(29)
    assert ids_of(fleet(wanted)) == []
    account.pass_time(1)
    assert picked(fleet(wanted)) == [("m5.large", 1)]
    with pytest.raises(ControlError, match=r"seconds: -1 is not usable: send a number of zero"):
        account.do("capacity/set", type="m5.large", count=0, seconds=-1)


def test_minimum_target_capacity_is_all_or_nothing(
    account: Any, cluster: dict[str, Any], fleet: Any
) -> None:
    account.do("capacity/set", type="m5.large", count=2)
    answer = fleet(
        [override("m5.large", cluster["subnet_ids"][0])],
        count=3,
        OnDemandOptions={"MinTargetCapacity": 3, "SingleInstanceType": True},
    )
    assert (answer["Instances"], refused(answer)) == (
        [],
        [("m5.large", "InsufficientInstanceCapacity")],
    )
    assert picked(fleet([override("m5.large", cluster["subnet_ids"][0])], count=2)) == [
        ("m5.large", 2)
    ]


def test_a_full_subnet_is_an_error_and_addresses_come_back(
    account: Any, cluster: dict[str, Any], fleet: Any
) -> None:
    ec2 = account.ec2
    subnet = ec2.create_subnet(
        VpcId=cluster["vpc_id"], CidrBlock="10.0.240.0/28", AvailabilityZone="us-east-1a"
    )["Subnet"]["SubnetId"]
    answer = fleet([override("m5.large", subnet)], count=20)
    assert len(ids_of(answer)) == 11
    assert refused(answer) == [("m5.large", "InsufficientFreeAddressesInSubnet")]
    with pytest.raises(ClientError) as refusal:
        ec2.run_instances(
            ImageId=cluster["image_id"],
            SubnetId=subnet,
            MinCount=1,
            MaxCount=1,
            InstanceType="m5.large",
        )
    assert refusal.value.response["Error"]["Code"] == "InsufficientFreeAddressesInSubnet"
    ec2.terminate_instances(InstanceIds=ids_of(answer)[:2])
    account.pass_time(60)
    assert ids_of(fleet([override("m5.large", subnet)])) == []
    account.pass_time(1)
    [shown] = ec2.describe_subnets(SubnetIds=[subnet])["Subnets"]
    assert shown["AvailableIpAddressCount"] == 2
    assert len(ids_of(fleet([override("m5.large", subnet)], count=3))) == 2


def test_what_can_never_work_is_said_per_override(cluster: dict[str, Any], fleet: Any) -> None:
    subnet = cluster["subnet_ids"][0]
    answer = fleet(
        [
            override("m9.colossal", subnet),
            override("m1.small", "subnet-0123456789abcdef0"),
            override("m6g.large", subnet),
            override("m5.large", subnet, ImageId="ami-0123456789abcdef0"),
            override("m6g.xlarge", subnet, ImageId=cluster["arm_image_id"]),
        ]
    )
    assert refused(answer) == [
        ("m9.colossal", "InvalidInstanceType"),
        ("m1.small", "InvalidSubnetID.NotFound"),
        ("m6g.large", "InvalidParameterValue"),
        ("m5.large", "InvalidAMIID.NotFound"),
    ]
    assert picked(answer) == [("m6g.xlarge", 1)]


def test_a_type_the_zone_does_not_offer_is_unsupported(
    account: Any, cluster: dict[str, Any], fleet: Any
) -> None:
    subnet = account.ec2.create_subnet(
        VpcId=cluster["vpc_id"], CidrBlock="10.0.224.0/20", AvailabilityZone="us-east-1e"
    )["Subnet"]["SubnetId"]
    answer = fleet([override("c5.large", subnet)])
    assert refused(answer) == [("c5.large", "Unsupported")]
    assert "us-east-1a" in answer["Errors"][0]["ErrorMessage"]


@pytest.mark.parametrize(
    ("specification", "code"),
    [
        ({"LaunchTemplateName": "gone"}, "InvalidLaunchTemplateName.NotFoundException"),
        ({"LaunchTemplateId": "lt-0123456789abcdef0"}, "InvalidLaunchTemplateId.NotFound"),
        (
            {"LaunchTemplateName": "nodes", "Version": "7"},
            "InvalidLaunchTemplateId.VersionNotFound",
        ),
    ],
)
def test_a_missing_template_refuses_the_whole_request(
    cluster: dict[str, Any], fleet: Any, specification: dict[str, str], code: str
) -> None:
    config = {
        "LaunchTemplateSpecification": specification,
        "Overrides": [override("m5.large", cluster["subnet_ids"][0])],
    }
    with pytest.raises(ClientError) as refusal:
        fleet([], LaunchTemplateConfigs=[config])
    assert refusal.value.response["Error"]["Code"] == code


def test_a_template_with_a_missing_profile_launches_nothing(
    account: Any, cluster: dict[str, Any], fleet: Any
) -> None:
    account.ec2.create_launch_template_version(
        LaunchTemplateName="nodes",
        LaunchTemplateData={
            "ImageId": cluster["image_id"],
            "IamInstanceProfile": {"Name": "missing"},
        },
    )
    answer = fleet([override("m5.large", cluster["subnet_ids"][0])])
    assert refused(answer) == [("m5.large", "InvalidParameterValue")]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"OnDemandOptions": {"AllocationStrategy": "diversified"}}, "InvalidParameterValue"),
        ({"SpotOptions": {"MinTargetCapacity": 2}}, "InvalidParameterCombination"),
        (
            {"TargetCapacitySpecification": {"TotalTargetCapacity": 0}},
            "InvalidTargetCapacitySpecification",
        ),
        ({"DryRun": True}, "DryRunOperation"),
    ],
)
def test_a_bad_request_is_refused_as_a_whole(
    cluster: dict[str, Any], fleet: Any, change: dict[str, Any], code: str
) -> None:
    with pytest.raises(ClientError) as refusal:
        fleet([override("m5.large", cluster["subnet_ids"][0])], **change)
    assert refusal.value.response["Error"]["Code"] == code


def test_a_token_gives_the_same_answer_and_launches_once(
    account: Any, cluster: dict[str, Any], fleet: Any
) -> None:
    overrides = [override("m5.large", cluster["subnet_ids"][0])]
    first = fleet(overrides, count=2, ClientToken="plan-1")
    second = fleet(overrides, count=2, ClientToken="plan-1")
    assert (second["FleetId"], ids_of(second)) == (first["FleetId"], ids_of(first))
    found = account.ec2.describe_instances()["Reservations"]
    assert sum(len(row["Instances"]) for row in found) == 2
    other = fleet(overrides, count=2, ClientToken="plan-2")
    assert other["FleetId"] != first["FleetId"]


def test_a_token_with_another_body_is_refused(cluster: dict[str, Any], fleet: Any) -> None:
    overrides = [override("m5.large", cluster["subnet_ids"][0])]
    fleet(overrides, ClientToken="plan-1")
    with pytest.raises(ClientError) as refusal:
        fleet(overrides, count=2, ClientToken="plan-1")
    assert refusal.value.response["Error"]["Code"] == "IdempotentParameterMismatch"

"""Refusals that are no shortage, instances that never run, and what EC2 does not show yet."""

from typing import Any

from tests.local.ec2.launches import ids_of, override, picked, refused


def instance(account: Any, name: str) -> dict[str, Any]:
    found = account.ec2.describe_instances(InstanceIds=[name])["Reservations"]
    return dict(found[0]["Instances"][0])


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

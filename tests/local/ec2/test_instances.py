"""Instances: what they look like, how they start and end, how they are found."""

import base64
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from infra.local.aws.control import ControlError
from tests.local.ec2.launches import ids_of, override


def shown(account: Any, *ids: str, **more: Any) -> list[dict[str, Any]]:
    request = {"InstanceIds": list(ids), **more} if ids else more
    found = account.ec2.describe_instances(**request)["Reservations"]
    return [instance for row in found for instance in row["Instances"]]


def states(account: Any, *ids: str) -> list[str]:
    return [instance["State"]["Name"] for instance in shown(account, *ids)]


def tags(rows: list[dict[str, str]]) -> dict[str, str]:
    return {row["Key"]: row["Value"] for row in rows}


def test_an_instance_is_what_template_and_request_say(
    account: Any, cluster: dict[str, Any], fleet: Any
) -> None:
    subnet = cluster["subnet_ids"][1]
    answer = fleet(
        [override("m5.large", subnet)],
        kind="spot",
        TagSpecifications=[
            {
                "ResourceType": "instance",
                "Tags": [{"Key": "from", "Value": "request"}, {"Key": "plan", "Value": "p1"}],
            },
            {"ResourceType": "volume", "Tags": [{"Key": "plan", "Value": "p1"}]},
            {"ResourceType": "fleet", "Tags": [{"Key": "fleet-only", "Value": "x"}]},
        ],
    )
    [instance] = shown(account, *ids_of(answer))
    assert tags(instance["Tags"]) == {
        "from": "request",
        "plan": "p1",
        "aws:ec2:fleet-id": answer["FleetId"],
        "aws:ec2launchtemplate:id": cluster["template_id"],
        "aws:ec2launchtemplate:version": "1",
    }
    assert instance["ImageId"] == cluster["image_id"]
    assert [group["GroupId"] for group in instance["SecurityGroups"]] == [
        cluster["security_group_id"]
    ]
    assert instance["IamInstanceProfile"]["Arn"] == cluster["instance_profile_arn"]
    assert instance["MetadataOptions"]["HttpTokens"] == "required"
    assert instance["MetadataOptions"]["HttpPutResponseHopLimit"] == 2
    assert instance["InstanceLifecycle"] == "spot"
    assert instance["SpotInstanceRequestId"].startswith("sir-")
    assert instance["Placement"]["AvailabilityZone"] == "us-east-1b"
    [disk] = instance["BlockDeviceMappings"]
    [volume] = account.ec2.describe_volumes(VolumeIds=[disk["Ebs"]["VolumeId"]])["Volumes"]
    assert (volume["Size"], volume["VolumeType"]) == (33, "gp3")
    assert tags(volume["Tags"]) == {"disk": "template", "plan": "p1"}
    data = account.ec2.describe_instance_attribute(
        InstanceId=instance["InstanceId"], Attribute="userData"
    )
    assert base64.b64decode(data["UserData"]["Value"]) == b"join blue"


def test_a_terminated_instance_is_forgotten_after_an_hour(
    account: Any, cluster: dict[str, Any], fleet: Any
) -> None:
    names = ids_of(fleet([override("m5.large", cluster["subnet_ids"][0])], count=2))
    account.ec2.terminate_instances(InstanceIds=names[:1])
    account.pass_time(1)
    assert len(shown(account)) == 2
    account.pass_time(3600)
    assert [entry["InstanceId"] for entry in shown(account)] == names[1:]


def test_an_instance_starts_and_ends_in_steps_and_says_so(
    account: Any, cluster: dict[str, Any], fleet: Any
) -> None:
    [name] = ids_of(fleet([override("m5.large", cluster["subnet_ids"][0])]))
    assert states(account, name) == ["pending"]
    account.pass_time(1.4)
    assert states(account, name) == ["pending"]
    account.pass_time(0.1)
    assert states(account, name) == ["running"]
    [ended] = account.ec2.terminate_instances(InstanceIds=[name])["TerminatingInstances"]
    assert (ended["PreviousState"]["Name"], ended["CurrentState"]["Name"]) == (
        "running",
        "shutting-down",
    )
    assert states(account, name) == ["shutting-down"]
    account.pass_time(1)
    [instance] = shown(account, name)
    assert instance["State"]["Name"] == "terminated"
    assert instance.get("PrivateDnsName", "") == ""
    assert "PrivateIpAddress" not in instance
    [again] = account.ec2.terminate_instances(InstanceIds=[name])["TerminatingInstances"]
    assert again["CurrentState"]["Name"] == "terminated"
    assert account.announced(name) == ["pending", "running", "shutting-down", "terminated"]
    event = account.events[-1]
    assert event["source"] == "aws.ec2"
    assert event["detail-type"] == "EC2 Instance State-change Notification"
    assert event["resources"] == [f"arn:aws:ec2:us-east-1:123456789012:instance/{name}"]


def test_an_instance_ended_while_pending_never_runs(
    account: Any, cluster: dict[str, Any], fleet: Any
) -> None:
    [name] = ids_of(fleet([override("m5.large", cluster["subnet_ids"][0])]))
    account.installation.world.ec2.settings.terminated = timedelta(seconds=60)
    account.ec2.terminate_instances(InstanceIds=[name])
    account.pass_time(5)
    assert states(account, name) == ["shutting-down"]
    account.pass_time(60)
    assert account.announced(name) == ["pending", "shutting-down", "terminated"]


def test_names_follow_subnet_and_region(account: Any, cluster: dict[str, Any], fleet: Any) -> None:
    names = ids_of(fleet([override("m5.large", cluster["subnet_ids"][2])], count=2))
    found = sorted(instance["PrivateDnsName"] for instance in shown(account, *names))
    assert found == ["ip-10-0-32-4.ec2.internal", "ip-10-0-32-5.ec2.internal"]
    there = account.do(
        "seed",
        region="eu-west-1",
        clusters=[{"name": "far", "endpoint": "https://127.0.0.1:1", "ca_data": "Y2E="}],
    )["clusters"]["far"]
    client = account.client("ec2", "eu-west-1")
    made = client.run_instances(
        ImageId="ami-0123456789abcdef0",
        SubnetId=there["subnet_ids"][0],
        MinCount=1,
        MaxCount=1,
    )["Instances"][0]
    assert made["PrivateDnsName"] == "ip-10-0-0-4.eu-west-1.compute.internal"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tag:plan", "p1"),
        ("tag:plan", "p?"),
        ("tag-key", "pl*"),
        ("instance-lifecycle", "spot"),
        ("availability-zone", "us-east-1b"),
        ("instance-type", "c5.*"),
    ],
)
def test_filters_find_one_of_two(
    account: Any, cluster: dict[str, Any], fleet: Any, name: str, value: str
) -> None:
    zone_a, zone_b, _ = cluster["subnet_ids"]
    fleet([override("m5.large", zone_a)])
    mark = [{"ResourceType": "instance", "Tags": [{"Key": "plan", "Value": "p1"}]}]
    wanted = ids_of(fleet([override("c5.large", zone_b)], kind="spot", TagSpecifications=mark))
    filters = [{"Name": name, "Values": [value, "nothing"]}]
    assert [entry["InstanceId"] for entry in shown(account, Filters=filters)] == wanted


def test_state_and_name_filters_follow_the_state(
    account: Any, cluster: dict[str, Any], fleet: Any
) -> None:
    [name] = ids_of(fleet([override("m5.large", cluster["subnet_ids"][0])]))
    by_name = [{"Name": "private-dns-name", "Values": ["ip-10-0-0-4.ec2.internal"]}]
    alive = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
    assert [entry["InstanceId"] for entry in shown(account, Filters=by_name + alive)] == [name]
    account.ec2.terminate_instances(InstanceIds=[name])
    assert shown(account, Filters=by_name + alive) == []
    account.pass_time(1)
    assert shown(account, Filters=by_name) == []
    [other] = ids_of(fleet([override("m5.large", cluster["subnet_ids"][0])]))
    assert [entry["InstanceId"] for entry in shown(account, Filters=alive)] == [other]


def test_an_unknown_filter_or_instance_is_a_proper_error(account: Any) -> None:
    with pytest.raises(ClientError) as refusal:
        account.ec2.describe_instances(Filters=[{"Name": "colour", "Values": ["red"]}])
    assert refusal.value.response["Error"]["Code"] == "InvalidParameterValue"
    with pytest.raises(ClientError) as refusal:
        account.ec2.describe_instances(InstanceIds=["i-0123456789abcdef0"])
    assert refusal.value.response["Error"]["Code"] == "InvalidInstanceID.NotFound"


def test_listing_is_paged(account: Any, cluster: dict[str, Any], fleet: Any) -> None:
    names = ids_of(fleet([override("m5.large", cluster["subnet_ids"][0])], count=7))
    paginator = account.ec2.get_paginator("describe_instances")
    pages = list(paginator.paginate(PaginationConfig={"PageSize": 5}))
    counts = [sum(len(row["Instances"]) for row in page["Reservations"]) for page in pages]
    assert counts == [5, 2]
    assert len(names) == 7


def test_a_young_instance_can_be_unseen(account: Any, cluster: dict[str, Any], fleet: Any) -> None:
    account.installation.world.ec2.settings.hidden = ((timedelta(0), timedelta(seconds=3)),)
    [name] = ids_of(fleet([override("m5.large", cluster["subnet_ids"][0])]))
    assert shown(account) == []
    with pytest.raises(ClientError) as refusal:
        account.ec2.describe_instances(InstanceIds=[name])
    assert refusal.value.response["Error"]["Code"] == "InvalidInstanceID.NotFound"
    account.pass_time(3)
    assert states(account, name) == ["running"]


def test_a_spot_machine_is_warned_and_then_taken(
    account: Any, cluster: dict[str, Any], fleet: Any
) -> None:
    [name] = ids_of(fleet([override("m5.large", cluster["subnet_ids"][0])], kind="spot"))
    account.pass_time(2)
    answer = account.do("interrupt", instance_id=name, seconds=30)
    assert answer == {"instance_id": name, "terminates_in_seconds": 30.0}
    account.pass_time(29)
    assert states(account, name) == ["running"]
    account.pass_time(1)
    [instance] = shown(account, name)
    assert instance["StateReason"]["Code"] == "Server.SpotInstanceTermination"
    account.pass_time(1)
    assert account.announced(name) == [
        "pending",
        "running",
        "EC2 Spot Instance Interruption Warning",
        "shutting-down",
        "terminated",
    ]


def test_a_wrong_interruption_says_what_to_send(
    account: Any, cluster: dict[str, Any], fleet: Any
) -> None:
    [name] = ids_of(fleet([override("m5.large", cluster["subnet_ids"][0])]))
    with pytest.raises(ControlError, match="on-demand"):
        account.do("interrupt", instance_id=name)
    with pytest.raises(ControlError, match="instance_id: 'i-none' is unknown"):
        account.do("interrupt", instance_id="i-none")


def test_topology_is_shown_for_types_with_their_own_network(
    account: Any, cluster: dict[str, Any], fleet: Any
) -> None:
    subnet = cluster["subnet_ids"][0]
    (plain,) = ids_of(fleet([override("m5.large", subnet)]))
    (fast,) = ids_of(fleet([override("g6e.xlarge", subnet)]))
    account.pass_time(60)
    told = account.ec2.describe_instance_topology(InstanceIds=[plain, fast])["Instances"]
    assert [entry["InstanceId"] for entry in told] == [fast]
    assert told[0]["AvailabilityZone"] == "us-east-1a"
    assert told[0]["ZoneId"] == "use1-az6"
    assert len(set(told[0]["NetworkNodes"])) == 3
    with pytest.raises(ClientError, match=r"InvalidInstanceID\.NotFound"):
        account.ec2.describe_instance_topology(InstanceIds=["i-00000000000000000"])
    with pytest.raises(ClientError, match="UnsupportedOperation"):
        account.ec2.describe_instance_topology()

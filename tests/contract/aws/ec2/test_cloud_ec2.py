"""What only EC2 itself says: selectors, refusals, errors, pages; and what is remembered."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.aws.ec2.cloud import Ec2Cloud
from shared.aws.session import Session
from shared.manifests.api.selector_map import selector_of
from shared.model.ec2.instance_types import CapacityType
from shared.model.ec2.launches import FleetError
from shared.model.ec2.selectors import SelectorTerm
from shared.model.errors import (
    NotFoundError,
    PermanentError,
    ThrottledError,
    UnauthorizedError,
    UnavailableError,
)
from shared.model.provisioner import NodeTemplate
from tests.contract.aws.canned import canned
from tests.contract.aws.places import IMAGE, OURS, TEMPLATE, Place, fleet_request, tag
from tests.contract.aws.values import CLUSTER, offering
from tests.fakes.clock import FakeClock

MINUTE = timedelta(minutes=1)
A = "subnet-a"
B = "subnet-b"


@pytest.fixture
def ec2(aws: Session, clock: FakeClock) -> Ec2Cloud:
    cloud = Ec2Cloud(aws, cluster=CLUSTER, role="", clock=clock)
    cloud._zones.update({A: "us-east-1a", B: "us-east-1b"})
    return cloud


def found_subnets(ec2: Ec2Cloud, **selector: str) -> list[str]:
    keys = {key.replace("__", "::").replace("_", "-"): value for key, value in selector.items()}
    return [
        subnet.subnet_id
        for subnet in ec2.site(NodeTemplate(subnet_selector=selector_of(keys))).subnets
    ]


def test_selectors_take_any_value_lists_and_ids(ec2: Ec2Cloud, place: Place) -> None:
    a, b, small = (place.subnets[name] for name in ("a", "b", "small"))
    assert found_subnets(ec2, discovery="*") == [a, small, b]
    assert found_subnets(ec2, size="a,b") == [a, b]
    assert found_subnets(ec2, size="a*") == [a]
    assert found_subnets(ec2, aws_ids=f"{b},{a}") == [a, b]
    assert found_subnets(ec2, aws_ids=f"{b},subnet-00000000000000000") == [b]
    assert found_subnets(ec2, discovery=CLUSTER, size="small") == [small]
    assert found_subnets(ec2, nothing="*") == []
    groups = {"aws-ids": place.group}
    site = ec2.site(NodeTemplate(security_group_selector=selector_of(groups)))
    assert site.security_groups == (place.group,)


def test_what_any_term_finds_is_found_once(aws: Session, ec2: Ec2Cloud, place: Place) -> None:
    a, b, small = (place.subnets[name] for name in ("a", "b", "small"))
    subnets = (*selector_of({"discovery": CLUSTER, "size": "small"}), *selector_of({"aws-ids": a}))
    both = (*subnets, *selector_of({"size": "a"}))
    group = aws.client("ec2").describe_security_groups(GroupIds=[place.group])["SecurityGroups"][0]
    groups = (SelectorTerm(names=(group["GroupName"],)), *selector_of({"aws-ids": place.group}))
    site = ec2.site(NodeTemplate(subnet_selector=both, security_group_selector=groups))
    assert [subnet.subnet_id for subnet in site.subnets] == [a, small]
    assert place.group in site.security_groups
    assert b not in [subnet.subnet_id for subnet in site.subnets]


def test_tag_values_with_a_comma_are_one_value(aws: Session, ec2: Ec2Cloud, place: Place) -> None:
    tag(aws, place.subnets["a"], {"role": "x,y"})
    tag(aws, place.subnets["b"], {"role": "x"})
    asked = (SelectorTerm(tags={"role": ("x,y",)}),)
    (found,) = ec2.site(NodeTemplate(subnet_selector=asked)).subnets
    assert found.subnet_id == place.subnets["a"]


def test_a_site_is_looked_up_once_a_minute(
    aws: Session, ec2: Ec2Cloud, place: Place, clock: FakeClock
) -> None:
    before = ec2.site(TEMPLATE)
    tag(aws, place.subnets["b"], {"discovery": "other"})
    clock.advance(MINUTE - timedelta(seconds=1))
    assert ec2.site(TEMPLATE) == before
    clock.advance(timedelta(seconds=1))
    assert len(ec2.site(TEMPLATE).subnets) == 2


def test_endpoint_and_images_are_remembered_for_a_while(
    aws: Session, ec2: Ec2Cloud, place: Place, clock: FakeClock
) -> None:
    names = [f"/images/{n:02}" for n in range(12)]
    for name in names:
        aws.client("ssm").put_parameter(Name=name, Value=f"ami-{name[-2:]}", Type="String")
    with canned(aws, "ssm", "GetParameters") as asked, canned(aws, "eks", "DescribeCluster") as eks:
        for _ in range(3):
            found = ec2.image_ids([*names, "/images/none"])
            assert found == {name: f"ami-{name[-2:]}" for name in names}
            ec2.endpoint()
        assert len(asked) == 2
        assert len(eks) == 1
        clock.advance(10 * MINUTE)
        ec2.image_ids(names[:1])
        ec2.endpoint()
        assert len(asked) == 3
        assert len(eks) == 2


def test_a_cluster_that_eks_does_not_know_is_not_found(aws: Session, clock: FakeClock) -> None:
    with pytest.raises(NotFoundError):
        Ec2Cloud(aws, cluster="missing", role="", clock=clock).endpoint()


def test_a_template_carries_the_clusters_tags(aws: Session, ec2: Ec2Cloud) -> None:
    with canned(aws, "ec2", "CreateLaunchTemplate") as made:
        ec2.ensure_launch_template("template-1", {"ImageId": IMAGE})
        ec2.ensure_launch_template("template-1", {"ImageId": IMAGE})
        assert len(made) == 1
    (row,) = aws.client("ec2").describe_launch_templates()["LaunchTemplates"]
    assert {entry["Key"]: entry["Value"] for entry in row["Tags"]} == OURS
    other = Ec2Cloud(aws, cluster="other", role="", clock=FakeClock())
    other.ensure_launch_template("template-2", {"ImageId": IMAGE})
    assert [name for name, _ in ec2.launch_templates()] == ["template-1"]


def test_template_created_meanwhile_is_accepted(aws: Session, ec2: Ec2Cloud) -> None:
    exists = (400, "InvalidLaunchTemplateName.AlreadyExistsException")
    with canned(aws, "ec2", "CreateLaunchTemplate", exists):
        ec2.ensure_launch_template("template-1", {"ImageId": IMAGE})
    limit = (400, "LaunchTemplateLimit")
    with canned(aws, "ec2", "CreateLaunchTemplate", limit), pytest.raises(PermanentError):
        ec2.ensure_launch_template("template-2", {"ImageId": IMAGE})


def test_a_template_a_fleet_has_missed_is_made_without_looking(aws: Session, ec2: Ec2Cloud) -> None:
    ec2.ensure_launch_template("template-1", {"ImageId": IMAGE})
    gone = (400, "InvalidLaunchTemplateName.NotFoundException")
    with canned(aws, "ec2", "CreateFleet", gone), pytest.raises(NotFoundError):
        ec2.create_fleet(fleet_request(("m5.large", A)))
    with (
        canned(aws, "ec2", "DescribeLaunchTemplates") as looked,
        canned(aws, "ec2", "CreateLaunchTemplate") as made,
    ):
        ec2.ensure_launch_template("template-1", {"ImageId": IMAGE})
        assert looked == []
        assert len(made) == 1


def test_deleting_a_template_that_is_gone_is_fine(aws: Session, ec2: Ec2Cloud) -> None:
    gone = (400, "InvalidLaunchTemplateName.NotFoundException")
    with canned(aws, "ec2", "DeleteLaunchTemplate", gone):
        ec2.delete_launch_template("template-1")


def fleet_row(instance_type: str, subnet: str, lifecycle: str, **more: Any) -> dict[str, Any]:
    overrides = {"InstanceType": instance_type, "SubnetId": subnet}
    return {
        "LaunchTemplateAndOverrides": {"Overrides": overrides},
        "Lifecycle": lifecycle,
        **more,
    }


def test_partial_fleet_shows_its_instances_and_the_insufficient_offerings(
    aws: Session, ec2: Ec2Cloud
) -> None:
    message = "no capacity"
    answer = {
        "FleetId": "fleet-1",
        "Instances": [fleet_row("m5.large", B, "spot", InstanceIds=["i-2", "i-1"])],
        "Errors": [
            fleet_row("m5.large", A, "spot", ErrorCode=code, ErrorMessage=message)
            for code in ("InsufficientInstanceCapacity", "InsufficientInstanceCapacity")
        ]
        + [
            fleet_row("c5.large", A, "spot", ErrorCode="UnfulfillableCapacity"),
            fleet_row("r5.large", A, "spot", ErrorCode="InvalidParameterValue", ErrorMessage="x"),
        ],
    }
    request = fleet_request(("m5.large", A), ("m5.large", B), ("c5.large", A), ("r5.large", A))
    with canned(aws, "ec2", "CreateFleet", answer):
        found = ec2.create_fleet(request)
    assert found.fleet_id == "fleet-1"
    assert [instance.instance_id for instance in found.instances] == ["i-1", "i-2"]
    assert {instance.offering for instance in found.instances} == {offering(zone="us-east-1b")}
    assert found.errors == (
        FleetError(
            code="InsufficientInstanceCapacity",
            message=message,
            offering=offering(),
            subnet_id=A,
        ),
        FleetError(
            code="UnfulfillableCapacity", message="", offering=offering("c5.large"), subnet_id=A
        ),
        FleetError(
            code="InvalidParameterValue", message="x", offering=offering("r5.large"), subnet_id=A
        ),
    )


def test_a_refused_override_is_named_as_it_would_have_been_bought(
    aws: Session, ec2: Ec2Cloud
) -> None:
    answer = {"Errors": [fleet_row("m5.large", A, "on-demand", ErrorCode="Unsupported")]}
    with canned(aws, "ec2", "CreateFleet", answer):
        found = ec2.create_fleet(fleet_request(("m5.large", A), capacity_type="on-demand"))
    assert found.instances == ()
    assert found.errors[0].offering == offering(capacity_type=CapacityType.ON_DEMAND)


def test_an_error_may_name_no_offering(aws: Session, ec2: Ec2Cloud) -> None:
    answer = {
        "Instances": [fleet_row("m5.large", B, "spot", InstanceIds=["i-1"])],
        "Errors": [{"ErrorCode": "UnfulfillableCapacity", "Lifecycle": "spot"}],
    }
    with canned(aws, "ec2", "CreateFleet", answer):
        found = ec2.create_fleet(fleet_request(("m5.large", A), ("m5.large", B)))
    assert found.errors == (FleetError(code="UnfulfillableCapacity", message=""),)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (500, "InsufficientInstanceCapacity"),
        (400, "VcpuLimitExceeded"),
        (400, "InvalidSubnetID.NotFound"),
        (400, "Unsupported"),
    ],
)
def test_a_fleet_that_cannot_be_supplied_is_an_answer_too(
    aws: Session, ec2: Ec2Cloud, status: int, code: str
) -> None:
    request = fleet_request(("m5.large", A), ("m5.large", B))
    with canned(aws, "ec2", "CreateFleet", (status, code)):
        found = ec2.create_fleet(request)
    assert found.instances == ()
    assert [(error.code, error.offering) for error in found.errors] == [(code, None)]


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (503, "RequestLimitExceeded", ThrottledError),
        (500, "InternalError", UnavailableError),
        (503, "Unavailable", UnavailableError),
        (403, "UnauthorizedOperation", UnauthorizedError),
        (400, "InvalidParameterValue", PermanentError),
    ],
)
def test_a_fleet_call_that_fails_says_how(
    aws: Session, ec2: Ec2Cloud, status: int, code: str, kind: type[Exception]
) -> None:
    request = fleet_request(("m5.large", A))
    with canned(aws, "ec2", "CreateFleet", (status, code)), pytest.raises(kind) as caught:
        ec2.create_fleet(request)
    assert type(caught.value) is kind
    if isinstance(caught.value, PermanentError):
        assert caught.value.code == code


def test_an_instance_says_why_it_ended(aws: Session, ec2: Ec2Cloud) -> None:
    row = {
        "InstanceId": "i-1",
        "State": {"Name": "terminated"},
        "StateReason": {
            "Code": "Client.InternalError",
            "Message": "Client.InternalError: Client error on launch",
        },
        "InstanceType": "m5.large",
        "Placement": {"AvailabilityZone": "us-east-1a"},
    }
    with canned(aws, "ec2", "DescribeInstances", {"Reservations": [{"Instances": [row]}]}):
        (found,) = ec2.instances(["i-1"])
    assert found.state_reason == "Client.InternalError"
    assert found.state_message == "Client.InternalError: Client error on launch"


def test_zones_are_known_before_anything_is_launched(aws: Session, ec2: Ec2Cloud) -> None:
    ec2._zones.clear()
    request = fleet_request(("m5.large", A))
    with (
        canned(aws, "ec2", "DescribeSubnets", (503, "Unavailable")),
        canned(aws, "ec2", "CreateFleet") as asked,
    ):
        with pytest.raises(UnavailableError):
            ec2.create_fleet(request)
        assert asked == []


def test_all_pages_are_read(aws: Session, ec2: Ec2Cloud) -> None:
    row = {
        "State": {"Name": "running"},
        "InstanceType": "m5.large",
        "Placement": {"AvailabilityZone": "us-east-1a"},
        "LaunchTime": datetime(2026, 1, 1, tzinfo=UTC),
    }
    pages = [
        {"Reservations": [{"Instances": [{**row, "InstanceId": "i-2"}]}], "NextToken": "more"},
        {"Reservations": [{"Instances": [{**row, "InstanceId": "i-1"}]}]},
    ]
    with canned(aws, "ec2", "DescribeInstances", *pages):
        found = ec2.instances(["i-1", "i-2"])
    assert [instance.instance_id for instance in found] == ["i-1", "i-2"]
    assert found[0].private_dns_name == ""
    many = [f"i-{n:017x}" for n in range(250)]
    with canned(aws, "ec2", "DescribeInstances") as asked:
        assert ec2.instances(many) == ()
        assert len(asked) == 3


def test_an_instance_that_is_gone_between_two_calls_is_fine(aws: Session, ec2: Ec2Cloud) -> None:
    gone = (400, "InvalidInstanceID.NotFound")
    row = {
        "InstanceId": "i-1",
        "State": {"Name": "running"},
        "InstanceType": "m5.large",
        "Placement": {"AvailabilityZone": "us-east-1a"},
    }
    with (
        canned(aws, "ec2", "TerminateInstances", gone, gone) as asked,
        canned(aws, "ec2", "DescribeInstances", {"Reservations": [{"Instances": [row]}]}),
    ):
        ec2.terminate(["i-1", "i-2"])
        assert len(asked) == 2
    with (
        canned(aws, "ec2", "TerminateInstances", (403, "UnauthorizedOperation")),
        pytest.raises(UnauthorizedError),
    ):
        ec2.terminate(["i-1"])


def test_a_launch_asks_nothing_of_iam(
    aws: Session, ec2: Ec2Cloud, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A network without a way out has endpoints of ec2, ssm and eks; IAM has one in few Regions.
    asked: set[str] = set()
    client = aws.client

    def noted(service: str, **more: Any) -> Any:
        asked.add(service)
        return client(service, **more)

    monkeypatch.setattr(aws, "client", noted)
    data = {"ImageId": IMAGE, "IamInstanceProfile": {"Name": "mine"}}
    ec2.ensure_launch_template("template-1", data)
    ec2.image_ids(["/aws/service/eks/optimized-ami/1.33/amazon-linux-2/recommended/image_id"])
    ec2.site(TEMPLATE)
    answer = ec2.create_fleet(fleet_request(("m5.large", place.subnets["a"])))
    assert len(answer.instances) == 1
    assert asked == {"ec2", "ssm"}


def test_the_services_of_a_cluster_have_addresses_of_its_family(
    aws: Session, ec2: Ec2Cloud
) -> None:
    network = {"serviceIpv4Cidr": "10.100.0.0/16", "serviceIpv6Cidr": "fd30::/108"}
    cluster = {
        "name": CLUSTER,
        "endpoint": "https://e",
        "certificateAuthority": {"data": "QQ=="},
        "version": "1.33",
        "kubernetesNetworkConfig": {**network, "ipFamily": "ipv6"},
    }
    with canned(aws, "eks", "DescribeCluster", {"cluster": cluster}):
        assert ec2.endpoint().service_cidr == "fd30::/108"

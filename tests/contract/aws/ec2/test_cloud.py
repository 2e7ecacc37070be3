"""What EC2 and its fake promise alike."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

from shared.aws.ec2.cloud import Ec2Cloud
from shared.model.ec2.instance_types import CapacityType
from shared.model.errors import NotFoundError
from shared.model.provisioner import NodeTemplate
from shared.ports import CloudProvider, Subnet
from tests.contract.aws.places import IMAGE, TEMPLATE, fleet_request
from tests.contract.aws.values import CLUSTER, offering
from tests.fakes.clock import FakeClock
from tests.fakes.cloud import FakeCloud

AMI = "/aws/service/ecs/optimized-ami/amazon-linux-2/recommended/image_id"


class Lab(NamedTuple):
    """A cloud, the names of its subnets, and the data of a launch template that works there."""

    cloud: CloudProvider
    subnets: Mapping[str, str]
    data: Mapping[str, Any]


@pytest.fixture(params=["fake", "ec2"])
def lab(request: pytest.FixtureRequest, clock: FakeClock) -> Lab:
    if request.param == "fake":
        subnets = (
            Subnet(subnet_id="s-b", zone="us-east-1b", free_addresses=251),
            Subnet(subnet_id="s-small", zone="us-east-1a", free_addresses=11),
            Subnet(subnet_id="s-a", zone="us-east-1a", free_addresses=251),
        )
        cloud = FakeCloud(cluster=CLUSTER, clock=clock, subnets=subnets, missing_images={"/none"})
        return Lab(cloud, {"a": "s-a", "b": "s-b", "small": "s-small"}, {"ImageId": "ami-1"})
    aws = request.getfixturevalue("aws")
    place = request.getfixturevalue("place")
    real = Ec2Cloud(aws, cluster=CLUSTER, role="", clock=clock)
    return Lab(real, place.subnets, {"ImageId": IMAGE})


def launched(lab: Lab, **options: Any) -> tuple[str, ...]:
    lab.cloud.ensure_launch_template("template-1", lab.data)
    request = fleet_request(("m5.large", lab.subnets["a"]), **options)
    return tuple(instance.instance_id for instance in lab.cloud.create_fleet(request).instances)


def test_the_endpoint_says_what_a_machine_needs_to_join(lab: Lab) -> None:
    found = lab.cloud.endpoint()
    assert found.name == CLUSTER
    assert found.endpoint.startswith("https://")
    assert found.certificate_authority
    assert found.version == "1.33"
    assert found.service_cidr == "172.20.0.0/16"


def test_a_site_is_sorted_by_zone_and_free_addresses(lab: Lab) -> None:
    site = lab.cloud.site(TEMPLATE)
    assert [(subnet.subnet_id, subnet.zone, subnet.free_addresses) for subnet in site.subnets] == [
        (lab.subnets["a"], "us-east-1a", 251),
        (lab.subnets["small"], "us-east-1a", 11),
        (lab.subnets["b"], "us-east-1b", 251),
    ]
    assert len(site.security_groups) == 1


def test_empty_selectors_find_nothing(lab: Lab) -> None:
    site = lab.cloud.site(NodeTemplate())
    assert site.subnets == ()
    assert site.security_groups == ()


def test_images_that_do_not_exist_are_left_out(lab: Lab) -> None:
    found = lab.cloud.image_ids([AMI, "/none", AMI])
    assert list(found) == [AMI]
    assert found[AMI].startswith("ami-")
    assert lab.cloud.image_ids([]) == {}


def test_launch_templates_are_made_once_and_can_be_deleted(lab: Lab) -> None:
    lab.cloud.ensure_launch_template("template-2", lab.data)
    lab.cloud.ensure_launch_template("template-1", lab.data)
    lab.cloud.ensure_launch_template("template-1", lab.data)
    found = lab.cloud.launch_templates()
    assert [name for name, _ in found] == ["template-1", "template-2"]
    assert all(born.tzinfo is not None for _, born in found)
    lab.cloud.delete_launch_template("template-1")
    assert [name for name, _ in lab.cloud.launch_templates()] == ["template-2"]


def test_a_fleet_launches_what_was_asked_for(lab: Lab) -> None:
    lab.cloud.ensure_launch_template("template-1", lab.data)
    request = fleet_request(("m5.large", lab.subnets["b"]), count=3)
    answer = lab.cloud.create_fleet(request)
    assert answer.fleet_id
    assert answer.errors == ()
    assert [instance.offering for instance in answer.instances] == [offering(zone="us-east-1b")] * 3
    assert len({instance.instance_id for instance in answer.instances}) == 3


def test_on_demand_is_distinguished_from_spot(lab: Lab) -> None:
    (one,) = launched(lab, capacity_type="on-demand")
    (found,) = lab.cloud.instances([one])
    assert found.offering == offering(capacity_type=CapacityType.ON_DEMAND)


def test_a_fleet_without_its_launch_template_is_not_found(lab: Lab) -> None:
    request = fleet_request(("m5.large", lab.subnets["a"]), template="gone")
    with pytest.raises(NotFoundError):
        lab.cloud.create_fleet(request)


def test_a_template_that_vanished_is_made_again(lab: Lab) -> None:
    lab.cloud.ensure_launch_template("template-1", lab.data)
    lab.cloud.delete_launch_template("template-1")
    assert len(launched(lab)) == 1


def test_instances_are_shown_by_id_and_unknown_ones_are_not(lab: Lab) -> None:
    ids = launched(lab, count=2)
    found = lab.cloud.instances([*reversed(ids), "i-00000000000000000", ids[0]])
    assert [instance.instance_id for instance in found] == sorted(ids)
    for instance in found:
        assert instance.is_alive
        assert instance.offering == offering()
        assert instance.private_dns_name.endswith(".ec2.internal")
        assert instance.image_id
        assert instance.launched_at is not None
        assert instance.launched_at.tzinfo is not None
    assert lab.cloud.instances([]) == ()


def test_instances_are_found_by_all_their_tags(lab: Lab) -> None:
    mine = launched(lab, count=2, tags={"plan": "p1", "group": "0"})
    launched(lab, count=1, tags={"plan": "p1", "group": "1"})
    found = lab.cloud.tagged_instances({"plan": "p1", "group": "0"})
    assert [instance.instance_id for instance in found] == sorted(mine)
    assert found[0].tags["plan"] == "p1"
    assert len(lab.cloud.tagged_instances({})) == 3
    assert lab.cloud.tagged_instances({"plan": "p2"}) == ()


def test_ended_instances_are_no_longer_found_by_tag(lab: Lab) -> None:
    first, second = launched(lab, count=2)
    lab.cloud.terminate([first])
    lab.cloud.terminate([first])
    assert [tagged_instance.instance_id for tagged_instance in lab.cloud.tagged_instances({})] == [
        second
    ]
    (ended,) = lab.cloud.instances([first])
    assert not ended.is_alive


def test_unknown_instances_are_no_obstacle_to_ending_others(lab: Lab) -> None:
    first, second = launched(lab, count=2)
    lab.cloud.terminate([first, "i-00000000000000000"])
    lab.cloud.terminate(["i-00000000000000000"])
    lab.cloud.terminate([])
    assert [tagged_instance.instance_id for tagged_instance in lab.cloud.tagged_instances({})] == [
        second
    ]

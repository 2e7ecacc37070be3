"""Tags of machines change hands; what EC2 and its fake promise alike."""

from typing import NamedTuple

import pytest

from functions.cli.migrate.ec2_instance_tags import Ec2InstanceTags
from functions.cli.migrate.karpenter import InstanceTags
from shared.aws.ec2.cloud import Ec2Cloud
from shared.model import labels as keys
from shared.ports import CloudProvider
from tests.contract.aws.places import IMAGE, fleet_request
from tests.contract.aws.values import CLUSTER
from tests.fakes.clock import FakeClock
from tests.fakes.cloud import FakeCloud
from tests.fakes.karpenter import FakeTags


class Lab(NamedTuple):
    """A cloud with a machine, and the right to change its tags."""

    cloud: CloudProvider
    tags: InstanceTags
    instance_id: str


@pytest.fixture(params=["fake", "ec2"])
def lab(request: pytest.FixtureRequest, clock: FakeClock) -> Lab:
    cloud: CloudProvider
    tags: InstanceTags
    if request.param == "fake":
        cloud = fake = FakeCloud(cluster=CLUSTER, clock=clock)
        tags, subnet, data = FakeTags(fake), fake.all_subnets()[0].subnet_id, {"ImageId": "ami-1"}
    else:
        aws = request.getfixturevalue("aws")
        place = request.getfixturevalue("place")
        cloud = Ec2Cloud(aws, cluster=CLUSTER, role="", clock=clock)
        tags, subnet = Ec2InstanceTags(aws, role=""), place.subnets["a"]
        data = {"ImageId": IMAGE}
    cloud.ensure_launch_template("template-1", data)
    answer = cloud.create_fleet(fleet_request(("m5.large", subnet)))
    return Lab(cloud, tags, answer.instances[0].instance_id)


def tags_of(lab: Lab) -> dict[str, str]:
    (found,) = lab.cloud.instances([lab.instance_id])
    return dict(found.tags)


def test_tags_are_added_and_replaced_and_the_others_stay(lab: Lab) -> None:
    before = tags_of(lab)
    lab.tags.tag(lab.instance_id, {keys.NODE_POOL: "a", keys.NODE_CLASS: "b"})
    lab.tags.tag(lab.instance_id, {keys.NODE_POOL: "c"})
    assert tags_of(lab) == {**before, keys.NODE_POOL: "c", keys.NODE_CLASS: "b"}


def test_tags_go_whatever_their_values_and_missing_ones_are_fine(lab: Lab) -> None:
    before = tags_of(lab)
    lab.tags.tag(lab.instance_id, {keys.NODE_POOL: "a"})
    lab.tags.untag(lab.instance_id, [keys.NODE_POOL, keys.NODE_CLASS])
    assert tags_of(lab) == before

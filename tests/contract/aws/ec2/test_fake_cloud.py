"""What tests of the services can make the fake EC2 do."""

from datetime import timedelta

import pytest

from shared.model.errors import NotFoundError, ThrottledError, UnavailableError
from tests.contract.aws.places import fleet_request
from tests.contract.aws.values import CLUSTER, offering
from tests.fakes.clock import FakeClock
from tests.fakes.cloud import Delays, FakeCloud

HERE, THERE = offering(), offering(zone="us-east-1b")
OVERRIDES = (("m5.large", "subnet-us-east-1a"), ("m5.large", "subnet-us-east-1b"))


@pytest.fixture
def cloud(clock: FakeClock) -> FakeCloud:
    cloud = FakeCloud(cluster=CLUSTER, clock=clock)
    cloud.ensure_launch_template("template-1", {})
    return cloud


def test_capacity_runs_out_and_the_next_offering_fills_in(cloud: FakeCloud) -> None:
    cloud.run_out_of(HERE, left=1)
    answer = cloud.create_fleet(fleet_request(*OVERRIDES, count=3))
    assert [instance.offering for instance in answer.instances] == [HERE, THERE, THERE]
    assert [error.offering for error in answer.errors] == [HERE]
    assert not cloud.ec2.pools.left(("m5.large", "us-east-1a", "spot"))


def test_a_fleet_may_come_up_short(cloud: FakeCloud) -> None:
    cloud.run_out_of(HERE, THERE)
    answer = cloud.create_fleet(fleet_request(*OVERRIDES, count=2))
    assert answer.instances == ()
    assert [error.offering for error in answer.errors] == [HERE, THERE]
    assert {error.code for error in answer.errors} == {"InsufficientInstanceCapacity"}


def test_the_cheapest_is_taken_first(cloud: FakeCloud) -> None:
    cloud.prices.update({HERE: 2, THERE: 1})
    (one,) = cloud.create_fleet(fleet_request(*OVERRIDES)).instances
    assert one.offering == THERE


def test_a_token_launches_once_unless_it_is_forgotten(cloud: FakeCloud) -> None:
    request = fleet_request(*OVERRIDES)
    assert cloud.create_fleet(request) == cloud.create_fleet(request)
    assert len(cloud.all_instances) == 1
    cloud.forgets_tokens = True
    cloud.create_fleet(request)
    assert len(cloud.all_instances) == 2


def test_an_answer_may_be_lost_after_the_launch(cloud: FakeCloud) -> None:
    cloud.lose_next_answer()
    with pytest.raises(UnavailableError):
        cloud.create_fleet(fleet_request(*OVERRIDES, count=2))
    assert len(cloud.tagged_instances({})) == 2


def test_calls_fail_on_demand_and_launch_nothing(cloud: FakeCloud) -> None:
    cloud.throttle_next(times=2)
    for _ in range(2):
        with pytest.raises(ThrottledError):
            cloud.create_fleet(fleet_request(*OVERRIDES))
    cloud.fail_next("instances", NotFoundError("x"))
    with pytest.raises(NotFoundError):
        cloud.instances(["i-1"])
    assert cloud.all_instances == ()
    assert len(cloud.called("create_fleet")) == 2
    assert cloud.fleets == []


def test_ec2_takes_its_time(cloud: FakeCloud, clock: FakeClock) -> None:
    second = timedelta(seconds=1)
    cloud.delays = Delays(shown=second, named=2 * second, running=3 * second, terminated=second)
    (one,) = cloud.create_fleet(fleet_request(*OVERRIDES)).instances
    seen = []
    for _ in range(4):
        found = cloud.instances([one.instance_id])
        seen.append([(it.state, bool(it.private_dns_name)) for it in found])
        clock.advance(second)
    assert seen == [[], [("pending", False)], [("pending", True)], [("running", True)]]
    cloud.end(one.instance_id)
    assert [it.state for it in cloud.tagged_instances({})] == ["shutting-down"]
    clock.advance(second)
    assert cloud.tagged_instances({}) == ()
    assert [it.state for it in cloud.instances([one.instance_id])] == ["terminated"]


def test_instances_can_be_put_there(cloud: FakeCloud) -> None:
    (one,) = cloud.create_fleet(fleet_request(*OVERRIDES)).instances
    other = FakeCloud(cluster=CLUSTER, clock=cloud.clock)
    other.add(*cloud.instances([one.instance_id]))
    assert other.all_instances == cloud.all_instances

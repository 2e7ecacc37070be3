"""What EC2 is asked for, where, and what happens when it has none."""

from datetime import timedelta
from typing import Any

import pytest

from shared.manifests.api.selector_map import selector_of
from shared.model import labels as keys
from shared.model.ec2.instance_types import CapacityType, InstanceType
from shared.model.errors import UnavailableError
from shared.model.provisioner import NodeTemplate
from shared.model.values import replace
from tests.builders import GIB, ZONES, instance_type, needs, offering, pod
from tests.karpenter_cases.lifecycle.births import (
    ANY_TYPE,
    bought,
    is_bound,
    launched,
    only_data,
    provisioner,
    request,
    subnets_asked,
    with_two_subnets,
    world,
)
from tests.unit.manifests.documents import template
from tests.unit.worlds import World, instead

ENI = "vpc.amazonaws.com/pod-eni"
GPU = "nvidia.com/gpu"
NEURON = "aws.amazon.com/neuron"
MACHINES = (
    instance_type("t3.large", price=83_000),
    instance_type("m5.large", extra={ENI: 9}),
    instance_type("m5.xlarge", cpu=4000, memory=16 * GIB, price=190_000, extra={ENI: 18}),
    instance_type("p3.8xlarge", cpu=32_000, memory=244 * GIB, price=12_240_000, extra={GPU: 4}),
    instance_type("inf1.2xlarge", cpu=8000, memory=16 * GIB, price=362_000, extra={NEURON: 1}),
    instance_type("inf1.6xlarge", cpu=24_000, memory=48 * GIB, price=720_000, extra={NEURON: 4}),
)
CAPACITY = keys.CAPACITY_TYPE
EITHER = {"key": CAPACITY, "operator": "In", "values": ["spot", "on-demand"]}


def market(*types: str, **spec: Any) -> World:
    """Return a world that sells these types, all of `MACHINES` if none is named."""
    sold = [
        other_instance_type
        for other_instance_type in MACHINES
        if not types or other_instance_type.name in types
    ]
    return world(provisioner(**{"requirements": [ANY_TYPE], **spec}), types=sold)


def types_of(there: World) -> list[str]:
    return sorted(instance.offering.instance_type for instance in there.alive)


def run_out(there: World, name: str, *zones: str, kinds: Any = tuple(CapacityType)) -> None:
    there.cloud.run_out_of(*(offering(name, zone, kind) for zone in zones for kind in kinds))


# --- devices


def test_a_pod_with_an_interface_of_its_own_is_not_on_a_machine_that_gives_none() -> None:
    assert bought(market("t3.large"), pod("a", extra={ENI: 1})).alive == []


def test_a_pod_with_an_interface_of_its_own_is_on_a_machine_that_gives_one() -> None:
    assert types_of(bought(market(), pod("a", extra={ENI: 1}))) == ["m5.large"]


@pytest.mark.parametrize(("device", "name"), [(GPU, "p3.8xlarge"), (NEURON, "inf1.6xlarge")])
def test_pods_with_devices_are_on_machines_that_have_them(device: str, name: str) -> None:
    there = market("m5.large", name)
    bought(there, *(pod(f"p{count}", cpu=100, extra={device: count}) for count in (1, 2, 4)))
    assert types_of(there) == [name, name]


# --- what EC2 is out of


def test_another_type_is_bought_when_ec2_has_none() -> None:
    there = market("inf1.2xlarge", "inf1.6xlarge")
    run_out(there, "inf1.6xlarge", *ZONES)
    bought(there, *(pod(f"p{n}", extra={NEURON: 1}) for n in range(2)))
    assert types_of(there) == ["inf1.2xlarge", "inf1.2xlarge"]


def test_another_zone_is_taken_when_ec2_has_none_there() -> None:
    there = market("p3.8xlarge")
    run_out(there, "p3.8xlarge", ZONES[0])
    bought(there, pod("a", extra={GPU: 1}))
    assert [instance.offering.zone for instance in there.alive] == [ZONES[1]]


def test_smaller_machines_are_bought_when_ec2_has_no_larger_one() -> None:
    there = market("m5.large", "m5.xlarge")
    run_out(there, "m5.xlarge", *ZONES)
    bought(there, *(pod(f"p{n}", cpu=1000) for n in range(2)))
    assert set(types_of(there)) == {"m5.large"}
    assert len(there.bound) == 2


def test_what_ec2_was_out_of_is_asked_for_again_later() -> None:
    there = market("m5.large", "m5.xlarge")
    run_out(there, "m5.large", *ZONES)
    bought(there, pod("a", cpu=1800))
    assert types_of(there) == ["m5.xlarge"]
    there.cloud.ec2.pools.reset()
    there.advance(timedelta(minutes=30))
    bought(there, pod("b", cpu=1800, node_selector=needs(keys.INSTANCE_TYPE, "In", "m5.large")))
    assert types_of(there) == ["m5.large", "m5.xlarge"]


def test_on_demand_is_bought_when_there_is_no_spot() -> None:
    there = market("m5.large", requirements=[ANY_TYPE, EITHER])
    run_out(there, "m5.large", *ZONES, kinds=[CapacityType.SPOT])
    bought(there)
    (one,) = there.alive
    assert one.offering.capacity_type == CapacityType.ON_DEMAND


def test_when_no_offering_is_left_the_pods_get_events() -> None:
    there = market("m5.large")
    run_out(there, "m5.large", *ZONES)
    bought(there)
    assert there.alive == []
    assert any("EC2 is out of capacity" in event.message for event in there.cluster.kube_events)
    assert there.ledger.open_intents("test") == ()


# --- how it is paid


def test_on_demand_is_the_default_capacity_type() -> None:
    (one,) = bought(market("m5.large")).alive
    assert one.offering.capacity_type == CapacityType.ON_DEMAND


def test_spot_is_bought_where_both_are_allowed() -> None:
    (one,) = bought(market("m5.large", requirements=[ANY_TYPE, EITHER])).alive
    assert one.offering.capacity_type == CapacityType.SPOT


# --- context and defaults


def test_a_context_is_passed_on() -> None:
    assert request(launched(context="ctx-1"))["Context"] == "ctx-1"


def test_there_is_no_context_by_default() -> None:
    assert "Context" not in request(launched())


def test_a_machine_is_bought_with_every_default() -> None:
    there = launched()
    assert is_bound(there, "a")
    assert only_data(there)["SecurityGroupIds"] == ["sg-1"]


# --- where


def asked_sites(there: World) -> list[NodeTemplate]:
    return [value for value in there.cloud.called("site") if isinstance(value, NodeTemplate)]


@pytest.mark.parametrize("kind", ["subnet", "group"])
def test_without_selector_what_has_the_clusters_tag_is_taken(kind: str) -> None:
    there = launched({"provider": {}})
    own = selector_of({"kubernetes.io/cluster/test": "*"})
    for asked_site in asked_sites(there):
        assert own == (
            asked_site.subnet_selector if kind == "subnet" else asked_site.security_group_selector
        )


def test_groups_are_found_by_tag() -> None:
    there = launched({"provider": {"securityGroupSelector": {"test-key": "value"}}})
    assert {asked_site.security_group_selector for asked_site in asked_sites(there)} == {
        selector_of({"test-key": "value"})
    }


@pytest.mark.parametrize("kind", ["subnet", "group"])
def test_subnets_and_groups_are_found_by_id(kind: str) -> None:
    named = "subnet-1" if kind == "subnet" else "sg-1"
    field = "subnetSelector" if kind == "subnet" else "securityGroupSelector"
    there = launched(**{field: {"aws-ids": named}})
    found = {
        asked_site.subnet_selector if kind == "subnet" else asked_site.security_group_selector
        for asked_site in asked_sites(there)
    }
    assert found == {selector_of({"aws-ids": named})}


def in_two_subnets(*types: InstanceType) -> World:
    return with_two_subnets(world(provisioner(), types=types or MACHINES[1:2]))


def test_the_subnet_with_most_free_addresses_is_taken() -> None:
    assert subnets_asked(bought(in_two_subnets())) == [{"subnet-many"}]


def test_addresses_promised_in_one_plan_are_counted() -> None:
    there = in_two_subnets(*MACHINES[1:3])
    bought(there, pod("a", cpu=1800), pod("b", cpu=3800))
    assert sorted(map(sorted, subnets_asked(there))) == [["subnet-few"], ["subnet-many"]]


def test_addresses_promised_to_a_launch_that_failed_are_counted_once() -> None:
    there = in_two_subnets()
    there.cloud.fail_next("create_fleet", UnavailableError("outcome unknown"))
    bought(there, pod("a", cpu=1800))
    there.advance(timedelta(seconds=20))
    there.provision()
    assert len(there.alive) == 1
    there.advance(timedelta(minutes=5))
    bought(there, pod("b", cpu=1800))
    assert subnets_asked(there)[-1] == {"subnet-many"}


def test_a_subnet_another_provisioner_leaves_out_can_be_taken() -> None:
    there = world(
        provisioner("one", providerRef={"name": "first"}),
        provisioner("two", providerRef={"name": "second"}),
        template("first", subnetSelector={"Name": "a"}),
        template("second", subnetSelector={"Name": "b"}),
    )
    for name in ("one", "two"):
        bought(there, pod(name, node_selector=needs(keys.PROVISIONER_NAME, "In", name)))
    assert set(there.bound) == {"one", "two"}
    asked = {asked_site.subnet_selector for asked_site in asked_sites(there)}
    assert asked == {selector_of({"Name": "a"}), selector_of({"Name": "b"})}


def test_another_provisioner_is_taken_when_the_first_finds_no_place() -> None:
    there = world(
        provisioner("first", weight=50, providerRef={"name": "nowhere"}),
        provisioner("second"),
        template("nowhere", subnetSelector={"Name": "none"}),
        template(),
    )
    original = there.cloud.site

    def site(asked: NodeTemplate) -> Any:
        found = original(asked)
        return replace(found, subnets=()) if asked.name == "nowhere" else found

    instead(there.cloud, "site", site)
    bought(there)
    assert is_bound(there, "a")
    assert there.node.labels[keys.PROVISIONER_NAME] == "second"

"""How pods share new nodes, and which type those are."""

import pytest

from shared.model import labels as keys
from tests.karpenter_cases.scheduling.market import LARGE, MEDIUM, NVIDIA, SMALL, TINY, machine
from tests.karpenter_cases.scheduling.outcome import alone, solve
from tests.karpenter_cases.scheduling.writing import container, pod, pods, provisioner

PLAIN = (TINY, SMALL, MEDIUM, LARGE)


def test_a_small_pod_gets_the_smallest_type() -> None:
    assert alone({"memory": "100M"}, market=PLAIN).types == [TINY.name]


def test_a_pod_gets_the_smallest_type_that_holds_it() -> None:
    assert alone({"memory": "4000Mi"}, market=PLAIN).types == [SMALL.name]
    assert alone({"cpu": "1901m"}, market=PLAIN).types == [SMALL.name]


def test_the_overhead_of_a_runtime_counts() -> None:
    assert alone({"cpu": "1"}, market=PLAIN).types == [TINY.name]
    heavy = {"cpu": "1", "overhead": {"cpu": "2"}, "runtimeClassName": "sandbox"}
    assert alone(heavy, market=PLAIN).types == [SMALL.name]


def test_many_small_pods_share_the_smallest_type_that_holds_all() -> None:
    outcome = solve(*pods(5, cpu="10m", memory="10M"), market=PLAIN)
    assert outcome.types == [TINY.name]
    assert len(outcome.new[0].pods) == 5


def test_a_further_node_is_made_when_one_is_full() -> None:
    owner = provisioner("default", (keys.INSTANCE_TYPE, "In", TINY.name))
    outcome = solve(*pods(10, cpu="10m", memory="1800M"), provisioners=(owner,))
    assert outcome.types == [TINY.name] * 5
    assert {len(planned_node.pods) for planned_node in outcome.new} == {2}


def test_small_pods_fill_what_large_ones_leave() -> None:
    owner = provisioner("default", (keys.INSTANCE_TYPE, "In", SMALL.name))
    large = pods(4, "large", cpu="10m", memory="6Gi")
    small = pods(4, "small", cpu="10m", memory="1Gi")
    outcome = solve(*small, *large, provisioners=(owner,))
    assert len(outcome.new) == 4
    assert {
        tuple(sorted(ref.name[:5] for ref in planned_node.pods)) for planned_node in outcome.new
    } == {("large", "small")}


def test_nodes_are_packed_tightly() -> None:
    """The largest type leaves pods 15.9 cores: what does not fit beside gets the smallest."""
    outcome = solve(pod("big", cpu="15"), pod("little", cpu="1"), market=PLAIN)
    assert outcome.types == [LARGE.name, TINY.name]
    together = solve(pod("big", cpu="14500m"), pod("little", cpu="1"), market=PLAIN)
    assert together.types == [LARGE.name]


def test_a_request_for_nothing_needs_nothing() -> None:
    outcome = alone({"extra": {"foo.com/weird": "0"}}, market=PLAIN)
    assert outcome.types == [TINY.name]


def test_a_pod_larger_than_every_type_stays_pending() -> None:
    outcome = alone({"memory": "2Ti"}, market=PLAIN)
    assert outcome.new == ()
    assert "memory 2Ti (at most" in outcome.pending["a"]


def test_the_number_of_pods_fills_a_node_too() -> None:
    owner = provisioner("default", (keys.INSTANCE_TYPE, "In", TINY.name))
    outcome = solve(*pods(65, cpu="1m", memory="1M"), provisioners=(owner,))
    assert outcome.types == [TINY.name] * 3
    assert max(len(planned_node.pods) for planned_node in outcome.new) <= 30


def test_an_init_container_that_needs_more_decides_the_size() -> None:
    words = {"cpu": "1", "initContainers": [container("3", "1Gi")]}
    assert alone(words, market=PLAIN).types == [SMALL.name]


def test_an_init_container_larger_than_every_type_keeps_the_pod_pending() -> None:
    outcome = alone({"initContainers": [container("1000", "1Gi")]}, market=PLAIN)
    assert outcome.new == ()
    assert "cpu 1000" in outcome.pending["a"]


def test_every_option_of_a_node_holds_its_pods_whatever_it_costs() -> None:
    """The list is of types whose price does not grow with any one resource."""
    odd = (
        machine("m5.a", 4, 4, 100),
        machine("m5.b", 2, 16, 90),
        machine("m5.c", 8, 8, 80),
        machine("m5.d", 16, 2, 10),
    )
    outcome = alone({"cpu": "3", "memory": "3Gi"}, market=odd)
    offered = {option.offering.instance_type for option in outcome.options()}
    assert offered <= {"m5.a", "m5.c"}
    assert outcome.types == ["m5.c"]


@pytest.mark.parametrize("device", ["nvidia.com/gpu", "amd.com/gpu", "aws.amazon.com/neuron"])
def test_devices_are_counted_like_any_resource(device: str) -> None:
    ones = [pod(f"one{number}", extra={device: "1"}) for number in range(2)]
    outcome = solve(*ones, pod("two", extra={device: "2"}))
    assert len(outcome.new) == 2
    assert outcome.where("one0") == outcome.where("one1") != outcome.where("two")
    assert {option.capacity[device] for option in outcome.options("two")} == {2}


def test_pods_with_and_without_a_device_are_distinguished_by_price() -> None:
    outcome = solve(pod("gpu", extra={"nvidia.com/gpu": "1"}), *pods(20, cpu="1"))
    assert outcome.type_of("gpu") == NVIDIA.name
    assert outcome.types.count(NVIDIA.name) == 1

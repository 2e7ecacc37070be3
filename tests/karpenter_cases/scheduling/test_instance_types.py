"""Which types a pod's and a provisioner's wishes leave."""

import pytest

from shared.model import labels as keys
from tests.karpenter_cases.scheduling.market import (
    ARM,
    MARKET,
    NEURON,
    NVIDIA,
    SMALL,
    TINY,
    machine,
)
from tests.karpenter_cases.scheduling.outcome import alone, solve
from tests.karpenter_cases.scheduling.writing import pod, provisioner

FAST = machine("m6.fast", 4, 8, 300, labels={keys.INSTANCE_LOCAL_NVME: "100"})
TYPE = keys.INSTANCE_TYPE


def test_more_than_any_type_has_is_not_bought() -> None:
    outcome = alone({"cpu": "512"})
    assert outcome.new == ()
    assert "cpu 512 (at most 15900m)" in outcome.pending["a"]


def test_pods_of_different_architectures_get_nodes_of_their_own() -> None:
    outcome = solve(
        pod("intel", required=[[(keys.ARCH, "In", "amd64")]]),
        pod("arm", required=[[(keys.ARCH, "In", "arm64")]]),
    )
    assert outcome.where("intel") != outcome.where("arm")
    assert outcome.values(keys.ARCH, "arm") == {"arm64"}


def test_a_type_a_pod_names_and_an_architecture_it_has_not_exclude_each_other() -> None:
    conflicting = [(keys.ARCH, "In", "arm64"), (TYPE, "In", SMALL.name)]
    outcome = alone({"required": [conflicting]})
    assert outcome.new == ()
    assert "at once" in outcome.pending["a"]


def test_a_provisioners_architecture_excludes_the_types_of_others() -> None:
    owner = provisioner("default", (keys.ARCH, "In", "arm64"))
    assert alone({"cpu": "1"}, provisioners=(owner,)).values(TYPE) == {ARM.name}
    assert not alone({"cpu": "14"}, provisioners=(owner,)).is_placed("a")


def test_a_system_a_pod_names_excludes_the_types_of_others() -> None:
    windows = machine("m5.panes", 8, 16, 10, labels={keys.OS: "windows"})
    outcome = alone({"required": [[(keys.OS, "In", "linux")]]}, market=(SMALL, windows))
    assert outcome.values(TYPE) == {SMALL.name}
    assert not alone({"selector": {keys.OS: "windows"}}, market=(SMALL, windows)).is_placed("a")


def test_nothing_but_linux_is_ever_bought() -> None:
    windows = machine("m5.panes", 8, 16, 10, labels={keys.OS: "windows"})
    assert alone({}, market=(SMALL, windows)).values(TYPE) == {SMALL.name}
    assert not alone({}, market=(windows,)).is_placed("a")


def test_pods_that_name_different_types_get_nodes_of_their_own() -> None:
    outcome = solve(
        pod("s", selector={TYPE: SMALL.name}), pod("t", required=[[(TYPE, "In", TINY.name)]])
    )
    assert outcome.values(TYPE, "s") == {SMALL.name}
    assert outcome.values(TYPE, "t") == {TINY.name}


def test_pods_that_name_different_zones_get_nodes_of_their_own() -> None:
    outcome = solve(
        pod("b", selector={keys.ZONE: "zone-b"}),
        pod("c", required=[[(keys.ZONE, "In", "zone-c")]]),
    )
    assert outcome.values(keys.ZONE, "b") == {"zone-b"}
    assert outcome.values(keys.ZONE, "c") == {"zone-c"}


def test_devices_no_type_has_together_are_bought_apart() -> None:
    outcome = solve(
        pod("gpu", extra={"nvidia.com/gpu": "1"}),
        pod("neuron", extra={"aws.amazon.com/neuron": "1"}),
    )
    assert (outcome.type_of("gpu"), outcome.type_of("neuron")) == (NVIDIA.name, NEURON.name)


def test_a_pod_that_asks_for_devices_no_type_has_together_stays_pending() -> None:
    outcome = alone({"extra": {"nvidia.com/gpu": "1", "aws.amazon.com/neuron": "1"}})
    assert outcome.new == ()
    assert "at once" in outcome.pending["a"]


def test_a_branch_interface_is_only_found_on_types_that_have_them() -> None:
    wanted = {"extra": {"vpc.amazonaws.com/pod-eni": "1"}}
    assert alone(wanted).types == ["r5.trunk"]
    assert not alone(wanted, market=(TINY, SMALL)).is_placed("a")


def test_labels_of_a_machine_choose_types() -> None:
    outcome = alone({"selector": {keys.INSTANCE_SIZE: "medium"}})
    assert outcome.values(TYPE) == {"m5.medium"}
    owner = provisioner("default", (keys.INSTANCE_CPU, "In", "16"))
    assert alone({}, provisioners=(owner,)).types == ["m5.large"]


@pytest.mark.parametrize("side", ["pod", "provisioner"])
def test_labels_of_a_machine_that_exclude_each_other_leave_no_type(side: str) -> None:
    owner = provisioner("default", (keys.INSTANCE_SIZE, "In", "large"))
    other = {"selector": {keys.INSTANCE_SIZE: "tiny"}}
    if side == "pod":
        owner = provisioner()
        other = {"selector": {keys.INSTANCE_SIZE: "tiny", keys.INSTANCE_CPU: "16"}}
    outcome = alone(other, provisioners=(owner,))
    assert outcome.new == ()
    assert outcome.pending["a"]


def test_a_property_only_some_types_have_can_be_asked_for() -> None:
    market = (*MARKET, FAST)
    outcome = alone({"required": [[(keys.INSTANCE_LOCAL_NVME, "Exists")]]}, market=market)
    assert outcome.values(TYPE) == {FAST.name}


def test_a_property_only_some_types_have_can_be_ruled_out() -> None:
    without = {"required": [[(keys.INSTANCE_LOCAL_NVME, "DoesNotExist")]]}
    cheap = machine("m6.cheap", 4, 8, 10, labels={keys.INSTANCE_LOCAL_NVME: "100"})
    outcome = alone(without, market=(SMALL, cheap))
    assert outcome.values(TYPE) == {SMALL.name}

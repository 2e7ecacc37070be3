"""Limits: counted with what stands and flies, never overshot."""

from tests.karpenter_cases.scheduling.machines import node, slot
from tests.karpenter_cases.scheduling.market import LARGE, MEDIUM, NVIDIA, SMALL, TINY
from tests.karpenter_cases.scheduling.outcome import Outcome, alone, settled, solve
from tests.karpenter_cases.scheduling.writing import Raw, pod, pods, provisioner

PLAIN = (TINY, SMALL, MEDIUM, LARGE)


def limited(**resources: str) -> Raw:
    return {"limits": {"resources": {key.replace("_", "/"): v for key, v in resources.items()}}}


def bought(outcome: Outcome, resource: str = "cpu") -> int:
    return sum(planned_node.largest_capacity[resource] for planned_node in outcome.new)


def test_nothing_is_launched_when_more_than_the_limit_exists() -> None:
    outcome = alone(
        {},
        provisioners=(provisioner(**limited(cpu="20")),),
        nodes=(node("n1", kind=LARGE, allocatable={"cpu": "100", "memory": "1Mi", "pods": "0"}),),
    )
    assert outcome.new == ()
    assert "its limits are in the way: cpu" in outcome.pending["a"]


def test_what_just_keeps_the_limit_is_bought() -> None:
    outcome = alone({"cpu": "1750m"}, provisioners=(provisioner(**limited(cpu="2")),))
    assert outcome.types == ["m5.tiny"]
    assert bought(outcome) == 2000


def test_as_many_pods_are_served_as_the_limit_lets() -> None:
    outcome = solve(*pods(2, cpu="3"), provisioners=(provisioner(**limited(cpu="6")),))
    assert (len(outcome.homes), len(outcome.pending)) == (1, 1)
    assert bought(outcome) <= 6000


def test_a_pod_whose_smallest_machine_is_above_the_limit_stays_pending() -> None:
    outcome = alone({"cpu": "2100m"}, provisioners=(provisioner(**limited(cpu="2")),))
    assert outcome.new == ()
    assert "limits" in outcome.pending["a"]


def test_a_limit_on_a_device_is_a_limit() -> None:
    owner = provisioner(**limited(**{"nvidia.com_gpu": "1"}))
    outcome = alone({"extra": {"nvidia.com/gpu": "1"}}, provisioners=(owner,))
    assert outcome.new == ()
    assert "nvidia.com/gpu" in outcome.pending["a"]
    enough = provisioner(**limited(**{"nvidia.com_gpu": "2"}))
    outcome = alone({"extra": {"nvidia.com/gpu": "1"}}, provisioners=(enough,))
    assert outcome.types == [NVIDIA.name]


def test_what_an_earlier_round_bought_counts_in_the_next() -> None:
    owner = provisioner(**limited(cpu="2"))
    first = solve(pod("a", cpu="1750m"), provisioners=(owner,), market=PLAIN)
    assert first.is_placed("a")
    second = solve(pod("b", cpu="1750m"), provisioners=(owner,), market=PLAIN, **settled(first))
    assert second.new == ()
    assert "limits" in second.pending["b"]
    flying = slot(0, kind=TINY, pods=[pod("a", cpu="1750m")])
    third = solve(
        pod("a", cpu="1750m"), pod("b", cpu="1750m"), provisioners=(owner,), slots=(flying,)
    )
    assert third.new == ()
    assert list(third.pending) == ["b"]

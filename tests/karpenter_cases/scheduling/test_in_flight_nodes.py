"""Machines that were launched and whose nodes are not ready yet count as room."""

from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.kubernetes.pods import Pod
from shared.model.values import replace
from tests.karpenter_cases.scheduling.machines import node, slot
from tests.karpenter_cases.scheduling.market import LARGE, NVIDIA, SMALL, ZONES, A, B
from tests.karpenter_cases.scheduling.outcome import Outcome, solve
from tests.karpenter_cases.scheduling.writing import (
    Raw,
    daemonset,
    pod,
    pods,
    provisioner,
    spread,
    taint,
)

STARTING = [taint(keys.NOT_READY_TAINT), taint(keys.CLOUD_UNINITIALIZED_TAINT, value="true")]
FIRST = pod("first", cpu="1")
SPREAD: dict[str, Any] = {"cpu": "100m", "spreads": [spread()]}
HOST_SPREAD: dict[str, Any] = {"cpu": "100m", "spreads": [spread(keys.HOSTNAME)]}


def joined(*taints: Raw, ready: bool = False) -> Outcome:
    """Decide about a second pod where the first one's node has joined with these taints.

    A node that is ready here was initialized before.
    """
    labels = {keys.INITIALIZED: "true"} if ready else {}
    there = node("n1", taints=taints, ready=ready, labels=labels)
    owner = provisioner(startupTaints=[taint("network-agent")])
    return solve(
        FIRST,
        pod("a", cpu="1"),
        nodes=(there,),
        slots=(slot(node="n1", pods=[FIRST]),),
        provisioners=(owner,),
    )


def test_room_that_was_launched_takes_a_second_pod() -> None:
    outcome = solve(FIRST, pod("a", cpu="1"), slots=(slot(pods=[FIRST]),))
    assert outcome.new == ()
    assert outcome.where() == "plan-1/0/0"
    assert not outcome.is_placed("first")


def test_room_that_was_launched_takes_a_second_pod_its_labels_suit() -> None:
    wants_b = pod("a", selector={keys.ZONE: B})
    outcome = solve(wants_b, slots=(slot(0, A), slot(1, B)))
    assert outcome.where() == "plan-1/0/1"


def test_a_pod_that_does_not_fit_what_was_launched_gets_a_node() -> None:
    big = pod("first", cpu="3")
    outcome = solve(big, pod("a", cpu="1"), slots=(slot(pods=[big]),))
    assert outcome.where() == "new-0"


def test_a_pod_whose_selector_does_not_suit_gets_a_node() -> None:
    outcome = solve(pod("a", selector={keys.ARCH: "arm64"}), slots=(slot(),))
    assert outcome.values(keys.ARCH) == {"arm64"}
    assert len(outcome.new) == 1


def test_a_machine_that_is_being_removed_is_no_room() -> None:
    outcome = solve(pod("a"), nodes=(node(deleting=True),), slots=(slot(node="n1"),))
    assert outcome.where() == "new-0"


def test_what_was_launched_is_filled_before_more_is() -> None:
    """Four rounds of pods, each planned while the machines of those before still start."""
    market = (SMALL, LARGE)
    flying = [slot(0, kind=LARGE)]
    waiting: list[Pod] = []
    for number in range(1, 5):
        batch = pods(3, f"r{number}-", cpu="1")
        outcome = solve(*waiting, *batch, slots=tuple(flying), market=market)
        assert outcome.new == ()
        waiting += batch
        flying = [replace(flying[0], pods=slot(pods=waiting).pods)]
    outcome = solve(*waiting, *pods(6, "last", cpu="1"), slots=tuple(flying), market=market)
    assert {outcome.where(f"last{n:03}") for n in range(6)} == {"plan-1/0/0", "new-0"}
    assert len(outcome.new) == 1


def test_room_is_known_though_the_provisioner_is_gone_or_changed() -> None:
    smaller = provisioner("default", (keys.INSTANCE_TYPE, "In", "m5.tiny"))
    for owners in ((), (smaller,)):
        outcome = solve(pod("a", cpu="3"), slots=(slot(),), provisioners=owners)
        assert outcome.where() == "plan-1/0/0"


def test_a_node_that_is_ready_is_filled_before_those_that_start() -> None:
    nodes = (node("a-starts", taints=STARTING, ready=False), node("b-ready"))
    outcome = solve(pod(), nodes=nodes, slots=(slot(node="a-starts"), slot(1)))
    assert outcome.where() == "b-ready"


def test_a_spread_over_zones_counts_what_is_on_its_way() -> None:
    first = pods(4, "first", **SPREAD)
    flying = tuple(
        slot(number, zone, pods=group)
        for number, (zone, group) in enumerate(
            zip(ZONES, (first[:2], first[2:3], first[3:]), strict=True)
        )
    )
    outcome = solve(*first, *pods(5, **SPREAD), slots=flying)
    assert outcome.new == ()
    homes = [outcome.where(home) for home in outcome.homes]
    assert sorted(homes.count(f"plan-1/0/{n}") for n in range(3)) == [1, 2, 2]
    assert homes.count("plan-1/0/0") == 1


def test_a_spread_over_hosts_counts_what_is_on_its_way() -> None:
    first = pods(4, "first", **HOST_SPREAD)
    flying = tuple(slot(number, pods=[other_pod]) for number, other_pod in enumerate(first))
    outcome = solve(*first, *pods(5, **HOST_SPREAD), slots=flying)
    assert len(outcome.homes) == 5
    assert len({outcome.where(home) for home in outcome.homes}) == 5
    assert {outcome.where(home) for home in outcome.homes} & {"plan-1/0/0"} == set()


def test_a_node_without_any_taint_takes_the_pod() -> None:
    assert joined().where() == "n1"


def test_a_taint_that_will_stay_keeps_the_pod_away() -> None:
    assert joined(taint("foreign"), *STARTING).where() == "new-0"


def test_startup_taint_is_expected_to_be_removed() -> None:
    assert joined(taint("network-agent"), *STARTING).where() == "n1"


def test_a_startup_taint_that_is_back_on_a_ready_node_keeps_the_pod_away() -> None:
    assert joined(taint("network-agent"), ready=True).where() == "new-0"


@pytest.mark.parametrize("arrived", [0, 1])
def test_daemons_still_to_come_keep_their_room(arrived: int) -> None:
    """Of 3.9 cores the daemon takes 1, once: whether it has come yet or not."""
    there = node("n1", taints=STARTING, ready=False)
    theirs = {"owner": "DaemonSet", "owner_name": "agent", "namespace": "kube-system"}
    daemon = pod("agent-1", cpu="1", node="n1", **theirs)
    outcome = solve(
        pod("a", cpu="2800m"),
        pod("b", cpu="200m"),
        nodes=(there,),
        bound=(daemon,)[:arrived],
        slots=(slot(node="n1"),),
        daemonsets=(daemonset(cpu="1"),),
    )
    assert outcome.where("a") == "n1"
    assert outcome.where("b") == "new-0"


def test_an_unexpected_daemon_takes_only_its_own_room() -> None:
    there = node("n1", taints=STARTING, ready=False)
    surprise = pod("other-1", cpu="1", owner="DaemonSet", node="n1", namespace="kube-system")
    outcome = solve(
        pod("a", cpu="2800m"), nodes=(there,), bound=(surprise,), slots=(slot(node="n1"),)
    )
    assert outcome.where("a") == "n1"


def test_an_unexpected_daemon_does_not_replace_an_expected_one() -> None:
    there = node("n1", taints=STARTING, ready=False)
    surprise = pod("other-1", cpu="1", owner="DaemonSet", node="n1", namespace="kube-system")
    outcome = solve(
        pod("a", cpu="2"),
        nodes=(there,),
        bound=(surprise,),
        slots=(slot(node="n1"),),
        daemonsets=(daemonset(cpu="1"),),
    )
    assert outcome.where("a") == "new-0"


def test_devices_the_kubelet_does_not_show_yet_count_as_launched() -> None:
    """Until the device plugin speaks, the kubelet reports none."""
    amounts = {"cpu": "7900m", "memory": "15Gi", "pods": "30", "nvidia.com/gpu": "0"}
    there = node("n1", kind=NVIDIA, taints=STARTING, ready=False, allocatable=amounts)
    outcome = solve(
        pod(extra={"nvidia.com/gpu": "1"}), nodes=(there,), slots=(slot(node="n1", kind=NVIDIA),)
    )
    assert outcome.where() == "n1"

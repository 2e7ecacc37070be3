"""Nodes that stand already, ours and others', are filled before any is bought."""

from shared.model import labels as keys
from shared.model.values import replace
from tests.karpenter_cases.scheduling.machines import node
from tests.karpenter_cases.scheduling.market import LARGE, SMALL, TINY
from tests.karpenter_cases.scheduling.outcome import solve
from tests.karpenter_cases.scheduling.writing import TEAM, daemonset, pod, pods, provisioner

FOREIGN = {"cpu": "10", "memory": "10Gi", "pods": "110"}


def test_an_unmanaged_node_takes_a_pod() -> None:
    there = node("static", owner="", allocatable=FOREIGN)
    outcome = solve(pod(cpu="10", memory="10Gi"), nodes=(there,))
    assert outcome.where() == "static"
    assert outcome.new == ()


def test_an_unmanaged_node_takes_as_many_pods_as_fit() -> None:
    there = node("static", owner="", allocatable={**FOREIGN, "cpu": "101", "memory": "110Gi"})
    outcome = solve(*pods(100, cpu="1", memory="1Gi"), nodes=(there,))
    assert {outcome.where(home) for home in outcome.homes} == {"static"}
    assert outcome.new == ()


def test_a_node_that_is_ready_is_filled_before_one_that_starts() -> None:
    """Dovetail manages neither node, so it is unknown when the other will be ready."""
    starting, ready = node("a-starting", owner="", ready=False), node("z-ready", owner="")
    assert solve(pod(), nodes=(starting, ready)).where() == "z-ready"
    assert solve(pod(), nodes=(starting,)).where() == "new-0"


def test_pod_that_fits_no_existing_node_gets_a_new_one() -> None:
    there = node("static", owner="", labels={keys.ARCH: "amd64"}, allocatable=FOREIGN)
    outcome = solve(pod(selector={keys.ARCH: "arm64"}), nodes=(there,))
    assert outcome.plan.placements == ()
    assert outcome.values(keys.ARCH) == {"arm64"}


def test_daemon_that_does_not_run_on_an_existing_node_uses_no_capacity_there() -> None:
    """It only runs where the label is `red`, which one of two otherwise equal nodes has."""
    daemon = daemonset("agent", cpu="3", memory="6Gi", nodeSelector={TEAM: "red"})
    plain = node("plain", owner="")
    outcome = solve(pod(cpu="2"), nodes=(plain,), daemonsets=(daemon,))
    assert outcome.where() == "plain"
    red = provisioner("red", labels={TEAM: "red"})
    outcome = solve(pod(cpu="2"), daemonsets=(daemon,), provisioners=(red,))
    assert outcome.types == ["m5.medium"]


def test_a_full_node_takes_nothing_and_a_pod_that_ended_fills_none() -> None:
    full = pod("old", node="n1", cpu="3800m")
    assert solve(pod(), nodes=(node(),), bound=(full,)).where() == "new-0"
    assert solve(pod(), nodes=(node(),)).where() == "n1"


def test_pods_that_are_left_over_get_new_nodes() -> None:
    outcome = solve(*pods(6, cpu="1"), nodes=(node(kind=SMALL),), market=(TINY, SMALL, LARGE))
    assert [outcome.where(home) for home in sorted(outcome.homes)].count("n1") == 3
    assert sum(len(planned_node.pods) for planned_node in outcome.new) == 3


def test_a_cordoned_node_takes_nothing() -> None:
    cordoned = replace(node(), unschedulable=True)
    assert solve(pod(), nodes=(cordoned,)).where() == "new-0"

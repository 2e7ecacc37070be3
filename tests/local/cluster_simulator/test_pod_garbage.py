"""Pods that no kubelet ends are collected as Kubernetes collects them."""

import time

from infra.local.cluster_simulator.controllers.garbage import OUT_OF_SERVICE
from tests.local.cluster_simulator.bench import NODES, PODS, SPEED, Bench, condition, is_true, pod
from tests.waiting import until

MACHINE = "aws:///us-east-1a/i-n0"
QUARANTINE_SECONDS = 40


def bound(bench: Bench, name: str) -> None:
    # No taint of its node evicts it.
    bench.create(PODS, pod(name, nodeName="n0", tolerations=[{"operator": "Exists"}]))
    until(lambda: is_true(bench.get(f"{PODS}/{name}"), "Ready"), "it runs")


def test_pods_of_a_node_that_is_gone_stay_for_its_quarantine(bench: Bench) -> None:
    bench.add_node("n0")
    until(lambda: bench.is_ready("n0"))
    bound(bench, "a")
    bench.machines[MACHINE] = "gone"
    began = time.monotonic()
    bench.call("DELETE", f"{NODES}/n0")
    until(lambda: bench.is_gone(f"{PODS}/a"), "it is collected")
    assert time.monotonic() - began >= QUARANTINE_SECONDS / SPEED


def test_terminating_pods_of_a_node_out_of_service_are_collected(bench: Bench) -> None:
    bench.add_node("n0", finalizers=["karpenter.sh/termination"])
    until(lambda: bench.is_ready("n0"))
    for name in ("a", "b"):
        bound(bench, name)
    bench.machines[MACHINE] = "gone"
    until(lambda: condition(bench.get(f"{NODES}/n0"), "Ready").get("status") == "Unknown")
    bench.call("DELETE", f"{PODS}/a")
    taints = bench.get(f"{NODES}/n0")["spec"].get("taints") or []
    taint = {"key": OUT_OF_SERVICE, "value": "nodeshutdown", "effect": "NoSchedule"}
    bench.patch(f"{NODES}/n0", {"spec": {"taints": [*taints, taint]}})
    until(lambda: bench.is_gone(f"{PODS}/a"), "it is collected")
    assert not bench.is_gone(f"{PODS}/b")


def test_a_name_that_was_used_before_is_silent_from_the_beginning(bench: Bench) -> None:
    bench.machines[MACHINE] = "pending"
    bench.add_node("n0")
    until(lambda: condition(bench.get(f"{NODES}/n0"), "Ready").get("status") == "Unknown")
    bench.call("DELETE", f"{NODES}/n0")
    until(lambda: bench.is_gone(f"{NODES}/n0"))
    bench.add_node("n0")
    found = until(
        lambda: (c := condition(bench.get(f"{NODES}/n0"), "Ready")).get("status") == "Unknown" and c
    )
    assert found["reason"] == "NodeStatusNeverUpdated"

"""The life of a small cluster from first pod to last node, as an autoscaler lives it."""

from tests.local.cluster_simulator.bench import (
    BUDGETS,
    DAEMON_SETS,
    DEPLOYMENTS,
    NODES,
    PODS,
    Bench,
    RefusedError,
    budget,
    condition,
    is_false,
    taint_keys,
    template,
    workload,
)
from tests.waiting import until

FINALIZER = "karpenter.sh/termination"


def evict(bench: Bench, name: str) -> None:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    bench.create(f"{PODS}/{name}/eviction", body)


def test_pods_wait_run_and_are_evicted_and_nodes_end_with_their_finalizer(
    bench: Bench,
) -> None:
    # Three fit on a node of four, so that its agent has room whichever comes first.
    web = template("web", cpu="1200m")
    bench.create(DEPLOYMENTS, workload("Deployment", "web", web, replicas=8))
    bench.create(BUDGETS, budget("web", minAvailable=3))
    bench.create(DAEMON_SETS, workload("DaemonSet", "agent", template("agent", cpu="100m")))

    pods = until(lambda: len(found := bench.pods("web")) == 8 and found, "eight pods exist")
    until(
        lambda: all(condition(p, "PodScheduled").get("reason") for p in bench.pods("web")),
        "every pod is told why it waits",
    )
    told = condition(bench.pods("web")[0], "PodScheduled")
    assert told["status"] == "False"
    assert told["reason"] == "Unschedulable"
    assert told["message"] == "no nodes available to schedule pods"
    assert not any(p["spec"].get("nodeName") for p in pods)

    for number in range(3):
        bench.add_node(f"n{number}", finalizers=[FINALIZER])
    until(lambda: len(bench.ready_pods("web")) == 8, "eight pods ready")
    until(lambda: len(bench.ready_pods("agent")) == 3, "a daemon pod on each node")
    assert taint_keys(bench.get(f"{NODES}/n0")) == set()
    until(
        lambda: bench.get(f"{BUDGETS}/web").get("status", {}).get("disruptionsAllowed") == 5,
        "the budget is counted",
    )

    for number in range(3):
        bench.patch(f"{NODES}/n{number}", {"spec": {"unschedulable": True}})
    refused = None
    for victim in sorted(p["metadata"]["name"] for p in bench.pods("web")):
        try:
            evict(bench, victim)
        except RefusedError as refusal:
            refused = refusal
            break
    assert refused is not None
    assert refused.code == 429
    until(lambda: len(bench.ready_pods("web")) == 3, "three pods stay")
    replaced = until(
        lambda: [p for p in bench.pods("web") if is_false(p, "PodScheduled")],
        "the evicted pods come back",
    )
    until(
        lambda: (
            "3 node(s) were unschedulable"
            in condition(bench.get(f"{PODS}/{replaced[0]['metadata']['name']}"), "PodScheduled")[
                "message"
            ]
        ),
        "they are told about the cordon",
    )

    bench.call("DELETE", f"{NODES}/n0")
    assert bench.get(f"{NODES}/n0")["metadata"]["deletionTimestamp"]
    bench.patch(f"{NODES}/n0", {"metadata": {"finalizers": None}})
    assert bench.is_gone(f"{NODES}/n0")
    until(
        lambda: not any(p["spec"].get("nodeName") == "n0" for p in bench.items(PODS)),
        "pods of the vanished node are collected",
    )

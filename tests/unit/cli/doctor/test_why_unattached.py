"""`dovetail why` about a cluster to which Dovetail is not attached."""

import pytest

from functions.cli.doctor.why_unattached import WhyUnattached
from functions.cli.plan.reading.documents import Document
from functions.cli.plan.reading.running_cluster import read_running_cluster
from shared.model.errors import NotFoundError
from shared.ports import PastEvent
from tests.unit.cli import dumps

EVENT = PastEvent(at=None, source="karpenter", reason="Nominated", message="m", count=1)


def why(*objects: dumps.Object) -> WhyUnattached:
    return about([*dumps.mixed(), *objects])


def about(objects: list[dumps.Object]) -> WhyUnattached:
    documents = [Document(where="cluster", raw=raw) for raw in objects]
    return WhyUnattached(read_running_cluster(documents, dumps.CATALOG), lambda *_: (EVENT,))


def test_a_pending_pod_is_told_what_dovetail_would_plan_and_who_decides() -> None:
    answer = why().pod("shop", "web-99")
    assert (answer.subject, answer.state) == ("pod/shop/web-99", "is pending")
    assert any(line.startswith("goes to ") for line in answer.outlook)
    assert answer.waits_for[0].startswith("whatever scales this cluster")
    assert answer.events == (EVENT,)


def test_a_pending_pod_is_told_of_a_cheaper_pool_and_of_a_key_that_no_node_has() -> None:
    pools = [
        dumps.node_pool(name, dumps.needs("node.kubernetes.io/instance-type", kind),
                        dumps.needs("karpenter.sh/capacity-type", "on-demand"))
        for name, kind in (("zdear", "m5.8xlarge"), ("cheap", "m5.4xlarge"))
    ]  # fmt: skip
    waiting = dumps.pod("shop", "big", 0, "", "12", "1Gi", **dumps.spread("big", "rack"))
    waiting["spec"]["topologySpreadConstraints"][0]["whenUnsatisfiable"] = "ScheduleAnyway"
    waiting["status"] = {"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}  # fmt: skip
    outlook = why(*pools, waiting).pod("shop", "big-0").outlook
    assert [line.partition(" of ")[0] for line in outlook[-3:]] == [
        "topology key rack",
        "NodePool zdear: its nodes cost $1.5360/h; NodePool new",
        "NodePool zdear: its nodes cost $1.5360/h; NodePool cheap",
    ]


def test_a_pod_that_runs_is_told_what_its_node_is_and_costs() -> None:
    known = why()
    answer = known.pod("shop", "web-0")
    assert answer.state.startswith("is Running on node ip-10-2-")
    assert answer.current[0].endswith("/h")
    lost = why(dumps.pod("shop", "lost", 0, "gone", "1", "1Gi")).pod("shop", "lost-0")
    assert (lost.state, lost.current) == ("is Running on node gone", ())


def test_a_pod_that_no_node_is_launched_for_is_told_why() -> None:
    new = dumps.pod("shop", "new", 0, "", "1", "1Gi")
    answer = why(new).pod("shop", "new-0")
    assert "is not marked Unschedulable" in answer.state
    assert not answer.outlook


def test_a_node_is_told_what_it_is_costs_and_carries() -> None:
    answer = why().node("ip-10-2-2-0")
    assert answer.state == ("is m6i.xlarge on-demand in us-east-1a of NodePool new, $0.1920/h")
    assert answer.current == ("2 pods: shop/api-0, shop/api-3",)
    unknown = why().node("ip-10-2-4-0")
    assert unknown.state.endswith(", price not known")
    assert unknown.current == ("1 pod: edge/relay-0",)


def test_a_node_is_told_how_full_it_is_and_what_consolidation_would_save() -> None:
    other = why().node("ip-10-2-1-1").outlook
    assert other == (
        "filled cpu 40 %, memory 33 %, pods 7 %",
        "could be consolidated: its 2 pods would go to ip-10-2-2-1; saves $0.0871/h",
    )
    pinned = why().node("ip-10-2-0-0").outlook
    assert pinned[1].startswith("is not consolidated: its pods have no place on other nodes, or ")
    assert len(pinned) == 2
    alone = dumps.node("alone", "m6i.8xlarge", "a", {"karpenter.sh/nodepool": "new"})
    large = dumps.pod("shop", "large", 0, "alone", "5", "9Gi")
    large["spec"]["nodeSelector"] = {"karpenter.sh/nodepool": "new"}
    assert why(alone, large).node("alone").outlook[-1] == (
        "could be consolidated: its 1 pod would go to new 1 × m6a.2xlarge on-demand; "
        "saves $1.1904/h"
    )
    empty = dumps.node("empty", "m6i.large", "a", {"karpenter.sh/nodepool": "new"})
    assert why(empty).node("empty").outlook == (
        "filled by nothing",
        "could be consolidated: no pod would move; saves $0.0960/h",
    )


@pytest.mark.parametrize(
    ("objects", "told"),
    [
        pytest.param(
            (dumps.budget("shop", "api", 0),),
            ["PodDisruptionBudget api holds pod shop/api-0",
             "PodDisruptionBudget api holds pod shop/api-3"],
            id="a budget of pods",
        ),
        pytest.param(
            ({"disruption": {"budgets": [{"nodes": "0"}]}},),
            ["the budget of disruptions is used up"],
            id="a budget of nodes",
        ),
        pytest.param(
            ({"disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "1m"}},),
            ["consolidationPolicy is WhenEmpty, and pods run on it"],
            id="a policy",
        ),
    ],
)  # fmt: skip
def test_a_node_is_told_what_keeps_it_and_what_it_would_save_without_that(
    objects: tuple[dumps.Object, ...], told: list[str]
) -> None:
    known = dumps.mixed()
    for found in objects:
        if "disruption" in found:
            (pool,) = [one for one in known if one["metadata"]["name"] == "new"]
            pool["spec"] |= found
        else:
            known.append(found)
    *kept, last = about(known).node("ip-10-2-2-0").outlook[1:]
    assert kept == [f"is not consolidated: {reason}" for reason in told]
    assert last == (
        "without that could be consolidated: its 2 pods would go to i-0auto0; saves $0.1920/h"
    )


def test_of_many_reasons_three_are_said() -> None:
    kept = {"karpenter.sh/do-not-disrupt": "true"}
    node = dumps.node("kept", "m6i.2xlarge", "a", {"karpenter.sh/nodepool": "new"})
    pods = [dumps.pod("shop", "kept", number, "kept", "100m", "1Gi") for number in range(5)]
    for pod in pods:
        pod["metadata"]["annotations"] = kept
    outlook = why(node, *pods).node("kept").outlook
    assert outlook[1] == (
        "is not consolidated: pod shop/kept-0 has the annotation karpenter.sh/do-not-disrupt"
    )
    assert outlook[4] == "is not consolidated: 2 more reasons of this kind"


def test_a_workload_is_told_where_its_pods_are_and_what_the_first_that_waits_would_get() -> None:
    answer = why().workload("deployment", "shop", "web")
    assert answer.state.endswith(", 1 pod without a node")
    assert answer.outlook
    placed = why().workload("daemonset", "kube-system", "aws-node")
    assert placed.state.endswith(", 0 pods without a node")
    assert not placed.outlook


def test_an_owner_is_told_what_its_nodes_are_and_cost() -> None:
    answer = why().owner("nodepool", "new")
    assert answer.state == "has 3 nodes, $0.5760/h"
    assert len(answer.current) == 3
    idle = why(dumps.node_pool("idle"))
    assert idle.owner("nodepool", "idle").state == "has 0 nodes, $0.0000/h"


def test_the_cluster_is_told_by_pool_with_what_waits() -> None:
    answer = why().cluster()
    assert answer.subject == "cluster of this kubeconfig"
    assert "NodePool new: 3 nodes, $0.5760/h" in answer.current
    assert answer.current[-1] == "1 pod waiting: shop/web-99"


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("pod", ("shop", "nosuch")),
        ("node", ("nosuch",)),
        ("workload", ("job", "shop", "nosuch")),
        ("owner", ("nodepool", "nosuch")),
    ],
)
def test_what_is_not_there_is_refused_with_what_lists_it(kind: str, words: tuple[str, ...]) -> None:
    documents = [Document(where="cluster", raw=raw) for raw in dumps.mixed()]
    running = read_running_cluster(documents, dumps.CATALOG)
    named = WhyUnattached(running, lambda *_: (EVENT,), "prod", " --context prod")
    with pytest.raises(NotFoundError, match=r"cluster prod; kubectl --context prod .*get"):
        getattr(named, kind)(*words)

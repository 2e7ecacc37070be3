"""What is shown of nodes and waiting pods: each state has its words."""

from datetime import timedelta
from typing import Any

import pytest

from functions.cli.watch.view import (
    GOING,
    NOT_READY,
    Nomination,
    OfferingPrices,
    WorkloadShare,
    view_node,
    view_planned,
    view_slot,
    view_waiting,
    workload_shares,
)
from shared.model import labels as keys
from shared.model.kubernetes.pods import ControllerRef
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.values import replace
from tests.builders import (
    CATALOG,
    MIB,
    NOW,
    node,
    planned,
    pod,
    provisioner,
    slot,
)
from tests.builders import (
    NOT_READY as CLOSED,
)

JOINED = {**node().labels, keys.INITIALIZED: "true"}


def test_pods_are_summed_by_workload_and_those_of_daemonsets_are_one() -> None:
    agent = ControllerRef(kind="DaemonSet", name="agent", uid="u")
    many = [pod("a", node_name="n1"), pod("b", node_name="n1"), pod("c", owner=agent)]
    assert workload_shares(many) == (
        WorkloadShare(workload="daemons", count=1, cpu=500, memory=512 * MIB, names=("default/c",)),
        WorkloadShare(
            workload="default/web",
            count=2,
            cpu=1000,
            memory=1024 * MIB,
            names=("default/a", "default/b"),
        ),
    )


def test_a_deployment_is_known_by_its_own_name_and_not_by_its_replica_set() -> None:
    owner = ControllerRef(kind="ReplicaSet", name="web-96ddabef71", uid="u")
    labels = {"pod-template-hash": "96ddabef71"}
    [share] = workload_shares([pod(owner=owner, labels=labels)])
    assert share.workload == "default/web"


def test_a_running_node_shows_what_fills_it_and_its_price() -> None:
    view = view_node(node(labels=JOINED), [pod(node_name="n1")], provisioner(), [], 96_000)
    assert (view.phase, view.waits_for, view.reason) == ("initialized", "", "")
    assert (view.cpu, view.room, view.price, view.owner) == (1900, 29, 96_000, "default")
    assert view.since == NOW.isoformat()
    assert [share.count for share in view.pods] == [1]


CNI = Taint(key="cni", effect=Effect.NO_SCHEDULE)
GOES = {keys.REMOVAL_REASON: "empty", keys.DRAIN_BLOCKED: "by budget web"}


@pytest.mark.parametrize(
    ("changes", "phase", "waits"),
    [
        ({"ready": None}, "launched", "the kubelet to be Ready"),
        ({"taints": (CNI,)}, "registered", "startup taint cni to go"),
        ({"taints": (CLOSED,)}, "registered", "Dovetail to bind its pods and open it"),
        ({"ready": False, "labels": JOINED}, NOT_READY, "its kubelet to be Ready again"),
        ({"ready": False, "finalizers": ()}, NOT_READY, "its kubelet to be Ready"),
        ({"finalizers": ()}, "initialized", ""),
        ({"annotations": GOES, "labels": JOINED}, GOING, ""),
        ({"deletion_at": NOW}, GOING, ""),
    ],
)
def test_a_node_shows_how_far_it_has_come_and_what_it_waits_for(
    changes: dict[str, Any], phase: str, waits: str
) -> None:
    view = view_node(node(**changes), [], provisioner(startup_taints=(CNI,)), [], None)
    assert (view.phase, view.waits_for) == (phase, waits)
    assert view.ours is (changes.get("finalizers") != ())


def test_a_node_names_its_owner_and_that_ones_kind_whoever_launched_it() -> None:
    view = view_node(node(), [], None, [], None)
    assert (view.owner, view.owner_kind, view.ours) == ("default", "Provisioner", True)
    of_pool = node(labels={keys.NODE_POOL: "general"}, finalizers=())
    view = view_node(of_pool, [], None, [], None)
    assert (view.owner, view.owner_kind, view.ours) == ("general", "NodePool", False)
    view = view_node(node(labels={}), [], None, [], None)
    assert (view.owner, view.owner_kind, view.ours) == ("", "", False)


def test_a_node_shows_its_promised_pods_and_why_it_goes_and_what_holds_it() -> None:
    view = view_node(node(ready=None), [], provisioner(), [pod("a"), pod("b")], None)
    assert [share.count for share in view.promised] == [2]
    view = view_node(node(annotations=GOES, labels=JOINED), [], None, [], None)
    assert (view.reason, view.blocked) == ("empty", "by budget web")
    assert view_node(node(deletion_at=NOW), [], None, [], None).reason == "the Node was deleted"


def test_an_instance_without_node_shows_what_it_will_have() -> None:
    view = view_slot(slot(), provisioner(), [pod("a")])
    assert (view.owner, view.owner_kind, view.ours) == ("default", "Provisioner", True)
    assert (view.name, view.phase, view.price) == ("i-slot0", "launching", 96_000)
    assert view.waits_for == "EC2 to start the instance, then its Node is made"
    assert (view.cpu, view.plan) == (1900, "plan-1")
    assert [share.count for share in view.promised] == [1]


def test_a_node_that_ec2_was_asked_for_says_how_many_offerings_are_named() -> None:
    asked = planned(pod("a"))
    view = view_planned("plan-1/0/0", asked, None, [pod("a")])
    assert (view.owner, view.owner_kind, view.ours) == ("default", "", True)
    assert (view.phase, view.instance, view.plan) == ("launching", "", "plan-1")
    assert view.waits_for == "EC2's answer to CreateFleet, which names 1 offerings"


def test_a_price_on_the_node_comes_before_that_of_the_catalogue() -> None:
    prices = OfferingPrices.of(CATALOG)
    assert prices.of_node(node(annotations={keys.PRICE: "5"})) == 5
    assert prices.of_node(node()) == 96_000
    assert prices.of_node(node(labels={})) is None


def test_the_catalogue_has_no_price_of_windows() -> None:
    prices = OfferingPrices.of(CATALOG)
    assert prices.of_node(node(labels={**node().labels, keys.OS: "windows"})) is None


@pytest.mark.parametrize(
    ("labels", "bought", "price"),
    [
        ({"eks.amazonaws.com/capacityType": "SPOT"}, "spot", 32_000),
        ({"eks.amazonaws.com/capacityType": "ON_DEMAND"}, "on-demand", 96_000),
        ({keys.CAPACITY_TYPE: "reserved"}, "reserved", 96_000),
        ({}, "on-demand", 96_000),
        ({keys.INSTANCE_TYPE: ""}, "", None),
    ],
)
def test_a_node_shows_how_it_was_bought_whoever_labelled_it_and_has_that_price(
    labels: dict[str, str], bought: str, price: int | None
) -> None:
    others = {k: v for k, v in node().labels.items() if k != keys.CAPACITY_TYPE}
    found = node(labels={**others, **labels})
    assert OfferingPrices.of(CATALOG).of_node(found) == price
    assert view_node(found, [], None, [], price).capacity_type == bought


def test_waiting_pods_are_grouped_by_what_they_wait_for() -> None:
    later = NOW + timedelta(minutes=1)
    many = [
        pod("a", created_at=later),
        pod("b"),
        pod("c"),
        pod("d", gated=True),
        pod("e"),
        pod("f", created_at=None),
    ]
    groups = view_waiting(
        many,
        {
            "uid-a": Nomination(node="n1", waits_for="the kubelet to be Ready"),
            "uid-e": Nomination(node="n2", waits_for=""),
        },
        {"uid-b": "fits nothing: cpu"},
        {"uid-c": "0/3 nodes are available"},
    )
    assert {group.reason for group in groups} == {
        "nominated to n1, which waits for the kubelet to be Ready",
        "nominated to n2",
        "fits nothing: cpu",
        "0/3 nodes are available",
        "has scheduling gates: kube-scheduler does not look at it until they are removed",
        "waits for the next plan, which is made within a minute",
    }
    assert {group.names: group.node for group in groups if group.node} == {
        ("default/a",): "n1",
        ("default/e",): "n2",
    }
    [alone] = [group for group in groups if not group.since]
    assert alone.names == ("default/f",)


def test_pods_of_a_large_plan_are_one_group_for_each_workload() -> None:
    waits = {
        f"uid-{name}": Nomination(node=f"n-{name}", waits_for="the kubelet to be Ready")
        for name in "abc"
    }
    [group] = view_waiting([pod(name) for name in "abc"], waits, {}, {})
    assert group.reason == "nominated to 3 nodes, which wait for the kubelet to be Ready"
    assert (group.count, group.node) == (3, "")


def test_the_largest_group_comes_first_with_the_age_of_its_oldest_pod() -> None:
    early = NOW - timedelta(hours=1)
    many = [pod("a"), replace(pod("b"), created_at=early), pod("c", namespace="other")]
    first, second = view_waiting(many, {}, {}, {})
    assert (first.count, first.workload, first.since) == (2, "default/web", early.isoformat())
    assert (first.cpu, first.names) == (1000, ("default/a", "default/b"))
    assert second.count == 1

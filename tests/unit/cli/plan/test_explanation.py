"""Why one pod goes where a plan puts it."""

from typing import Any

import pytest

from functions.cli.plan.explanation import explanation
from shared.model import labels as keys
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.plan import Placement, Plan
from shared.model.requirements import Requirements
from shared.model.values import replace
from tests import builders as make


def test_a_pod_of_another_scheduler_is_told_to_be_bound_by_that() -> None:
    asked = make.scheduling(scheduler_name="volcano")
    waits, runs = make.pod(scheduling=asked), make.pod(scheduling=asked, node_name="n1")
    told = [explanation(make.snapshot(pod), Plan(), pod)[1] for pod in (waits, runs)]
    assert told == [
        "scheduler volcano chooses its node: the plan is by the rules of kube-scheduler",
        "it is on node n1 already",
    ]


def test_a_pod_is_told_why_it_goes_to_none_of_the_nodes_that_are_there() -> None:
    pod = make.pod("new", cpu=1000, node_selector=make.needs(keys.ARCH, "In", "amd64"))
    first = make.pod("first", cpu=1000)
    roomy = {"capacity": make.SHAPES["m5.large"].capacity}
    nodes = (
        make.node("arm", labels={**make.node().labels, keys.ARCH: "arm64"}),
        make.node("closed", unschedulable=True),
        make.node("free"),
        make.node("given"),
        make.node("lost", ready=False),
        *(
            make.node(f"full-{n}", allocatable=make.node().allocatable.only(frozenset({"pods"})))
            for n in range(5)
        ),
        make.node("tainted", taints=(Taint(key="team", effect=Effect.NO_SCHEDULE),), **roomy),
    )
    plan = Plan(placements=(Placement(node="given", slot="", pods=(make.ref(first),)),))
    lines = explanation(make.snapshot(first, pod, nodes=nodes), plan, pod)
    assert [line for line in lines if line.startswith("not on")] == [
        "not on lost: being deleted or not Ready",
        "not on closed: cordoned",
        "not on tainted: does not tolerate taint team:NoSchedule",
        "not on free: it has room: rules of other pods forbid it, or its own node is needed anyway",
        "not on arm: labels or volumes that it needs are elsewhere",
        "not on given: too little cpu is left",
        "not on full-0, full-1, full-2 and 2 more: too little cpu, memory is left",
    ]
    placed = explanation(make.snapshot(first, pod, nodes=nodes), plan, first)
    assert not [line for line in placed if line.startswith("not on")]


@pytest.mark.parametrize(
    ("stated", "rules"),
    [
        ({"spreads": (make.spread(key=keys.HOSTNAME),)}, f"topology spread over {keys.HOSTNAME}"),
        ({"affinity": (make.affinity(),)}, f"affinity over {keys.HOSTNAME}"),
        ({"anti_affinity": (make.affinity(),)}, f"anti-affinity over {keys.HOSTNAME}"),
        ({"host_ports": (("", "TCP", 80),), "claims": ("a",)}, "host ports, volumes"),
    ],
)
def test_a_pod_that_is_kept_off_by_its_rules_is_told_which(
    stated: dict[str, Any], rules: str
) -> None:
    pod = make.pod("new", **stated)
    lines = explanation(make.snapshot(pod, nodes=(make.node("free"),)), Plan(), pod)
    assert f"not on free: it has room, but the pod's rules forbid it: {rules}" in lines


def test_a_pod_is_told_why_it_goes_to_none_of_the_other_new_nodes_and_what_goes_with_it() -> None:
    zone = make.needs(keys.ZONE, "In", make.ZONES[0])
    pods = [make.pod(f"p{n}", cpu=800, node_selector=zone) for n in range(5)]
    elsewhere = make.option(zone=make.ZONES[1])
    plan = Plan(
        nodes=(
            make.planned(pods[0], pods[1]),
            make.planned(pods[2], pods[3]),
            make.planned(options=(elsewhere,)),
            make.planned(pods[4]),
        )
    )
    lines = explanation(make.snapshot(*pods), plan, pods[4])
    assert [line for line in lines if line.startswith("not on")] == [
        "not on new node 3: labels or volumes that it needs are elsewhere",
        "not on new node 1-2: too little cpu is left",
    ]
    assert lines[1].startswith("goes to new node 4 of Provisioner default: m5.large ")
    assert "with it: default/p1" in explanation(make.snapshot(*pods), plan, pods[0])


@pytest.mark.parametrize(
    ("named", "line"),
    [
        ({}, "1 instance type (6 offerings) could hold it alone, the cheapest m5.large"),
        (
            {"node_selector": make.needs(keys.INSTANCE_FAMILY, "In", "m5", "t3")},
            "2 instance types (12 offerings) could hold it alone, the cheapest t3.large",
        ),
    ],
    ids=["not named", "named"],
)
def test_types_that_are_launched_only_where_named_do_not_count(
    named: dict[str, Any], line: str
) -> None:
    burstable = make.instance_type("t3.large", price=10_000)
    labels = {**burstable.labels, keys.INSTANCE_CATEGORY: "t"}
    types = (make.instance_type("m5.large"), replace(burstable, labels=labels))
    pod = make.pod(cpu=100, **named)
    owner = make.provisioner(requirements=Requirements())
    seen = make.snapshot(pod, provisioners=[owner], instance_types=types)
    assert explanation(seen, Plan(), pod)[-1].startswith(f"default: {line}")

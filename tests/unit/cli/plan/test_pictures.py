from xml.etree import ElementTree as ET

import pytest

from functions.cli.plan.explanation import explanation, find_pod
from functions.cli.plan.gap_in_words import gap
from functions.cli.plan.svg_plan import draw_plan
from functions.cli.printable_text import number_ranges
from shared.model.kubernetes.pods import ControllerRef, Pod
from shared.model.plan import Placement, Plan, Unschedulable
from shared.model.resources import Resources
from shared.model.values import replace
from tests import builders as make


def told(picture: str) -> str:
    return " ".join(ET.fromstring(picture).itertext())


def owned(name: str, workload: str) -> Pod:
    return make.pod(
        name, owner=ControllerRef(kind="ReplicaSet", name=workload, uid=f"uid-{workload}")
    )


def test_fifty_nodes_are_drawn_one_by_one_and_more_are_counted() -> None:
    pods = make.pods(130)
    for count, expected in ((50, "m5.large:"), (65, "65 × m5.large:")):
        nodes = tuple(make.planned(*pods[2 * n : 2 * n + 2]) for n in range(count))
        text = told(draw_plan(make.snapshot(*pods), Plan(nodes=nodes), "c"))
        assert text.count("m5.large:") == (50 if count == 50 else 1)
        assert expected in text
        assert f"{count} new nodes for {2 * count} pods" in text


def test_many_kinds_of_nodes_are_cut_off_and_said() -> None:
    pods = make.pods(420)
    nodes = tuple(
        make.planned(pod, options=(make.option(100 * number + 100),))
        for number, pod in enumerate(pods)
    )
    text = told(draw_plan(make.snapshot(*pods), Plan(nodes=nodes), "c"))
    assert "20 kinds of nodes not drawn" in text


def test_many_workloads_share_the_legend() -> None:
    pods = tuple(owned(f"p{number}", f"w{number:02}") for number in range(30))
    text = told(draw_plan(make.snapshot(*pods), Plan(nodes=(make.planned(*pods),)), "c"))
    assert "default/w23" in text
    assert "and 6 more workloads; colours repeat" in text


def test_daemons_running_pods_and_lost_pods_are_shown() -> None:
    standing = make.pod("old", node_name="n1")
    first, second, lost = make.pods(3)
    plan = Plan(
        nodes=(make.planned(first, daemon_requests=Resources.of(cpu=100, pods=1)),),
        placements=(
            Placement(node="n1", slot="", pods=(make.ref(second),)),
            Placement(node="slot", slot="slot", pods=(make.ref(lost),)),
        ),
        unschedulable=(Unschedulable(pod=make.ref(lost), reasons=("why",)),),
    )
    snapshot = make.snapshot(first, second, lost, bound=(standing,), nodes=(make.node("n1"),))
    text = told(draw_plan(snapshot, plan, "c"))
    assert "daemons" in text
    assert "pods that are there" in text
    assert "1 pod without a place" in text
    assert "2 pods on nodes that are there" in text


def test_names_cannot_break_the_picture() -> None:
    nasty = owned("a", "<script>&\x01]]>")
    picture = draw_plan(make.snapshot(nasty), Plan(nodes=(make.planned(nasty),)), "<c>")
    assert "default/<script>&?]]>" in told(picture)
    assert "<script>" not in picture


def test_an_empty_plan_is_a_picture_too() -> None:
    assert "0 pods on 0 nodes, nothing to launch" in told(draw_plan(make.snapshot(), Plan(), "c"))


def test_without_a_bound_the_gap_is_not_known() -> None:
    pod = make.pod()
    bought = Plan(nodes=(make.planned(pod),), cost_micros_per_hour=7)
    assert gap(bought) == "no lower bound: existing nodes may have room for these pods"
    assert "no lower bound" in told(draw_plan(make.snapshot(pod), bought, "c"))
    assert gap(Plan(bound_is_close=True)) == "gap 0.00 %"
    priced = Plan(cost_micros_per_hour=3, lower_bound_micros_per_hour=2)
    assert gap(priced) == "at most 50.00 % above what is proved"
    assert gap(replace(priced, bound_is_close=True)) == "gap 50.00 %"


def test_an_explanation_knows_promised_pods_and_provisioners_without_place() -> None:
    pod = make.pod()
    snapshot = make.snapshot(
        pod,
        provisioners=(make.provisioner("a"), make.provisioner("b"), make.provisioner("c")),
        sites=(make.site("a"), make.site("b", zones=(), reason="nothing has the tags")),
    )
    lines = explanation(snapshot, Plan(), pod)
    assert lines[1] == "it is promised to a node that was launched before"
    assert "could hold it alone, the cheapest m5.large" in lines[2]
    assert lines[3] == "b: nothing has the tags"
    assert lines[4] == "c: no subnet: nothing was found"
    alone = explanation(snapshot, Plan(nodes=(make.planned(pod, provisioner="a"),)), pod)
    assert alone[1].startswith("goes to new node 1 of Provisioner a")
    assert "could hold it alone" in alone[2]
    several = (make.option(), make.option(100_000, zone=make.ZONES[1]))
    plan = Plan(nodes=(make.planned(pod, options=several, provisioner="a"),))
    assert "2 options hold the same pods" in explanation(snapshot, plan, pod)[2]
    assert find_pod(snapshot, "other") is None


def test_new_nodes_have_the_numbers_of_the_table_in_a_picture() -> None:
    pods = [make.pod(f"p{n}") for n in range(3)]
    other = (make.option(zone=make.ZONES[1]),)
    nodes = (make.planned(pods[0]), make.planned(pods[1], options=other), make.planned(pods[2]))
    drawn = draw_plan(make.snapshot(*pods), Plan(nodes=nodes), "c")
    assert [drawn.index(f">{number}: m5.large<") for number in (1, 3, 2)] == sorted(
        drawn.index(f">{number}: m5.large<") for number in (1, 2, 3)
    )


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([], ""), ([4], "4"), ([1, 2, 3, 7], "1-3, 7"), ([1, 3, 5, 7, 8], "1, 3, 5, …")],
)
def test_numbers_in_a_row_are_a_range(numbers: list[int], text: str) -> None:
    assert number_ranges(numbers) == text

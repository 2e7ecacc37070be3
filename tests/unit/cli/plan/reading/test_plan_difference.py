from functions.cli.plan.plan_difference import compare
from functions.cli.plan.plan_document import plan_document
from shared.model.plan import Placement, Plan
from tests import builders as make

A, B, C = make.pods(3, "p")


def test_equal_plans_differ_in_nothing() -> None:
    plan = Plan(nodes=(make.planned(A, B),), cost_micros_per_hour=5)
    found = compare(plan, plan)
    assert (found.cost_micros_per_hour, found.nodes, found.pods) == (0, (), ())


def test_a_difference_names_money_nodes_and_pods() -> None:
    before = Plan(
        nodes=(make.planned(A, B),),
        placements=(Placement(node="n1", slot="", pods=(make.ref(C),)),),
        cost_micros_per_hour=100,
    )
    after = Plan(
        nodes=(make.planned(A, options=(make.option(name="c5.large"),)),),
        cost_micros_per_hour=70,
    )
    found = compare(before, after)
    assert found.cost_micros_per_hour == -30
    assert (found.nodes_before, found.nodes_after) == (1, 1)
    assert [count for _, count in found.nodes] == [1, -1]
    assert found.nodes[0][0][0] == "c5.large"
    moves = {pod: (first, then) for pod, first, then in found.pods}
    assert moves["default/p000"][1].startswith("new c5.large")
    assert moves["default/p001"][1] == "nothing"
    assert moves["default/p002"] == ("n1", "nothing")


def test_the_document_of_an_empty_plan_has_every_key() -> None:
    assert plan_document(Plan(), 0, 1.23456) == {
        "version": 1,
        "nodes": [],
        "existing": [],
        "unschedulable": [],
        "cost_micros_per_hour": 0,
        "cost_without_jobs_micros_per_hour": 0,
        "lower_bound_micros_per_hour": 0,
        "bound_is_close": False,
        "preferences": {"stated": 0, "kept": 0, "rest_micros_per_hour": 0},
        "elapsed_ms": 1.235,
    }

"""The work of one plan is bounded: the most expensive pods are set aside, the others placed."""

from itertools import chain
from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.codec import from_plain, to_plain
from shared.model.kubernetes.pods import Pod
from shared.model.plan import Plan
from shared.model.resources import Resources
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.planning.decide import decide
from shared.planning.initial_state import initial_state
from shared.planning.offerings.picks import MOST_PICKS
from shared.planning.rules.pod_classes import PodClass
from shared.planning.setting_aside import BUDGET_STEPS, NO_PICK, SET_ASIDE, split_by_cost
from shared.planning.solve import solve
from shared.planning.work import OverBudgetError, Work, estimates
from tests import builders as make
from tests.benchmarks.planning import bounded
from tests.builders import needs, pod, pods, provisioner, snapshot
from tests.unit.planning.asking import QUICK

OPEN = provisioner(also=needs("team", "Exists"))


def later(plan: Plan) -> list[str]:
    return [pod_left.pod.name for pod_left in plan.unschedulable if pod_left.later]


def team(number: int) -> Pod:
    return pod(f"p{number:03}", node_selector=needs("team", "In", f"t{number:03}"))


def classes(*members: Pod) -> tuple[PodClass, ...]:
    return tuple(
        PodClass(
            namespace=member.namespace,
            scheduling=member.scheduling,
            labels=member.labels,
            pods=(make.ref(member),),
        )
        for member in members
    )


@pytest.mark.parametrize(
    "made",
    [
        bounded.teams(300),
        bounded.pairs(200),
        bounded.apart(60),
        bounded.preferences(150),
        bounded.company(3, 150),
        bounded.shapes(200),
        *(bounded.just_below(12, kind) for kind in bounded.KINDS),
    ],
    ids=lambda made: made[0]["metadata"]["name"],
)
def test_innocent_pods_are_planned_for_beside_expensive_ones(made: list[Any]) -> None:
    assert_innocents_are_planned(made, 60_000)


@pytest.mark.slow
@pytest.mark.parametrize("case", bounded.CASES)
def test_innocent_pods_are_planned_for_beside_the_most_expensive_ones(case: str) -> None:
    assert_innocents_are_planned(bounded.CASES[case](), BUDGET_STEPS)


def assert_innocents_are_planned(made: list[Any], budget_steps: int) -> None:
    written = [*made, *bounded.innocents()]
    world = replace(bounded.snapshot(written), instance_types=make.CATALOG)
    plan = decide(world, budget_steps=budget_steps)
    assert bounded.placed(plan, "shop") == bounded.INNOCENTS
    told = {pod_left.pod for pod_left in plan.unschedulable}
    assert bounded.placed(plan, "tenant") + len(told) == len(written) - bounded.INNOCENTS


def test_alternatives_that_differ_in_a_label_alone_take_no_more_than_one() -> None:
    few, many = (
        pod(required_terms=tuple(needs("team", "In", f"t{n:03}") for n in range(count)))
        for count in (2, 256)
    )
    plans = [decide(snapshot(other_pod, provisioners=(OPEN,))) for other_pod in (few, many)]
    assert plans[0] == plans[1]
    assert plans[0].nodes[0].labels["team"] == "t000"


def test_pods_for_which_no_pick_is_left_are_planned_for_later() -> None:
    waiting = [team(number) for number in range(MOST_PICKS + 3)]
    world = snapshot(*waiting, provisioners=(OPEN,))
    plan = decide(world)
    left = [f"p{MOST_PICKS + number:03}" for number in range(3)]
    assert later(plan) == left
    assert {pod_left.reasons for pod_left in plan.unschedulable} == {(NO_PICK,)}
    placed = frozenset(ref.uid for node in plan.nodes for ref in node.pods)
    assert decide(replace(world, promised=placed)).unschedulable == ()


def test_a_namespace_with_many_values_leaves_picks_to_the_others() -> None:
    mine = [team(number) for number in range(100)]
    other = replace(team(500), namespace="shop", uid="other")
    plan = decide(snapshot(*mine, other, provisioners=(OPEN,)))
    assert "p500" not in later(plan)
    assert len(later(plan)) == 100 - MOST_PICKS + 1


def test_more_work_than_the_budget_sets_aside_the_pods_that_take_most() -> None:
    apart = make.affinity(selector=make.selector(), namespace_selector=make.selector())
    dear = [
        replace(other_pod, namespace="tenant")
        for other_pod in pods(
            20, "costly", anti_affinity=tuple(replace(apart, weight=n) for n in range(9))
        )
    ]
    plain = pods(5, "plain")
    world = snapshot(*dear, *plain)
    assert decide(world).unschedulable == ()
    plan = decide(world, budget_steps=5_000)
    assert later(plan) == sorted(other_pod.name for other_pod in dear)
    assert {pod_left.reasons for pod_left in plan.unschedulable} == {(SET_ASIDE,)}
    assert sum(len(node.pods) for node in plan.nodes) == len(plain)


def test_the_same_budget_gives_the_same_plan_from_what_was_written_down() -> None:
    written = [*bounded.apart(40), *bounded.innocents()]
    world = replace(bounded.snapshot(written), instance_types=make.CATALOG)
    plan = decide(world, budget_steps=20_000)
    assert 0 < len(later(plan)) < 40
    assert decide(world, budget_steps=20_000) == plan
    # As read from a decision, no two pods share an object.
    copies = [from_plain(Pod, to_plain(other_pod)) for other_pod in world.pending]
    assert decide(replace(world, pending=tuple(copies)), budget_steps=20_000) == plan


def steps_at_once(world: ClusterSnapshot) -> int:
    """Return what it costs to solve all pods at once."""
    work = Work(BUDGET_STEPS)
    plan_state = initial_state(world, world.pending, QUICK, work, frozenset())
    solve(plan_state, plan_state.pod_groups)
    return work.steps


def test_solving_again_by_priority_sets_no_pod_aside() -> None:
    stuck = pod("stuck", cpu=90_000, priority=9)
    waiting = [pods(30, f"p{rank}", cpu=100 + rank, priority=rank) for rank in range(3)]
    world = snapshot(stuck, *chain(*waiting))
    # Packed rank by rank they cost more than packed together.
    plan = decide(world, QUICK, budget_steps=steps_at_once(world))
    assert later(plan) == []
    assert [pod_left.pod.name for pod_left in plan.unschedulable] == ["stuck"]


def test_priority_counts_where_solving_all_at_once_uses_the_budget_up() -> None:
    near = (make.affinity(selector=make.selector(app="db"), weight=3),)
    high = pod("z", cpu=1500, priority=100, affinity=near)
    limited = provisioner(limits=Resources.of(cpu=2000))
    world = snapshot(pod("a", cpu=1500), high, provisioners=(limited,))
    plan = decide(world, QUICK, budget_steps=steps_at_once(world))
    assert later(plan) == []
    assert [pod_left.pod.name for pod_left in plan.unschedulable] == ["a"]


def test_a_budget_for_nothing_sets_every_pod_aside() -> None:
    plan = decide(snapshot(*pods(3)), budget_steps=1)
    assert plan == Plan(unschedulable=plan.unschedulable)
    assert later(plan) == ["p000", "p001", "p002"]


def test_the_most_expensive_class_of_the_most_expensive_namespace_is_set_aside_first() -> None:
    members = [replace(other_pod, namespace="tenant") for other_pod in pods(4, "t")] + list(
        pods(4, "s")
    )
    work = Work(100)
    work.classes = classes(*members)
    with pytest.raises(OverBudgetError):
        work.spend_each({0: 10, 1: 40, 2: 20, 3: 30, 4: 5, 5: 5})
    now, aside = split_by_cost(members, work, 1)
    assert [other_pod.name for other_pod in aside] == ["t001", "t002", "t003"]
    assert [other_pod.name for other_pod in now] == ["t000", "s000", "s001", "s002", "s003"]


def test_of_equally_expensive_classes_the_less_important_are_set_aside_first() -> None:
    members = [pod("low", priority=0), pod("high", priority=9), pod("middle", priority=5)]
    work = Work(0)
    work.classes = classes(*members)
    now, aside = split_by_cost(members, work, 1)
    assert [other_pod.name for other_pod in now] == []
    assert len(aside) == 3
    members += pods(9, "more", priority=1)
    work.classes = classes(*members)
    now, _ = split_by_cost(members, work, 1)
    assert [other_pod.name for other_pod in now] == ["high", "middle", "more000"]


def test_after_some_tries_half_of_a_namespace_is_placed_at_once() -> None:
    members = [replace(other_pod, namespace="tenant") for other_pod in pods(10, "t")]
    work = Work(0)
    work.classes = classes(*members)
    work.steps_by_group = {0: 1_000}
    assert len(split_by_cost(members, work, 1)[1]) == 1
    assert len(split_by_cost(members, work, 9)[1]) == 5


def test_first_pod_with_a_rule_pays_for_it() -> None:
    wide = make.affinity(selector=make.selector())
    first, second = (pod(name, anti_affinity=(wide,)) for name in "ab")
    (plain,) = classes(pod("c"))
    steps = estimates((*classes(first, second), plain), 10)
    assert steps[0] > steps[1] > steps[2] == 0
    named = estimates((*classes(pod(anti_affinity=(make.affinity(),))), plain), 10)
    assert named[0] == steps[1], "a rule with a label is found by it"


def test_rules_cost_what_stands_there_nodes_and_namespaces_among_them() -> None:
    def more(rule: dict[str, Any], **there: int) -> int:
        members = classes(pod(**rule))
        return estimates(members, **{"nodes": 0, **there})[0] - estimates(members, 0)[0]

    wide = make.affinity(selector=make.selector())
    assert more({"anti_affinity": (wide,)}, existing=700) == 700
    assert more({"anti_affinity": (make.affinity(),)}, existing=700) == 0
    red = make.affinity(namespace_selector=make.selector(team="red"))
    assert more({"anti_affinity": (red, replace(red, key=keys.ZONE))}, namespaces=700) == 700
    assert more({"spreads": (make.spread(keys.HOSTNAME), make.spread(keys.ZONE))}, nodes=800) == 200
    assert more({"affinity": (make.affinity(),)}, nodes=700, namespaces=700) == 0


def test_a_preference_costs_what_it_has_alternatives_for() -> None:
    preference_kind = make.spread(hard=False)
    terms = tuple(needs("team", "In", f"t{number}") for number in range(3))
    steps = estimates(
        classes(pod(spreads=(preference_kind,)), pod("b", spreads=(preference_kind,) * 2)), 10
    )
    assert steps[1] > steps[0]
    assert estimates(classes(pod(required_terms=terms)), 0)[0] > 0


def test_two_thousand_pods_of_as_many_sizes_are_planned_at_once() -> None:
    asked = [
        pod(f"p{number:04}", cpu=100 + number % 1_000, memory=2**28 + number)
        for number in range(2_000)
    ]
    assert not decide(snapshot(*asked)).unschedulable

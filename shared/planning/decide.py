"""The provisioning decision."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Final

from shared.model.ec2.launches import LaunchOption, PlannedNode
from shared.model.kubernetes.pods import Pod
from shared.model.plan import Placement, Plan, Unschedulable
from shared.model.snapshot import ClusterSnapshot
from shared.packing.problem import PackingSettings
from shared.planning.initial_state import asking, initial_state
from shared.planning.offerings.pending_group import Wish
from shared.planning.offerings.target_node import TargetNode
from shared.planning.preferences.weighing import Weighed, weigh
from shared.planning.reasons import Explainer
from shared.planning.setting_aside import (
    BUDGET_STEPS,
    NO_PICK,
    SET_ASIDE,
    cheapest,
    ref_of,
)
from shared.planning.solver import solve
from shared.planning.state import PlanState
from shared.planning.work import OverBudgetError, Work
from shared.scheduling.topology.constraints import obstacles

# However often pods are set aside, the others are decided for with this part of the budget.
_LEAST_PART: Final = 4


def decide(
    snapshot: ClusterSnapshot,
    settings: PackingSettings | None = None,
    *,
    budget_steps: int = BUDGET_STEPS,
) -> Plan:
    """Return what to do about the pods of a snapshot that wait for capacity.

    Existing and in-flight nodes are filled first, at no price; what is left is packed onto new
    nodes. The same snapshot, settings and budget always give the same plan, whose lower bound is
    yet to be proved (`lower_bound.with_bound`).

    Args:
        snapshot: What is known of the cluster.
        settings: What a good plan is.
        budget_steps: What placing all pods at once may cost. Above it the pods that cost most are
            set aside, and the others are decided for with half of it, until they fit. Placing them
            again by priority may cost as much, and so may weighing preferences.
    """
    settings = settings or PackingSettings()
    asked = asking(snapshot)
    if not asked:
        return Plan()
    unplaced = [_refused(pod) for pod in asked if pod.scheduling.refusals]
    waiting = [pod for pod in asked if not pod.scheduling.refusals]
    least = budget_steps // _LEAST_PART
    tries = 0
    while waiting:
        tries += 1
        work = Work(budget_steps)
        try:
            again = Work(budget_steps)
            plain = _solved(snapshot, waiting, settings, work, weighed=frozenset(), again=again)
        except OverBudgetError:
            waiting, dear = cheapest(waiting, work, tries)
            unplaced += [_set_aside(pod) for pod in dear]
            if work.begun:
                budget_steps = max(budget_steps // 2, least)
        else:
            solve = partial(_solved, snapshot, waiting, settings)
            weighed = weigh(plain, solve, settings, budget_steps)
            return _to_plan(snapshot, weighed, unplaced)
    return Plan(unschedulable=_sorted(unplaced))


def _refused(pod: Pod) -> Unschedulable:
    return Unschedulable(pod=ref_of(pod), reasons=("; ".join(pod.scheduling.refusals),))


def _set_aside(pod: Pod) -> Unschedulable:
    return Unschedulable(pod=ref_of(pod), reasons=(SET_ASIDE,), later=True)


def _sorted(unplaced: Sequence[Unschedulable]) -> tuple[Unschedulable, ...]:
    return tuple(sorted(unplaced, key=lambda entry: entry.pod))


def _solved(
    snapshot: ClusterSnapshot,
    waiting: Sequence[Pod],
    settings: PackingSettings,
    work: Work,
    *,
    weighed: AbstractSet[Wish],
    again: Work | None = None,
) -> PlanState:
    """Return the state with all pods solved at once; where some are left, solved by priority.

    Args:
        snapshot: What is known of the cluster.
        waiting: The pods that are decided for.
        settings: What a good plan is.
        work: What solving them at once may cost.
        weighed: Of the preferences that are weighed, those that are rules.
        again: What solving them by priority may cost, `work` where it is not given. Above it they
            stay as they were solved at once.

    Raises:
        OverBudgetError: If solving them at once takes more steps than it may.
    """
    together = initial_state(snapshot, waiting, settings, work, weighed)
    solve(together, together.pod_groups)
    left = [pod_group.priority for pod_group in together.unplaced()]
    if not left or min(pod_group.priority for pod_group in together.pod_groups) >= max(left):
        return together
    try:
        ranked = initial_state(snapshot, waiting, settings, again or work, weighed)
        for rank in sorted({pod_group.priority for pod_group in ranked.pod_groups}, reverse=True):
            solve(ranked, [entry for entry in ranked.pod_groups if entry.priority == rank])
    except OverBudgetError:
        return together
    ranked.remark = together.remark
    return ranked if ranked.left_over() < together.left_over() else together


def _to_plan(
    snapshot: ClusterSnapshot,
    weighed: Weighed,
    apart: Sequence[Unschedulable],
) -> Plan:
    """Return the plan; `apart` are the pods that were not asked about."""
    plan_state = weighed.plan_state
    placements = [
        Placement(
            node=spot.room.name,
            slot=spot.room.slot,
            pods=tuple(sorted(ref for refs in spot.contents.values() for ref in refs)),
        )
        for spot in plan_state.spots
        if spot.room is not None and spot.contents
    ]
    known: dict[int, tuple[LaunchOption, ...]] = {}
    nodes = [_planned(plan_state, spot, known) for spot in plan_state.spots if spot.room is None]
    unplaced = [*apart]
    explainer = Explainer(snapshot, plan_state.all_left())
    for pod_group in plan_state.unplaced():
        later = pod_group.index in plan_state.cut
        if later:
            reasons: tuple[str, ...] = (NO_PICK,)
        else:
            rules = tuple(obstacles(pod_group.kind))
            reasons = explainer.explain(pod_group.one, frozenset(pod_group.turned_away), rules)
        limited = frozenset(pod_group.turned_away)
        unplaced += [
            Unschedulable(pod=ref, reasons=reasons, limited=limited, later=later)
            for ref in pod_group.waiting
        ]
    return Plan(
        nodes=tuple(sorted(nodes, key=lambda n: (n.provisioner, n.price_micros_per_hour, n.pods))),
        placements=tuple(sorted(placements, key=lambda placement: placement.node)),
        unschedulable=_sorted(unplaced),
        order=tuple(ref for _, ref, _ in plan_state.order),
        cost_micros_per_hour=sum(node.price_micros_per_hour for node in nodes),
        remark=plan_state.remark,
        preferences=weighed.preferences,
        wider=plan_state.wider,
    )


def _planned(
    plan_state: PlanState, spot: TargetNode, known: dict[int, tuple[LaunchOption, ...]]
) -> PlannedNode:
    """Return a node to be launched; `known` are options by list, since lists come many times."""
    for ways in (spot.ways, spot.fallback):
        if id(ways) not in known:
            known[id(ways)] = tuple(map(plan_state.table.option, ways))
    offer = plan_state.table.offers[spot.ways[0].offer]
    own = {k: v for k, v in offer.labels.items() if k not in offer.instance_type.labels}
    return PlannedNode(
        provisioner=offer.provisioner.name,
        labels=own,
        options=known[id(spot.ways)],
        fallback=known[id(spot.fallback)],
        pods=tuple(sorted(ref for refs in spot.contents.values() for ref in refs)),
        requests=spot.requests,
        daemon_requests=spot.daemons,
    )

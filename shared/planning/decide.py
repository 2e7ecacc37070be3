"""The provisioning decision."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Final

from shared.model.ec2.launches import LaunchOption, PlannedNode
from shared.model.kubernetes.pods import Pod
from shared.model.plan import KeptPreferences, Placement, Plan, Unschedulable
from shared.model.snapshot import ClusterSnapshot
from shared.packing.problem import PackingSettings
from shared.planning.initial_state import initial_state, pods_to_place
from shared.planning.offerings.pending_group import WeighedPreference
from shared.planning.offerings.target_node import TargetNode
from shared.planning.reasons import Reasons
from shared.planning.rules.topology.constraints import obstacles
from shared.planning.setting_aside import (
    BUDGET_STEPS,
    NO_PICK,
    SET_ASIDE,
    ref_of,
    split_by_cost,
)
from shared.planning.solve import solve
from shared.planning.state import PlanState
from shared.planning.weighing import weigh
from shared.planning.work import OverBudgetError, Work

# Each time pods are set aside the budget is halved, but never below a quarter of the first one.
_LEAST_PART: Final = 4


def decide(
    snapshot: ClusterSnapshot,
    settings: PackingSettings | None = None,
    *,
    budget_steps: int = BUDGET_STEPS,
) -> Plan:
    """Return the plan for the pending pods of a snapshot.

    Existing and in-flight nodes are filled first, at no cost; the other pods are packed onto new
    nodes. The same snapshot, settings and budget always give the same plan. Its lower bound is
    proved later (`lower_bound.with_bound`).

    Args:
        snapshot: What is known of the cluster.
        settings: Packing settings.
        budget_steps: Most steps for placing all pods at once. Above it, the pods that cost most are
            set aside and the others are planned with half of it, until they fit. Placing them again
            by priority may cost as much, and so may weighing preferences.
    """
    settings = settings or PackingSettings()
    asked = pods_to_place(snapshot)
    if not asked:
        return Plan()
    unplaced = [_refused(pod) for pod in asked if pod.scheduling.refusals]
    waiting = [pod for pod in asked if not pod.scheduling.refusals]
    least = budget_steps // _LEAST_PART
    tries = 0
    while waiting:
        tries += 1
        work, priority_work = Work(budget_steps), Work(budget_steps)
        try:
            baseline = _solve_all(snapshot, waiting, settings, work, frozenset(), priority_work)
        except OverBudgetError:
            waiting, set_aside = split_by_cost(waiting, work, tries)
            unplaced += [_set_aside(pod) for pod in set_aside]
            if work.begun:
                budget_steps = max(budget_steps // 2, least)
        else:
            solve = partial(_solve_all, snapshot, waiting, settings)
            plan_state, preferences = weigh(baseline, solve, settings, budget_steps)
            return _to_plan(snapshot, plan_state, preferences, unplaced)
    return Plan(unschedulable=_sorted(unplaced))


def _refused(pod: Pod) -> Unschedulable:
    return Unschedulable(pod=ref_of(pod), reasons=("; ".join(pod.scheduling.refusals),))


def _set_aside(pod: Pod) -> Unschedulable:
    return Unschedulable(pod=ref_of(pod), reasons=(SET_ASIDE,), later=True)


def _sorted(unplaced: Sequence[Unschedulable]) -> tuple[Unschedulable, ...]:
    return tuple(sorted(unplaced, key=lambda entry: entry.pod))


def _solve_all(
    snapshot: ClusterSnapshot,
    waiting: Sequence[Pod],
    settings: PackingSettings,
    work: Work,
    as_rules: AbstractSet[WeighedPreference],
    priority_work: Work | None = None,
) -> PlanState:
    """Return the state after placing all pods at once or, if that places more, by priority.

    Args:
        snapshot: What is known of the cluster.
        waiting: The pods to place.
        settings: Packing settings.
        work: Counts the steps of placing all pods at once, up to its budget.
        as_rules: The weighed preferences that are hard rules in this try.
        priority_work: Counts the steps of placing them by priority; `work` if None. Above its
            budget, the pods stay as they were placed at once.

    Raises:
        OverBudgetError: If placing all pods at once takes more steps than the budget allows.
    """
    all_at_once = initial_state(snapshot, waiting, settings, work, as_rules)
    solve(all_at_once, all_at_once.pod_groups)
    left = [pod_group.priority for pod_group in all_at_once.unplaced()]
    if not left or min(pod_group.priority for pod_group in all_at_once.pod_groups) >= max(left):
        return all_at_once
    try:
        by_priority = initial_state(snapshot, waiting, settings, priority_work or work, as_rules)
        for rank in sorted(
            {pod_group.priority for pod_group in by_priority.pod_groups}, reverse=True
        ):
            solve(
                by_priority, [entry for entry in by_priority.pod_groups if entry.priority == rank]
            )
    except OverBudgetError:
        return all_at_once
    by_priority.remark = all_at_once.remark
    return (
        by_priority
        if by_priority.unplaced_by_priority() < all_at_once.unplaced_by_priority()
        else all_at_once
    )


def _to_plan(
    snapshot: ClusterSnapshot,
    plan_state: PlanState,
    preferences: KeptPreferences,
    not_asked: Sequence[Unschedulable],
) -> Plan:
    """Return the plan; `not_asked` are the pods that were refused or set aside before it."""
    placements = [
        Placement(
            node=target.existing.name,
            slot=target.existing.slot,
            pods=tuple(sorted(ref for refs in target.contents.values() for ref in refs)),
        )
        for target in plan_state.targets
        if target.existing is not None and target.contents
    ]
    known: dict[int, tuple[LaunchOption, ...]] = {}
    nodes = [_planned(plan_state, target, known) for target in plan_state.new_nodes]
    unplaced = [*not_asked]
    known_reasons = Reasons(snapshot, plan_state.all_limits_left())
    for pod_group in plan_state.unplaced():
        limited = frozenset(pod_group.limited_provisioners)
        reasons: tuple[str, ...] = (NO_PICK,)
        if not pod_group.lacks_pick:
            rules = tuple(obstacles(pod_group.topology))
            reasons = known_reasons.of(pod_group.pod_class, limited, rules)
        unplaced += [
            Unschedulable(pod=ref, reasons=reasons, limited=limited, later=pod_group.lacks_pick)
            for ref in pod_group.waiting
        ]
    return Plan(
        nodes=tuple(sorted(nodes, key=lambda n: (n.provisioner, n.price_micros_per_hour, n.pods))),
        placements=tuple(sorted(placements, key=lambda placement: placement.node)),
        unschedulable=_sorted(unplaced),
        order=tuple(ref for _, ref, _ in plan_state.binding_order),
        cost_micros_per_hour=sum(node.price_micros_per_hour for node in nodes),
        remark=plan_state.remark,
        preferences=preferences,
        wider=plan_state.widened_namespaces,
    )


def _planned(
    plan_state: PlanState, target: TargetNode, known_options: dict[int, tuple[LaunchOption, ...]]
) -> PlannedNode:
    """Return a node to be launched; `known_options` caches launch options by their list's id."""
    for options in (target.options, target.fallback):
        if id(options) not in known_options:
            known_options[id(options)] = tuple(map(plan_state.table.launch_option, options))
    offer = plan_state.table.offers[target.options[0].offer]
    own = {k: v for k, v in offer.labels.items() if k not in offer.instance_type.labels}
    return PlannedNode(
        provisioner=offer.provisioner.name,
        labels=own,
        options=known_options[id(target.options)],
        fallback=known_options[id(target.fallback)],
        pods=tuple(sorted(ref for refs in target.contents.values() for ref in refs)),
        requests=target.requests,
        daemon_requests=target.daemon_requests,
    )

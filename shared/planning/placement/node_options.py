"""Passes over the options of nodes to be launched, once pods have their places.

Each takes the plan state, changes options and places no pod. `keep_flexible` also drops nodes whose
pods there are too few options for.
"""

from shared.planning.offerings.offering_table import LaunchableOffering
from shared.planning.offerings.target_node import TargetNode
from shared.planning.placement.buying import PURCHASE_STEPS, Purchase, buy_again
from shared.planning.rules.min_values import missing_values, values_of_one_launch
from shared.planning.rules.topology.counts import add
from shared.planning.state import PlanState


def keep_known_domains(plan_state: PlanState) -> None:
    """Remove options in domains that no spread has counted."""
    for target in plan_state.targets:
        for key in sorted(target.undecided):
            known = plan_state.topology_counts.known_domains(key, target)
            if known is None:
                continue
            own = target.all_labels.get(key, "")
            if own not in known:
                known = frozenset((own,))
                plan_state.recheck = True

            def is_known(
                option: LaunchableOffering, key: str = key, known: frozenset[str] = known
            ) -> bool:
                return (plan_state.table.label(option, key) or "") in known

            plan_state.keep_options(target, is_known)


def shrink_nodes(plan_state: PlanState) -> None:
    """Give nodes that got fewer pods than were packed the cheapest instance that holds them."""
    for target in plan_state.underfilled:
        if not target.contents:
            continue
        bought = buy_again(plan_state, target)
        if bought is not None and bought.price < target.options[0].offering.price_micros_per_hour:
            plan_state.set_options(target, bought.options, bought.fallback)
    plan_state.underfilled.clear()


def leave_out_special(plan_state: PlanState) -> None:
    """Remove special types that a node's own pods do not need, if other options remain."""
    known: dict[tuple[object, ...], Purchase | None] = {}
    for target in plan_state.targets:
        suited = plan_state.suited_to(target)
        if not target.options_mask & ~suited:
            continue
        # Without limits, the options of a node do not depend on other nodes.
        alone = target.name if plan_state.limits else ""
        decided = tuple(target.labels.get(key) for key in plan_state.topology_keys)
        likeness = (
            alone,
            target.options_mask,
            suited,
            tuple(target.node_constraints),
            target.requests,
            decided,
        )
        if likeness not in known:
            plan_state.work.spend(PURCHASE_STEPS, min(target.contents))
            known[likeness] = buy_again(plan_state, target, suited)
        bought = known[likeness]
        if bought is not None:
            plan_state.set_options(target, bought.options, bought.fallback)


def keep_flexible(plan_state: PlanState) -> None:
    """Give each node to be launched the options that minValues asks for.

    The packer chooses options by price alone, and later passes remove some. A node for whose pods
    there are not enough is dropped. Its pods return to pending: smaller nodes may do, or those of
    another Provisioner.
    """
    inflexible = [target for target in plan_state.new_nodes if _is_inflexible(plan_state, target)]
    dropped = {id(target) for target in inflexible if not _add_options(plan_state, target)}
    if not dropped:
        return
    lost = [entry for entry in plan_state.binding_order if id(entry[2]) in dropped]
    for pod_group, _, target in lost:
        add(pod_group.topology.profile, target, -1)
    plan_state.take_back(lost)
    plan_state.drop_empty()
    plan_state.recheck = True


def _is_inflexible(plan_state: PlanState, target: TargetNode) -> bool:
    table = plan_state.table
    least = table.offers[target.options[0].offer].provisioner.least_values
    if not least:
        return False
    every = map(table.labels, (*target.options, *target.fallback))
    return bool(
        missing_values(values_of_one_launch(least), map(table.labels, target.options))
        or missing_values(least, every)
    )


def _add_options(plan_state: PlanState, target: TargetNode) -> bool:
    """Give a node all options that hold its pods; return whether these are enough."""
    bought = buy_again(plan_state, target)
    if bought is not None:
        plan_state.set_options(target, bought.options, bought.fallback)
    return not _is_inflexible(plan_state, target)

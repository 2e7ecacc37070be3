"""Nodes whose options must meet minValues: they get more options, or are dropped.

The packer chooses options by price alone, and later steps remove some.
"""

from shared.planning.offerings.target_node import TargetNode
from shared.planning.placement.buying import buy_again
from shared.planning.rules.min_values import missing_values, values_of_one_launch
from shared.planning.rules.topology.counts import add
from shared.planning.state import PlanState


def keep_flexible(plan_state: PlanState) -> None:
    """Give each node to be launched enough options.

    A node for whose pods there are not enough is dropped. Its pods return to pending: smaller nodes
    may do, or those of another Provisioner.
    """
    inflexible = [target for target in plan_state.targets if _is_inflexible(plan_state, target)]
    dropped = {id(target) for target in inflexible if not _add_options(plan_state, target)}
    if not dropped:
        return
    for pod_group, ref, target in plan_state.binding_order:
        if id(target) in dropped:
            add(pod_group.topology.profile, target, -1)
            target.remove_pod(pod_group, ref)
            pod_group.waiting.append(ref)
            pod_group.waiting.sort(reverse=True)
    plan_state.binding_order = [
        entry for entry in plan_state.binding_order if id(entry[2]) not in dropped
    ]
    plan_state.underfilled = [
        target for target in plan_state.underfilled if id(target) not in dropped
    ]
    plan_state.drop_empty()
    plan_state.recheck = True


def _is_inflexible(plan_state: PlanState, target: TargetNode) -> bool:
    if target.existing is not None:
        return False
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

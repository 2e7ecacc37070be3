"""Nodes whose options must offer many values of a label: they get more options, or are dropped.

The packer chooses options by price alone, and later steps leave some out.
"""

from shared.planning.offerings.target_node import TargetNode
from shared.planning.placement.buying import buy_again
from shared.planning.state import PlanState
from shared.scheduling.flexibility import of_one_launch, too_few
from shared.scheduling.topology.counts import add


def keep_flexible(plan_state: PlanState) -> None:
    """Give each node to be bought enough options.

    A node for whose pods there are not enough is dropped. Its pods return to pending: smaller
    nodes may do, or those of another provisioner.
    """
    narrow = [spot for spot in plan_state.spots if _is_narrow(plan_state, spot)]
    dropped = {id(spot) for spot in narrow if not _widen(plan_state, spot)}
    if not dropped:
        return
    for pod_group, ref, spot in plan_state.order:
        if id(spot) in dropped:
            add(pod_group.kind.profile, spot, -1)
            spot.remove(pod_group, ref)
            pod_group.waiting.append(ref)
            pod_group.waiting.sort(reverse=True)
    plan_state.order = [entry for entry in plan_state.order if id(entry[2]) not in dropped]
    plan_state.loose = [spot for spot in plan_state.loose if id(spot) not in dropped]
    plan_state.drop_empty()
    plan_state.late = True


def _is_narrow(plan_state: PlanState, spot: TargetNode) -> bool:
    if spot.room is not None:
        return False
    table = plan_state.table
    least = table.offers[spot.ways[0].offer].provisioner.least_values
    if not least:
        return False
    every = map(table.labels, (*spot.ways, *spot.fallback))
    return bool(
        too_few(of_one_launch(least), map(table.labels, spot.ways)) or too_few(least, every)
    )


def _widen(plan_state: PlanState, spot: TargetNode) -> bool:
    """Return whether the node has enough options, after all that hold its pods were tried."""
    bought = buy_again(plan_state, spot)
    if bought is not None:
        plan_state.set_ways(spot, bought.ways, bought.fallback)
    return not _is_narrow(plan_state, spot)

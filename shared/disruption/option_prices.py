"""What the new nodes of a change may cost: which of their options are kept."""

from collections.abc import Sequence

from shared.disruption.settings import DisruptionSettings
from shared.model.ec2.instance_types import CapacityType
from shared.model.ec2.launches import LaunchOption, PlannedNode
from shared.model.plan import Plan
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.planning.rules.min_values import offers_enough, price_of_enough


def within_price(
    plan: Plan, most_micros_per_hour: int, settings: DisruptionSettings, snapshot: ClusterSnapshot
) -> Plan | None:
    """Return the plan with only options that keep its cost at most this, None when there are none.

    What is left between the plan's cost and the ceiling is shared among its nodes by price. An
    option must also be so near the cheapest that the next evaluation would not replace it again; on
    spot, where EC2 takes a deep pool and not the cheapest, the few cheapest types are kept as well.
    The options kept must offer as many values of labels as the owner of each node requires
    (minValues).
    """
    cost = plan.cost_micros_per_hour
    slack = most_micros_per_hour - cost
    if slack < 0:
        return None
    types = {known.name: known for known in snapshot.instance_types}
    least_values = {owner.name: owner.least_values for owner in snapshot.provisioners}
    nodes = []
    for node in plan.nodes:
        price, least = node.price_micros_per_hour, least_values.get(node.provisioner, {})
        enough = price_of_enough(least, node.options, node.labels, types)
        near = max(price + settings.required_saving(price) - 1, enough)
        if node.options[0].offering.capacity_type == CapacityType.SPOT:
            near = max(near, _price_of_types(node.options, settings.spot_types))
        kept = _limited(node, min(near, price + slack * price // max(cost, 1)))
        if not offers_enough(least, kept.options, kept.labels, types):
            return None
        nodes.append(kept)
    return replace(plan, nodes=tuple(nodes))


def _price_of_types(options: Sequence[LaunchOption], many: int) -> int:
    """Return the price up to which options, cheapest first, are of `many` types, or the last."""
    seen = set()
    for option in options:
        seen.add(option.offering.instance_type)
        if len(seen) == many:
            return option.price_micros_per_hour
    return options[-1].price_micros_per_hour


def _limited(node: PlannedNode, ceiling: int) -> PlannedNode:
    def keep(options: Sequence[LaunchOption]) -> tuple[LaunchOption, ...]:
        return tuple(option for option in options if option.price_micros_per_hour <= ceiling)

    return replace(node, options=keep(node.options), fallback=keep(node.fallback))

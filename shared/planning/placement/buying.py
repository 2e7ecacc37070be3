"""Choosing the options of a single node to be launched."""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from shared.model import labels as keys
from shared.model.resources import Resources
from shared.planning.offerings.offering_table import LaunchableOffering
from shared.planning.offerings.target_node import TargetNode
from shared.planning.rules.min_values import (
    MinValues,
    fewest_options,
    missing_values,
    values_of_one_launch,
)
from shared.planning.rules.node_constraints import NodeConstraints
from shared.planning.state import PlanState

# Steps of a search for the cheapest instance.
PURCHASE_STEPS: Final = 200


class Purchase(Struct, frozen=True):
    """Options of a node, cheapest first, and those of another capacity type.

    Attributes:
        comparison_price: Price by which purchases are compared: that of the cheapest option,
            weighted as the settings say.
        pods: How many more pods the node then takes.
        target: The node that gets these options; None for a new one.
    """

    options: tuple[LaunchableOffering, ...]
    fallback: tuple[LaunchableOffering, ...]
    comparison_price: int
    pods: int = 1
    target: TargetNode | None = None

    @property
    def price(self) -> int:
        """Price of the cheapest option, in micro-dollars per hour."""
        return self.options[0].offering.price_micros_per_hour


def buy(
    plan_state: PlanState,
    *,
    node_constraints_list: Sequence[NodeConstraints],
    requests: Resources,
    labels: Mapping[str, str | None],
    among: int = -1,
    without: TargetNode | None = None,
) -> Purchase | None:
    """Return the cheapest purchase of such a node from the first Provisioner that can, or None.

    Args:
        plan_state: What is decided so far.
        node_constraints_list: Node constraints of the pods on the node.
        requests: Total requests of these pods, without DaemonSet pods.
        labels: Labels that the node must have, by topology key; None for a label that it must lack.
        among: Bit mask of the launchable offerings to consider; -1 for all. Those of one variant
            once the node has pods.
        without: A node that this node replaces: its share of the limits is available again.
    """
    offerings, table = plan_state.offerings, plan_state.table
    mask = among & table.holding(requests)
    for node_constraints in node_constraints_list:
        mask &= offerings.accepting(node_constraints)
    for key, value in labels.items():
        mask &= table.labelled(key, value)
    cap = plan_state.settings.max_node_vcpus * 1000
    for name, own in table.by_provisioner().items():
        able = mask & own
        left = plan_state.limits_left(name, without) if able else None
        if left is not None:
            able &= table.within_limits(left)
        # Instances above the cap on node size only if nothing else is left.
        for some in (able & table.up_to(cap), able) if cap else (able,):
            found = _purchase(plan_state, some) if some else None
            if found is not None:
                return found
    return None


def buy_again(plan_state: PlanState, target: TargetNode, among: int = -1) -> Purchase | None:
    """Return the cheapest purchase of a node with the pods that it has by now, or None.

    Args:
        among: Bit mask of the launchable offerings to consider; -1 for all.
    """
    table = plan_state.table
    return buy(
        plan_state,
        node_constraints_list=tuple(target.node_constraints),
        requests=target.requests,
        labels={
            key: target.labels[key] for key in plan_state.topology_keys if key in target.labels
        },
        among=among & table.of_variant(table.variant(target.options[0].offer)),
        without=target,
    )


def _purchase(plan_state: PlanState, mask: int) -> Purchase | None:
    """Return options of one variant: those of the cheapest one's capacity type, and the others.

    None if they do not meet the Provisioner's minValues.
    """
    offerings = plan_state.offerings
    best = offerings.table.cheapest(mask)
    mask &= offerings.table.of_variant(offerings.table.variant(best.offer))
    alike = offerings.table.labelled(keys.CAPACITY_TYPE, best.offering.capacity_type.value)
    least = offerings.table.offers[best.offer].provisioner.least_values
    options = _options(plan_state, mask & alike, least)
    fallback = _options(plan_state, mask & ~alike, least)
    if not options:
        options, fallback = fallback, options
    labels = map(offerings.table.labels, (*options, *fallback)) if least else ()
    if not options or missing_values(least, labels):
        return None
    weights = plan_state.settings.type_weights
    comparison_price = min(
        option.offering.price_micros_per_hour
        * weights.get(offerings.table.offers[option.offer].instance_type.name, 100)
        // 100
        for option in (options if weights else options[:1])
    )
    return Purchase(options=options, fallback=fallback, comparison_price=comparison_price)


def _options(plan_state: PlanState, mask: int, least: MinValues) -> tuple[LaunchableOffering, ...]:
    """Return options by price, up to the price ceiling and the number allowed.

    Options that minValues needs are among them, whatever they cost; nothing is returned if these
    are too many, or if all options do not meet minValues.
    """
    most, able = plan_state.settings.max_options, plan_state.table.of_mask(mask)
    needed: list[LaunchableOffering] = []
    if asked := values_of_one_launch(least):
        every = list(able)
        chosen = fewest_options(asked, every, plan_state.table.labels)
        if chosen is None or len(chosen) > most:
            return ()
        needed, able = chosen, iter(every)
    kept: list[LaunchableOffering] = []
    ceiling = 0
    for option in able:
        price = option.offering.price_micros_per_hour
        ceiling = ceiling or price * (100 + plan_state.settings.option_price_ceiling_percent)
        left = sum(option not in kept for option in needed)
        if price * 100 > ceiling or len(kept) + left == most:
            break
        kept.append(option)
    kept += [option for option in needed if option not in kept]
    return tuple(kept)

"""Choosing what a single node to be bought may become."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from shared.model import labels as keys
from shared.model.resources import CPU, Resources
from shared.planning.offerings.offering_index import OfferingIndex
from shared.planning.offerings.offering_table import LaunchableOffering
from shared.planning.offerings.target_node import TargetNode
from shared.planning.state import PlanState, within
from shared.scheduling.flexibility import Least, essential, of_one_launch, too_few
from shared.scheduling.node_constraints import NodeConstraints


@dataclass(frozen=True, slots=True)
class Purchase:
    """Options of a node, cheapest first, and those of another capacity type.

    Attributes:
        worth: What the purchase is compared by: the least price, weighted as the settings say.
        pods: How many more pods the node then takes.
        spot: The node that gets these options; None for a new one.
    """

    ways: tuple[LaunchableOffering, ...]
    fallback: tuple[LaunchableOffering, ...]
    worth: int
    pods: int = 1
    spot: TargetNode | None = None

    @property
    def price(self) -> int:
        """Price of the cheapest option, in micro-dollars per hour."""
        return self.ways[0].offering.price_micros_per_hour


def buy(
    plan_state: PlanState,
    *,
    signatures: Sequence[NodeConstraints],
    requests: Resources,
    labels: Mapping[str, str | None],
    among: int = -1,
    without: TargetNode | None = None,
) -> Purchase | None:
    """Return the cheapest way to have such a node from the first provisioner that can, or None.

    Args:
        plan_state: What is decided so far.
        signatures: Node constraints of the pods on the node.
        requests: What all of them request, daemons left out.
        labels: That the node must have, by topology key; None for a label that it must lack.
        among: A bit mask of the launchable offerings to be looked at; -1 for all. Those of one
            variant once the node has pods.
        without: A node that this node replaces: its share of the limits is free.
    """
    launchables = plan_state.launchables
    mask = among
    for signature in signatures:
        mask &= launchables.accepting(signature)
    for key, value in labels.items():
        mask &= launchables.table.labelled(key, value)
    for name, own in launchables.table.by_seller().items():
        if not mask & own:
            continue
        cpu_of = _cpu_of(launchables, requests, plan_state.left(str(name), without))
        cap = plan_state.settings.max_node_vcpus * 1000
        # Machines above the cap on node size only when nothing else is left.
        for most in (cap, 0) if cap else (0,):
            found = _purchase(plan_state, mask & own, cpu_of, most)
            if found is not None:
                return found
    return None


def buy_again(plan_state: PlanState, spot: TargetNode, among: int = -1) -> Purchase | None:
    """Return the cheapest way to have a node to be bought with the pods it has by now, or None.

    Args:
        among: A bit mask of the launchable offerings to be looked at; -1 for all.
    """
    table = plan_state.table
    return buy(
        plan_state,
        signatures=tuple(spot.signatures),
        requests=spot.requests,
        labels={key: spot.labels[key] for key in plan_state.topology_keys if key in spot.labels},
        among=among & table.of_variant(table.variant(spot.ways[0].offer)),
        without=spot,
    )


def _cpu_of(
    launchables: OfferingIndex, requests: Resources, left: Resources | None
) -> Callable[[int], int]:
    """Return a function: the cpu of an offer's machines, 0 when it cannot be taken.

    That is so when an empty node of it does not hold the requests, or limits do not allow it.
    """

    @cache
    def cpu_of(offer: int) -> int:
        capacity = launchables.table.offers[offer].instance_type.capacity
        good = launchables.table.holds(requests, offer) and within(capacity, left)
        return capacity[CPU] if good else 0

    return cpu_of


def _able(
    launchables: OfferingIndex, mask: int, cpu_of: Callable[[int], int], most_cpu: int
) -> Iterator[LaunchableOffering]:
    """Yield those of a mask that can be taken, cheapest first; 0 for any number of cpu."""
    while mask:
        lowest = mask & -mask
        mask ^= lowest
        launchable = launchables.table.listed[lowest.bit_length() - 1]
        cpu = cpu_of(launchable.offer)
        if cpu and (not most_cpu or cpu <= most_cpu):
            yield launchable


def _purchase(
    plan_state: PlanState, mask: int, cpu_of: Callable[[int], int], most_cpu: int
) -> Purchase | None:
    """Return options of one variant: those of the cheapest one's capacity type, and the others.

    None also when they offer fewer values of a label than the provisioner asks for.
    """
    launchables = plan_state.launchables
    best = next(_able(launchables, mask, cpu_of, most_cpu), None)
    if best is None:
        return None
    mask &= launchables.table.of_variant(launchables.table.variant(best.offer))
    alike = launchables.table.labelled(keys.CAPACITY_TYPE, best.offering.capacity_type.value)
    least = launchables.table.offers[best.offer].provisioner.least_values
    ways = _options(plan_state, _able(launchables, mask & alike, cpu_of, most_cpu), least)
    fallback = _options(plan_state, _able(launchables, mask & ~alike, cpu_of, most_cpu), least)
    if not ways:
        ways, fallback = fallback, ways
    labels = map(launchables.table.labels, (*ways, *fallback)) if least else ()
    if not ways or too_few(least, labels):
        return None
    weights = plan_state.settings.type_weights
    worth = min(
        way.offering.price_micros_per_hour
        * weights.get(launchables.table.offers[way.offer].instance_type.name, 100)
        // 100
        for way in (ways if weights else ways[:1])
    )
    return Purchase(ways=ways, fallback=fallback, worth=worth)


def _options(
    plan_state: PlanState, able: Iterator[LaunchableOffering], least: Least
) -> tuple[LaunchableOffering, ...]:
    """Return options in the order of their prices, up to the ceiling and the number allowed.

    Those without which they would offer fewer values than asked for are among them, whatever they
    cost; nothing is returned when they are too many, or all would not do.
    """
    most = plan_state.settings.max_options
    needed: list[LaunchableOffering] = []
    if asked := of_one_launch(least):
        every = list(able)
        chosen = essential(asked, every, plan_state.table.labels)
        if chosen is None or len(chosen) > most:
            return ()
        needed, able = chosen, iter(every)
    kept: list[LaunchableOffering] = []
    ceiling = 0
    for launchable in able:
        price = launchable.offering.price_micros_per_hour
        ceiling = ceiling or price * (100 + plan_state.settings.option_price_ceiling_percent)
        left = sum(way not in kept for way in needed)
        if price * 100 > ceiling or len(kept) + left == most:
            break
        kept.append(launchable)
    kept += [way for way in needed if way not in kept]
    return tuple(kept)

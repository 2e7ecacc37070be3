"""Choosing what a single node to be bought may become."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from shared.model import labels as keys
from shared.model.resources import CPU, Resources
from shared.planning.offerings.offering_index import LaunchableOffering
from shared.planning.offerings.target_node import TargetNode
from shared.planning.state import PlanState, within
from shared.scheduling.node_constraints import NodeConstraints


@dataclass(frozen=True, slots=True)
class Purchase:
    """Options of a node, cheapest first, and those of another capacity type.

    Attributes:
        worth: What the purchase is compared by: the least price, weighted as the settings say.
    """

    ways: tuple[LaunchableOffering, ...]
    fallback: tuple[LaunchableOffering, ...]
    worth: int

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
    variant: tuple[object, ...] | None = None,
    without: TargetNode | None = None,
) -> Purchase | None:
    """Return the cheapest way to have such a node from the first provisioner that can, or None.

    Args:
        plan_state: What is decided so far.
        signatures: Node constraints of the pods on the node.
        requests: What all of them request, daemons left out.
        labels: That the node must have, by topology key; None for a label that it must lack.
        variant: From `OfferingIndex.variant`; fixed once the node has pods. None for any.
        without: A node that this node replaces: its share of the limits is free.
    """
    launchables = plan_state.launchables
    mask = -1 if variant is None else launchables.of_variant(variant)
    for signature in signatures:
        mask &= launchables.accepting(signature)
    for key, value in labels.items():
        mask &= launchables.labelled(key, value)
    for name, own in launchables.by_seller().items():
        if not mask & own:
            continue
        able = _Able(plan_state, requests, plan_state.left(str(name), without))
        cap = plan_state.settings.max_node_vcpus * 1000
        # Machines above the cap on node size only when nothing else is left.
        for most in (cap, 0) if cap else (0,):
            found = _purchase(plan_state, able, mask & own, most)
            if found is not None:
                return found
    return None


class _Able:
    """The launchable offerings that hold what is wanted and fit within the limits."""

    def __init__(self, plan_state: PlanState, requests: Resources, left: Resources | None) -> None:
        self._launchables = plan_state.launchables
        self._requests = requests
        self._left = left
        self._known: dict[int, int] = {}

    def among(self, mask: int, most_cpu: int) -> Iterator[LaunchableOffering]:
        """Yield those of a mask, cheapest first; of at most so many cpu, 0 for any."""
        listed = self._launchables.listed
        while mask:
            lowest = mask & -mask
            mask ^= lowest
            launchable = listed[lowest.bit_length() - 1]
            cpu = self._cpu(launchable.offer)
            if cpu and (not most_cpu or cpu <= most_cpu):
                yield launchable

    def _cpu(self, offer: int) -> int:
        """Return the cpu of an offer's machines, 0 when they cannot be taken."""
        if offer not in self._known:
            capacity = self._launchables.offers[offer].instance_type.capacity
            good = self._launchables.holds(self._requests, offer) and within(capacity, self._left)
            self._known[offer] = capacity[CPU] if good else 0
        return self._known[offer]


def _purchase(plan_state: PlanState, able: _Able, mask: int, most_cpu: int) -> Purchase | None:
    """Return options of one variant: those of the cheapest one's capacity type, and the others."""
    best = next(able.among(mask, most_cpu), None)
    if best is None:
        return None
    launchables = plan_state.launchables
    mask &= launchables.of_variant(launchables.variant(best.offer))
    alike = launchables.labelled(keys.CAPACITY_TYPE, best.offering.capacity_type.value)
    ways = _options(plan_state, able.among(mask & alike, most_cpu))
    weights = plan_state.settings.type_weights
    worth = min(
        way.offering.price_micros_per_hour
        * weights.get(launchables.offers[way.offer].instance_type.name, 100)
        // 100
        for way in (ways if weights else ways[:1])
    )
    fallback = _options(plan_state, able.among(mask & ~alike, most_cpu))
    return Purchase(ways=ways, fallback=fallback, worth=worth)


def _options(
    plan_state: PlanState, able: Iterator[LaunchableOffering]
) -> tuple[LaunchableOffering, ...]:
    """Return options in the order of their prices, up to the ceiling and the number allowed."""
    kept: list[LaunchableOffering] = []
    ceiling = 0
    for launchable in able:
        price = launchable.offering.price_micros_per_hour
        ceiling = ceiling or price * (100 + plan_state.settings.option_price_ceiling_percent)
        if price * 100 > ceiling or len(kept) == plan_state.settings.max_options:
            break
        kept.append(launchable)
    return tuple(kept)

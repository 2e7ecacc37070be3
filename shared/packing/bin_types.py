"""Bin types: what can be bought, at which price, for which item classes.

Node types with the same allocatable, open to the same classes, become one bin type. Bin types that
another one can replace at no higher price are left out: of several hundred instance types fewer
than a hundred remain.
"""

from collections.abc import Iterable, Mapping, Sequence
from operator import ge
from typing import NamedTuple

from shared.model.ec2.instance_types import CapacityType
from shared.packing.demand import Demand
from shared.packing.problem import PackingProblem, PackingSettings
from shared.packing.usable_capacity import usable_amounts


class BinType(NamedTuple):
    """Node types of one provisioner with the same allocatable, open to the same classes.

    Attributes:
        allocatable: Amounts in the order of `Demand.names`.
        signatures: Bit mask over the signatures that may run on it.
        node_types: Their indexes, cheapest first.
        price: Micro-dollars per hour of the cheapest offering.
        comparison_price: What plans are compared by: weighted mean price of the cheapest offerings,
            plus the node fee.
    """

    provisioner: str
    allocatable: tuple[int, ...]
    signatures: int
    node_types: tuple[int, ...]
    price: int
    comparison_price: int


def allowed_node_types(
    problem: PackingProblem, demand: Demand, amounts: Sequence[tuple[int, ...]]
) -> list[int]:
    """Return the node types within the cap on node size, and the smallest that larger pods need.

    Args:
        problem: The problem that the node types belong to.
        demand: Its classes.
        amounts: Amounts by node type (`amounts_of`).
    """
    cap, node_types = problem.settings.max_node_vcpus, problem.node_types
    within = [i for i, node_type in enumerate(node_types) if cap == 0 or node_type.vcpus <= cap]
    if len(within) == len(node_types):
        return within
    within.sort(key=lambda i: (-node_types[i].vcpus, i))
    allowed = set(within)
    for index, pod_class in enumerate(problem.classes):
        if not pod_class.count:
            continue
        mask, needs = problem.compatible[index], demand.amounts(index)
        if any(mask >> i & 1 and _holds(amounts[i], needs) for i in within):
            continue
        holders = [
            i
            for i, allocatable in enumerate(amounts)
            if mask >> i & 1 and _holds(allocatable, needs)
        ]
        least = min((node_types[i].vcpus for i in holders), default=0)
        allowed.update(i for i in holders if node_types[i].vcpus == least)
    return sorted(allowed)


def find_bin_types(
    problem: PackingProblem,
    demand: Demand,
    node_types: Iterable[int],
    amounts: Sequence[tuple[int, ...]],
    settings: PackingSettings,
    *,
    cap_all: bool = False,
) -> list[BinType]:
    """Return the bin types of some node types that some class may run on, cheapest first.

    Args:
        problem: The problem that the node types belong to.
        demand: Its classes.
        node_types: Indexes.
        amounts: Amounts by node type (`amounts_of`).
        settings: How prices are compared.
        cap_all: Whether cpu, memory and pods are capped at what the pods can use, as other
            resources always are: fewer bin types, but what is left available is no longer known.
    """
    grouped: dict[tuple[str, int, tuple[int, ...]], list[int]] = {}
    open_to = _open_to(demand.masks, len(problem.node_types))
    amounts = usable_amounts(problem, demand, amounts, open_to, cap_all=cap_all)
    for index in node_types:
        node_type, mask = problem.node_types[index], open_to[index]
        if not mask:
            continue
        allocatable = amounts[index]
        # A node type without cpu, memory or `pods` is an error in the catalogue.
        if all(allocatable[:3]):
            key = (node_type.provisioner, mask, allocatable)
            grouped.setdefault(key, []).append(index)
    bin_types = [_make_bin_type(problem, key, many, settings) for key, many in grouped.items()]
    bin_types.sort(key=lambda bin_type: (bin_type.price, bin_type.node_types[0]))
    if settings.diversification_k_on_demand > 1 or settings.diversification_k_spot > 1:
        bin_types = _diversified(problem, bin_types, settings)
    return bin_types


def _open_to(masks: Sequence[int], node_types: int) -> list[int]:
    """Return per node type the signatures that may run on it, as a mask."""
    found = [0] * node_types
    for signature, many in enumerate(masks):
        bit = 1 << signature
        # As text, since testing the bits of a long integer one by one copies it every time.
        text = f"{many:b}"[: -node_types - 1 : -1]
        index = text.find("1")
        while index >= 0:
            found[index] |= bit
            index = text.find("1", index + 1)
    return found


def _holds(allocatable: Sequence[int], needs: Iterable[tuple[int, int]]) -> bool:
    return all(amount <= allocatable[place] for place, amount in needs)


def _make_bin_type(
    problem: PackingProblem,
    key: tuple[str, int, tuple[int, ...]],
    node_types: list[int],
    settings: PackingSettings,
) -> BinType:
    def weighted(index: int) -> int:
        node_type = problem.node_types[index]
        weight = settings.type_weights.get(node_type.instance_type, 100)
        return node_type.offerings[0].price_micros_per_hour * weight // 100

    node_types.sort(key=lambda index: (weighted(index), index))
    price = min(problem.node_types[i].offerings[0].price_micros_per_hour for i in node_types)
    return BinType(
        provisioner=key[0],
        allocatable=key[2],
        signatures=key[1],
        node_types=tuple(node_types),
        price=price,
        comparison_price=weighted(node_types[0]) + settings.node_fee_micros_per_hour,
    )


def _diversified(
    problem: PackingProblem, bin_types: list[BinType], settings: PackingSettings
) -> list[BinType]:
    """Return the bin types, compared by the mean price of the k cheapest offerings to replace them.

    A missing offering counts as one at the price ceiling, so that a node type without alternatives
    appears as expensive as it is.
    """
    prices_by_bin_type = [_prices_of(problem, bin_type, settings) for bin_type in bin_types]
    likes: dict[tuple[str, int], list[int]] = {}
    percent = 100 + settings.option_price_ceiling_percent
    diversified = []
    for bin_type in bin_types:
        key = (bin_type.provisioner, bin_type.signatures)
        if key not in likes:
            likes[key] = [i for i, entry in enumerate(bin_types) if _serves(entry, bin_type)]
        cpu, memory = bin_type.allocatable[:2]
        of_type: dict[CapacityType, list[int]] = {}
        wanted = 0
        first = None
        for other in likes[key]:
            allocatable = bin_types[other].allocatable
            if (
                cpu > allocatable[0]
                or memory > allocatable[1]
                or not all(map(ge, allocatable, bin_type.allocatable))
            ):
                continue
            if (
                first is not None
                and bin_types[other].price * 100 > first[0] * percent
                and not settings.type_weights
            ):
                # All that follow count as if they cost the ceiling anyway.
                break
            for capacity_type, price in prices_by_bin_type[other]:
                of_type.setdefault(capacity_type, []).append(price)
                if first is None or price < first[0]:
                    first = (price, capacity_type)
            is_spot = first is not None and first[1] == CapacityType.SPOT
            wanted = (
                settings.diversification_k_spot if is_spot else settings.diversification_k_on_demand
            )
            if first is not None and len(of_type.get(first[1], ())) >= wanted:
                break
        assert first is not None
        mean = _mean_price(sorted(of_type[first[1]])[:wanted], wanted, settings)
        diversified.append(
            bin_type._replace(comparison_price=mean + settings.node_fee_micros_per_hour)
        )
    return diversified


def _prices_of(
    problem: PackingProblem, bin_type: BinType, settings: PackingSettings
) -> list[tuple[CapacityType, int]]:
    found: list[tuple[CapacityType, int]] = []
    for index in bin_type.node_types:
        node_type = problem.node_types[index]
        weight = settings.type_weights.get(node_type.instance_type, 100)
        found.extend(
            (offering.capacity_type, offering.price_micros_per_hour * weight // 100)
            for offering in node_type.offerings
        )
    return found


def _mean_price(cheapest: list[int], wanted: int, settings: PackingSettings) -> int:
    ceiling = cheapest[0] * (100 + settings.option_price_ceiling_percent) // 100
    prices = [min(price, ceiling) for price in cheapest]
    prices.extend([ceiling] * (wanted - len(prices)))
    return sum(prices) // wanted


def _serves(bin_type: BinType, other: BinType) -> bool:
    """Return whether a bin type is of the other's provisioner and open to all its signatures."""
    return bin_type.provisioner == other.provisioner and not other.signatures & ~bin_type.signatures


def undominated(bin_types: Sequence[BinType], limits: Mapping[str, object]) -> list[BinType]:
    """Return the undominated bin types, by comparison price.

    A bin type is dominated when another has as much of everything, is open to the same classes, is
    no more expensive and is under no limit that does not also apply to the first.
    """
    kept: list[BinType] = []
    order = sorted(
        bin_types,
        key=lambda bin_type: (bin_type.comparison_price, bin_type.price, bin_type.node_types[0]),
    )
    homes: dict[tuple[str, int], list[BinType]] = {
        (bin_type.provisioner, bin_type.signatures): [] for bin_type in order
    }
    above: dict[tuple[str, int], list[list[BinType]]] = {}
    for bin_type in order:
        home = (bin_type.provisioner, bin_type.signatures)
        if home not in above:
            above[home] = [
                some
                for (provisioner, signatures), some in homes.items()
                if not bin_type.signatures & ~signatures
                and (provisioner == bin_type.provisioner or provisioner not in limits)
            ]
        if not any(_is_dominated(bin_type, some) for some in above[home]):
            kept.append(bin_type)
            homes[home].append(bin_type)
    return kept


def _is_dominated(bin_type: BinType, some: Sequence[BinType]) -> bool:
    """Return whether one of some bin types has as much of everything and is no more expensive."""
    asked, price = bin_type.allocatable, bin_type.price
    cpu, memory = asked[:2]
    for entry in reversed(some):
        allocatable = entry.allocatable
        if (
            cpu <= allocatable[0]
            and memory <= allocatable[1]
            and entry.price <= price
            and all(map(ge, allocatable, asked))
        ):
            return True
    return False

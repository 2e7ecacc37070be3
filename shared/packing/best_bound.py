"""The lower bound of a plan: the best that the bounds know, for given pods and free room."""

from collections.abc import Sequence
from typing import Final

from shared.packing.bound.free_capacity import NO_ROOM, FreeCapacities, free_rooms, too_many
from shared.packing.bound.resource_prices import ResourcePrices, find_prices, lower_bound
from shared.packing.demand import Demand, read_demand
from shared.packing.exact import cover_exactly, is_small
from shared.packing.machine_kinds import MachineKind, find_kinds, front
from shared.packing.priced_problem import make_ground
from shared.packing.problem import PackingProblem, PackingSettings
from shared.packing.usable_capacity import amounts_of

LOOSE: Final = 1.008  # of a plan's cost over the quick bound, above which the other is sought
_VERY_FEW_PODS: Final = 60
_MOST_WORK: Final = 4_000  # kinds by classes, that several questions are worth
_BY_PRICE: Final = PackingSettings(
    node_fee_micros_per_hour=0, diversification_k_on_demand=1, diversification_k_spot=1
)


def least_cost(problem: PackingProblem, bought: Sequence[int], cost: int) -> int:
    """Return what any plan costs that places all pods of a problem, in micro-dollars per hour.

    Settings and limits do not count: it is a bound for plans by any settings. Rounded down.

    Args:
        problem: Pods that some plan places, who may run where, what is there already.
        bought: Pods per class for which that plan buys room.
        cost: What that plan costs.
    """
    if not cost:
        return 0
    demand = read_demand(problem)
    everything = range(len(problem.shapes))
    amounts = amounts_of(problem.shapes, demand)
    plain = front(find_kinds(problem, demand, everything, amounts, _BY_PRICE, whole=True), {})
    prices = [kind.price for kind in plain]
    counts = housed([pod_class.count for pod_class in problem.classes], demand, plain)
    rooms = free_rooms(problem, demand, counts)
    paid = [min(n, count) for n, count in zip(bought, counts, strict=True)]
    questions = [(counts, rooms)]
    if rooms:
        # Of a class that is wholly on nodes that are there, leaving it out may say more; and more
        # is known of pods that have no room than of pods that share some.
        some = [count if n else 0 for n, count in zip(paid, counts, strict=True)]
        beyond = too_many(rooms, counts)
        questions += [(some, rooms)] if some != counts else []
        questions = [question for question in questions if question[0] != beyond]
        questions.append((beyond, NO_ROOM))
    asked = [
        (some, find_prices(demand, some, plain, prices), free)
        for some, free in questions
        if any(some)
    ]
    # The bound that takes long is sought where the quick one says most; in all cases if it is fast.
    ranked = sorted(
        ((quick_bound(demand, plain, *entry), i) for i, entry in enumerate(asked)), reverse=True
    )
    best = 0
    for number, (quick, i) in enumerate(ranked):
        best = max(best, quick)
        fast = not number or len(plain) * len(counts) <= _MOST_WORK
        if fast and cost > quick * LOOSE:
            best = max(best, close_bound(demand, plain, *asked[i]))
    return min(best, cost)


def quick_bound(
    demand: Demand,
    plain: Sequence[MachineKind],
    counts: Sequence[int],
    worth: ResourcePrices,
    rooms: FreeCapacities,
) -> int:
    """Return what pods cost at least by true prices, in micro-dollars per hour; exact for few pods.

    Args:
        demand: The classes.
        plain: What can be bought, without kinds that others replace by true price.
        counts: Pods per class, all of them placed.
        worth: Resource prices by true price.
        rooms: Room that need not be bought.
    """
    if not rooms and is_small(counts):
        priced = make_ground(demand, plain, worth, [kind.price for kind in plain])
        exact = cover_exactly(priced, counts)
        if exact is not None:
            return priced.cost(exact)
    return lower_bound(demand, counts, plain, worth, rooms=rooms)


def close_bound(
    demand: Demand,
    plain: Sequence[MachineKind],
    counts: Sequence[int],
    worth: ResourcePrices,
    rooms: FreeCapacities,
) -> int:
    """Return the bound that takes long, 0 where the quick one is as good; see `quick_bound`."""
    if sum(counts) <= _VERY_FEW_PODS and not any(
        demand.extras[k] for k, count in enumerate(counts) if count
    ):
        return 0
    from shared.packing.bound.per_kind import tighter_bound  # noqa: PLC0415 -- loaded if needed

    prices = [kind.price for kind in plain]
    return tighter_bound(demand, counts, plain, prices, mix=worth.mix, rooms=rooms)


def housed(counts: Sequence[int], demand: Demand, kinds: Sequence[MachineKind]) -> list[int]:
    """Return the counts of the classes that fit some kind, zero for the others."""
    order = sorted(kinds, key=lambda kind: kind.room, reverse=True)
    found = []
    for k, count in enumerate(counts):
        needs = demand.amounts(k) if count else []
        fits = count and any(
            kind.signatures >> demand.signature[k] & 1
            and all(amount <= kind.room[place] for place, amount in needs)
            for kind in order
        )
        found.append(count if fits else 0)
    return found

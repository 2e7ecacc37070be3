"""The lower bound of a plan: the best that the bounds know, for given pods and free room."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from shared.packing.bound.free_capacity import NO_ROOM, FreeCapacities, free_rooms, too_many
from shared.packing.bound.least_cost import LeastCost
from shared.packing.bound.resource_prices import ResourcePrices, find_prices, lower_bound
from shared.packing.demand import Demand, read_demand
from shared.packing.exact import cover_exactly, is_small
from shared.packing.machine_kinds import MachineKind, find_kinds, front
from shared.packing.priced_problem import make_ground
from shared.packing.problem import PackingProblem, PackingSettings
from shared.packing.usable_capacity import amounts_of

_LOOSE: Final = 1.008  # of a plan's cost over the quick bound, above which the other is sought
_VERY_FEW_PODS: Final = 60
_MOST_WORK: Final = 4_000  # kinds by classes, that several questions are worth
# The programme over patterns has a row per class, and each step takes the square of its rows.
_MOST_CLASSES: Final = 130
# Where a node holds more pods than this, in the mean, resource prices say as much as patterns; of
# few classes, where many nodes do.
_DENSE: Final = 10
_FEW_CLASSES: Final = 8
_FINE: Final = 45
_FEW_NODES: Final = 16
# Microseconds that it may take, about.
_STEPS: Final = 300_000
_STEPS_PER_PAIR: Final = 200  # of a class and a kind
_MOST_STEPS: Final = 5_000_000
_BY_PRICE: Final = PackingSettings(
    node_fee_micros_per_hour=0, diversification_k_on_demand=1, diversification_k_spot=1
)


def least_cost(problem: PackingProblem, bought: Sequence[int], cost: int) -> LeastCost:
    """Return what any plan costs that places all pods of a problem.

    Settings and limits do not count: it is a bound for plans by any settings.

    Args:
        problem: Pods that some plan places, who may run where, what is there already.
        bought: Pods per class for which that plan buys room.
        cost: What that plan costs.
    """
    if not cost:
        return LeastCost(0, close=True)
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
        Question(demand, plain, some, find_prices(demand, some, plain, prices), free)
        for some, free in questions
        if any(some)
    ]
    # The bound that takes long is sought where the quick one says most; in all cases if it is fast.
    ranked = sorted(((quick_bound(question), i) for i, question in enumerate(asked)), reverse=True)
    best = LeastCost(0)
    for number, (quick, i) in enumerate(ranked):
        best = max(best, quick)
        fast = not number or len(plain) * len(counts) <= _MOST_WORK
        if fast and is_loose(quick, cost):
            best = max(best, close_bound(asked[i], cost))
    # Beside free room, what is near the cost of pods is not known to be near that of plans.
    return best._replace(close=best.close and not rooms).for_plan(cost)


class Question(NamedTuple):
    """What a bound is asked: what pods cost at least by true prices.

    Attributes:
        demand: The classes.
        plain: What can be bought, without kinds that others replace by true price.
        counts: Pods per class, all of them placed.
        worth: Resource prices by true price.
        rooms: Room that need not be bought.
    """

    demand: Demand
    plain: Sequence[MachineKind]
    counts: Sequence[int]
    worth: ResourcePrices
    rooms: FreeCapacities


def is_loose(bound: LeastCost, cost: int) -> bool:
    """Return whether a closer bound is worth to be sought, for a plan of some price."""
    return not bound.exact and cost > bound.micros_per_hour * _LOOSE


def quick_bound(question: Question) -> LeastCost:
    """Return what pods cost at least by resource prices; exact for few pods."""
    demand, plain, counts, worth, rooms = question
    if not rooms and is_small(counts):
        priced = make_ground(demand, plain, worth, [kind.price for kind in plain])
        exact = cover_exactly(priced, counts)
        if exact is not None:
            return LeastCost(priced.cost(exact), close=True, exact=True)
    return LeastCost(lower_bound(demand, counts, plain, worth, rooms=rooms))


def close_bound(question: Question, cost: int, in_parts: int | None = None) -> LeastCost:
    """Return the bounds that take long, 0 where the quick one is as good.

    Args:
        question: What is asked.
        cost: What a plan costs: once a bound is near, no better one is sought.
        in_parts: That from pods in parts, if it is known.
    """
    found = LeastCost(_in_parts(question) if in_parts is None else in_parts)
    return max(found, _by_patterns(question)) if is_loose(found, cost) else found


def _in_parts(question: Question) -> int:
    """Return the bound from pods in parts."""
    demand, plain, counts, worth, rooms = question
    if sum(counts) <= _VERY_FEW_PODS and not any(
        demand.extras[k] for k, count in enumerate(counts) if count
    ):
        return 0
    from shared.packing.bound.per_kind import tighter_bound  # noqa: PLC0415 -- loaded if needed

    prices = [kind.price for kind in plain]
    return tighter_bound(demand, counts, plain, prices, mix=worth.mix, rooms=rooms)


def _by_patterns(question: Question) -> LeastCost:
    """Return the bound from patterns, 0 where they are too many or too fine."""
    demand, plain, counts, worth, rooms = question
    classes, pods = sum([1 for count in counts if count]), sum(counts)
    nodes = sum([many for _, many in worth.mix])
    few = classes <= _FEW_CLASSES
    most_pods = max(nodes, _FEW_NODES) * _FINE if few else nodes * _DENSE
    # A few pods beside free room: a bound for them is worth less than it takes.
    if classes > _MOST_CLASSES or pods > most_pods or (rooms and pods <= _VERY_FEW_PODS):
        return LeastCost(0)
    from shared.packing.bound.patterns import pattern_bound  # noqa: PLC0415 -- loaded if needed

    most_steps = min(_STEPS + _STEPS_PER_PAIR * classes * len(plain), _MOST_STEPS)
    return pattern_bound(demand, counts, plain, worth.mix, rooms, most_steps)


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

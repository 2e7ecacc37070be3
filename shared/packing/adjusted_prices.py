"""Adjusted prices at which packing is tried again: for fewer nodes, for more pods within limits."""

from collections.abc import Iterator, Sequence
from typing import Final

from shared.model.resources import Resources
from shared.packing.bin_types import BinType
from shared.packing.problem import Packing, PackingProblem

_THOUSAND: Final = 1000
_LEAST_NODES: Final = 2
# Where fewer nodes may cost less than this more, in micro-dollars per hour, a second plan is not
# worth its time.
_LEAST_MORE: Final = 50_000
# Nodes times classes beyond which a second plan takes too long.
_MUCH: Final = 20_000
# Classes times node types beyond which plans that are made only because of limits take too long.
_MANY_PAIRS: Final = 30_000
# The fee of a node is this many times its share of what fewer nodes may cost more: a plan with a
# sixth fewer nodes may then cost about all of that more.
_FEE_PARTS: Final = 6
# Multiples of the price paid per unit of a limited resource at which packing is tried again: the
# last leaves hardly any other node than the one whose limited resource the pods use best.
_LIMIT_PRICES: Final = (1, 4, 16)


def fee_for_fewer_nodes(problem: PackingProblem, bought: Packing) -> int:
    """Return the fee added to each node's price so that fewer are bought; 0 for no second try."""
    many = len(bought.nodes)
    more = bought.cost_micros_per_hour * problem.settings.fewer_nodes_permille // _THOUSAND
    if many < _LEAST_NODES or more < _LEAST_MORE or not is_quick(problem, many):
        return 0
    return more * _FEE_PARTS // many


def is_quick(problem: PackingProblem, nodes: int) -> bool:
    """Return whether nodes and classes are so few that another plan takes little time."""
    return nodes * len(problem.classes) <= _MUCH


def has_few_pairs(problem: PackingProblem) -> bool:
    """Return whether classes and node types are so few that trying all pairs takes little time."""
    return len(problem.classes) * len(problem.node_types) <= _MANY_PAIRS


def prices_of_limits(
    problem: PackingProblem, bought: Packing, bin_types: Sequence[BinType]
) -> Iterator[list[int]]:
    """Yield the extra price per bin type, by how much it uses of the limits that were reached.

    Each of the few nodes within the limits should hold more pods: the others stay pending, or get
    more expensive nodes. Where pods are unplaced, a limit counts as reached when half of it is
    used: nodes may be too large for what is left of it.
    """
    if not has_few_pairs(problem):
        return
    spent: dict[str, int] = {}
    used: dict[tuple[str, str], int] = {}
    for node in bought.nodes:
        number, offering_index = node.options[0]
        node_type = problem.node_types[number]
        owner = node_type.provisioner
        spent[owner] = (
            spent.get(owner, 0) + node_type.offerings[offering_index].price_micros_per_hour
        )
        for name, _ in problem.limits.get(owner, Resources()).items:
            used[owner, name] = used.get((owner, name), 0) + node_type.capacity[name]
    parts = 2 if bought.unplaced else 1
    reached = {
        (owner, name): amount
        for (owner, name), amount in used.items()
        if amount and amount * parts >= problem.limits[owner][name]
    }
    owners = {owner for owner, _ in reached}
    if not owners or not (bought.unplaced or len(owners) < len(spent)):
        return
    for times in _LIMIT_PRICES:
        yield [
            sum(
                times
                * spent[owner]
                * problem.node_types[bin_type.node_types[0]].capacity[name]
                // amount
                for (owner, name), amount in reached.items()
                if owner == bin_type.provisioner
            )
            for bin_type in bin_types
        ]


def unplaced_count(packing: Packing) -> int:
    """Return the number of unplaced pods."""
    return sum(count for _, count, _ in packing.unplaced)


def unplaced_and_cost(packing: Packing) -> tuple[int, int]:
    """Return what plans are compared by: unplaced pods, then the price."""
    return unplaced_count(packing), packing.cost_micros_per_hour


def is_better(problem: PackingProblem, again: Packing, before: Packing) -> bool:
    """Return whether a plan has fewer nodes at about the price of another, or costs less."""
    (left_out, cost), (others, other) = unplaced_and_cost(again), unplaced_and_cost(before)
    if left_out > others:
        return False
    part = _THOUSAND + problem.settings.fewer_nodes_permille
    if len(again.nodes) < len(before.nodes):
        return _THOUSAND * cost <= part * other
    if len(again.nodes) == len(before.nodes):
        return cost < other
    return part * cost < _THOUSAND * other

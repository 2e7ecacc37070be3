"""Prices at which plans are made once more: for fewer nodes, for more pods within limits."""

from collections.abc import Iterator, Sequence
from typing import Final

from shared.model.resources import Resources
from shared.packing.machine_kinds import MachineKind
from shared.packing.problem import Packing, PackingProblem

_THOUSAND: Final = 1000
_LEAST_NODES: Final = 2
# Micro-dollars an hour that fewer nodes may cost more, at least: a second plan takes time, too.
_LEAST_MORE: Final = 50_000
# Nodes times classes beyond which a second plan takes too long.
_MUCH: Final = 20_000
# Classes times shapes beyond which plans that only limits ask for take too long.
_MANY_PAIRS: Final = 30_000
# A node is worth so many times the part of its price that fewer nodes may cost more: with that,
# plans come close to it when a sixth of the nodes goes.
_FEE_PARTS: Final = 6
# How many times what was paid for a limited resource more of it is worth: the last leaves hardly
# any other node than the one that pods fill best with that resource.
_RENTS: Final = (1, 4, 16)


def fee_for_fewer(problem: PackingProblem, bought: Packing) -> int:
    """Return what each node should cost more, so that fewer are bought; 0 for no further try."""
    many = len(bought.nodes)
    more = bought.cost_micros_per_hour * problem.settings.fewer_nodes_permille // _THOUSAND
    if many < _LEAST_NODES or more < _LEAST_MORE or not is_quick(problem, many):
        return 0
    return more * _FEE_PARTS // many


def is_quick(problem: PackingProblem, nodes: int) -> bool:
    """Return whether nodes and classes are so few that another plan takes little time."""
    return nodes * len(problem.classes) <= _MUCH


def has_few_pairs(problem: PackingProblem) -> bool:
    """Return whether classes and shapes are so few that trying all pairs takes little time."""
    return len(problem.classes) * len(problem.shapes) <= _MANY_PAIRS


def rents_of_limits(
    problem: PackingProblem, bought: Packing, kinds: Sequence[MachineKind]
) -> Iterator[list[int]]:
    """Yield what each kind should cost more, by what it takes of the limits that were reached.

    Each of the few nodes that limits leave then holds more pods: the others wait, or get more
    expensive nodes. Where pods wait, a limit counts as reached when half of it is used: nodes may
    be too large for what is left of it.
    """
    if not has_few_pairs(problem):
        return
    spent: dict[str, int] = {}
    used: dict[tuple[str, str], int] = {}
    for node in bought.nodes:
        number, pool = node.options[0]
        shape = problem.shapes[number]
        owner = shape.provisioner
        spent[owner] = spent.get(owner, 0) + shape.pools[pool].price_micros_per_hour
        for name, _ in problem.limits.get(owner, Resources()).items:
            used[owner, name] = used.get((owner, name), 0) + shape.capacity[name]
    parts = 2 if bought.unplaced else 1
    reached = {
        (owner, name): amount
        for (owner, name), amount in used.items()
        if amount and amount * parts >= problem.limits[owner][name]
    }
    owners = {owner for owner, _ in reached}
    if not owners or not (bought.unplaced or len(owners) < len(spent)):
        return
    for times in _RENTS:
        yield [
            sum(
                times * spent[owner] * problem.shapes[kind.shapes[0]].capacity[name] // amount
                for (owner, name), amount in reached.items()
                if owner == kind.provisioner
            )
            for kind in kinds
        ]


def left_out(packing: Packing) -> int:
    """Return how many pods have no place."""
    return sum(count for _, count, _ in packing.unplaced)


def left_out_and_cost(packing: Packing) -> tuple[int, int]:
    """Return what plans are compared by: pods left out, then the price."""
    return left_out(packing), packing.cost_micros_per_hour


def is_better(problem: PackingProblem, again: Packing, before: Packing) -> bool:
    """Return whether a plan has fewer nodes at about the price of another, or costs less."""
    (left_out, cost), (others, other) = left_out_and_cost(again), left_out_and_cost(before)
    if left_out > others:
        return False
    part = _THOUSAND + problem.settings.fewer_nodes_permille
    if len(again.nodes) < len(before.nodes):
        return _THOUSAND * cost <= part * other
    if len(again.nodes) == len(before.nodes):
        return cost < other
    return part * cost < _THOUSAND * other

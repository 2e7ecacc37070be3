"""What pods can use of a node's allocatable, as plain numbers.

What exceeds the total requests of all pods that may run there can never be used. Node types that
differ only in that count as equal, so far fewer remain to be tried.
"""

from collections.abc import Iterable, Sequence

from shared.packing.demand import Demand
from shared.packing.problem import NodeType, PackingProblem

_BESIDE = 3  # cpu, memory and pods come first


def amounts_of(node_types: Iterable[NodeType], demand: Demand) -> list[tuple[int, ...]]:
    """Return the allocatable of each node type in whole steps, in the order of `Demand.names`."""
    steps = tuple(zip(demand.names, demand.steps, strict=True))
    known: dict[int, tuple[int, ...]] = {}
    found = []
    for node_type in node_types:
        identity = id(node_type.allocatable)
        if identity not in known:
            has = dict(node_type.allocatable.items)
            amounts = [(max(has.get(name, 0), 0), step) for name, step in steps]
            known[identity] = tuple([amount - amount % step for amount, step in amounts])
        found.append(known[identity])
    return found


def usable_amounts(
    problem: PackingProblem,
    demand: Demand,
    amounts: Sequence[tuple[int, ...]],
    open_to: Sequence[int],
    *,
    cap_all: bool,
) -> Sequence[tuple[int, ...]]:
    """Return per node type the amounts that the pods which may run on it can use.

    Args:
        problem: The problem that the node types belong to.
        demand: Its classes.
        amounts: Amounts by node type (`amounts_of`).
        open_to: Per node type, the signatures that may run on it, as a mask.
        cap_all: Whether cpu, memory and pods are capped, too. For making a plan they are not: what
            is left of them may be of use to future pods.
    """
    start = 0 if cap_all else _BESIDE
    if start == len(demand.names):
        return amounts
    by_signature = _asked(problem, demand)
    together: dict[int, list[int]] = {}
    found = []
    for available, signatures in zip(amounts, open_to, strict=True):
        if signatures not in together:
            rows = [row for s, row in enumerate(by_signature) if signatures >> s & 1]
            together[signatures] = [sum(column) for column in zip(*rows, strict=True)]
        found.append(
            (*available[:start], *map(min, available[start:], together[signatures][start:]))
        )
    return found


def _asked(problem: PackingProblem, demand: Demand) -> Sequence[Sequence[int]]:
    """Return the total requests of the pods of each signature."""
    found = [[0] * len(demand.names) for _ in demand.masks]
    for k, pod_class in enumerate(problem.classes):
        row = found[demand.signature[k]]
        # A request of nothing counts as 1, as it does when nodes are filled.
        for place, amount in enumerate((demand.cpu[k], demand.memory[k], demand.pods[k])):
            row[place] += max(amount, 1) * pod_class.count
        for place, amount in demand.extras[k]:
            row[place + _BESIDE] += amount * pod_class.count
    return found

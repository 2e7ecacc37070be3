"""The classes of a problem as plain numbers, column by column."""

from collections.abc import Iterable, Sequence
from math import gcd
from typing import Final, NamedTuple

from shared.model.resources import CPU, MEMORY, PODS
from shared.packing.problem import PackingProblem

CORE: Final = (CPU, MEMORY, PODS)


class Demand(NamedTuple):
    """The classes, column by column, indexed like the problem's.

    Attributes:
        names: Resource names: cpu, memory, pods, then the others by name.
        cpu: Millicores of one pod.
        memory: Bytes of one pod.
        pods: Amount of the resource `pods` of one pod.
        extras: (position among the other resources, amount) of one pod, amounts above zero.
        signature: Number of the set of node types that a class may run on.
        masks: Per signature, its bit mask over node types.
        steps: Per resource, a common divisor of all pods' amounts: what exceeds the last whole step
            can never be used.
    """

    names: tuple[str, ...]
    cpu: tuple[int, ...]
    memory: tuple[int, ...]
    pods: tuple[int, ...]
    extras: tuple[tuple[tuple[int, int], ...], ...]
    signature: tuple[int, ...]
    masks: tuple[int, ...]
    steps: tuple[int, ...]

    def amounts(self, index: int) -> list[tuple[int, int]]:
        """Return (resource position, amount) of one pod of a class, zeros left out."""
        core = (self.cpu[index], self.memory[index], self.pods[index])
        found = [(place, amount) for place, amount in enumerate(core) if amount]
        found.extend((place + 3, amount) for place, amount in self.extras[index])
        return found


def read_demand(problem: PackingProblem) -> Demand:
    """Return the classes of a problem, column by column."""
    named = {name for pod_class in problem.classes for name in pod_class.requests}
    names = (*CORE, *sorted(named.difference(CORE)))
    places = {name: place for place, name in enumerate(names)}
    signatures: dict[int, int] = {}
    columns: tuple[list[int], list[int], list[int], list[int]] = ([], [], [], [])
    cpu, memory, pods, signature = columns
    extras = []
    for pod_class, mask in zip(problem.classes, problem.compatible, strict=True):
        amounts = dict(pod_class.requests.items)
        cpu.append(max(amounts.pop(CPU, 0), 0))
        memory.append(max(amounts.pop(MEMORY, 0), 0))
        pods.append(max(amounts.pop(PODS, 0), 0))
        extras.append(tuple((places[n] - 3, amounts[n]) for n in sorted(amounts) if amounts[n] > 0))
        signature.append(signatures.setdefault(mask, len(signatures)))
    return Demand(
        names=names,
        cpu=tuple(cpu),
        memory=tuple(memory),
        pods=tuple(pods),
        extras=tuple(extras),
        signature=tuple(signature),
        masks=tuple(signatures),
        steps=_steps(problem, (cpu, memory, pods), extras, len(names) - 3),
    )


def _steps(
    problem: PackingProblem,
    columns: Iterable[Sequence[int]],
    extras: Sequence[tuple[tuple[int, int], ...]],
    many: int,
) -> tuple[int, ...]:
    """Return the greatest common divisor of each resource's amounts, 1 if there are none.

    Also 1 where some pod requests none of cpu, memory or `pods`: filling nodes counts it as 1.
    """
    asking = [k for k, pod_class in enumerate(problem.classes) if pod_class.count]
    steps = []
    for column in columns:
        amounts = [column[k] for k in asking]
        steps.append(gcd(*amounts) if amounts and all(amounts) else 1)
    beside = [0] * many
    for k in asking:
        for place, amount in extras[k]:
            beside[place] = gcd(beside[place], amount)
    return (*steps, *[step or 1 for step in beside])

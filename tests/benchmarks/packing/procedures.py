"""Which search procedure wins how often, and what its plans save.

A procedure that wins a case is left out, and the case is packed again: the difference in price is
what the procedure saves.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final
from unittest.mock import patch

from shared.packing.packer import pack_unchecked
from shared.packing.problem import PackingProblem, PackingSettings
from shared.packing.search import portfolio
from tests.benchmarks.packing import plans, price_table, workloads

_PODS: Final = (20, 60, 100, 300, 1_000)
_SEEDS: Final = range(10, 12)
# Never left out: the others need a plan to begin with.
_FIRST: Final = "deal"
# A longer name first: a name may begin with another one.
_NAMES: Final = tuple(sorted((name for name, _ in portfolio.FOR_FEW_NODES), key=len, reverse=True))


def table() -> Iterator[list[str]]:
    """Yield the procedures that won a case: name, percent of cases won, percent of cost saved."""
    won: Counter[str] = Counter()
    saved: Counter[str] = Counter()
    total = 0
    for problem in _problems():
        packing = pack_unchecked(problem, bounded=False)
        name = next((name for name in _NAMES if packing.candidate.startswith(name)), "others")
        won[name] += 1
        total += packing.cost_micros_per_hour
        if name in _NAMES and name != _FIRST:
            saved[name] += _cost_without(problem, name) - packing.cost_micros_per_hour
    cases = sum(won.values())
    for name, count in won.most_common():
        yield [name, f"{100 * count / cases:.1f}", f"{100 * saved[name] / total:.3f}"]


def _cost_without(problem: PackingProblem, name: str) -> int:
    kept = [
        tuple(entry for entry in known if entry[0] != name)
        for known in (portfolio.PROCEDURES, portfolio.FOR_FEW_NODES)
    ]
    with (
        patch.object(portfolio, "PROCEDURES", kept[0]),
        patch.object(portfolio, "FOR_FEW_NODES", kept[1]),
    ):
        return pack_unchecked(problem, bounded=False).cost_micros_per_hour


def _problems() -> Iterator[PackingProblem]:
    for seed in _SEEDS:
        for name, workload in workloads.WORKLOADS.items():
            for count in _PODS:
                for settings in (workloads.PLAIN, PackingSettings()):
                    wanted = plans.POOLS.get(name, price_table.general)
                    yield workloads.problem(workload(count, seed), wanted, settings=settings)

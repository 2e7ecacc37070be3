"""What groups of search procedures save: all cases are packed again without each group.

Left out alone, a procedure seems to save little, since the others of its group stand in for it.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any, Final
from unittest.mock import patch

from shared.packing import packer
from shared.packing.packer import pack_unchecked
from shared.packing.problem import PackingSettings
from shared.packing.search import portfolio, search
from shared.planning.decide import decide
from tests.benchmarks.packing import plans, price_table, workloads
from tests.benchmarks.planning import clusters

_PODS: Final = (60, 300, 1_000)
_TOPOLOGY_PODS: Final = 1_000
_SEED: Final = 10
_Case = Callable[[], int]  # returns what its plan costs, in micro-dollars per hour


def _as_it_is(_: object, patterns: object, *__: object) -> object:
    return patterns


def _nothing(*_: object) -> None:
    return None


# Where each procedure is called, and what stands in for it.
_LEFT_OUT: Final[Mapping[str, tuple[tuple[Any, str, object], ...]]] = {
    "exact solution": ((packer, "cover_exactly", _nothing),),
    "plans from patterns": ((portfolio, "_from_columns", _nothing),),
    "ways of filling for few nodes": ((portfolio, "FOR_FEW_NODES", portfolio.PROCEDURES),),
    "all ways of filling but the first": (
        (portfolio, "FOR_FEW_NODES", portfolio.PROCEDURES[:2]),
        (portfolio, "PROCEDURES", portfolio.PROCEDURES[:2]),
    ),
    "first fit": ((search, "_first_fit", _nothing),),
    "relocation": ((search, "relocate", _as_it_is),),
    "local search": ((search, "local_search", _as_it_is),),
    "relocation and local search": (
        (search, "relocate", _as_it_is),
        (search, "local_search", _as_it_is),
    ),
    "second tries at adjusted prices": (
        (packer, "fee_for_fewer_nodes", lambda *_: 0),
        (packer, "prices_of_limits", lambda *_: ()),
    ),
    "aggregation": ((search, "aggregate", _nothing),),
}


def table() -> Iterator[list[str]]:
    """Yield, per group: its name, by how many percent plans cost more without it, CPU seconds."""
    cases = dict(_cases())
    usual, seconds = _priced(cases)
    yield ["none", "0.000", "0.000", f"{seconds:.1f}"]
    for name, changes in _LEFT_OUT.items():
        with ExitStack() as stack:
            for place, attribute, instead in changes:
                stack.enter_context(patch.object(place, attribute, instead))
            costs, seconds = _priced(cases)
        worst = max(cases, key=lambda case: costs[case] / usual[case])
        in_all = 100 * (sum(costs.values()) / sum(usual.values()) - 1)
        most = 100 * (costs[worst] / usual[worst] - 1)
        yield [
            name,
            f"{in_all:.3f}",
            f"{most:.3f} ({worst})" if most else "0.000",
            f"{seconds:.1f}",
        ]


def _priced(cases: Mapping[str, _Case]) -> tuple[dict[str, int], float]:
    """Return what each case costs, and the CPU seconds of all."""
    began = time.process_time()
    costs = {name: case() for name, case in cases.items()}
    return costs, time.process_time() - began


def _cases() -> Iterator[tuple[str, _Case]]:
    for name, workload in (*workloads.WORKLOADS.items(), ("large", workloads.large)):
        for count in _PODS:
            for settings, made in (("plain", workloads.PLAIN), ("default", PackingSettings())):
                wanted = plans.POOLS.get(name, price_table.general)
                problem = workloads.problem(workload(count, _SEED), wanted, settings=made)
                yield (
                    f"{name} {count} {settings}",
                    lambda problem=problem: (  # type: ignore[misc]
                        pack_unchecked(problem, bounded=False).cost_micros_per_hour
                    ),
                )
    snapshot = clusters.CLUSTERS["topo"](_TOPOLOGY_PODS)
    yield (
        f"topo {_TOPOLOGY_PODS}",
        lambda: decide(snapshot, workloads.PLAIN).cost_micros_per_hour,
    )

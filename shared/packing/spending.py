"""Spending: what each setting adds to the price of a plan."""

from dataclasses import replace
from typing import Any, Final

from shared.packing.packer import pack
from shared.packing.patience import OutOfTime
from shared.packing.problem import PackingProblem, PackingSettings

_PLAIN: Final = PackingSettings(
    node_fee_micros_per_hour=0,
    leftover_value_percent=0,
    max_node_vcpus=0,
    diversification_k_on_demand=1,
    diversification_k_spot=1,
    max_launch_groups=0,
    type_weights={},
)
# Those that make plans dearer on purpose; the others bound effort or what else may be bought.
_PRICED: Final = (
    "node_fee_micros_per_hour",
    "leftover_value_percent",
    "max_node_vcpus",
    "diversification_k_on_demand",
    "diversification_k_spot",
    "max_launch_groups",
    "type_weights",
)


def setting_costs(
    problem: PackingProblem, out_of_time: OutOfTime | None = None
) -> tuple[tuple[str, int], ...]:
    """Return (setting, micro-dollars per hour it adds to the plan's price), in a fixed order.

    The pods are packed again with one setting at a time put back to the value at which price
    alone counts: no cap on node size, no fee, the cheapest pool, any number of launch groups.
    Settings that have it already are left out, and so are those for which the time was not
    enough. A negative amount says that the search did better with the setting by chance.
    Price is that of the cheapest options, as `Packing.cost_micros_per_hour` has it.

    Args:
        problem: What was packed. `thorough` is ignored: at most eight plans are made.
        out_of_time: As for `pack`.
    """
    settings = replace(problem.settings, thorough=False)
    usual = pack(replace(problem, settings=settings), out_of_time)
    costs = []
    for name in _PRICED:
        plain: Any = getattr(_PLAIN, name)
        if getattr(settings, name) == plain:
            continue
        if out_of_time is not None and out_of_time():
            break
        changed = replace(settings, **{name: plain})
        made = pack(replace(problem, settings=changed), out_of_time)
        costs.append((name, usual.cost_micros_per_hour - made.cost_micros_per_hour))
    return tuple(costs)

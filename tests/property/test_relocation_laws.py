"""Laws of moving pods: the same pods on nodes that hold them, at no higher price."""

from hypothesis import assume, given

from shared.packing.best_bound import counts_that_fit
from shared.packing.bin_types import find_bin_types
from shared.packing.bound.resource_prices import find_prices
from shared.packing.demand import read_demand
from shared.packing.priced_problem import price_problem
from shared.packing.problem import PackingProblem
from shared.packing.search.fill_node import FillRules
from shared.packing.search.greedy import build_greedy
from shared.packing.search.relocate import relocate
from shared.packing.usable_capacity import amounts_of
from tests.property.test_packing_laws import QUICK, problems
from tests.unit.packing.search.test_relocate import pods_of


@given(asked=problems())
@QUICK
def test_the_same_pods_cost_no_more_on_nodes_that_hold_them(asked: PackingProblem) -> None:
    demand, everything = read_demand(asked), range(len(asked.node_types))
    rooms = amounts_of(asked.node_types, demand)
    kinds = find_bin_types(asked, demand, everything, rooms, asked.settings)
    counts = counts_that_fit([pod_class.count for pod_class in asked.classes], demand, kinds)
    assume(any(counts))
    prices = [kind.comparison_price for kind in kinds]
    priced = price_problem(demand, kinds, find_prices(demand, counts, kinds, prices), prices)
    plan = build_greedy(priced, counts, FillRules())
    assert plan is not None
    found = relocate(priced, plan)
    assert priced.cost(found) <= priced.cost(plan)
    assert pods_of(found) == pods_of(plan)
    for entry in found:
        needs, signatures = priced.needs(entry.contents)
        kind = priced.bin_types[entry.bin_type]
        assert all(amount <= room for amount, room in zip(needs, kind.allocatable, strict=True))
        assert not signatures & ~kind.signatures

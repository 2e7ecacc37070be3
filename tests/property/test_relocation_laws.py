"""Laws of moving pods: the same pods on nodes that hold them, at no higher price."""

from hypothesis import assume, given

from shared.packing.best_bound import housed
from shared.packing.bound.resource_prices import find_prices
from shared.packing.demand import read_demand
from shared.packing.machine_kinds import find_kinds
from shared.packing.priced_problem import make_ground
from shared.packing.problem import PackingProblem
from shared.packing.search.fill_node import Rules
from shared.packing.search.greedy import build
from shared.packing.search.relocate import relocate
from shared.packing.usable_capacity import amounts_of
from tests.property.test_packing_laws import QUICK, problems
from tests.unit.packing.search.test_relocate import pods_of


@given(asked=problems())
@QUICK
def test_the_same_pods_cost_no_more_on_nodes_that_hold_them(asked: PackingProblem) -> None:
    demand, everything = read_demand(asked), range(len(asked.shapes))
    rooms = amounts_of(asked.shapes, demand)
    kinds = find_kinds(asked, demand, everything, rooms, asked.settings)
    counts = housed([pod_class.count for pod_class in asked.classes], demand, kinds)
    assume(any(counts))
    prices = [kind.planning_price for kind in kinds]
    priced = make_ground(demand, kinds, find_prices(demand, counts, kinds, prices), prices)
    plan = build(priced, counts, Rules())
    assert plan is not None
    found = relocate(priced, plan)
    assert priced.cost(found) <= priced.cost(plan)
    assert pods_of(found) == pods_of(plan)
    for entry in found:
        needs, signatures = priced.needs(entry.contents)
        kind = priced.kinds[entry.kind]
        assert all(amount <= room for amount, room in zip(needs, kind.room, strict=True))
        assert not signatures & ~kind.signatures

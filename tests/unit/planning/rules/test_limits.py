"""Limits of Provisioners, merged with their ceilings and the cluster's."""

from shared.disruption.simulate import without_nodes
from shared.model.brakes import NO_CEILING, Ceiling
from shared.model.provisioner import Provisioner
from shared.model.resources import NODES, PRICE, Resources
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.planning.rules.limits import limits_of, remaining_limits, used_capacity
from tests.builders import intent, node, provisioner, site, slot, snapshot

FOUR = Ceiling(max_nodes=4, max_price_micros_per_hour=400_000)
TEN = Ceiling(max_nodes=10, max_price_micros_per_hour=1_000_000)
# Less than the three nodes that there are.
ONE = Ceiling(max_nodes=1)


def gathered(*owners: Provisioner, ceiling: Ceiling | None = NO_CEILING) -> ClusterSnapshot:
    """Return a snapshot in which the Provisioner `default` has three nodes, one in each state."""
    seen = snapshot(
        provisioners=owners,
        sites=tuple(site(owner.name) for owner in owners),
        nodes=(node(),),
        slots=(slot(),),
        intents=(intent(reserved_price_micros_per_hour=96_000),),
    )
    return replace(seen, ceiling=ceiling)


def limits(seen: ClusterSnapshot) -> dict[str, dict[str, int]]:
    return {name: dict(each.items) for name, each in limits_of(seen, used_capacity(seen)).items()}


def test_each_provisioner_has_the_lower_of_its_own_ceiling_and_what_the_cluster_leaves() -> None:
    owners = provisioner(ceiling=TEN), provisioner("more"), provisioner("small", ceiling=ONE)
    assert limits(gathered(*owners, ceiling=FOUR)) == {
        "default": {NODES: 4, PRICE: 400_000},
        "more": {NODES: 1, PRICE: 112_000},
        "small": {NODES: 1, PRICE: 112_000},
    }


def test_a_ceiling_below_what_there_is_leaves_nothing() -> None:
    seen = gathered(provisioner(), provisioner("more"), ceiling=ONE)
    assert limits(seen) == {"default": {NODES: 1}, "more": {NODES: 0}}
    left = remaining_limits(seen)
    assert (left["default"].items, left["more"].items) == (((NODES, -2),), ((NODES, 0),))


def test_ceilings_join_the_limits_and_those_of_zero_stay() -> None:
    owner = provisioner(ceiling=ONE, limits=Resources((("cpu", 0),)))
    assert limits(gathered(owner)) == {"default": {"cpu": 0, NODES: 1}}


def test_no_ceiling_applies_to_a_snapshot_without_one() -> None:
    assert limits(gathered(provisioner(ceiling=ONE), ceiling=None)) == {}


def test_what_a_kubelet_reports_as_nodes_and_price_does_not_count() -> None:
    odd = node(capacity=Resources.of(cpu=2000, nodes=100) + Resources(((PRICE, 10**9),)))
    used = used_capacity(snapshot(provisioners=(provisioner(),), nodes=(odd,)))["default"]
    assert (used["cpu"], used[NODES], used[PRICE]) == (2000, 1, 96_000)


def test_instances_in_flight_count_in_the_simulation_of_a_disruption() -> None:
    seen = gathered(provisioner())
    assert used_capacity(without_nodes(seen, ())) == used_capacity(seen)

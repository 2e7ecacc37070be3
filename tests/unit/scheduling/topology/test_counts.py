"""In which domains pods count whose node's labels are not settled yet."""

from shared.model import labels as keys
from shared.scheduling.topology.counts import Place, Scope, TopologyCounts, add, expect
from shared.scheduling.topology.selector import Selection
from tests.builders import needs, selector

FAMILY = "karpenter.k8s.aws/instance-family"
SPREAD = Scope((needs(FAMILY, "NotIn", "c5"),), None, frozenset({keys.CAPACITY_TYPE}))


def machine(family: str, *maybe: Place) -> Place:
    unsettled = frozenset({FAMILY} if maybe else ())
    labels = {FAMILY: family, keys.CAPACITY_TYPE: "spot"}
    return Place("n", labels, unsettled=unsettled, maybe=maybe)


def test_pods_on_a_node_that_may_not_count_are_expected_and_not_counted() -> None:
    topology_counts = TopologyCounts()
    selection = Selection(((frozenset({"shop"}), selector(app="web")),))
    counter = topology_counts.counted(keys.CAPACITY_TYPE, selection, SPREAD)
    profile = topology_counts.profile("shop", {"app": "web"}, ())
    either = machine("unknown", machine("c5"), machine("m5"))
    add(profile, either)
    expect(profile, either.maybe, sure=either)
    assert (counter.counts, counter.ghosts) == ({}, {"spot": 1})
    both = machine("unknown", machine("m6"), machine("m5"))
    add(profile, both)
    expect(profile, both.maybe, sure=both)
    assert (counter.counts, counter.ghosts) == ({"spot": 1}, {"spot": 1})

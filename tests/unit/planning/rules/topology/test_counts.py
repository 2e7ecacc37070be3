"""In which domains pods count whose node's labels are not settled yet."""

from shared.model import labels as keys
from shared.planning.rules.topology.counts import Place, Scope, TopologyCounts, add, add_uncertain
from shared.planning.rules.topology.selector import Selection
from tests.builders import needs, selector

FAMILY = "karpenter.k8s.aws/instance-family"
SPREAD = Scope((needs(FAMILY, "NotIn", "c5"),), None, frozenset({keys.CAPACITY_TYPE}))


def machine(family: str, *maybe: Place) -> Place:
    unsettled = frozenset({FAMILY} if maybe else ())
    labels = {FAMILY: family, keys.CAPACITY_TYPE: "spot"}
    return Place("n", labels, placeholder_keys=unsettled, possible_places=maybe)


def test_pods_on_a_node_that_may_not_count_are_expected_and_not_counted() -> None:
    topology_counts = TopologyCounts()
    selection = Selection(((frozenset({"shop"}), selector(app="web")),))
    counter = topology_counts.counter_of_selected(keys.CAPACITY_TYPE, selection, SPREAD)
    profile = topology_counts.profile("shop", {"app": "web"}, ())
    either = machine("unknown", machine("c5"), machine("m5"))
    add(profile, either)
    add_uncertain(profile, either.possible_places, certain=either)
    assert (counter.counts, counter.uncertain) == ({}, {"spot": 1})
    both = machine("unknown", machine("m6"), machine("m5"))
    add(profile, both)
    add_uncertain(profile, both.possible_places, certain=both)
    assert (counter.counts, counter.uncertain) == ({"spot": 1}, {"spot": 1})


def test_a_place_whose_labels_are_settled_later_counts_once_for_each_spread() -> None:
    """That of the zone had it from the beginning, that of the capacity type has it now."""
    topology_counts, everywhere = TopologyCounts(), Scope(None, None, frozenset())
    by_zone, by_way = (
        topology_counts.counter_of_selected(key, Selection(()), everywhere)
        for key in (keys.ZONE, keys.CAPACITY_TYPE)
    )
    place = Place("n", {keys.ZONE: "us-east-1a"})
    topology_counts.open(place)
    topology_counts.add_labels(place, {keys.CAPACITY_TYPE: "spot"})
    assert by_zone.eligible == {"us-east-1a": 1}
    assert by_way.eligible == {"spot": 1}


def test_owners_on_nodes_are_one_counter_for_each_key_and_others_stay_apart() -> None:
    topology_counts = TopologyCounts()
    selections = [Selection(((frozenset({"shop", f"n{n}"}), selector(app="web")),)) for n in "abc"]
    first, second, growing = (
        topology_counts.counter_of_owners(keys.ZONE, some) for some in selections
    )
    alone = topology_counts.counter_of_owners(keys.HOSTNAME, selections[0])
    topology_counts.mark_growing((growing,))
    near, far = (Place(name, {keys.ZONE: name}) for name in ("near", "far"))
    add((first, second), near)
    add_uncertain((second,), (far,))
    shunning = topology_counts.counters_that_repel("shop", {"app": "web"})
    assert [counter for counter in shunning if counter in (growing, alone)] == [growing, alone]
    (joined,) = set(shunning) - {growing, alone}
    assert (joined.key, joined.counts, joined.uncertain) == (keys.ZONE, {"near": 2}, {"far": 1})
    assert topology_counts.counters_that_repel("shop", {"app": "web", "b": "c"}) == shunning


def test_keys_that_no_node_has_are_no_topology() -> None:
    topology_counts = TopologyCounts(frozenset({keys.ZONE}))
    for key in (keys.ZONE, "example.com/rack"):
        topology_counts.counter_of_selected(key, Selection(()))
    assert topology_counts.keys() == (keys.ZONE,)

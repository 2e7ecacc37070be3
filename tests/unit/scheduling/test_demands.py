"""Which domains the pods of a class are pinned to."""

from collections.abc import Mapping

from shared.model import labels as keys
from shared.model.nodes import Node
from shared.model.pods import Pod
from shared.model.provisioner import Provisioner
from shared.scheduling.classes import group
from shared.scheduling.demands import demands
from shared.scheduling.existing import rooms
from shared.scheduling.offers import offers
from tests.builders import (
    CATALOG,
    ZONES,
    affinity,
    needs,
    node,
    pod,
    pods,
    provisioner,
    selector,
    site,
    snapshot,
    spread,
)

A, B, C = ZONES


def shares(
    *waiting: Pod,
    nodes: tuple[Node, ...] = (),
    bound: tuple[Pod, ...] = (),
    owner: Provisioner | None = None,
    zones: tuple[str, ...] = ZONES,
) -> tuple[Mapping[str, int], list[tuple[int, str]]]:
    """Return pods by the domain they are pinned to ("" for none), and what was refused."""
    classes = group(waiting)
    found = offers(owner or provisioner(), site(zones=zones), CATALOG, ())
    existing = rooms(snapshot(*waiting, nodes=nodes, bound=bound))
    asked, refused = demands(classes, found, existing, (), soft=True)
    pinned: dict[str, int] = {}
    for one in asked:
        domain = "".join(value for wanted in one.pinned for value in wanted.values)
        pinned[domain] = pinned.get(domain, 0) + one.count
    return pinned, [(one.count, one.reason) for one in refused]


def in_zone(zone: str, name: str = "n", **labels: str) -> Node:
    return node(name, labels={**node().labels, keys.ZONE: zone, keys.HOSTNAME: name, **labels})


def test_pods_without_rules_may_go_anywhere() -> None:
    assert shares(*pods(5)) == ({"": 5}, [])


def test_a_spread_evens_out_what_stands_already() -> None:
    nodes = (in_zone(A, "na"), in_zone(B, "nb"))
    bound = (*pods(3, "x", node_name="na"), *pods(1, "y", node_name="nb"))
    members = pods(4, spreads=(spread(),))
    assert shares(*members, nodes=nodes, bound=bound) == ({B: 2, C: 2}, [])
    other = pods(3, "x", node_name="na", namespace="other")
    assert shares(*members, nodes=nodes, bound=other) == ({A: 2, B: 1, C: 1}, [])


def test_classes_of_one_rule_see_each_others_pins() -> None:
    first = pods(2, "a", spreads=(spread(),), cpu=100)
    second = pods(2, "b", spreads=(spread(),), cpu=200)
    assert shares(*first, *second)[0] == {A: 2, B: 1, C: 1}


def test_a_spread_uses_only_domains_the_pod_can_reach() -> None:
    members = pods(4, spreads=(spread(),), node_selector=needs(keys.ZONE, "NotIn", B))
    assert shares(*members) == ({A: 2, C: 2}, [])
    assert shares(*pods(4, spreads=(spread(),)), zones=(C,)) == ({C: 4}, [])


def test_an_existing_node_makes_its_domain_reachable() -> None:
    members = pods(2, spreads=(spread(),))
    nodes = (in_zone("other"), node("bare", labels={}))
    assert shares(*members, nodes=nodes, zones=(C,)) == ({"other": 1, C: 1}, [])


def test_a_spread_over_capacity_types_pins_them() -> None:
    owner = provisioner(requirements=needs(keys.ARCH, "In", "amd64"))
    members = pods(3, spreads=(spread(keys.CAPACITY_TYPE),))
    assert shares(*members, owner=owner) == ({"on-demand": 2, "spot": 1}, [])


def test_a_spread_with_no_domain_is_refused() -> None:
    members = pods(2, spreads=(spread(),))
    assert shares(*members, zones=()) == ({}, [(2, "no domain to spread over")])


def test_affinity_follows_the_domain_with_most_of_those_it_selects() -> None:
    nodes = (in_zone(A, "na"), in_zone(B, "nb"))
    bound = (*pods(1, "x", node_name="na"), *pods(2, "y", node_name="nb"))
    members = pods(4, labels={"app": "client"}, affinity=(affinity(keys.ZONE),))
    assert shares(*members, nodes=nodes, bound=bound) == ({B: 4}, [])


def test_pods_with_affinity_to_themselves_begin_in_one_domain() -> None:
    members = pods(4, affinity=(affinity(keys.ZONE),))
    assert shares(*members) == ({A: 4}, [])


def test_affinity_to_pods_that_cannot_be_reached_is_refused() -> None:
    reason = f"no pod that its affinity over {keys.ZONE} asks for can be reached"
    stranger = pods(2, affinity=(affinity(keys.ZONE, selector=selector(app="db")),))
    assert shares(*stranger) == ({}, [(2, reason)])
    # Its own kind stands where it cannot go: a second place would break the rule.
    members = pods(2, affinity=(affinity(keys.ZONE),), node_selector=needs(keys.ZONE, "In", C))
    bound = pods(1, "x", node_name="n")
    assert shares(*members, nodes=(in_zone(A),), bound=bound) == ({}, [(2, reason)])


def test_anti_affinity_to_themselves_gives_each_pod_a_free_domain() -> None:
    members = pods(3, anti_affinity=(affinity(keys.ZONE),))
    assert shares(*members) == ({A: 1, B: 1, C: 1}, [])
    reason = f"every domain of {keys.ZONE} holds a pod that its anti-affinity avoids"
    bound = pods(1, "x", node_name="n")
    assert shares(*members, nodes=(in_zone(A),), bound=bound) == ({B: 1, C: 1}, [(1, reason)])


def test_anti_affinity_to_others_takes_one_free_domain_for_all() -> None:
    term = affinity(keys.ZONE, selector=selector(app="db"))
    members = pods(3, anti_affinity=(term,))
    bound = pods(1, "x", node_name="n", labels={"app": "db"})
    assert shares(*members, nodes=(in_zone(A),), bound=bound) == ({B: 3}, [])
    everywhere = tuple(in_zone(zone, f"n{zone}") for zone in ZONES)
    dbs = tuple(pod(f"x{z}", node_name=f"n{z}", labels={"app": "db"}) for z in ZONES)
    assert shares(*members, nodes=everywhere, bound=dbs)[1][0][0] == 3


def test_what_cannot_be_honoured_is_refused_with_every_reason() -> None:
    one = pod(refusals=("it asks for x", "and for y"), affinity=(affinity("rack"),))
    reason = "it asks for x; and for y; required pod affinity over rack is not planned for"
    assert shares(one) == ({}, [(1, reason)])

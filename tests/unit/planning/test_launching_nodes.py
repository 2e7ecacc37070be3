"""Nodes of launches that have no machine so far, as other pods' rules count them."""

from typing import Any

from shared.model.kubernetes.pods import Pod
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.snapshot import ClusterSnapshot
from shared.planning.decide import decide
from tests import builders as make
from tests.builders import pods, provisioner, snapshot
from tests.unit.planning.asking import QUICK, A, B, C, in_zone, why, zones_of

OWN = Taint(key="team", effect=Effect.NO_SCHEDULE)


def beside(*waiting: Pod, promised: tuple[Pod, ...], **more: Any) -> ClusterSnapshot:
    return snapshot(*promised, *waiting, promised=frozenset(pod.uid for pod in promised), **more)


def counts(*zones: str) -> dict[str, int]:
    return {zone: zones.count(zone) for zone in sorted(set(zones))}


def test_a_node_of_several_types_in_one_zone_is_one_node_there() -> None:
    promised = pods(1, "p", spreads=(make.spread(),))
    options = tuple(make.option(name=name) for name in ("m5.large", "m5.xlarge", "m5.2xlarge"))
    launched = make.planned(*promised, options=options)
    waiting = pods(5, "q", spreads=(make.spread(),))
    plan = decide(beside(*waiting, promised=promised, launching=(launched,)), QUICK)
    assert counts(*zones_of(plan).values()) == {A: 1, B: 2, C: 2}


def test_a_node_that_comes_up_in_one_of_two_zones_is_no_third_zone() -> None:
    promised = pods(1, "p", spreads=(make.spread(),))
    launched = make.planned(*promised, options=(make.option(), make.option(zone=B)))
    full = tuple(in_zone(zone, f"n{zone}", unschedulable=True) for zone in (A, B, C))
    standing = tuple(pod for zone in (A, B, C) for pod in pods(2, f"s{zone}", node_name=f"n{zone}"))
    world = beside(
        *pods(1, "q", spreads=(make.spread(),)),
        promised=promised,
        launching=(launched,),
        nodes=full,
        bound=standing,
    )
    plan = decide(world, QUICK)
    assert (why(plan), zones_of(plan)) == ({}, {"q000": C})


def test_a_node_that_a_spread_does_not_tolerate_is_not_counted() -> None:
    promised = pods(2, "p")
    launched = make.planned(*promised, provisioner="own", options=(make.option(),))
    spread = make.spread(honor_taints=True)
    owners = (provisioner(), provisioner("own", taints=(OWN,)))
    world = beside(
        *pods(3, "q", spreads=(spread,)),
        promised=promised,
        launching=(launched,),
        provisioners=owners,
    )
    assert counts(*zones_of(decide(world, QUICK)).values()) == {A: 1, B: 1, C: 1}

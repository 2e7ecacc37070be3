"""Even placement of pods over the domains of NodePools."""

from typing import Any

import pytest

from shared.model import labels as keys
from tests.karpenter_cases.scheduling.machines import node
from tests.karpenter_cases.scheduling.market import A, B, C
from tests.karpenter_cases.scheduling.writing import APP, pod, pods, spread, taint, tolerates
from tests.karpenter_cases.v1.planning.pools import one, planned, pool

ZONE = keys.ZONE
FULL = {"cpu": "10m", "memory": "1Mi", "pods": "0"}
THREE = [spread(minDomains=3)]


def full(zone: str, **more: Any) -> Any:
    return node(f"n-{zone}", zone, allocatable=FULL, **more)


def old(zone: str, count: int = 1) -> tuple[Any, ...]:
    return tuple(pod(f"old-{zone}-{number}", node=f"n-{zone}") for number in range(count))


def test_the_third_zone_is_next_where_three_are_asked_for() -> None:
    standing = {"nodes": (full(A), full(B)), "bound": (*old(A), *old(B))}
    assert one({"spreads": THREE}, **standing).values(ZONE) == {C}
    two = (pool("default", (ZONE, "In", A, B)),)
    assert one({"spreads": THREE}, pools=two, **standing).new == ()


def test_enough_zones_leave_a_plain_spread() -> None:
    assert planned(*pods(4, spreads=THREE)).shares(ZONE) == [1, 1, 2]


def test_each_revision_is_spread_for_itself() -> None:
    by_revision = [spread(matchLabelKeys=["revision"])]
    standing = {
        "nodes": (full(A),),
        "bound": tuple(
            pod(f"old{number}", node=f"n-{A}", labels={**APP, "revision": "1"})
            for number in range(3)
        ),
    }
    new = pods(3, labels={**APP, "revision": "2"}, spreads=by_revision)
    assert planned(*new, **standing).shares(ZONE) == [1, 1, 1]
    without = pods(2, spreads=[spread(matchLabelKeys=["unknown"])])
    assert set(planned(*without, **standing).counts(ZONE)) == {B, C}


@pytest.mark.parametrize(
    ("policy", "placed"), [("Honor", 2), ("Ignore", 1)], ids=["not-counted", "counted"]
)
def test_zones_of_tainted_nodes_count_as_the_spread_says(policy: str, placed: int) -> None:
    # Only zones A and B can be bought in; C has a node that these pods do not tolerate.
    rule = [spread(nodeTaintsPolicy=policy)]
    closed = full(C, taints=[taint("closed")])
    two = (pool("default", (ZONE, "In", A)), pool("tainted", (ZONE, "In", B), taints=[taint("b")]))
    outcome = planned(*pods(2, spreads=rule), pools=two, nodes=(closed,))
    assert len(outcome.homes) == placed


@pytest.mark.parametrize(
    ("policy", "placed"), [("Honor", 3), ("Ignore", 1)], ids=["not-counted", "counted"]
)
def test_zones_outside_a_pods_affinity_count_as_the_spread_says(policy: str, placed: int) -> None:
    rule = [spread(nodeAffinityPolicy=policy)]
    words: dict[str, Any] = {"required": [[(ZONE, "In", A)]], "spreads": rule}
    assert len(planned(*pods(3, **words), nodes=(full(B), full(C))).homes) == placed


def test_pools_that_exclude_each_other_share_a_zone() -> None:
    rule = [spread(nodeTaintsPolicy="Honor")]
    pools = (
        pool("red", (ZONE, "In", A, B), taints=[taint("red")]),
        pool("blue", (ZONE, "In", B, C), taints=[taint("blue")]),
    )
    words: dict[str, Any] = {"spreads": rule, "tolerations": [tolerates("red")]}
    red = planned(*pods(4, **words), pools=pools)
    assert red.counts(ZONE) == {A: 2, B: 2}


def test_a_spread_without_a_selector_spreads_nothing() -> None:
    small = {"cpu": "100m", "memory": "64Mi"}
    bare = planned(*pods(4, **small, spreads=[spread(keys.HOSTNAME, match=None)]))
    assert len(bare.new) == 1
    wrong = {"matchExpressions": [{"key": "app", "operator": "Is", "values": ["x"]}]}
    odd = planned(*pods(2, **small, spreads=[spread(match=None, labelSelector=wrong)]))
    assert len(odd.new) <= 1


def test_pods_are_spread_over_architectures() -> None:
    outcome = planned(*pods(4, spreads=[spread(keys.ARCH)]))
    assert outcome.counts(keys.ARCH) == {"amd64": 2, "arm64": 2}

"""Even placement over hosts, ways to pay, architectures and labels of the user's own."""

from collections import Counter
from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.kubernetes.pods import Pod
from tests.karpenter_cases.scheduling.machines import node
from tests.karpenter_cases.scheduling.market import A, B
from tests.karpenter_cases.scheduling.outcome import Outcome, settled, solve
from tests.karpenter_cases.scheduling.writing import pod, pods, provisioner, spread

ZONE, HOST, KIND, ARCH = keys.ZONE, keys.HOSTNAME, keys.CAPACITY_TYPE, keys.ARCH
FULL = {"cpu": "10m", "memory": "1Mi", "pods": "0"}
BY_KIND = [spread(KIND)]
SHARE = "example.com/share"


def on_hosts(outcome: Outcome, prefix: str = "") -> list[int]:
    """Return how many of the pods each node gets, sorted."""
    homes = Counter(home.name for name, home in outcome.homes.items() if name.startswith(prefix))
    return sorted(homes.values())


def test_pods_are_spread_over_hosts() -> None:
    outcome = solve(*pods(4, cpu="100m", spreads=[spread(HOST)]))
    assert on_hosts(outcome) == [1, 1, 1, 1]


def test_as_many_pods_share_a_host_as_the_skew_lets() -> None:
    outcome = solve(*pods(4, cpu="100m", spreads=[spread(HOST, 4)]))
    assert on_hosts(outcome) == [4]
    assert on_hosts(solve(*pods(8, cpu="100m", spreads=[spread(HOST, 4)]))) == [4, 4]


def deployments(**of: dict[str, str]) -> tuple[Pod, ...]:
    """Return two pods of each, spread over hosts among themselves, with their selectors."""
    found: list[Pod] = []
    for name, selector in of.items():
        rule = spread(HOST, match={"app": name})
        found += pods(
            2, f"{name}-", cpu="100m", labels={"app": name}, spreads=[rule], selector=selector
        )
    return tuple(found)


def test_spreads_of_different_pods_do_not_mind_each_other() -> None:
    outcome = solve(*deployments(red={}, blue={}))
    assert len(outcome.new) == 2
    assert on_hosts(outcome, "red") == on_hosts(outcome, "blue") == [1, 1]


def test_spreads_of_pods_of_different_architectures_do_not_mind_each_other() -> None:
    outcome = solve(*deployments(red={ARCH: "amd64"}, blue={ARCH: "arm64"}))
    assert len(outcome.new) == 4
    assert on_hosts(outcome, "red") == on_hosts(outcome, "blue") == [1, 1]
    assert {value for n in range(2) for value in outcome.values(ARCH, f"blue-{n:03}")} == {"arm64"}


def test_pods_are_spread_over_ways_to_pay() -> None:
    assert solve(*pods(4, spreads=BY_KIND)).counts(KIND) == {"on-demand": 2, "spot": 2}


def test_pods_are_spread_over_the_ways_to_pay_of_their_provisioner() -> None:
    owner = provisioner("default", (KIND, "In", "spot"))
    assert solve(*pods(4, spreads=BY_KIND), provisioners=(owner,)).counts(KIND) == {"spot": 4}


@pytest.mark.parametrize(("soft", "count"), [(0, 2), (1, 5)], ids=["hard", "soft"])
def test_a_capacity_type_no_longer_sold_still_counts(soft: int, count: int) -> None:
    old = node("old", capacity_type="spot", allocatable=FULL)
    owner = provisioner("default", (KIND, "In", "on-demand"))
    outcome = solve(
        *pods(5, spreads=[spread(KIND, soft=bool(soft))]),
        provisioners=(owner,),
        nodes=(old,),
        bound=(pod("old-pod", node="old"),),
    )
    assert outcome.counts(KIND) == {"on-demand": count}
    assert len(outcome.pending) == 5 - count


def test_pods_a_rule_over_ways_to_pay_does_not_count_are_not_spread() -> None:
    outcome = solve(*pods(5, cpu="100m", labels={"app": "other"}, spreads=BY_KIND))
    assert len(outcome.new) == 1


def old_on_demand(count: int) -> dict[str, Any]:
    return {
        "nodes": (node("old", A, allocatable=FULL),),
        "bound": tuple(pod(f"old-{number}", node="old") for number in range(count)),
    }


def test_nodes_a_pod_may_not_use_do_not_count_for_it() -> None:
    """Three on-demand pods are in a forbidden zone: they are not counted."""
    members = pods(5, "new", required=[[(ZONE, "In", B)]], spreads=BY_KIND)
    assert solve(*members, **old_on_demand(3)).shares(KIND, "new") == [2, 3]


def test_bound_pods_count_for_pods_that_fit_anywhere() -> None:
    outcome = solve(*pods(5, spreads=BY_KIND), **old_on_demand(1))
    assert outcome.counts(KIND, standing=True) == {"on-demand": 3, "spot": 3}


def test_pods_are_spread_over_architectures() -> None:
    outcome = solve(*pods(5, spreads=[spread(ARCH)]), **old_on_demand(1))
    assert outcome.counts(ARCH, standing=True) == {"amd64": 3, "arm64": 3}


def test_affinity_to_a_way_to_pay_limits_the_spread() -> None:
    first = solve(*pods(3, "first", required=[[(KIND, "In", "spot")]], spreads=BY_KIND))
    assert first.counts(KIND) == {"spot": 3}
    second = solve(*pods(5, "any", spreads=BY_KIND), **settled(first))
    assert second.counts(KIND, standing=True) == {"spot": 4, "on-demand": 4}


def per_host(outcome: Outcome) -> Counter[str]:
    """Return the number of pods on each host, those bound before included."""
    found = Counter(home.name for home in outcome.homes.values())
    found.update(other_pod.node_name for other_pod in outcome.snapshot.bound)
    return found


def skew_of_hosts(outcome: Outcome) -> int:
    """Return how many pods the most crowded host has more than the least crowded one."""
    counts = per_host(outcome).values()
    return max(counts) - min(counts)


@pytest.mark.parametrize(
    ("skew", "rounds"),
    [
        pytest.param(
            3,
            [(2, [1, 1]), (3, [1, 2, 2]), (5, [3, 3, 4]), (11, [7, 7, 7])],
            id="three-per-host",
        ),
        pytest.param(1, [(3, [1, 1, 1]), (4, [2, 2, 3]), (2, [3, 3, 3])], id="one-per-host"),
    ],
)
def test_zones_and_hosts_are_kept_even_together(
    skew: int, rounds: list[tuple[int, list[int]]]
) -> None:
    rules = [spread(ZONE), spread(HOST, skew)]
    state: dict[str, Any] = {}
    for number, (count, shares) in enumerate(rounds):
        outcome = solve(*pods(count, f"r{number}-", cpu="100m", spreads=rules), **state)
        assert outcome.pending == {}
        assert outcome.shares(ZONE, standing=True) == shares
        assert skew_of_hosts(outcome) <= skew
        state = settled(outcome)


def test_zones_ways_to_pay_and_hosts_are_kept_even_together() -> None:
    rules = [spread(ZONE), spread(KIND), spread(HOST, 3)]
    state: dict[str, Any] = {}
    for number, count in enumerate((1, 2, 3, 5, 11)):
        outcome = solve(*pods(count, f"r{number}-", cpu="100m", spreads=rules), **state)
        assert outcome.pending == {}
        for key in (ZONE, KIND):
            shares = outcome.shares(key, standing=True)
            assert shares[-1] - shares[0] <= 1
        assert skew_of_hosts(outcome) <= 3
        state = settled(outcome)
    assert outcome.shares(ZONE, standing=True) == [7, 7, 8]
    assert outcome.shares(KIND, standing=True) == [11, 11]


def test_a_label_with_more_values_for_spot_gives_spot_its_share() -> None:
    owners = (
        provisioner("spot", (KIND, "In", "spot"), (SHARE, "In", "2", "3", "4", "5")),
        provisioner("steady", (KIND, "In", "on-demand"), (SHARE, "In", "1")),
    )
    outcome = solve(*pods(20, spreads=[spread(SHARE)]), provisioners=owners)
    assert outcome.counts(SHARE) == dict.fromkeys("12345", 4)
    assert outcome.counts(KIND) == {"spot": 16, "on-demand": 4}

"""Which pools a fleet takes."""

from typing import Any

import pytest

from infra.local.ec2.allocation import (
    Candidate,
    Terms,
    allot,
    pool_depth,
    ranked,
)
from infra.local.ec2.pools import Pools, Stock
from infra.local.ec2.refusals import Refusal
from tests.local.ec2.launches import ids_of, override, picked, refused


def one(index: int, **more: Any) -> Candidate:
    values: dict[str, Any] = {
        "instance_type": f"t{index}.large",
        "zone": "us-east-1a",
        "subnet_id": "subnet-1",
        "capacity_type": "spot",
        "vcpus": 2,
        "price_micros": 100,
        "depth": 50,
    }
    return Candidate(index=index, **{**values, **more})


def stock(addresses: int = 1000, **rules: int) -> Stock:
    pools = Pools(rules={(name.replace("_", "."), "*", "*"): n for name, n in rules.items()})
    return Stock(pools=pools, addresses={"subnet-1": addresses}, vcpus_left={})


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("lowest-price", [2, 1, 0]),
        ("prioritized", [1, 0, 2]),
        ("capacity-optimized", [0, 1, 2]),
        ("capacity-optimized-prioritized", [1, 0, 2]),
        ("price-capacity-optimized", [1, 0, 2]),
    ],
)
def test_each_strategy_has_its_own_order(strategy: str, expected: list[int]) -> None:
    candidates = (
        one(0, price_micros=300, depth=99, priority=2.0),
        one(1, price_micros=200, depth=80, priority=1.0),
        one(2, price_micros=100, depth=10),
    )
    assert [found.index for found in ranked(candidates, strategy)] == expected


def test_equal_candidates_keep_the_order_of_the_request() -> None:
    candidates = (one(1), one(0), one(2))
    assert [found.index for found in ranked(candidates, "lowest-price")] == [0, 1, 2]


def test_diversified_spreads_evenly() -> None:
    result = allot((one(0), one(1), one(2)), Terms(strategy="diversified", target=7), stock())
    assert sorted(count for _, count in result.launches) == [2, 2, 3]


def test_diversified_fills_up_elsewhere_when_a_pool_is_small() -> None:
    terms = Terms(strategy="diversified", target=6)
    result = allot((one(0), one(1)), terms, stock(t0_large=1))
    assert {found.index: count for found, count in result.launches} == {0: 1, 1: 5}


def test_the_scarcest_limit_names_the_refusal() -> None:
    limited = stock(addresses=2, t0_large=5)
    result = allot((one(0),), Terms(strategy="lowest-price", target=9), limited)
    assert [
        (count, refusal.code)
        for (_, count), (_, refusal) in zip(result.launches, result.refusals, strict=True)
    ] == [(2, "InsufficientFreeAddressesInSubnet")]
    assert limited.addresses == {"subnet-1": 0}
    assert limited.pools.rules == {("t0.large", "*", "*"): 3}


def test_single_type_takes_the_first_type_that_fills_the_target() -> None:
    candidates = (
        one(0, price_micros=1, instance_type="small.large"),
        one(1, price_micros=5, instance_type="big.large"),
        one(2, price_micros=6, instance_type="big.large", zone="us-east-1b"),
    )
    pools = stock(small_large=2)
    terms = Terms(strategy="lowest-price", target=3, single_type=True, min_target=3)
    result = allot(candidates, terms, pools)
    assert [(found.instance_type, count) for found, count in result.launches] == [("big.large", 3)]


def test_below_the_minimum_nothing_is_launched_and_nothing_used() -> None:
    pools = stock(t0_large=2)
    terms = Terms(strategy="lowest-price", target=5, single_zone=True, min_target=4)
    result = allot((one(0),), terms, pools)
    assert (result.total, [refusal.code for _, refusal in result.refusals]) == (
        0,
        ["InsufficientInstanceCapacity"],
    )
    assert pools.pools.rules == {("t0.large", "*", "*"): 2}


def test_a_candidate_that_cannot_work_is_reported_although_the_fleet_is_filled() -> None:
    dead = one(0, refusal=Refusal(code="Unsupported", message="not there"))
    result = allot((dead, one(1)), Terms(strategy="lowest-price", target=1), stock())
    assert [found.index for found, _ in result.launches] == [1]
    assert [found.index for found, _ in result.refusals] == [0]


def test_pool_depths_are_fixed_and_differ() -> None:
    depths = [pool_depth("m5.large", f"us-east-1{zone}") for zone in "abcdef"]
    assert depths == [pool_depth("m5.large", f"us-east-1{zone}") for zone in "abcdef"]
    assert len(set(depths)) > 3
    assert all(1 <= depth <= 100 for depth in depths)


def test_on_demand_takes_the_cheapest_override(cluster: dict[str, Any], fleet: Any) -> None:
    zone_a, zone_b, _ = cluster["subnet_ids"]
    answer = fleet(
        [override("r5.large", zone_a), override("c5.large", zone_b), override("m5.large", zone_a)],
        count=3,
    )
    assert picked(answer) == [("c5.large", 3)]
    assert refused(answer) == []
    [row] = answer["Instances"]
    assert row["Lifecycle"] == "on-demand"
    assert row["LaunchTemplateAndOverrides"] == {
        "LaunchTemplateSpecification": {
            "LaunchTemplateId": cluster["template_id"],
            "LaunchTemplateName": "nodes",
            "Version": "1",
        },
        "Overrides": {"InstanceType": "c5.large", "SubnetId": zone_b},
    }


def test_prioritized_takes_the_lowest_priority_number(cluster: dict[str, Any], fleet: Any) -> None:
    subnet = cluster["subnet_ids"][0]
    answer = fleet(
        [
            override("c5.large", subnet),
            override("m5.large", subnet, Priority=1.0),
            override("r5.large", subnet, Priority=0.5),
        ],
        OnDemandOptions={"AllocationStrategy": "prioritized"},
    )
    assert picked(answer) == [("r5.large", 1)]


def test_a_mixed_fleet_launches_both_kinds(
    account: Any, cluster: dict[str, Any], fleet: Any
) -> None:
    answer = fleet(
        [override("m5.large", cluster["subnet_ids"][0])],
        TargetCapacitySpecification={
            "TotalTargetCapacity": 5,
            "OnDemandTargetCapacity": 1,
            "SpotTargetCapacity": 2,
            "DefaultTargetCapacityType": "spot",
        },
    )
    assert [(row["Lifecycle"], len(row["InstanceIds"])) for row in answer["Instances"]] == [
        ("on-demand", 1),
        ("spot", 4),
    ]
    found = account.ec2.describe_instances(InstanceIds=ids_of(answer))
    kinds = sorted(
        instance.get("InstanceLifecycle", "")
        for reservation in found["Reservations"]
        for instance in reservation["Instances"]
    )
    assert kinds == ["", "spot", "spot", "spot", "spot"]


def test_a_spot_price_limit_below_the_price_is_refused(cluster: dict[str, Any], fleet: Any) -> None:
    subnet = cluster["subnet_ids"][0]
    answer = fleet(
        [override("m5.large", subnet, MaxPrice="0.0001"), override("r5.large", subnet)],
        kind="spot",
        SpotOptions={"AllocationStrategy": "price-capacity-optimized"},
    )
    assert picked(answer) == [("r5.large", 1)]
    assert refused(answer) == [("m5.large", "SpotMaxPriceTooLow")]

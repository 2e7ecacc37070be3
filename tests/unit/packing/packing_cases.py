"""Small packing problems, last word to the caller."""

from collections.abc import Mapping, Sequence
from typing import Any

from shared.model.ec2.instance_types import CapacityType, Offering
from shared.model.resources import Resources
from shared.packing.checker import check
from shared.packing.packer import pack
from shared.packing.problem import (
    ItemClass,
    NodeType,
    Packing,
    PackingProblem,
    PackingSettings,
)

GIB = 2**30
PLAIN = PackingSettings(
    max_node_vcpus=0,
    diversification_k_on_demand=1,
    diversification_k_spot=1,
    node_fee_micros_per_hour=0,
    leftover_value_percent=0,
    fewer_nodes_permille=0,
)


def amounts(cpu: int = 0, gib: float = 0, pods: int = 0, **more: int) -> Resources:
    named = {name.replace("__", "/").replace("_", "."): amount for name, amount in more.items()}
    return Resources.from_mapping(
        {"cpu": cpu, "memory": int(gib * GIB), "pods": pods, **named},
    )


def pod(cpu: int, gib: float, count: int, **more: int) -> ItemClass:
    return ItemClass(requests=amounts(cpu, gib, 1, **more), count=count)


def shape(
    name: str,
    price: int | Mapping[str, int],
    *,
    cores: int,
    gib: int,
    pods: int = 110,
    provisioner: str = "default",
    zones: Sequence[str] = ("a",),
    **more: int,
) -> NodeType:
    prices = {"on-demand": price} if isinstance(price, int) else dict(price)
    pools = [
        Offering(zone=zone, capacity_type=CapacityType(kind), price_micros_per_hour=value)
        for kind, value in prices.items()
        for zone in zones
    ]
    pools.sort(key=lambda pool: (pool.price_micros_per_hour, pool.zone))
    room = amounts(cores * 1000, gib, pods, **more)
    return NodeType(
        provisioner=provisioner,
        instance_type=name,
        allocatable=room,
        capacity=room,
        offerings=tuple(pools),
        vcpus=cores,
    )


SHAPES = (
    shape("c.small", 40_000, cores=1, gib=2),
    shape("c.large", 80_000, cores=2, gib=4),
    shape("m.large", 96_000, cores=2, gib=8),
    shape("r.large", 126_000, cores=2, gib=16),
    shape("c.4xlarge", 640_000, cores=16, gib=32),
    shape("m.4xlarge", 768_000, cores=16, gib=64),
    shape("r.4xlarge", 1_008_000, cores=16, gib=128),
    shape("c.24xlarge", 3_600_000, cores=96, gib=192, pods=700),
    shape("m.24xlarge", 4_400_000, cores=96, gib=384, pods=700),
)


def problem(
    classes: Sequence[ItemClass],
    shapes: Sequence[NodeType] = SHAPES,
    bins: Sequence[Resources] = (),
    **changes: Any,
) -> PackingProblem:
    everywhere: dict[str, Any] = {
        "compatible": ((1 << len(shapes)) - 1,) * len(classes),
        "compatible_bins": ((1 << len(bins)) - 1,) * len(classes),
        "settings": PLAIN,
    }
    everywhere.update(changes)
    return PackingProblem(
        classes=tuple(classes), node_types=tuple(shapes), bins=tuple(bins), **everywhere
    )


def good(asked: PackingProblem) -> Packing:
    made = pack(asked)
    assert check(asked, made) == ()
    assert made.fallback == ""
    return made


def placed(made: Packing, index: int) -> int:
    everywhere = [*(node.contents for node in made.nodes), *(some for _, some in made.placements)]
    return sum(n for contents in everywhere for k, n in contents if k == index)


def names(asked: PackingProblem, made: Packing) -> list[str]:
    return sorted(asked.node_types[node.node_type].instance_type for node in made.nodes)

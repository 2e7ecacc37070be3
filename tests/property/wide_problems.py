"""Packing problems as wide as clusters of many teams: hundreds of classes, groups and shapes.

Drawn from a seed: Hypothesis draws what is small, and some procedures begin at 80 classes or 300
pods only.
"""

import random
from dataclasses import dataclass
from typing import Any, Final

from shared.model.ec2.instance_types import CapacityType, Offering
from shared.model.resources import Resources
from shared.packing.problem import ItemClass, NodeType, PackingProblem, PackingSettings

_GIB: Final = 2**30
_GPU: Final = "nvidia.com/gpu"
_SETTINGS: Final = {
    "node_fee_micros_per_hour": (0, 500, 50_000),
    "fewer_nodes_permille": (0, 70, 1000),
    "leftover_value_percent": (0, 50, 100),
    "small_batch_pods": (0, 1000),
    "growth_percent": (0, 100),
    "max_node_vcpus": (0, 1, 8),
    "diversification_k_on_demand": (1, 5),
    "diversification_k_spot": (1, 15),
    "option_price_ceiling_percent": (0, 50),
    "max_options": (1, 60),
    "max_launch_groups": (0, 1, 3),
    "fewer_groups_permille": (0, 5, 10_000),
    "improve_iterations": (0, 5),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Width:
    """How much there is of everything, and which rules there are."""

    shapes: int
    classes: int
    pods: int
    groups: int
    provisioners: int
    slots: int
    gpus: bool


def wide_problem(seed: int) -> PackingProblem:
    """Return the problem of a seed."""
    draw = random.Random(seed)
    width = _Width(
        shapes=draw.choice((1, 3, 10, 30, 80, 200)),
        classes=draw.choice((1, 5, 60, 90, 110, 130, 400)),
        pods=draw.choice((5, 299, 301, 500, 1000, 3000)),
        groups=draw.choice((1, 2, 5, 10, 15, 30)),
        provisioners=draw.choice((1, 2, 3)),
        slots=draw.choice((0, 0, 1, 3)),
        gpus=draw.random() < 0.3,
    )
    bins = _bins(draw)
    every = (1 << len(bins)) - 1
    masks = [_mask(draw, width.shapes) for _ in range(width.groups)]
    classes = tuple(_pod_class(draw, width) for _ in range(width.classes))
    return PackingProblem(
        classes=classes,
        node_types=tuple(_shape(draw, width, number) for number in range(width.shapes)),
        bins=bins,
        compatible=tuple(draw.choice(masks) for _ in classes),
        compatible_bins=tuple(draw.choice((every, every, 0, every >> 1)) for _ in classes),
        limits=_limits(draw, width),
        settings=_settings(draw),
        seed=draw.randrange(100),
        running=Resources.of(cpu=10_000, memory=40 * _GIB, pods=20)
        if draw.random() < 0.3
        else Resources(),
    )


def _mask(draw: random.Random, shapes: int) -> int:
    """Return shapes that a group of pods may run on: all, all but one, or any."""
    every = (1 << shapes) - 1
    return draw.choice((every, every & ~(1 << draw.randrange(shapes)), draw.getrandbits(shapes)))


def _rules(
    draw: random.Random, width: _Width, part: float, gpus: tuple[int, ...]
) -> dict[str, int]:
    more = {f"slot/{n}": 1 for n in range(width.slots) if draw.random() < part}
    if width.gpus and draw.random() < part:
        more[_GPU] = draw.choice(gpus)
    return more


def _shape(draw: random.Random, width: _Width, number: int) -> NodeType:
    cores = draw.choice((1, 2, 2, 4, 8, 16, 32, 64, 96, 192))
    memory = cores * draw.choice((1, 2, 4, 8, 16)) * _GIB
    pods = draw.choice((4, 29, 58, 110, 700))
    room = Resources.from_mapping(
        {
            "cpu": cores * 1000,
            "memory": memory,
            "pods": pods,
            **_rules(draw, width, 0.5, (1, 4, 8)),
        }
    )
    price = int(cores * draw.choice((30_000, 40_000, 50_000)) * draw.uniform(0.8, 1.3))
    if draw.random() < 0.05:
        price = draw.choice((1, 10**12))
    pools = [
        Offering(zone=zone, capacity_type=kind, price_micros_per_hour=max(price // parts, 1))
        for kind, parts in ((CapacityType.ON_DEMAND, 1), (CapacityType.SPOT, 3))
        for zone in draw.choice(("a", "abc"))
        if kind is CapacityType.ON_DEMAND or draw.random() < 0.4
    ]
    return NodeType(
        provisioner=f"p{draw.randrange(width.provisioners)}",
        instance_type=f"t{number}",
        allocatable=room,
        capacity=room,
        offerings=tuple(sorted(pools, key=lambda pool: (pool.price_micros_per_hour, pool.zone))),
        vcpus=cores,
    )


def _pod_class(draw: random.Random, width: _Width) -> ItemClass:
    cpu = draw.choice((0, 1, 100, 250, 900, 1900, 4000, 100_000, draw.randrange(3000)))
    gib = draw.choice((0, 0.1, 0.5, 1.9, 7, 60, draw.uniform(0, 8)))
    each = max(1, width.pods // width.classes)
    return ItemClass(
        requests=Resources.from_mapping(
            {
                "cpu": cpu,
                "memory": int(gib * _GIB),
                "pods": 1,
                **_rules(draw, width, 0.25, (1, 1, 2, 8)),
            }
        ),
        count=draw.choice((0, 1, each, each, each, 2 * each)),
    )


def _bins(draw: random.Random) -> tuple[Resources, ...]:
    return tuple(
        Resources.of(
            cpu=draw.randrange(-500, 8000),
            memory=draw.randrange(-_GIB, 30 * _GIB),
            pods=draw.randrange(60),
        )
        for _ in range(draw.choice((0, 0, 1, 5, 20, 200)))
    )


def _limits(draw: random.Random, width: _Width) -> dict[str, Resources]:
    if draw.random() < 0.7:
        return {}
    return {
        f"p{number}": Resources((draw.choice((("cpu", 0), ("cpu", 64_000), ("memory", 2**40))),))
        for number in range(width.provisioners)
    }


def _settings(draw: random.Random) -> PackingSettings:
    changed: dict[str, Any] = {
        name: draw.choice(values) for name, values in _SETTINGS.items() if draw.random() < 0.15
    }
    return PackingSettings(thorough=draw.random() < 0.03, **changed)

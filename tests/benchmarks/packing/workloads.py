"""Seeded synthetic workloads: none is a trace of a real cluster.

Each returns classes of identical pods and, per class, what it selects (an architecture or a GPU).
"""

import math
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

from shared.model.resources import Resources
from shared.model.values import replace
from shared.packing.problem import ItemClass, PackingProblem, PackingSettings
from tests.benchmarks.packing import price_table

MIB = 2**20
Row = tuple[int, int, int, str]  # millicores, MiB, GPUs, what it selects

PLAIN = PackingSettings(
    max_node_vcpus=0,
    diversification_k_on_demand=1,
    diversification_k_spot=1,
    node_fee_micros_per_hour=0,
    fewer_nodes_permille=0,
)


def single(count: int, cpu_millis: int, memory_mib: int) -> list[Row]:
    """Return identical pods."""
    return [(cpu_millis, memory_mib, 0, "")] * count


def kmix(count: int, seed: int = 1) -> list[Row]:
    """Return pods of five cpu and six memory sizes, evenly."""
    rng = random.Random(seed)
    cpus, memories = (100, 250, 500, 1000, 1500), (100, 256, 512, 1024, 2048, 4096)
    return [(rng.choice(cpus), rng.choice(memories), 0, "") for _ in range(count)]


def skew(count: int, seed: int = 1) -> list[Row]:
    """Return pods of many deployments with log-normal requests and uneven replica counts."""
    rng = random.Random(seed)
    kinds = min(max(count // 20, 10), 400)
    sizes = [_log_normal(rng) for _ in range(kinds)]
    weights = [1 / (rank + 1) ** 0.8 for rank in range(kinds)]
    rng.shuffle(weights)
    return [(*sizes[i], 0, "") for i in rng.choices(range(kinds), weights, k=count)]


def vmlike(count: int, seed: int = 1) -> list[Row]:
    """Return pods of twelve power-of-two shapes as virtual machines have them."""
    rng = random.Random(seed)
    shapes = [(c, c * m) for c in (500, 1000, 2000, 4000, 8000, 16000) for m in (2, 4)]
    weights = [6, 6, 8, 8, 8, 8, 5, 5, 3, 3, 1, 1]
    rows = rng.choices(shapes, weights, k=count)
    return [(cpu, cpu_memory * 1024 // 1000, 0, "") for cpu, cpu_memory in rows]


def unique(count: int, seed: int = 1) -> list[Row]:
    """Return pods that each have a size of their own."""
    rng = random.Random(seed)
    return [
        (
            max(20, min(round(rng.lognormvariate(math.log(400), 0.9)), 16000)),
            max(32, min(round(rng.lognormvariate(math.log(900), 0.9)), 65536)),
            0,
            "",
        )
        for _ in range(count)
    ]


def constr(count: int, seed: int = 1) -> list[Row]:
    """Return the skewed pods, 30 % of the deployments for amd64 only and 20 % for arm64 only."""
    rng = random.Random(seed + 100)
    chosen: dict[tuple[int, int], str] = {}
    rows = []
    for cpu, memory, gpus, _ in skew(count, seed):
        where = chosen.get((cpu, memory))
        if where is None:
            where = rng.choices(("amd64", "arm64", ""), (30, 20, 50))[0]
            chosen[cpu, memory] = where
        rows.append((cpu, memory, gpus, where))
    return rows


def gpumix(count: int, seed: int = 1) -> list[Row]:
    """Return 80 % skewed pods and 20 % that want one to eight GPUs of some or any model."""
    rng = random.Random(seed + 200)
    models = ("T4", "A10G", "L4", "A100", "H100", "any")
    rows = skew(count * 4 // 5, seed)
    for _ in range(count - len(rows)):
        model = rng.choices(models, (25, 20, 15, 8, 4, 28))[0]
        gpus = rng.choices((1, 2, 4, 8), (70, 12, 10, 8))[0]
        if model in ("A100", "H100"):
            gpus = rng.choices((1, 2, 4, 8), (30, 20, 20, 30))[0]
        cpu = rng.choice((1000, 2000, 3000)) * gpus
        rows.append((cpu, cpu * rng.choice((2, 4)) * 1024 // 1000, gpus, model))
    return rows


def classes_of(rows: list[Row]) -> list[tuple[Row, int]]:
    """Return the distinct rows with their counts, in order of first appearance."""
    return list(Counter(rows).items())


def large(count: int, seed: int = 1) -> list[Row]:
    """Return pods of twelve large sizes, of which few fit on a node: 24 to 96 cores."""
    rng = random.Random(seed + 300)
    sizes = [(64, 320), (96, 480), (48, 240), (48, 200), (48, 300), (64, 400),
             (64, 480), (96, 640), (64, 256), (48, 400), (96, 800), (24, 120)]  # fmt: skip
    weights = [140, 115, 82, 59, 15, 9, 7, 6, 4, 3, 2, 1]
    rows = rng.choices(sizes, weights, k=count)
    return [(cores * 1000, gib * 1024, 0, "") for cores, gib in rows]


def problem(
    rows: list[Row],
    wanted: Callable[[dict[str, Any]], bool] = price_table.general,
    settings: PackingSettings = PLAIN,
    capacity_type: str = "on-demand",
    **changes: Any,
) -> PackingProblem:
    """Return the packing problem of a workload on a part of the price table."""
    table = price_table.listed(wanted, capacity_type)
    masks: dict[str, int] = {}
    classes, compatible = [], []
    for (cpu, memory, gpus, where), count in classes_of(rows):
        if where not in masks:
            masks[where] = _mask(table, where)
        amounts = {"cpu": cpu, "memory": memory * MIB, "pods": 1, "nvidia.com/gpu": gpus}
        classes.append(ItemClass(requests=Resources.from_mapping(amounts), count=count))
        compatible.append(masks[where])
    made = PackingProblem(
        classes=tuple(classes),
        node_types=tuple(listed.shape for listed in table),
        compatible=tuple(compatible),
        compatible_bins=(0,) * len(classes),
        settings=settings,
    )
    return replace(made, **changes)


def with_bins(asked: PackingProblem, mask: int) -> PackingProblem:
    """Return the problem with every class allowed on the bins of a mask."""
    return replace(asked, compatible_bins=(mask,) * len(asked.classes))


def _mask(table: tuple[price_table.Listed, ...], where: str) -> int:
    mask = 0
    for index, listed in enumerate(table):
        if where in ("", "any") or where in (listed.arch, listed.gpu):
            mask |= 1 << index
    return mask


def _log_normal(rng: random.Random) -> tuple[int, int]:
    cpu = min(rng.lognormvariate(math.log(350), 1.0), 16000)
    memory = min(rng.lognormvariate(math.log(900), 1.0), 65536)
    return max(round(cpu / 10) * 10, 20), max(round(memory / 16) * 16, 32)


WORKLOADS = {
    "kmix": kmix,
    "skew": skew,
    "vmlike": vmlike,
    "unique": unique,
    "constr": constr,
    "gpumix": gpumix,
}

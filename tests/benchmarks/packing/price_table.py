"""Shapes of the benchmarks, read from the embedded catalogue as a plain JSON document."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from shared.model.ec2.instance_types import CapacityType, Offering
from shared.model.resources import Resources
from shared.packing.problem import NodeType

TABLE = Path(__file__).parents[3] / "shared" / "instance_types" / "embedded" / "us-east-1.json"
DAEMONS = Resources.of(cpu=280, memory=320 * 2**20, pods=4)

_CATEGORY = "karpenter.k8s.aws/instance-category"
_GENERATION = "karpenter.k8s.aws/instance-generation"
_SIZE = "karpenter.k8s.aws/instance-size"


@dataclass(frozen=True, slots=True)
class Listed:
    """One instance type of the table with what workloads select by."""

    shape: NodeType
    arch: str
    gpu: str


def general(row: dict[str, Any]) -> bool:
    """Return whether a type is in the getting-started pool: amd64, c, m or r, newer than 2."""
    return row["arch"] == "amd64" and any_arch(row)


def any_arch(row: dict[str, Any]) -> bool:
    """Return whether a type is in the same pool but for its architecture."""
    labels = row["labels"]
    return (
        labels.get(_CATEGORY) in ("c", "m", "r")
        and int(labels.get(_GENERATION, "0")) > 2
        and not labels.get(_SIZE, "").startswith("metal")
    )


def with_gpus(row: dict[str, Any]) -> bool:
    """Return whether a type is in the general pool or has Nvidia GPUs."""
    gpus = any(gpu["resource"] == "nvidia.com/gpu" for gpu in row["gpus"])
    metal = row["labels"].get(_SIZE, "").startswith("metal")
    return general(row) or (gpus and row["arch"] == "amd64" and not metal)


@lru_cache(maxsize=1)
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(TABLE.read_text())
    return table


@lru_cache(maxsize=8)
def listed(
    wanted: Callable[[dict[str, Any]], bool] = general,
    capacity_type: str = "on-demand",
) -> tuple[Listed, ...]:
    """Return the types that are wanted, by name, with pools of one capacity type."""
    found = []
    for row in sorted(_table()["types"], key=lambda row: str(row["name"])):
        pools = [
            Offering(
                zone=offering["zone"],
                capacity_type=CapacityType(offering["capacity_type"]),
                price_micros_per_hour=offering["price_micros_per_hour"],
            )
            for offering in row["offerings"]
            if offering["capacity_type"] == capacity_type
        ]
        if pools and wanted(row):
            found.append(_listed(row, pools))
    return tuple(found)


def shapes(
    wanted: Callable[[dict[str, Any]], bool] = general, capacity_type: str = "on-demand"
) -> tuple[NodeType, ...]:
    """Return the shapes alone."""
    return tuple(other_listed.shape for other_listed in listed(wanted, capacity_type))


def _listed(row: dict[str, Any], pools: list[Offering]) -> Listed:
    amounts = {
        "cpu": row["vcpus"] * 1000,
        "memory": row["memory_mib"] * 2**20,
        "pods": row["max_pods"],
    }
    for gpu in row["gpus"]:
        amounts[gpu["resource"]] = amounts.get(gpu["resource"], 0) + gpu["count"]
    capacity = Resources.from_mapping(amounts)
    overhead = {k: v for k, v in row["overhead"].items() if k in ("cpu", "memory")}
    pools.sort(key=lambda pool: (pool.price_micros_per_hour, pool.zone))
    shape = NodeType(
        provisioner="default",
        instance_type=row["name"],
        allocatable=capacity - Resources.parse(overhead) - DAEMONS,
        capacity=capacity,
        offerings=tuple(pools),
        vcpus=row["vcpus"],
    )
    gpu_name = row["gpus"][0]["name"] if row["gpus"] else ""
    return Listed(shape=shape, arch=row["arch"], gpu=gpu_name)

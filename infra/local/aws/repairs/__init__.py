"""Repairs of moto: what it lacks or gets wrong in places this product depends on.

Each repair replaces private names of one exactly pinned moto version; the server refuses any
other version, and tests/local/aws has a self-test for each repair.
"""

from infra.local.aws.repairs import (
    buckets,
    events,
    machines,
    permissions,
    queues,
    speed,
    templates,
)
from infra.local.aws.repairs.registry import MOTO_VERSION, REPAIRS, apply_repairs, repair

__all__ = [
    "MOTO_VERSION",
    "REPAIRS",
    "apply_repairs",
    "buckets",
    "events",
    "machines",
    "permissions",
    "queues",
    "repair",
    "speed",
    "templates",
]

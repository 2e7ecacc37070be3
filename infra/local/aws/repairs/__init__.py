"""Repairs of moto: what it lacks or gets wrong in places this product depends on.

Each repair replaces private names of one exactly pinned moto version; the server refuses any
other version, and tests/local/aws has a self-test for each repair.
"""

from importlib import import_module

from infra.local.aws.moto_patches import REPAIRS as REPAIRS
from infra.local.aws.moto_patches import apply_repairs as apply_repairs

for _name in (
    *("events", "permissions", "queues", "speed", "state_machines", "tables"),
    "templates",
):
    import_module(f"{__name__}.{_name}")

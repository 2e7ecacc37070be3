"""What `dovetail plan` reports."""

from dataclasses import dataclass

from shared.instance_types.catalog import Catalog
from shared.model.plan import Plan
from shared.model.snapshot import ClusterSnapshot
from shared.packing.problem import PackingSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRun:
    """A plan and what it was made of.

    Attributes:
        without_each_setting: For each setting that is not the default, the plan with this one at
            its default and the others as they are.
        by_default: The plan with all settings at their defaults; None unless several were set.
        without_headroom: The plan without headroom for later pods; None if it has none anyway.
    """

    snapshot: ClusterSnapshot
    catalog: Catalog
    settings: PackingSettings
    plan: Plan
    elapsed_ms: float
    without_each_setting: tuple[tuple[str, Plan], ...]
    by_default: Plan | None
    without_headroom: Plan | None

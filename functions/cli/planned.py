"""What `dovetail plan` has to tell of."""

from dataclasses import dataclass

from shared.catalog.reading import Catalog
from shared.model.plan import Plan
from shared.model.snapshot import ClusterSnapshot
from shared.packing.problem import PackingSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A plan and what it was made of.

    Attributes:
        without: For each setting that is not the default, the plan with this one at its default
            and the others as they are.
        by_default: The plan with all settings at their defaults, None when not
            more than one was set.
        tight: The plan without room for pods to come, None where no such room is valued.
    """

    snapshot: ClusterSnapshot
    catalog: Catalog
    settings: PackingSettings
    plan: Plan
    elapsed_ms: float
    without: tuple[tuple[str, Plan], ...]
    by_default: Plan | None
    tight: Plan | None

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
        by_default: The plan under default settings, None when nothing was set.
    """

    snapshot: ClusterSnapshot
    catalog: Catalog
    settings: PackingSettings
    plan: Plan
    elapsed_ms: float
    by_default: Plan | None

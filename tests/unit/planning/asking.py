"""What tests of decisions ask of a plan."""

from typing import Any

from shared.model import labels as keys
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.plan import Plan
from shared.packing.problem import PackingSettings
from tests import builders as make
from tests.builders import ZONES

QUICK = PackingSettings(improve_iterations=2)
A, B, C = ZONES
DB = make.selector(app="db")
SOFT = Taint(key="soft", effect=Effect.PREFER_NO_SCHEDULE)


def zones_of(plan: Plan) -> dict[str, str]:
    """Return the zone of each pod on a new node."""
    return {ref.name: one.options[0].offering.zone for one in plan.nodes for ref in one.pods}


def together(plan: Plan) -> list[list[str]]:
    return sorted([ref.name for ref in one.pods] for one in plan.nodes)


def there(plan: Plan) -> dict[str, str]:
    return {ref.name: one.node for one in plan.placements for ref in one.pods}


def why(plan: Plan) -> dict[str, str]:
    return {one.pod.name: "; ".join(one.reasons) for one in plan.unschedulable}


def in_zone(zone: str, name: str, **more: Any) -> Any:
    labels = {**make.node().labels, keys.ZONE: zone, keys.HOSTNAME: name}
    return make.node(name, labels=labels, provider_id=f"aws:///{zone}/i-{name}", **more)

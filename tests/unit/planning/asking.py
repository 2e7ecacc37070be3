"""What tests of decisions ask of a plan."""

from typing import Any

from shared.model import labels as keys
from shared.model.kubernetes.daemon_sets import DaemonSet
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.plan import Plan
from shared.model.values import replace
from shared.packing.problem import PackingSettings
from tests import builders as make
from tests.builders import ZONES

QUICK = PackingSettings(improve_iterations=2)
A, B, C = ZONES
DB = make.selector(app="db")
SOFT = Taint(key="soft", effect=Effect.PREFER_NO_SCHEDULE)


def zones_of(plan: Plan) -> dict[str, str]:
    """Return the zone of each pod on a new node."""
    return {ref.name: node.options[0].offering.zone for node in plan.nodes for ref in node.pods}


def together(plan: Plan) -> list[list[str]]:
    return sorted([ref.name for ref in node.pods] for node in plan.nodes)


def there(plan: Plan) -> dict[str, str]:
    return {ref.name: placement.node for placement in plan.placements for ref in placement.pods}


def why(plan: Plan) -> dict[str, str]:
    return {pod_left.pod.name: "; ".join(pod_left.reasons) for pod_left in plan.unschedulable}


def in_zone(zone: str, name: str, **more: Any) -> Any:
    labels = {**make.node().labels, keys.ZONE: zone, keys.HOSTNAME: name}
    return make.node(name, labels=labels, provider_id=f"aws:///{zone}/i-{name}", **more)


def agent(**more: Any) -> DaemonSet:
    """Return a DaemonSet of the namespace of pods, with labels that their rules can name."""
    made = make.daemonset("agent", **{"tolerations": make.DEFAULT_TOLERATIONS, **more})
    return replace(made, namespace="default", labels={"app": "agent"})

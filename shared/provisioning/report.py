"""What one provisioning invocation did."""

import dataclasses
from dataclasses import dataclass

from shared.events.plan_events import WIDER
from shared.model.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisionReport:
    """What one invocation did, for logs and metrics.

    Attributes:
        leading: False if another invocation holds the lease; it was marked to plan once more.
        held_back: Why nothing was launched on principle, empty when nothing held us back.
        nodes_over_ceiling: Planned and not launched, for a ceiling on nodes or dollars an hour.
        ceiling_percent: How much of the fullest ceiling is in use; None without any, or if no pod
            waits and the nodes were not looked over.
        pods_set_aside: By the last plan, for a later one, as they take too much work to plan for.
        pods_runaway: For which nothing is bought, since what was bought was never usable.
        pods_rejected: For which what was bought is seen, for the first time, to be of no use: a
            kubelet rejected them, or a taint was added to the node.
        preferences_stated: Preferences of the pods planned for, each once for each pod.
        preferences_kept: Those that the plans keep.
        throttled: Launches that wait, because EC2 or the token bucket asked for it.
        failed_attempts: CreateFleet calls that launched nothing.
        nodes_disrupted: Nodes that are removed voluntarily.
        notes: What was left out of what the cluster said, one line each.
        offerings_refused: EC2 had none of so many offerings.
        refusals: What EC2 refused for other reasons: Provisioner, code, text and remedy.
        shadow_purchases: In shadow mode, what Karpenter bought beside what Dovetail would have
            bought, one line for each purchase.
        unknown_codes: How many of these have a code that Dovetail does not know.
    """

    leading: bool = True
    held_back: str = ""
    rounds: int = 0
    plans: tuple[str, ...] = ()
    pods_planned: int = 0
    pods_placed: int = 0
    pods_unschedulable: int = 0
    pods_set_aside: int = 0
    pods_runaway: int = 0
    pods_rejected: int = 0
    preferences_stated: int = 0
    preferences_kept: int = 0
    nodes_launched: int = 0
    nodes_over_ceiling: int = 0
    ceiling_percent: int | None = None
    launches: int = 0
    throttled: int = 0
    failed_attempts: int = 0
    nodes_disrupted: int = 0
    offerings_refused: int = 0
    refusals: tuple[str, ...] = ()
    unknown_codes: int = 0
    cost_micros_per_hour: int = 0
    lower_bound_micros_per_hour: int = 0
    notes: tuple[str, ...] = ()
    shadow_purchases: tuple[str, ...] = ()

    def plus(self, plan: Plan, plan_id: str) -> "ProvisionReport":
        """Return the report with one more plan counted."""
        return dataclasses.replace(
            self,
            plans=(*self.plans, plan_id),
            pods_planned=self.pods_planned + sum(len(node.pods) for node in plan.nodes),
            pods_placed=self.pods_placed
            + sum(len(placement.pods) for placement in plan.placements),
            pods_unschedulable=sum(not pod_left.later for pod_left in plan.unschedulable),
            pods_set_aside=sum(pod_left.later for pod_left in plan.unschedulable),
            preferences_stated=self.preferences_stated + plan.preferences.stated,
            preferences_kept=self.preferences_kept + plan.preferences.kept,
            cost_micros_per_hour=self.cost_micros_per_hour + plan.cost_micros_per_hour,
            lower_bound_micros_per_hour=self.lower_bound_micros_per_hour
            + plan.lower_bound_micros_per_hour,
            notes=(*self.notes, *(f"namespace {name}: {WIDER}" for name in plan.wider)),
        )

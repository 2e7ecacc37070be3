"""The report of one provisioning invocation."""

from msgspec import Struct

from shared.model.plan import Plan
from shared.nodes.events.plan_events import WIDER


class ProvisionReport(Struct, kw_only=True):
    """The results of one invocation, for logs and metrics; filled while it runs.

    Attributes:
        leading: False if another invocation holds the lease; the lease was marked for another plan.
        held_back: Why launches were forbidden, empty if they were not.
        nodes_over_ceiling: Nodes planned and not launched because of a ceiling on nodes or dollars
            an hour.
        ceiling_percent: How much of the fullest ceiling is in use; None if there is none, or if no
            pod is pending and the nodes were not evaluated.
        pods_set_aside: Pods that the last plan left to a later one because planning for them takes
            too much work.
        pods_runaway: Pods for which nothing is launched, because earlier nodes were never usable.
        pods_rejected: Pods for which a launched node is found unusable for the first time: a
            kubelet rejected them, or a taint was added to the node.
        preferences_stated: Preferences of the planned pods, counted once for each pod.
        preferences_kept: The ones among these that the plans satisfy.
        throttled: Launches that wait because EC2 throttles or no request token was left.
        failed_attempts: CreateFleet calls that launched nothing.
        nodes_disrupted: Nodes whose voluntary removal was started.
        notes: What was left out of the gathered objects, one line each.
        offerings_refused: The number of offerings that EC2 had no capacity for.
        refusals: What EC2 refused for other reasons: Provisioner, code, text and remedy.
        shadow_purchases: In shadow mode, what Karpenter launched beside what Dovetail would have
            launched, one line for each purchase.
        unknown_codes: How many of the refusals have a code that Dovetail does not know.
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

    def add(self, plan: Plan, plan_id: str) -> None:
        """Count one more plan."""
        self.plans += (plan_id,)
        self.pods_planned += sum(len(node.pods) for node in plan.nodes)
        self.pods_placed += sum(len(placement.pods) for placement in plan.placements)
        self.pods_unschedulable = sum(not pod_left.later for pod_left in plan.unschedulable)
        self.pods_set_aside = sum(pod_left.later for pod_left in plan.unschedulable)
        self.preferences_stated += plan.preferences.stated
        self.preferences_kept += plan.preferences.kept
        self.cost_micros_per_hour += plan.cost_micros_per_hour
        self.lower_bound_micros_per_hour += plan.lower_bound_micros_per_hour
        self.notes += tuple(f"namespace {name}: {WIDER}" for name in plan.wider)

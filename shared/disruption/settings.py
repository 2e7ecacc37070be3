"""What a disruption must save, and how many nodes may be disrupted."""

from datetime import timedelta
from typing import Final

from msgspec import Struct

from shared.model.values import replace

# Simulations times pods: a few seconds of one processor.
_PODS_TRIED: Final = 200_000
_FEWEST_TRIES: Final = 8


class DisruptionSettings(Struct, frozen=True, kw_only=True):
    """When voluntary disruption pays, and its limits.

    Attributes:
        minimum_saving_percent: A change of nodes must save this much of what they cost, in
            percent. Default 5: moving pods is never free.
        minimum_saving_micros_per_hour: ... and at least this much, in micro-dollars per hour.
            Default 10,000 ($0.01).
        minimum_pod_age: A node with a younger pod is left alone: it may have just moved there.
            Default 10 minutes.
        eviction_cost_micros: What moving a plain pod costs, in micro-dollars. Default 8,000
            ($0.008); 0 to count nothing but what is saved, not even what is
            launched for pods that kube-scheduler places otherwise than planned.
        spot_types: A spot node is replaced by a spot node only when at least this many cheaper
            instance types could serve: else the next interruption would undo it. Default 15, as
            in Karpenter.
            Source: https://karpenter.sh/docs/concepts/disruption/#spot-consolidation (2026-11).
        max_simulations: Plans tried in one evaluation. Default 80; a number of plans instead of a
            time keeps decisions reproducible.
        budget_percent: Consolidation may remove this percentage of a cluster's nodes, but at least
            one, within `window`. Default 10: workloads recover faster than that.
        most_at_once: Nodes of one change. Default 50: its timer checks each of them in each step,
            and a step has a minute.
        at_a_time: Nodes with pods on them that expiration, drift or rebalance replaces at a time.
            Default 1: a node that waits longer loses nothing.
        window: Default 10 minutes: pods that moved are running again, budgets are counted anew.
        drift: Whether nodes that differ from what their Provisioner asks for are replaced where it
            does not say. Default no: a change of a Provisioner then applies to new nodes only.
        rebalance_micros_per_hour: How much more replacing a spot instance that EC2 expects to
            interrupt may cost than keeping it. Default 0: the interruption may never come.
    """

    minimum_saving_percent: int = 5
    minimum_saving_micros_per_hour: int = 10_000
    minimum_pod_age: timedelta = timedelta(minutes=10)
    eviction_cost_micros: int = 8_000
    spot_types: int = 15
    max_simulations: int = 80
    budget_percent: int = 10
    most_at_once: int = 50
    at_a_time: int = 1
    window: timedelta = timedelta(minutes=10)
    drift: bool = False
    rebalance_micros_per_hour: int = 0

    def required_saving(self, price_micros_per_hour: int) -> int:
        """Return what replacing nodes of this price must save, in micro-dollars per hour."""
        share = -(-price_micros_per_hour * self.minimum_saving_percent // 100)
        return max(share, self.minimum_saving_micros_per_hour)

    def within_reason(self, pods: int) -> "DisruptionSettings":
        """Return the settings with which an evaluation of so many pods takes seconds, not minutes.

        During an evaluation, no other plan for the cluster may start.
        """
        tries = max(_FEWEST_TRIES, _PODS_TRIED // max(pods, 1))
        return replace(self, max_simulations=min(tries, self.max_simulations))

    def most_nodes(self, of: int) -> int:
        """Return how many of so many nodes consolidation may remove within the window."""
        return max(1, of * self.budget_percent // 100)


# Counts nothing but what is saved.
SAVING_ALONE: Final = DisruptionSettings(minimum_pod_age=timedelta(0), eviction_cost_micros=0)

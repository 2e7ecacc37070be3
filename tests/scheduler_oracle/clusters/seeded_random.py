"""Random choices of one cluster, and which features it may have."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

Json = dict[str, Any]
Thing = TypeVar("Thing")

FEATURES: Final = (
    "affinity_custom",
    "affinity_hostname",
    "affinity_zone",
    "aliases",
    "anti_custom",
    "anti_hostname",
    "anti_zone",
    "attach_limits",
    "capacity_type",
    "claims",
    "custom_keys",
    "daemonsets",
    "extended",
    "foreign_nodes",
    "host_ports",
    "in_flight",
    "kubelet",
    "limits",
    "match_label_keys",
    "min_domains",
    "namespaces",
    "node_affinity",
    "node_selector",
    "nodes",
    "nominated",
    "odd_pods",
    "odd_requests",
    "odd_selectors",
    "preferred",
    "priorities",
    "promises",
    "several_provisioners",
    "several_rules",
    "soft_taints",
    "shared_claims",
    "single_pod_claims",
    "spread_arch",
    "spread_capacity",
    "spread_custom",
    "spread_hostname",
    "spread_policies",
    "spread_soft",
    "spread_zone",
    "standing",
    "startup_taints",
    "taints",
    "unavailable",
    "unfit_nodes",
)


@dataclass(frozen=True, slots=True)
class Dice:
    """A source of choices; `on` are the features of this cluster."""

    rng: random.Random
    on: frozenset[str]

    def has(self, feature: str, chance: float = 1.0) -> bool:
        """Return whether the cluster has the feature, and it comes up now."""
        return feature in self.on and self.rng.random() < chance

    def luck(self, chance: float) -> bool:
        return self.rng.random() < chance

    def one(self, things: Sequence[Thing]) -> Thing:
        return self.rng.choice(things)

    def some(self, things: Sequence[Thing], most: int) -> list[Thing]:
        """Return at least one thing, at most so many, in their order."""
        count = self.rng.randint(1, min(most, len(things)))
        chosen = set(self.rng.sample(range(len(things)), count))
        return [thing for number, thing in enumerate(things) if number in chosen]

    def upto(self, least: int, most: int) -> int:
        return self.rng.randint(least, most)

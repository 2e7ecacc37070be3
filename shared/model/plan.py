"""What one provisioning decision says: nodes to buy, places found, pods that fit nothing."""

from dataclasses import dataclass, field
from typing import Final

from shared.model.ec2.launches import PlannedNode, PodRef

# Of a field that records of decisions leave out: it is proved from what they hold.
UNRECORDED: Final = {"recorded": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Pods for which room was found on a node that exists or is in flight.

    Attributes:
        node: Name of the Node, or of the slot when it has no Node object yet.
        slot: Name of the slot when the node is in flight, else empty.
    """

    node: str
    slot: str
    pods: tuple[PodRef, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unschedulable:
    """A pod that fits nothing, with a reason per provisioner.

    Attributes:
        limited: Provisioners that would have held it but for their limits.
        later: Whether it was set aside and may fit: a later plan takes it up.
    """

    pod: PodRef
    reasons: tuple[str, ...]
    limited: frozenset[str] = frozenset()
    later: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptPreferences:
    """How far a plan keeps what the pods that it places prefer.

    Attributes:
        stated: Preferences of these pods, each once for each pod; those of pods whose policy is to
            ignore them are left out.
        kept: Those of them that the plan keeps.
        rest_micros_per_hour: What keeping as many as possible would cost more, in micro-dollars an
            hour; 0 if the plan does.
    """

    stated: int = 0
    kept: int = 0
    rest_micros_per_hour: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One provisioning decision.

    Attributes:
        nodes: To be launched, sorted by provisioner, then price, then pods.
        placements: Sorted by node.
        unschedulable: Sorted by pod.
        order: Every pod of `nodes` and `placements` in an order of binding in which each is
            acceptable to kube-scheduler at its moment, all nodes being there from the start.
        cost_micros_per_hour: Price of `nodes` at their cheapest options.
        lower_bound_micros_per_hour: No plan for the same pods can cost less; 0 until it is proved.
        bound_is_close: Whether that is known to be within 1 % of what pods cost at least on whole
            machines. Where the proof was stopped, free room takes part, or pods have rules that the
            proof leaves out, only if it is within 1 % of `cost_micros_per_hour`.
        remark: Why a simpler plan than the best was taken, or nodes above the cap; empty usually.
        preferences: How far it keeps what pods prefer.
        wider: Namespaces whose pods on nodes have more rules than a plan weighs one by one: each
            keeps all pods away that any of them names.
    """

    nodes: tuple[PlannedNode, ...] = ()
    placements: tuple[Placement, ...] = ()
    unschedulable: tuple[Unschedulable, ...] = ()
    order: tuple[PodRef, ...] = ()
    cost_micros_per_hour: int = 0
    lower_bound_micros_per_hour: int = 0
    bound_is_close: bool = field(default=False, metadata=UNRECORDED)
    remark: str = ""
    preferences: KeptPreferences = KeptPreferences()
    wider: tuple[str, ...] = ()

    @property
    def gap_percent(self) -> float:
        """How far the cost may be above the cheapest possible, in percent of the bound."""
        if not self.lower_bound_micros_per_hour:
            return 0.0
        excess = self.cost_micros_per_hour - self.lower_bound_micros_per_hour
        return 100 * excess / self.lower_bound_micros_per_hour

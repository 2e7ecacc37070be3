"""A plan: nodes to launch, placements on nodes, and unschedulable pods."""

from msgspec import Struct

from shared.model.ec2.launches import PlannedNode, PodRef


class Placement(Struct, frozen=True, kw_only=True):
    """Pods placed on a node that exists or is in flight.

    Attributes:
        node: Name of the Node, or of the slot when it has no Node object yet.
        slot: Name of the slot when the node is in flight, else empty.
    """

    node: str
    slot: str
    pods: tuple[PodRef, ...]


class Unschedulable(Struct, frozen=True, kw_only=True):
    """A pod that fits no node, with a reason per provisioner.

    Attributes:
        limited: Provisioners that could have held it but for their limits.
        later: Whether it was deferred and may fit: a later plan takes it up.
    """

    pod: PodRef
    reasons: tuple[str, ...]
    limited: frozenset[str] = frozenset()
    later: bool = False


class KeptPreferences(Struct, frozen=True, kw_only=True):
    """How many preferences of the pods that it places a plan keeps.

    Attributes:
        stated: Number of preferences of these pods, counted for each pod; without those of pods
            whose policy is to ignore them.
        kept: Number of these that the plan keeps.
        rest_micros_per_hour: The additional cost of keeping as many as possible, in micro-dollars
            an hour; 0 if the plan does.
    """

    stated: int = 0
    kept: int = 0
    rest_micros_per_hour: int = 0


class Plan(Struct, frozen=True, kw_only=True):
    """One provisioning decision.

    Attributes:
        nodes: To be launched, sorted by provisioner, then price, then pods.
        placements: Sorted by node.
        unschedulable: Sorted by pod.
        order: Every pod of `nodes` and `placements` in a binding order in which kube-scheduler
            accepts each in its turn, if all nodes exist from the start.
        cost_micros_per_hour: Price of `nodes` at their cheapest options.
        lower_bound_micros_per_hour: No plan for the same pods can cost less; 0 until it is proved.
        bound_is_close: Whether the bound is known to be within 1 % of the lowest cost of the pods
            on whole instances. Where the proof was stopped, free capacity takes part, or pods have
            rules that the proof leaves out, only if it is within 1 % of `cost_micros_per_hour`.
        remark: Why a simpler plan than the best was taken, or nodes above the cap; usually empty.
        preferences: How many preferences of pods it keeps.
        wider: Namespaces with more anti-affinity rules than a plan checks one by one. Each of these
            namespaces keeps all pods away that any of its rules names.
    """

    nodes: tuple[PlannedNode, ...] = ()
    placements: tuple[Placement, ...] = ()
    unschedulable: tuple[Unschedulable, ...] = ()
    order: tuple[PodRef, ...] = ()
    cost_micros_per_hour: int = 0
    lower_bound_micros_per_hour: int = 0
    bound_is_close: bool = False
    remark: str = ""
    preferences: KeptPreferences = KeptPreferences()
    wider: tuple[str, ...] = ()

    @property
    def gap_percent(self) -> float:
        """How far the cost may be above the lowest possible cost, in percent of the bound."""
        if not self.lower_bound_micros_per_hour:
            return 0.0
        excess = self.cost_micros_per_hour - self.lower_bound_micros_per_hour
        return 100 * excess / self.lower_bound_micros_per_hour

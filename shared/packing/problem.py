"""The input and output of the packer.

Classes of identical pods, node types that can be bought and existing bins are plain numbers; which
class may run where is given as bit masks. Nothing here knows labels or zones.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from shared.model.ec2.instance_types import Offering
from shared.model.policy import PreferencePolicy
from shared.model.resources import Resources

NO_NODE_TYPE = "no shape"
LIMIT = "limit"


class ItemClass(Struct, frozen=True, kw_only=True):
    """Identical pods.

    Attributes:
        requests: What one pod requests, `pods=1` included. Besides real resources it may hold
            pseudo resources named `slot/<id>` (hostname spread, anti-affinity, host ports): the pod
            requests 1, and a node has as many as the number of such pods that it may hold.
        count: Number of pods, at least 0.
    """

    requests: Resources
    count: int


class NodeType(Struct, frozen=True, kw_only=True):
    """A node that can be bought: one provisioner and instance type (and zone where it matters).

    Attributes:
        allocatable: What pods can request: after daemon requests, pseudo resources included.
        capacity: Capacity of the instance and whatever else counts against limits.
        offerings: Its offerings, cheapest first, not empty. Each is allowed for every class
            compatible with the node type.
    """

    provisioner: str
    instance_type: str
    allocatable: Resources
    capacity: Resources
    offerings: tuple[Offering, ...]
    vcpus: int


_CAP_PERCENT: Final = 2

# Minimum and maximum of each numeric setting; None for no maximum.
BOUNDS: Final[Mapping[str, tuple[int, int | None]]] = {
    "node_fee_micros_per_hour": (0, None),
    "fewer_nodes_permille": (0, 1000),
    "leftover_value_percent": (0, 100),
    "small_batch_pods": (0, None),
    "growth_percent": (0, 100),
    "max_node_vcpus": (0, None),
    "diversification_k_on_demand": (1, None),
    "diversification_k_spot": (1, None),
    "option_price_ceiling_percent": (0, None),
    "max_options": (1, 60),
    "max_launch_groups": (0, None),
    "fewer_groups_permille": (0, None),
    "improve_iterations": (0, None),
    "preference_price_percent": (0, None),
}


def within_bounds(setting: str, number: int) -> bool:
    """Return whether a setting may have this value."""
    least, most = BOUNDS[setting]
    return least <= number and (most is None or number <= most)


def bounds_text(setting: str) -> str:
    """Return the bounds of a setting in words, such as `from 1 to 60`."""
    least, most = BOUNDS[setting]
    return f"of at least {least}" if most is None else f"from {least} to {most}"


class PackingSettings(Struct, frozen=True, kw_only=True):
    """What makes a good plan, beyond its price.

    Attributes:
        node_fee_micros_per_hour: Added to each node's price when plans are compared, in
            micro-dollars per hour. Default 2,000 ($0.002): near-equal prices then go to fewer
            nodes, at no visible cost. More means fewer and larger nodes.
        fewer_nodes_permille: Of plans whose prices differ by at most this many thousandths, the one
            with fewer nodes is taken, up to `max_node_vcpus`. Default 5: fewer daemons, addresses
            and boots at about the same price; 70 pays up to 7 % for them, 0 nothing.
        leftover_value_percent: Value of what is left available on new nodes in a small batch, in
            percent of its resource price, when there are ten bins or more; proportionally less when
            there are fewer, so that a first node is never too large. Default 90: in a stream of
            small batches the next pods use nearly all of it, so nodes with headroom are cheapest.
        small_batch_pods: Batches of at most this many pods count as small. Default 100; 0 for none.
        growth_percent: Where pods already run, the node for a small batch may be larger than needed
            if what is left available suits the mix of running pods: its price may be higher by this
            percentage of the price of what these request. Default 1; 0 for no headroom.
        max_node_vcpus: No node above this many vCPUs, unless a pod needs one. Default 96: it limits
            what one failure affects, and is lifted where it makes a plan more than 2 % more
            expensive; any other number holds at any price. 0 for no cap.
        diversification_k_on_demand: Nodes are compared by the mean price of this many of the
            cheapest offerings that could replace them. Default 1, the cheapest offering alone:
            on-demand capacity is seldom short, and 5 cost up to 15 % more where each size has few
            offerings.
        diversification_k_spot: The same for spot, where capacity often runs out. Default 15.
        option_price_ceiling_percent: Options cost at most this much more than the cheapest one,
            in percent. Default 50: beyond that waiting for capacity is better.
        max_options: Options per node. Default 60, the most that one CreateFleet request accepts.
        max_launch_groups: Distinct option lists in a plan, each one CreateFleet call. Default 40,
            since EC2 throttles calls: at two a second, all are made within 20 s; 0 for no limit.
            Pods restricted to instance types and zones of their own may need more, whatever the
            price.
        fewer_groups_permille: How much more a plan may cost for having at most `max_launch_groups`,
            in thousandths of its price. Default 5. Each further call takes half a second; 20 fewer
            calls raised the price by 36 % where 250 workloads choose zones and types.
        improve_iterations: Tries of the improvement phase, which never raises the price of a plan.
            Default 60; a number of tries instead of a time keeps plans reproducible. Large
            batches get fewer, since each try costs more.
        thorough: Also run the procedures that take long on large batches, and ten times as many
            tries of the improvement phase. Default off.
        preference_policy: How preferences of pods count, unless the Provisioner of a node says
            otherwise. Default Weigh: kept where that costs little more. Respect: treated as
            requirements, dropped one by one when the pod cannot be placed otherwise. Ignore: not
            considered.
        preference_price_percent: A weighed preference is kept if that costs at most this much more,
            in percent of the price of the pods that state it. Default 10; 0 keeps what costs
            nothing.
        type_weights: Percent by which an instance type's price is multiplied when plans are
            compared, by name; absent means 100. 80 means that its cores are worth 25 % more.

    Raises:
        ValueError: A setting is out of bounds.
    """

    node_fee_micros_per_hour: int = 2_000
    fewer_nodes_permille: int = 5
    leftover_value_percent: int = 90
    small_batch_pods: int = 100
    growth_percent: int = 1
    max_node_vcpus: int = 96
    diversification_k_on_demand: int = 1
    diversification_k_spot: int = 15
    option_price_ceiling_percent: int = 50
    max_options: int = 60
    max_launch_groups: int = 40
    fewer_groups_permille: int = 5
    improve_iterations: int = 60
    thorough: bool = False
    preference_policy: PreferencePolicy = PreferencePolicy.WEIGH
    preference_price_percent: int = 10
    type_weights: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in BOUNDS:
            if not within_bounds(name, getattr(self, name)):
                raise ValueError(f"{name} must be a whole number {bounds_text(name)}")
        if any(percent < 1 for percent in self.type_weights.values()):
            raise ValueError("type_weights must be percentages of at least 1")


def cap_is_too_dear(within: int, without: int) -> bool:
    """Return whether a plan within the default cap on node size costs over 2 % more than another.

    Args:
        within: Price of the plan within the cap.
        without: Price of the other plan.
    """
    return within * 100 > without * (100 + _CAP_PERCENT)


class PackingProblem(Struct, frozen=True, kw_only=True):
    """Everything one packing depends on.

    Attributes:
        bins: What is available on existing and in-flight nodes, which cost nothing more; pseudo
            resources included. Amounts may be negative.
        compatible: Per class, a bit mask over node types: bit i is set if the class may run on node
            type i. It need not reflect whether the pod fits: the packer compares the amounts.
        compatible_bins: Per class, the same over bins.
        limits: Per provisioner, the capacity it may still add. Absent: no limit. Only the resource
            names present are limited. `Resources` drops zeros in arithmetic, so a limit that is
            used up must be given explicitly: `Resources((("cpu", 0),))`, or any negative amount.
        seed: Determines the random choices of the improvement phase.
        running: Total requests of the running pods; future pods are assumed to be similar. Empty
            when not known.
    """

    classes: tuple[ItemClass, ...]
    node_types: tuple[NodeType, ...]
    bins: tuple[Resources, ...] = ()
    compatible: tuple[int, ...]
    compatible_bins: tuple[int, ...] = ()
    limits: Mapping[str, Resources] = field(default_factory=dict)
    settings: PackingSettings = PackingSettings()
    seed: int = 0
    running: Resources = Resources()


class PackedNode(Struct, frozen=True, kw_only=True):
    """One node to buy.

    Attributes:
        node_type: Index of the planned node type: that of the first option.
        contents: (class index, count), by class, counts above zero.
        options: (node type index, offering index), cheapest first, the planned one first, at most
            `max_options`. Any of them holds the contents; all are of one provisioner and one
            capacity type. Nodes with equal options form one launch group.
        fallback_options: The same of another capacity type, to be tried when none of `options`
            has capacity; may be more expensive, may be empty.
    """

    node_type: int
    contents: tuple[tuple[int, int], ...]
    options: tuple[tuple[int, int], ...]
    fallback_options: tuple[tuple[int, int], ...] = ()


class Packing(Struct, frozen=True, kw_only=True):
    """A plan.

    Attributes:
        nodes: Nodes to buy, those of one launch group side by side.
        placements: Per bin that takes pods: (bin index, ((class index, count), ...)), by bin.
        unplaced: (class index, count, reason): `NO_NODE_TYPE` when no compatible node type is large
            enough, `LIMIT` when a provisioner's limit prevents it.
        cost_micros_per_hour: Sum of the nodes' cheapest options.
        lower_bound_micros_per_hour: No plan with these node types that places the same pods costs
            less, rounded down.
        candidate: Name of the procedure whose plan was the best, for people.
        within_cap_micros_per_hour: What the plan within the cap on node size would have cost, where
            the cap was lifted; else 0.
        fallback: Why this is the plan of the first-fit packer instead; empty when it is not.
        cut_short: A time limit ended the search: packed again, the same problem may give another
            plan.
    """

    nodes: tuple[PackedNode, ...]
    placements: tuple[tuple[int, tuple[tuple[int, int], ...]], ...] = ()
    unplaced: tuple[tuple[int, int, str], ...] = ()
    cost_micros_per_hour: int
    lower_bound_micros_per_hour: int
    candidate: str = ""
    within_cap_micros_per_hour: int = 0
    fallback: str = ""
    cut_short: bool = False

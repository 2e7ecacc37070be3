"""The pods of each pool on new nodes: what they would cost if the pool were launched today."""

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from functions.cli.report.owners import site_of
from shared.disruption.simulate import as_pending
from shared.model.ec2.instance_types import CapacityType
from shared.model.ec2.launches import PlannedNode
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.plan import Plan
from shared.model.provisioner import Provisioner
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.packing.problem import PackingSettings
from shared.planning.decide import decide
from shared.planning.lower_bound import with_bound
from shared.provisioning.savings.inventory import CatalogPrices, FilledNode, cost, filled_node
from shared.provisioning.savings.pools import Pool


class Outcome(Struct, frozen=True, kw_only=True):
    """The nodes of a pool, or of a whole cluster, under some rules.

    Attributes:
        nodes: Those that stay and those that would be launched, by pool.
        lower_bound_micros_per_hour: No choice of new nodes under these rules costs less; None where
            no bound is proved.
        held: Pods that keep the node they are on, each with why no new node could take it.
        blocked: Nodes that consolidation may not remove now, each with why.
    """

    nodes: tuple[FilledNode, ...]
    lower_bound_micros_per_hour: int | None = None
    held: tuple[tuple[str, str], ...] = ()
    blocked: tuple[tuple[str, str], ...] = ()

    @property
    def cost_micros_per_hour(self) -> int:
        """What the nodes with a known price cost."""
        return cost(self.nodes)

    @property
    def most_pods(self) -> int:
        """The most pods on one of the nodes, without those of DaemonSets."""
        return max((len(node.pods) for node in self.nodes), default=0)

    @property
    def spot_micros_per_hour(self) -> int:
        """What those of them cost that are spot instances."""
        return cost(node for node in self.nodes if node.capacity_type == CapacityType.SPOT)


def cheaper_of(found: Outcome, contained: Outcome) -> Outcome:
    """Return the cheapest nodes known under some rules: found under them, or under stricter ones.

    What is found under stricter rules is a solution under these, too: so a pool never costs more
    for being allowed more, although no search finds the cheapest nodes each time.

    Args:
        found: What was found under the rules, for one pool.
        contained: What is known under rules that allow nothing that these do not.
    """
    price, bound = contained.cost_micros_per_hour, found.lower_bound_micros_per_hour
    if price >= found.cost_micros_per_hour:
        return found
    # Nodes that stand may cost less than any that would be launched.
    known = None if bound is None else min(bound, price)
    return replace(found, nodes=contained.nodes, lower_bound_micros_per_hour=known)


def on_spot_prices(now: Outcome, then: Outcome) -> bool:
    """Return whether spot prices are part of the difference of two prices."""
    return now.spot_micros_per_hour != then.spot_micros_per_hour


def joined(outcomes: Collection[Outcome]) -> Outcome:
    """Return the outcomes of pools as that of their cluster; its bound is proved if each is."""
    bounds = [found.lower_bound_micros_per_hour for found in outcomes]
    proved = [bound for bound in bounds if bound is not None]
    return Outcome(
        nodes=tuple(node for found in outcomes for node in found.nodes),
        lower_bound_micros_per_hour=sum(proved) if len(proved) == len(bounds) else None,
        held=tuple(sorted(held for found in outcomes for held in found.held)),
        blocked=tuple(sorted(blocked for found in outcomes for blocked in found.blocked)),
    )


class PoolPlan(Struct, frozen=True, kw_only=True):
    """A plan for the pods of one pool.

    Attributes:
        snapshot: What was planned: these pods are pending, and only the pool's owner launches.
        kept: The nodes of pods that no new node could take.
        held: These pods, each with why.
    """

    pool: Pool
    snapshot: ClusterSnapshot
    plan: Plan
    kept: tuple[FilledNode, ...]
    held: tuple[tuple[str, str], ...]

    @property
    def outcome(self) -> Outcome:
        """Its nodes: those that stay and those that would be launched; without a bound."""
        pods = {pod.uid: pod for pod in self.snapshot.pending}
        new = (as_filled(node, self.pool, pods) for node in self.plan.nodes)
        return Outcome(nodes=(*self.kept, *new), held=tuple(sorted(self.held)))


class Repacking:
    """Launches pools anew for the pods that run on them; no plan is made twice.

    A pod stays in its pool, and the pods of other pools stay where they are, for the rules between
    pods. A pod that fits no new node of its pool keeps its node, whose free capacity is then used
    first. Nodes in none of the pools are left out.
    """

    def __init__(self, snapshot: ClusterSnapshot, pools: Mapping[Pool, Sequence[Node]]) -> None:
        """Args: the snapshot includes what the volume claims of running pods require of nodes."""
        self._snapshot = snapshot
        self._pools = pools
        self._plans: dict[Pool, list[tuple[Provisioner, PackingSettings, PoolPlan]]] = {}
        self._bounds: dict[int, int] = {}

    def of_pool(self, pool: Pool, owner: Provisioner, settings: PackingSettings) -> PoolPlan:
        """Return the plan for a pool whose owner may launch what is given."""
        known = self._plans.setdefault(pool, [])
        for known_owner, known_settings, plan in known:
            if (known_owner, known_settings) == (owner, settings):
                return plan
        plan = _PoolRepacking(self._snapshot, pool, self._pools[pool], owner, settings).plan()
        known.append((owner, settings, plan))
        return plan

    def bounded(self, pool: Pool, owner: Provisioner, settings: PackingSettings) -> Outcome:
        """Return what the plan for a pool leads to, with its lower bound."""
        plan = self.of_pool(pool, owner, settings)
        return replace(plan.outcome, lower_bound_micros_per_hour=self._bound(plan))

    def _bound(self, plan: PoolPlan) -> int:
        # A plan is kept as long as this object, so no other gets its id.
        if id(plan) not in self._bounds:
            proved = with_bound(plan.snapshot, plan.plan).lower_bound_micros_per_hour
            self._bounds[id(plan)] = proved + cost(plan.kept)
        return self._bounds[id(plan)]


class _PoolRepacking:
    """Plans one pool; pods without a place keep their nodes and the pool is planned again."""

    def __init__(
        self,
        snapshot: ClusterSnapshot,
        pool: Pool,
        nodes: Sequence[Node],
        owner: Provisioner,
        settings: PackingSettings,
    ) -> None:
        self._snapshot = snapshot
        self._pool = pool
        self._nodes = {node.name: node for node in nodes}
        self._owner = owner
        self._site = site_of(pool, owner, nodes, snapshot)
        self._settings = settings
        self._pods = {
            pod.uid: pod
            for pod in snapshot.bound
            if pod.node_name in self._nodes and pod.counts_for_emptiness and not pod.is_terminating
        }

    def plan(self) -> PoolPlan:
        held: dict[str, str] = {}
        while True:
            simulated = self._simulated(held)
            plan = decide(simulated, self._settings)
            if not plan.unschedulable:
                break
            held |= {left.pod.uid: "; ".join(left.reasons) for left in plan.unschedulable}
        return PoolPlan(
            pool=self._pool,
            snapshot=simulated,
            plan=plan,
            kept=self._kept(plan, held),
            held=tuple((self._pods[uid].key, why) for uid, why in held.items()),
        )

    def _simulated(self, held: Collection[str]) -> ClusterSnapshot:
        """Return the snapshot with the pool's pods pending and only the nodes of held ones left."""
        staying = {self._pods[uid].node_name for uid in held}
        return replace(
            self._snapshot,
            pending=tuple(as_pending(pod) for uid, pod in self._pods.items() if uid not in held),
            bound=tuple(
                pod
                for pod in self._snapshot.bound
                if (pod.uid not in self._pods or pod.uid in held)
                and (pod.node_name not in self._nodes or pod.node_name in staying)
            ),
            nodes=tuple(
                node if node.name in staying else replace(node, unschedulable=True)
                for node in self._snapshot.nodes
                if node.name not in self._nodes or node.name in staying
            ),
            provisioners=(self._owner,),
            sites=(self._site,),
        )

    def _kept(self, plan: Plan, held: Collection[str]) -> tuple[FilledNode, ...]:
        prices = CatalogPrices(self._snapshot.instance_types)
        names = sorted({self._pods[uid].node_name for uid in held})
        on_them: dict[str, list[Pod]] = {name: [] for name in names}
        for pod in self._snapshot.bound:
            if pod.node_name in on_them and (pod.uid in held or not pod.counts_for_emptiness):
                on_them[pod.node_name].append(pod)
        for placement in plan.placements:
            on_them[placement.node] += [self._pods[ref.uid] for ref in placement.pods]
        return tuple(filled_node(self._nodes[name], on_them[name], prices) for name in names)


def as_filled(node: PlannedNode, pool: Pool, pods: Mapping[str, Pod]) -> FilledNode:
    """Return a planned node as its cheapest option.

    Args:
        pods: By uid; include those of the node.
    """
    first = node.options[0]
    return FilledNode(
        pool=pool,
        instance_type=first.offering.instance_type,
        zone=first.offering.zone,
        capacity_type=first.offering.capacity_type,
        price_micros_per_hour=first.price_micros_per_hour,
        allocatable=first.allocatable,
        pods=tuple(pods[ref.uid] for ref in node.pods),
        daemons=node.daemon_requests,
    )

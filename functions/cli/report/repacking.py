"""The pods of each pool on new nodes: what they would cost if the pool were launched today."""

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from functions.cli.report.owners import site_of
from shared.disruption.simulate import as_pending
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
    """The nodes of a cluster under some rules.

    Attributes:
        nodes: Those that stay and those that would be launched, by pool.
        lower_bound_micros_per_hour: No plan under these rules costs less; None where no bound is
            proved.
        held: Pods that keep the node they are on, each with why no new node could take it.
        changes: Number of consolidation moves that lead to it; 0 for a repacking.
        blocked: Nodes that consolidation may not remove now, each with why.
    """

    nodes: tuple[FilledNode, ...]
    lower_bound_micros_per_hour: int | None = None
    held: tuple[tuple[str, str], ...] = ()
    changes: int = 0
    blocked: tuple[tuple[str, str], ...] = ()

    @property
    def cost_micros_per_hour(self) -> int:
        """What the nodes with a known price cost."""
        return cost(self.nodes)


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
    def nodes(self) -> tuple[FilledNode, ...]:
        """Those that stay and those that would be launched."""
        pods = {pod.uid: pod for pod in self.snapshot.pending}
        return (*self.kept, *(as_filled(node, self.pool, pods) for node in self.plan.nodes))

    @property
    def cost_micros_per_hour(self) -> int:
        """What its nodes cost."""
        return cost(self.kept) + self.plan.cost_micros_per_hour


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

    def of_all(self, owners: Mapping[Pool, Provisioner], settings: PackingSettings) -> Outcome:
        """Return the cluster with every pool launched anew, and a lower bound."""
        plans = [self.of_pool(pool, owners[pool], settings) for pool in self._pools]
        return Outcome(
            nodes=tuple(node for plan in plans for node in plan.nodes),
            lower_bound_micros_per_hour=sum(map(self._bound, plans)),
            held=tuple(sorted(held for plan in plans for held in plan.held)),
        )

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

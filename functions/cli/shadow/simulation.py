"""The shadow fleet at one time: plans are carried out in it, and its nodes are removed."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from functions.cli.plan.saving_in_words import saving_in_words
from functions.cli.report.carrying_out import OURS, carry_out, owned_labels
from functions.cli.shadow.compared_pools import ComparedPools
from functions.cli.shadow.fleet import (
    Decision,
    Observation,
    RecordProgress,
    ShadowNode,
    run_of,
)
from shared.disruption.allowances import disruptions_left
from shared.disruption.consolidation import DisruptionMethod
from shared.disruption.emptiness import EmptinessStep, decide_emptiness
from shared.disruption.evaluation import (
    DisruptionCause,
    DisruptionInput,
    OngoingChanges,
    evaluate,
)
from shared.disruption.fingerprint import fingerprint
from shared.disruption.pod_changes import pod_digests, recently_changed
from shared.disruption.settings import DisruptionSettings
from shared.model import labels as keys
from shared.model.dollars_and_counts import counted, counted_kinds, hourly
from shared.model.ec2.instance_types import InstanceType
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.node_budgets import DisruptionReason
from shared.model.plan import Plan
from shared.model.provisioner import owner_among
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.packing.problem import PackingSettings
from shared.planning.decide import decide
from shared.provisioning.savings.pools import pool_of

# How long consolidation is not tried again on an input for which it found nothing.
_FRUITLESS: Final = timedelta(minutes=5)


class ShadowRules(Struct, frozen=True, kw_only=True):
    """What is assumed of the shadow fleet.

    Attributes:
        pools: Names of the pools that are compared; none for the default.
        boot: From a launch until the node may be removed, and until what it replaces is drained.
        drain: How long a node with pods is paid from the begin of its drain: the default of
            terminationGracePeriodSeconds.
        longest_pause: Between two observations; what is longer is a gap, in which nothing counts.
        evaluate_every: Time between evaluations of the nodes.
    """

    instance_types: tuple[InstanceType, ...]
    pools: tuple[str, ...] = ()
    packing: PackingSettings = PackingSettings()
    disruption: DisruptionSettings = DisruptionSettings()
    boot: timedelta = timedelta(seconds=60)
    drain: timedelta = timedelta(seconds=30)
    longest_pause: timedelta = timedelta(minutes=2)
    evaluate_every: timedelta = timedelta(seconds=60)


class Simulation:
    """The shadow fleet at one time.

    Args:
        observed: The cluster as it really is.
        pools: The pools that are compared.
        progress: With the time of the observation as its last.
        nodes: The fleet, by name.
        real_micros_per_hour: What the nodes that really run cost.

    Attributes:
        progress: How far the record has come.
        nodes: The fleet.
        places: Names of nodes of the fleet, by uid of the pods on them.
        decisions: What Dovetail would do.
    """

    def __init__(
        self,
        observed: Observation,
        rules: ShadowRules,
        pools: ComparedPools,
        progress: RecordProgress,
        nodes: Mapping[str, ShadowNode],
        real_micros_per_hour: int,
    ) -> None:
        self.progress = progress
        self.nodes = {
            name: self._booted(entry, observed.at)
            for name, entry in nodes.items()
            if entry.run.ended_at is None
            or observed.at - entry.run.ended_at <= rules.disruption.window
        }
        self.places: dict[str, str] = {}
        self.decisions: list[Decision] = []
        self._observed = observed
        self._at = observed.at
        self._rules = rules
        self._pools = pools
        self._real_micros_per_hour = real_micros_per_hour
        self._scope: dict[str, Pod] = {}
        self._elsewhere: list[Pod] = []

    def take_over(self, running: Iterable[Node]) -> None:
        """Make the fleet of nodes that really run; those that are being deleted are left out."""
        for node in running:
            if node.deletion_at is not None:
                continue
            owner = self._pools.owners[pool_of(node)]
            kept = {
                key: node.annotations[key]
                for key in keys.NODE_BLOCKING_ANNOTATIONS
                if key in node.annotations
            }
            taken_over = Node(
                name=node.name,
                uid=node.name,
                labels=owned_labels(node, owner),
                annotations={keys.SLOT: "", **kept},
                taints=owner.taints,
                finalizers=OURS,
                capacity=node.capacity,
                allocatable=node.allocatable,
                ready=True,
                created_at=node.created_at or self._at,
            )
            run = run_of(node, self._pools.price_of(node) or 0, self._at)
            self.nodes[node.name] = ShadowNode(node=taken_over, run=run, ready_at=self._at)

    def keep_pods(self, places: Mapping[str, str], compared: Collection[str]) -> None:
        """Leave pods on their nodes that are still there; the others wait for a node.

        A pod that is being deleted has left: the pod that follows it takes its place. A pod on a
        node that is not compared stays there.

        Args:
            places: Where pods were, by uid.
            compared: Names of the nodes that really run and are compared.
        """
        for pod in sorted(self._observed.pods, key=lambda pod: (pod.key, pod.uid)):
            if pod.node_name and pod.node_name not in compared:
                self._elsewhere.append(pod)
            elif (pod.counts_for_emptiness and not pod.is_terminating) and (
                pod.node_name or pod.is_provisionable or pod.uid in places
            ):
                self._scope[pod.uid] = pod
        self.places = {
            uid: name
            for uid, name in places.items()
            if uid in self._scope and self._holds(name, self._scope[uid])
        }

    def pods_on(self, compared: Collection[str]) -> Mapping[str, str]:
        """Return the name of the real node of each pod on these nodes, by uid."""
        pods = self._observed.pods
        return {pod.uid: pod.node_name for pod in pods if pod.node_name in compared}

    def place_waiting(self) -> None:
        """Plan the pods that have no node in the shadow fleet."""
        waiting = [pod for uid, pod in self._scope.items() if uid not in self.places]
        plan = decide(self._snapshot(waiting), self._rules.packing) if waiting else Plan()
        new = self._carry_out(plan)
        if new:
            pods = sum(len(planned.pods) for planned in plan.nodes)
            self.record(
                f"would launch {counted(len(new), 'node')} for {counted(pods, 'pod')}: "
                f"{_kinds(new)}; {hourly(_price(new))}"
            )
        self._report_unplaced(plan)

    def _report_unplaced(self, plan: Plan) -> None:
        """Record the running pods that the plan has no place for; each is reported once."""
        left = {
            entry.pod.uid: entry
            for entry in plan.unschedulable
            if self._scope[entry.pod.uid].node_name
        }
        for uid, entry in left.items():
            if uid not in self.progress.unplaced:
                why = "; ".join(entry.reasons)
                self.record(f"would have no node for {self._scope[uid].key}: {why}")
        self.progress = replace(self.progress, unplaced=frozenset(left))

    def _carry_out(self, plan: Plan) -> list[ShadowNode]:
        """Launch the nodes of a plan and place its pods; return the nodes."""
        first = self.progress.launched + 1
        names = [f"shadow-{first + number}" for number in range(len(plan.nodes))]
        result = carry_out(
            plan, names, self._pools.owners.values(), self._rules.instance_types, self._at
        )
        new = []
        for node, planned in zip(result.launched, plan.nodes, strict=True):
            labels = {k: v for k, v in node.labels.items() if k != keys.INITIALIZED}
            run = run_of(node, planned.price_micros_per_hour, self._at)
            new.append(
                ShadowNode(
                    node=replace(node, labels=labels),
                    run=replace(run, pool=self._pools.pool_named(planned.provisioner)),
                    ready_at=self._at + self._rules.boot,
                )
            )
        self.nodes |= {entry.node.name: entry for entry in new}
        self.places |= result.places
        self.progress = replace(self.progress, launched=self.progress.launched + len(new))
        return new

    def evaluate(self) -> None:
        """Change nodes until nothing is left to change now: provision evaluates after each."""
        self.progress = replace(self.progress, evaluated_at=self._at)
        self._remove_empty(self._snapshot())
        while self._change_once(self._snapshot()):
            pass

    def _remove_empty(self, snapshot: ClusterSnapshot) -> None:
        """Remove nodes of owners that remove only empty ones, as the timer of a node does."""
        owners = {owner.name: owner for owner in snapshot.provisioners}
        on_node: dict[str, list[Pod]] = {}
        for pod in snapshot.bound:
            on_node.setdefault(pod.node_name, []).append(pod)
        for name, entry in sorted(self.nodes.items()):
            node, owner = entry.node, owner_among(entry.node, owners)
            if owner is None or entry.run.ended_at is not None or not node.was_initialized:
                continue
            ttl = owner.ttl_after_empty
            found = decide_emptiness(node, on_node.get(name, ()), None, ttl, self._at)
            if found.step == EmptinessStep.REMOVE:
                nodes = [other.node for other in self.nodes.values()]
                left = disruptions_left(
                    owner, nodes, DisruptionReason.EMPTY, self._at, (), asking=node.uid
                )
                if left is None or left > 0:
                    self._remove([name], "emptiness: no pod is left", drained=False)
            else:
                self._stamp(entry, empty=found.step != EmptinessStep.FORGET)

    def _stamp(self, entry: ShadowNode, *, empty: bool) -> None:
        """Write on a node since when it is empty, or remove that."""
        known = entry.node.annotations
        if empty == (keys.EMPTINESS_TIMESTAMP in known):
            return
        changed = {key: value for key, value in known.items() if key != keys.EMPTINESS_TIMESTAMP}
        if empty:
            changed[keys.EMPTINESS_TIMESTAMP] = self._at.isoformat()
        node = replace(entry.node, annotations=changed)
        self.nodes[node.name] = replace(entry, node=node)

    def _change_once(self, snapshot: ClusterSnapshot) -> bool:
        """Make the change of nodes that comes first; return whether there was one."""
        before = {
            entry.node.uid: entry.pods_since
            for entry in self.nodes.values()
            if entry.pods_since is not None
        }
        digests = pod_digests(snapshot, before)
        for name, entry in self.nodes.items():
            since = digests.get(entry.node.uid)
            if since != entry.pods_since:
                self.nodes[name] = replace(entry, pods_since=since)
        ended = frozenset(
            entry.node.uid
            for entry in self.nodes.values()
            if entry.run.ended_at is not None and entry.run.ended_at <= self._at
        )
        asked = DisruptionInput(
            snapshot=snapshot,
            budgets=self._observed.budgets,
            settings=self._rules.disruption.within_reason(len(snapshot.bound)),
            packing=replace(self._rules.packing, growth_percent=0, fewer_nodes_permille=0),
            recently_changed=recently_changed(snapshot, digests),
            ongoing=OngoingChanges(rested=ended),
        )
        seen, progress = fingerprint(asked), self.progress
        until = progress.fruitless_until or self._at
        known = seen == progress.fruitless and self._at < until
        change = evaluate(asked, consolidating=not known).change
        if change is None:
            if not known:
                self.progress = replace(
                    progress, fruitless=seen, fruitless_until=self._at + _FRUITLESS
                )
            return False
        why = change.why
        if change.cause == DisruptionCause.CONSOLIDATION:
            why = saving_in_words(_price(self.nodes[name] for name in change.remove), change.plan)
        new = self._carry_out(change.plan)
        drained = change.method != DisruptionMethod.EMPTY
        self._remove(change.remove, f"{change.cause.value}: {why}", new, drained=drained)
        return True

    def _remove(
        self, names: Sequence[str], why: str, new: Sequence[ShadowNode] = (), *, drained: bool
    ) -> None:
        """Remove nodes once the new ones have booted, drained if pods run on them."""
        wait = (self._rules.boot if new else timedelta(0)) + (
            self._rules.drain if drained else timedelta(0)
        )
        gone = [self.nodes[name] for name in names]
        for entry in gone:
            marks = {**entry.node.annotations, keys.REMOVAL_REASON: why.partition(":")[0]}
            node = replace(entry.node, deletion_at=self._at, annotations=marks)
            run = replace(entry.run, ended_at=self._at + wait)
            self.nodes[node.name] = replace(entry, node=node, run=run)
        first = f", once {_kinds(new)} at {hourly(_price(new))} can take their pods" if new else ""
        self.record(
            f"would remove {counted(len(gone), 'node')}: {_kinds(gone)}; {hourly(_price(gone))}; "
            f"{why}{first}"
        )

    def _holds(self, name: str, pod: Pod) -> bool:
        """Return whether a pod may stay on a node: it is there, in the zone of its volumes."""
        entry = self.nodes.get(name)
        return (
            entry is not None
            and entry.run.ended_at is None
            and all(
                any(term.allow_labels(entry.node.labels) for term in alternatives)
                for alternatives in pod.scheduling.volume_terms
            )
        )

    def _snapshot(self, waiting: Iterable[Pod] = ()) -> ClusterSnapshot:
        """Return the cluster with the shadow fleet in place of the nodes that are compared."""
        others = [
            replace(node, unschedulable=True)
            for node in self._observed.nodes
            if self._pools.price_of(node) is None
        ]
        ours = [
            entry.node
            for entry in self.nodes.values()
            if entry.run.ended_at is None or entry.run.ended_at > self._at
        ]
        placed = [
            replace(
                self._scope[uid],
                node_name=name,
                phase="Running",
                unschedulable=False,
                nominated_node="",
            )
            for uid, name in self.places.items()
        ]
        return self._pools.scene(
            "shadow", self._observed, (*others, *ours), (*self._elsewhere, *placed), waiting
        )

    def record(self, text: str) -> None:
        """Record what Dovetail would do, and what then is paid beside what really is."""
        ours = _price(entry for entry in self.nodes.values() if entry.run.ended_at is None)
        rates = f"{hourly(ours)} beside {hourly(self._real_micros_per_hour)} that really run"
        self.decisions.append(Decision(at=self._at, text=f"{text}. {rates}"))

    @staticmethod
    def _booted(entry: ShadowNode, at: datetime) -> ShadowNode:
        if entry.node.was_initialized or entry.ready_at > at:
            return entry
        labels = {**entry.node.labels, keys.INITIALIZED: "true"}
        return replace(entry, node=replace(entry.node, labels=labels))


def _kinds(nodes: Iterable[ShadowNode]) -> str:
    return counted_kinds(
        f"{entry.run.instance_type} {entry.run.capacity_type.value}" for entry in nodes
    )


def _price(nodes: Iterable[ShadowNode]) -> int:
    return sum(entry.run.price_micros_per_hour for entry in nodes)

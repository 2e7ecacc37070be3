"""Doctor: compares ledger, instances and Nodes, and rebuilds a lost ledger from the other two."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from functions.cli.doctor.findings import Finding
from functions.cli.doctor.late_nodes import held_workloads, late_nodes
from functions.cli.doctor.ledger_rebuilding import rebuild_ledger
from shared.model import labels as keys
from shared.model.ec2.launches import Instance, Slot
from shared.model.errors import ConflictError, PermanentError
from shared.model.kubernetes.nodes import Node
from shared.model.provisioner import Provisioner
from shared.nodes.brakes.hold import RIVAL, held_back, rivals_of
from shared.nodes.brakes.runaway import recent_trials
from shared.nodes.launch.body_archive import body_of
from shared.nodes.timers.heartbeats import last_forwarder_heartbeat
from shared.ports import ClusterPorts
from shared.snapshot.deployment import DOLLARS, deploy_command
from shared.snapshot.node_facts import NodeFacts, cluster_instances, node_facts
from shared.snapshot.refusals import read_refusals

# The forwarder sends a heartbeat every five minutes; three misses are not chance.
_SILENT: Final = timedelta(minutes=15)
# A launch is finished in seconds; by then sweep has checked it several times.
_STUCK: Final = timedelta(minutes=5)
# EC2 lists an instance seconds after its launch; until then, a missing one may exist.
_ORPHAN: Final = timedelta(seconds=90)


class _ClusterState(Struct, frozen=True, kw_only=True):
    """Ledger, instances and nodes of one cluster at one time.

    Attributes:
        facts: The nodes as EC2 describes their instances.
        instances: Instances with Dovetail's tags.
        untagged: Running instances without these tags that Dovetail's slots or Nodes name.
    """

    now: datetime
    slots: tuple[Slot, ...]
    facts: NodeFacts
    instances: tuple[Instance, ...]
    untagged: tuple[Instance, ...]

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes, as EC2 describes their instances."""
        return self.facts.nodes

    @property
    def alive(self) -> dict[str, Instance]:
        """Instances that run or are about to, by id."""
        return {instance.instance_id: instance for instance in self.instances if instance.is_alive}

    @property
    def dead_slots(self) -> tuple[Slot, ...]:
        """Slots whose instance, tagged or not, does not run and was not just launched."""
        running = self.alive.keys() | {beside.instance_id for beside in self.untagged}
        return tuple(
            slot
            for slot in self.slots
            if slot.instance_id not in running and self.is_old(slot.launched_at)
        )

    def is_old(self, since: datetime | None) -> bool:
        """Return whether EC2 must by now list an instance that was launched then."""
        return since is None or self.now - since > _ORPHAN


class Doctor:
    """Checks and repairs one cluster."""

    def __init__(self, ports: ClusterPorts) -> None:
        self._ports = ports
        self._name = ports.cluster.name

    def findings(self) -> tuple[Finding, ...]:
        """Return the findings, sorted; nothing is changed.

        Raises:
            RetryableError: If the cluster or AWS cannot be read now.
        """
        state = self._read()
        found = [
            *self._brakes(),
            *self._ceiling(),
            *self._forwarder(state.now),
            *self._unknown_instances(state),
            *self._orphans(state),
            *self._dead_slots(state),
            *self._lost_nodes(state),
            *self._contradictions(state),
            *self._undeletable(state),
            *self._untagged(state),
            *self._launches(state.now),
            *self._waiting(state),
        ]
        return tuple(sorted(found))

    def repair(self, holder: str) -> tuple[Finding, ...]:
        """Repair what can be, under the cluster's lease; return the repaired findings, sorted.

        Raises:
            ConflictError: If another invocation plans for the cluster now.
        """
        ledger, clock = self._ports.ledger, self._ports.clock
        lease = ledger.acquire(self._name, holder, clock.now())
        if lease is None:
            raise ConflictError(
                f"cluster {self._name}: another invocation holds the lease; run the command again"
            )
        repaired = [finding for finding in self.findings() if finding.repairable]
        state = self._read()
        rebuild_ledger(self._ports, lease, tuple(state.alive.values()), state.nodes, state.slots)
        for slot in state.dead_slots:
            ledger.drop_slot(slot, lease)
            ledger.drop_instance(slot.instance_id)
        ledger.release(lease)
        if repaired:
            # The next plan uses what is written now, and resumes open launches.
            self._ports.outbox.wake(self._name, timedelta(0))
        return tuple(repaired)

    def _read(self) -> _ClusterState:
        ports = self._ports
        intents, slots = ports.ledger.open_intents(self._name), ports.ledger.slots(self._name)
        nodes, instances = ports.cluster.nodes(), cluster_instances(ports)
        named = {slot.instance_id for slot in slots}
        named |= {node.instance_id for node in nodes if node.is_ours and node.instance_id}
        missing = sorted(
            named - {instance.instance_id for instance in instances if instance.is_alive}
        )
        # Described by id once more: lists lag behind, and tags can be removed.
        shown = ports.cloud.instances(missing) if missing else ()
        return _ClusterState(
            now=ports.clock.now(),
            slots=slots,
            facts=node_facts(ports, nodes, instances, slots, intents),
            instances=instances,
            untagged=tuple(instance for instance in shown if instance.is_alive),
        )

    # --- the checks

    def _brakes(self) -> list[Finding]:
        rivals = rivals_of(self._ports)
        reason = held_back(self._ports, rivals)
        if not reason:
            return []
        who = ", ".join(f"{rival.kind.value} by lease {rival.where}" for rival in rivals)
        return [
            Finding(
                kind="brake",
                subject=self._name,
                text=f"held back: {reason}" + (f" ({who})" if who else ""),
                command=""
                if reason == RIVAL
                else f"aws ssm get-parameter --name /dovetail/clusters/{self._name}/brakes",
            )
        ]

    def _ceiling(self) -> list[Finding]:
        """Return a finding if nothing limits what the cluster's nodes may cost together."""
        if self._ports.brakes.ceiling.max_price_micros_per_hour is not None:
            return []
        return [
            Finding(
                kind="no-ceiling",
                subject=self._name,
                text="has no ceiling of dollars per hour: only the limits of Provisioners bound "
                "what its nodes cost",
                command=deploy_command(self._name, DOLLARS),
                advice=True,
            )
        ]

    def _forwarder(self, now: datetime) -> list[Finding]:
        last_heartbeat = last_forwarder_heartbeat(self._ports.ledger, self._name)
        if last_heartbeat is not None and now - last_heartbeat < _SILENT:
            return []
        since = (
            "never spoke"
            if last_heartbeat is None
            else f"is silent since {last_heartbeat:%Y-%m-%d %H:%M} UTC"
        )
        return [
            Finding(
                kind="silent-forwarder",
                subject=self._name,
                text=f"the forwarder {since}: new pods are seen by the minute's sweep only",
                command="kubectl -n dovetail rollout restart deployment/dovetail-forwarder",
            )
        ]

    def _unknown_instances(self, state: _ClusterState) -> list[Finding]:
        return [
            Finding(
                kind="instance-not-in-ledger",
                subject=value,
                text="has our tags, and the ledger does not know it",
                repairable=True,
            )
            for value in state.alive
            if self._ports.ledger.cluster_of(value) != self._name
        ]

    def _orphans(self, state: _ClusterState) -> list[Finding]:
        known = {node.instance_id for node in state.nodes}
        known |= {slot.instance_id for slot in state.slots}
        return [
            Finding(
                kind="instance-without-node",
                subject=instance.instance_id,
                text=f"{instance.offering.instance_type} has no Node and no slot; "
                "sweep terminates it",
                command=f"aws ec2 terminate-instances --instance-ids {instance.instance_id}",
            )
            for instance in state.alive.values()
            if instance.instance_id not in known
            and instance.launched_at is not None
            and state.now - instance.launched_at > _ORPHAN
        ]

    def _dead_slots(self, state: _ClusterState) -> list[Finding]:
        return [
            Finding(
                kind="slot-without-instance",
                subject=slot.name,
                text=f"is paired with {slot.instance_id}, which does not run",
                repairable=True,
            )
            for slot in state.dead_slots
        ]

    def _lost_nodes(self, state: _ClusterState) -> list[Finding]:
        running = state.alive.keys() | {beside.instance_id for beside in state.untagged}
        return [
            Finding(
                kind="node-without-instance",
                subject=node.name,
                text=f"has our finalizer, and {node.instance_id or 'its instance'} does not run",
                command=f"kubectl delete node {node.name}",
            )
            for node in state.nodes
            if node.is_ours
            and node.deletion_at is None
            and node.instance_id not in running
            and state.is_old(node.created_at)
        ]

    def _contradictions(self, state: _ClusterState) -> list[Finding]:
        """Return Nodes that contradict EC2; sweep corrects them each minute."""
        # For these, `_untagged` reports the missing tags.
        known = {beside.instance_id for beside in state.untagged}
        besides = {node.name for node in state.nodes if node.instance_id in known}
        return [
            Finding(
                kind="node-contradicts-ec2",
                subject=found.node.name,
                text=f"{found.text}; sweep corrects it: check what runs on "
                f"{found.node.instance_id}, whose kubelet may write this",
                command=f"kubectl delete node {found.node.name}",
            )
            for found in state.facts.contradictions
        ] + [
            Finding(
                kind="node-not-ours",
                subject=name,
                text=f"has Dovetail's annotation, but {reason}: not counted and never terminated",
                command=f"kubectl annotate node {name} {keys.SLOT}-",
            )
            for name, reason in state.facts.strangers.items()
            if name not in besides
        ]

    def _undeletable(self, state: _ClusterState) -> list[Finding]:
        """Return Nodes with pods whose deletion the API server refuses for good."""
        return [
            Finding(
                kind="deletion-refused",
                subject=node.name,
                text="the API server refuses to delete its pods: "
                + node.annotations[keys.DELETION_REFUSED],
                command="kubectl get validatingwebhookconfigurations,validatingadmissionpolicies",
            )
            for node in state.nodes
            if keys.DELETION_REFUSED in node.annotations
        ]

    def _untagged(self, state: _ClusterState) -> list[Finding]:
        """Return running instances of Dovetail's Nodes and slots that lack Dovetail's tags."""
        return [
            Finding(
                kind="instance-without-tags",
                subject=beside.instance_id,
                text=f"runs for a Node or slot of Dovetail, but its tag {keys.TAG_CLUSTER} is "
                f"{beside.tags.get(keys.TAG_CLUSTER, '')!r}: not counted and never terminated",
                command=f"aws ec2 create-tags --resources {beside.instance_id} --tags "
                f"Key={keys.TAG_CLUSTER},Value={self._name} "
                f"Key=kubernetes.io/cluster/{self._name},Value=owned",
            )
            for beside in state.untagged
            if state.is_old(beside.launched_at)
        ]

    def _waiting(self, state: _ClusterState) -> list[Finding]:
        """Return nodes that start for too long, and what no node is launched for."""
        cluster = self._ports.cluster
        pending = cluster.pending_pods()
        provisioners, _ = cluster.provisioners()
        running = state.alive.keys() | {instance.instance_id for instance in state.untagged}
        late = late_nodes(
            [node for node in state.nodes if node.instance_id in running],
            state.slots,
            {owner.name: owner for owner in provisioners},
            {pod.uid: pod for pod in pending},
            cluster.daemonsets(),
            state.now,
        )
        trials = recent_trials(self._ports.ledger, self._name, state.now)
        held = held_workloads(pending, trials, self._name)
        return [*late, *held, *self._refused(provisioners)]

    def _refused(self, provisioners: Sequence[Provisioner]) -> list[Finding]:
        """Return Provisioners whose launches EC2 refuses as long as they are unchanged."""
        refusals = read_refusals(self._ports)
        return [
            Finding(
                kind="provisioner-refused",
                subject=owner.name,
                text=refusal,
                command=f"kubectl describe {owner.kind.lower()} {owner.name}",
            )
            for owner in provisioners
            if (refusal := refusals.reason_for(self._ports, owner))
        ]

    def _launches(self, now: datetime) -> list[Finding]:
        found = []
        for open_intent in self._ports.ledger.open_intents(self._name):
            if now - open_intent.created_at < _STUCK:
                continue
            text = f"is open since {open_intent.created_at:%Y-%m-%d %H:%M} UTC"
            try:
                body_of(self._ports.decisions, open_intent)
            except PermanentError as error:
                text += f"; it will be abandoned: {error}"
            name = f"{open_intent.plan_id}/{open_intent.group}"
            found.append(
                Finding(kind="unfinished-launch", subject=name, text=text, repairable=True)
            )
        return found

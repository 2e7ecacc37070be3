"""Creates Node objects for launched instances, and binds the pods that may be bound at once."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from shared.disruption.drift import launch_stamp
from shared.model import labels as keys
from shared.model.ec2.instance_types import InstanceType
from shared.model.ec2.launches import Instance, PodRef, Slot
from shared.model.errors import (
    CertificateError,
    ConflictError,
    NotFoundError,
    PermanentError,
    UnauthorizedError,
)
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.policy import BindingPolicy, LaunchPolicy
from shared.model.provisioner import Provisioner
from shared.model.resources import PLAIN
from shared.model.values import replace
from shared.nodes.events.group_events import launched_group
from shared.nodes.events.node_events import event_on
from shared.nodes.events.recorder import EventRecorder
from shared.nodes.launch.held_lease import HeldLease
from shared.nodes.launch.node_taints import node_taints
from shared.nodes.launch.refusals.refusal_actions import LostInstance
from shared.nodes.launch.slots import former_owner
from shared.nodes.timers.timers import start, start_expiration
from shared.planning.rules.binding import may_bind
from shared.ports import ClusterPorts, NodeChange, NodeManifest, TimerKind

# The Nodes that are created between two checks of time and lease: about two seconds of work.
_PART: Final = 80


class _NoNode(Struct, frozen=True, kw_only=True):
    """An instance does not become a node: its slot is dropped.

    Attributes:
        why: The reason; empty if the drain of its Node terminates it.
    """

    why: str = ""


class NodeMaker:
    """Creates the Node objects of filled slots, with their first pods.

    Attributes:
        lost_instances: Instances that ended before they became nodes, as far as observed.
        started_provisioners: Provisioners for whose instances Nodes were created.
    """

    def __init__(self, ports: ClusterPorts, held_lease: HeldLease, policy: LaunchPolicy) -> None:
        self._ports = ports
        self._lease = held_lease
        self._policy = policy
        self.lost_instances: list[LostInstance] = []
        self.started_provisioners: set[str] = set()

    def make(
        self,
        slots: Sequence[Slot],
        provisioners: Mapping[str, Provisioner],
        instance_types: Mapping[str, InstanceType],
        pending: Mapping[str, Pod],
        *,
        may_continue: Callable[[], bool],
    ) -> int:
        """Create the Node of every slot that has none and whose instance runs, as EC2 shows it.

        Not earlier: the cloud controller deletes a Node whose instance EC2 does not show, which may
        happen in the first seconds after a launch.

        The slots are processed in parts, and the slots of a part in parallel: first all Nodes, then
        all bindings, then the timers, because pods wait for the first two. The node name is written
        to the slot last: it shows that the node is complete.

        Args:
            pending: Unbound pods by UID.
            may_continue: Returns whether to process another part now; the rest is left to the next
                call.

        Returns:
            The number of slots that need another check soon: the instance does not run yet, its
            part was not reached, or it ended and its pods must be planned again.
        """
        slots_without_node = [slot for slot in slots if not slot.node_name]
        shown = {
            instance.instance_id: instance
            for instance in self._ports.cloud.instances(
                [slot.instance_id for slot in slots_without_node]
            )
        }
        # Instances that EC2 does not show yet must not delay those that it shows.
        slots_without_node.sort(key=lambda slot: slot.instance_id not in shown)
        retry_soon = 0
        done: list[tuple[Slot, Node]] = []
        try:
            for start in range(0, len(slots_without_node), _PART):
                if start and not may_continue():
                    retry_soon += len(slots_without_node) - start
                    break
                part = slots_without_node[start : start + _PART]
                retry_soon += self._make(part, shown, provisioners, instance_types, pending, done)
        finally:
            if done:
                EventRecorder(self._ports).record_each(*launched_group(done, provisioners))
        return retry_soon

    def _make(
        self,
        slots: Sequence[Slot],
        shown: Mapping[str, Instance],
        provisioners: Mapping[str, Provisioner],
        instance_types: Mapping[str, InstanceType],
        pending: Mapping[str, Pod],
        done: list[tuple[Slot, Node]],
    ) -> int:
        running, retry_soon = self._running(slots, shown, provisioners, instance_types, pending)

        def make(slot_and_instance: tuple[Slot, Instance]) -> Node | _NoNode | None:
            return self._make_node(
                *slot_and_instance, _owner_of(slot_and_instance[0], provisioners), instance_types
            )

        outcomes = list(zip(running, self._ports.executor.each(make, running), strict=True))
        made = [(slot, node) for (slot, _), node in outcomes if isinstance(node, Node)]
        self.started_provisioners |= {slot.provisioner for slot, _ in made}
        unbound = self._bind_early(made, pending)
        complete = [(slot, node) for slot, node in made if slot.name in unbound]
        retry_soon += len(running) - len(complete)

        def write_down(one: tuple[Slot, Node]) -> None:
            slot, node = one
            self._start_timers(node, _owner_of(slot, provisioners))
            self._save_slot(slot, node, unbound[slot.name])

        self._ports.executor.each(write_down, complete)
        done += complete
        self._wake_bind([node for _, node in made])
        # In sequence: each write checks the lease, and the pods of created nodes come first.
        for (slot, _), outcome in outcomes:
            if isinstance(outcome, _NoNode):
                self._drop(slot, _owner_of(slot, provisioners), outcome)
        return retry_soon

    def _running(
        self,
        slots: Sequence[Slot],
        shown: Mapping[str, Instance],
        provisioners: Mapping[str, Provisioner],
        instance_types: Mapping[str, InstanceType],
        pending: Mapping[str, Pod],
    ) -> tuple[list[tuple[Slot, Instance]], int]:
        """Return the instances that run, and how many of the others need another check soon."""
        now = self._ports.clock.now()
        retry_soon = 0
        running: list[tuple[Slot, Instance]] = []
        for slot in slots:
            instance = shown.get(slot.instance_id)
            is_late = now - slot.launched_at > self._policy.registration_timeout
            if (instance is None and is_late) or (instance is not None and not instance.is_alive):
                self.lost_instances.append(LostInstance(slot=slot, instance=instance))
                self._ports.ledger.drop_slot(slot, self._lease.value)
                if instance is not None and instance.is_terminating:
                    self._ports.ledger.drop_instance(slot.instance_id)
                retry_soon += 1
            elif slot.interrupted_at is not None:
                # EC2 has announced that it ends this instance; if it does not, sweep terminates it.
                if is_late:
                    self._ports.ledger.drop_slot(slot, self._lease.value)
            elif instance is None or not (instance.is_running and instance.private_dns_name):
                if instance is not None and is_late:
                    owner = _owner_of(slot, provisioners)
                    self._drop_late_slot(slot, instance, owner, instance_types, pending)
                retry_soon += 1
            else:
                running.append((slot, instance))
        return running, retry_soon

    def _drop_late_slot(
        self,
        slot: Slot,
        instance: Instance,
        owner: Provisioner | None,
        instance_types: Mapping[str, InstanceType],
        pending: Mapping[str, Pod],
    ) -> None:
        """Free the pods of an instance that does not become a node in time; sweep terminates it."""
        node = _future_node(slot, instance, owner, instance_types)
        waited = self._ports.clock.now() - slot.launched_at
        if waited > node.registration_timeout(self._policy.registration_timeout):
            waiting = tuple(pending[ref.uid] for ref in slot.pods if ref.uid in pending)
            self.lost_instances.append(
                LostInstance(slot=slot, instance=instance, node=node, waiting_pods=waiting)
            )
            self._ports.ledger.drop_slot(slot, self._lease.value)

    def _make_node(
        self,
        slot: Slot,
        instance: Instance,
        owner: Provisioner | None,
        instance_types: Mapping[str, InstanceType],
    ) -> Node | _NoNode | None:
        """Create the Node of one instance; None if another check is needed."""
        manifest = node_manifest(slot, instance, owner, instance_types)
        try:
            node = self._ports.cluster.create_node(manifest)
        except (UnauthorizedError, CertificateError):
            raise
        except PermanentError as error:
            return _NoNode(why=str(error))
        if node.deletion_at is not None:
            return self._outcome_of_deleted_node(slot, node)
        if node.provider_id and node.instance_id != slot.instance_id:
            return self._outcome_of_collision(slot, node)
        try:
            return self._repair(node, manifest)
        except (ConflictError, NotFoundError):
            # Its kubelet writes at the same time, or it was deleted: the next call creates it
            # again.
            return None

    def _drop(self, slot: Slot, owner: Provisioner | None, outcome: _NoNode) -> None:
        """Free the pods of an instance without a node; sweep terminates it if that was refused."""
        self._ports.ledger.drop_slot(slot, self._lease.value)
        if outcome.why:
            text = f"the Node of {slot.instance_id} is refused, it is terminated: {outcome.why}"
            named = owner or Provisioner(name=slot.provisioner)
            EventRecorder(self._ports).record([event_on(named, "NodeRefused", text)])

    def _outcome_of_collision(self, slot: Slot, node: Node) -> _NoNode | None:
        """Do not change the Node of another instance that has the name of a new one.

        A Node of Dovetail is deleted once its terminated instance, whose address was reused, is
        gone. If the Node is another's, or stays, the new instance is terminated: two networks have
        the same addresses.
        """
        waited = self._ports.clock.now() - slot.launched_at
        if not node.is_ours or waited > self._policy.registration_timeout:
            return _NoNode(why=f"node {node.name} is of another instance, {node.provider_id}")
        return None

    def _outcome_of_deleted_node(self, slot: Slot, node: Node) -> _NoNode | None:
        """Do not change a Node that is being deleted; no pod is bound to it, as it may never run.

        The drain of a Node of Dovetail terminates the instance as well, so its pods can be planned
        again. Any other Node no longer accepts a finalizer: once it is gone, it is created again.
        """
        return _NoNode() if node.is_ours and node.instance_id == slot.instance_id else None

    def _start_timers(self, node: Node, owner: Provisioner | None) -> None:
        now = self._ports.clock.now()
        timeout = node.registration_timeout(self._policy.registration_timeout)
        start(self._ports, TimerKind.REGISTRATION, node, node.created_at or now, timeout)
        if owner is not None:
            start_expiration(self._ports, node, owner, now)

    def _repair(self, node: Node, manifest: NodeManifest) -> Node:
        """Add what is missing to a Node that the kubelet created first.

        Startup taints are not added, except Dovetail's own: the kubelet registered with them, and
        their controllers may have removed them already. The owner's taints are not added if a label
        of the Node forbids it.
        """
        missing = {k: v for k, v in manifest.labels.items() if node.labels.get(k) != v}
        finalizers = tuple(sorted({*node.finalizers, *manifest.finalizers}))
        if node.is_ours and not missing and node.provider_id:
            return node
        owner, kept = manifest.owner, node.labels.get(keys.DO_NOT_SYNC_TAINTS) == "true"
        lasting = () if owner is None or kept else owner.taints
        ours = tuple(taint for taint in manifest.taints if taint.key in keys.CLOSING_TAINTS)
        change = NodeChange(
            set_labels=missing,
            set_annotations=dict(manifest.annotations),
            add_taints=() if node.is_ours or node.is_open else (*lasting, *ours),
            finalizers=finalizers,
            provider_id=None if node.provider_id else manifest.provider_id,
            owner=None if owner is None or owner.uid in node.owners else owner,
        )
        return self._ports.cluster.change_node(node, change)

    def _bind_early(
        self, made: Sequence[tuple[Slot, Node]], pending: Mapping[str, Pod]
    ) -> Mapping[str, Sequence[PodRef]]:
        """Bind the pods for which that is safe; return the pods that still wait, by slot name.

        The pods of a Ready Node are left to the bind function: it may have read the Node before a
        startup taint was removed, and may open it for kube-scheduler without them at any moment.

        For one invocation timeout, an earlier invocation of provision that read the Node before it
        was Ready may still bind them. Until then their slot is not in the result: bind keeps the
        Node closed as long as the slot lacks the Node's name, unless it binds all of the pods
        itself.
        """
        bindings: list[tuple[Pod, str]] = []
        unbound: dict[str, list[PodRef]] = {}
        now = self._ports.clock.now()
        for slot, node in made:
            waiting = {ref: pending[ref.uid] for ref in slot.pods if ref.uid in pending}
            early = self._policy.binding_policy == BindingPolicy.EARLY and not slot.opened
            safe = {ref: pod for ref, pod in waiting.items() if early and may_bind(pod, node)}
            if safe and node.ready is True:
                if now - (node.ready_changed_at or now) <= self._policy.invocation_timeout:
                    continue
                safe = {}
            bindings += [(pod, node.name) for pod in safe.values()]
            unbound[slot.name] = [ref for ref in waiting if ref not in safe]
        # A pod that this call does not bind is gone, or another scheduler has bound it.
        self._ports.cluster.bind_all(bindings)
        return unbound

    def _save_slot(self, slot: Slot, node: Node, unbound: Sequence[PodRef]) -> None:
        # A slot that bind has completed meanwhile stays deleted.
        self._ports.ledger.change_slot(
            replace(slot, node_name=node.name, pods=tuple(unbound), bound=not unbound)
        )

    def _wake_bind(self, nodes: Sequence[Node]) -> None:
        """Invoke bind for nodes that are Ready already: no later change of theirs would do so."""
        ready = [node.name for node in nodes if node.ready is True and not node.is_initialized]
        if ready:
            self._ports.outbox.invoke_bind(self._ports.cluster.name, ready)


def _owner_of(slot: Slot, owners: Mapping[str, Provisioner]) -> Provisioner | None:
    """Return the owner of a slot, None if it is gone or another owner has its name now."""
    owner = owners.get(slot.provisioner)
    named = owner is not None and slot.labels.get(owner.owner_label) == owner.name
    return owner if named else None


def node_manifest(
    slot: Slot,
    instance: Instance,
    owner: Provisioner | None,
    instance_types: Mapping[str, InstanceType],
) -> NodeManifest:
    """Return the Node object of a launched instance.

    It has the planned amounts of the resources that every node has. The kubelet admits pods against
    the Node that it reads, even before it writes its first status: without these amounts it would
    reject all pods. Devices are left to their plugins.

    Source: https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/kubelet/lifecycle/predicate.go
    and https://github.com/kubernetes/kubernetes/pull/142234 (2026-11-22).
    """
    instance_type = instance_types.get(slot.offering.instance_type)
    named = owner or former_owner(slot)
    return NodeManifest(
        name=instance.private_dns_name,
        labels={
            **(instance_type.labels if instance_type is not None else {}),
            **slot.labels,
            keys.REGION: region_of(slot.offering.zone),
            keys.HOSTNAME: instance.private_dns_name,
        },
        annotations=_annotations(slot, instance, owner),
        taints=node_taints(named or Provisioner(name=slot.provisioner)),
        finalizers=(keys.TERMINATION_FINALIZER,),
        provider_id=instance.provider_id,
        owner=named,
        capacity=slot.capacity.only(PLAIN),
        allocatable=slot.allocatable.only(PLAIN),
    )


def _future_node(
    slot: Slot,
    instance: Instance,
    owner: Provisioner | None,
    instance_types: Mapping[str, InstanceType],
) -> Node:
    """Return the node that an instance would become, which does not exist in the API server."""
    manifest = node_manifest(slot, instance, owner, instance_types)
    return Node(
        name=manifest.name,
        uid="",
        labels=manifest.labels,
        annotations=manifest.annotations,
        provider_id=manifest.provider_id,
    )


def _annotations(slot: Slot, instance: Instance, owner: Provisioner | None) -> dict[str, str]:
    ours = {
        keys.SLOT: slot.name,
        keys.IMAGE_ID: instance.image_id,
        keys.PRICE: str(slot.price_micros_per_hour or ""),
        keys.REPLACES: slot.replaces,
    }
    written = {key: text for key, text in ours.items() if text}
    if owner is None:
        return {**written, **slot.stamp}
    return {**owner.annotations, **written, **(slot.stamp or launch_stamp(owner))}


def region_of(zone: str) -> str:
    """Return the Region of a zone, including Local Zones.

    Example:
        >>> region_of("us-east-1a"), region_of("us-west-2-lax-1a")
        ('us-east-1', 'us-west-2')
    """
    found = re.match(r"[a-z]+(?:-[a-z]+)+-\d+", zone)
    return found.group() if found else zone

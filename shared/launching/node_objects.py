"""Making Node objects for launched machines, and binding what may be bound at once."""

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from shared.disruption.drift import launch_stamp
from shared.events.group_events import launched_group
from shared.events.node_events import event_on
from shared.events.recorder import EventRecorder
from shared.launching.lease import HeldLease
from shared.launching.slots import former_owner
from shared.launching.verdicts import Death
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
from shared.node_templates.taints import node_taints
from shared.ports import ClusterPorts, NodeChange, NodeManifest
from shared.scheduling.binding import may_bind
from shared.timers.timers import start_expiration, start_registration

# The Nodes made before the time and the lease are looked at: about two seconds of work.
_PART: Final = 80


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _NoNode:
    """That a machine becomes no node: its slot is dropped.

    Attributes:
        why: Empty where the drain of its Node terminates it.
    """

    why: str = ""


class NodeMaker:
    """Turns filled slots into Node objects with their first pods.

    Attributes:
        deaths: Machines that ended before they were nodes, as far as seen.
        started: Provisioners for whose machines Nodes were made.
    """

    def __init__(self, ports: ClusterPorts, lease: HeldLease, policy: LaunchPolicy) -> None:
        self._ports = ports
        self._lease = lease
        self._policy = policy
        self.deaths: list[Death] = []
        self.started: set[str] = set()

    def make(
        self,
        slots: Sequence[Slot],
        provisioners: Mapping[str, Provisioner],
        instance_types: Mapping[str, InstanceType],
        pending: Mapping[str, Pod],
        *,
        goes_on: Callable[[], bool],
    ) -> int:
        """Make the Node of every slot that has none, as far as EC2 shows its machine running.

        Not earlier: the cloud controller deletes a Node whose machine EC2 does not show, which
        may happen in the first seconds after a launch.

        Some at a time, and several of these at the same time: of each part first all Nodes, then
        all bindings, then the timers, as pods wait for the first two. Of each node comes last the
        name in the slot, which says that all of it is done.

        Args:
            pending: Unbound pods by uid.
            goes_on: Returns whether to make another part now; the rest is left to the next call.

        Returns:
            How many slots ask for another look soon: their machine does not run yet, their turn
            has not come, or it died and their pods are free to be planned again.
        """
        without = [slot for slot in slots if not slot.node_name]
        shown = {
            instance.instance_id: instance
            for instance in self._ports.cloud.instances([slot.instance_id for slot in without])
        }
        # What is not shown yet must not hold back what is.
        without.sort(key=lambda slot: slot.instance_id not in shown)
        look_again = 0
        done: list[tuple[Slot, Node]] = []
        try:
            for start in range(0, len(without), _PART):
                if start and not goes_on():
                    look_again += len(without) - start
                    break
                part = without[start : start + _PART]
                look_again += self._make(part, shown, provisioners, instance_types, pending, done)
        finally:
            if done:
                EventRecorder(self._ports).record_each(*launched_group(done, provisioners))
        return look_again

    def _make(
        self,
        slots: Sequence[Slot],
        shown: Mapping[str, Instance],
        provisioners: Mapping[str, Provisioner],
        instance_types: Mapping[str, InstanceType],
        pending: Mapping[str, Pod],
        done: list[tuple[Slot, Node]],
    ) -> int:
        running, look_again = self._running(slots, shown, provisioners, instance_types, pending)

        def make(one: tuple[Slot, Instance]) -> Node | _NoNode | None:
            return self._make_node(*one, _owner_of(one[0], provisioners), instance_types)

        outcomes = list(zip(running, self._ports.crew.each(make, running), strict=True))
        made = [(slot, node) for (slot, _), node in outcomes if isinstance(node, Node)]
        self.started |= {slot.provisioner for slot, _ in made}
        left = self._bind_early(made, pending)
        complete = [(slot, node) for slot, node in made if slot.name in left]
        look_again += len(running) - len(complete)

        def write_down(one: tuple[Slot, Node]) -> None:
            slot, node = one
            self._lease.keep()
            self._start_timers(node, _owner_of(slot, provisioners))
            self._write_down(slot, node, left[slot.name])

        self._ports.crew.each(write_down, complete)
        done += complete
        self._wake_bind([node for _, node in made])
        # One after the other: each write checks the lease, and pods of good nodes come first.
        for (slot, _), outcome in outcomes:
            if isinstance(outcome, _NoNode):
                self._drop(slot, _owner_of(slot, provisioners), outcome)
        return look_again

    def _running(
        self,
        slots: Sequence[Slot],
        shown: Mapping[str, Instance],
        provisioners: Mapping[str, Provisioner],
        instance_types: Mapping[str, InstanceType],
        pending: Mapping[str, Pod],
    ) -> tuple[list[tuple[Slot, Instance]], int]:
        """Return the machines that run, and how many of the others ask for another look."""
        now = self._ports.clock.now()
        look_again = 0
        running: list[tuple[Slot, Instance]] = []
        for slot in slots:
            instance = shown.get(slot.instance_id)
            given_up = now - slot.launched_at > self._policy.registration
            if (instance is None and given_up) or (instance is not None and not instance.is_alive):
                self.deaths.append(Death(slot=slot, instance=instance))
                self._ports.ledger.drop_slot(slot, self._lease.keep())
                if instance is not None and instance.is_ending:
                    self._ports.ledger.drop_instance(slot.instance_id)
                look_again += 1
            elif slot.interrupted_at is not None:
                # EC2 ends it soon and says so; sweep terminates one that it does not end.
                if given_up:
                    self._ports.ledger.drop_slot(slot, self._lease.keep())
            elif instance is None or not (instance.is_running and instance.private_dns_name):
                if instance is not None and given_up:
                    owner = _owner_of(slot, provisioners)
                    self._give_up_late(slot, instance, owner, instance_types, pending)
                look_again += 1
            else:
                running.append((slot, instance))
        return running, look_again

    def _give_up_late(
        self,
        slot: Slot,
        instance: Instance,
        owner: Provisioner | None,
        instance_types: Mapping[str, InstanceType],
        pending: Mapping[str, Pod],
    ) -> None:
        """Free the pods of a machine that does not become a node in time; sweep terminates it."""
        node = _without_object(slot, instance, owner, instance_types)
        waited = self._ports.clock.now() - slot.launched_at
        if waited > node.joins_within(self._policy.registration):
            waiting = tuple(pending[ref.uid] for ref in slot.pods if ref.uid in pending)
            self.deaths.append(Death(slot=slot, instance=instance, node=node, waiting=waiting))
            self._ports.ledger.drop_slot(slot, self._lease.keep())

    def _make_node(
        self,
        slot: Slot,
        instance: Instance,
        owner: Provisioner | None,
        instance_types: Mapping[str, InstanceType],
    ) -> Node | _NoNode | None:
        """Make the Node of one machine; None when another look is needed."""
        manifest = node_manifest(slot, instance, owner, instance_types)
        self._lease.keep()
        try:
            node = self._ports.cluster.create_node(manifest)
        except (UnauthorizedError, CertificateError):
            raise
        except PermanentError as error:
            return _NoNode(why=str(error))
        if node.deletion_at is not None:
            return self._left(slot, node)
        if node.provider_id and node.instance_id != slot.instance_id:
            return self._collided(slot, node)
        try:
            return self._repair(node, manifest)
        except (ConflictError, NotFoundError):
            # Its kubelet writes at the same time, or it was deleted: it is made again.
            return None

    def _drop(self, slot: Slot, owner: Provisioner | None, outcome: _NoNode) -> None:
        """Free the pods of a machine that becomes no node; sweep terminates a refused one."""
        self._ports.ledger.drop_slot(slot, self._lease.keep())
        if outcome.why:
            text = f"the Node of {slot.instance_id} is refused, it is terminated: {outcome.why}"
            named = owner or Provisioner(name=slot.provisioner)
            EventRecorder(self._ports).record([event_on(named, "NodeRefused", text)])

    def _collided(self, slot: Slot, node: Node) -> _NoNode | None:
        """Do not change the Node of another instance that has the name of a new one.

        A Node of Dovetail is deleted once its terminated instance, whose address was reused, is
        gone. For any other, and for one that stays, the new instance is terminated: two networks
        have the same addresses.
        """
        waited = self._ports.clock.now() - slot.launched_at
        if not node.is_ours or waited > self._policy.registration:
            return _NoNode(why=f"node {node.name} is of another instance, {node.provider_id}")
        return None

    def _left(self, slot: Slot, node: Node) -> _NoNode | None:
        """Do not change a Node that is being deleted; no pod is bound to it, as it may never run.

        The drain of a Node of Dovetail terminates the machine as well, so that its pods can be
        planned again. Any other accepts no finalizer any more: once it is gone it is made again.
        """
        return _NoNode() if node.is_ours and node.instance_id == slot.instance_id else None

    def _start_timers(self, node: Node, owner: Provisioner | None) -> None:
        now = self._ports.clock.now()
        start_registration(self._ports, node, self._policy.registration, now)
        if owner is not None:
            start_expiration(self._ports, node, owner, now)

    def _repair(self, node: Node, manifest: NodeManifest) -> Node:
        """Give a Node that a kubelet made first what it lacks.

        Taints that are removed while a node starts are left out, except Dovetail's own: the kubelet
        registered with them, and their controllers may have removed them already. The owner's
        taints are left out on a Node whose label says so.
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
        """Bind the pods for which that is safe; return who is still waiting, by slot name.

        The pods of a Node that is Ready are left to bind: it may have read the Node before a
        startup taint was removed, and open it for kube-scheduler without them at any moment.

        Until an invocation later an earlier provision, which read the Node before that, may still
        be binding them. Their slot is not in what is returned: bind keeps the Node closed, unless
        it binds all of them itself, as long as the slot lacks the Node's name.
        """
        bindings: list[tuple[Pod, str]] = []
        left: dict[str, list[PodRef]] = {}
        now = self._ports.clock.now()
        for slot, node in made:
            waiting = {ref: pending[ref.uid] for ref in slot.pods if ref.uid in pending}
            early = self._policy.binding == BindingPolicy.EARLY and not slot.opened
            safe = {ref: pod for ref, pod in waiting.items() if early and may_bind(pod, node)}
            if safe and node.ready is True:
                if now - (node.ready_changed_at or now) <= self._policy.invocation:
                    continue
                safe = {}
            bindings += [(pod, node.name) for pod in safe.values()]
            left[slot.name] = [ref for ref in waiting if ref not in safe]
        # A pod that this does not bind is gone or was bound by another scheduler.
        self._lease.keep()
        self._ports.cluster.bind_all(bindings)
        return left

    def _write_down(self, slot: Slot, node: Node, left: Sequence[PodRef]) -> None:
        # One that bind has completed meanwhile stays gone.
        self._ports.ledger.change_slot(
            dataclasses.replace(slot, node_name=node.name, pods=tuple(left), bound=not left)
        )

    def _wake_bind(self, nodes: Sequence[Node]) -> None:
        """Wake bind for nodes whose kubelet was faster than we: it says nothing new by itself."""
        ready = [node.name for node in nodes if node.ready is True and not node.is_initialized]
        if ready:
            self._ports.outbox.invoke_bind(self._ports.cluster.name, ready)


def _owner_of(slot: Slot, owners: Mapping[str, Provisioner]) -> Provisioner | None:
    """Return what a slot was launched for, None when it is gone, or its name is another's now."""
    owner = owners.get(slot.provisioner)
    named = owner is not None and slot.labels.get(owner.owner_label) == owner.name
    return owner if named else None


def node_manifest(
    slot: Slot,
    instance: Instance,
    owner: Provisioner | None,
    instance_types: Mapping[str, InstanceType],
) -> NodeManifest:
    """Return the Node object of a launched machine.

    It has the planned amounts of what every node has. The kubelet admits pods against the Node
    that it reads, also before its own first status: without them it would refuse all of them.
    Devices are left to their plugins.

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


def _without_object(
    slot: Slot,
    instance: Instance,
    owner: Provisioner | None,
    instance_types: Mapping[str, InstanceType],
) -> Node:
    """Return a machine as the node that it would become, which the API server does not have."""
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
    """Return the Region of a zone, local zones included.

    Example:
        >>> region_of("us-east-1a"), region_of("us-west-2-lax-1a")
        ('us-east-1', 'us-west-2')
    """
    found = re.match(r"[a-z]+(?:-[a-z]+)+-\d+", zone)
    return found.group() if found else zone

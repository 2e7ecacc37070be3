"""Making Node objects for launched machines, and binding what may be bound at once."""

import dataclasses
import re
from collections.abc import Mapping, Sequence

from shared.model import labels as keys
from shared.model.errors import ConflictError, NotFoundError
from shared.model.instance_types import InstanceType
from shared.model.launch import Instance, PodRef, Slot
from shared.model.nodes import Node
from shared.model.pods import Pod
from shared.model.policy import BindingPolicy, LaunchPolicy
from shared.model.provisioner import Provisioner
from shared.model.taints import Taint
from shared.ports import ClusterPorts, NodeChange, NodeManifest
from shared.scheduling.binding import binds_early
from shared.services.machine_image import boot_taints
from shared.services.timers import start_expiration, start_registration


class NodeMaker:
    """Turns filled slots into Node objects with their first pods."""

    def __init__(self, ports: ClusterPorts, policy: LaunchPolicy) -> None:
        """Prepare for one cluster."""
        self._ports = ports
        self._policy = policy

    def make(
        self,
        slots: Sequence[Slot],
        provisioners: Mapping[str, Provisioner],
        instance_types: Mapping[str, InstanceType],
        pending: Mapping[str, Pod],
    ) -> int:
        """Make the Node of every slot that has none, as far as EC2 shows the machine.

        Args:
            pending: Unbound pods by uid.

        Returns:
            How many slots must wait: their machine is not shown yet.
        """
        without = [slot for slot in slots if not slot.node_name]
        if not without:
            return 0
        shown = {
            one.instance_id: one
            for one in self._ports.cloud.instances([slot.instance_id for slot in without])
        }
        waiting = 0
        for slot in without:
            instance = shown.get(slot.instance_id)
            if instance is None or (instance.is_alive and not instance.private_dns_name):
                waiting += 1
            elif not instance.is_alive:
                # It died before it was a node: its pods are free to be planned again.
                self._ports.ledger.mark_unavailable([slot.offering], self._ports.clock.now())
                self._ports.ledger.drop_slot(slot)
            else:
                owner = provisioners.get(slot.provisioner)
                self._make_one(slot, instance, owner, instance_types, pending)
        return waiting

    def _make_one(
        self,
        slot: Slot,
        instance: Instance,
        owner: Provisioner | None,
        instance_types: Mapping[str, InstanceType],
        pending: Mapping[str, Pod],
    ) -> None:
        manifest = node_manifest(slot, instance, owner, instance_types)
        node = self._ports.cluster.create_node(manifest)
        node = self._repair(node, manifest)
        named = dataclasses.replace(slot, node_name=node.name)
        self._ports.ledger.change_slot(named)
        now = self._ports.clock.now()
        start_registration(self._ports, node, self._policy.registration, now)
        if owner is not None and owner.ttl_until_expired is not None:
            start_expiration(self._ports, node, owner.ttl_until_expired, now)
        if self._policy.binding == BindingPolicy.EARLY:
            self._bind_early(named, node, pending)

    def _repair(self, node: Node, manifest: NodeManifest) -> Node:
        """Give a Node that a kubelet made first what it lacks."""
        missing = {k: v for k, v in manifest.labels.items() if node.labels.get(k) != v}
        finalizers = tuple(sorted({*node.finalizers, *manifest.finalizers}))
        if node.is_ours and not missing and node.provider_id:
            return node
        change = NodeChange(
            set_labels=missing,
            set_annotations=dict(manifest.annotations),
            add_taints=() if node.is_initialized else manifest.taints,
            finalizers=finalizers,
            provider_id=None if node.provider_id else manifest.provider_id,
        )
        return self._ports.cluster.change_node(node, change)

    def _bind_early(self, slot: Slot, node: Node, pending: Mapping[str, Pod]) -> None:
        left: list[PodRef] = []
        for ref in slot.pods:
            pod = pending.get(ref.uid)
            if pod is None:
                continue
            if binds_early(pod) or any(
                not any(one.tolerates(taint) for one in pod.scheduling.tolerations)
                for taint in _startup_taints(node)
            ):
                left.append(ref)
                continue
            try:
                self._ports.cluster.bind(pod, node.name)
            except (ConflictError, NotFoundError):
                # Somebody was faster, or it is gone: either way it no longer waits for us.
                continue
        if tuple(left) != slot.pods:
            self._ports.ledger.change_slot(
                dataclasses.replace(slot, pods=tuple(left), bound=not left)
            )


def node_manifest(
    slot: Slot,
    instance: Instance,
    owner: Provisioner | None,
    instance_types: Mapping[str, InstanceType],
) -> NodeManifest:
    """Return the Node object of a launched machine."""
    instance_type = instance_types.get(slot.offering.instance_type)
    of_type = dict(instance_type.labels) if instance_type is not None else {}
    return NodeManifest(
        name=instance.private_dns_name,
        labels={
            **of_type,
            **slot.labels,
            keys.REGION: region_of(slot.offering.zone),
            keys.HOSTNAME: instance.private_dns_name,
        },
        annotations={
            keys.SLOT: slot.name,
        },
        taints=boot_taints(owner if owner is not None else Provisioner(name=slot.provisioner)),
        finalizers=(keys.TERMINATION_FINALIZER,),
        provider_id=instance.provider_id,
        owner=owner,
    )


def region_of(zone: str) -> str:
    """Return the Region of a zone, local zones included.

    Example:
        >>> region_of("us-east-1a"), region_of("us-west-2-lax-1a")
        ('us-east-1', 'us-west-2')
    """
    found = re.match(r"[a-z]+(?:-[a-z]+)+-\d+", zone)
    return found.group() if found else zone


def _startup_taints(node: Node) -> tuple[Taint, ...]:
    return tuple(taint for taint in node.taints if taint.key not in keys.EPHEMERAL_TAINTS)

"""Events about groups of nodes that are launched or terminated together."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from shared.model.dialect import OwnerKind, owner_kind_of
from shared.model.dollars_and_counts import counted, counted_kinds, first_names, hourly
from shared.model.ec2.launches import Slot
from shared.model.errors import AutoscalerError
from shared.model.kubernetes.nodes import Node
from shared.model.provisioner import Provisioner
from shared.nodes.events.node_events import (
    MOST_PODS,
    event_on,
    launched,
    nominated,
)
from shared.nodes.events.recorder import EventRecorder
from shared.ports import KubernetesEvent, NodePorts, Severity

_LOG: Final = logging.getLogger(__name__)


class InstanceSummary(Struct, frozen=True, kw_only=True):
    """What an Event about a group tells about one instance.

    Attributes:
        name: The name of its Node.
        kind: Of the object that `provisioner` names.
        cause: Why it is removed; empty for a launch.
    """

    name: str
    provisioner: str
    kind: OwnerKind = OwnerKind.PROVISIONER
    instance_type: str
    capacity_type: str
    price_micros_per_hour: int
    cause: str = ""


def launched_group(
    made: Sequence[tuple[Slot, Node]], provisioners: Mapping[str, Provisioner]
) -> list[KubernetesEvent]:
    """Return the Events about nodes that were created together.

    There is one on each Node, one on each Provisioner for all of its nodes, and one on each of the
    first 25 pods that are nominated to them.
    """
    kube_events = [launched(slot, node) for slot, node in made]
    for owner, group in _by_owner(map(_launched_instance, made), provisioners):
        pods = sum(len(slot.pods) for slot, _ in made if slot.provisioner == owner.name)
        text = (
            f"launched {counted(len(group), 'node')} for {counted(pods, 'pod')}: {_summary(group)}"
        )
        kube_events.append(event_on(owner, "Launched", text, severity=Severity.NORMAL))
    nominations = [(ref, slot, node) for slot, node in made for ref in slot.pods]
    return kube_events + [nominated(ref, slot, node) for ref, slot, node in nominations[:MOST_PODS]]


def terminated_group(
    instances: Iterable[InstanceSummary], provisioners: Mapping[str, Provisioner]
) -> list[KubernetesEvent]:
    """Return the Event on each Provisioner about its nodes that are being terminated."""
    kube_events = []
    for owner, group in _by_owner(instances, provisioners):
        why = ", ".join(sorted({instance.cause for instance in group if instance.cause}))
        text = f"terminated {counted(len(group), 'node')} ({why}): {_summary(group)}"
        kube_events.append(event_on(owner, "Terminated", text, severity=Severity.NORMAL))
    return kube_events


def record_terminated(ports: NodePorts, instances: Sequence[InstanceSummary]) -> None:
    """Record on each Provisioner, in one Event, which of its nodes are being terminated.

    Nothing is recorded if the API server cannot be reached: the instances end anyway.
    """
    if not instances:
        return
    try:
        provisioners, _ = ports.cluster.provisioners()
    except AutoscalerError as error:
        _LOG.warning("termination of %d nodes is not recorded: %s", len(instances), error)
        return
    owners = {owner.name: owner for owner in provisioners}
    EventRecorder(ports).record_each(*terminated_group(instances, owners))


def _launched_instance(made: tuple[Slot, Node]) -> InstanceSummary:
    slot, node = made
    return InstanceSummary(
        name=node.name,
        provisioner=slot.provisioner,
        kind=owner_kind_of(node.labels),
        instance_type=slot.offering.instance_type,
        capacity_type=slot.offering.capacity_type.value,
        price_micros_per_hour=slot.price_micros_per_hour,
    )


def _by_owner(
    instances: Iterable[InstanceSummary], provisioners: Mapping[str, Provisioner]
) -> list[tuple[Provisioner, list[InstanceSummary]]]:
    """Return the instances of each owner; one of another kind of the same name is another owner."""
    found: dict[tuple[str, OwnerKind], list[InstanceSummary]] = {}
    for instance in sorted(instances, key=lambda entry: (entry.provisioner, entry.name)):
        found.setdefault((instance.provisioner, instance.kind), []).append(instance)
    owners = []
    for (name, kind), group in found.items():
        known = provisioners.get(name)
        if known is None or known.kind != kind:
            known = Provisioner(name=name, kind=kind)
        owners.append((known, group))
    return owners


def _summary(group: Sequence[InstanceSummary]) -> str:
    """Return types, price and names of a group, as in "2 × m5.large spot, $0.0770/h; a, b"."""
    types = counted_kinds(
        f"{instance.instance_type} {instance.capacity_type}" for instance in group
    )
    price = hourly(sum(instance.price_micros_per_hour for instance in group))
    return f"{types}, {price}; {first_names(instance.name for instance in group)}"

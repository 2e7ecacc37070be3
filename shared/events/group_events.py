"""Events about groups of nodes that are launched or terminated together."""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from shared.events.node_events import (
    MICROS,
    MOST_PODS,
    counted,
    event_on,
    first_names,
    launched,
    nominated,
)
from shared.events.recorder import EventRecorder
from shared.model.ec2.launches import Slot
from shared.model.errors import AutoscalerError
from shared.model.kubernetes.nodes import Node
from shared.model.provisioner import Provisioner
from shared.ports import KubernetesEvent, NodePorts, Severity

_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What an Event about a group says of one instance.

    Attributes:
        name: Of its Node.
        cause: Why it goes; empty for a launch.
    """

    name: str
    provisioner: str
    instance_type: str
    capacity_type: str
    price_micros_per_hour: int
    cause: str = ""


def launched_group(
    made: Sequence[tuple[Slot, Node]], provisioners: Mapping[str, Provisioner]
) -> list[KubernetesEvent]:
    """Return the Events about nodes that were made together.

    That is one on each Node, one on each Provisioner for all its nodes, and one on each of the
    first pods that are nominated to them.
    """
    told = [launched(slot, node) for slot, node in made]
    for name, group in _by_provisioner(map(_launched_machine, made)).items():
        pods = sum(len(slot.pods) for slot, _ in made if slot.provisioner == name)
        text = (
            f"launched {counted(len(group), 'node')} for {counted(pods, 'pod')}: {_summary(group)}"
        )
        owner = provisioners.get(name, Provisioner(name=name))
        told.append(event_on(owner, "Launched", text, severity=Severity.NORMAL))
    nominations = [(ref, slot, node) for slot, node in made for ref in slot.pods]
    return told + [nominated(ref, slot, node) for ref, slot, node in nominations[:MOST_PODS]]


def terminated_group(
    machines: Iterable[Machine], provisioners: Mapping[str, Provisioner]
) -> list[KubernetesEvent]:
    """Return the Event on each Provisioner about its nodes that EC2 was asked to terminate."""
    told = []
    for name, group in _by_provisioner(machines).items():
        why = ", ".join(sorted({machine.cause for machine in group if machine.cause}))
        text = f"terminated {counted(len(group), 'node')} ({why}): {_summary(group)}"
        owner = provisioners.get(name, Provisioner(name=name))
        told.append(event_on(owner, "Terminated", text, severity=Severity.NORMAL))
    return told


def record_terminated(ports: NodePorts, machines: Sequence[Machine]) -> None:
    """Record on each Provisioner which of its nodes EC2 was asked to terminate, in one Event.

    Nothing is recorded while the API server cannot be asked: the instances end all the same.
    """
    if not machines:
        return
    try:
        provisioners, _ = ports.cluster.provisioners()
    except AutoscalerError as error:
        _LOG.warning("termination of %d nodes is not recorded: %s", len(machines), error)
        return
    owners = {owner.name: owner for owner in provisioners}
    EventRecorder(ports).record_each(*terminated_group(machines, owners))


def _launched_machine(made: tuple[Slot, Node]) -> Machine:
    slot, node = made
    return Machine(
        name=node.name,
        provisioner=slot.provisioner,
        instance_type=slot.offering.instance_type,
        capacity_type=slot.offering.capacity_type.value,
        price_micros_per_hour=slot.price_micros_per_hour,
    )


def _by_provisioner(machines: Iterable[Machine]) -> dict[str, list[Machine]]:
    found: dict[str, list[Machine]] = {}
    for machine in sorted(machines, key=lambda entry: (entry.provisioner, entry.name)):
        found.setdefault(machine.provisioner, []).append(machine)
    return found


def _summary(group: Sequence[Machine]) -> str:
    """Return types, price and names of a group, as in "2 × m5.large spot, $0.0770/h; a, b"."""
    kinds = Counter(f"{machine.instance_type} {machine.capacity_type}" for machine in group)
    types = ", ".join(f"{count} × {kind}" for kind, count in sorted(kinds.items()))
    price = sum(machine.price_micros_per_hour for machine in group) / MICROS
    return f"{types}, ${price:.4f}/h; {first_names(machine.name for machine in group)}"

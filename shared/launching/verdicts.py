"""What follows from EC2's refusals: told to people, and not asked for again at once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from shared.brakes.refusals import RefusalBook
from shared.brakes.runaway import subjects_of
from shared.disruption.drift import shape_hash
from shared.events.node_events import MOST_PODS, event_on
from shared.events.provisioner_conditions import (
    REFUSED_BY_EC2,
    ProvisionerConditions,
    refused_by_ec2,
)
from shared.events.recorder import EventRecorder
from shared.launching.insufficient_capacity import Verdict
from shared.launching.never_joined import note_never_joined
from shared.launching.offering_facts import Fact, note
from shared.model import labels as keys
from shared.model.ec2.fleet_errors import ErrorKind, described, is_known, kind_of_ending
from shared.model.ec2.launches import FleetError, Instance, Slot, Trial
from shared.model.ec2.refusals import STEPS, UNSUPPORTED, Refusals
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.provisioner import Provisioner
from shared.ports import ClusterPorts, KubernetesEvent, Site
from shared.snapshot.gather import Gathered

_DIED: Final = "DiedPending"
_NEVER_JOINED: Final = "NeverJoined"


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """A machine that ended before it was a node, or did not become one in time.

    Attributes:
        instance: As EC2 shows it; None when EC2 never showed it.
        node: What one would have been that EC2 has not ended, None for one that it has.
        waiting: The pods that waited for that one.
    """

    slot: Slot
    instance: Instance | None
    node: Node | None = None
    waiting: tuple[Pod, ...] = ()


class LaunchVerdicts:
    """Acts on what EC2 said to the launches of one cluster.

    Attributes:
        told: One line for each refusal, for the log.
        unknown: Refusals with a code that the table of codes does not name.
        subnets: Written down as refused.
        wait: Until the first refused Provisioner is asked again; None when none was refused.
    """

    def __init__(self, ports: ClusterPorts) -> None:
        self._ports = ports
        self._recorder = EventRecorder(ports)
        self._conditions = ProvisionerConditions(ports)
        self._book = RefusalBook(ports)
        self.told: tuple[str, ...] = ()
        self.unknown = 0
        self.subnets: frozenset[str] = frozenset()
        self.wait: timedelta | None = None

    def of_subnets(self, subnets: frozenset[str]) -> None:
        """Leave subnets out that EC2 refused, for all Provisioners of the cluster that use them."""
        fresh = subnets - self.subnets
        if fresh:
            self.subnets |= fresh
            self._book.subnets_out(sorted(fresh))

    def of_launches(
        self,
        verdicts: Mapping[str, Verdict],
        owners: Mapping[str, tuple[Provisioner, Site]],
        gathered: Gathered,
    ) -> None:
        """Act on the verdicts of some launches.

        Args:
            owners: Provisioners and their sites by name, for all that launches were made for.
            gathered: What was known before them.
        """
        for name, verdict in sorted(verdicts.items()):
            owner, site = owners[name]
            known = name in gathered.refusals.records
            if verdict.bought and known and self._book.succeeded(owner, site):
                self._conditions.active(owner)
            if verdict.unsupported:
                self._book.leave_out(owner, site, verdict.unsupported, UNSUPPORTED)
            if verdict.whole is not None and not verdict.bought:
                record = self._book.refused(
                    owner,
                    site,
                    verdict.whole,
                    frozenset(verdict.options),
                    worked=_has_nodes(owner, gathered.snapshot.nodes),
                )
                self._refused(owner, record)
            elif verdict.options:
                self._book.leave_out(owner, site, verdict.options, STEPS[-1])
            self._record(owner, verdict.errors)

    def of_deaths(
        self, deaths: Sequence[Death], owners: Mapping[str, tuple[Provisioner, Site]]
    ) -> None:
        """Act on machines that ended while pending, or did not become nodes in time.

        A client error means that the request was wrong: its Provisioner is refused. Want of
        capacity is EC2's own and shared. Whatever else it was stays with this cluster.
        """
        refused: dict[str, tuple[FleetError, list[Slot]]] = {}
        for death in deaths:
            slot, instance = death.slot, death.instance
            if death.node is not None:
                self._never_joined(slot, death.node, death.waiting)
                continue
            reason = instance.state_reason if instance is not None else ""
            kind = kind_of_ending(reason)
            if kind == ErrorKind.REFUSAL and instance is not None and slot.provisioner in owners:
                error = FleetError(code=reason, message=instance.state_message)
                refused.setdefault(slot.provisioner, (error, []))[1].append(slot)
                continue
            plain = slot.provisioner in owners and owners[slot.provisioner][0].template.is_plain
            short = kind == ErrorKind.SHORTAGE and plain
            fact = Fact.NO_CAPACITY if short else Fact.DIED_PENDING
            note(self._ports, fact, [slot.offering])
        for name, (error, slots) in sorted(refused.items()):
            owner, site = owners[name]
            options = frozenset(slot.offering for slot in slots)
            self._refused(owner, self._book.refused(owner, site, error, options))
            self._record(owner, [error])
        self._recorder.record(_died(deaths, owners))

    def _never_joined(self, slot: Slot, node: Node, waiting: Sequence[Pod]) -> None:
        trial = Trial(
            plan_id=slot.plan_id,
            launched_at=slot.launched_at,
            subjects=frozenset(subject for pod in waiting for subject in subjects_of(pod)),
            provisioners=frozenset({slot.provisioner}),
        )
        note_never_joined(self._ports, node, slot.offering, trial)

    def of_start(self, owner: Provisioner, site: Site) -> None:
        """Act on a machine that runs, where others died before."""
        if self._book.succeeded(owner, site, started=True):
            self._conditions.active(owner)

    def _refused(self, owner: Provisioner, record: Refusals) -> None:
        """Say in the condition that EC2 is not asked, and when it is asked again."""
        if record.error is None or record.until is None:
            return
        self._conditions.active(owner, refused_by_ec2(record.reason()))
        wait = record.until - self._ports.clock.now()
        self.wait = wait if self.wait is None else min(self.wait, wait)

    def _record(self, owner: Provisioner, errors: Iterable[FleetError]) -> None:
        told = tuple(described(error) for error in errors)
        self._recorder.record(event_on(owner, REFUSED_BY_EC2, text) for text in told)
        self.told += tuple(f"{owner.name}: {text}" for text in told)
        self.unknown += sum(not is_known(error.code) for error in errors)


def _has_nodes(owner: Provisioner, nodes: Iterable[Node]) -> bool:
    """Return whether there are nodes that were launched for a Provisioner as it is now."""
    shape = shape_hash(owner)
    return any(
        node.labels.get(owner.owner_label) == owner.name
        and node.annotations.get(keys.PROVISIONER_HASH) == shape
        for node in nodes
    )


def _died(
    deaths: Sequence[Death], owners: Mapping[str, tuple[Provisioner, Site]]
) -> list[KubernetesEvent]:
    """Return Events about machines that EC2 showed to have died: to Provisioners and pods."""
    events = []
    for death in deaths:
        slot, instance = death.slot, death.instance
        if instance is None:
            continue
        offering = slot.offering
        kind = _DIED if death.node is None else _NEVER_JOINED
        text = (
            f"{slot.instance_id} ({offering.instance_type}, {offering.zone}, "
            f"{offering.capacity_type.value}) {_end(instance, late=death.node is not None)}"
        )
        if slot.provisioner in owners:
            events.append(event_on(owners[slot.provisioner][0], kind, text))
        events += [event_on(ref, "FailedProvisioning", text) for ref in slot.pods]
    return events[:MOST_PODS]


def _end(instance: Instance, *, late: bool) -> str:
    """Return how a machine ended that is no node, as the end of a sentence."""
    if late and instance.is_running:
        return "has no private DNS name and is terminated: enable DNS hostnames of the VPC"
    if late:
        return "never ran and is terminated"
    reason = FleetError(code=instance.state_reason, message=instance.state_message)
    refused = kind_of_ending(reason.code) == ErrorKind.REFUSAL
    return f"ended before it joined: {described(reason) if refused else _plain(reason)}"


def _plain(reason: FleetError) -> str:
    return reason.message or reason.code or "EC2 gives no reason"

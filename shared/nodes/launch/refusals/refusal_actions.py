"""What follows from EC2's refusals: Events, conditions, and what is not requested again at once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from shared.disruption.drift import shape_hash
from shared.model import labels as keys
from shared.model.ec2.fleet_errors import (
    ErrorKind,
    describe_error,
    is_known_code,
    kind_of_state_reason,
)
from shared.model.ec2.launches import FleetError, Instance, Slot, Trial
from shared.model.ec2.refusals import RETRY_STEPS, UNSUPPORTED, Refusals
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.provisioner import Provisioner
from shared.nodes.brakes.runaway import all_subjects
from shared.nodes.events.node_events import MOST_PODS, event_on
from shared.nodes.events.provisioner_conditions import (
    REFUSED_BY_EC2,
    ProvisionerConditions,
    refused_by_ec2,
)
from shared.nodes.events.recorder import EventRecorder
from shared.nodes.launch.refusals.never_joined import save_never_joined
from shared.nodes.launch.refusals.offering_facts import OfferingFact, mark_unavailable
from shared.nodes.launch.refusals.refusal_log import OwnerRefusals
from shared.ports import ClusterPorts, KubernetesEvent, Site
from shared.snapshot.gather import Gathered
from shared.snapshot.refusal_store import RefusalStore

_DIED: Final = "DiedPending"
_NEVER_JOINED: Final = "NeverJoined"


@dataclass(frozen=True, slots=True, kw_only=True)
class LostInstance:
    """An instance that ended before its Node was created, or that could not become a node in time.

    Attributes:
        instance: As EC2 shows it; None if EC2 never showed it.
        node: The node that it would have become; None if EC2 ended the instance.
        waiting_pods: The pods that waited for that node.
    """

    slot: Slot
    instance: Instance | None
    node: Node | None = None
    waiting_pods: tuple[Pod, ...] = ()


class RefusalActions:
    """Acts on EC2's refusals of the launches of one cluster.

    Attributes:
        reported: One line for each refusal, for the log.
        unknown_codes: Number of refusals with a code that is not in the table of codes.
        refused_subnets: Subnets that are saved as refused.
        retry_in: Time until the first refused Provisioner is tried again; None if none was refused.
    """

    def __init__(self, ports: ClusterPorts) -> None:
        self._ports = ports
        self._recorder = EventRecorder(ports)
        self._conditions = ProvisionerConditions(ports)
        self._store = RefusalStore(ports)
        self.reported: tuple[str, ...] = ()
        self.unknown_codes = 0
        self.refused_subnets: frozenset[str] = frozenset()
        self.retry_in: timedelta | None = None

    def exclude_subnets(self, subnets: frozenset[str]) -> None:
        """Exclude subnets that EC2 refused, for all Provisioners of the cluster that use them."""
        fresh = subnets - self.refused_subnets
        if fresh:
            self.refused_subnets |= fresh
            self._store.exclude_subnets(sorted(fresh))

    def on_launches(
        self,
        refusals_by_owner: Mapping[str, OwnerRefusals],
        owners: Mapping[str, tuple[Provisioner, Site]],
        gathered: Gathered,
    ) -> None:
        """Act on the refusals of some launches.

        Args:
            owners: The Provisioners of these launches and their sites, by name.
            gathered: What was known before the launches.
        """
        for name, refusals in sorted(refusals_by_owner.items()):
            owner, site = owners[name]
            known = name in gathered.refusals.records
            if refusals.launched and known and self._store.save_success(owner, site):
                self._conditions.active(owner)
            if refusals.unsupported:
                self._store.exclude_offerings(owner, site, refusals.unsupported, UNSUPPORTED)
            if refusals.launch_refusal is not None and not refusals.launched:
                record = self._store.save_refusal(
                    owner,
                    site,
                    refusals.launch_refusal,
                    frozenset(refusals.refused_offerings),
                    worked=_has_nodes(owner, gathered.snapshot.nodes),
                )
                self._refused(owner, record)
            elif refusals.refused_offerings:
                self._store.exclude_offerings(
                    owner, site, refusals.refused_offerings, RETRY_STEPS[-1]
                )
            self._record(owner, refusals.errors)

    def on_lost_instances(
        self, lost_instances: Sequence[LostInstance], owners: Mapping[str, tuple[Provisioner, Site]]
    ) -> None:
        """Act on instances that ended while pending, or did not become nodes in time.

        A client error means that the request was wrong: its Provisioner is refused. Insufficient
        capacity concerns EC2 and is shared with all clusters. Any other reason stays with this
        cluster.
        """
        refused: dict[str, tuple[FleetError, list[Slot]]] = {}
        for lost_instance in lost_instances:
            slot, instance = lost_instance.slot, lost_instance.instance
            if lost_instance.node is not None:
                self._never_joined(slot, lost_instance.node, lost_instance.waiting_pods)
                continue
            reason = instance.state_reason if instance is not None else ""
            kind = kind_of_state_reason(reason)
            if kind == ErrorKind.REFUSAL and instance is not None and slot.provisioner in owners:
                error = FleetError(code=reason, message=instance.state_message)
                refused.setdefault(slot.provisioner, (error, []))[1].append(slot)
                continue
            plain = slot.provisioner in owners and owners[slot.provisioner][0].template.is_plain
            short = kind == ErrorKind.SHORTAGE and plain
            fact = OfferingFact.NO_CAPACITY if short else OfferingFact.DIED_PENDING
            mark_unavailable(self._ports, fact, [slot.offering])
        for name, (error, slots) in sorted(refused.items()):
            owner, site = owners[name]
            options = frozenset(slot.offering for slot in slots)
            self._refused(owner, self._store.save_refusal(owner, site, error, options))
            self._record(owner, [error])
        self._recorder.record(_lost_instance_events(lost_instances, owners))

    def _never_joined(self, slot: Slot, node: Node, waiting: Sequence[Pod]) -> None:
        trial = Trial(
            plan_id=slot.plan_id,
            launched_at=slot.launched_at,
            subjects=all_subjects(waiting),
            provisioners=frozenset({slot.provisioner}),
        )
        save_never_joined(self._ports, node, slot.offering, trial)

    def on_started(self, owner: Provisioner, site: Site) -> None:
        """Act on a running instance of a Provisioner whose earlier instances ended."""
        if self._store.save_success(owner, site, started=True):
            self._conditions.active(owner)

    def _refused(self, owner: Provisioner, record: Refusals) -> None:
        """Set the condition: EC2 is not called for the Provisioner, and when it is called again."""
        if record.error is None or record.until is None:
            return
        self._conditions.active(owner, refused_by_ec2(record.reason()))
        wait = record.until - self._ports.clock.now()
        self.retry_in = wait if self.retry_in is None else min(self.retry_in, wait)

    def _record(self, owner: Provisioner, errors: Iterable[FleetError]) -> None:
        texts = tuple(describe_error(error) for error in errors)
        self._recorder.record(event_on(owner, REFUSED_BY_EC2, text) for text in texts)
        self.reported += tuple(f"{owner.name}: {text}" for text in texts)
        self.unknown_codes += sum(not is_known_code(error.code) for error in errors)


def _has_nodes(owner: Provisioner, nodes: Iterable[Node]) -> bool:
    """Return whether any node was launched for a Provisioner as it is now."""
    shape = shape_hash(owner)
    return any(
        node.labels.get(owner.owner_label) == owner.name
        and node.annotations.get(keys.PROVISIONER_HASH) == shape
        for node in nodes
    )


def _lost_instance_events(
    lost_instances: Sequence[LostInstance], owners: Mapping[str, tuple[Provisioner, Site]]
) -> list[KubernetesEvent]:
    """Return Events on Provisioners and pods about lost instances that EC2 has shown."""
    events = []
    for lost_instance in lost_instances:
        slot, instance = lost_instance.slot, lost_instance.instance
        if instance is None:
            continue
        offering = slot.offering
        kind = _DIED if lost_instance.node is None else _NEVER_JOINED
        text = (
            f"{slot.instance_id} ({offering.instance_type}, {offering.zone}, "
            f"{offering.capacity_type.value}) {_end(instance, late=lost_instance.node is not None)}"
        )
        if slot.provisioner in owners:
            events.append(event_on(owners[slot.provisioner][0], kind, text))
        events += [event_on(ref, "FailedProvisioning", text) for ref in slot.pods]
    return events[:MOST_PODS]


def _end(instance: Instance, *, late: bool) -> str:
    """Return how an instance that is not a node ended, as the end of a sentence."""
    if late and instance.is_running:
        return "has no private DNS name and is terminated: enable DNS hostnames of the VPC"
    if late:
        return "never ran and is terminated"
    reason = FleetError(code=instance.state_reason, message=instance.state_message)
    refused = kind_of_state_reason(reason.code) == ErrorKind.REFUSAL
    return f"ended before it joined: {describe_error(reason) if refused else _plain(reason)}"


def _plain(reason: FleetError) -> str:
    return reason.message or reason.code or "EC2 gives no reason"

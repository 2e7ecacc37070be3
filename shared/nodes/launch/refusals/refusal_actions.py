"""What follows from EC2's refusals: Events, conditions, and what is not requested again at once."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from shared.disruption.drift import shape_hash
from shared.model import labels as keys
from shared.model.ec2.fleet_errors import (
    ErrorKind,
    describe_error,
    is_known_code,
    kind_of_state_reason,
)
from shared.model.ec2.launches import FleetError, Instance, Slot, Trial
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.provisioner import Provisioner
from shared.nodes.brakes.hold import Hold
from shared.nodes.brakes.runaway import all_subjects
from shared.nodes.events.node_events import MOST_PODS, event_on
from shared.nodes.events.provisioner_conditions import REFUSED_BY_EC2, ProvisionerConditions
from shared.nodes.events.recorder import EventRecorder
from shared.nodes.launch.refusals.offering_facts import OfferingFact, mark_unavailable
from shared.nodes.launch.refusals.refusal_log import Findings
from shared.nodes.launch.refusals.registration_health import save_never_joined
from shared.ports import ClusterPorts, KubernetesEvent, Site
from shared.snapshot.gather import Gathered, site_of
from shared.snapshot.refusals import (
    RETRY_STEPS,
    UNSUPPORTED,
    Refusals,
    refusals_of,
    save_refusals,
)


class LostInstance(Struct, frozen=True, kw_only=True):
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

    @property
    def reason(self) -> FleetError:
        """Why EC2 ended the instance; both parts are empty if EC2 gives no reason."""
        if self.instance is None:
            return FleetError(code="", message="")
        return FleetError(code=self.instance.state_reason, message=self.instance.state_message)


class RefusalActions:
    """Acts on EC2's refusals of the launches of one cluster.

    Attributes:
        reported: One line for each refusal, for the log.
        unknown_codes: Number of refusals with a code that is not in the table of codes.
        retry_at: When the first refused Provisioner is tried again; None if none was refused.
    """

    def __init__(self, ports: ClusterPorts) -> None:
        self._ports = ports
        self._recorder = EventRecorder(ports)
        self._conditions = ProvisionerConditions(ports)
        self.reported: tuple[str, ...] = ()
        self.unknown_codes = 0
        self.retry_at: datetime | None = None

    def on_launches(
        self,
        refusals_by_owner: Mapping[str, Findings],
        sites: Mapping[str, Site],
        gathered: Gathered,
    ) -> None:
        """Act on the refusals of some launches.

        Args:
            sites: The sites of the Provisioners of these launches, by name.
            gathered: What was known before the launches.
        """
        now = self._ports.clock.now()
        owners = {owner.name: owner for owner in gathered.snapshot.provisioners}
        for name, refusals in sorted(refusals_by_owner.items()):
            owner = owners[name]
            succeeded = refusals.launched and name in gathered.refusals.records
            if succeeded or refusals.unsupported or refusals.errors:
                before = refusals_of(self._ports, owner, sites[name])
                after = before.after_success(now, started=False) if succeeded else before
                after = after.with_options(refusals.unsupported, now + UNSUPPORTED)
                error = None if refusals.launched else refusals.refusal
                if error is None:
                    after = after.with_options(refusals.refused, now + RETRY_STEPS[-1])
                else:
                    shape = shape_hash(owner)
                    worked = any(
                        node.labels.get(owner.owner_label) == name
                        and node.annotations.get(keys.PROVISIONER_HASH) == shape
                        for node in gathered.snapshot.nodes
                    )
                    after = after.after_refusal(error, refusals.refused, now, worked=worked)
                self._save(owner, before, after, refused=error is not None)
            self._record(owner, refusals.errors)

    def on_lost_instances(
        self, lost_instances: Sequence[LostInstance], provisioners: Mapping[str, Provisioner]
    ) -> None:
        """Act on instances that ended while pending, or did not become nodes in time.

        A client error means that the request was wrong: its Provisioner is refused. Insufficient
        capacity concerns EC2 and is shared with all clusters. Any other reason stays with this
        cluster.
        """
        refused: dict[str, list[LostInstance]] = {}
        for lost_instance in lost_instances:
            slot, kind = lost_instance.slot, kind_of_state_reason(lost_instance.reason.code)
            owner = provisioners.get(slot.provisioner)
            if lost_instance.node is not None:
                trial = Trial(
                    plan_id=slot.plan_id,
                    launched_at=slot.launched_at,
                    subjects=all_subjects(lost_instance.waiting_pods),
                    provisioners=frozenset({slot.provisioner}),
                )
                save_never_joined(self._ports, lost_instance.node, slot.offering, trial)
            elif kind == ErrorKind.REFUSAL and owner is not None:
                refused.setdefault(owner.name, []).append(lost_instance)
            else:
                plain = owner is not None and owner.template.is_plain
                short = kind == ErrorKind.SHORTAGE and plain
                fact = OfferingFact.NO_CAPACITY if short else OfferingFact.DIED_PENDING
                mark_unavailable(self._ports, fact, [slot.offering])
        for name, lost in sorted(refused.items()):
            owner, error = provisioners[name], lost[0].reason
            before = refusals_of(self._ports, owner, site_of(self._ports, owner))
            offerings = [lost_instance.slot.offering for lost_instance in lost]
            after = before.after_refusal(error, offerings, self._ports.clock.now())
            self._save(owner, before, after, refused=True)
            self._record(owner, [error])
        self._recorder.record(_lost_instance_events(lost_instances, provisioners))

    def on_started(self, names: Collection[str], gathered: Gathered) -> None:
        """Act on running instances: end refusals that were recorded for instances that ended early.

        Args:
            names: Names of their Provisioners.
        """
        for owner in gathered.snapshot.provisioners:
            known = gathered.refusals.records.get(owner.name)
            if owner.name in names and known is not None and known.by_lost_instance:
                before = refusals_of(self._ports, owner, site_of(self._ports, owner))
                after = before.after_success(self._ports.clock.now(), started=True)
                self._save(owner, before, after)

    def _save(
        self, owner: Provisioner, before: Refusals, after: Refusals, *, refused: bool = False
    ) -> None:
        """Save what EC2 refused; set the condition if a refusal began again or has ended."""
        if after != before:
            save_refusals(self._ports, after)
        if refused and after.error is not None and after.until is not None:
            self._conditions.active(owner, Hold(reason=REFUSED_BY_EC2, text=after.reason()))
            self.retry_at = min(after.until, self.retry_at or after.until)
        elif before.error is not None and after.error is None:
            self._conditions.active(owner)

    def _record(self, owner: Provisioner, errors: Iterable[FleetError]) -> None:
        texts = tuple(describe_error(error) for error in errors)
        self._recorder.record(event_on(owner, REFUSED_BY_EC2, text) for text in texts)
        self.reported += tuple(f"{owner.name}: {text}" for text in texts)
        self.unknown_codes += sum(not is_known_code(error.code) for error in errors)


def _lost_instance_events(
    lost_instances: Sequence[LostInstance], provisioners: Mapping[str, Provisioner]
) -> list[KubernetesEvent]:
    """Return Events on Provisioners and pods about lost instances that EC2 has shown."""
    events = []
    for lost_instance in lost_instances:
        if lost_instance.instance is None:
            continue
        slot = lost_instance.slot
        offering, owner = slot.offering, provisioners.get(slot.provisioner)
        text = (
            f"{slot.instance_id} ({offering.instance_type}, {offering.zone}, "
            f"{offering.capacity_type.value}) {_end(lost_instance, lost_instance.instance)}"
        )
        if owner is not None:
            reason = "DiedPending" if lost_instance.node is None else "NeverJoined"
            events.append(event_on(owner, reason, text))
        events += [event_on(ref, "FailedProvisioning", text) for ref in slot.pods]
    return events[:MOST_PODS]


def _end(lost_instance: LostInstance, instance: Instance) -> str:
    """Return how an instance that is not a node ended, as the end of a sentence."""
    if lost_instance.node is not None and instance.is_running:
        return "has no private DNS name and is terminated: enable DNS hostnames of the VPC"
    if lost_instance.node is not None:
        return "never ran and is terminated"
    reason = lost_instance.reason
    if kind_of_state_reason(reason.code) == ErrorKind.REFUSAL:
        return f"ended before it joined: {describe_error(reason)}"
    return f"ended before it joined: {reason.message or reason.code or 'EC2 gives no reason'}"

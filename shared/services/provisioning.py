"""Provisioning: the pods that wait for capacity get it."""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from shared.model.errors import AutoscalerError, PermanentError
from shared.model.launch import PlannedNode, PodRef
from shared.model.plan import Plan
from shared.model.pods import Pod
from shared.model.policy import LaunchPolicy
from shared.model.provisioner import Provisioner
from shared.model.snapshot import ClusterSnapshot
from shared.packing.problem import PackingSettings
from shared.planning.decide import decide
from shared.ports import ClusterPorts, Happening, Severity, Site
from shared.services.gathering import Gathered, gather, site_of
from shared.services.held_lease import HeldLease
from shared.services.launch_request import LaunchGround, image_parameters, launch_groups
from shared.services.launching import Launcher, LaunchOutcome
from shared.services.node_making import NodeMaker
from shared.services.recording import record

# Rounds of one invocation: each after the first because somebody woke us meanwhile or EC2 was
# short of something. What is left after these is woken again by a message.
_MAX_ROUNDS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisionReport:
    """What one invocation did, for logs and metrics.

    Attributes:
        leading: False when somebody else holds the lease and was told to plan once more.
    """

    leading: bool = True
    rounds: int = 0
    plans: tuple[str, ...] = ()
    pods_planned: int = 0
    pods_placed: int = 0
    pods_unschedulable: int = 0
    nodes_launched: int = 0
    launches: int = 0
    cost_micros_per_hour: int = 0
    lower_bound_micros_per_hour: int = 0

    def plus(self, plan: Plan, plan_id: str) -> "ProvisionReport":
        """Return the report with one more plan counted."""
        return dataclasses.replace(
            self,
            plans=(*self.plans, plan_id),
            pods_planned=self.pods_planned + sum(len(node.pods) for node in plan.nodes),
            pods_placed=self.pods_placed + sum(len(one.pods) for one in plan.placements),
            pods_unschedulable=len(plan.unschedulable),
            cost_micros_per_hour=self.cost_micros_per_hour + plan.cost_micros_per_hour,
            lower_bound_micros_per_hour=self.lower_bound_micros_per_hour
            + plan.lower_bound_micros_per_hour,
        )


class Provisioning:
    """Plans and launches for one cluster, one invocation at a time."""

    def __init__(
        self,
        ports: ClusterPorts,
        policy: LaunchPolicy,
        settings: PackingSettings,
        new_id: Callable[[], str],
    ) -> None:
        """Prepare for one cluster.

        Args:
            new_id: Gives plan ids; sortable by time is welcome.
        """
        self._ports = ports
        self._policy = policy
        self._settings = settings
        self._new_id = new_id
        self._nodes = NodeMaker(ports, policy)

    def run(self, holder: str, deadline: datetime, *, settle: bool) -> ProvisionReport:
        """Plan until nothing is left to do, or hand over.

        Args:
            holder: Names this invocation in the lease.
            deadline: When this invocation must be over; work that would not fit is handed over
                by a message.
            settle: Whether to wait for the burst to end first (the fast lane).
        """
        if settle:
            self._settle()
        ledger, clock, name = self._ports.ledger, self._ports.clock, self._ports.cluster.name
        lease = ledger.acquire(name, holder, clock.now())
        if lease is None:
            return ProvisionReport(leading=False)
        held = HeldLease(ledger, clock, lease)
        try:
            return self._rounds(held, deadline)
        except AutoscalerError:
            # Whoever is woken next may go on at once, without waiting for the lease to expire.
            self._let_go(held)
            raise

    def _rounds(self, held: HeldLease, deadline: datetime) -> ProvisionReport:
        ledger, clock, name = self._ports.ledger, self._ports.clock, self._ports.cluster.name
        report = ProvisionReport()
        for _ in range(_MAX_ROUNDS):
            if clock.now() + self._policy.lease > deadline:
                self._ports.outbox.wake(name, timedelta(0))
                break
            report, again = self._round(held, report)
            if not again and ledger.release(held.value):
                return report
        else:
            self._ports.outbox.wake(name, self._policy.describe)
        self._let_go(held)
        return report

    def _let_go(self, held: HeldLease) -> None:
        """Release, dirty or not: a message that is sent or delivered again plans once more."""
        while not self._ports.ledger.release(held.value):
            continue

    def _settle(self) -> None:
        """Read the pending pods until the list is unchanged for a while: the burst is over."""
        clock = self._ports.clock
        started = last_change = clock.now()
        seen: tuple[str, ...] | None = None
        while clock.now() - started < self._policy.batch_max:
            now_seen = tuple(p.uid for p in self._ports.cluster.pending_pods())
            if now_seen != seen:
                seen, last_change = now_seen, clock.now()
            elif clock.now() - last_change >= self._policy.batch_idle:
                return
            clock.sleep(self._policy.poll)

    def _round(self, held: HeldLease, report: ProvisionReport) -> tuple[ProvisionReport, bool]:
        """Gather, decide, record, apply; return whether to do so again at once."""
        plan_id = self._new_id()
        gathered = gather(self._ports, plan_id)
        launcher = Launcher(self._ports, held, self._policy)
        report = dataclasses.replace(report, rounds=report.rounds + 1)
        if gathered.snapshot.intents and self._resume(launcher, gathered):
            # What was resumed is capacity now: look at the world anew.
            self._make_nodes(gathered.snapshot)
            return report, True
        plan = decide(gathered.snapshot, self._settings)
        if plan == Plan():
            self._make_nodes(gathered.snapshot)
            return report, False
        record(self._ports.decisions, plan_id, gathered.snapshot, plan, self._settings)
        report = report.plus(plan, plan_id)
        self._nominate(gathered.snapshot, plan)
        outcomes = self._launch(launcher, gathered, plan_id, plan.nodes)
        report = dataclasses.replace(
            report,
            launches=report.launches + len(outcomes),
            nodes_launched=report.nodes_launched + self._filled(plan_id),
        )
        self._make_nodes(gathered.snapshot)
        self._explain(gathered.snapshot, plan)
        return report, LaunchOutcome.SHORT in outcomes

    def _resume(self, launcher: Launcher, gathered: Gathered) -> bool:
        """Carry on with open intents; return whether any came to its end.

        One that cannot go on is ended, or it would stop every plan after it.
        """
        provisioners = {one.name: one for one in gathered.snapshot.provisioners}
        ended = False
        for intent in gathered.snapshot.intents:
            provisioner = provisioners.get(intent.provisioner) or Provisioner(
                name=intent.provisioner
            )
            try:
                ground = self._ground(provisioner, site_of(self._ports, provisioner))
                outcome = launcher.resume(ground, intent)
            except PermanentError as error:
                self._cannot_launch(provisioner, str(error))
                outcome = launcher.give_up(intent)
            ended |= outcome != LaunchOutcome.LATER
        return ended

    def _filled(self, plan_id: str) -> int:
        slots = self._ports.ledger.slots(self._ports.cluster.name)
        return sum(1 for slot in slots if slot.plan_id == plan_id)

    def _launch(
        self,
        launcher: Launcher,
        gathered: Gathered,
        plan_id: str,
        nodes: Sequence[PlannedNode],
    ) -> tuple[LaunchOutcome, ...]:
        provisioners = {one.name: one for one in gathered.snapshot.provisioners}
        grounds: dict[str, LaunchGround] = {}
        outcomes = []
        for number, group in enumerate(launch_groups(nodes)):
            name = group[0].provisioner
            try:
                if name not in grounds:
                    site = gathered.found_sites[name]
                    grounds[name] = self._ground(provisioners[name], site)
                outcomes.append(launcher.launch(grounds[name], plan_id, number, group))
            except PermanentError as error:
                # One provisioner that cannot launch must not stop the others.
                self._cannot_launch(provisioners[name], str(error))
        return tuple(outcomes)

    def _ground(self, provisioner: Provisioner, site: Site) -> LaunchGround:
        endpoint = self._ports.cloud.endpoint()
        instance_types = self._ports.catalog.instance_types()
        family = provisioner.template.ami_family
        return LaunchGround(
            cluster=self._ports.cluster.name,
            provisioner=provisioner,
            endpoint=endpoint,
            site=site,
            images=self._ports.cloud.image_ids(
                image_parameters(instance_types, family, endpoint.version)
            ),
            instance_types={one.name: one for one in instance_types},
            profile=self._ports.instance_profile,
        )

    def _make_nodes(self, snapshot: ClusterSnapshot) -> None:
        slots = self._ports.ledger.slots(self._ports.cluster.name)
        if not any(not slot.node_name for slot in slots):
            return
        types = {one.name: one for one in self._ports.catalog.instance_types()}
        provisioners = {one.name: one for one in snapshot.provisioners}
        pending = {pod.uid: pod for pod in snapshot.pending}
        if self._nodes.make(slots, provisioners, types, pending):
            self._ports.outbox.wake(self._ports.cluster.name, self._policy.describe)

    def _nominate(self, snapshot: ClusterSnapshot, plan: Plan) -> None:
        """Promise in-flight nodes the pods that were placed on them."""
        slots = {slot.name: slot for slot in snapshot.slots}
        for placement in plan.placements:
            slot = slots.get(placement.slot)
            if slot is not None:
                pods = tuple(sorted({*slot.pods, *placement.pods}))
                self._ports.ledger.change_slot(dataclasses.replace(slot, pods=pods, bound=False))

    def _explain(self, snapshot: ClusterSnapshot, plan: Plan) -> None:
        pods = {pod.uid: pod for pod in snapshot.pending}
        self._ports.cluster.happened(
            [_pod_event(pods.get(one.pod.uid), one.pod, one.reasons) for one in plan.unschedulable]
        )

    def report_provisioners(self) -> None:
        """Write into each Provisioner's status whether it can be used, and if not, why."""
        valid, invalid = self._ports.cluster.provisioners()
        for one in invalid:
            text = "; ".join(one.reasons)
            self._ports.cluster.set_provisioner_condition(
                one.name, active=False, reason="Invalid", message=text
            )
            self._ports.cluster.happened([_provisioner_event(one.name, one.uid, "Invalid", text)])
        for provisioner in valid:
            self._ports.cluster.set_provisioner_condition(
                provisioner.name, active=True, reason="Valid", message="ready to launch nodes"
            )

    def _cannot_launch(self, provisioner: Provisioner, text: str) -> None:
        self._ports.cluster.happened(
            [_provisioner_event(provisioner.name, provisioner.uid, "CannotLaunch", text)]
        )


def _pod_event(pod: Pod | None, ref: PodRef, reasons: Sequence[str]) -> Happening:
    return Happening(
        kind="Pod",
        namespace=ref.namespace,
        name=ref.name,
        uid=pod.uid if pod is not None else ref.uid,
        severity=Severity.WARNING,
        reason="FailedProvisioning",
        message="; ".join(reasons),
    )


def _provisioner_event(name: str, uid: str, reason: str, text: str) -> Happening:
    return Happening(
        kind="Provisioner",
        namespace="",
        name=name,
        uid=uid,
        severity=Severity.WARNING,
        reason=reason,
        message=text,
    )

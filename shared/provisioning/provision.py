"""Provisioning: provides capacity for pending pods."""

import contextlib
import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from shared.disruption.interrupted_pods import as_drained, with_interrupted
from shared.disruption.settings import DisruptionSettings
from shared.model.brakes import Brakes
from shared.model.ec2.launches import PlannedNode
from shared.model.errors import AutoscalerError
from shared.model.kubernetes.pods import Pod
from shared.model.plan import Plan
from shared.model.policy import LaunchPolicy
from shared.model.snapshot import ClusterSnapshot
from shared.nodes.brakes.ceilings import (
    affordable,
    ceiling_uses,
    under_ceilings,
    with_kubelet_resources,
)
from shared.nodes.brakes.hold import NO_CATALOGUE, SHADOW, held_back, hold_of, rivals_of
from shared.nodes.brakes.runaway import (
    clear_failures,
    newly_failed,
    recent_trials,
    runaways,
    save_failure,
    served_subjects,
    unusable_trials,
)
from shared.nodes.events.node_template_status import resolve_templates, write_template_statuses
from shared.nodes.events.plan_events import PlanEvents
from shared.nodes.events.provisioner_conditions import ProvisionerConditions
from shared.nodes.launch.held_lease import HeldLease
from shared.nodes.launch.intents import LaunchOutcome
from shared.nodes.leave.interrupted_slots import interrupted_nodes
from shared.packing.problem import PackingSettings
from shared.planning.decide import decide
from shared.planning.lower_bound import with_bound
from shared.planning.overdue_nodes import without_overdue
from shared.ports import ClusterPorts
from shared.provisioning.decisions.bases import DecisionWriter
from shared.provisioning.disruption_loop import DisruptionLoop
from shared.provisioning.report import ProvisionReport
from shared.provisioning.session import ProvisioningSession
from shared.provisioning.shadow_purchases import ShadowPurchases
from shared.snapshot.gather import Gathered, gather

# The most rounds of one invocation. There is another round if a wake message came meanwhile or EC2
# lacked capacity. A message wakes provision again for the rest.
_MAX_ROUNDS: Final = 10
# After this many calls that launched nothing, the pods wait for the next wake message.
_MAX_FAILED_ATTEMPTS: Final = 3
# The time reserved at the end of an invocation for what follows the last Nodes: Events and
# messages.
_LAST: Final = timedelta(seconds=30)
# Once EC2 has launched nothing, expensive instances are better than none.
_ANY_PRICE: Final = 10_000


class Provisioning:
    """Plans and launches for one cluster, one invocation at a time.

    Args:
        new_id: Returns a new plan ID, preferably sortable by time.
        brakes: Returns the cluster's brakes as they are now; None for those of the ports.
        disruption: The settings of voluntary disruption.
        writer: Writes decisions; one for the process, so that decisions share bases.
    """

    def __init__(  # noqa: PLR0913 -- one of them by keyword
        self,
        ports: ClusterPorts,
        policy: LaunchPolicy,
        settings: PackingSettings,
        new_id: Callable[[], str],
        disruption: DisruptionSettings | None = None,
        writer: DecisionWriter | None = None,
        *,
        brakes: Callable[[], Brakes] | None = None,
    ) -> None:
        settings = dataclasses.replace(settings, preference_policy=ports.preference_policy)
        self._ports = ports
        self._policy = policy
        self._settings = settings
        self._new_id = new_id
        self._brakes = brakes or (lambda: ports.brakes)
        self._events = PlanEvents(ports)
        self._conditions = ProvisionerConditions(ports)
        self._shadow_purchases = ShadowPurchases(ports, settings)
        self._writer = writer or DecisionWriter()
        self._disruption_loop = DisruptionLoop(
            ports,
            disruption or DisruptionSettings(),
            settings,
            policy.registration_timeout,
            self._writer,
            self._conditions,
        )

    def run(
        self, holder: str, deadline: datetime, *, wait_for_batch: bool, evaluate: bool = False
    ) -> ProvisionReport:
        """Plan until nothing is left to do, or hand over to another invocation.

        Args:
            holder: Names this invocation in the lease.
            deadline: When this invocation must end; work that does not fit is handed over by a
                message.
            wait_for_batch: Whether to wait first until the burst of pods ends (the fast lane).
            evaluate: Whether to evaluate all nodes once no pod waits for Dovetail.
        """
        if wait_for_batch:
            self._wait_for_batch()
        ledger, clock, name = self._ports.ledger, self._ports.clock, self._ports.cluster.name
        lease = ledger.acquire(name, holder, clock.now())
        if lease is None:
            return ProvisionReport(leading=False)
        held_lease = HeldLease(ledger, clock, lease, self._policy.lease_span)
        try:
            # Taking the lease over from an invocation that was killed may have taken long.
            held_lease.renew_if_due()
            return self._rounds(held_lease, deadline, evaluate=evaluate)
        except AutoscalerError:
            # The next invocation can start at once, without waiting for the lease to expire.
            self._release_lease(held_lease)
            raise

    def report_provisioners(self) -> None:
        """Write the status of Provisioners and AWSNodeTemplates.

        Templates are not written beside another autoscaler, which writes their status, too.
        """
        rivals = rivals_of(self._ports)
        hold = hold_of(self._ports, rivals, self._ports.catalog.problem())
        valid, invalid = self._ports.cluster.provisioners()
        resolved = {} if rivals else resolve_templates(self._ports, valid)
        self._conditions.provisioners(valid, invalid, hold, resolved)
        if not rivals:
            write_template_statuses(self._ports, valid, invalid, resolved)

    def _rounds(
        self, held_lease: HeldLease, deadline: datetime, *, evaluate: bool
    ) -> ProvisionReport:
        clock, name = self._ports.clock, self._ports.cluster.name
        session = ProvisioningSession(self._ports, held_lease, self._policy, deadline - _LAST)
        report = ProvisionReport()
        for _ in range(_MAX_ROUNDS):
            if clock.now() + self._policy.lease_span > deadline:
                self._hand_over(name, timedelta(0), evaluate=evaluate)
                break
            session.renew_lease_if_due()
            self._update_hold(session, first=not report.rounds)
            report = dataclasses.replace(report, held_back=session.held_back)
            until = deadline - self._policy.lease_span
            report, again, evaluate = self._round(session, report, until, evaluate=evaluate)
            if not again and self._ports.ledger.release(held_lease.value):
                session.plan_launcher.wake_when_due()
                return _with_launch_counts(session, report)
        else:
            self._hand_over(name, self._policy.describe_delay, evaluate=evaluate)
        session.plan_launcher.wake_when_due()
        self._release_lease(held_lease)
        return _with_launch_counts(session, report)

    def _hand_over(self, name: str, wait: timedelta, *, evaluate: bool) -> None:
        """Let another invocation continue, which evaluates all nodes if this one was to."""
        send = self._ports.outbox.evaluate if evaluate else self._ports.outbox.wake
        send(name, wait)

    def _update_hold(self, session: ProvisioningSession, *, first: bool) -> None:
        """Read brakes, rivals and catalog; update the Provisioners' conditions if needed."""
        ports = dataclasses.replace(self._ports, brakes=self._brakes())
        rivals = rivals_of(ports)
        problem = ports.catalog.problem()
        hold = hold_of(ports, rivals, problem)
        if first or hold != session.hold:
            self._conditions.hold(hold)
        session.hold, session.brakes = hold, ports.brakes
        session.held_back = held_back(ports, rivals) or (NO_CATALOGUE if problem else "")

    def _release_lease(self, held_lease: HeldLease) -> None:
        """Release the lease, dirty or not: a new or redelivered message causes another plan."""
        while not self._ports.ledger.release(held_lease.value):
            continue

    def _wait_for_batch(self) -> None:
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
            clock.sleep(self._policy.poll_interval)

    def _round(
        self,
        session: ProvisioningSession,
        report: ProvisionReport,
        until: datetime,
        *,
        evaluate: bool,
    ) -> tuple[ProvisionReport, bool, bool]:
        """Gather, decide, record and apply.

        Args:
            until: When an evaluation of all nodes must have chosen.

        Returns:
            The report, whether to run another round at once, and whether that round evaluates the
            nodes.
        """
        plan_id = self._new_id()
        gathered = gather(
            self._ports, plan_id, read_all=evaluate, each_page=session.renew_lease_if_due
        )
        self._events.left_out(gathered)
        report = dataclasses.replace(report, rounds=report.rounds + 1, notes=gathered.notes)
        interrupted = self._hand_over_interrupted(gathered.snapshot)
        if interrupted:
            if not evaluate:
                # Their pods are planned for before they are evicted: repeat with all nodes.
                return report, True, True
            drained = as_drained(gathered.snapshot, interrupted)
            gathered = dataclasses.replace(gathered, snapshot=drained)
        ended = session.resume_launches(gathered)
        if session.held_back not in ("", SHADOW):
            self._conditions.waiting(gathered.snapshot.pending)
            session.make_nodes(gathered)
            return report, False, False
        if session.held_back and evaluate:
            texts = self._shadow_purchases.record(gathered.snapshot, until)
            report = dataclasses.replace(report, shadow_purchases=texts)
        if ended:
            # Resumed launches are capacity now: gather again.
            session.make_nodes(gathered)
            return report, True, evaluate
        usable = without_overdue(gathered.snapshot, self._policy.initialization_timeout)
        snapshot, report = self._with_brakes(session, with_interrupted(usable), report)
        session.renew_lease_if_due()
        settings = self._settings
        if session.failed_attempts:
            settings = dataclasses.replace(settings, option_price_ceiling_percent=_ANY_PRICE)
        plan = decide(snapshot, settings)
        session.save_plan_time(snapshot)
        again = False
        if plan == Plan():
            session.make_nodes(gathered)
            if evaluate:
                report = self._ceilings(session, gathered.snapshot, (), report)
        else:
            session.renew_lease_if_due()
            self._writer.write(self._ports.decisions, plan_id, snapshot, plan, settings)
            report, again = self._carry_out(session, gathered, plan_id, plan, report)
            report = report.plus(with_bound(snapshot, plan), plan_id)
        if evaluate and not again and not (plan.nodes or plan.placements):
            disrupted = self._disruption_loop.run(session, gathered, self._new_id(), until)
            counted = report.nodes_disrupted + disrupted.nodes
            return dataclasses.replace(report, nodes_disrupted=counted), again, disrupted.aborted
        return report, again, evaluate and again

    def _hand_over_interrupted(self, snapshot: ClusterSnapshot) -> tuple[str, ...]:
        """Let bind drain the Nodes of instances that EC2 interrupts; return their names.

        The plan is made even if bind cannot be called now: as long as such a Node exists, sweep
        wakes provision each minute, which calls bind again.
        """
        interrupted = interrupted_nodes(self._ports, snapshot.slots)
        if interrupted:
            with contextlib.suppress(AutoscalerError):
                self._ports.outbox.invoke_bind(snapshot.cluster, interrupted)
        return interrupted

    def _carry_out(
        self,
        session: ProvisioningSession,
        gathered: Gathered,
        plan_id: str,
        plan: Plan,
        report: ProvisionReport,
    ) -> tuple[ProvisionReport, bool]:
        self._events.wider(plan)
        if session.held_back:
            self._record_shadow_plan(gathered.snapshot, plan)
            session.make_nodes(gathered)
            return report, False
        return self._apply(session, gathered, plan_id, plan, report)

    def _with_brakes(
        self, session: ProvisioningSession, snapshot: ClusterSnapshot, report: ProvisionReport
    ) -> tuple[ClusterSnapshot, ProvisionReport]:
        """Return the snapshot under all ceilings; runaway pods count as placed."""
        pending = {pod.uid: pod for pod in snapshot.pending}
        ports, name = self._ports, snapshot.cluster
        useful = served_subjects(snapshot)
        trials = clear_failures(
            ports.ledger, name, useful, recent_trials(ports.ledger, name, snapshot.taken_at)
        )
        rejected = report.pods_rejected

        def pods_on(node_name: str) -> Sequence[Pod]:
            session.renew_lease_if_due()
            return ports.cluster.pods_on(node_name)

        for found in unusable_trials(snapshot, pods_on):
            failed = dataclasses.replace(found, subjects=found.subjects - useful)
            rejected += newly_failed(failed, trials)
            trials = save_failure(ports.ledger, name, failed, trials)
        until = runaways(snapshot.pending, trials)
        self._conditions.runaways(until, pending, trials, snapshot.provisioners)
        if until:
            snapshot = dataclasses.replace(snapshot, promised=snapshot.promised | until.keys())
        report = dataclasses.replace(report, pods_runaway=len(until), pods_rejected=rejected)
        return under_ceilings(snapshot, session.brakes.ceiling), report

    def _apply(
        self,
        session: ProvisioningSession,
        gathered: Gathered,
        plan_id: str,
        plan: Plan,
        report: ProvisionReport,
    ) -> tuple[ProvisionReport, bool]:
        snapshot = gathered.snapshot
        nominated = session.nominate(snapshot, plan)
        wanted = self._without_shadowed(snapshot, with_kubelet_resources(plan.nodes))
        nodes, over = affordable(snapshot, wanted, session.brakes.ceiling)
        calls, refused = (
            session.plan_launcher.launcher.calls,
            len(session.plan_launcher.refusal_actions.reported),
        )
        outcomes = session.plan_launcher.launch(gathered, plan_id, nodes, until=session.until)
        slots = session.current_slots(snapshot, launched=bool(nodes or plan.placements))
        filled = [slot for slot in slots if slot.plan_id == plan_id]
        pending = {pod.uid: pod for pod in snapshot.pending}
        report = dataclasses.replace(
            report,
            launches=report.launches + len(outcomes),
            nodes_launched=report.nodes_launched + len(filled),
            nodes_over_ceiling=report.nodes_over_ceiling + len(over),
        )
        session.make_nodes(gathered, slots)
        session.renew_lease_if_due()
        # Pods that were set aside are planned for at once if this plan left fewer pods pending.
        resumed = bool(filled or plan.placements) and any(
            pod_left.later for pod_left in plan.unschedulable
        )
        texts = _of_pending(plan, pending)
        self._events.unschedulable(_without_later(texts) if resumed else texts, over, pending)
        self._events.cheaper(snapshot, plan, self._settings)
        session.renew_lease_if_due()
        snapshot = dataclasses.replace(snapshot, slots=slots)
        limited = {over_ceiling.node.provisioner for over_ceiling in over}
        limited.update(*(refused.limited for refused in plan.unschedulable))
        report = self._ceilings(session, snapshot, limited, report, launched=bool(outcomes))
        # Try again only if EC2 refused something new, and after few calls that launched nothing.
        learned = session.plan_launcher.launcher.calls > calls or refused < len(
            session.plan_launcher.refusal_actions.reported
        )
        short = LaunchOutcome.SHORT in outcomes and learned
        short = short and session.failed_attempts < _MAX_FAILED_ATTEMPTS
        return report, short or resumed or not nominated

    def _ceilings(
        self,
        session: ProvisioningSession,
        snapshot: ClusterSnapshot,
        limited: Collection[str],
        report: ProvisionReport,
        *,
        launched: bool = False,
    ) -> ProvisionReport:
        """Record how full the ceilings are; return the report with the fullest."""
        uses = ceiling_uses(snapshot, session.brakes.ceiling)
        if uses and launched:
            left_open = self._ports.ledger.open_intents(snapshot.cluster)
            snapshot = dataclasses.replace(snapshot, intents=left_open)
            uses = ceiling_uses(snapshot, session.brakes.ceiling)
        self._conditions.ceilings(snapshot.provisioners, uses, limited)
        fullest = max((use.percent for use in uses.values()), default=None)
        return dataclasses.replace(report, ceiling_percent=fullest)

    def _without_shadowed(
        self, snapshot: ClusterSnapshot, nodes: tuple[PlannedNode, ...]
    ) -> tuple[PlannedNode, ...]:
        """Leave out the nodes of Provisioners in shadow mode; these get an Event instead."""
        shadowed = {
            provisioner.name: provisioner
            for provisioner in snapshot.provisioners
            if provisioner.shadow
        }
        self._events.shadow([node for node in nodes if node.provisioner in shadowed], shadowed)
        return tuple(node for node in nodes if node.provisioner not in shadowed)

    def _record_shadow_plan(self, snapshot: ClusterSnapshot, plan: Plan) -> None:
        provisioners = {provisioner.name: provisioner for provisioner in snapshot.provisioners}
        pending: Mapping[str, Pod] = {pod.uid: pod for pod in snapshot.pending}
        self._events.shadow(plan.nodes, provisioners)
        self._events.unschedulable(_of_pending(plan, pending), (), pending)


def _with_launch_counts(session: ProvisioningSession, report: ProvisionReport) -> ProvisionReport:
    """Return the report with the counts of throttled, failed and refused launches."""
    launcher = session.plan_launcher.launcher
    return dataclasses.replace(
        report,
        throttled=launcher.intents.throttled,
        failed_attempts=launcher.refusals.failed_attempts + launcher.refusals.refused_attempts,
        offerings_refused=len(launcher.refusals.refused),
        refusals=session.plan_launcher.refusal_actions.reported,
        unknown_codes=session.plan_launcher.refusal_actions.unknown_codes,
    )


def _without_later(plan: Plan) -> Plan:
    """Return the plan without the reasons of pods that it set aside."""
    texts = tuple(pod_left for pod_left in plan.unschedulable if not pod_left.later)
    return dataclasses.replace(plan, unschedulable=texts)


def _of_pending(plan: Plan, pending: Mapping[str, Pod]) -> Plan:
    """Return the plan without the reasons of pods that still run on an interrupted instance."""
    texts = tuple(pod_left for pod_left in plan.unschedulable if pod_left.pod.uid in pending)
    return dataclasses.replace(plan, unschedulable=texts)

"""Provisioning: the pods that wait for capacity get it."""

import contextlib
import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from shared.brakes.ceilings import affordable, as_machines, ceiling_uses, under_ceilings
from shared.brakes.hold import NO_CATALOGUE, SHADOW, held_back, hold_of, rivals_of
from shared.brakes.runaway import (
    forgive,
    newly_failed,
    note_failure,
    runaways,
    served,
    unusable,
)
from shared.brakes.trials import recent_trials
from shared.decisions.bases import DecisionWriter
from shared.disruption.interruption import as_drained, with_interrupted
from shared.disruption.settings import DisruptionSettings
from shared.events.plan_events import PlanEvents
from shared.events.provisioner_conditions import ProvisionerConditions
from shared.launching.intents import LaunchOutcome
from shared.launching.lease import HeldLease
from shared.model.brakes import Brakes
from shared.model.ec2.launches import PlannedNode
from shared.model.errors import AutoscalerError
from shared.model.kubernetes.pods import Pod
from shared.model.plan import Plan
from shared.model.policy import LaunchPolicy
from shared.model.snapshot import ClusterSnapshot
from shared.node_lifecycle.interrupted_slots import interrupted_nodes
from shared.node_templates.status import resolve, write_template_statuses
from shared.packing.problem import PackingSettings
from shared.planning.decide import decide
from shared.planning.late_nodes import without_overdue
from shared.planning.lower_bound import with_bound
from shared.ports import ClusterPorts
from shared.provisioning.disruption import Disrupting
from shared.provisioning.planning_session import Turn
from shared.provisioning.report import ProvisionReport
from shared.provisioning.shadow_purchases import ShadowPurchases
from shared.snapshot.gather import Gathered, gather

# Rounds of one invocation: each after the first because a wake-up came meanwhile or EC2 lacked
# capacity. A message wakes provision again for the rest.
_MAX_ROUNDS: Final = 10
# After so many calls that launched nothing, the pods wait for the next wake-up.
_MAX_FAILED_ATTEMPTS: Final = 3
# What is kept of an invocation's time for what follows the last Nodes: Events and messages.
_LAST: Final = timedelta(seconds=30)
# Once EC2 launched nothing, expensive machines are better than none.
_ANY_PRICE: Final = 10_000


class Provisioning:
    """Plans and launches for one cluster, one invocation at a time.

    Args:
        new_id: Gives plan ids; sortable by time is welcome.
        brakes: Returns what people have set for the whole cluster, as it is now; None for what the
            ports say.
        disruption: How nodes are changed by choice.
        writer: Writes decisions; the process's own, so that they share bases.
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
        self._disrupting = Disrupting(
            ports,
            disruption or DisruptionSettings(),
            settings,
            policy.registration,
            self._writer,
            self._conditions,
        )

    def run(
        self, holder: str, deadline: datetime, *, settle: bool, look: bool = False
    ) -> ProvisionReport:
        """Plan until nothing is left to do, or hand over.

        Args:
            holder: Names this invocation in the lease.
            deadline: When this invocation must be over; work that would not fit is handed over
                by a message.
            settle: Whether to wait for the burst to end first (the fast lane).
            look: Whether to look over all nodes once no pod waits for us any more.
        """
        if settle:
            self._settle()
        ledger, clock, name = self._ports.ledger, self._ports.clock, self._ports.cluster.name
        lease = ledger.acquire(name, holder, clock.now())
        if lease is None:
            return ProvisionReport(leading=False)
        held = HeldLease(ledger, clock, lease, self._policy.lease)
        try:
            # To take it over from one that was killed may have taken long.
            held.keep()
            return self._rounds(held, deadline, look=look)
        except AutoscalerError:
            # The next invocation can start at once, without waiting for the lease to expire.
            self._let_go(held)
            raise

    def report_provisioners(self) -> None:
        """Write into the status of Provisioners and AWSNodeTemplates what they are good for.

        Templates are left alone beside another autoscaler, which writes into their status, too.
        """
        rivals = rivals_of(self._ports)
        hold = hold_of(self._ports, rivals, self._ports.catalog.problem())
        valid, invalid = self._ports.cluster.provisioners()
        resolved = {} if rivals else resolve(self._ports, valid)
        self._conditions.provisioners(valid, invalid, hold, resolved)
        if not rivals:
            write_template_statuses(self._ports, valid, invalid, resolved)

    def _rounds(self, held: HeldLease, deadline: datetime, *, look: bool) -> ProvisionReport:
        clock, name = self._ports.clock, self._ports.cluster.name
        turn = Turn(self._ports, held, self._policy, deadline - _LAST)
        report = ProvisionReport()
        for _ in range(_MAX_ROUNDS):
            if clock.now() + self._policy.lease > deadline:
                self._hand_over(name, timedelta(0), look=look)
                break
            turn.keep()
            self._see_what_holds(turn, first=not report.rounds)
            report = dataclasses.replace(report, held_back=turn.held_back)
            until = deadline - self._policy.lease
            report, again, look = self._round(turn, report, until, look=look)
            if not again and self._ports.ledger.release(held.value):
                turn.launches.wake_when_due()
                return _counted(turn, report)
        else:
            self._hand_over(name, self._policy.describe, look=look)
        turn.launches.wake_when_due()
        self._let_go(held)
        return _counted(turn, report)

    def _hand_over(self, name: str, wait: timedelta, *, look: bool) -> None:
        """Have another invocation go on, which looks over all nodes where this one was to."""
        send = self._ports.outbox.look if look else self._ports.outbox.wake
        send(name, wait)

    def _see_what_holds(self, turn: Turn, *, first: bool) -> None:
        """Read brakes, rivals and catalogue; tell Provisioners if the cluster is held otherwise."""
        ports = dataclasses.replace(self._ports, brakes=self._brakes())
        rivals = rivals_of(ports)
        problem = ports.catalog.problem()
        hold = hold_of(ports, rivals, problem)
        if first or hold != turn.hold:
            self._conditions.hold(hold)
        turn.hold, turn.brakes = hold, ports.brakes
        turn.held_back = held_back(ports, rivals) or (NO_CATALOGUE if problem else "")

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

    def _round(
        self, turn: Turn, report: ProvisionReport, until: datetime, *, look: bool
    ) -> tuple[ProvisionReport, bool, bool]:
        """Gather, decide, record, apply; return whether to do so again at once, and to look then.

        Args:
            until: When a look over all nodes must have chosen.
        """
        plan_id = self._new_id()
        gathered = gather(self._ports, plan_id, whole=look, keep=turn.keep)
        self._events.left_out(gathered)
        report = dataclasses.replace(report, rounds=report.rounds + 1, notes=gathered.notes)
        taken = self._hand_over_interrupted(gathered.snapshot)
        if taken:
            if not look:
                # Their pods are planned for before they are evicted: with a look at all nodes.
                return report, True, True
            drained = as_drained(gathered.snapshot, taken)
            gathered = dataclasses.replace(gathered, snapshot=drained)
        ended = turn.carry_on(gathered)
        if turn.held_back not in ("", SHADOW):
            self._conditions.waiting(gathered.snapshot.pending)
            turn.make_nodes(gathered)
            return report, False, False
        if turn.held_back and look:
            told = self._shadow_purchases.tell(gathered.snapshot, until)
            report = dataclasses.replace(report, shadow_purchases=told)
        if ended:
            # What was resumed is capacity now: look at the world anew.
            turn.make_nodes(gathered)
            return report, True, look
        usable = without_overdue(gathered.snapshot, self._policy.initialization)
        snapshot, report = self._restrained(turn, with_interrupted(usable), report)
        turn.keep()
        settings = self._settings
        if turn.failed_attempts:
            settings = dataclasses.replace(settings, option_price_ceiling_percent=_ANY_PRICE)
        plan = decide(snapshot, settings)
        turn.note_plan(snapshot)
        again = False
        if plan == Plan():
            turn.make_nodes(gathered)
            if look:
                report = self._ceilings(turn, gathered.snapshot, (), report)
        else:
            turn.keep()
            self._writer.write(self._ports.decisions, plan_id, snapshot, plan, settings)
            report, again = self._carry_out(turn, gathered, plan_id, plan, report)
            report = report.plus(with_bound(snapshot, plan), plan_id)
        if look and not again and not (plan.nodes or plan.placements):
            disrupted = self._disrupting.run(turn, gathered, self._new_id(), until)
            counted = report.nodes_disrupted + disrupted.nodes
            return dataclasses.replace(report, nodes_disrupted=counted), again, disrupted.broken_off
        return report, again, look and again

    def _hand_over_interrupted(self, snapshot: ClusterSnapshot) -> tuple[str, ...]:
        """Have bind drain Nodes of machines that EC2 takes; return their names.

        The cluster is planned for though bind cannot be called now: as long as such a Node stands,
        sweep wakes provision each minute, which calls it again.
        """
        taken = interrupted_nodes(self._ports, snapshot.slots)
        if taken:
            with contextlib.suppress(AutoscalerError):
                self._ports.outbox.invoke_bind(snapshot.cluster, taken)
        return taken

    def _carry_out(
        self,
        turn: Turn,
        gathered: Gathered,
        plan_id: str,
        plan: Plan,
        report: ProvisionReport,
    ) -> tuple[ProvisionReport, bool]:
        self._events.wider(plan)
        if turn.held_back:
            self._only_tell(gathered.snapshot, plan)
            turn.make_nodes(gathered)
            return report, False
        return self._apply(turn, gathered, plan_id, plan, report)

    def _restrained(
        self, turn: Turn, snapshot: ClusterSnapshot, report: ProvisionReport
    ) -> tuple[ClusterSnapshot, ProvisionReport]:
        """Return the snapshot under all ceilings, pods that run away counted as placed."""
        pending = {pod.uid: pod for pod in snapshot.pending}
        ports, name = self._ports, snapshot.cluster
        useful = served(snapshot)
        trials = forgive(
            ports.ledger, name, useful, recent_trials(ports.ledger, name, snapshot.taken_at)
        )
        rejected = report.pods_rejected

        def pods_on(node: str) -> Sequence[Pod]:
            turn.keep()
            return ports.cluster.pods_on(node)

        for found in unusable(snapshot, pods_on):
            failed = dataclasses.replace(found, subjects=found.subjects - useful)
            rejected += newly_failed(failed, trials)
            trials = note_failure(ports.ledger, name, failed, trials)
        until = runaways(snapshot.pending, trials)
        self._conditions.runaways(until, pending, trials, snapshot.provisioners)
        if until:
            snapshot = dataclasses.replace(snapshot, promised=snapshot.promised | until.keys())
        report = dataclasses.replace(report, pods_runaway=len(until), pods_rejected=rejected)
        return under_ceilings(snapshot, turn.brakes.ceiling), report

    def _apply(
        self,
        turn: Turn,
        gathered: Gathered,
        plan_id: str,
        plan: Plan,
        report: ProvisionReport,
    ) -> tuple[ProvisionReport, bool]:
        snapshot = gathered.snapshot
        nominated = turn.nominate(snapshot, plan)
        wanted = self._without_shadowed(snapshot, as_machines(plan.nodes))
        nodes, over = affordable(snapshot, wanted, turn.brakes.ceiling)
        calls, refused = turn.launches.launcher.calls, len(turn.launches.verdicts.told)
        outcomes = turn.launches.launch(gathered, plan_id, nodes, until=turn.until)
        slots = turn.slots(snapshot, launched=bool(nodes or plan.placements))
        filled = [slot for slot in slots if slot.plan_id == plan_id]
        pending = {pod.uid: pod for pod in snapshot.pending}
        report = dataclasses.replace(
            report,
            launches=report.launches + len(outcomes),
            nodes_launched=report.nodes_launched + len(filled),
            nodes_over_ceiling=report.nodes_over_ceiling + len(over),
        )
        turn.make_nodes(gathered, slots)
        turn.keep()
        # Deferred pods are planned for at once if this plan left fewer pods pending.
        resumed = bool(filled or plan.placements) and any(
            pod_left.later for pod_left in plan.unschedulable
        )
        told = _of_waiting(plan, pending)
        self._events.unschedulable(_without_later(told) if resumed else told, over, pending)
        self._events.cheaper(snapshot, plan, self._settings)
        turn.keep()
        snapshot = dataclasses.replace(snapshot, slots=slots)
        turned_away = {over_one.node.provisioner for over_one in over}
        turned_away.update(*(refused.limited for refused in plan.unschedulable))
        report = self._ceilings(turn, snapshot, turned_away, report, launched=bool(outcomes))
        # Something new was learned, and not too often that there is nothing.
        learned = turn.launches.launcher.calls > calls or refused < len(turn.launches.verdicts.told)
        short = LaunchOutcome.SHORT in outcomes and learned
        short = short and turn.failed_attempts < _MAX_FAILED_ATTEMPTS
        return report, short or resumed or not nominated

    def _ceilings(
        self,
        turn: Turn,
        snapshot: ClusterSnapshot,
        turned_away: Collection[str],
        report: ProvisionReport,
        *,
        launched: bool = False,
    ) -> ProvisionReport:
        """Record how full ceilings are; return the report with that of the fullest."""
        uses = ceiling_uses(snapshot, turn.brakes.ceiling)
        if uses and launched:
            left_open = self._ports.ledger.open_intents(snapshot.cluster)
            snapshot = dataclasses.replace(snapshot, intents=left_open)
            uses = ceiling_uses(snapshot, turn.brakes.ceiling)
        self._conditions.ceilings(snapshot.provisioners, uses, turned_away)
        fullest = max((use.percent for use in uses.values()), default=None)
        return dataclasses.replace(report, ceiling_percent=fullest)

    def _without_shadowed(
        self, snapshot: ClusterSnapshot, nodes: tuple[PlannedNode, ...]
    ) -> tuple[PlannedNode, ...]:
        """Leave out what Provisioners in shadow mode would buy; they are told instead."""
        shadowed = {
            provisioner.name: provisioner
            for provisioner in snapshot.provisioners
            if provisioner.shadow
        }
        self._events.shadow([node for node in nodes if node.provisioner in shadowed], shadowed)
        return tuple(node for node in nodes if node.provisioner not in shadowed)

    def _only_tell(self, snapshot: ClusterSnapshot, plan: Plan) -> None:
        provisioners = {provisioner.name: provisioner for provisioner in snapshot.provisioners}
        pending: Mapping[str, Pod] = {pod.uid: pod for pod in snapshot.pending}
        self._events.shadow(plan.nodes, provisioners)
        self._events.unschedulable(_of_waiting(plan, pending), (), pending)


def _counted(turn: Turn, report: ProvisionReport) -> ProvisionReport:
    """Return the report with what EC2 made difficult."""
    launcher = turn.launches.launcher
    return dataclasses.replace(
        report,
        throttled=launcher.book.throttled,
        failed_attempts=launcher.shortage.failed_attempts + launcher.shortage.refused_attempts,
        offerings_refused=len(launcher.shortage.refused),
        refusals=turn.launches.verdicts.told,
        unknown_codes=turn.launches.verdicts.unknown,
    )


def _without_later(plan: Plan) -> Plan:
    """Return the plan without what it says of pods that it set aside."""
    told = tuple(pod_left for pod_left in plan.unschedulable if not pod_left.later)
    return dataclasses.replace(plan, unschedulable=told)


def _of_waiting(plan: Plan, pending: Mapping[str, Pod]) -> Plan:
    """Return the plan without what it says of pods that still run, on a machine AWS takes."""
    told = tuple(pod_left for pod_left in plan.unschedulable if pod_left.pod.uid in pending)
    return dataclasses.replace(plan, unschedulable=told)

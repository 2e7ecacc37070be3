"""Provisioning: provides capacity for pending pods."""

import contextlib
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from shared.disruption.interrupted_pods import as_drained, with_interrupted
from shared.disruption.settings import DisruptionSettings
from shared.model.brakes import Brakes
from shared.model.ec2.launches import PlannedNode
from shared.model.errors import AutoscalerError
from shared.model.plan import Plan
from shared.model.policy import LaunchPolicy
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.nodes.brakes.ceilings import affordable, with_kubelet_resources
from shared.nodes.brakes.hold import SHADOW, hold_of, rivals_of
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
from shared.nodes.events.plan_events import (
    record_cheaper,
    record_left_out,
    record_shadow_plan,
    record_unschedulable,
    record_wider,
)
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
from shared.provisioning.disruption_loop import disrupt_nodes
from shared.provisioning.report import ProvisionReport
from shared.provisioning.session import ProvisioningSession
from shared.provisioning.shadow_purchases import record_shadow_purchases
from shared.snapshot.gather import Gathered, gather

# The most rounds of one invocation. There is another round if a wake message came meanwhile or EC2
# lacked capacity. A message wakes provision again for the rest.
_MAX_ROUNDS: Final = 10
# After this many calls that launched nothing, the pods wait for the next wake message.
_MAX_FAILED_ATTEMPTS: Final = 3
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
        self._ports = ports
        self._policy = policy
        self._packing = replace(settings, preference_policy=ports.preference_policy)
        self._new_id = new_id
        self._disruption = disruption or DisruptionSettings()
        self._writer = writer or DecisionWriter()
        self._brakes = brakes or (lambda: ports.brakes)

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
        ports, policy = self._ports, self._policy
        if wait_for_batch:
            _wait_for_batch(ports, policy)
        lease = ports.ledger.acquire(ports.cluster.name, holder, ports.clock.now())
        if lease is None:
            return ProvisionReport(leading=False)
        held_lease = HeldLease(ports.ledger, ports.clock, lease, policy.lease_span)
        session = ProvisioningSession(
            ports=held_lease.guard(ports),
            policy=policy,
            packing=self._packing,
            disruption=self._disruption,
            writer=self._writer,
            held_lease=held_lease,
            deadline=deadline,
            evaluate_next=evaluate,
        )
        try:
            self._run_rounds(session)
        except AutoscalerError:
            # The next invocation can start at once, without waiting for the lease to expire.
            session.release_lease()
            raise
        return session.report

    def report_provisioners(self) -> None:
        """Write the status of Provisioners and AWSNodeTemplates.

        Templates are not written beside another autoscaler, which writes their status, too.
        """
        rivals = rivals_of(self._ports)
        hold = hold_of(self._ports, rivals, self._ports.catalog.problem())
        valid, invalid = self._ports.cluster.provisioners()
        resolved = {} if rivals else resolve_templates(self._ports, valid)
        ProvisionerConditions(self._ports).provisioners(valid, invalid, hold, resolved)
        if not rivals:
            write_template_statuses(self._ports, valid, invalid, resolved)

    def _run_rounds(self, session: ProvisioningSession) -> None:
        """Run rounds until nothing is left to do, or hand over to another invocation."""
        for _ in range(_MAX_ROUNDS):
            if session.ports.clock.now() > session.decide_until:
                wait = timedelta(0)
                break
            session.update_hold(self._brakes())
            self._run_round(session)
            if not session.again and session.release_lease_if_clean():
                session.close()
                return
        else:
            wait = self._policy.describe_delay
        # The lease first: an invocation that finds it held only leaves a mark, and ends.
        session.release_lease()
        session.close()
        session.hand_over(wait)

    def _run_round(self, session: ProvisioningSession) -> None:
        """Gather, resume open launches, decide, record, launch; disrupt nodes if no pod waits."""
        session.begin_round()
        ports, plan_id = session.ports, self._new_id()
        gathered = _gather(session, plan_id)
        if gathered is None:
            session.repeat_round(evaluating=True)
            return
        closed = session.resume_launches(gathered)
        if session.held_back not in ("", SHADOW):
            session.conditions.waiting(gathered.snapshot.pending)
            session.make_nodes(gathered)
            return
        if session.held_back and session.evaluating:
            session.report.shadow_purchases = record_shadow_purchases(
                ports, session.packing, gathered.snapshot, session.decide_until
            )
        if closed:
            # Resumed launches are capacity now: gather again.
            session.make_nodes(gathered)
            session.repeat_round()
            return
        usable = without_overdue(gathered.snapshot, self._policy.initialization_timeout)
        snapshot = _under_brakes(session, with_interrupted(usable))
        packing = session.packing
        if session.plan_launcher.failed_attempts:
            packing = replace(packing, option_price_ceiling_percent=_ANY_PRICE)
        plan = decide(snapshot, packing)
        session.save_plan_time(snapshot)
        if plan != Plan():
            session.writer.write(ports.decisions, plan_id, snapshot, plan, packing)
            _carry_out(session, gathered, plan_id, plan)
            session.report.add(with_bound(snapshot, plan), plan_id)
        else:
            session.make_nodes(gathered)
            if session.evaluating:
                session.record_ceilings(gathered.snapshot)
        placed = bool(plan.nodes or plan.placements)
        if session.evaluating and not session.again and not placed:
            disrupt_nodes(session, gathered, self._new_id())


def _wait_for_batch(ports: ClusterPorts, policy: LaunchPolicy) -> None:
    """Read the pending pods until nothing has changed for a while: the burst is over.

    kube-scheduler looks at one pod after the other: while it still finds some unschedulable, the
    rest of the burst would get nodes of its own.
    """
    clock = ports.clock
    started = last_change = clock.now()
    seen: tuple[tuple[str, bool], ...] | None = None
    while clock.now() - started < policy.batch_max:
        now_seen = tuple((pod.uid, pod.unschedulable) for pod in ports.cluster.pending_pods())
        if now_seen != seen:
            seen, last_change = now_seen, clock.now()
        elif clock.now() - last_change >= policy.batch_idle:
            return
        clock.sleep(policy.poll_interval)


def _gather(session: ProvisioningSession, plan_id: str) -> Gathered | None:
    """Read the cluster, and let bind drain the Nodes of instances that EC2 interrupts.

    The plan is made even if bind cannot be called now: as long as such a Node exists, sweep wakes
    provision each minute, which calls bind again.

    Returns:
        None if nodes are interrupted and not all were read: their pods are planned for before they
        are evicted, in a round that reads all.
    """
    ports = session.ports
    gathered = gather(
        ports, plan_id, read_all=session.evaluating, each_page=session.held_lease.renew_if_due
    )
    record_left_out(ports, gathered)
    session.report.notes = gathered.notes
    snapshot = gathered.snapshot
    interrupted = interrupted_nodes(ports, snapshot.slots)
    if not interrupted:
        return gathered
    with contextlib.suppress(AutoscalerError):
        ports.outbox.invoke_bind(snapshot.cluster, interrupted)
    if not session.evaluating:
        return None
    return replace(gathered, snapshot=as_drained(snapshot, interrupted))


def _under_brakes(session: ProvisioningSession, snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """Return the snapshot under all ceilings; runaway pods count as placed."""
    pending = {pod.uid: pod for pod in snapshot.pending}
    ledger, name = session.ports.ledger, snapshot.cluster
    useful = served_subjects(snapshot)
    trials = clear_failures(ledger, name, useful, recent_trials(ledger, name, snapshot.taken_at))
    for found in unusable_trials(snapshot, session.ports.cluster.pods_on):
        failed = replace(found, subjects=found.subjects - useful)
        session.report.pods_rejected += newly_failed(failed, trials)
        whole = save_failure(ledger, name, failed)
        trials = (*(trial for trial in trials if trial.plan_id != whole.plan_id), whole)
    until = runaways(snapshot.pending, trials)
    session.conditions.runaways(until, pending, trials, snapshot.provisioners)
    session.report.pods_runaway = len(until)
    return replace(
        snapshot,
        promised=snapshot.promised | until.keys(),
        ceiling=session.brakes.ceiling,
    )


def _carry_out(session: ProvisioningSession, gathered: Gathered, plan_id: str, plan: Plan) -> None:
    """Launch a plan; in shadow mode only record what would be launched."""
    ports, snapshot = session.ports, gathered.snapshot
    record_wider(ports, plan)
    if not session.held_back:
        _launch(session, gathered, plan_id, plan)
        return
    provisioners = {provisioner.name: provisioner for provisioner in snapshot.provisioners}
    record_shadow_plan(ports, plan.nodes, provisioners)
    record_unschedulable(ports, plan.unschedulable, (), {pod.uid: pod for pod in snapshot.pending})
    session.make_nodes(gathered)


def _launch(session: ProvisioningSession, gathered: Gathered, plan_id: str, plan: Plan) -> None:
    """Launch a plan and make its Nodes; repeat the round if that places more pods at once."""
    ports, snapshot, report = session.ports, gathered.snapshot, session.report
    launcher = session.plan_launcher
    session.nominate(snapshot, plan)
    wanted = _without_shadowed(ports, snapshot, with_kubelet_resources(plan.nodes))
    nodes, over = affordable(snapshot, wanted, session.brakes.ceiling)
    known = launcher.answers
    outcomes = launcher.launch(gathered, plan_id, nodes, until=session.until)
    slots = session.current_slots(snapshot, launched=bool(nodes or plan.placements))
    filled = sum(slot.plan_id == plan_id for slot in slots)
    report.launches += len(outcomes)
    report.nodes_launched += filled
    report.nodes_over_ceiling += len(over)
    session.make_nodes(gathered, slots)
    left = plan.unschedulable
    if filled or plan.placements:
        # Pods that were set aside are planned for at once, as fewer pods are pending now.
        left = tuple(pod_left for pod_left in left if not pod_left.later)
    resumed = len(left) < len(plan.unschedulable)
    record_unschedulable(ports, left, over, {pod.uid: pod for pod in snapshot.pending})
    record_cheaper(ports, snapshot, plan, session.packing)
    limited = {over_ceiling.node.provisioner for over_ceiling in over}
    limited.update(*(pod_left.limited for pod_left in plan.unschedulable))
    session.record_ceilings(replace(snapshot, slots=slots), limited, launched=bool(outcomes))
    # Try again only if EC2 refused something new, and after few calls that launched nothing.
    learned = LaunchOutcome.SHORT in outcomes and launcher.answers > known
    if resumed or (learned and launcher.failed_attempts < _MAX_FAILED_ATTEMPTS):
        session.repeat_round()


def _without_shadowed(
    ports: ClusterPorts, snapshot: ClusterSnapshot, nodes: tuple[PlannedNode, ...]
) -> tuple[PlannedNode, ...]:
    """Leave out the nodes of Provisioners in shadow mode; these get an Event instead."""
    shadowed = {owner.name: owner for owner in snapshot.provisioners if owner.shadow}
    record_shadow_plan(ports, [node for node in nodes if node.provisioner in shadowed], shadowed)
    return tuple(node for node in nodes if node.provisioner not in shadowed)

"""One planning session of a cluster: its lease, its launches and the Nodes created for them."""

from collections.abc import Callable, Collection
from dataclasses import InitVar, dataclass, field
from datetime import datetime, timedelta
from typing import Final

from shared.disruption.settings import DisruptionSettings
from shared.model.brakes import NO_BRAKES, Brakes
from shared.model.ec2.launches import Slot
from shared.model.plan import Plan
from shared.model.policy import LaunchPolicy
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.nodes.brakes.ceilings import ceiling_uses
from shared.nodes.brakes.hold import NO_CATALOGUE, Hold, held_back, hold_of, rivals_of
from shared.nodes.events.node_events import MOST_PODS, nominated
from shared.nodes.events.provisioner_conditions import ProvisionerConditions
from shared.nodes.events.recorder import EventRecorder
from shared.nodes.join.node_objects import NodeMaker
from shared.nodes.launch.held_lease import HeldLease
from shared.nodes.launch.plan_launcher import PlanLauncher
from shared.packing.problem import PackingSettings
from shared.ports import ClusterPorts, KubernetesEvent
from shared.provisioning.decisions.bases import DecisionWriter
from shared.provisioning.report import ProvisionReport
from shared.snapshot.gather import Gathered

# The time reserved at the end of an invocation for what follows the last Nodes: Events and
# messages.
_LAST: Final = timedelta(seconds=30)
# If another plan is requested, Nodes are created for this long, or for this many times the duration
# of the plan, whichever is longer: otherwise frequent requests would leave no time for Nodes.
_NODES: Final = timedelta(seconds=15)
_TIMES_THE_PLAN: Final = 3
# Evaluations of all nodes look for requested plans so often: no pod waits long, and the load on the
# ledger stays low.
_CHECK_EVERY: Final = timedelta(seconds=1)


@dataclass(slots=True, kw_only=True)
class ProvisioningSession:
    """What one invocation works with while it holds the lease.

    Attributes:
        packing: The settings of plans.
        disruption: The settings of voluntary disruption.
        writer: Writes decisions.
        ports: Ports that renew the lease, if it is due, before each call.
        held_lease: The lease, which fences what this session writes.
        until: After this time no launch and no Node is started.
        decide_until: After this time no round and no simulation of an evaluation is started.
        evaluate_next: Whether the next round evaluates all nodes once no pod waits for Dovetail.
        evaluating: Whether this round does.
        again: Whether another round follows this one at once.
        report: The results so far.
        brakes: The cluster's brakes at the beginning of the round.
        conditions: Sets the conditions of Provisioners.
        plan_launcher: Launches plans.
    """

    ports: ClusterPorts
    policy: LaunchPolicy
    packing: PackingSettings
    disruption: DisruptionSettings
    writer: DecisionWriter
    held_lease: HeldLease
    deadline: InitVar[datetime]
    evaluate_next: bool
    evaluating: bool = False
    again: bool = False
    report: ProvisionReport = field(default_factory=ProvisionReport)
    brakes: Brakes = NO_BRAKES
    until: datetime = field(init=False)
    decide_until: datetime = field(init=False)
    conditions: ProvisionerConditions = field(init=False)
    plan_launcher: PlanLauncher = field(init=False)
    _node_maker: NodeMaker = field(init=False)
    _hold: Hold | None = field(init=False, default=None)
    _plan_took: timedelta = field(init=False, default=timedelta())

    def __post_init__(self, deadline: datetime) -> None:
        self.until = deadline - _LAST
        self.decide_until = deadline - self.policy.lease_span
        self.conditions = ProvisionerConditions(self.ports)
        self.plan_launcher = PlanLauncher(self.ports, self.held_lease, self.policy)
        self._node_maker = NodeMaker(self.ports, self.held_lease, self.policy)

    @property
    def held_back(self) -> str:
        """Why launches are forbidden, empty if they are not."""
        return self.report.held_back

    def begin_round(self) -> None:
        """Begin a round: it is the last one unless another is requested."""
        self.evaluating, self.evaluate_next, self.again = self.evaluate_next, False, False
        self.report.rounds += 1

    def repeat_round(self, *, evaluating: bool = False) -> None:
        """Run another round at once.

        Args:
            evaluating: Whether it evaluates all nodes even if this round does not.
        """
        self.again, self.evaluate_next = True, evaluating or self.evaluating

    def update_hold(self, brakes: Brakes) -> None:
        """Read what holds the cluster back; update the Provisioners' conditions if needed."""
        ports = replace(self.ports, brakes=brakes)
        rivals = rivals_of(ports)
        problem = ports.catalog.problem()
        hold = hold_of(ports, rivals, problem)
        if not self.report.rounds or hold != self._hold:
            self.conditions.hold(hold)
        self._hold, self.brakes = hold, brakes
        self.report.held_back = held_back(ports, rivals) or (NO_CATALOGUE if problem else "")

    def hand_over(self, wait: timedelta) -> None:
        """Let another invocation continue, which evaluates all nodes if this one was to."""
        outbox = self.ports.outbox
        send = outbox.evaluate if self.evaluate_next else outbox.wake
        send(self.ports.cluster.name, wait)

    def close(self) -> None:
        """Send the wake message for postponed launches, and complete the report."""
        self.plan_launcher.wake_when_due()
        launcher, actions = self.plan_launcher.launcher, self.plan_launcher.refusal_actions
        self.report.throttled = launcher.intents.throttled
        self.report.failed_attempts = (
            launcher.refusals.failed_attempts + launcher.refusals.refused_attempts
        )
        self.report.offerings_refused = len(launcher.refusals.refused)
        self.report.refusals = actions.reported
        self.report.unknown_codes = actions.unknown_codes

    def release_lease_if_clean(self) -> bool:
        """Release the lease; return False if another plan was requested, which clears the mark."""
        return self.held_lease.release()

    def release_lease(self) -> None:
        """Release the lease, dirty or not: a new or redelivered message causes another plan."""
        while not self.release_lease_if_clean():
            continue

    def renew_lease(self) -> bool:
        """Renew the lease, due or not.

        Returns:
            Whether no other plan has been requested since this one began.

        Raises:
            ConflictError: If it was lost.
        """
        return not self.held_lease.renew().dirty

    def save_plan_time(self, snapshot: ClusterSnapshot) -> None:
        """Save how long the plan of a snapshot took: it determines the time for Nodes."""
        self._plan_took = self.ports.clock.now() - snapshot.taken_at

    def current_slots(self, snapshot: ClusterSnapshot, *, launched: bool) -> tuple[Slot, ...]:
        """Return the slots as they are now; those of the snapshot if none can need a Node.

        A launch writes slots even if it is not finished, and slots without a Node are marked by
        others if EC2 interrupts the instance.

        Args:
            launched: Whether anything was launched or nominated since the snapshot, or a launch was
                tried.
        """
        known = snapshot.slots
        if launched or snapshot.intents or any(not slot.node_name for slot in known):
            return self.ports.ledger.slots(self.ports.cluster.name)
        return known

    def resume_launches(self, gathered: Gathered) -> bool:
        """Resume open launches; return whether any was closed.

        While launches are forbidden nothing more is requested, but launched instances become nodes.
        """
        if self.held_back:
            return self.plan_launcher.abandon(gathered)
        return self.plan_launcher.resume(gathered, self.until)

    def make_nodes(self, gathered: Gathered, slots: tuple[Slot, ...] | None = None) -> None:
        """Create the Nodes of launched instances, as far as EC2 shows them.

        Thousands of Nodes take minutes. The work stops before the end of the invocation, and if
        another plan has been requested and the time for Nodes is over. The rest follows later.

        Args:
            slots: The slots as they are now; None if this session only resumed launches since the
                snapshot.
        """
        snapshot = gathered.snapshot
        if slots is None:
            slots = self.current_slots(snapshot, launched=False)
        if not any(not slot.node_name for slot in slots):
            return
        types = {
            instance_type.name: instance_type
            for instance_type in self.ports.catalog.instance_types()
        }
        provisioners = {provisioner.name: provisioner for provisioner in snapshot.provisioners}
        pending = {pod.uid: pod for pod in snapshot.pending}
        if self._node_maker.make(
            slots, provisioners, types, pending, may_continue=self._may_continue()
        ):
            self.ports.outbox.wake(self.ports.cluster.name, self.policy.describe_delay)
        lost_instances, self._node_maker.lost_instances = self._node_maker.lost_instances, []
        self.plan_launcher.refusal_actions.on_lost_instances(lost_instances, provisioners)
        self.plan_launcher.refusal_actions.on_started(
            self._node_maker.started_provisioners
            - {lost_instance.slot.provisioner for lost_instance in lost_instances},
            gathered,
        )

    def _may_continue(self) -> Callable[[], bool]:
        """Return a function that returns whether to create more Nodes; its time starts now."""
        clock = self.ports.clock
        enough = clock.now() + max(_NODES, _TIMES_THE_PLAN * self._plan_took)

        def may_continue() -> bool:
            wanted = self.renew_lease() or clock.now() < enough
            return wanted and clock.now() < self.until

        return may_continue

    def may_evaluate(self) -> Callable[[], bool]:
        """Return a function that returns whether an evaluation of all nodes may continue.

        It renews the lease each second. Pending pods come first: if another plan is requested, the
        evaluation ends and the next round repeats it.
        """
        clock = self.ports.clock
        checked_at = clock.now()

        def may_continue() -> bool:
            nonlocal checked_at
            now = clock.now()
            if now - checked_at >= _CHECK_EVERY:
                checked_at = now
                self.evaluate_next |= not self.renew_lease()
            return not self.evaluate_next and now < self.decide_until

        return may_continue

    def record_ceilings(
        self, snapshot: ClusterSnapshot, limited: Collection[str] = (), *, launched: bool = False
    ) -> None:
        """Record how full the ceilings are, on Provisioners and in the report.

        Args:
            limited: Provisioners whose limits exclude pending pods.
            launched: Whether a launch was tried since the snapshot.
        """
        uses = ceiling_uses(snapshot, self.brakes.ceiling)
        if uses and launched:
            left_open = self.ports.ledger.open_intents(snapshot.cluster)
            snapshot = replace(snapshot, intents=left_open)
            uses = ceiling_uses(snapshot, self.brakes.ceiling)
        self.conditions.ceilings(snapshot.provisioners, uses, limited)
        self.report.ceiling_percent = max((use.percent for use in uses.values()), default=None)

    def nominate(self, snapshot: ClusterSnapshot, plan: Plan) -> None:
        """Nominate to in-flight nodes the pods that the plan places on them.

        If one of the slots was changed meanwhile, another round plans again.

        The version of the slot fences a stale holder of the lease: all versions are incremented
        when an expired lease is acquired. A transaction with the lease would check nothing more, at
        three times the price, for each pod that arrives alone.
        """
        slots = {slot.name: slot for slot in snapshot.slots}
        nodes = {node.name: node for node in snapshot.nodes}
        kube_events: list[KubernetesEvent] = []
        for placement in plan.placements:
            slot = slots.get(placement.slot)
            if slot is not None:
                pods = tuple(sorted({*slot.pods, *placement.pods}))
                promised = replace(slot, pods=pods, bound=False)
                if self.ports.ledger.change_slot(promised):
                    node = nodes.get(slot.node_name)
                    kube_events += [nominated(ref, slot, node) for ref in placement.pods]
                else:
                    self.repeat_round()
        EventRecorder(self.ports).record_each(*kube_events[:MOST_PODS])

"""One planning session of a cluster: its lease, its launches and the Nodes created for them."""

import dataclasses
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from shared.model.brakes import NO_BRAKES
from shared.model.ec2.launches import Slot
from shared.model.plan import Plan
from shared.model.policy import LaunchPolicy
from shared.model.snapshot import ClusterSnapshot
from shared.nodes.brakes.hold import Hold
from shared.nodes.events.node_events import MOST_PODS, nominated
from shared.nodes.events.recorder import EventRecorder
from shared.nodes.join.node_objects import NodeMaker
from shared.nodes.launch.held_lease import HeldLease
from shared.nodes.launch.plan_launcher import PlanLauncher
from shared.ports import ClusterPorts, KubernetesEvent
from shared.snapshot.gather import Gathered

# If another plan is requested, Nodes are created for this long, or for this many times the duration
# of the plan, whichever is longer: otherwise frequent requests would leave no time for Nodes.
_NODES: Final = timedelta(seconds=15)
_TIMES_THE_PLAN: Final = 3


class ProvisioningSession:
    """What one invocation works with while it holds the lease.

    Attributes:
        plan_launcher: Launches plans.
        until: After this time no launch and no Node is started.
        brakes: The cluster's brakes at the beginning of the round.
        hold: The hold that Provisioners show, None if nothing holds the cluster back.
        held_back: Why launches are forbidden, empty if they are not.
    """

    def __init__(
        self,
        ports: ClusterPorts,
        held_lease: HeldLease,
        policy: LaunchPolicy,
        until: datetime,
    ) -> None:
        self._ports = ports
        self._held_lease = held_lease
        self._policy = policy
        self._node_maker = NodeMaker(ports, held_lease, policy)
        self.plan_launcher = PlanLauncher(ports, held_lease, policy)
        self.until = until
        self.brakes = NO_BRAKES
        self.hold: Hold | None = None
        self.held_back = ""
        self._plan_took = timedelta()

    @property
    def failed_attempts(self) -> int:
        """The number of calls so far that launched nothing."""
        return self.plan_launcher.launcher.refusals.failed_attempts

    def renew_lease_if_due(self) -> None:
        """Renew the lease if less than half of it is left; called while much is read.

        Raises:
            ConflictError: If it was lost.
        """
        self._held_lease.renew_if_due()

    def renew_lease(self) -> bool:
        """Renew the lease before something that only its holder may start.

        Returns:
            Whether no other plan has been requested since this one began.

        Raises:
            ConflictError: If it was lost.
        """
        return not self._held_lease.renew().dirty

    def save_plan_time(self, snapshot: ClusterSnapshot) -> None:
        """Save how long the plan of a snapshot took: it determines the time for Nodes."""
        self._plan_took = self._ports.clock.now() - snapshot.taken_at

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
            return self._ports.ledger.slots(self._ports.cluster.name)
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
            for instance_type in self._ports.catalog.instance_types()
        }
        provisioners = {provisioner.name: provisioner for provisioner in snapshot.provisioners}
        pending = {pod.uid: pod for pod in snapshot.pending}
        if self._node_maker.make(
            slots, provisioners, types, pending, may_continue=self._may_continue()
        ):
            self._ports.outbox.wake(self._ports.cluster.name, self._policy.describe_delay)
        lost_instances, self._node_maker.lost_instances = self._node_maker.lost_instances, []
        self.plan_launcher.refusal_actions.on_lost_instances(lost_instances, provisioners)
        self.plan_launcher.refusal_actions.on_started(
            self._node_maker.started_provisioners
            - {lost_instance.slot.provisioner for lost_instance in lost_instances},
            gathered,
        )

    def _may_continue(self) -> Callable[[], bool]:
        """Return a function that returns whether to create more Nodes; its time starts now."""
        clock = self._ports.clock
        enough = clock.now() + max(_NODES, _TIMES_THE_PLAN * self._plan_took)

        def may_continue() -> bool:
            wanted = self.renew_lease() or clock.now() < enough
            return wanted and clock.now() < self.until

        return may_continue

    def nominate(self, snapshot: ClusterSnapshot, plan: Plan) -> bool:
        """Nominate to in-flight nodes the pods that the plan places on them.

        The version of the slot fences a stale holder of the lease: all versions are incremented
        when an expired lease is acquired. A transaction with the lease would check nothing more, at
        three times the price, for each pod that arrives alone.

        Returns:
            False if one of the slots was changed meanwhile: plan again.
        """
        slots = {slot.name: slot for slot in snapshot.slots}
        nodes = {node.name: node for node in snapshot.nodes}
        kube_events: list[KubernetesEvent] = []
        done = True
        for placement in plan.placements:
            slot = slots.get(placement.slot)
            if slot is not None:
                pods = tuple(sorted({*slot.pods, *placement.pods}))
                promised = dataclasses.replace(slot, pods=pods, bound=False)
                self._held_lease.renew_if_due()
                if self._ports.ledger.change_slot(promised):
                    node = nodes.get(slot.node_name)
                    kube_events += [nominated(ref, slot, node) for ref in placement.pods]
                else:
                    done = False
        EventRecorder(self._ports).record_each(*kube_events[:MOST_PODS])
        return done

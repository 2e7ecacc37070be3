"""One turn at planning for a cluster: its lease, its launches, the Nodes they become."""

import dataclasses
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from shared.brakes.hold import Hold
from shared.events.node_events import MOST_PODS, nominated
from shared.events.recorder import EventRecorder
from shared.launching.lease import HeldLease
from shared.launching.node_objects import NodeMaker
from shared.launching.plan import PlanLauncher
from shared.model.brakes import NO_BRAKES
from shared.model.ec2.launches import Slot
from shared.model.plan import Plan
from shared.model.policy import LaunchPolicy
from shared.model.snapshot import ClusterSnapshot
from shared.ports import ClusterPorts, KubernetesEvent
from shared.snapshot.gather import Gathered

# When another plan is requested, Nodes are made for so long, or for so many times the time that
# the plan took, whichever is longer: otherwise frequent requests would leave no time for Nodes.
_NODES: Final = timedelta(seconds=15)
_TIMES_THE_PLAN: Final = 3


class Turn:
    """What one invocation works with while it holds the lease.

    Attributes:
        launches: Carries plans out.
        until: When the last launches and Nodes are begun.
        brakes: What people have set for the whole cluster, at the beginning of the round.
        hold: What Provisioners say of that, None when nothing holds the cluster back.
        held_back: Why nothing may be launched on principle, empty when it may.
    """

    def __init__(
        self,
        ports: ClusterPorts,
        held: HeldLease,
        policy: LaunchPolicy,
        until: datetime,
    ) -> None:
        self._ports = ports
        self._held = held
        self._policy = policy
        self._nodes = NodeMaker(ports, held, policy)
        self.launches = PlanLauncher(ports, held, policy)
        self.until = until
        self.brakes = NO_BRAKES
        self.hold: Hold | None = None
        self.held_back = ""
        self._plan_took = timedelta()

    @property
    def failed_attempts(self) -> int:
        """How many calls launched nothing so far."""
        return self.launches.launcher.shortage.failed_attempts

    def keep(self) -> None:
        """Renew the lease if less than half of it is left: while much is read.

        Raises:
            ConflictError: If it was lost.
        """
        self._held.keep()

    def keep_lease(self) -> bool:
        """Renew the lease, before something that only its holder may begin.

        Returns:
            Whether no other plan has been requested since this one began.

        Raises:
            ConflictError: If it was lost.
        """
        return not self._held.renew().dirty

    def note_plan(self, snapshot: ClusterSnapshot) -> None:
        """Note that the plan of a snapshot is made: Nodes have their time by what it took."""
        self._plan_took = self._ports.clock.now() - snapshot.taken_at

    def slots(self, snapshot: ClusterSnapshot, *, launched: bool) -> tuple[Slot, ...]:
        """Return the slots as they are now; those of the snapshot where none can want a Node.

        A launch writes slots even where it is not finished, and those whose Nodes are not made
        are marked by others when EC2 takes the machine.

        Args:
            launched: Whether anything was launched or promised since the snapshot, or tried to.
        """
        known = snapshot.slots
        if launched or snapshot.intents or any(not slot.node_name for slot in known):
            return self._ports.ledger.slots(self._ports.cluster.name)
        return known

    def carry_on(self, gathered: Gathered) -> bool:
        """Carry on with open launches; return whether any came to its end.

        While nothing may be launched no more is asked for, but what was launched becomes nodes.
        """
        if self.held_back:
            return self.launches.give_up(gathered)
        return self.launches.resume(gathered, self.until)

    def make_nodes(self, gathered: Gathered, slots: tuple[Slot, ...] | None = None) -> None:
        """Make the Nodes of launched machines, as far as EC2 shows them.

        To make thousands takes minutes. They are broken off before the end of the invocation, and
        when another plan has been requested and they have had their time. The rest follows.

        Args:
            slots: As they are now; None when this turn launched nothing since the snapshot but
                what was under way.
        """
        snapshot = gathered.snapshot
        if slots is None:
            slots = self.slots(snapshot, launched=False)
        if not any(not slot.node_name for slot in slots):
            return
        types = {
            instance_type.name: instance_type
            for instance_type in self._ports.catalog.instance_types()
        }
        provisioners = {provisioner.name: provisioner for provisioner in snapshot.provisioners}
        pending = {pod.uid: pod for pod in snapshot.pending}
        if self._nodes.make(slots, provisioners, types, pending, goes_on=self._goes_on()):
            self._ports.outbox.wake(self._ports.cluster.name, self._policy.describe)
        deaths, self._nodes.deaths = self._nodes.deaths, []
        self.launches.buried(deaths, provisioners)
        self.launches.started(
            self._nodes.started - {death.slot.provisioner for death in deaths}, gathered
        )

    def _goes_on(self) -> Callable[[], bool]:
        """Return what says, asked again and again from now on, whether Nodes are still made."""
        clock = self._ports.clock
        enough = clock.now() + max(_NODES, _TIMES_THE_PLAN * self._plan_took)

        def goes_on() -> bool:
            wanted = self.keep_lease() or clock.now() < enough
            return wanted and clock.now() < self.until

        return goes_on

    def nominate(self, snapshot: ClusterSnapshot, plan: Plan) -> bool:
        """Promise in-flight nodes the pods that were placed on them.

        The version of the slot fences a stale holder of the lease: all of them grow when an expired
        lease is acquired. A transaction with the lease would check no more, at three times the
        price, for each pod that arrives alone.

        Returns:
            False when one of them was changed meanwhile: plan again.
        """
        slots = {slot.name: slot for slot in snapshot.slots}
        nodes = {node.name: node for node in snapshot.nodes}
        told: list[KubernetesEvent] = []
        done = True
        for placement in plan.placements:
            slot = slots.get(placement.slot)
            if slot is not None:
                pods = tuple(sorted({*slot.pods, *placement.pods}))
                promised = dataclasses.replace(slot, pods=pods, bound=False)
                self._held.keep()
                if self._ports.ledger.change_slot(promised):
                    node = nodes.get(slot.node_name)
                    told += [nominated(ref, slot, node) for ref in placement.pods]
                else:
                    done = False
        EventRecorder(self._ports).record_each(*told[:MOST_PODS])
        return done
